/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The formats' writers, by the names of AS_EXPORTERS. */
#ifndef AS_EXCHANGE_EXCHANGE_PRIV_H
#define AS_EXCHANGE_EXCHANGE_PRIV_H

#include "exchange/exchange.h"

#define X(name, suffix, readable, kinds, summary)                                              \
	int as_export_write_##name(const struct as_model *m,                                   \
				   const struct as_export_options *o, struct as_sink *out,     \
				   struct as_error *err);
AS_EXPORTERS(X)
#undef X

/* What a function is called under the options. */
static inline const char *as_export_name(const struct as_export_options *o,
					 const struct as_m_function *f)
{
	return o->full_names ? f->full : f->brief;
}

struct as_selection;
/* Per function of the model: its file; where its record names none, that of the first place of a
 * frame that runs in it; "" where no place does. Caller frees the array. */
const char **as_export_files(const struct as_selection *s);

#endif
