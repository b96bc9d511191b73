/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the writer of pprof files shares with its mappings. */
#ifndef AS_EXCHANGE_PPROF_PRIV_H
#define AS_EXCHANGE_PPROF_PRIV_H

#include "base/map.h"
#include "exchange/exchange_priv.h"
#include "model/profile/selection.h"

/* A module's place in the profile's one address space. */
struct as_pprof_mapping {
	uint64_t start, limit, off; /* limit: one past the last byte */
	uint64_t delta;             /* added to a frame's address */
	bool used;
	/* what some frame of the module has */
	bool has_files, has_lines, has_inlines;
};

struct as_pprof_mappings {
	struct as_pprof_mapping
		*v; /* per module of the model, and one for kernel code of none */
	size_t n;
	uint32_t main; /* the recorded program; AS_NONE: not known */
};
void as_pprof_mappings_make(const struct as_selection *s, struct as_pprof_mappings *ret);
void as_pprof_mappings_clear(struct as_pprof_mappings *p);
/* Index of a frame's mapping, AS_NONE: unknown memory. */
uint32_t as_pprof_mapping_of(const struct as_pprof_mappings *p, const struct as_m_frame *f);
/* In the mapping's address space; callers one byte before the address they return to. */
uint64_t as_pprof_address(const struct as_pprof_mappings *p, const struct as_m_frame *f);
/* Appends the Mapping messages (field 3), the main binary first; their texts go to strings. */
void as_pprof_mappings_write(const struct as_pprof_mappings *p, const struct as_model *m,
			     struct as_intern *strings, struct as_buf *out);

/* Index of a text in the string table; invalid UTF-8 is mended. */
uint32_t as_pprof_string(struct as_intern *strings, const char *s);

#endif
