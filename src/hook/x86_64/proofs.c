/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "hook/signature_priv.h"

#define SMALL         24u
#define BIG           100000u
#define OF_MANY       5000u
#define HUGE_SIZE     0x7fffffffffffffffull /* no allocator has it */
#define ALIGNMENT     16384u                /* by chance: once in a thousand blocks */
#define NEAR          1024u /* blocks that malloc is asked for until one comes again */
#define HELD          8u
#define TOGETHER      32u
#define TRACED        40u
#define ROUNDS        20u
#define SENSELESS     0x5a5a5a5a5a5a5a5aull
#define NULL_PAGE     65536u
#define SIFTED        16u /* functions that are tried in one fork */
#define SIFTED_MALLOC 8u  /* that of another allocator may be damaged and not be noticed */

struct block {
	uint64_t at, bytes;
	uint8_t byte; /* all of it */
};

static uint64_t extra(enum as_proof_form form)
{
	return form == AS_PROOF_FLAGS ? 0 : form == AS_PROOF_ALIGNED ? 16 : SENSELESS;
}

/* ---- blocks ---- */

static bool fill(const struct as_trial_run *r, const struct block *b)
{
	AS_CLEANUP(as_free_autop) uint8_t *p = as_xmalloc(b->bytes);

	memset(p, b->byte, b->bytes);
	return as_trial_write(r, b->at, p, b->bytes);
}

static bool holds_bytes(const struct as_trial_run *r, uint64_t at, uint64_t bytes, uint8_t byte)
{
	AS_CLEANUP(as_free_autop) uint8_t *p = as_xmalloc(bytes);

	if (!as_trial_read(r, at, p, bytes))
		return false;
	for (uint64_t i = 0; i < bytes; i++) {
		if (p[i] != byte)
			return false;
	}
	return true;
}

static bool holds(const struct as_trial_run *r, const struct block *b)
{
	return holds_bytes(r, b->at, b->bytes, b->byte);
}

/* Not on the stack, nor in memory of ours. */
static bool is_block(const struct as_trial_run *r, uint64_t at)
{
	const struct as_trial *t = r->t;

	return at >= NULL_PAGE && at % 8 == 0 && at - (t->stack_avma - BIG) > 2 * BIG &&
	       at - t->page_avma > OF_MANY;
}

static bool are_apart(const struct block *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < i; j++) {
			if (b[i].at < b[j].at + b[j].bytes && b[j].at < b[i].at + b[i].bytes)
				return false;
		}
	}
	return true;
}

static bool all_hold(const struct as_trial_run *r, const struct block *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!holds(r, &b[i]))
			return false;
	}
	return true;
}

/* ---- calls ---- */

/* A block of an allocating function whatever its kind; 0: none, or the call failed. */
static uint64_t get(struct as_trial_run *r, uint64_t avma, enum as_rt_kind kind,
		    enum as_proof_form form, uint64_t bytes)
{
	const uint64_t x = extra(form), s = SENSELESS;
	const uint64_t slot = r->t->scratch_avma, zero = 0;
	uint64_t got = 0, align = form == AS_PROOF_ALIGNED ? 64 : ALIGNMENT;

	switch (kind) {
	case AS_RT_SIZE:
	case AS_RT_NEW:
		return as_trial_call(r, avma, (uint64_t[4]){bytes, x, form ? x : s, s}, &got)
			       ? got
			       : 0;
	case AS_RT_COUNT:
		return as_trial_call(r, avma, (uint64_t[4]){1, bytes, s, s}, &got) ? got : 0;
	case AS_RT_REALLOC:
		return as_trial_call(r, avma, (uint64_t[4]){0, bytes, x, s}, &got) ? got : 0;
	case AS_RT_ALIGN:
		return as_trial_call(r, avma, (uint64_t[4]){align, bytes, s, s}, &got) ? got
										       : 0;
	default:
		break;
	}
	if (kind != AS_RT_POINTER || !as_trial_write(r, slot, &zero, 8) ||
	    !as_trial_call(r, avma, (uint64_t[4]){slot, align, bytes, s}, &got) ||
	    (uint32_t)got || !as_trial_read(r, slot, &got, 8))
		return 0;
	return got;
}

static uint64_t give(const struct as_proof *p, struct as_trial_run *r, uint64_t bytes)
{
	return get(r, p->give, AS_RT_SIZE, p->give_form, bytes);
}

static bool take_by(struct as_trial_run *r, uint64_t avma, enum as_proof_form form, uint64_t at,
		    uint64_t bytes)
{
	uint64_t got, s = SENSELESS;

	if (form == AS_PROOF_ALONE)
		return as_trial_call(r, avma, (uint64_t[4]){at, s, s, s}, &got);
	return as_trial_call(
		r, avma, (uint64_t[4]){at, bytes, form == AS_PROOF_FLAGS ? 0 : 16, s}, &got);
}

/* Whether malloc gave out `at` again, and none of what is held. */
static bool is_among(uint64_t at, const uint64_t *got, size_t n, const uint64_t *held,
		     size_t nheld)
{
	bool again = false;

	for (size_t i = 0; i < n; i++) {
		again |= got[i] == at;
		for (size_t k = 0; k < nheld; k++) {
			if (held[k] != at && got[i] == held[k])
				return false;
		}
	}
	return again;
}

static struct as_trial_repeat small_blocks(const struct as_proof *p, size_t n)
{
	return (struct as_trial_repeat){
		.avma = p->give, .arg = {SMALL, extra(p->give_form)}, .n = n};
}

static bool comes_again(const struct as_proof *p, struct as_trial_run *r, uint64_t at,
			const uint64_t *held, size_t nheld)
{
	AS_CLEANUP(as_free_autop) uint64_t *got = as_xcalloc(NEAR, sizeof *got);
	const struct as_trial_repeat q = small_blocks(p, NEAR);
	bool came_back;

	return as_trial_repeat(r, &q, got, &came_back) && is_among(at, got, NEAR, held, nheld);
}

/* ---- kinds ---- */

/* Two small blocks and two big ones, apart, whole, of any allocating kind. */
static bool gives_blocks(struct as_trial_run *r, uint64_t avma, enum as_rt_kind kind,
			 enum as_proof_form form, uint64_t mask)
{
	struct block b[4];

	for (size_t i = 0; i < AS_ARRAY_LEN(b); i++) {
		b[i].bytes = i < 2 ? SMALL : BIG;
		b[i].byte = (uint8_t)(0xa1 + i);
		b[i].at = get(r, avma, kind, form, b[i].bytes);
		if (!is_block(r, b[i].at) || b[i].at & mask || !fill(r, &b[i]))
			return false;
	}
	return are_apart(b, AS_ARRAY_LEN(b)) && all_hold(r, b, AS_ARRAY_LEN(b));
}

/* The second argument is the alignment, and the first is not: memalign may look like it. */
static bool aligns_by_second(struct as_trial_run *r, uint64_t avma)
{
	const uint64_t s = SENSELESS;
	uint64_t a, b;

	return as_trial_call(r, avma, (uint64_t[4]){SMALL, ALIGNMENT, s, s}, &a) &&
	       as_trial_call(r, avma, (uint64_t[4]){SMALL, ALIGNMENT, s, s}, &b) &&
	       is_block(r, a) && is_block(r, b) && a != b && !((a | b) & (ALIGNMENT - 1));
}

/* Small blocks lie together, and most of them come without the kernel: else it makes mappings, or
 * moves the end of the heap. */
static bool has_a_heap(struct as_trial_run *r, uint64_t avma, enum as_proof_form form)
{
	const struct as_trial_repeat q = {
		.avma = avma, .arg = {SMALL, extra(form)}, .n = TOGETHER};
	size_t before = r->syscalls;
	uint64_t got[TOGETHER];
	bool came_back;

	if (!as_trial_repeat(r, &q, got, &came_back) || r->syscalls - before > TOGETHER / 4)
		return false;
	for (size_t i = 1; i < TOGETHER; i++) {
		if (got[i] >> 12 == got[i - 1] >> 12)
			return true;
	}
	return false;
}

static bool is_malloc(struct as_trial_run *r, uint64_t avma, enum as_proof_form form)
{
	return (form != AS_PROOF_ALIGNED || aligns_by_second(r, avma)) &&
	       gives_blocks(r, avma, AS_RT_SIZE, form, 7) &&
	       !get(r, avma, AS_RT_SIZE, form, HUGE_SIZE) && !r->failed &&
	       has_a_heap(r, avma, form);
}

static bool takes_blocks(const struct as_proof *p, struct as_trial_run *r, uint64_t avma,
			 enum as_proof_form form)
{
	uint64_t held[HELD];

	for (size_t i = 0; i < HELD; i++) {
		held[i] = give(p, r, SMALL);
		if (!is_block(r, held[i]) ||
		    !fill(r, &(struct block){held[i], SMALL, (uint8_t)(i + 1)}))
			return false;
	}
	if (!take_by(r, avma, form, held[3], SMALL))
		return false;
	for (size_t i = 0; i < HELD; i++) {
		if (i != 3 && !holds_bytes(r, held[i], SMALL, (uint8_t)(i + 1)))
			return false;
	}
	return comes_again(p, r, held[3], held, HELD);
}

/*
 * A part of the allocator takes blocks too, often a second time (those that another thread gave back).
 * It has no use for a size, and none for null; a free of the program has one or the other.
 */
static bool is_free(const struct as_proof *p, struct as_trial_run *r, uint64_t avma,
		    enum as_proof_form form)
{
	struct as_trial_run other;
	bool as_alone;

	if (!takes_blocks(p, r, avma, form))
		return false;
	if (form == AS_PROOF_ALONE)
		return take_by(r, avma, form, 0, 0);
	if (!as_trial_begin(p->trial, false, &other))
		return false;
	as_alone = takes_blocks(p, &other, avma, AS_PROOF_ALONE);
	as_trial_end(&other);
	return !as_alone;
}

/* What p->take takes, it gives again: its blocks are of that allocator. */
static bool gives_again(const struct as_proof *p, struct as_trial_run *r, uint64_t avma,
			enum as_proof_form form)
{
	const struct as_proof own = {.trial = p->trial, .give = avma, .give_form = form};

	return p->take && takes_blocks(&own, r, p->take, p->take_form);
}

/* Memory that was written to and given back, so that zeros have to be made. */
static bool soil(const struct as_proof *p, struct as_trial_run *r, uint64_t bytes)
{
	uint64_t at[ROUNDS];

	for (size_t i = 0; i < ROUNDS; i++) {
		at[i] = give(p, r, bytes);
		if (!is_block(r, at[i]) || !fill(r, &(struct block){at[i], bytes, 0xff}))
			return false;
	}
	for (size_t i = 0; p->take && i < ROUNDS; i++) {
		if (!take_by(r, p->take, p->take_form, at[i], bytes))
			return false;
	}
	return true;
}

/* Where blocks come from and what is in them, after some that were written to were given back. */
static bool trace_of(const struct as_proof *p, uint64_t avma, enum as_proof_form form,
		     uint64_t *ret, size_t n)
{
	static const uint32_t list[] = {SMALL, 100, 700, OF_MANY};
	struct as_trial_run r;
	bool ok = p->take && as_trial_begin(p->trial, false, &r);

	for (size_t i = 0; ok && i < n; i++) {
		uint64_t bytes = list[i % AS_ARRAY_LEN(list)], at = 0;
		uint8_t in[OF_MANY];

		if (i < AS_ARRAY_LEN(list))
			ok = soil(p, &r, bytes);
		/* alignments that no block has by itself */
		const uint64_t by = form == AS_PROOF_ALIGNED ? 64u << (i & 8) : extra(form);

		ok = ok && as_trial_call(&r, avma,
					 (uint64_t[4]){bytes, by, SENSELESS, SENSELESS}, &at);
		ok = ok && is_block(&r, at) && as_trial_read(&r, at, in, bytes);
		ret[i] = ok ? at ^ as_hash64(in, bytes) : 0;
	}
	if (p->take)
		as_trial_end(&r);
	return ok;
}

bool as_proof_same(const struct as_proof *p, enum as_proof_form form, uint64_t avma,
		   uint64_t instead)
{
	uint64_t a[TRACED], b[TRACED];

	return trace_of(p, avma, form, a, TRACED) && trace_of(p, instead, form, b, TRACED) &&
	       !memcmp(a, b, sizeof a);
}

/* valloc, pvalloc. */
static bool is_page_malloc(const struct as_proof *p, struct as_trial_run *r, uint64_t avma)
{
	return gives_blocks(r, avma, AS_RT_SIZE, AS_PROOF_PAGES, 4095) &&
	       !get(r, avma, AS_RT_SIZE, AS_PROOF_PAGES, HUGE_SIZE) && !r->failed &&
	       gives_again(p, r, avma, AS_PROOF_PAGES);
}

/*
 * operator new. It cannot come back when there is no memory: what it throws finds nobody to catch it,
 * and that ends in abort(). So that is the last that is asked of it.
 */
static bool is_new(const struct as_proof *p, struct as_trial_run *r, uint64_t avma,
		   enum as_proof_form form)
{
	if ((form == AS_PROOF_ALIGNED && !aligns_by_second(r, avma)) ||
	    !gives_blocks(r, avma, AS_RT_NEW, form, 7) || !has_a_heap(r, avma, form) ||
	    !gives_again(p, r, avma, form))
		return false;
	(void)get(r, avma, AS_RT_NEW, form, HUGE_SIZE);
	return r->failed && r->aborted;
}

static bool is_realloc(const struct as_proof *p, struct as_trial_run *r, uint64_t avma,
		       enum as_proof_form form)
{
	const uint64_t x = extra(form), s = SENSELESS;
	struct block old = {give(p, r, SMALL), SMALL, 0xb1};
	struct block beside = {give(p, r, SMALL), SMALL, 0xb2}, new = {0, OF_MANY, 0xb3};
	uint64_t got;

	if (!is_block(r, old.at) || !is_block(r, beside.at) || !fill(r, &old) ||
	    !fill(r, &beside) ||
	    !as_trial_call(r, avma, (uint64_t[4]){old.at, OF_MANY, x, s}, &new.at) ||
	    !is_block(r, new.at) || !holds_bytes(r, new.at, SMALL, old.byte) ||
	    !fill(r, &new) || !holds(r, &beside))
		return false;
	if (new.at != old.at && !comes_again(p, r, old.at, &beside.at, 1))
		return false;
	if (!as_trial_call(r, avma, (uint64_t[4]){new.at, HUGE_SIZE, x, s}, &got) || got ||
	    !holds(r, &new) ||
	    !as_trial_call(r, avma, (uint64_t[4]){new.at, SMALL - 4, x, s}, &got) ||
	    !is_block(r, got) || !holds_bytes(r, got, SMALL - 4, new.byte))
		return false;
	return form != AS_PROOF_ALONE || gives_blocks(r, avma, AS_RT_REALLOC, form, 7);
}

static bool is_calloc(const struct as_proof *p, struct as_trial_run *r, uint64_t avma)
{
	const uint64_t s = SENSELESS, n = 7, size = 100, half = 1ull << 33;
	struct block b[ROUNDS];
	uint64_t got;

	if (!soil(p, r, n * size))
		return false;
	for (size_t i = 0; i < ROUNDS; i++) {
		b[i] = (struct block){0, n * size, (uint8_t)(0xc0 + i)};
		if (!as_trial_call(r, avma, (uint64_t[4]){n, size, s, s}, &b[i].at) ||
		    !is_block(r, b[i].at) || !holds_bytes(r, b[i].at, n * size, 0) ||
		    !fill(r, &b[i]))
			return false;
	}
	return are_apart(b, ROUNDS) && all_hold(r, b, ROUNDS) &&
	       as_trial_call(r, avma, (uint64_t[4]){half, half, s, s}, &got) && !got;
}

/* The alignment is the first argument, and is what is asked for. */
static bool is_aligned(struct as_trial_run *r, uint64_t avma, enum as_rt_kind kind)
{
	return gives_blocks(r, avma, kind, AS_PROOF_ALONE, ALIGNMENT - 1) &&
	       gives_blocks(r, avma, kind, AS_PROOF_ALIGNED, 63) &&
	       !get(r, avma, kind, AS_PROOF_ALONE, HUGE_SIZE - ALIGNMENT) && !r->failed;
}

static bool shows(const struct as_proof *p, struct as_trial_run *r, enum as_rt_kind kind,
		  enum as_proof_form form, uint64_t avma)
{
	switch (kind) {
	case AS_RT_SIZE:
		return form == AS_PROOF_PAGES ? is_page_malloc(p, r, avma)
					      : is_malloc(r, avma, form);
	case AS_RT_NEW:
		return is_new(p, r, avma, form);
	case AS_RT_FREE:
		return is_free(p, r, avma, form);
	case AS_RT_REALLOC:
		return is_realloc(p, r, avma, form);
	case AS_RT_COUNT:
		return is_calloc(p, r, avma);
	case AS_RT_ALIGN:
	case AS_RT_POINTER:
		return is_aligned(r, avma, kind);
	default:
		return false;
	}
}

bool as_proof_try(const struct as_proof *p, enum as_rt_kind kind, enum as_proof_form form,
		  uint64_t avma)
{
	struct as_trial_run r;
	bool ok;

	if ((kind != AS_RT_SIZE && !p->give) || !as_trial_begin(p->trial, false, &r))
		return false;
	ok = shows(p, &r, kind, form, avma);
	as_trial_end(&r);
	return ok;
}

/* ---- what is not even worth a fork of its own ---- */

/*
 * Most functions fail at once, by a signal. They are tried one after the other in the same fork, with
 * one call each. What one of them does to the memory there may make others fail; so malloc must still
 * work after each of them. The one after which it does not is tried once more alone, and the rest in
 * another fork.
 */
static bool is_sound(const struct as_proof *p, struct as_trial_run *r)
{
	const struct as_trial_repeat q = small_blocks(p, HELD);
	uint64_t got[HELD];
	bool came_back;

	if (!as_trial_mend(r) || !as_trial_repeat(r, &q, got, &came_back))
		return false;
	for (size_t i = 0; i < HELD; i++) {
		if (!is_block(r, got[i]))
			return false;
	}
	return true;
}

static bool may_free(const struct as_proof *p, struct as_trial_run *r, enum as_proof_form form,
		     uint64_t avma)
{
	AS_CLEANUP(as_free_autop) uint64_t *got = as_xcalloc(NEAR, sizeof *got);
	struct as_trial_repeat q = small_blocks(p, HELD);
	uint64_t held[HELD], x = extra(form);
	bool came_back;

	if (!as_trial_repeat(r, &q, held, &came_back))
		return true; /* not sound: undecided */
	q = small_blocks(p, NEAR);
	q.before = avma;
	memcpy(q.before_arg,
	       (uint64_t[4]){held[3], form ? SMALL : SENSELESS,
			     form == AS_PROOF_FLAGS ? 0
			     : form                 ? 16
						    : x,
			     SENSELESS},
	       sizeof q.before_arg);
	if (!as_trial_repeat(r, &q, got, &came_back))
		return came_back;
	return is_among(held[3], got, NEAR, held, HELD);
}

static bool may_be(const struct as_proof *p, struct as_trial_run *r, enum as_rt_kind kind,
		   enum as_proof_form form, uint64_t avma)
{
	const uint64_t x = extra(form), s = SENSELESS;
	uint64_t at;

	if (kind == AS_RT_FREE)
		return may_free(p, r, form, avma);
	if (kind != AS_RT_REALLOC)
		return is_block(r, get(r, avma, kind, form, SMALL));
	at = give(p, r, SMALL);
	return as_trial_call(r, avma, (uint64_t[4]){at, OF_MANY, x, s}, &at) && is_block(r, at);
}

/* In one fork. Returns how many left it as it has to be; the one behind them did not. */
static size_t sift_together(const struct as_proof *p, enum as_rt_kind kind,
			    enum as_proof_form form, struct as_proof_sift *list, size_t n)
{
	struct as_trial_run r;
	size_t i;

	if (!as_trial_begin(p->trial, true, &r))
		return 0;
	for (i = 0; i < n; i++) {
		list[i].may_be = as_trial_mend(&r) && may_be(p, &r, kind, form, list[i].avma);
		list[i].hung = !r.pid; /* it ran out of time, mostly */
		list[i].may_be &= !list[i].hung;
		if (!r.pid || (n > 1 && !is_sound(p, &r)))
			break;
	}
	as_trial_end(&r);
	return i;
}

void as_proof_sift(const struct as_proof *p, enum as_rt_kind kind, enum as_proof_form form,
		   struct as_proof_sift *list, size_t n)
{
	/* as long as no malloc is known, nothing tells whether the memory is sound */
	size_t step = !p->give                                       ? 1
		      : kind == AS_RT_SIZE && form == AS_PROOF_ALONE ? SIFTED_MALLOC
								     : SIFTED;

	while (n) {
		size_t some = AS_MIN(step, n);
		size_t good = sift_together(p, kind, form, list, some);

		if (good < some) {
			/* alone: what others left is not held against it */
			if (some > 1)
				(void)sift_together(p, kind, form, list + good, 1);
			some = good + 1;
		}
		list += some;
		n -= some;
	}
}

/* ---- ways ---- */

/* New blocks and used ones, cached and not, of all classes. */
static const uint32_t sizes[] = {SMALL, SMALL, SMALL, 100, OF_MANY, 40000, BIG, 3000000};

/* With alignments that an allocator has by itself, and others. */
static bool way_of_aligned(struct as_trial_run *r, struct as_proof_member *m, uint32_t bytes,
			   int round)
{
	const uint64_t s = SENSELESS, align = round ? 4096 : 16;
	uint64_t at;

	return as_trial_call(r, m->avma, (uint64_t[4]){bytes, align, s, s}, &at) &&
	       is_block(r, at);
}

/* One call of it, the last of the run. */
static bool way_of(const struct as_proof *p, struct as_trial_run *r, struct as_proof_member *m,
		   uint32_t bytes, int round)
{
	enum as_proof_form form = (enum as_proof_form)m->form;
	uint64_t at = 0;

	if ((m->kind == AS_RT_SIZE || m->kind == AS_RT_NEW) && form == AS_PROOF_ALIGNED)
		return way_of_aligned(r, m, bytes, round);
	if (m->kind != AS_RT_FREE && m->kind != AS_RT_REALLOC)
		return is_block(r, get(r, m->avma, (enum as_rt_kind)m->kind, form, bytes));
	/* not the first of its page each time, which some treat in another way */
	for (int i = 0; i < 3; i++)
		at = give(p, r, m->kind == AS_RT_FREE ? bytes : SMALL);
	if (!is_block(r, at))
		return false;
	if (m->kind == AS_RT_FREE)
		return take_by(r, m->avma, form, at, bytes);
	return as_trial_call(r, m->avma, (uint64_t[4]){at, bytes, extra(form), SENSELESS},
			     &at) &&
	       is_block(r, at);
}

bool as_proof_owned(const struct as_proof *p, const struct as_proof_member *m)
{
	struct as_trial_run r;
	bool ok = false;
	uint64_t at;

	if (!p->take || !as_trial_begin(p->trial, false, &r))
		return false;
	at = get(&r, m->avma, (enum as_rt_kind)m->kind, (enum as_proof_form)m->form, SMALL);
	if (is_block(&r, at) && fill(&r, &(struct block){at, SMALL, 0xd1}))
		ok = take_by(&r, p->take, p->take_form, at, SMALL) && is_sound(p, &r);
	as_trial_end(&r);
	return ok;
}

bool as_proof_ways(const struct as_proof *p, struct as_proof_member *m, const uint64_t *other,
		   size_t n)
{
	struct as_trial_run r;
	bool ok = as_trial_begin(p->trial, false, &r);

	m->through = 0;
	m->always = true;
	for (size_t i = 0; ok && i < n; i++)
		ok = as_trial_watch(&r, other[i]);
	for (int round = 0; ok && round < 2; round++) {
		for (size_t i = 0; ok && i < AS_ARRAY_LEN(sizes); i++) {
			ok = way_of(p, &r, m, sizes[i], round);
			m->through |= r.entered;
			m->always &= r.entered != 0;
		}
	}
	m->changes_r10 = r.changes_r10;
	m->changes_r11 = r.changes_r11;
	as_trial_end(&r);
	return ok;
}
