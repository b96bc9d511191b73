/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The loops over samples: weights onto the tree, and weights per time block onto rows. */
#include <stdlib.h>
#include "model/profile_priv.h"

static bool in_scope(const struct as_build *b, const struct as_m_sample *s)
{
	return !b->threads || b->threads[s->thread];
}

/* A sample without frames cannot match focus or module; ignore cannot match it. */
static bool is_dropped(const struct as_build *b, const struct as_m_sample *s)
{
	if (!b->stacks)
		return false;
	if (s->stack == AS_NONE)
		return b->q->focus || b->q->module;
	return b->stacks[s->stack];
}

static void init_blocks(struct as_build *b)
{
	const struct as_m_sample *v = b->m->samples.v;
	uint64_t n = 0, first = 0, last = 0;

	for (size_t i = b->lo; i < b->hi; i++) {
		if (!in_scope(b, &v[i]))
			continue;
		if (n++ == 0)
			first = v[i].time_ns;
		last = v[i].time_ns;
	}
	as_blocks_init(&b->blocks, first, last, n);
}

void as_scan_samples(struct as_build *b)
{
	struct as_profile *p = &b->p->pub;

	init_blocks(b);
	b->leaf = as_xreallocarray(NULL, b->hi - b->lo + 1, sizeof *b->leaf);
	for (size_t i = b->lo; i < b->hi; i++) {
		const struct as_m_sample *s = &b->m->samples.v[i];
		uint32_t *leaf = &b->leaf[i - b->lo];
		struct as_knode *n;

		*leaf = AS_OUT;
		if (!in_scope(b, s))
			continue;
		p->weight += s->weight;
		p->samples++;
		as_blocks_add(&b->blocks, as_blocks_index(&b->blocks, s->time_ns), s->weight);
		*leaf = AS_NONE;
		if (is_dropped(b, s))
			continue;
		p->kept_weight += s->weight;
		p->kept_samples++;
		*leaf = as_ktree_leaf(b, s);
		n = &b->tree.nodes.v[*leaf];
		n->self_weight += s->weight;
		n->self_samples++;
	}
	as_blocks_finish(&b->blocks);
	as_ktree_sum(&b->tree);
}

/* One time block's weight on the nodes it touches. Two levels of bits over the nodes give the
 * touched ones from the highest index down, that is, children before parents. */
struct sheet {
	double *weight;
	uint32_t *samples;
	uint64_t *touched, *words; /* a bit per node; a bit per word of touched */
	size_t nsummary;
};

static void sheet_init(struct sheet *s, size_t nodes)
{
	size_t nwords = nodes / 64 + 1;

	s->weight = as_xcalloc(nodes, sizeof *s->weight);
	s->samples = as_xcalloc(nodes, sizeof *s->samples);
	s->touched = as_xcalloc(nwords, sizeof *s->touched);
	s->nsummary = nwords / 64 + 1;
	s->words = as_xcalloc(s->nsummary, sizeof *s->words);
}

static void sheet_clear(struct sheet *s)
{
	free(s->weight);
	free(s->samples);
	free(s->touched);
	free(s->words);
}

static void sheet_add(struct sheet *s, uint32_t node, double weight, uint32_t samples)
{
	s->weight[node] += weight;
	s->samples[node] += samples;
	s->touched[node / 64] |= 1ull << node % 64;
	s->words[node / 4096] |= 1ull << node / 64 % 64;
}

static unsigned highest(uint64_t v)
{
	return 63u - (unsigned)__builtin_clzll(v);
}

/* Takes a touched node's figures to its row and its parent. */
static void settle(struct sheet *s, const struct as_pass *p, const struct as_blocks *blocks,
		   uint32_t block, uint32_t node)
{
	double weight = s->weight[node];
	uint32_t samples = s->samples[node];

	s->weight[node] = 0;
	s->samples[node] = 0;
	if (p->total_row[node] != AS_NONE)
		as_share_add_many(&p->rows[p->total_row[node]], blocks, block, weight, samples);
	if (node)
		sheet_add(s, p->tree->nodes.v[node].parent, weight, samples);
}

static void settle_block(struct sheet *s, const struct as_pass *p,
			 const struct as_blocks *blocks, uint32_t block)
{
	for (size_t i = s->nsummary; i-- > 0;) {
		while (s->words[i]) {
			size_t word = i * 64 + highest(s->words[i]);

			while (s->touched[word]) {
				unsigned bit = highest(s->touched[word]);

				s->touched[word] &= ~(1ull << bit);
				settle(s, p, blocks, block, (uint32_t)(word * 64 + bit));
			}
			s->words[i] &= ~(1ull << word % 64);
		}
	}
}

void as_pass_run(const struct as_build *b, const struct as_pass *p)
{
	struct sheet s;
	uint32_t block = 0;

	sheet_init(&s, p->tree->nodes.n);
	for (size_t i = b->lo; i < b->hi; i++) {
		const struct as_m_sample *m = &b->m->samples.v[i];
		uint32_t node = b->leaf[i - b->lo], now;

		if (node >= AS_OUT)
			continue;
		if (p->leaf)
			node = p->leaf[node];
		if (node == AS_NONE)
			continue;
		now = as_blocks_index(&b->blocks, m->time_ns);
		if (now != block)
			settle_block(&s, p, &b->blocks, block);
		block = now;
		sheet_add(&s, node, m->weight, 1);
		if (p->self_row && p->self_row[node] != AS_NONE)
			as_share_add(&p->rows[p->self_row[node]], &b->blocks, now, m->weight);
	}
	settle_block(&s, p, &b->blocks, block);
	sheet_clear(&s);
}
