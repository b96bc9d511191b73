/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * heaptrack's data file, format version 2, in gzip: what heaptrack_print and heaptrack_gui read. All
 * numbers are hexadecimal.
 *
 *	v VERSION FORMAT	X COMMAND	I PAGE-BYTES PAGES
 *	s TEXT			texts count from 1, as all that follows but `a`
 *	i ADDRESS MODULE [FUNCTION FILE LINE …]	a place in code with what is inlined there, innermost
 *				first; texts
 *	t PLACE CALLER		a stack: a place, and the stack that called it (0: none)
 *	a BYTES STACK		a kind of block; these count from 0
 *	+ KIND, - KIND		a block comes, or goes
 *	c MS			the time of what follows
 *
 * The format is a list of events and we keep sums, so events are made that have these sums. Per stack
 * they tell exactly: how many blocks came, how many bytes were there when the whole was at its peak,
 * how many were left, and how many went at once ("temporary": ours is churn). They do not tell what
 * else there was between. In order: first blocks that are gone at the peak, one or two at a time; then
 * all of the peak; then what is not left at the end goes, and what is left and was not there yet comes.
 * Sizes within a stack are even.
 *
 * A free that directly follows its block's allocation makes it temporary for a reader, told by the
 * number of the kind alone. So each size has two kinds, and blocks that shall not count as temporary
 * come in pairs: +a +b -a -b.
 */
#include <stdlib.h>
#include <string.h>
#include "base/sys.h"
#include "exchange/exchange_priv.h"
#include "model/profile/selection.h"

#define EVENTS_MAX     (200ull << 20) /* of 5 bytes and more, read twice */
#define WRITER_VERSION 0x10400u
#define FORMAT_VERSION 2u

/* n blocks that have `bytes` together, as evenly as whole bytes allow: `larger` of them have one
 * more. kind: of the smaller ones; kind + 2: of the larger; the twin of each follows it. */
struct set {
	uint64_t n, bytes;
	uint32_t kind;
};
struct plan {
	struct set before;  /* gone at the peak */
	uint64_t temporary; /* of them, freed at once */
	struct set kept;    /* at the peak and at the end */
	struct set only_peak, only_end;
};

struct writer {
	const struct as_model *m;
	const struct as_export_options *o;
	struct as_selection *s;
	struct as_sink *out;
	struct as_intern texts;
	const char **file;
	uint32_t *ip_of; /* per frame; 0: not yet written */
	uint32_t nips, ntraces, nkinds, ntexts;
	struct as_map64 trace_of_cut; /* marker + 1 << 32 | stack + 1 -> trace */
	AS_VEC(struct plan) plans;
	AS_VEC(uint32_t) path;
};

/* ---- texts, places, stacks ---- */

static uint32_t text(struct writer *w, const char *s)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	uint32_t id;

	if (!s[0])
		return 0;
	/* A line ends a text. */
	as_fmt_quoted(&b, s, strlen(s));
	id = as_intern(&w->texts, as_buf_str(&b), b.len);
	if (id >= w->ntexts) {
		as_buf_addf(&w->out->out, "s %s\n", as_buf_str(&b));
		w->ntexts = id + 1;
	}
	return id + 1;
}

static void add_place(struct writer *w, const struct as_m_place *p, struct as_buf *line)
{
	const struct as_m_function *f = &w->m->functions.v[p->function];
	const char *file = p->file[0] ? p->file : w->file[p->function];
	uint32_t name = text(w, as_export_name(w->o, f));

	as_buf_addf(line, " %x %x %x", name, text(w, file), p->line);
}

static uint32_t ip_of(struct writer *w, uint32_t frame)
{
	const struct as_m_frame *f = &w->m->frames.v[frame];
	const struct as_m_place *const *p;
	uint32_t n = as_selection_places(w->s, frame, &p), module = 0;
	AS_CLEANUP(as_buf_clear) struct as_buf line = {0};

	if (w->ip_of[frame])
		return w->ip_of[frame];
	if (f->module != AS_NONE)
		module = text(w, w->m->modules.v[f->module].path);
	as_buf_addf(&line, "i %llx %x", (unsigned long long)f->addr, module);
	for (uint32_t i = 0; i < n; i++)
		add_place(w, p[i], &line);
	as_buf_addf(&w->out->out, "%s\n", as_buf_str(&line));
	as_sink_spill(w->out);
	return w->ip_of[frame] = ++w->nips;
}

/* A place without code: a marker, or no frames. */
static uint32_t bare_ip(struct writer *w, const char *name)
{
	uint32_t id = text(w, name);

	as_buf_addf(&w->out->out, "i 0 0 %x 0 0\n", id);
	return ++w->nips;
}

static uint32_t add_trace(struct writer *w, uint32_t ip, uint32_t caller)
{
	as_buf_addf(&w->out->out, "t %x %x\n", ip, caller);
	as_sink_spill(w->out);
	return ++w->ntraces;
}

static uint64_t *known_trace(struct writer *w, const struct as_group *g, uint32_t stack)
{
	uint64_t key = (uint64_t)(g->marker == AS_NONE ? 0 : g->marker + 1) << 32 |
		       (stack == AS_NONE ? 0 : stack + 1);
	bool fresh;
	uint64_t *trace = as_map64_put(&w->trace_of_cut, key, &fresh);

	if (fresh)
		*trace = 0;
	return trace;
}

/* Frames of which nothing is shown are passed over. */
static uint32_t trace_of(struct writer *w, const struct as_group *g)
{
	uint32_t trace = 0, at = g->stack;

	w->path.n = 0;
	for (; at != AS_NONE; at = w->m->stacks.v[at].parent) {
		trace = (uint32_t)*known_trace(w, g, at);
		if (trace)
			break;
		as_vec_push(&w->path, at);
	}
	if (!trace && g->marker != AS_NONE)
		trace = add_trace(w, bare_ip(w, w->m->functions.v[g->marker].brief), 0);
	while (w->path.n) {
		const struct as_m_place *const *p;
		uint32_t frame;

		at = w->path.v[--w->path.n];
		frame = w->m->stacks.v[at].frame;
		if (as_selection_places(w->s, frame, &p))
			trace = add_trace(w, ip_of(w, frame), trace);
		*known_trace(w, g, at) = trace;
	}
	return trace ? trace : add_trace(w, bare_ip(w, AS_EXPORT_NO_FRAMES), 0);
}

/* ---- plans ---- */

static struct set set_of(uint64_t n, uint64_t bytes)
{
	return (struct set){n, n ? bytes : 0, 0};
}

/* How many bytes of `bytes` k of n blocks have. */
static uint64_t part(uint64_t bytes, uint64_t k, uint64_t n)
{
	return n ? AS_MIN((uint64_t)((double)(bytes >> 1) * ((double)k / (double)n)) * 2, bytes)
		 : 0;
}

/* What is at the peak and at the end: as few as there must be, for what came, came once. */
static void plan_kept(struct plan *p, const uint64_t *v)
{
	uint64_t allocs = v[AS_HEAP_ALLOCS], peak = v[AS_HEAP_PEAK_BLOCKS],
		 live = v[AS_HEAP_LIVE_BLOCKS], both = 0, bytes;

	if (peak + live > allocs)
		both = AS_MIN(peak + live - allocs, AS_MIN(peak, live));
	bytes = AS_MIN(part(v[AS_HEAP_PEAK_BYTES], both, peak),
		       part(v[AS_HEAP_LIVE_BYTES], both, live));
	if (both && both == peak)
		bytes = AS_MIN(v[AS_HEAP_PEAK_BYTES], v[AS_HEAP_LIVE_BYTES]);
	else if (both && both == live)
		bytes = AS_MIN(v[AS_HEAP_LIVE_BYTES], v[AS_HEAP_PEAK_BYTES]);
	p->kept = set_of(both, bytes);
	p->only_peak = set_of(peak - both, v[AS_HEAP_PEAK_BYTES] - p->kept.bytes);
	p->only_end = set_of(live - both, v[AS_HEAP_LIVE_BYTES] - p->kept.bytes);
}

/* most_bytes: a block that is gone at the peak must not be a peak of its own. */
static void plan_before(struct plan *p, const uint64_t *v, uint64_t most_bytes)
{
	uint64_t there = p->kept.n + p->only_peak.n + p->only_end.n;
	uint64_t n = v[AS_HEAP_ALLOCS] > there ? v[AS_HEAP_ALLOCS] - there : 0;
	uint64_t known = p->kept.bytes + p->only_peak.bytes + p->only_end.bytes;
	uint64_t bytes = v[AS_HEAP_BYTES] > known ? v[AS_HEAP_BYTES] - known : 0;

	if (n && bytes / n >= most_bytes / 2)
		bytes = n * (most_bytes / 2);
	p->before = set_of(n, bytes);
	p->temporary = AS_MIN(v[AS_HEAP_CHURN_BLOCKS], n);
}

static bool is_too_much(const uint64_t *v, uint64_t events)
{
	return events > EVENTS_MAX || v[AS_HEAP_ALLOCS] > EVENTS_MAX ||
	       v[AS_HEAP_PEAK_BLOCKS] > EVENTS_MAX || v[AS_HEAP_LIVE_BLOCKS] > EVENTS_MAX;
}

static int make_plans(struct writer *w, const uint64_t *values, struct as_error *err)
{
	uint64_t most = 0, events = 0;

	for (size_t i = 0; i < w->s->groups.n; i++)
		most += values[i * AS_HEAP_VALUES + AS_HEAP_PEAK_BYTES];
	for (size_t i = 0; i < w->s->groups.n; i++) {
		const uint64_t *v = values + i * AS_HEAP_VALUES;
		struct plan p = {.temporary = 0};

		plan_kept(&p, v);
		plan_before(&p, v, most);
		events += 2 * (p.before.n + p.only_peak.n) + p.kept.n + p.only_end.n;
		as_vec_push(&w->plans, p);
		if (is_too_much(v, events))
			return as_fail(
				err, AS_E_LIMIT, 0,
				"heaptrack's format names every allocation, and these "
				"are more than 100 million\n"
				"  export a part (--focus, --thread), or sums: --to dhat, "
				"--to pprof");
	}
	return AS_OK;
}

/* ---- events ---- */

/* Two kinds of each size, as far as there are blocks of it. */
static void write_kinds(struct writer *w, struct set *s, uint32_t trace)
{
	if (!s->n)
		return;
	s->kind = w->nkinds;
	for (unsigned k = 0; k < 4; k++)
		as_buf_addf(&w->out->out, "a %llx %x\n",
			    (unsigned long long)(s->bytes / s->n + k / 2), trace);
	w->nkinds += 4;
	as_sink_spill(w->out);
}

/* Block i of a set: the larger ones first. */
static uint32_t kind_of(const struct set *s, uint64_t i, unsigned twin)
{
	return s->kind + (i < s->bytes % s->n ? 2 : 0) + twin;
}

static void event(struct writer *w, char what, uint32_t kind)
{
	as_buf_addf(&w->out->out, "%c %x\n", what, kind);
	as_sink_spill(w->out);
}

static void all_events(struct writer *w, char what, const struct set *s)
{
	for (uint64_t i = 0; i < s->n && as_sink_status(w->out) == 0; i++)
		event(w, what, kind_of(s, i, 0));
}

/* Of the last one of an odd number no pair can be made: with a twin that stays empty it is no
 * temporary one either, for another block came after it. */
static void events_before(struct writer *w, const struct plan *p)
{
	const struct set *s = &p->before;
	uint64_t i = 0;

	for (; i < p->temporary && as_sink_status(w->out) == 0; i++) {
		event(w, '+', kind_of(s, i, 0));
		event(w, '-', kind_of(s, i, 0));
	}
	for (; i + 1 < s->n && as_sink_status(w->out) == 0; i += 2) {
		event(w, '+', kind_of(s, i, 0));
		event(w, '+', kind_of(s, i + 1, 1));
		event(w, '-', kind_of(s, i, 0));
		event(w, '-', kind_of(s, i + 1, 1));
	}
}

static bool is_odd(const struct plan *p)
{
	return (p->before.n - p->temporary) & 1;
}

/* Those that are left over from all stacks, with one of another between. */
static void odd_events(struct writer *w)
{
	uint32_t last = AS_NONE;

	as_vec_foreach (p, &w->plans) {
		uint32_t kind;

		if (!is_odd(p))
			continue;
		kind = kind_of(&p->before, p->before.n - 1, 0);
		event(w, '+', kind);
		if (last != AS_NONE)
			event(w, '-', last);
		last = kind;
	}
	if (last != AS_NONE)
		event(w, '-', last);
}

static void write_time(struct writer *w, uint64_t ns)
{
	uint64_t start = w->m->recording.start_ns;

	as_buf_addf(&w->out->out, "c %llx\n",
		    (unsigned long long)(ns > start ? (ns - start) / 1000000 : 0));
}

static void write_events(struct writer *w)
{
	struct as_rec_heap_process sum;
	uint64_t end_ns = w->m->summary.end_ns;

	as_model_heap_sum(w->m, &sum);
	write_time(w, 0);
	as_vec_foreach (p, &w->plans)
		events_before(w, p);
	odd_events(w);
	write_time(w, sum.peak_ns);
	as_vec_foreach (p, &w->plans) {
		all_events(w, '+', &p->kept);
		all_events(w, '+', &p->only_peak);
	}
	write_time(w, AS_MAX(end_ns, sum.peak_ns));
	as_vec_foreach (p, &w->plans)
		all_events(w, '-', &p->only_peak);
	as_vec_foreach (p, &w->plans)
		all_events(w, '+', &p->only_end);
}

/* ---- the whole ---- */

static void write_head(struct writer *w)
{
	AS_CLEANUP(as_buf_clear) struct as_buf command = {0};

	as_vec_foreach (arg, &w->m->args) {
		as_buf_addc(&command, ' ');
		as_fmt_quoted(&command, *arg, strlen(*arg));
	}
	as_buf_addf(&w->out->out, "v %x %x\nX%s\nI %x 0\n", WRITER_VERSION, FORMAT_VERSION,
		    command.len ? as_buf_str(&command) : " assay", 4096u);
}

static void write_stacks(struct writer *w)
{
	for (size_t i = 0; i < w->s->groups.n; i++) {
		struct plan *p = &w->plans.v[i];
		uint32_t trace = trace_of(w, &w->s->groups.v[i]);

		/* Kind 0 is never used: a free that follows a free would look temporary. */
		if (i == 0)
			as_buf_addf(&w->out->out, "a %x %x\n", w->nkinds++, trace);
		write_kinds(w, &p->before, trace);
		write_kinds(w, &p->kept, trace);
		write_kinds(w, &p->only_peak, trace);
		write_kinds(w, &p->only_end, trace);
	}
}

int as_export_write_heaptrack(const struct as_model *m, const struct as_export_options *o,
			      struct as_sink *out, struct as_error *err)
{
	struct writer w = {.m = m, .o = o, .out = out};
	AS_CLEANUP(as_free_autop) uint64_t *values = NULL;
	int r = as_selection_make(m, o->query, &w.s, err);

	if (r < 0)
		return r;
	values = as_heap_group_values(w.s);
	r = make_plans(&w, values, err);
	if (r == AS_OK) {
		as_sink_gzip(out);
		w.file = as_export_files(w.s);
		w.ip_of = as_xcalloc(m->frames.n + 1, sizeof *w.ip_of);
		write_head(&w);
		write_stacks(&w);
		write_events(&w);
	}
	as_intern_clear(&w.texts);
	as_map64_clear(&w.trace_of_cut);
	as_vec_clear(&w.plans);
	as_vec_clear(&w.path);
	free(w.ip_of);
	free(w.file);
	as_selection_free(w.s);
	return r;
}
