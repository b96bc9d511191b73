/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Rows for code without CFI (C libraries built without it, hand-written assembly, the main shim
 * rustc writes with panic=abort): sweeps over the instructions follow rsp and rbp. A state is
 * carried to the targets of jumps, so that what comes after a return in the middle of a
 * function is right; the first sweep only collects such states, the second writes rows. Code
 * that nothing leads to starts a function when it is called or stands after padding, else it is
 * taken for a piece of the function before it (targets of jump tables). A call may never
 * return, so what stands after one believes a jump to it more. Guesses are not carried to other
 * places.
 */
#include "unwind/arch_priv.h"
#include "unwind/builder_priv.h"
#include "unwind/x86_64/insn_priv.h"
#include "base/map.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* Larger code is taken in pieces, so that memory stays small. */
#define PIECE_BYTES (4u << 20)

struct state {
	int32_t depth;  /* CFA = rsp + depth; < 0: not known */
	int32_t fp_off; /* caller's rbp is at CFA + fp_off; 0: still in rbp */
	int32_t fp_cfa; /* CFA = rbp + fp_cfa; 0: rbp is not a frame pointer */
	bool root;      /* a thread's first function */
	bool guess;     /* nothing is known to lead here */
};

/* What the code consists of; kinds beyond those of instructions: */
enum {
	SKIPPED = AS_X86_HLT + 1, /* no instruction */
	SIGRETURN,
	CONTEXT_START,
};
struct item {
	uint32_t at;
	uint16_t len;
	struct as_x86_insn insn;
};

struct sweep {
	struct as_ut_builder *b;
	uint64_t svma;
	const uint8_t *code;
	size_t n;
	struct as_map64 targets; /* offset -> packed state; only offsets in jumped */
	AS_VEC(struct item) items;
	uint8_t *called, *jumped; /* a bit for each offset that is called, jumped to */
	unsigned flags;           /* enum as_x86_scan_flags */
	bool emits;
};

static const struct state entry_state = {.depth = 8};

static uint64_t pack(const struct state *s)
{
	return (uint64_t)(uint32_t)(s->depth & 0x1fffff) |
	       (uint64_t)(-s->fp_off & 0x1fffff) << 21 |
	       (uint64_t)(s->fp_cfa & 0x1fffff) << 42 | (uint64_t)s->root << 63;
}

static struct state unpack(uint64_t v)
{
	struct state s = {
		.depth = (int32_t)((uint32_t)(v & 0x1fffff) << 11) >> 11,
		.fp_off = -(int32_t)(v >> 21 & 0x1fffff),
		.fp_cfa = (int32_t)(v >> 42 & 0x1fffff),
		.root = v >> 63,
	};
	return s;
}

static void emit(struct sweep *w, size_t at, const struct state *s)
{
	unsigned fp = s->fp_off ? AS_UT_FP_CFA : AS_UT_FP_SAME;
	if (s->fp_off < INT16_MIN)
		fp = AS_UT_FP_UNDEF;
	if (!w->emits)
		return;
	int32_t fp_off = fp == AS_UT_FP_CFA ? s->fp_off : 0;
	if (s->root)
		as_ut_emit(w->b, w->svma + at, AS_UT_CFA_END, 0);
	else if (s->fp_cfa)
		as_ut_emit(w->b, w->svma + at, as_ut_w0(AS_UT_CFA_FP, fp, fp_off), s->fp_cfa);
	else if (s->depth >= 0)
		as_ut_emit(w->b, w->svma + at, as_ut_w0(AS_UT_CFA_SP, fp, fp_off), s->depth);
	else
		as_ut_emit(w->b, w->svma + at, AS_UT_CFA_NONE, 0);
}

static void add_depth(struct state *s, int32_t by)
{
	if (s->depth < 0)
		return;
	s->depth += by;
	if (s->depth < 0 || s->depth > 0xfffff)
		s->depth = -1;
}

static void pushed(struct state *s, int8_t reg)
{
	add_depth(s, 8);
	if (reg == 6 && !s->fp_off && s->depth > 0)
		s->fp_off = -s->depth;
}

static void popped(struct state *s, int8_t reg)
{
	if (reg == 6) {
		s->fp_off = 0;
		s->fp_cfa = 0;
	}
	if (reg == 7)
		s->depth = -1;
	else
		add_depth(s, -8);
}

static void step(struct state *s, const struct as_x86_insn *i)
{
	switch (i->kind) {
	case AS_X86_PUSH:
		pushed(s, i->reg);
		break;
	case AS_X86_POP:
		popped(s, i->reg);
		break;
	case AS_X86_ADD_RSP:
		if (i->value > -0x100000 && i->value < 0x100000)
			add_depth(s, -i->value);
		else
			s->depth = -1;
		break;
	case AS_X86_RSP_TO_RBP:
		if (s->fp_off && s->depth > 0)
			s->fp_cfa = s->depth;
		break;
	case AS_X86_RBP_TO_RSP:
		s->depth = -1;
		if (s->fp_cfa && i->value > -0x100000 && i->value <= s->fp_cfa)
			s->depth = s->fp_cfa - i->value;
		break;
	case AS_X86_LEAVE:
		s->depth = s->fp_cfa ? s->fp_cfa - 8 : -1;
		s->fp_cfa = s->fp_off = 0;
		break;
	case AS_X86_LOSE_RSP:
		s->depth = -1;
		break;
	case AS_X86_ZERO_RBP:
		s->root = s->root || !s->fp_off;
		break;
	}
}

static bool ends_flow(unsigned kind)
{
	return kind == AS_X86_RET || kind == AS_X86_JMP || kind == AS_X86_JMP_INDIRECT ||
	       kind == AS_X86_HLT;
}

static bool target_of(const struct sweep *w, size_t next, const struct as_x86_insn *i,
		      size_t *ret)
{
	int64_t to = (int64_t)next + i->value;
	if (to < 0 || (uint64_t)to >= w->n)
		return false;
	*ret = (size_t)to;
	return true;
}

static void mark(uint8_t *bits, size_t at)
{
	bits[at / 8] |= (uint8_t)(1u << at % 8);
}

static bool marked(const uint8_t *bits, size_t at)
{
	return bits[at / 8] >> at % 8 & 1;
}

/* Roots and trampolines known by their bytes; the length of what was found, else 0. */
static size_t known_code(const uint8_t *p, size_t n, uint8_t *ret_kind)
{
	const struct as_uarch *arch = &as_uarch_x86_64;
	if (*p != 0x48 && *p != 0xb8 && *p != 0xf3)
		return 0;
	if (arch->is_sigreturn(p, n)) {
		*ret_kind = SIGRETURN;
		return p[0] == 0xb8 ? 7 : 9;
	}
	if (arch->is_context_start(p, n)) {
		*ret_kind = CONTEXT_START;
		return arch->entry_length(p, n);
	}
	return 0;
}

static struct item item_at(const struct sweep *w, size_t at)
{
	const uint8_t *p = w->code + at;
	size_t n = w->n - at;
	struct item item = {.at = (uint32_t)at};
	size_t known = known_code(p, n, &item.insn.kind);
	bool zero = n > 1 && !p[0] && !p[1];
	if (known) {
		item.len = (uint16_t)known;
	} else if (!zero && as_x86_decode(p, n, &item.insn)) {
		item.len = item.insn.len;
		if (*p == 0xcc)
			item.insn.kind = AS_X86_NOP;
	} else {
		item.insn.kind = SKIPPED;
		item.len = (uint16_t)(16 - ((w->svma + at) & 15));
	}
	return item;
}

/* Decodes once. Functions nothing pads apart are found by the calls to them, loops by the jumps. */
static void collect(struct sweep *w)
{
	size_t to;
	for (size_t at = 0; at < w->n;) {
		struct item item = item_at(w, at);
		const struct as_x86_insn *i = &item.insn;
		as_vec_push(&w->items, item);
		at += item.len;
		if (i->kind == AS_X86_CALL && i->value && target_of(w, at, i, &to))
			mark(w->called, to);
		if ((i->kind == AS_X86_JMP || i->kind == AS_X86_JCC) &&
		    target_of(w, at, i, &to))
			mark(w->jumped, to);
	}
}

static void remember_target(struct sweep *w, size_t next, const struct as_x86_insn *i,
			    const struct state *s)
{
	size_t to;
	bool is_new;
	if (s->guess || (i->kind != AS_X86_JCC && i->kind != AS_X86_JMP) ||
	    !target_of(w, next, i, &to))
		return;
	uint64_t *v = as_map64_put(&w->targets, to, &is_new);
	if (is_new)
		*v = pack(s);
}

enum reached { NOWHERE, AFTER_CALL, FALLS_THROUGH };

struct place {
	enum reached from; /* the instruction before */
	bool padded;
	struct state s, body; /* body: amid the function, its frame complete */
	size_t start;         /* offset + 1 of a function whose start was assumed; 0: none */
};

/* push %rbp; mov %rsp,%rbp, in either encoding */
static bool is_prologue(const uint8_t *p, size_t n)
{
	return n >= 4 && p[0] == 0x55 && p[1] == 0x48 &&
	       ((p[2] == 0x89 && p[3] == 0xe5) || (p[2] == 0x8b && p[3] == 0xec));
}

/* The state at an instruction, before it runs. */
static void arrive(const struct sweep *w, size_t at, struct place *p)
{
	const uint64_t *v = marked(w->jumped, at) ? as_map64_get(&w->targets, at) : NULL;
	bool start = p->from != FALLS_THROUGH && !marked(w->jumped, at);
	bool framed = is_prologue(w->code + at, w->n - at);
	if (!framed)
		start = start && p->padded && (p->from == NOWHERE || (w->svma + at) % 16 == 0);
	if (marked(w->called, at)) {
		p->s = p->body = entry_state;
		p->start = 0;
	} else if (v && (p->from != FALLS_THROUGH || p->s.guess)) {
		p->s = unpack(*v);
	} else if (start) {
		p->s = p->body = entry_state;
		p->start = at + 1;
	} else if (p->from == NOWHERE) {
		p->s = p->body;
		p->s.guess = true;
	}
	/* Where frames are kept, the return address stands behind each. What was pushed before are
	 * arguments (the code generators of V8 push the return address again). */
	if (framed && w->flags & AS_X86_SCAN_FRAMES && (p->s.depth != 8 || p->s.fp_off))
		p->s = p->body = entry_state;
}

/* Items that are no instructions; true when item is one. */
static bool sweep_special(struct sweep *w, const struct item *item, struct place *p)
{
	uint64_t pc = w->svma + item->at;
	unsigned rule = AS_UT_CFA_NONE;
	if (item->insn.kind < SKIPPED)
		return false;
	p->from = NOWHERE;
	if (item->insn.kind == SKIPPED) {
		p->padded = true;
	} else {
		rule = item->insn.kind == SIGRETURN ? AS_UT_CFA_SIGNAL : AS_UT_CFA_END;
		pc -= pc > w->b->floor;
	}
	if (w->emits)
		as_ut_emit(w->b, pc, rule, 0);
	return true;
}

/*
 * A function that uses the frame rbp points to before it has one is none: it is a piece of one with
 * a frame pointer (cold blocks put elsewhere). The second sweep takes it as that.
 */
static void disprove_start(struct sweep *w, struct place *p)
{
	static const struct state framed = {.depth = -1, .fp_off = -16, .fp_cfa = 16};
	bool is_new;
	uint64_t *v = as_map64_put(&w->targets, p->start - 1, &is_new);
	*v = pack(&framed);
	mark(w->jumped, p->start - 1);
	p->start = 0;
	p->s = p->body = framed;
}

static void sweep(struct sweep *w)
{
	struct place p = {.s = entry_state, .body = entry_state, .from = AFTER_CALL};
	/* else it may be a piece of a function that was split */
	p.s.guess = !(w->flags & AS_X86_SCAN_FUNCTION);
	as_vec_foreach (item, &w->items) {
		const struct as_x86_insn *i = &item->insn;
		size_t at = item->at;
		if (sweep_special(w, item, &p))
			continue;
		if (i->kind == AS_X86_NOP && p.from != FALLS_THROUGH &&
		    !marked(w->jumped, at)) {
			p.padded = true;
			continue;
		}
		arrive(w, at, &p);
		if (i->frame_access && p.start && !p.s.fp_off)
			disprove_start(w, &p);
		emit(w, at, &p.s);
		remember_target(w, at + item->len, i, &p.s);
		step(&p.s, i);
		if (p.s.fp_off)
			p.start = 0;
		/* a frame is complete where its function first branches or calls */
		if (i->kind == AS_X86_JCC || i->kind == AS_X86_CALL ||
		    i->kind == AS_X86_JMP_INDIRECT)
			p.body = p.s;
		p.from = ends_flow(i->kind)       ? NOWHERE
			 : i->kind == AS_X86_CALL ? AFTER_CALL
						  : FALLS_THROUGH;
		p.padded = false;
	}
}

static void scan_piece(struct as_ut_builder *b, uint64_t svma, const uint8_t *code, size_t n,
		       unsigned flags)
{
	struct sweep w = {.b = b, .svma = svma, .code = code, .n = n, .flags = flags};
	w.called = as_xcalloc(n / 8 + 1, 1);
	w.jumped = as_xcalloc(n / 8 + 1, 1);
	collect(&w);
	sweep(&w);
	w.emits = true;
	sweep(&w);
	as_map64_clear(&w.targets);
	as_vec_clear(&w.items);
	free(w.called);
	free(w.jumped);
}

void as_x86_scan_exact(struct as_ut_builder *b, uint64_t svma, const uint8_t *code, size_t n,
		       unsigned flags)
{
	for (size_t at = 0; at < n; at += PIECE_BYTES)
		scan_piece(b, svma + at, code + at, n - at < PIECE_BYTES ? n - at : PIECE_BYTES,
			   at ? flags & ~(unsigned)AS_X86_SCAN_FUNCTION : flags);
}

void as_x86_scan(struct as_ut_builder *b, uint64_t svma, const uint8_t *code, size_t n)
{
	if (!as_x86_scan_frames(b, svma, code, n))
		as_x86_scan_exact(b, svma, code, n, 0);
}
