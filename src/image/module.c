/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Modules: finding and pinning the file behind a mapping, and what identifies it. Order of ways
 * to the file: /proc/PID/map_files (the inode that is really mapped, also when deleted or in
 * another namespace; needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE), /proc/PID/exe,
 * /proc/PID/root + path. The last two are accepted only when the inode number is the mapping's.
 */
#include "image/image_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/cache.h"
#include "base/sys.h"

#define VDSO_MAX (1u << 20)

static const char deleted[] = " (deleted)";

static char *plain_path(const char *path)
{
	size_t n = strlen(path), d = sizeof deleted - 1;
	if (n > d && !strcmp(path + n - d, deleted))
		n -= d;
	return as_xstrndup(path, n);
}

static uint64_t mtime_ns(const struct stat *st)
{
	return (uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec;
}

/* Device numbers of overlay and btrfs mappings differ from stat's; the inode number decides there. */
static bool same_inode(int fd, const struct as_module_where *w)
{
	struct stat st;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	return !w->ino || st.st_ino == w->ino;
}

static int open_checked(const char *path, const struct as_module_where *w)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0 && !same_inode(fd, w)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static int pin(const struct as_module_where *w, const char *path)
{
	char p[64];
	int fd;

	if (!w->pid)
		return open_checked(path, w);
	snprintf(p, sizeof p, "/proc/%d/map_files/%llx-%llx", (int)w->pid,
		 (unsigned long long)w->start, (unsigned long long)w->end);
	fd = open_checked(p, w);
	if (fd >= 0)
		return fd;
	snprintf(p, sizeof p, "/proc/%d/exe", (int)w->pid);
	fd = open_checked(p, w);
	if (fd >= 0 && w->ino)
		return fd;
	if (fd >= 0)
		close(fd);
	AS_CLEANUP(as_free_autop)
	char *rooted = as_xasprintf("/proc/%d/root%s", (int)w->pid, path);
	fd = open_checked(rooted, w);
	/* A process that is gone, or /proc mounted with hidepid: its path in our own namespace. */
	return fd >= 0 ? fd : open_checked(path, w);
}

static uint64_t mnt_ns(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 ? (uint64_t)st.st_ino : 0;
}

static char *foreign_root(struct as_image *im, pid_t pid)
{
	char p[64];
	if (!pid)
		return NULL;
	if (!im->own_mnt_ns)
		im->own_mnt_ns = mnt_ns("/proc/self/ns/mnt");
	snprintf(p, sizeof p, "/proc/%d/ns/mnt", (int)pid);
	uint64_t ns = mnt_ns(p);
	if (!ns || ns == im->own_mnt_ns)
		return NULL;
	return as_xasprintf("/proc/%d/root", (int)pid);
}

static struct as_module *add_module(struct as_image *im, enum as_module_kind kind, char *path)
{
	struct as_module *m = as_xcalloc(1, sizeof *m);
	m->id = (uint32_t)im->modules.n;
	m->kind = kind;
	m->path = path;
	m->fd = -1;
	m->state = as_xcalloc(1, sizeof *m->state);
	as_vec_push(&im->modules, m);
	return m;
}

static void announce(struct as_image *im, struct as_module *m)
{
	for (size_t i = 0; i < im->nlisteners; i++)
		if (im->listeners[i].module)
			im->listeners[i].module(im->listeners[i].ctx, m);
}

/* Program headers and ids are read once and kept, so that the file need not stay mapped. */
static void learn(struct as_module *m, struct as_elf *elf)
{
	size_t n;
	const struct as_elf_segment *seg = as_elf_segments(elf, &n);
	struct as_elf_segment *copy = as_xmalloc(n * sizeof *copy + 1);
	memcpy(copy, seg, n * sizeof *copy);
	m->segments = copy;
	m->nsegments = n;
	m->build_id = *as_elf_build_id(elf);
	m->has_build_id = m->build_id.len > 0;
	if (!m->has_build_id)
		as_elf_content_id(elf, &m->build_id);
	m->size_bytes = as_elf_size(elf);
}

static void learn_from_file(struct as_module *m)
{
	struct as_elf *elf = NULL;
	struct stat st;
	int fd = fcntl(m->fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0) {
		m->state->mtime_ns = mtime_ns(&st);
		m->size_bytes = (uint64_t)st.st_size;
	}
	/* Not an object file (a mapped data file with code in it): no symbols, offsets stay. */
	if (as_elf_open_fd(fd, m->path, &elf, NULL) == AS_OK)
		learn(m, elf);
	as_elf_close(elf);
}

static bool rewritten(const struct as_module *m)
{
	struct stat st;
	return m->fd >= 0 && fstat(m->fd, &st) == 0 &&
	       (mtime_ns(&st) != m->state->mtime_ns || (uint64_t)st.st_size != m->size_bytes);
}

static uint64_t file_key(uint64_t dev, uint64_t ino)
{
	return as_mix64(dev * 0x9e3779b97f4a7c15ull ^ ino) >> 1;
}

struct as_module *as_module_of_file(struct as_image *im, const struct as_module_where *w)
{
	uint64_t key = file_key(w->dev, w->ino);
	for (uint64_t *v; (v = as_map64_get(&im->by_file, key)); key++) {
		struct as_module *m = im->modules.v[*v - 1];
		if (m->dev == w->dev && m->ino == w->ino && !rewritten(m))
			return m;
	}
	char *path = plain_path(w->path);
	struct as_module *m = add_module(im, AS_MODULE_FILE, path);
	m->dev = w->dev;
	m->ino = w->ino;
	m->pid = w->pid;
	m->fd = pin(w, path);
	m->root = foreign_root(im, w->pid);
	if (m->fd >= 0) {
		im->cost.pinned_fds++;
		learn_from_file(m);
	}
	*as_map64_put(&im->by_file, key, NULL) = m->id + 1;
	announce(im, m);
	return m;
}

struct as_module *as_image_add_file(struct as_image *im, const char *path, struct as_error *err)
{
	struct stat st;
	AS_CLEANUP(as_free_autop) char *real = realpath(path, NULL);
	if (!real || stat(real, &st) < 0) {
		as_fail(err, AS_E_NOTFOUND, errno, "cannot open '%s': %s", path,
			strerror(errno));
		return NULL;
	}
	struct as_module_where w = {.dev = makedev(major(st.st_dev), minor(st.st_dev)),
				    .ino = st.st_ino,
				    .path = real};
	return as_module_of_file(im, &w);
}

struct as_module *as_module_of_vdso(struct as_image *im, pid_t pid, uint64_t start,
				    uint64_t end)
{
	char p[64];
	struct as_elf *elf = NULL;
	size_t n = (size_t)(end - start);

	if (im->vdso && im->modules.v[im->vdso - 1]->image_size == n)
		return im->modules.v[im->vdso - 1];
	if (n > VDSO_MAX)
		return NULL;
	snprintf(p, sizeof p, "/proc/%d/mem", (int)pid);
	AS_CLEANUP(as_close_autop) int fd = open(p, O_RDONLY | O_CLOEXEC);
	AS_CLEANUP(as_free_autop) void *image = as_xmalloc(n);
	if (fd < 0 || as_pread_all(fd, image, n, start) < 0)
		return NULL;
	if (as_elf_open_mem(image, n, "[vdso]", &elf, NULL) < 0)
		return NULL;
	struct as_module *m = add_module(im, AS_MODULE_VDSO, as_xstrdup("[vdso]"));
	m->image = AS_STEAL(image);
	m->image_size = n;
	m->pid = pid;
	learn(m, elf);
	m->size_bytes = n;
	as_elf_close(elf);
	im->vdso = m->id + 1;
	announce(im, m);
	return m;
}

struct as_module *as_module_of_anon(struct as_image *im, pid_t pid)
{
	for (size_t i = im->modules.n; i-- > 0;)
		if (im->modules.v[i]->kind == AS_MODULE_JIT && im->modules.v[i]->pid == pid &&
		    !im->modules.v[i]->own)
			return im->modules.v[i];
	struct as_module *m = add_module(im, AS_MODULE_JIT, as_xasprintf("[jit %d]", (int)pid));
	m->pid = pid;
	m->root = foreign_root(im, pid);
	announce(im, m);
	return m;
}

/* One for all processes: it keeps frame pointers, as JIT code is taken to do. */
struct as_module *as_module_of_own(struct as_image *im)
{
	struct as_module *m;

	if (im->own)
		return im->modules.v[im->own - 1];
	m = add_module(im, AS_MODULE_JIT, as_xstrdup("[assay]"));
	m->own = true;
	im->own = m->id + 1;
	announce(im, m);
	return m;
}

void as_module_free(struct as_module *m)
{
	if (!m)
		return;
	struct as_module_state *s = m->state;
	if (s->blob_mapped)
		as_cache_unmap(s->blob, s->blob_size);
	else
		free(s->blob);
	as_elf_close(s->elf);
	as_elf_close(s->debug);
	free(s->code);
	free(s->extents);
	free(s);
	if (m->fd >= 0)
		close(m->fd);
	free(m->path);
	free(m->root);
	free(m->image);
	free((void *)m->segments);
	free(m);
}

/* The segment that holds file offset off; executable ones win where two share a page. */
static const struct as_elf_segment *segment_of_off(const struct as_module *m, uint64_t off)
{
	const struct as_elf_segment *best = NULL;
	for (size_t i = 0; i < m->nsegments; i++) {
		const struct as_elf_segment *s = &m->segments[i];
		uint64_t first = s->off & ~(uint64_t)4095;
		if (off < first || off >= s->off + s->filesz)
			continue;
		if (!best || (s->exec && !best->exec))
			best = s;
	}
	return best;
}

bool as_module_bias(const struct as_module *m, const struct as_mapping *map, uint64_t *ret)
{
	if (m->kind == AS_MODULE_JIT) {
		*ret = 0;
		return true;
	}
	if (m->kind == AS_MODULE_VDSO) {
		*ret = map->start -
		       (m->nsegments ? m->segments[0].svma - m->segments[0].off : 0);
		return true;
	}
	const struct as_elf_segment *s = segment_of_off(m, map->off);
	if (s)
		*ret = map->start - (s->svma + (map->off - s->off));
	return s != NULL;
}

bool as_module_same_code(const struct as_module *m, pid_t pid, uint64_t avma, uint64_t svma,
			 uint64_t n)
{
	enum { PROBE = 256, PROBES = 64 };
	uint8_t a[PROBE], b[PROBE];
	uint64_t step = AS_MAX(n / PROBES, (uint64_t)PROBE);
	size_t equal = 0;

	for (uint64_t at = 0; at + PROBE <= n; at += step) {
		struct iovec l = {b, PROBE}, r = {(void *)(uintptr_t)(avma + at), PROBE};
		uint64_t off = 0;
		bool found = false;
		for (size_t i = 0; i < m->nsegments; i++) {
			const struct as_elf_segment *s = &m->segments[i];
			if (svma + at >= s->svma && svma + at + PROBE <= s->svma + s->filesz) {
				off = svma + at - s->svma + s->off;
				found = true;
			}
		}
		/* padding between segments, past the end of the file's part */
		if (!found)
			continue;
		if (as_pread_all(m->fd, a, PROBE, off) < 0 ||
		    process_vm_readv(pid, &l, 1, &r, 1, 0) != PROBE || memcmp(a, b, PROBE))
			return false;
		equal++;
	}
	return equal > 0;
}
