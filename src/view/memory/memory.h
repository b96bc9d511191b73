/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What reports say of sessions of memory beside the table. */
#ifndef AS_VIEW_MEMORY_H
#define AS_VIEW_MEMORY_H

#include "model/memory/tables.h"
#include "view/report/report.h"
#include "view/report/trust.h"

#define AS_MEMORY_NO_FRAMES "[no frames]"

/* "peak 8.3 MiB after 1.2 s · live at the end 1.2 MiB in 332 blocks · 1.43 M allocations of 120 MiB",
 * and which measure the table is in. */
void as_memory_header(const struct as_model *m, const struct as_style *style,
		      struct as_buf *out);
/* Figures of the trust block: as as_trust_lines. */
void as_memory_trust(const struct as_model *m, struct as_trust_lines *ret);
/* The same beside the trust block of CPU samples: what is wrong, and the rest in short. */
void as_memory_troubles(const struct as_model *m, struct as_trust_lines *ret);
void as_memory_trust_beside(const struct as_model *m, struct as_trust_lines *ret);
/* At most three commands that have more to say, each with the figure it is drawn from. Returns how many.
 * ret: zeroed. */
struct as_memory_steps_of {
	const struct as_model *model;
	const char *file; /* session argument for the commands; NULL: the default one */
	bool no_realloc;  /* the reader knows what grows */
	bool no_function; /* likewise one function's lines or callers */
};
struct as_memory_step {
	struct as_buf command, why;
};
size_t as_memory_steps(const struct as_memory_steps_of *q, struct as_memory_step ret[3]);
void as_memory_steps_clear(struct as_memory_step s[3]);
/* The same as the last lines of a report. */
void as_memory_next(const struct as_report_request *q, const struct as_style *style,
		    struct as_buf *out);
/*
 * Reports of request.table: what the selection of its query holds by type, by size, by how long blocks
 * lived, and where realloc grows them step by step, with what to begin with instead. AS_E_USAGE for a
 * session of time, or with a shape.
 */
int as_memory_table_make(const struct as_report_request *q, const struct as_style *style,
			 struct as_buf *out, struct as_error *err);
/* Two lines: half of the blocks are of at most so many bytes, half lived at most so long. */
void as_memory_shape(const struct as_model *m, const struct as_style *style,
		     struct as_buf *out);
/* Blocks that were freed by another thread than the one that allocated them, a pair of threads a line, the
 * most first; none: nothing is written. */
void as_memory_flows_text(const struct as_model *m, const struct as_style *style,
			  struct as_buf *out);
void as_memory_flows_json(const struct as_model *m, struct as_json *j);
/* "16–31 B", "2–3 µs", by what is binned. */
void as_memory_bin(enum as_heap_bins_of of, unsigned bin, struct as_buf *out);
struct as_heap_chain;
/* "Vec::with_capacity(4,096)", "reserve 64.0 KiB at once"; "" where nothing is to be gained. */
void as_memory_advice(const struct as_model *m, const struct as_heap_chain *c,
		      struct as_buf *out);
/* An amount as a whole number; what a damaged session may claim is cut. */
uint64_t as_memory_whole(double amount);
/* "4.2 MiB" or "1,234", by the model's measure. */
void as_memory_amount(const struct as_model *m, double amount, struct as_buf *out);

#endif
