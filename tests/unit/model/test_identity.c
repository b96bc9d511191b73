/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* model/identity: names as they are after a rebuild. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "model/diff/identity.h"

static void stable(void (*fn)(const char *, struct as_buf *), const char *in, const char *want)
{
	struct as_buf b = {0};

	fn(in, &b);
	assert_string_equal(as_buf_str(&b), want);
	as_buf_clear(&b);
}

static void what_a_rebuild_changes_is_taken_out(void **state)
{
	static const char *const cases[][2] = {
		{"core[5f3a1b2c3d4e5f60]::fmt::write", "core::fmt::write"},
		{"<alloc[1a2b3c4d]::vec::Vec<u8> as app[0123abcd]::T>::f",
		 "<alloc::vec::Vec<u8> as app::T>::f"},
		{"app::parse::h0123456789abcdef", "app::parse"},
		{"app::run::{closure#3}", "app::run::{closure}"},
		{"app::{impl#12}::next::{closure#0}", "app::{impl}::next::{closure}"},
		{"ns::f(int)::{lambda(int)#2}::operator()",
		 "ns::f(int)::{lambda(int)}::operator()"},
		{"parse.part.0", "parse"},
		{"parse.isra.3.cold", "parse"},
		{"f.llvm.11223344556677", "f"},
		{"g.constprop.1.isra.0", "g"},
	};

	for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++)
		stable(as_stable_function, cases[i][0], cases[i][1]);
}

static void what_belongs_to_the_name_stays(void **state)
{
	static const char *const names[] = {
		"",
		"main",
		"app::f::<[u8; 16]>",
		"<[u8]>::len",
		"app::f::<[u64; 4096]>",
		"operator[](unsigned long)",
		"a[0]",              /* an index, no disambiguator */
		"h0123456789abcdef", /* no path before it */
		"x::habc",
		"f.partial",
		"f.colder",
		"#1",
		"a::b#2", /* not in braces */
		".part",
		"{",
		"}}}",
		"::h",
		"::h0123",
		"app::h0123456789abcdefg",
	};

	for (size_t i = 0; i < AS_ARRAY_LEN(names); i++)
		stable(as_stable_function, names[i], names[i]);
}

/* Left: legacy names; middle: v0 names; right: what both become. */
static void both_manglings_of_a_function_are_one(void **state)
{
	static const char *const cases[][3] = {
		{"app::parse", "app::parse::<u32>", "app::parse"},
		{"app::Acc<T>::total", "<app::Acc<u64>>::total", "app::Acc::total"},
		{"<app::Acc<u64> as app::Step>::step", "<app::Acc<u64> as app::Step>::step",
		 "<app::Acc as app::Step>::step"},
		{"app::run::{{closure}}", "app::run::<fn(u8) -> u8>::{closure#1}",
		 "app::run::{closure}"},
		{"core::num::<impl u64>::pow", "<u64>::pow", "u64::pow"},
		{"core::fmt::num::<impl core::fmt::Display for u32>::fmt",
		 "<u32 as core::fmt::Display>::fmt", "<u32 as core::fmt::Display>::fmt"},
		{"<core::iter::adapters::map::Map<I,F> as core::iter::Iterator>::fold",
		 "<core::iter::adapters::map::Map<core::str::Chars, app::f::{closure#0}> as "
		 "core::iter::Iterator>::fold::<(), app::g::{closure#2}>",
		 "<core::iter::adapters::map::Map as core::iter::Iterator>::fold"},
		{"alloc::vec::Vec<T,A>::push", "<alloc::vec::Vec<(u8, [u64; 4])>>::push",
		 "alloc::vec::Vec::push"},
	};

	for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
		for (int k = 0; k < 2; k++)
			stable(as_loose_function, cases[i][k], cases[i][2]);
	}
	/* hostile: never out of bounds */
	stable(as_loose_function, "<", "");
	stable(as_loose_function, "a<", "a");
	stable(as_loose_function, "<impl >x", "impl x");
	stable(as_loose_function, "<impl a for", "a for");
	stable(as_loose_function, ">>", ">>");
	stable(as_loose_function, "", "");
}

static void test_programs_lose_their_hash(void **state)
{
	stable(as_stable_module, "t_one-598974d6c5b10e84", "t_one");
	stable(as_stable_module, "libc.so.6", "libc.so.6");
	stable(as_stable_module, "-598974d6c5b10e84", "-598974d6c5b10e84");
	stable(as_stable_module, "a-598974d6c5b10e8", "a-598974d6c5b10e8");
	stable(as_stable_module, "", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_rebuild_changes_is_taken_out),
		cmocka_unit_test(what_belongs_to_the_name_stays),
		cmocka_unit_test(both_manglings_of_a_function_are_one),
		cmocka_unit_test(test_programs_lose_their_hash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
