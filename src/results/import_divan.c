/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The tree that divan prints, line by line:
 *	example       fastest  │ slowest  │ median   │ mean     │ samples │ iters
 *	╰─ fibonacci           │          │          │          │         │
 *	   ├─ 1       0.626 ns │ 1.735 ns │ 0.657 ns │ 0.672 ns │ 100     │ 819200
 *	   │          1.52 GB/s│ …
 * A row without a branch goes on with the benchmark above it: rates, then "alloc:" and below it how many
 * and how much. The last five bars part the cells, so that a bar in a name does no harm.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "results/import_priv.h"

#define BAR   "│"
#define CELLS 6
#define STEP  3 /* characters of a level */

enum { FASTEST, SLOWEST, MEDIAN, MEAN, SAMPLES, ITERS };

struct cell {
	const char *p;
	size_t n;
};

static struct cell trimmed(const char *from, const char *to)
{
	while (from < to && (*from == ' ' || *from == '\t'))
		from++;
	while (to > from && (to[-1] == ' ' || to[-1] == '\t'))
		to--;
	return (struct cell){from, (size_t)(to - from)};
}

static bool is(struct cell c, const char *text)
{
	return c.n == strlen(text) && memcmp(c.p, text, c.n) == 0;
}

/* The last bar that begins before `end`; NULL. */
static const char *bar_before(const char *line, const char *end)
{
	for (const char *p = end; p > line; p--) {
		if (strncmp(p - 1, BAR, strlen(BAR)) == 0 && p - 1 + strlen(BAR) <= end)
			return p - 1;
	}
	return NULL;
}

/* cells[1 …]; what is left of them: up to *ret_left. */
static bool cut(const char *line, struct cell cells[CELLS], const char **ret_left)
{
	const char *end = line + strlen(line);

	for (int i = CELLS - 1; i > 0; i--) {
		const char *bar = bar_before(line, end);

		if (!bar)
			return false;
		cells[i] = trimmed(bar + strlen(BAR), end);
		end = bar;
	}
	*ret_left = end;
	return true;
}

/* Behind the branch ("├─ ", "╰─ "), and how deep it is, from 1; NULL: no branch. */
static const char *branch(const char *line, const char *end, size_t *ret_depth)
{
	static const char *const marks[] = {"├─ ", "╰─ "};
	size_t characters = 0;

	for (const char *p = line; p < end; p++) {
		for (size_t i = 0; i < AS_ARRAY_LEN(marks); i++) {
			if (strncmp(p, marks[i], strlen(marks[i])) == 0) {
				*ret_depth = characters / STEP + 1;
				return p + strlen(marks[i]);
			}
		}
		if (*p != ' ' && (unsigned char)*p < 0x80)
			return NULL; /* text: no tree */
		characters += ((unsigned char)*p & 0xc0) != 0x80;
	}
	return NULL;
}

/* Name, two blanks or more, first cell. Without a first cell: the name alone. */
static struct cell part_name(const char *from, const char *end, struct cell *ret_first)
{
	struct cell all = trimmed(from, end);
	const char *stop = all.p + all.n;

	*ret_first = (struct cell){stop, 0};
	for (const char *p = stop; p - 1 > all.p; p--) {
		if (p[-1] == ' ' && p[-2] == ' ') {
			*ret_first = (struct cell){p, (size_t)(stop - p)};
			return trimmed(all.p, p);
		}
	}
	return all;
}

static double number_of(struct cell c, struct cell *ret_unit)
{
	size_t n = strspn(c.p, "0123456789.");
	char digits[32];
	double v;

	if (!n || n > c.n || n >= sizeof digits)
		return NAN;
	memcpy(digits, c.p, n);
	digits[n] = 0;
	*ret_unit = trimmed(c.p + n, c.p + c.n);
	return as_parse_double(digits, &v) ? v : NAN;
}

static double time_of(struct cell c)
{
	static const struct {
		const char *name;
		double seconds;
	} long_units[] = {{"m", 60}, {"h", 3600}, {"d", 86400}};
	struct cell unit;
	double v = number_of(c, &unit), by;

	if (isnan(v))
		return NAN;
	by = as_import_unit(unit.p, unit.n);
	for (size_t i = 0; i < AS_ARRAY_LEN(long_units); i++)
		by = is(unit, long_units[i].name) ? long_units[i].seconds : by;
	return by > 0 ? v * by : NAN;
}

/* "24 B", "1.5 KB", "1.5 KiB"; "3" */
static double scaled_of(struct cell c, const char *suffix)
{
	static const char prefixes[] = "KMGTP";
	struct cell unit;
	double v = number_of(c, &unit);
	const char *known;
	size_t n = strlen(suffix);

	if (isnan(v) || unit.n < n || memcmp(unit.p + unit.n - n, suffix, n) != 0)
		return NAN;
	unit.n -= n;
	if (!unit.n)
		return v;
	known = strchr(prefixes, *unit.p);
	if (!known || unit.n > 2 || (unit.n == 2 && unit.p[1] != 'i'))
		return NAN;
	return v * pow(unit.n == 2 ? 1024 : 1000, (double)(known - prefixes) + 1);
}

/* ---- rows ---- */

static void add_bench(struct as_divan *d, const struct cell cells[CELLS],
		      struct as_bench_set *set)
{
	struct as_bench b;
	double n;

	as_bench_init(&b);
	b.kind = AS_BENCH_FUNCTION;
	b.unit = as_xstrdup("s");
	b.metric = as_xstrdup("time");
	b.processes = 1;
	b.time.value = b.median = time_of(cells[MEDIAN]);
	b.mean = time_of(cells[MEAN]);
	b.min = time_of(cells[FASTEST]);
	b.max = time_of(cells[SLOWEST]);
	b.name = as_xstrdup(d->level[d->depth - 1].path);
	if (d->depth > 1 && as_parse_double(d->level[d->depth - 1].name, &n)) {
		b.group = as_xstrdup(d->level[d->depth - 2].path);
		b.value = as_xstrdup(d->level[d->depth - 1].name);
	}
	as_vec_push(&set->benches, b);
	d->allocs = 0;
}

static void enter(struct as_divan *d, size_t depth, struct cell name)
{
	struct as_divan_level *l = &d->level[depth - 1];

	for (size_t i = depth - 1; i < d->depth; i++) {
		free(d->level[i].name);
		free(d->level[i].path);
	}
	d->depth = depth;
	l->name = as_xstrndup(name.p, name.n);
	l->path = depth > 1 ? as_xasprintf("%s/%s", l[-1].path, l->name) : as_xstrdup(l->name);
}

/* What is more to be said of the last benchmark. */
static void more(struct as_divan *d, struct cell first, const struct cell cells[CELLS],
		 struct as_bench *b)
{
	double bytes = scaled_of(cells[MEDIAN], "B/s"),
	       items = scaled_of(cells[MEDIAN], "item/s");
	double rate = isnan(bytes) ? items : bytes, n = rate * b->time.value;

	if (is(first, "alloc:"))
		d->allocs = 2;
	else if (first.n && first.p[first.n - 1] == ':')
		d->allocs = 0; /* of frees and the like */
	else if (d->allocs == 2)
		b->allocs = scaled_of(cells[MEDIAN], "");
	else if (d->allocs == 1)
		b->alloc_bytes = scaled_of(cells[MEDIAN], "B");
	else if (n >= 0.5 && n < 1e18) {
		b->throughput = isnan(bytes) ? AS_THRPT_ELEMENTS : AS_THRPT_BYTES;
		b->throughput_n = (uint64_t)llround(n);
	}
	if (d->allocs && !is(first, "alloc:"))
		d->allocs--;
}

bool as_import_divan_line(struct as_divan *d, const char *line, struct as_bench_set *set)
{
	struct cell cells[CELLS], name;
	const char *left, *at;
	size_t depth = 0;

	if (!cut(line, cells, &left))
		return false;
	at = branch(line, left, &depth);
	name = part_name(at ? at : line, left, &cells[FASTEST]);
	if (is(cells[FASTEST], "fastest") && is(cells[MEDIAN], "median")) {
		d->on = true;
		return true;
	}
	if (!d->on)
		return false;
	if (!at) {
		if (set->benches.n > d->before)
			more(d, cells[FASTEST].n ? cells[FASTEST] : name, cells,
			     &set->benches.v[set->benches.n - 1]);
		return true;
	}
	if (depth > AS_DIVAN_DEPTH || depth > d->depth + 1 || !name.n)
		return true; /* no tree that divan draws */
	enter(d, depth, name);
	if (!isnan(time_of(cells[MEDIAN])))
		add_bench(d, cells, set);
	return true;
}

void as_import_divan_clear(struct as_divan *d)
{
	for (size_t i = 0; i < d->depth; i++) {
		free(d->level[i].name);
		free(d->level[i].path);
	}
	*d = (struct as_divan){0};
}
