/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What there is, what is asked for, and in which order it is measured: see suite.h. */
#include "bench/suite.h"

#include <math.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/nearest.h"
#include "base/folder.h"
#include "base/sys.h"
#include "bench/suite_priv.h"

#define PROGRAM_MAX  ((size_t)1 << 30)
#define LIST_S       60
#define EACH_S       1.0 /* of one side */
#define EACH_PAIR_S  2.0
#define MORE_S       10.0 /* for one that the first look left open */
#define MORE_MEAN_S  3.0  /* of all benchmarks, where no budget is given */
#define FIRST_SHARE  0.6  /* of a budget, for the first look at each */
#define FIRST_ALPHA  0.03 /* of 0.05; the second look has the rest */
#define SECOND_ALPHA 0.02
#define LEAST_S      0.05
#define KNOWN_WELL   0.01 /* relative half-width */
#define LISTED       12

double as_suite_elapsed(const struct as_suite *s)
{
	return (double)(as_now_ns() - s->began_ns) / 1e9;
}

uint64_t as_suite_random(struct as_suite *s)
{
	s->random += 0x9e3779b97f4a7c15ull;
	return as_mix64(s->random) | 1;
}

static bool is_interrupted(const struct as_suite *s)
{
	return s->q->interrupted && *s->q->interrupted;
}

static double left(const struct as_suite *s)
{
	return s->q->budget_s > 0 ? s->q->budget_s - as_suite_elapsed(s) : INFINITY;
}

/* ---- what there is ---- */

static void program_failed(struct as_suite *s, const struct as_suite_state *t, int side,
			   const char *why)
{
	as_bench_note(&s->result->set.notes, "failed", "%s%s%s%s: %s", t->target->name,
		      s->q->sides > 1 ? " (" : "", s->q->sides > 1 ? s->q->labels[side] : "",
		      s->q->sides > 1 ? ")" : "", why);
	s->result->failed++;
}

static struct as_suite_item *find_item(struct as_suite *s, const struct as_suite_state *t,
				       const char *id)
{
	as_vec_foreach (i, &s->items) {
		if (i->state == t && strcmp(i->id, id) == 0)
			return i;
	}
	return NULL;
}

static void add_id(struct as_suite *s, struct as_suite_state *t, int side, const char *id)
{
	struct as_suite_item *item = find_item(s, t, id);

	if (!item) {
		as_vec_push(&s->items,
			    (struct as_suite_item){.state = t, .id = as_xstrdup(id)});
		item = &s->items.v[s->items.n - 1];
	}
	item->on[side] = true;
}

static int list_ours(struct as_suite *s, struct as_suite_state *t, int side,
		     struct as_error *err)
{
	static char bench[] = "--bench";
	const struct as_suite_program *p = &t->target->side[side];
	char *argv[] = {(char *)p->exe, bench, NULL};
	struct as_fn_side asked = {
		.exe = p->exe, .argv = argv, .env = p->environment, .folder = p->folder};
	struct as_fn_list list = {0};
	int r = as_fn_list(&asked, LIST_S, &list, err);

	for (size_t i = 0; r == AS_OK && i < list.v.n; i++)
		add_id(s, t, side, list.v.v[i].id);
	as_fn_list_clear(&list);
	return r;
}

static int list_foreign(struct as_suite *s, struct as_suite_state *t, int side,
			struct as_error *err)
{
	struct as_foreign *f = &t->foreign[side];
	const struct as_suite_program *p = &t->target->side[side];
	struct as_foreign_ids ids = {0};
	int r;

	*f = (struct as_foreign){.exe = p->exe,
				 .folder = p->folder,
				 .environment = p->environment,
				 .interrupted = s->q->interrupted,
				 .home = as_xasprintf("%s/home.%zu.%d", s->q->folder,
						      (size_t)(t - s->states), side)};
	r = as_foreign_list(f, &ids, err);
	for (size_t i = 0; r == AS_OK && i < ids.v.n; i++)
		add_id(s, t, side, ids.v.v[i]);
	if (r == AS_OK && !ids.v.n && t->target->is_bench && f->kind == AS_FOREIGN_LIBTEST)
		as_bench_note(&s->result->set.notes, "no-benchmarks",
			      "%s has no #[bench] function; one of criterion's or ours needs "
			      "'harness = false' in Cargo.toml",
			      t->target->name);
	as_foreign_ids_clear(&ids);
	return r;
}

/* Programs of both sides that are measured differently cannot be compared. */
static bool same_harness(struct as_suite_state *t, const bool ours[2])
{
	if (!t->target->side[0].exe || !t->target->side[1].exe)
		return true;
	if (ours[0] != ours[1])
		return false;
	return ours[0] || t->foreign[0].kind == t->foreign[1].kind ||
	       t->foreign[0].kind == AS_FOREIGN_UNKNOWN ||
	       t->foreign[1].kind == AS_FOREIGN_UNKNOWN;
}

static int list_target(struct as_suite *s, struct as_suite_state *t, struct as_error *err)
{
	bool ours[2] = {false, false};

	for (int k = 0; k < (int)s->q->sides; k++) {
		struct as_error why = {0};
		int r;

		if (!t->target->side[k].exe)
			continue;
		ours[k] = t->ours = as_fn_is_program(t->target->side[k].exe);
		r = ours[k] ? list_ours(s, t, k, &why) : list_foreign(s, t, k, &why);
		if (r == AS_E_CANCELLED || is_interrupted(s))
			return as_fail(err, AS_E_CANCELLED, 0, "interrupted");
		if (r < 0)
			program_failed(s, t, k, why.msg);
	}
	if (!same_harness(t, ours)) {
		program_failed(s, t, 1,
			       "its harness is another one than before: nothing is compared");
		as_vec_foreach (i, &s->items) {
			if (i->state == t)
				i->on[0] = i->on[1] = false;
		}
	}
	return AS_OK;
}

/* ---- what is asked for ---- */

static int compile_filter(const struct as_suite *s, regex_t *ret, struct as_error *err)
{
	char why[120];
	int e = regcomp(ret, s->q->filter, REG_EXTENDED | REG_NOSUB);

	if (!e)
		return AS_OK;
	(void)regerror(e, ret, why, sizeof why);
	return as_fail(err, AS_E_USAGE, 0, "'%s' is no regular expression: %s", s->q->filter,
		       why);
}

static void drop_item(struct as_suite *s, size_t i)
{
	as_suite_item_reset(&s->items.v[i]);
	free(s->items.v[i].id);
	memmove(&s->items.v[i], &s->items.v[i + 1], (--s->items.n - i) * sizeof *s->items.v);
}

static int none_left(const struct as_suite *s, const struct as_suite_item *all, size_t n,
		     struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};
	AS_VEC(const char *) names = {0};
	const char *near;

	for (size_t i = 0; i < n; i++) {
		as_vec_push(&names, all[i].id);
		if (i < LISTED)
			as_buf_addf(&text, "\n  %s", all[i].id);
	}
	if (n > LISTED)
		as_buf_addf(&text, "\n  … and %zu more", n - LISTED);
	near = as_nearest(s->q->filter, names.v, names.n);
	as_vec_clear(&names);
	return as_fail(err, AS_E_NOTFOUND, 0, "no benchmark matches '%s'%s%s%s; there %s%s",
		       s->q->filter, near ? "; did you mean '" : "", near ? near : "",
		       near ? "'?" : "", n == 1 ? "is" : "are", as_buf_str(&text));
}

static int apply_filter(struct as_suite *s, struct as_error *err)
{
	bool any = false;
	regex_t re;
	int r;

	if (!s->q->filter || !s->items.n)
		return AS_OK;
	r = s->q->exact ? AS_OK : compile_filter(s, &re, err);
	if (r < 0)
		return r;
	AS_CLEANUP(as_free_autop) bool *keep = as_xcalloc(s->items.n, sizeof *keep);

	for (size_t i = 0; i < s->items.n; i++) {
		keep[i] = s->q->exact ? strcmp(s->items.v[i].id, s->q->filter) == 0
				      : regexec(&re, s->items.v[i].id, 0, NULL, 0) == 0;
		any |= keep[i];
	}
	if (!s->q->exact)
		regfree(&re);
	if (!any)
		return none_left(s, s->items.v, s->items.n, err);
	for (size_t i = s->items.n; i-- > 0;) {
		if (!keep[i])
			drop_item(s, i);
	}
	return AS_OK;
}

/* Of two sides: what one only has is told and not measured. */
static void part_sides(struct as_suite *s)
{
	for (size_t i = s->items.n; s->q->sides > 1 && i-- > 0;) {
		const struct as_suite_item *item = &s->items.v[i];

		if (item->on[0] && item->on[1])
			continue;
		if (item->on[1])
			as_vec_push(&s->result->added, as_xstrdup(item->id));
		else if (item->on[0])
			as_vec_push(&s->result->removed, as_xstrdup(item->id));
		drop_item(s, i);
	}
}

static void make_list(struct as_suite *s)
{
	as_vec_foreach (i, &s->items)
		as_vec_push(&s->result->ids, as_xstrdup(i->id));
}

static int nothing(const struct as_suite *s, struct as_error *err)
{
	const struct as_suite_result *r = s->result;
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};

	for (size_t i = 0; i < r->set.notes.n && i < LISTED; i++)
		as_buf_addf(&text, "\n  %s", r->set.notes.v[i].text);
	if (r->added.n || r->removed.n)
		return as_fail(
			err, AS_E_NOTFOUND, 0,
			"the two sides have no benchmark in common: %zu only in %s, %zu only "
			"in %s%s",
			r->removed.n, s->q->labels[0], r->added.n, s->q->labels[1],
			as_buf_str(&text));
	if (!s->q->ntargets)
		return as_fail(err, AS_E_NOTFOUND, 0, "there are no bench programs");
	return as_fail(err, AS_E_NOTFOUND, 0, "no benchmarks in %s%s%s", s->q->targets[0].name,
		       s->q->ntargets > 1 ? " …" : "", as_buf_str(&text));
}

/* ---- measuring ---- */

static void tell(const struct as_suite *s, size_t done, const char *about)
{
	if (s->q->progress)
		s->q->progress(s->q->progress_ctx, done, s->items.n, about);
}

static void copy_programs(struct as_suite *s, struct as_suite_state *t)
{
	struct as_fn_side sides[2];

	if (s->q->sides < 2 || !t->ours || t->has_copies || t->copies.folder)
		return;
	for (int k = 0; k < 2; k++)
		sides[k] = (struct as_fn_side){.exe = t->target->side[k].exe,
					       .env = t->target->side[k].environment,
					       .folder = t->target->side[k].folder};
	/* Where that fails the driver copies, or says why it does not. */
	t->has_copies = as_fn_copy(sides, as_suite_random(s), &t->copies, NULL) == AS_OK;
}

static double first_budget(const struct as_suite *s, size_t i)
{
	const struct as_suite_request *q = s->q;
	double usual = q->each_s > 0 ? q->each_s : q->sides > 1 ? EACH_PAIR_S : EACH_S;

	if (!(q->budget_s > 0))
		return usual;
	return AS_MAX(LEAST_S, AS_MIN(usual, (FIRST_SHARE * q->budget_s - as_suite_elapsed(s)) /
						     (double)(s->items.n - i)));
}

static int first_look(struct as_suite *s, struct as_error *err)
{
	int r = AS_OK;

	for (size_t i = 0; i < s->items.n && r == AS_OK; i++) {
		struct as_suite_item *item = &s->items.v[i];

		if (is_interrupted(s) || left(s) <= 0)
			break;
		tell(s, i, item->id);
		copy_programs(s, item->state);
		r = as_suite_measure(s, item,
				     AS_MIN(first_budget(s, i), AS_MAX(left(s), LEAST_S)),
				     s->q->sides > 1 ? FIRST_ALPHA : 0.05, err);
	}
	return r;
}

/* How much it wants more, in seconds; 0: nothing. */
static double wanted(const struct as_suite *s, const struct as_suite_item *item)
{
	if (!item->measured || item->failed)
		return 0;
	if (s->q->sides < 2)
		return s->q->budget_s > 0 && item->relative > KNOWN_WELL ? EACH_S : 0;
	if (item->comparison.verdict != AS_BENCH_UNDECIDED)
		return 0;
	return item->comparison.seconds_needed > 0
		       ? item->comparison.seconds + 1.3 * item->comparison.seconds_needed
		       : MORE_S;
}

/* The one to be looked at again: the cheapest that can be decided; of one side the least known. */
static struct as_suite_item *next_item(struct as_suite *s, const bool *done, double *ret_s)
{
	struct as_suite_item *best = NULL;
	double score = INFINITY;

	for (size_t i = 0; i < s->items.n; i++) {
		struct as_suite_item *item = &s->items.v[i];
		double s_wanted = done[i] ? 0 : wanted(s, item);
		double mine = s->q->sides > 1 ? s_wanted : -item->relative;

		if (!(s_wanted > 0) || !(mine < score))
			continue;
		best = item;
		score = mine;
		*ret_s = s_wanted;
	}
	return best;
}

static int second_look(struct as_suite *s, struct as_error *err)
{
	AS_CLEANUP(as_free_autop) bool *done = as_xcalloc(s->items.n + 1, sizeof *done);
	double allowed = s->q->each_s > 0     ? 0
			 : s->q->budget_s > 0 ? INFINITY
					      : MORE_MEAN_S * (double)s->items.n + MORE_S;
	struct as_suite_item *item;
	double seconds = 0;
	int r = AS_OK;

	while (r == AS_OK && !is_interrupted(s) && (item = next_item(s, done, &seconds))) {
		double most = s->q->budget_s > 0 ? left(s) : AS_MIN(MORE_S, allowed);

		done[item - s->items.v] = true;
		if (most < 2 * LEAST_S)
			break;
		/* It could not be decided: the time is another's, unless there is no other. */
		if (seconds > most && s->q->budget_s > 0 && s->q->sides > 1 &&
		    next_item(s, done, &(double){0}))
			continue;
		seconds = AS_MIN(seconds, most);
		tell(s, s->items.n, item->id);
		allowed -= seconds;
		r = as_suite_measure(s, item, seconds, s->q->sides > 1 ? SECOND_ALPHA : 0.05,
				     err);
	}
	return r;
}

static int layouts(struct as_suite *s, struct as_error *err)
{
	int r = AS_OK;

	for (size_t i = 0; i < s->items.n && r == AS_OK && s->q->sides > 1; i++) {
		struct as_suite_item *item = &s->items.v[i];
		enum as_bench_verdict v = item->comparison.verdict;

		if (!item->measured || item->failed || is_interrupted(s) ||
		    (v != AS_BENCH_SLOWER && v != AS_BENCH_FASTER))
			continue;
		tell(s, s->items.n, item->id);
		r = as_suite_check_layout(s, item, AS_MIN(left(s), MORE_S), err);
	}
	return r;
}

/* ---- results ---- */

static bool is_twice(const struct as_suite *s, const struct as_suite_item *item)
{
	size_t n = 0;

	as_vec_foreach (i, &s->items)
		n += strcmp(i->id, item->id) == 0;
	return n > 1;
}

static void rename_to(char **name, const char *target)
{
	char *whole = as_xasprintf("%s: %s", target, *name ? *name : "");

	free(*name);
	*name = whole;
}

static void note_harnesses(struct as_suite *s)
{
	static const char *const what[AS_FOREIGN_KINDS_] = {
		[AS_FOREIGN_CRITERION] = "the low quartile of its samples",
		[AS_FOREIGN_LIBTEST] = "what libtest prints"};
	bool seen[AS_FOREIGN_KINDS_] = {false};

	as_vec_foreach (item, &s->items) {
		enum as_foreign_kind kind = item->state->foreign[0].kind;

		if (!item->measured || item->state->ours || seen[kind])
			continue;
		seen[kind] = true;
		as_bench_note(&s->result->set.notes, "harness",
			      "%s: each process says one value, %s", as_foreign_names[kind],
			      what[kind]);
	}
}

static void hand_over(struct as_suite *s)
{
	struct as_suite_result *r = s->result;
	size_t unmeasured = 0;

	note_harnesses(s);
	as_vec_foreach (item, &s->items) {
		bool twice = is_twice(s, item);
		uint64_t iterations = item->measured ? item->bench[0].iterations : 0;

		if (!item->measured) {
			unmeasured++;
			continue;
		}
		if (item->failed) {
			as_bench_note(&r->set.notes, "failed", "%s: %s", item->id,
				      item->failed);
			r->failed++;
		}
		for (unsigned k = 0; k < s->q->sides; k++) {
			if (twice)
				rename_to(&item->bench[k].name, item->state->target->name);
			if (item->bench[k].samples.n || !item->failed)
				as_vec_push(&r->set.benches, item->bench[k]);
			else
				as_bench_clear(&item->bench[k]);
		}
		for (unsigned k = s->q->sides; k < 2; k++)
			as_bench_clear(&item->bench[k]);
		if (twice && s->q->sides > 1)
			rename_to(&item->comparison.name, item->state->target->name);
		if (s->q->sides > 1 && item->comparison.d.n)
			as_vec_push(&r->places,
				    (struct as_suite_place){as_xstrdup(item->comparison.name),
							    as_xstrdup(item->id),
							    (size_t)(item->state - s->states),
							    iterations});
		if (s->q->sides > 1 && item->comparison.d.n)
			as_vec_push(&r->set.comparisons, item->comparison);
		else
			as_bench_comparison_clear(&item->comparison);
		item->measured = false;
	}
	if (unmeasured)
		as_bench_note(&r->set.notes, "not-measured",
			      "%zu of %zu benchmarks were not measured: %s", unmeasured,
			      s->items.n,
			      r->interrupted ? "interrupted" : "the budget was used up");
	r->benches = s->items.n;
	r->set.seconds = as_suite_elapsed(s);
}

static void clear_state(struct as_suite_state *t)
{
	as_layout_pair_clear(&t->pair);
	for (int k = 0; k < 2; k++) {
		if (t->foreign[k].home)
			as_folder_remove(t->foreign[k].home);
		free((char *)t->foreign[k].home);
	}
	if (t->has_copies)
		as_fn_copies_clear(&t->copies);
}

static void clear_suite(struct as_suite *s)
{
	while (s->items.n)
		drop_item(s, s->items.n - 1);
	as_vec_clear(&s->items);
	for (size_t i = 0; i < s->q->ntargets; i++)
		clear_state(&s->states[i]);
	free(s->states);
}

int as_suite_run(const struct as_suite_request *q, struct as_suite_result *ret,
		 struct as_error *err)
{
	struct as_suite s = {.q = q,
			     .result = ret,
			     .states = as_xcalloc(q->ntargets + 1, sizeof *s.states),
			     .began_ns = as_now_ns(),
			     .random = q->seed ? q->seed : as_now_ns()};
	int r = AS_OK;

	*ret = (struct as_suite_result){0};
	for (size_t i = 0; i < q->ntargets && r == AS_OK; i++) {
		s.states[i].target = &q->targets[i];
		r = list_target(&s, &s.states[i], err);
	}
	if (r == AS_OK)
		r = apply_filter(&s, err);
	if (r == AS_OK)
		part_sides(&s);
	if (r == AS_OK && !s.items.n)
		r = nothing(&s, err);
	if (r == AS_OK && q->list) {
		make_list(&s);
	} else if (r == AS_OK) {
		s.began_ns = as_now_ns();
		r = first_look(&s, err);
		if (r == AS_OK)
			r = second_look(&s, err);
		if (r == AS_OK)
			r = layouts(&s, err);
		ret->interrupted = is_interrupted(&s) || r == AS_E_CANCELLED;
		if (ret->interrupted)
			r = AS_OK; /* what there is stays */
		hand_over(&s);
	}
	clear_suite(&s);
	return r;
}

static void clear_texts(char **v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(v[i]);
	free(v);
}

void as_suite_result_clear(struct as_suite_result *r)
{
	as_bench_set_clear(&r->set);
	as_vec_foreach (p, &r->places) {
		free(p->name);
		free(p->id);
	}
	as_vec_clear(&r->places);
	clear_texts(r->ids.v, r->ids.n);
	clear_texts(r->added.v, r->added.n);
	clear_texts(r->removed.v, r->removed.n);
	*r = (struct as_suite_result){0};
}
