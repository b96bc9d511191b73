/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks of what kind of machine this is: virtual, container, counters, memory nodes, clocks, the
 * kernel's habits. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "doctor/doctor_priv.h"

#define NODE_DIR "devices/system/node"
#define PMU_DIR  "bus/event_source/devices"

/* ---- virtual machines, containers ---- */

static void put(char *ret, size_t n, const char *s)
{
	if (ret)
		(void)snprintf(ret, n, "%s", s);
}

bool as_doctor_is_virtual(const struct as_doctor *d, char *ret, size_t n)
{
	static const struct {
		const char *in, *name;
	} products[] = {
		{"KVM", "KVM"},
		{"QEMU", "QEMU"},
		{"VMware", "VMware"},
		{"VirtualBox", "VirtualBox"},
		{"Virtual Machine", "Hyper-V"},
		{"HVM domU", "Xen"},
		{"Google", "Google Compute Engine"},
		{"EC2", "Amazon EC2"},
		{"Firecracker", "Firecracker"},
	};
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	char product[96], flags[8192];

	put(ret, n, "");
	if (as_doctor_file(&b, d->proc, "cpuinfo") &&
	    as_doctor_field_text(b.p, "flags", flags, sizeof flags) &&
	    !strstr(flags, " hypervisor"))
		return false; /* x86 says so itself; vendors name metal machines alike */
	bool flagged = b.len && strstr(flags, " hypervisor");

	if (as_doctor_line(product, sizeof product, d->sys, "hypervisor/type") && product[0]) {
		put(ret, n, product);
		return true;
	}
	if (as_doctor_line(product, sizeof product, d->sys, "class/dmi/id/product_name")) {
		for (size_t i = 0; i < AS_ARRAY_LEN(products); i++) {
			if (!strstr(product, products[i].in) ||
			    (!flagged && strstr(product, "metal")))
				continue;
			put(ret, n, products[i].name);
			return true;
		}
	}
	/* the clocks a guest of KVM, Hyper-V or Xen is offered */
	(void)as_doctor_line(product, sizeof product, d->sys,
			     "devices/system/clocksource/clocksource0/available_clocksource");
	if (strstr(product, "kvm-clock"))
		put(ret, n, "KVM");
	else if (strstr(product, "hyperv"))
		put(ret, n, "Hyper-V");
	else if (strstr(product, "xen"))
		put(ret, n, "Xen");
	return flagged || strstr(product, "kvm-clock") || strstr(product, "hyperv");
}

/* Would a virtual machine have been seen? x86 tells it in its flags, other machines in their name. */
static bool tells_virtual(const struct as_doctor *d)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	char word[96];

	return (as_doctor_file(&b, d->proc, "cpuinfo") &&
		as_doctor_field_text(b.p, "flags", word, sizeof word)) ||
	       as_doctor_line(word, sizeof word, d->sys, "class/dmi/id/product_name");
}

int as_check_virtual(const struct as_doctor *d, struct as_findings *out)
{
	struct as_finding *f;
	char by[64];

	if (!as_doctor_is_virtual(d, by, sizeof by)) {
		if (!tells_virtual(d)) {
			as_doctor_unseen(out, AS_AREA_MACHINE, "virtual",
					 "whether this machine is virtual",
					 "/sys/class/dmi/id/product_name");
			return 0;
		}
		as_findings_add(out, AS_AREA_MACHINE, "virtual", AS_SEVERITY_OK,
				"no virtual machine");
		return 0;
	}
	f = as_findings_add(out, AS_AREA_MACHINE, "virtual", AS_SEVERITY_INFO,
			    "virtual machine%s%s%s", by[0] ? " (" : "", by, by[0] ? ")" : "");
	as_finding_why(f, "the host's clock rate, caches and neighbours change the speed for "
			  "seconds at a time and show in no counter in here, steal included");
	as_finding_fix(f, "assay stat -- OLD --vs NEW   (in pairs, which drift hits alike)");
	return 0;
}

bool as_doctor_is_container(const struct as_doctor *d, char *ret, size_t n)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	AS_CLEANUP(as_buf_clear) struct as_buf env = {0};
	char word[64];

	put(ret, n, "");
	if (as_doctor_exists(d->root, ".dockerenv")) {
		put(ret, n, "docker");
		return true;
	}
	if (as_doctor_exists(d->root, "run/.containerenv")) {
		put(ret, n, "podman");
		return true;
	}
	if (as_doctor_line(word, sizeof word, d->root, "run/systemd/container") && word[0]) {
		put(ret, n, word);
		return true;
	}
	/* what systemd's convention has the first process's environment say */
	if (as_doctor_file(&env, d->proc, "1/environ")) {
		for (size_t at = 0; at < env.len; at += strlen(env.p + at) + 1) {
			if (strncmp(env.p + at, "container=", 10) == 0) {
				put(ret, n, env.p + at + 10);
				return true;
			}
		}
	}
	if (as_doctor_file(&b, d->proc, "1/cgroup") &&
	    (strstr(b.p, "/docker/") || strstr(b.p, "/kubepods") || strstr(b.p, "/lxc/"))) {
		put(ret, n,
		    strstr(b.p, "/kubepods") ? "kubernetes"
		    : strstr(b.p, "/lxc/")   ? "lxc"
					     : "docker");
		return true;
	}
	return false;
}

int as_check_container(const struct as_doctor *d, struct as_findings *out)
{
	struct as_finding *f;
	char by[64];

	if (!as_doctor_is_container(d, by, sizeof by)) {
		if (!as_doctor_exists(d->proc, "1/cgroup")) {
			as_doctor_unseen(out, AS_AREA_MACHINE, "container",
					 "whether this is a container", "/proc/1/cgroup");
			return 0;
		}
		as_findings_add(out, AS_AREA_MACHINE, "container", AS_SEVERITY_OK,
				"no container");
		return 0;
	}
	f = as_findings_add(out, AS_AREA_MACHINE, "container", AS_SEVERITY_INFO,
			    "container%s%s%s", by[0] ? " (" : "", by, by[0] ? ")" : "");
	as_finding_why(f, "what else the machine runs cannot be seen from in here, and its "
			  "rights are fewer than the user's name says");
	as_finding_fix(f, "measure on the host; or docker run --cap-add PERFMON --cap-add BPF "
			  "--cap-add SYS_PTRACE …");
	return 0;
}

/* ---- hardware counters ---- */

/* The CPU's own PMU: cpu, cpu_core and cpu_atom of hybrids, armv8_…; what counts uncore, power or
 * software does not help a program. */
bool as_doctor_has_pmu(const struct as_doctor *d)
{
	AS_CLEANUP(as_free_autop) char *path = as_xasprintf("%s/" PMU_DIR, d->sys);
	DIR *dir = opendir(path);
	struct dirent *e;
	bool found = false;

	while (dir && !found && (e = readdir(dir)))
		found = strcmp(e->d_name, "cpu") == 0 || strncmp(e->d_name, "cpu_", 4) == 0 ||
			(strncmp(e->d_name, "arm", 3) == 0 && strstr(e->d_name, "pmu")) ||
			strncmp(e->d_name, "armv", 4) == 0;
	if (dir)
		closedir(dir);
	return found;
}

int as_check_pmu(const struct as_doctor *d, struct as_findings *out)
{
	struct as_finding *f;
	char by[64];

	if (!as_doctor_exists(d->sys, PMU_DIR)) {
		as_doctor_unseen(out, AS_AREA_MACHINE, "pmu", "hardware counters",
				 "/sys/" PMU_DIR);
		return 0;
	}
	if (as_doctor_has_pmu(d)) {
		as_findings_add(out, AS_AREA_MACHINE, "pmu", AS_SEVERITY_OK,
				"hardware counters");
		return 0;
	}
	f = as_findings_add(
		out, AS_AREA_MACHINE, "pmu", AS_SEVERITY_INFO, "no hardware counters%s",
		as_doctor_is_virtual(d, by, sizeof by) ? ": this virtual machine has no PMU"
						       : "");
	as_finding_why(f, "samples come from a timer; cycles, instructions and cache misses "
			  "cannot be counted");
	if (by[0])
		as_finding_fix(f, "let the host pass it on (KVM: -cpu host,pmu=on), or measure "
				  "on a metal instance");
	return 0;
}

int as_check_watchdog(const struct as_doctor *d, struct as_findings *out)
{
	struct as_finding *f;
	int64_t v;

	if (!as_doctor_number(&v, d->proc, "sys/kernel/nmi_watchdog"))
		return 0;
	if (!v || !as_doctor_has_pmu(d)) {
		as_findings_add(out, AS_AREA_MACHINE, "nmi_watchdog", AS_SEVERITY_OK,
				"no counter taken by the NMI watchdog");
		return 0;
	}
	f = as_findings_add(out, AS_AREA_MACHINE, "nmi_watchdog", AS_SEVERITY_INFO,
			    "the NMI watchdog holds one hardware counter");
	as_finding_why(f, "groups of events that need it take turns, with an error that grows "
			  "as their coverage falls");
	as_finding_fix(f, "sudo assay doctor --fix nmi_watchdog");
	f->fixable = "nmi_watchdog";
	return 0;
}

/* ---- memory nodes, addresses, pages ---- */

int as_check_numa(const struct as_doctor *d, struct as_findings *out)
{
	struct as_cpus nodes = {0};
	int64_t balancing = 0;
	struct as_finding *f;
	char list[256];

	if (!as_doctor_line(list, sizeof list, d->sys, NODE_DIR "/online"))
		return 0;
	as_cpus_parse(list, &nodes);
	if (nodes.v.n <= 1) {
		as_findings_add(out, AS_AREA_MACHINE, "numa", AS_SEVERITY_OK,
				"one memory node");
		as_cpus_clear(&nodes);
		return 0;
	}
	if (!as_doctor_number(&balancing, d->proc, "sys/kernel/numa_balancing"))
		balancing = 0;
	f = as_findings_add(out, AS_AREA_MACHINE, "numa", AS_SEVERITY_INFO,
			    "%zu memory nodes%s", nodes.v.n,
			    balancing ? ", and the kernel moves pages between them" : "");
	as_finding_why(f, "where a run's pages fall differs from run to run; memory of another "
			  "node takes 1.5 to 2 times as long");
	as_finding_fix(f, "numactl --cpunodebind=0 --membind=0 PROGRAM");
	as_cpus_clear(&nodes);
	return 0;
}

/* ADDR_NO_RANDOMIZE of this session, which programs started here inherit (setarch -R). */
static bool fixed_for_session(const struct as_doctor *d)
{
	enum { NO_RANDOMIZE = 0x0040000 };
	char line[32], hex[40];
	uint64_t v;

	if (!as_doctor_line(line, sizeof line, d->proc, "self/personality"))
		return false; /* not readable: as nearly always */
	(void)snprintf(hex, sizeof hex, "0x%s", line);
	return as_parse_u64(hex, &v) && v & NO_RANDOMIZE;
}

int as_check_aslr(const struct as_doctor *d, struct as_findings *out)
{
	bool session = fixed_for_session(d);
	struct as_finding *f;
	int64_t v;

	if (!as_doctor_number(&v, d->proc, "sys/kernel/randomize_va_space"))
		return 0;
	if (v && !session) {
		as_findings_add(out, AS_AREA_MACHINE, "aslr", AS_SEVERITY_OK,
				"addresses random: runs average over layouts");
		return 0;
	}
	f = as_findings_add(out, AS_AREA_MACHINE, "aslr", AS_SEVERITY_INFO,
			    session ? "addresses are not randomised in this session"
				    : "addresses are not randomised");
	as_finding_why(f, "all runs share one layout of stack and heap: they agree with each "
			  "other, and may differ from the next build by the layout alone");
	as_finding_fix(f, v ? "leave the shell that setarch -R (or a debugger) started"
			    : "sudo sysctl kernel.randomize_va_space=2");
	return 0;
}

int as_check_thp(const struct as_doctor *d, struct as_findings *out)
{
	struct as_finding *f;
	char line[64];

	if (!as_doctor_line(line, sizeof line, d->sys,
			    "kernel/mm/transparent_hugepage/enabled"))
		return 0;
	if (!strstr(line, "[always]")) {
		as_findings_add(out, AS_AREA_MACHINE, "thp", AS_SEVERITY_OK,
				strstr(line, "[never]") ? "huge pages never"
							: "huge pages on request only");
		return 0;
	}
	f = as_findings_add(out, AS_AREA_MACHINE, "thp", AS_SEVERITY_INFO,
			    "transparent huge pages for every program");
	as_finding_why(f, "whether a large block is free differs from run to run, and with it "
			  "TLB misses and peak memory");
	as_finding_fix(f, "echo madvise | sudo tee "
			  "/sys/kernel/mm/transparent_hugepage/enabled   (back: echo always)");
	return 0;
}

/* ---- the clock ---- */

int as_check_clock(const struct as_doctor *d, struct as_findings *out)
{
	static const char *const quick[] = {"tsc", "kvm-clock", "arch_sys_counter",
					    "hyperv_clocksource_tsc_page", "xen"};
	double ns = d->vitals ? d->vitals->clock_ns : 0;
	char name[64], cost[64] = "";
	struct as_finding *f;

	if (!as_doctor_line(name, sizeof name, d->sys,
			    "devices/system/clocksource/clocksource0/current_clocksource"))
		return 0;
	if (ns > 0)
		(void)snprintf(cost, sizeof cost, ", %.0f ns a reading", ns);
	for (size_t i = 0; i < AS_ARRAY_LEN(quick); i++) {
		if (strcmp(name, quick[i]) == 0 && ns < 200) {
			as_findings_add(out, AS_AREA_MACHINE, "clock", AS_SEVERITY_OK,
					"clock %s%s", name, cost);
			return 0;
		}
	}
	f = as_findings_add(out, AS_AREA_MACHINE, "clock", AS_SEVERITY_WARN,
			    "slow clock source %s%s", name, cost);
	as_finding_why(f, "programs that read the time often are slowed down, and so is every "
			  "sample; the time stamp counter takes about 25 ns");
	as_finding_fix(f, "echo tsc | sudo tee "
			  "/sys/devices/system/clocksource/clocksource0/current_clocksource\n"
			  "where tsc is not in available_clocksource: the kernel found it "
			  "unstable (dmesg | grep -i tsc)");
	return 0;
}
