/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The mark, on memories made by hand: the cases of memcheck's manual, layouts that are known, graphs at
 * random against a plain search, and what is large, deep, circular or cannot be read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "heap/leak.h"

#define BASE  0x7f0000000000ull
#define ROOTS 0x555500000000ull /* a page of roots */
#define CODE  0x400000ull
#define DATA  0x500000ull
enum { PAGE = 4096, WORDS = PAGE / 8 };

struct memory {
	uint8_t *heap;
	size_t bytes;
	uint64_t roots[WORDS];
	uint64_t data[WORDS];       /* of a module */
	uint64_t bad_low, bad_high; /* cannot be read */
	uint64_t reads;
};

static const void *place(const struct memory *m, uint64_t low, uint64_t n)
{
	if (low < m->bad_high && low + n > m->bad_low)
		return NULL;
	if (low >= BASE && low + n <= BASE + m->bytes)
		return m->heap + (low - BASE);
	if (low >= ROOTS && low + n <= ROOTS + PAGE)
		return (const uint8_t *)m->roots + (low - ROOTS);
	if (low >= DATA && low + n <= DATA + PAGE)
		return (const uint8_t *)m->data + (low - DATA);
	return NULL;
}

static size_t read_memory(void *ctx, const struct as_leak_range *v, size_t n, void *buf)
{
	struct memory *m = ctx;
	size_t at = 0;

	assert_true(n <= AS_LEAK_BATCH);
	m->reads++;
	for (size_t i = 0; i < n; i++) {
		const void *p = place(m, v[i].low, v[i].high - v[i].low);

		if (!p)
			break;
		memcpy((uint8_t *)buf + at, p, v[i].high - v[i].low);
		at += v[i].high - v[i].low;
	}
	return at;
}

static enum as_leak_memory_kind kind_of(void *ctx, uint64_t avma)
{
	(void)ctx;
	if (avma - CODE < PAGE)
		return AS_LEAK_CODE;
	return avma - DATA < PAGE ? AS_LEAK_DATA : AS_LEAK_OTHER;
}

static void begin(struct memory *m, struct as_leaks *l, size_t bytes)
{
	const struct as_leak_memory memory = {m, read_memory, NULL, kind_of};

	memset(m, 0, sizeof *m);
	m->heap = calloc(1, bytes);
	m->bytes = bytes;
	as_leaks_init(l, &memory);
}

static void end(struct memory *m, struct as_leaks *l)
{
	as_leaks_clear(l);
	free(m->heap);
}

static void set(struct memory *m, uint64_t at, uint64_t word)
{
	memcpy(m->heap + (at - BASE), &word, 8);
}

static void mark(struct as_leaks *l)
{
	as_leaks_seal(l);
	as_leaks_root(l, ROOTS, ROOTS + PAGE);
	as_leaks_finish(l);
}

static const struct as_leak_block *block_at(const struct as_leaks *l, uint64_t avma)
{
	uint32_t i;

	assert_true(as_leaks_find(l, avma, &i));
	return &l->blocks.v[i];
}

static void assert_class(const struct as_leaks *l, uint64_t avma, enum as_leak_class want)
{
	assert_string_equal(as_leak_class_name(block_at(l, avma)->class),
			    as_leak_class_name(want));
}

/* ---- memcheck's manual, "Memory leak detection" ---- */

#define A (BASE + 0x100)
#define B (BASE + 0x200)
enum pointer { NONE, START, INSIDE };
static const struct manual_case {
	enum pointer root_to_a, a_to_b, root_to_b;
	bool has_a;
	enum as_leak_class a, b;
} manual[] = {
	{NONE, NONE, START, false, 0, AS_LEAK_REACHABLE},
	{START, START, NONE, true, AS_LEAK_REACHABLE, AS_LEAK_REACHABLE},
	{NONE, NONE, NONE, false, 0, AS_LEAK_LOST},
	{NONE, START, NONE, true, AS_LEAK_LOST, AS_LEAK_INDIRECT},
	{NONE, NONE, INSIDE, false, 0, AS_LEAK_POSSIBLE},
	{START, INSIDE, NONE, true, AS_LEAK_REACHABLE, AS_LEAK_POSSIBLE},
	{INSIDE, START, NONE, true, AS_LEAK_POSSIBLE, AS_LEAK_POSSIBLE},
	{INSIDE, INSIDE, NONE, true, AS_LEAK_POSSIBLE, AS_LEAK_POSSIBLE},
	{NONE, INSIDE, NONE, true, AS_LEAK_LOST, AS_LEAK_INDIRECT},
};

static uint64_t pointer_to(uint64_t block, enum pointer p)
{
	return p == NONE ? 0 : block + (p == INSIDE ? 3 : 0);
}

static void the_nine_cases_of_the_manual(void **state)
{
	(void)state;
	for (size_t i = 0; i < AS_ARRAY_LEN(manual); i++) {
		const struct manual_case *c = &manual[i];
		struct memory m;
		struct as_leaks l;

		begin(&m, &l, PAGE);
		if (c->has_a)
			as_leaks_add(&l, A, 32, 0);
		as_leaks_add(&l, B, 32, 1);
		m.roots[7] = pointer_to(A, c->root_to_a);
		m.roots[9] = pointer_to(B, c->root_to_b);
		set(&m, A + 8, pointer_to(B, c->a_to_b));
		mark(&l);
		if (c->has_a)
			assert_class(&l, A, c->a);
		assert_class(&l, B, c->b);
		end(&m, &l);
	}
}

static void a_surer_pointer_found_later_makes_possible_reachable(void **state)
{
	struct memory m;
	struct as_leaks l;

	(void)state;
	begin(&m, &l, PAGE);
	as_leaks_add(&l, A, 32, 0);
	as_leaks_add(&l, B, 32, 0);
	set(&m, A, B);
	m.roots[0] = A + 1;
	m.roots[511] = A;
	mark(&l);
	assert_class(&l, A, AS_LEAK_REACHABLE);
	assert_class(&l, B, AS_LEAK_REACHABLE);
	end(&m, &l);
}

/* ---- pointers inside that are as good ---- */

static void assert_inside(struct memory *m, struct as_leaks *l, uint64_t bytes, uint64_t offset,
			  enum as_leak_inside want)
{
	as_leaks_add(l, A, bytes, 0);
	m->roots[1] = A + offset;
	mark(l);
	assert_class(l, A, want ? AS_LEAK_REACHABLE : AS_LEAK_POSSIBLE);
	assert_int_equal(block_at(l, A)->inside, want);
	end(m, l);
}

static void layouts_of_cplusplus(void **state)
{
	struct memory m;
	struct as_leaks l;

	(void)state;
	begin(&m, &l, PAGE); /* length, capacity, count, characters */
	set(&m, A, 5), set(&m, A + 8, 15);
	assert_inside(&m, &l, 24 + 16, 24, AS_LEAK_STD_STRING);
	begin(&m, &l, PAGE); /* the capacity is not that of the block */
	set(&m, A, 5), set(&m, A + 8, 16);
	assert_inside(&m, &l, 24 + 16, 24, AS_LEAK_START);
	begin(&m, &l, PAGE);
	set(&m, A, 24);
	assert_inside(&m, &l, 32, 8, AS_LEAK_LENGTH64);
	begin(&m, &l, PAGE); /* 3 elements of 8 bytes */
	set(&m, A, 3);
	assert_inside(&m, &l, 32, 8, AS_LEAK_NEW_ARRAY);
	begin(&m, &l, PAGE); /* 2 of 2 bytes */
	set(&m, A, 2);
	assert_inside(&m, &l, 12, 8, AS_LEAK_NEW_ARRAY);
	begin(&m, &l, PAGE);
	set(&m, A, 7);
	assert_inside(&m, &l, 32, 8, AS_LEAK_START);
}

static void two_vtables_are_a_base_class(void **state)
{
	struct memory m;
	struct as_leaks l;

	(void)state;
	for (int functions = 0; functions <= 2; functions++) {
		begin(&m, &l, PAGE);
		for (int i = 0; i < functions; i++)
			m.data[2 + i] = m.data[42 + i] = CODE + 16u * (unsigned)i;
		set(&m, A, DATA + 16);
		set(&m, A + 32, DATA + 42 * 8);
		assert_inside(&m, &l, 64, 32,
			      functions == 2 ? AS_LEAK_BASE_CLASS : AS_LEAK_START);
	}
}

static void layouts_of_rust(void **state)
{
	struct memory m;
	struct as_leaks l;

	(void)state;
	begin(&m, &l, PAGE); /* strong, weak, value */
	set(&m, A, 2), set(&m, A + 8, 1);
	assert_inside(&m, &l, 48, 16, AS_LEAK_RUST_ARC);
	begin(&m, &l, PAGE);
	set(&m, A, 2), set(&m, A + 8, 1);
	assert_inside(&m, &l, 256, 64, AS_LEAK_RUST_ARC);
	begin(&m, &l, PAGE); /* no weak count: no Arc */
	set(&m, A, 2);
	assert_inside(&m, &l, 48, 16, AS_LEAK_START);
	/* 32 buckets of 24 bytes, 32 + 16 control bytes */
	begin(&m, &l, PAGE);
	memset(m.heap + (A - BASE) + 768, 0xff, 48);
	for (int i = 0; i < 2; i++)
		m.heap[(A - BASE) + 768 + 32 * i + 3] = 0x41;
	assert_inside(&m, &l, 768 + 48, 768, AS_LEAK_RUST_HASH);
	/* 4 buckets of 8 bytes: what repeats begins behind 16 */
	begin(&m, &l, PAGE);
	memset(m.heap + (A - BASE) + 32, 0xff, 20);
	m.heap[(A - BASE) + 32 + 1] = m.heap[(A - BASE) + 32 + 17] = 0x22;
	assert_inside(&m, &l, 32 + 20, 32, AS_LEAK_RUST_HASH);
	/* all zeros are full buckets without an end: no table */
	begin(&m, &l, PAGE);
	assert_inside(&m, &l, 768 + 48, 768, AS_LEAK_START);
}

/* ---- owners ---- */

static void a_circle_has_one_owner_and_a_tree_is_shown_once(void **state)
{
	struct memory m;
	struct as_leaks l;
	struct as_heap_leaks sum = {0};

	(void)state;
	begin(&m, &l, 1 << 20);
	/* three in a circle, of which the second leads to a list of 100 */
	for (uint64_t i = 0; i < 3; i++) {
		as_leaks_add(&l, BASE + 64 * i, 48, 5);
		set(&m, BASE + 64 * i, BASE + 64 * ((i + 1) % 3));
	}
	for (uint64_t i = 0; i < 100; i++) {
		as_leaks_add(&l, BASE + 4096 + 64 * i, 16, 6);
		set(&m, BASE + 4096 + 64 * i, i < 99 ? BASE + 4096 + 64 * (i + 1) : 0);
	}
	set(&m, BASE + 64 + 8, BASE + 4096);
	/* one above them leads into the circle: then that owns all */
	as_leaks_add(&l, BASE + 65536, 16, 7);
	set(&m, BASE + 65536 + 8, BASE + 64 + 5);
	mark(&l);
	as_heap_leaks_sum(&l, &sum);
	assert_int_equal(sum.sum[AS_LEAK_LOST].blocks, 1);
	assert_int_equal(sum.sum[AS_LEAK_INDIRECT].blocks, 103);
	as_vec_foreach (row, &sum.rows) {
		assert_int_equal(row->owned.blocks, row->tally == 7 ? 103 : 0);
		assert_int_equal(row->owned.bytes, row->tally == 7 ? 3 * 48 + 100 * 16 : 0);
	}
	as_vec_clear(&sum.rows);
	end(&m, &l);
}

/* ---- graphs at random ---- */

static uint64_t seed = 88172645463325252ull;
static uint64_t next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

enum { N = 40, STRIDE = 64 };
struct graph {
	uint8_t edge[N][N]; /* enum pointer */
	uint8_t root[N];
	bool leads[N][N]; /* by any pointers */
};

static void make_graph(struct memory *m, struct as_leaks *l, struct graph *g)
{
	uint64_t edges = next_random() % 60, roots = next_random() % 6;

	memset(g, 0, sizeof *g);
	begin(m, l, N * STRIDE);
	for (uint32_t i = 0; i < N; i++)
		as_leaks_add(l, BASE + i * STRIDE, STRIDE - 8, i);
	for (uint64_t e = 0; e < edges; e++) {
		uint64_t from = next_random() % N, to = next_random() % N;
		uint64_t at = BASE + from * STRIDE + next_random() % 7 * 8;
		uint64_t old, inside = next_random() % 3 ? 0 : 1 + next_random() % 7;

		memcpy(&old, m->heap + (at - BASE), 8);
		if (old)
			continue;
		set(m, at, BASE + to * STRIDE + inside);
		g->edge[from][to] = (uint8_t)AS_MAX(g->edge[from][to], inside ? 1 : 2);
	}
	for (uint64_t r = 0; r < roots; r++) {
		uint64_t to = next_random() % N, inside = next_random() % 3 ? 0 : 1;

		m->roots[r] = BASE + to * STRIDE + inside;
		g->root[to] = (uint8_t)AS_MAX(g->root[to], inside ? 1 : 2);
	}
}

/* Plainly: again and again until nothing changes. sure: 2, perhaps: 1. */
static void search(const struct graph *g, uint8_t *reached)
{
	bool changed = true;

	memcpy(reached, g->root, N);
	while (changed) {
		changed = false;
		for (int i = 0; i < N; i++) {
			for (int k = 0; k < N; k++) {
				uint8_t r = AS_MIN(reached[i], g->edge[i][k]);

				if (r > reached[k])
					reached[k] = r, changed = true;
			}
		}
	}
}

static void close_graph(struct graph *g, const uint8_t *reached)
{
	for (int i = 0; i < N; i++)
		for (int k = 0; k < N; k++)
			g->leads[i][k] = g->edge[i][k] && !reached[i] && !reached[k];
	for (int via = 0; via < N; via++)
		for (int i = 0; i < N; i++)
			for (int k = 0; k < N; k++)
				g->leads[i][k] |= g->leads[i][via] && g->leads[via][k];
}

static void check_owners(const struct as_leaks *l, const struct graph *g,
			 const uint8_t *reached)
{
	for (int i = 0; i < N; i++) {
		uint32_t owner = l->owner[i];

		if (reached[i]) {
			assert_int_equal(owner, UINT32_MAX);
		} else if (l->blocks.v[i].class == AS_LEAK_LOST) {
			assert_int_equal(owner, i);
			/* who leads to it is led to by it: a circle */
			for (int k = 0; k < N; k++)
				assert_true(!g->leads[k][i] || g->leads[i][k]);
		} else {
			assert_int_equal(l->blocks.v[i].class, AS_LEAK_INDIRECT);
			assert_int_equal(l->blocks.v[owner].class, AS_LEAK_LOST);
			assert_true(g->leads[owner][i]);
		}
	}
}

static void random_graphs_are_as_a_plain_search_finds_them(void **state)
{
	(void)state;
	for (int round = 0; round < 3000; round++) {
		static struct graph g;
		uint8_t reached[N];
		struct memory m;
		struct as_leaks l;

		make_graph(&m, &l, &g);
		mark(&l);
		search(&g, reached);
		for (int i = 0; i < N; i++) {
			assert_int_equal(l.blocks.v[i].class == AS_LEAK_REACHABLE,
					 reached[i] == 2);
			assert_int_equal(l.blocks.v[i].class == AS_LEAK_POSSIBLE,
					 reached[i] == 1);
		}
		close_graph(&g, reached);
		check_owners(&l, &g, reached);
		end(&m, &l);
	}
}

/* ---- large, deep, broken ---- */

enum { CHAIN = 1000000 };

static void a_chain_of_a_million(void **state)
{
	struct memory m;
	struct as_leaks l;
	struct as_heap_leaks sum = {0};

	(void)state;
	for (int lost = 0; lost < 2; lost++) {
		memset(&sum, 0, sizeof sum);
		begin(&m, &l, (size_t)CHAIN * 32);
		for (uint64_t i = 0; i < CHAIN; i++) {
			/* far from each other, forwards and back */
			uint64_t to = (i + 1) % CHAIN;

			as_leaks_add(&l, BASE + i * 7919 % CHAIN * 32, 24, 1);
			set(&m, BASE + i * 7919 % CHAIN * 32 + 8,
			    BASE + to * 7919 % CHAIN * 32);
		}
		m.roots[3] = lost ? 0 : BASE;
		mark(&l);
		as_heap_leaks_sum(&l, &sum);
		assert_int_equal(sum.sum[AS_LEAK_REACHABLE].blocks, lost ? 0 : CHAIN);
		assert_int_equal(sum.sum[AS_LEAK_LOST].blocks, lost ? 1 : 0);
		assert_int_equal(sum.sum[AS_LEAK_INDIRECT].blocks, lost ? CHAIN - 1 : 0);
		as_vec_clear(&sum.rows);
		end(&m, &l);
	}
}

static void what_cannot_be_read_is_counted_and_costs_nothing_else(void **state)
{
	struct memory m;
	struct as_leaks l;

	(void)state;
	begin(&m, &l, 1 << 20);
	as_leaks_add(&l, BASE, 1 << 18, 0); /* its second page is not there */
	m.bad_low = BASE + PAGE;
	m.bad_high = BASE + 2 * PAGE;
	for (uint64_t i = 0; i < 3; i++)
		as_leaks_add(&l, BASE + (1 << 19) + i * 64, 48, 1);
	set(&m, BASE + 8, BASE + (1 << 19));
	set(&m, BASE + PAGE + 8, BASE + (1 << 19) + 64);
	set(&m, BASE + 2 * PAGE + 8, BASE + (1 << 19) + 128);
	m.roots[0] = BASE;
	mark(&l);
	assert_class(&l, BASE + (1 << 19), AS_LEAK_REACHABLE);
	assert_class(&l, BASE + (1 << 19) + 64, AS_LEAK_LOST);
	assert_class(&l, BASE + (1 << 19) + 128, AS_LEAK_REACHABLE);
	assert_int_equal(l.unread_bytes, PAGE);
	end(&m, &l);
}

static void small_blocks_among_unreadable_ones(void **state)
{
	struct memory m;
	struct as_leaks l;

	(void)state;
	begin(&m, &l, 1 << 20);
	for (uint64_t i = 0; i < 1000; i++) {
		as_leaks_add(&l, BASE + i * 256, 64, 0);
		set(&m, BASE + i * 256 + 16, i < 999 ? BASE + (i + 1) * 256 : 0);
	}
	for (uint64_t i = 0; i < WORDS; i++)
		m.roots[i] = BASE + i * 256;
	m.bad_low = BASE + 300 * 256;
	m.bad_high = BASE + 600 * 256;
	mark(&l);
	/* beyond the roots' last one the chain is cut where it cannot be read */
	assert_class(&l, BASE + 299 * 256, AS_LEAK_REACHABLE);
	assert_class(&l, BASE + 511 * 256, AS_LEAK_REACHABLE);
	assert_class(&l, BASE + 512 * 256, AS_LEAK_LOST);
	assert_class(&l, BASE + 600 * 256, AS_LEAK_LOST);
	assert_class(&l, BASE + 601 * 256, AS_LEAK_INDIRECT);
	end(&m, &l);
}

#define LOW 0x100000000000ull /* where there is room above */

static bool some_next(void *ctx, uint64_t low, uint64_t high, struct as_leak_range *ret)
{
	/* of what is huge, one page is there */
	const uint64_t there = LOW + (1ull << 40);

	(void)ctx;
	if (high - low < 1 << 20) {
		*ret = (struct as_leak_range){low, high};
		return true;
	}
	if (low >= there + PAGE || high <= there)
		return false;
	*ret = (struct as_leak_range){AS_MAX(low, there), AS_MIN(high, there + PAGE)};
	return true;
}

static size_t some_read(void *ctx, const struct as_leak_range *v, size_t n, void *buf)
{
	const uint64_t there = LOW + (1ull << 40);
	uint64_t word = LOW - (1 << 20);

	if (n == 1 && v->low >= there && v->high <= there + PAGE) {
		memset(buf, 0, v->high - v->low);
		memcpy(buf, &word, 8);
		return v->high - v->low;
	}
	return read_memory(ctx, v, n, buf);
}

static void a_huge_block_costs_what_is_there_of_it(void **state)
{
	const struct as_leak_memory memory = {NULL, some_read, some_next, NULL};
	static struct memory m;
	struct as_leaks l;

	(void)state;
	as_leaks_init(&l, &memory);
	l.memory.ctx = &m;
	as_leaks_add(&l, LOW, 1ull << 42, 0);
	as_leaks_add(&l, LOW - (1 << 20), 8, 0);
	as_leaks_add(&l, 0x600000000000ull, UINT64_MAX,
		     0); /* nonsense ends where addresses do */
	m.roots[0] = LOW + (1ull << 41);
	m.roots[1] = LOW;
	mark(&l);
	assert_class(&l, LOW + (1ull << 39), AS_LEAK_REACHABLE);
	assert_class(&l, LOW - (1 << 20), AS_LEAK_REACHABLE);
	assert_class(&l, 0x7fffffffffffull, AS_LEAK_LOST);
	assert_in_range(l.scanned_bytes, PAGE, 4 * PAGE);
	as_leaks_clear(&l);
}

static void blocks_of_no_bytes_and_blocks_in_blocks(void **state)
{
	struct memory m;
	struct as_leaks l;

	(void)state;
	begin(&m, &l, PAGE);
	as_leaks_add(&l, A, 0, 0);
	as_leaks_add(&l, A + 16, 0, 0);
	as_leaks_add(&l, B, 256, 0);
	as_leaks_add(&l, B + 64, 32, 0); /* in another: left out */
	m.roots[0] = A;
	mark(&l);
	assert_int_equal(l.overlaps, 1);
	assert_int_equal(l.blocks.n, 3);
	assert_class(&l, A, AS_LEAK_REACHABLE);
	assert_class(&l, A + 16, AS_LEAK_LOST);
	assert_class(&l, B + 64, AS_LEAK_LOST);
	end(&m, &l);
}

static void the_index_finds_what_a_plain_search_finds(void **state)
{
	struct memory m;
	struct as_leaks l;
	uint64_t at = BASE + 24;

	(void)state;
	begin(&m, &l, PAGE);
	for (int i = 0; i < 20000; i++) {
		uint64_t size =
			next_random() % 40 ? next_random() % 900 : next_random() % 5000000;

		as_leaks_add(&l, at, size, 0);
		at += AS_MAX(size, 1ull) + next_random() % 300;
		at += next_random() % 2000 ? 0 : 1ull << 33;
	}
	as_leaks_seal(&l);
	for (int i = 0; i < 200000; i++) {
		const struct as_leak_block *b = &l.blocks.v[next_random() % l.blocks.n];
		uint64_t avma = b->low + next_random() % (b->bytes + 400) - 8;
		size_t want = as_leaks_first(&l, avma);
		uint32_t got = UINT32_MAX;
		bool found = as_leaks_find(&l, avma, &got);

		assert_int_equal(found, want < l.blocks.n && l.blocks.v[want].low <= avma);
		if (found)
			assert_int_equal(got, want);
	}
	end(&m, &l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_nine_cases_of_the_manual),
		cmocka_unit_test(a_surer_pointer_found_later_makes_possible_reachable),
		cmocka_unit_test(layouts_of_cplusplus),
		cmocka_unit_test(two_vtables_are_a_base_class),
		cmocka_unit_test(layouts_of_rust),
		cmocka_unit_test(a_circle_has_one_owner_and_a_tree_is_shown_once),
		cmocka_unit_test(random_graphs_are_as_a_plain_search_finds_them),
		cmocka_unit_test(a_chain_of_a_million),
		cmocka_unit_test(what_cannot_be_read_is_counted_and_costs_nothing_else),
		cmocka_unit_test(small_blocks_among_unreadable_ones),
		cmocka_unit_test(a_huge_block_costs_what_is_there_of_it),
		cmocka_unit_test(blocks_of_no_bytes_and_blocks_in_blocks),
		cmocka_unit_test(the_index_finds_what_a_plain_search_finds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
