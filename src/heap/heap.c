/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Blocks: allocated, changed, freed. See heap.h. */
#include "heap/heap.h"

#include <stdlib.h>
#include <string.h>
#include "heap/heap_priv.h"

/* Births are counted modulo AS_LIVE_BIRTHS: every block is visited each 2^27 allocations, and those that
 * are older than OLD are made that old again, so that none seems young. */
#define SWEEP_ALLOCS 2048u
#define OLD          (AS_LIVE_BIRTHS / 2)

struct as_heap *as_heap_new(uint64_t start_ns)
{
	struct as_heap *h = as_xcalloc(1, sizeof *h);

	h->start_ns = h->now_ns = start_ns;
	as_live_init(&h->live);
	as_heap_moments_init(h);
	return h;
}

static void tally_clear(struct as_heap_tally *t)
{
	as_histogram_clear(&t->sizes);
	as_histogram_clear(&t->ages);
	as_histogram_clear(&t->times);
	if (t->growth)
		as_histogram_clear(&t->growth->last);
	free(t->growth);
}

void as_heap_free_all(struct as_heap *h)
{
	if (!h)
		return;
	as_vec_foreach (t, &h->tallies)
		tally_clear(t);
	as_vec_foreach (t, &h->threads) {
		as_vec_clear(&t->clock);
		as_vec_clear(&t->held);
	}
	as_vec_foreach (m, &h->marks) {
		free(m->name);
		as_vec_clear(&m->tallies);
	}
	as_vec_clear(&h->tallies);
	as_vec_clear(&h->threads);
	as_vec_clear(&h->timeline);
	as_vec_clear(&h->flows);
	as_vec_clear(&h->marks);
	as_vec_clear(&h->ranges);
	as_vec_clear(&h->unmapped);
	as_map64_clear(&h->tally_of);
	as_map64_clear(&h->flow_of);
	as_live_clear(&h->live);
	free(h);
}

/* ---- tallies ---- */

static uint32_t new_tally(struct as_heap *h, const struct as_heap_key *key)
{
	as_vec_push(&h->tallies, (struct as_heap_tally){.key = *key});
	return (uint32_t)h->tallies.n - 1;
}

static uint32_t overflow_tally(struct as_heap *h, const struct as_heap_key *key)
{
	h->crowded++;
	if (!h->overflow) {
		struct as_heap_key k = {key->thread, AS_HEAP_NO_STACK, AS_HEAP_BLOCKS};

		h->overflow = new_tally(h, &k) + 1;
	}
	return h->overflow - 1;
}

uint32_t as_heap_tally(struct as_heap *h, const struct as_heap_key *key)
{
	uint64_t k = (uint64_t)key->thread << 33 | (uint64_t)key->stack << 1 | key->domain;
	const uint64_t *found = as_map64_get(&h->tally_of, k);
	uint32_t t;

	if (found)
		return (uint32_t)*found;
	if (h->tallies.n >= AS_LIVE_TALLIES - 1)
		return overflow_tally(h, key);
	t = new_tally(h, key);
	*as_map64_put(&h->tally_of, k, NULL) = t;
	return t;
}

/* Before a tally's live amount changes. */
static void touch(struct as_heap *h, struct as_heap_tally *t)
{
	uint64_t epoch = h->sum[t->key.domain].peak_epoch;

	if (t->peak_epoch != epoch) {
		t->peak = t->live;
		t->peak_epoch = epoch;
	}
	if (t->nmoments != h->nmoments || t->moment_turn != h->moment_turn)
		as_heap_moments_catch_up(h, t);
}

void as_heap_note_peak(struct as_heap *h, enum as_heap_domain domain)
{
	struct as_heap_domain_sum *s = &h->sum[domain];

	if (domain == AS_HEAP_BLOCKS && s->live.bytes > h->high_bytes)
		h->high_bytes = s->live.bytes;
	if (s->live.bytes <= s->peak.bytes)
		return;
	s->peak = s->live;
	s->peak_epoch++;
	s->peak_ns = h->now_ns;
}

void as_heap_add_live(struct as_heap *h, struct as_heap_tally *t, uint64_t bytes)
{
	struct as_heap_amount *sum = &h->sum[t->key.domain].live;

	touch(h, t);
	t->live.blocks++;
	t->live.bytes += bytes;
	sum->blocks++;
	sum->bytes += bytes;
}

void as_heap_remove_live(struct as_heap *h, struct as_heap_tally *t, uint64_t bytes)
{
	struct as_heap_amount *sum = &h->sum[t->key.domain].live;

	touch(h, t);
	t->live.blocks--;
	t->live.bytes -= bytes;
	sum->blocks--;
	sum->bytes -= bytes;
}

static struct as_heap_growth *growth_of(struct as_heap_tally *t)
{
	if (!t->growth)
		t->growth = as_xcalloc(1, sizeof *t->growth);
	return t->growth;
}

/* ---- lifetimes ---- */

static uint32_t age_of(const struct as_heap_thread *t, uint32_t birth)
{
	return ((uint32_t)t->allocs - birth) % AS_LIVE_BIRTHS;
}

static bool make_old(void *ctx, uint64_t ptr, struct as_live_block *b)
{
	struct as_heap *h = ctx;
	const struct as_heap_thread *t = &h->threads.v[h->tallies.v[b->tally].key.thread];

	if (age_of(t, b->birth) <= OLD)
		return false;
	b->birth = ((uint32_t)t->allocs - OLD) % AS_LIVE_BIRTHS;
	return true;
}

static void count_alloc(struct as_heap *h, struct as_heap_tally *t)
{
	t->allocs++;
	h->threads.v[t->key.thread].allocs++;
	if (++h->allocs % SWEEP_ALLOCS == 0)
		as_live_visit(&h->live, h->next_sweep++ % AS_LIVE_BUCKETS, make_old, h);
}

static void note_end(struct as_heap *h, struct as_heap_tally *t, const struct as_live_block *b)
{
	const struct as_heap_thread *owner = &h->threads.v[t->key.thread];
	uint32_t age = AS_MIN(age_of(owner, b->birth), OLD);
	uint64_t born = as_heap_clock_at(owner, owner->allocs - age);

	as_histogram_add(&t->ages, age);
	as_histogram_add(&t->times, h->now_ns > born ? (h->now_ns - born) / 1000 : 0);
}

static void note_last_size(struct as_heap_tally *t, uint64_t bytes)
{
	struct as_heap_growth *g = growth_of(t);

	g->ended++;
	g->last_bytes += bytes;
	g->last_max_bytes = AS_MAX(g->last_max_bytes, bytes);
	as_histogram_add(&g->last, bytes);
}

static void note_flow(struct as_heap *h, struct as_heap_tally *t, uint32_t thread,
		      uint64_t bytes)
{
	uint64_t *at;
	bool fresh;

	h->threads.v[thread].frees++;
	if (t->key.thread == thread)
		return;
	t->remote_frees++;
	at = as_map64_put(&h->flow_of, (uint64_t)t->key.thread << 32 | thread, &fresh);
	if (fresh) {
		*at = h->flows.n;
		as_vec_push(&h->flows,
			    (struct as_heap_flow){.from = t->key.thread, .to = thread});
	}
	h->flows.v[*at].freed.blocks++;
	h->flows.v[*at].freed.bytes += bytes;
}

/* ---- events ---- */

/* A block is at an address that is given out: its end was not seen. */
void as_heap_end_unseen(struct as_heap *h, uint64_t ptr)
{
	struct as_live_block b;

	if (!as_live_take(&h->live, ptr, &b))
		return;
	h->unmatched_allocs++;
	h->frees++;
	h->tallies.v[b.tally].frees++;
	h->tallies.v[b.tally].freed_bytes += b.size_bytes;
	as_heap_remove_live(h, &h->tallies.v[b.tally], b.size_bytes);
}

static void put_block(struct as_heap *h, struct as_heap_tally *t, uint64_t ptr,
		      const struct as_live_block *b)
{
	as_live_add(&h->live, ptr, b);
	as_heap_add_live(h, t, b->size_bytes);
	as_heap_note_peak(h, AS_HEAP_BLOCKS);
}

static bool note_failed(struct as_heap *h, struct as_heap_tally *t, uint64_t ptr)
{
	if (ptr)
		return false;
	t->failed++;
	h->failed++;
	return true;
}

void as_heap_alloc(struct as_heap *h, uint32_t tally, uint64_t ptr, uint64_t size_bytes)
{
	struct as_heap_tally *t = &h->tallies.v[tally];

	h->events++;
	if (note_failed(h, t, ptr))
		return;
	count_alloc(h, t);
	t->bytes += size_bytes;
	t->zero += size_bytes == 0;
	h->zero += size_bytes == 0;
	as_histogram_add(&t->sizes, size_bytes);
	put_block(
		h, t, ptr,
		&(struct as_live_block){
			.size_bytes = size_bytes,
			.tally = tally,
			.birth = (uint32_t)h->threads.v[t->key.thread].allocs % AS_LIVE_BIRTHS,
		});
}

/* A block that was taken out of the map ends. */
static void end_block(struct as_heap *h, uint32_t thread, const struct as_live_block *b)
{
	struct as_heap_tally *t = &h->tallies.v[b->tally];

	h->frees++;
	t->frees++;
	t->freed_bytes += b->size_bytes;
	if (h->exiting) {
		t->at_exit.blocks++;
		t->at_exit.bytes += b->size_bytes;
	}
	if (b->grown)
		note_last_size(t, b->size_bytes);
	note_end(h, t, b);
	note_flow(h, t, thread, b->size_bytes);
	as_heap_remove_live(h, t, b->size_bytes);
}

bool as_heap_free(struct as_heap *h, uint32_t thread, uint64_t ptr)
{
	struct as_live_block b;

	if (!as_live_take(&h->live, ptr, &b))
		return false;
	h->events++;
	end_block(h, thread, &b);
	return true;
}

bool as_heap_hide(struct as_heap *h, uint64_t ptr, struct as_live_block *ret)
{
	return as_live_take(&h->live, ptr, ret);
}

void as_heap_show(struct as_heap *h, uint64_t ptr, const struct as_live_block *b)
{
	as_live_add(&h->live, ptr, b);
}

void as_heap_unmatched_free(struct as_heap *h)
{
	h->events++;
	h->unmatched_frees++;
}

bool as_heap_is_live(const struct as_heap *h, uint64_t ptr)
{
	struct as_live_block b;

	return as_live_find(&h->live, ptr, &b);
}

bool as_heap_realloc_begin(struct as_heap *h, uint32_t thread, uint64_t ptr)
{
	struct as_heap_held held = {.ptr = ptr};

	if (!as_live_take(&h->live, ptr, &held.block))
		return false;
	as_vec_push(&h->threads.v[thread].held, held);
	return true;
}

/* The block that a realloc is about: held, or (where it cannot move) in its place. */
static bool take_old(struct as_heap *h, uint32_t thread, const struct as_heap_change *c,
		     struct as_live_block *ret)
{
	struct as_heap_thread *th = &h->threads.v[thread];

	for (size_t i = th->held.n; i-- > 0;) {
		if (th->held.v[i].ptr != c->old_ptr)
			continue;
		*ret = th->held.v[i].block;
		th->held.v[i] = th->held.v[--th->held.n];
		return true;
	}
	return as_live_take(&h->live, c->old_ptr, ret);
}

/* Its age in the allocations of the thread that has it now. */
static uint32_t birth_on(const struct as_heap *h, const struct as_live_block *b,
			 uint32_t thread)
{
	const struct as_heap_thread *from = &h->threads.v[h->tallies.v[b->tally].key.thread];

	return ((uint32_t)h->threads.v[thread].allocs - age_of(from, b->birth)) %
	       AS_LIVE_BIRTHS;
}

static void note_growth(struct as_heap_tally *t, const struct as_live_block *old,
			const struct as_heap_change *c)
{
	struct as_heap_growth *g = growth_of(t);

	g->reallocs++;
	if (!old->grown) {
		g->chains++;
		g->first_bytes += old->size_bytes;
	}
	if (c->new_ptr == c->old_ptr)
		g->in_place++;
	else
		g->copied_bytes += AS_MIN(old->size_bytes, c->size_bytes);
}

static void change_block(struct as_heap *h, uint32_t tally, struct as_live_block *old,
			 const struct as_heap_change *c)
{
	struct as_heap_tally *t = &h->tallies.v[tally];
	struct as_heap_tally *was = &h->tallies.v[old->tally];
	struct as_live_block b = {.size_bytes = c->size_bytes, .tally = tally, .grown = true};

	h->reallocs++;
	h->frees++;
	was->frees++;
	was->freed_bytes += old->size_bytes;
	note_growth(t, old, c);
	t->bytes += c->size_bytes > old->size_bytes ? c->size_bytes - old->size_bytes : 0;
	b.birth = birth_on(h, old, t->key.thread);
	count_alloc(h, t);
	as_heap_remove_live(h, was, old->size_bytes);
	put_block(h, t, c->new_ptr, &b);
}

void as_heap_realloc(struct as_heap *h, uint32_t tally, const struct as_heap_change *c)
{
	uint32_t thread = h->tallies.v[tally].key.thread;
	struct as_live_block old;

	if (!c->old_ptr) {
		as_heap_alloc(h, tally, c->new_ptr, c->size_bytes);
		return;
	}
	if (!take_old(h, thread, c, &old)) {
		h->unmatched_reallocs++;
		h->reallocs += c->new_ptr != 0;
		if (c->new_ptr || c->size_bytes)
			as_heap_alloc(h, tally, c->new_ptr, c->size_bytes);
		return;
	}
	h->events++;
	if (c->new_ptr) {
		change_block(h, tally, &old, c);
	} else if (c->size_bytes) {
		(void)note_failed(h, &h->tallies.v[tally], 0); /* it did: that is known */
		as_live_add(&h->live, c->old_ptr, &old);
	} else {
		end_block(h, thread, &old);
	}
}

/* ---- the end ---- */

void as_heap_exit_begins(struct as_heap *h)
{
	h->exiting = true;
}

void as_heap_settle(struct as_heap *h)
{
	as_vec_foreach (t, &h->tallies)
		touch(h, t);
}

static bool end_chain(void *ctx, uint64_t ptr, struct as_live_block *b)
{
	struct as_heap *h = ctx;

	if (b->grown)
		note_last_size(&h->tallies.v[b->tally], b->size_bytes);
	return false;
}

void as_heap_finish(struct as_heap *h)
{
	for (uint32_t i = 0; i < AS_LIVE_BUCKETS; i++)
		as_live_visit(&h->live, i, end_chain, h);
	as_heap_moments_end(h);
	as_heap_settle(h);
}
