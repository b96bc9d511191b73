/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One command, or two: see repeat.h. */
#include "measure/repeat.h"

#include "base/mem.h"
#include "measure/shell.h"

#define SIDES 2

static void pass_progress(void *ctx, size_t arm, size_t n, const struct as_look *look)
{
	const struct as_repeat_request *q = ctx;

	if (!q->other.argv || arm)
		q->progress(q->progress_ctx, (int)arm, n, look);
}

static void take_side(struct as_repeat *r, struct as_rounds *rounds, int side)
{
	struct as_arm_result *a = &rounds->v[side];

	r->side[side] = a->runs;
	a->runs = (struct as_runs){0};
	/* the first one that failed, where both did */
	if (a->failed_run && (!r->failed_run || a->failed_run < r->failed_run)) {
		r->failed_run = a->failed_run;
		r->failed_side = side;
		r->failed_status = a->failed_status;
	}
}

static void take_result(struct as_rounds *rounds, struct as_repeat *ret)
{
	const struct as_arm_result *other = rounds->n > 1 ? &rounds->v[1] : NULL;

	for (size_t side = 0; side < rounds->n; side++)
		take_side(ret, rounds, (int)side);
	ret->seconds = rounds->seconds;
	ret->stopped = rounds->interrupted || rounds->out_of_budget;
	if (!other)
		return;
	ret->look = other->look;
	ret->decides = other->decides;
	ret->by[0] = other->by[0];
	ret->by[1] = other->by[1];
	ret->disagree = other->disagree;
}

int as_repeat(const struct as_repeat_request *q, struct as_repeat *ret, struct as_error *err)
{
	struct as_arm arms[SIDES] = {{.run = q->run, .prepare = q->prepare},
				     {.run = q->other, .prepare = q->prepare}};
	bool two = q->other.argv;
	struct as_rounds_request rounds = {
		.arms = arms,
		.n = two ? 2 : 1,
		.warmup = q->warmup,
		.min_runs = two || q->until > 0 ? 0 : q->runs,
		.max_runs = q->runs,
		.until = two ? 0 : q->until,
		.budget_s = q->budget_s,
		.budget_of_runs = true,
		.delta = q->delta,
		.ignore_failure = q->ignore_failure,
		.failure_ends = true,
		.keep_strays = true, /* they are the user's */
		.interrupted = q->interrupted,
		.seed = q->seed,
		.progress = q->progress ? pass_progress : NULL,
		.progress_ctx = (void *)(uintptr_t)q,
	};
	struct as_shell_request setup = {
		.command = q->setup, .what = "setup", .interrupted = q->interrupted};
	struct as_rounds result;
	int r = as_shell_run(&setup, err);

	*ret = (struct as_repeat){.decides = AS_M_WALL,
				  .look = {.verdict = AS_VERDICT_UNDECIDED}};
	if (r < 0)
		return r;
	r = as_rounds(&rounds, &result, err);
	take_result(&result, ret);
	as_rounds_clear(&result);
	return r;
}

void as_repeat_clear(struct as_repeat *r)
{
	as_runs_clear(&r->side[0]);
	as_runs_clear(&r->side[1]);
}
