/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Options of assay bench for projects: which programs, how they are built, against what. */
#ifndef AS_CLI_BENCH_PROJECT_H
#define AS_CLI_BENCH_PROJECT_H

#include "cargo/cargo.h"
#include "cli/options.h"

struct as_bench_project_args {
	bool cargo, workspace, list, exact, explain, self_test, loaded, as_command;
	const char *against, *build, *package, *bench, *profile, *manifest_path;
	struct as_texts programs;
	struct as_cargo_options how;
	int64_t layouts, count;
};

#define AS_BENCH_PROJECT_(T, field_, name_, type_, arg_, group_, help_)                        \
	{                                                                                      \
		.name = name_, .type = type_, .at = offsetof(T, project.field_), .arg = arg_,  \
		.group = group_, .help = help_                                                 \
	}
#define AS_BENCH_PROJECT_TEXT(T, field_, name_, arg_, group_, help_)                           \
	AS_BENCH_PROJECT_(T, field_, name_, AS_OPT_TEXT, arg_, group_, help_)
#define AS_BENCH_PROJECT_FLAG(T, field_, name_, group_, help_)                                 \
	AS_BENCH_PROJECT_(T, field_, name_, AS_OPT_FLAG, NULL, group_, help_)

/* T: the command's argument struct, with a member `project`. */
#define AS_BENCH_PROJECT_OPTIONS(T)                                                            \
	AS_BENCH_PROJECT_FLAG(                                                                 \
		T, cargo, "cargo", "Benchmarks of a project",                                  \
		"what cargo bench would run, built and measured; the operand is "              \
		"a filter"),                                                                   \
		AS_BENCH_PROJECT_TEXT(                                                         \
			T, against, "against", "REV", "Benchmarks of a project",               \
			"build this git revision and the checkout, and compare them; ends "    \
			"with 3 when something is slower"),                                    \
		AS_BENCH_PROJECT_TEXT(T, build, "build", "COMMAND", "Benchmarks of a project", \
				      "with --against: how the program is built, instead of "  \
				      "cargo; run by a shell in each checkout"),               \
		AS_BENCH_PROJECT_(T, programs, "program", AS_OPT_TEXTS, "FILE",                \
				  "Benchmarks of a project",                                   \
				  "a bench program, any harness; twice: the second against "   \
				  "the first"),                                                \
		AS_BENCH_PROJECT_FLAG(T, as_command, "as-command", "Benchmarks of a project",  \
				      "run a bench program as a command like any other"),      \
		AS_BENCH_PROJECT_FLAG(T, list, "list", "Benchmarks of a project",              \
				      "say which benchmarks there are"),                       \
		AS_BENCH_PROJECT_FLAG(T, exact, "exact", "Benchmarks of a project",            \
				      "the filter is a benchmark's whole name"),               \
		{.name = "layouts",                                                            \
		 .type = AS_OPT_INT,                                                           \
		 .at = offsetof(T, project.layouts),                                           \
		 .arg = "N",                                                                   \
		 .min = 1,                                                                     \
		 .max = 64,                                                                    \
		 .def_text = "8, where a difference may be of the layout",                     \
		 .group = "Benchmarks of a project",                                           \
		 .help = "link both sides so often, each time with other distances; 1: not"},  \
		AS_BENCH_PROJECT_FLAG(T, explain, "explain", "Benchmarks of a project",        \
				      "of what is slower: record both sides, show what "       \
				      "changed"),                                              \
		AS_BENCH_PROJECT_TEXT(T, package, "package", "PKG", "How cargo builds it",     \
				      "package of the workspace; with --cargo also -p"),       \
		AS_BENCH_PROJECT_FLAG(T, workspace, "workspace", "How cargo builds it",        \
				      "all packages of it"),                                   \
		AS_BENCH_PROJECT_TEXT(T, bench, "bench", "NAME", "How cargo builds it",        \
				      "only this bench target"),                               \
		AS_BENCH_PROJECT_TEXT(T, profile, "profile", "P", "How cargo builds it",       \
				      "cargo profile; bench unless this says otherwise"),      \
		AS_BENCH_PROJECT_TEXT(T, how.features, "features", "LIST",                     \
				      "How cargo builds it", "features to switch on"),         \
		AS_BENCH_PROJECT_FLAG(T, how.all_features, "all-features",                     \
				      "How cargo builds it", "all of them"),                   \
		AS_BENCH_PROJECT_FLAG(T, how.no_default_features, "no-default-features",       \
				      "How cargo builds it", "none but those asked for"),      \
		AS_BENCH_PROJECT_TEXT(T, how.target, "target", "TRIPLE",                       \
				      "How cargo builds it", "build for this target triple"),  \
		AS_BENCH_PROJECT_TEXT(T, manifest_path, "manifest-path", "FILE",               \
				      "How cargo builds it", "the Cargo.toml"),                \
		AS_BENCH_PROJECT_TEXT(T, how.jobs, "jobs", "N", "How cargo builds it",         \
				      "compilers at a time"),                                  \
		AS_BENCH_PROJECT_FLAG(T, how.offline, "offline", "How cargo builds it",        \
				      "without the network"),                                  \
		AS_BENCH_PROJECT_FLAG(T, how.locked, "locked", "How cargo builds it",          \
				      "with Cargo.lock as it is"),                             \
		AS_BENCH_PROJECT_FLAG(T, how.frozen, "frozen", "How cargo builds it",          \
				      "both of these"),                                        \
		AS_BENCH_PROJECT_FLAG(T, self_test, "self-test", "This machine",               \
				      "compare things with themselves: how often is that "     \
				      "called a difference, and what can be seen here"),       \
		AS_BENCH_PROJECT_FLAG(T, loaded, "loaded", "This machine",                     \
				      "with --self-test: while each CPU has a busy loop of "   \
				      "its own"),                                              \
	{                                                                                      \
		.name = "count", .type = AS_OPT_INT, .at = offsetof(T, project.count),         \
		.arg = "N", .min = 2, .max = 100000, .def_text = "200",                        \
		.group = "This machine", .help = "comparisons of --self-test"                  \
	}

struct as_cmd_ctx;

/* ---- bench_project.c: --cargo, --against, --program ---- */

int as_bench_project(struct as_cmd_ctx *ctx, struct as_error *err);
/* The words behind "--" run a bench program, which is a suite rather than a command. */
bool as_bench_is_program(const struct as_cmd_ctx *ctx);

/* ---- bench_self_test.c ---- */

int as_bench_self_test(struct as_cmd_ctx *ctx, struct as_error *err);

#endif
