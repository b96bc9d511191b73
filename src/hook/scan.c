/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The modules of a process: which of their functions are wanted, and whether they can be patched. */
#include "hook/hooked_priv.h"

#include <stdlib.h>
#include <string.h>

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

static void add_function(struct as_hooked *h, const struct as_known_function *k)
{
	struct as_hooked_function f = {.detour = k->detour,
				       .what = k->what,
				       .module = (uint32_t)h->module.n - 1,
				       .verdict = k->verdict};

	if (h->fn.n >= AS_HOOK_MAX_FUNCTIONS)
		return;
	f.id = (uint16_t)(h->fn.n + 1);
	if (f.verdict == AS_DETOUR_OK && f.detour.calls && h->has_shadow_stack) {
		f.verdict = AS_DETOUR_CALL;
		f.detour.svma = f.what.svma;
	}
	f.state = f.verdict == AS_DETOUR_OK ? AS_HOOK_GONE : AS_HOOK_REFUSED;
	as_vec_push(&h->fn, f);
}

/* Modules that cannot be read or are of another machine have no functions: that is no failure of the
 * whole, there may be others. */
static void add_functions(struct as_hooked *h, struct as_module *m)
{
	struct as_hooked_module *mine = &h->module.v[h->module.n - 1];
	const struct as_known_module *k =
		as_hook_known_get(h->known, h->image, m, h->spec.groups);

	mine->unseen = k->unseen;
	mine->why = k->why;
	for (uint32_t i = 0; i < k->ninternal && h->ninternal < AS_RT_INTERNAL; i++)
		h->internal_avma[h->ninternal++] = k->internal_svma[i] + mine->bias;
	as_vec_foreach (f, &k->fn)
		add_function(h, f);
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
