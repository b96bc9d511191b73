/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Large code without CFI that keeps frame pointers (unwind/x86_64/frames.c): this program's own
 * code read with and without its CFI, and what makes such code hard, written by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include "base/mem.h"
#include "cfi_file.h"
#include "unwind/x86_64/insn_priv.h"

#define BASE 0x400000u

struct table {
	struct as_buf blob;
	struct as_utable t;
	struct as_cfi_stats stats;
};

static void compile(const struct as_cfi_input *in, struct table *ret)
{
	struct as_error err;
	*ret = (struct table){0};
	assert_int_equal(as_utable_compile(in, &ret->blob, &ret->stats, &err), 0);
	assert_int_equal(as_utable_open(ret->blob.p, ret->blob.len, &ret->t, &err), 0);
}

static struct as_rule rule_at(const struct table *t, uint64_t svma)
{
	struct as_rule r = {0};
	(void)as_utable_find(&t->t, svma, &r);
	return r;
}

static bool same_cfa(struct as_rule a, struct as_rule b)
{
	return (a.w0 & 0xff) == (b.w0 & 0xff) && a.w1 == b.w1;
}

/* ---- code that has CFI to compare with ---- */

struct share {
	size_t n, same;
};

static void compare_function(const struct table *with, const struct table *without,
			     const struct as_code_range *text, const struct as_extent *e,
			     struct share *s)
{
	bool framed = false;
	for (uint64_t at = e->start_svma; at < e->end_svma; at++)
		framed |= (rule_at(with, at).w0 & 0xff) == AS_UT_CFA_FP;
	for (uint64_t at = e->start_svma; framed && at < e->end_svma;) {
		struct as_x86_insn i;
		size_t off = (size_t)(at - text->svma);
		if (!as_x86_decode(text->code.p + off, text->code.n - off, &i))
			return;
		s->n++;
		s->same += same_cfa(rule_at(with, at), rule_at(without, at));
		at += i.len;
	}
}

static void own_code_without_its_cfi_gets_nearly_the_same_rules(void **state)
{
	static struct cfi_file f;
	struct table with, without;
	struct as_code_range text = {0};
	struct as_extent *e;
	struct share s = {0};
	struct as_error err;
	size_t n;
	assert_true(cfi_file_open("/proc/self/exe", &f));
	for (size_t i = 0; i < f.in.ncode; i++)
		if (f.code[i].code.n > text.code.n)
			text = f.code[i];
	struct as_cfi_input bare = {.arch = f.in.arch, .code = &text, .ncode = 1};
	assert_true(text.code.n >= 128u << 10);
	compile(&f.in, &with);
	compile(&bare, &without);
	assert_int_equal(as_cfi_extents(&f.in, &e, &n, &err), 0);
	for (size_t i = 0; i < n; i++)
		if (e[i].start_svma - text.svma < text.code.n &&
		    e[i].end_svma - text.svma <= text.code.n)
			compare_function(&with, &without, &text, &e[i], &s);
	print_message("%zu instructions, %.2f %% with the same CFA; %zu rows written\n", s.n,
		      100 * (double)s.same / (double)s.n, without.stats.rows_raw);
	assert_true(s.n > 10000);
	assert_true(s.same * 100 >= s.n * 95);
	free(e);
	as_buf_clear(&with.blob);
	as_buf_clear(&without.blob);
	cfi_file_close(&f);
}

/* ---- code written by hand ---- */

struct code {
	uint8_t *p;
	size_t n;
};

static void add(struct code *c, const void *bytes, size_t n)
{
	c->p = as_xreallocarray(c->p, c->n + n, 1);
	memcpy(c->p + c->n, bytes, n);
	c->n += n;
}
#define ADD(c, ...)                                                                            \
	add(c, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void pad(struct code *c)
{
	while (c->n % 16)
		ADD(c, 0xcc);
}

/* A function like thousands of others; its offset. */
static size_t plain_function(struct code *c)
{
	size_t at = c->n;
	ADD(c, 0x55, 0x48, 0x89, 0xe5, 0x53, 0x50, 0x31, 0xc0, 0x48, 0x83, 0xc4, 0x08, 0x5b,
	    0x5d, 0xc3);
	pad(c);
	return at;
}

static void fill(struct code *c, size_t to)
{
	while (c->n < to)
		plain_function(c);
}

static void compile_code(const struct code *c, struct table *ret)
{
	struct as_code_range r = {BASE, {c->p, c->n}, false};
	struct as_cfi_input in = {.arch = AS_ARCH_X86_64, .code = &r, .ncode = 1};
	compile(&in, ret);
}

static void check(const struct table *t, size_t off, unsigned cfa, int w1, unsigned fp)
{
	struct as_rule r = rule_at(t, BASE + off);
	if ((r.w0 & 0xff) != cfa || r.w1 != w1 || (r.w0 >> 8 & 0xff) != fp)
		fail_msg("+%#zx: %u %d %u", off, r.w0 & 0xff, r.w1, r.w0 >> 8 & 0xff);
}
static void check_entry(const struct table *t, size_t off)
{
	check(t, off, AS_UT_CFA_SP, 8, AS_UT_FP_SAME);
}
static void check_body(const struct table *t, size_t off)
{
	check(t, off, AS_UT_CFA_FP, 16, AS_UT_FP_CFA);
}

static void prologues_and_ways_out_get_rows(void **state)
{
	struct code c = {0};
	struct table t;
	fill(&c, 4096);
	size_t at = c.n;
	ADD(&c, 0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x74, 0x02, 0x5d,
	    0xc3);                             /* je; ret */
	ADD(&c, 0x88, 0x5d, 0xc3, 0x31, 0xdb); /* mov %bl,-0x3d(%rbp) holds a "pop %rbp; ret" */
	ADD(&c, 0x5d, 0xff, 0x61, 0x10);       /* pop %rbp; jmp *0x10(%rcx) */
	ADD(&c, 0x5d, 0xc5, 0xf8, 0x77, 0xc3); /* pop %rbp; vzeroupper; ret */
	ADD(&c, 0xc9, 0xc3);                   /* leave; ret */
	ADD(&c, 0xcc, 0x0f, 0x0b);             /* a trap */
	pad(&c);
	fill(&c, 128u << 10);
	compile_code(&c, &t);
	check_entry(&t, at);
	check_entry(&t, at + 4);
	check(&t, at + 5, AS_UT_CFA_SP, 16, AS_UT_FP_CFA);
	check_body(&t, at + 8);
	check_body(&t, at + 10);
	check_entry(&t, at + 11);
	check_body(&t, at + 12);
	check_body(&t, at + 15);
	check_body(&t, at + 17);
	check_entry(&t, at + 18);
	check_body(&t, at + 21);
	check_entry(&t, at + 22);
	check_entry(&t, at + 25);
	check_body(&t, at + 26);
	check_entry(&t, at + 27);
	check_body(&t, at + 28);
	check_entry(&t, (at + 47) & ~(size_t)15);
	/* two rows and one for each way out */
	assert_true(t.stats.rows < c.n / 16 * 3 + 100);
	as_buf_clear(&t.blob);
	free(c.p);
}

static void bytes_of_constants_and_traps_are_no_padding(void **state)
{
	struct code c = {0};
	struct table t;
	fill(&c, 4096);
	size_t at = c.n;
	/* the constant ends where 16 bytes end */
	ADD(&c, 0x55, 0x48, 0x89, 0xe5, 0x66, 0x90, 0x48, 0xb8, 0xcd, 0xcc, 0xcc, 0xcc, 0xcc,
	    0xcc, 0xcc, 0xcc);
	ADD(&c, 0x31, 0xc0, 0x31, 0xc9, 0x75, 0x04, 0x5d, 0xc3, 0x31, 0xd2, 0xeb, 0xf2, 0x0f,
	    0x0b, 0xcc, 0xcc); /* … ud2, then a trap across the end of the next 16 */
	c.p[c.n - 2] = 0x90;
	ADD(&c, 0x0f, 0x0b, 0x31, 0xc0, 0x5d, 0xc3);
	pad(&c);
	fill(&c, 128u << 10);
	compile_code(&c, &t);
	for (size_t off = 4; off <= 0x16; off += off < 16 ? 4 : 2)
		check_body(&t, at + off);
	check_entry(&t, at + 0x17);
	check_body(&t, at + 0x20);
	check_body(&t, at + 0x24);
	check_entry(&t, at + 0x25);
	as_buf_clear(&t.blob);
	free(c.p);
}

static void functions_without_a_frame_are_read(void **state)
{
	struct code c = {0};
	struct table t;
	fill(&c, 4096);
	size_t leaf = c.n; /* sub $24,%rsp; mov %rdi,(%rsp); add $24,%rsp; ret */
	ADD(&c, 0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0x3c, 0x24, 0x48, 0x83, 0xc4, 0x18, 0xc3);
	pad(&c);
	size_t late = c.n; /* test %rdi,%rdi; je 1f; push %rbp; …; pop %rbp; 1: ret */
	ADD(&c, 0x48, 0x85, 0xff, 0x74, 0x08, 0x55, 0x48, 0x89, 0xe5, 0x31, 0xc0, 0x66, 0x90,
	    0x5d, 0xc3, 0xcc);
	c.p[late + 4] = 9;
	pad(&c);
	size_t cold = c.n; /* a block of some framed function: mov -8(%rbp),%rdi; call; ud2 */
	ADD(&c, 0x48, 0x8b, 0x7d, 0xf8, 0xe8, 0, 0, 0, 0, 0x0f, 0x0b);
	pad(&c);
	fill(&c, 128u << 10);
	compile_code(&c, &t);
	check_entry(&t, leaf);
	check(&t, leaf + 4, AS_UT_CFA_SP, 32, AS_UT_FP_SAME);
	check_entry(&t, leaf + 12);
	check_entry(&t, late);
	check_entry(&t, late + 5);
	check_body(&t, late + 9);
	check_entry(&t, late + 14);
	check_body(&t, cold);
	check_body(&t, cold + 9);
	as_buf_clear(&t.blob);
	free(c.p);
}

/* Damage costs rules, nothing else: the table opens, look-ups stay inside. */
/* pop %rax; push %rbx; push %rsi; push %rax; push %rbp; mov %rsp,%rbp; nop; leave; ret, as V8's
 * builtins begin: what was pushed are arguments, and the return address again. */
static void arguments_pushed_before_a_frame_do_not_move_it(void **state)
{
	static const uint8_t mov[2][2] = {{0x89, 0xe5}, {0x8b, 0xec}};
	for (size_t i = 0; i < 2; i++) {
		struct code c = {0};
		struct table t;
		fill(&c, 4096);
		size_t at = c.n;
		ADD(&c, 0x58, 0x53, 0x56, 0x50, 0x55, 0x48, mov[i][0], mov[i][1], 0x90, 0xc9,
		    0xc3);
		pad(&c);
		fill(&c, 128u << 10);
		compile_code(&c, &t);
		check_entry(&t, at + 4);
		check_body(&t, at + 8);
		check_entry(&t, at + 10);
		as_buf_clear(&t.blob);
		free(c.p);
	}
}

static void changed_code_still_gives_a_sound_table(void **state)
{
	uint64_t x = 88172645463325252ull;
	for (unsigned round = 0; round < 40; round++) {
		struct code c = {0};
		struct table t;
		fill(&c, (64u << 10) + round);
		size_t changes = 1u << round % 16;
		for (size_t i = 0; i < changes; i++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			static const uint8_t bytes[] = {0x55, 0x5d, 0xc9, 0xc3, 0xcc, 0xff,
							0xe9, 0x0f, 0x90, 0x66, 0x00, 0x41};
			c.p[(x >> 20) % c.n] = bytes[x % sizeof bytes];
		}
		compile_code(&c, &t);
		for (size_t off = 0; off < c.n; off += 13)
			(void)rule_at(&t, BASE + off);
		as_buf_clear(&t.blob);
		free(c.p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_code_without_its_cfi_gets_nearly_the_same_rules),
		cmocka_unit_test(prologues_and_ways_out_get_rows),
		cmocka_unit_test(bytes_of_constants_and_traps_are_no_padding),
		cmocka_unit_test(functions_without_a_frame_are_read),
		cmocka_unit_test(arguments_pushed_before_a_frame_do_not_move_it),
		cmocka_unit_test(changed_code_still_gives_a_sound_table),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
