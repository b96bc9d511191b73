/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Stacks of all threads and processes: one number per sequence of frames, one number per frame
 * (module and address in it, so that a library that is loaded twice at different places has one).
 * Numbers are dense from 0; a stack's parent has a smaller one. How the outermost frame ended
 * belongs to the stack: a stack that is cut is another than one that begins there.
 *
 * Memory: 20 to 27 bytes a stack, 48 a frame. Not thread safe.
 */
#ifndef AS_HEAP_STACKS_H
#define AS_HEAP_STACKS_H

#include "abi/stack_end.h"
#include "base/map.h"

#define AS_HEAP_STACKS_MAX (1u << 29)
#define AS_HEAP_FRAMES_MAX (1u << 28)
#define AS_HEAP_NONE       UINT32_MAX

struct as_heap_frame {
	uint64_t addr;
	uint32_t
		module; /* the caller's number; AS_HEAP_NONE: unknown memory, addr is an avma */
	uint32_t flags; /* AS_FRAME_* of session.h */
};
struct as_heap_stack {
	uint32_t parent; /* AS_HEAP_NONE: outermost */
	uint32_t frame;
	uint8_t end; /* enum as_stack_end */
};
struct as_heap_stacks {
	AS_VEC(struct as_heap_frame) frames;
	AS_VEC(struct as_heap_stack) stacks;
	struct as_map64 frame_of;
	struct as_slots stack_of;
	uint64_t refused; /* there was no room */
};

/* AS_HEAP_NONE: there is no room. */
uint32_t as_heap_frame_of(struct as_heap_stacks *s, const struct as_heap_frame *f);
uint32_t as_heap_stack_of(struct as_heap_stacks *s, const struct as_heap_stack *want);
void as_heap_stacks_clear(struct as_heap_stacks *s);

#endif
