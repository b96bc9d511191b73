/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* diff_match.c: which rows of several sessions are the same; diff.c: what their shares say. */
#ifndef AS_MODEL_DIFF_PRIV_H
#define AS_MODEL_DIFF_PRIV_H

#include "model/diff.h"

struct as_diff_name {    /* a row of any session: what it is called, as first seen */
	const char *key; /* stable identity; key_bytes long */
	size_t key_bytes;
	struct as_row row; /* names only; strings in the models or the arena */
};
struct as_diff_session {
	const struct as_model *model;
	double weight;                  /* of the scope, in the recording's unit */
	uint64_t samples;               /* of the scope */
	AS_VEC(struct as_share) shares; /* by index into names; samples 0: it has no such row */
};
struct as_diff_match {
	struct as_arena *arena;
	AS_VEC(struct as_diff_name) names;
	struct as_map64 by_key;
};

/* Profiles m and adds its rows to the match; ret->shares may be shorter than names in the end. */
int as_diff_match_add(struct as_diff_match *d, const struct as_model *m,
		      const struct as_diff_request *q, struct as_diff_session *ret,
		      struct as_error *err);
void as_diff_match_clear(struct as_diff_match *d);

#endif
