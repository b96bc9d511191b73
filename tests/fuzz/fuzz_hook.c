/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Any file as one whose functions are to be detoured: found, planned, and the copies made. */
#include <stdlib.h>
#include "hook/allocators.h"
#include "hook/plan.h"

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
