/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* User registers asked for in samples, in the order of perf's bit numbers, and their DWARF
 * numbers. */
#ifndef AS_COLLECT_PERF_REGS_PRIV_H
#define AS_COLLECT_PERF_REGS_PRIV_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#if defined(__x86_64__)
/* perf bits: ax bx cx dx si di bp sp ip (0-8), r8-r15 (16-23) */
#define AS_PERF_REGS_MASK    0xff01ffull
#define AS_PERF_NREGS        17
#define AS_PERF_DWARF_SP     7
#define AS_PERF_RA_BELOW_CFA true /* the return address stands right below the CFA */
#define AS_PERF_ARCH         AS_ARCH_X86_64
static const uint8_t as_perf_reg_dwarf[AS_PERF_NREGS] = {0, 3, 2,  1,  4,  5,  6,  7, 16,
							 8, 9, 10, 11, 12, 13, 14, 15};
#elif defined(__aarch64__)
/* perf bits: x0-x29, lr, sp, pc (0-32): the same numbers as in DWARF */
#define AS_PERF_REGS_MASK    0x1ffffffffull
#define AS_PERF_NREGS        33
#define AS_PERF_DWARF_SP     31
#define AS_PERF_RA_BELOW_CFA false
#define AS_PERF_ARCH         AS_ARCH_AARCH64
static const uint8_t as_perf_reg_dwarf[AS_PERF_NREGS] = {
	0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
	17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32};
#else
#error "which user registers does perf sample here?"
#endif

#endif
