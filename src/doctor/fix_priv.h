/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The state file of --fix. */
#ifndef AS_DOCTOR_FIX_PRIV_H
#define AS_DOCTOR_FIX_PRIV_H

#include "doctor/doctor_priv.h"
#include "doctor/fix.h"

struct as_fix_entry {
	const struct as_fixable *fix;
	char *path; /* relative */
	char found[32], set[32];
};
struct as_fix_state {
	AS_VEC(struct as_fix_entry) entries; /* in the order of the changes */
	int fd;                              /* of the file, locked; -1: there is none */
	bool stale;                          /* of an earlier start of the machine */
	size_t damaged;                      /* number of a line that cannot be read; 0 none */
	char damaged_text[80];
};
/*
 * Opens the state, locked against a second doctor. create: makes folder and file when absent; else
 * fd is -1 then. A torn last line is cut off. AS_E_FORMAT when it is no state of ours, and with
 * create also when a line is damaged: nothing is added to such a file.
 */
int as_fix_state_open(const struct as_fix_env *e, bool create, struct as_fix_state *ret,
		      struct as_error *err);
/*
 * The text of a state, whole lines: fills entries, stale and damaged. boot: of this start of the
 * machine. AS_E_FORMAT when its second line is none. Any bytes are safe; p is written to, p[n] is 0.
 */
int as_fix_state_parse(char *p, size_t n, const char *boot, struct as_fix_state *ret,
		       struct as_error *err);
/* Appends and brings to the disk. */
int as_fix_state_add(const struct as_fix_env *e, struct as_fix_state *s,
		     const struct as_fix_entry *entry, struct as_error *err);
/* Removes the file: all is put back. */
int as_fix_state_remove(const struct as_fix_env *e, struct as_fix_state *s,
			struct as_error *err);
bool as_fix_state_has(const struct as_fix_state *s, const char *path);
void as_fix_state_close(struct as_fix_state *s);

static inline void as_fix_step(const struct as_fix_env *e)
{
	if (e->step)
		e->step(e->step_ctx);
}

#endif
