/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Commands measured: see command.h. */
#include "bench/command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"
#include "bench/command_priv.h"
#include "history/history.h"
#include "measure/shell.h"

struct work {
	const struct as_commands_request *q;
	struct as_arm *arms;
	struct as_words *argvs; /* of those that are copies; else n = 0 */
	struct as_copies copies;
	size_t set_up; /* commands whose set-up was begun: theirs is to be cleaned up */
};

void as_command_clear(struct as_command *c)
{
	char **const texts[] = {&c->name,     &c->text,    &c->setup, &c->prepare,
				&c->conclude, &c->cleanup, &c->input, &c->output};

	for (size_t i = 0; i < AS_ARRAY_LEN(texts); i++)
		free(*texts[i]);
	as_words_clear(&c->words);
	as_vec_foreach (p, &c->params) {
		free(p->name);
		free(p->value);
	}
	as_vec_clear(&c->params);
	*c = (struct as_command){0};
}

/* ---- around all runs ---- */

static int once(const struct work *w, const char *command, const char *what, bool always,
		struct as_error *err)
{
	const struct as_rounds_request *r = &w->q->rounds;
	struct as_shell_request q = {.shell = r->shell,
				     .command = command,
				     .what = what,
				     .folder = w->q->folder,
				     .silent = r->silent};

	if (!always) {
		q.interrupted = r->interrupted;
		if (r->budget_hard)
			q.deadline_ns = r->began_ns + (uint64_t)(r->budget_s * 1e9);
	}
	return as_shell_run(&q, err);
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool setups_differ(const struct as_commands_request *q)
{
	for (size_t i = 1; i < q->n; i++) {
		if (!same_text(q->v[i].setup, q->v[0].setup))
			return true;
	}
	return false;
}

/* A set-up that all share is done once. */
static int set_up(struct work *w, bool each, struct as_error *err)
{
	const struct as_commands_request *q = w->q;
	int r = AS_OK;

	for (size_t i = 0; i < q->n && r == AS_OK; i++) {
		w->set_up = i + 1;
		if (!i || each)
			r = once(w, q->v[i].setup, "setup", false, err);
		if (r == AS_OK && q->copy)
			(void)as_copies_add(&w->copies, q->v[i].words.v[0]);
		if (r == AS_OK && q->copy && each && q->v[i].setup && !w->copies.v[i].why_not)
			r = as_copies_make(&w->copies, i, 0, err);
	}
	if (r == AS_OK && q->copy && !each && as_copies_differ(&w->copies))
		r = as_copies_make(&w->copies, SIZE_MAX, as_now_ns(), err);
	return r;
}

static int clean_up(const struct work *w, struct as_error *err)
{
	const struct as_commands_request *q = w->q;
	int r = AS_OK;

	for (size_t i = 0; i < w->set_up; i++) {
		bool again = false;

		for (size_t k = 0; k < i; k++)
			again |= same_text(q->v[k].cleanup, q->v[i].cleanup);
		if (!again && once(w, q->v[i].cleanup, "cleanup", true, r < 0 ? NULL : err) < 0)
			r = AS_E_IO;
	}
	return r;
}

/* ---- arms ---- */

static char *const *argv_of(struct work *w, size_t i)
{
	const struct as_command *c = &w->q->v[i];
	const struct as_copy *copy = i < w->copies.n ? &w->copies.v[i] : NULL;
	struct as_words *own = &w->argvs[i];

	if (!copy || copy->why_not || !strchr(copy->to, '/'))
		return c->words.v;
	as_vec_push(own, as_xstrdup(copy->to));
	for (size_t k = 1; k < c->words.n; k++)
		as_vec_push(own, as_xstrdup(c->words.v[k]));
	as_vec_push(own, NULL);
	own->n--;
	return own->v;
}

static void output_of(const struct as_command *c, struct as_run_request *run)
{
	const char *o = c->output ? c->output : "null";

	run->output_pipe = strcmp(o, "pipe") == 0;
	run->output_anew = true;
	if (strcmp(o, "null") == 0)
		run->output = "/dev/null";
	else if (strcmp(o, "inherit") != 0 && !run->output_pipe)
		run->output = o;
}

static struct as_arm arm_of(struct work *w, const struct as_command *c, char *const *argv)
{
	struct as_arm arm = {.prepare = c->prepare, .conclude = c->conclude};

	arm.run.argv = argv;
	arm.run.folder = w->q->folder;
	arm.run.input = !c->input || strcmp(c->input, "null") == 0 ? "/dev/null" : c->input;
	output_of(c, &arm.run);
	return arm;
}

static int measure(struct work *w, struct as_rounds *ret, struct as_error *err)
{
	const struct as_commands_request *q = w->q;
	struct as_rounds_request rounds = q->rounds;

	for (size_t i = 0; i < q->n; i++)
		w->arms[i] = arm_of(w, &q->v[i], argv_of(w, i));
	if (q->overhead) {
		w->arms[q->n] = arm_of(w, q->overhead, q->overhead->words.v);
		w->arms[q->n].aside = true;
	}
	rounds.arms = w->arms;
	rounds.n = q->n + (q->overhead != NULL);
	return as_rounds(&rounds, ret, err);
}

/* Before anything is run: what is not there is told, not found out after the others. */
static int check_programs(const struct work *w, struct as_error *err)
{
	for (size_t i = 0; i < w->q->n; i++) {
		const char *name = w->q->v[i].words.v[0];
		AS_CLEANUP(as_free_autop) char *path = as_history_which(name);
		bool is_there = strchr(name, '/') && access(name, F_OK) == 0;

		if (!path && !is_there && !w->q->v[i].prepare)
			return as_fail(err, AS_E_NOTFOUND, ENOENT, "cannot run '%s': %s", name,
				       strchr(name, '/') ? "there is no such file"
							 : "it is not in PATH");
	}
	return AS_OK;
}

/* Not one run of any ended within the budget: there is nothing to tell. */
static int check_any(const struct work *w, const struct as_rounds *r, struct as_error *err)
{
	const struct as_rounds_request *q = &w->q->rounds;

	for (size_t i = 0; i < w->q->n; i++) {
		if (r->v[i].runs.v.n || r->v[i].out)
			return AS_OK;
	}
	if (!r->out_of_budget)
		return AS_OK;
	return as_fail(err, AS_E_LIMIT, 0,
		       "not one run of '%s' ended within --budget, %g s\n  a longer one, or "
		       "--timeout for single runs",
		       w->q->v[0].name, q->budget_s);
}

/* Without what is to be taken off there is no result. */
static int check_overhead(const struct work *w, const struct as_rounds *r, struct as_error *err)
{
	const struct as_commands_request *q = w->q;
	const struct as_arm_result *a = q->overhead ? &r->v[q->n] : NULL;
	int s = a ? a->failed_status : 0;

	if (!a || !a->out)
		return AS_OK;
	if (a->timeouts)
		return as_fail(err, AS_E_LIMIT, 0,
			       "'%s', which is to be taken off, did not end "
			       "in time",
			       q->overhead->words.v[0]);
	return as_fail(err, AS_E_IO, 0, "'%s', which is to be taken off, failed (%s %d)",
		       q->overhead_is_shell ? q->overhead->words.v[0] : q->overhead->name,
		       WIFSIGNALED(s) ? "signal" : "status",
		       WIFSIGNALED(s) ? WTERMSIG(s) : WEXITSTATUS(s));
}

int as_commands_measure(const struct as_commands_request *q, struct as_commands_result *ret,
			struct as_error *err)
{
	struct work w = {.q = q,
			 .arms = as_xcalloc(q->n + 1, sizeof *w.arms),
			 .argvs = as_xcalloc(q->n + 1, sizeof *w.argvs)};
	struct as_measured m = {.q = q, .copies = &w.copies};
	struct as_rounds rounds = {0};
	struct as_error own = {0};
	int r = set_up(&w, setups_differ(q), &own), cleaned;

	*ret = (struct as_commands_result){0};
	if (r == AS_OK)
		r = check_programs(&w, &own);
	if (r == AS_OK)
		r = measure(&w, &rounds, &own);
	if (r == AS_OK)
		r = check_any(&w, &rounds, &own);
	if (r == AS_OK)
		r = check_overhead(&w, &rounds, &own);
	m.rounds = &rounds;
	as_commands_tell(&m, ret);
	cleaned = clean_up(&w, r < 0 ? NULL : &own);
	if (r == AS_OK)
		r = cleaned;
	for (size_t i = 0; i < q->n; i++)
		as_words_clear(&w.argvs[i]);
	as_copies_clear(&w.copies);
	as_rounds_clear(&rounds);
	free(w.argvs);
	free(w.arms);
	if (r < 0 && err)
		*err = own;
	return r;
}

void as_commands_result_clear(struct as_commands_result *r)
{
	as_bench_set_clear(&r->set);
	*r = (struct as_commands_result){0};
}
