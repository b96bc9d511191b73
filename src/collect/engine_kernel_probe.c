/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Can the kernel engine run here? Each check tries the real thing where that is cheap, names
 * what is missing and what would grant it.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "base/sys.h"
#include "collect/engine_kernel_priv.h"

#define CAP_SYS_ADMIN_BIT 21
#define CAP_PERFMON_BIT   38
#define CAP_BPF_BIT       39
#define INIT_PID_NS       "pid:[4026531836]"

static void __attribute__((format(printf, 3, 4)))
no(struct as_probe_result *ret, const char *remedy, const char *fmt, ...)
{
	va_list ap;

	ret->can = AS_PROBE_NO;
	va_start(ap, fmt);
	(void)vsnprintf(ret->why, sizeof(ret->why), fmt, ap); /* cut is fine */
	va_end(ap);
	(void)snprintf(ret->remedy, sizeof(ret->remedy), "%s", remedy);
}

static const char rights_remedy[] =
	"now, once: sudo assay record …\n"
	"for good: sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_syslog+ep "
	"\"$(command -v assay)\"";

static uint64_t effective_caps(void)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	if (as_read_file("/proc/self/status", 65536, &b, NULL) < 0 || !b.p)
		return 0;
	const char *s = strstr(b.p, "\nCapEff:");
	unsigned long long caps;
	return s && sscanf(s + 8, "%llx", &caps) == 1 ? caps : 0;
}

static bool version_is_at_least(unsigned major, unsigned minor, char *ret, size_t n)
{
	struct utsname u;
	unsigned a, b;

	if (uname(&u))
		return true; /* let the real tries decide */
	(void)snprintf(ret, n, "%s", u.release);
	if (sscanf(u.release, "%u.%u", &a, &b) != 2)
		return true;
	return a > major || (a == major && b >= minor);
}

static bool in_first_pid_namespace(void)
{
	char link[64];
	ssize_t n = readlink("/proc/self/ns/pid", link, sizeof(link) - 1);

	if (n < 0)
		return true;
	link[n] = '\0';
	return !strcmp(link, INIT_PID_NS);
}

static int try_event(void)
{
	struct perf_event_attr a = {.type = PERF_TYPE_SOFTWARE,
				    .size = sizeof(a),
				    .config = PERF_COUNT_SW_CPU_CLOCK,
				    .sample_period = 1000000000,
				    .disabled = 1};
	size_t n;
	AS_CLEANUP(as_free_autop) uint32_t *cpu = as_kcpus_online(&n);
	int fd = (int)syscall(SYS_perf_event_open, &a, -1, (int)cpu[0], -1,
			      PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

/* The kind of map that came last (5.8), as a test of the right to use bpf(2) at all. */
static int try_map(void)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "assay_probe", 0, 0, 4096, NULL);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

int as_kernel_probe(struct as_probe_result *ret)
{
	char release[80] = "";
	uint64_t caps = effective_caps();

	memset(ret, 0, sizeof(*ret));
	ret->can = AS_PROBE_YES;
	if (!version_is_at_least(5, 10, release, sizeof(release))) {
		no(ret, "", "Linux %s is older than 5.10", release);
		return AS_OK;
	}
	if (access("/sys/kernel/btf/vmlinux", R_OK)) {
		no(ret, "",
		   "this kernel carries no type information (/sys/kernel/btf/vmlinux, "
		   "CONFIG_DEBUG_INFO_BTF)");
		return AS_OK;
	}
	if (!(caps >> CAP_SYS_ADMIN_BIT & 1) &&
	    (!(caps >> CAP_BPF_BIT & 1) || !(caps >> CAP_PERFMON_BIT & 1))) {
		no(ret, rights_remedy,
		   "it needs root, or the capabilities CAP_BPF and CAP_PERFMON");
		return AS_OK;
	}
	if (!in_first_pid_namespace()) {
		no(ret, "run assay on the host, with -p and the host's process id",
		   "process ids of this container differ from the kernel's");
		return AS_OK;
	}
	int e = try_map();
	if (e) {
		no(ret, e == EPERM ? rights_remedy : "", "the kernel refuses BPF maps: %s%s",
		   strerror(e),
		   e == EPERM
			   ? " (a sandbox, kernel lockdown or the memlock limit, see ulimit -l)"
			   : "");
		return AS_OK;
	}
	e = try_event();
	if (e)
		no(ret, e == EACCES || e == EPERM ? rights_remedy : "",
		   "the kernel refuses sampling events for the whole system: %s", strerror(e));
	return AS_OK;
}
