/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Any bytes as the answer of a bench program, and as the question to one. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "harness/protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *at = (const char *)data, *end = at + size, *line_end;
	char *text = as_xstrndup(at, size);
	struct as_question q;
	struct as_answer a;

	(void)as_question_parse(text, &q, NULL);
	free(text);
	as_answer_init(&a);
	while (at < end && (line_end = memchr(at, '\n', (size_t)(end - at)))) {
		if (as_answer_line(&a, at, (size_t)(line_end - at), NULL) < 0)
			break;
		at = line_end + 1;
	}
	as_answer_clear(&a);
	return 0;
}
