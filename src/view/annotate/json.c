/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* An annotated function as JSON, schema assay.annotate/1: docs/formats/annotate-json.md. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/map.h"
#include "view/annotate/annotate_priv.h"
#include "view/report/report.h"
#include "view/report/trust.h"

static void share(struct as_json *j, const char *key, const struct as_share *s, bool samples)
{
	char name[32];

	as_json_num(j, key, s->value, 6);
	snprintf(name, sizeof name, "%s_low", key);
	as_json_num(j, name, s->low, 6);
	snprintf(name, sizeof name, "%s_high", key);
	as_json_num(j, name, s->high, 6);
	if (samples) {
		snprintf(name, sizeof name, "%s_samples", key);
		as_json_u64(j, name, s->samples);
	}
}

static void cost(struct as_json *j, const struct as_cost *all, const struct as_cost *of)
{
	share(j, "self", &all->self, true);
	share(j, "code", &all->code, true);
	share(j, "total", &all->total, true);
	as_json_obj(j, "of_function");
	share(j, "self", &of->self, false);
	share(j, "code", &of->code, false);
	share(j, "total", &of->total, false);
	as_json_end(j);
}

static void address(struct as_json *j, const char *key, uint64_t v)
{
	char text[24];

	snprintf(text, sizeof text, "0x%llx", (unsigned long long)v);
	as_json_str(j, key, text);
}

static void text_or_null(struct as_json *j, const char *key, const char *s)
{
	if (s && *s)
		as_json_str(j, key, s);
	else
		as_json_null(j, key);
}

static void number_or_null(struct as_json *j, const char *key, uint64_t v)
{
	if (v)
		as_json_u64(j, key, v);
	else
		as_json_null(j, key);
}

static const char *module_name(const struct as_model *m, uint32_t module)
{
	return module == AS_NONE ? NULL : m->modules.v[module].name;
}

static void function_json(const struct as_an_tree *t, struct as_json *j)
{
	const struct as_annotation *a = t->v->a;
	const struct as_m_function *f = &a->model->functions.v[a->function];

	as_json_obj(j, "function");
	as_json_str(j, "name", f->brief);
	as_json_str(j, "full_name", f->full);
	as_json_str(j, "linkage_name", f->linkage);
	text_or_null(j, "module", module_name(a->model, f->module));
	text_or_null(j, "crate", f->crate);
	text_or_null(j, "file", f->file);
	number_or_null(j, "line", f->line);
	cost(j, &a->of_all, &a->of_function);
	as_json_arr(j, "hosts");
	as_vec_foreach (h, &a->hosts)
		as_json_str(j, NULL, a->model->functions.v[*h].full);
	as_json_end(j);
	as_json_end(j);
}

static void others_json(const struct as_an_tree *t, struct as_json *j)
{
	const struct as_annotation *a = t->v->a;
	const struct as_function_matches *f = t->v->matches;

	as_json_arr(j, "also_fits");
	for (size_t i = 0; f && i < f->v.n; i++) {
		const struct as_function_match *m = &f->v.v[i];

		if (m->function == a->function)
			continue;
		as_json_obj(j, NULL);
		as_json_str(j, "name", a->model->functions.v[m->function].brief);
		as_json_str(j, "full_name", a->model->functions.v[m->function].full);
		share(j, "self", &m->self, true);
		share(j, "total", &m->total, true);
		as_json_end(j);
	}
	as_json_end(j);
}

/* Places with samples, with their numbers in the annotation. */
static void lines_json(const struct as_an_tree *t, struct as_json *j)
{
	const struct as_annotation *a = t->v->a;

	as_json_arr(j, "lines");
	as_vec_foreach (p, &a->places) {
		as_json_obj(j, NULL);
		if (p->parent == AS_NONE)
			as_json_null(j, "parent");
		else
			as_json_u64(j, "parent", p->parent);
		as_json_str(j, "function", a->model->functions.v[p->function].brief);
		text_or_null(j, "file", p->file);
		number_or_null(j, "line", p->line);
		text_or_null(j, "text", as_an_line_text(as_an_file(t, p->file), p->line));
		cost(j, &p->of_all, &p->of_function);
		as_json_end(j);
	}
	as_json_end(j);
}

static void insn_text(const struct as_listing_insn *i, struct as_json *j)
{
	static const char *const kind[] = {"plain", "jump", "branch", "call", "return", "bad"};

	as_json_u64(j, "size", i->len);
	as_json_str(j, "text", i->text);
	as_json_str(j, "kind", i->kind < AS_ARRAY_LEN(kind) ? kind[i->kind] : "plain");
	if (i->target)
		address(j, "target", i->target);
	if (i->target_name)
		as_json_str(j, "target_name", i->target_name);
	if (i->starts_part)
		as_json_bool(j, "starts_part", true);
}

static void insns_json(const struct as_an_tree *t, struct as_json *j)
{
	const struct as_annotation *a = t->v->a;

	as_json_arr(j, "instructions");
	as_vec_foreach (i, &t->insns) {
		const struct as_annotated_insn *c =
			i->cost == AS_NONE ? NULL : &a->insns.v[i->cost];
		const struct as_an_place *p = &t->places.v[i->place];

		as_json_obj(j, NULL);
		address(j, "address", i->svma);
		text_or_null(j, "module",
			     module_name(a->model, c ? c->module : t->v->l->module));
		if (i->text)
			insn_text(i->text, j);
		text_or_null(j, "file", p->file);
		number_or_null(j, "line", p->line);
		if (p->cost != AS_NONE)
			as_json_u64(j, "place", p->cost);
		if (c)
			cost(j, &c->of_all, &c->of_function);
		if (c && c->ncalls) {
			as_json_arr(j, "calls");
			for (uint32_t k = c->call; k < c->call + c->ncalls; k++) {
				const struct as_annotated_call *call = &a->calls.v[k];

				as_json_obj(j, NULL);
				as_json_str(j, "function",
					    a->model->functions.v[call->function].brief);
				share(j, "total", &call->of_all, true);
				as_json_end(j);
			}
			as_json_end(j);
		}
		as_json_end(j);
	}
	as_json_end(j);
}

static void sources_json(const struct as_listing *l, struct as_json *j)
{
	as_json_arr(j, "sources");
	as_vec_foreach (f, &l->files) {
		as_json_obj(j, NULL);
		text_or_null(j, "path", f->path);
		text_or_null(j, "found", f->found);
		text_or_null(j, "why", f->why);
		as_json_u64(j, "first_line", f->first);
		as_json_u64(j, "total_lines", f->total);
		as_json_arr(j, "lines");
		as_vec_foreach (line, &f->lines)
			as_json_str(j, NULL, *line);
		as_json_end(j);
		as_json_end(j);
	}
	as_json_end(j);
	as_json_arr(j, "notes");
	as_vec_foreach (n, &l->notes)
		as_json_str(j, NULL, *n);
	as_json_end(j);
}

void as_annotate_json(const struct as_annotate_view *v, struct as_buf *out)
{
	const struct as_annotation *a = v->a;
	struct as_json j = {.out = out, .indent = true};
	struct as_buf skid = {0};
	struct as_an_tree t;

	as_an_tree_make(v, &t);
	as_an_skid(a, &skid);
	as_json_obj(&j, NULL);
	as_json_str(&j, "schema", "assay.annotate/1");
	as_json_arr(&j, "command");
	as_vec_foreach (arg, &a->model->args)
		as_json_str(&j, NULL, *arg);
	as_json_end(&j);
	as_trust_json(a->model, "trust", &j);
	as_report_filter_json(&a->query, &j);
	as_json_u64(&j, "samples", a->samples);
	as_json_obj(&j, "skid");
	as_json_str(&j, "class", as_an_skid_class(a));
	as_json_str(&j, "text", skid.p);
	as_json_end(&j);
	function_json(&t, &j);
	others_json(&t, &j);
	as_json_bool(&j, "lines_tied", a->lines_tied);
	lines_json(&t, &j);
	if (v->q->show != AS_ANNOTATE_SOURCE)
		insns_json(&t, &j);
	if (v->q->show != AS_ANNOTATE_ASM)
		sources_json(v->l, &j);
	as_json_end(&j);
	as_buf_addc(out, '\n');
	as_buf_clear(&skid);
	as_an_tree_clear(&t);
}
