/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* history.c: the table; programs.c: the copies beside it; runs.c: benchmarks over time. */
#ifndef AS_HISTORY_HISTORY_PRIV_H
#define AS_HISTORY_HISTORY_PRIV_H

#include "history/history.h"

struct sqlite3;
struct as_history {
	struct sqlite3 *db;
	char *folder, *path; /* path: of the database */
};

extern const char as_history_runs_schema[];

#endif
