/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "snapshot/smaps.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/sys.h"

#define SMAPS_MAX_BYTES (256u << 20)
#define ENTRIES         (1u << 16) /* of pagemap, read at once */
#define PAGE            4096u
#define ENTRY_PRESENT   (1ull << 63)
#define ENTRY_SWAPPED   (1ull << 62)
#define ENTRY_FRAME     ((1ull << 55) - 1)

/* ---- the text ---- */

static uint8_t kind_of(const char *path)
{
	if (!*path || !strncmp(path, "[anon", 5))
		return AS_SMAP_ANONYMOUS;
	if (!strcmp(path, "[heap]"))
		return AS_SMAP_HEAP;
	if (!strncmp(path, "[stack", 6))
		return AS_SMAP_STACK;
	return *path == '[' ? AS_SMAP_SPECIAL : AS_SMAP_FILE;
}

/* "start-end rwxp off major:minor inode   path" */
static bool parse_header(const char *line, struct as_smap *ret)
{
	unsigned long low, high, off;
	char perm[5];
	int path = 0;

	if (sscanf(line, "%lx-%lx %4s %lx %*x:%*x %*u %n", &low, &high, perm, &off, &path) <
		    4 ||
	    strlen(perm) != 4 || low >= high)
		return false;
	*ret = (struct as_smap){.low = low,
				.high = high,
				.off = off,
				.read = perm[0] == 'r',
				.write = perm[1] == 'w',
				.exec = perm[2] == 'x',
				.shared = perm[3] == 's'};
	ret->kind = kind_of(path ? line + path : "");
	if (path && line[path])
		ret->path = as_xstrdup(line + path);
	return true;
}

static void note_flags(const char *line, struct as_smap *m)
{
	m->device = strstr(line, " io") || strstr(line, " pf");
	m->alone = strstr(line, " dc") || strstr(line, " wf");
}

static void parse_field(const char *line, struct as_smap *m)
{
	unsigned long kib;

	if (sscanf(line, "Rss: %lu", &kib) == 1)
		m->rss_bytes = (uint64_t)kib << 10;
	else if (sscanf(line, "Swap: %lu", &kib) == 1)
		m->swapped_bytes = (uint64_t)kib << 10;
	else if (!strncmp(line, "VmFlags:", 8))
		note_flags(line, m);
}

void as_smaps_parse(char *text, struct as_smaps *ret)
{
	char *rest = NULL;

	memset(ret, 0, sizeof *ret);
	for (char *line = strtok_r(text, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		struct as_smap m;

		if (*line >= 'A' && *line <= 'Z') {
			if (ret->map.n)
				parse_field(line, &ret->map.v[ret->map.n - 1]);
		} else if (parse_header(line, &m)) {
			if (ret->map.n && m.low < ret->map.v[ret->map.n - 1].high)
				free(m.path);
			else
				as_vec_push(&ret->map, m);
		}
	}
}

int as_smaps_read(pid_t pid, struct as_smaps *ret, struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	char path[64];
	int r;

	snprintf(path, sizeof path, "/proc/%d/smaps", (int)pid);
	r = as_read_file(path, SMAPS_MAX_BYTES, &b, err);
	if (r < 0)
		return r;
	if (b.p)
		as_smaps_parse(b.p, ret);
	if (!b.p || !ret->map.n)
		return as_fail(err, AS_E_NOTFOUND, 0, "process %d has no memory", (int)pid);
	return 0;
}

void as_smaps_clear(struct as_smaps *m)
{
	as_vec_foreach (it, &m->map) {
		free(it->path);
		free(it->present);
		free(it->content);
	}
	as_vec_clear(&m->map);
}

/* ---- pages ---- */

/* The frame that stands for all pages which were read and never written: such are not resident. 0: not
 * known (frames are told to root only). */
static uint64_t zero_frame(void)
{
	volatile char *page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t entry = 0;
	int fd;

	if (page == MAP_FAILED)
		return 0;
	(void)page[0];
	fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		if (as_pread_all(fd, &entry, sizeof entry, (uintptr_t)page / PAGE * 8) < 0)
			entry = 0;
		close(fd);
	}
	munmap((void *)page, PAGE);
	return entry & ENTRY_PRESENT ? entry & ENTRY_FRAME : 0;
}

static uint64_t pages_of(const struct as_smap *m)
{
	return (m->high - m->low) / PAGE;
}

static void set(uint64_t *bits, uint64_t i)
{
	bits[i / 64] |= 1ull << (i % 64);
}

static bool read_pages(int fd, struct as_smap *m, uint64_t zero, uint64_t *entry)
{
	uint64_t n = pages_of(m);

	m->present = as_xcalloc(n / 64 + 1, sizeof *m->present);
	m->content = as_xcalloc(n / 64 + 1, sizeof *m->content);
	for (uint64_t at = 0; at < n; at += ENTRIES) {
		uint64_t part = AS_MIN(n - at, (uint64_t)ENTRIES);

		if (as_pread_all(fd, entry, part * 8, (m->low / PAGE + at) * 8) < 0)
			return false;
		for (uint64_t i = 0; i < part; i++) {
			if (!(entry[i] & (ENTRY_PRESENT | ENTRY_SWAPPED)) ||
			    (zero && (entry[i] & ENTRY_PRESENT) &&
			     (entry[i] & ENTRY_FRAME) == zero))
				continue;
			set(m->content, at + i);
			if (entry[i] & ENTRY_PRESENT)
				set(m->present, at + i);
		}
	}
	return true;
}

static bool is_forked(const struct as_smap *m)
{
	return m->kind != AS_SMAP_FILE && !m->shared && !m->alone;
}

void as_smaps_pages(struct as_smaps *m, pid_t pid, enum as_smaps_pages which)
{
	uint64_t *entry, zero = zero_frame();
	char path[64];
	int fd;

	snprintf(path, sizeof path, "/proc/%d/pagemap", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	entry = as_xmalloc(ENTRIES * sizeof *entry);
	as_vec_foreach (it, &m->map) {
		if (!it->read || it->kind == AS_SMAP_SPECIAL || it->device ||
		    !(which & (is_forked(it) ? AS_SMAPS_FORKED : AS_SMAPS_NOT_FORKED)))
			continue;
		if (!it->rss_bytes && !it->swapped_bytes) {
			it->present = as_xcalloc(pages_of(it) / 64 + 1, sizeof *it->present);
			it->content = as_xcalloc(pages_of(it) / 64 + 1, sizeof *it->content);
		} else if (it->high - it->low > AS_SMAP_BYTES_MAX) {
			it->huge = true;
		} else if (!read_pages(fd, it, zero, entry)) {
			free(it->present);
			free(it->content);
			it->present = it->content = NULL;
		}
	}
	free(entry);
	close(fd);
}

struct as_smap *as_smaps_find(const struct as_smaps *m, uint64_t avma)
{
	size_t lo = 0, hi = m->map.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (m->map.v[mid].high <= avma)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < m->map.n && m->map.v[lo].low <= avma ? &m->map.v[lo] : NULL;
}

static bool is_set(const uint64_t *bits, uint64_t i)
{
	return bits[i / 64] >> (i % 64) & 1;
}

/* Set bits of [from, to). */
static uint64_t count(const uint64_t *bits, uint64_t from, uint64_t to)
{
	uint64_t n = 0;

	for (; from < to && from % 64; from++)
		n += is_set(bits, from);
	for (; from + 64 <= to; from += 64)
		n += (uint64_t)__builtin_popcountll(bits[from / 64]);
	for (; from < to; from++)
		n += is_set(bits, from);
	return n;
}

uint64_t as_smap_resident(const struct as_smap *m, uint64_t low, uint64_t high)
{
	uint64_t first, last, bytes;

	low = AS_MAX(low, m->low);
	high = AS_MIN(high, m->high);
	if (low >= high)
		return 0;
	if (!m->present)
		return high - low;
	first = (low - m->low) / PAGE;
	last = (high - 1 - m->low) / PAGE;
	if (first == last)
		return is_set(m->present, first) ? high - low : 0;
	bytes = is_set(m->present, first) ? PAGE - (low - m->low) % PAGE : 0;
	if (is_set(m->present, last))
		bytes += (high - 1 - m->low) % PAGE + 1;
	return bytes + count(m->present, first + 1, last) * PAGE;
}

/* The first bit from `from` on that is `value`; to: none. */
static uint64_t seek(const uint64_t *bits, bool value, uint64_t from, uint64_t to)
{
	while (from < to) {
		uint64_t word = value ? bits[from / 64] : ~bits[from / 64];

		word &= ~0ull << (from % 64);
		if (word)
			return AS_MIN((from & ~63ull) + (uint64_t)__builtin_ctzll(word), to);
		from = (from & ~63ull) + 64;
	}
	return to;
}

bool as_smap_next(const struct as_smap *m, uint64_t low, uint64_t high,
		  struct as_leak_range *ret)
{
	uint64_t first, end, pages = pages_of(m);

	low = AS_MAX(low, m->low);
	high = AS_MIN(high, m->high);
	if (low >= high || !m->read || m->device || m->huge)
		return false;
	*ret = (struct as_leak_range){low, high};
	if (!m->content)
		return true;
	first = seek(m->content, true, (low - m->low) / PAGE, pages);
	end = seek(m->content, false, first, pages);
	ret->low = AS_MAX(low, m->low + first * PAGE);
	ret->high = AS_MIN(high, m->low + end * PAGE);
	return ret->low < ret->high;
}
