/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A process with in-target code in it: functions found, the code and its memory put there, the
 * functions patched; later all of it taken back.
 *
 *	struct as_hook_spec spec = {.image = as_rt_blob, …, .groups = AS_HOOKS_HEAP};
 *	as_hook_attach(pid, &spec, &h, err);		// a process that runs: two stops of < 1 ms
 *	…						// as_hook_shared(h): control page and rings
 *	as_hook_detach(h, err);				// every byte as it was
 *	as_hook_free(h);
 *
 *	as_hook_watch_exec(pid, err);			// a child held before its exec …
 *	as_hook_launch(pid, &spec, &h, err);		// … let go: up to where constructors begin
 *
 * What is in the target is laid out in abi/rt.h. Memory is mapped by system calls made in a stopped
 * thread, never by a library of the target; code is mapped r-x and written through /proc/PID/mem. The
 * order keeps the stops short: find and plan while it runs; stop, map, set every thread's gs base,
 * go on; write what nothing runs yet; stop, move the pc of threads that stand in the first bytes,
 * patch, go on.
 *
 * After the process has ended, or after as_hook_detach, the shared memory can still be read. The
 * code stays mapped after a detach: a thread may be in it.
 *
 * Thread rule: all calls for one process from one thread, the one that traces it. x86-64 only;
 * elsewhere everything is AS_E_UNSUPPORTED.
 */
#ifndef AS_HOOK_HOOKED_H
#define AS_HOOK_HOOKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "abi/rt.h"
#include "base/err.h"
#include "hook/allocators.h"
#include "hook/plan.h"
#include "image/image.h"

struct as_hook_known;

struct as_hook_spec {
	const void *image; /* struct as_rt_image and what follows */
	size_t image_bytes;
	unsigned groups;       /* enum as_hook_group: which functions */
	uint32_t context_max;  /* 0: AS_RT_CONTEXTS; fewer where address space is limited */
	uint32_t ring_bytes;   /* 0: 1 MiB */
	uint32_t flags;        /* enum as_rt_flags to begin with */
	uint32_t full_wait_us; /* AS_RT_WAIT_FULL: how long for room in a ring, at most */
	uint64_t sample_bytes; /* 0: every block; else one is chosen in about so many bytes */
	const char *cache_dir; /* of unwind tables; may be NULL */
	/* Where modules are known by; the caller's, and outlives what is hooked. NULL: one of its own.
	 * A process's map in it is as of the last look. */
	struct as_image *modules;
	/* What was found in these modules; the caller's, likewise. NULL: each process is looked through
	 * anew. */
	struct as_hook_known *known;
	uint64_t
		exec_wait_ns; /* as_hook_launch: how long to wait for the exec; 0: without end */
};

enum as_hook_state {
	AS_HOOK_REFUSED, /* see verdict */
	AS_HOOK_CHANGED, /* its bytes in the process are not those of the file */
	AS_HOOK_TOO_FAR, /* no room for code within reach */
	AS_HOOK_ACTIVE,
	AS_HOOK_GONE, /* its module was unloaded, or detached */
};

struct as_hook_function_info {
	const char *
		name; /* as the symbol table has it; lives as long as the as_hooked and spec.known */
	const char *module; /* path, as the target saw it */
	uint64_t svma, avma;
	uint16_t id; /* as_rt_hook.id, from 1 */
	uint8_t kind, group, family;
	uint8_t state;   /* enum as_hook_state */
	uint8_t verdict; /* enum as_detour_verdict */
	bool local;
	const char
		*layer; /* how it was found: "entry" by its name, "signature" by what it does */
};

struct as_hooked;

/* AS_E_NOTFOUND: nothing to patch in it. On failure the process is as it was, but for memory that was
 * mapped. */
int as_hook_attach(pid_t pid, const struct as_hook_spec *spec, struct as_hooked **ret,
		   struct as_error *err);

/*
 * A thread that is about to exec, and is held before it: a child of the caller, or one that waits in an
 * AS_RT_EXEC notice. From now on the caller traces it, and its exec stops it. It may be let go when
 * this has returned. tid: its thread id.
 */
int as_hook_watch_exec(pid_t tid, struct as_error *err);

/*
 * Whether a program keeps its rights when the caller traces it: of a command about to be started, and of
 * the program that an AS_RT_EXEC notice of h is about; both before as_hook_watch_exec. One that is setuid,
 * or gets capabilities from its file, runs without these rights when it is traced by somebody who is not
 * root, and has to be left alone: AS_E_ACCESS, with its name.
 */
int as_hook_check_program(const char *path, struct as_error *err);
int as_hook_check_notice(const struct as_hooked *h, const struct as_rt_rec_sync *notice,
			 struct as_error *err);

enum as_hook_watched {
	AS_HOOK_WATCH_NOTHING, /* it runs on; the exec may have failed, and another may follow */
	AS_HOOK_WATCH_EXEC, /* it stands behind its exec: as_hook_begin, or as_hook_unwatch */
	AS_HOOK_WATCH_END, /* it has ended; what waitpid said of a child of the caller is told */
};
/*
 * Without waiting. While a process is watched, its end is told here, and the caller must not wait for
 * it: waitpid would take its stops. pid: the process tid was a thread of, and what it is called after
 * the exec. ret_status may be NULL; -1 when its end is not the caller's to know.
 */
enum as_hook_watched as_hook_watch_poll(pid_t tid, pid_t pid, int *ret_status);
/* Lets go of it, whatever it does. */
void as_hook_unwatch(pid_t tid);

/*
 * Behind the exec: runs the program up to its dynamic linker's first notice that all modules are loaded
 * (a static one: nowhere), puts everything in, and lets it run, traced by nobody. Also on failure: a
 * program that cannot be patched runs on, and the reason is the error. AS_E_NOTFOUND: it ended.
 */
int as_hook_begin(pid_t pid, const struct as_hook_spec *spec, struct as_hooked **ret,
		  int *ret_status, struct as_error *err);

/* Both, for a child that is watched and let go: waits for the exec as long as that takes. */
int as_hook_launch(pid_t pid, const struct as_hook_spec *spec, struct as_hooked **ret,
		   int *ret_status, struct as_error *err);

/* After an AS_RT_MODULES notice, and before it is answered: functions of new modules are patched,
 * those of modules that have gone forgotten. Nothing of a new module has run yet, so that there is no
 * stop, but for one that lies far from all others: code has to be mapped near it. */
int as_hook_update(struct as_hooked *h, struct as_error *err);
/* The notice with that serial was acted upon: its thread goes on. */
void as_hook_answer(struct as_hooked *h, uint32_t serial);

/* Puts back every byte, and checks that it is there. Children that were forked and run the patched
 * code have to be named one by one. */
int as_hook_detach(struct as_hooked *h, struct as_error *err);
int as_hook_detach_child(struct as_hooked *h, pid_t child, struct as_error *err);
void as_hook_free(struct as_hooked *h); /* NULL is fine; does not detach */

pid_t as_hook_pid(const struct as_hooked *h);
/* struct as_rt_control, then the rings; NULL never. */
void *as_hook_shared(const struct as_hooked *h, size_t *ret_bytes);
int as_hook_shared_fd(const struct as_hooked *h); /* the file it is; h's */
const struct as_rt_home *as_hook_home(const struct as_hooked *h);
size_t as_hook_count(const struct as_hooked *h);
void as_hook_get(const struct as_hooked *h, size_t i, struct as_hook_function_info *ret);

/* Modules whose allocations cannot be seen: no symbol table, but an allocator inside. Returns their
 * number; the i-th one's path and what is in it ("jemalloc"). */
size_t as_hook_unseen_count(const struct as_hooked *h);
void as_hook_unseen(const struct as_hooked *h, size_t i, const char **ret_path,
		    const char **ret_what);
/* Why, where more is known than that; else NULL. */
const char *as_hook_unseen_why(const struct as_hooked *h, size_t i);

/*
 * Asks the recorder of a process, which is another process than the caller, for a mark, and waits for it
 * (1 s at most). AS_E_NOTFOUND: nobody records it. name: at most AS_RT_MARK_BYTES, not NUL-terminated.
 * Source: the control page in the target's memory; needs the rights that an attach needs.
 */
int as_hook_mark(pid_t pid, const char *name, size_t n, struct as_error *err);

/* What of its memory is assay's: code, tables, rings. Returns how many ranges there are, at most max. */
struct as_hook_range {
	uint64_t low, high; /* avma */
};
#define AS_HOOK_RANGES 64u /* enough */
size_t as_hook_memory(const struct as_hooked *h, struct as_hook_range *ret, size_t max);

struct as_hook_cost {
	uint64_t map_ns, patch_ns, detach_ns; /* how long the process stood still */
	size_t threads;                       /* that were stopped, last */
	size_t moved;                         /* whose pc stood in a window */
	size_t restarted;                     /* system calls begun again */
};
void as_hook_costs(const struct as_hooked *h, struct as_hook_cost *ret);

#endif
