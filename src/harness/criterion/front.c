/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Criterion objects over one run of the harness: whose turn it is, what it is compared with, what is
 * kept of it. See criterion.h.
 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "harness/criterion/criterion_priv.h"

/* One command line and one exit status for all Criterion objects of a process: they come and go, and the
 * program's author passes none of it on. */
static struct as_criterion_run *state;

/* Held for a whole benchmark: `state` is of one at a time, and so is the machine. Tests of a program run in
 * threads, each with an object of its own. Recursive, as a benchmark's function may have one, too. */
static pthread_mutex_t one_at_a_time = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static void enter(void)
{
	(void)pthread_mutex_lock(&one_at_a_time); /* a recursive one: cannot fail */
}

static void leave(void)
{
	(void)pthread_mutex_unlock(&one_at_a_time); /* it is ours */
}

/* ---- the object ---- */

struct as_criterion *as_criterion_new(void)
{
	struct as_criterion *c = as_xcalloc(1, sizeof *c);

	for (int i = 0; i < AS_CRITERION_NUMBERS_; i++)
		c->numbers[i] = NAN;
	c->save = as_xstrdup("base");
	c->compare = as_xstrdup("base");
	return c;
}

void as_criterion_free(struct as_criterion *c)
{
	if (!c)
		return;
	as_criterion_filter_clear(&c->filter);
	free(c->save);
	free(c->compare);
	free(c->home);
	free(c);
}

void as_criterion_set_number(struct as_criterion *c, int which, double value)
{
	if (which >= 0 && which < AS_CRITERION_NUMBERS_)
		c->numbers[which] = value;
}

void as_criterion_put(char **to, const char *text)
{
	char *copy = text ? as_xstrdup(text) : NULL;

	free(*to);
	*to = copy;
}

static void end_process(int status, const char *message)
{
	as_criterion_say(STDERR_FILENO, "error: %s\n", message);
	_exit(status);
}

static void set_filter(struct as_criterion *c, enum as_criterion_match kind, const char *text)
{
	struct as_error err = {0};

	if (as_criterion_filter_set(&c->filter, kind, text, &err) < 0)
		end_process(2, err.msg);
}

void as_criterion_set_text(struct as_criterion *c, int which, const char *text)
{
	switch (which) {
	case AS_CRITERION_FILTER:
		set_filter(c, AS_CRITERION_REGEX, text);
		break;
	case AS_CRITERION_FILTER_EXACT:
		set_filter(c, AS_CRITERION_EXACT, text);
		break;
	case AS_CRITERION_FILTER_NONE:
		set_filter(c, AS_CRITERION_NONE, text);
		break;
	case AS_CRITERION_SAVE:
		as_criterion_put(&c->save, text);
		as_criterion_put(&c->compare, text);
		c->strict = false;
		break;
	case AS_CRITERION_BASELINE:
	case AS_CRITERION_BASELINE_LENIENT:
		as_criterion_put(&c->save, NULL);
		as_criterion_put(&c->compare, text);
		c->strict = which == AS_CRITERION_BASELINE;
		break;
	case AS_CRITERION_HOME:
		as_criterion_put(&c->home, text);
		break;
	case AS_CRITERION_DISCARD:
		as_criterion_put(&c->save, NULL);
		break;
	default:
		break;
	}
}

/* ---- the run ---- */

static bool in_main(void)
{
	return assay_bench_mode(state->run) == ASSAY_MODE_MAIN;
}

int as_criterion_is_worker(void)
{
	return state && assay_bench_mode(state->run) == ASSAY_MODE_WORKER;
}

/* Whatever main returned: if it was 0 and something failed, that is the status. */
static void close_run(int status)
{
	int own;

	if (state->closed)
		return;
	if (state->in_one && as_criterion_is_worker())
		return; /* the benchmark ends the process: how, tells the status */
	state->closed = true;
	own = assay_bench_close(state->run);
	if (own && !status)
		_exit(own);
}

#ifdef __GLIBC__
static void at_exit(int status, void *unused)
{
	close_run(status);
}
#define WATCH_EXIT() on_exit(at_exit, NULL)
#else
static void at_exit(void)
{
	close_run(0);
}
#define WATCH_EXIT() atexit(at_exit)
#endif

/* argv NULL: nobody gave a command line. */
static void ensure_open(int argc, const char *const *argv)
{
	static const char *const none[] = {"bench", "--bench"};
	static const struct assay_bench_settings settings = {.size = sizeof settings,
							     .front = "criterion"};

	if (state)
		return;
	state = as_xcalloc(1, sizeof *state);
	state->configured = argv != NULL;
	if (!argv) {
		argv = none;
		argc = AS_ARRAY_LEN(none);
	}
	state->argc = argc;
	state->argv = as_xcalloc((size_t)argc + 1, sizeof *state->argv);
	for (int i = 0; i < argc; i++)
		state->argv[i] = as_xstrdup(argv[i]);
	state->terminal = isatty(STDERR_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
	state->run = assay_bench_open(argc, state->argv, &settings);
	(void)WATCH_EXIT(); /* full: a failure's status is lost, no more */
}

const char *as_criterion_home_of(struct as_criterion_run *s, const struct as_criterion *c)
{
	if (c->home)
		return c->home;
	if (!s->home)
		s->home = as_criterion_home();
	return s->home;
}

static void check_baseline(const struct as_criterion *c, const char *name, bool strict)
{
	AS_CLEANUP(as_buf_clear) struct as_buf others = {0};

	if (as_criterion_baseline_exists(as_criterion_home_of(state, c), name, &others))
		return;
	as_criterion_say(STDERR_FILENO,
			 "%s: no benchmark has a baseline '%s' in '%s'\n"
			 "  there are: %s; save one: cargo bench -- --save-baseline %s\n",
			 strict ? "error" : "note", name, as_criterion_home_of(state, c),
			 others.len ? as_buf_str(&others) : "none", name);
	if (strict)
		_exit(1);
}

static void configure(struct as_criterion *c, int argc, const char *const *argv)
{
	bool first = !state;
	const struct as_criterion_options *o;

	ensure_open(argc, argv);
	if (as_criterion_is_worker())
		return;
	o = &state->o;
	for (int i = 0; i < AS_CRITERION_NUMBERS_; i++)
		c->numbers[i] = isnan(o->numbers[i]) ? c->numbers[i] : o->numbers[i];
	if (o->none)
		set_filter(c, AS_CRITERION_NONE, "");
	else if (o->filter)
		set_filter(c, o->exact ? AS_CRITERION_EXACT : AS_CRITERION_REGEX, o->filter);
	if (o->baseline) {
		as_criterion_put(&c->compare, o->baseline);
		as_criterion_put(&c->save, o->save);
		c->strict = o->strict;
	} else if (o->save) {
		as_criterion_put(&c->save, o->save);
		as_criterion_put(&c->compare, o->save);
		c->strict = false;
	}
	if (o->discard || o->load)
		as_criterion_put(&c->save, NULL);
	if (!first || !in_main())
		return;
	if (getenv("CARGO_CRITERION_PORT"))
		as_criterion_say(
			STDERR_FILENO,
			"note: cargo-criterion makes its reports from samples of one "
			"process, which are not taken here; the results are in '%s', as "
			"after cargo bench\n  JSON: assay bench --cargo --format json\n",
			as_criterion_home_of(state, c));
	if (o->baseline)
		check_baseline(c, o->baseline, o->strict);
	if (o->load)
		check_baseline(c, o->load, true);
}

void as_criterion_configure(struct as_criterion *c, int argc, const char *const *argv)
{
	enter();
	configure(c, argc, argv);
	leave();
}

/* ---- the front, as the harness calls it ---- */

static void *front_open(int argc, char *const *argv, struct as_bench_plan *plan)
{
	struct as_criterion_options *o = &state->o;

	as_criterion_args_read(argc, argv, o);
	plan->mode = o->mode;
	plan->profile_s = isnan(o->numbers[AS_CRITERION_PROFILE_S])
				  ? 0
				  : o->numbers[AS_CRITERION_PROFILE_S];
	plan->exit_status = o->exit_status;
	if (o->exit_status >= 0)
		as_criterion_say(o->say_is_error ? STDERR_FILENO : STDOUT_FILENO, "%s%s\n",
				 o->say_is_error ? "error: " : "", as_buf_str(&o->say));
	return state;
}

static bool front_selects(void *ctx, const struct assay_bench_spec *spec, const char *id)
{
	struct as_criterion_run *s = ctx;

	return as_criterion_filter_matches(&s->turn.c->filter, s->turn.id.full);
}

static void call_profiler(struct as_criterion_run *s, int start)
{
	const struct as_criterion_unit *u = s->turn.spec->unit;
	AS_CLEANUP(as_free_autop)
	char *folder = as_xasprintf("%s/%s/profile", as_criterion_home_of(state, s->turn.c),
				    s->turn.id.folder);

	if (u && u->profile)
		u->profile(u->ctx, start, s->turn.id.full, folder);
}

static void front_named(void *ctx, const struct assay_bench_spec *spec, const char *id,
			enum assay_bench_mode mode)
{
	struct as_criterion_run *s = ctx;

	if (mode == ASSAY_MODE_LIST) {
		as_criterion_say(STDOUT_FILENO, "%s: benchmark\n", s->turn.id.title);
	} else if (mode == ASSAY_MODE_TEST) {
		as_criterion_say(STDOUT_FILENO, "Testing %s\n", s->turn.id.title);
	} else {
		as_criterion_say(STDERR_FILENO, "Benchmarking %s: for %.0f s\n",
				 s->turn.id.title, s->o.numbers[AS_CRITERION_PROFILE_S]);
		call_profiler(s, 1);
	}
}

static void front_ran(void *ctx, const char *id, enum assay_bench_mode mode, const char *failed)
{
	struct as_criterion_run *s = ctx;

	if (mode == ASSAY_MODE_PROFILE)
		call_profiler(s, 0);
	if (failed) {
		s->failed++;
		as_criterion_say(STDERR_FILENO, "%s: failed: %s\n", s->turn.id.title, failed);
	} else if (mode == ASSAY_MODE_TEST) {
		as_criterion_say(STDOUT_FILENO, "Success\n\n");
	}
}

/* ---- which program it is compared with ---- */

static struct as_criterion_old *old_program(struct as_criterion_run *s, const char *path)
{
	struct as_fn_side side = {.exe = path, .argv = s->argv};
	struct as_error err = {0};
	struct as_criterion_old new = {0};

	as_vec_foreach (o, &s->olds)
		if (strcmp(o->path, path) == 0)
			return o;
	new.path = as_xstrdup(path);
	if (as_fn_list(&side, 0, &new.list, &err) < 0) {
		new.bad = true;
		as_criterion_why(new.why, sizeof new.why, "its program cannot be run: %s",
				 err.msg);
	}
	as_vec_push(&s->olds, new);
	return &s->olds.v[s->olds.n - 1];
}

static bool old_has(const struct as_criterion_old *o, const struct as_criterion_turn *t)
{
	as_vec_foreach (e, &o->list.v)
		if (strcmp(e->id, t->id.full) == 0)
			return true;
	return false;
}

char *as_criterion_program_of(struct as_criterion_run *s,
			      const struct as_criterion_stored *stored)
{
	struct as_criterion_turn *t = &s->turn;
	AS_CLEANUP(as_free_autop) char *path = NULL;
	struct as_criterion_old *o;

	if (!s->configured) {
		as_criterion_why(
			t->why, sizeof t->why,
			"this program does not take criterion's command line, so it cannot be "
			"measured in pairs");
		return NULL;
	}
	if (!stored->program) {
		as_criterion_why(t->why, sizeof t->why, "its program is not kept%s",
				 stored->own ? "" : " (criterion wrote it)");
		return NULL;
	}
	path = as_criterion_kept(t->home, stored->program);
	if (!path) {
		as_criterion_why(t->why, sizeof t->why, "its program is no longer kept");
		return NULL;
	}
	o = old_program(s, path);
	if (!o->bad && old_has(o, t))
		return AS_STEAL(path);
	as_criterion_why(t->why, sizeof t->why, "%s",
			 o->bad ? o->why : "its program has no such benchmark");
	return NULL;
}

/* Another benchmark's results under our short name: ours get a folder of their own. */
void as_criterion_settle_folder(struct as_criterion_run *s)
{
	static const char *const names[] = {"new", "base"};
	struct as_criterion_turn *t = &s->turn;

	for (size_t i = 0; t->id.cut && i < AS_ARRAY_LEN(names); i++) {
		struct as_criterion_stored other;
		bool taken;

		(void)as_criterion_load(t->home, t->id.folder, names[i], false, &other, NULL);
		taken = other.full_id && strcmp(other.full_id, t->id.full) != 0;
		as_criterion_stored_clear(&other);
		if (taken)
			as_criterion_id_hashed(&t->id);
	}
}

static void note_missing(struct as_criterion_run *s)
{
	as_criterion_put(&s->missing_from, s->turn.c->compare);
	as_vec_push(&s->missing, as_xstrdup(s->turn.id.title));
}

void as_criterion_find_baseline(struct as_criterion_run *s)
{
	struct as_criterion_turn *t = &s->turn;
	struct as_error err = {0};

	if (as_criterion_load(t->home, t->id.folder, t->c->compare, false, &t->stored, &err) <
	    0) {
		s->failed++;
		as_criterion_say(STDERR_FILENO, "error: %s: %s\n", t->id.title, err.msg);
		return;
	}
	if (t->stored.found)
		t->old = as_criterion_program_of(s, &t->stored);
	else if (t->c->strict)
		note_missing(s);
}

static void front_begin(void *ctx, const struct assay_bench_spec *spec,
			const struct assay_bench_settings *merged, struct as_fn_request *q)
{
	struct as_criterion_run *s = ctx;
	struct as_criterion_turn *t = &s->turn;

	t->home = as_criterion_home_of(state, t->c);
	as_criterion_settle_folder(s);
	as_criterion_find_baseline(s);
	q->here_only = !s->configured;
	q->confidence = merged->confidence;
	t->alone = *q;
	if (t->old) {
		q->side[1] = q->side[0];
		q->side[0].exe = t->old;
		q->sides = 2;
	}
	if (s->terminal)
		as_criterion_say(STDERR_FILENO, "\r\033[KBenchmarking %s", t->id.title);
}

static void front_result(void *ctx, const struct assay_bench_spec *spec,
			 const struct assay_bench_settings *merged, struct as_fn_result *r)
{
	as_criterion_result(ctx, r);
}

static void say_missing(struct as_criterion_run *s)
{
	if (!s->missing.n)
		return;
	as_criterion_say(STDERR_FILENO, "error: %zu benchmark%s not in baseline '%s':\n",
			 s->missing.n, s->missing.n == 1 ? " is" : "s are", s->missing_from);
	as_vec_foreach (title, &s->missing)
		as_criterion_say(STDERR_FILENO, "  %s\n", *title);
	as_criterion_say(
		STDERR_FILENO,
		"  (--baseline-lenient %s leaves them out, --save-baseline %s adds them)\n",
		s->missing_from, s->missing_from);
	s->failed += s->missing.n;
	as_vec_foreach (title, &s->missing)
		free(*title);
	as_vec_clear(&s->missing);
}

static int front_close(void *ctx, unsigned failures)
{
	struct as_criterion_run *s = ctx;
	struct as_error err;

	say_missing(s);
	if (s->pages && as_criterion_write_index(s->pages, &err) < 0) {
		s->failed++;
		as_criterion_say(STDERR_FILENO, "error: cannot write the index of pages: %s\n",
				 err.msg);
	}
	if (s->failed)
		return 1;
	if (s->slower && s->o.fail_on_slower) {
		as_criterion_say(STDERR_FILENO, "%zu slower: exit 3 (--fail-on slower)\n",
				 s->slower);
		return 3;
	}
	return 0;
}

const struct as_bench_front as_criterion_front = {
	.name = "criterion",
	.open = front_open,
	.selects = front_selects,
	.named = front_named,
	.ran = front_ran,
	.begin = front_begin,
	.result = front_result,
	.close = front_close,
};

/* ---- one benchmark ---- */

double as_criterion_number_of(const struct as_criterion_turn *t, enum as_criterion_number which,
			      double otherwise)
{
	if (!isnan(t->spec->numbers[which]))
		return t->spec->numbers[which];
	return isnan(t->c->numbers[which]) ? otherwise : t->c->numbers[which];
}

static void turn_clear(struct as_criterion_turn *t)
{
	as_criterion_id_clear(&t->id);
	as_criterion_stored_clear(&t->stored);
	free(t->old);
	*t = (struct as_criterion_turn){0};
}

static void format_unit(void *ctx, double v, char *text, size_t n)
{
	const struct as_criterion_unit *u = ctx;

	u->format_value(u->ctx, v, text, n);
}

static double setting(const struct as_criterion_turn *t, enum as_criterion_number which)
{
	return as_criterion_number_of(t, which, 0);
}

static void spec_fill(const struct as_criterion_turn *t, struct assay_bench_unit *unit,
		      struct assay_bench_spec *ret)
{
	const struct as_criterion_spec *s = t->spec;

	*ret = (struct assay_bench_spec){
		.size = sizeof *ret,
		.threads = s->threads,
		.group = s->group,
		.function = s->function,
		.value = s->value,
		.throughput = (uint32_t)s->throughput,
		.throughput_n = s->n,
		.throughput_n2 = s->n2,
		.settings = {.size = sizeof ret->settings,
			     .warm_up_s = setting(t, AS_CRITERION_WARM_UP_S),
			     .measurement_s = setting(t, AS_CRITERION_MEASUREMENT_S),
			     .noise = setting(t, AS_CRITERION_NOISE),
			     .confidence = setting(t, AS_CRITERION_CONFIDENCE),
			     .significance = setting(t, AS_CRITERION_SIGNIFICANCE),
			     .samples = (uint64_t)setting(t, AS_CRITERION_SAMPLE_SIZE),
			     .resamples = (uint64_t)setting(t, AS_CRITERION_RESAMPLES)},
	};
	if (!s->unit || s->unit->wall_time)
		return;
	*unit = (struct assay_bench_unit){.size = sizeof *unit,
					  .name = s->unit->for_machines(s->unit->ctx, NULL, 0),
					  .format = format_unit,
					  .ctx = (void *)(uintptr_t)s->unit};
	ret->unit = unit;
}

static int run_turn(struct as_criterion *c, const struct as_criterion_spec *spec)
{
	struct assay_bench_unit unit;
	struct assay_bench_spec to;
	int r = 0;

	ensure_open(0, NULL);
	state->turn = (struct as_criterion_turn){.c = c, .spec = spec};
	as_criterion_id_make(spec->group, spec->function, spec->value, &state->turn.id);
	as_criterion_id_unique(&state->turn.id, &state->names);
	spec_fill(&state->turn, &unit, &to);
	state->turn.to = &to;
	if (!as_criterion_is_worker() && in_main() && state->o.load) {
		if (!as_bench_interrupted && front_selects(state, &to, state->turn.id.full))
			as_criterion_result_load(state);
	} else {
		state->in_one = true;
		r = assay_bench_one(state->run, &to, spec->run, spec->ctx);
		state->in_one = false;
	}
	turn_clear(&state->turn);
	return r;
}

int as_criterion_one(struct as_criterion *c, const struct as_criterion_spec *spec)
{
	int r;

	enter();
	r = run_turn(c, spec);
	leave();
	return r;
}

void as_criterion_throughput(int throughput, uint64_t n, uint64_t n2)
{
	struct assay_bench_spec *to = state ? state->turn.to : NULL;

	if (!to)
		return;
	/* from several threads: all say the same */
	to->throughput = (uint32_t)throughput;
	to->throughput_n = n;
	to->throughput_n2 = n2;
}

void as_criterion_summary(struct as_criterion *c)
{
	enter();
	ensure_open(0, NULL);
	if (as_criterion_is_worker())
		close_run(
			0); /* the benchmark asked for did not come: say so, run nothing more */
	say_missing(state);
	leave();
}
