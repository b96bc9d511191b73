/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * pprof: profile.proto of github.com/google/pprof, in gzip.
 *
 * A sample per distinct (thread, stack), values "samples" and "cpu", of memory those of Go's heap
 * profiles and the same at the peak; a location per frame with its
 * inlined functions, innermost first; a function per function. Numbers of fields and the rules of
 * ids are that file's. What pprof has no field for stands in comments (`go tool pprof -comments`).
 *
 * Samples that were lost are one sample of a function [lost], when nothing is filtered: totals
 * are then what was taken, and shares smaller than ours, which are of what was delivered.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/sys.h"
#include "exchange/pprof_priv.h"
#include "exchange/protobuf.h"

/* Readers hold a profile in memory, and protobuf messages end at 2 GiB. */
#define MESSAGE_MAX (1ull << 30)

enum { /* fields of Profile */
       SAMPLE_TYPE = 1,
       SAMPLE = 2,
       LOCATION = 4,
       FUNCTION = 5,
       STRING_TABLE = 6,
       TIME_NANOS = 9,
       DURATION_NANOS = 10,
       PERIOD_TYPE = 11,
       PERIOD = 12,
       COMMENT = 13,
       DEFAULT_SAMPLE_TYPE = 14,
};

struct value {
	const char *type, *unit;
};
/* Of memory: names that Go's own heap profiles have, then ours. */
static const struct memory_value {
	struct value value;
	enum as_heap_value figure;
} memory_values[] = {
	{{"alloc_objects", "count"}, AS_HEAP_ALLOCS},
	{{"alloc_space", "bytes"}, AS_HEAP_BYTES},
	{{"inuse_objects", "count"}, AS_HEAP_LIVE_BLOCKS},
	{{"inuse_space", "bytes"}, AS_HEAP_LIVE_BYTES},
	{{"peak_objects", "count"}, AS_HEAP_PEAK_BLOCKS},
	{{"peak_space", "bytes"}, AS_HEAP_PEAK_BYTES},
	{{"churn_objects", "count"}, AS_HEAP_CHURN_BLOCKS},
	{{"growth_space", "bytes"}, AS_HEAP_GROWTH_BYTES},
};
enum { VALUES_MAX = AS_ARRAY_LEN(memory_values) };

struct writer {
	const struct as_model *m;
	uint64_t *memory; /* AS_HEAP_VALUES per group; NULL: a session of time */
	const struct as_export_options *o;
	struct as_selection *s;
	struct as_sink *out;
	struct as_pprof_mappings maps;
	struct as_intern strings;
	struct as_trust trust;
	const char **file; /* per function */
	struct as_buf sample, sub;
	AS_VEC(uint64_t) ids;
	uint32_t *shown; /* per stack: the nearest at or above it of which a frame is shown */
	uint32_t key_thread, key_tid, key_process, key_pid;
	bool wrote_no_frames, wrote_lost;
};

/* ---- ids: dense from 1; frames, then markers, then our two own ---- */

static uint64_t function_id(const struct writer *w, uint32_t function)
{
	return (uint64_t)w->s->function_id[function] + 1;
}

static uint64_t frame_location(const struct writer *w, uint32_t frame)
{
	return (uint64_t)w->s->frame_id[frame] + 1;
}

static uint64_t marker_location(const struct writer *w, uint32_t function)
{
	return w->s->n_frames + function_id(w, function);
}

enum own { NO_FRAMES = 1, LOST = 2 };

static uint64_t own_function(const struct writer *w, enum own which)
{
	return (uint64_t)w->s->n_functions + which;
}

static uint64_t own_location(const struct writer *w, enum own which)
{
	return w->s->n_frames + own_function(w, which);
}

/* ---- texts ---- */

uint32_t as_pprof_string(struct as_intern *strings, const char *s)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	as_fmt_utf8(&b, s, strlen(s));
	return as_intern(strings, as_buf_str(&b), b.len);
}

static uint32_t string(struct writer *w, const char *s)
{
	return as_pprof_string(&w->strings, s);
}

static void comment(struct writer *w, const struct as_buf *text)
{
	uint64_t id = string(w, as_buf_str(text));

	as_pb_packed(&w->out->out, COMMENT, &id, 1);
}

static void command_comment(struct writer *w)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	as_buf_adds(&b, "command:");
	as_vec_foreach (arg, &w->m->args) {
		as_buf_addc(&b, ' ');
		as_fmt_quoted(&b, *arg, strlen(*arg));
	}
	comment(w, &b);
}

static void trust_comment(struct writer *w)
{
	static const char *const keys[] = {
#define X(n, NAME, key, text) [n] = key,
		AS_STACK_ENDS(X)
#undef X
	};
	const struct as_trust *t = &w->trust;
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	if (as_model_is_counted(w->m)) {
		as_buf_addf(&b, "assay %s: memory, exact, by (thread, stack)", ASSAY_VERSION);
		comment(w, &b);
		return;
	}
	as_buf_addf(&b, "assay %s: engine %s, event %s, %.6g Hz", ASSAY_VERSION, t->engine,
		    t->event, t->rate_hz);
	comment(w, &b);
	as_buf_reset(&b);
	as_buf_addf(&b, "samples: %llu, lost: %llu, throttled: %llu",
		    (unsigned long long)t->samples, (unsigned long long)t->lost,
		    (unsigned long long)t->throttled);
	comment(w, &b);
	as_buf_reset(&b);
	as_buf_addf(&b, "stacks: %llu complete, %llu repaired, %llu truncated",
		    (unsigned long long)t->complete, (unsigned long long)t->repaired,
		    (unsigned long long)t->truncated);
	for (size_t i = 0; i < AS_END_COUNT_; i++) {
		if (t->by_reason[i])
			as_buf_addf(&b, ", %s: %llu", keys[i],
				    (unsigned long long)t->by_reason[i]);
	}
	comment(w, &b);
	if (t->interrupted) {
		as_buf_reset(&b);
		as_buf_adds(&b, "the recording was cut off: its end is missing");
		comment(w, &b);
	}
}

static void comments(struct writer *w)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	command_comment(w);
	trust_comment(w);
	if (!as_selection_is_all(w->s)) {
		as_buf_addf(&b, "filtered: %llu of %llu samples are here, lost ones are not",
			    (unsigned long long)w->s->samples,
			    (unsigned long long)w->m->samples.n);
		comment(w, &b);
		as_buf_reset(&b);
	}
	as_buf_adds(&b, "addresses: where the first process had a module; callers: the return "
			"address minus 1");
	comment(w, &b);
	as_vec_foreach (n, &w->m->notes) {
		if (n->level < 1)
			continue;
		as_buf_reset(&b);
		as_buf_adds(&b, "note: ");
		if (n->about[0]) {
			as_fmt_quoted(&b, n->about, strlen(n->about));
			as_buf_adds(&b, ": ");
		}
		as_fmt_quoted(&b, n->text, strlen(n->text));
		comment(w, &b);
	}
}

/* ---- the head ---- */

static void value_type(struct writer *w, unsigned field, const char *type, const char *unit)
{
	as_buf_reset(&w->sub);
	as_pb_u64(&w->sub, 1, string(w, type));
	as_pb_u64(&w->sub, 2, string(w, unit));
	as_pb_bytes(&w->out->out, field, w->sub.p, w->sub.len);
}

/* Of what the query's time range covers. */
static void write_time(struct writer *w)
{
	const struct as_query *q = &w->s->query;
	double duration_ns = w->trust.duration_s * 1e9;
	uint64_t end_ns = isfinite(duration_ns) && duration_ns > 0 ? (uint64_t)duration_ns : 0;

	if (q->to_ns && (!end_ns || q->to_ns < end_ns))
		end_ns = q->to_ns;
	if (w->m->recording.start_realtime_ns)
		as_pb_u64(&w->out->out, TIME_NANOS,
			  w->m->recording.start_realtime_ns + q->from_ns);
	if (end_ns > q->from_ns)
		as_pb_u64(&w->out->out, DURATION_NANOS, end_ns - q->from_ns);
}

/* The value that is shown at first. */
static const char *memory_default(enum as_measure measure)
{
	switch (measure) {
	case AS_MEASURE_ALLOCS:
		return "alloc_objects";
	case AS_MEASURE_BYTES:
		return "alloc_space";
	case AS_MEASURE_LIVE:
		return "inuse_space";
	case AS_MEASURE_CHURN:
		return "churn_objects";
	case AS_MEASURE_GROWTH:
		return "growth_space";
	default:
		return "peak_space";
	}
}

static void memory_types(struct writer *w)
{
	for (size_t i = 0; i < VALUES_MAX; i++)
		value_type(w, SAMPLE_TYPE, memory_values[i].value.type,
			   memory_values[i].value.unit);
	value_type(w, PERIOD_TYPE, "space", "bytes");
	as_pb_u64(&w->out->out, PERIOD, AS_MAX(w->m->heap.info.sample_bytes, 1u));
	as_pb_u64(&w->out->out, DEFAULT_SAMPLE_TYPE, string(w, memory_default(w->m->measure)));
}

static void time_types(struct writer *w)
{
	bool in_time = w->m->recording.weight_unit == 0;
	const char *type = in_time ? "cpu" : "cycles",
		   *unit = in_time ? "nanoseconds" : "count";

	value_type(w, SAMPLE_TYPE, "samples", "count");
	value_type(w, SAMPLE_TYPE, type, unit);
	value_type(w, PERIOD_TYPE, type, unit);
	if (in_time && w->m->recording.rate_hz)
		as_pb_u64(&w->out->out, PERIOD, 1000000000u / w->m->recording.rate_hz);
	as_pb_u64(&w->out->out, DEFAULT_SAMPLE_TYPE, string(w, type));
}

static void write_head(struct writer *w)
{
	as_intern(&w->strings, "", 0);
	if (w->memory)
		memory_types(w);
	else
		time_types(w);
	write_time(w);
	w->key_thread = string(w, "thread");
	w->key_tid = string(w, "tid");
	w->key_process = string(w, "process");
	w->key_pid = string(w, "pid");
}

/* ---- samples ---- */

static void label(struct writer *w, uint32_t key, const char *text, uint64_t number)
{
	as_buf_reset(&w->sub);
	as_pb_u64(&w->sub, 1, key);
	if (text)
		as_pb_u64(&w->sub, 2, string(w, text));
	else
		as_pb_u64(&w->sub, 3, number);
	as_pb_bytes(&w->sample, 3, w->sub.p, w->sub.len);
}

static uint32_t shown_above(const struct writer *w, uint32_t stack)
{
	uint32_t parent = w->m->stacks.v[stack].parent;

	return parent == AS_NONE ? AS_NONE : w->shown[parent];
}

/* Long stacks of which little is shown then cost what is written of them. */
static void find_shown(struct writer *w)
{
	w->shown = as_xreallocarray(NULL, w->m->stacks.n + 1, sizeof *w->shown);
	for (uint32_t i = 0; i < w->m->stacks.n; i++) {
		const struct as_m_place *const *places;

		w->shown[i] = as_selection_places(w->s, w->m->stacks.v[i].frame, &places)
				      ? i
				      : shown_above(w, i);
	}
}

static void find_locations(struct writer *w, const struct as_group *g)
{
	uint32_t at = g->stack == AS_NONE ? AS_NONE : w->shown[g->stack];

	w->ids.n = 0;
	for (; at != AS_NONE; at = shown_above(w, at))
		as_vec_push(&w->ids, frame_location(w, w->m->stacks.v[at].frame));
	if (g->marker != AS_NONE)
		as_vec_push(&w->ids, marker_location(w, g->marker));
	if (!w->ids.n) {
		as_vec_push(&w->ids, own_location(w, NO_FRAMES));
		w->wrote_no_frames = true;
	}
}

static void write_sample(struct writer *w, const uint64_t *values, size_t nvalues,
			 const struct as_m_thread *t)
{
	as_buf_reset(&w->sample);
	as_pb_packed(&w->sample, 1, w->ids.v, w->ids.n);
	as_pb_packed(&w->sample, 2, values, nvalues);
	if (t) {
		const struct as_m_process *p = &w->m->processes.v[t->process];

		label(w, w->key_thread, t->name[0] ? t->name : "[unnamed]", 0);
		label(w, w->key_tid, NULL, t->tid);
		label(w, w->key_process, p->name[0] ? p->name : "[unnamed]", 0);
		label(w, w->key_pid, NULL, p->pid);
	}
	as_pb_bytes(&w->out->out, SAMPLE, w->sample.p, w->sample.len);
	as_sink_spill(w->out);
}

static void write_lost(struct writer *w)
{
	uint64_t lost = w->trust.lost;
	double each = w->s->samples ? (double)w->s->weight / (double)w->s->samples : 0;
	uint64_t weight = (uint64_t)AS_MIN((double)lost * each, (double)INT64_MAX / 2);

	if (!lost || w->memory || !as_selection_is_all(w->s))
		return;
	w->ids.n = 0;
	as_vec_push(&w->ids, own_location(w, LOST));
	write_sample(w, (uint64_t[2]){lost, weight}, 2, NULL);
	w->wrote_lost = true;
}

/* Returns how many. */
static size_t group_values(const struct writer *w, const struct as_group *g,
			   uint64_t ret[VALUES_MAX])
{
	size_t of = (size_t)(g - w->s->groups.v) * AS_HEAP_VALUES;

	if (!w->memory) {
		ret[0] = g->samples;
		ret[1] = g->weight;
		return 2;
	}
	for (size_t i = 0; i < VALUES_MAX; i++)
		ret[i] = w->memory[of + memory_values[i].figure];
	return VALUES_MAX;
}

static int write_samples(struct writer *w, struct as_error *err)
{
	find_shown(w);
	as_vec_foreach (g, &w->s->groups) {
		uint64_t values[VALUES_MAX];
		size_t n = group_values(w, g, values);

		find_locations(w, g);
		write_sample(w, values, n, &w->m->threads.v[g->thread]);
		if (w->out->text_bytes > MESSAGE_MAX)
			return as_fail(err, AS_E_LIMIT, 0,
				       "the stacks of this session are more than 1 GiB as pprof"
				       "\n  export a part: --focus, --thread or --time");
		if (as_sink_status(w->out) < 0)
			break;
	}
	write_lost(w);
	return AS_OK;
}

/* ---- locations and functions ---- */

static void add_line(struct writer *w, uint64_t function, uint32_t line, uint32_t column)
{
	as_buf_reset(&w->sub);
	as_pb_u64(&w->sub, 1, function);
	as_pb_u64(&w->sub, 2, line);
	as_pb_u64(&w->sub, 3, column);
	as_pb_bytes(&w->sample, 4, w->sub.p, w->sub.len);
}

static void end_location(struct writer *w)
{
	as_pb_bytes(&w->out->out, LOCATION, w->sample.p, w->sample.len);
	as_sink_spill(w->out);
}

static void write_location(struct writer *w, uint32_t frame)
{
	const struct as_m_frame *f = &w->m->frames.v[frame];
	const struct as_m_place *const *places;
	uint32_t n = as_selection_places(w->s, frame, &places);
	uint32_t mapping = as_pprof_mapping_of(&w->maps, f);

	if (!n)
		return;
	as_buf_reset(&w->sample);
	as_pb_u64(&w->sample, 1, frame_location(w, frame));
	if (mapping != AS_NONE)
		as_pb_u64(&w->sample, 2, mapping + 1);
	as_pb_u64(&w->sample, 3, as_pprof_address(&w->maps, f));
	for (uint32_t i = 0; i < n; i++)
		add_line(w, function_id(w, places[i]->function), places[i]->line,
			 places[i]->column);
	end_location(w);
}

/* Without code: a marker, or one of our own. */
static void write_bare_location(struct writer *w, uint64_t id, uint64_t function)
{
	as_buf_reset(&w->sample);
	as_pb_u64(&w->sample, 1, id);
	add_line(w, function, 0, 0);
	end_location(w);
}

static void write_function(struct writer *w, uint64_t id, const char *name,
			   const struct as_m_function *f, const char *file)
{
	as_buf_reset(&w->sample);
	as_pb_u64(&w->sample, 1, id);
	as_pb_u64(&w->sample, 2, string(w, name));
	/* A name equal to the system's is taken for one to demangle, which loses what is in <>. */
	if (f && strcmp(f->linkage, name) != 0)
		as_pb_u64(&w->sample, 3, string(w, f->linkage));
	as_pb_u64(&w->sample, 4, string(w, file));
	if (f)
		as_pb_u64(&w->sample, 5, f->line);
	as_pb_bytes(&w->out->out, FUNCTION, w->sample.p, w->sample.len);
	as_sink_spill(w->out);
}

static void write_own(struct writer *w, enum own which, const char *name)
{
	write_bare_location(w, own_location(w, which), own_function(w, which));
	write_function(w, own_function(w, which), name, NULL, "");
}

static void write_code(struct writer *w)
{
	w->file = as_export_files(w->s);
	as_pprof_mappings_write(&w->maps, w->m, &w->strings, &w->out->out);
	for (uint32_t i = 0; i < w->m->frames.n; i++)
		write_location(w, i);
	for (uint32_t i = 0; i < w->m->functions.n; i++) {
		const struct as_m_function *f = &w->m->functions.v[i];

		if (w->s->function_id[i] == AS_NONE)
			continue;
		if (f->flags & AS_FUNCTION_MARKER)
			write_bare_location(w, marker_location(w, i), function_id(w, i));
		write_function(w, function_id(w, i), as_export_name(w->o, f), f, w->file[i]);
	}
	if (w->wrote_no_frames)
		write_own(w, NO_FRAMES, AS_EXPORT_NO_FRAMES);
	if (w->wrote_lost)
		write_own(w, LOST, "[lost]");
	free(w->file);
}

static void write_strings(struct writer *w)
{
	as_vec_foreach (s, &w->strings.str) {
		as_pb_bytes(&w->out->out, STRING_TABLE, s->p, s->len);
		as_sink_spill(w->out);
	}
}

int as_export_write_pprof(const struct as_model *m, const struct as_export_options *o,
			  struct as_sink *out, struct as_error *err)
{
	struct writer w = {.m = m, .o = o, .out = out};
	int r = as_selection_make(m, o->query, &w.s, err);

	if (r < 0)
		return r;
	as_model_trust(m, &w.trust);
	if (as_model_is_counted(m))
		w.memory = as_heap_group_values(w.s);
	as_pprof_mappings_make(w.s, &w.maps);
	as_sink_gzip(out);
	write_head(&w);
	comments(&w);
	r = write_samples(&w, err);
	if (r == AS_OK) {
		write_code(&w);
		write_strings(&w);
	}
	as_pprof_mappings_clear(&w.maps);
	as_intern_clear(&w.strings);
	as_buf_clear(&w.sample);
	as_buf_clear(&w.sub);
	as_vec_clear(&w.ids);
	free(w.shown);
	free(w.memory);
	as_selection_free(w.s);
	return r;
}
