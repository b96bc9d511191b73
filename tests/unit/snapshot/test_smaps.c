/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Mappings and their pages: as the kernel writes them, cut anywhere, and of this process itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "snapshot/smaps.h"

enum { PAGE = 4096 };

static const char text[] =
	"555500000000-555500002000 r-xp 00001000 fe:00 1234      /usr/bin/a program (deleted)\n"
	"Size:                  8 kB\n"
	"Rss:                   8 kB\n"
	"Swap:                  0 kB\n"
	"VmFlags: rd ex mr mw me \n"
	"555500005000-555500008000 rw-p 00000000 00:00 0          [heap]\n"
	"Rss:                   4 kB\n"
	"Swap:                  8 kB\n"
	"7f0000000000-7f0000001000 ---p 00000000 00:00 0\n"
	"Rss:                   0 kB\n"
	"7f0000001000-7f0000004000 rw-p 00000000 00:00 0\n"
	"Rss:                  12 kB\n"
	"7f0000004000-7f0000005000 rw-p 00000000 00:00 0          [anon: glibc: malloc arena]\n"
	"7f0000005000-7f0000006000 rw-s 00000000 00:05 9          /dev/gpu\n"
	"VmFlags: rd wr sh io pf \n"
	"7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0          [stack]\n"
	"7ffd00022000-7ffd00024000 r-xp 00000000 00:00 0          [vdso]\n"
	"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0  [vsyscall]\n";

static void each_kind_of_line_is_read(void **state)
{
	AS_CLEANUP(as_free_autop) char *copy = as_xstrdup(text);
	static const uint8_t kind[] = {AS_SMAP_FILE,      AS_SMAP_HEAP,      AS_SMAP_ANONYMOUS,
				       AS_SMAP_ANONYMOUS, AS_SMAP_ANONYMOUS, AS_SMAP_FILE,
				       AS_SMAP_STACK,     AS_SMAP_SPECIAL,   AS_SMAP_SPECIAL};
	struct as_smaps m;

	(void)state;
	as_smaps_parse(copy, &m);
	assert_int_equal(m.map.n, AS_ARRAY_LEN(kind));
	for (size_t i = 0; i < m.map.n; i++)
		assert_int_equal(m.map.v[i].kind, kind[i]);
	assert_string_equal(m.map.v[0].path, "/usr/bin/a program (deleted)");
	assert_int_equal(m.map.v[0].off, 0x1000);
	assert_true(m.map.v[0].exec && m.map.v[0].read && !m.map.v[0].write);
	assert_int_equal(m.map.v[1].swapped_bytes, 8192);
	assert_int_equal(m.map.v[3].rss_bytes, 12288);
	assert_false(m.map.v[2].read);
	assert_true(m.map.v[5].device && m.map.v[5].shared);
	assert_null(as_smaps_find(&m, 0x555500002000));
	assert_ptr_equal(as_smaps_find(&m, 0x555500007fff), &m.map.v[1]);
	as_smaps_clear(&m);
}

static void text_cut_anywhere_is_read_as_far_as_it_goes(void **state)
{
	(void)state;
	for (size_t cut = 0; cut < sizeof text; cut++) {
		char *copy = as_xstrndup(text, cut);
		struct as_smaps m;

		as_smaps_parse(copy, &m);
		assert_true(m.map.n <= 9);
		as_smaps_clear(&m);
		free(copy);
	}
}

static void pages_of_this_process(void **state)
{
	const size_t bytes = 1000 * PAGE;
	uint8_t *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t at = (uintptr_t)p;
	struct as_leak_range part;
	struct as_smaps m;
	struct as_smap *it;

	(void)state;
	assert_ptr_not_equal(p, MAP_FAILED);
	(void)madvise(p, bytes, MADV_NOHUGEPAGE);
	p[10 * PAGE] = 1;
	p[11 * PAGE + 5] = 1;
	p[500 * PAGE] = 1;
	assert_int_equal(as_smaps_read(getpid(), &m, NULL), 0);
	as_smaps_pages(&m, getpid(), AS_SMAPS_ALL);
	it = as_smaps_find(&m, at);
	assert_non_null(it);
	if (!it->present)
		skip(); /* no pagemap here */
	assert_int_equal(as_smap_resident(it, at, at + bytes), 3 * PAGE);
	assert_int_equal(as_smap_resident(it, at + 10 * PAGE + 100, at + 11 * PAGE + 7),
			 PAGE - 100 + 7);
	assert_int_equal(as_smap_resident(it, at + 11 * PAGE + 10, at + 11 * PAGE + 30), 20);
	assert_int_equal(as_smap_resident(it, at + 12 * PAGE, at + 500 * PAGE), 0);
	assert_true(as_smap_next(it, at, at + bytes, &part));
	assert_int_equal(part.low, at + 10 * PAGE);
	assert_int_equal(part.high, at + 12 * PAGE);
	assert_true(as_smap_next(it, part.high, at + bytes, &part));
	assert_int_equal(part.low, at + 500 * PAGE);
	assert_true(as_smap_next(it, at + 500 * PAGE + 9, at + 500 * PAGE + 17, &part));
	assert_int_equal(part.low, at + 500 * PAGE + 9);
	assert_int_equal(part.high, at + 500 * PAGE + 17);
	assert_false(as_smap_next(it, at + 501 * PAGE, at + bytes, &part));
	as_smaps_clear(&m);
	munmap(p, bytes);
}

static void what_the_kernel_counts_is_what_the_pages_are(void **state)
{
	struct as_smaps m;
	uint64_t pages = 0, rss = 0;

	(void)state;
	assert_int_equal(as_smaps_read(getpid(), &m, NULL), 0);
	as_smaps_pages(&m, getpid(), AS_SMAPS_ALL);
	as_vec_foreach (it, &m.map) {
		if (it->kind != AS_SMAP_ANONYMOUS && it->kind != AS_SMAP_HEAP)
			continue;
		rss += it->rss_bytes;
		pages += it->present ? as_smap_resident(it, it->low, it->high) : it->rss_bytes;
	}
	/* the reading itself touches some */
	assert_in_range(pages + 64 * PAGE, rss - rss / 8, rss + rss / 8 + 128 * PAGE);
	as_smaps_clear(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_of_line_is_read),
		cmocka_unit_test(text_cut_anywhere_is_read_as_far_as_it_goes),
		cmocka_unit_test(pages_of_this_process),
		cmocka_unit_test(what_the_kernel_counts_is_what_the_pages_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
