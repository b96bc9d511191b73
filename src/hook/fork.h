/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A copy of a process that is held still: its memory as it is now, to be read while the process itself
 * goes on.
 *
 *	as_stop_all(pid, &stop, err);
 *	as_stop_fork(&stop, &copy, err);	a process without life: it never runs
 *	as_stop_resume(&stop);
 *	… process_vm_readv(copy, …)
 *	as_stop_end_fork(pid, copy);		it is gone, and the process has no child it does not know
 *
 * The copy is made by a clone system call in one of the threads, as fork would, but without a signal at
 * its end, so that neither SIGCHLD nor a wait of the process tells of it. It is held by ptrace, and killed
 * when the caller ends. Should it be let go in between, it ends at once: it has no stack, and all
 * signals are blocked. Its end is waited for in the place of its parent in a second stop.
 *
 * What is mapped MADV_DONTFORK is not in it; what is shared is not as of then. Cost: that of a fork, about
 * 10 ms for each GiB of resident memory; the process then pays for pages it writes to meanwhile. Thread
 * rule: as stop.h.
 */
#ifndef AS_HOOK_FORK_H
#define AS_HOOK_FORK_H

#include "hook/stop.h"

/* AS_E_LIMIT: the process may have no more children. */
int as_stop_fork(struct as_stop *s, pid_t *ret_copy, struct as_error *err);
void as_stop_end_fork(pid_t pid, pid_t copy);

#endif
