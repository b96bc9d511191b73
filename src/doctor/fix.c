/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Settings changed and put back: see fix.h. */
#include "doctor/fix.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "doctor/fix_priv.h"

#define ROOT_STATE_DIR "run/assay"

const struct as_fixable as_fixables[] = {
	{"governor", true, "devices/system/cpu/cpu%u/cpufreq/scaling_governor", "performance",
	 false, "the CPU clock does not follow the load"},
	{"turbo", true, "devices/system/cpu/intel_pstate/no_turbo", "1", false,
	 "no clock above base"},
	{"turbo", true, "devices/system/cpu/cpufreq/boost", "0", false, "no clock above base"},
	{"perf_event_paranoid", false, "sys/kernel/perf_event_paranoid", "1", false,
	 "every user may sample own programs, kernel included"},
	{"kptr_restrict", false, "sys/kernel/kptr_restrict", "0", false,
	 "kernel functions have names"},
	{"nmi_watchdog", false, "sys/kernel/nmi_watchdog", "0", false,
	 "one hardware counter more"},
	{"aslr", false, "sys/kernel/randomize_va_space", "0", true,
	 "the same addresses in every run"},
	{"numa_balancing", false, "sys/kernel/numa_balancing", "0", true,
	 "the kernel moves no pages between memory nodes"},
	{0},
};

const struct as_fixable *as_fixable_find(const char *name)
{
	for (const struct as_fixable *f = as_fixables; f->name; f++) {
		if (strcmp(f->name, name) == 0)
			return f;
	}
	return NULL;
}

void as_fix_env_init(const struct as_doctor *d, struct as_fix_env *ret)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	*ret = (struct as_fix_env){.d = d};
	if (d->uid == 0)
		ret->state_dir = as_xasprintf("%s/" ROOT_STATE_DIR, d->root);
	else if (state && *state == '/')
		ret->state_dir = as_xasprintf("%s/assay", state);
	else
		ret->state_dir = as_xasprintf("%s/.local/state/assay", home ? home : "/tmp");
}

void as_fix_env_clear(struct as_fix_env *e)
{
	free(e->state_dir);
	e->state_dir = NULL;
}

void as_changes_clear(struct as_changes *c)
{
	as_vec_foreach (it, &c->all)
		free(it->path);
	as_vec_clear(&c->all);
}

/* ---- settings as files ---- */

static const char *root_of(const struct as_fix_env *e, const struct as_fixable *f)
{
	return f->in_sys ? e->d->sys : e->d->proc;
}

/* 0, or an errno. */
static int write_setting(const struct as_fix_env *e, const struct as_fixable *f,
			 const char *path, const char *value)
{
	AS_CLEANUP(as_free_autop) char *full = as_xasprintf("%s/%s", root_of(e, f), path);
	AS_CLEANUP(as_free_autop) char *line = as_xasprintf("%s\n", value);
	int fd = open(full, O_WRONLY | O_CLOEXEC), why = 0;
	ssize_t n;

	if (fd < 0)
		return errno;
	do
		n = write(fd, line, strlen(line));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		why = errno;
	close(fd);
	return why;
}

/* The setting's file for one CPU (or for all, where it has no CPU in its name). */
static char *path_of(const struct as_fixable *f, uint32_t cpu)
{
	const char *at = strstr(f->pattern, "%u");

	if (!at)
		return as_xstrdup(f->pattern);
	return as_xasprintf("%.*s%u%s", (int)(at - f->pattern), f->pattern, cpu, at + 2);
}

/* Is this path one of a setting of this name? The state file is not to be believed. */
static const struct as_fixable *row_of(const char *name, const char *path)
{
	for (const struct as_fixable *f = as_fixables; f->name; f++) {
		const char *at = strstr(f->pattern, "%u");
		size_t n = at ? (size_t)(at - f->pattern) : 0, digits;

		if (strcmp(f->name, name) != 0)
			continue;
		if (!at) {
			if (strcmp(f->pattern, path) == 0)
				return f;
			continue;
		}
		if (strncmp(f->pattern, path, n) != 0)
			continue;
		digits = strspn(path + n, "0123456789");
		if (digits && strcmp(path + n + digits, at + 2) == 0)
			return f;
	}
	return NULL;
}

/* perf_event_paranoid and kptr_restrict are limits: a lower value allows as much and more. */
static bool is_as_wanted(const struct as_fixable *f, const char *now)
{
	int64_t have, want;

	if (strcmp(now, f->set) == 0)
		return true;
	return (strcmp(f->name, "perf_event_paranoid") == 0 ||
		strcmp(f->name, "kptr_restrict") == 0) &&
	       as_doctor_parse(now, &have) && as_doctor_parse(f->set, &want) && have <= want;
}

static struct as_change *add_change(struct as_changes *c, const struct as_fixable *f,
				    const char *path, enum as_change_kind kind)
{
	struct as_change new = {
		.name = f->name, .path = path ? as_xstrdup(path) : NULL, .kind = kind};

	as_vec_push(&c->all, new);
	return &c->all.v[c->all.n - 1];
}

static void set_text(char *ret, const char *s)
{
	(void)snprintf(ret, sizeof((struct as_change *)0)->from, "%s", s);
}

static void failed(struct as_change *c, int why)
{
	c->kind = AS_CHANGE_FAILED;
	(void)snprintf(c->why, sizeof c->why, "%s%s", strerror(why),
		       why == EACCES || why == EPERM || why == EROFS
			       ? (geteuid() == 0 ? " (a container may not change this)"
						 : " (only root may change this)")
			       : "");
}

/* To c->to, and whether it has become that. */
static void set_and_look(const struct as_fix_env *e, const struct as_fixable *f,
			 struct as_change *c)
{
	char now[32];
	int why;

	as_fix_step(e);
	why = write_setting(e, f, c->path, c->to);
	as_fix_step(e);
	if (why) {
		failed(c, why);
	} else if (as_doctor_line(now, sizeof now, root_of(e, f), "%s", c->path) &&
		   strcmp(now, c->to) != 0) {
		c->kind = AS_CHANGE_FAILED;
		(void)snprintf(c->why, sizeof c->why, "the kernel keeps it at %s", now);
	}
}

/* ---- apply ---- */

/* One file. The value found is on the disk before the new one is written. */
static int apply_file(const struct as_fix_env *e, struct as_fix_state *s,
		      const struct as_fixable *f, const char *path, struct as_changes *ret,
		      struct as_error *err)
{
	struct as_fix_entry entry = {.fix = f};
	AS_CLEANUP(as_free_autop) char *full = as_xasprintf("%s/%s", root_of(e, f), path);
	char now[32];
	struct as_change *c;
	int r;

	if (!as_doctor_line(now, sizeof now, root_of(e, f), "%s", path))
		return 0;
	c = add_change(ret, f, path, AS_CHANGE_DONE);
	set_text(c->from, now);
	set_text(c->to, f->set);
	if (is_as_wanted(f, now)) {
		set_text(c->to, now);
		c->kind = AS_CHANGE_ALREADY;
		return 0;
	}
	if (access(full, W_OK) != 0) {
		failed(c, errno);
		return 0;
	}
	if (s->fd < 0) {
		as_fix_step(e);
		r = as_fix_state_open(e, true, s, err);
		if (r < 0)
			return r;
	}
	ret->stale |= s->stale;
	entry.path = c->path;
	set_text(entry.found, now);
	set_text(entry.set, f->set);
	as_fix_step(e);
	if (!as_fix_state_has(s, path)) {
		r = as_fix_state_add(e, s, &entry, err);
		if (r < 0) {
			c->kind = AS_CHANGE_FAILED;
			(void)snprintf(c->why, sizeof c->why, "what was found cannot be kept");
			return r;
		}
	}
	set_and_look(e, f, c);
	return 0;
}

static int apply_row(const struct as_fix_env *e, struct as_fix_state *s,
		     const struct as_fixable *f, struct as_changes *ret, struct as_error *err)
{
	struct as_cpus cpus = {0};
	int r = 0;

	if (!strstr(f->pattern, "%u"))
		return apply_file(e, s, f, f->pattern, ret, err);
	as_cpus_online(e->d, &cpus);
	for (size_t i = 0; i < cpus.v.n && r == 0; i++) {
		AS_CLEANUP(as_free_autop) char *path = path_of(f, cpus.v.v[i]);

		r = apply_file(e, s, f, path, ret, err);
	}
	as_cpus_clear(&cpus);
	return r;
}

static bool is_named(const struct as_fixable *f, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(names[i], f->name) == 0)
			return true;
	}
	return n == 0 && !f->by_name_only;
}

static bool has_change(const struct as_changes *c, const char *name)
{
	as_vec_foreach (it, &c->all) {
		if (strcmp(it->name, name) == 0)
			return true;
	}
	return false;
}

static int check_names(const char *const *names, size_t n, struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf known = {0};

	for (const struct as_fixable *f = as_fixables; f->name; f++) {
		if (f == as_fixable_find(f->name))
			as_buf_addf(&known, "%s%s", known.len ? ", " : "", f->name);
	}
	for (size_t i = 0; i < n; i++) {
		if (!as_fixable_find(names[i]))
			return as_fail(err, AS_E_USAGE, 0,
				       "'%s' is no setting that can be changed here\n  there "
				       "are: %s",
				       names[i], as_buf_str(&known));
	}
	return 0;
}

int as_fix_apply(const struct as_fix_env *e, const char *const *names, size_t n,
		 struct as_changes *ret, struct as_error *err)
{
	struct as_fix_state s = {.fd = -1};
	int r = check_names(names, n, err);

	*ret = (struct as_changes){0};
	for (const struct as_fixable *f = as_fixables; f->name && r == 0; f++) {
		if (is_named(f, names, n))
			r = apply_row(e, &s, f, ret, err);
	}
	/* a setting may have several homes: absent when it is in none */
	for (const struct as_fixable *f = as_fixables; f->name && r == 0; f++) {
		if (is_named(f, names, n) && !has_change(ret, f->name))
			add_change(ret, f, NULL, AS_CHANGE_ABSENT);
	}
	as_fix_state_close(&s);
	return r;
}

/* ---- restore ---- */

static void restore_entry(const struct as_fix_env *e, const struct as_fix_entry *it,
			  struct as_changes *ret)
{
	const struct as_fixable *f = row_of(it->fix->name, it->path);
	struct as_change *c;
	char now[32];

	c = add_change(ret, f ? f : it->fix, it->path, AS_CHANGE_DONE);
	set_text(c->to, it->found);
	if (!f) {
		c->kind = AS_CHANGE_FAILED;
		(void)snprintf(c->why, sizeof c->why, "no setting of this name is there");
		return;
	}
	if (!as_doctor_line(now, sizeof now, root_of(e, f), "%s", it->path)) {
		c->kind = AS_CHANGE_ABSENT; /* a CPU that has gone */
		return;
	}
	set_text(c->from, now);
	if (strcmp(now, it->found) == 0) {
		c->kind = AS_CHANGE_ALREADY;
		return;
	}
	if (strcmp(now, it->set) != 0) {
		c->kind = AS_CHANGE_LEFT;
		return;
	}
	set_and_look(e, f, c);
}

int as_fix_restore(const struct as_fix_env *e, struct as_changes *ret, struct as_error *err)
{
	struct as_fix_state s;
	bool all = true;
	int r = as_fix_state_open(e, false, &s, err);

	*ret = (struct as_changes){0};
	if (r < 0)
		return r;
	if (s.fd < 0) {
		ret->nothing = true;
		return 0;
	}
	ret->stale = s.stale;
	/* newest first: settings may depend on those before them */
	for (size_t i = s.stale ? 0 : s.entries.n; i-- > 0;) {
		restore_entry(e, &s.entries.v[i], ret);
		all &= ret->all.v[ret->all.n - 1].kind != AS_CHANGE_FAILED;
	}
	if (s.damaged && !s.stale)
		r = as_fail(err, AS_E_FORMAT, 0,
			    "line %zu of '%s/doctor.state' is damaged: %s\n  what it was about "
			    "is not put back; set it by hand, then remove the file",
			    s.damaged, e->state_dir, s.damaged_text);
	else if (all)
		r = as_fix_state_remove(e, &s, err);
	as_fix_state_close(&s);
	return r;
}

bool as_fix_pending_of_root(const struct as_fix_env *e)
{
	return e->d->uid != 0 && as_doctor_exists(e->d->root, ROOT_STATE_DIR "/doctor.state");
}

bool as_fix_pending(const struct as_fix_env *e)
{
	struct as_fix_state s;
	bool pending = as_fix_state_open(e, false, &s, NULL) == 0 && s.fd >= 0 && !s.stale &&
		       s.entries.n;

	as_fix_state_close(&s);
	return pending;
}
