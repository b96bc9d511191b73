/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which code a function's listing is made of, and the listing as a whole: see listing.h. */
#include "view/listing/listing_priv.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "code/source.h"
#include "image/image.h"

void as_listing_note(struct as_listing_build *b, const char *fmt, ...)
{
	struct as_buf text = {0};
	va_list ap;
	bool said = false;

	va_start(ap, fmt);
	as_buf_vaddf(&text, fmt, ap);
	va_end(ap);
	as_vec_foreach (n, &b->l->notes)
		said |= strcmp(*n, as_buf_str(&text)) == 0;
	if (!said)
		as_vec_push(&b->l->notes, as_arena_strdup(&b->l->arena, as_buf_str(&text)));
	as_buf_clear(&text);
}

bool as_listing_claim(struct as_listing_build *b, uint64_t lo, uint64_t hi)
{
	if (lo >= hi)
		return false;
	as_vec_foreach (p, &b->parts) {
		if (lo < p->hi && p->lo < hi)
			return false;
	}
	if (b->parts.n >= AS_LISTING_MAX_REGIONS ||
	    hi - lo > AS_LISTING_MAX_CODE - b->code_bytes) {
		as_listing_note(b, "only the first %zu stretches of its code are shown",
				b->parts.n);
		return false;
	}
	as_vec_push(&b->parts, (struct as_listing_part){lo, hi});
	b->code_bytes += hi - lo;
	as_vec_foreach (s, &b->spots)
		s->done |= s->svma >= lo && s->svma < hi;
	return true;
}

/* ---- spots ---- */

static uint64_t *samples_of_frames(const struct as_model *m)
{
	uint64_t *n = as_xcalloc(m->frames.n + 1, sizeof *n);

	as_vec_foreach (s, &m->samples) {
		if (s->stack != AS_NONE)
			n[m->stacks.v[s->stack].frame]++;
	}
	return n;
}

static int by_heat(const void *x, const void *y)
{
	const struct as_listing_spot *a = x, *b = y;

	if (a->whole != b->whole)
		return a->whole ? -1 : 1;
	if (a->samples != b->samples)
		return a->samples > b->samples ? -1 : 1;
	return a->svma < b->svma ? -1 : a->svma > b->svma;
}

/* A return address is looked up inside the call before it. */
static uint64_t lookup_svma(const struct as_m_frame *f)
{
	return f->flags & (AS_FRAME_EXACT | AS_FRAME_SIGNAL) || f->addr == 0 ? f->addr
									     : f->addr - 1;
}

static void find_spots(struct as_listing_build *b)
{
	const struct as_model *m = b->m;
	uint64_t *samples = samples_of_frames(m);

	for (size_t i = 0; i < m->frames.n; i++) {
		const struct as_m_frame *f = &m->frames.v[i];
		const struct as_m_place *p = m->places.v + f->chain;

		if (f->module != b->l->module)
			continue;
		for (uint32_t k = 0; k < f->nchain; k++) {
			if (p[k].function != b->q->function)
				continue;
			as_vec_push(&b->spots, (struct as_listing_spot){
						       .svma = lookup_svma(f),
						       .samples = samples[i],
						       .whole = p[f->nchain - 1].function ==
								b->q->function,
					       });
			break;
		}
	}
	free(samples);
	if (b->spots.n)
		qsort(b->spots.v, b->spots.n, sizeof *b->spots.v, by_heat);
}

/* ---- code ---- */

static bool all_done(const struct as_listing_build *b)
{
	as_vec_foreach (s, &b->spots) {
		if (!s->done)
			return false;
	}
	return true;
}

static int by_svma(const void *x, const void *y)
{
	const struct as_listing_insn *a = x, *b = y;

	return a->svma < b->svma ? -1 : a->svma > b->svma;
}

static void order_insns(struct as_listing *l)
{
	if (l->insns.n)
		qsort(l->insns.v, l->insns.n, sizeof *l->insns.v, by_svma);
	for (size_t i = 0; i < l->insns.n; i++) {
		const struct as_listing_insn *before = &l->insns.v[i ? i - 1 : 0];

		l->insns.v[i].starts_part =
			i == 0 || before->svma + before->len != l->insns.v[i].svma;
	}
}

/* Why there can be no code, or NULL. */
static const char *no_code(const struct as_model *m, uint32_t function, uint32_t module)
{
	if (m->functions.v[function].flags & AS_FUNCTION_MARKER)
		return "it stands for the missing part of stacks: there is no code";
	if (module == AS_NONE)
		return "the memory it was in belongs to no known file";
	switch (m->modules.v[module].kind) {
	case AS_MODULE_KERNEL:
	case AS_MODULE_KMOD:
		return "instructions of the kernel are not kept";
	case AS_MODULE_JIT:
		return "it was compiled while the program ran: its instructions are gone";
	case AS_MODULE_FILE:
	case AS_MODULE_VDSO:
		break;
	}
	return NULL;
}

static void make_code(struct as_listing_build *b)
{
	struct as_listing *l = b->l;
	const char *why = no_code(b->m, b->q->function, l->module);

	if (why) {
		as_listing_note(b, "%s", why);
		return;
	}
	find_spots(b);
	if (!b->spots.n) {
		as_listing_note(b, "no sample is in it");
		return;
	}
	as_listing_embedded(b);
	l->code_embedded = l->insns.n > 0;
	if (!b->q->embedded_only && !all_done(b))
		as_listing_live(b);
	else if (!l->insns.n)
		as_listing_note(b, "the recording has not kept its instructions");
	order_insns(l);
}

struct as_listing_files *as_listing_files_new(const char *cache_dir)
{
	struct as_listing_files *f = as_xcalloc(1, sizeof *f);

	f->im = as_image_new(cache_dir);
	return f;
}

void as_listing_files_free(struct as_listing_files *c)
{
	if (!c)
		return;
	as_vec_foreach (m, &c->modules)
		as_listing_module_close(m);
	as_vec_foreach (s, &c->sources)
		as_source_free(*s);
	as_image_free(c->im);
	as_vec_clear(&c->modules);
	as_vec_clear(&c->sources);
	as_intern_clear(&c->paths);
	free(c);
}

int as_listing_make(const struct as_listing_request *q, struct as_listing **ret,
		    struct as_error *err)
{
	struct as_listing_build b = {.q = q, .m = q->model};

	if (q->function >= q->model->functions.n)
		return as_fail(err, AS_E_USAGE, 0, "there is no function %u", q->function);
	b.files = q->files ? q->files : as_listing_files_new(q->cache_dir);
	b.l = as_xcalloc(1, sizeof *b.l);
	b.l->function = q->function;
	b.l->module = q->model->functions.v[q->function].module;
	/* sources are found through the chains of the code */
	make_code(&b);
	if (!q->no_source)
		as_listing_sources(&b);
	if (q->no_code)
		b.l->insns.n = b.l->places.n = 0;
	if (!q->files)
		as_listing_files_free(b.files);
	as_vec_clear(&b.spots);
	as_vec_clear(&b.parts);
	*ret = b.l;
	return AS_OK;
}

void as_listing_free(struct as_listing *l)
{
	if (!l)
		return;
	as_vec_foreach (f, &l->files)
		as_vec_clear(&f->lines);
	as_vec_clear(&l->insns);
	as_vec_clear(&l->places);
	as_vec_clear(&l->files);
	as_vec_clear(&l->notes);
	as_arena_clear(&l->arena);
	free(l);
}
