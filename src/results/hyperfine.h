/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Results in the shapes hyperfine exports, field by field and digit by digit, for what reads them: wall
 * times; mean and standard deviation are the plain ones of all runs.
 *
 *	as_hyperfine_json(&set, &out);
 *	as_hyperfine_table(&set, AS_HYPERFINE_MARKDOWN, AS_HYPERFINE_AUTO, &out);
 *
 * Held against hyperfine itself in tests/cli/bench_exports.bats. Pure; any thread.
 */
#ifndef AS_RESULTS_HYPERFINE_H
#define AS_RESULTS_HYPERFINE_H

#include "base/buf.h"
#include "results/result.h"

enum as_hyperfine_unit { /* auto: by the first one's mean, as hyperfine does */
			 AS_HYPERFINE_AUTO,
			 AS_HYPERFINE_US,
			 AS_HYPERFINE_MS,
			 AS_HYPERFINE_S
};
enum as_hyperfine_table { AS_HYPERFINE_MARKDOWN, AS_HYPERFINE_ASCIIDOC, AS_HYPERFINE_ORG };

void as_hyperfine_json(const struct as_bench_set *s, struct as_buf *out);
void as_hyperfine_csv(const struct as_bench_set *s, struct as_buf *out);
void as_hyperfine_table(const struct as_bench_set *s, enum as_hyperfine_table kind,
			enum as_hyperfine_unit unit, struct as_buf *out);

#endif
