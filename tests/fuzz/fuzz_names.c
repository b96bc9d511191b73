/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Any text as a linkage name and as a demangled name; short forms are never empty nor unbounded. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "symbol/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void shorten(const char *full, enum as_lang lang)
{
	struct as_buf b = {0};

	for (unsigned flags = 0; flags <= AS_NAME_FOLD_GENERICS; flags++) {
		as_buf_reset(&b);
		as_name_short(full, lang, flags, &b);
		if (!b.len || b.len > 1u << 16)
			abort();
	}
	as_name_crate(full, lang, &b);
	as_buf_clear(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AS_CLEANUP(as_free_autop) char *text = as_xstrndup((const char *)data, size);
	struct as_buf full = {0};
	bool cold;

	enum as_lang lang = as_demangle(text, &full, &cold);

	shorten(as_buf_str(&full), lang);
	shorten(text, AS_LANG_RUST);
	shorten(text, AS_LANG_CXX);
	shorten(text, AS_LANG_C);
	as_buf_clear(&full);
	return 0;
}
