/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Lines are read in file order and flattened to ranges that do not overlap: a sweep over the
 * starts and ends with a heap of the lines in force, the latest on top. O(n log n), whatever
 * the overlaps.
 */
#include "symbol/perfmap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/mem.h"
#include "base/sys.h"
#include "elf/debugfile.h"

#define MAX_TEXT  (1u << 30)
#define MAX_LINES (16u << 20)

struct line {
	uint64_t start, end;
	uint32_t name; /* offset into text */
	uint32_t seq;  /* number in the file: larger wins */
};

struct range {
	uint64_t start, end; /* covered part */
	uint64_t func;       /* start as the line has it */
	uint32_t name;
};

struct as_perfmap {
	char *text;
	AS_VEC(struct range) r; /* sorted, disjoint */
	size_t skipped;
};

struct sweep {
	AS_VEC(struct line) line; /* sorted by start */
	AS_VEC(uint32_t) heap;    /* indices of lines begun; the largest seq on top */
};

static const char *read_hex(const char *p, const char *end, uint64_t *ret)
{
	uint64_t v = 0;
	int n = 0;

	if (end - p > 2 && p[0] == '0' && (p[1] | 32) == 'x')
		p += 2;
	for (; p < end && n < 17; n++, p++) {
		unsigned c = (unsigned char)*p, d = 16;

		if (c - '0' < 10)
			d = c - '0';
		else if ((c | 32) - 'a' < 6)
			d = (c | 32) - 'a' + 10;
		if (d > 15)
			break;
		v = v << 4 | d;
	}
	*ret = v;
	return n && n <= 16 ? p : NULL;
}

/* False when the line is damaged. end is where its newline was. */
static bool parse_line(char *text, const char *p, char *end, struct line *ret)
{
	uint64_t start, size;

	p = read_hex(p, end, &start);
	if (!p || p >= end || *p != ' ')
		return false;
	p = read_hex(p + 1, end, &size);
	if (!p || p >= end || *p != ' ' || !size || start + size < start)
		return false;
	while (p < end && *p == ' ')
		p++;
	if (end > p && end[-1] == '\r')
		end--;
	if (p == end || !*p)
		return false;
	*end = '\0';
	ret->start = start;
	ret->end = start + size;
	ret->name = (uint32_t)(p - text);
	return true;
}

static int by_start(const void *pa, const void *pb)
{
	const struct line *a = pa, *b = pb;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->seq < b->seq ? -1 : a->seq > b->seq;
}

static bool above(const struct sweep *s, uint32_t a, uint32_t b)
{
	return s->line.v[a].seq > s->line.v[b].seq;
}

static void heap_push(struct sweep *s, uint32_t x)
{
	size_t i = s->heap.n;

	as_vec_push(&s->heap, x);
	for (; i && above(s, x, s->heap.v[(i - 1) / 2]); i = (i - 1) / 2)
		s->heap.v[i] = s->heap.v[(i - 1) / 2];
	s->heap.v[i] = x;
}

static void heap_pop(struct sweep *s)
{
	uint32_t x = s->heap.v[--s->heap.n];
	size_t i = 0, k;

	while ((k = 2 * i + 1) < s->heap.n) {
		if (k + 1 < s->heap.n && above(s, s->heap.v[k + 1], s->heap.v[k]))
			k++;
		if (!above(s, s->heap.v[k], x))
			break;
		s->heap.v[i] = s->heap.v[k];
		i = k;
	}
	if (s->heap.n)
		s->heap.v[i] = x;
}

static void give(struct as_perfmap *m, const struct line *l, uint64_t start, uint64_t end)
{
	struct range *last = m->r.n ? &m->r.v[m->r.n - 1] : NULL;

	if (start >= end)
		return;
	if (last && last->end == start && last->func == l->start && last->name == l->name)
		last->end = end;
	else
		as_vec_push(&m->r, (struct range){start, end, l->start, l->name});
}

/*
 * Between two starts the topmost line rules until it ends, then the one below it. Lines that
 * ended while they were not on top are thrown out when they come up.
 */
static void flatten(struct as_perfmap *m, struct sweep *s)
{
	uint64_t at = 0;

	if (s->line.n)
		qsort(s->line.v, s->line.n, sizeof *s->line.v, by_start);
	for (size_t i = 0; i <= s->line.n; i++) {
		uint64_t until = i < s->line.n ? s->line.v[i].start : UINT64_MAX;

		while (s->heap.n && at < until) {
			const struct line *top = &s->line.v[s->heap.v[0]];
			uint64_t stop = AS_MIN(top->end, until);

			give(m, top, AS_MAX(at, top->start), stop);
			at = AS_MAX(at, stop);
			if (top->end <= at)
				heap_pop(s);
		}
		at = until;
		if (i < s->line.n)
			heap_push(s, (uint32_t)i);
	}
}

int as_perfmap_parse(const char *text, size_t n, struct as_perfmap **ret, struct as_error *err)
{
	struct sweep s = {0};
	struct as_perfmap *m;
	uint32_t seq = 0;

	if (n > MAX_TEXT)
		return as_fail(err, AS_E_LIMIT, 0,
			       "the map of generated code is too long (%zu bytes)", n);
	m = as_xcalloc(1, sizeof *m);
	m->text = as_xmalloc(n + 1);
	if (n)
		memcpy(m->text, text, n);
	m->text[n] = '\0';
	for (char *p = m->text, *end = p + n; p < end;) {
		char *nl = memchr(p, '\n', (size_t)(end - p));
		struct line l = {.seq = seq++};

		if (!nl)
			nl = end;
		if (s.line.n < MAX_LINES && parse_line(m->text, p, nl, &l))
			as_vec_push(&s.line, l);
		else if (nl > p)
			m->skipped++;
		p = nl + 1;
	}
	flatten(m, &s);
	as_vec_clear(&s.line);
	as_vec_clear(&s.heap);
	*ret = m;
	return AS_OK;
}

/* Owner of the process the map belongs to; false when it has gone. */
static bool target_uid(const char *root, int nspid, uid_t *ret)
{
	char path[64];
	struct stat st;
	int pid = nspid;

	if (root && sscanf(root, "/proc/%d/root", &pid) != 1)
		return false;
	snprintf(path, sizeof path, "/proc/%d", pid);
	if (stat(path, &st) < 0)
		return false;
	*ret = st.st_uid;
	return true;
}

/* Somebody else could have left names for our target there. */
static bool trusted_owner(uid_t owner, const char *root, int nspid)
{
	uid_t target;

	return owner == 0 || owner == geteuid() ||
	       (target_uid(root, nspid, &target) && owner == target);
}

int as_perfmap_load(const char *root, int nspid, struct as_perfmap **ret, struct as_error *err)
{
	struct as_buf b = {0};
	struct stat st;
	char path[64];
	int fd, r;

	snprintf(path, sizeof path, "/tmp/perf-%d.map", nspid);
	fd = as_open_in_root(root, path);
	if (fd < 0)
		return as_fail(err, fd == -ENOENT ? AS_E_NOTFOUND : AS_E_IO, -fd,
			       "cannot open '%s': %s", path, strerror(-fd));
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		r = as_fail(err, AS_E_FORMAT, 0, "'%s' is not a regular file", path);
	else if (!trusted_owner(st.st_uid, root, nspid))
		r = as_fail(
			err, AS_E_ACCESS, 0,
			"'%s' is not used: it belongs neither to the target's user nor to root",
			path);
	else
		r = as_read_fd(fd, MAX_TEXT, &b, err);
	close(fd);
	if (r == AS_OK)
		r = as_perfmap_parse(as_buf_str(&b), b.len, ret, err);
	as_buf_clear(&b);
	return r;
}

void as_perfmap_free(struct as_perfmap *m)
{
	if (!m)
		return;
	as_vec_clear(&m->r);
	free(m->text);
	free(m);
}

const char *as_perfmap_find(const struct as_perfmap *m, uint64_t avma, uint64_t *ret_start)
{
	size_t lo = 0, hi = m->r.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (m->r.v[mid].start <= avma)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || avma >= m->r.v[lo - 1].end)
		return NULL;
	if (ret_start)
		*ret_start = m->r.v[lo - 1].func;
	return m->text + m->r.v[lo - 1].name;
}

size_t as_perfmap_skipped(const struct as_perfmap *m)
{
	return m->skipped;
}
