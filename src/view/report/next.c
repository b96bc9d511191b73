/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the next steps are: see next.h. */
#include "view/report/next.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { STEPS = 3 };

/* A share worth a step of its own. */
static const double WORTH = 0.05, WORTH_TOTAL = 0.2, WORTH_KERNEL = 0.2, THREAD_WORTH = 0.1;

struct step {
	double worth;
	struct as_buf command, why;
};

struct steps {
	const struct as_next_request *q;
	AS_VEC(struct step) v;
};

static struct step *add(struct steps *s, double worth)
{
	as_vec_push(&s->v, (struct step){.worth = worth});
	return &s->v.v[s->v.n - 1];
}

static void add_file(struct steps *s, struct step *step)
{
	if (!s->q->file || !as_style_plain(s->q->file))
		return;
	as_buf_addc(&step->command, ' ');
	as_style_shell(&step->command, s->q->file);
}

static void add_percent(struct as_buf *b, const struct as_share *share)
{
	as_style_share(b, share);
	as_buf_adds(b, " %");
}

static bool starts_with_any(const char *name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strncmp(name, list[i], strlen(list[i])) == 0)
			return true;
	}
	return false;
}

/* A name that a command line can carry. */
static bool is_usable(const struct as_row *row)
{
	return !row->unsymbolized && *row->name && as_style_plain(row->name);
}

static bool is_allocator(const char *name)
{
	static const char *const exact[] = {
		"malloc",
		"free",
		"calloc",
		"realloc",
		"cfree",
		"__libc_malloc",
		"__libc_free",
		"__libc_calloc",
		"__libc_realloc",
		"_int_malloc",
		"_int_free",
		"_int_realloc",
		"malloc_consolidate",
		"unlink_chunk",
		"sysmalloc",
		"aligned_alloc",
		"posix_memalign",
	};
	static const char *const start[] = {
		"__rust_alloc",   "__rust_dealloc", "__rust_realloc",  "__rdl_",
		"alloc::alloc::", "operator new",   "operator delete", "je_",
		"_rjem_",         "mi_malloc",      "mi_free",         "mi_heap",
		"_mi_",           "tc_malloc",      "tc_free",         "tcmalloc::",
		"unlink_chunk",   "_int_free",
	};

	if (strncmp(name, "__GI_", 5) == 0) /* glibc's name for calls from within */
		name += 5;
	for (size_t i = 0; i < AS_ARRAY_LEN(exact); i++) {
		if (strcmp(name, exact[i]) == 0)
			return true;
	}
	return starts_with_any(name, start, AS_ARRAY_LEN(start));
}

static bool is_entry(const char *name)
{
	static const char *const at_the_root[] = {"_start",       "main",
						  "__libc_start", "std::rt::",
						  "clone",        "start_thread",
						  "std::sys::",   "__clone",
						  "std::thread",  "core::ops::function",
						  "std::panic"};

	size_t n = strlen(name);

	return starts_with_any(name, at_the_root, AS_ARRAY_LEN(at_the_root)) ||
	       (n > 6 && strcmp(name + n - 6, "::main") == 0);
}

/* All time in the allocator; its most used entry point stands for it. */
static void allocations(struct steps *s)
{
	const struct as_row *most = NULL;
	double self = 0;

	as_vec_foreach (row, &s->q->flat->rows) {
		if (!is_allocator(row->name))
			continue;
		self += row->self.value;
		if (!most || row->total.value > most->total.value)
			most = row;
	}
	if (!most || self < WORTH)
		return;

	struct step *step = add(s, self);

	as_buf_adds(&step->command, "assay report --callers ");
	as_style_shell(&step->command, most->name);
	add_file(s, step);
	as_buf_addf(&step->why, "who allocates: %.1f %%", self * 100);
}

static void hot_foreign(struct steps *s)
{
	as_vec_foreach (row, &s->q->flat->rows) {
		if (row->self.value < WORTH)
			return;
		if (is_allocator(row->name) || !is_usable(row) ||
		    as_style_is_own(s->q->model, row))
			continue;

		struct step *step = add(s, row->self.value);

		as_buf_adds(&step->command, "assay report --callers ");
		as_style_shell(&step->command, row->name);
		add_file(s, step);
		as_buf_adds(&step->why, "who calls it: ");
		add_percent(&step->why, &row->self);
		return;
	}
}

static void hot_own(struct steps *s)
{
	as_vec_foreach (row, &s->q->flat->rows) {
		if (row->self.value < WORTH)
			return;
		if (!is_usable(row) || !row->line || !as_style_is_own(s->q->model, row))
			continue;

		struct step *step = add(s, row->self.value);

		as_buf_adds(&step->command, "assay annotate ");
		as_style_shell(&step->command, row->name);
		add_file(s, step);
		as_buf_adds(&step->why, "its lines: ");
		add_percent(&step->why, &row->self);
		return;
	}
}

/* The function that hands out most of its time: deepest sensible place to look down from. */
static void dispatcher(struct steps *s)
{
	const struct as_row *best = NULL;

	as_vec_foreach (row, &s->q->flat->rows) {
		if (!is_usable(row) || is_entry(row->name) || row->total.value < WORTH_TOTAL ||
		    row->total.value > 0.9 || row->self.value * 3 > row->total.value ||
		    !as_style_is_own(s->q->model, row))
			continue;
		if (!best || row->total.value > best->total.value)
			best = row;
	}
	if (!best)
		return;

	struct step *step = add(s, best->total.value - best->self.value - 0.3);

	as_buf_adds(&step->command, "assay report --callees ");
	as_style_shell(&step->command, best->name);
	add_file(s, step);
	as_buf_adds(&step->why, "where its ");
	add_percent(&step->why, &best->total);
	as_buf_adds(&step->why, " go");
}

/* Weight per thread and of samples taken in the kernel, in one pass. */
static void by_sample(struct steps *s)
{
	const struct as_model *m = s->q->model;
	AS_CLEANUP(as_free_autop) double *thread = as_xcalloc(m->threads.n + 1, sizeof *thread);
	double all = 0, kernel = 0;
	size_t busy = 0;

	as_vec_foreach (sample, &m->samples) {
		all += sample->weight;
		if (sample->end & AS_SAMPLE_KERNEL)
			kernel += sample->weight;
		if (sample->thread < m->threads.n)
			thread[sample->thread] += sample->weight;
	}
	for (size_t i = 0; i < m->threads.n; i++)
		busy += thread[i] >= THREAD_WORTH * all && all > 0;
	if (all > 0 && kernel >= WORTH_KERNEL * all && !s->q->asked->no_kernel) {
		struct step *step = add(s, kernel / all);

		as_buf_adds(&step->command, "assay report --no-kernel");
		add_file(s, step);
		as_buf_addf(&step->why, "who asks the kernel: %.1f %%", kernel / all * 100);
	}
	if (busy >= 2 && s->q->asked->by != AS_BY_THREAD) {
		struct step *step = add(s, 0.06);

		as_buf_adds(&step->command, "assay report --by thread");
		add_file(s, step);
		as_buf_addf(&step->why, "%zu threads carry the load", busy);
	}
}

/* Time spread over many functions has its shape in larger units. */
static void spread(struct steps *s)
{
	bool has_crates = false;

	as_vec_foreach (row, &s->q->flat->rows) {
		if (row->self.value >= WORTH)
			return;
		has_crates |= row->crate && *row->crate;
	}
	if (!s->q->flat->rows.n || s->q->asked->by != AS_BY_FUNCTION)
		return;

	struct step *step = add(s, 0.05);

	as_buf_addf(&step->command, "assay report --by %s", has_crates ? "crate" : "module");
	add_file(s, step);
	as_buf_addf(&step->why, "no function stands out: the %s",
		    has_crates ? "crates" : "modules");
}

static int by_worth(const void *a, const void *b)
{
	const struct step *x = a, *y = b;

	return (x->worth < y->worth) - (x->worth > y->worth);
}

static void view_step(struct steps *s)
{
	struct step *step = add(s, -1);

	as_buf_adds(&step->command, "assay view");
	add_file(s, step);
	as_buf_adds(&step->why, "everything, in the browser");
}

void as_next_make(const struct as_next_request *q, struct as_next_steps *ret)
{
	struct steps s = {.q = q};

	if (!q->model->samples.n)
		return;
	allocations(&s);
	hot_foreign(&s);
	hot_own(&s);
	dispatcher(&s);
	spread(&s);
	by_sample(&s);
	if (s.v.n)
		qsort(s.v.v, s.v.n, sizeof *s.v.v, by_worth);
	while (s.v.n >= STEPS) {
		s.v.n--;
		as_buf_clear(&s.v.v[s.v.n].command);
		as_buf_clear(&s.v.v[s.v.n].why);
	}
	if (!q->in_page)
		view_step(&s);
	as_vec_foreach (step, &s.v) {
		as_vec_push(ret,
			    (struct as_next_step){
				    .command = as_arena_strdup(&ret->arena,
							       as_buf_str(&step->command)),
				    .why = as_arena_strdup(&ret->arena, as_buf_str(&step->why)),
			    });
		as_buf_clear(&step->command);
		as_buf_clear(&step->why);
	}
	as_vec_clear(&s.v);
}

void as_next_clear(struct as_next_steps *s)
{
	as_vec_clear(s);
	as_arena_clear(&s->arena);
}
