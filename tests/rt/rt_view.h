/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A reader of the runtime's rings for tests: counts, and the stacks of nodes. And the truth: the
 * same stacks by the user-space unwinder.
 */
#ifndef RT_VIEW_H
#define RT_VIEW_H

#include <ucontext.h>
#include "abi/stack_end.h"
#include "base/mem.h"
#include "rt_host.h"
#include "unwind/unwind.h"

#define VIEW_RINGS 64
#define VIEW_DEPTH 2048
#define VIEW_ONCE  8192

struct view_stack {
	uint64_t avma[VIEW_DEPTH];
	uint32_t flags[VIEW_DEPTH];
	size_t n;
	uint32_t end;
	bool truncated;
};

struct view_ring {
	struct as_rt_rec_node node[AS_RT_NODES], once[VIEW_ONCE];
	uint64_t count[AS_RT_REC_KINDS], by_hook[AS_RT_REC_KINDS][RT_HOST_HOOKS];
	uint64_t bytes; /* of ALLOC and REALLOC */
	struct as_rt_rec_thread thread;
	struct rt_record last; /* the last record that is no NODE, RESET or TIME */
	uint64_t last_time_ns, unknown_nodes;
};

struct view {
	struct rt_host *host;
	struct view_ring *ring[VIEW_RINGS];
	/* called for each record, after it was taken in; may be NULL */
	void (*each)(struct view *v, uint32_t ring, const struct rt_record *r);
	void *ctx;
};

static inline struct as_rt_rec_node *view_node(struct view_ring *g, uint32_t id)
{
	struct as_rt_rec_node *n = id & AS_RT_NODE_ONCE ? &g->once[id & (VIEW_ONCE - 1)]
							: &g->node[id & (AS_RT_NODES - 1)];
	return n->id == id ? n : NULL;
}

/* The frames of a node, innermost first. False: it or an ancestor was never told. */
static inline bool view_stack(struct view_ring *g, uint32_t id, struct view_stack *ret)
{
	ret->n = 0;
	ret->truncated = false;
	while (id && ret->n < VIEW_DEPTH) {
		const struct as_rt_rec_node *n = view_node(g, id);
		if (!n)
			return false;
		ret->flags[ret->n] = n->flags;
		ret->avma[ret->n++] = n->avma;
		ret->truncated |= (n->flags & AS_RT_NODE_TRUNCATED) != 0;
		ret->end = n->end;
		id = n->parent;
	}
	return ret->n > 0;
}

static inline void view_record(void *ctx, uint32_t i, const struct rt_record *r)
{
	struct view *v = ctx;
	struct view_ring *g = v->ring[i];
	unsigned kind = r->u.head.kind & (AS_RT_REC_KINDS - 1);
	g->count[kind]++;
	g->by_hook[kind][r->u.head.hook % RT_HOST_HOOKS]++;
	if (kind == AS_RT_REC_NODE) {
		if (r->u.node.id & AS_RT_NODE_ONCE)
			g->once[r->u.node.id & (VIEW_ONCE - 1)] = r->u.node;
		else
			g->node[r->u.node.id & (AS_RT_NODES - 1)] = r->u.node;
	} else if (kind == AS_RT_REC_RESET) {
		memset(g->node, 0, sizeof g->node);
	} else if (kind == AS_RT_REC_THREAD) {
		memset(g->node, 0, sizeof g->node);
		g->thread = r->u.thread;
	} else if (kind == AS_RT_REC_TIME) {
		g->last_time_ns = r->u.time.clock_ns;
	} else {
		g->last = *r;
	}
	if (kind == AS_RT_REC_ALLOC) {
		struct view_stack s;
		g->bytes += r->u.alloc.size_bytes;
		g->unknown_nodes += r->u.alloc.node && !view_stack(g, r->u.alloc.node, &s);
	}
	if (kind == AS_RT_REC_REALLOC)
		g->bytes += r->u.realloc.size_bytes;
	if (v->each)
		v->each(v, i, r);
}

static inline void view_open(struct view *v, struct rt_host *h)
{
	*v = (struct view){.host = h};
	for (uint32_t i = 0; i < VIEW_RINGS && i < h->context_max; i++)
		v->ring[i] = as_xcalloc(1, sizeof *v->ring[i]);
}

static inline size_t view_drain(struct view *v)
{
	size_t n = 0;
	for (uint32_t i = 1; i < VIEW_RINGS && i < v->host->context_max; i++)
		n += rt_host_drain(v->host, i, view_record, v);
	v->host->control->heartbeat++;
	return n;
}

static inline void view_close(struct view *v)
{
	for (uint32_t i = 0; i < VIEW_RINGS; i++)
		free(v->ring[i]);
}

/* ---- truth ---- */

static inline bool truth_find(void *ctx, uint64_t avma, struct as_unwind_module *ret)
{
	struct rt_host *h = ctx;
	for (size_t i = 0; i < h->nmodules; i++) {
		struct rt_host_module *m = &h->module[i];
		if (avma < m->start || avma >= m->end)
			continue;
		*ret = (struct as_unwind_module){.table = m->has_table ? &m->table : NULL,
						 .bias = m->bias,
						 .start_avma = m->start,
						 .end_avma = m->end,
						 .id = (uint32_t)i};
		return true;
	}
	return false;
}

/* Its own stack: what a right walk reads can be read. */
static inline int truth_read(void *ctx, uint64_t avma, void *out, size_t n)
{
	(void)ctx;
	if (avma < 4096 || avma >> 47)
		return AS_E_IO;
	memcpy(out, (const void *)(uintptr_t)avma, n);
	return 0;
}

/*
 * The frames above the calling function's own, innermost first: its return address, its caller's
 * and so on.
 */
static __attribute__((noinline)) size_t truth_here(struct rt_host *h, struct as_uframe *frame,
						   size_t max, enum as_stack_end *ret_end)
{
	static const int greg[17] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
				     REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
				     REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
	struct as_unwind_env env = {
		.arch = AS_ARCH_X86_64, .ctx = h, .find = truth_find, .read = truth_read};
	struct as_uregs regs = {.valid = 0x1ffff};
	struct as_unwind_result res;
	ucontext_t u;
	getcontext(&u);
	for (int i = 0; i < 17; i++)
		regs.r[i] = (uint64_t)u.uc_mcontext.gregs[greg[i]];
	as_unwind(&env, &regs, frame, max, &res);
	*ret_end = res.end;
	/* this function, and the one that called it */
	size_t skip = res.nframes < 2 ? res.nframes : 2;
	memmove(frame, frame + skip, (res.nframes - skip) * sizeof *frame);
	return res.nframes - skip;
}

#endif
