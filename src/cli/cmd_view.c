/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* assay view: a session as a page for the browser, in a file or served. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "cli/cmds_priv.h"
#include "view/page/page.h"
#include "view/page/serve.h"

struct view_args {
	struct as_filter_args filter;
	const char *output, *diff, *marks;
	int64_t port;
	bool no_open, no_source, serve;
};

static const struct as_option view_options[] = {
	{.name = "output",
	 .letter = 'o',
	 .type = AS_OPT_TEXT,
	 .at = offsetof(struct view_args, output),
	 .arg = "FILE",
	 .def_text = "the session's name with .html",
	 .group = "Output",
	 .help = "where to; - is standard output"},
	{.name = "no-open",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct view_args, no_open),
	 .group = "Output",
	 .help = "do not open it in the browser"},
	{.name = "no-source",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct view_args, no_source),
	 .group = "Output",
	 .help = "without source and assembly: for pages that leave the house"},
	{.name = "serve",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct view_args, serve),
	 .group = "Output",
	 .help = "no file: show it from 127.0.0.1 until Ctrl-C, with the source and assembly "
		 "of every function"},
	{.name = "port",
	 .type = AS_OPT_INT,
	 .at = offsetof(struct view_args, port),
	 .arg = "PORT",
	 .max = 65535,
	 .def_text = "a free one",
	 .group = "Output",
	 .help = "with --serve: where"},
	{.name = "diff",
	 .type = AS_OPT_TEXT,
	 .at = offsetof(struct view_args, diff),
	 .arg = "BASE",
	 .group = "What is looked at",
	 .help = "compare with this session: what became slower or faster since"},
	{.name = "marks",
	 .type = AS_OPT_TEXT,
	 .at = offsetof(struct view_args, marks),
	 .arg = "FROM..TO",
	 .group = "What is looked at",
	 .help = "a session of memory: begin with what is live at mark TO and was not at FROM; "
		 "without a name its start, or its end. NAME#2: the second mark of that name"},
	AS_FILTER_STACKS(struct view_args),
	AS_FILTER_REST(struct view_args),
	AS_FILTER_MEASURE(struct view_args),
	{0},
};

/* file:///home/u/a%20b.html */
static void add_file_url(struct as_buf *out, const char *path)
{
	AS_CLEANUP(as_free_autop) char *whole = realpath(path, NULL);

	as_buf_adds(out, "file://");
	for (const char *p = whole ? whole : path; *p; p++) {
		if ((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
		    (*p >= '0' && *p <= '9') || strchr("/-._~+,@", *p))
			as_buf_addc(out, *p);
		else
			as_buf_addf(out, "%%%02X", (unsigned char)*p);
	}
}

/* On stderr: what was written, and where it is shown or how to get it shown. */
static void tell(const char *path, size_t bytes, bool open)
{
	struct as_buf b = {0}, url = {0};
	enum as_browser shown = AS_BROWSER_NO_DISPLAY;

	add_file_url(&url, path);
	if (open)
		shown = as_browser_open(url.p);
	as_fmt_quoted(&b, path, strlen(path));
	as_buf_adds(&b, " (");
	as_fmt_bytes(&b, bytes);
	as_buf_adds(&b, shown == AS_BROWSER_OPENED ? "): opening it in the browser\n" : ")\n");
	if (shown != AS_BROWSER_OPENED)
		as_buf_addf(&b, "open it in a browser: %s\n", url.p);
	(void)as_write_all(STDERR_FILENO, b.p, b.len, NULL); /* nowhere left to tell */
	as_buf_clear(&b);
	as_buf_clear(&url);
}

static int write_page(const struct view_args *a, const struct as_page_request *q,
		      const char *path, struct as_error *err)
{
	struct as_buf out = {0};
	int r = as_page_make(q, &out, err);

	if (r == 0)
		r = as_filter_write(path, &out, err);
	if (r == 0 && strcmp(path, "-") != 0)
		tell(path, out.len, !a->no_open);
	as_buf_clear(&out);
	return r;
}

/* Until Ctrl-C, or what else asks programs to end. */
static int serve_page(const struct view_args *a, struct as_page_request *q,
		      struct as_error *err)
{
	struct as_buf page = {0}, said = {0};
	struct as_server *s = NULL;
	sigset_t ends;
	int r, signal;

	q->served = true;
	r = as_page_make(q, &page, err);
	/* Blocked before the server's thread begins, which inherits that. */
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &ends, NULL); /* cannot fail so */
	if (r == 0)
		r = as_server_start(&(struct as_serve_request){.model = q->model,
							       .page = page.p,
							       .page_bytes = page.len,
							       .port = (uint16_t)a->port,
							       .no_listing = q->no_listing,
							       .cache_dir = q->cache_dir},
				    &s, err);
	if (r == 0) {
		bool shown =
			!a->no_open && as_browser_open(as_server_url(s)) == AS_BROWSER_OPENED;

		as_buf_addf(&said, "%s%s\nCtrl-C ends it\n",
			    shown ? "opening in the browser: " : "open in a browser: ",
			    as_server_url(s));
		(void)as_write_all(STDERR_FILENO, said.p, said.len, NULL); /* seen or not */
		while (sigwait(&ends, &signal) != 0)
			;
	}
	as_server_stop(s);
	as_buf_clear(&said);
	as_buf_clear(&page);
	return r;
}

static int check(const struct view_args *a, struct as_error *err)
{
	if (a->serve && a->output)
		return as_fail(err, AS_E_USAGE, 0,
			       "--serve writes no file; leave out either it or --output");
	if (a->port && !a->serve)
		return as_fail(err, AS_E_USAGE, 0, "--port belongs to --serve");
	return 0;
}

static int check_base(const struct as_model *m, const struct as_model *base,
		      struct as_error *err)
{
	if (as_model_is_counted(m) == as_model_is_counted(base))
		return AS_OK;
	return as_fail(err, AS_E_USAGE, 0,
		       "'%s' and '%s': one is a session of time, the other of memory",
		       base->path, m->path);
}

/* The marks that the page begins with; from is the caller's. */
static int set_marks(const struct view_args *a, struct as_page_request *q, char **ret_from,
		     struct as_error *err)
{
	if (!q->model->heap.is)
		return as_fail(err, AS_E_USAGE, 0, "--marks is for sessions of memory");
	if (a->filter.measure)
		return as_fail(err, AS_E_USAGE, 0, "--marks tells what is live");
	if (a->diff)
		return as_fail(err, AS_E_USAGE, 0, "--marks takes one session");
	q->since = "";
	return as_filter_marks(a->marks, ret_from, &q->at, err);
}

/* The session that is looked at, and the one it is compared with, in the same measure. */
static int load_sessions(const struct view_args *a, const char *path, struct as_model *ret[2],
			 struct as_error *err)
{
	int r = as_model_load(path, &ret[0], err);

	if (r == 0 && a->diff)
		r = as_model_load(a->diff, &ret[1], err);
	for (int i = 0; r == 0 && i < 2 && ret[i]; i++)
		r = as_filter_measure(&a->filter, ret[i], err);
	/* A session of both is looked at as one of memory. */
	if (r == 0 && a->marks && ret[0]->heap.is)
		r = as_model_measure(ret[0], AS_MEASURE_PEAK, !a->filter.no_fold, err);
	if (r == 0 && ret[1])
		r = check_base(ret[0], ret[1], err);
	return r;
}

static int view_run(struct as_cmd_ctx *ctx, struct as_error *err)
{
	const struct view_args *a = ctx->args;
	AS_CLEANUP(as_free_autop) char *path = NULL, *named = NULL, *cache = as_cache_dir();
	AS_CLEANUP(as_free_autop) char *since = NULL;
	struct as_model *m[2] = {NULL, NULL};
	const char *operand = ctx->noperands ? ctx->operands[0] : NULL;
	int r = check(a, err);

	if (r == 0)
		r = as_find_session(operand, &path, err);
	if (r == 0)
		r = load_sessions(a, path, m, err);
	if (r == 0) {
		struct as_page_request q = {.model = m[0],
					    .base = m[1],
					    .file = operand,
					    .plumbing = as_model_is_counted(m[0]) &&
							a->filter.no_fold,
					    .no_listing = a->no_source,
					    .cache_dir = cache};

		if (a->marks)
			r = set_marks(a, &q, &since, err);
		if (since)
			q.since = since;
		as_filter_apply(&a->filter, &q.query);
		named = a->output ? as_xstrdup(a->output) : as_filter_output(path, ".html");
		if (r == 0)
			r = a->serve ? serve_page(a, &q, err) : write_page(a, &q, named, err);
	}
	as_model_free(m[1]);
	as_model_free(m[0]);
	return r;
}

const struct as_cmd as_cmd_view = {
	.name = "view",
	.group = "Look",
	.summary = "show a session in the browser: one HTML file with everything in it",
	.usage = "[options] [FILE]",
	.options = view_options,
	.examples = {{"assay view", "the newest session, into its name with .html"},
		     {"assay view --no-open -o /tmp/app.html app.assay",
		      "write it, for another machine"},
		     {"assay view --diff before.assay after.assay", "what a change did"}},
	.operand = "a session",
	.max_operands = 1,
	.args_size = sizeof(struct view_args),
	.run = view_run,
};
