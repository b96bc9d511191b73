/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What of a process's memory is assay's. */
#include "hook/hooked_priv.h"

size_t as_hook_memory(const struct as_hooked *h, struct as_hook_range *ret, size_t max)
{
	size_t n = 0;

	const struct as_hook_range fixed[] = {
		{h->home_avma, h->home_avma + AS_HOOK_HOME_BYTES},
		{h->contexts_avma, h->contexts_avma + h->contexts_bytes},
		{h->shared_avma, h->shared_avma + h->shared_bytes},
	};

	for (size_t i = 0; i < AS_ARRAY_LEN(fixed) && n < max; i++) {
		if (fixed[i].low)
			ret[n++] = fixed[i];
	}
	for (size_t i = 0; i < h->island.n && n < max; i++)
		ret[n++] = (struct as_hook_range){h->island.v[i].avma,
						  h->island.v[i].avma + h->island.v[i].bytes};
	return n;
}
