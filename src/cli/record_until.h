/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* assay record --until: what is asked of the rows, and what a user is told of the way there. */
#ifndef AS_CLI_RECORD_UNTIL_H
#define AS_CLI_RECORD_UNTIL_H

#include "collect/collect.h"

struct as_record_until {
	double percent; /* half width asked for, in percentage points */
	uint64_t limit_ns;
	bool quiet;
	bool told;
	char text[32]; /* the percentage */
};
/* Has q ask for it. u must outlive the recording. */
void as_record_until(struct as_record_until *u, struct as_recording_request *q);

#endif
