/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* history.c: the table; programs.c: the copies beside it. */
#ifndef AS_HISTORY_HISTORY_PRIV_H
#define AS_HISTORY_HISTORY_PRIV_H

#include "history/history.h"

struct sqlite3;
struct as_history {
	struct sqlite3 *db;
	char *folder, *path; /* path: of the database */
};

#endif
