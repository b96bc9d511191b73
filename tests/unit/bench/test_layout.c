/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Programs linked again with other distances: the same program, elsewhere; and what is said of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/child.h"
#include "base/mem.h"
#include "base/sys.h"
#include "bench/layout.h"
#include "elf/elf.h"

static char root[] = "/tmp/test-layout-XXXXXX";
static struct as_layout_watch watch;

static int sh_in(const char *script, char *const *environment, char **ret_out)
{
	const char *argv[] = {"/bin/sh", "-ec", script, NULL};
	struct as_child c;
	int status;

	assert_int_equal(as_child_run(&(struct as_child_request){.argv = argv,
								 .folder = root,
								 .environment = environment},
				      &c, NULL),
			 AS_OK);
	if (c.wait_status && !ret_out)
		print_message("%s: %s\n", script, as_buf_str(&c.errors));
	if (ret_out)
		*ret_out = as_buf_detach(&c.out);
	status = c.wait_status;
	as_child_clear(&c);
	return status;
}

static const char source[] = "#include <stdio.h>\n"
			     "#include \"other.h\"\n"
			     "__attribute__((noinline)) unsigned work(unsigned n){unsigned h=1;"
			     "for(unsigned i=0;i<n;i++)h=h*31+other(i);return h;}\n"
			     "int main(void){printf(\"%u\\n\",work(100000));return 0;}\n";

static int setup(void **state)
{
	AS_CLEANUP(as_free_autop) char *folder = NULL, *path = NULL;
	struct as_error err;

	assert_non_null(mkdtemp(root));
	if (sh_in("command -v gcc && command -v ld", NULL, NULL)) {
		print_message("no gcc here\n");
		exit(77);
	}
	folder = as_xasprintf("%s/watch", root);
	assert_int_equal(as_layout_watch(folder, &watch, &err), AS_OK);
	path = as_xasprintf("%s/main.c", root);
	assert_int_equal(as_write_file_atomic(path, source, sizeof source - 1, &err), AS_OK);
	assert_int_equal(sh_in("echo 'unsigned other(unsigned);' >other.h;"
			       "echo 'unsigned other(unsigned i){return i^(i>>3);}' >other.c;"
			       "echo 'unsigned other(unsigned i){return i^(i>>5);}' >changed.c",
			       NULL, NULL),
			 0);
	return 0;
}

static int teardown(void **state)
{
	AS_CLEANUP(as_free_autop) char *rm = as_xasprintf("cd /; rm -rf '%s'", root);

	as_layout_watch_clear(&watch);
	return sh_in(rm, NULL, NULL);
}

/* Builds with the stand-ins in place, as a build of --against is. */
static void build(const char *script)
{
	AS_CLEANUP(as_buf_clear) struct as_buf all = {0};

	for (size_t i = 0; watch.environment.v[i]; i++)
		as_buf_addf(&all, "export '%s'\n", watch.environment.v[i]);
	as_buf_adds(&all, script);
	assert_int_equal(sh_in(as_buf_str(&all), NULL, NULL), 0);
}

static char *in_root(const char *name)
{
	return as_xasprintf("%s/%s", root, name);
}

static void find(void *ctx, const struct as_elf_symbol *s)
{
	if (strcmp(s->name, "other") == 0)
		*(uint64_t *)ctx = s->svma;
}

static uint64_t place_of_other(const char *path)
{
	struct as_elf *e;
	uint64_t svma = 0;

	assert_int_equal(as_elf_open(path, &e, NULL), AS_OK);
	(void)as_elf_each_symbol(e, find, &svma, NULL);
	as_elf_close(e);
	return svma;
}

static void relinked_programs_do_the_same_elsewhere(void **state)
{
	static const char *const linkers[] = {"bfd", "gold", "lld"};
	size_t tried = 0;

	for (size_t i = 0; i < AS_ARRAY_LEN(linkers); i++) {
		AS_CLEANUP(as_free_autop)
		char *have = as_xasprintf("command -v ld.%s", linkers[i]);
		AS_CLEANUP(as_free_autop)
		char *plain = as_xasprintf("gcc -fuse-ld=%s -O2 -ffunction-sections "
					   "-Wl,--gc-sections -o plain main.c other.c",
					   linkers[i]);
		AS_CLEANUP(as_free_autop)
		char *seen = as_xasprintf("gcc -fuse-ld=%s -O2 -ffunction-sections "
					  "-Wl,--gc-sections -o seen main.c other.c",
					  linkers[i]);
		AS_CLEANUP(as_free_autop) char *program = in_root("seen"), *out = NULL;
		struct as_layout_kit *kit;
		struct as_error err = {0};
		uint64_t places[4];
		bool same;

		if (sh_in(have, NULL, &out)) {
			print_message("no ld.%s here\n", linkers[i]);
			continue;
		}
		tried++;
		assert_int_equal(sh_in(plain, NULL, NULL), 0);
		build(seen);
		kit = as_layout_find(&watch, program);
		assert_non_null(kit);
		for (uint64_t n = 0; n < 4; n++) {
			AS_CLEANUP(as_free_autop)
			char *again = as_xasprintf("%s/again%d", root, (int)n);
			AS_CLEANUP(as_free_autop) char *printed = NULL, *expected = NULL;
			AS_CLEANUP(as_free_autop) char *run = as_xasprintf("./again%d", (int)n);

			if (as_layout_relink(kit, n, again, &err) < 0)
				fail_msg("%s", err.msg);
			assert_int_equal(sh_in(run, NULL, &printed), 0);
			assert_int_equal(sh_in("./plain", NULL, &expected), 0);
			assert_string_equal(printed, expected);
			places[n] = place_of_other(again);
			assert_int_equal(as_layout_same_code(program, again, &same, &err),
					 AS_OK);
			assert_true(same);
		}
		assert_int_equal(sh_in("cmp plain seen && cmp seen again0", NULL, NULL), 0);
		assert_true(places[1] != places[0] || places[2] != places[0]);
		assert_true(places[1] != places[2] || places[2] != places[3]);
		as_layout_kit_free(kit);
	}
	if (!tried)
		skip();
}

static void programs_of_rustc_are_linked_again_too(void **state)
{
	/* as cargo calls it: a bench without a harness, tests, a program; and a library, a build script */
	static const char *const words[] = {"--cfg test", "--test", "--crate-type bin"};
	AS_CLEANUP(as_free_autop) char *out = NULL, *program = in_root("out/x");

	if (sh_in("command -v rustc", NULL, &out))
		skip();
	assert_int_equal(
		sh_in("echo 'fn main() { println!(\"{}\", std::env::args().count()); }' "
		      ">x.rs; echo 'pub fn f() {}' >l.rs; mkdir -p out",
		      NULL, NULL),
		0);
	for (size_t i = 0; i < AS_ARRAY_LEN(words); i++) {
		AS_CLEANUP(as_free_autop)
		char *script =
			as_xasprintf("rm -f out/x; $RUSTC_WRAPPER rustc --crate-name x x.rs "
				     "--emit=dep-info,link %s --out-dir out",
				     words[i]);
		AS_CLEANUP(as_free_autop) char *again = in_root("out/again");
		struct as_layout_kit *kit;
		struct as_error err = {0};

		build(script);
		kit = as_layout_find(&watch, program);
		if (!kit)
			fail_msg("%s", words[i]);
		assert_int_equal(as_layout_relink(kit, 0, again, &err), AS_OK);
		assert_int_equal(sh_in("cmp out/x out/again", NULL, NULL), 0);
		if (as_layout_relink(kit, 1, again, &err) < 0)
			fail_msg("%s", err.msg);
		assert_int_equal(sh_in("out/again", NULL, NULL), 0);
		as_layout_kit_free(kit);
	}
	build("$RUSTC_WRAPPER rustc --crate-name build_script_build x.rs --crate-type bin "
	      "--out-dir "
	      "out; $RUSTC_WRAPPER rustc --crate-name l l.rs --crate-type lib --out-dir out; "
	      "$RUSTC_WRAPPER rustc -vV");
	AS_CLEANUP(as_free_autop) char *script = in_root("out/build_script_build");

	assert_null(as_layout_find(&watch, script));
}

static void changed_code_is_not_the_same(void **state)
{
	AS_CLEANUP(as_free_autop) char *a = in_root("a"), *b = in_root("b");
	struct as_error err = {0};
	bool same = true;

	build("gcc -O2 -o a main.c other.c; gcc -O2 -o b main.c changed.c");
	assert_int_equal(as_layout_same_code(a, b, &same, &err), AS_OK);
	assert_false(same);
	build("gcc -O2 -o a main.c other.c; sed 's/\"%u/\"%x/' main.c >m2.c; gcc -O2 -o b "
	      "m2.c "
	      "other.c");
	assert_int_equal(as_layout_same_code(a, b, &same, &err), AS_OK);
	assert_false(same); /* another constant */
	assert_int_equal(as_layout_same_code("/etc/passwd", b, &same, &err), AS_E_FORMAT);
}

/* A switch becomes a table of distances to code, which differ where the code lies elsewhere. */
static void jump_tables_lead_to_the_same_places(void **state)
{
	AS_CLEANUP(as_free_autop)
	char *a = in_root("t1"), *b = in_root("t2"), *c = in_root("t3");
	struct as_error err = {0};
	bool same = false;

	build("cat >table.c <<'END'\n"
	      "#include <stdio.h>\n"
	      "int main(int argc, char **argv)\n"
	      "{\n"
	      "	switch (argc) {\n"
	      "	case 1: return puts(argv[0]); case 2: return putchar(argc);\n"
	      "	case 3: return fflush(stdout); case 4: return fputs(argv[1], stderr);\n"
	      "	case 5: return printf(\"%d\", argc); case 6: return getchar();\n"
	      "	default: return 0;\n"
	      "	}\n"
	      "}\n"
	      "END\n"
	      "printf '.section .text.unlikely,\"ax\"\\n.skip 48\\n' >pad.s\n"
	      "sed 's/case 2:/case 7:/; s/case 3:/case 2:/; s/case 7:/case 3:/' table.c "
	      ">other_table.c\n"
	      "gcc -O2 -o t1 table.c; gcc -O2 -o t2 pad.s table.c; gcc -O2 -o t3 pad.s "
	      "other_table.c");
	assert_int_equal(
		sh_in("readelf -x .rodata t1 >r1; readelf -x .rodata t2 >r2; ! cmp -s r1 r2",
		      NULL, NULL),
		0);
	assert_int_equal(as_layout_same_code(a, b, &same, &err), AS_OK);
	assert_true(same);
	assert_int_equal(as_layout_same_code(a, c, &same, &err), AS_OK);
	assert_false(same);
}

static void a_program_whose_link_was_not_seen_has_no_kit(void **state)
{
	AS_CLEANUP(as_free_autop) char *program = in_root("unseen");

	assert_int_equal(sh_in("gcc -O1 -o unseen main.c other.c", NULL, NULL), 0);
	assert_null(as_layout_find(&watch, program));
	assert_null(as_layout_find(&watch, "/nowhere"));
	/* a copy is found by its bytes */
	build("gcc -O2 -o first main.c other.c; cp first installed");
	AS_CLEANUP(as_free_autop) char *installed = in_root("installed");
	struct as_layout_kit *kit = as_layout_find(&watch, installed);

	assert_non_null(kit);
	as_layout_kit_free(kit);
}

static void a_link_that_fails_says_what_the_linker_said(void **state)
{
	AS_CLEANUP(as_free_autop) char *program = in_root("broken");
	AS_CLEANUP(as_free_autop) char *again = in_root("broken.1");
	struct as_layout_kit *kit;
	struct as_error err = {0};

	build("gcc -O2 -c other.c main.c; gcc -o broken main.o other.o -L. ");
	kit = as_layout_find(&watch, program);
	assert_non_null(kit);
	assert_int_equal(sh_in("for f in watch/kits/*/words; do "
			       "grep -q broken \"$f\" && printf 'x\\0' >>\"$f\"; done; true",
			       NULL, NULL),
			 0);
	as_layout_kit_free(kit);
	kit = as_layout_find(&watch, program);
	assert_int_equal(as_layout_relink(kit, 1, again, &err), AS_E_IO);
	assert_non_null(strstr(err.msg, "cannot find x"));
	as_layout_kit_free(kit);
}

static void the_verdict_is_of_builds(void **state)
{
	/* layouts differ by 3 %, the code does not */
	const double moved[] = {.021, -.015, .012, -.013, .017, -.008, .002, -.014};
	const double slower[] = {.041, .055, .032, .063, .047, .058, .052, .036};
	const double same[] = {.001, -.002, .0005, .0012, -.0004, .0002, -.001, .0};
	const double wide[] = {.08, -.04, .06, .05, -.02, .09, .01, .04};
	struct as_trimmed t;

	assert_int_equal(as_layout_judge(moved, 8, .042, .01, .05, &t), AS_BENCH_MOVED);
	assert_int_equal(as_layout_judge(slower, 8, .042, .01, .05, &t), AS_BENCH_SLOWER);
	assert_int_equal(as_layout_judge(same, 8, .042, .01, .05, &t), AS_BENCH_MOVED);
	assert_int_equal(as_layout_judge(wide, 8, .042, .01, .05, &t), AS_BENCH_UNDECIDED);
	assert_int_equal(as_layout_judge(slower, 3, .042, .01, .05, &t), AS_BENCH_UNDECIDED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(relinked_programs_do_the_same_elsewhere),
		cmocka_unit_test(programs_of_rustc_are_linked_again_too),
		cmocka_unit_test(changed_code_is_not_the_same),
		cmocka_unit_test(jump_tables_lead_to_the_same_places),
		cmocka_unit_test(a_program_whose_link_was_not_seen_has_no_kit),
		cmocka_unit_test(a_link_that_fails_says_what_the_linker_said),
		cmocka_unit_test(the_verdict_is_of_builds),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
