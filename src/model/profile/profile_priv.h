/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How a profile is made.
 *
 *	filter.c	what the query keeps: samples by thread, time, module; stacks by focus,
 *			ignore; frames by hide, kernel, inlining
 *	keys.c		what a frame counts as under the query's `by`, and that key's name
 *	ktree.c		stacks as a tree of keys: distinct addresses of one function are one node
 *	shape.c		that tree turned: inverted, callers, callees
 *	shares.c	weights per node and time block -> intervals; the only loops over samples
 *	rows.c, nodes.c	the answer's rows and nodes
 *	annotate.c	another question, with the same filters: one function by line and address
 *	profile.c	puts them in order
 *
 * Each distinct stack is walked once; each sample costs a few table look-ups; each time block
 * costs by the distinct nodes it touches. No function recurses: depth is the input's.
 */
#ifndef AS_MODEL_PROFILE_PRIV_H
#define AS_MODEL_PROFILE_PRIV_H

#include "model/model.h"
#include "stats/blocks.h"

/* A tree of keys. Node 0 is "all"; a node's parent has a smaller index. */
struct as_knode {
	uint32_t parent, key;
	double weight;    /* self while it is built; with everything below after as_ktree_sum */
	uint64_t samples; /* likewise */
	double self_weight;
	uint64_t self_samples;
};
struct as_ktree {
	AS_VEC(struct as_knode) nodes;
	uint64_t *slot; /* (parent, key) -> node: hash's high half << 32 | node + 1; 0 empty */
	size_t nslots;  /* a power of two, more than twice the nodes */
};
void as_ktree_init(struct as_ktree *t, size_t expected_nodes); /* only a hint */
void as_ktree_clear(struct as_ktree *t);
uint32_t as_ktree_child(struct as_ktree *t, uint32_t parent, uint32_t key);
/* Self figures of all nodes -> totals. */
void as_ktree_sum(struct as_ktree *t);
/* ret[node] = 1 when no node above it has its key (recursion counts once). nkeys > any key. */
void as_ktree_outermost(const struct as_ktree *t, size_t nkeys, uint8_t *ret);

struct as_label { /* a key of LINE, FILE, CRATE, or what stands in for one */
	const char *name, *file;
	uint32_t function, line; /* function AS_NONE: no single one */
};

/* The public profile and what its names need. */
struct as_profile_priv {
	struct as_profile pub; /* first */
	uint32_t nplain;       /* keys below: indexes by `by`; others: labels or functions */
	AS_VEC(struct as_label) labels;
	struct as_map64 label_ids;
	const char **module_labels; /* "[libc.so.6]" per module, made when needed */
	uint32_t *place_keys;       /* per place; AS_NONE: not yet asked. NULL: not used */
};

enum as_match { AS_MATCH_FOCUS = 1, AS_MATCH_IGNORE = 2, AS_MATCH_HIDE = 4, AS_MATCH_OF = 8 };

/* A distinct stack that samples stand on. They are few beside samples and nodes, so that what is
 * looked up per sample stays in the cache. */
struct as_end {
	uint32_t node;
	uint64_t samples;
	double weight;
};

struct as_build {
	struct as_profile_priv *p;
	const struct as_model *m;
	const struct as_query *q;
	/* filter.c */
	size_t lo, hi;      /* samples of the time range */
	uint8_t *functions; /* enum as_match per function */
	uint8_t *threads;   /* 1: in scope; NULL: all are */
	uint8_t *stacks;    /* 1: dropped by focus, ignore or module; NULL: none are */
	/* ktree.c */
	struct as_ktree tree;
	uint32_t *node_of_stack;         /* for stacks that end in group 0 */
	uint32_t *end_of_stack;          /* likewise */
	struct as_map64 node_of_grouped; /* group << 32 | stack */
	struct as_map64 end_of_grouped;
	AS_VEC(uint32_t) path;
	/* shares.c */
	struct as_blocks blocks;
	AS_VEC(struct as_end) ends;
	uint32_t *end; /* of sample lo + i; AS_NONE: dropped; AS_OUT: out of scope */
};
#define AS_OUT (AS_NONE - 1)

int as_filter_make(struct as_build *b, struct as_error *err);
void as_filter_clear(struct as_build *b);
static inline bool as_filter_in_scope(const struct as_build *b, const struct as_m_sample *s)
{
	return !b->threads || b->threads[s->thread];
}
/* Of a sample of the time range. Without frames it cannot match focus or module, nor ignore. */
static inline bool as_filter_keeps(const struct as_build *b, const struct as_m_sample *s)
{
	if (!as_filter_in_scope(b, s))
		return false;
	if (b->m->measure == AS_MEASURE_ALLOC_TIME && !as_model_alloc_kind(b->m, s->stack))
		return false;
	if (!b->stacks)
		return true;
	if (s->stack == AS_NONE)
		return !b->q->focus && !b->q->module;
	return !b->stacks[s->stack];
}
static inline bool as_filter_hides(const struct as_build *b, const struct as_m_place *p)
{
	return b->functions[p->function] & AS_MATCH_HIDE;
}

/* The places of f that count, innermost first. */
static inline const struct as_m_place *as_filter_places(const struct as_build *b,
							const struct as_m_frame *f,
							uint32_t *ret_n)
{
	const struct as_m_place *p = &b->m->places.v[f->chain];

	*ret_n = f->nchain;
	if (b->q->no_kernel && (f->flags & AS_FRAME_KERNEL)) {
		*ret_n = 0;
	} else if (b->q->no_inline) {
		p += f->nchain - 1;
		*ret_n = 1;
	}
	return p;
}

/* Blocks for so many samples of a session, run by run where it holds several. */
void as_blocks_of_model(struct as_blocks *b, const struct as_model *m,
			const struct as_run_span *scope, uint64_t n_samples);

uint32_t as_key_of(struct as_build *b, const struct as_m_frame *f, const struct as_m_place *p);
uint32_t as_key_alias(const struct as_build *b, uint32_t key); /* query.alias applied */
uint32_t as_key_of_marker(struct as_build *b, uint32_t function);
size_t as_key_count(const struct as_profile_priv *p);
bool as_key_is_marker(const struct as_profile_priv *p, uint32_t key);
/* Adjacent frames of one key are one frame: a file calling itself is no call. */
bool as_by_joins(enum as_by by);
bool as_by_groups(enum as_by by); /* THREAD, PROCESS */

/* Index into ends for a sample; new ends get their path in the tree. */
uint32_t as_ktree_end(struct as_build *b, const struct as_m_sample *s);

/* A turned tree and, per node of b->tree, the node where samples that stand there go (AS_NONE:
 * they do not appear). For TREE, tree is b->tree itself and leaf is NULL. */
struct as_shaped {
	struct as_ktree own;
	struct as_ktree *tree;
	uint32_t *leaf;
};
void as_shape_make(struct as_build *b, struct as_shaped *ret);
void as_shape_clear(struct as_shaped *s);

void as_scan_samples(struct as_build *b);
/* Rows of shares over the nodes of a tree: total_row[node], self_row[node] index rows or are
 * AS_NONE; self_row may be NULL. leaf as in struct as_shaped. The rows' n_samples counts blocks. */
struct as_pass {
	const struct as_ktree *tree;
	const uint32_t *leaf, *self_row, *total_row;
	struct as_share_row *rows;
	size_t nrows;
};
void as_pass_run(const struct as_build *b, const struct as_pass *p);

/* memory/heap.c: the figures of each row of a pass over a session of memory, or the CPU time by kind. */
void as_heap_values(const struct as_build *b, const struct as_pass *p, uint64_t *values);
/* memory/alloc_time.c: in the measure ALLOC_TIME what was allocated there. */
void as_alloc_values(struct as_build *b, const struct as_pass *p, uint64_t *values);

void as_rows_make(struct as_build *b);
void as_rows_next_to(struct as_build *b, const struct as_shaped *s); /* CALLERS, CALLEES */
void as_nodes_make(struct as_build *b, const struct as_shaped *s);

#endif
