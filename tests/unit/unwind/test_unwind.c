/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Stacks written by hand: registers, stack bytes and tables of two small modules in, frames
 * out. x86-64 and aarch64; every way a stack can end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "cfi_build.h"
#include "unwind/unwind.h"

#define BIAS   0x7f0000000000ull
#define TEXT   0x1000 /* svma of the code */
#define STACK  0x7ffd00000000ull
#define ALTERN 0x7ffc00000000ull /* the alternate stack lies lower */
#define JIT    0x7e0000000000ull
#define WORDS  512

/* One module with code, one stack, one alternate stack, one page of unknown code. */
struct world {
	enum as_arch arch;
	struct cfi_build cfi;
	size_t cie;
	uint8_t code[0x1000], jit[0x100];
	struct as_code_range range;
	struct as_cfi_input in;
	struct as_buf blob;
	struct as_utable table;
	uint64_t stack[WORDS], altern[WORDS];
	uint64_t short_above; /* reads at or above: beyond the copy */
	uint64_t short_below; /* reads below: before the copy's start */
	bool jit_mapped, no_cfi;
	struct as_unwinder *unwinder;
	struct as_uframe frames[32];
	struct as_unwind_result res;
};
static struct world w;

static bool find(void *ctx, uint64_t avma, struct as_unwind_module *ret)
{
	if (avma >= BIAS + TEXT && avma < BIAS + TEXT + sizeof w.code) {
		*ret = (struct as_unwind_module){
			.table = w.blob.len ? &w.table : NULL,
			.cfi = w.no_cfi ? NULL : &w.in,
			.bias = BIAS,
			.start_avma = BIAS + TEXT,
			.end_avma = BIAS + TEXT + sizeof w.code,
			.id = 7,
		};
		return true;
	}
	if (w.jit_mapped && avma >= JIT && avma < JIT + sizeof w.jit) {
		*ret = (struct as_unwind_module){
			.start_avma = JIT, .end_avma = JIT + sizeof w.jit, .id = 9};
		return true;
	}
	return false;
}

static const uint8_t *bytes_at(uint64_t avma, size_t n)
{
	const struct {
		uint64_t at;
		const void *p;
		size_t n;
	} map[] = {
		{STACK, w.stack, sizeof w.stack},
		{ALTERN, w.altern, sizeof w.altern},
		{BIAS + TEXT, w.code, sizeof w.code},
		{JIT, w.jit, sizeof w.jit},
	};
	for (size_t i = 0; i < AS_ARRAY_LEN(map); i++)
		if (avma >= map[i].at && avma - map[i].at < map[i].n &&
		    n <= map[i].n - (avma - map[i].at))
			return (const uint8_t *)map[i].p + (avma - map[i].at);
	return NULL;
}

static int read_memory(void *ctx, uint64_t avma, void *out, size_t n)
{
	const uint8_t *p = bytes_at(avma, n);
	if ((w.short_above && avma + n > w.short_above) || avma < w.short_below)
		return AS_E_LIMIT;
	if (!p)
		return AS_E_IO;
	memcpy(out, p, n);
	return 0;
}

static int read_code(void *ctx, uint64_t avma, void *out, size_t n)
{
	const uint8_t *p = bytes_at(avma - n, n);
	if (!p)
		return AS_E_IO;
	memcpy(out, p, n);
	return 0;
}

static struct as_unwind_env env(void)
{
	return (struct as_unwind_env){
		.arch = w.arch,
		.find = find,
		.read = read_memory,
		.read_code = read_code,
		.unwinder = w.unwinder,
	};
}

/* Every function starts with a fresh world; entries follow, then build(). */
static void begin(enum as_arch arch)
{
	as_buf_clear(&w.cfi.b);
	as_buf_clear(&w.blob);
	w = (struct world){.arch = arch, .cfi.svma = 0x9000};
	w.range = (struct as_code_range){TEXT, {w.code, sizeof w.code}, false};
	w.cie = cfi_cie(&w.cfi, "zR", 0x1b, arch == AS_ARCH_X86_64 ? CFI_X86 : CFI_ARM);
}

static void build(void)
{
	struct as_error err;
	w.in = cfi_input(&w.cfi, w.arch);
	w.in.code = &w.range;
	w.in.ncode = 1;
	assert_int_equal(as_utable_compile(&w.in, &w.blob, NULL, &err), 0);
	assert_int_equal(as_utable_open(w.blob.p, w.blob.len, &w.table, &err), 0);
}

/* A call instruction that ends at svma; returns the return address. */
static uint64_t call_before(uint64_t svma)
{
	if (w.arch == AS_ARCH_X86_64)
		w.code[svma - TEXT - 5] = 0xe8;
	else
		w.code[svma - TEXT - 1] = 0x94;
	return BIAS + svma;
}

static struct as_uregs x86_regs(uint64_t pc, uint64_t sp, uint64_t fp)
{
	struct as_uregs r = {.valid = 0x1ffff};
	r.r[16] = pc;
	r.r[7] = sp;
	r.r[6] = fp;
	return r;
}

static void unwind(struct as_uregs regs)
{
	struct as_unwind_env e = env();
	as_unwind(&e, &regs, w.frames, AS_ARRAY_LEN(w.frames), &w.res);
}

static void assert_frames(enum as_stack_end end, size_t n, const uint64_t *avma)
{
	assert_int_equal(w.res.end, end);
	assert_int_equal(w.res.nframes, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(w.frames[i].avma, avma[i]);
}
#define FRAMES(end, ...)                                                                       \
	assert_frames(end, AS_ARRAY_LEN(((const uint64_t[]){__VA_ARGS__})),                    \
		      (const uint64_t[]){__VA_ARGS__})

/*
 * Functions of the x86-64 world (svma):
 *	1000 root		return address undefined
 *	1040 frame		push rbp; mov rsp,rbp at +4; CFA = rbp + 16
 *	1080 plain		CFA = rsp + 32
 *	10c0 leaf		CFA = rsp + 8
 *	1100 vfork		return address in rdi after a pop
 *	1140 by_rbx		CFA = rbx + 16
 *	1180 saves_rbx		CFA = rsp + 24, rbx at CFA - 16
 *	11c0 expression		CFA = *(rsp + 8) - 0 by a general expression
 *	1200 trampoline		__restore_rt by its bytes
 *	1240 stays		CFA = rsp: makes no progress
 *	1280 plt		the lazy PLT expression
 */
static void x86_world(void)
{
	static const uint8_t restore[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	begin(AS_ARCH_X86_64);
	memcpy(w.code + 0x200, restore, sizeof restore);
	cfi_fde(&w.cfi, w.cie, 0x1000, 64, CFI_PROGRAM(0x07, 16));
	cfi_fde(&w.cfi, w.cie, 0x1040, 64,
		CFI_PROGRAM(0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x7a, 0x0c, 7, 8));
	cfi_fde(&w.cfi, w.cie, 0x1080, 64, CFI_PROGRAM(0x0e, 32));
	cfi_fde(&w.cfi, w.cie, 0x10c0, 64, CFI_PROGRAM(0));
	cfi_fde(&w.cfi, w.cie, 0x1100, 64,
		CFI_PROGRAM(0x41, 0x0e, 0, 0x09, 16, 5, 0x48, 0x0e, 8, 0x90, 1));
	cfi_fde(&w.cfi, w.cie, 0x1140, 64, CFI_PROGRAM(0x0c, 3, 16));
	cfi_fde(&w.cfi, w.cie, 0x1180, 64, CFI_PROGRAM(0x0e, 24, 0x83, 2));
	cfi_fde(&w.cfi, w.cie, 0x11c0, 64, CFI_PROGRAM(0x0f, 5, 0x77, 8, 0x06, 0x30, 0x1c));
	cfi_fde(&w.cfi, w.cie, 0x1240, 64, CFI_PROGRAM(0x0e, 0));
	cfi_fde(&w.cfi, w.cie, 0x1280, 64,
		CFI_PROGRAM(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24,
			    0x22));
	build();
}

static uint64_t at(unsigned i)
{
	return STACK + 8 * i;
}

/* frame <- plain <- leaf, below the root; the stack from word i on. Returns frame's rbp. */
static uint64_t usual_stack(unsigned i)
{
	w.stack[i] = call_before(0x1090);     /* leaf's return address, into plain */
	w.stack[i + 4] = call_before(0x1050); /* plain's: CFA = sp + 32 */
	w.stack[i + 10] = 0;                  /* frame's saved rbp */
	w.stack[i + 11] = call_before(0x1010);
	return at(i + 10);
}

static void a_plain_stack_goes_down_to_its_root(void **state)
{
	x86_world();
	uint64_t fp = usual_stack(10);
	unwind(x86_regs(BIAS + 0x10c5, at(10), fp));
	FRAMES(AS_END_ROOT, BIAS + 0x10c5, BIAS + 0x1090, BIAS + 0x1050, BIAS + 0x1010);
	assert_true(w.frames[0].exact);
	assert_false(w.frames[1].exact);
	assert_int_equal(w.frames[2].svma, 0x1050);
	assert_int_equal(w.frames[2].module, 7);
	assert_int_equal(w.frames[1].sp, at(11));
	assert_int_equal(w.frames[2].sp, at(15));
	assert_int_equal(w.frames[3].sp, at(22));
	assert_int_equal(w.res.lowest_sp, at(10));
	assert_int_equal(w.res.highest_addr, at(22));
	assert_false(w.res.used_full_cfi);
	assert_false(w.res.used_frame_pointer);
}

/* At the `ret` of frame: rbp was popped, the row still says it is at CFA - 16, below rsp. */
static void a_register_popped_in_an_epilogue_is_in_the_register(void **state)
{
	for (int full = 0; full < 2; full++) {
		x86_world();
		if (full)
			as_buf_clear(&w.blob);     /* no table: every step by the full CFI */
		w.stack[10] = call_before(0x1050); /* into another frame, which needs rbp */
		w.stack[20] = 0;
		w.stack[21] = call_before(0x1010);
		w.short_below = at(10);
		w.stack[9] = at(30); /* what lies below rsp is nobody's any more */
		unwind(x86_regs(BIAS + 0x107e, at(10), at(20)));
		FRAMES(AS_END_ROOT, BIAS + 0x107e, BIAS + 0x1050, BIAS + 0x1010);
	}
}

static void a_return_address_of_zero_is_a_root(void **state)
{
	x86_world();
	w.stack[3] = 0;
	unwind(x86_regs(BIAS + 0x1085, at(0), 0));
	FRAMES(AS_END_ROOT, BIAS + 0x1085);
	assert_true(w.res.zero_root);
	uint64_t fp = usual_stack(10);
	unwind(x86_regs(BIAS + 0x10c5, at(10), fp));
	assert_false(w.res.zero_root); /* its root says so by CFI */
}

static void a_call_at_a_functions_end_belongs_to_it(void **state)
{
	x86_world();
	w.stack[0] = call_before(0x10c0); /* plain's last bytes are a call that never returns */
	w.stack[4] = call_before(0x1010);
	unwind(x86_regs(BIAS + 0x10c0, at(0), 0));
	FRAMES(AS_END_ROOT, BIAS + 0x10c0, BIAS + 0x10c0, BIAS + 0x1010);
}

static void a_copy_too_short_is_continued_with_more_memory(void **state)
{
	x86_world();
	uint64_t fp = usual_stack(10);
	w.short_above = at(14);
	unwind(x86_regs(BIAS + 0x10c5, at(10), fp));
	FRAMES(AS_END_SHORT, BIAS + 0x10c5, BIAS + 0x1090);
	w.short_above = 0;
	struct as_unwind_env e = env();
	as_unwind_continue(&e, w.frames, AS_ARRAY_LEN(w.frames), &w.res);
	FRAMES(AS_END_ROOT, BIAS + 0x10c5, BIAS + 0x1090, BIAS + 0x1050, BIAS + 0x1010);
}

static void unreadable_memory_is_a_fault(void **state)
{
	x86_world();
	unwind(x86_regs(BIAS + 0x10c5, 0x1234560, 0));
	FRAMES(AS_END_FAULT, BIAS + 0x10c5);
	unwind(x86_regs(BIAS + 0x10c5, UINT64_MAX - 3, 0));
	FRAMES(AS_END_FAULT, BIAS + 0x10c5);
}

static void a_frame_that_does_not_move_up_is_implausible(void **state)
{
	x86_world();
	w.stack[9] = call_before(0x1250);
	unwind(x86_regs(BIAS + 0x1245, at(10), 0));
	assert_int_equal(w.res.end, AS_END_BAD);
	assert_true(w.res.nframes <= 2);
}

static void a_return_address_in_no_mapping_is_not_shown(void **state)
{
	x86_world();
	w.stack[10] = 0x1234;
	unwind(x86_regs(BIAS + 0x10c5, at(10), 0));
	FRAMES(AS_END_NOMAP, BIAS + 0x10c5);
}

static void the_depth_limit_ends_a_stack_that_has_more(void **state)
{
	x86_world();
	uint64_t fp = usual_stack(10);
	struct as_uregs r = x86_regs(BIAS + 0x10c5, at(10), fp);
	struct as_unwind_env e = env();
	as_unwind(&e, &r, w.frames, 3, &w.res);
	FRAMES(AS_END_DEPTH, BIAS + 0x10c5, BIAS + 0x1090, BIAS + 0x1050);
	as_unwind(&e, &r, w.frames, 4, &w.res);
	assert_int_equal(w.res.end, AS_END_ROOT);
}

static void a_vfork_leaf_keeps_its_return_address_in_a_register(void **state)
{
	x86_world();
	w.stack[13] = call_before(0x1010);
	struct as_uregs r = x86_regs(BIAS + 0x1103, at(10), 0);
	r.r[5] = call_before(0x1090);
	unwind(r);
	FRAMES(AS_END_ROOT, BIAS + 0x1103, BIAS + 0x1090, BIAS + 0x1010);
}

static void a_plt_entry_knows_whether_it_has_pushed(void **state)
{
	x86_world();
	w.stack[10] = 0x5; /* relocation index */
	w.stack[11] = call_before(0x1010);
	unwind(x86_regs(BIAS + 0x1280 + 16 + 11, at(10), 0));
	FRAMES(AS_END_ROOT, BIAS + 0x129b, BIAS + 0x1010);
	unwind(x86_regs(BIAS + 0x1280 + 16 + 6, at(11), 0));
	FRAMES(AS_END_ROOT, BIAS + 0x1296, BIAS + 0x1010);
}

/* ucontext at sp: greg i at 40 + 8 i */
static void put_ucontext(uint64_t *at_word, uint64_t pc, uint64_t sp, uint64_t fp, uint64_t rbx)
{
	at_word[5 + 16] = pc;
	at_word[5 + 15] = sp;
	at_word[5 + 10] = fp;
	at_word[5 + 11] = rbx;
}

static void a_signal_on_the_alternate_stack_leads_back_to_the_interrupted_code(void **state)
{
	x86_world();
	uint64_t fp = usual_stack(10);
	/* interrupted at leaf's first byte: one less would be plain */
	put_ucontext(&w.altern[5], BIAS + 0x10c0, at(10), fp, 0);
	w.altern[4] = BIAS + 0x1200; /* handler returns to the trampoline */
	unwind(x86_regs(BIAS + 0x10c4, ALTERN + 8 * 4, 0));
	FRAMES(AS_END_ROOT, BIAS + 0x10c4, BIAS + 0x1200, BIAS + 0x10c0, BIAS + 0x1090,
	       BIAS + 0x1050, BIAS + 0x1010);
	assert_true(w.frames[1].signal);
	assert_false(w.frames[1].exact);
	assert_true(w.frames[2].exact);
	assert_false(w.frames[2].signal);
	/* the leaf inside the trampoline itself */
	unwind(x86_regs(BIAS + 0x1207, ALTERN + 8 * 5, 0));
	assert_int_equal(w.res.end, AS_END_ROOT);
	assert_int_equal(w.res.nframes, 5);
	assert_true(w.frames[0].signal && w.frames[0].exact);
}

static void a_register_the_fast_way_lost_comes_from_full_cfi(void **state)
{
	x86_world();
	/* saves_rbx <- by_rbx <- root: by_rbx's CFA needs the rbx that saves_rbx stored */
	w.stack[10] = 0;
	w.stack[11] = at(20); /* rbx, at CFA - 16 */
	w.stack[12] = call_before(0x1150);
	w.stack[21] = call_before(0x1010);
	for (unsigned i = 0; i < 20; i++) { /* from scanning to the kept index */
		if (i == 1)
			w.unwinder = as_unwinder_new();
		unwind(x86_regs(BIAS + 0x1190, at(10), 0));
		FRAMES(AS_END_ROOT, BIAS + 0x1190, BIAS + 0x1150, BIAS + 0x1010);
		assert_true(w.res.used_full_cfi);
	}
	as_unwinder_free(w.unwinder);
	w.unwinder = NULL;
	w.no_cfi = true;
	unwind(x86_regs(BIAS + 0x1190, at(10), 0));
	FRAMES(AS_END_EXPR, BIAS + 0x1190, BIAS + 0x1150);
	/* as a leaf rbx is simply known */
	struct as_uregs r = x86_regs(BIAS + 0x1150, at(13), 0);
	r.r[3] = at(20);
	unwind(r);
	FRAMES(AS_END_ROOT, BIAS + 0x1150, BIAS + 0x1010);
}

static void a_general_expression_is_evaluated(void **state)
{
	x86_world();
	w.stack[11] = at(20);
	w.stack[19] = call_before(0x1090);
	w.stack[23] = call_before(0x1010);
	unwind(x86_regs(BIAS + 0x11c4, at(10), 0));
	FRAMES(AS_END_ROOT, BIAS + 0x11c4, BIAS + 0x1090, BIAS + 0x1010);
	assert_true(w.res.used_full_cfi);
}

static void unknown_code_is_passed_by_a_checked_frame_pointer(void **state)
{
	for (unsigned mapped = 0; mapped < 2; mapped++) {
		x86_world();
		w.jit_mapped = mapped;
		w.stack[20] = at(40); /* the JIT frame: saved rbp, return address */
		w.stack[21] = call_before(0x1090);
		w.stack[25] = call_before(0x1010);
		unwind(x86_regs(JIT + 0x10, at(10), at(20)));
		FRAMES(AS_END_ROOT, JIT + 0x10, BIAS + 0x1090, BIAS + 0x1010);
		assert_true(w.res.used_frame_pointer);
		assert_int_equal(w.frames[0].module, mapped ? 9 : AS_NO_MODULE);
		/* known code called from unknown code */
		w.jit[0x20 - 5] = 0xe8;
		w.stack[5] = JIT + 0x20;
		unwind(x86_regs(BIAS + 0x10c5, at(5), at(20)));
		FRAMES(AS_END_ROOT, BIAS + 0x10c5, JIT + 0x20, BIAS + 0x1090, BIAS + 0x1010);
	}
}

/* JIT function at 0x40: push rbp; mov rsp,rbp; … ; pop rbp; ret at 0x50. Its caller's frame is below. */
static void an_unknown_leaf_without_its_frame_does_not_lose_its_caller(void **state)
{
	static const uint8_t prologue[] = {0x55, 0x48, 0x89, 0xe5};
	x86_world();
	memcpy(w.jit + 0x40, prologue, sizeof prologue);
	w.jit[0x50] = 0xc3;
	w.jit[0x20 - 5] = 0xe8;
	w.stack[10] = at(20); /* pushed rbp */
	w.stack[11] = JIT + 0x20;
	w.stack[20] = 0; /* the JIT caller's frame */
	w.stack[21] = call_before(0x1010);
	unwind(x86_regs(JIT + 0x40, at(11), at(20)));
	FRAMES(AS_END_ROOT, JIT + 0x40, JIT + 0x20, BIAS + 0x1010);
	unwind(x86_regs(JIT + 0x41, at(10), at(20)));
	FRAMES(AS_END_ROOT, JIT + 0x41, JIT + 0x20, BIAS + 0x1010);
	unwind(x86_regs(JIT + 0x44, at(10), at(10)));
	FRAMES(AS_END_ROOT, JIT + 0x44, JIT + 0x20, BIAS + 0x1010);
	unwind(x86_regs(JIT + 0x50, at(11), at(20)));
	FRAMES(AS_END_ROOT, JIT + 0x50, JIT + 0x20, BIAS + 0x1010);
}

static void a_trampoline_outside_all_modules_is_known_by_its_bytes(void **state)
{
	static const uint8_t restore[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	for (unsigned mapped = 0; mapped < 2; mapped++) {
		x86_world();
		w.jit_mapped = mapped;
		memcpy(w.jit + 0x80, restore, sizeof restore);
		uint64_t fp = usual_stack(10);
		put_ucontext(&w.altern[5], BIAS + 0x10c0, at(10), fp, 0);
		w.altern[4] = JIT + 0x80;
		unwind(x86_regs(BIAS + 0x10c4, ALTERN + 8 * 4, 0));
		FRAMES(AS_END_ROOT, BIAS + 0x10c4, JIT + 0x80, BIAS + 0x10c0, BIAS + 0x1090,
		       BIAS + 0x1050, BIAS + 0x1010);
		assert_true(w.frames[1].signal);
	}
}

static void a_frame_pointer_that_leads_to_no_call_site_is_not_believed(void **state)
{
	x86_world();
	w.jit_mapped = true;
	w.stack[20] = at(40);
	w.stack[21] = BIAS + 0x1095; /* in code, but not after a call */
	unwind(x86_regs(JIT + 0x10, at(10), at(20)));
	FRAMES(AS_END_NOCFI, JIT + 0x10);
	unwind(x86_regs(JIT + 0x10, at(10), at(20) + 3));
	FRAMES(AS_END_NOCFI, JIT + 0x10);
	unwind(x86_regs(JIT + 0x10, at(10), at(2))); /* below sp */
	FRAMES(AS_END_NOCFI, JIT + 0x10);
	w.jit_mapped = false;
	unwind(x86_regs(JIT + 0x10, at(10), at(20)));
	FRAMES(AS_END_NOMAP, JIT + 0x10);
}

static void a_switched_stack_is_followed_when_a_call_explains_it(void **state)
{
	x86_world();
	/* frame runs on STACK, but its rbp points to the lower stack it was called on */
	w.altern[30] = 0;
	w.altern[31] = call_before(0x1010);
	w.stack[10] = call_before(0x1050);
	unwind(x86_regs(BIAS + 0x10c5, at(10), ALTERN + 8 * 30));
	FRAMES(AS_END_ROOT, BIAS + 0x10c5, BIAS + 0x1050, BIAS + 0x1010);
	w.altern[31] = BIAS + 0x1015;
	unwind(x86_regs(BIAS + 0x10c5, at(10), ALTERN + 8 * 30));
	FRAMES(AS_END_BAD, BIAS + 0x10c5, BIAS + 0x1050);
}

static void missing_registers_are_no_stack(void **state)
{
	x86_world();
	struct as_uregs r = {.valid = 1ull << 6};
	unwind(r);
	assert_int_equal(w.res.end, AS_END_NOSTACK);
	assert_int_equal(w.res.nframes, 0);
	/* three registers, as the kernel gives them, suffice for plain stacks */
	r = x86_regs(BIAS + 0x10c5, at(10), usual_stack(10));
	r.valid = 1ull << 6 | 1ull << 7 | 1ull << 16;
	unwind(r);
	assert_int_equal(w.res.end, AS_END_ROOT);
}

/* The shim rustc writes for main with panic=abort has no FDE; libc calls it, it calls std. */
static void a_panic_abort_main_shim_is_passed(void **state)
{
	static const uint8_t shim[] = {0x50, 0x48, 0x89, 0xf1, 0x48, 0x63, 0xd7, 0x48,
				       0x8d, 0x3d, 0,    0,    0,    0,    0xff, 0x15,
				       0,    0,    0,    0,    0x59, 0xc3};
	begin(AS_ARCH_X86_64);
	memcpy(w.code + 0x100, shim, sizeof shim);
	cfi_fde(&w.cfi, w.cie, 0x1000, 64, CFI_PROGRAM(0x07, 16));
	cfi_fde(&w.cfi, w.cie, 0x1080, 64, CFI_PROGRAM(0));
	build();
	w.stack[10] = BIAS + 0x1114; /* after the shim's call */
	w.stack[12] = call_before(0x1010);
	unwind(x86_regs(BIAS + 0x1088, at(10), 0));
	FRAMES(AS_END_ROOT, BIAS + 0x1088, BIAS + 0x1114, BIAS + 0x1010);
	/* sampled in the shim, before its push and after its pop */
	unwind(x86_regs(BIAS + 0x1100, at(12), 0));
	FRAMES(AS_END_ROOT, BIAS + 0x1100, BIAS + 0x1010);
	unwind(x86_regs(BIAS + 0x1115, at(12), 0));
	FRAMES(AS_END_ROOT, BIAS + 0x1115, BIAS + 0x1010);
}

/*
 * Functions of the aarch64 world:
 *	1000 root	1040 pair	stp x29,x30,[sp,#-32]!; mov x29,sp
 *	1080 leaf	10c0 alone	str x30,[sp,#-16]!
 *	1100 far	x29 at CFA-16, x30 at CFA-48: only full CFI can tell
 *	1140 trampoline
 */
static void arm_world(void)
{
	static const uint8_t sigreturn[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4};
	begin(AS_ARCH_AARCH64);
	memcpy(w.code + 0x140, sigreturn, sizeof sigreturn);
	cfi_fde(&w.cfi, w.cie, 0x1000, 64, CFI_PROGRAM(0x07, 30));
	cfi_fde(&w.cfi, w.cie, 0x1040, 64,
		CFI_PROGRAM(0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3, 0x41, 0x0d, 29));
	cfi_fde(&w.cfi, w.cie, 0x1080, 64, CFI_PROGRAM(0));
	cfi_fde(&w.cfi, w.cie, 0x10c0, 64, CFI_PROGRAM(0x41, 0x0e, 16, 0x9e, 2));
	cfi_fde(&w.cfi, w.cie, 0x1100, 48, CFI_PROGRAM(0x0e, 48, 0x9d, 2, 0x9e, 6));
	build();
}

static struct as_uregs arm_regs(uint64_t pc, uint64_t sp, uint64_t fp, uint64_t lr)
{
	struct as_uregs r = {.valid = 0x1ffffffff};
	r.r[32] = pc;
	r.r[31] = sp;
	r.r[29] = fp;
	r.r[30] = lr;
	return r;
}

/* leaf <- alone <- pair <- root */
static struct as_uregs arm_usual(unsigned i, uint64_t signature)
{
	w.stack[i] = call_before(0x1050) | signature; /* alone's x30 at CFA - 16 */
	w.stack[i + 4] = 0;                           /* pair's x29, x30 at its frame pointer */
	w.stack[i + 5] = call_before(0x1010) | signature;
	return arm_regs(BIAS + 0x1084, at(i), at(i + 4), call_before(0x10d0));
}

static void aarch64_leaves_pairs_and_lone_return_addresses_are_followed(void **state)
{
	arm_world();
	unwind(arm_usual(10, 0));
	FRAMES(AS_END_ROOT, BIAS + 0x1084, BIAS + 0x10d0, BIAS + 0x1050, BIAS + 0x1010);
	assert_false(w.res.used_full_cfi);
}

static void aarch64_signed_return_addresses_lose_their_signature(void **state)
{
	arm_world();
	unwind(arm_usual(10, 0x0045ull << 48));
	FRAMES(AS_END_ROOT, BIAS + 0x1084, BIAS + 0x10d0, BIAS + 0x1050, BIAS + 0x1010);
}

static void aarch64_signal_frames_give_all_registers_back(void **state)
{
	arm_world();
	struct as_uregs r = arm_usual(100, 0);
	uint64_t *frame = &w.stack[10]; /* rt_sigframe: registers at byte 312 */
	for (unsigned i = 0; i < 31; i++)
		frame[39 + i] = r.r[i];
	frame[39 + 31] = r.r[31];
	frame[39 + 32] = r.r[32];
	unwind(arm_regs(BIAS + 0x1088, at(10), 0, BIAS + 0x1140));
	FRAMES(AS_END_ROOT, BIAS + 0x1088, BIAS + 0x1140, BIAS + 0x1084, BIAS + 0x10d0,
	       BIAS + 0x1050, BIAS + 0x1010);
	assert_true(w.frames[1].signal && w.frames[2].exact);
}

static void aarch64_odd_frames_need_full_cfi(void **state)
{
	arm_world();
	w.stack[10] = call_before(0x1050);
	w.stack[14] = at(20);
	w.stack[20] = 0;
	w.stack[21] = call_before(0x1010);
	unwind(arm_regs(BIAS + 0x1108, at(10), 0, 0));
	FRAMES(AS_END_ROOT, BIAS + 0x1108, BIAS + 0x1050, BIAS + 0x1010);
	assert_true(w.res.used_full_cfi);
}

static void aarch64_a_caller_cannot_keep_its_return_address_in_a_register(void **state)
{
	arm_world();
	unwind(arm_regs(BIAS + 0x1084, at(10), 0, call_before(0x1090)));
	FRAMES(AS_END_BAD, BIAS + 0x1084, BIAS + 0x1090);
}

static bool after(enum as_arch arch, const void *p, size_t n)
{
	return as_is_after_call(arch, p, n);
}
#define AFTER(...)                                                                             \
	after(AS_ARCH_X86_64, (const uint8_t[]){__VA_ARGS__},                                  \
	      sizeof((const uint8_t[]){__VA_ARGS__}))

static void calls_are_told_from_other_instructions(void **state)
{
	assert_true(AFTER(0xe8, 1, 2, 3, 4));
	assert_true(AFTER(0xff, 0xd0));                   /* call *%rax */
	assert_true(AFTER(0x41, 0xff, 0xd3));             /* call *%r11 */
	assert_true(AFTER(0xff, 0x10));                   /* call *(%rax) */
	assert_true(AFTER(0xff, 0x50, 8));                /* call *8(%rax) */
	assert_true(AFTER(0xff, 0x15, 1, 2, 3, 4));       /* call *x(%rip) */
	assert_true(AFTER(0xff, 0x14, 0xc8));             /* call *(%rax,%rcx,8) */
	assert_true(AFTER(0xff, 0x54, 0x24, 8));          /* call *8(%rsp) */
	assert_true(AFTER(0xff, 0x94, 0x24, 0, 1, 0, 0)); /* call *256(%rsp) */
	assert_true(AFTER(0xff, 0x14, 0x25, 0, 1, 0, 0)); /* call *256 */
	assert_true(AFTER(0x2e, 0xff, 0xd0));             /* notrack */
	assert_true(AFTER(0xf2, 0xff, 0xd0));             /* bnd */
	assert_false(AFTER(0xe9, 1, 2, 3, 4));
	assert_false(AFTER(0xff, 0xe0)); /* jmp *%rax */
	assert_false(AFTER(0xff, 0xd8));
	assert_false(AFTER(0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90));
	assert_false(AFTER(0xc3));
	assert_false(AFTER(0xff, 0x50)); /* its displacement is missing */
	static const uint32_t arm_calls[] = {0x94000001, 0x97ffffff, 0xd63f0200, 0xd63f0a1f,
					     0xd73f0a11};
	static const uint32_t arm_others[] = {0x14000001, 0xd61f0200, 0xd65f03c0, 0xd503201f,
					      0};
	for (size_t i = 0; i < AS_ARRAY_LEN(arm_calls); i++)
		assert_true(after(AS_ARCH_AARCH64, &arm_calls[i], 4));
	for (size_t i = 0; i < AS_ARRAY_LEN(arm_others); i++)
		assert_false(after(AS_ARCH_AARCH64, &arm_others[i], 4));
	assert_false(after(AS_ARCH_AARCH64, &arm_calls[0], 3));
	assert_false(after(AS_ARCH_NONE, &arm_calls[0], 4));
}

/* Whatever the stack holds, an unwinding ends, and every frame but leaf and signal is a call site. */
static void random_stacks_end_and_invent_nothing(void **state)
{
	uint64_t x = 88172645463325252ull;
	for (unsigned arch = AS_ARCH_X86_64; arch <= AS_ARCH_AARCH64; arch++) {
		arch == AS_ARCH_X86_64 ? x86_world() : arm_world();
		w.jit_mapped = true;
		for (unsigned round = 0; round < 20000; round++) {
			for (unsigned i = 0; i < 64; i++) {
				x ^= x << 13, x ^= x >> 7, x ^= x << 17;
				uint64_t r = x >> 20;
				w.stack[i] = r % 4 == 0   ? BIAS + TEXT + (r >> 8) % 0x300
					     : r % 4 == 1 ? at((r >> 8) % 70)
					     : r % 4 == 2 ? JIT + (r >> 8) % 0x100
							  : r;
			}
			struct as_uregs regs = {.valid = 0x1ffffffff};
			for (unsigned i = 0; i < 33; i++)
				regs.r[i] = w.stack[(i * 7 + round) % 64];
			const unsigned pc = arch == AS_ARCH_X86_64 ? 16 : 32,
				       sp = arch == AS_ARCH_X86_64 ? 7 : 31;
			regs.r[pc] = BIAS + TEXT + (x >> 8) % 0x300;
			regs.r[sp] = at(x % 8);
			unwind(regs);
			assert_true(w.res.nframes >= 1);
			assert_true(w.res.end < AS_END_COUNT_);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plain_stack_goes_down_to_its_root),
		cmocka_unit_test(a_register_popped_in_an_epilogue_is_in_the_register),
		cmocka_unit_test(a_return_address_of_zero_is_a_root),
		cmocka_unit_test(a_call_at_a_functions_end_belongs_to_it),
		cmocka_unit_test(a_copy_too_short_is_continued_with_more_memory),
		cmocka_unit_test(unreadable_memory_is_a_fault),
		cmocka_unit_test(a_frame_that_does_not_move_up_is_implausible),
		cmocka_unit_test(a_return_address_in_no_mapping_is_not_shown),
		cmocka_unit_test(the_depth_limit_ends_a_stack_that_has_more),
		cmocka_unit_test(a_vfork_leaf_keeps_its_return_address_in_a_register),
		cmocka_unit_test(a_plt_entry_knows_whether_it_has_pushed),
		cmocka_unit_test(
			a_signal_on_the_alternate_stack_leads_back_to_the_interrupted_code),
		cmocka_unit_test(a_register_the_fast_way_lost_comes_from_full_cfi),
		cmocka_unit_test(a_general_expression_is_evaluated),
		cmocka_unit_test(unknown_code_is_passed_by_a_checked_frame_pointer),
		cmocka_unit_test(an_unknown_leaf_without_its_frame_does_not_lose_its_caller),
		cmocka_unit_test(a_trampoline_outside_all_modules_is_known_by_its_bytes),
		cmocka_unit_test(a_frame_pointer_that_leads_to_no_call_site_is_not_believed),
		cmocka_unit_test(a_switched_stack_is_followed_when_a_call_explains_it),
		cmocka_unit_test(missing_registers_are_no_stack),
		cmocka_unit_test(a_panic_abort_main_shim_is_passed),
		cmocka_unit_test(aarch64_leaves_pairs_and_lone_return_addresses_are_followed),
		cmocka_unit_test(aarch64_signed_return_addresses_lose_their_signature),
		cmocka_unit_test(aarch64_signal_frames_give_all_registers_back),
		cmocka_unit_test(aarch64_odd_frames_need_full_cfi),
		cmocka_unit_test(aarch64_a_caller_cannot_keep_its_return_address_in_a_register),
		cmocka_unit_test(calls_are_told_from_other_instructions),
		cmocka_unit_test(random_stacks_end_and_invent_nothing),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	as_buf_clear(&w.cfi.b);
	as_buf_clear(&w.blob);
	return failed;
}
