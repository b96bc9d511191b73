/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Counts calls of a program's allocators through detours:
 *
 *	hook-count [-o FILE] [-g GROUPS] -- COMMAND…	from its start; exits as it does
 *	hook-count [-o FILE] [-n CYCLES] [-s SECONDS] -p PID	in and out again, CYCLES times
 *
 * Prints a line per function, with tabs between: calls, returns, state, name, module, allocator.
 * It is the detours alone that are held to the truth here, with an image that only counts; what the real
 * runtime tells: hook_heap.c. After each detach every executable mapping of the process must equal its
 * file. Exit: 3 when it does not, 2 for errors.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/sys.h"
#include "hook/hooked.h"
#include "held.h"

#define RETURNS 4096

extern const unsigned char hook_call[], hook_count[], hook_code_end[]; /* hook_image.S */

/* The head of an image, padded, and the code. */
static struct {
	struct as_rt_image head;
	unsigned char code[512] __attribute__((aligned(64)));
} image;

static struct as_error err;
static FILE *out;

static int fail_with_error(const char *what)
{
	fprintf(stderr, "hook-count: %s: %s\n", what, err.msg);
	return 2;
}

static void print_counts(const struct as_hooked *h)
{
	static const char *const state[] = {"refused", "changed", "far", "active", "out"};
	size_t bytes;
	const unsigned char *shared = as_hook_shared(h, &bytes);
	const uint64_t *calls = (const void *)(shared + AS_RT_CONTROL_BYTES);

	for (size_t i = 0; i < as_hook_count(h); i++) {
		struct as_hook_function_info f;

		as_hook_get(h, i, &f);
		fprintf(out, "%lu\t%lu\t%s\t%s\t%s\t%s\n", calls[f.id], calls[RETURNS + f.id],
			f.verdict ? as_detour_reason(f.verdict) : state[f.state], f.name,
			f.module, as_allocator_name(f.family));
	}
	fflush(out);
}

/* ---- launch ---- */

static int launch(char **argv, struct as_hook_spec *spec)
{
	struct as_hooked *h = NULL;
	int hold, status = -1;
	pid_t pid = start_held(argv, &hold);

	if (as_hook_watch_exec(pid, &err) < 0)
		return fail_with_error(argv[0]);
	if (write(hold, "", 1) != 1)
		return 2;
	if (as_hook_launch(pid, spec, &h, &status, &err) < 0)
		fail_with_error(argv[0]);
	while (status == -1 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	if (h)
		print_counts(h);
	as_hook_free(h);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- attach ---- */

/* How many bytes of executable mappings are not as in their files. */
static size_t changed_bytes(pid_t pid)
{
	char path[600], line[1024];
	size_t n = 0;
	FILE *maps;
	int mem;

	snprintf(path, sizeof path, "/proc/%d/mem", pid);
	mem = open(path, O_RDONLY);
	snprintf(path, sizeof path, "/proc/%d/maps", pid);
	maps = fopen(path, "r");
	while (mem >= 0 && maps && fgets(line, sizeof line, maps)) {
		unsigned long start, end, off;
		char perm[8], file[512] = "";
		unsigned char a[4096], b[4096];
		int fd;

		if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %511s", &start, &end, perm, &off,
			   file) < 5 ||
		    perm[2] != 'x' || file[0] != '/' || (fd = open(file, O_RDONLY)) < 0)
			continue;
		for (; start < end; start += sizeof a, off += sizeof a) {
			ssize_t k = pread(fd, a, sizeof a, (off_t)off);

			if (k > 0 && pread(mem, b, (size_t)k, (off_t)start) == k)
				for (ssize_t i = 0; i < k; i++)
					n += a[i] != b[i];
		}
		close(fd);
	}
	if (maps)
		fclose(maps);
	close(mem);
	return n;
}

static void nap(double seconds)
{
	struct timespec t = {(time_t)seconds,
			     (long)((seconds - (double)(time_t)seconds) * 1e9)};

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		continue;
}

static int cycle(pid_t pid, const struct as_hook_spec *spec, double seconds)
{
	struct as_hooked *h;
	struct as_hook_cost cost;
	size_t before = changed_bytes(pid), patched, after;

	if (as_hook_attach(pid, spec, &h, &err) < 0)
		return fail_with_error("attach");
	patched = changed_bytes(pid);
	nap(seconds);
	if (as_hook_detach(h, &err) < 0)
		return fail_with_error("detach");
	after = changed_bytes(pid);
	as_hook_costs(h, &cost);
	print_counts(h);
	fprintf(out,
		"# stops: map %lu us, patch %lu us, detach %lu us; threads %zu, moved %zu, "
		"restarted %zu; bytes changed before %zu, patched %zu, after %zu\n",
		cost.map_ns / 1000, cost.patch_ns / 1000, cost.detach_ns / 1000, cost.threads,
		cost.moved, cost.restarted, before, patched, after);
	as_hook_free(h);
	return after != before || patched == before ? 3 : 0;
}

static void make_image(void)
{
	const uint32_t code = offsetof(__typeof__(image), code);
	const size_t n = (size_t)(hook_code_end - hook_call);

	assert(n <= sizeof image.code);
	image.head = (struct as_rt_image){.magic = AS_RT_MAGIC,
					  .version = AS_RT_VERSION,
					  .bytes = (uint32_t)(code + n),
					  .text_off = code,
					  .text_bytes = (uint32_t)n,
					  .kinds = AS_RT_KINDS,
					  .context_bytes = 0x1000};
	/* those that do not return, may throw, or take more than four arguments */
	for (uint32_t kind = 0; kind < AS_RT_KINDS; kind++)
		image.head.entry[kind] = image.head.sampled[kind] =
			code + (kind < AS_RT_MODULES ? 0 : (uint32_t)(hook_count - hook_call));
	memcpy(image.code, hook_call, n);
}

int main(int argc, char **argv)
{
	struct as_hook_spec spec = {.image = &image,
				    .groups = AS_HOOKS_HEAP,
				    .context_max = 64,
				    .ring_bytes = 1 << 16};
	double seconds = 0.2;
	int c, cycles = 1, r = 0;
	pid_t pid = 0;

	make_image();
	spec.image_bytes = image.head.bytes;
	out = stdout;
	while ((c = getopt(argc, argv, "+o:g:n:s:p:")) != -1) {
		if (c == 'o' && !(out = fopen(optarg, "we")))
			return 2;
		if (c == 'g')
			spec.groups = (unsigned)strtoul(optarg, NULL, 0);
		if (c == 'n')
			cycles = (int)strtol(optarg, NULL, 0);
		if (c == 's')
			seconds = strtod(optarg, NULL);
		if (c == 'p')
			pid = (pid_t)strtol(optarg, NULL, 0);
	}
	if (!pid && optind == argc)
		return 2;
	if (!pid)
		return launch(argv + optind, &spec);
	while (cycles-- && !r)
		r = cycle(pid, &spec, seconds);
	return r;
}
