/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Code from the module's file on this machine, when that is the file that was recorded. Chains come
 * from its debug information, so inlined functions without samples are in them, too.
 */
#include "view/listing_priv.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "elf/elf.h"
#include "image/image.h"
#include "symbol/demangle.h"
#include "symbol/ranges.h"

struct live {
	struct as_listing_build *b;
	struct as_symmod *sym;
	struct as_map64 functions; /* hash of a name, or of name and file -> index + 1 */
	struct as_map64 names;     /* svma of a symbol -> its short name in the arena */
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

static void put_function(struct live *v, uint64_t key, uint32_t function)
{
	bool fresh;
	uint64_t *slot = as_map64_put(&v->functions, key, &fresh);

	if (fresh)
		*slot = function + 1u;
}

static void index_functions(struct live *v)
{
	const struct as_model *m = v->b->m;

	for (uint32_t i = 0; i < m->functions.n; i++) {
		const struct as_m_function *f = &m->functions.v[i];
		uint32_t same = f->same < m->functions.n ? f->same : i;

		if (f->module != v->b->l->module || (f->flags & AS_FUNCTION_MARKER))
			continue;
		put_function(v, key_of(f->linkage, f->file), same);
		put_function(v, key_of(f->linkage, NULL), same);
	}
}

static uint32_t find_function(const struct live *v, const struct as_symframe *f)
{
	const char *name = f->linkage ? f->linkage : f->name;
	const uint64_t *slot;

	if (!name)
		return AS_NONE;
	slot = as_map64_get(&v->functions, key_of(name, f->decl_file));
	if (!slot)
		slot = as_map64_get(&v->functions, key_of(name, NULL));
	return slot ? (uint32_t)*slot - 1 : AS_NONE;
}

/* ---- names ---- */

static const char *brief_name(struct live *v, const char *linkage)
{
	enum as_lang lang;
	bool cold;

	as_buf_reset(&v->full);
	as_buf_reset(&v->brief);
	lang = as_demangle(linkage, &v->full, &cold);
	as_name_short(as_buf_str(&v->full), lang, 0, &v->brief);
	return as_arena_strdup(&v->b->l->arena, as_buf_str(&v->brief));
}

static const char *symbol_name(struct as_listing_build *b, uint64_t svma, bool code,
			       uint64_t *ret_off)
{
	struct live *v = b->name_ctx;
	struct as_symname s;
	uint64_t *slot;
	bool fresh;

	if (!as_symmod_name(v->sym, svma, &s))
		return NULL;
	*ret_off = svma - s.svma;
	slot = as_map64_put(&v->names, s.svma, &fresh);
	if (fresh)
		*slot = (uint64_t)(uintptr_t)brief_name(v, s.linkage);
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
		p.function = name ? brief_name(v, name) : "[no name]";
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

/* Whether the file at the module's path is the recorded one; a note says why not. */
static bool is_recorded(struct as_listing_build *b, const struct as_module *file)
{
	const struct as_m_module *m = &b->m->modules.v[b->l->module];

	b->newest_ns = changed_ns(file->fd);
	if (m->build_id_len && same_id(m, file))
		return true;
	if (m->build_id_len) {
		as_listing_note(b,
				"'%s' is not the file that was recorded: its build-id differs",
				m->path);
		return false;
	}
	if (b->newest_ns > b->m->recording.start_realtime_ns) {
		as_listing_note(b, "'%s' has changed since the recording, and has no build-id",
				m->path);
		return false;
	}
	return true;
}

struct opened {
	uint32_t module;
	struct as_module *file; /* NULL: it could not be opened, why says it */
	struct as_symmod *sym;  /* NULL likewise */
	char *why;
};

struct as_listing_files {
	struct as_image *im;
	AS_VEC(struct opened) v;
};

struct as_listing_files *as_listing_files_new(const char *cache_dir)
{
	struct as_listing_files *f = as_xcalloc(1, sizeof *f);

	f->im = as_image_new(cache_dir);
	return f;
}

void as_listing_files_free(struct as_listing_files *f)
{
	if (!f)
		return;
	as_vec_foreach (o, &f->v) {
		as_symmod_close(o->sym);
		free(o->why);
	}
	as_vec_clear(&f->v);
	as_image_free(f->im);
	free(f);
}

static const struct opened *open_module(struct as_listing_files *files,
					const struct as_listing_build *b)
{
	struct opened o = {.module = b->l->module};
	struct as_error err = {0};

	as_vec_foreach (have, &files->v) {
		if (have->module == o.module)
			return have;
	}
	o.file = as_image_add_file(files->im, b->m->modules.v[o.module].path, &err);
	if (o.file) {
		struct as_symmod_spec spec = {
			.fd = o.file->fd, .path = o.file->path, .cache_dir = b->q->cache_dir};

		spec.extents = as_image_module_extents(files->im, o.file, &spec.nextents);
		if (as_symmod_open(&spec, &o.sym, &err) < 0)
			o.sym = NULL;
	}
	if (!o.sym)
		o.why = as_xstrdup(err.msg);
	as_vec_push(&files->v, o);
	return &files->v.v[files->v.n - 1];
}

static void with_symbols(struct as_listing_build *b, struct as_symmod *sym)
{
	struct live v = {.b = b, .sym = sym};

	index_functions(&v);
	b->name_of = symbol_name;
	b->name_ctx = &v;
	add_spots(&v);
	b->name_of = NULL;
	as_map64_clear(&v.functions);
	as_map64_clear(&v.names);
	as_buf_clear(&v.full);
	as_buf_clear(&v.brief);
	as_vec_clear(&v.region.ranges);
}

void as_listing_live(struct as_listing_build *b)
{
	const struct as_m_module *m = &b->m->modules.v[b->l->module];
	struct as_listing_files *files = b->q->files;

	if (m->kind != AS_MODULE_FILE) {
		as_listing_note(b, "the recording has not kept its instructions");
		return;
	}
	if (!files)
		files = as_listing_files_new(b->q->cache_dir);

	const struct opened *o = open_module(files, b);

	if (!o->file)
		as_listing_note(b, "no instructions: %s", o->why);
	else if (!is_recorded(b, o->file))
		; /* it has said why */
	else if (!o->sym)
		as_listing_note(b, "%s", o->why);
	else
		with_symbols(b, o->sym);
	if (!b->q->files)
		as_listing_files_free(files);
}
