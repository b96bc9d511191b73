/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* An annotated function from its name to the output: see annotate.h. */
#include "view/annotate/annotate.h"

#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "view/annotate/annotate_priv.h"

enum { MANY_FITS = 12, LISTED = 6 };

void as_annotate_text(const struct as_annotate_view *v, const struct as_style *style,
		      struct as_buf *out)
{
	struct as_an_tree t;
	struct as_an_rows rows;

	as_an_tree_make(v, &t);
	as_an_rows_make(&t, &rows);
	as_an_header(&t, style, out);
	if (rows.v.n)
		as_an_print(&t, &rows, style, out);
	as_an_footer(&t, &rows, style, out);
	as_vec_clear(&rows.v);
	as_an_tree_clear(&t);
}

static int by_self(const void *pa, const void *pb)
{
	const struct as_function_match *a = *(const struct as_function_match *const *)pa;
	const struct as_function_match *b = *(const struct as_function_match *const *)pb;

	if (a->self.value != b->self.value)
		return a->self.value < b->self.value ? 1 : -1;
	return a->function < b->function ? -1 : a->function > b->function;
}

/* A part of many names, none of which stands out, is no name. */
static int check_choice(const struct as_model *m, const struct as_function_matches *f,
			const char *name, struct as_error *err)
{
	const struct as_function_match *best = &f->v.v[0];
	struct as_buf b = {0};
	size_t n = 0;
	double self = 0;

	as_vec_foreach (i, &f->v) {
		n += i->total.samples > 0;
		self += i->self.value;
	}
	if (best->fit != AS_FIT_PART || n <= MANY_FITS || best->self.value >= self / 2)
		return AS_OK;

	const struct as_function_match **order = as_xreallocarray(NULL, f->v.n, sizeof *order);

	for (size_t i = 0; i < f->v.n; i++)
		order[i] = &f->v.v[i];
	qsort(order, f->v.n, sizeof *order, by_self);
	for (size_t i = 0; i < LISTED && i < f->v.n; i++) {
		const char *brief = m->functions.v[order[i]->function].brief;

		as_buf_addf(&b, "\nself %4.1f %%, total %5.1f %%   ",
			    order[i]->self.value * 100, order[i]->total.value * 100);
		as_fmt_quoted(&b, brief, strnlen(brief, 90));
	}
	free(order);
	as_fail(err, AS_E_USAGE, 0,
		"'%s' fits %zu functions with samples; those with most self time:%s", name, n,
		b.p);
	as_buf_clear(&b);
	return AS_E_USAGE;
}

static int annotate(const struct as_annotate_request *q, const struct as_listing *l,
		    struct as_annotation **ret, struct as_error *err)
{
	struct as_annotate_query a = {
		.query = q->query, .function = l->function, .module = l->module};
	AS_CLEANUP(as_free_autop)
	uint64_t *starts = as_xreallocarray(NULL, l->insns.n + 1, sizeof *starts);

	as_vec_foreach (i, &l->insns)
		starts[a.nstarts++] = i->svma;
	if (a.nstarts) {
		const struct as_listing_insn *last = &l->insns.v[l->insns.n - 1];

		a.starts = starts;
		a.end = last->svma + last->len;
	}
	return as_annotation_make(q->model, &a, ret, err);
}

int as_annotate_make(const struct as_annotate_request *q, const struct as_style *style,
		     struct as_buf *out, struct as_error *err)
{
	struct as_function_matches f = {0};
	struct as_listing *l = NULL;
	struct as_annotation *a = NULL;
	struct as_listing_request lq = {.model = q->model,
					.context = q->context > 0 ? (uint32_t)q->context : 0,
					.embedded_only = q->embedded_only,
					.cache_dir = q->cache_dir,
					.roots = q->roots};
	int r = as_functions_find(q->model, &q->query, q->function, &f, err);

	if (r == AS_OK)
		r = check_choice(q->model, &f, q->function, err);
	if (r == AS_OK) {
		lq.function = f.v.v[0].function;
		lq.no_source = q->show == AS_ANNOTATE_ASM;
		r = as_listing_make(&lq, &l, err);
	}
	if (r == AS_OK)
		r = annotate(q, l, &a, err);
	if (r == AS_OK) {
		struct as_annotate_view v = {.q = q, .a = a, .l = l, .matches = &f};

		if (q->format == AS_ANNOTATE_JSON)
			as_annotate_json(&v, out);
		else
			as_annotate_text(&v, style, out);
	}
	as_annotation_free(a);
	as_listing_free(l);
	as_functions_clear(&f);
	return r;
}
