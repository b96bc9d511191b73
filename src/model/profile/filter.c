/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The query's filters, each evaluated once per function, thread, module or stack. */
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "base/sys.h"
#include "model/profile/profile_priv.h"

#define NEAR_NAMES    3
#define NEAR_EXAMINED 20000u /* functions compared by edit distance */
#define NEAR_LEN      48u

/* ---- functions ---- */

static int mark_regex(struct as_build *b, const char *what, const char *pattern, uint8_t bit,
		      struct as_error *err)
{
	regex_t re;
	int e;

	if (!pattern)
		return AS_OK;
	e = regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB);
	if (e) {
		char why[128];

		regerror(e, &re, why, sizeof why);
		return as_fail(err, AS_E_USAGE, 0, "--%s '%s' is no regular expression: %s",
			       what, pattern, why);
	}
	for (size_t i = 0; i < b->m->functions.n; i++) {
		const struct as_m_function *f = &b->m->functions.v[i];

		if (regexec(&re, f->full, 0, NULL, 0) == 0 ||
		    (f->brief != f->full && regexec(&re, f->brief, 0, NULL, 0) == 0))
			b->functions[i] |= bit;
	}
	regfree(&re);
	return AS_OK;
}

static bool is_named(const struct as_m_function *f, const char *of, bool exactly)
{
	if (exactly)
		return strcmp(f->brief, of) == 0 || strcmp(f->full, of) == 0 ||
		       strcmp(f->linkage, of) == 0;
	return strstr(f->brief, of) || strstr(f->full, of);
}

static size_t mark_of(struct as_build *b, bool exactly)
{
	size_t n = 0;

	for (size_t i = 0; i < b->m->functions.n; i++) {
		if (is_named(&b->m->functions.v[i], b->q->of, exactly)) {
			b->functions[i] |= AS_MATCH_OF;
			n++;
		}
	}
	return n;
}

/* Levenshtein distance of the first NEAR_LEN bytes, letters alike in either case. */
static unsigned distance(const char *a, const char *c)
{
	size_t na = strnlen(a, NEAR_LEN), nc = strnlen(c, NEAR_LEN);
	unsigned row[NEAR_LEN + 1];

	for (unsigned j = 0; j <= nc; j++)
		row[j] = j;
	for (size_t i = 1; i <= na; i++) {
		unsigned diagonal = row[0];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= nc; j++) {
			unsigned change = diagonal + ((a[i - 1] | 0x20) != (c[j - 1] | 0x20));

			diagonal = row[j];
			row[j] = AS_MIN(change, 1 + AS_MIN(row[j], row[j - 1]));
		}
	}
	return row[nc];
}

static const char *last_part(const char *name)
{
	const char *p = name;

	for (const char *s = strstr(p, "::"); s; s = strstr(p, "::"))
		p = s + 2;
	return *p ? p : name;
}

struct near {
	const char *name;
	unsigned distance;
};

static void offer_near(struct near near[NEAR_NAMES], const char *name, unsigned d)
{
	size_t i = NEAR_NAMES;

	for (size_t k = 0; k < NEAR_NAMES; k++) {
		if (near[k].name && strcmp(near[k].name, name) == 0)
			return;
	}
	while (i > 0 && d < near[i - 1].distance) {
		if (i < NEAR_NAMES)
			near[i] = near[i - 1];
		i--;
	}
	if (i < NEAR_NAMES)
		near[i] = (struct near){name, d};
}

static int unknown_function(const struct as_build *b, struct as_error *err)
{
	const char *of = b->q->of;
	unsigned limit = AS_MAX(2u, (unsigned)strnlen(of, NEAR_LEN) / 2);
	struct near near[NEAR_NAMES];
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};

	for (size_t i = 0; i < NEAR_NAMES; i++)
		near[i] = (struct near){NULL, limit + 1};
	for (size_t i = 0; i < AS_MIN(b->m->functions.n, (size_t)NEAR_EXAMINED); i++) {
		const char *name = b->m->functions.v[i].brief;

		if (b->m->functions.v[i].flags & AS_FUNCTION_SYNTHETIC)
			continue;
		offer_near(near, name,
			   AS_MIN(distance(of, name), distance(of, last_part(name))));
	}
	for (size_t i = 0; i < NEAR_NAMES && near[i].name; i++) {
		as_buf_adds(&text, i ? ", '" : "; near: '");
		as_fmt_quoted(&text, near[i].name, strnlen(near[i].name, 100));
		as_buf_addc(&text, '\'');
	}
	return as_fail(err, AS_E_NOTFOUND, 0, "no function '%s' in this session%s", of,
		       as_buf_str(&text));
}

static int mark_functions(struct as_build *b, struct as_error *err)
{
	const struct as_query *q = b->q;
	bool wants_of = q->shape == AS_SHAPE_CALLERS || q->shape == AS_SHAPE_CALLEES;

	b->functions = as_xcalloc(b->m->functions.n + 1, 1);
	if (mark_regex(b, "focus", q->focus, AS_MATCH_FOCUS, err) < 0 ||
	    mark_regex(b, "ignore", q->ignore, AS_MATCH_IGNORE, err) < 0 ||
	    mark_regex(b, "hide", q->hide, AS_MATCH_HIDE, err) < 0)
		return AS_E_USAGE;
	for (size_t i = 0; q->hidden && i < b->m->functions.n; i++)
		b->functions[i] |= q->hidden[i] ? AS_MATCH_HIDE : 0;
	if (!wants_of)
		return AS_OK;
	if (!q->of || !q->of[0])
		return as_fail(err, AS_E_USAGE, 0, "callers and callees of which function?");
	if (!mark_of(b, true) && !mark_of(b, false))
		return unknown_function(b, err);
	return AS_OK;
}

/* ---- threads and time ---- */

bool as_model_thread_matches(const struct as_model *m, uint32_t thread, const char *want)
{
	const struct as_m_thread *t = &m->threads.v[thread];
	uint64_t number;

	return strstr(t->name, want) ||
	       (as_parse_u64(want, &number) &&
		(t->tid == number || m->processes.v[t->process].pid == number));
}

static int mark_threads(struct as_build *b, struct as_error *err)
{
	const char *want = b->q->thread;
	bool found = false;

	if (!want)
		return AS_OK;
	b->threads = as_xcalloc(b->m->threads.n + 1, 1);
	for (uint32_t i = 0; i < b->m->threads.n; i++) {
		b->threads[i] = as_model_thread_matches(b->m, i, want);
		found |= b->threads[i];
	}
	if (!found)
		return as_fail(err, AS_E_NOTFOUND, 0,
			       "no thread '%s' in this session"
			       "\n  see them: assay report --by thread",
			       want);
	return AS_OK;
}

/* First sample at or after t. */
static size_t sample_at(const struct as_model *m, uint64_t t)
{
	size_t lo = 0, hi = m->samples.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (m->samples.v[mid].time_ns < t)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int limit_time(struct as_build *b, struct as_error *err)
{
	const struct as_query *q = b->q;
	uint64_t start = b->m->recording.start_ns;

	b->lo = 0;
	b->hi = b->m->samples.n;
	if ((q->from_ns || q->to_ns) && as_model_is_counted(b->m))
		return as_fail(err, AS_E_USAGE, 0,
			       "figures of memory are of the whole run: they have no --time");
	if (q->to_ns && q->to_ns <= q->from_ns)
		return as_fail(err, AS_E_USAGE, 0, "the time range ends before it begins");
	if (q->from_ns)
		b->lo = sample_at(b->m, start + q->from_ns);
	if (q->to_ns && start + q->to_ns >= start)
		b->hi = AS_MAX(b->lo, sample_at(b->m, start + q->to_ns));
	return AS_OK;
}

/* ---- stacks ---- */

struct frame_facts {
	uint8_t match; /* of all its places */
	bool seen;     /* a place of it is not hidden */
};

static struct frame_facts look_at(const struct as_build *b, const struct as_m_frame *f)
{
	struct frame_facts r = {0};
	uint32_t n;
	const struct as_m_place *p = as_filter_places(b, f, &n);

	for (uint32_t i = 0; i < n; i++) {
		r.match |= b->functions[p[i].function];
		r.seen |= !as_filter_hides(b, &p[i]);
	}
	return r;
}

static int find_modules(const struct as_build *b, uint8_t **ret, struct as_error *err)
{
	uint8_t *is = as_xcalloc(b->m->modules.n + 1, 1);
	bool found = false;

	for (size_t i = 0; i < b->m->modules.n; i++) {
		const struct as_m_module *m = &b->m->modules.v[i];

		is[i] = strstr(m->path, b->q->module) || strstr(m->name, b->q->module);
		found |= is[i];
	}
	*ret = is;
	if (found)
		return AS_OK;
	return as_fail(err, AS_E_NOTFOUND, 0,
		       "no module '%s' in this session"
		       "\n  see them: assay report --by module",
		       b->q->module);
}

/* Marks what stands on a path by looking at the parent's marks: parents come first. */
static void mark_stacks(struct as_build *b, const uint8_t *modules)
{
	const struct as_model *m = b->m;
	struct frame_facts *facts = as_xreallocarray(NULL, m->frames.n + 1, sizeof *facts);
	uint8_t *on_path = as_xcalloc(m->stacks.n + 1, 1);
	const uint8_t in_module = 0x80;

	for (size_t i = 0; i < m->frames.n; i++)
		facts[i] = look_at(b, &m->frames.v[i]);
	for (size_t i = 0; i < m->stacks.n; i++) {
		const struct as_m_stack *s = &m->stacks.v[i];
		uint8_t up = s->parent == AS_NONE ? 0 : on_path[s->parent];
		uint32_t module = m->frames.v[s->frame].module;

		on_path[i] = (up & ~in_module) | (facts[s->frame].match & ~in_module);
		if (!facts[s->frame].seen)
			on_path[i] |= up & in_module;
		else if (modules && module != AS_NONE && modules[module])
			on_path[i] |= in_module;
	}
	for (size_t i = 0; i < m->stacks.n; i++)
		b->stacks[i] = (b->q->focus && !(on_path[i] & AS_MATCH_FOCUS)) ||
			       (on_path[i] & AS_MATCH_IGNORE) ||
			       (modules && !(on_path[i] & in_module));
	free(on_path);
	free(facts);
}

int as_filter_make(struct as_build *b, struct as_error *err)
{
	AS_CLEANUP(as_free_autop) uint8_t *modules = NULL;
	int r;

	r = limit_time(b, err);
	if (r == AS_OK)
		r = mark_threads(b, err);
	if (r == AS_OK)
		r = mark_functions(b, err);
	if (r == AS_OK && b->q->module)
		r = find_modules(b, &modules, err);
	if (r < 0)
		return r;
	if (b->q->focus || b->q->ignore || b->q->module) {
		b->stacks = as_xcalloc(b->m->stacks.n + 1, 1);
		mark_stacks(b, modules);
	}
	return AS_OK;
}

void as_filter_clear(struct as_build *b)
{
	free(b->functions);
	free(b->threads);
	free(b->stacks);
}
