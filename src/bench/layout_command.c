/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pairs of links measured as commands: see layout.h. */
#include <math.h>
#include <stdlib.h>

#include "bench/layout.h"
#include "measure/rounds.h"

#define ROUNDS 8 /* for a pair of links */

static void copy_words(char *const *argv, const char *program, const char ***ret)
{
	AS_VEC(const char *) words = {0};

	as_vec_push(&words, program);
	for (char *const *w = argv + 1; *w; w++)
		as_vec_push(&words, *w);
	as_vec_push(&words, NULL);
	*ret = words.v;
}

double as_layout_compare_commands(void *ctx, const char *const exe[2])
{
	const struct as_layout_command *c = ctx;
	const char **words[2];
	struct as_arm arms[2];
	struct as_rounds rounds = {0};
	struct as_trimmed mean;
	double value = NAN;

	for (int k = 0; k < 2; k++) {
		copy_words(c->argv, exe[k], &words[k]);
		arms[k] = (struct as_arm){.run = {.argv = (char *const *)words[k],
						  .input = "/dev/null",
						  .output = "/dev/null"}};
	}
	if (as_rounds(&(struct as_rounds_request){.arms = arms,
						  .n = 2,
						  .warmup = 1,
						  .min_runs = ROUNDS,
						  .max_runs = ROUNDS,
						  .interrupted = c->interrupted},
		      &rounds, NULL) == AS_OK &&
	    rounds.n == 2 && rounds.v[1].d[c->by_cpu].n >= 3) {
		as_trimmed_interval(rounds.v[1].d[c->by_cpu].v, rounds.v[1].d[c->by_cpu].n,
				    AS_PAIRED_TRIM, 0.05, &mean);
		value = mean.value;
	}
	as_rounds_clear(&rounds);
	free(words[0]);
	free(words[1]);
	return value;
}
