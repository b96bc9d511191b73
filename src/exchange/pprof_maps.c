/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Modules as pprof mappings.
 *
 * A session keeps addresses per module (svma), shared by all processes; pprof has one address space.
 * Each module stands where the first process that mapped it had it, so that of one process all
 * addresses are its true ones. Modules of different processes may overlap there (two programs that
 * are not position independent do); pprof tells locations apart by their mapping.
 */
#include <stdlib.h>
#include <string.h>
#include "exchange/pprof_priv.h"
#include "exchange/protobuf.h"

#define PAGE 4096u

static bool is_kernel(const struct as_m_module *m)
{
	return m->kind == AS_MODULE_KERNEL || m->kind == AS_MODULE_KMOD;
}

uint32_t as_pprof_mapping_of(const struct as_pprof_mappings *p, const struct as_m_frame *f)
{
	if (f->module != AS_NONE)
		return f->module;
	return f->flags & AS_FRAME_KERNEL ? (uint32_t)p->n - 1 : AS_NONE;
}

uint64_t as_pprof_address(const struct as_pprof_mappings *p, const struct as_m_frame *f)
{
	uint32_t mapping = as_pprof_mapping_of(p, f);
	uint64_t addr = f->addr - (f->flags & AS_FRAME_EXACT || !f->addr ? 0 : 1);

	return mapping == AS_NONE ? addr : addr + p->v[mapping].delta;
}

/* Where the first process had it: its segments there with one bias. */
static void take_maps(const struct as_model *m, struct as_pprof_mappings *p)
{
	uint32_t *owner = as_xreallocarray(NULL, m->modules.n + 1, sizeof *owner);

	memset(owner, 0xff, (m->modules.n + 1) * sizeof *owner);
	as_vec_foreach (map, &m->maps) {
		struct as_pprof_mapping *to = &p->v[map->module];
		uint64_t end;

		if (!map->knows_svma || is_kernel(&m->modules.v[map->module]) ||
		    __builtin_add_overflow(map->avma, map->size_bytes, &end))
			continue;
		if (owner[map->module] == AS_NONE) {
			owner[map->module] = map->process;
			*to = (struct as_pprof_mapping){.start = map->avma,
							.limit = end,
							.off = map->off,
							.delta = map->avma - map->svma};
			if (m->modules.v[map->module].kind == AS_MODULE_JIT)
				to->delta = 0; /* addresses are avmas already */
		} else if (owner[map->module] == map->process &&
			   to->delta == map->avma - map->svma) {
			to->limit = AS_MAX(to->limit, end);
			if (map->avma < to->start) {
				to->start = map->avma;
				to->off = map->off;
			}
		}
	}
	free(owner);
}

/* Mappings hold all their locations, also where no MAP record tells of the module. */
static void include_frames(const struct as_selection *s, struct as_pprof_mappings *p)
{
	const struct as_model *m = s->model;

	for (size_t i = 0; i < m->frames.n; i++) {
		const struct as_m_frame *f = &m->frames.v[i];
		const struct as_m_place *const *places;
		uint32_t k = as_pprof_mapping_of(p, f);
		uint32_t n = as_selection_places(s, (uint32_t)i, &places);
		struct as_pprof_mapping *to;
		uint64_t at;

		if (!n || k == AS_NONE)
			continue;
		to = &p->v[k];
		at = as_pprof_address(p, f);
		to->used = true;
		if (!to->limit)
			to->start = at / PAGE * PAGE;
		to->start = AS_MIN(to->start, at / PAGE * PAGE);
		if (at >= to->limit)
			to->limit =
				at > UINT64_MAX - PAGE ? UINT64_MAX : (at / PAGE + 1) * PAGE;
		to->has_inlines |= n > 1;
		for (uint32_t c = 0; c < n; c++) {
			const struct as_m_function *fn = &m->functions.v[places[c]->function];

			to->has_files |= places[c]->file[0] || fn->file[0];
			to->has_lines |= places[c]->line != 0;
		}
	}
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_program(const struct as_m_module *m)
{
	return m->kind == AS_MODULE_FILE && !strstr(m->name, ".so");
}

/* What the first process ran last (a launcher ends by becoming the program); where no mappings are
 * known, the module of the recorded program's path or name. */
static uint32_t find_main(const struct as_model *m)
{
	const char *program = as_model_info(m, "program");
	const char *called = m->args.n ? last_part(m->args.v[0]) : "";
	uint32_t last = AS_NONE, by_path = AS_NONE, by_name = AS_NONE, any = AS_NONE;

	as_vec_foreach (map, &m->maps) {
		if (map->process == 0 && is_program(&m->modules.v[map->module]))
			last = map->module;
	}
	for (uint32_t i = (uint32_t)m->modules.n; i-- > 0;) {
		if (program[0] && strcmp(m->modules.v[i].path, program) == 0)
			by_path = i;
		if (!is_program(&m->modules.v[i]))
			continue;
		any = i;
		if (strcmp(m->modules.v[i].name, called) == 0)
			by_name = i;
	}
	return last != AS_NONE      ? last
	       : by_path != AS_NONE ? by_path
	       : by_name != AS_NONE ? by_name
				    : any;
}

void as_pprof_mappings_make(const struct as_selection *s, struct as_pprof_mappings *ret)
{
	ret->n = s->model->modules.n + 1;
	ret->v = as_xcalloc(ret->n, sizeof *ret->v);
	ret->main = find_main(s->model);
	take_maps(s->model, ret);
	include_frames(s, ret);
}

void as_pprof_mappings_clear(struct as_pprof_mappings *p)
{
	free(p->v);
	*p = (struct as_pprof_mappings){0};
}

static void write_one(const struct as_pprof_mappings *p, const struct as_model *m, uint32_t i,
		      struct as_intern *strings, struct as_buf *out)
{
	const struct as_pprof_mapping *map = &p->v[i];
	const struct as_m_module *module = i < m->modules.n ? &m->modules.v[i] : NULL;
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0}, id = {0};
	const char *name = "[kernel]";

	if (module)
		name = module->kind == AS_MODULE_FILE && module->path[0] ? module->path
									 : module->name;
	for (unsigned k = 0; module && k < module->build_id_len; k++)
		as_buf_addf(&id, "%02x", module->build_id[k]);
	as_pb_u64(&b, 1, i + 1);
	as_pb_u64(&b, 2, map->start);
	as_pb_u64(&b, 3, map->limit);
	as_pb_u64(&b, 4, map->off);
	as_pb_u64(&b, 5, as_pprof_string(strings, name));
	as_pb_u64(&b, 6, as_pprof_string(strings, as_buf_str(&id)));
	/* All that could be named is: without this pprof would look for symbols again. */
	as_pb_bool(&b, 7, true);
	as_pb_bool(&b, 8, map->has_files);
	as_pb_bool(&b, 9, map->has_lines);
	as_pb_bool(&b, 10, map->has_inlines);
	as_pb_bytes(out, 3, b.p, b.len);
}

void as_pprof_mappings_write(const struct as_pprof_mappings *p, const struct as_model *m,
			     struct as_intern *strings, struct as_buf *out)
{
	if (p->main != AS_NONE)
		write_one(p, m, p->main, strings, out);
	for (uint32_t i = 0; i < p->n; i++) {
		if (p->v[i].used && i != p->main)
			write_one(p, m, i, strings, out);
	}
}
