/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Paths of Rust functions whose debug information has their last component only
 * (line-tables-only): from the file that holds them, as cargo and rustc lay out files.
 */
#include <string.h>

#include "symbol/demangle.h"

struct part {
	const char *p;
	size_t n;
};

#define MAX_PARTS 16

static bool is(const struct part *part, const char *text)
{
	return part->n == strlen(text) && memcmp(part->p, text, part->n) == 0;
}

/* The last components of the path, in order; returns how many. */
static size_t split(const char *file, struct part ret[MAX_PARTS])
{
	size_t n = 0;

	while (*file) {
		size_t len = strcspn(file, "/");

		if (n == MAX_PARTS) {
			memmove(ret, ret + 1, (MAX_PARTS - 1) * sizeof *ret);
			n--;
		}
		if (len)
			ret[n++] = (struct part){file, len};
		file += len + (file[len] == '/');
	}
	return n;
}

/* "regex-syntax-0.6.27" -> regex_syntax; only letters of a name are added. */
static void add_crate(struct as_buf *out, const struct part *part)
{
	size_t n = part->n;

	for (size_t i = 1; i + 1 < part->n; i++) {
		if (part->p[i] == '-' && part->p[i + 1] >= '0' && part->p[i + 1] <= '9') {
			n = i;
			break;
		}
	}
	for (size_t i = 0; i < n; i++)
		as_buf_addc(out, part->p[i] == '-' ? '_' : part->p[i]);
}

static bool is_name(const struct part *part)
{
	for (size_t i = 0; i < part->n; i++) {
		char c = part->p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		      (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.'))
			return false;
	}
	return part->n > 0;
}

bool as_name_by_file(const char *name, const char *file, struct as_buf *out)
{
	struct part part[MAX_PARTS], *stem;
	size_t n = split(file, part), src = n, start = out->len;

	if (!n || part[n - 1].n < 4 || memcmp(part[n - 1].p + part[n - 1].n - 3, ".rs", 3) != 0)
		return false;
	stem = &part[n - 1];
	stem->n -= 3;
	for (size_t i = 0; i < n; i++) {
		if (!is_name(&part[i]))
			part[i].n = 0;
	}
	for (size_t i = n - 1; i-- > 0 && src == n;) {
		if (is(&part[i], "src"))
			src = i;
	}
	if (src == n || src == 0 || !part[src - 1].n) {
		/* examples/x.rs, tests/x.rs, x.rs: a crate of its own */
		if (!stem->n)
			return false;
		add_crate(out, stem);
	} else {
		add_crate(out, &part[src - 1]);
		for (size_t i = src + 1; i < n; i++) {
			if (!part[i].n ||
			    (i + 1 == n && (is(&part[i], "mod") || is(&part[i], "lib") ||
					    is(&part[i], "main"))))
				continue;
			as_buf_adds(out, "::");
			as_buf_add(out, part[i].p, part[i].n);
		}
	}
	if (out->len == start)
		return false;
	as_buf_adds(out, "::");
	as_buf_adds(out, name);
	return true;
}
