/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The tables of the model as columns of small numbers. A column is stored in the shorter of two
 * ways, plain or as differences; gzip does the rest. Names and types are those of web/types.js.
 */
#include "view/page/page_priv.h"

#include <stdlib.h>
#include <string.h>

#include "model/category.h"

enum type {
	BYTES,  /* raw, a byte each */
	NUMBER, /* >= 0 */
	INDEX,  /* >= -1: none */
};

struct column {
	const char *name;
	enum type type;
	size_t count_at; /* of the table's length in struct as_model */
	int64_t (*get)(struct as_page *p, size_t i);
};

static int64_t string(struct as_page *p, const char *s)
{
	if (!s || !*s)
		return 0;

	bool is_new;
	uint64_t *id = as_map64_put(&p->string_of, (uint64_t)(uintptr_t)s, &is_new);

	if (is_new)
		*id = as_intern_str(&p->strings, s);
	return (int64_t)*id;
}

static int64_t index_or_none(uint32_t i)
{
	return i == AS_NONE ? -1 : (int64_t)i;
}

static int64_t since_start(const struct as_page *p, uint64_t ns)
{
	return (int64_t)(ns - p->m->recording.start_ns);
}

/* X(table, column, type, value): p is the page, i the index, x the row. */
#define COLUMNS(X)                                                                             \
	X(functions, brief, NUMBER, string(p, x->brief))                                       \
	X(functions, full, NUMBER, string(p, x->full))                                         \
	X(functions, crate, NUMBER, string(p, x->crate))                                       \
	X(functions, file, NUMBER, string(p, x->file))                                         \
	X(functions, line, NUMBER, x->line)                                                    \
	X(functions, module, INDEX, index_or_none(x->module))                                  \
	X(functions, lang, BYTES, x->lang)                                                     \
	X(functions, flags, BYTES, x->flags)                                                   \
	X(functions, category, BYTES, as_function_category(p->m, (uint32_t)i))                 \
	X(places, function, NUMBER, x->function)                                               \
	X(places, file, NUMBER, string(p, x->file))                                            \
	X(places, line, NUMBER, x->line)                                                       \
	X(places, column, NUMBER, x->column)                                                   \
	X(places, flags, BYTES, x->inlined | x->line_from_call << 1)                           \
	X(frames, module, INDEX, index_or_none(x->module))                                     \
	X(frames, addr, NUMBER, as_page_addr(x->addr))                                         \
	X(frames, flags, BYTES, x->flags)                                                      \
	X(frames, chain, NUMBER, x->chain)                                                     \
	X(frames, nchain, NUMBER, x->nchain)                                                   \
	X(stacks, parent, INDEX, index_or_none(x->parent))                                     \
	X(stacks, frame, NUMBER, x->frame)                                                     \
	X(samples, time, NUMBER, since_start(p, x->time_ns))                                   \
	X(samples, thread, NUMBER, x->thread)                                                  \
	X(samples, stack, INDEX, index_or_none(x->stack))                                      \
	X(samples, weight, NUMBER, as_model_weight(p->m, i))                                   \
	X(samples, cpu, NUMBER, x->cpu)                                                        \
	X(samples, end, NUMBER, x->end)                                                        \
	X(ticks, time, NUMBER, since_start(p, x->time_ns))                                     \
	X(ticks, cpu, NUMBER, x->cpu)                                                          \
	X(ticks, taken, NUMBER, x->taken)                                                      \
	X(ticks, delivered, NUMBER, x->delivered)                                              \
	X(ticks, throttled, NUMBER, x->throttled)                                              \
	X(losses, from, NUMBER, since_start(p, x->from_ns))                                    \
	X(losses, to, NUMBER, since_start(p, x->to_ns))                                        \
	X(losses, count, NUMBER, x->count)                                                     \
	X(trials, start, NUMBER, since_start(p, x->start_ns))                                  \
	X(trials, end, NUMBER, since_start(p, x->end_ns))

#define X(table, column, type, value)                                                          \
	static int64_t table##_##column(struct as_page *p, size_t i)                           \
	{                                                                                      \
		const __typeof__(*p->m->table.v) *x = &p->m->table.v[i];                       \
		(void)x; /* one has no use for it */                                           \
                                                                                               \
		return (int64_t)(value);                                                       \
	}
COLUMNS(X)
#undef X

static const struct column columns[] = {
#define X(table, column, type, value)                                                          \
	{#table "." #column, type, offsetof(struct as_model, table.n), table##_##column},
	COLUMNS(X)
#undef X
};

/* ---- sessions of memory: X(column, type, value), x a row ---- */

static int64_t at_least_0(int64_t v)
{
	return AS_MAX(v, 0);
}

#define HEAP(X)                                                                                \
	X(thread, NUMBER, x->r.thread)                                                         \
	X(stack, INDEX, index_or_none(x->stack))                                               \
	X(folded, INDEX, index_or_none(x->folded))                                             \
	X(end, NUMBER, x->r.end)                                                               \
	X(domain, BYTES, x->r.domain)                                                          \
	X(allocs, NUMBER, x->r.allocs)                                                         \
	X(bytes, NUMBER, x->r.bytes)                                                           \
	X(live, NUMBER, x->r.live_bytes)                                                       \
	X(peak, NUMBER, x->r.peak_bytes)                                                       \
	X(churn, NUMBER, x->r.churn_blocks)                                                    \
	X(growth, NUMBER, at_least_0(x->r.growth_bytes))                                       \
	X(leaked, NUMBER, p->m->heap.look.leaked[i])

#define HEAP_TIMES(X)                                                                          \
	X(process, NUMBER, x->process)                                                         \
	X(time, NUMBER, AS_MAX(since_start(p, x->time_ns), 0))                                 \
	X(live, NUMBER, x->live_bytes)                                                         \
	X(high, NUMBER, x->high_bytes)                                                         \
	X(mapped, NUMBER, x->mapped_bytes)                                                     \
	X(resident, NUMBER, x->resident_bytes)

/* What no number of JavaScript holds is damage. */
#define GETTER(table, member, column, value)                                                   \
	static int64_t table##_##column(struct as_page *p, size_t i)                           \
	{                                                                                      \
		const __typeof__(*p->m->heap.member.v) *x = &p->m->heap.member.v[i];           \
		(void)x; /* one has no use for it */                                           \
                                                                                               \
		return AS_MIN((int64_t)(value), (int64_t)AS_PAGE_ADDR_MAX - 1);                \
	}
#define X(column, type, value) GETTER(heap, rows, column, value)
HEAP(X)
#undef X
#define X(column, type, value) GETTER(heapTimes, times, column, value)
HEAP_TIMES(X)
#undef X

static int64_t heapMarks_moment(struct as_page *p, size_t i)
{
	return p->marks.rows.v[i].moment;
}

static int64_t heapMarks_row(struct as_page *p, size_t i)
{
	return p->marks.rows.v[i].row;
}

static int64_t heapMarks_bytes(struct as_page *p, size_t i)
{
	return (int64_t)AS_MIN(p->marks.rows.v[i].bytes, AS_PAGE_ADDR_MAX - 1);
}

/* Their table is the page's, not the model's. */
static const struct column mark_columns[] = {
	{"heapMarks.moment", NUMBER, 0, heapMarks_moment},
	{"heapMarks.row", NUMBER, 0, heapMarks_row},
	{"heapMarks.bytes", NUMBER, 0, heapMarks_bytes},
};

static const struct column heap_columns[] = {
#define X(column, type, value)                                                                 \
	{"heap." #column, type, offsetof(struct as_model, heap.rows.n), heap_##column},
	HEAP(X)
#undef X
#define X(column, type, value)                                                                 \
	{"heapTimes." #column, type, offsetof(struct as_model, heap.times.n),                  \
	 heapTimes_##column},
		HEAP_TIMES(X)
#undef X
};

static uint64_t zigzag(int64_t v)
{
	return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

static size_t uleb_bytes(uint64_t v)
{
	return v < 128 ? 1 : (size_t)(70 - __builtin_clzll(v)) / 7;
}

/* Whether differences are shorter than the numbers themselves. Samples of a damaged recording
 * may be older than its start: what is negative has only differences. */
static bool is_better_as_delta(struct as_page *p, const struct column *c, size_t n)
{
	uint64_t plain = 0, delta = 0;
	int64_t last = 0, least = c->type == INDEX ? -1 : 0;

	for (size_t i = 0; i < n; i++) {
		int64_t v = c->get(p, i);

		if (v < least)
			return true;
		plain += uleb_bytes((uint64_t)(v - least));
		delta += uleb_bytes(zigzag(v - last));
		last = v;
	}
	return delta < plain;
}

static const char *add_values(struct as_page *p, const struct column *c, size_t n)
{
	if (c->type == BYTES) {
		for (size_t i = 0; i < n; i++)
			as_buf_addc(&p->area, (char)c->get(p, i));
		return "u8";
	}
	if (is_better_as_delta(p, c, n)) {
		int64_t last = 0;

		for (size_t i = 0; i < n; i++) {
			int64_t v = c->get(p, i);

			as_buf_uleb(&p->area, zigzag(v - last));
			last = v;
		}
		return "delta";
	}
	for (size_t i = 0; i < n; i++)
		as_buf_uleb(&p->area, (uint64_t)(c->get(p, i) + (c->type == INDEX)));
	return "uleb";
}

static void add_column(struct as_page *p, const struct column *c, size_t n)
{
	size_t at = p->area.len;
	const char *code = add_values(p, c, n);

	as_json_obj(&p->j, c->name);
	as_json_u64(&p->j, "at", at);
	as_json_u64(&p->j, "n", n);
	as_json_u64(&p->j, "bytes", p->area.len - at);
	as_json_str(&p->j, "code", code);
	as_json_end(&p->j);
}

static int64_t end_function(struct as_page *p, size_t i)
{
	return index_or_none(p->m->end_function[i]);
}

static void add_columns(struct as_page *p, const struct column *v, size_t nv)
{
	for (size_t i = 0; i < nv; i++) {
		size_t n;

		memcpy(&n, (const char *)p->m + v[i].count_at, sizeof n);
		add_column(p, &v[i], n);
	}
}

void as_page_columns(struct as_page *p)
{
	static const struct column ends = {"endFunction", INDEX, 0, end_function};

	as_json_obj(&p->j, "columns");
	add_columns(p, columns, AS_ARRAY_LEN(columns));
	if (as_model_is_counted(p->m))
		add_columns(p, heap_columns, AS_ARRAY_LEN(heap_columns));
	for (size_t i = 0; as_model_is_counted(p->m) && i < AS_ARRAY_LEN(mark_columns); i++)
		add_column(p, &mark_columns[i], p->marks.rows.n);
	add_column(p, &ends, AS_END_COUNT_);
	as_json_end(&p->j);
}
