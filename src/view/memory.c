/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "view/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"

static const char *describe(enum as_measure measure)
{
	static const char *const text[] = {
		[AS_MEASURE_TIME] = "",
		[AS_MEASURE_ALLOCS] = "calls that allocate",
		[AS_MEASURE_BYTES] = "bytes asked for",
		[AS_MEASURE_LIVE] = "bytes that are allocated at the end",
		[AS_MEASURE_PEAK] = "bytes that were allocated when the whole was at its peak",
		[AS_MEASURE_CHURN] =
			"blocks freed before their thread had made 1,024 more allocations",
		[AS_MEASURE_GROWTH] = "bytes grown over the run, as a line through it",
		[AS_MEASURE_LEAKED] = "bytes that nothing points to",
		[AS_MEASURE_MAPPED] = "bytes mapped when mappings were at their peak",
	};

	return text[measure];
}

uint64_t as_memory_whole(double amount)
{
	if (!(amount > 0))
		return 0;
	return amount < 0x1p63 ? (uint64_t)llround(amount) : INT64_MAX;
}

void as_memory_amount(const struct as_model *m, double amount, struct as_buf *out)
{
	uint64_t n = as_memory_whole(amount);

	if (as_measure_is_bytes(m->measure))
		as_fmt_bytes(out, n);
	else
		as_fmt_count(out, n);
}

static uint64_t asked_for(const struct as_model *m)
{
	uint64_t bytes = 0;

	as_vec_foreach (row, &m->heap.rows)
		bytes += row->r.domain == 0 ? row->r.bytes : 0;
	return bytes;
}

static void add_counted(struct as_buf *b, uint64_t n, const char *one)
{
	as_fmt_count(b, n);
	as_buf_addf(b, " %s%s", one, n == 1 ? "" : "s");
}

void as_memory_header(const struct as_model *m, const struct as_style *style,
		      struct as_buf *out)
{
	struct as_rec_heap_process sum;
	struct as_buf b = {0};

	as_model_heap_sum(m, &sum);
	as_buf_adds(&b, "peak ");
	as_fmt_bytes(&b, sum.peak_bytes);
	if (sum.peak_ns > m->recording.start_ns) {
		as_buf_adds(&b, " after ");
		as_fmt_duration(&b, sum.peak_ns - m->recording.start_ns);
	} else if (m->heap.processes.n > 1) {
		as_buf_adds(&b, " (each process at its own)");
	}
	as_buf_adds(&b, " · live at the end ");
	as_fmt_bytes(&b, sum.live_bytes);
	as_buf_adds(&b, " in ");
	add_counted(&b, sum.live_blocks, "block");
	as_buf_adds(&b, " · ");
	add_counted(&b, sum.allocs, "allocation");
	as_buf_adds(&b, " of ");
	as_fmt_bytes(&b, asked_for(m));
	if (sum.mapped_peak_bytes) {
		as_buf_adds(&b, " · mapped apart from that: ");
		as_fmt_bytes(&b, sum.mapped_peak_bytes);
	}
	as_block_words(out, style, 2, b.p);
	as_buf_reset(&b);
	as_buf_addf(&b, "%s: %s", as_measure_name(m->measure), describe(m->measure));
	as_block_words(out, style, 2, b.p);
	as_buf_clear(&b);
}

/* ---- trust ---- */

static void line(struct as_trust_lines *l, enum as_trust_kind kind, const struct as_buf *text,
		 const char *remedy)
{
	as_vec_push(l,
		    (struct as_trust_line){kind, as_arena_strdup(&l->arena, text->p), remedy});
}

static void events_line(const struct as_rec_heap_process *s, struct as_trust_lines *ret)
{
	struct as_buf b = {0};

	add_counted(&b, s->events, "event");
	as_buf_adds(&b, ", ");
	as_fmt_count(&b, s->dropped + s->holes);
	as_buf_adds(&b, " lost");
	line(ret, AS_TRUST_FACT, &b, "");
	as_buf_reset(&b);
	if (s->complete + s->cut == 0)
		as_buf_adds(&b, "no stacks");
	else if (s->cut == 0)
		as_buf_adds(&b, "all stacks complete");
	else
		as_buf_addf(&b, "stacks %.1f %% complete",
			    floor((double)s->complete / (double)(s->complete + s->cut) * 1000) /
				    10);
	line(ret, AS_TRUST_FACT, &b, "");
	as_buf_clear(&b);
}

static void unknown_line(const struct as_rec_heap_process *s, struct as_trust_lines *ret)
{
	struct as_buf b = {0};

	if (s->unmatched_frees + s->unmatched_reallocs) {
		add_counted(&b, s->unmatched_frees + s->unmatched_reallocs, "block");
		as_buf_adds(&b, " from before the recording freed or changed");
		line(ret, AS_TRUST_FACT, &b, "");
		as_buf_reset(&b);
	}
	if (s->failed) {
		add_counted(&b, s->failed, "allocation");
		as_buf_adds(&b, " failed");
		line(ret, AS_TRUST_FACT, &b, "");
	}
	as_buf_clear(&b);
}

static void troubles(const struct as_model *m, const struct as_rec_heap_process *s,
		     struct as_trust_lines *ret)
{
	struct as_buf b = {0};

	if (s->dropped + s->holes) {
		add_counted(&b, s->dropped + s->holes, "event");
		as_buf_adds(&b, " found no room and were lost: counts are lower bounds, and "
				"what is live may be too much");
		line(ret, AS_TRUST_TROUBLE, &b, "");
		as_buf_reset(&b);
	}
	if (s->unmatched_allocs) {
		add_counted(&b, s->unmatched_allocs, "block");
		as_buf_adds(&b, " ended without a free that was seen: something frees in a way "
				"that is not watched, or events were lost");
		line(ret, AS_TRUST_TROUBLE, &b, "");
		as_buf_reset(&b);
	}
	if (s->crowded) {
		add_counted(&b, s->crowded, "allocation");
		as_buf_adds(&b,
			    " came from more stacks than can be told apart: they have none");
		line(ret, AS_TRUST_TROUBLE, &b, "");
		as_buf_reset(&b);
	}
	if (!m->has_summary || !m->health.complete) {
		as_buf_adds(&b, "the recorder did not end properly: figures may be missing");
		line(ret, AS_TRUST_TROUBLE, &b, "");
	}
	as_buf_clear(&b);
}

void as_memory_trust(const struct as_model *m, struct as_trust_lines *ret)
{
	struct as_rec_heap_process sum;

	as_model_heap_sum(m, &sum);
	troubles(m, &sum, ret);
	events_line(&sum, ret);
	unknown_line(&sum, ret);
}

/* ---- next ---- */

static size_t command(struct as_buf *out, enum as_measure measure, const char *file)
{
	size_t start = out->len;

	as_buf_addf(out, "assay report --measure %s", as_measure_name(measure));
	if (file && as_style_plain(file)) {
		as_buf_addc(out, ' ');
		as_style_shell(out, file);
	}
	return as_text_width(out->p + start, out->len - start);
}

void as_memory_next(const struct as_model *m, const char *file, const struct as_style *style,
		    struct as_buf *out)
{
	static const struct {
		enum as_measure measure;
		const char *why;
	} all[] = {
		{AS_MEASURE_PEAK, "what was there at the peak"},
		{AS_MEASURE_LIVE, "what is there at the end"},
		{AS_MEASURE_ALLOCS, "who allocates most often"},
		{AS_MEASURE_CHURN, "what is freed at once, and could be used again"},
	};
	size_t shown = 0, widest = 0;

	for (size_t i = 0; i < AS_ARRAY_LEN(all); i++) {
		struct as_buf b = {0};

		widest = AS_MAX(widest, command(&b, all[i].measure, file));
		as_buf_clear(&b);
	}
	for (size_t i = 0; i < AS_ARRAY_LEN(all) && shown < 3; i++) {
		if (all[i].measure == m->measure)
			continue;
		as_block_label(out, style, shown++ ? "" : "next");
		as_buf_fill(out, ' ', widest - command(out, all[i].measure, file) + 3);
		as_buf_adds(out, all[i].why);
		as_buf_addc(out, '\n');
	}
}
