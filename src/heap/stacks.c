/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "heap/stacks.h"

#include <stdlib.h>

uint32_t as_heap_frame_of(struct as_heap_stacks *s, const struct as_heap_frame *f)
{
	uint64_t key = as_mix64(f->addr ^ as_mix64((uint64_t)f->module << 32 | f->flags));

	if (s->frames.n >= AS_HEAP_FRAMES_MAX) {
		s->refused++;
		return AS_HEAP_NONE;
	}
	for (;; key++) {
		bool fresh;
		uint64_t *at = as_map64_put(&s->frame_of, key >> 1, &fresh);
		const struct as_heap_frame *have;

		if (fresh) {
			*at = s->frames.n;
			as_vec_push(&s->frames, *f);
			return (uint32_t)*at;
		}
		have = &s->frames.v[*at];
		if (have->addr == f->addr && have->module == f->module &&
		    have->flags == f->flags)
			return (uint32_t)*at;
	}
}

static uint64_t hash_of(const void *list, uint32_t number)
{
	const struct as_heap_stack *k = (const struct as_heap_stack *)list + number;

	return as_mix64(((uint64_t)k->parent << 32 | k->frame) ^ (uint64_t)k->end << 27);
}

uint32_t as_heap_stack_of(struct as_heap_stacks *s, const struct as_heap_stack *want)
{
	size_t at;

	if (s->stacks.n >= AS_HEAP_STACKS_MAX) {
		s->refused++;
		return AS_HEAP_NONE;
	}
	as_slots_reserve(&s->stack_of, hash_of, s->stacks.v);
	for (at = as_slots_home(&s->stack_of, hash_of(want, 0)); s->stack_of.slot[at];
	     at = as_slots_next(&s->stack_of, at)) {
		const struct as_heap_stack *have = &s->stacks.v[s->stack_of.slot[at] - 1];

		if (have->parent == want->parent && have->frame == want->frame &&
		    have->end == want->end)
			return s->stack_of.slot[at] - 1;
	}
	as_slots_put(&s->stack_of, at, (uint32_t)s->stacks.n);
	as_vec_push(&s->stacks, *want);
	return (uint32_t)s->stacks.n - 1;
}

void as_heap_stacks_clear(struct as_heap_stacks *s)
{
	as_vec_clear(&s->frames);
	as_vec_clear(&s->stacks);
	as_map64_clear(&s->frame_of);
	as_slots_clear(&s->stack_of);
}
