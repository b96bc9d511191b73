/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The trust block: how far the figures of a session can be believed. One or two lines when all
 * is well; with trouble first what is wrong and what it does to the figures ("!"), then what
 * mends it ("→"). The thresholds stand in trust.c.
 */
#ifndef AS_VIEW_TRUST_H
#define AS_VIEW_TRUST_H

#include "base/buf.h"
#include "base/mem.h"
#include "model/model.h"
#include "view/text/style.h"

enum as_trust_kind {
	AS_TRUST_TROUBLE, /* changes what a reader may conclude */
	AS_TRUST_FACT,    /* a few words; several make a line */
	AS_TRUST_NOTE,    /* worth knowing: what the recorder could not get */
};
struct as_trust_line {
	enum as_trust_kind kind;
	const char *text;   /* as recorded where it names files: not made safe for a terminal */
	const char *remedy; /* commands or advice, one a line; "" none */
};
/* Troubles first, then facts, then notes. */
struct as_trust_lines {
	struct as_trust_line *v;
	size_t n, cap;
	struct as_arena arena; /* owns the texts */
};
/* What there is to say, as data: the terminal's block and the page's are made of it. ret: zeroed. */
void as_trust_lines(const struct as_model *m, struct as_trust_lines *ret);
void as_trust_lines_clear(struct as_trust_lines *l);

void as_trust_text(const struct as_model *m, const struct as_style *style, struct as_buf *out);

/* Lines of words with a hanging indent, used by the blocks under a report. The cursor stands at
 * column `indent`; a word that does not fit starts a new line at `indent`. Ends the line. */
void as_block_words(struct as_buf *out, const struct as_style *style, size_t indent,
		    const char *text);
/* "label  " padded to the blocks' first column (7), faint. */
void as_block_label(struct as_buf *out, const struct as_style *style, const char *label);

#endif
