/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Criterion's command line, of all its versions; libtest's flags that cargo and nextest pass. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "harness/criterion/criterion_priv.h"
#include "harness/version_priv.h"

#define PROFILE_LEAST_S 1

enum option {
	O_COLOUR,
	O_VERBOSE,
	O_QUIET,
	O_NOPLOT,
	O_SAVE,
	O_DISCARD,
	O_BASELINE,
	O_LENIENT,
	O_LOAD,
	O_LIST,
	O_FORMAT,
	O_IGNORED,
	O_EXACT,
	O_PROFILE,
	O_NUMBER,
	O_QUICK,
	O_BACKEND,
	O_OUTPUT,
	O_TEST,
	O_BENCH,
	O_NOTHING,
	O_NOTHING_VALUE,
	O_VERSION,
	O_HELP,
	O_FAIL_ON,
	O_BUDGET
};

struct row {
	const char *name;
	char letter;
	bool takes_value;
	enum option option;
	enum as_criterion_number number;
	const char *words; /* what it can be: " a b " */
	const char *help;  /* NULL: not in --help */
};

static const struct row rows[] = {
	{"save-baseline", 's', true, O_SAVE, 0, NULL,
	 "NAME  save the results as this baseline [base]"},
	{"baseline", 'b', true, O_BASELINE, 0, NULL,
	 "NAME  compare with this baseline, which must have every benchmark"},
	{"baseline-lenient", 0, true, O_LENIENT, 0, NULL,
	 "NAME  compare with this baseline where it has the benchmark"},
	{"load-baseline", 0, true, O_LOAD, 0, NULL,
	 "NAME  this baseline's results instead of new ones (with --baseline); their programs "
	 "are compared in pairs where both are kept"},
	{"discard-baseline", 0, false, O_DISCARD, 0, NULL, "  save nothing"},
	{"fail-on", 0, true, O_FAIL_ON, 0, " slower never ",
	 "slower  exit status 3 when a benchmark is slower [never]"},
	{"list", 0, false, O_LIST, 0, NULL, "  names only"},
	{"format", 0, true, O_FORMAT, 0, " pretty terse ", "pretty|terse  of --list"},
	{"exact", 0, false, O_EXACT, 0, NULL, "  FILTER is a whole name"},
	{"ignored", 0, false, O_IGNORED, 0, NULL, "  nothing: no benchmark is ignored"},
	{"test", 0, false, O_TEST, 0, NULL, "  run each once, measure nothing"},
	{"profile-time", 0, true, O_PROFILE, 0, NULL,
	 "SECONDS  run each for so long, measure nothing: for a profiler"},
	{"measurement-time", 0, true, O_NUMBER, AS_CRITERION_MEASUREMENT_S, NULL,
	 "SECONDS  to measure a benchmark in [1; with a comparison 2]"},
	{"warm-up-time", 0, true, O_NUMBER, AS_CRITERION_WARM_UP_S, NULL,
	 "SECONDS  no use: each process warms up by itself"},
	{"sample-size", 0, true, O_NUMBER, AS_CRITERION_SAMPLE_SIZE, NULL,
	 "N  processes at most"},
	{"nresamples", 0, true, O_NUMBER, AS_CRITERION_RESAMPLES, NULL, "N  no use"},
	{"noise-threshold", 0, true, O_NUMBER, AS_CRITERION_NOISE, NULL,
	 "SHARE  differences below are none [0.01]"},
	{"confidence-level", 0, true, O_NUMBER, AS_CRITERION_CONFIDENCE, NULL,
	 "SHARE  of the intervals in files [0.95]"},
	{"significance-level", 0, true, O_NUMBER, AS_CRITERION_SIGNIFICANCE, NULL,
	 "SHARE  of false differences [0.05]"},
	{"quick", 0, false, O_QUICK, 0, NULL, "  a quarter of a second for each"},
	{"budget", 0, true, O_BUDGET, 0, NULL, "SECONDS  as --measurement-time"},
	{"output-format", 0, true, O_OUTPUT, 0, " criterion bencher ", "criterion|bencher"},
	{"color", 'c', true, O_COLOUR, 0, " auto always never ", "auto|always|never"},
	{"colour", 0, true, O_COLOUR, 0, " auto always never ", NULL},
	{"verbose", 'v', false, O_VERBOSE, 0, NULL, "  more figures"},
	{"quiet", 0, false, O_QUIET, 0, NULL, "  one line a benchmark"},
	{"noplot", 'n', false, O_NOPLOT, 0, NULL, "  no pages in report/ folders"},
	{"plotting-backend", 0, true, O_BACKEND, 0, " gnuplot plotters none ", NULL},
	{"bench", 0, false, O_BENCH, 0, NULL, NULL},
	{"nocapture", 0, false, O_NOTHING, 0, NULL, NULL},
	{"no-capture", 0, false, O_NOTHING, 0, NULL, NULL},
	{"show-output", 0, false, O_NOTHING, 0, NULL, NULL},
	{"include-ignored", 0, false, O_NOTHING, 0, NULL, NULL},
	{"test-threads", 0, true, O_NOTHING_VALUE, 0, NULL, NULL},
	{"version", 'V', false, O_VERSION, 0, NULL, NULL},
	{"help", 'h', false, O_HELP, 0, NULL, NULL},
};

struct parse {
	struct as_criterion_options *o;
	bool list, test, bench, exact, ignored;
	double profile_s;
};

static bool stop(struct as_criterion_options *o, int status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The process is to end; false, so that it can stand in a return statement. */
static bool stop(struct as_criterion_options *o, int status, const char *fmt, ...)
{
	va_list ap;

	if (o->exit_status >= 0)
		return false; /* the first reason stands */
	o->exit_status = status;
	o->say_is_error = status != 0;
	va_start(ap, fmt);
	as_buf_vaddf(&o->say, fmt, ap);
	va_end(ap);
	return false;
}

static void say_help(struct as_criterion_options *o)
{
	o->exit_status = 0;
	as_buf_adds(&o->say, "usage: cargo bench [--bench NAME] -- [OPTIONS] [FILTER]\n\n"
			     "A benchmark program of assay-criterion. FILTER is a regular "
			     "expression of names.\n\n");
	for (size_t i = 0; i < AS_ARRAY_LEN(rows); i++) {
		if (!rows[i].help)
			continue;
		if (rows[i].letter)
			as_buf_addf(&o->say, "  -%c, --%s %s\n", rows[i].letter, rows[i].name,
				    rows[i].help);
		else
			as_buf_addf(&o->say, "      --%s %s\n", rows[i].name, rows[i].help);
	}
	as_buf_adds(&o->say, "\nASSAY_BENCH_FLAGS='--save-baseline x' cargo bench gives "
			     "options to these programs "
			     "only,\nwhere a crate's own test harness would refuse them "
			     "(\"Unrecognized option\"; "
			     "or set\n`bench = false` under [lib] and [[bin]] in Cargo.toml). "
			     "CRITERION_HOME is the "
			     "folder of\nthe results. Exit status: 0; 1 a benchmark failed or "
			     "a strict baseline "
			     "lacks one; 2 bad\narguments; 3 with --fail-on slower.\n");
}

static const struct row *by_name(const char *name, size_t n)
{
	for (size_t i = 0; i < AS_ARRAY_LEN(rows); i++)
		if (strncmp(rows[i].name, name, n) == 0 && rows[i].name[n] == '\0')
			return &rows[i];
	return NULL;
}

static const struct row *by_letter(char letter)
{
	for (size_t i = 0; i < AS_ARRAY_LEN(rows); i++)
		if (letter && rows[i].letter == letter)
			return &rows[i];
	return NULL;
}

static bool is_among(const char *words, const char *word)
{
	AS_CLEANUP(as_free_autop) char *padded = as_xasprintf(" %s ", word);

	return strchr(word, ' ') == NULL && word[0] && strstr(words, padded) != NULL;
}

static bool keep_number(struct parse *p, const struct row *r, const char *value)
{
	bool whole =
		r->number == AS_CRITERION_SAMPLE_SIZE || r->number == AS_CRITERION_RESAMPLES;
	bool share =
		r->number == AS_CRITERION_CONFIDENCE || r->number == AS_CRITERION_SIGNIFICANCE;
	double v = NAN;

	if (!as_parse_double(value, &v))
		return stop(p->o, 2, "--%s: '%s' is no number", r->name, value);
	if (share && !(v > 0 && v < 1))
		return stop(p->o, 2, "--%s: %s must lie between 0 and 1", r->name, value);
	if (r->number == AS_CRITERION_SAMPLE_SIZE && v < 2)
		return stop(p->o, 2, "--%s: at least 2", r->name);
	if (!share && !(r->number == AS_CRITERION_NOISE ? v >= 0 : v > 0))
		return stop(p->o, 2, "--%s: %s must be more than 0", r->name, value);
	if (whole && v != floor(v))
		return stop(p->o, 2, "--%s: '%s' is no whole number", r->name, value);
	p->o->numbers[r->number] = v;
	return true;
}

static bool keep_seconds(struct parse *p, const struct row *r, const char *value)
{
	double v = NAN;
	uint64_t ns;

	if (as_parse_duration_ns(value, &ns))
		v = (double)ns / 1e9;
	if (!(v > 0))
		return stop(p->o, 2, "--%s: '%s' is no number of seconds", r->name, value);
	if (r->option == O_BUDGET) {
		p->o->numbers[AS_CRITERION_MEASUREMENT_S] = v;
		return true;
	}
	if (v < PROFILE_LEAST_S)
		return stop(p->o, 2, "--profile-time: at least one second");
	p->profile_s = v;
	return true;
}

static bool keep_name(struct parse *p, const struct row *r, const char *value, char **name)
{
	if (!value[0] || strchr(value, '/') || value[0] == '.' ||
	    is_among(" new change report ", value))
		return stop(p->o, 2, "--%s: '%s' cannot be a baseline's name", r->name, value);
	free(*name);
	*name = as_xstrdup(value);
	return true;
}

static bool keep(struct parse *p, const struct row *r, const char *value)
{
	struct as_criterion_options *o = p->o;

	if (r->words && !is_among(r->words, value))
		return stop(o, 2, "--%s: '%s' is none of:%s", r->name, value, r->words);
	switch (r->option) {
	case O_COLOUR:
		o->numbers[AS_CRITERION_COLOUR] = value[1] == 'u' ? NAN : value[0] == 'a';
		return true;
	case O_VERBOSE:
		return o->verbose = true;
	case O_QUIET:
		return o->quiet = true;
	case O_SAVE:
		return keep_name(p, r, value, &o->save);
	case O_DISCARD:
		return o->discard = true;
	case O_BASELINE:
	case O_LENIENT:
		if (o->baseline)
			return stop(o, 2,
				    "--%s: there is a baseline to compare with already: '%s'",
				    r->name, o->baseline);
		o->strict = r->option == O_BASELINE;
		return keep_name(p, r, value, &o->baseline);
	case O_LOAD:
		return keep_name(p, r, value, &o->load);
	case O_LIST:
		return p->list = true;
	case O_IGNORED:
		return p->ignored = true;
	case O_EXACT:
		return p->exact = true;
	case O_NOPLOT:
		o->numbers[AS_CRITERION_PLOTS] = 0;
		return true;
	case O_BACKEND:
		if (value[0] == 'n')
			o->numbers[AS_CRITERION_PLOTS] = 0;
		return true;
	case O_PROFILE:
	case O_BUDGET:
		return keep_seconds(p, r, value);
	case O_NUMBER:
		return keep_number(p, r, value);
	case O_QUICK:
		return o->quick = true;
	case O_OUTPUT:
		o->bencher = value[0] == 'b';
		return true;
	case O_TEST:
		return p->test = true;
	case O_BENCH:
		return p->bench = true;
	case O_FAIL_ON:
		o->fail_on_slower = value[0] == 's';
		return true;
	case O_VERSION:
		return stop(o, 0, "assay-criterion %s", ASSAY_VERSION);
	case O_HELP:
		say_help(o);
		return false;
	default:
		return true;
	}
}

/* One word; *i is moved over its value. */
static bool take_word(struct parse *p, char *const *words, size_t n, size_t *i)
{
	const char *word = words[*i], *value = NULL;
	const struct row *r;

	if (word[0] != '-' || word[1] == '\0') {
		if (p->o->filter)
			return stop(p->o, 2, "one FILTER is enough: '%s' and '%s'",
				    p->o->filter, word);
		p->o->filter = as_xstrdup(word);
		return true;
	}
	if (word[1] == '-') {
		size_t name = strcspn(word + 2, "=");

		r = by_name(word + 2, name);
		value = word[2 + name] == '=' ? word + 3 + name : NULL;
	} else {
		r = by_letter(word[1]);
		value = r && r->takes_value && word[2] ? word + 2 + (word[2] == '=') : NULL;
		if (r && !r->takes_value && word[2])
			r = NULL;
	}
	if (!r)
		return stop(p->o, 2, "unknown option '%s'; --help lists them", word);
	if (!r->takes_value && value)
		return stop(p->o, 2, "--%s takes no value", r->name);
	if (r->takes_value && !value) {
		if (*i + 1 >= n)
			return stop(p->o, 2, "--%s needs a value", r->name);
		value = words[++*i];
	}
	return keep(p, r, value);
}

static void all(struct parse *p, char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(words[i], "--") == 0)
			continue;
		if (!take_word(p, words, n, &i))
			return;
	}
}

static void from_environment(struct parse *p)
{
	const char *flags = getenv("ASSAY_BENCH_FLAGS"), *fail = getenv("ASSAY_BENCH_FAIL_ON");
	AS_VEC(char *) words = {0};

	p->o->fail_on_slower = fail && strcmp(fail, "slower") == 0;
	for (const char *at = flags ? flags : ""; *at;) {
		size_t n = strcspn(at, " \t\n");

		if (n)
			as_vec_push(&words, as_xstrndup(at, n));
		at += n + (at[n] != '\0');
	}
	all(p, words.v, words.n);
	as_vec_foreach (w, &words)
		free(*w);
	as_vec_clear(&words);
}

static void decide(struct parse *p)
{
	struct as_criterion_options *o = p->o;
	bool profile = p->profile_s > 0;

	if (p->list + p->test + profile > 1)
		(void)stop(o, 2, "--list, --test and --profile-time exclude each other");
	if (o->load && !o->baseline)
		(void)stop(o, 2, "--load-baseline needs --baseline: what to compare with");
	if (o->load && (p->list || p->test || profile))
		(void)stop(o, 2, "--load-baseline compares what was saved");
	if (o->save && o->discard)
		(void)stop(o, 2, "--save-baseline and --discard-baseline exclude each other");
	o->numbers[AS_CRITERION_PROFILE_S] = profile ? p->profile_s : NAN;
	if (o->quick && isnan(o->numbers[AS_CRITERION_MEASUREMENT_S]))
		o->numbers[AS_CRITERION_MEASUREMENT_S] = 0.25;
	o->exact = p->exact;
	o->none = p->ignored;
	/* cargo bench says --bench; cargo test --benches does not, and wants each run once. */
	o->mode = p->list                ? ASSAY_MODE_LIST
		  : p->test || !p->bench ? ASSAY_MODE_TEST
		  : profile              ? ASSAY_MODE_PROFILE
					 : ASSAY_MODE_MAIN;
}

void as_criterion_args_read(int argc, char *const *argv, struct as_criterion_options *ret)
{
	struct parse p = {.o = ret};

	*ret = (struct as_criterion_options){.exit_status = -1};
	for (int i = 0; i < AS_CRITERION_NUMBERS_; i++)
		ret->numbers[i] = NAN;
	from_environment(&p);
	if (ret->exit_status < 0 && argc > 1)
		all(&p, argv + 1, (size_t)argc - 1);
	if (ret->exit_status < 0)
		decide(&p);
}

void as_criterion_options_clear(struct as_criterion_options *o)
{
	free(o->filter);
	free(o->save);
	free(o->baseline);
	free(o->load);
	as_buf_clear(&o->say);
	*o = (struct as_criterion_options){.exit_status = -1};
}
