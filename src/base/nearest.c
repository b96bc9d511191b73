/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Words that are near others: see nearest.h. */
#include "base/nearest.h"

#include <stdint.h>
#include <string.h>

#include "base/mem.h"

enum { NEAREST_MAX = 64 }; /* longest word compared */

static size_t min3(size_t a, size_t b, size_t c)
{
	return AS_MIN(AS_MIN(a, b), c);
}

/* Optimal string alignment: insertions, deletions, changes and swaps of neighbours cost 1. */
static size_t edit_distance(const char *a, const char *b)
{
	size_t d[3][NEAREST_MAX + 1];
	size_t n = strlen(a), m = strlen(b);

	if (n > NEAREST_MAX || m > NEAREST_MAX)
		return SIZE_MAX;
	for (size_t j = 0; j <= m; j++)
		d[0][j] = j;
	for (size_t i = 1; i <= n; i++) {
		size_t *now = d[i % 3], *last = d[(i + 2) % 3], *before = d[(i + 1) % 3];

		now[0] = i;
		for (size_t j = 1; j <= m; j++) {
			now[j] = min3(last[j] + 1, now[j - 1] + 1,
				      last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = AS_MIN(now[j], before[j - 2] + 1);
		}
	}
	return d[n % 3][m];
}

const char *as_nearest(const char *word, const char *const *candidates, size_t n)
{
	size_t len = strlen(word), best = SIZE_MAX;
	const char *found = NULL;

	for (size_t i = 0; i < n; i++) {
		size_t d = edit_distance(word, candidates[i]);

		if (len >= 2 && strncmp(word, candidates[i], len) == 0)
			d = 0;
		if (d < best) {
			best = d;
			found = candidates[i];
		}
	}
	return best <= AS_MAX(len / 3, 1u) && len > best ? found : NULL;
}
