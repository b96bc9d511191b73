/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What files and command lines of criterion's may hold: JSON by paths, regular expressions. */
#include <stdlib.h>
#include <string.h>

#include "harness/criterion/criterion_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_json(const char *text, size_t n)
{
	AS_CLEANUP(as_buf_clear) struct as_buf s = {0};
	struct as_criterion_doubles v = {0};
	double d;

	(void)as_criterion_json_number(text, n, "mean.point_estimate", &d);
	(void)as_criterion_json_text(text, n, "full_id", &s);
	(void)as_criterion_json_numbers(text, n, "[1]", &v);
	v.n = 0;
	(void)as_criterion_json_numbers(text, n, "times", &v);
	as_vec_clear(&v);
}

/* Only the translation: how long glibc takes for an expression is its affair. */
static void read_filter(const char *text)
{
	AS_CLEANUP(as_buf_clear) struct as_buf posix = {0};
	struct as_error err = {0};
	bool icase;

	if (as_criterion_filter_posix(text, &posix, &icase, &err) == AS_OK &&
	    posix.len > 12 * strlen(text) + 12)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = as_xstrndup((const char *)data, size);
	char *exact = as_xmalloc(size + 1);

	if (size)
		memcpy(exact, data, size);
	read_json(exact, size);
	read_filter(copy);
	free(copy);
	free(exact);
	return 0;
}
