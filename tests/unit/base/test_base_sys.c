/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* base: files, folders and clocks of the real system, in a folder of its own. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"

static char folder[] = "/tmp/assay-test-XXXXXX";

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static int make_folder(void **state)
{
	return mkdtemp(folder) ? chdir(folder) : -1;
}

static int remove_folder(void **state)
{
	return chdir("/") < 0 ? -1 : nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static void an_atomic_write_reads_back_and_leaves_no_rest(void **state)
{
	struct as_error err;
	struct as_buf b = {0};

	assert_int_equal(as_write_file_atomic("f", "one", 3, &err), 0);
	assert_int_equal(as_write_file_atomic("f", "a\0b", 3, &err), 0);
	as_buf_adds(&b, "before:");
	assert_int_equal(as_read_file("f", 3, &b, &err), 0);
	assert_int_equal(b.len, 10);
	assert_memory_equal(b.p, "before:a\0b", 11);
	as_buf_clear(&b);

	AS_CLEANUP(as_free_autop) char *tmp = as_xasprintf("f.tmp.%d", (int)getpid());

	assert_int_equal(access(tmp, F_OK), -1);
}

static void a_file_over_the_limit_is_refused(void **state)
{
	struct as_error err;
	struct as_buf b = {0};

	assert_int_equal(as_write_file_atomic("big", "12345", 5, &err), 0);
	assert_int_equal(as_read_file("big", 4, &b, &err), AS_E_LIMIT);
	assert_non_null(strstr(err.msg, "'big'"));
	assert_true(b.len <= 4);
	as_buf_reset(&b);
	assert_int_equal(as_read_file("/dev/zero", 100000, &b, &err), AS_E_LIMIT);
	assert_int_equal(b.len, 100000);
	as_buf_clear(&b);
}

static void files_of_unknown_size_are_read_whole(void **state)
{
	struct as_error err;
	struct as_buf b = {0};

	assert_int_equal(as_read_file("/proc/self/maps", 1 << 20, &b, &err), 0);
	assert_non_null(strstr(as_buf_str(&b), "test_base_sys"));
	as_buf_clear(&b);
}

static void a_missing_file_is_named(void **state)
{
	struct as_error err;
	struct as_buf b = {0};

	assert_int_equal(as_read_file("nowhere", 10, &b, &err), AS_E_NOTFOUND);
	assert_int_equal(err.sys_errno, ENOENT);
	assert_string_equal(err.msg, "cannot open 'nowhere': No such file or directory");
	assert_true(as_write_file_atomic("no/such/folder", "x", 1, &err) < 0);
	assert_non_null(strstr(err.msg, "no/such/folder"));
	as_buf_clear(&b);
}

static void a_full_disk_is_an_error(void **state)
{
	struct as_error err;
	AS_CLEANUP(as_close_autop) int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		skip();
	assert_int_equal(as_write_all(fd, "x", 1, &err), AS_E_IO);
	assert_int_equal(err.sys_errno, ENOSPC);
}

static void a_short_file_gives_no_data(void **state)
{
	char two[2];

	assert_int_equal(as_write_file_atomic("short", "abc", 3, NULL), 0);

	AS_CLEANUP(as_close_autop) int fd = open("short", O_RDONLY | O_CLOEXEC);

	assert_int_equal(as_pread_all(fd, two, 2, 1), 0);
	assert_memory_equal(two, "bc", 2);
	assert_int_equal(as_pread_all(fd, two, 2, 2), -ENODATA);
	assert_int_equal(as_pread_all(-1, two, 2, 0), -EBADF);
}

static void folders_are_made_with_their_parents(void **state)
{
	struct as_error err;
	struct stat st;

	assert_int_equal(as_mkdir_parents("a/b//c/", &err), 0);
	assert_int_equal(as_mkdir_parents("a/b/c", &err), 0);
	assert_int_equal(stat("a/b/c", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(as_write_file_atomic("file", "", 0, NULL), 0);
	assert_true(as_mkdir_parents("file", &err) < 0);
	assert_true(as_mkdir_parents("file/sub", &err) < 0);
	assert_true(as_mkdir_parents("", &err) < 0);
}

static void the_cache_follows_the_environment(void **state)
{
	AS_CLEANUP(as_free_autop) char *want = as_xasprintf("%s/xdg/assay", folder);
	AS_CLEANUP(as_free_autop) char *xdg = as_xasprintf("%s/xdg", folder);

	setenv("XDG_CACHE_HOME", xdg, 1);
	setenv("HOME", folder, 1);

	AS_CLEANUP(as_free_autop) char *dir = as_cache_dir();

	assert_string_equal(dir, want);
	setenv("XDG_CACHE_HOME", "relative", 1);

	AS_CLEANUP(as_free_autop) char *home = as_cache_dir();

	assert_non_null(strstr(home, "/.cache/assay"));
	unsetenv("XDG_CACHE_HOME");
	setenv("HOME", "/proc/nowhere", 1);
	assert_null(as_cache_dir());
	unsetenv("HOME");
	assert_null(as_cache_dir());
}

static void clocks_run_forward(void **state)
{
	uint64_t t = as_now_ns(), cpu = as_self_cpu_ns();

	for (volatile int i = 0; i < 2000000; i++)
		;
	assert_true(as_now_ns() > t);
	assert_true(as_self_cpu_ns() > cpu);
	assert_true(as_realtime_ns() > 1600000000000000000u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_atomic_write_reads_back_and_leaves_no_rest),
		cmocka_unit_test(a_file_over_the_limit_is_refused),
		cmocka_unit_test(files_of_unknown_size_are_read_whole),
		cmocka_unit_test(a_missing_file_is_named),
		cmocka_unit_test(a_full_disk_is_an_error),
		cmocka_unit_test(a_short_file_gives_no_data),
		cmocka_unit_test(folders_are_made_with_their_parents),
		cmocka_unit_test(the_cache_follows_the_environment),
		cmocka_unit_test(clocks_run_forward),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
