/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What each writable mapping is. An allocator's memory must not be a root: what it keeps of freed blocks
 * still holds pointers. It is known by the live blocks in it, and glibc's by the shape of its heaps (64 MiB
 * apart, each with a head that names its arena), so that one without a live block is known, too.
 */
#include <stdlib.h>
#include <string.h>

#include "snapshot/snapshot_priv.h"

#define HEAP_ALIGN  (64ull << 20) /* of glibc's heaps */
#define PAGE        4096ull
#define BLOCK_ALONE (64u << 10) /* a block from here on may have a mapping of its own */
#define CHUNK_WORDS 8192u
#define TCB_BYTES   4096u /* from the thread's own address to the end of its stack */
#define MAPPED_FLAG 2u    /* of a chunk's size: it has a mapping of its own */
#define ALONE_MAX   64u   /* blocks of a mapping that are asked one by one */

bool as_snapshot_word(const struct as_snapshot *s, uint64_t avma, uint64_t *ret)
{
	struct as_leak_range r = {avma, avma + sizeof *ret};

	return s->memory.read(s->memory.ctx, &r, 1, ret) == sizeof *ret;
}

size_t as_snapshot_first_range(const struct as_snapshot *s, uint64_t avma)
{
	size_t lo = 0, hi = s->ranges.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (s->ranges.v[mid].high <= avma)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool is_ours(const struct as_snapshot *s, const struct as_smap *m)
{
	as_vec_foreach (r, &s->ours) {
		if (m->low >= r->low && m->high <= r->high)
			return true;
	}
	return false;
}

/* ---- stacks ---- */

static void find_stacks(struct as_snapshot *s)
{
	as_vec_foreach (t, &s->threads) {
		struct as_smap *m = as_smaps_find(&s->maps, t->sp);
		struct as_area *a;
		uint64_t low, high;

		if (!m)
			continue;
		a = &s->area[m - s->maps.map.v];
		low = AS_MAX(m->low, t->sp);
		high = t->fs > t->sp && t->fs < m->high ? AS_MIN(m->high, t->fs + TCB_BYTES)
							: m->high;
		if (a->stack_low == a->stack_high) {
			a->stack_low = low;
			a->stack_high = high;
		} else {
			a->stack_low = AS_MIN(a->stack_low, low);
			a->stack_high = AS_MAX(a->stack_high, high);
		}
	}
}

static bool is_thread(const struct as_snapshot *s, uint64_t fs)
{
	as_vec_foreach (t, &s->threads) {
		if (t->fs == fs)
			return true;
	}
	return false;
}

/* A thread's own address, which stands at its first word and (glibc) at its third. 0: none. */
static uint64_t find_tcb(const struct as_snapshot *s, uint64_t low, const uint64_t *word,
			 size_t n)
{
	for (size_t i = 0; i + 2 < n; i++) {
		uint64_t at = low + i * 8;

		if (word[i] == at && at % 16 == 0 && word[i + 2] == at && !is_thread(s, at))
			return at;
	}
	return 0;
}

/* glibc keeps stacks of threads that have ended for the next ones: with a guard below, and with what
 * described the thread at their upper end. */
static uint64_t dead_thread(const struct as_snapshot *s, size_t i)
{
	const struct as_smap *m = &s->maps.map.v[i], *below = i ? m - 1 : NULL;
	AS_CLEANUP(as_free_autop) uint64_t *word = NULL;
	uint64_t low = m->low, tcb = 0;
	struct as_leak_range part;

	if (!below || below->high != m->low || below->read || below->write ||
	    m->kind != AS_SMAP_ANONYMOUS || s->area[i].stack_high)
		return 0;
	word = as_xmalloc(CHUNK_WORDS * sizeof *word);
	while (!tcb && as_smap_next(m, low, m->high, &part)) {
		part.high = AS_MIN(part.high, part.low + CHUNK_WORDS * sizeof *word);
		if (s->memory.read(s->memory.ctx, &part, 1, word) == part.high - part.low)
			tcb = find_tcb(s, part.low, word, (part.high - part.low) / 8);
		low = part.high;
	}
	return tcb;
}

/* ---- allocators ---- */

static uint32_t arena_number(struct as_snapshot *s, uint64_t state)
{
	for (size_t i = 0; i < s->arenas.n; i++) {
		if (s->arenas.v[i] == state)
			return (uint32_t)i + AS_ARENA_FIRST;
	}
	as_vec_push(&s->arenas, state);
	return (uint32_t)s->arenas.n - 1 + AS_ARENA_FIRST;
}

/* Head of a heap of glibc: state of its arena, heap before, size, size that is writable. */
static uint32_t glibc_heap(struct as_snapshot *s, const struct as_smap *m)
{
	struct as_leak_range r = {m->low, m->low + 32};
	uint64_t w[4];
	const struct as_smap *state;

	if (m->low % HEAP_ALIGN || m->kind != AS_SMAP_ANONYMOUS ||
	    s->memory.read(s->memory.ctx, &r, 1, w) != sizeof w)
		return 0;
	state = as_smaps_find(&s->maps, w[0]);
	if (!state || !state->write || w[1] % HEAP_ALIGN || w[2] < PAGE || w[2] % PAGE ||
	    w[2] > HEAP_ALIGN || w[3] > HEAP_ALIGN)
		return 0;
	if (!w[1] && w[0] - m->low > 256)
		return 0; /* the first heap of an arena has its state behind the head */
	return arena_number(s, w[0]);
}

/* Whether the block has a mapping of its own. */
static bool is_alone(const struct as_snapshot *s, const struct as_leak_block *b)
{
	uint64_t size;

	if (b->bytes >= BLOCK_ALONE)
		return true;
	return s->is_glibc && b->low % PAGE == 16 && as_snapshot_word(s, b->low - 8, &size) &&
	       size & MAPPED_FLAG;
}

static bool are_alone(const struct as_snapshot *s, const struct as_area *a)
{
	if (a->end_block - a->first_block > ALONE_MAX) {
		for (size_t i = a->first_block; i < a->end_block; i++) {
			if (s->leaks.blocks.v[i].bytes < BLOCK_ALONE)
				return false;
		}
		return true;
	}
	for (size_t i = a->first_block; i < a->end_block; i++) {
		if (!is_alone(s, &s->leaks.blocks.v[i]))
			return false;
	}
	return true;
}

/* A program's own pool, in memory that it has mapped, is its own although blocks may lie in it. */
static bool is_programs(const struct as_snapshot *s, const struct as_smap *m)
{
	size_t i = as_snapshot_first_range(s, m->low);

	return i < s->ranges.n && s->ranges.v[i].low <= m->low &&
	       s->ranges.v[i].high >= m->high;
}

static void find_kind(struct as_snapshot *s, size_t i)
{
	const struct as_smap *m = &s->maps.map.v[i];
	struct as_area *a = &s->area[i];

	if (is_ours(s, m)) {
		a->kind = AS_AREA_ASSAY;
	} else if (m->kind == AS_SMAP_HEAP) {
		a->kind = AS_AREA_ALLOCATOR;
		a->arena = s->is_glibc ? AS_ARENA_MAIN : 0;
	} else if (m->write && (a->arena = glibc_heap(s, m))) {
		a->kind = AS_AREA_ALLOCATOR;
	} else if (a->first_block == a->end_block || is_programs(s, m)) {
		a->kind = AS_AREA_OTHER;
	} else if (are_alone(s, a)) {
		a->arena = AS_ARENA_MAPPED;
	} else {
		a->kind = AS_AREA_ALLOCATOR;
	}
}

void as_snapshot_areas(struct as_snapshot *s)
{
	const struct as_leak_block *b = s->leaks.blocks.v;
	size_t n = s->leaks.blocks.n, at = 0;

	s->area = as_xcalloc(s->maps.map.n + 1, sizeof *s->area);
	find_stacks(s);
	for (size_t i = 0; i < s->maps.map.n; i++) {
		const struct as_smap *m = &s->maps.map.v[i];
		struct as_area *a = &s->area[i];

		while (at < n && b[at].low < m->low)
			at++;
		a->first_block = at;
		while (at < n && b[at].low < m->high)
			at++;
		a->end_block = at;
		find_kind(s, i);
		if (m->huge && m->write)
			s->leaks.unread_bytes += m->rss_bytes;
		if (m->read && m->write && a->kind == AS_AREA_OTHER)
			a->dead_thread = dead_thread(s, i);
		if (a->dead_thread)
			a->dead_end = AS_MIN(m->high, a->dead_thread + TCB_BYTES);
	}
}
