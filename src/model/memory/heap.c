/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Measures of memory: rows as samples. */
#include "model/memory/heap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/json.h"
#include "model/model_priv.h"
#include "model/profile/profile_priv.h"
#include "model/profile/selection.h"

static const char *const names[] = {"time",  "allocs", "bytes",  "live",   "peak",
				    "churn", "growth", "leaked", "mapped", "alloc-time"};
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
	if (measure == AS_MEASURE_TIME || measure == AS_MEASURE_ALLOC_TIME) {
		if (m->time.is)
			return AS_OK;
		return as_fail(err, AS_E_USAGE, 0,
			       "this session is of memory: measures are allocs, bytes, live, "
			       "peak, churn, growth, leaked, mapped"
			       "\n  for both: assay record --heap");
	}
	if (!m->heap.is)
		return as_fail(err, AS_E_USAGE, 0,
			       "this session is of time: it has no measure '%s'"
			       "\n  for both: assay record --heap",
			       names[measure]);
	if (measure == AS_MEASURE_LEAKED && !m->heap.look.leaks.n)
		return as_fail(err, AS_E_USAGE, 0,
			       "leaks were not looked for in this session"
			       "\n  what was live at the end: --measure live"
			       "\n  what grew over the run: --measure growth");
	return AS_OK;
}

/* A sample per row of the domain, in the rows' order. */
static void make_samples(struct as_model *m, enum as_measure measure, bool fold)
{
	uint64_t domain = measure == AS_MEASURE_MAPPED;

	m->measure = measure;
	m->samples.n = 0;
	m->heap.at = NULL;
	m->heap.row_of =
		as_xreallocarray(m->heap.row_of, m->heap.rows.n + 1, sizeof *m->heap.row_of);
	m->heap.weight =
		as_xreallocarray(m->heap.weight, m->heap.rows.n + 1, sizeof *m->heap.weight);
	for (uint32_t i = 0; i < m->heap.rows.n; i++) {
		const struct as_m_heap_row *row = &m->heap.rows.v[i];
		uint64_t weight = measure == AS_MEASURE_LEAKED ? m->heap.look.leaked[i]
							       : weight_of(&row->r, measure);

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
}

int as_model_measure(struct as_model *m, enum as_measure measure, bool fold,
		     struct as_error *err)
{
	int r = check(m, measure, err);

	if (r < 0 || (measure == AS_MEASURE_TIME && m->measure == AS_MEASURE_TIME))
		return r;
	if (m->time.is)
		as_time_restore(m);
	if (measure == AS_MEASURE_ALLOC_TIME)
		as_time_of_allocators(m, fold);
	else if (measure != AS_MEASURE_TIME)
		make_samples(m, measure, fold);
	return r;
}

int as_model_has_measure(const struct as_model *m, enum as_measure measure,
			 struct as_error *err)
{
	return check(m, measure, err);
}

void as_model_grown_first(struct as_model *m)
{
	if (m->heap.by_first)
		return;
	m->heap.by_first = true;
	/* an origin has none itself, and a smaller number: it is as it was recorded */
	as_vec_foreach (row, &m->heap.rows) {
		const struct as_m_heap_row *made;

		if (!row->r.origin)
			continue;
		made = &m->heap.rows.v[row->r.origin - 1];
		row->stack = made->stack;
		row->folded = made->folded;
		row->r.thread = made->r.thread;
		row->r.end = made->r.end;
	}
}

/* ---- marks ---- */

/* Adds what was live at a mark; sample: per row, AS_NONE where it has none. */
static void add_mark(struct as_model *m, const struct as_m_heap_mark *mark,
		     const uint32_t *sample)
{
	for (size_t i = 0; i + 2 < mark->r.stacks.n; i += 3) {
		uint64_t row = mark->r.stacks.v[i], bytes = mark->r.stacks.v[i + 2];

		if (row >= m->heap.rows.n || sample[row] == AS_NONE)
			continue;
		m->heap.weight[sample[row]] += bytes;
		m->samples.v[sample[row]].weight =
			(uint32_t)AS_MIN(m->heap.weight[sample[row]], UINT32_MAX);
	}
}

static int add_marks(struct as_model *m, const char *mark, const uint32_t *sample,
		     struct as_error *err)
{
	struct as_heap_moments moments;
	uint32_t moment;
	int r;

	as_heap_moments_make(m, &moments);
	r = as_heap_moments_find(&moments, mark, &moment, err);
	for (size_t i = 0; r == AS_OK && i < m->heap.marks.n; i++) {
		if (moments.of_mark[i] == moment)
			add_mark(m, &m->heap.marks.v[i], sample);
	}
	if (r == AS_OK)
		m->heap.at_ns = moments.v.v[moment].time_ns;
	as_heap_moments_clear(&moments);
	return r;
}

int as_model_measure_at(struct as_model *m, const char *mark, bool fold, struct as_error *err)
{
	int r = as_model_measure(m, AS_MEASURE_LIVE, fold, err);
	AS_CLEANUP(as_free_autop) uint32_t *sample = NULL;

	if (r < 0)
		return r;
	sample = as_xreallocarray(NULL, m->heap.rows.n + 1, sizeof *sample);
	memset(sample, 0xff, (m->heap.rows.n + 1) * sizeof *sample);
	for (uint32_t i = 0; i < m->samples.n; i++) {
		sample[m->heap.row_of[i]] = i;
		m->samples.v[i].weight = 0;
		m->heap.weight[i] = 0;
	}
	m->heap.at = as_arena_strdup(&m->arena, mark);
	m->heap.at_ns = 0;
	return *mark ? add_marks(m, mark, sample, err) : AS_OK;
}

void as_heap_complete(struct as_model *m)
{
	if (!m->heap.is)
		return;
	as_heap_fold(m);
	as_leaks_complete(m);
	if (m->time.is)
		return;
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
		ret->inherited += p->inherited;
		ret->own_ns += p->own_ns;
		ret->timed_calls += p->timed_calls;
	}
	if (m->heap.processes.n == 1)
		ret->peak_ns = m->heap.processes.v[0].peak_ns;
}

/* Of fewer the one that met a page fault would be most. */
#define TIMED_LEAST 30u

void as_model_heap_own(const struct as_model *m, struct as_heap_own *ret)
{
	struct as_rec_heap_process sum;
	uint64_t cpu_ns = m->summary.user_ns + m->summary.sys_ns;

	*ret = (struct as_heap_own){NAN, NAN, NAN};
	as_model_heap_sum(m, &sum);
	if (sum.timed_calls >= TIMED_LEAST)
		ret->in_program_s = (double)sum.own_ns / 1e9;
	if (m->has_summary && cpu_ns)
		ret->program_s = (double)cpu_ns / 1e9;
	if (ret->program_s > ret->in_program_s)
		ret->slowdown = ret->program_s / (ret->program_s - ret->in_program_s) - 1;
}

/* ---- rows of profiles ---- */

/* In the order of enum as_alloc_kind, behind NONE. */
static void add_time(const struct as_model *m, size_t sample, uint64_t *to)
{
	unsigned kind = as_model_alloc_kind(m, m->samples.v[sample].stack);

	if (kind)
		to[AS_HEAP_NEW_NS + kind - 1] += as_model_weight(m, sample);
}

static void add_sample(const struct as_model *m, size_t sample, uint64_t *to)
{
	if (as_model_is_counted(m))
		as_heap_add_values(m, m->heap.row_of[sample], to);
	else
		add_time(m, sample, to);
}

void as_heap_add_values(const struct as_model *m, uint32_t row, uint64_t *to)
{
	const struct as_rec_heap_stack *r = &m->heap.rows.v[row].r;

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
	to[AS_HEAP_LEAKED_BYTES] += m->heap.look.leaked[row];
}

uint64_t *as_heap_group_values(const struct as_selection *s)
{
	uint64_t *values = as_xcalloc(s->groups.n + 1, AS_HEAP_VALUES * sizeof *values);

	for (size_t i = s->lo; i < s->hi; i++) {
		uint32_t group = s->group[i - s->lo];

		if (group != AS_NONE)
			as_heap_add_values(s->model, s->model->heap.row_of[i],
					   values + (size_t)group * AS_HEAP_VALUES);
	}
	return values;
}

void as_heap_values(const struct as_build *b, const struct as_pass *p, uint64_t *values)
{
	for (size_t i = b->lo; i < b->hi; i++) {
		uint32_t end = b->end[i - b->lo], node;

		if (end >= AS_OUT)
			continue;
		node = b->ends.v[end].node;
		if (p->self_row[node] != AS_NONE)
			add_sample(b->m, i,
				   values + (size_t)p->self_row[node] * AS_HEAP_VALUES);
		for (; node != AS_NONE; node = p->tree->nodes.v[node].parent) {
			if (p->total_row[node] != AS_NONE)
				add_sample(b->m, i,
					   values +
						   (size_t)p->total_row[node] * AS_HEAP_VALUES);
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
	as_json_u64(j, "inherited", p->inherited);
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

void as_heap_processes_json(const struct as_model *m, const char *key, struct as_json *j)
{
	as_json_arr(j, key);
	as_vec_foreach (p, &m->heap.processes) {
		const struct as_m_process *process = &m->processes.v[p->process];

		as_json_obj(j, NULL);
		as_json_u64(j, "pid", process->pid);
		if (process->parent == AS_NONE)
			as_json_null(j, "parent");
		else
			as_json_u64(j, "parent", m->processes.v[process->parent].pid);
		as_json_str(j, "name", process->name);
		as_json_obj(j, "trust");
		figures_json(p, j);
		layers_json(m, p->process, j);
		as_json_end(j);
		as_json_end(j);
	}
	as_json_end(j);
}

void as_heap_trust_json(const struct as_model *m, const char *key, struct as_json *j)
{
	struct as_rec_heap_process sum;
	struct as_heap_own own;

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
	as_model_heap_own(m, &own);
	as_json_num(j, "own_cpu_s", own.in_program_s, 6);
	as_json_num(j, "slowdown", own.slowdown, 6);
	as_json_num(j, "recorder_cpu_s",
		    m->has_summary ? (double)m->summary.recorder_cpu_ns / 1e9 : NAN, 6);
	as_json_u64(j, "recorder_rss_bytes", m->summary.recorder_rss_bytes);
	as_json_bool(j, "interrupted", !m->has_summary || !m->health.complete);
	as_notes_json(m, j);
	as_json_end(j);
}
