/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Weights per time block onto rows.
 *
 * Most nodes of a call tree have one child and no samples of their own, so in every block they
 * weigh what their child weighs. Such chains become one link; a block then costs by the links
 * it touches (a few per sample) and by the row numbers listed on them, which are read in order.
 */
#include <stdlib.h>
#include <string.h>
#include "model/profile/profile_priv.h"

struct links { /* parent < own index; link 0 holds the root */
	uint32_t n;
	uint32_t *of_node; /* per tree node: its link */
	uint32_t *parent;  /* per link */
	uint32_t *first;   /* per link, n + 1: its rows are row[first[i] … first[i + 1]) */
	uint32_t *row;
};

/* A node that must not be merged with its child. */
static bool is_joint(const struct as_ktree *t, const uint32_t *children, uint32_t node)
{
	return node == 0 || children[node] != 1 || t->nodes.v[node].self_samples;
}

/* Joints get their numbers in the order of nodes; the nodes above a joint share it. */
static void number_links(const struct as_ktree *t, struct links *l)
{
	uint32_t n = (uint32_t)t->nodes.n;
	uint32_t *children = as_xcalloc(n, sizeof *children);
	uint32_t *only = as_xreallocarray(NULL, n, sizeof *only); /* a child */

	for (uint32_t i = 1; i < n; i++) {
		children[t->nodes.v[i].parent]++;
		only[t->nodes.v[i].parent] = i;
	}
	for (uint32_t i = 0; i < n; i++)
		l->of_node[i] = is_joint(t, children, i) ? l->n++ : AS_NONE;
	for (uint32_t i = n; i-- > 0;) {
		if (l->of_node[i] == AS_NONE)
			l->of_node[i] = l->of_node[only[i]];
	}
	free(children);
	free(only);
}

static void list_rows(const struct as_pass *p, struct links *l)
{
	uint32_t n = (uint32_t)p->tree->nodes.n;

	l->parent = as_xcalloc(l->n, sizeof *l->parent);
	l->first = as_xcalloc((size_t)l->n + 2, sizeof *l->first);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t link = l->of_node[i],
			 up = i ? l->of_node[p->tree->nodes.v[i].parent] : 0;

		if (up != link)
			l->parent[link] = up;
		l->first[link + 2] += p->total_row[i] != AS_NONE;
	}
	for (uint32_t i = 2; i <= l->n + 1; i++)
		l->first[i] += l->first[i - 1];
	l->row = as_xreallocarray(NULL, (size_t)l->first[l->n + 1] + 1, sizeof *l->row);
	for (uint32_t i = 0; i < n; i++) {
		if (p->total_row[i] != AS_NONE)
			l->row[l->first[l->of_node[i] + 1]++] = p->total_row[i];
	}
}

/*
 * The open block: weights on links, and on rows what has been settled. Two levels of bits give
 * the touched links from the highest index down, that is, children before parents.
 */
struct sheet {
	double *link, *row;
	uint64_t *touched, *words; /* a bit per link; a bit per word of touched */
	size_t nsummary;
	AS_VEC(uint32_t) rows; /* touched ones */
};

static void sheet_init(struct sheet *s, size_t nlinks, size_t nrows)
{
	size_t nwords = nlinks / 64 + 1;

	*s = (struct sheet){0};
	s->link = as_xcalloc(nlinks, sizeof *s->link);
	s->row = as_xcalloc(nrows + 1, sizeof *s->row);
	s->touched = as_xcalloc(nwords, sizeof *s->touched);
	s->nsummary = nwords / 64 + 1;
	s->words = as_xcalloc(s->nsummary, sizeof *s->words);
}

static void sheet_clear(struct sheet *s)
{
	free(s->link);
	free(s->row);
	free(s->touched);
	free(s->words);
	as_vec_clear(&s->rows);
}

static inline void add_link(struct sheet *s, uint32_t link, double weight)
{
	s->link[link] += weight;
	s->touched[link / 64] |= 1ull << link % 64;
	s->words[link / 4096] |= 1ull << link / 64 % 64;
}

/* A row may be listed twice while it weighs nothing; it is then closed twice with the same result. */
static inline void add_row(struct sheet *s, uint32_t row, double weight)
{
	if (s->row[row] == 0)
		as_vec_push(&s->rows, row);
	s->row[row] += weight;
}

static void settle_link(struct sheet *s, const struct links *l, uint32_t link)
{
	double weight = s->link[link];

	s->link[link] = 0;
	for (uint32_t i = l->first[link]; i < l->first[link + 1]; i++)
		add_row(s, l->row[i], weight);
	if (link)
		add_link(s, l->parent[link], weight);
}

static unsigned highest(uint64_t v)
{
	return 63u - (unsigned)__builtin_clzll(v);
}

static void settle_links(struct sheet *s, const struct links *l)
{
	for (size_t i = s->nsummary; i-- > 0;) {
		while (s->words[i]) {
			size_t word = i * 64 + highest(s->words[i]);

			while (s->touched[word]) {
				unsigned bit = highest(s->touched[word]);

				s->touched[word] &= ~(1ull << bit);
				settle_link(s, l, (uint32_t)(word * 64 + bit));
			}
			s->words[i] &= ~(1ull << word % 64);
		}
	}
}

static void close_block(struct sheet *s, const struct links *l, const struct as_build *b,
			const struct as_pass *p, uint32_t block)
{
	settle_links(s, l);
	as_vec_foreach (r, &s->rows) {
		as_share_add_many(&p->rows[*r], &b->blocks, block, s->row[*r], 1);
		s->row[*r] = 0;
	}
	s->rows.n = 0;
}

struct target { /* of an end: AS_NONE where it does not appear */
	uint32_t link, self_row;
};

static struct target *find_targets(const struct as_build *b, const struct as_pass *p,
				   const struct links *l)
{
	struct target *t = as_xreallocarray(NULL, b->ends.n + 1, sizeof *t);

	for (size_t i = 0; i < b->ends.n; i++) {
		uint32_t node = b->ends.v[i].node;

		if (p->leaf)
			node = p->leaf[node];
		t[i] = (struct target){AS_NONE, AS_NONE};
		if (node == AS_NONE)
			continue;
		t[i].link = l->of_node[node];
		if (p->self_row)
			t[i].self_row = p->self_row[node];
	}
	return t;
}

static void add_samples(struct sheet *s, const struct links *l, const struct as_build *b,
			const struct as_pass *p)
{
	AS_CLEANUP(as_free_autop) struct target *targets = find_targets(b, p, l);
	uint32_t block = 0;

	for (size_t i = b->lo; i < b->hi; i++) {
		const struct as_m_sample *m = &b->m->samples.v[i];
		uint32_t end = b->end[i - b->lo], now;

		if (end >= AS_OUT || targets[end].link == AS_NONE)
			continue;
		now = as_blocks_index(&b->blocks, m->time_ns);
		if (now != block)
			close_block(s, l, b, p, block);
		block = now;
		add_link(s, targets[end].link, (double)as_model_weight(b->m, i));
		if (targets[end].self_row != AS_NONE)
			add_row(s, targets[end].self_row, (double)as_model_weight(b->m, i));
	}
	close_block(s, l, b, p, block);
}

void as_pass_run(const struct as_build *b, const struct as_pass *p)
{
	struct links l = {.of_node =
				  as_xreallocarray(NULL, p->tree->nodes.n, sizeof *l.of_node)};
	struct sheet s;

	number_links(p->tree, &l);
	list_rows(p, &l);
	sheet_init(&s, l.n, p->nrows);
	add_samples(&s, &l, b, p);
	sheet_clear(&s);
	free(l.of_node);
	free(l.parent);
	free(l.first);
	free(l.row);
}
