/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Perf events of a process tree: see counters.h. */
#include "measure/counters.h"

#include <linux/perf_event.h>
#include <math.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"

static const struct event {
	enum as_metric metric;
	uint32_t type;
	uint64_t config;
} events[] = {
	{AS_M_MIGRATIONS, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
	{AS_M_CYCLES, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
	{AS_M_INSTRUCTIONS, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
	{AS_M_BRANCHES, PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
	{AS_M_BRANCH_MISSES, PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
	{AS_M_CACHE_REFERENCES, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
	{AS_M_CACHE_MISSES, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
};

static int open_event(uint32_t type, uint64_t config, pid_t pid)
{
	struct perf_event_attr a = {
		.type = type,
		.size = sizeof a,
		.config = config,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		.disabled = 1,
		.inherit = 1,
		.enable_on_exec = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &a, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0) {
		a.exclude_kernel = 1; /* all that a user may count */
		fd = (int)syscall(SYS_perf_event_open, &a, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	}
	return fd;
}

/* Number of a tracepoint; false where tracefs is not there or not readable. */
static bool tracepoint(const char *name, uint64_t *ret)
{
	static const char *const roots[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

	for (size_t i = 0; i < AS_ARRAY_LEN(roots); i++) {
		AS_CLEANUP(as_buf_clear) struct as_buf text = {0};
		AS_CLEANUP(as_free_autop)
		char *path = as_xasprintf("%s/events/%s/id", roots[i], name);

		if (as_read_file(path, 64, &text, NULL) < 0)
			continue;
		if (text.len && text.p[text.len - 1] == '\n')
			text.p[--text.len] = 0;
		if (as_parse_u64(as_buf_str(&text), ret))
			return true;
	}
	return false;
}

void as_counters_open(struct as_counters *c, pid_t pid, const struct as_run_request *q)
{
	uint64_t id;

	memset(c->fd, 0xff, sizeof c->fd);
	for (size_t i = 0; i < AS_ARRAY_LEN(events); i++) {
		if (events[i].type == PERF_TYPE_HARDWARE && !q->counters)
			continue;
		c->fd[events[i].metric] = open_event(events[i].type, events[i].config, pid);
	}
	if (q->syscalls && tracepoint("raw_syscalls/sys_enter", &id))
		c->fd[AS_M_SYSCALLS] = open_event(PERF_TYPE_TRACEPOINT, id, pid);
}

double as_counter_scaled(uint64_t value, uint64_t enabled_ns, uint64_t running_ns,
			 double *ret_counted)
{
	*ret_counted = enabled_ns ? (double)running_ns / (double)enabled_ns : 0;
	if (!running_ns)
		return NAN;
	return (double)value * ((double)enabled_ns / (double)running_ns);
}

void as_counters_read(const struct as_counters *c, struct as_run *run)
{
	for (int m = 0; m < AS_M_COUNT_; m++) {
		uint64_t got[3]; /* value, enabled, running */

		if (c->fd[m] < 0 || read(c->fd[m], got, sizeof got) != sizeof got)
			continue;
		run->v[m] = as_counter_scaled(got[0], got[1], got[2], &run->counted[m]);
	}
	run->v[AS_M_IPC] = run->v[AS_M_INSTRUCTIONS] / run->v[AS_M_CYCLES];
}

void as_counters_close(struct as_counters *c)
{
	for (int m = 0; m < AS_M_COUNT_; m++) {
		if (c->fd[m] >= 0)
			close(c->fd[m]);
		c->fd[m] = -1;
	}
}
