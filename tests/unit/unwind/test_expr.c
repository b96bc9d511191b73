/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The DWARF expression evaluator: each operation by its value, and what must be refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "unwind/expr_priv.h"
#include "base/err.h"
#include "base/mem.h"

static const uint64_t memory[4] = {0x1122334455667788, 0xfedcba9876543210, 0x2000, 0x3000};
#define MEMORY_AT 0x5000

static int read_memory(void *ctx, uint64_t avma, void *out, size_t n)
{
	if (avma == 0x9000)
		return AS_E_LIMIT;
	if (avma < MEMORY_AT || avma - MEMORY_AT + n > sizeof memory)
		return AS_E_IO;
	memcpy(out, (const uint8_t *)memory + (avma - MEMORY_AT), n);
	return 0;
}

static int run(const uint8_t *p, size_t n, const uint64_t *initial, uint64_t *ret)
{
	struct as_uregs regs = {.valid = 1ull << 6 | 1ull << 7 | 1ull << 31 | 1ull << 34};
	regs.r[6] = 0x5008;
	regs.r[7] = 0x5000;
	regs.r[31] = 0x31;
	regs.r[34] = 0x34;
	struct as_expr_env env = {.regs = &regs,
				  .bias = 0x100,
				  .cfa = 0xcfa,
				  .cfa_known = true,
				  .read = read_memory};
	return as_expr_eval(&env, p, n, initial, ret);
}

#define VALUE(expected, ...)                                                                   \
	do {                                                                                   \
		const uint8_t p_[] = {__VA_ARGS__};                                            \
		uint64_t v_ = 0;                                                               \
		assert_int_equal(run(p_, sizeof p_, NULL, &v_), 0);                            \
		assert_int_equal(v_, (uint64_t)(expected));                                    \
	} while (0)
#define REFUSED(status, ...)                                                                   \
	do {                                                                                   \
		const uint8_t p_[] = {__VA_ARGS__};                                            \
		uint64_t v_ = 77;                                                              \
		assert_int_equal(run(p_, sizeof p_, NULL, &v_), (status));                     \
		assert_int_equal(v_, 77);                                                      \
	} while (0)

static void constants_have_their_sign_and_width(void **state)
{
	VALUE(0x0807060504030201 + 0x100, 0x03, 1, 2, 3, 4, 5, 6, 7, 8);
	VALUE(0xfe, 0x08, 0xfe);
	VALUE(-2, 0x09, 0xfe);
	VALUE(0xfffe, 0x0a, 0xfe, 0xff);
	VALUE(-2, 0x0b, 0xfe, 0xff);
	VALUE(0xfffffffe, 0x0c, 0xfe, 0xff, 0xff, 0xff);
	VALUE(-2, 0x0d, 0xfe, 0xff, 0xff, 0xff);
	VALUE(-2, 0x0e, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff);
	VALUE(-2, 0x0f, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff);
	VALUE(624485, 0x10, 0xe5, 0x8e, 0x26);
	VALUE(-123456, 0x11, 0xc0, 0xbb, 0x78);
	VALUE(0, 0x30);
	VALUE(31, 0x4f);
}

static void stack_operations_move_values(void **state)
{
	VALUE(4, 0x32, 0x12, 0x22);           /* 2 dup plus */
	VALUE(1, 0x31, 0x32, 0x13);           /* 1 2 drop */
	VALUE(1, 0x31, 0x32, 0x14);           /* over */
	VALUE(1, 0x31, 0x32, 0x33, 0x15, 2);  /* pick 2 */
	VALUE(3 - 1, 0x31, 0x33, 0x16, 0x1c); /* swap minus */
	VALUE(2, 0x31, 0x32, 0x33, 0x17);     /* rot: 1 2 3 -> 3 1 2 */
	VALUE(3, 0x31, 0x32, 0x33, 0x17, 0x13, 0x13);
}

static void arithmetic_wraps_and_never_traps(void **state)
{
	VALUE(5, 0x09, 0xfb, 0x19);                                /* abs */
	VALUE(0x10, 0x08, 0x30, 0x08, 0x1f, 0x1a);                 /* and */
	VALUE(-3, 0x09, 0xf9, 0x32, 0x1b);                         /* -7 / 2 */
	VALUE(7, 0x0d, 0xf9, 0xff, 0xff, 0xff, 0x09, 0xff, 0x1b);  /* -7 / -1 */
	VALUE(1ull << 63, 0x31, 0x08, 63, 0x24, 0x09, 0xff, 0x1b); /* INT64_MIN / -1 */
	VALUE(2, 0x35, 0x33, 0x1d);                                /* 5 mod 3 */
	VALUE(15, 0x35, 0x33, 0x1e);
	VALUE(-5, 0x35, 0x1f);
	VALUE(~5ull, 0x35, 0x20);
	VALUE(7, 0x35, 0x33, 0x21);
	VALUE(8, 0x35, 0x33, 0x22);
	VALUE(5 + 300, 0x35, 0x23, 0xac, 0x02);
	VALUE(40, 0x35, 0x33, 0x24);
	VALUE(0, 0x35, 0x08, 64, 0x24);
	VALUE(1, 0x35, 0x32, 0x25);
	VALUE(-2, 0x09, 0xf8, 0x32, 0x26);
	VALUE(-1, 0x09, 0xf8, 0x08, 99, 0x26);
	VALUE(6, 0x35, 0x33, 0x27);
	REFUSED(AS_E_FORMAT, 0x35, 0x30, 0x1b);
	REFUSED(AS_E_FORMAT, 0x35, 0x30, 0x1d);
}

static void comparisons_are_signed(void **state)
{
	VALUE(1, 0x35, 0x35, 0x29);
	VALUE(1, 0x35, 0x09, 0xff, 0x2a); /* 5 >= -1 */
	VALUE(1, 0x35, 0x09, 0xff, 0x2b);
	VALUE(0, 0x35, 0x09, 0xff, 0x2c);
	VALUE(0, 0x35, 0x09, 0xff, 0x2d);
	VALUE(1, 0x35, 0x33, 0x2e);
}

static void branches_go_both_ways_and_stay_inside(void **state)
{
	VALUE(1, 0x31, 0x2f, 1, 0, 0x32);       /* skip over lit2 */
	VALUE(2, 0x32, 0x31, 0x28, 1, 0, 0x33); /* taken */
	VALUE(3, 0x32, 0x30, 0x28, 1, 0, 0x33); /* not taken */
	/* count 5 down to 0 */
	VALUE(0, 0x35, 0x31, 0x1c, 0x12, 0x28, 0xfa, 0xff);
	VALUE(1, 0x31, 0x2f, 0, 0); /* to the very end */
	REFUSED(AS_E_FORMAT, 0x31, 0x2f, 1, 0);
	REFUSED(AS_E_FORMAT, 0x31, 0x2f, 0xf0, 0xff);
	REFUSED(AS_E_FORMAT, 0x2f, 0xfd, 0xff); /* for ever */
}

static void memory_and_registers_are_read(void **state)
{
	VALUE(0x5008 - 8, 0x76, 0x78);
	VALUE(0x34 + 1, 0x92, 34, 1);
	VALUE(0x31, 0x8f, 0);
	VALUE(memory[0], 0x77, 0, 0x06);
	VALUE(0x88, 0x77, 0, 0x94, 1);
	VALUE(0x55667788, 0x77, 0, 0x94, 4);
	VALUE(0xcfa, 0x9c);
	REFUSED(AS_E_NOTFOUND, 0x73, 0);             /* rbx is not known */
	REFUSED(AS_E_NOTFOUND, 0x92, 0x80, 0x01, 0); /* no such register */
	REFUSED(AS_E_IO, 0x30, 0x06);
	REFUSED(AS_E_LIMIT, 0x0a, 0x00, 0x90, 0x06); /* beyond the copied stack */
	REFUSED(AS_E_FORMAT, 0x77, 0, 0x94, 9);
	uint64_t cfa = 0x5010, v;
	const uint8_t with_initial[] = {0x38, 0x1c, 0x06}; /* *(cfa - 8) */
	assert_int_equal(run(with_initial, sizeof with_initial, &cfa, &v), 0);
	assert_int_equal(v, memory[1]);
}

static void damage_is_refused(void **state)
{
	uint64_t v;
	uint8_t deep[65];
	memset(deep, 0x31, sizeof deep);
	assert_int_equal(run(deep, 64, NULL, &v), 0);
	assert_int_equal(run(deep, 65, NULL, &v), AS_E_FORMAT);
	assert_int_equal(run(deep, 0, NULL, &v), AS_E_FORMAT);
	REFUSED(AS_E_FORMAT, 0x22);
	REFUSED(AS_E_FORMAT, 0x31, 0x22);
	REFUSED(AS_E_FORMAT, 0x31, 0x15, 1);
	REFUSED(AS_E_FORMAT, 0x0e, 1, 2, 3);
	REFUSED(AS_E_FORMAT, 0x10, 0x80);
	REFUSED(AS_E_UNSUPPORTED, 0x91, 0);    /* fbreg */
	REFUSED(AS_E_UNSUPPORTED, 0x93, 8);    /* piece */
	REFUSED(AS_E_UNSUPPORTED, 0x50);       /* a register is no value */
	REFUSED(AS_E_UNSUPPORTED, 0x98, 0, 0); /* call2 */
	REFUSED(AS_E_UNSUPPORTED, 0xff);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(constants_have_their_sign_and_width),
		cmocka_unit_test(stack_operations_move_values),
		cmocka_unit_test(arithmetic_wraps_and_never_traps),
		cmocka_unit_test(comparisons_are_signed),
		cmocka_unit_test(branches_go_both_ways_and_stay_inside),
		cmocka_unit_test(memory_and_registers_are_read),
		cmocka_unit_test(damage_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
