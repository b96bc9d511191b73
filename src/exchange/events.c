/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The event log of a recording of memory as lines of JSON (docs/formats/exports.md, "events"). The model
 * has no events: the session is read a second time, and what a line says leaves at once, so that memory
 * does not grow with them. Threads and stacks have a line before the first event that names them.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/json.h"
#include "exchange/exchange_priv.h"
#include "session/log.h"

struct writer {
	const struct as_model *m;
	const struct as_export_options *o;
	uint32_t *marker; /* per stack: what stands above its outermost frame */
	uint8_t *thread_told, *stack_told;
	uint8_t *skipped; /* per thread */
	struct as_sink *out;
	uint64_t events, damaged;
};

static const char *const kinds[AS_LOG_KINDS] = {
	[AS_LOG_ALLOC] = "alloc",
	[AS_LOG_FREE] = "free",
	[AS_LOG_REALLOC_BEGIN] = "realloc_begin",
	[AS_LOG_REALLOC] = "realloc",
	[AS_LOG_MAP] = "map",
	[AS_LOG_UNMAP] = "unmap",
	[AS_LOG_UNMAP_FAILED] = "unmap_failed",
	[AS_LOG_REMAP] = "remap",
};

static const char *kind_of(const struct as_log_event *e)
{
	bool failed = !e->address;

	return failed && e->kind == AS_LOG_ALLOC     ? "alloc_failed"
	       : failed && e->kind == AS_LOG_REALLOC ? "realloc_failed"
						     : kinds[e->kind];
}

/* ---- lines ---- */

static void end_line(struct writer *w)
{
	as_buf_addc(&w->out->out, '\n');
	as_sink_spill(w->out);
}

static void begin_line(struct as_json *j, const char *kind)
{
	as_json_obj(j, NULL);
	as_json_str(j, "kind", kind);
}

static void tell_session(struct writer *w)
{
	struct as_json j = {.out = &w->out->out};

	begin_line(&j, "session");
	as_json_str(&j, "schema", "assay.events/1");
	as_json_arr(&j, "command");
	as_vec_foreach (arg, &w->m->args)
		as_json_str(&j, NULL, *arg);
	as_json_end(&j);
	as_json_u64(&j, "start_realtime_ns", w->m->recording.start_realtime_ns);
	as_json_end(&j);
	end_line(w);
}

static void tell_thread(struct writer *w, uint32_t thread)
{
	const struct as_m_thread *t = &w->m->threads.v[thread];
	const struct as_m_process *p = &w->m->processes.v[t->process];
	struct as_json j = {.out = &w->out->out};

	if (w->thread_told[thread])
		return;
	w->thread_told[thread] = 1;
	begin_line(&j, "thread");
	as_json_u64(&j, "thread", thread);
	as_json_u64(&j, "tid", t->tid);
	as_json_str(&j, "name", t->name);
	as_json_u64(&j, "process", t->process);
	as_json_u64(&j, "pid", p->pid);
	as_json_str(&j, "process_name", p->name);
	as_json_end(&j);
	end_line(w);
}

static void put_place(struct writer *w, struct as_json *j, const struct as_m_frame *f,
		      const struct as_m_place *p)
{
	const struct as_m_function *fn = &w->m->functions.v[p->function];
	const char *file = p->file[0] ? p->file : fn->file;

	as_json_obj(j, NULL);
	as_json_str(j, "function", as_export_name(w->o, fn));
	if (f->module != AS_NONE)
		as_json_str(j, "module", w->m->modules.v[f->module].path);
	if (file[0])
		as_json_str(j, "file", file);
	if (p->line)
		as_json_u64(j, "line", p->line);
	as_json_end(j);
}

static void put_frames(struct writer *w, struct as_json *j, uint32_t stack)
{
	const struct as_model *m = w->m;
	bool no_inline = w->o->query && w->o->query->no_inline;

	for (uint32_t at = stack; at != AS_NONE; at = m->stacks.v[at].parent) {
		const struct as_m_frame *f = &m->frames.v[m->stacks.v[at].frame];

		for (uint32_t i = no_inline ? f->nchain - 1 : 0; i < f->nchain; i++)
			put_place(w, j, f, &m->places.v[f->chain + i]);
	}
	if (w->marker[stack] == AS_NONE)
		return;
	as_json_obj(j, NULL);
	as_json_str(j, "function", m->functions.v[w->marker[stack]].brief);
	as_json_end(j);
}

/* stack: id + 1, 0 has no frames. */
static void tell_stack(struct writer *w, uint32_t stack)
{
	struct as_json j = {.out = &w->out->out};

	if (w->stack_told[stack])
		return;
	w->stack_told[stack] = 1;
	begin_line(&j, "stack");
	as_json_u64(&j, "stack", stack);
	as_json_arr(&j, "frames");
	if (stack)
		put_frames(w, &j, stack - 1);
	as_json_end(&j);
	as_json_end(&j);
	end_line(w);
}

/* Millions of them: as_json takes five times as long. key: with what stands before it. */
static void put_number(struct as_buf *b, const char *key, uint64_t v)
{
	char digits[20], *p = digits + sizeof digits;

	do
		*--p = (char)('0' + v % 10);
	while (v /= 10);
	as_buf_adds(b, key);
	as_buf_add(b, p, (size_t)(digits + sizeof digits - p));
}

static void tell_event(struct writer *w, const struct as_log_event *e)
{
	struct as_buf *b = &w->out->out;
	uint64_t start_ns = w->m->recording.start_ns;

	as_buf_adds(b, "{\"kind\":\"");
	as_buf_adds(b, kind_of(e));
	put_number(b, "\",\"time_ns\":", e->time_ns > start_ns ? e->time_ns - start_ns : 0);
	put_number(b, ",\"thread\":", e->thread);
	if (as_log_has_stack(e->kind))
		put_number(b, ",\"stack\":", e->stack);
	if (as_log_has_old(e->kind))
		put_number(b, ",\"old_address\":", e->old);
	if (e->kind == AS_LOG_REMAP)
		put_number(b, ",\"old_size\":", e->old_bytes);
	if (e->address || !as_log_has_stack(e->kind))
		put_number(b, ",\"address\":", e->address);
	if (as_log_has_size(e->kind))
		put_number(b, ",\"size\":", e->size_bytes);
	as_buf_addc(b, '}');
	end_line(w);
}

static void tell_end(struct writer *w, const struct as_session_health *h)
{
	struct as_json j = {.out = &w->out->out};

	begin_line(&j, "end");
	as_json_u64(&j, "events", w->events);
	as_json_u64(&j, "damaged", w->damaged);
	as_json_bool(&j, "complete", h->complete);
	as_json_end(&j);
	end_line(w);
}

/* ---- the session ---- */

static bool is_wanted(const struct writer *w, const struct as_log_event *e)
{
	const struct as_query *q = w->o->query;
	uint64_t ns = e->time_ns - AS_MIN(e->time_ns, w->m->recording.start_ns);

	if (w->skipped[e->thread])
		return false;
	return !q || (!q->from_ns && !q->to_ns) ||
	       (ns >= q->from_ns && (!q->to_ns || ns < q->to_ns));
}

static int on_events(void *ctx, const struct as_rec_heap_events *r)
{
	struct writer *w = ctx;
	struct as_log_in in;
	struct as_log_event e;

	as_log_begin(&in, r);
	while (as_log_next(&in, &e)) {
		if (e.thread >= w->m->threads.n || e.stack > w->m->stacks.n) {
			w->damaged++;
			continue;
		}
		if (!is_wanted(w, &e))
			continue;
		tell_thread(w, e.thread);
		if (as_log_has_stack(e.kind))
			tell_stack(w, e.stack);
		tell_event(w, &e);
		w->events++;
	}
	w->damaged += in.rd.bad;
	return as_sink_status(w->out);
}

/* What ends of stacks are called is told by the rows. */
static void find_markers(struct writer *w)
{
	const struct as_model *m = w->m;

	w->marker = as_xcalloc(m->stacks.n + 1, sizeof *w->marker);
	for (size_t i = 0; i < m->stacks.n; i++)
		w->marker[i] = AS_NONE;
	as_vec_foreach (row, &m->heap.rows) {
		if (row->stack < m->stacks.n && row->r.end < AS_END_COUNT_)
			w->marker[row->stack] = m->end_function[row->r.end];
	}
}

static int choose_threads(struct writer *w, struct as_error *err)
{
	const char *want = w->o->query ? w->o->query->thread : NULL;
	bool any = !want;

	w->skipped = as_xcalloc(w->m->threads.n + 1, 1);
	for (uint32_t i = 0; want && i < w->m->threads.n; i++) {
		w->skipped[i] = !as_model_thread_matches(w->m, i, want);
		any |= !w->skipped[i];
	}
	return any ? AS_OK : as_fail(err, AS_E_NOTFOUND, 0, "no thread matches '%s'", want);
}

static int check(const struct as_model *m, const struct as_query *q, struct as_error *err)
{
	struct stat st;

	if (!m->heap.is || !(m->heap.info.flags & AS_HEAP_EVENTS))
		return as_fail(err, AS_E_NOTFOUND, 0,
			       "'%s' holds no events: they are kept where they are asked for"
			       "\n  assay heap --events -- PROGRAM",
			       m->path);
	if (q && (q->focus || q->ignore || q->hide || q->module))
		return as_fail(
			err, AS_E_USAGE, 0,
			"a free has no stack: of events --thread and --time choose, not --%s",
			q->focus    ? "focus"
			: q->ignore ? "ignore"
			: q->hide   ? "hide"
				    : "module");
	if (stat(m->path, &st) < 0 || !S_ISREG(st.st_mode))
		return as_fail(err, AS_E_USAGE, 0,
			       "events are read after all else: '%s' has to be a file",
			       m->path);
	return AS_OK;
}

static int write_all(struct writer *w, struct as_error *err)
{
	struct as_record_sink sink = {.ctx = w, .heap_events = on_events};
	struct as_session_health health = {0};
	int r = choose_threads(w, err);

	if (r < 0)
		return r;
	find_markers(w);
	w->thread_told = as_xcalloc(w->m->threads.n + 1, 1);
	w->stack_told = as_xcalloc(w->m->stacks.n + 1, 1);
	tell_session(w);
	r = as_session_read(w->m->path, &sink, &health, err);
	if (as_sink_status(w->out) < 0)
		return AS_OK; /* as_sink_finish tells */
	if (r == AS_OK)
		tell_end(w, &health);
	return r;
}

int as_export_write_events(const struct as_model *m, const struct as_export_options *o,
			   struct as_sink *out, struct as_error *err)
{
	struct writer w = {.m = m, .o = o, .out = out};
	int r = check(m, o->query, err);

	if (r < 0)
		return r;
	r = write_all(&w, err);
	free(w.marker);
	free(w.thread_told);
	free(w.stack_told);
	free(w.skipped);
	return r;
}
