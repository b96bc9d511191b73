/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Next steps of sessions of memory: each has a figure of the session behind it, or is not given. */
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "view/memory/memory.h"
#include "view/report/next.h"

enum { STEPS = 3 };

/* A function worth a step of its own; of the peak what is left at the end; of what was asked for what
 * realloc moved; of all blocks those that are freed at once. */
static const double WORTH_FUNCTION = 0.3, WORTH_LIVE = 0.05, WORTH_COPIED = 0.05,
		    WORTH_CHURN = 0.3;

/* Sums over the session that steps are drawn from. */
struct figures {
	const struct as_model *m;
	uint64_t allocs, bytes, live_bytes, peak_bytes;
	uint64_t copied_bytes, reallocs, churn_blocks, lost_bytes;
};

static struct figures figures_of(const struct as_model *m)
{
	struct as_rec_heap_process sum;
	struct figures f = {.m = m};

	as_model_heap_sum(m, &sum);
	f.allocs = sum.allocs;
	f.live_bytes = sum.live_bytes;
	f.peak_bytes = sum.peak_bytes;
	as_vec_foreach (row, &m->heap.rows) {
		if (row->r.domain)
			continue;
		f.bytes += row->r.bytes;
		f.copied_bytes += row->r.copied_bytes;
		f.reallocs += row->r.reallocs;
		f.churn_blocks += row->r.churn_blocks;
	}
	as_vec_foreach (k, &m->heap.look.rows)
		f.lost_bytes += k->r.lost_bytes + k->r.indirect_bytes;
	return f;
}

static bool is_part(uint64_t n, double part, uint64_t of)
{
	return n && (double)n >= part * (double)of;
}

static bool tell_lost(const struct figures *f, struct as_buf *why)
{
	as_fmt_bytes(why, f->lost_bytes);
	as_buf_adds(why, " were lost: nothing points to it");
	return f->lost_bytes > 0;
}

static bool tell_peak(const struct figures *f, struct as_buf *why)
{
	as_fmt_bytes(why, f->peak_bytes);
	as_buf_adds(why, " were there at the peak");
	return f->peak_bytes > 0;
}

static bool tell_copied(const struct figures *f, struct as_buf *why)
{
	as_fmt_bytes(why, f->copied_bytes);
	as_buf_adds(why, " moved by ");
	as_fmt_count(why, f->reallocs);
	as_buf_adds(why, " reallocs: what to begin with");
	return is_part(f->copied_bytes, WORTH_COPIED, f->bytes);
}

static bool tell_live(const struct figures *f, struct as_buf *why)
{
	as_fmt_bytes(why, f->live_bytes);
	as_buf_adds(why, " are there at the end");
	return is_part(f->live_bytes, WORTH_LIVE, f->peak_bytes);
}

static bool tell_churn(const struct figures *f, struct as_buf *why)
{
	as_fmt_count(why, f->churn_blocks);
	as_buf_addf(why, " block%s freed at once, and could be used again",
		    f->churn_blocks == 1 ? " is" : "s are");
	return is_part(f->churn_blocks, WORTH_CHURN, f->allocs);
}

static bool tell_allocs(const struct figures *f, struct as_buf *why)
{
	as_buf_adds(why, "who makes the ");
	as_fmt_count(why, f->allocs);
	as_buf_addf(why, " allocation%s", f->allocs == 1 ? "" : "s");
	return f->allocs > 0;
}

static const struct step {
	enum as_measure measure; /* it is of no use in this one; TIME: in none */
	const char *words;
	/* Appends why, and says whether it is worth a step. */
	bool (*tell)(const struct figures *f, struct as_buf *why);
} steps[] = {
	{AS_MEASURE_LEAKED, "--measure leaked", tell_lost},
	{AS_MEASURE_PEAK, "--measure peak", tell_peak},
	{AS_MEASURE_TIME, "--by realloc", tell_copied},
	{AS_MEASURE_LIVE, "--measure live", tell_live},
	{AS_MEASURE_CHURN, "--measure churn", tell_churn},
	{AS_MEASURE_ALLOCS, "--measure allocs", tell_allocs},
};

static void add_file(struct as_buf *command, const char *file)
{
	if (!file || !as_style_plain(file))
		return;
	as_buf_addc(command, ' ');
	as_style_shell(command, file);
}

/* One function has much of it: the lines of one whose source is known, the callers of any other, which
 * may well be what the program has before malloc. */
static bool top_function(const struct as_memory_steps_of *q, struct as_memory_step *ret)
{
	const struct as_query plain = {.by = AS_BY_FUNCTION};
	struct as_profile *flat = NULL;
	const struct as_row *row;
	bool own, is = false;

	if (q->model->heap.at || as_profile_make(q->model, &plain, &flat, NULL) < 0)
		return false;
	row = flat->rows.n ? &flat->rows.v[0] : NULL;
	if (row && row->self.value >= WORTH_FUNCTION && *row->name &&
	    as_style_plain(row->name) && row->name[0] != '[') {
		own = row->line && as_style_is_own(q->model, row);
		as_buf_adds(&ret->command, own ? "assay annotate " : "assay report --callers ");
		as_style_shell(&ret->command, row->name);
		if (q->model->measure != AS_MEASURE_PEAK || q->model->time.is)
			as_buf_addf(&ret->command, " --measure %s",
				    as_measure_name(q->model->measure));
		add_file(&ret->command, q->file);
		as_buf_addf(&ret->why, "%s: %.1f %%", own ? "its lines" : "who asks there",
			    row->self.value * 100);
		is = true;
	}
	as_profile_free(flat);
	return is;
}

size_t as_memory_steps(const struct as_memory_steps_of *q, struct as_memory_step ret[3])
{
	const struct figures f = figures_of(q->model);
	bool top_told = q->no_function;
	size_t n = 0;

	for (size_t i = 0; i < AS_ARRAY_LEN(steps) && n < STEPS; i++) {
		const struct step *s = &steps[i];

		/* before all others but what was lost */
		if (i && !top_told && n < STEPS) {
			n += top_function(q, &ret[n]);
			top_told = true;
		}
		if (s->measure == q->model->measure || n == STEPS ||
		    (s->measure == AS_MEASURE_TIME && q->no_realloc))
			continue;
		if (s->tell(&f, &ret[n].why)) {
			as_buf_addf(&ret[n].command, "assay report %s", s->words);
			add_file(&ret[n].command, q->file);
			n++;
		} else {
			as_buf_reset(&ret[n].why);
		}
	}
	return n;
}

void as_memory_steps_clear(struct as_memory_step s[3])
{
	for (size_t i = 0; i < STEPS; i++) {
		as_buf_clear(&s[i].command);
		as_buf_clear(&s[i].why);
	}
}

/* Beside each other, or where that is too wide below. */
void as_memory_next(const struct as_report_request *q, const struct as_style *style,
		    struct as_buf *out)
{
	struct as_memory_step s[3] = {{{0}, {0}}};
	struct as_next_steps next = {0};
	size_t n = as_memory_steps(
		&(struct as_memory_steps_of){.model = q->model,
					     .file = q->file,
					     .no_realloc = q->table == AS_TABLE_REALLOC,
					     .no_function = q->query.of || q->table},
		s);

	for (size_t i = 0; i < n; i++)
		as_vec_push(&next, (struct as_next_step){as_buf_str(&s[i].command),
							 as_buf_str(&s[i].why)});
	as_next_print(&next, style, out);
	as_next_clear(&next);
	as_memory_steps_clear(s);
}
