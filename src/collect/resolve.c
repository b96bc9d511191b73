/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Names for every recorded place, written into the session when the recording ends: one module
 * after the other, each opened, asked for all its addresses at once, and released before the
 * next.
 *
 * A place that is no exact pc is a return address and is resolved one byte before it, inside the
 * call instruction; but a signal trampoline, and a thread's first frame that no call made (where
 * makecontext lets a coroutine return to), are entered at that very byte. Functions are one per
 * (module, linkage name or name and declaration, or the file its text stands in).
 */
#include "collect/resolve_priv.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elf/elf.h"
#include "symbol/demangle.h"
#include "symbol/kallsyms.h"
#include "symbol/perfmap.h"
#include "symbol/symbol.h"
#include "unwind/unwind.h"

#define FUNCTION_SYNTHETIC 1u
#define FUNCTION_COLD      2u
#define FUNCTION_ALIASES   4u
#define PLACE_INLINED      (1ull << 32)
#define PLACE_LINE_GUESSED (2ull << 32)

uint64_t as_resolver_string(struct as_resolver *v, const char *s)
{
	return s && *s ? as_session_string(v->r->w, s, strlen(s)) : 0;
}

static uint64_t buf_string(struct as_resolver *v, const struct as_buf *b)
{
	return as_session_string(v->r->w, as_buf_str(b), b->len);
}

const char *as_resolver_brief(struct as_resolver *v, const char *linkage)
{
	enum as_lang lang;
	bool cold = false;

	as_buf_reset(&v->full);
	as_buf_reset(&v->brief);
	lang = as_demangle(linkage, &v->full, &cold);
	as_name_short(as_buf_str(&v->full), lang, 0, &v->brief);
	if (cold) /* beside its function it is another place */
		as_buf_adds(&v->brief, ".cold");
	return as_buf_str(&v->brief);
}

/*
 * The file that tells f from others of its name; NULL: its name does. Of inlined functions line
 * tables alone have only the last component ("rem", "{closure#0}").
 */
static const char *telling_file(const struct as_symframe *f)
{
	bool bare = !f->linkage ||
		    (f->name && strcmp(f->linkage, f->name) == 0 &&
		     strncmp(f->linkage, "_Z", 2) != 0 && strncmp(f->linkage, "_R", 2) != 0);

	if (!f->linkage && f->decl_file)
		return f->decl_file;
	return bare && f->inlined && !f->decl_file ? f->file : NULL;
}

/* Names, language and crate of f into the buffers of v. */
static enum as_lang name_of(struct as_resolver *v, const struct as_symframe *f,
			    const char *name, bool *ret_cold)
{
	enum as_lang lang = AS_LANG_RUST;

	as_buf_reset(&v->full);
	as_buf_reset(&v->brief);
	as_buf_reset(&v->crate);
	if (f->decl_file || !telling_file(f) || !as_name_by_file(name, f->file, &v->full))
		lang = as_demangle(name, &v->full, ret_cold);
	as_name_short(as_buf_str(&v->full), lang, 0, &v->brief);
	as_name_crate(as_buf_str(&v->full), lang, &v->crate);
	return lang;
}

/* The id of function f; its record is written the first time. */
static uint64_t function_id(struct as_resolver *v, const struct as_symframe *f)
{
	const char *name = f->linkage ? f->linkage : f->name ? f->name : "";
	const char *file = telling_file(f), *decl = file ? file : "";
	uint64_t key = as_hash64(name, strlen(name)) ^
		       as_mix64(as_hash64(decl, strlen(decl)) + f->synthetic) ^
		       as_mix64((uint64_t)v->module << 32 | (f->linkage ? 0 : f->decl_line));
	struct as_rec_function rec = {.module = v->module + 1, .line = f->decl_line};
	bool fresh, cold = false;
	uint64_t *slot = as_map64_put(&v->functions, key >> 1, &fresh);
	enum as_lang lang;

	if (!fresh)
		return *slot;
	rec.id = *slot = v->nfunctions++;
	lang = name_of(v, f, name, &cold);
	if (!v->brief_only) {
		rec.linkage = as_resolver_string(v, name);
		rec.full = buf_string(v, &v->full);
	}
	rec.brief = buf_string(v, &v->brief);
	rec.crate = buf_string(v, &v->crate);
	rec.file = as_resolver_string(v, f->decl_file ? f->decl_file : file);
	rec.generic = v->brief_only ? 0 : as_resolver_string(v, f->generic);
	rec.lang = lang;
	rec.flags = (f->synthetic ? FUNCTION_SYNTHETIC : 0) | (cold ? FUNCTION_COLD : 0) |
		    (f->aliases ? FUNCTION_ALIASES : 0);
	as_write_function(v->r->w, &rec);
	return rec.id;
}

void as_resolver_place(struct as_resolver *v, const struct as_symframe *f, uint64_t ret[4])
{
	ret[0] = function_id(v, f);
	ret[1] = as_resolver_string(v, f->file);
	ret[2] = f->line;
	ret[3] = f->column | (f->inlined ? PLACE_INLINED : 0) |
		 (f->line_from_call ? PLACE_LINE_GUESSED : 0);
}

static void write_chain(struct as_resolver *v, uint32_t place, const struct as_symframe *frames,
			size_t n)
{
	v->chain.n = 0;
	for (size_t i = 0; i < n; i++) {
		uint64_t four[4];

		as_resolver_place(v, &frames[i], four);
		for (int k = 0; k < 4; k++)
			as_vec_push(&v->chain, four[k]);
	}
	as_write_symbol(v->r->w, &(struct as_rec_symbol){.frame = place,
							 .chain = {v->chain.v, v->chain.n}});
}

static void write_plain(struct as_resolver *v, uint32_t place, const char *name, bool synthetic)
{
	struct as_symframe f = {.name = name, .synthetic = synthetic};

	write_chain(v, place, &f, 1);
}

static uint64_t lookup_addr(const struct as_rec_place *p)
{
	return p->flags & (AS_FRAME_EXACT | AS_FRAME_SIGNAL) || p->addr == 0 ? p->addr
									     : p->addr - 1;
}

static void on_chain(void *ctx, size_t index, uint64_t svma, const struct as_symchain *chain)
{
	struct as_resolver *v = ctx;

	if (v->keep)
		as_keep_note(v, index, svma, chain);
	if (chain->n)
		write_chain(v, v->places[index], chain->frames, chain->n);
}

/* ---- modules that are files ---- */

/* Lines of text as notes about path, a few at most; places where nothing was found are only counted. */
static void write_notes(struct as_resolver *v, const char *path, const char *text)
{
	static const char absent[] = ": not there";
	unsigned places = 0;

	for (int left = 4; *text && left;) {
		size_t n = strcspn(text, "\n");

		if (n > sizeof absent - 1 &&
		    !memcmp(text + n - (sizeof absent - 1), absent, sizeof absent - 1)) {
			places++;
		} else if (n) {
			as_recorder_note(v->r, 1, path, "", "%.*s", (int)n, text);
			left--;
		}
		text += n + (text[n] == '\n');
	}
	if (places)
		as_recorder_note(v->r, 0, path, "",
				 "no separate debug file (looked in %u places)", places);
}

static bool notable(const struct as_resolver *v, const uint32_t *places, size_t n)
{
	uint64_t samples = 0;

	for (size_t i = 0; i < n; i++)
		samples += v->r->places.v[places[i]].samples;
	return samples * 100 >= v->r->samples && samples > 0;
}

static bool follows_call(const struct as_elf *e, uint64_t svma)
{
	for (size_t n = 8; n >= 4; n--) {
		const uint8_t *p = svma >= n ? as_elf_at(e, svma - n, n) : NULL;

		if (p)
			return as_is_after_call(as_elf_arch(e), p, n);
	}
	return true;
}

/* Sets addrs of threads' first frames that were entered by no call back to their first byte. */
static void correct_roots(struct as_resolver *v, const struct as_module *m, uint64_t *addrs,
			  size_t n)
{
	struct as_elf *e = NULL;

	for (size_t i = 0; i < n; i++) {
		const struct as_rec_place *p = &v->r->places.v[v->places[i]];

		if (addrs[i] == p->addr || !as_rec_is_root(v->r, v->places[i]))
			continue;
		if (!e) {
			int fd = m->image ? -1 : fcntl(m->fd, F_DUPFD_CLOEXEC, 0);

			if (fd < 0 || as_elf_open_fd(fd, m->path, &e, NULL) < 0)
				return;
		}
		if (!follows_call(e, p->addr))
			addrs[i] = p->addr;
	}
	as_elf_close(e);
}

static void resolve_file(struct as_resolver *v, const struct as_rec_mod *mod, uint64_t *addrs,
			 size_t n)
{
	struct as_image *im = v->r->im;
	struct as_module *m = as_image_module(im, mod->image_id);
	struct as_symmod_spec spec = {
		.fd = m->fd,
		.image = m->image,
		.image_size = m->image_size,
		.path = m->path,
		.root = m->root,
		.cache_dir = v->o->cache_dir,
		.no_inlines = v->o->no_inlines,
	};
	bool loud = notable(v, v->places, n);
	struct as_error err = {0};
	struct as_symmod *sym;

	correct_roots(v, m, addrs, n);
	if (m->has_build_id)
		spec.expected = m->build_id;
	spec.extents = as_image_module_extents(im, m, &spec.nextents);
	if (as_symmod_open(&spec, &sym, &err) < 0) {
		if (loud)
			as_recorder_note(v->r, 2, m->path, "", "no names: %s", err.msg);
		return;
	}
	as_symmod_resolve(sym, addrs, n, on_chain, v);
	v->brief_only = true;
	if (v->keep)
		as_keep_module(v, m, sym);
	v->brief_only = false;
	if (loud && mod->kind == AS_MODULE_FILE)
		write_notes(v, m->path, as_symmod_notes(sym));
	as_symmod_close(sym);
}

/* ---- kernel and JIT ---- */

void as_recorder_load_kernel(struct as_recorder *r)
{
	if (r->kallsyms_tried)
		return;
	r->kallsyms_tried = true;
	(void)as_kallsyms_load(NULL, &r->kallsyms, NULL); /* absent: treated as hidden */
}

static void resolve_kernel(struct as_resolver *v, const struct as_kallsyms *k,
			   const uint64_t *addrs, size_t n)
{
	bool hidden = !k || as_kallsyms_hidden(k);

	if (hidden)
		as_recorder_note(v->r, 1, "[kernel]", "sudo sysctl kernel.kptr_restrict=0",
				 "kernel functions have no names: their addresses are hidden");
	for (size_t i = 0; i < n; i++) {
		const char *module,
			*name = hidden ? NULL
				       : as_kallsyms_find(k, addrs[i], &(uint64_t){0}, &module);

		if (name)
			write_plain(v, v->places[i], name, false);
		else if (hidden)
			write_plain(v, v->places[i], "[kernel]", true);
	}
}

static void resolve_jit(struct as_resolver *v, const struct as_rec_mod *mod,
			const uint64_t *addrs, size_t n)
{
	const struct as_perfmap *map = NULL;

	as_rec_keep_jit(v->r, mod->pid);
	as_vec_foreach (j, &v->r->jits) {
		if (j->process_pid == (uint32_t)mod->pid)
			map = j->map;
	}
	for (size_t i = 0; map && i < n; i++) {
		const char *name = as_perfmap_find(map, addrs[i], &(uint64_t){0});

		if (name)
			write_plain(v, v->places[i], name, false);
	}
}

/* ---- all of it ---- */

struct by_module {
	uint32_t module, place;
};

static int compare_by_module(const void *a, const void *b)
{
	const struct by_module *x = a, *y = b;

	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return x->place < y->place ? -1 : x->place > y->place;
}

static struct by_module *group_places(struct as_recorder *r)
{
	struct by_module *v = as_xreallocarray(NULL, r->places.n + 1, sizeof *v);

	for (size_t i = 0; i < r->places.n; i++)
		v[i] = (struct by_module){r->places.v[i].module, (uint32_t)i};
	qsort(v, r->places.n, sizeof *v, compare_by_module);
	return v;
}

static void resolve_module(struct as_resolver *v, const struct by_module *group, size_t n)
{
	const struct as_rec_mod *mod = &v->r->mods.v[group[0].module];
	uint64_t *addrs = as_xreallocarray(NULL, n, sizeof *addrs);
	uint32_t *places = as_xreallocarray(NULL, n, sizeof *places);

	for (size_t i = 0; i < n; i++) {
		places[i] = group[i].place;
		addrs[i] = lookup_addr(&v->r->places.v[group[i].place]);
	}
	v->module = group[0].module;
	v->places = places;
	switch (mod->kind) {
	case AS_MODULE_FILE:
	case AS_MODULE_VDSO:
		resolve_file(v, mod, addrs, n);
		break;
	case AS_MODULE_KERNEL:
	case AS_MODULE_KMOD:
		as_recorder_load_kernel(v->r);
		resolve_kernel(v, v->r->kallsyms, addrs, n);
		break;
	case AS_MODULE_JIT:
		resolve_jit(v, mod, addrs, n);
		break;
	}
	free(addrs);
	free(places);
}

int as_recorder_resolve(struct as_recorder *r, const struct as_resolve_options *o,
			struct as_error *err)
{
	struct as_resolver v = {
		.r = r, .o = o, .keep = o->names_only ? NULL : as_keep_new(r, o)};
	struct by_module *group = group_places(r);
	size_t n = r->places.n;

	as_rec_flush_ticks(r);
	for (size_t from = 0, to; from < n && group[from].module != AS_NO_ID; from = to) {
		for (to = from; to < n && group[to].module == group[from].module; to++)
			;
		resolve_module(&v, group + from, to - from);
		if (as_session_writer_status(r->w, NULL) < 0)
			break;
	}
	if (v.keep)
		as_keep_finish(&v);
	as_map64_clear(&v.functions);
	as_vec_clear(&v.chain);
	as_buf_clear(&v.full);
	as_buf_clear(&v.brief);
	as_buf_clear(&v.crate);
	free(group);
	return as_session_writer_status(r->w, err);
}
