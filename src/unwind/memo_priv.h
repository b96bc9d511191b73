/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef AS_UNWIND_MEMO_PRIV_H
#define AS_UNWIND_MEMO_PRIV_H

#include "unwind/cfi_priv.h"
#include "unwind/unwind.h"

/* The FDE of svma, by the index u keeps for in, which is made after a few look-ups. u may be NULL. */
bool as_unwinder_find_fde(struct as_unwinder *u, const struct as_cfi_input *in,
			  const struct as_cfi_section sec[2], uint64_t svma,
			  struct as_fde *ret);

#endif
