/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The report as JSON, schema assay.report/1: docs/formats/report-json.md. */
#include "view/memory/alloc_time.h"
#include "view/memory/leaks.h"
#include "view/memory/memory.h"
#include "view/report/report.h"
#include "view/report/trust.h"

void as_report_filter_json(const struct as_query *q, struct as_json *j)
{
	as_json_obj(j, "filter");
	if (q->of)
		as_json_str(j, "of", q->of);
	if (q->focus)
		as_json_str(j, "focus", q->focus);
	if (q->ignore)
		as_json_str(j, "ignore", q->ignore);
	if (q->hide)
		as_json_str(j, "hide", q->hide);
	if (q->thread)
		as_json_str(j, "thread", q->thread);
	if (q->module)
		as_json_str(j, "module", q->module);
	if (q->from_ns || q->to_ns) {
		as_json_num(j, "from_s", (double)q->from_ns / 1e9, 12);
		if (q->to_ns != UINT64_MAX)
			as_json_num(j, "to_s", (double)q->to_ns / 1e9, 12);
	}
	if (q->no_inline)
		as_json_bool(j, "no_inline", true);
	if (q->no_kernel)
		as_json_bool(j, "no_kernel", true);
	as_json_end(j);
}

static void query_json(const struct as_query *q, struct as_json *j)
{
	static const char *const shape[] = {"flat", "tree", "inverted", "callers", "callees"};

	as_json_str(j, "by", as_report_by_word(q->by, false));
	as_json_str(j, "shape", shape[q->shape]);
	as_report_filter_json(q, j);
}

static void trials_json(const struct as_model *m, struct as_json *j)
{
	as_json_arr(j, "runs");
	as_vec_foreach (t, &m->trials) {
		as_json_obj(j, NULL);
		as_json_num(j, "start_s",
			    ((double)t->start_ns - (double)m->recording.start_ns) / 1e9, 12);
		as_json_num(j, "wall_s", (double)(t->end_ns - t->start_ns) / 1e9, 9);
		as_json_num(j, "cpu_s", (double)t->cpu_ns / 1e9, 9);
		if (t->exit == UINT64_MAX)
			as_json_null(j, "wait_status");
		else
			as_json_u64(j, "wait_status", t->exit);
		as_json_end(j);
	}
	as_json_end(j);
}

void as_report_json_head(const struct as_model *m, double weight, double kept_weight,
			 struct as_json *j)
{
	struct as_trust trust;

	as_model_trust(m, &trust);
	as_json_str(j, "schema", "assay.report/1");
	as_json_arr(j, "command");
	as_vec_foreach (arg, &m->args)
		as_json_str(j, NULL, *arg);
	as_json_end(j);
	as_json_num(j, "duration_s", trust.duration_s, 9);
	as_json_num(j, "cpu_s", trust.cpu_s, 9);
	if (m->trials.n)
		trials_json(m, j);
	if (as_model_is_counted(m)) {
		as_json_str(j, "measure", as_measure_name(m->measure));
		if (m->heap.at)
			as_json_str(j, "mark", m->heap.at);
		if (m->heap.by_first)
			as_json_str(j, "grown", "first");
		as_json_str(j, "unit", as_measure_is_bytes(m->measure) ? "bytes" : "count");
		as_json_u64(j, "amount", as_memory_whole(weight));
		as_json_u64(j, "kept_amount", as_memory_whole(kept_weight));
	}
	as_trust_json(m, "trust", j);
	if (m->measure == AS_MEASURE_ALLOC_TIME)
		as_json_str(j, "measure", as_measure_name(m->measure));
	if (m->heap.is)
		as_heap_processes_json(m, "processes", j);
}

void as_report_json(const struct as_report_request *q, const struct as_profile *p,
		    const struct as_table *t, struct as_buf *out)
{
	struct as_json j = {.out = out, .indent = true};

	as_json_obj(&j, NULL);
	as_report_json_head(q->model, p->weight, p->kept_weight, &j);
	query_json(&q->query, &j);
	as_json_u64(&j, "samples", p->samples);
	as_json_u64(&j, "kept_samples", p->kept_samples);
	as_json_num(&j, "kept", p->weight > 0 ? p->kept_weight / p->weight : 0, 6);
	as_table_json(t, "rows", &j);
	if (as_model_is_counted(q->model)) {
		as_leaks_json(q->model, &j);
		as_resident_json(q->model, &j);
		as_memory_flows_json(q->model, &j);
	}
	if (q->alloc_time)
		as_alloc_time_json(q->model, q->alloc_time, &j);
	as_json_end(&j);
	as_buf_addc(out, '\n');
}
