/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * assay bench: one table of options (cmd_bench.c), and a file for each thing it does: bench_*.c. A form
 * of the command is a row in cmd_bench.c: a first word, or an option that chooses it.
 */
#ifndef AS_CLI_BENCH_PRIV_H
#define AS_CLI_BENCH_PRIV_H

#include "bench/command.h"
#include "cli/bench_project.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "results/judge.h"
#include "results/result.h"
#include "view/text/style.h"

enum as_bench_fail_on {
	AS_BENCH_FAIL_ON_AUTO,
	AS_BENCH_FAIL_ON_NOTHING,
	AS_BENCH_FAIL_ON_SLOWER
};
enum as_bench_sort { AS_BENCH_SORT_AUTO, AS_BENCH_SORT_COMMAND, AS_BENCH_SORT_MEAN };
enum as_bench_format {
	AS_BENCH_TEXT,
	AS_BENCH_JSON,
	AS_BENCH_MARKDOWN,
	AS_BENCH_GITHUB,
	AS_BENCH_OPENMETRICS
};
enum as_bench_style { /* hyperfine's */
		      AS_BENCH_STYLE_AUTO,
		      AS_BENCH_STYLE_BASIC,
		      AS_BENCH_STYLE_FULL,
		      AS_BENCH_STYLE_NOCOLOR,
		      AS_BENCH_STYLE_COLOR,
		      AS_BENCH_STYLE_NONE
};

struct as_bench_args {
	/* which commands */
	struct as_texts vs, names, params, scans, lists;
	const char *reference, *reference_name, *step;
	/* how often */
	int64_t runs, min_runs, max_runs, warmup;
	double until_percent, delta_percent;
	uint64_t budget_ns, timeout_ns;
	/* how they run */
	const char *shell, *overhead, *setup, *cleanup, *input, *ignore_failure;
	struct as_texts prepare, conclude, output;
	bool no_shell, show_output, leave_running, no_copy;
	/* output */
	const char *json, *export_json, *export_csv, *export_markdown, *export_asciidoc,
		*export_org;
	int format, sort, unit, fail_on, style;
	struct as_bench_project_args project;
	/* what a form still has to say to its results before they are shown; may be NULL */
	void (*amend)(void *ctx, struct as_bench_set *set);
	void *amend_ctx;
	/* results */
	const char *save, *html, *export_criterion;
	bool no_history, everywhere;
	bool reading; /* of results that are there: nothing is judged or kept */
};

/* ---- bench_commands.c ---- */

/* Commands measured from outside: the form without a word or an option that chooses another. */
int as_bench_commands(struct as_cmd_ctx *ctx, struct as_error *err);

/* ---- bench_results.c: results that are there already ---- */

int as_bench_form_compare(struct as_cmd_ctx *ctx, struct as_error *err);
int as_bench_form_show(struct as_cmd_ctx *ctx, struct as_error *err);
int as_bench_form_export(struct as_cmd_ctx *ctx, struct as_error *err);
int as_bench_form_history(struct as_cmd_ctx *ctx, struct as_error *err);

/* ---- bench_output.c: what every form ends with ---- */

/* Judges what was measured as a whole, keeps it in the history, then writes it as --format says to standard
 * output, and every file that was asked for. */
int as_bench_print(const struct as_cmd_ctx *ctx, struct as_bench_set *set,
		   struct as_error *err);
/* AS_EXIT_GATE with --fail-on slower (the default of --against) and a verdict that is; else
 * AS_EXIT_FINE. */
int as_bench_exit(const struct as_bench_args *a, const struct as_bench_set *set);

struct as_style as_bench_style_of(const struct as_cmd_ctx *ctx);

#endif
