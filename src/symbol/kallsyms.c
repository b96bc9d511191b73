/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * "ffffffff81000000 T _stext" and "ffffffffc0001000 t nf_hook	[nf_tables]". Text symbols only
 * (t, T, w, W, i). Addresses all zero: hidden by kptr_restrict. A function ends where the next
 * symbol begins, whatever its type; data and the linker script's marks (_etext…) are kept for
 * that as entries without a name. Names stay in one copy of the text.
 */
#include "symbol/kallsyms.h"

#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "base/mem.h"
#include "base/sys.h"

#define MAX_TEXT     (256u << 20)
#define MAX_SYMBOLS  (8u << 20)
/* No function is longer: after the last symbol of a module there is nothing to end it. */
#define MAX_FUNCTION (4u << 20)

struct ksym {
	uint64_t addr;
	uint32_t name, module; /* offsets into text; 0: none */
};

struct as_kallsyms {
	AS_VEC(struct ksym) sym;
	char *text; /* [0] is NUL, so that offset 0 can mean none */
	bool hidden;
};

static bool is_text(char type)
{
	return type && strchr("tTwWi", type);
}

/* Linker script marks (_stext, _etext, __entry_text_start…): they bound functions, and are none. */
static bool is_mark(const char *name)
{
	static const char *const ends[] = {"_text",      "_stext",     "_etext",
					   "_sinittext", "_einittext", "_text_end",
					   "_text_start"};
	size_t n = strlen(name);

	for (size_t i = 0; i < AS_ARRAY_LEN(ends); i++) {
		size_t k = strlen(ends[i]);

		if (n >= k && name[0] == '_' && strcmp(name + n - k, ends[i]) == 0)
			return true;
	}
	return false;
}

/* Hex digits at p; returns the first byte after them. */
static const char *read_hex(const char *p, uint64_t *ret)
{
	uint64_t v = 0;
	int n = 0;

	for (; n < 17; n++, p++) {
		unsigned c = (unsigned char)*p;
		unsigned d = c - '0' < 10         ? c - '0'
			     : (c | 32) - 'a' < 6 ? (c | 32) - 'a' + 10
						  : 16;

		if (d > 15)
			break;
		v = v << 4 | d;
	}
	*ret = v;
	return n && n <= 16 ? p : NULL;
}

/* One line, NUL-terminated in place; damaged ones are skipped. */
static void add_line(struct as_kallsyms *k, char *line, uint64_t *any)
{
	uint64_t addr;
	const char *p = read_hex(line, &addr);
	char *name, *end;
	uint32_t module = 0;
	char type;

	if (!p || p[0] != ' ' || !p[1] || p[2] != ' ' || !p[3])
		return;
	*any |= addr;
	type = p[1];
	name = line + (p - line) + 3;
	end = name + strcspn(name, "\t ");
	if (*end) {
		char *open = strchr(end + 1, '['), *close = open ? strchr(open, ']') : NULL;

		*end = '\0';
		if (close && close > open + 1) {
			*close = '\0';
			module = (uint32_t)(open + 1 - k->text);
		}
	}
	/* Data is kept too, without a name: it ends the function before it. Absolute symbols
	 * and per-CPU offsets are no addresses. */
	if (type == 'a' || type == 'A' || !addr || !*name || k->sym.n >= MAX_SYMBOLS)
		return;
	as_vec_push(
		&k->sym,
		(struct ksym){addr,
			      is_text(type) && !is_mark(name) ? (uint32_t)(name - k->text) : 0,
			      module});
}

/* By address; of several names at one address the shortest comes first, then in strcmp order. */
static int compare(const void *pa, const void *pb, void *text)
{
	const struct ksym *a = pa, *b = pb;
	const char *na = (char *)text + a->name, *nb = (char *)text + b->name;
	size_t la, lb;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	if (!a->name != !b->name)
		return a->name ? -1 : 1;
	la = strlen(na);
	lb = strlen(nb);
	return la != lb ? (la < lb ? -1 : 1) : strcmp(na, nb);
}

static void index_symbols(struct as_kallsyms *k)
{
	size_t out = 0;

	if (k->sym.n)
		qsort_r(k->sym.v, k->sym.n, sizeof *k->sym.v, compare, k->text);
	for (size_t i = 0; i < k->sym.n; i++) {
		if (!out || k->sym.v[out - 1].addr != k->sym.v[i].addr)
			k->sym.v[out++] = k->sym.v[i];
	}
	k->sym.n = out;
}

int as_kallsyms_parse(const char *text, size_t n, struct as_kallsyms **ret,
		      struct as_error *err)
{
	struct as_kallsyms *k;
	uint64_t any = 0;
	size_t lines = 0;

	if (n > MAX_TEXT)
		return as_fail(err, AS_E_LIMIT, 0,
			       "the kernel's symbol list is too long (%zu bytes)", n);
	k = as_xcalloc(1, sizeof *k);
	k->text = as_xmalloc(n + 2);
	k->text[0] = '\0';
	memcpy(k->text + 1, text, n);
	k->text[n + 1] = '\0';
	for (char *line = k->text + 1, *end = line + n; line < end;) {
		char *nl = memchr(line, '\n', (size_t)(end - line));

		if (!nl)
			nl = end;
		*nl = '\0';
		lines += nl > line;
		add_line(k, line, &any);
		line = nl + 1;
	}
	index_symbols(k);
	k->hidden = lines > 0 && any == 0;
	*ret = k;
	return AS_OK;
}

int as_kallsyms_load(const char *path, struct as_kallsyms **ret, struct as_error *err)
{
	struct as_buf b = {0};
	int r = as_read_file(path ? path : "/proc/kallsyms", MAX_TEXT, &b, err);

	if (r == AS_OK)
		r = as_kallsyms_parse(as_buf_str(&b), b.len, ret, err);
	as_buf_clear(&b);
	return r;
}

void as_kallsyms_free(struct as_kallsyms *k)
{
	if (!k)
		return;
	as_vec_clear(&k->sym);
	free(k->text);
	free(k);
}

bool as_kallsyms_hidden(const struct as_kallsyms *k)
{
	return k->hidden;
}

const char *as_kallsyms_find(const struct as_kallsyms *k, uint64_t addr, uint64_t *ret_start,
			     const char **ret_module)
{
	size_t lo = 0, hi = k->sym.n;
	const struct ksym *s;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (k->sym.v[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	s = lo ? &k->sym.v[lo - 1] : NULL;
	if (!s || !s->name || addr - s->addr > MAX_FUNCTION || k->hidden)
		return NULL;
	if (ret_start)
		*ret_start = s->addr;
	if (ret_module)
		*ret_module = s->module ? k->text + s->module : NULL;
	return k->text + s->name;
}
