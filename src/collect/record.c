/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One whole recording:
 *
 *	target held or attached -> session, image, recorder -> a run (record_run.c), or several
 *	-> SUMMARY -> names -> END
 *
 * Nothing here harms the target: when something fails after its start it goes on, and what was
 * recorded stays readable.
 */
#include "collect/record_priv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/sys.h"
#include "stats/paired.h"

/* ---- facts about the recording ---- */

static void info(struct as_recording *r, const char *key, const char *value)
{
	as_write_info(r->w, &(struct as_rec_info){AS_STR(key), AS_STR(value)});
}

void as_recording_facts(struct as_recording *r)
{
	as_write_recording_facts(r->w,
				 &(struct as_recording_facts){
					 .engine = r->engine->name,
					 .event = r->facts.event,
					 .until = r->q->until,
					 .folder = r->q->folder,
					 .argv = r->q->argv,
					 .target = &r->target,
					 .start_ns = r->start_ns,
					 .rate_hz = (uint64_t)(r->q->options.rate_hz + 0.5),
					 .weight_unit = r->facts.weight_unit,
					 .kernel_stacks = r->facts.kernel_stacks,
				 });
}

/* ---- the session ---- */

static int open_session(struct as_recording *r, struct as_error *err)
{
	struct as_image_listener listener;
	int status = as_session_writer_open(r->q->output, &r->w, err);

	if (status < 0)
		return status;
	r->im = as_image_new(r->q->resolve.cache_dir);
	r->rec = as_recorder_new(r->w, r->im);
	as_recorder_listener(r->rec, &listener);
	as_image_add_listener(r->im, &listener);
	for (size_t i = 0; i < r->q->nnotes; i++) {
		const struct as_recording_note *n = &r->q->notes[i];

		as_recorder_note(r->rec, n->level, n->about, n->remedy, "%s", n->text);
	}
	return 0;
}

static void discard_session(struct as_recording *r)
{
	AS_CLEANUP(as_free_autop) char *partial = NULL;

	if (!r->w || !strcmp(r->q->output, "-"))
		return;
	partial = as_xasprintf("%s.partial", r->q->output);
	unlink(partial);
}

/* For the reader to know: ended because it was enough, or for another reason. */
static void write_judgement(struct as_recording *r)
{
	if (r->q->judge)
		info(r, "until.enough", r->out->enough ? "yes" : "no");
}

static int64_t millionths(double log_ratio)
{
	double v = expm1(log_ratio) * 1e6;

	return v > 1e12 ? (int64_t)1e12 : v < -1e12 ? (int64_t)-1e12 : (int64_t)llround(v);
}

static void write_overhead(struct as_recording *r)
{
	struct as_trimmed t;

	if (r->ratios.n < 3)
		return;
	as_trimmed_interval(r->ratios.v, r->ratios.n, AS_PAIRED_TRIM, 0.05, &t);
	as_write_overhead(r->w, &(struct as_rec_overhead){.pairs = r->ratios.n,
							  .value = millionths(t.value),
							  .low = millionths(t.lo),
							  .high = millionths(t.hi)});
}

static int finish(struct as_recording *r, struct as_error *err)
{
	int status;

	as_recording_end_look(r);
	write_judgement(r);
	write_overhead(r);
	r->sum.recorder_rss_bytes = as_self_rss_bytes();
	as_write_summary(r->w, &r->sum);
	r->out->samples = r->sum.samples;
	r->out->wall_ns = r->sum.wall_ns;
	as_session_writer_flush(r->w);
	if (as_recording_interrupted(r) > 1)
		return as_fail(err, AS_E_CANCELLED, 0,
			       "given up; '%s.partial' holds what was recorded, without names",
			       r->q->output);
	r->progress_ns = 0;
	as_recording_progress(r, as_now_ns(), "resolving names");
	status = as_recorder_resolve(r->rec, &r->q->resolve, err);
	if (status < 0)
		return status;
	status = as_session_writer_finish(r->w, err);
	r->out->session_bytes = as_session_writer_bytes(r->w);
	return status;
}

/* ---- runs ---- */

static bool coin(struct as_recording *r)
{
	return as_mix64(r->random += 0x9e3779b97f4a7c15ull) & 1;
}

static void note_pair(struct as_recording *r, double recorded_ns, uint64_t runs_before)
{
	if (r->plain_ns > 0 && recorded_ns > 0 && r->out->runs > runs_before)
		as_vec_push(&r->ratios, log(recorded_ns / r->plain_ns));
	r->plain_ns = 0;
}

/* The target of the next run, after a run without recording where the coin says so. */
static int open_run(struct as_recording *r, bool *ret_plain_after, struct as_error *err)
{
	int status = 0;

	*ret_plain_after = false;
	if (r->q->measure_overhead) {
		*ret_plain_after = coin(r);
		if (!*ret_plain_after)
			status = as_recording_run_plain(r, err);
		if (status < 0 || as_recording_interrupted(r))
			return status;
		as_target_clear(&r->target);
	}
	return as_recording_open_target(r, err);
}

static int one_run(struct as_recording *r, bool plain_after, struct as_error *err)
{
	uint64_t runs = r->out->runs;
	double recorded_ns;
	bool started;
	int status = as_recording_run(r, &started, err);

	if (status < 0 && !started && !runs) {
		if (r->target.exited)
			r->out->exec_errno = err->sys_errno;
		discard_session(r);
		as_session_writer_close(r->w);
		r->w = NULL;
		return status;
	}
	recorded_ns = r->out->runs > runs ? as_recording_time_taken(&r->target) : 0;
	as_recording_wait_for_target(r);
	r->out->wait_status = as_recording_target_status(r);
	if (status >= 0 && plain_after && r->out->runs > runs) {
		as_target_clear(&r->target);
		status = as_recording_run_plain(r, err);
	}
	note_pair(r, recorded_ns, runs);
	return status;
}

static bool wants_another(struct as_recording *r)
{
	const struct as_recording_request *q = r->q;
	uint64_t now = as_now_ns();

	if (!as_recording_has_runs(r) || as_recording_interrupted(r) ||
	    (q->duration_ns && now - r->first_ns >= q->duration_ns))
		return false;
	if (as_recording_look(r, now, true))
		return false;
	return (q->judge && !q->runs) || r->out->runs < q->runs;
}

static int run(struct as_recording *r, struct as_error *err)
{
	bool plain_after;
	int status = open_run(r, &plain_after, err), end_status;

	if (status == AS_E_NOTFOUND || status == AS_E_ACCESS)
		r->out->exec_errno = err->sys_errno;
	if (status < 0)
		return status;
	if (as_recording_interrupted(r) && !r->target.pid)
		return as_fail(err, AS_E_CANCELLED, 0,
			       "interrupted before anything was recorded");
	status = open_session(r, err);
	if (status < 0)
		return status;
	for (;;) {
		status = one_run(r, plain_after, err);
		if (status < 0 || !wants_another(r))
			break;
		as_target_clear(&r->target);
		status = open_run(r, &plain_after, err);
		if (status < 0 || as_recording_interrupted(r))
			break;
	}
	if (!r->w)
		return status;
	struct as_error end_err = {0};

	end_status = finish(r, &end_err);
	if (r->has_failed)
		r->out->wait_status = r->failed_status;
	if (status >= 0 && end_status < 0 && err)
		*err = end_err;
	return status < 0 ? status : end_status;
}

static void clear(struct as_recording *r)
{
	if (r->ctx)
		r->engine->close(r->ctx);
	as_recorder_free(r->rec);
	as_image_free(r->im);
	as_session_writer_close(r->w);
	as_target_clear(&r->target);
	as_vec_clear(&r->ratios);
}

int as_record(const struct as_recording_request *q, struct as_recording_outcome *ret,
	      struct as_error *err)
{
	struct as_recording r = {.q = q,
				 .out = ret,
				 .random = as_now_ns(),
				 .interrupt = {q->interrupted, q->interrupt_signal, 0},
				 .stdin_at = lseek(STDIN_FILENO, 0, SEEK_CUR)};
	struct as_error own = {0};
	int status;

	memset(ret, 0, sizeof *ret);
	r.sum.exit = UINT64_MAX;
	r.target.hold_fd = r.target.exec_err_fd = r.target.pidfd = -1;
	status = run(&r, err ? err : &own);
	clear(&r);
	if (status >= 0 && err)
		*err = (struct as_error){0}; /* of an engine or a thread that was passed over */
	return status;
}
