/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Results as GitHub's Markdown: see report.h. */
#include <math.h>
#include <string.h>

#include "base/sys.h"
#include "results/report.h"

/* A cell's text: nothing in it is markup, and it does not end the cell. */
static void plain(struct as_buf *out, const char *text)
{
	AS_CLEANUP(as_buf_clear) struct as_buf clean = {0};

	as_fmt_quoted(&clean, text, strlen(text));
	for (const char *p = as_buf_str(&clean); *p; p++) {
		if (*p == '<')
			as_buf_adds(out, "&lt;");
		else if (*p == '&')
			as_buf_adds(out, "&amp;");
		else if (*p == '@') /* nobody is to be notified */
			as_buf_adds(out, "@\xe2\x80\x8b");
		else if (strchr("\\`*_|[]#~$", *p))
			as_buf_addf(out, "\\%c", *p);
		else
			as_buf_addc(out, *p);
	}
}

static void time_cell(const struct as_bench *b, struct as_buf *out)
{
	double half;

	if (!b) {
		as_buf_adds(out, " |");
		return;
	}
	half = (b->time.high - b->time.low) / 2 / b->time.value;
	as_buf_addc(out, ' ');
	as_bench_value(out, b->unit, b->time.value);
	if (half > 0 && half < 10)
		as_buf_addf(out, " ±%.1f %%", 100 * half);
	as_buf_adds(out, " |");
}

static void note_lines(const struct as_bench_notes *notes, const char *about,
		       struct as_buf *out)
{
	as_vec_foreach (n, notes) {
		as_buf_adds(out, "* ");
		if (about) {
			plain(out, about);
			as_buf_adds(out, ": ");
		}
		plain(out, n->text);
		as_buf_addc(out, '\n');
	}
}

/* ---- comparisons ---- */

static bool is_news(const struct as_bench_comparison *c)
{
	return !c->stored && c->verdict != AS_BENCH_EQUAL;
}

static void comparison_row(const struct as_bench_set *s, const struct as_bench_comparison *c,
			   struct as_buf *out)
{
	bool loud = c->verdict == AS_BENCH_SLOWER || c->verdict == AS_BENCH_FASTER;
	const char *word = c->stored ? "trend" : as_bench_verdict_name(c->verdict);

	as_buf_adds(out, "| ");
	plain(out, c->name ? c->name : "");
	as_buf_adds(out, " |");
	time_cell(as_bench_side(s, c, 0), out);
	time_cell(as_bench_side(s, c, 1), out);
	as_buf_addc(out, ' ');
	as_bench_change(out, &c->ratio);
	as_buf_addf(out, loud ? " | **%s** |\n" : " | %s |\n", word);
}

static void comparison_table(const struct as_bench_set *s, bool news, struct as_buf *out)
{
	static const enum as_bench_verdict order[] = {AS_BENCH_SLOWER, AS_BENCH_FASTER,
						      AS_BENCH_MOVED, AS_BENCH_UNDECIDED,
						      AS_BENCH_EQUAL};

	as_buf_adds(out, "| benchmark | before | now | change (95 %) | verdict |\n"
			 "|:--|--:|--:|--:|:--|\n");
	for (size_t i = 0; i < AS_ARRAY_LEN(order); i++) {
		as_vec_foreach (c, &s->comparisons) {
			if (c->verdict == order[i] && is_news(c) == news)
				comparison_row(s, c, out);
		}
	}
	as_buf_addc(out, '\n');
}

static void comparisons(const struct as_bench_set *s, struct as_buf *out)
{
	size_t news = 0, rest;

	as_vec_foreach (c, &s->comparisons)
		news += is_news(c);
	rest = s->comparisons.n - news;
	if (news)
		comparison_table(s, true, out);
	if (!rest)
		return;
	if (news || rest > 10)
		as_buf_addf(out,
			    "<details><summary>%zu without a change to report</summary>\n\n",
			    rest);
	comparison_table(s, false, out);
	if (news || rest > 10)
		as_buf_adds(out, "</details>\n\n");
}

/* ---- benchmarks ---- */

static bool is_side(const struct as_bench_set *s, const struct as_bench *b)
{
	as_vec_foreach (c, &s->comparisons) {
		if (as_bench_side(s, c, 0) == b || as_bench_side(s, c, 1) == b)
			return true;
	}
	return false;
}

static void bench_row(const struct as_bench *b, bool rates, bool memory, struct as_buf *out)
{
	as_buf_adds(out, "| ");
	plain(out, b->name ? b->name : "");
	as_buf_adds(out, " |");
	time_cell(b, out);
	if (rates) {
		as_buf_addc(out, ' ');
		as_bench_rate(out, b);
		as_buf_adds(out, " |");
	}
	if (memory && isnan(b->allocs))
		as_buf_adds(out, " |");
	else if (memory)
		as_buf_addf(out, " %g |", b->allocs);
	as_buf_addc(out, '\n');
}

static void benches(const struct as_bench_set *s, struct as_buf *out)
{
	bool rates = false, memory = false;
	size_t n = 0;

	as_vec_foreach (b, &s->benches) {
		n += !is_side(s, b);
		rates |= b->throughput != AS_THRPT_NONE;
		memory |= !isnan(b->allocs);
	}
	if (!n)
		return;
	as_buf_addf(out, "| benchmark | estimate (95 %%) |%s%s\n|:--|--:|%s%s\n",
		    rates ? " rate |" : "", memory ? " allocations |" : "", rates ? "--:|" : "",
		    memory ? "--:|" : "");
	as_vec_foreach (b, &s->benches) {
		if (!is_side(s, b))
			bench_row(b, rates, memory, out);
	}
	as_buf_addc(out, '\n');
}

static void footer(const struct as_bench_set *s, struct as_buf *out)
{
	const char *const parts[] = {s->tool, s->machine, s->toolchain, s->revision};
	bool any = false;

	for (size_t i = 0; i < AS_ARRAY_LEN(parts); i++) {
		if (!parts[i])
			continue;
		as_buf_adds(out, any ? " · " : "<sub>");
		plain(out, parts[i]);
		any = true;
	}
	if (any)
		as_buf_adds(out, "</sub>\n");
}

void as_bench_markdown(const struct as_bench_set *s, struct as_buf *out)
{
	AS_CLEANUP(as_buf_clear) struct as_buf tally = {0};
	size_t before;

	as_bench_tally(&tally, s);
	as_buf_adds(out, "### Benchmarks");
	if (tally.len)
		as_buf_addf(out, ": %s", tally.p);
	as_buf_adds(out, "\n\n");
	comparisons(s, out);
	benches(s, out);
	before = out->len;
	as_vec_foreach (c, &s->complexities) {
		as_buf_adds(out, "* growth of ");
		plain(out, c->name);
		as_buf_addf(out, " over %s: %s\n", c->param ? c->param : "n",
			    c->best ? c->best : "");
	}
	note_lines(&s->notes, NULL, out);
	as_vec_foreach (c, &s->comparisons)
		note_lines(&c->notes, c->name, out);
	as_vec_foreach (b, &s->benches)
		note_lines(&b->notes, b->name, out);
	if (out->len > before)
		as_buf_addc(out, '\n');
	footer(s, out);
}
