/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "collect/perf_event.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "collect/perf_regs_priv.h"

#define COMMON_SAMPLE_TYPE                                                                     \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_STREAM_ID | \
	 PERF_SAMPLE_CPU)

/* ---- limits and their diagnosis ---- */

static long read_limit(const char *path)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	uint64_t v;
	bool negative;

	if (as_read_file(path, 64, &b, NULL) < 0 || !b.len)
		return -1;
	if (b.p[b.len - 1] == '\n')
		b.p[--b.len] = 0;
	negative = b.p[0] == '-';
	if (!as_parse_u64(b.p + negative, &v) || v > 1 << 30)
		return -1;
	return negative ? -(long)v : (long)v;
}

void as_perf_limits_read(struct as_perf_limits *ret)
{
	ret->paranoid = read_limit("/proc/sys/kernel/perf_event_paranoid");
	ret->mlock_kib = read_limit("/proc/sys/kernel/perf_event_mlock_kb");
	ret->max_sample_rate = read_limit("/proc/sys/kernel/perf_event_max_sample_rate");
}

int as_perf_fail(struct as_error *err, int e, const char *what)
{
	struct as_perf_limits l;

	as_perf_limits_read(&l);
	if ((e == EACCES || e == EPERM) && l.paranoid > 2 && geteuid() != 0)
		return as_fail(
			err, AS_E_ACCESS, e,
			"cannot %s: the kernel lets no ordinary user sample "
			"(perf_event_paranoid is %ld, 2 is needed)\n  now, once:  sudo sysctl "
			"kernel.perf_event_paranoid=2\n  for good:   echo "
			"kernel.perf_event_paranoid=2 | sudo tee /etc/sysctl.d/50-assay.conf",
			what, l.paranoid);
	if ((e == EACCES || e == EPERM) && geteuid() == 0)
		return as_fail(
			err, AS_E_ACCESS, e,
			"cannot %s: %s, even for root: a container without the right, or "
			"its seccomp filter, refuses perf_event_open"
			"\n  docker run --cap-add PERFMON --cap-add BPF …",
			what, strerror(e));
	if (e == EACCES || e == EPERM)
		return as_fail(err, AS_E_ACCESS, e,
			       "cannot %s: %s (another user's process, or a container's "
			       "seccomp filter that refuses perf_event_open)\n  as root:       "
			       "sudo assay …\n  in a container: docker run --cap-add PERFMON …",
			       what, strerror(e));
	if (e == EMFILE)
		return as_fail(err, AS_E_LIMIT, e,
			       "cannot %s: too many open files\n  ulimit -n 65536", what);
	if (e == ESRCH)
		return as_fail(err, AS_E_NOTFOUND, e, "cannot %s: it has ended", what);
	if (e == ENOSYS)
		return as_fail(
			err, AS_E_UNSUPPORTED, e,
			"cannot %s: the kernel (or a container's seccomp filter) has no "
			"perf_event_open"
			"\n  in a container: docker run --security-opt seccomp=unconfined …",
			what);
	return as_fail(err, AS_E_UNSUPPORTED, e, "cannot %s: %s", what, strerror(e));
}

/* ---- events ---- */

int as_perf_open(struct perf_event_attr *attr, pid_t tid, int cpu)
{
	long fd = syscall(SYS_perf_event_open, attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0 && errno == EINVAL && attr->read_format) {
		attr->read_format = 0; /* PERF_FORMAT_LOST is younger than 6.0 */
		fd = syscall(SYS_perf_event_open, attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	}
	return fd < 0 ? -errno : (int)fd;
}

uint64_t as_perf_id(int fd)
{
	uint64_t id = 0;

	return ioctl(fd, PERF_EVENT_IOC_ID, &id) ? 0 : id;
}

static void attr_common(struct perf_event_attr *a)
{
	memset(a, 0, sizeof *a);
	a->size = sizeof *a;
	a->sample_type = COMMON_SAMPLE_TYPE;
	a->sample_id_all = 1;
	a->use_clockid = 1;
	a->clockid = CLOCK_MONOTONIC;
	a->exclude_guest = 1;
	a->exclude_hv = 1;
}

void as_perf_attr_sampler(const struct as_perf_event_choice *c, const struct as_perf_spec *s,
			  struct perf_event_attr *ret)
{
	attr_common(ret);
	ret->type = c->type;
	ret->config = c->config;
	ret->sample_type |= PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD | PERF_SAMPLE_REGS_USER |
			    PERF_SAMPLE_STACK_USER;
	ret->sample_regs_user = AS_PERF_REGS_MASK;
	ret->sample_stack_user = s->stack_bytes;
	ret->read_format = PERF_FORMAT_LOST;
	ret->exclude_kernel = c->exclude_kernel;
	if (c->callchain) {
		ret->sample_type |= PERF_SAMPLE_CALLCHAIN;
		ret->exclude_callchain_user = 1;
	}
	if (c->weight_is_cycles) {
		ret->freq = 1;
		ret->sample_freq = s->freq_hz;
	} else {
		ret->sample_period = s->period_ns;
	}
	ret->inherit = 1;
	ret->inherit_thread = s->threads_only;
	ret->disabled = 1;
	ret->enable_on_exec = s->enable_on_exec;
}

void as_perf_attr_tracker(bool threads_only, struct perf_event_attr *ret)
{
	attr_common(ret);
	ret->type = PERF_TYPE_SOFTWARE;
	ret->config = PERF_COUNT_SW_DUMMY;
	ret->exclude_kernel = 1;
	ret->mmap = ret->mmap2 = ret->comm = ret->comm_exec = ret->task = 1;
	ret->inherit = 1;
	ret->inherit_thread = threads_only;
	ret->watermark = 1; /* of the ring: half full */
}

static bool event_works(const struct as_perf_event_choice *c, int *ret_errno)
{
	struct as_perf_spec s = {.period_ns = 10000000, .freq_hz = 100, .stack_bytes = 4096};
	struct perf_event_attr a;
	int fd;

	as_perf_attr_sampler(c, &s, &a);
	fd = as_perf_open(&a, 0, -1);
	if (fd < 0) {
		*ret_errno = -fd;
		return false;
	}
	close(fd);
	return true;
}

/* Some virtual machines accept the cycles event and never count: try it for a moment. */
static bool event_counts(const struct as_perf_event_choice *c)
{
	struct perf_event_attr a = {
		.size = sizeof a, .type = c->type, .config = c->config, .exclude_kernel = 1};
	int fd = as_perf_open(&a, 0, -1);
	uint64_t v = 0;
	bool ok;

	if (fd < 0)
		return false;
	for (volatile int i = 0; i < 10000; i++)
		;
	ok = read(fd, &v, sizeof v) == sizeof v && v > 0;
	close(fd);
	return ok;
}

int as_perf_choose_event(bool want_kernel_stacks, struct as_perf_event_choice *ret,
			 struct as_error *err)
{
	static const struct as_perf_event_choice events[] = {
		{.type = PERF_TYPE_HARDWARE,
		 .config = PERF_COUNT_HW_CPU_CYCLES,
		 .name = "cycles",
		 .weight_is_cycles = true},
		{.type = PERF_TYPE_SOFTWARE,
		 .config = PERF_COUNT_SW_CPU_CLOCK,
		 .name = "cpu-clock"},
	};
	int e = ENOENT;

	for (size_t i = 0; i < AS_ARRAY_LEN(events); i++) {
		/* with kernel mode and its call chain, then without the chain, then user mode only */
		for (int less = want_kernel_stacks ? 0 : 1; less < 3; less++) {
			struct as_perf_event_choice c = events[i];

			c.callchain = less == 0;
			c.exclude_kernel = less == 2;
			if (!event_works(&c, &e))
				continue;
			if (c.weight_is_cycles && !event_counts(&c))
				break;
			*ret = c;
			return 0;
		}
	}
	return as_perf_fail(err, e, "sample the program");
}

/* ---- rings ---- */

int as_perf_ring_map(struct as_perf_ring *r, int fd, size_t npages)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (npages + 1) * page;
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	as_perf_ring_over(r, p, (const uint8_t *)p + page, npages * page);
	r->mapped_bytes = bytes;
	return 0;
}

void as_perf_ring_over(struct as_perf_ring *r, struct perf_event_mmap_page *page,
		       const void *data, uint64_t size)
{
	memset(r, 0, sizeof *r);
	r->page = page;
	r->data = data;
	r->size = size;
	r->wrapped = as_xmalloc(65536);
}

void as_perf_ring_clear(struct as_perf_ring *r)
{
	if (r->mapped_bytes)
		munmap(r->page, r->mapped_bytes);
	free(r->wrapped);
	memset(r, 0, sizeof *r);
}

/* Pairs with the kernel's store of data_head after the bytes of the records. */
void as_perf_ring_begin(struct as_perf_ring *r)
{
	r->head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
	r->tail = r->page->data_tail; /* written by us alone */
	r->current = 0;
}

const void *as_perf_ring_peek(struct as_perf_ring *r, size_t *ret_n)
{
	uint64_t at = r->tail & (r->size - 1), left = r->head - r->tail;
	const struct perf_event_header *h;
	size_t n, first;

	if (left == 0)
		return NULL;
	h = (const void *)(r->data + at); /* records are 8-aligned: a header never wraps */
	n = h->size;
	if (left < sizeof *h || n < sizeof *h || n % 8 || n > left || n > r->size) {
		r->damaged++;
		r->tail = r->head;
		__atomic_store_n(&r->page->data_tail, r->tail, __ATOMIC_RELEASE);
		return NULL;
	}
	r->current = (uint32_t)n;
	*ret_n = n;
	if (at + n <= r->size)
		return h;
	first = (size_t)(r->size - at);
	memcpy(r->wrapped, h, first);
	memcpy(r->wrapped + first, r->data, n - first);
	return r->wrapped;
}

/* Release: our reads of the bytes come before the kernel may write over them. */
void as_perf_ring_pop(struct as_perf_ring *r)
{
	r->tail += r->current;
	r->current = 0;
	__atomic_store_n(&r->page->data_tail, r->tail, __ATOMIC_RELEASE);
}
