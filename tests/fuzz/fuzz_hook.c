/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Any file as one whose functions are to be detoured: found, planned, and the copies made; and who
 * calls whom in it.
 */
#include <stdlib.h>
#include "hook/allocators.h"
#include "hook/calls.h"
#include "hook/plan.h"

static void who_calls_whom(struct as_elf *elf)
{
	struct as_calls *calls;
	uint64_t svma[16];
	size_t n;

	if (as_calls_new(elf, NULL, 0, &calls, NULL) < 0)
		return;
	n = as_calls_main(calls, svma, 16);
	for (size_t i = 0; i < as_hook_code_count(as_calls_code(calls)); i++) {
		size_t edges;
		const struct as_calls_edge *e = as_calls_edges(calls, i, &edges);

		for (size_t k = 0; k < edges; k++) {
			if (e[k].to >= as_hook_code_count(as_calls_code(calls)) || !e[k].count)
				abort();
		}
	}
	for (size_t i = 0; i < n; i++) {
		if (!as_hook_code_bytes(as_calls_code(calls), svma[i], 1))
			abort();
	}
	as_calls_free(calls);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	const uint64_t far = 0x50000000;
	struct as_elf *elf = NULL;
	struct as_hook_code *code = NULL;
	struct as_allocators list;

	if (as_elf_open_mem(p, n, "fuzz", &elf, NULL) < 0)
		return 0;
	as_allocators_find(elf, AS_HOOKS_OF_HEAP | AS_HOOKS_MAPPINGS, &list);
	as_allocators_clear(&list);
	who_calls_whom(elf);
	if (as_hook_code_new(elf, NULL, 0, &code, NULL) < 0) {
		as_elf_close(elf);
		return 0;
	}
	for (size_t i = 0; i < as_hook_code_count(code) && i < 64; i++) {
		uint8_t t[AS_DETOUR_TRAMPOLINE], b[AS_DETOUR_WINDOW];
		struct as_detour d;

		if (as_detour_plan(code, as_hook_code_at(code, i)->svma, &d) != AS_DETOUR_OK)
			continue;
		if (as_detour_trampoline(&d, 0, d.svma + far, t) > sizeof t ||
		    !as_detour_patch(&d, 0, d.svma + far, b))
			abort();
	}
	as_hook_code_free(code);
	as_elf_close(elf);
	return 0;
}
