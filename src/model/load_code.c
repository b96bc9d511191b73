/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Records about the text of hot functions -> columns. Sizes and ids are checked here once. */
#include "model/model_priv.h"

#include <stdlib.h>
#include <string.h>

#define MAX_CHAIN 512 /* places of one range */

int as_load_source(void *ctx, const struct as_rec_source *r)
{
	struct as_loader *l = ctx;
	struct as_m_source s = {
		.file = as_loader_string(l, r->file),
		.found = as_loader_string(l, r->found),
		.first = (uint32_t)r->first,
		.total = (uint32_t)AS_MIN(r->total, UINT32_MAX),
		.size_bytes = r->text.n,
	};

	/* a line takes a byte at least, so that no number of a line goes over */
	if (!r->first || r->first >= UINT32_MAX - r->text.n || !s.file[0])
		return as_loader_damaged(l);
	s.text = as_arena_strndup(&l->m->arena, r->text.p, r->text.n);
	as_vec_push(&l->m->sources, s);
	return as_loader_charge(l, sizeof s + r->text.n);
}

int as_load_code(void *ctx, const struct as_rec_code *r)
{
	struct as_loader *l = ctx;
	struct as_m_code c = {
		.module = (uint32_t)r->module - 1,
		.function = r->function && r->function <= l->m->functions.n
				    ? (uint32_t)r->function - 1
				    : AS_NONE,
		.svma = r->svma,
		.size_bytes = (uint32_t)r->bytes.n,
		.arch = r->machine <= AS_ARCH_AARCH64 ? (enum as_arch)r->machine : AS_ARCH_NONE,
	};
	void *bytes;

	if (!r->module || r->module > l->m->modules.n || !r->bytes.n ||
	    r->bytes.n > UINT32_MAX || r->svma > UINT64_MAX - r->bytes.n)
		return as_loader_damaged(l);
	bytes = as_arena_alloc(&l->m->arena, r->bytes.n);
	memcpy(bytes, r->bytes.p, r->bytes.n);
	c.bytes = bytes;
	as_vec_push(&l->m->codes, c);
	return as_loader_charge(l, sizeof c + r->bytes.n);
}

/* Four numbers of a place; false: it refers to nothing. */
static bool add_place(struct as_loader *l, const uint64_t v[4])
{
	struct as_model *m = l->m;
	uint64_t flags = v[3] >> 32;

	if (v[0] >= m->functions.n)
		return false;
	as_vec_push(&m->code_places,
		    (struct as_m_place){.function = (uint32_t)v[0],
					.file = as_loader_string(l, v[1]),
					.line = (uint32_t)AS_MIN(v[2], UINT32_MAX),
					.column = (uint32_t)v[3],
					.inlined = flags & 1,
					.line_from_call = (flags & 2) != 0});
	return true;
}

static bool add_range(struct as_loader *l, const uint64_t **v, const uint64_t *end,
		      struct as_m_code_range *r)
{
	struct as_model *m = l->m;
	uint64_t size, n;

	if (end - *v < 2)
		return false;
	size = (*v)[0];
	n = (*v)[1];
	*v += 2;
	if (!size || size > UINT32_MAX || r->svma > UINT64_MAX - size || n > MAX_CHAIN ||
	    n * 4 > (uint64_t)(end - *v) || m->code_places.n + n >= AS_NONE)
		return false;
	r->size_bytes = (uint32_t)size;
	r->place = (uint32_t)m->code_places.n;
	for (uint64_t i = 0; i < n; i++, *v += 4) {
		if (!add_place(l, *v))
			m->damaged++;
	}
	r->nplaces = (uint32_t)(m->code_places.n - r->place);
	as_vec_push(&m->code_ranges, *r);
	return true;
}

int as_load_code_lines(void *ctx, const struct as_rec_code_lines *r)
{
	struct as_loader *l = ctx;
	struct as_m_code_range range = {.module = (uint32_t)r->module - 1, .svma = r->svma};
	const uint64_t *v = r->ranges.v, *end = v + r->ranges.n;
	size_t places = l->m->code_places.n, ranges = l->m->code_ranges.n;

	if (!r->module || r->module > l->m->modules.n)
		return as_loader_damaged(l);
	while (v < end) {
		if (!add_range(l, &v, end, &range))
			return as_loader_damaged(l);
		range.svma += range.size_bytes;
	}
	return as_loader_charge(l, (l->m->code_places.n - places) * sizeof(struct as_m_place) +
					   (l->m->code_ranges.n - ranges) * sizeof range);
}

int as_load_code_names(void *ctx, const struct as_rec_code_names *r)
{
	struct as_loader *l = ctx;
	size_t before = l->m->code_names.n;

	if (!r->module || r->module > l->m->modules.n)
		return as_loader_damaged(l);
	for (size_t i = 0; i + 2 <= r->names.n; i += 2)
		as_vec_push(&l->m->code_names,
			    (struct as_m_code_name){(uint32_t)r->module - 1, r->names.v[i],
						    as_loader_string(l, r->names.v[i + 1])});
	return as_loader_charge(l,
				(l->m->code_names.n - before) * sizeof(struct as_m_code_name));
}

/* ---- order ---- */

static int by_place(uint32_t ma, uint64_t a, uint32_t mb, uint64_t b)
{
	if (ma != mb)
		return ma < mb ? -1 : 1;
	return a < b ? -1 : a > b;
}

static int compare_codes(const void *x, const void *y)
{
	const struct as_m_code *a = x, *b = y;

	return by_place(a->module, a->svma, b->module, b->svma);
}

static int compare_ranges(const void *x, const void *y)
{
	const struct as_m_code_range *a = x, *b = y;

	return by_place(a->module, a->svma, b->module, b->svma);
}

static int compare_names(const void *x, const void *y)
{
	const struct as_m_code_name *a = x, *b = y;

	return by_place(a->module, a->svma, b->module, b->svma);
}

static int compare_sources(const void *x, const void *y)
{
	const struct as_m_source *a = x, *b = y;
	int c = strcmp(a->file, b->file);

	return c ? c : a->first < b->first ? -1 : a->first > b->first;
}

/* Leaves out what begins before the one before it ends: damage, or written twice. */
#define DROP_OVERLAPS(vec)                                                                     \
	do {                                                                                   \
		size_t kept = 0;                                                               \
                                                                                               \
		for (size_t i = 0; i < (vec)->n; i++) {                                        \
			if (kept && (vec)->v[kept - 1].module == (vec)->v[i].module &&         \
			    (vec)->v[i].svma - (vec)->v[kept - 1].svma <                       \
				    (vec)->v[kept - 1].size_bytes)                             \
				continue;                                                      \
			(vec)->v[kept++] = (vec)->v[i];                                        \
		}                                                                              \
		(vec)->n = kept;                                                               \
	} while (0)

#define SORT(vec, compare)                                                                     \
	do {                                                                                   \
		if ((vec)->n)                                                                  \
			qsort((vec)->v, (vec)->n, sizeof *(vec)->v, compare);                  \
	} while (0)

void as_model_order_code(struct as_model *m)
{
	SORT(&m->codes, compare_codes);
	SORT(&m->code_ranges, compare_ranges);
	SORT(&m->code_names, compare_names);
	SORT(&m->sources, compare_sources);
	DROP_OVERLAPS(&m->codes);
	DROP_OVERLAPS(&m->code_ranges);
}
