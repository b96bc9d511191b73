/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "view/memory/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"

static const char *describe(enum as_measure measure)
{
	static const char *const text[] = {
		[AS_MEASURE_TIME] = "",
		[AS_MEASURE_ALLOCS] = "calls that allocate",
		[AS_MEASURE_BYTES] = "bytes asked for",
		[AS_MEASURE_LIVE] = "bytes that are allocated at the end",
		[AS_MEASURE_PEAK] = "bytes that were allocated when the whole was at its peak",
		[AS_MEASURE_CHURN] =
			"blocks freed before their thread had made 1,024 more allocations",
		[AS_MEASURE_GROWTH] = "bytes grown over the run, as a line through it",
		[AS_MEASURE_LEAKED] =
			"bytes that nothing points to, and what only these lead to",
		[AS_MEASURE_MAPPED] = "bytes mapped when mappings were at their peak",
		[AS_MEASURE_ALLOC_TIME] =
			"CPU time in allocators and in page faults, of all CPU time",
	};

	return text[measure];
}

uint64_t as_memory_whole(double amount)
{
	if (!(amount > 0))
		return 0;
	return amount < 0x1p63 ? (uint64_t)llround(amount) : INT64_MAX;
}

void as_memory_amount(const struct as_model *m, double amount, struct as_buf *out)
{
	uint64_t n = as_memory_whole(amount);

	if (as_measure_is_bytes(m->measure))
		as_fmt_bytes(out, n);
	else
		as_fmt_count(out, n);
}

static uint64_t asked_for(const struct as_model *m)
{
	uint64_t bytes = 0;

	as_vec_foreach (row, &m->heap.rows)
		bytes += row->r.domain == 0 ? row->r.bytes : 0;
	return bytes;
}

static void add_counted(struct as_buf *b, uint64_t n, const char *one)
{
	as_fmt_count(b, n);
	as_buf_addf(b, " %s%s", one, n == 1 ? "" : "s");
}

/* "live at 'loaded' (1.2 s after the start): bytes …" */
static void add_mark(const struct as_model *m, struct as_buf *b)
{
	as_buf_adds(b, "live at '");
	as_fmt_quoted(b, m->heap.at, strlen(m->heap.at));
	as_buf_addc(b, '\'');
	if (m->heap.at_ns > m->recording.start_ns) {
		as_buf_adds(b, " (");
		as_fmt_duration(b, m->heap.at_ns - m->recording.start_ns);
		as_buf_adds(b, " after the start)");
	}
	as_buf_adds(b, ": bytes that were allocated then");
}

static void header_figures(const struct as_model *m, const struct as_style *style,
			   struct as_buf *out)
{
	struct as_rec_heap_process sum;
	struct as_buf b = {0};

	as_model_heap_sum(m, &sum);
	as_buf_adds(&b, "peak ");
	as_fmt_bytes(&b, sum.peak_bytes);
	if (sum.peak_ns > m->recording.start_ns) {
		as_buf_adds(&b, " after ");
		as_fmt_duration(&b, sum.peak_ns - m->recording.start_ns);
	} else if (m->heap.processes.n > 1) {
		as_buf_adds(&b, " (each process at its own)");
	}
	as_buf_adds(&b, " · live at the end ");
	as_fmt_bytes(&b, sum.live_bytes);
	as_buf_adds(&b, " in ");
	add_counted(&b, sum.live_blocks, "block");
	as_buf_adds(&b, " · ");
	add_counted(&b, sum.allocs, "allocation");
	as_buf_adds(&b, " of ");
	as_fmt_bytes(&b, asked_for(m));
	if (sum.mapped_peak_bytes) {
		as_buf_adds(&b, " · mapped apart from that: ");
		as_fmt_bytes(&b, sum.mapped_peak_bytes);
	}
	as_block_words(out, style, 2, b.p);
	as_buf_clear(&b);
}

void as_memory_header(const struct as_model *m, const struct as_style *style,
		      struct as_buf *out)
{
	struct as_buf b = {0};

	if (m->heap.is)
		header_figures(m, style, out);
	if (m->measure == AS_MEASURE_TIME)
		return;
	if (m->heap.at)
		add_mark(m, &b);
	else
		as_buf_addf(&b, "%s: %s", as_measure_name(m->measure), describe(m->measure));
	if (m->heap.by_first)
		as_buf_adds(&b, "; what grew counts for who made it");
	as_block_words(out, style, 2, b.p);
	as_buf_clear(&b);
}

/* ---- trust ---- */

static void line(struct as_trust_lines *l, enum as_trust_kind kind, const struct as_buf *text,
		 const char *remedy)
{
	as_vec_push(l,
		    (struct as_trust_line){kind, as_arena_strdup(&l->arena, text->p), remedy});
}

static void events_line(const struct as_rec_heap_process *s, struct as_trust_lines *ret)
{
	struct as_buf b = {0};

	add_counted(&b, s->events, "event");
	as_buf_adds(&b, ", ");
	as_fmt_count(&b, s->dropped + s->holes);
	as_buf_adds(&b, " lost");
	line(ret, AS_TRUST_FACT, &b, "");
	as_buf_reset(&b);
	if (s->complete + s->cut == 0)
		as_buf_adds(&b, "no stacks");
	else if (s->cut == 0)
		as_buf_adds(&b, "all stacks complete");
	else
		as_buf_addf(&b, "stacks %.1f %% complete",
			    floor((double)s->complete / (double)(s->complete + s->cut) * 1000) /
				    10);
	line(ret, AS_TRUST_FACT, &b, "");
	as_buf_clear(&b);
}

/* ---- coverage: which functions of which modules were watched ---- */

enum { FUNCTIONS_NAMED = 3, MODULES_NAMED = 3 };

static int by_events(const void *pa, const void *pb)
{
	const struct as_m_heap_layer *a = pa, *b = pb;

	if (a->module != b->module)
		return a->module < b->module ? -1 : 1;
	return a->events < b->events ? 1 : a->events > b->events ? -1 : 0;
}

/* Layers of all processes, the same function once. */
static size_t join_layers(const struct as_model *m, struct as_m_heap_layer *v)
{
	size_t n = 0;

	as_vec_foreach (l, &m->heap.layers) {
		size_t i = 0;

		while (i < n &&
		       (v[i].module != l->module || strcmp(v[i].function, l->function) != 0))
			i++;
		if (i == n)
			v[n++] = *l;
		else
			v[i].events += l->events;
	}
	if (n)
		qsort(v, n, sizeof *v, by_events);
	return n;
}

/* "malloc, free, realloc and 5 more in libc.so.6 (1,234,567)": one module's. Returns how many layers. */
static size_t module_layers(const struct as_model *m, const struct as_m_heap_layer *v, size_t n,
			    struct as_buf *b)
{
	size_t i = 0, more = 0;
	uint64_t events = 0;

	for (; i < n && v[i].module == v[0].module; i++) {
		events += v[i].events;
		if (i >= FUNCTIONS_NAMED || (i && !v[i].events)) {
			more += v[i].events > 0;
			continue;
		}
		as_buf_adds(b, i ? ", " : "");
		as_fmt_quoted(b, v[i].function, strlen(v[i].function));
	}
	if (more)
		as_buf_addf(b, " and %zu more", more);
	if (v[0].module != AS_NONE) {
		const char *name = m->modules.v[v[0].module].name;

		as_buf_adds(b, " in ");
		as_fmt_quoted(b, name, strlen(name));
	}
	/* without names: known by what they do */
	as_buf_adds(b, strcmp(v[0].layer, "signature") == 0 ? " by signature (" : " (");
	as_fmt_count(b, events);
	as_buf_addc(b, ')');
	return i;
}

static void coverage_line(const struct as_model *m, struct as_trust_lines *ret)
{
	AS_CLEANUP(as_free_autop)
	struct as_m_heap_layer *v = as_xcalloc(m->heap.layers.n + 1, sizeof *v);
	size_t n = join_layers(m, v), modules = 0;
	struct as_buf b = {0};

	as_buf_adds(&b, "seen at ");
	for (size_t i = 0; i < n; modules++) {
		struct as_buf one = {0};

		i += module_layers(m, v + i, n - i, &one);
		if (modules < MODULES_NAMED)
			as_buf_addf(&b, "%s%s", modules ? "; " : "", one.p);
		as_buf_clear(&one);
	}
	if (modules > MODULES_NAMED)
		as_buf_addf(&b, "; and in %zu more modules", modules - MODULES_NAMED);
	if (modules)
		line(ret, AS_TRUST_FACT, &b, "");
	as_buf_clear(&b);
}

/* Half widths of independent estimates: as if they were sides of a box. */
static void add_half(double *sum, uint64_t half)
{
	*sum = sqrt(*sum * *sum + (double)half * (double)half);
}

static void sampling_line(const struct as_model *m, struct as_trust_lines *ret)
{
	double allocs = 0, live = 0, peak = 0;
	struct as_buf b = {0};

	if (!m->heap.info.sample_bytes)
		return;
	as_vec_foreach (p, &m->heap.processes) {
		add_half(&allocs, p->allocs_half);
		add_half(&live, p->live_bytes_half);
		add_half(&peak, p->peak_bytes_half);
	}
	as_buf_adds(&b, "estimates: one block in about ");
	as_fmt_bytes(&b, m->heap.info.sample_bytes);
	as_buf_adds(&b, " was recorded (95 %: allocations ±");
	as_fmt_count(&b, (uint64_t)allocs);
	as_buf_adds(&b, ", live ±");
	as_fmt_bytes(&b, (uint64_t)live);
	as_buf_adds(&b, ", peak ±");
	as_fmt_bytes(&b, (uint64_t)peak);
	as_buf_adds(&b, ")");
	line(ret, AS_TRUST_FACT, &b, "");
	as_buf_clear(&b);
}

/*
 * Of programs that were recorded from their start, blocks that were freed and never seen allocated,
 * beyond those whose record was lost or not finished: where an allocator is known by what its functions
 * do, some were not found. NULL: there are none; else the module, and how many.
 */
static const char *find_unidentified(const struct as_model *m, uint64_t *ret_blocks)
{
	const char *module = NULL;

	*ret_blocks = 0;
	as_vec_foreach (l, &m->heap.layers) {
		const char *name = l->module == AS_NONE ? "" : m->modules.v[l->module].name;

		if (m->recording.flags & 1 || strcmp(l->layer, "signature") != 0 ||
		    (module && !strcmp(module, name)))
			continue;
		as_vec_foreach (p, &m->heap.processes) {
			/* a fork's of its parent's were seen in the parent */
			uint64_t known = p->dropped + p->holes + p->inherited;
			uint64_t n = p->unmatched_frees + p->unmatched_reallocs;

			if (p->process != l->process || n <= known)
				continue;
			*ret_blocks += n - AS_MIN(p->inherited, n);
			module = name;
		}
	}
	return module;
}

static void unknown_line(const struct as_model *m, const struct as_rec_heap_process *s,
			 struct as_trust_lines *ret)
{
	uint64_t unmatched = s->unmatched_frees + s->unmatched_reallocs;
	uint64_t inherited = s->inherited < unmatched ? s->inherited : unmatched;
	struct as_buf b = {0};
	uint64_t blocks;

	if (find_unidentified(m, &blocks)) {
		/* told as a trouble */
	} else if (unmatched > inherited) {
		add_counted(&b, unmatched - inherited, "block");
		as_buf_adds(&b, " from before the recording freed or changed");
		line(ret, AS_TRUST_FACT, &b, "");
		as_buf_reset(&b);
	}
	if (inherited) {
		add_counted(&b, inherited, "block");
		as_buf_adds(&b,
			    " freed or changed in a fork, allocated before it in the parent");
		line(ret, AS_TRUST_FACT, &b, "");
		as_buf_reset(&b);
	}
	if (s->failed) {
		add_counted(&b, s->failed, "allocation");
		as_buf_adds(&b, " failed");
		line(ret, AS_TRUST_FACT, &b, "");
	}
	as_buf_clear(&b);
}

static void troubles(const struct as_model *m, const struct as_rec_heap_process *s,
		     struct as_trust_lines *ret)
{
	struct as_buf b = {0};
	const char *module;
	uint64_t blocks;

	if (s->dropped + s->holes) {
		add_counted(&b, s->dropped + s->holes, "event");
		as_buf_addf(&b,
			    " found no room and %s lost: counts are lower bounds, and "
			    "what is live may be too much",
			    s->dropped + s->holes == 1 ? "was" : "were");
		line(ret, AS_TRUST_TROUBLE, &b, "");
		as_buf_reset(&b);
	}
	module = find_unidentified(m, &blocks);
	if (module) {
		add_counted(&b, blocks, "block");
		as_buf_addf(
			&b,
			" freed or changed whose allocation was not seen: the allocator in %s "
			"has functions that could not be identified",
			module);
		line(ret, AS_TRUST_TROUBLE, &b,
		     "keep the program's symbol table (strip = \"debuginfo\"), or link the "
		     "allocator dynamically");
		as_buf_reset(&b);
	}
	if (s->unmatched_allocs) {
		add_counted(&b, s->unmatched_allocs, "block");
		as_buf_adds(&b, " ended without a free that was seen: something frees in a way "
				"that is not watched, or events were lost");
		line(ret, AS_TRUST_TROUBLE, &b, "");
		as_buf_reset(&b);
	}
	if (s->crowded) {
		add_counted(&b, s->crowded, "allocation");
		as_buf_adds(&b,
			    " came from more stacks than can be told apart: they have none");
		line(ret, AS_TRUST_TROUBLE, &b, "");
		as_buf_reset(&b);
	}
	if (as_model_is_counted(m) && (!m->has_summary || !m->health.complete)) {
		as_buf_adds(&b, "the recorder did not end properly: figures may be missing");
		line(ret, AS_TRUST_TROUBLE, &b, "");
	}
	as_buf_clear(&b);
}

/* What the recording itself took. beside: the recorder's part is told with that of CPU time. */
static void own_line(const struct as_model *m, bool beside, struct as_trust_lines *ret)
{
	const struct as_rec_summary *s = &m->summary;
	struct as_buf b = {0};
	struct as_heap_own own;

	as_model_heap_own(m, &own);
	if (!isnan(own.slowdown)) {
		as_buf_adds(&b, "at least ");
		as_fmt_duration(&b, (uint64_t)(own.in_program_s * 1e9));
		as_buf_adds(&b, " of the program's ");
		as_fmt_duration(&b, (uint64_t)(own.program_s * 1e9));
		as_buf_addf(&b, " of CPU time were assay's (%.*f times as much)",
			    own.slowdown < 1 ? 2 : 1, 1 + own.slowdown);
		line(ret, AS_TRUST_FACT, &b, "");
	} else if (!isnan(own.in_program_s)) {
		as_buf_adds(&b, "in the program at least ");
		as_fmt_duration(&b, (uint64_t)(own.in_program_s * 1e9));
		as_buf_adds(&b, " of CPU time were assay's");
		line(ret, AS_TRUST_FACT, &b, "");
	}
	as_buf_reset(&b);
	if (!beside && m->has_summary && s->recorder_cpu_ns) {
		as_buf_adds(&b, "the recorder used ");
		as_fmt_duration(&b, s->recorder_cpu_ns);
		as_buf_adds(&b, " of CPU time");
		if (s->recorder_rss_bytes) {
			as_buf_adds(&b, " and ");
			as_fmt_bytes(&b, s->recorder_rss_bytes);
		}
		line(ret, AS_TRUST_FACT, &b, "");
	}
	as_buf_clear(&b);
}

void as_memory_troubles(const struct as_model *m, struct as_trust_lines *ret)
{
	struct as_rec_heap_process sum;

	as_model_heap_sum(m, &sum);
	troubles(m, &sum, ret);
}

void as_memory_trust_beside(const struct as_model *m, struct as_trust_lines *ret)
{
	struct as_rec_heap_process sum;
	struct as_buf b = {0};

	as_model_heap_sum(m, &sum);
	as_buf_adds(&b, "memory: ");
	add_counted(&b, sum.events, "event");
	as_buf_adds(&b, ", ");
	as_fmt_count(&b, sum.dropped + sum.holes);
	as_buf_adds(&b, " lost");
	line(ret, AS_TRUST_FACT, &b, "");
	as_buf_clear(&b);
	sampling_line(m, ret);
	own_line(m, true, ret);
}

void as_memory_trust(const struct as_model *m, struct as_trust_lines *ret)
{
	struct as_rec_heap_process sum;

	as_model_heap_sum(m, &sum);
	troubles(m, &sum, ret);
	events_line(&sum, ret);
	sampling_line(m, ret);
	unknown_line(m, &sum, ret);
	coverage_line(m, ret);
	own_line(m, false, ret);
}
