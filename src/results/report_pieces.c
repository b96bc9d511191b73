/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Figures as short texts: see report.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "results/report.h"

/* Three significant digits of x >= 0 below 1000. */
static void three(struct as_buf *out, double x)
{
	as_buf_addf(out, x < 9.995 ? "%.2f" : x < 99.95 ? "%.1f" : "%.0f", x);
}

static void seconds(struct as_buf *out, double s)
{
	static const struct {
		double from, by;
		const char *unit;
	} steps[] = {{0.9995, 1, "s"},
		     {0.9995e-3, 1e3, "ms"},
		     {0.9995e-6, 1e6, "µs"},
		     {0.9995e-9, 1e9, "ns"}};

	for (size_t i = 0; i < AS_ARRAY_LEN(steps); i++) {
		if (s < steps[i].from)
			continue;
		if (s * steps[i].by < 999.5)
			three(out, s * steps[i].by);
		else if (s < 1e9)
			as_fmt_count(out, (uint64_t)(s + 0.5));
		else
			as_buf_addf(out, "%.2e", s);
		as_buf_addf(out, " %s", steps[i].unit);
		return;
	}
	if (s == 0)
		as_buf_adds(out, "0 ns");
	else
		as_buf_addf(out, s < 0.0995e-9 ? "%.2g ns" : "%.2f ns", s * 1e9);
}

/* step 1000 or 1024 */
static void scaled(struct as_buf *out, double x, double step, const char *const *units)
{
	while (x >= step * 0.9995 && units[1]) {
		x /= step;
		units++;
	}
	if (x >= 1e9)
		as_buf_addf(out, "%.2e", x);
	else if (x >= 999.5)
		as_fmt_count(out, (uint64_t)(x + 0.5));
	else if (x != floor(x) || x >= 100 || **units)
		three(out, x);
	else
		as_buf_addf(out, "%.0f", x);
	if (**units)
		as_buf_addf(out, " %s", *units);
}

static const char *const bytes_units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", NULL};
static const char *const bytes_units_s[] = {"B/s", "KiB/s", "MiB/s", "GiB/s", "TiB/s", NULL};
static const char *const decimal_units[] = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s", NULL};
static const char *const bit_units[] = {"b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s", NULL};
static const char *const elem_units[] = {"elem/s",   "K elem/s", "M elem/s",
					 "G elem/s", "T elem/s", NULL};
static const char *const plain_units[] = {"", "K", "M", "G", "T", "P", NULL};

void as_bench_value(struct as_buf *out, const char *unit, double x)
{
	const char *u = unit ? unit : "s";

	if (!isfinite(x)) {
		as_buf_addc(out, '-');
		return;
	}
	if (x < 0)
		as_buf_addc(out, '-');
	x = fabs(x);
	if (strcmp(u, "s") == 0) {
		seconds(out, x);
	} else if (strcmp(u, "B") == 0 || strcmp(u, "bytes") == 0) {
		scaled(out, x, 1024, bytes_units);
	} else {
		if (x > 0 && x < 0.01)
			as_buf_addf(out, "%.3g", x);
		else
			scaled(out, x, 1000, plain_units);
		if (*u && strcmp(u, "1") != 0 && strcmp(u, "count") != 0)
			as_buf_addf(out, " %s", u);
	}
}

void as_bench_value_in(struct as_buf *out, const char *time_unit, const char *unit, double x)
{
	bool micro = time_unit && strcmp(time_unit, "us") == 0;
	double by = micro ? 1e6 : time_unit && strcmp(time_unit, "ms") == 0 ? 1e3 : 1;

	if (!time_unit || (unit && strcmp(unit, "s") != 0) || !isfinite(x)) {
		as_bench_value(out, unit, x);
		return;
	}
	if (x < 0)
		as_buf_addc(out, '-');
	x = fabs(x) * by;
	if (x < 0.995)
		as_buf_addf(out, "%.3g", x); /* 0, too */
	else if (x < 999.5)
		three(out, x);
	else if (x < 1e18)
		as_fmt_count(out, (uint64_t)(x + 0.5));
	else
		as_buf_addf(out, "%.2e", x);
	as_buf_addf(out, " %s", micro ? "µs" : time_unit);
}

static void percent(struct as_buf *out, double ratio)
{
	double p = 100 * (ratio - 1);

	as_buf_addf(out, fabs(p) < 99.95 ? "%+.1f" : "%+.0f", p == 0 ? 0.0 : p);
}

void as_bench_change(struct as_buf *out, const struct as_bench_estimate *r)
{
	bool times = r->value > 2 || r->value < 0.5;

	if (!(r->value > 0) || !isfinite(r->value)) {
		as_buf_addc(out, '-');
		return;
	}
	if (times)
		as_buf_addf(out, r->value < 9.995 ? "x%.2f" : "x%.1f", r->value);
	else
		percent(out, r->value);
	as_buf_adds(out, times ? "" : " %");
	if (!isfinite(r->low) || !isfinite(r->high))
		return;
	as_buf_adds(out, " [");
	if (times) {
		as_buf_addf(out, r->value < 9.995 ? "%.2f, %.2f" : "%.1f, %.1f", r->low,
			    r->high);
	} else {
		percent(out, r->low);
		as_buf_adds(out, ", ");
		percent(out, r->high);
	}
	as_buf_addc(out, ']');
}

void as_bench_rate(struct as_buf *out, const struct as_bench *b)
{
	double t = b->time.value, n = (double)b->throughput_n;

	if (b->throughput == AS_THRPT_NONE || !(t > 0) ||
	    (b->unit && strcmp(b->unit, "s") != 0))
		return;
	switch (b->throughput) {
	case AS_THRPT_BYTES:
		scaled(out, n / t, 1024, bytes_units_s);
		break;
	case AS_THRPT_BYTES_DECIMAL:
		scaled(out, n / t, 1000, decimal_units);
		break;
	case AS_THRPT_BITS:
		scaled(out, n / t, 1000, bit_units);
		break;
	default:
		scaled(out, n / t, 1000, elem_units);
		break;
	}
	if (b->throughput == AS_THRPT_ELEMENTS_AND_BYTES) {
		as_buf_adds(out, ", ");
		scaled(out, (double)b->throughput_n2 / t, 1024, bytes_units_s);
	}
}

void as_bench_tally(struct as_buf *out, const struct as_bench_set *s)
{
	static const enum as_bench_verdict order[] = {AS_BENCH_SLOWER, AS_BENCH_FASTER,
						      AS_BENCH_MOVED, AS_BENCH_UNDECIDED,
						      AS_BENCH_EQUAL};
	size_t count[AS_BENCH_VERDICTS_] = {0}, stored = 0, at = out->len;

	as_vec_foreach (c, &s->comparisons) {
		if (c->stored)
			stored++;
		else
			count[c->verdict]++;
	}
	for (size_t i = 0; i < AS_ARRAY_LEN(order); i++) {
		if (count[order[i]])
			as_buf_addf(out, "%s%zu %s", out->len > at ? ", " : "", count[order[i]],
				    as_bench_verdict_name(order[i]));
	}
	if (stored)
		as_buf_addf(out, "%s%zu of different times (no verdict)",
			    out->len > at ? ", " : "", stored);
}

/* ---- distribution ---- */

static int by_value(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return (a > b) - (a < b);
}

void as_bench_spark(struct as_buf *out, const double *v, size_t n)
{
	static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	AS_CLEANUP(as_free_autop) double *x = as_xreallocarray(NULL, n + 1, sizeof *x);
	size_t count[AS_BENCH_SPARK] = {0}, k = 0, most = 1;
	double low, high, range;

	for (size_t i = 0; i < n; i++) {
		if (isfinite(v[i]))
			x[k++] = v[i];
	}
	if (k < 3)
		return;
	qsort(x, k, sizeof *x, by_value);
	range = x[3 * k / 4] - x[k / 4];
	low = range > 0 ? fmax(x[0], x[k / 4] - 4 * range) : x[0];
	high = range > 0 ? fmin(x[k - 1], x[3 * k / 4] + 4 * range) : x[k - 1];
	for (size_t i = 0; i < k; i++) {
		double at = high > low ? (x[i] - low) / (high - low) * AS_BENCH_SPARK
				       : AS_BENCH_SPARK / 2;
		int cell = (int)fmin(fmax(at, 0), AS_BENCH_SPARK - 1);

		most = AS_MAX(most, ++count[cell]);
	}
	for (size_t i = 0; i < AS_BENCH_SPARK; i++)
		as_buf_adds(out, count[i] ? blocks[(count[i] * 8 - 1) / most] : " ");
}

const struct as_bench *as_bench_side(const struct as_bench_set *s,
				     const struct as_bench_comparison *c, int side)
{
	const char *of = side ? c->b : c->a;
	const struct as_bench *found;

	if (!of)
		return NULL;
	found = c->name ? as_bench_find(s, c->name, of) : NULL;
	return found ? found : as_bench_find(s, of, NULL);
}
