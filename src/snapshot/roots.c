/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Where the mark begins: as memcheck, registers, stacks in use and writable mappings. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot/snapshot_priv.h"

#define PAGE         4096ull
#define TLS_BELOW    (1u << 20) /* of a thread's own address: its thread-local variables */
#define TLS_ABOVE    2560u      /* and what the C library knows of it */
#define SEGMENTS_MAX 128u

struct roots {
	struct as_snapshot *s;
	AS_VEC(struct as_leak_range) data; /* writable segments of modules */
};

/* All of it but what is assay's. */
static void add_root(struct as_snapshot *s, uint64_t low, uint64_t high)
{
	as_vec_foreach (r, &s->ours) {
		if (r->low >= high || r->high <= low)
			continue;
		if (r->low > low)
			add_root(s, low, r->low);
		low = r->high;
	}
	if (low < high)
		as_leaks_root(&s->leaks, low, high);
}

static void add_common(struct as_snapshot *s, struct as_leak_range a, uint64_t low,
		       uint64_t high)
{
	add_root(s, AS_MAX(a.low, low), AS_MIN(a.high, high));
}

/* ---- data of modules ---- */

static bool read_at(const struct as_snapshot *s, uint64_t avma, void *ret, size_t n)
{
	struct as_leak_range r = {avma, avma + n};

	return s->memory.read(s->memory.ctx, &r, 1, ret) == n;
}

/* From the program headers, which lie in the first page that is mapped of a file. */
static void find_data(struct roots *q, const struct as_smap *m)
{
	Elf64_Phdr phdr[SEGMENTS_MAX];
	Elf64_Ehdr e;
	uint64_t bias = 0;
	bool have_bias = false;

	if (!read_at(q->s, m->low, &e, sizeof e) || memcmp(e.e_ident, ELFMAG, SELFMAG) ||
	    e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_phentsize != sizeof *phdr ||
	    e.e_phnum > SEGMENTS_MAX || e.e_phoff > PAGE ||
	    !read_at(q->s, m->low + e.e_phoff, phdr, e.e_phnum * sizeof *phdr))
		return;
	for (size_t i = 0; i < e.e_phnum; i++) {
		const Elf64_Phdr *p = &phdr[i];

		if (p->p_type != PT_LOAD)
			continue;
		if (!have_bias)
			bias = m->low - (p->p_vaddr & ~(PAGE - 1));
		have_bias = true;
		if (p->p_flags & PF_W)
			as_vec_push(&q->data,
				    (struct as_leak_range){bias + p->p_vaddr,
							   bias + p->p_vaddr + p->p_memsz});
	}
}

/* ---- roots ---- */

/* Blocks with mappings of their own, whole pages: what is around them is no data. */
static void add_around_blocks(struct as_snapshot *s, const struct as_area *a, uint64_t low,
			      uint64_t high)
{
	for (size_t i = a->first_block; i < a->end_block; i++) {
		const struct as_leak_block *b = &s->leaks.blocks.v[i];

		add_root(s, low, AS_MIN(high, b->low & ~(PAGE - 1)));
		low = AS_MAX(low, (b->low + b->bytes + PAGE - 1) & ~(PAGE - 1));
	}
	add_root(s, low, high);
}

static void add_other(struct as_snapshot *s, const struct as_smap *m, const struct as_area *a)
{
	uint64_t low = AS_MAX(m->low, a->dead_end);

	if (a->stack_high)
		low = a->stack_low;
	if (a->arena == AS_ARENA_MAPPED)
		add_around_blocks(s, a, low, m->high);
	else
		add_root(s, low, m->high);
}

static void add_allocators(const struct roots *q, const struct as_smap *m,
			   const struct as_area *a)
{
	struct as_leak_range map = {m->low, m->high};

	add_common(q->s, map, a->stack_low, a->stack_high);
	for (size_t i = as_snapshot_first_range(q->s, m->low);
	     i < q->s->ranges.n && q->s->ranges.v[i].low < m->high; i++)
		add_common(q->s, map, q->s->ranges.v[i].low, q->s->ranges.v[i].high);
	as_vec_foreach (r, &q->data)
		add_common(q->s, map, r->low, r->high);
	as_vec_foreach (t, &q->s->threads) {
		if (t->fs >= m->low && t->fs < m->high)
			add_common(q->s, map, t->fs - AS_MIN(t->fs, (uint64_t)TLS_BELOW),
				   t->fs + TLS_ABOVE);
	}
}

/* The C library's table of a thread's blocks of thread-local variables is known by a pointer behind its
 * first entry of two words. */
static void add_thread_vector(struct as_snapshot *s, uint64_t thread)
{
	uint64_t vector;
	uint32_t i;

	if (thread && as_snapshot_word(s, thread + 8, &vector) && vector > 16 &&
	    as_leaks_find(&s->leaks, vector - 16, &i) &&
	    s->leaks.blocks.v[i].low == vector - 16)
		as_leaks_root_word(&s->leaks, vector - 16);
}

void as_snapshot_roots(struct as_snapshot *s)
{
	struct roots q = {.s = s};

	as_vec_foreach (m, &s->maps.map) {
		if (m->kind == AS_SMAP_FILE && m->off == 0 && m->read && !m->device)
			find_data(&q, m);
	}
	as_vec_foreach (t, &s->threads) {
		for (uint32_t i = 0; i < t->nwords; i++)
			as_leaks_root_word(&s->leaks, t->word[i]);
		add_thread_vector(s, t->fs);
	}
	for (size_t i = 0; i < s->maps.map.n; i++) {
		const struct as_smap *m = &s->maps.map.v[i];
		const struct as_area *a = &s->area[i];

		if (!m->read || !m->write || m->device || m->kind == AS_SMAP_SPECIAL)
			continue;
		if (a->kind == AS_AREA_ASSAY)
			continue;
		add_thread_vector(s, a->dead_thread);
		if (a->kind == AS_AREA_OTHER || s->partial)
			add_other(s, m, a);
		else
			add_allocators(&q, m, a);
	}
	as_vec_clear(&q.data);
}
