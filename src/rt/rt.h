/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The in-target runtime as bytes, for what puts it into a program: an image of struct as_rt_image
 * and position-independent code, built from this folder without relocations (abi/rt.h says how it
 * is set up and what it writes).
 *
 * x86-64 only; elsewhere as_rt_blob_bytes is 0.
 */
#ifndef AS_RT_RT_H
#define AS_RT_RT_H

extern const unsigned char as_rt_blob[]; /* 64-byte aligned */
extern const unsigned as_rt_blob_bytes;

#endif
