/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Detours as they are planned: functions in assembly, one for each rule, and every function of real
 * libraries. A trampoline is held to the function it is of by the disassembler, which reads operands
 * where the patcher reads raw encodings: instruction by instruction both must say the same text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "cfi_file.h"
#include "fixture.h"
#include "base/mem.h"
#include "code/disasm.h"
#include "hook/plan.h"

struct object {
	struct as_elf *elf;
	struct as_hook_code *code;
};

static void open_object(const char *path, struct object *ret)
{
	struct as_error err;
	struct cfi_file f;
	struct as_extent *extent = NULL;
	size_t n = 0;

	if (as_elf_open(path, &ret->elf, &err) < 0)
		fail_msg("%s", err.msg);
	if (cfi_file_open(path, &f)) {
		(void)as_cfi_extents(&f.in, &extent, &n, NULL);
		cfi_file_close(&f);
	}
	if (as_hook_code_new(ret->elf, extent, n, &ret->code, &err) < 0)
		fail_msg("%s: %s", path, err.msg);
	free(extent);
}

static void close_object(struct object *o)
{
	as_hook_code_free(o->code);
	as_elf_close(o->elf);
}

/* ---- trampolines against the disassembler ---- */

/* What the instruction at p means: its text, where short and near branches read the same. */
static void meaning(struct as_disasm *d, const uint8_t *p, size_t n, uint64_t at, char out[512],
		    struct as_insn *ret)
{
	as_disasm_next(d, p, n, at, ret);
	snprintf(out, 512, "%s", ret->text);
}

/* The call `text` at its old place became push, mov and jmp, which together must say the same. */
static size_t check_call(struct as_disasm *d, const uint8_t *t, size_t n, uint64_t at,
			 const char *text, uint64_t ret_addr)
{
	struct as_insn in;
	char got[512];
	uint32_t low, high;

	assert_true(n > 13);
	assert_int_equal(t[0], 0x68);
	memcpy(&low, t + 1, 4);
	as_disasm_next(d, t + 5, n - 5, at + 5, &in);
	assert_int_equal(in.len, 8);
	assert_non_null(strstr(in.text, "mov dword ptr [rsp+0x4], "));
	memcpy(&high, t + 9, 4);
	assert_true(((uint64_t)high << 32 | low) == ret_addr);
	meaning(d, t + 13, n - 13, at + 13, got, &in);
	assert_int_equal(in.kind, AS_INSN_JUMP);
	/* "call x" -> "jmp x" */
	assert_string_equal(strchr(got, ' '), strchr(text, ' '));
	return 13u + in.len;
}

/* The trampoline of d at `at` does what the window did. */
static void check_trampoline(struct as_disasm *dis, struct as_detour *d, uint64_t bias,
			     uint64_t at)
{
	uint8_t t[AS_DETOUR_TRAMPOLINE];
	size_t n = as_detour_trampoline(d, bias, at, t), i = d->svma - d->entry_svma;
	uint64_t base = d->svma + bias, o = 0;
	struct as_insn in;
	char want[512], got[512];

	assert_true(n > 0);
	for (unsigned k = 0; k < d->ninsn; k++) {
		assert_int_equal(d->moved_from[k], o);
		assert_int_equal(d->moved_to[k], i);
		meaning(dis, d->old + o, d->window - o, base + o, want, &in);
		o += in.len;
		if (in.kind == AS_INSN_CALL) {
			i += check_call(dis, t + i, n - i, at + i, want, base + o);
			continue;
		}
		meaning(dis, t + i, n - i, at + i, got, &in);
		if (strcmp(got, want))
			fail_msg("%lx: '%s' became '%s'", (unsigned long)d->svma, want, got);
		i += in.len;
	}
	if (!d->ends && !d->calls) {
		as_disasm_next(dis, t + i, n - i, at + i, &in);
		assert_int_equal(in.kind, AS_INSN_JUMP);
		assert_true(in.target == base + d->window);
		i += in.len;
	}
	assert_int_equal(i, n);
}

static void check_patch(const struct as_detour *d, uint64_t bias, uint64_t thunk)
{
	uint8_t b[AS_DETOUR_WINDOW];
	int32_t rel;

	assert_true(as_detour_patch(d, bias, thunk, b));
	memcpy(&rel, b + 1, 4);
	assert_int_equal(b[0], 0xe9);
	assert_true(d->svma + bias + 5 + (uint64_t)(int64_t)rel == thunk);
	for (unsigned i = 5; i < d->window; i++)
		assert_int_equal(b[i], 0xcc);
}

static void check_detour(struct as_disasm *dis, struct as_detour *d)
{
	const uint64_t bias = 0x7f1200000000ull;

	assert_true(d->window >= 5 && d->window <= AS_DETOUR_WINDOW);
	check_trampoline(dis, d, bias, bias + d->svma + 0x60000000);
	check_trampoline(dis, d, bias, bias + d->svma - 0x60000000);
	check_patch(d, bias, bias + d->svma - 0x60000000);
}

/* ---- one rule each ---- */

static const struct rule {
	const char *name, *body;
	enum as_detour_verdict want;
	unsigned window, ninsn;
} rules[] = {
	{"usual", "push %rbp; mov %rsp, %rbp; push %rbx; push %rdi; ret", AS_DETOUR_OK, 5, 3},
	{"long_first", "movabs $0x1122334455667788, %rax; ret", AS_DETOUR_OK, 10, 1},
	{"rip_load", "mov data(%rip), %rax; ret", AS_DETOUR_OK, 7, 1},
	{"rip_store", "movl $77, data(%rip); ret", AS_DETOUR_OK, 10, 1},
	{"rip_compare", "cmpb $3, data(%rip); jne 1f; ret; 1: ud2", AS_DETOUR_OK, 7, 1},
	{"rip_jump", "jmp *data(%rip)", AS_DETOUR_OK, 6, 1},
	{"rip_avx", "vmovdqu data(%rip), %ymm9; vzeroupper; ret", AS_DETOUR_OK, 8, 1},
	{"rip_vpcmp", "vpaddd data(%rip){1to8}, %ymm17, %ymm18; ret", AS_DETOUR_OK, 10, 1},
	{"jcc_short", "test %edi, %edi; je 1f; inc %eax; ret; 1: ret", AS_DETOUR_OK, 6, 3},
	{"jcc_near", "test %edi, %edi; je usual; ret", AS_DETOUR_OK, 8, 2},
	{"jmp_short", "xor %eax, %eax; nop; jmp 1f; 1: ret", AS_DETOUR_OK, 5, 3},
	{"tail", "jmp usual", AS_DETOUR_OK, 5, 1},
	{"call_ends", "push %rax; call usual; pop %rdx; ret", AS_DETOUR_OK, 6, 2},
	{"call_got", "call *data(%rip); ret", AS_DETOUR_OK, 6, 1},
	{"call_reg", "mov %rdi, %rax; call *%rax; ret", AS_DETOUR_OK, 5, 2},
	{"call_r12", "mov %r12, %rax; call *8(%r12); ret", AS_DETOUR_OK, 8, 2},
	{"call_stack", "mov %rdi, %rax; call *8(%rsp); ret", AS_DETOUR_FIXED},
	{"call_early", "call *%rax; mov %eax, %edx; xor %eax, %eax; ret", AS_DETOUR_CALL},
	{"ends_padded", "ret; nop; nop; nop; nop; nop; nop; nop", AS_DETOUR_OK, 5, 1},
	{"loop_insn", "xor %eax, %eax; loop 1f; nop; 1: ret", AS_DETOUR_FIXED},
	{"jrcxz_insn", "nop; jrcxz 1f; nop; nop; 1: ret", AS_DETOUR_FIXED},
	{"eip_relative", "addr32 mov data(%eip), %eax; ret", AS_DETOUR_FIXED},
	{"target_inside", "xor %eax, %eax; 1: inc %rax; cmp %rdi, %rax; jne 1b; ret",
	 AS_DETOUR_TARGET},
	{"target_far", "xor %eax, %eax; far_in: inc %rax; nop; ret; .skip 300; jmp far_in",
	 AS_DETOUR_TARGET},
	{"target_of_other", "xor %eax, %eax; other_in: inc %rax; nop; nop; ret",
	 AS_DETOUR_TARGET},
	{"jumps_into_other", ".skip 400, 0x90; jmp other_in", AS_DETOUR_OK, 5, 5},
	{"to_itself", "push %rax; dec %rdi; mov %rdi, %rdx; jne to_itself; ret",
	 AS_DETOUR_LOOP},
	{"calls_itself", "push %rax; dec %rdi; mov %rdi, %rdx; call calls_itself; ret",
	 AS_DETOUR_OK, 7, 3},
	{"with_endbr", "endbr64; push %rbp; mov %rsp, %rbp; push %rbx; ret", AS_DETOUR_OK, 5,
	 3},
	{"endbr_loop", "endbr64; 1: push %rbp; mov %rsp, %rbp; push %rbx; jmp 1b",
	 AS_DETOUR_LOOP},
	{"no_code", "push %rax; .byte 0x06, 0x07, 0x0e, 0x16, 0x1e, 0x1f; ret",
	 AS_DETOUR_NO_CODE},
	{"switched",
	 "cmp $2, %edi; switch_in: nop; nop; lea 5f(%rip), %rax; movslq (%rax,%rdi,4), %rdx; "
	 "add "
	 "%rdx, %rax; jmp *%rax; .section .rodata; 5: .long 6f - 5b, switch_in - 5b; .text; 6: "
	 "ret",
	 AS_DETOUR_TARGET},
};

static void write_rules(void)
{
	FILE *f = fopen(fx_path("rules.s"), "w");

	assert_non_null(f);
	fprintf(f, ".data\ndata: .skip 64\n.text\n");
	for (size_t i = 0; i < AS_ARRAY_LEN(rules); i++)
		fprintf(f,
			".balign 16\n%s: .globl %s; .type %s, @function; %s; .size %s, . - %s\n"
			".balign 16, 0x90\n",
			rules[i].name, rules[i].name, rules[i].name, rules[i].body,
			rules[i].name, rules[i].name);
	/* a ret, and another function right behind it; and one with too little between */
	fprintf(f, "bare: .globl bare; .type bare, @function; ret; .size bare, 1\n"
		   "behind: .globl behind; .type behind, @function; mov $1, %%eax; ret\n"
		   ".size behind, 6\n.balign 16, 0x90\n"
		   "open: .globl open; .type open, @function; nop; nop; .size open, 2\n"
		   "xor %%eax, %%eax; ret\n"
		   ".section .note.GNU-stack,\"\",@progbits\n");
	assert_int_equal(fclose(f), 0);
}

struct wanted {
	const char *name;
	uint64_t svma;
};

static void match_name(void *ctx, const struct as_elf_symbol *s)
{
	struct wanted *w = ctx;

	if (!strcmp(s->name, w->name))
		w->svma = s->svma;
}

static uint64_t svma_of(struct object *o, const char *name)
{
	struct wanted w = {name, 0};

	assert_int_equal(as_elf_each_symbol(o->elf, match_name, &w, NULL), 0);
	if (!w.svma)
		fail_msg("no symbol %s", name);
	return w.svma;
}

static void open_rules(struct object *o)
{
	fx_need("gcc");
	write_rules();
	if (fx_sh("gcc -shared -nostdlib -Wl,-Bsymbolic -o rules.so rules.s"))
		fail_msg("cannot assemble the functions");
	open_object(fx_path("rules.so"), o);
}

static void every_rule_holds(void **state)
{
	struct object o;
	struct as_disasm *dis;

	open_rules(&o);
	dis = as_disasm_new(AS_ARCH_X86_64, NULL, NULL);
	for (size_t i = 0; i < AS_ARRAY_LEN(rules); i++) {
		const struct rule *r = &rules[i];
		struct as_detour d = {0};
		enum as_detour_verdict v = as_detour_plan(o.code, svma_of(&o, r->name), &d);

		if (v != r->want ||
		    (v == AS_DETOUR_OK && (d.window != r->window || d.ninsn != r->ninsn)))
			fail_msg("%s: %s, window %u, %u instructions", r->name,
				 as_detour_reason(v), d.window, d.ninsn);
		if (v == AS_DETOUR_OK)
			check_detour(dis, &d);
	}
	as_disasm_free(dis);
	close_object(&o);
}

static void a_gap_helps_only_where_nothing_goes_on(void **state)
{
	struct object o;
	struct as_detour d;

	open_rules(&o);
	assert_int_equal(as_detour_plan(o.code, svma_of(&o, "bare"), &d), AS_DETOUR_SHORT);
	assert_int_equal(as_detour_plan(o.code, svma_of(&o, "open"), &d), AS_DETOUR_SHORT);
	assert_int_equal(as_detour_plan(o.code, svma_of(&o, "behind"), &d), AS_DETOUR_OK);
	assert_int_equal(as_detour_plan(o.code, svma_of(&o, "behind") + 1, &d),
			 AS_DETOUR_NO_FUNCTION);
	assert_int_equal(as_detour_plan(o.code, 1ull << 60, &d), AS_DETOUR_NO_FUNCTION);
	close_object(&o);
}

static void a_stopped_thread_goes_on_in_the_copy(void **state)
{
	struct object o;
	struct as_detour d;
	uint8_t t[AS_DETOUR_TRAMPOLINE];
	const uint64_t bias = 0x555500000000ull, at = bias + 0x10000000;
	uint64_t pc;

	open_rules(&o);
	assert_int_equal(as_detour_plan(o.code, svma_of(&o, "usual"), &d), AS_DETOUR_OK);
	assert_true(as_detour_trampoline(&d, bias, at, t) > 0);
	pc = d.svma + bias;
	/* push rbp | mov rbp, rsp | push rbx | … */
	assert_true(as_detour_moved_pc(&d, bias, at, pc) == pc);
	assert_true(as_detour_moved_pc(&d, bias, at, pc + 1) == at + 1);
	assert_true(as_detour_moved_pc(&d, bias, at, pc + 4) == at + 4);
	assert_true(as_detour_moved_pc(&d, bias, at, pc + 5) == pc + 5);
	assert_true(as_detour_moved_pc(&d, bias, at, pc - 1) == pc - 1);
	close_object(&o);
}

static void what_is_too_far_is_not_made(void **state)
{
	struct object o;
	struct as_detour d;
	uint8_t t[AS_DETOUR_TRAMPOLINE], b[AS_DETOUR_WINDOW];
	const uint64_t bias = 0x7f0000000000ull;

	open_rules(&o);
	assert_int_equal(as_detour_plan(o.code, svma_of(&o, "rip_load"), &d), AS_DETOUR_OK);
	assert_int_equal(as_detour_trampoline(&d, bias, bias + (3ull << 30), t), 0);
	assert_int_equal(as_detour_trampoline(&d, bias, bias - (3ull << 30), t), 0);
	assert_false(as_detour_patch(&d, bias, bias + (3ull << 30), b));
	assert_true(as_detour_patch(&d, bias, bias + (1ull << 30), b));
	close_object(&o);
}

/* ---- whole libraries ---- */

struct tally {
	size_t n, verdict[AS_DETOUR_VERDICTS_], rip, branch, call, padded;
};

static void add_window(struct tally *t, const struct as_detour *d)
{
	bool rip = false, branch = false;

	for (unsigned k = 0; k < d->ninsn; k++) {
		struct as_hook_insn in;
		unsigned from = d->moved_from[k];

		assert_true(
			as_hook_decode(d->old + from, d->window - from, d->svma + from, &in));
		rip |= in.disp_off != 0;
		branch |= in.kind == AS_HOOK_JCC || in.kind == AS_HOOK_JMP;
	}
	t->rip += rip;
	t->branch += branch;
	t->call += d->calls;
	t->padded += d->svma + d->window > d->end_svma;
}

/* Every function: planned, moved twice, compared. Shares are of all functions, as percent. */
static void sweep(const char *path, struct tally *t)
{
	struct object o;
	struct as_disasm *dis = as_disasm_new(AS_ARCH_X86_64, NULL, NULL);

	memset(t, 0, sizeof *t);
	open_object(path, &o);
	t->n = as_hook_code_count(o.code);
	for (size_t i = 0; i < t->n; i++) {
		struct as_detour d;
		enum as_detour_verdict v =
			as_detour_plan(o.code, as_hook_code_at(o.code, i)->svma, &d);

		t->verdict[v]++;
		if (v != AS_DETOUR_OK)
			continue;
		check_detour(dis, &d);
		add_window(t, &d);
	}
	as_disasm_free(dis);
	close_object(&o);
	print_message(
		"%s: %zu functions; of 100: patchable %.2f (of these pc-relative %.2f, branch "
		"%.2f, call %.2f, padding %.2f)\n",
		path, t->n, 100.0 * (double)t->verdict[0] / (double)t->n,
		100.0 * (double)t->rip / (double)t->n, 100.0 * (double)t->branch / (double)t->n,
		100.0 * (double)t->call / (double)t->n,
		100.0 * (double)t->padded / (double)t->n);
	for (int v = 1; v < AS_DETOUR_VERDICTS_; v++)
		print_message("  %6.2f %s\n", 100.0 * (double)t->verdict[v] / (double)t->n,
			      as_detour_reason((enum as_detour_verdict)v));
}

static void check_share(const struct tally *t, double least)
{
	assert_true(t->n > 50);
	assert_true((double)t->verdict[AS_DETOUR_OK] >= least * (double)t->n);
}

static void every_function_of_the_c_library_reads_the_same_when_moved(void **state)
{
	const char *path = "/lib/x86_64-linux-gnu/libc.so.6";
	struct tally t;

	if (access(path, R_OK))
		fx_skip("no %s", path);
	sweep(path, &t);
	check_share(&t, 0.94);
}

static void every_function_of_the_cxx_library_reads_the_same_when_moved(void **state)
{
	const char *path = "/usr/lib/x86_64-linux-gnu/libstdc++.so.6";
	struct tally t;

	if (access(path, R_OK))
		fx_skip("no %s", path);
	sweep(path, &t);
	check_share(&t, 0.90);
}

static void every_function_of_a_rust_program_reads_the_same_when_moved(void **state)
{
	struct tally t;

	fx_need("rustc");
	fx_write("t.rs",
		 "use std::collections::BTreeMap;\n"
		 "fn main() {\n"
		 "	let mut m = BTreeMap::new();\n"
		 "	for a in std::env::args() { *m.entry(a.len()).or_insert(0u64) += 1; }\n"
		 "	println!(\"{:?}\", m);\n"
		 "}\n");
	if (fx_sh("rustc -O t.rs -o t-rust"))
		fx_skip("rustc builds nothing here");
	sweep(fx_path("t-rust"), &t);
	check_share(&t, 0.90);
}

static void musl_has_functions_by_its_symbols(void **state)
{
	struct object o;
	struct as_detour d;
	static const char *const want[] = {"malloc", "free", "calloc", "realloc"};

	fx_need("musl-gcc");
	fx_write("m.c", "#include <stdlib.h>\n"
			"int main(int n, char **v)\n"
			"{\n"
			"	void *p = realloc(calloc(n, 1), 9);\n"
			"	v[0] = malloc(n);\n"
			"	free(p);\n"
			"	return 0;\n"
			"}\n");
	if (fx_sh("musl-gcc -static -o m m.c"))
		fx_skip("musl-gcc builds nothing here");
	open_object(fx_path("m"), &o);
	for (size_t i = 0; i < AS_ARRAY_LEN(want); i++)
		assert_int_equal(as_detour_plan(o.code, svma_of(&o, want[i]), &d),
				 AS_DETOUR_OK);
	close_object(&o);
}

static void code_of_other_machines_is_refused(void **state)
{
	struct as_elf *elf;
	struct as_hook_code *code;
	struct as_error err = {0};
	size_t n;
	unsigned char *p;

	fx_need("gcc");
	fx_write("a.c", "int main(void) { return 0; }");
	assert_int_equal(fx_sh("gcc -o a a.c"), 0);
	p = fx_read("a", &n);
	assert_non_null(p);
	p[18] = 183; /* e_machine: EM_AARCH64 */
	p[19] = 0;
	assert_int_equal(as_elf_open_mem(p, n, "a", &elf, &err), 0);
	assert_int_equal(as_hook_code_new(elf, NULL, 0, &code, &err), AS_E_UNSUPPORTED);
	assert_non_null(strstr(err.msg, "AArch64"));
	as_elf_close(elf);
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_rule_holds),
		cmocka_unit_test(a_gap_helps_only_where_nothing_goes_on),
		cmocka_unit_test(a_stopped_thread_goes_on_in_the_copy),
		cmocka_unit_test(what_is_too_far_is_not_made),
		cmocka_unit_test(every_function_of_the_c_library_reads_the_same_when_moved),
		cmocka_unit_test(every_function_of_the_cxx_library_reads_the_same_when_moved),
		cmocka_unit_test(every_function_of_a_rust_program_reads_the_same_when_moved),
		cmocka_unit_test(musl_has_functions_by_its_symbols),
		cmocka_unit_test(code_of_other_machines_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
