/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Help text from the tables: overview, one command, and the generated parts of man pages. */
#include <string.h>

#include "base/mem.h"
#include "base/sys.h"
#include "cli/commands.h"

enum { HELP_WIDTH = 92, HELP_COLUMN = 28 };

void as_help_overview(struct as_buf *out)
{
	static const struct as_cmd_example flow[] = {
		{"assay doctor ./app", "before: is the machine quiet, is the program fit"},
		{"assay record -- ./app args",
		 "record a run: stacks, complete, with their cost"},
		{"assay report", "where the time went, and how sure that is"},
		{"assay report --callers NAME", "who pays for a function"},
		{"assay report --by line", "the lines it goes to; also file, crate, thread"},
		{"assay flame -o app.svg", "the whole picture, for the browser"},
	};

	as_buf_adds(out, "assay tells what a native program spends its time on, and how sure "
			 "that is.\n\n");
	for (size_t i = 0; i < AS_ARRAY_LEN(flow); i++)
		as_buf_addf(out, "  %-30s %s\n", flow[i].words, flow[i].what);
	as_buf_adds(out, "\nCommands\n");
	for (const struct as_cmd *const *c = as_commands; *c; c++)
		as_buf_addf(out, "  %-10s %s\n", (*c)->name, (*c)->summary);
	as_buf_adds(
		out,
		"\nassay CMD --help shows a command's options; assay --version the version.\n");
}

/* text in words from column `at` on; the cursor is at column `cursor`. Its own line breaks stay. */
static void add_wrapped(struct as_buf *out, const char *text, size_t at, size_t cursor)
{
	if (cursor + 2 > at) {
		as_buf_addc(out, '\n');
		cursor = 0;
	}
	as_buf_fill(out, ' ', at - cursor);
	cursor = at;
	while (*text) {
		size_t n = strcspn(text, " \n"), w = as_text_width(text, n);

		if (cursor > at && (text[-1] == '\n' || cursor + 1 + w > HELP_WIDTH)) {
			as_buf_addc(out, '\n');
			as_buf_fill(out, ' ', at);
			cursor = at;
		} else if (cursor > at) {
			as_buf_addc(out, ' ');
			cursor++;
		}
		as_buf_add(out, text, n);
		cursor += w;
		text += n + (text[n] != 0);
	}
	as_buf_addc(out, '\n');
}

static const char *shown_default(const struct as_option *o)
{
	return o->def_text ? o->def_text : o->def;
}

static void option_words(struct as_buf *out, const struct as_option *o)
{
	if (o->letter)
		as_buf_addf(out, "-%c, --%s", o->letter, o->name);
	else
		as_buf_addf(out, "--%s", o->name);
	if (o->bare)
		as_buf_addf(out, "[=%s]", o->arg ? o->arg : "VALUE");
	else if (o->type != AS_OPT_FLAG)
		as_buf_addf(out, " %s", o->arg ? o->arg : "VALUE");
}

static void option_text(struct as_buf *out, const struct as_option *o)
{
	as_buf_adds(out, o->help);
	if (shown_default(o))
		as_buf_addf(out, "%s(default: %s)", strchr(o->help, '\n') ? "\n" : " ",
			    shown_default(o));
}

static void help_option(struct as_buf *out, const struct as_option *o)
{
	struct as_buf words = {0}, text = {0};

	as_buf_adds(&words, o->letter ? "  " : "      ");
	option_words(&words, o);
	option_text(&text, o);
	as_buf_adds(out, as_buf_str(&words));
	add_wrapped(out, as_buf_str(&text), HELP_COLUMN, as_text_width(words.p, words.len));
	as_buf_clear(&words);
	as_buf_clear(&text);
}

/* Calls fn for each group once, in the order of their first option. */
static void each_group(const struct as_option *table, struct as_buf *out,
		       void (*title)(struct as_buf *, const char *),
		       void (*row)(struct as_buf *, const struct as_option *))
{
	for (const struct as_option *o = table; o && o->name; o++) {
		const struct as_option *first = table;

		while (strcmp(first->group, o->group) != 0)
			first++;
		if (first != o)
			continue;
		title(out, o->group);
		for (const struct as_option *p = o; p->name; p++) {
			if (strcmp(p->group, o->group) == 0)
				row(out, p);
		}
	}
}

static void help_title(struct as_buf *out, const char *group)
{
	as_buf_addf(out, "\n%s\n", group);
}

static void add_usage(struct as_buf *out, const struct as_cmd *cmd, const char *first,
		      const char *next)
{
	const char *p = cmd->usage;

	for (int i = 0; *p; i++) {
		size_t n = strcspn(p, "\n");

		as_buf_addf(out, "%sassay %s%s%.*s\n", i ? next : first, cmd->name,
			    n ? " " : "", (int)n, p);
		p += n + (p[n] == '\n');
	}
}

void as_help_command(struct as_buf *out, const struct as_cmd *cmd)
{
	size_t widest = 0;

	add_usage(out, cmd, "usage: ", "       ");
	as_buf_addf(out, "\n%s\n\n", cmd->summary);
	for (size_t i = 0; i < AS_ARRAY_LEN(cmd->examples) && cmd->examples[i].words; i++)
		widest = AS_MAX(widest, as_text_width(cmd->examples[i].words,
						      strlen(cmd->examples[i].words)));
	for (size_t i = 0; i < AS_ARRAY_LEN(cmd->examples) && cmd->examples[i].words; i++) {
		const struct as_cmd_example *e = &cmd->examples[i];
		size_t w = as_text_width(e->words, strlen(e->words));

		as_buf_addf(out, "  %s%*s   %s\n", e->words, (int)(widest - w), "", e->what);
	}
	each_group(cmd->options, out, help_title, help_option);
	each_group(as_common_options, out, help_title, help_option);
}

/* ---- man pages ---- */

static void md_title(struct as_buf *out, const char *group)
{
	as_buf_addf(out, "\n### %s\n", group);
}

static void md_option(struct as_buf *out, const struct as_option *o)
{
	struct as_buf text = {0};

	as_buf_adds(out, "\n`");
	option_words(out, o);
	as_buf_adds(out, "`\n:   ");
	option_text(&text, o);
	for (const char *p = text.p; *p; p++) {
		if (*p != '\n')
			as_buf_addc(out, *p);
		else
			as_buf_adds(out, p[1] == '(' ? " " : "; ");
	}
	as_buf_addc(out, '\n');
	as_buf_clear(&text);
}

void as_help_markdown(struct as_buf *out, const struct as_cmd *cmd)
{
	as_buf_adds(out, "## SYNOPSIS\n\n");
	add_usage(out, cmd, "    ", "    ");
	as_buf_adds(out, "\n## OPTIONS\n");
	each_group(cmd->options, out, md_title, md_option);
	each_group(as_common_options, out, md_title, md_option);
}
