/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sessions of memory for the Firefox Profiler: native allocations per thread, and live bytes over time
 * as its memory track.
 *
 * The reader's tables are lists of events: it adds up what came per stack ("allocations"), and what
 * came and did not go ("retained", told by equal addresses). Ours are made of sums: per stack one event
 * for all that is gone, with its end, and one for all that is left. What is left is what was there at
 * the peak, or at the end when that is the measure.
 */
#include <stdlib.h>
#include "exchange/firefox_priv.h"

struct event {
	uint32_t node; /* of the stack table */
	int64_t bytes;
	uint64_t address;
};
struct events {
	AS_VEC(struct event) v;
	size_t nbegun; /* the first so many begin, the rest are ends */
};

static void add_group(struct events *e, uint32_t node, const uint64_t *values, bool at_end)
{
	uint64_t left = values[at_end ? AS_HEAP_LIVE_BYTES : AS_HEAP_PEAK_BYTES];
	uint64_t all = AS_MAX(values[AS_HEAP_BYTES], left);
	uint64_t address = (e->v.n + 1) * 16; /* no two events have one but begin and end */

	if (left)
		as_vec_push(&e->v, (struct event){node, (int64_t)left, address});
	if (all > left)
		as_vec_push(&e->v, (struct event){node, (int64_t)(all - left), address + 8});
}

/* Ends of what is gone: the addresses that are 8 above a multiple of 16. */
static void add_ends(struct events *e)
{
	e->nbegun = e->v.n;
	for (size_t i = 0; i < e->nbegun; i++) {
		struct event begun = e->v.v[i];

		if (!(begun.address & 8))
			continue;
		begun.bytes = -begun.bytes;
		as_vec_push(&e->v, begun);
	}
}

static void find_events(const struct as_fx *x, uint32_t thread, struct events *ret)
{
	const struct as_selection *s = x->s;
	AS_CLEANUP(as_free_autop) uint64_t *values = as_heap_group_values(s);

	for (size_t i = 0; i < s->groups.n; i++) {
		if (s->groups.v[i].thread == thread)
			add_group(ret, x->stack_of_group[i], values + i * AS_HEAP_VALUES,
				  s->model->measure == AS_MEASURE_LIVE);
	}
	add_ends(ret);
}

#define COLUMN(x, name, n, i, ...)                                                             \
	do {                                                                                   \
		bool first_ = true;                                                            \
		struct as_buf *b = &(x)->out->out;                                             \
		as_json_arr(&(x)->j, name);                                                    \
		for (size_t i = 0; i < (n); i++) {                                             \
			as_fx_next(x, &first_);                                                \
			__VA_ARGS__;                                                           \
		}                                                                              \
		as_json_end(&(x)->j);                                                          \
	} while (0)

void as_fx_native_allocations(struct as_fx *x, uint32_t thread)
{
	const struct as_model *m = x->s->model;
	struct as_rec_heap_process sum;
	struct events e = {.nbegun = 0};
	uint64_t end = as_since_start(m, as_recording_end(m)), peak;

	/* The reader's range ends before what happens at its end. */
	end -= AS_MIN(end, 1000u);
	as_model_heap_sum(m, &sum);
	peak = AS_MIN(as_since_start(m, sum.peak_ns), end);
	find_events(x, thread, &e);
	as_json_obj(&x->j, "nativeAllocations");
	as_json_u64(&x->j, "length", e.v.n);
	as_json_str(&x->j, "weightType", "bytes");
	COLUMN(x, "time", e.v.n, i, as_put_scaled(b, i < e.nbegun ? peak : end, 6));
	COLUMN(x, "stack", e.v.n, i, as_put_u64(b, e.v.v[i].node));
	COLUMN(x, "weight", e.v.n, i, as_buf_addf(b, "%lld", (long long)e.v.v[i].bytes));
	COLUMN(x, "memoryAddress", e.v.n, i, as_put_u64(b, e.v.v[i].address));
	COLUMN(x, "threadId", e.v.n, i, as_put_u64(b, m->threads.v[thread].tid));
	as_json_end(&x->j);
	as_vec_clear(&e.v);
}

/* ---- over time ---- */

struct moment {
	uint64_t time_ns;
	int64_t change;
};
struct moments {
	AS_VEC(struct moment) v;
	uint64_t bytes, last_ns;
};

static void add_moment(struct moments *t, uint64_t time_ns, uint64_t bytes)
{
	as_vec_push(&t->v, (struct moment){time_ns, (int64_t)bytes - (int64_t)t->bytes});
	t->bytes = bytes;
	t->last_ns = time_ns;
}

/* The most since the row before stood at an unknown moment: half way. */
static void find_moments(const struct as_model *m, uint32_t process, struct moments *t)
{
	as_vec_foreach (row, &m->heap.times) {
		uint64_t at = as_since_start(m, row->time_ns);

		if (row->process != process || at < t->last_ns)
			continue;
		if (row->high_bytes > AS_MAX(row->live_bytes, t->bytes))
			add_moment(t, t->last_ns + (at - t->last_ns) / 2, row->high_bytes);
		add_moment(t, at, row->live_bytes);
	}
}

static size_t main_thread(const struct as_model *m, const uint32_t *threads, size_t n,
			  uint32_t process)
{
	for (size_t i = 0; i < n; i++) {
		if (m->threads.v[threads[i]].process == process)
			return i;
	}
	return n;
}

/* How the reader is to draw it: what it gives its own memory tracks, less what we do not count. */
static void put_display(struct as_fx *x)
{
	static const struct {
		const char *source, *label;
	} rows[] = {{"accumulated", "allocated at this time"},
		    {"count-range", "range in the graph"}};

	as_json_obj(&x->j, "display");
	as_json_str(&x->j, "graphType", "line-accumulated");
	as_json_str(&x->j, "unit", "bytes");
	as_json_str(&x->j, "color", "orange");
	as_json_null(&x->j, "markerSchemaLocation");
	as_json_u64(&x->j, "sortWeight", 20);
	as_json_str(&x->j, "label", "Memory");
	as_json_arr(&x->j, "tooltipRows");
	for (size_t i = 0; i < AS_ARRAY_LEN(rows); i++) {
		as_json_obj(&x->j, NULL);
		as_json_str(&x->j, "type", "value");
		as_json_str(&x->j, "source", rows[i].source);
		as_json_obj(&x->j, "format");
		as_json_str(&x->j, "unit", "bytes");
		as_json_end(&x->j);
		as_json_str(&x->j, "label", rows[i].label);
		as_json_end(&x->j);
	}
	as_json_end(&x->j);
	as_json_end(&x->j);
}

static void put_counter(struct as_fx *x, const struct as_m_process *p, size_t thread,
			const struct moments *t)
{
	AS_CLEANUP(as_buf_clear) struct as_buf pid = {0};

	as_buf_addf(&pid, "%u", p->pid);
	as_json_obj(&x->j, NULL);
	as_json_str(&x->j, "name", "malloc");
	as_json_str(&x->j, "category", "Memory");
	as_json_str(&x->j, "description", "Bytes that are allocated");
	put_display(x);
	as_json_str(&x->j, "pid", pid.p);
	as_json_u64(&x->j, "mainThreadIndex", thread);
	as_json_obj(&x->j, "samples");
	as_json_u64(&x->j, "length", t->v.n);
	COLUMN(x, "time", t->v.n, i, as_put_scaled(b, t->v.v[i].time_ns, 6));
	COLUMN(x, "count", t->v.n, i, as_buf_addf(b, "%lld", (long long)t->v.v[i].change));
	as_json_end(&x->j);
	as_json_end(&x->j);
}

void as_fx_memory_counters(struct as_fx *x, const uint32_t *threads, size_t n)
{
	const struct as_model *m = x->s->model;

	as_json_arr(&x->j, "counters");
	for (uint32_t p = 0; p < m->processes.n; p++) {
		size_t thread = main_thread(m, threads, n, p);
		struct moments t = {.bytes = 0};

		find_moments(m, p, &t);
		if (thread < n && t.v.n)
			put_counter(x, &m->processes.v[p], thread, &t);
		as_vec_clear(&t.v);
	}
	as_json_end(&x->j);
}
