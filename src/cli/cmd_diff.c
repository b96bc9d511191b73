/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* assay diff: what changed between sessions, and which changes are more than chance. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "cli/cmds_priv.h"
#include "model/memory/limit.h"
#include "view/diff/diff.h"
#include "view/memory/diff.h"

struct diff_args {
	struct as_filter_args filter;
	int by, format, measure;
	bool vs, self, full_names, tree, total;
	const char *marks;
	int64_t top, times;
	double min_effect;
	const char *fail_if;
};

/* In the order of enum as_measure, from ALLOCS on. */
#define MEMORY_MEASURES "allocs|bytes|live|peak|churn|growth|leaked|mapped"
enum {
	SELF,
	TOTAL,
	FIRST_MEMORY,
	ALLOC_TIME = FIRST_MEMORY + AS_MEASURE_ALLOC_TIME - AS_MEASURE_ALLOCS
};

static const struct as_option diff_options[] = {
	{.name = "vs",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct diff_args, vs),
	 .group = "The question",
	 .help = "stands between the sessions of before and those of after, where a side has "
		 "several"},
	{.name = "by",
	 .type = AS_OPT_CHOICE,
	 .at = offsetof(struct diff_args, by),
	 .arg = "WHAT",
	 .choices = "function|line|file|module|crate|thread|process",
	 .def = "function",
	 .group = "The question",
	 .help = "function, line, file, module, crate, thread or process"},
	{.name = "tree",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct diff_args, tree),
	 .group = "The question",
	 .help = "the calls of both sides as one tree: what a call takes with all it calls"},
	{.name = "measure",
	 .type = AS_OPT_CHOICE,
	 .at = offsetof(struct diff_args, measure),
	 .arg = "WHICH",
	 .choices = "self|total|" MEMORY_MEASURES "|alloc-time",
	 .def = "self",
	 .group = "The question",
	 .help = "self: time in the function itself; total: with what it calls; alloc-time: "
		 "time in allocators and page faults; of sessions of memory: allocs, bytes, "
		 "live, peak, churn, growth, leaked or mapped (default peak)"},
	{.name = "total",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct diff_args, total),
	 .group = "The question",
	 .help = "with what is called; of memory, where --measure says what is counted"},
	{.name = "marks",
	 .type = AS_OPT_TEXT,
	 .at = offsetof(struct diff_args, marks),
	 .arg = "FROM..TO",
	 .group = "The question",
	 .help = "one session of memory: what is live at mark TO and was not at FROM; without "
		 "a name its start, or its end. NAME#2: the second mark of that name"},
	{.name = "min-effect",
	 .type = AS_OPT_NUM,
	 .at = offsetof(struct diff_args, min_effect),
	 .arg = "POINTS",
	 .min = 0.001,
	 .max = 100,
	 .def = "0.5",
	 .group = "The question",
	 .help = "percentage points below which a change is none"},
	{.name = "fail-if",
	 .type = AS_OPT_TEXT,
	 .at = offsetof(struct diff_args, fail_if),
	 .arg = "LIMIT",
	 .group = "The question",
	 .help = "'total(parse) > +5%' or 'self(parse) > +2pp': exit 3 when the whole interval "
		 "is beyond it; of memory also 'self(parse) > +64KiB', 'peak > +5%' or "
		 "'allocs(in=parse) > +0'"},
	{.name = "self",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct diff_args, self),
	 .group = "The question",
	 .help = "compare random halves of one session: how often is nothing called something"},
	{.name = "times",
	 .type = AS_OPT_INT,
	 .at = offsetof(struct diff_args, times),
	 .arg = "N",
	 .min = 1,
	 .max = 100000,
	 .def = "200",
	 .group = "The question",
	 .help = "comparisons of --self"},
	AS_FILTER_OPTIONS(struct diff_args),
	AS_FILTER_FOLD(struct diff_args),
	{.name = "top",
	 .letter = 'n',
	 .type = AS_OPT_INT,
	 .at = offsetof(struct diff_args, top),
	 .arg = "N",
	 .min = 1,
	 .max = 1e9,
	 .def_text = "10",
	 .group = "Output",
	 .help = "at most N rows that are not resolved; those that are, and those of a tenth "
		 "of the time, are all shown"},
	{.name = "full-names",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct diff_args, full_names),
	 .group = "Output",
	 .help = "names with all their type parameters, not cut to the terminal"},
	{.name = "format",
	 .type = AS_OPT_CHOICE,
	 .at = offsetof(struct diff_args, format),
	 .arg = "FORMAT",
	 .choices = "text|json",
	 .def = "text",
	 .group = "Output",
	 .help = "text or json"},
	{0},
};

struct sessions {
	struct as_model **v;
	size_t n, before; /* the first `before` are side a */
};

static int load_sessions(const struct as_cmd_ctx *ctx, struct sessions *s, struct as_error *err)
{
	s->v = as_xcalloc((size_t)ctx->noperands + 1, sizeof *s->v);
	for (int i = 0; i < ctx->noperands; i++) {
		int r = as_model_load(ctx->operands[i], &s->v[i], err);

		if (r < 0)
			return r;
		s->n++;
	}
	return AS_OK;
}

static void free_sessions(struct sessions *s)
{
	for (size_t i = 0; i < s->n; i++)
		as_model_free(s->v[i]);
	free(s->v);
}

/* How many operands stand before --vs: they are the same pointers as in the typed words. */
static int count_before(const struct as_cmd_ctx *ctx, size_t *ret, struct as_error *err)
{
	const struct diff_args *a = ctx->args;
	int next = 0;

	*ret = 1;
	if (!a->vs && ctx->noperands != 2)
		return as_fail(err, AS_E_USAGE, 0,
			       "diff compares two sessions\n"
			       "  assay diff before.assay after.assay\n"
			       "  assay diff a1.assay a2.assay --vs b1.assay b2.assay");
	if (!a->vs)
		return AS_OK;
	for (char **w = ctx->words + 1; *w && strcmp(*w, "--vs") != 0; w++)
		next += next < ctx->noperands && *w == ctx->operands[next];
	if (next == 0 || next == ctx->noperands)
		return as_fail(err, AS_E_USAGE, 0, "--vs stands between sessions");
	*ret = (size_t)next;
	return AS_OK;
}

static int check_limit(const struct diff_args *a, const struct as_diff_request *q,
		       bool *ret_beyond, struct as_error *err)
{
	struct as_diff_request measured = *q;
	struct as_limit limit;
	struct as_diff *d = NULL;
	struct as_buf text = {0};
	int r = as_limit_parse(a->fail_if, &limit, err);

	if (r < 0)
		return r;
	measured.total = limit.total;
	measured.tree = false;
	measured.query.by = AS_BY_FUNCTION;
	r = as_diff_make(&measured, &d, err);
	if (r == AS_OK)
		r = as_limit_check(&limit, d, &text, ret_beyond, err);
	if (r == AS_OK && *ret_beyond) {
		struct as_error beyond = {0};

		(void)as_fail(&beyond, AS_E_LIMIT, 0, "%.*s", (int)text.len - 1,
			      as_buf_str(&text));
		as_err_print(&beyond, AS_COLOR_AUTO);
	}
	as_buf_clear(&text);
	as_limit_clear(&limit);
	as_diff_free(d);
	return r;
}

static int show(const struct as_cmd_ctx *ctx, const struct as_diff_request *q,
		struct as_error *err)
{
	const struct diff_args *a = ctx->args;
	struct as_style style = {
		.width = as_term_width(STDOUT_FILENO),
		.color = as_term_color(STDOUT_FILENO, (enum as_color)ctx->common->color),
		.full_names = a->full_names,
	};
	struct as_diff_view view = {.top = (uint64_t)a->top};
	struct as_diff *d = NULL;
	struct as_buf out = {0};
	int r = as_diff_make(q, &d, err);

	if (r < 0)
		return r;
	view.diff = d;
	if (a->format)
		as_diff_json(&view, &out);
	else
		as_diff_text(&view, &style, &out);
	r = as_out_write(&out, err);
	as_buf_clear(&out);
	as_diff_free(d);
	return r;
}

static int calibrate(const struct diff_args *a, const struct as_model *m,
		     const struct as_diff_request *q, struct as_error *err)
{
	struct as_calibration c;
	struct as_buf out = {0};
	int r = as_diff_calibrate(m, q, (uint64_t)a->times, &c, err);

	if (r < 0)
		return r;
	as_calibration_text(&c, &out);
	r = as_out_write(&out, err);
	as_buf_clear(&out);
	return r;
}

/* ---- memory ---- */

static bool all_have(const struct sessions *s, bool memory)
{
	bool have = s->n > 0;

	for (size_t i = 0; i < s->n; i++)
		have &= memory ? s->v[i]->heap.is : s->v[i]->time.is;
	return have;
}

static bool asks_for_memory(const struct diff_args *a)
{
	return a->marks || (a->measure >= FIRST_MEMORY && a->measure != ALLOC_TIME);
}

/* Sessions of both are compared by time, unless a measure of memory is asked for. */
static bool is_memory(const struct diff_args *a, const struct sessions *s)
{
	return all_have(s, true) && (asks_for_memory(a) || !all_have(s, false));
}

static int check_kinds(const struct diff_args *a, const struct sessions *s,
		       struct as_error *err)
{
	for (size_t i = 0; i < s->n && !all_have(s, true) && !all_have(s, false); i++) {
		if (s->v[i]->heap.is != s->v[0]->heap.is)
			return as_fail(err, AS_E_USAGE, 0,
				       "'%s' and '%s': one is a session of time, the other of "
				       "memory",
				       s->v[0]->path, s->v[i]->path);
	}
	if (!all_have(s, true) && asks_for_memory(a))
		return as_fail(err, AS_E_USAGE, 0,
			       "--marks and measures of memory are for sessions of memory");
	if (!all_have(s, false) && a->measure == ALLOC_TIME)
		return as_fail(err, AS_E_USAGE, 0, "alloc-time is for sessions of time");
	return AS_OK;
}

static int set_alloc_time(const struct diff_args *a, struct sessions *s, struct as_error *err)
{
	int r = AS_OK;

	for (size_t i = 0; i < s->n && r == AS_OK && a->measure == ALLOC_TIME; i++)
		r = as_model_measure(s->v[i], AS_MEASURE_ALLOC_TIME, !a->filter.no_fold, err);
	return r;
}

static int check_memory(const struct diff_args *a, const struct sessions *s,
			struct as_error *err)
{
	if (a->self)
		return as_fail(
			err, AS_E_USAGE, 0,
			"--self is for sessions of time: memory is counted, not sampled");
	if (!a->marks && (s->n != 2 || s->before != 1))
		return as_fail(err, AS_E_USAGE, 0, "sessions of memory are compared in pairs");
	if (a->marks && s->n != 1)
		return as_fail(err, AS_E_USAGE, 0, "--marks takes one session");
	if (a->marks && a->measure > TOTAL)
		return as_fail(err, AS_E_USAGE, 0, "--marks tells what is live");
	return AS_OK;
}

/* A side at a mark; "" is the start on side a and the end on side b. */
static int go_to_mark(struct as_model *m, const char *mark, bool end, bool fold,
		      struct as_error *err)
{
	if (!*mark && end)
		return as_model_measure(m, AS_MEASURE_LIVE, fold, err);
	return as_model_measure_at(m, mark, fold, err);
}

static int set_marks(const struct diff_args *a, struct as_model *const side[2],
		     struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *from = NULL;
	const char *to;
	int r = as_filter_marks(a->marks, &from, &to, err);

	for (int i = 0; i < 2; i++)
		as_filter_grown(&a->filter, side[i]);
	if (r == AS_OK)
		r = go_to_mark(side[0], from, false, !a->filter.no_fold, err);
	return r < 0 ? r : go_to_mark(side[1], to, true, !a->filter.no_fold, err);
}

static int set_measures(const struct diff_args *a, struct as_model *const side[2],
			struct as_error *err)
{
	enum as_measure measure = AS_MEASURE_PEAK;

	if (a->measure >= FIRST_MEMORY)
		measure = (enum as_measure)(a->measure - FIRST_MEMORY + AS_MEASURE_ALLOCS);
	for (int i = 0; i < 2; i++) {
		as_filter_grown(&a->filter, side[i]);

		int r = as_model_measure(side[i], measure, !a->filter.no_fold, err);

		if (r < 0)
			return r;
	}
	return AS_OK;
}

static int check_memory_limit(const struct diff_args *a, const struct as_heap_limit *limit,
			      const struct as_heap_diff_request *q, bool *ret_beyond,
			      struct as_error *err)
{
	struct as_buf text = {0};
	int r = a->fail_if ? as_heap_limit_check(limit, q, &text, ret_beyond, err) : AS_OK;

	if (r == AS_OK)
		(void)as_write_all(STDERR_FILENO, as_buf_str(&text), text.len,
				   NULL); /* nowhere left to tell */
	as_buf_clear(&text);
	return r;
}

static int show_memory(const struct as_cmd_ctx *ctx, struct as_model *const side[2],
		       bool *ret_beyond, struct as_error *err)
{
	struct as_heap_limit limit = {0};
	const struct diff_args *a = ctx->args;
	struct as_heap_diff_request q = {.a = side[0],
					 .b = side[1],
					 .query.by = (enum as_by)a->by,
					 .total = a->total || a->measure == TOTAL,
					 .tree = a->tree};
	struct as_style style = {
		.width = as_term_width(STDOUT_FILENO),
		.color = as_term_color(STDOUT_FILENO, (enum as_color)ctx->common->color),
		.full_names = a->full_names,
	};
	struct as_memory_diff_view view = {.top = (uint64_t)a->top};
	struct as_heap_diff *d = NULL;
	struct as_buf out = {0};
	int r;

	as_filter_apply(&a->filter, &q.query);
	r = a->fail_if ? as_heap_limit_parse(a->fail_if, &limit, err) : AS_OK;
	if (r == AS_OK)
		r = as_heap_diff_make(&q, &d, err);
	if (r == AS_OK) {
		view.diff = d;
		if (a->format)
			as_memory_diff_json(&view, &out);
		else
			as_memory_diff_text(&view, &style, &out);
		r = as_out_write(&out, err);
	}
	if (r == AS_OK)
		r = check_memory_limit(a, &limit, &q, ret_beyond, err);
	as_buf_clear(&out);
	as_heap_diff_free(d);
	as_heap_limit_clear(&limit);
	return r;
}

static int compare_memory(const struct as_cmd_ctx *ctx, const struct sessions *s,
			  bool *ret_beyond, struct as_error *err)
{
	const struct diff_args *a = ctx->args;
	struct as_model *again = NULL, *side[2] = {s->v[0], s->n > 1 ? s->v[1] : NULL};
	int r = check_memory(a, s, err);

	if (r == AS_OK && a->marks) {
		r = as_model_load(ctx->operands[0], &again, err);
		side[1] = again;
	}
	if (r == AS_OK)
		r = a->marks ? set_marks(a, side, err) : set_measures(a, side, err);
	if (r == AS_OK)
		r = show_memory(ctx, side, ret_beyond, err);
	as_model_free(again);
	return r;
}

static int diff_run(struct as_cmd_ctx *ctx, struct as_error *err)
{
	const struct diff_args *a = ctx->args;
	struct as_diff_request q = {.query.by = (enum as_by)a->by,
				    .total = a->total || a->measure == TOTAL,
				    .tree = a->tree,
				    .min_effect = a->min_effect / 100};
	struct sessions s = {0};
	bool beyond = false;
	int r = AS_OK;

	if (a->self && ctx->noperands != 1)
		return as_fail(err, AS_E_USAGE, 0, "--self takes one session");
	if (!a->self && !a->marks)
		r = count_before(ctx, &s.before, err);
	if (r < 0)
		return r;
	as_filter_apply(&a->filter, &q.query);
	r = load_sessions(ctx, &s, err);
	if (r == AS_OK)
		r = check_kinds(a, &s, err);
	q.a = (const struct as_model *const *)s.v;
	q.na = s.before;
	q.b = q.a + s.before;
	q.nb = s.n - s.before;
	if (r == AS_OK)
		r = set_alloc_time(a, &s, err);
	if (r == AS_OK && is_memory(a, &s)) {
		r = compare_memory(ctx, &s, &beyond, err);
	} else if (r == AS_OK && a->self) {
		r = calibrate(a, s.v[0], &q, err);
	} else if (r == AS_OK) {
		r = show(ctx, &q, err);
		if (r == AS_OK && a->fail_if)
			r = check_limit(a, &q, &beyond, err);
	}
	free_sessions(&s);
	return r < 0 ? r : beyond ? AS_EXIT_GATE : r;
}

const struct as_cmd as_cmd_diff = {
	.name = "diff",
	.group = "Look",
	.summary = "compare sessions: what changed, and what is only chance",
	.usage =
		"[options] BEFORE AFTER\n[options] BEFORE… --vs AFTER…\n[options] --self FILE\n"
		"[options] --marks FROM..TO FILE",
	.options = diff_options,
	.examples = {{"assay diff before.assay after.assay", "which functions changed"},
		     {"assay diff a1.assay a2.assay --vs b1.assay b2.assay",
		      "with the spread between runs"},
		     {"assay diff --fail-if 'total(parse) > +5%' old.assay new.assay",
		      "a gate for CI: exit 3"}},
	.operand = "sessions",
	.min_operands = 1,
	.max_operands = -1,
	.args_size = sizeof(struct diff_args),
	.run = diff_run,
};
