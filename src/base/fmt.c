/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Numbers and text for people: see sys.h. */
#include "base/sys.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/fmt_priv.h"
#include "base/mem.h"

size_t as_utf8_decode(const char *s, size_t n, uint32_t *ret_code)
{
	const unsigned char *p = (const unsigned char *)s;

	if (!n)
		return 0;
	if (p[0] < 0x80) {
		*ret_code = p[0];
		return 1;
	}

	size_t len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	static const uint32_t min[5] = {0, 0, 0x80, 0x800, 0x10000};
	uint32_t code = p[0] & (0xff >> (len + 1));

	if (p[0] < 0xc2 || p[0] > 0xf4 || len > n)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (p[i] & 0x3f);
	}
	if (code < min[len] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	*ret_code = code;
	return len;
}

bool as_parse_u64(const char *s, uint64_t *ret)
{
	unsigned base = 10;
	uint64_t v = 0;

	if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X')) {
		base = 16;
		s += 2;
	}
	if (!*s)
		return false;
	for (; *s; s++) {
		unsigned digit;

		if (*s >= '0' && *s <= '9')
			digit = (unsigned)(*s - '0');
		else if (isxdigit((unsigned char)*s))
			digit = (unsigned)((*s | 0x20) - 'a' + 10);
		else
			return false;
		if (digit >= base || __builtin_mul_overflow(v, base, &v) ||
		    __builtin_add_overflow(v, digit, &v))
			return false;
	}
	*ret = v;
	return true;
}

/*
 * An unsigned decimal number with an optional fraction and exponent; *ret_end stands after it.
 * Own grammar, because strtod also takes "inf", "nan", hex floats and leading blanks; strtod
 * then only converts what was checked.
 */
static bool scan_number(const char *s, double *ret, const char **ret_end)
{
	const char *p = s;
	size_t digits = strspn(p, "0123456789");

	p += digits;
	if (*p == '.') {
		size_t fraction = strspn(p + 1, "0123456789");

		digits += fraction;
		p += 1 + fraction;
	}
	if (!digits)
		return false;
	if (*p == 'e' || *p == 'E') {
		const char *q = p + 1 + (p[1] == '+' || p[1] == '-');
		size_t n = strspn(q, "0123456789");

		if (n)
			p = q + n;
	}

	AS_CLEANUP(as_free_autop) char *copy = as_xstrndup(s, (size_t)(p - s));
	char *stop;
	double v = strtod(copy, &stop);

	if (*stop || !isfinite(v))
		return false;
	*ret = v;
	*ret_end = p;
	return true;
}

bool as_parse_double(const char *s, double *ret)
{
	bool negative = *s == '-';
	const char *end;
	double v;

	if (*s == '-' || *s == '+')
		s++;
	if (!scan_number(s, &v, &end) || *end)
		return false;
	*ret = negative ? -v : v;
	return true;
}

struct unit {
	const char *name;
	double factor;
};

static bool parse_with_unit(const char *s, const struct unit *units, size_t n, uint64_t *ret)
{
	const char *end;
	double v;

	if (!scan_number(s, &v, &end))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (strcasecmp(end, units[i].name) != 0)
			continue;
		v *= units[i].factor;
		if (!(v < 18446744073709551616.0))
			return false;
		*ret = (uint64_t)(v + (v < 4503599627370496.0 ? 0.5 : 0.0));
		return true;
	}
	return false;
}

bool as_parse_duration_ns(const char *s, uint64_t *ret)
{
	static const struct unit units[] = {
		{"", 1e9},   {"s", 1e9},  {"ms", 1e6},   {"us", 1e3},   {"µs", 1e3},
		{"ns", 1.0}, {"m", 60e9}, {"min", 60e9}, {"h", 3600e9},
	};

	return parse_with_unit(s, units, AS_ARRAY_LEN(units), ret);
}

bool as_parse_size(const char *s, uint64_t *ret)
{
	static const struct unit units[] = {
		{"", 1.0},
		{"B", 1.0},
		{"K", 1024.0},
		{"KiB", 1024.0},
		{"KB", 1024.0},
		{"M", 1048576.0},
		{"MiB", 1048576.0},
		{"MB", 1048576.0},
		{"G", 1073741824.0},
		{"GiB", 1073741824.0},
		{"GB", 1073741824.0},
		{"T", 1099511627776.0},
		{"TiB", 1099511627776.0},
		{"TB", 1099511627776.0},
	};
	uint64_t whole;

	if (as_parse_u64(s, &whole)) { /* exact above 2^53 */
		*ret = whole;
		return true;
	}
	return parse_with_unit(s, units, AS_ARRAY_LEN(units), ret);
}

/* v in at least three significant digits, no needless ones: 3.10, 12.4, 412. */
static void add_three_digits(struct as_buf *b, double v, const char *unit)
{
	as_buf_addf(b, "%.*f %s", v < 9.995 ? 2 : v < 99.95 ? 1 : 0, v, unit);
}

void as_fmt_duration(struct as_buf *b, uint64_t ns)
{
	if (ns < 1000)
		as_buf_addf(b, "%u ns", (unsigned)ns);
	else if (ns < 999500)
		add_three_digits(b, (double)ns / 1e3, "µs");
	else if (ns < 999500000)
		add_three_digits(b, (double)ns / 1e6, "ms");
	else if (ns < 600000000000)
		add_three_digits(b, (double)ns / 1e9, "s");
	else if (ns < 36000000000000)
		add_three_digits(b, (double)ns / 60e9, "min");
	else
		add_three_digits(b, (double)ns / 3600e9, "h");
}

void as_fmt_bytes(struct as_buf *b, uint64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};

	if (bytes < 1024) {
		as_buf_addf(b, "%u B", (unsigned)bytes);
		return;
	}

	double v = (double)bytes / 1024;
	size_t u = 0;

	while (v >= 1023.5 && u + 1 < AS_ARRAY_LEN(units)) {
		v /= 1024;
		u++;
	}
	add_three_digits(b, v, units[u]);
}

void as_fmt_count(struct as_buf *b, uint64_t n)
{
	char digits[20];
	size_t len = 0;

	do {
		digits[len++] = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	while (len) {
		as_buf_addc(b, digits[--len]);
		if (len && len % 3 == 0)
			as_buf_addc(b, ',');
	}
}

void as_fmt_quoted(struct as_buf *b, const char *s, size_t n)
{
	for (size_t i = 0; i < n;) {
		uint32_t code;
		size_t len = as_utf8_decode(s + i, n - i, &code);
		/* C0, DEL, C1, and the marks that reorder or hide text on a terminal. */
		bool unsafe = !len || code < 0x20 || (code >= 0x7f && code < 0xa0) ||
			      (code >= 0x202a && code <= 0x202e) ||
			      (code >= 0x2066 && code <= 0x2069) || code == 0x2028 ||
			      code == 0x2029;

		len = len ? len : 1;
		if (!unsafe) {
			as_buf_add(b, s + i, len);
		} else {
			for (size_t k = 0; k < len; k++)
				as_buf_addf(b, "\\x%02x", (unsigned char)s[i + k]);
		}
		i += len;
	}
}

void as_fmt_utf8(struct as_buf *b, const char *s, size_t n)
{
	size_t good = 0; /* start of what has not been added */

	for (size_t i = 0; i < n;) {
		uint32_t code;
		size_t len = as_utf8_decode(s + i, n - i, &code);

		if (len) {
			i += len;
			continue;
		}
		as_buf_add(b, s + good, i - good);
		as_buf_adds(b, "\xef\xbf\xbd");
		good = ++i;
	}
	as_buf_add(b, s + good, n - good);
}

void as_fmt_text(struct as_buf *b, const char *s, size_t n)
{
	for (size_t i = 0; i < n;) {
		uint32_t code = 0;
		size_t len = as_utf8_decode(s + i, n - i, &code);
		bool reorders = (code >= 0x202a && code <= 0x202e) ||
				(code >= 0x2066 && code <= 0x2069);

		if (!len || (code >= 0x80 && code < 0xa0) || reorders) {
			as_buf_adds(b, "\xef\xbf\xbd");
		} else if ((code < 0x20 && code != '\t') || code == 0x7f) {
			as_buf_adds(b, "\xe2\x90");
			as_buf_addc(b, (char)(code == 0x7f ? 0xa1 : 0x80 + code));
		} else {
			as_buf_add(b, s + i, len);
		}
		i += len ? len : 1;
	}
}

void as_fmt_markup(struct as_buf *b, const char *s)
{
	for (; *s; s++) {
		if (*s == '<')
			as_buf_adds(b, "&lt;");
		else if (*s == '>')
			as_buf_adds(b, "&gt;");
		else if (*s == '&')
			as_buf_adds(b, "&amp;");
		else if (*s == '"')
			as_buf_adds(b, "&quot;");
		else if (strncmp(s, "\xef\xbf\xbe", 3) == 0 ||
			 strncmp(s, "\xef\xbf\xbf", 3) == 0) /* XML has no such characters */
			as_buf_adds(b, "?"), s += 2;
		else
			as_buf_addc(b, *s);
	}
}

size_t as_text_width(const char *s, size_t n)
{
	size_t width = 0;

	for (size_t i = 0; i < n;) {
		uint32_t code;
		size_t len = as_utf8_decode(s + i, n - i, &code);

		if (!len) {
			width++;
			i++;
			continue;
		}
		/* In the C locale wcwidth knows only ASCII and says -1 for the rest: count 1. */
		int w = code < 0x80 ? (code >= 0x20 && code < 0x7f) : wcwidth((wchar_t)code);

		width += w < 0 ? 1 : (size_t)w;
		i += len;
	}
	return width;
}
