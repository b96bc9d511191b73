/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Links noted and done again: see layout.h. The scripts stand here too. */
#include "bench/layout.h"

#include <dirent.h>
#include <elf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/child.h"
#include "base/map.h"
#include "base/sys.h"
#include "bench/layout_priv.h"

#define WORDS_MAX (64u << 20)
#define RELINK_S  300
#define PAD_STEP  16 /* bytes: functions begin at multiples of it */
#define PAD_STEPS                                                                              \
	64 /* sizes from 0 to 63 steps: the lines of a cache and the sets of a predictor */
#define COMPARE_MAX ((size_t)1 << 30)

/* ---- the scripts ---- */

/*
 * In place of rustc: compilations that end in a program get our linker. Build scripts and macros are
 * left alone. A wrapper of the caller (sccache) still stands before rustc.
 */
static const char rustc_script[] =
	"#!/bin/sh\n"
	"here=$(dirname \"$0\")\n"
	"name= test= library= linker=cc previous=\n"
	"for word; do\n"
	"	case $previous,$word in\n"
	"	*,--test) test=1 ;;\n"
	"	--crate-type,bin | *,--crate-type=bin) ;;\n"
	"	--crate-type,* | *,--crate-type=*) library=1 ;;\n"
	"	-C,linker=*) linker=${word#linker=} ;;\n"
	"	*,-Clinker=*) linker=${word#-Clinker=} ;;\n"
	"	--crate-name,build_script_* | --crate-name,___) here= ;;\n"
	"	--crate-name,*) name=1 ;;\n"
	"	esac\n"
	"	previous=$word\n"
	"done\n"
	"set -- ${ASSAY_RUSTC_WRAPPER:+\"$ASSAY_RUSTC_WRAPPER\"} \"$@\"\n"
	"[ -n \"$name\" ] && [ -n \"$here\" ] || exec \"$@\"\n"
	"[ -n \"$test\" ] || [ -z \"$library\" ] || exec \"$@\"\n"
	"name=$(basename \"$linker\")\n"
	"mkdir -p \"$here/linkers\"\n"
	"[ -e \"$here/linkers/$name\" ] || ln -s ../link \"$here/linkers/$name\" 2>/dev/null\n"
	"ASSAY_LINKER=$linker exec \"$@\" -C linker=\"$here/linkers/$name\"\n";

/*
 * In place of a linker: calls the real one, then keeps its words, and its inputs by hard links (rustc
 * removes objects after the link). The kit gets its name at the very end: there is a whole one or none.
 */
static const char link_script[] =
	"#!/bin/sh\n"
	"bin=$(dirname \"$0\") name=$(basename \"$0\")\n"
	"if [ -n \"$ASSAY_LINKER\" ]; then\n"
	"	real=$ASSAY_LINKER\n"
	"	unset COMPILER_PATH\n"
	"else\n"
	"	real=$(command -v \"$name\") || { echo \"$name: not found\" >&2; exit 127; }\n"
	"fi\n"
	"\"$real\" \"$@\" || exit\n"
	"case $name in ld | ld.* | *lld | mold | wild) level=ld ;; *) level=cc ;; esac\n"
	"out=a.out previous=\n"
	"for word; do\n"
	"	case $previous,$word in\n"
	"	-o,*) out=$word ;;\n"
	"	*,-o?*) [ $level = ld ] || out=${word#-o} ;;\n"
	"	*,-shared | *,-r | *,--shared | *,-Bshareable) exit 0 ;;\n"
	"	esac\n"
	"	previous=$word\n"
	"done\n"
	"case $out in /*) ;; *) out=$PWD/$out ;; esac\n"
	"kits=$bin/../kits\n"
	"kit=$kits/$(printf %s \"$out\" | cksum | tr ' ' -)\n"
	"new=$kit.$$\n"
	"rm -rf \"$new\"\n"
	"mkdir -p \"$new\" || exit 0\n"
	"n=0\n"
	"for word; do\n"
	"	case $word in\n"
	"	@*) mkdir \"$new/$n\" && cp \"${word#@}\" \"$new/$n/\" 2>/dev/null ;;\n"
	"	*.o | *.a | *.rlib | *.obj)\n"
	"		[ -f \"$word\" ] && mkdir \"$new/$n\" &&\n"
	"			{ ln \"$word\" \"$new/$n/\" || cp \"$word\" \"$new/$n/\"; } "
	"2>/dev/null ;;\n"
	"	esac\n"
	"	n=$((n + 1))\n"
	"done\n"
	"printf '%s\\0' \"$real\" \"$@\" >\"$new/words\" &&\n"
	"	printf %s \"$PWD\" >\"$new/folder\" && printf %s \"$level\" >\"$new/level\" "
	"&&\n"
	"	printf %s \"$out\" >\"$new/output\" && rm -rf \"$kit\" && mv \"$new\" "
	"\"$kit\"\n"
	"exit 0\n";

static int write_script(const char *folder, const char *name, const char *text,
			struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *path = as_xasprintf("%s/%s", folder, name);
	int r = as_write_file_atomic(path, text, strlen(text), err);

	if (r == AS_OK && chmod(path, 0755) < 0)
		r = as_fail(err, AS_E_IO, 0, "cannot make '%s' executable", path);
	return r;
}

int as_layout_watch(const char *folder, struct as_layout_watch *ret, struct as_error *err)
{
	static const char *const linkers[] = {"ld", "ld.bfd", "ld.gold", "ld.lld", "ld.mold"};
	AS_CLEANUP(as_free_autop) char *stand_ins = as_xasprintf("%s/ld", folder);
	const char *wrapper = getenv("RUSTC_WRAPPER"), *path = getenv("COMPILER_PATH");
	int r = as_mkdir_parents(stand_ins, err);

	*ret = (struct as_layout_watch){.folder = as_xstrdup(folder)};
	if (r == AS_OK)
		r = write_script(folder, "rustc", rustc_script, err);
	if (r == AS_OK)
		r = write_script(folder, "link", link_script, err);
	for (size_t i = 0; i < AS_ARRAY_LEN(linkers) && r == AS_OK; i++) {
		AS_CLEANUP(as_free_autop)
		char *name = as_xasprintf("%s/%s", stand_ins, linkers[i]);

		if (access(name, X_OK) < 0 && symlink("../link", name) < 0)
			r = as_fail(err, AS_E_IO, 0, "cannot make '%s'", name);
	}
	as_vec_push(&ret->environment, as_xasprintf("RUSTC_WRAPPER=%s/rustc", folder));
	as_vec_push(&ret->environment,
		    as_xasprintf("ASSAY_RUSTC_WRAPPER=%s", wrapper ? wrapper : ""));
	as_vec_push(&ret->environment,
		    as_xasprintf("COMPILER_PATH=%s%s%s", stand_ins, path && *path ? ":" : "",
				 path ? path : ""));
	as_vec_push(&ret->environment, NULL);
	return r;
}

void as_layout_watch_clear(struct as_layout_watch *w)
{
	for (size_t i = 0; i < w->environment.n; i++)
		free(w->environment.v[i]);
	as_vec_clear(&w->environment);
	free(w->folder);
	*w = (struct as_layout_watch){0};
}

/* ---- kits ---- */

struct as_layout_kit {
	char *path, *folder;
	bool by_compiler; /* the linker is a compiler: its words go through -Wl */
	uint16_t machine;
	struct as_buf text;         /* of the words */
	AS_VEC(const char *) words; /* the linker first */
};

static char *text_of(const char *kit, const char *name)
{
	AS_CLEANUP(as_free_autop) char *path = as_xasprintf("%s/%s", kit, name);
	struct as_buf b = {0};

	if (as_read_file(path, 1 << 16, &b, NULL) < 0) {
		as_buf_clear(&b);
		return NULL;
	}
	return as_buf_detach(&b);
}

/* The same file; or the same bytes, as build scripts copy programs to where they want them. */
static bool is_output(const char *kit, const char *program, bool by_bytes)
{
	AS_CLEANUP(as_free_autop) char *output = text_of(kit, "output");
	AS_CLEANUP(as_buf_clear) struct as_buf a = {0}, b = {0};
	struct stat out, st;

	if (!output || stat(output, &out) < 0 || stat(program, &st) < 0 ||
	    out.st_size != st.st_size)
		return false;
	if (!by_bytes)
		return out.st_ino == st.st_ino && out.st_dev == st.st_dev;
	return as_read_file(output, COMPARE_MAX, &a, NULL) == AS_OK &&
	       as_read_file(program, COMPARE_MAX, &b, NULL) == AS_OK && a.len == b.len &&
	       memcmp(a.p, b.p, a.len) == 0;
}

static uint16_t machine_of(const char *program)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	Elf64_Ehdr h;

	if (as_read_file(program, COMPARE_MAX, &b, NULL) < 0 || b.len < sizeof h)
		return 0;
	memcpy(&h, b.p, sizeof h);
	return memcmp(h.e_ident, ELFMAG, SELFMAG) == 0 && h.e_ident[EI_CLASS] == ELFCLASS64 &&
			       h.e_ident[EI_DATA] == ELFDATA2LSB
		       ? h.e_machine
		       : 0;
}

static struct as_layout_kit *load(const char *path, const char *program)
{
	struct as_layout_kit *k = as_xcalloc(1, sizeof *k);
	AS_CLEANUP(as_free_autop) char *words = as_xasprintf("%s/words", path);
	AS_CLEANUP(as_free_autop) char *level = text_of(path, "level");

	k->path = as_xstrdup(path);
	k->folder = text_of(path, "folder");
	k->by_compiler = level && strcmp(level, "cc") == 0;
	k->machine = machine_of(program);
	if (as_read_file(words, WORDS_MAX, &k->text, NULL) == AS_OK && k->text.len &&
	    !k->text.p[k->text.len - 1]) {
		for (const char *at = k->text.p; at < k->text.p + k->text.len;
		     at += strlen(at) + 1)
			as_vec_push(&k->words, at);
	}
	if (k->folder && k->machine && k->words.n > 1)
		return k;
	as_layout_kit_free(k);
	return NULL;
}

static struct as_layout_kit *find_by(const char *kits, const char *program, bool by_bytes)
{
	struct as_layout_kit *found = NULL;
	DIR *d = opendir(kits);

	for (struct dirent *e; d && !found && (e = readdir(d));) {
		AS_CLEANUP(as_free_autop) char *path = as_xasprintf("%s/%s", kits, e->d_name);

		if (e->d_name[0] != '.' && is_output(path, program, by_bytes))
			found = load(path, program);
	}
	if (d)
		closedir(d);
	return found;
}

struct as_layout_kit *as_layout_find(const struct as_layout_watch *w, const char *program)
{
	AS_CLEANUP(as_free_autop) char *kits = as_xasprintf("%s/kits", w->folder);
	struct as_layout_kit *found = find_by(kits, program, false);

	return found ? found : find_by(kits, program, true);
}

void as_layout_kit_free(struct as_layout_kit *k)
{
	if (!k)
		return;
	free(k->path);
	free(k->folder);
	as_buf_clear(&k->text);
	as_vec_clear(&k->words);
	free(k);
}

/* ---- linking again ---- */

struct relink {
	const struct as_layout_kit *kit;
	uint64_t random;
	char *folder; /* of the padding objects */
	AS_VEC(char *) words;
	unsigned pads;
};

static bool is_input(const char *word)
{
	static const char *const ends[] = {".o", ".a", ".rlib", ".obj"};
	size_t n = strlen(word);

	if (word[0] == '-')
		return false;
	if (word[0] == '@')
		return true;
	for (size_t i = 0; i < AS_ARRAY_LEN(ends); i++) {
		size_t m = strlen(ends[i]);

		if (n > m && strcmp(word + n - m, ends[i]) == 0)
			return true;
	}
	return false;
}

static int add_pad(struct relink *l, struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf object = {0};
	AS_CLEANUP(as_free_autop) char *symbol = as_xasprintf("assay_pad_%u", l->pads);
	char *path = as_xasprintf("%s/%u.o", l->folder, l->pads);
	int r;

	l->random += 0x9e3779b97f4a7c15ull;
	as_layout_pad_object(l->kit->machine, symbol,
			     as_mix64(l->random) % PAD_STEPS * PAD_STEP, &object);
	r = as_write_file_atomic(path, object.p, object.len, err);
	as_vec_push(&l->words, path);
	/* A root, or the collection of unused sections takes the padding away. */
	if (!l->kit->by_compiler)
		as_vec_push(&l->words, as_xstrdup("-u"));
	as_vec_push(&l->words, l->kit->by_compiler ? as_xasprintf("-Wl,-u,%s", symbol)
						   : as_xstrdup(symbol));
	l->pads++;
	return r;
}

static int add_words(struct relink *l, uint64_t number, const char *out, struct as_error *err)
{
	const struct as_layout_kit *k = l->kit;
	bool written = false;
	int r = AS_OK;

	for (size_t i = 0; i < k->words.n && r == AS_OK; i++) {
		const char *word = k->words.v[i];
		const char *slash = strrchr(word, '/');
		/* Kept below its place among the words, not counting the linker, by its name: some
		 * linkers write that into the program. */
		AS_CLEANUP(as_free_autop)
		char *kept = as_xasprintf("%s/%zu/%s", k->path, i ? i - 1 : k->words.n,
					  slash ? slash + 1 : word + (word[0] == '@'));
		bool have = i && is_input(word) && access(kept, R_OK) == 0;

		if (i && is_input(word) && number && r == AS_OK)
			r = add_pad(l, err);
		if (i && strcmp(k->words.v[i - 1], "-o") == 0) {
			as_vec_push(&l->words, as_xstrdup(out));
			written = true;
		} else if (i && k->by_compiler && strncmp(word, "-o", 2) == 0 && word[2]) {
			as_vec_push(&l->words, as_xasprintf("-o%s", out));
			written = true;
		} else {
			as_vec_push(
				&l->words,
				!have ? as_xstrdup(word)
				      : as_xasprintf("%s%s", word[0] == '@' ? "@" : "", kept));
		}
	}
	if (r == AS_OK && !written) {
		as_vec_push(&l->words, as_xstrdup("-o"));
		as_vec_push(&l->words, as_xstrdup(out));
	}
	as_vec_push(&l->words, NULL);
	return r;
}

static int call_linker(struct relink *l, const char *out, struct as_error *err)
{
	struct as_child c = {0};
	int r = as_child_run(&(struct as_child_request){.argv = (const char *const *)l->words.v,
							.folder = l->kit->folder,
							.timeout_s = RELINK_S},
			     &c, err);

	if (r == AS_OK && c.wait_status) {
		AS_CLEANUP(as_buf_clear) struct as_buf said = {0};

		as_child_ended(&c, &said);
		as_child_last_words(c.errors.len ? &c.errors : &c.out, 4, &said);
		r = as_fail(err, AS_E_IO, 0, "cannot link '%s' again: %s", out,
			    as_buf_str(&said));
	}
	as_child_clear(&c);
	return r;
}

int as_layout_relink(const struct as_layout_kit *k, uint64_t number, const char *out,
		     struct as_error *err)
{
	struct relink l = {.kit = k,
			   .random = number * 0xd1342543de82ef95ull,
			   .folder = as_xasprintf("%s.pads", out)};
	int r = as_mkdir_parents(l.folder, err);

	if (r == AS_OK)
		r = add_words(&l, number, out, err);
	if (r == AS_OK)
		r = call_linker(&l, out, err);
	for (unsigned i = 0; i < l.pads; i++) {
		AS_CLEANUP(as_free_autop) char *path = as_xasprintf("%s/%u.o", l.folder, i);

		(void)unlink(path); /* not there when it could not be written */
	}
	(void)rmdir(l.folder);
	free(l.folder);
	for (size_t i = 0; i < l.words.n; i++)
		free(l.words.v[i]);
	as_vec_clear(&l.words);
	return r;
}

/* ---- the verdict ---- */

enum as_bench_verdict as_layout_judge(const double *u, size_t n, double as_built, double delta,
				      double alpha, struct as_trimmed *ret)
{
	/* Builds are few and their spread is no spike of the machine: nothing is trimmed. */
	as_trimmed_interval(u, n, 0, alpha, ret);
	if (n < AS_LAYOUT_LEAST)
		return AS_BENCH_UNDECIDED;
	if (ret->lo > delta / 2 && ret->hi >= delta)
		return AS_BENCH_SLOWER;
	if (ret->hi < -delta / 2 && ret->lo <= -delta)
		return AS_BENCH_FASTER;
	if (ret->lo > -delta && ret->hi < delta)
		return AS_BENCH_MOVED;
	/* No difference shows, and of the one as built less than half can be real. */
	if (ret->lo < 0 && ret->hi > 0 && ret->hi < fabs(as_built) / 2 &&
	    ret->lo > -fabs(as_built) / 2)
		return AS_BENCH_MOVED;
	return AS_BENCH_UNDECIDED;
}
