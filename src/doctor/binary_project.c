/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A program and its Cargo project: see as_doctor_binary and as_doctor_project. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
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

static void advise(struct as_findings *out, const char *manifest, const char *name,
		   const struct as_cargo_profile *p)
{
	bool dev = strcmp(name, "dev") == 0 || strcmp(name, "test") == 0;
	bool debug_off = debug_is_off(p->debug, dev);
	AS_CLEANUP(as_buf_clear) struct as_buf lines = {0}, what = {0};
	struct as_finding *x;

	if (debug_off) {
		as_buf_adds(&lines, "debug = 1\n");
		as_buf_addf(&what, "debug%s%s", *p->debug ? " = " : " is not set",
			    *p->debug ? p->debug : "");
	}
	if (*p->strip && strips(p->strip, debug_off)) {
		as_buf_adds(&lines, "strip = false\n");
		as_buf_addf(&what, "%sstrip = %s", what.len ? ", " : "", p->strip);
	}
	if (!dev && (strcmp(p->opt_level, "0") == 0 || strcmp(p->opt_level, "1") == 0)) {
		as_buf_adds(&lines, "opt-level = 3\n");
		as_buf_addf(&what, "%sopt-level = %s", what.len ? ", " : "", p->opt_level);
	}
	if (!dev && strcmp(p->debug_assertions, "true") == 0) {
		as_buf_adds(&lines, "debug-assertions = false\n");
		as_buf_addf(&what, "%sdebug-assertions = true", what.len ? ", " : "");
	}
	if (!lines.len) {
		as_findings_add(out, AS_AREA_BINARY, "cargo-profile", AS_SEVERITY_OK,
				"profile %s is fit to be measured", name);
		return;
	}
	x = as_findings_add(out, AS_AREA_BINARY, "cargo-profile", AS_SEVERITY_INFO,
			    "profile %s: %s", name, what.p);
	as_finding_why(x,
		       "builds of this profile show no source lines or inlined functions, or "
		       "measure another program; assay cargo sets debug and strip itself");
	lines.p[lines.len - 1] = 0;
	as_finding_fix(x, "%s:\n[profile.%s]\n%s", manifest, name, lines.p);
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

static bool is_script(const char *path, char *ret, size_t n)
{
	/* O_NONBLOCK: a FIFO at this path must not hang us */
	AS_CLEANUP(as_close_autop)
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	char line[256] = "";
	ssize_t got = fd < 0 ? 0 : read(fd, line, sizeof line - 1);

	if (got < 2 || strncmp(line, "#!", 2) != 0)
		return false;
	line[strcspn(line, "\n")] = 0;
	snprintf(ret, n, "%s", line + 2 + strspn(line + 2, " "));
	return true;
}

static void script(const char *interpreter, struct as_findings *out)
{
	struct as_finding *x = as_findings_add(out, AS_AREA_BINARY, "script", AS_SEVERITY_INFO,
					       "a script, run by %s", interpreter);

	as_finding_why(x, "what is recorded is its interpreter and what it starts");
	as_finding_fix(x, "assay doctor %.*s", (int)strcspn(interpreter, " "), interpreter);
}

int as_doctor_binary(const struct as_doctor *d, const char *path, struct as_findings *out,
		     struct as_error *err)
{
	struct as_binary_facts facts;
	char profile[64] = "release", interpreter[256];
	AS_CLEANUP(as_free_autop) char *manifest = NULL;
	int r;

	(void)d;
	if (is_script(path, interpreter, sizeof interpreter)) {
		script(interpreter, out);
		return AS_OK;
	}
	r = as_binary_facts_read(path, &facts, err);
	if (r < 0)
		return r;
	manifest = as_manifest_of_program(path, profile, sizeof profile);
	as_binary_findings(&(struct as_case){&facts, profile, manifest, out});
	if (manifest)
		as_project_findings(manifest, profile, out);
	as_binary_facts_clear(&facts);
	return AS_OK;
}
