/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Builds for other machines than x86-64: nothing is decoded, so nothing is patched. */
#include "hook/insn.h"

const char *as_hook_cannot_patch(enum as_arch arch)
{
	(void)arch;
	return "this build of assay cannot patch functions: it needs an x86-64 machine";
}

bool as_hook_decode(const uint8_t *p, size_t n, uint64_t address, struct as_hook_insn *ret)
{
	(void)p, (void)n, (void)address, (void)ret;
	return false;
}

size_t as_hook_move(const uint8_t *p, const struct as_hook_insn *in, uint64_t from, uint64_t to,
		    uint8_t out[AS_HOOK_MOVED_MAX])
{
	(void)p, (void)in, (void)from, (void)to, (void)out;
	return 0;
}

bool as_hook_jump(uint64_t at, uint64_t to, uint8_t out[AS_HOOK_JUMP])
{
	(void)at, (void)to, (void)out;
	return false;
}

size_t as_hook_thunk(uint64_t at, uint64_t hook, uint64_t code, uint8_t out[AS_HOOK_THUNK_MAX])
{
	(void)at, (void)hook, (void)code, (void)out;
	return 0;
}
