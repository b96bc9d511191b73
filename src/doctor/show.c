/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Findings as text and as JSON: see doctor.h. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/sys.h"
#include "doctor/doctor_priv.h"

enum { AT = 12 /* column of the findings */, GAP = 4 };

enum ink { PLAIN, RED, YELLOW, GREEN, FAINT };

static void ink(const struct as_doctor_style *s, struct as_buf *out, enum ink i)
{
	static const char *const codes[] = {"\033[0m", "\033[31m", "\033[33m", "\033[32m",
					    "\033[2m"};

	if (s->color)
		as_buf_adds(out, codes[i]);
}

static size_t width_of(const char *s)
{
	return as_text_width(s, strlen(s));
}

/* ---- text in a column ---- */

struct column {
	const struct as_doctor_style *style;
	struct as_buf *out;
	size_t at;     /* where its lines begin */
	size_t cursor; /* where the current line ends */
};

static void column_break(struct column *c)
{
	as_buf_addc(c->out, '\n');
	as_buf_fill(c->out, ' ', c->at);
	c->cursor = c->at;
}

/* Words of one line of text; those that do not fit go to the next line. */
static void column_words(struct column *c, const char *text, size_t n)
{
	while (n) {
		size_t len = 0;

		while (len < n && text[len] != ' ')
			len++;
		size_t w = as_text_width(text, len);

		if (c->cursor > c->at && c->cursor + 1 + w > (size_t)c->style->width) {
			column_break(c);
		} else if (c->cursor > c->at) {
			as_buf_addc(c->out, ' ');
			c->cursor++;
		}
		as_fmt_quoted(c->out, text, len);
		c->cursor += w;
		text += len;
		n -= len;
		while (n && *text == ' ') {
			text++;
			n--;
		}
	}
}

/* One entry of a list: whole on this line, or on the next. */
static void column_item(struct column *c, const char *text, const char *separator)
{
	size_t w = width_of(text), sep = width_of(separator);

	if (c->cursor > c->at) {
		/* a line that another one follows ends with the separator */
		if (c->cursor + sep + w + 2 > (size_t)c->style->width) {
			if (c->cursor + 2 <= (size_t)c->style->width)
				as_buf_adds(c->out, " ·");
			column_break(c);
		} else {
			as_buf_adds(c->out, separator);
			c->cursor += sep;
		}
	}
	if (c->cursor + w <= (size_t)c->style->width) {
		as_fmt_quoted(c->out, text, strlen(text));
		c->cursor += w;
		return;
	}
	column_words(c, text, strlen(text));
}

/* keep: what is to be pasted stays in one piece; a note behind it goes to a line of its own. */
static void column_fit(struct column *c, const char *text, size_t n, bool keep)
{
	const char *note = keep ? memmem(text, n, "   (", 4) : NULL;
	size_t first = note ? (size_t)(note - text) : n;

	if (!keep) {
		column_words(c, text, n);
		return;
	}
	if (note && c->at + as_text_width(text, n) <= (size_t)c->style->width)
		first = n;
	as_fmt_quoted(c->out, text, first);
	if (first < n) {
		column_break(c);
		column_words(c, note + 3, n - first - 3);
	}
}

/* ---- one finding ---- */

struct area {
	const struct as_doctor_style *style;
	struct as_buf *out;
	const char *name; /* "" once it stands */
};

static void begin(struct area *a, const char *sign, enum ink color)
{
	size_t w = width_of(a->name);

	as_buf_adds(a->out, a->name);
	as_buf_fill(a->out, ' ', AT - 2 - w);
	a->name = "";
	ink(a->style, a->out, color);
	as_buf_adds(a->out, sign);
	ink(a->style, a->out, PLAIN);
	as_buf_addc(a->out, ' ');
}

static void add_lines(struct area *a, const char *text, const char *sign)
{
	while (*text) {
		size_t n = strcspn(text, "\n");
		size_t sign_width = width_of(sign);
		struct column c = {a->style, a->out, AT + sign_width, AT + sign_width};

		as_buf_addc(a->out, '\n');
		as_buf_fill(a->out, ' ', AT);
		as_buf_adds(a->out, sign);
		column_fit(&c, text, n, sign_width != 0);
		text += n + (text[n] == '\n');
		text += strspn(text, " ");
	}
}

static void add_finding(struct area *a, const struct as_finding *f, size_t fix_at)
{
	static const char *const signs[] = {"✓", "i", "!", "✗"};
	static const enum ink inks[] = {GREEN, FAINT, YELLOW, RED};
	struct column c = {a->style, a->out, AT, AT};
	size_t fix = f->fix && !strchr(f->fix, '\n') ? width_of(f->fix) : 0, what;

	begin(a, signs[f->severity], inks[f->severity]);
	what = width_of(f->what);
	if (AT + what <= (size_t)a->style->width)
		as_fmt_quoted(a->out, f->what, strlen(f->what));
	else
		column_words(&c, f->what, strlen(f->what));
	bool beside =
		fix && AT + what + GAP <= fix_at && fix_at + fix <= (size_t)a->style->width;

	if (beside) {
		as_buf_fill(a->out, ' ', fix_at - AT - what);
		as_buf_adds(a->out, f->fix);
	}
	ink(a->style, a->out, FAINT);
	if (f->why)
		add_lines(a, f->why, "");
	ink(a->style, a->out, PLAIN);
	if (f->fix && !beside)
		add_lines(a, f->fix, "→ ");
	as_buf_addc(a->out, '\n');
}

/* With its reason and remedy, not as a word in a list. */
static bool in_full(const struct as_finding *f, const struct as_doctor_style *style)
{
	return f->severity >= AS_SEVERITY_WARN ||
	       (f->severity == AS_SEVERITY_INFO && (style->all || f->full));
}

/* The column where fixes stand: behind the longest finding that leaves room for its own. */
static size_t fix_column(const struct as_findings *f, enum as_area area,
			 const struct as_doctor_style *style)
{
	size_t at = 0;

	as_vec_foreach (it, &f->all) {
		size_t w = AT + width_of(it->what) + GAP;

		if (it->area != area || !it->fix || strchr(it->fix, '\n') ||
		    !in_full(it, style))
			continue;
		if (w + width_of(it->fix) <= (size_t)style->width)
			at = AS_MAX(at, w);
	}
	return at;
}

static void add_list(struct area *a, const struct as_findings *f, enum as_area area,
		     enum as_severity severity)
{
	struct column c = {a->style, a->out, AT, AT};
	bool any = false;

	as_vec_foreach (it, &f->all) {
		if (it->area != area || it->severity != severity || in_full(it, a->style))
			continue;
		if (!any)
			begin(a, severity == AS_SEVERITY_OK ? "✓" : "i",
			      severity == AS_SEVERITY_OK ? GREEN : FAINT);
		any = true;
		column_item(&c, it->what, " · ");
	}
	if (any)
		as_buf_addc(a->out, '\n');
}

static void add_area(const struct as_findings *f, enum as_area area,
		     const struct as_doctor_style *style, struct as_buf *out)
{
	struct area a = {style, out, as_area_name(area)};
	size_t fix_at = fix_column(f, area, style);

	for (int s = AS_SEVERITY_BAD; s >= AS_SEVERITY_INFO; s--) {
		as_vec_foreach (it, &f->all) {
			if (it->area == area && it->severity == (enum as_severity)s &&
			    in_full(it, style))
				add_finding(&a, it, fix_at);
		}
	}
	add_list(&a, f, area, AS_SEVERITY_INFO);
	add_list(&a, f, area, AS_SEVERITY_OK);
}

/* ---- what can be done ---- */

static void add_can(const struct as_findings *f, const struct as_doctor_style *style,
		    struct as_buf *out)
{
	for (int can = 1; can >= 0; can--) {
		struct column c = {style, out, AT - 2, AT - 2};
		bool any = false;

		as_vec_foreach (it, &f->all) {
			if (it->area != AS_AREA_CAN || (it->severity == AS_SEVERITY_OK) != can)
				continue;
			if (!any)
				as_buf_adds(out, can ? "can do    " : "cannot    ");
			any = true;
			column_item(&c, it->what, " · ");
		}
		if (any)
			as_buf_addc(out, '\n');
	}
}

void as_findings_text(const struct as_findings *f, const struct as_doctor_style *style,
		      struct as_buf *out)
{
	for (int a = 0; a < AS_AREA_CAN; a++)
		add_area(f, (enum as_area)a, style, out);
	add_can(f, style, out);
}

/* ---- JSON ---- */

static void json_text(struct as_json *j, const char *key, const char *s)
{
	if (s)
		as_json_str(j, key, s);
	else
		as_json_null(j, key);
}

static void json_vitals(struct as_json *j, const struct as_vitals *v)
{
	const struct as_noise *n = &v->noise;
	const struct as_pulse *p = &v->pulse;

	if (n->repetitions) {
		as_json_obj(j, "noise");
		as_json_u64(j, "repetitions", n->repetitions);
		as_json_num(j, "typical_ms", n->typical_ms, 6);
		as_json_num(j, "spread", n->spread, 6);
		as_json_num(j, "range_5_95", n->range, 6);
		as_json_num(j, "speed_spread", n->speed, 6);
		as_json_num(j, "worst_gap_ms", n->worst_gap_ms, 6);
		as_json_num(j, "lost", n->lost, 6);
		if (n->waited >= 0)
			as_json_num(j, "waited", n->waited, 6);
		as_json_u64(j, "gaps", n->gaps);
		as_json_u64(j, "moves", n->moves);
		as_json_end(j);
	}
	if (!p->interval_ns)
		return;
	as_json_obj(j, "load");
	as_json_num(j, "interval_s", (double)p->interval_ns / 1e9, 6);
	as_json_num(j, "cpus", p->cpus_online, 6);
	as_json_num(j, "others_cpus", p->others_cpus, 4);
	as_json_num(j, "unseen_cpus", p->unseen_cpus, 4);
	as_json_num(j, "steal", p->steal, 4);
	as_json_arr(j, "top");
	for (size_t i = 0; i < AS_PULSE_TOP && p->top[i].name[0]; i++) {
		as_json_obj(j, NULL);
		as_json_str(j, "name", p->top[i].name);
		as_json_num(j, "cpus", p->top[i].cpus, 4);
		as_json_end(j);
	}
	as_json_end(j);
	as_json_end(j);
}

void as_findings_json(const struct as_findings *f, const struct as_vitals *vitals,
		      const char *subject, struct as_buf *out)
{
	struct as_json j = {.out = out, .indent = true};

	as_json_obj(&j, NULL);
	as_json_str(&j, "schema", "assay.doctor/1");
	json_text(&j, "subject", subject);
	as_json_str(&j, "worst", as_severity_name(as_findings_worst(f)));
	as_json_arr(&j, "findings");
	as_vec_foreach (it, &f->all) {
		as_json_obj(&j, NULL);
		as_json_str(&j, "id", it->id);
		as_json_str(&j, "severity", as_severity_name(it->severity));
		as_json_str(&j, "area", as_area_name(it->area));
		as_json_str(&j, "what", it->what);
		json_text(&j, "why", it->why);
		json_text(&j, "fix", it->fix);
		json_text(&j, "fixable", it->fixable);
		as_json_end(&j);
	}
	as_json_end(&j);
	if (vitals)
		json_vitals(&j, vitals);
	as_json_end(&j);
	as_buf_addc(out, '\n');
}
