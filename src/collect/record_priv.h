/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A recording while it goes on, shared by record.c (the session), record_run.c (a run of the
 * target) and record_look.c (is it enough?).
 */
#ifndef AS_COLLECT_RECORD_PRIV_H
#define AS_COLLECT_RECORD_PRIV_H

#include "base/mem.h"
#include "collect/collect.h"

/* A look that is going on in a process of its own. pid 0: none. */
struct as_look_child {
	pid_t pid;
	int fd; /* the judgement comes here */
};

struct as_recording {
	const struct as_recording_request *q;
	struct as_recording_outcome *out;
	struct as_session_writer *w;
	struct as_image *im;
	struct as_recorder *rec;
	off_t stdin_at; /* where runs begin to read; -1: it is no file */
	uint64_t first_ns, tick_ns, progress_ns;
	struct as_interrupt interrupt;

	/* the run that is going on, or was the last */
	struct as_target target;
	const struct as_collector *engine;
	void *ctx;
	struct as_engine_facts facts;
	uint64_t cpu_before_ns, start_ns, end_ns, ended_ns;
	uint64_t user0_ns, sys0_ns, user_ns,
		sys_ns; /* of an attached or still running target */
	uint64_t cpu_read_ns;

	/* the runs so far */
	struct as_rec_summary sum;
	bool has_failed;
	int failed_status;
	AS_VEC(double) ratios; /* ln of a run's time with recording over that without */
	double plain_ns;       /* time of the last run without; 0: none yet */
	uint64_t random;

	struct as_look_child look;
	uint64_t look_ns, look_runs; /* when the next look is due */
};

/* ---- record_run.c ---- */

int as_recording_open_target(struct as_recording *r, struct as_error *err);
/* From the opened target to the engine's end, with the figures of the run added to the session's.
 * *ret_started: the target has been let go. */
int as_recording_run(struct as_recording *r, bool *ret_started, struct as_error *err);
/* A run without an engine; leaves its time in plain_ns, 0 when it did not end by itself. */
int as_recording_run_plain(struct as_recording *r, struct as_error *err);
/* ns that a run took, without those it waited for a CPU that others had. */
double as_recording_time_taken(const struct as_target *t);
/* The launched program goes on after the recording: its exit status is still ours to give back. */
void as_recording_wait_for_target(struct as_recording *r);
/* As wait(2) would tell it. Interrupted and left running: as if the signal had ended it. */
int as_recording_target_status(const struct as_recording *r);
/* Seconds are meant for people: calls the request's progress now and then. */
void as_recording_progress(struct as_recording *r, uint64_t now, const char *what);

static inline int as_recording_interrupted(const struct as_recording *r)
{
	return r->q->interrupted ? *r->q->interrupted : 0;
}

static inline bool as_recording_has_runs(const struct as_recording *r)
{
	return r->q->argv && (r->q->runs > 1 || r->q->judge || r->q->measure_overhead);
}

/* ---- record_look.c ---- */

/* Begins a look where one is due, takes the judgement of one that has ended. `wait`: until there is
 * one, where one is due. True: it is enough. */
bool as_recording_look(struct as_recording *r, uint64_t now, bool wait);
void as_recording_end_look(struct as_recording *r); /* forgets one that is going on */

/* ---- record.c ---- */

void as_recording_facts(struct as_recording *r); /* INFO, ARG and RECORDING */

#endif
