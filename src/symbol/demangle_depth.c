/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How deep a Rust v0 name nests, before libiberty recurses into it: libiberty before 2022 (Ubuntu
 * 22.04) has no limit of its own, and eight bytes whose back reference points at what holds it are
 * enough to run through any stack. This walks the grammar of RFC 2603, back references included,
 * and only counts. Where the grammar ends, libiberty ends too, so an unknown construct is fine.
 */
#include "symbol/demangle_priv.h"

#include <stdint.h>

#define MAX_DEPTH 1000       /* libiberty's own limit today is 1,024 */
#define MAX_STEPS (1u << 20) /* back references can double the work with every level */

struct walk {
	const char *s;
	size_t n, at; /* behind the _R */
	unsigned depth, steps;
	bool over; /* too deep or too long */
	bool stop; /* over, or no grammar any more */
};

static void walk_type(struct walk *w);
static void walk_path(struct walk *w);

static char peek(const struct walk *w)
{
	return !w->stop && w->at < w->n ? w->s[w->at] : '\0';
}

static char next(struct walk *w)
{
	char c = peek(w);

	if (c)
		w->at++;
	else
		w->stop = true;
	return c;
}

static bool eat(struct walk *w, char c)
{
	if (peek(w) != c)
		return false;
	w->at++;
	return true;
}

static bool enter(struct walk *w)
{
	w->depth++;
	if (w->depth > MAX_DEPTH || ++w->steps > MAX_STEPS)
		w->over = w->stop = true;
	return !w->stop;
}

/* "_" is 0, "0_" 1, digits 0-9a-zA-Z. */
static uint64_t base62(struct walk *w)
{
	uint64_t v = 0;

	if (eat(w, '_'))
		return 0;
	while (!w->stop) {
		char c = next(w);
		unsigned digit;

		if (c == '_')
			return v + 1;
		if (c >= '0' && c <= '9')
			digit = (unsigned)(c - '0');
		else if (c >= 'a' && c <= 'z')
			digit = (unsigned)(c - 'a') + 10;
		else if (c >= 'A' && c <= 'Z')
			digit = (unsigned)(c - 'A') + 36;
		else
			break;
		v = v * 62 + digit; /* wraps for nonsense: the target is checked */
	}
	w->stop = true;
	return 0;
}

static void optional_base62(struct walk *w, char tag)
{
	if (eat(w, tag))
		(void)base62(w);
}

static void walk_ident(struct walk *w)
{
	size_t length = 0;

	optional_base62(w, 's');
	(void)eat(w, 'u');
	if (peek(w) < '0' || peek(w) > '9')
		w->stop = true;
	else if (!eat(w, '0')) {
		while (peek(w) >= '0' && peek(w) <= '9' && length < w->n)
			length = length * 10 + (size_t)(next(w) - '0');
	}
	(void)eat(w, '_');
	if (length > w->n - w->at)
		w->stop = true;
	else
		w->at += length;
}

/* Walks what stands at an earlier place, then goes on here. */
static void walk_back(struct walk *w, void (*what)(struct walk *))
{
	size_t from = w->at - 1;
	uint64_t target = base62(w);
	size_t here = w->at;

	if (target >= from)
		w->stop = true;
	if (w->stop)
		return;
	w->at = (size_t)target;
	what(w);
	w->at = here;
}

static void walk_const(struct walk *w)
{
	if (!enter(w))
		return;

	char c = next(w);

	if (c == 'B')
		walk_back(w, walk_const);
	else if (c != 'p') {
		if (c < 'a' || c > 'z')
			w->stop = true;
		while (peek(w) && !eat(w, '_'))
			w->at++;
	}
	w->depth--;
}

static void walk_generics(struct walk *w)
{
	while (!w->stop && !eat(w, 'E')) {
		if (eat(w, 'L'))
			(void)base62(w);
		else if (eat(w, 'K'))
			walk_const(w);
		else
			walk_type(w);
	}
}

static void walk_path(struct walk *w)
{
	if (!enter(w))
		return;
	switch (next(w)) {
	case 'C':
		walk_ident(w);
		break;
	case 'N':
		(void)next(w);
		walk_path(w);
		walk_ident(w);
		break;
	case 'M':
		optional_base62(w, 's');
		walk_path(w);
		walk_type(w);
		break;
	case 'X':
		optional_base62(w, 's');
		walk_path(w);
		walk_type(w);
		walk_path(w);
		break;
	case 'Y':
		walk_type(w);
		walk_path(w);
		break;
	case 'I':
		walk_path(w);
		walk_generics(w);
		break;
	case 'B':
		walk_back(w, walk_path);
		break;
	default:
		w->stop = true;
	}
	w->depth--;
}

static void walk_function_type(struct walk *w)
{
	optional_base62(w, 'G');
	(void)eat(w, 'U');
	if (eat(w, 'K') && !eat(w, 'C'))
		walk_ident(w);
	while (!w->stop && !eat(w, 'E'))
		walk_type(w);
	walk_type(w);
}

static void walk_dyn(struct walk *w)
{
	optional_base62(w, 'G');
	while (!w->stop && !eat(w, 'E')) {
		walk_path(w);
		while (eat(w, 'p')) {
			walk_ident(w);
			walk_type(w);
		}
	}
	optional_base62(w, 'L');
}

static void walk_type(struct walk *w)
{
	if (!enter(w))
		return;

	char c = next(w);

	switch (c) {
	case 'R':
	case 'Q':
		optional_base62(w, 'L');
		walk_type(w);
		break;
	case 'P':
	case 'O':
	case 'S':
		walk_type(w);
		break;
	case 'A':
		walk_type(w);
		walk_const(w);
		break;
	case 'T':
		while (!w->stop && !eat(w, 'E'))
			walk_type(w);
		break;
	case 'F':
		walk_function_type(w);
		break;
	case 'D':
		walk_dyn(w);
		break;
	case 'B':
		walk_back(w, walk_type);
		break;
	default:
		if (c >= 'a' && c <= 'z')
			break;
		if (!w->stop) {
			w->at--; /* the tag belongs to the path */
			walk_path(w);
		}
	}
	w->depth--;
}

bool as_rust_v0_is_bounded(const char *name, size_t n)
{
	struct walk w = {.s = name + 2, .n = n - 2};

	walk_path(&w);
	if (peek(&w) >= 'A' && peek(&w) <= 'Z')
		walk_path(&w); /* the crate that instantiated it */
	return !w.over;
}
