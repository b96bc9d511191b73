/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Flame graph layout: widths are conserved, deep stacks fold, thin boxes are counted. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "view/flame/flame.h"

/* A tree made by hand: add() keeps totals and sibling order by insertion. */
static uint32_t add(struct as_profile *p, uint32_t parent, uint32_t key, double self)
{
	uint32_t at = (uint32_t)p->nodes.n;

	as_vec_push(&p->nodes, (struct as_node){.key = key,
						.parent = parent,
						.first_child = AS_NONE,
						.next_sibling = AS_NONE,
						.self = self,
						.self_samples = (uint64_t)self,
						.low = NAN,
						.high = NAN});
	if (parent != AS_NONE) {
		p->nodes.v[at].depth = p->nodes.v[parent].depth + 1;
		struct as_node *nodes = p->nodes.v;
		uint32_t *link = &nodes[parent].first_child;

		while (*link != AS_NONE)
			link = &nodes[*link].next_sibling;
		*link = at;
	}
	for (uint32_t i = at; i != AS_NONE; i = p->nodes.v[i].parent) {
		p->nodes.v[i].total += self;
		p->nodes.v[i].total_samples += (uint64_t)self;
	}
	return at;
}

static void check(const struct as_flame *f)
{
	double *row = calloc(f->rows, sizeof *row);

	assert_true(f->rows <= AS_FLAME_DEPTH + AS_FLAME_TAIL + 2);
	assert_true(f->boxes.n <= AS_FLAME_BOXES + AS_FLAME_TAIL * 1000);
	as_vec_foreach (b, &f->boxes) {
		assert_true(b->depth < f->rows);
		assert_true(b->x >= -1e-9 && b->x + b->width <= 1 + 1e-9);
		assert_true(b->width > 0);
		row[b->depth] += b->width;
	}
	for (uint32_t i = 0; i < f->rows; i++)
		assert_true(row[i] <= 1 + 1e-6);
	assert_true(f->boxes.n == 0 || fabs(row[0] - 1) < 1e-9);
	free(row);
}

static void boxes_lie_inside_their_parents(void **state)
{
	struct as_profile p = {0};
	struct as_flame f;
	uint32_t root = add(&p, AS_NONE, AS_NONE, 0), a = add(&p, root, 1, 10);

	add(&p, a, 2, 60);
	add(&p, a, 3, 20);
	add(&p, root, 4, 10);
	as_flame_layout(&p, &f);
	check(&f);
	assert_int_equal(f.boxes.n, 5);
	assert_int_equal(f.rows, 3);
	as_vec_foreach (b, &f.boxes) {
		if (b->key == 1)
			assert_true(fabs(b->x) < 1e-9 && fabs(b->width - 0.9) < 1e-9);
		if (b->key == 3)
			assert_true(fabs(b->x - 0.6) < 1e-9 && fabs(b->width - 0.2) < 1e-9);
		if (b->key == 4)
			assert_true(fabs(b->x - 0.9) < 1e-9 && b->depth == 1);
	}
	as_flame_clear(&f);
	as_vec_clear(&p.nodes);
}

static void nothing_to_draw_is_no_crash(void **state)
{
	struct as_profile p = {0};
	struct as_flame f;

	as_flame_layout(&p, &f);
	check(&f);
	add(&p, AS_NONE, AS_NONE, 0);
	as_flame_layout(&p, &f);
	check(&f);
	assert_int_equal(f.boxes.n, 0);
	as_vec_clear(&p.nodes);
}

static void deep_recursion_folds_and_keeps_its_leaves(void **state)
{
	struct as_profile p = {0};
	struct as_flame f;
	uint32_t at = add(&p, AS_NONE, AS_NONE, 0);
	const struct as_box *folded = NULL;
	double leaf = 0;

	for (int i = 0; i < 20000; i++)
		at = add(&p, at, 7, i % 1000 == 999 ? 1 : 0);
	add(&p, at, 8, 80);
	as_flame_layout(&p, &f);
	check(&f);
	as_vec_foreach (b, &f.boxes) {
		if (b->folded)
			folded = b;
		if (b->key == 8)
			leaf += b->width;
	}
	assert_non_null(folded);
	assert_int_equal(folded->folded_key, 7);
	assert_in_range(folded->folded, 19500, 20001);
	assert_true(fabs(folded->width - 1) < 1e-9);
	assert_true(fabs(leaf - 0.8) < 1e-9); /* the hot end is still seen, whole */
	assert_true(f.boxes.n < 2000);
	as_flame_clear(&f);
	as_vec_clear(&p.nodes);
}

static void thin_boxes_are_counted_and_the_number_is_bounded(void **state)
{
	struct as_profile p = {0};
	struct as_flame f;
	uint32_t root = add(&p, AS_NONE, AS_NONE, 0), rest;

	add(&p, root, 1, 1e6);
	rest = add(&p, root, 2, 0);
	for (uint32_t i = 0; i < 500; i++)
		add(&p, rest, 3 + i, 1);
	as_flame_layout(&p, &f);
	check(&f);
	assert_int_equal(f.boxes.n, 3);
	assert_int_equal(f.hidden, 500);
	as_flame_clear(&f);
	as_vec_clear(&p.nodes);

	/* more boxes than are drawn at most, all wide enough for the eye: 200 rows of 300 */
	root = add(&p, AS_NONE, AS_NONE, 0);
	for (uint32_t i = 0; i < 300; i++) {
		uint32_t at = root;

		for (uint32_t d = 0; d < 150; d++)
			at = add(&p, at, i * 200 + d, d == 149 ? 1 + i : 0);
	}
	as_flame_layout(&p, &f);
	check(&f);
	assert_true(f.boxes.n <= AS_FLAME_BOXES);
	assert_true(f.boxes.n > AS_FLAME_BOXES / 2);
	assert_true(f.hidden > 0);
	as_flame_clear(&f);
	as_vec_clear(&p.nodes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(boxes_lie_inside_their_parents),
		cmocka_unit_test(nothing_to_draw_is_no_crash),
		cmocka_unit_test(deep_recursion_folds_and_keeps_its_leaves),
		cmocka_unit_test(thin_boxes_are_counted_and_the_number_is_bounded),
	};

	return cmocka_run_group_tests_name("flame", tests, NULL, NULL);
}
