/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Benchmarks in C: registered ones, and what their bodies call. See assay/bench.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "harness/subject_priv.h"

#define SMALL_BYTES (16u << 10) /* of inputs made at once: half of a first-level cache */
#define LARGE_BYTES (64u << 20)

/* What is the same for all threads; written before they start. `problem` and the like go through
 * as_problem_set, throughput and unit are written by thread 0 alone. */
struct subject_of_c {
	const struct assay_bench_entry *entry;
	int64_t arg;
	struct assay_bench_spec spec;
	struct assay_bench_unit unit;
	char value[32], unit_name[64];
};

struct assay_bencher {
	struct subject_of_c *of;
	uint64_t iters, left, chunk;
	unsigned thread;
	double value;
	uint64_t began;
	enum { IDLE, RUNNING, ENDED } loop;
	bool failed;
	char *inputs;
	size_t input_bytes, room;
};

/* Written before main, by constructors; later by one thread. */
static struct assay_bench_entry *entries, *last_entry;

void assay_bench_register(struct assay_bench_entry *e)
{
	e->next = NULL;
	if (last_entry)
		last_entry->next = e;
	else
		entries = e;
	last_entry = e;
}

/* ---- the loop ---- */

uint64_t assay_bencher_start(struct assay_bencher *b)
{
	if (b->loop != IDLE) {
		as_problem_set("the benchmark has more than one loop: one is timed");
		b->failed = true;
		return 0;
	}
	b->loop = RUNNING;
	b->began = assay_bench_begin();
	return b->iters;
}

int assay_bencher_stop(struct assay_bencher *b)
{
	if (b->loop == RUNNING && !b->failed)
		b->value = (double)(assay_bench_end() - b->began);
	b->loop = ENDED;
	return 0;
}

uint64_t assay_bench_chunk(uint64_t iters, size_t input_bytes, enum assay_batch_size size)
{
	uint64_t fits = (size == ASSAY_SMALL_INPUT ? SMALL_BYTES : LARGE_BYTES) /
			(input_bytes ? input_bytes : 1);
	uint64_t wanted = size == ASSAY_SMALL_INPUT ? iters / 10 + (iters % 10 != 0)
						    : iters / 1000 + (iters % 1000 != 0);

	if (size == ASSAY_PER_ITERATION)
		return 1;
	wanted = AS_MIN(wanted, AS_MAX(fits, 1u));
	return AS_MAX(wanted, 1u);
}

size_t assay_chunk(struct assay_bencher *b, size_t input_bytes, enum assay_batch_size size)
{
	if (b->loop == IDLE) {
		b->loop = RUNNING;
		b->left = b->iters;
		b->chunk = assay_bench_chunk(b->iters, input_bytes, size);
		b->input_bytes = input_bytes;
		b->inputs = as_xcalloc(b->chunk, input_bytes);
	}
	b->room = (size_t)AS_MIN(b->left, b->chunk);
	b->left -= b->room;
	if (!b->room) {
		free(b->inputs);
		b->inputs = NULL;
		b->loop = ENDED;
	}
	return b->room;
}

void *assay_chunk_begin(struct assay_bencher *b, int step)
{
	if (step == 0)
		memset(b->inputs, 0, b->room * b->input_bytes);
	if (step == 1)
		b->began = assay_bench_begin();
	return b->inputs;
}

int assay_chunk_end(struct assay_bencher *b, int step)
{
	if (step == 1)
		b->value += (double)(assay_bench_end() - b->began);
	return 0;
}

uint64_t assay_iterations(const struct assay_bencher *b)
{
	return b->iters;
}

void assay_measured(struct assay_bencher *b, double value, const char *unit)
{
	b->loop = ENDED;
	b->value = value;
	if (b->thread)
		return;
	(void)snprintf(b->of->unit_name, sizeof b->of->unit_name, "%s", unit ? unit : "ns");
	b->of->unit =
		(struct assay_bench_unit){.size = sizeof b->of->unit, .name = b->of->unit_name};
	b->of->spec.unit = &b->of->unit;
}

void assay_throughput_bytes(struct assay_bencher *b, uint64_t n)
{
	if (b->thread)
		return;
	b->of->spec.throughput = ASSAY_THROUGHPUT_BYTES;
	b->of->spec.throughput_n = n;
}

void assay_throughput_elements(struct assay_bencher *b, uint64_t n)
{
	if (b->thread)
		return;
	b->of->spec.throughput = ASSAY_THROUGHPUT_ELEMENTS;
	b->of->spec.throughput_n = n;
}

int64_t assay_arg(const struct assay_bencher *b)
{
	return b->of->arg;
}

unsigned assay_thread(const struct assay_bencher *b)
{
	return b->thread;
}

unsigned assay_threads(const struct assay_bencher *b)
{
	return b->of->spec.threads ? b->of->spec.threads : 1;
}

void assay_bench_fail(struct assay_bencher *b, const char *why)
{
	b->failed = true;
	as_problem_set(why);
}

/* ---- all of them ---- */

static double run_body(void *ctx, uint64_t iters)
{
	struct subject_of_c *of = ctx;
	struct assay_bencher b = {.of = of, .iters = iters, .thread = as_team_index()};

	of->entry->body(&b);
	free(b.inputs);
	if (!b.failed && b.loop == IDLE)
		as_problem_set("the benchmark measured nothing: its body needs ASSAY_ITER, "
			       "ASSAY_ITER_INPUTS or assay_measured");
	else if (!b.failed && b.loop == RUNNING)
		as_problem_set(
			"the benchmark left its timed loop before the end (break, return, "
			"goto)");
	return b.value;
}

static void run_one(struct assay_bench *run, const struct assay_bench_entry *e,
		    const int64_t *arg, unsigned threads)
{
	struct subject_of_c of = {.entry = e, .arg = arg ? *arg : 0};

	of.spec = (struct assay_bench_spec){.size = sizeof of.spec, .threads = threads};
	of.spec.group = e->name;
	of.spec.settings = (struct assay_bench_settings){.size = sizeof of.spec.settings,
							 .flags = e->flags};
	if (arg)
		(void)snprintf(of.value, sizeof of.value, "%lld", (long long)*arg);
	else if (e->n_threads)
		(void)snprintf(of.value, sizeof of.value, "threads=%u", threads);
	of.spec.value = of.value[0] ? of.value : NULL;
	(void)assay_bench_one(run, &of.spec, run_body, &of); /* close tells */
}

int assay_bench_main(int argc, char **argv)
{
	struct assay_bench_settings settings = {.size = sizeof settings};
	struct assay_bench *run = assay_bench_open(argc, argv, &settings);

	for (const struct assay_bench_entry *e = entries; e; e = e->next) {
		for (size_t i = 0; i < e->n_args; i++)
			run_one(run, e, &e->args[i], 1);
		for (size_t i = 0; i < e->n_threads; i++)
			run_one(run, e, NULL, e->threads[i]);
		if (!e->n_args && !e->n_threads)
			run_one(run, e, NULL, 1);
	}
	return assay_bench_close(run);
}
