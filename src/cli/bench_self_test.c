/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* assay bench --self-test: what verdicts of this machine are worth. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/mem.h"
#include "base/sys.h"
#include "bench/self_test.h"
#include "cli/bench_priv.h"
#include "cli/commands.h"
#include "harness/protocol.h"

#define INTERRUPTED 130

static volatile int interrupted;

static void on_interrupt(int sig)
{
	interrupted++;
}

static void show_progress(void *ctx, uint64_t done, uint64_t of)
{
	AS_CLEANUP(as_buf_clear) struct as_buf line = {0};

	as_buf_addf(&line, "\r\033[K%llu of %llu comparisons", (unsigned long long)done,
		    (unsigned long long)of);
	(void)as_write_all(STDERR_FILENO, line.p, line.len, NULL); /* progress only */
}

static int print(const struct as_bench_args *a, const struct as_self_test *t,
		 struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf out = {0};

	if (a->format == AS_BENCH_JSON)
		as_self_test_json(t, &out);
	else
		as_self_test_text(t, &out);
	return as_out_write(&out, err);
}

static int test(const struct as_bench_args *a, const char *folder, struct as_error *err)
{
	struct sigaction sa = {.sa_handler = on_interrupt};
	struct as_self_test_request q = {.count = (uint64_t)a->project.count,
					 .loaded = a->project.loaded,
					 .folder = folder,
					 .interrupted = &interrupted,
					 .progress =
						 isatty(STDERR_FILENO) ? show_progress : NULL};
	struct as_self_test t;
	int r;

	(void)sigaction(SIGINT, &sa, NULL);
	(void)sigaction(SIGTERM, &sa, NULL);
	r = as_self_test_run(&q, &t, err);
	if (q.progress)
		(void)as_write_all(STDERR_FILENO, "\r\033[K", 4, NULL); /* progress only */
	if (r == AS_OK && t.kind[0].n)
		r = print(a, &t, err);
	if (r < 0)
		return r;
	return t.interrupted ? INTERRUPTED : t.passed ? AS_EXIT_FINE : AS_EXIT_ERROR;
}

int as_bench_self_test(struct as_cmd_ctx *ctx, struct as_error *err)
{
	const char *tmp = getenv("TMPDIR");
	AS_CLEANUP(as_free_autop)
	char *folder = as_xasprintf("%s/assay-bench-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	int r, n = 0;

	if (getenv(AS_BENCH_ENV)) { /* asked by itself, as a bench program */
		while (ctx->words[n])
			n++;
		return as_self_test_worker(n, ctx->words);
	}
	if (ctx->noperands)
		return as_fail(err, AS_E_USAGE, 0, "--self-test takes no command: not '%s'",
			       ctx->operands[0]);
	if (!mkdtemp(folder))
		return as_fail(err, AS_E_IO, errno, "cannot make the folder '%s': %s", folder,
			       strerror(errno));
	r = test(ctx->args, folder, err);
	as_folder_remove(folder);
	return r;
}
