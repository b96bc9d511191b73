/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The Firefox Profiler's processed profile: head, threads, samples. What is pinned and why:
 * firefox_priv.h; what users see: docs/formats/exports.md.
 *
 * A sample takes 20 to 35 bytes of text (stack, time, weight and CPU time); stacks are a tree that
 * all threads share.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "exchange/firefox_priv.h"
#include "model/category.h"

#define VISIBLE_THREADS 20

/* ---- head ---- */

static void put_categories(struct as_fx *x)
{
	/* The first grey one is what the reader falls back to. */
	static const char *const color[AS_CATEGORY_COUNT_] = {
		[AS_CATEGORY_USER] = "blue",       [AS_CATEGORY_STD] = "lightblue",
		[AS_CATEGORY_RUNTIME] = "purple",  [AS_CATEGORY_PANIC] = "red",
		[AS_CATEGORY_ALLOCATOR] = "brown", [AS_CATEGORY_LIBRARY] = "green",
		[AS_CATEGORY_KERNEL] = "orange",   [AS_CATEGORY_JIT] = "yellow",
		[AS_CATEGORY_MARKER] = "grey",     [AS_CATEGORY_UNKNOWN] = "darkgrey"};

	as_json_arr(&x->j, "categories");
	for (unsigned c = 0; c < AS_CATEGORY_COUNT_; c++) {
		as_json_obj(&x->j, NULL);
		as_json_str(&x->j, "name", as_category_info((enum as_category)c)->label);
		as_json_str(&x->j, "color", color[c]);
		as_json_arr(&x->j, "subcategories");
		as_json_str(&x->j, NULL, "Other");
		as_json_end(&x->j);
		as_json_end(&x->j);
	}
	as_json_end(&x->j);
}

static void put_marker_schema(struct as_fx *x)
{
	static const char *const where[] = {"marker-chart", "marker-table", "timeline-overview",
					    NULL};

	as_json_arr(&x->j, "markerSchema");
	as_json_obj(&x->j, NULL);
	as_json_str(&x->j, "name", "lost");
	as_json_str(&x->j, "tableLabel", "{marker.data.count} samples lost");
	as_json_str(&x->j, "chartLabel", "{marker.data.count} lost");
	as_json_str(&x->j, "description",
		    "Samples that were taken and could not be kept: what ran then is not in "
		    "the figures.");
	as_json_arr(&x->j, "display");
	for (const char *const *w = where; *w; w++)
		as_json_str(&x->j, NULL, *w);
	as_json_end(&x->j);
	as_json_arr(&x->j, "fields");
	as_json_obj(&x->j, NULL);
	as_json_str(&x->j, "key", "count");
	as_json_str(&x->j, "label", "Samples");
	as_json_str(&x->j, "format", "integer");
	as_json_end(&x->j);
	as_json_end(&x->j);
	as_json_end(&x->j);
	as_json_end(&x->j);
}

static void put_threads_shown(struct as_fx *x, const uint64_t *weight, size_t n)
{
	AS_CLEANUP(as_free_autop) uint8_t *shown = as_xcalloc(n + 1, 1);
	size_t hottest = 0;

	for (size_t k = 0; k < AS_MIN(n, (size_t)VISIBLE_THREADS); k++) {
		size_t best = n;

		for (size_t i = 0; i < n; i++) {
			if (!shown[i] && (best == n || weight[i] > weight[best]))
				best = i;
		}
		shown[best] = 1;
		hottest = k ? hottest : best;
	}
	if (n == 0)
		return;
	as_json_arr(&x->j, "initialVisibleThreads");
	for (size_t i = 0; i < n; i++) {
		if (shown[i])
			as_json_u64(&x->j, NULL, i);
	}
	as_json_end(&x->j);
	as_json_arr(&x->j, "initialSelectedThreads");
	as_json_u64(&x->j, NULL, hottest);
	as_json_end(&x->j);
}

static void put_ms(struct as_fx *x, const char *key, uint64_t ns)
{
	as_json_num(&x->j, key, (double)ns / 1e6, 15);
}

static const char *product(const struct as_model *m)
{
	const char *program = as_model_info(m, "program"), *slash;

	if (!program[0] && m->args.n)
		program = m->args.v[0];
	if (!program[0] && m->processes.n)
		program = m->processes.v[0].name;
	slash = strrchr(program, '/');
	if (slash && slash[1])
		program = slash + 1;
	return program[0] ? program : "assay";
}

static void put_arguments(struct as_fx *x)
{
	const struct as_model *m = x->s->model;
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	as_vec_foreach (a, &m->args) {
		if (b.len)
			as_buf_addc(&b, ' ');
		as_buf_adds(&b, *a);
	}
	if (b.len)
		as_json_str(&x->j, "arguments", b.p);
}

/* Nothing that names the machine: profiles are passed around. */
static void put_program(struct as_fx *x)
{
	const struct as_model *m = x->s->model;
	const char *cpu = as_model_info(m, "cpu");
	AS_CLEANUP(as_buf_clear) struct as_buf os = {0};

	as_buf_addf(&os, "Linux %s %s", as_model_info(m, "kernel"), as_model_info(m, "arch"));
	while (os.p[os.len - 1] == ' ')
		os.p[--os.len] = 0;
	as_json_str(&x->j, "product", product(m));
	put_arguments(x);
	as_json_str(&x->j, "platform", "X11"); /* what the reader calls Linux */
	as_json_str(&x->j, "oscpu", os.p);
	if (cpu[0])
		as_json_str(&x->j, "CPUName", cpu);
	if (m->recording.ncpus)
		as_json_u64(&x->j, "logicalCPUs", m->recording.ncpus);
	as_json_str(&x->j, "importedFrom", "assay " ASSAY_VERSION);
}

static void put_fact(struct as_fx *x, const char *label, const char *format, uint64_t value)
{
	as_json_obj(&x->j, NULL);
	as_json_str(&x->j, "label", label);
	as_json_str(&x->j, "format", format);
	as_json_u64(&x->j, "value", value);
	as_json_end(&x->j);
}

/* How far the figures can be trusted, in the profile's information panel; of the whole session. */
static void put_trust(struct as_fx *x)
{
	struct as_trust t;

	if (as_model_is_counted(x->s->model))
		return;
	as_model_trust(x->s->model, &t);
	as_json_arr(&x->j, "extra");
	as_json_obj(&x->j, NULL);
	as_json_str(&x->j, "label", "Trust");
	as_json_arr(&x->j, "entries");
	put_fact(x, "Samples", "integer", t.samples);
	put_fact(x, "Lost", "integer", t.lost);
	put_fact(x, "Complete stacks", "integer", t.complete);
	put_fact(x, "Repaired stacks", "integer", t.repaired);
	put_fact(x, "Truncated stacks", "integer", t.truncated);
	as_json_end(&x->j);
	as_json_end(&x->j);
	as_json_end(&x->j);
}

static void put_units(struct as_fx *x)
{
	const struct as_rec_recording *r = &x->s->model->recording;

	as_json_num(&x->j, "interval", r->rate_hz ? 1e3 / (double)r->rate_hz : 1, 9);
	put_ms(x, "startTime", r->start_realtime_ns);
	as_json_num(&x->j, "profilingStartTime", 0, 1);
	put_ms(x, "profilingEndTime",
	       as_since_start(x->s->model, as_recording_end(x->s->model)));
	as_json_obj(&x->j, "sampleUnits");
	as_json_str(&x->j, "time", "ms");
	as_json_str(&x->j, "eventDelay", "ms");
	as_json_str(&x->j, "threadCPUDelta", r->weight_unit ? "variable CPU cycles" : "ns");
	as_json_end(&x->j);
}

static void put_meta(struct as_fx *x, const uint64_t *weight, size_t nthreads)
{
	as_json_obj(&x->j, "meta");
	as_json_u64(&x->j, "preprocessedProfileVersion", AS_FIREFOX_VERSION);
	as_json_u64(&x->j, "version", AS_FIREFOX_GECKO_VERSION);
	as_json_u64(&x->j, "processType", 0);
	as_json_u64(&x->j, "stackwalk", 1);
	as_json_bool(&x->j, "debug", false);
	put_program(x);
	put_units(x);
	as_json_bool(&x->j, "symbolicated", true);
	as_json_bool(&x->j, "usesOnlyOneStackType", true);
	as_json_bool(&x->j, "sourceCodeIsNotOnSearchfox", true);
	put_categories(x);
	put_marker_schema(x);
	put_threads_shown(x, weight, nthreads);
	put_trust(x);
	as_json_end(&x->j);
}

/* ---- threads ---- */

#define SAMPLES(x, by, thread, name, i, ...)                                                   \
	do {                                                                                   \
		bool first_ = true;                                                            \
		struct as_buf *b = &(x)->out->out;                                             \
		as_json_arr(&(x)->j, name);                                                    \
		for (uint32_t k_ = (by)->first[thread]; k_ < (by)->first[(thread) + 1];        \
		     k_++) {                                                                   \
			uint32_t i = (by)->at[k_];                                             \
			as_fx_next(x, &first_);                                                \
			__VA_ARGS__;                                                           \
		}                                                                              \
		as_json_end(&(x)->j);                                                          \
	} while (0)

static void put_no_samples(struct as_fx *x)
{
	static const char *const columns[] = {"stack", "time", "weight", "threadCPUDelta"};

	as_json_u64(&x->j, "length", 0);
	as_json_str(&x->j, "weightType", "samples");
	for (size_t i = 0; i < AS_ARRAY_LEN(columns); i++) {
		as_json_arr(&x->j, columns[i]);
		as_json_end(&x->j);
	}
	as_json_end(&x->j);
}

static void put_samples(struct as_fx *x, const struct as_by_thread *by, uint32_t thread)
{
	const struct as_model *m = x->s->model;
	const struct as_m_sample *v = m->samples.v;
	bool cycles = m->recording.weight_unit != 0;

	as_json_obj(&x->j, "samples");
	if (as_model_is_counted(m)) { /* it has none: no time was sampled */
		put_no_samples(x);
		return;
	}
	as_json_u64(&x->j, "length", by->first[thread + 1] - by->first[thread]);
	/* CPU time as milliseconds; the format has no word for cycles. */
	as_json_str(&x->j, "weightType", cycles ? "samples" : "tracing-ms");
	SAMPLES(x, by, thread, "stack", i,
		as_put_u64(b, x->stack_of_group[as_sample_group(x->s, i)]));
	SAMPLES(x, by, thread, "time", i, as_put_scaled(b, as_since_start(m, v[i].time_ns), 6));
	SAMPLES(x, by, thread, "weight", i, as_put_scaled(b, v[i].weight, cycles ? 0 : 6));
	SAMPLES(x, by, thread, "threadCPUDelta", i, as_put_u64(b, v[i].weight));
	as_json_end(&x->j);
}

static void put_lost(struct as_fx *x, const struct as_lost *l, bool *first)
{
	struct as_json j = {.out = &x->out->out};

	as_fx_next(x, first);
	as_json_obj(&j, NULL);
	as_json_str(&j, "type", "lost");
	as_json_u64(&j, "count", l->count);
	as_json_end(&j);
}

/* lost NULL: another thread tells of the losses. */
static void put_markers(struct as_fx *x, const struct as_lost_list *lost)
{
	static const struct as_lost_list none;
	bool first = true;

	lost = lost ? lost : &none;
	as_json_obj(&x->j, "markers");
	as_json_u64(&x->j, "length", lost->v.n);
	as_json_arr(&x->j, "data");
	as_vec_foreach (l, &lost->v)
		put_lost(x, l, &first);
	as_json_end(&x->j);
	as_json_arr(&x->j, "name");
	as_vec_foreach (l, &lost->v)
		as_json_u64(&x->j, NULL, x->lost_name);
	as_json_end(&x->j);
	as_json_arr(&x->j, "startTime");
	as_vec_foreach (l, &lost->v)
		put_ms(x, NULL, l->time_ns);
	as_json_end(&x->j);
	as_json_arr(&x->j, "endTime");
	as_vec_foreach (l, &lost->v)
		put_ms(x, NULL, l->end_ns);
	as_json_end(&x->j);
	as_json_arr(&x->j, "phase");
	as_vec_foreach (l, &lost->v)
		as_json_u64(&x->j, NULL, 1); /* an interval */
	as_json_end(&x->j);
	as_json_arr(&x->j, "category");
	as_vec_foreach (l, &lost->v)
		as_json_u64(&x->j, NULL, AS_CATEGORY_MARKER);
	as_json_end(&x->j);
	as_json_end(&x->j);
}

static void put_end(struct as_fx *x, const char *key, uint64_t end_ns)
{
	if (end_ns)
		put_ms(x, key, as_since_start(x->s->model, end_ns));
	else
		as_json_null(&x->j, key);
}

/* Used again while the recording runs: "42.1" after "42". Processes are always texts. */
static void put_number(struct as_fx *x, const char *key, uint32_t number, unsigned round)
{
	char text[32];

	if (round)
		snprintf(text, sizeof text, "%u.%u", number, round);
	else
		snprintf(text, sizeof text, "%u", number);
	if (round || key[0] == 'p')
		as_json_str(&x->j, key, text);
	else
		as_json_u64(&x->j, key, number);
}

static void put_thread(struct as_fx *x, const struct as_by_thread *by, const uint32_t *threads,
		       size_t i, const struct as_lost_list *lost)
{
	const struct as_model *m = x->s->model;
	uint32_t thread = threads[i];
	const struct as_m_thread *t = &m->threads.v[thread];
	const struct as_m_process *p = &m->processes.v[t->process];

	as_json_obj(&x->j, NULL);
	as_json_str(&x->j, "name", t->name[0] ? t->name : "[unnamed]");
	as_json_bool(&x->j, "isMainThread", t->tid == p->pid);
	as_json_str(&x->j, "processType", "default");
	as_json_str(&x->j, "processName", p->name[0] ? p->name : "[unnamed]");
	put_ms(x, "processStartupTime", as_since_start(m, p->start_ns));
	put_end(x, "processShutdownTime", p->end_ns);
	put_ms(x, "registerTime", as_since_start(m, t->start_ns));
	put_end(x, "unregisterTime", t->end_ns ? t->end_ns : p->end_ns);
	as_json_arr(&x->j, "pausedRanges");
	as_json_end(&x->j);
	as_json_bool(&x->j, "showMarkersInTimeline", lost != NULL);
	put_number(x, "pid", p->pid, as_pid_round(m, t->process));
	put_number(x, "tid", t->tid, as_tid_round(m, threads, i));
	put_samples(x, by, thread);
	if (as_model_is_counted(m))
		as_fx_native_allocations(x, thread);
	put_markers(x, lost);
	as_json_end(&x->j);
	as_sink_spill(x->out);
}

static uint64_t *weights(const struct as_fx *x, const struct as_by_thread *by,
			 const uint32_t *threads, size_t n)
{
	uint64_t *weight = as_xcalloc(n + 1, sizeof *weight);

	for (size_t i = 0; i < n; i++) {
		for (uint32_t k = by->first[threads[i]]; k < by->first[threads[i] + 1]; k++)
			weight[i] += as_model_weight(x->s->model, by->at[k]);
	}
	return weight;
}

static void put_document(struct as_fx *x)
{
	size_t n;
	AS_CLEANUP(as_free_autop) uint32_t *threads = as_threads_in_order(x->s, &n);
	struct as_by_thread by;
	struct as_lost_list lost;
	AS_CLEANUP(as_free_autop) uint64_t *weight = NULL;

	as_by_thread_init(&by, x->s);
	as_lost_list_make(x->s->model, &lost);
	weight = weights(x, &by, threads, n);
	as_json_obj(&x->j, NULL);
	put_meta(x, weight, n);
	as_fx_tables(x);
	as_json_arr(&x->j, "threads");
	for (size_t i = 0; i < n && as_sink_status(x->out) == 0; i++)
		put_thread(x, &by, threads, i, i == 0 && lost.v.n ? &lost : NULL);
	as_json_end(&x->j);
	if (x->s->model->heap.is)
		as_fx_memory_counters(x, threads, n);
	as_json_end(&x->j);
	as_buf_addc(&x->out->out, '\n');
	as_by_thread_clear(&by);
	as_lost_list_clear(&lost);
}

int as_export_write_firefox(const struct as_model *m, const struct as_export_options *o,
			    struct as_sink *out, struct as_error *err)
{
	struct as_fx x = {.o = o, .out = out, .j = {.out = &out->out}};
	struct as_selection *s;
	int r = as_selection_make(m, o->query, &s, err);

	if (r < 0)
		return r;
	x.s = s;
	put_document(&x);
	free(x.stack_of_group);
	as_selection_free(s);
	return AS_OK;
}
