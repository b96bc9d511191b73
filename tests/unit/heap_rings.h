/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Rings as the in-target runtime writes them (abi/rt.h), for tests. Include after cmocka.h.
 *
 *	struct rings r;
 *	rings_init(&r, 8, 64 << 10);
 *	rings_thread(&r, 0, pid, tid);
 *	node = rings_node(&r, 0, parent, avma, 0, AS_END_ROOT);
 *	rings_alloc(&r, 0, ptr, size, node);
 *	rings_clear(&r);
 *
 * A ring that is full drops the record and counts it, as the runtime does; then nodes start anew.
 */
#ifndef AS_TESTS_HEAP_RINGS_H
#define AS_TESTS_HEAP_RINGS_H

#include <stdlib.h>
#include <string.h>
#include "heap/drain.h"

struct rings {
	struct as_heap_area area;
	uint64_t told_ns[AS_RT_CONTEXTS]; /* newest TIME in the ring */
	uint32_t next_node[AS_RT_CONTEXTS];
	bool lost[AS_RT_CONTEXTS]; /* since the last RESET */
	uint32_t serial[AS_RT_CONTEXTS];
	uint64_t stamp; /* the last one given out */
};

static inline void rings_init(struct rings *r, uint32_t n, uint32_t bytes)
{
	memset(r, 0, sizeof *r);
	r->area.control = as_xcalloc(1, AS_RT_CONTROL_BYTES);
	r->area.rings = as_xcalloc(n, AS_RT_RING_HEAD_BYTES + (size_t)bytes);
	r->area.ring_bytes = bytes;
	r->area.context_max = r->area.control->rings_top = n;
}

static inline void rings_clear(struct rings *r)
{
	free(r->area.control);
	free(r->area.rings);
}

static inline struct as_rt_ring *rings_ring(const struct rings *r, uint32_t i)
{
	return (struct as_rt_ring *)((uint8_t *)r->area.rings +
				     i * (AS_RT_RING_HEAD_BYTES + (size_t)r->area.ring_bytes));
}

static inline void rings_put(struct rings *r, uint32_t i, uint64_t at, const void *rec,
			     size_t n)
{
	uint8_t *data = (uint8_t *)rings_ring(r, i) + AS_RT_RING_HEAD_BYTES;

	for (size_t k = 0; k < n; k++)
		data[(at + k) & (r->area.ring_bytes - 1)] = ((const uint8_t *)rec)[k];
}

/* Space for a record, which is not there yet. UINT64_MAX: it was dropped. */
static inline uint64_t rings_reserve(struct rings *r, uint32_t i, uint8_t kind, size_t n)
{
	struct as_rt_ring *ring = rings_ring(r, i);
	uint64_t at = ring->pos;

	if (at + n - ring->consumed > r->area.ring_bytes - AS_RT_RING_SLACK) {
		ring->lost[kind]++;
		r->lost[i] = true;
		return UINT64_MAX;
	}
	ring->pos += n;
	return at;
}

static inline void rings_publish(struct rings *r, uint32_t i, uint64_t at, void *rec, size_t n)
{
	struct as_rt_head *h = rec;

	h->units = (uint8_t)(n / 16);
	h->tag = (uint32_t)(at >> 4);
	rings_put(r, i, at, rec, n);
}

static inline bool rings_write(struct rings *r, uint32_t i, void *rec, size_t n)
{
	uint64_t at = rings_reserve(r, i, ((struct as_rt_head *)rec)->kind, n);

	if (at == UINT64_MAX)
		return false;
	rings_publish(r, i, at, rec, n);
	return true;
}

#define RINGS_HEAD(k)                                                                          \
	{                                                                                      \
		.kind = AS_RT_REC_##k, .hook = 1                                               \
	}

static inline void rings_thread(struct rings *r, uint32_t i, uint32_t pid, uint32_t tid)
{
	struct as_rt_rec_thread rec = {RINGS_HEAD(THREAD), .stamp = ++r->stamp, .tid = tid,
				       .pid = pid, .clock_ns = r->area.control->clock_ns};

	r->area.control->owner[i] = tid;
	rings_ring(r, i)->tid = tid;
	rings_ring(r, i)->pid = pid;
	r->told_ns[i] = rec.clock_ns;
	r->next_node[i] = 1;
	(void)rings_write(r, i, &rec, sizeof rec);
}

/* Before each event. True: nodes start anew. */
static inline bool rings_time(struct rings *r, uint32_t i)
{
	struct as_rt_rec_time rec = {RINGS_HEAD(TIME), .stamp = ++r->stamp,
				     .clock_ns = r->area.control->clock_ns,
				     .serial = r->serial[i]};
	struct as_rt_rec_reset reset = {RINGS_HEAD(RESET)};
	bool anew = false;

	if (r->lost[i] && rings_write(r, i, &reset, sizeof reset)) {
		r->lost[i] = false;
		r->next_node[i] = 1;
		anew = true;
	}
	if (rec.clock_ns != r->told_ns[i] && rings_write(r, i, &rec, sizeof rec))
		r->told_ns[i] = rec.clock_ns;
	return anew;
}

static inline uint32_t rings_node(struct rings *r, uint32_t i, uint32_t parent, uint64_t avma,
				  uint32_t end)
{
	struct as_rt_rec_node rec = {RINGS_HEAD(NODE), .id = r->next_node[i]++,
				     .parent = parent, .avma = avma, .end = end};

	return rings_write(r, i, &rec, sizeof rec) ? rec.id : 0;
}

static inline struct as_rt_rec_alloc rings_alloc_record(struct rings *r, uint32_t i,
							uint64_t ptr, uint64_t size,
							uint32_t node)
{
	return (struct as_rt_rec_alloc){RINGS_HEAD(ALLOC), .stamp = ++r->stamp,
					.ptr = ptr,        .size_bytes = size,
					.node = node,      .serial = r->serial[i] += ptr != 0};
}

static inline bool rings_alloc(struct rings *r, uint32_t i, uint64_t ptr, uint64_t size,
			       uint32_t node)
{
	struct as_rt_rec_alloc rec = rings_alloc_record(r, i, ptr, size, node);

	return rings_write(r, i, &rec, sizeof rec);
}

static inline bool rings_free(struct rings *r, uint32_t i, uint64_t ptr)
{
	struct as_rt_rec_free rec = {RINGS_HEAD(FREE), .stamp = ++r->stamp, .ptr = ptr,
				     .serial = r->serial[i]};

	return rings_write(r, i, &rec, sizeof rec);
}

static inline bool rings_begin(struct rings *r, uint32_t i, uint64_t ptr)
{
	struct as_rt_rec_realloc_begin rec = {RINGS_HEAD(REALLOC_BEGIN), .stamp = ++r->stamp,
					      .ptr = ptr};

	return rings_write(r, i, &rec, sizeof rec);
}

static inline bool rings_realloc(struct rings *r, uint32_t i, const struct as_heap_change *c,
				 uint32_t node)
{
	struct as_rt_rec_realloc rec = {RINGS_HEAD(REALLOC),
					.stamp = ++r->stamp,
					.old = c->old_ptr,
					.new_ptr = c->new_ptr,
					.size_bytes = c->size_bytes,
					.node = node,
					.serial = r->serial[i] += c->new_ptr != 0};

	return rings_write(r, i, &rec, sizeof rec);
}

#endif
