/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "hook/signature.h"

#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "hook/calls.h"
#include "hook/signature_priv.h"
#include "image/image.h"

#define MAX_MAIN     16
#define MAX_MESSAGES 4096u
#define MAX_RODATA   (64u << 20)
#define MAX_TRIED    20000u /* functions, each for one kind */
#define MAX_MEMBERS  60u
#define OFTEN_CALLED 600u /* functions that are called most */
#define NEAR         48u  /* functions before and behind one that is known */
#define MAX_GAP      200u /* between two functions of one allocator that have messages */
#define SHARED_MAX   40u  /* what more sites than that lead to is no allocator's own part */
#define MAX_HUNG     2u   /* experiments that a function may spoil by not coming back */
#define MAX_OTHERS   256u /* functions that are tried to be another allocator's */
#define MAX_ROOTS    4u

struct member {
	struct as_proof_member m;
	size_t fn;
	uint64_t svma;
	size_t root; /* of roots: whose blocks it takes or makes */
	bool told;
	uint64_t instead_svma; /* of NEW: what is called in its place; 0: none */
	bool stale;            /* which others it comes through has to be seen again */
};

struct search {
	const struct as_signature_program *p;
	struct as_calls *calls;
	struct as_hook_code *code;
	struct as_trial trial;
	struct as_proof proof;
	size_t n; /* functions */
	bool *wanted, *skip;
	uint8_t *hung;  /* experiments it did not come back from */
	bool *speaks;   /* has an allocator's messages, or leads to what has */
	bool *relative; /* of those that are known */
	bool *reaches;  /* may come to the kernel, or into another module */
	AS_VEC(struct member) member;
	AS_VEC(uint64_t) outside; /* avma: allocators of other modules */
	AS_VEC(uint64_t) outside_free;
	size_t root[MAX_ROOTS], nroots; /* of member */
	enum as_allocator_family family;
	size_t tried;
};

/* ---- candidates ---- */

static const struct message {
	const char *text;
	enum as_allocator_family family;
} messages[] = {
	{"<jemalloc>: ", AS_ALLOCATOR_JEMALLOC}, {"mimalloc: ", AS_ALLOCATOR_MIMALLOC},
	{"tcmalloc", AS_ALLOCATOR_TCMALLOC},     {"malloc(): ", AS_ALLOCATOR_GLIBC},
	{"free(): ", AS_ALLOCATOR_GLIBC},        {"realloc(): ", AS_ALLOCATOR_GLIBC},
};

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Where an allocator's messages are; one family: it is that. */
static size_t find_messages(struct search *s, uint64_t *ret)
{
	const struct as_elf_section *sec = as_elf_find_section(s->p->elf, ".rodata");
	unsigned families = 0;
	const uint8_t *p;
	size_t n, found = 0;

	if (!sec || as_elf_section_data(s->p->elf, ".rodata", &p, &n, NULL) < 0)
		return 0;
	n = AS_MIN(n, (size_t)MAX_RODATA);
	for (size_t i = 0; i < AS_ARRAY_LEN(messages); i++) {
		size_t len = strlen(messages[i].text);
		const uint8_t *at = p;

		while (found < MAX_MESSAGES &&
		       (at = memmem(at, n - (size_t)(at - p), messages[i].text, len))) {
			ret[found++] = sec->svma + (uint64_t)(at - p);
			families |= 1u << messages[i].family;
			at += len;
		}
	}
	for (unsigned f = 0; families && !(families & (families - 1)) && f < 32; f++) {
		if (families >> f & 1)
			s->family = (enum as_allocator_family)f;
	}
	qsort(ret, found, sizeof *ret, by_value);
	return found;
}

static void want_range(struct search *s, size_t lo, size_t hi)
{
	for (size_t i = lo; i < hi && i < s->n; i++)
		s->wanted[i] = true;
}

static void want_near(struct search *s, size_t i)
{
	want_range(s, i > NEAR ? i - NEAR : 0, i + NEAR + 1);
}

/* Functions that have an allocator's messages, what lies between them, and what calls them. */
static void want_messages(struct search *s)
{
	AS_CLEANUP(as_free_autop) uint64_t *at = as_xcalloc(MAX_MESSAGES, sizeof *at);
	AS_CLEANUP(as_free_autop) bool *refers = as_xcalloc(s->n + 1, sizeof *refers);
	size_t nat = find_messages(s, at), last = SIZE_MAX;

	as_calls_refer(s->calls, at, nat, refers);
	for (size_t i = 0; i < s->n; i++) {
		size_t n;
		const struct as_calls_edge *e = as_calls_edges(s->calls, i, &n);

		s->speaks[i] = refers[i];
		for (size_t k = 0; k < n; k++)
			s->speaks[i] |= refers[e[k].to];
		s->wanted[i] |= s->speaks[i];
		if (!refers[i])
			continue;
		want_near(s, i);
		if (last != SIZE_MAX && i - last <= MAX_GAP)
			want_range(s, last, i);
		last = i;
	}
}

static int by_value_down(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x > *y ? -1 : *x < *y;
}

static void want_often_called(struct search *s)
{
	AS_CLEANUP(as_free_autop) uint32_t *sites = as_xcalloc(s->n + 1, sizeof *sites);
	uint32_t least;

	for (size_t i = 0; i < s->n; i++)
		sites[i] = as_calls_sites(s->calls, i);
	qsort(sites, s->n, sizeof *sites, by_value_down);
	least = AS_MAX(s->n > OFTEN_CALLED ? sites[OFTEN_CALLED] : 1u, 1u);
	for (size_t i = 0; i < s->n; i++)
		s->wanted[i] |=
			as_calls_sites(s->calls, i) >= least || as_calls_is_found(s->calls, i);
}

/*
 * Where the rest of an allocator is: functions near those that are known, such that share a part with
 * them, and such that call them. Wrappers have no such neighbours, and whatever calls free is no news.
 */
static void find_relatives(struct search *s)
{
	AS_CLEANUP(as_free_autop) bool *part = as_xcalloc(s->n + 1, sizeof *part);

	memset(s->relative, 0, s->n * sizeof *s->relative);
	as_vec_foreach (m, &s->member) {
		size_t n, lo = m->fn > NEAR ? m->fn - NEAR : 0;
		const struct as_calls_edge *e = as_calls_edges(s->calls, m->fn, &n);

		if (!m->told)
			continue;
		part[m->fn] = m->m.kind != AS_RT_FREE;
		for (size_t k = 0; k < n; k++)
			part[e[k].to] |= as_calls_sites(s->calls, e[k].to) <= SHARED_MAX;
		for (size_t i = lo; i < AS_MIN(m->fn + NEAR + 1, s->n); i++)
			s->relative[i] = true;
	}
	for (size_t i = 0; i < s->n; i++) {
		size_t n;
		const struct as_calls_edge *e = as_calls_edges(s->calls, i, &n);

		for (size_t k = 0; k < n; k++)
			s->relative[i] |= part[e[k].to];
		s->wanted[i] |= s->relative[i];
	}
}

/* Ways into other modules, and what was overwritten. */
static void skip_linkage(struct search *s)
{
	size_t n;
	const struct as_elf_section *sec = as_elf_sections(s->p->elf, &n);

	for (size_t k = 0; k < n; k++) {
		if (strncmp(sec[k].name, ".plt", 4) != 0)
			continue;
		for (size_t i = 0; i < s->n; i++) {
			uint64_t at = as_hook_code_at(s->code, i)->svma;

			s->skip[i] |= at - sec[k].svma < sec[k].size_bytes;
		}
	}
}

/*
 * `syscall`, or a call or jump through memory; where a function ends that only calls tell of is
 * not known.
 */
static bool leaves(const struct search *s, size_t i)
{
	const struct as_hook_function *f = as_hook_code_at(s->code, i);
	size_t n = (size_t)(f->end_svma - f->svma);
	const uint8_t *p = as_hook_code_bytes(s->code, f->svma, n);

	for (size_t k = 0; p && k + 1 < n; k++) {
		if ((p[k] == 0x0f && p[k + 1] == 0x05) ||
		    (p[k] == 0xff && (p[k + 1] == 0x15 || p[k + 1] == 0x25)))
			return true;
	}
	return s->skip[i] || as_calls_is_found(s->calls, i);
}

/* No allocator does without the kernel; its free may. */
static void find_reaches(struct search *s)
{
	bool more = true;

	for (size_t i = 0; i < s->n; i++)
		s->reaches[i] = leaves(s, i);
	while (more) {
		more = false;
		for (size_t i = 0; i < s->n; i++) {
			size_t n;
			const struct as_calls_edge *e = as_calls_edges(s->calls, i, &n);

			for (size_t k = 0; !s->reaches[i] && k < n; k++)
				more |= s->reaches[i] = s->reaches[e[k].to];
		}
	}
}

/* ---- trying ---- */

static bool is_member(const struct search *s, size_t fn)
{
	as_vec_foreach (m, &s->member) {
		if (m->fn == fn)
			return true;
	}
	return false;
}

static void add_member(struct search *s, const struct as_proof_sift *of, enum as_rt_kind kind,
		       enum as_proof_form form, size_t root)
{
	as_vec_push(&s->member, (struct member){.m = {.avma = of->avma,
						      .kind = (uint8_t)kind,
						      .form = (uint8_t)form},
						.fn = of->fn,
						.svma = of->avma - s->trial.bias,
						.root = root,
						.told = true});
}

static int by_rank(const void *a, const void *b)
{
	const struct as_proof_sift *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank > y->rank ? -1 : 1;
	return x->fn < y->fn ? -1 : x->fn > y->fn;
}

/* What has an allocator's messages, or leads to them, then what is called most. */
static uint32_t rank_of(const struct search *s, size_t i)
{
	return s->speaks[i] ? UINT32_MAX : as_calls_sites(s->calls, i);
}

/* Returns how many it has looked at: all, or as long as there was no malloc. */
static size_t try_list(struct search *s, enum as_rt_kind kind, enum as_proof_form form,
		       size_t root, struct as_proof_sift *list, size_t n)
{
	bool first = !s->proof.give;

	for (size_t i = 0; i < n; i++) {
		if (first)
			as_proof_sift(&s->proof, kind, form, list + i, 1);
		if (!list[i].may_be || s->member.n == MAX_MEMBERS ||
		    !as_proof_try(&s->proof, kind, form, list[i].avma))
			continue;
		add_member(s, &list[i], kind, form, root);
		if (!first)
			continue;
		/* what tells from now on whether an experiment was sound */
		s->proof.give = list[i].avma;
		s->proof.give_form = form;
		return i + 1;
	}
	return n;
}

static struct as_proof_sift sift_of(const struct search *s, size_t i)
{
	return (struct as_proof_sift){.avma = as_hook_code_at(s->code, i)->svma + s->trial.bias,
				      .fn = i,
				      .rank = rank_of(s, i)};
}

/*
 * Leaves those that are worth it. All else of an allocator is among the relatives of what is known; another
 * allocator's malloc and free are among those that are called most or speak.
 */
static size_t keep_relatives(struct search *s, struct as_proof_sift *list, size_t n,
			     size_t max_others)
{
	size_t kept = 0, others = 0;

	find_relatives(s);
	for (size_t i = 0; i < n; i++) {
		bool other = !s->relative[list[i].fn];

		if (is_member(s, list[i].fn) || (other && others == max_others))
			continue;
		others += other;
		list[kept++] = list[i];
	}
	return kept;
}

static void sift_and_try(struct search *s, enum as_rt_kind kind, enum as_proof_form form,
			 size_t root, struct as_proof_sift *list, size_t n)
{
	s->tried += n;
	as_proof_sift(&s->proof, kind, form, list, n);
	for (size_t i = 0; i < n; i++)
		s->hung[list[i].fn] += list[i].hung;
	(void)try_list(s, kind, form, root, list, n);
}

static void try_all(struct search *s, enum as_rt_kind kind, enum as_proof_form form,
		    size_t root)
{
	bool first = !s->proof.give;
	bool anywhere = form == AS_PROOF_ALONE && (kind == AS_RT_SIZE || kind == AS_RT_FREE);
	AS_VEC(struct as_proof_sift) list = {0};
	size_t done = 0;

	find_relatives(s);
	for (size_t i = 0; i < s->n && list.n < MAX_TRIED; i++) {
		if (!s->wanted[i] || s->skip[i] || is_member(s, i) ||
		    (kind != AS_RT_FREE && !s->reaches[i]) || s->hung[i] >= MAX_HUNG)
			continue;
		as_vec_push(&list, sift_of(s, i));
	}
	if (list.n)
		qsort(list.v, list.n, sizeof *list.v, by_rank);
	if (first) {
		done = try_list(s, kind, form, root, list.v, list.n);
		s->tried += done;
	}
	if (done < list.n) {
		list.n = done + keep_relatives(s, list.v + done, list.n - done,
					       anywhere ? MAX_OTHERS : 0);
		sift_and_try(s, kind, form, root, list.v + done, list.n - done);
	}
	as_vec_clear(&list);
}

/* Those a call of m may come through without being a call of theirs. */
static size_t rivals(const struct search *s, const struct member *m, uint64_t *ret)
{
	bool frees = m->m.kind == AS_RT_FREE;
	size_t n = 0;

	as_vec_foreach (o, &s->member) {
		bool same = o->m.kind == m->m.kind;

		if (o == m || n == AS_TRIAL_WATCHES)
			continue;
		if (m->m.kind == AS_RT_SIZE || m->m.kind == AS_RT_NEW)
			same = o->m.kind != AS_RT_FREE;
		else if (frees)
			same |= o->m.kind == AS_RT_REALLOC;
		if (!same)
			continue;
		ret[n++] = o->m.avma;
	}
	for (size_t i = 0; n < AS_TRIAL_WATCHES; i++, n++) {
		if (i >= (frees ? s->outside_free.n : s->outside.n))
			break;
		ret[n] = frees ? s->outside_free.v[i] : s->outside.v[i];
	}
	return n;
}

/* Wrappers always go through another one; what sometimes does not is told. */
static void find_way(struct search *s, struct member *m)
{
	uint64_t other[AS_TRIAL_WATCHES];
	size_t n = rivals(s, m, other);

	if (!as_proof_ways(&s->proof, &m->m, other, n))
		m->m.always = false;
	m->told = !m->m.always;
}

/* Mallocs that are no wrappers: allocators. The most called ones first. */
static void find_roots(struct search *s)
{
	as_vec_foreach (m, &s->member) {
		size_t i;

		s->proof.give = m->m.avma;
		s->proof.give_form = (enum as_proof_form)m->m.form;
		find_way(s, m);
		if (!m->told || s->nroots == MAX_ROOTS)
			continue;
		for (i = s->nroots++; i > 0; i--) {
			size_t before = s->member.v[s->root[i - 1]].fn;

			if (as_calls_sites(s->calls, before) >= as_calls_sites(s->calls, m->fn))
				break;
			s->root[i] = s->root[i - 1];
		}
		s->root[i] = (size_t)(m - s->member.v);
	}
}

static void use_root(struct search *s, size_t i)
{
	const struct member *m = &s->member.v[s->root[i]];

	s->proof.give = m->m.avma;
	s->proof.give_form = (enum as_proof_form)m->m.form;
	s->proof.take = 0;
	as_vec_foreach (f, &s->member) {
		if (f->m.kind != AS_RT_FREE || f->root != i || s->proof.take)
			continue;
		s->proof.take = f->m.avma;
		s->proof.take_form = (enum as_proof_form)f->m.form;
	}
}

static void find_ways(struct search *s, bool all)
{
	as_vec_foreach (m, &s->member) {
		if (!all && !m->stale)
			continue;
		use_root(s, m->root);
		find_way(s, m);
		m->stale = false;
	}
}

/* Another function of an allocator whose free is known. */
static bool shares_free(const struct search *s)
{
	as_vec_foreach (m, &s->member) {
		if (m->m.kind == AS_RT_FREE &&
		    as_proof_try(&s->proof, AS_RT_FREE, (enum as_proof_form)m->m.form,
				 m->m.avma))
			return true;
	}
	return false;
}

static void drop_root(struct search *s, size_t r)
{
	s->nroots--;
	memmove(s->root + r, s->root + r + 1, (s->nroots - r) * sizeof *s->root);
}

static void try_kinds(struct search *s)
{
	static const struct {
		uint8_t kind, form;
	} list[] = {
		{AS_RT_REALLOC, AS_PROOF_ALONE},
		{AS_RT_COUNT, AS_PROOF_ALONE},
		{AS_RT_ALIGN, AS_PROOF_ALONE},
		{AS_RT_POINTER, AS_PROOF_ALONE},
		/* before flags, which no alignment may be taken for: of 0, it is none */
		{AS_RT_SIZE, AS_PROOF_ALIGNED},
		{AS_RT_SIZE, AS_PROOF_FLAGS},
		{AS_RT_SIZE, AS_PROOF_PAGES},
		{AS_RT_NEW, AS_PROOF_ALONE},
		{AS_RT_NEW, AS_PROOF_ALIGNED},
		/* of a block of the same size, they look like the frees behind them */
		{AS_RT_REALLOC, AS_PROOF_FLAGS},
		{AS_RT_REALLOC, AS_PROOF_ALIGNED},
		{AS_RT_FREE, AS_PROOF_FLAGS},
		{AS_RT_FREE, AS_PROOF_ALIGNED},
	};

	bool sized = false;

	for (size_t r = 0; r < s->nroots; r++) {
		for (size_t i = 0; i < AS_ARRAY_LEN(list); i++) {
			bool needs_none =
				list[i].kind == AS_RT_SIZE && list[i].form != AS_PROOF_PAGES;

			use_root(s, r);
			if (needs_none && sized)
				continue; /* was tried */
			if (s->proof.take || (list[i].kind == AS_RT_FREE && !r))
				try_all(s, (enum as_rt_kind)list[i].kind,
					(enum as_proof_form)list[i].form, r);
		}
		sized |= s->proof.take != 0;
	}
}

/* ---- what is told ---- */

/* Whether all that calls it is known to be of the allocator: a slow half, a common part. */
static bool is_inner(const struct search *s, const struct member *m)
{
	uint32_t sites = as_calls_sites(s->calls, m->fn), inside = 0;

	as_vec_foreach (o, &s->member) {
		size_t n;
		const struct as_calls_edge *e = as_calls_edges(s->calls, o->fn, &n);

		for (size_t k = 0; o != m && k < n; k++)
			inside += e[k].to == m->fn ? e[k].count : 0;
	}
	return sites && inside >= sites && !as_calls_is_taken(s->calls, m->fn);
}

/* What no free of these takes is memory for good: the end of the heap, a mapping. */
static bool is_owned(struct search *s, struct member *m)
{
	for (size_t r = 0; r < s->nroots; r++) {
		use_root(s, r);
		if (as_proof_owned(&s->proof, &m->m)) {
			m->root = r;
			return true;
		}
	}
	return false;
}

/* What came through a member that is left out may have a way of its own now. */
static void forget_rival(struct search *s, const struct member *gone)
{
	as_vec_foreach (m, &s->member) {
		uint64_t other[AS_TRIAL_WATCHES], below;
		size_t n = rivals(s, m, other);

		for (size_t k = 0; k < n; k++) {
			if (other[k] != gone->m.avma)
				continue;
			below = (1ull << k) - 1;
			m->stale |= m->m.through >> k & 1;
			m->m.through = (m->m.through & below) | (m->m.through >> 1 & ~below);
			break;
		}
		m->stale |= n == AS_TRIAL_WATCHES; /* another one comes into its place */
	}
}

static void remove_member(struct search *s, size_t i)
{
	forget_rival(s, &s->member.v[i]);
	s->member.n--;
	memmove(s->member.v + i, s->member.v + i + 1, (s->member.n - i) * sizeof *s->member.v);
	for (size_t r = 0; r < s->nroots; r++)
		s->root[r] -= s->root[r] > i;
}

static void drop_unowned(struct search *s)
{
	for (size_t i = 0; i < s->member.n;) {
		struct member *m = &s->member.v[i];

		if (m->m.kind == AS_RT_FREE || m->m.kind == AS_RT_REALLOC || is_owned(s, m))
			i++;
		else
			remove_member(s, i);
	}
}

/* With another malloc, if i is one that others are tried with; false: there is none. */
static bool replace_root(struct search *s, size_t i)
{
	for (size_t r = 0; r < s->nroots; r++) {
		size_t other = 0;

		if (s->root[r] != i)
			continue;
		while (other < s->member.n && (other == i || !s->member.v[other].told ||
					       s->member.v[other].m.kind != AS_RT_SIZE))
			other++;
		if (other == s->member.n)
			return false;
		s->root[r] = other;
	}
	return true;
}

/* An inner part is left out for what calls it; others may be no wrappers then.. */
static bool drop_inner(struct search *s)
{
	for (size_t i = 0; i < s->member.n; i++) {
		const struct member *m = &s->member.v[i];

		if (!m->told || !is_inner(s, m) || !replace_root(s, i))
			continue;
		remove_member(s, i);
		return true;
	}
	return false;
}

/*
 * What is called in the place of one that throws. It must be the same in all but that: a function that
 * writes to what it allocates (zeros, a header) or takes count and size looks like operator new, too.
 */
static void find_instead(struct search *s)
{
	as_vec_foreach (m, &s->member) {
		if (m->m.kind != AS_RT_NEW || !m->told)
			continue;
		use_root(s, m->root);
		as_vec_foreach (o, &s->member) {
			if (o->m.kind == AS_RT_SIZE && o->m.form == m->m.form &&
			    !m->instead_svma &&
			    as_proof_same(&s->proof, (enum as_proof_form)m->m.form, m->m.avma,
					  o->m.avma))
				m->instead_svma = o->svma;
		}
		m->told = m->instead_svma != 0;
	}
}

static void choose(struct search *s)
{
	drop_unowned(s);
	find_ways(s, true);
	while (drop_inner(s))
		find_ways(s, false);
	find_instead(s);
}

const char *as_signature_name(enum as_rt_kind kind, enum as_proof_form form)
{
	static const char *const name[][AS_PROOF_FORMS] = {
		[AS_RT_SIZE] = {"malloc", "mallocx", "malloc_aligned", "valloc"},
		[AS_RT_FREE] = {"free", "sdallocx", "free_sized"},
		[AS_RT_REALLOC] = {"realloc", "rallocx", "realloc_aligned"},
		[AS_RT_COUNT] = {"calloc"},
		[AS_RT_ALIGN] = {"memalign"},
		[AS_RT_POINTER] = {"posix_memalign"},
		[AS_RT_NEW] = {"_Znwm", NULL, "_ZnwmSt11align_val_t"},
	};

	return (size_t)kind < AS_ARRAY_LEN(name) && (size_t)form < AS_PROOF_FORMS
		       ? name[kind][form]
		       : NULL;
}

static int by_svma(const void *a, const void *b)
{
	const struct as_allocator *x = a, *y = b;

	return x->svma < y->svma ? -1 : x->svma > y->svma;
}

void as_signature_span(struct as_signature *s)
{
	s->lo_svma = s->list.n ? s->list.v[0].svma : 0;
	s->hi_svma = s->list.n ? s->list.v[s->list.n - 1].svma + 1 : 0;
}

static void tell(struct search *s, struct as_signature *ret)
{
	as_vec_foreach (m, &s->member) {
		if (!m->told)
			continue;
		as_vec_push(&ret->list,
			    (struct as_allocator){
				    .svma = m->svma,
				    .instead_svma = m->instead_svma,
				    .name = as_signature_name((enum as_rt_kind)m->m.kind,
							      (enum as_proof_form)m->m.form),
				    .kind = m->m.kind,
				    .group = AS_HOOKS_HEAP,
				    .family = (uint8_t)s->family,
				    .local = true,
				    .by_signature = true,
			    });
	}
	if (ret->list.n)
		qsort(ret->list.v, ret->list.n, sizeof *ret->list.v, by_svma);
	as_signature_span(ret);
	for (size_t i = 0; i < s->n; i++) {
		const struct as_hook_function *f = as_hook_code_at(s->code, i);

		if (as_calls_is_found(s->calls, i))
			as_vec_push(&ret->found, (struct as_extent){f->svma, f->end_svma});
	}
	ret->is_sure = !s->trial.broken;
	ret->tried = s->tried;
	ret->runs = s->trial.runs;
}

/* ---- the whole ---- */

/* Allocators of the libraries that the copy has loaded: what goes through them is seen there. */
static void find_outside(struct search *s)
{
	struct as_image *im;
	struct as_process *p;

	if (!as_elf_find_section(s->p->elf, ".interp"))
		return;
	im = as_image_new(NULL);
	if (as_image_read_maps(im, s->trial.pid, as_now_ns(), NULL) < 0 ||
	    !(p = as_image_process(im, s->trial.pid))) {
		as_image_free(im);
		return;
	}
	for (size_t i = 0; i < p->nmap; i++) {
		struct as_module *m = as_image_module(im, p->map[i].module);
		struct as_allocators list;
		struct as_elf *elf;

		if (m->kind != AS_MODULE_FILE || p->map[i].bias == s->trial.bias ||
		    as_elf_open(m->path, &elf, NULL) < 0)
			continue;
		as_allocators_find(elf, AS_HOOKS_HEAP, &list);
		as_vec_foreach (a, &list) {
			if (a->kind == AS_RT_FREE)
				as_vec_push(&s->outside_free, a->svma + p->map[i].bias);
			else
				as_vec_push(&s->outside, a->svma + p->map[i].bias);
		}
		as_allocators_clear(&list);
		as_elf_close(elf);
	}
	as_image_free(im);
}

static int open_trial(struct search *s, struct as_error *err)
{
	uint64_t main_svma[MAX_MAIN];
	struct as_trial_spec spec = {
		.exe_fd = s->p->fd,
		.name = s->p->name,
		.entry_svma = as_elf_entry(s->p->elf),
		.main_svma = main_svma,
		.nmain = as_calls_main(s->calls, main_svma, MAX_MAIN),
	};

	if (!spec.nmain)
		return as_fail(err, AS_E_UNSUPPORTED, 0, "where its main begins is not known");
	return as_trial_open(&spec, &s->trial, err);
}

static void search(struct search *s)
{
	s->proof.trial = &s->trial;
	find_outside(s);
	skip_linkage(s);
	find_reaches(s);
	want_messages(s);
	want_often_called(s);
	try_all(s, AS_RT_SIZE, AS_PROOF_ALONE, 0);
	if (!s->member.n)
		try_all(s, AS_RT_SIZE, AS_PROOF_ALIGNED, 0);
	find_roots(s);
	for (size_t r = 0; r < s->nroots;) {
		use_root(s, r);
		if (shares_free(s)) {
			drop_root(s, r);
			continue;
		}
		try_all(s, AS_RT_FREE, AS_PROOF_ALONE, r++);
	}
	find_ways(s, true);
	try_kinds(s);
	choose(s);
}

static bool has_both(const struct as_allocators *list)
{
	bool gives = false, takes = false;

	as_vec_foreach (a, list) {
		gives |= a->kind == AS_RT_SIZE;
		takes |= a->kind == AS_RT_FREE;
	}
	return gives && takes;
}

int as_signature_find(const struct as_signature_program *p, struct as_signature *ret,
		      struct as_error *err)
{
	struct search s = {.p = p, .family = AS_ALLOCATOR_C};
	int r = as_calls_new(p->elf, p->extents, p->nextents, &s.calls, err);

	memset(ret, 0, sizeof *ret);
	if (r < 0)
		return r;
	s.code = as_calls_code(s.calls);
	s.n = as_hook_code_count(s.code);
	s.wanted = as_xcalloc(s.n + 1, sizeof *s.wanted);
	s.skip = as_xcalloc(s.n + 1, sizeof *s.skip);
	s.speaks = as_xcalloc(s.n + 1, sizeof *s.speaks);
	s.hung = as_xcalloc(s.n + 1, sizeof *s.hung);
	s.relative = as_xcalloc(s.n + 1, sizeof *s.relative);
	s.reaches = as_xcalloc(s.n + 1, sizeof *s.reaches);
	r = open_trial(&s, err);
	if (r == 0) {
		search(&s);
		tell(&s, ret);
		if (as_trial_is_over(&s.trial))
			r = as_fail(err, AS_E_LIMIT, 0,
				    "trying its functions took more than %llu s",
				    AS_TRIAL_CPU_NS / 1000000000);
		as_trial_close(&s.trial);
	}
	if (r == 0 && !has_both(&ret->list))
		r = as_fail(err, AS_E_NOTFOUND, 0,
			    "no two of its functions do what malloc and free do");
	if (r < 0)
		as_signature_clear(ret);
	else
		ret->code = as_calls_take_code(s.calls);
	as_calls_free(s.calls);
	free(s.wanted);
	free(s.skip);
	free(s.speaks);
	free(s.hung);
	free(s.relative);
	free(s.reaches);
	as_vec_clear(&s.member);
	as_vec_clear(&s.outside);
	as_vec_clear(&s.outside_free);
	return r;
}

void as_signature_clear(struct as_signature *s)
{
	as_allocators_clear(&s->list);
	as_vec_clear(&s->found);
	as_hook_code_free(s->code);
	memset(s, 0, sizeof *s);
}
