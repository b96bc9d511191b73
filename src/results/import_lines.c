/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What criterion and libtest print, line by line (divan's table: import_divan.c):
 *	test name ... bench:       1,234.56 ns/iter (+/- 56) = 12 MB/s
 *	name                    time:   [1.0000 us 1.1000 us 1.2000 us]
 *	                        thrpt:  [9.5 MiB/s 10.2 MiB/s 10.9 MiB/s]
 * A long name stands on the line before "time:". us, µs and μs are one unit; lines of changes, with
 * whatever minus, are passed over. ANSI colours are taken out.
 */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "results/import_priv.h"

#define LINE_MAX_BYTES 4096

/* Number with thousands' commas at *p; moves it behind. NaN: none. */
static double take_number(const char **p)
{
	char digits[64];
	size_t n = 0;
	double v;

	while (**p == ' ')
		(*p)++;
	for (; n + 1 < sizeof digits && **p && strchr("0123456789.,", **p); (*p)++) {
		if (**p != ',')
			digits[n++] = **p;
	}
	digits[n] = 0;
	return as_parse_double(digits, &v) ? v : NAN;
}

static size_t word_length(const char *p)
{
	return strcspn(p, " ]/\t");
}

/* "1.23 us" as seconds. */
static double take_time(const char **p)
{
	double v = take_number(p), by;
	size_t n;

	while (**p == ' ')
		(*p)++;
	n = word_length(*p);
	by = as_import_unit(*p, n);
	*p += n;
	return by > 0 ? v * by : NAN;
}

static struct as_bench *push_bench(struct as_bench_set *s, const char *name, size_t n)
{
	struct as_bench b;

	as_bench_init(&b);
	b.kind = AS_BENCH_FUNCTION;
	b.name = as_xstrndup(name, n);
	b.unit = as_xstrdup("s");
	b.metric = as_xstrdup("time");
	b.processes = 1;
	as_vec_push(&s->benches, b);
	return &s->benches.v[s->benches.n - 1];
}

static void set_throughput(struct as_bench *b, enum as_bench_throughput kind, double per_second)
{
	double n = per_second * b->time.value;

	if (!(n >= 0.5) || !(n < 1e18))
		return;
	b->throughput = kind;
	b->throughput_n = (uint64_t)llround(n);
}

/* ---- libtest ---- */

static bool libtest_line(const char *line, struct as_bench_set *s)
{
	const char *name = line + strlen("test "), *end = strstr(line, " ... bench:"), *p,
		   *rate;
	struct as_bench *b;
	double t, spread;

	if (strncmp(line, "test ", strlen("test ")) != 0 || !end || end < name)
		return false;
	p = end + strlen(" ... bench:");
	t = take_time(&p);
	if (isnan(t) || strncmp(p, "/iter", 5) != 0)
		return false;
	while (end > name && end[-1] == ' ')
		end--;
	b = push_bench(s, name, (size_t)(end - name));
	b->time.value = b->median = t;
	p = strstr(p, "(+/- ");
	if (!p)
		return true;
	p += strlen("(+/- ");
	spread = take_number(&p);
	if (!isnan(spread)) /* libtest: greatest less least; bencher: standard deviation */
		as_bench_note(&b->notes, "spread", "it printed +/- %g ns, which is no interval",
			      spread);
	rate = strstr(p, " = ");
	if (rate) {
		rate += strlen(" = ");
		spread = take_number(&rate);
		if (strncmp(rate, " MB/s", 5) == 0)
			set_throughput(b, AS_THRPT_BYTES, spread * 1e6);
	}
	return true;
}

/* ---- criterion ---- */

/* Behind "time:" or "thrpt:"; NULL when there is no bracket. */
static const char *bracket(const char *line, const char *word)
{
	const char *p = strstr(line, word);

	if (!p)
		return NULL;
	p += strlen(word);
	p += strspn(p, " ");
	return *p == '[' ? p + 1 : NULL;
}

static bool time_line(const char *line, const char *before, struct as_bench_set *s)
{
	const char *p = bracket(line, "time:"), *name = line, *end = strstr(line, "time:");
	struct as_bench_estimate e;
	struct as_bench *b;

	if (!p)
		return false;
	e.low = take_time(&p);
	e.value = take_time(&p);
	e.high = take_time(&p);
	if (isnan(e.low) || isnan(e.value) || isnan(e.high))
		return false;
	while (end > name && end[-1] == ' ')
		end--;
	if (end == name) {
		name = before;
		end = before + strlen(before);
	}
	if (end == name)
		return false;
	b = push_bench(s, name, (size_t)(end - name));
	b->time = e;
	return true;
}

static void throughput_line(const char *line, struct as_bench_set *s)
{
	static const struct {
		const char *unit;
		enum as_bench_throughput kind;
		double by;
	} units[] = {{"B/s", AS_THRPT_BYTES, 1},
		     {"KiB/s", AS_THRPT_BYTES, 1024.0},
		     {"MiB/s", AS_THRPT_BYTES, 1048576.0},
		     {"GiB/s", AS_THRPT_BYTES, 1073741824.0},
		     {"TiB/s", AS_THRPT_BYTES, 1099511627776.0},
		     {"KB/s", AS_THRPT_BYTES_DECIMAL, 1e3},
		     {"MB/s", AS_THRPT_BYTES_DECIMAL, 1e6},
		     {"GB/s", AS_THRPT_BYTES_DECIMAL, 1e9},
		     {"TB/s", AS_THRPT_BYTES_DECIMAL, 1e12},
		     {"elem/s", AS_THRPT_ELEMENTS, 1},
		     {"Kelem/s", AS_THRPT_ELEMENTS, 1e3},
		     {"Melem/s", AS_THRPT_ELEMENTS, 1e6},
		     {"Gelem/s", AS_THRPT_ELEMENTS, 1e9}};
	const char *p = bracket(line, "thrpt:");
	double v;
	size_t n;

	if (!p || !s->benches.n)
		return;
	take_number(&p);
	p += strcspn(p, "]") > 0 ? 1 + strcspn(p + 1, " ]") : 0;
	v = take_number(&p);
	p += *p == ' ';
	n = strcspn(p, " ]");
	for (size_t i = 0; i < AS_ARRAY_LEN(units); i++) {
		if (strlen(units[i].unit) == n && strncmp(p, units[i].unit, n) == 0)
			set_throughput(&s->benches.v[s->benches.n - 1], units[i].kind,
				       v * units[i].by);
	}
}

/* ---- lines ---- */

/* Without colours, cut at LINE_MAX_BYTES, blanks at the end taken off. */
static void clean_line(const char *p, size_t n, char ret[LINE_MAX_BYTES])
{
	size_t k = 0;

	for (size_t i = 0; i < n && k + 1 < LINE_MAX_BYTES; i++) {
		if (p[i] == '\033') {
			while (i < n && !isalpha((unsigned char)p[i]))
				i++;
		} else if (p[i] && p[i] != '\r') {
			ret[k++] = p[i];
		}
	}
	while (k && isspace((unsigned char)ret[k - 1]))
		k--;
	ret[k] = 0;
}

int as_import_lines(const char *what, const char *p, size_t n, struct as_bench_set *ret,
		    struct as_error *err)
{
	char line[LINE_MAX_BYTES], before[LINE_MAX_BYTES] = "";
	struct as_divan divan = {0};
	bool criterion = false;

	for (size_t at = 0, len; at < n && ret->benches.n <= AS_BENCH_BENCHES_MAX;
	     at += len + 1) {
		const char *end = memchr(p + at, '\n', n - at);

		len = end ? (size_t)(end - p) - at : n - at;
		clean_line(p + at, len, line);
		if (libtest_line(line, ret) || as_import_divan_line(&divan, line, ret))
			continue;
		if (time_line(line, before, ret))
			criterion = true;
		else
			throughput_line(line, ret);
		memcpy(before, line, sizeof before);
	}
	ret->tool = as_xstrdup(divan.on ? "divan" : criterion ? "criterion" : "libtest");
	as_import_divan_clear(&divan);
	if (!ret->benches.n)
		return as_fail(
			err, AS_E_FORMAT, 0,
			"'%s' holds no results known here: JSON of assay, hyperfine, Google "
			"Benchmark or gungraun, or what criterion, divan or cargo bench "
			"printed",
			what);
	as_import_one_process(ret, ret->tool);
	return AS_OK;
}
