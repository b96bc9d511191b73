/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Keys: what a frame counts as, and what that is called.
 *
 *	by		key < nplain		key >= nplain (minus nplain)
 *	FUNCTION	function		-
 *	THREAD, PROCESS	thread, process		function
 *	MODULE		module			label
 *	LINE FILE CRATE	- (nplain is 0)		label
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "model/profile/profile_priv.h"

bool as_by_joins(enum as_by by)
{
	return by == AS_BY_FILE || by == AS_BY_MODULE || by == AS_BY_CRATE;
}

bool as_by_groups(enum as_by by)
{
	return by == AS_BY_THREAD || by == AS_BY_PROCESS;
}

static uint32_t label(struct as_profile_priv *p, const struct as_label *want)
{
	uint64_t h = as_hash64(want->name, strlen(want->name)) ^
		     as_mix64((uint64_t)want->function << 32 | want->line) ^
		     as_hash64(want->file, strlen(want->file)) * 3;

	for (;; h++) {
		bool fresh;
		uint64_t *id = as_map64_put(&p->label_ids, h >> 1, &fresh);
		const struct as_label *l;

		if (fresh) {
			*id = p->labels.n;
			as_vec_push(&p->labels, *want);
			return p->nplain + (uint32_t)*id;
		}
		l = &p->labels.v[*id];
		if (l->function == want->function && l->line == want->line &&
		    strcmp(l->name, want->name) == 0 && strcmp(l->file, want->file) == 0)
			return p->nplain + (uint32_t)*id;
	}
}

/* "[libc.so.6]": stands where a file or crate is not known. */
static const char *module_label(struct as_build *b, uint32_t module)
{
	struct as_profile_priv *p = b->p;
	const char *name;
	size_t n;
	char *s;

	if (module == AS_NONE)
		return "[unknown]";
	if (!p->module_labels)
		p->module_labels = as_xcalloc(b->m->modules.n, sizeof *p->module_labels);
	if (p->module_labels[module])
		return p->module_labels[module];
	name = b->m->modules.v[module].name;
	if (name[0] == '[')
		return p->module_labels[module] = name;
	n = strlen(name);
	s = as_arena_alloc(&p->pub.arena, n + 3);
	s[0] = '[';
	memcpy(s + 1, name, n);
	s[n + 1] = ']';
	return p->module_labels[module] = s;
}

static uint32_t text_label(struct as_build *b, const char *text, const struct as_m_frame *f)
{
	struct as_label l = {.name = text, .file = "", .function = AS_NONE};

	if (!text[0])
		l.name = module_label(b, f->module);
	return label(b->p, &l);
}

static uint32_t place_label(struct as_build *b, const struct as_m_frame *f,
			    const struct as_m_place *place)
{
	const struct as_m_function *fn = &b->m->functions.v[place->function];
	const char *file = place->file[0] ? place->file : fn->file;

	switch (b->q->by) {
	case AS_BY_FILE:
		return text_label(b, file, f);
	case AS_BY_CRATE:
		return text_label(b, fn->crate, f);
	default:
		return label(b->p, &(struct as_label){.name = fn->brief,
						      .file = file,
						      .function = place->function,
						      .line = place->line});
	}
}

static uint32_t plain_key_of(struct as_build *b, const struct as_m_frame *f,
			     const struct as_m_place *place)
{
	uint32_t *cached;

	switch (b->q->by) {
	case AS_BY_FUNCTION:
		return place->function;
	case AS_BY_THREAD:
	case AS_BY_PROCESS:
		return b->p->nplain + place->function;
	case AS_BY_MODULE:
		return f->module != AS_NONE ? f->module : text_label(b, "", f);
	default:
		cached = &b->p->place_keys[place - b->m->places.v];
		if (*cached == AS_NONE)
			*cached = place_label(b, f, place);
		return *cached;
	}
}

uint32_t as_key_alias(const struct as_build *b, uint32_t key)
{
	return b->q->alias && key < b->q->naliases ? b->q->alias[key] : key;
}

uint32_t as_key_of(struct as_build *b, const struct as_m_frame *f,
		   const struct as_m_place *place)
{
	return as_key_alias(b, plain_key_of(b, f, place));
}

uint32_t as_key_of_marker(struct as_build *b, uint32_t function)
{
	switch (b->q->by) {
	case AS_BY_FUNCTION:
		return function;
	case AS_BY_THREAD:
	case AS_BY_PROCESS:
		return b->p->nplain + function;
	default:
		return label(b->p, &(struct as_label){.name = b->m->functions.v[function].brief,
						      .file = "",
						      .function = function});
	}
}

size_t as_key_count(const struct as_profile_priv *p)
{
	if (as_by_groups(p->pub.query.by))
		return p->nplain + p->pub.model->functions.n;
	return p->nplain + p->labels.n;
}

/* The function a key stands for; AS_NONE: it stands for something else. */
static uint32_t key_function(const struct as_profile_priv *p, uint32_t key)
{
	enum as_by by = p->pub.query.by;

	if (by == AS_BY_FUNCTION)
		return key;
	if (key < p->nplain)
		return AS_NONE;
	return as_by_groups(by) ? key - p->nplain : p->labels.v[key - p->nplain].function;
}

bool as_key_is_marker(const struct as_profile_priv *p, uint32_t key)
{
	uint32_t f = key_function(p, key);

	return f != AS_NONE && (p->pub.model->functions.v[f].flags & AS_FUNCTION_MARKER);
}

static void name_function(const struct as_model *m, uint32_t function, struct as_row *ret)
{
	const struct as_m_function *f = &m->functions.v[function];

	ret->name = f->brief;
	ret->full_name = f->full;
	ret->module = f->module != AS_NONE ? m->modules.v[f->module].name : "";
	ret->file = f->file;
	ret->crate = f->crate;
	ret->line = f->line;
	ret->unsymbolized = f->flags & AS_FUNCTION_SYNTHETIC;
}

static void name_label(const struct as_profile_priv *p, uint32_t key, struct as_row *ret)
{
	const struct as_label *l = &p->labels.v[key - p->nplain];

	if (l->function != AS_NONE) {
		name_function(p->pub.model, l->function, ret);
		ret->file = l->file;
		ret->line = l->line;
		return;
	}
	ret->name = ret->full_name = l->name;
	ret->unsymbolized = l->name[0] == '[';
	if (ret->unsymbolized)
		return;
	if (p->pub.query.by == AS_BY_FILE)
		ret->file = l->name;
	else if (p->pub.query.by == AS_BY_CRATE)
		ret->crate = l->name;
}

static void name_plain(const struct as_profile_priv *p, uint32_t key, struct as_row *ret)
{
	const struct as_model *m = p->pub.model;

	if (p->pub.query.by == AS_BY_MODULE) {
		ret->name = ret->module = m->modules.v[key].name;
		ret->full_name = m->modules.v[key].path;
		ret->unsymbolized = false;
	} else {
		bool thread = p->pub.query.by == AS_BY_THREAD;

		ret->name = thread ? m->threads.v[key].name : m->processes.v[key].name;
		ret->full_name = ret->name;
		ret->line = thread ? m->threads.v[key].tid : m->processes.v[key].pid;
	}
	if (!ret->name[0])
		ret->name = ret->full_name = "[unnamed]";
}

void as_profile_name(const struct as_profile *p, uint32_t key, struct as_row *ret)
{
	const struct as_profile_priv *priv = (const struct as_profile_priv *)p;

	*ret = (struct as_row){.key = key,
			       .name = "all",
			       .full_name = "all",
			       .module = "",
			       .file = "",
			       .crate = ""};
	if (key == AS_NONE)
		return;
	if (p->query.by == AS_BY_FUNCTION)
		name_function(p->model, key, ret);
	else if (key < priv->nplain)
		name_plain(priv, key, ret);
	else if (as_by_groups(p->query.by))
		name_function(p->model, key - priv->nplain, ret);
	else
		name_label(priv, key, ret);
}
