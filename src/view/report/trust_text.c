/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The trust block on a terminal, and the small pieces all blocks under a report share. */
#include "view/report/trust.h"

#include <string.h>

#include "base/mem.h"
#include "base/sys.h"

enum { LABEL = 7, TROUBLE = 9, WIDTH_MAX = 120 };

/* Sentences are not read along a whole wide screen. */
static size_t block_width(const struct as_style *style)
{
	return (size_t)AS_MIN(style->width, (int)WIDTH_MAX);
}

void as_block_label(struct as_buf *out, const struct as_style *style, const char *label)
{
	size_t n = strlen(label);

	as_style_ink(style, out, AS_INK_FAINT);
	as_buf_adds(out, label);
	as_style_ink(style, out, AS_INK_PLAIN);
	as_buf_fill(out, ' ', LABEL - AS_MIN(n, (size_t)LABEL));
}

void as_block_words(struct as_buf *out, const struct as_style *style, size_t indent,
		    const char *text)
{
	size_t cursor = indent;
	struct as_buf clean = {0};

	as_fmt_quoted(&clean, text, strlen(text));
	for (const char *p = as_buf_str(&clean); *p;) {
		size_t n = strcspn(p, " "), w = as_text_width(p, n);

		if (cursor > indent && cursor + 1 + w > block_width(style)) {
			as_buf_addc(out, '\n');
			as_buf_fill(out, ' ', indent);
			cursor = indent;
		} else if (cursor > indent) {
			as_buf_addc(out, ' ');
			cursor++;
		}
		as_buf_add(out, p, n);
		cursor += w;
		p += n + (p[n] == ' ');
	}
	as_buf_addc(out, '\n');
	as_buf_clear(&clean);
}

/* The block being written: facts flow from line to line, troubles and notes stand alone. */
struct block {
	struct as_buf *out;
	const struct as_style *style;
	bool labelled; /* "trust" has been written */
	size_t cursor; /* of the line of facts; 0: none begun */
};

static void begin_line(struct block *b)
{
	if (b->labelled) {
		as_buf_fill(b->out, ' ', LABEL);
		return;
	}
	as_block_label(b->out, b->style, "trust");
	b->labelled = true;
}

/* Remedies hold commands: they are not wrapped, so that they can be pasted. */
static void remedy(struct block *b, const char *text)
{
	while (*text) {
		size_t n = strcspn(text, "\n"), skip = strspn(text, " ");

		if (n > skip) {
			as_buf_fill(b->out, ' ', LABEL);
			as_buf_adds(b->out, "→ ");
			as_fmt_quoted(b->out, text + skip, n - skip);
			as_buf_addc(b->out, '\n');
		}
		text += n + (text[n] == '\n');
	}
}

static void end_facts(struct block *b)
{
	if (b->cursor)
		as_buf_addc(b->out, '\n');
	b->cursor = 0;
}

static void trouble(struct block *b, const char *text)
{
	begin_line(b);
	as_style_ink(b->style, b->out, AS_INK_BAD);
	as_buf_addc(b->out, '!');
	as_style_ink(b->style, b->out, AS_INK_PLAIN);
	as_buf_addc(b->out, ' ');
	as_block_words(b->out, b->style, TROUBLE, text);
}

static void fact(struct block *b, const char *text)
{
	struct as_buf clean = {0};

	as_fmt_quoted(&clean, text, strlen(text));

	size_t w = as_text_width(as_buf_str(&clean), clean.len);

	if (b->cursor && b->cursor + 3 + w > block_width(b->style))
		end_facts(b);
	if (LABEL + w > block_width(b->style)) { /* has lines of its own */
		begin_line(b);
		as_block_words(b->out, b->style, LABEL, text);
		as_buf_clear(&clean);
		return;
	}
	if (!b->cursor) {
		begin_line(b);
		b->cursor = LABEL;
	} else {
		as_buf_adds(b->out, " · ");
		b->cursor += 3;
	}
	as_buf_adds(b->out, as_buf_str(&clean));
	b->cursor += w;
	as_buf_clear(&clean);
}

void as_trust_text(const struct as_model *m, const struct as_style *style, struct as_buf *out)
{
	struct block b = {.out = out, .style = style};
	struct as_trust_lines lines = {0};

	as_trust_lines(m, &lines);
	as_vec_foreach (l, &lines) {
		if (l->kind == AS_TRUST_FACT) {
			fact(&b, l->text);
			continue;
		}
		end_facts(&b);
		if (l->kind == AS_TRUST_TROUBLE) {
			trouble(&b, l->text);
		} else {
			begin_line(&b);
			as_block_words(out, style, LABEL, l->text);
		}
		remedy(&b, l->remedy);
	}
	end_facts(&b);
	as_trust_lines_clear(&lines);
}
