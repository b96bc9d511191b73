/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The trust block: how far the figures of a session can be believed. One or two lines when all
 * is well; with trouble first what is wrong and what it does to the figures ("!"), then what
 * mends it ("→"). The thresholds stand in trust.c.
 */
#ifndef AS_VIEW_TRUST_H
#define AS_VIEW_TRUST_H

#include "base/json.h"
#include "view/style.h"

void as_trust_text(const struct as_model *m, const struct as_style *style, struct as_buf *out);
void as_trust_json(const struct as_model *m, const char *key, struct as_json *j);

/* Lines of words with a hanging indent, used by the blocks under a report. The cursor stands at
 * column `indent`; a word that does not fit starts a new line at `indent`. Ends the line. */
void as_block_words(struct as_buf *out, const struct as_style *style, size_t indent,
		    const char *text);
/* "label  " padded to the blocks' first column (7), faint. */
void as_block_label(struct as_buf *out, const struct as_style *style, const char *label);

#endif
