/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cli/record_until.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "model/model.h"
#include "model/profile/until.h"

/* In a process of its own: memory is not given back. */
static int judge(void *ctx, const char *path, struct as_judgement *ret)
{
	const struct as_record_until *u = ctx;
	struct as_model *m = NULL;
	struct as_profile *p = NULL;
	struct as_until until;
	int r = as_model_load(path, &m, NULL);

	if (r >= 0)
		r = as_profile_make(m, &(struct as_query){0}, &p, NULL);
	if (r < 0)
		return r;
	as_profile_until(p, u->percent / 100, &until);
	*ret = (struct as_judgement){
		.enough = until.enough, .factor = until.factor, .worst = until.half_width};
	if (until.row)
		snprintf(ret->row, sizeof ret->row, "%s", until.row->name);
	return 0;
}

/* Once, at the first look: how long it will take. */
static void judged(void *ctx, const struct as_judgement *j, uint64_t elapsed_ns, uint64_t runs)
{
	struct as_record_until *u = ctx;
	struct as_buf b = {0};

	if (u->told || u->quiet || j->enough || !isfinite(j->factor))
		return;
	u->told = true;
	as_buf_addf(&b, "assay: all of 5 %% or more to ± %s %%: about ", u->text);
	as_fmt_duration(&b, (uint64_t)((double)elapsed_ns * j->factor));
	if (runs)
		as_buf_addf(&b, " (%.0f runs)", ceil((double)runs * j->factor));
	as_buf_adds(&b, " in all, ");
	as_fmt_duration(&b, u->limit_ns);
	as_buf_addf(&b, " at most; ± %.1f %% after ", j->worst * 100);
	as_fmt_duration(&b, elapsed_ns);
	as_buf_adds(&b, " (");
	as_fmt_quoted(&b, j->row, strlen(j->row));
	as_buf_adds(&b, ")\n");
	/* nowhere left to tell */
	(void)as_write_all(STDERR_FILENO, b.p, b.len, NULL);
	as_buf_clear(&b);
}

void as_record_until(struct as_record_until *u, struct as_recording_request *q)
{
	snprintf(u->text, sizeof u->text, "%g", u->percent);
	q->until = u->text;
	q->judge = judge;
	q->judged = judged;
	q->judge_ctx = u;
}
