/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "fixture.h"
#include "base/buf.h"
#include "base/map.h"
#include "symbol/perfmap.h"

static struct as_perfmap *parse(const char *s, size_t n)
{
	struct as_perfmap *m = NULL;

	assert_int_equal(as_perfmap_parse(s, n, &m, NULL), 0);
	return m;
}

static void check(const struct as_perfmap *m, uint64_t at, const char *name, uint64_t start)
{
	uint64_t got_start = 0;
	const char *got = as_perfmap_find(m, at, &got_start);

	if (!name) {
		assert_null(got);
		return;
	}
	assert_non_null(got);
	assert_string_equal(got, name);
	assert_int_equal(got_start, start);
}

static void names_may_hold_blanks_and_any_bytes(void **st)
{
	static const char text[] = "7f0000001000 20 void Foo::bar(int, char const*)\n"
				   "0x7f0000002000 0x10 js:~main \x1b[31m \xff.js:1\r\n"
				   "7F0000003000 8   padded\n";
	struct as_perfmap *m = parse(text, sizeof text - 1);

	check(m, 0x7f0000001000, "void Foo::bar(int, char const*)", 0x7f0000001000);
	check(m, 0x7f000000101f, "void Foo::bar(int, char const*)", 0x7f0000001000);
	check(m, 0x7f0000001020, NULL, 0);
	check(m, 0x7f0000002008, "js:~main \x1b[31m \xff.js:1", 0x7f0000002000);
	check(m, 0x7f0000003007, "padded", 0x7f0000003000);
	assert_int_equal(as_perfmap_skipped(m), 0);
	as_perfmap_free(m);
}

static void a_later_line_wins_where_ranges_overlap(void **st)
{
	static const char text[] = "1000 100 old\n"
				   "1040 20 inner\n"
				   "2000 100 first\n"
				   "1ff0 20 over the edge\n"
				   "3000 10 moved\n"
				   "3000 10 again\n";
	struct as_perfmap *m = parse(text, sizeof text - 1);

	check(m, 0x1000, "old", 0x1000);
	check(m, 0x103f, "old", 0x1000);
	check(m, 0x1040, "inner", 0x1040);
	check(m, 0x105f, "inner", 0x1040);
	check(m, 0x1060, "old", 0x1000);
	check(m, 0x10ff, "old", 0x1000);
	check(m, 0x1100, NULL, 0);
	check(m, 0x1fff, "over the edge", 0x1ff0);
	check(m, 0x200f, "over the edge", 0x1ff0);
	check(m, 0x2010, "first", 0x2000);
	check(m, 0x3000, "again", 0x3000);
	as_perfmap_free(m);
}

static void damaged_lines_are_counted_and_skipped(void **st)
{
	static const char text[] = "nonsense\n"
				   "1000 20\n"
				   "1000 20 \n"
				   "1000 0 nothing\n"
				   "ffffffffffffffff 2 wraps\n"
				   "10000000000000000 2 wide\n"
				   "\n"
				   "2000 10 good\n"
				   "3000 10 cut off";
	struct as_perfmap *m = parse(text, sizeof text - 1);

	assert_int_equal(as_perfmap_skipped(m), 6);
	check(m, 0x2000, "good", 0x2000);
	check(m, 0x3000, "cut off", 0x3000);
	check(m, 0x1000, NULL, 0);
	as_perfmap_free(m);
}

/* Against the plain meaning: the last line that covers an address. */
static void overlaps_agree_with_a_slow_model(void **st)
{
	uint64_t seed = 3;

	for (int round = 0; round < 300; round++) {
		enum { SPAN = 256 };
		int owner[SPAN], lines = 1 + round % 60;
		struct as_buf b = {0};
		struct as_perfmap *m;

		memset(owner, -1, sizeof owner);
		for (int i = 0; i < lines; i++) {
			unsigned start, size;

			seed = as_mix64(seed + 0x9e3779b97f4a7c15ull);
			start = seed % SPAN;
			size = 1 + (seed >> 20) % 40;
			as_buf_addf(&b, "%x %x f%d\n", start, size, i);
			for (unsigned k = start; k < start + size && k < SPAN; k++)
				owner[k] = i;
		}
		m = parse(b.p, b.len);
		for (int k = 0; k < SPAN; k++) {
			const char *got = as_perfmap_find(m, (uint64_t)k, NULL);
			char want[16];

			snprintf(want, sizeof want, "f%d", owner[k]);
			if (owner[k] < 0)
				assert_null(got);
			else
				assert_string_equal(got, want);
		}
		as_perfmap_free(m);
		as_buf_clear(&b);
	}
}

static void nested_overlaps_do_not_take_square_time(void **st)
{
	struct as_buf b = {0};
	struct as_perfmap *m;
	clock_t begin = clock();

	for (unsigned i = 0; i < 200000; i++)
		as_buf_addf(&b, "%x %x f\n", 0x1000 + i, 0x10000000 - 2 * i);
	m = parse(b.p, b.len);
	check(m, 0x1000 + 0x8000000, "f", 0x1000 + 199999);
	assert_true(clock() - begin < 10 * CLOCKS_PER_SEC);
	as_perfmap_free(m);
	as_buf_clear(&b);
}

static void a_map_is_found_below_the_targets_root(void **st)
{
	struct as_perfmap *m = NULL;
	const char *root;

	fx_sh("mkdir -p root/tmp && echo '1000 10 f' > root/tmp/perf-42.map");
	root = fx_path("root");
	assert_int_equal(as_perfmap_load(root, 42, &m, NULL), 0);
	check(m, 0x1000, "f", 0x1000);
	as_perfmap_free(m);
	assert_int_equal(as_perfmap_load(root, 43, &m, NULL), AS_E_NOTFOUND);
}

/* The root of a process that has ended cannot be asked for; its map is in our /tmp then. */
static void no_root_is_our_own(void **st)
{
	AS_CLEANUP(as_free_autop)
	char *path = as_xasprintf("/tmp/perf-%d.map", (int)getpid());
	struct as_perfmap *m = NULL;
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_true(fputs("1000 10 f\n", f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(as_perfmap_load("", getpid(), &m, NULL), 0);
	check(m, 0x1000, "f", 0x1000);
	as_perfmap_free(m);
	unlink(path);
}

static void links_out_of_the_root_and_odd_files_are_refused(void **st)
{
	struct as_perfmap *m = NULL;
	const char *root;

	fx_sh("rm -rf r2; mkdir -p r2/tmp; echo '1000 10 f' > outside;"
	      "ln -s $PWD/outside r2/tmp/perf-1.map; mkfifo r2/tmp/perf-2.map;"
	      "echo '1000 10 f' > r2/tmp/perf-3.map; chown 12345 r2/tmp/perf-3.map");
	root = fx_path("r2");
	assert_int_equal(as_perfmap_load(root, 1, &m, NULL), AS_E_NOTFOUND);
	assert_int_equal(as_perfmap_load(root, 2, &m, NULL), AS_E_FORMAT);
	if (geteuid() == 0)
		assert_int_equal(as_perfmap_load(root, 3, &m, NULL), AS_E_ACCESS);
}

static void random_bytes_are_survived(void **st)
{
	static const char alphabet[] = "0123abc  \n\nx";
	uint64_t seed = 5;
	char buf[300];

	for (int round = 0; round < 5000; round++) {
		size_t n = (size_t)round % sizeof buf;
		struct as_perfmap *m;

		for (size_t i = 0; i < n; i++) {
			seed = as_mix64(seed + 0x9e3779b97f4a7c15ull);
			buf[i] = seed % 60 ? alphabet[seed % (sizeof alphabet - 1)]
					   : (char)(seed >> 9);
		}
		m = parse(buf, n);
		as_perfmap_find(m, seed & 0xffff, NULL);
		as_perfmap_free(m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_may_hold_blanks_and_any_bytes),
		cmocka_unit_test(a_later_line_wins_where_ranges_overlap),
		cmocka_unit_test(damaged_lines_are_counted_and_skipped),
		cmocka_unit_test(overlaps_agree_with_a_slow_model),
		cmocka_unit_test(nested_overlaps_do_not_take_square_time),
		cmocka_unit_test(a_map_is_found_below_the_targets_root),
		cmocka_unit_test(no_root_is_our_own),
		cmocka_unit_test(links_out_of_the_root_and_odd_files_are_refused),
		cmocka_unit_test(random_bytes_are_survived),
	};

	return cmocka_run_group_tests_name("perfmap", tests, NULL, NULL);
}
