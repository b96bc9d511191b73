/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a look at a process found, for the page: Leaks and Resident of web/types.js. */
#include <stdlib.h>
#include <string.h>

#include "view/memory/leaks.h"
#include "view/page/page_priv.h"

enum { OWNERS = 200, NAMES = 4, PINS = 50 };

static void sum(struct as_json *j, const char *key, const struct as_leak_sum *s)
{
	as_json_obj(j, key);
	as_json_u64(j, "blocks", s->blocks);
	as_json_u64(j, "bytes", s->bytes);
	as_json_end(j);
}

static void owner(struct as_json *j, const char *key, const struct as_leak_owner *o)
{
	as_json_obj(j, key);
	as_json_u64(j, "process", o->process);
	as_json_i64(j, "stack", o->stack == AS_NONE ? -1 : (int64_t)o->stack);
	sum(j, "lost", &o->lost);
	sum(j, "owned", &o->owned);
	sum(j, "possible", &o->possible);
	sum(j, "reachable", &o->reachable);
	sum(j, "runtime", &o->runtime);
	as_json_u64(j, "live", o->live_bytes);
	as_json_u64(j, "exit", o->exit_bytes);
	as_json_u64(j, "steps", o->growth_steps);
	as_json_u64(j, "rises", o->growth_rises);
	as_json_bool(j, "grows", as_leak_grows(o));
	as_json_end(j);
}

/* Those that lost blocks, up to a limit, and those that grow; the others are in the sums alone. */
static void owners(struct as_json *j, const struct as_leak_list *l)
{
	struct as_leak_sum rest = {0, 0};
	uint64_t n = 0, left = 0;

	as_json_arr(j, "owners");
	as_vec_foreach (o, &l->owners) {
		if (!o->lost.blocks && !as_leak_grows(o))
			continue;
		if (n++ < OWNERS) {
			owner(j, NULL, o);
		} else if (o->lost.blocks) {
			left++;
			rest.blocks += o->lost.blocks + o->owned.blocks;
			rest.bytes += o->lost.bytes + o->owned.bytes;
		}
	}
	as_json_end(j);
	as_json_obj(j, "rest");
	as_json_u64(j, "owners", left);
	sum(j, "sum", &rest);
	as_json_end(j);
}

static void leaks(struct as_page *p)
{
	struct as_json *j = &p->j;
	struct as_leak_list l;
	bool at_exit = true;

	if (!p->m->heap.look.leaks.n) {
		as_json_null(j, "leaks");
		return;
	}
	as_vec_foreach (k, &p->m->heap.look.leaks)
		at_exit &= k->flags & 1;
	as_model_leaks(p->m, &l);
	as_json_obj(j, "leaks");
	as_json_bool(j, "atExit", at_exit);
	owner(j, "sum", &l.sum);
	owners(j, &l);
	as_json_end(j);
	as_leak_list_clear(&l);
}

/* ---- resident memory ---- */

struct parts {
	AS_VEC(const struct as_m_rss_part *) v;
};

static int by_bytes(const void *a, const void *b)
{
	const struct as_m_rss_part *x = *(const struct as_m_rss_part *const *)a;
	const struct as_m_rss_part *y = *(const struct as_m_rss_part *const *)b;

	if (x->r.bytes != y->r.bytes)
		return x->r.bytes > y->r.bytes ? -1 : 1;
	if (x->r.row != y->r.row)
		return x->r.row < y->r.row ? -1 : 1;
	return strcmp(x->name, y->name);
}

static int64_t function_of_row(const struct as_model *m, uint64_t row)
{
	uint32_t stack = m->heap.rows.v[row].folded;
	const struct as_m_frame *f;

	if (stack == AS_NONE)
		return -1;
	f = &m->frames.v[m->stacks.v[stack].frame];
	return m->places.v[f->chain].function;
}

/* The largest that have a name: of a file, or of who mapped it. */
static void names(struct as_page *p, const struct parts *of)
{
	struct as_json *j = &p->j;
	size_t n = 0;

	as_json_arr(j, "names");
	for (size_t i = 0; i < of->v.n && n < NAMES; i++) {
		const struct as_m_rss_part *x = of->v.v[i];

		if (!x->r.bytes || (!x->r.row && !*x->name))
			continue;
		as_json_obj(j, NULL);
		as_json_str(j, "name", as_resident_name(x));
		as_json_i64(j, "function", x->r.row ? function_of_row(p->m, x->r.row - 1) : -1);
		as_json_u64(j, "bytes", x->r.bytes);
		as_json_end(j);
		n++;
	}
	as_json_end(j);
}

static void kind(struct as_page *p, uint64_t process, unsigned k)
{
	const char *key, *label = as_resident_kind(k, &key);
	struct as_json *j = &p->j;
	struct parts of = {0};
	uint64_t bytes = 0, mapped = 0;

	as_vec_foreach (x, &p->m->heap.look.parts) {
		if (x->r.process != process || x->r.kind != k)
			continue;
		bytes += x->r.bytes;
		mapped += x->r.mapped_bytes;
		as_vec_push(&of.v, x);
	}
	if (of.v.n)
		qsort(of.v.v, of.v.n, sizeof *of.v.v, by_bytes);
	as_json_obj(j, NULL);
	as_json_str(j, "kind", key);
	as_json_str(j, "label", label);
	as_json_u64(j, "bytes", bytes);
	as_json_u64(j, "mapped", mapped);
	names(p, &of);
	as_json_end(j);
	as_vec_clear(&of.v);
}

static void pins(struct as_page *p, uint64_t process)
{
	struct as_json *j = &p->j;
	struct as_model_pins of;

	as_model_pins_find(p->m, process, &of);
	as_json_arr(j, "pins");
	for (size_t i = 0; i < of.v.n && i < PINS; i++) {
		const struct as_model_pin *x = &of.v.v[i];

		as_json_obj(j, NULL);
		as_json_i64(j, "function", x->function == AS_NONE ? -1 : (int64_t)x->function);
		as_json_u64(j, "pages", x->pages);
		as_json_u64(j, "bytes", x->bytes);
		as_json_u64(j, "blocks", x->blocks);
		as_json_u64(j, "live", x->live_bytes);
		as_json_end(j);
	}
	as_json_end(j);
	as_model_pins_clear(&of);
}

static void resident(struct as_page *p)
{
	uint64_t start = p->m->recording.start_ns;
	struct as_json *j = &p->j;
	const char *key;

	as_json_arr(j, "resident");
	as_vec_foreach (r, &p->m->heap.look.rss) {
		as_json_obj(j, NULL);
		as_json_u64(j, "process", r->process);
		as_json_u64(j, "time", r->time_ns > start ? r->time_ns - start : 0);
		as_json_u64(j, "rss", r->rss_bytes);
		as_json_u64(j, "swapped", r->swapped_bytes);
		as_json_u64(j, "untouched", r->untouched_bytes);
		as_json_u64(j, "free", r->free_bytes);
		as_json_u64(j, "pinnedPages", r->pinned_pages);
		as_json_u64(j, "pinned", r->pinned_bytes);
		as_json_arr(j, "kinds");
		for (unsigned k = 0; as_resident_kind(k, &key); k++)
			kind(p, r->process, k);
		as_json_end(j);
		pins(p, r->process);
		as_json_end(j);
	}
	as_json_end(j);
}

void as_page_looks(struct as_page *p)
{
	leaks(p);
	resident(p);
}
