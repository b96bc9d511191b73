/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the commands that record a program have in common: signals, names, statuses, the summary. */
#ifndef AS_CLI_RECORDING_H
#define AS_CLI_RECORDING_H

#include <stddef.h>

#include "cli/commands.h"
#include "collect/collect.h"

/* Option rows of both. T: the command's argument struct, with members of these names. */
#define AS_RECORDING_PID(T, more_)                                                             \
	{                                                                                      \
		.name = "pid", .letter = 'p', .type = AS_OPT_INT, .at = offsetof(T, pid),      \
		.arg = "PID", .min = 1, .max = 4194304, .group = "What is recorded",           \
		.help = "attach to a running process, all its threads, instead of starting "   \
			"one" more_                                                            \
	}
#define AS_RECORDING_DURATION(T, more_)                                                        \
	{                                                                                      \
		.name = "duration", .type = AS_OPT_DURATION, .at = offsetof(T, duration_ns),   \
		.arg = "TIME", .min = 0.001, .max = 1e7,                                       \
		.def_text = "until the program ends or Ctrl-C", .group = "What is recorded",   \
		.help = "stop recording after 10, 1.5m, 200ms …; a started program goes "    \
			"on" more_                                                             \
	}
#define AS_RECORDING_SAMPLE(T, group_, help_)                                                  \
	{                                                                                      \
		.name = "sample", .type = AS_OPT_SIZE, .at = offsetof(T, sample_bytes),        \
		.arg = "BYTES", .min = 1, .max = 1e12, .def_text = "every block is recorded",  \
		.group = group_, .help = help_                                                 \
	}
#define AS_RECORDING_EVENTS(T, group_, help_)                                                  \
	{                                                                                      \
		.name = "events", .type = AS_OPT_FLAG, .at = offsetof(T, events),              \
		.group = group_, .help = help_                                                 \
	}
/* source_: what is kept no source lines of. */
#define AS_RECORDING_OUTPUT(T, file_, source_)                                                 \
	{.name = "output",                                                                     \
	 .letter = 'o',                                                                        \
	 .type = AS_OPT_TEXT,                                                                  \
	 .at = offsetof(T, output),                                                            \
	 .arg = "FILE",                                                                        \
	 .def_text = file_,                                                                    \
	 .group = "Output",                                                                    \
	 .help = "the session to write"},                                                      \
		{.name = "no-inline",                                                          \
		 .type = AS_OPT_FLAG,                                                          \
		 .at = offsetof(T, no_inline),                                                 \
		 .group = "Output",                                                            \
		 .help = "do not look up inlined functions: quicker for very large programs"}, \
		{.name = "no-source",                                                          \
		 .type = AS_OPT_FLAG,                                                          \
		 .at = offsetof(T, no_source),                                                 \
		 .group = "Output",                                                            \
		 .help = "keep no source lines of " source_ "; their instructions and line "   \
			 "numbers are kept all the same"},                                     \
	{                                                                                      \
		.name = "quiet", .letter = 'q', .type = AS_OPT_FLAG, .at = offsetof(T, quiet), \
		.group = "Output", .help = "no summary, no progress"                           \
	}

/* Signals so far, and the first one, as recordings want them (struct as_interrupt). */
extern volatile int as_interrupts, as_interrupt_signal;
/*
 * SIGINT, SIGTERM, SIGHUP and SIGQUIT are noted, SIGPIPE does nothing. Handlers, not SIG_IGN: a started
 * program gets the default back at its exec, as if assay were not there. What the caller had ignored
 * (nohup) stays ignored for both.
 */
void as_interrupts_catch(void);

/* SIGUSR1 so far, as recordings of memory make marks of it. */
extern volatile int as_marks;
void as_marks_catch(void);

/* NAME of the program, or of process pid, and end: "app.assay". Caller frees. */
char *as_recording_output(const struct as_cmd_ctx *ctx, int64_t pid, const char *end);
/* As env and nice do: 127 when the program does not exist, 126 when it cannot be run. */
int as_recording_failure(const struct as_recording_outcome *o);
/* The exit status of assay: that of the program. */
int as_recording_status(const struct as_recording_outcome *o);
/* To standard error. A summary that fails does not fail the recording: the session is there. */
void as_recording_summary(const struct as_cmd_ctx *ctx, const char *path);

/* A line of progress that is written over itself, on standard error. */
struct as_progress {
	bool shown;
	uint64_t last_ns, duration_ns;
	const char *unit; /* of what is counted: "samples" */
};
void as_progress_tell(struct as_progress *p, uint64_t elapsed_ns, uint64_t count,
		      const char *what);
void as_progress_end(const struct as_progress *p);

#endif
