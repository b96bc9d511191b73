/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Two sessions of memory compared, or two moments of one: amounts that were counted, so that no
 * difference is chance. Rows are matched by what survives a rebuild (identity.h), as in diff.h.
 *
 *	r = as_heap_diff_make(&(struct as_heap_diff_request){a, b, query, false}, &d, err);
 *	as_vec_foreach (row, &d->rows) … row->b - row->a …
 *	as_heap_diff_free(d);
 *
 * Both models must be in the same measure. Thread rule: none shared; the models must outlive it.
 */
#ifndef AS_MODEL_HEAP_DIFF_H
#define AS_MODEL_HEAP_DIFF_H

#include "model/model.h"

struct as_heap_diff_request {
	const struct as_model *a, *b; /* may be two loads of one session */
	struct as_query query;        /* filters and `by`; shape is not looked at */
	bool total;                   /* with what is called, else of the row itself */
	bool tree; /* nodes as well: the calls of both as one tree. Not by thread or process */
};
struct as_heap_diff_row {
	struct as_row row; /* names only */
	uint64_t a, b;
	bool in_a, in_b;
};
struct as_heap_diff_node { /* with all it calls */
	struct as_row row; /* names only */
	uint64_t a, b;
	uint32_t parent, first_child,
		next_sibling; /* AS_NONE ends; larger sums of both first */
	uint32_t depth;       /* 0: the root, nodes.v[0] */
};
struct as_heap_diff {
	struct as_heap_diff_request request;
	AS_VEC(struct as_heap_diff_node) nodes; /* with request.tree */
	AS_VEC(struct as_heap_diff_row) rows;   /* by the size of the difference */
	uint64_t a, b;                          /* of all */
	size_t same;                            /* rows without a difference; they come last */
	struct as_arena arena;
};
/* As as_profile_make; AS_E_USAGE where the measures differ. */
int as_heap_diff_make(const struct as_heap_diff_request *q, struct as_heap_diff **ret,
		      struct as_error *err);
void as_heap_diff_free(struct as_heap_diff *d);

#endif
