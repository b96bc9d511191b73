/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Names without what a rebuild changes: see identity.h. */
#include "model/diff/identity.h"

#include <string.h>

#include "base/mem.h"

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static size_t hex_span(const char *s)
{
	size_t n = 0;

	while (is_hex(s[n]))
		n++;
	return n;
}

static size_t digit_span(const char *s)
{
	return strspn(s, "0123456789");
}

static bool is_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '_';
}

/* Length of what compilers add to a symbol at `s` (".part.0", ".llvm.123", ".cold"); 0: nothing. */
static size_t suffix(const char *s)
{
	static const char *const words[] = {".part",       ".isra", ".constprop",
					    ".cold",       ".llvm", ".lto_priv",
					    ".localalias", ".warm", ".hot"};

	for (size_t i = 0; i < AS_ARRAY_LEN(words); i++) {
		size_t n = strlen(words[i]);

		if (strncmp(s, words[i], n) != 0 || is_word(s[n]))
			continue;
		if (s[n] == '.' && digit_span(s + n + 1))
			n += 1 + digit_span(s + n + 1);
		return n;
	}
	return 0;
}

/* The same for what names of any place may hold; `at` > 0 characters stand before s. */
static size_t unstable(const char *s, size_t at, bool in_braces)
{
	size_t n;

	switch (*s) {
	case '[': /* crate disambiguator: right behind a name, hexadecimal, no array length */
		n = hex_span(s + 1);
		return at && is_word(s[-1]) && n >= 5 && n <= 16 && s[1 + n] == ']' ? n + 2 : 0;
	case '#':
		n = digit_span(s + 1);
		return in_braces && n ? n + 1 : 0;
	case ':': /* the hash that ends a legacy name */
		if (strncmp(s, "::h", 3) != 0 || hex_span(s + 3) != 16)
			return 0;
		return !is_word(s[19]) && s[19] != ':' ? 19 : 0;
	case '.':
		return at ? suffix(s) : 0;
	default:
		return 0;
	}
}

void as_stable_function(const char *full, struct as_buf *out)
{
	size_t braces = 0;

	for (size_t i = 0; full[i];) {
		size_t n = unstable(full + i, i, braces > 0);

		if (n) {
			i += n;
			continue;
		}
		braces += full[i] == '{';
		braces -= full[i] == '}' && braces;
		as_buf_addc(out, full[i++]);
	}
}

/* ---- Rust names without type parameters ---- */

/* At s[at] == '<': whether type parameters begin, not a path of its own ("<A as B>::c"). */
static bool begins_parameters(const char *s, size_t at)
{
	return at && (is_word(s[at - 1]) || s[at - 1] == ':' || s[at - 1] == '}') &&
	       strncmp(s + at, "<impl ", 6) != 0;
}

/* Behind the '>' that ends what begins at s[at] == '<'; the end of the text when there is none. */
static size_t group_end(const char *s, size_t at)
{
	size_t depth = 0;

	for (; s[at]; at++) {
		if (s[at] == '<')
			depth++;
		else if (s[at] == '>' && s[at - 1] != '-' && --depth == 0)
			return at + 1;
	}
	return at;
}

static void drop_parameters(const char *s, struct as_buf *out)
{
	for (size_t i = 0; s[i];) {
		if (s[i] == '<' && begins_parameters(s, i)) {
			while (out->len && out->p[out->len - 1] == ':')
				out->p[--out->len] = 0;
			i = group_end(s, i);
		} else if ((s[i] == '{' || s[i] == '}') && s[i + 1] == s[i]) {
			as_buf_addc(out, s[i]);
			i += 2;
		} else {
			as_buf_addc(out, s[i++]);
		}
	}
}

/* " as " outside of the groups in s[0 … n). */
static const char *find_apart(const char *s, size_t n, const char *word)
{
	size_t depth = 0, len = strlen(word);

	for (size_t i = 0; i + len <= n; i++) {
		depth += s[i] == '<';
		depth -= s[i] == '>' && depth && i && s[i - 1] != '-';
		if (!depth && strncmp(s + i, word, len) == 0)
			return s + i;
	}
	return NULL;
}

/* "<A>::b", "x::<impl A>::b" -> "A::b"; "x::<impl B for A>::c" -> "<A as B>::c". */
static void even_impls(const char *s, struct as_buf *out)
{
	size_t start = out->len;

	for (size_t i = 0; s[i];) {
		size_t end, n;
		const char *in = s + i + 1, *cut;

		if (s[i] != '<') {
			as_buf_addc(out, s[i++]);
			continue;
		}
		end = group_end(s, i);
		n = end - i - (s[end - 1] == '>' ? 2 : 1);
		cut = n > 5 && strncmp(in, "impl ", 5) == 0 ? find_apart(in + 5, n - 5, " for ")
							    : NULL;
		if (cut) {
			out->len = start;
			as_buf_addc(out, '<');
			as_buf_add(out, cut + 5, n - (size_t)(cut + 5 - in));
			as_buf_adds(out, " as ");
			as_buf_add(out, in + 5, (size_t)(cut - in) - 5);
			as_buf_addc(out, '>');
		} else if (n > 5 && strncmp(in, "impl ", 5) == 0) {
			out->len = start;
			as_buf_add(out, in + 5, n - 5);
		} else if (find_apart(in, n, " as ")) {
			as_buf_add(out, s + i, end - i);
		} else {
			as_buf_add(out, in, n);
		}
		i = end;
	}
}

void as_loose_function(const char *full, struct as_buf *out)
{
	AS_CLEANUP(as_buf_clear) struct as_buf stable = {0};
	AS_CLEANUP(as_buf_clear) struct as_buf plain = {0};

	as_stable_function(full, &stable);
	drop_parameters(as_buf_str(&stable), &plain);
	even_impls(as_buf_str(&plain), out);
}

void as_stable_module(const char *name, struct as_buf *out)
{
	size_t n = strlen(name);

	if (n > 17 && name[n - 17] == '-' && hex_span(name + n - 16) == 16)
		n -= 17;
	as_buf_add(out, name, n);
}
