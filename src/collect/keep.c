/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The text of hot functions into the session, so that a listing needs neither the program nor its
 * sources. Chosen by samples: first functions with samples in their own code (inlined bodies
 * included), then those that call hot ones. Everything has a budget; what does not fit is found
 * later in the files, where those are still there.
 *
 * Large functions are kept around their hot places only.
 */
#include "collect/resolve_priv.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "code/disasm.h"
#include "collect/keep_priv.h"
#include "symbol/ranges.h"

#define MIN_SHARE        200 /* one in: 0.5 % */
#define MAX_FUNCTIONS    64  /* with samples of their own */
#define MAX_CALLERS      32  /* further ones, hot by what they call */
#define MAX_CODE         (256u << 10)
#define MAX_CALLERS_CODE (128u << 10)
#define WHOLE            (24u << 10)  /* parts up to this size are kept whole */
#define WINDOW           (1u << 10)   /* else this much before and after a hot place */
#define MAX_SKIM         (512u << 10) /* bytes, about 5 ms */
#define MAX_LINES        60000        /* numbers of one CODE_LINES record */
#define MAX_OWN_LINES    1500         /* longer functions: around their hot lines only */
#define OWN_CONTEXT      10
#define INLINED_CONTEXT  5

struct point {                   /* a recorded place of the module in work */
	uint64_t svma, function; /* function: its entry */
	uint32_t self, total;
};

struct candidate {
	uint64_t function;
	uint64_t self, total;
	size_t first, n; /* of points, sorted by function */
};

struct as_keep {
	uint32_t *totals; /* samples at or below a place, by place */
	AS_VEC(struct point) points;
	struct as_keep_sources *sources; /* NULL: not wanted */
	struct as_map64 names;           /* svma of what code leads to, of the module in work */
	AS_VEC(uint64_t) numbers;
	size_t functions, callers, code_bytes, callers_bytes;
	size_t skimmed; /* bytes stepped over to reach hot places */
};

/* ---- heat ---- */

/* Samples at or below each place, by summing the stack tree from its leaves; recursion counts more
 * than once, which only makes a function look hotter. */
static uint32_t *sum_totals(const struct as_recorder *r)
{
	uint32_t *total = as_xcalloc(r->places.n + 1, sizeof *total);
	uint64_t *sum = as_xcalloc(r->nodes.n + 1, sizeof *sum);

	for (size_t i = r->nodes.n; i-- > 0;) {
		const struct as_rec_node *n = &r->nodes.v[i];
		uint64_t here = sum[i] + n->samples;

		if (n->parent)
			sum[n->parent - 1] += here;
		if (n->place < r->places.n)
			total[n->place] = (uint32_t)AS_MIN(total[n->place] + here, r->samples);
	}
	free(sum);
	return total;
}

struct as_keep *as_keep_new(const struct as_recorder *r, const struct as_resolve_options *o)
{
	struct as_keep *k = as_xcalloc(1, sizeof *k);

	k->totals = sum_totals(r);
	if (!o->no_source)
		k->sources = as_keep_sources_new(o->source_dirs);
	return k;
}

void as_keep_note(struct as_resolver *v, size_t index, uint64_t svma,
		  const struct as_symchain *chain)
{
	struct as_keep *k = v->keep;
	uint32_t place = v->places[index];

	if (!chain->n || !k->totals[place])
		return;
	as_vec_push(&k->points,
		    (struct point){svma, chain->frames[chain->n - 1].func_svma,
				   v->r->places.v[place].samples, k->totals[place]});
}

static int by_function(const void *x, const void *y)
{
	const struct point *a = x, *b = y;

	if (a->function != b->function)
		return a->function < b->function ? -1 : 1;
	return a->svma < b->svma ? -1 : a->svma > b->svma;
}

static int by_heat(const void *x, const void *y)
{
	const struct candidate *a = x, *b = y;

	if (a->self != b->self)
		return a->self > b->self ? -1 : 1;
	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	return a->function < b->function ? -1 : a->function > b->function;
}

typedef AS_VEC(struct candidate) candidate_vec;

static void find_candidates(struct as_keep *k, uint64_t samples, candidate_vec *ret)
{
	if (k->points.n)
		qsort(k->points.v, k->points.n, sizeof *k->points.v, by_function);
	for (size_t from = 0, to; from < k->points.n; from = to) {
		struct candidate c = {.function = k->points.v[from].function, .first = from};

		for (to = from; to < k->points.n && k->points.v[to].function == c.function;
		     to++) {
			c.self += k->points.v[to].self;
			c.total += k->points.v[to].total;
		}
		c.n = to - from;
		if (c.self * MIN_SHARE < samples)
			c.self = 0; /* hot by what it calls, if at all */
		if (c.self || c.total * MIN_SHARE >= samples)
			as_vec_push(ret, c);
	}
	if (ret->n)
		qsort(ret->v, ret->n, sizeof *ret->v, by_heat);
}

/* ---- code ---- */

struct part {
	struct as_resolver *v;
	struct as_symmod *sym;
	const struct candidate *c;
	uint64_t lo, hi;   /* what is kept of it */
	uint64_t record;   /* svma of the first number that is not written yet */
	uint64_t function; /* id + 1; 0 until a chain has told it */
	const char *own_file;
	uint32_t own_lo, own_hi; /* lines of the function itself; 0: none */
};

static void flush_lines(struct part *p)
{
	struct as_keep *k = p->v->keep;

	if (k->numbers.n)
		as_write_code_lines(
			p->v->r->w,
			&(struct as_rec_code_lines){.module = p->v->module + 1u,
						    .svma = p->record,
						    .ranges = {k->numbers.v, k->numbers.n}});
	k->numbers.n = 0;
}

/* Samples with a place in [lo, hi). */
static uint64_t heat_of(const struct part *p, uint64_t lo, uint64_t hi)
{
	const struct point *v = p->v->keep->points.v + p->c->first;
	size_t from = 0, to = p->c->n;
	uint64_t heat = 0;

	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (v[mid].svma < lo)
			from = mid + 1;
		else
			to = mid;
	}
	for (; from < p->c->n && v[from].svma < hi; from++)
		heat += v[from].total;
	return heat;
}

static void own_line(struct part *p, const char *file, uint32_t line)
{
	if (!file || !line)
		return;
	if (!p->own_file)
		p->own_file = file;
	if (strcmp(file, p->own_file) != 0)
		return;
	p->own_lo = p->own_lo ? AS_MIN(p->own_lo, line) : line;
	p->own_hi = AS_MAX(p->own_hi, line);
}

static void want_lines(struct part *p, uint64_t heat, const struct as_symchain *chain)
{
	struct as_keep_sources *s = p->v->keep->sources;
	const struct as_symframe *outer = &chain->frames[chain->n - 1];

	own_line(p, outer->decl_file, outer->decl_line);
	own_line(p, outer->file, outer->line);
	for (size_t i = 0; heat && i < chain->n; i++) {
		const struct as_symframe *f = &chain->frames[i];

		if (f->file && f->line)
			as_keep_sources_want(s, f->file, f->line, f->line, INLINED_CONTEXT,
					     heat);
		if (i + 1 < chain->n && f->decl_file && f->decl_line)
			as_keep_sources_want(s, f->decl_file, f->decl_line, f->decl_line, 2,
					     heat);
	}
}

static void on_range(void *ctx, uint64_t lo, uint64_t hi, const struct as_symchain *chain)
{
	struct part *p = ctx;
	struct as_keep *k = p->v->keep;

	if (k->numbers.n + 2 + 4 * chain->n > MAX_LINES) {
		flush_lines(p);
		p->record = lo;
	}
	as_vec_push(&k->numbers, hi - lo);
	as_vec_push(&k->numbers, chain->n);
	for (size_t i = 0; i < chain->n; i++) {
		uint64_t four[4];

		as_resolver_place(p->v, &chain->frames[i], four);
		for (int j = 0; j < 4; j++)
			as_vec_push(&k->numbers, four[j]);
		p->function = four[0] + 1;
	}
	if (k->sources && chain->n)
		want_lines(p, heat_of(p, lo, hi), chain);
}

/* What calls, jumps and references in the bytes lead to. */
static void note_names(struct part *p, const uint8_t *bytes)
{
	struct as_keep *k = p->v->keep;
	size_t n = (size_t)(p->hi - p->lo);
	struct as_disasm *d = as_disasm_new(as_elf_arch(as_symmod_elf(p->sym)), NULL, NULL);

	for (size_t at = 0; at < n;) {
		struct as_insn i;

		as_disasm_skim(d, bytes + at, n - at, p->lo + at, &i);
		at += i.len;
		if (i.target && (i.target <= p->lo || i.target >= p->hi))
			(void)as_map64_put(&k->names, i.target, NULL);
		if (i.data)
			(void)as_map64_put(&k->names, i.data, NULL);
	}
	as_disasm_free(d);
}

/* Writes [lo, hi) of a part; returns the bytes kept. */
static size_t keep_stretch(struct part *p)
{
	struct as_elf *e = as_symmod_elf(p->sym);
	const uint8_t *bytes;

	p->record = p->lo;
	as_symmod_ranges(p->sym, p->lo, p->hi, on_range, p);
	flush_lines(p);
	if (p->lo >= p->hi)
		return 0;
	bytes = as_elf_at(e, p->lo, p->hi - p->lo);
	if (!bytes)
		return 0;
	as_write_code(p->v->r->w,
		      &(struct as_rec_code){.module = p->v->module + 1u,
					    .svma = p->lo,
					    .machine = as_elf_arch(e),
					    .function = p->function,
					    .bytes = {(const char *)bytes, p->hi - p->lo}});
	note_names(p, bytes);
	return (size_t)(p->hi - p->lo);
}

/* The first instruction of the part that begins at or after svma, going on from *at. */
static uint64_t step_to(struct as_disasm *d, const uint8_t *bytes,
			const struct as_sympart *part, uint64_t *at, uint64_t svma)
{
	while (*at < svma && *at < part->hi) {
		struct as_insn i;

		as_disasm_skim(d, bytes + (*at - part->lo), part->hi - *at, *at, &i);
		*at += i.len;
	}
	return *at;
}

/* Around the recorded places of a large part. */
static size_t keep_windows(struct part *p, const struct as_sympart *part, size_t room)
{
	const struct point *v = p->v->keep->points.v + p->c->first;
	struct as_elf *e = as_symmod_elf(p->sym);
	const uint8_t *bytes = as_elf_at(e, part->lo, part->hi - part->lo);
	struct as_disasm *d = as_disasm_new(as_elf_arch(e), NULL, NULL);
	uint64_t at = part->lo, before = part->lo;
	size_t kept = 0, *skimmed = &p->v->keep->skimmed;

	for (size_t i = 0; bytes && i < p->c->n && kept < room && *skimmed < MAX_SKIM;) {
		uint64_t lo = v[i].svma, hi = v[i].svma;

		i++;
		if (lo < part->lo || lo >= part->hi || lo < at)
			continue;
		for (; i < p->c->n && v[i].svma < part->hi && v[i].svma <= hi + 2 * WINDOW &&
		       hi - lo < room - kept;
		     i++)
			hi = v[i].svma;
		p->lo = step_to(d, bytes, part, &at, lo - AS_MIN(WINDOW, lo - part->lo));
		p->hi = step_to(d, bytes, part, &at, hi + AS_MIN(WINDOW, part->hi - hi));
		kept += keep_stretch(p);
		*skimmed += (size_t)(at - before);
		before = at;
	}
	as_disasm_free(d);
	return kept;
}

static size_t keep_function(struct as_resolver *v, struct as_symmod *sym,
			    const struct candidate *c, size_t room)
{
	struct part p = {.v = v, .sym = sym, .c = c};
	struct as_sympart part[AS_SYMPART_MAX];
	size_t n = as_symmod_parts(sym, v->keep->points.v[c->first].svma, part, AS_SYMPART_MAX);
	size_t kept = 0;

	for (size_t i = 0; i < n && kept < room; i++) {
		uint64_t size = part[i].hi - part[i].lo;

		if (size > WHOLE || size > room - kept) {
			kept += keep_windows(&p, &part[i], room - kept);
			continue;
		}
		p.lo = part[i].lo;
		p.hi = part[i].hi;
		kept += keep_stretch(&p);
	}
	if (v->keep->sources && p.own_lo && p.own_hi - p.own_lo <= MAX_OWN_LINES)
		as_keep_sources_want(v->keep->sources, p.own_file, p.own_lo, p.own_hi,
				     OWN_CONTEXT, c->self + 1);
	return kept;
}

/* ---- modules ---- */

static int by_number(const void *x, const void *y)
{
	uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;

	return a < b ? -1 : a > b;
}

static uint64_t name_string(struct as_resolver *v, const struct as_symname *s, uint64_t off)
{
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};

	as_buf_adds(&text, as_resolver_brief(v, s->linkage));
	if (off)
		as_buf_addf(&text, "+0x%llx", (unsigned long long)off);
	return as_resolver_string(v, as_buf_str(&text));
}

static void write_names(struct as_resolver *v, struct as_symmod *sym)
{
	struct as_keep *k = v->keep;
	AS_VEC(uint64_t) at = {0};

	for (size_t i = 0; i < k->names.cap; i++) {
		if (k->names.slot[i].key != UINT64_MAX)
			as_vec_push(&at, k->names.slot[i].key);
	}
	if (at.n)
		qsort(at.v, at.n, sizeof *at.v, by_number);
	k->numbers.n = 0;
	for (size_t i = 0; i < at.n && k->numbers.n < MAX_LINES; i++) {
		struct as_symname s;

		if (!as_symmod_data_name(sym, at.v[i], &s) || s.synthetic)
			continue;
		as_vec_push(&k->numbers, at.v[i]);
		as_vec_push(&k->numbers, name_string(v, &s, at.v[i] - s.svma));
	}
	if (k->numbers.n)
		as_write_code_names(v->r->w, &(struct as_rec_code_names){
						     .module = v->module + 1u,
						     .names = {k->numbers.v, k->numbers.n}});
	k->numbers.n = 0;
	as_vec_clear(&at);
	as_map64_clear(&k->names);
}

static uint64_t changed_ns(int fd)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return 0;
	return (uint64_t)AS_MAX(st.st_mtim.tv_sec, 0) * 1000000000u +
	       (uint64_t)st.st_mtim.tv_nsec;
}

void as_keep_module(struct as_resolver *v, const struct as_module *m, struct as_symmod *sym)
{
	struct as_keep *k = v->keep;
	candidate_vec hot = {0};

	if (k->sources)
		as_keep_sources_module(k->sources, m->root, changed_ns(m->fd));
	find_candidates(k, v->r->samples, &hot);
	as_vec_foreach (c, &hot) {
		size_t *functions = c->self ? &k->functions : &k->callers;
		size_t *bytes = c->self ? &k->code_bytes : &k->callers_bytes;
		size_t max = c->self ? MAX_CODE : MAX_CALLERS_CODE;

		if (*functions >= (c->self ? MAX_FUNCTIONS : MAX_CALLERS) || *bytes >= max)
			continue;
		++*functions;
		*bytes += keep_function(v, sym, c, max - *bytes);
	}
	write_names(v, sym);
	k->points.n = 0;
	as_vec_clear(&hot);
}

void as_keep_finish(struct as_resolver *v)
{
	struct as_keep *k = v->keep;

	if (k->sources)
		as_keep_sources_write(v, k->sources);
	as_keep_sources_free(k->sources);
	as_vec_clear(&k->points);
	as_vec_clear(&k->numbers);
	as_map64_clear(&k->names);
	free(k->totals);
	free(k);
	v->keep = NULL;
}
