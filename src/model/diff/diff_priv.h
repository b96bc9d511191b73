/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * diff.c		the comparison from start to end
 * match.c		which rows of several sessions are the same
 * inline.c	functions that are inlined on one side only
 * tree.c		the call trees of all sessions as one
 * union.c		how any two trees become one, of time or of memory
 * judge.c		what shares of rows or of nodes say
 */
#ifndef AS_MODEL_DIFF_PRIV_H
#define AS_MODEL_DIFF_PRIV_H

#include "model/diff/diff.h"

struct as_diff_name {    /* a row of any session: what it is called, as first seen */
	const char *key; /* stable identity; key_bytes long */
	size_t key_bytes;
	struct as_row row; /* names only; strings in the models or the arena */
};
struct as_diff_session { /* a run */
	const struct as_model *model;
	const struct as_m_trial *trial; /* of a session of several runs: which; else NULL */
	double weight;                  /* of the scope, in the recording's unit */
	uint64_t samples;               /* of the scope */
	AS_VEC(struct as_share) shares; /* of what is judged; samples 0: it has no such row */
	AS_VEC(struct as_share) selfs;  /* of functions, by a match's names; likewise */
	AS_VEC(uint8_t) present;        /* by the match's names: 1: it stands in some stack */
	uint32_t *name_of_key;          /* per key of its profiles, AS_NONE: none. Owned */
	uint32_t nkeys;
	uint32_t *alias; /* keys of one name count as one; NULL: each has its own. Owned */
	uint32_t naliases;
	uint8_t *hidden; /* per function, as query.hidden; NULL: none. Owned */
};
struct as_diff_match {
	struct as_arena *arena;
	AS_VEC(struct as_diff_name) names;
	struct as_map64 by_key;
	AS_VEC(const char *) rebuilt; /* modules that are another build in some session */
	bool loose; /* the sides' names are mangled in two ways: as_loose_function */
};
struct as_diff_names { /* what is judged is called; names only */
	struct as_row *v;
	size_t n, cap;
};

/* Finds modules of which the sessions have several builds. Before the first as_diff_match_add. */
void as_diff_match_modules(struct as_diff_match *d, const struct as_diff_session *s, size_t n);
/* Profiles s->model by its names (s->hidden applied) and fills s. Its shares may be fewer than
 * names in the end. Again: with another s->hidden. */
int as_diff_match_add(struct as_diff_match *d, const struct as_query *q, bool total,
		      struct as_diff_session *s, struct as_error *err);
/* Of a key that is no row: what stands only in trees. */
uint32_t as_diff_match_name(struct as_diff_match *d, const struct as_profile *p, uint32_t key);
/* The time of the run, where the session has several. */
void as_diff_run_range(const struct as_diff_session *s, struct as_query *q);
/* The node of the union of trees that node i of a session's profile is; parents come first. */
struct as_ktree;
uint32_t as_diff_tree_node(struct as_ktree *t, struct as_diff_match *m,
			   const struct as_diff_session *s, const struct as_profile *p,
			   size_t i, const uint32_t *to);
/* first_child and next_sibling of a node of the union, heavier siblings first. */
struct as_diff_link {
	uint32_t parent, first_child, next_sibling, depth;
};
struct as_diff_link *as_diff_tree_links(const struct as_ktree *t,
					const double *weight); /* owned */
const struct as_row *as_diff_tree_name(const struct as_ktree *t, const struct as_diff_match *m,
				       size_t node);
void as_diff_session_clear(struct as_diff_session *s);
void as_diff_match_clear(struct as_diff_match *d);

/*
 * Functions that are frames of their own on one side and only inlined on the other: sets `hidden` of
 * all sessions, so that their time counts for the functions they are inlined into on both sides, and
 * adds them to d->inlinings. Sessions as as_diff_match_add left them. knows: whether a side's debug
 * information tells inlined functions; else what is gone there is judged by its caller. Returns whether
 * there are any.
 */
bool as_diff_find_inlinings(struct as_diff *d, const struct as_diff_match *m,
			    struct as_diff_session *sessions, const bool knows[2]);
/*
 * Whether the debug information of the program's own functions tells what is inlined into them; the
 * language's library comes with its own, so it counts only where the program's module has nothing else.
 * ret_inlined: the share of the same functions' weight that stands in inlined ones.
 */
bool as_diff_knows_inlines(const struct as_model *m, double *ret_inlined);

/* The trees as one: d->nodes, and per node (node i is name i) names and the sessions' shares. */
int as_diff_make_tree(struct as_diff *d, struct as_diff_match *m,
		      struct as_diff_session *sessions, struct as_diff_names *ret,
		      struct as_error *err);

/* Rows from the sessions' shares, judged and sorted. nselfs: what selfs are by. */
void as_diff_judge(struct as_diff *d, const struct as_diff_session *sessions,
		   const struct as_diff_names *names, size_t nselfs);
double as_diff_cpu_s(const struct as_diff_session *v, size_t n); /* mean; NaN: not times */

#endif
