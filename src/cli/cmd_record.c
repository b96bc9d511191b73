/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * assay record: runs a program (or attaches to one) and keeps where its CPU time went. Standard
 * output, input and the exit status belong to the program; what assay says goes to standard error.
 */
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "cli/cmds_priv.h"
#include "cli/record_until.h"
#include "cli/recording.h"
#include "collect/collect.h"
#include "track/track.h"

struct record_args {
	const char *output;
	double rate_hz;
	int64_t pid;
	uint64_t duration_ns, dump_size, sample_bytes;
	int64_t trials;
	double until_percent;
	int engine;
	bool heap, events, measure_overhead, no_inline, no_kernel, no_inherit, no_source, quiet;
};

enum { OVERHEAD_PAIRS = 10 };
#define UNTIL_LIMIT_NS 300000000000ull
#define STATE_EVERY_NS 250000000ull

static const char *const engine_names[] = {NULL, "kernel", "ring"}; /* order of --engine */

static const struct as_option record_options[] = {
	AS_RECORDING_PID(struct record_args, ""),
	AS_RECORDING_DURATION(struct record_args, "; of several runs none begins later"),
	{.name = "no-inherit",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct record_args, no_inherit),
	 .group = "What is recorded",
	 .help = "only the process itself, not those it starts"},
	{.name = "no-kernel",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct record_args, no_kernel),
	 .group = "What is recorded",
	 .help = "no kernel functions in the stacks; time in the kernel counts for its "
		 "callers"},
	{.name = "heap",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct record_args, heap),
	 .group = "Memory",
	 .help = "record memory as well, as assay heap does: one session of both, and what "
		 "memory costs in time"},
	AS_RECORDING_SAMPLE(struct record_args, "Memory",
			    "with --heap: choose blocks at random, one in about so many bytes, "
			    "which disturbs the times least"),
	AS_RECORDING_EVENTS(
		struct record_args, "Memory",
		"with --heap: keep every call as well, in its order, for assay export "
		"--to events"),
	{.name = "trials",
	 .type = AS_OPT_INT,
	 .at = offsetof(struct record_args, trials),
	 .arg = "N",
	 .min = 1,
	 .max = 10000,
	 .def_text = "1",
	 .group = "How sure",
	 .help = "N runs of the program in one session: intervals then speak of the program, "
		 "not "
		 "of one run"},
	{.name = "until",
	 .type = AS_OPT_NUM,
	 .at = offsetof(struct record_args, until_percent),
	 .arg = "PERCENT",
	 .min = 0.01,
	 .max = 50,
	 .group = "How sure",
	 .help = "run the program again, or stay attached, until all that has 5 % or more is "
		 "known to ± PERCENT of all time; --duration limits it, 5 minutes if not "
		 "given"},
	{.name = "measure-overhead",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct record_args, measure_overhead),
	 .group = "How sure",
	 .help = "run the program without recording as well, once beside each run (10 unless "
		 "--trials or --until says otherwise), and tell how much recording slows it "
		 "down"},
	{.name = "rate",
	 .letter = 'F',
	 .type = AS_OPT_NUM,
	 .at = offsetof(struct record_args, rate_hz),
	 .arg = "HZ",
	 .min = 1,
	 .max = 20000,
	 .def = "997",
	 .group = "How",
	 .help = "samples per second of CPU time, at jittered intervals"},
	{.name = "engine",
	 .type = AS_OPT_CHOICE,
	 .at = offsetof(struct record_args, engine),
	 .arg = "ENGINE",
	 .choices = "auto|kernel|ring",
	 .def = "auto",
	 .group = "How",
	 .help = "kernel: stacks unwound in the kernel, of any size (root); ring: from copies "
		 "of the stack; auto: the best that can run here"},
	{.name = "dump-size",
	 .type = AS_OPT_SIZE,
	 .at = offsetof(struct record_args, dump_size),
	 .arg = "BYTES",
	 .min = 512,
	 .max = 65528,
	 .def_text = "adapts to each thread",
	 .group = "How",
	 .help = "engine ring: bytes of stack copied per sample"},
	AS_RECORDING_OUTPUT(struct record_args, "PROGRAM.assay",
			    "hot functions in the session"),
	{0},
};

static void on_progress(void *ctx, uint64_t elapsed_ns, uint64_t samples, const char *what)
{
	as_progress_tell(ctx, elapsed_ns, samples, what);
}

static int check_request(const struct as_cmd_ctx *ctx, struct as_error *err)
{
	const struct record_args *a = ctx->args;

	if (a->pid && ctx->noperands)
		return as_fail(err, AS_E_USAGE, 0, "record takes a program or --pid, not both");
	if (!a->pid && !ctx->noperands)
		return as_fail(err, AS_E_USAGE, 0,
			       "record needs a program or --pid\n"
			       "assay record -- ./app args\nassay record --help");
	if (a->pid && (a->trials || a->measure_overhead))
		return as_fail(err, AS_E_USAGE, 0,
			       "--%s runs a program several times: a running one cannot be",
			       a->trials ? "trials" : "measure-overhead");
	if (!a->heap && a->sample_bytes)
		return as_fail(err, AS_E_USAGE, 0, "--sample belongs to --heap");
	if (!a->heap && a->events)
		return as_fail(err, AS_E_USAGE, 0, "--events belongs to --heap");
	if (a->events && a->sample_bytes)
		return as_fail(err, AS_E_USAGE, 0,
			       "--events keeps every call, --sample tells only some: one or "
			       "the other");
	if (a->heap &&
	    (a->trials || a->measure_overhead || a->until_percent > 0 || a->no_inherit))
		return as_fail(
			err, AS_E_USAGE, 0,
			"--heap records one run and all it starts: --%s has no part in it",
			a->trials             ? "trials"
			: a->measure_overhead ? "measure-overhead"
			: a->no_inherit       ? "no-inherit"
					      : "until");
	if (a->until_percent > 0 && a->output && strcmp(a->output, "-") == 0)
		return as_fail(err, AS_E_USAGE, 0,
			       "--until reads what it has recorded: it needs a file as output");
	return 0;
}

static void ask_for_runs(const struct record_args *a, struct as_record_until *until,
			 struct as_recording_request *q)
{
	q->runs = (uint64_t)a->trials;
	q->measure_overhead = a->measure_overhead;
	if (a->measure_overhead && !a->trials && !(a->until_percent > 0))
		q->runs = OVERHEAD_PAIRS;
	if (!(a->until_percent > 0))
		return;
	if (!q->duration_ns)
		q->duration_ns = UNTIL_LIMIT_NS;
	*until = (struct as_record_until){
		.percent = a->until_percent, .limit_ns = q->duration_ns, .quiet = a->quiet};
	as_record_until(until, q);
}

static void on_state(void *ctx, const struct as_track_state *s)
{
	as_progress_tell(ctx, s->elapsed_ns, s->events, NULL);
}

/* What both kinds of recording are told. */
struct both {
	const char *path;
	struct as_record_options options;
	struct as_resolve_options resolve;
	const struct as_recording_note *notes;
	size_t nnotes;
};

static int record_both(struct as_cmd_ctx *ctx, const struct both *b,
		       struct as_recording_outcome *ret, struct as_error *err)
{
	const struct record_args *a = ctx->args;
	struct as_progress progress = {.duration_ns = a->duration_ns, .unit = "events"};
	struct as_track_request q = {
		.argv = a->pid ? NULL : ctx->operands,
		.folder = ctx->program_folder,
		.pid = (pid_t)a->pid,
		.duration_ns = a->duration_ns,
		.sample_bytes = a->sample_bytes,
		.events = a->events,
		.output = b->path,
		.cpu = &b->options,
		.engine = engine_names[a->engine],
		.resolve = b->resolve,
		.notes = b->notes,
		.nnotes = b->nnotes,
		.marks = &as_marks,
		.interrupted = &as_interrupts,
		.interrupt_signal = &as_interrupt_signal,
	};
	int r;

	if (!a->quiet && isatty(STDERR_FILENO) && a->pid) {
		q.state = on_state;
		q.state_ctx = &progress;
		q.state_every_ns = STATE_EVERY_NS;
	}
	as_interrupts_catch();
	as_marks_catch();
	r = as_track(&q, ret, err);
	as_progress_end(&progress);
	return r;
}

static int record_time(struct as_cmd_ctx *ctx, const struct both *b,
		       struct as_recording_outcome *ret, struct as_error *err)
{
	const struct record_args *a = ctx->args;
	struct as_progress progress = {.duration_ns = a->duration_ns, .unit = "samples"};
	struct as_record_until until;
	struct as_recording_request q = {
		.argv = a->pid ? NULL : ctx->operands,
		.folder = ctx->program_folder,
		.pid = (pid_t)a->pid,
		.duration_ns = a->duration_ns,
		.engine = engine_names[a->engine],
		.output = b->path,
		.options = b->options,
		.resolve = b->resolve,
		.notes = b->notes,
		.nnotes = b->nnotes,
		.interrupted = &as_interrupts,
		.interrupt_signal = &as_interrupt_signal,
	};
	int r;

	ask_for_runs(a, &until, &q);
	/* A started program may be drawing on the same terminal: progress only beside others. */
	if (!a->quiet && isatty(STDERR_FILENO) && a->pid) {
		q.progress = on_progress;
		q.progress_ctx = &progress;
	}
	as_interrupts_catch();
	r = as_record(&q, ret, err);
	as_progress_end(&progress);
	return r;
}

static int record_run(struct as_cmd_ctx *ctx, struct as_error *err)
{
	const struct record_args *a = ctx->args;
	struct as_recording_outcome outcome = {0};
	AS_CLEANUP(as_free_autop) char *path = NULL, *cache = as_cache_dir();
	AS_CLEANUP(as_fitness_clear) struct as_fitness fitness = {0};
	int r = check_request(ctx, err);

	if (r < 0)
		return r;
	path = a->output ? as_xstrdup(a->output) : as_recording_output(ctx, a->pid, ".assay");
	if (as_fitness_look(ctx->operands[0], a->pid, &fitness) && !a->quiet)
		as_fitness_print(&fitness);

	struct as_recording_note unfit = {2, fitness.about, fitness.text, fitness.remedy};
	struct both both = {
		.path = path,
		.options = {.rate_hz = a->rate_hz,
			    .kernel_stacks = !a->no_kernel,
			    .max_depth = 65536,
			    .dump_size = (uint32_t)a->dump_size,
			    .no_inherit = a->no_inherit},
		.resolve = {.cache_dir = cache,
			    .no_inlines = a->no_inline,
			    .no_source = a->no_source},
		.notes = &unfit,
		.nnotes = fitness.text ? 1 : 0,
	};

	r = a->heap ? record_both(ctx, &both, &outcome, err)
		    : record_time(ctx, &both, &outcome, err);
	if (r < 0) {
		if (!a->pid)
			ctx->fail_exit = as_recording_failure(&outcome);
		return r;
	}
	if (!a->quiet)
		as_recording_summary(ctx, path);
	return as_recording_status(&outcome);
}

const struct as_cmd as_cmd_record = {
	.name = "record",
	.group = "Measure",
	.summary = "record where the CPU time of a program goes, stack by stack",
	.usage = "[options] [--] PROGRAM [ARGS…]\n[options] -p PID",
	.options = record_options,
	.examples = {{"assay record -- ./target/release/app args", "a run from start to end"},
		     {"assay record -p 4242 --duration 10", "ten seconds of a running process"},
		     {"assay record --until 1% -- ./app", "until it is known to ± 1 %"}},
	.operand = "a program",
	.max_operands = -1,
	.flags = AS_CMD_RUNS_PROGRAM,
	.args_size = sizeof(struct record_args),
	.run = record_run,
};
