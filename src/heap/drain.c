/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rings merged into one order: see drain.h. */
#include "heap/drain.h"

#include <stdlib.h>
#include <string.h>
#include "heap/drain_priv.h"

/* A writer may be preempted between reserving and writing; so long it is waited for. */
#define STALL_NS   20000000ull
#define TELL_BYTES 8192u

enum {
	TICK_RECORDS = 1024,
	/* of a round: then rings are given back, and others may have the drain */
	ROUND_RECORDS = 1 << 17,
};

struct as_heap_drain *as_heap_drain_new(const struct as_heap_area *area,
					const struct as_heap_host *host,
					struct as_heap_stacks *stacks)
{
	struct as_heap_drain *d = as_xcalloc(1, sizeof *d);

	d->area = *area;
	d->area.context_max = AS_MIN(area->context_max, (uint32_t)AS_RT_CONTEXTS);
	d->host = *host;
	d->stacks = stacks;
	d->ring_of = as_xcalloc(AS_RT_CONTEXTS, sizeof *d->ring_of);
	d->freed = as_xcalloc(AS_DRAIN_FREED, sizeof *d->freed);
	d->lost_of = as_xcalloc(AS_RT_CONTEXTS, sizeof *d->lost_of);
	d->mark_made = area->control->mark_made;
	return d;
}

static void clear_ring(struct as_drain_ring *r)
{
	as_vec_clear(&r->nodes);
	as_vec_clear(&r->once);
}

void as_heap_drain_free(struct as_heap_drain *d)
{
	if (!d)
		return;
	as_vec_foreach (r, &d->rings)
		clear_ring(r);
	as_vec_foreach (p, &d->processes) {
		as_map64_clear(&p->frame_of);
		as_map64_clear(&p->thread_of);
		as_vec_clear(&p->pub.hook_events);
	}
	as_vec_clear(&d->rings);
	as_vec_clear(&d->processes);
	as_vec_clear(&d->path);
	as_vec_clear(&d->shown);
	free(d->ring_of);
	free(d->lost_of);
	free(d->freed);
	as_vec_clear(&d->odd);
	free(d);
}

/* ---- a ring ---- */

static uint64_t pos_of(const struct as_drain_ring *r)
{
	return __atomic_load_n(&r->ring->pos, __ATOMIC_ACQUIRE);
}

static const uint8_t *unit_at(const struct as_heap_drain *d, const struct as_drain_ring *r,
			      uint64_t at)
{
	return r->data + (at & (d->area.ring_bytes - 1));
}

/* The head at `at`, when what it heads is finished. */
static bool head_at(const struct as_heap_drain *d, const struct as_drain_ring *r, uint64_t at,
		    struct as_rt_head *ret)
{
	uint64_t word = __atomic_load_n((const uint64_t *)unit_at(d, r, at), __ATOMIC_ACQUIRE);

	memcpy(ret, &word, sizeof *ret);
	return ret->tag == (uint32_t)(at >> 4) && ret->kind != AS_RT_REC_NONE;
}

static void read_record(const struct as_heap_drain *d, const struct as_drain_ring *r,
			const struct as_rt_head *head, union as_drain_record *ret)
{
	uint32_t units = AS_MIN(head->units, (uint32_t)sizeof *ret / 16);

	for (uint32_t i = 0; i < units; i++)
		memcpy((uint8_t *)ret + 16 * (size_t)i, unit_at(d, r, r->at + 16 * (uint64_t)i),
		       16);
	ret->head = *head;
}

/* Each write takes the line away from the target's processor: not for each record. */
static void tell_consumed(struct as_drain_ring *r)
{
	r->told = r->at;
	__atomic_store_n(&r->ring->consumed, r->at, __ATOMIC_RELEASE);
}

static void advance(struct as_drain_ring *r, uint64_t to)
{
	r->at = to;
	if (to - r->told >= TELL_BYTES)
		tell_consumed(r);
}

static void note_bad(struct as_heap_drain *d, const struct as_drain_ring *r, bool hole)
{
	if (r->process == AS_HEAP_NONE)
		return;
	if (hole)
		d->processes.v[r->process].pub.holes++;
	else
		d->processes.v[r->process].pub.bad++;
}

/* At a record that is not finished. True: there is another behind it, where it will not come. */
static bool skip_hole(struct as_heap_drain *d, struct as_drain_ring *r)
{
	struct as_rt_head head;
	uint64_t at;

	if (!r->stalled_ns)
		r->stalled_ns = d->until_ns;
	if (!d->last && !r->gone && d->until_ns - r->stalled_ns < STALL_NS)
		return false;
	for (at = r->at + 16; at < r->limit && !head_at(d, r, at, &head); at += 16)
		;
	note_bad(d, r, true);
	advance(r, at);
	return true;
}

/* True: at a finished record, which is in *ret. */
static bool next_record(struct as_heap_drain *d, struct as_drain_ring *r,
			union as_drain_record *ret)
{
	struct as_rt_head head;
	uint32_t units;

	while (r->at < r->limit) {
		if (!head_at(d, r, r->at, &head)) {
			if (skip_hole(d, r))
				continue;
			r->wait = AS_DRAIN_STALLED;
			return false;
		}
		r->stalled_ns = 0;
		units = as_drain_units(head.kind);
		if (!units || head.units < units || head.units > 4 ||
		    r->at + 16 * (uint64_t)head.units > r->limit) {
			note_bad(d, r, false);
			advance(r, r->at + 16);
			continue;
		}
		*ret = (union as_drain_record){0};
		read_record(d, r, &head, ret);
		return true;
	}
	r->wait = AS_DRAIN_EMPTY;
	return false;
}

static bool is_crowded(const struct as_heap_drain *d, const struct as_drain_ring *r)
{
	return r->limit - r->at > d->area.ring_bytes / 2;
}

/* Whether its time is up: what a later tick brings may still be written by others. */
static bool is_due(struct as_heap_drain *d, struct as_drain_ring *r,
		   const union as_drain_record *rec)
{
	uint64_t t = r->time_ns;

	if (rec->head.kind == AS_RT_REC_SYNC)
		return true;
	if (rec->head.kind == AS_RT_REC_TIME)
		t = rec->time.clock_ns;
	else if (rec->head.kind == AS_RT_REC_THREAD)
		t = rec->thread.clock_ns;
	if (t < d->due_ns)
		return true;
	r->wait = AS_DRAIN_LATER;
	return false;
}

/* Records of one ring while it is not later than `bound_ns`. */
static uint64_t run(struct as_heap_drain *d, struct as_drain_ring *r, uint64_t bound_ns,
		    bool forced)
{
	union as_drain_record rec;
	uint64_t n = 0;

	while (r->time_ns <= bound_ns && next_record(d, r, &rec)) {
		if (!is_due(d, r, &rec))
			break;
		if (!as_drain_apply(d, r, &rec, forced)) {
			r->looked_again = false;
			as_drain_block(d, r);
			break;
		}
		advance(r, r->at + 16 * (uint64_t)rec.head.units);
		n++;
		if (d->host.tick && ++d->since_tick % TICK_RECORDS == 0)
			d->host.tick(d->host.ctx);
		if (forced)
			break;
	}
	if (r->told != r->at)
		tell_consumed(r);
	return n;
}

/* ---- all rings ---- */

static void add_ring(struct as_heap_drain *d, uint32_t index)
{
	struct as_drain_ring r = {
		.index = index, .process = AS_HEAP_NONE, .bare = {AS_HEAP_NONE, AS_HEAP_NONE}};
	size_t bytes = AS_RT_RING_HEAD_BYTES + (size_t)d->area.ring_bytes;

	r.ring = (struct as_rt_ring *)((uint8_t *)d->area.rings + index * bytes);
	r.data = (uint8_t *)r.ring + AS_RT_RING_HEAD_BYTES;
	r.at = r.told = r.ring->consumed & ~15ull;
	as_vec_push(&d->rings, r);
	d->ring_of[index] = (uint32_t)d->rings.n;
}

static void find_rings(struct as_heap_drain *d)
{
	for (uint32_t i = 0; i < d->area.context_max; i++) {
		uint32_t owner = __atomic_load_n(&d->area.control->owner[i], __ATOMIC_ACQUIRE);

		if (owner && !d->ring_of[i])
			add_ring(d, i);
	}
}

/* What is there now. A target that moves pos back or laps us cannot lead us outside. */
static void look(struct as_heap_drain *d)
{
	find_rings(d);
	as_vec_foreach (r, &d->rings) {
		uint64_t pos = pos_of(r) & ~15ull;

		if (pos > r->at + d->area.ring_bytes)
			pos = r->at + d->area.ring_bytes;
		r->limit = AS_MAX(r->at, pos);
		if (r->wait == AS_DRAIN_EMPTY && r->at < r->limit)
			r->wait = AS_DRAIN_RUNS;
	}
}

/* The earliest of those that wait for this. */
static struct as_drain_ring *earliest(struct as_heap_drain *d, enum as_drain_wait wait,
				      const struct as_drain_ring *but)
{
	struct as_drain_ring *best = NULL;

	as_vec_foreach (r, &d->rings) {
		if (r->wait == wait && r != but && (!best || r->time_ns < best->time_ns))
			best = r;
	}
	return best;
}

/* A writer that is not finished yet and may bring what this one waits for. */
static bool waits_for_stalled(struct as_heap_drain *d, const struct as_drain_ring *b)
{
	const struct as_drain_ring *s = earliest(d, AS_DRAIN_STALLED, NULL);

	return s && s->time_ns <= b->time_ns && !is_crowded(d, b);
}

/* Nothing runs that could bring what b waits for. False: this round brings it no further. */
static bool unblock(struct as_heap_drain *d, struct as_drain_ring *b, uint64_t *n)
{
	if (!b->looked_again) {
		look(d);
		b->looked_again = true;
		return true;
	}
	if (!d->last && waits_for_stalled(d, b))
		return false;
	as_drain_unblock(d, b);
	*n += run(d, b, UINT64_MAX, true);
	return true;
}

static void count_lost(struct as_heap_drain *d)
{
	as_vec_foreach (r, &d->rings) {
		uint64_t lost = 0;

		for (int k = AS_RT_REC_ALLOC; k <= AS_RT_REC_MREMAP; k++) {
			if (k != AS_RT_REC_REALLOC_BEGIN)
				lost += __atomic_load_n(&r->ring->lost[k], __ATOMIC_RELAXED);
		}
		if (r->process == AS_HEAP_NONE || lost <= d->lost_of[r->index])
			continue;
		d->processes.v[r->process].pub.dropped += lost - d->lost_of[r->index];
		d->lost_of[r->index] = lost;
	}
}

/* Rings of threads that are gone are free for others. */
static void give_back(struct as_heap_drain *d)
{
	for (size_t i = 0; i < d->rings.n; i++) {
		struct as_drain_ring *r = &d->rings.v[i];

		if (!r->gone || r->wait != AS_DRAIN_EMPTY || r->at != (pos_of(r) & ~15ull))
			continue;
		__atomic_store_n(&d->area.control->owner[r->index], 0, __ATOMIC_RELEASE);
		d->ring_of[r->index] = 0;
		if (r->process != AS_HEAP_NONE) /* the number may be another thread's next */
			(void)as_map64_del(&d->processes.v[r->process].thread_of, r->tid);
		clear_ring(r);
		*r = d->rings.v[--d->rings.n];
		if (i < d->rings.n)
			d->ring_of[r->index] = (uint32_t)i + 1;
		i--;
	}
}

static void close_ticks(struct as_heap_drain *d)
{
	const struct as_drain_ring *b = earliest(d, AS_DRAIN_BLOCKED, NULL);
	const struct as_drain_ring *s = earliest(d, AS_DRAIN_STALLED, NULL);
	const struct as_drain_ring *r = earliest(d, AS_DRAIN_RUNS, NULL);
	uint64_t until = d->until_ns;

	if (b)
		until = AS_MIN(until, b->time_ns);
	if (s)
		until = AS_MIN(until, s->time_ns);
	if (r)
		until = AS_MIN(until, r->time_ns);
	as_order_close(d, until);
}

uint64_t as_heap_drain_round(struct as_heap_drain *d, uint64_t until_ns)
{
	uint64_t n = 0;

	d->until_ns = until_ns;
	d->due_ns = d->last ? UINT64_MAX : until_ns;
	as_vec_foreach (r, &d->rings) {
		if (r->wait != AS_DRAIN_BLOCKED)
			r->wait = AS_DRAIN_EMPTY;
	}
	look(d);
	as_vec_foreach (r, &d->rings) {
		if (is_crowded(d, r))
			d->due_ns = UINT64_MAX;
	}
	while (d->last || n < ROUND_RECORDS) {
		struct as_drain_ring *r = earliest(d, AS_DRAIN_RUNS, NULL);
		struct as_drain_ring *b = earliest(d, AS_DRAIN_BLOCKED, NULL);
		struct as_drain_ring *next;

		if (b && (!r || r->time_ns > b->time_ns)) {
			if (!unblock(d, b, &n))
				break;
			continue;
		}
		if (!r)
			break;
		next = earliest(d, AS_DRAIN_RUNS, r);
		n += run(d, r,
			 AS_MIN(next ? next->time_ns : UINT64_MAX, b ? b->time_ns : UINT64_MAX),
			 false);
	}
	if (d->odd.n)
		close_ticks(d);
	count_lost(d);
	give_back(d);
	return n;
}

void as_heap_drain_remapped(struct as_heap_drain *d, uint32_t pid)
{
	as_vec_foreach (p, &d->processes) {
		if (p->pub.pid != pid)
			continue;
		p->turn++;
		as_map64_clear(&p->frame_of);
	}
}

void as_heap_drain_gone(struct as_heap_drain *d, uint32_t tid)
{
	find_rings(d);
	as_vec_foreach (r, &d->rings) {
		if (__atomic_load_n(&d->area.control->owner[r->index], __ATOMIC_RELAXED) == tid)
			r->gone = true;
	}
}

static bool is_open(const struct as_heap_drain *d, uint32_t process)
{
	as_vec_foreach (r, &d->rings) {
		if (r->process == process || r->process == AS_HEAP_NONE)
			return true;
	}
	as_vec_foreach (o, &d->odd) {
		if (o->process == process)
			return true;
	}
	return false;
}

bool as_heap_drain_take(struct as_heap_drain *d, uint32_t pid, struct as_heap_drained *ret)
{
	for (uint32_t i = 0; i < d->processes.n; i++) {
		struct as_drain_process *p = &d->processes.v[i];

		if (p->pub.pid != pid || !p->pub.heap)
			continue;
		find_rings(d);
		if (is_open(d, i))
			return false;
		*ret = p->pub;
		as_map64_clear(&p->frame_of);
		as_map64_clear(&p->thread_of);
		*p = (struct as_drain_process){0}; /* its place is not used again */
		return true;
	}
	return false;
}

void as_heap_drain_finish(struct as_heap_drain *d)
{
	d->last = true;
	while (as_heap_drain_round(d, UINT64_MAX))
		;
	as_order_close(d, UINT64_MAX);
}

const struct as_heap_drained *as_heap_drain_processes(const struct as_heap_drain *pd,
						      size_t *ret_n)
{
	struct as_heap_drain *d = (struct as_heap_drain *)pd; /* its list is a cache */

	d->shown.n = 0;
	as_vec_foreach (p, &d->processes) {
		if (p->pub.heap)
			as_vec_push(&d->shown, p->pub);
	}
	*ret_n = d->shown.n;
	return d->shown.v;
}
