/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs as data: see stat.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "stats/runs.h"
#include "view/stat/stat.h"
#include "view/stat/stat_priv.h"

static double *values_of(const struct as_runs *runs, int m)
{
	double *v = as_xreallocarray(NULL, runs->v.n + 1, sizeof *v);

	for (size_t i = 0; i < runs->v.n; i++)
		v[i] = runs->v.v[i].v[m];
	return v;
}

/* How much of the time the event was really counted, where that was not all of it. */
static void json_counted(struct as_json *j, const struct as_stat_view *v,
			 const struct as_runs *runs, int m)
{
	const struct as_event *e = as_plan_event(v->plan, m);
	double counted = 1, error = 0;

	as_vec_foreach (run, &runs->v) {
		if (!isnan(run->v[m]) && run->counted[m] < counted && (e || m >= AS_M_COUNT_)) {
			counted = run->counted[m];
			error = run->error[m];
		}
	}
	if (counted < 1) {
		as_json_num(j, "counted", counted, 4);
		as_json_num(j, "error", error, 4);
	}
	if (e && e->user_only && !e->any_mode)
		as_json_bool(j, "user_only", true);
}

static void json_metric(struct as_json *j, const struct as_stat_view *view, int side, int m)
{
	const struct as_runs *runs = &view->repeat->side[side];
	struct as_metric_info info = as_plan_row(view->plan, m);
	AS_CLEANUP(as_free_autop) double *v = values_of(runs, m);
	struct as_runs_summary s;

	as_runs_summarise(v, runs->v.n, &s);
	if (!s.n)
		return;
	as_json_obj(j, NULL);
	as_json_str(j, "name", info.name);
	as_json_str(j, "unit", info.unit);
	as_json_num(j, "mean", s.mean, 9);
	as_json_num(j, "low", s.low, 9);
	as_json_num(j, "high", s.high, 9);
	as_json_num(j, "sd", s.sd, 6);
	as_json_num(j, "median", s.median, 9);
	as_json_num(j, "min", s.min, 9);
	as_json_num(j, "max", s.max, 9);
	as_json_num(j, "drift", s.drift, 4);
	as_json_bool(j, "mixture", s.mixture);
	json_counted(j, view, runs, m);
	as_json_arr(j, "values");
	for (size_t i = 0; i < runs->v.n; i++)
		as_json_num(j, NULL, v[i], 9);
	as_json_end(j);
	as_json_end(j);
}

static void json_side(struct as_json *j, const struct as_stat_view *v, int side)
{
	const struct as_run_request *q = side ? &v->request->other : &v->request->run;

	as_json_arr(j, "command");
	for (char *const *w = q->argv; w && *w; w++)
		as_json_str(j, NULL, *w);
	as_json_end(j);
	as_json_bool(j, "unoptimised", v->unoptimised[side]);
	if (v->pid)
		as_json_u64(j, "pid", (uint64_t)v->pid);
	as_json_u64(j, "runs", v->repeat->side[side].v.n);
	as_json_arr(j, "metrics");
	for (int m = 0; m < as_plan_rows(v->plan); m++) {
		if (as_plan_wanted(v->plan, m))
			json_metric(j, v, side, m);
	}
	as_json_end(j);
}

static void json_ratio(struct as_json *j, const char *key, const struct as_trimmed *t)
{
	as_json_obj(j, key);
	as_json_num(j, "ratio", exp(t->value), 7);
	as_json_num(j, "low", exp(t->lo), 7);
	as_json_num(j, "high", exp(t->hi), 7);
	as_json_end(j);
}

static void json_comparison(struct as_json *j, const struct as_stat_view *v)
{
	const struct as_repeat *r = v->repeat;
	const struct as_trimmed *t = &r->by[r->decides == AS_M_CPU];

	as_json_obj(j, "comparison");
	if (v->baseline)
		as_json_str(j, "baseline", v->baseline);
	if (v->baseline_note)
		as_json_str(j, "baseline_note", v->baseline_note);
	as_json_str(j, "metric", as_metrics[r->decides].name);
	as_json_num(j, "ratio", exp(t->value), 7);
	as_json_num(j, "low", exp(t->lo), 7);
	as_json_num(j, "high", exp(t->hi), 7);
	as_json_str(j, "verdict", as_verdict_name(r->look.verdict));
	as_json_u64(j, "pairs", t->n);
	as_json_u64(j, "runs_needed", r->look.pairs_needed);
	as_json_num(j, "delta", v->request->delta, 6);
	json_ratio(j, "wall", &r->by[0]);
	json_ratio(j, "cpu", &r->by[1]);
	as_json_bool(j, "disagree", r->disagree);
	as_json_bool(j, "mixture", r->look.mixture);
	as_json_end(j);
}

void as_stat_json(const struct as_stat_view *v, struct as_buf *out)
{
	struct as_json j = {.out = out, .indent = !v->one_line};

	as_json_obj(&j, NULL);
	as_json_str(&j, "schema", "assay.stat/1");
	json_side(&j, v, 0);
	if (v->request->other.argv) {
		as_json_obj(&j, "other");
		json_side(&j, v, 1);
		as_json_end(&j);
		json_comparison(&j, v);
	}
	if (v->plan->no_pmu)
		as_json_bool(&j, "no_pmu", true);
	as_json_u64(&j, "failed_run", v->repeat->failed_run);
	as_json_bool(&j, "stopped", v->repeat->stopped);
	as_json_end(&j);
	as_buf_addc(out, '\n');
}

static void csv_side(const struct as_stat_view *v, int side, struct as_buf *out)
{
	for (size_t i = 0; i < v->repeat->side[side].v.n; i++) {
		as_buf_addf(out, "%d,%zu", side + 1, i + 1);
		for (int m = 0; m < as_plan_rows(v->plan); m++) {
			double x = v->repeat->side[side].v.v[i].v[m];

			if (!as_plan_wanted(v->plan, m))
				continue;
			if (isnan(x))
				as_buf_addc(out, ',');
			else
				as_buf_addf(out, ",%.9g", x);
		}
		as_buf_addc(out, '\n');
	}
}

void as_stat_csv_name(struct as_buf *out, const char *name)
{
	bool quoted = strpbrk(name, ",\"") != NULL;

	as_buf_addf(out, quoted ? ",\"%s\"" : ",%s", name); /* no name has a quote in it */
}

void as_stat_csv(const struct as_stat_view *v, struct as_buf *out)
{
	as_buf_adds(out, "command,run");
	for (int m = 0; m < as_plan_rows(v->plan); m++) {
		if (as_plan_wanted(v->plan, m))
			as_stat_csv_name(out, as_plan_row(v->plan, m).name);
	}
	as_buf_addc(out, '\n');
	csv_side(v, 0, out);
	csv_side(v, 1, out);
}
