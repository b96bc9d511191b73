/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Filters. Users write them for Rust's regex crate; here they are translated to POSIX extended
 * expressions. Which strings match is the same for both (where a match ends is not, and nobody asks).
 */
#include <stdlib.h>
#include <string.h>

#include "harness/criterion/criterion_priv.h"

#define PATTERN_BYTES 4096 /* regcomp's memory grows with it */
#define REPEAT_MAX                                                                             \
	255 /* RE_DUP_MAX of POSIX; more would be regcomp's error, without a reason */

struct translation {
	const char *at, *pattern;
	struct as_buf *out;
	bool icase;
	struct as_error *err;
};

static int not_supported(struct translation *t, const char *what)
{
	return as_fail(t->err, AS_E_USAGE, 0, "cannot take '%s' as a filter: %s", t->pattern,
		       what);
}

/* Rust's \d \w \s and their opposites. set: inside of []. NULL: it is none of them. */
static const char *class_of(char c, bool set)
{
	switch (c) {
	case 'd':
		return set ? "0-9" : "[0-9]";
	case 'w':
		return set ? "[:alnum:]_" : "[[:alnum:]_]";
	case 's':
		return set ? "[:space:]" : "[[:space:]]";
	case 'D':
		return set ? NULL : "[^0-9]";
	case 'W':
		return set ? NULL : "[^[:alnum:]_]";
	case 'S':
		return set ? NULL : "[^[:space:]]";
	default:
		return NULL;
	}
}

/* \n \t …; 0: none of them. */
static char control_of(char c)
{
	static const char names[] = "ntrfva", values[] = "\n\t\r\f\v\a";
	const char *p = c ? strchr(names, c) : NULL;

	return p ? values[p - names] : 0;
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* At the character behind a backslash, outside of []. */
static int escape(struct translation *t)
{
	char c = *t->at++;

	if (class_of(c, false)) {
		as_buf_adds(t->out, class_of(c, false));
		return AS_OK;
	}
	if (control_of(c)) {
		as_buf_addc(t->out, control_of(c));
		return AS_OK;
	}
	if (c == 'b' || c == 'B' || !is_word(c)) {
		if (c == '\0')
			return not_supported(t, "it ends with a backslash");
		if (c != '/' && c != '-' && c != '"' && c != '\'' && c != ' ' && c != '_' &&
		    c != '#' && c != '&' && c != '~' && c != '<' && c != '>' && c != '`')
			as_buf_addc(t->out, '\\');
		as_buf_addc(t->out, c);
		return AS_OK;
	}
	if (c == 'A' || c == 'z') {
		as_buf_addc(t->out, c == 'A' ? '^' : '$');
		return AS_OK;
	}
	return not_supported(t, "it has an escape that is not known here");
}

/* The inside of []: in POSIX a backslash is itself there, and ] ^ - mean themselves by their place. */
static int translate_set(struct translation *t)
{
	AS_CLEANUP(as_buf_clear) struct as_buf body = {0};
	bool negated = *t->at == '^', bracket = false, caret = false, dash = false,
	     first = true;

	t->at += negated;
	for (; *t->at && (*t->at != ']' || first); first = false) {
		char c = *t->at++;

		if (c == '[' && *t->at == ':') {
			const char *end = strstr(t->at, ":]");

			if (!end)
				return not_supported(t, "a class [: is not closed");
			as_buf_add(&body, t->at - 1, (size_t)(end + 2 - (t->at - 1)));
			t->at = end + 2;
		} else if (c == '[' || (c == '&' && *t->at == '&') ||
			   (c == '~' && *t->at == '~')) {
			return not_supported(t, "sets within sets are not known here");
		} else if (c == '\\') {
			c = *t->at;
			if (!c)
				break;
			t->at++;
			if (class_of(c, true))
				as_buf_adds(&body, class_of(c, true));
			else if (control_of(c))
				as_buf_addc(&body, control_of(c));
			else if (is_word(c))
				return not_supported(t,
						     "it has an escape that is not known here");
			else if (c == ']')
				bracket = true;
			else if (c == '^')
				caret = true;
			else if (c == '-')
				dash = true;
			else if (c == '\\')
				as_buf_adds(&body, "\\");
			else
				as_buf_addc(&body, c);
		} else if (c == ']') {
			bracket = true;
		} else if (c == '^') {
			caret = true;
		} else if (c == '-' && (first || *t->at == ']')) {
			dash = true;
		} else {
			as_buf_addc(&body, c);
		}
	}
	if (*t->at != ']')
		return not_supported(t, "a set [ is not closed");
	t->at++;
	if (caret && !body.len && !bracket && !dash && !negated) {
		as_buf_adds(t->out, "\\^"); /* [^] would be open */
		return AS_OK;
	}
	as_buf_adds(t->out, negated ? "[^" : "[");
	as_buf_adds(t->out, bracket ? "]" : "");
	as_buf_adds(t->out, as_buf_str(&body));
	as_buf_adds(t->out, caret ? "^" : "");
	as_buf_adds(t->out, dash ? "-]" : "]");
	return AS_OK;
}

/* Behind "(?". */
static int group(struct translation *t)
{
	if (*t->at == ':') {
		t->at++;
	} else if ((t->at[0] == 'P' && t->at[1] == '<') ||
		   (t->at[0] == '<' && t->at[1] != '=' && t->at[1] != '!')) {
		const char *end = strchr(t->at, '>');

		if (!end)
			return not_supported(t, "a group's name is not closed");
		t->at = end + 1;
	} else {
		return not_supported(
			t, "look-around and flags are not known here, but (?i) in front");
	}
	as_buf_addc(t->out, '(');
	return AS_OK;
}

/* {m}, {m,}, {m,n}, at the {. */
static int repeat(struct translation *t)
{
	size_t n = strspn(t->at + 1, "0123456789,");
	unsigned value = 0;

	if (t->at[n + 1] != '}' || n == 0 || t->at[1] == ',')
		return not_supported(t, "{ begins no repetition; write \\{ for the character");
	for (size_t i = 1; i <= n; i++) {
		value = t->at[i] == ',' ? 0 : value * 10 + (unsigned)(t->at[i] - '0');
		if (value > REPEAT_MAX)
			return not_supported(t, "it repeats more than 255 times");
	}
	as_buf_add(t->out, t->at, n + 2);
	t->at += n + 2;
	return AS_OK;
}

static int step(struct translation *t)
{
	char c = *t->at;

	if (c == '{') {
		int r = repeat(t);

		if (r == AS_OK && *t->at == '?')
			t->at++;
		return r;
	}
	t->at++;
	switch (c) {
	case '\\':
		return escape(t);
	case '[':
		return translate_set(t);
	case '(':
		if (*t->at != '?') {
			as_buf_addc(t->out, '(');
			return AS_OK;
		}
		t->at++;
		return group(t);
	case '*':
	case '+':
	case '?':
		as_buf_addc(t->out, c);
		if (*t->at == '?') /* lazy: the same strings match */
			t->at++;
		return AS_OK;
	default:
		as_buf_addc(t->out, c);
		return AS_OK;
	}
}

int as_criterion_filter_posix(const char *pattern, struct as_buf *out, bool *ret_icase,
			      struct as_error *err)
{
	struct translation t = {.at = pattern, .pattern = pattern, .out = out, .err = err};

	if (strlen(pattern) > PATTERN_BYTES)
		return as_fail(err, AS_E_LIMIT, 0, "a filter is longer than %d bytes",
			       PATTERN_BYTES);
	if (strncmp(t.at, "(?i)", 4) == 0) {
		t.icase = true;
		t.at += 4;
	}
	while (*t.at) {
		int r = step(&t);

		if (r < 0)
			return r;
	}
	*ret_icase = t.icase;
	return AS_OK;
}

int as_criterion_filter_set(struct as_criterion_filter *f, enum as_criterion_match kind,
			    const char *text, struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf posix = {0};
	struct as_criterion_filter new = {.kind = kind};
	bool icase = false;

	if (kind == AS_CRITERION_REGEX && text[0] == '\0')
		new.kind = AS_CRITERION_ALL;
	if (new.kind == AS_CRITERION_REGEX) {
		char why[160];
		int r = as_criterion_filter_posix(text, &posix, &icase, err);

		if (r < 0)
			return r;
		r = regcomp(&new.regex, as_buf_str(&posix),
			    REG_EXTENDED | REG_NOSUB | (icase ? REG_ICASE : 0));
		if (r != 0) {
			(void)regerror(r, &new.regex, why, sizeof why);
			return as_fail(err, AS_E_USAGE, 0, "cannot take '%s' as a filter: %s",
				       text, why);
		}
	}
	new.text = as_xstrdup(text);
	as_criterion_filter_clear(f);
	*f = new;
	return AS_OK;
}

bool as_criterion_filter_matches(const struct as_criterion_filter *f, const char *id)
{
	switch (f->kind) {
	case AS_CRITERION_REGEX:
		return regexec(&f->regex, id, 0, NULL, 0) == 0;
	case AS_CRITERION_EXACT:
		return strcmp(f->text, id) == 0;
	case AS_CRITERION_NONE:
		return false;
	default:
		return true;
	}
}

void as_criterion_filter_clear(struct as_criterion_filter *f)
{
	if (f->kind == AS_CRITERION_REGEX)
		regfree(&f->regex);
	free(f->text);
	*f = (struct as_criterion_filter){0};
}
