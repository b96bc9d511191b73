/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* assay report: tables and trees of a session. */
#include <unistd.h>

#include "base/sys.h"
#include "cli/cmds_priv.h"
#include "model/memory/alloc_time.h"
#include "model/memory/budget.h"
#include "view/report/report.h"

struct report_args {
	struct as_filter_args filter;
	int by, format;
	bool tree, inverted, full_names;
	const char *callers, *callees, *at;
	struct as_texts fail_if;
	int64_t top;
	double min_percent;
};

static const struct as_option report_options[] = {
	{.name = "by",
	 .type = AS_OPT_CHOICE,
	 .at = offsetof(struct report_args, by),
	 .arg = "WHAT",
	 .choices = "function|line|file|module|crate|thread|process|"
		    "type|size|lifetime|age|realloc",
	 .def = "function",
	 .group = "The question",
	 .help = "function, line, file, module, crate, thread or process; in a session of "
		 "memory also type (Vec<T>, String …), size (of blocks), lifetime (in time), "
		 "age (in allocations) or realloc (what grows, and what to begin with)"},
	{.name = "tree",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct report_args, tree),
	 .group = "The question",
	 .help = "calls from the thread's first function down"},
	{.name = "inverted",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct report_args, inverted),
	 .group = "The question",
	 .help = "calls from the innermost function up"},
	{.name = "callers",
	 .type = AS_OPT_TEXT,
	 .at = offsetof(struct report_args, callers),
	 .arg = "FUNCTION",
	 .group = "The question",
	 .help = "who calls FUNCTION: a whole name, or a part of one"},
	{.name = "callees",
	 .type = AS_OPT_TEXT,
	 .at = offsetof(struct report_args, callees),
	 .arg = "FUNCTION",
	 .group = "The question",
	 .help = "what FUNCTION calls, and what that costs"},
	{.name = "fail-if",
	 .type = AS_OPT_TEXTS,
	 .at = offsetof(struct report_args, fail_if),
	 .arg = "BUDGET",
	 .group = "The question",
	 .help = "of memory: 'peak > 50MiB' or 'allocs(in=parse) > 0': exit 3 when it is so; "
		 "may be given several times"},
	AS_FILTER_OPTIONS(struct report_args),
	AS_FILTER_MEASURE(struct report_args),
	{.name = "at",
	 .type = AS_OPT_TEXT,
	 .at = offsetof(struct report_args, at),
	 .arg = "MARK",
	 .group = "What is looked at",
	 .help = "in a session of memory: what was live at this mark (NAME#2: the second of "
		 "that name)"},
	{.name = "top",
	 .letter = 'n',
	 .type = AS_OPT_INT,
	 .at = offsetof(struct report_args, top),
	 .arg = "N",
	 .min = 1,
	 .max = 1e9,
	 .def_text = "20; trees 200; all in json and csv",
	 .group = "Output",
	 .help = "at most N rows"},
	{.name = "min",
	 .type = AS_OPT_NUM,
	 .at = offsetof(struct report_args, min_percent),
	 .arg = "PERCENT",
	 .min = 0,
	 .max = 100,
	 .def = "-1",
	 .def_text = "0; trees 1",
	 .group = "Output",
	 .help = "leave out what has less than this share"},
	{.name = "full-names",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct report_args, full_names),
	 .group = "Output",
	 .help = "names with all their type parameters, not cut to the terminal"},
	{.name = "format",
	 .type = AS_OPT_CHOICE,
	 .at = offsetof(struct report_args, format),
	 .arg = "FORMAT",
	 .choices = "text|json|csv",
	 .def = "text",
	 .group = "Output",
	 .help = "text, json or csv"},
	{0},
};

static int choose_shape(const struct report_args *a, struct as_query *q, struct as_error *err)
{
	if (a->tree + a->inverted + (a->callers != NULL) + (a->callees != NULL) > 1)
		return as_fail(
			err, AS_E_USAGE, 0,
			"--tree, --inverted, --callers and --callees exclude each other");
	if (a->tree)
		q->shape = AS_SHAPE_TREE;
	if (a->inverted)
		q->shape = AS_SHAPE_INVERTED;
	if (a->callers)
		q->shape = AS_SHAPE_CALLERS;
	if (a->callees)
		q->shape = AS_SHAPE_CALLEES;
	q->of = a->callers ? a->callers : a->callees;
	return 0;
}

/* The words of --by behind those of enum as_by. */
static void choose_rows(const struct report_args *a, struct as_report_request *q)
{
	if (a->by <= AS_BY_PROCESS)
		q->query.by = (enum as_by)a->by;
	else
		q->table = (enum as_memory_table)(a->by - AS_BY_PROCESS);
}

static int choose_measure(const struct report_args *a, struct as_model *m, struct as_error *err)
{
	enum as_measure measure = (enum as_measure)a->filter.measure;

	if (!a->at)
		return as_filter_measure(&a->filter, m, err);
	if (measure != AS_MEASURE_TIME && measure != AS_MEASURE_LIVE)
		return as_fail(err, AS_E_USAGE, 0, "--at tells what was live at a mark, not %s",
			       as_measure_name(measure));
	as_filter_grown(&a->filter, m);
	return as_model_measure_at(m, a->at, !a->filter.no_fold, err);
}

/* After the report: what is beyond a budget, on standard error. */
static int check_budgets(const struct as_heap_budgets *b, const struct as_model *m,
			 bool *ret_broken, struct as_error *err)
{
	struct as_buf text = {0};
	int r = as_heap_budgets_check(b, m, &text, ret_broken, err);

	if (r == 0)
		(void)as_write_all(STDERR_FILENO, as_buf_str(&text), text.len,
				   NULL); /* nowhere left to tell */
	as_buf_clear(&text);
	return r;
}

/* Beside the plain report of time; it is of the whole run. */
static bool tells_alloc_time(const struct as_report_request *q)
{
	const struct as_query *k = &q->query;

	return q->model->heap.is && q->model->measure == AS_MEASURE_TIME && !q->table &&
	       k->shape == AS_SHAPE_FLAT && !k->focus && !k->ignore && !k->thread &&
	       !k->module && !k->from_ns && !k->to_ns;
}

static int make(const struct as_cmd_ctx *ctx, struct as_report_request *q,
		const struct as_heap_budgets *budgets, bool *ret_broken, struct as_error *err)
{
	const struct report_args *a = ctx->args;
	struct as_style style = {
		.width = as_term_width(STDOUT_FILENO),
		.color = as_term_color(STDOUT_FILENO, (enum as_color)ctx->common->color),
		.full_names = a->full_names,
	};
	struct as_alloc_time alloc_time = {0};
	struct as_model *m = NULL;
	struct as_buf out = {0};
	int r = as_filter_load(ctx, &m, err);

	if (r < 0)
		return r;
	q->model = m;
	r = choose_measure(a, m, err);
	if (r == 0 && tells_alloc_time(q)) {
		r = as_alloc_time_make(m, &alloc_time, err);
		q->alloc_time = &alloc_time;
	}
	if (r == 0)
		r = as_report_make(q, &style, &out, err);
	if (r == 0)
		r = as_out_write(&out, err);
	if (r == 0 && budgets->n)
		r = check_budgets(budgets, m, ret_broken, err);
	if (q->alloc_time)
		as_alloc_time_clear(&alloc_time);
	as_buf_clear(&out);
	as_model_free(m);
	return r;
}

static int report_run(struct as_cmd_ctx *ctx, struct as_error *err)
{
	const struct report_args *a = ctx->args;
	struct as_report_request q = {
		.top = (uint64_t)a->top,
		.format = (enum as_report_format)a->format,
		.file = ctx->noperands ? ctx->operands[0] : NULL,
	};
	struct as_heap_budgets budgets;
	bool broken = false;
	int r = choose_shape(a, &q.query, err);

	if (r == 0)
		r = as_heap_budgets_parse(a->fail_if.v, a->fail_if.n, &budgets, err);
	if (r < 0)
		return r;
	choose_rows(a, &q);
	as_filter_apply(&a->filter, &q.query);
	q.min_share = a->min_percent >= 0              ? a->min_percent / 100
		      : q.query.shape == AS_SHAPE_FLAT ? 0
						       : 0.01;
	q.query.min_share = q.min_share;
	r = make(ctx, &q, &budgets, &broken, err);
	as_heap_budgets_clear(&budgets);
	return r < 0 ? r : broken ? AS_EXIT_GATE : r;
}

const struct as_cmd as_cmd_report = {
	.name = "report",
	.group = "Look",
	.summary = "show where the time of a session went, and how sure that is",
	.usage = "[options] [FILE]",
	.options = report_options,
	.examples = {{"assay report", "the hottest functions of the newest session"},
		     {"assay report --callers malloc", "who allocates"},
		     {"assay report --by line --focus parse app.assay",
		      "the lines behind parse, in this session"}},
	.operand = "a session",
	.max_operands = 1,
	.args_size = sizeof(struct report_args),
	.run = report_run,
};
