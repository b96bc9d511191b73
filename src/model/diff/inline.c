/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Functions that one build inlines and the other does not. Where an inlined function ends is for the
 * optimiser to say, so its figures do not compare with those of a function that is called; the one
 * around it, which both builds have as a frame, does compare.
 */
#include <stdlib.h>
#include <string.h>

#include "model/category.h"
#include "model/diff/diff_priv.h"

#define MOSTLY     0.9  /* of a function's weight */
#define MIN_WEIGHT 10   /* samples that have the function, on each side */
#define TAKEN_OVER 0.5  /* of the time of functions that are gone: its caller's own grew by */
#define TOLD_MIN   0.02 /* of the program's own weight: in functions with others inlined */

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

/* Of samples in the program's module, by weight. */
struct told {
	double inlined, lines, all;
};

static void add_told(struct told *t, const struct told *more)
{
	t->inlined += more->inlined;
	t->lines += more->lines;
	t->all += more->all;
}

bool as_diff_knows_inlines(const struct as_model *m, double *ret_inlined)
{
	/* by function, + 1 */
	AS_CLEANUP(as_free_autop) uint8_t *category = as_xcalloc(m->functions.n + 1, 1);
	struct told whole = {0}, own = {0};

	as_vec_foreach (s, &m->samples) {
		const struct as_m_frame *f;
		struct told more = {.all = s->weight};
		uint32_t function;

		if (s->stack == AS_NONE)
			continue;
		f = &m->frames.v[m->stacks.v[s->stack].frame];
		if (!is_program(m, f->module))
			continue;
		more.inlined = f->nchain > 1 ? s->weight : 0;
		more.lines = m->places.v[f->chain].line ? s->weight : 0;
		add_told(&whole, &more);
		function = m->places.v[f->chain + f->nchain - 1].function;
		if (!category[function])
			category[function] = 1 + (uint8_t)as_function_category(m, function);
		if (category[function] == 1 + AS_CATEGORY_USER)
			add_told(&own, &more);
	}
	if (!(own.all > 0))
		own = whole;
	*ret_inlined = own.all > 0 ? own.inlined / own.all : 0;
	return own.lines > own.all / 2 || *ret_inlined > TOLD_MIN;
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

/* ---- without debug information ---- */

struct vanished {
	bool is; /* on one side, as a frame of the program's own; not on the other */
	double weight;
	uint32_t into; /* name of the nearest caller that both sides have, AS_NONE */
	double into_weight;
};

/* The function that a frame is, as a name. */
static uint32_t own_name(const struct as_diff_session *s, const struct as_m_frame *f)
{
	uint32_t function = s->model->places.v[f->chain + f->nchain - 1].function;

	return function < s->nkeys ? s->name_of_key[function] : AS_NONE;
}

static void find_vanished(const struct as_diff_session *s, const struct usage *here,
			  const struct usage *there, struct vanished *v)
{
	const struct as_model *m = s->model;

	as_vec_foreach (f, &m->frames) {
		uint32_t name = own_name(s, f);

		if (name != AS_NONE && is_program(m, f->module) &&
		    here[name].own >= MIN_WEIGHT && there[name].own == 0)
			v[name].is = true;
	}
}

static void find_heirs(const struct as_diff_session *s, struct vanished *v)
{
	const struct as_model *m = s->model;
	AS_CLEANUP(as_free_autop) double *weight = stack_weights(m);

	for (size_t i = 0; i < m->stacks.n; i++) {
		const struct as_m_frame *f = &m->frames.v[m->stacks.v[i].frame];
		uint32_t name = own_name(s, f), up = m->stacks.v[i].parent, heir = AS_NONE;

		if (name == AS_NONE || !v[name].is)
			continue;
		for (; up != AS_NONE && heir == AS_NONE; up = m->stacks.v[up].parent) {
			const struct as_m_frame *caller = &m->frames.v[m->stacks.v[up].frame];

			heir = own_name(s, caller);
			if (!is_program(m, caller->module))
				break;
			if (heir != AS_NONE && v[heir].is)
				heir = AS_NONE;
		}
		v[name].weight += weight[i];
		if (heir != AS_NONE && weight[i] > v[name].into_weight) {
			v[name].into_weight = weight[i];
			v[name].into = heir;
		}
	}
}

static double self_share(const struct as_diff_session *s, size_t n, size_t name)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += name < s[i].selfs.n ? s[i].selfs.v[name].value / (double)n : 0;
	return sum;
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

/* `gone`: the side that has not the functions of which `here` tells; it has no inlined ones. */
static void add_likely(struct as_diff *d, const struct as_diff_match *m,
		       struct as_diff_session *sessions, int gone, const struct usage *here,
		       const struct usage *there)
{
	size_t na = d->runs[0], nb = d->runs[1], n = m->names.n;
	struct as_diff_session *has = gone ? sessions : sessions + na;
	struct as_diff_session *not = gone ? sessions + na : sessions;
	size_t nhas = gone ? na : nb, nnot = gone ? nb : na;
	AS_CLEANUP(as_free_autop) struct vanished *v = as_xcalloc(n + 1, sizeof *v);
	AS_CLEANUP(as_free_autop) double *inherited = as_xcalloc(n + 1, sizeof *inherited);

	for (size_t i = 0; i < n; i++)
		v[i].into = AS_NONE;
	for (size_t i = 0; i < nhas; i++)
		find_vanished(&has[i], here, there, v);
	for (size_t i = 0; i < nhas; i++)
		find_heirs(&has[i], v);
	for (size_t i = 0; i < n; i++) {
		if (v[i].is && v[i].into != AS_NONE)
			inherited[v[i].into] += self_share(has, nhas, i);
	}
	for (size_t i = 0; i < n; i++) {
		uint32_t into = v[i].into;

		if (!v[i].is || into == AS_NONE ||
		    self_share(not, nnot, into) - self_share(has, nhas, into) <
			    TAKEN_OVER * inherited[into])
			continue;
		as_vec_push(&d->inlinings,
			    (struct as_diff_inlining){.name = m->names.v[i].row.name,
						      .full_name = m->names.v[i].row.full_name,
						      .into = m->names.v[into].row.name,
						      .now = gone,
						      .likely = true,
						      .a = mean_share(sessions, na, i),
						      .b = mean_share(sessions + na, nb, i)});
		hide(sessions, na + nb, i);
	}
}

static void add_known(struct as_diff *d, const struct as_diff_match *m,
		      struct as_diff_session *sessions, const struct usage *a,
		      const struct usage *b)
{
	size_t na = d->runs[0], nb = d->runs[1];

	for (size_t i = 0; i < m->names.n; i++) {
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
}

bool as_diff_find_inlinings(struct as_diff *d, const struct as_diff_match *m,
			    struct as_diff_session *sessions, const bool knows[2])
{
	size_t na = d->runs[0], nb = d->runs[1], n = m->names.n;
	AS_CLEANUP(as_free_autop) struct usage *a = as_xcalloc(n + 1, sizeof *a);
	AS_CLEANUP(as_free_autop) struct usage *b = as_xcalloc(n + 1, sizeof *b);

	for (size_t i = 0; i < na + nb; i++) {
		if (i == 0 || i == na || sessions[i].model != sessions[i - 1].model)
			add_usage(&sessions[i], i < na ? a : b);
	}
	if (!d->request.query.no_inline)
		add_known(d, m, sessions, a, b);
	if (!knows[0] || d->request.query.no_inline)
		add_likely(d, m, sessions, 0, b, a);
	if (!knows[1] || d->request.query.no_inline)
		add_likely(d, m, sessions, 1, a, b);
	if (d->inlinings.n)
		qsort(d->inlinings.v, d->inlinings.n, sizeof *d->inlinings.v, heaviest_first);
	return d->inlinings.n > 0;
}
