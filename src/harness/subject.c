/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A batch, run: see subject_priv.h. */
#include "harness/subject_priv.h"

#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/sys.h"
#include "harness/alloc_priv.h"
#include "harness/front.h"

#define CLOCK_TRIES 200
#define LOOP_NS     200000

/* ---- the clock ---- */

/* Set once, before anything is timed. */
static uint64_t clock_cost;

static __thread uint64_t stretch_begin;
static __thread struct as_stretch stretch;

void as_stretch_reset(void)
{
	stretch = (struct as_stretch){0, 0};
}

struct as_stretch as_stretch_get(void)
{
	return stretch;
}

uint64_t assay_bench_begin(void)
{
	if (!stretch.first_begin)
		as_team_arrive();
	as_alloc_on();
	stretch_begin = as_now_ns();
	if (!stretch.first_begin)
		stretch.first_begin = stretch_begin;
	return stretch_begin;
}

uint64_t assay_bench_end(void)
{
	uint64_t now = as_now_ns();

	as_alloc_off();
	stretch.last_end = now;
	return now - stretch_begin > clock_cost ? now - clock_cost : stretch_begin;
}

double as_clock_calibrate(void)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < CLOCK_TRIES; i++) {
		uint64_t a = as_now_ns(), took = as_now_ns() - a;

		least = AS_MIN(least, took);
	}
	clock_cost = least;
	return (double)least;
}

static double loop_once(uint64_t n)
{
	uint64_t from = as_now_ns();

	for (uint64_t i = n; i; i--)
		assay_black_box(i);
	return (double)(as_now_ns() - from) / (double)n;
}

double as_loop_ns(void)
{
	double least = INFINITY;
	uint64_t until = as_now_ns() + LOOP_NS;

	while (as_now_ns() < until)
		least = fmin(least, loop_once(10000));
	return least;
}

/* ---- problems ---- */

static pthread_mutex_t problem_lock = PTHREAD_MUTEX_INITIALIZER;
static char problem[256]; /* under problem_lock */

void as_problem_set(const char *text)
{
	(void)pthread_mutex_lock(&problem_lock); /* a plain mutex: cannot fail */
	if (!problem[0])
		(void)snprintf(problem, sizeof problem, "%s", text);
	(void)pthread_mutex_unlock(&problem_lock);
}

bool as_problem_take(char *ret, size_t n)
{
	bool is;

	(void)pthread_mutex_lock(&problem_lock);
	is = problem[0] != 0;
	if (is)
		(void)snprintf(ret, n, "%s", problem);
	problem[0] = 0;
	(void)pthread_mutex_unlock(&problem_lock);
	return is;
}

/* ---- what callers fill ---- */

/* Where the fields after `settings` lie: settings may be of another version than ours, too. */
static size_t tail_of(uint32_t settings_bytes)
{
	size_t align = _Alignof(struct assay_bench_spec);
	size_t end = offsetof(struct assay_bench_spec, settings) +
		     (settings_bytes ? settings_bytes : sizeof(struct assay_bench_settings));

	return (end + align - 1) / align * align;
}

static void take_struct(void *to, size_t room, const void *from, size_t has)
{
	memset(to, 0, room);
	if (has)
		memcpy(to, from, AS_MIN(room, has));
}

bool as_settings_take(struct assay_bench_settings *to, const struct assay_bench_settings *from)
{
	uint32_t has = 0;

	if (from)
		memcpy(&has, from, sizeof has);
	take_struct(to, sizeof *to, from, has);
	to->size = sizeof *to;
	return has >= sizeof has;
}

bool as_spec_take(struct assay_bench_spec *to, const struct assay_bench_spec *from)
{
	const size_t at = offsetof(struct assay_bench_spec, settings),
		     tail = offsetof(struct assay_bench_spec, unit);
	const char *p = (const char *)from;
	uint32_t has, settings = 0;
	size_t begin;

	memcpy(&has, p, sizeof has);
	take_struct(to, sizeof *to, NULL, 0);
	if (has < at + sizeof settings)
		return false;
	memcpy(to, p, at);
	memcpy(&settings, p + at, sizeof settings);
	begin = tail_of(settings);
	(void)as_settings_take(&to->settings,
			       (const struct assay_bench_settings *)(p + at)); /* 0: none set */
	if (has > begin)
		memcpy((char *)to + tail, p + begin, AS_MIN(has - begin, sizeof *to - tail));
	to->size = sizeof *to;
	return true;
}

/* ---- a batch ---- */

bool as_subject_is_time(const struct as_subject *s)
{
	return !s->spec->unit || !s->spec->unit->name || strcmp(s->spec->unit->name, "ns") == 0;
}

static char *copy_of(const char *s)
{
	return s && *s ? as_xstrdup(s) : NULL;
}

void as_subject_entry(const struct assay_bench_spec *spec, struct as_fn_entry *ret)
{
	*ret = (struct as_fn_entry){
		.id = as_bench_id(spec),
		.group = copy_of(spec->group),
		.function = copy_of(spec->function),
		.value = copy_of(spec->value),
		.throughput = (enum as_fn_throughput)spec->throughput,
		.throughput_n = spec->throughput_n,
		.throughput_n2 = spec->throughput_n2,
		.unit = as_xstrdup(spec->unit && spec->unit->name ? spec->unit->name : "ns"),
		.threads = spec->threads ? spec->threads : 1,
	};
	if ((unsigned)ret->throughput >= AS_FN_THROUGHPUTS_)
		ret->throughput = AS_FN_NONE;
}

uint64_t as_thread_cpu_ns(void)
{
	struct timespec t = {0};

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* cannot fail for the own thread */
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int as_subject_run(const struct as_subject *s, uint64_t iters, struct as_answer_batch *ret,
		   struct as_error *err)
{
	bool warmup = ret->warmup;
	pid_t pid = getpid();
	char text[256];
	int r = AS_OK;

	if (s->spec->threads > 1) {
		r = as_team_run(s, iters, ret, err);
	} else {
		uint64_t cpu, wall;

		as_stretch_reset();
		cpu = as_thread_cpu_ns();
		wall = as_now_ns();
		ret->value = s->fn(s->ctx, iters);
		ret->wall_ns = (double)(as_now_ns() - wall);
		ret->cpu_ns = (double)(as_thread_cpu_ns() - cpu);
		ret->rate = ret->overlap = NAN;
	}
	ret->warmup = warmup;
	if (s->caller)
		(void)as_spec_take(s->spec, s->caller); /* it had its size before */
	if (r < 0)
		return r;
	/* only one of them may go on */
	if (getpid() != pid)
		return as_fail(
			err, AS_E_USAGE, 0,
			"the benchmark forked, and the child came back from it as well: end "
			"the child with _exit");
	if (as_problem_take(text, sizeof text))
		return as_fail(err, AS_E_USAGE, 0, "%s", text);
	if (!isfinite(ret->value))
		return as_fail(err, AS_E_USAGE, 0, "the measurement gave no number");
	if (ret->value < 0 && as_subject_is_time(s))
		return as_fail(err, AS_E_USAGE, 0, "the measurement gave a time below zero");
	return AS_OK;
}
