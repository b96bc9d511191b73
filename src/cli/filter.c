/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What report, flame and export share: the session, the filters, the output. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "cli/cmds_priv.h"

static bool has_suffix(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n > m && strcmp(s + n - m, suffix) == 0;
}

static int no_session(const char *partial, struct as_error *err)
{
	if (*partial)
		return as_fail(err, AS_E_NOTFOUND, 0,
			       "no session (*.assay) in this folder, but the unfinished '%s'\n"
			       "assay report %s",
			       partial, partial);
	return as_fail(err, AS_E_NOTFOUND, 0,
		       "no session (*.assay) in this folder\n"
		       "make one:   assay record -- ./app\n"
		       "or name it: assay report path/to/app.assay");
}

int as_find_session(const char *operand, char **ret, struct as_error *err)
{
	if (operand) {
		*ret = as_xstrdup(operand);
		return 0;
	}

	DIR *dir = opendir(".");
	struct timespec newest = {0};
	struct dirent *e;
	char *best = NULL, partial[256] = "";

	if (!dir)
		return as_fail(err, AS_E_IO, errno, "cannot read this folder: %s",
			       strerror(errno));
	while ((e = readdir(dir))) {
		struct stat st;

		if (has_suffix(e->d_name, ".assay.partial"))
			memccpy(partial, e->d_name, 0, sizeof partial - 1);
		if (!has_suffix(e->d_name, ".assay") ||
		    fstatat(dirfd(dir), e->d_name, &st, 0) < 0 || !S_ISREG(st.st_mode))
			continue;
		if (best && (st.st_mtim.tv_sec < newest.tv_sec ||
			     (st.st_mtim.tv_sec == newest.tv_sec &&
			      st.st_mtim.tv_nsec <= newest.tv_nsec)))
			continue;
		newest = st.st_mtim;
		free(best);
		best = as_xstrdup(e->d_name);
	}
	closedir(dir);
	if (!best)
		return no_session(partial, err);
	*ret = best;
	return 0;
}

int as_filter_load(const struct as_cmd_ctx *ctx, struct as_model **ret, struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *path = NULL;
	int r = as_find_session(ctx->noperands ? ctx->operands[0] : NULL, &path, err);

	return r < 0 ? r : as_model_load(path, ret, err);
}

void as_filter_grown(const struct as_filter_args *f, struct as_model *m)
{
	if (f->grown)
		as_model_grown_first(m);
}

int as_filter_measure(const struct as_filter_args *f, struct as_model *m, struct as_error *err)
{
	enum as_measure measure = (enum as_measure)f->measure;

	if (measure == AS_MEASURE_TIME && !m->time.is)
		measure = AS_MEASURE_PEAK;
	as_filter_grown(f, m);
	return as_model_measure(m, measure, !f->no_fold, err);
}

int as_filter_marks(const char *range, char **ret_from, const char **ret_to,
		    struct as_error *err)
{
	const char *dots = strstr(range, "..");

	if (!dots)
		return as_fail(err, AS_E_USAGE, 0,
			       "--marks '%s' is no range: FROM..TO, FROM.. or ..TO", range);
	*ret_from = as_xstrndup(range, (size_t)(dots - range));
	*ret_to = dots + 2;
	return AS_OK;
}

void as_filter_apply(const struct as_filter_args *f, struct as_query *q)
{
	q->focus = f->focus;
	q->ignore = f->ignore;
	q->hide = f->hide;
	q->thread = f->thread;
	q->module = f->module;
	q->from_ns = f->time_ns[0];
	q->to_ns = f->time_ns[1];
	q->no_inline = f->no_inline;
	q->no_kernel = f->no_kernel;
}

char *as_filter_output(const char *session, const char *end)
{
	const char *slash = strrchr(session, '/');
	const char *base = slash && slash[1] ? slash + 1 : session;
	const char *dot = strstr(base, ".assay");
	size_t n = dot && dot > base ? (size_t)(dot - base) : strlen(base);

	return as_xasprintf("%.*s%s", (int)n, base, end);
}

int as_filter_write(const char *path, const struct as_buf *b, struct as_error *err)
{
	struct stat st;

	if (!path || strcmp(path, "-") == 0)
		return as_out_write(b, err);
	if (lstat(path, &st) < 0 || S_ISREG(st.st_mode))
		return as_write_file_atomic(path, b->p ? b->p : "", b->len, err);

	/* A device or pipe is written to, a link followed: renaming would replace it. */
	AS_CLEANUP(as_close_autop)
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (fd < 0)
		return as_fail(err, AS_E_IO, errno, "cannot write '%s': %s", path,
			       strerror(errno));
	if (b->len && as_write_all(fd, b->p, b->len, err) < 0)
		return as_wrap(err, "cannot write '%s'", path);
	return 0;
}
