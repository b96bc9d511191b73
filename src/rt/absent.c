/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* In place of the image where there is none: the runtime is x86-64 code. */
#include "rt/rt.h"

const unsigned char as_rt_blob[1];
const unsigned as_rt_blob_bytes = 0;
