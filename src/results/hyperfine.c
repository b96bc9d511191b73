/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* hyperfine's exports: see hyperfine.h. */
#include "results/hyperfine.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/sys.h"

struct row {
	const struct as_bench *b;
	double mean, sd, median, min, max; /* sd NaN: one run */
	double user, system;
};
struct rows {
	AS_VEC(struct row) v;
};

static int by_value(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return (a > b) - (a < b);
}

static double mean_of(const double *v, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += v[i];
	return n ? sum / (double)n : NAN;
}

static struct row row_of(const struct as_bench *b)
{
	const double *v = b->walls.n ? b->walls.v : b->samples.v;
	size_t n = b->walls.n ? b->walls.n : b->samples.n;
	struct row r = {.b = b,
			.mean = mean_of(v, n),
			.sd = NAN,
			.user = b->user.value,
			.system = b->system.value,
			.median = NAN,
			.min = NAN,
			.max = NAN};
	AS_CLEANUP(as_free_autop) double *x = as_xreallocarray(NULL, n + 1, sizeof *x);
	double squares = 0;

	if (!n)
		return r;
	memcpy(x, v, n * sizeof *x);
	qsort(x, n, sizeof *x, by_value);
	for (size_t i = 0; i < n; i++)
		squares += (v[i] - r.mean) * (v[i] - r.mean);
	if (n > 1)
		r.sd = sqrt(squares / ((double)n - 1));
	r.median = n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
	r.min = x[0];
	r.max = x[n - 1];
	return r;
}

/* Those that have runs; what was never run has no line, as there. */
static void all_rows(const struct as_bench_set *s, struct rows *ret)
{
	as_vec_foreach (b, &s->benches) {
		if (b->walls.n || b->samples.n)
			as_vec_push(&ret->v, row_of(b));
	}
}

/* ---- numbers ---- */

/* The fewest digits that read back as the same number: digits and the exponent of the first. */
static int shortest(double x, char digits[24])
{
	char text[40];
	size_t n = 0;
	const char *c;
	int exponent = 0;
	double again;

	for (int p = 0; p < 17; p++) {
		snprintf(text, sizeof text, "%.*e", p, x);
		if (as_parse_double(text, &again) && again == x)
			break;
	}
	for (c = text; *c != 'e'; c++) {
		if (*c >= '0' && *c <= '9')
			digits[n++] = *c;
	}
	digits[n] = 0;
	for (const char *e = c + 2; *e; e++)
		exponent = exponent * 10 + (*e - '0');
	return c[1] == '-' ? -exponent : exponent;
}

static void plain_number(struct as_buf *out, const char *digits, int exponent)
{
	int n = (int)strlen(digits);

	if (exponent < 0) {
		as_buf_adds(out, "0.");
		as_buf_fill(out, '0', (size_t)(-exponent - 1));
		as_buf_adds(out, digits);
		return;
	}
	for (int i = 0; i < AS_MAX(n, exponent + 1); i++) {
		if (i == exponent + 1)
			as_buf_addc(out, '.');
		as_buf_addc(out, i < n ? digits[i] : '0');
	}
}

/* As Rust's ryu and its Display print them: JSON has 0.0 and 9.5e-6, CSV 0 and 0.0000095. */
static void add_number(struct as_buf *out, double x, bool json)
{
	char digits[24];
	int exponent;

	if (!isfinite(x)) {
		as_buf_adds(out, json ? "null" : "");
		return;
	}
	if (x < 0)
		as_buf_addc(out, '-');
	exponent = shortest(fabs(x), digits);
	if (json && x != 0 && (exponent < -5 || exponent > 15)) {
		as_buf_addc(out, digits[0]);
		if (digits[1])
			as_buf_addf(out, ".%s", digits + 1);
		as_buf_addf(out, "e%d", exponent);
		return;
	}
	plain_number(out, digits, x == 0 ? 0 : exponent);
	if (json && exponent >= 0 && (int)strlen(digits) <= exponent + 1)
		as_buf_adds(out, ".0");
}

/* ---- JSON ---- */

static void json_number(struct as_json *j, const char *key, double x)
{
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};

	add_number(&text, x, true);
	as_json_raw(j, key, text.p, text.len);
}

static void json_row(struct as_json *j, const struct row *r)
{
	const struct as_bench *b = r->b;
	size_t n = b->walls.n ? b->walls.n : b->samples.n;
	const double *v = b->walls.n ? b->walls.v : b->samples.v;

	as_json_obj(j, NULL);
	as_json_str(j, "command", b->name);
	json_number(j, "mean", r->mean);
	json_number(j, "stddev", r->sd);
	json_number(j, "median", r->median);
	json_number(j, "user", r->user);
	json_number(j, "system", r->system);
	json_number(j, "min", r->min);
	json_number(j, "max", r->max);
	as_json_arr(j, "times");
	for (size_t i = 0; i < n; i++)
		json_number(j, NULL, v[i]);
	as_json_end(j);
	as_json_arr(j, "exit_codes");
	as_vec_foreach (code, &b->exit_codes)
		as_json_i64(j, NULL, *code);
	as_json_end(j);
	if (b->params.n) {
		as_json_obj(j, "parameters");
		as_vec_foreach (p, &b->params)
			as_json_str(j, p->name, p->value);
		as_json_end(j);
	}
	as_json_end(j);
}

void as_hyperfine_json(const struct as_bench_set *s, struct as_buf *out)
{
	struct as_json j = {.out = out, .indent = true};
	struct rows rows = {0};

	all_rows(s, &rows);
	as_json_obj(&j, NULL);
	as_json_arr(&j, "results");
	as_vec_foreach (r, &rows.v)
		json_row(&j, r);
	as_json_end(&j);
	as_json_end(&j);
	if (out->len && out->p[out->len - 1] != '\n')
		as_buf_addc(out, '\n');
	as_vec_clear(&rows.v);
}

/* ---- CSV ---- */

static void csv_field(struct as_buf *out, const char *text)
{
	if (!strpbrk(text, ",\"\r\n")) {
		as_buf_adds(out, text);
		return;
	}
	as_buf_addc(out, '"');
	for (const char *p = text; *p; p++) {
		if (*p == '"')
			as_buf_addc(out, '"');
		as_buf_addc(out, *p);
	}
	as_buf_addc(out, '"');
}

void as_hyperfine_csv(const struct as_bench_set *s, struct as_buf *out)
{
	struct rows rows = {0};

	all_rows(s, &rows);
	as_buf_adds(out, "command,mean,stddev,median,user,system,min,max");
	if (rows.v.n) {
		as_vec_foreach (p, &rows.v.v[0].b->params) {
			AS_CLEANUP(as_free_autop)
			char *name = as_xasprintf("parameter_%s", p->name);

			as_buf_addc(out, ',');
			csv_field(out, name);
		}
	}
	as_buf_addc(out, '\n');
	as_vec_foreach (r, &rows.v) {
		double v[] = {r->mean,   isnan(r->sd) ? 0 : r->sd,
			      r->median, r->user,
			      r->system, r->min,
			      r->max};

		csv_field(out, r->b->name);
		for (size_t i = 0; i < AS_ARRAY_LEN(v); i++) {
			as_buf_addc(out, ',');
			add_number(out, v[i], false);
		}
		as_vec_foreach (p, &r->b->params) {
			as_buf_addc(out, ',');
			csv_field(out, p->value);
		}
		as_buf_addc(out, '\n');
	}
	as_vec_clear(&rows.v);
}

/* ---- tables ---- */

struct shape {
	const char *before, *head, *between, *after,
		*rule; /* of a line; rule below the first */
	const char *code[2], *end;
	bool bar; /* a | in a command needs a backslash */
};
static const struct shape shapes[] = {
	[AS_HYPERFINE_MARKDOWN] = {"| ",
				   "| ",
				   " | ",
				   " |\n",
				   "|:---|---:|---:|---:|---:|\n",
				   {"`", "`"},
				   "",
				   true},
	[AS_HYPERFINE_ASCIIDOC] =
		{"\n| ", "| ", " \n| ", " \n", "", {"`", "`"}, "|===\n", true},
	[AS_HYPERFINE_ORG] =
		{"| ", "| ", " |  ", " |\n", "|--+--+--+--+--|\n", {"=", "= "}, "", true},
};

struct table {
	const struct shape *shape;
	const char *unit;
	double scale;
	int digits;
	const struct row *fastest;
};

static void add_cell(const struct table *t, const char *text, struct as_buf *out)
{
	as_buf_adds(out, t->shape->between);
	as_buf_adds(out, text);
}

static void time_cell(const struct table *t, double x, double sd, struct as_buf *out)
{
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};

	as_buf_addf(&text, "%.*f", t->digits, x * t->scale);
	if (!isnan(sd))
		as_buf_addf(&text, " ± %.*f", t->digits, sd * t->scale);
	add_cell(t, text.p, out);
}

static void relative_cell(const struct table *t, const struct row *r, struct as_buf *out)
{
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};
	const struct row *f = t->fastest;
	double ratio = r->mean / f->mean;

	as_buf_addf(&text, "%.2f", ratio);
	if (r != f && !isnan(r->sd) && !isnan(f->sd))
		as_buf_addf(&text, " ± %.2f",
			    ratio * sqrt(pow(r->sd / r->mean, 2) + pow(f->sd / f->mean, 2)));
	add_cell(t, text.p, out);
}

static void table_row(const struct table *t, const struct row *r, struct as_buf *out)
{
	as_buf_adds(out, t->shape->before);
	as_buf_adds(out, t->shape->code[0]);
	for (const char *p = r->b->name; *p; p++) {
		if (*p == '|' && t->shape->bar)
			as_buf_addc(out, '\\');
		as_buf_addc(out, *p);
	}
	as_buf_adds(out, t->shape->code[1]);
	time_cell(t, r->mean, r->sd, out);
	time_cell(t, r->min, NAN, out);
	time_cell(t, r->max, NAN, out);
	relative_cell(t, r, out);
	as_buf_adds(out, t->shape->after);
}

static void table_head(const struct table *t, struct as_buf *out)
{
	static const char *const names[] = {"Mean", "Min", "Max"};

	as_buf_adds(out, t->shape->head);
	as_buf_adds(out, t->shape == &shapes[AS_HYPERFINE_ORG] ? "Command " : "Command");
	for (size_t i = 0; i < AS_ARRAY_LEN(names); i++) {
		AS_CLEANUP(as_free_autop)
		char *cell = as_xasprintf("%s [%s]", names[i], t->unit);

		add_cell(t, cell, out);
	}
	add_cell(t, "Relative", out);
	as_buf_adds(out, t->shape->after);
	as_buf_adds(out, t->shape->rule);
}

static void choose_unit(struct table *t, enum as_hyperfine_unit unit, double first)
{
	if (unit == AS_HYPERFINE_AUTO)
		unit = first < 1 ? AS_HYPERFINE_MS : AS_HYPERFINE_S;
	t->unit = unit == AS_HYPERFINE_US ? "µs" : unit == AS_HYPERFINE_MS ? "ms" : "s";
	t->scale = unit == AS_HYPERFINE_US ? 1e6 : unit == AS_HYPERFINE_MS ? 1e3 : 1;
	t->digits = unit == AS_HYPERFINE_S ? 3 : 1;
}

void as_hyperfine_table(const struct as_bench_set *s, enum as_hyperfine_table kind,
			enum as_hyperfine_unit unit, struct as_buf *out)
{
	struct table t = {.shape = &shapes[kind]};
	struct rows rows = {0};

	all_rows(s, &rows);
	choose_unit(&t, unit, rows.v.n ? rows.v.v[0].mean : 0);
	as_vec_foreach (r, &rows.v) {
		if (!t.fastest || r->mean < t.fastest->mean)
			t.fastest = r;
	}
	if (kind == AS_HYPERFINE_ASCIIDOC)
		as_buf_adds(out, "[cols=\"<,>,>,>,>\"]\n|===\n");
	table_head(&t, out);
	as_vec_foreach (r, &rows.v)
		table_row(&t, r, out);
	as_buf_adds(out, t.shape->end);
	as_vec_clear(&rows.v);
}
