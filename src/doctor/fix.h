/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Settings of the machine changed for a measurement, and put back.
 *
 *	struct as_fix_env env;
 *	as_fix_env_init(&d, &env);			// this machine
 *	as_fix_apply(&env, names, nnames, &changes, &err);
 *	…
 *	as_fix_restore(&env, &changes, &err);
 *	as_fix_env_clear(&env); as_changes_clear(&changes);
 *
 * What a setting was is written to the state file, and is on the disk, before the setting is changed:
 * whatever kills the tool and when, restore finds all that was changed. Restoring is done again from
 * the start when it was interrupted; the state file goes last. A second apply adds to the state
 * and never replaces the value that was found first.
 *
 * The state file: "assay-doctor-state 1\nboot ID\n", then a line "NAME\tPATH\tFOUND\tSET\n" each. PATH is
 * relative to the root of /proc or /sys. A line without its end was never acted on. Only paths of
 * the table of settings are ever written, whatever the file says.
 *
 * Settings are gone with the next start of the machine; a state of an earlier one is dropped.
 */
#ifndef AS_DOCTOR_FIX_H
#define AS_DOCTOR_FIX_H

#include <stdbool.h>
#include <stddef.h>
#include "base/err.h"
#include "base/mem.h"
#include "doctor/doctor.h"

struct as_fixable {
	const char *name;
	bool in_sys;         /* below d->sys, else d->proc */
	const char *pattern; /* path; %u stands for each online CPU */
	const char *set;     /* the value for measuring */
	bool by_name_only;   /* not part of a bare --fix */
	const char *what;    /* in a few words */
};
extern const struct as_fixable as_fixables[]; /* name NULL ends */
const struct as_fixable *as_fixable_find(const char *name);

struct as_fix_env {
	const struct as_doctor *d;
	char *state_dir; /* made when it is needed */
	/* tests: called between any two steps */
	void (*step)(void *ctx);
	void *step_ctx;
};
/* /run/assay for root; else $XDG_STATE_HOME/assay, $HOME/.local/state/assay. */
void as_fix_env_init(const struct as_doctor *d, struct as_fix_env *ret);
void as_fix_env_clear(struct as_fix_env *e);

enum as_change_kind {
	AS_CHANGE_DONE,
	AS_CHANGE_ALREADY, /* it was so before */
	AS_CHANGE_ABSENT,  /* this machine has no such setting */
	AS_CHANGE_FAILED,  /* refused; why says it */
	AS_CHANGE_LEFT,    /* restore: somebody else has changed it since */
};
struct as_change {
	const char *name; /* static */
	char *path;       /* relative; NULL with ABSENT */
	char from[32], to[32];
	enum as_change_kind kind;
	char why[160];
};
struct as_changes {
	AS_VEC(struct as_change) all;
	bool stale;   /* there was a state of before the machine's last start; it was dropped */
	bool nothing; /* restore: there was no state */
};
void as_changes_clear(struct as_changes *c);

/*
 * names: which settings; n == 0: all that are not by name only. AS_E_USAGE: unknown name. AS_E_IO,
 * AS_E_ACCESS: no state could be written, so nothing was changed from there on; AS_E_FORMAT: the
 * state file is none of ours. Refused changes are no failure: they stand in ret.
 */
int as_fix_apply(const struct as_fix_env *e, const char *const *names, size_t n,
		 struct as_changes *ret, struct as_error *err);
int as_fix_restore(const struct as_fix_env *e, struct as_changes *ret, struct as_error *err);
/* Changes are in force that restore would take back. */
bool as_fix_pending(const struct as_fix_env *e);
/* The same of root's, as far as another user can see: that there is a state. */
bool as_fix_pending_of_root(const struct as_fix_env *e);

/* What was done, a line for each setting (CPUs of one kind together). */
void as_changes_text(const struct as_changes *c, bool restored, struct as_buf *out);
void as_changes_json(const struct as_changes *c, struct as_buf *out);

#endif
