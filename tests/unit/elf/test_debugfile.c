/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Where debug information is found, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "fixture.h"
#include "elf/debugfile.h"

static const char *dirs[2]; /* the scratch directory's debug/ */

static struct as_elf *open_fixture(const char *name)
{
	struct as_error err = {0};
	struct as_elf *e = NULL;

	if (as_elf_open(fx_path(name), &e, &err) < 0)
		fail_msg("%s", err.msg);
	return e;
}

/* A fresh program p with its full copy in full, and an empty debug directory. */
static void make_program(void **st)
{
	fx_need("gcc");
	fx_need("objcopy");
	fx_write("p.c", "struct point { int x, y; }; struct point origin;\n"
			"int area(struct point *p) { return p->x * p->y; }\n"
			"int main(void) { return area(&origin); }");
	assert_int_equal(fx_sh("rm -rf debug .debug p.dbg; mkdir debug;"
			       "gcc -g p.c -o full && cp full p"),
			 0);
	dirs[0] = fx_path("debug");
}

static struct as_elf *search(struct as_elf *obj, const char *root, const char *path,
			     struct as_buf *tried)
{
	struct as_debug_search s = {.debug_dirs = dirs, .root = root, .object_path = path};
	struct as_elf *ret = obj;

	as_buf_reset(tried);
	assert_int_equal(as_debugfile_find(obj, &s, &ret, tried, NULL), AS_OK);
	return ret;
}

/* The debug file found for p must hold its .debug_info and share its build-id. */
static void check_found(const char *must_be_tried)
{
	struct as_elf *obj = open_fixture("p"), *dbg;
	struct as_buf tried = {0};
	const uint8_t *p;
	size_t n;

	dbg = search(obj, NULL, NULL, &tried);
	if (!dbg)
		fail_msg("nothing found:\n%s", as_buf_str(&tried));
	assert_non_null(strstr(tried.p, must_be_tried));
	assert_non_null(strstr(tried.p, ": used\n"));
	assert_int_equal(as_elf_section_data(dbg, ".debug_info", &p, &n, NULL), AS_OK);
	as_elf_close(dbg);
	as_elf_close(obj);
	as_buf_clear(&tried);
}

static void check_refused(const char *reason)
{
	struct as_elf *obj = open_fixture("p");
	struct as_buf tried = {0};

	assert_null(search(obj, NULL, NULL, &tried));
	if (!strstr(as_buf_str(&tried), reason))
		fail_msg("'%s' is not in:\n%s", reason, as_buf_str(&tried));
	as_elf_close(obj);
	as_buf_clear(&tried);
}

#define INTO_BUILD_ID                                                                          \
	"id=$(readelf -n full | sed -n 's/.*Build ID: //p');"                                  \
	"d=debug/.build-id/$(echo $id | cut -c1-2); f=$d/$(echo $id | cut -c3-).debug; mkdir " \
	"-p $d;"

static void an_object_with_its_own_information_needs_no_other(void **st)
{
	struct as_buf tried = {0};
	struct as_elf *obj;

	make_program(st);
	obj = open_fixture("p");
	assert_null(search(obj, NULL, NULL, &tried));
	assert_non_null(strstr(tried.p, "has its own debug information"));
	as_elf_close(obj);
	as_buf_clear(&tried);
}

static void a_build_id_directory_is_searched(void **st)
{
	make_program(st);
	fx_need("readelf");
	assert_int_equal(fx_sh(INTO_BUILD_ID "objcopy --only-keep-debug full $f && strip -g p"),
			 0);
	check_found("/.build-id/");
}

static void a_foreign_build_id_is_refused(void **st)
{
	make_program(st);
	fx_need("readelf");
	assert_int_equal(fx_sh(INTO_BUILD_ID
			       "echo 'int main(void){return 7;}' > q.c; gcc -g q.c -o q &&"
			       "objcopy --only-keep-debug q $f && strip -g p"),
			 0);
	check_refused("refused: its build-id is another one");
}

static void a_file_without_information_is_refused(void **st)
{
	make_program(st);
	fx_need("readelf");
	assert_int_equal(fx_sh(INTO_BUILD_ID "strip -s full -o $f && strip -g p"), 0);
	check_refused("refused: it holds no debug information");
}

static void a_debuglink_is_followed_to_all_three_places(void **st)
{
	static const char *const places[] = {".", ".debug", "debug/$PWD"};

	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		make_program(st);
		assert_int_equal(
			fx_sh("objcopy --only-keep-debug full p.dbg && strip -g p &&"
			      "objcopy --add-gnu-debuglink=p.dbg p &&"
			      "mkdir -p %s && mv p.dbg %s/moved && mv %s/moved %s/p.dbg",
			      places[i], places[i], places[i], places[i]),
			0);
		check_found("p.dbg");
	}
}

static void a_debuglink_with_a_wrong_crc_is_refused(void **st)
{
	make_program(st);
	assert_int_equal(fx_sh("objcopy --only-keep-debug full p.dbg && strip -g p &&"
			       "objcopy --add-gnu-debuglink=p.dbg p && echo x >> p.dbg"),
			 0);
	check_refused("p.dbg: refused: its CRC is not the one the object names");
}

static void a_debuglink_may_not_name_a_path(void **st)
{
	make_program(st);
	assert_int_equal(fx_sh("printf '../../etc/passwd\\0\\0\\0\\0\\1\\2\\3\\4' > link;"
			       "objcopy --add-section .gnu_debuglink=link p; strip -g p"),
			 0);
	check_refused(".gnu_debuglink: damaged");
}

static void links_inside_a_root_stay_inside(void **st)
{
	struct as_buf tried = {0};
	struct as_elf *obj, *dbg;
	int fd;

	make_program(st);
	assert_int_equal(
		fx_sh("rm -rf r; mkdir -p r/opt r/real; objcopy --only-keep-debug full "
		      "p.dbg; strip -g p; objcopy --add-gnu-debuglink=p.dbg p;"
		      "mv p.dbg r/real/; ln -s /real/p.dbg r/opt/p.dbg;"
		      "ln -s /etc/hostname r/opt/host"),
		0);
	obj = open_fixture("p");
	dbg = search(obj, fx_path("r"), "/opt/p", &tried);
	assert_non_null(dbg);
	as_elf_close(dbg);
	as_elf_close(obj);
	as_buf_clear(&tried);
	fd = as_open_in_root(fx_path("r"), "/opt/host");
	assert_true(fd < 0);
	fd = as_open_in_root(fx_path("r"), "../../../../../../etc/hostname");
	assert_true(fd < 0);
}

static void mini_information_is_mentioned(void **st)
{
	make_program(st);
	fx_need("xz");
	assert_int_equal(fx_sh("objcopy --strip-debug full m && xz -f -k m && strip -s p &&"
			       "objcopy --add-section .gnu_debugdata=m.xz p"),
			 0);
	check_refused("mini debug information: function names only");
}

static void common_file(const char *dwz_args, bool other_id)
{
	struct as_debug_search s = {.debug_dirs = dirs};
	struct as_elf *dbg, *alt = NULL;
	struct as_buf tried = {0};
	const uint8_t *p;
	size_t n;

	make_program(NULL);
	fx_need("dwz");
	assert_int_equal(fx_sh("cp full a; cp full b; rm -f common; dwz %s a b", dwz_args), 0);
	if (other_id)
		assert_int_equal(fx_sh("sed 's/area/size/g' p.c > q.c; gcc -g q.c -o qa;"
				       "cp qa qb; dwz -m common qa qb"),
				 0);
	dbg = open_fixture("a");
	assert_int_equal(as_debugfile_alt(dbg, &s, &alt, &tried, NULL), AS_OK);
	if (other_id) {
		assert_null(alt);
		assert_non_null(strstr(tried.p, "its build-id is another one"));
	} else {
		if (!alt)
			fail_msg("not found:\n%s", as_buf_str(&tried));
		/* two small programs share strings only */
		assert_int_equal(as_elf_section_data(alt, ".debug_str", &p, &n, NULL), AS_OK);
	}
	as_elf_close(alt);
	as_elf_close(dbg);
	as_buf_clear(&tried);
}

static void a_common_file_is_found_by_a_relative_path(void **st)
{
	common_file("-m common -r", false);
}

static void a_common_file_is_found_by_an_absolute_path(void **st)
{
	common_file("-m common -M $PWD/common", false);
}

static void a_common_file_is_found_by_its_build_id(void **st)
{
	struct as_debug_search s = {.debug_dirs = dirs};
	struct as_elf *dbg, *alt = NULL;

	make_program(st);
	fx_need("dwz");
	fx_need("readelf");
	assert_int_equal(fx_sh("cp full a; cp full b; rm -f common; dwz -m common -M "
			       "/nowhere/common a b &&"
			       "mv common full && " INTO_BUILD_ID "mv full $f"),
			 0);
	dbg = open_fixture("a");
	assert_int_equal(as_debugfile_alt(dbg, &s, &alt, NULL, NULL), AS_OK);
	assert_non_null(alt);
	as_elf_close(alt);
	as_elf_close(dbg);
}

static void a_common_file_of_another_program_is_refused(void **st)
{
	common_file("-m common -M common", true);
}

static void an_object_without_a_common_file_asks_for_none(void **st)
{
	struct as_debug_search s = {.debug_dirs = dirs};
	struct as_elf *dbg, *alt;

	make_program(st);
	dbg = open_fixture("full");
	alt = dbg;
	assert_int_equal(as_debugfile_alt(dbg, &s, &alt, NULL, NULL), AS_OK);
	assert_null(alt);
	as_elf_close(dbg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_object_with_its_own_information_needs_no_other),
		cmocka_unit_test(a_build_id_directory_is_searched),
		cmocka_unit_test(a_foreign_build_id_is_refused),
		cmocka_unit_test(a_file_without_information_is_refused),
		cmocka_unit_test(a_debuglink_is_followed_to_all_three_places),
		cmocka_unit_test(a_debuglink_with_a_wrong_crc_is_refused),
		cmocka_unit_test(a_debuglink_may_not_name_a_path),
		cmocka_unit_test(links_inside_a_root_stay_inside),
		cmocka_unit_test(mini_information_is_mentioned),
		cmocka_unit_test(a_common_file_is_found_by_a_relative_path),
		cmocka_unit_test(a_common_file_is_found_by_an_absolute_path),
		cmocka_unit_test(a_common_file_is_found_by_its_build_id),
		cmocka_unit_test(a_common_file_of_another_program_is_refused),
		cmocka_unit_test(an_object_without_a_common_file_asks_for_none),
	};

	return cmocka_run_group_tests_name("debugfile", tests, NULL, NULL);
}
