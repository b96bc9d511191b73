/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which target of a workspace is meant, and what cargo's messages say of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cargo/cargo.h"

/* As cargo 1.95 prints it: app has two programs, tool one; lib is no default member. */
static const char workspace[] =
	"{\"packages\":["
	"{\"name\":\"app\",\"version\":\"1.2.3-rc.1\",\"id\":\"path+file:///w/app#1.2.3-rc.1\","
	"\"manifest_path\":\"/w/app/"
	"Cargo.toml\",\"default_run\":null,\"authors\":[\"A\",\"B\"],"
	"\"targets\":[{\"kind\":[\"lib\"],\"name\":\"app\"},{\"kind\":[\"bin\"],\"name\":"
	"\"app\"},"
	"{\"kind\":[\"bin\"],\"name\":\"other\"},{\"kind\":[\"bench\"],\"name\":\"speed\"},"
	"{\"kind\":[\"custom-build\"],\"name\":\"build-script-build\"}]},"
	"{\"name\":\"tool\",\"version\":\"0.1.0\",\"id\":\"path+file:///w/tool#0.1.0\","
	"\"manifest_path\":\"/w/tool/Cargo.toml\",\"targets\":[{\"kind\":[\"bin\"],\"name\":"
	"\"tool\"},{\"kind\":[\"test\"],\"name\":\"it\"}]},"
	"{\"name\":\"macro\",\"version\":\"0.1.0\",\"id\":\"path+file:///w/macro#0.1.0\","
	"\"manifest_path\":\"/w/macro/Cargo.toml\",\"targets\":[{\"kind\":[\"proc-macro\"],"
	"\"name\":\"macro\"}]},"
	"{\"name\":\"dep\",\"version\":\"9.0.0\",\"id\":\"registry+x#dep@9.0.0\","
	"\"manifest_path\":\"/r/dep/Cargo.toml\",\"targets\":[{\"kind\":[\"bin\"],\"name\":"
	"\"dep\"}]}],"
	"\"workspace_members\":[\"path+file:///w/app#1.2.3-rc.1\",\"path+file:///w/"
	"tool#0.1.0\","
	"\"path+file:///w/macro#0.1.0\"],"
	"\"workspace_default_members\":[\"path+file:///w/app#1.2.3-rc.1\","
	"\"path+file:///w/tool#0.1.0\"],\"target_directory\":\"/w/target\"}";

static struct as_cargo_metadata meta;
static struct as_error err;
static const struct as_cargo_package *package;
static const struct as_cargo_target *target;

static int setup(void **state)
{
	return as_cargo_metadata_parse(workspace, strlen(workspace), &meta, &err);
}

static int teardown(void **state)
{
	as_cargo_metadata_clear(&meta);
	return 0;
}

static int choose(enum as_cargo_kind kind, const char *name, const char *pkg, const char *here)
{
	struct as_cargo_request q = {.kind = kind, .name = name, .package = pkg};

	package = NULL;
	target = NULL;
	err.msg[0] = 0;
	return as_cargo_choose(&meta, &q, here, &package, &target, &err);
}

static void only_members_of_the_workspace_are_read(void **state)
{
	assert_int_equal(meta.packages.n, 3);
	assert_string_equal(meta.target_directory, "/w/target");
	assert_string_equal(meta.packages.v[0].authors, "A:B");
	assert_int_equal(meta.packages.v[0].targets.n, 4); /* not the build script */
	assert_true(meta.packages.v[1].is_default);
	assert_false(meta.packages.v[2].is_default);
	assert_int_equal(meta.packages.v[2].targets.v[0].kind, AS_CARGO_LIB);
}

static void the_only_program_of_the_current_package_is_taken(void **state)
{
	assert_int_equal(choose(AS_CARGO_BIN, NULL, NULL, "/w/tool/Cargo.toml"), 0);
	assert_string_equal(package->name, "tool");
	assert_string_equal(target->name, "tool");
}

static void of_several_programs_the_words_that_choose_are_listed(void **state)
{
	assert_int_equal(choose(AS_CARGO_BIN, NULL, NULL, "/w/app/Cargo.toml"), AS_E_USAGE);
	assert_non_null(strstr(err.msg, "\n  --bin app"));
	assert_non_null(strstr(err.msg, "\n  --bin other"));
	assert_null(strstr(err.msg, "tool"));
	assert_int_equal(choose(AS_CARGO_BIN, NULL, NULL, NULL), AS_E_USAGE);
	assert_non_null(strstr(err.msg, "\n  -p app --bin other"));
	assert_non_null(strstr(err.msg, "\n  -p tool --bin tool"));
}

static void default_run_decides_between_programs(void **state)
{
	meta.packages.v[0].default_run = "other";
	assert_int_equal(choose(AS_CARGO_BIN, NULL, NULL, "/w/app/Cargo.toml"), 0);
	assert_string_equal(target->name, "other");
	meta.packages.v[0].default_run = NULL;
}

static void a_named_target_is_found_in_any_default_package(void **state)
{
	assert_int_equal(choose(AS_CARGO_TEST, "it", NULL, "/w/app/Cargo.toml"), 0);
	assert_string_equal(package->name, "tool");
	assert_int_equal(choose(AS_CARGO_LIB, NULL, "macro", NULL), 0);
	assert_string_equal(package->name, "macro");
}

static void what_is_not_there_is_answered_with_what_is(void **state)
{
	assert_int_equal(choose(AS_CARGO_BIN, "nope", NULL, "/w/app/Cargo.toml"),
			 AS_E_NOTFOUND);
	assert_non_null(strstr(err.msg, "no bin 'nope' in app"));
	assert_non_null(strstr(err.msg, "--bin other"));
	assert_int_equal(choose(AS_CARGO_BIN, NULL, "nope", NULL), AS_E_NOTFOUND);
	assert_non_null(strstr(err.msg, "\n  -p tool"));
	assert_int_equal(choose(AS_CARGO_BIN, NULL, "macro", NULL), AS_E_NOTFOUND);
	assert_non_null(strstr(err.msg, "macro has no program"));
	assert_non_null(strstr(err.msg, "--lib"));
}

static void cut_metadata_is_refused_at_every_length(void **state)
{
	struct as_cargo_metadata m;

	for (size_t n = 0; n < strlen(workspace); n++) {
		assert_int_equal(as_cargo_metadata_parse(workspace, n, &m, &err), AS_E_FORMAT);
		as_cargo_metadata_clear(&m);
	}
	assert_int_equal(as_cargo_metadata_parse("[]", 2, &m, &err), AS_E_FORMAT);
}

#define APP "\"package_id\":\"path+file:///w/app#1.2.3-rc.1\""

static void message(struct as_cargo_built *b, const char *line)
{
	as_cargo_message(line, strlen(line),
			 &(struct as_cargo_wanted){&meta.packages.v[0],
						   &meta.packages.v[0].targets.v[1]},
			 b);
}

static void the_program_is_the_one_of_package_kind_and_name(void **state)
{
	struct as_cargo_built b = {0};

	message(&b, "{\"reason\":\"compiler-artifact\"," APP ",\"target\":{\"kind\":[\"bin\"],"
		    "\"name\":\"other\"},\"profile\":{\"test\":false},\"executable\":\"/t/"
		    "other\"}");
	message(&b, "{\"reason\":\"compiler-artifact\"," APP ",\"target\":{\"kind\":[\"lib\"],"
		    "\"name\":\"app\"},\"profile\":{\"test\":false},\"executable\":null}");
	message(&b, "{\"reason\":\"compiler-artifact\"," APP ",\"target\":{\"kind\":[\"bin\"],"
		    "\"name\":\"app\"},\"profile\":{\"test\":true},\"executable\":\"/t/"
		    "app-test\"}");
	message(&b,
		"{\"reason\":\"compiler-artifact\",\"package_id\":\"x\",\"target\":{\"kind\":"
		"[\"bin\"],\"name\":\"app\"},\"profile\":{\"test\":false},\"executable\":\"/"
		"y\"}");
	message(&b, "not json");
	message(&b, "{\"reason\":\"compiler-artifact\"");
	assert_null(b.executable);
	message(&b,
		"{\"reason\":\"compiler-artifact\"," APP ",\"target\":{\"kind\":[\"bin\"],"
		"\"name\":\"app\"},\"profile\":{\"test\":false},\"executable\":\"/t/app\"}");
	assert_string_equal(b.executable, "/t/app");
	as_cargo_built_clear(&b);
}

static void what_the_build_script_sets_the_program_gets(void **state)
{
	struct as_cargo_built b = {0};

	message(&b, "{\"reason\":\"build-script-executed\"," APP ",\"out_dir\":\"/o\",\"env\":"
		    "[[\"A\",\"1=2\"],[\"B\"]]}");
	assert_int_equal(b.environment.n, 2);
	assert_string_equal(b.environment.v[0], "OUT_DIR=/o");
	assert_string_equal(b.environment.v[1], "A=1=2");
	as_cargo_built_clear(&b);
}

static void what_goes_on_to_cargo_stands_in_its_words(void **state)
{
	static const char *const all[] = {
		"--features", "a,b",      "--target", "x86_64-x",       "--target-dir",
		"/t",         "--jobs",   "2",        "--all-features", "--no-default-features",
		"--offline",  "--locked", "--frozen"};
	struct as_cargo_words words;

	as_cargo_words(&(struct as_cargo_options){.features = "a,b",
						  .target = "x86_64-x",
						  .target_dir = "/t",
						  .jobs = "2",
						  .all_features = true,
						  .no_default_features = true,
						  .offline = true,
						  .locked = true,
						  .frozen = true},
		       &words);
	for (size_t i = 0; i < AS_ARRAY_LEN(all); i++)
		assert_string_equal(words.v[i], all[i]);
	assert_null(words.v[AS_ARRAY_LEN(all)]);
	as_cargo_words(&(struct as_cargo_options){.jobs = "1", .locked = true}, &words);
	assert_string_equal(words.v[0], "--jobs");
	assert_string_equal(words.v[1], "1");
	assert_string_equal(words.v[2], "--locked");
	assert_null(words.v[3]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_members_of_the_workspace_are_read),
		cmocka_unit_test(the_only_program_of_the_current_package_is_taken),
		cmocka_unit_test(of_several_programs_the_words_that_choose_are_listed),
		cmocka_unit_test(default_run_decides_between_programs),
		cmocka_unit_test(a_named_target_is_found_in_any_default_package),
		cmocka_unit_test(what_is_not_there_is_answered_with_what_is),
		cmocka_unit_test(cut_metadata_is_refused_at_every_length),
		cmocka_unit_test(the_program_is_the_one_of_package_kind_and_name),
		cmocka_unit_test(what_the_build_script_sets_the_program_gets),
		cmocka_unit_test(what_goes_on_to_cargo_stands_in_its_words),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
