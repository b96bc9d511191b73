/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * speedscope's file format: one "sampled" profile per thread over a table of frames that all
 * share. https://www.speedscope.app/file-format-schema.json, as packaged in speedscope 1.25.
 *
 * A frame is a function with the place where it is defined, not a line: speedscope takes each entry
 * of the table for a function of its own, and lines would tear functions apart in its sandwich view.
 *
 * Samples carry whole stacks as lists of indexes; the format has no way to share them. Neighbours
 * on one stack are one sample with their weights added. Where that is still more than FRAMES_MAX
 * numbers, all samples of a thread on one stack are one and the order of time is given up; the
 * profile's name says so. Figures of functions are the same.
 */
#include <stdlib.h>
#include <string.h>
#include "base/json.h"
#include "exchange/exchange_priv.h"
#include "exchange/timeline_priv.h"

#define FRAMES_MAX (32ull << 20) /* numbers in all lists: about 160 MB of text */
#define STACKS_MAX (4ull << 30)  /* the same after merging: more is no use to anyone */

struct writer {
	const struct as_selection *s;
	const struct as_export_options *o;
	struct as_sink *out;
	struct as_json j;
	struct as_by_thread by;
	struct as_path path;
	uint32_t *depth;    /* per group */
	uint32_t no_frames; /* index of the frame that stands for an empty stack */
	bool merge;
	uint32_t *seen, round; /* per group: the round over samples it was last written in */
};

/* ---- frames ---- */

static void put_frame(struct writer *w, const struct as_m_function *f)
{
	as_json_obj(&w->j, NULL);
	as_json_str(&w->j, "name", as_export_name(w->o, f));
	if (f->file && f->file[0])
		as_json_str(&w->j, "file", f->file);
	if (f->line)
		as_json_u64(&w->j, "line", f->line);
	as_json_end(&w->j);
	as_sink_spill(w->out);
}

static void put_frames(struct writer *w)
{
	const struct as_model *m = w->s->model;

	as_json_obj(&w->j, "shared");
	as_json_arr(&w->j, "frames");
	for (size_t i = 0; i < m->functions.n; i++) {
		if (w->s->function_id[i] != AS_NONE)
			put_frame(w, &m->functions.v[i]);
	}
	w->no_frames = w->s->n_functions;
	put_frame(w, &(struct as_m_function){.brief = AS_EXPORT_NO_FRAMES,
					     .full = AS_EXPORT_NO_FRAMES});
	as_json_end(&w->j);
	as_json_end(&w->j);
}

/* ---- samples ---- */

static void measure_depths(struct writer *w)
{
	const struct as_selection *s = w->s;
	const struct as_model *m = s->model;
	uint32_t *of_stack = as_xcalloc(m->stacks.n + 1, sizeof *of_stack);

	for (size_t i = 0; i < m->stacks.n; i++) {
		const struct as_m_stack *k = &m->stacks.v[i];

		of_stack[i] = s->first[k->frame + 1] - s->first[k->frame];
		if (k->parent != AS_NONE)
			of_stack[i] += of_stack[k->parent];
	}
	w->depth = as_xcalloc(s->groups.n + 1, sizeof *w->depth);
	w->seen = as_xcalloc(s->groups.n + 1, sizeof *w->seen);
	for (size_t i = 0; i < s->groups.n; i++) {
		const struct as_group *g = &s->groups.v[i];

		w->depth[i] = g->marker != AS_NONE;
		if (g->stack != AS_NONE)
			w->depth[i] += of_stack[g->stack];
	}
	free(of_stack);
}

static int choose_merging(struct writer *w, const uint32_t *threads, size_t n,
			  struct as_error *err)
{
	uint64_t all = 0, merged = 0;

	for (size_t t = 0; t < n; t++) {
		uint32_t before = AS_NONE;

		for (uint32_t k = w->by.first[threads[t]]; k < w->by.first[threads[t] + 1];
		     k++) {
			uint32_t g = as_sample_group(w->s, w->by.at[k]);

			all += g == before ? 0 : w->depth[g];
			before = g;
		}
	}
	for (size_t i = 0; i < w->s->groups.n; i++)
		merged += w->depth[i];
	w->merge = all > FRAMES_MAX;
	if (w->merge && merged > STACKS_MAX)
		return as_fail(
			err, AS_E_LIMIT, 0,
			"the stacks of this session are more than speedscope's format can "
			"hold\n  export a part: --focus, --thread or --time");
	return AS_OK;
}

static void put_stack(struct writer *w, uint32_t group, bool first)
{
	struct as_buf *b = &w->out->out;

	as_path_of(w->s, group, &w->path);
	as_buf_adds(b, first ? "[" : ",[");
	if (!w->path.v.n)
		as_put_u64(b, w->no_frames);
	for (size_t i = 0; i < w->path.v.n; i++) {
		if (i)
			as_buf_addc(b, ',');
		as_put_u64(b, w->s->function_id[w->path.v.v[i]]);
	}
	as_buf_addc(b, ']');
	as_sink_spill(w->out);
}

/* Calls put for each sample to write: a run of one group, or a whole group. */
typedef void (*put_fn)(struct writer *w, uint32_t group, uint64_t weight, bool first);

static void each_run(struct writer *w, uint32_t thread, put_fn put)
{
	uint32_t k = w->by.first[thread], end = w->by.first[thread + 1];
	bool first = true;

	while (k < end) {
		uint32_t g = as_sample_group(w->s, w->by.at[k]);
		uint64_t weight = 0;

		for (; k < end && as_sample_group(w->s, w->by.at[k]) == g; k++)
			weight += as_model_weight(w->s->model, w->by.at[k]);
		put(w, g, weight, first);
		first = false;
	}
}

static void each_sample(struct writer *w, uint32_t thread, put_fn put)
{
	bool first = true;

	if (!w->merge) {
		each_run(w, thread, put);
		return;
	}
	w->round++;
	for (uint32_t k = w->by.first[thread]; k < w->by.first[thread + 1]; k++) {
		uint32_t g = as_sample_group(w->s, w->by.at[k]);

		if (w->seen[g] == w->round)
			continue;
		w->seen[g] = w->round;
		put(w, g, w->s->groups.v[g].weight, first);
		first = false;
	}
}

static void put_sample(struct writer *w, uint32_t group, uint64_t weight, bool first)
{
	put_stack(w, group, first);
}

static void put_weight(struct writer *w, uint32_t group, uint64_t weight, bool first)
{
	if (!first)
		as_buf_addc(&w->out->out, ',');
	as_put_u64(&w->out->out, weight);
	as_sink_spill(w->out);
}

/* ---- profiles ---- */

static uint64_t weight_of(const struct writer *w, uint32_t thread)
{
	uint64_t sum = 0;

	for (uint32_t k = w->by.first[thread]; k < w->by.first[thread + 1]; k++)
		sum += as_model_weight(w->s->model, w->by.at[k]);
	return sum;
}

static void put_profile_name(struct writer *w, uint32_t thread)
{
	const struct as_model *m = w->s->model;
	const struct as_m_thread *t = &m->threads.v[thread];
	const struct as_m_process *p = &m->processes.v[t->process];
	AS_CLEANUP(as_buf_clear) struct as_buf name = {0};

	if (strcmp(p->name, t->name) != 0)
		as_buf_addf(&name, "%s ", p->name);
	as_buf_addf(&name, "%s (%u)", t->name[0] ? t->name : "[unnamed]", t->tid);
	if (w->merge)
		as_buf_adds(&name, ", stacks merged, not in the order of time");
	as_json_str(&w->j, "name", as_buf_str(&name));
}

static void put_profile(struct writer *w, uint32_t thread)
{
	as_json_obj(&w->j, NULL);
	as_json_str(&w->j, "type", "sampled");
	put_profile_name(w, thread);
	as_json_str(&w->j, "unit", w->s->model->recording.weight_unit ? "none" : "nanoseconds");
	as_json_u64(&w->j, "startValue", 0);
	as_json_u64(&w->j, "endValue", weight_of(w, thread));
	as_json_arr(&w->j, "samples");
	each_sample(w, thread, put_sample);
	as_json_end(&w->j);
	as_json_arr(&w->j, "weights");
	each_sample(w, thread, put_weight);
	as_json_end(&w->j);
	as_json_end(&w->j);
}

/* speedscope cannot open a document without profiles. */
static void put_nothing(struct writer *w)
{
	as_json_obj(&w->j, NULL);
	as_json_str(&w->j, "type", "sampled");
	as_json_str(&w->j, "name", "no samples");
	as_json_str(&w->j, "unit", "nanoseconds");
	as_json_u64(&w->j, "startValue", 0);
	as_json_u64(&w->j, "endValue", 0);
	as_json_arr(&w->j, "samples");
	as_json_end(&w->j);
	as_json_arr(&w->j, "weights");
	as_json_end(&w->j);
	as_json_end(&w->j);
}

static size_t heaviest(const struct writer *w, const uint32_t *threads, size_t n)
{
	uint64_t most = 0;
	size_t best = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t weight = weight_of(w, threads[i]);

		if (weight > most) {
			most = weight;
			best = i;
		}
	}
	return best;
}

static void put_title(struct writer *w)
{
	const struct as_model *m = w->s->model;
	const char *slash = strrchr(m->path, '/');
	AS_CLEANUP(as_buf_clear) struct as_buf name = {0};
	struct as_lost_list lost;

	as_lost_list_make(m, &lost);
	as_buf_adds(&name, slash ? slash + 1 : m->path);
	if (lost.total)
		as_buf_addf(&name, " [%llu samples lost]", (unsigned long long)lost.total);
	as_json_str(&w->j, "name", as_buf_str(&name));
	as_lost_list_clear(&lost);
}

static int put_document(struct writer *w, struct as_error *err)
{
	size_t n;
	AS_CLEANUP(as_free_autop) uint32_t *threads = as_threads_in_order(w->s, &n);
	int r = choose_merging(w, threads, n, err);

	if (r < 0)
		return r;
	as_json_obj(&w->j, NULL);
	as_json_str(&w->j, "$schema", "https://www.speedscope.app/file-format-schema.json");
	as_json_str(&w->j, "exporter", "assay@" ASSAY_VERSION);
	put_title(w);
	as_json_u64(&w->j, "activeProfileIndex", heaviest(w, threads, n));
	put_frames(w);
	as_json_arr(&w->j, "profiles");
	for (size_t i = 0; i < n && as_sink_status(w->out) == 0; i++)
		put_profile(w, threads[i]);
	if (n == 0)
		put_nothing(w);
	as_json_end(&w->j);
	as_json_end(&w->j);
	as_buf_addc(&w->out->out, '\n');
	return AS_OK;
}

int as_export_write_speedscope(const struct as_model *m, const struct as_export_options *o,
			       struct as_sink *out, struct as_error *err)
{
	struct writer w = {.o = o, .out = out, .j = {.out = &out->out}};
	struct as_selection *s;
	int r = as_selection_make(m, o->query, &s, err);

	if (r < 0)
		return r;
	w.s = s;
	as_by_thread_init(&w.by, s);
	measure_depths(&w);
	r = put_document(&w, err);
	as_by_thread_clear(&w.by);
	as_path_clear(&w.path);
	free(w.depth);
	free(w.seen);
	as_selection_free(s);
	return r;
}
