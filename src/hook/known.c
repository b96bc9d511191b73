/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "hook/known.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cache.h"
#include "hook/hooked_priv.h"
#include "hook/signature.h"

#define CACHE_KIND      "allocators"
#define CACHE_MAX_BYTES (16u << 20)

struct as_hook_known {
	AS_VEC(struct as_known_module *) module;
};

struct as_hook_known *as_hook_known_new(void)
{
	return as_xcalloc(1, sizeof(struct as_hook_known));
}

static void free_module(struct as_known_module *m)
{
	as_elf_close(m->elf);
	as_vec_clear(&m->fn);
	free(m->why);
	free(m);
}

void as_hook_known_free(struct as_hook_known *k)
{
	if (!k)
		return;
	as_vec_foreach (m, &k->module)
		free_module(*m);
	as_vec_clear(&k->module);
	free(k);
}

size_t as_hook_known_count(const struct as_hook_known *k)
{
	return k->module.n;
}

static bool has_blocks(const struct as_allocators *list)
{
	as_vec_foreach (a, list) {
		if (a->group == AS_HOOKS_HEAP)
			return true;
	}
	return false;
}

static void add_functions(struct as_known_module *m, struct as_hook_code *code,
			  const struct as_allocators *list)
{
	as_vec_foreach (a, list) {
		struct as_known_function f = {.what = *a};

		f.verdict = (uint8_t)as_detour_plan(code, a->svma, &f.detour);
		if (f.verdict != AS_DETOUR_OK)
			f.detour.svma = a->svma;
		as_vec_push(&m->fn, f);
	}
}

static bool has_function(const struct as_known_module *m, uint64_t svma)
{
	as_vec_foreach (f, &m->fn) {
		if (f->what.svma == svma)
			return true;
	}
	return false;
}

/* ---- a program without symbols: its allocator is known by what it does ---- */

/* What an earlier recording found; an empty list: there is nothing to be found. */
static bool recall(const struct as_signature_program *p, const char *dir, const char *key,
		   struct as_signature *ret)
{
	size_t n;
	void *bytes = as_cache_map(dir, CACHE_KIND, key, &n);
	bool ok = bytes && as_signature_read(p, key, bytes, n, ret);

	if (bytes && !ok)
		as_cache_remove(dir, CACHE_KIND, key);
	as_cache_unmap(bytes, n);
	return ok;
}

static void keep(const struct as_signature *s, const char *dir, const char *key)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	as_signature_write(s, key, &b);
	(void)as_cache_put(dir, CACHE_KIND, key, b.p, b.len, CACHE_MAX_BYTES);
}

/* AS_E_NOTFOUND of `any`, which may well have none: not every program allocates. Of one that is known to
 * have an allocator it is no answer to be kept. */
static int find_by_signature(const struct as_signature_program *p, bool any, const char *dir,
			     struct as_signature *ret, struct as_error *err)
{
	char key[AS_SIGNATURE_KEY_BYTES];
	int r;

	as_signature_key(p->elf, key);
	if (dir && recall(p, dir, key, ret)) {
		if (ret->list.n)
			return 0;
		as_signature_clear(ret);
		return as_fail(err, AS_E_NOTFOUND, 0, "it has no allocator");
	}
	r = as_signature_find(p, ret, err);
	if (dir && r == 0 && ret->is_sure)
		keep(ret, dir, key);
	else if (dir && r < 0 && err->status == AS_E_NOTFOUND && any)
		keep(&(struct as_signature){0}, dir, key);
	return r;
}

/* What the program exports has a name all the same. */
static void add_by_signature(struct as_known_module *m, struct as_image *im,
			     struct as_module *of)
{
	struct as_signature_program p = {.elf = m->elf, .fd = of->fd, .name = of->path};
	bool any = !strcmp(m->unseen, AS_HOOKED_ANY);
	struct as_allocators more = {0};
	struct as_signature found;
	struct as_error err;

	p.extents = as_image_module_extents(im, of, &p.nextents);
	if (find_by_signature(&p, any, as_image_cache_dir(im), &found, &err) < 0) {
		if (err.status == AS_E_NOTFOUND && any)
			m->unseen = NULL;
		else
			m->why = as_xstrdup(err.msg);
		return;
	}
	as_vec_foreach (a, &found.list) {
		if (!has_function(m, a->svma))
			as_vec_push(&more, *a);
	}
	add_functions(m, found.code, &more);
	as_hooked_find_internal(m, &found.list, found.lo_svma, found.hi_svma);
	m->unseen = NULL;
	as_allocators_clear(&more);
	as_signature_clear(&found);
}

static void look_through(struct as_known_module *m, struct as_image *im, struct as_module *of)
{
	struct as_allocators list;
	struct as_hook_code *code;
	const struct as_extent *extents;
	size_t n;
	bool blocks;

	as_allocators_find(m->elf, m->groups, &list);
	blocks = has_blocks(&list);
	if (list.n) {
		extents = as_image_module_extents(im, of, &n);
		if (as_hook_code_new(m->elf, extents, n, &code, NULL) == 0) {
			add_functions(m, code, &list);
			as_hook_code_free(code);
		}
	}
	if (m->groups & AS_HOOKS_HEAP)
		as_hooked_find_internal(m, &list, 0, 0);
	as_allocators_clear(&list);
	if (!(m->groups & AS_HOOKS_HEAP))
		return;
	m->unseen = as_hooked_find_unseen(m->elf);
	if (blocks && m->unseen && !strcmp(m->unseen, AS_HOOKED_ANY))
		m->unseen = NULL;
	if (m->unseen)
		add_by_signature(m, im, of);
}

static struct as_known_module *add_module(struct as_image *im, struct as_module *of,
					  const struct as_known_module *key)
{
	struct as_known_module *m = as_xcalloc(1, sizeof *m);
	int fd = of->fd >= 0 ? fcntl(of->fd, F_DUPFD_CLOEXEC, 0) : -1;

	*m = *key;
	if (fd < 0 || as_elf_open_fd(fd, of->path, &m->elf, NULL) < 0)
		return m;
	look_through(m, im, of);
	if (m->fn.n) {
		as_elf_give_back_pages(m->elf);
	} else {
		as_elf_close(m->elf); /* nothing names it */
		m->elf = NULL;
	}
	return m;
}

const struct as_known_module *as_hook_known_get(struct as_hook_known *k, struct as_image *im,
						struct as_module *m, unsigned groups)
{
	struct as_known_module key = {.id = m->id, .groups = groups};
	struct stat st;

	if (m->fd >= 0 && fstat(m->fd, &st) == 0) {
		key.bytes = (uint64_t)st.st_size;
		key.mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	}
	as_vec_foreach (it, &k->module) {
		const struct as_known_module *o = *it;

		if (o->id == key.id && o->groups == groups && o->bytes == key.bytes &&
		    o->mtime_ns == key.mtime_ns)
			return o;
	}
	as_vec_push(&k->module, add_module(im, m, &key));
	return k->module.v[k->module.n - 1];
}
