/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Marks that come from outside: from the recorder's user, or through the control page. */
#include <string.h>
#include "heap/drain_priv.h"

void as_heap_drain_mark(struct as_heap_drain *d, uint32_t pid, const char *name, size_t n,
			uint64_t now_ns)
{
	as_heap_drain_settle(d, now_ns);
	as_vec_foreach (p, &d->processes) {
		if (p->pub.heap && (!pid || p->pub.pid == pid))
			as_heap_mark(p->pub.heap, name, n);
	}
	as_heap_drain_hide(d);
}

bool as_heap_drain_asked(struct as_heap_drain *d, uint64_t now_ns)
{
	struct as_rt_control *c = d->area.control;
	uint32_t asked = __atomic_load_n(&c->mark_asked, __ATOMIC_ACQUIRE);
	char name[AS_RT_MARK_BYTES];

	if (asked == d->mark_made)
		return false;
	d->mark_made = asked;
	memcpy(name, c->mark_name, sizeof name);
	as_heap_drain_mark(d, c->mark_pid, name, AS_MIN(c->mark_bytes, AS_RT_MARK_BYTES),
			   now_ns);
	/* pairs with the load in as_hook_mark, which waits for it */
	__atomic_store_n(&c->mark_made, asked, __ATOMIC_RELEASE);
	return true;
}
