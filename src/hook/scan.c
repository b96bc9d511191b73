/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The modules of a process: which of their functions are wanted, and whether they can be patched. */
#include "hook/hooked_priv.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"

static struct as_hooked_module *find_module(struct as_hooked *h, uint32_t id, uint64_t bias)
{
	as_vec_foreach (m, &h->module) {
		if (m->id == id && m->bias == bias)
			return m;
	}
	return NULL;
}

static void span_of(const struct as_module *m, uint64_t bias, uint64_t *lo, uint64_t *hi)
{
	*lo = UINT64_MAX;
	*hi = 0;
	for (size_t i = 0; i < m->nsegments; i++) {
		const struct as_elf_segment *s = &m->segments[i];

		*lo = AS_MIN(*lo, s->svma + bias);
		*hi = AS_MAX(*hi, s->svma + s->memsz + bias);
	}
}

static void add_function(struct as_hooked *h, struct as_hook_code *code,
			 const struct as_allocator *a)
{
	struct as_hooked_function f = {.what = *a, .module = (uint32_t)h->module.n - 1};

	if (h->fn.n >= AS_HOOK_MAX_FUNCTIONS)
		return;
	f.id = (uint16_t)(h->fn.n + 1);
	f.verdict = (uint8_t)as_detour_plan(code, a->svma, &f.detour);
	if (f.verdict == AS_DETOUR_OK && f.detour.calls && h->has_shadow_stack)
		f.verdict = AS_DETOUR_CALL;
	if (f.verdict != AS_DETOUR_OK)
		f.detour.svma = a->svma;
	f.state = f.verdict == AS_DETOUR_OK ? AS_HOOK_GONE : AS_HOOK_REFUSED;
	as_vec_push(&h->fn, f);
}

static bool has_blocks(const struct as_allocators *list)
{
	as_vec_foreach (a, list) {
		if (a->group == AS_HOOKS_HEAP)
			return true;
	}
	return false;
}

/* Modules that cannot be read or are of another machine have no functions: that is no failure of the
 * whole, there may be others. */
static void add_functions(struct as_hooked *h, struct as_module *m)
{
	struct as_hooked_module *mine = &h->module.v[h->module.n - 1];
	struct as_hook_code *code;
	struct as_allocators list;
	size_t n;
	const struct as_extent *extents;
	int fd = m->fd >= 0 ? fcntl(m->fd, F_DUPFD_CLOEXEC, 0) : -1;

	if (fd < 0 || as_elf_open_fd(fd, m->path, &mine->elf, NULL) < 0)
		return;
	as_allocators_find(mine->elf, h->spec.groups, &list);
	if (!has_blocks(&list))
		mine->unseen = as_hooked_find_unseen(mine->elf);
	if (h->spec.groups & AS_HOOKS_HEAP)
		as_hooked_find_internal(h, mine->elf, &list);
	if (list.n) {
		extents = as_image_module_extents(h->image, m, &n);
		if (as_hook_code_new(mine->elf, extents, n, &code, NULL) == 0) {
			as_vec_foreach (a, &list)
				add_function(h, code, a);
			as_hook_code_free(code);
		}
	}
	as_allocators_clear(&list);
	if (h->fn.n && h->fn.v[h->fn.n - 1].module == h->module.n - 1) {
		as_elf_give_back_pages(mine->elf);
		return;
	}
	as_elf_close(mine->elf); /* nothing names it */
	mine->elf = NULL;
}

static void add_module(struct as_hooked *h, const struct as_mapping *map)
{
	struct as_module *m = as_image_module(h->image, map->module);
	struct as_hooked_module new = {.id = m->id, .bias = map->bias, .present = true};

	if (m->kind == AS_MODULE_VDSO || m->kind == AS_MODULE_JIT || !m->nsegments)
		return;
	span_of(m, map->bias, &new.lo, &new.hi);
	new.path = as_xstrdup(m->path ? m->path : "");
	as_vec_push(&h->module, new);
	add_functions(h, m);
}

/* The bytes of a module that has gone may be anything by now. */
static void forget_gone(struct as_hooked *h)
{
	as_vec_foreach (f, &h->fn) {
		if (!h->module.v[f->module].present && f->state == AS_HOOK_ACTIVE)
			f->state = AS_HOOK_GONE;
	}
}

int as_hooked_scan(struct as_hooked *h, size_t *ret_from, struct as_error *err)
{
	struct as_process *p;
	int r;

	*ret_from = h->fn.n;
	r = as_image_read_maps(h->image, h->pid, as_now_ns(), err);
	if (r < 0)
		return r;
	p = as_image_process(h->image, h->pid);
	if (!p)
		return as_fail(err, AS_E_NOTFOUND, 0, "no process %d", (int)h->pid);
	as_vec_foreach (m, &h->module)
		m->present = false;
	for (size_t i = 0; i < p->nmap; i++) {
		struct as_hooked_module *m = find_module(h, p->map[i].module, p->map[i].bias);

		if (m)
			m->present = true;
		else
			add_module(h, &p->map[i]);
	}
	forget_gone(h);
	return 0;
}
