/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What becomes of a result: figures, change, text, files. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/criterion/criterion_priv.h"
#include "stats/interval.h"

static struct as_criterion_estimate change_of(const struct as_trimmed *ln)
{
	return (struct as_criterion_estimate){.value = expm1(ln->value),
					      .low = expm1(ln->lo),
					      .high = expm1(ln->hi),
					      .se = ln->se * exp(ln->value)};
}

static double confidence_of(const struct as_criterion_turn *t)
{
	return as_criterion_number_of(t, AS_CRITERION_CONFIDENCE, 0.95);
}

/* Of a figure of the processes (its place in the struct), pair by pair. */
static struct as_trimmed pairs_of(const struct as_criterion_turn *turn,
				  const struct as_fn_result *r, size_t at)
{
	size_t n = AS_MIN(r->side[0].processes.n, r->side[1].processes.n);
	double *d = as_xcalloc(n + 1, sizeof *d);
	struct as_trimmed t;

	for (size_t i = 0; i < n; i++) {
		const char *old = (const char *)&r->side[0].processes.v[i],
			   *now = (const char *)&r->side[1].processes.v[i];
		double v[2];

		memcpy(&v[0], old + at, sizeof v[0]);
		memcpy(&v[1], now + at, sizeof v[1]);
		d[i] = v[0] == v[1] ? 0 : log(v[1] / v[0]); /* both may be zero */
	}
	as_trimmed_interval(d, n, AS_PAIRED_TRIM, 1 - confidence_of(turn), &t);
	free(d);
	return t;
}

/* How much more an iteration does now than when the baseline was saved, where both say so. */
static double work_ratio(const struct as_criterion_turn *t)
{
	bool same = t->spec->throughput && t->spec->throughput == t->stored.throughput;

	return same && t->spec->n && t->stored.work > 0 ? (double)t->spec->n / t->stored.work
							: 1;
}

/* paired.h's rule, on an interval per unit of work. */
static enum as_verdict verdict_of(const struct as_trimmed *ln, double delta)
{
	if (ln->lo > -delta && ln->hi < delta)
		return AS_VERDICT_EQUAL;
	if (ln->lo > delta / 2)
		return AS_VERDICT_SLOWER;
	return ln->hi < -delta / 2 ? AS_VERDICT_FASTER : AS_VERDICT_UNDECIDED;
}

static struct as_trimmed shifted(struct as_trimmed ln, double by)
{
	ln.value -= by;
	ln.lo -= by;
	ln.hi -= by;
	return ln;
}

static void change_fill(const struct as_criterion_turn *t, const struct as_fn_result *r,
			struct as_criterion_change *c)
{
	double work = work_ratio(t), by = log(work);
	struct as_trimmed judged = shifted(r->by_q25, by), shown = r->by_q25;
	struct as_trimmed median = pairs_of(t, r, offsetof(struct as_fn_process, median));
	struct as_trimmed mean = pairs_of(t, r, offsetof(struct as_fn_process, mean));

	if (r->d.n)
		as_trimmed_interval(r->d.v, r->d.n, AS_PAIRED_TRIM, 1 - confidence_of(t),
				    &shown);
	shown = shifted(shown, by);
	median = shifted(median, by);
	mean = shifted(mean, by);

	*c = (struct as_criterion_change){
		.mean = change_of(&mean),
		.median = change_of(&median),
		.low_quartile = change_of(&shown),
		.confidence = confidence_of(t),
		.verdict = work == 1 ? r->look.verdict : verdict_of(&judged, r->delta),
		.work = work,
		.baseline = t->c->compare,
		.pairs = r->d.n,
	};
}

static void estimate(const struct as_criterion_turn *t, const double *v, size_t n,
		     const uint32_t *sizes, size_t processes,
		     struct as_criterion_estimates *ret)
{
	as_criterion_estimate(v, n, sizes, processes, confidence_of(t), ret);
}

static const char *keep_program(struct as_criterion_run *s)
{
	struct as_error err = {0};

	if (s->kept && strcmp(s->kept_home, s->turn.home) == 0)
		return s->kept;
	if (s->keep_failed || !s->configured)
		return NULL;
	free(s->kept);
	s->kept = as_criterion_keep(s->turn.home, &err);
	as_criterion_put(&s->kept_home, s->turn.home);
	if (!s->kept) {
		s->keep_failed = true;
		as_criterion_say(
			STDERR_FILENO,
			"note: %s\n  without the program the next run has no verdict\n",
			err.msg);
	}
	return s->kept;
}

/* For files: numbers in the unit that the measurement writes for machines. */
static void scale(const struct as_criterion_unit *u, struct as_criterion_record *r,
		  double *batches, const struct as_criterion_turn *t, const uint32_t *sizes,
		  size_t processes)
{
	double lq[] = {r->est.low_quartile.value, r->est.low_quartile.low,
		       r->est.low_quartile.high, r->est.low_quartile.se};

	(void)u->for_machines(u->ctx, batches, r->n_batches);
	estimate(t, batches, r->n_batches, sizes, processes, &r->est);
	r->unit = u->for_machines(u->ctx, lq, AS_ARRAY_LEN(lq));
	r->est.low_quartile = (struct as_criterion_estimate){lq[0], lq[1], lq[2], lq[3]};
	r->batches = batches;
}

static const char *machine_of(struct as_criterion_run *s)
{
	if (!s->machine)
		s->machine = as_criterion_machine();
	return s->machine;
}

static void write_files(struct as_criterion_run *s, struct as_criterion_record *r,
			const struct as_criterion_change *change)
{
	struct as_criterion_turn *t = &s->turn;
	const char *names[] = {"new", t->c->save};
	struct as_error err = {0};
	int status;

	if (t->c->save)
		r->program = keep_program(s);
	r->machine = machine_of(s);
	status = as_criterion_write(t->home, r, names, t->c->save ? 2 : 1, &err);
	if (status == AS_OK && change)
		status = as_criterion_write_change(t->home, &t->id, change, &err);
	else if (status == AS_OK)
		as_criterion_remove_change(t->home, &t->id);
	if (status == AS_OK && as_criterion_number_of(t, AS_CRITERION_PLOTS, 0) > 0) {
		status = as_criterion_write_page(t->home, r, change, &err);
		as_criterion_put(&s->pages, t->home);
	}
	if (status < 0) {
		s->failed++;
		as_criterion_say(STDERR_FILENO, "error: cannot keep the results of '%s': %s\n",
				 t->id.title, err.msg);
	}
}

static struct as_criterion_look look_of(const struct as_criterion_run *s)
{
	double colour = s->turn.c->numbers[AS_CRITERION_COLOUR];
	const char *no = getenv("NO_COLOR");

	return (struct as_criterion_look){
		.colour = isnan(colour) ? isatty(STDOUT_FILENO) == 1 && !(no && *no)
					: colour != 0,
		.bencher = s->o.bencher,
		.quiet = s->o.quiet,
		.verbose = s->o.verbose,
	};
}

/* Which figure of an older result can be held against which of ours: the same one. */
static void set_trend(const struct as_criterion_turn *t, struct as_criterion_shown *shown)
{
	bool quartile = !isnan(t->stored.low_quartile);

	shown->trend = &t->stored;
	shown->trend_why = t->why;
	shown->before = quartile ? t->stored.low_quartile : t->stored.mean;
	shown->now = quartile ? shown->est->low_quartile.value : shown->est->mean.value;
}

static void show(struct as_criterion_run *s, const struct as_criterion_estimates *est,
		 const struct as_fn_result *r, const struct as_criterion_change *change)
{
	struct as_criterion_turn *t = &s->turn;
	struct as_criterion_look look = look_of(s);
	struct as_criterion_shown shown = {
		.id = &t->id,
		.spec = t->spec,
		.est = est,
		.r = r,
		.baseline = t->stored.found ? t->c->compare : NULL,
		.paired = change != NULL,
		.change = change,
		.significance = as_criterion_number_of(t, AS_CRITERION_SIGNIFICANCE, 0.05),
	};

	if (!change)
		set_trend(t, &shown);
	shown.machine = machine_of(s);
	if (s->terminal)
		as_criterion_say(STDERR_FILENO, "\r\033[K");
	as_criterion_show(&look, &shown);
}

/* Times are not negative, whatever the spread of two or three processes. */
static double floor_of(const struct as_criterion_unit *custom, double low)
{
	return custom ? low : fmax(low, 0);
}

/* A benchmark may say only when it runs, in the other process, what its work is. */
static const struct as_criterion_spec *with_throughput(struct as_criterion_turn *t,
						       const struct as_fn_entry *what)
{
	t->told = *t->spec;
	if (!t->told.throughput) {
		t->told.throughput = (int)what->throughput;
		t->told.n = what->throughput_n;
		t->told.n2 = what->throughput_n2;
	}
	return &t->told;
}

static void measured(struct as_criterion_run *s, const struct as_fn_result *r)
{
	const struct as_fn_side_result *side = &r->side[r->sides - 1];
	struct as_criterion_turn *t = &s->turn;
	const struct as_criterion_spec *spec = t->spec = with_throughput(t, &r->what);
	const struct as_criterion_unit *u =
		spec->unit && !spec->unit->wall_time ? spec->unit : NULL;
	size_t processes = side->processes.n, n = side->batches.n;
	uint32_t *sizes = as_xcalloc(processes + 1, sizeof *sizes);
	double *scaled = u ? as_xcalloc(n + 1, sizeof *scaled) : NULL;
	struct as_criterion_estimates est;
	struct as_criterion_change change;
	/* of standard errors, as if of a normal distribution */
	double widths = 2 * as_normal_quantile((1 + confidence_of(t)) / 2);

	for (size_t i = 0; i < processes; i++)
		sizes[i] = side->processes.v[i].batches;
	estimate(t, side->batches.v, n, sizes, processes, &est);
	est.low_quartile = (struct as_criterion_estimate){
		side->time.value,
		isnan(side->time.low) ? side->time.value : floor_of(u, side->time.low),
		isnan(side->time.high) ? side->time.value : side->time.high,
		isnan(side->time.low) ? 0 : (side->time.high - side->time.low) / widths};
	if (r->sides == 2)
		change_fill(t, r, &change);

	struct as_criterion_record record = {
		.id = &t->id,
		.group = spec->group,
		.function = spec->function,
		.value = spec->value,
		.throughput = spec->throughput,
		.n = spec->n,
		.n2 = spec->n2,
		.unit = "ns",
		.iters = (double)r->iterations,
		.batches = side->batches.v,
		.n_batches = n,
		.est = est,
		.csv = as_criterion_number_of(t, AS_CRITERION_CSV, 0) != 0};

	show(s, &est, r, r->sides == 2 ? &change : NULL);
	if (u) {
		memcpy(scaled, side->batches.v, n * sizeof *scaled);
		scale(u, &record, scaled, t, sizes, processes);
	}
	write_files(s, &record, r->sides == 2 ? &change : NULL);
	s->slower += r->sides == 2 && change.verdict == AS_VERDICT_SLOWER;
	s->measured++;
	free(sizes);
	free(scaled);
}

static void failed(struct as_criterion_run *s, const char *why)
{
	s->failed++;
	if (s->terminal)
		as_criterion_say(STDERR_FILENO, "\r\033[K");
	as_criterion_say(STDERR_FILENO, "%s: failed: %s\n", s->turn.id.title, why);
}

void as_criterion_result(struct as_criterion_run *s, struct as_fn_result *r)
{
	struct as_fn_result again = {0};
	struct as_error err = {0};

	if (!r->failed) {
		measured(s, r);
		return;
	}
	if (r->sides != 2 || !s->turn.old) {
		failed(s, r->failed);
		return;
	}
	/* Whose failure it was: without the old program it shows. */
	as_criterion_why(s->turn.why, sizeof s->turn.why, "%.300s", r->failed);
	if (as_fn_measure(&s->turn.alone, &again, &err) < 0)
		failed(s, err.msg);
	else if (again.failed)
		failed(s, again.failed);
	else
		measured(s, &again);
	as_fn_result_clear(&again);
}

/* Both programs of two stored results in pairs, measured now. False: it cannot be, t->why says why. */
static bool pair_stored(struct as_criterion_run *s, const struct as_criterion_stored *loaded,
			struct as_fn_result *ret)
{
	struct as_criterion_turn *t = &s->turn;
	AS_CLEANUP(as_free_autop) char *now = NULL;
	struct as_error err = {0};

	if (!t->old)
		return false;
	now = as_criterion_program_of(s, loaded);
	if (!now)
		return false;

	struct as_fn_request q = {
		.id = t->id.full,
		.side = {{.exe = t->old, .argv = s->argv}, {.exe = now, .argv = s->argv}},
		.sides = 2,
		.budget_s = as_criterion_number_of(t, AS_CRITERION_MEASUREMENT_S, 0),
		.delta = as_criterion_number_of(t, AS_CRITERION_NOISE, 0),
		.alpha = as_criterion_number_of(t, AS_CRITERION_SIGNIFICANCE, 0),
		.processes = (uint64_t)as_criterion_number_of(t, AS_CRITERION_SAMPLE_SIZE, 0),
		.interrupted = &as_bench_interrupted,
	};

	if (as_fn_measure(&q, ret, &err) == AS_OK && !ret->failed)
		return true;
	as_criterion_why(t->why, sizeof t->why, "%.300s", ret->failed ? ret->failed : err.msg);
	return false;
}

void as_criterion_result_load(struct as_criterion_run *s)
{
	struct as_criterion_turn *t = &s->turn;
	struct as_criterion_stored stored;
	struct as_criterion_estimates est;
	struct as_error err = {0};

	t->home = as_criterion_home_of(s, t->c);
	as_criterion_settle_folder(s);
	if (as_criterion_load(t->home, t->id.folder, s->o.load, true, &stored, &err) < 0 ||
	    !stored.found) {
		failed(s, err.status ? err.msg : "the baseline to load does not have it");
		as_criterion_stored_clear(&stored);
		return;
	}
	as_criterion_find_baseline(s);

	struct as_fn_result pairs = {0};
	struct as_criterion_change change;
	bool paired = pair_stored(s, &stored, &pairs);

	if (paired)
		change_fill(t, &pairs, &change);
	uint32_t *ones = as_xcalloc(stored.iters.n, sizeof *ones);

	for (size_t i = 0; i < stored.iters.n; i++) {
		ones[i] = 1;
		stored.times.v[i] /= stored.iters.v[i];
	}
	estimate(t, stored.times.v, stored.times.n, ones, stored.times.n, &est);
	est.low_quartile = est.mean;
	if (!isnan(stored.low_quartile))
		est.low_quartile = (struct as_criterion_estimate){
			stored.low_quartile, stored.low_quartile, stored.low_quartile, 0};
	show(s, &est, paired ? &pairs : NULL, paired ? &change : NULL);
	s->slower += paired && change.verdict == AS_VERDICT_SLOWER;
	as_fn_result_clear(&pairs);
	free(ones);
	as_criterion_stored_clear(&stored);
}
