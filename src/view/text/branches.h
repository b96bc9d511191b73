/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Calls of two sides as one tree, as lines of a table: the branches that hold a change, the largest first;
 * those without one are together one line below the call that has them.
 *
 *	as_vec_push(&b.nodes, (struct as_branch){parent, first_child, next_sibling, change, weight}); …
 *	as_branches_sum(&b);
 *	as_branches_rows(&b, style, &table);
 *	as_branches_clear(&b);
 *
 * What a change is, and which is worth a line, is the caller's business.
 */
#ifndef AS_VIEW_BRANCHES_H
#define AS_VIEW_BRANCHES_H

#include "view/text/table.h"

struct as_branch {
	uint32_t parent, first_child,
		next_sibling; /* AS_NONE ends; a parent stands before its children */
	double change;        /* 0: none; after as_branches_sum the largest of the branch */
	double weight;        /* of two with the same change the heavier one is first */
};

struct as_branches {
	AS_VEC(struct as_branch) nodes; /* 0: the root */
	double least;                   /* smaller changes have no line */
	size_t top;                     /* lines at most; 0: no limit */
	size_t name_column;
	const void *data;
	/* Adds the line of a node; false: it has none. */
	bool (*row)(const void *data, uint32_t node, struct as_table *t);
	/* Adds the line of the branches of node that have none of their own. */
	void (*rest)(const struct as_branches *b, uint32_t node, struct as_table *t);
	/* Whether there is such a line, where so many branches have their own. */
	bool (*tells_rest)(const struct as_branches *b, uint32_t node, size_t kept);
	/* The branches of such a node have no lines, whatever they hold. NULL: of none. */
	bool (*is_end)(const struct as_branches *b, uint32_t node);
};

void as_branches_sum(struct as_branches *b);
bool as_branches_has_line(const struct as_branches *b, uint32_t node);
void as_branches_rows(const struct as_branches *b, const struct as_style *style,
		      struct as_table *t);
void as_branches_clear(struct as_branches *b);

#endif
