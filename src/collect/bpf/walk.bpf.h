/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) AND Apache-2.0 */
/*
 * One step of the in-kernel stack walk, x86-64: from the registers of a frame to those of its
 * caller by the module's unwind table (abi/unwind_table.h). The same text is compiled for BPF
 * and, with memory and maps emulated, for the host, where tests hold it against the user-space
 * unwinder.
 *
 * Before including this file the includer declares
 *
 *	struct as_walk_chunk { uint32_t w[AS_BPF_CHUNK_WORDS]; };
 *	struct as_walk_pool { struct as_bpf_mapping m[AS_BPF_POOL_MAPPINGS]; };
 *	static … const struct as_walk_chunk *as_walk_chunk(uint32_t chunk);
 *		NULL: no such chunk
 *	static … const struct as_walk_pool *as_walk_pool(void);
 *	static … int as_walk_read(void *to, uint32_t n, uint64_t avma);
 *		0: all n bytes were read
 *	static … int as_walk_vma(struct as_walk *w, uint64_t avma);
 *		asks the kernel for a mapping the pool lacks; 0: w->vma holds it
 *
 * Every index is masked to a power of two, so that neither the verifier nor damaged tables need
 * more checks: a wrong table yields a wrong frame, never a wrong access. Searches are free of
 * data dependent branches (as_walk_le), which keeps the verifier's paths few and the CPU's
 * guesses right.
 */
#ifndef AS_COLLECT_BPF_WALK_BPF_H
#define AS_COLLECT_BPF_WALK_BPF_H

#include "abi/bpf_sample.h"
#include "abi/stack_end.h"
#include "abi/unwind_table.h"

#define AS_WALK_INLINE    static inline __attribute__((always_inline))
#define AS_WALK_ROW_STEPS 11 /* a page of 1 KiB has at most 1,024 rows */
#define AS_WALK_MAP_STEPS 18 /* a process has at most POOL_MAPPINGS mappings */

struct as_walk_record {
	struct as_bpf_sample head;
	uint64_t word[AS_BPF_WORDS + AS_BPF_COPY_STEP / 8];
};

/* One per CPU; too large for the BPF stack. */
struct as_walk {
	uint64_t pc, sp, fp; /* of the frame to look at next */
	uint32_t n;          /* user frames so far */
	uint32_t dec;        /* 1: pc is a return address, looked up at pc - 1 */
	uint32_t leaf;       /* leaf_reg holds this frame's registers */
	uint32_t last;       /* where the last mapping was found, from the process's base */
	uint32_t end, done;
	uint32_t use_vma; /* the kernel was not asked for a mapping yet: once per sample */
	uint32_t reserved;
	struct as_bpf_process process;
	struct as_bpf_mapping vma; /* size_bytes 0: none */
	struct as_bpf_rule cur;
	uint64_t reg[32], leaf_reg[32]; /* DWARF numbers; 0..16 are used */
	uint64_t hits;
	struct as_walk_record rec;
	struct as_bpf_rule cache[AS_BPF_CACHE];
};

/* All ones when a <= b, else 0; for values below 2^63. */
AS_WALK_INLINE uint64_t as_walk_le(uint64_t a, uint64_t b)
{
	return (uint64_t)((int64_t)(a - b - 1) >> 63);
}

AS_WALK_INLINE void as_walk_push(struct as_walk *w, uint64_t frame)
{
	w->rec.word[(w->rec.head.nkernel + w->n) & (AS_BPF_WORDS - 1)] = frame;
	w->n++;
}

AS_WALK_INLINE int as_walk_stop(struct as_walk *w, enum as_stack_end end)
{
	w->end = end;
	w->done = 1;
	return 1;
}

/* Puts registers in place; the first frame's pc is exact. */
AS_WALK_INLINE void as_walk_begin(struct as_walk *w)
{
	w->pc = w->reg[16];
	w->sp = w->reg[7];
	w->fp = w->reg[6];
	w->n = 0;
	w->dec = 0;
	w->leaf = 1;
	w->last = 0;
	w->end = AS_END_DEPTH;
	w->done = 0;
	w->hits = 0;
	w->rec.head.by_fp = 0;
	w->vma.size_bytes = 0;
	for (int i = 0; i < AS_BPF_NREGS; i++)
		w->leaf_reg[i] = w->reg[i];
}

/* The rule's word offset for svma in the segment at word `t` of its chunk. False: no row. */
AS_WALK_INLINE int as_walk_row(const struct as_walk_chunk *c, uint32_t t, uint64_t svma,
			       uint32_t *ret_rule)
{
	const uint32_t mask = AS_BPF_CHUNK_WORDS - 1;
	uint32_t page = (uint32_t)(svma >> AS_UT_PAGE_SHIFT) - c->w[(t + 1) & mask];

	if (page >= c->w[(t + 2) & mask])
		return 0;
	uint32_t at = t + AS_UT_SEG_HEAD_WORDS + page;
	uint32_t lo = c->w[at & mask], hi = c->w[(at + 1) & mask];
	uint32_t b = t + lo, len = hi - lo;
	uint64_t key = (uint32_t)(svma << (32 - AS_UT_PAGE_SHIFT)) | AS_UT_RULE_MASK;

	/* the number of rows <= key; the one before may belong to an earlier page */
	for (int i = 0; i < AS_WALK_ROW_STEPS; i++) {
		if (!len)
			break;
		uint32_t half = len >> 1;
		uint32_t m = (uint32_t)as_walk_le(c->w[(b + half) & mask], key);
		b += (half + 1) & m;
		len = (half & ~m) | ((len - half - 1) & m);
	}
	uint32_t rule = c->w[(b - 1) & mask] & AS_UT_RULE_MASK;
	*ret_rule = t + c->w[(t + 3) & mask] + 2 * rule;
	return 1;
}

/* The mapping of the process that holds avma; NULL: none known. */
AS_WALK_INLINE const struct as_bpf_mapping *as_walk_mapping(struct as_walk *w, uint64_t avma)
{
	const uint32_t mask = AS_BPF_POOL_MAPPINGS - 1;
	const struct as_walk_pool *pool = as_walk_pool();

	if (!pool || !w->process.n)
		return 0;
	const struct as_bpf_mapping *m = &pool->m[(w->process.base + w->last) & mask];
	if (avma - m->start_avma < m->size_bytes)
		return m;
	uint32_t b = 0, len = w->process.n;
	for (int i = 0; i < AS_WALK_MAP_STEPS; i++) {
		uint32_t half = len >> 1;
		if (!half)
			break;
		uint64_t v = pool->m[(w->process.base + b + half) & mask].start_avma;
		b += half & (uint32_t)as_walk_le(v, avma);
		len -= half;
	}
	m = &pool->m[(w->process.base + b) & mask];
	if (avma - m->start_avma >= m->size_bytes)
		return 0;
	w->last = b;
	return m;
}

/* Fills w->cur for avma. Non-zero: the walk ends here (the frame is pushed). */
AS_WALK_INLINE int as_walk_find_rule(struct as_walk *w, uint64_t avma)
{
	const struct as_bpf_mapping *m = as_walk_mapping(w, avma);

	if (!m) {
		m = &w->vma;
		if (avma - m->start_avma >= m->size_bytes && as_walk_vma(w, avma)) {
			as_walk_push(w, (w->pc & AS_BPF_FRAME_ADDR_MASK) |
						(w->dec ? 0 : AS_BPF_FRAME_EXACT));
			return as_walk_stop(w, w->process.n ? AS_END_NOMAP : AS_END_NOPROC);
		}
	}
	uint64_t svma = avma - m->bias;
	w->cur.key = avma;
	w->cur.generation = m == &w->vma ? 0 : w->process.generation;
	w->cur.frame = ((uint64_t)m->module << AS_BPF_FRAME_MODULE_SHIFT) |
		       ((m->module ? svma : avma) & AS_BPF_FRAME_ADDR_MASK);
	w->cur.w0 = AS_UT_CFA_NONE;
	w->cur.w1 = 0;
	uint32_t table = m->table, rule;
	const struct as_walk_chunk *c = as_walk_chunk(m->chunk);
	if (c && as_walk_row(c, table, svma, &rule)) {
		w->cur.w0 = c->w[rule & (AS_BPF_CHUNK_WORDS - 1)];
		w->cur.w1 = (int32_t)c->w[(rule + 1) & (AS_BPF_CHUNK_WORDS - 1)];
	}
	return 0;
}

/* Everything the interrupted code had is in the ucontext the trampoline's sp points at. */
AS_WALK_INLINE int as_walk_signal(struct as_walk *w)
{
	/* r8-r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, at 40 */
	uint64_t g[17];

	if (as_walk_read(g, sizeof(g), w->sp + 40))
		return as_walk_stop(w, AS_END_FAULT);
	if (!g[16])
		return as_walk_stop(w, AS_END_BAD);
	for (int i = 0; i < 8; i++)
		w->leaf_reg[8 + i] = g[i];
	w->leaf_reg[5] = g[8];
	w->leaf_reg[4] = g[9];
	w->leaf_reg[6] = g[10];
	w->leaf_reg[3] = g[11];
	w->leaf_reg[1] = g[12];
	w->leaf_reg[0] = g[13];
	w->leaf_reg[2] = g[14];
	w->leaf_reg[7] = g[15];
	w->leaf_reg[16] = g[16];
	w->fp = g[10];
	w->sp = g[15];
	w->pc = g[16];
	w->dec = 0;
	w->leaf = 1;
	return 0;
}

/* The canonical frame address by rule (w0, w1). Non-zero: the walk ends here. */
AS_WALK_INLINE int as_walk_cfa(struct as_walk *w, uint32_t w0, int32_t w1, uint64_t *ret)
{
	uint32_t kind = w0 & 0xff;
	uint64_t cfa;

	if (kind == AS_UT_CFA_SP) {
		*ret = w->sp + (int64_t)w1;
		return 0;
	}
	if (kind == AS_UT_CFA_FP) {
		if (!w->fp) /* unknown: only the full CFI may help */
			return as_walk_stop(w, AS_END_EXPR);
		*ret = w->fp + (int64_t)w1;
		return 0;
	}
	if (kind == AS_UT_CFA_PLT) {
		*ret = w->sp + 8 + (((w->pc & 15) >= (uint32_t)w1) ? 8 : 0);
		return 0;
	}
	if (kind == AS_UT_CFA_DEREF_SP || kind == AS_UT_CFA_DEREF_FP) {
		uint64_t at =
			(kind == AS_UT_CFA_DEREF_SP ? w->sp : w->fp) + (int16_t)(w1 & 0xffff);
		if (as_walk_read(&cfa, 8, at))
			return as_walk_stop(w, AS_END_FAULT);
		*ret = cfa + ((uint32_t)w1 >> 16 & 0x7fff);
		return 0;
	}
	if (kind == AS_UT_CFA_REG && w->leaf) {
		*ret = w->leaf_reg[w0 >> 24 & 31] + (int64_t)w1;
		return 0;
	}
	if (kind == AS_UT_CFA_END)
		return as_walk_stop(w, AS_END_ROOT);
	return as_walk_stop(w, AS_END_EXPR);
}

/* Out of code without a rule. Within the first 64 frames: the tool checks each of them. */
AS_WALK_INLINE int as_walk_frame_pointer(struct as_walk *w)
{
	uint64_t g[2];

	if (!w->fp || w->fp & 7 || w->fp < w->sp || w->n >= 64 ||
	    as_walk_read(g, sizeof(g), w->fp) || !g[1])
		return as_walk_stop(w, AS_END_NOCFI);
	w->rec.head.by_fp |= 1ull << (w->n & 63);
	w->sp = w->fp + 16;
	w->fp = g[0];
	w->pc = g[1];
	w->dec = 1;
	w->leaf = 0;
	return 0;
}

/* The caller's fp and the return address, from memory. Non-zero: the walk ends here. */
AS_WALK_INLINE int as_walk_saved(struct as_walk *w, uint32_t w0, uint64_t cfa, uint64_t *ret_fp,
				 uint64_t *ret_ra)
{
	uint32_t kind = w0 >> 8 & 0xff;
	/* REG rules have none: their register stands there */
	int64_t off = (int16_t)(w0 >> 16);
	uint64_t g[2], fp = w->fp;
	int bad;

	if (kind == AS_UT_FP_CFA && off == -16) {
		bad = as_walk_read(g, sizeof(g), cfa - 16);
		fp = g[0];
	} else {
		bad = as_walk_read(&g[1], 8, cfa - 8);
		if (kind == AS_UT_FP_CFA)
			bad |= as_walk_read(&fp, 8, cfa + off);
		else if (kind == AS_UT_FP_MEM)
			bad |= as_walk_read(&fp, 8, w->fp + off);
		else if (kind == AS_UT_FP_UNDEF)
			fp = 0;
	}
	if (bad)
		return as_walk_stop(w, AS_END_FAULT);
	*ret_fp = fp;
	*ret_ra = g[1];
	return 0;
}

/* Records the frame at pc and moves to its caller. Non-zero: the stack has ended, w->end says why. */
AS_WALK_INLINE int as_walk_step(struct as_walk *w)
{
	uint64_t avma = w->pc - w->dec, cfa, fp, ra;
	struct as_bpf_rule *r = &w->cache[(avma ^ avma >> 11) & (AS_BPF_CACHE - 1)];

	if (r->key == avma && r->generation == w->process.generation) {
		w->cur = *r;
		w->hits++;
	} else {
		if (as_walk_find_rule(w, avma))
			return 1;
		if (w->cur.generation)
			*r = w->cur;
	}
	as_walk_push(w, (w->cur.frame + w->dec) | (w->dec ? 0 : AS_BPF_FRAME_EXACT));

	uint32_t w0 = w->cur.w0;
	int32_t w1 = w->cur.w1;
	if ((w0 & 0xff) == AS_UT_CFA_SIGNAL)
		return as_walk_signal(w);
	if ((w0 & 0xff) == AS_UT_CFA_NONE)
		return as_walk_frame_pointer(w);
	if ((w0 & 0xff) == AS_UT_CFA_RAREG) {
		if (!w->leaf)
			return as_walk_stop(w, AS_END_EXPR);
		cfa = w->sp + (int64_t)w1;
		fp = w->fp;
		ra = w->leaf_reg[w0 >> 16 & 31];
	} else {
		if (as_walk_cfa(w, w0, w1, &cfa))
			return 1;
		if (cfa <= w->sp && !w->leaf)
			return as_walk_stop(w, AS_END_BAD);
		if (as_walk_saved(w, w0, cfa, &fp, &ra))
			return 1;
	}
	if (!ra)
		return as_walk_stop(w, AS_END_ROOT);
	w->sp = cfa;
	w->fp = fp;
	w->pc = ra;
	w->dec = 1;
	w->leaf = 0;
	return 0;
}

/*
 * Completes the record: the frame a too deep walk stopped before, and for stacks that did not
 * end at their root what the recorder needs to go on. Returns the record's size in bytes.
 */
AS_WALK_INLINE uint32_t as_walk_finish(struct as_walk *w)
{
	if (!w->done)
		as_walk_push(w, w->pc & AS_BPF_FRAME_ADDR_MASK);
	uint32_t at = w->rec.head.nkernel + w->n;
	w->rec.head.nuser = (uint16_t)w->n;
	w->rec.head.end = (uint8_t)w->end;
	if (w->end != AS_END_ROOT && w->end != AS_END_NOSTACK) {
		w->rec.head.flags |= AS_BPF_SAMPLE_STATE;
		for (int i = 0; i < AS_BPF_NREGS; i++)
			w->rec.word[(at + i) & (AS_BPF_WORDS - 1)] = w->reg[i];
		at += AS_BPF_NREGS;
		w->rec.word[at & (AS_BPF_WORDS - 1)] = w->pc;
		w->rec.word[(at + 1) & (AS_BPF_WORDS - 1)] = w->sp;
		w->rec.word[(at + 2) & (AS_BPF_WORDS - 1)] = w->fp;
		at += 3;
	}
	at &= AS_BPF_WORDS - 1;
	w->rec.head.words = (uint16_t)at;
	return (uint32_t)sizeof(struct as_bpf_sample) + at * 8;
}

#endif
