/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Sinks: what arrives, what a file holds before and after, what sticks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <zlib.h>
#include "base/mem.h"
#include "base/sink.h"
#include "base/sys.h"
#include "fixture.h"

static void write_numbers(struct as_sink *s, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		as_buf_addf(&s->out, "%u\n", i);
		as_sink_spill(s);
		assert_true(s->out.len < AS_SINK_PIECE);
	}
}

static void what_is_packed_unpacks_to_what_was_written(void **state)
{
	AS_CLEANUP(as_buf_clear) struct as_buf plain = {0}, packed = {0}, again = {0};
	struct as_sink s;
	z_stream z = {0};

	as_sink_init_buf(&s, &plain);
	write_numbers(&s, 100000);
	assert_int_equal(as_sink_finish(&s, NULL), 0);
	as_sink_clear(&s);
	for (int round = 0; round < 2; round++) {
		as_sink_init_buf(&s, round ? &again : &packed);
		as_sink_gzip(&s);
		write_numbers(&s, 100000);
		assert_int_equal(as_sink_finish(&s, NULL), 0);
		assert_int_equal(s.text_bytes, plain.len);
		assert_int_equal(s.bytes, packed.len);
		as_sink_clear(&s);
	}
	assert_int_equal(packed.len, again.len); /* no time stamp */
	assert_memory_equal(packed.p, again.p, packed.len);
	assert_true(packed.len < plain.len / 2);

	char *out = as_xmalloc(plain.len + 1);

	z.next_in = (uint8_t *)packed.p;
	z.avail_in = (unsigned)packed.len;
	z.next_out = (uint8_t *)out;
	z.avail_out = (unsigned)plain.len + 1;
	assert_int_equal(inflateInit2(&z, MAX_WBITS + 16), Z_OK);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.total_out, plain.len);
	assert_memory_equal(out, plain.p, plain.len);
	inflateEnd(&z);
	free(out);
}

static size_t file_size(const char *name)
{
	struct stat st;

	return stat(fx_path(name), &st) < 0 ? SIZE_MAX : (size_t)st.st_size;
}

static void a_file_is_replaced_only_when_whole(void **state)
{
	struct as_sink s;

	fx_write("old", "as it was");
	assert_int_equal(as_sink_open(&s, fx_path("old"), NULL), 0);
	write_numbers(&s, 50000);
	as_sink_clear(&s);
	assert_int_equal(file_size("old"), 9);
	assert_int_equal(as_sink_open(&s, fx_path("old"), NULL), 0);
	write_numbers(&s, 10);
	assert_int_equal(as_sink_finish(&s, NULL), 0);
	as_sink_clear(&s);
	assert_int_equal(file_size("old"), 20);
	assert_int_equal(fx_sh("test $(ls | grep -c tmp) = 0"), 0);
}

static void links_are_followed_and_devices_written_to(void **state)
{
	struct as_sink s;

	fx_write("target", "x");
	assert_int_equal(fx_sh("ln -s target link"), 0);
	assert_int_equal(as_sink_open(&s, fx_path("link"), NULL), 0);
	write_numbers(&s, 10);
	assert_int_equal(as_sink_finish(&s, NULL), 0);
	as_sink_clear(&s);
	assert_int_equal(file_size("target"), 20);
	assert_int_equal(fx_sh("test -L link"), 0);
}

static void the_first_failure_sticks(void **state)
{
	struct as_error err = {0};
	struct as_sink s;

	if (access("/dev/full", W_OK) != 0)
		skip();
	assert_int_equal(as_sink_open(&s, "/dev/full", &err), 0);
	as_sink_gzip(&s);
	write_numbers(&s, 200000);
	assert_int_equal(as_sink_status(&s), AS_E_IO);
	assert_int_equal(as_sink_finish(&s, &err), AS_E_IO);
	assert_int_equal(err.sys_errno, ENOSPC);
	assert_non_null(strstr(err.msg, "cannot write '/dev/full'"));
	as_sink_clear(&s);
	assert_int_equal(as_sink_open(&s, fx_path("no/such/folder"), &err), AS_E_IO);
	assert_int_equal(err.sys_errno, ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_packed_unpacks_to_what_was_written),
		cmocka_unit_test(a_file_is_replaced_only_when_whole),
		cmocka_unit_test(links_are_followed_and_devices_written_to),
		cmocka_unit_test(the_first_failure_sticks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
