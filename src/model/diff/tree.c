/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The call trees of all sessions as one, by names that survive a rebuild. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/diff/diff_priv.h"
#include "model/profile/profile_priv.h"
#include "stats/interval.h"

#define NODES_MIN_SHARE 0.0002 /* lighter ones are part of what they stand in */

/* The interval of a node that is too light for one of its own: of independent samples. */
static struct as_share node_share(const struct as_profile *p, const struct as_node *n)
{
	struct as_share s = {.value = n->total / p->weight,
			     .low = n->low,
			     .high = n->high,
			     .deff = 1,
			     .samples = n->total_samples};

	if (isnan(n->low)) {
		struct as_interval i =
			as_proportion_interval((double)n->total_samples, (double)p->samples,
					       as_normal_quantile(0.5 + AS_CONFIDENCE / 2));

		s.low = AS_MIN(i.lo, s.value);
		s.high = AS_MAX(i.hi, s.value);
	}
	return s;
}

/* Two nodes of one place: no interval of both together is at hand, so the limits are added. */
static void add_share(struct as_share *to, const struct as_share *s)
{
	to->value += s->value;
	to->low += s->low;
	to->high = AS_MIN(1, to->high + s->high);
	to->samples += s->samples;
}

/* Puts the nodes of p into the union and, per node of the union, the share. */
static void add(struct as_ktree *t, const struct as_profile *p, struct as_diff_match *m,
		struct as_diff_session *s)
{
	AS_CLEANUP(as_free_autop)
	uint32_t *to = as_xcalloc(p->nodes.n + 1, sizeof *to);

	s->shares.n = 0;
	for (size_t i = 0; i < p->nodes.n; i++) {
		struct as_share share;

		to[i] = as_diff_tree_node(t, m, s, p, i, to);
		while (s->shares.n < t->nodes.n)
			as_vec_push(&s->shares, (struct as_share){.deff = 1});
		if (i && p->weight > 0) {
			share = node_share(p, &p->nodes.v[i]);
			add_share(&s->shares.v[to[i]], &share);
		}
	}
}

static void add_nodes(struct as_diff *d, const struct as_ktree *t,
		      const struct as_diff_session *sessions)
{
	size_t na = d->runs[0], nb = d->runs[1];
	AS_CLEANUP(as_free_autop)
	double *share = as_xcalloc(t->nodes.n + 1, sizeof *share);
	AS_CLEANUP(as_free_autop) struct as_diff_link *link = NULL;

	for (uint32_t i = 1; i < t->nodes.n; i++) {
		for (size_t k = 0; k < na + nb; k++) {
			if (i < sessions[k].shares.n)
				share[i] += sessions[k].shares.v[i].value / 2 /
					    (double)(k < na ? na : nb);
		}
	}
	share[0] = 1;
	link = as_diff_tree_links(t, share);
	for (uint32_t i = 0; i < t->nodes.n; i++)
		as_vec_push(&d->nodes,
			    (struct as_diff_node){.row = AS_NONE,
						  .parent = link[i].parent,
						  .first_child = link[i].first_child,
						  .next_sibling = link[i].next_sibling,
						  .depth = link[i].depth,
						  .share = share[i]});
}

int as_diff_make_tree(struct as_diff *d, struct as_diff_match *m,
		      struct as_diff_session *sessions, struct as_diff_names *ret,
		      struct as_error *err)
{
	size_t n = d->runs[0] + d->runs[1];
	struct as_ktree t;
	int r = AS_OK;

	as_ktree_init(&t, 1024);
	for (size_t i = 0; i < n && r == AS_OK; i++) {
		struct as_diff_session *s = &sessions[i];
		struct as_query q = d->request.query;
		struct as_profile *p = NULL;

		q.shape = AS_SHAPE_TREE;
		q.nodes_only = true;
		q.min_share = AS_MAX(q.min_share, NODES_MIN_SHARE);
		q.alias = s->alias;
		q.naliases = s->naliases;
		q.hidden = s->hidden;
		as_diff_run_range(s, &q);
		r = as_profile_make(s->model, &q, &p, err);
		if (r == AS_OK)
			add(&t, p, m, s);
		as_profile_free(p);
	}
	if (r == AS_OK) {
		add_nodes(d, &t, sessions);
		for (size_t i = 0; i < t.nodes.n; i++)
			as_vec_push(ret, *as_diff_tree_name(&t, m, i));
	}
	as_ktree_clear(&t);
	return r;
}
