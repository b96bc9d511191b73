/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Trends between results: see compare.h. */
#include "results/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/sys.h"

#define NAMES_SHOWN 5

/* Benches by name; of several sides the last one, which is the newer. */
struct index {
	const struct as_bench_set *set;
	struct as_intern names;
	AS_VEC(size_t) at; /* by the name's id */
};

static void build_index(const struct as_bench_set *s, struct index *ret)
{
	*ret = (struct index){.set = s};
	for (size_t i = 0; i < s->benches.n; i++) {
		const char *name = s->benches.v[i].name;
		uint32_t id = as_intern_str(&ret->names, name ? name : "");

		if (id == ret->at.n)
			as_vec_push(&ret->at, i);
		else
			ret->at.v[id] = i;
	}
}

static const struct as_bench *look_up(const struct index *x, const char *name)
{
	uint32_t id;

	return as_intern_find(&x->names, name, strlen(name), &id)
		       ? &x->set->benches.v[x->at.v[id]]
		       : NULL;
}

static void clear_index(struct index *x)
{
	as_intern_clear(&x->names);
	as_vec_clear(&x->at);
}

/* ---- one pair ---- */

double as_bench_work_ratio(const struct as_bench *a, const struct as_bench *b)
{
	if (a->throughput != b->throughput || a->throughput == AS_THRPT_NONE ||
	    !a->throughput_n || !b->throughput_n)
		return 1;
	return (double)b->throughput_n / (double)a->throughput_n;
}

/* Half-widths of ln; 0 for exact counts, NaN where one is not known. */
static double half_log(const struct as_bench_estimate *e)
{
	return e->low > 0 && e->high >= e->low ? log(e->high / e->low) / 2 : NAN;
}

static struct as_bench_estimate ratio_of(const struct as_bench_estimate *a,
					 const struct as_bench_estimate *b, double work)
{
	double ratio = b->value / a->value / work, half = hypot(half_log(a), half_log(b));

	if (!(a->value > 0) || !(b->value > 0))
		return (struct as_bench_estimate){NAN, NAN, NAN};
	return (struct as_bench_estimate){ratio, ratio * exp(-half), ratio * exp(half)};
}

static char *copy_of(const char *text)
{
	return text ? as_xstrdup(text) : NULL;
}

/* What a report shows of a side. */
static struct as_bench side_of(const struct as_bench *b, const char *side)
{
	struct as_bench copy;

	as_bench_init(&copy);
	copy.kind = b->kind;
	copy.name = copy_of(b->name);
	copy.group = copy_of(b->group);
	copy.function = copy_of(b->function);
	copy.value = copy_of(b->value);
	copy.side = as_xstrdup(side);
	copy.unit = copy_of(b->unit);
	copy.metric = copy_of(b->metric);
	copy.time = b->time;
	copy.mean = b->mean;
	copy.median = b->median;
	copy.min = b->min;
	copy.max = b->max;
	copy.sd = b->sd;
	copy.processes = b->processes;
	copy.batches = b->batches;
	copy.iterations = b->iterations;
	copy.throughput = b->throughput;
	copy.throughput_n = b->throughput_n;
	copy.throughput_n2 = b->throughput_n2;
	copy.allocs = b->allocs;
	copy.alloc_bytes = b->alloc_bytes;
	copy.peak_bytes = b->peak_bytes;
	copy.peak_rss = b->peak_rss;
	as_vec_foreach (v, &b->samples)
		as_vec_push(&copy.samples, *v);
	as_vec_foreach (v, &b->batch_times)
		as_vec_push(&copy.batch_times, *v);
	return copy;
}

static void note_allocations(const struct as_bench *a, const struct as_bench *b,
			     struct as_bench_comparison *c)
{
	if (isnan(a->allocs) || isnan(b->allocs) || a->allocs == b->allocs)
		return;
	as_bench_note(&c->notes, "allocations", "allocations per iteration: %g before, %g now",
		      a->allocs, b->allocs);
}

static void compare_pair(const struct as_bench_compared *q, const struct as_bench *a,
			 const struct as_bench *b, struct as_bench_set *ret)
{
	double work = as_bench_work_ratio(a, b);
	struct as_bench_comparison c;

	as_bench_comparison_init(&c);
	c.name = copy_of(b->name);
	c.a = as_xstrdup(q->name[0]);
	c.b = as_xstrdup(q->name[1]);
	c.metric = copy_of(b->metric);
	c.stored = true;
	c.ratio = ratio_of(&a->time, &b->time, work);
	if (work != 1)
		as_bench_note(&c.notes, "work",
			      "its declared work changed from %ju to %ju: the change is per "
			      "unit of work",
			      (uintmax_t)a->throughput_n, (uintmax_t)b->throughput_n);
	if (a->metric && b->metric && strcmp(a->metric, b->metric) != 0)
		as_bench_note(&c.notes, "metric", "%s before, %s now: not the same figure",
			      a->metric, b->metric);
	note_allocations(a, b, &c);
	as_vec_push(&ret->benches, side_of(a, q->name[0]));
	as_vec_push(&ret->benches, side_of(b, q->name[1]));
	as_vec_push(&ret->comparisons, c);
}

/* ---- the sets ---- */

struct list {
	struct as_buf names;
	size_t n;
};

static void list_add(struct list *l, const char *name)
{
	if (l->n++ < NAMES_SHOWN)
		as_buf_addf(&l->names, "%s%s", l->names.len ? ", " : "", name);
}

static void list_note(struct list *l, const char *kind, const char *where,
		      struct as_bench_set *ret)
{
	if (l->n)
		as_bench_note(&ret->notes, kind, "only in %s: %s%s", where, l->names.p,
			      l->n > NAMES_SHOWN ? ", …" : "");
	as_buf_clear(&l->names);
}

static bool differ(const char *a, const char *b)
{
	return a && b && strcmp(a, b) != 0;
}

static void note_circumstances(const struct as_bench_compared *q, struct as_bench_set *ret)
{
	const struct as_bench_set *a = q->set[0], *b = q->set[1];

	if (differ(a->machine, b->machine))
		as_bench_note(&ret->notes, "machine",
			      "of two machines, so the ratios say nothing of the code: %s; %s",
			      a->machine, b->machine);
	if (differ(a->toolchain, b->toolchain))
		as_bench_note(&ret->notes, "toolchain", "built by two toolchains: %s; %s",
			      a->toolchain, b->toolchain);
	if (differ(a->tool, b->tool))
		as_bench_note(&ret->notes, "tool",
			      "measured by %s and by %s, which do it differently", a->tool,
			      b->tool);
	for (int i = 0; i < 2; i++) {
		as_vec_foreach (n, &q->set[i]->notes) {
			if (strcmp(n->kind, "edited") == 0 || strcmp(n->kind, "skipped") == 0)
				as_bench_note(&ret->notes, n->kind, "%s: %s", q->name[i],
					      n->text);
		}
	}
}

/* The commands of both, where those are commands; else the revision, where it is known. */
static void note_remedy(const struct as_bench_compared *q, struct as_bench_set *ret)
{
	const char *revision = q->set[0]->revision;
	const struct as_bench *one = ret->benches.n ? &ret->benches.v[0] : NULL;
	AS_CLEANUP(as_buf_clear) struct as_buf how = {0};

	if (!one)
		return;
	if (one->kind == AS_BENCH_FUNCTION && revision && strcspn(revision, "-") >= 7)
		as_buf_addf(&how, ": assay bench --against %.*s", (int)strcspn(revision, "-"),
			    revision);
	as_bench_note(&ret->notes, "stored",
		      "figures of different times are a trend and no verdict; pairs of runs "
		      "would tell%s",
		      as_buf_str(&how));
}

void as_bench_compare(const struct as_bench_compared *q, struct as_bench_set *ret)
{
	struct list only_a = {{0}}, only_b = {{0}}, odd = {{0}};
	struct index a, b;

	*ret = (struct as_bench_set){
		.title = as_xasprintf("%s against %s", q->name[1], q->name[0]),
		.machine = copy_of(q->set[1]->machine),
		.tool = copy_of(q->set[1]->tool),
		.revision = copy_of(q->set[1]->revision),
		.time_s = q->set[1]->time_s};
	build_index(q->set[0], &a);
	build_index(q->set[1], &b);
	for (size_t id = 0; id < b.at.n; id++) {
		const struct as_bench *now = &q->set[1]->benches.v[b.at.v[id]];
		const struct as_bench *then =
			look_up(&a, as_intern_get(&b.names, (uint32_t)id));

		if (!then)
			list_add(&only_b, now->name);
		else if (differ(then->unit, now->unit))
			list_add(&odd, now->name);
		else
			compare_pair(q, then, now, ret);
	}
	for (size_t id = 0; id < a.at.n; id++) {
		const char *name = as_intern_get(&a.names, (uint32_t)id);

		if (!look_up(&b, name))
			list_add(&only_a, name);
	}
	list_note(&only_a, "only-a", q->name[0], ret);
	list_note(&only_b, "only-b", q->name[1], ret);
	list_note(&odd, "unit", "another unit", ret);
	note_circumstances(q, ret);
	note_remedy(q, ret);
	clear_index(&a);
	clear_index(&b);
}
