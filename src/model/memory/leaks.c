/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/memory/leaks.h"

#include <stdlib.h>
#include <string.h>

#include "model/model_priv.h"

#define LOOKS_MAX      100000u
#define RUNTIME_BLOCKS 8u /* of one stack: more are no longer one-time */

/* ---- records ---- */

static struct as_u64s copy_list(struct as_loader *l, struct as_u64s s)
{
	uint64_t *v = as_arena_alloc(&l->m->arena, s.n * sizeof *v + 1);

	if (s.n)
		memcpy(v, s.v, s.n * sizeof *v);
	return (struct as_u64s){v, s.n};
}

/* Drops what is there of the process: a later look replaces an earlier one. */
#define DROP(vec, field, number)                                                               \
	do {                                                                                   \
		size_t n_ = 0;                                                                 \
		as_vec_foreach (it_, vec) {                                                    \
			if (it_->field != (number))                                            \
				(vec)->v[n_++] = *it_;                                         \
		}                                                                              \
		(vec)->n = n_;                                                                 \
	} while (0)

static int on_leaks(void *ctx, const struct as_rec_heap_leaks *r)
{
	struct as_loader *l = ctx;
	struct as_m_look *look = &l->m->heap.look;
	struct as_rec_heap_leaks copy = *r;
	uint64_t work = look->rows.n; /* a file may say this again and again */

	if (r->process >= l->m->processes.n || look->leaks.n >= LOOKS_MAX)
		return as_loader_damaged(l);
	DROP(&look->leaks, process, r->process);
	DROP(&look->rows, r.process, r->process);
	copy.sums = copy_list(l, r->sums);
	copy.inside = copy_list(l, r->inside);
	as_vec_push(&look->leaks, copy);
	return as_loader_charge(l, sizeof copy + work + 8 * (r->sums.n + r->inside.n));
}

static int on_leak(void *ctx, const struct as_rec_heap_leak *r)
{
	struct as_loader *l = ctx;

	if (r->process >= l->m->processes.n || r->row >= l->m->heap.rows.n)
		return as_loader_damaged(l);
	as_vec_push(&l->m->heap.look.rows, (struct as_m_leak){.r = *r});
	return as_loader_charge(l, sizeof(struct as_m_leak));
}

static int on_rss(void *ctx, const struct as_rec_heap_rss *r)
{
	struct as_loader *l = ctx;
	struct as_m_look *look = &l->m->heap.look;
	uint64_t work = look->parts.n + look->pins.n;

	if (r->process >= l->m->processes.n || look->rss.n >= LOOKS_MAX)
		return as_loader_damaged(l);
	DROP(&look->rss, process, r->process);
	DROP(&look->parts, r.process, r->process);
	DROP(&look->pins, process, r->process);
	as_vec_push(&look->rss, *r);
	return as_loader_charge(l, sizeof *r + work);
}

static int on_part(void *ctx, const struct as_rec_heap_rss_part *r)
{
	struct as_loader *l = ctx;
	struct as_m_rss_part part = {.r = *r, .name = as_loader_string(l, r->name)};

	if (r->process >= l->m->processes.n || r->row > l->m->heap.rows.n)
		return as_loader_damaged(l);
	as_vec_push(&l->m->heap.look.parts, part);
	return as_loader_charge(l, sizeof part);
}

static int on_pin(void *ctx, const struct as_rec_heap_pin *r)
{
	struct as_loader *l = ctx;

	if (r->process >= l->m->processes.n || r->row >= l->m->heap.rows.n)
		return as_loader_damaged(l);
	as_vec_push(&l->m->heap.look.pins, *r);
	return as_loader_charge(l, sizeof *r);
}

void as_load_leaks(struct as_record_sink *sink)
{
	sink->heap_leaks = on_leaks;
	sink->heap_leak = on_leak;
	sink->heap_rss = on_rss;
	sink->heap_rss_part = on_part;
	sink->heap_pin = on_pin;
}

void as_leaks_clear_model(struct as_m_look *look)
{
	as_vec_clear(&look->leaks);
	as_vec_clear(&look->rows);
	as_vec_clear(&look->rss);
	as_vec_clear(&look->parts);
	as_vec_clear(&look->pins);
	free(look->leaked);
}

/* ---- the runtime's own ---- */

static bool starts_with_any(const char *s, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strncmp(s, list[i], strlen(list[i])) == 0)
			return true;
	}
	return false;
}

static bool is_one_of(const char *s, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(s, list[i]) == 0)
			return true;
	}
	return false;
}

static bool is_runtime_module(const char *name)
{
	static const char *const start[] = {
		"libc.so",  "libc-",      "ld-linux", "ld-musl", "ld-2",     "libstdc++.",
		"libgcc_s", "libpthread", "libc++",   "libdl",   "librt.so", "libm.so",
	};

	return starts_with_any(name, start, AS_ARRAY_LEN(start));
}

/* Functions of the C library that give their block to the caller. */
static bool gives_to_caller(const char *name)
{
	static const char *const all[] = {
		"strdup",
		"__strdup",
		"strndup",
		"__strndup",
		"asprintf",
		"__asprintf",
		"vasprintf",
		"__vasprintf",
		"getline",
		"__getline",
		"getdelim",
		"_IO_getdelim",
		"realpath",
		"getcwd",
		"opendir",
		"fdopendir",
		"scandir",
		"getaddrinfo",
		"open_memstream",
		"fopen",
		"fopen64",
		"_IO_new_fopen",
		"fdopen",
		"_IO_new_fdopen",
		"regcomp",
		"wcsdup",
		"getifaddrs",
		"glob",
		"popen",
		"tmpfile",
		"__fopen_internal",
		"__alloc_dir",
		"vasprintf_internal",
		"__vasprintf_internal",
	};

	return is_one_of(name, all, AS_ARRAY_LEN(all));
}

static bool is_std_own(const char *name)
{
	static const char *const start[] = {
		"std::rt::",         "std::thread::", "std::io::stdio::", "std::sys::",
		"std::sys_common::", "std::sync::",   "<std::sync::",     "<std::thread::",
	};

	return starts_with_any(name, start, AS_ARRAY_LEN(start));
}

/* Static programs have the C library's functions in their own file. */
static bool is_library_own(const char *name)
{
	static const char *const start[] = {
		"_IO_", "__libc_", "_dl_", "__gconv", "_nl_", "__tls_", "_rtld", "__GI__",
	};

	return starts_with_any(name, start, AS_ARRAY_LEN(start));
}

static bool is_runtime(const struct as_model *m, const struct as_m_heap_row *row)
{
	const struct as_m_function *f;
	const struct as_m_frame *frame;

	if (row->folded == AS_NONE)
		return false;
	frame = &m->frames.v[m->stacks.v[row->folded].frame];
	f = &m->functions.v[m->places.v[frame->chain].function];
	if (gives_to_caller(f->brief))
		return false;
	if (is_std_own(f->full) || is_library_own(f->brief))
		return true;
	return frame->module != AS_NONE && is_runtime_module(m->modules.v[frame->module].name);
}

void as_leaks_complete(struct as_model *m)
{
	struct as_m_look *look = &m->heap.look;

	free(look->leaked);
	look->leaked = as_xcalloc(m->heap.rows.n + 1, sizeof *look->leaked);
	as_vec_foreach (k, &look->rows) {
		k->runtime = k->r.reachable_blocks + k->r.possible_blocks <= RUNTIME_BLOCKS &&
			     is_runtime(m, &m->heap.rows.v[k->r.row]);
		look->leaked[k->r.row] = k->r.lost_bytes + k->r.owned_bytes;
	}
}

/* ---- by stack ---- */

static void add(struct as_leak_sum *to, uint64_t blocks, uint64_t bytes)
{
	to->blocks += blocks;
	to->bytes += bytes;
}

static void add_leak(struct as_leak_owner *o, const struct as_m_leak *k)
{
	add(&o->lost, k->r.lost_blocks, k->r.lost_bytes);
	add(&o->owned, k->r.owned_blocks, k->r.owned_bytes);
	add(k->runtime ? &o->runtime : &o->possible, k->r.possible_blocks, k->r.possible_bytes);
	add(k->runtime ? &o->runtime : &o->reachable, k->r.reachable_blocks,
	    k->r.reachable_bytes);
}

static void add_run(struct as_leak_owner *o, const struct as_rec_heap_stack *r)
{
	o->live_bytes += r->live_bytes;
	o->exit_bytes += r->exit_bytes;
	if (r->growth_bytes > o->growth_bytes) {
		o->growth_steps = r->growth_steps;
		o->growth_rises = r->growth_rises;
	}
	o->growth_bytes += r->growth_bytes;
}

static int by_bytes(const void *a, const void *b)
{
	const struct as_leak_owner *x = a, *y = b;
	const uint64_t vx[] = {x->lost.bytes + x->owned.bytes, x->lost.blocks,
			       x->possible.bytes, x->reachable.bytes, y->stack};
	const uint64_t vy[] = {y->lost.bytes + y->owned.bytes, y->lost.blocks,
			       y->possible.bytes, y->reachable.bytes, x->stack};

	for (size_t i = 0; i < AS_ARRAY_LEN(vx); i++) {
		if (vx[i] != vy[i])
			return vx[i] > vy[i] ? -1 : 1;
	}
	return 0;
}

static struct as_leak_owner *owner_of(struct as_leak_list *l, struct as_map64 *index,
				      uint32_t process, uint32_t stack)
{
	bool fresh;
	uint64_t *at = as_map64_put(index, (uint64_t)process << 32 | stack, &fresh);

	if (fresh) {
		*at = l->owners.n;
		as_vec_push(&l->owners,
			    (struct as_leak_owner){.process = process, .stack = stack});
	}
	return &l->owners.v[*at];
}

void as_model_leaks(const struct as_model *m, struct as_leak_list *ret)
{
	struct as_map64 index = {0};
	struct as_leak_list l = {0};

	as_vec_foreach (k, &m->heap.look.rows) {
		const struct as_m_heap_row *row = &m->heap.rows.v[k->r.row];
		struct as_leak_owner *o =
			owner_of(&l, &index, (uint32_t)k->r.process, row->folded);

		add_leak(o, k);
		add_leak(&l.sum, k);
		add_run(o, &row->r);
	}
	as_map64_clear(&index);
	if (l.owners.n)
		qsort(l.owners.v, l.owners.n, sizeof *l.owners.v, by_bytes);
	*ret = l;
}

void as_leak_list_clear(struct as_leak_list *l)
{
	as_vec_clear(&l->owners);
	*l = (struct as_leak_list){0};
}

/* ---- pinned pages ---- */

static uint32_t function_of_row(const struct as_model *m, uint64_t row)
{
	uint32_t stack = m->heap.rows.v[row].folded;

	if (stack == AS_NONE)
		return AS_NONE;
	return m->places.v[m->frames.v[m->stacks.v[stack].frame].chain].function;
}

static int by_function(const void *a, const void *b)
{
	const struct as_model_pin *x = a, *y = b;

	return x->function < y->function ? -1 : x->function > y->function;
}

static int by_pinned(const void *a, const void *b)
{
	const struct as_model_pin *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return by_function(a, b);
}

/* Those of one function stand together. Returns how many are left. */
static size_t join_pins(struct as_model_pin *v, size_t n)
{
	size_t last = 0;

	for (size_t i = 1; i < n; i++) {
		if (v[i].function != v[last].function) {
			v[++last] = v[i];
			continue;
		}
		v[last].pages += v[i].pages;
		v[last].bytes += v[i].bytes;
		v[last].blocks += v[i].blocks;
		v[last].live_bytes += v[i].live_bytes;
	}
	return n ? last + 1 : 0;
}

void as_model_pins_find(const struct as_model *m, uint64_t process, struct as_model_pins *ret)
{
	struct as_model_pins p = {0};

	as_vec_foreach (x, &m->heap.look.pins) {
		if (x->process == process)
			as_vec_push(&p.v,
				    (struct as_model_pin){function_of_row(m, x->row), x->pages,
							  x->bytes, x->blocks, x->live_bytes});
	}
	if (p.v.n)
		qsort(p.v.v, p.v.n, sizeof *p.v.v, by_function);
	p.v.n = join_pins(p.v.v, p.v.n);
	if (p.v.n)
		qsort(p.v.v, p.v.n, sizeof *p.v.v, by_pinned);
	*ret = p;
}

void as_model_pins_clear(struct as_model_pins *p)
{
	as_vec_clear(&p->v);
}

bool as_leak_grows(const struct as_leak_owner *o)
{
	return o->growth_steps >= 4 && o->growth_rises + 1 >= o->growth_steps &&
	       o->growth_bytes > 0 && (uint64_t)o->growth_bytes > o->live_bytes / 2;
}
