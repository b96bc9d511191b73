/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Functions as text, for the page and for its server: Listing and SourceFile of web/types.js. */
#include "view/page/page_priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/sys.h"

enum {
	HOT = 50,               /* by self, and as many by total */
	BUDGET_BYTES = 3 << 20, /* of JSON, which packs to about a tenth */
	PAGE_INSNS = 1500,      /* of a function */
	SERVED_INSNS = 20000
};
static const double WORTH = 0.001;
/* Looking functions up in the files of this machine is given up after this; what the recording
 * embedded goes on. Large modules take tenths of a second each. */
static const uint64_t LOOKING_NS = 3000000000;

struct source {
	char *path; /* owned */
	uint32_t first, n;
	bool found;
};
/* The sources of several listings, each stretch of lines once. */
struct sources {
	struct as_buf json;
	struct as_json j;
	AS_VEC(struct source) v;
};

static const char *or_empty(const char *s)
{
	return s ? s : "";
}

static void add_source(struct as_json *j, const struct as_listing_file *f)
{
	as_json_obj(j, NULL);
	as_json_str(j, "path", or_empty(f->path));
	as_json_str(j, "found", or_empty(f->found));
	as_json_str(j, "why", or_empty(f->why));
	as_json_u64(j, "first", f->first);
	as_json_u64(j, "total", f->total);
	as_json_arr(j, "lines");
	as_vec_foreach (line, &f->lines) {
		if (*line == as_listing_left_out)
			as_json_null(j, NULL);
		else
			as_json_str(j, NULL, or_empty(*line));
	}
	as_json_end(j);
	as_json_end(j);
}

/* Index of the file's lines in s; they are added when they are not there yet. */
static uint32_t source_index(struct sources *s, const struct as_listing_file *f)
{
	const char *path = or_empty(f->path);
	uint32_t n = (uint32_t)f->lines.n;

	for (size_t i = 0; i < s->v.n; i++) {
		const struct source *have = &s->v.v[i];

		if (have->found == (f->found != NULL) && f->first >= have->first &&
		    f->first + n <= have->first + have->n && strcmp(have->path, path) == 0)
			return (uint32_t)i;
	}
	add_source(&s->j, f);
	as_vec_push(&s->v, (struct source){.path = as_xstrdup(path),
					   .first = f->first,
					   .n = n,
					   .found = f->found != NULL});
	return (uint32_t)s->v.n - 1;
}

/* What is written of a listing, besides its sources. */
struct text {
	const struct as_listing *l;
	const uint32_t *index; /* of each of its files among the sources */
	struct as_buf places, key;
	struct as_json j;          /* of places */
	struct as_intern chains;   /* content of a chain -> number */
	AS_VEC(uint32_t) chain_at; /* number -> index of its first place */
	uint32_t nplaces;
};

static void add_place(struct text *t, const struct as_listing_place *p)
{
	const struct as_listing *l = t->l;
	int64_t source = -1;

	for (size_t i = 0; p->file && source < 0 && i < l->files.n; i++)
		if (l->files.v[i].path && strcmp(l->files.v[i].path, p->file) == 0)
			source = t->index[i];
	as_json_obj(&t->j, NULL);
	as_json_str(&t->j, "function", or_empty(p->function));
	as_json_i64(&t->j, "key", p->key == AS_NONE ? -1 : (int64_t)p->key);
	as_json_i64(&t->j, "source", source);
	as_json_u64(&t->j, "line", p->line);
	as_json_u64(&t->j, "column", p->column);
	as_json_bool(&t->j, "inlined", p->inlined);
	as_json_end(&t->j);
	t->nplaces++;
}

/* Index of the instruction's chain among the places written; equal ones are written once. */
static uint32_t chain_index(struct text *t, const struct as_listing_insn *x)
{
	const struct as_listing_place *p = t->l->places.v + x->place;

	if (!x->nplaces)
		return 0;
	as_buf_reset(&t->key);
	for (uint32_t i = 0; i < x->nplaces; i++) {
		as_buf_adds(&t->key, or_empty(p[i].function));
		as_buf_addc(&t->key, '\0');
		as_buf_adds(&t->key, or_empty(p[i].file));
		as_buf_addc(&t->key, '\0');
		as_buf_le32(&t->key, p[i].key);
		as_buf_le32(&t->key, p[i].line);
		as_buf_le32(&t->key, p[i].column << 1 | p[i].inlined);
	}

	uint32_t id = as_intern(&t->chains, t->key.p, t->key.len);

	if (id == t->chain_at.n) {
		as_vec_push(&t->chain_at, t->nplaces);
		for (uint32_t i = 0; i < x->nplaces; i++)
			add_place(t, &p[i]);
	}
	return t->chain_at.v[id];
}

static void add_insns(struct text *t, struct as_json *j, const uint8_t *keep)
{
	const struct as_listing *l = t->l;

	as_json_arr(j, "insns");
	for (size_t i = 0; i < l->insns.n; i++) {
		const struct as_listing_insn *x = &l->insns.v[i];

		if (!keep[i])
			continue;
		as_json_obj(j, NULL);
		as_json_u64(j, "addr", as_page_addr(x->svma));
		as_json_u64(j, "len", x->len);
		as_json_u64(j, "kind", x->kind);
		as_json_str(j, "text", or_empty(x->text));
		as_json_u64(j, "target", as_page_addr(x->target));
		as_json_u64(j, "place", chain_index(t, x));
		as_json_u64(j, "nplaces", x->nplaces);
		as_json_bool(j, "part", x->starts_part || (i && !keep[i - 1]));
		as_json_end(j);
	}
	as_json_end(j);
}

static void add_notes(struct as_json *j, const struct as_listing *l, size_t kept)
{
	as_json_arr(j, "notes");
	as_vec_foreach (note, &l->notes)
		as_json_str(j, NULL, or_empty(*note));
	if (kept < l->insns.n) {
		struct as_buf b = {0};

		as_fmt_count(&b, l->insns.n - kept);
		as_buf_adds(&b, " of ");
		as_fmt_count(&b, l->insns.n);
		as_buf_adds(&b, " instructions are left out: nothing was sampled near them");
		as_json_str(j, NULL, b.p);
		as_buf_clear(&b);
	}
	as_json_end(j);
}

/* The members of a Listing, with at most max instructions. */
static void add_members(struct as_json *j, const struct as_model *m, const struct as_listing *l,
			const uint32_t *index, size_t max)
{
	AS_CLEANUP(as_free_autop) uint8_t *keep = as_xcalloc(l->insns.n + 1, 1);
	struct text t = {.l = l, .index = index};
	size_t kept = as_page_pick(m, l, max, keep);

	t.j.out = &t.places;
	as_json_arr(&t.j, NULL);
	as_json_u64(j, "function", l->function);
	as_json_i64(j, "module", l->module == AS_NONE ? -1 : (int64_t)l->module);
	add_notes(j, l, kept);
	as_json_arr(j, "files");
	for (size_t i = 0; i < l->files.n; i++)
		as_json_u64(j, NULL, index[i]);
	as_json_end(j);
	add_insns(&t, j, keep);
	as_json_end(&t.j);
	as_json_raw(j, "places", t.places.p, t.places.len);
	as_buf_clear(&t.places);
	as_buf_clear(&t.key);
	as_intern_clear(&t.chains);
	as_vec_clear(&t.chain_at);
}

void as_page_listing(const struct as_model *m, const struct as_listing *l, struct as_buf *out)
{
	AS_CLEANUP(as_free_autop) uint32_t *index = as_xcalloc(l->files.n + 1, sizeof *index);
	struct as_json j = {.out = out};

	for (uint32_t i = 0; i < l->files.n; i++)
		index[i] = i;
	as_json_obj(&j, NULL);
	add_members(&j, m, l, index, SERVED_INSNS);
	as_json_arr(&j, "sources");
	as_vec_foreach (f, &l->files)
		add_source(&j, f);
	as_json_end(&j);
	as_json_end(&j);
}

/* ---- the hottest ---- */

static int by_total(const void *a, const void *b)
{
	const struct as_row *x = *(const struct as_row *const *)a;
	const struct as_row *y = *(const struct as_row *const *)b;

	if (x->total.value != y->total.value)
		return x->total.value < y->total.value ? 1 : -1;
	return (x->key > y->key) - (x->key < y->key);
}

struct hot {
	struct as_page *p;
	struct sources sources;
	uint8_t *done; /* per function */
	size_t before; /* bytes of the header without listings */
	uint64_t start_ns;
	struct as_listing_files *files;
};

static void add_function(struct hot *h, uint32_t function)
{
	struct as_listing_request q = {
		.model = h->p->m,
		.function = function,
		.cache_dir = h->p->q->cache_dir,
		.files = h->files,
		.embedded_only =
			h->p->q->embedded_only || as_now_ns() - h->start_ns > LOOKING_NS,
	};
	struct as_listing *l;

	if (function >= h->p->m->functions.n || h->done[function] ||
	    (h->p->m->functions.v[function].flags & AS_FUNCTION_MARKER) ||
	    h->p->j.out->len - h->before + h->sources.json.len > BUDGET_BYTES)
		return;
	h->done[function] = 1;
	if (as_listing_make(&q, &l, NULL) < 0)
		return; /* the page says that there is none */
	if (l->insns.n || l->files.n || l->notes.n) {
		AS_CLEANUP(as_free_autop)
		uint32_t *index = as_xcalloc(l->files.n + 1, sizeof *index);

		for (size_t i = 0; i < l->files.n; i++)
			index[i] = source_index(&h->sources, &l->files.v[i]);
		as_json_obj(&h->p->j, NULL);
		add_members(&h->p->j, h->p->m, l, index, PAGE_INSNS);
		as_json_end(&h->p->j);
	}
	as_listing_free(l);
}

static void add_hottest(struct hot *h, const struct as_profile *flat)
{
	const struct as_row **rows = as_xcalloc(flat->rows.n + 1, sizeof *rows);
	size_t n = AS_MIN(flat->rows.n, (size_t)HOT);

	for (size_t i = 0; i < n && flat->rows.v[i].self.value >= WORTH; i++)
		add_function(h, flat->rows.v[i].key);
	for (size_t i = 0; i < flat->rows.n; i++)
		rows[i] = &flat->rows.v[i];
	if (n)
		qsort(rows, flat->rows.n, sizeof(const struct as_row *), by_total);
	for (size_t i = 0; i < n && rows[i]->total.value >= WORTH; i++)
		add_function(h, rows[i]->key);
	free(rows);
}

void as_page_listings(struct as_page *p, const struct as_profile *filtered,
		      const struct as_profile *whole)
{
	struct hot h = {
		.p = p,
		.done = as_xcalloc(p->m->functions.n + 1, 1),
		.before = p->j.out->len,
		.start_ns = as_now_ns(),
		.files = as_listing_files_new(p->q->cache_dir),
	};

	h.sources.j.out = &h.sources.json;
	as_json_arr(&h.sources.j, NULL);
	as_json_arr(&p->j, "listings");
	if (!p->q->no_listing) {
		add_hottest(&h, filtered);
		if (whole != filtered)
			add_hottest(&h, whole);
	}
	as_json_end(&p->j);
	as_json_end(&h.sources.j);
	as_json_raw(&p->j, "sources", h.sources.json.p, h.sources.json.len);
	as_vec_foreach (s, &h.sources.v)
		free(s->path);
	as_vec_clear(&h.sources.v);
	as_buf_clear(&h.sources.json);
	as_listing_files_free(h.files);
	free(h.done);
}
