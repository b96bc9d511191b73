/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Layouts whose users keep a pointer that does not lead to the beginning of the block. The first four
 * are those that memcheck's manual names (--leak-check-heuristics); the last two are facts about Rust's
 * library: Arc and Rc keep two counts before the value and into_raw gives out the value's address;
 * hashbrown's table is known by its control bytes, which lie behind the buckets.
 */
#include <string.h>

#include "heap/leak_priv.h"

enum {
	WORD = 8,
	VTABLE_WORDS = 20, /* searched for functions */
	VTABLE_FUNCTIONS = 2,
	HASH_GROUP = 16, /* control bytes that are repeated at the end */
	HASH_LOOK = 64,
	COUNT_MAX = 1 << 20, /* of owners of one Arc */
	ALIGN_MAX = 4096,
};

static bool read_words(const struct as_leak_memory *m, uint64_t avma, size_t n, uint64_t *ret)
{
	struct as_leak_range r = {avma, avma + n * WORD};

	return m->read(m->ctx, &r, 1, ret) == n * WORD;
}

static bool is_power_of_2(uint64_t v)
{
	return v && !(v & (v - 1));
}

/* ---- C++ ---- */

static bool is_std_string(const struct as_leak_block *b, uint64_t offset, const uint64_t *word)
{
	return offset == 3 * WORD && b->bytes > 3 * WORD && word[0] <= word[1] &&
	       word[1] == b->bytes - 3 * WORD - 1;
}

static bool is_length64(const struct as_leak_block *b, uint64_t offset, const uint64_t *word)
{
	return offset == WORD && word[0] && word[0] == b->bytes - WORD;
}

static bool is_new_array(const struct as_leak_block *b, uint64_t offset, const uint64_t *word)
{
	return offset == WORD && word[0] && (b->bytes - WORD) % word[0] == 0;
}

/* A table of addresses, of which two at least are functions. */
static bool is_vtable(const struct as_leak_memory *m, uint64_t avma)
{
	uint64_t word[VTABLE_WORDS];
	size_t n = VTABLE_WORDS, functions = 0;

	if (avma % WORD || m->kind(m->ctx, avma) != AS_LEAK_DATA)
		return false;
	while (n && !read_words(m, avma, n, word))
		n /= 2;
	for (size_t i = 0; i < n && functions < VTABLE_FUNCTIONS; i++)
		functions += m->kind(m->ctx, word[i]) == AS_LEAK_CODE;
	return functions == VTABLE_FUNCTIONS;
}

static bool is_base_class(const struct as_leak_memory *m, const struct as_leak_block *b,
			  uint64_t offset, uint64_t first)
{
	uint64_t inner;

	return m->kind && offset % WORD == 0 && offset + WORD <= b->bytes &&
	       m->kind(m->ctx, first) == AS_LEAK_DATA &&
	       read_words(m, b->low + offset, 1, &inner) && is_vtable(m, first) &&
	       is_vtable(m, inner);
}

/* ---- Rust ---- */

/* A value of larger alignment lies behind that many bytes. */
static bool is_rust_arc(uint64_t offset, const uint64_t *word)
{
	return offset >= 2 * WORD && offset <= ALIGN_MAX && is_power_of_2(offset) && word[0] &&
	       word[1] && word[0] <= COUNT_MAX && word[1] <= COUNT_MAX;
}

/* One of the first bytes is that of an empty bucket, and none is of no kind. */
static bool are_controls(const uint8_t *c, size_t n)
{
	size_t empty = 0;

	for (size_t i = 0; i < n; i++) {
		if (c[i] > 0x80 && c[i] < 0xff)
			return false;
		empty += c[i] == 0xff;
	}
	return empty > 0;
}

static bool is_rust_hash(const struct as_leak_memory *m, const struct as_leak_block *b,
			 uint64_t offset)
{
	uint64_t tail = b->bytes - offset, buckets = tail - HASH_GROUP;
	uint8_t c[HASH_LOOK + HASH_GROUP];
	size_t look = (size_t)AS_MIN(buckets, (uint64_t)HASH_LOOK), same;
	uint64_t at = b->low + offset;
	struct as_leak_range r[2];

	if (offset % HASH_GROUP || tail <= HASH_GROUP || !is_power_of_2(buckets) || buckets < 4)
		return false;
	/* Of small tables the bytes from `buckets` to 16 are empty and what follows repeats. */
	same = (size_t)AS_MIN(buckets, (uint64_t)HASH_GROUP);
	r[0] = (struct as_leak_range){at, at + look};
	r[1] = (struct as_leak_range){at + AS_MAX(buckets, (uint64_t)HASH_GROUP),
				      at + AS_MAX(buckets, (uint64_t)HASH_GROUP) + same};
	return m->read(m->ctx, r, 2, c) == look + same && are_controls(c, look) &&
	       memcmp(c, c + look, same) == 0;
}

enum as_leak_inside as_leak_inside_of(const struct as_leak_memory *m,
				      const struct as_leak_block *b, uint64_t avma)
{
	uint64_t offset = avma - b->low, word[2] = {0, 0};

	if (offset % WORD || b->bytes <= WORD ||
	    !read_words(m, b->low, b->bytes < 2 * WORD ? 1 : 2, word))
		return AS_LEAK_START;
	if (is_std_string(b, offset, word))
		return AS_LEAK_STD_STRING;
	if (is_length64(b, offset, word))
		return AS_LEAK_LENGTH64;
	if (is_new_array(b, offset, word))
		return AS_LEAK_NEW_ARRAY;
	if (is_base_class(m, b, offset, word[0]))
		return AS_LEAK_BASE_CLASS;
	if (is_rust_arc(offset, word))
		return AS_LEAK_RUST_ARC;
	return is_rust_hash(m, b, offset) ? AS_LEAK_RUST_HASH : AS_LEAK_START;
}
