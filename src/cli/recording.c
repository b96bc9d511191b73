/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cli/recording.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "model/memory/alloc_time.h"
#include "model/model.h"
#include "view/report/summary.h"

enum { PROGRESS_AFTER_MS = 1000, PROGRESS_EVERY_MS = 250 };

/* ---- signals ---- */

volatile int as_interrupts, as_interrupt_signal;

/* SI_KERNEL: from the terminal, which sends it to the program as well. The third one is not
 * caught: whatever takes long then, that ends assay. */
static void on_interrupt(int sig, siginfo_t *info, void *context)
{
	if (!as_interrupts)
		as_interrupt_signal = info->si_code == SI_KERNEL ? -sig : sig;
	if (++as_interrupts > 1)
		signal(sig, SIG_DFL);
}

static void on_pipe(int sig, siginfo_t *info, void *context)
{
}

static void catch_signal(int sig, void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction old,
		sa = {.sa_sigaction = handler, .sa_flags = SA_RESTART | SA_SIGINFO};

	if (sigaction(sig, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
		sigaction(sig, &sa, NULL);
}

void as_interrupts_catch(void)
{
	catch_signal(SIGINT, on_interrupt);
	catch_signal(SIGTERM, on_interrupt);
	catch_signal(SIGHUP, on_interrupt);
	catch_signal(SIGQUIT, on_interrupt);
	catch_signal(SIGPIPE, on_pipe);
}

/* ---- marks ---- */

volatile int as_marks;

static void on_mark(int signal)
{
	(void)signal;
	as_marks++; /* the only writer: no other signal interrupts it */
}

void as_marks_catch(void)
{
	struct sigaction sa = {.sa_handler = on_mark, .sa_flags = SA_RESTART};

	(void)sigaction(SIGUSR1, &sa, NULL); /* a signal that exists */
}

/* ---- progress ---- */

void as_progress_tell(struct as_progress *p, uint64_t elapsed_ns, uint64_t count,
		      const char *what)
{
	struct as_buf b = {0};

	if (elapsed_ns < (uint64_t)PROGRESS_AFTER_MS * 1000000 ||
	    (p->shown && elapsed_ns - p->last_ns < (uint64_t)PROGRESS_EVERY_MS * 1000000))
		return;
	p->last_ns = elapsed_ns;
	p->shown = true;
	as_buf_addf(&b, "\r\033[K%s: ", what ? what : "recording");
	as_fmt_duration(&b, elapsed_ns);
	if (p->duration_ns) {
		as_buf_adds(&b, " of ");
		as_fmt_duration(&b, p->duration_ns);
	}
	as_buf_adds(&b, ", ");
	as_fmt_count(&b, count);
	as_buf_addf(&b, " %s%s", p->unit, p->duration_ns ? "" : "; Ctrl-C ends and keeps it");
	(void)as_write_all(STDERR_FILENO, b.p, b.len, NULL); /* progress only */
	as_buf_clear(&b);
}

void as_progress_end(const struct as_progress *p)
{
	if (p->shown)
		(void)as_write_all(STDERR_FILENO, "\r\033[K", 4, NULL); /* progress only */
}

/* ---- names and statuses ---- */

static void add_process_name(struct as_buf *name, int64_t pid)
{
	AS_CLEANUP(as_free_autop)
	char *comm = as_xasprintf("/proc/%lld/comm", (long long)pid);

	/* a process that is gone fails later, by name */
	(void)as_read_file(comm, 64, name, NULL);
	if (name->len && name->p[name->len - 1] == '\n')
		name->p[--name->len] = 0;
	for (size_t i = 0; i < name->len; i++) {
		if (name->p[i] == '/' || (unsigned char)name->p[i] < ' ')
			name->p[i] = '-';
	}
}

char *as_recording_output(const struct as_cmd_ctx *ctx, int64_t pid, const char *end)
{
	struct as_buf name = {0};

	if (pid) {
		add_process_name(&name, pid);
	} else if (ctx->program_name) {
		as_buf_adds(&name, ctx->program_name);
	} else {
		const char *slash = strrchr(ctx->operands[0], '/');

		as_buf_adds(&name, slash && slash[1] ? slash + 1 : ctx->operands[0]);
	}
	if (!name.len || name.p[0] == '.' || name.p[0] == '-')
		as_buf_adds(&name, "program");
	as_buf_adds(&name, end);
	return as_buf_detach(&name);
}

int as_recording_failure(const struct as_recording_outcome *o)
{
	if (!o->exec_errno)
		return AS_EXIT_ASSAY_FAILED;
	return o->exec_errno == ENOENT ? AS_EXIT_NO_PROGRAM : AS_EXIT_NOT_EXECUTABLE;
}

int as_recording_status(const struct as_recording_outcome *o)
{
	if (!o->launched)
		return AS_EXIT_FINE;
	if (WIFSIGNALED(o->wait_status))
		return 128 + WTERMSIG(o->wait_status);
	return WIFEXITED(o->wait_status) ? WEXITSTATUS(o->wait_status) : AS_EXIT_FINE;
}

/* ---- after the run ---- */

void as_recording_summary(const struct as_cmd_ctx *ctx, const char *path)
{
	struct as_style style = {
		.width = as_term_width(STDERR_FILENO),
		.color = as_term_color(STDERR_FILENO, (enum as_color)ctx->common->color),
	};
	struct as_summary_request s = {.file = strchr(path, '/') ? path : NULL};
	struct as_alloc_time alloc_time = {0};
	struct as_model *m = NULL;
	struct as_error err = {0};
	struct as_buf out = {0};
	int r;

	if (strcmp(path, "-") == 0)
		return;
	r = as_model_load(path, &m, &err);
	if (r == 0 && m->heap.is && m->time.is) {
		r = as_alloc_time_make(m, &alloc_time, &err);
		s.alloc_time = &alloc_time;
	}
	s.model = m;
	if (r == 0) {
		as_buf_addc(&out, '\n');
		r = as_summary_text(&s, &style, &out, &err);
	}
	if (r == 0)
		/* nowhere left to tell */
		(void)as_write_all(STDERR_FILENO, out.p, out.len, NULL);
	else
		as_err_print(&err, (enum as_color)ctx->common->color);
	if (r == 0 && s.alloc_time)
		as_alloc_time_clear(&alloc_time);
	as_buf_clear(&out);
	as_model_free(m);
}
