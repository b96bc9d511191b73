/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Callgrind's profile format (valgrind's manual, "Callgrind Format Specification"): per function
 * and line what it cost itself, and per call site what the callee cost with all it called. Lines
 * only, no addresses: speedscope's reader wants it so. Names are written once, as "(id) name".
 *
 * Readers take for a function's inclusive cost what the calls to it cost together, which counts
 * recursion more than once. So that the sum equals our total, of each sample only the call of a
 * function's outermost occurrence carries the cost; the recursive ones are written with cost 0.
 * For that every function must have a caller: one of ours, [all], calls the first of each stack.
 *
 * callgrind_annotate knows functions by file and name alone; what is recursion is decided so.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/sys.h"
#include "exchange/exchange_priv.h"
#include "model/profile/selection.h"

struct fn { /* what a reader takes for one function: a name in a file of an object */
	uint32_t name, file, object; /* texts */
	uint32_t line;
	uint32_t group; /* shared by those that differ in object only */
};

struct cost { /* of a line (callee AS_NONE) or a call site */
	uint32_t fn, file, line, callee;
	uint64_t calls, samples, weight;
};

struct step { /* a place on the path from the root */
	uint32_t fn, file, line;
};

struct visit { /* a stack node the walk is in */
	uint32_t stack;
	uint32_t steps; /* length of the path before it */
};

struct amount {
	uint64_t samples, weight;
};

struct writer {
	const struct as_model *m;
	const struct as_export_options *o;
	struct as_selection *s;
	struct as_sink *out;
	struct as_intern texts;
	struct as_map64 fn_ids; /* hash of name, file, object */
	AS_VEC(struct fn) fns;
	struct as_map64 group_ids;      /* name << 32 | file */
	AS_VEC(uint32_t) group_entered; /* steps of the path that are in the group */
	const char **file;              /* per function of the model */
	uint32_t *fn_of;                /* per function of the model; AS_NONE: not yet asked */
	AS_VEC(struct cost) costs;
	struct as_map64 cost_ids;
	uint32_t *first, *next;      /* children of stacks */
	uint32_t *at;                /* per stack: the child to visit next */
	struct amount *self, *total; /* per stack, under the marker of this walk */
	AS_VEC(struct step) path;
	AS_VEC(struct visit) open;
	bool *said_file, *said_object, *said_fn;
	uint32_t unknown; /* text "???" */
};

/* ---- functions ---- */

/* Line breaks would end the line a name stands on. */
static uint32_t text(struct writer *w, const char *s)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	if (!s[0])
		return w->unknown;
	as_fmt_quoted(&b, s, strlen(s));
	return as_intern(&w->texts, as_buf_str(&b), b.len);
}

static uint32_t group_of(struct writer *w, const struct fn *f)
{
	bool fresh;
	uint64_t *id = as_map64_put(&w->group_ids, (uint64_t)f->name << 32 | f->file, &fresh);

	if (fresh) {
		*id = w->group_entered.n;
		as_vec_push(&w->group_entered, 0);
	}
	return (uint32_t)*id;
}

static uint32_t find_fn(struct writer *w, const struct fn *want)
{
	uint32_t id[3] = {want->name, want->file, want->object};
	uint64_t h = as_hash64(id, sizeof id) >> 1;

	for (;; h++) {
		bool fresh;
		uint64_t *at = as_map64_put(&w->fn_ids, h, &fresh);
		const struct fn *f;

		if (fresh) {
			*at = w->fns.n;
			as_vec_push(&w->fns, *want);
			w->fns.v[*at].group = group_of(w, want);
			return (uint32_t)*at;
		}
		f = &w->fns.v[*at];
		if (f->name == want->name && f->file == want->file && f->object == want->object)
			return (uint32_t)*at;
	}
}

static const char *object_of(const struct as_model *m, const struct as_m_function *f)
{
	const struct as_m_module *module;

	if (f->module == AS_NONE)
		return "";
	module = &m->modules.v[f->module];
	return module->kind == AS_MODULE_FILE && module->path[0] ? module->path : module->name;
}

static uint32_t fn_of(struct writer *w, uint32_t function)
{
	const struct as_m_function *f = &w->m->functions.v[function];

	if (w->fn_of[function] == AS_NONE) {
		struct fn want = {.name = text(w, as_export_name(w->o, f)),
				  .file = text(w, w->file[function]),
				  .object = text(w, object_of(w->m, f)),
				  .line = f->line};

		w->fn_of[function] = find_fn(w, &want);
	}
	return w->fn_of[function];
}

/* ---- costs ---- */

static bool is_cost(const struct cost *a, const struct cost *b)
{
	return a->fn == b->fn && a->file == b->file && a->line == b->line &&
	       a->callee == b->callee;
}

static uint32_t cost_of(struct writer *w, const struct step *at, uint32_t callee)
{
	struct cost want = {.fn = at->fn, .file = at->file, .line = at->line, .callee = callee};
	uint64_t h = as_mix64((uint64_t)want.fn << 32 | want.line) ^
		     as_mix64((uint64_t)want.callee << 32 | want.file) * 3;

	for (h >>= 1;; h++) {
		bool fresh;
		uint64_t *id = as_map64_put(&w->cost_ids, h, &fresh);

		if (fresh) {
			*id = w->costs.n;
			as_vec_push(&w->costs, want);
		}
		if (is_cost(&w->costs.v[*id], &want))
			return (uint32_t)*id;
	}
}

static void push_step(struct writer *w, struct step s, struct amount amount)
{
	uint32_t *entered = &w->group_entered.v[w->fns.v[s.fn].group];

	if (w->path.n) {
		uint32_t id = cost_of(w, &w->path.v[w->path.n - 1], s.fn);
		struct cost *c = &w->costs.v[id];

		c->calls += amount.samples;
		if (!*entered) {
			c->samples += amount.samples;
			c->weight += amount.weight;
		}
	}
	as_vec_push(&w->path, s);
	++*entered;
}

static void pop_steps(struct writer *w, uint32_t length)
{
	while (w->path.n > length) {
		uint32_t fn = w->path.v[--w->path.n].fn;

		w->group_entered.v[w->fns.v[fn].group]--;
	}
}

/* One of our own: no file, no object. */
static struct step own_step(struct writer *w, const char *name)
{
	struct fn want = {.name = text(w, name), .file = w->unknown, .object = w->unknown};

	return (struct step){.fn = find_fn(w, &want), .file = w->unknown};
}

/* What ends here costs the innermost function that is shown; [all] is none. */
static void add_self(struct writer *w, struct amount amount)
{
	struct cost *c;
	bool bare = w->path.n == 1;
	uint32_t id;

	if (!amount.samples)
		return;
	if (bare)
		push_step(w, own_step(w, AS_EXPORT_NO_FRAMES), amount);
	id = cost_of(w, &w->path.v[w->path.n - 1], AS_NONE);
	c = &w->costs.v[id];
	c->samples += amount.samples;
	c->weight += amount.weight;
	if (bare)
		pop_steps(w, 1);
}

/* ---- the walk ---- */

static void push_place(struct writer *w, const struct as_m_place *p, struct amount amount)
{
	struct step s = {.line = p->line};

	s.fn = fn_of(w, p->function);
	s.file = p->file[0] ? text(w, p->file) : w->fns.v[s.fn].file;
	push_step(w, s, amount);
}

static void enter(struct writer *w, uint32_t stack)
{
	const struct as_m_place *const *places;
	uint32_t n = as_selection_places(w->s, w->m->stacks.v[stack].frame, &places);

	as_vec_push(&w->open, (struct visit){stack, (uint32_t)w->path.n});
	while (n-- > 0)
		push_place(w, places[n], w->total[stack]);
	add_self(w, w->self[stack]);
}

static void walk_from(struct writer *w, uint32_t root)
{
	enter(w, root);
	while (w->open.n) {
		struct visit *v = &w->open.v[w->open.n - 1];
		uint32_t child = w->at[v->stack];

		if (child == AS_NONE) {
			pop_steps(w, v->steps);
			w->open.n--;
			continue;
		}
		w->at[v->stack] = w->next[child];
		if (w->total[child].samples)
			enter(w, child);
	}
}

static void list_children(struct writer *w)
{
	size_t n = w->m->stacks.n;

	w->first = as_xreallocarray(NULL, n + 1, sizeof *w->first);
	w->next = as_xreallocarray(NULL, n + 1, sizeof *w->next);
	w->at = as_xreallocarray(NULL, n + 1, sizeof *w->at);
	w->self = as_xcalloc(n + 1, sizeof *w->self);
	w->total = as_xcalloc(n + 1, sizeof *w->total);
	memset(w->first, 0xff, (n + 1) * sizeof *w->first);
	for (size_t i = n; i-- > 0;) {
		uint32_t parent = w->m->stacks.v[i].parent;

		if (parent != AS_NONE) {
			w->next[i] = w->first[parent];
			w->first[parent] = (uint32_t)i;
		}
	}
}

/* All samples whose stacks have this marker above them (AS_NONE: whole stacks). */
static void walk_marker(struct writer *w, uint32_t marker)
{
	size_t n = w->m->stacks.n;
	struct amount bare = {0}, all = {0};

	memset(w->self, 0, (n + 1) * sizeof *w->self);
	as_vec_foreach (g, &w->s->groups) {
		struct amount *to = g->stack == AS_NONE ? &bare : &w->self[g->stack];

		if (g->marker != marker)
			continue;
		to->samples += g->samples;
		to->weight += g->weight;
		all.samples += g->samples;
		all.weight += g->weight;
	}
	if (!all.samples)
		return;
	memcpy(w->total, w->self, (n + 1) * sizeof *w->total);
	memcpy(w->at, w->first, (n + 1) * sizeof *w->at);
	for (size_t i = n; i-- > 0;) {
		uint32_t parent = w->m->stacks.v[i].parent;

		if (parent != AS_NONE) {
			w->total[parent].samples += w->total[i].samples;
			w->total[parent].weight += w->total[i].weight;
		}
	}
	push_step(w, own_step(w, "[all]"), all);
	if (marker != AS_NONE)
		push_place(w, &(struct as_m_place){.function = marker, .file = ""}, all);
	add_self(w, bare);
	for (uint32_t i = 0; i < n; i++) {
		if (w->m->stacks.v[i].parent == AS_NONE && w->total[i].samples)
			walk_from(w, i);
	}
	pop_steps(w, 0);
}

/* ---- text ---- */

/* "fn=(3) name" the first time, "fn=(3)" later. */
static void put_name(struct writer *w, const char *word, bool *said, uint32_t id, uint32_t name)
{
	struct as_buf *b = &w->out->out;

	as_buf_addf(b, "%s=(%" PRIu32 ")", word, id + 1);
	if (!said[id]) {
		as_buf_addc(b, ' ');
		as_buf_adds(b, as_intern_get(&w->texts, name));
		said[id] = true;
	}
	as_buf_addc(b, '\n');
}

static int by_place(const void *pa, const void *pb, void *ctx)
{
	const struct cost *a = pa, *b = pb;
	const struct writer *w = ctx;
	bool away_a, away_b;

	if (a->fn != b->fn)
		return a->fn < b->fn ? -1 : 1;
	away_a = a->file != w->fns.v[a->fn].file;
	away_b = b->file != w->fns.v[b->fn].file;
	if (away_a != away_b)
		return away_a ? 1 : -1;
	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	if (a->callee != b->callee)
		return a->callee == AS_NONE || (b->callee != AS_NONE && a->callee < b->callee)
			       ? -1
			       : 1;
	return 0;
}

static void put_call(struct writer *w, const struct cost *c)
{
	const struct fn *to = &w->fns.v[c->callee];

	put_name(w, "cob", w->said_object, to->object, to->object);
	put_name(w, "cfi", w->said_file, to->file, to->file);
	put_name(w, "cfn", w->said_fn, c->callee, to->name);
	as_buf_addf(&w->out->out, "calls=%" PRIu64 " %" PRIu32 "\n", c->calls, to->line);
}

static void put_costs(struct writer *w)
{
	uint32_t fn = AS_NONE, file = AS_NONE;

	as_vec_foreach (c, &w->costs) {
		const struct fn *f = &w->fns.v[c->fn];

		if (c->fn != fn) {
			as_buf_addc(&w->out->out, '\n');
			put_name(w, "ob", w->said_object, f->object, f->object);
			put_name(w, "fl", w->said_file, f->file, f->file);
			put_name(w, "fn", w->said_fn, c->fn, f->name);
			fn = c->fn;
			file = f->file;
		}
		if (c->file != file) /* own file first: it is never come back to */
			put_name(w, "fi", w->said_file, c->file, c->file);
		file = c->file;
		if (c->callee != AS_NONE)
			put_call(w, c);
		as_buf_addf(&w->out->out, "%" PRIu32 " %" PRIu64 " %" PRIu64 "\n", c->line,
			    c->samples, c->weight);
		as_sink_spill(w->out);
	}
}

static void put_head(struct writer *w)
{
	struct as_buf *b = &w->out->out;
	struct as_trust t;

	as_model_trust(w->m, &t);
	as_buf_addf(b, "# callgrind format\nversion: 1\ncreator: assay %s\n", ASSAY_VERSION);
	as_buf_adds(b, "cmd:");
	as_vec_foreach (arg, &w->m->args) {
		as_buf_addc(b, ' ');
		as_fmt_quoted(b, *arg, strlen(*arg));
	}
	as_buf_addf(b, "\ndesc: Engine: %s, event %s, %.6g Hz\n", t.engine, t.event, t.rate_hz);
	as_buf_addf(b, "desc: Samples: %" PRIu64 " of %" PRIu64 ", lost %" PRIu64 "\n",
		    w->s->samples, t.samples, t.lost);
	as_buf_addf(b,
		    "desc: Stacks: %" PRIu64 " complete, %" PRIu64 " repaired, %" PRIu64
		    " truncated\n",
		    t.complete, t.repaired, t.truncated);
	as_buf_adds(b, "desc: Calls: counts are samples seen in a call, not calls\n");
	as_buf_addf(b, "positions: line\nevents: samples %s\n",
		    w->m->recording.weight_unit == 0 ? "ns" : "cycles");
	as_buf_addf(b, "summary: %" PRIu64 " %" PRIu64 "\n", w->s->samples, w->s->weight);
}

static void put_all(struct writer *w)
{
	size_t ntexts = w->texts.str.n;

	w->said_file = as_xcalloc(ntexts, sizeof *w->said_file);
	w->said_object = as_xcalloc(ntexts, sizeof *w->said_object);
	w->said_fn = as_xcalloc(w->fns.n + 1, sizeof *w->said_fn);
	put_head(w);
	if (w->costs.n)
		qsort_r(w->costs.v, w->costs.n, sizeof *w->costs.v, by_place, w);
	put_costs(w);
	as_buf_addf(&w->out->out, "\ntotals: %" PRIu64 " %" PRIu64 "\n", w->s->samples,
		    w->s->weight);
	free(w->said_file);
	free(w->said_object);
	free(w->said_fn);
}

static void writer_clear(struct writer *w)
{
	as_intern_clear(&w->texts);
	as_map64_clear(&w->fn_ids);
	as_map64_clear(&w->group_ids);
	as_map64_clear(&w->cost_ids);
	as_vec_clear(&w->group_entered);
	as_vec_clear(&w->fns);
	as_vec_clear(&w->costs);
	as_vec_clear(&w->path);
	as_vec_clear(&w->open);
	free(w->file);
	free(w->fn_of);
	free(w->first);
	free(w->next);
	free(w->at);
	free(w->self);
	free(w->total);
	as_selection_free(w->s);
}

int as_export_write_callgrind(const struct as_model *m, const struct as_export_options *o,
			      struct as_sink *out, struct as_error *err)
{
	struct writer w = {.m = m, .o = o, .out = out};
	size_t fn_bytes = (m->functions.n + 1) * sizeof *w.fn_of;
	int r = as_selection_make(m, o->query, &w.s, err);

	if (r < 0)
		return r;
	w.unknown = as_intern_str(&w.texts, "???");
	w.file = as_export_files(w.s);
	w.fn_of = as_xmalloc(fn_bytes);
	memset(w.fn_of, 0xff, fn_bytes);
	list_children(&w);
	walk_marker(&w, AS_NONE);
	for (unsigned e = 0; e < AS_END_COUNT_; e++) {
		if (m->end_function[e] != AS_NONE)
			walk_marker(&w, m->end_function[e]);
	}
	put_all(&w);
	writer_clear(&w);
	return AS_OK;
}
