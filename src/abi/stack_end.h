/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) AND Apache-2.0 */
/*
 * Why a stack ended. One list for the BPF unwinder, the user-space unwinder, the session file and
 * the reports. Numbers are stored in files: append only. Besides the reason a sample carries a
 * flag "repaired": the rest of the stack was read later than the sample was taken, and verified.
 */
#ifndef AS_ABI_STACK_END_H
#define AS_ABI_STACK_END_H

/*      number, NAME,    "key in JSON", "what it means to a reader" */
#define AS_STACK_ENDS(X)                                                                       \
	X(0, ROOT, "root", "complete down to the thread's first frame")                        \
	X(1, NOPROC, "no-process", "the process was not yet known")                            \
	X(2, NOMAP, "no-mapping", "an address lies in no known mapping")                       \
	X(3, NOCFI, "no-unwind-info", "a function has no unwind information")                  \
	X(4, EXPR, "unsupported-rule", "an unwind rule could not be evaluated")                \
	X(5, FAULT, "unreadable-stack", "the stack memory could not be read")                  \
	X(6, SHORT, "copy-too-short", "the copied part of the stack was too short")            \
	X(7, DEPTH, "too-deep", "more frames than the depth limit")                            \
	X(8, BAD, "implausible", "the next frame was not plausible")                           \
	X(9, NOSTACK, "no-user-stack", "kernel thread or no user registers")

enum as_stack_end {
#define X(n, NAME, key, text) AS_END_##NAME = n,
	AS_STACK_ENDS(X)
#undef X
		AS_END_COUNT_
};

#endif
