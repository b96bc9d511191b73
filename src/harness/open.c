/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A bench program's life: which mode it is in, and each benchmark in it. See assay/bench.h. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/sys.h"
#include "harness/front.h"
#include "harness/worker_priv.h"

struct assay_bench {
	struct as_bench_plan plan;
	const struct as_bench_front *front;
	void *ctx;
	struct assay_bench_settings settings; /* of the program */
	/* worker */
	struct as_question question;
	const char *wanted;
	uint64_t seen; /* benchmarks of that id so far */
	/* main */
	char *exe;
	int argc;
	char *const *argv;
	AS_VEC(char *) ids; /* so far */
	unsigned failures;
	bool interrupted;
};

/* Set by the signal handler, read by the driver. */
volatile int as_bench_interrupted;

char *as_bench_id(const struct assay_bench_spec *spec)
{
	const char *parts[] = {spec->group, spec->function, spec->value};
	struct as_buf b = {0};

	for (size_t i = 0; i < AS_ARRAY_LEN(parts); i++) {
		if (!parts[i] || !*parts[i])
			continue;
		if (b.len)
			as_buf_addc(&b, '/');
		as_buf_adds(&b, parts[i]);
	}
	return as_buf_detach(&b);
}

/* ---- worker ---- */

/* With reads of our environment no further process is one. */
static bool open_worker(struct assay_bench *run)
{
	const char *text = getenv(AS_BENCH_ENV);
	struct as_error err;
	int r;

	if (!text || !*text)
		return false;
	r = as_question_parse(text, &run->question, &err);
	run->wanted = as_xstrdup(getenv(AS_BENCH_ENV_ID) ? getenv(AS_BENCH_ENV_ID) : "");
	(void)unsetenv(AS_BENCH_ENV); /* a name without '=' */
	(void)unsetenv(AS_BENCH_ENV_ID);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* else it ends a little later by itself */
	if (run->question.fd >= 0)
		as_worker_hello(run->question.fd);
	if (r < 0) {
		AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

		as_buf_adds(&b, "error");
		as_line_text(&b, err.msg);
		as_buf_addc(&b, '\n');
		if (run->question.fd >= 0)
			(void)as_write_all(run->question.fd, b.p, b.len,
					   NULL); /* nobody listens */
		_exit(2);
	}
	run->plan.mode = ASSAY_MODE_WORKER;
	return true;
}

static void write_bench(struct assay_bench *run, const struct assay_bench_spec *spec)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	struct as_fn_entry e;

	as_subject_entry(spec, &e);
	as_line_bench(&b, &e);
	as_fn_entry_clear(&e);
	if (as_write_all(run->question.fd, b.p, b.len, NULL) < 0)
		_exit(2); /* nobody listens */
}

static bool is_wanted(struct assay_bench *run, const struct assay_bench_spec *spec)
{
	AS_CLEANUP(as_free_autop) char *id = as_bench_id(spec);

	if (run->question.ask == AS_ASK_LIST)
		return true;
	return strcmp(id, run->wanted) == 0 && run->seen + 1 == run->question.nth;
}

static void one_in_worker(struct assay_bench *run, const struct as_subject *s)
{
	AS_CLEANUP(as_free_autop) char *id = as_bench_id(s->spec);

	if (run->question.ask == AS_ASK_LIST) {
		write_bench(run, s->spec);
		return;
	}
	if (strcmp(id, run->wanted) != 0 || ++run->seen != run->question.nth)
		return;
	/* nothing of the program is run after it: no destructors, no other benchmark */
	_exit(as_worker_answer(&run->question, s,
			       run->settings.flags | s->spec->settings.flags) < 0
		      ? 2
		      : 0);
}

/* ---- main ---- */

static void on_signal(int signal)
{
	as_bench_interrupted = 1;
}

static char *own_exe(void)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

	if (n < 0)
		return as_xstrdup("/proc/self/exe");
	path[n] = 0;
	return as_xstrdup(path);
}

static double chosen(double a, double b)
{
	return a > 0 ? a : b;
}

/* Command line before the benchmark before the program. */
static struct assay_bench_settings merge(const struct assay_bench_settings *a,
					 const struct assay_bench_settings *b)
{
	struct assay_bench_settings m = *a;

	m.flags |= b->flags;
	m.warm_up_s = chosen(a->warm_up_s, b->warm_up_s);
	m.measurement_s = chosen(a->measurement_s, b->measurement_s);
	m.noise = chosen(a->noise, b->noise);
	m.confidence = chosen(a->confidence, b->confidence);
	m.significance = chosen(a->significance, b->significance);
	m.samples = a->samples ? a->samples : b->samples;
	m.resamples = a->resamples ? a->resamples : b->resamples;
	m.sampling = a->sampling ? a->sampling : b->sampling;
	return m;
}

struct here {
	const struct as_subject *subject;
	uint32_t flags;
};

static int answer_here(void *ctx, const char *request, int fd)
{
	const struct here *h = ctx;
	struct as_question q;
	struct as_error err;

	if (as_question_parse(request, &q, &err) < 0)
		return -1;
	q.fd = fd;
	as_worker_hello(fd);
	return as_worker_answer(&q, h->subject, h->flags);
}

/* Which of this name it is, from 1. */
static uint64_t nth_of(struct assay_bench *run, const char *id)
{
	uint64_t n = 1;

	as_vec_foreach (other, &run->ids)
		n += strcmp(*other, id) == 0;
	as_vec_push(&run->ids, as_xstrdup(id));
	return n;
}

static int one_in_main(struct assay_bench *run, const struct assay_bench_spec *spec,
		       const char *id, uint64_t nth, const struct as_subject *s)
{
	struct assay_bench_settings own = merge(&run->plan.settings, &spec->settings);
	struct assay_bench_settings merged = merge(&own, &run->settings);
	struct here here = {s, merged.flags};
	struct as_fn_request q = {
		.id = id,
		.nth = nth,
		.side[0] = {.exe = run->exe, .argv = run->argv},
		.sides = 1,
		.budget_s = merged.measurement_s,
		.delta = merged.noise,
		.alpha = merged.significance,
		.processes = merged.samples,
		.interrupted = &as_bench_interrupted,
		.here = answer_here,
		.here_ctx = &here,
	};
	struct as_fn_result result = {0};
	struct as_error err = {0};
	int r;

	run->front->begin(run->ctx, spec, &merged, &q);
	r = as_fn_measure(&q, &result, &err);
	if (!result.what.id)
		as_subject_entry(spec, &result.what);
	if (r < 0 && !result.failed)
		result.failed = as_xstrdup(err.msg);
	r = result.failed ? -1 : 0;
	run->failures += r < 0 && !result.out_of_time;
	run->interrupted |= as_bench_interrupted;
	run->front->result(run->ctx, spec, &merged, &result);
	as_fn_result_clear(&result);
	return r;
}

static int one_by_itself(struct assay_bench *run, const struct assay_bench_spec *spec,
			 const char *id, const struct as_subject *s)
{
	enum assay_bench_mode mode = run->plan.mode;
	struct as_answer_batch b = {0};
	struct as_error err = {0};
	uint64_t until = as_now_ns() + (uint64_t)(run->plan.profile_s * 1e9), n = 1;
	int r = AS_OK;

	run->front->named(run->ctx, spec, id, mode);
	if (mode == ASSAY_MODE_LIST)
		return 0;
	do {
		r = as_subject_run(s, n, &b, &err);
		if (b.wall_ns < 1e7)
			n *= 2;
	} while (r == AS_OK && mode == ASSAY_MODE_PROFILE && as_now_ns() < until);
	run->failures += r < 0;
	run->front->ran(run->ctx, id, mode, r < 0 ? err.msg : NULL);
	return r < 0 ? -1 : 0;
}

/* ---- what programs call ---- */

static const struct as_bench_front *find_front(const char *name)
{
	for (size_t i = 0; name && as_bench_fronts[i]; i++) {
		if (strcmp(as_bench_fronts[i]->name, name) == 0)
			return as_bench_fronts[i];
	}
	return as_bench_fronts[0];
}

struct assay_bench *assay_bench_open(int argc, char *const *argv,
				     const struct assay_bench_settings *defaults)
{
	struct assay_bench *run = as_xcalloc(1, sizeof *run);
	struct sigaction action = {.sa_handler = on_signal};

	run->argc = argc;
	run->argv = argv;
	run->plan.exit_status = -1;
	(void)as_settings_take(&run->settings, defaults); /* none: the defaults */
	if (open_worker(run))
		return run;
	run->front = find_front(run->settings.front);
	run->plan.settings.size = sizeof run->plan.settings;
	run->ctx = run->front->open(argc, argv, &run->plan);
	if (run->plan.exit_status >= 0) {
		(void)fflush(NULL); /* it is reported by nobody */
		_exit(run->plan.exit_status);
	}
	run->exe = own_exe();
	if (run->plan.mode == ASSAY_MODE_MAIN) {
		action.sa_flags = (int)SA_RESETHAND; /* a second one ends us */
		(void)sigaction(SIGINT, &action, NULL);
		(void)sigaction(SIGTERM, &action, NULL);
	}
	return run;
}

enum assay_bench_mode assay_bench_mode(const struct assay_bench *run)
{
	return run->plan.mode;
}

int assay_bench_wants(struct assay_bench *run, const struct assay_bench_spec *caller)
{
	struct assay_bench_spec spec;

	if (!as_spec_take(&spec, caller))
		return 0; /* assay_bench_one says it */

	AS_CLEANUP(as_free_autop) char *id = as_bench_id(&spec);

	if (run->plan.mode == ASSAY_MODE_WORKER)
		return is_wanted(run, &spec);
	return run->front->selects(run->ctx, &spec, id);
}

/* The caller's mistake, which nothing else would show. */
static int no_size(struct assay_bench *run)
{
	static const char text[] = "error: assay_bench_spec.size is not set: set it to "
				   "sizeof(struct assay_bench_spec)\n";

	if (run->plan.mode != ASSAY_MODE_WORKER)
		(void)as_write_all(STDERR_FILENO, text, sizeof text - 1,
				   NULL); /* nobody to tell */
	run->failures++;
	return -1;
}

int assay_bench_one(struct assay_bench *run, const struct assay_bench_spec *caller,
		    assay_bench_fn fn, void *ctx)
{
	struct assay_bench_spec spec;
	struct as_subject s = {&spec, fn, ctx, caller};
	uint64_t nth;

	if (!as_spec_take(&spec, caller))
		return no_size(run);
	if (run->plan.mode == ASSAY_MODE_WORKER) {
		one_in_worker(run, &s);
		return 0;
	}

	AS_CLEANUP(as_free_autop) char *id = as_bench_id(&spec);

	nth = nth_of(run, id);
	if (run->interrupted || !run->front->selects(run->ctx, &spec, id))
		return 0;
	if (run->plan.mode == ASSAY_MODE_MAIN)
		return one_in_main(run, &spec, id, nth, &s);
	return one_by_itself(run, &spec, id, &s);
}

int assay_bench_close(struct assay_bench *run)
{
	int status = 0;

	if (run->plan.mode == ASSAY_MODE_WORKER) {
		static const char done[] = "done\n", missing[] = "missing\n";
		bool list = run->question.ask == AS_ASK_LIST;

		(void)as_write_all(run->question.fd, list ? done : missing,
				   list ? sizeof done - 1 : sizeof missing - 1, NULL);
		_exit(0); /* what the program prints at its end is no answer */
	}
	status = run->front->close(run->ctx, run->failures);
	if (run->interrupted && !status)
		status = 128 + SIGINT;
	as_vec_foreach (id, &run->ids)
		free(*id);
	as_vec_clear(&run->ids);
	free(run->exe);
	free(run);
	return status;
}
