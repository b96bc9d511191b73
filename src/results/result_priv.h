/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The words of assay.bench/1 that its writer and its reader share. */
#ifndef AS_RESULTS_RESULT_PRIV_H
#define AS_RESULTS_RESULT_PRIV_H

#define AS_BENCH_SCHEMA      "assay.bench/1"
#define AS_BENCH_SCHEMA_STEM "assay.bench/"

/* By enum as_bench_throughput. */
extern const char *const as_bench_throughput_words[];

#endif
