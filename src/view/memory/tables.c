/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tables of sessions of memory with rows of their own: see memory.h. */
#include <math.h>
#include <string.h>

#include "base/sys.h"
#include "symbol/demangle.h"
#include "view/memory/memory.h"

enum { TOP = 20, BAR_NARROW = 20, BAR_WIDE = 50, BAR_FROM_WIDTH = 110 };

static const char *const words[] = {"", "type", "size", "lifetime", "age", "realloc"};

/* ---- bins ---- */

static void add_of(enum as_heap_bins_of of, uint64_t v, struct as_buf *out)
{
	if (of == AS_HEAP_LIFETIMES)
		as_fmt_duration(out, v < UINT64_MAX / 1000 ? v * 1000 : UINT64_MAX);
	else if (of == AS_HEAP_AGES || v < 1024)
		as_fmt_count(out, v);
	else
		as_fmt_bytes(out, v);
}

void as_memory_bin(enum as_heap_bins_of of, unsigned bin, struct as_buf *out)
{
	uint64_t first = as_heap_bin_first(bin), last = as_heap_bin_last(bin);
	bool small = of != AS_HEAP_AGES && of != AS_HEAP_LIFETIMES && last < 1024;

	if (of == AS_HEAP_LIFETIMES && bin == 0) {
		as_buf_adds(out, "below 1 µs");
		return;
	}
	add_of(of, first, out);
	if (last > first) {
		as_buf_adds(out, " – ");
		/* 4.00 KiB – 8.00 KiB: the last byte of a range is no news */
		add_of(of, small || of == AS_HEAP_AGES ? last : last + 1, out);
	}
	if (small)
		as_buf_adds(out, " B");
}

static void add_bar(double share, double most, int width, struct as_buf *out)
{
	static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
	double cells = most > 0 ? share / most * width : 0;
	int whole = (int)cells;

	for (int i = 0; i < whole; i++)
		as_buf_adds(out, "█");
	as_buf_adds(out, eighths[(int)((cells - whole) * 8)]);
	if (share > 0 && cells * 8 < 1)
		as_buf_adds(out, "▏");
}

enum { B_FROM, B_TO, B_SHOWN, B_COUNT, B_SHARE, B_BELOW, B_BAR };

static void bin_columns(enum as_heap_bins_of of, struct as_table *t)
{
	static const char *const heads[] = {"bytes", "allocations later", "lived", "bytes"};

	as_table_column(t, (struct as_column){"from", "", AS_CELL_COUNT, AS_COL_DATA_ONLY});
	as_table_column(t, (struct as_column){"to", "", AS_CELL_COUNT, AS_COL_DATA_ONLY});
	as_table_column(t, (struct as_column){"name", heads[of], AS_CELL_TEXT, 0});
	as_table_column(t,
			(struct as_column){"blocks", of == AS_HEAP_SIZES ? "blocks" : "freed",
					   AS_CELL_COUNT, 0});
	as_table_column(t, (struct as_column){"share", "", AS_CELL_SHARE, 0});
	as_table_column(t, (struct as_column){"up_to_here", "up to here", AS_CELL_SHARE, 0});
	as_table_column(t, (struct as_column){"bar", "", AS_CELL_TEXT, AS_COL_TEXT_ONLY});
}

static void bin_rows(const struct as_heap_bins *b, enum as_heap_bins_of of,
		     const struct as_style *style, struct as_table *t)
{
	double sum = 0, most = 0;
	unsigned lo = 0, hi = AS_HEAP_BINS;

	bin_columns(of, t);
	while (lo < hi && !b->count[lo])
		lo++;
	while (hi > lo && !b->count[hi - 1])
		hi--;
	for (unsigned k = lo; k < hi; k++)
		most = AS_MAX(most, (double)b->count[k]);
	for (unsigned k = lo; k < hi; k++) {
		double n = (double)b->count[k], all = (double)b->total;
		struct as_share share = {n / all, n / all, n / all, 1, b->count[k], 0};
		struct as_buf text = {0};

		sum += n;
		as_table_row(t);
		as_table_value(t, B_FROM, as_heap_bin_first(k));
		as_table_value(t, B_TO, as_heap_bin_last(k));
		as_memory_bin(of, k, &text);
		as_table_text(t, B_SHOWN, text.p);
		as_table_value(t, B_COUNT, b->count[k]);
		as_table_share(t, B_SHARE, &share);
		share.value = share.low = share.high = sum / all;
		as_table_share(t, B_BELOW, &share);
		as_buf_reset(&text);
		add_bar(n, most, style->width < BAR_FROM_WIDTH ? BAR_NARROW : BAR_WIDE, &text);
		as_table_text(t, B_BAR, as_buf_str(&text));
		as_buf_clear(&text);
	}
}

/* ---- types ---- */

static const struct {
	const char *key, *head;
	enum as_heap_value value;
	enum as_cell_type type;
	enum as_measure measure; /* then the first column has it */
} type_figures[] = {
	{"allocs", "allocations", AS_HEAP_ALLOCS, AS_CELL_COUNT, AS_MEASURE_ALLOCS},
	{"bytes", "asked for", AS_HEAP_BYTES, AS_CELL_BYTES, AS_MEASURE_BYTES},
	{"live_bytes", "at the end", AS_HEAP_LIVE_BYTES, AS_CELL_BYTES, AS_MEASURE_LIVE},
	{"peak_bytes", "at the peak", AS_HEAP_PEAK_BYTES, AS_CELL_BYTES, AS_MEASURE_PEAK},
};

static void type_rows(const struct as_report_request *q, const struct as_selection *s,
		      const struct as_heap_types *types, struct as_table *t)
{
	bool bytes = as_measure_is_bytes(q->model->measure);
	size_t top = q->top ? q->top : q->format == AS_REPORT_TEXT ? TOP : SIZE_MAX;

	as_table_column(t, (struct as_column){"amount", as_measure_name(q->model->measure),
					      bytes ? AS_CELL_BYTES : AS_CELL_COUNT, 0});
	as_table_column(t, (struct as_column){"share", "", AS_CELL_SHARE, 0});
	for (size_t i = 0; i < AS_ARRAY_LEN(type_figures); i++) {
		bool same = type_figures[i].measure == q->model->measure;

		as_table_column(t, (struct as_column){type_figures[i].key, type_figures[i].head,
						      type_figures[i].type,
						      same ? AS_COL_DATA_ONLY : AS_COL_SPARE});
	}
	as_table_column(t, (struct as_column){"name", "type", AS_CELL_TEXT, AS_COL_FLEX});
	for (size_t i = 0; i < types->v.n && i < top; i++) {
		const struct as_heap_type *type = &types->v.v[i];
		double v = s->weight ? (double)type->weight / (double)s->weight : 0;

		as_table_row(t);
		as_table_value(t, 0, type->weight);
		as_table_share(t, 1, &(struct as_share){v, v, v, 1, 1, 0});
		for (size_t k = 0; k < AS_ARRAY_LEN(type_figures); k++)
			as_table_value(t, 2 + k, type->values[type_figures[k].value]);
		as_table_text(t, 2 + AS_ARRAY_LEN(type_figures),
			      type->name[0] ? type->name : "[none: no container in the stack]");
	}
}

/* ---- realloc ---- */

static bool is_rust(const struct as_model *m, const struct as_heap_chain *c)
{
	return c->place && m->functions.v[c->place->function].lang == AS_LANG_RUST;
}

/* Elements that fit, when the type's parameter has a known size; 0: not known. */
static uint64_t elements_of(const struct as_heap_chain *c, uint64_t bytes)
{
	const char *open = strchr(c->type, '<'), *close = strrchr(c->type, '>');
	uint64_t size;

	if (!open || !close || close < open)
		return 0;
	size = as_heap_size_of_type(open + 1, (size_t)(close - open - 1));
	return size ? (bytes + size - 1) / size : 0;
}

void as_memory_advice(const struct as_model *m, const struct as_heap_chain *c,
		      struct as_buf *out)
{
	uint64_t bytes = as_heap_chain_capacity(c), n = elements_of(c, bytes);
	size_t name = strcspn(c->type, "<");

	/* Grown once or hardly used: not worth a word. */
	if (!bytes || c->reallocs < 2 * AS_MAX(c->chains, 1u))
		return;
	if (strcmp(c->type, "String") == 0)
		n = bytes;
	if (name && n && strncmp(c->type, "std::", 5) != 0) {
		as_buf_addf(out, "%.*s::with_capacity(%llu)", (int)name, c->type,
			    (unsigned long long)n);
	} else if (strncmp(c->type, "std::", 5) == 0 && n) {
		as_buf_addf(out, "reserve(%llu)", (unsigned long long)n);
	} else {
		as_buf_adds(out, is_rust(m, c) ? "with_capacity for " : "begin with ");
		as_fmt_bytes(out, bytes);
	}
}

static void realloc_columns(struct as_table *t)
{
	static const struct as_column columns[] = {
		{"copied_bytes", "copied", AS_CELL_BYTES, 0},
		{"reallocs", "reallocs", AS_CELL_COUNT, 0},
		{"in_place", "in place", AS_CELL_SHARE, AS_COL_SPARE},
		{"blocks", "blocks", AS_CELL_COUNT, AS_COL_SPARE},
		{"first_bytes", "first", AS_CELL_BYTES, AS_COL_SPARE},
		{"last_bytes", "at last", AS_CELL_BYTES, AS_COL_SPARE},
		{"last_max_bytes", "most", AS_CELL_BYTES, AS_COL_SPARE},
		{"capacity_bytes", "", AS_CELL_COUNT, AS_COL_DATA_ONLY},
		{"type", "", AS_CELL_TEXT, AS_COL_DATA_ONLY},
		{"advice", "advice", AS_CELL_TEXT, AS_COL_HIDE_EMPTY},
		{"name", "function", AS_CELL_TEXT, AS_COL_FLEX},
		{"where", "", AS_CELL_TEXT, AS_COL_FLEX | AS_COL_HIDE_EMPTY | AS_COL_FAINT},
	};

	for (size_t i = 0; i < AS_ARRAY_LEN(columns); i++)
		as_table_column(t, columns[i]);
}

static void describe_place(const struct as_model *m, const struct as_m_place *p,
			   const struct as_style *style, size_t column, struct as_table *t)
{
	struct as_row row = {
		.name = AS_MEMORY_NO_FRAMES, .module = "", .file = "", .crate = ""};
	AS_CLEANUP(as_buf_clear) struct as_buf where = {0};

	if (p) {
		const struct as_m_function *f = &m->functions.v[p->function];

		row.name = f->brief;
		row.full_name = f->full;
		row.crate = f->crate;
		row.file = p->file[0] ? p->file : f->file;
		row.line = p->line;
		row.module = f->module == AS_NONE ? "" : m->modules.v[f->module].name;
		as_style_where(&where, m, &row);
	}
	as_table_text(t, column, as_report_name(&row, style));
	as_table_text(t, column + 1, as_buf_str(&where));
}

static uint64_t mean(uint64_t sum, uint64_t n)
{
	return n ? sum / n : 0;
}

static void realloc_rows(const struct as_report_request *q, const struct as_heap_chains *chains,
			 const struct as_style *style, struct as_table *t)
{
	size_t top = q->top ? q->top : q->format == AS_REPORT_TEXT ? TOP : SIZE_MAX;

	realloc_columns(t);
	for (size_t i = 0; i < chains->v.n && i < top; i++) {
		const struct as_heap_chain *c = &chains->v.v[i];
		double in_place = (double)c->in_place / (double)AS_MAX(c->reallocs, 1u);
		AS_CLEANUP(as_buf_clear) struct as_buf advice = {0};

		as_table_row(t);
		as_table_value(t, 0, c->copied_bytes);
		as_table_value(t, 1, c->reallocs);
		as_table_share(
			t, 2,
			&(struct as_share){in_place, in_place, in_place, 1, c->in_place, 0});
		as_table_value(t, 3, AS_MAX(c->chains, c->ended));
		as_table_value(t, 4, mean(c->first_bytes, c->chains));
		as_table_value(t, 5, mean(c->last_bytes, c->ended));
		as_table_value(t, 6, c->last_max_bytes);
		as_table_value(t, 7, as_heap_chain_capacity(c));
		as_table_text(t, 8, c->type);
		as_memory_advice(q->model, c, &advice);
		as_table_text(t, 9, as_buf_str(&advice));
		describe_place(q->model, c->place, style, 10, t);
	}
}

/* ---- documents ---- */

static void fill(const struct as_report_request *q, const struct as_selection *s,
		 const struct as_style *style, struct as_table *t)
{
	static const enum as_heap_bins_of of[] = {[AS_TABLE_SIZE] = AS_HEAP_SIZES,
						  [AS_TABLE_LIFETIME] = AS_HEAP_LIFETIMES,
						  [AS_TABLE_AGE] = AS_HEAP_AGES};
	struct as_heap_bins bins;

	if (q->table == AS_TABLE_TYPE) {
		struct as_heap_types types;

		as_heap_types_make(s, &types);
		type_rows(q, s, &types, t);
		as_heap_types_clear(&types);
	} else if (q->table == AS_TABLE_REALLOC) {
		struct as_heap_chains chains;

		as_heap_chains_make(s, &chains);
		realloc_rows(q, &chains, style, t);
		as_heap_chains_clear(&chains);
	} else {
		as_heap_bins_make(s, of[q->table], &bins);
		bin_rows(&bins, of[q->table], style, t);
	}
}

static const char *explain(enum as_memory_table table)
{
	static const char *const text[] = {
		[AS_TABLE_NONE] = "",
		[AS_TABLE_TYPE] = "the container that allocates, by the names of its code",
		[AS_TABLE_SIZE] = "blocks by the bytes that were asked for at first; reallocs "
				  "are in --by realloc",
		[AS_TABLE_LIFETIME] =
			"freed blocks by the time they lived; what is still live is not in it",
		[AS_TABLE_AGE] = "freed blocks by how many more allocations their thread made "
				 "meanwhile",
		[AS_TABLE_REALLOC] =
			"blocks that realloc changed: bytes it moved, and the size they came "
			"to; the advice is enough for 9 of 10",
	};

	return text[table];
}

static void json_document(const struct as_report_request *q, const struct as_selection *s,
			  const struct as_table *t, struct as_buf *out)
{
	struct as_json j = {.out = out, .indent = true};
	double whole = 0;

	for (size_t i = s->lo; i < s->hi; i++)
		whole += (double)as_model_weight(q->model, i);
	as_json_obj(&j, NULL);
	as_report_json_head(q->model, whole, (double)s->weight, &j);
	as_json_str(&j, "by", words[q->table]);
	as_json_str(&j, "shape", "flat");
	as_report_filter_json(&q->query, &j);
	as_json_u64(&j, "samples", q->model->samples.n);
	as_json_u64(&j, "kept_samples", s->samples);
	as_json_num(&j, "kept", whole > 0 ? (double)s->weight / whole : 0, 6);
	as_table_json(t, "rows", &j);
	as_json_end(&j);
	as_buf_addc(out, '\n');
}

/* "Vec<T>": what T is, this build's names do not tell. */
static bool has_generic_type(const struct as_table *t)
{
	size_t name = t->columns.n - 1;

	for (size_t i = 0; i < t->nrows; i++) {
		const char *text = t->cells.v[i * t->columns.n + name].text;

		if (strstr(text, "<T>") || strstr(text, "<T, ") || strstr(text, "<K, V>"))
			return true;
	}
	return false;
}

static void text_document(const struct as_report_request *q, const struct as_table *t,
			  const struct as_style *style, struct as_buf *out)
{
	struct as_buf b = {0};

	as_report_header(q->model, style, out);
	as_memory_header(q->model, style, out);
	as_buf_addc(out, '\n');
	as_buf_addf(&b, "by %s: %s", words[q->table], explain(q->table));
	as_block_words(out, style, 0, b.p);
	as_buf_reset(&b);
	as_report_filters(&q->query, &b);
	if (b.len)
		as_block_words(out, style, 0, b.p);
	if (t->nrows)
		as_table_print(t, style, out);
	else
		as_buf_adds(out, "   nothing\n");
	if (q->table == AS_TABLE_TYPE && has_generic_type(t))
		as_block_words(out, style, 2,
			       "rustc's legacy names do not tell T, K and V; debug information "
			       "(debug = 1) and names of -Csymbol-mangling-version=v0 do");
	as_buf_addc(out, '\n');
	as_trust_text(q->model, style, out);
	as_memory_next(q, style, out);
	as_buf_clear(&b);
}

int as_memory_table_make(const struct as_report_request *q, const struct as_style *style,
			 struct as_buf *out, struct as_error *err)
{
	struct as_selection *s;
	struct as_table t = {0};
	int r;

	if (!q->model->heap.is)
		return as_fail(err, AS_E_USAGE, 0,
			       "--by %s is of sessions of memory; this one is of time",
			       words[q->table]);
	if (q->query.shape != AS_SHAPE_FLAT)
		return as_fail(err, AS_E_USAGE, 0, "--by %s has no calls", words[q->table]);
	r = as_selection_make(q->model, &q->query, &s, err);
	if (r < 0)
		return r;
	fill(q, s, style, &t);
	if (q->format == AS_REPORT_JSON)
		json_document(q, s, &t, out);
	else if (q->format == AS_REPORT_CSV)
		as_table_csv(&t, out);
	else
		text_document(q, &t, style, out);
	as_table_clear(&t);
	as_selection_free(s);
	return AS_OK;
}

/* ---- in few words ---- */

void as_memory_shape(const struct as_model *m, const struct as_style *style, struct as_buf *out)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	struct as_selection *s;
	struct as_heap_bins sizes, times;

	if (as_selection_make(m, NULL, &s, NULL) < 0)
		return;
	as_heap_bins_make(s, AS_HEAP_SIZES, &sizes);
	as_heap_bins_make(s, AS_HEAP_LIFETIMES, &times);
	as_selection_free(s);
	if (sizes.total) {
		as_buf_adds(&b, "half of the blocks are below ");
		as_fmt_bytes(&b, as_heap_bins_quantile(&sizes, 0.5) + 1);
		as_buf_adds(&b, ", 9 of 10 below ");
		as_fmt_bytes(&b, as_heap_bins_quantile(&sizes, 0.9) + 1);
	}
	if (times.total) {
		as_buf_adds(&b, b.len ? " · " : "");
		as_buf_adds(&b, "half of the freed blocks lived for less than ");
		as_fmt_duration(&b, (as_heap_bins_quantile(&times, 0.5) + 1) * 1000);
	}
	if (b.len)
		as_block_words(out, style, 2, b.p);
}
