/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Questions, and pieces of lines: see protocol.h. */
#include "harness/protocol.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/sys.h"

static const char *const asks[AS_ASKS_] = {"list", "calibrate", "measure", "serve",
					   "allocations"};

void as_question_text(const struct as_question *q, struct as_buf *out)
{
	as_buf_addf(out, "%d fd=%d do=%s nth=%" PRIu64, AS_BENCH_PROTOCOL, q->fd, asks[q->ask],
		    q->nth ? q->nth : 1);
	if (q->ctl >= 0)
		as_buf_addf(out, " ctl=%d", q->ctl);
	if (q->iterations)
		as_buf_addf(out, " iterations=%" PRIu64, q->iterations);
	as_buf_addf(out, " warmups=%" PRIu64 " batches=%" PRIu64, q->warmups, q->batches);
	if (q->limit_ms)
		as_buf_addf(out, " limit_ms=%" PRIu64, q->limit_ms);
	if (q->full)
		as_buf_adds(out, " full=1");
	if (q->prime)
		as_buf_adds(out, " prime=1");
}

/* The next word of *at as a string in word; false: there is none, or it is too long. */
static bool next_word(const char **at, char *word, size_t size)
{
	size_t n = strcspn(*at, " ");

	if (!n || n >= size)
		return false;
	memcpy(word, *at, n);
	word[n] = 0;
	*at += n + ((*at)[n] == ' ');
	return true;
}

static bool read_ask(const char *name, struct as_question *q)
{
	for (int i = 0; i < AS_ASKS_; i++) {
		if (strcmp(asks[i], name) == 0) {
			q->ask = (enum as_ask)i;
			return true;
		}
	}
	return false;
}

static bool read_field(const char *key, size_t n, const char *value, struct as_question *q)
{
	static const struct {
		const char *key;
		size_t at;
	} numbers[] = {{"nth", offsetof(struct as_question, nth)},
		       {"iterations", offsetof(struct as_question, iterations)},
		       {"warmups", offsetof(struct as_question, warmups)},
		       {"batches", offsetof(struct as_question, batches)},
		       {"limit_ms", offsetof(struct as_question, limit_ms)}};
	uint64_t v;

	if (n == 2 && memcmp(key, "do", 2) == 0)
		return read_ask(value, q);
	if (!as_parse_u64(value, &v))
		return false;
	for (size_t i = 0; i < AS_ARRAY_LEN(numbers); i++) {
		if (strlen(numbers[i].key) == n && memcmp(numbers[i].key, key, n) == 0) {
			memcpy((char *)q + numbers[i].at, &v, sizeof v);
			return true;
		}
	}
	if (n == 3 && memcmp(key, "ctl", 3) == 0 && v < INT32_MAX)
		q->ctl = (int)v;
	else if (n == 4 && memcmp(key, "full", 4) == 0)
		q->full = v != 0;
	else if (n == 5 && memcmp(key, "prime", 5) == 0)
		q->prime = v != 0;
	else
		return false;
	return true;
}

static int read_fields(const char *at, struct as_question *ret, struct as_error *err)
{
	char word[64];

	while (*at) {
		const char *equals;

		if (!next_word(&at, word, sizeof word))
			return as_fail(err, AS_E_FORMAT, 0, "damaged question");
		equals = strchr(word, '=');
		if (!equals || !read_field(word, (size_t)(equals - word), equals + 1, ret))
			return as_fail(err, AS_E_FORMAT, 0,
				       "the question has '%s', which is not known here", word);
	}
	if (ret->batches > AS_ANSWER_BATCHES || ret->warmups > AS_ANSWER_BATCHES)
		return as_fail(err, AS_E_LIMIT, 0, "more than %d batches asked for",
			       AS_ANSWER_BATCHES);
	if (ret->ask == AS_ASK_SERVE && ret->ctl < 0)
		return as_fail(err, AS_E_FORMAT, 0, "a server needs 'ctl'");
	return AS_OK;
}

int as_question_parse(const char *text, struct as_question *ret, struct as_error *err)
{
	char word[64];
	uint64_t version, fd;
	const char *at = text;

	*ret = (struct as_question){.fd = -1, .ctl = -1, .nth = 1};
	if (!next_word(&at, word, sizeof word) || !as_parse_u64(word, &version))
		return as_fail(err, AS_E_FORMAT, 0, "'%s' has no version", AS_BENCH_ENV);
	if (!next_word(&at, word, sizeof word) || strncmp(word, "fd=", 3) != 0 ||
	    !as_parse_u64(word + 3, &fd) || fd > INT32_MAX)
		return as_fail(err, AS_E_FORMAT, 0, "'%s' has no 'fd'", AS_BENCH_ENV);
	ret->fd = (int)fd;
	if (version != AS_BENCH_PROTOCOL)
		return as_fail(err, AS_E_UNSUPPORTED, 0,
			       "asked in version %" PRIu64
			       " of the bench protocol, the program "
			       "speaks version %d: build it against the assay that runs it",
			       version, AS_BENCH_PROTOCOL);
	return read_fields(at, ret, err);
}

/* ---- pieces of lines ---- */

void as_line_num(struct as_buf *b, double v)
{
	if (isfinite(v))
		as_buf_addf(b, "\t%.17g", v);
	else
		as_buf_addc(b, '\t');
}

void as_line_u64(struct as_buf *b, uint64_t v)
{
	as_buf_addf(b, "\t%" PRIu64, v);
}

void as_line_text(struct as_buf *b, const char *s)
{
	as_buf_addc(b, '\t');
	for (; s && *s; s++) {
		if (*s == '\t')
			as_buf_adds(b, "\\t");
		else if (*s == '\n')
			as_buf_adds(b, "\\n");
		else if (*s == '\\')
			as_buf_adds(b, "\\\\");
		else
			as_buf_addc(b, *s);
	}
}

void as_line_bench(struct as_buf *b, const struct as_fn_entry *e)
{
	as_buf_adds(b, "bench");
	as_line_text(b, e->id);
	as_line_text(b, e->group);
	as_line_text(b, e->function);
	as_line_text(b, e->value);
	as_line_text(b, as_fn_throughput_name(e->throughput));
	as_line_u64(b, e->throughput_n);
	as_line_u64(b, e->throughput_n2);
	as_line_text(b, e->unit);
	as_line_u64(b, e->threads);
	as_buf_addc(b, '\n');
}
