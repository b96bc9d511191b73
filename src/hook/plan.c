/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "hook/plan.h"

#include <string.h>

#include "base/mem.h"

#define INT3 0xcc

static const uint8_t endbr64[4] = {0xf3, 0x0f, 0x1e, 0xfa};

const char *as_detour_reason(enum as_detour_verdict v)
{
	static const char *const text[AS_DETOUR_VERDICTS_] = {
		[AS_DETOUR_OK] = "it can be patched",
		[AS_DETOUR_NO_FUNCTION] = "no function begins there",
		[AS_DETOUR_NO_CODE] = "its bytes are no code",
		[AS_DETOUR_SHORT] = "it is too short",
		[AS_DETOUR_TARGET] = "something branches into its first instructions",
		[AS_DETOUR_LOOP] = "it branches to its own first instruction",
		[AS_DETOUR_CALL] = "it calls something within its first instructions",
		[AS_DETOUR_FIXED] = "an instruction at its beginning cannot be moved",
	};

	return v < AS_DETOUR_VERDICTS_ ? text[v] : "unknown";
}

/* ---- planning ---- */

static bool never_goes_on(const struct as_hook_insn *in)
{
	return in->kind == AS_HOOK_RET || in->kind == AS_HOOK_JMP || in->kind == AS_HOOK_IJMP ||
	       in->kind == AS_HOOK_STOP;
}

/* Bytes from svma on that only fill the gap up to the next function, at most `need`. */
static unsigned padding(const struct as_hook_code *c, uint64_t svma, uint64_t next,
			unsigned need)
{
	unsigned n = 0;

	while (n < need && svma + n < next) {
		const uint8_t *p = as_hook_code_bytes(c, svma + n, next - svma - n);
		struct as_hook_insn in;

		if (!p || !as_hook_decode(p, next - svma - n, svma + n, &in))
			break;
		if (in.kind != AS_HOOK_NOP && *p != INT3)
			break;
		n += in.len;
	}
	return AS_MIN(n, need);
}

/* Branches of a function to its first byte: what jumps there would be counted as a call, and may
 * need registers that a call may change. */
static bool loops_to_start(const struct as_hook_code *c, const struct as_hook_function *f)
{
	for (uint64_t a = f->svma; a < f->end_svma;) {
		const uint8_t *p = as_hook_code_bytes(c, a, f->end_svma - a);
		struct as_hook_insn in;

		if (!p || !as_hook_decode(p, f->end_svma - a, a, &in))
			return false;
		if (in.rel_bytes && in.kind != AS_HOOK_CALL && in.target == f->svma)
			return true;
		a += in.len;
	}
	return false;
}

/* Whether the instruction could be moved, wherever to. */
static enum as_detour_verdict can_move(const uint8_t *p, const struct as_hook_insn *in,
				       uint64_t at, unsigned end)
{
	uint8_t out[AS_HOOK_MOVED_MAX];
	bool call = in->kind == AS_HOOK_CALL || in->kind == AS_HOOK_ICALL;

	if (!as_hook_move(p, in, at, at, out))
		return AS_DETOUR_FIXED;
	return call && end < AS_HOOK_JUMP ? AS_DETOUR_CALL : AS_DETOUR_OK;
}

static enum as_detour_verdict take_window(const struct as_hook_code *c,
					  const struct as_hook_function *f, struct as_detour *d)
{
	while (d->window < AS_HOOK_JUMP) {
		uint64_t a = d->svma + d->window;
		const uint8_t *p = as_hook_code_bytes(c, a, f->end_svma - a);
		struct as_hook_insn in;
		enum as_detour_verdict v;

		if (d->ends || a >= f->end_svma)
			return AS_DETOUR_SHORT;
		if (!p || !as_hook_decode(p, f->end_svma - a, a, &in))
			return AS_DETOUR_NO_CODE;
		v = can_move(p, &in, a, d->window + in.len);
		if (v != AS_DETOUR_OK)
			return v;
		d->moved_from[d->ninsn++] = d->window;
		d->window += in.len;
		d->ends = never_goes_on(&in);
		d->calls = in.kind == AS_HOOK_CALL || in.kind == AS_HOOK_ICALL;
	}
	return AS_DETOUR_OK;
}

static enum as_detour_verdict with_padding(const struct as_hook_code *c, size_t i,
					   struct as_detour *d)
{
	uint64_t end = d->svma + d->window;
	unsigned need = AS_HOOK_JUMP - d->window;

	/* behind a part that goes on there is code, whatever the function's extent says */
	if (!d->ends || padding(c, end, as_hook_code_next(c, i), need) < need)
		return AS_DETOUR_SHORT;
	d->window = AS_HOOK_JUMP;
	return AS_DETOUR_OK;
}

enum as_detour_verdict as_detour_plan(struct as_hook_code *c, uint64_t svma,
				      struct as_detour *ret)
{
	size_t i = as_hook_code_find(c, svma);
	struct as_detour d = {.entry_svma = svma, .svma = svma};
	const struct as_hook_function *f;
	enum as_detour_verdict v;
	const uint8_t *p;

	if (i == SIZE_MAX)
		return AS_DETOUR_NO_FUNCTION;
	f = as_hook_code_at(c, i);
	d.end_svma = f->end_svma;
	p = as_hook_code_bytes(c, svma, sizeof endbr64);
	if (p && !memcmp(p, endbr64, sizeof endbr64))
		d.svma += sizeof endbr64;
	v = take_window(c, f, &d);
	if (v == AS_DETOUR_SHORT)
		v = with_padding(c, i, &d);
	if (v != AS_DETOUR_OK)
		return v;
	if (as_hook_code_targets(c, d.svma + 1, d.window - 1u))
		return AS_DETOUR_TARGET;
	/* a jump past endbr64 is one to the first byte that changes */
	if (loops_to_start(c, f) || (d.svma != svma && as_hook_code_targets(c, d.svma, 1)))
		return AS_DETOUR_LOOP;
	p = as_hook_code_bytes(c, d.svma, d.window);
	if (!p)
		return AS_DETOUR_NO_CODE;
	memcpy(d.old, p, d.window);
	*ret = d;
	return AS_DETOUR_OK;
}

/* ---- making ---- */

size_t as_detour_trampoline(struct as_detour *d, uint64_t bias, uint64_t at_avma,
			    uint8_t out[AS_DETOUR_TRAMPOLINE])
{
	uint64_t base = d->svma + bias;
	size_t n = 0;

	/* it is called through a pointer, as the function may be */
	if (d->svma != d->entry_svma) {
		memcpy(out, endbr64, sizeof endbr64);
		n = sizeof endbr64;
	}
	for (unsigned i = 0; i < d->ninsn; i++) {
		unsigned from = d->moved_from[i];
		struct as_hook_insn in;
		size_t len;

		if (!as_hook_decode(d->old + from, d->window - from, base + from, &in))
			return 0;
		len = as_hook_move(d->old + from, &in, base + from, at_avma + n, out + n);
		if (!len)
			return 0;
		d->moved_to[i] = (uint8_t)n;
		n += len;
	}
	/* a call went on with a jump of its own */
	if (d->ends || d->calls)
		return n;
	return as_hook_jump(at_avma + n, base + d->window, out + n) ? n + AS_HOOK_JUMP : 0;
}

bool as_detour_patch(const struct as_detour *d, uint64_t bias, uint64_t thunk_avma,
		     uint8_t out[AS_DETOUR_WINDOW])
{
	memset(out, INT3, d->window);
	return as_hook_jump(d->svma + bias, thunk_avma, out);
}

uint64_t as_detour_moved_pc(const struct as_detour *d, uint64_t bias, uint64_t trampoline_avma,
			    uint64_t pc_avma)
{
	uint64_t at = pc_avma - d->svma - bias;

	for (unsigned i = 1; i < d->ninsn; i++) {
		if (at == d->moved_from[i])
			return trampoline_avma + d->moved_to[i];
	}
	return pc_avma;
}
