/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parameters of commands: see params.h. */
#include "bench/params.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

#define DIGITS_MAX 9 /* behind the point */

/* A decimal number, exact: value / 10^digits. */
struct decimal {
	int64_t value;
	int digits;
};

static bool parse_decimal(const char *s, size_t n, struct decimal *ret)
{
	bool negative = n && s[0] == '-', point = false;
	int64_t v = 0;
	size_t seen = 0;
	int digits = 0;

	for (size_t i = negative; i < n; i++) {
		if (s[i] == '.' && !point) {
			point = true;
			continue;
		}
		if (s[i] < '0' || s[i] > '9' || v > INT64_MAX / 100 || digits >= DIGITS_MAX)
			return false;
		v = v * 10 + (s[i] - '0');
		digits += point;
		seen++;
	}
	*ret = (struct decimal){negative ? -v : v, digits};
	return seen > 0;
}

static bool raise_to(struct decimal *d, int digits)
{
	while (d->digits < digits) {
		if (__builtin_mul_overflow(d->value, 10, &d->value))
			return false;
		d->digits++;
	}
	return true;
}

static bool is_below(struct decimal a, struct decimal b)
{
	int digits = AS_MAX(a.digits, b.digits);

	return raise_to(&a, digits) && raise_to(&b, digits) && a.value < b.value;
}

static char *decimal_text(int64_t value, int digits)
{
	uint64_t u = value < 0 ? -(uint64_t)value : (uint64_t)value, unit = 1;

	for (int i = 0; i < digits; i++)
		unit *= 10;
	if (!digits)
		return as_xasprintf("%" PRId64, value);
	return as_xasprintf("%s%" PRIu64 ".%0*" PRIu64, value < 0 ? "-" : "", u / unit, digits,
			    u % unit);
}

static struct as_param *add_param(struct as_params *p, const char *name)
{
	as_vec_push(p, (struct as_param){.name = as_xstrdup(name)});
	return &p->v[p->n - 1];
}

static int check_name(const struct as_params *p, const char *name, struct as_error *err)
{
	if (!*name || strpbrk(name, "{} \t\n"))
		return as_fail(err, AS_E_USAGE, 0, "'%s' is no name of a parameter", name);
	as_vec_foreach (param, p) {
		if (strcmp(param->name, name) == 0)
			return as_fail(err, AS_E_USAGE, 0, "the parameter '%s' is given twice",
				       name);
	}
	return AS_OK;
}

static int too_many(const char *name, struct as_error *err)
{
	return as_fail(err, AS_E_LIMIT, 0, "the parameter '%s' makes more than %d commands",
		       name, AS_PARAMS_VALUES_MAX);
}

/* first: how the first number was written, which stays so. */
static int add_range(struct as_params *p, const char *name, struct decimal d[3],
		     const char *first, struct as_error *err)
{
	int digits = AS_MAX(AS_MAX(d[0].digits, d[1].digits), d[2].digits);
	struct as_param *param;
	int64_t v;

	for (int i = 0; i < 3; i++) {
		if (!raise_to(&d[i], digits))
			return as_fail(err, AS_E_USAGE, 0, "the range of '%s' is too large",
				       name);
	}
	if (d[2].value == 0 || (d[2].value > 0) != (d[0].value <= d[1].value))
		return as_fail(err, AS_E_USAGE, 0,
			       "the range of '%s' does not end: a step of %s cannot lead from "
			       "its first to its last value",
			       name, d[2].value ? "that sign" : "0");
	if ((d[1].value - d[0].value) / d[2].value >= AS_PARAMS_VALUES_MAX)
		return too_many(name, err);
	param = add_param(p, name);
	as_vec_push(param, as_xstrdup(first));
	for (v = d[0].value + d[2].value; d[2].value > 0 ? v <= d[1].value : v >= d[1].value;
	     v += d[2].value)
		as_vec_push(param, decimal_text(v, digits));
	return AS_OK;
}

/* One value up to the next comma; "\," is one in it. */
static const char *add_item(struct as_param *param, const char *p)
{
	struct as_buf text = {0};

	for (; *p && *p != ','; p++) {
		p += *p == '\\' && p[1] == ',';
		as_buf_addc(&text, *p);
	}
	as_vec_push(param, as_buf_detach(&text));
	return *p ? p + 1 : NULL;
}

static int add_list(struct as_params *p, const char *name, const char *values,
		    struct as_error *err)
{
	struct as_param *param = add_param(p, name);

	while (values && param->n <= AS_PARAMS_VALUES_MAX)
		values = add_item(param, values);
	return values ? too_many(name, err) : AS_OK;
}

/* The parts of A..B or A..B..STEP. */
static size_t split_range(const char *text, const char *part[3], size_t len[3])
{
	size_t n = 0;

	for (const char *dots; n < 3; text = dots + 2) {
		dots = strstr(text, "..");
		part[n] = text;
		len[n++] = dots ? (size_t)(dots - text) : strlen(text);
		if (!dots)
			return n;
	}
	return 0; /* more than three */
}

static int check_count(const struct as_params *p, const char *name, struct as_error *err)
{
	size_t n = 1;

	as_vec_foreach (param, p) {
		n *= param->n;
		if (n > AS_PARAMS_VALUES_MAX)
			return too_many(name, err);
	}
	return AS_OK;
}

int as_params_add(struct as_params *p, const char *name, const char *values,
		  struct as_error *err)
{
	struct decimal d[3] = {{0, 0}, {0, 0}, {1, 0}};
	const char *part[3];
	size_t len[3], n = split_range(values, part, len);
	bool numbers = n >= 2;
	int r = check_name(p, name, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n && numbers; i++)
		numbers = parse_decimal(part[i], len[i], &d[i]);
	if (numbers) {
		AS_CLEANUP(as_free_autop) char *first = as_xstrndup(part[0], len[0]);

		if (n == 2 && is_below(d[1], d[0]))
			d[2].value = -1; /* 8..1 counts down */
		r = add_range(p, name, d, first, err);
	} else {
		r = add_list(p, name, values, err);
	}
	return r < 0 ? r : check_count(p, name, err);
}

int as_params_scan(struct as_params *p, const char *name, const char *const range[3],
		   struct as_error *err)
{
	static const char *const what[] = {"least", "greatest", "step"};
	struct decimal d[3] = {{0, 0}, {0, 0}, {1, 0}};
	int r = check_name(p, name, err);

	for (int i = 0; i < 3 && r == AS_OK; i++) {
		if (range[i] && !parse_decimal(range[i], strlen(range[i]), &d[i]))
			r = as_fail(err, AS_E_USAGE, 0,
				    "'%s', the %s of parameter '%s', is no number", range[i],
				    what[i], name);
	}
	if (r == AS_OK)
		r = add_range(p, name, d, range[0], err);
	return r < 0 ? r : check_count(p, name, err);
}

size_t as_params_count(const struct as_params *p)
{
	size_t n = 1;

	as_vec_foreach (param, p)
		n *= param->n;
	return n;
}

const char *as_params_value(const struct as_params *p, size_t i, size_t k)
{
	for (size_t j = 0; j < k; j++)
		i /= p->v[j].n;
	return p->v[k].v[i % p->v[k].n];
}

/* The parameter whose {name} stands at text; NULL: none. */
static const struct as_param *param_at(const struct as_params *p, const char *text)
{
	as_vec_foreach (param, p) {
		size_t n = strlen(param->name);

		if (strncmp(text + 1, param->name, n) == 0 && text[1 + n] == '}')
			return param;
	}
	return NULL;
}

char *as_params_fill(const struct as_params *p, size_t i, const char *text)
{
	struct as_buf out = {0};

	if (!text)
		return NULL;
	while (*text) {
		const struct as_param *param = *text == '{' ? param_at(p, text) : NULL;

		if (param) {
			as_buf_adds(&out, as_params_value(p, i, (size_t)(param - p->v)));
			text += strlen(param->name) + 2;
		} else {
			as_buf_addc(&out, *text++);
		}
	}
	return as_buf_detach(&out);
}

void as_params_clear(struct as_params *p)
{
	as_vec_foreach (param, p) {
		for (size_t i = 0; i < param->n; i++)
			free(param->v[i]);
		free(param->v);
		free(param->name);
	}
	as_vec_clear(p);
}
