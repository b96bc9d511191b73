/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One sampling event per CPU. The period is drawn anew, uniform in [0.5, 1.5] of its mean, at
 * random moments REDRAW_NS apart on average, so that no program can run in step with it.
 *
 * PERF_EVENT_IOC_PERIOD restarts the running interval: what had passed of it is lost, half a
 * period on average. Two consequences:
 *
 *	- A sample's weight is the time (event count) since the CPU's event fired before, measured
 *	  in the BPF program, not the nominal period. Whatever happened to the timer in between
 *	  (restarts, late interrupts, throttling), weights add up to the time that passed.
 *	  Longer than 12 mean periods it is a virtual CPU that was not run: one period then.
 *	- To deliver the rate asked for, periods are drawn around a mean m other than P: between
 *	  two restarts T apart, T/p - 1/2 firings of a period p happen, 1/p is ln 3 / m on average,
 *	  and T/P are wanted: m = T ln 3 / (T/P + 1/2).
 *
 * A period is never changed from a thread that runs on that same CPU. The restart would be tied
 * to a moment when the recorder has just displaced what ran there; on a busy machine what runs
 * half a period later is then no fair draw (measured at 100 Hz, load 10: samples explained 78 %
 * of the CPU time; 101 % with this rule). When that keeps a CPU in use from its turn for
 * STALE_NS, the recorder stays off that CPU until it has had it. With one CPU alone its period
 * is changed rarely instead.
 *
 * CPUs where no followed process was seen for IDLE_NS get SLOW times the period: they wake up
 * less, and weights stay right by the same measurement.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/sys.h"
#include "collect/engine_kernel_priv.h"
#include "collect/perf_event.h"

#define REDRAW_NS 20000000ull
#define IDLE_NS   1000000000ull
#define SLOW      4
#define STALE_NS  (4 * REDRAW_NS)
#define MEAN_RATE 1.0986122886681098 /* mean of 1/x for x in [0.5, 1.5] */
#define RARE      20 /* firings between two changes where there is no other CPU to make them from */

uint32_t *as_kcpus_online(size_t *ret_n)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	AS_VEC(uint32_t) cpu = {0};

	(void)as_read_file("/sys/devices/system/cpu/online", 4096, &b, NULL); /* empty: CPU 0 */
	for (const char *s = b.p; s; s = strchr(s, ','), s = s ? s + 1 : NULL) {
		unsigned from, to;
		int n = sscanf(s, "%u-%u", &from, &to);

		for (to = n == 2 ? to : from; n >= 1 && from <= to && cpu.n < 65536; from++)
			as_vec_push(&cpu, from);
	}
	if (!cpu.n)
		as_vec_push(&cpu, 0);
	*ret_n = cpu.n;
	return cpu.v;
}

static int open_event(bool cycles, uint64_t period, int cpu)
{
	struct perf_event_attr a = {
		.type = cycles ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE,
		.size = sizeof(a),
		.config = cycles ? PERF_COUNT_HW_CPU_CYCLES : PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period,
		.disabled = 1,
	};
	return (int)syscall(SYS_perf_event_open, &a, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

bool as_ktimers_have_cycles(void)
{
	if (access("/sys/bus/event_source/devices/cpu", F_OK) &&
	    access("/sys/bus/event_source/devices/cpu_core", F_OK))
		return false;
	/* on every CPU: hybrid machines have some without the generic event */
	size_t n;
	AS_CLEANUP(as_free_autop) uint32_t *cpu = as_kcpus_online(&n);
	for (size_t i = 0; i < n; i++) {
		int fd = open_event(true, 1000000000, (int)cpu[i]);

		if (fd < 0)
			return false;
		close(fd);
	}
	return true;
}

/* Cycles of a CPU per second, roughly: only sets the period. */
static double cycles_per_second(void)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	const char *file = "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq";

	if (as_read_file(file, 64, &b, NULL) == AS_OK && b.p) {
		unsigned khz;
		if (sscanf(b.p, "%u", &khz) == 1 && khz)
			return khz * 1e3;
	}
	return 3e9;
}

/* Keeps this thread off a CPU; UINT32_MAX: lets it run where it was allowed before. */
static void stay_off(struct as_ktimers *t, uint32_t cpu)
{
	cpu_set_t *set = CPU_ALLOC(t->max_cpus);

	if (!set)
		return;
	memcpy(set, t->allowed, t->allowed_bytes);
	if (cpu != UINT32_MAX)
		CPU_CLR_S(cpu, t->allowed_bytes, set);
	if (CPU_COUNT_S(t->allowed_bytes, set) && !sched_setaffinity(0, t->allowed_bytes, set))
		t->off_cpu = cpu;
	CPU_FREE(set);
}

/* Which CPUs this thread may use; unknown counts as one. */
static void learn_allowed(struct as_ktimers *t, int ncpus)
{
	t->off_cpu = UINT32_MAX;
	t->max_cpus = (size_t)ncpus;
	t->allowed = CPU_ALLOC(t->max_cpus);
	t->allowed_bytes = CPU_ALLOC_SIZE(t->max_cpus);
	t->alone = !t->allowed || sched_getaffinity(0, t->allowed_bytes, t->allowed) ||
		   CPU_COUNT_S(t->allowed_bytes, t->allowed) < 2;
}

int as_ktimers_open(struct as_ktimers *t, const struct as_kbpf *b, double rate_hz, bool jitter,
		    struct as_error *err)
{
	AS_CLEANUP(as_free_autop) uint32_t *cpu = as_kcpus_online(&t->n);
	double rate = rate_hz > 0 ? rate_hz : 997;

	t->jitter = jitter;
	t->interval_ns = (uint64_t)(1e9 / rate);
	learn_allowed(t, b->ncpus);
	t->rng = as_now_ns() ^ (uint64_t)getpid() << 40;
	t->period = (uint64_t)((t->cycles ? cycles_per_second() : 1e9) / rate);
	double per_redraw = (double)REDRAW_NS * 1e-9 * rate;
	t->mean = jitter ? (uint64_t)((double)t->period * MEAN_RATE * per_redraw /
				      (per_redraw + 0.5))
			 : t->period;
	t->cpu = as_xcalloc(t->n, sizeof(*t->cpu));
	t->of_cpu = as_xcalloc((size_t)b->ncpus, sizeof(*t->of_cpu));
	memset(t->of_cpu, 0xff, (size_t)b->ncpus * sizeof(*t->of_cpu));
	size_t n = t->n;
	for (t->n = 0; t->n < n; t->n++) {
		struct as_ktimer *c = &t->cpu[t->n];

		c->cpu = cpu[t->n];
		c->fd = open_event(t->cycles, t->mean, (int)c->cpu);
		if (c->fd < 0)
			return as_perf_fail(err, errno, "sample all CPUs");
		if (c->cpu < (uint32_t)b->ncpus)
			t->of_cpu[c->cpu] = (uint32_t)t->n;
		if (ioctl(c->fd, PERF_EVENT_IOC_SET_BPF, b->fd_sample)) {
			t->n++;
			return as_fail(err, AS_E_UNSUPPORTED, errno,
				       "cannot attach the unwinder to the sampling event: %s",
				       strerror(errno));
		}
	}
	return AS_OK;
}

static uint64_t draw(struct as_ktimers *t, uint64_t mean)
{
	t->rng += 0x9e3779b97f4a7c15ull;
	uint64_t x = as_mix64(t->rng);
	return mean / 2 + (uint64_t)((double)(x >> 11) * 0x1p-53 * (double)mean);
}

static void set_period(struct as_ktimer *c, uint64_t period)
{
	/* without it the old period goes on: less random, still right */
	(void)ioctl(c->fd, PERF_EVENT_IOC_PERIOD, &period);
}

int as_ktimers_start(struct as_ktimers *t, struct as_kbpf *b, struct as_error *err)
{
	uint64_t now = as_now_ns();

	for (size_t i = 0; i < t->n; i++) {
		struct as_ktimer *c = &t->cpu[i];

		c->active_ns = c->redrawn_ns = now;
		if (t->jitter)
			set_period(c, draw(t, t->mean));
		if (!t->cycles && c->cpu < (uint32_t)b->ncpus)
			b->counts[c->cpu].last = as_now_ns();
		if (ioctl(c->fd, PERF_EVENT_IOC_ENABLE, 0))
			return as_fail(err, AS_E_IO, errno, "cannot start sampling: %s",
				       strerror(errno));
	}
	t->redraw_ns = now + draw(t, REDRAW_NS);
	return AS_OK;
}

void as_ktimers_stop(struct as_ktimers *t)
{
	for (size_t i = 0; i < t->n; i++)
		/* it ends with the descriptor at worst */
		(void)ioctl(t->cpu[i].fd, PERF_EVENT_IOC_DISABLE, 0);
}

void as_ktimers_seen(struct as_ktimers *t, uint32_t cpu, uint64_t now_ns)
{
	uint32_t i = t->of_cpu[cpu];

	if (i < t->n)
		t->cpu[i].active_ns = now_ns;
}

/* False: this CPU has to wait. *ret_wanted: it has waited too long. */
static bool may_redraw(const struct as_ktimers *t, const struct as_ktimer *c, uint64_t now_ns,
		       bool *ret_wanted)
{
	uint64_t age = now_ns - c->redrawn_ns;

	*ret_wanted = false;
	if ((int)c->cpu != sched_getcpu())
		return true;
	if (t->alone)
		return age > RARE * t->interval_ns;
	*ret_wanted = age > STALE_NS;
	return false;
}

void as_ktimers_redraw(struct as_ktimers *t, uint64_t now_ns)
{
	uint32_t off = UINT32_MAX;

	if (now_ns < t->redraw_ns)
		return;
	t->redraw_ns = now_ns + draw(t, REDRAW_NS);
	if (!t->jitter)
		return;
	for (size_t i = 0; i < t->n; i++) {
		struct as_ktimer *c = &t->cpu[i];
		bool idle = now_ns > c->active_ns + IDLE_NS, wanted;

		if (idle && c->slow)
			continue;
		if (!may_redraw(t, c, now_ns, &wanted)) {
			if (wanted)
				off = c->cpu;
			continue;
		}
		c->slow = idle;
		c->redrawn_ns = now_ns;
		set_period(c, draw(t, idle ? t->mean * SLOW : t->mean));
	}
	if (off != t->off_cpu)
		stay_off(t, off);
}

void as_ktimers_close(struct as_ktimers *t)
{
	for (size_t i = 0; i < t->n; i++)
		close(t->cpu[i].fd);
	if (t->allowed && t->off_cpu != UINT32_MAX)
		stay_off(t, UINT32_MAX);
	CPU_FREE(t->allowed);
	free(t->cpu);
	free(t->of_cpu);
	memset(t, 0, sizeof(*t));
}
