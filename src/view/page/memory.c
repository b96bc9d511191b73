/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the page says of a session of memory: Memory of web/types.js. */
#include <stdlib.h>
#include <string.h>

#include "view/memory/memory.h"
#include "view/page/page_priv.h"

enum { ROWS = 50 }; /* of types and of what grows */

static uint64_t since_start(const struct as_page *p, uint64_t ns)
{
	return ns > p->m->recording.start_ns ? ns - p->m->recording.start_ns : 0;
}

static void processes(struct as_page *p)
{
	struct as_json *j = &p->j;

	as_json_arr(j, "processes");
	as_vec_foreach (x, &p->m->heap.processes) {
		as_json_obj(j, NULL);
		as_json_u64(j, "process", x->process);
		as_json_u64(j, "peak", x->peak_bytes);
		as_json_u64(j, "peakTime", since_start(p, x->peak_ns));
		as_json_u64(j, "live", x->live_bytes);
		as_json_u64(j, "liveBlocks", x->live_blocks);
		as_json_u64(j, "mappedPeak", x->mapped_peak_bytes);
		as_json_u64(j, "allocs", x->allocs);
		as_json_u64(j, "frees", x->frees);
		as_json_end(j);
	}
	as_json_end(j);
}

/* Several records may be one mark. */
static void marks(struct as_page *p)
{
	const struct as_m_heap_mark *last = NULL;
	struct as_json *j = &p->j;

	as_json_arr(j, "marks");
	as_vec_foreach (k, &p->m->heap.marks) {
		bool same = last && last->r.process == k->r.process &&
			    last->r.time_ns == k->r.time_ns && strcmp(last->name, k->name) == 0;

		last = k;
		if (same)
			continue;
		as_json_obj(j, NULL);
		as_json_u64(j, "process", k->r.process);
		as_json_u64(j, "time", since_start(p, k->r.time_ns));
		as_json_str(j, "name", k->name);
		as_json_u64(j, "live", k->r.live_bytes);
		as_json_end(j);
	}
	as_json_end(j);
}

/* Bins that are used, from the first to the last. */
static void bins(struct as_page *p, const struct as_selection *s, enum as_heap_bins_of of,
		 const char *key)
{
	struct as_json *j = &p->j;
	struct as_heap_bins b;
	unsigned lo = 0, hi = AS_HEAP_BINS;

	as_heap_bins_make(s, of, &b);
	while (lo < hi && !b.count[lo])
		lo++;
	while (hi > lo && !b.count[hi - 1])
		hi--;
	as_json_arr(j, key);
	for (unsigned k = lo; k < hi; k++) {
		struct as_buf text = {0};

		as_memory_bin(of, k, &text);
		as_json_obj(j, NULL);
		as_json_str(j, "label", text.p);
		as_json_u64(j, "count", b.count[k]);
		as_json_end(j);
		as_buf_clear(&text);
	}
	as_json_end(j);
}

static void types(struct as_page *p, const struct as_selection *s)
{
	struct as_heap_types t;
	struct as_json *j = &p->j;

	as_heap_types_make(s, &t);
	as_json_arr(j, "types");
	for (size_t i = 0; i < t.v.n && i < ROWS; i++) {
		const uint64_t *v = t.v.v[i].values;

		as_json_obj(j, NULL);
		as_json_str(j, "name", t.v.v[i].name);
		as_json_u64(j, "allocs", v[AS_HEAP_ALLOCS]);
		as_json_u64(j, "bytes", v[AS_HEAP_BYTES]);
		as_json_u64(j, "live", v[AS_HEAP_LIVE_BYTES]);
		as_json_u64(j, "peak", v[AS_HEAP_PEAK_BYTES]);
		as_json_u64(j, "churn", v[AS_HEAP_CHURN_BLOCKS]);
		as_json_u64(j, "growth", v[AS_HEAP_GROWTH_BYTES]);
		as_json_end(j);
	}
	as_json_end(j);
	as_heap_types_clear(&t);
}

static void chains(struct as_page *p, const struct as_selection *s)
{
	struct as_heap_chains c;
	struct as_json *j = &p->j;

	as_heap_chains_make(s, &c);
	as_json_arr(j, "reallocs");
	for (size_t i = 0; i < c.v.n && i < ROWS; i++) {
		const struct as_heap_chain *x = &c.v.v[i];
		struct as_buf advice = {0};

		as_memory_advice(p->m, x, &advice);
		as_json_obj(j, NULL);
		as_json_i64(j, "function", x->place ? (int64_t)x->place->function : -1);
		as_json_u64(j, "line", x->place ? x->place->line : 0);
		as_json_str(j, "type", x->type);
		as_json_u64(j, "reallocs", x->reallocs);
		as_json_u64(j, "copied", x->copied_bytes);
		as_json_u64(j, "blocks", AS_MAX(x->chains, x->ended));
		as_json_u64(j, "last", x->ended ? x->last_bytes / x->ended : 0);
		as_json_str(j, "advice", as_buf_str(&advice));
		as_json_end(j);
		as_buf_clear(&advice);
	}
	as_json_end(j);
	as_heap_chains_clear(&c);
}

void as_page_memory(struct as_page *p)
{
	struct as_json *j = &p->j;
	struct as_rec_heap_process sum;
	struct as_selection *s = NULL;
	uint64_t bytes = 0;

	as_vec_foreach (row, &p->m->heap.rows)
		bytes += row->r.domain == 0 ? row->r.bytes : 0;
	as_model_heap_sum(p->m, &sum);
	as_json_obj(j, "memory");
	as_json_str(j, "measure", as_measure_name(p->m->measure));
	as_json_u64(j, "allocs", sum.allocs);
	as_json_u64(j, "bytes", bytes);
	processes(p);
	marks(p);
	as_page_moments(p);
	as_page_looks(p);
	if (as_selection_make(p->m, NULL, &s, NULL) == 0) { /* no filter can be wrong */
		bins(p, s, AS_HEAP_SIZES, "sizes");
		bins(p, s, AS_HEAP_LIFETIMES, "lifetimes");
		bins(p, s, AS_HEAP_AGES, "ages");
		types(p, s);
		chains(p, s);
	}
	as_selection_free(s);
	as_json_end(j);
}
