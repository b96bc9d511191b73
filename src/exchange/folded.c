/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Folded stacks: escapes, the writer from a model, the parser. */
#include "exchange/exchange_priv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

static const struct lookalike {
	char utf8[4];
	char plain; /* the byte it stands for; EMPTY, MARK: see below */
} lookalikes[] = {
#define MARK  1
#define EMPTY 2
	{"\u037E", ';'},  {"\u00A0", ' '},   {"\uFF03", '#'},
	{"\u2421", 0x7f}, {"\u2205", EMPTY}, {"\u2426", MARK},
};
#define UTF8_MARK  "\u2426"
#define UTF8_EMPTY "\u2205"

/* Length of the look-alike that begins at p, 0: none. *ret_plain: what it stands for; EMPTY and
 * MARK are told apart from control bytes by *ret_special. */
static size_t match(const char *p, size_t n, char *ret_plain, bool *ret_special)
{
	for (size_t i = 0; i < AS_ARRAY_LEN(lookalikes); i++) {
		size_t len = strlen(lookalikes[i].utf8);

		if (n >= len && memcmp(p, lookalikes[i].utf8, len) == 0) {
			*ret_plain = lookalikes[i].plain;
			*ret_special = *ret_plain == MARK || *ret_plain == EMPTY;
			return len;
		}
	}
	/* U+2400 … U+241F */
	if (n >= 3 && (uint8_t)p[0] == 0xe2 && (uint8_t)p[1] == 0x90 &&
	    (uint8_t)p[2] - 0x80u < 0x20u) {
		*ret_plain = (char)((uint8_t)p[2] - 0x80);
		*ret_special = false;
		return 3;
	}
	return 0;
}

static bool can_begin(char c)
{
	uint8_t u = (uint8_t)c;

	return u == 0xc2 || u == 0xcd || u == 0xe2 || u == 0xef;
}

static void put_control(struct as_buf *out, char c)
{
	const char utf8[3] = {(char)0xe2, (char)0x90, (char)(0x80 + c)};

	as_buf_add(out, utf8, sizeof utf8);
}

/* Where the blank stands that separates a last word which looks like a weight; n: there is none. */
static size_t blank_before_number(const char *name, size_t n)
{
	size_t i = n;

	while (i > 0 && strchr("0123456789.+-", name[i - 1]) && name[i - 1])
		i--;
	return i > 0 && i < n && name[i - 1] == ' ' ? i - 1 : n;
}

void as_folded_escape(struct as_buf *out, const char *name, size_t n)
{
	size_t number = blank_before_number(name, n);

	if (n == 0)
		as_buf_adds(out, UTF8_EMPTY);
	for (size_t i = 0; i < n;) {
		char c = name[i], plain;
		bool special;
		size_t len = can_begin(c) ? match(name + i, n - i, &plain, &special) : 0;

		if (len) {
			as_buf_adds(out, UTF8_MARK);
			as_buf_add(out, name + i, len);
			i += len;
			continue;
		}
		if (c == ';')
			as_buf_adds(out, "\u037E");
		else if (c == 0x7f)
			as_buf_adds(out, "\u2421");
		else if ((uint8_t)c < 0x20)
			put_control(out, c);
		else if (c == ' ' && (i == 0 || i + 1 == n || i == number))
			as_buf_adds(out, "\u00A0");
		else if (c == '#' && i == 0)
			as_buf_adds(out, "\uFF03");
		else
			as_buf_addc(out, c);
		i++;
	}
}

static void unescape(struct as_buf *out, const char *p, size_t n)
{
	for (size_t i = 0; i < n;) {
		char plain;
		bool special;
		size_t len = can_begin(p[i]) ? match(p + i, n - i, &plain, &special) : 0;

		if (!len) {
			as_buf_addc(out, p[i++]);
			continue;
		}
		i += len;
		if (!special) {
			as_buf_addc(out, plain);
		} else if (plain == MARK) {
			len = i < n ? match(p + i, n - i, &plain, &special) : 0;
			as_buf_add(out, p + i, len);
			i += len;
		}
	}
}

/* ---- writing ---- */

/* A hundred thousand stacks of 20,000 frames have no use as text. */
#define TEXT_MAX (1ull << 30)

struct line {
	size_t start, len; /* in text */
	uint64_t weight;
};
struct writer {
	const struct as_profile *p;
	const struct as_folded_options *o;
	struct as_buf text;
	AS_VEC(struct line) lines;
	AS_VEC(uint32_t) path;
	AS_VEC(struct as_str) names; /* escaped, per key; p NULL: not yet made */
	struct as_arena arena;
};

static bool is_kernel(const struct as_profile *p, uint32_t key)
{
	const struct as_model *m = p->model;
	uint32_t function = key, module;

	if (p->query.by == AS_BY_THREAD)
		function -= (uint32_t)m->threads.n;
	else if (p->query.by == AS_BY_PROCESS)
		function -= (uint32_t)m->processes.n;
	if (function >= m->functions.n)
		return false; /* a thread or process */
	module = m->functions.v[function].module;
	if (module == AS_NONE)
		return strncmp(m->functions.v[function].full, "[kernel 0x", 10) == 0;
	return m->modules.v[module].kind == AS_MODULE_KERNEL ||
	       m->modules.v[module].kind == AS_MODULE_KMOD;
}

static void name_of(struct writer *w, uint32_t key, uint32_t depth, struct as_buf *out)
{
	struct as_row r;
	const char *name;

	as_profile_name(w->p, key, &r);
	name = w->o->full_names ? r.full_name : r.name;
	if (depth == 1 && w->o->by_thread && w->o->by_process) {
		const struct as_model *m = w->p->model;
		const char *process = m->processes.v[m->threads.v[key].process].name;

		as_folded_escape(out, process, strlen(process));
		as_buf_addc(out, ';');
	}
	if (w->o->mark_kernel && is_kernel(w->p, key)) {
		AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

		as_buf_adds(&b, name);
		as_buf_adds(&b, "_[k]");
		as_folded_escape(out, b.p, b.len);
		return;
	}
	as_folded_escape(out, name, strlen(name));
}

/* Keys repeat on many paths: their text is made once. */
static const struct as_str *cached_name(struct writer *w, uint32_t key, uint32_t depth)
{
	struct as_str *s;

	while (w->names.n <= key)
		as_vec_push(&w->names, (struct as_str){NULL, 0});
	s = &w->names.v[key];
	if (!s->p) {
		AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

		name_of(w, key, depth, &b);
		*s = (struct as_str){as_arena_strndup(&w->arena, b.p, b.len), b.len};
	}
	return s;
}

static void add_line(struct writer *w, uint32_t node, uint64_t weight)
{
	struct line l = {.start = w->text.len, .weight = weight};

	w->path.n = 0;
	for (uint32_t i = node; i != 0; i = w->p->nodes.v[i].parent)
		as_vec_push(&w->path, i);
	if (!w->path.n)
		as_buf_adds(&w->text, AS_EXPORT_NO_FRAMES);
	while (w->path.n) {
		const struct as_node *n = &w->p->nodes.v[w->path.v[--w->path.n]];
		const struct as_str *s = cached_name(w, n->key, n->depth);

		as_buf_add(&w->text, s->p, s->n);
		if (w->path.n)
			as_buf_addc(&w->text, ';');
	}
	l.len = w->text.len - l.start;
	as_vec_push(&w->lines, l);
}

static int add_lines(struct writer *w, struct as_error *err)
{
	for (uint32_t i = 0; i < w->p->nodes.n; i++) {
		const struct as_node *n = &w->p->nodes.v[i];
		uint64_t weight = w->o->weight_ns || as_model_is_counted(w->p->model)
					  ? (uint64_t)llround(n->self)
					  : n->self_samples;

		if (weight)
			add_line(w, i, weight);
		if (w->text.len > TEXT_MAX)
			return as_fail(err, AS_E_LIMIT, 0,
				       "the stacks of this session are more than 1 GiB of text"
				       "\n  export a part: --focus, --thread or --time");
	}
	return AS_OK;
}

static int by_text(const void *pa, const void *pb, void *text)
{
	const struct line *a = pa, *b = pb;
	int c = memcmp((char *)text + a->start, (char *)text + b->start,
		       AS_MIN(a->len, b->len));

	if (c)
		return c;
	return a->len < b->len ? -1 : a->len > b->len;
}

/* Different functions of one name give equal lines: they become one. */
static void put_lines(struct writer *w, struct as_buf *out)
{
	if (w->lines.n)
		qsort_r(w->lines.v, w->lines.n, sizeof *w->lines.v, by_text, w->text.p);
	for (size_t i = 0; i < w->lines.n; i++) {
		const struct line *l = &w->lines.v[i];
		uint64_t weight = l->weight;

		while (i + 1 < w->lines.n && by_text(l, &w->lines.v[i + 1], w->text.p) == 0)
			weight += w->lines.v[++i].weight;
		as_buf_add(out, w->text.p + l->start, l->len);
		as_buf_addf(out, " %llu\n", (unsigned long long)weight);
	}
}

int as_export_folded(const struct as_model *m, const struct as_folded_options *o,
		     struct as_buf *out, struct as_error *err)
{
	struct as_query q = o->query ? *o->query : (struct as_query){0};
	struct as_profile *p;
	struct writer w = {.o = o};
	int r;

	q.shape = AS_SHAPE_TREE;
	q.by = o->by_thread ? AS_BY_THREAD : o->by_process ? AS_BY_PROCESS : AS_BY_FUNCTION;
	q.nodes_only = true;
	q.min_share = 0;
	r = as_profile_make(m, &q, &p, err);
	if (r < 0)
		return r;
	w.p = p;
	r = add_lines(&w, err);
	if (r == AS_OK)
		put_lines(&w, out);
	as_buf_clear(&w.text);
	as_vec_clear(&w.lines);
	as_vec_clear(&w.path);
	as_vec_clear(&w.names);
	as_arena_clear(&w.arena);
	as_profile_free(p);
	return r;
}

int as_export_write_folded(const struct as_model *m, const struct as_export_options *o,
			   struct as_sink *out, struct as_error *err)
{
	struct as_folded_options f = {
		.query = o->query, .by_thread = o->by_thread, .full_names = o->full_names};

	return as_export_folded(m, &f, &out->out, err);
}

/* ---- reading ---- */

struct parser {
	as_folded_fn fn;
	void *ctx;
	struct as_buf names; /* unescaped, one behind the other */
	AS_VEC(struct as_str) frames;
};

/* digits, perhaps a fraction (dropped) */
static bool parse_weight(const char *p, size_t n, uint64_t *ret)
{
	uint64_t v = 0;
	size_t i;

	for (i = 0; i < n && p[i] >= '0' && p[i] <= '9'; i++) {
		if (__builtin_mul_overflow(v, 10u, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(p[i] - '0'), &v))
			return false;
	}
	if (i == 0)
		return false;
	if (i < n && p[i] == '.') {
		for (i++; i < n && p[i] >= '0' && p[i] <= '9'; i++)
			;
	}
	*ret = v;
	return i == n;
}

static void split_frames(struct parser *ps, const char *p, size_t n)
{
	const char *end = p + n;
	size_t at = 0;

	ps->frames.n = 0;
	as_buf_reset(&ps->names);
	for (;;) {
		const char *semi = memchr(p, ';', (size_t)(end - p));
		size_t start = ps->names.len;

		unescape(&ps->names, p, (size_t)((semi ? semi : end) - p));
		as_vec_push(&ps->frames, (struct as_str){NULL, ps->names.len - start});
		if (!semi)
			break;
		p = semi + 1;
	}
	as_vec_foreach (f, &ps->frames) { /* the buffer no longer moves */
		f->p = f->n ? ps->names.p + at : "";
		at += f->n;
	}
}

static int parse_line(struct parser *ps, const char *p, size_t n, size_t number,
		      struct as_error *err)
{
	const char *blank;
	uint64_t weight;

	while (n && (p[n - 1] == '\r' || p[n - 1] == ' '))
		n--;
	if (n == 0 || p[0] == '#')
		return AS_OK;
	blank = memrchr(p, ' ', n);
	if (!blank || !parse_weight(blank + 1, (size_t)(p + n - blank - 1), &weight))
		return as_fail(err, AS_E_FORMAT, 0,
			       "line %zu is no folded stack: it does not end in a weight",
			       number);
	split_frames(ps, p, (size_t)(blank - p));
	return ps->fn(ps->ctx, ps->frames.v, ps->frames.n, weight);
}

int as_folded_parse(const char *text, size_t n, as_folded_fn fn, void *ctx,
		    struct as_error *err)
{
	struct parser ps = {.fn = fn, .ctx = ctx};
	const char *end = text + n;
	size_t number = 1;
	int r = AS_OK;

	for (; r == AS_OK && text < end; number++) {
		const char *nl = memchr(text, '\n', (size_t)(end - text));
		const char *stop = nl ? nl : end;

		r = parse_line(&ps, text, (size_t)(stop - text), number, err);
		text = nl ? nl + 1 : end;
	}
	as_buf_clear(&ps.names);
	as_vec_clear(&ps.frames);
	return r;
}
