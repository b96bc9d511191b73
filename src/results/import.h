/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Results of other tools as results of ours: what is in the file says whose it is.
 *
 *	as_bench_import("target/criterion", "main", &set, err);	a folder and its baseline
 *	as_bench_import("hyperfine.json", NULL, &set, err);
 *
 * Read are: assay.bench/1; criterion's folders (0.2 to 0.8, both shapes of their JSON), its text output
 * and that of #[bench] (and --output-format bencher); hyperfine's JSON; Google Benchmark's JSON;
 * summary.json of gungraun and iai-callgrind (versions 1 to 7), one or a folder of them.
 *
 * Times become seconds. The declared estimate is the one the tool itself puts first, or, where there are
 * samples of separate processes, ours. None of these tools measures how processes differ but
 * hyperfine; a note of kind "one-process" says so. What cannot be read inside a folder is left out
 * with a note of kind "skipped"; of a file it is an error.
 *
 * Formats as of: criterion 0.2.11, 0.3.6, 0.8.2; hyperfine 1.15, 1.20; Google Benchmark 1.4, 1.7, 1.9;
 * gungraun 0.20. Untrusted: bounded by AS_BENCH_FILE_MAX, AS_BENCH_BENCHES_MAX and AS_IMPORT_DEPTH.
 * Thread rule: any thread.
 */
#ifndef AS_RESULTS_IMPORT_H
#define AS_RESULTS_IMPORT_H

#include "results/result.h"

#define AS_IMPORT_DEPTH 12 /* of folders */

/* path: a file or a folder. baseline: of criterion's folders; NULL: "new", or the only one there is.
 * AS_E_NOTFOUND names the baselines that exist. */
int as_bench_import(const char *path, const char *baseline, struct as_bench_set *ret,
		    struct as_error *err);
/* The same from memory; `what` names it in messages. */
int as_bench_import_text(const char *what, const char *p, size_t n, struct as_bench_set *ret,
			 struct as_error *err);

#endif
