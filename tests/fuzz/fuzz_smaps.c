/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Any text as the mappings of a process: they are sorted and apart. */
#include <stdlib.h>
#include "snapshot/smaps.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	char *text = as_xstrndup((const char *)p, n);
	struct as_smaps m;

	as_smaps_parse(text, &m);
	for (size_t i = 0; i < m.map.n; i++) {
		const struct as_smap *s = &m.map.v[i];
		struct as_leak_range part;

		if (s->low >= s->high || (i && m.map.v[i - 1].high > s->low) ||
		    as_smaps_find(&m, s->low) != s)
			abort();
		(void)as_smap_next(s, s->low + 3, s->high, &part);
	}
	as_smaps_clear(&m);
	free(text);
	return 0;
}
