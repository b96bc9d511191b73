/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Questions asked, and what a process told made a sample of: see driver_priv.h. */
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/map.h"
#include "base/sys.h"
#include "harness/driver_priv.h"

#define TIMEOUT_S    60
#define LOW_QUARTILE 0.25

uint64_t as_measuring_random(struct as_measuring *m)
{
	m->random += 0x9e3779b97f4a7c15ull;
	return as_mix64(m->random);
}

double as_measuring_elapsed(const struct as_measuring *m)
{
	return (double)(as_now_ns() - m->start_ns) / 1e9;
}

bool as_measuring_is_interrupted(const struct as_measuring *m)
{
	return m->q->interrupted && *m->q->interrupted;
}

int as_measuring_fail(struct as_measuring *m, const char *fmt, ...)
{
	struct as_buf b = {0};
	va_list ap;

	if (m->r->failed)
		return 0;
	va_start(ap, fmt);
	as_buf_vaddf(&b, fmt, ap);
	va_end(ap);
	m->r->failed = as_buf_detach(&b);
	return 0;
}

/* ---- ask ---- */

static void fail_as_ended(struct as_measuring *m, struct as_worker *w,
			  const struct as_answer *a)
{
	AS_CLEANUP(as_buf_clear) struct as_buf how = {0};

	as_worker_end(w);
	as_worker_describe(w, &how);
	m->r->dropped_failed++;
	if (!a->library[0] && !WIFSIGNALED(w->status) && !m->r->side[0].processes.n)
		as_measuring_fail(m,
				  "the program %s without an answer: it is no bench program of "
				  "assay, or ended before its benchmarks",
				  as_buf_str(&how));
	else if (!a->reached_ns)
		as_measuring_fail(m, "the program %s before the benchmark was reached",
				  as_buf_str(&how));
	else
		as_measuring_fail(m, "its process %s%s", as_buf_str(&how),
				  w->left ? ", and processes that it had started went on (they "
					    "were ended)"
					  : "");
}

static void fail_as_late(struct as_measuring *m, struct as_worker *w, const struct as_answer *a)
{
	double s = (double)(as_now_ns() - w->start_ns) / 1e9;

	m->r->dropped_timeout++;
	m->r->out_of_time = as_now_ns() >= m->cap_ns;
	if (m->r->out_of_time) {
		as_measuring_fail(
			m, "not measured: the time there was for it ended after %.3g s", s);
		return;
	}
	as_measuring_fail(
		m,
		a->reached_ns ? "did not finish within %.3g s: it hangs, or needs a longer "
				"time limit"
			      : "was not reached within %.3g s: the program hangs before it",
		s);
}

static void fail_as_missing(struct as_measuring *m)
{
	as_measuring_fail(
		m,
		"the program '%s' ended without reaching it: has its name changed, or "
		"does it differ from run to run?",
		m->side[0].exe);
}

/* What the worker answered, or did not, as 1, 0 or an error. */
static int judge(struct as_measuring *m, int r, struct as_worker *w, struct as_answer *a,
		 struct as_error *err, struct as_error *cause)
{
	if (r == AS_E_UNSUPPORTED)
		return as_fail(err, AS_E_UNSUPPORTED, 0, "%s", cause->msg);
	if (r == AS_E_CANCELLED)
		return 0;
	/* the time is over, and there is something: that stays */
	if (r == AS_E_LIMIT && as_now_ns() >= m->cap_ns &&
	    m->r->side[m->sides - 1].processes.n) {
		m->r->dropped_timeout++;
		return 0;
	}
	if (r == AS_E_LIMIT && w->total <= AS_ANSWER_BYTES)
		fail_as_late(m, w, a);
	else if (r == AS_E_IO)
		fail_as_ended(m, w, a);
	else if (r < 0)
		as_measuring_fail(m, "a damaged answer: %s", cause->msg);
	else if (a->error)
		as_measuring_fail(m, "%s", a->error);
	return m->r->failed ? 0 : 1;
}

static uint64_t deadline(const struct as_measuring *m)
{
	double s = m->q->timeout_s > 0 ? m->q->timeout_s : TIMEOUT_S;

	return AS_MIN(as_now_ns() + (uint64_t)(s * 1e9), m->cap_ns);
}

int as_measuring_ask(struct as_measuring *m, unsigned side, const struct as_question *question,
		     struct as_answer *ret, struct as_worker *ret_worker, struct as_error *err)
{
	struct as_error cause = {0};
	int r;

	if (m->source == AS_HERE)
		r = as_worker_here(m->q, question, ret_worker, &m->forked, err);
	else
		r = as_worker_start(&m->side[side], m->q->id, question,
				    (unsigned)(as_measuring_random(m) % AS_WORKER_PAD_MAX),
				    ret_worker, err);
	if (r < 0)
		return r;
	r = as_worker_listen(ret_worker, ret, deadline(m), m->q->interrupted, &cause);
	r = judge(m, r, ret_worker, ret, err, &cause);
	as_worker_end(ret_worker);
	if (r == 1 && ret->missing && m->q->here && m->source != AS_HERE && m->sides == 1) {
		m->source = AS_HERE;
		as_answer_clear(ret);
		as_answer_init(ret);
		return as_measuring_ask(m, side, question, ret, ret_worker, err);
	}
	if (r == 1 && ret->missing) {
		fail_as_missing(m);
		return 0;
	}
	m->unoptimised |= ret->unoptimised;
	return r;
}

/* ---- a sample ---- */

double as_quantile(const double *sorted, size_t n, double q)
{
	double at = q * (double)(n - 1);
	size_t i = (size_t)at;

	if (i + 1 >= n)
		return sorted[n - 1];
	return sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]);
}

static void batches_of(struct as_measuring *m, const struct as_answer *a,
		       struct as_fn_side_result *side, struct as_fn_process *p)
{
	double per = (double)m->question.iterations, rate = 0, overlap = 0;
	AS_CLEANUP(as_free_autop) double *v = as_xcalloc(a->batches.n + 1, sizeof *v);
	AS_CLEANUP(as_free_autop) double *cpu = as_xcalloc(a->batches.n + 1, sizeof *cpu);
	bool is_time = strcmp(m->r->what.unit, "ns") == 0;
	size_t n = 0;

	p->first = a->batches.n ? a->batches.v[0].value / per : NAN;
	as_vec_foreach (b, &a->batches) {
		if (b->warmup)
			continue;
		v[n] = b->value / per;
		cpu[n++] = b->cpu_ns / per;
		p->mean += b->value / per;
		rate += b->rate;
		overlap += b->overlap;
		as_vec_push(&side->batches, b->value / per);
		if (is_time && isnan(b->rate)) {
			m->setup_ns += b->wall_ns;
			m->timed_ns += b->value;
		}
	}
	p->batches = (uint32_t)n;
	p->mean /= (double)n;
	p->rate = rate / (double)n;
	p->overlap = overlap / (double)n;
	qsort(v, n, sizeof *v, as_by_value);
	qsort(cpu, n, sizeof *cpu, as_by_value);
	p->q25 = as_quantile(v, n, LOW_QUARTILE);
	p->median = as_quantile(v, n, 0.5);
	p->cpu = as_quantile(cpu, n, LOW_QUARTILE);
	p->min = v[0];
	p->max = v[n - 1];
}

static void push_sample(struct as_measuring *m, unsigned side, const struct as_answer *a,
			const struct as_worker *w, double steal_s)
{
	struct as_fn_process p = {0};

	batches_of(m, a, &m->r->side[side], &p);
	p.startup_s = w && a->reached_ns > w->start_ns
			      ? (double)(a->reached_ns - w->start_ns) / 1e9
			      : 0;
	p.wall_s = w ? w->wall_s : NAN;
	p.voluntary = a->voluntary;
	p.involuntary = a->involuntary;
	p.migrations = a->migrations;
	p.minor_faults = a->minor_faults;
	p.major_faults = a->major_faults;
	p.run_delay_s = a->run_delay_ns / 1e9;
	p.steal_s = steal_s;
	as_vec_push(&m->r->side[side].processes, p);
}

/* Of all CPUs, since the machine was started; 8th number of the first line of /proc/stat. */
static double stolen_s(void)
{
	char head[512];
	int fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof head - 1);
	const char *p = head;
	uint64_t v;

	as_close_autop(&fd);
	if (n <= 0)
		return NAN;
	head[n] = 0;
	/* "cpu  user nice system idle iowait irq softirq steal": two blanks before the first */
	for (int blank = 0; blank < 9 && p; blank++)
		p = strchr(p + 1, ' ');
	if (!p)
		return NAN;
	for (v = 0, p++; *p >= '0' && *p <= '9'; p++)
		v = v * 10 + (uint64_t)(*p - '0');
	return (double)v / (double)sysconf(_SC_CLK_TCK);
}

/* ---- serve ---- */

int as_measuring_serve(struct as_measuring *m, struct as_error *err)
{
	struct as_question q = m->question;
	struct as_error cause = {0};
	int r;

	q.ask = AS_ASK_SERVE;
	q.prime = m->calibration[0].first_wall_ns > 2 * m->calibration[0].wall_ns;
	as_answer_init(&m->server_answer);
	r = as_worker_start(&m->side[0], m->q->id, &q,
			    (unsigned)(as_measuring_random(m) % AS_WORKER_PAD_MAX), &m->server,
			    err);
	if (r < 0)
		return r;
	m->source = AS_SERVED;
	/* the first child is asked for at once: its answer tells that the server stands */
	r = write(m->server.ctl, "g", 1) == 1 ? AS_OK : AS_E_IO;
	if (r == AS_OK)
		r = as_worker_listen(&m->server, &m->server_answer, deadline(m),
				     m->q->interrupted, &cause);
	if (r == AS_OK && m->server_answer.done) {
		if (m->server_answer.batches.n)
			push_sample(m, 0, &m->server_answer, NULL, NAN);
		return 1;
	}
	if (r == AS_OK && m->server_answer.error) {
		as_measuring_end_server(m);
		m->source = AS_FRESH;
		return 0;
	}
	r = judge(m, r < 0 ? r : AS_E_IO, &m->server, &m->server_answer, err, &cause);
	as_measuring_end_server(m);
	return r;
}

void as_measuring_end_server(struct as_measuring *m)
{
	if (m->source != AS_SERVED)
		return;
	as_worker_end(&m->server);
	as_answer_clear(&m->server_answer);
}

/* One child more. Its startup is none. */
static int ask_server(struct as_measuring *m, struct as_answer **ret, struct as_error *err)
{
	struct as_error cause = {0};
	int r;

	*ret = &m->server_answer;
	as_answer_next(*ret);
	r = write(m->server.ctl, "g", 1) == 1 ? AS_OK : AS_E_IO;
	if (r == AS_OK)
		r = as_worker_listen(&m->server, *ret, deadline(m), m->q->interrupted, &cause);
	return judge(m, r, &m->server, *ret, err, &cause);
}

int as_measuring_sample(struct as_measuring *m, unsigned side, struct as_error *err)
{
	struct as_answer own, *a = &own;
	struct as_worker w = {0};
	double steal = stolen_s();
	bool fresh = m->source != AS_SERVED;
	int r;

	as_answer_init(&own);
	r = fresh ? as_measuring_ask(m, side, &m->question, a, &w, err)
		  : ask_server(m, &a, err);
	if (r == 1) {
		size_t n = 0;

		if (!m->r->what.unit)
			as_measuring_take_what(m, a);
		as_vec_foreach (b, &a->batches)
			n += !b->warmup;
		if (!n || !m->question.iterations)
			r = as_measuring_fail(m, "a damaged answer: no batches");
		else if (!m->r->what.unit)
			r = as_measuring_fail(m, "a damaged answer: no name");
		else
			push_sample(m, side, a, fresh ? &w : NULL, stolen_s() - steal);
	}
	as_answer_clear(&own);
	return r;
}
