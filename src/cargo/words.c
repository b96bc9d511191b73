/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Options that are handed on to cargo: see cargo.h. */
#include "cargo/cargo.h"

void as_cargo_words(const struct as_cargo_options *o, struct as_cargo_words *ret)
{
	const char *const pairs[][2] = {{"--features", o->features},
					{"--target", o->target},
					{"--target-dir", o->target_dir},
					{"--jobs", o->jobs}};
	const struct {
		const char *word;
		bool given;
	} flags[] = {{"--all-features", o->all_features},
		     {"--no-default-features", o->no_default_features},
		     {"--offline", o->offline},
		     {"--locked", o->locked},
		     {"--frozen", o->frozen}};
	size_t n = 0;

	_Static_assert(2 * AS_ARRAY_LEN(pairs) + AS_ARRAY_LEN(flags) < AS_CARGO_WORDS,
		       "room for every word and the end");
	for (size_t i = 0; i < AS_ARRAY_LEN(pairs); i++) {
		if (pairs[i][1]) {
			ret->v[n++] = pairs[i][0];
			ret->v[n++] = pairs[i][1];
		}
	}
	for (size_t i = 0; i < AS_ARRAY_LEN(flags); i++) {
		if (flags[i].given)
			ret->v[n++] = flags[i].word;
	}
	ret->v[n] = NULL;
}
