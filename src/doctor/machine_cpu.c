/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks of what sets the CPU's speed: governor, turbo, frequency, heat. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "doctor/doctor_priv.h"

#define CPU_DIR "devices/system/cpu"

/* How much the speed of the test loop varied, as part of a reason; "" where it was not run. */
static const char *speed_measured(const struct as_doctor *d, char *ret, size_t n)
{
	ret[0] = 0;
	if (d->vitals && d->vitals->noise.repetitions)
		(void)snprintf(ret, n, "; the test loop's speed varied by ±%s %% in 1 s",
			       as_figure(d->vitals->noise.speed * 100).s);
	return ret;
}

/* ---- governor ---- */

int as_check_governor(const struct as_doctor *d, struct as_findings *out)
{
	struct as_cpus cpus = {0};
	size_t n = 0, other = 0;
	char name[32], which[32] = "", measured[96];

	as_cpus_online(d, &cpus);
	as_vec_foreach (cpu, &cpus.v) {
		if (!as_doctor_line(name, sizeof name, d->sys,
				    CPU_DIR "/cpu%u/cpufreq/scaling_governor", *cpu))
			continue;
		n++;
		if (strcmp(name, "performance") == 0)
			continue;
		other++;
		memcpy(which, name, sizeof which);
	}
	as_cpus_clear(&cpus);
	if (!n && !as_doctor_exists(d->sys, CPU_DIR)) {
		as_doctor_unseen(out, AS_AREA_MACHINE, "governor", "the governor",
				 "/sys/" CPU_DIR);
		return 0;
	}
	if (!n) {
		as_findings_add(out, AS_AREA_MACHINE, "governor", AS_SEVERITY_OK,
				"no frequency scaling to be set here");
		return 0;
	}
	if (!other) {
		as_findings_add(out, AS_AREA_MACHINE, "governor", AS_SEVERITY_OK,
				"governor performance");
		return 0;
	}
	struct as_finding *f = as_findings_add(
		out, AS_AREA_MACHINE, "governor", AS_SEVERITY_WARN,
		other == n
			? "the CPU frequency follows the load (governor %s)"
			: "the CPU frequency follows the load (governor %s on %zu of %zu CPUs)",
		which, other, n);
	as_finding_why(f, "short runs are over before the clock has risen%s",
		       speed_measured(d, measured, sizeof measured));
	as_finding_fix(f, "sudo assay doctor --fix governor");
	f->fixable = "governor";
	return 0;
}

/* ---- turbo ---- */

int as_check_turbo(const struct as_doctor *d, struct as_findings *out)
{
	double speed = d->vitals && d->vitals->noise.repetitions ? d->vitals->noise.speed : -1;
	char measured[96];
	int64_t v;
	bool on;

	if (as_doctor_number(&v, d->sys, CPU_DIR "/intel_pstate/no_turbo"))
		on = v == 0;
	else if (as_doctor_number(&v, d->sys, CPU_DIR "/cpufreq/boost"))
		on = v == 1;
	else
		return 0;
	if (!on) {
		as_findings_add(out, AS_AREA_MACHINE, "turbo", AS_SEVERITY_OK, "turbo off");
		return 0;
	}
	struct as_finding *f =
		as_findings_add(out, AS_AREA_MACHINE, "turbo",
				speed > 0.01 ? AS_SEVERITY_WARN : AS_SEVERITY_INFO, "turbo on");
	as_finding_why(f, "the clock depends on heat and on how many cores are busy%s",
		       speed_measured(d, measured, sizeof measured));
	as_finding_fix(f, "sudo assay doctor --fix turbo");
	f->fixable = "turbo";
	return 0;
}

/* ---- frequency ---- */

int as_check_frequency(const struct as_doctor *d, struct as_findings *out)
{
	int cpu = d->vitals && d->vitals->noise.cpu >= 0 ? d->vitals->noise.cpu : 0;
	int64_t now = d->vitals ? (int64_t)d->vitals->pulse.khz : 0, base, max;

	if (!now &&
	    !as_doctor_number(&now, d->sys, CPU_DIR "/cpu%d/cpufreq/scaling_cur_freq", cpu))
		return 0;
	if (!as_doctor_number(&base, d->sys, CPU_DIR "/cpu%d/cpufreq/base_frequency", cpu) &&
	    !as_doctor_number(&base, d->sys, CPU_DIR "/cpu%d/acpi_cppc/nominal_freq", cpu))
		base = 0;
	if (base && base < 100000) /* CPPC counts in MHz */
		base *= 1000;
	if (!as_doctor_number(&max, d->sys, CPU_DIR "/cpu%d/cpufreq/scaling_max_freq", cpu))
		max = 0;
	/* without a base frequency: what it may reach */
	int64_t expected = base ? base : max;
	bool busy = d->vitals && d->vitals->noise.repetitions;

	if (!busy || !expected || now * 100 >= expected * 90) {
		as_findings_add(out, AS_AREA_MACHINE, "frequency", AS_SEVERITY_OK,
				"%.2f GHz now", (double)now / 1e6);
		return 0;
	}
	struct as_finding *f =
		as_findings_add(out, AS_AREA_MACHINE, "frequency", AS_SEVERITY_WARN,
				"%.2f GHz under load, %s is %.2f GHz", (double)now / 1e6,
				base ? "base" : "the limit", (double)expected / 1e6);
	as_finding_why(f,
		       "at the end of 1 s of work the clock stood at %.0f %%: a power or heat "
		       "limit, or a governor that is slow to rise",
		       100.0 * (double)now / (double)expected);
	as_finding_fix(f, "sudo assay doctor --fix governor\ncheck cooling and power profile "
			  "(powerprofilesctl get)");
	return 0;
}

/* ---- heat ---- */

/* The lowest trip point above 0 that slows or stops; 0: none. Thousandths of a degree. */
static int64_t trip_of(const struct as_doctor *d, int zone)
{
	enum { TRIPS_MAX = 16 };
	int64_t lowest = 0, v;
	char type[32];

	for (int i = 0; i < TRIPS_MAX; i++) {
		if (!as_doctor_line(type, sizeof type, d->sys,
				    "class/thermal/thermal_zone%d/trip_point_%d_type", zone, i))
			break;
		if (strcmp(type, "passive") != 0 && strcmp(type, "hot") != 0 &&
		    strcmp(type, "critical") != 0)
			continue;
		if (as_doctor_number(&v, d->sys,
				     "class/thermal/thermal_zone%d/trip_point_%d_temp", zone,
				     i) &&
		    v > 0 && (!lowest || v < lowest))
			lowest = v;
	}
	return lowest;
}

int as_check_temperature(const struct as_doctor *d, struct as_findings *out)
{
	enum { ZONES_MAX = 64, NEAR = 10000, HOT = 95000 };
	int64_t hottest = 0, t;
	char type[32], where[32] = "";

	for (int zone = 0; zone < ZONES_MAX; zone++) {
		if (!as_doctor_number(&t, d->sys, "class/thermal/thermal_zone%d/temp", zone))
			continue;
		int64_t trip = trip_of(d, zone);

		(void)as_doctor_line(type, sizeof type, d->sys,
				     "class/thermal/thermal_zone%d/type", zone); /* else "" */
		if (t >= (trip ? trip - NEAR : HOT)) {
			struct as_finding *f = as_findings_add(
				out, AS_AREA_MACHINE, "temperature", AS_SEVERITY_WARN,
				"%.0f °C at %s%s", (double)t / 1000,
				type[0] ? type : "a sensor", trip ? "" : ", which is hot");
			as_finding_why(f,
				       trip ? "at %.0f °C the clock is lowered"
					    : "CPUs lower their clock at about %.0f °C",
				       trip ? (double)trip / 1000 : 100);
			as_finding_fix(f, "let it cool before measuring; check the fans");
			return 0;
		}
		if (t > hottest) {
			hottest = t;
			memcpy(where, type, sizeof where);
		}
	}
	if (hottest)
		as_findings_add(out, AS_AREA_MACHINE, "temperature", AS_SEVERITY_OK,
				"%.0f °C at most", (double)hottest / 1000);
	return 0;
}

int as_check_throttle(const struct as_doctor *d, struct as_findings *out)
{
	const struct as_pulse *p = d->vitals ? &d->vitals->pulse : NULL;
	struct as_cpus cpus = {0};
	int64_t v, most = 0;
	bool known = false;

	as_cpus_online(d, &cpus);
	as_vec_foreach (cpu, &cpus.v) {
		if (!as_doctor_number(&v, d->sys,
				      CPU_DIR "/cpu%u/thermal_throttle/core_throttle_count",
				      *cpu))
			continue;
		known = true;
		most = AS_MAX(most, v);
	}
	as_cpus_clear(&cpus);
	if (p && p->thermal_events) {
		struct as_finding *f =
			as_findings_add(out, AS_AREA_MACHINE, "throttle", AS_SEVERITY_BAD,
					"the CPU was slowed down by heat just now");
		as_finding_why(f,
			       "%llu events within %.1f s: the clock falls while a program "
			       "runs",
			       (unsigned long long)p->thermal_events,
			       (double)p->interval_ns / 1e9);
		as_finding_fix(f, "let it cool, check the fans, or lower the load: sudo assay "
				  "doctor --fix turbo");
	} else if (most) {
		struct as_finding *f = as_findings_add(
			out, AS_AREA_MACHINE, "throttle", AS_SEVERITY_INFO,
			"slowed down by heat %lld times since it was started, not now",
			(long long)most);
		as_finding_why(f, "long runs may meet it again");
	} else if (known) {
		as_findings_add(out, AS_AREA_MACHINE, "throttle", AS_SEVERITY_OK,
				"no thermal throttling");
	}
	return 0;
}
