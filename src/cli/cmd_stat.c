/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* assay stat: what runs of a command cost, how sure that is, and whether two commands differ. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"
#include "cli/cmds_priv.h"
#include "cli/stat_baseline.h"
#include "cli/stat_watch.h"
#include "measure/repeat.h"
#include "view/stat/stat.h"

struct stat_args {
	int64_t runs, warmup, pid, interval_ms;
	uint64_t duration_ns;
	double until_percent, delta_percent;
	uint64_t budget_ns;
	const char *cpus, *events, *input, *output, *setup, *prepare, *save, *baseline;
	int format;
	bool ignore_failure, all;
};

static const struct as_option stat_options[] = {
	{.name = "runs",
	 .letter = 'r',
	 .type = AS_OPT_INT,
	 .at = offsetof(struct stat_args, runs),
	 .arg = "N",
	 .min = 1,
	 .max = 1e6,
	 .def_text = "1; with --until as many as it takes; with --vs until it is decided",
	 .group = "How often",
	 .help = "runs, or pairs of runs at most"},
	{.name = "until",
	 .type = AS_OPT_NUM,
	 .at = offsetof(struct stat_args, until_percent),
	 .arg = "PERCENT",
	 .min = 0.01,
	 .max = 50,
	 .group = "How often",
	 .help = "run until the wall time is known to ± this"},
	{.name = "budget",
	 .type = AS_OPT_DURATION,
	 .at = offsetof(struct stat_args, budget_ns),
	 .arg = "TIME",
	 .def_text = "60s with --until, 20s with --vs, else none",
	 .group = "How often",
	 .help = "stop after this much time in runs"},
	{.name = "warmup",
	 .type = AS_OPT_INT,
	 .at = offsetof(struct stat_args, warmup),
	 .arg = "N",
	 .min = 0,
	 .max = 1e6,
	 .group = "How often",
	 .help = "runs before that do not count"},
	{.name = "pid",
	 .letter = 'p',
	 .type = AS_OPT_INT,
	 .at = offsetof(struct stat_args, pid),
	 .arg = "PID",
	 .min = 1,
	 .max = 1 << 22,
	 .group = "Over time",
	 .help = "a process that runs already, with what it started and starts: until it ends, "
		 "Ctrl-C, or --duration"},
	{.name = "interval",
	 .letter = 'I',
	 .type = AS_OPT_INT,
	 .at = offsetof(struct stat_args, interval_ms),
	 .arg = "MS",
	 .min = 10,
	 .max = 3600e3,
	 .group = "Over time",
	 .help = "a row each MS milliseconds; json: a line per row, csv: only rows"},
	{.name = "duration",
	 .letter = 'd',
	 .type = AS_OPT_DURATION,
	 .at = offsetof(struct stat_args, duration_ns),
	 .arg = "TIME",
	 .group = "Over time",
	 .help = "with --pid: stop after this time"},
	{.name = "save",
	 .type = AS_OPT_TEXT,
	 .at = offsetof(struct stat_args, save),
	 .arg = "NAME",
	 .group = "Two commands",
	 .help = "keep the result, and a copy of the program, under this name; 10 runs unless "
		 "-r "
		 "says otherwise"},
	{.name = "baseline",
	 .type = AS_OPT_TEXT,
	 .at = offsetof(struct stat_args, baseline),
	 .arg = "NAME",
	 .group = "Two commands",
	 .help = "compare with the program that was saved under this name: its copy is run "
		 "again, "
		 "in pairs with this one"},
	{.name = "delta",
	 .type = AS_OPT_NUM,
	 .at = offsetof(struct stat_args, delta_percent),
	 .arg = "PERCENT",
	 .min = 0.01,
	 .max = 50,
	 .def = "1",
	 .group = "Two commands",
	 .help = "differences below this are none"},
	{.name = "events",
	 .letter = 'e',
	 .type = AS_OPT_TEXT,
	 .at = offsetof(struct stat_args, events),
	 .arg = "LIST",
	 .group = "What is measured",
	 .help = "only these: figures (wall,cpu,syscalls …), events as perf names them "
		 "(page-faults, cycles:u, sched:sched_switch, cpu/event=0x3c/, r01c4, {a,b}), "
		 "or "
		 "hardware, cache, tlb, topdown"},
	{.name = "cpu",
	 .type = AS_OPT_TEXT,
	 .at = offsetof(struct stat_args, cpus),
	 .arg = "LIST",
	 .group = "How it runs",
	 .help = "CPUs it may run on: 0,2-3"},
	{.name = "input",
	 .type = AS_OPT_TEXT,
	 .at = offsetof(struct stat_args, input),
	 .arg = "FILE",
	 .def_text = "yours; /dev/null for more than one run",
	 .group = "How it runs",
	 .help = "its standard input"},
	{.name = "output",
	 .type = AS_OPT_TEXT,
	 .at = offsetof(struct stat_args, output),
	 .arg = "FILE",
	 .def_text = "yours; /dev/null for more than one run",
	 .group = "How it runs",
	 .help = "its standard output and error; - is yours"},
	{.name = "setup",
	 .type = AS_OPT_TEXT,
	 .at = offsetof(struct stat_args, setup),
	 .arg = "COMMAND",
	 .group = "How it runs",
	 .help = "shell command once before all runs"},
	{.name = "prepare",
	 .type = AS_OPT_TEXT,
	 .at = offsetof(struct stat_args, prepare),
	 .arg = "COMMAND",
	 .group = "How it runs",
	 .help = "shell command before each run"},
	{.name = "ignore-failure",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct stat_args, ignore_failure),
	 .group = "How it runs",
	 .help = "go on when a run ends with another status than 0"},
	{.name = "all",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct stat_args, all),
	 .group = "Output",
	 .help = "figures that are 0, too"},
	{.name = "format",
	 .type = AS_OPT_CHOICE,
	 .at = offsetof(struct stat_args, format),
	 .arg = "FORMAT",
	 .choices = "text|json|csv",
	 .def = "text",
	 .group = "Output",
	 .help = "text and json say what the runs say together, csv has a line per run; to "
		 "standard error, unless --output leaves standard output free"},
	{0},
};

static volatile int interrupted;

static void on_interrupt(int sig)
{
	interrupted++;
}

static int parse_cpus(const char *text, cpu_set_t *ret, struct as_error *err)
{
	CPU_ZERO(ret);
	for (const char *p = text; *p;) {
		unsigned long range[2];
		int n = 0;

		for (; n < 2; n++) {
			size_t digits = strspn(p, "0123456789");
			AS_CLEANUP(as_free_autop) char *number = as_xstrndup(p, digits);
			uint64_t v;

			if (!as_parse_u64(number, &v) || v >= CPU_SETSIZE)
				return as_fail(err, AS_E_USAGE, 0,
					       "'%s' is no list of CPUs: 0,2-3", text);
			range[n] = v;
			p += digits;
			if (*p != '-')
				break;
			p++;
		}
		for (unsigned long cpu = range[0]; cpu <= range[n == 0 ? 0 : 1]; cpu++)
			CPU_SET(cpu, ret);
		if (*p && *p++ != ',')
			return as_fail(err, AS_E_USAGE, 0, "'%s' is no list of CPUs: 0,2-3",
				       text);
	}
	return AS_OK;
}

/* A … --vs B …: the second command, NULL when there is one only. */
static char **split_commands(char **operands)
{
	for (char **w = operands; *w; w++) {
		if (strcmp(*w, "--vs") == 0) {
			*w = NULL;
			return w + 1;
		}
	}
	return NULL;
}

static void show_progress(void *ctx, int side, size_t n, const struct as_look *look)
{
	struct as_buf b = {0};

	as_buf_addf(&b, "\r\033[K%zu %s", n, side ? "pairs" : "runs");
	if (look && look->plain.n)
		as_buf_addf(&b, ", %+.1f ±%.1f %%", 100 * look->plain.value,
			    50 * (look->plain.hi - look->plain.lo));
	(void)as_write_all(STDERR_FILENO, b.p, b.len, NULL); /* progress only */
	as_buf_clear(&b);
}

/* One word that is no program but holds what only a shell understands: given to one. room: of 4 words. */
static char **shell_if_needed(char **words, char **room)
{
	static char sh[] = "/bin/sh", c[] = "-c";

	if (!words[0] || words[1] || !strpbrk(words[0], " \t\n;&|<>()$`\"'*?{}~") ||
	    access(words[0], X_OK) == 0)
		return words;
	room[0] = sh;
	room[1] = c;
	room[2] = words[0];
	room[3] = NULL;
	return room;
}

static int make_request(const struct as_cmd_ctx *ctx, const struct as_baseline *baseline,
			struct as_repeat_request *q, cpu_set_t *cpus, struct as_error *err)
{
	static char *shells[2][4];
	const struct stat_args *a = ctx->args;
	char **other = baseline->now ? baseline->now : split_commands(ctx->operands);
	uint64_t runs = a->runs                              ? (uint64_t)a->runs
			: a->save && !(a->until_percent > 0) ? 10
							     : 0;
	bool many = runs > 1 || a->until_percent > 0 || other || a->warmup;

	if (other && (!*other || !ctx->operands[0]))
		return as_fail(err, AS_E_USAGE, 0, "--vs stands between two commands");
	q->run = (struct as_run_request){
		.argv = baseline->before ? baseline->before
					 : shell_if_needed(ctx->operands, shells[0]),
		.folder = ctx->program_folder,
		.input = a->input ? a->input
			 : many   ? "/dev/null"
				  : NULL,
		.output = a->output ? a->output
			  : many    ? "/dev/null"
				    : NULL,
	};
	if (q->run.output && strcmp(q->run.output, "-") == 0)
		q->run.output = NULL;
	if (a->cpus && parse_cpus(a->cpus, cpus, err) < 0)
		return AS_E_USAGE;
	q->run.cpus = a->cpus ? cpus : NULL;
	if (other) {
		q->other = q->run;
		q->other.argv = baseline->now ? other : shell_if_needed(other, shells[1]);
	}
	q->runs = runs ? runs : a->until_percent > 0 || other ? 0 : 1;
	q->until = a->until_percent / 100;
	q->delta = a->delta_percent / 100;
	q->budget_s = (double)a->budget_ns / 1e9;
	if (!a->budget_ns && (other || a->until_percent > 0))
		q->budget_s = other ? 20 : 60;
	return AS_OK;
}

static int exit_status(const struct as_repeat *r)
{
	const struct as_runs *runs = &r->side[0];
	int s = r->failed_run ? r->failed_status
		: runs->v.n   ? runs->v.v[runs->v.n - 1].wait_status
			      : 0;

	return WIFSIGNALED(s) ? 128 + WTERMSIG(s) : WEXITSTATUS(s);
}

/* Standard output is the program's where it is let through. */
static int output_fd(const struct as_stat_view *v)
{
	return v->pid || v->request->run.output ? STDOUT_FILENO : STDERR_FILENO;
}

static struct as_style style_of(const struct as_cmd_ctx *ctx, int fd)
{
	return (struct as_style){
		.width = as_term_width(fd),
		.color = as_term_color(fd, (enum as_color)ctx->common->color),
	};
}

static int print(const struct as_cmd_ctx *ctx, const struct as_stat_view *v,
		 struct as_error *err)
{
	const struct stat_args *a = ctx->args;
	int fd = output_fd(v);
	struct as_style style = style_of(ctx, fd);
	struct as_buf out = {0};
	int r;

	if (a->format == AS_STAT_JSON)
		as_stat_json(v, &out);
	else if (a->format == AS_STAT_CSV && !a->interval_ms)
		as_stat_csv(v, &out);
	else if (a->format == AS_STAT_TEXT)
		as_stat_text(v, &style, &out);
	r = fd == STDOUT_FILENO ? as_out_write(&out, err)
				: as_write_all(fd, out.p, out.len, err);
	as_buf_clear(&out);
	return r;
}

static int save(const struct as_cmd_ctx *ctx, const struct as_stat_view *v,
		struct as_error *err)
{
	const struct stat_args *a = ctx->args;
	AS_CLEANUP(as_buf_clear) struct as_buf result = {0};

	if (!a->save || v->repeat->failed_run || v->repeat->stopped)
		return AS_OK;
	as_stat_json(v, &result);
	return as_baseline_save(a->save, ctx->operands, &result, err);
}

static int measure(struct as_cmd_ctx *ctx, const struct as_stat_view *v,
		   struct as_repeat *repeat, struct as_error *err)
{
	struct sigaction sa = {.sa_handler = on_interrupt}; /* no SA_RESTART: waits end */
	int r;

	(void)sigaction(SIGINT, &sa, NULL);
	r = as_repeat(v->request, repeat, err);
	if (v->request->progress)
		(void)as_write_all(STDERR_FILENO, "\r\033[K", 4, NULL); /* progress only */
	if (r < 0 && err->status == AS_E_NOTFOUND)
		ctx->fail_exit = AS_EXIT_NO_PROGRAM;
	else if (r < 0 && err->status == AS_E_ACCESS)
		ctx->fail_exit = AS_EXIT_NOT_EXECUTABLE;
	return r;
}

/* Rows as they come, where there are to be any. */
static void make_printer(const struct as_cmd_ctx *ctx, const struct as_stat_view *v,
			 struct as_stat_printer *ret)
{
	const struct stat_args *a = ctx->args;
	struct as_style style = style_of(ctx, output_fd(v));

	as_stat_printer_init(ret, output_fd(v), (double)a->interval_ms / 1e3);
	as_stat_rows_init(&ret->table, v->plan, &style, (enum as_stat_format)a->format,
			  v->asked);
}

static int run_commands(struct as_cmd_ctx *ctx, struct as_repeat_request *q,
			struct as_stat_view *v, struct as_repeat *repeat, struct as_error *err)
{
	const struct stat_args *a = ctx->args;
	struct as_baseline baseline = {0};
	struct as_stat_printer printer;
	cpu_set_t cpus;
	int r = AS_OK;

	if (!ctx->noperands)
		return as_fail(err, AS_E_USAGE, 0, "stat needs a program, or -p PID");
	if (a->baseline)
		r = as_baseline_load(a->baseline, ctx->operands, &baseline, err);
	if (r == AS_OK)
		r = make_request(ctx, &baseline, q, &cpus, err);
	if (r == AS_OK && a->interval_ms && (q->runs != 1 || q->other.argv || q->warmup))
		r = as_fail(err, AS_E_USAGE, 0, "--interval is for one run");
	if (r == AS_OK) {
		v->baseline = baseline.text;
		v->baseline_note = baseline.note;
		q->run.plan = q->other.plan = v->plan;
		make_printer(ctx, v, &printer);
		q->run.rows = a->interval_ms ? &printer.rows : NULL;
		as_fitness_tell(q->run.argv[0], q->other.argv ? q->other.argv[0] : NULL,
				v->unoptimised);
		if (isatty(STDERR_FILENO) && q->run.output)
			q->progress = show_progress;
		r = measure(ctx, v, repeat, err);
	}
	if (r == AS_OK)
		r = as_stat_printer_end(&printer, err);
	if (r == AS_OK)
		r = print(ctx, v, err);
	if (r == AS_OK)
		r = save(ctx, v, err);
	if (r == AS_OK)
		r = exit_status(repeat);
	as_baseline_clear(&baseline);
	return r;
}

static int attach(struct as_cmd_ctx *ctx, struct as_stat_view *v, struct as_repeat *repeat,
		  struct as_error *err)
{
	const struct stat_args *a = ctx->args;
	struct sigaction sa = {.sa_handler = on_interrupt};
	struct as_stat_attach q = {.pid = (pid_t)a->pid,
				   .duration_s = (double)a->duration_ns / 1e9,
				   .interrupted = &interrupted};
	AS_CLEANUP(as_free_autop) char *title = NULL;
	struct as_stat_printer printer;
	int r;

	if (ctx->noperands || a->runs || a->warmup || a->save || a->baseline || a->cpus ||
	    a->input || a->output || a->setup || a->prepare || a->until_percent > 0)
		return as_fail(err, AS_E_USAGE, 0,
			       "with --pid nothing is run: only --events, --interval and "
			       "--duration go with it");
	v->pid = q.pid;
	make_printer(ctx, v, &printer);
	(void)sigaction(SIGINT, &sa, NULL);
	(void)sigaction(SIGTERM, &sa, NULL);
	r = as_stat_attach(&q, &printer, repeat, &title, err);
	v->title = title;
	if (r == AS_OK)
		r = as_stat_printer_end(&printer, err);
	return r == AS_OK ? print(ctx, v, err) : r;
}

static int stat_run(struct as_cmd_ctx *ctx, struct as_error *err)
{
	const struct stat_args *a = ctx->args;
	struct as_repeat_request q = {.setup = a->setup,
				      .prepare = a->prepare,
				      .warmup = (uint64_t)a->warmup,
				      .ignore_failure = a->ignore_failure,
				      .interrupted = &interrupted};
	struct as_repeat repeat = {0};
	struct as_plan plan;
	struct as_stat_view view = {.request = &q,
				    .repeat = &repeat,
				    .plan = &plan,
				    .asked = a->events,
				    .one_line = a->interval_ms,
				    .all = a->all};
	int r;

	if (a->duration_ns && !a->pid)
		return as_fail(err, AS_E_USAGE, 0, "--duration goes with --pid");
	r = as_plan_make(a->events, "", &plan, err);
	if (r < 0)
		return r;
	if (a->pid || a->interval_ms)
		as_plan_add_clock(&plan);
	r = as_plan_probe(&plan, err);
	if (r == AS_OK)
		r = a->pid ? attach(ctx, &view, &repeat, err)
			   : run_commands(ctx, &q, &view, &repeat, err);
	as_repeat_clear(&repeat);
	as_plan_clear(&plan);
	return r;
}

const struct as_cmd as_cmd_stat = {
	.name = "stat",
	.group = "Measure",
	.summary = "what runs of a command cost, how sure that is, and whether two differ",
	.usage = "[options] [--] PROGRAM [ARGS…]\n[options] [--] PROGRAM [ARGS…] --vs PROGRAM "
		 "[ARGS…]\n[options] -p PID",
	.options = stat_options,
	.examples = {{"assay stat -r 20 -- ./app args", "twenty runs: means with intervals"},
		     {"assay stat --until 1 -- ./app", "until the wall time is known to ± 1 %"},
		     {"assay stat -- ./old x --vs ./new x", "is the second one faster"}},
	.operand = "a program",
	.max_operands = -1,
	.flags = AS_CMD_RUNS_PROGRAM,
	.args_size = sizeof(struct stat_args),
	.run = stat_run,
};
