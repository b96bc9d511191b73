/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Any bytes as a memory with blocks in it: what a byte of its first part says. Each block gets a class,
 * and what is indirect an owner that is lost. */
#include <stdlib.h>
#include <string.h>
#include "heap/leak.h"

#define BASE 0x10000ull

static const uint8_t *memory;
static size_t bytes;

static size_t read_memory(void *ctx, const struct as_leak_range *v, size_t n, void *buf)
{
	size_t at = 0;

	(void)ctx;
	for (size_t i = 0; i < n; i++) {
		size_t len = v[i].high - v[i].low;

		if (v[i].low < BASE || v[i].high > BASE + bytes)
			break;
		memcpy((uint8_t *)buf + at, memory + (v[i].low - BASE), len);
		/* pointers are likelier than by chance */
		for (size_t k = 0; k + 8 <= len; k += 8) {
			uint64_t word;

			memcpy(&word, (uint8_t *)buf + at + k, 8);
			word = word % 3 ? BASE + word % (bytes + 1) : word;
			memcpy((uint8_t *)buf + at + k, &word, 8);
		}
		at += len;
	}
	return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	const struct as_leak_memory m = {NULL, read_memory, NULL, NULL};
	size_t head = n ? AS_MIN((size_t)p[0], n - 1) : 0;
	struct as_heap_leaks sum = {0};
	struct as_leaks l;
	uint64_t at = BASE, total = 0;

	if (n < 2)
		return 0;
	memory = p + 1 + head;
	bytes = n - 1 - head;
	as_leaks_init(&l, &m);
	for (size_t i = 0; i < head; i++) {
		uint64_t size = p[1 + i] % 97;

		as_leaks_add(&l, at, i % 50 == 49 ? UINT64_MAX - size : size, (uint32_t)i % 5);
		at += size / 2 + p[1 + i] / 32 * 8;
	}
	as_leaks_seal(&l);
	as_leaks_root_word(&l, BASE + head);
	as_leaks_root(&l, BASE, BASE + AS_MIN(bytes, (size_t)64));
	as_leaks_finish(&l);
	as_heap_leaks_sum(&l, &sum);
	for (size_t i = 0; i < l.blocks.n; i++) {
		uint32_t owner = l.owner[i];

		if ((owner != UINT32_MAX) != (l.blocks.v[i].class <= AS_LEAK_INDIRECT) ||
		    (owner != UINT32_MAX && l.blocks.v[owner].class != AS_LEAK_LOST))
			abort();
	}
	for (unsigned c = 0; c < AS_LEAK_CLASSES; c++)
		total += sum.sum[c].blocks;
	if (total != l.blocks.n)
		abort();
	as_vec_clear(&sum.rows);
	as_leaks_clear(&l);
	return 0;
}
