/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Text and JSON of the library's own front. */
#ifndef AS_HARNESS_PLAIN_PRIV_H
#define AS_HARNESS_PLAIN_PRIV_H

#include "assay/bench.h"
#include "base/buf.h"
#include "base/json.h"
#include "harness/driver.h"

/* "1.234 us", with four digits. */
void as_plain_time(struct as_buf *b, double ns);
/* One line, and one for each note. color: ANSI. unit: may be NULL. */
void as_plain_result(const struct as_fn_result *r, const struct assay_bench_unit *unit,
		     bool verbose, bool color, struct as_buf *out);

/* docs/formats/bench-json.md: the document's begin, a result's objects, its end. Results are kept as
 * text, comparisons apart from benchmarks. */
struct as_plain_json {
	struct as_buf benchmarks, comparisons; /* members of the two arrays, with commas */
};
void as_plain_json_add(struct as_plain_json *j, const struct as_fn_result *r);
void as_plain_json_end(struct as_plain_json *j, const char *title, double seconds,
		       struct as_buf *out);
void as_plain_json_clear(struct as_plain_json *j);

#endif
