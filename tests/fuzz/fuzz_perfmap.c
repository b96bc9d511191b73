/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Any bytes as a JIT map and as /proc/kallsyms; ranges found must hold the address asked for. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "symbol/kallsyms.h"
#include "symbol/perfmap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct as_perfmap *m;
	struct as_kallsyms *k;

	if (as_perfmap_parse((const char *)data, size, &m, NULL) == AS_OK) {
		for (uint64_t at = 1; at; at <<= 1) {
			uint64_t start;
			const char *name = as_perfmap_find(m, at, &start);

			if (name && (start > at || !strlen(name)))
				abort();
		}
		as_perfmap_free(m);
	}
	if (as_kallsyms_parse((const char *)data, size, &k, NULL) == AS_OK) {
		for (uint64_t at = 1; at; at <<= 1) {
			uint64_t start;
			const char *name = as_kallsyms_find(k, at, &start, NULL);

			if (name && (start > at || !strlen(name)))
				abort();
		}
		as_kallsyms_free(k);
	}
	return 0;
}
