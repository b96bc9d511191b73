/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A command as one text, and values of a parameter: whatever is typed, words or an error. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "bench/params.h"
#include "bench/words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	AS_CLEANUP(as_free_autop) char *text = as_xstrndup((const char *)data, n);
	size_t half = strcspn(text, "=");
	AS_CLEANUP(as_free_autop) char *name = as_xstrndup(text, half);
	const char *values = text + half + (text[half] != 0);
	struct as_words words = {0};
	struct as_params params = {0};

	if (as_words_split(text, &words, NULL) == AS_OK)
		assert(words.n > 0 && !words.v[words.n]);
	as_words_clear(&words);
	if (as_params_add(&params, name, values, NULL) == AS_OK) {
		assert(as_params_count(&params) > 0 &&
		       as_params_count(&params) <= AS_PARAMS_VALUES_MAX);
		free(as_params_fill(&params, as_params_count(&params) - 1, text));
	}
	as_params_clear(&params);
	return 0;
}
