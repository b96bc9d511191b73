/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which files hold the DWARF of a module: debug file, dwz common file, package and split files. */
#include "symbol/symmod_priv.h"

#include <stdlib.h>
#include <string.h>

#include "elf/debugfile.h"
#include "symbol/dwarf_priv.h"

static void load_sections(struct as_symmod *m, struct as_elf *e, const char *suffix,
			  struct as_dw_sect sec[AS_DW_SEC_COUNT_])
{
	for (int i = 0; i < AS_DW_SEC_COUNT_; i++) {
		struct as_buf name = {0};
		struct as_error err;
		const uint8_t *p;
		size_t n;

		as_buf_adds(&name, as_dw_sec_name[i]);
		if (i != AS_DW_CU_INDEX)
			as_buf_adds(&name, suffix);

		int r = as_elf_section_data(e, name.p, &p, &n, &err);

		if (r == AS_OK)
			sec[i] = (struct as_dw_sect){p, n};
		else if (r != AS_E_NOTFOUND)
			as_buf_addf(&m->notes, "section %s of '%s' refused: %s\n", name.p,
				    as_elf_name(e), err.msg);
		as_buf_clear(&name);
	}
}

static struct as_elf *open_split(struct as_symmod *m, const char *path)
{
	struct as_elf *e;
	struct as_error err;

	if (as_elf_open(path, &e, &err) < 0)
		return NULL;
	as_vec_push(&m->split, e);
	return e;
}

static bool load_package(struct as_symmod *m, struct as_dw_sect sec[AS_DW_SEC_COUNT_])
{
	const char *base[] = {m->path, m->dbg ? as_elf_name(m->dbg) : NULL};

	for (size_t i = 0; i < AS_ARRAY_LEN(base); i++) {
		struct as_elf *e = NULL;

		if (!base[i])
			continue;

		char *p = as_xasprintf("%s%s.dwp", i == 0 && m->root ? m->root : "", base[i]);

		e = open_split(m, p);
		free(p);
		if (!e)
			continue;
		load_sections(m, e, ".dwo", sec);
		return sec[AS_DW_INFO].n != 0;
	}
	return false;
}

static bool load_split(void *ctx, const struct as_dw_unit *u,
		       struct as_dw_sect sec[AS_DW_SEC_COUNT_])
{
	struct as_symmod *m = ctx;
	struct as_elf *e = NULL;

	if (!u)
		return load_package(m, sec);

	bool absolute = *u->dwo_name == '/';
	char *p = as_xasprintf("%s%s%s", absolute || !u->comp_dir ? "" : u->comp_dir,
			       absolute ? "" : "/", u->dwo_name);

	if (m->root) {
		char *in_root = as_xasprintf("%s%s", m->root, p);

		e = open_split(m, in_root);
		free(in_root);
	}
	if (!e)
		e = open_split(m, p);
	free(p);
	if (!e && m->path) { /* moved together with the object */
		const char *slash = strrchr(m->path, '/'), *file = strrchr(u->dwo_name, '/');

		p = as_xasprintf("%.*s%s", slash ? (int)(slash - m->path + 1) : 0, m->path,
				 file ? file + 1 : u->dwo_name);
		e = open_split(m, p);
		free(p);
	}
	if (!e) {
		as_dw_note(m->dw, "split file '%s' not found: no inlined calls of '%s'",
			   u->dwo_name, u->name ? u->name : "its unit");
		return false;
	}
	load_sections(m, e, ".dwo", sec);
	return sec[AS_DW_INFO].n != 0;
}

/*
 * What was refused is worth a note when nothing else was found; that a place was empty is not: most
 * objects of a system have no debug file, and the report tells which time has no names.
 */
static void add_refusals(struct as_symmod *m, const struct as_buf *tried)
{
	static const char absent[] = ": not there";
	const char *line = as_buf_str(tried);

	while (*line) {
		size_t n = strcspn(line, "\n"), tail = sizeof absent - 1;

		if (n < tail || memcmp(line + n - tail, absent, tail) != 0)
			as_buf_addf(&m->notes, "%.*s\n", (int)n, line);
		line += n + (line[n] == '\n');
	}
}

static void find_files(struct as_symmod *m)
{
	struct as_debug_search s = {.root = m->root, .object_path = m->path};
	struct as_buf tried = {0};
	struct as_error err;

	if (as_debugfile_find(m->elf, &s, &m->dbg, &tried, &err) < 0) {
		as_buf_addf(&m->notes, "no debug file: %s\n", err.msg);
		m->dbg = NULL;
	} else if (!m->dbg && !as_elf_find_section(m->elf, ".debug_info")) {
		add_refusals(m, &tried);
	}
	as_buf_reset(&tried);

	struct as_elf *dwarf = m->dbg ? m->dbg : m->elf;

	if (as_debugfile_alt(dwarf, &s, &m->alt, &tried, &err) < 0) {
		as_buf_addf(&m->notes, "no common debug file: %s\n", err.msg);
		m->alt = NULL;
	} else if (!m->alt) {
		add_refusals(m, &tried);
	}
	as_buf_clear(&tried);
}

struct sup_section {
	const char *name; /* of the common file; "" in that file itself */
	const uint8_t *sum;
	size_t nsum;
	bool is_common;
};

static bool read_sup_section(struct as_elf *e, struct sup_section *ret)
{
	struct as_error err;
	const uint8_t *p;
	size_t n;

	if (as_elf_section_data(e, ".debug_sup", &p, &n, &err) < 0)
		return false;

	struct as_rd r = AS_RD(p, n);
	unsigned version = as_rd_u16(&r);

	ret->is_common = as_rd_u8(&r) != 0;
	ret->name = as_rd_cstr(&r);
	ret->nsum = as_rd_uleb(&r);
	ret->sum = ret->nsum && ret->nsum <= as_rd_left(&r) ? as_rd_bytes(&r, ret->nsum) : NULL;
	return !r.bad && version >= 2 && ret->sum;
}

/*
 * DWARF 5 names the common file in .debug_sup instead of .gnu_debugaltlink; both files carry the
 * same checksum there.
 */
static void find_sup(struct as_symmod *m)
{
	struct as_elf *dwarf = m->dbg ? m->dbg : m->elf, *e;
	const char *dwarf_path = as_elf_name(dwarf), *slash = strrchr(dwarf_path, '/');
	struct sup_section ours, theirs;
	struct as_error err;

	if (m->alt || !read_sup_section(dwarf, &ours) || ours.is_common || !*ours.name)
		return;

	bool absolute = *ours.name == '/';
	char *path = as_xasprintf("%s%.*s%s", absolute && m->root ? m->root : "",
				  !absolute && slash ? (int)(slash - dwarf_path + 1) : 0,
				  dwarf_path, ours.name);

	if (as_elf_open(path, &e, &err) < 0) {
		as_buf_addf(&m->notes, "no common debug file: %s\n", err.msg);
	} else if (!read_sup_section(e, &theirs) || !theirs.is_common ||
		   theirs.nsum != ours.nsum || memcmp(theirs.sum, ours.sum, ours.nsum)) {
		as_buf_addf(&m->notes, "common debug file '%s' refused: its checksum differs\n",
			    path);
		as_elf_close(e);
	} else {
		m->alt = e;
	}
	free(path);
}

void as_symmod_find_debug(struct as_symmod *m)
{
	if (!m->debug_tried)
		find_files(m);
	m->debug_tried = true;
}

bool as_symmod_load_dwarf(struct as_symmod *m)
{
	struct as_dw_input in = {
		.text_lo = m->text_lo,
		.text_hi = m->text_hi,
		.split = load_split,
		.split_ctx = m,
		.notes = &m->notes,
	};

	if (m->dwarf_tried)
		return m->dw != NULL;
	m->dwarf_tried = true;
	as_symmod_find_debug(m);
	find_sup(m);
	load_sections(m, m->dbg ? m->dbg : m->elf, "", in.main);
	if (!in.main[AS_DW_INFO].n)
		return false;
	if (m->alt)
		load_sections(m, m->alt, "", in.sup);
	m->dw = as_dw_new(&in);
	return true;
}
