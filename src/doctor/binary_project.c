/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A program and its Cargo project: see as_doctor_binary and as_doctor_project. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "doctor/binary_file.h"
#include "doctor/binary_find.h"
#include "doctor/profiles.h"

#define MANIFEST_MAX (4u << 20)

static bool debug_is_off(const char *v, bool dev)
{
	return *v ? strcmp(v, "0") == 0 || strcmp(v, "false") == 0 || strcmp(v, "none") == 0
		  : !dev;
}

static bool strips(const char *v, bool debug_off)
{
	if (!*v)
		return debug_off; /* cargo strips where no debug information is asked for */
	return strcmp(v, "false") != 0 && strcmp(v, "none") != 0;
}

/* What the profile lacks, and why that is said: "debug is not set, strip = true". */
static void lines_lacking(const struct as_cargo_profile *p, bool dev, struct as_buf *lines,
			  struct as_buf *what)
{
	bool debug_off = debug_is_off(p->debug, dev);

	if (debug_off) {
		as_buf_adds(lines, "debug = 1\n");
		as_buf_addf(what, "debug%s%s", *p->debug ? " = " : " is not set",
			    *p->debug ? p->debug : "");
	}
	if (*p->strip && strips(p->strip, debug_off)) {
		as_buf_adds(lines, "strip = false\n");
		as_buf_addf(what, "%sstrip = %s", what->len ? ", " : "", p->strip);
	}
	if (!dev && (strcmp(p->opt_level, "0") == 0 || strcmp(p->opt_level, "1") == 0)) {
		as_buf_adds(lines, "opt-level = 3\n");
		as_buf_addf(what, "%sopt-level = %s", what->len ? ", " : "", p->opt_level);
	}
	if (!dev && strcmp(p->debug_assertions, "true") == 0) {
		as_buf_adds(lines, "debug-assertions = false\n");
		as_buf_addf(what, "%sdebug-assertions = true", what->len ? ", " : "");
	}
	if (lines->len)
		lines->p[--lines->len] = 0; /* the last newline */
}

static bool is_dev(const char *name)
{
	return strcmp(name, "dev") == 0 || strcmp(name, "test") == 0;
}

static void advise(struct as_findings *out, const char *manifest, const char *name,
		   const struct as_cargo_profile *p)
{
	AS_CLEANUP(as_buf_clear) struct as_buf lines = {0}, what = {0};
	struct as_finding *x;

	lines_lacking(p, is_dev(name), &lines, &what);
	if (!lines.len) {
		as_findings_add(out, AS_AREA_BINARY, "cargo-profile", AS_SEVERITY_OK,
				"profile %s keeps lines and names", name);
		return;
	}
	x = as_findings_add(out, AS_AREA_BINARY, "cargo-profile", AS_SEVERITY_INFO,
			    "profile %s: %s", name, what.p);
	as_finding_why(x,
		       "builds of this profile show no source lines or inlined functions, or "
		       "measure another program; assay cargo sets debug and strip itself");
	as_finding_fix(x, "%s:\n[profile.%s]\n%s", manifest, name, lines.p);
	x->full = true;
}

char *as_project_lines(const char *manifest, const char *name)
{
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0}, lines = {0}, what = {0};
	struct as_cargo_profile p;

	if (as_read_file(manifest, MANIFEST_MAX, &text, NULL) < 0)
		return NULL;
	as_cargo_profile_read(as_buf_str(&text), text.len, name, &p);
	lines_lacking(&p, is_dev(name), &lines, &what);
	return lines.len ? as_buf_detach(&lines) : NULL;
}

void as_project_findings(const char *manifest, const char *name, struct as_findings *out)
{
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};
	struct as_cargo_profile p;

	if (as_read_file(manifest, MANIFEST_MAX, &text, NULL) < 0)
		return; /* no advice about what cannot be read */
	as_cargo_profile_read(as_buf_str(&text), text.len, name, &p);
	advise(out, manifest, name, &p);
}

void as_doctor_project(const char *folder, struct as_findings *out)
{
	AS_CLEANUP(as_free_autop) char *manifest = as_manifest_find(folder);

	if (manifest)
		as_project_findings(manifest, "release", out);
}

static void script(const struct as_file_look *look, struct as_findings *out)
{
	bool by_env = !strstr(look->interpreter, look->reader) ||
		      strncmp(look->interpreter, look->reader, strlen(look->reader)) != 0;
	struct as_finding *x =
		as_findings_add(out, AS_AREA_BINARY, "script", AS_SEVERITY_INFO,
				by_env ? "a script, run by %s (%s)" : "a script, run by %s",
				look->reader, look->interpreter);

	as_finding_why(x, "its lines are not seen: what is measured is the interpreter's own "
			  "code, and what it starts");
	as_finding_fix(x, "assay doctor %s   (the program that runs it)", look->reader);
	x->full = true;
}

static int no_program(const char *path, const struct as_file_look *look, struct as_error *err)
{
	return as_fail(err, AS_E_FORMAT, 0, "cannot look into '%s': it is %s", path,
		       look->what);
}

static void cut_short(const struct as_file_look *look, struct as_findings *out)
{
	AS_CLEANUP(as_buf_clear) struct as_buf there = {0}, all = {0};
	struct as_finding *x;

	as_fmt_bytes(&there, look->size_bytes);
	as_fmt_bytes(&all, look->size_bytes + look->missing_bytes);
	x = as_findings_add(out, AS_AREA_BINARY, "truncated", AS_SEVERITY_BAD,
			    "the file is cut short: %s of at least %s are there", there.p,
			    all.p);
	as_finding_why(x, "it cannot be run; nothing else is said of it");
	as_finding_fix(x, "copy or build it again");
}

static void foreign(const struct as_file_look *look, struct as_findings *out)
{
	struct as_finding *x = as_findings_add(out, AS_AREA_BINARY, "machine", AS_SEVERITY_WARN,
					       "a program for %s", look->machine);

	as_finding_why(x, "it does not run here but under an emulator, whose times say nothing "
			  "of that machine's");
	as_finding_fix(x, "measure it where it belongs, or build it for this machine");
}

static void shorten(struct as_findings *out, const char *id)
{
	as_vec_foreach (it, &out->all) {
		if (strcmp(it->id, id) == 0)
			it->full = false;
	}
}

int as_doctor_binary(const struct as_doctor *d, const char *path, struct as_findings *out,
		     struct as_error *err)
{
	struct as_binary_facts facts;
	char profile[64] = "release";
	AS_CLEANUP(as_free_autop) char *manifest = NULL;
	struct as_file_look look;
	int r = as_file_look(path, &look, err);

	(void)d;
	if (r < 0)
		return r;
	if (look.kind == AS_FILE_OTHER)
		return no_program(path, &look, err);
	if (look.kind == AS_FILE_SCRIPT || look.missing_bytes) {
		if (look.kind == AS_FILE_SCRIPT)
			script(&look, out);
		else
			cut_short(&look, out);
		return AS_OK;
	}
	r = as_binary_facts_read(path, &facts, err);
	if (r < 0)
		return r;
	if (look.machine)
		foreign(&look, out);
	manifest = as_manifest_of_program(path, profile, sizeof profile);
	as_binary_findings(&(struct as_case){&facts, profile, manifest, out});
	if (manifest) {
		as_project_findings(manifest, profile, out);
		/* the lines stand with what they mend */
		if (facts.debug == AS_DEBUG_NONE || facts.optimised == AS_OPTIMISED_NO)
			shorten(out, "cargo-profile");
	}
	as_binary_facts_clear(&facts);
	return AS_OK;
}
