/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Of what resident memory consists: see heap/resident.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "snapshot/snapshot_priv.h"

#define PAGE       4096ull
#define FEW        (PAGE / 10) /* live bytes of a page that is pinned are fewer */
#define SIZE_FLAGS 7ull        /* of a chunk's size */
#define SLACK_MAX  (128ull << 10)

/* What lies around a block that is not free and was not asked for. */
struct around {
	uint32_t before, after;
};
struct counting {
	struct as_snapshot *s;
	struct as_heap_resident *to;
	struct around *around;         /* by block */
	struct as_map64 named, pinned; /* kind and name, tally -> index */
	struct as_intern names;
};

/* ---- rounding ---- */

/* Sizes of jemalloc and mimalloc: four for each power of two, 16 bytes apart at least. */
static uint64_t geometric(uint64_t n)
{
	uint64_t step = 16;

	if (n <= 8)
		return 8;
	if (n > 64)
		step = 1ull << (61 - __builtin_clzll(n - 1));
	return (n + step - 1) & ~(step - 1);
}

static bool has_headers(const struct as_area *a)
{
	return a->arena >= AS_ARENA_MAIN;
}

/* A chunk of glibc is size & ~7 bytes long from 8 before the block on; 16, when it is mapped alone. */
static struct around glibc_around(const struct as_leak_block *b, uint64_t header, bool mapped)
{
	uint64_t before = mapped ? 16 : 8, size = header & ~SIZE_FLAGS;

	if (size % 16 || size < b->bytes + before || size - b->bytes - before > SLACK_MAX)
		return (struct around){0, 0};
	return (struct around){(uint32_t)before, (uint32_t)(size - b->bytes - before)};
}

/* Headers of a number of blocks at once. */
static void read_headers(struct counting *c, const struct as_area *a, size_t first, size_t n)
{
	const struct as_leak_block *b = c->s->leaks.blocks.v;
	struct as_leak_range range[AS_LEAK_BATCH];
	uint64_t header[AS_LEAK_BATCH];

	while (n) {
		size_t part = AS_MIN(n, (size_t)AS_LEAK_BATCH), got;

		for (size_t i = 0; i < part; i++)
			range[i] =
				(struct as_leak_range){b[first + i].low - 8, b[first + i].low};
		got = c->s->memory.read(c->s->memory.ctx, range, part, header) / 8;
		for (size_t i = 0; i < got; i++)
			c->around[first + i] = glibc_around(&b[first + i], header[i],
							    a->arena == AS_ARENA_MAPPED);
		got += got < part; /* one that cannot be read has none */
		first += got;
		n -= got;
	}
}

static void find_around(struct counting *c)
{
	c->around = as_xcalloc(c->s->leaks.blocks.n + 1, sizeof *c->around);
	for (size_t i = 0; i < c->s->maps.map.n; i++) {
		const struct as_area *a = &c->s->area[i];

		if (c->s->is_glibc && has_headers(a)) {
			read_headers(c, a, a->first_block, a->end_block - a->first_block);
			continue;
		}
		for (size_t k = a->first_block; c->s->is_geometric && k < a->end_block; k++) {
			uint64_t bytes = c->s->leaks.blocks.v[k].bytes;

			if (bytes < SLACK_MAX)
				c->around[k].after = (uint32_t)(geometric(bytes) - bytes);
		}
	}
}

/* ---- parts ---- */

static struct as_resident_part *part_of(struct counting *c, enum as_resident_kind kind,
					uint32_t tally, const char *name)
{
	uint64_t id = name ? as_intern_str(&c->names, name) + 1ull : 0;
	bool fresh;
	uint64_t *at = as_map64_put(&c->named,
				    (uint64_t)kind << 60 | (uint64_t)tally << 28 | id, &fresh);

	if (fresh) {
		*at = c->to->parts.n;
		as_vec_push(&c->to->parts,
			    (struct as_resident_part){.kind = kind,
						      .tally = tally,
						      .name = name ? as_xstrdup(name) : NULL});
	}
	return &c->to->parts.v[*at];
}

static void add_part(struct counting *c, enum as_resident_kind kind, const char *name,
		     uint64_t bytes, uint64_t mapped)
{
	struct as_resident_part *p = part_of(c, kind, AS_RESIDENT_NO_TALLY, name);

	p->bytes += bytes;
	p->mapped_bytes += mapped;
}

struct of_blocks {
	uint64_t live, around, mapped;
};

/* Blocks that lie in [low, high) of the mapping. */
static struct of_blocks count_blocks(struct counting *c, size_t i, uint64_t low, uint64_t high)
{
	const struct as_smap *m = &c->s->maps.map.v[i];
	const struct as_area *a = &c->s->area[i];
	struct of_blocks sum = {0, 0, 0};
	size_t k = AS_MAX(as_leaks_first(&c->s->leaks, low), a->first_block);

	for (; k < a->end_block && c->s->leaks.blocks.v[k].low < high; k++) {
		const struct as_leak_block *b = &c->s->leaks.blocks.v[k];
		uint64_t end = b->low + b->bytes, next = c->s->leaks.blocks.v[k + 1].low;

		sum.live += as_smap_resident(m, AS_MAX(b->low, low), AS_MIN(end, high));
		sum.around +=
			as_smap_resident(m, AS_MAX(b->low - c->around[k].before, low), b->low);
		sum.around += as_smap_resident(
			m, end, AS_MIN(AS_MIN(end + c->around[k].after, high), next));
		sum.mapped += b->bytes;
	}
	return sum;
}

/* The program's own mappings, as far as they lie in this one; what they take of it is returned. */
static struct of_blocks count_ranges(struct counting *c, size_t i)
{
	const struct as_smap *m = &c->s->maps.map.v[i];
	struct of_blocks sum = {0, 0, 0};

	for (size_t k = as_snapshot_first_range(c->s, m->low);
	     k < c->s->ranges.n && c->s->ranges.v[k].low < m->high; k++) {
		const struct as_heap_range *r = &c->s->ranges.v[k];
		uint64_t low = AS_MAX(r->low, m->low), high = AS_MIN(r->high, m->high);
		struct of_blocks inside = count_blocks(c, i, low, high);
		uint64_t bytes = as_smap_resident(m, low, high);
		struct as_resident_part *p = part_of(c, AS_RESIDENT_MAPPING, r->tally, NULL);

		bytes -= AS_MIN(bytes, inside.live + inside.around);
		p->bytes += bytes;
		p->mapped_bytes += high - low;
		sum.live += bytes;
		sum.mapped += high - low;
	}
	return sum;
}

static const char *arena_name(uint32_t arena, char *buffer, size_t n)
{
	if (arena == AS_ARENA_MAIN)
		return "main arena";
	if (arena == AS_ARENA_MAPPED)
		return "blocks with a mapping of their own";
	if (arena < AS_ARENA_FIRST)
		return "allocator";
	snprintf(buffer, n, "arena %u", arena - AS_ARENA_FIRST + 2);
	return buffer;
}

/* The zeroed rest of a module's data lies in a mapping without a name behind it. */
static const struct as_smap *module_before(const struct as_snapshot *s, size_t i)
{
	const struct as_smap *m = &s->maps.map.v[i], *before = i ? m - 1 : NULL;

	return before && before->high == m->low && before->kind == AS_SMAP_FILE &&
			       before->write && before->path
		       ? before
		       : NULL;
}

static void count_rest(struct counting *c, size_t i, uint64_t bytes, uint64_t mapped)
{
	const struct as_area *a = &c->s->area[i];
	const struct as_smap *m = &c->s->maps.map.v[i], *module = module_before(c->s, i);
	char name[32];

	if (a->kind == AS_AREA_ALLOCATOR)
		add_part(c, AS_RESIDENT_HELD, arena_name(a->arena, name, sizeof name), bytes,
			 mapped);
	else if (m->kind == AS_SMAP_STACK || a->stack_high || a->dead_end)
		add_part(c, AS_RESIDENT_STACKS, NULL, bytes, mapped);
	else if (module)
		add_part(c, AS_RESIDENT_MODULE, module->path, bytes, mapped);
	else
		add_part(c, AS_RESIDENT_ANONYMOUS, NULL, bytes, mapped);
}

static void count_memory(struct counting *c, size_t i)
{
	const struct as_smap *m = &c->s->maps.map.v[i];
	struct of_blocks blocks = count_blocks(c, i, m->low, m->high),
			 ranges = count_ranges(c, i);
	uint64_t rest = as_smap_resident(m, m->low, m->high), mapped = m->high - m->low;

	add_part(c, AS_RESIDENT_LIVE, NULL, blocks.live, blocks.mapped);
	add_part(c, AS_RESIDENT_ROUNDING, NULL, blocks.around, blocks.around);
	rest -= AS_MIN(rest, blocks.live + blocks.around + ranges.live);
	mapped -= AS_MIN(mapped, blocks.mapped + ranges.mapped);
	count_rest(c, i, rest, mapped);
}

/* Pages that cannot be read are not looked at. What is resident of them is of all in the same parts. */
static void count_unread(struct counting *c, size_t i)
{
	const struct as_smap *m = &c->s->maps.map.v[i];
	enum as_resident_kind kind =
		m->read || m->write || m->exec ? AS_RESIDENT_MAPPING : AS_RESIDENT_RESERVED;
	uint64_t bytes = m->rss_bytes, mapped = m->high - m->low;
	double share = (double)m->rss_bytes / (double)AS_MAX(mapped, PAGE);

	for (size_t k = as_snapshot_first_range(c->s, m->low);
	     c->s->area[i].kind == AS_AREA_OTHER && k < c->s->ranges.n &&
	     c->s->ranges.v[k].low < m->high;
	     k++) {
		const struct as_heap_range *r = &c->s->ranges.v[k];
		uint64_t n = AS_MIN(r->high, m->high) - AS_MAX(r->low, m->low);
		struct as_resident_part *p = part_of(c, kind, r->tally, NULL);
		uint64_t resident = AS_MIN((uint64_t)(share * (double)n), bytes);

		p->bytes += resident;
		p->mapped_bytes += n;
		bytes -= resident;
		mapped -= n;
	}
	if (mapped)
		count_rest(c, i, bytes, mapped);
}

static bool has_code(const struct as_intern *modules, const char *path)
{
	uint32_t id;

	return as_intern_find(modules, path, strlen(path), &id);
}

static void count_map(struct counting *c, size_t i, const struct as_intern *modules)
{
	const struct as_smap *m = &c->s->maps.map.v[i];

	if (c->s->area[i].kind == AS_AREA_ASSAY) {
		add_part(c, AS_RESIDENT_ASSAY, NULL, m->rss_bytes, m->high - m->low);
	} else if (m->kind == AS_SMAP_SPECIAL) {
		add_part(c, AS_RESIDENT_MODULE, m->path, m->rss_bytes, m->high - m->low);
	} else if (m->kind == AS_SMAP_FILE &&
		   c->s->area[i].first_block == c->s->area[i].end_block) {
		add_part(c, has_code(modules, m->path) ? AS_RESIDENT_MODULE : AS_RESIDENT_FILE,
			 m->path, m->rss_bytes, m->high - m->low);
	} else if (m->present) {
		count_memory(c, i);
	} else {
		count_unread(c, i);
	}
}

/* ---- pins ---- */

struct page {
	uint64_t number, live;
	AS_VEC(uint32_t) block; /* that have a part of it */
};

static struct as_resident_pin *pin_of(struct counting *c, uint32_t tally)
{
	bool fresh;
	uint64_t *at = as_map64_put(&c->pinned, tally, &fresh);

	if (fresh) {
		*at = c->to->pins.n;
		as_vec_push(&c->to->pins, (struct as_resident_pin){.tally = tally});
	}
	return &c->to->pins.v[*at];
}

static bool is_first_of_tally(const struct counting *c, const struct page *p, size_t n)
{
	const struct as_leak_block *b = c->s->leaks.blocks.v;

	for (size_t i = 0; i < n; i++) {
		if (b[p->block.v[i]].tally == b[p->block.v[n]].tally)
			return false;
	}
	return true;
}

static void pin(struct counting *c, const struct page *p)
{
	uint64_t free_bytes = PAGE - p->live;

	c->to->pinned_pages++;
	c->to->pinned_bytes += free_bytes;
	for (size_t i = 0; i < p->block.n; i++) {
		const struct as_leak_block *b = &c->s->leaks.blocks.v[p->block.v[i]];
		struct as_resident_pin *to = pin_of(c, b->tally);

		to->pages += is_first_of_tally(c, p, i);
		to->bytes += free_bytes / p->block.n + (i < free_bytes % p->block.n);
		to->blocks++;
		to->live_bytes += AS_MIN(b->bytes, p->live);
	}
}

/* Whether the page is resident is returned as its bytes. */
static uint64_t end_page(struct counting *c, const struct as_smap *m, struct page *p)
{
	uint64_t at = p->number * PAGE;
	uint64_t resident = p->block.n ? as_smap_resident(m, at, at + PAGE) : 0;

	if (resident == PAGE && p->live < FEW)
		pin(c, p);
	p->block.n = 0;
	p->live = 0;
	return resident;
}

static void put_in_page(struct page *p, uint64_t number, uint32_t block, uint64_t bytes)
{
	p->number = number;
	p->live += bytes;
	as_vec_push(&p->block, block);
}

/* Pages of one mapping of an allocator. */
static void count_pins(struct counting *c, size_t i)
{
	const struct as_smap *m = &c->s->maps.map.v[i];
	const struct as_area *a = &c->s->area[i];
	uint64_t used = 0, all = as_smap_resident(m, m->low, m->high);
	struct page p = {0};

	for (size_t k = a->first_block; k < a->end_block; k++) {
		const struct as_leak_block *b = &c->s->leaks.blocks.v[k];
		uint64_t end = b->low + AS_MAX(b->bytes, 1ull);
		uint64_t first = b->low / PAGE, last = (end - 1) / PAGE;

		if (p.block.n && p.number != first)
			used += end_page(c, m, &p);
		put_in_page(&p, first, (uint32_t)k, AS_MIN(end, (first + 1) * PAGE) - b->low);
		if (last == first)
			continue;
		used += end_page(c, m, &p);
		used += as_smap_resident(m, (first + 1) * PAGE, last * PAGE);
		put_in_page(&p, last, (uint32_t)k, end - last * PAGE);
	}
	used += end_page(c, m, &p);
	as_vec_clear(&p.block);
	c->to->free_bytes += all - AS_MIN(all, used);
}

/* ---- all ---- */

static void count_untouched(struct counting *c)
{
	uint64_t resident = 0, all = 0;

	as_vec_foreach (p, &c->to->parts)
		resident += p->kind == AS_RESIDENT_LIVE ? p->bytes : 0;
	as_vec_foreach (b, &c->s->leaks.blocks)
		all += b->bytes;
	c->to->untouched_bytes = all - AS_MIN(all, resident);
}

void as_snapshot_parts(struct as_snapshot *s, struct as_heap_resident *ret)
{
	struct counting c = {.s = s, .to = ret};
	struct as_intern modules = {0};

	find_around(&c);
	as_vec_foreach (m, &s->maps.map) {
		ret->rss_bytes += m->rss_bytes;
		ret->swapped_bytes += m->swapped_bytes;
		if (m->kind == AS_SMAP_FILE && m->exec)
			(void)as_intern_str(&modules, m->path);
	}
	for (size_t i = 0; i < s->maps.map.n; i++) {
		count_map(&c, i, &modules);
		if (s->area[i].kind == AS_AREA_ALLOCATOR && s->maps.map.v[i].present)
			count_pins(&c, i);
	}
	count_untouched(&c);
	as_intern_clear(&modules);
	as_intern_clear(&c.names);
	as_map64_clear(&c.named);
	as_map64_clear(&c.pinned);
	free(c.around);
}
