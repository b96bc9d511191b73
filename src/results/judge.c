/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Suites as a whole: see judge.h. */
#include "results/judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats/fdr.h"
#include "stats/interval.h"
#include "stats/paired.h"

#define ENVIRONMENT_LEAST 0.03 /* ln: a smaller shift of all is the machine's daily mood */
#define SUITE_LEAST       3

/* Kept samples of a 20 % trimmed mean, less one. */
static double degrees(size_t n)
{
	return (double)(n - 2 * (size_t)(AS_PAIRED_TRIM * (double)n)) - 1;
}

/* p of no difference, where the measuring side has not told it: from the pairs, else from the interval
 * as a normal one. */
static double find_p(const struct as_bench_comparison *c)
{
	const struct as_bench_estimate *r = &c->ratio;
	struct as_trimmed t;

	if (!isnan(c->p))
		return c->p;
	if (c->d.n >= 3) {
		as_trimmed_interval(c->d.v, c->d.n, AS_PAIRED_TRIM, 0.05, &t);
		return t.se > 0 ? as_student_p(t.value / t.se, degrees(c->d.n))
				: (t.value != 0 ? 0 : 1);
	}
	if (!(r->low > 0) || !(r->high > r->low) || !(r->value > 0))
		return NAN;
	return erfc(fabs(log(r->value)) / (log(r->high / r->low) / 2 / 1.959964) * M_SQRT1_2);
}

static bool is_verdict(const struct as_bench_comparison *c)
{
	return !c->stored && c->ratio.value > 0;
}

static void control_discoveries(struct as_bench_set *s)
{
	AS_CLEANUP(as_free_autop)
	double *q = as_xreallocarray(NULL, s->comparisons.n + 1, sizeof *q);
	size_t n = 0, i = 0;

	as_vec_foreach (c, &s->comparisons) {
		if (is_verdict(c))
			c->p = find_p(c);
		q[i++] = is_verdict(c) ? c->p : NAN;
		n += is_verdict(c);
	}
	if (n < 2)
		return;
	as_fdr_adjust(q, s->comparisons.n, q);
	i = 0;
	as_vec_foreach (c, &s->comparisons) {
		double rate = q[i++];
		bool changed = c->verdict == AS_BENCH_SLOWER || c->verdict == AS_BENCH_FASTER;

		if (!changed || !is_verdict(c) || !(rate > AS_BENCH_FDR))
			continue;
		as_bench_note(&c->notes, "fdr",
			      "alone it would be %s (p %.2g); among %zu comparisons that is "
			      "to be expected by chance",
			      as_bench_verdict_name(c->verdict), c->p, n);
		c->verdict = AS_BENCH_UNDECIDED;
	}
}

/* ---- the suite's effect ---- */

static void geometric_mean(struct as_bench_set *s)
{
	double sum = 0, variance = 0, mean, half;
	size_t n = 0;

	as_vec_foreach (c, &s->comparisons) {
		const struct as_bench_estimate *r = &c->ratio;

		if (!is_verdict(c) || !(r->low > 0) || !isfinite(r->high))
			continue;
		sum += log(r->value);
		variance += pow(log(r->high / r->low) / 2, 2);
		n++;
	}
	if (n < SUITE_LEAST)
		return;
	mean = sum / (double)n;
	half = sqrt(variance) / (double)n;
	as_bench_note(&s->notes, "geometric-mean",
		      "geometric mean of %zu comparisons: %+.1f %% [%+.1f, %+.1f]", n,
		      100 * expm1(mean), 100 * expm1(mean - half), 100 * expm1(mean + half));
}

/* Changes of code make some benchmarks faster and some slower. When all lean to one side, most often
 * something else than the code did it: another layout, a warmer machine, a flag of the compiler. */
static void one_sided(struct as_bench_set *s)
{
	uint64_t up = 0, down = 0;
	double p;

	as_vec_foreach (c, &s->comparisons) {
		up += is_verdict(c) && c->ratio.value > 1;
		down += is_verdict(c) && c->ratio.value < 1;
	}
	p = as_sign_test(up, down);
	if (p >= AS_BENCH_ONE_SIDED)
		return;
	as_bench_note(
		&s->notes, "one-sided",
		"%ju of %ju comparisons lean to %s (p %.1g): one cause for all of them, "
		"such as a flag, a library or the layout, is likelier than as many changes",
		(uintmax_t)AS_MAX(up, down), (uintmax_t)(up + down),
		up > down ? "slower" : "faster", p);
}

void as_bench_judge(struct as_bench_set *s)
{
	if (s->judged)
		return;
	s->judged = true;
	control_discoveries(s);
	geometric_mean(s);
	one_sided(s);
}

/* ---- the environment ---- */

static int by_value(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return (a > b) - (a < b);
}

/* The older side of a comparison, which did not change since; of a bench that was not compared there
 * is none. */
static const struct as_bench *untouched(const struct as_bench_set *s,
					const struct as_bench_comparison *c,
					const struct as_bench_set *before)
{
	const struct as_bench *a =
		c->name && c->a && !c->stored ? as_bench_find(s, c->name, c->a) : NULL;

	return a && as_bench_find(before, a->name, NULL) && a->time.value > 0 ? a : NULL;
}

void as_bench_judge_environment(struct as_bench_set *s, const struct as_bench_set *before)
{
	AS_CLEANUP(as_free_autop)
	double *shift = as_xreallocarray(NULL, s->comparisons.n + 1, sizeof *shift);
	uint64_t up = 0, down = 0;
	size_t n = 0;

	if (!s->machine || !before->machine || strcmp(s->machine, before->machine) != 0)
		return;
	as_vec_foreach (c, &s->comparisons) {
		const struct as_bench *a = untouched(s, c, before);
		const struct as_bench *then = a ? as_bench_find(before, a->name, c->b) : NULL;

		if (a && !then)
			then = as_bench_find(before, a->name, NULL);
		if (!a || !(then->time.value > 0))
			continue;
		shift[n] = log(a->time.value / then->time.value);
		up += shift[n] > 0;
		down += shift[n++] < 0;
	}
	if (as_sign_test(up, down) >= AS_BENCH_ONE_SIDED)
		return;
	qsort(shift, n, sizeof *shift, by_value);
	if (fabs(shift[n / 2]) < ENVIRONMENT_LEAST)
		return;
	as_bench_note(
		&s->notes, "environment",
		"the unchanged side is %+.0f %% off its last saved result in %zu benchmarks: "
		"the environment moved; the pairs of today are not touched by it, a trend is",
		100 * expm1(shift[n / 2]), n);
}
