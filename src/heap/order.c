/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the order within one tick of the clock leaves open.
 *
 * A record is applied as soon as it fits (an allocation of an address that is free, a free of a block
 * that is there), and not before what it was in truth preceded by. Two things can then go wrong, and
 * both show when a record waits for another that never comes within its tick:
 *
 *	X: A F		Z: A		Z's allocation was applied first; X's finds the address taken
 *	X: A F		Y: F A		X's free took X's block, but was for Y's; Y's first finds none
 *
 * In the first case X's block covers Z's until X frees it. In the second X owes a free, which Y's
 * allocation pays. Who freed what is known by the threads; at the end of the tick the number of
 * blocks is right whatever the order was.
 */
#include "heap/drain_priv.h"

static struct as_drain_freed *freed_at(struct as_heap_drain *d, uint64_t ptr)
{
	return &d->freed[as_mix64(ptr) % AS_DRAIN_FREED];
}

void as_order_freed(struct as_heap_drain *d, const struct as_drain_ring *r, uint64_t ptr)
{
	if (d->rings.n > 1)
		*freed_at(d, ptr) =
			(struct as_drain_freed){ptr, r->time_ns, r->process, r->thread};
}

static void add_odd(struct as_heap_drain *d, const struct as_drain_odd *o)
{
	as_vec_push(&d->odd, *o);
	d->odd_at[as_drain_place(o->ptr)]++;
}

static bool has_odd(const struct as_heap_drain *d, uint64_t ptr)
{
	return d->odd.n && d->odd_at[as_drain_place(ptr)];
}

bool as_order_owe(struct as_heap_drain *d, const struct as_drain_ring *r, uint64_t ptr)
{
	struct as_drain_freed *f = freed_at(d, ptr);

	/* What a thread allocates after its own free is not what that free was for. */
	if (f->ptr != ptr || f->process != r->process || f->tick_ns != r->time_ns ||
	    f->thread == r->thread)
		return false;
	add_odd(d, &(struct as_drain_odd){.is_debt = true,
					  .process = r->process,
					  .thread = f->thread,
					  .ptr = ptr,
					  .tick_ns = r->time_ns});
	f->thread = r->thread;
	return true;
}

static bool is_about(const struct as_drain_odd *o, const struct as_drain_ring *r, uint64_t ptr,
		     bool is_debt)
{
	return o->is_debt == is_debt && o->ptr == ptr && o->process == r->process;
}

static void drop(struct as_heap_drain *d, size_t i)
{
	d->odd_at[as_drain_place(d->odd.v[i].ptr)]--;
	d->odd.v[i] = d->odd.v[--d->odd.n];
}

void as_order_pay(struct as_heap_drain *d, const struct as_drain_ring *r, uint64_t ptr)
{
	for (size_t i = 0; has_odd(d, ptr) && i < d->odd.n; i++) {
		struct as_drain_odd *o = &d->odd.v[i];

		if (!is_about(o, r, ptr, true) || o->thread == r->thread)
			continue;
		(void)as_heap_free(d->processes.v[r->process].pub.heap, o->thread,
				   ptr); /* it is there: just given out */
		as_order_uncover(d, r, ptr);
		drop(d, i);
		return;
	}
}

void as_order_cover(struct as_heap_drain *d, const struct as_drain_ring *r, uint64_t ptr)
{
	struct as_drain_odd o = {.process = r->process, .ptr = ptr, .tick_ns = r->time_ns};

	if (as_heap_hide(d->processes.v[r->process].pub.heap, ptr, &o.block))
		add_odd(d, &o);
}

static uint32_t thread_of(const struct as_heap *h, const struct as_live_block *b)
{
	return h->tallies.v[b->tally].key.thread;
}

static void swap(struct as_heap *h, struct as_drain_odd *o)
{
	struct as_live_block top;

	if (!as_heap_hide(h, o->ptr, &top))
		return;
	as_heap_show(h, o->ptr, &o->block);
	o->block = top;
}

void as_order_choose(struct as_heap_drain *d, const struct as_drain_ring *r, uint64_t ptr)
{
	const struct as_heap *h;
	struct as_live_block top;

	if (!has_odd(d, ptr))
		return;
	h = d->processes.v[r->process].pub.heap;
	if (!as_live_find(&h->live, ptr, &top) || thread_of(h, &top) == r->thread)
		return;
	as_vec_foreach (o, &d->odd) {
		if (is_about(o, r, ptr, false) && thread_of(h, &o->block) == r->thread) {
			swap(d->processes.v[r->process].pub.heap, o);
			return;
		}
	}
}

void as_order_uncover(struct as_heap_drain *d, const struct as_drain_ring *r, uint64_t ptr)
{
	if (!has_odd(d, ptr))
		return;
	for (size_t i = d->odd.n; i-- > 0;) {
		if (!is_about(&d->odd.v[i], r, ptr, false))
			continue;
		as_heap_show(d->processes.v[r->process].pub.heap, ptr, &d->odd.v[i].block);
		drop(d, i);
		return;
	}
}

void as_order_close(struct as_heap_drain *d, uint64_t until_ns)
{
	for (size_t i = 0; i < d->odd.n;) {
		struct as_drain_odd *o = &d->odd.v[i];
		struct as_heap *h = d->processes.v[o->process].pub.heap;

		if (o->tick_ns >= until_ns && until_ns != UINT64_MAX) {
			i++;
			continue;
		}
		if (o->is_debt) {
			as_heap_unmatched_free(h);
		} else {
			swap(h, o);
			as_heap_end_unseen(h, o->ptr);
			as_heap_show(h, o->ptr, &o->block);
		}
		drop(d, i);
	}
}
