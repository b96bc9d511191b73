/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A region's bytes -> instructions with the places they stand for. */
#include "view/listing/listing_priv.h"

#include <string.h>

struct naming {
	struct as_listing_build *b;
	const char *target; /* name that was given for the code target in work */
};

/* Jumps inside the function show addresses: the reader has those before him. */
static const char *name_of(void *ctx, uint64_t svma, bool code, uint64_t *ret_off)
{
	struct naming *n = ctx;
	const char *name;

	as_vec_foreach (p, &n->b->parts) {
		if (svma > p->lo && svma < p->hi)
			return NULL;
	}
	name = n->b->name_of ? n->b->name_of(n->b, svma, code, ret_off) : NULL;
	if (code)
		n->target = name;
	return name;
}

static void add_insn(struct as_listing_build *b, const struct as_insn *i, const char *target,
		     const struct as_listing_range *range)
{
	as_vec_push(&b->l->insns, (struct as_listing_insn){
					  .svma = i->svma,
					  .target = i->target,
					  .text = as_arena_strdup(&b->l->arena, i->text),
					  .target_name = target,
					  .place = range ? range->place : 0,
					  .nplaces = range ? range->nplaces : 0,
					  .len = i->len,
					  .kind = i->kind,
				  });
}

void as_listing_add_region(struct as_listing_build *b, const struct as_listing_region *r)
{
	struct naming n = {.b = b};
	struct as_disasm *d = as_disasm_new(r->arch, name_of, &n);
	const char *missing = as_disasm_missing(r->arch);
	size_t range = 0;

	if (missing)
		as_listing_note(b, "%s", missing);
	for (size_t at = 0; at < r->n;) {
		uint64_t svma = r->lo + at;
		const struct as_listing_range *in;
		struct as_insn insn;

		while (range < r->ranges.n && r->ranges.v[range].hi <= svma)
			range++;
		in = range < r->ranges.n ? &r->ranges.v[range] : NULL;
		n.target = NULL;
		if (r->whole || (in && in->wanted)) {
			as_disasm_next(d, r->bytes + at, r->n - at, svma, &insn);
			add_insn(b, &insn, n.target, in);
		} else {
			as_disasm_skim(d, r->bytes + at, r->n - at, svma, &insn);
		}
		at += insn.len;
	}
	as_disasm_free(d);
}
