/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Machines made of files for the checks of doctor: small trees of /proc, /sys, cgroups and /, and
 * what a second of looking measured. Include after cmocka.h.
 *
 *	static const struct scene scenes[] = {
 *		{"governor", "powersave", {{"sys/…/scaling_governor", "powersave\n"}}, NULL,
 *		 AS_SEVERITY_WARN, "follows the load", "--fix governor"},
 *	};
 *	scenes_play(scenes, n);
 */
#ifndef AS_TESTS_DOCTOR_TREE_H
#define AS_TESTS_DOCTOR_TREE_H

#include "doctor/doctor_priv.h"
#include "fixture.h"

#define SILENT (-1) /* no finding at all */

struct tree_file {
	const char *path, *text;
};
struct tree {
	struct as_doctor d;
	struct as_vitals vitals;
	char proc[PATH_MAX], sys[PATH_MAX], cgroup[PATH_MAX], root[PATH_MAX];
};
struct scene {
	const char *check, *name;
	struct tree_file files[8];
	void (*with)(struct tree *); /* changes what is no file */
	int severity;
	const char *what, *more; /* are in the finding's what; in its why or fix */
};

/* A file of the tree, its folders made. */
static inline void tree_put(const char *path, const char *text)
{
	char folder[200];

	snprintf(folder, sizeof folder, "tree/%s", path);
	*strrchr(folder, '/') = 0;
	if (as_mkdir_parents(fx_path(folder), NULL) < 0)
		abort();
	snprintf(folder, sizeof folder, "tree/%s", path);
	fx_write(folder, text);
}

/* An empty machine: nothing is there, nothing was measured, an ordinary user without limits. */
static inline void tree_init(struct tree *t)
{
	if (fx_sh("rm -rf tree && mkdir -p tree/proc tree/sys tree/cgroup tree/root") != 0)
		abort();
	*t = (struct tree){
		.vitals = {.noise = {.waited = -1, .cpu = -1}, .pulse = {.sibling_busy = -1}}};
	as_doctor_init(&t->d);
	snprintf(t->proc, sizeof t->proc, "%s", fx_path("tree/proc"));
	snprintf(t->sys, sizeof t->sys, "%s", fx_path("tree/sys"));
	snprintf(t->cgroup, sizeof t->cgroup, "%s", fx_path("tree/cgroup"));
	snprintf(t->root, sizeof t->root, "%s", fx_path("tree/root"));
	t->d.proc = t->proc;
	t->d.sys = t->sys;
	t->d.cgroup = t->cgroup;
	t->d.root = t->root;
	t->d.uid = 1000;
	t->d.memlock_bytes = t->d.nofile = UINT64_MAX;
	t->d.engines = NULL;
	t->d.vitals = &t->vitals;
}

static inline bool says(const char *text, const char *part)
{
	return !part || (text && strstr(text, part));
}

static inline void scene_play(const struct scene *s)
{
	struct as_findings out = {0};
	struct tree t;

	tree_init(&t);
	for (size_t i = 0; i < AS_ARRAY_LEN(s->files) && s->files[i].path; i++)
		tree_put(s->files[i].path, s->files[i].text);
	if (s->with)
		s->with(&t);
	assert_non_null(as_check_find(s->check));
	assert_int_equal(as_check_find(s->check)->check(&t.d, &out), 0);
	if (s->severity == SILENT) {
		if (out.all.n)
			fail_msg("%s, %s: says '%s'", s->check, s->name, out.all.v[0].what);
		return;
	}
	if (!out.all.n)
		fail_msg("%s, %s: says nothing", s->check, s->name);
	const struct as_finding *f = &out.all.v[0];

	if (s->severity != (int)f->severity)
		fail_msg("%s, %s: is %s: '%s'", s->check, s->name,
			 as_severity_name(f->severity), f->what);
	if (!says(f->what, s->what))
		fail_msg("%s, %s: '%s' is not in '%s'", s->check, s->name, s->what, f->what);
	if (s->more && !(f->why && strstr(f->why, s->more)) &&
	    !(f->fix && strstr(f->fix, s->more)))
		fail_msg("%s, %s: '%s' is not in '%s', '%s'", s->check, s->name, s->more,
			 f->why ? f->why : "", f->fix ? f->fix : "");
	if (f->severity >= AS_SEVERITY_WARN && f->area != AS_AREA_CAN)
		assert_true(f->why && f->fix);
	as_findings_clear(&out);
}

static inline void scenes_play(const struct scene *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		scene_play(&s[i]);
}

/* Every check of the area stands in the scenes once as it should be, and once as it should not. */
static inline void scenes_are_of_both_kinds(const struct scene *s, size_t n, enum as_area area)
{
	for (const struct as_check *c = as_checks; c->id; c++) {
		bool good = false, other = false;

		for (size_t i = 0; i < n; i++) {
			if (strcmp(s[i].check, c->id) != 0)
				continue;
			good |= s[i].severity == AS_SEVERITY_OK;
			other |= s[i].severity > AS_SEVERITY_OK &&
				 !says(s[i].what, "cannot be seen");
		}
		if (c->area == area && !(good && other))
			fail_msg("check '%s' is not shown both kinds of machine", c->id);
	}
}

#endif
