/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Chrome's JSON time line: what each thread was executing, as nested complete events ("X"), for
 * Perfetto, chrome://tracing and DevTools.
 *
 *	{"name":"parse","cat":"user","ph":"X","ts":1.003,"dur":2.5,"tts":1.003,"tdur":2.006,"pid":1,"tid":1}
 *
 * A sample tells what ran at one moment and for how much CPU time since the one before. An event is a
 * function that successive samples of a thread find at the same depth under the same callers. It
 * lasts from the first sample's time less its weight to the last sample's time. Samples follow each
 * other when the gap between them is below one sampling period: longer gaps are the thread waiting,
 * and end all events. ts and dur are time of day since the recording began, in eighths of a
 * microsecond: those are exact as binary fractions, so that ts + dur of one event is ts of the next
 * when a viewer adds them up (with nanoseconds, siblings overlap by rounding and viewers nest them).
 * tts and tdur are the thread's CPU time to the nanosecond, whose sums per function are exactly a
 * report's totals. All in microseconds. The category is the function's (model/category.h): readers refuse
 * events without one.
 */
#include <stdlib.h>
#include <string.h>
#include "base/json.h"
#include "exchange/exchange_priv.h"
#include "exchange/timeline_priv.h"
#include "model/category.h"

#define TEXT_MAX (1ull << 30) /* no viewer opens as much */
#define EXACT_NS 125u         /* an eighth of a microsecond */
#define PID_MAX  4194304ull   /* the kernel's own limit */

struct open { /* an event that has begun */
	uint32_t function;
	uint64_t start_ns, cpu_ns;
};

struct writer {
	const struct as_selection *s;
	const struct as_export_options *o;
	struct as_sink *out;
	struct as_json j;
	uint64_t period_ns;
	struct as_path path;
	AS_VEC(struct open) open; /* of the thread that is written, outermost first */
	struct as_buf *name; /* per function, and one for no frames: {"name":"…","cat":"…" */
	bool first;
	/* of the thread */
	uint64_t pid, tid, end_ns, cpu_ns;
	bool running;
};

/* ---- events ---- */

static void next_event(struct writer *w)
{
	as_buf_adds(&w->out->out, w->first ? "\n" : ",\n");
	w->first = false;
	as_sink_spill(w->out);
}

static void put_us(struct as_buf *b, const char *key, uint64_t ns)
{
	as_buf_adds(b, key);
	as_put_scaled(b, ns, 3);
}

/* Names repeat in many events: their text is made once. */
static const struct as_buf *name_of(struct writer *w, uint32_t function)
{
	struct as_buf *b = &w->name[function];
	const struct as_model *m = w->s->model;
	struct as_json j = {.out = b};

	if (b->len)
		return b;
	as_json_obj(&j, NULL); /* left open: the event goes on */
	if (function == m->functions.n) {
		as_json_str(&j, "name", AS_EXPORT_NO_FRAMES);
		as_json_str(&j, "cat", as_category_info(AS_CATEGORY_MARKER)->key);
		return b;
	}
	as_json_str(&j, "name", as_export_name(w->o, &m->functions.v[function]));
	as_json_str(&j, "cat", as_category_info(as_function_category(m, function))->key);
	return b;
}

static void close_event(struct writer *w, const struct open *e, uint64_t now_ns)
{
	struct as_buf *b = &w->out->out;
	const struct as_buf *name = name_of(w, e->function);

	next_event(w);
	as_buf_add(b, name->p, name->len);
	put_us(b, ",\"ph\":\"X\",\"ts\":", e->start_ns);
	put_us(b, ",\"dur\":", now_ns - e->start_ns);
	if (!w->s->model->recording.weight_unit) {
		put_us(b, ",\"tts\":", e->cpu_ns);
		put_us(b, ",\"tdur\":", w->cpu_ns - e->cpu_ns);
	}
	as_buf_adds(b, ",\"pid\":");
	as_put_u64(b, w->pid);
	as_buf_adds(b, ",\"tid\":");
	as_put_u64(b, w->tid);
	as_buf_addc(b, '}');
}

/* Ends what is open below depth. Outer ones are written first: of events with one start and one
 * end, viewers take the first for the outer one. */
static void close_to(struct writer *w, size_t depth, uint64_t now_ns)
{
	for (size_t i = depth; i < w->open.n; i++)
		close_event(w, &w->open.v[i], now_ns);
	w->open.n = AS_MIN(w->open.n, depth);
}

static void switch_to(struct writer *w, uint32_t group, uint64_t now_ns)
{
	size_t same = 0;

	as_path_of(w->s, group, &w->path);
	if (!w->path.v.n)
		as_vec_push(&w->path.v, (uint32_t)w->s->model->functions.n);
	while (same < w->open.n && same < w->path.v.n &&
	       w->open.v[same].function == w->path.v.v[same])
		same++;
	close_to(w, same, now_ns);
	for (size_t i = same; i < w->path.v.n; i++)
		as_vec_push(&w->open, (struct open){w->path.v.v[i], now_ns, w->cpu_ns});
}

/* A sample stands for the time up to it: the events that it changes begin where that begins. */
static void add_sample(struct writer *w, const struct as_m_sample *sample, uint32_t group,
		       uint32_t before)
{
	const struct as_model *m = w->s->model;
	uint64_t now = as_since_start(m, sample->time_ns) / EXACT_NS * EXACT_NS;
	uint64_t lasted = m->recording.weight_unit ? w->period_ns : sample->weight;
	uint64_t start = now > lasted ? (now - lasted) / EXACT_NS * EXACT_NS : 0;

	if (w->running && start <= w->end_ns + w->period_ns) {
		start = w->end_ns;
	} else {
		close_to(w, 0, w->end_ns);
		start = AS_MAX(start, w->end_ns);
		before = AS_NONE;
	}
	if (group != before)
		switch_to(w, group, start);
	w->running = true;
	/* an event without length has no clear parent */
	w->end_ns = AS_MAX(now, start + EXACT_NS);
	w->cpu_ns += sample->weight;
}

/* ---- threads ---- */

static void put_name(struct writer *w, const char *what, const char *name, uint64_t sort)
{
	struct as_json j = {.out = &w->out->out};

	for (int is_sort = 0; is_sort < 2; is_sort++) {
		AS_CLEANUP(as_buf_clear) struct as_buf event = {0};

		as_buf_addf(&event, "%s_%s", what, is_sort ? "sort_index" : "name");
		next_event(w);
		as_json_obj(&j, NULL);
		as_json_str(&j, "name", event.p);
		as_json_str(&j, "cat", "__metadata");
		as_json_str(&j, "ph", "M");
		as_json_u64(&j, "ts", 0);
		as_json_u64(&j, "pid", w->pid);
		as_json_u64(&j, "tid", w->tid);
		as_json_obj(&j, "args");
		if (is_sort)
			as_json_u64(&j, "sort_index", sort);
		else
			as_json_str(&j, "name", name[0] ? name : "[unnamed]");
		as_json_end(&j);
		as_json_end(&j);
	}
}

static void put_thread(struct writer *w, const struct as_by_thread *by, uint32_t thread)
{
	const struct as_model *m = w->s->model;
	uint32_t before = AS_NONE;

	w->end_ns = w->cpu_ns = 0;
	w->running = false;
	for (uint32_t k = by->first[thread]; k < by->first[thread + 1]; k++) {
		uint32_t group = as_sample_group(w->s, by->at[k]);

		if (w->out->text_bytes > TEXT_MAX)
			return;
		add_sample(w, &m->samples.v[by->at[k]], group, before);
		before = group;
	}
	close_to(w, 0, w->end_ns);
}

static void put_threads(struct writer *w, const uint32_t *threads, size_t n)
{
	const struct as_model *m = w->s->model;
	uint32_t process = AS_NONE;
	struct as_by_thread by;

	as_by_thread_init(&by, w->s);
	for (size_t i = 0; i < n && as_sink_status(w->out) == 0; i++) {
		const struct as_m_thread *t = &m->threads.v[threads[i]];

		/* numbers used again move out of the way of the first */
		w->pid = m->processes.v[t->process].pid + as_pid_round(m, t->process) * PID_MAX;
		w->tid = t->tid + as_tid_round(m, threads, i) * PID_MAX;
		if (t->process != process)
			put_name(w, "process", m->processes.v[t->process].name, t->process);
		process = t->process;
		put_name(w, "thread", t->name, i);
		put_thread(w, &by, threads[i]);
	}
	as_by_thread_clear(&by);
}

/* ---- document ---- */

static void put_losses(struct writer *w, const struct as_lost_list *lost)
{
	as_vec_foreach (l, &lost->v) {
		struct as_buf *b = &w->out->out;

		next_event(w);
		as_buf_addf(b, "{\"name\":\"%llu samples lost\",\"cat\":\"lost\"",
			    (unsigned long long)l->count);
		put_us(b, ",\"ph\":\"i\",\"s\":\"g\",\"ts\":", l->time_ns);
		as_buf_addf(b, ",\"pid\":%llu,\"tid\":%llu,\"args\":{\"count\":%llu,\"until\":",
			    (unsigned long long)w->pid, (unsigned long long)w->tid,
			    (unsigned long long)l->count);
		as_put_scaled(b, l->end_ns, 3);
		as_buf_adds(b, "}}");
	}
}

static void put_other(struct writer *w, const struct as_lost_list *lost)
{
	const struct as_model *m = w->s->model;

	as_json_obj(&w->j, "otherData");
	as_json_str(&w->j, "exporter", "assay " ASSAY_VERSION);
	as_json_str(&w->j, "session", m->path);
	as_json_u64(&w->j, "startRealtimeNs", m->recording.start_realtime_ns);
	as_json_u64(&w->j, "samples", w->s->samples);
	as_json_u64(&w->j, "samplesLost", lost->total);
	as_json_end(&w->j);
}

static int put_document(struct writer *w, struct as_error *err)
{
	struct as_lost_list lost;
	size_t n;
	AS_CLEANUP(as_free_autop) uint32_t *threads = as_threads_in_order(w->s, &n);

	as_lost_list_make(w->s->model, &lost);
	as_json_obj(&w->j, NULL);
	as_json_str(&w->j, "displayTimeUnit", "ns");
	put_other(w, &lost);
	as_json_arr(&w->j, "traceEvents");
	w->first = true;
	put_threads(w, threads, n);
	put_losses(w, &lost);
	as_json_end(&w->j);
	as_json_end(&w->j);
	as_buf_addc(&w->out->out, '\n');
	as_lost_list_clear(&lost);
	if (w->out->text_bytes > TEXT_MAX)
		return as_fail(err, AS_E_LIMIT, 0,
			       "the time line of this session is more than 1 GiB of text"
			       "\n  export a part: --focus, --thread or --time");
	return AS_OK;
}

int as_export_write_chrome(const struct as_model *m, const struct as_export_options *o,
			   struct as_sink *out, struct as_error *err)
{
	struct writer w = {.o = o, .out = out, .j = {.out = &out->out}};
	struct as_selection *s;
	int r = as_selection_make(m, o->query, &s, err);

	if (r < 0)
		return r;
	w.s = s;
	w.period_ns = m->recording.rate_hz ? 1000000000u / m->recording.rate_hz : 1000000;
	w.name = as_xcalloc(m->functions.n + 1, sizeof *w.name);
	r = put_document(&w, err);
	for (size_t i = 0; i <= m->functions.n; i++)
		as_buf_clear(&w.name[i]);
	free(w.name);
	as_vec_clear(&w.open);
	as_path_clear(&w.path);
	as_selection_free(s);
	return r;
}
