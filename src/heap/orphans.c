/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Ends of blocks whose beginning was not read yet. When it is read, the first end behind it is its own: two
 * blocks at one address are never there at a time.
 */
#include "heap/drain_priv.h"

static uint32_t *place(struct as_heap_drain *d, uint64_t ptr)
{
	return &d->orphan_at[as_mix64(ptr) % AS_DRAIN_PLACES];
}

void as_orphan_add(struct as_heap_drain *d, const struct as_drain_orphan *o)
{
	uint32_t *at = place(d, o->ptr);
	struct as_drain_orphan own = *o;

	own.next = *at;
	as_vec_push(&d->orphans, own);
	*at = (uint32_t)d->orphans.n;
}

/* The link that leads to orphan number i + 1. */
static uint32_t *link_to(struct as_heap_drain *d, uint32_t i)
{
	uint32_t *at = place(d, d->orphans.v[i].ptr);

	while (*at != i + 1)
		at = &d->orphans.v[*at - 1].next;
	return at;
}

/* The last one takes its place. */
static struct as_drain_orphan take(struct as_heap_drain *d, uint32_t i)
{
	struct as_drain_orphan o = d->orphans.v[i];
	uint32_t last = (uint32_t)d->orphans.n - 1;

	*link_to(d, i) = o.next;
	if (i != last) {
		*link_to(d, last) = i + 1;
		d->orphans.v[i] = d->orphans.v[last];
	}
	d->orphans.n--;
	return o;
}

/* The earliest end of a block at ptr after `born`, + 1; 0: none. */
static uint32_t find(const struct as_heap_drain *d, uint32_t process, uint64_t ptr,
		     uint64_t born)
{
	uint32_t best = 0, at;

	if (!d->orphans.n)
		return 0;
	at = d->orphan_at[as_mix64(ptr) % AS_DRAIN_PLACES];
	for (; at; at = d->orphans.v[at - 1].next) {
		const struct as_drain_orphan *o = &d->orphans.v[at - 1];

		if (o->ptr == ptr && o->process == process && o->stamp > born &&
		    (!best || o->stamp < d->orphans.v[best - 1].stamp))
			best = at;
	}
	return best;
}

bool as_orphan_find(const struct as_heap_drain *d, uint32_t process, uint64_t ptr,
		    uint64_t born)
{
	return find(d, process, ptr, born) != 0;
}

bool as_orphan_take(struct as_heap_drain *d, uint32_t process, uint64_t ptr, uint64_t born,
		    struct as_drain_orphan *ret)
{
	uint32_t at = find(d, process, ptr, born);

	if (at)
		*ret = take(d, at - 1);
	return at != 0;
}

bool as_orphan_take_begun(struct as_heap_drain *d, const struct as_drain_ring *r, uint64_t ptr,
			  struct as_drain_orphan *ret)
{
	if (!d->orphans.n)
		return false;
	for (uint32_t at = *place(d, ptr); at; at = d->orphans.v[at - 1].next) {
		const struct as_drain_orphan *o = &d->orphans.v[at - 1];

		if (o->ptr != ptr || o->process != r->process || o->thread != r->thread ||
		    o->kind != AS_DRAIN_BEGUN)
			continue;
		*ret = take(d, at - 1);
		return true;
	}
	return false;
}

static void count(struct as_heap_drain *d, const struct as_drain_orphan *o)
{
	struct as_heap *h = d->processes.v[o->process].pub.heap;

	if (o->kind == AS_DRAIN_FREED)
		as_heap_unmatched_free(h);
	else if (o->kind == AS_DRAIN_CHANGED)
		h->unmatched_reallocs++;
}

void as_orphans_close(struct as_heap_drain *d, uint32_t process)
{
	for (uint32_t i = (uint32_t)d->orphans.n; i-- > 0;) {
		struct as_drain_orphan o;

		if (process != AS_HEAP_NONE && d->orphans.v[i].process != process)
			continue;
		o = take(d, i);
		count(d, &o);
	}
}

void as_orphans_close_doubtful(struct as_heap_drain *d)
{
	for (uint32_t i = (uint32_t)d->orphans.n; i-- > 0;) {
		struct as_drain_orphan o;

		if (!d->orphans.v[i].doubtful)
			continue;
		o = take(d, i);
		count(d, &o);
	}
}

void as_orphans_doubt(struct as_heap_drain *d)
{
	as_vec_foreach (o, &d->orphans)
		o->doubtful = true;
}

void as_orphans_trust(struct as_heap_drain *d, uint32_t process, uint64_t ptr)
{
	for (uint32_t at = *place(d, ptr); at; at = d->orphans.v[at - 1].next) {
		struct as_drain_orphan *o = &d->orphans.v[at - 1];

		if (o->ptr == ptr && o->process == process)
			o->doubtful = false;
	}
}
