/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the files of this folder tell each other. */
#ifndef AS_HARNESS_CRITERION_PRIV_H
#define AS_HARNESS_CRITERION_PRIV_H

#include <regex.h>
#include <stdbool.h>
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "harness/criterion/criterion.h"
#include "harness/driver.h"
#include "harness/front.h"

/* ---- filter.c: which benchmarks ---- */

enum as_criterion_match {
	AS_CRITERION_ALL,
	AS_CRITERION_REGEX,
	AS_CRITERION_EXACT,
	AS_CRITERION_NONE
};
struct as_criterion_filter {
	enum as_criterion_match kind;
	char *text;
	regex_t regex; /* of AS_CRITERION_REGEX */
};
/* Regular expressions as the regex crate writes them, without look-around, Unicode classes (\p{…}), set
 * operations and flags but a leading (?i). AS_E_USAGE with what is wrong. */
int as_criterion_filter_set(struct as_criterion_filter *f, enum as_criterion_match kind,
			    const char *text, struct as_error *err);
bool as_criterion_filter_matches(const struct as_criterion_filter *f, const char *id);
void as_criterion_filter_clear(struct as_criterion_filter *f);
/* Appends the POSIX extended expression that means the same. */
int as_criterion_filter_posix(const char *pattern, struct as_buf *out, bool *ret_icase,
			      struct as_error *err);

/* ---- args.c: the command line ---- */

struct as_criterion_options {
	double numbers[AS_CRITERION_NUMBERS_];
	enum assay_bench_mode mode;
	char *filter;     /* NULL: none */
	bool exact, none; /* the filter is an id; --ignored */
	bool quiet, verbose, quick, bencher, discard, strict;
	char *save, *baseline, *load; /* NULL: not said */
	bool fail_on_slower;
	int exit_status; /* -1: go on; what is to be said stands in `say` */
	bool say_is_error;
	struct as_buf say;
};
/* Also reads ASSAY_BENCH_FLAGS (words between blanks, before those of the command line). */
void as_criterion_args_read(int argc, char *const *argv, struct as_criterion_options *ret);
void as_criterion_options_clear(struct as_criterion_options *o);

/* ---- id.c: names and folders ---- */

struct as_criterion_id {
	char *full;   /* group/function/value */
	char *title;  /* at most 100 bytes and "..."; " #2" when it is not the first */
	char *folder; /* below the home; unique in the process */
	bool cut;     /* the folder says less than the name */
};
struct as_criterion_names { /* of all benchmarks so far */
	AS_VEC(char *) titles;
	AS_VEC(char *) folders;
};
void as_criterion_id_make(const char *group, const char *function, const char *value,
			  struct as_criterion_id *ret);
/* Makes title and folder differ from all in n, and puts them there. */
void as_criterion_id_unique(struct as_criterion_id *id, struct as_criterion_names *n);
/* The folder with a hash of the full name: for when another benchmark has the short one. */
void as_criterion_id_hashed(struct as_criterion_id *id);
void as_criterion_id_clear(struct as_criterion_id *id);
void as_criterion_names_clear(struct as_criterion_names *n);

/* ---- numbers.c: what the files say of the batches ---- */

struct as_criterion_estimate {
	double value, low, high, se;
};
struct as_criterion_estimates {
	double confidence;
	struct as_criterion_estimate mean, median, mad, sd, slope; /* slope.value NaN: none */
	/* of the processes: what `time:` shows */
	struct as_criterion_estimate low_quartile;
	double fences[4];
	size_t outliers[4]; /* beyond them: low severe, low mild, high mild, high severe */
	size_t n;
};
/*
 * v[n]: per iteration, all batches, process after process; sizes[processes]: how many of each.
 * Intervals: percentiles of 400 resamples of whole processes (batches of one process are alike),
 * seeded from the values: the same data give the same file. Cost: a few ms for 1,000 batches.
 * Source: A. C. Davison, D. V. Hinkley, Bootstrap Methods, 1997, 3.8 (clusters).
 */
void as_criterion_estimate(const double *v, size_t n, const uint32_t *sizes, size_t processes,
			   double confidence, struct as_criterion_estimates *ret);

/* ---- read.c: JSON that was written by criterion or by us ---- */

/* The value at a path of keys ("mean.point_estimate"; an array's index as "[1]"): a number, …
 * false: it is not there, or the text is no JSON up to there. */
bool as_criterion_json_number(const char *text, size_t n, const char *path, double *ret);
bool as_criterion_json_text(const char *text, size_t n, const char *path, struct as_buf *out);
struct as_criterion_doubles {
	double *v;
	size_t n, cap;
};
bool as_criterion_json_numbers(const char *text, size_t n, const char *path,
			       struct as_criterion_doubles *out);

/* ---- files.c: the folders ---- */

#define AS_CRITERION_DEPTH_MAX 6 /* folders that are looked into below a home */

struct as_criterion_record { /* one result, as its folder holds it */
	const struct as_criterion_id *id;
	const char *group, *function, *value;
	int throughput;
	uint64_t n, n2;
	const char *unit;      /* of the values as they are written */
	double iters;          /* of a batch */
	const double *batches; /* per iteration */
	size_t n_batches;
	struct as_criterion_estimates est;
	const char *program; /* name in the store; NULL: not kept */
	const char *machine;
	bool csv;
};
struct as_criterion_change { /* b / a - 1 */
	struct as_criterion_estimate mean, median, low_quartile;
	double confidence;
	enum as_verdict verdict;
	double work; /* this run's declared work / the baseline's; per unit of it is compared */
	const char *baseline;
	size_t pairs;
};
struct as_criterion_stored { /* what a baseline says */
	bool found;
	bool own;    /* written by us: low_quartile is there */
	bool edited; /* its files are not as we wrote them */
	double mean, low_quartile, sd;
	char *program, *machine, *full_id;
	uint64_t time_s; /* when the file was written */
	int throughput;  /* enum assay_throughput; 0: none, or of two kinds */
	double work;     /* of it */
	struct as_criterion_doubles iters, times;
};
/* home/folder/name for each of names[]; each is replaced as a whole. */
int as_criterion_write(const char *home, const struct as_criterion_record *r,
		       const char *const *names, size_t n_names, struct as_error *err);
int as_criterion_write_change(const char *home, const struct as_criterion_id *id,
			      const struct as_criterion_change *c, struct as_error *err);
void as_criterion_remove_change(const char *home, const struct as_criterion_id *id);
/* AS_OK with found false: there is none. AS_E_FORMAT: it is there and cannot be read. samples: also
 * sample.json. */
int as_criterion_load(const char *home, const char *folder, const char *name, bool samples,
		      struct as_criterion_stored *ret, struct as_error *err);
void as_criterion_stored_clear(struct as_criterion_stored *s);
/* Is there a folder of that name anywhere? others: the names there are, ", " between. */
bool as_criterion_baseline_exists(const char *home, const char *name, struct as_buf *others);
/* As mkdir -p does, with the user's mask. */
int as_criterion_make_folders(const char *path, struct as_error *err);
/* CRITERION_HOME, CARGO_TARGET_DIR/criterion, the target folder this program lies in, ./target. Caller
 * frees. */
char *as_criterion_home(void);

/* ---- page.c: pages in report/ folders ---- */

int as_criterion_write_page(const char *home, const struct as_criterion_record *r,
			    const struct as_criterion_change *change, struct as_error *err);
/* Of all results below home: their groups' pages and the one of all. */
int as_criterion_write_index(const char *home, struct as_error *err);

/* ---- programs.c: programs of baselines ---- */

/* Puts this program (/proc/self/exe) into home's store once and returns its name there; NULL: it could
 * not be, err says why. The store keeps at most 128 programs and 2 GiB: the longest unused go first. */
char *as_criterion_keep(const char *home, struct as_error *err);
/* Path of a kept program, marked as used; NULL: it is not there or not as it was. Caller frees. */
char *as_criterion_kept(const char *home, const char *name);
/* CPU model and count, as text; caller frees. */
char *as_criterion_machine(void);

/* ---- text.c: what the terminal shows ---- */

struct as_criterion_look {
	bool colour, bencher, quiet, verbose, terminal;
};
struct as_criterion_shown {
	const struct as_criterion_id *id;
	const struct as_criterion_spec *spec;
	const struct as_criterion_estimates *est;
	const struct as_fn_result *r; /* NULL: loaded */
	const char *baseline;         /* compared with; NULL: not at all */
	bool paired;
	const struct as_criterion_change *change; /* paired */
	double significance;
	const struct as_criterion_stored *trend; /* not paired: what the baseline said */
	const char *machine;                     /* this one */
	const char *trend_why;                   /* why there is no pair */
	double now;                              /* what is compared with the trend's figure */
	double before;
};
void as_criterion_show(const struct as_criterion_look *l, const struct as_criterion_shown *s);
void as_criterion_say(int fd, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* As snprintf; too long a text is cut. */
void as_criterion_why(char *out, size_t n, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Four or five digits, as criterion writes numbers. */
void as_criterion_short(struct as_buf *b, double v);
void as_criterion_format_time(struct as_buf *b, double ns);

/* ---- front.c: objects, turns, the run ---- */

struct as_criterion {
	double numbers[AS_CRITERION_NUMBERS_];
	struct as_criterion_filter filter;
	char *save;    /* NULL: nothing is saved */
	char *compare; /* never NULL */
	bool strict;
	char *home; /* NULL: as the environment says */
};

struct as_criterion_turn { /* the benchmark that is run now */
	const struct as_criterion *c;
	const struct as_criterion_spec *spec;
	struct assay_bench_spec *to;   /* what the harness got; a run may fill its throughput */
	struct as_criterion_spec told; /* with what it filled */
	struct as_criterion_id id;
	const char *home;
	struct as_criterion_stored stored;
	char *old; /* path of the baseline's program, where there is a pair */
	char why[400];
	struct as_fn_request alone; /* to measure this program only */
};

struct as_criterion_old {
	char *path;
	struct as_fn_list list;
	bool bad;
	char why[300];
};

struct as_criterion_run {
	struct assay_bench *run;
	bool configured, closed, in_one;
	int argc;
	char **argv;
	struct as_criterion_options o;
	struct as_criterion_names names;
	struct as_criterion_turn turn;
	char *home, *machine;
	char *kept, *kept_home; /* this program's name in a home's store */
	AS_VEC(struct as_criterion_old) olds;
	AS_VEC(char *) missing; /* titles that a strict baseline lacks */
	char *missing_from;
	size_t slower, failed, measured;
	char *pages; /* home of pages that were written: its index is to be */
	bool terminal, keep_failed;
};

double as_criterion_number_of(const struct as_criterion_turn *t, enum as_criterion_number which,
			      double otherwise);
/* A copy of text (NULL: none) in the place of what is there. */
void as_criterion_put(char **to, const char *text);
const char *as_criterion_home_of(struct as_criterion_run *s, const struct as_criterion *c);
/* Fills t->stored and t->old, or t->why. */
void as_criterion_find_baseline(struct as_criterion_run *s);
/* The kept program of a stored result, if it has the benchmark of this turn; else NULL, and t->why says
 * why. Caller frees. */
char *as_criterion_program_of(struct as_criterion_run *s,
			      const struct as_criterion_stored *stored);
/* Sees to it that no other benchmark has the folder. */
void as_criterion_settle_folder(struct as_criterion_run *s);

/* ---- result.c: what becomes of a result ---- */

void as_criterion_result(struct as_criterion_run *s, struct as_fn_result *r);
/* With --load-baseline: a stored result in the place of a measured one. */
void as_criterion_result_load(struct as_criterion_run *s);

#endif
