/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Which instructions of a large function a page shows: those near what was sampled. Functions of
 * 100,000 instructions exist (instruction selectors, interpreters), and a listing of one would be
 * as large as all other data.
 */
#include "view/page/page_priv.h"

#include <stdlib.h>
#include <string.h>

enum { ENTRY = 16, WIDEST = 64, NARROWEST = 4 };

/* The instruction that svma lies in; n: none. */
static size_t insn_at(const struct as_listing *l, uint64_t svma)
{
	size_t lo = 0, hi = l->insns.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (l->insns.v[mid].svma <= svma)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || svma - l->insns.v[lo - 1].svma >= AS_MAX(l->insns.v[lo - 1].len, 1))
		return l->insns.n;
	return lo - 1;
}

/* Instructions that frames stand for: every frame of a model was sampled. */
static void mark_sampled(const struct as_model *m, const struct as_listing *l, uint8_t *sampled)
{
	as_vec_foreach (f, &m->frames) {
		if (f->module != l->module || f->module == AS_NONE)
			continue;

		size_t i = insn_at(l, f->addr - !(f->flags & AS_FRAME_EXACT));

		if (i < l->insns.n)
			sampled[i] = 1;
	}
}

/* Keeps `window` instructions on both sides of each sampled one; stops at max. */
static size_t keep_around(const uint8_t *sampled, size_t n, size_t window, size_t max,
			  uint8_t *keep)
{
	size_t kept = 0, end = AS_MIN(n, (size_t)ENTRY);

	memset(keep, 0, n);
	memset(keep, 1, end);
	kept = end;
	for (size_t i = 0; i < n && kept < max; i++) {
		if (!sampled[i])
			continue;

		size_t from = AS_MAX(i > window ? i - window : 0, end);

		end = AS_MAX(AS_MIN(i + window + 1, n), end);
		for (size_t k = from; k < end && kept < max; k++, kept++)
			keep[k] = 1;
	}
	return kept;
}

size_t as_page_pick(const struct as_model *m, const struct as_listing *l, size_t max,
		    uint8_t *keep)
{
	size_t n = l->insns.n, kept = n;

	if (n <= max) {
		memset(keep, 1, n);
		return n;
	}

	AS_CLEANUP(as_free_autop) uint8_t *sampled = as_xcalloc(n, 1);

	mark_sampled(m, l, sampled);
	for (size_t window = WIDEST; window >= NARROWEST; window /= 2) {
		kept = keep_around(sampled, n, window, max, keep);
		if (kept < max)
			break;
	}
	return kept;
}
