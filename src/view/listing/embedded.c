/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Code that the recording has kept: CODE, CODE_LINES and CODE_NAMES records. */
#include "view/listing/listing_priv.h"

#include <stdlib.h>

/* Index of the first element of a column that stands behind (module, svma). */
#define UPPER(vec, module_, svma_)                                                             \
	({                                                                                     \
		size_t lo = 0, hi = (vec)->n;                                                  \
                                                                                               \
		while (lo < hi) {                                                              \
			size_t mid = lo + (hi - lo) / 2;                                       \
			__typeof__((vec)->v) at = (vec)->v + mid;                              \
                                                                                               \
			if (at->module < (module_) ||                                          \
			    (at->module == (module_) && at->svma <= (svma_)))                  \
				lo = mid + 1;                                                  \
			else                                                                   \
				hi = mid;                                                      \
		}                                                                              \
		lo;                                                                            \
	})

static const char *recorded_name(struct as_listing_build *b, uint64_t svma, bool code,
				 uint64_t *ret_off)
{
	const struct as_model *m = b->m;
	size_t i = UPPER(&m->code_names, b->l->module, svma);
	const struct as_m_code_name *n = i ? &m->code_names.v[i - 1] : NULL;

	(void)code;
	if (!n || n->module != b->l->module || n->svma != svma || !n->name[0])
		return NULL;
	*ret_off = 0;
	return n->name;
}

static const struct as_m_code *code_at(const struct as_model *m, uint32_t module, uint64_t svma)
{
	size_t i = UPPER(&m->codes, module, svma);
	const struct as_m_code *c = i ? &m->codes.v[i - 1] : NULL;

	return c && c->module == module && svma - c->svma < c->size_bytes ? c : NULL;
}

static void add_ranges(struct as_listing_build *b, const struct as_m_code *c,
		       struct as_listing_region *region)
{
	const struct as_model *m = b->m;
	struct as_listing *l = b->l;
	size_t i = UPPER(&m->code_ranges, c->module, c->svma);

	for (i = i ? i - 1 : 0; i < m->code_ranges.n; i++) {
		const struct as_m_code_range *from = &m->code_ranges.v[i];
		struct as_listing_range r = {.hi = from->svma + from->size_bytes,
					     .place = (uint32_t)l->places.n,
					     .nplaces = from->nplaces,
					     .wanted = region->whole};

		if (from->module != c->module || from->svma >= c->svma + c->size_bytes)
			break;
		if (r.hi <= c->svma)
			continue;
		/* what lies between ranges is of no known place */
		if (from->svma >
		    (region->ranges.n ? region->ranges.v[region->ranges.n - 1].hi : c->svma))
			as_vec_push(&region->ranges,
				    (struct as_listing_range){.hi = from->svma,
							      .wanted = region->whole});
		for (uint32_t k = 0; k < from->nplaces; k++) {
			const struct as_m_place *p = &m->code_places.v[from->place + k];

			r.wanted |= p->function == b->q->function;
			as_vec_push(&l->places,
				    (struct as_listing_place){
					    .function = m->functions.v[p->function].brief,
					    .key = p->function,
					    .file = p->file[0] ? p->file : NULL,
					    .line = p->line,
					    .column = p->column,
					    .inlined = p->inlined,
				    });
		}
		as_vec_push(&region->ranges, r);
	}
}

static void add_code(struct as_listing_build *b, const struct as_m_code *c, bool whole)
{
	struct as_listing_region region = {
		.whole = whole,
		.arch = c->arch,
		.lo = c->svma,
		.bytes = c->bytes,
		.n = c->size_bytes,
	};

	if (!as_listing_claim(b, c->svma, c->svma + c->size_bytes))
		return;
	add_ranges(b, c, &region);
	as_listing_add_region(b, &region);
	as_vec_clear(&region.ranges);
}

void as_listing_embedded(struct as_listing_build *b)
{
	const struct as_model *m = b->m;

	b->name_of = recorded_name;
	as_vec_foreach (s, &b->spots) {
		const struct as_m_code *c = s->done ? NULL : code_at(m, b->l->module, s->svma);

		if (!c)
			continue;
		s->done = true; /* also when there is no room for it */
		add_code(b, c, s->whole);
		/* cold parts have no samples, or they would have a spot */
		as_vec_foreach (other, &m->codes) {
			if (other != c && other->module == c->module &&
			    other->function == c->function && c->function != AS_NONE)
				add_code(b, other, s->whole);
		}
	}
	b->name_of = NULL;
}
