/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the files of cargo/ share. */
#ifndef AS_CARGO_CARGO_PRIV_H
#define AS_CARGO_CARGO_PRIV_H

#include <jansson.h>
#include "cargo/cargo.h"

extern const char *const as_cargo_kind_words[AS_CARGO_KINDS_];
/* Of a target object in cargo's JSON; false for build scripts and kinds of the future. */
bool as_cargo_kind_of(const json_t *target, enum as_cargo_kind *ret);

/* ---- build.c ---- */

const char *as_cargo_program(void);         /* $CARGO, else "cargo" */
char *as_cargo_folder_of(const char *path); /* caller frees */
/* Variables that cargo gives programs it runs. */
void as_cargo_set_package(struct as_cargo_built *b, const struct as_cargo_package *p);
void as_cargo_set_library_path(struct as_cargo_built *b);
/* m: a message of reason build-script-executed; nothing when it is of another package. */
void as_cargo_on_build_script(const json_t *m, const struct as_cargo_package *p,
			      struct as_cargo_built *ret);

#endif
