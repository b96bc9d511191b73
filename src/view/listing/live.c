/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Code from the module's file on this machine, when that is the file that was recorded. Chains come
 * from its debug information, so inlined functions without samples are in them, too.
 */
#include "view/listing/listing_priv.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "elf/elf.h"
#include "image/image.h"
#include "symbol/demangle.h"
#include "symbol/ranges.h"

struct live {
	struct as_listing_build *b;
	struct as_listing_module *module;
	struct as_symmod *sym;
	struct as_map64 names; /* svma of a symbol -> its short name in the arena */
	struct as_buf full, brief;
	struct as_listing_region region;
};

/* ---- functions of the model by name ---- */

static uint64_t key_of(const char *name, const char *file)
{
	uint64_t h = as_hash64(name, strlen(name));

	if (file && *file)
		h ^= as_mix64(as_hash64(file, strlen(file)));
	return h >> 1;
}

static void put_function(struct as_map64 *functions, uint64_t key, uint32_t function)
{
	bool fresh;
	uint64_t *slot = as_map64_put(functions, key, &fresh);

	if (fresh)
		*slot = function + 1u;
}

static void index_functions(const struct as_model *m, struct as_listing_module *module)
{
	for (uint32_t i = 0; i < m->functions.n; i++) {
		const struct as_m_function *f = &m->functions.v[i];
		uint32_t same = f->same < m->functions.n ? f->same : i;

		if (f->module != module->module || (f->flags & AS_FUNCTION_MARKER))
			continue;
		put_function(&module->functions, key_of(f->linkage, f->file), same);
		put_function(&module->functions, key_of(f->linkage, NULL), same);
	}
}

static uint32_t find_function(const struct live *v, const struct as_symframe *f)
{
	const char *name = f->linkage ? f->linkage : f->name;
	const uint64_t *slot;

	if (!name)
		return AS_NONE;
	slot = as_map64_get(&v->module->functions, key_of(name, f->decl_file));
	if (!slot)
		slot = as_map64_get(&v->module->functions, key_of(name, NULL));
	return slot ? (uint32_t)*slot - 1 : AS_NONE;
}

/* ---- names ---- */

/* A cold part tells that it is one: beside its function it is another place. */
static const char *brief_name(struct live *v, const char *linkage, bool symbol)
{
	enum as_lang lang;
	bool cold = false;

	as_buf_reset(&v->full);
	as_buf_reset(&v->brief);
	lang = as_demangle(linkage, &v->full, &cold);
	as_name_short(as_buf_str(&v->full), lang, 0, &v->brief);
	if (cold && symbol)
		as_buf_adds(&v->brief, ".cold");
	return as_arena_strdup(&v->b->l->arena, as_buf_str(&v->brief));
}

static const char *symbol_name(struct as_listing_build *b, uint64_t svma, bool code,
			       uint64_t *ret_off)
{
	struct live *v = b->name_ctx;
	struct as_symname s;
	uint64_t *slot;
	bool fresh;

	if (!(code ? as_symmod_name(v->sym, svma, &s) : as_symmod_data_name(v->sym, svma, &s)))
		return NULL;
	*ret_off = svma - s.svma;
	slot = as_map64_put(&v->names, s.svma, &fresh);
	if (fresh)
		*slot = (uint64_t)(uintptr_t)brief_name(v, s.linkage, true);
	return (const char *)(uintptr_t)*slot;
}

/* ---- chains ---- */

static void add_place(struct live *v, const struct as_symframe *f)
{
	struct as_listing *l = v->b->l;
	struct as_listing_place p = {
		.key = find_function(v, f),
		.line = f->line,
		.column = f->column,
		.inlined = f->inlined,
	};
	const char *name = f->linkage ? f->linkage : f->name;

	if (p.key != AS_NONE)
		p.function = v->b->m->functions.v[p.key].brief;
	else
		p.function = name ? brief_name(v, name, false) : "[no name]";
	p.file = f->file ? as_arena_strdup(&l->arena, f->file) : NULL;
	as_vec_push(&l->places, p);
}

static void on_range(void *ctx, uint64_t lo, uint64_t hi, const struct as_symchain *chain)
{
	struct live *v = ctx;
	struct as_listing *l = v->b->l;
	struct as_listing_range r = {.hi = hi,
				     .place = (uint32_t)l->places.n,
				     .nplaces = (uint32_t)chain->n,
				     .wanted = v->region.whole};

	(void)lo;
	for (size_t i = 0; i < chain->n; i++) {
		add_place(v, &chain->frames[i]);
		r.wanted |= l->places.v[l->places.n - 1].key == v->b->q->function;
	}
	as_vec_push(&v->region.ranges, r);
}

static void add_part(struct live *v, const struct as_sympart *part, bool whole)
{
	struct as_elf *e = as_symmod_elf(v->sym);
	const uint8_t *bytes = as_elf_at(e, part->lo, part->hi - part->lo);

	if (!as_listing_claim(v->b, part->lo, part->hi))
		return;
	if (!bytes) {
		as_listing_note(v->b, "a part of its code is not in the file");
		return;
	}
	v->region.whole = whole;
	v->region.arch = as_elf_arch(e);
	v->region.lo = part->lo;
	v->region.bytes = bytes;
	v->region.n = part->hi - part->lo;
	v->region.ranges.n = 0;
	as_symmod_ranges(v->sym, part->lo, part->hi, on_range, v);
	as_listing_add_region(v->b, &v->region);
}

static void add_spots(struct live *v)
{
	struct as_sympart part[AS_SYMPART_MAX];

	as_vec_foreach (s, &v->b->spots) {
		size_t n;

		if (s->done)
			continue;
		n = as_symmod_parts(v->sym, s->svma, part, AS_SYMPART_MAX);
		if (!n)
			as_listing_note(v->b, "where its code begins and ends is not known");
		s->done = true;
		for (size_t i = 0; i < n; i++)
			add_part(v, &part[i], s->whole);
	}
}

/* ---- the file ---- */

static bool same_id(const struct as_m_module *m, const struct as_module *file)
{
	uint8_t a[20] = {0}, b[20] = {0};

	memcpy(a, m->build_id, m->build_id_len);
	memcpy(b, file->build_id.id, AS_MIN(file->build_id.len, sizeof b));
	return file->has_build_id && memcmp(a, b, sizeof a) == 0;
}

static uint64_t changed_ns(int fd)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return 0;
	return (uint64_t)AS_MAX(st.st_mtim.tv_sec, 0) * 1000000000u +
	       (uint64_t)st.st_mtim.tv_nsec;
}

/* Why the file at the module's path is not the recorded one; NULL: it is. */
static char *not_recorded(const struct as_model *model, const struct as_m_module *m,
			  const struct as_module *file, uint64_t newest_ns)
{
	if (m->build_id_len && same_id(m, file))
		return NULL;
	if (m->build_id_len)
		return as_xasprintf(
			"'%s' is not the file that was recorded: its build-id differs",
			m->path);
	if (newest_ns > model->recording.start_realtime_ns)
		return as_xasprintf("'%s' has changed since the recording, and has no build-id",
				    m->path);
	return NULL;
}

static void open_module(struct as_listing_build *b, struct as_listing_module *o)
{
	const struct as_m_module *m = &b->m->modules.v[o->module];
	struct as_symmod_spec spec = {.cache_dir = b->q->cache_dir};
	struct as_error err = {0};
	struct as_module *file;

	file = as_image_add_file(b->files->im, m->path, &err);
	if (!file) {
		o->why = as_xasprintf("no instructions: %s", err.msg);
		return;
	}
	o->newest_ns = changed_ns(file->fd);
	o->why = not_recorded(b->m, m, file, o->newest_ns);
	if (o->why)
		return;
	spec.fd = file->fd;
	spec.path = file->path;
	spec.extents = as_image_module_extents(b->files->im, file, &spec.nextents);
	if (as_symmod_open(&spec, &o->sym, &err) < 0)
		o->why = as_xasprintf("no instructions: %s", err.msg);
	else
		index_functions(b->m, o);
}

void as_listing_module_close(struct as_listing_module *m)
{
	as_symmod_close(m->sym);
	as_map64_clear(&m->functions);
	free(m->why);
}

static struct as_listing_module *module_of(struct as_listing_build *b)
{
	struct as_listing_module *o;

	as_vec_foreach (m, &b->files->modules) {
		if (m->module == b->l->module)
			return m;
	}
	as_vec_push(&b->files->modules, (struct as_listing_module){.module = b->l->module});
	o = &b->files->modules.v[b->files->modules.n - 1];
	open_module(b, o);
	return o;
}

static void with_module(struct as_listing_build *b, struct as_listing_module *o)
{
	struct live v = {.b = b, .module = o, .sym = o->sym};

	b->newest_ns = o->newest_ns;
	b->name_of = symbol_name;
	b->name_ctx = &v;
	add_spots(&v);
	b->name_of = NULL;
	as_map64_clear(&v.names);
	as_buf_clear(&v.full);
	as_buf_clear(&v.brief);
	as_vec_clear(&v.region.ranges);
}

void as_listing_live(struct as_listing_build *b)
{
	struct as_listing_module *o;

	if (b->m->modules.v[b->l->module].kind != AS_MODULE_FILE) {
		as_listing_note(b, "the recording has not kept its instructions");
		return;
	}
	o = module_of(b);
	if (o->sym)
		with_module(b, o);
	else
		as_listing_note(b, "%s", o->why);
}
