/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Bytes that are known, cut, damaged and at the end of a page, and what becomes of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/mman.h>
#include "fixture.h"
#include "base/buf.h"
#include "base/mem.h"
#include "code/disasm.h"
#include "elf/elf.h"

struct known {
	const char *bytes;
	uint8_t len, kind;
	uint64_t target, data;
	const char *text;
};

#define AT 0x1000

static const struct known x86_64[] = {
	{"\x48\x89\xe5", 3, AS_INSN_PLAIN, 0, 0, "mov rbp, rsp"},
	{"\x48\x83\xec\x20", 4, AS_INSN_PLAIN, 0, 0, "sub rsp, 0x20"},
	{"\xc3", 1, AS_INSN_RETURN, 0, 0, "ret"},
	{"\xe8\x0b\x01\x00\x00", 5, AS_INSN_CALL, 0x1110, 0, "call callee"},
	{"\xe8\x0c\x01\x00\x00", 5, AS_INSN_CALL, 0x1111, 0, "call callee+0x1"},
	{"\xe9\xfb\xff\xff\xff", 5, AS_INSN_JUMP, 0x1000, 0, "jmp 0x1000"},
	{"\x74\x10", 2, AS_INSN_BRANCH, 0x1012, 0, "jz 0x1012"},
	{"\x0f\x85\xfa\x0f\x00\x00", 6, AS_INSN_BRANCH, 0x2000, 0, "jnz 0x2000"},
	{"\x48\x8d\x3d\xf9\x1f\x00\x00", 7, AS_INSN_PLAIN, 0, 0x3000, "lea rdi, [rel table]"},
	{"\x48\x8b\x05\x01\x20\x00\x00", 7, AS_INSN_PLAIN, 0, 0x3008,
	 "mov rax, [rel table+0x8]"},
	{"\xff\x15\xfa\x2f\x00\x00", 6, AS_INSN_CALL, 0, 0x4000, "call [rel 0x4000]"},
	{"\xff\xe0", 2, AS_INSN_JUMP, 0, 0, "jmp rax"},
	{"\xff\xd0", 2, AS_INSN_CALL, 0, 0, "call rax"},
	{"\x0f\x0b", 2, AS_INSN_PLAIN, 0, 0, "ud2"},
	{"\xf3\x0f\x1e\xfa", 4, AS_INSN_PLAIN, 0, 0, "endbr64"},
	{"\x62\xf1\x7c\x48\x58\xc1", 6, AS_INSN_PLAIN, 0, 0, "vaddps zmm0, zmm0, zmm1"},
	{"\xc5\xfd\x6f\x06", 4, AS_INSN_PLAIN, 0, 0, "vmovdqa ymm0, [rsi]"},
	{"\xf0\x48\x0f\xb1\x0b", 5, AS_INSN_PLAIN, 0, 0, "lock cmpxchg [rbx], rcx"},
	{"\x06", 1, AS_INSN_BAD, 0, 0, ".byte 0x06"}, /* push es: not in 64-bit code */
};

static const struct known aarch64[] = {
	{"\xfd\x7b\xbf\xa9", 4, AS_INSN_PLAIN, 0, 0, "stp x29, x30, [sp, #-0x10]!"},
	{"\xc0\x03\x5f\xd6", 4, AS_INSN_RETURN, 0, 0, "ret"},
	{"\x44\x00\x00\x94", 4, AS_INSN_CALL, 0x1110, 0, "bl callee"},
	{"\xff\xff\xff\x17", 4, AS_INSN_JUMP, 0xffc, 0, "b 0xffc"},
	{"\x40\x00\x00\x54", 4, AS_INSN_BRANCH, 0x1008, 0, "b.eq 0x1008"},
	{"\x60\x00\x00\xb4", 4, AS_INSN_BRANCH, 0x100c, 0, "cbz x0, 0x100c"},
	{"\x61\x00\x08\x37", 4, AS_INSN_BRANCH, 0x100c, 0, "tbnz w1, #1, 0x100c"},
	{"\x00\x00\x1f\xd6", 4, AS_INSN_JUMP, 0, 0, "br x0"},
	{"\x20\x00\x3f\xd6", 4, AS_INSN_CALL, 0, 0, "blr x1"},
	{"\x00\x00\x01\x10", 4, AS_INSN_PLAIN, 0, 0x3000, "adr x0, table"},
	{"\x00\x00\x00\x00", 4, AS_INSN_BAD, 0, 0, ".word 0x00000000"},
};

static const char *name_of(void *ctx, uint64_t svma, bool code, uint64_t *ret_off)
{
	uint64_t base = code ? 0x1110 : 0x3000;

	(void)ctx;
	if (svma < base || svma >= base + 16)
		return NULL;
	*ret_off = svma - base;
	return code ? "callee" : "table";
}

static void check_known(enum as_arch arch, const struct known *k, size_t n)
{
	struct as_disasm *d = as_disasm_new(arch, name_of, NULL);

	for (size_t i = 0; i < n; i++, k++) {
		struct as_insn insn, skim;

		as_disasm_next(d, (const uint8_t *)k->bytes, k->len, AT, &insn);
		assert_string_equal(insn.text, k->text);
		assert_int_equal(insn.len, k->len);
		assert_int_equal(insn.kind, k->kind);
		assert_int_equal(insn.target, k->target);
		assert_int_equal(insn.data, k->data);
		as_disasm_skim(d, (const uint8_t *)k->bytes, k->len, AT, &skim);
		assert_int_equal(skim.len, k->len);
		assert_int_equal(skim.kind, k->kind);
		assert_int_equal(skim.target, k->target);
		assert_int_equal(skim.data, k->data);
	}
	as_disasm_free(d);
}

static void known_x86_64_bytes_give_known_text(void **state)
{
	if (as_disasm_missing(AS_ARCH_X86_64))
		fx_skip("%s", as_disasm_missing(AS_ARCH_X86_64));
	check_known(AS_ARCH_X86_64, x86_64, AS_ARRAY_LEN(x86_64));
}

static void known_aarch64_words_give_known_text(void **state)
{
	if (as_disasm_missing(AS_ARCH_AARCH64))
		fx_skip("%s", as_disasm_missing(AS_ARCH_AARCH64));
	check_known(AS_ARCH_AARCH64, aarch64, AS_ARRAY_LEN(aarch64));
}

static void an_instruction_cut_short_is_bytes(void **state)
{
	for (enum as_arch arch = AS_ARCH_NONE; arch <= AS_ARCH_AARCH64; arch++) {
		struct as_disasm *d = as_disasm_new(arch, NULL, NULL);

		for (size_t i = 0; i < AS_ARRAY_LEN(x86_64); i++) {
			for (uint8_t n = 1; n < x86_64[i].len; n++) {
				uint8_t *exact = as_xmalloc(n);
				struct as_insn insn;

				memcpy(exact, x86_64[i].bytes, n);
				as_disasm_next(d, exact, n, AT, &insn);
				assert_true(insn.len >= 1 && insn.len <= n);
				assert_true(insn.text[0] != 0);
				free(exact);
			}
		}
		as_disasm_free(d);
	}
}

/* The page behind cannot be read: a decoder that looks further faults. */
static void nothing_behind_the_end_of_a_page_is_read(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	uint64_t seed = 1;

	assert_true(p != MAP_FAILED);
	assert_int_equal(mprotect(p + page, page, PROT_NONE), 0);
	for (enum as_arch arch = AS_ARCH_NONE; arch <= AS_ARCH_AARCH64; arch++) {
		struct as_disasm *d = as_disasm_new(arch, NULL, NULL);

		for (int round = 0; round < 20000; round++) {
			size_t n = 1 + (size_t)round % 15;
			struct as_insn insn;

			for (size_t i = 0; i < n; i++) {
				seed = seed * 6364136223846793005u + 1442695040888963407u;
				p[page - n + i] = (uint8_t)(seed >> 56);
			}
			as_disasm_next(d, p + page - n, n, UINT64_MAX - 8, &insn);
			assert_true(insn.len >= 1 && insn.len <= n);
			as_disasm_skim(d, p + page - n, n, AT, &insn);
			assert_true(insn.len >= 1 && insn.len <= n);
		}
		as_disasm_free(d);
	}
	munmap(p, 2 * page);
}

static const char *long_name(void *ctx, uint64_t svma, bool code, uint64_t *ret_off)
{
	(void)svma, (void)code;
	*ret_off = 4;
	return ctx;
}

static void names_that_are_very_long_are_cut_between_characters(void **state)
{
	char name[3000];
	struct as_insn insn;
	struct as_disasm *d;

	if (as_disasm_missing(AS_ARCH_X86_64))
		fx_skip("%s", as_disasm_missing(AS_ARCH_X86_64));
	for (size_t i = 0; i + 2 < sizeof name; i += 2)
		memcpy(name + i, "\xc3\xa9", 3);
	d = as_disasm_new(AS_ARCH_X86_64, long_name, name);
	as_disasm_next(d, (const uint8_t *)"\xe8\x0b\x01\x00\x00", 5, AT, &insn);
	assert_int_equal(insn.kind, AS_INSN_CALL);
	assert_true(strlen(insn.text) < 500);
	assert_non_null(strstr(insn.text, "\xa9...+0x4"));
	as_disasm_free(d);
}

/* Where objdump says that instructions begin. */
static void instructions_begin_where_objdump_has_them(void **state)
{
	static const struct {
		enum as_arch arch;
		const char *compile, *objdump;
	} tool[] = {
		{AS_ARCH_X86_64, "gcc -O2 -g", "objdump"},
		{AS_ARCH_AARCH64, "aarch64-linux-gnu-gcc -O2 -g", "aarch64-linux-gnu-objdump"},
	};
	unsigned checked = 0;

	fx_write(
		"d.c",
		"double f(double *x, int n) { double s = 0; for (int i = 0; i < n; i++) "
		"s += x[i] * (i % 7); return s; }\n"
		"int main(int c, char **v) { double d[9] = {1}; switch (c) { case 1: return 3; "
		"case 2: return 9; case 5: return 1; case 6: return 44; case 7: return 5; } "
		"return (int)f(d, 9); }\n");
	for (size_t i = 0; i < AS_ARRAY_LEN(tool); i++) {
		struct as_error err;
		struct as_disasm *d;
		struct as_elf *e;
		unsigned char *list;
		size_t n;

		if (as_disasm_missing(tool[i].arch) ||
		    fx_sh("%s d.c -o d && %s -d -j .text --no-show-raw-insn d | "
			  "sed -n 's/^ *\\([0-9a-f]*\\):\\t.*/\\1/p' > d.list",
			  tool[i].compile, tool[i].objdump) != 0)
			continue;
		assert_int_equal(as_elf_open(fx_path("d"), &e, &err), AS_OK);
		assert_int_equal(as_elf_arch(e), tool[i].arch);
		d = as_disasm_new(tool[i].arch, NULL, NULL);
		list = fx_read("d.list", &n);
		list[n] = 0;
		for (char *p = (char *)list, *next; *p; p = next) {
			uint64_t svma = strtoull(p, &next, 16), after;
			const uint8_t *code = as_elf_at(e, svma, 16);
			struct as_insn insn;

			next += *next == '\n';
			after = *next ? strtoull(next, NULL, 16) : 0;
			if (!after || !code || after > svma + 15)
				continue;
			as_disasm_next(d, code, 16, svma, &insn);
			assert_int_equal(svma + insn.len, after);
			checked++;
		}
		free(list);
		as_disasm_free(d);
		as_elf_close(e);
	}
	if (!checked)
		fx_skip("no compiler and objdump here");
	assert_true(checked > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_x86_64_bytes_give_known_text),
		cmocka_unit_test(known_aarch64_words_give_known_text),
		cmocka_unit_test(an_instruction_cut_short_is_bytes),
		cmocka_unit_test(nothing_behind_the_end_of_a_page_is_read),
		cmocka_unit_test(names_that_are_very_long_are_cut_between_characters),
		cmocka_unit_test(instructions_begin_where_objdump_has_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
