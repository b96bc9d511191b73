/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Owners of lost trees. Of the graph of lost blocks, those that no other leads to own what they lead to;
 * where blocks lead to each other in a circle that nothing else leads to, one of them does. Found in two
 * passes over the pointers (Kosaraju's order: a depth-first search from each block in turn; then again
 * in the opposite order of their ends, where each block not seen yet is an owner, since all that lead to
 * it would have come before it). Both without recursion.
 */
#include <stdlib.h>
#include <string.h>

#include "heap/leak_priv.h"

struct graph {
	struct as_leaks *l;
	AS_VEC(uint32_t) lost; /* numbers of blocks, in order of address */
	uint32_t *place;       /* number of a block -> place in lost */
	/* pointers of lost.v[i]: to.v[first[i]] … first[i + 1], places */
	uint64_t *first;
	AS_VEC(uint32_t) to;
	uint32_t *last; /* the last place that points here: each is noted once */
	uint32_t filled;
};

static void note_edges(void *ctx, uint32_t number, const uint64_t *word, size_t n)
{
	struct graph *g = ctx;
	const struct as_leaks *l = g->l;
	uint32_t from = g->place[number], i;

	for (; g->filled <= from; g->filled++)
		g->first[g->filled] = g->to.n;
	for (size_t k = 0; k < n; k++) {
		uint64_t w = word[k];

		if (w < l->lowest || w > l->highest || !as_leaks_find(l, w, &i) ||
		    l->blocks.v[i].class != AS_LEAK_LOST)
			continue;
		i = g->place[i];
		if (i == from || g->last[i] == from + 1)
			continue;
		g->last[i] = from + 1;
		if (g->to.n < AS_LEAK_EDGES)
			as_vec_push(&g->to, i);
		else
			g->l->edges_beyond++;
	}
}

static void read_graph(struct graph *g)
{
	const struct as_leak_scan to = {g, note_edges};
	size_t n;

	g->place = as_xcalloc(g->l->blocks.n + 1, sizeof *g->place);
	for (uint32_t i = 0; i < g->l->blocks.n; i++) {
		if (g->l->blocks.v[i].class != AS_LEAK_LOST)
			continue;
		g->place[i] = (uint32_t)g->lost.n;
		as_vec_push(&g->lost, i);
	}
	n = g->lost.n;
	g->first = as_xcalloc(n + 1, sizeof *g->first);
	g->last = as_xcalloc(n + 1, sizeof *g->last);
	/* one by one in order, so that the pointers of each lie together */
	as_leak_scan_blocks(g->l, g->lost.v, n, &to);
	for (; g->filled <= n; g->filled++)
		g->first[g->filled] = g->to.n;
}

/* A depth-first search: a path of places, and for each the pointer to be followed next. */
struct search {
	AS_VEC(uint32_t) path;
	uint64_t *next; /* by place; UINT64_MAX: not seen yet */
	AS_VEC(uint32_t) ended;
};

static void enter(struct search *s, const struct graph *g, uint32_t at)
{
	s->next[at] = g->first[at];
	as_vec_push(&s->path, at);
}

static void search_from(struct search *s, const struct graph *g, uint32_t start)
{
	enter(s, g, start);
	while (s->path.n) {
		uint32_t at = s->path.v[s->path.n - 1];

		if (s->next[at] == g->first[at + 1]) {
			s->path.n--;
			as_vec_push(&s->ended, at);
		} else {
			uint32_t to = g->to.v[s->next[at]++];

			if (s->next[to] == UINT64_MAX)
				enter(s, g, to);
		}
	}
}

/* All that `owner` leads to and nobody owns yet. */
static void own(struct search *s, const struct graph *g, uint32_t owner)
{
	struct as_leaks *l = g->l;
	uint32_t number = g->lost.v[owner];

	s->path.n = 0;
	as_vec_push(&s->path, owner);
	l->owner[number] = number;
	while (s->path.n) {
		uint32_t at = s->path.v[--s->path.n];

		for (uint64_t i = g->first[at]; i < g->first[at + 1]; i++) {
			uint32_t to = g->to.v[i], block = g->lost.v[to];

			if (l->owner[block] != UINT32_MAX)
				continue;
			l->owner[block] = number;
			l->blocks.v[block].class = AS_LEAK_INDIRECT;
			as_vec_push(&s->path, to);
		}
	}
}

void as_leak_find_owners(struct as_leaks *l)
{
	struct graph g = {.l = l};
	struct search s = {0};

	read_graph(&g);
	s.next = as_xreallocarray(NULL, g.lost.n + 1, sizeof *s.next);
	memset(s.next, 0xff, (g.lost.n + 1) * sizeof *s.next);
	for (uint32_t i = 0; i < g.lost.n; i++) {
		if (s.next[i] == UINT64_MAX)
			search_from(&s, &g, i);
	}
	for (size_t i = s.ended.n; i-- > 0;) {
		if (l->owner[g.lost.v[s.ended.v[i]]] == UINT32_MAX)
			own(&s, &g, s.ended.v[i]);
	}
	as_vec_clear(&g.lost);
	as_vec_clear(&g.to);
	free(g.place);
	free(g.first);
	free(g.last);
	as_vec_clear(&s.path);
	as_vec_clear(&s.ended);
	free(s.next);
}
