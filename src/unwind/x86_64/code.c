/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* x86-64 machine code: call sites, known roots and trampolines, functions and PLTs without CFI. */
#include "unwind/arch_priv.h"
#include "unwind/builder_priv.h"
#include "unwind/x86_64/insn_priv.h"

#include <string.h>

/* ucontext_t at sp when a signal handler has returned: gregs start at 40 */
static const int8_t ucontext_regs[17] = {8, 9, 10, 11, 12, 13, 14, 15, 5,
					 4, 6, 3,  1,  0,  2,  7,  16};

/* Length of an indirect call (FF /2) whose ModRM is at p, from the FF byte; 0: not one. */
static size_t indirect_call_length(const uint8_t *p, size_t n)
{
	if (n < 2 || p[0] != 0xff || (p[1] >> 3 & 7) != 2)
		return 0;
	unsigned mod = p[1] >> 6, rm = p[1] & 7;
	size_t len = 2;
	if (mod != 3 && rm == 4) {
		if (n < 3)
			return 0;
		len++;
		if (mod == 0 && (p[2] & 7) == 5)
			len += 4;
	}
	if (mod == 0 && rm == 5)
		len += 4;
	else if (mod == 1)
		len += 1;
	else if (mod == 2)
		len += 4;
	return len;
}

static bool after_call(const uint8_t *code, size_t n)
{
	if (n >= 5 && code[n - 5] == 0xe8)
		return true;
	for (size_t len = 2; len <= 7 && len <= n; len++)
		if (indirect_call_length(code + n - len, len) == len)
			return true;
	return false;
}

/* At push %rbp; mov %rsp,%rbp, between the two, or at ret. */
static int bare_leaf(const uint8_t *code)
{
	static const uint8_t prologue[] = {0x55, 0x48, 0x89, 0xe5};
	const uint8_t *pc = code + 8;
	if (*pc == 0xc3 || !memcmp(pc, prologue, 4) ||
	    (!memcmp(pc + 4, prologue, 4) && pc[0] == 0xf3 && pc[1] == 0x0f && pc[2] == 0x1e))
		return 0;
	return !memcmp(pc - 1, prologue, 4) ? 8 : -1;
}

static size_t skip_endbr(const uint8_t *code, size_t n)
{
	static const uint8_t endbr64[4] = {0xf3, 0x0f, 0x1e, 0xfa};
	return n >= 4 && !memcmp(code, endbr64, 4) ? 4 : 0;
}

/* glibc's __start_context: mov %rbx,%rsp; mov (%rsp),%rdi; test %rdi,%rdi */
static bool is_context_start(const uint8_t *code, size_t n)
{
	static const uint8_t body[] = {0x48, 0x89, 0xdc, 0x48, 0x8b,
				       0x3c, 0x24, 0x48, 0x85, 0xff};
	size_t at = skip_endbr(code, n);
	return n - at >= sizeof body && !memcmp(code + at, body, sizeof body);
}

/* __restore_rt: mov $15 (rt_sigreturn) to rax or eax; syscall */
static bool is_sigreturn(const uint8_t *code, size_t n)
{
	static const uint8_t rax[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	static const uint8_t eax[] = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};
	return (n >= sizeof rax && !memcmp(code, rax, sizeof rax)) ||
	       (n >= sizeof eax && !memcmp(code, eax, sizeof eax));
}

/*
 * _start ends where control cannot go on: a hlt, an indirect jump to the program (ld.so), or
 * padding. Two instructions longer is harmless, a whole function would be a false root.
 */
static size_t entry_length(const uint8_t *code, size_t n)
{
	size_t at = 0, max = n < 160 ? n : 160;
	while (at < max) {
		struct as_x86_insn i;
		if (!as_x86_decode(code + at, n - at, &i))
			return at ? at : max;
		at += i.len;
		if (i.kind == AS_X86_HLT || i.kind == AS_X86_JMP_INDIRECT ||
		    i.kind == AS_X86_JMP)
			break;
	}
	return at < n ? at : n;
}

static void plt(struct as_ut_builder *b, uint64_t svma, uint64_t section_svma,
		struct as_bytes section, size_t n)
{
	uint64_t end = svma + n;
	const uint8_t *code = section.p;
	uint64_t first = section_svma;
	uint32_t plain = as_ut_w0(AS_UT_CFA_SP, AS_UT_FP_SAME, 0);
	/* entry 0 of a lazy PLT pushes the module's handle after the index that is already there */
	if (section.n >= 16 && code[0] == 0xff && code[1] == 0x35) {
		if (svma < section_svma + 6)
			as_ut_emit(b, svma, plain, 16);
		if (svma < section_svma + 16)
			as_ut_emit(b, svma > section_svma + 6 ? svma : section_svma + 6, plain,
				   24);
		first += 16;
	}
	if (first < svma)
		first = svma;
	if (first >= end)
		return;
	/* an entry pushes its index or it does not; where decides the threshold */
	size_t at = (size_t)((first - section_svma + 15) & ~(uint64_t)15);
	if (at >= section.n)
		at = (size_t)(first - section_svma);
	size_t k = skip_endbr(code + at, section.n - at);
	size_t left = section.n - at;
	if (k < left && left - k >= 6 && code[at + k] == 0xff && code[at + k + 1] == 0x25)
		k += 6;
	if (left > k + 5 && code[at + k] == 0x68 && section_svma % 16 == 0)
		as_ut_emit(b, first, as_ut_w0(AS_UT_CFA_PLT, AS_UT_FP_SAME, 0), (int64_t)k + 5);
	else
		as_ut_emit(b, first, plain, 8);
}

const struct as_uarch as_uarch_x86_64 = {
	.arch = AS_ARCH_X86_64,
	.pc = 16,
	.sp = 7,
	.fp = 6,
	.ra = 16,
	.preserved = 1u << 3 | 1u << 6 | 1u << 12 | 1u << 13 | 1u << 14 | 1u << 15,
	.address_mask = UINT64_MAX,
	.ucontext_off = 40,
	.ucontext_count = 17,
	.ucontext_regs = ucontext_regs,
	.after_call = after_call,
	.bare_leaf = bare_leaf,
	.is_context_start = is_context_start,
	.is_sigreturn = is_sigreturn,
	.entry_length = entry_length,
	.scan = as_x86_scan,
	.plt = plt,
};
