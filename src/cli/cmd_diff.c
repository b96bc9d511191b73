/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* assay diff: what changed between sessions, and which changes are more than chance. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cmds_priv.h"
#include "view/diff.h"

struct diff_args {
	struct as_filter_args filter;
	int by, format, measure;
	bool vs, self, full_names, tree;
	int64_t top, times;
	double min_effect;
	const char *fail_if;
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
	 .choices = "self|total",
	 .def = "self",
	 .group = "The question",
	 .help = "self: time in the function itself; total: with what it calls"},
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
		 "is beyond it"},
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
	{.name = "top",
	 .letter = 'n',
	 .type = AS_OPT_INT,
	 .at = offsetof(struct diff_args, top),
	 .arg = "N",
	 .min = 1,
	 .max = 1e9,
	 .def_text = "10",
	 .group = "Output",
	 .help = "at most N rows that are not resolved; those that are, are all shown"},
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
		r = as_filter_time_only(s->v[i], "diff", err);
		if (r < 0)
			return r;
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

static int diff_run(struct as_cmd_ctx *ctx, struct as_error *err)
{
	const struct diff_args *a = ctx->args;
	struct as_diff_request q = {.query.by = (enum as_by)a->by,
				    .total = a->measure == 1,
				    .tree = a->tree,
				    .min_effect = a->min_effect / 100};
	struct sessions s = {0};
	bool beyond = false;
	int r = AS_OK;

	if (a->self && ctx->noperands != 1)
		return as_fail(err, AS_E_USAGE, 0, "--self takes one session");
	if (!a->self)
		r = count_before(ctx, &s.before, err);
	if (r < 0)
		return r;
	as_filter_apply(&a->filter, &q.query);
	r = load_sessions(ctx, &s, err);
	q.a = (const struct as_model *const *)s.v;
	q.na = s.before;
	q.b = q.a + s.before;
	q.nb = s.n - s.before;
	if (r == AS_OK && a->self) {
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
	.usage = "[options] BEFORE AFTER\n[options] BEFORE… --vs AFTER…\n[options] --self FILE",
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
