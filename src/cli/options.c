/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parsing options by their rows: see options.h. */
#include "cli/options.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sys.h"

/* ---- values ---- */

static void *slot(const struct as_option *o, void *args)
{
	return (char *)args + o->at;
}

static int bad_value(const struct as_option *o, const char *text, const char *want,
		     struct as_error *err)
{
	return as_fail(err, AS_E_USAGE, 0, "--%s takes %s, not '%s'", o->name, want, text);
}

static int check_range(const struct as_option *o, double v, const char *text,
		       struct as_error *err)
{
	if ((!o->min && !o->max) || (v >= o->min && v <= o->max))
		return 0;
	return as_fail(err, AS_E_USAGE, 0, "--%s takes %.15g to %.15g, not '%s'", o->name,
		       o->min, o->max, text);
}

static int set_int(const struct as_option *o, void *args, const char *text,
		   struct as_error *err)
{
	bool negative = text[0] == '-';
	uint64_t v;

	if (!as_parse_u64(text + negative, &v) || v > INT64_MAX)
		return bad_value(o, text, "a whole number", err);

	int64_t value = negative ? -(int64_t)v : (int64_t)v;
	int r = check_range(o, (double)value, text, err);

	if (r < 0)
		return r;
	*(int64_t *)slot(o, args) = value;
	return 0;
}

static int set_num(const struct as_option *o, void *args, const char *text,
		   struct as_error *err)
{
	size_t n = strlen(text);
	bool percent = o->arg && strcmp(o->arg, "PERCENT") == 0 && n && text[n - 1] == '%';
	AS_CLEANUP(as_free_autop) char *number = as_xstrndup(text, n - percent);
	double v;

	if (!as_parse_double(number, &v))
		return bad_value(o, text, "a number", err);

	int r = check_range(o, v, text, err);

	if (r < 0)
		return r;
	*(double *)slot(o, args) = v;
	return 0;
}

static int set_duration(const struct as_option *o, void *args, const char *text,
			struct as_error *err)
{
	uint64_t v;

	if (!as_parse_duration_ns(text, &v))
		return bad_value(o, text, "a duration such as 10, 1.5m or 200ms", err);

	int r = check_range(o, (double)v / 1e9, text, err);

	if (r < 0)
		return r;
	*(uint64_t *)slot(o, args) = v;
	return 0;
}

static int set_size(const struct as_option *o, void *args, const char *text,
		    struct as_error *err)
{
	uint64_t v;

	if (!as_parse_size(text, &v))
		return bad_value(o, text, "a size such as 4096, 64K or 1M", err);

	int r = check_range(o, (double)v, text, err);

	if (r < 0)
		return r;
	*(uint64_t *)slot(o, args) = v;
	return 0;
}

static int set_choice(const struct as_option *o, void *args, const char *text,
		      struct as_error *err)
{
	size_t len = strlen(text);
	const char *p = o->choices;

	for (int i = 0;; i++) {
		size_t n = strcspn(p, "|");

		if (n == len && memcmp(p, text, n) == 0) {
			*(int *)slot(o, args) = i;
			return 0;
		}
		if (!p[n])
			break;
		p += n + 1;
	}

	AS_CLEANUP(as_free_autop) char *want = as_xasprintf("one of %s", o->choices);

	return bad_value(o, text, want, err);
}

/* FROM..TO, either end may be left out: 2s..5s, ..10, 3.. */
static int set_span(const struct as_option *o, void *args, const char *text,
		    struct as_error *err)
{
	const char *dots = strstr(text, "..");
	uint64_t v[2] = {0, UINT64_MAX};

	if (!dots)
		return bad_value(o, text, "FROM..TO such as 2s..5s", err);

	AS_CLEANUP(as_free_autop) char *from = as_xstrndup(text, (size_t)(dots - text));

	if ((*from && !as_parse_duration_ns(from, &v[0])) ||
	    (dots[2] && !as_parse_duration_ns(dots + 2, &v[1])))
		return bad_value(o, text, "FROM..TO such as 2s..5s", err);
	if (v[0] >= v[1])
		return as_fail(err, AS_E_USAGE, 0, "--%s %s is empty: FROM must be before TO",
			       o->name, text);
	memcpy(slot(o, args), v, sizeof v);
	return 0;
}

static int set_value(const struct as_option *o, void *args, const char *text,
		     struct as_error *err)
{
	switch (o->type) {
	case AS_OPT_FLAG:
		*(bool *)slot(o, args) = true;
		return 0;
	case AS_OPT_TEXT:
		*(const char **)slot(o, args) = text;
		return 0;
	case AS_OPT_INT:
		return set_int(o, args, text, err);
	case AS_OPT_NUM:
		return set_num(o, args, text, err);
	case AS_OPT_DURATION:
		return set_duration(o, args, text, err);
	case AS_OPT_SIZE:
		return set_size(o, args, text, err);
	case AS_OPT_CHOICE:
		return set_choice(o, args, text, err);
	case AS_OPT_SPAN:
		return set_span(o, args, text, err);
	case AS_OPT_TEXTS:
		as_vec_push((struct as_texts *)slot(o, args), text);
		return 0;
	}
	return 0;
}

static int set_defaults(const struct as_option *table, void *args, struct as_error *err)
{
	for (const struct as_option *o = table; o && o->name; o++) {
		/* a default may say "not given" by a value out of range */
		struct as_option any = *o;

		any.min = any.max = 0;

		int r = o->def ? set_value(&any, args, o->def, err) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

void as_options_clear(const struct as_option *table, void *args)
{
	for (const struct as_option *o = table; o && o->name; o++) {
		if (o->type == AS_OPT_TEXTS)
			as_vec_clear((struct as_texts *)slot(o, args));
	}
}

/* ---- words ---- */

struct parse {
	const struct as_options_request *q;
	int argc, at;
	char **argv;
};

/* The words an option takes beyond its first. */
static int set_further(struct parse *p, const struct as_option *o, void *args,
		       struct as_error *err)
{
	for (size_t i = 1; i < o->words; i++) {
		if (p->at >= p->argc)
			return as_fail(err, AS_E_USAGE, 0, "--%s needs %s", o->name, o->arg);

		int r = set_value(o, args, p->argv[p->at++], err);

		if (r < 0)
			return r;
	}
	return 0;
}

static const struct as_option *find_long(const struct parse *p, const char *name, size_t n,
					 void **ret_args)
{
	const struct as_option *tables[] = {p->q->table, p->q->common};
	void *args[] = {p->q->args, p->q->common_args};

	for (size_t t = 0; t < AS_ARRAY_LEN(tables); t++) {
		for (const struct as_option *o = tables[t]; o && o->name; o++) {
			if (strlen(o->name) == n && memcmp(o->name, name, n) == 0) {
				*ret_args = args[t];
				return o;
			}
		}
	}
	return NULL;
}

static const struct as_option *find_letter(const struct parse *p, char letter, void **ret_args)
{
	const struct as_option *tables[] = {p->q->table, p->q->common};
	void *args[] = {p->q->args, p->q->common_args};

	for (size_t t = 0; t < AS_ARRAY_LEN(tables); t++) {
		for (const struct as_option *o = tables[t]; o && o->name; o++) {
			if (o->letter == letter) {
				*ret_args = args[t];
				return o;
			}
		}
	}
	return NULL;
}

static int unknown_long(const struct parse *p, const char *name, size_t n, struct as_error *err)
{
	AS_VEC(const char *) names = {0};
	AS_CLEANUP(as_free_autop) char *word = as_xstrndup(name, n);
	const struct as_option *tables[] = {p->q->table, p->q->common};

	for (size_t t = 0; t < AS_ARRAY_LEN(tables); t++) {
		for (const struct as_option *o = tables[t]; o && o->name; o++)
			as_vec_push(&names, o->name);
	}

	const char *near = as_nearest(word, names.v, names.n);

	as_vec_clear(&names);
	if (near)
		return as_fail(err, AS_E_USAGE, 0, "unknown option '--%s'; did you mean --%s?",
			       word, near);
	return as_fail(err, AS_E_USAGE, 0, "unknown option '--%s'", word);
}

static int parse_long(struct parse *p, struct as_error *err)
{
	const char *name = p->argv[p->at] + 2;
	size_t n = strcspn(name, "=");
	const char *value = name[n] ? name + n + 1 : NULL;
	void *args;
	const struct as_option *o = find_long(p, name, n, &args);

	if (!o)
		return unknown_long(p, name, n, err);
	p->at++;
	if (o->type == AS_OPT_FLAG) {
		if (value)
			return as_fail(err, AS_E_USAGE, 0, "--%s takes no value", o->name);
		return set_value(o, args, NULL, err);
	}
	if (!value && o->bare)
		return set_value(o, args, o->bare, err);
	if (!value) {
		if (p->at >= p->argc)
			return as_fail(err, AS_E_USAGE, 0, "--%s needs %s", o->name,
				       o->arg ? o->arg : "a value");
		value = p->argv[p->at++];
	}

	int r = set_value(o, args, value, err);

	return r < 0 ? r : set_further(p, o, args, err);
}

static int parse_letters(struct parse *p, struct as_error *err)
{
	const char *s = p->argv[p->at++] + 1;

	for (; *s; s++) {
		void *args;
		const struct as_option *o = find_letter(p, *s, &args);

		if (!o) {
			char shown[2] = {isprint((unsigned char)*s) ? *s : '?', 0};

			return as_fail(err, AS_E_USAGE, 0, "unknown option '-%s'", shown);
		}
		if (o->type == AS_OPT_FLAG || (o->bare_letter && s[1] != '=')) {
			int r = set_value(o, args, o->bare, err);

			if (r < 0)
				return r;
			continue;
		}

		const char *value = s[1] ? s + 1 + (s[1] == '=') : NULL;

		if (!value && p->at >= p->argc)
			return as_fail(err, AS_E_USAGE, 0, "-%c needs %s", *s,
				       o->arg ? o->arg : "a value");

		int r = set_value(o, args, value ? value : p->argv[p->at++], err);

		return r < 0 ? r : set_further(p, o, args, err);
	}
	return 0;
}

int as_options_parse(const struct as_options_request *q, int argc, char **argv,
		     int *ret_operands, struct as_error *err)
{
	struct parse p = {.q = q, .argc = argc, .argv = argv};
	int operands = 0, literal = -1;
	bool only_operands = false;
	int r = set_defaults(q->table, q->args, err);

	if (r == 0)
		r = set_defaults(q->common, q->common_args, err);
	while (r == 0 && p.at < argc) {
		char *word = argv[p.at];

		if (only_operands || word[0] != '-' || !word[1]) {
			only_operands |= q->stop_at_operand;
			argv[operands++] = word;
			p.at++;
		} else if (strcmp(word, "--") == 0) {
			only_operands = true;
			literal = operands;
			p.at++;
		} else if (word[1] == '-') {
			r = parse_long(&p, err);
		} else {
			r = parse_letters(&p, err);
		}
	}
	if (r < 0)
		return r;
	*ret_operands = operands;
	if (q->ret_literal)
		*q->ret_literal = literal < 0 ? operands : literal;
	return 0;
}
