/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The module: disk index, DWARF, symbol tables and extents behind one call. See symbol.h. */
#include "symbol/symmod_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "symbol/dwarf_priv.h"

#define MAX_CLAIMS 8 /* units tried for one address */

static int open_elf(const struct as_symmod_spec *spec, struct as_elf **ret,
		    struct as_error *err)
{
	const char *name = spec->path ? spec->path : "[module]";

	if (spec->fd < 0)
		return as_elf_open_mem(spec->image, spec->image_size, name, ret, err);

	int fd = fcntl(spec->fd, F_DUPFD_CLOEXEC, 3);

	if (fd < 0)
		return as_fail(err, AS_E_IO, errno, "cannot read '%s': %s", name,
			       strerror(errno));
	return as_elf_open_fd(fd, name, ret, err);
}

static int check_id(const struct as_symmod_spec *spec, const struct as_elf *e,
		    struct as_error *err)
{
	const struct as_build_id *id = as_elf_build_id(e), *want = &spec->expected;

	if (!want->len)
		return AS_OK;

	/* Padding at the end of an id is no difference. */
	uint8_t a[20] = {0}, b[20] = {0};

	memcpy(a, id->id, AS_MIN(id->len, sizeof a));
	memcpy(b, want->id, AS_MIN(want->len, sizeof b));
	if (id->len && !memcmp(a, b, sizeof a))
		return AS_OK;
	return as_fail(err, AS_E_NOTFOUND, 0,
		       "'%s' is not the file that was recorded: %s\n  keep the recorded build "
		       "to see its names",
		       as_elf_name(e), id->len ? "its build-id differs" : "it has no build-id");
}

static void find_text(struct as_symmod *m)
{
	size_t n;
	const struct as_elf_segment *s = as_elf_segments(m->elf, &n);

	m->text_lo = UINT64_MAX;
	for (size_t i = 0; i < n; i++) {
		if (!s[i].exec || !s[i].memsz || s[i].svma + s[i].memsz < s[i].svma)
			continue;
		m->text_lo = AS_MIN(m->text_lo, s[i].svma);
		m->text_hi = AS_MAX(m->text_hi, s[i].svma + s[i].memsz);
	}
	if (m->text_lo == UINT64_MAX)
		m->text_lo = 0;
	if (m->text_hi - m->text_lo >= UINT32_MAX)
		m->text_hi = m->text_lo + UINT32_MAX - 1;
}

static void set_units(struct as_symmod *m, size_t n)
{
	m->nunits = n;
	m->block = as_xcalloc(n + 1, sizeof *m->block);
	m->block_tried = as_xcalloc(n + 1, sizeof *m->block_tried);
}

static void use_dwarf_ranges(struct as_symmod *m)
{
	m->range = m->dw->range.v;
	m->nrange = m->dw->range.n;
}

/* An index whose units are not those of the file at hand is of no use. */
static void attach_dwarf(struct as_symmod *m)
{
	if (m->dwarf_tried || !as_symmod_load_dwarf(m))
		return;

	size_t n = m->dw->file.v[0]->unit.n;

	if (m->index && m->nunits != n) {
		for (size_t i = 0; i < m->nunits; i++)
			as_block_free(m->block[i]);
		free(m->block);
		free(m->block_tried);
		as_symindex_close(AS_STEAL(m->index));
		m->block = NULL;
		m->open_done = false;
	}
	if (!m->block)
		set_units(m, n);
	if (!m->index)
		use_dwarf_ranges(m);
}

int as_symmod_open(const struct as_symmod_spec *spec, struct as_symmod **ret,
		   struct as_error *err)
{
	struct as_elf *e;
	int r = open_elf(spec, &e, err);

	if (r < 0)
		return r;
	r = check_id(spec, e, err);
	if (r < 0) {
		as_elf_close(e);
		return r;
	}

	struct as_symmod *m = as_xcalloc(1, sizeof *m);

	m->elf = e;
	m->path = as_xstrdup(spec->path ? spec->path : "[module]");
	m->module = strrchr(m->path, '/') ? strrchr(m->path, '/') + 1 : m->path;
	m->root = spec->root ? as_xstrdup(spec->root) : NULL;
	m->cache_dir = spec->cache_dir ? as_xstrdup(spec->cache_dir) : NULL;
	m->no_inlines = spec->no_inlines;
	if (spec->extents && spec->nextents) {
		m->extents = as_xreallocarray(NULL, spec->nextents, sizeof *m->extents);
		memcpy(m->extents, spec->extents, spec->nextents * sizeof *m->extents);
		m->nextents = spec->nextents;
	}
	m->key = *as_elf_build_id(e);
	if (!m->key.len)
		as_elf_content_id(e, &m->key);
	find_text(m);
	if (m->cache_dir)
		m->index = as_symindex_open(m);
	if (m->index) {
		set_units(m, as_symindex_units(m->index));
		m->range = as_symindex_ranges(m->index, &m->nrange);
		m->open_done = as_symindex_open_done(m->index);
	} else {
		attach_dwarf(m);
	}
	*ret = m;
	return AS_OK;
}

void as_symmod_close(struct as_symmod *m)
{
	if (!m)
		return;
	if (m->fresh && m->cache_dir)
		as_symindex_save(m);
	for (size_t i = 0; i < m->nunits; i++)
		as_block_free(m->block[i]);
	free(m->block);
	free(m->block_tried);
	as_symtab_free(m->symtab);
	as_symindex_close(m->index);
	as_dw_free(m->dw);
	as_vec_foreach (e, &m->split)
		as_elf_close(*e);
	as_vec_clear(&m->split);
	as_elf_close(m->alt);
	as_elf_close(m->dbg);
	as_elf_close(m->elf);
	as_vec_clear(&m->frame);
	as_vec_clear(&m->data);
	as_arena_clear(&m->data_names);
	as_buf_clear(&m->notes);
	free(m->extents);
	free(m->path);
	free(m->root);
	free(m->cache_dir);
	free(m);
}

struct as_symtab *as_symmod_symtab(struct as_symmod *m)
{
	if (m->symtab_tried)
		return m->symtab;
	m->symtab_tried = true;

	struct as_symtab_spec spec = {
		.elf = m->elf,
		.debug = m->dbg,
		.module = m->module,
		.extents = m->extents,
		.nextents = m->nextents,
	};
	struct as_error err;

	/* A stripped object has its names in the debug file; others need not wait for DWARF. */
	if (!as_elf_find_section(m->elf, ".symtab"))
		as_symmod_find_debug(m);
	spec.debug = m->dbg;
	if (as_symtab_build(&spec, &m->symtab, &err) < 0) {
		as_buf_addf(&m->notes, "no symbols: %s\n", err.msg);
		m->symtab = NULL;
	}
	return m->symtab;
}

struct as_block *as_symmod_block(struct as_symmod *m, uint32_t unit)
{
	if (unit >= m->nunits)
		return NULL;
	if (m->block_tried[unit])
		return m->block[unit];
	if (m->index)
		m->block[unit] = as_symindex_block(m->index, unit);
	if (!m->block[unit]) {
		attach_dwarf(m);
		if (!m->dw || unit >= m->nunits)
			return NULL;
		m->block[unit] = as_dw_block(m->dw, unit);
		m->fresh |= m->block[unit] != NULL;
	}
	m->block_tried[unit] = true;
	return m->block[unit];
}

/* Units that tell no ranges get those of their rows and functions. */
static void claim_open_units(struct as_symmod *m)
{
	m->open_done = true;
	attach_dwarf(m);
	if (!m->dw || !m->dw->open_unit.n)
		return;
	for (size_t k = 0; k < m->dw->open_unit.n; k++) {
		uint32_t unit = m->dw->open_unit.v[k];
		struct as_block *b = as_symmod_block(m, unit);
		uint64_t base = m->text_lo;

		for (size_t i = 0; b && i + 1 < b->nrow; i++) {
			if (as_block_file(b->row[i].filecol) != AS_BLOCK_NO_FILE)
				as_dw_add_range(m->dw, unit, base + b->row[i].lo,
						base + b->row[i + 1].lo);
		}
		for (size_t i = 0; b && i + 1 < b->nseg; i++) {
			if (b->seg[i].node != AS_BLOCK_NONE)
				as_dw_add_range(m->dw, unit, base + b->seg[i].lo,
						base + b->seg[i + 1].lo);
		}
	}
	as_dw_sort_ranges(m->dw);
	use_dwarf_ranges(m);
	m->fresh = true;
}

static bool from_symtab(struct as_symmod *m, uint64_t svma, const struct as_symframe *place,
			struct as_symchain *ret)
{
	struct as_symtab *t = as_symmod_symtab(m);
	struct as_symtab_hit hit;
	struct as_symframe f = *place;

	if (t && as_symtab_find(t, svma, &hit)) {
		f.linkage = f.name = hit.name;
		f.func_svma = hit.start;
		f.aliases = hit.aliases;
		f.synthetic = hit.synthetic;
		ret->source = hit.source;
	} else if (f.file) {
		ret->source = AS_SYM_DWARF; /* a line without a function */
	} else {
		return false;
	}
	m->frame.n = 0;
	as_vec_push(&m->frame, f);
	return true;
}

/* True when a unit has a function at svma; place gets the line when only that is known. */
static bool from_dwarf(struct as_symmod *m, uint64_t svma, struct as_symframe *place)
{
	uint32_t rel = (uint32_t)(svma - m->text_lo), unit[MAX_CLAIMS];
	size_t n = as_symrange_find(m->range, m->nrange, rel, unit, MAX_CLAIMS);

	for (size_t i = 0; i < n; i++) {
		struct as_block *b = as_symmod_block(m, unit[i]);

		if (!b)
			continue;
		if (as_chain_build(m, b, rel))
			return true;
		if (!place->file)
			(void)as_chain_line(b, rel, place);
	}
	return false;
}

static void resolve_one(struct as_symmod *m, uint64_t svma, struct as_symchain *ret)
{
	struct as_symframe place = {0};
	bool in_text = svma >= m->text_lo && svma < m->text_hi;
	bool found = in_text && from_dwarf(m, svma, &place);

	*ret = (struct as_symchain){0};
	if (!found && in_text && !place.file && !m->open_done) {
		claim_open_units(m);
		found = from_dwarf(m, svma, &place);
	}
	if (found)
		ret->source = AS_SYM_DWARF;
	else if (!from_symtab(m, svma, &place, ret))
		return;
	ret->frames = m->frame.v;
	ret->n = m->frame.n;
}

void as_symmod_resolve(struct as_symmod *m, const uint64_t *svmas, size_t n, as_symchain_fn fn,
		       void *ctx)
{
	for (size_t i = 0; i < n; i++) {
		struct as_symchain chain;

		resolve_one(m, svmas[i], &chain);
		fn(ctx, i, svmas[i], &chain);
	}
}

const char *as_symmod_notes(const struct as_symmod *m)
{
	return as_buf_str(&m->notes);
}

static bool has_units(const struct as_symmod *m)
{
	return m->nrange || (m->dw && m->dw->open_unit.n);
}

bool as_symmod_has_lines(const struct as_symmod *m)
{
	return has_units(m);
}

bool as_symmod_has_inlines(const struct as_symmod *m)
{
	return has_units(m) && !m->no_inlines;
}
