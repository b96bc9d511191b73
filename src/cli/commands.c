/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The table of commands, in the order of the work: see commands.h. */
#include "cli/commands.h"

#include <string.h>

#include "base/mem.h"
#include "cli/cmds_priv.h"

const struct as_cmd *const as_commands[] = {
	&as_cmd_doctor, &as_cmd_record,   &as_cmd_heap,  &as_cmd_stat, &as_cmd_bench,
	&as_cmd_report, &as_cmd_annotate, &as_cmd_flame, &as_cmd_view, &as_cmd_export,
	&as_cmd_diff,   &as_cmd_cargo,    &as_cmd_help,  NULL,
};

const struct as_option as_common_options[] = {
	{.name = "color",
	 .type = AS_OPT_CHOICE,
	 .at = offsetof(struct as_common_args, color),
	 .arg = "WHEN",
	 .choices = "auto|always|never",
	 .def = "auto",
	 .group = "General",
	 .help = "auto, always or never; NO_COLOR in the environment means never"},
	{.name = "help",
	 .letter = 'h',
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct as_common_args, help),
	 .group = "General",
	 .help = "show this text"},
	{0},
};

const struct as_cmd *as_command_find(const char *name)
{
	for (const struct as_cmd *const *c = as_commands; *c; c++) {
		if (strcmp((*c)->name, name) == 0)
			return *c;
	}
	return NULL;
}

int as_command_unknown(const char *name, struct as_error *err)
{
	const char *names[AS_ARRAY_LEN(as_commands)];
	size_t n = 0;

	for (const struct as_cmd *const *c = as_commands; *c; c++)
		names[n++] = (*c)->name;

	const char *near = as_nearest(name, names, n);

	if (near)
		return as_fail(err, AS_E_USAGE, 0, "unknown command '%s'; did you mean '%s'?",
			       name, near);
	return as_fail(err, AS_E_USAGE, 0, "unknown command '%s'\nassay shows what there is",
		       name);
}
