/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What processes do besides running: one dummy perf event per CPU, for the whole system, whose
 * ring carries mmap, comm, fork and exit records. A drain takes all rings up to their heads and
 * sorts by time; the records of one moment may still be split over two drains, which callers bear.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "collect/engine_kernel_priv.h"

#define RING_PAGES 32 /* data; with 516 KiB per CPU allowed, small enough for anyone */

static int open_ring(struct as_kside *s, uint32_t cpu, struct as_error *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct perf_event_attr a = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(a),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.disabled = 1,
		.watermark = 1,
		.wakeup_watermark = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	struct as_kside_ring *r = &s->ring[s->nrings];

	r->fd = (int)syscall(SYS_perf_event_open, &a, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (r->fd < 0)
		return as_fail(err, errno == EACCES || errno == EPERM ? AS_E_ACCESS : AS_E_IO,
			       errno, "cannot watch processes on CPU %u: %s", cpu,
			       strerror(errno));
	s->nrings++;
	r->map_bytes = (RING_PAGES + 1) * page;
	r->map = mmap(NULL, r->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	if (r->map == MAP_FAILED) {
		r->map = NULL;
		return as_fail(err, AS_E_LIMIT, errno,
			       "cannot map a ring buffer of %zu KiB: %s", r->map_bytes / 1024,
			       strerror(errno));
	}
	struct epoll_event e = {.events = EPOLLIN};
	if (epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, r->fd, &e))
		return as_fail(err, AS_E_IO, errno, "cannot wait for events: %s",
			       strerror(errno));
	return AS_OK;
}

int as_kside_open(struct as_kside *s, struct as_error *err)
{
	size_t n;
	AS_CLEANUP(as_free_autop) uint32_t *cpu = as_kcpus_online(&n);

	memset(s, 0, sizeof(*s));
	s->ring = as_xcalloc(n, sizeof(*s->ring));
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll_fd < 0)
		return as_fail(err, AS_E_IO, errno, "cannot wait for events: %s",
			       strerror(errno));
	for (size_t i = 0; i < n; i++) {
		int r = open_ring(s, cpu[i], err);
		if (r < 0)
			return r;
	}
	return AS_OK;
}

int as_kside_enable(struct as_kside *s, struct as_error *err)
{
	for (size_t i = 0; i < s->nrings; i++)
		if (ioctl(s->ring[i].fd, PERF_EVENT_IOC_ENABLE, 0))
			return as_fail(err, AS_E_IO, errno,
				       "cannot start watching processes: %s", strerror(errno));
	return AS_OK;
}

static void add_mmap(struct as_kside *s, struct as_kevent *e, struct as_rd *rd)
{
	e->type = AS_KEVENT_MMAP;
	e->pid = (pid_t)as_rd_u32(rd);
	e->tid = (pid_t)as_rd_u32(rd);
	e->start_avma = as_rd_u64(rd);
	e->size_bytes = as_rd_u64(rd);
	e->off = as_rd_u64(rd);
	e->maj = as_rd_u32(rd);
	e->min = as_rd_u32(rd);
	e->ino = as_rd_u64(rd);
	as_rd_skip(rd, 16); /* inode generation, protection, flags */
	e->text = as_arena_strdup(&s->arena, as_rd_cstr(rd));
	if (!rd->bad)
		as_vec_push(&s->event, *e);
}

static void add_comm(struct as_kside *s, struct as_kevent *e, struct as_rd *rd, bool exec)
{
	e->type = exec ? AS_KEVENT_EXEC : AS_KEVENT_COMM;
	e->pid = (pid_t)as_rd_u32(rd);
	e->tid = (pid_t)as_rd_u32(rd);
	e->text = as_arena_strdup(&s->arena, as_rd_cstr(rd));
	if (!rd->bad)
		as_vec_push(&s->event, *e);
}

static void add_task(struct as_kside *s, struct as_kevent *e, struct as_rd *rd, bool fork)
{
	e->type = fork ? AS_KEVENT_FORK : AS_KEVENT_EXIT;
	e->pid = (pid_t)as_rd_u32(rd);
	e->ppid = (pid_t)as_rd_u32(rd);
	e->tid = (pid_t)as_rd_u32(rd);
	if (!rd->bad)
		as_vec_push(&s->event, *e);
}

/* rec: a whole record, header included. Its last 16 bytes are pid, tid, time. */
static void add_record(struct as_kside *s, const uint8_t *rec, size_t size)
{
	const struct perf_event_header *h = (const void *)rec;

	if (h->type == PERF_RECORD_LOST) {
		s->lost += size >= 24 ? as_get_le64(rec + 16) : 1;
		return;
	}
	if (size < sizeof(*h) + 16)
		return;
	struct as_rd rd = AS_RD(rec + sizeof(*h), size - sizeof(*h) - 16);
	struct as_kevent e = {.time_ns = as_get_le64(rec + size - 8), .seq = s->event.n};
	if (h->type == PERF_RECORD_MMAP2)
		add_mmap(s, &e, &rd);
	else if (h->type == PERF_RECORD_COMM)
		add_comm(s, &e, &rd, h->misc & PERF_RECORD_MISC_COMM_EXEC);
	else if (h->type == PERF_RECORD_FORK || h->type == PERF_RECORD_EXIT)
		add_task(s, &e, &rd, h->type == PERF_RECORD_FORK);
}

static void drain_ring(struct as_kside *s, struct as_kside_ring *r)
{
	struct perf_event_mmap_page *p = (void *)r->map;
	uint64_t head = __atomic_load_n(&p->data_head, __ATOMIC_ACQUIRE), tail = p->data_tail;
	const uint8_t *data = r->map + p->data_offset;
	uint64_t mask = p->data_size - 1;
	_Alignas(8) uint8_t rec[65536];

	while (tail < head) {
		struct perf_event_header h;
		/* records are 8-aligned: the header never wraps */
		memcpy(&h, data + (tail & mask), sizeof(h));
		if (h.size < sizeof(h) || h.size > head - tail) { /* not ours to understand */
			tail = head;
			s->lost++;
			break;
		}
		size_t first = AS_MIN((size_t)h.size, (size_t)(p->data_size - (tail & mask)));
		memcpy(rec, data + (tail & mask), first);
		memcpy(rec + first, data, h.size - first);
		add_record(s, rec, h.size);
		tail += h.size;
	}
	__atomic_store_n(&p->data_tail, tail, __ATOMIC_RELEASE);
}

static int by_time(const void *a, const void *b)
{
	const struct as_kevent *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

void as_kside_drain(struct as_kside *s)
{
	s->event.n = 0;
	s->lost = 0;
	as_arena_clear(&s->arena);
	for (size_t i = 0; i < s->nrings; i++)
		drain_ring(s, &s->ring[i]);
	if (s->event.n > 1)
		qsort(s->event.v, s->event.n, sizeof(*s->event.v), by_time);
}

void as_kside_close(struct as_kside *s)
{
	for (size_t i = 0; i < s->nrings; i++) {
		if (s->ring[i].map)
			munmap(s->ring[i].map, s->ring[i].map_bytes);
		close(s->ring[i].fd);
	}
	free(s->ring);
	if (s->epoll_fd > 0)
		close(s->epoll_fd);
	as_arena_clear(&s->arena);
	as_vec_clear(&s->event);
	memset(s, 0, sizeof(*s));
}
