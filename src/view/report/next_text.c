/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Next steps on a terminal: see next.h. */
#include "view/report/next.h"

#include <string.h>

#include "base/mem.h"
#include "base/sys.h"
#include "view/report/trust.h"

enum { LABEL = 7 };

void as_next_print(const struct as_next_steps *s, const struct as_style *style,
		   struct as_buf *out)
{
	size_t widest = 0, reason = 0;

	as_vec_foreach (p, s) {
		widest = AS_MAX(widest, as_text_width(p->command, strlen(p->command)));
		reason = AS_MAX(reason, as_text_width(p->why, strlen(p->why)));
	}

	/* The reason stands beside the command where it fits on all lines, else below it. */
	bool beside = LABEL + widest + 3 + reason <= (size_t)style->width;

	as_vec_foreach (p, s) {
		if (p == s->v)
			as_block_label(out, style, "next");
		else
			as_buf_fill(out, ' ', LABEL);
		as_buf_adds(out, p->command);
		if (beside) {
			as_buf_fill(out, ' ',
				    widest - as_text_width(p->command, strlen(p->command)) + 3);
			as_buf_addf(out, "%s\n", p->why);
		} else {
			as_buf_addc(out, '\n');
			as_buf_fill(out, ' ', LABEL + 4);
			as_block_words(out, style, LABEL + 4, p->why);
		}
	}
}

void as_next_text(const struct as_next_request *q, const struct as_style *style,
		  struct as_buf *out)
{
	struct as_next_steps s = {0};

	as_next_make(q, &s);
	as_next_print(&s, style, out);
	as_next_clear(&s);
}
