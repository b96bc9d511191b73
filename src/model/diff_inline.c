/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Functions that one build inlines and the other does not. Where an inlined function ends is for the
 * optimiser to say, so its figures do not compare with those of a function that is called; the one
 * around it, which both builds have as a frame, does compare.
 */
#include <stdlib.h>
#include <string.h>

#include "model/diff_priv.h"

#define MOSTLY     0.9 /* of a function's weight */
#define MIN_WEIGHT 10  /* samples that have the function, on each side */

struct usage {
	double own, inlined; /* weights of the frames it is in, as a frame or within one */
	double heaviest;     /* of what it is inlined into */
	uint32_t into;       /* function of the model, AS_NONE */
	const struct as_model *model;
};

/* Weight of everything at or above each stack node. */
static double *stack_weights(const struct as_model *m)
{
	double *w = as_xcalloc(m->stacks.n + 1, sizeof *w);

	as_vec_foreach (s, &m->samples) {
		if (s->stack != AS_NONE)
			w[s->stack] += s->weight;
	}
	for (size_t i = m->stacks.n; i-- > 1;) {
		if (m->stacks.v[i].parent != AS_NONE)
			w[m->stacks.v[i].parent] += w[i];
	}
	return w;
}

static bool is_program(const struct as_model *m, uint32_t module)
{
	const char *program = as_model_info(m, "program"), *slash = strrchr(program, '/');

	return module != AS_NONE && *program &&
	       strcmp(m->modules.v[module].name, slash ? slash + 1 : program) == 0;
}

double as_diff_inlined_share(const struct as_model *m)
{
	double inlined = 0, all = 0;

	as_vec_foreach (s, &m->samples) {
		const struct as_m_frame *f;

		if (s->stack == AS_NONE)
			continue;
		f = &m->frames.v[m->stacks.v[s->stack].frame];
		if (!is_program(m, f->module))
			continue;
		all += s->weight;
		inlined += f->nchain > 1 ? s->weight : 0;
	}
	return all > 0 ? inlined / all : 0;
}

/* u[name] of one session's frames, per mean sample weight. */
static void add_usage(const struct as_diff_session *s, struct usage *u)
{
	const struct as_model *m = s->model;
	AS_CLEANUP(as_free_autop) double *weight = stack_weights(m);
	double unit = s->samples ? s->weight / (double)s->samples : 1;

	for (size_t i = 0; i < m->stacks.n; i++) {
		const struct as_m_frame *f = &m->frames.v[m->stacks.v[i].frame];
		double w = weight[i] / unit;

		for (uint32_t k = 0; k < f->nchain && w > 0; k++) {
			uint32_t function = m->places.v[f->chain + k].function;
			uint32_t name =
				function < s->nkeys ? s->name_of_key[function] : AS_NONE;

			if (name == AS_NONE)
				continue;
			if (k + 1 == f->nchain) {
				u[name].own += w;
				continue;
			}
			u[name].inlined += w;
			if (w > u[name].heaviest) {
				u[name].heaviest = w;
				u[name].into = m->places.v[f->chain + k + 1].function;
				u[name].model = m;
			}
		}
	}
}

static bool mostly(double part, double rest)
{
	return part + rest >= MIN_WEIGHT && part >= MOSTLY * (part + rest);
}

static double mean_share(const struct as_diff_session *s, size_t n, size_t name)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += name < s[i].shares.n ? s[i].shares.v[name].value / (double)n : 0;
	return sum;
}

static int heaviest_first(const void *pa, const void *pb)
{
	const struct as_diff_inlining *a = pa, *b = pb;
	double x = AS_MAX(a->a, a->b), y = AS_MAX(b->a, b->b);

	return x != y ? (x < y) - (x > y) : strcmp(a->name, b->name);
}

/* The sessions' functions of this name count for what they stand in. */
static void hide(struct as_diff_session *sessions, size_t n, size_t name)
{
	for (size_t i = 0; i < n; i++) {
		struct as_diff_session *s = &sessions[i];

		if (!s->hidden)
			s->hidden = as_xcalloc(s->model->functions.n + 1, 1);
		for (uint32_t f = 0; f < s->nkeys && f < s->model->functions.n; f++)
			s->hidden[f] |= s->name_of_key[f] == name;
	}
}

bool as_diff_find_inlinings(struct as_diff *d, const struct as_diff_match *m,
			    struct as_diff_session *sessions)
{
	size_t na = d->request.na, nb = d->request.nb, n = m->names.n;
	AS_CLEANUP(as_free_autop) struct usage *a = as_xcalloc(n + 1, sizeof *a);
	AS_CLEANUP(as_free_autop) struct usage *b = as_xcalloc(n + 1, sizeof *b);

	for (size_t i = 0; i < na + nb; i++)
		add_usage(&sessions[i], i < na ? a : b);
	for (size_t i = 0; i < n; i++) {
		bool now = mostly(a[i].own, a[i].inlined) && mostly(b[i].inlined, b[i].own);
		const struct usage *u = now ? &b[i] : &a[i];

		if (!now && !(mostly(a[i].inlined, a[i].own) && mostly(b[i].own, b[i].inlined)))
			continue;
		as_vec_push(&d->inlinings, (struct as_diff_inlining){
						   .name = m->names.v[i].row.name,
						   .full_name = m->names.v[i].row.full_name,
						   .into = u->model->functions.v[u->into].brief,
						   .now = now,
						   .a = mean_share(sessions, na, i),
						   .b = mean_share(sessions + na, nb, i)});
		hide(sessions, na + nb, i);
	}
	if (d->inlinings.n)
		qsort(d->inlinings.v, d->inlinings.n, sizeof *d->inlinings.v, heaviest_first);
	return d->inlinings.n > 0;
}
