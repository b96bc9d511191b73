/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Event descriptors of the ring engine.
 *
 * Per CPU one ring, owned by a tracker (dummy event: mmap2, comm, fork, exit). Samplers write
 * into it by PERF_EVENT_IOC_SET_OUTPUT, so they can be replaced while the tracker goes on. All
 * are inherited by what the thread clones or forks later.
 *
 * Periods are random in [1/2, 3/2] of the nominal one: per sampler when it is opened, again
 * at the first drain after 8 ms or so of CPU time and about 6 samples (PERF_EVENT_IOC_PERIOD), and
 * for a clone whatever its creator's event had at that moment. A clone keeps its period until
 * its events are reopened; no ioctl reaches it. A fixed random period meets a given program's
 * rhythm with a chance of about N^-1 in N samples; a fixed nominal one always does. The samples
 * of a period that does are worth one: half the width and thrice as long made shares of a
 * program with a rhythm of 1 ms err by 1.9 points instead of 1.5 (30 % of 1,000 samples; 1.45
 * is independent).
 *
 * What a sample stands for: the period that ran out; for the first sample of a thread on a CPU half
 * a period more (the end of its life loses half a period on average); after a change of period
 * what the thread had run since its last sample (the ioctl starts the timer anew), by the share of
 * wall time it had lately. So sums of weights estimate CPU time without bias for threads that live
 * longer than a period per CPU.
 *
 * Reopening: new samplers are opened disabled for every thread that lives, until a round over
 * /proc/PID/task finds no new one; then they are enabled and the old ones closed. Whatever a
 * thread clones in between inherits one or the other.
 */
#include "collect/engine_ring_priv.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/sys.h"

#define RING_TOTAL_BYTES (16u << 20) /* of all CPUs, while each has 1 MiB or more */
#define RING_START_MIN   (1u << 20)
#define RING_START_MAX   (8u << 20)
#define RING_USER_SHARE  2u /* ordinary users: 8 MiB of locked memory is the usual limit */
#define SHRINK_SAMPLES   700u
#define RING_PAGES_MIN   8u

uint64_t as_ring_random(struct as_ring *e)
{
	e->rng += 0x9e3779b97f4a7c15ull;
	return as_mix64(e->rng);
}

static uint64_t random_period(struct as_ring *e)
{
	if (e->env.options->no_jitter)
		return e->period_ns;
	return e->period_ns / 2 + as_ring_random(e) % (e->period_ns + 1);
}

/* Samples until the next change of period. */
static uint32_t random_run(struct as_ring *e)
{
	uint64_t mean = AS_MIN(AS_MAX(e->rate_hz * 8 / 1000, 6ull), 256ull);

	return (uint32_t)(mean / 2 + as_ring_random(e) % (mean + 1));
}

/* ---- CPUs and rings ---- */

int as_ring_open_cpus(struct as_ring *e, struct as_error *err)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);

	if (n < 1 || n > 8192)
		return as_fail(err, AS_E_UNSUPPORTED, 0, "cannot count the CPUs");
	e->cpus = as_xcalloc((size_t)n, sizeof *e->cpus);
	for (int c = 0; c < n; c++)
		e->cpus[e->ncpus++].cpu = c;
	e->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (e->epfd < 0)
		return as_fail(err, AS_E_IO, errno, "cannot make an epoll: %s",
			       strerror(errno));
	return 0;
}

/* The largest ring that the mlock allowance gives: halved until it maps. */
static int map_ring(struct as_ring *e, struct as_ring_cpu *c, int fd, struct as_error *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), start = RING_START_MAX;
	struct as_perf_limits l;
	struct rlimit rl = {0};
	int r = 0;

	while (start > RING_START_MIN &&
	       start * e->ncpus > RING_TOTAL_BYTES / (geteuid() ? RING_USER_SHARE : 1))
		start /= 2;
	for (size_t pages = start / page; pages >= RING_PAGES_MIN; pages /= 2) {
		r = as_perf_ring_map(&c->ring, fd, pages);
		if (r != -EPERM && r != -ENOMEM)
			break;
	}
	if (r == 0)
		return 0;
	as_perf_limits_read(&l);
	getrlimit(RLIMIT_MEMLOCK, &rl);
	return as_fail(err, AS_E_LIMIT, -r,
		       "cannot map a buffer of %u pages for CPU %d: %s (perf_event_mlock_kb is "
		       "%ld KiB per CPU for all "
		       "profilers of a user together, the locked-memory limit %llu KiB)\n  "
		       "now, once:  sudo sysctl "
		       "kernel.perf_event_mlock_kb=2048\n  this shell: ulimit -l unlimited",
		       RING_PAGES_MIN, c->cpu, strerror(-r), l.mlock_kib,
		       (unsigned long long)rl.rlim_cur / 1024);
}

/* A tracker of tid on CPU c; the first one owns the ring. ENODEV: the CPU is offline. */
static int open_tracker(struct as_ring *e, struct as_ring_cpu *c, pid_t tid,
			struct as_error *err)
{
	struct perf_event_attr a;
	struct epoll_event ev = {.events = EPOLLIN};
	int fd, r;

	as_perf_attr_tracker(e->env.options->no_inherit, &a);
	fd = as_perf_open(&a, tid, c->cpu);
	if (fd == -ENODEV)
		return 0;
	if (fd < 0)
		return as_perf_fail(err, -fd, "follow the program");
	if (c->ring.page) {
		if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, c->trackers.v[0])) {
			r = errno;
			close(fd);
			return as_perf_fail(err, r, "share a buffer");
		}
		as_vec_push(&c->trackers, fd);
		return 0;
	}
	r = map_ring(e, c, fd, err);
	if (r < 0) {
		close(fd);
		return r;
	}
	as_vec_push(&c->trackers, fd);
	ev.data.fd = fd;
	epoll_ctl(e->epfd, EPOLL_CTL_ADD, fd, &ev);
	return 0;
}

/*
 * An event that is not inherited. The kernel swaps the event contexts of a process and its
 * clone at a switch between them when all events are inherited; a clone that ends then takes
 * the time its creator had run towards its next sample with it, and a program that forks more
 * often than it is sampled never is. One event of its own keeps the contexts apart.
 */
static void keep_apart(struct as_ring *e, pid_t tid)
{
	struct perf_event_attr a = {
		.size = sizeof a,
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
	};
	int fd = as_perf_open(&a, tid, -1);

	if (fd >= 0)
		as_vec_push(&e->cpus[0].trackers, fd); /* closed with the others */
}

/* ---- samplers ---- */

static int open_sampler(struct as_ring *e, size_t cpu_index, pid_t tid,
			struct as_perf_spec *spec)
{
	struct as_ring_cpu *c = &e->cpus[cpu_index];
	struct perf_event_attr a;
	struct as_ring_sampler s = {.tid = tid, .cpu_index = (uint32_t)cpu_index};
	int r;

	if (!c->ring.page)
		return 0;
	s.period_ns = s.prev_ns = random_period(e);
	s.reroll_at = random_run(e);
	spec->period_ns = s.period_ns;
	as_perf_attr_sampler(&e->event, spec, &a);
	s.fd = as_perf_open(&a, tid, c->cpu);
	if (s.fd == -ENODEV)
		return 0;
	if (s.fd < 0)
		return s.fd;
	if (ioctl(s.fd, PERF_EVENT_IOC_SET_OUTPUT, c->trackers.v[0])) {
		r = -errno;
		close(s.fd);
		return r;
	}
	s.id = as_perf_id(s.fd);
	as_vec_push(&e->samplers, s);
	return 0;
}

static int open_thread_samplers(struct as_ring *e, pid_t tid, uint32_t copy_bytes, bool on_exec)
{
	struct as_perf_spec spec = {
		.freq_hz = e->rate_hz,
		.stack_bytes = copy_bytes & ~7u,
		.threads_only = e->env.options->no_inherit,
		.enable_on_exec = on_exec,
	};

	for (size_t i = 0; i < e->ncpus; i++) {
		int r = open_sampler(e, i, tid, &spec);

		if (r < 0)
			return r;
	}
	return 0;
}

static void index_samplers(struct as_ring *e)
{
	as_map64_clear(&e->sampler_by_id);
	for (size_t i = 0; i < e->samplers.n; i++)
		*as_map64_put(&e->sampler_by_id, e->samplers.v[i].id, NULL) = i;
}

/* A copy that does not leave room for at least eight in a ring would be lost more than taken. */
static void limit_copies(struct as_ring *e)
{
	e->copy_max = AS_RING_COPY_MAX;
	for (size_t i = 0; i < e->ncpus; i++) {
		if (e->cpus[i].ring.page && e->cpus[i].ring.size / 64 < e->copy_max)
			e->copy_max = (uint32_t)(e->cpus[i].ring.size / 64);
	}
	e->copy_max = AS_MAX(e->copy_max & ~7u, 1024u);
	e->copy_bytes = AS_MIN(e->copy_bytes, e->copy_max);
}

int as_ring_open_launched(struct as_ring *e, pid_t pid, struct as_error *err)
{
	int r;

	for (size_t i = 0; i < e->ncpus; i++) {
		r = open_tracker(e, &e->cpus[i], pid, err);

		if (r < 0)
			return r;
	}
	keep_apart(e, pid);
	limit_copies(e);
	r = open_thread_samplers(e, pid, e->copy_bytes, true);
	index_samplers(e);
	return r < 0 ? as_perf_fail(err, -r, "sample the program") : 0;
}

/* ---- threads that live now ---- */

struct tid_list {
	AS_VEC(pid_t) tids;
	struct as_map64 seen;
};

static void tid_list_clear(struct tid_list *l)
{
	as_vec_clear(&l->tids);
	as_map64_clear(&l->seen);
}

/* Adds the threads of pid that are not in the list yet; the number of new ones. */
static size_t add_tasks(struct tid_list *l, pid_t pid)
{
	char path[64];
	struct dirent *d;
	size_t added = 0;
	DIR *dir;

	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return 0;
	while ((d = readdir(dir))) {
		uint64_t tid;
		bool fresh;

		if (d->d_name[0] == '.' || !as_parse_u64(d->d_name, &tid) || tid > INT32_MAX)
			continue;
		as_map64_put(&l->seen, tid, &fresh);
		if (!fresh)
			continue;
		as_vec_push(&l->tids, (pid_t)tid);
		added++;
	}
	closedir(dir);
	return added;
}

int as_ring_open_attached(struct as_ring *e, pid_t pid, struct as_error *err)
{
	AS_CLEANUP(tid_list_clear) struct tid_list l = {0};
	size_t done = 0, opened = 0;
	int r = 0;

	/* a thread opened in one round inherits into its clones; new ones of others show in the
	 * next */
	for (int round = 0; round < 20 && add_tasks(&l, pid); round++) {
		for (; done < l.tids.n; done++) {
			pid_t tid = l.tids.v[done];

			for (size_t i = 0; i < e->ncpus && r >= 0; i++)
				r = open_tracker(e, &e->cpus[i], tid, err);
			if (r >= 0) {
				keep_apart(e, tid);
				limit_copies(e);
				r = open_thread_samplers(e, tid, e->copy_bytes, false);
				if (r < 0 && r != -ESRCH)
					return as_perf_fail(err, -r, "sample the process");
			}
			if (r < 0 && r != AS_E_NOTFOUND && r != -ESRCH)
				return r;
			opened += r >= 0; /* a zombie, or ended meanwhile: the others count */
			r = 0;
			as_ring_thread(e, pid, tid);
			as_ring_proc(e, pid)->live_threads++;
		}
	}
	index_samplers(e);
	if (!opened)
		return as_fail(err, AS_E_NOTFOUND, ESRCH, "process %d has already ended",
			       (int)pid);
	return 0;
}

int as_ring_enable(struct as_ring *e)
{
	as_vec_foreach (s, &e->samplers) {
		if (ioctl(s->fd, PERF_EVENT_IOC_ENABLE, 0) && errno != ESRCH)
			return -errno;
	}
	return 0;
}

void as_ring_disable(struct as_ring *e)
{
	as_vec_foreach (s, &e->samplers)
		ioctl(s->fd, PERF_EVENT_IOC_DISABLE, 0);
}

/* What the kernel counted as lost and no record told of: those of the end have none after them. */
uint64_t as_ring_untold_loss(const struct as_ring *e)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < e->samplers.n; i++) {
		uint64_t value_lost[2];

		if (read(e->samplers.v[i].fd, value_lost, sizeof value_lost) ==
		    sizeof value_lost)
			sum += value_lost[1];
	}
	return sum > e->lost_total ? sum - e->lost_total : 0;
}

void as_ring_close_events(struct as_ring *e)
{
	as_vec_foreach (s, &e->samplers)
		close(s->fd);
	as_vec_clear(&e->samplers);
	as_map64_clear(&e->sampler_by_id);
	for (size_t i = 0; i < e->ncpus; i++) {
		as_vec_foreach (fd, &e->cpus[i].trackers)
			close(*fd);
		as_vec_clear(&e->cpus[i].trackers);
		as_perf_ring_clear(&e->cpus[i].ring);
	}
	free(e->cpus);
	e->cpus = NULL;
	e->ncpus = 0;
	as_close_autop(&e->epfd);
	e->epfd = -1;
}

/* ---- weights and jitter ---- */

static void note_gap(struct as_ring_sampler *s, uint64_t time_ns)
{
	uint64_t gap = time_ns - s->last_ns;

	if (s->last_ns)
		s->gap_ns = s->gap_ns ? (3 * s->gap_ns + gap) / 4 : gap;
	s->last_ns = time_ns;
}

uint64_t as_ring_weight(struct as_ring *e, struct as_ring_thread *t,
			const struct as_perf_rec *rec)
{
	uint64_t *slot = as_map64_get(&e->sampler_by_id, rec->stream_id), period = rec->period,
		 weight;
	uint64_t bit = 1ull << (rec->cpu % 64);

	if (e->event.weight_is_cycles)
		return rec->period;
	weight = period;
	if (slot) {
		struct as_ring_sampler *s = &e->samplers.v[*slot];

		weight = period =
			rec->time_ns >= s->set_ns + s->period_ns ? s->period_ns : s->prev_ns;
		if (rec->time_ns >= s->set_ns) {
			weight += s->carry_ns;
			s->carry_ns = 0;
			s->since++;
			note_gap(s, rec->time_ns);
		}
	}
	if (!(t->cpus_seen & bit))
		weight += period / 2;
	t->cpus_seen |= bit;
	return weight;
}

/* CPU time since the last sample, which the new period throws away: by the share of time the thread
 * has lately. Had it kept that, another sample would be there: else it left this CPU at some moment. */
static uint64_t cut_off(const struct as_ring_sampler *s, uint64_t now_ns)
{
	double part = s->gap_ns ? (double)(now_ns - s->last_ns) / (double)s->gap_ns : 1;

	return (uint64_t)((double)s->period_ns * (part < 1 ? part : 0.5));
}

static void reroll(struct as_ring *e, struct as_ring_sampler *s)
{
	uint64_t period = random_period(e), now;

	if (ioctl(s->fd, PERF_EVENT_IOC_PERIOD, &period))
		return; /* its thread has ended */
	now = as_now_ns();
	if (s->since)
		s->carry_ns += cut_off(s, now);
	s->prev_ns = s->period_ns;
	s->period_ns = period;
	s->set_ns = now;
	s->last_ns = 0;
	s->since = 0;
	s->reroll_at = random_run(e);
}

void as_ring_jitter(struct as_ring *e, uint64_t now_ns)
{
	if (e->env.options->no_jitter || e->event.weight_is_cycles)
		return;
	as_vec_foreach (s, &e->samplers) {
		/* clones take the period their creator's event has: let a burst of them differ */
		bool spread = e->forked && as_ring_random(e) % 2;

		if ((s->since >= s->reroll_at || spread) && now_ns > s->set_ns + s->period_ns)
			reroll(e, s);
	}
	e->forked = false;
}

/* ---- copies of the right size ---- */

/*
 * Most copies end early, where no larger one helps: such a thread is continued from live memory
 * anyhow, and a small copy costs less.
 */
static bool is_hopeless(const struct as_ring_thread *t)
{
	return t->keep_small || (t->n >= 16 && t->holes * 5 > t->n * 4);
}

/* The smallest size that serves 98 in 100 of the samples that any size serves. */
static uint32_t wanted_copy(const struct as_ring *e, const struct as_ring_thread *t,
			    uint32_t current)
{
	uint32_t served = t->holes, i;

	current = AS_MIN(current, e->copy_max);
	if (is_hopeless(t))
		return AS_MIN(AS_RING_COPY_USUAL, e->copy_max);
	if (t->n < 16)
		return current;
	for (i = 0; i + 1 < AS_RING_COPY_SIZES; i++) {
		served += t->by_size[i];
		if ((t->n - served) * 50 <= t->n)
			break;
	}
	return AS_MIN(as_ring_copy_sizes[i], e->copy_max);
}

static bool any_thread_unhappy(struct as_ring *e)
{
	bool grow = false, shrink = true;
	uint32_t n = 0;

	as_vec_foreach (t, &e->threads) {
		uint32_t current = t->copy_bytes ? t->copy_bytes : e->copy_bytes, want;

		if (!t->tid || t->n < 16)
			continue;
		want = wanted_copy(e, t, current);
		n += t->n;
		grow |= want > current;
		shrink &= want < current;
	}
	/* what a program does first tells little of what it, or what it starts, will need */
	return grow || (shrink && n >= SHRINK_SAMPLES);
}

static bool all_tasks(struct as_ring *e, struct tid_list *l)
{
	size_t added = 0;

	as_vec_foreach (p, &e->procs) {
		if (p->pid)
			added += add_tasks(l, p->pid);
	}
	return added > 0;
}

static void close_samplers(struct as_ring_sampler *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		close(v[i].fd);
}

/* Opens new samplers for all threads behind the old ones; the old count is kept in *ret_old. */
static int open_replacements(struct as_ring *e, struct tid_list *l)
{
	size_t done = 0;

	for (int round = 0; round < 20 && all_tasks(e, l); round++) {
		for (; done < l->tids.n; done++) {
			const uint64_t *slot =
				as_map64_get(&e->thread_by_tid, (uint32_t)l->tids.v[done]);
			uint32_t want = e->copy_bytes;
			int r;

			if (slot && e->threads.v[*slot].tid) {
				struct as_ring_thread *t = &e->threads.v[*slot];

				if (t->copy_bytes)
					want = t->copy_bytes;
				t->keep_small = is_hopeless(t);
				want = t->copy_bytes = wanted_copy(e, t, want);
			}
			r = open_thread_samplers(e, l->tids.v[done], want, false);
			if (r < 0 && r != -ESRCH)
				return r;
		}
	}
	return done ? 0 : -ESRCH;
}

static bool affordable(const struct as_ring *e)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl))
		return false;
	return e->thread_by_tid.n * e->ncpus * 2 + e->samplers.n < rl.rlim_cur / 2;
}

static void replace_samplers(struct as_ring *e)
{
	AS_CLEANUP(tid_list_clear) struct tid_list l = {0};
	size_t old = e->samplers.n;

	if (open_replacements(e, &l) < 0) {
		close_samplers(e->samplers.v + old, e->samplers.n - old);
		e->samplers.n = old;
		return;
	}
	for (size_t i = old; i < e->samplers.n; i++) {
		ioctl(e->samplers.v[i].fd, PERF_EVENT_IOC_ENABLE, 0);
		e->samplers.v[i].set_ns = 0;
	}
	close_samplers(e->samplers.v, old);
	memmove(e->samplers.v, e->samplers.v + old,
		(e->samplers.n - old) * sizeof *e->samplers.v);
	e->samplers.n -= old;
	index_samplers(e);
	as_vec_foreach (t, &e->threads)
		t->cpus_seen = 0; /* half a period was cut off again */
}

/* Samples were lost for want of room: smaller copies for everybody, down to the usual one. */
static bool shrink_after_loss(struct as_ring *e)
{
	bool smaller = e->lost && e->copy_max > AS_RING_COPY_USUAL;

	if (smaller)
		e->copy_max = AS_MAX(e->copy_max / 2, AS_RING_COPY_USUAL);
	e->lost = 0;
	return smaller;
}

void as_ring_resize(struct as_ring *e, uint64_t now_ns)
{
	bool smaller;

	if (e->copy_fixed || now_ns < e->sweep_after_ns)
		return;
	e->sweep_after_ns = now_ns + 50000000ull;
	smaller = shrink_after_loss(e);
	if ((!smaller && !any_thread_unhappy(e)) || !affordable(e))
		return;
	replace_samplers(e);
	as_vec_foreach (t, &e->threads) {
		t->n = t->holes = 0;
		memset(t->by_size, 0, sizeof t->by_size);
	}
	e->sweeps++;
	e->sweep_after_ns = now_ns + (50000000ull << AS_MIN(e->sweeps, 10u));
}
