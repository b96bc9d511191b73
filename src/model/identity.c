/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Names without what a rebuild changes: see identity.h. */
#include "model/identity.h"

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

void as_stable_module(const char *name, struct as_buf *out)
{
	size_t n = strlen(name);

	if (n > 17 && name[n - 17] == '-' && hex_span(name + n - 16) == 16)
		n -= 17;
	as_buf_add(out, name, n);
}
