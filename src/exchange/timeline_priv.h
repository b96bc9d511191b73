/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the formats with a time line share (firefox, speedscope, chrome): samples by thread, the
 * functions of a group outermost first, losses with their times, and columns of numbers written
 * without a call to printf each.
 *
 *	as_by_thread_init(&by, sel);
 *	for (uint32_t k = by.first[t]; k < by.first[t + 1]; k++)
 *		sample by.at[k] of the model belongs to thread t; ascending in time
 *
 * Thread rule: none of it is shared.
 */
#ifndef AS_EXCHANGE_TIMELINE_PRIV_H
#define AS_EXCHANGE_TIMELINE_PRIV_H

#include "base/sink.h"
#include "model/model.h"
#include "model/profile/selection.h"

struct as_by_thread {
	uint32_t *first; /* per thread of the model, and one more */
	uint32_t *at;    /* index into model->samples */
};
void as_by_thread_init(struct as_by_thread *b, const struct as_selection *s);
void as_by_thread_clear(struct as_by_thread *b);

static inline uint32_t as_sample_group(const struct as_selection *s, uint32_t sample)
{
	return s->group[sample - s->lo];
}

/* Threads with kept samples: by process, a process's main thread first, then by tid. Caller
 * frees; *ret_n is s->n_threads. */
uint32_t *as_threads_in_order(const struct as_selection *s, size_t *ret_n);

/* A number may be used again while the recording runs. How many processes, or threads of the same
 * process, before this one had it; threads: in order, i an index into them. */
unsigned as_pid_round(const struct as_model *m, uint32_t process);
unsigned as_tid_round(const struct as_model *m, const uint32_t *threads, size_t i);

struct as_path {
	AS_VEC(uint32_t) v; /* functions, outermost first */
	AS_VEC(uint32_t) stacks;
};
/* A stack without any shown frame is empty. */
void as_path_of(const struct as_selection *s, uint32_t group, struct as_path *ret);
void as_path_clear(struct as_path *p);

struct as_lost {
	uint64_t time_ns; /* begins; 0: unknown */
	uint64_t end_ns;
	uint64_t count;
};
struct as_lost_list {
	AS_VEC(struct as_lost) v; /* sorted by time; what has no known time comes first */
	uint64_t total;
};
/* Losses of the whole session, as each CPU's ticks tell them: they are nobody's, so that filters
 * do not change them. */
void as_lost_list_make(const struct as_model *m, struct as_lost_list *ret);
void as_lost_list_clear(struct as_lost_list *l);

/* Time since the recording began; what came before counts as its beginning. */
static inline uint64_t as_since_start(const struct as_model *m, uint64_t time_ns)
{
	return time_ns > m->recording.start_ns ? time_ns - m->recording.start_ns : 0;
}
/* When the recording ended, for a session without its end: the last sample. */
uint64_t as_recording_end(const struct as_model *m);

void as_put_u64(struct as_buf *b, uint64_t v);
/* v / 10^digits as an exact decimal fraction without trailing zeros; digits <= 9. */
void as_put_scaled(struct as_buf *b, uint64_t v, unsigned digits);

#endif
