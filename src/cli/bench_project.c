/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* assay bench --cargo, --against REV, --program FILE: suites of functions, of one build or of two. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/child.h"
#include "base/mem.h"
#include "base/sys.h"
#include "bench/project.h"
#include "cli/bench_explain.h"
#include "cli/bench_priv.h"
#include "cli/cmds_priv.h"
#include "harness/driver.h"
#include "history/history.h"
#include "results/judge.h"

#define INTERRUPTED 130
#define LISTED      8

static volatile int interrupted;

static void on_interrupt(int sig)
{
	interrupted++;
}

static void catch_signals(void)
{
	struct sigaction sa = {.sa_handler = on_interrupt};

	(void)sigaction(SIGINT, &sa, NULL);
	(void)sigaction(SIGTERM, &sa, NULL);
	(void)sigaction(SIGHUP, &sa, NULL);
}

static void tell_step(void *ctx, const char *text)
{
	AS_CLEANUP(as_buf_clear) struct as_buf line = {0};

	as_buf_addf(&line, "assay: %s\n", text);
	(void)as_write_all(STDERR_FILENO, line.p, line.len, NULL); /* progress only */
}

static void show_progress(void *ctx, size_t done, size_t n, const char *about)
{
	AS_CLEANUP(as_buf_clear) struct as_buf line = {0};

	if (done < n)
		as_buf_addf(&line, "\r\033[K%zu of %zu: ", done + 1, n);
	else
		as_buf_adds(&line, "\r\033[Kagain: ");
	as_fmt_quoted(&line, about, strlen(about));
	(void)as_write_all(STDERR_FILENO, line.p, line.len, NULL); /* progress only */
}

/* ---- results ---- */

static void list_one_sided(struct as_bench_notes *notes, const char *kind, const char *label,
			   char *const *v, size_t n)
{
	AS_CLEANUP(as_buf_clear) struct as_buf names = {0};

	for (size_t i = 0; i < n && i < LISTED; i++)
		as_buf_addf(&names, "%s%s", i ? ", " : "", v[i]);
	if (n > LISTED)
		as_buf_addf(&names, " and %zu more", n - LISTED);
	if (n)
		as_bench_note(notes, kind, "only in %s: %s", label, as_buf_str(&names));
}

static char *toolchain(const struct as_bench_project_args *p)
{
	const char *rustc = getenv("RUSTC");
	const char *argv[] = {rustc && *rustc ? rustc : "rustc", "--version", NULL};
	struct as_child c = {0};
	char *text = NULL;

	if (!p->cargo)
		return NULL;
	if (as_child_run(&(struct as_child_request){.argv = argv, .timeout_s = 10}, &c, NULL) ==
		    AS_OK &&
	    c.wait_status == 0)
		text = as_xstrndup(as_buf_str(&c.out), strcspn(as_buf_str(&c.out), "\n"));
	as_child_clear(&c);
	return text;
}

static void describe_revisions(const struct as_project *p, struct as_bench_set *set)
{
	const struct as_worktree *base = &p->trees.side[AS_BASE_SIDE];
	const struct as_worktree *head = &p->trees.side[AS_HEAD_SIDE];

	free(set->title);
	free(set->revision);
	set->title = as_xasprintf("%s against %s", head->label, base->label);
	set->revision = as_xstrdup(head->commit);
	if (p->trees.changed)
		as_bench_note(&set->notes, "uncommitted",
			      "the checkout holds %zu file%s that %s does not",
			      p->trees.changed, p->trees.changed == 1 ? "" : "s", head->commit);
	if (p->trees.same)
		as_bench_note(
			&set->notes, "same-files",
			"both sides are the same files: this compares a build with itself");
}

static void describe(const struct as_bench_project_args *a, const struct as_project *p,
		     struct as_suite_result *r)
{
	struct as_bench_set *set = &r->set;

	set->tool = as_xstrdup("assay " ASSAY_VERSION);
	set->machine = as_history_machine();
	set->toolchain = toolchain(a);
	set->time_s = as_realtime_ns() / 1000000000u;
	if (p->has_trees)
		describe_revisions(p, set);
	list_one_sided(&set->notes, "new", p->labels[1], r->added.v, r->added.n);
	list_one_sided(&set->notes, "removed", p->labels[0], r->removed.v, r->removed.n);
}

static int print_list(const struct as_suite_result *r, struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf out = {0};

	for (size_t i = 0; i < r->ids.n; i++)
		as_buf_addf(&out, "%s\n", r->ids.v[i]);
	return as_out_write(&out, err);
}

static double allocs_of(const struct as_bench_set *set, const char *name, const char *side)
{
	const struct as_bench *b = as_bench_find(set, name, side);

	return b ? b->allocs : NAN;
}

static const struct as_suite_place *place_of(const struct as_suite_result *r, const char *name)
{
	as_vec_foreach (p, &r->places) {
		if (strcmp(p->name, name) == 0)
			return p;
	}
	return NULL;
}

static int by_ratio(const void *a, const void *b)
{
	const struct as_bench_comparison *const *x = a, *const *y = b;

	return ((*x)->ratio.value < (*y)->ratio.value) -
	       ((*x)->ratio.value > (*y)->ratio.value);
}

static int explain_worst(const struct as_project *p, const struct as_suite_result *r,
			 struct as_error *err)
{
	AS_VEC(const struct as_bench_comparison *) slower = {0};
	int e = AS_OK;

	as_vec_foreach (c, &r->set.comparisons) {
		if (c->verdict == AS_BENCH_SLOWER && place_of(r, c->name))
			as_vec_push(&slower, c);
	}
	if (slower.n)
		qsort(slower.v, slower.n, sizeof *slower.v, by_ratio);
	for (size_t i = 0; i < slower.n && i < AS_EXPLAIN_MOST && e == AS_OK; i++) {
		const struct as_suite_place *place = place_of(r, slower.v[i]->name);

		e = as_bench_explain(
			&(struct as_explain){
				.name = slower.v[i]->name,
				.labels = {p->labels[0], p->labels[1]},
				.side = p->targets.v[place->target].side,
				.id = place->id,
				.iterations = place->iterations,
				.allocs = {allocs_of(&r->set, slower.v[i]->name, p->labels[0]),
					   allocs_of(&r->set, slower.v[i]->name, p->labels[1])},
				.interrupted = &interrupted},
			err);
	}
	as_vec_clear(&slower);
	return e;
}

static int finish(struct as_cmd_ctx *ctx, const struct as_project *p, struct as_suite_result *r,
		  struct as_error *err)
{
	struct as_bench_args *a = ctx->args;
	int e;

	if (a->project.list)
		return print_list(r, err);
	describe(&a->project, p, r);
	as_bench_judge(&r->set);
	as_bench_find_growth(&r->set, false);
	e = as_bench_print(ctx, &r->set, err);
	if (e == AS_OK && a->project.explain && !r->interrupted)
		e = explain_worst(p, r, err);
	if (e < 0)
		return e;
	if (r->interrupted)
		return INTERRUPTED;
	e = as_bench_exit(a, &r->set);
	return e ? e : r->failed ? AS_EXIT_ERROR : AS_EXIT_FINE;
}

/* ---- suites ---- */

static int measure(struct as_cmd_ctx *ctx, const struct as_project *p, const char *filter,
		   struct as_error *err)
{
	const struct as_bench_args *a = ctx->args;
	bool progress = isatty(STDERR_FILENO);
	struct as_suite_request q = {.targets = p->targets.v,
				     .ntargets = p->targets.n,
				     .sides = p->sides,
				     .labels = {p->labels[0], p->labels[1]},
				     .filter = filter,
				     .exact = a->project.exact,
				     .list = a->project.list,
				     .budget_s = (double)a->budget_ns / 1e9,
				     .delta = a->delta_percent / 100,
				     .layouts = (unsigned)a->project.layouts,
				     .folder = p->tmp,
				     .interrupted = &interrupted,
				     .progress = progress ? show_progress : NULL};
	struct as_suite_result result;
	int r = as_suite_run(&q, &result, err);

	if (progress)
		(void)as_write_all(STDERR_FILENO, "\r\033[K", 4, NULL); /* progress only */
	if (r == AS_OK)
		r = finish(ctx, p, &result, err);
	as_suite_result_clear(&result);
	return r;
}

/* -p is --prepare for hyperfine's users and --package for cargo's. */
static bool typed_short(const struct as_cmd_ctx *ctx, char letter)
{
	for (char **w = ctx->words; *w && strcmp(*w, "--") != 0; w++) {
		if ((*w)[0] == '-' && (*w)[1] == letter)
			return true;
	}
	return false;
}

static int check(struct as_cmd_ctx *ctx, struct as_bench_args *a, struct as_error *err)
{
	struct as_bench_project_args *p = &a->project;

	/* assay bench --against main, in a Cargo project */
	if (p->against && !p->build && !p->programs.n && access("Cargo.toml", R_OK) == 0)
		p->cargo = true;
	if (p->manifest_path && p->against)
		return as_fail(
			err, AS_E_USAGE, 0,
			"--manifest-path and --against do not go together: call it in the "
			"package's folder");
	if (p->cargo && (p->build || p->programs.n))
		return as_fail(err, AS_E_USAGE, 0, "--cargo and %s do not go together",
			       p->build ? "--build" : "--program");
	if (p->build && p->against && !p->programs.n && !ctx->noperands)
		return as_fail(err, AS_E_USAGE, 0,
			       "--build makes a program; name it: --against %s --build '%s' -- "
			       "./program args",
			       p->against, p->build);
	if (p->build && !p->against)
		return as_fail(err, AS_E_USAGE, 0, "--build goes with --against");
	if (p->against && !p->cargo && !p->build)
		return as_fail(
			err, AS_E_USAGE, 0,
			"how is it built? here is no Cargo.toml\n  assay bench --against %s "
			"--build make -- ./program args",
			p->against);
	if (p->explain && !p->against && p->programs.n < 2)
		return as_fail(
			err, AS_E_USAGE, 0,
			"--explain goes with two builds: --against REV, --program twice, "
			"or a command --vs another");
	if (a->prepare.n && p->cargo && !p->package && typed_short(ctx, 'p')) {
		p->package = a->prepare.v[0]; /* cargo bench -p PKG */
	} else if (a->prepare.n && p->cargo) {
		return as_fail(err, AS_E_USAGE, 0,
			       "--prepare is for commands; a package is chosen with --package");
	}
	if (p->against && p->programs.n > 1)
		return as_fail(err, AS_E_USAGE, 0, "with --against one --program is enough");
	if ((p->cargo || p->programs.n) && ctx->noperands > 1)
		return as_fail(err, AS_E_USAGE, 0, "one filter at most, not '%s' too%s",
			       ctx->operands[1],
			       ctx->literal < ctx->noperands
				       ? "; options of a harness are not handed on"
				       : "");
	return AS_OK;
}

static void make_request(const struct as_bench_args *a, const struct as_cargo_words *words,
			 struct as_project_request *ret)
{
	const struct as_bench_project_args *p = &a->project;

	*ret = (struct as_project_request){.use_cargo = p->cargo,
					   .cargo = {.package = p->package,
						     .bench = p->bench,
						     .profile = p->profile,
						     .manifest_path = p->manifest_path,
						     .workspace = p->workspace,
						     .words = words->v},
					   .against = p->against,
					   .build = p->build,
					   .programs = (const char *const *)p->programs.v,
					   .nprograms = p->programs.n,
					   .interrupted = &interrupted,
					   .say = tell_step};
}

/* ---- a command of two revisions ---- */

struct amend {
	const struct as_project *project;
	struct as_layout_command command;
	unsigned layouts;
	double budget_s;
	bool slower; /* found, and not moved */
};

static void amend(void *ctx, struct as_bench_set *set)
{
	struct amend *m = ctx;
	const struct as_project *p = m->project;
	const struct as_suite_target *t = &p->targets.v[0];
	struct as_layout_pair pair = {.exe = {t->side[0].exe, t->side[1].exe},
				      .watch = {t->side[0].watch, t->side[1].watch},
				      .path = as_xasprintf("%s/link", p->tmp)};

	as_vec_foreach (c, &set->comparisons) {
		m->command.by_cpu = c->metric && strcmp(c->metric, "cpu") == 0;
		/* interrupted: the verdict stays as it was, and the exit status says so */
		(void)as_layout_check(
			&(struct as_layout_check){.pair = &pair,
						  .layouts = m->layouts,
						  .budget_s = m->budget_s,
						  .interrupted = &interrupted,
						  .compare = as_layout_compare_commands,
						  .ctx = &m->command},
			c, NULL);
		m->slower |= c->verdict == AS_BENCH_SLOWER;
	}
	as_layout_pair_clear(&pair);
	describe_revisions(p, set);
}

/* base-program ARGS … --vs head-program ARGS …, as if they had been typed. */
static int compare_commands(struct as_cmd_ctx *ctx, const struct as_project *p,
			    struct as_error *err)
{
	static char vs[] = "--vs";
	struct as_bench_args *a = ctx->args;
	struct as_cmd_ctx two = *ctx;
	struct amend m = {.project = p,
			  .command = {.argv = ctx->operands, .interrupted = &interrupted},
			  .layouts = (unsigned)a->project.layouts,
			  .budget_s = a->budget_ns ? (double)a->budget_ns / 2e9 : 10};
	AS_VEC(char *) words = {0};
	int r;

	for (int k = 0; k < 2; k++) {
		if (k)
			as_vec_push(&words, vs);
		as_vec_push(&words, (char *)p->targets.v[0].side[k].exe);
		for (int i = 1; i < ctx->noperands; i++)
			as_vec_push(&words, ctx->operands[i]);
		if (a->names.n < 2)
			as_vec_push(&a->names, p->labels[k]);
	}
	two.noperands = (int)words.n;
	two.literal = 0;
	as_vec_push(&words, NULL);
	two.operands = words.v;
	a->amend = amend;
	a->amend_ctx = &m;
	r = as_bench_commands(&two, err);
	as_vec_clear(&words);
	if (r >= 0 && a->project.explain && m.slower) {
		const char *slash = strrchr(ctx->operands[0], '/');
		int e = as_bench_explain(
			&(struct as_explain){.name = slash ? slash + 1 : ctx->operands[0],
					     .labels = {p->labels[0], p->labels[1]},
					     .side = p->targets.v[0].side,
					     .words = {ctx->operands + 1, ctx->operands + 1},
					     .allocs = {NAN, NAN},
					     .interrupted = &interrupted},
			err);

		r = e < 0 ? e : r;
	}
	return r;
}

static int run(struct as_cmd_ctx *ctx, const struct as_project *p, struct as_error *err)
{
	const struct as_bench_project_args *a =
		&((const struct as_bench_args *)ctx->args)->project;
	bool given = !a->cargo && !a->programs.n; /* the program is the first operand */

	if (given && a->build &&
	    (a->as_command || !as_fn_is_program(p->targets.v[0].side[1].exe)))
		return compare_commands(ctx, p, err);
	return measure(ctx, p, given ? ctx->operands[1] : ctx->operands[0], err);
}

int as_bench_project(struct as_cmd_ctx *ctx, struct as_error *err)
{
	struct as_bench_args *a = ctx->args;
	struct as_project_request q;
	struct as_cargo_words words;
	struct as_project project = {.trees.lock = -1};
	int status = 0, r = check(ctx, a, err);

	if (r < 0)
		return r;
	catch_signals();
	as_cargo_words(&a->project.how, &words);
	make_request(a, &words, &q);
	if (!a->project.cargo && !a->project.programs.n) { /* the first operand */
		q.programs = (const char *const *)ctx->operands;
		q.nprograms = 1;
	}
	r = as_project_open(&q, &project, &status, err);
	if (r == AS_OK)
		r = run(ctx, &project, err);
	else if (status && !q.against)
		r = status; /* cargo has said it all */
	as_project_close(&project);
	return r == AS_E_CANCELLED ? INTERRUPTED : r;
}

bool as_bench_is_program(const struct as_cmd_ctx *ctx)
{
	const struct as_bench_args *a = ctx->args;
	AS_CLEANUP(as_free_autop) char *path = NULL, *own = NULL;

	/* assay bench -- ./my_bench [FILTER]: words of options are for a command */
	if (ctx->literal != 0 || ctx->noperands < 1 || ctx->noperands > 2 ||
	    a->project.as_command || (ctx->noperands == 2 && ctx->operands[1][0] == '-'))
		return false;
	path = as_history_which(ctx->operands[0]);
	own = realpath("/proc/self/exe", NULL);
	return path && (!own || strcmp(path, own) != 0) && as_fn_is_program(path);
}
