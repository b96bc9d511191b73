/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Session models to and from other programs' formats: one row in AS_EXPORTERS, one file per format.
 *
 *	const struct as_exporter *e = as_exporter_find("pprof");
 *	r = as_sink_open(&sink, "app.pb.gz", err);
 *	r = e->write(model, &options, &sink, err);
 *	r = as_sink_finish(&sink, err);
 *
 * A writer reads the model (as_selection_make: what the query keeps), appends to the sink and spills
 * it now and then. It packs itself where its format is packed. The sink's failures are left to
 * as_sink_finish; a writer returns its own: AS_E_USAGE, AS_E_NOTFOUND of the query, AS_E_LIMIT.
 * What all of them keep to: size grows with distinct stacks, not with samples (but for formats that
 * are time lines, which say so); any name is data; a stack that was cut shows its marker above the
 * first frame; a sample of which no frame is shown stands at AS_EXPORT_NO_FRAMES.
 *
 * Folded stacks, one line per distinct stack, sorted by text:
 *
 *	main;parse;next_token 120
 *
 * outermost frame first, ';' between frames, a blank and the weight last: what inferno,
 * flamegraph.pl and speedscope read. Where a name holds bytes that the format needs for itself, a
 * look-alike is written that these tools show as it was meant; as_folded_parse turns it back, so
 * that parse(print(x)) = x for any bytes:
 *
 *	;		U+037E, the Greek question mark
 *	control bytes	U+2400 + byte, their pictures; DEL U+2421
 *	blank		U+00A0, no-break, at either end of a name, and before a last word that could
 *			be taken for a weight ("f 12", "f 1.5")
 *	# at the start	U+FF03 (tools take such lines for comments)
 *	empty name	U+2205
 *	any of these look-alikes, where a name really holds it: U+2426 in front of it; U+2426 too
 *
 * Everything else, also what is not UTF-8, stands for itself.
 */
#ifndef AS_EXCHANGE_EXCHANGE_H
#define AS_EXCHANGE_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"
#include "base/sink.h"
#include "model/model.h"

#define AS_EXPORT_NO_FRAMES "[no frames]"

/* Which sessions a format can carry. */
enum as_export_kind {
	AS_EXPORT_TIME = 1,
	AS_EXPORT_MEMORY = 2,
	AS_EXPORT_BOTH = 3,
	AS_EXPORT_EVENTS = 4, /* with calls of memory, in whatever measure */
};

/*	name, suffix, whether a person reads it, sessions (enum as_export_kind), what it is */
#define AS_EXPORTERS(X)                                                                        \
	X(folded, ".folded", true, BOTH, "a line per stack, for flamegraph.pl and inferno")    \
	X(pprof, ".pb.gz", false, BOTH, "go tool pprof and what reads its format")             \
	X(firefox, ".firefox.json", false, BOTH, "samples in time, for profiler.firefox.com")  \
	X(speedscope, ".speedscope.json", false, TIME,                                         \
	  "a profile per thread, for speedscope.app")                                          \
	X(chrome, ".trace.json", false, TIME,                                                  \
	  "calls in time, for Perfetto and chrome://tracing")                                  \
	X(callgrind, ".callgrind", false, TIME, "callgrind_annotate, KCachegrind")             \
	X(dhat, ".dhat.json", false, MEMORY, "memory, for valgrind's dh_view.html")            \
	X(heaptrack, ".heaptrack.gz", false, MEMORY,                                           \
	  "memory, for heaptrack_gui and heaptrack_print")                                     \
	X(events, ".events.jsonl", true, EVENTS,                                               \
	  "a line per call, of a session of assay heap --events")                              \
	X(json, ".json", false, TIME, "everything, documented, for scripts")

struct as_export_options {
	/* scope and filters, not by and shape; NULL: everything */
	const struct as_query *query;
	bool by_thread;  /* threads apart, in formats where that is a choice */
	bool full_names; /* with all type parameters; else the brief ones */
};

struct as_exporter {
	const char *name, *suffix; /* suffix: what a file of the format ends in */
	bool readable;             /* short lines, fit for a terminal */
	enum as_export_kind kinds;
	const char *summary;
	int (*write)(const struct as_model *m, const struct as_export_options *o,
		     struct as_sink *out, struct as_error *err);
};
extern const struct as_exporter as_exporters[]; /* in the order of AS_EXPORTERS */
extern const size_t as_nexporters;
const struct as_exporter *as_exporter_find(const char *name); /* NULL: none */
/* By suffix, also with ".gz" behind it; NULL: none. */
const struct as_exporter *as_exporter_of_path(const char *path);
/* path ends in ".gz" and the format is not gzip by itself: the sink is to pack. */
bool as_exporter_packs(const struct as_exporter *e, const char *path);

/* ---- folded ---- */

struct as_folded_options {
	/* scope and filters, not by and shape; NULL: everything */
	const struct as_query *query;
	bool by_thread;   /* first frame: the thread's name */
	bool by_process;  /* first frame (before the thread): the process's name */
	bool weight_ns;   /* weights in the recording's unit (ns) instead of samples */
	bool mark_kernel; /* kernel frames get the suffix "_[k]" */
	bool full_names;
};
/* Appends the lines to out. AS_E_USAGE as as_profile_make. */
int as_export_folded(const struct as_model *m, const struct as_folded_options *o,
		     struct as_buf *out, struct as_error *err);

/* Appends one frame's name in its escaped form. */
void as_folded_escape(struct as_buf *out, const char *name, size_t n);

/* Calls fn per line, frames unescaped and outermost first, in the order of the text; blank
 * lines and lines that begin with '#' are skipped. fn returns 0 to go on. A line without a
 * weight is AS_E_FORMAT. Weights with a fraction are rounded down. */
typedef int (*as_folded_fn)(void *ctx, const struct as_str *frames, size_t nframes,
			    uint64_t weight);
int as_folded_parse(const char *text, size_t n, as_folded_fn fn, void *ctx,
		    struct as_error *err);

#endif
