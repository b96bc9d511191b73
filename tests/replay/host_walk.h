/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The in-kernel walker (collect/bpf/walk.bpf.h) on the host: maps are plain memory, user memory
 * comes from a callback. One walker at a time.
 *
 *	struct host_walk *h = host_walk_new(read, ctx);
 *	host_walk_map(h, table, start, end, bias, module);	in ascending order of start
 *	host_walk_run(h, regs, max);
 *	h->w.n frames in h->w.rec.word, reason in h->w.end
 */
#ifndef HOST_WALK_H
#define HOST_WALK_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "base/mem.h"
#include "unwind/table.h"
#include "unwind/unwind.h"
#include "abi/bpf_sample.h"

struct as_walk_chunk {
	uint32_t w[AS_BPF_CHUNK_WORDS];
};
struct as_walk_pool {
	struct as_bpf_mapping m[AS_BPF_POOL_MAPPINGS];
};
struct as_walk;
static const struct as_walk_chunk *as_walk_chunk(uint32_t chunk);
static const struct as_walk_pool *as_walk_pool(void);
static int as_walk_read(void *to, uint32_t n, uint64_t avma);
static int as_walk_vma(struct as_walk *w, uint64_t avma);

#include "collect/bpf/walk.bpf.h"

#define HOST_CHUNKS 16
typedef int host_read_fn(void *ctx, uint64_t avma, void *out, size_t n);

struct host_walk {
	struct as_walk w;
	struct as_walk_pool *pool;
	struct as_walk_chunk *chunk[HOST_CHUNKS];
	uint32_t used[HOST_CHUNKS];
	struct {
		const struct as_utable *table;
		uint32_t chunk[8], word[8];
	} placed[256];
	size_t nplaced;
	host_read_fn *read;
	void *ctx;
};
static struct host_walk *host_now; /* whose emulated maps the walker sees */

static const struct as_walk_chunk *as_walk_chunk(uint32_t chunk)
{
	return chunk < HOST_CHUNKS ? host_now->chunk[chunk] : NULL;
}
static const struct as_walk_pool *as_walk_pool(void)
{
	return host_now->pool;
}
static int as_walk_read(void *to, uint32_t n, uint64_t avma)
{
	return host_now->read(host_now->ctx, avma, to, n);
}
static int as_walk_vma(struct as_walk *w, uint64_t avma)
{
	(void)w;
	(void)avma;
	return 1;
}

static inline struct host_walk *host_walk_new(host_read_fn *read, void *ctx)
{
	struct host_walk *h = as_xcalloc(1, sizeof(*h));
	h->pool = as_xcalloc(1, sizeof(*h->pool));
	h->read = read;
	h->ctx = ctx;
	h->w.process.generation = 1;
	return h;
}

static inline void host_walk_free(struct host_walk *h)
{
	for (size_t i = 0; i < HOST_CHUNKS; i++)
		free(h->chunk[i]);
	free(h->pool);
	free(h);
}

static inline size_t host_place(struct host_walk *h, const struct as_utable *t)
{
	for (size_t i = 0; i < h->nplaced; i++)
		if (h->placed[i].table == t)
			return i;
	size_t at = h->nplaced++;
	h->placed[at].table = t;
	for (uint32_t i = 0; i < t->nsegs && i < 8; i++) {
		const uint8_t *dir = t->blob + 32 + (size_t)16 * i;
		uint32_t words = as_get_le32(dir + 12), c = 0;
		while (h->chunk[c] && AS_BPF_CHUNK_WORDS - h->used[c] < words)
			c++;
		if (!h->chunk[c])
			h->chunk[c] = as_xcalloc(1, sizeof(*h->chunk[c]));
		memcpy(h->chunk[c]->w + h->used[c], t->blob + as_get_le32(dir + 8),
		       (size_t)words * 4);
		h->placed[at].chunk[i] = c;
		h->placed[at].word[i] = h->used[c];
		h->used[c] += words;
	}
	return at;
}

static inline void host_add(struct host_walk *h, const struct as_bpf_mapping *m)
{
	h->pool->m[h->w.process.n++] = *m;
}

static inline void host_walk_map(struct host_walk *h, const struct as_utable *t, uint64_t start,
				 uint64_t end, uint64_t bias, uint32_t module)
{
	struct as_bpf_mapping m = {.start_avma = start,
				   .bias = bias,
				   .module = (uint16_t)(module + 1),
				   .chunk = AS_BPF_NO_CHUNK};
	size_t at = t ? host_place(h, t) : 0;
	for (uint32_t i = 0; t && i < t->nsegs && i < 8; i++) {
		const uint8_t *dir = t->blob + 32 + (size_t)16 * i;
		uint64_t from = ((uint64_t)as_get_le32(dir) << AS_UT_PAGE_SHIFT) + bias;
		uint64_t to = from + ((uint64_t)as_get_le32(dir + 4) << AS_UT_PAGE_SHIFT);
		if (to <= m.start_avma || from >= end)
			continue;
		if (from > m.start_avma) { /* before the table's first page */
			m.size_bytes = from - m.start_avma;
			host_add(h, &m);
			m.start_avma = from;
		}
		struct as_bpf_mapping seg = m;
		seg.size_bytes = AS_MIN(to, end) - m.start_avma;
		seg.chunk = (uint16_t)h->placed[at].chunk[i];
		seg.table = h->placed[at].word[i];
		host_add(h, &seg);
		m.start_avma = AS_MIN(to, end);
	}
	if (m.start_avma < end) {
		m.size_bytes = end - m.start_avma;
		host_add(h, &m);
	}
}

static inline void host_walk_run(struct host_walk *h, const struct as_uregs *regs, uint32_t max)
{
	host_now = h;
	memcpy(h->w.reg, regs->r, AS_BPF_NREGS * 8);
	h->w.rec.head = (struct as_bpf_sample){0};
	as_walk_begin(&h->w);
	for (uint32_t i = 0; i < max; i++)
		if (as_walk_step(&h->w))
			break;
	(void)as_walk_finish(&h->w); /* the size only matters to the ring buffer */
}

#endif
