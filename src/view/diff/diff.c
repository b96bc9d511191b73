/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What differs between two sides, resolved rows first: see diff.h. */
#include "view/diff/diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/sys.h"
#include "view/diff/diff_priv.h"
#include "view/report/next.h"
#include "view/report/report.h"

/* ---- text ---- */

static void add_side(const struct as_model *const *m, size_t n, size_t runs, const char *label,
		     const struct as_style *style, struct as_buf *out)
{
	as_style_ink(style, out, AS_INK_FAINT);
	as_buf_addf(out, "%-7s ", label);
	as_style_ink(style, out, AS_INK_PLAIN);
	for (size_t i = 0; i < n && i < 3; i++) {
		as_buf_adds(out, i ? ", " : "");
		as_style_cut(out, m[i]->path ? m[i]->path : "-", 40);
	}
	if (n > 3)
		as_buf_addf(out, " and %zu more", n - 3);
	if (runs > n)
		as_buf_addf(out, ", %zu runs", runs);
	as_buf_adds(out, runs > 1 ? "; per run " : ": ");
}

static void add_head(const struct as_diff *d, const struct as_style *style, struct as_buf *out)
{
	const struct as_diff_request *q = &d->request;
	uint64_t samples[2] = {0};

	for (size_t i = 0; i < q->na; i++)
		samples[0] += q->a[i]->samples.n;
	for (size_t i = 0; i < q->nb; i++)
		samples[1] += q->b[i]->samples.n;
	for (int k = 0; k < 2; k++) {
		double cpu = k ? d->cpu_b_s : d->cpu_a_s;

		add_side(k ? q->b : q->a, k ? q->nb : q->na, d->runs[k], k ? "after" : "before",
			 style, out);
		if (!isnan(cpu)) {
			as_fmt_duration(out, (uint64_t)(cpu * 1e9));
			as_buf_adds(out, " CPU, ");
		}
		as_fmt_count(out, samples[k]);
		as_buf_adds(out, " samples\n");
	}
	if (q->b[0]->measure == AS_MEASURE_ALLOC_TIME)
		as_buf_adds(out,
			    "alloc-time: in allocators and page faults, of all CPU time\n");
	as_buf_addc(out, '\n');
}

static void add_line(struct as_buf *out, const struct as_style *style, const char *label,
		     const char *text)
{
	as_style_ink(style, out, AS_INK_FAINT);
	as_buf_addf(out, "%-7s", label);
	as_style_ink(style, out, AS_INK_PLAIN);
	as_buf_addf(out, "%s\n", text);
}

static void add_counts(const struct as_diff *d, const struct as_style *style,
		       struct as_buf *out)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	size_t up = d->counts[AS_CHANGE_UP], down = d->counts[AS_CHANGE_DOWN];

	if (up + down)
		as_buf_addf(&b, "%zu up, %zu down; ", up, down);
	else
		as_buf_adds(&b, "no difference is resolved; ");
	as_buf_addf(&b, "%zu equal within %.2g points, %zu undecided",
		    d->counts[AS_CHANGE_EQUAL], 100 * d->request.min_effect,
		    d->counts[AS_CHANGE_UNDECIDED]);
	as_buf_addc(out, '\n');
	add_line(out, style, "rows", as_buf_str(&b));
}

static void add_trust(const struct as_diff *d, const struct as_style *style, struct as_buf *out)
{
	bool several = d->runs[0] + d->runs[1] > 2;
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	as_buf_addf(&b, "95 %% intervals, levels adjusted for %zu rows", d->tests);
	add_line(out, style, "trust", as_buf_str(&b));
	as_buf_reset(&b);
	if (several && d->widened > 1.05)
		as_buf_addf(&b,
			    "widened x%.2g, as runs of one side differ beyond their samples",
			    d->widened);
	else if (!several && d->between > 0.005)
		as_buf_addf(&b,
			    "widened by %.2g %% of a row, as rows differ beyond their samples",
			    100 * d->between);
	if (b.len)
		add_line(out, style, "", as_buf_str(&b));
	if (!isnan(d->drift) && fabs(d->drift - 1) > 0.02) {
		as_buf_reset(&b);
		as_buf_addf(&b, "the typical row took x%.2f the CPU time: %s", d->drift,
			    several ? "the machine, or a change everywhere"
				    : "of one run a side, maybe the machine");
		add_line(out, style, "", as_buf_str(&b));
	}
	if (!several)
		add_line(out, style, "",
			 "one run per side: run-to-run variation is not in these intervals");
	if (d->lacks_inlines) {
		as_buf_reset(&b);
		as_buf_addf(&b,
			    "'%s' has no debug information: inlined functions are compared as "
			    "part of what they are in",
			    d->lacks_inlines == 1 ? "before" : "after");
		add_line(out, style, "", as_buf_str(&b));
	}
}

static void next_step(struct as_next_steps *s, const char *why, const char *command,
		      const struct as_diff_request *q)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	bool several = q->na + q->nb > 2;

	as_buf_addf(&b, "assay %s", command);
	for (size_t i = 0; i < q->na + q->nb; i++) {
		const struct as_model *m = i < q->na ? q->a[i] : q->b[i - q->na];

		as_buf_adds(&b, several && i == q->na ? " --vs " : " ");
		if (!m->path || !as_style_plain(m->path))
			return;
		as_style_shell(&b, m->path);
	}
	as_vec_push(s, (struct as_next_step){as_arena_strdup(&s->arena, as_buf_str(&b)), why});
}

static void record_step(struct as_next_steps *s, const struct as_model *m)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	as_buf_adds(&b, "assay record --trials 5 --");
	as_vec_foreach (arg, &m->args) {
		if (!as_style_plain(*arg))
			return;
		as_buf_addc(&b, ' ');
		as_style_shell(&b, *arg);
	}
	if (m->args.n)
		as_vec_push(s, (struct as_next_step){
				       as_arena_strdup(&s->arena, as_buf_str(&b)),
				       "and of the other build: five runs a side tell the "
				       "machine's doing from the program's"});
}

static void add_next(const struct as_diff *d, const struct as_style *style, struct as_buf *out)
{
	const struct as_diff_request *q = &d->request;
	struct as_next_steps s = {0};

	bool resolved = d->counts[AS_CHANGE_UP] + d->counts[AS_CHANGE_DOWN] > 0;

	if (!q->tree)
		next_step(&s,
			  resolved ? "in which calls"
				   : "what functions take with all they call",
			  "diff --tree", q);
	if (q->na == 1 && q->nb == 1 && resolved)
		next_step(&s, "the same as a picture", "flame --diff", q);
	if (d->runs[0] + d->runs[1] == 2)
		record_step(&s, q->b[0]);
	as_next_print(&s, style, out);
	as_next_clear(&s);
}

void as_diff_text(const struct as_diff_view *v, const struct as_style *style,
		  struct as_buf *out)
{
	add_head(v->diff, style, out);
	if (v->diff->request.tree)
		as_diff_tree_text(v, style, out);
	else
		as_diff_rows_text(v, style, out);
	add_counts(v->diff, style, out);
	add_trust(v->diff, style, out);
	add_next(v->diff, style, out);
}

/* ---- JSON ---- */

/* The keys of a row within its object. */
static void json_row(struct as_json *j, const struct as_diff_row *r)
{
	as_json_str(j, "name", r->name);
	as_json_str(j, "full_name", r->full_name);
	as_json_str(j, "module", r->module);
	as_json_str(j, "crate", r->crate);
	as_json_str(j, "file", r->file);
	as_json_u64(j, "line", r->line);
	as_json_num(j, "share_a", r->a.share.value, 6);
	as_json_num(j, "share_b", r->b.share.value, 6);
	as_json_num(j, "delta", r->delta, 6);
	as_json_num(j, "delta_low", r->low, 6);
	as_json_num(j, "delta_high", r->high, 6);
	as_json_num(j, "cpu_a_s", r->a.cpu_s, 6);
	as_json_num(j, "cpu_b_s", r->b.cpu_s, 6);
	as_json_num(j, "cpu_delta_s", r->cpu_delta_s, 6);
	as_json_num(j, "cpu_delta_low_s", r->cpu_low, 6);
	as_json_num(j, "cpu_delta_high_s", r->cpu_high, 6);
	as_json_u64(j, "samples_a", r->a.share.samples);
	as_json_u64(j, "samples_b", r->b.share.samples);
	as_json_num(j, "widened", r->widened, 4);
	as_json_num(j, "p", r->p, 4);
	as_json_num(j, "p_adjusted", r->adjusted, 4);
	as_json_str(j, "verdict", as_change_name(r->change));
	as_json_bool(j, "share_only", r->share_only);
	as_json_bool(j, "one_run", r->one_run);
	as_json_str(j, "only", !r->a.sessions ? "b" : !r->b.sessions ? "a" : "");
}

static void json_rows(struct as_json *j, const struct as_diff *d)
{
	as_vec_foreach (r, &d->rows) {
		as_json_obj(j, NULL);
		json_row(j, r);
		as_json_end(j);
	}
}

/* Depth first, heavier branches before lighter ones; parents by position in the array. */
static void json_tree(struct as_json *j, const struct as_diff *d)
{
	struct todo {
		uint32_t node;
		int64_t parent;
	};
	AS_VEC(struct todo) todo = {0};
	int64_t position = 0;

	as_vec_push(&todo, (struct todo){.node = 0, .parent = -1});
	while (todo.n) {
		struct todo t = todo.v[--todo.n];
		const struct as_diff_node *n = &d->nodes.v[t.node];
		size_t first = todo.n;
		int64_t parent = t.parent;

		if (n->row != AS_NONE) {
			as_json_obj(j, NULL);
			json_row(j, &d->rows.v[n->row]);
			as_json_u64(j, "depth", n->depth);
			if (t.parent >= 0)
				as_json_u64(j, "parent", (uint64_t)t.parent);
			else
				as_json_null(j, "parent");
			as_json_end(j);
			parent = position++;
		}
		for (uint32_t c = n->first_child; c != AS_NONE; c = d->nodes.v[c].next_sibling)
			as_vec_push(&todo, (struct todo){c, parent});
		for (size_t lo = first, hi = todo.n; lo + 1 < hi; lo++, hi--) {
			struct todo swap = todo.v[lo];

			todo.v[lo] = todo.v[hi - 1];
			todo.v[hi - 1] = swap;
		}
	}
	as_vec_clear(&todo);
}

static void json_inlinings(struct as_json *j, const struct as_diff *d)
{
	as_json_arr(j, "inlinings");
	as_vec_foreach (i, &d->inlinings) {
		as_json_obj(j, NULL);
		as_json_str(j, "name", i->name);
		as_json_str(j, "full_name", i->full_name);
		as_json_str(j, "into", i->into);
		as_json_str(j, "inlined", i->now ? "b" : "a");
		as_json_bool(j, "likely", i->likely);
		as_json_num(j, "share_a", i->a, 6);
		as_json_num(j, "share_b", i->b, 6);
		as_json_end(j);
	}
	as_json_end(j);
}

void as_diff_json(const struct as_diff_view *v, struct as_buf *out)
{
	struct as_json j = {.out = out, .indent = true};
	const struct as_diff *d = v->diff;

	as_json_obj(&j, NULL);
	as_json_str(&j, "schema", "assay.diff/1");
	as_json_str(&j, "by", as_report_by_word(d->request.query.by, false));
	as_json_str(&j, "measure", d->request.total ? "total" : "self");
	as_json_str(&j, "shape", d->request.tree ? "tree" : "flat");
	if (d->request.b[0]->measure == AS_MEASURE_ALLOC_TIME)
		as_json_str(&j, "time", as_measure_name(AS_MEASURE_ALLOC_TIME));
	as_json_u64(&j, "runs_a", d->runs[0]);
	as_json_u64(&j, "runs_b", d->runs[1]);
	as_json_num(&j, "cpu_a_s", d->cpu_a_s, 6);
	as_json_num(&j, "cpu_b_s", d->cpu_b_s, 6);
	as_json_num(&j, "min_effect", d->request.min_effect, 6);
	as_json_u64(&j, "tests", d->tests);
	as_json_num(&j, "widened", d->widened, 4);
	as_json_num(&j, "between", d->between, 4);
	as_json_num(&j, "drift", d->drift, 4);
	as_json_obj(&j, "counts");
	for (int c = 0; c < AS_CHANGE_COUNT_; c++)
		as_json_u64(&j, as_change_name((enum as_change)c), d->counts[c]);
	as_json_end(&j);
	as_json_str(&j, "lacks_inlines",
		    d->lacks_inlines == 1   ? "a"
		    : d->lacks_inlines == 2 ? "b"
					    : "");
	json_inlinings(&j, d);
	as_json_arr(&j, "rows");
	if (d->request.tree)
		json_tree(&j, d);
	else
		json_rows(&j, d);
	as_json_end(&j);
	as_json_end(&j);
	as_buf_addc(out, '\n');
}
