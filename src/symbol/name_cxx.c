/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Short C++ names: no return type, argument list, qualifiers or "[clone …]"; the last three
 * components without inline namespaces; default template arguments (allocator, traits, less,
 * hash, equal_to, default_delete) left out; in template arguments std:: and the last component.
 *
 *	void ns::f<int>(int)						ns::f<int>
 *	std::vector<int, std::allocator<int> >::push_back(int const&)	std::vector<int>::push_back
 *	(anonymous namespace)::g(char const*)				(anonymous namespace)::g
 */
#include "symbol/name_priv.h"

#include <string.h>
#include "base/mem.h"

struct parts {
	struct as_span v[AS_NAME_MAX_PARTS];
	size_t n;
};

static void put_type(struct as_name_out *o, struct as_span s, unsigned depth);

static bool is_anonymous(struct as_span s, size_t i)
{
	return as_span_starts(as_sub(s, i, s.n), "(anonymous namespace)");
}

static bool is_inline_namespace(struct as_span s)
{
	static const char *const names[] = {"__1", "__cxx11", "_V2", "__ndk1", "__2"};

	for (size_t i = 0; i < AS_ARRAY_LEN(names); i++) {
		if (as_span_is(s, names[i]))
			return true;
	}
	return false;
}

static void add_part(struct parts *p, struct as_span s)
{
	if (is_inline_namespace(s) || !s.n)
		return;
	if (p->n == AS_NAME_MAX_PARTS) {
		memmove(p->v, p->v + 1, (p->n - 1) * sizeof *p->v);
		p->n--;
	}
	p->v[p->n++] = s;
}

static bool is_operator(struct as_span s, size_t i)
{
	return as_span_starts(as_sub(s, i, s.n), "operator") &&
	       (i + 8 == s.n || !as_is_ident(s.p[i + 8])) &&
	       (i == 0 || !as_is_ident(s.p[i - 1]));
}

/* End of a component that starts at i: "operator" takes all up to its argument list. */
static size_t component_end(struct as_span s, size_t i)
{
	bool conversion = false;

	while (i < s.n) {
		if (is_operator(s, i)) {
			conversion = true;
			i = as_skip_token(s, i);
			continue;
		}
		if (s.p[i] == '(' && !is_anonymous(s, i))
			break;
		if (!conversion && as_span_starts(as_sub(s, i, s.n), "::"))
			break;
		i = as_skip_token(s, i);
	}
	return i;
}

/* Where the name begins: after the last blank that no operator precedes, before any arguments. */
static size_t name_start(struct as_span s)
{
	size_t i = 0, start = 0;

	while (i < s.n && !is_operator(s, i) && (s.p[i] != '(' || is_anonymous(s, i))) {
		if (s.p[i] == ' ')
			start = i + 1;
		/* "decltype (f()) g(int)" */
		if (as_span_starts(as_sub(s, i, s.n), "decltype ("))
			i = as_skip_group(s, i + 9);
		else
			i = as_skip_token(s, i);
	}
	return start;
}

static bool is_default_argument(struct as_span a)
{
	static const char *const names[] = {"allocator<", "char_traits<", "less<",
					    "hash<",      "equal_to<",    "default_delete<"};

	if (!as_span_starts(a, "std::"))
		return false;
	a = as_sub(a, 5, a.n);
	if (as_span_starts(a, "__1::"))
		a = as_sub(a, 5, a.n);
	for (size_t i = 0; i < AS_ARRAY_LEN(names); i++) {
		if (as_span_starts(a, names[i]))
			return true;
	}
	return false;
}

static void put_args(struct as_name_out *o, struct as_span args, unsigned depth)
{
	size_t i = 0, k = 0;

	as_name_adds(o, "<");
	while (i < args.n) {
		size_t end = as_find_top(args, i, ",");
		struct as_span a = as_span_trim(as_sub(args, i, end));

		i = end + 1;
		if (k && is_default_argument(a))
			continue;
		if (k++)
			as_name_adds(o, ",");
		put_type(o, a, depth + 1);
	}
	as_name_adds(o, ">");
}

/* One component: its template arguments shortened, ABI tags dropped. */
static void put_component(struct as_name_out *o, struct as_span s, unsigned depth)
{
	size_t i = 0;

	if (depth > AS_NAME_MAX_DEPTH) {
		as_name_adds(o, "_");
		return;
	}
	s = as_span_trim(s);
	if (as_span_is(s, "basic_string<char, std::char_traits<char>, std::allocator<char> >"))
		s = as_span_of("string", 6);
	while (i < s.n) {
		size_t next = as_skip_token(s, i);

		if (s.p[i] == '<' && next > i + 1) {
			struct as_span in = as_sub(s, i + 1, next - (s.p[next - 1] == '>'));

			if (!o->fold)
				put_args(o, in, depth);
		} else if (!(s.p[i] == '[' && as_span_starts(as_sub(s, i, s.n), "[abi:")) &&
			   !(s.p[i] == ' ' && next < s.n && s.p[next] == '<' &&
			     (o->fold || (i && s.p[i - 1] != '<')))) {
			as_name_add(o, s.p + i, next - i);
		}
		i = next;
	}
}

/* A path inside template arguments: std:: and the last component. */
static size_t put_path(struct as_name_out *o, struct as_span s, size_t i, unsigned depth)
{
	struct as_span last = {0}, first = {0};
	size_t parts = 0;

	for (;;) {
		size_t from = i;

		if (i < s.n && s.p[i] == '(')
			i = as_skip_group(s, i);
		while (i < s.n && as_is_ident(s.p[i]))
			i = as_skip_token(s, i);
		if (i < s.n && s.p[i] == '{')
			i = as_skip_group(s, i);
		if (i < s.n && s.p[i] == '<')
			i = as_skip_group(s, i);
		last = as_sub(s, from, i);
		if (!parts++)
			first = last;
		if (i + 2 >= s.n || s.p[i] != ':' || s.p[i + 1] != ':')
			break;
		i += 2;
	}
	if (parts > 1 && as_span_is(first, "std"))
		as_name_adds(o, "std::");
	put_component(o, last, depth);
	return i;
}

static void put_type(struct as_name_out *o, struct as_span s, unsigned depth)
{
	size_t i = 0;

	if (depth > AS_NAME_MAX_DEPTH) {
		as_name_adds(o, "_");
		return;
	}
	while (i < s.n && !o->full) {
		if (as_is_ident(s.p[i]) || is_anonymous(s, i)) {
			i = put_path(o, s, i, depth + 1);
		} else if (s.p[i] == '{' || s.p[i] == '\'' || s.p[i] == '"') {
			size_t next = as_skip_token(s, i);

			as_name_add(o, s.p + i, next - i);
			i = next;
		} else {
			as_name_add(o, s.p + i, 1);
			if (s.p[i] == ',' && i + 1 < s.n && s.p[i + 1] == ' ')
				i++;
			i++;
		}
	}
}

static size_t prefix_length(struct as_span s)
{
	static const char *const prefixes[] = {
		"non-virtual thunk to ",
		"virtual thunk to ",
		"covariant return thunk to ",
		"guard variable for ",
		"vtable for ",
		"VTT for ",
		"typeinfo for ",
		"typeinfo name for ",
		"TLS init function for ",
		"TLS wrapper function for ",
		"reference temporary for ",
		"transaction clone for ",
	};

	for (size_t i = 0; i < AS_ARRAY_LEN(prefixes); i++) {
		if (as_span_starts(s, prefixes[i]))
			return strlen(prefixes[i]);
	}
	return 0;
}

void as_name_short_cxx(struct as_name_out *o, struct as_span s)
{
	size_t prefix = prefix_length(s), i, first;
	struct parts p = {0};

	as_name_add(o, s.p, prefix);
	s = as_sub(s, prefix, s.n);
	s = as_sub(s, 0, as_find_top(s, 0, " [clone"));
	for (i = name_start(s); i < s.n;) {
		size_t end = component_end(s, i), next;

		add_part(&p, as_sub(s, i, end));
		/* arguments and qualifiers of an enclosing function up to "::" are dropped */
		next = as_find_top(s, end, "::");
		i = next < s.n ? next + 2 : s.n;
	}
	first = p.n > 3 ? p.n - 3 : 0;
	for (i = first; i < p.n; i++) {
		if (i > first)
			as_name_adds(o, "::");
		put_component(o, p.v[i], 0);
	}
}
