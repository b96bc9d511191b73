/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What record.c needs to know of an engine beyond its vtable. */
#ifndef AS_COLLECT_COLLECTORS_PRIV_H
#define AS_COLLECT_COLLECTORS_PRIV_H

#include "collect/collect.h"

void as_collector_facts(const struct as_collector *c, void *engine,
			struct as_engine_facts *ret);

#endif
