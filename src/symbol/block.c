/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Look-ups in one decoded or cached unit: see block_priv.h. */
#include "symbol/block_priv.h"

#include <stdlib.h>

#include "symbol/dwarf_priv.h"

void as_block_free(struct as_block *b)
{
	if (!b)
		return;
	if (b->dw) {
		free(b->seg);
		free(b->node);
		free(b->row);
		free(b->func);
	}
	free(b->root);
	free(b);
}

uint32_t as_block_find_seg(const struct as_block *b, uint32_t rel)
{
	size_t lo = 0, hi = b->nseg;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (b->seg[mid].lo <= rel)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? (uint32_t)lo - 1 : AS_BLOCK_NONE;
}

uint32_t as_block_find_row(const struct as_block *b, uint32_t rel)
{
	size_t lo = 0, hi = b->nrow;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (b->row[mid].lo <= rel)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? (uint32_t)lo - 1 : AS_BLOCK_NONE;
}

static const char *pooled(const struct as_block *b, uint32_t off)
{
	return off && off < b->npool ? b->pool + off : NULL;
}

bool as_block_get_func(struct as_block *b, uint32_t func, struct as_block_func *ret)
{
	func &= ~AS_BLOCK_INLINED;
	if (func >= b->nfunc)
		return false;
	if (!b->dw) {
		const struct as_block_disk_func *d = &b->disk_func[func];

		*ret = (struct as_block_func){
			.linkage = pooled(b, d->linkage),
			.name = pooled(b, d->name),
			.decl_file = pooled(b, d->decl_file),
			.generic = pooled(b, d->generic),
			.decl_line = d->decl_line,
			.resolved = true,
		};
		return true;
	}
	if (!b->func[func].resolved)
		as_dw_func_resolve(b->dw, b->func[func].ref, &b->func[func]);
	*ret = b->func[func];
	return true;
}

const char *as_block_path(struct as_block *b, uint32_t file)
{
	if (file == AS_BLOCK_NO_FILE || file >= b->nfile)
		return NULL;
	if (!b->dw)
		return pooled(b, b->disk_path[file]);
	return b->lines ? as_dw_line_path(b->dw, b->lines, file) : NULL;
}

size_t as_symrange_find(const struct as_symrange *range, size_t n, uint32_t rel, uint32_t *ret,
			size_t max)
{
	size_t lo = 0, hi = n, found = 0;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (range[mid].lo <= rel)
			lo = mid + 1;
		else
			hi = mid;
	}
	while (lo-- && range[lo].max_hi > rel && found < max) {
		uint32_t unit = range[lo].unit;
		size_t i = found;

		if (range[lo].hi <= rel)
			continue;
		for (; i && ret[i - 1] > unit; i--)
			;
		if (i && ret[i - 1] == unit)
			continue;
		memmove(ret + i + 1, ret + i, (found - i) * sizeof *ret);
		ret[i] = unit;
		found++;
	}
	return found;
}
