/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The folders that worktrees live in. */
#ifndef AS_BENCH_WORKTREE_PRIV_H
#define AS_BENCH_WORKTREE_PRIV_H

#include "bench/worktree.h"

/* For w->top: sets slot, tmp, lock; makes them; lets old ones go. */
int as_worktree_slot(struct as_worktrees *w, struct as_error *err);
/* Adds to the message that the disk of `folder` (may be NULL) is full, where it is. */
void as_worktree_say_full(const char *folder, struct as_error *err);

#endif
