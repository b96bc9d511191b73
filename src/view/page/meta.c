/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the page's first screen says: Meta of web/types.js. */
#include "view/page/page_priv.h"

#include <math.h>

#include "base/sys.h"
#include "view/memory/memory.h"
#include "view/report/next.h"
#include "view/report/report.h"
#include "view/report/trust.h"

enum { HOTTEST = 20, NS_DIGITS = 15, START = 1 /* the moment, in a query */ };

static const char *or_empty(const char *s)
{
	return s ? s : "";
}

static void run(struct as_json *j, const struct as_model *m, const struct as_trust *t)
{
	const struct as_rec_recording *r = &m->recording;
	uint64_t status = m->summary.exit;
	struct as_buf name = {0};

	as_report_program(m, &name);
	as_json_str(j, "version", ASSAY_VERSION);
	as_json_str(j, "program", as_buf_str(&name));
	as_buf_clear(&name);
	as_json_arr(j, "args");
	as_vec_foreach (arg, &m->args)
		as_json_str(j, NULL, *arg);
	as_json_end(j);
	as_json_obj(j, "info");
	as_vec_foreach (info, &m->info)
		as_json_str(j, info->key, info->value);
	as_json_end(j);
	as_json_u64(j, "startRealtime", r->start_realtime_ns / 1000000);
	as_json_num(j, "duration", isfinite(t->duration_s) ? t->duration_s * 1e9 : 0,
		    NS_DIGITS);
	as_json_u64(j, "rate", r->rate_hz);
	as_json_u64(j, "cpus", r->ncpus);
	as_json_str(j, "unit",
		    as_model_is_counted(m) ? as_measure_is_bytes(m->measure) ? "bytes" : "count"
		    : r->weight_unit       ? "cycles"
					   : "ns");
	if (m->has_summary && !(r->flags & 1) && status != UINT64_MAX)
		as_json_u64(j, "exit", status);
	else
		as_json_null(j, "exit");
	as_json_num(j, "cpuTime", t->cpu_s * 1e9, NS_DIGITS); /* unknown: null */
	if (m->has_summary)
		as_json_u64(j, "wall", m->summary.wall_ns);
	else
		as_json_null(j, "wall");
}

static void trust(struct as_json *j, const struct as_model *m, const struct as_trust *t)
{
	struct as_trust_lines lines = {0};

	as_trust_lines(m, &lines);
	as_json_obj(j, "trust");
	as_json_arr(j, "lines");
	as_vec_foreach (l, &lines) {
		as_json_obj(j, NULL);
		as_json_str(j, "level", l->kind == AS_TRUST_FACT ? "good" : "warn");
		as_json_str(j, "text", l->text);
		as_json_str(j, "remedy", l->remedy);
		as_json_end(j);
	}
	as_json_end(j);
	as_json_u64(j, "samples", t->samples);
	as_json_u64(j, "lost", t->lost);
	as_json_u64(j, "complete", t->complete);
	as_json_u64(j, "repaired", t->repaired);
	as_json_u64(j, "truncated", t->truncated);
	as_json_end(j);
	as_trust_lines_clear(&lines);
}

static void memory_steps(struct as_page *p)
{
	struct as_memory_step step[3] = {{{0}, {0}}};
	size_t n = as_memory_steps(&(struct as_memory_steps_of){.model = p->m,
								.file = p->q->file,
								.no_realloc = true,
								.no_function = true},
				   step);

	as_json_arr(&p->j, "next");
	for (size_t i = 0; i < n; i++) {
		as_json_obj(&p->j, NULL);
		as_json_str(&p->j, "command", as_buf_str(&step[i].command));
		as_json_str(&p->j, "why", as_buf_str(&step[i].why));
		as_json_end(&p->j);
	}
	as_json_end(&p->j);
	as_memory_steps_clear(step);
}

/* A page is in one kind of measure: of a session of both the other page is a step. */
static void memory_beside(struct as_page *p)
{
	struct as_buf command = {0}, why = {0};
	struct as_rec_heap_process sum;

	if (!p->m->heap.is)
		return;
	as_model_heap_sum(p->m, &sum);
	as_buf_adds(&command, "assay view --measure peak");
	if (p->q->file && as_style_plain(p->q->file)) {
		as_buf_addc(&command, ' ');
		as_style_shell(&command, p->q->file);
	}
	as_buf_adds(&why, "its memory: a peak of ");
	as_fmt_bytes(&why, sum.peak_bytes);
	as_buf_adds(&why, ", ");
	as_fmt_count(&why, sum.allocs);
	as_buf_adds(&why, sum.allocs == 1 ? " allocation" : " allocations");
	as_json_obj(&p->j, NULL);
	as_json_str(&p->j, "command", as_buf_str(&command));
	as_json_str(&p->j, "why", as_buf_str(&why));
	as_json_end(&p->j);
	as_buf_clear(&command);
	as_buf_clear(&why);
}

static void next_steps(struct as_page *p, const struct as_profile *whole)
{
	struct as_query nothing = {0};
	struct as_next_request q = {.model = p->m,
				    .flat = whole,
				    .file = p->q->file,
				    .asked = &nothing,
				    .in_page = true};
	struct as_next_steps steps = {0};

	as_next_make(&q, &steps);
	as_json_arr(&p->j, "next");
	as_vec_foreach (s, &steps) {
		as_json_obj(&p->j, NULL);
		as_json_str(&p->j, "command", s->command);
		as_json_str(&p->j, "why", s->why);
		as_json_end(&p->j);
	}
	memory_beside(p);
	as_json_end(&p->j);
	as_next_clear(&steps);
}

static void share(struct as_json *j, const char *key, const struct as_share *s)
{
	as_json_obj(j, key);
	as_json_num(j, "value", s->value, 9);
	as_json_num(j, "low", isfinite(s->low) ? s->low : s->value, 9);
	as_json_num(j, "high", isfinite(s->high) ? s->high : s->value, 9);
	as_json_u64(j, "samples", s->samples);
	if (s->runs)
		as_json_u64(j, "runs", s->runs);
	as_json_end(j);
}

static void hottest(struct as_json *j, const struct as_profile *flat)
{
	as_json_arr(j, "hottest");
	for (size_t i = 0; i < flat->rows.n && i < HOTTEST; i++) {
		const struct as_row *row = &flat->rows.v[i];

		as_json_obj(j, NULL);
		as_json_u64(j, "function", row->key);
		share(j, "self", &row->self);
		share(j, "total", &row->total);
		as_json_bool(j, "tied", row->tied_with_next);
		as_json_end(j);
	}
	as_json_end(j);
}

/* What the command line asked for, as a Query; left out when it asked for everything. */
static void query(struct as_page *p)
{
	const struct as_query *q = &p->q->query;
	struct as_json *j = &p->j;

	if (!q->from_ns && !q->to_ns && !q->thread && !q->focus && !q->ignore && !q->hide &&
	    !q->no_inline && !q->no_kernel && !p->q->since && !p->q->plumbing)
		return;
	as_json_obj(j, "query");
	as_json_u64(j, "from", q->from_ns);
	as_json_u64(j, "to", q->to_ns);
	if (q->thread) {
		as_json_arr(j, "threads");
		for (uint32_t i = 0; i < p->m->threads.n; i++)
			if (as_model_thread_matches(p->m, i, q->thread))
				as_json_u64(j, NULL, i);
		as_json_end(j);
	} else {
		as_json_null(j, "threads");
	}
	as_json_str(j, "focus", or_empty(q->focus));
	as_json_str(j, "ignore", or_empty(q->ignore));
	as_json_str(j, "hide", or_empty(q->hide));
	as_json_arr(j, "transforms");
	as_json_end(j);
	as_json_bool(j, "noInline", q->no_inline);
	as_json_bool(j, "noKernel", q->no_kernel);
	as_json_bool(j, "generics", true);
	as_json_bool(j, "plumbing", p->q->plumbing);
	as_json_u64(j, "since",
		    p->q->since && !*p->q->since ? START
						 : as_page_moment(&p->marks, p->marks.since));
	as_json_u64(j, "at", as_page_moment(&p->marks, p->marks.at));
	as_json_end(j);
}

void as_page_meta(struct as_page *p, const struct as_profile *whole)
{
	struct as_json *j = &p->j;
	struct as_trust t;

	as_model_trust(p->m, &t);
	as_json_obj(j, "meta");
	run(j, p->m, &t);
	trust(j, p->m, &t);
	if (as_model_is_counted(p->m)) {
		memory_steps(p);
		as_page_memory(p);
	} else {
		next_steps(p, whole);
	}
	hottest(j, whole);
	query(p);
	as_json_arr(j, "notes");
	as_vec_foreach (n, &p->m->notes) {
		as_json_obj(j, NULL);
		as_json_i64(j, "level", n->level);
		as_json_str(j, "about", or_empty(n->about));
		as_json_str(j, "text", or_empty(n->text));
		as_json_str(j, "remedy", or_empty(n->remedy));
		as_json_end(j);
	}
	as_json_end(j);
	as_json_str(j, "file", or_empty(p->m->path));
	as_json_end(j);
}
