/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Disk index of a module: <cache_dir>/<build-id>.idx keeps every unit decoded so far, so
 * that the next session resolves the same code without touching DWARF.
 *
 *	0	struct disk_header
 *	72	struct as_symrange [nranges]: which unit claims what
 *	…	struct disk_unit [nunits]: where the unit's block is; size 0: not kept
 *	…	blocks: struct disk_block, then its arrays and string pool
 *
 * One checksum covers header and tables, one each block. The file is written beside its name
 * and renamed, without fsync: a torn file fails its checksum and is ignored, which costs one
 * cold run. It is read with pread, never mapped, so that nobody who cuts it can kill us. The
 * directory is kept below AS_SYMINDEX_QUOTA by deleting what was used longest ago; a file is
 * touched when it is used.
 */
#include "symbol/symmod_priv.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/sys.h"
#include "symbol/dwarf_priv.h"

#define AS_SYMINDEX_QUOTA (512ull << 20)
#define INDEX_VERSION     2
#define STALE_TMP_SECONDS 3600

struct disk_header {
	char magic[8];
	uint32_t version;
	uint32_t crc; /* of header (crc = 0), ranges and units */
	uint64_t file_bytes;
	uint64_t source_bytes;
	uint64_t text_lo;
	uint32_t nunits, nranges;
	uint8_t id_len, id[20];
	uint8_t open_done; /* the units without ranges are in the table */
	uint8_t reserved[2];
};
static_assert(sizeof(struct disk_header) == 72, "layout of the index header");

struct disk_unit {
	uint64_t off, size;
	uint32_t crc, reserved;
};
static_assert(sizeof(struct disk_unit) == 24, "layout of the unit table");

struct disk_block {
	uint32_t nseg, nnode, nrow, nfunc, nfile, npool;
};
static_assert(sizeof(struct disk_block) == 24, "layout of a block");

struct as_symindex {
	int fd;
	struct disk_header h;
	uint8_t *tables;
	const struct as_symrange *range;
	const struct disk_unit *unit;
	void **data; /* per unit: bytes of a loaded block */
};

static const char magic[8] = "ASYMIDX";

static char *index_path(const struct as_symmod *m)
{
	struct as_buf b = {0};

	as_buf_addf(&b, "%s/", m->cache_dir);
	for (unsigned i = 0; i < m->key.len; i++)
		as_buf_addf(&b, "%02x", m->key.id[i]);
	as_buf_adds(&b, as_elf_build_id(m->elf)->len ? ".idx" : ".content.idx");
	return as_buf_detach(&b);
}

static uint32_t tables_crc(const struct disk_header *h, const void *tables, size_t n)
{
	struct disk_header copy = *h;

	copy.crc = 0;
	return as_crc32c(as_crc32c(0, &copy, sizeof copy), tables, n);
}

/* NULL when it is sound, else the reason. */
static const char *check_header(const struct as_symmod *m, const struct disk_header *h,
				uint64_t size)
{
	if (memcmp(h->magic, magic, sizeof magic) || h->version != INDEX_VERSION)
		return "it is of another version";
	if (h->id_len != m->key.len || memcmp(h->id, m->key.id, h->id_len) ||
	    h->source_bytes != as_elf_size(m->elf) || h->text_lo != m->text_lo)
		return "it is of another file";
	if (h->file_bytes != size ||
	    (size - sizeof *h) / sizeof(struct disk_unit) < h->nunits ||
	    (size - sizeof *h - h->nunits * sizeof(struct disk_unit)) /
			    sizeof(struct as_symrange) <
		    h->nranges)
		return "it is cut short";
	return NULL;
}

static const char *load_tables(struct as_symmod *m, struct as_symindex *ix)
{
	struct stat st;
	const char *why;

	if (fstat(ix->fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    (uint64_t)st.st_size < sizeof ix->h ||
	    as_pread_all(ix->fd, &ix->h, sizeof ix->h, 0) < 0)
		return "it is cut short";
	why = check_header(m, &ix->h, (uint64_t)st.st_size);
	if (why)
		return why;

	size_t nr = ix->h.nranges * sizeof(struct as_symrange);
	size_t n = nr + ix->h.nunits * sizeof(struct disk_unit);

	ix->tables = as_xmalloc(n + 1);
	if (as_pread_all(ix->fd, ix->tables, n, sizeof ix->h) < 0 ||
	    tables_crc(&ix->h, ix->tables, n) != ix->h.crc)
		return "it is damaged";
	ix->range = (const void *)ix->tables;
	ix->unit = (const void *)(ix->tables + nr);
	ix->data = as_xcalloc(ix->h.nunits + 1u, sizeof *ix->data);
	return NULL;
}

struct as_symindex *as_symindex_open(struct as_symmod *m)
{
	char *path = index_path(m);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct as_symindex *ix = NULL;

	if (fd >= 0) {
		ix = as_xcalloc(1, sizeof *ix);
		ix->fd = fd;

		const char *why = load_tables(m, ix);

		if (why) {
			as_buf_addf(&m->notes, "symbol index '%s' ignored: %s\n", path, why);
			as_symindex_close(ix);
			ix = NULL;
		} else {
			(void)futimens(fd, NULL); /* only the order of deletion depends on it */
		}
	}
	free(path);
	return ix;
}

void as_symindex_close(struct as_symindex *ix)
{
	if (!ix)
		return;
	for (size_t i = 0; ix->data && i < ix->h.nunits; i++)
		free(ix->data[i]);
	free(ix->data);
	free(ix->tables);
	close(ix->fd);
	free(ix);
}

const struct as_symrange *as_symindex_ranges(const struct as_symindex *ix, size_t *ret_n)
{
	*ret_n = ix->h.nranges;
	return ix->range;
}

size_t as_symindex_units(const struct as_symindex *ix)
{
	return ix->h.nunits;
}

bool as_symindex_open_done(const struct as_symindex *ix)
{
	return ix->h.open_done;
}

/* Bytes of a unit's block, checked; NULL when not kept or damaged. Caller frees. */
static uint8_t *load_block(const struct as_symindex *ix, uint32_t unit, size_t *ret_n)
{
	const struct disk_unit *u = &ix->unit[unit];

	if (!u->size || u->size > ix->h.file_bytes || u->off > ix->h.file_bytes - u->size ||
	    u->size < sizeof(struct disk_block))
		return NULL;

	uint8_t *p = as_xmalloc(u->size);

	if (as_pread_all(ix->fd, p, u->size, u->off) < 0 ||
	    as_crc32c(0, p, u->size) != u->crc) {
		free(p);
		return NULL;
	}
	*ret_n = u->size;
	return p;
}

static uint64_t sizes_of(const struct disk_block *d)
{
	return sizeof *d + (uint64_t)d->nseg * sizeof(struct as_block_seg) +
	       (uint64_t)d->nnode * sizeof(struct as_block_node) +
	       (uint64_t)d->nrow * sizeof(struct as_block_row) +
	       (uint64_t)d->nfunc * sizeof(struct as_block_disk_func) +
	       (uint64_t)d->nfile * sizeof(uint32_t) + d->npool;
}

struct as_block *as_symindex_block(struct as_symindex *ix, uint32_t unit)
{
	size_t n;
	uint8_t *p = unit < ix->h.nunits && !ix->data[unit] ? load_block(ix, unit, &n) : NULL;

	if (!p)
		return NULL;
	ix->data[unit] = p;

	struct disk_block d;
	struct as_block *b;

	memcpy(&d, p, sizeof d);
	if (sizes_of(&d) > n || n - sizes_of(&d) >= 8 || !d.npool)
		return NULL; /* right checksum, wrong sums: written by something else */
	b = as_xcalloc(1, sizeof *b);
	p += sizeof d;
	b->seg = (void *)p;
	p += d.nseg * sizeof *b->seg;
	b->node = (void *)p;
	p += d.nnode * sizeof *b->node;
	b->row = (void *)p;
	p += d.nrow * sizeof *b->row;
	b->disk_func = (void *)p;
	p += d.nfunc * sizeof *b->disk_func;
	b->disk_path = (void *)p;
	p += d.nfile * sizeof *b->disk_path;
	b->pool = (const char *)p;
	if (b->pool[d.npool - 1]) {
		free(b);
		return NULL;
	}
	b->nseg = d.nseg;
	b->nnode = d.nnode;
	b->nrow = d.nrow;
	b->nfunc = d.nfunc;
	b->nfile = d.nfile;
	b->npool = d.npool;
	return b;
}

struct pool {
	struct as_buf b;
	struct as_map64 at; /* address of the string -> offset */
};

/* Strings come from sections and arenas, so equal ones mostly are the same bytes. */
static uint32_t pool_add(struct pool *p, const char *s)
{
	bool is_new;

	if (!s)
		return 0;

	uint64_t *slot = as_map64_put(&p->at, (uint64_t)(uintptr_t)s, &is_new);

	if (is_new) {
		*slot = p->b.len;
		as_buf_add(&p->b, s, strlen(s) + 1);
	}
	return (uint32_t)*slot;
}

static uint8_t *used_files(const struct as_block *b)
{
	uint8_t *used = as_xcalloc(b->nfile + 1, 1);

	for (size_t i = 0; i < b->nrow; i++) {
		uint32_t f = as_block_file(b->row[i].filecol);

		used[f < b->nfile ? f : b->nfile] = 1;
	}
	for (size_t i = 0; i < b->nnode; i++) {
		uint32_t f = as_block_file(b->node[i].b);

		if (as_block_is_inlined(&b->node[i]))
			used[f < b->nfile ? f : b->nfile] = 1;
	}
	return used;
}

/* Symbols are consulted when somebody asks; the index has their answer for all. */
static void name_all_functions(struct as_symmod *m, struct as_block *b)
{
	for (size_t i = 0; i < b->nnode; i++) {
		struct as_block_node *n = &b->node[i];

		if (!as_block_is_inlined(n) && n->b == AS_BLOCK_NONE)
			as_chain_name_function(m, b, n);
	}
}

static void write_block(struct as_symmod *m, struct as_block *b, struct as_buf *out)
{
	struct pool pool = {0};
	uint8_t *used = used_files(b);
	size_t head = out->len;
	struct disk_block d = {
		.nseg = (uint32_t)b->nseg,
		.nnode = (uint32_t)b->nnode,
		.nrow = (uint32_t)b->nrow,
		.nfunc = (uint32_t)b->nfunc,
		.nfile = (uint32_t)b->nfile,
	};

	name_all_functions(m, b);
	as_buf_addc(&pool.b, '\0'); /* offset 0: no string */
	as_buf_add(out, &d, sizeof d);
	as_buf_add(out, b->seg, b->nseg * sizeof *b->seg);
	as_buf_add(out, b->node, b->nnode * sizeof *b->node);
	as_buf_add(out, b->row, b->nrow * sizeof *b->row);
	for (uint32_t i = 0; i < b->nfunc; i++) {
		struct as_block_func f = {0};

		(void)as_block_get_func(b, i, &f);

		struct as_block_disk_func df = {
			.linkage = pool_add(&pool, f.linkage),
			.name = pool_add(&pool, f.name),
			.decl_file = pool_add(&pool, f.decl_file),
			.generic = pool_add(&pool, f.generic),
			.decl_line = f.decl_line,
		};

		as_buf_add(out, &df, sizeof df);
	}
	for (uint32_t i = 0; i < b->nfile; i++) {
		uint32_t at = used[i] ? pool_add(&pool, as_block_path(b, i)) : 0;

		as_buf_add(out, &at, sizeof at);
	}
	as_buf_add(out, pool.b.p, pool.b.len);
	d.npool = (uint32_t)pool.b.len;
	memcpy(out->p + head, &d, sizeof d);
	if (pool.b.len > UINT32_MAX)
		out->len = head; /* offsets do not reach: not kept */
	as_buf_clear(&pool.b);
	as_map64_clear(&pool.at);
	free(used);
}

/* The bytes of the unit's block: fresh, or as the old index has them. Empty: not kept. */
static void block_bytes(struct as_symmod *m, uint32_t unit, struct as_buf *out)
{
	struct as_block *b = m->block[unit];

	if (b && b->dw) {
		if (!b->incomplete)
			write_block(m, b, out);
		return;
	}
	if (!m->index || unit >= m->index->h.nunits)
		return;

	size_t n;
	uint8_t *p = load_block(m->index, unit, &n);

	if (p)
		as_buf_add(out, p, n);
	free(p);
}

static int pwrite_all(int fd, const void *p, size_t n, uint64_t off)
{
	const uint8_t *q = p;

	while (n) {
		ssize_t w = pwrite(fd, q, n, (off_t)off);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return -1;
		q += w;
		n -= (size_t)w;
		off += (uint64_t)w;
	}
	return 0;
}

static int write_index(struct as_symmod *m, int fd)
{
	struct disk_header h = {
		.version = INDEX_VERSION,
		.source_bytes = as_elf_size(m->elf),
		.text_lo = m->text_lo,
		.nunits = (uint32_t)m->nunits,
		.nranges = (uint32_t)m->nrange,
		.id_len = m->key.len,
		.open_done = m->open_done || (m->dw && !m->dw->open_unit.n),
	};
	struct as_buf tables = {0}, block = {0};
	size_t nr = m->nrange * sizeof *m->range;
	uint64_t at = sizeof h + nr + m->nunits * sizeof(struct disk_unit);
	int r = 0;

	memcpy(h.magic, magic, sizeof magic);
	memcpy(h.id, m->key.id, sizeof h.id);
	as_buf_add(&tables, m->range, nr);
	for (uint32_t i = 0; i < m->nunits && r == 0; i++) {
		struct disk_unit u = {.off = at};

		as_buf_reset(&block);
		block_bytes(m, i, &block);
		as_buf_fill(&block, '\0', block.len % 8 ? 8 - block.len % 8 : 0);
		u.size = block.len;
		u.crc = as_crc32c(0, as_buf_str(&block), block.len);
		r = pwrite_all(fd, block.p, block.len, at);
		at += u.size;
		as_buf_add(&tables, &u, sizeof u);
	}
	h.file_bytes = at;
	h.crc = tables_crc(&h, as_buf_str(&tables), tables.len);
	if (r == 0)
		r = pwrite_all(fd, as_buf_str(&tables), tables.len, sizeof h);
	if (r == 0)
		r = pwrite_all(fd, &h, sizeof h, 0);
	as_buf_clear(&tables);
	as_buf_clear(&block);
	return r;
}

struct cache_file {
	char *name;
	uint64_t bytes;
	struct timespec used;
};

static int by_use(const void *x, const void *y)
{
	const struct cache_file *a = x, *b = y;

	if (a->used.tv_sec != b->used.tv_sec)
		return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
	return a->used.tv_nsec < b->used.tv_nsec ? -1 : a->used.tv_nsec > b->used.tv_nsec;
}

void as_symindex_trim(const char *dir, uint64_t quota_bytes)
{
	AS_VEC(struct cache_file) file = {0};
	DIR *d = opendir(dir);
	uint64_t total = 0;

	if (!d)
		return;
	for (struct dirent *e; (e = readdir(d));) {
		bool tmp = strstr(e->d_name, ".idx.tmp.") != NULL;
		const char *dot = strrchr(e->d_name, '.');
		struct stat st;

		if ((!tmp && (!dot || strcmp(dot, ".idx") != 0)) ||
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		if (tmp) {
			if (time(NULL) - st.st_mtime > STALE_TMP_SECONDS)
				(void)unlinkat(dirfd(d), e->d_name, 0);
			continue;
		}
		total += (uint64_t)st.st_size;
		as_vec_push(&file, (struct cache_file){as_xstrdup(e->d_name),
						       (uint64_t)st.st_size, st.st_mtim});
	}
	if (file.n)
		qsort(file.v, file.n, sizeof *file.v, by_use);
	as_vec_foreach (f, &file) {
		if (total > quota_bytes && unlinkat(dirfd(d), f->name, 0) == 0)
			total -= f->bytes;
		free(f->name);
	}
	as_vec_clear(&file);
	closedir(d);
}

void as_symindex_save(struct as_symmod *m)
{
	struct as_error err;

	/* A cache that cannot be written is no reason to fail: the next run is as slow as this. */
	if (!m->nunits || as_mkdir_parents(m->cache_dir, &err) < 0)
		return;

	char *path = index_path(m), *tmp = as_xasprintf("%s.tmp.%d", path, (int)getpid());
	int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd >= 0) {
		int r = write_index(m, fd);

		if (close(fd) < 0 || r < 0 || rename(tmp, path) < 0)
			(void)unlink(tmp);
		as_symindex_trim(m->cache_dir, AS_SYMINDEX_QUOTA);
	}
	free(tmp);
	free(path);
}
