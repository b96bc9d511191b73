/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What stands above and below an annotated function: figures, skid, trust, next steps. */
#include <math.h>
#include <string.h>

#include "base/sys.h"
#include "view/annotate/annotate_priv.h"
#include "view/memory/memory.h"
#include "view/report/next.h"
#include "view/report/report.h"
#include "view/report/trust.h"

enum { LABEL = 7, OTHERS_MAX = 4, HOSTS_MAX = 3, FEW = 100, ENOUGH = 30 };
/* Of the function's samples: a callee that is worth a look of its own. */
static const double WORTH_CALLEE = 0.2;
static const double WORTH_EXAMPLE = 0.1; /* likewise: an instruction to explain skid by */

static void words(struct as_buf *out, const struct as_style *style, const char *label,
		  const struct as_buf *text)
{
	as_block_label(out, style, label);
	as_block_words(out, style, LABEL, as_buf_str(text));
}

static const char *shown_name(const struct as_m_function *f, const struct as_style *style)
{
	return style->full_names ? f->full : f->brief;
}

/* ---- above ---- */

static void function_line(const struct as_an_tree *t, const struct as_style *style,
			  struct as_buf *out)
{
	const struct as_annotation *a = t->v->a;
	const struct as_m_function *f = &a->model->functions.v[a->function];
	struct as_row row = {
		.name = f->brief, .file = f->file, .crate = "", .line = f->line, .module = ""};
	struct as_buf where = {0}, clean = {0};
	const char *name = shown_name(f, style);
	size_t wn, ww;

	if (f->file[0]) {
		as_style_file(&where, a->model, &row);
		as_an_shorten_path(&where);
		if (f->line)
			as_buf_addf(&where, ":%u", f->line);
	}
	if (f->module != AS_NONE) {
		as_buf_adds(&where, where.len ? " · " : "");
		as_buf_adds(&where, a->model->modules.v[f->module].name);
	}
	as_fmt_quoted(&clean, as_buf_str(&where), where.len);
	ww = as_text_width(as_buf_str(&clean), clean.len);
	as_style_ink(style, out, AS_INK_STRONG);
	wn = out->len;
	if (style->full_names)
		as_fmt_quoted(out, name, strlen(name));
	else
		as_style_cut(out, name, (size_t)style->width);
	wn = as_text_width(out->p + wn, out->len - wn);
	as_style_ink(style, out, AS_INK_PLAIN);
	if (ww && wn + 3 + ww <= (size_t)style->width)
		as_buf_adds(out, "   ");
	else if (ww)
		as_buf_adds(out, "\n  ");
	as_style_cut(out, as_buf_str(&clean), (size_t)style->width - 2);
	as_buf_addc(out, '\n');
	as_buf_clear(&where);
	as_buf_clear(&clean);
}

static void add_figure(struct as_buf *b, const char *word, const struct as_share *s)
{
	as_buf_adds(b, b->len ? " · " : "");
	as_buf_adds(b, word);
	as_style_share(b, s);
	as_buf_adds(b, " %");
}

/* "45.2 KiB" of the measure. */
static void add_amount(struct as_buf *b, const struct as_annotation *a,
		       const struct as_share *s)
{
	as_buf_adds(b, ", ");
	as_memory_amount(a->model, s->value * a->weight, b);
}

static void memory_figures(const struct as_annotation *a, struct as_buf *b)
{
	const struct as_cost *c = &a->of_all;

	add_figure(b, "self ", &c->self);
	add_amount(b, a, &c->self);
	if (c->total.value > c->self.value) {
		add_figure(b, "total ", &c->total);
		add_amount(b, a, &c->total);
	}
	as_buf_addf(b, " (%s, of ", as_measure_name(a->model->measure));
	as_memory_amount(a->model, a->weight, b);
	as_buf_addc(b, ')');
}

static void figures_line(const struct as_an_tree *t, const struct as_style *style,
			 struct as_buf *out)
{
	const struct as_annotation *a = t->v->a;
	const struct as_cost *c = &a->of_all;
	struct as_buf b = {0};

	if (!c->total.samples) {
		as_buf_adds(&b, as_model_is_counted(a->model)
					? "nothing is allocated in this function"
					: "no samples in this function");
	} else if (as_model_is_counted(a->model)) {
		memory_figures(a, &b);
	} else {
		add_figure(&b, "self ", &c->self);
		if (c->code.samples != c->self.samples)
			add_figure(&b, "with inlined code ", &c->code);
		if (c->total.samples != c->code.samples)
			add_figure(&b, "total ", &c->total);
		as_buf_adds(&b, " (");
		as_fmt_count(&b, c->total.samples);
		as_buf_adds(&b, " of ");
		as_fmt_count(&b, a->samples);
		as_buf_adds(&b, " samples)");
	}
	as_block_words(out, style, 0, b.p);
	as_buf_clear(&b);
	as_report_filters(&a->query, &b);
	if (b.len) {
		as_buf_adds(&b, ": shares are of ");
		as_buf_adds(&b, a->query.thread || a->query.from_ns || a->query.to_ns
					? "the samples in scope"
					: "all samples");
		as_block_words(out, style, 0, b.p);
	}
	if (t->v->q->of == AS_ANNOTATE_FUNCTION)
		as_buf_adds(out, "below, shares are of the samples in this function\n");
	as_buf_clear(&b);
}

/* "only inlined: its code is in a, b and 3 more" */
static void hosts_line(const struct as_an_tree *t, const struct as_style *style,
		       struct as_buf *out)
{
	const struct as_annotation *a = t->v->a;
	struct as_buf b = {0};
	size_t n = 0;
	bool itself = false;

	as_vec_foreach (h, &a->hosts) {
		const char *name = shown_name(&a->model->functions.v[*h], style);

		if (*h == a->function) {
			itself = true;
			continue;
		}
		if (n++ >= HOSTS_MAX)
			continue;
		as_buf_adds(&b, b.len ? ", " : "");
		as_buf_adds(&b, name);
	}
	if (!n)
		return;
	if (n > HOSTS_MAX)
		as_buf_addf(&b, " and %zu more", n - HOSTS_MAX);

	struct as_buf line = {0};

	as_buf_adds(&line, itself ? "also inlined into " : "inlined: its code stands in ");
	as_buf_adds(&line, b.p);
	as_block_words(out, style, 0, line.p);
	as_buf_clear(&line);
	as_buf_clear(&b);
}

/* Names that differ in nothing but their parameters are told by their full ones. */
static void others_line(const struct as_an_tree *t, const struct as_style *style,
			struct as_buf *out)
{
	const struct as_annotation *a = t->v->a;
	const struct as_function_matches *f = t->v->matches;
	const struct as_m_function *shown = &a->model->functions.v[a->function];
	struct as_buf b = {0};
	size_t n = 0;

	for (size_t i = 0; f && i < f->v.n; i++) {
		const struct as_function_match *m = &f->v.v[i];
		const struct as_m_function *g = &a->model->functions.v[m->function];

		if (m->function == a->function || !m->total.samples || m->fit != f->v.v[0].fit)
			continue;
		if (n++ >= OTHERS_MAX)
			continue;
		as_buf_adds(&b, n > 1 ? ", " : "");
		as_buf_adds(&b, strcmp(g->brief, shown->brief) == 0 ? g->full : g->brief);
		as_buf_addf(&b, " (self %.1f %%, total %.1f %%)", m->self.value * 100,
			    m->total.value * 100);
	}
	if (!n)
		return;
	if (n > OTHERS_MAX)
		as_buf_addf(&b, " and %zu more", n - OTHERS_MAX);

	struct as_buf line = {0};

	as_buf_adds(&line, "the name also fits ");
	as_buf_adds(&line, b.p);
	as_buf_adds(&line, "; a full name chooses");
	as_block_words(out, style, 0, line.p);
	as_buf_clear(&line);
	as_buf_clear(&b);
}

void as_an_header(const struct as_an_tree *t, const struct as_style *style, struct as_buf *out)
{
	function_line(t, style, out);
	figures_line(t, style, out);
	hosts_line(t, style, out);
	others_line(t, style, out);
	as_buf_addc(out, '\n');
}

/* ---- below ---- */

/* Lines that these samples cannot rank, and how long a recording could. */
static void lines_line(const struct as_an_tree *t, const struct as_style *style,
		       struct as_buf *out)
{
	const struct as_annotation *a = t->v->a;
	struct as_row first = {0}, second = {0};
	struct as_buf b = {0};
	double more;
	uint64_t code = a->of_all.code.samples;

	if (!a->lines_tied && (code >= FEW || code * 5 < a->of_all.total.samples))
		return;
	as_vec_foreach (p, &a->places) {
		if (p->parent != AS_NONE)
			continue;
		if (p->of_all.code.value > first.self.value) {
			second = first;
			first.self = p->of_all.code;
		} else if (p->of_all.code.value > second.self.value) {
			second.self = p->of_all.code;
		}
	}
	as_fmt_count(&b, a->of_all.code.samples);
	as_buf_adds(&b, a->of_all.code.samples == 1 ? " sample" : " samples");
	as_buf_adds(&b, " in this code: ");
	as_buf_adds(&b, !a->lines_tied ? "its instructions cannot be told apart"
			: a->of_all.code.samples < FEW
				? "lines cannot be told apart"
				: "the two hottest lines cannot be ranked");
	more = a->lines_tied ? as_report_more_seconds(&first, &second,
						      (double)a->model->summary.wall_ns / 1e9)
			     : 0;
	if (more > 0 && more <= 600)
		as_buf_addf(&b, "; %.0f %s more recording would tell",
			    ceil(more < 90 ? more : more / 60), more < 90 ? "s" : "min");
	else if (a->of_all.code.samples < FEW)
		as_buf_adds(&b, "; record longer, or with a higher --rate");
	words(out, style, "lines", &b);
	as_buf_clear(&b);
}

const char *as_an_skid_class(const struct as_annotation *a)
{
	const char *event = as_model_info(a->model, "event");

	if (strcmp(event, "cpu-clock") == 0)
		return "timer";
	return *event ? "counter" : "unknown";
}

static double self_of(const struct as_an_tree *t, uint32_t insn)
{
	uint32_t c = t->insns.v[insn].cost;

	return c == AS_NONE ? 0 : t->v->a->insns.v[c].of_function.self.value;
}

static bool in_kernel(const struct as_annotation *a)
{
	uint32_t m = a->model->functions.v[a->function].module;

	return m != AS_NONE && (a->model->modules.v[m].kind == AS_MODULE_KERNEL ||
				a->model->modules.v[m].kind == AS_MODULE_KMOD);
}

void as_an_skid(const struct as_annotation *a, struct as_buf *out)
{
	const char *class = as_an_skid_class(a);

	if (strcmp(class, "timer") == 0)
		as_buf_adds(
			out,
			"timer samples: the cost stands where the timer's interrupt met the "
			"program, one or a few instructions after the one that took the "
			"time; in a virtual machine it may come later still");
	else if (strcmp(class, "counter") == 0)
		as_buf_adds(out, "counter samples: the cost stands a few instructions after "
				 "the one that took the time");
	else
		as_buf_adds(out, "how far samples lie from their cause is not recorded");
	if (in_kernel(a))
		as_buf_adds(out, "; what the kernel runs with interrupts off is charged where "
				 "they are on again");
	else
		as_buf_adds(out, "; time in the kernel is charged to the instruction that "
				 "entered it");
}

/* Where the cost of the hottest instruction may have been made: the one that runs before it. */
static void skid_example(const struct as_an_tree *t, struct as_buf *out)
{
	const struct as_an_insn *hot = NULL, *before;

	as_vec_foreach (i, &t->insns) {
		uint32_t n = (uint32_t)(i - t->insns.v);

		if (i->text && i->cost != AS_NONE &&
		    (!hot || self_of(t, n) > self_of(t, (uint32_t)(hot - t->insns.v))))
			hot = i;
	}
	if (!hot || hot == t->insns.v ||
	    self_of(t, (uint32_t)(hot - t->insns.v)) < WORTH_EXAMPLE ||
	    t->v->a->insns.v[hot->cost].of_all.self.samples < ENOUGH)
		return;
	before = hot - 1;
	if (!before->text || before->svma + before->text->len != hot->svma ||
	    before->text->kind == AS_INSN_JUMP || before->text->kind == AS_INSN_RETURN)
		return;
	as_buf_addf(out, "; the %.1f %% at %llx may belong to '",
		    t->v->a->insns.v[hot->cost].of_all.self.value * 100,
		    (unsigned long long)hot->svma);
	as_buf_adds(out, before->text->text);
	as_buf_adds(out, "' before it");
}

static void notes_lines(const struct as_an_tree *t, const struct as_style *style,
			struct as_buf *out)
{
	const struct as_listing *l = t->v->l;
	const char *label = "text";

	as_vec_foreach (f, &l->files) {
		struct as_buf b = {0};

		if (!f->why || !*f->why || f->lines.n)
			continue;
		if (f !=
		    l->files.v) /* of an inlined function: its cost stands, its text does not matter much */
			break;
		as_buf_adds(&b, f->why);
		if (!t->v->q->roots && strstr(f->why, "not found"))
			as_buf_adds(&b, "; --source-root FOLDER looks below that, too");
		words(out, style, label, &b);
		label = "";
		as_buf_clear(&b);
	}
	as_vec_foreach (n, &l->notes) {
		struct as_buf b = {0};

		as_buf_adds(&b, *n);
		words(out, style, label, &b);
		label = "";
		as_buf_clear(&b);
	}
}

static void add_name(const struct as_an_tree *t, uint32_t function, struct as_buf *b)
{
	const struct as_m_function *f = &t->v->a->model->functions.v[function];

	as_style_shell(b, f->brief);
	if (t->v->q->file && as_style_plain(t->v->q->file)) {
		as_buf_addc(b, ' ');
		as_style_shell(b, t->v->q->file);
	}
}

static void add_step(struct as_next_steps *s, const struct as_an_tree *t, const char *command,
		     uint32_t function, const char *why)
{
	struct as_buf b = {0};

	as_buf_adds(&b, command);
	add_name(t, function, &b);
	as_vec_push(s, (struct as_next_step){.command = as_arena_strdup(&s->arena, b.p),
					     .why = as_arena_strdup(&s->arena, why)});
	as_buf_clear(&b);
}

/* The heaviest function called from here that has a name to ask for; AS_NONE: none is worth it. */
static uint32_t heavy_callee(const struct as_annotation *a, double *ret)
{
	uint32_t best = AS_NONE;
	double most = WORTH_CALLEE * a->of_all.total.value;

	as_vec_foreach (c, &a->calls) {
		const struct as_m_function *f = &a->model->functions.v[c->function];

		if (c->of_all.value < most || c->function == a->function ||
		    (f->flags & AS_FUNCTION_SYNTHETIC) || !as_style_plain(f->brief))
			continue;
		most = c->of_all.value;
		best = c->function;
	}
	*ret = most;
	return best;
}

static void next_steps(const struct as_an_tree *t, const struct as_an_rows *rows,
		       const struct as_style *style, struct as_buf *out)
{
	const struct as_annotation *a = t->v->a;
	struct as_next_steps steps = {0};
	struct as_buf why = {0};
	double most = 0;
	uint32_t callee = heavy_callee(a, &most);

	if (!as_style_plain(a->model->functions.v[a->function].brief))
		return;
	if (callee != AS_NONE) {
		as_buf_addf(&why, "called from here: %.1f %%", most * 100);
		add_step(&steps, t, "assay annotate ", callee, why.p);
	}
	add_step(&steps, t, "assay report --callers ", a->function, "who calls it");
	if (!rows->by_address && t->insns.n)
		add_step(&steps, t, "assay annotate --asm-only ", a->function,
			 "its code by address");
	else if (rows->anything_folded && !t->v->q->full)
		add_step(&steps, t, "assay annotate --full ", a->function, "nothing folded");
	as_next_print(&steps, style, out);
	as_next_clear(&steps);
	as_buf_clear(&why);
}

void as_an_footer(const struct as_an_tree *t, const struct as_an_rows *rows,
		  const struct as_style *style, struct as_buf *out)
{
	struct as_buf b = {0};

	as_buf_addc(out, '\n');
	notes_lines(t, style, out);
	if (t->v->a->of_all.total.samples && !as_model_is_counted(t->v->a->model)) {
		lines_line(t, style, out);
		as_an_skid(t->v->a, &b);
		skid_example(t, &b);
		words(out, style, "skid", &b);
		as_buf_clear(&b);
	}
	as_trust_text(t->v->a->model, style, out);
	next_steps(t, rows, style, out);
}
