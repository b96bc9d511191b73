/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Any bytes as what an earlier search for allocators kept, their checksum made right: read for this
 * program itself, as what code is patched by.
 */
#include <stdlib.h>
#include <string.h>
#include "hook/plan.h"
#include "hook/signature.h"

#define HASH_AT 8
#define BODY_AT 16

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static struct as_signature_program self = {.fd = -1, .name = "self"};
	static char key[AS_SIGNATURE_KEY_BYTES];
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	struct as_signature s;

	if (!self.elf) {
		if (as_elf_open("/proc/self/exe", &self.elf, NULL) < 0)
			abort();
		as_signature_key(self.elf, key);
	}
	/* a header and a key that are right, then the fuzzer's */
	as_signature_write(&(struct as_signature){0}, key, &b);
	b.len = BODY_AT + AS_SIGNATURE_KEY_BYTES;
	as_buf_add(&b, p, n);
	uint64_t hash = as_hash64(b.p + BODY_AT, b.len - BODY_AT);
	memcpy(b.p + HASH_AT, &hash, 8);
	if (!as_signature_read(&self, key, b.p, b.len, &s))
		return 0;
	as_vec_foreach (a, &s.list) {
		struct as_detour d;

		if (!a->name)
			abort();
		(void)as_detour_plan(s.code, a->svma, &d);
	}
	as_signature_clear(&s);
	return 0;
}
