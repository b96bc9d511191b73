/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "fixture.h"
#include "base/map.h"
#include "base/mem.h"
#include "symbol/kallsyms.h"

static const char text[] = "ffffffff81000000 T _stext\n"
			   "ffffffff81000000 T _text\n"
			   "ffffffff81000100 T do_sys_open\n"
			   "ffffffff81000100 T __do_sys_open\n"
			   "ffffffff81000180 t helper.cold\n"
			   "ffffffff81000200 W weak_one\n"
			   "ffffffff81000300 T _etext\n"
			   "ffffffff82000000 D jiffies\n"
			   "0000000000005000 A cpu_offset\n"
			   "ffffffffc0001000 t nf_hook	[nf_tables]\n"
			   "ffffffffc0001040 t nf_next	[nf_tables]\n"
			   "ffffffffc0002000 t bpf_prog_1234_main	[bpf]\n";

static struct as_kallsyms *parse(const char *s)
{
	struct as_kallsyms *k = NULL;

	assert_int_equal(as_kallsyms_parse(s, strlen(s), &k, NULL), 0);
	return k;
}

static void check(const struct as_kallsyms *k, uint64_t addr, const char *name,
		  const char *module)
{
	const char *m = "unset", *got;
	uint64_t start = 0;

	got = as_kallsyms_find(k, addr, &start, &m);
	if (!name) {
		assert_null(got);
		return;
	}
	assert_non_null(got);
	assert_string_equal(got, name);
	assert_true(start <= addr);
	if (module)
		assert_string_equal(m, module);
	else
		assert_null(m);
}

static void an_address_finds_its_function_and_module(void **st)
{
	struct as_kallsyms *k = parse(text);

	assert_false(as_kallsyms_hidden(k));
	check(k, 0xffffffff81000100, "do_sys_open", NULL);
	check(k, 0xffffffff8100017f, "do_sys_open", NULL);
	check(k, 0xffffffff81000180, "helper.cold", NULL);
	check(k, 0xffffffff810002ff, "weak_one", NULL);
	check(k, 0xffffffffc0001041, "nf_next", "nf_tables");
	check(k, 0xffffffffc0002010, "bpf_prog_1234_main", "bpf");
	as_kallsyms_free(k);
}

static void marks_and_data_name_nothing_but_end_functions(void **st)
{
	struct as_kallsyms *k = parse(text);

	check(k, 0xffffffff81000000, NULL, NULL);
	check(k, 0xffffffff81000300, NULL, NULL);
	check(k, 0xffffffff82000000, NULL, NULL);
	check(k, 0x5000, NULL, NULL);
	check(k, 0, NULL, NULL);
	check(k, UINT64_MAX, NULL, NULL);
	as_kallsyms_free(k);
}

static void zeroed_addresses_are_told_as_hidden(void **st)
{
	struct as_kallsyms *k =
		parse("0000000000000000 T _stext\n0000000000000000 t vfs_read\n");

	assert_true(as_kallsyms_hidden(k));
	check(k, 0, NULL, NULL);
	check(k, 0xffffffff81000000, NULL, NULL);
	as_kallsyms_free(k);
	k = parse("");
	assert_false(as_kallsyms_hidden(k));
	as_kallsyms_free(k);
}

static void damaged_lines_are_skipped(void **st)
{
	struct as_kallsyms *k =
		parse("garbage\n\n \nffffffff81000000\nffffffff81000000 T\n"
		      "ffffffff81000000 T \nfffffffffffffffff T too_wide\n"
		      "ffffffff81000010 T good\nffffffff81000020 t last [broken");

	check(k, 0xffffffff81000010, "good", NULL);
	check(k, 0xffffffff81000020, "last", NULL);
	as_kallsyms_free(k);
}

static void random_bytes_are_survived(void **st)
{
	static const char alphabet[] = "ffff0189abc T t\n\t[]W ";
	uint64_t seed = 11;
	char buf[400];

	for (int round = 0; round < 3000; round++) {
		struct as_kallsyms *k;
		size_t n = (size_t)round % sizeof buf;

		for (size_t i = 0; i < n; i++) {
			seed = as_mix64(seed + 0x9e3779b97f4a7c15ull);
			buf[i] = seed % 50 ? alphabet[seed % (sizeof alphabet - 1)]
					   : (char)(seed >> 9);
		}
		assert_int_equal(as_kallsyms_parse(buf, n, &k, NULL), 0);
		as_kallsyms_find(k, seed, NULL, NULL);
		as_kallsyms_find(k, 0xfff, NULL, NULL);
		as_kallsyms_free(k);
	}
}

static void the_running_kernel_is_read(void **st)
{
	struct as_kallsyms *k;
	const char *name;
	uint64_t addr = 0, start;
	char line[512];
	FILE *f = fopen("/proc/kallsyms", "r");

	if (!f)
		fx_skip("no /proc/kallsyms here");
	while (fgets(line, sizeof line, f)) {
		char sym[256], type;
		unsigned long a;

		if (sscanf(line, "%lx %c %255s", &a, &type, sym) == 3 &&
		    strcmp(sym, "vfs_read") == 0)
			addr = a;
	}
	fclose(f);
	assert_int_equal(as_kallsyms_load(NULL, &k, NULL), 0);
	if (as_kallsyms_hidden(k)) {
		as_kallsyms_free(k);
		fx_skip("kernel addresses are hidden here");
	}
	if (addr) {
		name = as_kallsyms_find(k, addr + 1, &start, NULL);
		assert_non_null(name);
		assert_string_equal(name, "vfs_read");
		assert_int_equal(start, addr);
	}
	as_kallsyms_free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_finds_its_function_and_module),
		cmocka_unit_test(marks_and_data_name_nothing_but_end_functions),
		cmocka_unit_test(zeroed_addresses_are_told_as_hidden),
		cmocka_unit_test(damaged_lines_are_skipped),
		cmocka_unit_test(random_bytes_are_survived),
		cmocka_unit_test(the_running_kernel_is_read),
	};

	return cmocka_run_group_tests_name("kallsyms", tests, NULL, NULL);
}
