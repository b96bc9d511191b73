/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Processes and their executable mappings: see image.h. A process's mappings are one sorted
 * array; events edit it in place, reading /proc/PID/maps replaces it.
 */
#include "image/image_priv.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "base/sys.h"

struct as_image *as_image_new(const char *cache_dir)
{
	struct as_image *im = as_xcalloc(1, sizeof *im);
	im->cache_dir = cache_dir ? as_xstrdup(cache_dir) : NULL;
	return im;
}

static void free_process(struct as_process *p)
{
	free(p->map);
	free(p);
}

const char *as_image_cache_dir(const struct as_image *im)
{
	return im->cache_dir;
}

void as_image_free(struct as_image *im)
{
	if (!im)
		return;
	for (size_t i = 0; i < im->by_pid.cap; i++)
		if (im->by_pid.slot[i].val)
			free_process((struct as_process *)(uintptr_t)im->by_pid.slot[i].val);
	as_map64_clear(&im->by_pid);
	as_map64_clear(&im->by_file);
	for (size_t i = 0; i < im->modules.n; i++)
		as_module_free(im->modules.v[i]);
	as_vec_clear(&im->modules);
	as_vec_clear(&im->claimed);
	free(im->cache_dir);
	free(im);
}

void as_image_add_listener(struct as_image *im, const struct as_image_listener *l)
{
	if (im->nlisteners < AS_IMAGE_MAX_LISTENERS)
		im->listeners[im->nlisteners++] = *l;
}

void as_image_remove_listener(struct as_image *im, const void *ctx)
{
	size_t kept = 0;

	for (size_t i = 0; i < im->nlisteners; i++) {
		if (im->listeners[i].ctx != ctx)
			im->listeners[kept++] = im->listeners[i];
	}
	im->nlisteners = kept;
}

struct as_module *as_image_module(const struct as_image *im, uint32_t id)
{
	return id < im->modules.n ? im->modules.v[id] : NULL;
}

size_t as_image_nmodules(const struct as_image *im)
{
	return im->modules.n;
}

void as_image_costs(const struct as_image *im, struct as_image_cost *ret)
{
	*ret = im->cost;
}

struct as_process *as_image_process(struct as_image *im, pid_t pid)
{
	uint64_t *v = as_map64_get(&im->by_pid, (uint64_t)pid);
	return v ? (struct as_process *)(uintptr_t)*v : NULL;
}

static struct as_process *process(struct as_image *im, pid_t pid)
{
	bool fresh;
	uint64_t *v = as_map64_put(&im->by_pid, (uint64_t)pid, &fresh);
	if (fresh) {
		struct as_process *p = as_xcalloc(1, sizeof *p);
		p->pid = pid;
		*v = (uint64_t)(uintptr_t)p;
	}
	return (struct as_process *)(uintptr_t)*v;
}

static void changed(struct as_image *im, struct as_process *p)
{
	p->generation++;
	for (size_t i = 0; i < im->nlisteners; i++)
		if (im->listeners[i].changed)
			im->listeners[i].changed(im->listeners[i].ctx, p);
}

static void announce(struct as_image *im, struct as_process *p, const struct as_mapping *m,
		     uint64_t time_ns)
{
	for (size_t i = 0; i < im->nlisteners; i++)
		if (im->listeners[i].mapping)
			im->listeners[i].mapping(im->listeners[i].ctx, time_ns, p, m);
}

/* Index of the first mapping that ends after avma. */
static size_t lower(const struct as_process *p, uint64_t avma)
{
	size_t lo = 0, hi = p->nmap;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		if (p->map[mid].end <= avma)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

const struct as_mapping *as_image_find(const struct as_process *p, uint64_t avma)
{
	size_t i = lower(p, avma);
	return i < p->nmap && avma >= p->map[i].start ? &p->map[i] : NULL;
}

static void insert_at(struct as_process *p, size_t i, struct as_mapping m)
{
	if (p->nmap == p->cap) {
		p->cap = p->cap ? p->cap * 2 : 16;
		p->map = as_xreallocarray(p->map, p->cap, sizeof *p->map);
	}
	memmove(p->map + i + 1, p->map + i, (p->nmap - i) * sizeof *p->map);
	p->map[i] = m;
	p->nmap++;
}

static void remove_at(struct as_process *p, size_t i)
{
	p->nmap--;
	memmove(p->map + i, p->map + i + 1, (p->nmap - i) * sizeof *p->map);
}

/* Cuts [start, end) out of p's mappings; a mapping around it is split. */
static void cut(struct as_process *p, uint64_t start, uint64_t end)
{
	size_t i = lower(p, start);
	while (i < p->nmap && p->map[i].start < end) {
		struct as_mapping *m = &p->map[i], old = *m;
		if (old.start < start && old.end > end) {
			m->end = start;
			insert_at(p, i + 1,
				  (struct as_mapping){end, old.end, old.off + (end - old.start),
						      old.bias, old.module});
			return;
		}
		if (old.start < start) {
			m->end = start;
			i++;
		} else if (old.end > end) {
			m->off += end - m->start;
			m->start = end;
			return;
		} else {
			remove_at(p, i);
		}
	}
}

/* A line of /proc/PID/maps or an MMAP2 record, executable. */
struct seen {
	uint64_t start, end, off, dev, ino;
	const char *path;
};

/*
 * Anonymous executable memory is a JIT's, or text that the program copied onto huge pages. For
 * the latter the mapping it replaced, else a neighbour of the same file, says which module to
 * compare with.
 */
static bool moved_text(struct as_image *im, const struct as_process *before,
		       const struct seen *s, struct as_mapping *ret)
{
	if (!before || !before->nmap)
		return false;
	size_t i = lower(before, s->start);
	size_t from = i ? i - 1 : 0, to = AS_MIN(i + 2, before->nmap);
	for (size_t k = from; k < to; k++) {
		const struct as_mapping *o = &before->map[k];
		struct as_module *m = as_image_module(im, o->module);
		if (!m || m->kind != AS_MODULE_FILE || m->fd < 0)
			continue;
		if (!as_module_same_code(m, before->pid, s->start, s->start - o->bias,
					 s->end - s->start))
			continue;
		*ret = (struct as_mapping){s->start, s->end, o->off + (s->start - o->start),
					   o->bias, o->module};
		return true;
	}
	return false;
}

static bool is_claimed(const struct as_image *im, const struct seen *s)
{
	as_vec_foreach (c, &im->claimed) {
		if (s->start >= c->start && s->end <= c->end)
			return true;
	}
	return false;
}

void as_image_claim(struct as_image *im, uint64_t start, uint64_t end)
{
	end = (end + 4095) & ~4095ull; /* mappings are whole pages */
	as_vec_foreach (c, &im->claimed) {
		if (c->start == start && c->end == end)
			return;
	}
	as_vec_push(&im->claimed, (struct as_image_claimed){start, end});
}

static bool identify(struct as_image *im, const struct as_process *before, pid_t pid,
		     const struct seen *s, struct as_mapping *ret)
{
	struct as_module *m;
	*ret = (struct as_mapping){.start = s->start, .end = s->end, .off = s->off};
	if (s->start >= UINT64_C(1) << 63)
		return false; /* [vsyscall] */
	if (!strcmp(s->path, "[vdso]"))
		m = as_module_of_vdso(im, pid, s->start, s->end);
	else if (s->ino || (s->path[0] == '/' && s->path[1] != '/'))
		m = as_module_of_file(im, &(struct as_module_where){pid, s->start, s->end,
								    s->dev, s->ino, s->path});
	else if (is_claimed(im, s))
		m = as_module_of_own(im);
	else if (moved_text(im, before, s, ret))
		return true;
	else
		m = as_module_of_anon(im, pid);
	if (!m)
		return false;
	ret->module = m->id;
	/* no program header holds it: offsets stand in for svma */
	if (!as_module_bias(m, ret, &ret->bias))
		ret->bias = s->start - s->off;
	return true;
}

/* Parses one line of /proc/PID/maps; false for lines that are not executable or not understood. */
static bool parse_maps_line(char *line, struct seen *ret, bool *ret_exec)
{
	unsigned long long start, end, off, ino;
	unsigned maj, min;
	char perms[8];
	int at = 0;
	if (sscanf(line, "%llx-%llx %7s %llx %x:%x %llu %n", &start, &end, perms, &off, &maj,
		   &min, &ino, &at) < 7 ||
	    end <= start)
		return false;
	*ret = (struct seen){start, end, off, makedev(maj, min), ino, line + at};
	*ret_exec = perms[2] == 'x';
	return true;
}

/* The kernel writes a newline in a path as \012 and nothing else; undone in place. */
static void unescape_newlines(char *path)
{
	char *to = path;
	for (const char *p = path; *p; p++) {
		if (!strncmp(p, "\\012", 4)) {
			*to++ = '\n';
			p += 3;
		} else {
			*to++ = *p;
		}
	}
	*to = '\0';
}

/* Appends the maps of a thread; its number serves wherever /proc wants a process. */
static int read_maps_text(pid_t tid, struct as_buf *out, struct as_error *err)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/maps", (int)tid);
	return as_read_file(path, AS_IMAGE_MAX_MAPS, out, err);
}

/* A process whose main thread has ended shows its memory only through one that lives. */
static pid_t read_maps_of_any_thread(pid_t pid, struct as_buf *out)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	DIR *dir = opendir(path);
	pid_t found = pid;
	for (struct dirent *d; dir && !out->len && (d = readdir(dir));) {
		uint64_t tid;
		if (!as_parse_u64(d->d_name, &tid) || tid > INT32_MAX)
			continue;
		if (read_maps_text((pid_t)tid, out, NULL) >= 0 && out->len)
			found = (pid_t)tid;
	}
	if (dir)
		closedir(dir);
	return found;
}

int as_image_read_maps(struct as_image *im, pid_t pid, uint64_t time_ns, struct as_error *err)
{
	struct as_buf text = {0};
	pid_t via = pid; /* whose /proc folder shows the files */
	int r = read_maps_text(pid, &text, err);
	if (r >= 0 && !text.len)
		via = read_maps_of_any_thread(pid, &text);
	if (r < 0 || !text.len) {
		as_buf_clear(&text);
		return r < 0 ? r
			     : as_fail(err, AS_E_NOTFOUND, ESRCH,
				       "process %d has no memory map", (int)pid);
	}
	struct as_process *p = process(im, pid), before = *p;
	p->map = NULL;
	p->nmap = p->cap = 0;
	p->last_read_ns = as_now_ns();
	struct seen s;
	bool exec;
	for (char *line = text.p, *next; line && *line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		struct as_mapping m;
		if (!parse_maps_line(line, &s, &exec) || !exec)
			continue;
		unescape_newlines((char *)s.path);
		if (identify(im, before.nmap ? &before : p, via, &s, &m))
			insert_at(p, p->nmap, m);
	}
	bool same = before.nmap == p->nmap;
	for (size_t i = 0, k = 0; i < p->nmap; i++) {
		while (k < before.nmap && before.map[k].start < p->map[i].start)
			k++;
		bool known =
			k < before.nmap && !memcmp(&before.map[k], &p->map[i], sizeof *p->map);
		same &= known;
		if (!known)
			announce(im, p, &p->map[i], time_ns);
	}
	free(before.map);
	as_buf_clear(&text);
	if (!same)
		changed(im, p);
	return AS_OK;
}

void as_image_mmap(struct as_image *im, const struct as_mmap_event *e)
{
	struct as_process *p = process(im, e->pid);
	struct seen s = {e->start, e->start + e->len, e->off, makedev(e->maj, e->min), e->ino,
			 e->path};
	struct as_mapping m;
	if (!e->len || s.end < s.start)
		return;
	/* perf calls memory without a file "//anon". */
	if (!strcmp(e->path, "//anon"))
		s.path = "";
	bool ok = identify(im, p, e->pid, &s, &m);
	cut(p, s.start, s.end);
	if (ok) {
		insert_at(p, lower(p, m.start), m);
		announce(im, p, &m, e->time_ns);
	}
	changed(im, p);
}

void as_image_fork(struct as_image *im, pid_t parent, pid_t child, uint64_t time_ns)
{
	struct as_process *from = as_image_process(im, parent);
	if (!from || parent == child)
		return;
	struct as_process *to = process(im, child);
	from = as_image_process(im, parent); /* the map may have moved its values */
	free(to->map);
	to->map = as_xmalloc(from->nmap * sizeof *to->map + 1);
	memcpy(to->map, from->map, from->nmap * sizeof *to->map);
	to->nmap = to->cap = from->nmap;
	for (size_t i = 0; i < to->nmap; i++)
		announce(im, to, &to->map[i], time_ns);
	changed(im, to);
}

void as_image_exec(struct as_image *im, pid_t pid, uint64_t time_ns)
{
	struct as_process *p = as_image_process(im, pid);
	if (!p)
		return;
	p->nmap = 0;
	p->last_read_ns = 0;
	changed(im, p);
}

void as_image_exit(struct as_image *im, pid_t pid, uint64_t time_ns)
{
	struct as_process *p = as_image_process(im, pid);
	if (!p)
		return;
	as_map64_del(&im->by_pid, (uint64_t)pid);
	free_process(p);
}

bool as_image_unwind_find(struct as_image *im, const struct as_process *p, uint64_t avma,
			  struct as_unwind_module *ret)
{
	const struct as_mapping *map = as_image_find(p, avma);
	if (!map)
		return false;
	struct as_module *m = im->modules.v[map->module];
	*ret = (struct as_unwind_module){
		.table = as_image_module_table(im, m),
		.cfi = m->state->cfi_kept ? &m->state->cfi : NULL,
		.bias = map->bias,
		.start_avma = map->start,
		.end_avma = map->end,
		.id = m->id,
	};
	return true;
}

int as_image_read_code(struct as_image *im, const struct as_process *p, uint64_t avma,
		       void *out, size_t n)
{
	const struct as_mapping *map = as_image_find(p, avma);
	if (!map || n > map->end - avma)
		return AS_E_NOTFOUND;
	const struct as_module *m = im->modules.v[map->module];
	uint64_t off = map->off + (avma - map->start);
	if (m->image) {
		if (off > m->image_size || n > m->image_size - off)
			return AS_E_NOTFOUND;
		memcpy(out, m->image + off, n);
		return AS_OK;
	}
	if (m->fd < 0)
		return AS_E_NOTFOUND;
	return as_pread_all(m->fd, out, n, off) < 0 ? AS_E_IO : AS_OK;
}
