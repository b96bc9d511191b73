/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Where source files are found, and which ones are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include "fixture.h"
#include "code/source.h"

static void put(const char *name, const char *text)
{
	assert_int_equal(fx_sh("mkdir -p \"$(dirname '%s')\"", name), 0);
	fx_write(name, text);
}

static void expect_found(struct as_source_query q, const char *where, const char *first_line)
{
	struct as_source *s = as_source_load(&q);
	const char *line;
	size_t n;

	if (!s->found)
		fail_msg("%s: %s", q.file, s->why);
	assert_string_equal(s->found, fx_path(where));
	line = as_source_line(s, 1, &n);
	assert_int_equal(n, strlen(first_line));
	assert_memory_equal(line, first_line, n);
	as_source_free(s);
}

static void expect_refused(struct as_source_query q, const char *why)
{
	struct as_source *s = as_source_load(&q);

	assert_null(s->found);
	assert_int_equal(as_source_lines(s), 0);
	if (!strstr(s->why, why))
		fail_msg("'%s' lacks '%s'", s->why, why);
	as_source_free(s);
}

static int setup(void **state)
{
	assert_int_equal(fx_sh("mkdir -p home cargo rustup"), 0);
	setenv("HOME", fx_path("home"), 1);
	setenv("CARGO_HOME", fx_path("cargo"), 1);
	setenv("RUSTUP_HOME", fx_path("rustup"), 1);
	unsetenv("SUDO_USER");
	return 0;
}

static void a_path_is_taken_as_it_is(void **state)
{
	put("a/x.c", "one\ntwo\r\nthree");
	expect_found((struct as_source_query){.file = fx_path("a/x.c")}, "a/x.c", "one");
	expect_found((struct as_source_query){.file = "x.c", .cwd = fx_path("a")}, "a/x.c",
		     "one");
	expect_found((struct as_source_query){.file = "./x.c", .cwd = fx_path("a")}, "a/x.c",
		     "one");
}

static void lines_lose_their_ends_only(void **state)
{
	struct as_source_query q = {.file = fx_path("l.c")};
	struct as_source *s;
	size_t n;

	put("l.c", "one\ntwo\r\n\nfour");
	s = as_source_load(&q);
	assert_int_equal(as_source_lines(s), 4);
	assert_memory_equal(as_source_line(s, 2, &n), "two", 3);
	assert_int_equal(n, 3);
	assert_non_null(as_source_line(s, 3, &n));
	assert_int_equal(n, 0);
	assert_memory_equal(as_source_line(s, 4, &n), "four", 4);
	assert_int_equal(n, 4);
	assert_null(as_source_line(s, 0, &n));
	assert_null(as_source_line(s, 5, &n));
	as_source_free(s);
}

static void the_targets_root_goes_first(void **state)
{
	struct as_source_query q = {.file = "/srv/app/m.rs", .root = fx_path("root")};
	struct as_source *s;

	put("root/srv/app/m.rs", "inside");
	s = as_source_load(&q);
	assert_non_null(s->found);
	assert_string_equal(s->found, "/srv/app/m.rs"); /* as the target has it */
	as_source_free(s);
}

static void crates_are_found_in_another_registry(void **state)
{
	put("cargo/registry/src/index.crates.io-beef/serde-1.0.5/src/de.rs", "serde");
	put("cargo/git/checkouts/tool-1a2b/9f/src/x.rs", "git");
	expect_found(
		(struct as_source_query){.file = "/home/u/.cargo/registry/src/"
						 "index.crates.io-6f17/serde-1.0.5/src/de.rs"},
		"cargo/registry/src/index.crates.io-beef/serde-1.0.5/src/de.rs", "serde");
	expect_found(
		(struct as_source_query){
			.file = "/x/.cargo/git/checkouts/tool-1a2b/9f/src/x.rs"},
		"cargo/git/checkouts/tool-1a2b/9f/src/x.rs", "git");
	/* what never changes is not judged by its age */
	expect_found(
		(struct as_source_query){.file = "/home/u/.cargo/registry/src/"
						 "index.crates.io-6f17/serde-1.0.5/src/de.rs",
					 .newest_ns = 1000000000},
		"cargo/registry/src/index.crates.io-beef/serde-1.0.5/src/de.rs", "serde");
	put("proj/vendor/log/src/lib.rs", "vendored");
	expect_found(
		(struct as_source_query){.file = "/r/registry/src/i-1/log-0.4.1/src/lib.rs",
					 .cwd = fx_path("proj")},
		"proj/vendor/log/src/lib.rs", "vendored");
}

#define HASH  "0123456789abcdef0123456789abcdef01234567"
#define OTHER "76543210fedcba9876543210fedcba9876543210"

static void rusts_library_is_found_by_its_hash(void **state)
{
	put("rustup/toolchains/one/lib/rustlib/multirust-channel-manifest.toml",
	    "git_commit_hash = \"" OTHER "\"\n");
	put("rustup/toolchains/one/lib/rustlib/src/rust/library/core/src/cmp.rs", "other");
	put("rustup/toolchains/two/lib/rustlib/multirust-channel-manifest.toml",
	    "git_commit_hash = \"" HASH "\"\n");
	put("rustup/toolchains/two/lib/rustlib/src/rust/library/core/src/cmp.rs", "right");
	expect_found((struct as_source_query){.file = "/rustc/" HASH "/library/core/src/cmp.rs",
					      .newest_ns = 1},
		     "rustup/toolchains/two/lib/rustlib/src/rust/library/core/src/cmp.rs",
		     "right");
	expect_refused(
		(struct as_source_query){.file = "/rustc/" HASH "/library/alloc/src/no.rs"},
		"rustup component add rust-src");
	assert_int_equal(fx_sh("rm -r rustup/toolchains/two"), 0);
	expect_refused(
		(struct as_source_query){.file = "/rustc/" HASH "/library/core/src/cmp.rs"},
		"another version of Rust");
}

static void roots_are_searched_by_the_tails_of_the_path(void **state)
{
	const char *roots[] = {fx_path("s/src"), NULL};

	put("s/src/net/io.c", "tail");
	put("s/src/main.c", "bare");
	expect_found(
		(struct as_source_query){.file = "/build/x/net/io.c", .source_dirs = roots},
		"s/src/net/io.c", "tail");
	expect_found(
		(struct as_source_query){.file = "/ci/job/src/main.c", .source_dirs = roots},
		"s/src/main.c", "bare");
	/* a bare name alone is no match: every project has a main.c */
	expect_refused(
		(struct as_source_query){.file = "/ci/job/other/main.c", .source_dirs = roots},
		"looked at");
	expect_found(
		(struct as_source_query){.file = "/ci/job/src/main.c", .cwd = fx_path("s")},
		"s/src/main.c", "bare");
}

static void a_file_newer_than_the_program_is_refused(void **state)
{
	struct as_source_query q = {.file = fx_path("n.c"), .newest_ns = 1000000000ull * 100};

	put("n.c", "new");
	expect_refused(q, "is newer than the program");
	assert_int_equal(fx_sh("touch -d @100 n.c"), 0);
	expect_found(q, "n.c", "new");
	assert_int_equal(fx_sh("touch -d @100.5 n.c"), 0);
	expect_refused(q, "is newer than the program");
}

static void what_is_no_source_file_is_not_read(void **state)
{
	put("id_rsa", "secret");
	put("shadow.key", "secret");
	put("bin.c", "x");
	assert_int_equal(fx_sh("printf 'a\\000b' > bin.c; mkdir dir.c; mkfifo pipe.c; "
			       "truncate -s 17M big.c; ln -s loop.c loop.c"),
			 0);
	expect_refused((struct as_source_query){.file = fx_path("id_rsa")}, "name");
	expect_refused((struct as_source_query){.file = fx_path("shadow.key")}, "name");
	expect_refused((struct as_source_query){.file = "/etc/shadow"}, "name");
	expect_refused((struct as_source_query){.file = fx_path("bin.c")}, "is no text");
	expect_refused((struct as_source_query){.file = fx_path("dir.c")}, "is no file");
	expect_refused((struct as_source_query){.file = fx_path("pipe.c")}, "is no file");
	expect_refused((struct as_source_query){.file = fx_path("big.c")}, "16 MiB");
	expect_refused((struct as_source_query){.file = fx_path("loop.c")}, "loop.c");
	expect_refused((struct as_source_query){.file = ""}, "no file");
	expect_refused((struct as_source_query){.file = NULL}, "no file");
}

static void a_path_of_any_length_is_only_not_found(void **state)
{
	char *deep = malloc(200001);

	for (size_t i = 0; i < 200000; i += 2)
		memcpy(deep + i, "/a", 2);
	memcpy(deep + 199990, "/source.rs", 11);
	expect_refused((struct as_source_query){.file = deep, .cwd = "/tmp"}, "not found");
	expect_refused((struct as_source_query){.file = deep + 190000, .cwd = "/tmp"},
		       "not found");
	expect_refused((struct as_source_query){.file = deep + 1, .cwd = "/tmp"}, "not found");
	free(deep);
}

static void the_places_looked_at_are_told(void **state)
{
	expect_refused((struct as_source_query){.file = "/no/such/folder/a.rs"},
		       "looked at '/no/such/folder/a.rs'");
}

static void a_place_is_told_once(void **state)
{
	const char *const roots[] = {fx_dir(), fx_dir(), NULL};
	struct as_source *s = as_source_load(&(struct as_source_query){
		.file = "none/a.rs", .cwd = fx_dir(), .source_dirs = roots});
	unsigned told = 0;

	assert_null(s->found);
	for (const char *p = s->why; (p = strstr(p, "none/a.rs'")) != NULL; p++)
		told++;
	assert_int_equal(told, 1);
	as_source_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_is_taken_as_it_is),
		cmocka_unit_test(lines_lose_their_ends_only),
		cmocka_unit_test(the_targets_root_goes_first),
		cmocka_unit_test(crates_are_found_in_another_registry),
		cmocka_unit_test(rusts_library_is_found_by_its_hash),
		cmocka_unit_test(roots_are_searched_by_the_tails_of_the_path),
		cmocka_unit_test(a_file_newer_than_the_program_is_refused),
		cmocka_unit_test(what_is_no_source_file_is_not_read),
		cmocka_unit_test(a_path_of_any_length_is_only_not_found),
		cmocka_unit_test(the_places_looked_at_are_told),
		cmocka_unit_test(a_place_is_told_once),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
