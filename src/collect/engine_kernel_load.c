/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The BPF object: which build, its sizes, loading, attaching. Errors of libbpf are turned into
 * ours; its last message is kept, because "-EINVAL" alone helps nobody.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "collect/engine_kernel_priv.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wsign-compare"
#include "unwind_loop.skel.h"
#include "unwind_tail.skel.h"
#pragma GCC diagnostic pop

#define RING_MIN (4u << 20)
#define RING_MAX (64u << 20)

static __thread char last_message[240];

static int keep_message(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char line[240];

	if (level != LIBBPF_WARN)
		return 0;
	(void)vsnprintf(line, sizeof(line), fmt, ap); /* cut is fine */
	line[strcspn(line, "\n")] = '\0';
	if (!strstr(line, "Retrying without BTF"))
		memcpy(last_message, line, sizeof(line));
	return 0;
}

static int bpf_error(struct as_error *err, int e, const char *what)
{
	e = e < 0 ? -e : e;
	if (e == EMFILE)
		return as_fail(err, AS_E_LIMIT, e, "%s: %s\nulimit -n 65536", what,
			       strerror(e));
	return as_fail(err, e == EPERM || e == EACCES ? AS_E_ACCESS : AS_E_UNSUPPORTED, e,
		       "%s: %s%s%s", what, strerror(e), last_message[0] ? ": " : "",
		       last_message);
}

/* bpf_loop and bpf_find_vma are helpers of 5.17; asked, not guessed from the version. */
static bool has_loop(void)
{
	return libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_loop, NULL) == 1 &&
	       libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_find_vma, NULL) == 1;
}

static int map_fd(const struct as_kbpf *b, const char *name)
{
	return bpf_object__find_map_fd_by_name(b->obj, name);
}

static uint32_t ring_bytes(int ncpus)
{
	uint32_t n = RING_MIN;

	while (n < RING_MAX && n < (uint32_t)ncpus << 20)
		n *= 2;
	return n;
}

static bool set_config(struct as_kbpf *b, const struct as_kbpf_options *o)
{
	struct bpf_map *m = bpf_object__find_map_by_name(b->obj, ".rodata");
	size_t size = 0;
	struct as_bpf_config *c = m ? (void *)bpf_map__initial_value(m, &size) : NULL;

	if (!c || size < sizeof(*c) || c->max_frames != AS_BPF_MAX_USER)
		return false;
	c->max_frames = o->max_frames && o->max_frames < AS_BPF_MAX_USER ? o->max_frames
									 : AS_BPF_MAX_USER;
	c->kernel_stacks = o->kernel_stacks;
	c->follow = o->follow;
	c->weight_by_count = o->weight_by_count;
	c->leader = (uint32_t)o->leader;
	c->copy_below = ring_bytes(b->ncpus) / 2;
	return true;
}

static void set_sizes(struct as_kbpf *b)
{
	uint32_t n = (uint32_t)b->ncpus;

	(void)bpf_map__set_max_entries(bpf_object__find_map_by_name(b->obj, "walks"), n);
	(void)bpf_map__set_max_entries(bpf_object__find_map_by_name(b->obj, "counts"), n);
	(void)bpf_map__set_max_entries(bpf_object__find_map_by_name(b->obj, "samples"),
				       ring_bytes(b->ncpus));
}

static int load_build(struct as_kbpf *b, const struct as_kbpf_options *o, struct as_error *err)
{
	size_t size = 0;
	const void *bytes =
		b->tail ? as_unwind_tail__elf_bytes(&size) : as_unwind_loop__elf_bytes(&size);
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "assay");

	b->obj = bpf_object__open_mem(bytes, size, &opts);
	if (!b->obj)
		return bpf_error(err, errno, "cannot open the built-in BPF object");
	set_sizes(b);
	if (!set_config(b, o))
		return as_fail(err, AS_E_FORMAT, 0,
			       "the built-in BPF object has another layout");
	int r = bpf_object__load(b->obj);
	if (r) {
		bpf_object__close(b->obj);
		b->obj = NULL;
		return bpf_error(err, r, "the kernel refused the BPF programs");
	}
	return AS_OK;
}

static int map_memory(struct as_kbpf *b, struct as_error *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t counts = ((size_t)b->ncpus * sizeof(*b->counts) + page - 1) & ~(page - 1);

	void *p = mmap(NULL, AS_BPF_POOL_MAPPINGS * sizeof(*b->pool), PROT_READ | PROT_WRITE,
		       MAP_SHARED, map_fd(b, "pool"), 0);
	if (p == MAP_FAILED)
		return as_fail(err, AS_E_IO, errno, "cannot map the pool of mappings: %s",
			       strerror(errno));
	b->pool = p;
	p = mmap(NULL, counts, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd(b, "counts"), 0);
	if (p == MAP_FAILED)
		return as_fail(err, AS_E_IO, errno, "cannot map the counts: %s",
			       strerror(errno));
	b->counts = p;
	return AS_OK;
}

int as_kbpf_open(struct as_kbpf *b, const struct as_kbpf_options *o, struct as_error *err)
{
	memset(b, 0, sizeof(*b));
	b->stats_fd = -1;
	last_message[0] = '\0';
	(void)libbpf_set_print(
		keep_message); /* for good: what it says later is no news for users */
	b->ncpus = libbpf_num_possible_cpus();
	b->tail = !has_loop();
	int r = b->ncpus < 1 ? bpf_error(err, -b->ncpus, "cannot count the CPUs")
			     : load_build(b, o, err);
	/* a verifier of another mind may take the plain build */
	if (r < 0 && !b->tail && b->ncpus > 0) {
		b->tail = true;
		r = load_build(b, o, NULL) < 0 ? r : AS_OK;
	}
	if (r < 0)
		return r;
	b->fd_chunks = map_fd(b, "chunks");
	b->fd_processes = map_fd(b, "processes");
	b->fd_files = map_fd(b, "files");
	b->fd_sample = bpf_program__fd(bpf_object__find_program_by_name(b->obj, "on_sample"));
	/* about 50 ns per run of any BPF program of the system; without it the cost stays unknown */
	b->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	return map_memory(b, err);
}

int as_kbpf_attach(struct as_kbpf *b, struct as_error *err)
{
	static const char *const hook[] = {"on_fork", "on_exec", "on_free"};

	for (size_t i = 0; i < AS_ARRAY_LEN(hook); i++) {
		struct bpf_link *l =
			bpf_program__attach(bpf_object__find_program_by_name(b->obj, hook[i]));
		if (!l)
			return bpf_error(err, errno, "cannot attach to the life of processes");
		b->link[b->nlinks++] = l;
	}
	return AS_OK;
}

uint64_t as_kbpf_run_time_ns(const struct as_kbpf *b)
{
	uint64_t sum = 0;
	struct bpf_program *p;

	if (!b->obj || b->stats_fd < 0)
		return 0;
	bpf_object__for_each_program(p, b->obj)
	{
		struct bpf_prog_info info = {0};
		uint32_t len = sizeof(info);

		if (!bpf_obj_get_info_by_fd(bpf_program__fd(p), &info, &len))
			sum += info.run_time_ns;
	}
	return sum;
}

void as_kbpf_close(struct as_kbpf *b)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < b->nlinks; i++)
		(void)bpf_link__destroy(b->link[i]); /* nothing to do about a failure */
	b->nlinks = 0;
	ring_buffer__free(b->ring);
	if (b->pool)
		munmap(b->pool, AS_BPF_POOL_MAPPINGS * sizeof(*b->pool));
	if (b->counts)
		munmap(b->counts,
		       ((size_t)b->ncpus * sizeof(*b->counts) + page - 1) & ~(page - 1));
	bpf_object__close(b->obj);
	if (b->stats_fd >= 0)
		close(b->stats_fd);
	memset(b, 0, sizeof(*b));
	b->stats_fd = -1;
}
