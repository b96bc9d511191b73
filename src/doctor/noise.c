/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The noise test: see vitals.h. The loop lives in registers, so that caches and memory have no part
 * in it: what it shows is time taken away and a clock rate that moves, the floor under any program.
 */
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "doctor/doctor_priv.h"

enum { SLICE_NS = 2000, SLICES_PER_REPETITION = 500, CALIBRATIONS = 20, CLOCK_READS = 200 };

/* A chain of multiplications, each waiting for the one before it. */
static uint64_t __attribute__((noinline)) work(uint64_t x, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		x = x * 6364136223846793005ull + 1442695040888963407ull;
	return x;
}

static volatile uint64_t sink;

/* Multiplications of a slice: from the quickest of several tries. */
static uint64_t calibrate(const struct as_doctor *d)
{
	enum { TRY = 4096 };
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < CALIBRATIONS; i++) {
		uint64_t from = d->now_ns(), ns;

		sink = work(sink, TRY);
		ns = d->now_ns() - from;
		best = AS_MIN(best, ns);
	}
	return AS_MAX((uint64_t)TRY * SLICE_NS / AS_MAX(best, 1), 1);
}

/* ---- the figures of a run ---- */

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double quantile(const double *sorted, size_t n, double p)
{
	double at = p * (double)(n - 1);
	size_t i = (size_t)at;

	return i + 1 < n ? sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i])
			 : sorted[n - 1];
}

/* Sorts v. 1.4826 MAD / median. */
static double robust_spread(double *v, size_t n, double *ret_median)
{
	double median, mad;

	qsort(v, n, sizeof *v, ascending);
	median = quantile(v, n, 0.5);
	*ret_median = median;
	AS_CLEANUP(as_free_autop) double *off = as_xcalloc(n, sizeof *off);
	for (size_t i = 0; i < n; i++)
		off[i] = fabs(v[i] - median);
	qsort(off, n, sizeof *off, ascending);
	mad = quantile(off, n, 0.5);
	return median > 0 ? 1.4826 * mad / median : 0;
}

static uint32_t usual_slice(const uint32_t *slices, size_t n)
{
	AS_CLEANUP(as_free_autop) double *v = as_xcalloc(n, sizeof *v);

	for (size_t i = 0; i < n; i++)
		v[i] = slices[i];
	qsort(v, n, sizeof *v, ascending);
	return (uint32_t)quantile(v, n, 0.5);
}

void as_noise_from_slices(const uint32_t *slices, size_t n, size_t per, struct as_noise *ret)
{
	size_t repetitions = per ? n / per : 0;
	double all = 0, lost = 0, median;

	*ret = (struct as_noise){.waited = -1, .cpu = -1};
	if (repetitions < 2)
		return;
	uint32_t usual = usual_slice(slices, n), worst = 0;
	AS_CLEANUP(as_free_autop) double *wall = as_xcalloc(repetitions, sizeof *wall);
	AS_CLEANUP(as_free_autop) double *ran = as_xcalloc(repetitions, sizeof *ran);

	for (size_t i = 0; i < repetitions * per; i++) {
		uint32_t gap = slices[i] > usual + AS_NOISE_GAP_NS ? slices[i] - usual : 0;

		wall[i / per] += slices[i];
		ran[i / per] += slices[i] - gap;
		all += slices[i];
		lost += gap;
		ret->gaps += gap != 0;
		worst = AS_MAX(worst, gap);
	}
	ret->repetitions = (unsigned)repetitions;
	ret->speed = robust_spread(ran, repetitions, &median);
	ret->spread = robust_spread(wall, repetitions, &median);
	ret->range = median > 0 ? (quantile(wall, repetitions, 0.95) -
				   quantile(wall, repetitions, 0.05)) /
					  median
				: 0;
	ret->typical_ms = median / 1e6;
	ret->worst_gap_ms = worst / 1e6;
	ret->lost = all > 0 ? lost / all : 0;
}

/* ---- the run ---- */

/* Nanoseconds this thread has been runnable without a CPU. */
static bool run_delay(const struct as_doctor *d, uint64_t *ret)
{
	char line[96];
	char *blank;

	if (!as_doctor_line(line, sizeof line, d->proc, "thread-self/schedstat"))
		return false;
	blank = strchr(line, ' ');
	if (!blank)
		return false;
	blank[1 + strcspn(blank + 1, " ")] = 0;
	return as_parse_u64(blank + 1, ret);
}

void as_noise_run(const struct as_doctor *d, uint64_t length_ns, struct as_noise *ret)
{
	size_t max = (size_t)(length_ns / SLICE_NS) * 2 + SLICES_PER_REPETITION, n = 0;
	AS_CLEANUP(as_free_autop) uint32_t *slices = as_xcalloc(max, sizeof *slices);
	uint64_t turns = calibrate(d), delay[2] = {0}, from, now, x = sink;
	bool delays = run_delay(d, &delay[0]);
	uint32_t moves = 0;
	int cpu = sched_getcpu();

	/* the pages of slices are touched before the clock counts */
	memset(slices, 1, max * sizeof *slices);
	from = now = d->now_ns();
	while (n < max && now - from < length_ns) {
		uint64_t next;
		int here;

		x = work(x, turns);
		next = d->now_ns();
		slices[n++] = (uint32_t)AS_MIN(next - now, UINT32_MAX);
		now = next;
		here = n % SLICES_PER_REPETITION ? cpu : sched_getcpu();
		moves += here != cpu;
		cpu = here;
	}
	sink = x;
	as_noise_from_slices(slices, n, SLICES_PER_REPETITION, ret);
	ret->moves = moves;
	ret->cpu = cpu;
	if (delays && run_delay(d, &delay[1]) && now > from && delay[1] >= delay[0])
		ret->waited = (double)(delay[1] - delay[0]) / (double)(now - from);
}

/* The quickest of several readings in a row: what one costs when nothing disturbs it. */
static double clock_cost(const struct as_doctor *d)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < CALIBRATIONS; i++) {
		uint64_t from = d->now_ns(), to = from;

		for (int k = 0; k < CLOCK_READS; k++)
			to = d->now_ns();
		best = AS_MIN(best, to - from);
	}
	return (double)best / CLOCK_READS;
}

void as_vitals_measure(const struct as_doctor *d, bool noise, struct as_vitals *ret)
{
	enum { NOISE_NS = 1000000000, QUICK_NS = 250000000 };
	struct as_snapshot before, after;

	*ret = (struct as_vitals){.noise = {.waited = -1, .cpu = -1}};
	ret->clock_ns = clock_cost(d);
	as_snapshot_take(d, &before);
	if (noise)
		as_noise_run(d, NOISE_NS, &ret->noise);
	else
		d->sleep_ns(QUICK_NS);
	as_snapshot_take(d, &after);
	as_pulse_between(d, &before, &after, ret->noise.cpu, &ret->pulse);
	as_snapshot_clear(&before);
	as_snapshot_clear(&after);
}

/* ---- the check ---- */

int as_check_noise(const struct as_doctor *d, struct as_findings *out)
{
	const struct as_noise *n = d->vitals ? &d->vitals->noise : NULL;
	enum as_severity severity = AS_SEVERITY_OK;
	struct as_finding *f;

	if (!n || !n->repetitions)
		return 0;
	if (n->spread > 0.01 || n->lost > 0.01)
		severity = AS_SEVERITY_WARN;
	if (n->spread > 0.05 || n->lost > 0.1)
		severity = AS_SEVERITY_BAD;
	f = as_findings_add(out, AS_AREA_MACHINE, "noise", severity,
			    "noise: %s ms of equal work varied by ±%s %%, worst gap %s ms",
			    as_figure(n->typical_ms).s, as_figure(n->spread * 100).s,
			    as_figure(n->worst_gap_ms).s);
	as_finding_why(
		f,
		"5 to 95 %% of %u repetitions span %s %%; gaps took %s %% of the time%s; "
		"outside them the speed varied by ±%s %%",
		n->repetitions, as_figure(n->range * 100).s, as_figure(n->lost * 100).s,
		n->waited > 0.5 * n->lost && n->lost > 0.01 ? ", mostly waiting for a CPU" : "",
		as_figure(n->speed * 100).s);
	if (severity != AS_SEVERITY_OK)
		as_finding_fix(f, "assay stat -- OLD --vs NEW   (in pairs, which noise hits "
				  "alike)");
	return 0;
}
