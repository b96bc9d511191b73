/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Memory in the target, and what is written there. */
#include "hook/hooked_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"

#define HWCAP2_FSGSBASE 2
#define AT_HWCAP2_TAG   26
#define MEMFD_CLOEXEC   1
#define NAME            "assay"

static const struct as_rt_image *image_of(const struct as_hooked *h)
{
	return h->spec.image;
}

/* ---- the object ---- */

static int check_spec(const struct as_hook_spec *spec, struct as_error *err)
{
	const struct as_rt_image *im = spec->image;

	if (spec->image_bytes < sizeof *im || im->magic != AS_RT_MAGIC ||
	    im->version != AS_RT_VERSION || im->kinds != AS_RT_KINDS ||
	    im->bytes > spec->image_bytes)
		return as_fail(err, AS_E_USAGE, 0, "the in-target image is of another version");
	return 0;
}

static bool has_shadow_stack(pid_t pid)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	char path[64];
	const char *line;

	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	if (as_read_file(path, 1 << 16, &b, NULL) < 0 || !b.p)
		return false;
	line = strstr(b.p, "x86_Thread_features:");
	return line && strstr(line, "shstk") &&
	       strcspn(line, "\n") > (size_t)(strstr(line, "shstk") - line);
}

/* How many filters of system calls a thread has; before Linux 5.9 whether there is one. */
static unsigned long filters_of(const char *task)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	char path[400];
	const char *line;
	unsigned long n;

	snprintf(path, sizeof path, "%s/status", task);
	if (as_read_file(path, 1 << 16, &b, NULL) < 0 || !b.p)
		return 0;
	line = strstr(b.p, "\nSeccomp_filters:");
	if (line && sscanf(line, " Seccomp_filters: %lu", &n) == 1)
		return n;
	line = strstr(b.p, "\nSeccomp:");
	return line && sscanf(line, " Seccomp: %lu", &n) == 1 && n;
}

/* A filter that we do not have ourselves: that of a container we are in lets our calls pass. */
static bool has_filter(pid_t pid)
{
	unsigned long own = filters_of("/proc/self");
	char path[64], task[380];
	bool found = false;
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	d = opendir(path);
	while (d && !found && (e = readdir(d))) {
		snprintf(task, sizeof task, "%s/%s", path, e->d_name);
		found = e->d_name[0] != '.' && filters_of(task) > own;
	}
	if (d)
		closedir(d);
	return found;
}

static bool has_fsgsbase(pid_t pid)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/auxv", (int)pid);
	if (as_read_file(path, 1 << 16, &b, NULL) < 0)
		return false;
	for (size_t i = 0; i + 16 <= b.len; i += 16) {
		if (as_get_le64(b.p + i) == AT_HWCAP2_TAG)
			return as_get_le64(b.p + i + 8) & HWCAP2_FSGSBASE;
	}
	return false;
}

struct as_hooked *as_hooked_new(pid_t pid, const struct as_hook_spec *spec,
				struct as_error *err)
{
	struct as_hooked *h;
	char path[64];

	if (check_spec(spec, err) < 0)
		return NULL;
	h = as_xcalloc(1, sizeof *h);
	h->pid = pid;
	h->spec = *spec;
	h->shared_fd = -1;
	if (!h->spec.context_max)
		h->spec.context_max = AS_RT_CONTEXTS;
	if (!h->spec.ring_bytes)
		h->spec.ring_bytes = AS_HOOK_RING_BYTES;
	h->table_bytes = AS_HOOK_TABLE_BYTES;
	if (has_fsgsbase(pid))
		h->spec.flags |= AS_RT_FSGSBASE;
	if (has_filter(pid))
		h->spec.flags |= AS_RT_NO_SYSCALLS;
	h->has_shadow_stack = has_shadow_stack(pid);
	h->image = spec->modules ? spec->modules : as_image_new(spec->cache_dir);
	/* modules are known by their number in that image */
	h->known = spec->modules && spec->known ? spec->known : as_hook_known_new();
	snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
	h->mem_fd = open(path, O_RDWR | O_CLOEXEC);
	if (h->mem_fd >= 0)
		return h;
	if (errno == ENOENT)
		(void)as_fail(err, AS_E_NOTFOUND, errno, "no process %d", (int)pid);
	else
		(void)as_fail(
			err, AS_E_ACCESS, errno,
			"not allowed to trace process %d: %s\n"
			"  it must be yours and not setuid, and kernel.yama.ptrace_scope 0; "
			"or use root",
			(int)pid, strerror(errno));
	as_hook_free(h);
	return NULL;
}

void as_hook_free(struct as_hooked *h)
{
	if (!h)
		return;
	as_vec_foreach (m, &h->module)
		free(m->path);
	as_vec_clear(&h->module);
	as_vec_clear(&h->fn);
	as_vec_clear(&h->island);
	as_vec_clear(&h->earlier);
	as_vec_clear(&h->table);
	/* the target keeps the mapping: a thread may still be in our code; but not the memory */
	if (h->detached && h->shared)
		(void)fallocate(h->shared_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				AS_RT_CONTROL_BYTES,
				(off_t)(h->shared_bytes - AS_RT_CONTROL_BYTES));
	if (h->shared)
		munmap(h->shared, h->shared_bytes);
	if (h->shared_fd >= 0)
		close(h->shared_fd);
	if (h->mem_fd >= 0)
		close(h->mem_fd);
	if (h->known != h->spec.known)
		as_hook_known_free(h->known);
	if (!h->spec.modules)
		as_image_free(h->image);
	free(h);
}

/* ---- memory in the target ---- */

static int call(struct as_stop *s, long nr, const uint64_t arg[6], int64_t *ret,
		const char *what, struct as_error *err)
{
	int r = as_stop_call(s, nr, arg, ret, err);

	if (r < 0)
		return r;
	if (*ret < 0 && *ret > -4096)
		return as_fail(err, AS_E_IO, (int)-*ret, "process %d cannot %s: %s",
			       (int)s->pid, what, strerror((int)-*ret));
	return 0;
}

static int map(struct as_stop *s, uint64_t at, uint64_t bytes, const int how[3], uint64_t *ret,
	       struct as_error *err)
{
	const uint64_t arg[6] = {
		at, bytes, (uint64_t)how[0], (uint64_t)how[1], (uint64_t)(int64_t)how[2], 0};
	int64_t got;
	int r = call(s, SYS_mmap, arg, &got, "map memory for what is recorded", err);

	if (r < 0)
		return r;
	*ret = (uint64_t)got;
	/* kernels before 4.17 take MAP_FIXED_NOREPLACE for a wish */
	if (at && *ret != at)
		return as_fail(err, AS_E_IO, 0, "process %d mapped something meanwhile",
			       (int)s->pid);
	return 0;
}

static bool reaches(const struct as_island *i, const struct as_hooked_module *m)
{
	uint64_t lo = AS_MIN(i->avma, m->lo), hi = AS_MAX(i->avma + i->bytes, m->hi);

	return hi - lo <= AS_HOOK_REACH;
}

static struct as_island *island_for(struct as_hooked *h, const struct as_hooked_module *m)
{
	as_vec_foreach (i, &h->island) {
		if (reaches(i, m) &&
		    i->bytes - i->used >= AS_HOOK_THUNK_MAX + AS_DETOUR_TRAMPOLINE + 32)
			return i;
	}
	return NULL;
}

static int map_island(struct as_hooked *h, struct as_stop *s, const struct as_hooked_module *m,
		      struct as_error *err)
{
	const int how[3] = {PROT_READ | PROT_EXEC,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1};
	uint64_t image = as_hooked_image_bytes(image_of(h));
	struct as_island i = {.bytes = image + AS_HOOK_ISLAND_ROOM,
			      .used = image + AS_ISLAND_NOTE_BYTES};
	struct as_maps maps;
	uint64_t at, got;
	bool room;
	int r = as_maps_read(h->pid, &maps, err);

	if (r < 0)
		return r;
	room = as_maps_place(&maps, m->lo, m->hi, i.bytes, &at);
	as_maps_clear(&maps);
	if (!room)
		return 0; /* its functions are told to be too far */
	r = map(s, at, i.bytes, how, &got, err);
	if (r < 0)
		return r;
	i.avma = got;
	as_vec_push(&h->island, i);
	return 0;
}

bool as_hooked_needs_island(struct as_hooked *h)
{
	as_vec_foreach (f, &h->fn) {
		const struct as_hooked_module *m = &h->module.v[f->module];

		if (f->verdict == AS_DETOUR_OK && !f->thunk_avma && m->present &&
		    !island_for(h, m))
			return true;
	}
	return false;
}

/* Of the functions that can be patched and have no code yet. */
static int map_islands(struct as_hooked *h, struct as_stop *s, struct as_error *err)
{
	as_vec_foreach (f, &h->fn) {
		const struct as_hooked_module *m = &h->module.v[f->module];
		int r;

		if (f->verdict != AS_DETOUR_OK || f->thunk_avma || !m->present ||
		    island_for(h, m))
			continue;
		r = map_island(h, s, m, err);
		if (r < 0)
			return r;
	}
	if (!h->island.n)
		return as_fail(err, AS_E_LIMIT, 0,
			       "process %d has no room for code near its modules", (int)h->pid);
	return 0;
}

/* Where nothing of the program's is, if there is such a place. */
static int map_far(struct as_hooked *h, struct as_stop *s, uint64_t bytes, const int how[3],
		   uint64_t *ret, struct as_error *err)
{
	struct as_maps maps;
	uint64_t at;
	int r = as_maps_read(h->pid, &maps, err);

	if (r < 0)
		return r;
	at = as_maps_place_far(&maps, bytes);
	as_maps_clear(&maps);
	return map(s, at, bytes,
		   (const int[3]){how[0], how[1] | (at ? MAP_FIXED_NOREPLACE : 0), how[2]}, ret,
		   err);
}

/* The file behind the shared memory is made by the target and opened here, so that it needs no name and
 * no descriptor of it stays there. Its size is set here: the target may have a limit. */
static int open_shared(struct as_hooked *h, int64_t fd, struct as_error *err)
{
	char path[80];

	snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)h->pid, (int)fd);
	h->shared_fd = open(path, O_RDWR | O_CLOEXEC);
	if (h->shared_fd < 0 || ftruncate(h->shared_fd, (off_t)h->shared_bytes) < 0)
		return as_fail(err, AS_E_IO, errno,
			       "cannot open the memory shared with process %d: %s", (int)h->pid,
			       strerror(errno));
	h->shared = mmap(NULL, h->shared_bytes, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_NORESERVE, h->shared_fd, 0);
	if (h->shared == MAP_FAILED) {
		h->shared = NULL;
		return as_fail(err, AS_E_IO, errno, "cannot map %zu bytes: %s", h->shared_bytes,
			       strerror(errno));
	}
	return 0;
}

static int map_shared(struct as_hooked *h, struct as_stop *s, struct as_error *err)
{
	struct as_island *i = &h->island.v[0];
	const uint64_t create[6] = {i->avma + i->used, MEMFD_CLOEXEC};
	const int how[3] = {PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, -1};
	int64_t fd, ignored;
	int r;

	h->tables_off =
		AS_RT_CONTROL_BYTES +
		(size_t)h->spec.context_max * (AS_RT_RING_HEAD_BYTES + h->spec.ring_bytes);
	h->shared_bytes = h->tables_off + h->table_bytes;
	if (pwrite(h->mem_fd, NAME, sizeof NAME, (off_t)create[0]) != sizeof NAME)
		return as_fail(err, AS_E_ACCESS, errno, "cannot write code of process %d: %s",
			       (int)h->pid, strerror(errno));
	r = call(s, SYS_memfd_create, create, &fd, "make a file in memory", err);
	if (r < 0)
		return r;
	r = open_shared(h, fd, err);
	if (r == 0)
		r = map_far(h, s, h->shared_bytes, (const int[3]){how[0], how[1], (int)fd},
			    &h->shared_avma, err);
	/* a wish: else a core file has all of it */
	if (r == 0)
		r = as_stop_call(
			s, SYS_madvise,
			(const uint64_t[6]){h->shared_avma, h->shared_bytes, MADV_DONTDUMP},
			&ignored, err);
	/* also when the above failed; of a descriptor that was just made it cannot fail */
	(void)as_stop_call(s, SYS_close, (const uint64_t[6]){(uint64_t)fd}, &ignored, NULL);
	return r;
}

static int map_private(struct as_hooked *h, struct as_stop *s, struct as_error *err)
{
	static const int advice[] = {MADV_WIPEONFORK, MADV_DONTDUMP, MADV_NOHUGEPAGE};
	const int how[3] = {PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			    -1};
	int r = map_far(h, s, AS_HOOK_HOME_BYTES, how, &h->home_avma, err);

	if (r == 0 && h->spec.sample_bytes)
		r = map_far(h, s, AS_RT_SAMPLED_BYTES, how, &h->sampled_avma, err);

	h->contexts_bytes = (uint64_t)h->spec.context_max * image_of(h)->context_bytes;
	if (r == 0)
		r = map_far(h, s, h->contexts_bytes, how, &h->contexts_avma, err);
	for (size_t i = 0; r == 0 && i < AS_ARRAY_LEN(advice); i++) {
		const uint64_t arg[6] = {h->contexts_avma, h->contexts_bytes,
					 (uint64_t)advice[i]};
		int64_t got = 0;

		r = as_stop_call(s, SYS_madvise, arg, &got, err);
		/* the two others are wishes; without this one a child would use our rings */
		if (r == 0 && got < 0 && advice[i] == MADV_WIPEONFORK)
			r = as_fail(err, AS_E_UNSUPPORTED, (int)-got,
				    "this kernel has no MADV_WIPEONFORK (Linux 4.14)");
	}
	return r;
}

static void unmap(struct as_stop *s, uint64_t *avma, uint64_t bytes)
{
	int64_t ignored;

	/* what was mapped a moment ago can be unmapped, or the process is gone */
	if (*avma)
		(void)as_stop_call(s, SYS_munmap, (const uint64_t[6]){*avma, bytes}, &ignored,
				   NULL);
	*avma = 0;
}

static void unmap_all(struct as_hooked *h, struct as_stop *s)
{
	unmap(s, &h->contexts_avma, h->contexts_bytes);
	unmap(s, &h->sampled_avma, AS_RT_SAMPLED_BYTES);
	unmap(s, &h->home_avma, AS_HOOK_HOME_BYTES);
	unmap(s, &h->shared_avma, h->shared_bytes);
	if (h->shared)
		munmap(h->shared, h->shared_bytes);
	if (h->shared_fd >= 0)
		close(h->shared_fd);
	h->shared = NULL;
	h->shared_fd = -1;
}

static int map_memory(struct as_hooked *h, struct as_stop *s, struct as_error *err)
{
	int r = map_shared(h, s, err);

	return r < 0 ? r : map_private(h, s, err);
}

/* Address space may be limited (ulimit -v), or what may be mapped (vm.overcommit_memory 2): fewer threads
 * then have rings at a time. */
static int map_once(struct as_hooked *h, struct as_stop *s, struct as_error *err)
{
	int r = map_memory(h, s, err);

	for (uint32_t n = h->spec.context_max;
	     r < 0 && err && err->sys_errno == ENOMEM && n > 8; n = h->spec.context_max) {
		unmap_all(h, s);
		h->spec.context_max = n / 4;
		if (n <= AS_HOOK_FEW_CONTEXTS)
			h->table_bytes /= 4;
		r = map_memory(h, s, err);
	}
	return r;
}

int as_hooked_map(struct as_hooked *h, struct as_stop *s, struct as_error *err)
{
	struct as_error own;
	int r;

	if (!err)
		err = &own;
	r = map_islands(h, s, err);
	return r < 0 || h->shared ? r : map_once(h, s, err);
}

/* ---- what is written there ---- */

static int put(struct as_hooked *h, uint64_t avma, const void *p, size_t n,
	       struct as_error *err)
{
	ssize_t got = pwrite(h->mem_fd, p, n, (off_t)avma);

	if (got == (ssize_t)n)
		return 0;
	return as_fail(err, AS_E_ACCESS, errno, "cannot write code of process %d: %s",
		       (int)h->pid, got < 0 ? strerror(errno) : "its memory has gone");
}

static void set_up_control(struct as_hooked *h)
{
	struct as_rt_control *c = h->shared;
	struct as_maps maps;

	c->version = AS_RT_VERSION;
	c->pid = (uint32_t)h->pid;
	c->clock_ns = as_now_ns();
	c->flags = h->spec.flags;
	c->full_wait_us = h->spec.full_wait_us;
	c->sample_bytes = h->spec.sample_bytes;
	c->tid_off = h->tid_off;
	if (as_maps_read(h->pid, &maps, NULL) == 0) {
		as_vec_foreach (m, &maps.map) {
			if (m->kind == AS_MAP_STACK)
				c->stack_end_avma = m->end;
		}
		as_maps_clear(&maps);
	}
	c->magic = AS_RT_MAGIC;
}

static void set_internal(struct as_hooked *h)
{
	uint64_t lo = UINT64_MAX, hi = 0;

	for (uint32_t i = 0; i < h->ninternal; i++) {
		h->home.internal[i] = h->internal_avma[i];
		lo = AS_MIN(lo, h->internal_avma[i]);
		hi = AS_MAX(hi, h->internal_avma[i]);
	}
	if (!h->ninternal)
		return;
	h->home.internal_lo = lo;
	h->home.internal_span = hi - lo;
}

static int write_home(struct as_hooked *h, struct as_error *err)
{
	uint64_t pid = (uint64_t)h->pid;
	int r;

	h->home = (struct as_rt_home){
		.magic = AS_RT_MAGIC,
		.control = h->shared_avma,
		.rings = h->shared_avma + AS_RT_CONTROL_BYTES,
		.contexts = h->contexts_avma,
		.context_max = h->spec.context_max,
		.ring_bytes = h->spec.ring_bytes,
	};
	h->home.sampled = h->sampled_avma;
	set_internal(h);
	set_up_control(h);
	r = put(h, h->contexts_avma + AS_RT_CONTEXT_PID, &pid, sizeof pid, err);
	return r < 0 ? r : put(h, h->home_avma, &h->home, sizeof h->home, err);
}

static uint64_t hook_avma(const struct as_hooked *h, const struct as_hooked_function *f)
{
	return h->home_avma + sizeof(struct as_rt_home) +
	       (uint64_t)(f->id - 1) * sizeof(struct as_rt_hook);
}

/* The hook, its thunk and its copy; false: something does not reach. */
static int write_function(struct as_hooked *h, struct as_hooked_function *f,
			  struct as_island *i, struct as_error *err)
{
	uint64_t bias = h->module.v[f->module].bias;
	uint64_t thunk = i->avma + i->used, copy = thunk + AS_HOOK_THUNK_MAX;
	uint8_t code[AS_HOOK_THUNK_MAX + AS_DETOUR_TRAMPOLINE] = {0};
	struct as_rt_hook hook = {.original = copy,
				  .home = h->home_avma,
				  .id = f->id,
				  .kind = f->what.kind,
				  .flags = f->what.counted ? AS_RT_HOOK_COUNT : 0};
	const uint32_t *entries =
		h->spec.sample_bytes ? image_of(h)->sampled : image_of(h)->entry;
	uint64_t entry = i->avma + entries[f->what.kind];
	size_t n = as_detour_trampoline(&f->detour, bias, copy, code + AS_HOOK_THUNK_MAX);
	int r;

	f->state = AS_HOOK_TOO_FAR;
	if (!n || !as_hook_thunk(thunk, hook_avma(h, f), entry, code) ||
	    !as_detour_patch(&f->detour, bias, thunk, f->patch))
		return 0;
	r = put(h, hook_avma(h, f), &hook, sizeof hook, err);
	if (r == 0)
		r = put(h, thunk, code, AS_HOOK_THUNK_MAX + n, err);
	if (r < 0)
		return r;
	i->used += (AS_HOOK_THUNK_MAX + n + 15) & ~15ull;
	f->thunk_avma = thunk;
	f->copy_avma = copy;
	f->state = AS_HOOK_GONE;
	return 0;
}

/* What is called instead of a function that throws: its copy, so that it is not told as well. */
static int write_instead(struct as_hooked *h, const struct as_hooked_function *f,
			 struct as_error *err)
{
	uint64_t at = f->what.instead_svma + h->module.v[f->module].bias;

	if (f->what.kind != AS_RT_NEW || !f->thunk_avma)
		return 0;
	as_vec_foreach (g, &h->fn) {
		if (g->module == f->module && g->what.svma == f->what.instead_svma &&
		    g->copy_avma)
			at = g->copy_avma;
	}
	return put(h, hook_avma(h, f) + offsetof(struct as_rt_hook, instead), &at, sizeof at,
		   err);
}

int as_hooked_write(struct as_hooked *h, size_t from, struct as_error *err)
{
	const struct as_island_note note = {AS_RT_MAGIC, h->contexts_avma, h->contexts_bytes};
	const uint64_t image = as_hooked_image_bytes(image_of(h));
	int r = h->home.magic ? 0 : write_home(h, err);

	as_vec_foreach (i, &h->island) {
		/* an island that has code has the image */
		if (r < 0 || i->used != image + AS_ISLAND_NOTE_BYTES)
			continue;
		r = put(h, i->avma, h->spec.image, image_of(h)->bytes, err);
		if (r == 0)
			r = put(h, i->avma + image, &note, sizeof note, err);
	}
	for (size_t k = from; r == 0 && k < h->fn.n; k++) {
		struct as_hooked_function *f = &h->fn.v[k];
		struct as_island *i = island_for(h, &h->module.v[f->module]);

		if (f->verdict != AS_DETOUR_OK || f->thunk_avma)
			continue;
		f->state = AS_HOOK_TOO_FAR;
		if (i)
			r = write_function(h, f, i, err);
	}
	for (size_t k = from; r == 0 && k < h->fn.n; k++)
		r = write_instead(h, &h->fn.v[k], err);
	return r;
}
