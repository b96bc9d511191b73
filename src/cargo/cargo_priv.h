/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the files of cargo/ share. */
#ifndef AS_CARGO_CARGO_PRIV_H
#define AS_CARGO_CARGO_PRIV_H

#include <jansson.h>
#include "cargo/cargo.h"

extern const char *const as_cargo_kind_words[AS_CARGO_KINDS_];
/* Of a target object in cargo's JSON; false for build scripts and kinds of the future. */
bool as_cargo_kind_of(const json_t *target, enum as_cargo_kind *ret);

#endif
