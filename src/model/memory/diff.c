/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Amounts of two sessions of memory side by side: see diff.h. */
#include "model/memory/diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/diff/diff_priv.h"

static uint64_t whole(double amount)
{
	if (!(amount > 0))
		return 0;
	return amount < 0x1p63 ? (uint64_t)llround(amount) : INT64_MAX;
}

static const struct as_share *share_of(const struct as_diff_session *s, size_t name)
{
	static const struct as_share none;

	return name < s->shares.n && s->shares.v[name].samples ? &s->shares.v[name] : &none;
}

static uint64_t distance(const struct as_heap_diff_row *r)
{
	return r->a > r->b ? r->a - r->b : r->b - r->a;
}

static int by_distance(const void *pa, const void *pb)
{
	const struct as_heap_diff_row *a = pa, *b = pb;

	if (distance(a) != distance(b))
		return distance(a) < distance(b) ? 1 : -1;
	if (a->b != b->b)
		return a->b < b->b ? 1 : -1;
	return strcmp(a->row.full_name, b->row.full_name);
}

static void make_rows(struct as_heap_diff *d, const struct as_diff_match *match,
		      const struct as_diff_session side[2])
{
	for (size_t i = 0; i < match->names.n; i++) {
		const struct as_share *a = share_of(&side[0], i), *b = share_of(&side[1], i);
		struct as_heap_diff_row r = {.row = match->names.v[i].row,
					     .a = whole(a->value * side[0].weight),
					     .b = whole(b->value * side[1].weight),
					     .in_a = a->samples > 0,
					     .in_b = b->samples > 0};

		if (!r.a && !r.b)
			continue;
		d->same += r.a == r.b;
		as_vec_push(&d->rows, r);
	}
	if (d->rows.n)
		qsort(d->rows.v, d->rows.n, sizeof *d->rows.v, by_distance);
	d->a = whole(side[0].weight);
	d->b = whole(side[1].weight);
}

int as_heap_diff_make(const struct as_heap_diff_request *q, struct as_heap_diff **ret,
		      struct as_error *err)
{
	struct as_heap_diff *d;
	struct as_diff_session side[2] = {{.model = q->a}, {.model = q->b}};
	struct as_diff_match match;
	int r = AS_OK;

	if (q->a->measure != q->b->measure)
		return as_fail(err, AS_E_USAGE, 0,
			       "sessions of memory and of time cannot be compared");
	d = as_xcalloc(1, sizeof *d);
	d->request = *q;
	match = (struct as_diff_match){.arena = &d->arena};
	as_diff_match_modules(&match, side, 2);
	for (int i = 0; i < 2 && r == AS_OK; i++)
		r = as_diff_match_add(&match, &q->query, q->total, &side[i], err);
	if (r == AS_OK)
		make_rows(d, &match, side);
	for (int i = 0; i < 2; i++)
		as_diff_session_clear(&side[i]);
	as_diff_match_clear(&match);
	if (r < 0)
		as_heap_diff_free(d);
	else
		*ret = d;
	return r;
}

void as_heap_diff_free(struct as_heap_diff *d)
{
	if (!d)
		return;
	as_vec_clear(&d->rows);
	as_arena_clear(&d->arena);
	free(d);
}
