/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Results of any tool: as one file, and, cut at two NULs, as the three files of criterion. What was
 * read is written and read again. */
#include <stdlib.h>
#include <string.h>

#include "results/import_priv.h"
#include "results/judge.h"
#include "results/report.h"

static void use(struct as_bench_set *s)
{
	AS_CLEANUP(as_buf_clear) struct as_buf json = {0}, text = {0};
	struct as_style style = {.width = 80};
	struct as_bench_set again;

	as_bench_find_growth(s, true);
	as_bench_judge(s);
	as_bench_text(s, &style, &text);
	as_bench_json(s, &json);
	if (as_bench_read("again", json.p, json.len, &again, NULL) == AS_OK)
		as_bench_set_clear(&again);
}

static void try_criterion(const char *p, size_t n)
{
	struct as_criterion_files files = {0};
	struct as_buf *const parts[] = {&files.estimates, &files.benchmark, &files.sample};
	struct as_bench b;

	for (size_t i = 0; i < 3; i++) {
		size_t len = i < 2 ? strnlen(p, n) : n;

		as_buf_add(parts[i], p, len);
		p += AS_MIN(len + 1, n);
		n -= AS_MIN(len + 1, n);
	}
	if (as_import_criterion("id", &files, &b, NULL) == AS_OK)
		as_bench_clear(&b);
	for (size_t i = 0; i < 3; i++)
		as_buf_clear(parts[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct as_bench_set s;

	if (size > 65536)
		return 0;
	if (as_bench_import_text("input", (const char *)data, size, &s, NULL) == AS_OK) {
		use(&s);
		as_bench_set_clear(&s);
	}
	try_criterion((const char *)data, size);
	return 0;
}
