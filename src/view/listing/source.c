/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The lines that a listing's places name, with lines around them: from the recording where it has
 * them all, else from files found by src/code/source.h, else what the recording has.
 */
#include "view/listing/listing_priv.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "code/source.h"

#define DEFAULT_CONTEXT 10
#define MAX_LINES       20000 /* of one file */
#define MAX_FILES       200
#define MAX_CACHED      (64u << 20) /* bytes of files */
#define MAX_OWN_SPAN    3000        /* the function itself is shown without gaps up to here */

const char as_listing_left_out[] = "";

struct wanted_line {
	uint32_t file, line, weight;
};

struct file_want {
	uint32_t id;
	uint64_t insns; /* that stand in it */
	bool own;
	AS_VEC(uint32_t) lines;
	AS_VEC(uint32_t) sampled; /* those that samples stand in */
	uint32_t own_lo, own_hi;  /* lines of the function itself; 0, 0: none */
};

struct sources {
	struct as_listing_build *b;
	struct as_intern names;
	AS_VEC(struct file_want) files;
	uint32_t context;
};

/* ---- which lines ---- */

static struct file_want *file_of(struct sources *s, const char *path)
{
	uint32_t id = as_intern_str(&s->names, path);

	if (id == s->files.n)
		as_vec_push(&s->files, (struct file_want){.id = id});
	return &s->files.v[id];
}

static void want_own(struct file_want *f, uint32_t line)
{
	f->own = true;
	f->own_lo = f->own_lo ? AS_MIN(f->own_lo, line) : line;
	f->own_hi = AS_MAX(f->own_hi, line);
}

/* Of a chain the places up to the function: those that called it are not its text. */
static void want_chain(struct sources *s, const struct as_listing_insn *i)
{
	const struct as_listing *l = s->b->l;

	for (uint32_t k = 0; k < i->nplaces; k++) {
		const struct as_listing_place *p = &l->places.v[i->place + k];
		struct file_want *f;

		if (p->file && p->line) {
			f = file_of(s, p->file);
			f->insns++;
			as_vec_push(&f->lines, p->line);
			if (p->key == s->b->q->function)
				want_own(f, p->line);
		}
		if (p->key == s->b->q->function)
			return;
	}
}

/* Index of the function in a frame's chain; nchain: it is not there. */
static uint32_t find_in_chain(const struct sources *s, const struct as_m_frame *f)
{
	const struct as_m_place *p = s->b->m->places.v + f->chain;
	uint32_t k = 0;

	while (k < f->nchain && p[k].function != s->b->q->function)
		k++;
	return k;
}

/* Recorded places count, too: they are all there is when there is no code. */
static void want_frames(struct sources *s)
{
	const struct as_model *m = s->b->m;

	as_vec_foreach (frame, &m->frames) {
		uint32_t last;

		if (frame->module != s->b->l->module)
			continue;
		last = find_in_chain(s, frame);
		for (uint32_t k = 0; last < frame->nchain && k <= last; k++) {
			const struct as_m_place *p = &m->places.v[frame->chain + k];
			struct file_want *f;

			if (!p->line || !p->file[0])
				continue;
			f = file_of(s, p->file);
			as_vec_push(&f->lines, p->line);
			as_vec_push(&f->sampled, p->line);
			if (k == last)
				want_own(f, p->line);
		}
	}
}

static void want_all(struct sources *s)
{
	const struct as_m_function *fn = &s->b->m->functions.v[s->b->q->function];
	const struct as_listing *l = s->b->l;
	uint32_t last = AS_NONE;

	if (fn->file[0] && fn->line) {
		struct file_want *f = file_of(s, fn->file);

		as_vec_push(&f->lines, fn->line);
		want_own(f, fn->line);
	}
	as_vec_foreach (i, &l->insns) {
		if (i->nplaces && i->place != last)
			want_chain(s, i);
		last = i->nplaces ? i->place : AS_NONE;
	}
	want_frames(s);
}

static int by_line(const void *x, const void *y)
{
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

	return a < b ? -1 : a > b;
}

static int by_use(const void *x, const void *y)
{
	const struct file_want *a = x, *b = y;

	if (a->own != b->own)
		return a->own ? -1 : 1;
	if (a->insns != b->insns)
		return a->insns > b->insns ? -1 : 1;
	return a->id < b->id ? -1 : a->id > b->id;
}

/* ---- where lines come from ---- */

struct provider {
	const struct as_model *m;
	size_t from, to;        /* of m->sources: those of the file */
	struct as_source *live; /* NULL: not in use */
	const char *at;         /* embedded: text at line `line` of source `source` */
	size_t source;
	uint32_t line;
};

static void find_recorded(struct provider *p, const char *path)
{
	const struct as_model *m = p->m;
	size_t lo = 0, hi = m->sources.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (strcmp(m->sources.v[mid].file, path) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	p->from = p->to = lo;
	while (p->to < m->sources.n && strcmp(m->sources.v[p->to].file, path) == 0)
		p->to++;
	p->source = p->from;
	p->at = NULL;
}

static const char *line_end(const char *p, const char *end)
{
	const char *nl = memchr(p, '\n', (size_t)(end - p));

	return nl ? nl : end;
}

/* Lines are asked for in ascending order. */
static const char *recorded_line(struct provider *p, uint32_t line, size_t *ret_n)
{
	for (; p->source < p->to; p->source++, p->at = NULL) {
		const struct as_m_source *s = &p->m->sources.v[p->source];
		const char *end = s->text + s->size_bytes;

		if (!p->at) {
			p->at = s->text;
			p->line = s->first;
		}
		if (line < p->line)
			return NULL;
		while (p->at < end && p->line < line) {
			p->at = line_end(p->at, end);
			p->at += p->at < end;
			p->line++;
		}
		if (p->at < end) {
			*ret_n = (size_t)(line_end(p->at, end) - p->at);
			return p->at;
		}
	}
	return NULL;
}

static const char *line_of(struct provider *p, uint32_t line, size_t *ret_n)
{
	return p->live ? as_source_line(p->live, line, ret_n) : recorded_line(p, line, ret_n);
}

/* ---- lines into the listing ---- */

struct span {
	uint32_t lo, hi;
};

typedef AS_VEC(struct span) span_vec;

static void add_span(span_vec *spans, uint32_t lo, uint32_t hi, uint32_t near)
{
	struct span *last = spans->n ? &spans->v[spans->n - 1] : NULL;

	if (last && lo <= last->hi + near + 1)
		last->hi = AS_MAX(last->hi, hi);
	else
		as_vec_push(spans, (struct span){lo, hi});
}

/* The lines of f with context around them, ascending and apart. */
static void spans_of(const struct sources *s, struct file_want *f, span_vec *ret)
{
	uint32_t c = s->context;
	bool own = f->own_lo && f->own_hi - f->own_lo <= MAX_OWN_SPAN, own_done = !own;

	if (f->lines.n)
		qsort(f->lines.v, f->lines.n, sizeof *f->lines.v, by_line);
	as_vec_foreach (line, &f->lines) {
		uint32_t lo = *line > c ? *line - c : 1,
			 hi = *line < UINT32_MAX - c ? *line + c : *line;

		if (!own_done && *line >= f->own_lo) {
			hi = f->own_hi < UINT32_MAX - c ? f->own_hi + c : f->own_hi;
			own_done = true;
		}
		add_span(ret, lo, hi, c);
	}
}

static void push_line(struct sources *s, struct as_listing_file *out, const char *p, size_t n)
{
	struct as_buf text = {0};

	if (n && p[n - 1] == '\r')
		n--;
	as_fmt_text(&text, p, n);
	as_vec_push(&out->lines,
		    as_arena_strndup(&s->b->l->arena, as_buf_str(&text), text.len));
	as_buf_clear(&text);
}

/* Returns how many lines of the spans there were. */
static size_t take_lines(struct sources *s, struct provider *p, const span_vec *spans,
			 struct as_listing_file *out)
{
	size_t found = 0, kept = 0;

	out->lines.n = 0;
	out->first = spans->n ? spans->v[0].lo : 1;
	as_vec_foreach (span, spans) {
		for (uint32_t line = span->lo; line <= span->hi; line++) {
			size_t n;
			const char *text = line_of(p, line, &n);

			if (!text && p->live)
				break; /* the file ends */
			if (!text)
				continue;
			if (!found)
				out->first = line;
			if (line - out->first >= MAX_LINES)
				return found;
			while (out->lines.n < line - out->first)
				as_vec_push(&out->lines, as_listing_left_out);
			push_line(s, out, text, n);
			found++;
			kept = out->lines.n;
			if (line == UINT32_MAX)
				break;
		}
	}
	out->lines.n = kept;
	return found;
}

/* Whether the listing has every line that samples stand in. */
static bool has_sampled(const struct file_want *f, const struct as_listing_file *out)
{
	as_vec_foreach (line, &f->sampled) {
		if (*line > out->total && out->total)
			continue; /* debug information that does not fit the file */
		if (*line < out->first || *line - out->first >= out->lines.n ||
		    out->lines.v[*line - out->first] == as_listing_left_out)
			return false;
	}
	return true;
}

/* Without the module's file the beginning of the recording has to do. */
static uint64_t newest_ns(struct as_listing_build *b)
{
	const struct as_model *m = b->m;
	uint32_t module = b->l->module;
	struct stat st;

	if (!b->newest_ns && module != AS_NONE && m->modules.v[module].kind == AS_MODULE_FILE &&
	    stat(m->modules.v[module].path, &st) == 0)
		b->newest_ns = (uint64_t)AS_MAX(st.st_mtim.tv_sec, 0) * 1000000000u +
			       (uint64_t)st.st_mtim.tv_nsec;
	if (b->newest_ns && b->newest_ns <= m->recording.start_realtime_ns)
		return b->newest_ns;
	return m->recording.start_realtime_ns;
}

/* From the cache, which keeps what fits. */
static struct as_source *load_source(struct sources *s, const char *path)
{
	struct as_listing_files *c = s->b->files;
	uint32_t id = as_intern_str(&c->paths, path);
	const char *cwd = as_model_info(s->b->m, "cwd");
	struct as_source_query q = {
		.file = path,
		.cwd = cwd[0] ? cwd : NULL,
		.source_dirs = s->b->q->roots,
		.newest_ns = newest_ns(s->b),
	};

	while (c->sources.n <= id)
		as_vec_push(&c->sources, NULL);
	if (c->sources.v[id])
		return c->sources.v[id];
	if (c->source_bytes > MAX_CACHED) {
		as_vec_foreach (old, &c->sources)
			as_source_free(AS_STEAL(*old));
		c->source_bytes = 0;
	}
	c->sources.v[id] = as_source_load(&q);
	c->source_bytes += c->sources.v[id]->text.len;
	return c->sources.v[id];
}

static size_t take_live(struct sources *s, struct provider *p, const span_vec *spans,
			struct as_listing_file *out)
{
	size_t n = 0;

	p->live = load_source(s, out->path);
	if (p->live->found) {
		n = take_lines(s, p, spans, out);
		out->found = as_arena_strdup(&s->b->l->arena, p->live->found);
		out->total = as_source_lines(p->live);
		out->why = NULL;
	} else {
		out->why = as_arena_strdup(&s->b->l->arena, p->live->why);
	}
	p->live = NULL;
	return n;
}

static void take_recorded(struct sources *s, struct provider *p, const span_vec *spans,
			  struct as_listing_file *out)
{
	const struct as_m_source *first = &p->m->sources.v[p->from];

	out->found = first->found[0] ? first->found : out->path;
	out->total = first->total;
	(void)take_lines(s, p, spans, out); /* none at all: an empty file */
}

static void add_file(struct sources *s, struct file_want *f)
{
	struct as_listing *l = s->b->l;
	struct provider p = {.m = s->b->m};
	struct as_listing_file out = {
		.path = as_arena_strdup(&l->arena, as_intern_get(&s->names, f->id))};
	span_vec spans = {0};

	spans_of(s, f, &spans);
	find_recorded(&p, out.path);
	if (p.from < p.to) {
		take_recorded(s, &p, &spans, &out);
		l->source_embedded |= out.lines.n > 0;
		/* more than was kept: from the file, when that is still the same */
		if (!s->b->q->embedded_only && !has_sampled(f, &out)) {
			struct as_listing_file more = {.path = out.path};

			if (take_live(s, &p, &spans, &more) > 0) {
				as_vec_clear(&out.lines);
				out = more;
			}
		}
	} else if (!s->b->q->embedded_only) {
		(void)take_live(s, &p, &spans, &out); /* out.why tells */
	} else {
		out.why = "the recording has not kept its text";
	}
	as_vec_push(&l->files, out);
	as_vec_clear(&spans);
}

void as_listing_sources(struct as_listing_build *b)
{
	struct sources s = {.b = b, .context = b->q->context ? b->q->context : DEFAULT_CONTEXT};

	want_all(&s);
	if (s.files.n)
		qsort(s.files.v, s.files.n, sizeof *s.files.v, by_use);
	else
		as_listing_no_lines(b);
	if (s.files.n > MAX_FILES)
		as_listing_note(b, "only %u of its %zu source files are shown", MAX_FILES,
				s.files.n);
	for (size_t i = 0; i < s.files.n && i < MAX_FILES; i++)
		add_file(&s, &s.files.v[i]);
	as_vec_foreach (f, &s.files) {
		as_vec_clear(&f->lines);
		as_vec_clear(&f->sampled);
	}
	as_vec_clear(&s.files);
	as_intern_clear(&s.names);
}
