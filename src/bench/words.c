/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Words of a command: see words.h. */
#include "bench/words.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/sys.h"

struct split {
	const char *text, *p;
	struct as_words words;
	struct as_buf word;
	bool in_word; /* also an empty one: '' */
};

static int needs_shell(const struct split *s, const char *what, struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf shown = {0};

	as_fmt_quoted(&shown, s->text, strlen(s->text));
	if (!strchr(shown.p, '\''))
		return as_fail(err, AS_E_USAGE, 0,
			       "'%s' needs a shell for %s\n  with one:   assay bench --shell "
			       "'%s'\n  as it is:   quote it, or a backslash before it",
			       shown.p, what, shown.p);
	return as_fail(err, AS_E_USAGE, 0,
		       "%s needs a shell for %s\n  with one:   assay bench --shell …\n  as it "
		       "is:   quote it, or a backslash before it",
		       shown.p, what);
}

static int needs_shell_for(const struct split *s, char c, struct as_error *err)
{
	char what[] = "'?'";

	what[1] = c;
	return needs_shell(s, what, err);
}

static int in_single(struct split *s, struct as_error *err)
{
	const char *end = strchr(s->p + 1, '\'');

	if (!end)
		return as_fail(err, AS_E_USAGE, 0, "%s: a ' is not closed", s->text);
	as_buf_add(&s->word, s->p + 1, (size_t)(end - s->p - 1));
	s->p = end + 1;
	return AS_OK;
}

static int in_double(struct split *s, struct as_error *err)
{
	for (s->p++; *s->p != '"'; s->p++) {
		if (!*s->p)
			return as_fail(err, AS_E_USAGE, 0, "%s: a \" is not closed", s->text);
		if (*s->p == '$' || *s->p == '`')
			return needs_shell_for(s, *s->p, err);
		if (*s->p == '\\' && s->p[1] && strchr("\\\"$`\n", s->p[1])) {
			s->p++;
			if (*s->p == '\n')
				continue; /* the line goes on */
		}
		as_buf_addc(&s->word, *s->p);
	}
	s->p++;
	return AS_OK;
}

/* NAME=value before the program is a shell's. */
static bool is_assignment(const char *p)
{
	const char *name = p;

	while (isalnum((unsigned char)*p) || *p == '_')
		p++;
	return p > name && !isdigit((unsigned char)*name) && *p == '=';
}

static void end_word(struct split *s)
{
	if (!s->in_word)
		return;
	as_vec_push(&s->words, as_buf_detach(&s->word));
	s->in_word = false;
}

static int one_character(struct split *s, struct as_error *err)
{
	char c = *s->p;

	if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
		end_word(s);
		s->p++;
		return AS_OK;
	}
	if (strchr("|&;<>()$`*?", c))
		return needs_shell_for(s, c, err);
	if (!s->in_word && c == '~')
		return needs_shell_for(s, c, err);
	if (!s->in_word && !s->words.n && is_assignment(s->p))
		return needs_shell(s, "the variable before the program (or env NAME=… …)", err);
	s->in_word = true;
	if (c == '\'')
		return in_single(s, err);
	if (c == '"')
		return in_double(s, err);
	if (c == '\\' && s->p[1])
		s->p++;
	if (!(c == '\\' && *s->p == '\n'))
		as_buf_addc(&s->word, *s->p);
	s->p++;
	return AS_OK;
}

int as_words_split(const char *text, struct as_words *ret, struct as_error *err)
{
	struct split s = {.text = text, .p = text};
	int r = AS_OK;

	while (*s.p && r == AS_OK)
		r = one_character(&s, err);
	if (r == AS_OK)
		end_word(&s);
	if (r == AS_OK && !s.words.n)
		r = as_fail(err, AS_E_USAGE, 0, "a command is empty");
	as_buf_clear(&s.word);
	if (r < 0) {
		as_words_clear(&s.words);
		return r;
	}
	as_vec_push(&s.words, NULL);
	s.words.n--;
	*ret = s.words;
	return AS_OK;
}

void as_words_clear(struct as_words *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->v[i]);
	as_vec_clear(w);
}
