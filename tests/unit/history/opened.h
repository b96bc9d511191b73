/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The history of a test's own folder. */
#ifndef AS_UNIT_HISTORY_OPENED_H
#define AS_UNIT_HISTORY_OPENED_H

#include "fixture.h"
#include "history/history.h"

static struct as_error err;

static inline struct as_history *open_it(void)
{
	struct as_history *h = NULL;

	if (as_history_open(fx_dir(), &h, &err) < 0)
		fail_msg("%s", err.msg);
	return h;
}

#endif
