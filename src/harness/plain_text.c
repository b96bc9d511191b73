/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A result as a line: see plain_priv.h. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/sys.h"
#include "harness/plain_priv.h"

#define NAME_COLUMNS 32

/* v with four digits: 1.234, 12.34, 123.4, 1234. */
static void digits(struct as_buf *b, double v)
{
	double a = fabs(v);
	int after = a < 9.9995 ? 3 : a < 99.995 ? 2 : a < 999.95 ? 1 : 0;

	as_buf_addf(b, "%.*f", after, v);
}

void as_plain_time(struct as_buf *b, double ns)
{
	static const struct {
		double from, size;
		const char *unit;
	} units[] = {{1e9, 1e9, "s"}, {1e6, 1e6, "ms"}, {1e3, 1e3, "us"}, {0, 1, "ns"}};
	size_t i = 0;

	while (!(ns >= units[i].from * 0.99995) && units[i].from > 0)
		i++;
	if (ns > 0 && ns < 0.1)
		as_buf_addf(b, "%.2g ns", ns);
	else {
		digits(b, ns / units[i].size);
		as_buf_addf(b, " %s", units[i].unit);
	}
}

static void value(struct as_buf *b, const struct as_fn_result *r,
		  const struct assay_bench_unit *unit, double v)
{
	char text[128] = "";

	if (strcmp(r->what.unit, "ns") == 0) {
		as_plain_time(b, v);
		return;
	}
	if (unit && unit->format)
		unit->format(unit->ctx, v, text, sizeof text);
	if (text[0])
		as_fmt_quoted(b, text, strnlen(text, sizeof text));
	else
		as_buf_addf(b, "%.6g %s", v, r->what.unit);
}

static void scaled(struct as_buf *b, double v, double step, const char *unit)
{
	static const char *const prefixes[] = {"", "k", "M", "G", "T"};
	static const char *const binary[] = {"", "Ki", "Mi", "Gi", "Ti"};
	size_t i = 0;

	while (v >= step && i + 1 < AS_ARRAY_LEN(prefixes)) {
		v /= step;
		i++;
	}
	digits(b, v);
	as_buf_addf(b, " %s%s", step == 1024 ? binary[i] : prefixes[i], unit);
}

static void rate(struct as_buf *b, const struct as_fn_result *r)
{
	double per_s = 1e9 / r->side[r->sides - 1].time.value;
	double n = (double)r->what.throughput_n * per_s;

	if (strcmp(r->what.unit, "ns") != 0 || r->what.throughput == AS_FN_NONE)
		return;
	as_buf_adds(b, "  ");
	if (r->what.throughput == AS_FN_BYTES)
		scaled(b, n, 1024, "B/s");
	else if (r->what.throughput == AS_FN_BYTES_DECIMAL)
		scaled(b, n, 1000, "B/s");
	else if (r->what.throughput == AS_FN_BITS)
		scaled(b, n, 1000, "bit/s");
	else
		scaled(b, n, 1000, "elem/s");
	if (r->what.throughput == AS_FN_ELEMENTS_AND_BYTES) {
		as_buf_adds(b, "  ");
		scaled(b, (double)r->what.throughput_n2 * per_s, 1024, "B/s");
	}
}

static void threads(struct as_buf *b, const struct as_fn_result *r)
{
	const struct as_fn_side_result *s = &r->side[r->sides - 1];
	double all = 0, overlap = 0;

	if (r->what.threads < 2)
		return;
	as_vec_foreach (p, &s->processes) {
		all += p->rate / (double)s->processes.n;
		overlap += p->overlap / (double)s->processes.n;
	}
	as_buf_adds(b, "  ");
	scaled(b, 1e9 / s->time.value, 1000, "/s a thread, ");
	scaled(b, all, 1000, "/s together");
	as_buf_addf(b, " (overlap %.0f %%)", 100 * overlap);
}

static void memory(struct as_buf *b, const struct as_fn_result *r)
{
	const struct as_fn_side_result *s = &r->side[r->sides - 1];

	if (!(s->allocs > 0))
		return;
	as_buf_addf(b, "  %.*f alloc%s ", s->allocs == floor(s->allocs) ? 0 : 2, s->allocs,
		    s->allocs == 1 ? "" : "s");
	scaled(b, s->alloc_bytes, 1024, "B, peak ");
	scaled(b, s->peak_bytes, 1024, "B");
}

static void add_one(struct as_buf *b, const struct as_fn_result *r,
		    const struct assay_bench_unit *unit)
{
	const struct as_fn_estimate *e = &r->side[0].time;

	value(b, r, unit, e->value);
	if (r->exact)
		as_buf_adds(b, "  exactly");
	else if (isfinite(e->low) && e->value > 0)
		as_buf_addf(b, "  ± %.2g %%", 50 * (e->high - e->low) / e->value);
	else if (isfinite(e->low))
		as_buf_addf(b, "  [%.3g, %.3g]", e->low, e->high);
	else
		as_buf_adds(b, "  ± ?");
}

static void change(struct as_buf *b, const struct as_fn_result *r,
		   const struct assay_bench_unit *unit, bool color)
{
	enum as_verdict v = r->look.verdict;
	const char *paint = v == AS_VERDICT_SLOWER   ? "\033[31m"
			    : v == AS_VERDICT_FASTER ? "\033[32m"
						     : NULL;

	value(b, r, unit, r->side[0].time.value);
	as_buf_adds(b, " -> ");
	value(b, r, unit, r->side[1].time.value);
	as_buf_addf(b, "  %+.2f %%", 100 * expm1(r->by_q25.value));
	if (isfinite(r->by_q25.lo) && !r->exact)
		as_buf_addf(b, " [%+.2f, %+.2f]", 100 * expm1(r->by_q25.lo),
			    100 * expm1(r->by_q25.hi));
	as_buf_addf(b, "  %s%s%s", color && paint ? paint : "", as_verdict_name(v),
		    color && paint ? "\033[0m" : "");
	if (v == AS_VERDICT_UNDECIDED && r->seconds_needed > 0)
		as_buf_addf(b, " (about %.2g s more would decide)", r->seconds_needed);
}

static void details(struct as_buf *b, const struct as_fn_result *r)
{
	const struct as_fn_side_result *s = &r->side[r->sides - 1];
	const struct as_runs_summary *runs = &s->runs;

	as_buf_addf(b,
		    "    %zu processes of %u + %u batches of %" PRIu64
		    " iterations, %.2f s; median "
		    "of batches %.6g, mean %.6g %s\n",
		    s->processes.n, r->warmups, r->batches, r->iterations, r->seconds,
		    s->median.value, s->mean.value, r->what.unit);
	as_buf_addf(b,
		    "    processes from %.6g to %.6g, sd %.3g; CPU time %.6g ns; empty loop "
		    "%.2g ns, "
		    "clock %.3g ns\n",
		    runs->min, runs->max, runs->sd, s->cpu.value, r->loop_ns, r->clock_ns);
	if (r->setup_share > 0.01)
		as_buf_addf(b, "    set-up, not timed: %.3g %% of a batch\n",
			    100 * r->setup_share);
}

void as_plain_result(const struct as_fn_result *r, const struct assay_bench_unit *unit,
		     bool verbose, bool color, struct as_buf *out)
{
	size_t columns = as_text_width(r->what.id, strlen(r->what.id));

	as_fmt_quoted(out, r->what.id, strlen(r->what.id));
	as_buf_fill(out, ' ', columns < NAME_COLUMNS ? NAME_COLUMNS - columns : 1);
	as_buf_addc(out, ' ');
	if (r->failed) {
		as_buf_addf(out, "%s%s\n", r->out_of_time ? "" : "failed: ", r->failed);
		return;
	}
	if (r->sides > 1)
		change(out, r, unit, color);
	else
		add_one(out, r, unit);
	rate(out, r);
	threads(out, r);
	memory(out, r);
	as_buf_addc(out, '\n');
	if (verbose)
		details(out, r);
	as_vec_foreach (note, &r->notes)
		as_buf_addf(out, "    %s: %s\n", note->kind, note->text);
}
