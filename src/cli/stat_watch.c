/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* See stat_watch.h. */
#include "cli/stat_watch.h"

#include <unistd.h>

#include "base/sys.h"

static void print_row(void *ctx, const struct as_watch_row *row)
{
	struct as_stat_printer *p = ctx;
	struct as_buf out = {0};

	as_stat_rows_add(&p->table, row, &out);
	(void)as_write_all(p->fd, out.p, out.len, NULL); /* nobody reads: the end will tell */
	as_buf_clear(&out);
}

void as_stat_printer_init(struct as_stat_printer *p, int fd, double interval_s)
{
	*p = (struct as_stat_printer){.fd = fd};
	p->rows.interval_s = interval_s;
	p->rows.row = print_row;
	p->rows.ctx = p;
}

int as_stat_printer_end(const struct as_stat_printer *p, struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf out = {0};

	if (p->table.given == 0)
		return AS_OK;
	as_stat_rows_end(&p->table, &out);
	if (p->table.format == AS_STAT_TEXT)
		as_buf_addc(&out, '\n');
	return as_write_all(p->fd, out.p, out.len, err);
}

static char *title_of(pid_t pid)
{
	AS_CLEANUP(as_free_autop) char *path = as_xasprintf("/proc/%d/comm", (int)pid);
	AS_CLEANUP(as_buf_clear) struct as_buf name = {0};
	AS_CLEANUP(as_buf_clear) struct as_buf out = {0};

	(void)as_read_file(path, 64, &name, NULL); /* without a name, then */
	as_buf_addf(&out, "process %d", (int)pid);
	if (name.len > 1) {
		as_buf_adds(&out, " (");
		as_fmt_quoted(&out, name.p, name.len - 1);
		as_buf_adds(&out, ")");
	}
	return as_xstrdup(as_buf_str(&out));
}

int as_stat_attach(const struct as_stat_attach *a, struct as_stat_printer *p,
		   struct as_repeat *repeat, char **ret_title, struct as_error *err)
{
	struct as_attach_request q = {.pid = a->pid,
				      .plan = p->table.plan,
				      .rows = p->rows,
				      .duration_s = a->duration_s,
				      .interrupted = a->interrupted};
	AS_CLEANUP(as_free_autop) char *name = title_of(a->pid);
	struct as_run run;
	bool ended;
	int r = as_watch_attach(&q, &run, &ended, err);

	if (r < 0)
		return r;
	as_runs_push(&repeat->side[0], &run);
	*ret_title =
		as_xasprintf("%s and what it started%s", name, ended ? ", until it ended" : "");
	return AS_OK;
}
