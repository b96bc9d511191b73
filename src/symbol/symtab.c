/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Collect, sort by (address, preference), merge equal names, bound the sizes; then binary search. */
#include "symbol/symtab_priv.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "symbol/demangle_priv.h"
#include "symbol/plt_priv.h"
#include "symbol/ranges.h"

/* More executable segments are not real either. */
#define MAX_EXEC   64
/* Ranges that nest deeper than this are not real: the walk back ends there. */
#define MAX_NESTED 64

struct entry {
	uint64_t start, end; /* end == start: not yet bounded, or exact match only */
	uint64_t max_end;    /* largest end of this and all earlier entries */
	const char *name;
	uint32_t aliases; /* entries that follow with the same start */
	uint8_t rank;     /* smaller is preferred */
	uint8_t source;
	bool sized;
	bool local_label; /* untyped and local, where no extent begins */
};

struct exec_range {
	uint64_t start, end;
};

struct as_symtab {
	AS_VEC(struct entry) e; /* sorted by start; the chosen name of each start comes first */
	AS_VEC(struct exec_range) exec; /* segments */
	AS_VEC(struct exec_range) code; /* executable sections; empty: not known */
	bool locals; /* the tables have local functions: what they leave out is none */
	struct as_extent *ext;
	size_t next, distinct;
	AS_VEC(uint32_t) cold; /* entries whose name has ".cold", once they are asked for */
	bool cold_tried;
	const char *module;
	struct as_arena arena;
};

static const struct as_extent *find_extent(const struct as_symtab *t, uint64_t svma)
{
	size_t lo = 0, hi = t->next;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->ext[mid].start_svma <= svma)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && svma < t->ext[lo - 1].end_svma ? &t->ext[lo - 1] : NULL;
}

/* The end of the section with code that holds svma; 0: none. */
static uint64_t code_end(const struct as_symtab *t, uint64_t svma)
{
	as_vec_foreach (r, &t->code) {
		if (svma >= r->start && svma < r->end)
			return r->end;
	}
	return 0;
}

static uint64_t exec_end(const struct as_symtab *t, uint64_t svma)
{
	as_vec_foreach (r, &t->exec) {
		if (svma >= r->start && svma < r->end)
			return r->end;
	}
	return 0;
}

static void on_symbol(void *ctx, const struct as_elf_symbol *s)
{
	struct as_symtab *t = ctx;
	uint64_t limit = exec_end(t, s->svma);
	struct entry e = {.start = s->svma, .end = s->svma, .name = s->name};

	if (!limit)
		return;
	if (!s->func) {
		/* a label is a function where the unwind tables say that one begins, and where
		 * they say nothing about a section of code: assembly without types */
		const struct as_extent *x = find_extent(t, s->svma);

		if (!s->untyped || (x ? x->start_svma != s->svma : !code_end(t, s->svma)))
			return;
		e.local_label = !x && !s->global && !s->weak;
	}
	t->locals |= !s->dynamic && !s->global && !s->weak;
	e.sized = s->size_bytes > 0;
	e.end += AS_MIN(s->size_bytes, limit - s->svma);
	e.rank = (uint8_t)(!s->func << 3 | s->ifunc << 2 | (s->global ? 0 : s->weak ? 1 : 2));
	e.source = s->mini ? AS_SYM_MINIDEBUG : s->dynamic ? AS_SYM_DYNSYM : AS_SYM_SYMTAB;
	as_vec_push(&t->e, e);
}

static void on_plt_entry(void *ctx, uint64_t svma, uint64_t size_bytes, const char *name)
{
	struct as_symtab *t = ctx;
	uint64_t limit = exec_end(t, svma);

	if (limit)
		as_vec_push(&t->e,
			    (struct entry){.start = svma,
					   .end = svma + AS_MIN(size_bytes, limit - svma),
					   .name = name,
					   .sized = true,
					   .source = AS_SYM_DYNSYM});
}

static int compare(const void *pa, const void *pb)
{
	const struct entry *a = pa, *b = pb;
	size_t la, lb;
	int r;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	la = strlen(a->name);
	lb = strlen(b->name);
	if (la != lb)
		return la < lb ? -1 : 1;
	r = strcmp(a->name, b->name);
	if (r)
		return r;
	if (a->source != b->source)
		return a->source < b->source ? -1 : 1;
	return a->end < b->end ? 1 : a->end > b->end ? -1 : 0;
}

/* Is name already among the entries v[0..n) of one address? Their number is small in practice;
 * a hostile table only gets its aliases counted too high. */
static bool known(const struct entry *v, size_t n, const char *name)
{
	for (size_t i = 0; i < n && i < MAX_NESTED; i++) {
		if (strcmp(v[i].name, name) == 0)
			return true;
	}
	return false;
}

static void merge(struct as_symtab *t)
{
	size_t out = 0;

	if (t->e.n)
		qsort(t->e.v, t->e.n, sizeof *t->e.v, compare);
	for (size_t i = 0, j; i < t->e.n; i = j) {
		size_t first = out;
		uint64_t end = 0;
		bool sized = false;

		for (j = i; j < t->e.n && t->e.v[j].start == t->e.v[i].start; j++) {
			end = AS_MAX(end, t->e.v[j].end);
			sized |= t->e.v[j].sized;
			if (!known(&t->e.v[first], out - first, t->e.v[j].name))
				t->e.v[out++] = t->e.v[j];
		}
		for (size_t k = first; k < out; k++) {
			t->e.v[k].end = end;
			t->e.v[k].sized = sized;
			t->e.v[k].aliases = (uint32_t)(out - 1 - k);
		}
		t->distinct++;
	}
	t->e.n = out;
}

/* The entry that starts last among those that cover svma; NULL when none does. */
static struct entry *cover(const struct as_symtab *t, uint64_t svma)
{
	size_t lo = 0, hi = t->e.n;
	int steps = 0;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->e.v[mid].start <= svma)
			lo = mid + 1;
		else
			hi = mid;
	}
	while (lo && t->e.v[lo - 1].max_end >= svma && steps++ < MAX_NESTED) {
		struct entry *e = &t->e.v[lo - 1];

		while (e > t->e.v && e[-1].start == e->start)
			e--;
		if (svma < e->end || svma == e->start)
			return e;
		lo = (size_t)(e - t->e.v);
	}
	return NULL;
}

/* How far the code that begins at svma may go at most, as far as other things than symbols tell. */
static uint64_t span_end(const struct as_symtab *t, uint64_t svma)
{
	const struct as_extent *x = find_extent(t, svma);
	uint64_t end = code_end(t, svma);
	size_t lo = 0, hi = t->next;

	if (x)
		return x->end_svma;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->ext[mid].start_svma <= svma)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < t->next ? AS_MIN(end, t->ext[lo].start_svma) : end;
}

/*
 * Takes away what lies inside functions: symbols without a size that one with a size covers, and
 * local labels behind a function without a size.
 */
static void drop_labels(struct as_symtab *t)
{
	uint64_t sized_end = 0, open_end = 0;
	size_t out = 0;

	for (size_t i = 0, j; i < t->e.n; i = j) {
		struct entry *e = &t->e.v[i];
		uint64_t start = e->start;

		/* the first of each address is the one that is shown */
		for (j = i + 1; j < t->e.n && t->e.v[j].start == start;)
			j++;
		if (!e->sized && (start < sized_end || (e->local_label && start < open_end)))
			continue;
		if (e->sized)
			sized_end = AS_MAX(sized_end, e->end);
		if (!e->local_label)
			open_end = e->sized ? e->end : span_end(t, start);
		for (size_t k = i; k < j; k++)
			t->e.v[out++] = t->e.v[k];
	}
	t->e.n = out;
}

/*
 * Gives size-less symbols the rest of their extent, or, where there is none and the tables have
 * all functions, what is left up to the next one.
 */
static void bound(struct as_symtab *t)
{
	uint64_t max = 0, next = UINT64_MAX;

	drop_labels(t);
	for (size_t i = t->e.n; i-- > 0;) {
		struct entry *e = &t->e.v[i];

		if (i + 1 < t->e.n && t->e.v[i + 1].start != e->start)
			next = t->e.v[i + 1].start;
		if (!e->sized && (t->locals || find_extent(t, e->start)))
			e->end = AS_MAX(e->start, AS_MIN(next, span_end(t, e->start)));
	}
	as_vec_foreach (e, &t->e) {
		max = AS_MAX(max, e->end);
		e->max_end = max;
	}
}

static void add_ranges(struct as_symtab *t, const struct as_elf *elf)
{
	const struct as_elf_segment *seg;
	const struct as_elf_section *sec;
	size_t n;

	seg = as_elf_segments(elf, &n);
	for (size_t i = 0; i < n; i++) {
		if (seg[i].exec && t->exec.n < MAX_EXEC)
			as_vec_push(&t->exec, (struct exec_range){seg[i].svma,
								  seg[i].svma + seg[i].memsz});
	}
	sec = as_elf_sections(elf, &n);
	for (size_t i = 0; i < n; i++) {
		if (sec[i].flags & SHF_EXECINSTR && t->code.n < MAX_EXEC &&
		    sec[i].size_bytes <= UINT64_MAX - sec[i].svma)
			as_vec_push(&t->code,
				    (struct exec_range){sec[i].svma,
							sec[i].svma + sec[i].size_bytes});
	}
}

int as_symtab_build(const struct as_symtab_spec *spec, struct as_symtab **ret,
		    struct as_error *err)
{
	struct as_symtab *t = as_xcalloc(1, sizeof *t);

	(void)err; /* nothing fails today: damage costs symbols */
	t->module = as_arena_strdup(&t->arena, spec->module ? spec->module : "?");
	add_ranges(t, spec->elf);
	t->next = spec->nextents;
	t->ext = as_xreallocarray(NULL, t->next + 1, sizeof *t->ext);
	if (t->next)
		memcpy(t->ext, spec->extents, t->next * sizeof *t->ext);
	(void)as_elf_each_symbol(spec->elf, on_symbol, t, NULL);
	as_plt_each(spec->elf, &t->arena, on_plt_entry, t);
	if (spec->debug)
		(void)as_elf_each_symbol(spec->debug, on_symbol, t, NULL);
	merge(t);
	bound(t);
	*ret = t;
	return AS_OK;
}

void as_symtab_free(struct as_symtab *t)
{
	if (!t)
		return;
	as_vec_clear(&t->e);
	as_vec_clear(&t->exec);
	as_vec_clear(&t->code);
	as_vec_clear(&t->cold);
	free(t->ext);
	as_arena_clear(&t->arena);
	free(t);
}

bool as_symtab_find(struct as_symtab *t, uint64_t svma, struct as_symtab_hit *ret)
{
	const struct entry *e = cover(t, svma);
	const struct as_extent *x;
	char name[32];
	size_t n;
	char *p;

	if (e) {
		*ret = (struct as_symtab_hit){.name = e->name,
					      .start = e->start,
					      .size_bytes = e->end - e->start,
					      .aliases = e->aliases,
					      .source = (enum as_symsource)e->source};
		(void)as_linkage_stem(e->name, &ret->cold);
		return true;
	}
	x = find_extent(t, svma);
	if (!x)
		return false;
	n = (size_t)snprintf(name, sizeof name, "+0x%" PRIx64, x->start_svma);
	p = as_arena_alloc(&t->arena, strlen(t->module) + n + 1);
	memcpy(p, t->module, strlen(t->module));
	memcpy(p + strlen(t->module), name, n + 1);
	*ret = (struct as_symtab_hit){.name = p,
				      .start = x->start_svma,
				      .size_bytes = x->end_svma - x->start_svma,
				      .source = AS_SYM_EXTENT,
				      .synthetic = true};
	return true;
}

/* Local names of C may be there twice; mangled ones carry a hash, a path or types. */
static bool may_repeat(const struct entry *e)
{
	return (e->rank & 3) == 2 && strncmp(e->name, "_Z", 2) != 0 &&
	       strncmp(e->name, "_R", 2) != 0;
}

static void find_cold(struct as_symtab *t)
{
	t->cold_tried = true;
	for (uint32_t i = 0; i < t->e.n; i++) {
		if (strstr(t->e.v[i].name, ".cold"))
			as_vec_push(&t->cold, i);
	}
}

/* The one function of that name, without a suffix; NULL: none, or several. */
static const struct entry *only_named(const struct as_symtab *t, const char *name, size_t stem)
{
	const struct entry *found = NULL;

	as_vec_foreach (e, &t->e) {
		if (strncmp(e->name, name, stem) != 0 || e->name[stem])
			continue;
		if (found && found->start != e->start)
			return NULL;
		found = e;
	}
	return found;
}

size_t as_symtab_other_parts(struct as_symtab *t, const struct as_symtab_hit *hit,
			     struct as_sympart *ret, size_t max)
{
	const char *cold = hit->cold ? strstr(hit->name, ".cold") : NULL;
	size_t stem = cold ? (size_t)(cold - hit->name) : strlen(hit->name), n = 0;
	const struct entry *hot = cover(t, hit->start);
	bool checked = hot && !cold && !may_repeat(hot);

	if (!t->cold_tried)
		find_cold(t);
	if (!stem)
		return 0;
	if (cold) {
		hot = only_named(t, hit->name, stem);
		if (!hot)
			return 0;
		checked = true;
		if (n < max && hot->end > hot->start)
			ret[n++] = (struct as_sympart){hot->start, hot->end};
	}
	for (size_t i = 0; i < t->cold.n && n < max; i++) {
		const struct entry *e = &t->e.v[t->cold.v[i]];

		if (e->start == hit->start || e->end <= e->start ||
		    strncmp(e->name, hit->name, stem) != 0 ||
		    strncmp(e->name + stem, ".cold", 5) != 0)
			continue;
		if (!checked && !only_named(t, hit->name, stem))
			return 0;
		checked = true;
		ret[n++] = (struct as_sympart){e->start, e->end};
	}
	return n;
}

void as_symtab_each_alias(const struct as_symtab *t, uint64_t start_svma,
			  void (*fn)(void *ctx, const char *name), void *ctx)
{
	const struct entry *e = cover(t, start_svma);

	if (!e || e->start != start_svma)
		return;
	for (uint32_t i = 0, n = e->aliases; i <= n; i++)
		fn(ctx, e[i].name);
}

size_t as_symtab_count(const struct as_symtab *t)
{
	return t->distinct;
}
