/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Architectures of targets. Registers are numbered as DWARF does for the architecture. */
#ifndef AS_ABI_ARCH_H
#define AS_ABI_ARCH_H

enum as_arch {
	AS_ARCH_NONE = 0,
	/* DWARF: 3 rbx, 5 rdi, 6 rbp, 7 rsp, 8-15 r8-r15, 16 return address/rip */
	AS_ARCH_X86_64 = 1,
	AS_ARCH_AARCH64 = 2, /* DWARF: 0-30 x, 29 fp, 30 lr, 31 sp, 32 pc, 34 ra_sign_state */
};

#endif
