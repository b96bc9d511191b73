/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What matched rows say: see diff.h for the procedure and its sources. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/diff_priv.h"
#include "stats/interval.h"

#define FEW_SAMPLES   10  /* of both sides together; below, a row tells nothing of others */
#define DRIFT_SAMPLES 20  /* of each side, for the ratio of CPU times */
#define PRIOR_DF      4.0 /* what the spread of all rows weighs against a row's own */
#define MEDIAN_Z      0.6744897501960817 /* of |N(0, 1)| */

struct side {
	const struct as_diff_session *v;
	size_t n;
};
struct working {
	struct side side[2];
	const struct as_diff_match *match;
	struct as_diff *d;
	double z;      /* the normal quantile that goes with 95 % */
	double spread; /* several sessions: of all rows, variance between over variance within */
};

const char *as_change_name(enum as_change c)
{
	static const char *const names[AS_CHANGE_COUNT_] = {"undecided", "equal", "up", "down"};

	return (unsigned)c < AS_CHANGE_COUNT_ ? names[c] : "undecided";
}

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
static struct as_share share_of(const struct as_diff_session *s, size_t name, double z)
{
	struct as_share none = {.deff = 1};

	if (name < s->shares.n && s->shares.v[name].samples)
		return s->shares.v[name];
	none.high = s->samples ? as_proportion_interval(0, (double)s->samples, z).hi : 1;
	return none;
}

static double seconds(const struct as_diff_session *s)
{
	return s->model->recording.weight_unit == 0 ? s->weight / 1e9 : NAN;
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
		ret->sessions += s.samples != 0;
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

/* Between sessions of one side over what their samples explain, and its degrees of freedom. */
static double spread_of(const struct working *w, size_t name, double *ret_df)
{
	double squares = 0, within = 0, df = 0, sessions = 0;

	for (int k = 0; k < 2; k++) {
		const struct side *s = &w->side[k];
		double mean = 0;

		for (size_t i = 0; i < s->n; i++)
			mean += share_of(&s->v[i], name, w->z).value / (double)s->n;
		for (size_t i = 0; i < s->n; i++) {
			struct as_share x = share_of(&s->v[i], name, w->z);
			double se = (x.high - x.low) / 2 / w->z;

			squares += (x.value - mean) * (x.value - mean);
			within += se * se;
			sessions++;
		}
		df += (double)s->n - 1;
	}
	*ret_df = df;
	return df > 0 && within > 0 ? squares / df / (within / sessions) : 0;
}

/* Median of a chi-square over its degrees of freedom (Wilson, Hilferty). */
static double chi_median(double df)
{
	double x = 1 - 2 / (9 * df);

	return x * x * x;
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

/* One session a side: the spread that runs have beyond sampling is read off all rows. */
static void judge_single(struct working *w)
{
	struct as_diff *d = w->d;
	AS_VEC(double) z = {0};

	as_vec_foreach (r, &d->rows) {
		if (tells(r))
			as_vec_push(&z, fabs(units(w, r)));
	}
	if (z.n >= AS_DIFF_MIN_ROWS)
		d->widened = AS_MAX(1, median(z.v, z.n) / MEDIAN_Z);
	as_vec_clear(&z);
	as_vec_foreach (r, &d->rows) {
		widen(r, d->widened);
		r->p = level(units(w, r), INFINITY);
	}
}

static void judge_several(struct working *w)
{
	struct as_diff *d = w->d;
	AS_VEC(double) spreads = {0};
	double df = 0, all = 1;

	as_vec_foreach (r, &d->rows) {
		if (tells(r))
			as_vec_push(&spreads, spread_of(w, r->name_index, &df));
	}
	if (spreads.n >= AS_DIFF_MIN_ROWS)
		all = median(spreads.v, spreads.n) / chi_median(df);
	as_vec_clear(&spreads);
	d->widened = AS_MAX(1, sqrt(all));
	as_vec_foreach (r, &d->rows) {
		double own = spread_of(w, r->name_index, &df);
		double drawn = AS_MAX(1, (PRIOR_DF * all + df * own) / (PRIOR_DF + df));
		double t = as_student_quantile(0.5 + AS_CONFIDENCE / 2, PRIOR_DF + df);

		widen(r, sqrt(drawn));
		r->p = level(units(w, r), PRIOR_DF + df);
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

/* Rows with too few samples are no tests: they cannot be found, and do not burden the others. */
static void adjust(struct as_diff *d)
{
	AS_VEC(struct ranked) tests = {0};
	double least = 1;

	for (size_t i = 0; i < d->rows.n; i++) {
		d->rows.v[i].adjusted = 1;
		if (tells(&d->rows.v[i]))
			as_vec_push(&tests, (struct ranked){d->rows.v[i].p, i});
	}
	if (tests.n)
		qsort(tests.v, tests.n, sizeof *tests.v, by_level);
	for (size_t i = tests.n; i-- > 0;) {
		least = AS_MIN(least, tests.v[i].p * (double)tests.n / (double)(i + 1));
		d->rows.v[tests.v[i].row].adjusted = least;
	}
	as_vec_clear(&tests);
}

/* Median ratio of the CPU times of rows that both sides know well: the machine's doing. */
static double drift_of(const struct as_diff *d)
{
	AS_VEC(double) ratios = {0};
	double m = NAN;

	as_vec_foreach (r, &d->rows) {
		if (AS_MIN(r->a.share.samples, r->b.share.samples) >= DRIFT_SAMPLES &&
		    r->a.cpu_s > 0)
			as_vec_push(&ratios, log(r->b.cpu_s / r->a.cpu_s));
	}
	if (ratios.n >= 5)
		m = exp(median(ratios.v, ratios.n));
	as_vec_clear(&ratios);
	return m;
}

static double relative_error(const struct as_share *s, double z)
{
	return s->value > 0 && s->low > 0 ? log(s->high / s->low) / 2 / z : INFINITY;
}

/* Whether the row's own CPU time, against the rest of the program, is where it was. */
static bool only_share(const struct working *w, const struct as_diff_row *r)
{
	double ratio = log(r->b.cpu_s / r->a.cpu_s / w->d->drift);
	double error =
		hypot(relative_error(&r->a.share, w->z), relative_error(&r->b.share, w->z));

	return isfinite(ratio) && isfinite(error) && fabs(ratio) < w->z * error * w->d->widened;
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

static double cpu_error(const struct side *s, const struct as_share *share, double z)
{
	double sum = 0, squares = 0, n = (double)s->n, sampling;

	for (size_t i = 0; i < s->n; i++)
		sum += seconds(&s->v[i]) / n;
	sampling = (share->high - share->low) / 2 / z * sum;
	for (size_t i = 0; i < s->n; i++) {
		double x = (seconds(&s->v[i]) - sum) * share->value;

		squares += x * x;
	}
	return n > 1 ? hypot(sampling, sqrt(squares / (n - 1) / n)) : sampling;
}

static void fill_cpu(const struct working *w, struct as_diff_row *r)
{
	double error = hypot(cpu_error(&w->side[0], &r->a.share, w->z),
			     cpu_error(&w->side[1], &r->b.share, w->z)) *
		       w->d->widened;
	double df = (double)(w->side[0].n + w->side[1].n) - 2;
	double q = df > 0 ? as_student_quantile(0.5 + AS_CONFIDENCE / 2, PRIOR_DF + df) : w->z;

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

static void make_rows(struct working *w)
{
	struct as_diff *d = w->d;

	as_vec_reserve(&d->rows, w->match->names.n);
	for (size_t i = 0; i < w->match->names.n; i++) {
		const struct as_row *n = &w->match->names.v[i].row;
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

static void judge(struct working *w)
{
	struct as_diff *d = w->d;

	make_rows(w);
	if (w->side[0].n + w->side[1].n > 2)
		judge_several(w);
	else
		judge_single(w);
	adjust(d);
	d->drift = drift_of(d);
	as_vec_foreach (r, &d->rows) {
		fill_cpu(w, r);
		decide(w, r);
	}
	if (d->rows.n)
		qsort(d->rows.v, d->rows.n, sizeof *d->rows.v, by_weight);
}

static double cpu_of(const struct side *s)
{
	double sum = 0;

	for (size_t i = 0; i < s->n; i++)
		sum += seconds(&s->v[i]) / (double)s->n;
	return sum;
}

int as_diff_make(const struct as_diff_request *q, struct as_diff **ret, struct as_error *err)
{
	struct as_diff *d = as_xcalloc(1, sizeof *d);
	size_t n = q->na + q->nb;
	struct as_diff_session *sessions = as_xcalloc(n + 1, sizeof *sessions);
	struct as_diff_match match = {.arena = &d->arena};
	struct working w = {.side = {{sessions, q->na}, {sessions + q->na, q->nb}},
			    .match = &match,
			    .d = d,
			    .z = as_normal_quantile(0.5 + AS_CONFIDENCE / 2)};
	int r = AS_OK;

	d->request = *q;
	d->widened = 1;
	if (!(d->request.min_effect > 0))
		d->request.min_effect = AS_DIFF_MIN_EFFECT;
	if (!(d->request.level > 0))
		d->request.level = 1 - AS_CONFIDENCE;
	for (size_t i = 0; i < n && r == AS_OK; i++)
		r = as_diff_match_add(&match, i < q->na ? q->a[i] : q->b[i - q->na], q,
				      &sessions[i], err);
	if (r == AS_OK) {
		judge(&w);
		d->cpu_a_s = cpu_of(&w.side[0]);
		d->cpu_b_s = cpu_of(&w.side[1]);
		*ret = d;
	} else {
		as_diff_free(d);
	}
	for (size_t i = 0; i < n; i++)
		as_vec_clear(&sessions[i].shares);
	free(sessions);
	as_diff_match_clear(&match);
	return r;
}

void as_diff_free(struct as_diff *d)
{
	if (!d)
		return;
	as_vec_clear(&d->rows);
	as_arena_clear(&d->arena);
	free(d);
}
