/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A thread's nodes -> stacks and tallies. */
#include <stdlib.h>
#include "heap/drain_priv.h"
#include "session/session.h"

enum { NODES_MAX = 1 << 16, ONCE_MAX = 1 << 14, DEPTH_MAX = 1 << 14 };

void as_drain_nodes_reset(struct as_drain_ring *r)
{
	r->nodes.n = 0;
	r->once.n = 0;
}

void as_drain_node_add(struct as_drain_ring *r, const struct as_rt_rec_node *rec)
{
	struct as_drain_node n = {.id = rec->id,
				  .parent = rec->parent,
				  .avma = rec->avma,
				  .flags = rec->flags,
				  .end = rec->end < AS_END_COUNT_ ? rec->end : AS_END_BAD,
				  .stack = AS_HEAP_NONE,
				  .tally = {AS_HEAP_NONE, AS_HEAP_NONE}};

	if (rec->id & AS_RT_NODE_ONCE) {
		if (r->once.n < ONCE_MAX)
			as_vec_push(&r->once, n);
		return;
	}
	if (!rec->id || rec->id >= NODES_MAX)
		return;
	while (r->nodes.n <= rec->id)
		as_vec_push(&r->nodes, (struct as_drain_node){0});
	r->nodes.v[rec->id] = n;
}

static struct as_drain_node *find(const struct as_drain_ring *r, uint32_t id)
{
	if (!(id & AS_RT_NODE_ONCE))
		return id < r->nodes.n && r->nodes.v[id].id ? &r->nodes.v[id] : NULL;
	for (size_t i = r->once.n; i-- > 0;) {
		if (r->once.v[i].id == id)
			return &r->once.v[i];
	}
	return NULL;
}

/* The byte before a return address is in the call: it may be the last of its function. */
static uint32_t frame_of(struct as_heap_drain *d, struct as_drain_process *p, uint64_t avma,
			 bool exact)
{
	struct as_heap_frame f = {.module = AS_HEAP_NONE, .addr = avma};
	uint64_t key = (avma & (UINT64_MAX >> 2)) << 1 | exact;
	const uint64_t *known = as_map64_get(&p->frame_of, key);
	uint32_t frame;

	if (known)
		return (uint32_t)*known;
	if (d->host.locate(d->host.ctx, p->pub.pid, avma - !exact, &f))
		f.addr += !exact;
	else
		f = (struct as_heap_frame){.module = AS_HEAP_NONE, .addr = avma};
	f.flags = exact ? AS_FRAME_EXACT : 0;
	frame = as_heap_frame_of(d->stacks, &f);
	*as_map64_put(&p->frame_of, key, NULL) = frame;
	return frame;
}

/* Nodes from id up to one whose stack is known (which is returned, NULL: none) into d->path.
 * False: a node is missing, or they go round in a circle. */
static bool climb(struct as_heap_drain *d, const struct as_drain_ring *r, uint32_t turn,
		  uint32_t id, const struct as_drain_node **ret)
{
	*ret = NULL;
	d->path.n = 0;
	while (id) {
		const struct as_drain_node *n = find(r, id);

		if (!n || d->path.n >= DEPTH_MAX)
			return false;
		if (n->turn == turn && n->stack != AS_HEAP_NONE) {
			*ret = n;
			return true;
		}
		as_vec_push(&d->path, id);
		id = n->parent;
	}
	return true;
}

static uint32_t stack_of(struct as_heap_drain *d, struct as_drain_ring *r,
			 struct as_drain_process *p, uint32_t id)
{
	const struct as_drain_node *from;
	uint32_t up = AS_HEAP_NONE;

	if (!climb(d, r, p->turn, id, &from)) {
		p->pub.bad++;
		return AS_HEAP_NONE;
	}
	if (from)
		up = from->stack;
	while (d->path.n) {
		struct as_drain_node *n = find(r, d->path.v[--d->path.n]);
		struct as_heap_stack s = {.parent = up, .end = (uint8_t)n->end};

		if (up != AS_HEAP_NONE && !(n->flags & AS_RT_NODE_TRUNCATED))
			s.end = d->stacks->stacks.v[up].end;
		s.frame = frame_of(d, p, n->avma, n->flags & AS_RT_NODE_EXACT);
		if (s.frame == AS_HEAP_NONE)
			return AS_HEAP_NONE;
		up = as_heap_stack_of(d->stacks, &s);
		if (up == AS_HEAP_NONE)
			return up;
		if (n->stack != up)
			n->tally[0] = n->tally[1] = AS_HEAP_NONE;
		n->stack = up;
		n->turn = p->turn;
	}
	return up;
}

bool as_drain_knows(const struct as_drain_ring *r, uint32_t node)
{
	return !node || find(r, node);
}

uint32_t as_drain_tally_many(struct as_heap_drain *d, struct as_drain_ring *r, uint32_t node,
			     enum as_heap_domain domain, uint64_t n_events)
{
	struct as_drain_process *p = &d->processes.v[r->process];
	struct as_drain_node *n = node ? find(r, node) : NULL;
	uint32_t *tally = &r->bare[domain], stack = AS_HEAP_NONE;

	if (n && n->turn == p->turn && n->tally[domain] != AS_HEAP_NONE) {
		stack = n->stack;
		tally = &n->tally[domain];
	} else if (n) {
		stack = stack_of(d, r, p, node);
		if (stack != AS_HEAP_NONE)
			tally = &n->tally[domain];
	}
	if (*tally == AS_HEAP_NONE)
		*tally = as_heap_tally(
			p->pub.heap,
			&(struct as_heap_key){r->thread,
					      stack == AS_HEAP_NONE ? AS_HEAP_NO_STACK : stack,
					      domain});
	if (stack != AS_HEAP_NONE && d->stacks->stacks.v[stack].end == AS_END_ROOT)
		p->pub.complete += n_events;
	else
		p->pub.cut += n_events;
	stack = *tally;
	if (node & AS_RT_NODE_ONCE)
		r->once.n = 0;
	return stack;
}
