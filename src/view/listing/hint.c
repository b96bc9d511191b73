/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Why a function has no line numbers, and what would give it some: that depends on whose code it is. */
#include "view/listing/listing_priv.h"

#include <string.h>

#include "symbol/demangle.h"

static bool has_lines(const struct as_model *m, uint32_t module)
{
	as_vec_foreach (f, &m->frames) {
		if (f->module != module)
			continue;
		for (uint32_t k = 0; k < f->nchain; k++) {
			if (m->places.v[f->chain + k].line)
				return true;
		}
	}
	return false;
}

static bool is_of_system(const char *path)
{
	static const char *const folders[] = {"/usr/", "/lib", "/bin/", "/sbin/", "/opt/"};

	if (strncmp(path, "/usr/local/", 11) == 0)
		return false;
	for (size_t i = 0; i < AS_ARRAY_LEN(folders); i++) {
		if (strncmp(path, folders[i], strlen(folders[i])) == 0)
			return true;
	}
	return false;
}

static void hint_kernel(struct as_listing_build *b)
{
	const char *release = as_model_info(b->m, "kernel");
	bool of_debian = strstr(release, "-amd64") || strstr(release, "-arm64");

	as_listing_note(
		b,
		"there are no line numbers: assay does not read the text of the kernel; with "
		"its vmlinux (%s%s%s) gdb and perf annotate do",
		of_debian ? "apt-get install linux-image-" : "built with CONFIG_DEBUG_INFO",
		of_debian ? release : "", of_debian ? "-dbg" : "");
}

static void hint_jit(struct as_listing_build *b, const struct as_m_function *f)
{
	if (f->flags & AS_FUNCTION_SYNTHETIC)
		as_listing_note(
			b,
			"there are no names and line numbers: the runtime that compiled it has "
			"to write /tmp/perf-PID.map, a line 'START SIZE NAME' per function "
			"(node --perf-basic-prof, java -XX:+DumpPerfMapAtExit)");
	else
		as_listing_note(b,
				"there are no line numbers: the perf map of the runtime that "
				"compiled it has names only");
}

static void hint_file(struct as_listing_build *b, const struct as_m_function *f,
		      const struct as_m_module *m)
{
	bool bare = f->flags & AS_FUNCTION_SYNTHETIC;

	if (m->kind == AS_MODULE_VDSO)
		as_listing_note(b, "there are no line numbers: the kernel made this code");
	else if (has_lines(b->m, b->l->module))
		as_listing_note(
			b,
			"there are no line numbers: %s has some, this function has none "
			"(assembler, or built without -g)",
			m->name);
	else if (is_of_system(m->path))
		as_listing_note(
			b,
			"there are no line numbers: %s is installed without %s; the package "
			"with its debug information has them (Debian: -dbgsym or -dbg, "
			"Fedora: dnf debuginfo-install)",
			m->name, bare ? "symbols and debug information" : "debug information");
	else if (f->lang == AS_LANG_RUST)
		as_listing_note(b,
				"there are no line numbers: no debug information (Cargo.toml: "
				"[profile.release] debug = 1)");
	else if (bare)
		as_listing_note(
			b,
			"there are no names and line numbers: %s is stripped; build it with "
			"debug information (C: -g; Cargo.toml: [profile.release] debug = 1, "
			"strip = false)",
			m->name);
	else
		as_listing_note(b,
				"there are no line numbers: no debug information (build with "
				"-g)");
}

void as_listing_no_lines(struct as_listing_build *b)
{
	const struct as_m_function *f = &b->m->functions.v[b->q->function];
	uint32_t module = b->l->module;

	if ((f->flags & AS_FUNCTION_MARKER) || module == AS_NONE)
		return; /* it has been said that there is no code */
	switch (b->m->modules.v[module].kind) {
	case AS_MODULE_KERNEL:
	case AS_MODULE_KMOD:
		hint_kernel(b);
		break;
	case AS_MODULE_JIT:
		hint_jit(b, f);
		break;
	case AS_MODULE_FILE:
	case AS_MODULE_VDSO:
		hint_file(b, f, &b->m->modules.v[module]);
		break;
	}
}
