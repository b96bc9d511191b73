/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Types of containers by the names of their functions: see tables.h. */
#include <ctype.h>
#include <string.h>

#include "model/memory/tables.h"
#include "model/model_priv.h"

/* path: how the name begins in a function's; shown: what it is called. Those with parameters are
 * followed by "<"; nparameters: how many of them are told, the others are allocators and hashers. */
static const struct container {
	const char *path, *shown;
	unsigned nparameters;
} containers[] = {
	{"alloc::raw_vec::RawVec", "Vec", 1},
	{"alloc::vec::Vec", "Vec", 1},
	{"alloc::string::String", "String", 0},
	{"alloc::boxed::Box", "Box", 1},
	{"alloc::rc::Rc", "Rc", 1},
	{"alloc::sync::Arc", "Arc", 1},
	{"alloc::collections::vec_deque::VecDeque", "VecDeque", 1},
	{"alloc::collections::binary_heap::BinaryHeap", "BinaryHeap", 1},
	{"alloc::collections::linked_list::LinkedList", "LinkedList", 1},
	{"alloc::collections::btree::map::BTreeMap", "BTreeMap", 2},
	{"alloc::collections::btree::set::BTreeSet", "BTreeSet", 1},
	{"hashbrown::raw::RawTable", "HashMap", 1},
	{"hashbrown::map::HashMap", "HashMap", 2},
	{"hashbrown::set::HashSet", "HashSet", 1},
	{"std::collections::hash::map::HashMap", "HashMap", 2},
	{"std::collections::hash::set::HashSet", "HashSet", 1},
	{"std::ffi::os_str::OsString", "OsString", 0},
	{"std::path::PathBuf", "PathBuf", 0},
	{"alloc::ffi::c_str::CString", "CString", 0},
	{"std::vector", "std::vector", 1},
	{"std::deque", "std::deque", 1},
	{"std::__cxx11::list", "std::list", 1},
	{"std::list", "std::list", 1},
	{"std::_Rb_tree", "std::map", 2},
	{"std::map", "std::map", 2},
	{"std::set", "std::set", 1},
	{"std::_Hashtable", "std::unordered_map", 2},
	{"std::unordered_map", "std::unordered_map", 2},
	{"std::unordered_set", "std::unordered_set", 1},
	{"std::__cxx11::basic_string", "std::string", 0},
	{"std::basic_string", "std::string", 0},
	{"std::make_shared", "std::shared_ptr", 1},
	{"std::shared_ptr", "std::shared_ptr", 1},
	{"std::make_unique", "std::unique_ptr", 1},
	{"std::unique_ptr", "std::unique_ptr", 1},
};

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

size_t as_heap_name_length(const char *p, char end)
{
	size_t n = 0, depth = 0;

	for (; p[n]; n++) {
		if (depth == 0 && (p[n] == ',' || p[n] == end))
			break;
		if (strchr("<([{", p[n]))
			depth++;
		else if (strchr(">)]}", p[n]) && depth &&
			 !(p[n] == '>' && n && p[n - 1] == '-'))
			depth--;
	}
	return n;
}

/* Without the paths of what everybody knows: alloc::string::String is String. */
static void add_short(struct as_buf *out, const char *p, size_t n)
{
	for (size_t i = 0; i < n;) {
		size_t best = 0;
		const char *shown = "";

		for (size_t c = 0; c < AS_ARRAY_LEN(containers); c++) {
			size_t k = strlen(containers[c].path);

			if (k > n - i || memcmp(p + i, containers[c].path, k) != 0 ||
			    (k < n - i && is_word(p[i + k])) || (i && is_word(p[i - 1])) ||
			    (i && p[i - 1] == ':') || k <= best)
				continue;
			best = k;
			shown = containers[c].shown;
		}
		if (best)
			as_buf_adds(out, shown);
		else
			as_buf_addc(out, p[i]);
		i += best ? best : 1;
	}
}

static void add_parameters(struct as_buf *out, const char *p, unsigned n)
{
	as_buf_addc(out, '<');
	for (unsigned i = 0; i < n; i++) {
		size_t length = as_heap_name_length(p, '>');

		if (i)
			as_buf_adds(out, ", ");
		add_short(out, p, length);
		p += length;
		if (*p != ',')
			break;
		p++;
		p += *p == ' ';
	}
	as_buf_addc(out, '>');
}

/* A function of the container: "<alloc::vec::Vec<u8>>::push", "alloc::vec::Vec<T,A>::push"; not one
 * that only has it as a parameter. */
static const char *find_start(const char *full)
{
	while (*full == '<' || *full == '&')
		full++;
	return full;
}

static bool is_container(const struct container *c, const char *at)
{
	size_t k = strlen(c->path);

	if (strncmp(at, c->path, k) != 0)
		return false;
	at += k;
	if (strncmp(at, "::<", 3) == 0)
		at += 2;
	return c->nparameters ? *at == '<' : !is_word(*at);
}

bool as_heap_type_of_name(const char *full, struct as_buf *out)
{
	const char *at = find_start(full);

	for (size_t i = 0; i < AS_ARRAY_LEN(containers); i++) {
		const struct container *c = &containers[i];
		const char *p;

		if (!is_container(c, at))
			continue;
		as_buf_adds(out, c->shown);
		p = strchr(at, '<');
		if (c->nparameters && p)
			add_parameters(out, p + 1, c->nparameters);
		return true;
	}
	return false;
}

/* A parameter's name in source: T, A, K, not u8 or a path. */
static size_t placeholder_length(const char *p)
{
	size_t n = 0;

	if (!isupper((unsigned char)*p))
		return 0;
	while (is_word(p[n]))
		n++;
	return p[n] == ',' || p[n] == '>' || p[n] == ' ' ? n : 0;
}

/* Parameters one by one, both lists at once; false: they do not fit together. */
static bool add_replaced(const char **full, const char *given, struct as_buf *out)
{
	const char *p = *full;

	for (bool first = true; *p != '>'; first = false) {
		size_t n = placeholder_length(p), g = as_heap_name_length(given, '>');

		if (!n || !g || (given[g] != ',' && given[g] != '>'))
			return false;
		as_buf_adds(out, first ? "" : ", ");
		as_buf_add(out, given, g);
		given += g + (given[g] == ',');
		given += *given == ' ';
		p += n;
		p += *p == ',';
		p += *p == ' ';
	}
	*full = p;
	return true;
}

void as_heap_with_parameters(const char *full, const char *generic, struct as_buf *out)
{
	const char *open = generic ? strchr(generic, '<') : NULL, *at = strchr(full, '<');
	size_t start = out->len;

	/* "<alloc::vec::Vec<T,A> as core::ops::Drop>::drop": the list behind a word */
	while (at && (at == full || !is_word(at[-1])))
		at = strchr(at + 1, '<');
	if (open && at) {
		const char *rest = at + 1;

		as_buf_add(out, full, (size_t)(rest - full));
		if (add_replaced(&rest, open + 1, out)) {
			as_buf_adds(out, rest);
			return;
		}
		out->len = start;
	}
	as_buf_adds(out, full);
}

uint64_t as_heap_size_of_type(const char *name, size_t n)
{
	static const struct {
		const char *name;
		uint64_t bytes;
	} sizes[] = {
		{"u8", 1},    {"i8", 1},      {"bool", 1},  {"u16", 2},           {"i16", 2},
		{"u32", 4},   {"i32", 4},     {"f32", 4},   {"u64", 8},           {"i64", 8},
		{"f64", 8},   {"usize", 8},   {"isize", 8}, {"u128", 16},         {"i128", 16},
		{"&str", 16}, {"int", 4},     {"long", 8},  {"unsigned long", 8}, {"double", 8},
		{"float", 4}, {"String", 24},
	};

	for (size_t i = 0; i < AS_ARRAY_LEN(sizes); i++) {
		if (strlen(sizes[i].name) == n && memcmp(name, sizes[i].name, n) == 0)
			return sizes[i].bytes;
	}
	if (n > 4 && (memcmp(name, "Vec<", 4) == 0))
		return 24;
	if (n > 4 && (memcmp(name, "Box<", 4) == 0) && !memmem(name, n, "dyn ", 4) &&
	    !memmem(name, n, "[", 1))
		return 8;
	return 0;
}
