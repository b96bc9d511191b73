/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Findings about a program: what its file says, what that hides from a profile, what mends it. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "doctor/binary_find.h"
#include "symbol/demangle.h"

#define ADD(id, severity, ...)                                                                 \
	as_findings_add(c->out, AS_AREA_BINARY, id, severity, __VA_ARGS__)

/* ---- words ---- */

static double percent(double share)
{
	return 100 * share;
}

/* Short form of a linkage name; valid until the next call on the same buffer. */
static const char *shown(struct as_buf *b, const char *linkage)
{
	AS_CLEANUP(as_buf_clear) struct as_buf full = {0};
	enum as_lang lang;
	bool cold;

	as_buf_reset(b);
	if (!linkage)
		return "";
	lang = as_demangle(linkage, &full, &cold);
	as_name_short(as_buf_str(&full), lang, 0, b);
	return as_buf_str(b);
}

/* "in ./Cargo.toml:\n[profile.release]\nLINE"; without a project, flags for the compilers. */
static void fix_by_profile(const struct as_case *c, struct as_finding *f, const char *line,
			   const char *flags)
{
	if (c->facts->rust)
		as_finding_fix(f, "%s%s[profile.%s]\n%s",
			       c->manifest ? c->manifest : "Cargo.toml", ":\n", c->profile_name,
			       line);
	else
		as_finding_fix(f, "%s", flags);
}

/* ---- how it was compiled ---- */

static const char *unoptimised_reason(const struct as_binary_facts *f)
{
	return f->rust ? "the times of a debug build are not those of a release build, and its "
			 "hot "
			 "functions are others: what costs here (iterators, closures, checks) "
			 "is "
			 "gone once it is optimised"
		       : "the times of a build without optimisation are not those of one with "
			 "it, "
			 "and its hot functions are others";
}

/* The release build is to be looked at next: with the lines that it lacks for that. */
static void fix_by_release(const struct as_case *c, struct as_finding *x)
{
	AS_CLEANUP(as_free_autop)
	char *lines = c->manifest ? as_project_lines(c->manifest, "release") : NULL;

	if (lines)
		as_finding_fix(x,
			       "cargo build --release   (with these lines in %s:)\n"
			       "[profile.release]\n%s",
			       c->manifest, lines);
	else
		as_finding_fix(x, "cargo build --release");
}

static void fix_optimisation(const struct as_case *c, struct as_finding *x)
{
	const struct as_binary_facts *f = c->facts;

	if (f->rust && strcmp(c->profile_name, "dev") != 0 && c->manifest)
		as_finding_fix(x, "%s:\n[profile.%s]\nopt-level = 3", c->manifest,
			       c->profile_name);
	else if (f->rust)
		fix_by_release(c, x);
	else
		as_finding_fix(x, "compile with -O2 -g");
}

static void find_optimisation(const struct as_case *c)
{
	const struct as_binary_facts *f = c->facts;
	AS_CLEANUP(as_buf_clear) struct as_buf name = {0};
	size_t judged = f->judged_by_name ? f->judged_own : f->judged_unnamed;
	size_t unopt = f->judged_by_name ? f->unopt_own : f->unopt_unnamed;
	struct as_finding *x;

	switch (f->optimised) {
	case AS_OPTIMISED_NO:
		x = ADD("optimisation", AS_SEVERITY_BAD,
			"built without optimisation: %zu of %zu functions looked at keep every "
			"value in memory",
			unopt, judged);
		if (f->stack_share > 0)
			as_finding_why(x,
				       "%s; %.0f %% of its instructions move values to and "
				       "from the stack",
				       unoptimised_reason(f), percent(f->stack_share));
		else
			as_finding_why(x, "%s", unoptimised_reason(f));
		fix_optimisation(c, x);
		return;
	case AS_OPTIMISED_PARTLY:
		x = ADD("optimisation", AS_SEVERITY_WARN,
			"parts are built without optimisation: %zu of %zu functions looked at, "
			"%s among them",
			unopt, judged,
			*shown(&name, f->unopt_example) ? name.p : "unnamed ones");
		as_finding_why(x, "%s", unoptimised_reason(f));
		fix_by_profile(c, x, "opt-level = 3", "compile all of it with -O2");
		return;
	case AS_OPTIMISED_YES:
		ADD("optimisation", AS_SEVERITY_OK, "optimised");
		return;
	case AS_OPTIMISED_UNKNOWN:
		ADD("optimisation", AS_SEVERITY_INFO,
		    f->arch == AS_ARCH_X86_64
			    ? "optimised or not: there is too little to tell by"
			    : "optimised or not: only told for x86-64");
	}
}

static void find_assertions(const struct as_case *c)
{
	const struct as_binary_facts *f = c->facts;
	struct as_finding *x;

	if (!f->debug_assertions || f->optimised == AS_OPTIMISED_NO)
		return;
	x = ADD("debug-assertions", AS_SEVERITY_WARN, "debug assertions are compiled in");
	as_finding_why(x, "checks that a release build does not make are part of every time: "
			  "arithmetic, slices and unsafe code check themselves");
	fix_by_profile(c, x, "debug-assertions = false", "compile with -DNDEBUG");
}

static void find_compiler(const struct as_case *c)
{
	const struct as_binary_facts *f = c->facts;
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	if (f->rustc)
		as_buf_addf(&b, "rustc %s", f->rustc);
	if (f->clang && !f->rustc)
		as_buf_addf(&b, "%sclang %s", b.len ? ", " : "", f->clang);
	if (f->gcc && !f->rustc && !f->clang)
		as_buf_addf(&b, "%sgcc %s", b.len ? ", " : "", f->gcc);
	if (f->flags && *f->flags && !f->rustc)
		as_buf_addf(&b, "%s%s", b.len ? ", " : "", f->flags);
	if (f->go)
		as_buf_addf(&b, "%sGo", b.len ? ", " : "");
	if (f->linker)
		as_buf_addf(&b, "%s%s", b.len ? ", linked by " : "linked by ", f->linker);
	if (b.len)
		ADD("compiler", AS_SEVERITY_OK, "%s", b.p);
}

static void find_codegen(const struct as_case *c)
{
	const struct as_binary_facts *f = c->facts;
	struct as_finding *x;

	if (!f->lto_known)
		return;
	if (f->lto) {
		ADD("lto", AS_SEVERITY_OK, "link-time optimisation");
		return;
	}
	if (!f->rust || f->optimised != AS_OPTIMISED_YES)
		return;
	x = ADD("lto", AS_SEVERITY_INFO,
		f->codegen_units > 1 ? "no link-time optimisation, %u codegen units"
				     : "no link-time optimisation",
		f->codegen_units);
	as_finding_why(x, "functions of other crates and codegen units are inlined only where "
			  "generic or marked; small ones show up as rows of their own");
	fix_by_profile(c, x, "lto = \"thin\"\ncodegen-units = 1", "");
}

static void find_mangling(const struct as_case *c)
{
	const struct as_binary_facts *f = c->facts;
	size_t rust = f->names_legacy + f->names_v0;
	struct as_finding *x;

	if (!rust)
		return;
	if (!f->names_legacy) {
		ADD("mangling", AS_SEVERITY_OK, "v0 names");
		return;
	}
	x = ADD("mangling", AS_SEVERITY_INFO,
		f->names_v0 ? "legacy and v0 names" : "legacy names");
	as_finding_why(x,
		       "legacy names say Vec<T> for every T: instances of one generic function "
		       "cannot be told apart");
	as_finding_fix(x, "RUSTFLAGS=\"-C symbol-mangling-version=v0\" cargo build --release");
}

static void find_target_cpu(const struct as_case *c)
{
	const struct as_binary_facts *f = c->facts;
	struct as_finding *x;

	if (f->avx_share < 0 || f->judged_own < 20 || f->optimised != AS_OPTIMISED_YES)
		return;
	/* a library with AVX for some machines chooses at run time: few functions */
	if (f->avx_share >= 0.15) {
		ADD("target-cpu", AS_SEVERITY_OK, "compiled for AVX and newer");
		return;
	}
	x = ADD("target-cpu", AS_SEVERITY_INFO, "compiled for any x86-64 (SSE2)");
	as_finding_why(x, "loops are not vectorised beyond 16 bytes; a build for this machine "
			  "may run faster, but not on older ones");
	as_finding_fix(x, f->rust ? "RUSTFLAGS=\"-C target-cpu=native\" cargo build --release"
				  : "compile with -march=native");
}

/* ---- names and debug information ---- */

static void fix_debug_package(const struct as_case *c, struct as_finding *x)
{
	const char *path = c->facts->path;
	bool of_system = strncmp(path, "/usr/", 5) == 0 || strncmp(path, "/lib", 4) == 0 ||
			 strncmp(path, "/bin/", 5) == 0 || strncmp(path, "/sbin/", 6) == 0;

	if (c->facts->rust && !of_system)
		as_finding_fix(x, "%s:\n[profile.%s]\ndebug = 1\nstrip = false",
			       c->manifest ? c->manifest : "Cargo.toml", c->profile_name);
	else if (of_system && access("/var/lib/dpkg/status", F_OK) == 0)
		as_finding_fix(x,
			       "sudo apt install \"$(dpkg -S %s | cut -d: -f1)-dbgsym\"   "
			       "(from the distribution's archive of debug packages)",
			       path);
	else if (of_system && access("/usr/bin/dnf", F_OK) == 0)
		as_finding_fix(x, "sudo dnf debuginfo-install \"$(rpm -qf %s)\"", path);
	else
		as_finding_fix(x, "compile with -g, and do not strip");
}

static void no_debug_info(const struct as_case *c)
{
	const struct as_binary_facts *f = c->facts;
	struct as_finding *x =
		ADD("debug-info", AS_SEVERITY_WARN, "%s",
		    f->debug_std_only ? "no debug information of its own code (the "
					"precompiled parts have some)"
		    : f->debuglink    ? "the separate debug file is missing"
				      : "no debug information");

	as_finding_why(x,
		       "no source lines, and inlined functions are missing: their time counts "
		       "for the function they were inlined into%s",
		       f->symtab ? "" : "; few of those have a name");
	fix_debug_package(c, x);
}

static void missing_split(const struct as_case *c)
{
	const struct as_binary_facts *f = c->facts;
	struct as_finding *x = ADD("split-debug", AS_SEVERITY_WARN,
				   "%zu of %zu split debug files are missing, '%s' among them",
				   f->split_missing, f->split_units, f->split_example);

	as_finding_why(x, "their functions have %s inlined calls",
		       f->debug == AS_DEBUG_NONE ? "neither lines nor" : "lines, but no");
	if (f->rust)
		as_finding_fix(x, "%s:\n[profile.%s]\nsplit-debuginfo = \"off\"",
			       c->manifest ? c->manifest : "Cargo.toml", c->profile_name);
	else
		as_finding_fix(x, "keep the .dwo files where they were made, or: dwp -e %s",
			       f->path);
}

static void find_debug(const struct as_case *c)
{
	const struct as_binary_facts *f = c->facts;
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	struct as_finding *x;

	if (f->split_missing)
		missing_split(c);
	if (f->debug == AS_DEBUG_NONE) {
		if (!f->split_missing)
			no_debug_info(c);
		return;
	}
	as_buf_adds(&b, f->debug == AS_DEBUG_FULL ? "full debug information" : "line tables");
	if (f->dwarf_version)
		as_buf_addf(&b, " (DWARF %u)", f->dwarf_version);
	if (f->debug_file)
		as_buf_addf(&b, " in %s", f->debug_file);
	if (f->debug_share >= 0 && f->debug_share < 0.7) {
		x = ADD("debug-info", AS_SEVERITY_INFO, "%s, of about %.0f %% of its functions",
			b.p, percent(f->debug_share));
		as_finding_why(x, "the others have neither source lines nor inlined functions");
	} else {
		ADD("debug-info", AS_SEVERITY_OK, "%s", b.p);
	}
}

static void find_symbols(const struct as_case *c)
{
	const struct as_binary_facts *f = c->facts;
	struct as_finding *x;

	if (f->own_symtab || f->symtab) {
		ADD("symbols", AS_SEVERITY_OK,
		    f->own_symtab ? "symbols" : "symbols in the debug file");
		return;
	}
	/* without debug information either: what mends that mends this */
	x = ADD("symbols", f->debug == AS_DEBUG_NONE ? AS_SEVERITY_INFO : AS_SEVERITY_WARN,
		"stripped: no symbols");
	as_finding_why(x, "functions that are not exported have no names: they are shown as "
			  "program+0x1234");
	fix_debug_package(c, x);
}

static void find_build_id(const struct as_case *c)
{
	const struct as_build_id *id = &c->facts->build_id;
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	struct as_finding *x;

	if (id->len) {
		for (size_t i = 0; i < id->len; i++)
			as_buf_addf(&b, "%02x", id->id[i]);
		ADD("build-id", AS_SEVERITY_OK, "build-id %s", b.p);
		return;
	}
	x = ADD("build-id", AS_SEVERITY_INFO, "no build-id");
	as_finding_why(x, "builds are told apart by a hash of their content; debug files and "
			  "other tools do not find it by name");
	as_finding_fix(x, c->facts->rust
				  ? "RUSTFLAGS=\"-C link-arg=-Wl,--build-id\" cargo build "
				    "--release"
				  : "link with -Wl,--build-id");
}

/* ---- stacks ---- */

static void find_frame_pointers(const struct as_case *c)
{
	const struct as_binary_facts *f = c->facts;
	double share = f->own_fp_share >= 0 ? f->own_fp_share : f->fp_share;
	struct as_finding *x;

	if (share < 0)
		return;
	if (share >= 0.95) {
		ADD("frame-pointers", AS_SEVERITY_OK, "frame pointers");
		return;
	}
	x = ADD("frame-pointers", AS_SEVERITY_INFO, "frame pointers in %.0f %% of its code",
		percent(share));
	as_finding_why(x, f->has_fdes
				  ? "assay follows the unwind tables and needs none; "
				    "profilers that do (perf -g) lose the callers there"
				  : "without unwind tables the callers of the rest are lost");
	as_finding_fix(x, f->rust ? "RUSTFLAGS=\"-C force-frame-pointers=yes\" cargo build "
				    "--release"
				  : "compile with -fno-omit-frame-pointer");
}

static void find_unwind(const struct as_case *c)
{
	const struct as_binary_facts *f = c->facts;
	AS_CLEANUP(as_buf_clear) struct as_buf name = {0};
	/* 200 bytes of C start files have none anywhere */
	bool some = f->without_fde_bytes > 1024;
	double share = some && f->text_bytes
			       ? (double)f->without_fde_bytes / (double)f->text_bytes
			       : 0;
	struct as_finding *x;

	if (f->go) {
		ADD("unwind-tables", AS_SEVERITY_OK, "Go: frames by its own rules");
		return;
	}
	if (!f->has_fdes) {
		x = ADD("unwind-tables", AS_SEVERITY_WARN, "no unwind tables");
		as_finding_why(x, "stacks are followed by frame pointers and a look at each "
				  "function's first instructions: some will be cut short");
		as_finding_fix(x, f->rust ? "RUSTFLAGS=\"-C force-unwind-tables=yes\" cargo "
					    "build --release"
					  : "compile with -fasynchronous-unwind-tables");
		return;
	}
	if (f->main_without_fde && share < 0.01) {
		x = ADD("unwind-tables", AS_SEVERITY_INFO,
			"unwind tables, but not for main (panic = \"abort\" without debug "
			"information)");
		as_finding_why(x, "assay finds main's caller by its first instructions; other "
				  "tools end every stack at main");
		fix_by_profile(c, x, "debug = 1", "compile with -fasynchronous-unwind-tables");
		return;
	}
	if (share < 0.01) {
		ADD("unwind-tables", AS_SEVERITY_OK, "unwind tables");
		return;
	}
	x = ADD("unwind-tables", share < 0.10 ? AS_SEVERITY_INFO : AS_SEVERITY_WARN,
		"%.*f %% of the code has no unwind tables%s%s", share < 0.10, percent(share),
		f->without_fde_example ? ", among it " : "",
		shown(&name, f->without_fde_example));
	as_finding_why(x,
		       "callers of that code%s are found by frame pointers or a look at its "
		       "first instructions, or not at all",
		       share < 0.5 ? " (usually assembly)" : "");
	if (share >= 0.10)
		as_finding_fix(x, f->libc == AS_LIBC_MUSL
					  ? "compile with -fasynchronous-unwind-tables (musl "
					    "itself has none)"
					  : "compile with -fasynchronous-unwind-tables");
}

static void find_big_frames(const struct as_case *c)
{
	const struct as_binary_facts *f = c->facts;
	AS_CLEANUP(as_buf_clear) struct as_buf list = {0}, name = {0};
	struct as_finding *x;

	if (!f->nbig)
		return;
	for (size_t i = 0; i < f->nframes; i++) {
		as_buf_addf(&list, "%s%s (", i ? ", " : "", shown(&name, f->frame[i].name));
		as_fmt_bytes(&list, f->frame[i].bytes);
		as_buf_addc(&list, ')');
	}
	x = ADD("big-frames", AS_SEVERITY_INFO,
		"%zu function%s with more than 64 KiB of stack: "
		"%s%s",
		f->nbig, f->nbig == 1 ? "" : "s", list.p, f->nbig > f->nframes ? " …" : "");
	as_finding_why(x,
		       "engine 'ring' copies at most 64 KiB of stack and loses the callers of "
		       "these; engine 'kernel' (root) follows stacks of any size");
	as_finding_fix(x, "keep large arrays on the heap (Box, Vec), or record as root");
}

/* ---- what is linked in ---- */

static void find_linking(const struct as_case *c)
{
	static const char *const libc[] = {"", ", glibc", ", musl", ""};
	const struct as_binary_facts *f = c->facts;

	ADD("linking", AS_SEVERITY_OK, "%s%s%s",
	    f->is_static ? "static"
	    : f->library ? "shared object"
			 : "dynamic",
	    libc[f->libc], f->pie ? ", PIE" : "");
}

static void find_allocator(const struct as_case *c)
{
	const struct as_binary_facts *f = c->facts;
	struct as_finding *x;

	if (f->allocator) {
		ADD("allocator", AS_SEVERITY_OK, "allocator %s", f->allocator);
		return;
	}
	if (f->libc != AS_LIBC_MUSL) {
		if (f->libc == AS_LIBC_GLIBC)
			ADD("allocator", AS_SEVERITY_OK, "allocator of glibc");
		return;
	}
	x = ADD("allocator", AS_SEVERITY_INFO, "allocator of musl");
	as_finding_why(x,
		       "one lock for all threads: with several of them malloc and free often "
		       "take the largest part of the time");
	as_finding_fix(x, f->rust ? "Cargo.toml: mimalloc = \"0.1\"\nsrc/main.rs: "
				    "#[global_allocator] static A: mimalloc::MiMalloc = "
				    "mimalloc::MiMalloc;"
				  : "link with an allocator such as mimalloc");
}

static void find_runtimes(const struct as_case *c)
{
	const struct as_binary_facts *f = c->facts;

	for (size_t i = 0; i < f->nruntimes; i++) {
		struct as_finding *x =
			ADD("async-runtime", AS_SEVERITY_INFO, "%s%s%s", f->runtime[i].name,
			    *f->runtime[i].version ? " " : "", f->runtime[i].version);

		as_finding_why(x, "stacks of a task begin at the runtime's poll, not at what "
				  "spawned it; waiting costs no CPU time and is not in the "
				  "profile");
	}
}

void as_binary_findings(const struct as_case *c)
{
	find_optimisation(c);
	find_assertions(c);
	find_debug(c);
	find_symbols(c);
	find_unwind(c);
	find_frame_pointers(c);
	find_big_frames(c);
	find_codegen(c);
	find_mangling(c);
	find_target_cpu(c);
	find_allocator(c);
	find_runtimes(c);
	find_compiler(c);
	find_linking(c);
	find_build_id(c);
}
