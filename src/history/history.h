/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What was measured before, by name: $XDG_DATA_HOME/assay/history.db (SQLite, write-ahead log), and
 * beside it copies of the programs, so that an old build can be run again next to a new one. A
 * stored figure alone is a trend and no baseline: the machine of that day is in it.
 *
 *	as_history_open(NULL, &h, err);
 *	as_history_save(h, &entry, err);
 *	as_history_find(h, "main", &entry, err);	// the newest of that name
 *	as_history_entry_clear(&entry);  as_history_close(h);
 *
 * Copies are named after their contents and kept once, at most AS_HISTORY_PROGRAM_MAX bytes each;
 * only ELF files are copied, as scripts look for what lies beside them.
 *
 * Several processes may use one history. Thread rule: a handle belongs to one thread.
 */
#ifndef AS_HISTORY_HISTORY_H
#define AS_HISTORY_HISTORY_H

#include <stdint.h>
#include "base/err.h"

#define AS_HISTORY_PROGRAM_MAX (256u << 20)

struct as_history;

struct as_history_entry {
	char *name, *kind; /* kind: "stat" */
	uint64_t time_s;   /* since 1970 */
	char *machine;     /* as_history_machine */
	char *program;     /* path of the program as it was run */
	char *copy;        /* path of its copy; "" when there is none */
	char *arguments;   /* what followed the program's name: JSON array of texts */
	char *result;      /* JSON as the command prints it */
};

/* folder NULL: the default one. Made when it is not there. */
int as_history_open(const char *folder, struct as_history **ret, struct as_error *err);
void as_history_close(struct as_history *h);
int as_history_save(struct as_history *h, const struct as_history_entry *e,
		    struct as_error *err);
/* AS_E_NOTFOUND with the names there are. */
int as_history_find(struct as_history *h, const char *name, struct as_history_entry *ret,
		    struct as_error *err);
void as_history_entry_clear(struct as_history_entry *e);

/* Copies a program into the history; *ret is its path, NULL when it is no ELF file or too large.
 * Caller frees. */
int as_history_keep_program(struct as_history *h, const char *path, char **ret,
			    struct as_error *err);

/* "AMD EPYC, 2 CPUs, Linux 6.18": what figures depend on. Caller frees. */
char *as_history_machine(void);
/* The file execvp would run; NULL when there is none. Caller frees. */
char *as_history_which(const char *name);

#endif
