/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "view/memory/leaks.h"

#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "view/text/table.h"
#include "view/report/trust.h"

enum { SHOWN = 10, FRAMES = 6, INDENT = 7 };

/* ---- stacks ---- */

static const char *name_of(const struct as_model *m, const struct as_style *style,
			   uint32_t function)
{
	const struct as_m_function *f = &m->functions.v[function];

	return style && !style->full_names ? f->brief : f->full;
}

/* Innermost first; at most max names, inlined ones among them. Returns how many there are in all. */
static size_t stack_names(const struct as_model *m, const struct as_style *style,
			  uint32_t stack, const char **ret, size_t max)
{
	size_t n = 0;

	for (; stack != AS_NONE; stack = m->stacks.v[stack].parent) {
		const struct as_m_frame *f = &m->frames.v[m->stacks.v[stack].frame];

		for (uint32_t i = 0; i < f->nchain; i++, n++) {
			if (n < max)
				ret[n] = name_of(m, style, m->places.v[f->chain + i].function);
		}
	}
	return n;
}

static void add_stack(const struct as_model *m, const struct as_style *style, uint32_t stack,
		      struct as_buf *out)
{
	const char *name[FRAMES];
	size_t n = stack_names(m, style, stack, name, FRAMES);

	if (n == 0)
		as_buf_adds(out, "(no stack)");
	for (size_t i = 0; i < AS_MIN(n, (size_t)FRAMES); i++) {
		as_buf_adds(out, i ? " ← " : "");
		as_buf_adds(out, name[i]);
	}
	if (n > FRAMES) {
		as_buf_adds(out, " ← … ");
		as_fmt_count(out, n - FRAMES);
		as_buf_adds(out, " more");
	}
}

/* ---- leaks ---- */

static void add_sum(struct as_buf *b, const struct as_leak_sum *s)
{
	as_fmt_bytes(b, s->bytes);
	as_buf_adds(b, " in ");
	as_fmt_count(b, s->blocks);
	as_buf_adds(b, s->blocks == 1 ? " block" : " blocks");
}

static void lines(struct as_buf *out, const struct as_style *style, const char *label,
		  const struct as_buf *text)
{
	as_block_label(out, style, label);
	as_block_words(out, style, INDENT, as_buf_str(text));
}

static void add_when(const struct as_model *m, struct as_buf *b)
{
	bool at_exit = true;

	as_vec_foreach (k, &m->heap.look.leaks)
		at_exit &= k->flags & 1;
	as_buf_adds(b, at_exit ? "when the program ended" : "when it was looked for");
}

static void owner_line(const struct as_model *m, const struct as_style *style,
		       const struct as_leak_owner *o, struct as_buf *out)
{
	struct as_buf b = {0};

	add_sum(&b, &o->lost);
	if (o->owned.blocks) {
		as_buf_adds(&b, ", and ");
		add_sum(&b, &o->owned);
		as_buf_adds(&b, " that they lead to");
	}
	if (as_leak_grows(o))
		as_buf_addf(&b, ", growing in %lu of %lu steps", (unsigned long)o->growth_rises,
			    (unsigned long)o->growth_steps);
	as_buf_adds(&b, ": ");
	add_stack(m, style, o->stack, &b);
	lines(out, style, "", &b);
	as_buf_clear(&b);
}

static void add_class(struct as_buf *b, const char *what, const struct as_leak_sum *s)
{
	if (!s->blocks)
		return;
	as_buf_adds(b, b->len ? " · " : "");
	as_buf_adds(b, what);
	as_buf_addc(b, ' ');
	add_sum(b, s);
}

static void other_classes(const struct as_leak_owner *sum, const struct as_style *style,
			  struct as_buf *out)
{
	struct as_buf b = {0};

	add_class(&b, "possibly lost (only pointers into them)", &sum->possible);
	add_class(&b, "still reachable", &sum->reachable);
	add_class(&b, "kept by the runtime", &sum->runtime);
	if (b.len)
		lines(out, style, "", &b);
	as_buf_clear(&b);
}

static void rest_line(const struct as_leak_list *l, size_t shown, const struct as_style *style,
		      struct as_buf *out)
{
	struct as_leak_sum rest = {0, 0};
	struct as_buf b = {0};
	size_t n = 0;

	for (size_t i = shown; i < l->owners.n; i++) {
		const struct as_leak_owner *o = &l->owners.v[i];

		n += o->lost.blocks > 0;
		rest.blocks += o->lost.blocks + o->owned.blocks;
		rest.bytes += o->lost.bytes + o->owned.bytes;
	}
	if (!n)
		return;
	as_buf_adds(&b, "… ");
	as_fmt_count(&b, n);
	as_buf_adds(&b, n == 1 ? " more stack, " : " more stacks, together ");
	add_sum(&b, &rest);
	lines(out, style, "", &b);
	as_buf_clear(&b);
}

/* Live at the end, grew all the time, and not lost: a cache without a limit, or a list that is only added
 * to. */
static void growing_lines(const struct as_model *m, const struct as_leak_list *l,
			  const struct as_style *style, struct as_buf *out)
{
	size_t shown = 0;

	as_vec_foreach (o, &l->owners) {
		struct as_buf b = {0};

		if (o->lost.blocks || !as_leak_grows(o) || shown++ >= 3)
			continue;
		as_buf_adds(&b, "not lost, but it grew in ");
		as_buf_addf(&b, "%lu of %lu steps of the run to ",
			    (unsigned long)o->growth_rises, (unsigned long)o->growth_steps);
		as_fmt_bytes(&b, o->live_bytes);
		as_buf_adds(&b, ": ");
		add_stack(m, style, o->stack, &b);
		lines(out, style, "", &b);
		as_buf_clear(&b);
	}
}

void as_leaks_text(const struct as_model *m, const struct as_style *style, struct as_buf *out)
{
	struct as_leak_list l;
	struct as_buf b = {0};
	size_t shown = 0;

	if (!m->heap.look.leaks.n)
		return;
	as_model_leaks(m, &l);
	if (l.sum.lost.blocks) {
		add_sum(&b, &l.sum.lost);
		as_buf_adds(&b, l.sum.lost.blocks == 1 ? " was lost " : " were lost ");
		add_when(m, &b);
		as_buf_adds(&b, ": nothing pointed to them");
		if (l.sum.owned.blocks) {
			as_buf_adds(&b, "; they lead to ");
			add_sum(&b, &l.sum.owned);
		}
	} else {
		as_buf_adds(&b, "nothing was lost ");
		add_when(m, &b);
	}
	lines(out, style, "leaks", &b);
	while (shown < l.owners.n && shown < SHOWN && l.owners.v[shown].lost.blocks)
		owner_line(m, style, &l.owners.v[shown++], out);
	rest_line(&l, shown, style, out);
	other_classes(&l.sum, style, out);
	growing_lines(m, &l, style, out);
	as_buf_clear(&b);
	as_leak_list_clear(&l);
}

/* ---- as JSON ---- */

static void sum_json(struct as_json *j, const char *key, const struct as_leak_sum *s)
{
	as_json_obj(j, key);
	as_json_u64(j, "bytes", s->bytes);
	as_json_u64(j, "blocks", s->blocks);
	as_json_end(j);
}

static void stack_json(const struct as_model *m, uint32_t stack, struct as_json *j)
{
	size_t n = stack_names(m, NULL, stack, NULL, 0);
	const char **name = as_xreallocarray(NULL, n + 1, sizeof *name);

	n = stack_names(m, NULL, stack, name, n);
	as_json_arr(j, "stack");
	for (size_t i = 0; i < n; i++)
		as_json_str(j, NULL, name[i]);
	as_json_end(j);
	free(name);
}

static void sums_json(struct as_json *j, const struct as_leak_owner *o)
{
	sum_json(j, "lost", &o->lost);
	sum_json(j, "indirect", &o->owned);
	sum_json(j, "possible", &o->possible);
	sum_json(j, "reachable", &o->reachable);
	sum_json(j, "runtime", &o->runtime);
}

static void looks_json(const struct as_model *m, struct as_json *j)
{
	as_json_arr(j, "processes");
	as_vec_foreach (k, &m->heap.look.leaks) {
		as_json_obj(j, NULL);
		as_json_u64(j, "pid", m->processes.v[k->process].pid);
		as_json_bool(j, "at_exit", k->flags & 1);
		as_json_num(j, "pause_s", (double)k->pause_ns / 1e9, 6);
		as_json_num(j, "cpu_s", (double)k->cpu_ns / 1e9, 6);
		as_json_u64(j, "threads", k->threads);
		as_json_u64(j, "scanned_bytes", k->scanned_bytes);
		as_json_u64(j, "unread_bytes", k->unread_bytes);
		as_json_u64(j, "pointers_beyond", k->beyond);
		as_json_end(j);
	}
	as_json_end(j);
}

void as_leaks_json(const struct as_model *m, struct as_json *j)
{
	struct as_leak_list l;

	if (!m->heap.look.leaks.n) {
		as_json_null(j, "leaks");
		return;
	}
	as_model_leaks(m, &l);
	as_json_obj(j, "leaks");
	sums_json(j, &l.sum);
	looks_json(m, j);
	as_json_arr(j, "stacks");
	as_vec_foreach (o, &l.owners) {
		as_json_obj(j, NULL);
		as_json_u64(j, "pid", m->processes.v[o->process].pid);
		sums_json(j, o);
		as_json_u64(j, "live_bytes", o->live_bytes);
		as_json_u64(j, "freed_at_exit_bytes", o->exit_bytes);
		as_json_i64(j, "growth_bytes", o->growth_bytes);
		as_json_bool(j, "grows", as_leak_grows(o));
		stack_json(m, o->stack, j);
		as_json_end(j);
	}
	as_json_end(j);
	as_json_end(j);
	as_leak_list_clear(&l);
}
