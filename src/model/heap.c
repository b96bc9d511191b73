/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Measures of memory: rows as samples. */
#include "model/heap.h"

#include <stdlib.h>
#include <string.h>
#include "base/json.h"
#include "model/model_priv.h"
#include "model/profile_priv.h"

static const char *const names[] = {"time",  "allocs", "bytes",  "live",  "peak",
				    "churn", "growth", "leaked", "mapped"};
_Static_assert(AS_ARRAY_LEN(names) == AS_MEASURE_COUNT_, "each measure has a name");

const char *as_measure_name(enum as_measure measure)
{
	return names[measure];
}

bool as_measure_is_bytes(enum as_measure measure)
{
	return measure != AS_MEASURE_ALLOCS && measure != AS_MEASURE_CHURN;
}

static uint64_t at_least_0(int64_t v)
{
	return v > 0 ? (uint64_t)v : 0;
}

static uint64_t weight_of(const struct as_rec_heap_stack *r, enum as_measure measure)
{
	switch (measure) {
	case AS_MEASURE_ALLOCS:
		return r->allocs;
	case AS_MEASURE_BYTES:
		return r->bytes;
	case AS_MEASURE_LIVE:
		return r->live_bytes;
	case AS_MEASURE_CHURN:
		return r->churn_blocks;
	case AS_MEASURE_GROWTH:
		return at_least_0(r->growth_bytes);
	default: /* PEAK; MAPPED, of its own domain */
		return r->peak_bytes;
	}
}

static int check(const struct as_model *m, enum as_measure measure, struct as_error *err)
{
	if (!m->heap.is)
		return as_fail(err, AS_E_USAGE, 0,
			       "this session is of time: it has no measure '%s'",
			       names[measure]);
	if (measure == AS_MEASURE_TIME)
		return as_fail(err, AS_E_USAGE, 0,
			       "this session is of memory: measures are allocs, bytes, live, "
			       "peak, churn, growth, mapped");
	if (measure == AS_MEASURE_LEAKED)
		return as_fail(err, AS_E_USAGE, 0,
			       "leaks were not looked for in this session"
			       "\n  what was live at the end: --measure live"
			       "\n  what grew over the run: --measure growth");
	return AS_OK;
}

int as_model_measure(struct as_model *m, enum as_measure measure, bool fold,
		     struct as_error *err)
{
	uint64_t domain = measure == AS_MEASURE_MAPPED;
	int r = measure == AS_MEASURE_TIME && !m->heap.is ? AS_OK : check(m, measure, err);

	if (r < 0 || !m->heap.is)
		return r;
	m->measure = measure;
	m->samples.n = 0;
	m->heap.row_of =
		as_xreallocarray(m->heap.row_of, m->heap.rows.n + 1, sizeof *m->heap.row_of);
	m->heap.weight =
		as_xreallocarray(m->heap.weight, m->heap.rows.n + 1, sizeof *m->heap.weight);
	for (uint32_t i = 0; i < m->heap.rows.n; i++) {
		const struct as_m_heap_row *row = &m->heap.rows.v[i];
		uint64_t weight = weight_of(&row->r, measure);

		if (row->r.domain != domain)
			continue;
		m->heap.row_of[m->samples.n] = i;
		m->heap.weight[m->samples.n] = weight;
		as_vec_push(&m->samples, (struct as_m_sample){
						 .time_ns = m->recording.start_ns,
						 .thread = (uint32_t)row->r.thread,
						 .stack = fold ? row->folded : row->stack,
						 .weight = (uint32_t)AS_MIN(weight, UINT32_MAX),
						 .end = (uint16_t)row->r.end,
					 });
	}
	return AS_OK;
}

void as_heap_complete(struct as_model *m)
{
	if (!m->heap.is)
		return;
	as_heap_fold(m);
	(void)as_model_measure(m, AS_MEASURE_PEAK, true, NULL); /* a session of memory has it */
}

void as_model_heap_sum(const struct as_model *m, struct as_rec_heap_process *ret)
{
	*ret = (struct as_rec_heap_process){0};
	as_vec_foreach (p, &m->heap.processes) {
		ret->events += p->events;
		ret->dropped += p->dropped;
		ret->allocs += p->allocs;
		ret->reallocs += p->reallocs;
		ret->frees += p->frees;
		ret->unmatched_frees += p->unmatched_frees;
		ret->unmatched_allocs += p->unmatched_allocs;
		ret->unmatched_reallocs += p->unmatched_reallocs;
		ret->zero += p->zero;
		ret->failed += p->failed;
		ret->crowded += p->crowded;
		ret->complete += p->complete;
		ret->cut += p->cut;
		ret->holes += p->holes;
		ret->live_blocks += p->live_blocks;
		ret->live_bytes += p->live_bytes;
		ret->peak_blocks += p->peak_blocks;
		ret->peak_bytes += p->peak_bytes;
		ret->mapped_bytes += p->mapped_bytes;
		ret->mapped_peak_bytes += p->mapped_peak_bytes;
	}
	if (m->heap.processes.n == 1)
		ret->peak_ns = m->heap.processes.v[0].peak_ns;
}

/* ---- rows of profiles ---- */

static void add_values(uint64_t *to, const struct as_rec_heap_stack *r)
{
	to[AS_HEAP_ALLOCS] += r->allocs;
	to[AS_HEAP_BYTES] += r->bytes;
	to[AS_HEAP_FREES] += r->frees;
	to[AS_HEAP_LIVE_BLOCKS] += r->live_blocks;
	to[AS_HEAP_LIVE_BYTES] += r->live_bytes;
	to[AS_HEAP_PEAK_BLOCKS] += r->peak_blocks;
	to[AS_HEAP_PEAK_BYTES] += r->peak_bytes;
	to[AS_HEAP_CHURN_BLOCKS] += r->churn_blocks;
	to[AS_HEAP_GROWTH_BYTES] += at_least_0(r->growth_bytes);
	to[AS_HEAP_REALLOCS] += r->reallocs;
	to[AS_HEAP_COPIED_BYTES] += r->copied_bytes;
}

void as_heap_values(const struct as_build *b, const struct as_pass *p, uint64_t *values)
{
	for (size_t i = b->lo; i < b->hi; i++) {
		const struct as_rec_heap_stack *r = &b->m->heap.rows.v[b->m->heap.row_of[i]].r;
		uint32_t end = b->end[i - b->lo], node;

		if (end >= AS_OUT)
			continue;
		node = b->ends.v[end].node;
		if (p->self_row[node] != AS_NONE)
			add_values(values + (size_t)p->self_row[node] * AS_HEAP_VALUES, r);
		for (; node != AS_NONE; node = p->tree->nodes.v[node].parent) {
			if (p->total_row[node] != AS_NONE)
				add_values(values + (size_t)p->total_row[node] * AS_HEAP_VALUES,
					   r);
		}
	}
}

/* ---- trust ---- */

static void layers_json(const struct as_model *m, uint64_t process, struct as_json *j)
{
	as_json_arr(j, "layers");
	as_vec_foreach (l, &m->heap.layers) {
		if (process != UINT64_MAX && l->process != process)
			continue;
		as_json_obj(j, NULL);
		as_json_str(j, "layer", l->layer);
		as_json_str(j, "module",
			    l->module == AS_NONE ? "" : m->modules.v[l->module].name);
		as_json_str(j, "function", l->function);
		as_json_u64(j, "events", l->events);
		as_json_end(j);
	}
	as_json_end(j);
}

static void figures_json(const struct as_rec_heap_process *p, struct as_json *j)
{
	as_json_u64(j, "events", p->events);
	as_json_u64(j, "dropped", p->dropped);
	as_json_u64(j, "allocs", p->allocs);
	as_json_u64(j, "reallocs", p->reallocs);
	as_json_u64(j, "frees", p->frees);
	as_json_u64(j, "unmatched_frees", p->unmatched_frees);
	as_json_u64(j, "unmatched_allocs", p->unmatched_allocs);
	as_json_u64(j, "unmatched_reallocs", p->unmatched_reallocs);
	as_json_u64(j, "zero_size", p->zero);
	as_json_u64(j, "failed", p->failed);
	as_json_u64(j, "peak_bytes", p->peak_bytes);
	as_json_u64(j, "peak_blocks", p->peak_blocks);
	as_json_u64(j, "live_bytes", p->live_bytes);
	as_json_u64(j, "live_blocks", p->live_blocks);
	as_json_u64(j, "mapped_bytes", p->mapped_bytes);
	as_json_u64(j, "mapped_peak_bytes", p->mapped_peak_bytes);
	as_json_u64(j, "complete", p->complete);
	as_json_u64(j, "truncated", p->cut);
	as_json_u64(j, "unfinished", p->holes);
	as_json_u64(j, "crowded", p->crowded);
}

void as_heap_trust_json(const struct as_model *m, const char *key, struct as_json *j)
{
	struct as_rec_heap_process sum;

	as_model_heap_sum(m, &sum);
	as_json_obj(j, key);
	figures_json(&sum, j);
	layers_json(m, UINT64_MAX, j);
	as_json_arr(j, "processes");
	as_vec_foreach (p, &m->heap.processes) {
		as_json_obj(j, NULL);
		as_json_u64(j, "pid", m->processes.v[p->process].pid);
		as_json_str(j, "name", m->processes.v[p->process].name);
		figures_json(p, j);
		layers_json(m, p->process, j);
		as_json_end(j);
	}
	as_json_end(j);
	as_json_bool(j, "interrupted", !m->has_summary || !m->health.complete);
	as_notes_json(m, j);
	as_json_end(j);
}
