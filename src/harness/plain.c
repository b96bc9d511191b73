/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The library's own command line: see front.h. Results on standard output, all else on standard error. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "harness/front.h"
#include "harness/plain_priv.h"

static const char help[] =
	"usage: %s [OPTION…] [FILTER…]\n"
	"\n"
	"Measures the benchmarks of this program whose names hold one of the filters; all "
	"without.\n"
	"Each sample is a fresh process.\n"
	"\n"
	"  --list               names only\n"
	"  --test               run each once, do not measure\n"
	"  --exact              a filter is a whole name\n"
	"  --time S             seconds to measure each benchmark (1; with --vs 2)\n"
	"  --budget S           seconds for all of them together\n"
	"  --timeout S          a process that takes longer is ended (60)\n"
	"  --vs PROGRAM         compare: PROGRAM is another build of this one, before a "
	"change\n"
	"  --delta PERCENT      with --vs: differences below are equal (1)\n"
	"  --fail-on slower     with --vs: exit status 3 when a benchmark is slower\n"
	"  --processes N        at most N processes (pairs) for each\n"
	"  --no-allocations     do not count allocations\n"
	"  --format text|json   json: docs/formats/bench-json.md\n"
	"  --output FILE        write there instead of standard output\n"
	"  --profile-time S     run each for S seconds without measuring, for a profiler\n"
	"  --seed N             of the order of pairs and the padding\n"
	"  --verbose            what the result is made of\n"
	"  --help\n";

#define LEAST_S 0.02

struct plain {
	AS_VEC(const char *) filters;
	const char *title, *output, *vs, *vs_argv0;
	char **vs_argv;
	bool exact, json, verbose, fail_on_slower, no_allocs, color;
	double time_s, budget_s, timeout_s, delta, profile_s;
	uint64_t processes, seed;
	bool list, test;
	/* so far */
	uint64_t start_ns;
	struct as_plain_json document;
	struct as_buf text;
	unsigned slower, wanted;
	size_t to_come; /* with a budget: benchmarks not yet measured; 0: not counted */
};

/* Nobody can be told when it fails. */
static void say(int fd, const char *s, size_t n)
{
	(void)as_write_all(fd, s, n, NULL);
}

static void complain(const struct plain *p, const char *fmt, const char *what)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	as_buf_addf(&b, "%s: ", p->title);
	as_buf_adds(&b, fmt);
	as_buf_addf(&b, " '%s'; see --help\n", what);
	say(2, b.p, b.len);
}

/* ---- the command line ---- */

enum kind { FLAG, SECONDS, PERCENT, COUNT, TEXT };

struct plain_option {
	const char *name;
	enum kind kind;
	size_t at;
};
#define AT(field) offsetof(struct plain, field)
static const struct plain_option options[] = {
	{"--list", FLAG, AT(list)},
	{"--test", FLAG, AT(test)},
	{"--exact", FLAG, AT(exact)},
	{"--verbose", FLAG, AT(verbose)},
	{"--no-allocations", FLAG, AT(no_allocs)},
	{"--time", SECONDS, AT(time_s)},
	{"--budget", SECONDS, AT(budget_s)},
	{"--timeout", SECONDS, AT(timeout_s)},
	{"--profile-time", SECONDS, AT(profile_s)},
	{"--delta", PERCENT, AT(delta)},
	{"--processes", COUNT, AT(processes)},
	{"--seed", COUNT, AT(seed)},
	{"--vs", TEXT, AT(vs)},
	{"--output", TEXT, AT(output)},
};

static bool set_option(struct plain *p, const struct plain_option *o, const char *value)
{
	char *to = (char *)p + o->at;
	uint64_t ns;
	double d;

	switch (o->kind) {
	case FLAG:
		*(bool *)to = true;
		return true;
	case SECONDS:
		if (!as_parse_duration_ns(value, &ns) || !ns)
			return false;
		*(double *)to = (double)ns / 1e9;
		return true;
	case PERCENT:
		if (!as_parse_double(value, &d) || !(d > 0 && d < 100))
			return false;
		*(double *)to = d / 100;
		return true;
	case COUNT:
		return as_parse_u64(value, (uint64_t *)to) && *(uint64_t *)to;
	default:
		*(const char **)to = value;
		return *value != 0;
	}
}

/* Two whose values are words. */
static bool set_word(struct plain *p, const char *name, const char *value, bool *ret_known)
{
	*ret_known = true;
	if (strcmp(name, "--format") == 0) {
		p->json = strcmp(value, "json") == 0;
		return p->json || strcmp(value, "text") == 0;
	}
	if (strcmp(name, "--fail-on") == 0) {
		p->fail_on_slower = true;
		return strcmp(value, "slower") == 0;
	}
	*ret_known = false;
	return false;
}

/* How many arguments it took; 0: said what is wrong. */
static int take_option(struct plain *p, int left, char *const *argv)
{
	const char *equals = strchr(argv[0], '=');
	AS_CLEANUP(as_free_autop)
	char *name =
		as_xstrndup(argv[0], equals ? (size_t)(equals - argv[0]) : strlen(argv[0]));
	const char *value = equals ? equals + 1 : left > 1 ? argv[1] : NULL;
	const struct plain_option *o = NULL;
	bool known, good;

	for (size_t i = 0; i < AS_ARRAY_LEN(options); i++) {
		if (strcmp(options[i].name, name) == 0)
			o = &options[i];
	}
	if (o && o->kind == FLAG && !equals)
		return set_option(p, o, NULL);
	good = value && (o ? set_option(p, o, value) : set_word(p, name, value, &known));
	if (!o && (!value || !known)) {
		complain(p, "unknown option", argv[0]);
		return 0;
	}
	if (!good) {
		complain(p,
			 value ? "what it was given is not possible for"
			       : "a value is missing for",
			 name);
		return 0;
	}
	return equals ? 1 : 2;
}

static int parse(struct plain *p, int argc, char *const *argv)
{
	bool only_filters = false;

	for (int i = 1; i < argc;) {
		const char *a = argv[i];
		int took = 1;

		if (only_filters || a[0] != '-' || !a[1])
			as_vec_push(&p->filters, a);
		else if (strcmp(a, "--") == 0)
			only_filters = true;
		else if (strcmp(a, "--help") == 0 || strcmp(a, "-h") == 0)
			return 0;
		else if (strcmp(a, "--bench") != 0) /* cargo's: that is what we do */
			took = take_option(p, argc - i, argv + i);
		if (!took)
			return 2;
		i += took;
	}
	return -1;
}

static void open_vs(struct plain *p, int argc, char *const *argv)
{
	p->vs_argv = as_xcalloc((size_t)argc + 1, sizeof *p->vs_argv);
	for (int i = 0; i < argc; i++)
		p->vs_argv[i] = argv[i];
	p->vs_argv[0] = (char *)p->vs;
}

static void *open_front(int argc, char *const *argv, struct as_bench_plan *plan)
{
	struct plain *p = as_xcalloc(1, sizeof *p);
	const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;

	p->title = slash ? slash + 1 : argc > 0 ? argv[0] : "bench";
	p->start_ns = as_now_ns();
	plan->exit_status = parse(p, argc, argv);
	if (plan->exit_status == 0) {
		AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

		as_buf_addf(&b, help, p->title);
		say(1, b.p, b.len);
	}
	if (plan->exit_status < 0 && p->vs && access(p->vs, X_OK) < 0) {
		complain(p, "cannot run the program given by --vs,", p->vs);
		plan->exit_status = 2;
	}
	if (plan->exit_status < 0 && p->vs)
		open_vs(p, argc, argv);
	p->color = !p->json && !p->output && isatty(1) && !getenv("NO_COLOR");
	plan->settings.measurement_s = p->time_s;
	plan->settings.noise = p->delta;
	plan->settings.samples = p->processes;
	plan->profile_s = p->profile_s;
	plan->mode = p->list            ? ASSAY_MODE_LIST
		     : p->test          ? ASSAY_MODE_TEST
		     : p->profile_s > 0 ? ASSAY_MODE_PROFILE
					: ASSAY_MODE_MAIN;
	return p;
}

/* ---- benchmarks ---- */

static bool matches(const struct plain *p, const char *id)
{
	bool found = !p->filters.n;

	as_vec_foreach (f, &p->filters)
		found |= p->exact ? strcmp(*f, id) == 0 : strstr(id, *f) != NULL;
	return found;
}

static bool selects(void *ctx, const struct assay_bench_spec *spec, const char *id)
{
	struct plain *p = ctx;
	bool found = matches(p, id);

	p->wanted += found;
	return found;
}

/* How many there are, asked of ourselves: what each may take depends on it. */
static void count_to_come(struct plain *p, const struct as_fn_side *self)
{
	struct as_fn_list list;

	p->to_come = 1;
	if (as_fn_list(self, 0, &list, NULL) < 0)
		return; /* measuring will tell what is wrong */
	p->to_come = 0;
	as_vec_foreach (e, &list.v)
		p->to_come += matches(p, e->id);
	as_fn_list_clear(&list);
}

static void named(void *ctx, const struct assay_bench_spec *spec, const char *id,
		  enum assay_bench_mode mode)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	as_fmt_quoted(&b, id, strlen(id));
	as_buf_adds(&b, mode == ASSAY_MODE_LIST ? "\n" : " ... ");
	say(1, b.p, b.len);
}

static void ran(void *ctx, const char *id, enum assay_bench_mode mode, const char *failed)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	as_buf_addf(&b, failed ? "failed: %s\n" : "ok\n", failed);
	say(1, b.p, b.len);
}

static void begin(void *ctx, const struct assay_bench_spec *spec,
		  const struct assay_bench_settings *merged, struct as_fn_request *q)
{
	struct plain *p = ctx;
	double left;

	q->timeout_s = p->timeout_s;
	q->no_allocs = p->no_allocs;
	q->seed = p->seed;
	if (p->vs) {
		q->side[1] = q->side[0];
		q->side[0] = (struct as_fn_side){.exe = p->vs, .argv = p->vs_argv};
		q->sides = 2;
	}
	if (!(p->budget_s > 0))
		return;
	if (!p->to_come)
		count_to_come(p, &q->side[q->sides - 1]);
	left = p->budget_s - (double)(as_now_ns() - p->start_ns) / 1e9;
	q->cap_s = AS_MAX(left, LEAST_S);
	if (!(q->budget_s > 0))
		q->budget_s = p->vs ? 2 : 1;
	/* what one does not need is for those after it */
	q->budget_s = AS_MIN(q->budget_s, AS_MAX(left / (double)p->to_come, LEAST_S));
	p->to_come -= p->to_come > 1;
}

static void result(void *ctx, const struct assay_bench_spec *spec,
		   const struct assay_bench_settings *merged, struct as_fn_result *r)
{
	struct plain *p = ctx;
	AS_CLEANUP(as_buf_clear) struct as_buf line = {0};

	p->slower += r->sides > 1 && r->look.verdict == AS_VERDICT_SLOWER;
	if (p->json)
		as_plain_json_add(&p->document, r);
	as_plain_result(r, spec->unit, p->verbose, p->color, &line);
	if (p->output && !p->json)
		as_buf_add(&p->text, line.p, line.len);
	else if (!p->json)
		say(1, line.p, line.len);
	else if (r->failed && !r->out_of_time)
		say(2, line.p, line.len);
}

static int write_output(struct plain *p)
{
	struct as_error err;

	if (p->json)
		as_plain_json_end(&p->document, p->title,
				  (double)(as_now_ns() - p->start_ns) / 1e9, &p->text);
	if (!p->output) {
		say(1, as_buf_str(&p->text), p->text.len);
		return 0;
	}
	if (as_write_file_atomic(p->output, as_buf_str(&p->text), p->text.len, &err) == AS_OK)
		return 0;
	as_buf_reset(&p->text);
	as_buf_addf(&p->text, "%s: %s\n", p->title, err.msg);
	say(2, p->text.p, p->text.len);
	return 1;
}

static int close_front(void *ctx, unsigned failures)
{
	struct plain *p = ctx;
	int status = 0;

	if (!p->wanted && p->filters.n) {
		complain(p, "no benchmark's name has", p->filters.v[0]);
		status = 2;
	}
	if (!p->list && !p->test && !(p->profile_s > 0) && write_output(p))
		status = 1;
	if (failures)
		status = 1;
	else if (!status && p->fail_on_slower && p->slower)
		status = 3;
	as_plain_json_clear(&p->document);
	as_buf_clear(&p->text);
	as_vec_clear(&p->filters);
	free(p->vs_argv);
	free(p);
	return status;
}

const struct as_bench_front as_plain_front = {
	.name = "plain",
	.open = open_front,
	.selects = selects,
	.named = named,
	.ran = ran,
	.begin = begin,
	.result = result,
	.close = close_front,
};
