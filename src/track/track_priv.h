/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Inside of track.h. "Main": the thread that called as_track; "drainer": the second one. */
#ifndef AS_TRACK_TRACK_PRIV_H
#define AS_TRACK_TRACK_PRIV_H

#include <pthread.h>
#include "base/mem.h"
#include "heap/drain.h"
#include "heap/write.h"
#include "hook/hooked.h"
#include "hook/known.h"
#include "track/track.h"

#define AS_TRACK_RING_BYTES   (4u << 20)
#define AS_TRACK_FULL_WAIT_US 500000u     /* how long a thread waits for room in its ring */
#define AS_TRACK_ENDS_NS      50000000ull /* between two looks for threads that have ended */
#define AS_TRACK_NAME         16

struct as_track;

struct as_track_thread {
	uint32_t tid;
	uint64_t start_ns;
	char name[AS_TRACK_NAME];
	bool over;    /* it has ended; no name can be read any more */
	bool renamed; /* since it was written */
};

/* One heap. Made by the drainer at the process's first event; under the area's lock. */
struct as_track_process {
	uint32_t pid;
	uint64_t start_ns;
	int pidfd; /* -1: it was gone before we could look */
	bool ended;
	char name[AS_TRACK_NAME];
	struct as_heap *heap;
	AS_VEC(struct as_track_thread) threads; /* in the order of the heap's */
	size_t named; /* of the first ones no other name is looked for */
	/* main's: what the session knows of it */
	uint32_t id; /* AS_RECORDER_NONE: nothing yet */
	size_t threads_written;
	AS_VEC(uint32_t) ids; /* of those threads in the session */
	struct as_heap_written written;
};

/* Where the code of a process is, for the drainer; under the area's map_lock. */
struct as_track_map {
	uint32_t pid;
	struct as_mapping *v;
	size_t n;
};

/* Something that a thread of a target waits for. */
struct as_track_sync {
	struct as_track_area *area;
	struct as_rt_rec_sync r;
};

struct as_track_event {
	struct as_log_event e; /* thread: of the heap; stack: of the area */
	struct as_track_process *process;
};
typedef AS_VEC(struct as_track_event) as_track_events;

/* A program with the runtime in it, and all forks of it: they share its rings. */
struct as_track_area {
	struct as_track *k;
	struct as_hooked *h; /* main's */
	pid_t pid;
	uint32_t parent; /* process in the session; AS_RECORDER_NONE none */
	uint64_t start_ns;
	char name[AS_TRACK_NAME];
	struct as_heap_area shared;
	/* main's */
	uint32_t id;              /* of the program itself in the session */
	AS_VEC(uint32_t) node_of; /* stack -> node of the recorder */
	AS_VEC(struct as_mapping) maps_written;
	uint32_t answered;        /* serial of the last notice that was */
	AS_VEC(uint32_t) handled; /* beyond it */
	uint64_t handled_ns;      /* since when there is one */
	uint64_t empty_ns;        /* when nobody was left in it; 0: somebody is */
	uint64_t closed_round;    /* of the drainer, when it was closed */
	bool replaced;            /* its program has executed another */
	unsigned missed;          /* how often the drainer was at it */
	int pidfd;
	/* both threads', under lock */
	pthread_mutex_t lock;
	bool closed; /* the drainer leaves it alone */
	struct as_heap_drain *drain;
	struct as_heap_stacks stacks;
	as_track_events events; /* not written yet */
	AS_VEC(struct as_track_process *) processes;
	uint64_t look_ns; /* drainer's: next look for ends */
	uint32_t wants;   /* drainer's: control.ring_wants at the last one */
	int marks;        /* drainer's: of as_track_request.marks, those that were made */
	/* both threads', under map_lock */
	pthread_mutex_t map_lock;
	AS_VEC(struct as_track_map) maps;
	AS_VEC(uint32_t) execs; /* processes that have executed another program */
};

/* A process that is traced because one of its threads is about to exec. */
struct as_track_watch {
	pid_t tid, pid;
	uint32_t parent; /* process in the session that ran there before, or its parent */
};

struct as_track {
	const struct as_track_request *q;
	struct as_recording_outcome *out;
	struct as_session_writer *w;
	struct as_image *im;
	struct as_recorder *rec;
	struct as_target target;
	struct as_interrupt interrupt;
	struct as_hook_spec spec;
	struct as_engine engine; /* collector NULL: CPU samples are not taken */
	int engine_wait_ms;      /* when it wants to be drained again */
	struct as_heap_writer writer;
	as_track_events events; /* that are being written */
	struct as_log_out events_out;
	uint64_t start_ns, end_ns, cpu_before_ns;
	uint64_t until_ns; /* UINT64_MAX: no limit */
	uint64_t tick_ns, save_ns, state_ns, collect_ns, resident_ns;
	bool saved;                  /* once, at least */
	struct as_track_state ended; /* sums over what has been closed */
	AS_VEC(struct as_track_watch) watches;
	AS_VEC(struct as_track_area *) closed; /* the drainer may still know them */
	struct as_rec_summary sum;

	/* both threads', under list_lock */
	pthread_mutex_t list_lock;
	AS_VEC(struct as_track_area *) areas; /* main changes it */
	AS_VEC(struct as_track_sync) syncs;
	uint64_t rounds; /* of the drainer, begun */
	int wake_fd;     /* eventfd: there is a sync */

	/* the drainer */
	pthread_t drainer;
	bool draining;
	bool stop;                            /* atomic */
	AS_VEC(struct as_track_area *) round; /* drainer's copy of areas */
};

/* area.c: main */
struct as_track_area *as_track_area_add(struct as_track *k, struct as_hooked *h,
					uint32_t parent);
/* Where assay's code is in its program, so that frames and samples of it are known. */
void as_track_claim(struct as_track_area *a);
/* pid has executed another program: it is over in all areas it was in. */
void as_track_end_earlier(struct as_track *k, pid_t pid);
/* Areas that nobody is left in are written and given back. */
void as_track_areas_collect(struct as_track *k, uint64_t now_ns);
/* Takes the runtime out of everything that runs on. */
void as_track_areas_detach(struct as_track *k);
/* Reads what is left, writes and frees it. The drainer must have left it alone. */
void as_track_area_close(struct as_track *k, struct as_track_area *a);
void as_track_area_free(struct as_track_area *a);
void as_track_areas_resident(struct as_track *k);
void as_track_areas_state(struct as_track *k, struct as_track_state *ret);
/* The name of a process or thread as the kernel has it; false: it is gone, and ret as before. */
bool as_track_name(pid_t pid, pid_t tid, char ret[AS_TRACK_NAME]);

/* watch.c: main, but for as_track_locate */
int as_track_watch(struct as_track *k, pid_t tid, pid_t pid, uint32_t parent,
		   struct as_error *err);
bool as_track_is_watched(const struct as_track *k, pid_t pid);
void as_track_watches_poll(struct as_track *k);
void as_track_watches_end(struct as_track *k);
void as_track_syncs(struct as_track *k);
/* The area's map as the image has it now: for the drainer and the session. */
void as_track_map_publish(struct as_track_area *a, pid_t pid);
bool as_track_locate(void *area, uint32_t pid, uint64_t avma, struct as_heap_frame *ret);

/* drain.c */
int as_track_drainer_start(struct as_track *k, struct as_error *err);
void as_track_drainer_stop(struct as_track *k);
/* What drains are told with, for as_heap_drain_new. */
void as_track_host(struct as_track_area *a, struct as_heap_host *ret);

/* events.c. All of them do nothing where events are not asked for. */
void as_track_events_ask(const struct as_track *k, struct as_heap_host *host);
/* The area's lock is held: its rings are not to be read. */
bool as_track_events_full(const struct as_track_area *a);
/* main: what is there of one, whose lock is held; of all. */
void as_track_events_save(struct as_track_area *a);
void as_track_events_save_all(struct as_track *k);

/* look.c: main. A process that is there; at_exit: it is about to end, and waits for the answer. */
void as_track_look(struct as_track_area *a, pid_t pid, const struct as_rt_rec_sync *at_exit);
/* All processes of the area that run on. */
void as_track_look_at_all(struct as_track_area *a);

/* cpu.c: main. All of them do nothing where CPU samples are not taken. */
/* While the target is held, or just attached to. */
int as_track_cpu_open(struct as_track *k, struct as_error *err);
int as_track_cpu_start(struct as_track *k, struct as_error *err);
int as_track_cpu_drain(struct as_track *k, struct as_error *err);
/* Reads what is left and closes it; its figures into the summary. */
void as_track_cpu_stop(struct as_track *k);
void as_track_cpu_close(struct as_track *k); /* without that */

/* save.c: main, the area's lock is held (or nobody else has it) */
/* `last`: it has ended, and as_heap_finish was called. */
void as_track_save(struct as_track_area *a, struct as_track_process *p,
		   const struct as_heap_drained *d, bool last);
/* All processes of all areas, as they are now. */
void as_track_save_all(struct as_track *k);
/* Of all processes that go on: what saving them costs. */
uint64_t as_track_rows(struct as_track *k);
/* What is new of them is written and has its ids, so that others can name it. */
void as_track_name_threads(struct as_track_area *a, struct as_track_process *p);
void as_track_push_stacks(struct as_track_area *a);
/* Functions of allocators that could not be patched, as notes. */
void as_track_save_unseen(struct as_track_area *a);
void as_track_save_maps(struct as_track *k, struct as_track_area *a);

#endif
