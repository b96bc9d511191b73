/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Perf rings and their records, from bytes laid out as perf_event_open(2) documents them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/buf.h"
#include "collect/perf_event.h"

#define RING 4096u

struct fixture {
	struct perf_event_mmap_page page;
	_Alignas(8) uint8_t data[RING];
	struct as_perf_ring ring;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);

	as_perf_ring_over(&f->ring, &f->page, f->data, RING);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	as_perf_ring_clear(&f->ring);
	free(f);
	return 0;
}

static void put16(struct as_buf *b, uint16_t v)
{
	as_buf_add(b, &v, 2);
}

static void header(struct as_buf *b, uint32_t type, uint16_t misc)
{
	as_buf_reset(b);
	as_buf_le32(b, type);
	put16(b, misc);
	put16(b, 0);
}

static void trailer(struct as_buf *b, uint64_t time)
{
	as_buf_le32(b, 10); /* pid */
	as_buf_le32(b, 11); /* tid */
	as_buf_le64(b, time);
	as_buf_le64(b, 77); /* stream */
	as_buf_le32(b, 3);  /* cpu */
	as_buf_le32(b, 0);
	as_buf_le64(b, 70); /* id */
}

static void set_size(struct as_buf *b)
{
	uint16_t n = (uint16_t)b->len;

	memcpy(b->p + 6, &n, 2);
}

/* as the kernel does: bytes first, then the head */
static void produce(struct fixture *f, const struct as_buf *b)
{
	for (size_t i = 0; i < b->len; i++)
		f->data[(f->page.data_head + i) % RING] = (uint8_t)b->p[i];
	f->page.data_head += b->len;
}

static void lost_record(struct as_buf *b, uint64_t time, uint64_t count)
{
	header(b, PERF_RECORD_LOST, 0);
	as_buf_le64(b, 70);
	as_buf_le64(b, count);
	trailer(b, time);
	set_size(b);
}

static void sample_record(struct as_buf *b, uint64_t nips, uint64_t abi, uint64_t stack,
			  uint64_t dyn)
{
	header(b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL);
	as_buf_le64(b, 70);
	as_buf_le64(b, 0xffffffff81000000ull);
	as_buf_le32(b, 10);
	as_buf_le32(b, 11);
	as_buf_le64(b, 1234);
	as_buf_le64(b, 77);
	as_buf_le32(b, 3);
	as_buf_le32(b, 0);
	as_buf_le64(b, 1003009);
	as_buf_le64(b, nips);
	for (uint64_t i = 0; i < nips && i < 4; i++)
		as_buf_le64(b, 0xffffffff81000000ull + i);
	as_buf_le64(b, abi);
#if defined(__x86_64__)
	for (uint64_t i = 0; abi && i < 17; i++)
		as_buf_le64(b, 100 + i);
#else
	for (uint64_t i = 0; abi && i < 33; i++)
		as_buf_le64(b, 100 + i);
#endif
	as_buf_le64(b, stack);
	as_buf_fill(b, 's', (size_t)(stack < 64 ? stack : 64));
	if (stack)
		as_buf_le64(b, dyn);
	set_size(b);
}

static void a_record_that_wraps_around_the_end_arrives_whole(void **state)
{
	struct fixture *f = *state;
	struct as_buf b = {0};
	struct as_perf_rec rec;
	size_t n, seen = 0;
	const void *p;

	lost_record(&b, 5, 9); /* 64 bytes */
	f->page.data_head = f->page.data_tail = RING - 24;
	produce(f, &b);
	as_perf_ring_begin(&f->ring);
	while ((p = as_perf_ring_peek(&f->ring, &n))) {
		assert_int_equal(as_perf_record_time(p, n), 5);
		assert_int_equal(as_perf_parse(p, n, true, &rec), 0);
		assert_int_equal(rec.kind, AS_PERF_LOST);
		assert_int_equal(rec.count, 9);
		assert_int_equal(rec.cpu, 3);
		assert_int_equal(rec.stream_id, 77);
		as_perf_ring_pop(&f->ring);
		seen++;
	}
	assert_int_equal(seen, 1);
	assert_int_equal(f->page.data_tail, f->page.data_head);
	as_buf_clear(&b);
}

static void records_that_arrive_during_a_round_wait_for_the_next(void **state)
{
	struct fixture *f = *state;
	struct as_buf b = {0};
	size_t n;

	lost_record(&b, 5, 1);
	produce(f, &b);
	as_perf_ring_begin(&f->ring);
	produce(f, &b);
	assert_non_null(as_perf_ring_peek(&f->ring, &n));
	as_perf_ring_pop(&f->ring);
	assert_null(as_perf_ring_peek(&f->ring, &n));
	as_perf_ring_begin(&f->ring);
	assert_non_null(as_perf_ring_peek(&f->ring, &n));
	as_buf_clear(&b);
}

static void a_record_of_impossible_size_ends_the_round_and_is_counted(void **state)
{
	static const uint16_t sizes[] = {0, 4, 7, 12, 4104, 65535};
	struct fixture *f = *state;
	struct as_buf b = {0};
	size_t n;

	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		lost_record(&b, 5, 1);
		memcpy(b.p + 6, &sizes[i], 2);
		produce(f, &b);
		as_perf_ring_begin(&f->ring);
		assert_null(as_perf_ring_peek(&f->ring, &n));
		assert_int_equal(f->ring.damaged, i + 1);
		assert_int_equal(f->page.data_tail, f->page.data_head);
	}
	as_buf_clear(&b);
}

static void a_sample_gives_registers_by_dwarf_number_and_its_stack(void **state)
{
	struct as_buf b = {0};
	struct as_perf_rec rec;

	sample_record(&b, 2, PERF_SAMPLE_REGS_ABI_64, 64, 40);
	assert_int_equal(as_perf_parse(b.p, b.len, true, &rec), 0);
	assert_int_equal(rec.kind, AS_PERF_SAMPLE);
	assert_true(rec.kernel_mode);
	assert_true(rec.has_regs);
	assert_int_equal(rec.time_ns, 1234);
	assert_int_equal(as_perf_record_time(b.p, b.len), 1234);
	assert_int_equal(rec.period, 1003009);
	assert_int_equal(rec.nips, 2);
	assert_int_equal(rec.nstack, 40); /* what was really copied */
	assert_int_equal(rec.stack[0], 's');
#if defined(__x86_64__)
	assert_int_equal(rec.regs.r[7], 107);  /* rsp */
	assert_int_equal(rec.regs.r[6], 106);  /* rbp */
	assert_int_equal(rec.regs.r[16], 108); /* rip */
	assert_int_equal(rec.regs.r[1], 103);  /* rdx */
	assert_int_equal(rec.regs.r[15], 116);
#endif
	as_buf_clear(&b);
}

static void a_sample_without_user_registers_has_no_stack(void **state)
{
	struct as_buf b = {0};
	struct as_perf_rec rec;

	sample_record(&b, 1, PERF_SAMPLE_REGS_ABI_NONE, 0, 0);
	assert_int_equal(as_perf_parse(b.p, b.len, true, &rec), 0);
	assert_false(rec.has_regs);
	assert_int_equal(rec.nstack, 0);
	as_buf_clear(&b);
}

static void counts_inside_a_sample_cannot_lead_beyond_it(void **state)
{
	struct as_buf b = {0};
	struct as_perf_rec rec;

	sample_record(&b, 1ull << 61, PERF_SAMPLE_REGS_ABI_64, 64, 64);
	assert_int_equal(as_perf_parse(b.p, b.len, true, &rec), AS_E_FORMAT);
	sample_record(&b, 1, PERF_SAMPLE_REGS_ABI_64, UINT64_MAX - 7, 64);
	assert_int_equal(as_perf_parse(b.p, b.len, true, &rec), AS_E_FORMAT);
	sample_record(&b, 1, PERF_SAMPLE_REGS_ABI_64, 64, UINT64_MAX);
	assert_int_equal(as_perf_parse(b.p, b.len, true, &rec), 0);
	assert_int_equal(rec.nstack, 64);
	as_buf_clear(&b);
}

static void every_prefix_of_a_record_is_refused_or_read_within_bounds(void **state)
{
	struct as_buf b = {0};
	struct as_perf_rec rec;

	sample_record(&b, 2, PERF_SAMPLE_REGS_ABI_64, 64, 40);
	for (size_t n = 0; n < b.len; n++) {
		/* so that a sanitizer sees a byte too far */
		uint8_t *exact = malloc(n ? n : 1);
		uint16_t size = (uint16_t)n;

		memcpy(exact, b.p, n);
		if (n >= 8)
			memcpy(exact + 6, &size, 2);
		assert_int_equal(as_perf_parse(exact, n, true, &rec), AS_E_FORMAT);
		free(exact);
	}
	as_buf_clear(&b);
}

static void mmap_comm_fork_and_throttle_records_are_told_apart(void **state)
{
	struct as_buf b = {0};
	struct as_perf_rec rec;

	header(&b, PERF_RECORD_MMAP2, 0);
	as_buf_le32(&b, 20);
	as_buf_le32(&b, 21);
	as_buf_le64(&b, 0x400000);
	as_buf_le64(&b, 0x1000);
	as_buf_le64(&b, 0x2000);
	as_buf_le32(&b, 8);
	as_buf_le32(&b, 1);
	as_buf_le64(&b, 4711);
	as_buf_le64(&b, 1);
	as_buf_le32(&b, 5);
	as_buf_le32(&b, 2);
	as_buf_add(&b, "/bin/x y\0\0\0\0\0\0\0\0", 16);
	trailer(&b, 50);
	set_size(&b);
	assert_int_equal(as_perf_parse(b.p, b.len, true, &rec), 0);
	assert_int_equal(rec.kind, AS_PERF_MMAP);
	assert_int_equal(rec.pid, 20);
	assert_int_equal(rec.ino, 4711);
	assert_int_equal(rec.prot, 5);
	assert_string_equal(rec.text, "/bin/x y");

	header(&b, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
	as_buf_le32(&b, 20);
	as_buf_le32(&b, 20);
	as_buf_add(&b, "name\0\0\0\0", 8);
	trailer(&b, 51);
	set_size(&b);
	assert_int_equal(as_perf_parse(b.p, b.len, true, &rec), 0);
	assert_int_equal(rec.kind, AS_PERF_COMM);
	assert_true(rec.exec);
	assert_string_equal(rec.text, "name");

	header(&b, PERF_RECORD_FORK, 0);
	as_buf_le32(&b, 31);
	as_buf_le32(&b, 30);
	as_buf_le32(&b, 31);
	as_buf_le32(&b, 30);
	as_buf_le64(&b, 52);
	trailer(&b, 52);
	set_size(&b);
	assert_int_equal(as_perf_parse(b.p, b.len, true, &rec), 0);
	assert_int_equal(rec.kind, AS_PERF_FORK);
	assert_int_equal(rec.pid, 31);
	assert_int_equal(rec.ppid, 30);

	header(&b, PERF_RECORD_THROTTLE, 0);
	as_buf_fill(&b, 0, 24);
	trailer(&b, 53);
	set_size(&b);
	assert_int_equal(as_perf_parse(b.p, b.len, true, &rec), 0);
	assert_int_equal(rec.kind, AS_PERF_THROTTLE);
	as_buf_clear(&b);
}

static void a_name_without_an_end_is_refused(void **state)
{
	struct as_buf b = {0};
	struct as_perf_rec rec;

	header(&b, PERF_RECORD_COMM, 0);
	as_buf_le32(&b, 20);
	as_buf_le32(&b, 20);
	as_buf_add(&b, "endless!", 8);
	trailer(&b, 51);
	set_size(&b);
	assert_int_equal(as_perf_parse(b.p, b.len, true, &rec), AS_E_FORMAT);
	as_buf_clear(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_record_that_wraps_around_the_end_arrives_whole, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			records_that_arrive_during_a_round_wait_for_the_next, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			a_record_of_impossible_size_ends_the_round_and_is_counted, set_up,
			tear_down),
		cmocka_unit_test(a_sample_gives_registers_by_dwarf_number_and_its_stack),
		cmocka_unit_test(a_sample_without_user_registers_has_no_stack),
		cmocka_unit_test(counts_inside_a_sample_cannot_lead_beyond_it),
		cmocka_unit_test(every_prefix_of_a_record_is_refused_or_read_within_bounds),
		cmocka_unit_test(mmap_comm_fork_and_throttle_records_are_told_apart),
		cmocka_unit_test(a_name_without_an_end_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
