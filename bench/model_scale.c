/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Cost of a report against the size of its session: 10^4 … 10^7 samples of made-up but plausible
 * stacks (30,000 distinct, 20 to 50 frames deep, 5,000 functions, inline chains of 1 to 4).
 *
 *	build/bench/model-scale [SAMPLES …]
 *	build/bench/model-scale --write FILE SAMPLES STACKS	only the session, for bench/view
 *
 * One line per size: bytes of the file per sample, CPU time of loading, of a function profile,
 * of a call tree and of an inverted tree, and the largest resident set. Each size runs in a
 * process of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/mem.h"
#include "base/sys.h"
#include "model/model.h"

#define FUNCTIONS  5000u
#define FRAMES     40000u
#define STACKS     30000u
#define STACKS_MAX 200000u
#define THREADS    8u

static uint64_t state = 88172645463325252ull;

static uint32_t below(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)((state >> 32) * n >> 32);
}

/* Small numbers far more often than large ones. */
static uint32_t skewed(uint32_t n)
{
	uint32_t a = below(n), b = below(n), c = below(n);

	return AS_MIN(a, AS_MIN(b, c));
}

static void write_code(struct as_session_writer *w)
{
	char name[64];

	for (unsigned i = 0; i < 20; i++) {
		int n = snprintf(name, sizeof name, "/usr/lib/libmodule%u.so", i);

		as_write_module(
			w, &(struct as_rec_module){
				   .id = i, .path = as_session_string(w, name, (size_t)n)});
	}
	for (unsigned i = 0; i < FRAMES; i++)
		as_write_frame(w, &(struct as_rec_frame){.id = i,
							 .module = 1 + below(20),
							 .addr = 0x1000 + i * 23ull});
}

static void write_names(struct as_session_writer *w)
{
	char name[64];

	for (unsigned i = 0; i < FUNCTIONS; i++) {
		int n = snprintf(name, sizeof name, "krate%u::module%u::function_%u", i % 40,
				 i % 211, i);
		uint32_t id = as_session_string(w, name, (size_t)n);

		as_write_function(w, &(struct as_rec_function){.id = i,
							       .module = 1 + i % 20,
							       .linkage = id,
							       .full = id,
							       .brief = id,
							       .line = i});
	}
	for (unsigned i = 0; i < FRAMES; i++) {
		uint64_t chain[16];
		unsigned n = 1 + below(4);

		for (unsigned k = 0; k < n; k++) {
			chain[4 * k] = (i / 8 + k * 613) % FUNCTIONS;
			chain[4 * k + 1] = 1 + chain[4 * k];
			chain[4 * k + 2] = below(3000);
			chain[4 * k + 3] = (uint64_t)(k + 1 < n) << 32;
		}
		as_write_symbol(w,
				&(struct as_rec_symbol){.frame = i, .chain = {chain, 4 * n}});
	}
}

/* Each new stack shares a beginning with an older one: about 6 new nodes a stack, as recordings of
 * rustc have. */
static void write_stacks(struct as_session_writer *w, uint32_t *leaf, uint32_t stacks)
{
	static uint32_t path[STACKS_MAX][51], depth[STACKS_MAX];
	uint32_t next = 0;

	for (unsigned i = 0; i < stacks; i++) {
		unsigned from = i ? skewed(i) : 0, shared = 0;

		depth[i] = i ? depth[from] + below(7) - 3 : 35;
		depth[i] = AS_MAX(20, AS_MIN(50, depth[i]));
		if (i)
			shared = AS_MIN(depth[from], depth[i]) * (72 + below(28)) / 100;
		memcpy(path[i], path[from], shared * sizeof path[i][0]);
		for (unsigned k = shared; k < depth[i]; k++) {
			as_write_stack(
				w, &(struct as_rec_stack){.id = next,
							  .parent = k ? path[i][k - 1] + 1 : 0,
							  .frame = skewed(FRAMES)});
			path[i][k] = next++;
		}
		leaf[i] = path[i][depth[i] - 1];
	}
}

static void write_session(const char *path, uint64_t samples, uint32_t stacks)
{
	static uint32_t leaf[STACKS_MAX];
	struct as_session_writer *w;
	struct as_error err;
	uint64_t t = 1000000000;

	if (as_session_writer_open(path, &w, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		exit(1);
	}
	as_write_recording(w, &(struct as_rec_recording){.start_ns = t, .rate_hz = 997});
	as_write_process(w, &(struct as_rec_process){.id = 0, .pid = 1});
	for (unsigned i = 0; i < THREADS; i++)
		as_write_thread(w, &(struct as_rec_thread){.id = i, .tid = i + 1});
	write_code(w);
	write_stacks(w, leaf, stacks);
	for (uint64_t i = 0; i < samples; i++) {
		uint32_t thread = (uint32_t)(i % THREADS);

		t += 100000 + below(50000);
		as_write_sample(w, &(struct as_rec_sample){.time_rel = t - below(2000000),
							   .thread = thread,
							   .cpu = thread,
							   .stack = 1 + leaf[skewed(stacks)],
							   .weight = 1003009});
	}
	write_names(w);
	if (as_session_writer_finish(w, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		exit(1);
	}
	as_session_writer_close(w);
}

static double profile_ms(const struct as_model *m, enum as_shape shape, size_t *ret_rows)
{
	uint64_t start = as_self_cpu_ns();
	struct as_query q = {.shape = shape,
			     .nodes_only = true,
			     .min_share = shape == AS_SHAPE_FLAT ? 0 : 0.0005};
	struct as_profile *p;

	if (as_profile_make(m, &q, &p, NULL) < 0)
		exit(1);
	*ret_rows = p->rows.n;
	as_profile_free(p);
	return (double)(as_self_cpu_ns() - start) / 1e6;
}

static void measure(const char *path, uint64_t samples)
{
	uint64_t start = as_self_cpu_ns();
	struct as_model *m;
	struct as_error err;
	struct rusage ru;
	double load, flat, tree, inverted;
	size_t rows, stacks;

	if (as_model_load(path, &m, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		exit(1);
	}
	load = (double)(as_self_cpu_ns() - start) / 1e6;
	flat = profile_ms(m, AS_SHAPE_FLAT, &rows);
	tree = profile_ms(m, AS_SHAPE_TREE, &rows);
	inverted = profile_ms(m, AS_SHAPE_INVERTED, &rows);
	stacks = m->stacks.n;
	getrusage(RUSAGE_SELF, &ru);
	printf("%10llu %8.1f %10.0f %10.0f %10.0f %10.0f %9.0f %7zu %8zu\n",
	       (unsigned long long)samples, (double)m->health.bytes_read / (double)samples,
	       load, flat, tree, inverted, (double)ru.ru_maxrss / 1024, rows, stacks);
	as_model_free(m);
}

static void run(uint64_t samples)
{
	char path[] = "/tmp/assay-scale-XXXXXX";
	int fd = mkstemp(path);
	pid_t pid;

	if (fd < 0)
		exit(1);
	close(fd);
	write_session(path, samples, STACKS);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		measure(path, samples);
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	unlink(path);
}

int main(int argc, char **argv)
{
	uint64_t samples, stacks;

	if (argc == 5 && strcmp(argv[1], "--write") == 0 && as_parse_u64(argv[3], &samples) &&
	    as_parse_u64(argv[4], &stacks) && stacks && stacks <= STACKS_MAX) {
		write_session(argv[2], samples, (uint32_t)stacks);
		return 0;
	}

	static const uint64_t sizes[] = {10000, 100000, 1000000, 10000000};

	printf("%10s %8s %10s %10s %10s %10s %9s %7s %8s\n", "samples", "B/sample", "load ms",
	       "flat ms", "tree ms", "inverted", "MiB", "rows", "stacks");
	for (size_t i = 0; argc < 2 && i < AS_ARRAY_LEN(sizes); i++)
		run(sizes[i]);
	for (int i = 1; i < argc; i++) {
		uint64_t n;

		if (as_parse_u64(argv[i], &n) && n)
			run(n);
	}
	return 0;
}
