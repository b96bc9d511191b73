/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rings merged into one order: see drain.h. */
#include "heap/drain.h"

#include <stdlib.h>
#include <string.h>
#include "base/sys.h"
#include "heap/drain_priv.h"

/* A writer may be preempted between reserving and writing; so long it is waited for. */
#define STALL_NS   20000000ull
#define TELL_BYTES 8192u

enum {
	TICK_RECORDS = 1024,
	/* of a round: then rings are given back, and others may have the drain */
	ROUND_RECORDS = 1 << 17,
	ROUND_RINGS = 256,
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
	d->lost_of = as_xcalloc(AS_RT_CONTEXTS, sizeof *d->lost_of);
	d->timed_of = as_xcalloc(AS_RT_CONTEXTS, sizeof *d->timed_of);
	d->stamp_ticks = as_drain_stamp_ticks();
	d->start_stamp = as_drain_stamp_now();
	d->start_ns = as_now_ns();
	d->mark_made = area->control->mark_made;
	return d;
}

static void clear_ring(struct as_drain_ring *r)
{
	as_drain_nodes_clear(r);
	free(r->seen);
	r->seen = NULL;
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
	free(d->timed_of);
	as_vec_clear(&d->queue);
	as_vec_clear(&d->orphans);
	as_vec_clear(&d->shown_blocks);
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

/* At a record that is not finished. True: there is another behind it, where it will not come. What has none
 * behind it belongs to a thread that waits for a processor, however long. */
static bool skip_hole(struct as_heap_drain *d, struct as_drain_ring *r)
{
	struct as_rt_head head;
	uint64_t at;

	if (!r->stalled_ns && d->until_ns != UINT64_MAX)
		r->stalled_ns = d->until_ns;
	if (!d->last && !r->gone && (!r->stalled_ns || d->until_ns - r->stalled_ns < STALL_NS))
		return false;
	for (at = r->at + 16; at < r->limit && !head_at(d, r, at, &head); at += 16)
		;
	if (at >= r->limit && !d->last && !r->gone)
		return false;
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
		if (!units || head.units < units || head.units > AS_RT_UNITS_MAX ||
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

/* A stamp that is seconds ahead is none. */
static bool is_due(const struct as_heap_drain *d, uint64_t stamp)
{
	return stamp <= d->due || stamp - d->due > 1ull << 34;
}

/* The next record that has its place in the order is in r->next. */
static bool fetch(struct as_heap_drain *d, struct as_drain_ring *r)
{
	while (next_record(d, r, &r->next)) {
		if (as_drain_is_stamped(r->next.head.kind)) {
			r->wait = is_due(d, as_drain_stamp(&r->next)) ? AS_DRAIN_RUNS
								      : AS_DRAIN_LATER;
			return r->wait == AS_DRAIN_RUNS;
		}
		as_drain_apply(d, r, &r->next);
		advance(r, r->at + 16 * (uint64_t)r->next.head.units);
	}
	return false;
}

/* Records of a ring that has one, while they are not younger than `bound`. */
static uint64_t run(struct as_heap_drain *d, struct as_drain_ring *r, uint64_t bound)
{
	uint64_t n = 0;

	do {
		as_drain_apply(d, r, &r->next);
		advance(r, r->at + 16 * (uint64_t)r->next.head.units);
		n++;
		if (d->host.tick && ++d->since_tick % TICK_RECORDS == 0)
			d->host.tick(d->host.ctx);
	} while (fetch(d, r) && as_drain_stamp(&r->next) <= bound && n < ROUND_RECORDS);
	if (r->told != r->at)
		tell_consumed(r);
	return n;
}

/* ---- all rings ---- */

static void add_ring(struct as_heap_drain *d, uint32_t index)
{
	struct as_drain_ring r = {.index = index, .process = AS_HEAP_NONE};
	size_t bytes = AS_RT_RING_HEAD_BYTES + (size_t)d->area.ring_bytes;

	r.ring = (struct as_rt_ring *)((uint8_t *)d->area.rings + index * bytes);
	r.tables = (struct as_rt_tables *)((uint8_t *)r.ring + AS_RT_TABLES_OFF);
	r.data = (uint8_t *)r.ring + AS_RT_RING_HEAD_BYTES;
	r.at = r.told = r.ring->consumed & ~15ull;
	as_vec_push(&d->rings, r);
	d->ring_of[index] = (uint32_t)d->rings.n;
}

static void find_rings(struct as_heap_drain *d)
{
	uint32_t top = as_heap_area_top(&d->area);

	for (uint32_t i = 0; i < top; i++) {
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
	}
}

static uint64_t stamp_at(const struct as_heap_drain *d, size_t i)
{
	return as_drain_stamp(&d->rings.v[d->queue.v[i]].next);
}

/* The ring at place i has a later stamp than before, or is new there. */
static void sift_down(struct as_heap_drain *d, size_t i)
{
	for (;;) {
		size_t least = i, kid = 2 * i + 1;

		if (kid < d->queue.n && stamp_at(d, kid) < stamp_at(d, least))
			least = kid;
		if (kid + 1 < d->queue.n && stamp_at(d, kid + 1) < stamp_at(d, least))
			least = kid + 1;
		if (least == i)
			return;
		uint32_t ring = d->queue.v[i];

		d->queue.v[i] = d->queue.v[least];
		d->queue.v[least] = ring;
		i = least;
	}
}

static void fill_queue(struct as_heap_drain *d)
{
	d->queue.n = 0;
	for (uint32_t i = 0; i < d->rings.n; i++) {
		if (fetch(d, &d->rings.v[i]))
			as_vec_push(&d->queue, i);
		else if (d->rings.v[i].told != d->rings.v[i].at)
			tell_consumed(&d->rings.v[i]);
	}
	for (size_t i = d->queue.n / 2; i-- > 0;)
		sift_down(d, i);
}

/* The stamp of the second in the queue. */
static uint64_t bound_of(const struct as_heap_drain *d)
{
	uint64_t bound = UINT64_MAX;

	for (size_t i = 1; i < 3 && i < d->queue.n; i++)
		bound = AS_MIN(bound, stamp_at(d, i));
	return bound;
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

/* What the owner's calls took since the last time. Numbers that shrink are not believed. */
static void count_timed(struct as_heap_drain *d, const struct as_drain_ring *r)
{
	struct as_drain_timed *was = &d->timed_of[r->index];
	struct as_drain_timed now = {
		.ticks = __atomic_load_n(&r->ring->timed_ticks, __ATOMIC_RELAXED),
		.calls = __atomic_load_n(&r->ring->timed_calls, __ATOMIC_RELAXED),
	};
	struct as_drain_process *p;

	if (now.calls < was->calls || now.ticks < was->ticks || r->process == AS_HEAP_NONE)
		return;
	p = &d->processes.v[r->process];
	p->pub.timed_calls += now.calls - was->calls;
	p->timed_ticks += now.ticks - was->ticks;
	*was = now;
}

static void tell_timed(const struct as_heap_drain *d, struct as_drain_process *p)
{
	uint64_t stamps = as_drain_stamp_now() - d->start_stamp;
	uint64_t reading = p->pub.timed_calls * d->stamp_ticks;
	uint64_t ticks = p->timed_ticks - AS_MIN(p->timed_ticks, reading);

	if (stamps && stamps < UINT64_MAX / 2)
		p->pub.timed_ns =
			(uint64_t)((double)ticks * (double)(as_now_ns() - d->start_ns) /
				   (double)stamps);
}

/* Rings of threads that are gone are free for others. Their tables are read at last, which takes a while:
 * not of all at a time, since those of others fill up. Returns how many. */
static uint64_t give_back(struct as_heap_drain *d)
{
	uint64_t n = 0;

	for (size_t i = 0; i < d->rings.n && (d->last || n < ROUND_RINGS); i++) {
		struct as_drain_ring *r = &d->rings.v[i];

		if (!r->gone || r->wait != AS_DRAIN_EMPTY || r->at != (pos_of(r) & ~15ull))
			continue;
		count_timed(d, r);
		as_pairs_end(d, r, true);
		__atomic_store_n(&d->area.control->rings_full, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&d->area.control->owner[r->index], 0, __ATOMIC_RELEASE);
		d->ring_of[r->index] = 0;
		if (r->process != AS_HEAP_NONE) { /* the number may be another thread's next */
			(void)as_map64_del(&d->processes.v[r->process].thread_of, r->tid);
			d->processes.v[r->process].nrings--;
		}
		clear_ring(r);
		*r = d->rings.v[--d->rings.n];
		if (i < d->rings.n)
			d->ring_of[r->index] = (uint32_t)i + 1;
		i--;
		n++;
		if (d->host.tick)
			d->host.tick(d->host.ctx);
	}
	return n;
}

static bool is_stalled(const struct as_heap_drain *d)
{
	as_vec_foreach (r, &d->rings) {
		if (r->wait == AS_DRAIN_STALLED)
			return true;
	}
	return false;
}

/* Returns how many records were read. */
static uint64_t merge(struct as_heap_drain *d, uint64_t now_ns, uint64_t due)
{
	uint64_t n = 0;

	d->until_ns = now_ns;
	d->due = due;
	look(d); /* after the stamp: see rt.h */
	fill_queue(d);
	while (d->queue.n && (d->last || n < ROUND_RECORDS)) {
		struct as_drain_ring *r = &d->rings.v[d->queue.v[0]];

		n += run(d, r, bound_of(d));
		if (r->wait != AS_DRAIN_RUNS)
			d->queue.v[0] = d->queue.v[--d->queue.n];
		sift_down(d, 0);
	}
	return n;
}

void as_drain_round_to(struct as_heap_drain *d, uint64_t now_ns, uint64_t due)
{
	while (merge(d, now_ns, due) >= ROUND_RECORDS)
		;
}

uint64_t as_heap_drain_round(struct as_heap_drain *d, uint64_t now_ns)
{
	uint64_t n = merge(d, now_ns, d->last ? UINT64_MAX : as_drain_stamp_now());

	if (d->orphans.n)
		as_pairs_close_orphans(d, !d->queue.n && !is_stalled(d));
	count_lost(d);
	return n + give_back(d);
}

void as_heap_drain_remapped(struct as_heap_drain *d, uint32_t pid)
{
	as_vec_foreach (p, &d->processes) {
		if (p->pub.pid != pid)
			continue;
		as_vec_foreach (r, &d->rings) {
			if (r->process == (uint32_t)(p - d->processes.v))
				as_pairs_before_turn(d, r);
		}
		p->turn++;
		as_map64_clear(&p->frame_of);
	}
}

void as_heap_drain_gone(struct as_heap_drain *d, uint32_t index)
{
	if (index < d->area.context_max && !d->ring_of[index])
		find_rings(d);
	if (index < d->area.context_max && d->ring_of[index])
		d->rings.v[d->ring_of[index] - 1].gone = true;
}

void as_heap_drain_tell_full(struct as_heap_drain *d)
{
	bool full;

	find_rings(d);
	full = d->rings.n + 1 >= d->area.context_max;
	as_vec_foreach (r, &d->rings)
		full = full && !r->gone;
	__atomic_store_n(&d->area.control->rings_full, full, __ATOMIC_RELEASE);
}

bool as_heap_drain_is_read(const struct as_heap_drain *d, uint32_t pid)
{
	as_vec_foreach (r, &d->rings) {
		bool is_new = r->process == AS_HEAP_NONE;
		uint32_t whose = is_new ? r->ring->pid : d->processes.v[r->process].pub.pid;

		if (whose == pid && r->at < (pos_of(r) & ~15ull))
			return false;
	}
	return true;
}

static bool is_open(const struct as_heap_drain *d, uint32_t process)
{
	as_vec_foreach (r, &d->rings) {
		if (r->process == process || r->process == AS_HEAP_NONE)
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
		as_orphans_close(d, i);
		tell_timed(d, p);
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
	as_vec_foreach (r, &d->rings)
		as_pairs_end(d, r, false);
	as_orphans_close(d, AS_HEAP_NONE);
}

const struct as_heap_drained *as_heap_drain_processes(const struct as_heap_drain *pd,
						      size_t *ret_n)
{
	struct as_heap_drain *d = (struct as_heap_drain *)pd; /* its list is a cache */

	d->shown.n = 0;
	as_vec_foreach (r, &d->rings)
		count_timed(d, r);
	as_vec_foreach (p, &d->processes) {
		tell_timed(d, p);
		if (p->pub.heap)
			as_vec_push(&d->shown, p->pub);
	}
	*ret_n = d->shown.n;
	return d->shown.v;
}
