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

/* The slot of a stack, or the empty one where it would go. The table has numbers alone: so it stays in the
 * caches of the processor longer, and what was seen lately does too. */
static uint32_t *slot_of(const struct as_heap_stacks *s, const struct as_heap_stack *want)
{
	uint64_t key = (uint64_t)want->parent << 32 | want->frame;
	size_t i = as_mix64(key ^ (uint64_t)want->end << 27) & (s->nslots - 1);

	for (; s->slot[i]; i = (i + 1) & (s->nslots - 1)) {
		const struct as_heap_stack *have = &s->stacks.v[s->slot[i] - 1];

		if (have->parent == want->parent && have->frame == want->frame &&
		    have->end == want->end)
			break;
	}
	return &s->slot[i];
}

static void grow_slots(struct as_heap_stacks *s)
{
	free(s->slot);
	s->nslots = s->nslots ? 2 * s->nslots : 1024;
	s->slot = as_xcalloc(s->nslots, sizeof *s->slot);
	for (uint32_t i = 0; i < s->stacks.n; i++)
		*slot_of(s, &s->stacks.v[i]) = i + 1;
}

uint32_t as_heap_stack_of(struct as_heap_stacks *s, const struct as_heap_stack *want)
{
	uint32_t *at;

	if (s->stacks.n >= AS_HEAP_STACKS_MAX) {
		s->refused++;
		return AS_HEAP_NONE;
	}
	if ((s->stacks.n + 1) * 5 > s->nslots * 3)
		grow_slots(s);
	at = slot_of(s, want);
	if (!*at) {
		as_vec_push(&s->stacks, *want);
		*at = (uint32_t)s->stacks.n;
	}
	return *at - 1;
}

void as_heap_stacks_clear(struct as_heap_stacks *s)
{
	as_vec_clear(&s->frames);
	as_vec_clear(&s->stacks);
	as_map64_clear(&s->frame_of);
	free(s->slot);
	s->slot = NULL;
	s->nslots = 0;
}
