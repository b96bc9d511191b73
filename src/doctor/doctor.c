/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The table of checks, findings, and small files: see doctor.h. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/sys.h"
#include "collect/collect.h"
#include "doctor/doctor_priv.h"

enum { FILE_MAX_BYTES = 1 << 20 };

const struct as_check as_checks[] = {
	{"noise", AS_AREA_MACHINE, as_check_noise},
	{"load", AS_AREA_MACHINE, as_check_load},
	{"steal", AS_AREA_MACHINE, as_check_steal},
	{"quota", AS_AREA_MACHINE, as_check_quota},
	{"cpuset", AS_AREA_MACHINE, as_check_cpuset},
	{"governor", AS_AREA_MACHINE, as_check_governor},
	{"turbo", AS_AREA_MACHINE, as_check_turbo},
	{"frequency", AS_AREA_MACHINE, as_check_frequency},
	{"temperature", AS_AREA_MACHINE, as_check_temperature},
	{"throttle", AS_AREA_MACHINE, as_check_throttle},
	{"smt", AS_AREA_MACHINE, as_check_smt},
	{"memory", AS_AREA_MACHINE, as_check_memory},
	{"clock", AS_AREA_MACHINE, as_check_clock},
	{"numa", AS_AREA_MACHINE, as_check_numa},
	{"aslr", AS_AREA_MACHINE, as_check_aslr},
	{"thp", AS_AREA_MACHINE, as_check_thp},
	{"virtual", AS_AREA_MACHINE, as_check_virtual},
	{"container", AS_AREA_MACHINE, as_check_container},
	{"pmu", AS_AREA_MACHINE, as_check_pmu},
	{"nmi_watchdog", AS_AREA_MACHINE, as_check_watchdog},
	{"engines", AS_AREA_RIGHTS, as_check_engines},
	{"perf_event_paranoid", AS_AREA_RIGHTS, as_check_paranoid},
	{"kptr_restrict", AS_AREA_RIGHTS, as_check_kptr},
	{"capabilities", AS_AREA_RIGHTS, as_check_caps},
	{"seccomp", AS_AREA_RIGHTS, as_check_seccomp},
	{"mlock", AS_AREA_RIGHTS, as_check_mlock},
	{"nofile", AS_AREA_RIGHTS, as_check_nofile},
	{"sample_rate", AS_AREA_RIGHTS, as_check_sample_rate},
	{"tracefs", AS_AREA_RIGHTS, as_check_tracefs},
	{"yama", AS_AREA_RIGHTS, as_check_yama},
	{"can", AS_AREA_CAN, as_check_can},
	{0},
};

const struct as_check *as_check_find(const char *id)
{
	for (const struct as_check *c = as_checks; c->id; c++) {
		if (strcmp(c->id, id) == 0)
			return c;
	}
	return NULL;
}

void as_doctor_run(const struct as_doctor *d, struct as_findings *out)
{
	for (const struct as_check *c = as_checks; c->id; c++)
		(void)c->check(d, out); /* what goes wrong is a finding */
}

static void sleep_ns(uint64_t ns)
{
	struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	while (nanosleep(&t, &t) != 0)
		;
}

static uint64_t limit_of(int resource)
{
	struct rlimit l;

	if (getrlimit((__rlimit_resource_t)resource, &l) != 0 || l.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return l.rlim_cur;
}

void as_doctor_init(struct as_doctor *d)
{
	*d = (struct as_doctor){
		.proc = "/proc",
		.sys = "/sys",
		.cgroup = "/sys/fs/cgroup",
		.root = "",
		.uid = geteuid(),
		.self = getpid(),
		.ticks_hz = sysconf(_SC_CLK_TCK),
		.memlock_bytes = limit_of(RLIMIT_MEMLOCK),
		.nofile = limit_of(RLIMIT_NOFILE),
		.engines = as_collectors,
		.now_ns = as_now_ns,
		.sleep_ns = sleep_ns,
	};
}

/* ---- findings ---- */

const char *as_severity_name(enum as_severity s)
{
	static const char *const names[] = {"ok", "info", "warn", "bad"};

	return names[s];
}

const char *as_area_name(enum as_area a)
{
	static const char *const names[] = {"machine", "rights", "binary", "can"};

	return names[a];
}

static char *formatted(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));
static char *formatted(const char *fmt, va_list ap)
{
	struct as_buf b = {0};

	as_buf_vaddf(&b, fmt, ap);
	return as_buf_detach(&b);
}

struct as_finding *as_findings_add(struct as_findings *f, enum as_area area, const char *id,
				   enum as_severity severity, const char *what, ...)
{
	struct as_finding new = {.id = id, .area = area, .severity = severity};
	va_list ap;

	va_start(ap, what);
	new.what = formatted(what, ap);
	va_end(ap);
	as_vec_push(&f->all, new);
	return &f->all.v[f->all.n - 1];
}

void as_finding_why(struct as_finding *f, const char *fmt, ...)
{
	va_list ap;

	free(f->why);
	va_start(ap, fmt);
	f->why = formatted(fmt, ap);
	va_end(ap);
}

void as_finding_fix(struct as_finding *f, const char *fmt, ...)
{
	va_list ap;

	free(f->fix);
	va_start(ap, fmt);
	f->fix = formatted(fmt, ap);
	va_end(ap);
}

void as_doctor_unseen(struct as_findings *out, enum as_area area, const char *id,
		      const char *what, const char *file)
{
	struct as_finding *f = as_findings_add(out, area, id, AS_SEVERITY_INFO,
					       "%s cannot be seen (no %s)", what, file);

	as_finding_why(f, "whether it spoils a measurement here is not known");
}

enum as_severity as_findings_worst(const struct as_findings *f)
{
	enum as_severity worst = AS_SEVERITY_OK;

	as_vec_foreach (it, &f->all)
		worst = AS_MAX(worst, it->severity);
	return worst;
}

void as_findings_clear(struct as_findings *f)
{
	as_vec_foreach (it, &f->all) {
		free(it->what);
		free(it->why);
		free(it->fix);
	}
	as_vec_clear(&f->all);
}

/* ---- small files ---- */

static bool read_below(struct as_buf *ret, const char *root, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));
static bool read_below(struct as_buf *ret, const char *root, const char *fmt, va_list ap)
{
	struct as_buf path = {0};
	int r;

	as_buf_addf(&path, "%s/", root);
	as_buf_vaddf(&path, fmt, ap);
	r = as_read_file(path.p, FILE_MAX_BYTES, ret, NULL);
	as_buf_clear(&path);
	return r == 0;
}

static void first_line(const struct as_buf *b, char *ret, size_t n)
{
	size_t len = strcspn(as_buf_str(b), "\n");

	while (len && strchr(" \t\r", b->p[len - 1]))
		len--;
	len = AS_MIN(len, n - 1);
	if (len)
		memcpy(ret, b->p, len);
	ret[len] = 0;
}

bool as_doctor_line(char *ret, size_t n, const char *root, const char *fmt, ...)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	va_list ap;
	bool fine;

	va_start(ap, fmt);
	fine = read_below(&b, root, fmt, ap);
	va_end(ap);
	ret[0] = 0;
	if (fine)
		first_line(&b, ret, n);
	return fine;
}

bool as_doctor_parse(const char *s, int64_t *ret)
{
	bool negative = *s == '-';
	uint64_t v;

	if (!as_parse_u64(s + negative, &v) || v > INT64_MAX)
		return false;
	*ret = negative ? -(int64_t)v : (int64_t)v;
	return true;
}

bool as_doctor_number(int64_t *ret, const char *root, const char *fmt, ...)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	char line[32];
	va_list ap;
	bool fine;

	va_start(ap, fmt);
	fine = read_below(&b, root, fmt, ap);
	va_end(ap);
	if (!fine)
		return false;
	first_line(&b, line, sizeof line);
	return as_doctor_parse(line, ret);
}

bool as_doctor_file(struct as_buf *ret, const char *root, const char *fmt, ...)
{
	va_list ap;
	bool fine;

	va_start(ap, fmt);
	fine = read_below(ret, root, fmt, ap);
	va_end(ap);
	return fine && ret->len;
}

bool as_doctor_exists(const char *root, const char *fmt, ...)
{
	AS_CLEANUP(as_buf_clear) struct as_buf path = {0};
	va_list ap;

	as_buf_addf(&path, "%s/", root);
	va_start(ap, fmt);
	as_buf_vaddf(&path, fmt, ap);
	va_end(ap);
	return access(path.p, F_OK) == 0;
}

static const char *find_key(const char *text, const char *key)
{
	size_t n = strlen(key);

	while (text && strncmp(text, key, n) != 0) {
		text = strchr(text, '\n');
		text += text != NULL;
	}
	return text ? text + n : NULL;
}

bool as_doctor_field_text(const char *text, const char *key, char *ret, size_t n)
{
	const char *at = find_key(text, key);
	size_t len;

	ret[0] = 0;
	if (!at)
		return false;
	at += strspn(at, " \t:");
	len = AS_MIN(strcspn(at, "\n"), n - 1);
	memcpy(ret, at, len);
	ret[len] = 0;
	return true;
}

bool as_doctor_field(const char *text, const char *key, uint64_t *ret)
{
	char word[64];

	if (!as_doctor_field_text(text, key, word, sizeof word))
		return false;
	word[strcspn(word, " \t")] = 0;
	return as_parse_u64(word, ret);
}

struct as_figure as_figure(double v)
{
	struct as_figure f;
	int digits = v >= 10 || v <= 0 ? 0 : v >= 1 ? 1 : v >= 0.1 ? 2 : 3;

	(void)snprintf(f.s, sizeof f.s, "%.*f", digits, v);
	return f;
}

/* ---- CPUs ---- */

void as_cpus_parse(const char *list, struct as_cpus *ret)
{
	enum { CPU_MAX = 1 << 16 };

	while (*list) {
		char word[32];
		size_t n = strcspn(list, ",");
		uint64_t from, to;

		memcpy(word, list, AS_MIN(n, sizeof word - 1));
		word[AS_MIN(n, sizeof word - 1)] = 0;
		list += n + (list[n] == ',');
		char *dash = strchr(word, '-');
		if (dash)
			*dash = 0;
		if (!as_parse_u64(word, &from))
			continue;
		to = from;
		if (dash && !as_parse_u64(dash + 1, &to))
			continue;
		for (uint64_t cpu = from; cpu <= to && cpu < CPU_MAX && ret->v.n < CPU_MAX;
		     cpu++)
			as_vec_push(&ret->v, (uint32_t)cpu);
	}
}

void as_cpus_online(const struct as_doctor *d, struct as_cpus *ret)
{
	char list[4096];

	if (as_doctor_line(list, sizeof list, d->sys, "devices/system/cpu/online"))
		as_cpus_parse(list, ret);
	if (!ret->v.n)
		as_vec_push(&ret->v, 0);
}

bool as_cpus_have(const struct as_cpus *c, uint32_t cpu)
{
	as_vec_foreach (it, &c->v) {
		if (*it == cpu)
			return true;
	}
	return false;
}

void as_cpus_clear(struct as_cpus *c)
{
	as_vec_clear(&c->v);
}

/* ---- cgroups ---- */

static void add_dirs(struct as_cgroups *c, const char *mount, const char *group)
{
	AS_CLEANUP(as_free_autop) char *dir = as_xasprintf("%s%s", mount, group);
	size_t least = strlen(mount);

	for (;;) {
		size_t n = strlen(dir);

		while (n > least && dir[n - 1] == '/')
			dir[--n] = 0;
		as_vec_push(&c->dirs, as_xstrdup(dir));
		if (n <= least)
			return;
		*strrchr(dir, '/') = 0;
	}
}

/* Has the comma-separated list of controllers this one? */
static bool lists(const char *controllers, size_t n, const char *name)
{
	while (n) {
		const char *comma = memchr(controllers, ',', n);
		size_t len = comma ? (size_t)(comma - controllers) : n;

		if (len == strlen(name) && strncmp(controllers, name, len) == 0)
			return true;
		controllers += len + (comma != NULL);
		n -= len + (comma != NULL);
	}
	return false;
}

/* v1 where its cpu controller is mounted, which then has none in v2. */
void as_cgroups_find(const struct as_doctor *d, struct as_cgroups *ret)
{
	static const char *const mounts[] = {"cpu,cpuacct", "cpu", "cpuacct,cpu"};
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	AS_CLEANUP(as_free_autop) char *v1 = NULL;
	AS_CLEANUP(as_free_autop) char *v2 = NULL;

	*ret = (struct as_cgroups){0};
	if (!as_doctor_file(&b, d->proc, "self/cgroup"))
		return;
	for (char *line = b.p; *line;) {
		size_t n = strcspn(line, "\n");
		char *first = memchr(line, ':', n);
		char *second =
			first ? memchr(first + 1, ':', n - (size_t)(first + 1 - line)) : NULL;
		bool more = line[n];

		line[n] = 0;
		if (second && second == first + 1 && !v2)
			v2 = as_xstrdup(second + 1);
		else if (second && lists(first + 1, (size_t)(second - first - 1), "cpu") && !v1)
			v1 = as_xstrdup(second + 1);
		line += n + more;
	}
	for (size_t i = 0; v1 && i < AS_ARRAY_LEN(mounts); i++) {
		AS_CLEANUP(as_free_autop)
		char *mount = as_xasprintf("%s/%s", d->cgroup, mounts[i]);

		if (as_doctor_exists(mount, "cpu.shares") ||
		    as_doctor_exists(mount, "cpu.stat")) {
			add_dirs(ret, mount, v1);
			return;
		}
	}
	ret->v2 = true;
	if (!v2)
		return;
	/* beside v1 (systemd's hybrid layout) it has a folder of its own */
	if (as_doctor_exists(d->cgroup, "cgroup.procs")) {
		add_dirs(ret, d->cgroup, v2);
	} else if (as_doctor_exists(d->cgroup, "unified/cgroup.procs")) {
		AS_CLEANUP(as_free_autop) char *mount = as_xasprintf("%s/unified", d->cgroup);

		add_dirs(ret, mount, v2);
	}
}

void as_cgroups_clear(struct as_cgroups *c)
{
	as_vec_foreach (it, &c->dirs)
		free(*it);
	as_vec_clear(&c->dirs);
}
