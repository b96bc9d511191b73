/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How often identical halves are called different. The session is cut into stretches of time; of two
 * neighbours a coin gives one to each half, so that phases of the program fall into both halves alike.
 * A half is put together without its gaps, so that it reads like a recording of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "view/diff/diff.h"

enum { STRETCHES = 64, STRETCH_SAMPLES = 8 };

struct halves {
	struct as_model half[2]; /* copies of the session with samples of their own */
	size_t capacity;
};

static uint64_t next_random(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15ull;
	return as_mix64(*state);
}

/* Samples [from, to) of m to the end of `to_model`, which has `length` ns so far. */
static uint64_t append(struct as_model *half, const struct as_model *m, size_t from, size_t to,
		       uint64_t length)
{
	uint64_t start = m->samples.v[from].time_ns;
	uint64_t end =
		to < m->samples.n ? m->samples.v[to].time_ns : m->samples.v[to - 1].time_ns + 1;

	for (size_t i = from; i < to; i++) {
		struct as_m_sample s = m->samples.v[i];

		s.time_ns = m->recording.start_ns + length + (s.time_ns - start);
		half->samples.v[half->samples.n++] = s;
	}
	return length + (end - start);
}

static void draw(struct halves *h, const struct as_model *m, size_t stretches, uint64_t *seed)
{
	uint64_t length[2] = {0, 0};
	int k = 0;

	h->half[0].samples.n = h->half[1].samples.n = 0;
	for (size_t i = 0; i < stretches; i++) {
		size_t from = i * m->samples.n / stretches,
		       to = (i + 1) * m->samples.n / stretches;

		k = i % 2 ? !k : next_random(seed) & 1;
		if (from < to)
			length[k] = append(&h->half[k], m, from, to, length[k]);
	}
	for (k = 0; k < 2; k++)
		h->half[k].summary.end_ns = m->recording.start_ns + length[k];
}

static void count(const struct as_diff *d, struct as_calibration *ret)
{
	uint64_t wrong = d->counts[AS_CHANGE_UP] + d->counts[AS_CHANGE_DOWN];

	ret->times++;
	ret->rows += d->tests;
	ret->false_rows += wrong;
	ret->false_times += wrong > 0;
}

int as_diff_calibrate(const struct as_model *m, const struct as_diff_request *q, uint64_t times,
		      struct as_calibration *ret, struct as_error *err)
{
	size_t stretches = AS_MIN((size_t)STRETCHES, m->samples.n / STRETCH_SAMPLES);
	struct halves h = {.half = {*m, *m}};
	uint64_t seed = 1;
	int r = AS_OK;

	/* stretches are mixed: there are no runs any more */
	h.half[0].trials.n = h.half[1].trials.n = 0;
	*ret = (struct as_calibration){0};
	if (stretches < 16)
		return as_fail(err, AS_E_LIMIT, 0,
			       "%zu samples are too few to be halved: 128 at least",
			       m->samples.n);
	for (int k = 0; k < 2; k++) {
		memset(&h.half[k].trials, 0,
		       sizeof h.half[k].trials); /* their times are others */
		h.half[k].samples.v =
			as_xreallocarray(NULL, m->samples.n, sizeof *m->samples.v);
	}
	for (uint64_t i = 0; i < times && r == AS_OK; i++) {
		const struct as_model *a = &h.half[0], *b = &h.half[1];
		struct as_diff_request one = *q;
		struct as_diff *d = NULL;

		draw(&h, m, stretches, &seed);
		one.a = &a;
		one.b = &b;
		one.na = one.nb = 1;
		r = as_diff_make(&one, &d, err);
		if (r == AS_OK)
			count(d, ret);
		as_diff_free(d);
	}
	free(h.half[0].samples.v);
	free(h.half[1].samples.v);
	return r;
}

void as_calibration_text(const struct as_calibration *c, struct as_buf *out)
{
	as_buf_addf(out,
		    "%llu comparisons of random halves: %llu of %llu rows called different",
		    (unsigned long long)c->times, (unsigned long long)c->false_rows,
		    (unsigned long long)c->rows);
	as_buf_addf(out, " (%.2f %%), in %llu comparisons (%.1f %%; nominal at most 5 %%)\n",
		    c->rows ? 100.0 * (double)c->false_rows / (double)c->rows : 0,
		    (unsigned long long)c->false_times,
		    c->times ? 100.0 * (double)c->false_times / (double)c->times : 0);
	as_buf_adds(out,
		    "halves of one run: what one run differs from another by is not in this\n");
}
