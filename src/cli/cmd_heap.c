/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * assay heap: runs a program (or attaches to one) and keeps where its memory went, allocation by
 * allocation. Standard output, input and the exit status belong to the program; what assay says goes to
 * standard error.
 */
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "cli/cmds_priv.h"
#include "cli/recording.h"
#include "hook/hooked.h"
#include "model/memory/budget.h"
#include "track/track.h"

struct heap_args {
	const char *output;
	int64_t pid;
	uint64_t duration_ns, sample_bytes;
	struct as_texts fail_if;
	bool live, events, no_leaks, no_inline, no_source, quiet;
};

#define LIVE_EVERY_NS     1000000000ull
#define PROGRESS_EVERY_NS 250000000ull
enum { HEADER_EVERY = 20 };

static const struct as_option heap_options[] = {
	AS_RECORDING_PID(struct heap_args, "; what it had allocated before stays unknown"),
	AS_RECORDING_DURATION(struct heap_args, ""),
	AS_RECORDING_SAMPLE(struct heap_args, "What is recorded",
			    "choose blocks at random, one in about so many bytes (512KiB for "
			    "production), and estimate the rest, with intervals"),
	AS_RECORDING_EVENTS(
		struct heap_args, "What is recorded",
		"keep every call as well, in its order, for assay export --to events: "
		"a larger session, and a slower program"),
	{.name = "no-leaks",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct heap_args, no_leaks),
	 .group = "What is recorded",
	 .help = "do not look, at the end of each process, for what nothing points to any "
		 "more"},
	{.name = "live",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct heap_args, live),
	 .group = "While it runs",
	 .help = "a line every second: what is allocated, the peak, calls per second"},
	{.name = "fail-if",
	 .type = AS_OPT_TEXTS,
	 .at = offsetof(struct heap_args, fail_if),
	 .arg = "BUDGET",
	 .group = "Budgets",
	 .help = "exit 3 when this holds at the end, as 'peak > 50MiB' or 'allocs(in=parse) > "
		 "0'; may be given several times, see assay report"},
	AS_RECORDING_OUTPUT(struct heap_args, "PROGRAM.heap.assay",
			    "the functions that allocate most"),
	{0},
};

/* ---- while it runs ---- */

struct live {
	unsigned rows;
	struct as_track_state last;
	struct as_progress progress; /* without --live */
};

static void right(struct as_buf *out, const struct as_buf *text, size_t width)
{
	size_t w = as_text_width(text->p, text->len);

	as_buf_fill(out, ' ', width - AS_MIN(w, width));
	as_buf_add(out, text->p, text->len);
}

static void bytes_cell(struct as_buf *out, uint64_t bytes)
{
	struct as_buf b = {0};

	as_fmt_bytes(&b, bytes);
	right(out, &b, 12);
	as_buf_clear(&b);
}

static void count_cell(struct as_buf *out, uint64_t n)
{
	struct as_buf b = {0};

	as_fmt_count(&b, n);
	right(out, &b, 13);
	as_buf_clear(&b);
}

static uint64_t per_second(uint64_t n, uint64_t before, uint64_t ns)
{
	return ns && n > before ? (uint64_t)((double)(n - before) * 1e9 / (double)ns) : 0;
}

static void live_row(struct live *l, const struct as_track_state *s, struct as_buf *out)
{
	uint64_t ns = s->elapsed_ns - l->last.elapsed_ns;
	struct as_buf time = {0};

	if (l->rows++ % HEADER_EVERY == 0)
		as_buf_adds(out, "     after        live       blocks        peak    resident"
				 "     allocs/s      frees/s\n");
	as_fmt_duration(&time, s->elapsed_ns);
	right(out, &time, 10);
	as_buf_clear(&time);
	bytes_cell(out, s->live_bytes);
	count_cell(out, s->live_blocks);
	bytes_cell(out, s->peak_bytes);
	bytes_cell(out, s->resident_bytes);
	count_cell(out, per_second(s->allocs, l->last.allocs, ns));
	count_cell(out, per_second(s->frees, l->last.frees, ns));
	as_buf_addc(out, '\n');
	l->last = *s;
}

static void on_live(void *ctx, const struct as_track_state *s)
{
	struct as_buf out = {0};

	live_row(ctx, s, &out);
	(void)as_write_all(STDERR_FILENO, out.p, out.len, NULL); /* nowhere left to tell */
	as_buf_clear(&out);
}

static void on_progress(void *ctx, const struct as_track_state *s)
{
	struct live *l = ctx;

	as_progress_tell(&l->progress, s->elapsed_ns, s->events, NULL);
}

/* A started program may be drawing on the same terminal: progress only beside others. */
static void ask_for_state(const struct heap_args *a, struct live *l, struct as_track_request *q)
{
	if (a->live) {
		q->state = on_live;
		q->state_every_ns = LIVE_EVERY_NS;
	} else if (!a->quiet && isatty(STDERR_FILENO) && a->pid) {
		q->state = on_progress;
		q->state_every_ns = PROGRESS_EVERY_NS;
	}
	q->state_ctx = l;
}

/* ---- the command ---- */

/* heap mark NAME -p PID: to a command that runs a program these words are all operands. */
static pid_t mark_pid(const struct as_cmd_ctx *ctx)
{
	const struct heap_args *a = ctx->args;
	char *const *w = ctx->operands;
	uint64_t pid;

	/* behind -- it is a program */
	if (ctx->noperands < 2 || !ctx->literal || strcmp(w[0], "mark") != 0)
		return 0;
	if (ctx->noperands == 2)
		return (pid_t)a->pid;
	if (ctx->noperands != 4 || (strcmp(w[2], "-p") != 0 && strcmp(w[2], "--pid") != 0) ||
	    !as_parse_u64(w[3], &pid) || pid > INT32_MAX)
		return 0;
	return (pid_t)pid;
}

static int check_request(const struct as_cmd_ctx *ctx, struct as_error *err)
{
	const struct heap_args *a = ctx->args;

	if (mark_pid(ctx))
		return 0;
	if (a->pid && ctx->noperands)
		return as_fail(err, AS_E_USAGE, 0, "heap takes a program or --pid, not both");
	if (!a->pid && !ctx->noperands)
		return as_fail(err, AS_E_USAGE, 0,
			       "heap needs a program or --pid\n"
			       "assay heap -- ./app args\nassay heap --help");
	if (a->events && a->sample_bytes)
		return as_fail(err, AS_E_USAGE, 0,
			       "--events keeps every call, --sample tells only some: one or "
			       "the other");
	if (a->fail_if.n && a->output && strcmp(a->output, "-") == 0)
		return as_fail(err, AS_E_USAGE, 0,
			       "--fail-if reads what was recorded: it needs a file as output");
	return 0;
}

/* What is beyond a budget, on standard error. */
static int check_budgets(const struct as_heap_budgets *budgets, const char *path,
			 bool *ret_broken, struct as_error *err)
{
	struct as_model *m = NULL;
	struct as_buf text = {0};
	int r = as_model_load(path, &m, err);

	if (r >= 0)
		r = as_heap_budgets_check(budgets, m, &text, ret_broken, err);
	if (r >= 0)
		(void)as_write_all(STDERR_FILENO, as_buf_str(&text), text.len,
				   NULL); /* nowhere left to tell */
	as_buf_clear(&text);
	as_model_free(m);
	return r;
}

static int record(struct as_cmd_ctx *ctx, const char *path, struct as_recording_outcome *ret,
		  struct as_error *err)
{
	const struct heap_args *a = ctx->args;
	struct live live = {.progress = {.duration_ns = a->duration_ns, .unit = "events"}};
	AS_CLEANUP(as_free_autop) char *cache = as_cache_dir();
	struct as_track_request q = {
		.argv = a->pid ? NULL : ctx->operands,
		.folder = ctx->program_folder,
		.pid = (pid_t)a->pid,
		.duration_ns = a->duration_ns,
		.sample_bytes = a->sample_bytes,
		.events = a->events,
		.no_leaks = a->no_leaks,
		.marks = &as_marks,
		.output = path,
		.resolve = {.cache_dir = cache,
			    .no_inlines = a->no_inline,
			    .no_source = a->no_source},
		.interrupted = &as_interrupts,
		.interrupt_signal = &as_interrupt_signal,
	};
	int r;

	ask_for_state(a, &live, &q);
	as_interrupts_catch();
	as_marks_catch();
	r = as_track(&q, ret, err);
	as_progress_end(&live.progress);
	if (r < 0 && !a->pid)
		ctx->fail_exit = as_recording_failure(ret);
	return r;
}

static int heap_run(struct as_cmd_ctx *ctx, struct as_error *err)
{
	const struct heap_args *a = ctx->args;
	struct as_recording_outcome outcome = {0};
	AS_CLEANUP(as_free_autop) char *path = NULL;
	AS_CLEANUP(as_heap_budgets_clear) struct as_heap_budgets budgets = {0};
	bool broken = false;
	int r, status;

	r = check_request(ctx, err);
	if (r == 0)
		r = as_heap_budgets_parse(a->fail_if.v, a->fail_if.n, &budgets, err);
	if (r < 0)
		return r;
	if (mark_pid(ctx)) {
		ctx->fail_exit = AS_EXIT_ERROR; /* no program is run */
		return as_hook_mark(mark_pid(ctx), ctx->operands[1], strlen(ctx->operands[1]),
				    err);
	}
	path = a->output ? as_xstrdup(a->output)
			 : as_recording_output(ctx, a->pid, ".heap.assay");
	r = record(ctx, path, &outcome, err);
	if (r < 0)
		return r;
	if (!a->quiet)
		as_recording_summary(ctx, path);
	status = as_recording_status(&outcome);
	if (budgets.n)
		r = check_budgets(&budgets, path, &broken, err);
	return r < 0 ? r : broken && !status ? AS_EXIT_GATE : status;
}

const struct as_cmd as_cmd_heap = {
	.name = "heap",
	.group = "Measure",
	.summary = "record where the memory of a program goes, allocation by allocation",
	.usage = "[options] [--] PROGRAM [ARGS…]\n[options] -p PID\nmark NAME -p PID",
	.options = heap_options,
	.examples = {{"assay heap -- ./target/release/app args", "a run from start to end"},
		     {"assay heap -p 4242 --duration 10", "ten seconds of a running process"},
		     {"assay heap --live -- ./server", "and see it while it runs"}},
	.operand = "a program",
	.max_operands = -1,
	.flags = AS_CMD_RUNS_PROGRAM,
	.args_size = sizeof(struct heap_args),
	.run = heap_run,
};
