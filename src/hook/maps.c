/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "hook/maps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/sys.h"

#define MAPS_MAX_BYTES (64u << 20)
#define LOWEST         0x10000ull /* vm.mmap_min_addr is not above */
#define HIGHEST        0x7ffffffff000ull
#define GUARD          0x10000ull   /* left free beside what is there */
#define HEAP_ROOM      (1ull << 30) /* left free above a heap */
#define HUGE_PAGE      (2ull << 20)
#define STACK_ROOM     (256ull << 20) /* left free below a stack */
#define FAR_BELOW      (64ull << 30)  /* room for what is mapped later */
/* ThreadSanitizer takes nothing between 0x7c00… and here; other programs reserve ranges further down. */
#define KERNELS_CHOICE 0x7e8000000000ull

static enum as_map_kind kind_of(const char *path)
{
	if (!strcmp(path, "[heap]"))
		return AS_MAP_HEAP;
	if (!strcmp(path, "[stack]"))
		return AS_MAP_STACK;
	if (!strcmp(path, "[vdso]"))
		return AS_MAP_VDSO;
	return path[0] == '/' ? AS_MAP_FILE : AS_MAP_OTHER;
}

/* "start-end rwxp off major:minor inode   path"; the path begins at the first / or [ */
static void read_line(struct as_maps *m, const char *line)
{
	unsigned long start, end;
	char perm[8];
	const char *path;

	if (sscanf(line, "%lx-%lx %7s", &start, &end, perm) != 3 || strlen(perm) < 3)
		return;
	path = strpbrk(line, "/[");
	as_vec_push(&m->map, (struct as_map){
				     .start = start,
				     .end = end,
				     .kind = (uint8_t)kind_of(path ? path : ""),
				     .read = perm[0] == 'r',
				     .write = perm[1] == 'w',
				     .exec = perm[2] == 'x',
			     });
}

int as_maps_read(pid_t pid, struct as_maps *ret, struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	char path[64], *line, *rest = NULL;
	struct as_maps m = {0};
	int r;

	snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
	r = as_read_file(path, MAPS_MAX_BYTES, &b, err);
	if (r < 0)
		return r;
	for (line = b.p ? strtok_r(b.p, "\n", &rest) : NULL; line;
	     line = strtok_r(NULL, "\n", &rest))
		read_line(&m, line);
	if (!m.map.n)
		return as_fail(err, AS_E_NOTFOUND, 0, "process %d has no memory", (int)pid);
	*ret = m;
	return 0;
}

void as_maps_clear(struct as_maps *m)
{
	as_vec_clear(&m->map);
}

const struct as_map *as_maps_find(const struct as_maps *m, uint64_t avma)
{
	as_vec_foreach (it, &m->map) {
		if (avma - it->start < it->end - it->start)
			return it;
	}
	return NULL;
}

struct gap {
	uint64_t lo, hi;
};

/* What may be used of the gap before map i (i == n: above the last). A heap is not there before its
 * first use: it will begin behind the program, which is the lowest mapping. */
static struct gap gap_before(const struct as_maps *m, size_t i)
{
	const struct as_map *below = i ? &m->map.v[i - 1] : NULL;
	const struct as_map *above = i < m->map.n ? &m->map.v[i] : NULL;
	struct gap g = {LOWEST, HIGHEST};

	if (below)
		g.lo = below->end + (below->kind == AS_MAP_HEAP ? HEAP_ROOM : GUARD);
	if (above)
		g.hi = above->start > STACK_ROOM
			       ? above->start -
					 (above->kind == AS_MAP_STACK ? STACK_ROOM : GUARD)
			       : 0;
	g.hi = AS_MIN(g.hi, HIGHEST); /* the vsyscall page is above */
	return g;
}

static bool has_heap(const struct as_maps *m)
{
	as_vec_foreach (it, &m->map) {
		if (it->kind == AS_MAP_HEAP)
			return true;
	}
	return false;
}

/* The gap above the program, where its heap will be. */
static bool will_be_heap(const struct as_maps *m, size_t i)
{
	return i && i < m->map.n && !has_heap(m) &&
	       m->map.v[i].start - m->map.v[i - 1].end > HEAP_ROOM &&
	       m->map.v[i - 1].end < 0x600000000000ull;
}

/* The place in g that is nearest to [lo, hi), if it is within reach. */
static bool nearest(struct gap g, uint64_t lo, uint64_t hi, uint64_t bytes, uint64_t *ret_at,
		    uint64_t *ret_distance)
{
	uint64_t at, distance;

	if (g.hi <= g.lo || g.hi - g.lo < bytes + 8192)
		return false;
	if (g.hi <= lo) {
		at = (g.hi - bytes) & ~4095ull;
		distance = hi - at;
	} else if (g.lo >= hi) {
		at = (g.lo + 4095) & ~4095ull;
		distance = at + bytes - lo;
	} else {
		return false; /* inside of the module's own span */
	}
	if (distance > AS_HOOK_REACH)
		return false;
	*ret_at = at;
	*ret_distance = distance;
	return true;
}

bool as_maps_place(const struct as_maps *m, uint64_t lo, uint64_t hi, uint64_t bytes,
		   uint64_t *ret_avma)
{
	uint64_t best = UINT64_MAX;

	for (size_t i = 0; i <= m->map.n; i++) {
		struct gap g = gap_before(m, i);
		uint64_t at, distance;

		if (will_be_heap(m, i))
			g.lo += HEAP_ROOM;
		if (!nearest(g, lo, hi, bytes, &at, &distance) || distance >= best)
			continue;
		best = distance;
		*ret_avma = at;
	}
	return best != UINT64_MAX;
}

/* Below what the kernel maps where nobody says where. 0: there is no such room. */
static uint64_t below_others(const struct as_maps *m, uint64_t bytes)
{
	for (size_t i = 0; i <= m->map.n; i++) {
		struct gap g = gap_before(m, i);
		uint64_t low = AS_MAX(g.lo, KERNELS_CHOICE);

		if (g.hi <= KERNELS_CHOICE)
			continue;
		return g.hi > low && g.hi - low > FAR_BELOW + bytes + HUGE_PAGE
			       ? (g.hi - FAR_BELOW - bytes) & ~(HUGE_PAGE - 1)
			       : 0;
	}
	return 0;
}

uint64_t as_maps_place_far(const struct as_maps *m, uint64_t bytes)
{
	uint64_t at = below_others(m, bytes);
	struct gap best = {0, 0};

	if (at)
		return at;

	for (size_t i = 0; i <= m->map.n; i++) {
		struct gap g = gap_before(m, i);

		if (g.hi > g.lo && g.hi - g.lo > best.hi - best.lo)
			best = g;
	}
	if (best.hi - best.lo < bytes + (4 * HUGE_PAGE))
		return 0;
	return (best.lo + (best.hi - best.lo - bytes) / 2) & ~(HUGE_PAGE - 1);
}
