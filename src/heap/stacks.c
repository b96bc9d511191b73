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

uint32_t as_heap_stack_of(struct as_heap_stacks *s, const struct as_heap_stack *want)
{
	/* 30 + 28 + 5 bits: the key is exact */
	uint64_t key = (uint64_t)(want->parent + 1) << 33 | (uint64_t)want->frame << 5 |
		       (want->end & 31);
	bool fresh;
	uint64_t *at;

	_Static_assert(AS_END_COUNT_ <= 32, "end fits the key");
	if (s->stacks.n >= AS_HEAP_STACKS_MAX) {
		s->refused++;
		return AS_HEAP_NONE;
	}
	at = as_map64_put(&s->stack_of, key, &fresh);
	if (fresh) {
		*at = s->stacks.n;
		as_vec_push(&s->stacks, *want);
	}
	return (uint32_t)*at;
}

void as_heap_stacks_clear(struct as_heap_stacks *s)
{
	as_vec_clear(&s->frames);
	as_vec_clear(&s->stacks);
	as_map64_clear(&s->frame_of);
	as_map64_clear(&s->stack_of);
}
