/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* assay stat over time: -I, and a process that runs already (-p). */
#ifndef AS_CLI_STAT_WATCH_H
#define AS_CLI_STAT_WATCH_H

#include "cli/commands.h"
#include "view/stat/stat.h"
#include "view/stat/rows.h"

/* Rows that are written as they come. */
struct as_stat_printer {
	struct as_watch_rows rows; /* for as_run_request and as_attach_request */
	struct as_stat_rows table;
	int fd;
};
/* table is the caller's to fill. */
void as_stat_printer_init(struct as_stat_printer *p, int fd, double interval_s);
/* What follows the last row. */
int as_stat_printer_end(const struct as_stat_printer *p, struct as_error *err);

struct as_stat_attach {
	pid_t pid;
	double duration_s;
	const volatile int *interrupted;
};
/* Watches, and adds one run to repeat. ret_title: "process 12 (name), until it ended"; caller frees. */
int as_stat_attach(const struct as_stat_attach *a, struct as_stat_printer *p,
		   struct as_repeat *repeat, char **ret_title, struct as_error *err);

#endif
