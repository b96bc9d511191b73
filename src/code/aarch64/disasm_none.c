/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A build without Capstone. */
#include "code/disasm_priv.h"

const struct as_disasm_ops as_disasm_aarch64 = {.unit_bytes = 4};
