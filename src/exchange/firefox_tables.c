/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Libraries, strings, functions, frames and stacks of a processed profile: see firefox_priv.h. */
#include <stdlib.h>
#include <string.h>
#include "exchange/firefox_priv.h"
#include "model/category.h"

/* Kernel addresses do not fit a number of JSON; all kernels' code is above this. */
#define KERNEL_BASE 0xffffffff80000000ull
#define ADDRESS_MAX (1ull << 53)

struct entry {          /* of the frame table */
	uint32_t frame; /* of the model; AS_NONE: a marker */
	uint32_t function;
	const struct as_m_place *place; /* NULL: a marker */
	uint32_t depth;                 /* 0: the physical function */
};

struct node {
	uint32_t parent, entry;
};

struct tables {
	struct as_fx *x;
	const struct as_model *m;
	AS_VEC(struct entry) entries;
	AS_VEC(struct node) nodes; /* the stack table */
	struct as_map64 node_of;   /* (marker, stack) -> node */
	struct as_map64 top_of;    /* marker -> its node */
	AS_VEC(uint32_t) path;
	struct as_intern strings;
	struct as_intern sources;
	AS_VEC(uint32_t) symbols; /* codes of the model, in the order of native symbols */
	uint32_t *symbol_of_code; /* the reverse; AS_NONE: no frame is in it */
	uint32_t no_frames;       /* function number of "[no frames]" */
};

/* ---- stacks ---- */

static void list_entries(struct tables *t)
{
	const struct as_selection *s = t->x->s;
	const struct as_model *m = t->m;

	for (uint32_t f = 0; f < m->frames.n; f++) {
		const struct as_m_place *const *p;
		uint32_t n = as_selection_places(s, f, &p);

		for (uint32_t i = 0; i < n; i++)
			as_vec_push(&t->entries,
				    (struct entry){f, p[i]->function, p[i], n - 1 - i});
	}
}

static uint32_t add_node(struct tables *t, uint32_t parent, uint32_t entry)
{
	as_vec_push(&t->nodes, (struct node){parent, entry});
	return (uint32_t)t->nodes.n - 1;
}

/* The node that stands for a marker, or for nothing at all (function AS_NONE). */
static uint32_t marker_node(struct tables *t, uint32_t function)
{
	bool fresh;
	uint64_t *node = as_map64_put(&t->top_of, function, &fresh);

	if (fresh) {
		as_vec_push(&t->entries, (struct entry){AS_NONE, function, NULL, 0});
		*node = add_node(t, AS_NONE, (uint32_t)t->entries.n - 1);
	}
	return (uint32_t)*node;
}

static uint32_t add_frame(struct tables *t, uint32_t node, uint32_t frame)
{
	const struct as_selection *s = t->x->s;

	for (uint32_t i = s->first[frame + 1]; i > s->first[frame]; i--)
		node = add_node(t, node, i - 1);
	return node;
}

static uint64_t stack_key(uint32_t marker, uint32_t stack)
{
	return (uint64_t)(marker == AS_NONE ? 0 : marker + 1) << 32 | stack;
}

static uint32_t node_of_group(struct tables *t, const struct as_group *g)
{
	uint32_t node = g->marker == AS_NONE ? AS_NONE : marker_node(t, g->marker);

	t->path.n = 0;
	for (uint32_t at = g->stack; at != AS_NONE; at = t->m->stacks.v[at].parent) {
		const uint64_t *known = as_map64_get(&t->node_of, stack_key(g->marker, at));

		if (known) {
			node = (uint32_t)*known;
			break;
		}
		as_vec_push(&t->path, at);
	}
	while (t->path.n) {
		uint32_t at = t->path.v[--t->path.n];

		node = add_frame(t, node, t->m->stacks.v[at].frame);
		*as_map64_put(&t->node_of, stack_key(g->marker, at), NULL) = node;
	}
	return node == AS_NONE ? marker_node(t, AS_NONE) : node;
}

/* ---- columns ---- */

#define COLUMN(t, name, vec, it, ...)                                                          \
	do {                                                                                   \
		bool first_ = true;                                                            \
		struct as_buf *b = &(t)->x->out->out;                                          \
		as_json_arr(&(t)->x->j, name);                                                 \
		as_vec_foreach (it, vec) {                                                     \
			as_fx_next((t)->x, &first_);                                           \
			__VA_ARGS__;                                                           \
		}                                                                              \
		as_json_end(&(t)->x->j);                                                       \
	} while (0)

static void fill(struct tables *t, const char *name, const char *value, size_t n)
{
	bool first = true;

	as_json_arr(&t->x->j, name);
	for (size_t i = 0; i < n; i++) {
		as_fx_next(t->x, &first);
		as_buf_adds(&t->x->out->out, value);
	}
	as_json_end(&t->x->j);
}

static void begin_table(struct tables *t, const char *name, size_t n)
{
	as_json_obj(&t->x->j, name);
	as_json_u64(&t->x->j, "length", n);
}

static void put_or(struct as_buf *b, uint32_t v, const char *none)
{
	if (v == AS_NONE)
		as_buf_adds(b, none);
	else
		as_put_u64(b, v);
}

static void put_or_null(struct as_buf *b, uint32_t v)
{
	put_or(b, v ? v : AS_NONE, "null");
}

static void put_stack_table(struct tables *t)
{
	uint32_t at = 0;

	begin_table(t, "stackTable", t->nodes.n);
	COLUMN(t, "frame", &t->nodes, n, as_put_u64(b, n->entry));
	COLUMN(t, "prefixOffset", &t->nodes, n, {
		as_put_u64(b, n->parent == AS_NONE ? 0 : at - n->parent);
		at++;
	});
	as_json_end(&t->x->j);
}

static uint64_t json_address(uint64_t addr)
{
	return AS_MIN(addr >= KERNEL_BASE ? addr - KERNEL_BASE : addr, ADDRESS_MAX);
}

/* Relative to the library; a caller's is inside the call, as the format wants it. ADDRESS_MAX: none
 * that JSON could hold. */
static uint64_t address_of(const struct tables *t, const struct entry *e)
{
	const struct as_m_frame *f;
	uint64_t addr;

	if (e->frame == AS_NONE)
		return ADDRESS_MAX;
	f = &t->m->frames.v[e->frame];
	if (f->module == AS_NONE || t->m->modules.v[f->module].kind == AS_MODULE_JIT)
		return ADDRESS_MAX;
	addr = f->addr;
	if (!(f->flags & AS_FRAME_EXACT) && addr)
		addr--;
	return json_address(addr);
}

static uint32_t lib_of(const struct tables *t, const struct entry *e)
{
	uint32_t module = e->frame == AS_NONE ? AS_NONE : t->m->frames.v[e->frame].module;

	return module == AS_NONE ? AS_NONE : t->x->s->module_id[module];
}

/* ---- native symbols: the parts of functions whose code was kept ---- */

static int code_holds(const struct as_m_code *c, uint32_t module, uint64_t svma)
{
	if (c->module != module)
		return c->module < module ? -1 : 1;
	if (c->svma > svma)
		return 1;
	return svma - c->svma < c->size_bytes ? 0 : -1;
}

/* The kept code that a frame is in: index into codes, AS_NONE: none. */
static uint32_t code_of(const struct tables *t, const struct entry *e)
{
	const struct as_m_frame *f;
	size_t lo = 0, hi = t->m->codes.n;
	uint64_t svma;

	if (e->frame == AS_NONE || t->m->frames.v[e->frame].module == AS_NONE)
		return AS_NONE;
	f = &t->m->frames.v[e->frame];
	svma = f->flags & AS_FRAME_EXACT || !f->addr ? f->addr : f->addr - 1;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = code_holds(&t->m->codes.v[mid], f->module, svma);

		if (c == 0)
			return (uint32_t)mid;
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return AS_NONE;
}

static void number_symbols(struct tables *t)
{
	uint32_t *number = as_xreallocarray(NULL, t->m->codes.n + 1, sizeof *number);

	memset(number, 0xff, (t->m->codes.n + 1) * sizeof *number);
	as_vec_foreach (e, &t->entries) {
		uint32_t code = code_of(t, e);

		if (code == AS_NONE || number[code] != AS_NONE)
			continue;
		number[code] = (uint32_t)t->symbols.n;
		as_vec_push(&t->symbols, code);
	}
	t->symbol_of_code = number;
}

static uint32_t symbol_of(const struct tables *t, const struct entry *e)
{
	uint32_t code = code_of(t, e);

	return code == AS_NONE ? AS_NONE : t->symbol_of_code[code];
}

static const char *symbol_name(const struct tables *t, const struct as_m_code *c)
{
	return c->function < t->m->functions.n
		       ? as_export_name(t->x->o, &t->m->functions.v[c->function])
		       : "[no name]";
}

static void put_native_symbols(struct tables *t)
{
	const struct as_m_code *codes = t->m->codes.v;

	begin_table(t, "nativeSymbols", t->symbols.n);
	COLUMN(t, "libIndex", &t->symbols, c,
	       as_put_u64(b, t->x->s->module_id[codes[*c].module]));
	COLUMN(t, "address", &t->symbols, c, as_put_u64(b, json_address(codes[*c].svma)));
	COLUMN(t, "name", &t->symbols, c,
	       as_put_u64(b, as_intern_str(&t->strings, symbol_name(t, &codes[*c]))));
	COLUMN(t, "functionSize", &t->symbols, c, as_put_u64(b, codes[*c].size_bytes));
	as_json_end(&t->x->j);
}

/* ---- frames ---- */

static uint32_t function_id(const struct tables *t, uint32_t function)
{
	return function == AS_NONE ? t->no_frames : t->x->s->function_id[function];
}

static void put_frame_table(struct tables *t)
{
	size_t n = t->entries.n;

	begin_table(t, "frameTable", n);
	COLUMN(t, "address", &t->entries, e, {
		uint64_t a = address_of(t, e);

		if (a == ADDRESS_MAX)
			as_buf_adds(b, "-1");
		else
			as_put_u64(b, a);
	});
	COLUMN(t, "lib", &t->entries, e, put_or(b, lib_of(t, e), "-1"));
	COLUMN(t, "inlineDepth", &t->entries, e, as_put_u64(b, e->depth));
	COLUMN(t, "category", &t->entries, e,
	       as_put_u64(b, e->function == AS_NONE ? AS_CATEGORY_MARKER
						    : as_function_category(t->m, e->function)));
	fill(t, "subcategory", "0", n);
	COLUMN(t, "func", &t->entries, e, as_put_u64(b, function_id(t, e->function)));
	COLUMN(t, "nativeSymbol", &t->entries, e, put_or(b, symbol_of(t, e), "null"));
	fill(t, "innerWindowID", "0", n);
	COLUMN(t, "line", &t->entries, e, put_or_null(b, e->place ? e->place->line : 0));
	COLUMN(t, "column", &t->entries, e, put_or_null(b, e->place ? e->place->column : 0));
	fill(t, "originalLocation", "null", n);
	as_json_end(&t->x->j);
}

/* ---- functions ---- */

static uint32_t source_id(struct tables *t, const char *path)
{
	return path && path[0] ? as_intern_str(&t->sources, path) : AS_NONE;
}

static void put_func_table(struct tables *t)
{
	const struct as_selection *s = t->x->s;
	AS_VEC(struct as_m_function) used = {0};
	size_t n;

	as_vec_reserve(&used, (size_t)s->n_functions + 1);
	for (size_t i = 0; i < t->m->functions.n; i++) {
		if (s->function_id[i] != AS_NONE)
			as_vec_push(&used, t->m->functions.v[i]);
	}
	as_vec_push(&used, (struct as_m_function){.module = AS_NONE,
						  .full = AS_EXPORT_NO_FRAMES,
						  .brief = AS_EXPORT_NO_FRAMES});
	n = used.n;
	begin_table(t, "funcTable", n);
	COLUMN(t, "name", &used, f,
	       as_put_u64(b, as_intern_str(&t->strings, as_export_name(t->x->o, f))));
	fill(t, "isJS", "false", n);
	fill(t, "relevantForJS", "false", n);
	COLUMN(t, "resource", &used, f,
	       put_or(b, f->module == AS_NONE ? AS_NONE : s->module_id[f->module], "-1"));
	COLUMN(t, "source", &used, f, put_or(b, source_id(t, f->file), "null"));
	COLUMN(t, "lineNumber", &used, f, put_or_null(b, f->line));
	fill(t, "columnNumber", "null", n);
	fill(t, "originalLocation", "null", n);
	as_json_end(&t->x->j);
	as_vec_clear(&used);
}

static void put_sources(struct tables *t)
{
	size_t n = t->sources.str.n;

	begin_table(t, "sources", n);
	fill(t, "id", "null", n);
	COLUMN(t, "filename", &t->sources.str, p,
	       as_put_u64(b, as_intern(&t->strings, p->p, p->len)));
	fill(t, "startLine", "1", n);
	fill(t, "startColumn", "1", n);
	fill(t, "sourceMapURL", "null", n);
	fill(t, "content", "null", n);
	as_json_end(&t->x->j);
}

/* For what source maps say of JavaScript. */
static void put_source_locations(struct tables *t)
{
	static const char *const locations[] = {"source", "line", "column", NULL};

	begin_table(t, "sourceLocationTable", 0);
	for (const char *const *c = locations; *c; c++)
		fill(t, *c, "", 0);
	as_json_end(&t->x->j);
}

/* ---- libraries ---- */

/* 33 digits: the first 16 bytes as a GUID, whose first three fields are little-endian, then an age
 * of 0. */
static void put_breakpad_id(struct as_buf *b, const struct as_m_module *m)
{
	static const uint8_t order[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};

	for (size_t i = 0; i < sizeof order; i++)
		as_buf_addf(b, "%02X", m->build_id[order[i]]);
	as_buf_addc(b, '0');
}

static void put_lib(struct tables *t, const struct as_m_module *m)
{
	struct as_json *j = &t->x->j;
	AS_CLEANUP(as_buf_clear) struct as_buf id = {0};

	as_json_obj(j, NULL);
	as_json_str(j, "arch", as_model_info(t->m, "arch"));
	as_json_str(j, "name", m->name);
	as_json_str(j, "path", m->path);
	as_json_str(j, "debugName", m->name);
	as_json_str(j, "debugPath", m->debug_path[0] ? m->debug_path : m->path);
	put_breakpad_id(&id, m);
	as_json_str(j, "breakpadId", id.p);
	as_buf_reset(&id);
	for (unsigned i = 0; i < m->build_id_len; i++)
		as_buf_addf(&id, "%02x", m->build_id[i]);
	if (id.len)
		as_json_str(j, "codeId", id.p);
	else
		as_json_null(j, "codeId");
	as_json_end(j);
	as_sink_spill(t->x->out);
}

static void put_libs(struct tables *t)
{
	as_json_arr(&t->x->j, "libs");
	for (size_t i = 0; i < t->m->modules.n; i++) {
		if (t->x->s->module_id[i] != AS_NONE)
			put_lib(t, &t->m->modules.v[i]);
	}
	as_json_end(&t->x->j);
}

/* A resource per library, of type 1. */
static void put_resources(struct tables *t)
{
	size_t n = t->x->s->n_modules;

	begin_table(t, "resourceTable", n);
	as_json_arr(&t->x->j, "name");
	for (size_t i = 0; i < t->m->modules.n; i++) {
		if (t->x->s->module_id[i] != AS_NONE)
			as_json_u64(&t->x->j, NULL,
				    as_intern_str(&t->strings, t->m->modules.v[i].name));
	}
	as_json_end(&t->x->j);
	fill(t, "host", "null", n);
	fill(t, "type", "1", n);
	as_json_end(&t->x->j);
}

static void put_strings(struct tables *t)
{
	as_json_arr(&t->x->j, "stringArray");
	as_vec_foreach (s, &t->strings.str) {
		as_json_strn(&t->x->j, NULL, s->p, s->len);
		as_sink_spill(t->x->out);
	}
	as_json_end(&t->x->j);
}

static void tables_clear(struct tables *t)
{
	as_vec_clear(&t->entries);
	as_vec_clear(&t->nodes);
	as_map64_clear(&t->node_of);
	as_map64_clear(&t->top_of);
	as_vec_clear(&t->path);
	as_intern_clear(&t->strings);
	as_intern_clear(&t->sources);
	as_vec_clear(&t->symbols);
	free(t->symbol_of_code);
}

void as_fx_tables(struct as_fx *x)
{
	const struct as_selection *s = x->s;
	struct tables t = {.x = x, .m = s->model, .no_frames = s->n_functions};

	x->stack_of_group = as_xcalloc(s->groups.n + 1, sizeof *x->stack_of_group);
	x->lost_name = as_intern_str(&t.strings, "samples lost");
	list_entries(&t);
	for (size_t i = 0; i < s->groups.n; i++)
		x->stack_of_group[i] = node_of_group(&t, &s->groups.v[i]);
	number_symbols(&t);
	put_libs(&t);
	as_json_obj(&x->j, "shared");
	put_stack_table(&t);
	put_frame_table(&t);
	put_func_table(&t);
	put_resources(&t);
	put_sources(&t);
	put_native_symbols(&t);
	put_source_locations(&t);
	put_strings(&t);
	as_json_end(&x->j);
	tables_clear(&t);
}
