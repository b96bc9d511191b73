/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the trust block says: see trust.h. How it looks on a terminal: trust_text.c. */
#include "view/report/trust.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sys.h"
#include "model/profile/sampling.h"
#include "view/memory/memory.h"

enum { NOTES_MAX = 4, FEW_SAMPLES = 100, SHARE_FROM_S = 2 };

/* From where on a loss changes what a reader may conclude. */
static const int64_t TROUBLE_SLOWER = 50000; /* millionths */
static const double TROUBLE_LOST = 0.01, TROUBLE_CUT = 0.01, TROUBLE_NAMELESS = 0.05,
		    TROUBLE_RATE = 0.8, EXPLAINED_WITHIN = 0.05;

/* The lines being collected. */
struct block {
	struct as_trust_lines *lines;
	const struct as_model *m;
	struct as_trust t;
	struct as_sampling sampling;
};

static void __attribute__((format(printf, 3, 0)))
line(struct block *b, enum as_trust_kind kind, const char *fmt, va_list ap)
{
	struct as_buf text = {0};

	as_buf_vaddf(&text, fmt, ap);
	as_vec_push(b->lines,
		    (struct as_trust_line){
			    .kind = kind,
			    .text = as_arena_strdup(&b->lines->arena, as_buf_str(&text)),
			    .remedy = "",
		    });
	as_buf_clear(&text);
}

static void __attribute__((format(printf, 2, 3))) trouble(struct block *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	line(b, AS_TRUST_TROUBLE, fmt, ap);
	va_end(ap);
}

static void __attribute__((format(printf, 2, 3))) fact(struct block *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	line(b, AS_TRUST_FACT, fmt, ap);
	va_end(ap);
}

static void __attribute__((format(printf, 2, 3))) note(struct block *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	line(b, AS_TRUST_NOTE, fmt, ap);
	va_end(ap);
}

/* Of the line before. */
static void remedy(struct block *b, const char *text)
{
	b->lines->v[b->lines->n - 1].remedy = as_arena_strdup(&b->lines->arena, text);
}

/* ---- what can be wrong ---- */

static double of(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

static const char *end_text(size_t end)
{
	static const char *const text[] = {
#define X(n, NAME, key, text) [n] = text,
		AS_STACK_ENDS(X)
#undef X
	};

	return end < AS_ARRAY_LEN(text) ? text[end] : "unknown reason";
}

static void cut_stacks(struct block *b)
{
	const struct as_trust *t = &b->t;
	double share = of(t->truncated, t->samples);
	size_t worst = 0;

	if (share < TROUBLE_CUT)
		return;
	for (size_t i = 0; i < AS_END_COUNT_; i++) {
		if (t->by_reason[i] > t->by_reason[worst])
			worst = i;
	}
	trouble(b,
		"%.1f %% of the stacks are cut, most because %s: totals of the missing callers "
		"are lower bounds, self figures are not touched",
		share * 100, end_text(worst));
	if (worst == AS_END_SHORT)
		remedy(b, "run as root for the in-kernel unwinder (stacks of any size), or "
			  "assay record --dump-size 64K");
	else if (worst == AS_END_DEPTH)
		remedy(b, "this is deep recursion; the frames nearest to the leaf are kept");
}

static void lost_samples(struct block *b)
{
	const struct as_trust *t = &b->t;
	double share = of(t->lost, t->samples + t->lost);

	if (share < TROUBLE_LOST)
		return;

	struct as_buf n = {0};

	as_fmt_count(&n, t->lost);
	trouble(b, "%s samples (%.1f %%) were lost: busy moments count too little",
		as_buf_str(&n), share * 100);
	as_buf_clear(&n);

	double lower = t->rate_hz > 2 ? floor(t->rate_hz / 2) : 1;
	AS_CLEANUP(as_free_autop) char *text = as_xasprintf("assay record -F %.0f", lower);

	remedy(b, text);
}

static void low_rate(struct block *b)
{
	const struct as_trust *t = &b->t;

	if (t->samples < FEW_SAMPLES || !(t->effective_rate_hz < t->rate_hz * TROUBLE_RATE))
		return;
	if (t->throttled)
		trouble(b,
			"the kernel throttled sampling: %.0f Hz instead of %.0f; busy moments "
			"count too little",
			t->effective_rate_hz, t->rate_hz);
	else
		trouble(b,
			"%.0f samples per second of CPU time instead of %.0f: some of the time "
			"was not seen, shares are of what was",
			t->effective_rate_hz, t->rate_hz);
}

/* Few samples and short runs make both figures coarse: the tolerance grows with 1/sqrt(n). */
static bool explains_all(const struct as_trust *t)
{
	double tolerance = EXPLAINED_WITHIN + 2 / sqrt((double)t->samples);

	return fabs(t->explained_cpu - 1) <= tolerance;
}

static void unexplained(struct block *b)
{
	const struct as_trust *t = &b->t;

	if (isnan(t->explained_cpu) || t->samples < FEW_SAMPLES || explains_all(t))
		return;
	if (t->explained_cpu < 1)
		trouble(b,
			"the samples explain %.1f %% of the CPU time the system charged: "
			"shares are of what was seen",
			t->explained_cpu * 100);
	else
		trouble(b,
			"the samples stand for %.1f %% of the CPU time the system charged: "
			"times are too large, shares hold",
			t->explained_cpu * 100);
}

static void nameless(struct block *b)
{
	if (b->t.weight_unsymbolized < TROUBLE_NAMELESS)
		return;
	trouble(b, "%.1f %% of the time is in code without function names",
		b->t.weight_unsymbolized * 100);
	remedy(b, "which modules: assay report --by module");
}

static void broken_file(struct block *b)
{
	const struct as_session_health *h = &b->m->health;

	if (h->bad_chunks)
		trouble(b,
			"%" PRIu64 " of %" PRIu64
			" parts of the file are damaged and were left out",
			h->bad_chunks, h->chunks + h->bad_chunks);
	if (!b->m->has_summary)
		trouble(b, "the recorder did not end properly: the last second may be missing, "
			   "and so are names that were to be found at the end");
	else if (!h->complete)
		trouble(b, "the file ends early: names, or some of them, are missing");
}

#define NOT_OBSERVABLE_S 0.05

static void few_samples(struct block *b)
{
	const struct as_trust *t = &b->t;

	if (t->samples >= FEW_SAMPLES)
		return;
	/* The kernel drops the events of a program at its exec where the user may not trace it. */
	if (!t->samples && t->cpu_s >= NOT_OBSERVABLE_S && !b->m->damaged &&
	    b->m->has_summary) {
		trouble(b,
			"no samples in %.2f s of CPU time: the kernel does not let you observe "
			"this program (set-uid, or a file that you may not read)",
			t->cpu_s);
		remedy(b, "sudo assay record …");
		return;
	}
	if (!t->samples) {
		trouble(b, b->m->damaged || b->m->health.bad_chunks
				   ? "no samples could be read"
				   : "no samples: the program used too little CPU time to be "
				     "seen");
	} else {
		trouble(b, "%" PRIu64 " sample%s only: the intervals are wide", t->samples,
			t->samples == 1 ? "" : "s");
	}
	remedy(b, "let it run longer, or assay record -F 9999");
}

static void notes(struct block *b)
{
	size_t shown = 0, left = 0;

	as_vec_foreach (n, &b->m->notes) {
		if (n->level < 2)
			continue;
		if (shown == NOTES_MAX) {
			left++;
			continue;
		}
		shown++;
		trouble(b, "%s%s%s", n->about && *n->about ? n->about : "",
			n->about && *n->about ? ": " : "", n->text);
		remedy(b, n->remedy ? n->remedy : "");
	}
	if (left)
		trouble(b, "%zu more of this kind: assay report --format json", left);
}

static void soft_notes(struct block *b)
{
	const char *last = NULL;
	size_t shown = 0;

	as_vec_foreach (n, &b->m->notes) {
		if (n->level != 1 || shown == NOTES_MAX ||
		    (last && n->about && strcmp(n->about, last) == 0))
			continue;
		last = n->about; /* the first of several about one file says it */
		shown++;
		note(b, "%s%s%s", n->about && *n->about ? n->about : "",
		     n->about && *n->about ? ": " : "", n->text);
		remedy(b, n->remedy ? n->remedy : "");
	}
}

/* ---- what is well ---- */

static void taken(struct block *b)
{
	const struct as_trust *t = &b->t;
	struct as_buf n = {0}, lost = {0};

	as_fmt_count(&n, t->samples);
	as_fmt_count(&lost, t->lost);
	if (t->rate_hz > 0)
		fact(b, "%s samples at %.0f Hz, %s lost", as_buf_str(&n), t->rate_hz,
		     as_buf_str(&lost));
	else
		fact(b, "%s samples, %s lost", as_buf_str(&n), as_buf_str(&lost));
	as_buf_clear(&n);
	as_buf_clear(&lost);
}

/* One decimal that never turns "almost all" into "all" or "hardly any" into "none". */
static void add_part(struct as_buf *out, double share, const char *word)
{
	if (out->len)
		as_buf_adds(out, ", ");
	if (share < 0.0005)
		as_buf_addf(out, "< 0.1 %% %s", word);
	else if (share < 1 && share > 0.9995)
		as_buf_addf(out, "> 99.9 %% %s", word);
	else
		as_buf_addf(out, "%.1f %% %s", share * 100, word);
}

static void stacks(struct block *b)
{
	const struct as_trust *t = &b->t;
	struct as_buf s = {0};

	if (!t->samples)
		return;
	if (t->complete == t->samples) {
		fact(b, "all stacks complete");
		return;
	}
	add_part(&s, of(t->complete, t->samples), "complete");
	if (t->repaired)
		add_part(&s, of(t->repaired, t->samples), "repaired");
	if (t->truncated)
		add_part(&s, of(t->truncated, t->samples), "truncated");
	fact(b, "stacks %s", as_buf_str(&s));
	as_buf_clear(&s);
}

static void explained(struct block *b)
{
	const struct as_trust *t = &b->t;

	if (!isnan(t->explained_cpu) && t->samples >= FEW_SAMPLES && explains_all(t))
		fact(b, "samples explain %.1f %% of the CPU time", t->explained_cpu * 100);
}

/* "3.1 % (2.2 to 4.0)" */
static void add_overhead(const struct as_rec_overhead *o, struct as_buf *out)
{
	as_buf_addf(out, "%.1f %% (%.1f to %.1f)", (double)o->value / 1e4, (double)o->low / 1e4,
		    (double)o->high / 1e4);
}

/* What was measured beside the recording: --measure-overhead. */
static void slowdown(struct block *b, bool much)
{
	const struct as_rec_overhead *o = &b->m->overhead;
	struct as_buf text = {0};

	if (!o->pairs || (o->low > TROUBLE_SLOWER) != much)
		return;
	add_overhead(o, &text);
	if (much) {
		trouble(b,
			"recording made the program %s slower: shares of what is called often "
			"and briefly may be too large",
			as_buf_str(&text));
		remedy(b, "assay record -F 250");
	} else {
		fact(b, "slowed down by %s in %" PRIu64 " pairs of runs", as_buf_str(&text),
		     o->pairs);
	}
	as_buf_clear(&text);
}

/* What --until asked for. */
static void until(struct block *b, bool met)
{
	const char *target = as_model_info(b->m, "until"),
		   *enough = as_model_info(b->m, "until.enough");

	if (!target || !*target || (enough && strcmp(enough, "yes") == 0) != met)
		return;
	if (met)
		fact(b, "recorded until all of 5 %% or more was known to ± %s %%", target);
	else
		trouble(b,
			"the recording ended before all of 5 %% or more was known to ± %s %%, "
			"by its time limit or otherwise",
			target);
}

/* Equal intervals, and something that comes and goes in a beat with them. */
static void in_step(struct block *b)
{
	const struct as_sampling *s = &b->sampling;

	if (!s->beat)
		return;
	trouble(b,
		"samples come at equal intervals, and %s comes and goes every %zu of them: a "
		"period of "
		"the program may be in step with the sampler, and shares off by more than "
		"their "
		"intervals",
		b->m->functions.v[s->beat_function].brief, s->beat);
	remedy(b,
	       "assay record jitters its intervals; with another recorder: a rate that is no "
	       "multiple of the program's");
}

/* How long would do, where it has not been long enough. */
static void advice(struct block *b)
{
	const struct as_trust *t = &b->t;
	double rate = t->effective_rate_hz;
	struct as_buf time = {0};

	if (t->samples < FEW_SAMPLES || !(rate > 0) ||
	    (double)t->samples >= b->sampling.need_samples)
		return;
	as_fmt_duration(&time, (uint64_t)(b->sampling.need_samples / rate * 1e9));
	fact(b, "a %g %% function would be ± %g %% after %s of CPU", AS_ADVICE_SHARE * 100,
	     AS_ADVICE_HALF * 100, as_buf_str(&time));
	as_buf_clear(&time);
}

static void recorder(struct block *b)
{
	const struct as_trust *t = &b->t;

	if (isnan(t->recorder_cpu_s) || !(t->duration_s > 0))
		return;
	if (t->duration_s >= SHARE_FROM_S) {
		fact(b, "recorder used %.1f %% of one CPU",
		     t->recorder_cpu_s / t->duration_s * 100);
		return;
	}

	struct as_buf time = {0}; /* of a short run it is starting and finding names */

	as_fmt_duration(&time, (uint64_t)(t->recorder_cpu_s * 1e9));
	fact(b, "recorder used %s of CPU time", as_buf_str(&time));
	as_buf_clear(&time);
}

/* Without any, the kernel was not sampled at all, which a note of the engine says. */
static bool has_kernel_samples(const struct as_model *m)
{
	for (size_t i = 0; i < m->samples.n; i++)
		if (m->samples.v[i].end & AS_SAMPLE_KERNEL)
			return true;
	return false;
}

static bool has_kernel_frames(const struct as_model *m)
{
	as_vec_foreach (f, &m->frames) {
		if (f->flags & AS_FRAME_KERNEL)
			return true;
	}
	return false;
}

/* What recording memory costs the program, as far as samples show it. */
static void own(struct block *b)
{
	struct as_buf n = {0};

	if (!b->t.own)
		return;
	as_fmt_count(&n, b->t.own);
	fact(b, "%s more samples (%.1f %%) were of assay's own code in the program: left out",
	     as_buf_str(&n), 100 * of(b->t.own, b->t.own + b->t.samples));
	as_buf_clear(&n);
}

static void source(struct block *b)
{
	const struct as_trust *t = &b->t;

	if (strcmp(t->engine, "kernel") == 0)
		fact(b, "unwound in the kernel");
	else if (strcmp(t->engine, "ring") == 0)
		fact(b, "unwound from stack copies");
	else if (*t->engine)
		fact(b, "engine %s", t->engine);
	if (strcmp(t->event, "cpu-clock") == 0)
		fact(b, "no hardware counters here: timer samples");
	else if (*t->event)
		fact(b, "event %s", t->event);
	if (!(b->m->recording.flags & 2) && !has_kernel_frames(b->m) &&
	    has_kernel_samples(b->m))
		fact(b, "kernel time counts for its callers");
}

void as_trust_lines(const struct as_model *m, struct as_trust_lines *ret)
{
	struct block b = {.lines = ret, .m = m};

	if (as_model_is_counted(m)) {
		notes(&b);
		as_memory_trust(m, ret);
		soft_notes(&b);
		return;
	}
	as_model_trust(m, &b.t);
	as_model_sampling(m, &b.sampling);
	b.t.engine = b.t.engine ? b.t.engine : "";
	b.t.event = b.t.event ? b.t.event : "";
	broken_file(&b);
	few_samples(&b);
	lost_samples(&b);
	low_rate(&b);
	unexplained(&b);
	cut_stacks(&b);
	nameless(&b);
	in_step(&b);
	until(&b, false);
	slowdown(&b, true);
	if (m->heap.is)
		as_memory_troubles(m, ret);
	notes(&b);
	taken(&b);
	stacks(&b);
	explained(&b);
	own(&b);
	if (m->heap.is)
		as_memory_trust_beside(m, ret);
	recorder(&b);
	slowdown(&b, false);
	until(&b, true);
	advice(&b);
	source(&b);
	soft_notes(&b);
}

void as_trust_lines_clear(struct as_trust_lines *l)
{
	as_vec_clear(l);
	as_arena_clear(&l->arena);
}
