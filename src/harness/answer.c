/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Answers of bench programs, read: see protocol.h. */
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "harness/protocol.h"

#define FIELDS_MAX  16
#define BENCHES_MAX 1000000

static const char *const throughputs[AS_FN_THROUGHPUTS_] = {
	"none", "bytes", "elements", "bytes-decimal", "bits", "elements-and-bytes"};

const char *as_fn_throughput_name(enum as_fn_throughput t)
{
	return (unsigned)t < AS_FN_THROUGHPUTS_ ? throughputs[t] : throughputs[0];
}

void as_fn_entry_clear(struct as_fn_entry *e)
{
	free(e->id);
	free(e->group);
	free(e->function);
	free(e->value);
	free(e->unit);
	*e = (struct as_fn_entry){0};
}

void as_fn_list_clear(struct as_fn_list *l)
{
	as_vec_foreach (e, &l->v)
		as_fn_entry_clear(e);
	as_vec_clear(&l->v);
}

static void forget_process(struct as_answer *a)
{
	a->voluntary = a->involuntary = a->migrations = NAN;
	a->minor_faults = a->major_faults = a->run_delay_ns = NAN;
	a->allocs = a->alloc_bytes = a->peak_bytes = NAN;
	a->batches.n = 0;
	a->done = false;
}

void as_answer_init(struct as_answer *a)
{
	*a = (struct as_answer){.clock_ns = NAN,
				.loop_ns = NAN,
				.value = NAN,
				.wall_ns = NAN,
				.first_value = NAN,
				.first_wall_ns = NAN,
				.proportion = NAN};
	forget_process(a);
}

void as_answer_next(struct as_answer *a)
{
	forget_process(a);
}

void as_answer_clear(struct as_answer *a)
{
	as_vec_foreach (e, &a->benches)
		as_fn_entry_clear(e);
	as_vec_clear(&a->benches);
	as_vec_clear(&a->batches);
	free(a->error);
	a->error = NULL;
}

/* ---- fields ---- */

struct fields {
	const char *p[FIELDS_MAX];
	size_t len[FIELDS_MAX], n;
};

static int split(const char *line, size_t n, struct fields *f, struct as_error *err)
{
	const char *end = line + n;

	f->n = 0;
	for (const char *at = line;; at++) {
		const char *tab = memchr(at, '\t', (size_t)(end - at));
		const char *stop = tab ? tab : end;

		if (f->n == FIELDS_MAX)
			return as_fail(err, AS_E_FORMAT, 0, "a line with too many fields");
		f->p[f->n] = at;
		f->len[f->n++] = (size_t)(stop - at);
		if (!tab)
			return AS_OK;
		at = tab;
	}
}

static int text_of(const struct fields *f, size_t i, char **ret, struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	*ret = NULL;
	if (i >= f->n || !f->len[i])
		return AS_OK;
	for (size_t k = 0; k < f->len[i]; k++) {
		char c = f->p[i][k];

		if (!c)
			return as_fail(err, AS_E_FORMAT, 0, "a text with a NUL");
		if (c != '\\') {
			as_buf_addc(&b, c);
			continue;
		}
		c = ++k < f->len[i] ? f->p[i][k] : 0;
		if (c != 't' && c != 'n' && c != '\\')
			return as_fail(err, AS_E_FORMAT, 0, "a text with a damaged escape");
		as_buf_addc(&b, c == 't' ? '\t' : c == 'n' ? '\n' : '\\');
	}
	*ret = as_buf_detach(&b);
	return AS_OK;
}

/* Absent: NaN. */
static int num_of(const struct fields *f, size_t i, double *ret, struct as_error *err)
{
	char word[64];

	*ret = NAN;
	if (i >= f->n || !f->len[i])
		return AS_OK;
	if (f->len[i] >= sizeof word)
		return as_fail(err, AS_E_FORMAT, 0, "a number of %zu digits", f->len[i]);
	memcpy(word, f->p[i], f->len[i]);
	word[f->len[i]] = 0;
	if (!as_parse_double(word, ret))
		return as_fail(err, AS_E_FORMAT, 0, "'%s' is no number", word);
	return AS_OK;
}

static int u64_of(const struct fields *f, size_t i, uint64_t *ret, struct as_error *err)
{
	char word[32];

	*ret = 0;
	if (i >= f->n || !f->len[i])
		return AS_OK;
	if (f->len[i] < sizeof word) {
		memcpy(word, f->p[i], f->len[i]);
		word[f->len[i]] = 0;
		if (as_parse_u64(word, ret))
			return AS_OK;
	}
	return as_fail(err, AS_E_FORMAT, 0, "a count that is no number");
}

/* n numbers from field 1 on. */
static int nums_of(const struct fields *f, double *const *ret, size_t n, struct as_error *err)
{
	for (size_t i = 0; i < n; i++) {
		int r = num_of(f, i + 1, ret[i], err);

		if (r < 0)
			return r;
	}
	return AS_OK;
}

/* ---- lines ---- */

static int on_hello(struct as_answer *a, const struct fields *f, struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *library = NULL;
	uint64_t version;
	int r = u64_of(f, 1, &version, err);

	if (r == AS_OK)
		r = text_of(f, 2, &library, err);
	if (r < 0)
		return r;
	if (version != AS_BENCH_PROTOCOL)
		return as_fail(err, AS_E_UNSUPPORTED, 0,
			       "the program speaks version %" PRIu64
			       " of the bench protocol (library "
			       "%s), this one knows version %d: build it against this assay, "
			       "or run it "
			       "with its own",
			       version, library ? library : "unknown", AS_BENCH_PROTOCOL);
	(void)snprintf(a->library, sizeof a->library, "%s", library ? library : "?");
	return AS_OK;
}

static int on_bench(struct as_answer *a, const struct fields *f, struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *throughput = NULL;
	struct as_fn_entry e = {0};
	char **texts[] = {&e.id, &e.group, &e.function, &e.value, &throughput};
	uint64_t threads = 1;
	int r = AS_OK;

	for (size_t i = 0; i < AS_ARRAY_LEN(texts) && r == AS_OK; i++)
		r = text_of(f, i + 1, texts[i], err);
	if (r == AS_OK)
		r = u64_of(f, 6, &e.throughput_n, err);
	if (r == AS_OK)
		r = u64_of(f, 7, &e.throughput_n2, err);
	if (r == AS_OK)
		r = text_of(f, 8, &e.unit, err);
	if (r == AS_OK)
		r = u64_of(f, 9, &threads, err);
	if (r == AS_OK && (!e.id || !e.unit || threads > 65536 || a->benches.n >= BENCHES_MAX))
		r = as_fail(err, AS_E_FORMAT, 0,
			    "a benchmark without a name or unit, or too many");
	if (r < 0) {
		as_fn_entry_clear(&e);
		return r;
	}
	for (int t = 0; throughput && t < AS_FN_THROUGHPUTS_; t++) {
		if (strcmp(throughput, throughputs[t]) == 0)
			e.throughput = (enum as_fn_throughput)t;
	}
	e.threads = threads ? (unsigned)threads : 1;
	as_vec_push(&a->benches, e);
	return AS_OK;
}

static int on_batch(struct as_answer *a, const struct fields *f, struct as_error *err)
{
	struct as_answer_batch b = {.warmup = f->len[0] == strlen("warmup")};
	double *const to[] = {&b.value, &b.wall_ns, &b.cpu_ns, &b.rate, &b.overlap};
	int r = nums_of(f, to, AS_ARRAY_LEN(to), err);

	if (r < 0)
		return r;
	if (isnan(b.value) || a->batches.n >= 2 * AS_ANSWER_BATCHES)
		return as_fail(err, AS_E_FORMAT, 0, "a batch without a value, or too many");
	as_vec_push(&a->batches, b);
	return AS_OK;
}

static int on_calibrated(struct as_answer *a, const struct fields *f, struct as_error *err)
{
	double skip, *const to[] = {&skip, &a->value, &a->wall_ns, &a->first_value,
				    &a->first_wall_ns};
	int r = u64_of(f, 1, &a->iterations, err);

	if (r == AS_OK)
		r = nums_of(f, to, AS_ARRAY_LEN(to), err);
	if (r == AS_OK && (isnan(a->value) || isnan(a->wall_ns)))
		r = as_fail(err, AS_E_FORMAT, 0, "calibrated to nothing");
	a->calibrated = r == AS_OK;
	return r;
}

static int on_usage(struct as_answer *a, const struct fields *f, struct as_error *err)
{
	double *const to[] = {&a->voluntary,    &a->involuntary,  &a->migrations,
			      &a->minor_faults, &a->major_faults, &a->run_delay_ns};

	return nums_of(f, to, AS_ARRAY_LEN(to), err);
}

static int on_allocations(struct as_answer *a, const struct fields *f, struct as_error *err)
{
	double *const to[] = {&a->allocs, &a->alloc_bytes, &a->peak_bytes};

	return nums_of(f, to, AS_ARRAY_LEN(to), err);
}

static int on_error(struct as_answer *a, const struct fields *f, struct as_error *err)
{
	free(a->error);
	return text_of(f, 1, &a->error, err);
}

static int on_reached(struct as_answer *a, const struct fields *f, struct as_error *err)
{
	return u64_of(f, 1, &a->reached_ns, err);
}

static int on_clock(struct as_answer *a, const struct fields *f, struct as_error *err)
{
	return num_of(f, 1, &a->clock_ns, err);
}

static int on_loop(struct as_answer *a, const struct fields *f, struct as_error *err)
{
	return num_of(f, 1, &a->loop_ns, err);
}

static int on_proportion(struct as_answer *a, const struct fields *f, struct as_error *err)
{
	return num_of(f, 1, &a->proportion, err);
}

static int on_unoptimised(struct as_answer *a, const struct fields *f, struct as_error *err)
{
	a->unoptimised = true;
	return AS_OK;
}

static int on_missing(struct as_answer *a, const struct fields *f, struct as_error *err)
{
	a->missing = true;
	return AS_OK;
}

static int on_done(struct as_answer *a, const struct fields *f, struct as_error *err)
{
	a->done = true;
	return AS_OK;
}

int as_answer_line(struct as_answer *a, const char *line, size_t n, struct as_error *err)
{
	static const struct {
		const char *word;
		int (*on)(struct as_answer *a, const struct fields *f, struct as_error *err);
	} lines[] = {{"bench", on_bench},
		     {"reached", on_reached},
		     {"unoptimised", on_unoptimised},
		     {"clock", on_clock},
		     {"loop", on_loop},
		     {"calibrated", on_calibrated},
		     {"proportion", on_proportion},
		     {"warmup", on_batch},
		     {"batch", on_batch},
		     {"usage", on_usage},
		     {"allocations", on_allocations},
		     {"error", on_error},
		     {"missing", on_missing},
		     {"done", on_done}};
	struct fields f;
	int r = split(line, n, &f, err);

	if (r < 0)
		return r;
	if (f.len[0] == strlen("assay-bench") && memcmp(f.p[0], "assay-bench", f.len[0]) == 0)
		return on_hello(a, &f, err);
	if (!a->library[0])
		return as_fail(err, AS_E_FORMAT, 0,
			       "the answer does not begin with its version");
	for (size_t i = 0; i < AS_ARRAY_LEN(lines); i++) {
		if (strlen(lines[i].word) == f.len[0] &&
		    memcmp(lines[i].word, f.p[0], f.len[0]) == 0)
			return lines[i].on(a, &f, err);
	}
	return AS_OK;
}
