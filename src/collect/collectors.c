/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The table of engines, best first. */
#include "collect/collectors_priv.h"

#include <string.h>

static const struct {
	const struct as_collector *c;
	void (*facts)(void *c, struct as_engine_facts *ret);
} engines[] = {
	{&as_engine_kernel, as_engine_kernel_facts},
	{&as_engine_ring, as_engine_ring_facts},
};

const struct as_collector *const as_collectors[] = {&as_engine_kernel, &as_engine_ring, NULL};

void as_collector_facts(const struct as_collector *c, void *engine, struct as_engine_facts *ret)
{
	memset(ret, 0, sizeof *ret);
	for (size_t i = 0; i < sizeof engines / sizeof engines[0]; i++) {
		if (engines[i].c == c)
			engines[i].facts(engine, ret);
	}
}
