/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What targets sum up themselves (abi/rt.h, "Pairs"): sums are taken over as they grow; pending blocks are
 * put into the heap while somebody looks at it, and taken back; for good when their thread is gone.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "base/sys.h"
#include "heap/drain_priv.h"

#define PAGE         4096
#define FEW_PAGES    24         /* of a ring's tables */
#define SETTLE_NS    2000000ull /* so long all threads have time to tell */
#define ORPHANS_MANY 4096
#define SUM_MAX      (1ull << (64 - AS_RT_SUM_SHIFT))
#define WORD_MASK    ((1ull << AS_RT_SUM_SHIFT) - 1)

static bool sums_up(const struct as_heap_drain *d)
{
	return __atomic_load_n(&d->area.control->flags, __ATOMIC_RELAXED) & AS_RT_SUM_PAIRS;
}

/* What is pending has not been taken over for good. */
static bool has_pending(const struct as_heap_drain *d)
{
	return sums_up(d) && !d->last;
}

/* ---- sums ---- */

/* Less than nothing, too: where a place was seen with the same key again before the record of its first
 * sum was read, that record has what was taken over too early. */
static void add_pairs(struct as_heap_drain *d, struct as_drain_ring *r, uint64_t key,
		      uint64_t from, uint64_t to)
{
	uint64_t n = (to >> AS_RT_SUM_SHIFT) - (from >> AS_RT_SUM_SHIFT);
	struct as_drain_process *p = &d->processes.v[r->process];

	if (!n || n + SUM_MAX > 2 * SUM_MAX)
		return;
	as_heap_pairs(p->pub.heap,
		      &(struct as_heap_pairs){
			      .tally = as_drain_tally_many(d, r, AS_RT_SUM_NODE(key),
							   AS_HEAP_BLOCKS, n),
			      .n = n,
			      .bytes = (to & WORD_MASK) - (from & WORD_MASK),
			      .size_bits = AS_RT_SUM_SIZE(key),
			      .age_bits = AS_RT_SUM_AGE(key),
			      .time_bits = AS_RT_SUM_TIME(key),
			      .by = r->thread,
		      });
	as_drain_count_hook(p, (uint16_t)AS_RT_SUM_ALLOC(key), n);
	as_drain_count_hook(p, (uint16_t)AS_RT_SUM_FREE(key), n);
}

void as_pairs_sum(struct as_heap_drain *d, struct as_drain_ring *r,
		  const struct as_rt_rec_sum *rec)
{
	uint64_t set = rec->place / AS_RT_WAYS, way = rec->place % AS_RT_WAYS, from = 0;

	if (set >= AS_RT_SUM_SETS || r->process == AS_HEAP_NONE)
		return;
	/* another key there was seen after this one had gone */
	if (r->seen && r->seen[set].key[way] == rec->key) {
		from = r->seen[set].word[way];
		r->seen[set].key[way] = 0;
	}
	add_pairs(d, r, rec->key, from, rec->word);
}

/* The entry as it is now; false: none, or its nodes are not known. */
static bool read_sum(const struct as_drain_ring *r, uint32_t set, uint32_t way,
		     uint64_t *ret_key, uint64_t *ret_word)
{
	const struct as_rt_sum_set *s = &r->tables->sum[set];
	uint64_t key = __atomic_load_n(&s->key[way], __ATOMIC_ACQUIRE);

	if (!key)
		return false;
	*ret_word = __atomic_load_n(&s->word[way], __ATOMIC_ACQUIRE);
	if (__atomic_load_n(&s->key[way], __ATOMIC_ACQUIRE) != key ||
	    __atomic_load_n(&r->tables->resets, __ATOMIC_ACQUIRE) != r->resets)
		return false;
	*ret_key = key;
	return as_drain_knows(r, AS_RT_SUM_NODE(key));
}

/* Pages of a ring's tables that were ever written: short threads write few, and each look at another one
 * takes a page of memory. */
struct written {
	bool page[AS_RT_TABLES_BYTES / PAGE];
	uint32_t n;
};

static void find_written(const struct as_heap_drain *d, const struct as_drain_ring *r,
			 struct written *ret)
{
	off_t begin = (off_t)((const char *)r->tables - (const char *)d->area.control);
	off_t end = begin + (off_t)sizeof *r->tables, at = begin;

	*ret = (struct written){0};
	while (d->area.fd && at < end) {
		off_t data = lseek(d->area.fd, at, SEEK_DATA);

		if (data < 0 && errno == ENXIO) /* nothing from here on */
			return;
		at = data < 0 ? -1 : lseek(d->area.fd, data, SEEK_HOLE);
		if (at < 0)
			break;
		for (; data < at && data < end; data += PAGE, ret->n++)
			ret->page[(data - begin) / PAGE] = true;
	}
	if (at >= end)
		return;
	memset(ret->page, true, sizeof ret->page); /* it cannot be told */
	ret->n = (uint32_t)AS_ARRAY_LEN(ret->page);
}

static bool is_written(const struct written *w, const struct as_drain_ring *r, const void *at)
{
	return !w || w->page[(size_t)((const char *)at - (const char *)r->tables) / PAGE];
}

/* A slot that another key was seen in waits until the record of that one is read. w: NULL: all pages are
 * looked at. */
static void read_sums(struct as_heap_drain *d, struct as_drain_ring *r, const struct written *w)
{
	if (!__atomic_load_n(&r->tables->nsums, __ATOMIC_RELAXED))
		return;
	if (!r->seen)
		r->seen = as_xcalloc(AS_RT_SUM_SETS, sizeof *r->seen);
	for (uint32_t i = 0; i < AS_RT_SUM_SETS * AS_RT_WAYS; i++) {
		struct as_rt_sum_set *seen = &r->seen[i / AS_RT_WAYS];
		uint64_t key, word, from, *was = &seen->key[i % AS_RT_WAYS];

		if (!is_written(w, r, &r->tables->sum[i / AS_RT_WAYS]) ||
		    !read_sum(r, i / AS_RT_WAYS, i % AS_RT_WAYS, &key, &word) ||
		    (*was && *was != key))
			continue;
		from = *was ? seen->word[i % AS_RT_WAYS] : 0;
		if (word >> AS_RT_SUM_SHIFT < from >> AS_RT_SUM_SHIFT)
			continue;
		*was = key;
		seen->word[i % AS_RT_WAYS] = word;
		add_pairs(d, r, key, from, word);
	}
}

/* ---- pending blocks ---- */

struct block {
	uint64_t ptr, size_bytes, after;
	uint32_t node, serial;
	uint16_t hook;
};
struct blocks {
	struct block *v;
	size_t n, cap;
};

static void read_block(const struct as_rt_pending_set *s, uint32_t way, struct blocks *to)
{
	uint64_t block = __atomic_load_n(&s->block[way], __ATOMIC_ACQUIRE), what, after;

	if (!block || block & AS_RT_TOLD)
		return;
	what = __atomic_load_n(&s->what[way], __ATOMIC_ACQUIRE);
	after = __atomic_load_n(&s->after[way], __ATOMIC_ACQUIRE);
	if (__atomic_load_n(&s->block[way], __ATOMIC_ACQUIRE) != block)
		return;
	as_vec_push(to, (struct block){.ptr = block >> 16,
				       .size_bytes = block & (AS_RT_TOLD - 1),
				       .after = after,
				       .node = AS_RT_WHAT_NODE(what),
				       .hook = (uint16_t)AS_RT_WHAT_ID(what),
				       .serial = (uint32_t)(what >> 32)});
}

/* steady: only where nothing has changed meanwhile. w: as of read_sums. */
static bool read_blocks(const struct as_drain_ring *r, bool steady, const struct written *w,
			struct blocks *to)
{
	uint64_t seq = __atomic_load_n(&r->tables->seq, __ATOMIC_ACQUIRE);

	to->n = 0;
	if (steady && seq & 1)
		return false;
	if (!__atomic_load_n(&r->tables->pending_blocks, __ATOMIC_ACQUIRE))
		return true;
	for (uint32_t i = 0; i < AS_RT_PENDING_SETS; i++) {
		if (!is_written(w, r, &r->tables->pending[i]))
			continue;
		for (uint32_t way = 0; way < AS_RT_WAYS; way++)
			read_block(&r->tables->pending[i], way, to);
	}
	return __atomic_load_n(&r->tables->resets, __ATOMIC_ACQUIRE) == r->resets &&
	       (!steady || __atomic_load_n(&r->tables->seq, __ATOMIC_ACQUIRE) == seq);
}

static void show_block(struct as_heap_drain *d, struct as_drain_ring *r, const struct block *b)
{
	struct as_drain_process *p = &d->processes.v[r->process];
	struct as_drain_shown s = {.process = r->process, .ptr = b->ptr, .hook = b->hook};
	uint64_t complete = p->pub.complete;
	uint32_t tally;

	if (!as_drain_knows(r, b->node) || as_heap_is_live(p->pub.heap, b->ptr) ||
	    as_orphan_find(d, r->process, b->ptr, b->after))
		return;
	tally = as_drain_tally_many(d, r, b->node, AS_HEAP_BLOCKS, 1);
	s.complete = p->pub.complete != complete;
	as_heap_alloc_late(p->pub.heap, tally, b->ptr, b->size_bytes, b->serial);
	as_drain_count_hook(p, b->hook, 1);
	as_vec_push(&d->shown_blocks, s);
}

static void show_ring(struct as_heap_drain *d, struct as_drain_ring *r, bool steady)
{
	struct blocks list = {0};

	if (r->process != AS_HEAP_NONE && read_blocks(r, steady, NULL, &list)) {
		as_vec_foreach (b, &list)
			show_block(d, r, b);
	}
	as_vec_clear(&list);
}

void as_heap_drain_show(struct as_heap_drain *d)
{
	if (!has_pending(d))
		return;
	as_vec_foreach (r, &d->rings) {
		show_ring(d, r, false);
		if (r->process != AS_HEAP_NONE)
			read_sums(d, r, NULL);
	}
}

/* Sums are taken over when somebody looks, and pending blocks are told late: what leads to functions of
 * modules that go has to be looked up while these are there. */
void as_pairs_before_turn(struct as_heap_drain *d, struct as_drain_ring *r)
{
	uint64_t seq = __atomic_load_n(&r->tables->seq, __ATOMIC_ACQUIRE);
	struct blocks list = {0};

	/* most threads have done nothing since */
	if (!has_pending(d) || r->process == AS_HEAP_NONE || seq == r->turn_seq)
		return;
	/* of what is not read yet nodes may be missing */
	r->turn_seq = seq & 1 || r->at != (r->ring->pos & ~15ull) ? 0 : seq;
	read_sums(d, r, NULL);
	(void)read_blocks(r, false, NULL, &list);
	as_vec_foreach (b, &list)
		as_drain_look_up(d, r, b->node);
	as_vec_clear(&list);
}

void as_heap_drain_hide(struct as_heap_drain *d)
{
	while (d->shown_blocks.n) {
		const struct as_drain_shown *s = &d->shown_blocks.v[--d->shown_blocks.n];
		struct as_drain_process *p = &d->processes.v[s->process];

		as_heap_take_back(p->pub.heap, s->ptr);
		p->pub.hook_events.v[s->hook]--;
		if (s->complete)
			p->pub.complete--;
		else
			p->pub.cut--;
	}
}

/* ---- all threads as they are now ---- */

static bool is_asked(const struct as_drain_ring *r)
{
	return __atomic_load_n(&r->tables->flush_done, __ATOMIC_ACQUIRE) !=
	       r->ring->flush_asked;
}

/* True: the thread has told all, or does nothing. */
static bool is_steady(struct as_drain_ring *r)
{
	uint64_t seq = __atomic_load_n(&r->tables->seq, __ATOMIC_ACQUIRE), pos = r->ring->pos;
	bool same = seq == r->last_seq && pos == r->last_pos && !(seq & 1);

	r->last_seq = seq;
	r->last_pos = pos;
	return !is_asked(r) || same;
}

static void wait_until_steady(struct as_heap_drain *d)
{
	uint64_t until = as_now_ns() + SETTLE_NS;
	bool steady;

	as_vec_foreach (r, &d->rings) {
		r->last_seq = 1;
		__atomic_add_fetch(&r->ring->flush_asked, 1, __ATOMIC_RELEASE);
	}
	do {
		if (d->host.tick)
			d->host.tick(d->host.ctx);
		nanosleep(&(struct timespec){.tv_nsec = 30000}, NULL);
		steady = true;
		as_vec_foreach (r, &d->rings)
			steady &= is_steady(r);
	} while (!steady && as_now_ns() < until);
}

void as_heap_drain_settle(struct as_heap_drain *d, uint64_t now_ns)
{
	uint64_t due = 0;

	(void)as_heap_drain_round(d, now_ns);
	if (!has_pending(d))
		return;
	wait_until_steady(d);
	as_vec_foreach (r, &d->rings) {
		if (!is_asked(r))
			due = AS_MAX(due, __atomic_load_n(&r->tables->flush_stamp,
							  __ATOMIC_ACQUIRE));
	}
	as_drain_round_to(d, now_ns, due ? due : as_drain_stamp_now());
	as_vec_foreach (r, &d->rings) {
		if (is_asked(r))
			show_ring(d, r, true);
		if (r->process != AS_HEAP_NONE)
			read_sums(d, r, NULL);
	}
}

/* ---- ends without a beginning ---- */

/*
 * A block that its thread has not told is in its tables, or was told before we looked there: then its
 * record is read by the next round.
 */
void as_pairs_close_orphans(struct as_heap_drain *d, bool all_read)
{
	struct blocks list = {0};

	if (!all_read)
		return;
	if (!sums_up(d)) {
		as_orphans_close(d, AS_HEAP_NONE);
		return;
	}
	if (d->doubts)
		as_orphans_close_doubtful(d);
	d->doubts = false;
	if (d->orphans.n < d->orphans_before + ORPHANS_MANY)
		return;
	d->doubts = true;
	as_orphans_doubt(d);
	as_vec_foreach (r, &d->rings) {
		if (r->process == AS_HEAP_NONE)
			continue;
		(void)read_blocks(r, false, NULL, &list); /* too many do no harm */
		as_vec_foreach (b, &list)
			as_orphans_trust(d, r->process, b->ptr);
	}
	d->orphans_before = d->orphans.n;
	as_vec_clear(&list);
}

/* ---- a thread's end ---- */

/* For the next owner; gives the pages back where that can be done, and they are many: it takes as long as
 * to clear a hundred kilobytes, and the next owner then has to get them anew. */
static void clear_tables(struct as_drain_ring *r, const struct written *w)
{
	r->ring->grant = 0;
	if (w->n <= FEW_PAGES) {
		for (uint32_t i = 0; i < AS_ARRAY_LEN(w->page); i++) {
			if (w->page[i])
				memset((char *)r->tables + (size_t)i * PAGE, 0, PAGE);
		}
		return;
	}
	if (madvise(r->tables, sizeof *r->tables, MADV_REMOVE) == 0)
		return;
	for (uint32_t i = 0; i < AS_RT_PENDING_SETS; i++) {
		for (uint32_t way = 0; way < AS_RT_WAYS; way++) {
			if (r->tables->pending[i].block[way])
				r->tables->pending[i].block[way] = 0;
		}
	}
	for (uint32_t i = 0; i < AS_RT_SUM_SETS && r->tables->nsums; i++) {
		for (uint32_t way = 0; way < AS_RT_WAYS; way++) {
			if (r->tables->sum[i].key[way])
				r->tables->sum[i].key[way] = r->tables->sum[i].word[way] = 0;
		}
	}
	memset(r->tables, 0, offsetof(struct as_rt_tables, recent));
}

void as_pairs_end(struct as_heap_drain *d, struct as_drain_ring *r, bool clear)
{
	struct blocks list = {0};
	struct written w;

	if (!sums_up(d) || !r->tables->seq || r->ended)
		return;
	r->ended = true;
	find_written(d, r, &w);
	if (r->process != AS_HEAP_NONE) {
		read_sums(d, r, &w);
		/* whatever it was doing: that is all there is */
		(void)read_blocks(r, false, &w, &list);
	}
	as_vec_foreach (b, &list) {
		const struct as_rt_rec_alloc rec = {.head.hook = b->hook,
						    .ptr = b->ptr,
						    .size_bytes = b->size_bytes,
						    .node = b->node,
						    .serial = b->serial,
						    .after = b->after};

		if (!as_drain_knows(r, b->node) || r->tables->resets != r->resets)
			continue;
		as_drain_alloc(d, r, &rec);
		as_drain_count_hook(&d->processes.v[r->process], b->hook, 1);
	}
	as_vec_clear(&list);
	as_pairs_note_pending(d, r, 0, 0);
	if (clear)
		clear_tables(r, &w);
}
/* ---- what a thread says with the time ---- */

void as_pairs_note_pending(struct as_heap_drain *d, struct as_drain_ring *r, uint64_t blocks,
			   uint64_t bytes)
{
	struct as_heap_amount *untold;

	if (r->process == AS_HEAP_NONE)
		return;
	untold = &d->processes.v[r->process].pub.heap->untold;
	untold->blocks += blocks - r->pending.blocks;
	untold->bytes += bytes - r->pending.bytes;
	r->pending.blocks = blocks;
	r->pending.bytes = bytes;
}

void as_pairs_grant(struct as_heap_drain *d, struct as_drain_ring *r,
		    const struct as_rt_rec_time *rec)
{
	const struct as_drain_process *p;
	const struct as_heap *h;
	int64_t room;

	if (!sums_up(d) || r->process == AS_HEAP_NONE)
		return;
	as_pairs_note_pending(d, r,
			      AS_MIN(rec->pending_blocks, AS_RT_PENDING_SETS * AS_RT_WAYS),
			      AS_MIN(rec->pending_bytes, (uint64_t)AS_RT_PENDING_BYTES));
	p = &d->processes.v[r->process];
	h = p->pub.heap;
	room = (int64_t)(h->sum[AS_HEAP_BLOCKS].peak.bytes -
			 h->sum[AS_HEAP_BLOCKS].live.bytes) -
	       (int64_t)(h->untold.bytes - r->pending.bytes);
	if (room > 0)
		__atomic_store_n(&r->ring->grant, rec->told + room / p->nrings,
				 __ATOMIC_RELAXED);
}
