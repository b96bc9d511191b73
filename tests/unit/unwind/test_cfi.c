/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The compiler of unwind tables on CFI written by hand: every encoding, entry form and rule
 * shape, the mending of what CFI leaves out, and damage (cut at every byte, random changes).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "cfi_build.h"
#include "abi/unwind_table.h"

struct compiled {
	struct as_buf blob;
	struct as_utable t;
	struct as_cfi_stats stats;
};

static void compile(const struct as_cfi_input *in, struct compiled *c)
{
	struct as_error err;
	as_buf_reset(&c->blob);
	assert_int_equal(as_utable_compile(in, &c->blob, &c->stats, &err), 0);
	assert_int_equal(as_utable_open(c->blob.p, c->blob.len, &c->t, &err), 0);
}

static struct as_rule at(const struct compiled *c, uint64_t svma)
{
	struct as_rule r = {0};
	assert_true(as_utable_find(&c->t, svma, &r));
	return r;
}

static void assert_rule(const struct compiled *c, uint64_t svma, unsigned cfa, unsigned fp,
			int fp_off, int w1)
{
	struct as_rule r = at(c, svma);
	assert_int_equal(r.w0 & 0xff, cfa);
	if (cfa == AS_UT_CFA_NONE || cfa == AS_UT_CFA_END || cfa == AS_UT_CFA_SIGNAL)
		return;
	assert_int_equal(r.w0 >> 8 & 0xff, fp);
	assert_int_equal((int16_t)(r.w0 >> 16), fp_off);
	assert_int_equal(r.w1, w1);
}

static void assert_kind(const struct compiled *c, uint64_t svma, unsigned cfa)
{
	struct as_rule r = {0};
	if (!as_utable_find(&c->t, svma, &r))
		r.w0 = AS_UT_CFA_NONE;
	assert_int_equal(r.w0 & 0xff, cfa);
}

/* push rbp (1 byte); mov rsp,rbp (3); … ; leave; ret */
#define USUAL CFI_PROGRAM(0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x7a, 0x0c, 7, 8)

static void assert_usual(const struct compiled *c, uint64_t start)
{
	assert_rule(c, start, AS_UT_CFA_SP, AS_UT_FP_SAME, 0, 8);
	assert_rule(c, start + 1, AS_UT_CFA_SP, AS_UT_FP_CFA, -16, 16);
	assert_rule(c, start + 3, AS_UT_CFA_SP, AS_UT_FP_CFA, -16, 16);
	assert_rule(c, start + 4, AS_UT_CFA_FP, AS_UT_FP_CFA, -16, 16);
	assert_rule(c, start + 61, AS_UT_CFA_FP, AS_UT_FP_CFA, -16, 16);
	assert_rule(c, start + 62, AS_UT_CFA_SP, AS_UT_FP_CFA, -16, 8);
}

static void every_pointer_encoding_gives_the_same_rows(void **state)
{
	static const uint8_t encodings[] = {0x00, 0x04, 0x0c, 0x03, 0x0b, 0x02, 0x01,
					    0x1b, 0x1c, 0x13, 0x2b, 0x3b, 0x14, 0x10};
	for (size_t i = 0; i < sizeof encodings; i++) {
		struct cfi_build b = {.svma = 0x2000};
		struct compiled c = {0};
		unsigned app = encodings[i] & 0x70;
		size_t cie = cfi_cie(&b, "zR", encodings[i], CFI_X86);
		uint64_t base = app == 0x20 ? 0x1000 : app == 0x30 ? 0x800 : 0;
		cfi_fde(&b, cie, 0x4000 - base, 64, USUAL);
		struct as_cfi_input in = cfi_input(&b, AS_ARCH_X86_64);
		in.text_base_svma = 0x1000;
		in.data_base_svma = 0x800;
		compile(&in, &c);
		assert_int_equal(c.stats.nfde, 1);
		assert_usual(&c, 0x4000);
		as_buf_clear(&b.b);
		as_buf_clear(&c.blob);
	}
}

static void indirect_pointers_are_refused_and_cost_only_their_function(void **state)
{
	struct cfi_build b = {.svma = 0x2000};
	struct compiled c = {0};
	size_t cie = cfi_cie(&b, "zR", 0x9b, CFI_X86);
	cfi_fde(&b, cie, 0x9000, 64, USUAL);
	cie = cfi_cie(&b, "zR", 0x1b, CFI_X86);
	cfi_fde(&b, cie, 0x4000, 64, USUAL);
	struct as_cfi_input in = cfi_input(&b, AS_ARCH_X86_64);
	compile(&in, &c);
	assert_int_equal(c.stats.nfde, 1);
	assert_int_equal(c.stats.bad_entries, 1);
	assert_usual(&c, 0x4000);
	as_buf_clear(&b.b);
	as_buf_clear(&c.blob);
}

static void all_versions_lengths_and_augmentations_are_read(void **state)
{
	static const struct {
		bool debug_frame, wide;
		unsigned version;
		const char *aug;
	} forms[] = {
		{false, false, 1, "zR"},   {false, false, 3, "zR"},  {false, true, 1, "zR"},
		{false, false, 1, "zPLR"}, {false, false, 1, "zRB"}, {false, false, 1, ""},
		{true, false, 1, ""},      {true, false, 3, ""},     {true, false, 4, ""},
		{true, true, 4, ""},       {true, true, 3, ""},      {false, true, 4, "zPLR"},
	};
	for (size_t i = 0; i < AS_ARRAY_LEN(forms); i++) {
		struct cfi_build b = {
			.svma = 0x2000,
			.debug_frame = forms[i].debug_frame,
			.wide = forms[i].wide,
			.version = forms[i].version,
		};
		struct compiled c = {0};
		size_t cie = cfi_cie(&b, forms[i].aug, 0x1b, CFI_X86);
		cfi_fde(&b, cie, 0x4000, 64, USUAL);
		struct as_cfi_input in = cfi_input(&b, AS_ARCH_X86_64);
		compile(&in, &c);
		assert_usual(&c, 0x4000);
		as_buf_clear(&b.b);
		as_buf_clear(&c.blob);
	}
}

static void a_zero_length_is_passed_or_ends_the_section_as_told(void **state)
{
	struct cfi_build b = {.svma = 0x2000};
	struct compiled c = {0};
	size_t cie = cfi_cie(&b, "zR", 0x1b, CFI_X86);
	cfi_fde(&b, cie, 0x4000, 64, USUAL);
	as_buf_le32(&b.b, 0);
	cfi_fde(&b, cie, 0x5000, 64, USUAL);
	struct as_cfi_input in = cfi_input(&b, AS_ARCH_X86_64);
	compile(&in, &c);
	assert_usual(&c, 0x5000);
	in.eh_frame_terminated_by_zero = true;
	compile(&in, &c);
	assert_usual(&c, 0x4000);
	assert_kind(&c, 0x5000, AS_UT_CFA_NONE);
	as_buf_clear(&b.b);
	as_buf_clear(&c.blob);
}

static void debug_frame_serves_only_what_eh_frame_leaves_out(void **state)
{
	struct cfi_build e = {.svma = 0x2000}, d = {.debug_frame = true};
	struct compiled c = {0};
	size_t cie = cfi_cie(&e, "zR", 0x1b, CFI_X86);
	cfi_fde(&e, cie, 0x4000, 64, USUAL);
	cie = cfi_cie(&d, "", 0, CFI_X86);
	cfi_fde(&d, cie, 0x4000, 64, CFI_PROGRAM(0x0e, 99));
	cfi_fde(&d, cie, 0x4040, 64, CFI_PROGRAM(0x0e, 77));
	cfi_fde(&d, cie, 0, 64, CFI_PROGRAM(0x0e, 55)); /* thrown away by the linker */
	struct as_cfi_input in = cfi_input(&e, AS_ARCH_X86_64);
	in.debug_frame = (struct as_bytes){(const uint8_t *)d.b.p, d.b.len};
	compile(&in, &c);
	assert_int_equal(c.stats.nfde, 2);
	assert_usual(&c, 0x4000);
	assert_rule(&c, 0x4050, AS_UT_CFA_SP, AS_UT_FP_SAME, 0, 77);
	as_buf_clear(&e.b);
	as_buf_clear(&d.b);
	as_buf_clear(&c.blob);
}

static void each_shape_of_rule_has_its_row(void **state)
{
	struct cfi_build b = {.svma = 0x2000};
	struct compiled c = {0};
	size_t cie = cfi_cie(&b, "zR", 0x1b, CFI_X86);
	/* CFA = *(rbp - 8) + 4; rbp = *(rbp + 0) */
	cfi_fde(&b, cie, 0x4000, 16,
		CFI_PROGRAM(0x0f, 5, 0x76, 0x78, 0x06, 0x23, 4, 0x10, 6, 2, 0x76, 0));
	/* CFA = r10 + 0 */
	cfi_fde(&b, cie, 0x4010, 16, CFI_PROGRAM(0x0c, 10, 0));
	/* return address undefined */
	cfi_fde(&b, cie, 0x4030, 16, CFI_PROGRAM(0x07, 16));
	/* return address in rdi, as in vfork */
	cfi_fde(&b, cie, 0x4050, 16, CFI_PROGRAM(0x09, 16, 5, 0x0e, 0));
	/* lazy PLT entry */
	cfi_fde(&b, cie, 0x4060, 32,
		CFI_PROGRAM(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24,
			    0x22));
	/* an expression nobody knows */
	cfi_fde(&b, cie, 0x4080, 16, CFI_PROGRAM(0x0f, 3, 0x77, 8, 0x20));
	/* remember, change, restore */
	cfi_fde(&b, cie, 0x4090, 16, CFI_PROGRAM(0x0e, 32, 0x0a, 0x42, 0x0e, 8, 0x42, 0x0b));
	/* rbp undefined */
	cfi_fde(&b, cie, 0x40a0, 16, CFI_PROGRAM(0x07, 6, 0x0e, 24));
	/* offsets too large for a row */
	cfi_fde(&b, cie, 0x40b0, 16, CFI_PROGRAM(0x86, 0x80, 0x80, 0x04));
	struct as_cfi_input in = cfi_input(&b, AS_ARCH_X86_64);
	compile(&in, &c);
	assert_rule(&c, 0x4000, AS_UT_CFA_DEREF_FP, AS_UT_FP_MEM, 0, 4 << 16 | 0xfff8);
	assert_int_equal(at(&c, 0x4010).w0, AS_UT_CFA_REG | 10u << 24);
	assert_kind(&c, 0x4030, AS_UT_CFA_END);
	assert_kind(&c, 0x402f, AS_UT_CFA_END); /* coroutines return to a root's first byte */
	assert_rule(&c, 0x4050, AS_UT_CFA_RAREG, AS_UT_FP_SAME, 5, 0);
	assert_rule(&c, 0x4060, AS_UT_CFA_PLT, AS_UT_FP_SAME, 0, 11);
	assert_kind(&c, 0x4080, AS_UT_CFA_EXPR);
	assert_rule(&c, 0x4090, AS_UT_CFA_SP, AS_UT_FP_SAME, 0, 32);
	assert_rule(&c, 0x4092, AS_UT_CFA_SP, AS_UT_FP_SAME, 0, 8);
	assert_rule(&c, 0x4094, AS_UT_CFA_SP, AS_UT_FP_SAME, 0, 32);
	assert_rule(&c, 0x40a0, AS_UT_CFA_SP, AS_UT_FP_UNDEF, 0, 24);
	assert_kind(&c, 0x40b0, AS_UT_CFA_EXPR);
	as_buf_clear(&b.b);
	as_buf_clear(&c.blob);
}

static void states_are_remembered_64_deep_and_no_deeper(void **state)
{
	for (unsigned depth = 64; depth <= 65; depth++) {
		struct cfi_build b = {.svma = 0x2000};
		struct compiled c = {0};
		uint8_t program[2 * 65 + 8];
		size_t n = 0;
		size_t cie = cfi_cie(&b, "zR", 0x1b, CFI_X86);
		for (unsigned i = 0; i < depth; i++)
			program[n++] = 0x0a;
		program[n++] = 0x0e;
		program[n++] = 100;
		program[n++] = 0x44;
		for (unsigned i = 0; i < depth; i++)
			program[n++] = 0x0b;
		cfi_fde(&b, cie, 0x4000, 64, program, n);
		cfi_fde(&b, cie, 0x4040, 64, USUAL);
		struct as_cfi_input in = cfi_input(&b, AS_ARCH_X86_64);
		compile(&in, &c);
		assert_kind(&c, 0x4000, depth == 64 ? AS_UT_CFA_SP : AS_UT_CFA_NONE);
		assert_int_equal(c.stats.bad_entries, depth - 64);
		if (depth == 64)
			assert_rule(&c, 0x4004, AS_UT_CFA_SP, AS_UT_FP_SAME, 0, 8);
		assert_usual(&c, 0x4040);
		as_buf_clear(&b.b);
		as_buf_clear(&c.blob);
	}
}

static void an_unknown_instruction_costs_the_rest_of_its_function(void **state)
{
	struct cfi_build b = {.svma = 0x2000};
	struct compiled c = {0};
	size_t cie = cfi_cie(&b, "zR", 0x1b, CFI_X86);
	cfi_fde(&b, cie, 0x4000, 64, CFI_PROGRAM(0x44, 0x3f, 0x0e, 16));
	cfi_fde(&b, cie, 0x4040, 64, USUAL);
	struct as_cfi_input in = cfi_input(&b, AS_ARCH_X86_64);
	compile(&in, &c);
	assert_rule(&c, 0x4003, AS_UT_CFA_SP, AS_UT_FP_SAME, 0, 8);
	assert_kind(&c, 0x4004, AS_UT_CFA_NONE);
	assert_usual(&c, 0x4040);
	as_buf_clear(&b.b);
	as_buf_clear(&c.blob);
}

static void short_gaps_are_padding_and_long_ones_have_no_rule(void **state)
{
	struct cfi_build b = {.svma = 0x2000};
	struct compiled c = {0};
	size_t cie = cfi_cie(&b, "zR", 0x1b, CFI_X86);
	cfi_fde(&b, cie, 0x4000, 17, CFI_PROGRAM(0x0e, 32));
	cfi_fde(&b, cie, 0x4020, 16, CFI_PROGRAM(0x0e, 32));
	cfi_fde(&b, cie, 0x4040, 16, CFI_PROGRAM(0x0e, 32));
	struct as_cfi_input in = cfi_input(&b, AS_ARCH_X86_64);
	compile(&in, &c);
	assert_int_equal(c.stats.rows, 4);
	assert_kind(&c, 0x401f, AS_UT_CFA_SP);
	assert_kind(&c, 0x4030, AS_UT_CFA_NONE);
	assert_kind(&c, 0x4050, AS_UT_CFA_NONE);
	as_buf_clear(&b.b);
	as_buf_clear(&c.blob);
}

static void far_functions_and_big_modules_get_segments_of_their_own(void **state)
{
	enum { FUNCTIONS = 500000 };
	struct cfi_build b = {.svma = 0x2000};
	struct compiled c = {0};
	size_t cie = cfi_cie(&b, "zR", 0x0c, CFI_X86);
	for (uint64_t i = 0; i < FUNCTIONS; i++) {
		uint8_t size = (uint8_t)(i * 7 & 0x3f);
		cfi_fde(&b, cie, 0x100000 + i * 64, 64,
			CFI_PROGRAM(0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x46, 0x0e, size,
				    0x46, 0x0c, 7, 8));
	}
	cfi_fde(&b, cie, 0x3f000000000, 64, USUAL);
	struct as_cfi_input in = cfi_input(&b, AS_ARCH_X86_64);
	compile(&in, &c);
	assert_true(c.stats.segments >= 3);
	assert_true(c.blob.len < b.b.len);
	for (uint64_t i = 0; i < FUNCTIONS; i += 37) {
		uint64_t start = 0x100000 + i * 64;
		assert_rule(&c, start + 1, AS_UT_CFA_SP, AS_UT_FP_CFA, -16, 16);
		assert_rule(&c, start + 10, AS_UT_CFA_FP, AS_UT_FP_CFA, -16,
			    (int)(i * 7 & 0x3f));
		assert_rule(&c, start + 20, AS_UT_CFA_SP, AS_UT_FP_CFA, -16, 8);
	}
	assert_usual(&c, 0x3f000000000);
	assert_kind(&c, 0x20000000000, AS_UT_CFA_NONE);
	as_buf_clear(&b.b);
	as_buf_clear(&c.blob);
}

/* Known code without CFI or with the wrong one, in a section at 0x1000. */
static void roots_and_trampolines_are_known_by_their_bytes(void **state)
{
	static uint8_t code[0x400];
	static const uint8_t context[] = {0x48, 0x89, 0xdc, 0x48, 0x8b,
					  0x3c, 0x24, 0x48, 0x85, 0xff};
	static const uint8_t restore[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	static const uint8_t restore_musl[] = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};
	struct cfi_build b = {.svma = 0x2000};
	struct compiled c = {0};
	memset(code, 0x90, sizeof code);
	memcpy(code + 0x100, context, sizeof context);
	memcpy(code + 0x140, restore, sizeof restore);
	memcpy(code + 0x200, restore_musl, sizeof restore_musl);
	size_t cie = cfi_cie(&b, "zR", 0x1b, CFI_X86);
	cfi_fde(&b, cie, 0x1000, 32, USUAL);
	cfi_fde(&b, cie, 0x1100, 32, CFI_PROGRAM(0)); /* as glibc writes it: plain */
	cfi_fde(&b, cie, 0x113f, 16, CFI_PROGRAM(0)); /* begins a byte early, no 'S' */
	cfi_fde(&b, cie, 0x1300, 32, CFI_PROGRAM(0)); /* the entry point */
	struct as_code_range range = {0x1000, {code, sizeof code}, false};
	struct as_cfi_input in = cfi_input(&b, AS_ARCH_X86_64);
	in.code = &range;
	in.ncode = 1;
	in.entry_svma = 0x1304;
	compile(&in, &c);
	assert_kind(&c, 0x10ff, AS_UT_CFA_END);
	assert_kind(&c, 0x1100, AS_UT_CFA_END);
	assert_kind(&c, 0x113f, AS_UT_CFA_SIGNAL);
	assert_kind(&c, 0x1140, AS_UT_CFA_SIGNAL);
	assert_kind(&c, 0x11ff, AS_UT_CFA_SIGNAL);
	assert_kind(&c, 0x1200, AS_UT_CFA_SIGNAL);
	assert_kind(&c, 0x1300, AS_UT_CFA_END);
	as_buf_clear(&b.b);
	as_buf_clear(&c.blob);
}

static void a_signal_frame_is_known_by_its_augmentation(void **state)
{
	struct cfi_build b = {.svma = 0x2000};
	struct compiled c = {0};
	size_t cie = cfi_cie(&b, "zRS", 0x1b, CFI_X86);
	/* return address and rsp by expression, as glibc's __restore_rt */
	cfi_fde(&b, cie, 0x1100, 16,
		CFI_PROGRAM(0x0f, 4, 0x77, 0xa0, 1, 0x06, 0x10, 16, 3, 0x77, 0xa8, 1));
	struct as_cfi_input in = cfi_input(&b, AS_ARCH_X86_64);
	compile(&in, &c);
	assert_kind(&c, 0x1100, AS_UT_CFA_SIGNAL);
	as_buf_clear(&b.b);
	as_buf_clear(&c.blob);
}

static void a_plt_without_cfi_gets_rules_by_its_form(void **state)
{
	static uint8_t plt[48] = {0xff, 0x35, 1, 0,    0,    0, 0xff, 0x25, 1, 0,    0, 0, 0x0f,
				  0x1f, 0x40, 0, 0xff, 0x25, 1, 0,    0,    0, 0x68, 0, 0, 0,
				  0,    0xe9, 0, 0,    0,    0, 0xff, 0x25, 1, 0,    0, 0, 0x68,
				  1,    0,    0, 0,    0xe9, 0, 0,    0,    0};
	static const uint8_t sec[16] = {0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25};
	static const uint8_t ibt[32] = {0xff, 0x35, 1,    0, 0,    0,    0xf2, 0xff, 0x25,
					1,    0,    0,    0, 0x0f, 0x1f, 0,    0xf3, 0x0f,
					0x1e, 0xfa, 0x68, 0, 0,    0,    0,    0xf2, 0xe9};
	struct as_code_range ranges[] = {
		{0x1000, {plt, sizeof plt}, true},
		{0x1100, {sec, sizeof sec}, true},
		{0x1200, {ibt, sizeof ibt}, true},
	};
	struct as_cfi_input in = {.arch = AS_ARCH_X86_64, .code = ranges, .ncode = 3};
	struct compiled c = {0};
	compile(&in, &c);
	assert_rule(&c, 0x1000, AS_UT_CFA_SP, AS_UT_FP_SAME, 0, 16);
	assert_rule(&c, 0x1006, AS_UT_CFA_SP, AS_UT_FP_SAME, 0, 24);
	assert_rule(&c, 0x1010, AS_UT_CFA_PLT, AS_UT_FP_SAME, 0, 11);
	assert_rule(&c, 0x102f, AS_UT_CFA_PLT, AS_UT_FP_SAME, 0, 11);
	assert_kind(&c, 0x1030, AS_UT_CFA_NONE);
	assert_rule(&c, 0x1100, AS_UT_CFA_SP, AS_UT_FP_SAME, 0, 8);
	assert_rule(&c, 0x1210, AS_UT_CFA_PLT, AS_UT_FP_SAME, 0, 9);
	as_buf_clear(&c.blob);
}

/* The shim rustc writes for main with panic=abort, and a function with a frame pointer. */
static void functions_without_cfi_get_rows_from_their_code(void **state)
{
	static const uint8_t code[64] = {
		0x50,                               /* push %rax */
		0x48, 0x89, 0xf1,                   /* mov %rsi,%rcx */
		0x48, 0x63, 0xd7,                   /* movslq %edi,%rdx */
		0xff, 0x15, 0,    0,    0,    0,    /* call *0(%rip) */
		0x59,                               /* pop %rcx */
		0xc3,                               /* ret */
		0xcc, 0xf3, 0x0f, 0x1e, 0xfa,       /* 10: endbr64 */
		0x55,                               /* 14: push %rbp */
		0x48, 0x89, 0xe5,                   /* 15: mov %rsp,%rbp */
		0x53,                               /* 18: push %rbx */
		0x48, 0x81, 0xec, 0x00, 0x10, 0, 0, /* 19: sub $0x1000,%rsp */
		0x85, 0xff,                         /* 20: test %edi,%edi */
		0x74, 0x0a,                         /* 22: je 2e */
		0x48, 0x81, 0xc4, 0x00, 0x10, 0, 0, /* 24: add $0x1000,%rsp */
		0x5b,                               /* 2b: pop %rbx */
		0x5d,                               /* 2c: pop %rbp */
		0xc3,                               /* 2d: ret */
		0xe8, 0,    0,    0,    0,          /* 2e: call */
		0xc9,                               /* 33: leave */
		0xc3,                               /* 34: ret */
	};
	struct as_code_range range = {0x1000, {code, sizeof code}, false};
	struct as_cfi_input in = {.arch = AS_ARCH_X86_64, .code = &range, .ncode = 1};
	struct compiled c = {0};
	compile(&in, &c);
	assert_rule(&c, 0x1000, AS_UT_CFA_SP, AS_UT_FP_SAME, 0, 8);
	assert_rule(&c, 0x1001, AS_UT_CFA_SP, AS_UT_FP_SAME, 0, 16);
	assert_rule(&c, 0x100c, AS_UT_CFA_SP, AS_UT_FP_SAME, 0, 16);
	assert_rule(&c, 0x100e, AS_UT_CFA_SP, AS_UT_FP_SAME, 0, 8);
	assert_rule(&c, 0x1010, AS_UT_CFA_SP, AS_UT_FP_SAME, 0, 8);
	assert_rule(&c, 0x1015, AS_UT_CFA_SP, AS_UT_FP_CFA, -16, 16);
	assert_rule(&c, 0x1018, AS_UT_CFA_FP, AS_UT_FP_CFA, -16, 16);
	assert_rule(&c, 0x102c, AS_UT_CFA_FP, AS_UT_FP_CFA, -16, 16);
	assert_rule(&c, 0x102d, AS_UT_CFA_SP, AS_UT_FP_SAME, 0, 8);
	assert_rule(&c, 0x102e, AS_UT_CFA_FP, AS_UT_FP_CFA, -16, 16);
	assert_rule(&c, 0x1034, AS_UT_CFA_SP, AS_UT_FP_SAME, 0, 8);
	as_buf_clear(&c.blob);
}

static void aarch64_rows_tell_where_the_return_address_is(void **state)
{
	struct cfi_build b = {.svma = 0x2000};
	struct compiled c = {0};
	size_t cie = cfi_cie(&b, "zRB", 0x1b, CFI_ARM);
	/* stp x29,x30,[sp,#-32]!; mov x29,sp */
	cfi_fde(&b, cie, 0x4000, 64,
		CFI_PROGRAM(0x2d, 0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3, 0x41, 0x0d, 29, 0x4a, 0xdd,
			    0xde, 0x0c, 31, 0));
	/* str x30,[sp,#-16]! */
	cfi_fde(&b, cie, 0x4040, 64, CFI_PROGRAM(0x41, 0x0e, 16, 0x9e, 2));
	/* x30 far from x29 */
	cfi_fde(&b, cie, 0x4080, 64, CFI_PROGRAM(0x41, 0x0e, 48, 0x9d, 2, 0x9e, 6));
	cfi_fde(&b, cie, 0x40d0, 16, CFI_PROGRAM(0x07, 30));
	struct as_cfi_input in = cfi_input(&b, AS_ARCH_AARCH64);
	compile(&in, &c);
	assert_rule(&c, 0x4000, AS_UT_CFA_SP, AS_UT_FP_SAME, 0, 0);
	assert_rule(&c, 0x4004, AS_UT_CFA_SP, AS_UT_FP_CFA, -32, 32);
	assert_rule(&c, 0x4008, AS_UT_CFA_FP, AS_UT_FP_CFA, -32, 32);
	assert_rule(&c, 0x4030, AS_UT_CFA_SP, AS_UT_FP_SAME, 0, 0);
	assert_rule(&c, 0x4044, AS_UT_CFA_SP, AS_UT_FP_MEM, -16, 16);
	assert_kind(&c, 0x4084, AS_UT_CFA_EXPR);
	assert_kind(&c, 0x40d0, AS_UT_CFA_END);
	as_buf_clear(&b.b);
	as_buf_clear(&c.blob);
}

static void aarch64_code_without_cfi_is_read(void **state)
{
	static const uint32_t code[] = {
		0xd503233f,                         /* 00 paciasp */
		0xa9be7bfd,                         /* 04 stp x29,x30,[sp,#-32]! */
		0x910003fd,                         /* 08 mov x29,sp */
		0x94000000,                         /* 0c bl */
		0xa8c27bfd,                         /* 10 ldp x29,x30,[sp],#32 */
		0xd50323bf,                         /* 14 autiasp */
		0xd65f03c0,                         /* 18 ret */
		0xd503201f,                         /* 1c nop */
		0xd2801168,                         /* 20 mov x8,#139 */
		0xd4000001,                         /* 24 svc #0 */
		0xd503201f, 0xd503201f, 0xf81f0ffe, /* 30 str x30,[sp,#-16]! */
		0xd10083ff,                         /* 34 sub sp,sp,#32 */
		0x94000000,                         /* 38 bl */
		0x910083ff,                         /* 3c add sp,sp,#32 */
		0xf84107fe,                         /* 40 ldr x30,[sp],#16 */
		0xd65f03c0,                         /* 44 ret */
	};
	struct as_code_range range = {0x1000, {(const uint8_t *)code, sizeof code}, false};
	struct as_cfi_input in = {.arch = AS_ARCH_AARCH64, .code = &range, .ncode = 1};
	struct compiled c = {0};
	compile(&in, &c);
	assert_rule(&c, 0x1004, AS_UT_CFA_SP, AS_UT_FP_SAME, 0, 0);
	assert_rule(&c, 0x1008, AS_UT_CFA_SP, AS_UT_FP_CFA, -32, 32);
	assert_rule(&c, 0x100c, AS_UT_CFA_FP, AS_UT_FP_CFA, -32, 32);
	assert_rule(&c, 0x1014, AS_UT_CFA_SP, AS_UT_FP_SAME, 0, 0);
	assert_kind(&c, 0x101f, AS_UT_CFA_SIGNAL);
	assert_kind(&c, 0x1020, AS_UT_CFA_SIGNAL);
	assert_rule(&c, 0x1034, AS_UT_CFA_SP, AS_UT_FP_MEM, -8 - 8, 16);
	assert_rule(&c, 0x1038, AS_UT_CFA_SP, AS_UT_FP_MEM, -16, 48);
	assert_rule(&c, 0x1044, AS_UT_CFA_SP, AS_UT_FP_SAME, 0, 0);
	as_buf_clear(&c.blob);
}

/* A small section with every form in it, for damage. */
static void build_varied(struct cfi_build *b)
{
	size_t cie = cfi_cie(b, "zPLR", 0x1b, CFI_X86);
	cfi_fde(b, cie, 0x4000, 64, USUAL);
	cfi_fde(b, cie, 0x4040, 64, CFI_PROGRAM(0x0a, 0x0e, 32, 0x42, 0x0b, 0x02, 9, 0x0e, 16));
	size_t signal = cfi_cie(b, "zRS", 0x1b, CFI_X86);
	cfi_fde(b, signal, 0x4100, 16, CFI_PROGRAM(0x0f, 3, 0x77, 8, 6, 0x10, 16, 2, 0x77, 0));
	cfi_fde(b, cie, 0x4200, 0x1000,
		CFI_PROGRAM(0x03, 0, 4, 0x0e, 16, 0x04, 0, 8, 0, 0, 0x07, 6));
	cfi_fde(b, cie, 0x5200, 64,
		CFI_PROGRAM(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24,
			    0x22));
}

static void use(const struct as_cfi_input *in)
{
	struct as_buf out = {0};
	struct as_error err;
	struct as_utable t;
	struct as_rule r;
	if (!as_utable_compile(in, &out, NULL, &err)) {
		assert_int_equal(as_utable_open(out.p, out.len, &t, &err), 0);
		for (uint64_t a = 0x3ff0; a < 0x5300; a += 13)
			(void)as_utable_find(&t, a, &r);
	}
	struct as_extent *e = NULL;
	size_t n;
	if (!as_cfi_extents(in, &e, &n, &err))
		free(e);
	as_buf_clear(&out);
}

static void a_section_cut_anywhere_costs_only_what_was_cut(void **state)
{
	struct cfi_build b = {.svma = 0x2000};
	build_varied(&b);
	for (size_t n = 0; n <= b.b.len; n++) {
		/* exact size, so that sanitizers see overruns */
		uint8_t *copy = malloc(n + !n);
		memcpy(copy, b.b.p, n);
		struct as_cfi_input in = cfi_input(&b, AS_ARCH_X86_64);
		in.eh_frame = (struct as_bytes){copy, n};
		use(&in);
		free(copy);
	}
	as_buf_clear(&b.b);
}

static void random_changes_to_a_section_do_no_harm(void **state)
{
	struct cfi_build b = {.svma = 0x2000};
	uint64_t x = 88172645463325252ull;
	build_varied(&b);
	uint8_t *copy = malloc(b.b.len);
	for (unsigned round = 0; round < 20000; round++) {
		memcpy(copy, b.b.p, b.b.len);
		for (unsigned k = 0; k <= round % 4; k++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			copy[x % b.b.len] = (uint8_t)(x >> 32);
		}
		struct as_cfi_input in =
			cfi_input(&b, round & 1 ? AS_ARCH_X86_64 : AS_ARCH_AARCH64);
		in.eh_frame.p = copy;
		use(&in);
		in.debug_frame = in.eh_frame;
		in.eh_frame.n = 0;
		use(&in);
	}
	free(copy);
	as_buf_clear(&b.b);
}

static void a_damaged_blob_is_refused(void **state)
{
	struct cfi_build b = {.svma = 0x2000};
	struct compiled c = {0};
	struct as_error err;
	struct as_utable t;
	build_varied(&b);
	struct as_cfi_input in = cfi_input(&b, AS_ARCH_X86_64);
	compile(&in, &c);
	for (size_t n = 0; n < c.blob.len; n++)
		assert_true(as_utable_open(c.blob.p, n, &t, &err) < 0);
	for (size_t i = 0; i < c.blob.len; i++) {
		c.blob.p[i] ^= 0x41;
		assert_true(as_utable_open(c.blob.p, c.blob.len, &t, &err) < 0);
		c.blob.p[i] ^= 0x41;
	}
	/* also when the checksum is right: every offset is looked at */
	uint64_t x = 88172645463325252ull;
	struct as_rule r;
	for (unsigned round = 0; round < 100000; round++) {
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		size_t i = 32 + x % (c.blob.len - 32);
		char old = c.blob.p[i];
		c.blob.p[i] = (char)(x >> 40);
		uint32_t crc = as_crc32c(0, c.blob.p + 32, c.blob.len - 32);
		memcpy(c.blob.p + 24, &crc, 4);
		if (!as_utable_open(c.blob.p, c.blob.len, &t, &err))
			for (uint64_t a = 0x3ff0; a < 0x5300; a += 97)
				(void)as_utable_find(&t, a, &r);
		c.blob.p[i] = old;
	}
	as_buf_clear(&b.b);
	as_buf_clear(&c.blob);
}

static void extents_are_sorted_and_do_not_overlap(void **state)
{
	struct cfi_build b = {.svma = 0x2000};
	struct as_error err;
	struct as_extent *e;
	size_t n;
	size_t cie = cfi_cie(&b, "zR", 0x1b, CFI_X86);
	cfi_fde(&b, cie, 0x5000, 64, USUAL);
	cfi_fde(&b, cie, 0x4000, 0x2000, USUAL);
	cfi_fde(&b, cie, 0x5000, 32, USUAL);
	cfi_fde(&b, cie, 0x4800, 16, USUAL);
	struct as_cfi_input in = cfi_input(&b, AS_ARCH_X86_64);
	assert_int_equal(as_cfi_extents(&in, &e, &n, &err), 0);
	assert_int_equal(n, 3);
	assert_int_equal(e[0].start_svma, 0x4000);
	assert_int_equal(e[0].end_svma, 0x4800);
	assert_int_equal(e[1].start_svma, 0x4800);
	assert_int_equal(e[1].end_svma, 0x4810);
	assert_int_equal(e[2].start_svma, 0x5000);
	assert_int_equal(e[2].end_svma, 0x5040);
	free(e);
	as_buf_clear(&b.b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pointer_encoding_gives_the_same_rows),
		cmocka_unit_test(indirect_pointers_are_refused_and_cost_only_their_function),
		cmocka_unit_test(all_versions_lengths_and_augmentations_are_read),
		cmocka_unit_test(a_zero_length_is_passed_or_ends_the_section_as_told),
		cmocka_unit_test(debug_frame_serves_only_what_eh_frame_leaves_out),
		cmocka_unit_test(each_shape_of_rule_has_its_row),
		cmocka_unit_test(states_are_remembered_64_deep_and_no_deeper),
		cmocka_unit_test(an_unknown_instruction_costs_the_rest_of_its_function),
		cmocka_unit_test(short_gaps_are_padding_and_long_ones_have_no_rule),
		cmocka_unit_test(far_functions_and_big_modules_get_segments_of_their_own),
		cmocka_unit_test(roots_and_trampolines_are_known_by_their_bytes),
		cmocka_unit_test(a_signal_frame_is_known_by_its_augmentation),
		cmocka_unit_test(a_plt_without_cfi_gets_rules_by_its_form),
		cmocka_unit_test(functions_without_cfi_get_rows_from_their_code),
		cmocka_unit_test(aarch64_rows_tell_where_the_return_address_is),
		cmocka_unit_test(aarch64_code_without_cfi_is_read),
		cmocka_unit_test(a_section_cut_anywhere_costs_only_what_was_cut),
		cmocka_unit_test(random_changes_to_a_section_do_no_harm),
		cmocka_unit_test(a_damaged_blob_is_refused),
		cmocka_unit_test(extents_are_sorted_and_do_not_overlap),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
