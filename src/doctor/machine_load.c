/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks of what takes time away: other programs, the hypervisor, quotas, the other thread of the
 * core, swapping. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "doctor/doctor_priv.h"

/* What the noise test says about what it lost, for reasons of other findings. False: not run. */
static bool noise_lost(const struct as_doctor *d, char *ret, size_t n)
{
	const struct as_noise *t = d->vitals ? &d->vitals->noise : NULL;

	ret[0] = 0;
	if (!t || !t->repetitions)
		return false;
	(void)snprintf(ret, n, "the test loop lost %s %% of its time, up to %s ms at once",
		       as_figure(t->lost * 100).s, as_figure(t->worst_gap_ms).s);
	return true;
}

/* ---- load ---- */

/* "4.10 3.90 3.50 3/186 4711": runnable tasks, ours not counted. */
static bool read_loadavg(const struct as_doctor *d, char *ret_load, size_t n,
			 uint64_t *ret_others)
{
	char line[96];
	char *slash, *at;

	if (!as_doctor_line(line, sizeof line, d->proc, "loadavg"))
		return false;
	slash = strchr(line, '/');
	if (!slash)
		return false;
	*slash = 0;
	at = strrchr(line, ' ');
	if (!at || !as_parse_u64(at + 1, ret_others))
		return false;
	if (*ret_others)
		--*ret_others;
	(void)snprintf(ret_load, n, "%.*s", (int)strcspn(line, " "), line);
	return true;
}

static double cpu_pressure(const struct as_doctor *d)
{
	char line[160];
	const char *at;
	double v;

	if (!as_doctor_line(line, sizeof line, d->proc, "pressure/cpu"))
		return -1;
	at = strstr(line, "avg10=");
	if (!at)
		return -1;
	at += strlen("avg10=");
	line[(size_t)(at - line) + strcspn(at, " ")] = 0;
	return as_parse_double(at, &v) ? v : -1;
}

/* Below, it is the rounding of ticks. */
#define UNSEEN_MIN 0.25

static void name_users(const struct as_pulse *p, struct as_buf *b)
{
	for (size_t i = 0; i < AS_PULSE_TOP && p->top[i].name[0]; i++) {
		if (p->top[i].cpus < 0.01)
			break;
		as_buf_adds(b, b->len ? ", " : " (");
		as_buf_addf(b, "%s %.2f", p->top[i].name, p->top[i].cpus);
	}
	if (p->unseen_cpus >= UNSEEN_MIN)
		as_buf_addf(b, "%sunseen %.2f", b->len ? ", " : " (", p->unseen_cpus);
	if (b->len)
		as_buf_addc(b, ')');
}

static void load_now(const struct as_doctor *d, const char *load, uint64_t runnable,
		     struct as_findings *out)
{
	const struct as_pulse *p = &d->vitals->pulse;
	AS_CLEANUP(as_buf_clear) struct as_buf users = {0}, why = {0};
	enum as_severity severity = AS_SEVERITY_OK;
	double pressure = cpu_pressure(d);
	struct as_finding *f;
	char lost[128];

	if (p->others_cpus >= 0.05)
		severity = AS_SEVERITY_INFO;
	if (p->others_cpus >= 0.25)
		severity = AS_SEVERITY_WARN;
	if (p->others_cpus >= 0.25 && p->others_cpus > p->cpus_online - 1)
		severity = AS_SEVERITY_BAD;
	if (severity == AS_SEVERITY_OK) {
		as_findings_add(out, AS_AREA_MACHINE, "load", severity, "load %s", load);
		return;
	}
	name_users(p, &users);
	f = as_findings_add(out, AS_AREA_MACHINE, "load", severity,
			    "other programs keep %.1f of %.0f CPUs busy%s, load %s",
			    p->others_cpus, p->cpus_online, as_buf_str(&users), load);
	if (severity == AS_SEVERITY_INFO)
		return;
	if (!noise_lost(d, lost, sizeof lost))
		(void)snprintf(lost, sizeof lost, "they take turns with the program");
	as_buf_addf(&why, "%s; ", lost);
	if (pressure > 0)
		as_buf_addf(&why,
			    "in the last 10 s some task waited for a CPU %.0f %% of the time; ",
			    pressure);
	as_buf_addf(&why, "%llu others runnable now", (unsigned long long)runnable);
	if (p->unseen_cpus >= UNSEEN_MIN)
		as_buf_adds(&why,
			    "; unseen: programs that ended meanwhile, the kernel, or what "
			    "runs outside of a container");
	as_finding_why(f, "%s", why.p);
	as_finding_fix(
		f, "end them or wait for them\n"
		   "assay stat -- OLD --vs NEW   (CPU time in pairs, which load hits alike)");
}

int as_check_load(const struct as_doctor *d, struct as_findings *out)
{
	uint64_t runnable = 0;
	char load[32] = "";

	if (!read_loadavg(d, load, sizeof load, &runnable)) {
		as_doctor_unseen(out, AS_AREA_MACHINE, "load", "the load", "/proc/loadavg");
		return 0;
	}
	if (d->vitals && d->vitals->pulse.interval_ns && d->vitals->pulse.cpus_online > 0) {
		load_now(d, load, runnable, out);
		return 0;
	}
	as_findings_add(
		out, AS_AREA_MACHINE, "load", runnable ? AS_SEVERITY_INFO : AS_SEVERITY_OK,
		"load %s, %llu other tasks runnable", load, (unsigned long long)runnable);
	return 0;
}

/* ---- steal ---- */

int as_check_steal(const struct as_doctor *d, struct as_findings *out)
{
	enum as_severity severity = AS_SEVERITY_OK;
	struct as_finding *f;
	double steal;

	if (!d->vitals || !d->vitals->pulse.cpus_online)
		return 0;
	steal = d->vitals->pulse.steal;
	if (steal > 0.005)
		severity = AS_SEVERITY_WARN;
	if (steal > 0.05)
		severity = AS_SEVERITY_BAD;
	f = as_findings_add(out, AS_AREA_MACHINE, "steal", severity, "steal %.1f %%",
			    steal * 100);
	if (severity == AS_SEVERITY_OK)
		return 0;
	as_finding_why(f,
		       "the hypervisor gave %.1f %% of this machine's CPU time to others; "
		       "wall time grows by as much, at random",
		       steal * 100);
	as_finding_fix(f, "assay stat -- OLD --vs NEW   (in pairs)\n"
			  "a dedicated or metal instance");
	return 0;
}

/* ---- quotas ---- */

/* CPUs this group may use; < 0: no limit. */
static double quota_of(const char *dir, bool v2)
{
	char line[64];
	int64_t quota, period;

	if (!v2) {
		if (!as_doctor_number(&quota, dir, "cpu.cfs_quota_us") || quota <= 0 ||
		    !as_doctor_number(&period, dir, "cpu.cfs_period_us") || period <= 0)
			return -1;
		return (double)quota / (double)period;
	}
	if (!as_doctor_line(line, sizeof line, dir, "cpu.max"))
		return -1;
	char *blank = strchr(line, ' ');
	if (!blank)
		return -1;
	*blank = 0;
	if (!as_doctor_parse(line, &quota) || !as_doctor_parse(blank + 1, &period) ||
	    quota <= 0 || period <= 0)
		return -1;
	return (double)quota / (double)period;
}

int as_check_quota(const struct as_doctor *d, struct as_findings *out)
{
	const struct as_pulse *p = d->vitals ? &d->vitals->pulse : NULL;
	bool throttled = p && p->throttled_count;
	struct as_cgroups groups;
	const char *by = NULL;
	struct as_finding *f;
	double least = -1;

	as_cgroups_find(d, &groups);
	as_vec_foreach (dir, &groups.dirs) {
		double cpus = quota_of(*dir, groups.v2);

		if (cpus > 0 && (least < 0 || cpus < least)) {
			least = cpus;
			by = *dir;
		}
	}
	if (least < 0) {
		if (groups.dirs.n)
			as_findings_add(out, AS_AREA_MACHINE, "quota", AS_SEVERITY_OK,
					"no CPU quota");
		else
			as_doctor_unseen(out, AS_AREA_MACHINE, "quota", "a CPU quota",
					 "/sys/fs/cgroup");
		as_cgroups_clear(&groups);
		return 0;
	}
	f = as_findings_add(out, AS_AREA_MACHINE, "quota",
			    throttled ? AS_SEVERITY_BAD : AS_SEVERITY_WARN,
			    throttled ? "CPU quota of %s CPUs, and it was reached just now"
				      : "CPU quota of %s CPUs",
			    as_figure(least).s);
	if (throttled)
		as_finding_why(f, "this group was stopped %llu times for %.1f ms within %.1f s",
			       (unsigned long long)p->throttled_count,
			       (double)p->throttled_ns / 1e6, (double)p->interval_ns / 1e9);
	else
		as_finding_why(f, "a program that uses more is stopped for the rest of each "
				  "period (gaps of up to 100 ms by default)");
	if (groups.v2)
		as_finding_fix(f,
			       "echo max | sudo tee %s/cpu.max\n"
			       "in a container: docker run without --cpus",
			       by);
	else
		as_finding_fix(f,
			       "echo -1 | sudo tee %s/cpu.cfs_quota_us\n"
			       "in a container: docker run without --cpus",
			       by);
	as_cgroups_clear(&groups);
	return 0;
}

int as_check_cpuset(const struct as_doctor *d, struct as_findings *out)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	struct as_cpus online = {0}, allowed = {0};
	char list[1024];

	if (!as_doctor_file(&b, d->proc, "self/status") ||
	    !as_doctor_field_text(b.p, "Cpus_allowed_list:", list, sizeof list))
		return 0;
	as_cpus_online(d, &online);
	as_cpus_parse(list, &allowed);
	size_t usable = 0;
	as_vec_foreach (cpu, &online.v)
		usable += as_cpus_have(&allowed, *cpu);
	if (usable >= online.v.n) {
		as_findings_add(out, AS_AREA_MACHINE, "cpuset", AS_SEVERITY_OK,
				online.v.n == 1 ? "%zu CPU" : "%zu CPUs", online.v.n);
	} else {
		struct as_finding *f = as_findings_add(
			out, AS_AREA_MACHINE, "cpuset", AS_SEVERITY_INFO,
			"only CPUs %s may be used (%zu of %zu)", list, usable, online.v.n);
		as_finding_why(f, "programs that start a thread per CPU may count all of them");
	}
	as_cpus_clear(&online);
	as_cpus_clear(&allowed);
	return 0;
}

/* ---- the other thread of the core ---- */

/* 1 or 0; -1: cannot be seen. Kernels before 4.20 have no smt/active. */
static int smt_active(const struct as_doctor *d)
{
	struct as_cpus online = {0};
	int active = -1;
	char list[256];
	int64_t v;

	if (as_doctor_number(&v, d->sys, "devices/system/cpu/smt/active"))
		return v > 0;
	as_cpus_online(d, &online);
	as_vec_foreach (cpu, &online.v) {
		struct as_cpus siblings = {0};

		if (!as_doctor_line(list, sizeof list, d->sys,
				    "devices/system/cpu/cpu%u/topology/thread_siblings_list",
				    *cpu))
			continue;
		as_cpus_parse(list, &siblings);
		active = AS_MAX(active, siblings.v.n > 1);
		as_cpus_clear(&siblings);
	}
	as_cpus_clear(&online);
	return active;
}

int as_check_smt(const struct as_doctor *d, struct as_findings *out)
{
	double busy = d->vitals ? d->vitals->pulse.sibling_busy : -1;
	int active = smt_active(d);
	struct as_finding *f;

	if (active < 0) {
		as_doctor_unseen(out, AS_AREA_MACHINE, "smt", "whether threads share a core",
				 "/sys/devices/system/cpu/smt");
		return 0;
	}
	if (!active) {
		as_findings_add(out, AS_AREA_MACHINE, "smt", AS_SEVERITY_OK,
				as_doctor_is_virtual(d, NULL, 0)
					? "no SMT siblings seen from inside this machine"
					: "no SMT siblings");
		return 0;
	}
	if (busy < 0.1) {
		f = as_findings_add(out, AS_AREA_MACHINE, "smt", AS_SEVERITY_INFO,
				    busy < 0 ? "two threads share a core (SMT)"
					     : "two threads share a core (SMT), the other was "
					       "idle");
		as_finding_why(f, "a busy neighbour takes up to half of the core's throughput, "
				  "which no counter of the program shows");
	} else {
		f = as_findings_add(out, AS_AREA_MACHINE, "smt", AS_SEVERITY_WARN,
				    "the other thread of the core was busy %.0f %% of the time",
				    busy * 100);
		as_finding_why(f, "it takes up to half of the core's throughput%s",
			       d->vitals->noise.repetitions ? "" : " (not measured)");
		if (d->vitals->noise.repetitions)
			as_finding_why(f,
				       "it takes up to half of the core's throughput; the "
				       "test loop's speed varied by ±%s %%",
				       as_figure(d->vitals->noise.speed * 100).s);
	}
	as_finding_fix(f, "echo off | sudo tee /sys/devices/system/cpu/smt/control   (back: "
			  "echo on)");
	return 0;
}

/* ---- memory ---- */

int as_check_memory(const struct as_doctor *d, struct as_findings *out)
{
	const struct as_pulse *p = d->vitals ? &d->vitals->pulse : NULL;
	uint64_t pages = p ? p->swap_in_pages + p->swap_out_pages : 0;
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	uint64_t total = 0, available = 0, swap = 0, swap_free = 0;
	struct as_buf used = {0};
	struct as_finding *f;

	if (!as_doctor_file(&b, d->proc, "meminfo") ||
	    !as_doctor_field(b.p, "MemTotal:", &total) || !total ||
	    !as_doctor_field(b.p, "MemAvailable:", &available)) {
		as_doctor_unseen(out, AS_AREA_MACHINE, "memory", "free memory",
				 "/proc/meminfo");
		return 0;
	}
	if (as_doctor_field(b.p, "SwapTotal:", &swap) &&
	    as_doctor_field(b.p, "SwapFree:", &swap_free) && swap_free < swap)
		as_fmt_bytes(&used, (swap - swap_free) * 1024);
	if (pages) {
		f = as_findings_add(out, AS_AREA_MACHINE, "memory", AS_SEVERITY_BAD,
				    "the machine is swapping: %llu pages in %.1f s",
				    (unsigned long long)pages, (double)p->interval_ns / 1e9);
		as_finding_why(f, "a page from disk takes as long as 100,000 instructions and "
				  "more");
		as_finding_fix(f, "end what needs the memory (ps aux --sort -rss | head)");
	} else if (available * 10 < total) {
		f = as_findings_add(out, AS_AREA_MACHINE, "memory", AS_SEVERITY_WARN,
				    "only %.0f %% of the memory is free",
				    100.0 * (double)available / (double)total);
		as_finding_why(f, "files leave the page cache, and a run reads them again");
		as_finding_fix(f, "end what needs the memory (ps aux --sort -rss | head)");
	} else if (used.len) {
		f = as_findings_add(out, AS_AREA_MACHINE, "memory", AS_SEVERITY_INFO,
				    "%s in swap, none moved just now", as_buf_str(&used));
		as_finding_why(f, "the first touch of such a page waits for the disk");
		as_finding_fix(f, "sudo swapoff -a && sudo swapon -a");
	} else {
		as_findings_add(out, AS_AREA_MACHINE, "memory", AS_SEVERITY_OK, "no swapping");
	}
	as_buf_clear(&used);
	return 0;
}
