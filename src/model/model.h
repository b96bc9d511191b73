/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A session in memory, and questions asked of it. as_model holds what the records say, as columns
 * and dense ids; as_profile is the answer to one question (as_query): rows with self and total
 * weights, sample counts, intervals, and the call tree they come from.
 *
 * Inlined functions are frames of their own. Shares are fractions of the weight of all samples of
 * the query's threads and time range (before focus/ignore), so that rows of different questions
 * compare. Recursion counts once in totals.
 *
 * Cost: loading is linear in samples (about 150 ns each) with memory of 24 bytes a sample plus the
 * stack tree; a profile costs by distinct stacks and clusters, not by samples times depth.
 */
#ifndef AS_MODEL_MODEL_H
#define AS_MODEL_MODEL_H

#include <regex.h>
#include "abi/arch.h"
#include "base/map.h"
#include "base/mem.h"
#include "model/memory/heap.h"
#include "session/session.h"

#define AS_NONE UINT32_MAX

struct as_m_module {
	const char *path, *name; /* name: last component, "[vdso]", "[kernel]" */
	const char *debug_path;
	uint8_t build_id[20];
	uint8_t build_id_len;
	bool own; /* assay's code in the program */
	enum as_module_kind kind;
};
struct as_m_process {
	uint32_t pid, parent;      /* parent: process index or AS_NONE */
	const char *name;          /* last name of its main thread */
	uint64_t start_ns, end_ns; /* end 0: still running at the end */
};
struct as_m_thread {
	uint32_t tid, process;
	const char *name; /* last name it had */
	uint64_t start_ns, end_ns;
};
struct as_m_map { /* a module's executable segment in a process */
	uint64_t time_ns, avma, size_bytes, off;
	uint64_t svma; /* of its first byte, when knows_svma */
	uint32_t process, module;
	bool knows_svma;
};
enum as_function_flags {
	AS_FUNCTION_SYNTHETIC = 1, /* no symbol: "module+0x1234", "[unknown 0x…]", "[jit]" */
	AS_FUNCTION_COLD = 2,
	AS_FUNCTION_ALIASES = 4,
	AS_FUNCTION_MARKER = 8, /* no code: "[truncated: …]", "[no user stack]"; made at load */
};
struct as_m_function {
	uint32_t module; /* AS_NONE: unknown */
	const char *linkage, *full, *brief, *crate, *file;
	const char *
		generic; /* last component with what "<T,A>" in full stands for; "" not known */
	uint32_t line;
	uint8_t lang, flags; /* enum as_lang, enum as_function_flags */
	uint32_t same;       /* the function that stands for this one: places refer to that */
};
struct as_m_place { /* one entry of a frame's inline chain */
	/* index into functions; always valid: unresolved frames get a function */
	uint32_t function;
	uint32_t line, column;
	const char *file;
	/* of the function's own instance: records of one name have become one. NULL: none */
	const char *generic;
	bool inlined, line_from_call;
};
struct as_m_frame {
	uint32_t module; /* AS_NONE: unknown memory */
	uint32_t flags;  /* AS_FRAME_* */
	uint64_t addr;
	uint32_t chain,
		nchain; /* places.v[chain … +nchain], innermost first; nchain >= 1 after load */
};
struct as_m_stack {
	uint32_t parent,
		frame; /* parent AS_NONE: first frame of the thread. parent < own index */
};
struct as_m_sample {
	uint64_t time_ns;
	uint32_t thread, stack; /* stack AS_NONE: no frames */
	uint32_t weight;        /* saturates; as_model_weight where it may be memory */
	uint16_t cpu;
	uint16_t end; /* AS_SAMPLE_* and enum as_stack_end */
};
struct as_m_tick {
	uint64_t time_ns;
	uint32_t cpu;
	uint64_t taken, delivered, lost_kernel, lost_queue, filtered, throttled;
};
struct as_m_loss { /* count samples of a CPU, lost in [from_ns, to_ns]; from == to: just then */
	uint64_t from_ns, to_ns, count;
	uint32_t cpu;
};
struct as_m_note {
	int level;
	const char *about, *text, *remedy;
};

/* What was kept of hot functions; sorted by (module, svma). */
struct as_m_code {
	uint32_t module, function; /* function: the physical one; AS_NONE unknown */
	uint64_t svma;
	uint32_t size_bytes;
	enum as_arch arch;
	const uint8_t *bytes;
};
struct as_m_code_range { /* [svma, svma + size) stands for one chain; apart from each other */
	uint32_t module, size_bytes;
	uint64_t svma;
	/* code_places.v[place … +nplaces], innermost first; nplaces may be 0 */
	uint32_t place, nplaces;
};
struct as_m_code_name { /* what code refers to */
	uint32_t module;
	uint64_t svma;
	const char *name;
};
struct as_m_source {      /* some lines of a file; several records may be about one file */
	const char *file; /* as places have it */
	const char *found;
	uint32_t first, total; /* number of the first line; lines of the whole file */
	const char *text;      /* not NUL-terminated */
	size_t size_bytes;
};

struct as_m_trial { /* one of several runs in a session; sorted, apart from each other */
	uint64_t start_ns, end_ns, cpu_ns;
	uint64_t exit; /* wait status; UINT64_MAX: unknown */
};

struct as_m_info {
	const char *key, *value;
};

struct as_m_time { /* of a session with CPU samples */
	bool is;
	/* As they were taken, while m->samples are what another measure makes of them or of memory. */
	AS_VEC(struct as_m_sample) samples;
	/* Taken while assay's own code ran in the program (record --heap): in no profile. */
	uint64_t own_samples, own_weight;
	/* For ALLOC_TIME, once it was asked for: per stack enum as_alloc_kind, and the stack that stands
	 * for it. Those from nkinds on came later: none. */
	uint8_t *kind;
	uint32_t *folded;
	size_t nkinds;
};

struct as_model {
	struct as_arena arena; /* owns all strings */
	AS_VEC(const char *) strings;
	AS_VEC(struct as_m_module) modules;
	AS_VEC(struct as_m_process) processes;
	AS_VEC(struct as_m_thread) threads;
	AS_VEC(struct as_m_map) maps; /* in the order they were seen */
	AS_VEC(struct as_m_function) functions;
	AS_VEC(struct as_m_place) places;
	AS_VEC(struct as_m_frame) frames;
	AS_VEC(struct as_m_stack) stacks;
	AS_VEC(struct as_m_sample) samples; /* sorted by time */
	AS_VEC(struct as_m_tick) ticks;
	AS_VEC(struct as_m_loss) losses; /* by from_ns; each sample once, of TICK and LOST */
	AS_VEC(struct as_m_note) notes;
	AS_VEC(const char *) args;
	AS_VEC(struct as_m_info) info;
	AS_VEC(struct as_m_code) codes;
	AS_VEC(struct as_m_code_range) code_ranges;
	AS_VEC(struct as_m_place) code_places;
	AS_VEC(struct as_m_code_name) code_names;
	AS_VEC(struct as_m_source) sources; /* by file (as the text sorts), then first */
	AS_VEC(struct as_m_trial) trials;   /* none: a session of one run */
	struct as_rec_overhead overhead;    /* pairs 0: not measured */
	struct as_m_heap heap;
	struct as_m_time time;
	enum as_measure measure; /* what samples weigh; PEAK for sessions of memory alone */
	/* What stands above the first frame of stacks that end so; AS_NONE: nothing (ROOT).
	 * Samples without any frame stand at [NOSTACK] when their end is ROOT. */
	uint32_t end_function[AS_END_COUNT_];
	struct as_rec_recording recording;
	struct as_rec_summary summary;
	bool has_summary;
	uint64_t lost_kernel, lost_queue, lost_side; /* sums of LOST records */
	uint64_t damaged; /* records that referred to nothing and were left out */
	struct as_session_health health;
	const char *path;
};

int as_model_load(const char *path, struct as_model **ret, struct as_error *err);
int as_model_load_mem(const void *p, size_t n, struct as_model **ret, struct as_error *err);
void as_model_free(struct as_model *m);
/* Whether a query for `thread` keeps this one: part of its name, its tid, or its pid. */
bool as_model_thread_matches(const struct as_model *m, uint32_t thread, const char *want);
/* Whether samples weigh what was counted of memory; else CPU time, which was sampled. */
static inline bool as_model_is_counted(const struct as_model *m)
{
	return m->measure != AS_MEASURE_TIME && m->measure != AS_MEASURE_ALLOC_TIME;
}
/* The weight of sample i. */
static inline uint64_t as_model_weight(const struct as_model *m, size_t i)
{
	return as_model_is_counted(m) ? m->heap.weight[i] : m->samples.v[i].weight;
}
/* In the measure ALLOC_TIME: what a sample on that stack is of (enum as_alloc_kind). */
static inline unsigned as_model_alloc_kind(const struct as_model *m, uint32_t stack)
{
	return stack < m->time.nkinds ? m->time.kind[stack] : 0;
}
const char *as_model_info(const struct as_model *m, const char *key); /* "" when absent */

/* The figures of the trust block, for the whole session. */
struct as_trust {
	const char *engine, *event;
	double rate_hz, effective_rate_hz;
	uint64_t samples, lost, throttled;
	uint64_t own;                           /* more samples, of assay's own code in it */
	uint64_t complete, repaired, truncated; /* samples */
	uint64_t by_reason[AS_END_COUNT_];      /* truncated samples only */
	uint64_t frames, frames_unsymbolized;   /* distinct user frames */
	double weight_unsymbolized;             /* share of weight whose leaf has no name */
	double explained_cpu; /* sum of weights / CPU time; NaN when not comparable */
	double cpu_s, duration_s, recorder_cpu_s; /* NaN when unknown */
	double kernel_cost_s;
	bool interrupted; /* no summary or no end: the recorder died, or the file was cut */
};
void as_model_trust(const struct as_model *m, struct as_trust *ret);
struct as_json;
/* The same and the notes, as an object (docs/formats/report-json.md, "trust"). */
void as_trust_json(const struct as_model *m, const char *key, struct as_json *j);

/*
 * What the answer holds, by shape. Frames stand outermost first in the tree that all shapes share:
 * [thread, when by is THREAD or PROCESS] -> [marker, when the stack is truncated] -> frames.
 *
 *	FLAT		rows: every key of any kept sample, by self. nodes: none
 *	TREE		nodes: the tree, callers above callees. rows: as FLAT, by total
 *	INVERTED	nodes: leaves at the top, their callers below. rows: as FLAT, by self
 *	CALLERS		nodes: "all" -> each function that `of` matches -> its callers, …
 *			rows: the functions next to `of`, by total (their share through `of`)
 *	CALLEES		the same downwards
 *
 * CALLERS and CALLEES look at the outermost matching frame of each sample, so nothing counts twice.
 * Keys: FUNCTION index into functions; THREAD, PROCESS index into threads, processes, and with
 * TREE or INVERTED the functions below have that many added; MODULE index into modules; the rest
 * are the profile's own. as_profile_name resolves them all.
 */
enum as_by {
	AS_BY_FUNCTION,
	AS_BY_LINE,
	AS_BY_FILE,
	AS_BY_MODULE,
	AS_BY_CRATE,
	AS_BY_THREAD,
	AS_BY_PROCESS
};
enum as_shape {
	AS_SHAPE_FLAT,
	AS_SHAPE_TREE,
	AS_SHAPE_INVERTED,
	AS_SHAPE_CALLERS,
	AS_SHAPE_CALLEES
};

struct as_query {
	enum as_by by;
	enum as_shape shape;
	/* CALLERS/CALLEES: function, matched by exact brief/full/linkage name, else as substring */
	const char *of;
	/* extended regular expressions on full and brief names; NULL: none */
	const char *focus, *ignore, *hide;
	const char *thread; /* substring of the name, or tid or pid; NULL: all */
	/* substring of the path; keeps samples whose innermost frame is in it */
	const char *module;
	uint64_t from_ns, to_ns; /* relative to the start; 0, 0: all */
	bool no_inline;          /* frames show their physical function only */
	bool no_kernel;
	bool nodes_only;  /* TREE, INVERTED: leave rows empty, which saves most of the time */
	double min_share; /* trees: smaller nodes are folded into their parent's rest */
	/* Keys that count as another one: alias[key], for keys below naliases; NULL: none. By a
	 * profile of the same model, `by` and filters (keys of labels are made in its order). */
	const uint32_t *alias;
	uint32_t naliases;
	const uint8_t
		*hidden; /* per function of the model, 1: as if `hide` matched; NULL: none */
};

struct as_share {
	double value, low, high; /* fractions of all samples' weight */
	double deff;             /* design effect >= 1 */
	uint64_t samples;
	uint32_t runs; /* of the session's trials, those where there are samples; 0: one run */
};

struct as_row {
	uint32_t key; /* function/place/module/thread … index by query.by */
	const char *name, *full_name, *module, *file, *crate;
	uint32_t line;
	struct as_share self, total;
	bool tied_with_next; /* this row and the next cannot be ranked apart by self (flat) */
	bool unsymbolized;
	/* Only one of the session's trials has it, though it has more than one sample: what that
	 * run did, and maybe not what the program does. */
	bool one_run;
	/* Measures of memory and ALLOC_TIME, not next to a function: AS_HEAP_VALUES figures each */
	const uint64_t *self_values, *total_values;
};

struct as_node { /* call tree; nodes.v[0] is the root ("all") */
	uint32_t key, parent, first_child,
		next_sibling; /* AS_NONE ends; children by weight, heaviest first */
	uint32_t depth;
	double self, total; /* weight */
	uint64_t self_samples, total_samples;
	double low,
		high; /* interval of total as a share; NaN where not computed (tiny nodes) */
};

struct as_profile {
	struct as_query query;
	double weight;      /* of all samples in scope: the denominator */
	double kept_weight; /* after focus/ignore */
	uint64_t samples, kept_samples;
	/* by self, heaviest first (flat); by total for other shapes */
	AS_VEC(struct as_row)
	rows;
	AS_VEC(struct as_node) nodes; /* trees, callers, callees */
	struct as_arena arena;        /* names made for rows */
	const struct as_model *model; /* must outlive the profile */
};

/* AS_E_USAGE for a bad regular expression, AS_E_NOTFOUND with near names for an unknown function. */
int as_profile_make(const struct as_model *m, const struct as_query *q, struct as_profile **ret,
		    struct as_error *err);
void as_profile_free(struct as_profile *p);
/* Name and description of a node's key under the profile's `by`. */
void as_profile_name(const struct as_profile *p, uint32_t key, struct as_row *ret);

#endif
