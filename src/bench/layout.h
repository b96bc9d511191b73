/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Where code lies decides part of its speed: the same objects, linked with other distances between them,
 * differ by several per cent (docs/design/0011-layout.md). One build per side can therefore not carry
 * a claim of a few per cent. Here a program is linked again, without compiling, with padding of random
 * size before each object, as often as wanted; builds are then the unit of the comparison.
 *
 *	as_layout_watch(folder, &watch, err);	// NAME=VALUE for the build: its link is noted
 *	… build …
 *	kit = as_layout_find(&watch, "target/…/deps/parse-1f…");	// NULL: the link was not seen
 *	as_layout_relink(kit, 3, "/…/parse.3", err);	// the same number: the same distances
 *
 * The link is noted by scripts that stand in for the linker (of rustc by way of RUSTC_WRAPPER, of gcc
 * and clang by way of COMPILER_PATH), call the real one with the same words and keep its inputs by
 * hard links. The program that the build makes is the same to the byte.
 *
 * Thread rule: none shared.
 */
#ifndef AS_BENCH_LAYOUT_H
#define AS_BENCH_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"
#include "base/mem.h"
#include "results/result.h"
#include "stats/paired.h"

/* A difference beyond this is more than distances between objects were seen to make. */
#define AS_LAYOUT_BEYOND 0.05

struct as_layout_watch {
	char *folder;               /* scripts, and below it kits */
	AS_VEC(char *) environment; /* for the build; the last is NULL */
};
/* folder: made; what it holds of earlier builds stays good. */
int as_layout_watch(const char *folder, struct as_layout_watch *ret, struct as_error *err);
void as_layout_watch_clear(struct as_layout_watch *w);

struct as_layout_kit;
/* How `program` was linked; NULL: not seen, or not what can be linked again. */
struct as_layout_kit *as_layout_find(const struct as_layout_watch *w, const char *program);
void as_layout_kit_free(struct as_layout_kit *k);
/* number 0: without padding, as the build did. AS_E_IO with the linker's words. */
int as_layout_relink(const struct as_layout_kit *k, uint64_t number, const char *out,
		     struct as_error *err);

/*
 * The verdict over builds. u: per pair of builds the ln ratio; as_built: that of the two programs as
 * they were built, which was judged slower or faster. Of looks at growing n the caller gives each its
 * part of the error as alpha. UNDECIDED: more builds are needed. MOVED: no difference that stays when
 * the code lies elsewhere, and the one seen is out of what builds show.
 */
enum as_bench_verdict as_layout_judge(const double *u, size_t n, double as_built, double delta,
				      double alpha, struct as_trimmed *ret);

/* ---- a verdict taken to other links ---- */

/* Two programs, and what was found out about them; zeroed, then exe, watch and path set. */
struct as_layout_pair {
	const char *exe[2]; /* borrowed */
	const struct as_layout_watch
		*watch[2]; /* borrowed; NULL: of no build that was watched */
	char *path;        /* what links are named after; owned */
	struct as_layout_kit *kit[2];
	bool kits_sought, same_code_known, same_code;
	AS_VEC(char *) links[2]; /* of numbers 1 and on; removed in the end */
};
void as_layout_pair_clear(struct as_layout_pair *p);

struct as_layout_check {
	struct as_layout_pair *pair;
	unsigned layouts; /* pairs of links; 0: 8, and up to 32 while it is open; 1: none */
	double budget_s;  /* for more than the first ones */
	const volatile int *interrupted;
	/* Mean ln ratio of some pairs of runs of the two; NaN: could not be measured. NULL: they cannot be
	 * measured often enough. */
	double (*compare)(void *ctx, const char *const exe[2]);
	void *ctx;
};
/* Where c says slower or faster: what is left of that when the code lies elsewhere, with a note. */
int as_layout_check(const struct as_layout_check *q, struct as_bench_comparison *c,
		    struct as_error *err);

/* A compare for commands: ctx is a struct as_layout_command. */
struct as_layout_command {
	char *const *argv; /* [0] is replaced by the link */
	bool by_cpu;       /* the metric that decides */
	const volatile int *interrupted;
};
double as_layout_compare_commands(void *ctx, const char *const exe[2]);

/* Whether the two programs' machine code and constants are the same but for where they lie. AS_OK and
 * *ret, or that a file could not be read. */
int as_layout_same_code(const char *a, const char *b, bool *ret, struct as_error *err);

#endif
