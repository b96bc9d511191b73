/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* DWARF expressions from arbitrary bytes, with memory that holds the same bytes. */
#include <stdint.h>
#include <string.h>
#include "base/err.h"
#include "unwind/expr_priv.h"

struct bytes {
	const uint8_t *p;
	size_t n;
};

static int read_input(void *ctx, uint64_t avma, void *out, size_t n)
{
	const struct bytes *b = ctx;
	uint64_t at = avma & 0xfff;
	if (avma & 1ull << 63 || at > b->n || n > b->n - at)
		return AS_E_IO;
	memcpy(out, b->p + at, n);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct bytes b = {data, n};
	struct as_uregs regs = {.valid = 0xffffffff};
	for (unsigned i = 0; i < 32; i++)
		regs.r[i] = 0x1000 + i * 8;
	struct as_expr_env env = {
		.regs = &regs, .cfa = 0x100, .cfa_known = n & 1, .ctx = &b, .read = read_input};
	uint64_t v;
	(void)as_expr_eval(&env, data, n, n & 2 ? &regs.r[3] : NULL, &v);
	return 0;
}
