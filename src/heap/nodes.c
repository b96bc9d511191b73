/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A thread's nodes -> stacks and tallies. */
#include <stdlib.h>
#include "heap/drain_priv.h"
#include "session/session.h"

_Static_assert(AS_LIVE_TALLIES <= AS_DRAIN_COMPLETE, "a bit is free");

#define NO_NODE ((struct as_drain_node){.stack = AS_HEAP_NONE, .tally = AS_HEAP_NONE})

enum { ONCE_MAX = 1 << 14, DEPTH_MAX = 1 << 14 };

void as_drain_nodes_reset(struct as_drain_ring *r)
{
	r->nodes.n = 0;
	r->was.n = 0;
	r->once.n = 0;
	as_vec_push(&r->nodes, NO_NODE); /* of what has no stack */
}

void as_drain_nodes_clear(struct as_drain_ring *r)
{
	as_vec_clear(&r->nodes);
	as_vec_clear(&r->was);
	as_vec_clear(&r->once);
}

void as_drain_node_add(struct as_drain_ring *r, const struct as_rt_rec_node *rec)
{
	const struct as_drain_node n = {
		.avma = rec->avma,
		.parent = rec->parent,
		.stack = AS_HEAP_NONE,
		.tally = AS_HEAP_NONE,
		.flags = (uint8_t)rec->flags,
		.end = (uint8_t)(rec->end < AS_END_COUNT_ ? rec->end : AS_END_BAD),
		.known = true};

	if (rec->id & AS_RT_NODE_ONCE) {
		if (r->once.n < ONCE_MAX)
			as_vec_push(&r->once, (struct as_drain_once){rec->id, n});
		return;
	}
	if (!rec->id || rec->id >= AS_RT_NODES)
		return;
	while (r->nodes.n <= rec->id)
		as_vec_push(&r->nodes, NO_NODE);
	r->nodes.v[rec->id] = n;
	if (rec->id < r->was.n)
		r->was.v[rec->id] = AS_HEAP_NONE;
}

static struct as_drain_node *find(const struct as_drain_ring *r, uint32_t id)
{
	if (!(id & AS_RT_NODE_ONCE))
		return id < r->nodes.n && r->nodes.v[id].known ? &r->nodes.v[id] : NULL;
	for (size_t i = r->once.n; i-- > 0;) {
		if (r->once.v[i].id == id)
			return &r->once.v[i].node;
	}
	return NULL;
}

/* Where modules were mapped or unmapped all addresses may mean something else. */
static void follow_turn(struct as_drain_ring *r, const struct as_drain_process *p)
{
	if (r->turn == p->turn)
		return;
	r->turn = p->turn;
	while (r->was.n < r->nodes.n)
		as_vec_push(&r->was, AS_HEAP_NONE);
	for (size_t i = 0; i < r->nodes.n; i++) {
		struct as_drain_node *n = &r->nodes.v[i];

		if (n->stack != AS_HEAP_NONE)
			r->was.v[i] = n->stack;
		n->stack = n->tally = AS_HEAP_NONE;
	}
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

/* Nodes from id up to one whose stack is known (*ret; AS_HEAP_NONE: none) into d->path. False: a node is
 * missing, or they go round in a circle. */
static bool climb(struct as_heap_drain *d, const struct as_drain_ring *r, uint32_t id,
		  uint32_t *ret)
{
	*ret = AS_HEAP_NONE;
	d->path.n = 0;
	while (id) {
		const struct as_drain_node *n = find(r, id);

		if (!n || d->path.n >= DEPTH_MAX)
			return false;
		if (n->stack != AS_HEAP_NONE) {
			*ret = n->stack;
			return true;
		}
		as_vec_push(&d->path, id);
		id = n->parent;
	}
	return true;
}

/* The node's stack of before, where no module is any more: a block may still be told that code which was
 * there allocated. AS_HEAP_NONE: there is one, or none was. */
static uint32_t unloaded(const struct as_heap_drain *d, const struct as_drain_ring *r,
			 uint32_t id, uint32_t frame)
{
	return id < r->was.n && d->stacks->frames.v[frame].module == AS_HEAP_NONE
		       ? r->was.v[id]
		       : AS_HEAP_NONE;
}

static uint32_t stack_of(struct as_heap_drain *d, struct as_drain_ring *r,
			 struct as_drain_process *p, uint32_t id)
{
	uint32_t up;

	if (!climb(d, r, id, &up)) {
		p->pub.bad++;
		return AS_HEAP_NONE;
	}
	while (d->path.n) {
		uint32_t at = d->path.v[--d->path.n];
		struct as_drain_node *n = find(r, at);
		struct as_heap_stack s = {.parent = up, .end = n->end};

		if (up != AS_HEAP_NONE && !(n->flags & AS_RT_NODE_TRUNCATED))
			s.end = d->stacks->stacks.v[up].end;
		s.frame = frame_of(d, p, n->avma, n->flags & AS_RT_NODE_EXACT);
		if (s.frame == AS_HEAP_NONE)
			return AS_HEAP_NONE;
		up = unloaded(d, r, at, s.frame);
		if (up == AS_HEAP_NONE)
			up = as_heap_stack_of(d->stacks, &s);
		if (up == AS_HEAP_NONE)
			return up;
		if (!(at & AS_RT_NODE_ONCE))
			n->stack = up;
	}
	return up;
}

bool as_drain_knows(const struct as_drain_ring *r, uint32_t node)
{
	return !node || find(r, node);
}

void as_drain_look_up(struct as_heap_drain *d, struct as_drain_ring *r, uint32_t node)
{
	struct as_drain_process *p = &d->processes.v[r->process];

	follow_turn(r, p);
	if (node && find(r, node))
		(void)stack_of(d, r, p, node);
}

static uint32_t tally_of(struct as_heap_drain *d, const struct as_drain_ring *r, uint32_t stack,
			 enum as_heap_domain domain)
{
	return as_heap_tally(
		d->processes.v[r->process].pub.heap,
		&(struct as_heap_key){
			r->thread, stack == AS_HEAP_NONE ? AS_HEAP_NO_STACK : stack, domain});
}

uint32_t as_drain_tally_many(struct as_heap_drain *d, struct as_drain_ring *r, uint32_t node,
			     enum as_heap_domain domain, uint64_t n_events)
{
	struct as_drain_process *p = &d->processes.v[r->process];
	bool kept = node < r->nodes.n && domain == AS_HEAP_BLOCKS, complete;
	uint32_t stack, tally;

	follow_turn(r, p);
	if (kept && r->nodes.v[node].tally != AS_HEAP_NONE) {
		tally = r->nodes.v[node].tally;
		complete = tally & AS_DRAIN_COMPLETE;
		tally &= ~AS_DRAIN_COMPLETE;
	} else {
		stack = node && find(r, node) ? stack_of(d, r, p, node) : AS_HEAP_NONE;
		complete =
			stack != AS_HEAP_NONE && d->stacks->stacks.v[stack].end == AS_END_ROOT;
		tally = tally_of(d, r, stack, domain);
		if (kept && (stack != AS_HEAP_NONE || !node))
			r->nodes.v[node].tally = tally | (complete ? AS_DRAIN_COMPLETE : 0);
	}
	if (complete)
		p->pub.complete += n_events;
	else
		p->pub.cut += n_events;
	if (node & AS_RT_NODE_ONCE)
		r->once.n = 0;
	d->tally = tally;
	return tally;
}
