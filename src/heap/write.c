/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "heap/write.h"

#include <stdlib.h>

#include "heap/write_priv.h"

void as_heap_writer_init(struct as_heap_writer *o, struct as_session_writer *w,
			 const struct as_heap_stacks *stacks)
{
	*o = (struct as_heap_writer){.w = w, .stacks = stacks};
}

void as_heap_writer_clear(struct as_heap_writer *o)
{
	as_vec_clear(&o->sizes);
	as_vec_clear(&o->ages);
	as_vec_clear(&o->times);
	as_vec_clear(&o->last);
}

void as_heap_write_stacks(struct as_heap_writer *o)
{
	const struct as_heap_stacks *s = o->stacks;

	for (; o->nframes < s->frames.n; o->nframes++) {
		const struct as_heap_frame *f = &s->frames.v[o->nframes];

		as_write_frame(o->w, &(struct as_rec_frame){.id = o->first_frame + o->nframes,
							    .module = (uint64_t)(f->module + 1),
							    .addr = f->addr,
							    .flags = f->flags});
	}
	for (; o->nstacks < s->stacks.n; o->nstacks++) {
		const struct as_heap_stack *k = &s->stacks.v[o->nstacks];

		as_write_stack(o->w, &(struct as_rec_stack){
					     .id = o->first_stack + o->nstacks,
					     .parent = k->parent == AS_HEAP_NONE
							       ? 0
							       : o->first_stack + k->parent + 1,
					     .frame = o->first_frame + k->frame});
	}
}

#define LIST(vec) ((struct as_u64s){(vec)->v, (vec)->n})

/* The mask, then the counts. */
#define FILL(vec, h)                                                                           \
	do {                                                                                   \
		(vec)->n = 0;                                                                  \
		if (!(h)->used)                                                                \
			break;                                                                 \
		as_vec_push(vec, (h)->used);                                                   \
		for (uint32_t k_ = 0; k_ < AS_HISTOGRAM_BUCKETS; k_++) {                       \
			if ((h)->used >> k_ & 1)                                               \
				as_vec_push(vec, as_histogram_get(h, k_));                     \
		}                                                                              \
	} while (0)

static uint64_t churn(const struct as_histogram *ages)
{
	uint64_t n = 0;

	for (uint32_t k = 0; k <= as_histogram_bucket(AS_HEAP_CHURN_ALLOCS - 1); k++)
		n += as_histogram_get(ages, k);
	return n;
}

static void set_growth(struct as_heap_writer *o, const struct as_heap_growth *g,
		       struct as_rec_heap_stack *r)
{
	o->last.n = 0;
	if (!g)
		return;
	r->reallocs = g->reallocs;
	r->in_place = g->in_place;
	r->copied_bytes = g->copied_bytes;
	r->chains = g->chains;
	r->first_bytes = g->first_bytes;
	r->ended = g->ended;
	r->last_bytes = g->last_bytes;
	r->last_max_bytes = g->last_max_bytes;
	FILL(&o->last, &g->last);
	r->last = LIST(&o->last);
}

/* With sampling a heap that goes on counts in parts of a block. */
static uint64_t whole(const struct as_heap *h, uint64_t n)
{
	return (n + h->unit / 2) / h->unit;
}

static void make_row_whole(const struct as_heap_writer *o, const struct as_heap *h,
			   struct as_rec_heap_stack *r)
{
	uint64_t *const counts[] = {&r->allocs,       &r->frees,        &r->live_blocks,
				    &r->peak_blocks,  &r->churn_blocks, &r->zero,
				    &r->remote_frees, &r->exit_blocks,  &r->reallocs,
				    &r->in_place,     &r->chains,       &r->ended};
	const struct as_u64s lists[] = {LIST(&o->sizes), LIST(&o->ages), LIST(&o->times),
					LIST(&o->last)};

	if (h->unit == 1)
		return;
	for (size_t i = 0; i < AS_ARRAY_LEN(counts); i++)
		*counts[i] = whole(h, *counts[i]);
	for (size_t i = 0; i < AS_ARRAY_LEN(lists); i++) {
		for (size_t k = 1; k < lists[i].n; k++)
			((uint64_t *)lists[i].v)[k] = whole(h, lists[i].v[k]);
	}
}

static uint64_t half(double variance)
{
	return (uint64_t)(as_heap_half_width(variance) + 0.5);
}

static uint64_t stack_number(const struct as_heap_writer *o, uint32_t stack)
{
	return o->stack_of ? o->stack_of[stack] : (uint64_t)o->first_stack + stack + 1;
}

static uint64_t stack_of(const struct as_heap_writer *o, const struct as_heap_tally *t)
{
	return t->key.stack == AS_HEAP_NO_STACK ? 0 : stack_number(o, t->key.stack);
}

static void write_row(struct as_heap_writer *o, uint32_t process, const uint32_t *row_of,
		      const struct as_heap *h, size_t tally)
{
	const struct as_heap_tally *t = &h->tallies.v[tally];
	const struct as_heap_rare *rare = as_heap_rare_of(h, t);
	struct as_heap_slope slope;
	struct as_rec_heap_stack r = {
		.id = row_of[tally],
		.process = process,
		.stack_rel = stack_of(o, t),
		.origin = t->origin ? (uint32_t)(row_of[t->origin - 1] + 1) : 0,
		.thread = h->threads.v[t->key.thread].number,
		.domain = t->key.domain,
		.end = AS_END_NOSTACK,
		.allocs = t->allocs,
		.bytes = t->bytes,
		.frees = t->frees,
		.freed_bytes = t->freed_bytes,
		.live_blocks = t->live.blocks,
		.live_bytes = t->live.bytes,
		.peak_blocks = t->peak.blocks,
		.peak_bytes = t->peak.bytes,
		.churn_blocks = churn(&t->ages),
		.zero = rare->zero,
		.failed = rare->failed,
		.remote_frees = rare->remote_frees,
		.exit_blocks = rare->at_exit.blocks,
		.exit_bytes = rare->at_exit.bytes,
	};

	if (t->key.stack != AS_HEAP_NO_STACK)
		r.end = o->stacks->stacks.v[t->key.stack].end;
	r.allocs_half = half(rare->allocs_variance);
	r.bytes_half = half(rare->bytes_variance);
	r.live_blocks_half = half(rare->live_blocks_variance);
	r.live_bytes_half = half(rare->live_bytes_variance);
	r.peak_bytes_half = half(rare->peak_bytes_variance);
	as_heap_slope(h, t, &slope);
	r.growth_bytes = (int64_t)slope.bytes;
	r.growth_steps = slope.steps;
	r.growth_rises = slope.rises;
	FILL(&o->sizes, &t->sizes);
	FILL(&o->ages, &t->ages);
	FILL(&o->times, &t->times);
	r.sizes = LIST(&o->sizes);
	r.ages = LIST(&o->ages);
	r.times = LIST(&o->times);
	set_growth(o, as_heap_growth_of(h, t), &r);
	make_row_whole(o, h, &r);
	as_write_heap_stack(o->w, &r);
}

static void write_process(struct as_heap_writer *o, uint32_t process,
			  const struct as_heap_drained *p)
{
	const struct as_heap *h = p->heap;
	const struct as_heap_domain_sum *blocks = &h->sum[AS_HEAP_BLOCKS];
	const struct as_heap_domain_sum *maps = &h->sum[AS_HEAP_MAPPINGS];
	uint64_t unmatched = h->unmatched_frees + h->unmatched_reallocs;
	/* a realloc is told twice, and counted once */
	uint64_t calls = h->events + whole(h, h->reallocs);
	double ns = p->timed_calls ? (double)p->timed_ns / (double)p->timed_calls : 0;

	as_write_heap_process(o->w,
			      &(struct as_rec_heap_process){
				      .process = process,
				      .events = h->events,
				      .dropped = p->dropped,
				      .allocs = whole(h, h->allocs),
				      .reallocs = whole(h, h->reallocs),
				      .frees = whole(h, h->frees),
				      .unmatched_frees = h->unmatched_frees,
				      .unmatched_allocs = h->unmatched_allocs,
				      .unmatched_reallocs = h->unmatched_reallocs,
				      .zero = whole(h, h->zero),
				      .failed = h->failed,
				      .crowded = h->crowded,
				      .complete = p->complete,
				      .cut = p->cut,
				      .holes = p->holes,
				      .live_blocks = whole(h, blocks->live.blocks),
				      .live_bytes = blocks->live.bytes,
				      .peak_blocks = whole(h, blocks->peak.blocks),
				      .peak_bytes = blocks->peak.bytes,
				      .peak_ns = blocks->peak_ns,
				      .mapped_bytes = maps->live.bytes,
				      .mapped_peak_bytes = maps->peak.bytes,
				      .mapped_peak_ns = maps->peak_ns,
				      .allocs_half = half(h->allocs_variance),
				      .live_blocks_half = half(blocks->live.blocks_variance),
				      .live_bytes_half = half(blocks->live.bytes_variance),
				      .peak_bytes_half = half(blocks->peak.bytes_variance),
				      .inherited = h->forked ? unmatched : 0,
				      .own_ns = (uint64_t)(ns * (double)calls),
				      .timed_calls = p->timed_calls,
			      });
}

/* Lists are cut by the codec: one record for each so many stacks. */
static void write_mark(struct as_heap_writer *o, const struct as_heap *h, uint32_t process,
		       const uint32_t *row_of, const struct as_heap_mark *m)
{
	struct as_rec_heap_mark r = {
		.process = process,
		.time_ns = m->time_ns,
		.name = as_session_string(o->w, m->name, strlen(m->name)),
		.live_blocks = whole(h, m->live.blocks),
		.live_bytes = m->live.bytes,
	};

	o->sizes.n = 0;
	as_vec_foreach (a, &m->tallies) {
		if (row_of[a->tally] == AS_HEAP_NONE)
			continue;
		as_vec_push(&o->sizes, row_of[a->tally]);
		as_vec_push(&o->sizes, whole(h, a->live.blocks));
		as_vec_push(&o->sizes, a->live.bytes);
		if (o->sizes.n < 30000)
			continue;
		r.stacks = LIST(&o->sizes);
		as_write_heap_mark(o->w, &r);
		o->sizes.n = 0;
	}
	r.stacks = LIST(&o->sizes);
	as_write_heap_mark(o->w, &r);
}

/* Changes whenever a row does, but for its growth. */
static uint64_t version_of(const struct as_heap *h, const struct as_heap_tally *t)
{
	const struct as_heap_rare *rare = as_heap_rare_of(h, t);
	uint64_t v = as_mix64(t->allocs + 1);

	v = as_mix64(v ^ t->frees) ^ as_mix64(rare->failed + rare->remote_frees);
	return as_mix64(v ^ t->peak.bytes) ^ as_mix64(t->live.bytes ^ t->bytes << 20);
}

/* A stack whose blocks all have rows that say who made them has none of its own. */
static bool says_nothing(const struct as_heap *h, const struct as_heap_tally *t)
{
	return !t->allocs && !t->frees && !as_heap_rare_of(h, t)->failed && !t->growth &&
	       !t->live.blocks && !t->peak.blocks;
}

struct place {
	uint64_t key;
	uint32_t tally;
};

static int by_key(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->key != y->key ? (x->key > y->key) - (x->key < y->key)
				: (x->tally > y->tally) - (x->tally < y->tally);
}

/* Tallies that are new get their rows in the order of their stacks, which takes half of the room; those
 * that others name as their origin come first. */
static void add_rows(struct as_heap_writer *o, const struct as_heap *h,
		     struct as_heap_written *so_far)
{
	AS_VEC(struct place) fresh = {0};

	while (so_far->row_of.n < h->tallies.n)
		as_vec_push(&so_far->row_of, AS_HEAP_NONE);
	for (uint32_t i = 0; i < h->tallies.n; i++) {
		const struct as_heap_tally *t = &h->tallies.v[i];

		if (so_far->row_of.v[i] == AS_HEAP_NONE && !says_nothing(h, t))
			as_vec_push(&fresh, (struct place){(uint64_t)(t->origin != 0) << 63 |
								   stack_of(o, t) << 24 |
								   (t->key.thread & 0xffffff),
							   i});
	}
	if (fresh.n)
		qsort(fresh.v, fresh.n, sizeof *fresh.v, by_key);
	as_vec_foreach (f, &fresh) {
		so_far->row_of.v[f->tally] = o->nrows++;
		as_vec_push(&so_far->rows, (struct as_heap_written_row){f->tally, 0});
	}
	as_vec_clear(&fresh);
}

static void write_rows(struct as_heap_writer *o, uint32_t process, const struct as_heap *h,
		       struct as_heap_written *so_far, bool last)
{
	add_rows(o, h, so_far);
	as_vec_foreach (row, &so_far->rows) {
		uint64_t version = version_of(h, &h->tallies.v[row->tally]);

		if (row->version == version && !last)
			continue;
		row->version = version;
		write_row(o, process, so_far->row_of.v, h, row->tally);
	}
}

static void write_times(struct as_heap_writer *o, uint32_t process, const struct as_heap *h,
			struct as_heap_written *so_far)
{
	as_vec_foreach (row, &h->timeline) {
		if (so_far->time_ns && row->time_ns <= so_far->time_ns)
			continue;
		so_far->time_ns = row->time_ns;
		as_write_heap_time(o->w, &(struct as_rec_heap_time){
						 .process = process,
						 .time_ns = row->time_ns,
						 .live_blocks = whole(h, row->live.blocks),
						 .live_bytes = row->live.bytes,
						 .high_bytes = row->high_bytes,
						 .mapped_bytes = row->mapped_bytes,
						 .resident_bytes = row->resident_bytes,
					 });
	}
}

void as_heap_write_so_far(struct as_heap_writer *o, uint32_t process,
			  const struct as_heap_drained *p, struct as_heap_written *so_far,
			  bool last)
{
	const struct as_heap *h = p->heap;

	write_process(o, process, p);
	write_rows(o, process, h, so_far, last);
	write_times(o, process, h, so_far);
	for (; so_far->marks < h->marks.n; so_far->marks++)
		write_mark(o, h, process, so_far->row_of.v, &h->marks.v[so_far->marks]);
	if (!last)
		return;
	as_heap_write_look(o, process, so_far->row_of.v, h);
	as_vec_foreach (f, &h->flows)
		as_write_heap_flow(o->w, &(struct as_rec_heap_flow){
						 .source = h->threads.v[f->from].number,
						 .by = h->threads.v[f->to].number,
						 .blocks = whole(h, f->freed.blocks),
						 .bytes = f->freed.bytes,
					 });
}

void as_heap_write(struct as_heap_writer *o, uint32_t process, const struct as_heap_drained *p)
{
	struct as_heap_written none = {0};

	as_heap_write_so_far(o, process, p, &none, true);
	as_heap_written_clear(&none);
}

void as_heap_written_clear(struct as_heap_written *w)
{
	as_vec_clear(&w->row_of);
	as_vec_clear(&w->rows);
}
