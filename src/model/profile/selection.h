/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a query keeps of a session, as samples and stacks: for formats that carry those rather than
 * rows and nodes (a profile answers with rows; both keep the same samples and show the same frames,
 * so that what another program adds up from a selection equals the rows of a profile).
 *
 *	struct as_selection *s;
 *	r = as_selection_make(model, &query, &s, err);
 *	for each group g of s->groups:			a distinct (thread, stack, marker)
 *		for (at = g->stack; at != AS_NONE; at = model->stacks.v[at].parent)
 *			n = as_selection_places(s, model->stacks.v[at].frame, &places);
 *			places[0 … n), innermost first; n may be 0: the frame is not shown
 *		g->marker, when not AS_NONE, stands above the outermost frame
 *
 * Of the query: scope, filters, no_inline, no_kernel, hide count; by, shape, of do not.
 * Groups are in the order of their first sample. Cost: linear in samples (a look-up each) plus
 * frames. Read-only once made; the model must outlive it.
 */
#ifndef AS_MODEL_SELECTION_H
#define AS_MODEL_SELECTION_H

#include "model/model.h"

struct as_group {
	uint32_t thread, stack; /* stack AS_NONE: no frames */
	uint32_t marker;        /* a function: how the stack was cut; AS_NONE: it is whole */
	uint64_t samples;
	uint64_t weight; /* in the recording's unit */
};

struct as_selection {
	const struct as_model *model;
	struct as_query query;
	size_t lo, hi;   /* samples.v[lo … hi) of the model are in the query's time range */
	uint32_t *group; /* of sample lo + i: index into groups, AS_NONE: not kept */
	AS_VEC(struct as_group) groups;
	uint64_t samples, weight; /* kept */
	/* shown places per frame: place[first[frame] … first[frame + 1]) */
	uint32_t *first;
	const struct as_m_place **place;
	/* Which entries of the model the kept samples need, renumbered densely in the model's order;
	 * AS_NONE: not needed. n_x: how many are. Stacks and frames include those not shown. */
	uint32_t *stack_id, *frame_id, *function_id, *module_id, *thread_id, *process_id;
	uint32_t n_stacks, n_frames, n_functions, n_modules, n_threads, n_processes;
};

/* AS_E_USAGE, AS_E_NOTFOUND as as_profile_make. q NULL: everything. */
int as_selection_make(const struct as_model *m, const struct as_query *q,
		      struct as_selection **ret, struct as_error *err);
void as_selection_free(struct as_selection *s);

/* Frame's shown places, innermost first. */
static inline uint32_t as_selection_places(const struct as_selection *s, uint32_t frame,
					   const struct as_m_place *const **ret)
{
	*ret = s->place + s->first[frame];
	return s->first[frame + 1] - s->first[frame];
}

/* True when every sample of the session is kept: figures of the whole session may be added. */
bool as_selection_is_all(const struct as_selection *s);

#endif
