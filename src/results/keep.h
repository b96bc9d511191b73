/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Results into the history, and out of it as trends.
 *
 *	as_bench_keep(&set, "main", err);		every run of assay bench; name NULL: none
 *	as_bench_trend_load(&(struct as_bench_trend_wanted){.bench = "parse/small"}, &t, err);
 *	as_bench_trend_text(&t, &style, &out);
 *
 * What is kept of a run: its figures, intervals, one sample per process and notes; not the single batches
 * (some KB for a suite). Trends are of one project and one machine: the folder that holds .git, else the
 * current one; and this machine's fingerprint.
 *
 * Thread rule: any thread.
 */
#ifndef AS_RESULTS_KEEP_H
#define AS_RESULTS_KEEP_H

#include "results/result.h"
#include "stats/changepoint.h"
#include "view/text/style.h"

/* Saves; before that, says in a note ("environment") when the unchanged side is not what it was in the
 * last run here. revision of the set is filled in where it is not known. ret_id may be NULL. */
int as_bench_keep(struct as_bench_set *s, const char *name, int64_t *ret_id,
		  struct as_error *err);

/* A saved run by name, "#12", "last". */
int as_bench_recall(const char *name, struct as_bench_set *ret, struct as_error *err);

#define AS_BENCH_TREND_CHANGES 16

struct as_bench_trend_point {
	int64_t run;
	uint64_t time_s;
	char *revision; /* "" not known */
	struct as_bench_estimate e;
};
struct as_bench_trend {
	char *bench, *unit, *machine;
	AS_VEC(struct as_bench_trend_point) v; /* oldest first */
	size_t elsewhere;                      /* points of other machines, left out */
	struct as_change change[AS_BENCH_TREND_CHANGES];
	size_t changes;
};
struct as_bench_trend_wanted {
	const char *bench;
	bool everywhere; /* any project */
};
int as_bench_trend_load(const struct as_bench_trend_wanted *q, struct as_bench_trend *ret,
			struct as_error *err);
void as_bench_trend_clear(struct as_bench_trend *t);
/* Changes from the points; as_bench_trend_load has done so. */
void as_bench_trend_judge(struct as_bench_trend *t);

struct as_bench_trends {
	AS_VEC(struct as_bench_trend) v;
};
/* All benches of the project. */
int as_bench_trends_load(bool everywhere, struct as_bench_trends *ret, struct as_error *err);
void as_bench_trends_clear(struct as_bench_trends *t);

/* A drawing, its steps, the last runs. */
void as_bench_trend_text(const struct as_bench_trend *t, const struct as_style *style,
			 struct as_buf *out);
/* A line each: the last figure, its course, the last step. */
void as_bench_trends_text(const struct as_bench_trends *t, const struct as_style *style,
			  struct as_buf *out);
/* docs/formats/bench-json.md, schema assay.bench.history/1 */
void as_bench_trends_json(const struct as_bench_trends *t, struct as_buf *out);

#endif
