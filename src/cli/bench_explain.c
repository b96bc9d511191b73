/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What made it slower: see bench_explain.h. */
#include "cli/bench_explain.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/mem.h"
#include "base/sys.h"
#include "cli/commands.h"
#include "harness/driver.h"
#include "harness/protocol.h"
#include "measure/plan.h"
#include "measure/run.h"

extern char **environ;

#define BATCHES        2000 /* of about a millisecond */
#define RECORD_S       120
#define NAME_MAX_BYTES 60

struct words {
	AS_VEC(const char *) v;
	AS_VEC(char *) env;
};

/* "parse/small" -> "parse-small", "./new x" -> "new-x": no hidden files */
static char *file_of(const struct as_explain *e, int side)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	const char *from = e->name;

	while (*from && !isalnum((unsigned char)*from) && *from != '_')
		from++;
	for (const char *p = *from ? from : e->name; *p && b.len < NAME_MAX_BYTES; p++)
		as_buf_addc(&b, isalnum((unsigned char)*p) || strchr("._", *p) ? *p : '-');
	return as_xasprintf("%s-%s.assay", as_buf_str(&b), side ? "head" : "base");
}

/* The same work on both sides: so many batches of so many iterations, in one process. */
static void fixed_work(const struct as_explain *e, struct words *w, struct as_buf *question,
		       struct as_buf *id)
{
	struct as_question q = {.ask = AS_ASK_MEASURE,
				.fd = STDOUT_FILENO,
				.ctl = -1,
				.nth = 1,
				.iterations = e->iterations,
				.warmups = 1,
				.batches = BATCHES};

	as_buf_addf(question, "%s=", AS_BENCH_ENV);
	as_question_text(&q, question);
	as_buf_addf(id, "%s=%s", AS_BENCH_ENV_ID, e->id);
	as_vec_push(&w->env, question->p);
	as_vec_push(&w->env, id->p);
}

static void program_words(const struct as_explain *e, int side, struct words *w)
{
	as_vec_push(&w->v, e->side[side].exe);
	for (char *const *p = e->words[side]; p && *p; p++)
		as_vec_push(&w->v, *p);
	if (e->words[side])
		return;
	as_vec_push(&w->v, "--bench");
	if (e->iterations)
		return;
	as_vec_push(&w->v, "--profile-time");
	as_vec_push(&w->v, "2");
	as_vec_push(&w->v, e->id);
}

static int assay(const struct words *w, const char *folder, struct as_buf *out,
		 const struct as_explain *e, struct as_error *err)
{
	struct as_child c = {0};
	int r = as_child_run(&(struct as_child_request){.argv = w->v.v,
							.folder = folder,
							.environment = w->env.v,
							.input = e->input,
							.timeout_s = RECORD_S,
							.interrupted = e->interrupted},
			     &c, err);

	if (r == AS_OK && c.stopped)
		r = as_fail(err, AS_E_CANCELLED, 0, "interrupted");
	if (r == AS_OK && (c.wait_status || c.timed_out)) {
		AS_CLEANUP(as_buf_clear) struct as_buf said = {0};

		as_child_ended(&c, &said);
		as_child_last_words(&c.errors, 5, &said);
		r = as_fail(err, AS_E_IO, 0, "assay %s ended with %s", w->v.v[1],
			    as_buf_str(&said));
	}
	if (r == AS_OK && out)
		as_buf_add(out, c.out.p, c.out.len);
	as_child_clear(&c);
	return r;
}

static int record(const struct as_explain *e, int side, const char *self, const char *file,
		  struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf question = {0}, id = {0};
	struct words w = {0};
	char *const *env = e->side[side].environment ? e->side[side].environment : environ;
	int r;

	for (; *env; env++)
		as_vec_push(&w.env, *env);
	if (!e->words[side] && e->iterations)
		fixed_work(e, &w, &question, &id);
	as_vec_push(&w.env, NULL);
	for (const char *const *p = (const char *const[]){self, "record", "-q", "-F", "1999",
							  "-o", file, "--", NULL};
	     *p; p++)
		as_vec_push(&w.v, *p);
	program_words(e, side, &w);
	as_vec_push(&w.v, NULL);
	r = assay(&w, e->side[side].folder, NULL, e, err);
	if (r < 0)
		r = as_wrap(err, "cannot record %s of %s", e->name, e->labels[side]);
	as_vec_clear(&w.v);
	as_vec_clear(&w.env);
	return r;
}

static int compare(const struct as_explain *e, const char *self, char *const files[2],
		   struct as_buf *out, struct as_error *err)
{
	AS_CLEANUP(as_free_autop)
	char *columns = as_xasprintf("COLUMNS=%d", as_term_width(STDOUT_FILENO));
	struct words w = {0};
	int r;

	for (char **p = environ; *p; p++)
		as_vec_push(&w.env, *p);
	as_vec_push(&w.env, columns);
	as_vec_push(&w.env, NULL);
	for (const char *const *p =
		     (const char *const[]){self, "diff", "-n", "3", files[0], files[1], NULL};
	     *p; p++)
		as_vec_push(&w.v, *p);
	as_vec_push(&w.v, NULL);
	r = assay(&w, NULL, out, e, err);
	as_vec_clear(&w.v);
	as_vec_clear(&w.env);
	return r;
}

/* System calls of one run; NaN: not counted here. */
static double count_calls(const struct as_explain *e, int side)
{
	AS_VEC(const char *) argv = {0};
	struct as_plan plan;
	struct as_run run;
	double n = NAN;

	if (as_plan_make("syscalls", "", &plan, NULL) < 0)
		return n;
	as_vec_push(&argv, e->side[side].exe);
	for (char *const *p = e->words[side]; p && *p; p++)
		as_vec_push(&argv, *p);
	as_vec_push(&argv, NULL);
	if (as_plan_probe(&plan, NULL) == AS_OK &&
	    as_run_once(&(struct as_run_request){.argv = (char *const *)argv.v,
						 .input = e->input ? e->input : "/dev/null",
						 .output = "/dev/null",
						 .plan = &plan,
						 .interrupted = e->interrupted},
			&run, NULL) == AS_OK)
		n = run.v[AS_M_SYSCALLS];
	as_plan_clear(&plan);
	as_vec_clear(&argv);
	return n;
}

static void counts(const struct as_explain *e, struct as_buf *out)
{
	double calls[2] = {NAN, NAN};

	for (int k = 0; k < 2 && e->words[0]; k++)
		calls[k] = count_calls(e, k);
	if (!isnan(calls[0]) && !isnan(calls[1]))
		as_buf_addf(out, "  system calls  %.0f before, %.0f after, in one run\n",
			    calls[0], calls[1]);
	if (!isnan(e->allocs[0]) && !isnan(e->allocs[1]))
		as_buf_addf(out, "  allocations   %.4g before, %.4g after, per iteration\n",
			    e->allocs[0], e->allocs[1]);
}

int as_bench_explain(const struct as_explain *e, struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *self = realpath("/proc/self/exe", NULL);
	AS_CLEANUP(as_free_autop) char *cwd = realpath(".", NULL);
	AS_CLEANUP(as_buf_clear) struct as_buf out = {0};
	char *files[2] = {file_of(e, 0), file_of(e, 1)};
	int r = AS_OK;

	as_buf_addf(&out, "\nwhy %s is slower", e->name);
	for (int k = 0; k < 2 && r == AS_OK; k++) {
		/* the program may run in a folder of its own */
		AS_CLEANUP(as_free_autop)
		char *path = as_xasprintf("%s/%s", cwd ? cwd : ".", files[k]);

		r = record(e, k, self ? self : "assay", path, err);
	}
	as_buf_addf(&out, ": %s, %s\n", files[0], files[1]);
	if (r == AS_OK) {
		counts(e, &out);
		r = compare(e, self ? self : "assay", files, &out, err);
	}
	if (r == AS_OK)
		r = as_out_write(&out, err);
	free(files[0]);
	free(files[1]);
	return r;
}
