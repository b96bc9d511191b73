/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the checks share: reading small files below a root, lists of CPUs, the checks by name. */
#ifndef AS_DOCTOR_DOCTOR_PRIV_H
#define AS_DOCTOR_DOCTOR_PRIV_H

#include "doctor/doctor.h"

/* First line of root/path, without blanks at its end. False, and "" in ret: not readable. */
bool as_doctor_line(char *ret, size_t n, const char *root, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Decimal, with a sign. */
bool as_doctor_number(int64_t *ret, const char *root, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
bool as_doctor_parse(const char *s, int64_t *ret);
/* Whole file, up to 1 MiB. */
bool as_doctor_file(struct as_buf *ret, const char *root, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* INFO: "WHAT cannot be seen (FILE is missing)"; for checks that know nothing, good or bad. */
void as_doctor_unseen(struct as_findings *out, enum as_area area, const char *id,
		      const char *what, const char *file);
/* Something is there. */
bool as_doctor_exists(const char *root, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The number after `key` at the start of a line ("MemFree:  12 kB", "nr_throttled 4"). */
bool as_doctor_field(const char *text, const char *key, uint64_t *ret);
/* The same, as the rest of the line. */
bool as_doctor_field_text(const char *text, const char *key, char *ret, size_t n);

/* Two significant digits, never an exponent: "0.023", "1.1", "11", "110". as_figure(v).s
 * lives to the end of the expression. */
struct as_figure {
	char s[24];
};
struct as_figure as_figure(double v);

/* "0-3,8" */
struct as_cpus {
	AS_VEC(uint32_t) v;
};
void as_cpus_parse(const char *list, struct as_cpus *ret);
void as_cpus_online(const struct as_doctor *d, struct as_cpus *ret); /* at least CPU 0 */
bool as_cpus_have(const struct as_cpus *c, uint32_t cpu);
void as_cpus_clear(struct as_cpus *c);

/* Folders of the cpu controller from our cgroup up to the root, below d->cgroup; none: they
 * cannot be seen. */
struct as_cgroups {
	AS_VEC(char *) dirs;
	bool v2;
};
void as_cgroups_find(const struct as_doctor *d, struct as_cgroups *ret);
void as_cgroups_clear(struct as_cgroups *c);

bool as_doctor_is_virtual(const struct as_doctor *d, char *ret, size_t n); /* ret: by whom */
bool as_doctor_is_container(const struct as_doctor *d, char *ret, size_t n);
bool as_doctor_has_pmu(const struct as_doctor *d);
bool as_doctor_is_bound(const struct as_doctor *d); /* by perf_event_paranoid above 1 */
uint64_t as_doctor_caps(const struct as_doctor *d); /* effective ones; 0 where unknown */

#define AS_CHECK(name) int as_check_##name(const struct as_doctor *d, struct as_findings *out)
AS_CHECK(load);
AS_CHECK(steal);
AS_CHECK(quota);
AS_CHECK(cpuset);
AS_CHECK(smt);
AS_CHECK(memory);
AS_CHECK(noise);
AS_CHECK(governor);
AS_CHECK(turbo);
AS_CHECK(frequency);
AS_CHECK(temperature);
AS_CHECK(throttle);
AS_CHECK(numa);
AS_CHECK(aslr);
AS_CHECK(thp);
AS_CHECK(clock);
AS_CHECK(virtual);
AS_CHECK(container);
AS_CHECK(pmu);
AS_CHECK(watchdog);
AS_CHECK(paranoid);
AS_CHECK(caps);
AS_CHECK(seccomp);
AS_CHECK(mlock);
AS_CHECK(nofile);
AS_CHECK(kptr);
AS_CHECK(engines);
AS_CHECK(tracefs);
AS_CHECK(yama);
AS_CHECK(sample_rate);
AS_CHECK(can);

#endif
