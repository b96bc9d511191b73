/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One reader a file; import.c chooses among them by what is in the document. */
#ifndef AS_RESULTS_IMPORT_PRIV_H
#define AS_RESULTS_IMPORT_PRIV_H

#include <jansson.h>

#include "results/import.h"

/* Fill a set that is empty; on failure it may hold some benches. */
int as_import_hyperfine(const char *what, const json_t *root, struct as_bench_set *ret,
			struct as_error *err);
int as_import_google(const char *what, const json_t *root, struct as_bench_set *ret,
		     struct as_error *err);
int as_import_gungraun(const char *what, const json_t *root, struct as_bench_set *ret,
		       struct as_error *err);
/* Lines of criterion and of libtest; AS_E_FORMAT where there are none. */
int as_import_lines(const char *what, const char *p, size_t n, struct as_bench_set *ret,
		    struct as_error *err);

/* ---- divan ---- */

#define AS_DIVAN_DEPTH 32

struct as_divan_level {
	char *name, *path; /* path: with those above it */
};
struct as_divan { /* zeroed: no table yet */
	bool on;
	size_t before; /* benches of the set that are not divan's */
	struct as_divan_level level[AS_DIVAN_DEPTH];
	size_t depth;
	int allocs; /* rows that still belong to "alloc:" */
};
/* Takes a line of divan's table; false: it is none. */
bool as_import_divan_line(struct as_divan *d, const char *line, struct as_bench_set *set);
void as_import_divan_clear(struct as_divan *d);

/* ---- criterion ---- */

struct as_criterion_files {
	struct as_buf benchmark, estimates, sample; /* benchmark and sample may be empty */
};
/* One benchmark of one baseline. id: where it lies below the home, its name where no file tells it. */
int as_import_criterion(const char *id, const struct as_criterion_files *files,
			struct as_bench *ret, struct as_error *err);
/* All below `home`. ret_found: there was a folder of criterion's at all. */
int as_import_criterion_home(const char *home, const char *baseline, struct as_bench_set *ret,
			     bool *ret_found, struct as_error *err);

/* ---- pieces ---- */

#define AS_IMPORT_JSON                                                                         \
	(JSON_DECODE_INT_AS_REAL) /* counts beyond 2^63 are no reason to refuse */

double as_import_number(const json_t *object, const char *key); /* NaN: none */
char *as_import_string(const json_t *object, const char *key);  /* NULL: none; owned */
/* "ns", "us", "µs" (both of them), "ms", "s", "ps"; 0: none of these. Reads n bytes. */
double as_import_unit(const char *s, size_t n);
/* Calls back for each entry of a folder in the order of their names; stops at a negative. */
int as_import_folder(const char *path, int (*each)(const char *name, bool is_folder, void *ctx),
		     void *ctx, struct as_error *err);
void as_import_one_process(struct as_bench_set *s, const char *tool);

#endif
