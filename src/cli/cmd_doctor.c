/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * assay doctor: is the machine fit to measure on, what may this user do, is a program fit to be
 * looked at; settings changed for a measurement and put back.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "cli/cmds_priv.h"
#include "doctor/doctor.h"
#include "doctor/fix.h"

struct doctor_args {
	int64_t pid;
	int format;
	bool strict, json, fix, restore, quick, all;
};

static const struct as_option doctor_options[] = {
	{.name = "pid",
	 .letter = 'p',
	 .type = AS_OPT_INT,
	 .at = offsetof(struct doctor_args, pid),
	 .arg = "PID",
	 .min = 1,
	 .max = 4194304,
	 .group = "What is looked at",
	 .help = "the program of a running process as well"},
	{.name = "quick",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct doctor_args, quick),
	 .group = "What is looked at",
	 .help = "no noise test: a quarter of a second instead of a whole one"},
	{.name = "fix",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct doctor_args, fix),
	 .group = "Settings of the machine",
	 .help = "change what can be changed back: governor, turbo, perf_event_paranoid, "
		 "kptr_restrict, nmi_watchdog; or what is named, aslr and numa_balancing too"},
	{.name = "restore",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct doctor_args, restore),
	 .group = "Settings of the machine",
	 .help = "put back what --fix found"},
	{.name = "strict",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct doctor_args, strict),
	 .group = "Output",
	 .help = "exit 3 when something would spoil a measurement (! and ✗)"},
	{.name = "all",
	 .letter = 'a',
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct doctor_args, all),
	 .group = "Output",
	 .help = "reasons and remedies of what is only to be known, too"},
	{.name = "json",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct doctor_args, json),
	 .group = "Output",
	 .help = "the same as --format json"},
	{.name = "format",
	 .type = AS_OPT_CHOICE,
	 .at = offsetof(struct doctor_args, format),
	 .arg = "FORMAT",
	 .choices = "text|json",
	 .def = "text",
	 .group = "Output",
	 .help = "text or json"},
	{0},
};

/* ---- --fix and --restore ---- */

struct names {
	AS_VEC(char *) v;
};

/* "governor,turbo aslr" */
static void split_names(const struct as_cmd_ctx *ctx, struct names *ret)
{
	for (int i = 0; i < ctx->noperands; i++) {
		for (const char *p = ctx->operands[i]; *p;) {
			size_t n = strcspn(p, ",");

			if (n)
				as_vec_push(&ret->v, as_xstrndup(p, n));
			p += n + (p[n] == ',');
		}
	}
}

static bool any_failed(const struct as_changes *c)
{
	as_vec_foreach (it, &c->all) {
		if (it->kind == AS_CHANGE_FAILED)
			return true;
	}
	return false;
}

static int change(const struct as_cmd_ctx *ctx, const struct as_doctor *d, struct as_error *err)
{
	const struct doctor_args *a = ctx->args;
	struct as_changes changes = {0};
	struct as_fix_env env;
	struct names names = {0};
	struct as_buf out = {0};
	int r, w;

	as_fix_env_init(d, &env);
	split_names(ctx, &names);
	r = a->fix ? as_fix_apply(&env, (const char *const *)names.v.v, names.v.n, &changes,
				  err)
		   : as_fix_restore(&env, &changes, err);
	/* what was done before a failure is said all the same */
	if (a->format || a->json)
		as_changes_json(&changes, &out);
	else
		as_changes_text(&changes, a->restore, &out);
	w = r < 0 && !changes.all.n ? 0 : as_out_write(&out, r < 0 ? NULL : err);
	if (r == 0 && w == 0 && any_failed(&changes)) {
		w = AS_EXIT_ERROR;
		if (d->uid != 0 && !a->json && !a->format)
			r = as_fail(err, AS_E_ACCESS, 0,
				    "not everything could be changed\n  sudo assay doctor %s",
				    a->fix ? "--fix" : "--restore");
	}
	as_buf_clear(&out);
	as_vec_foreach (it, &names.v)
		free(*it);
	as_vec_clear(&names.v);
	as_changes_clear(&changes);
	as_fix_env_clear(&env);
	return r < 0 ? r : w;
}

/* ---- the program ---- */

/* A file as it stands, else a program of PATH. Caller frees. */
static char *find_program(const struct as_cmd_ctx *ctx, const char *word)
{
	const char *path = getenv("PATH");

	if (ctx->program_folder && *word != '/') {
		AS_CLEANUP(as_free_autop)
		char *there = as_xasprintf("%s/%s", ctx->program_folder, word);

		if (access(there, F_OK) == 0)
			return as_xstrdup(there);
	}
	if (strchr(word, '/') || access(word, F_OK) == 0)
		return as_xstrdup(word);
	for (const char *p = path ? path : ""; *p;) {
		size_t n = strcspn(p, ":");
		AS_CLEANUP(as_free_autop)
		char *full = as_xasprintf("%.*s/%s", (int)n, p, word);

		if (n && access(full, X_OK) == 0)
			return as_xstrdup(full);
		p += n + (p[n] == ':');
	}
	return as_xstrdup(word);
}

static char *subject_of(const struct as_cmd_ctx *ctx)
{
	const struct doctor_args *a = ctx->args;

	if (a->pid)
		return as_xasprintf("/proc/%lld/exe", (long long)a->pid);
	return ctx->noperands ? find_program(ctx, ctx->operands[0]) : NULL;
}

/* ---- the findings ---- */

static int show(const struct as_cmd_ctx *ctx, const struct as_doctor *d, const char *subject,
		const struct as_findings *found, struct as_error *err)
{
	const struct doctor_args *a = ctx->args;
	struct as_doctor_style style = {
		.width = as_term_width(STDOUT_FILENO),
		.color = as_term_color(STDOUT_FILENO, (enum as_color)ctx->common->color),
		.all = a->all,
	};
	struct as_fix_env env;
	struct as_buf out = {0};
	int r;

	if (a->json || a->format) {
		as_findings_json(found, d->vitals, subject, &out);
	} else {
		as_findings_text(found, &style, &out);
		as_fix_env_init(d, &env);
		if (as_fix_pending(&env))
			as_buf_adds(&out, "settings are changed by --fix; put back with: assay "
					  "doctor --restore\n");
		else if (as_fix_pending_of_root(&env))
			as_buf_adds(&out,
				    "settings are changed by root's --fix; put back with: "
				    "sudo assay doctor --restore\n");
		as_fix_env_clear(&env);
	}
	r = as_out_write(&out, err);
	as_buf_clear(&out);
	return r;
}

static int look_at_program(const struct as_doctor *d, const char *path, int64_t pid,
			   struct as_findings *found, struct as_error *err)
{
	int r = as_doctor_binary(d, path, found, err);
	char folder[40];

	if (r == AS_OK || !pid)
		return r;
	(void)snprintf(folder, sizeof folder, "/proc/%lld", (long long)pid);
	if (r == AS_E_NOTFOUND)
		return as_fail(err, r, 0,
			       access(folder, F_OK) == 0
				       ? "process %lld is a thread of the kernel: it has no "
					 "program"
				       : "there is no process %lld",
			       (long long)pid);
	if (r == AS_E_ACCESS)
		return as_fail(err, r, 0,
			       "the program of process %lld is not for this user to read\n  "
			       "sudo assay doctor -p %lld",
			       (long long)pid, (long long)pid);
	return r;
}

static int examine(const struct as_cmd_ctx *ctx, struct as_doctor *d, struct as_error *err)
{
	const struct doctor_args *a = ctx->args;
	AS_CLEANUP(as_free_autop) char *subject = subject_of(ctx);
	struct as_findings found = {0};
	struct as_vitals vitals;
	bool spoilt;
	int r = 0;

	/* a program that cannot be read is known before a second is spent on the machine */
	if (subject)
		r = look_at_program(d, subject, a->pid, &found, err);
	else
		as_doctor_project(".", &found);
	if (r == 0) {
		as_vitals_measure(d, !a->quick, &vitals);
		d->vitals = &vitals;
		as_doctor_run(d, &found);
		r = show(ctx, d, subject, &found, err);
		d->vitals = NULL;
	}
	spoilt = as_findings_worst(&found) >= AS_SEVERITY_WARN;
	as_findings_clear(&found);
	return r < 0 ? r : a->strict && spoilt ? AS_EXIT_GATE : r;
}

static int doctor_run(struct as_cmd_ctx *ctx, struct as_error *err)
{
	const struct doctor_args *a = ctx->args;
	struct as_doctor d;

	if (a->fix && a->restore)
		return as_fail(err, AS_E_USAGE, 0, "--fix or --restore, not both");
	if (a->restore && ctx->noperands)
		return as_fail(err, AS_E_USAGE, 0,
			       "--restore puts all back and takes no names: '%s'",
			       ctx->operands[0]);
	if (a->pid && ctx->noperands && !a->fix)
		return as_fail(err, AS_E_USAGE, 0, "-p or a program, not both");
	as_doctor_init(&d);
	return a->fix || a->restore ? change(ctx, &d, err) : examine(ctx, &d, err);
}

const struct as_cmd as_cmd_doctor = {
	.name = "doctor",
	.group = "Measure",
	.summary = "is the machine quiet, is the program fit, what can be done here",
	.usage = "[options]\n[options] FILE | -p PID\n[options] -- PROGRAM [ARGS…]\n"
		 "--fix [NAME,…]\n--restore",
	.options = doctor_options,
	.examples = {{"assay doctor ./target/release/app", "before measuring a program"},
		     {"sudo assay doctor --fix",
		      "make the machine steadier; --restore undoes it"},
		     {"assay doctor --strict --json", "a gate for CI: exit 3"}},
	.operand = "a program",
	.min_operands = 0,
	.max_operands = -1,
	.args_size = sizeof(struct doctor_args),
	.run = doctor_run,
};
