/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * assay cargo CMD, also as `cargo assay CMD`: builds a target of a Cargo project with lines
 * and runs CMD on it. Words that choose and build the target are cargo's, all others CMD's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cargo/cargo.h"
#include "cli/cmds_priv.h"

struct cargo_args {
	const char *bin, *example, *test, *bench, *package, *profile, *manifest_path;
	bool lib;
	struct as_cargo_options how;
};

#define CHOICE(name_, field_, arg_, help_)                                                     \
	{                                                                                      \
		.name = name_, .type = AS_OPT_TEXT, .at = offsetof(struct cargo_args, field_), \
		.arg = arg_, .group = "What is built", .help = help_                           \
	}
#define BUILD_TEXT(name_, field_, arg_, help_)                                                 \
	{                                                                                      \
		.name = name_, .type = AS_OPT_TEXT, .at = offsetof(struct cargo_args, field_), \
		.arg = arg_, .group = "How it is built", .help = help_                         \
	}
#define BUILD_FLAG(name_, field_, help_)                                                       \
	{                                                                                      \
		.name = name_, .type = AS_OPT_FLAG, .at = offsetof(struct cargo_args, field_), \
		.group = "How it is built", .help = help_                                      \
	}

static const struct as_option cargo_options[] = {
	CHOICE("bin", bin, "NAME", "this program; without a choice, what cargo run would run"),
	CHOICE("example", example, "NAME", "this example"),
	CHOICE("test", test, "NAME", "the tests of tests/NAME"),
	CHOICE("bench", bench, "NAME", "this benchmark; it is run with --bench"),
	{.name = "lib",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct cargo_args, lib),
	 .group = "What is built",
	 .help = "the unit tests of the library"},
	{.name = "package",
	 .letter = 'p',
	 .type = AS_OPT_TEXT,
	 .at = offsetof(struct cargo_args, package),
	 .arg = "PKG",
	 .def_text = "the current folder's",
	 .group = "What is built",
	 .help = "package of the workspace"},
	BUILD_TEXT("profile", profile, "P",
		   "cargo profile; release unless this says otherwise, bench for --bench"),
	BUILD_TEXT("features", how.features, "LIST", "features to switch on"),
	BUILD_FLAG("all-features", how.all_features, "all of them"),
	BUILD_FLAG("no-default-features", how.no_default_features, "none but those asked for"),
	BUILD_TEXT("target", how.target, "TRIPLE", "build for this target triple"),
	BUILD_TEXT("target-dir", how.target_dir, "DIR", "where cargo builds"),
	BUILD_TEXT("manifest-path", manifest_path, "FILE", "the Cargo.toml"),
	BUILD_TEXT("jobs", how.jobs, "N", "compilers at a time"),
	BUILD_FLAG("offline", how.offline, "without the network"),
	BUILD_FLAG("locked", how.locked, "with Cargo.lock as it is"),
	BUILD_FLAG("frozen", how.frozen, "both of these"),
	{0},
};

/* The words of CMD, parted. All point into the command line. */
struct parted {
	AS_VEC(char *) cargo; /* to be parsed as cargo_options */
	AS_VEC(char *) own;   /* CMD and its options */
	AS_VEC(char *) program;
};

static const struct as_option *cargo_option(const char *word)
{
	size_t n = strcspn(word, "=");

	for (const struct as_option *o = cargo_options; o->name; o++) {
		if (word[0] == '-' && word[1] == '-' && strlen(o->name) == n - 2 &&
		    strncmp(word + 2, o->name, n - 2) == 0)
			return o;
		if (o->letter && word[0] == '-' && word[1] == o->letter)
			return o;
	}
	return NULL;
}

static void part(char **words, struct parted *ret)
{
	for (; *words && strcmp(*words, "--") != 0; words++) {
		const struct as_option *o = cargo_option(*words);
		bool joined = o && (strchr(*words, '=') ||
				    (o->letter && (*words)[1] == o->letter && (*words)[2]));

		if (!o) {
			as_vec_push(&ret->own, *words);
			continue;
		}
		as_vec_push(&ret->cargo, *words);
		if (o->type != AS_OPT_FLAG && !joined && words[1])
			as_vec_push(&ret->cargo, *++words);
	}
	for (words += *words != NULL; *words; words++)
		as_vec_push(&ret->program, *words);
}

static int request_of(const struct cargo_args *a, struct as_cargo_request *q,
		      struct as_error *err)
{
	const char *const names[] = {a->bin, a->example, a->test, a->bench};
	int given = a->lib;

	*q = (struct as_cargo_request){.kind = a->lib ? AS_CARGO_LIB : AS_CARGO_BIN,
				       .package = a->package,
				       .profile = a->profile,
				       .manifest_path = a->manifest_path};
	for (int k = 0; k < (int)AS_ARRAY_LEN(names); k++) {
		if (!names[k])
			continue;
		given++;
		q->kind = (enum as_cargo_kind)k; /* the same order */
		q->name = names[k];
	}
	if (given > 1)
		return as_fail(err, AS_E_USAGE, 0,
			       "one of --bin, --example, --test, --bench and --lib at a time");
	return AS_OK;
}

/* own… -- executable [--bench] program… */
static int run_on(struct as_cmd_ctx *ctx, const struct as_cmd *cmd, struct parted *w,
		  struct as_cargo_built *built, struct as_error *err)
{
	static char ends[] = "--", bench[] = "--bench";
	struct as_common_args common = *ctx->common;
	int r;

	for (size_t i = 0; i < built->environment.n; i++) {
		char *name = built->environment.v[i], *value = strchr(name, '=');

		*value = 0;
		if (setenv(name, value + 1, 1) < 0)
			return as_fail(err, AS_E_IO, errno, "cannot set '%s'", name);
	}
	as_vec_push(&w->own, ends);
	as_vec_push(&w->own, built->executable);
	if (built->wants_bench_flag)
		as_vec_push(&w->own, bench);
	for (size_t i = 0; i < w->program.n; i++)
		as_vec_push(&w->own, w->program.v[i]);
	as_vec_push(&w->own, NULL);
	r = as_command_run(&(struct as_command_line){.cmd = cmd,
						     .nwords = (int)w->own.n - 1,
						     .words = w->own.v,
						     .program_folder = built->folder,
						     .program_name = built->name},
			   &common, err);
	return r;
}

static int build_and_run(struct as_cmd_ctx *ctx, const struct as_cmd *cmd, struct parted *w,
			 struct as_error *err)
{
	struct as_options_request parse = {.table = cargo_options, .args = ctx->args};
	struct as_cargo_words words;
	struct as_cargo_request q;
	struct as_cargo_built built = {0};
	int left, status = 0, r;

	/* On top of those given before CMD: no defaults, so nothing is set back. */
	as_vec_push(&w->cargo, NULL);
	r = as_options_parse(&parse, (int)w->cargo.n - 1, w->cargo.v, &left, err);
	if (r == AS_OK)
		r = request_of(ctx->args, &q, err);
	if (r < 0)
		return r;
	as_cargo_words(&((const struct cargo_args *)ctx->args)->how, &words);
	q.words = words.v;
	r = as_cargo_build(&q, &built, &status, err);
	if (r == AS_OK)
		r = run_on(ctx, cmd, w, &built, err);
	else if (status)
		r = status; /* cargo has said it all */
	as_cargo_built_clear(&built);
	return r;
}

/* ---- cargo assay bench: what cargo bench would run ---- */

/* "--NAME VALUE" of each option that stood before CMD. */
static void hand_on(const struct as_cmd_ctx *ctx, struct as_texts *made, struct parted *w)
{
	for (const struct as_option *o = cargo_options; o->name; o++) {
		const char *at = (const char *)ctx->args + o->at, *text = NULL;
		bool given = false;

		if (o->type == AS_OPT_FLAG)
			memcpy(&given, at, sizeof given);
		else
			memcpy(&text, at, sizeof text);
		if (!given && !text)
			continue;

		char *name = as_xasprintf("--%s", o->name);

		as_vec_push(made, name);
		as_vec_push(&w->own, name);
		if (o->type != AS_OPT_FLAG)
			as_vec_push(&w->own, (char *)(uintptr_t)text);
	}
}

/* Forms of the command that build nothing. */
static bool is_of_results(const char *word)
{
	static const char *const words[] = {"compare", "show", "export", "history",
					    "--self-test"};

	for (size_t i = 0; word && i < AS_ARRAY_LEN(words); i++) {
		if (strcmp(word, words[i]) == 0)
			return true;
	}
	return false;
}

/* bench WORDS -> bench --cargo WORDS, with -p as cargo has it. */
static int run_bench(struct as_cmd_ctx *ctx, struct as_common_args *common,
		     struct as_error *err)
{
	static char cargo[] = "--cargo", package[] = "--package";
	struct as_texts made = {0};
	struct parted w = {0};
	bool ended = false;
	int r;

	as_vec_push(&w.own, ctx->operands[0]);
	if (!is_of_results(ctx->operands[1]))
		as_vec_push(&w.own, cargo);
	hand_on(ctx, &made, &w);
	for (char **word = ctx->operands + 1; *word; word++) {
		bool short_form = !ended && (*word)[0] == '-' && (*word)[1] == 'p';

		ended |= strcmp(*word, "--") == 0;
		as_vec_push(&w.own, short_form ? package : *word);
		if (short_form && (*word)[2])
			as_vec_push(&w.own, *word + 2 + ((*word)[2] == '='));
	}
	as_vec_push(&w.own, NULL);
	r = as_command_run(&(struct as_command_line){.cmd = &as_cmd_bench,
						     .nwords = (int)w.own.n - 1,
						     .words = w.own.v},
			   common, err);
	if (r < 0) /* as of bench itself, not of a command that runs a program */
		ctx->fail_exit = r == AS_E_USAGE ? AS_EXIT_USAGE : AS_EXIT_ERROR;
	as_vec_foreach (text, &made)
		free((char *)(uintptr_t)*text);
	as_vec_clear(&made);
	as_vec_clear(&w.own);
	return r;
}

static int cargo_run(struct as_cmd_ctx *ctx, struct as_error *err)
{
	const struct as_cmd *cmd = as_command_find(ctx->operands[0]);
	struct as_common_args common = *ctx->common;
	struct parted w = {0};
	bool help = false;
	int r;

	if (!cmd || cmd == &as_cmd_cargo)
		return as_command_unknown(ctx->operands[0], err);
	if (cmd == &as_cmd_bench)
		return run_bench(ctx, &common, err);
	part(ctx->operands, &w);
	for (size_t i = 0; i < w.own.n; i++)
		help |= strcmp(w.own.v[i], "--help") == 0 || strcmp(w.own.v[i], "-h") == 0;
	/* Commands that look at a session need nothing built. */
	if (help || !(cmd->flags & AS_CMD_RUNS_PROGRAM))
		r = as_command_run(&(struct as_command_line){.cmd = cmd,
							     .nwords = ctx->noperands,
							     .words = ctx->operands},
				   &common, err);
	else
		r = build_and_run(ctx, cmd, &w, err);
	as_vec_clear(&w.cargo);
	as_vec_clear(&w.own);
	as_vec_clear(&w.program);
	return r;
}

const struct as_cmd as_cmd_cargo = {
	.name = "cargo",
	.group = "Measure",
	.summary = "build a target of a Cargo project and run a command on it",
	.usage = "CMD [options of CMD] [what to build] [-- ARGS…]",
	.options = cargo_options,
	.examples = {{"cargo assay record -- input.txt",
		      "the program that cargo run would run"},
		     {"cargo assay record --bench parse -F 4999", "a benchmark"},
		     {"cargo assay bench -p server parse",
		      "what cargo bench would run, measured"}},
	.operand = "a command: record",
	.min_operands = 1,
	.max_operands = -1,
	.flags = AS_CMD_RUNS_PROGRAM,
	.args_size = sizeof(struct cargo_args),
	.run = cargo_run,
};
