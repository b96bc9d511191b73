/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* assay bench COMMAND …: from words to commands, measured and told. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "cli/bench_explain.h"
#include "cli/bench_priv.h"
#include "cli/cmds_priv.h"
#include "history/history.h"
#include "results/judge.h"
#include "view/text/style.h"

#define MIN_RUNS     10
#define MAX_RUNS     10000
#define ENOUGH_S     3  /* of one command */
#define BUDGET_S     20 /* of each comparison */
#define UNTIL_S      60
#define INTERRUPTED  130
#define PROGRESS_S   0.1
#define COMMANDS_MAX 1000

static volatile int interrupted;

static void on_interrupt(int sig)
{
	interrupted++;
}

/* What stands in a place of the command line: a text, or words behind "--". */
struct given {
	const char *text; /* NULL: words */
	char **words;
	size_t n;
};
struct work {
	struct as_cmd_ctx *ctx;
	const struct as_bench_args *a;
	AS_VEC(struct given) given;
	struct as_params params;
	AS_VEC(struct as_command) commands;
	struct as_command overhead;
	const char *shell; /* NULL: none */
	bool ignored[256];
};

/* ---- which commands ---- */

static void give_text(struct work *w, const char *text)
{
	as_vec_push(&w->given, (struct given){.text = text});
}

/* PROGRAM ARGS … --vs PROGRAM ARGS …; one word with blanks is a text. */
static int give_words(struct work *w, char **words, size_t n, struct as_error *err)
{
	for (size_t from = 0, i = 0; i <= n && n; i++) {
		if (i < n && strcmp(words[i], "--vs") != 0)
			continue;
		if (i == from)
			return as_fail(err, AS_E_USAGE, 0, "--vs stands between two commands");
		if (i - from == 1 && strpbrk(words[from], " \t\n") &&
		    access(words[from], X_OK) < 0)
			give_text(w, words[from]);
		else
			as_vec_push(&w->given,
				    (struct given){.words = words + from, .n = i - from});
		from = i + 1;
	}
	return AS_OK;
}

static int find_given(struct work *w, struct as_error *err)
{
	const struct as_cmd_ctx *ctx = w->ctx;

	if (w->a->reference)
		give_text(w, w->a->reference);
	for (int i = 0; i < ctx->literal; i++)
		give_text(w, ctx->operands[i]);

	int r = give_words(w, ctx->operands + ctx->literal,
			   (size_t)(ctx->noperands - ctx->literal), err);

	for (size_t i = 0; i < w->a->vs.n; i++)
		give_text(w, w->a->vs.v[i]);
	if (r == AS_OK && !w->given.n)
		r = as_fail(err, AS_E_USAGE, 0, "bench needs a command\nassay bench --help");
	return r;
}

static int add_scan(struct work *w, const char *const *scan, struct as_error *err)
{
	const char *range[3] = {scan[1], scan[2], w->a->step};

	return as_params_scan(&w->params, scan[0], range, err);
}

static int add_param(struct work *w, const char *name, const char *values, struct as_error *err)
{
	const char *dots = strstr(values, "..");
	AS_CLEANUP(as_free_autop) char *with_step = NULL;

	if (w->a->step && dots && !strstr(dots + 2, ".."))
		with_step = as_xasprintf("%s..%s", values, w->a->step);
	return as_params_add(&w->params, name, with_step ? with_step : values, err);
}

static int find_params(struct work *w, struct as_error *err)
{
	const struct as_bench_args *a = w->a;
	int r = AS_OK;

	for (size_t i = 0; i < a->params.n && r == AS_OK; i += 2)
		r = add_param(w, a->params.v[i], a->params.v[i + 1], err);
	for (size_t i = 0; i < a->scans.n && r == AS_OK; i += 3)
		r = add_scan(w, a->scans.v + i, err);
	for (size_t i = 0; i < a->lists.n && r == AS_OK; i += 2)
		r = as_params_add(&w->params, a->lists.v[i], a->lists.v[i + 1], err);
	if (r == AS_OK && a->step && !a->params.n && !a->scans.n)
		r = as_fail(err, AS_E_USAGE, 0, "--step goes with --param or -P");
	return r;
}

/* ---- a command ---- */

static void shell_words(struct work *w, const char *text, struct as_words *ret)
{
	struct as_words shell = {0};

	/* "bash --norc" is a shell, too; it was split before */
	if (as_words_split(w->shell, &shell, NULL) < 0)
		as_vec_push(&shell, as_xstrdup("/bin/sh"));
	for (size_t i = 0; i < shell.n; i++)
		as_vec_push(ret, as_xstrdup(shell.v[i]));
	as_vec_push(ret, as_xstrdup("-c"));
	as_vec_push(ret, as_xstrdup(text));
	as_vec_push(ret, NULL);
	ret->n--;
	as_words_clear(&shell);
}

static int text_words(struct work *w, const char *text, struct as_words *ret,
		      struct as_error *err)
{
	if (!w->shell)
		return as_words_split(text, ret, err);
	shell_words(w, text, ret);
	return AS_OK;
}

static char *text_of_words(const struct given *g, const struct as_params *p, size_t i)
{
	struct as_buf out = {0};

	for (size_t k = 0; k < g->n; k++) {
		AS_CLEANUP(as_free_autop) char *word = as_params_fill(p, i, g->words[k]);

		as_buf_adds(&out, k ? " " : "");
		if (as_style_plain(word))
			as_style_shell(&out, word);
		else
			as_fmt_quoted(&out, word, strlen(word));
	}
	return as_buf_detach(&out);
}

/* Given once, or once for each command. */
static int one_of(const struct work *w, const struct as_texts *texts, size_t k,
		  const char *option, const char **ret, struct as_error *err)
{
	*ret = NULL;
	if (texts->n == 1)
		*ret = texts->v[0];
	else if (texts->n == w->given.n)
		*ret = texts->v[k];
	else if (texts->n)
		return as_fail(err, AS_E_USAGE, 0,
			       "--%s is given once, or once for each of the %zu commands, not "
			       "%zu times",
			       option, w->given.n, texts->n);
	return AS_OK;
}

static int fill_around(const struct work *w, size_t k, size_t i, struct as_command *c,
		       struct as_error *err)
{
	const struct as_bench_args *a = w->a;
	const char *prepare, *conclude, *output;
	int r = one_of(w, &a->prepare, k, "prepare", &prepare, err);

	if (r == AS_OK)
		r = one_of(w, &a->conclude, k, "conclude", &conclude, err);
	if (r == AS_OK)
		r = one_of(w, &a->output, k, "output", &output, err);
	if (r < 0)
		return r;
	c->prepare = as_params_fill(&w->params, i, prepare);
	c->conclude = as_params_fill(&w->params, i, conclude);
	c->output = as_params_fill(&w->params, i, a->show_output ? "inherit" : output);
	c->input = as_params_fill(&w->params, i, a->input);
	c->setup = as_params_fill(&w->params, i, a->setup);
	c->cleanup = as_params_fill(&w->params, i, a->cleanup);
	for (size_t p = 0; p < w->params.n; p++)
		as_vec_push(&c->params, (struct as_bench_param){
						as_xstrdup(w->params.v[p].name),
						as_xstrdup(as_params_value(&w->params, i, p))});
	return AS_OK;
}

/* -n for each command, or for each one that parameters make of them. */
static char *name_of(const struct work *w, size_t k, size_t i, const char *text)
{
	const struct as_texts *names = &w->a->names;
	size_t place = i * w->given.n + k;
	bool has_reference = w->a->reference;

	if (has_reference && k == 0 && w->a->reference_name)
		return as_params_fill(&w->params, i, w->a->reference_name);
	if (has_reference && k == 0)
		return as_xstrdup(text);
	k -= has_reference;
	if (names->n > w->given.n - has_reference && place < names->n)
		return as_xstrdup(names->v[place]);
	return k < names->n ? as_params_fill(&w->params, i, names->v[k]) : as_xstrdup(text);
}

static bool is_taken(const struct work *w, const char *name)
{
	as_vec_foreach (other, &w->commands) {
		if (strcmp(other->name, name) == 0)
			return true;
	}
	return false;
}

/* Two of one name could not be told apart. */
static void make_unique(struct work *w, struct as_command *c)
{
	AS_CLEANUP(as_free_autop) char *name = as_xstrdup(c->name);

	for (int n = 2; is_taken(w, name); n++) {
		free(name);
		name = as_xasprintf("%s (%d)", c->name, n);
	}
	free(c->name);
	c->name = AS_STEAL(name);
}

static int add_command(struct work *w, size_t k, size_t i, struct as_error *err)
{
	const struct given *g = &w->given.v[k];
	struct as_command c = {0};
	int r = AS_OK;

	c.text = g->text ? as_params_fill(&w->params, i, g->text)
			 : text_of_words(g, &w->params, i);
	if (g->text || w->shell) {
		r = text_words(w, c.text, &c.words, err);
	} else {
		for (size_t n = 0; n < g->n; n++)
			as_vec_push(&c.words, as_params_fill(&w->params, i, g->words[n]));
		as_vec_push(&c.words, NULL);
		c.words.n--;
	}
	if (r == AS_OK)
		r = fill_around(w, k, i, &c, err);
	if (r < 0) {
		as_command_clear(&c);
		return r;
	}
	c.name = name_of(w, k, i, c.text);
	make_unique(w, &c);
	as_vec_push(&w->commands, c);
	return AS_OK;
}

/* Parameters without a place would make the same command again and again. */
static int check_params_used(const struct work *w, struct as_error *err)
{
	as_vec_foreach (p, &w->params) {
		AS_CLEANUP(as_free_autop) char *place = as_xasprintf("{%s}", p->name);
		bool used = w->a->setup && strstr(w->a->setup, place);

		as_vec_foreach (g, &w->given) {
			used |= g->text && strstr(g->text, place);
			for (size_t i = 0; i < g->n; i++)
				used |= strstr(g->words[i], place) != NULL;
		}
		for (size_t i = 0; i < w->a->prepare.n; i++)
			used |= strstr(w->a->prepare.v[i], place) != NULL;
		if (!used)
			return as_fail(err, AS_E_USAGE, 0,
				       "no command has a place for the parameter '%s': %s",
				       p->name, place);
	}
	return AS_OK;
}

static int make_commands(struct work *w, struct as_error *err)
{
	size_t combinations;
	int r = find_given(w, err);

	if (r == AS_OK)
		r = find_params(w, err);
	if (r == AS_OK)
		r = check_params_used(w, err);
	if (r < 0)
		return r;
	combinations = as_params_count(&w->params);
	if (combinations * w->given.n > COMMANDS_MAX)
		return as_fail(err, AS_E_LIMIT, 0, "%zu commands are more than %d",
			       combinations * w->given.n, COMMANDS_MAX);
	for (size_t i = 0; i < combinations && r == AS_OK; i++) {
		/* one reference, for all combinations */
		bool again = i && w->a->reference && !strchr(w->a->reference, '{');

		for (size_t k = again; k < w->given.n && r == AS_OK; k++)
			r = add_command(w, k, i, err);
	}
	return r;
}

/* ---- shells and what is taken off ---- */

static bool is_shell_name(const char *word)
{
	static const char *const names[] = {"sh",  "bash", "dash", "zsh",
					    "ksh", "fish", "none", "default"};
	const char *slash = strrchr(word, '/');

	for (size_t i = 0; i < AS_ARRAY_LEN(names); i++) {
		if (strcmp(slash ? slash + 1 : word, names[i]) == 0)
			return true;
	}
	return false;
}

static int find_shell(struct work *w, struct as_error *err)
{
	const struct as_bench_args *a = w->a;
	const struct as_cmd_ctx *ctx = w->ctx;
	struct as_words words = {0};
	int r;

	if (!a->shell || a->no_shell || strcmp(a->shell, "none") == 0)
		return AS_OK;
	if (ctx->literal > 1 && is_shell_name(ctx->operands[0]) &&
	    strcmp(a->shell, "default") == 0)
		return as_fail(err, AS_E_USAGE, 0,
			       "--shell takes its value behind '=': --shell=%s",
			       ctx->operands[0]);
	w->shell = strcmp(a->shell, "default") == 0 ? "/bin/sh" : a->shell;
	r = as_words_split(w->shell, &words, err);
	if (r == AS_OK)
		as_words_clear(&words);
	return r;
}

static int make_overhead(struct work *w, struct as_error *err)
{
	const char *text = w->a->overhead ? w->a->overhead : "";

	if (!w->a->overhead && !w->shell)
		return AS_OK;
	w->overhead.text = as_xstrdup(text);
	w->overhead.name = as_xstrdup(text);
	return text_words(w, text, &w->overhead.words, err);
}

/* ---- how they are measured ---- */

static int find_ignored(struct work *w, struct as_error *err)
{
	const char *p = w->a->ignore_failure;

	if (!p || strcmp(p, "all") == 0 || strcmp(p, "all-non-zero") == 0)
		return AS_OK;
	for (bool more = true; more; p += more) {
		size_t n = strcspn(p, ",");
		AS_CLEANUP(as_free_autop) char *number = as_xstrndup(p, n);
		uint64_t code;

		if (!as_parse_u64(number, &code) || code > 255)
			return as_fail(err, AS_E_USAGE, 0,
				       "--ignore-failure takes exit statuses (1,2), not '%s'",
				       w->a->ignore_failure);
		w->ignored[code] = true;
		p += n;
		more = *p == ',';
	}
	return AS_OK;
}

static void make_rounds(const struct work *w, struct as_rounds_request *q)
{
	const struct as_bench_args *a = w->a;
	bool some_codes = a->ignore_failure && strncmp(a->ignore_failure, "all", 3) != 0;
	size_t n = w->commands.n;

	q->warmup = (uint64_t)a->warmup;
	q->min_runs = (uint64_t)(a->min_runs ? a->min_runs : MIN_RUNS);
	q->max_runs = (uint64_t)(a->max_runs ? a->max_runs : MAX_RUNS);
	q->min_runs = a->min_runs ? q->min_runs : AS_MIN(q->min_runs, q->max_runs);
	if (a->runs)
		q->min_runs = q->max_runs = (uint64_t)a->runs;
	q->max_runs = AS_MAX(q->max_runs, q->min_runs);
	q->until = a->until_percent / 100;
	q->enough_s = ENOUGH_S;
	q->delta = a->delta_percent / 100;
	q->budget_s = (double)a->budget_ns / 1e9;
	q->budget_hard = a->budget_ns > 0;
	if (!a->budget_ns && !a->runs)
		q->budget_s = a->until_percent > 0 ? UNTIL_S * (double)n
			      : n > 1              ? BUDGET_S * (double)(n - 1)
						   : 0;
	if (q->budget_hard && n == 1 && !(q->until > 0))
		q->enough_s = AS_MIN(q->enough_s, q->budget_s);
	q->timeout_s = (double)a->timeout_ns / 1e9;
	q->ignore_failure = a->ignore_failure && !some_codes;
	q->ignored = some_codes ? w->ignored : NULL;
	q->silent = !a->show_output;
	q->keep_strays = a->leave_running;
	q->interrupted = &interrupted;
	q->began_ns = as_now_ns();
}

struct progress {
	uint64_t next_ns;
	size_t runs;
	const struct work *w;
};

static void show_progress(void *ctx, size_t arm, size_t n, const struct as_look *look)
{
	struct progress *p = ctx;
	uint64_t now = as_now_ns();
	struct as_buf b = {0};

	p->runs++;
	if (now < p->next_ns || arm >= p->w->commands.n)
		return;
	p->next_ns = now + (uint64_t)(PROGRESS_S * 1e9);
	as_buf_addf(&b, "\r\033[K%zu runs", p->runs);
	if (look && look->plain.n)
		as_buf_addf(&b, ", %zu pairs: %+.1f ±%.1f %%", look->plain.n,
			    100 * look->plain.value, 50 * (look->plain.hi - look->plain.lo));
	(void)as_write_all(STDERR_FILENO, b.p, b.len, NULL); /* progress only */
	as_buf_clear(&b);
}

/* ls -l without "--": each word was taken for a command. */
static void hint_words(const struct work *w, struct as_error *err)
{
	const struct as_cmd_ctx *ctx = w->ctx;
	AS_CLEANUP(as_buf_clear) struct as_buf line = {0};
	size_t n = strlen(err->msg);

	if (err->status != AS_E_NOTFOUND || ctx->literal < 2 ||
	    strpbrk(ctx->operands[0], " \t\n"))
		return;
	as_buf_adds(&line,
		    "\n  each word is a command here; one of several words: assay bench --");
	for (int i = 0; i < ctx->literal; i++)
		as_buf_addf(&line, " %s", ctx->operands[i]);
	if (n + line.len < sizeof err->msg)
		memcpy(err->msg + n, line.p, line.len + 1);
}

static void catch_signals(void)
{
	struct sigaction sa = {.sa_handler = on_interrupt}; /* no SA_RESTART: waits end */

	(void)sigaction(SIGINT, &sa, NULL);
	(void)sigaction(SIGTERM, &sa, NULL);
	(void)sigaction(SIGHUP, &sa, NULL);
}

/* Also that not one run was a success. */
static bool anything_measured(const struct as_bench_set *set)
{
	as_vec_foreach (b, &set->benches) {
		if (b->processes || b->notes.n)
			return true;
	}
	return false;
}

/* ---- what made one slower ---- */

static int check_explain(const struct work *w, struct as_error *err)
{
	if (!w->a->project.explain)
		return AS_OK;
	if (w->commands.n < 2)
		return as_fail(
			err, AS_E_USAGE, 0,
			"--explain goes with two builds: --against REV, --program twice, "
			"or a command --vs another");
	if (w->shell)
		return as_fail(err, AS_E_USAGE, 0,
			       "--explain records programs, not a shell: without --shell");
	return AS_OK;
}

static const struct as_command *command_of(const struct work *w, const char *name)
{
	as_vec_foreach (c, &w->commands) {
		if (name && strcmp(c->name, name) == 0)
			return c;
	}
	return NULL;
}

static int explain_one(const struct work *w, const struct as_command *const side[2],
		       struct as_error *err)
{
	struct as_suite_program programs[2] = {{0}};
	struct as_explain e = {.name = side[1]->name,
			       .side = programs,
			       .allocs = {NAN, NAN},
			       .interrupted = &interrupted};
	const char *input = side[1]->input;
	char *paths[2];
	int r;

	if (input && strcmp(input, "null") != 0)
		e.input = input;
	for (int k = 0; k < 2; k++) {
		paths[k] = as_history_which(side[k]->words.v[0]);
		programs[k].exe = paths[k] ? paths[k] : side[k]->words.v[0];
		programs[k].folder = w->ctx->program_folder;
		e.labels[k] = side[k]->name;
		e.words[k] = side[k]->words.v + 1;
	}
	r = as_bench_explain(&e, err);
	free(paths[0]);
	free(paths[1]);
	return r;
}

static int explain(const struct work *w, const struct as_bench_set *set, struct as_error *err)
{
	size_t done = 0;
	int r = AS_OK;

	as_vec_foreach (c, &set->comparisons) {
		const struct as_command *const side[2] = {command_of(w, c->a),
							  command_of(w, c->b)};

		if (c->verdict == AS_BENCH_SLOWER && side[0] && side[1] && r == AS_OK &&
		    done++ < AS_EXPLAIN_MOST)
			r = explain_one(w, side, err);
	}
	return r;
}

static int measure(struct work *w, struct as_error *err)
{
	struct progress progress = {.w = w};
	struct as_commands_request q = {.v = w->commands.v,
					.n = w->commands.n,
					.overhead = w->overhead.words.n ? &w->overhead : NULL,
					.overhead_is_shell = !w->a->overhead,
					.folder = w->ctx->program_folder,
					.copy = w->commands.n > 1 && !w->shell &&
						!w->a->no_copy,
					.tool = "assay " ASSAY_VERSION};
	struct as_commands_result result;
	struct as_error failure = {0}, printing = {0};
	int r, p;

	make_rounds(w, &q.rounds);
	if (isatty(STDERR_FILENO) && !w->a->show_output) {
		q.rounds.progress = show_progress;
		q.rounds.progress_ctx = &progress;
	}
	catch_signals();
	r = as_commands_measure(&q, &result, &failure);
	if (q.rounds.progress)
		(void)as_write_all(STDERR_FILENO, "\r\033[K", 4, NULL); /* progress only */
	as_bench_find_growth(&result.set, false);
	p = anything_measured(&result.set) ? as_bench_print(w->ctx, &result.set, &printing)
					   : AS_OK;
	if (r >= 0 && p >= 0 && w->a->project.explain && !result.interrupted)
		p = explain(w, &result.set, &printing);
	if (r < 0) {
		hint_words(w, &failure);
		*err = failure;
	} else if (p < 0) {
		*err = printing;
		r = p;
	} else {
		r = result.failed        ? AS_EXIT_ERROR
		    : result.interrupted ? INTERRUPTED
					 : as_bench_exit(w->a, &result.set);
	}
	as_commands_result_clear(&result);
	return r;
}

static void clear_work(struct work *w)
{
	as_vec_foreach (c, &w->commands)
		as_command_clear(c);
	as_vec_clear(&w->commands);
	as_vec_clear(&w->given);
	as_command_clear(&w->overhead);
	as_params_clear(&w->params);
}

int as_bench_commands(struct as_cmd_ctx *ctx, struct as_error *err)
{
	struct work w = {.ctx = ctx, .a = ctx->args};
	int r = find_shell(&w, err);

	if (r == AS_OK)
		r = make_commands(&w, err);
	if (r == AS_OK)
		r = make_overhead(&w, err);
	if (r == AS_OK)
		r = find_ignored(&w, err);
	if (r == AS_OK)
		r = check_explain(&w, err);
	if (r == AS_OK && !w.shell)
		as_fitness_tell(w.commands.v[0].words.v[0],
				w.commands.n > 1 ? w.commands.v[1].words.v[0] : NULL,
				(bool[2]){false, false});
	if (r == AS_OK)
		r = measure(&w, err);
	clear_work(&w);
	return r;
}
