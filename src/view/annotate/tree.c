/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Costs and text of one function as one tree of places: see annotate_priv.h. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "view/annotate/annotate_priv.h"

/* An instruction that no place of the listing explains stands at line 0 of the function. */

struct maker {
	struct as_an_tree *t;
	struct as_map64 ids; /* (parent, function, line) -> place */
};

const struct as_cost *as_an_place_cost(const struct as_an_tree *t, uint32_t place)
{
	uint32_t c = t->places.v[place].cost;

	if (c == AS_NONE)
		return NULL;
	return t->v->q->of == AS_ANNOTATE_FUNCTION ? &t->v->a->places.v[c].of_function
						   : &t->v->a->places.v[c].of_all;
}

const struct as_cost *as_an_insn_cost(const struct as_an_tree *t, uint32_t insn)
{
	uint32_t c = t->insns.v[insn].cost;

	if (c == AS_NONE)
		return NULL;
	return t->v->q->of == AS_ANNOTATE_FUNCTION ? &t->v->a->insns.v[c].of_function
						   : &t->v->a->insns.v[c].of_all;
}

double as_an_place_share(const struct as_an_tree *t, uint32_t place)
{
	uint32_t c = t->places.v[place].cost;

	return c == AS_NONE ? 0 : t->v->a->places.v[c].of_function.total.value;
}

double as_an_insn_share(const struct as_an_tree *t, uint32_t insn)
{
	uint32_t c = t->insns.v[insn].cost;

	return c == AS_NONE ? 0 : t->v->a->insns.v[c].of_function.total.value;
}

const struct as_listing_file *as_an_file(const struct as_an_tree *t, const char *path)
{
	as_vec_foreach (f, &t->v->l->files) {
		if (f->path && path && strcmp(f->path, path) == 0)
			return f;
	}
	return NULL;
}

const char *as_an_line_text(const struct as_listing_file *f, uint32_t line)
{
	if (!f || !f->lines.n || line < f->first || line - f->first >= f->lines.n)
		return NULL;
	return f->lines.v[line - f->first];
}

/* ---- places ---- */

static uint64_t place_hash(uint32_t parent, uint32_t function, const char *name, uint32_t line)
{
	uint64_t who =
		function != AS_NONE ? function : as_hash64(name, strlen(name)) | 1ull << 40;

	return as_mix64((uint64_t)parent << 32 | line) ^ as_mix64(who) * 3;
}

static bool is_place(const struct as_an_place *p, const struct as_an_place *want)
{
	return p->parent == want->parent && p->line == want->line &&
	       p->function == want->function && strcmp(p->file, want->file) == 0 &&
	       (p->function != AS_NONE || strcmp(p->name, want->name) == 0);
}

static uint32_t put_place(struct maker *k, const struct as_an_place *want)
{
	struct as_an_tree *t = k->t;
	uint64_t h = place_hash(want->parent, want->function, want->name, want->line);

	for (;; h++) {
		bool fresh;
		uint64_t *id = as_map64_put(&k->ids, h >> 1, &fresh);

		if (fresh) {
			*id = t->places.n;
			as_vec_push(&t->places, *want);
			return (uint32_t)*id;
		}
		if (is_place(&t->places.v[*id], want))
			return (uint32_t)*id;
	}
}

static struct as_an_place make_place(const struct as_an_tree *t, uint32_t parent)
{
	return (struct as_an_place){.parent = parent,
				    .first_child = AS_NONE,
				    .next = AS_NONE,
				    .depth = parent == AS_NONE ? 0
							       : t->places.v[parent].depth + 1,
				    .cost = AS_NONE,
				    .first_insn = AS_NONE,
				    .last_insn = AS_NONE};
}

static void add_sampled_places(struct maker *k)
{
	const struct as_annotation *a = k->t->v->a;

	for (uint32_t i = 0; i < a->places.n; i++) {
		const struct as_annotated_place *from = &a->places.v[i];
		struct as_an_place p = make_place(k->t, from->parent);

		p.cost = i;
		p.function = from->function;
		p.name = a->model->functions.v[from->function].brief;
		p.file = from->file;
		p.line = from->line;
		put_place(k, &p);
	}
}

static uint32_t nowhere(struct maker *k)
{
	const struct as_annotation *a = k->t->v->a;
	const struct as_m_function *f = &a->model->functions.v[a->function];
	struct as_an_place p = make_place(k->t, AS_NONE);

	p.function = a->function;
	p.name = f->brief;
	p.file = f->file;
	return put_place(k, &p);
}

/* The chain of an instruction without samples: from the function's innermost place inwards. */
static uint32_t place_of_chain(struct maker *k, const struct as_listing_insn *insn)
{
	const struct as_annotate_view *v = k->t->v;
	const struct as_listing_place *chain = &v->l->places.v[insn->place];
	uint32_t n = insn->nplaces, at = AS_NONE, from = 0;

	if (n && v->a->query.no_inline) {
		chain += n - 1;
		n = 1;
	}
	while (from < n && chain[from].key != v->a->function)
		from++;
	if (from == n)
		return nowhere(k);
	for (uint32_t i = from + 1; i-- > 0;) {
		struct as_an_place p = make_place(k->t, at);

		p.function = chain[i].key;
		p.name = chain[i].function ? chain[i].function : "?";
		p.file = chain[i].file ? chain[i].file : "";
		if (!p.file[0] && p.function != AS_NONE)
			p.file = v->a->model->functions.v[p.function].file;
		p.line = chain[i].line;
		at = put_place(k, &p);
	}
	return at;
}

/* ---- instructions ---- */

static void add_insn(struct maker *k, const struct as_listing_insn *text, uint32_t cost)
{
	const struct as_annotation *a = k->t->v->a;
	struct as_an_insn insn = {.text = text, .cost = cost, .next = AS_NONE};

	if (cost != AS_NONE) {
		insn.place = a->insns.v[cost].place;
		insn.svma = a->insns.v[cost].svma;
	} else {
		insn.place = place_of_chain(k, text);
	}
	if (text)
		insn.svma = text->svma;
	as_vec_push(&k->t->insns, insn);
}

/* Both lists ascend by address; costs of other modules than the listing's come last. */
static void merge_insns(struct maker *k)
{
	const struct as_annotation *a = k->t->v->a;
	const struct as_listing *l = k->t->v->l;
	size_t c = 0, end;

	while (c < a->insns.n && a->insns.v[c].module != l->module)
		c++;
	for (end = c; end < a->insns.n && a->insns.v[end].module == l->module;)
		end++;

	size_t first = c;

	as_vec_foreach (i, &l->insns) {
		uint64_t stop = i->svma + (i->len ? i->len : 1);

		for (; c < end && a->insns.v[c].svma < i->svma; c++)
			add_insn(k, NULL, (uint32_t)c);
		if (c < end && a->insns.v[c].svma < stop)
			add_insn(k, i, (uint32_t)c++);
		else
			add_insn(k, i, AS_NONE);
	}
	for (; c < end; c++)
		add_insn(k, NULL, (uint32_t)c);
	for (c = 0; c < a->insns.n; c++) {
		if (c < first || c >= end)
			add_insn(k, NULL, (uint32_t)c);
	}
}

static void chain_insns(struct as_an_tree *t)
{
	for (uint32_t i = 0; i < t->insns.n; i++) {
		struct as_an_place *p = &t->places.v[t->insns.v[i].place];

		if (p->last_insn == AS_NONE)
			p->first_insn = i;
		else
			t->insns.v[p->last_insn].next = i;
		p->last_insn = i;
		p->n_insns++;
	}
}

/* ---- order ---- */

struct order {
	uint32_t place;
	bool own_file;
	double share;
	const struct as_an_place *p;
};

static int by_line(const void *pa, const void *pb)
{
	const struct order *a = pa, *b = pb;
	int files;

	if (a->own_file != b->own_file)
		return a->own_file ? -1 : 1;
	files = strcmp(a->p->file, b->p->file);
	if (files)
		return files;
	if (a->p->line != b->p->line)
		return a->p->line < b->p->line ? -1 : 1;
	return a->place < b->place ? -1 : a->place > b->place;
}

/* Last first: children are linked by pushing to the front. */
static int lightest_first(const void *pa, const void *pb)
{
	const struct order *a = pa, *b = pb;

	if (a->share != b->share)
		return a->share < b->share ? -1 : 1;
	return -by_line(pa, pb);
}

static void link_places(struct as_an_tree *t)
{
	const struct as_annotation *a = t->v->a;
	const char *own = a->model->functions.v[a->function].file;
	struct order *o = as_xreallocarray(NULL, t->places.n + 1, sizeof *o);
	size_t n = t->places.n;

	for (uint32_t i = 0; i < n; i++)
		o[i] = (struct order){i, strcmp(t->places.v[i].file, own) == 0,
				      as_an_place_share(t, i), &t->places.v[i]};
	if (n)
		qsort(o, n, sizeof *o, lightest_first);
	for (size_t i = 0; i < n; i++) {
		struct as_an_place *p = &t->places.v[o[i].place];

		if (p->parent == AS_NONE)
			continue;
		p->next = t->places.v[p->parent].first_child;
		t->places.v[p->parent].first_child = o[i].place;
	}
	if (n)
		qsort(o, n, sizeof *o, by_line);
	for (size_t i = 0; i < n; i++) {
		if (o[i].p->parent == AS_NONE)
			as_vec_push(&t->roots, o[i].place);
	}
	free(o);
}

void as_an_tree_make(const struct as_annotate_view *v, struct as_an_tree *ret)
{
	struct maker k = {.t = ret};

	*ret = (struct as_an_tree){.v = v};
	add_sampled_places(&k);
	merge_insns(&k);
	chain_insns(ret);
	link_places(ret);
	as_map64_clear(&k.ids);
}

void as_an_tree_clear(struct as_an_tree *t)
{
	as_vec_clear(&t->places);
	as_vec_clear(&t->insns);
	as_vec_clear(&t->roots);
}
