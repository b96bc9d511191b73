/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What happens as time passes: clocks of threads, moments for growth, the time line, marks. */
#include <string.h>
#include "heap/heap_priv.h"

#define FIRST_MOMENT_NS 10000000ull
#define FIRST_ROW_NS    1000000ull
enum {
	CLOCK_MAX = 512, /* entries of a thread's clock */
	CLOCK_FINE = 32, /* distance of two is at most 1/32 of their age */
};

/* ---- clocks of threads ---- */

uint32_t as_heap_thread(struct as_heap *h, uint32_t number)
{
	as_vec_push(&h->threads,
		    (struct as_heap_thread){.number = number, .now_ns = h->now_ns});
	as_vec_push(&h->threads.v[h->threads.n - 1].clock,
		    (struct as_heap_clock){0, h->now_ns});
	return (uint32_t)h->threads.n - 1;
}

/* Entries that the distances do not need are dropped: what is left grows with the logarithm of
 * the time. */
static void thin_clock(struct as_heap_thread *t)
{
	struct as_heap_clock *v = t->clock.v;
	size_t n = 1;

	for (size_t i = 1; i < t->clock.n; i++) {
		uint64_t age = t->now_ns - v[i].time_ns;

		if (i + 1 < t->clock.n &&
		    v[i + 1].time_ns - v[n - 1].time_ns <= age / CLOCK_FINE)
			continue;
		v[n++] = v[i];
	}
	t->clock.n = n;
}

uint64_t as_heap_clock_at(const struct as_heap_thread *t, uint64_t allocs)
{
	size_t lo = 0, hi = t->clock.n;

	/* Most blocks are young. */
	if (hi && t->clock.v[hi - 1].allocs < allocs)
		return t->clock.v[hi - 1].time_ns;
	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->clock.v[mid].allocs < allocs)
			lo = mid;
		else
			hi = mid;
	}
	return t->clock.n ? t->clock.v[lo].time_ns : t->now_ns;
}

/* ---- moments ---- */

void as_heap_moments_init(struct as_heap *h)
{
	h->moment_ns = FIRST_MOMENT_NS;
	h->next_moment_ns = h->start_ns + FIRST_MOMENT_NS;
	h->row_ns = FIRST_ROW_NS;
	h->next_row_ns = h->start_ns;
}

/* Every second moment is dropped, the distance doubled. */
static void halve(float moment[AS_HEAP_MOMENTS])
{
	for (unsigned i = 0; i < AS_HEAP_MOMENTS / 2; i++)
		moment[i] = moment[2 * i + 1];
}

/* NULL: the tally had no bytes at any of them, and has none now. */
static struct as_heap_moments *moments_of(struct as_heap *h, struct as_heap_tally *t)
{
	if (!t->moments && !t->live.bytes)
		return NULL;
	if (!t->moments) {
		as_vec_push(&h->moments, (struct as_heap_moments){0});
		t->moments = (uint32_t)h->moments.n;
	}
	return &h->moments.v[t->moments - 1];
}

static void fill(struct as_heap_moments *m, const struct as_heap_tally *t, uint32_t to)
{
	for (uint32_t i = t->nmoments; m && i < to; i++)
		m->bytes[i] = (float)t->live.bytes;
}

void as_heap_moments_catch_up(struct as_heap *h, struct as_heap_tally *t)
{
	struct as_heap_moments *m = moments_of(h, t);
	uint32_t turns = (uint8_t)(h->moment_turn - t->moment_turn);

	/* After so many turns nothing is left of what was noted. */
	for (turns = AS_MIN(turns, 4u); turns; turns--) {
		fill(m, t, AS_HEAP_MOMENTS);
		if (m)
			halve(m->bytes);
		t->nmoments = AS_HEAP_MOMENTS / 2;
	}
	fill(m, t, h->nmoments);
	t->nmoments = (uint8_t)h->nmoments;
	t->moment_turn = (uint8_t)h->moment_turn;
}

static void pass_moments(struct as_heap *h)
{
	while (h->now_ns >= h->next_moment_ns) {
		h->nmoments++;
		if (h->nmoments == AS_HEAP_MOMENTS) {
			h->nmoments /= 2;
			h->moment_turn++;
			h->moment_ns *= 2;
		}
		h->next_moment_ns += h->moment_ns;
	}
}

void as_heap_slope(const struct as_heap *h, const struct as_heap_tally *t,
		   struct as_heap_slope *ret)
{
	double n = t->nmoments, x_mean = (n - 1) / 2, y_mean = 0, xy = 0, xx = 0;
	const float *bytes = t->moments ? h->moments.v[t->moments - 1].bytes : NULL;

	*ret = (struct as_heap_slope){0};
	if (t->nmoments < 2)
		return;
	ret->steps = t->nmoments - 1;
	if (!bytes)
		return;
	for (uint32_t i = 0; i < t->nmoments; i++)
		y_mean += (double)bytes[i] / n;
	for (uint32_t i = 0; i < t->nmoments; i++) {
		double x = i - x_mean;

		xy += x * ((double)bytes[i] - y_mean);
		xx += x * x;
		if (i)
			ret->rises += bytes[i] > bytes[i - 1];
	}
	ret->bytes = xy / xx * ret->steps;
}

/* ---- the time line ---- */

/* Two rows become one. */
static void thin_rows(struct as_heap *h)
{
	size_t n = 0;

	for (size_t i = 0; i + 1 < h->timeline.n; i += 2) {
		struct as_heap_row row = h->timeline.v[i + 1];

		row.high_bytes = AS_MAX(row.high_bytes, h->timeline.v[i].high_bytes);
		h->timeline.v[n++] = row;
	}
	h->timeline.n = n;
	h->row_ns *= 2;
}

static void add_row(struct as_heap *h)
{
	const struct as_heap_domain_sum *sum = &h->sum[AS_HEAP_BLOCKS];
	struct as_heap_amount live = sum->live;

	live.blocks += h->untold.blocks;
	live.bytes = AS_MIN(live.bytes + h->untold.bytes, sum->peak.bytes);
	if (h->timeline.n == AS_HEAP_TIMELINE)
		thin_rows(h);
	as_vec_push(&h->timeline, (struct as_heap_row){
					  .time_ns = h->now_ns,
					  .live = live,
					  .high_bytes = AS_MAX(h->high_bytes, live.bytes),
					  .mapped_bytes = h->sum[AS_HEAP_MAPPINGS].live.bytes,
					  .resident_bytes = h->resident_bytes,
				  });
	h->high_bytes = live.bytes;
	h->next_row_ns = h->now_ns + h->row_ns;
}

void as_heap_moments_end(struct as_heap *h)
{
	add_row(h);
}

void as_heap_resident(struct as_heap *h, uint64_t bytes)
{
	h->resident_bytes = bytes;
}

void as_heap_time(struct as_heap *h, uint32_t thread, uint64_t time_ns)
{
	struct as_heap_thread *t = &h->threads.v[thread];

	if (time_ns <= t->now_ns)
		return;
	t->now_ns = time_ns;
	if (t->clock.v[t->clock.n - 1].allocs == t->allocs) {
		t->clock.v[t->clock.n - 1].time_ns = time_ns;
	} else {
		as_vec_push(&t->clock, (struct as_heap_clock){t->allocs, time_ns});
		if (t->clock.n >= CLOCK_MAX)
			thin_clock(t);
	}
	if (time_ns <= h->now_ns)
		return;
	h->now_ns = time_ns;
	if (time_ns >= h->next_moment_ns)
		pass_moments(h);
	if (time_ns >= h->next_row_ns)
		add_row(h);
}

/* ---- marks ---- */

void as_heap_mark(struct as_heap *h, const char *name, size_t n)
{
	struct as_heap_mark m = {.time_ns = h->now_ns, .live = h->sum[AS_HEAP_BLOCKS].live};

	if (h->marks.n >= AS_HEAP_MARKS)
		return;
	/* A mark is told from others by its name and time, and the clock stands still for 0.1 ms or so. */
	if (h->marks.n)
		m.time_ns = AS_MAX(m.time_ns, h->marks.v[h->marks.n - 1].time_ns + 1);
	m.name = as_xstrndup(name, n);
	for (uint32_t i = 0; i < h->tallies.n; i++) {
		const struct as_heap_tally *t = &h->tallies.v[i];

		if (t->live.blocks && t->key.domain == AS_HEAP_BLOCKS)
			as_vec_push(&m.tallies, (struct as_heap_mark_amount){i, t->live});
	}
	as_vec_push(&h->marks, m);
}
