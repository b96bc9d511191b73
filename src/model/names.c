/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Makes a loaded model complete, so that no view meets a frame without a function: names for
 * what was not resolved (the recorder died first, unknown memory), markers above truncated
 * stacks, and one function for all records that mean the same one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "model/model_priv.h"

struct identity {
	const char *full, *file, *crate;
	uint64_t module;
};

/* A function and its cold part, or the records of two resolving rounds, become one. Texts are
 * compared by address: the writer interns them. */
static void join_functions(struct as_model *m)
{
	AS_CLEANUP(as_free_autop)
	uint32_t *same = as_xreallocarray(NULL, m->functions.n + 1, 4);
	struct as_map64 by_hash = {0};

	for (uint32_t i = 0; i < m->functions.n; i++) {
		const struct as_m_function *f = &m->functions.v[i];
		struct identity id = {f->full, f->file, f->crate, f->module};
		uint64_t *first;
		const struct as_m_function *g;
		bool fresh;

		same[i] = i;
		if (f->full[0] == 0 || (f->flags & AS_FUNCTION_SYNTHETIC))
			continue;
		first = as_map64_put(&by_hash, as_hash64(&id, sizeof id) >> 1, &fresh);
		if (fresh)
			*first = i;
		g = &m->functions.v[*first];
		if (g->full == f->full && g->file == f->file && g->crate == f->crate &&
		    g->module == f->module)
			same[i] = (uint32_t)*first;
	}
	as_vec_foreach (p, &m->places) {
		p->generic = m->functions.v[p->function].generic;
		p->function = same[p->function];
	}
	as_vec_foreach (p, &m->code_places)
		p->function = same[p->function];
	as_vec_foreach (c, &m->codes)
		c->function = c->function == AS_NONE ? AS_NONE : same[c->function];
	for (uint32_t i = 0; i < m->functions.n; i++)
		m->functions.v[i].same = same[i];
	as_map64_clear(&by_hash);
}

/* A function is where its code is: the module of the first frame that names it. */
static void place_functions(struct as_model *m)
{
	as_vec_foreach (f, &m->frames) {
		for (uint32_t i = 0; i < f->nchain; i++) {
			struct as_m_function *fn =
				&m->functions.v[m->places.v[f->chain + i].function];

			if (fn->module == AS_NONE)
				fn->module = f->module;
		}
	}
}

/* Records that left a name out: another form of it, never an empty one. */
static void fill_names(struct as_model *m)
{
	as_vec_foreach (f, &m->functions) {
		const char *any = f->full[0] ? f->full : f->brief[0] ? f->brief : f->linkage;

		if (!any[0]) {
			any = "[no name]";
			f->flags |= AS_FUNCTION_SYNTHETIC;
		}
		if (!f->full[0])
			f->full = any;
		if (!f->brief[0])
			f->brief = any;
		if (!f->linkage[0])
			f->linkage = any;
	}
}

static uint32_t add_function(struct as_model *m, uint32_t module, const char *name,
			     unsigned flags)
{
	as_vec_push(&m->functions, (struct as_m_function){.module = module,
							  .linkage = name,
							  .full = name,
							  .brief = name,
							  .crate = "",
							  .file = "",
							  .flags = (uint8_t)flags,
							  .same = (uint32_t)m->functions.n});
	return (uint32_t)m->functions.n - 1;
}

static const char *address_name(struct as_model *m, const struct as_m_frame *f)
{
	char b[512];
	unsigned long long addr = f->addr;

	if (f->module == AS_NONE)
		snprintf(b, sizeof b, "[%s 0x%llx]",
			 f->flags & AS_FRAME_KERNEL ? "kernel" : "unknown", addr);
	else if (m->modules.v[f->module].kind == AS_MODULE_KERNEL)
		snprintf(b, sizeof b, "[kernel 0x%llx]", addr);
	else if (m->modules.v[f->module].kind == AS_MODULE_JIT)
		return "[jit]";
	else
		snprintf(b, sizeof b, "%s+0x%llx", m->modules.v[f->module].name, addr);
	return as_arena_strdup(&m->arena, b);
}

/* Addresses of one module that share a made-up name share the function. */
static uint32_t address_function(struct as_model *m, struct as_map64 *made, uint32_t frame)
{
	const struct as_m_frame *f = &m->frames.v[frame];
	bool jit = f->module != AS_NONE && m->modules.v[f->module].kind == AS_MODULE_JIT;
	uint64_t key[3] = {f->module, jit ? 0 : f->addr, f->flags & AS_FRAME_KERNEL};
	bool fresh;
	uint64_t *id = as_map64_put(made, as_hash64(key, sizeof key) >> 1, &fresh);

	if (fresh)
		*id = add_function(m, f->module, address_name(m, f), AS_FUNCTION_SYNTHETIC);
	return (uint32_t)*id;
}

static void complete_frames(struct as_model *m)
{
	struct as_map64 made = {0};

	for (uint32_t i = 0; i < m->frames.n; i++) {
		struct as_m_place p = {.file = ""};

		if (m->frames.v[i].nchain)
			continue;
		p.function = address_function(m, &made, i);
		m->frames.v[i].chain = (uint32_t)m->places.n;
		m->frames.v[i].nchain = 1;
		as_vec_push(&m->places, p);
	}
	as_map64_clear(&made);
}

static void add_markers(struct as_model *m)
{
	static const char *const names[AS_END_COUNT_] = {
#define X(n, NAME, key, text) "[truncated: " key "]",
		AS_STACK_ENDS(X)
#undef X
	};

	m->end_function[AS_END_ROOT] = AS_NONE;
	for (unsigned e = 0; e < AS_END_COUNT_; e++) {
		if (e != AS_END_ROOT)
			m->end_function[e] = add_function(
				m, AS_NONE, e == AS_END_NOSTACK ? "[no user stack]" : names[e],
				AS_FUNCTION_SYNTHETIC | AS_FUNCTION_MARKER);
	}
}

void as_model_complete(struct as_model *m)
{
	place_functions(m);
	join_functions(m);
	fill_names(m);
	complete_frames(m);
	add_markers(m);
	as_model_order_code(m);
}
