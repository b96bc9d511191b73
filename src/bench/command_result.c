/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What rounds of commands mean: estimates, comparisons, and what the reader should know. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/sys.h"
#include "bench/command_priv.h"
#include "history/history.h"
#include "results/report.h"
#include "stats/interval.h"
#include "stats/runs.h"

#define FIRST_LEAST 6 /* runs, before the first can be said to differ */
#define FIRST_MADS  5
#define FIRST_SHARE 0.1
#define APART_LEAST 10 /* runs, before any can be said to stand apart */
#define APART_NAMED 3
#define APART_MOVES 0.05 /* of the plain mean, below which they are not worth a word */
#define LAYOUT      0.05 /* below it two builds may differ by where their code lies */
#define SURE_DRIFT  0.3  /* correlation worth a word */

/* ---- values ---- */

struct values {
	AS_VEC(double) wall, cpu, user, system;
};

static void clear_values(struct values *v)
{
	as_vec_clear(&v->wall);
	as_vec_clear(&v->cpu);
	as_vec_clear(&v->user);
	as_vec_clear(&v->system);
}

/* The run of that round; NULL: there was none. rounds ascend. */
static const struct as_run *run_in(const struct as_arm_result *a, uint32_t round)
{
	size_t lo = 0, hi = a->rounds.n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (a->rounds.v[mid] < round)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < a->rounds.n && a->rounds.v[lo] == round ? &a->runs.v.v[lo] : NULL;
}

/* Run by run; less the overhead's run of the same round, where there is one. */
static void take_values(const struct as_arm_result *a, const struct as_arm_result *overhead,
			struct values *ret)
{
	for (size_t i = 0; i < a->runs.v.n; i++) {
		const double *v = a->runs.v.v[i].v;
		const struct as_run *less = overhead ? run_in(overhead, a->rounds.v[i]) : NULL;
		double zero[AS_M_COUNT_] = {0};
		const double *o = less ? less->v : zero;

		if (overhead && !less)
			continue;
		as_vec_push(&ret->wall, v[AS_M_WALL] - o[AS_M_WALL]);
		as_vec_push(&ret->cpu, v[AS_M_CPU] - o[AS_M_CPU]);
		as_vec_push(&ret->user, v[AS_M_USER] - o[AS_M_USER]);
		as_vec_push(&ret->system, v[AS_M_SYSTEM] - o[AS_M_SYSTEM]);
	}
}

static struct as_bench_estimate estimate(const double *v, size_t n)
{
	struct as_runs_summary s;

	as_runs_summarise(v, n, &s);
	return (struct as_bench_estimate){s.mean, isfinite(s.low) ? s.low : NAN,
					  isfinite(s.high) ? s.high : NAN};
}

static void copy_values(const double *v, size_t n, double **ret_v, size_t *ret_n, size_t *cap)
{
	*ret_v = as_xreallocarray(NULL, n + 1, sizeof **ret_v);
	memcpy(*ret_v, v, n * sizeof *v);
	*ret_n = n;
	*cap = n + 1;
}

/* ---- notes ---- */

static char *time_text(double s)
{
	struct as_buf b = {0};

	as_bench_value(&b, "s", s);
	return as_buf_detach(&b);
}

static double mean(const double *v, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += v[i];
	return sum / (double)n;
}

static void note_first(struct as_bench *b, const double *v, size_t n)
{
	AS_CLEANUP(as_free_autop) char *first = NULL, *others = NULL;
	AS_CLEANUP(as_free_autop) double *away = as_xreallocarray(NULL, n + 1, sizeof *away);
	struct as_runs_summary rest, scale;

	if (n < FIRST_LEAST)
		return;
	as_runs_summarise(v + 1, n - 1, &rest);
	for (size_t i = 1; i < n; i++)
		away[i - 1] = fabs(v[i] - rest.median);
	as_runs_summarise(away, n - 1, &scale);
	if (!(v[0] - rest.median > FIRST_MADS * 1.4826 * scale.median) ||
	    !(v[0] > rest.median * (1 + FIRST_SHARE)))
		return;
	first = time_text(v[0]);
	others = time_text(rest.median);
	as_bench_note(
		&b->notes, "first-run",
		"the first run took %s, the others %s: it found cold caches, or had "
		"something to set up; --warmup 1 leaves such a run out, --prepare can make "
		"every run cold",
		first, others);
}

static bool note_kinds(struct as_bench *b, const double *wall, const double *cpu, size_t n)
{
	struct as_runs_summary s[2];
	AS_CLEANUP(as_free_autop) char *low = NULL, *high = NULL;
	int k = 0;

	as_runs_summarise(wall, n, &s[0]);
	as_runs_summarise(cpu, n, &s[1]);
	if (!s[0].mixture)
		k = 1;
	if (!s[k].mixture)
		return false;
	low = time_text(s[k].groups[0]);
	high = time_text(s[k].groups[1]);
	as_bench_note(&b->notes, "bimodal",
		      "two kinds of run, of about %s and %s%s: one number describes neither; "
		      "what differs between them is worth more than their mean",
		      low, high, k ? " of CPU time" : "");
	return true;
}

static const char *cause(const struct as_run *run, double excess_s)
{
	if (run->v[AS_M_STEAL] * 2 > excess_s)
		return ", the host took the CPU away (steal)";
	if (run->v[AS_M_RUN_WAIT] * 2 > excess_s)
		return ", it waited for a CPU that others had";
	if (run->v[AS_M_MAJOR_FAULTS] > 0)
		return ", pages had to be read from a disk";
	return "";
}

/* Those that took longer by themselves move the plain mean by more than the estimate is sure of. */
static bool mean_is_moved(const double *v, size_t n, const bool *apart,
			  const struct as_runs_summary *s)
{
	double excess = 0;

	for (size_t i = 0; i < n; i++)
		excess += apart[i] && v[i] > s->median ? (v[i] - s->median) / (double)n : 0;
	return excess > AS_MAX((s->high - s->low) / 2, APART_MOVES * s->median);
}

static void note_apart(struct as_bench *b, const struct as_runs *runs, const double *v)
{
	size_t n = runs->v.n, named = 0, slow = 0, worst = 0;
	AS_CLEANUP(as_free_autop) bool *apart = as_xcalloc(n + 1, sizeof *apart);
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};
	struct as_runs_summary s;

	if (n < APART_LEAST || !as_runs_outliers(v, n, apart))
		return;
	as_runs_summarise(v, n, &s);
	if (!mean_is_moved(v, n, apart, &s))
		return;
	for (size_t i = 0; i < n; i++) {
		slow += apart[i] && v[i] > s.median;
		worst = v[i] > v[worst] ? i : worst;
	}
	for (size_t i = 0; i < n && slow <= APART_NAMED; i++) {
		if (apart[i] && v[i] > s.median)
			as_buf_addf(&text, "%srun %zu took %.3g times as long%s",
				    named++ ? "; " : "", i + 1, v[i] / s.median,
				    cause(&runs->v.v[i], v[i] - s.median));
	}
	if (!named)
		as_buf_addf(&text, "%zu runs took longer, run %zu %.3g times%s", slow,
			    worst + 1, v[worst] / s.median,
			    cause(&runs->v.v[worst], v[worst] - s.median));
	as_bench_note(&b->notes, "apart",
		      "%s: they count, but the estimate is one that single runs do not move "
		      "(the plain mean is %+.0f %% off)",
		      text.p, 100 * (mean(v, n) / s.mean - 1));
}

static void note_drift(struct as_bench *b, const double *v, size_t n)
{
	struct as_runs_summary s;

	as_runs_summarise(v, n, &s);
	if (s.drift >= SURE_DRIFT)
		as_bench_note(&b->notes, "drift",
			      "the machine's speed moves (runs next to each other correlate by "
			      "%.1f): the interval is widened for it",
			      s.drift);
}

void as_command_notes(struct as_bench *b, const struct as_runs *runs, bool paired)
{
	size_t n = runs->v.n;
	AS_CLEANUP(as_free_autop) double *wall = as_xreallocarray(NULL, n + 1, sizeof *wall);
	AS_CLEANUP(as_free_autop) double *cpu = as_xreallocarray(NULL, n + 1, sizeof *cpu);

	for (size_t i = 0; i < n; i++) {
		wall[i] = runs->v.v[i].v[AS_M_WALL];
		cpu[i] = runs->v.v[i].v[AS_M_CPU];
	}
	if (!note_kinds(b, wall, cpu, n)) { /* else none is an exception */
		note_first(b, wall, n);
		note_apart(b, runs, wall);
	}
	if (!paired) /* pairs cancel it */
		note_drift(b, wall, n);
}

static void note_failures(const struct as_measured *m, struct as_bench *b,
			  const struct as_arm_result *a)
{
	int s = a->failed_status;
	bool many = m->q->rounds.ignore_failure;

	if (a->failed_run)
		as_bench_note(&b->notes, "failed", "run %zu ended with %s %d%s", a->failed_run,
			      WIFSIGNALED(s) ? "signal" : "status",
			      WIFSIGNALED(s) ? WTERMSIG(s) : WEXITSTATUS(s),
			      many                ? ""
			      : a->failed_run > 1 ? ": the runs before it are what is shown; "
						    "--ignore-failure goes on, --show-output "
						    "shows what it printed"
						  : "; --ignore-failure goes on, --show-output "
						    "shows what it printed");
	if (a->failed_run && many && a->failures > 1)
		as_bench_note(&b->notes, "failures", "%zu of %zu runs failed, and count",
			      a->failures, a->runs.v.n);
	if (!a->runs.v.n && !a->out && m->rounds->out_of_budget)
		as_bench_note(&b->notes, "budget", "not one run ended within the budget");
	if (a->timeouts)
		as_bench_note(&b->notes, "timeout",
			      "run %zu did not end within %g s and was ended%s", a->timeout_run,
			      m->q->rounds.timeout_s, many ? "; such runs do not count" : "");
	if (a->timeouts > 1)
		as_bench_note(&b->notes, "timeouts", "%zu runs did not end in time",
			      a->timeouts);
	if (a->left)
		as_bench_note(&b->notes, "left-behind",
			      "its runs left %zu process%s behind ('%s'), which %s ended: they "
			      "would have run beside the runs that followed; --leave-running "
			      "lets them",
			      a->left, a->left == 1 ? "" : "es", a->left_name,
			      a->left == 1 ? "was" : "were");
}

/* ---- a command ---- */

static void fill_clocks(struct as_bench *b, const struct values *v, bool by_cpu)
{
	const double *own = by_cpu ? v->cpu.v : v->wall.v;
	size_t n = v->wall.n;

	b->unit = as_xstrdup("s");
	b->metric = as_xstrdup(by_cpu ? "cpu" : "wall");
	b->wall = estimate(v->wall.v, n);
	b->cpu = estimate(v->cpu.v, n);
	b->user = estimate(v->user.v, n);
	b->system = estimate(v->system.v, n);
	b->processes = n;
	b->batches = b->iterations = 1;
	if (!n)
		return;
	copy_values(own, n, &b->samples.v, &b->samples.n, &b->samples.cap);
	copy_values(v->wall.v, n, &b->walls.v, &b->walls.n, &b->walls.cap);
	copy_values(v->cpu.v, n, &b->cpus.v, &b->cpus.n, &b->cpus.cap);
	as_bench_summarise(b);
}

static void fill_runs(struct as_bench *b, const struct as_arm_result *a)
{
	as_vec_foreach (run, &a->runs.v) {
		int s = run->wait_status;

		as_vec_push(&b->exit_codes,
			    WIFSIGNALED(s) ? 128 + WTERMSIG(s) : WEXITSTATUS(s));
		if (isnan(b->peak_rss) || run->v[AS_M_RSS] > b->peak_rss)
			b->peak_rss = run->v[AS_M_RSS];
	}
}

static void note_overhead(const struct as_measured *m, struct as_bench *b,
			  const struct values *less)
{
	AS_CLEANUP(as_free_autop) char *wall = NULL, *half = NULL;
	struct as_bench_estimate e = estimate(less->wall.v, less->wall.n);
	const char *what = m->q->overhead_is_shell ? "the shell's start" : m->q->overhead->name;

	wall = time_text(e.value);
	half = time_text((e.high - e.low) / 2);
	as_bench_note(&b->notes, "overhead", "%s (%s ±%s) is taken off, run by run", what, wall,
		      half);
	if (b->wall.low <= 0)
		as_bench_note(&b->notes, "below-overhead",
			      "what is left cannot be told from nothing%s",
			      m->q->overhead_is_shell ? ": run it without a shell" : "");
}

/* One clock for all, so that the lines of a table can be held against each other: that of most. */
static bool by_cpu(const struct as_measured *m)
{
	size_t cpu = 0, all = 0;

	if (m->q->n == 1)
		return as_runs_explained(&m->rounds->v[0].runs);
	for (size_t i = 1; i < m->q->n; i++) {
		all += m->rounds->v[i].d[0].n > 0;
		cpu += m->rounds->v[i].d[0].n && m->rounds->v[i].decides == AS_M_CPU;
	}
	return cpu * 2 > all;
}

static void tell_command(const struct as_measured *m, size_t i, struct as_bench *b)
{
	const struct as_command *c = &m->q->v[i];
	const struct as_arm_result *a = &m->rounds->v[i];
	const struct as_arm_result *overhead = m->q->overhead ? &m->rounds->v[m->q->n] : NULL;
	struct values v = {0}, less = {0};

	as_bench_init(b);
	b->kind = AS_BENCH_COMMAND;
	b->name = as_xstrdup(c->name);
	as_vec_foreach (p, &c->params)
		as_vec_push(&b->params,
			    (struct as_bench_param){as_xstrdup(p->name), as_xstrdup(p->value)});
	take_values(a, overhead, &v);
	fill_clocks(b, &v, by_cpu(m));
	fill_runs(b, a);
	as_command_notes(b, &a->runs, m->q->n > 1);
	if (overhead && overhead->runs.v.n) {
		take_values(overhead, NULL, &less);
		note_overhead(m, b, &less);
	}
	note_failures(m, b, a);
	clear_values(&v);
	clear_values(&less);
}

/* ---- a comparison ---- */

static struct as_bench_estimate ratio(const struct as_trimmed *t)
{
	return (struct as_bench_estimate){exp(t->value), isfinite(t->lo) ? exp(t->lo) : NAN,
					  isfinite(t->hi) ? exp(t->hi) : NAN};
}

/* Two-sided, of no difference; df as as_trimmed_interval has it. */
static double p_of(const struct as_trimmed *t)
{
	size_t cut = (size_t)(AS_PAIRED_TRIM * (double)t->n);
	double df = (double)(t->n - 2 * cut) - 1, q = t->value / t->se;

	if (!isfinite(t->se) || !(df > 0))
		return NAN;
	if (!(t->se > 0))
		return t->value == 0 ? 1 : 0;
	return as_beta_cdf(df / (df + q * q), df / 2, 0.5);
}

static void note_comparison(const struct as_measured *m, size_t i,
			    struct as_bench_comparison *c)
{
	const struct as_arm_result *a = &m->rounds->v[i];
	const struct as_copies *copies = m->copies;
	bool differs = copies->n > i && copies->v[0].from && copies->v[i].from &&
		       strcmp(copies->v[0].from, copies->v[i].from) != 0;
	double size = fabs(log(c->ratio.value));

	if (a->disagree)
		as_bench_note(&c->notes, "disagree",
			      "wall and CPU time disagree: one of the two waits more, or uses "
			      "more CPUs at once");
	if (a->look.mixture)
		as_bench_note(&c->notes, "bimodal",
			      "the pairs are of two kinds: one number describes neither");
	if (differs && size < LAYOUT && c->verdict != AS_BENCH_UNDECIDED &&
	    c->verdict != AS_BENCH_EQUAL && !copies->v[0].why_not && !copies->v[i].why_not)
		as_bench_note(&c->notes, "layout",
			      "two builds may differ by up to 5 %% by where their code lies, "
			      "with one build each that cannot be told from better code");
}

static void tell_comparison(const struct as_measured *m, size_t i,
			    struct as_bench_comparison *c)
{
	static const enum as_bench_verdict verdicts[] = {[AS_VERDICT_UNDECIDED] =
								 AS_BENCH_UNDECIDED,
							 [AS_VERDICT_EQUAL] = AS_BENCH_EQUAL,
							 [AS_VERDICT_SLOWER] = AS_BENCH_SLOWER,
							 [AS_VERDICT_FASTER] = AS_BENCH_FASTER};
	const struct as_arm_result *a = &m->rounds->v[i], *first = &m->rounds->v[0];

	as_bench_comparison_init(c);
	c->a = as_xstrdup(m->q->v[0].name);
	c->b = as_xstrdup(m->q->v[i].name);
	c->name = as_xasprintf("%s against %s", c->b, c->a);
	c->metric = as_xstrdup(a->decides == AS_M_CPU ? "cpu" : "wall");
	c->by_wall = ratio(&a->by[0]);
	c->by_cpu = ratio(&a->by[1]);
	c->ratio = a->decides == AS_M_CPU ? c->by_cpu : c->by_wall;
	c->verdict = verdicts[a->look.verdict];
	c->delta = m->q->rounds.delta;
	c->p = p_of(&a->by[a->decides == AS_M_CPU]);
	c->processes = a->d[0].n;
	c->seconds = a->seconds + first->seconds;
	c->seconds_needed = a->seconds_needed;
	c->dropped_timeout = a->timeouts + first->timeouts;
	c->dropped_failed = a->out && a->failed_run;
	copy_values(a->d[a->decides == AS_M_CPU].v, a->d[0].n, &c->d.v, &c->d.n, &c->d.cap);
	note_comparison(m, i, c);
}

/* ---- all ---- */

static void note_set(const struct as_measured *m, struct as_bench_set *set)
{
	const struct as_rounds *r = m->rounds;
	bool undecided = m->q->n == 1;

	for (size_t i = 1; i < m->q->n; i++)
		undecided |= r->v[i].look.verdict == AS_VERDICT_UNDECIDED;
	if (r->interrupted)
		as_bench_note(&set->notes, "interrupted",
			      "stopped early: this is what was measured until then");
	else if (r->out_of_budget && undecided && m->q->rounds.budget_hard)
		as_bench_note(&set->notes, "budget", "the budget of %g s is used up",
			      m->q->rounds.budget_s);
	if (m->q->overhead && m->q->n > 1)
		as_bench_note(&set->notes, "overhead",
			      "ratios and verdicts are of what was measured, %s included",
			      m->q->overhead_is_shell ? "the shell" : "the overhead");
	if (m->copies->folder)
		as_bench_note(&set->notes, "copies",
			      "the programs were copied first, all in the same way "
			      "(--no-copy runs them where they are)");
}

void as_commands_tell(const struct as_measured *m, struct as_commands_result *ret)
{
	struct as_bench_set *set = &ret->set;

	set->machine = as_history_machine();
	set->tool = m->q->tool ? as_xstrdup(m->q->tool) : NULL;
	set->time_s = as_realtime_ns() / 1000000000;
	set->seconds = m->rounds->wall_seconds;
	ret->interrupted = m->rounds->interrupted;
	for (size_t i = 0; i < m->q->n && m->rounds->n; i++) {
		const struct as_arm_result *a = &m->rounds->v[i];
		struct as_bench b;

		ret->failed += a->out || (!a->runs.v.n && !m->rounds->interrupted);
		tell_command(m, i, &b);
		as_vec_push(&set->benches, b);
	}
	for (size_t i = 1; i < m->q->n && m->rounds->n; i++) {
		struct as_bench_comparison c;

		if (!m->rounds->v[i].d[0].n)
			continue;
		tell_comparison(m, i, &c);
		as_vec_push(&set->comparisons, c);
	}
	if (m->rounds->n)
		note_set(m, set);
}
