/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How many iterations make a batch: see worker_priv.h. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/sys.h"
#include "harness/worker_priv.h"

#define BATCH_NS      1e6
#define TEAM_BATCH_NS 4e6  /* threads take a while to find a CPU each */
#define WALL_NS       20e6 /* of a batch that is mostly set-up */
#define ITERS_MAX     (1ull << 40)
#define REPEAT_MAX_NS                                                                          \
	3e9 /* what takes longer is not run twice to see whether the first was cold */
#define DOUBLE_MAX_NS 50e6 /* nor with twice the iterations */
#define SLOWER        4
#define PROPORTION_NS 250000000 /* looked at for so long at most */
#define ROUNDS        4

/* What the thread waited for a CPU so far; 0: it is not told. */
static double waited_ns(void)
{
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};
	uint64_t ran, waited;

	if (as_read_file("/proc/thread-self/schedstat", 256, &text, NULL) < 0 ||
	    sscanf(as_buf_str(&text), "%" SCNu64 " %" SCNu64, &ran, &waited) != 2)
		return 0;
	return (double)waited;
}

/* A batch without the time that others had the CPU: on a busy machine most of it would be theirs, and
 * batches would be planned too short. */
static int run_alone(const struct as_subject *s, uint64_t n, struct as_answer_batch *ret,
		     struct as_error *err)
{
	double before = waited_ns(), waited;
	int r = as_subject_run(s, n, ret, err);

	waited = waited_ns() - before;
	/* what was waited in the timed part is not known: in proportion to it */
	if (r == AS_OK && waited > 0 && waited < ret->wall_ns) {
		if (as_subject_is_time(s) && ret->value <= ret->wall_ns)
			ret->value *= 1 - waited / ret->wall_ns;
		ret->wall_ns -= waited;
	}
	return r;
}

/* What the batch is planned on. */
static double basis(const struct as_subject *s, const struct as_answer_batch *b)
{
	return as_subject_is_time(s) ? b->value : b->wall_ns;
}

static double wanted_ns(const struct as_subject *s)
{
	return s->spec->threads > 1 ? TEAM_BATCH_NS : BATCH_NS;
}

static bool is_enough(const struct as_subject *s, const struct as_answer_batch *b, uint64_t n)
{
	return basis(s, b) >= wanted_ns(s) / 2 || b->wall_ns >= WALL_NS || n >= ITERS_MAX;
}

/* Least of several runs of n iterations: each figure by itself. */
static int least_of(const struct as_subject *s, uint64_t n, int times,
		    struct as_answer_batch *ret, struct as_error *err)
{
	for (int i = 0; i < times; i++) {
		struct as_answer_batch b = {0};
		int r = as_subject_run(s, n, &b, err);

		if (r < 0)
			return r;
		ret->value = fmin(ret->value, b.value);
		ret->cpu_ns = fmin(ret->cpu_ns, b.cpu_ns);
		ret->wall_ns = fmin(ret->wall_ns, b.wall_ns);
	}
	return AS_OK;
}

static bool in_proportion(double ratio)
{
	return ratio > AS_PROPORTION_LO && ratio < AS_PROPORTION_HI;
}

/*
 * Time of `twice` the iterations over twice the time: 1 when it grows as they do. A busy machine makes a
 * batch longer now and then, so it is looked at several times; and where a batch is timed as a whole, its
 * CPU time may excuse it.
 */
static int proportion(const struct as_subject *s, uint64_t n, const struct as_answer_batch *b,
		      double *ret, struct as_error *err)
{
	uint64_t half = n > 1 ? n / 2 : 1, more = n > 1 ? n : 2;
	double wanted = (double)more / (double)half, by_cpu;
	struct as_answer_batch a = {.value = INFINITY, .cpu_ns = INFINITY, .wall_ns = INFINITY},
			       c = a;
	uint64_t until = as_now_ns() + PROPORTION_NS;

	*ret = NAN;
	/* threads that meet, or not, take what they take */
	if (b->wall_ns > DOUBLE_MAX_NS || s->spec->threads > 1)
		return AS_OK;
	for (int round = 0; round < ROUNDS && as_now_ns() < until; round++) {
		int r = least_of(s, half, 2, &a, err);

		if (r == AS_OK)
			r = least_of(s, more, 1, &c, err);
		if (r < 0)
			return r;
		if (!(a.value > 0))
			return AS_OK;
		*ret = c.value / a.value / wanted;
		if (in_proportion(*ret))
			return AS_OK;
		by_cpu = c.cpu_ns / a.cpu_ns / wanted;
		if (as_subject_is_time(s) && c.value > c.wall_ns / 2 && in_proportion(by_cpu))
			*ret = by_cpu;
		if (in_proportion(*ret) && round)
			return AS_OK;
	}
	return AS_OK;
}

/* n such that two batches of n are enough, the lesser of them in ret. */
static int find(const struct as_subject *s, uint64_t *n, struct as_answer_batch *ret,
		struct as_answer_batch *first, struct as_error *err)
{
	bool is_first = true;

	for (;; *n *= 2) {
		struct as_answer_batch again = {0};
		int r = run_alone(s, *n, ret, err);

		if (r < 0)
			return r;
		if (is_first)
			*first = *ret;
		is_first = false;
		if (!is_enough(s, ret, *n))
			continue;
		if (ret->wall_ns > REPEAT_MAX_NS)
			return AS_OK;
		/* the first may have been cold, or somebody else had the CPU */
		r = run_alone(s, *n, &again, err);
		if (r < 0)
			return r;
		if (basis(s, &again) < basis(s, ret)) {
			*ret = again;
		} else if (basis(s, &again) > SLOWER * basis(s, ret)) {
			/* interrupted, or slower from here on: once more tells */
			r = run_alone(s, *n, &again, err);
			if (r < 0)
				return r;
			if (basis(s, &again) > SLOWER * basis(s, ret))
				*ret = again;
		}
		if (is_enough(s, ret, *n))
			return AS_OK;
	}
}

static uint64_t batch_of(const struct as_subject *s, uint64_t n,
			 const struct as_answer_batch *b)
{
	double by_time = basis(s, b) > 0 ? wanted_ns(s) / basis(s, b) : INFINITY;
	double by_wall = b->wall_ns > 0 ? WALL_NS / b->wall_ns : INFINITY;
	double wanted = (double)n * fmin(by_time, by_wall);

	if (wanted >= (double)ITERS_MAX)
		return ITERS_MAX;
	return wanted > 1 ? (uint64_t)(wanted + 0.5) : 1;
}

static void told(struct as_buf *out, uint64_t n, const struct as_answer_batch *b,
		 const struct as_answer_batch *first)
{
	as_buf_adds(out, "calibrated");
	as_line_u64(out, n);
	as_line_num(out, b->value);
	as_line_num(out, b->wall_ns);
	as_line_num(out, first->value);
	as_line_num(out, first->wall_ns);
	as_buf_addc(out, '\n');
}

int as_calibrate(const struct as_subject *s, bool full, struct as_buf *out,
		 struct as_error *err)
{
	struct as_answer_batch b = {0}, first = {0};
	uint64_t n = 1, batch;
	double ratio, scale;
	int r;

	if (!full) {
		r = as_subject_run(s, 1, &b, err);
		if (r < 0)
			return r;
		/* known only now */
		if (!as_subject_is_time(s)) {
			told(out, 0, &b, &b);
			return AS_OK;
		}
		first = b;
	}
	r = find(s, &n, &b, full ? &first : &(struct as_answer_batch){0}, err);
	if (r < 0)
		return r;
	batch = batch_of(s, n, &b);
	scale = (double)batch / (double)n;
	r = proportion(s, AS_MAX(batch, n), &b, &ratio, err);
	if (r < 0)
		return r;
	b.value *= scale;
	b.wall_ns *= scale;
	told(out, batch, &b, &first);
	if (isfinite(ratio)) {
		as_buf_adds(out, "proportion");
		as_line_num(out, ratio);
		as_buf_addc(out, '\n');
	}
	return AS_OK;
}
