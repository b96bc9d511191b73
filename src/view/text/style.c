/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Small formats of all views: see style.h. */
#include "view/text/style.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/sys.h"

void as_style_ink(const struct as_style *s, struct as_buf *out, enum as_ink ink)
{
	static const char *const code[] = {"\033[0m", "\033[31m", "\033[33m", "\033[2m",
					   "\033[1m"};

	if (s->color)
		as_buf_adds(out, code[ink]);
}

/* Bytes of the character at s; at least 1. */
static size_t char_len(const char *s)
{
	size_t n = 1;

	while ((s[n] & 0xc0) == 0x80)
		n++;
	return n;
}

static size_t take_front(const char *s, size_t width)
{
	size_t n = 0, used = 0;

	while (s[n]) {
		size_t len = char_len(s + n), w = as_text_width(s + n, len);

		if (used + w > width)
			break;
		used += w;
		n += len;
	}
	return n;
}

void as_style_cut(struct as_buf *out, const char *text, size_t width)
{
	struct as_buf clean = {0};

	as_fmt_quoted(&clean, text, strlen(text));

	const char *s = as_buf_str(&clean);
	size_t total = as_text_width(s, clean.len);

	if (total <= width || width < 3) {
		as_buf_add(out, s, total <= width ? clean.len : take_front(s, width));
	} else {
		/* the end of a path of names says more than its beginning */
		size_t tail = (width - 1) * 3 / 5, head = width - 1 - tail;
		size_t skip = take_front(s, total - tail);

		while (s[skip] && as_text_width(s + skip, clean.len - skip) > tail)
			skip += char_len(s + skip);
		as_buf_add(out, s, take_front(s, head));
		as_buf_adds(out, "…");
		as_buf_adds(out, s + skip);
	}
	as_buf_clear(&clean);
}

double as_style_half(const struct as_share *s)
{
	return (s->high - s->low) / 2;
}

void as_style_share(struct as_buf *out, const struct as_share *s)
{
	double half = as_style_half(s), value = s->value * 100;

	if (isnan(half) || half < 0.00005 || (half < 0.0005 && s->value > 0.9995))
		as_buf_addf(out, "%.1f", value);
	else if (value < 0.05 && half >= s->value)
		as_buf_addf(out, "≤ %.1f", ceil(s->high * 1000 - 1e-9) / 10);
	else if (half >= s->value)
		as_buf_addf(out, "%.1f ≤%.1f", value, ceil(s->high * 1000 - 1e-9) / 10);
	else if (half >= 0.05 && s->value + half > 1)
		as_buf_addf(out, "%.1f ≥%.1f", value, floor(s->low * 1000 + 1e-9) / 10);
	else if (s->value + half > 1) /* one-sided there: half would promise too much */
		as_buf_addf(out, "%.1f ±%.1f", value, (s->value - s->low) * 100);
	else
		as_buf_addf(out, "%.1f ±%.*f", value, half < 0.0005 ? 2 : 1, half * 100);
}

void as_style_module(struct as_buf *out, const char *name)
{
	const char *slash = strrchr(name, '/');
	const char *base = slash && slash[1] ? slash + 1 : name;
	const char *so = strstr(base, ".so");
	size_t n = strlen(base);

	if (so && so > base && (so[3] == 0 || so[3] == '.'))
		n = (size_t)(so - base);
	as_buf_add(out, base, n);
}

/* The last two components of a path. */
static const char *path_tail(const char *path)
{
	const char *end = strrchr(path, '/'), *p = end;

	while (p && p > path && p[-1] != '/')
		p--;
	return p ? p : path;
}

/* path below dir: what follows, else NULL. */
static const char *below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (n < 2 || strncmp(path, dir, n) != 0 || path[n] != '/')
		return NULL;
	return path + n + 1;
}

static const char *program_name(const struct as_model *m)
{
	const char *program = m->args.n        ? m->args.v[0]
			      : m->processes.n ? m->processes.v[0].name
					       : "";
	const char *slash = strrchr(program, '/');

	return slash ? slash + 1 : program;
}

/* The recorded program itself, not one of its libraries. */
static bool in_program(const struct as_model *m, const struct as_row *row)
{
	const char *program = program_name(m);

	return row->module && *program && strcmp(row->module, program) == 0;
}

/* cargo names the binary of a crate "my-app" and the crate itself my_app. */
static bool is_programs_crate(const struct as_model *m, const char *crate)
{
	const char *program = program_name(m);

	for (; *crate && (*crate == *program || (*crate == '_' && *program == '-')); crate++)
		program++;
	return !*crate && !*program;
}

/* From the last "src" on, as people speak of their files; else the last two components. */
static const char *path_spoken(const char *path)
{
	const char *last = NULL;

	for (const char *p = strstr(path, "/src/"); p; p = strstr(p + 1, "/src/"))
		last = p;
	return last ? last + 1 : path_tail(path);
}

/*
 * The file of the program's own code, short: below the working directory, or in the program's
 * binary and neither of a library's crate nor the compiler's.
 */
static const char *own_file(const struct as_model *m, const struct as_row *row)
{
	const char *file = row->file, *local;

	if (!file || !*file || strncmp(file, "/rustc/", 7) == 0 || strstr(file, "/.cargo/") ||
	    strstr(file, "/vendor/") || strstr(file, "/rustlib/") ||
	    strncmp(file, "library/", 8) == 0)
		return NULL;
	local = below(file, as_model_info(m, "cwd"));
	if (local || !in_program(m, row))
		return local;
	if (*file != '/')
		return file;
	return row->crate && *row->crate && !is_programs_crate(m, row->crate)
		       ? NULL
		       : path_spoken(file);
}

void as_style_path(struct as_buf *out, const struct as_model *m, const char *path)
{
	const char *p = below(path, as_model_info(m, "cwd"));
	const char *registry = strstr(path, "/registry/src/"),
		   *library = strstr(path, "/library/");

	if (!p && registry) /* then the registry's folder, then the crate */
		p = strchr(registry + strlen("/registry/src/"), '/');
	else if (!p && library && strncmp(path, "/rustc/", 7) == 0)
		p = library;
	as_buf_adds(out, p ? p + (*p == '/') : path);
}

void as_style_file(struct as_buf *out, const struct as_model *m, const struct as_row *row)
{
	const char *own = own_file(m, row);

	if (own)
		as_buf_adds(out, own);
	else
		as_style_path(out, m, row->file);
}

bool as_style_is_own(const struct as_model *m, const struct as_row *row)
{
	return own_file(m, row) != NULL;
}

void as_style_where(struct as_buf *out, const struct as_model *m, const struct as_row *row)
{
	const char *file = own_file(m, row);

	if (!file && row->crate && *row->crate) {
		as_buf_adds(out, row->crate);
		return;
	}
	if (file) {
		as_buf_adds(out, file);
		if (row->line)
			as_buf_addf(out, ":%u", row->line);
	} else if (row->module && *row->module) {
		as_style_module(out, row->module);
	}
}

bool as_style_plain(const char *text)
{
	struct as_buf b = {0};

	as_fmt_quoted(&b, text, strlen(text));

	bool plain = strcmp(as_buf_str(&b), text) == 0;

	as_buf_clear(&b);
	return plain;
}

void as_style_shell(struct as_buf *out, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_@%+=:,./-";

	if (*word && word[strspn(word, plain)] == 0) {
		as_buf_adds(out, word);
		return;
	}
	as_buf_addc(out, '\'');
	for (; *word; word++) {
		if (*word == '\'')
			as_buf_adds(out, "'\\''");
		else
			as_buf_addc(out, *word);
	}
	as_buf_addc(out, '\'');
}
