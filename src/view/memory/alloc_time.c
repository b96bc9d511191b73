/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* See alloc_time.h. */
#include "view/memory/alloc_time.h"

#include <math.h>
#include <string.h>

#include "base/sys.h"
#include "view/memory/memory.h"
#include "view/report/trust.h"

enum { LINES = 5 };
static const double WORTH = 0.005, SPLIT_WORTH = 0.05;

static const char *const keys[AS_ALLOC_KINDS] = {"", "alloc", "realloc", "free", "fault"};

void as_alloc_time_split(const uint64_t ns[AS_ALLOC_KINDS], struct as_buf *out)
{
	uint64_t sum = 0;

	for (int k = AS_ALLOC_NEW; k < AS_ALLOC_KINDS; k++)
		sum += ns[k];
	for (int k = AS_ALLOC_NEW; k < AS_ALLOC_KINDS; k++) {
		double share = sum ? (double)ns[k] / (double)sum : 0;

		if (share < SPLIT_WORTH)
			continue;
		as_buf_addf(out, "%s%s", out->len ? ", " : "",
			    as_alloc_kind_name((enum as_alloc_kind)k));
		if (share < 1)
			as_buf_addf(out, " %.0f %%", 100 * share);
	}
}

/* "12.3 ±0.9 % of CPU time: growing 6.1 %, freeing 3.2 %" */
static void whole_line(const struct as_alloc_time *t, const struct as_style *style,
		       struct as_buf *out)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	const char *sep = ": ";

	as_style_share(&b, &t->share);
	as_buf_adds(&b, " % of CPU time");
	for (int k = AS_ALLOC_NEW; k < AS_ALLOC_KINDS; k++) {
		if (t->kind[k] < 0.0005)
			continue;
		as_buf_addf(&b, "%s%s %.1f %%", sep, as_alloc_kind_name((enum as_alloc_kind)k),
			    100 * t->kind[k]);
		sep = ", ";
	}
	if (!t->has_faults)
		as_buf_adds(&b,
			    "; page faults are not told: the kernel's functions have no names");
	as_block_label(out, style, "memory");
	as_block_words(out, style, 7, as_buf_str(&b));
}

static void add_counted(struct as_buf *b, uint64_t n, const char *one)
{
	as_fmt_count(b, n);
	as_buf_addf(b, " %s%s", one, n == 1 ? "" : "s");
}

/* "3,000 allocations of 1.2 MiB", and where blocks grow what that moves and what to begin with */
static void add_facts(const struct as_model *m, const struct as_alloc_line *l, struct as_buf *b)
{
	AS_CLEANUP(as_buf_clear) struct as_buf advice = {0};

	if (l->growth)
		as_memory_advice(m, l->growth, &advice);
	if (l->growth && l->growth->copied_bytes) {
		as_buf_adds(b, ", ");
		add_counted(b, l->growth->reallocs, "realloc");
		if (*l->growth->type)
			as_buf_addf(b, " of %s", l->growth->type);
		as_buf_adds(b, " move ");
		as_fmt_bytes(b, l->growth->copied_bytes);
	} else if (l->values[AS_HEAP_ALLOCS]) {
		as_buf_adds(b, ", ");
		add_counted(b, l->values[AS_HEAP_ALLOCS], "allocation");
		as_buf_adds(b, " of ");
		as_fmt_bytes(b, l->values[AS_HEAP_BYTES]);
	}
	if (advice.len)
		as_buf_addf(b, ": %s", advice.p);
}

static void one_line(const struct as_model *m, const struct as_alloc_line *l,
		     const struct as_style *style, struct as_buf *out)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	AS_CLEANUP(as_buf_clear) struct as_buf split = {0};
	struct as_row row = {.name = l->name,
			     .full_name = l->full_name,
			     .file = l->file,
			     .module = l->module,
			     .crate = "",
			     .line = l->line};

	as_style_share(&b, &l->share);
	as_buf_adds(&b, " % ");
	as_alloc_time_split(l->kind_ns, &split);
	as_buf_adds(&b, as_buf_str(&split));
	as_buf_adds(&b, " in ");
	as_style_cut(&b, style->full_names ? l->full_name : l->name,
		     style->full_names ? SIZE_MAX : 60);
	if (*l->file && l->line) {
		as_buf_adds(&b, " (");
		as_style_file(&b, m, &row);
		as_buf_addf(&b, ":%u)", l->line);
	}
	add_facts(m, l, &b);
	as_buf_fill(out, ' ', 7);
	as_block_words(out, style, 9, as_buf_str(&b));
}

void as_alloc_time_text(const struct as_model *m, const struct as_alloc_time *t,
			const struct as_style *style, struct as_buf *out)
{
	whole_line(t, style, out);
	for (size_t i = 0; i < t->v.n && i < LINES; i++) {
		if (t->v.v[i].share.value >= WORTH)
			one_line(m, &t->v.v[i], style, out);
	}
}

/* ---- JSON ---- */

static void share_json(struct as_json *j, const char *key, const struct as_share *s)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	as_json_num(j, key, s->value, 6);
	as_buf_addf(&b, "%s_low", key);
	as_json_num(j, b.p, s->low, 6);
	as_buf_reset(&b);
	as_buf_addf(&b, "%s_high", key);
	as_json_num(j, b.p, s->high, 6);
}

static void line_json(const struct as_model *m, const struct as_alloc_line *l,
		      struct as_json *j)
{
	AS_CLEANUP(as_buf_clear) struct as_buf advice = {0};

	if (l->growth)
		as_memory_advice(m, l->growth, &advice);
	as_json_obj(j, NULL);
	as_json_str(j, "name", l->name);
	as_json_str(j, "full_name", l->full_name);
	as_json_str(j, "file", l->file);
	as_json_u64(j, "line", l->line);
	share_json(j, "share", &l->share);
	as_json_u64(j, "samples", l->share.samples);
	for (int k = AS_ALLOC_NEW; k < AS_ALLOC_KINDS; k++) {
		AS_CLEANUP(as_buf_clear) struct as_buf key = {0};

		as_buf_addf(&key, "%s_s", keys[k]);
		as_json_num(j, key.p, (double)l->kind_ns[k] / 1e9, 9);
	}
	as_json_u64(j, "allocs", l->values[AS_HEAP_ALLOCS]);
	as_json_u64(j, "bytes", l->values[AS_HEAP_BYTES]);
	as_json_u64(j, "reallocs", l->values[AS_HEAP_REALLOCS]);
	as_json_u64(j, "copied_bytes", l->values[AS_HEAP_COPIED_BYTES]);
	as_json_str(j, "type", l->growth ? l->growth->type : "");
	as_json_str(j, "advice", as_buf_str(&advice));
	as_json_end(j);
}

void as_alloc_time_json(const struct as_model *m, const struct as_alloc_time *t,
			struct as_json *j)
{
	as_json_obj(j, "alloc_time");
	share_json(j, "share", &t->share);
	as_json_u64(j, "samples", t->share.samples);
	for (int k = AS_ALLOC_NEW; k < AS_ALLOC_KINDS; k++)
		as_json_num(j, keys[k], t->kind[k], 6);
	as_json_bool(j, "knows_faults", t->has_faults);
	as_json_arr(j, "lines");
	as_vec_foreach (l, &t->v)
		line_json(m, l, j);
	as_json_end(j);
	as_json_end(j);
}
