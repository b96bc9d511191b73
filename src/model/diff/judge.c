/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What matched rows say: see diff.h for the procedure and its sources. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/diff/diff_priv.h"
#include "stats/interval.h"
#include "stats/spread.h"

#define FEW_SAMPLES   10  /* of both sides together; below, a row tells nothing of others */
#define DRIFT_SAMPLES 20  /* of each side, for the ratio of CPU times */
#define CAP           2.0 /* standard errors */
#define CAPPED_MEAN   0.9205372645 /* of min(x^2, CAP^2), x ~ N(0, 1) */
#define SURE          2.8 /* standard errors: a share that moved is the row's own doing */

struct side {
	const struct as_diff_session *v;
	size_t n;
};
struct working {
	struct side side[2];
	struct as_diff *d;
	double z;                /* the normal quantile that goes with 95 % */
	struct as_spread spread; /* several sessions: how their rows differ beyond samples */
	double df;               /* of a row's own spread */
};

static double median(double *v, size_t n)
{
	/* few thousands at most: insertion would do, selection is not worth its lines */
	for (size_t gap = n / 2; gap; gap /= 2) {
		for (size_t i = gap; i < n; i++) {
			double x = v[i];
			size_t k = i;

			for (; k >= gap && v[k - gap] > x; k -= gap)
				v[k] = v[k - gap];
			v[k] = x;
		}
	}
	return n ? n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2 : NAN;
}

/* A row that a session does not have: nothing of so many samples. */
static struct as_share none_of(const struct as_diff_session *s, double z)
{
	struct as_share none = {.deff = 1};

	none.high = s->samples ? as_proportion_interval(0, (double)s->samples, z).hi : 1;
	return none;
}

static struct as_share share_of(const struct as_diff_session *s, size_t name, double z)
{
	if (name < s->shares.n && s->shares.v[name].samples)
		return s->shares.v[name];
	return none_of(s, z);
}

/* Self figures: of these, unlike of totals, most are as they were when one has changed. */
static struct as_share self_of(const struct as_diff_session *s, size_t name, double z)
{
	if (name < s->selfs.n && s->selfs.v[name].samples)
		return s->selfs.v[name];
	return none_of(s, z);
}

static double seconds(const struct as_diff_session *s)
{
	return s->model->recording.weight_unit == 0 ? s->weight / 1e9 : NAN;
}

double as_diff_cpu_s(const struct as_diff_session *v, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += seconds(&v[i]) / (double)n;
	return sum;
}

static bool has(const struct working *w, const struct as_diff_session *s, size_t name,
		const struct as_share *share)
{
	return share->samples ||
	       (!w->d->request.tree && name < s->present.n && s->present.v[name]);
}

static void fill_side(const struct working *w, const struct side *side, size_t name,
		      struct as_diff_side *ret)
{
	double below = 0, above = 0, n = (double)side->n;

	for (size_t i = 0; i < side->n; i++) {
		struct as_share s = share_of(&side->v[i], name, w->z);

		ret->share.value += s.value / n;
		ret->share.samples += s.samples;
		ret->share.deff = AS_MAX(ret->share.deff, s.deff);
		below += (s.value - s.low) * (s.value - s.low);
		above += (s.high - s.value) * (s.high - s.value);
		ret->cpu_s += s.value * seconds(&side->v[i]) / n;
		ret->sessions += has(w, &side->v[i], name, &s);
	}
	ret->share.low = AS_MAX(0, ret->share.value - sqrt(below) / n);
	ret->share.high = AS_MIN(1, ret->share.value + sqrt(above) / n);
}

/* Square-and-add: limits of a difference from the limits of its parts. */
static void join_limits(struct as_diff_row *r)
{
	const struct as_share *a = &r->a.share, *b = &r->b.share;

	r->delta = b->value - a->value;
	r->low = r->delta - hypot(b->value - b->low, a->high - a->value);
	r->high = r->delta + hypot(b->high - b->value, a->value - a->low);
	r->cpu_delta_s = r->b.cpu_s - r->a.cpu_s;
}

/* The row's difference in units of its error on the side towards zero. */
static double units(const struct working *w, const struct as_diff_row *r)
{
	double half = r->delta > 0 ? r->delta - r->low : r->high - r->delta;

	return half > 0 ? w->z * r->delta / half : 0;
}

static bool tells(const struct as_diff_row *r)
{
	return r->a.share.samples + r->b.share.samples >= FEW_SAMPLES;
}

/* Between sessions of one side over what their samples explain. */
static double spread_of(const struct working *w, size_t name,
			struct as_share (*of)(const struct as_diff_session *, size_t, double))
{
	double squares = 0, within = 0, sessions = 0;

	for (int k = 0; k < 2; k++) {
		const struct side *s = &w->side[k];
		double mean = 0;

		for (size_t i = 0; i < s->n; i++)
			mean += of(&s->v[i], name, w->z).value / (double)s->n;
		for (size_t i = 0; i < s->n; i++) {
			struct as_share x = of(&s->v[i], name, w->z);
			double se = (x.high - x.low) / 2 / w->z;

			squares += (x.value - mean) * (x.value - mean);
			within += se * se;
			sessions++;
		}
	}
	return w->df > 0 && within > 0 ? squares / w->df / (within / sessions) : 0;
}

static double relative_error(const struct as_share *s, double z)
{
	return s->value > 0 && s->low > 0 ? log(s->high / s->low) / 2 / z : INFINITY;
}

static void widen(struct as_diff_row *r, double factor)
{
	r->low = r->delta - (r->delta - r->low) * factor;
	r->high = r->delta + (r->high - r->delta) * factor;
}

/* Two-sided level of t with df degrees of freedom; infinite df: normal. */
static double level(double t, double df)
{
	return isinf(df) ? erfc(fabs(t) * M_SQRT1_2)
			 : as_beta_cdf(df / (df + t * t), df / 2, 0.5);
}

/* ---- what runs differ by beyond their samples ---- */

struct contrast {      /* of a self share that both sides know well */
	double change; /* of its log odds; then against the usual change */
	double error;
};

static double spread_odds(const struct as_share *s, double z)
{
	return (s->high - s->low) / 2 / z / (s->value * (1 - s->value));
}

static size_t find_contrasts(const struct working *w, size_t names, struct contrast *ret)
{
	AS_CLEANUP(as_free_autop)
	double *copy = as_xreallocarray(NULL, names + 1, sizeof *copy);
	size_t n = 0;
	double middle;

	for (size_t i = 0; i < names; i++) {
		struct as_share a = self_of(&w->side[0].v[0], i, w->z),
				b = self_of(&w->side[1].v[0], i, w->z);

		if (AS_MIN(a.samples, b.samples) < DRIFT_SAMPLES ||
		    AS_MAX(a.value, b.value) >= 1)
			continue;
		ret[n] = (struct contrast){log(b.value / (1 - b.value)) -
						   log(a.value / (1 - a.value)),
					   hypot(spread_odds(&a, w->z), spread_odds(&b, w->z))};
		copy[n] = ret[n].change;
		n++;
	}
	middle = median(copy, n);
	for (size_t i = 0; i < n; i++)
		ret[i].change -= middle;
	return n;
}

static double capped_squares(const struct contrast *v, size_t n, double between)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += AS_MIN(v[i].change * v[i].change /
				      (v[i].error * v[i].error + between * between),
			      CAP * CAP);
	return sum;
}

/*
 * One session a side: most functions have not changed, so that the log odds of their shares, over the
 * usual change, lie apart by their errors and by what runs differ beyond. The usual change is not 0
 * when a heavy function has changed: the shares of all others then have, too. What is beyond solves
 * the moment equation of random effects, with squares capped against those that have changed.
 */
static double find_between(const struct working *w, size_t names)
{
	AS_CLEANUP(as_free_autop)
	struct contrast *v = as_xreallocarray(NULL, names + 1, sizeof *v);
	size_t n = find_contrasts(w, names, v);
	double lo = 0, hi = 4;

	if (n < AS_DIFF_MIN_ROWS || capped_squares(v, n, 0) <= CAPPED_MEAN * (double)(n - 1))
		return 0;
	for (int i = 0; i < 40; i++) {
		double mid = (lo + hi) / 2;

		if (capped_squares(v, n, mid) > CAPPED_MEAN * (double)(n - 1))
			lo = mid;
		else
			hi = mid;
	}
	return hi;
}

/* The factor by which `between` widens a row's interval, on the side towards zero. */
static double widening(const struct working *w, const struct as_diff_row *r)
{
	double half = r->delta > 0 ? r->delta - r->low : r->high - r->delta;
	double p = (r->a.share.value + r->b.share.value) / 2;
	double beyond = w->d->between * p * (1 - p) * w->z;

	return half > 0 ? hypot(1, beyond / half) : 1;
}

static void judge_single(struct working *w, size_t names)
{
	struct as_diff *d = w->d;
	AS_VEC(double) factors = {0};

	d->between = find_between(w, names);
	as_vec_foreach (r, &d->rows) {
		r->widened = widening(w, r);
		widen(r, r->widened);
		r->p = level(units(w, r), INFINITY);
		if (tells(r))
			as_vec_push(&factors, r->widened);
	}
	if (factors.n)
		d->widened = median(factors.v, factors.n);
	as_vec_clear(&factors);
}

static void find_spread(struct working *w, size_t names)
{
	AS_VEC(double) ratios = {0};

	w->df = (double)(w->side[0].n + w->side[1].n) - 2;
	for (size_t i = 0; i < names; i++) {
		uint64_t samples = 0;

		for (int k = 0; k < 2; k++) {
			for (size_t s = 0; s < w->side[k].n; s++)
				samples += self_of(&w->side[k].v[s], i, w->z).samples;
		}
		if (samples >= 2 * DRIFT_SAMPLES)
			as_vec_push(&ratios, spread_of(w, i, self_of));
	}
	as_spread_find(ratios.v, ratios.n, w->df, &w->spread);
	as_vec_clear(&ratios);
}

static void judge_several(struct working *w, size_t names)
{
	struct as_diff *d = w->d;
	double df, t;

	find_spread(w, names);
	df = w->spread.df + w->df;
	t = as_student_quantile(0.5 + AS_CONFIDENCE / 2, df);
	d->widened = AS_MAX(1, sqrt(w->spread.all));
	as_vec_foreach (r, &d->rows) {
		double own = spread_of(w, r->name_index, share_of);

		r->widened = sqrt(as_spread_draw(&w->spread, own, w->df));
		widen(r, r->widened);
		r->p = level(units(w, r), df);
		widen(r, t / w->z);
		r->one_run = (w->side[0].n > 1 && r->a.sessions == 1 && r->b.sessions <= 1) ||
			     (w->side[1].n > 1 && r->b.sessions == 1 && r->a.sessions <= 1);
	}
}

/* ---- adjusting, verdicts ---- */

struct ranked {
	double p;
	size_t row;
};

static int by_level(const void *pa, const void *pb)
{
	const struct ranked *a = pa, *b = pb;

	return a->p != b->p ? (a->p > b->p) - (a->p < b->p)
			    : (a->row > b->row) - (a->row < b->row);
}

/*
 * Rows that cannot be found, for want of samples or because all of them is less than the least effect,
 * are no tests and do not burden the others. That is decided by the sum of both sides, which does not
 * depend on their difference when there is none (R. Bourgon et al., PNAS 107 (2010) 9546).
 */
static bool is_test(const struct as_diff *d, const struct as_diff_row *r)
{
	return tells(r) && r->a.share.value + r->b.share.value >= d->request.min_effect;
}

static void adjust(struct as_diff *d)
{
	AS_VEC(struct ranked) tests = {0};
	double least = 1;

	for (size_t i = 0; i < d->rows.n; i++) {
		d->rows.v[i].adjusted = 1;
		if (is_test(d, &d->rows.v[i]))
			as_vec_push(&tests, (struct ranked){d->rows.v[i].p, i});
	}
	d->tests = tests.n;
	if (tests.n)
		qsort(tests.v, tests.n, sizeof *tests.v, by_level);
	for (size_t i = tests.n; i-- > 0;) {
		least = AS_MIN(least, tests.v[i].p * (double)tests.n / (double)(i + 1));
		d->rows.v[tests.v[i].row].adjusted = least;
	}
	as_vec_clear(&tests);
}

/* Median ratio of the CPU times of self rows that both sides know well: the machine's doing. */
static double drift_of(const struct working *w, size_t names)
{
	AS_VEC(double) ratios = {0};
	double m = NAN;

	for (size_t i = 0; i < names; i++) {
		double cpu[2] = {0};
		uint64_t samples[2] = {0};

		for (int k = 0; k < 2; k++) {
			for (size_t s = 0; s < w->side[k].n; s++) {
				const struct as_diff_session *v = &w->side[k].v[s];
				struct as_share x = self_of(v, i, w->z);

				cpu[k] += x.value * seconds(v) / (double)w->side[k].n;
				samples[k] += x.samples;
			}
		}
		if (AS_MIN(samples[0], samples[1]) >= DRIFT_SAMPLES && cpu[0] > 0)
			as_vec_push(&ratios, log(cpu[1] / cpu[0]));
	}
	if (ratios.n >= 5)
		m = exp(median(ratios.v, ratios.n));
	as_vec_clear(&ratios);
	return m;
}

/* Whether the row's own CPU time, against the rest of the program, is where it was. */
static bool only_share(const struct working *w, const struct as_diff_row *r)
{
	double ratio = log(r->b.cpu_s / r->a.cpu_s / w->d->drift);
	double error =
		hypot(relative_error(&r->a.share, w->z), relative_error(&r->b.share, w->z));

	return isfinite(ratio) && isfinite(error) && fabs(ratio) < SURE * error * r->widened;
}

static void decide(const struct working *w, struct as_diff_row *r)
{
	const struct as_diff_request *q = &w->d->request;

	if (r->adjusted <= q->level && fabs(r->delta) >= q->min_effect) {
		r->change = r->delta > 0 ? AS_CHANGE_UP : AS_CHANGE_DOWN;
		r->share_only = only_share(w, r);
	} else if (r->low > -q->min_effect && r->high < q->min_effect) {
		r->change = AS_CHANGE_EQUAL;
	}
	w->d->counts[r->change]++;
}

/* Of the side's mean CPU time of a row: of its share, and of the runs' CPU times. */
static double cpu_error(const struct side *s, const struct as_share *share, double widened,
			double z)
{
	double sum = 0, squares = 0, n = (double)s->n, of_share;

	for (size_t i = 0; i < s->n; i++)
		sum += seconds(&s->v[i]) / n;
	of_share = (share->high - share->low) / 2 / z * sum * widened;
	for (size_t i = 0; i < s->n; i++) {
		double x = (seconds(&s->v[i]) - sum) * share->value;

		squares += x * x;
	}
	return n > 1 ? hypot(of_share, sqrt(squares / (n - 1) / n)) : of_share;
}

static void fill_cpu(const struct working *w, struct as_diff_row *r)
{
	double error = hypot(cpu_error(&w->side[0], &r->a.share, r->widened, w->z),
			     cpu_error(&w->side[1], &r->b.share, r->widened, w->z));
	double q = w->df > 0
			   ? as_student_quantile(0.5 + AS_CONFIDENCE / 2, w->spread.df + w->df)
			   : w->z;

	r->cpu_low = r->cpu_delta_s - q * error;
	r->cpu_high = r->cpu_delta_s + q * error;
}

static int by_weight(const void *pa, const void *pb)
{
	const struct as_diff_row *a = pa, *b = pb;
	bool ra = a->change >= AS_CHANGE_UP, rb = b->change >= AS_CHANGE_UP;
	double x = fabs(a->delta), y = fabs(b->delta);

	if (ra != rb)
		return ra ? -1 : 1;
	return x != y ? (x < y) - (x > y) : strcmp(a->name, b->name);
}

static void make_rows(struct working *w, const struct as_diff_names *names)
{
	struct as_diff *d = w->d;

	as_vec_reserve(&d->rows, names->n);
	for (size_t i = 0; i < names->n; i++) {
		const struct as_row *n = &names->v[i];
		struct as_diff_row r = {.name = n->name,
					.full_name = n->full_name,
					.module = n->module,
					.file = n->file,
					.crate = n->crate,
					.line = n->line,
					.name_index = (uint32_t)i};

		fill_side(w, &w->side[0], i, &r.a);
		fill_side(w, &w->side[1], i, &r.b);
		join_limits(&r);
		/* callers that never were a leaf */
		if (r.a.share.samples || r.b.share.samples)
			as_vec_push(&d->rows, r);
	}
}

void as_diff_judge(struct as_diff *d, const struct as_diff_session *sessions,
		   const struct as_diff_names *names, size_t selfs)
{
	struct working w = {
		.side = {{sessions, d->runs[0]}, {sessions + d->runs[0], d->runs[1]}},
		.d = d,
		.z = as_normal_quantile(0.5 + AS_CONFIDENCE / 2)};

	make_rows(&w, names);
	if (d->runs[0] + d->runs[1] > 2)
		judge_several(&w, selfs);
	else
		judge_single(&w, selfs);
	adjust(d);
	d->drift = drift_of(&w, selfs);
	as_vec_foreach (r, &d->rows) {
		fill_cpu(&w, r);
		decide(&w, r);
	}
	if (d->rows.n)
		qsort(d->rows.v, d->rows.n, sizeof *d->rows.v, by_weight);
}
