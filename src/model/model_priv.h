/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Inside the model: what load.c hands to names.c. */
#ifndef AS_MODEL_MODEL_PRIV_H
#define AS_MODEL_MODEL_PRIV_H

#include "model/model.h"

/* Completes a loaded model: one function per meaning (cold parts and repeated records join), a
 * chain of at least one place for every frame, and the markers. */
void as_model_complete(struct as_model *m);

/*
 * What a reader holds while records arrive. text copies into the model's arena.
 */
struct as_loader {
	struct as_model *m;
	struct as_error *err;
	uint64_t used_bytes, budget_bytes;
	bool sorted;
};
int as_loader_charge(struct as_loader *l, uint64_t bytes);
int as_loader_damaged(struct as_loader *l);
const char *as_loader_string(const struct as_loader *l, uint64_t id);

/* load_code.c: SOURCE, CODE, CODE_LINES, CODE_NAMES. ctx is the loader. */
int as_load_source(void *ctx, const struct as_rec_source *r);
int as_load_code(void *ctx, const struct as_rec_code *r);
int as_load_code_lines(void *ctx, const struct as_rec_code_lines *r);
int as_load_code_names(void *ctx, const struct as_rec_code_names *r);
/* losses.c: the LOST records in m->losses and m->ticks tell of the same samples; joins them. */
void as_model_order_losses(struct as_model *m);
/* memory/load.c: HEAP… */
void as_load_heap(struct as_record_sink *sink);
void as_heap_clear(struct as_model *m);
/* memory/leaks.c: HEAP_LEAKS …; after as_heap_fold it is known what is the runtime's. */
void as_load_leaks(struct as_record_sink *sink);
void as_leaks_complete(struct as_model *m);
void as_leaks_clear_model(struct as_m_look *look);
/* memory/heap.c: after as_model_complete: a session of memory is folded and gets its first measure. */
void as_heap_complete(struct as_model *m);
/* memory/heap.c: a row's figures onto AS_HEAP_VALUES of them. */
void as_heap_add_values(const struct as_model *m, uint32_t row, uint64_t *to);
/* memory/fold.c: rows' folded stacks. */
void as_heap_fold(struct as_model *m);
/* Where a name ends that begins at p: at ',' or `end` outside brackets; names hold <T, U> and (A, B), and
 * "->" closes nothing. */
size_t as_heap_name_length(const char *p, char end);
/* Whether it stands between a program and its allocator. */
bool as_heap_is_plumbing(const struct as_m_function *f);
/* time.c: samples in assay's own code are taken out, and its frames out of stacks. */
void as_time_complete(struct as_model *m);
void as_time_clear(struct as_model *m);
/* The samples as they were taken, or those below an allocator with their stacks folded. */
void as_time_restore(struct as_model *m);
void as_time_of_allocators(struct as_model *m, bool fold);
/* memory/alloc_kind.c: m->time.kind and m->time.folded, once. */
void as_alloc_find(struct as_model *m);
struct as_json;
void as_notes_json(const struct as_model *m, struct as_json *j); /* trust.c */
/* Sorts them and drops what overlaps. */
void as_model_order_code(struct as_model *m);

#endif
