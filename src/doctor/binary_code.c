/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What instructions say about how they were made: stack traffic, frame pointers, vector
 * extensions, large frames, code without unwind tables. Lengths come from the disassembler; the few
 * operands that matter are read off the encoding here (Intel SDM volume 2, chapter 2), which is ten
 * times faster than decoding them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "code/disasm.h"
#include "doctor/binary_priv.h"

#define MIN_INSNS        12u /* below, a function says nothing */
#define MAX_INSNS        200u
#define PROLOGUE         24u
#define SAMPLE_FUNCTIONS 3000u
#define FRAME_FUNCTIONS  300000u
#define MIN_OWN_INSNS    40u
#define UNOPT_STACK      0.20
/* shares of own functions; between the highest of any optimised build and the lowest of any other */
#define UNOPT_MANY       0.35
#define UNOPT_SOME       0.20
#define UNOPT_SOME_N     8u

/* ---- one instruction ---- */

struct enc {
	uint8_t rex;
	bool vex, two_byte;
	uint8_t op;          /* after 0f when two_byte */
	const uint8_t *rest; /* ModRM on */
	size_t left;
};

static bool split_insn(const uint8_t *p, size_t n, struct enc *e)
{
	*e = (struct enc){0};
	while (n && (*p == 0x66 || *p == 0xf2 || *p == 0xf3 || *p == 0x2e || *p == 0x3e ||
		     *p == 0x64 || *p == 0x65))
		p++, n--;
	if (n && (*p == 0xc4 || *p == 0xc5 || *p == 0x62)) {
		e->vex = true;
		return true;
	}
	if (n && (*p & 0xf0) == 0x40)
		e->rex = *p++, n--;
	if (n && *p == 0x0f)
		e->two_byte = true, p++, n--;
	if (!n)
		return false;
	e->op = *p;
	e->rest = p + 1;
	e->left = n - 1;
	return true;
}

static bool is_move(const struct enc *e)
{
	static const uint8_t one[] = {0x63, 0x88, 0x89, 0x8a, 0x8b, 0xc6, 0xc7};
	static const uint8_t two[] = {0x10, 0x11, 0x28, 0x29, 0x6e, 0x6f, 0x7e,
				      0x7f, 0xb6, 0xb7, 0xbe, 0xbf, 0xd6};

	return e->two_byte ? memchr(two, e->op, sizeof two) != NULL
			   : memchr(one, e->op, sizeof one) != NULL;
}

/* [rsp + x] without an index, or [rbp - x]: rbp with a positive offset is as likely a pointer. */
static bool in_frame(const struct enc *e)
{
	unsigned mod, rm;

	if (!e->left)
		return false;
	mod = e->rest[0] >> 6;
	rm = e->rest[0] & 7;
	if (mod == 3)
		return false;
	if (rm == 4)
		return e->left >= 2 && (e->rest[1] & 7) == 4 && (e->rest[1] >> 3 & 7) == 4 &&
		       !(e->rex & 3);
	if (rm != 5 || (e->rex & 1))
		return false;
	return (mod == 1 && e->left >= 2 && (e->rest[1] & 0x80)) ||
	       (mod == 2 && e->left >= 5 && (e->rest[4] & 0x80));
}

/* mov rbp, rsp in either encoding */
static bool sets_frame_pointer(const uint8_t *p, size_t n)
{
	return n == 3 && p[0] == 0x48 &&
	       ((p[1] == 0x89 && p[2] == 0xe5) || (p[1] == 0x8b && p[2] == 0xec));
}

/* What the first instructions have left in registers. */
struct prologue {
	uint64_t eax;
	bool pushed_rbp, r11_is_rsp;
};

/* sub rsp, imm32; lea r11, [rsp - imm32], or mov r11, rsp and sub r11, imm32 (stack probes walk down
 * to there); mov eax, imm32 before a call of __rust_probestack or the like: sub rsp, rax. */
static uint64_t frame_of(const uint8_t *p, size_t n, struct prologue *in)
{
	static const uint8_t mov_r11_rsp[] = {0x49, 0x89, 0xe3}, sub_r11[] = {0x49, 0x81, 0xeb};

	if (n == 3 && memcmp(p, mov_r11_rsp, n) == 0)
		in->r11_is_rsp = true;
	if (n == 7 && in->r11_is_rsp && memcmp(p, sub_r11, sizeof sub_r11) == 0)
		return as_get_le32(p + 3);
	if (n == 7 && p[0] == 0x48 && p[1] == 0x81 && p[2] == 0xec)
		return as_get_le32(p + 3);
	if (n == 8 && p[0] == 0x4c && p[1] == 0x8d && p[2] == 0x9c && p[3] == 0x24)
		return -(uint64_t)(int64_t)(int32_t)as_get_le32(p + 4);
	if (n == 5 && p[0] == 0xb8)
		in->eax = as_get_le32(p + 1);
	if (n == 3 && p[0] == 0x48 && p[1] == 0x29 && p[2] == 0xc4)
		return in->eax;
	return 0;
}

static void take_prologue(const uint8_t *p, size_t n, struct prologue *in,
			  struct as_code_count *c)
{
	uint64_t frame = frame_of(p, n, in);

	if (n == 1 && *p >= 0x50 && *p <= 0x57)
		c->framed = true;
	if (n == 1 && *p == 0x55)
		in->pushed_rbp = true;
	if (n == 2 && p[0] == 0x41 && p[1] >= 0x54 && p[1] <= 0x57) {
		c->saves++;
		c->framed = true;
	}
	if (in->pushed_rbp && sets_frame_pointer(p, n))
		c->frame_pointer = true;
	if (n >= 4 && p[0] == 0x48 && (p[1] == 0x81 || p[1] == 0x83) && p[2] == 0xec)
		c->framed = true;
	if (frame < (1u << 31))
		c->frame_bytes = AS_MAX(c->frame_bytes, frame);
}

void as_code_count(struct as_disasm *d, const uint8_t *p, size_t n, uint64_t svma,
		   unsigned max_insns, struct as_code_count *ret)
{
	struct as_insn insn;
	struct prologue in = {0};
	struct enc e;

	*ret = (struct as_code_count){0};
	for (size_t at = 0; at < n && ret->insns < max_insns; at += insn.len) {
		as_disasm_skim(d, p + at, n - at, svma + at, &insn);
		if (insn.kind == AS_INSN_BAD)
			return;
		if (ret->insns < PROLOGUE)
			take_prologue(p + at, insn.len, &in, ret);
		ret->insns++;
		ret->framed |= insn.kind == AS_INSN_CALL;
		if (!split_insn(p + at, insn.len, &e))
			continue;
		if (e.vex)
			ret->wide++;
		else if (is_move(&e) && in_frame(&e))
			ret->stack_moves++;
	}
}

bool as_code_unoptimised(const struct as_code_count *c)
{
	return c->insns >= MIN_INSNS && c->saves == 0 &&
	       c->stack_moves >= UNOPT_STACK * c->insns;
}

/* ---- all functions ---- */

static const uint8_t *bytes_of(const struct as_binary *b, const struct as_function *f)
{
	return as_elf_at(b->elf, f->svma, f->size_bytes);
}

struct judge {
	size_t own, own_unopt, unnamed, unnamed_unopt, wide;
	uint64_t own_insns, own_moves, framed_bytes, fp_bytes, own_framed_bytes, own_fp_bytes;
	const struct as_function *example;
	bool only_own;
};

static void take_frame(struct judge *j, const struct as_function *f,
		       const struct as_code_count *c, bool own)
{
	uint64_t fp_bytes = c->frame_pointer ? f->size_bytes : 0;

	if (!c->framed)
		return;
	j->framed_bytes += f->size_bytes;
	j->fp_bytes += fp_bytes;
	if (own) {
		j->own_framed_bytes += f->size_bytes;
		j->own_fp_bytes += fp_bytes;
	}
}

static void judge_one(struct as_disasm *d, const struct as_binary *b,
		      const struct as_function *f, struct judge *j)
{
	const uint8_t *p = bytes_of(b, f);
	bool own = f->name && as_binary_is_own(f->name), unopt;
	struct as_code_count c;

	if (!p || (j->only_own && !own))
		return;
	as_code_count(d, p, f->size_bytes, f->svma, MAX_INSNS, &c);
	take_frame(j, f, &c, own);
	if (c.insns < MIN_INSNS)
		return;
	unopt = as_code_unoptimised(&c);
	j->unnamed += !f->name;
	j->unnamed_unopt += !f->name && unopt;
	if (!own)
		return;
	j->own++;
	j->own_unopt += unopt;
	j->wide += c.wide > 0;
	j->own_insns += c.insns;
	j->own_moves += c.stack_moves;
	if (unopt && (!j->example || f->size_bytes > j->example->size_bytes))
		j->example = f;
}

/*
 * Without names everything counts as own. A Rust program is then some hundred optimised functions
 * of std beside its own ones, so that a smaller share already tells: "partly" it is at least.
 */
static enum as_optimised verdict(size_t judged, size_t unopt, uint64_t insns)
{
	double share = judged ? (double)unopt / (double)judged : 0;

	if (!judged || insns < MIN_OWN_INSNS)
		return AS_OPTIMISED_UNKNOWN;
	if (share >= UNOPT_MANY)
		return AS_OPTIMISED_NO;
	return share >= UNOPT_SOME && unopt >= UNOPT_SOME_N ? AS_OPTIMISED_PARTLY
							    : AS_OPTIMISED_YES;
}

/* Own functions decide; what is stripped may have a few exported ones only, then the others do. */
static enum as_optimised decide(const struct judge *j, bool *ret_by_name)
{
	enum as_optimised by_name = verdict(j->own, j->own_unopt, j->own_insns);

	*ret_by_name = by_name != AS_OPTIMISED_UNKNOWN || (j->own && !j->unnamed);
	return *ret_by_name ? by_name
			    : verdict(j->unnamed, j->unnamed_unopt, j->unnamed * MIN_INSNS);
}

void as_binary_judge_code(struct as_binary *b, struct as_binary_facts *f)
{
	size_t step = AS_MAX(b->function.n / SAMPLE_FUNCTIONS, (size_t)1);
	struct judge j = {0};
	struct as_disasm *d;
	bool by_name;

	f->fp_share = f->own_fp_share = f->avx_share = -1;
	if (as_elf_arch(b->elf) != AS_ARCH_X86_64 || as_disasm_missing(AS_ARCH_X86_64))
		return;
	d = as_disasm_new(AS_ARCH_X86_64, NULL, NULL);
	for (size_t i = 0; i < b->function.n; i += step)
		judge_one(d, b, &b->function.v[i], &j);
	as_disasm_free(d);
	f->optimised = decide(&j, &by_name);
	/* std is optimised and has no such checks: the program has them */
	if (!by_name && f->rust && f->debug_assertions)
		f->optimised = f->optimised == AS_OPTIMISED_YES ? AS_OPTIMISED_UNKNOWN
								: AS_OPTIMISED_NO;
	f->judged_own = j.own;
	f->unopt_own = j.own_unopt;
	f->judged_unnamed = j.unnamed;
	f->unopt_unnamed = j.unnamed_unopt;
	f->judged_by_name = by_name;
	f->stack_share = j.own_insns ? (double)j.own_moves / (double)j.own_insns : 0;
	if (j.framed_bytes)
		f->fp_share = (double)j.fp_bytes / (double)j.framed_bytes;
	if (j.own_framed_bytes)
		f->own_fp_share = (double)j.own_fp_bytes / (double)j.own_framed_bytes;
	if (j.own)
		f->avx_share = (double)j.wide / (double)j.own;
	if (j.example)
		f->unopt_example = as_xstrdup(j.example->name);
}

static enum as_optimised quick_look(struct as_binary *b)
{
	enum { TABLE_ENTRIES = 4096, OWN = 64, LOOKED_AT = 1000, EH_FRAME_MAX = 256 << 10 };
	struct judge j = {.only_own = true};
	struct as_disasm *d;
	bool by_name;
	size_t step;

	as_binary_code(b);
	as_binary_some_functions(b, TABLE_ENTRIES);
	if (!b->function.n && as_binary_eh_frame_bytes(b) <= EH_FRAME_MAX) {
		as_binary_fdes(b);
		as_binary_functions(b);
		j.only_own = false;
	}
	d = as_disasm_new(AS_ARCH_X86_64, NULL, NULL);
	step = AS_MAX(b->function.n / LOOKED_AT, (size_t)1);
	for (size_t i = 0; i < b->function.n && j.own < OWN; i += step)
		judge_one(d, b, &b->function.v[i], &j);
	as_disasm_free(d);
	return decide(&j, &by_name);
}

enum as_optimised as_binary_optimised(const char *path)
{
	struct as_binary b;
	enum as_optimised ret = AS_OPTIMISED_UNKNOWN;

	if (as_disasm_missing(AS_ARCH_X86_64) || as_binary_open(path, &b, NULL) < 0)
		return ret;
	if (as_elf_arch(b.elf) == AS_ARCH_X86_64)
		ret = quick_look(&b);
	as_binary_close(&b);
	return ret;
}

/* ---- large frames ---- */

static void keep_frame(struct as_binary_facts *f, const struct as_function *fn, uint64_t bytes)
{
	size_t at = f->nframes;
	char text[32];

	f->nbig++;
	if (f->nframes == AS_BINARY_FRAMES) {
		if (f->frame[at - 1].bytes >= bytes)
			return;
		free(f->frame[--at].name);
	} else {
		f->nframes++;
	}
	for (; at && f->frame[at - 1].bytes < bytes; at--)
		f->frame[at] = f->frame[at - 1];
	snprintf(text, sizeof text, "0x%" PRIx64, fn->svma);
	f->frame[at] = (struct as_big_frame){as_xstrdup(fn->name ? fn->name : text), bytes};
}

void as_binary_big_frames(struct as_binary *b, struct as_binary_facts *f)
{
	size_t n = AS_MIN(b->function.n, (size_t)FRAME_FUNCTIONS);
	struct as_disasm *d;

	if (as_elf_arch(b->elf) != AS_ARCH_X86_64 || as_disasm_missing(AS_ARCH_X86_64))
		return;
	d = as_disasm_new(AS_ARCH_X86_64, NULL, NULL);
	for (size_t i = 0; i < n; i++) {
		const struct as_function *fn = &b->function.v[i];
		const uint8_t *p = bytes_of(b, fn);
		struct as_code_count c;

		if (!p)
			continue;
		as_code_count(d, p, fn->size_bytes, fn->svma, PROLOGUE, &c);
		if (c.frame_bytes >= AS_BINARY_BIG_FRAME)
			keep_frame(f, fn, c.frame_bytes);
	}
	as_disasm_free(d);
}

/* ---- code without unwind tables ---- */

static bool is_padding(const uint8_t *p, size_t n)
{
	while (n > 1 && (*p == 0x66 || *p == 0x2e))
		p++, n--;
	return *p == 0x90 || *p == 0xcc || *p == 0 || (n >= 2 && p[0] == 0x0f && p[1] == 0x1f);
}

/* Length of what is not padding at the start of a gap. */
static size_t skip_padding(struct as_disasm *d, const uint8_t *p, size_t n)
{
	struct as_insn insn;
	size_t at = 0;

	while (at < n) {
		as_disasm_skim(d, p + at, n - at, at, &insn);
		if (!is_padding(p + at, insn.len))
			break;
		at += p[at] == 0 ? 1 : insn.len;
	}
	return at;
}

static void take_gap(struct as_binary *b, struct as_disasm *d, struct as_binary_facts *f,
		     const struct as_code_range *c, uint64_t lo, uint64_t hi)
{
	const uint8_t *p = c->code.p + (lo - c->svma);
	size_t n = (size_t)(hi - lo), pad = n < 4096 ? skip_padding(d, p, n) : 0;

	if (n - pad < 4)
		return;
	f->without_fde_bytes += n - pad;
	f->without_fde_places++;
	if (f->without_fde_example)
		return;
	for (size_t i = 0; i < b->function.n; i++) {
		const struct as_function *fn = &b->function.v[i];

		if (fn->name && fn->svma >= lo && fn->svma < hi && as_binary_is_own(fn->name)) {
			f->without_fde_example = as_xstrdup(fn->name);
			return;
		}
	}
}

static void on_main(void *ctx, const struct as_elf_symbol *s)
{
	if (s->func && strcmp(s->name, "main") == 0)
		*(uint64_t *)ctx = s->svma;
}

static bool has_fde(const struct as_binary *b, uint64_t svma)
{
	for (size_t i = 0; i < b->nfde; i++) {
		if (svma >= b->fde[i].start_svma && svma < b->fde[i].end_svma)
			return true;
	}
	return false;
}

void as_binary_unwind_gaps(struct as_binary *b, struct as_binary_facts *f)
{
	struct as_disasm *d = as_disasm_new(as_elf_arch(b->elf), NULL, NULL);
	uint64_t main_svma = 0;
	size_t k = 0;

	f->has_fdes = b->nfde > 0;
	for (size_t i = 0; i < b->ncode; i++) {
		const struct as_code_range *c = &b->code[i];
		uint64_t at = c->svma, end = c->svma + c->code.n;

		for (; k < b->nfde && b->fde[k].start_svma < end; k++) {
			uint64_t lo = b->fde[k].start_svma;

			if (b->fde[k].end_svma <= at)
				continue;
			if (lo > at)
				take_gap(b, d, f, c, at, lo);
			at = AS_MIN(AS_MAX(at, b->fde[k].end_svma), end);
		}
		if (at < end)
			take_gap(b, d, f, c, at, end);
	}
	as_disasm_free(d);
	/* a damaged table gives what it has */
	(void)as_elf_each_symbol(b->elf, on_main, &main_svma, NULL);
	f->main_without_fde = main_svma && b->nfde && !has_fde(b, main_svma);
}
