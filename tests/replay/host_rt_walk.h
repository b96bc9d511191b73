/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The in-target walker (rt/walk.h) on the host: the registers of the first frame lie in a made
 * ucontext, other memory comes from a callback. One walker at a time.
 *
 *	struct host_rt_walk h = {.control = …, .read = …, .ctx = …};
 *	host_rt_run(&h, regs);
 *	h.n frames in h.avma and h.exact, reason in h.end
 */
#ifndef HOST_RT_WALK_H
#define HOST_RT_WALK_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "unwind/unwind.h"

#define HOST_RT_FRAMES 1024

struct host_rt_walk {
	struct as_rt_control *control; /* its module set is used */
	int (*read)(void *ctx, uint64_t avma, void *out, size_t n);
	void *ctx;
	uint64_t ucontext[23];
	uint64_t avma[HOST_RT_FRAMES];
	bool exact[HOST_RT_FRAMES];
	uint32_t n;
	enum as_stack_end end;
};

static inline bool host_rt_read(void *env, uint64_t avma, uint64_t *ret)
{
	struct host_rt_walk *h = env;
	if (avma - (uintptr_t)h->ucontext < sizeof h->ucontext) {
		memcpy(ret, (const void *)(uintptr_t)avma, 8);
		return true;
	}
	return h->read(h->ctx, avma, ret, 8) == 0;
}
#define AS_RT_READ(env, avma, ret) host_rt_read(env, avma, ret)

#include "rt/walk.h"

static inline void host_rt_run(struct host_rt_walk *h, const struct as_uregs *regs)
{
	uint64_t uc = (uintptr_t)h->ucontext;
	for (uint32_t i = 0; i < 17; i++)
		memcpy((void *)(uintptr_t)as_rt_uc_register(uc, i), &regs->r[i], 8);
	struct as_rt_walk w = {.pc = regs->r[16],
			       .sp = regs->r[7],
			       .fp = regs->r[6],
			       .slot = uc + AS_RT_UC_RIP,
			       .uc = uc};
	h->end = AS_END_DEPTH;
	for (h->n = 0; h->n < HOST_RT_FRAMES;) {
		bool exact = w.uc != 0;
		h->avma[h->n] = w.pc;
		h->exact[h->n++] = exact;
		struct as_rt_rule r = as_rt_find_rule(h->control, h->control->modules_seq,
						      w.pc - !exact, exact);
		if (as_rt_step(h, &w, &r) == AS_RT_STEP_END) {
			h->end = w.end;
			return;
		}
	}
}

#endif
