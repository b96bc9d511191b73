/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* CPU samples beside a recording of memory: an engine of collect/ on the same target and image. */
#include "track/track_priv.h"

int as_track_cpu_open(struct as_track *k, struct as_error *err)
{
	struct as_engine_env env = {&k->target, k->im, k->rec, k->q->cpu};
	int r;

	if (!k->q->cpu)
		return 0;
	r = as_engine_open(k->q->engine, &env, &k->engine, err);
	if (r < 0)
		return r;
	k->out->engine = k->engine.collector->name;
	/* takes longer than a thread of the target should wait, so not later */
	if (k->engine.facts.kernel_stacks)
		as_recorder_load_kernel(k->rec);
	return 0;
}

int as_track_cpu_start(struct as_track *k, struct as_error *err)
{
	return k->engine.collector ? k->engine.collector->start(k->engine.ctx, err) : 0;
}

int as_track_cpu_drain(struct as_track *k, struct as_error *err)
{
	int r;

	if (!k->engine.ctx)
		return 0;
	r = k->engine.collector->drain(k->engine.ctx, &k->engine_wait_ms, err);
	return r < 0 ? r : 0;
}

void as_track_cpu_stop(struct as_track *k)
{
	struct as_error err = {0};

	if (!k->engine.ctx)
		return;
	if (as_engine_stop(&k->engine, &err) < 0)
		as_recorder_note(k->rec, 2, "", "", "the engine did not stop cleanly: %s",
				 err.msg);
	k->sum.kernel_cost_ns = k->engine.facts.kernel_cost_ns;
	k->sum.cpu_ns = k->engine.facts.cpu_ns;
	k->sum.samples = as_recorder_samples(k->rec);
}

void as_track_cpu_close(struct as_track *k)
{
	if (k->engine.ctx)
		k->engine.collector->close(k->engine.ctx);
	k->engine.ctx = NULL;
}
