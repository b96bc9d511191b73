/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Profiles of Cargo.toml: see profiles.h. */
#include "doctor/profiles.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/sys.h"

#define MANIFEST_MAX (4u << 20)
#define KEY_MAX      200
#define LEVELS_MAX   64

struct field {
	const char *key;
	size_t at;
};
static const struct field fields[] = {
	{"opt-level", offsetof(struct as_cargo_profile, opt_level)},
	{"debug", offsetof(struct as_cargo_profile, debug)},
	{"strip", offsetof(struct as_cargo_profile, strip)},
	{"lto", offsetof(struct as_cargo_profile, lto)},
	{"codegen-units", offsetof(struct as_cargo_profile, codegen_units)},
	{"panic", offsetof(struct as_cargo_profile, panic)},
	{"debug-assertions", offsetof(struct as_cargo_profile, debug_assertions)},
	{"overflow-checks", offsetof(struct as_cargo_profile, overflow_checks)},
	{"split-debuginfo", offsetof(struct as_cargo_profile, split_debuginfo)},
	{"inherits", offsetof(struct as_cargo_profile, inherits)},
};
enum { VALUE_MAX = 24 };

/* Blanks and quotes out of a (dotted) key. False: too long. */
static bool plain_key(const char *s, size_t n, char ret[KEY_MAX])
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		if (s[i] == ' ' || s[i] == '\t' || s[i] == '"' || s[i] == '\'')
			continue;
		if (k + 1 >= KEY_MAX)
			return false;
		ret[k++] = s[i];
	}
	ret[k] = 0;
	return k > 0;
}

static void plain_value(const char *s, size_t n, char ret[VALUE_MAX])
{
	size_t k = 0;
	char quote = 0;

	while (n && isspace((unsigned char)*s))
		s++, n--;
	if (n && (*s == '"' || *s == '\''))
		quote = *s++, n--;
	while (n && k + 1 < VALUE_MAX && *s != quote &&
	       (quote || (*s != '#' && !isspace((unsigned char)*s))))
		ret[k++] = *s++, n--;
	ret[k] = 0;
}

static void take_line(const char *line, size_t n, const char *section, const char *wanted,
		      struct as_cargo_profile *p)
{
	const char *equals = memchr(line, '=', n);
	char key[KEY_MAX], full[2 * KEY_MAX];
	size_t w = strlen(wanted);

	if (!equals || !plain_key(line, (size_t)(equals - line), key))
		return;
	snprintf(full, sizeof full, "%s%s%s", section, *section ? "." : "", key);
	if (strncmp(full, wanted, w) != 0 || full[w] != '.')
		return;
	p->section = true;
	for (size_t i = 0; i < AS_ARRAY_LEN(fields); i++) {
		if (strcmp(full + w + 1, fields[i].key) == 0)
			plain_value(equals + 1, n - (size_t)(equals + 1 - line),
				    (char *)p + fields[i].at);
	}
}

/* "[profile.release]" -> its name; "[[bin]]" and damage -> "?". */
static void take_section(const char *line, size_t n, char section[KEY_MAX])
{
	const char *end = memchr(line, ']', n);

	if (!end || (n > 1 && line[1] == '[') ||
	    !plain_key(line + 1, (size_t)(end - line - 1), section))
		snprintf(section, KEY_MAX, "?");
}

static void read_one(const char *text, size_t n, const char *name, struct as_cargo_profile *ret)
{
	char section[KEY_MAX] = "", wanted[KEY_MAX];

	snprintf(wanted, sizeof wanted, "profile.%s", name);
	for (const char *end = text + n; text < end;) {
		const char *nl = memchr(text, '\n', (size_t)(end - text));
		size_t len = nl ? (size_t)(nl - text) : (size_t)(end - text);
		size_t skip = 0;

		while (skip < len && (text[skip] == ' ' || text[skip] == '\t'))
			skip++;
		if (skip < len && text[skip] == '[') {
			take_section(text + skip, len - skip, section);
			ret->section |= strcmp(section, wanted) == 0;
		} else if (skip < len && text[skip] != '#') {
			take_line(text + skip, len - skip, section, wanted, ret);
		}
		text += len + (nl != NULL);
	}
}

void as_cargo_profile_read(const char *text, size_t n, const char *name,
			   struct as_cargo_profile *ret)
{
	struct as_cargo_profile base = {0};
	const char *from;

	*ret = (struct as_cargo_profile){0};
	read_one(text, n, name, ret);
	from = *ret->inherits               ? ret->inherits
	       : strcmp(name, "bench") == 0 ? "release"
	       : strcmp(name, "test") == 0  ? "dev"
					    : NULL;
	if (!from || strcmp(from, name) == 0)
		return;
	read_one(text, n, from, &base);
	for (size_t i = 0; i < AS_ARRAY_LEN(fields); i++) {
		char *to = (char *)ret + fields[i].at;

		if (!*to)
			memcpy(to, (char *)&base + fields[i].at, VALUE_MAX);
	}
}

/* ---- where it is ---- */

static bool has_workspace(const char *path)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	if (as_read_file(path, MANIFEST_MAX, &b, NULL) < 0)
		return false;
	for (const char *s = as_buf_str(&b); (s = strstr(s, "[workspace")); s++) {
		if ((s == b.p || s[-1] == '\n') && (s[10] == ']' || s[10] == '.'))
			return true;
	}
	return false;
}

char *as_manifest_find(const char *folder)
{
	AS_CLEANUP(as_free_autop) char *at = realpath(folder, NULL);
	char *nearest = NULL;

	for (int i = 0; at && i < LEVELS_MAX; i++) {
		char *path = as_xasprintf("%s/Cargo.toml", strcmp(at, "/") == 0 ? "" : at);
		bool there = access(path, R_OK) == 0;
		char *slash = strrchr(at, '/');

		if (there && has_workspace(path)) {
			free(nearest);
			return path;
		}
		if (there && !nearest)
			nearest = AS_STEAL(path);
		free(path);
		if (!slash || slash[1] == 0)
			break;
		slash[slash == at] = 0;
	}
	return nearest;
}

char *as_manifest_of_program(const char *path, char *ret, size_t n)
{
	AS_CLEANUP(as_free_autop) char *real = realpath(path, NULL);
	char *target = NULL, *folder, *end;
	char *manifest;

	for (char *s = real; s && (s = strstr(s, "/target/")); s++)
		target = s;
	if (!target)
		return NULL;
	folder = target + strlen("/target/");
	end = strchr(folder, '/');
	/* target/x86_64-unknown-linux-musl/release/app */
	if (end && strchr(end + 1, '/') && memchr(folder, '-', (size_t)(end - folder)) &&
	    strncmp(strchr(end + 1, '/') - 0, "/deps/", 6) != 0 &&
	    strncmp(end, "/deps/", 6) != 0 && strncmp(end, "/examples/", 10) != 0) {
		folder = end + 1;
		end = strchr(folder, '/');
	}
	if (!end)
		return NULL;
	*end = 0;
	snprintf(ret, n, "%s", strcmp(folder, "debug") == 0 ? "dev" : folder);
	*target = 0;
	manifest = as_xasprintf("%s/Cargo.toml", real);
	if (access(manifest, R_OK) == 0)
		return manifest;
	free(manifest);
	return NULL;
}
