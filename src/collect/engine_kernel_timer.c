/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One sampling event per CPU. The period is drawn anew, uniform in [0.5, 1.5] of its mean, at
 * random moments REDRAW_NS apart on average, so that no program can run in step with it.
 *
 * PERF_EVENT_IOC_PERIOD restarts the running interval: what had passed of it is lost, half a
 * period on average. Two consequences:
 * - A sample's weight is the time (event count) since the CPU's event fired before, measured in
 * the BPF program, not the nominal period. Whatever happened to the timer in between (restarts,
 * late interrupts, throttling), weights add up to the time that passed.
 * - To deliver the rate asked for, periods are drawn around a mean m < P: between two restarts
 * T apart T/m - 1/2 firings happen, and T/P are wanted: m = T / (T/P + 1/2).
 *
 * CPUs where no followed process was seen for IDLE_NS get SLOW times the period: they wake up
 * less, and weights stay right by the same measurement.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/sys.h"
#include "collect/engine_kernel_priv.h"

#define REDRAW_NS 20000000ull
#define IDLE_NS   1000000000ull
#define SLOW      4

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
	int fd = open_event(true, 1000000000, 0);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
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

int as_ktimers_open(struct as_ktimers *t, const struct as_kbpf *b, double rate_hz, bool jitter,
		    struct as_error *err)
{
	AS_CLEANUP(as_free_autop) uint32_t *cpu = as_kcpus_online(&t->n);
	double rate = rate_hz > 0 ? rate_hz : 997;

	t->jitter = jitter;
	t->rng = as_now_ns() ^ (uint64_t)getpid() << 40;
	t->period = (uint64_t)((t->cycles ? cycles_per_second() : 1e9) / rate);
	double per_redraw = (double)REDRAW_NS * 1e-9 * rate;
	t->mean = jitter ? (uint64_t)((double)t->period * per_redraw / (per_redraw + 0.5))
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
			return as_fail(
				err, errno == EACCES || errno == EPERM ? AS_E_ACCESS : AS_E_IO,
				errno, "cannot open the sampling event of CPU %u: %s", c->cpu,
				strerror(errno));
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

		c->active_ns = now;
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
		(void)ioctl(t->cpu[i].fd, PERF_EVENT_IOC_DISABLE,
			    0); /* it ends with the descriptor at worst */
}

void as_ktimers_seen(struct as_ktimers *t, uint32_t cpu, uint64_t now_ns)
{
	uint32_t i = t->of_cpu[cpu];

	if (i < t->n)
		t->cpu[i].active_ns = now_ns;
}

void as_ktimers_redraw(struct as_ktimers *t, uint64_t now_ns)
{
	if (now_ns < t->redraw_ns)
		return;
	t->redraw_ns = now_ns + draw(t, REDRAW_NS);
	if (!t->jitter)
		return;
	for (size_t i = 0; i < t->n; i++) {
		struct as_ktimer *c = &t->cpu[i];
		bool idle = now_ns > c->active_ns + IDLE_NS;

		if (idle && c->slow)
			continue;
		c->slow = idle;
		set_period(c, draw(t, idle ? t->mean * SLOW : t->mean));
	}
}

void as_ktimers_close(struct as_ktimers *t)
{
	for (size_t i = 0; i < t->n; i++)
		close(t->cpu[i].fd);
	free(t->cpu);
	free(t->of_cpu);
	memset(t, 0, sizeof(*t));
}
