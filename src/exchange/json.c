/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A session as JSON, schema assay.export/1: docs/formats/export-json.md. */
#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include "exchange/exchange_priv.h"
#include "model/category.h"
#include "model/profile/selection.h"

struct writer {
	const struct as_model *m;
	struct as_selection *s;
	struct as_sink *out;
	struct as_json j;
	struct as_intern files;
};

/* Index in a renumbered table, -1 for none. */
static void put_index(struct writer *w, const char *key, const uint32_t *ids, uint32_t i)
{
	as_json_i64(&w->j, key, i == AS_NONE || ids[i] == AS_NONE ? -1 : (int64_t)ids[i]);
}

/* Numbers above 2^53 do not survive most readers: as text. */
static void put_hex(struct writer *w, const char *key, uint64_t v)
{
	char text[24];

	snprintf(text, sizeof text, "0x%llx", (unsigned long long)v);
	as_json_str(&w->j, key, text);
}

/* ---- the head ---- */

static void put_query(struct writer *w)
{
	const struct as_query *q = &w->s->query;
	const struct {
		const char *key, *value;
	} texts[] = {{"focus", q->focus},
		     {"ignore", q->ignore},
		     {"hide", q->hide},
		     {"thread", q->thread},
		     {"module", q->module}};

	as_json_obj(&w->j, "filter");
	for (size_t i = 0; i < AS_ARRAY_LEN(texts); i++) {
		if (texts[i].value)
			as_json_str(&w->j, texts[i].key, texts[i].value);
	}
	if (q->from_ns || q->to_ns) {
		as_json_num(&w->j, "from_s", (double)q->from_ns / 1e9, 12);
		if (q->to_ns != UINT64_MAX)
			as_json_num(&w->j, "to_s", (double)q->to_ns / 1e9, 12);
	}
	if (q->no_inline)
		as_json_bool(&w->j, "no_inline", true);
	if (q->no_kernel)
		as_json_bool(&w->j, "no_kernel", true);
	as_json_end(&w->j);
}

static void put_trust(struct writer *w)
{
	struct as_trust t;

	as_model_trust(w->m, &t);
	as_json_num(&w->j, "duration_s", t.duration_s, 12);
	as_json_num(&w->j, "cpu_s", t.cpu_s, 12);
	as_trust_json(w->m, "trust", &w->j);
}

static void put_head(struct writer *w)
{
	struct as_json *j = &w->j;

	as_json_str(j, "schema", "assay.export/1");
	as_json_str(j, "assay", ASSAY_VERSION);
	as_json_arr(j, "command");
	as_vec_foreach (arg, &w->m->args)
		as_json_str(j, NULL, *arg);
	as_json_end(j);
	as_json_arr(j, "info");
	as_vec_foreach (i, &w->m->info) {
		as_json_obj(j, NULL);
		as_json_str(j, "key", i->key);
		as_json_str(j, "value", i->value);
		as_json_end(j);
	}
	as_json_end(j);
	as_json_u64(j, "start_unix_ms", w->m->recording.start_realtime_ns / 1000000u);
	put_trust(w);
	put_query(w);
	as_json_str(j, "weight_unit", w->m->recording.weight_unit == 0 ? "ns" : "cycles");
	as_json_u64(j, "kept_samples", w->s->samples);
	as_json_u64(j, "kept_weight", w->s->weight);
}

/* ---- tables ---- */

static void put_threads(struct writer *w)
{
	struct as_json *j = &w->j;

	as_json_arr(j, "processes");
	for (uint32_t i = 0; i < w->m->processes.n; i++) {
		const struct as_m_process *p = &w->m->processes.v[i];

		if (w->s->process_id[i] == AS_NONE)
			continue;
		as_json_obj(j, NULL);
		as_json_u64(j, "pid", p->pid);
		as_json_u64(j, "parent_pid",
			    p->parent < w->m->processes.n ? w->m->processes.v[p->parent].pid
							  : 0);
		as_json_str(j, "name", p->name);
		as_json_end(j);
	}
	as_json_end(j);
	as_json_arr(j, "threads");
	for (uint32_t i = 0; i < w->m->threads.n; i++) {
		const struct as_m_thread *t = &w->m->threads.v[i];

		if (w->s->thread_id[i] == AS_NONE)
			continue;
		as_json_obj(j, NULL);
		as_json_u64(j, "tid", t->tid);
		put_index(w, "process", w->s->process_id, t->process);
		as_json_str(j, "name", t->name);
		as_json_end(j);
		as_sink_spill(w->out);
	}
	as_json_end(j);
}

static void put_modules(struct writer *w)
{
	static const char *const kinds[] = {[AS_MODULE_FILE] = "file",
					    [AS_MODULE_VDSO] = "vdso",
					    [AS_MODULE_KERNEL] = "kernel",
					    [AS_MODULE_KMOD] = "kernel-module",
					    [AS_MODULE_JIT] = "jit"};

	as_json_arr(&w->j, "modules");
	for (uint32_t i = 0; i < w->m->modules.n; i++) {
		const struct as_m_module *m = &w->m->modules.v[i];
		AS_CLEANUP(as_buf_clear) struct as_buf id = {0};

		if (w->s->module_id[i] == AS_NONE)
			continue;
		for (unsigned k = 0; k < m->build_id_len; k++)
			as_buf_addf(&id, "%02x", m->build_id[k]);
		as_json_obj(&w->j, NULL);
		as_json_str(&w->j, "name", m->name);
		as_json_str(&w->j, "path", m->path);
		as_json_str(&w->j, "kind", kinds[m->kind]);
		as_json_str(&w->j, "build_id", as_buf_str(&id));
		as_json_str(&w->j, "debug_path", m->debug_path);
		as_json_end(&w->j);
	}
	as_json_end(&w->j);
}

static void put_file(struct writer *w, const char *file)
{
	as_json_i64(&w->j, "file", file[0] ? (int64_t)as_intern_str(&w->files, file) : -1);
}

static void put_functions(struct writer *w)
{
	as_json_arr(&w->j, "functions");
	for (uint32_t i = 0; i < w->m->functions.n; i++) {
		const struct as_m_function *f = &w->m->functions.v[i];

		if (w->s->function_id[i] == AS_NONE)
			continue;
		as_json_obj(&w->j, NULL);
		as_json_str(&w->j, "name", f->brief);
		as_json_str(&w->j, "full_name", f->full);
		as_json_str(&w->j, "linkage_name", f->linkage);
		put_index(w, "module", w->s->module_id, f->module);
		as_json_str(&w->j, "crate", f->crate);
		put_file(w, f->file);
		as_json_u64(&w->j, "line", f->line);
		as_json_str(&w->j, "category",
			    as_category_info(as_function_category(w->m, i))->key);
		as_json_bool(&w->j, "named", !(f->flags & AS_FUNCTION_SYNTHETIC));
		as_json_end(&w->j);
		as_sink_spill(w->out);
	}
	as_json_end(&w->j);
}

static void put_places(struct writer *w, uint32_t frame)
{
	const struct as_m_place *const *places;
	uint32_t n = as_selection_places(w->s, frame, &places);

	as_json_arr(&w->j, "chain");
	for (uint32_t i = 0; i < n; i++) {
		as_json_obj(&w->j, NULL);
		put_index(w, "function", w->s->function_id, places[i]->function);
		put_file(w, places[i]->file);
		as_json_u64(&w->j, "line", places[i]->line);
		as_json_u64(&w->j, "column", places[i]->column);
		as_json_bool(&w->j, "inlined", places[i]->inlined);
		as_json_end(&w->j);
	}
	as_json_end(&w->j);
}

static void put_frames(struct writer *w)
{
	as_json_arr(&w->j, "frames");
	for (uint32_t i = 0; i < w->m->frames.n; i++) {
		const struct as_m_frame *f = &w->m->frames.v[i];

		if (w->s->frame_id[i] == AS_NONE)
			continue;
		as_json_obj(&w->j, NULL);
		put_index(w, "module", w->s->module_id, f->module);
		put_hex(w, "address", f->addr);
		as_json_bool(&w->j, "exact", (f->flags & AS_FRAME_EXACT) != 0);
		as_json_bool(&w->j, "kernel", (f->flags & AS_FRAME_KERNEL) != 0);
		put_places(w, i);
		as_json_end(&w->j);
		as_sink_spill(w->out);
	}
	as_json_end(&w->j);
}

static void put_files(struct writer *w)
{
	as_json_arr(&w->j, "files");
	as_vec_foreach (f, &w->files.str) {
		as_json_strn(&w->j, NULL, f->p, f->len);
		as_sink_spill(w->out);
	}
	as_json_end(&w->j);
}

/* ---- columns ---- */

static void put_stacks(struct writer *w)
{
	const struct as_model *m = w->m;

	as_json_obj(&w->j, "stacks");
	for (int column = 0; column < 2; column++) {
		as_json_arr(&w->j, column == 0 ? "parent" : "frame");
		for (uint32_t i = 0; i < m->stacks.n; i++) {
			if (w->s->stack_id[i] == AS_NONE)
				continue;
			if (column == 0)
				put_index(w, NULL, w->s->stack_id, m->stacks.v[i].parent);
			else
				put_index(w, NULL, w->s->frame_id, m->stacks.v[i].frame);
			as_sink_spill(w->out);
		}
		as_json_end(&w->j);
	}
	as_json_end(&w->j);
}

static void put_samples(struct writer *w)
{
	static const char *const columns[] = {"thread", "stack", "marker", "samples", "weight"};

	as_json_obj(&w->j, "samples");
	for (size_t column = 0; column < AS_ARRAY_LEN(columns); column++) {
		as_json_arr(&w->j, columns[column]);
		as_vec_foreach (g, &w->s->groups) {
			if (column == 0)
				put_index(w, NULL, w->s->thread_id, g->thread);
			else if (column == 1)
				put_index(w, NULL, w->s->stack_id, g->stack);
			else if (column == 2)
				put_index(w, NULL, w->s->function_id, g->marker);
			else
				as_json_u64(&w->j, NULL, column == 3 ? g->samples : g->weight);
			as_sink_spill(w->out);
		}
		as_json_end(&w->j);
	}
	as_json_end(&w->j);
}

int as_export_write_json(const struct as_model *m, const struct as_export_options *o,
			 struct as_sink *out, struct as_error *err)
{
	struct writer w = {.m = m, .out = out, .j = {.out = &out->out}};
	int r = as_selection_make(m, o->query, &w.s, err);

	if (r < 0)
		return r;
	as_json_obj(&w.j, NULL);
	put_head(&w);
	put_threads(&w);
	put_modules(&w);
	put_functions(&w);
	put_frames(&w);
	put_files(&w);
	put_stacks(&w);
	put_samples(&w);
	as_json_end(&w.j);
	as_buf_addc(&out->out, '\n');
	as_intern_clear(&w.files);
	as_selection_free(w.s);
	return AS_OK;
}
