/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The cost of one function by instruction address and by source line.
 *
 *	r = as_functions_find(m, &q, "parse", &f, err);	f->v[0]: the best match
 *	struct as_annotate_query a = {.query = q, .function = f->v[0].function};
 *	r = as_annotation_make(m, &a, &ret, err);
 *	for (size_t i = 0; i < ret->places.n; i++) … ret->places.v[i].of_all.self
 *
 * A sample counts where the function stands in its stack, as often as the query leaves frames
 * and places visible (no_inline, no_kernel, hide mean what they mean in a profile):
 *
 *	self	the sample's innermost place is this very one
 *	code	the sample's innermost frame is this one: self, and what is inlined here
 *	total	the sample passes here: code, and all calls made from here
 *
 * self <= code <= total, and each sample counts once per row however often the function recurs.
 * Places are a tree: its roots are lines of the function; below a call that was inlined stand the
 * lines of the callee in this place, below those what was inlined there. So the cost of an inlined
 * callee is in the total of the line that calls it and, unfolded, on the callee's own lines. Where
 * an instruction stands for no visible place of the function it has no row.
 *
 * of_all are shares of all samples in the query's scope (threads, time: as struct as_row),
 * of_function of those that have the function in their stack. Intervals as in profiles.
 *
 * Addresses are svmas of their module (run-time addresses in the kernel and in generated code). A
 * frame that is a return address counts at the last byte of its call instruction. With starts,
 * rows are whole instructions: a sample counts at the greatest start that is not above it.
 *
 * Cost: each distinct stack is walked once; each sample costs by the rows it touches. Memory: about
 * 500 bytes a row. Thread rule: pure; any number of annotations of one model at a time.
 */
#ifndef AS_MODEL_ANNOTATE_H
#define AS_MODEL_ANNOTATE_H

#include "model/model.h"

/* How a name fits: it is the brief, full or linkage name; else the last part of a path ("parse"
 * for app::parse); else any part. With an exact match there are no others. */
enum as_name_fit { AS_FIT_EXACT, AS_FIT_LAST, AS_FIT_PART };

struct as_function_match {
	uint32_t function; /* index into functions */
	enum as_name_fit fit;
	struct as_share self, total; /* 0 without samples in scope */
};
struct as_function_matches { /* by fit, then by self + total: the first is the one to look at */
	AS_VEC(struct as_function_match) v;
};

/* AS_E_NOTFOUND with near names. Filters as in query; its by, shape and of do not matter. */
int as_functions_find(const struct as_model *m, const struct as_query *q, const char *name,
		      struct as_function_matches *ret, struct as_error *err);
void as_functions_clear(struct as_function_matches *f);

struct as_annotate_query {
	struct as_query query; /* filters only: by, shape, of do not matter */
	uint32_t function;
	/* Starts of the instructions of `module`, ascending; NULL: rows are addresses. */
	uint32_t module;
	const uint64_t *starts;
	size_t nstarts;
	uint64_t end; /* first address behind the last of them */
};

struct as_cost {
	struct as_share self, code, total;
};

struct as_annotated_place {
	uint32_t parent; /* index into places, below its own; AS_NONE: a line of the function */
	uint32_t function;
	uint32_t line; /* 0 unknown */
	const char *file;
	struct as_cost of_all, of_function;
};
struct as_annotated_insn { /* by module, svma */
	uint32_t module;
	uint64_t svma;
	struct as_cost of_all, of_function; /* self = code */
	uint32_t place;        /* the innermost visible place of its first sample */
	uint32_t call, ncalls; /* calls.v[call … +ncalls], heaviest first */
};
struct as_annotated_call { /* a function entered from an instruction */
	uint32_t insn, function;
	struct as_share of_all;
};

struct as_annotation {
	const struct as_model *model; /* must outlive the annotation */
	uint32_t function;
	struct as_query query;
	double weight; /* of all samples in scope: the denominator of of_all */
	uint64_t samples;
	struct as_cost of_all, of_function; /* the function as a whole */
	AS_VEC(struct as_annotated_place)
	places; /* parents first; else by file, line, function */
	AS_VEC(struct as_annotated_insn) insns;
	AS_VEC(struct as_annotated_call) calls;
	/* functions whose code the sampled instructions are; the function itself unless inlined */
	AS_VEC(uint32_t) hosts;
	/* The two lines (roots) with most code cannot be ranked apart. False with fewer than two. */
	bool lines_tied;
};

int as_annotation_make(const struct as_model *m, const struct as_annotate_query *q,
		       struct as_annotation **ret, struct as_error *err);
void as_annotation_free(struct as_annotation *a);

#endif
