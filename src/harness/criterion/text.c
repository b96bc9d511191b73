/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What criterion's users read: its lines, its words, its columns. Scripts parse them. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/sys.h"
#include "harness/criterion/criterion_priv.h"

#define COLUMN 24 /* where the figures begin */
#define TEXT   64
#define GREEN  "\033[32m"
#define RED    "\033[1;31m"
#define YELLOW "\033[33m"
#define BOLD   "\033[1m"
#define FAINT  "\033[2m"
#define NORMAL "\033[0m"

void as_criterion_say(int fd, const char *fmt, ...)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	va_list ap;

	va_start(ap, fmt);
	as_buf_vaddf(&b, fmt, ap);
	va_end(ap);
	(void)as_write_all(fd, as_buf_str(&b), b.len, NULL); /* nobody is there to be told */
}

void as_criterion_why(char *out, size_t n, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(out, n, fmt, ap);
	va_end(ap);
}

void as_criterion_short(struct as_buf *b, double v)
{
	double a = fabs(v);

	as_buf_addf(b, "%.*f", a < 10 ? 4 : a < 100 ? 3 : a < 1000 ? 2 : a < 10000 ? 1 : 0, v);
}

struct step {
	double below, divisor;
	const char *unit;
};

static void add_scaled(struct as_buf *b, const struct step *steps, double v)
{
	AS_CLEANUP(as_buf_clear) struct as_buf number = {0};

	while (isfinite(steps->below) && !(v < steps->below))
		steps++;
	as_criterion_short(&number, v / steps->divisor);
	as_buf_addf(b, "%6s %s", as_buf_str(&number), steps->unit);
}

void as_criterion_format_time(struct as_buf *b, double ns)
{
	static const struct step times[] = {{1, 1e-3, "ps"},
					    {1e3, 1, "ns"},
					    {1e6, 1e3, "µs"},
					    {1e9, 1e6, "ms"},
					    {INFINITY, 1e9, "s"}};

	add_scaled(b, times, ns);
}

static void add_rate(struct as_buf *b, int kind, uint64_t n, double ns)
{
	static const struct step bytes[] = {{1024, 1, "  B/s"},
					    {1048576, 1024, "KiB/s"},
					    {1073741824, 1048576, "MiB/s"},
					    {INFINITY, 1073741824, "GiB/s"}};
	static const struct step decimal[] = {{1e3, 1, "  B/s"},
					      {1e6, 1e3, "KB/s"},
					      {1e9, 1e6, "MB/s"},
					      {INFINITY, 1e9, "GB/s"}};
	static const struct step bits[] = {{1e3, 1, "  b/s"},
					   {1e6, 1e3, "Kb/s"},
					   {1e9, 1e6, "Mb/s"},
					   {INFINITY, 1e9, "Gb/s"}};
	static const struct step elements[] = {{1e3, 1, " elem/s"},
					       {1e6, 1e3, "Kelem/s"},
					       {1e9, 1e6, "Melem/s"},
					       {INFINITY, 1e9, "Gelem/s"}};
	const struct step *steps = kind == ASSAY_THROUGHPUT_BYTES           ? bytes
				   : kind == ASSAY_THROUGHPUT_BYTES_DECIMAL ? decimal
				   : kind == ASSAY_THROUGHPUT_BITS          ? bits
									    : elements;

	add_scaled(b, steps, (double)n * 1e9 / ns);
}

static void add_value(struct as_buf *b, const struct as_criterion_spec *spec, double v)
{
	char text[TEXT] = "";

	if (spec->unit && !spec->unit->wall_time) {
		spec->unit->format_value(spec->unit->ctx, v, text, sizeof text);
		as_buf_adds(b, text);
	} else {
		as_criterion_format_time(b, v);
	}
}

/* kind, n: of ElementsAndBytes one half at a time. */
static void add_throughput(struct as_buf *b, const struct as_criterion_spec *spec, int kind,
			   uint64_t n, double v)
{
	char text[TEXT] = "";

	if (spec->unit && !spec->unit->wall_time) {
		spec->unit->format_throughput(spec->unit->ctx, kind, n, 0, v, text,
					      sizeof text);
		as_buf_adds(b, text);
	} else {
		add_rate(b, kind, n, v);
	}
}

static const char *paint(const struct as_criterion_look *l, const char *code)
{
	return l->colour ? code : "";
}

static void add_name(struct as_buf *b, const struct as_criterion_look *l, const char *title)
{
	size_t width = as_text_width(title, strlen(title));

	as_buf_addf(b, "%s", paint(l, GREEN));
	as_fmt_utf8(b, title, strlen(title));
	as_buf_addf(b, "%s", paint(l, NORMAL));
	if (width >= COLUMN) {
		as_buf_addc(b, '\n');
		width = 0;
	}
	as_buf_fill(b, ' ', COLUMN - width);
}

static void add_column(struct as_buf *b)
{
	as_buf_fill(b, ' ', COLUMN);
}

/* [low value high] */
static void add_triple(struct as_buf *b, const struct as_criterion_look *l, char *const text[3])
{
	as_buf_addf(b, "[%s%s%s %s%s%s %s%s%s]", paint(l, FAINT), text[0], paint(l, NORMAL),
		    paint(l, BOLD), text[1], paint(l, NORMAL), paint(l, FAINT), text[2],
		    paint(l, NORMAL));
}

static void add_time(struct as_buf *b, const struct as_criterion_look *l,
		     const struct as_criterion_shown *s)
{
	const struct as_criterion_estimate *e = &s->est->low_quartile;
	double v[3] = {e->low, e->value, e->high};
	struct as_buf text[3] = {{0}};

	as_buf_adds(b, "time:   ");
	for (int i = 0; i < 3; i++)
		add_value(&text[i], s->spec, v[i]);
	add_triple(b, l, (char *[]){text[0].p, text[1].p, text[2].p});
	as_buf_addc(b, '\n');
	for (int i = 0; i < 3; i++)
		as_buf_clear(&text[i]);
}

static void add_rate_line(struct as_buf *b, const struct as_criterion_look *l,
			  const struct as_criterion_shown *s, int kind, uint64_t n)
{
	const struct as_criterion_estimate *e = &s->est->low_quartile;
	double v[3] = {e->high, e->value, e->low};
	struct as_buf text[3] = {{0}};

	add_column(b);
	as_buf_adds(b, "thrpt:  ");
	for (int i = 0; i < 3; i++)
		add_throughput(&text[i], s->spec, kind, n, v[i]);
	add_triple(b, l, (char *[]){text[0].p, text[1].p, text[2].p});
	as_buf_addc(b, '\n');
	for (int i = 0; i < 3; i++)
		as_buf_clear(&text[i]);
}

static void add_rates(struct as_buf *b, const struct as_criterion_look *l,
		      const struct as_criterion_shown *s)
{
	const struct as_criterion_spec *spec = s->spec;

	if (spec->throughput == ASSAY_THROUGHPUT_NONE)
		return;
	if (spec->throughput == ASSAY_THROUGHPUT_ELEMENTS_AND_BYTES) {
		add_rate_line(b, l, s, ASSAY_THROUGHPUT_ELEMENTS, spec->n);
		add_rate_line(b, l, s, ASSAY_THROUGHPUT_BYTES, spec->n2);
	} else {
		add_rate_line(b, l, s, spec->throughput, spec->n);
	}
}

static void add_percent(struct as_buf *b, double share)
{
	AS_CLEANUP(as_buf_clear) struct as_buf number = {0};

	as_buf_addc(&number, share < 0 ? '-' : '+');
	as_criterion_short(&number, fabs(share) * 100);
	as_buf_addf(b, "%6s%%", as_buf_str(&number));
}

static void add_percents(struct as_buf *b, const struct as_criterion_look *l, const double v[3])
{
	struct as_buf text[3] = {{0}};

	for (int i = 0; i < 3; i++)
		add_percent(&text[i], v[i]);
	add_triple(b, l, (char *[]){text[0].p, text[1].p, text[2].p});
	for (int i = 0; i < 3; i++)
		as_buf_clear(&text[i]);
}

static void add_p(struct as_buf *b, const struct as_criterion_shown *s)
{
	double p = s->r->p;

	if (!isnan(p) && s->change->work == 1) /* p is of the times */
		as_buf_addf(b, " (p = %.2f %s %.2f)", p, p > s->significance ? ">" : "<",
			    s->significance);
}

static void add_verdict(struct as_buf *b, const struct as_criterion_look *l,
			const struct as_criterion_shown *s)
{
	const struct as_fn_result *r = s->r;

	add_column(b);
	switch (s->change->verdict) {
	case AS_VERDICT_SLOWER:
		as_buf_addf(b, "Performance has %sregressed%s.\n", paint(l, RED),
			    paint(l, NORMAL));
		break;
	case AS_VERDICT_FASTER:
		as_buf_addf(b, "Performance has %simproved%s.\n", paint(l, GREEN),
			    paint(l, NORMAL));
		break;
	case AS_VERDICT_EQUAL:
		as_buf_adds(b, "No change in performance detected.\n");
		break;
	default:
		as_buf_addf(b, "%sUndecided%s: ", paint(l, YELLOW), paint(l, NORMAL));
		if (r->seconds_needed > 0 && isfinite(r->seconds_needed))
			as_buf_addf(
				b, "about %.0f s more would tell (--measurement-time %.0f).\n",
				ceil(r->seconds_needed), ceil(r->seconds + r->seconds_needed));
		else
			as_buf_adds(b, "these runs do not tell whether it changed.\n");
	}
	if (s->change->work != 1) {
		add_column(b);
		as_buf_addf(
			b,
			"compared per unit of work: an iteration does %.4g times as much now\n",
			s->change->work);
	}
	if (l->quiet)
		return;
	add_column(b);
	as_buf_addf(b, "%s%zu pairs with the program of '%s'; below %.2g%% is equal%s\n",
		    paint(l, FAINT), s->change->pairs, s->baseline, r->delta * 100,
		    paint(l, NORMAL));
}

static void add_change(struct as_buf *b, const struct as_criterion_look *l,
		       const struct as_criterion_shown *s)
{
	const struct as_criterion_estimate *c = &s->change->low_quartile;

	add_column(b);
	if (s->spec->throughput == ASSAY_THROUGHPUT_NONE) {
		as_buf_adds(b, "change: ");
		add_percents(b, l, (double[]){c->low, c->value, c->high});
		add_p(b, s);
	} else {
		as_buf_adds(b, "change:\n");
		add_column(b);
		as_buf_adds(b, "time:   ");
		add_percents(b, l, (double[]){c->low, c->value, c->high});
		add_p(b, s);
		as_buf_addc(b, '\n');
		add_column(b);
		as_buf_adds(b, "thrpt:  ");
		add_percents(b, l,
			     (double[]){1 / (1 + c->high) - 1, 1 / (1 + c->value) - 1,
					1 / (1 + c->low) - 1});
	}
	as_buf_addc(b, '\n');
	add_verdict(b, l, s);
}

/* A baseline whose program cannot be run: what it said then, and no verdict. */
static void add_trend(struct as_buf *b, const struct as_criterion_shown *s)
{
	time_t at = (time_t)s->trend->time_s;
	char day[32] = "";
	struct tm tm;

	if (localtime_r(&at, &tm))
		(void)strftime(day, sizeof day, " of %Y-%m-%d %H:%M", &tm);
	add_column(b);
	as_buf_adds(b, "trend:  ");
	add_percent(b, s->now / s->before - 1);
	as_buf_addf(b, " since '%s'%s\n", s->baseline, day);
	add_column(b);
	as_buf_addf(b, "No verdict: %s.\n", s->trend_why);
	if (s->trend->machine && strcmp(s->trend->machine, s->machine) != 0) {
		add_column(b);
		as_buf_addf(b, "note: the baseline is of another machine: %s\n",
			    s->trend->machine);
	}
	if (s->trend->edited) {
		add_column(b);
		as_buf_adds(
			b, "note: the baseline's files were changed after they were written\n");
	}
}

static void add_outliers(struct as_buf *b, const struct as_criterion_estimates *e)
{
	static const char *const names[] = {"low severe", "low mild", "high mild",
					    "high severe"};
	size_t all = 0;

	for (int i = 0; i < 4; i++)
		all += e->outliers[i];
	if (!all)
		return;
	as_buf_addf(b, "Found %zu outliers among %zu measurements (%.2f%%)\n", all, e->n,
		    100.0 * (double)all / (double)e->n);
	for (int i = 0; i < 4; i++)
		if (e->outliers[i])
			as_buf_addf(b, "  %zu (%.2f%%) %s\n", e->outliers[i],
				    100.0 * (double)e->outliers[i] / (double)e->n, names[i]);
}

static void add_pair(struct as_buf *b, const struct as_criterion_shown *s, const char *name,
		     const struct as_criterion_estimate *e)
{
	as_buf_addf(b, "%-14s [", name);
	add_value(b, s->spec, e->low);
	as_buf_addc(b, ' ');
	add_value(b, s->spec, e->value);
	as_buf_addc(b, ' ');
	add_value(b, s->spec, e->high);
	as_buf_adds(b, "]\n");
}

static void add_verbose(struct as_buf *b, const struct as_criterion_shown *s)
{
	add_pair(b, s, "mean", &s->est->mean);
	add_pair(b, s, "std. dev.", &s->est->sd);
	add_pair(b, s, "median", &s->est->median);
	add_pair(b, s, "med. abs. dev.", &s->est->mad);
	if (!s->r)
		return;
	as_buf_addf(b, "%zu processes, %u batches of %llu iterations each\n",
		    s->r->side[s->r->sides - 1].processes.n, s->r->batches,
		    (unsigned long long)s->r->iterations);
	if (!isnan(s->r->loop_ns))
		as_buf_addf(b, "empty loop %.3f ns, clock %.1f ns\n", s->r->loop_ns,
			    s->r->clock_ns);
	if (!isnan(s->r->side[s->r->sides - 1].allocs))
		as_buf_addf(b, "allocations %.6g, %.6g bytes an iteration\n",
			    s->r->side[s->r->sides - 1].allocs,
			    s->r->side[s->r->sides - 1].alloc_bytes);
}

static void add_thousands(struct as_buf *b, double v)
{
	AS_CLEANUP(as_buf_clear) struct as_buf digits = {0};

	as_buf_addf(&digits, "%.0f", v);
	for (size_t i = 0; i < digits.len; i++) {
		if (i && (digits.len - i) % 3 == 0)
			as_buf_addc(b, ',');
		as_buf_addc(b, digits.p[i]);
	}
}

static void show_bencher(const struct as_criterion_shown *s)
{
	AS_CLEANUP(as_buf_clear) struct as_buf median = {0}, sd = {0};
	double v[2] = {s->est->median.value, s->est->sd.value};
	const char *unit = "ns";

	if (s->spec->unit && !s->spec->unit->wall_time)
		unit = s->spec->unit->for_machines(s->spec->unit->ctx, v, 2);
	add_thousands(&median, v[0]);
	add_thousands(&sd, v[1]);
	as_criterion_say(STDOUT_FILENO, "test %s ... bench: %11s %s/iter (+/- %s)\n",
			 s->id->title, as_buf_str(&median), unit, as_buf_str(&sd));
}

void as_criterion_show(const struct as_criterion_look *l, const struct as_criterion_shown *s)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	if (l->bencher) {
		show_bencher(s);
		return;
	}
	add_name(&b, l, s->id->title);
	add_time(&b, l, s);
	add_rates(&b, l, s);
	if (s->baseline && s->paired)
		add_change(&b, l, s);
	else if (s->baseline && s->trend)
		add_trend(&b, s);
	for (size_t i = 0; s->r && i < s->r->notes.n; i++) {
		add_column(&b);
		as_buf_addf(&b, "%snote:%s %s\n", paint(l, YELLOW), paint(l, NORMAL),
			    s->r->notes.v[i].text);
	}
	if (!l->quiet)
		add_outliers(&b, s->est);
	if (l->verbose)
		add_verbose(&b, s);
	if (!l->quiet)
		as_buf_addc(&b, '\n');
	(void)as_write_all(STDOUT_FILENO, as_buf_str(&b), b.len,
			   NULL); /* nobody is there to be told */
}
