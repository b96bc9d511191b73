/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Blocks, roots and the mark. See leak.h; the rules are those of memcheck's manual, section "Memory leak
 * detection". */
#include <stdlib.h>
#include <string.h>

#include "heap/leak_priv.h"

enum {
	WORD = 8,
	PAGE = 4096,
	SMALL = 64 << 10, /* blocks up to here are read together */
	TRIES = 4,        /* pointers inside that are looked at closely, per block */
};

void as_leaks_init(struct as_leaks *l, const struct as_leak_memory *m)
{
	*l = (struct as_leaks){.memory = *m, .buffer = as_xmalloc(AS_LEAK_BUFFER_BYTES)};
}

void as_leaks_clear(struct as_leaks *l)
{
	as_vec_clear(&l->blocks);
	as_vec_clear(&l->queue);
	as_leak_index_free(l->index);
	free(l->owner);
	free(l->buffer);
	*l = (struct as_leaks){0};
}

const char *as_leak_class_name(enum as_leak_class c)
{
	static const char *const name[] = {"lost", "indirect", "possible", "reachable"};

	return name[c];
}

/* ---- blocks ---- */

void as_leaks_add(struct as_leaks *l, uint64_t ptr, uint64_t bytes, uint32_t tally)
{
	const uint64_t end = 1ull << 47; /* sizes are what a program asked for: any */

	if (ptr < end)
		as_vec_push(&l->blocks,
			    (struct as_leak_block){.low = ptr,
						   .bytes = AS_MIN(bytes, end - ptr),
						   .tally = tally});
}

static bool add_live(void *ctx, uint64_t ptr, struct as_live_block *b)
{
	as_leaks_add(ctx, ptr, b->size_bytes, b->tally);
	return false;
}

void as_leaks_add_live(struct as_leaks *l, const struct as_heap *h)
{
	as_vec_reserve(&l->blocks, l->blocks.n + h->live.n);
	for (uint32_t i = 0; i < AS_LIVE_BUCKETS; i++)
		/* nothing is changed: add_live says no */
		as_live_visit((struct as_live *)&h->live, i, add_live, l);
}

/* By address: 48 bits in three rounds. */
static void sort_blocks(struct as_leak_block *v, size_t n)
{
	enum { DIGITS = 1 << 16 };
	struct as_leak_block *other = as_xreallocarray(NULL, n + 1, sizeof *v), *from = v,
			     *to = other;
	size_t *at = as_xcalloc(DIGITS, sizeof *at);

	for (unsigned shift = 0; shift < 48; shift += 16) {
		size_t sum = 0;

		memset(at, 0, DIGITS * sizeof *at);
		for (size_t i = 0; i < n; i++)
			at[from[i].low >> shift & (DIGITS - 1)]++;
		for (size_t d = 0; d < DIGITS; d++) {
			size_t count = at[d];

			at[d] = sum;
			sum += count;
		}
		for (size_t i = 0; i < n; i++)
			to[at[from[i].low >> shift & (DIGITS - 1)]++] = from[i];
		struct as_leak_block *swap = from;

		from = to;
		to = swap;
	}
	memcpy(v, other, n * sizeof *v); /* three rounds: it ends there */
	free(other);
	free(at);
}

void as_leaks_seal(struct as_leaks *l)
{
	struct as_leak_block *v;
	size_t n = 0;

	as_vec_reserve(&l->blocks, l->blocks.n + 1);
	v = l->blocks.v;
	sort_blocks(v, l->blocks.n);
	for (size_t i = 0; i < l->blocks.n; i++) {
		if (n && v[i].low - v[n - 1].low < AS_MAX(v[n - 1].bytes, 1ull))
			l->overlaps++;
		else
			v[n++] = v[i];
	}
	l->blocks.n = n;
	v[n] = (struct as_leak_block){.low = UINT64_MAX}; /* ends searches */
	l->lowest = n ? v[0].low : UINT64_MAX;
	l->highest = n ? v[n - 1].low + AS_MAX(v[n - 1].bytes, 1ull) - 1 : 0;
	l->index = as_leak_index_new(v, n);
}

bool as_leaks_find(const struct as_leaks *l, uint64_t avma, uint32_t *ret)
{
	uint32_t i = as_leak_index_find(l->index, l->blocks.v, avma);

	if (i == UINT32_MAX)
		return false;
	*ret = i;
	return true;
}

size_t as_leaks_first(const struct as_leaks *l, uint64_t avma)
{
	size_t lo = 0, hi = l->blocks.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct as_leak_block *b = &l->blocks.v[mid];

		if (b->low + AS_MAX(b->bytes, 1ull) <= avma)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* ---- reading ---- */

static bool next_part(const struct as_leaks *l, uint64_t low, uint64_t high,
		      struct as_leak_range *ret)
{
	if (low >= high)
		return false;
	if (l->memory.next)
		return l->memory.next(l->memory.ctx, low, high, ret);
	*ret = (struct as_leak_range){low, high};
	return true;
}

/* Page by page, so that one which cannot be read costs no other. */
static void scan_pages(struct as_leaks *l, uint32_t number, struct as_leak_range r,
		       const struct as_leak_scan *to)
{
	while (r.low < r.high) {
		struct as_leak_range page = {r.low, AS_MIN(r.high, (r.low | (PAGE - 1)) + 1)};
		size_t n = page.high - page.low;

		if (l->memory.read(l->memory.ctx, &page, 1, l->buffer) == n) {
			l->scanned_bytes += n;
			to->fn(to->ctx, number, (uint64_t *)l->buffer, n / WORD);
		} else {
			l->unread_bytes += n;
		}
		r.low = page.high;
	}
}

/* Any range, of any length; whole words of it. */
static void scan_range(struct as_leaks *l, uint32_t number, uint64_t low, uint64_t high,
		       const struct as_leak_scan *to)
{
	struct as_leak_range part;

	low = (low + WORD - 1) & ~(uint64_t)(WORD - 1);
	high &= ~(uint64_t)(WORD - 1);
	while (next_part(l, low, high, &part)) {
		while (part.low < part.high) {
			struct as_leak_range r = {
				part.low, AS_MIN(part.high, part.low + AS_LEAK_BUFFER_BYTES)};
			size_t n = r.high - r.low;

			if (l->memory.read(l->memory.ctx, &r, 1, l->buffer) == n) {
				l->scanned_bytes += n;
				to->fn(to->ctx, number, (uint64_t *)l->buffer, n / WORD);
			} else {
				scan_pages(l, number, r, to);
			}
			part.low = r.high;
		}
		low = part.high;
	}
}

struct batch {
	struct as_leak_range range[AS_LEAK_BATCH];
	uint32_t number[AS_LEAK_BATCH];
	size_t n, bytes;
};

static void flush(struct as_leaks *l, struct batch *b, const struct as_leak_scan *to)
{
	size_t i = 0;

	while (i < b->n) {
		size_t got = l->memory.read(l->memory.ctx, b->range + i, b->n - i, l->buffer);
		size_t at = 0;

		for (; i < b->n && got >= b->range[i].high - b->range[i].low; i++) {
			size_t n = b->range[i].high - b->range[i].low;

			l->scanned_bytes += n;
			to->fn(to->ctx, b->number[i], (uint64_t *)(l->buffer + at), n / WORD);
			at += n;
			got -= n;
		}
		if (i < b->n) {
			scan_pages(l, b->number[i], b->range[i], to);
			i++;
		}
	}
	b->n = b->bytes = 0;
}

void as_leak_scan_blocks(struct as_leaks *l, const uint32_t *list, size_t n,
			 const struct as_leak_scan *to)
{
	struct batch b;

	b.n = b.bytes = 0;
	for (size_t i = 0; i < n; i++) {
		const struct as_leak_block *k = &l->blocks.v[list[i]];
		struct as_leak_range r = {(k->low + WORD - 1) & ~(uint64_t)(WORD - 1),
					  (k->low + k->bytes) & ~(uint64_t)(WORD - 1)};

		if (r.low >= r.high)
			continue;
		if (r.high - r.low > SMALL) {
			flush(l, &b, to); /* in the order of the list */
			scan_range(l, list[i], r.low, r.high, to);
			continue;
		}
		if (b.n == AS_LEAK_BATCH || b.bytes + (r.high - r.low) > AS_LEAK_BUFFER_BYTES)
			flush(l, &b, to);
		b.range[b.n] = r;
		b.number[b.n++] = list[i];
		b.bytes += r.high - r.low;
	}
	flush(l, &b, to);
}

/* ---- marking ---- */

static void enqueue(struct as_leaks *l, uint32_t number)
{
	struct as_leak_block *b = &l->blocks.v[number];

	if (b->queued)
		return;
	b->queued = true;
	as_vec_push(&l->queue, number);
}

/* A word that was found where `sure` says whether a chain of pointers to beginnings leads there. */
static void note_word(struct as_leaks *l, uint64_t word, bool sure)
{
	enum as_leak_inside inside = AS_LEAK_START;
	struct as_leak_block *b;
	uint32_t i;

	if (word < l->lowest || word > l->highest || !as_leaks_find(l, word, &i))
		return;
	b = &l->blocks.v[i];
	if (b->class == AS_LEAK_REACHABLE) {
		if (sure && word == b->low)
			b->inside = AS_LEAK_START;
		return;
	}
	if (sure && word != b->low && b->tries < TRIES) {
		b->tries++;
		inside = as_leak_inside_of(&l->memory, b, word);
	}
	if (sure && (word == b->low || inside)) {
		b->class = AS_LEAK_REACHABLE;
		b->inside = (uint8_t)inside;
		enqueue(l, i);
	} else if (b->class == AS_LEAK_LOST) {
		b->class = AS_LEAK_POSSIBLE;
		enqueue(l, i);
	}
}

static void note_root(void *ctx, uint32_t number, const uint64_t *word, size_t n)
{
	(void)number;
	for (size_t i = 0; i < n; i++)
		note_word(ctx, word[i], true);
}

static void note_block(void *ctx, uint32_t number, const uint64_t *word, size_t n)
{
	struct as_leaks *l = ctx;

	/* asked each time: a word of the block may have made it so */
	for (size_t i = 0; i < n; i++)
		note_word(l, word[i], l->blocks.v[number].class == AS_LEAK_REACHABLE);
}

/* Blocks whose class changes while they are read come into the queue again. */
static void drain_queue(struct as_leaks *l)
{
	const struct as_leak_scan to = {l, note_block};
	uint32_t list[AS_LEAK_BATCH];

	while (l->queue.n) {
		size_t n = AS_MIN(l->queue.n, (size_t)AS_LEAK_BATCH);

		l->queue.n -= n;
		memcpy(list, l->queue.v + l->queue.n, n * sizeof *list);
		for (size_t i = 0; i < n; i++)
			l->blocks.v[list[i]].queued = false;
		as_leak_scan_blocks(l, list, n, &to);
	}
}

void as_leaks_root_word(struct as_leaks *l, uint64_t word)
{
	note_word(l, word, true);
	drain_queue(l);
}

void as_leaks_root(struct as_leaks *l, uint64_t low, uint64_t high)
{
	const struct as_leak_scan to = {l, note_root};

	for (size_t i = as_leaks_first(l, low); low < high; i++) {
		const struct as_leak_block *b =
			&l->blocks.v[i]; /* or the last one's follower */

		if (b->low > low)
			scan_range(l, UINT32_MAX, low, AS_MIN(high, b->low), &to);
		if (b->low >= high)
			break;
		low = AS_MAX(low, b->low + b->bytes);
	}
	drain_queue(l);
}

void as_leaks_finish(struct as_leaks *l)
{
	l->owner = as_xreallocarray(NULL, l->blocks.n + 1, sizeof *l->owner);
	memset(l->owner, 0xff, (l->blocks.n + 1) * sizeof *l->owner);
	as_leak_find_owners(l);
}

/* ---- sums ---- */

static void add(struct as_heap_amount *to, uint64_t bytes)
{
	to->blocks++;
	to->bytes += bytes;
}

static struct as_leak_row *row_of(struct as_heap_leaks *k, struct as_map64 *rows,
				  uint32_t tally)
{
	bool fresh;
	uint64_t *at = as_map64_put(rows, tally, &fresh);

	if (fresh) {
		*at = k->rows.n;
		as_vec_push(&k->rows, (struct as_leak_row){.tally = tally});
	}
	return &k->rows.v[*at];
}

void as_heap_leaks_sum(const struct as_leaks *l, struct as_heap_leaks *ret)
{
	struct as_map64 rows = {0};

	for (size_t i = 0; i < l->blocks.n; i++) {
		const struct as_leak_block *b = &l->blocks.v[i];
		struct as_leak_row *row = row_of(ret, &rows, b->tally);

		add(&row->amount[b->class], b->bytes);
		add(&ret->sum[b->class], b->bytes);
		ret->inside[b->inside]++;
		if (b->class == AS_LEAK_INDIRECT)
			add(&row_of(ret, &rows, l->blocks.v[l->owner[i]].tally)->owned,
			    b->bytes);
	}
	ret->scanned_bytes = l->scanned_bytes;
	ret->unread_bytes = l->unread_bytes;
	ret->edges_beyond = l->edges_beyond;
	as_map64_clear(&rows);
}

void as_heap_leaks_free(struct as_heap_leaks *k)
{
	if (!k)
		return;
	as_vec_clear(&k->rows);
	free(k);
}
