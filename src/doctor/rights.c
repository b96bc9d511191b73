/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks of what this user may do, and what would unlock the rest. */
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "collect/collect.h"
#include "doctor/doctor_priv.h"

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#define CAP_BPF     39
#endif

#define CAP_BIT(c) (1ull << (c))

static bool read_caps(const struct as_doctor *d, uint64_t *ret)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	AS_CLEANUP(as_buf_clear) struct as_buf hex = {0};
	char text[32];

	if (!as_doctor_file(&b, d->proc, "self/status") ||
	    !as_doctor_field_text(b.p, "CapEff:", text, sizeof text))
		return false;
	as_buf_addf(&hex, "0x%s", text);
	return as_parse_u64(hex.p, ret);
}

uint64_t as_doctor_caps(const struct as_doctor *d)
{
	uint64_t v;

	return read_caps(d, &v) ? v : 0;
}

/* Rights that perf_event_paranoid does not bind. */
static bool unbound(const struct as_doctor *d)
{
	return as_doctor_caps(d) & (CAP_BIT(CAP_SYS_ADMIN) | CAP_BIT(CAP_PERFMON));
}

bool as_doctor_is_bound(const struct as_doctor *d)
{
	int64_t v;

	return as_doctor_number(&v, d->proc, "sys/kernel/perf_event_paranoid") && v > 1 &&
	       !unbound(d);
}

int as_check_paranoid(const struct as_doctor *d, struct as_findings *out)
{
	static const char *const means[] = {"own programs, kernel included, whole CPUs",
					    "own programs, kernel included",
					    "own programs, user mode only"};
	struct as_finding *f;
	int64_t v;

	if (!as_doctor_exists(d->proc, "sys/kernel")) {
		as_doctor_unseen(out, AS_AREA_RIGHTS, "perf_event_paranoid",
				 "the limit of perf events", "/proc/sys/kernel");
		return 0;
	}
	if (!as_doctor_number(&v, d->proc, "sys/kernel/perf_event_paranoid")) {
		f = as_findings_add(out, AS_AREA_RIGHTS, "perf_event_paranoid", AS_SEVERITY_BAD,
				    "this kernel has no perf events");
		as_finding_why(f, "nothing can be sampled");
		as_finding_fix(f, "a kernel with CONFIG_PERF_EVENTS");
		return 0;
	}
	if (v <= 1 || unbound(d)) {
		as_findings_add(out, AS_AREA_RIGHTS, "perf_event_paranoid", AS_SEVERITY_OK,
				unbound(d) ? "perf events without limits (paranoid %lld does "
					     "not bind this user)"
					   : "perf events (paranoid %lld)",
				(long long)v);
		return 0;
	}
	f = as_findings_add(out, AS_AREA_RIGHTS, "perf_event_paranoid",
			    v > 2 ? AS_SEVERITY_BAD : AS_SEVERITY_WARN,
			    v > 2 ? "no sampling for ordinary users (perf_event_paranoid %lld)"
				  : "no kernel time in the samples (perf_event_paranoid %lld)",
			    (long long)v);
	as_finding_why(f,
		       v > 2 ? "record cannot run; 1 would allow: %s"
			     : "time in system calls and page faults stays unseen; 1 would "
			       "allow: %s",
		       means[1]);
	as_finding_fix(f, "now, once: sudo assay record …\n"
			  "for all users: sudo assay doctor --fix perf_event_paranoid");
	f->fixable = "perf_event_paranoid";
	return 0;
}

int as_check_kptr(const struct as_doctor *d, struct as_findings *out)
{
	struct as_finding *f;
	bool syslog = as_doctor_caps(d) & CAP_BIT(CAP_SYSLOG);
	int64_t v;

	if (!as_doctor_number(&v, d->proc, "sys/kernel/kptr_restrict"))
		return 0;
	/* 0 shows kernel addresses to those who may sample the kernel; 1 to CAP_SYSLOG; 2 to none */
	int64_t paranoid = 2;

	(void)as_doctor_number(&paranoid, d->proc,
			       "sys/kernel/perf_event_paranoid"); /* else 2 */
	if (v < 2 && (syslog || (v == 0 && paranoid <= 1))) {
		as_findings_add(out, AS_AREA_RIGHTS, "kptr_restrict", AS_SEVERITY_OK,
				"names of kernel functions");
		return 0;
	}
	f = as_findings_add(out, AS_AREA_RIGHTS, "kptr_restrict", AS_SEVERITY_INFO,
			    "no names of kernel functions (kptr_restrict %lld)", (long long)v);
	as_finding_why(f, "time in the kernel is shown without its functions");
	if (v) {
		as_finding_fix(f, "sudo assay doctor --fix kptr_restrict");
		f->fixable = "kptr_restrict";
	} else {
		as_finding_fix(f, "sudo assay doctor --fix perf_event_paranoid");
		f->fixable = "perf_event_paranoid";
	}
	return 0;
}

int as_check_caps(const struct as_doctor *d, struct as_findings *out)
{
	static const struct {
		int bit;
		const char *name, *gives;
	} wanted[] = {
		{CAP_PERFMON, "cap_perfmon", "perf events of the whole machine"},
		{CAP_BPF, "cap_bpf", "stacks unwound in the kernel"},
		{CAP_SYS_PTRACE, "cap_sys_ptrace", "other users' processes"},
		{CAP_SYSLOG, "cap_syslog", "kernel addresses"},
	};
	AS_CLEANUP(as_buf_clear) struct as_buf names = {0};
	AS_CLEANUP(as_buf_clear) struct as_buf gives = {0};
	struct as_finding *f;
	uint64_t caps;

	if (!read_caps(d, &caps)) {
		as_doctor_unseen(out, AS_AREA_RIGHTS, "capabilities", "capabilities",
				 "/proc/self/status");
		return 0;
	}
	for (size_t i = 0; i < AS_ARRAY_LEN(wanted); i++) {
		bool covered = wanted[i].bit >= CAP_PERFMON && caps & CAP_BIT(CAP_SYS_ADMIN);

		if (covered || caps & CAP_BIT(wanted[i].bit))
			continue;
		as_buf_addf(&names, "%s%s", names.len ? "," : "", wanted[i].name);
		as_buf_addf(&gives, "%s%s", gives.len ? ", " : "", wanted[i].gives);
	}
	if (!names.len) {
		as_findings_add(out, AS_AREA_RIGHTS, "capabilities", AS_SEVERITY_OK,
				d->uid == 0 ? "root" : "all capabilities that help");
		return 0;
	}
	f = as_findings_add(out, AS_AREA_RIGHTS, "capabilities", AS_SEVERITY_INFO,
			    "%s without %s", d->uid == 0 ? "root" : "an ordinary user",
			    as_buf_str(&names));
	as_finding_why(f, "they would give: %s", as_buf_str(&gives));
	if (d->uid == 0)
		as_finding_fix(f,
			       "a container or service took them away; docker run --cap-add "
			       "PERFMON --cap-add BPF --cap-add SYS_PTRACE --cap-add SYSLOG …");
	else
		as_finding_fix(f,
			       "now, once: sudo assay …\n"
			       "for good: sudo setcap %s+ep \"$(command -v assay)\"",
			       as_buf_str(&names));
	return 0;
}

int as_check_seccomp(const struct as_doctor *d, struct as_findings *out)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	struct as_finding *f;
	uint64_t mode = 0, nnp = 0;

	if (!as_doctor_file(&b, d->proc, "self/status")) {
		as_doctor_unseen(out, AS_AREA_RIGHTS, "seccomp", "a system call filter",
				 "/proc/self/status");
		return 0;
	}
	(void)as_doctor_field(b.p, "Seccomp:", &mode);   /* else 0: a kernel without it */
	(void)as_doctor_field(b.p, "NoNewPrivs:", &nnp); /* else 0 */
	if (!mode && !nnp) {
		as_findings_add(out, AS_AREA_RIGHTS, "seccomp", AS_SEVERITY_OK,
				"no system call filter");
		return 0;
	}
	f = as_findings_add(
		out, AS_AREA_RIGHTS, "seccomp", AS_SEVERITY_INFO,
		mode ? "a system call filter is in force (seccomp)"
		     : "sudo and file capabilities have no effect here (no_new_privs)");
	as_finding_why(f,
		       mode ? "it may refuse perf_event_open, bpf and ptrace, to root as "
			      "well; programs measured here pass every system call through it"
			    : "what sudo would unlock stays locked in this session");
	if (mode)
		as_finding_fix(f,
			       "in a container: docker run --security-opt seccomp=unconfined "
			       "…");
	return 0;
}

/* ---- limits ---- */

int as_check_mlock(const struct as_doctor *d, struct as_findings *out)
{
	/* the ring engine maps 512 KiB a CPU; an exempt user has none of it counted */
	enum { RING_KIB = 512 };
	struct as_cpus cpus = {0};
	struct as_finding *f;
	int64_t kib = 0;

	as_cpus_online(d, &cpus);
	size_t n = cpus.v.n;
	as_cpus_clear(&cpus);
	if (!as_doctor_number(&kib, d->proc, "sys/kernel/perf_event_mlock_kb"))
		kib = 516; /* the kernel's own default */
	if (as_doctor_caps(d) & (CAP_BIT(CAP_IPC_LOCK) | CAP_BIT(CAP_SYS_ADMIN)) ||
	    d->memlock_bytes == UINT64_MAX || kib > RING_KIB ||
	    (uint64_t)AS_MAX(kib, 0) * n + d->memlock_bytes / 1024 >= RING_KIB * n) {
		as_findings_add(out, AS_AREA_RIGHTS, "mlock", AS_SEVERITY_OK,
				"memory for ring buffers");
		return 0;
	}
	f = as_findings_add(
		out, AS_AREA_RIGHTS, "mlock", AS_SEVERITY_WARN,
		"little memory for ring buffers (%lld KiB a CPU, ulimit -l %llu KiB)",
		(long long)kib, (unsigned long long)(d->memlock_bytes / 1024));
	as_finding_why(f, "small rings overflow: samples are lost, which the report counts");
	as_finding_fix(f, "ulimit -l unlimited\n"
			  "for all users: sudo sysctl kernel.perf_event_mlock_kb=2048");
	return 0;
}

int as_check_nofile(const struct as_doctor *d, struct as_findings *out)
{
	struct as_cpus cpus = {0};
	struct as_finding *f;

	as_cpus_online(d, &cpus);
	/* events of every CPU for the leader, and as many again for threads it has on attach */
	uint64_t need = 64 + 8 * cpus.v.n;
	as_cpus_clear(&cpus);
	if (d->nofile >= AS_MAX(need, 256)) {
		as_findings_add(out, AS_AREA_RIGHTS, "nofile", AS_SEVERITY_OK, "enough files");
		return 0;
	}
	f = as_findings_add(out, AS_AREA_RIGHTS, "nofile", AS_SEVERITY_WARN,
			    "only %llu open files (ulimit -n)", (unsigned long long)d->nofile);
	as_finding_why(f, "events take one for each CPU and thread; attaching to many threads "
			  "fails");
	as_finding_fix(f, "ulimit -n 65536");
	return 0;
}

int as_check_sample_rate(const struct as_doctor *d, struct as_findings *out)
{
	enum { DEFAULT_HZ = 997 };
	struct as_finding *f;
	int64_t v;

	if (!as_doctor_number(&v, d->proc, "sys/kernel/perf_event_max_sample_rate"))
		return 0;
	if (v >= DEFAULT_HZ) {
		as_findings_add(out, AS_AREA_RIGHTS, "sample_rate", AS_SEVERITY_OK,
				"up to %lld samples a second", (long long)v);
		return 0;
	}
	f = as_findings_add(out, AS_AREA_RIGHTS, "sample_rate", AS_SEVERITY_WARN,
			    "the kernel allows %lld samples a second only", (long long)v);
	as_finding_why(f, "it lowers the limit by itself after slow interrupts; samples beyond "
			  "it are lost");
	as_finding_fix(f, "sudo sysctl kernel.perf_event_max_sample_rate=100000");
	return 0;
}

/* ---- tracing ---- */

int as_check_tracefs(const struct as_doctor *d, struct as_findings *out)
{
	static const char *const places[] = {"kernel/tracing", "kernel/debug/tracing"};
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	struct as_finding *f;
	bool mounted = false;

	for (size_t i = 0; i < AS_ARRAY_LEN(places); i++) {
		char line[64];

		mounted |= as_doctor_exists(d->sys, "%s/events", places[i]);
		if (as_doctor_line(line, sizeof line, d->sys, "%s/events/sched/sched_switch/id",
				   places[i])) {
			as_findings_add(out, AS_AREA_RIGHTS, "tracefs", AS_SEVERITY_OK,
					"kernel tracepoints");
			return 0;
		}
	}
	f = as_findings_add(out, AS_AREA_RIGHTS, "tracefs", AS_SEVERITY_INFO,
			    mounted || d->uid != 0 ? "no kernel tracepoints: tracefs cannot be "
						     "read by this user"
						   : "no kernel tracepoints: tracefs is not "
						     "mounted");
	as_finding_why(f, "scheduling and system calls cannot be counted by their events");
	as_finding_fix(f, mounted || d->uid != 0
				  ? "sudo mount -o remount,mode=755 /sys/kernel/tracing"
				  : "mount -t tracefs tracefs /sys/kernel/tracing");
	return 0;
}

int as_check_yama(const struct as_doctor *d, struct as_findings *out)
{
	struct as_finding *f;
	int64_t v;

	if (!as_doctor_exists(d->proc, "sys/kernel")) {
		as_doctor_unseen(out, AS_AREA_RIGHTS, "yama", "the limit of ptrace",
				 "/proc/sys/kernel");
		return 0;
	}
	if (!as_doctor_number(&v, d->proc, "sys/kernel/yama/ptrace_scope"))
		v = 0; /* a kernel without Yama */
	if (v == 0 || (v < 3 && as_doctor_caps(d) & CAP_BIT(CAP_SYS_PTRACE))) {
		as_findings_add(out, AS_AREA_RIGHTS, "yama", AS_SEVERITY_OK,
				"may look into running processes");
		return 0;
	}
	f = as_findings_add(out, AS_AREA_RIGHTS, "yama", AS_SEVERITY_INFO,
			    "running processes of this user are closed (ptrace_scope %lld)",
			    (long long)v);
	as_finding_why(f, "programs started by assay are not concerned; with -p memory and "
			  "maps of others cannot be read");
	as_finding_fix(f, v < 3 ? "now, once: sudo assay record -p PID\n"
				  "for all users: sudo sysctl kernel.yama.ptrace_scope=0"
				: "ptrace_scope 3 holds until the next start of the machine");
	return 0;
}
