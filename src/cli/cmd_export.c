/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* assay export: a session for other programs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "cli/cmds_priv.h"
#include "exchange/exchange.h"

struct export_args {
	struct as_filter_args filter;
	int to; /* 0: not said; else index into as_exporters, plus 1 */
	const char *output;
	bool by_thread, full_names;
};

#define CHOICE(name, suffix, readable, kinds, summary) "|" #name
#define HELP(name, suffix, readable, kinds, summary)   "\n" #name ": " summary

static const struct as_option export_options[] = {
	{.name = "to",
	 .type = AS_OPT_CHOICE,
	 .at = offsetof(struct export_args, to),
	 .arg = "FORMAT",
	 .choices = "auto" AS_EXPORTERS(CHOICE),
	 .def = "auto",
	 .group = "Output",
	 .help = "auto: by the ending of -o, else folded" AS_EXPORTERS(HELP)},
	{.name = "output",
	 .letter = 'o',
	 .type = AS_OPT_TEXT,
	 .at = offsetof(struct export_args, output),
	 .arg = "FILE",
	 .def_text = "standard output; where that is a terminal, the session's name with the "
		     "format's ending, but for folded",
	 .group = "Output",
	 .help = "where to, packed with gzip when it ends in .gz; - is standard output"},
	{.name = "by-thread",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct export_args, by_thread),
	 .group = "Output",
	 .help = "keep threads apart where the format leaves the choice: folded puts the "
		 "thread's name before each stack"},
	{.name = "full-names",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct export_args, full_names),
	 .group = "Output",
	 .help = "names with all their type parameters"},
	AS_FILTER_OPTIONS(struct export_args),
	AS_FILTER_MEASURE(struct export_args),
	{0},
};

enum { EXIT_SIGPIPE = 141 };

static const struct as_exporter *format_of(const struct export_args *a)
{
	const struct as_exporter *e = NULL;

	if (a->to > 0)
		return &as_exporters[a->to - 1];
	if (a->output)
		e = as_exporter_of_path(a->output);
	return e ? e : &as_exporters[0];
}

/* dir/app.assay -> app.SUFFIX, in the current folder. Caller frees. */
static char *default_output(const char *session, const struct as_exporter *e)
{
	const char *slash = strrchr(session, '/'), *base = slash ? slash + 1 : session;
	size_t n = strlen(base);

	if (strcmp(session, "-") == 0 || n == 0)
		return as_xasprintf("assay%s", e->suffix);
	if (n > 6 && strcmp(base + n - 6, ".assay") == 0)
		n -= 6;
	return as_xasprintf("%.*s%s", (int)n, base, e->suffix);
}

static void tell(const char *path, const struct as_exporter *e, uint64_t bytes)
{
	struct as_buf b = {0};

	as_fmt_quoted(&b, path, strlen(path));
	as_buf_addf(&b, " (%s, ", e->name);
	as_fmt_bytes(&b, bytes);
	as_buf_adds(&b, ")\n");
	(void)as_write_all(STDERR_FILENO, b.p, b.len, NULL); /* nowhere left to tell */
	as_buf_clear(&b);
}

static int write_to(const char *path, const struct as_exporter *e, const struct as_model *m,
		    const struct as_export_options *o, struct as_error *err)
{
	struct as_sink out;
	int r = as_sink_open(&out, path, err);

	if (r < 0)
		return r;
	if (path && as_exporter_packs(e, path))
		as_sink_gzip(&out);
	r = e->write(m, o, &out, err);
	if (r == 0)
		r = as_sink_finish(&out, err);
	/* what reads us has gone: as if SIGPIPE had ended us */
	if (out.failed.sys_errno == EPIPE)
		r = EXIT_SIGPIPE;
	if (r == 0 && path && strcmp(path, "-") != 0)
		tell(path, e, out.bytes);
	as_sink_clear(&out);
	return r;
}

/* The formats that carry the other kind of session. */
static void add_formats(enum as_export_kind kind, struct as_buf *out)
{
	for (size_t i = 0; i < as_nexporters; i++) {
		if (as_exporters[i].kinds & kind)
			as_buf_addf(out, "%s%s", out->len ? ", " : "", as_exporters[i].name);
	}
}

static int check_kind(const struct as_exporter *e, const struct as_model *m,
		      struct as_error *err)
{
	enum as_export_kind kind = as_model_is_counted(m) ? AS_EXPORT_MEMORY : AS_EXPORT_TIME;
	AS_CLEANUP(as_buf_clear) struct as_buf formats = {0};

	if (e->kinds & kind || (e->kinds == AS_EXPORT_EVENTS && m->heap.is))
		return AS_OK; /* the format itself tells where there are none */
	add_formats(kind, &formats);
	return as_fail(err, AS_E_UNSUPPORTED, 0,
		       "'%s' is a session of %s, which the format %s cannot carry"
		       "\n  those that can: assay export --to %s",
		       m->path, as_model_is_counted(m) ? "memory" : "time", e->name,
		       as_buf_str(&formats));
}

static int export_run(struct as_cmd_ctx *ctx, struct as_error *err)
{
	const struct export_args *a = ctx->args;
	const struct as_exporter *e = format_of(a);
	struct as_query query = {0};
	struct as_export_options options = {
		.query = &query, .by_thread = a->by_thread, .full_names = a->full_names};
	AS_CLEANUP(as_free_autop) char *session = NULL, *made = NULL;
	struct as_model *m = NULL;
	int r = as_find_session(ctx->noperands ? ctx->operands[0] : NULL, &session, err);

	if (r == 0)
		r = as_model_load(session, &m, err);
	if (r == 0)
		r = as_filter_measure(&a->filter, m, err);
	if (r == 0)
		r = check_kind(e, m, err);
	if (r < 0) {
		as_model_free(m);
		return r;
	}
	as_filter_apply(&a->filter, &query);
	if (!a->output && !e->readable && isatty(STDOUT_FILENO))
		made = default_output(session, e);
	r = write_to(made ? made : a->output, e, m, &options, err);
	as_model_free(m);
	return r;
}

const struct as_cmd as_cmd_export = {
	.name = "export",
	.group = "Look",
	.summary = "write a session in a format that other programs read",
	.usage = "[options] [FILE]",
	.options = export_options,
	.examples = {{"assay export --to folded | inferno-flamegraph >app.svg",
		      "folded stacks to another program"},
		     {"assay export -o app.pb.gz app.assay", "pprof, by the ending"},
		     {"assay export --focus parse | sort -k2 -n",
		      "only the stacks through parse"}},
	.operand = "a session",
	.max_operands = 1,
	.args_size = sizeof(struct export_args),
	.run = export_run,
};
