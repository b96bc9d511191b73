/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Short names and crates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/map.h"
#include "base/mem.h"
#include "symbol/demangle.h"

struct want {
	const char *full, *name, *folded, *crate;
};

static const struct want rust[] = {
	/* methods, both manglings */
	{"<alloc::vec::Vec<T,A> as core::iter::traits::collect::Extend<T>>::extend",
	 "Vec<T,A>::extend", "Vec::extend", "alloc"},
	{"alloc::raw_vec::RawVec<T,A>::grow_one", "RawVec<T,A>::grow_one", "RawVec::grow_one",
	 "alloc"},
	{"<alloc::raw_vec::RawVec<u8>>::grow_one", "RawVec<u8>::grow_one", "RawVec::grow_one",
	 "alloc"},
	{"<std::collections::hash::map::HashMap<K,V,S>>::insert", "HashMap<K,V,S>::insert",
	 "HashMap::insert", "std"},
	{"<indexer::parse::Context<indexer::lex::Lexer> as indexer::Run>::run::{closure#0}",
	 "parse::Context<Lexer>::run::{closure}", "parse::Context::run::{closure}", "indexer"},
	{"regex::Regex::is_match", "regex::Regex::is_match", "regex::Regex::is_match", "regex"},
	{"core::fmt::num::<impl core::fmt::Debug for u32>::fmt", "u32::fmt", "u32::fmt",
	 "core"},
	{"core::slice::<impl [T]>::sort_by", "<[T]>::sort_by", "<[T]>::sort_by", "core"},
	{"core::str::<impl str>::trim", "str::trim", "str::trim", "core"},
	{"<T as core::convert::Into<U>>::into", "Into<U>::into", "Into::into", "core"},
	{"<&mut W as core::fmt::Write>::write_str", "Write::write_str", "Write::write_str",
	 "core"},
	{"<<a::b::C as d::Iter>::Item as e::F>::g", "b::C::Item::g", "b::C::Item::g", "a"},
	/* functions */
	{"indexer::tokenize", "indexer::tokenize", "indexer::tokenize", "indexer"},
	{"memchr::memmem::find", "memchr::memmem::find", "memchr::memmem::find", "memchr"},
	{"a::b::c::d::e", "c::d::e", "c::d::e", "a"},
	{"core::mem::swap::<u8>", "mem::swap<u8>", "mem::swap", "core"},
	{"core::ptr::drop_in_place<alloc::vec::Vec<u8>>", "drop_in_place<Vec<u8>>",
	 "drop_in_place<Vec>", "core"},
	{"core::ptr::drop_glue::<a::b::C>", "drop_glue<C>", "drop_glue<C>", "core"},
	{"main", "main", "main", ""},
	{"mycrate::module::{impl#3}::method<u8>", "mycrate::module::method<u8>",
	 "mycrate::module::method", "mycrate"},
	/* closures, shims, async */
	{"indexer::tokenize::{{closure}}", "indexer::tokenize::{closure}",
	 "indexer::tokenize::{closure}", "indexer"},
	{"indexer::fetch::{async_fn#0}", "indexer::fetch::{async_fn}",
	 "indexer::fetch::{async_fn}", "indexer"},
	{"<a::Foo as core::ops::function::FnOnce<()>>::call_once::{shim:vtable#0}",
	 "a::Foo::call_once::{shim:vtable}", "a::Foo::call_once::{shim:vtable}", "a"},
	{"{closure_env#0}<u8>", "{closure_env}<u8>", "{closure_env}", ""},
	/* types of all kinds */
	{"<[u64; 16] as core::hash::Hash>::hash", "<[u64; 16]>::hash", "<[u64; 16]>::hash",
	 "core"},
	{"<(A,B) as core::fmt::Debug>::fmt", "<(A,B)>::fmt", "<(A,B)>::fmt", "core"},
	{"<&'a str as core::convert::Into<alloc::string::String>>::into", "<&str>::into",
	 "<&str>::into", "core"},
	{"<dyn core::any::Any + core::marker::Send>::is::<alloc::string::String>",
	 "<dyn Any + Send>::is<String>", "<dyn Any + Send>::is", "core"},
	{"<dyn for<'a> core::ops::function::Fn<(&'a u8,), Output = ()> as foo::Bar>::go",
	 "<dyn Fn<(&u8,),Output = ()>>::go", "<dyn Fn>::go", "core"},
	{"<unsafe extern \"C\" fn(*const u8) as core::fmt::Pointer>::fmt",
	 "<unsafe extern \"C\" fn(*const u8)>::fmt", "<unsafe extern \"C\" fn(*const u8)>::fmt",
	 "core"},
	{"foo::Arr<[u8; 4], 4, 'x', '<', -5, true, {Foo { a: 1 }}>::bar",
	 "foo::Arr<[u8; 4],4,'x','<',-5,true,{Foo { a: 1 }}>::bar", "foo::Arr::bar", "foo"},
	/* lifetimes, hashes, disambiguators */
	{"core::foo::Bar<'a,T>::baz", "Bar<T>::baz", "Bar::baz", "core"},
	{"core::foo::Bar<'_>::baz", "Bar::baz", "Bar::baz", "core"},
	{"<alloc::boxed::Box<dyn core::error::Error + 'static>>::new", "Box<dyn Error>::new",
	 "Box::new", "alloc"},
	{"core::ptr::write::hbadc0ffee0ddf00d", "ptr::write", "ptr::write", "core"},
	{"std[a1b2c3d4e5f60718]::io[1]::Write::write_all", "Write::write_all",
	 "Write::write_all", "std"},
};

static const struct want cxx[] = {
	{"operator new(unsigned long)@plt", "operator new@plt", "operator new@plt", ""},
	{"std::vector<int, std::allocator<int> >::push_back(int const&)",
	 "std::vector<int>::push_back", "std::vector::push_back", ""},
	{"void foo<int>(int)", "foo<int>", "foo", ""},
	{"(anonymous namespace)::g(char const*)", "(anonymous namespace)::g",
	 "(anonymous namespace)::g", ""},
	{"std::map<std::__cxx11::basic_string<char, std::char_traits<char>, "
	 "std::allocator<char> >,"
	 " int, std::less<std::string>, std::allocator<int> >::operator[](std::string const&)",
	 "std::map<std::string,int>::operator[]", "std::map::operator[]", ""},
	{"main::{lambda(int)#1}::operator()(int) const", "main::{lambda(int)#1}::operator()",
	 "main::{lambda(int)#1}::operator()", ""},
	{"std::ostream& operator<< <char>(std::ostream&, char const*)", "operator<< <char>",
	 "operator<<", ""},
	{"bool std::operator==<char>(int, int)", "std::operator==<char>",
	 "std::operator==", ""},
	{"operator new(unsigned long)", "operator new", "operator new", ""},
	{"a::b::c::D::operator bool() const", "c::D::operator bool", "c::D::operator bool", ""},
	{"std::function<int (int)>::operator()(int) const",
	 "std::function<int (int)>::operator()", "std::function::operator()", ""},
	{"std::enable_if<true, void>::type ns::f<int, (ns::E)1>(int)", "ns::f<int,(E)1>",
	 "ns::f", ""},
	{"vtable for std::basic_ios<char>", "vtable for std::basic_ios<char>",
	 "vtable for std::basic_ios", ""},
	{"foo[abi:cxx11](int)", "foo", "foo", ""},
	{"A::operator->() const", "A::operator->", "A::operator->", ""},
	{"foo(int)::bar::baz(char)", "foo::bar::baz", "foo::bar::baz", ""},
	{"f(int) [clone .cold]", "f", "f", ""},
};

static void check(const struct want *w, size_t n, enum as_lang lang)
{
	for (size_t i = 0; i < n; i++) {
		struct as_buf b = {0};

		as_name_short(w[i].full, lang, 0, &b);
		assert_string_equal(b.p, w[i].name);
		as_buf_reset(&b);
		as_name_short(w[i].full, lang, AS_NAME_FOLD_GENERICS, &b);
		assert_string_equal(b.p, w[i].folded);
		as_buf_reset(&b);
		as_name_crate(w[i].full, lang, &b);
		assert_string_equal(as_buf_str(&b), w[i].crate);
		as_buf_clear(&b);
	}
}

static void rust_names_become_short(void **st)
{
	check(rust, AS_ARRAY_LEN(rust), AS_LANG_RUST);
}

static void cxx_names_become_short(void **st)
{
	check(cxx, AS_ARRAY_LEN(cxx), AS_LANG_CXX);
}

static void c_names_stay(void **st)
{
	struct as_buf b = {0};

	as_name_short("__memmove_avx_unaligned_erms", AS_LANG_C, 0, &b);
	assert_string_equal(b.p, "__memmove_avx_unaligned_erms");
	as_buf_clear(&b);
}

static void appending_keeps_what_was_there(void **st)
{
	struct as_buf b = {0};

	as_buf_adds(&b, "x ");
	as_name_short("dyn", AS_LANG_RUST, 0, &b);
	assert_string_equal(b.p, "x dyn");
	as_buf_clear(&b);
}

static void paths_are_guessed_from_files(void **st)
{
	static const struct {
		const char *name, *file, *want;
	} t[] = {
		{"rem", "/rustc/abc/library/core/src/ops/arith.rs", "core::ops::arith::rem"},
		{"{closure#1}", "/home/u/indexer/src/main.rs", "indexer::{closure#1}"},
		{"poll",
		 "/root/.cargo/registry/src/index.crates.io-6f17/tokio-1.24.2/src/runtime/task/"
		 "mod.rs",
		 "tokio::runtime::task::poll"},
		{"go<u8>", "/r/regex-syntax-0.6.27/src/hir/literal.rs",
		 "regex_syntax::hir::literal::go<u8>"},
		{"f", "src/main.rs", "main::f"},
		{"f", "/w/p/examples/show-it.rs", "show_it::f"},
		{"f", "/w/p/src/bin/tool.rs", "p::bin::tool::f"},
		{"f", "/w/<script>/src/x.rs", "x::f"},
		{"f", "/w/p/src/a b/x.rs", "p::x::f"},
		{"f", "/w/p/src/x.c", NULL},
		{"f", ".rs", NULL},
		{"f", "/", NULL},
		{"f", "", NULL},
	};

	for (size_t i = 0; i < AS_ARRAY_LEN(t); i++) {
		struct as_buf b = {0};

		assert_int_equal(as_name_by_file(t[i].name, t[i].file, &b), t[i].want != NULL);
		assert_string_equal(as_buf_str(&b), t[i].want ? t[i].want : "");
		as_buf_clear(&b);
	}
}

static void a_short_name_is_never_empty(void **st)
{
	static const char *const odd[] = {"",     " ",        "<",
					  ">",    "::",       "<>",
					  "{}",   "()",       "'",
					  "\"",   "&",        "h0123456789abcdef",
					  "<'a>", "{impl#0}", "for<'a>",
					  "a::",  "::a",      "operator",
					  "(",    "[clone",   " [clone .cold]"};

	for (size_t i = 0; i < AS_ARRAY_LEN(odd); i++) {
		for (int lang = AS_LANG_C; lang <= AS_LANG_CXX; lang++) {
			struct as_buf b = {0};

			as_name_short(odd[i], (enum as_lang)lang, 0, &b);
			assert_true(b.len > 0);
			as_name_crate(odd[i], (enum as_lang)lang, &b);
			as_buf_clear(&b);
		}
	}
}

static void deep_and_long_names_are_bounded(void **st)
{
	static const char *const units[] = {"a::", "<",    "Vec<",   "<T as ", "&",
					    "(",   "{",    "dyn A+", "f<T,",   "[",
					    "'a ", "a<b>", ">>",     "::<"};
	clock_t begin = clock();

	for (size_t i = 0; i < AS_ARRAY_LEN(units); i++) {
		struct as_buf in = {0}, out = {0};

		while (in.len < 200000)
			as_buf_adds(&in, units[i]);
		for (int lang = AS_LANG_RUST; lang <= AS_LANG_CXX; lang++) {
			as_name_short(in.p, (enum as_lang)lang, 0, &out);
			as_name_crate(in.p, (enum as_lang)lang, &out);
		}
		assert_true(out.len > 0);
		as_buf_clear(&in);
		as_buf_clear(&out);
	}
	assert_true(clock() - begin < 20 * CLOCKS_PER_SEC);
}

static void random_text_is_survived_and_answers_are_stable(void **st)
{
	static const char alphabet[] = "ab:<>(){}[]&*' ,-+\"#T0;=operatorimplforasdyn::<><>";
	uint64_t seed = 7;

	for (int round = 0; round < 20000; round++) {
		struct as_buf in = {0}, a = {0}, b = {0};

		for (int i = 0; i < round % 60; i++) {
			seed = as_mix64(seed + 0x9e3779b97f4a7c15ull);
			as_buf_addc(&in, alphabet[seed % (sizeof alphabet - 1)]);
		}
		for (int lang = AS_LANG_RUST; lang <= AS_LANG_CXX; lang++) {
			as_name_short(as_buf_str(&in), (enum as_lang)lang, round & 1, &a);
			as_name_short(as_buf_str(&in), (enum as_lang)lang, round & 1, &b);
			as_name_crate(as_buf_str(&in), (enum as_lang)lang, &a);
			as_name_crate(as_buf_str(&in), (enum as_lang)lang, &b);
		}
		assert_string_equal(a.p, b.p);
		as_buf_clear(&in);
		as_buf_clear(&a);
		as_buf_clear(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rust_names_become_short),
		cmocka_unit_test(cxx_names_become_short),
		cmocka_unit_test(c_names_stay),
		cmocka_unit_test(appending_keeps_what_was_there),
		cmocka_unit_test(paths_are_guessed_from_files),
		cmocka_unit_test(a_short_name_is_never_empty),
		cmocka_unit_test(deep_and_long_names_are_bounded),
		cmocka_unit_test(random_text_is_survived_and_answers_are_stable),
	};

	return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}
