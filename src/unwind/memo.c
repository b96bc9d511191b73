/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unwind/memo_priv.h"
#include "base/mem.h"

#include <stdlib.h>

/* Modules whose CFI is asked for at the same time; the least used one makes room. */
#define SLOTS                32
/* Reading a module's CFI through costs about a tenth of indexing it. */
#define LOOKUPS_BEFORE_INDEX 8

struct slot {
	const uint8_t *eh_frame, *debug_frame;
	size_t eh_frame_len, debug_frame_len;
	uint64_t lookups;
	bool indexed;
	struct as_cfi_index index;
};

struct as_unwinder {
	struct slot slot[SLOTS];
};

struct as_unwinder *as_unwinder_new(void)
{
	return as_xcalloc(1, sizeof(struct as_unwinder));
}

void as_unwinder_free(struct as_unwinder *u)
{
	if (!u)
		return;
	for (size_t i = 0; i < SLOTS; i++)
		as_cfi_index_clear(&u->slot[i].index);
	free(u);
}

static struct slot *slot_of(struct as_unwinder *u, const struct as_cfi_section sec[2])
{
	struct slot *least = &u->slot[0];
	for (size_t i = 0; i < SLOTS; i++) {
		struct slot *s = &u->slot[i];
		if (s->lookups && s->eh_frame == sec[0].p && s->eh_frame_len == sec[0].n &&
		    s->debug_frame == sec[1].p && s->debug_frame_len == sec[1].n)
			return s;
		if (s->lookups < least->lookups)
			least = s;
	}
	as_cfi_index_clear(&least->index);
	*least = (struct slot){
		.eh_frame = sec[0].p,
		.debug_frame = sec[1].p,
		.eh_frame_len = sec[0].n,
		.debug_frame_len = sec[1].n,
	};
	return least;
}

bool as_unwinder_find_fde(struct as_unwinder *u, const struct as_cfi_input *in,
			  const struct as_cfi_section sec[2], uint64_t svma, struct as_fde *ret)
{
	if (!u)
		return as_cfi_scan_find(sec, svma, ret);
	struct slot *s = slot_of(u, sec);
	s->lookups++;
	if (!s->indexed && s->lookups > LOOKUPS_BEFORE_INDEX)
		s->indexed = !as_cfi_index_build(in, &s->index, NULL);
	if (s->indexed)
		return as_cfi_index_find(&s->index, sec, svma, ret);
	return as_cfi_scan_find(sec, svma, ret);
}
