/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A verdict taken to other links of both programs: see layout.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "bench/layout.h"

#define LAYOUTS      8 /* pairs of links at first */
#define LAYOUTS_MOST 32
#define ALPHA        0.02 /* of each look: 8, 16, 32 */
#define PERCENT(x)   (100 * (exp(x) - 1))
#define BEYOND_ANY   0.5 /* ln; farther than layouts were seen to reach (0.31) */
#define NOTED        0.3 /* below it one link per side is worth a word */

struct values {
	double *v;
	size_t n, cap, tried;
	uint64_t began_ns;
};

static bool is_interrupted(const struct as_layout_check *q)
{
	return q->interrupted && *q->interrupted;
}

void as_layout_pair_clear(struct as_layout_pair *p)
{
	for (int k = 0; k < 2; k++) {
		for (size_t i = 0; i < p->links[k].n; i++) {
			(void)unlink(p->links[k].v[i]);
			free(p->links[k].v[i]);
		}
		as_vec_clear(&p->links[k]);
		as_layout_kit_free(p->kit[k]);
		p->kit[k] = NULL;
	}
	free(p->path);
	p->path = NULL;
}

/* ---- links ---- */

static bool has_kits(struct as_layout_pair *p)
{
	for (int k = 0; k < 2 && !p->kits_sought; k++) {
		if (p->watch[k])
			p->kit[k] = as_layout_find(p->watch[k], p->exe[k]);
	}
	p->kits_sought = true;
	return p->kit[0] && p->kit[1];
}

static bool has_same_code(struct as_layout_pair *p)
{
	if (!p->same_code_known &&
	    as_layout_same_code(p->exe[0], p->exe[1], &p->same_code, NULL) < 0)
		p->same_code = false; /* cannot be read: nothing is claimed */
	p->same_code_known = true;
	return p->same_code;
}

/* Links of number n (from 1 on) of both sides; the order is drawn, as for copies. */
static bool make_links(const struct as_layout_check *q, size_t n, struct as_error *why)
{
	struct as_layout_pair *p = q->pair;
	int first = (int)(as_now_ns() >> 10 & 1);

	if (p->links[0].n >= n && p->links[1].n >= n)
		return true;
	for (int k = 0; k < 2; k++) {
		int side = k ? !first : first;
		char *path = as_xasprintf("%s.%d.%02zu", p->path, side, n);

		if (as_layout_relink(p->kit[side], n, path, why) < 0) {
			free(path);
			return false;
		}
		as_vec_push(&p->links[side], path);
	}
	return true;
}

/* ---- what is said ---- */

static void set_ratio(struct as_bench_comparison *c, const struct as_trimmed *t)
{
	c->ratio = (struct as_bench_estimate){exp(t->value), exp(t->lo), exp(t->hi)};
}

/* One link per side: below AS_LAYOUT_BEYOND nothing is claimed. */
static void caveat(struct as_bench_comparison *c, const char *why)
{
	double size = fabs(log(c->ratio.value));

	if (size < AS_LAYOUT_BEYOND) {
		c->verdict = AS_BENCH_UNDECIDED;
		c->seconds_needed = NAN;
	}
	if (size < NOTED)
		as_bench_note(&c->notes, "layout", "%s: it may be where the code lies", why);
}

static void conclude(struct as_bench_comparison *c, enum as_bench_verdict v, size_t n,
		     const struct as_trimmed *t)
{
	double as_built = PERCENT(log(c->ratio.value));
	AS_CLEANUP(as_free_autop)
	char *text = as_xasprintf(
		"as built %+.1f %%, over %zu links of both %+.1f %% [%+.1f, %+.1f]", as_built,
		n, PERCENT(t->value), PERCENT(t->lo), PERCENT(t->hi));

	if (v == AS_BENCH_MOVED)
		as_bench_note(&c->notes, "layout", "%s: it is where the code lies", text);
	else if (v == AS_BENCH_UNDECIDED)
		as_bench_note(&c->notes, "layout", "%s: more links would tell (--layouts %zu)",
			      text, AS_MIN(2 * n, (size_t)64));
	else
		as_bench_note(&c->notes, "layout", "%s", text);
	c->verdict = v;
	if (v == AS_BENCH_UNDECIDED)
		c->seconds_needed = NAN;
	set_ratio(c, t);
}

/* false: a link failed */
static bool compare_until(const struct as_layout_check *q, size_t aim, size_t least,
			  struct values *u, struct as_error *why)
{
	while (u->tried < aim && !is_interrupted(q)) {
		double value;

		if (u->n >= least && (double)(as_now_ns() - u->began_ns) / 1e9 > q->budget_s)
			return true;
		if (!make_links(q, u->tried + 1, why))
			return false;
		value = q->compare(q->ctx,
				   (const char *const[2]){q->pair->links[0].v[u->tried],
							  q->pair->links[1].v[u->tried]});
		u->tried++;
		if (!isnan(value))
			as_vec_push(u, value);
	}
	return true;
}

static int over_links(const struct as_layout_check *q, struct as_bench_comparison *c,
		      struct as_error *err)
{
	size_t first = q->layouts ? q->layouts : LAYOUTS;
	size_t most = q->layouts ? q->layouts : LAYOUTS_MOST;
	enum as_bench_verdict v = AS_BENCH_UNDECIDED;
	struct values u = {.began_ns = as_now_ns()};
	struct as_trimmed t = {0};
	struct as_error why = {0};
	bool linked = true;

	for (size_t aim = first; aim <= most && v == AS_BENCH_UNDECIDED && linked; aim *= 2) {
		linked = compare_until(q, aim, first, &u, &why);
		v = as_layout_judge(u.v, u.n, log(c->ratio.value), c->delta,
				    q->layouts ? 0.05 : ALPHA, &t);
		if (u.tried < aim)
			break;
	}
	if (!is_interrupted(q) && !linked && u.n < first)
		caveat(c, "a second link failed");
	else if (!is_interrupted(q) && u.n < 3)
		caveat(c, "other links could not be measured");
	else if (!is_interrupted(q))
		conclude(c, v, u.n, &t);
	as_vec_clear(&u);
	return is_interrupted(q) ? as_fail(err, AS_E_CANCELLED, 0, "interrupted") : AS_OK;
}

int as_layout_check(const struct as_layout_check *q, struct as_bench_comparison *c,
		    struct as_error *err)
{
	double size = fabs(log(c->ratio.value));
	bool can = q->compare && q->layouts != 1 && has_kits(q->pair);

	if (c->verdict != AS_BENCH_SLOWER && c->verdict != AS_BENCH_FASTER)
		return AS_OK;
	if (has_same_code(q->pair)) {
		c->verdict = AS_BENCH_MOVED;
		as_bench_note(
			&c->notes, "layout",
			"code and data of both programs are the same: it is where they lie");
		return AS_OK;
	}
	if (can && size < BEYOND_ANY)
		return over_links(q, c, err);
	if (!can)
		caveat(c, q->layouts == 1 || !q->compare
				  ? "one link per side"
				  : "one link per side, and how it was linked is not known");
	return AS_OK;
}
