/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The figures of the trust block. */
#include <math.h>
#include <stdlib.h>
#include "base/json.h"
#include "model/model_priv.h"
#include "model/profile/sampling.h"

#define CPU_TIME_MIN_S 0.01 /* below it the kernel's accounting says nothing about a share */

static double seconds(uint64_t ns)
{
	return ns ? (double)ns / 1e9 : NAN;
}

static bool leaf_is_named(const struct as_model *m, const struct as_m_sample *s)
{
	const struct as_m_frame *f;

	if (s->stack == AS_NONE)
		return false;
	f = &m->frames.v[m->stacks.v[s->stack].frame];
	return !(m->functions.v[m->places.v[f->chain].function].flags & AS_FUNCTION_SYNTHETIC);
}

/* Samples: complete + repaired + truncated = all. A kernel thread's stack is complete. */
static void count_samples(const struct as_model *m, struct as_trust *t, double *weight,
			  bool *in_kernel)
{
	double unnamed = 0;

	as_vec_foreach (s, &m->samples) {
		unsigned end = s->end & AS_SAMPLE_END_MASK;

		*weight += s->weight;
		*in_kernel |= (s->end & AS_SAMPLE_KERNEL) != 0;
		if (!leaf_is_named(m, s))
			unnamed += s->weight;
		if (end == AS_END_ROOT || (end == AS_END_NOSTACK && s->stack != AS_NONE)) {
			if (s->end & AS_SAMPLE_REPAIRED)
				t->repaired++;
			else
				t->complete++;
		} else {
			t->truncated++;
			t->by_reason[end]++;
		}
	}
	t->weight_unsymbolized = *weight > 0 ? unnamed / *weight : 0;
}

static void count_frames(const struct as_model *m, struct as_trust *t)
{
	as_vec_foreach (f, &m->frames) {
		if (f->flags & AS_FRAME_KERNEL ||
		    (f->module != AS_NONE && m->modules.v[f->module].own))
			continue;
		t->frames++;
		t->frames_unsymbolized += m->functions.v[m->places.v[f->chain].function].flags &
					  AS_FUNCTION_SYNTHETIC;
	}
}

/* TICK records count every loss per second and CPU, LOST records each loss as it was heard of:
 * the same samples seen twice, of which a recorder may write one kind only. */
static void count_losses(const struct as_model *m, struct as_trust *t)
{
	uint64_t heard = m->lost_kernel + m->lost_queue, ticked = 0;

	as_vec_foreach (k, &m->ticks) {
		ticked += k->lost_kernel + k->lost_queue;
		t->throttled += k->throttled;
	}
	t->lost = AS_MAX(heard, ticked);
}

static double duration(const struct as_model *m)
{
	uint64_t start = m->recording.start_ns;

	if (m->has_summary)
		return seconds(m->summary.wall_ns);
	if (m->samples.n && m->samples.v[m->samples.n - 1].time_ns > start)
		return seconds(m->samples.v[m->samples.n - 1].time_ns - start);
	return NAN;
}

void as_model_trust(const struct as_model *m, struct as_trust *ret)
{
	struct as_trust t = {
		.engine = as_model_info(m, "engine"),
		.event = as_model_info(m, "event"),
		.rate_hz = (double)m->recording.rate_hz,
		.samples = m->samples.n,
		.cpu_s = NAN,
		.recorder_cpu_s = NAN,
		.kernel_cost_s = NAN,
		.explained_cpu = NAN,
		.effective_rate_hz = NAN,
		.duration_s = duration(m),
		.interrupted = !m->has_summary || !m->health.complete,
	};
	bool in_kernel = (m->recording.flags & 2) != 0;
	bool in_time = m->recording.weight_unit == 0;
	double weight = 0, seen_s;

	count_samples(m, &t, &weight, &in_kernel);
	t.own = m->time.own_samples;
	weight += (double)m->time.own_weight; /* CPU time was taken by them, too */
	count_frames(m, &t);
	count_losses(m, &t);
	if (m->has_summary) {
		uint64_t waited_ns = m->summary.user_ns + m->summary.sys_ns;
		/* processes that nobody waited for (daemons, a browser's) are in the first only */
		t.cpu_s = seconds(AS_MAX(m->summary.cpu_ns, waited_ns));
		t.recorder_cpu_s = seconds(m->summary.recorder_cpu_ns);
		t.kernel_cost_s = seconds(m->summary.kernel_cost_ns);
		/* An event without the kernel's part explains user time only. */
		seen_s = in_kernel ? t.cpu_s : seconds(m->summary.user_ns);
		if (in_time && seen_s >= CPU_TIME_MIN_S)
			t.explained_cpu = weight / 1e9 / seen_s;
		if (seen_s >= CPU_TIME_MIN_S)
			t.effective_rate_hz = (double)(t.samples + t.own) / seen_s;
	}
	if (isnan(t.effective_rate_hz) && in_time && weight > 0)
		t.effective_rate_hz = (double)(t.samples + t.own) / (weight / 1e9);
	*ret = t;
}

void as_notes_json(const struct as_model *m, struct as_json *j)
{
	as_json_arr(j, "notes");
	as_vec_foreach (n, &m->notes) {
		as_json_obj(j, NULL);
		as_json_i64(j, "level", n->level);
		as_json_str(j, "about", n->about ? n->about : "");
		as_json_str(j, "text", n->text ? n->text : "");
		as_json_str(j, "remedy", n->remedy ? n->remedy : "");
		as_json_end(j);
	}
	as_json_end(j);
}

void as_trust_json(const struct as_model *m, const char *key, struct as_json *j)
{
	static const char *const keys[] = {
#define X(n, NAME, key, text) [n] = key,
		AS_STACK_ENDS(X)
#undef X
	};
	struct as_sampling sampling;
	struct as_trust t;

	if (as_model_is_counted(m)) {
		as_heap_trust_json(m, key, j);
		return;
	}
	as_model_trust(m, &t);
	as_model_sampling(m, &sampling);
	as_json_obj(j, key);
	as_json_str(j, "engine", t.engine ? t.engine : "");
	as_json_str(j, "event", t.event ? t.event : "");
	as_json_num(j, "rate_hz", t.rate_hz, 6);
	as_json_num(j, "effective_rate_hz", t.effective_rate_hz, 6);
	as_json_u64(j, "samples", t.samples);
	as_json_u64(j, "lost", t.lost);
	as_json_u64(j, "throttled", t.throttled);
	if (m->heap.is)
		as_json_u64(j, "own_samples", t.own);
	as_json_u64(j, "complete", t.complete);
	as_json_u64(j, "repaired", t.repaired);
	as_json_u64(j, "truncated", t.truncated);
	as_json_obj(j, "truncated_reasons");
	for (size_t i = 0; i < AS_END_COUNT_; i++) {
		if (t.by_reason[i])
			as_json_u64(j, keys[i], t.by_reason[i]);
	}
	as_json_end(j);
	as_json_u64(j, "frames", t.frames);
	as_json_u64(j, "frames_unsymbolized", t.frames_unsymbolized);
	as_json_num(j, "share_unsymbolized", t.weight_unsymbolized, 6);
	as_json_num(j, "explained_cpu", t.explained_cpu, 6);
	as_json_num(j, "recorder_cpu_s", t.recorder_cpu_s, 6);
	as_json_num(j, "kernel_cost_s", t.kernel_cost_s, 6);
	if (m->overhead.pairs) {
		as_json_obj(j, "overhead");
		as_json_u64(j, "pairs", m->overhead.pairs);
		as_json_num(j, "slowdown", (double)m->overhead.value / 1e6, 6);
		as_json_num(j, "low", (double)m->overhead.low / 1e6, 6);
		as_json_num(j, "high", (double)m->overhead.high / 1e6, 6);
		as_json_end(j);
	}
	as_json_num(j, "design_effect", sampling.deff, 4);
	as_json_num(j, "samples_for_one_percent", sampling.need_samples, 6);
	if (sampling.beat) {
		as_json_obj(j, "in_step");
		as_json_str(j, "function", m->functions.v[sampling.beat_function].brief);
		as_json_u64(j, "samples", sampling.beat);
		as_json_end(j);
	}
	as_json_bool(j, "interrupted", t.interrupted);
	as_notes_json(m, j);
	if (m->heap.is)
		as_heap_trust_json(m, "memory", j);
	as_json_end(j);
}
