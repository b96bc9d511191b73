/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * At most three next steps, drawn from the session's own figures, each a command ready to paste
 * and what it would answer. Nothing generic: a step without a figure behind it is not given,
 * but for the page, which always is a next step while there are samples.
 */
#ifndef AS_VIEW_NEXT_H
#define AS_VIEW_NEXT_H

#include "view/text/style.h"

struct as_next_request {
	const struct as_model *model;
	const struct as_profile *flat; /* by function, without filters */
	const char *file; /* session argument for the commands; NULL: the default one */
	/* what is on the screen already and need not be offered */
	const struct as_query *asked;
	bool in_page; /* the page does not offer itself */
};
struct as_next_step {
	const char *command, *why;
};
struct as_next_steps {
	struct as_next_step *v;
	size_t n, cap;
	struct as_arena arena; /* owns the texts */
};
/* ret: zeroed. */
void as_next_make(const struct as_next_request *q, struct as_next_steps *ret);
void as_next_clear(struct as_next_steps *s);

/* The block itself: the commands, beside or below them why. */
void as_next_print(const struct as_next_steps *s, const struct as_style *style,
		   struct as_buf *out);
void as_next_text(const struct as_next_request *q, const struct as_style *style,
		  struct as_buf *out);

#endif
