/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Names of functions, found when somebody asks: through abstract_origin and specification, also
 * into other units and the dwz common file. The linkage name may stand anywhere on that way and
 * wins over the plain one. Where there is none, the plain name gets its containers
 * ("ns::Class::f") from a pass over the unit that holds it.
 */
#include "symbol/dwarf_priv.h"

#include <stdlib.h>
#include <string.h>

#include "symbol/dwarf_const.h"

struct scope {
	uint64_t start, end; /* offsets of the DIE and one past its children */
	uint32_t parent;     /* AS_BLOCK_NONE: none */
	const char *name;    /* NULL: anonymous */
	uint16_t tag;
};

struct as_dw_scopes {
	AS_VEC(struct scope) s; /* by start */
};

void as_dw_scopes_free(struct as_dw_scopes *s)
{
	if (!s)
		return;
	as_vec_clear(&s->s);
	free(s);
}

static bool is_container(uint16_t tag)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_interface_type:
	case DW_TAG_module:
		return true;
	default:
		return false;
	}
}

struct open_scope {
	uint32_t scope; /* innermost container, or AS_BLOCK_NONE */
	bool closes;    /* this level ends that container */
};

static const char *container_name(struct as_rd *r, struct as_dw_unit *u,
				  const struct as_dw_abbrevs *t, const struct as_dw_abbrev *a)
{
	const char *name = NULL;

	for (uint32_t i = 0; i < a->nattrs; i++) {
		const struct as_dw_attr *at = &t->attr.v[a->attr0 + i];
		struct as_dw_val v;

		as_dw_form_read(r, u, at, &v);
		if (at->name == DW_AT_name)
			name = as_dw_str(u, &v);
	}
	return name;
}

static struct as_dw_scopes *scopes_of(struct as_dw *dw, struct as_dw_unit *u)
{
	if (u->scopes)
		return u->scopes;
	u->scopes = as_xcalloc(1, sizeof *u->scopes);

	struct as_dw_abbrevs *t = as_dw_abbrevs_get(dw, u);
	const uint8_t *info = u->f->sec[AS_DW_INFO].p;
	struct as_rd r = AS_RD(info + u->die_off, u->end - u->die_off);
	struct open_scope stack[AS_DW_MAX_DEPTH] = {{.scope = AS_BLOCK_NONE}};
	size_t depth = 0;

	while (t && as_rd_left(&r) && !r.bad) {
		uint64_t off = (uint64_t)(r.p - info), code = as_dw_uleb(&r);
		const struct as_dw_abbrev *a = code ? as_dw_abbrev_find(t, code) : NULL;
		struct open_scope in = {.scope = stack[depth].scope};

		if (!code) {
			if (stack[depth].closes)
				u->scopes->s.v[stack[depth].scope].end = (uint64_t)(r.p - info);
			if (!depth || --depth == 0)
				break;
			continue;
		}
		if (!a)
			break;
		if (a->children && is_container(a->tag)) {
			const char *name = container_name(&r, u, t, a);
			struct scope s = {off, u->end, in.scope, name, a->tag};

			in = (struct open_scope){(uint32_t)u->scopes->s.n, true};
			as_vec_push(&u->scopes->s, s);
		} else {
			as_dw_die_skip(&r, u, t, a);
		}
		if (a->children) {
			if (++depth == AS_DW_MAX_DEPTH)
				break;
			stack[depth] = in;
		}
	}
	return u->scopes;
}

static uint32_t innermost_scope(const struct as_dw_scopes *sc, uint64_t off)
{
	size_t lo = 0, hi = sc->s.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (sc->s.v[mid].start < off)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return AS_BLOCK_NONE;

	uint32_t i = (uint32_t)lo - 1;

	while (i != AS_BLOCK_NONE && sc->s.v[i].end <= off)
		i = sc->s.v[i].parent;
	return i;
}

static bool lang_has_containers(uint32_t lang)
{
	switch (lang) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_C17:
	case DW_LANG_Mips_Assembler:
		return false;
	default:
		return true;
	}
}

/* name with its containers; name itself when it has none. */
static const char *qualified(struct as_dw *dw, struct as_dw_unit *u, uint64_t off,
			     const char *name)
{
	uint32_t way[32];
	size_t n = 0;
	struct as_buf b = {0};

	if (!lang_has_containers(u->lang))
		return name;

	const struct as_dw_scopes *sc = scopes_of(dw, u);

	for (uint32_t i = innermost_scope(sc, off); i != AS_BLOCK_NONE && n < AS_ARRAY_LEN(way);
	     i = sc->s.v[i].parent)
		way[n++] = i;
	if (!n)
		return name;
	while (n--) {
		const struct scope *s = &sc->s.v[way[n]];

		if (s->name)
			as_buf_adds(&b, s->name);
		else
			as_buf_adds(&b, s->tag == DW_TAG_namespace ? "(anonymous namespace)"
								   : "(anonymous)");
		as_buf_adds(&b, "::");
	}
	as_buf_adds(&b, name);

	const char *ret = as_arena_strndup(&dw->arena, b.p, b.len);

	as_buf_clear(&b);
	return ret;
}

struct func_die {
	struct as_dw_val linkage, name, decl_file, decl_line;
	uint64_t next; /* abstract_origin or specification */
};

static bool read_func_die(struct as_dw *dw, struct as_dw_unit *u, uint64_t off,
			  struct func_die *d)
{
	const struct as_dw_abbrevs *t = as_dw_abbrevs_get(dw, u);
	struct as_rd r = AS_RD(u->f->sec[AS_DW_INFO].p + off, u->end - off);
	const struct as_dw_abbrev *a = t ? as_dw_abbrev_find(t, as_dw_uleb(&r)) : NULL;

	*d = (struct func_die){.next = AS_DW_NOREF};
	for (uint32_t i = 0; a && i < a->nattrs; i++) {
		const struct as_dw_attr *at = &t->attr.v[a->attr0 + i];
		struct as_dw_val v;

		as_dw_form_read(&r, u, at, &v);
		switch (at->name) {
		case DW_AT_linkage_name:
		case DW_AT_MIPS_linkage_name:
			d->linkage = v;
			break;
		case DW_AT_name:
			d->name = v;
			break;
		case DW_AT_decl_file:
			d->decl_file = v;
			break;
		case DW_AT_decl_line:
			d->decl_line = v;
			break;
		case DW_AT_abstract_origin:
		case DW_AT_specification:
			d->next = as_dw_ref(u, &v);
			break;
		default:
			break;
		}
	}
	return a && !r.bad;
}

/* The unit whose line table gives the file names: the skeleton's for split code. */
static struct as_dw_lines *lines_for_names(struct as_dw *dw, struct as_dw_unit *u)
{
	return as_dw_lines_get(dw, u->skeleton ? u->skeleton : u);
}

/* "_ZN5alloc3vec16Vec$LT$T$C$A$GT$4push17h0123456789abcdefE" */
static bool is_legacy_rust(const char *linkage)
{
	const char *hash = strstr(linkage, "17h");

	for (; hash; hash = strstr(hash + 1, "17h")) {
		if (strspn(hash + 3, "0123456789abcdef") == 16 && hash[19] == 'E')
			return strncmp(linkage, "_ZN", 3) == 0;
	}
	return false;
}

void as_dw_func_resolve(struct as_dw *dw, uint64_t ref, struct as_block_func *ret)
{
	struct as_dw_unit *name_unit = NULL;
	uint64_t name_off = 0;

	ret->resolved = true;
	for (int step = 0; step < AS_DW_MAX_ORIGINS && ref != AS_DW_NOREF; step++) {
		uint64_t off;
		struct as_dw_unit *u = as_dw_unit_at(dw, ref, &off);
		struct func_die d;

		if (!u || !read_func_die(dw, u, off, &d))
			break;
		if (!ret->linkage)
			ret->linkage = as_dw_str(u, &d.linkage);
		if (d.name.form && !ret->name)
			ret->name = as_dw_str(u, &d.name);
		/* The last DIE of the way is the one inside the containers. */
		name_unit = u;
		name_off = off;
		if (!ret->decl_line)
			ret->decl_line = (uint32_t)AS_MIN(d.decl_line.u, UINT32_MAX);
		if (d.decl_file.form && !ret->decl_file) {
			struct as_dw_lines *l = lines_for_names(dw, u);

			ret->decl_file = l ? as_dw_line_path(dw, l, d.decl_file.u) : NULL;
		}
		ref = d.next;
	}
	if (ret->linkage && !*ret->linkage)
		ret->linkage = NULL;
	if (ret->linkage || !ret->name) {
		if (ret->name && is_legacy_rust(ret->linkage) && strchr(ret->name, '<'))
			ret->generic = ret->name;
		ret->name = ret->linkage;
		return;
	}
	ret->plain = true;
	ret->linkage = ret->name;
	ret->name = qualified(dw, name_unit, name_off, ret->name);
}
