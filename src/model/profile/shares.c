/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The first loop over samples: which count, and onto which node of the tree. */
#include <stdlib.h>
#include "model/profile/profile_priv.h"

/* 256 blocks of a long recording leave 170 degrees of freedom to a variance and make a pass cost a
 * third of what 1,024 do. */
#define ASKED_SAMPLES (256 * AS_BLOCK_SAMPLES)

void as_blocks_of_model(struct as_blocks *b, const struct as_model *m,
			const struct as_run_span *scope, uint64_t n_samples)
{
	AS_CLEANUP(as_free_autop)
	struct as_run_span *runs = as_xcalloc(m->trials.n + 1, sizeof *runs);

	for (size_t i = 0; i < m->trials.n; i++)
		runs[i] = (struct as_run_span){m->trials.v[i].start_ns, m->trials.v[i].end_ns};
	as_blocks_init_runs(b, runs, m->trials.n, scope,
			    AS_MIN(n_samples, (uint64_t)ASKED_SAMPLES));
	b->stopped = *as_model_info(m, "until") != 0;
}

static void init_blocks(struct as_build *b)
{
	const struct as_m_sample *v = b->m->samples.v;
	uint64_t n = 0, first = 0, last = 0;

	for (size_t i = b->lo; i < b->hi; i++) {
		if (!as_filter_in_scope(b, &v[i]))
			continue;
		if (n++ == 0)
			first = v[i].time_ns;
		last = v[i].time_ns;
	}
	as_blocks_of_model(&b->blocks, b->m, &(struct as_run_span){first, last}, n);
}

void as_scan_samples(struct as_build *b)
{
	struct as_profile *p = &b->p->pub;

	init_blocks(b);
	b->end = as_xreallocarray(NULL, b->hi - b->lo + 1, sizeof *b->end);
	for (size_t i = b->lo; i < b->hi; i++) {
		const struct as_m_sample *s = &b->m->samples.v[i];
		uint64_t weight = as_model_weight(b->m, i);
		uint32_t *end = &b->end[i - b->lo];

		*end = AS_OUT;
		if (!as_filter_in_scope(b, s))
			continue;
		p->weight += (double)weight;
		p->samples++;
		as_blocks_add(&b->blocks, as_blocks_index(&b->blocks, s->time_ns),
			      (double)weight);
		*end = AS_NONE;
		if (!as_filter_keeps(b, s))
			continue;
		p->kept_weight += (double)weight;
		p->kept_samples++;
		*end = as_ktree_end(b, s);
		b->ends.v[*end].weight += (double)weight;
		b->ends.v[*end].samples++;
	}
	as_vec_foreach (e, &b->ends) {
		b->tree.nodes.v[e->node].self_weight += e->weight;
		b->tree.nodes.v[e->node].self_samples += e->samples;
	}
	as_blocks_finish(&b->blocks);
	as_ktree_sum(&b->tree);
}
