// SPDX-License-Identifier: MIT OR Apache-2.0
// Names of the numbers in a Model's columns; src/ has the same under AS_… in the headers named.

// model/category.h
export const CATEGORIES = ['user', 'std', 'runtime', 'panic', 'allocator', 'library', 'kernel',
	'jit', 'marker', 'unknown'];

// model/model.h: functions.flags
export const FUNCTION_SYNTHETIC = 1; // no symbol: "module+0x1234", "[unknown 0x…]", "[jit]"
export const FUNCTION_COLD = 2;
export const FUNCTION_ALIASES = 4;
export const FUNCTION_MARKER = 8; // no code: "[truncated: …]", "[no user stack]"

// places.flags
export const PLACE_INLINED = 1;
export const PLACE_LINE_FROM_CALL = 2;

// session/session.h: frames.flags, samples.end
export const FRAME_EXACT = 1; // addr is a pc; without it a return address: code at addr - 1
export const FRAME_KERNEL = 2;
export const SAMPLE_END_MASK = 0xff;
export const SAMPLE_REPAIRED = 0x100;
export const SAMPLE_KERNEL = 0x200;

// abi/stack_end.h
export const END_ROOT = 0;
export const END_NOSTACK = 9;
export const END_COUNT = 10;
