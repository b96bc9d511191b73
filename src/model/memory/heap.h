/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sessions of memory: what the HEAP records say (session/records.def), and measures.
 *
 * A session may have CPU samples beside (assay record --heap); it is one of time then, until a measure of
 * memory is asked for.
 *
 * A row is a stack of a thread with all its figures. A *measure* chooses one of them; the model's
 * samples are then the rows, one each, with that figure as their weight, so that profiles, selections
 * and everything made of them answer in it. Figures are exact: shares have no interval.
 *
 *	r = as_model_load(path, &m, err);		a session of memory: m->measure is PEAK
 *	r = as_model_measure(m, AS_MEASURE_LIVE, true, err);
 *
 * Folding: what stands between a function of the program and the allocator (alloc::, RawVec,
 * __rustc::, operator new, malloc itself) is taken off the inner end of each stack, as far as the first
 * function that is none of these. Stacks that are nothing else stay as they are.
 */
#ifndef AS_MODEL_HEAP_H
#define AS_MODEL_HEAP_H

#include "base/mem.h"
#include "model/memory/leaks.h"
#include "session/session.h"

enum as_measure {
	AS_MEASURE_TIME, /* samples, of a CPU profile */
	AS_MEASURE_ALLOCS,
	AS_MEASURE_BYTES,
	AS_MEASURE_LIVE,
	AS_MEASURE_PEAK,
	AS_MEASURE_CHURN,
	AS_MEASURE_GROWTH,
	AS_MEASURE_LEAKED,
	AS_MEASURE_MAPPED,
	AS_MEASURE_ALLOC_TIME, /* of a CPU profile what allocators took: alloc_time.h */
	AS_MEASURE_COUNT_
};
/* For an option's choices, in the order of the enum. */
#define AS_MEASURE_NAMES "time|allocs|bytes|live|peak|churn|growth|leaked|mapped|alloc-time"

/* What a row of a profile can tell beside the measure that was asked for. */
enum as_heap_value {
	AS_HEAP_ALLOCS,
	AS_HEAP_BYTES,
	AS_HEAP_FREES,
	AS_HEAP_LIVE_BLOCKS,
	AS_HEAP_LIVE_BYTES,
	AS_HEAP_PEAK_BLOCKS,
	AS_HEAP_PEAK_BYTES,
	AS_HEAP_CHURN_BLOCKS,
	AS_HEAP_GROWTH_BYTES, /* negative ones count as 0 */
	AS_HEAP_REALLOCS,
	AS_HEAP_COPIED_BYTES,
	AS_HEAP_LEAKED_BYTES,
	AS_HEAP_NEW_NS, /* of CPU time, in the measure ALLOC_TIME; by enum as_alloc_kind */
	AS_HEAP_REALLOC_NS,
	AS_HEAP_FREE_NS,
	AS_HEAP_FAULT_NS,
	AS_HEAP_VALUES
};

struct as_m_heap_row {
	struct as_rec_heap_stack r; /* lists are the model's */
	uint32_t stack, folded;     /* AS_NONE: no frames */
};
struct as_m_heap_layer {
	uint32_t process, module; /* module AS_NONE: unknown */
	const char *layer, *function;
	uint64_t events;
};
struct as_m_heap_mark {
	const char *name;
	struct as_rec_heap_mark r;
};

struct as_m_heap {
	bool is;       /* the session is of memory */
	bool by_first; /* see as_model_grown_first */
	struct as_rec_heap info;
	AS_VEC(struct as_m_heap_row) rows;
	AS_VEC(struct as_rec_heap_process) processes;
	AS_VEC(struct as_m_heap_layer) layers;
	AS_VEC(struct as_rec_heap_time) times;
	AS_VEC(struct as_rec_heap_flow) flows;
	AS_VEC(struct as_m_heap_mark) marks;
	struct as_m_look look;
	/* LIVE at a mark instead of at the end, and how the mark is called; NULL: at the end. */
	const char *at;
	uint64_t at_ns; /* when, as marks have it; 0: at the start */
	/* Of samples made for a measure: the row, and the weight, which may be more than 32 bits. */
	uint32_t *row_of;
	uint64_t *weight;
};

struct as_model;
/*
 * AS_E_USAGE: the session has nothing of it (no memory, or no samples, or leaks were not looked
 * for). Profiles made before keep their figures but must not be asked for more.
 */
int as_model_measure(struct as_model *m, enum as_measure measure, bool fold,
		     struct as_error *err);
/*
 * Blocks that realloc changed count, in all figures, for the stack and the thread that made them instead
 * of those that changed them last. Before the measure is chosen; for good. What was allocated before it
 * was recorded, and with sampling what was not chosen until it grew, stays where it is.
 */
void as_model_grown_first(struct as_model *m);
/*
 * The measure LIVE as it was at a mark: "NAME", of each process the first mark of that name, or
 * "NAME#2" the second, and so on; "" the start of the run, when nothing was there. AS_E_NOTFOUND with
 * the names there are; AS_E_USAGE as above.
 */
int as_model_measure_at(struct as_model *m, const char *mark, bool fold, struct as_error *err);
/* What a mark's name and number mean: that mark of each process that has it. */
struct as_heap_moment {
	const char *name; /* the model's */
	uint64_t number;  /* from 1 */
	uint64_t time_ns; /* the earliest of them */
};
struct as_heap_moments {
	AS_VEC(struct as_heap_moment) v; /* in the order in which they stand in the session */
	uint32_t *of_mark;               /* per heap.marks: which moment */
};
void as_heap_moments_make(const struct as_model *m, struct as_heap_moments *ret);
void as_heap_moments_clear(struct as_heap_moments *ms);
/* "NAME" or "NAME#2" as above; AS_E_NOTFOUND with the names there are. */
int as_heap_moments_find(const struct as_heap_moments *ms, const char *mark,
			 uint32_t *ret_moment, struct as_error *err);
/* AS_OK when as_model_measure would succeed; else what it would say. */
int as_model_has_measure(const struct as_model *m, enum as_measure measure,
			 struct as_error *err);
const char *as_measure_name(enum as_measure measure);
bool as_measure_is_bytes(enum as_measure measure); /* else a count */
/* Sums over the processes. */
void as_model_heap_sum(const struct as_model *m, struct as_rec_heap_process *ret);
/* CPU time, in seconds; NaN: not known. In the program assay's part is at least so much, by calls that were
 * timed: the way into it, and what the caches of the program lose by it, is not in it. */
struct as_heap_own {
	double in_program_s, program_s;
	double slowdown; /* program_s over what it would be without that, less 1: at least */
};
void as_model_heap_own(const struct as_model *m, struct as_heap_own *ret);
struct as_selection;
/* Per group of a selection AS_HEAP_VALUES figures, of the rows it stands for. Caller frees. */
uint64_t *as_heap_group_values(const struct as_selection *s);
struct as_json;
/* The trust object of a session of memory (docs/formats/report-json.md). */
/* An array: each process that had memory, with a trust object of its own. */
void as_heap_processes_json(const struct as_model *m, const char *key, struct as_json *j);
void as_heap_trust_json(const struct as_model *m, const char *key, struct as_json *j);

#endif
