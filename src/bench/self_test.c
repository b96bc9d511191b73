/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A/A comparisons: see self_test.h. What is measured: self_test_work.c. */
#include "bench/self_test.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sys.h"
#include "harness/driver.h"
#include "history/history.h"
#include "measure/rounds.h"
#include "stats/interval.h"

#define COUNT       200
#define NOMINAL     0.05
#define INPUT_BYTES (1u << 20)
#define POWER_Z     1.2816 /* 90 % of differences of that size are seen */
#define LEVEL_Z     1.9600

static const char *const functions[] = {"hash", "chain", "memory"};
static const char *const kind_names[AS_SELF_TESTS_] = {"functions", "commands"};

struct run {
	const struct as_self_test_request *q;
	struct as_self_test *t;
	uint64_t random;
	char *exe, *gzip, *input;
	uint64_t iterations[AS_ARRAY_LEN(functions)];
	AS_VEC(pid_t) loops;
	AS_VEC(double) se[AS_SELF_TESTS_];
	double seconds[AS_SELF_TESTS_];
};

static uint64_t next_random(struct run *r)
{
	r->random += 0x9e3779b97f4a7c15ull;
	return as_mix64(r->random) | 1;
}

static bool is_interrupted(const struct run *r)
{
	return r->q->interrupted && *r->q->interrupted;
}

/* ---- load ---- */

static void spin(int cpu)
{
	volatile uint64_t x = 1;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	(void)sched_setaffinity(0, sizeof one, &one); /* then it loads some CPU */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)signal(SIGINT, SIG_IGN); /* of the terminal; it is ended by us */
	for (;;)
		x = x * 6364136223846793005ull + 1;
}

static int start_load(struct run *r, struct as_error *err)
{
	cpu_set_t ours;

	if (!r->q->loaded)
		return AS_OK;
	if (sched_getaffinity(0, sizeof ours, &ours) < 0)
		return as_fail(err, AS_E_IO, errno, "cannot tell our CPUs: %s",
			       strerror(errno));
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		pid_t pid = CPU_ISSET(cpu, &ours) ? fork() : 1;

		if (pid == 0)
			spin(cpu);
		if (pid < 0)
			return as_fail(err, AS_E_IO, errno, "cannot make a busy loop: %s",
				       strerror(errno));
		if (pid > 1)
			as_vec_push(&r->loops, pid);
	}
	return AS_OK;
}

static void end_load(struct run *r)
{
	as_vec_foreach (pid, &r->loops) {
		(void)kill(*pid, SIGKILL);
		while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	as_vec_clear(&r->loops);
}

/* ---- comparisons ---- */

static void count(struct run *r, int kind, const struct as_trimmed *plain,
		  enum as_verdict verdict, double seconds)
{
	struct as_self_test_kind *k = &r->t->kind[kind];

	k->n++;
	k->outside += plain->lo > 0 || plain->hi < 0;
	k->verdicts += verdict == AS_VERDICT_SLOWER || verdict == AS_VERDICT_FASTER;
	as_vec_push(&r->se[kind], plain->se);
	r->seconds[kind] += seconds;
}

static int compare_functions(struct run *r, uint64_t n, struct as_error *err)
{
	static char bench[] = "bench", self[] = "--self-test";
	size_t which = n % AS_ARRAY_LEN(functions);
	char *argv[] = {r->exe, bench, self, NULL};
	struct as_fn_side side = {.exe = r->exe, .argv = argv};
	struct as_fn_request q = {.id = functions[which],
				  .side = {side, side},
				  .sides = 2,
				  .budget_s = 60,
				  .cap_s = 120,
				  .processes = AS_SELF_TEST_PAIRS,
				  .fixed = true,
				  .as_they_are = true,
				  .no_allocs = true,
				  .iterations = r->iterations[which],
				  .seed = next_random(r),
				  .interrupted = r->q->interrupted};
	struct as_fn_result result = {0};
	int e = as_fn_measure(&q, &result, err);

	if (e == AS_OK && !is_interrupted(r) && result.failed)
		e = as_fail(err, AS_E_IO, 0, "%s: %s", functions[which], result.failed);
	if (e == AS_OK && !is_interrupted(r)) {
		r->iterations[which] = result.iterations;
		count(r, AS_SELF_TEST_FUNCTIONS, &result.by_q25, result.look.verdict,
		      result.seconds);
	}
	as_fn_result_clear(&result);
	return e;
}

static int compare_commands(struct run *r, struct as_error *err)
{
	static char to_stdout[] = "-c", fast[] = "-1";
	char *argv[] = {r->gzip, to_stdout, fast, r->input, NULL};
	struct as_arm arm = {
		.run = {.argv = argv, .input = "/dev/null", .output = "/dev/null"}};
	struct as_arm arms[] = {arm, arm};
	struct as_rounds rounds = {0};
	int e = as_rounds(&(struct as_rounds_request){.arms = arms,
						      .n = 2,
						      .warmup = 1,
						      .min_runs = AS_SELF_TEST_PAIRS,
						      .max_runs = AS_SELF_TEST_PAIRS,
						      .delta = 0.01,
						      .seed = next_random(r),
						      .interrupted = r->q->interrupted},
			  &rounds, err);

	if (e == AS_OK && !is_interrupted(r) && rounds.v[1].failed_run)
		e = as_fail(err, AS_E_IO, 0, "gzip failed in run %zu", rounds.v[1].failed_run);
	if (e == AS_OK && !is_interrupted(r)) {
		const struct as_arm_result *b = &rounds.v[1];

		count(r, AS_SELF_TEST_COMMANDS, &b->by[b->decides == AS_M_CPU], b->look.verdict,
		      rounds.seconds);
	}
	as_rounds_clear(&rounds);
	return e;
}

/* ---- the whole ---- */

static int make_input(struct run *r, struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};

	r->exe = realpath("/proc/self/exe", NULL);
	r->gzip = as_history_which("gzip");
	if (!r->exe || !r->gzip)
		return as_fail(
			err, AS_E_NOTFOUND, 0,
			"the self-test of commands runs gzip, which is not installed\n  apt "
			"install gzip");
	while (text.len < INPUT_BYTES)
		as_buf_addf(&text, "%llu words of a text %llx\n",
			    (unsigned long long)(next_random(r) % 1000),
			    (unsigned long long)next_random(r));
	r->input = as_xasprintf("%s/input", r->q->folder);
	return as_write_file_atomic(r->input, text.p, text.len, err);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void conclude(struct run *r)
{
	uint64_t n = 0, outside = 0;

	for (int k = 0; k < AS_SELF_TESTS_; k++) {
		struct as_self_test_kind *kind = &r->t->kind[k];

		n += kind->n;
		outside += kind->outside;
		if (!kind->n)
			continue;
		qsort(r->se[k].v, r->se[k].n, sizeof *r->se[k].v, by_value);
		kind->se = r->se[k].v[r->se[k].n / 2];
		kind->pair_s = r->seconds[k] / (double)(kind->n * AS_SELF_TEST_PAIRS);
	}
	r->t->passed =
		n && (double)outside <= (double)n * NOMINAL +
						2 * sqrt((double)n * NOMINAL * (1 - NOMINAL));
}

int as_self_test_run(const struct as_self_test_request *q, struct as_self_test *ret,
		     struct as_error *err)
{
	struct run r = {.q = q, .t = ret, .random = q->seed ? q->seed : as_now_ns()};
	uint64_t total = q->count ? q->count : COUNT, began_ns = as_now_ns();
	int e;

	*ret = (struct as_self_test){.loaded = q->loaded};
	e = make_input(&r, err);
	if (e == AS_OK)
		e = start_load(&r, err);
	for (uint64_t i = 0; i < total && e == AS_OK && !is_interrupted(&r); i++) {
		if (q->progress)
			q->progress(q->progress_ctx, i, total);
		e = i % 2 ? compare_commands(&r, err) : compare_functions(&r, i / 2, err);
	}
	end_load(&r);
	ret->interrupted = is_interrupted(&r);
	ret->seconds = (double)(as_now_ns() - began_ns) / 1e9;
	conclude(&r);
	for (int k = 0; k < AS_SELF_TESTS_; k++)
		as_vec_clear(&r.se[k]);
	free(r.exe);
	free(r.gzip);
	free(r.input);
	return ret->interrupted ? AS_OK : e;
}

/* ---- told ---- */

/* The least difference that is seen in 9 of 10 cases after `seconds`; NaN: not in so short a time. */
static double visible(const struct as_self_test_kind *k, double seconds)
{
	double pairs = seconds / k->pair_s;

	return pairs < 3 ? NAN : (LEVEL_Z + POWER_Z) * k->se * sqrt(AS_SELF_TEST_PAIRS / pairs);
}

static const double times_s[] = {1, 5, 20};

void as_self_test_text(const struct as_self_test *t, struct as_buf *out)
{
	as_buf_addf(out,
		    "self-test   %llu things compared with themselves, %d pairs each, %s, %.0f "
		    "s\n\n",
		    (unsigned long long)(t->kind[0].n + t->kind[1].n), AS_SELF_TEST_PAIRS,
		    t->loaded ? "a busy loop pinned to each CPU" : "no load of ours",
		    t->seconds);
	for (int i = 0; i < AS_SELF_TESTS_; i++) {
		const struct as_self_test_kind *k = &t->kind[i];
		struct as_interval share;

		if (!k->n)
			continue;
		share = as_exact_interval((double)k->outside, (double)k->n, AS_CONFIDENCE);
		as_buf_addf(
			out,
			"%-11s %3llu of %llu intervals at 95 %% miss the truth: %.1f %% [%.1f, "
			"%.1f], 5 expected; %llu called slower or faster\n",
			kind_names[i], (unsigned long long)k->outside, (unsigned long long)k->n,
			100 * (double)k->outside / (double)k->n, 100 * share.lo, 100 * share.hi,
			(unsigned long long)k->verdicts);
		as_buf_adds(out, "            a difference is seen from");
		for (size_t j = 0; j < AS_ARRAY_LEN(times_s); j++) {
			double v = visible(k, times_s[j]);

			if (!isnan(v))
				as_buf_addf(out, "%s %.2g %% in %.0f s", j ? "," : "", 100 * v,
					    times_s[j]);
		}
		as_buf_addf(out, " (a pair takes %.3g ms)\n", 1e3 * k->pair_s);
	}
	as_buf_addf(out, "\n%s%s\n", t->interrupted ? "interrupted; " : "",
		    t->passed ? "passed: no more than chance makes"
			      : "FAILED: more than chance makes; verdicts of this machine are "
				"not to be "
				"relied on");
}

void as_self_test_json(const struct as_self_test *t, struct as_buf *out)
{
	struct as_json j = {.out = out, .indent = true};

	as_json_obj(&j, NULL);
	as_json_str(&j, "schema", "assay.self-test/1");
	as_json_bool(&j, "passed", t->passed);
	as_json_bool(&j, "loaded", t->loaded);
	as_json_bool(&j, "interrupted", t->interrupted);
	as_json_u64(&j, "pairs", AS_SELF_TEST_PAIRS);
	as_json_num(&j, "seconds", t->seconds, 4);
	for (int i = 0; i < AS_SELF_TESTS_; i++) {
		const struct as_self_test_kind *k = &t->kind[i];

		as_json_obj(&j, kind_names[i]);
		as_json_u64(&j, "comparisons", k->n);
		as_json_u64(&j, "outside", k->outside);
		as_json_u64(&j, "verdicts", k->verdicts);
		as_json_num(&j, "standard_error", k->se, 4);
		as_json_num(&j, "pair_seconds", k->pair_s, 4);
		as_json_arr(&j, "visible");
		for (size_t n = 0; n < AS_ARRAY_LEN(times_s); n++) {
			as_json_obj(&j, NULL);
			as_json_num(&j, "seconds", times_s[n], 3);
			as_json_num(&j, "difference", k->n ? visible(k, times_s[n]) : NAN, 4);
			as_json_end(&j);
		}
		as_json_end(&j);
		as_json_end(&j);
	}
	as_json_end(&j);
	as_buf_addc(out, '\n');
}
