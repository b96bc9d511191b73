/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Blocks: allocated, changed, freed. See heap.h. */
#include "heap/heap.h"

#include <stdlib.h>
#include <string.h>
#include "heap/heap_priv.h"
#include "heap/leak.h"
#include "heap/resident.h"

/* Births are counted modulo AS_LIVE_BIRTHS: every block is visited each 2^27 allocations, and those that
 * are older than OLD are made that old again, so that none seems young. */
#define SWEEP_ALLOCS 2048u
#define OLD          (AS_LIVE_BIRTHS / 2)
#define NO_TALLY     UINT32_MAX

struct as_heap *as_heap_new(uint64_t start_ns)
{
	struct as_heap *h = as_xcalloc(1, sizeof *h);

	h->unit = 1;
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
}

void as_heap_free_all(struct as_heap *h)
{
	if (!h)
		return;
	as_vec_foreach (t, &h->tallies)
		tally_clear(t);
	as_vec_foreach (g, &h->growths)
		as_histogram_clear(&g->last);
	as_vec_foreach (t, &h->threads) {
		as_vec_clear(&t->clock);
		as_vec_clear(&t->held);
	}
	as_vec_foreach (m, &h->marks) {
		free(m->name);
		as_vec_clear(&m->tallies);
	}
	as_vec_clear(&h->tallies);
	as_vec_clear(&h->rares);
	as_vec_clear(&h->growths);
	as_vec_clear(&h->moments);
	as_vec_clear(&h->threads);
	as_vec_clear(&h->timeline);
	as_vec_clear(&h->flows);
	as_vec_clear(&h->marks);
	as_vec_clear(&h->ranges);
	as_vec_clear(&h->unmapped);
	as_slots_clear(&h->tally_of);
	as_map64_clear(&h->flow_of);
	as_heap_leaks_free(h->leaks);
	as_heap_resident_free(h->resident);
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

/* ---- tallies by what they are sums of ---- */

static uint64_t hash_key(const struct as_heap_key *key, uint32_t origin)
{
	return as_mix64(
		((uint64_t)key->thread << 33 ^ (uint64_t)key->stack << 1 ^ key->domain) +
		as_mix64(origin));
}

static uint64_t hash_of(const void *list, uint32_t number)
{
	const struct as_heap_tally *t = (const struct as_heap_tally *)list + number;

	return hash_key(&t->key, t->origin);
}

/* NO_TALLY: there is none, and *ret_at is where it goes. */
static uint32_t find_tally(struct as_heap *h, const struct as_heap_key *key, uint32_t origin,
			   size_t *ret_at)
{
	size_t at;

	as_slots_reserve(&h->tally_of, hash_of, h->tallies.v);
	for (at = as_slots_home(&h->tally_of, hash_key(key, origin)); h->tally_of.slot[at];
	     at = as_slots_next(&h->tally_of, at)) {
		const struct as_heap_tally *t = &h->tallies.v[h->tally_of.slot[at] - 1];

		if (t->key.thread == key->thread && t->key.stack == key->stack &&
		    t->key.domain == key->domain && t->origin == origin)
			return h->tally_of.slot[at] - 1;
	}
	*ret_at = at;
	return NO_TALLY;
}

uint32_t as_heap_tally(struct as_heap *h, const struct as_heap_key *key)
{
	size_t at;
	uint32_t t = find_tally(h, key, 0, &at);

	if (t != NO_TALLY)
		return t;
	if (h->tallies.n >= AS_LIVE_TALLIES - 1)
		return overflow_tally(h, key);
	t = new_tally(h, key);
	as_slots_put(&h->tally_of, at, t);
	return t;
}

/* Half of the tallies are left to stacks: a block that finds no room has no origin. */
static uint32_t pair_tally(struct as_heap *h, uint32_t tally, uint32_t old)
{
	const struct as_heap_key key = h->tallies.v[tally].key;
	uint32_t origin = h->tallies.v[old].origin ? h->tallies.v[old].origin - 1 : old;
	uint32_t t;
	size_t at;

	if (origin == tally)
		return tally;
	t = find_tally(h, &key, origin + 1, &at);
	if (t != NO_TALLY)
		return t;
	if (h->tallies.n >= AS_LIVE_TALLIES / 2)
		return tally;
	t = new_tally(h, &key);
	h->tallies.v[t].origin = origin + 1;
	as_slots_put(&h->tally_of, at, t);
	return t;
}

/* ---- what few tallies have ---- */

static struct as_heap_rare *rare_of(struct as_heap *h, struct as_heap_tally *t)
{
	if (!t->rare) {
		as_vec_push(&h->rares, (struct as_heap_rare){0});
		t->rare = (uint32_t)h->rares.n;
	}
	return &h->rares.v[t->rare - 1];
}

const struct as_heap_rare *as_heap_rare_of(const struct as_heap *h,
					   const struct as_heap_tally *t)
{
	static const struct as_heap_rare none;

	return t->rare ? &h->rares.v[t->rare - 1] : &none;
}

static struct as_heap_growth *growth_of(struct as_heap *h, struct as_heap_tally *t)
{
	if (!t->growth) {
		as_vec_push(&h->growths, (struct as_heap_growth){0});
		t->growth = (uint32_t)h->growths.n;
	}
	return &h->growths.v[t->growth - 1];
}

const struct as_heap_growth *as_heap_growth_of(const struct as_heap *h,
					       const struct as_heap_tally *t)
{
	return t->growth ? &h->growths.v[t->growth - 1] : NULL;
}

/* ---- live blocks ---- */

/* Before a tally's live amount changes. */
static void touch(struct as_heap *h, struct as_heap_tally *t)
{
	uint64_t epoch = h->sum[t->key.domain].peak_epoch;

	if (t->peak_epoch != epoch) {
		t->peak = t->live;
		t->peak_epoch = epoch;
		if (h->sample_bytes && t->rare) {
			struct as_heap_rare *r = rare_of(h, t);

			r->peak_blocks_variance = r->live_blocks_variance;
			r->peak_bytes_variance = r->live_bytes_variance;
		}
	}
	if (t->nmoments != h->nmoments || t->moment_turn != (uint8_t)h->moment_turn)
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

static void add(struct as_heap_amount *a, const struct as_heap_weight *w)
{
	a->blocks += w->blocks;
	a->bytes += w->bytes;
	a->blocks_variance += w->blocks_variance;
	a->bytes_variance += w->bytes_variance;
}

static void subtract(struct as_heap_amount *a, const struct as_heap_weight *w)
{
	a->blocks -= w->blocks;
	a->bytes -= w->bytes;
	/* what rounding leaves is nothing when no block is */
	a->blocks_variance = a->blocks ? a->blocks_variance - w->blocks_variance : 0;
	a->bytes_variance = a->blocks ? a->bytes_variance - w->bytes_variance : 0;
}

void as_heap_add_live(struct as_heap *h, struct as_heap_tally *t,
		      const struct as_heap_weight *w)
{
	touch(h, t);
	t->live.blocks += w->blocks;
	t->live.bytes += w->bytes;
	if (w->blocks_variance > 0) {
		struct as_heap_rare *r = rare_of(h, t);

		r->live_blocks_variance += w->blocks_variance;
		r->live_bytes_variance += w->bytes_variance;
	}
	add(&h->sum[t->key.domain].live, w);
}

void as_heap_remove_live(struct as_heap *h, struct as_heap_tally *t,
			 const struct as_heap_weight *w)
{
	touch(h, t);
	t->live.blocks -= w->blocks;
	t->live.bytes -= w->bytes;
	if (w->blocks_variance > 0) {
		struct as_heap_rare *r = rare_of(h, t);

		r->live_blocks_variance -= w->blocks_variance;
		r->live_bytes_variance -= w->bytes_variance;
		if (!t->live.blocks) /* what rounding leaves is nothing when no block is */
			r->live_blocks_variance = r->live_bytes_variance = 0;
	}
	subtract(&h->sum[t->key.domain].live, w);
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

static void count_alloc(struct as_heap *h, struct as_heap_tally *t,
			const struct as_heap_weight *w)
{
	t->allocs += w->blocks;
	if (w->blocks_variance > 0)
		rare_of(h, t)->allocs_variance += w->blocks_variance;
	h->allocs += w->blocks;
	h->allocs_variance += w->blocks_variance;
}

/* The thread makes n more. */
static void pass_allocs(struct as_heap *h, uint32_t thread, uint64_t n)
{
	h->threads.v[thread].allocs += n;
	for (h->swept += n; h->swept >= SWEEP_ALLOCS; h->swept -= SWEEP_ALLOCS)
		as_live_visit(&h->live, h->next_sweep++ % AS_LIVE_BUCKETS, make_old, h);
}

void as_heap_serial(struct as_heap *h, uint32_t thread, uint32_t serial)
{
	uint32_t ahead = serial - (uint32_t)h->threads.v[thread].allocs;

	if (ahead && ahead < 1u << 31)
		pass_allocs(h, thread, ahead);
}

/* One that is told, and with sampling those it stands for. */
static void count_next_alloc(struct as_heap *h, struct as_heap_tally *t,
			     const struct as_heap_weight *w)
{
	count_alloc(h, t, w);
	pass_allocs(h, t->key.thread, AS_MAX(w->blocks / h->unit, 1u));
}

static void note_end(struct as_heap *h, struct as_heap_tally *t, const struct as_live_block *b,
		     uint64_t n)
{
	const struct as_heap_thread *owner = &h->threads.v[t->key.thread];
	uint32_t age = AS_MIN(age_of(owner, b->birth), OLD);
	uint64_t born = as_heap_clock_at(owner, owner->allocs - age);

	as_histogram_add_many(&t->ages, age, n);
	as_histogram_add_many(&t->times, h->now_ns > born ? (h->now_ns - born) / 1000 : 0, n);
}

static void note_last_size(struct as_heap *h, struct as_heap_tally *t, uint64_t size_bytes,
			   const struct as_heap_weight *w)
{
	struct as_heap_growth *g = growth_of(h, t);

	g->ended += w->blocks;
	g->last_bytes += w->bytes;
	g->last_max_bytes = AS_MAX(g->last_max_bytes, size_bytes);
	as_histogram_add_many(&g->last, size_bytes, w->blocks);
}

static void note_flow(struct as_heap *h, struct as_heap_tally *t, uint32_t thread,
		      const struct as_heap_weight *w)
{
	uint64_t *at;
	bool fresh;

	h->threads.v[thread].frees++;
	if (t->key.thread == thread)
		return;
	rare_of(h, t)->remote_frees += w->blocks;
	at = as_map64_put(&h->flow_of, (uint64_t)t->key.thread << 32 | thread, &fresh);
	if (fresh) {
		*at = h->flows.n;
		as_vec_push(&h->flows,
			    (struct as_heap_flow){.from = t->key.thread, .to = thread});
	}
	add(&h->flows.v[*at].freed, w);
}

/* ---- events ---- */

static void count_free(struct as_heap *h, struct as_heap_tally *t,
		       const struct as_heap_weight *w)
{
	h->frees += w->blocks;
	t->frees += w->blocks;
	t->freed_bytes += w->bytes;
}

/* A block is at an address that is given out: its end was not seen. */
void as_heap_end_unseen(struct as_heap *h, uint64_t ptr)
{
	struct as_live_block b;
	struct as_heap_weight w;

	if (!as_live_take(&h->live, ptr, &b))
		return;
	w = as_heap_weigh(h, b.size_bytes);
	h->unmatched_allocs++;
	count_free(h, &h->tallies.v[b.tally], &w);
	as_heap_remove_live(h, &h->tallies.v[b.tally], &w);
}

static void put_block(struct as_heap *h, struct as_heap_tally *t, uint64_t ptr,
		      const struct as_live_block *b)
{
	struct as_heap_weight w = as_heap_weigh(h, b->size_bytes);

	as_live_add(&h->live, ptr, b);
	as_heap_add_live(h, t, &w);
	as_heap_note_peak(h, AS_HEAP_BLOCKS);
}

static bool note_failed(struct as_heap *h, struct as_heap_tally *t, uint64_t ptr)
{
	if (ptr)
		return false;
	rare_of(h, t)->failed++;
	h->failed++;
	return true;
}

/* Bytes that were asked for; their variance is that of the blocks they are told by. */
static void count_bytes(struct as_heap *h, struct as_heap_tally *t,
			const struct as_heap_weight *w)
{
	t->bytes += w->bytes;
	if (w->bytes_variance > 0)
		rare_of(h, t)->bytes_variance += w->bytes_variance;
}

/* Blocks of size 0. */
static void count_zero(struct as_heap *h, struct as_heap_tally *t, uint64_t blocks)
{
	rare_of(h, t)->zero += blocks;
	h->zero += blocks;
}

/* Of a block that begins. */
static void count_size(struct as_heap *h, struct as_heap_tally *t, uint64_t size_bytes,
		       const struct as_heap_weight *w)
{
	count_bytes(h, t, w);
	if (!size_bytes)
		count_zero(h, t, w->blocks);
	as_histogram_add_many(&t->sizes, size_bytes, w->blocks);
}

static void give_out(struct as_heap *h, uint32_t tally, uint64_t ptr, uint64_t size_bytes,
		     bool grown)
{
	struct as_heap_tally *t = &h->tallies.v[tally];
	struct as_heap_weight w = as_heap_weigh(h, size_bytes);

	count_next_alloc(h, t, &w);
	if (!grown)
		count_size(h, t, size_bytes, &w);
	put_block(
		h, t, ptr,
		&(struct as_live_block){
			.size_bytes = size_bytes,
			.tally = tally,
			.birth = (uint32_t)h->threads.v[t->key.thread].allocs % AS_LIVE_BIRTHS,
			.grown = grown,
		});
}

void as_heap_alloc(struct as_heap *h, uint32_t tally, uint64_t ptr, uint64_t size_bytes)
{
	h->events++;
	if (!note_failed(h, &h->tallies.v[tally], ptr))
		give_out(h, tally, ptr, size_bytes, false);
}

/* Freed, after the process began to end. */
static void count_at_exit(struct as_heap *h, struct as_heap_tally *t,
			  const struct as_heap_weight *w)
{
	struct as_heap_rare *r = rare_of(h, t);

	r->at_exit.blocks += w->blocks;
	r->at_exit.bytes += w->bytes;
}

/* A block that was taken out of the map ends. */
static void end_block(struct as_heap *h, uint32_t thread, const struct as_live_block *b)
{
	struct as_heap_tally *t = &h->tallies.v[b->tally];
	struct as_heap_weight w = as_heap_weigh(h, b->size_bytes);

	count_free(h, t, &w);
	if (h->exiting)
		count_at_exit(h, t, &w);
	if (b->grown)
		note_last_size(h, t, b->size_bytes, &w);
	note_end(h, t, b, w.blocks);
	note_flow(h, t, thread, &w);
	as_heap_remove_live(h, t, &w);
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

void as_heap_unmatched_free(struct as_heap *h)
{
	/* with sampling: most likely of a block that was not told */
	if (h->sample_bytes)
		return;
	h->events++;
	h->unmatched_frees++;
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
	/* without a begin it was not told, and what is there by now is another block */
	if (h->sample_bytes && c->old_ptr != c->new_ptr)
		return false;
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

/* Of something that is told by a block: `bytes` of it. */
static uint64_t share(const struct as_heap_weight *w, uint64_t bytes)
{
	return (uint64_t)((double)bytes * w->factor + 0.5);
}

static void note_growth(struct as_heap *h, struct as_heap_tally *t,
			const struct as_live_block *old, const struct as_heap_change *c,
			const struct as_heap_weight *w)
{
	struct as_heap_growth *g = growth_of(h, t);

	g->reallocs += w->blocks;
	if (!old->grown) {
		g->chains += w->blocks;
		g->first_bytes += w->bytes;
	}
	if (c->new_ptr == c->old_ptr)
		g->in_place += w->blocks;
	else
		g->copied_bytes += share(w, AS_MIN(old->size_bytes, c->size_bytes));
}

/* Whether the block that is there now is one that is told. */
static bool is_told(const struct as_heap *h, const struct as_heap_change *c)
{
	return !h->sample_bytes || !c->unsampled;
}

/* What is known by the old block is weighed by that one, the rest by the new one. */
static void change_block(struct as_heap *h, uint32_t plain, struct as_live_block *old,
			 const struct as_heap_change *c)
{
	uint32_t tally = pair_tally(h, plain, old->tally);
	struct as_heap_tally *t = &h->tallies.v[tally];
	struct as_heap_tally *was = &h->tallies.v[old->tally];
	struct as_live_block b = {.size_bytes = c->size_bytes, .tally = tally, .grown = true};
	struct as_heap_weight old_w = as_heap_weigh(h, old->size_bytes);
	struct as_heap_weight new_w = as_heap_weigh(h, c->size_bytes);

	h->reallocs += old_w.blocks;
	count_free(h, was, &old_w);
	note_growth(h, t, old, c, &old_w);
	if (c->size_bytes > old->size_bytes) {
		uint64_t more = c->size_bytes - old->size_bytes;

		t->bytes += share(&old_w, more);
		if (old_w.blocks_variance > 0)
			rare_of(h, t)->bytes_variance +=
				(double)more * (double)more * old_w.blocks_variance;
	}
	/* with sampling most changed blocks begin anew: so all do */
	b.birth = h->sample_bytes
			  ? (uint32_t)h->threads.v[t->key.thread].allocs % AS_LIVE_BIRTHS
			  : birth_on(h, old, t->key.thread);
	as_heap_remove_live(h, was, &old_w);
	if (!is_told(h, c))
		return;
	count_next_alloc(h, t, &new_w);
	put_block(h, t, c->new_ptr, &b);
}

/* With sampling: the old block was not told. Its size is not known, and what the new one adds to it is
 * estimated by others, that were. */
static void change_untold(struct as_heap *h, uint32_t tally, const struct as_heap_change *c)
{
	if (!c->new_ptr && c->size_bytes)
		(void)note_failed(h, &h->tallies.v[tally], 0);
	else if (c->new_ptr && is_told(h, c))
		give_out(h, tally, c->new_ptr, c->size_bytes, true);
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
		if (h->sample_bytes) {
			h->events++;
			change_untold(h, tally, c);
			return;
		}
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

/* ---- what is told late ---- */

void as_heap_realloc_early(struct as_heap *h, uint32_t tally, const struct as_heap_change *c)
{
	struct as_heap_tally *t = &h->tallies.v[tally];
	struct as_heap_weight w = as_heap_one(h, c->size_bytes);
	struct as_heap_growth *g;

	h->events++;
	if (note_failed(h, t, c->new_ptr))
		return;
	g = growth_of(h, t);
	h->reallocs += w.blocks;
	g->reallocs += w.blocks;
	g->in_place += c->new_ptr == c->old_ptr ? w.blocks : 0;
	count_next_alloc(h, t, &w);
	count_bytes(h, t, &w);
	put_block(
		h, t, c->new_ptr,
		&(struct as_live_block){
			.size_bytes = c->size_bytes,
			.tally = tally,
			.birth = (uint32_t)h->threads.v[t->key.thread].allocs % AS_LIVE_BIRTHS,
			.grown = true,
		});
}

/* The block, where it is still as it was changed, moves to the tally that knows who made it. */
static void find_origin(struct as_heap *h, const struct as_heap_late *l)
{
	uint32_t tally = pair_tally(h, l->change_tally, l->tally);
	struct as_heap_tally *from = &h->tallies.v[l->change_tally], *to = &h->tallies.v[tally];
	struct as_heap_weight w;
	struct as_live_block b;

	if (tally == l->change_tally || !as_live_find(&h->live, l->change->new_ptr, &b) ||
	    b.tally != l->change_tally || b.size_bytes != l->change->size_bytes)
		return;
	(void)as_live_take(&h->live, l->change->new_ptr, &b); /* it is there */
	w = as_heap_weigh(h, b.size_bytes);
	from->allocs -= w.blocks;
	to->allocs += w.blocks;
	as_heap_remove_live(h, from, &w);
	b.tally = tally;
	put_block(h, to, l->change->new_ptr, &b);
}

/* What as_heap_realloc_early could not know. */
static void complete_change(struct as_heap *h, const struct as_heap_late *l)
{
	struct as_heap_tally *t = &h->tallies.v[l->change_tally];
	struct as_heap_growth *g = growth_of(h, t);
	uint64_t kept = AS_MIN(l->size_bytes, l->change->size_bytes);

	t->bytes -= kept;
	g->chains += h->unit;
	g->first_bytes += l->size_bytes;
	if (l->change->new_ptr != l->change->old_ptr)
		g->copied_bytes += kept;
	find_origin(h, l);
}

void as_heap_late(struct as_heap *h, const struct as_heap_late *l)
{
	struct as_heap_tally *t = &h->tallies.v[l->tally];
	struct as_heap_weight w = as_heap_one(h, l->size_bytes);
	struct as_live_block b = {.size_bytes = l->size_bytes,
				  .tally = l->tally,
				  .birth = l->serial % AS_LIVE_BIRTHS};

	h->events++;
	count_alloc(h, t, &w);
	count_size(h, t, l->size_bytes, &w);
	count_free(h, t, &w);
	if (l->change) {
		complete_change(h, l);
		return;
	}
	h->events++;
	if (h->exiting)
		count_at_exit(h, t, &w);
	note_end(h, t, &b, w.blocks);
	note_flow(h, t, l->by, &w);
}

bool as_heap_is_live(const struct as_heap *h, uint64_t ptr)
{
	struct as_live_block b;

	return as_live_find(&h->live, ptr, &b);
}

void as_heap_alloc_late(struct as_heap *h, uint32_t tally, uint64_t ptr, uint64_t size_bytes,
			uint32_t serial)
{
	struct as_heap_tally *t = &h->tallies.v[tally];
	struct as_heap_weight w = as_heap_one(h, size_bytes);

	h->events++;
	count_alloc(h, t, &w);
	count_size(h, t, size_bytes, &w);
	put_block(h, t, ptr,
		  &(struct as_live_block){.size_bytes = size_bytes,
					  .tally = tally,
					  .birth = serial % AS_LIVE_BIRTHS});
}

void as_heap_take_back(struct as_heap *h, uint64_t ptr)
{
	struct as_heap_tally *t;
	struct as_heap_weight w;
	struct as_live_block b;

	if (!as_live_take(&h->live, ptr, &b))
		return;
	t = &h->tallies.v[b.tally];
	w = as_heap_one(h, b.size_bytes);
	h->events--;
	h->allocs -= w.blocks;
	t->allocs -= w.blocks;
	t->bytes -= w.bytes;
	if (!b.size_bytes)
		count_zero(h, t, -w.blocks);
	as_histogram_take(&t->sizes, b.size_bytes);
	as_heap_remove_live(h, t, &w);
}

/* A value of so many bits. */
static uint64_t of_bits(uint32_t bits)
{
	return bits ? 1ull << (bits - 1) : 0;
}

void as_heap_pairs(struct as_heap *h, const struct as_heap_pairs *p)
{
	struct as_heap_tally *t = &h->tallies.v[p->tally];
	const struct as_heap_weight w = {.blocks = p->n, .bytes = p->bytes, .factor = 1};

	h->events += 2 * p->n;
	count_alloc(h, t, &w);
	count_bytes(h, t, &w);
	as_histogram_add_many(&t->sizes, of_bits(p->size_bits), p->n);
	if (!p->size_bits)
		count_zero(h, t, p->n);
	count_free(h, t, &w);
	as_histogram_add_many(&t->ages, of_bits(p->age_bits), p->n);
	as_histogram_add_many(&t->times, of_bits(p->time_bits), p->n);
	h->threads.v[p->by].frees += p->n;
}

void as_heap_alloc_held(struct as_heap *h, const struct as_heap_late *l, uint64_t ptr)
{
	struct as_heap_tally *t = &h->tallies.v[l->tally];
	struct as_heap_weight w = as_heap_one(h, l->size_bytes);
	struct as_heap_held held = {
		.ptr = ptr,
		.block = {.size_bytes = l->size_bytes,
			  .tally = l->tally,
			  .birth = l->serial % AS_LIVE_BIRTHS},
	};

	h->events++;
	count_alloc(h, t, &w);
	count_size(h, t, l->size_bytes, &w);
	as_heap_add_live(h, t, &w);
	as_heap_note_peak(h, AS_HEAP_BLOCKS);
	as_vec_push(&h->threads.v[l->by].held, held);
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

	struct as_heap_weight w = as_heap_weigh(h, b->size_bytes);

	if (b->grown)
		note_last_size(h, &h->tallies.v[b->tally], b->size_bytes, &w);
	return false;
}

void as_heap_finish(struct as_heap *h)
{
	for (uint32_t i = 0; i < AS_LIVE_BUCKETS; i++)
		as_live_visit(&h->live, i, end_chain, h);
	as_heap_moments_end(h);
	as_heap_settle(h);
	as_heap_make_whole(h);
}
