/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * DHAT's profile, file version 2, as valgrind's dh_view.html reads it (its dh_view.js names the
 * fields and checks them): a program point per distinct stack, frames innermost first as numbers of a
 * table of texts, of which the first is the root.
 *
 * Times are microseconds. What we have not exactly: "mb", the most bytes a point had at any time, is
 * the larger of those at the peak and those at the end, a lower bound; "tl", the sum of the lives of
 * freed blocks, comes of counts by powers of two, each taken at the middle of its range.
 */
#include <stdlib.h>
#include <string.h>
#include "base/json.h"
#include "base/sys.h"
#include "exchange/exchange_priv.h"
#include "model/profile/selection.h"

#define SHORT_LIVED_US 500u /* DHAT's threshold for the colour of "short-lived" */

struct writer {
	const struct as_model *m;
	const struct as_export_options *o;
	struct as_selection *s;
	struct as_sink *out;
	struct as_json j;
	struct as_intern texts; /* the frame table */
	uint64_t *values;       /* AS_HEAP_VALUES per group */
	double *lives_us;       /* per group */
	const char **file;      /* per function */
};

/* ---- lives ---- */

/* The middle of a bucket of powers of two. */
static double middle(unsigned k)
{
	return k == 0 ? 0 : 0.75 * (double)(1ull << AS_MIN(k, 62u));
}

static double sum_of(const struct as_u64s *histogram)
{
	uint64_t used = histogram->n ? histogram->v[0] : 0;
	double sum = 0;

	for (size_t i = 1; i < histogram->n; i++, used &= used - 1)
		sum += middle((unsigned)__builtin_ctzll(used)) * (double)histogram->v[i];
	return sum;
}

static void add_lives(struct writer *w)
{
	const struct as_selection *s = w->s;

	w->lives_us = as_xcalloc(s->groups.n + 1, sizeof *w->lives_us);
	for (size_t i = s->lo; i < s->hi; i++) {
		uint32_t group = s->group[i - s->lo];

		if (group != AS_NONE)
			w->lives_us[group] +=
				sum_of(&w->m->heap.rows.v[w->m->heap.row_of[i]].r.times);
	}
}

/* ---- frames ---- */

static uint32_t text(struct writer *w, const struct as_buf *b)
{
	AS_CLEANUP(as_buf_clear) struct as_buf valid = {0};

	as_fmt_utf8(&valid, as_buf_str(b), b->len);
	return as_intern(&w->texts, as_buf_str(&valid), valid.len);
}

/* "0x401136: main (x.c:5)", "0x9a10: write (in /lib/libc.so.6)" */
static uint32_t frame_text(struct writer *w, const struct as_m_frame *f,
			   const struct as_m_place *p)
{
	const struct as_m_function *fn = &w->m->functions.v[p->function];
	const char *file = p->file[0] ? p->file : w->file[p->function];
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	as_buf_addf(&b, "0x%llX: %s", (unsigned long long)f->addr, as_export_name(w->o, fn));
	if (file[0] && p->line)
		as_buf_addf(&b, " (%s:%u)", file, p->line);
	else if (f->module != AS_NONE)
		as_buf_addf(&b, " (in %s)", w->m->modules.v[f->module].path);
	return text(w, &b);
}

static void put_marker(struct writer *w, const char *name)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	as_buf_adds(&b, name);
	as_json_u64(&w->j, NULL, text(w, &b));
}

static void put_frames(struct writer *w, const struct as_group *g)
{
	const struct as_model *m = w->m;
	bool any = false;

	as_json_arr(&w->j, "fs");
	for (uint32_t at = g->stack; at != AS_NONE; at = m->stacks.v[at].parent) {
		const struct as_m_place *const *p;
		uint32_t n = as_selection_places(w->s, m->stacks.v[at].frame, &p);

		for (uint32_t i = 0; i < n; i++)
			as_json_u64(&w->j, NULL,
				    frame_text(w, &m->frames.v[m->stacks.v[at].frame], p[i]));
		any |= n > 0;
	}
	if (g->marker != AS_NONE)
		put_marker(w, m->functions.v[g->marker].brief);
	else if (!any)
		put_marker(w, AS_EXPORT_NO_FRAMES);
	as_json_end(&w->j);
}

/* ---- the document ---- */

static void put_point(struct writer *w, size_t group)
{
	const uint64_t *v = w->values + group * AS_HEAP_VALUES;
	bool at_peak = v[AS_HEAP_PEAK_BYTES] >= v[AS_HEAP_LIVE_BYTES];

	as_json_obj(&w->j, NULL);
	as_json_u64(&w->j, "tb", v[AS_HEAP_BYTES]);
	as_json_u64(&w->j, "tbk", v[AS_HEAP_ALLOCS]);
	as_json_num(&w->j, "tl", w->lives_us[group], 15);
	as_json_u64(&w->j, "mb", v[at_peak ? AS_HEAP_PEAK_BYTES : AS_HEAP_LIVE_BYTES]);
	as_json_u64(&w->j, "mbk", v[at_peak ? AS_HEAP_PEAK_BLOCKS : AS_HEAP_LIVE_BLOCKS]);
	as_json_u64(&w->j, "gb", v[AS_HEAP_PEAK_BYTES]);
	as_json_u64(&w->j, "gbk", v[AS_HEAP_PEAK_BLOCKS]);
	as_json_u64(&w->j, "eb", v[AS_HEAP_LIVE_BYTES]);
	as_json_u64(&w->j, "ebk", v[AS_HEAP_LIVE_BLOCKS]);
	put_frames(w, &w->s->groups.v[group]);
	as_json_end(&w->j);
	as_sink_spill(w->out);
}

static void put_command(struct writer *w)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	as_vec_foreach (arg, &w->m->args) {
		if (b.len)
			as_buf_addc(&b, ' ');
		as_buf_adds(&b, *arg);
	}
	as_json_str(&w->j, "cmd", as_buf_str(&b));
}

static uint64_t since_start_us(const struct as_model *m, uint64_t ns)
{
	return ns > m->recording.start_ns ? (ns - m->recording.start_ns) / 1000 : 0;
}

static void put_head(struct writer *w)
{
	const struct as_model *m = w->m;
	struct as_rec_heap_process sum;
	uint64_t end_us = since_start_us(m, m->summary.end_ns), peak_us;

	as_model_heap_sum(m, &sum);
	peak_us = since_start_us(m, sum.peak_ns);
	as_json_u64(&w->j, "dhatFileVersion", 2);
	as_json_str(&w->j, "mode", "heap");
	as_json_str(&w->j, "verb", "Allocated");
	as_json_bool(&w->j, "bklt", true);
	as_json_bool(&w->j, "bkacc", false);
	as_json_str(&w->j, "tu", "µs");
	as_json_str(&w->j, "Mtu", "s");
	as_json_u64(&w->j, "tuth", SHORT_LIVED_US);
	put_command(w);
	as_json_u64(&w->j, "pid", m->processes.n ? m->processes.v[0].pid : 0);
	as_json_u64(&w->j, "tg", peak_us);
	/* The viewer divides by it. */
	as_json_u64(&w->j, "te", AS_MAX(AS_MAX(end_us, peak_us), (uint64_t)1));
}

static void put_document(struct writer *w)
{
	as_json_obj(&w->j, NULL);
	put_head(w);
	as_json_arr(&w->j, "pps");
	for (size_t i = 0; i < w->s->groups.n && as_sink_status(w->out) == 0; i++)
		put_point(w, i);
	as_json_end(&w->j);
	as_json_arr(&w->j, "ftbl");
	as_vec_foreach (t, &w->texts.str) {
		as_json_strn(&w->j, NULL, t->p, t->len);
		as_sink_spill(w->out);
	}
	as_json_end(&w->j);
	as_json_end(&w->j);
	as_buf_addc(&w->out->out, '\n');
}

int as_export_write_dhat(const struct as_model *m, const struct as_export_options *o,
			 struct as_sink *out, struct as_error *err)
{
	struct writer w = {.m = m, .o = o, .out = out, .j = {.out = &out->out}};
	int r = as_selection_make(m, o->query, &w.s, err);

	if (r < 0)
		return r;
	(void)as_intern_str(&w.texts, "[root]"); /* is 0 */
	w.values = as_heap_group_values(w.s);
	w.file = as_export_files(w.s);
	add_lives(&w);
	put_document(&w);
	as_intern_clear(&w.texts);
	free(w.values);
	free(w.lives_us);
	free(w.file);
	as_selection_free(w.s);
	return AS_OK;
}
