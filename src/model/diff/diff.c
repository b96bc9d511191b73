/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A comparison from start to end: see diff.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/diff/diff_priv.h"
#include "stats/interval.h"

#define INLINED_MIN 0.02 /* of a program's own weight: it has debug information with inlining */

struct making {
	struct as_diff *d;
	struct as_diff_match match;
	struct as_diff_session *sessions;
	struct as_diff_names names;
	size_t n;
};

const char *as_change_name(enum as_change c)
{
	static const char *const names[AS_CHANGE_COUNT_] = {"undecided", "equal", "up", "down"};

	return (unsigned)c < AS_CHANGE_COUNT_ ? names[c] : "undecided";
}

/* Inlined functions are compared only where both sides know theirs. */
static void settle_inlining(struct making *k, bool knows[2])
{
	struct as_diff *d = k->d;
	double inlined[2] = {0};

	for (size_t i = 0; i < k->n; i++) {
		int side = i >= d->runs[0];
		double share;

		knows[side] |= as_diff_knows_inlines(k->sessions[i].model, &share);
		inlined[side] = AS_MAX(inlined[side], share);
	}
	for (int side = 0; side < 2; side++) {
		if (!knows[side] && inlined[!side] >= INLINED_MIN) {
			d->lacks_inlines = side + 1;
			d->request.query.no_inline = true;
		}
	}
}

/* 1: legacy names, 2: v0 names of the program's own Rust functions; 3: both; 0: neither. */
static int mangling_of(const struct as_model *m)
{
	int r = 0;

	as_vec_foreach (f, &m->functions) {
		size_t n = strlen(f->linkage);

		if (strcmp(f->crate, "std") == 0 || strcmp(f->crate, "core") == 0 ||
		    strcmp(f->crate, "alloc") == 0)
			continue;
		if (strncmp(f->linkage, "_R", 2) == 0)
			r |= 2;
		else if (strncmp(f->linkage, "_ZN", 3) == 0 && n > 20 &&
			 strncmp(f->linkage + n - 20, "17h", 3) == 0)
			r |= 1;
	}
	return r;
}

static bool manglings_differ(const struct making *k)
{
	int side[2] = {0};

	for (size_t i = 0; i < k->n; i++)
		side[i >= k->d->runs[0]] |= mangling_of(k->sessions[i].model);
	return (side[0] | side[1]) == 3 && side[0] != side[1];
}

static int match(struct making *k, struct as_error *err)
{
	const struct as_diff_request *q = &k->d->request;

	for (size_t i = 0; i < k->n; i++) {
		int r = as_diff_match_add(&k->match, &q->query, q->total, &k->sessions[i], err);

		if (r < 0)
			return r;
	}
	return AS_OK;
}

/*
 * What runs differ by is learned from functions, whatever rows are: crates and threads are too few.
 * ret_n: functions, that selfs of the sessions are of from here on.
 */
static int learn_from_functions(struct making *k, size_t *ret_n, struct as_error *err)
{
	struct as_diff_match m = {.arena = &k->d->arena, .loose = k->match.loose};
	struct as_query q = k->d->request.query;
	int r = AS_OK;

	*ret_n = k->match.names.n;
	if (q.by == AS_BY_FUNCTION)
		return AS_OK;
	q.by = AS_BY_FUNCTION;
	for (size_t i = 0; i < k->n && r == AS_OK; i++) {
		struct as_diff_session *s = &k->sessions[i],
				       f = {.model = s->model, .trial = s->trial};

		r = as_diff_match_add(&m, &q, false, &f, err);
		if (r == AS_OK) {
			as_vec_clear(&s->selfs);
			memcpy(&s->selfs, &f.selfs, sizeof s->selfs);
			memset(&f.selfs, 0, sizeof f.selfs);
		}
		as_diff_session_clear(&f);
	}
	*ret_n = m.names.n;
	as_diff_match_clear(&m);
	return r;
}

static int run(struct making *k, struct as_error *err)
{
	size_t functions = 0;
	struct as_diff *d = k->d;
	bool knows[2] = {false, false};
	int r;

	settle_inlining(k, knows);
	k->match.loose = manglings_differ(k);
	as_diff_match_modules(&k->match, k->sessions, k->n);
	r = match(k, err);
	if (r == AS_OK && d->request.query.by == AS_BY_FUNCTION &&
	    as_diff_find_inlinings(d, &k->match, k->sessions, knows))
		r = match(k, err);
	if (r == AS_OK && d->request.tree)
		r = as_diff_make_tree(d, &k->match, k->sessions, &k->names, err);
	if (r == AS_OK)
		r = learn_from_functions(k, &functions, err);
	if (r < 0)
		return r;
	if (!d->request.tree) {
		as_vec_reserve(&k->names, k->match.names.n);
		as_vec_foreach (n, &k->match.names)
			as_vec_push(&k->names, n->row);
	}
	as_diff_judge(d, k->sessions, &k->names, functions);
	for (uint32_t i = 0; i < d->rows.n && d->request.tree; i++)
		d->nodes.v[d->rows.v[i].name_index].row = i;
	d->cpu_a_s = as_diff_cpu_s(k->sessions, d->runs[0]);
	d->cpu_b_s = as_diff_cpu_s(k->sessions + d->runs[0], d->runs[1]);
	return AS_OK;
}

static void add_runs(struct making *k, const struct as_model *m, size_t *runs)
{
	const struct as_query *q = &k->d->request.query;
	bool several = m->trials.n > 1 && !q->from_ns && !q->to_ns;

	for (size_t i = 0; i < (several ? m->trials.n : 1); i++) {
		if (k->sessions)
			k->sessions[k->n] = (struct as_diff_session){
				.model = m, .trial = several ? &m->trials.v[i] : NULL};
		k->n++;
		++*runs;
	}
}

/* Counted first, then filled. */
static void find_runs(struct making *k)
{
	struct as_diff *d = k->d;

	for (int pass = 0; pass < 2; pass++) {
		if (pass)
			k->sessions = as_xcalloc(k->n + 1, sizeof *k->sessions);
		k->n = d->runs[0] = d->runs[1] = 0;
		for (size_t i = 0; i < d->request.na; i++)
			add_runs(k, d->request.a[i], &d->runs[0]);
		for (size_t i = 0; i < d->request.nb; i++)
			add_runs(k, d->request.b[i], &d->runs[1]);
	}
}

int as_diff_make(const struct as_diff_request *q, struct as_diff **ret, struct as_error *err)
{
	struct as_diff *d = as_xcalloc(1, sizeof *d);
	struct making k = {.d = d, .match.arena = &d->arena};
	int r;

	if (q->tree && (q->query.by == AS_BY_THREAD || q->query.by == AS_BY_PROCESS)) {
		free(d);
		return as_fail(err, AS_E_USAGE, 0, "calls are of functions, not of threads");
	}
	d->request = *q;
	d->request.total |= q->tree;
	d->widened = 1;
	if (!(d->request.min_effect > 0))
		d->request.min_effect = AS_DIFF_MIN_EFFECT;
	if (!(d->request.level > 0))
		d->request.level = 1 - AS_CONFIDENCE;
	find_runs(&k);
	r = run(&k, err);
	for (size_t i = 0; i < k.n; i++)
		as_diff_session_clear(&k.sessions[i]);
	free(k.sessions);
	as_vec_clear(&k.names);
	as_diff_match_clear(&k.match);
	if (r < 0)
		as_diff_free(d);
	else
		*ret = d;
	return r;
}

void as_diff_free(struct as_diff *d)
{
	if (!d)
		return;
	as_vec_clear(&d->rows);
	as_vec_clear(&d->nodes);
	as_vec_clear(&d->inlinings);
	as_arena_clear(&d->arena);
	free(d);
}
