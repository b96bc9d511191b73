/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A budget of memory as typed: a budget, or an error with a mark; names of functions likewise. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/memory/budget.h"
#include "model/memory/tables.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	AS_CLEANUP(as_free_autop) char *text = as_xstrndup((const char *)data, n);
	const char *one = text;
	struct as_heap_budgets b;
	struct as_error err = {0};
	struct as_buf type = {0};
	int r = as_heap_budgets_parse(&one, 1, &b, &err);

	assert(r == AS_OK || (r == AS_E_USAGE && err.msg[0]));
	if (r == AS_OK) {
		struct as_model m = {.heap.is = true};
		struct as_heap_spent spent;

		assert(b.n == 1 && b.v[0].what < AS_BUDGET_WHATS);
		r = as_heap_budget_spend(b.v, &m, &spent, &err);
		assert(r == AS_OK || b.v[0].what == AS_BUDGET_LEAKED);
		as_heap_budgets_clear(&b);
	}
	(void)as_heap_type_of_name(text, &type);
	as_buf_clear(&type);
	return 0;
}
