/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Results into the history and back: see keep.h. */
#include "results/keep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/git.h"
#include "base/sys.h"
#include "history/runs.h"
#include "results/judge.h"

#define NAMES_MAX 2000 /* trends of a project */

/* The folder above, or this one, that holds .git; else this one. */
static char *project_folder(void)
{
	AS_CLEANUP(as_free_autop) char *here = realpath(".", NULL);

	for (size_t n = here ? strlen(here) : 0; n; n--) {
		AS_CLEANUP(as_free_autop) char *git = NULL;

		if (here[n] && here[n] != '/')
			continue;
		git = as_xasprintf("%.*s/.git", (int)n, here);
		if (access(git, F_OK) == 0)
			return as_xstrndup(here, n);
	}
	return as_xstrdup(here ? here : ".");
}

/* "1a2b3c4d5e6f", with -dirty where files are not as committed; NULL: no repository. */
static char *current_revision(const char *folder)
{
	struct as_git git = {.folder = folder};
	AS_CLEANUP(as_buf_clear) struct as_buf commit = {0}, changed = {0};

	if (AS_GIT(&git, &commit, NULL, "rev-parse", "--short=12", "HEAD") < 0)
		return NULL;
	if (AS_GIT(&git, &changed, NULL, "status", "--porcelain", "--untracked-files=no") < 0)
		return as_xstrdup(as_buf_str(&commit));
	return as_xasprintf("%s%s", as_buf_str(&commit), changed.len ? "-dirty" : "");
}

/* The set as JSON, without single batches. */
static void small_json(struct as_bench_set *s, struct as_buf *out)
{
	AS_CLEANUP(as_free_autop)
	size_t *counts = as_xreallocarray(NULL, s->benches.n + 1, sizeof *counts);

	for (size_t i = 0; i < s->benches.n; i++) {
		counts[i] = s->benches.v[i].batch_times.n;
		s->benches.v[i].batch_times.n = 0;
	}
	as_bench_json(s, out);
	for (size_t i = 0; i < s->benches.n; i++)
		s->benches.v[i].batch_times.n = counts[i];
}

static void judge_environment(struct as_history *h, struct as_bench_set *s, const char *suite)
{
	struct as_history_run last;
	struct as_bench_set before;

	if (as_history_run_find(h, "last", suite, &last, NULL) < 0)
		return; /* the first run here */
	if (as_bench_read("history", last.result, strlen(last.result), &before, NULL) ==
	    AS_OK) {
		as_bench_judge_environment(s, &before);
		as_bench_set_clear(&before);
	}
	as_history_run_clear(&last);
}

static int save(struct as_history *h, struct as_bench_set *s, const char *suite,
		const char *name, int64_t *ret_id, struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *machine = as_history_fingerprint();
	AS_CLEANUP(as_buf_clear) struct as_buf json = {0};
	AS_CLEANUP(as_free_autop)
	struct as_history_point *points = as_xcalloc(s->benches.n + 1, sizeof *points);
	struct as_history_run run = {.time_s = s->time_s,
				     .name = (char *)(uintptr_t)name,
				     .suite = (char *)(uintptr_t)suite,
				     .machine = machine,
				     .toolchain = s->toolchain,
				     .revision = s->revision,
				     .tool = s->tool};
	size_t n = 0;

	small_json(s, &json);
	run.result = json.p;
	as_vec_foreach (b, &s->benches) {
		if (b->name && isfinite(b->time.value))
			points[n++] = (struct as_history_point){
				b->name,       b->side,     b->metric,   b->unit,
				b->time.value, b->time.low, b->time.high};
	}
	return as_history_run_save(h, &run, points, n, ret_id, err);
}

int as_bench_keep(struct as_bench_set *s, const char *name, int64_t *ret_id,
		  struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *suite = project_folder();
	struct as_history *h;
	int r = as_history_open(NULL, &h, err);

	if (r < 0)
		return r;
	if (!s->revision)
		s->revision = current_revision(suite);
	if (!s->machine)
		s->machine = as_history_machine();
	if (!s->time_s)
		s->time_s = as_realtime_ns() / 1000000000;
	judge_environment(h, s, suite);
	r = save(h, s, suite, name, ret_id, err);
	as_history_close(h);
	return r;
}

int as_bench_recall(const char *name, struct as_bench_set *ret, struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *suite = project_folder();
	struct as_history_run run;
	struct as_history *h;
	int r = as_history_open(NULL, &h, err);

	if (r < 0)
		return r;
	r = as_history_run_find(h, name, suite, &run, err);
	if (r == AS_OK) {
		r = as_bench_read(name, run.result, strlen(run.result), ret, err);
		as_history_run_clear(&run);
	}
	as_history_close(h);
	return r;
}

/* ---- trends ---- */

void as_bench_trend_judge(struct as_bench_trend *t)
{
	AS_CLEANUP(as_free_autop) double *v = as_xreallocarray(NULL, t->v.n + 1, sizeof *v);

	for (size_t i = 0; i < t->v.n; i++)
		v[i] = log(t->v.v[i].e.value); /* 0 and below: no point of it */
	t->changes = as_changes_find(v, t->v.n, AS_CHANGE_MAGNITUDE, t->change,
				     AS_BENCH_TREND_CHANGES);
}

static int load(struct as_history *h, const char *bench, const char *suite,
		struct as_bench_trend *ret, struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *machine = as_history_fingerprint();
	struct as_history_series s;
	int r = as_history_series(
		h, &(struct as_history_wanted){.bench = bench, .suite = suite}, &s, err);

	*ret = (struct as_bench_trend){0};
	if (r == AS_OK && !s.v.n)
		r = as_fail(err, AS_E_NOTFOUND, 0,
			    "no benchmark '%s' was run here\n"
			    "  assay bench history     those there are",
			    bench);
	if (r == AS_OK) {
		ret->bench = as_xstrdup(bench);
		ret->machine = as_xstrdup(machine);
		ret->unit = as_xstrdup(s.v.v[s.v.n - 1].unit);
		as_vec_foreach (e, &s.v) {
			if (strcmp(e->machine, machine) != 0 ||
			    strcmp(e->unit, ret->unit) != 0) {
				ret->elsewhere++;
				continue;
			}
			as_vec_push(&ret->v, (struct as_bench_trend_point){
						     .run = e->run,
						     .time_s = e->time_s,
						     .revision = AS_STEAL(e->revision),
						     .e = {e->value, e->low, e->high}});
		}
		as_bench_trend_judge(ret);
	}
	as_history_series_clear(&s);
	return r;
}

int as_bench_trend_load(const struct as_bench_trend_wanted *q, struct as_bench_trend *ret,
			struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *suite = q->everywhere ? NULL : project_folder();
	struct as_history *h;
	int r = as_history_open(NULL, &h, err);

	if (r < 0)
		return r;
	r = load(h, q->bench, suite, ret, err);
	as_history_close(h);
	return r;
}

void as_bench_trend_clear(struct as_bench_trend *t)
{
	free(t->bench);
	free(t->unit);
	free(t->machine);
	as_vec_foreach (p, &t->v)
		free(p->revision);
	as_vec_clear(&t->v);
	*t = (struct as_bench_trend){0};
}

int as_bench_trends_load(bool everywhere, struct as_bench_trends *ret, struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *suite = everywhere ? NULL : project_folder();
	struct as_history_names names = {0};
	struct as_history *h;
	int r = as_history_open(NULL, &h, err);

	*ret = (struct as_bench_trends){0};
	if (r < 0)
		return r;
	r = as_history_benches(h, suite, &names, err);
	for (size_t i = 0; r == AS_OK && i < names.v.n && i < NAMES_MAX; i++) {
		struct as_bench_trend t;

		r = load(h, names.v.v[i], suite, &t, err);
		if (r == AS_OK)
			as_vec_push(&ret->v, t);
	}
	as_history_names_clear(&names);
	as_history_close(h);
	if (r == AS_OK && !ret->v.n)
		r = as_fail(err, AS_E_NOTFOUND, 0,
			    "no benchmark was run in this project yet (%s)\n"
			    "  assay bench -- ./app args",
			    suite ? suite : "nor in another");
	if (r < 0)
		as_bench_trends_clear(ret);
	return r;
}

void as_bench_trends_clear(struct as_bench_trends *t)
{
	as_vec_foreach (one, &t->v)
		as_bench_trend_clear(one);
	as_vec_clear(&t->v);
}
