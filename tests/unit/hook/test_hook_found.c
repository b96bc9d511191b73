/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a search for allocators found, kept as bytes: read as it was written, or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include "base/mem.h"
#include "fixture.h"
#include "hook/signature.h"
#include "hook/signature_priv.h"

#define HASH_AT 8
#define BODY_AT 16

static struct as_elf *self(void)
{
	struct as_error err;
	struct as_elf *e;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(as_elf_open_fd(fd, "self", &e, &err), 0);
	return e;
}

static uint64_t text_of(struct as_elf *e)
{
	size_t n;
	const struct as_elf_segment *s = as_elf_segments(e, &n);

	for (size_t i = 0; i < n; i++) {
		if (s[i].exec && s[i].filesz > 4096)
			return s[i].svma;
	}
	fail();
	return 0;
}

static void add(struct as_signature *s, uint64_t svma, enum as_rt_kind kind,
		enum as_proof_form form, uint64_t instead)
{
	as_vec_push(&s->list, (struct as_allocator){.svma = svma,
						    .instead_svma = instead,
						    .name = as_signature_name(kind, form),
						    .kind = (uint8_t)kind,
						    .group = AS_HOOKS_HEAP,
						    .family = AS_ALLOCATOR_JEMALLOC,
						    .local = true,
						    .by_signature = true});
}

struct kept {
	struct as_signature_program p;
	char key[AS_SIGNATURE_KEY_BYTES];
	struct as_signature s;
	struct as_buf b;
};

static struct kept write_some(void)
{
	struct kept k = {.p = {.elf = self(), .fd = -1, .name = "self"}};
	uint64_t at = text_of(k.p.elf);

	as_signature_key(k.p.elf, k.key);
	add(&k.s, at + 16, AS_RT_SIZE, AS_PROOF_ALONE, 0);
	add(&k.s, at + 64, AS_RT_FREE, AS_PROOF_FLAGS, 0);
	add(&k.s, at + 128, AS_RT_NEW, AS_PROOF_ALONE, at + 16);
	as_vec_push(&k.s.found, (struct as_extent){at + 16, at + 64});
	as_vec_push(&k.s.found, (struct as_extent){at + 64, at + 128});
	as_signature_write(&k.s, k.key, &k.b);
	return k;
}

static void drop(struct kept *k)
{
	as_signature_clear(&k->s);
	as_buf_clear(&k->b);
	as_elf_close(k->p.elf);
}

static bool is_read(const struct kept *k, const char *key, const void *p, size_t n)
{
	struct as_signature s;
	bool ok = as_signature_read(&k->p, key, p, n, &s);

	if (ok)
		as_signature_clear(&s);
	else
		assert_true(!s.list.n && !s.found.n && !s.code);
	return ok;
}

static void what_was_found_is_read_as_it_was_written(void **state)
{
	struct kept k = write_some();
	struct as_signature s;

	(void)state;
	assert_true(as_signature_read(&k.p, k.key, k.b.p, k.b.len, &s));
	assert_int_equal(s.list.n, 3);
	for (size_t i = 0; i < 3; i++) {
		const struct as_allocator *a = &k.s.list.v[i], *b = &s.list.v[i];

		assert_int_equal(a->svma, b->svma);
		assert_int_equal(a->instead_svma, b->instead_svma);
		assert_int_equal(a->kind, b->kind);
		assert_int_equal(a->family, b->family);
		assert_ptr_equal(a->name, b->name);
		assert_true(b->by_signature);
	}
	assert_int_equal(s.found.n, 2);
	assert_int_equal(s.lo_svma, k.s.list.v[0].svma);
	assert_int_equal(s.hi_svma, k.s.list.v[2].svma + 1);
	assert_true(as_hook_code_find(s.code, k.s.found.v[1].start_svma) != SIZE_MAX);
	as_signature_clear(&s);
	drop(&k);
}

static void an_empty_list_is_an_answer_too(void **state)
{
	struct kept k = write_some();
	struct as_signature s;

	(void)state;
	as_buf_reset(&k.b);
	as_signature_write(&(struct as_signature){0}, k.key, &k.b);
	assert_true(as_signature_read(&k.p, k.key, k.b.p, k.b.len, &s));
	assert_int_equal(s.list.n, 0);
	as_signature_clear(&s);
	drop(&k);
}

static void cut_and_changed_bytes_are_refused(void **state)
{
	struct kept k = write_some();

	(void)state;
	for (size_t n = 0; n < k.b.len; n++)
		assert_false(is_read(&k, k.key, k.b.p, n));
	for (size_t i = 0; i < k.b.len; i++) {
		for (int bit = 0; bit < 8; bit++) {
			k.b.p[i] ^= (char)(1 << bit);
			assert_false(is_read(&k, k.key, k.b.p, k.b.len));
			k.b.p[i] ^= (char)(1 << bit);
		}
	}
	as_buf_addc(&k.b, 0);
	assert_false(is_read(&k, k.key, k.b.p, k.b.len));
	drop(&k);
}

static void set_hash(struct as_buf *b)
{
	uint64_t hash = as_hash64(b->p + BODY_AT, b->len - BODY_AT);

	memcpy(b->p + HASH_AT, &hash, 8);
}

/* As a program could write it that knows the format: nothing but addresses of code comes through. */
static void addresses_outside_of_the_code_are_refused(void **state)
{
	struct kept k = write_some();
	size_t list = BODY_AT + AS_SIGNATURE_KEY_BYTES + 8;
	static const uint64_t bad[] = {0, 8, UINT64_MAX, UINT64_MAX / 2, 1ull << 40};

	(void)state;
	for (size_t off = list; off + 8 <= k.b.len; off += 8) {
		if (off < list + 3 * 24 && (off - list) % 24 == 16)
			continue; /* kind and form */
		for (size_t i = 0; i < AS_ARRAY_LEN(bad); i++) {
			char old[8];

			memcpy(old, k.b.p + off, 8);
			if (!memcmp(old, &bad[i], 8))
				continue;
			memcpy(k.b.p + off, &bad[i], 8);
			set_hash(&k.b);
			assert_false(is_read(&k, k.key, k.b.p, k.b.len));
			memcpy(k.b.p + off, old, 8);
		}
	}
	set_hash(&k.b);
	assert_true(is_read(&k, k.key, k.b.p, k.b.len));
	drop(&k);
}

static void another_program_has_another_key(void **state)
{
	struct kept k = write_some();
	char key[AS_SIGNATURE_KEY_BYTES];
	struct as_elf *libc;

	(void)state;
	if (as_elf_open("/lib/x86_64-linux-gnu/libc.so.6", &libc, NULL) < 0)
		fx_skip("no libc where it is looked for");
	as_signature_key(libc, key);
	assert_string_not_equal(key, k.key);
	assert_false(is_read(&k, key, k.b.p, k.b.len));
	as_elf_close(libc);
	drop(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_found_is_read_as_it_was_written),
		cmocka_unit_test(an_empty_list_is_an_answer_too),
		cmocka_unit_test(cut_and_changed_bytes_are_refused),
		cmocka_unit_test(addresses_outside_of_the_code_are_refused),
		cmocka_unit_test(another_program_has_another_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
