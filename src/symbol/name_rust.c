/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Short Rust names. The rules, for what rustc-demangle's "{:#}" prints of either mangling and
 * for names made of DWARF:
 *
 *  methods	"<a::b::Type<X> as Trait>::f", "a::b::Type<X>::f" and "a::<impl Trait for Type>::f"
 *		become "Type<X>::f", with one module before it when the type is not std's:
 *		"parse::Context::run". A self type that is a bare parameter says nothing: then the
 *		trait stands for it ("Into::into"). Types that are no path keep brackets:
 *		"<[T]>::sort".
 *  functions	the last three components, "memchr::memmem::find"; the last two for std's,
 *		"mem::swap"; drop_in_place (drop_glue) alone.
 *  arguments	of generics keep the last component of every path, "Vec<String,Global>";
 *		AS_NAME_FOLD_GENERICS leaves them out, but for what drop_in_place drops.
 *  gone	lifetimes, for<'a>, hashes, [disambiguators], "#0" of closures, {impl#0}.
 *
 * std's are core, alloc, std, proc_macro, and hashbrown, which std's maps are made of.
 */
#include "symbol/name_priv.h"

#include <string.h>
#include "base/mem.h"

enum part_kind { PART_NAME, PART_ROOT, PART_BRACE };
enum place { PLACE_TOP, PLACE_SELF, PLACE_ARG };

struct part {
	enum part_kind kind;
	struct as_span name; /* PART_ROOT: what the brackets hold */
	struct as_span args; /* generics without brackets; p NULL: none */
};

struct path {
	struct part v[AS_NAME_MAX_PARTS];
	size_t n;
	bool std, first_seen;
};

static void put_text(struct as_name_out *o, struct as_span s, unsigned depth);
static void put_path(struct as_name_out *o, const struct path *p, enum place place,
		     unsigned depth);

static bool is_std(struct as_span crate)
{
	static const char *const names[] = {"core", "alloc", "std", "proc_macro", "hashbrown"};

	for (size_t i = 0; i < AS_ARRAY_LEN(names); i++) {
		if (as_span_is(crate, names[i]))
			return true;
	}
	return false;
}

/* Its argument is what it is about. Newer compilers call it drop_glue. */
static bool is_drop(struct as_span s)
{
	return as_span_is(s, "drop_in_place") || as_span_is(s, "drop_glue");
}

static bool is_hash(struct as_span s)
{
	if (s.n != 17 || s.p[0] != 'h')
		return false;
	for (size_t i = 1; i < s.n; i++) {
		if (!strchr("0123456789abcdef", s.p[i]))
			return false;
	}
	return true;
}

static void add_part(struct path *p, struct part part)
{
	if (part.kind == PART_BRACE && as_span_starts(part.name, "impl#"))
		return;
	if (part.kind == PART_NAME && p->n && is_hash(part.name))
		return;
	if (!p->first_seen) {
		p->first_seen = true;
		p->std = part.kind == PART_NAME && is_std(part.name);
	}
	if (p->n == AS_NAME_MAX_PARTS) {
		memmove(p->v, p->v + 1, (p->n - 1) * sizeof *p->v);
		p->n--;
	}
	p->v[p->n++] = part;
}

/* A bracket group at i without its brackets. */
static struct as_span inside(struct as_span s, size_t i, size_t *ret_end)
{
	size_t end = as_skip_group(s, i);
	size_t last = end > i + 1 && strchr(">)]}", s.p[end - 1]) ? end - 1 : end;

	*ret_end = end;
	return as_sub(s, i + 1, AS_MAX(last, i + 1));
}

static size_t parse_angle(struct as_span s, size_t i, struct path *p)
{
	struct as_span in = inside(s, i, &i);

	if (p->n && p->v[p->n - 1].kind == PART_NAME && !as_span_starts(in, "impl ")) {
		if (!p->v[p->n - 1].args.p)
			p->v[p->n - 1].args = in;
	} else {
		add_part(p, (struct part){.kind = PART_ROOT, .name = in});
	}
	return i;
}

/* "{{closure}}", "{closure#0}", "{shim:vtable#0}", "{closure_env#0}<T>" */
static size_t parse_brace(struct as_span s, size_t i, struct path *p)
{
	struct part part = {.kind = PART_BRACE};
	struct as_span in = inside(s, i, &i);

	if (in.n > 1 && in.p[0] == '{')
		in = as_sub(in, 1, in.n - (in.p[in.n - 1] == '}'));
	if (!as_span_starts(in, "impl#")) {
		size_t cut = as_find_top(in, 0, "#");

		in = as_sub(in, 0, cut);
	}
	part.name = in;
	if (i < s.n && s.p[i] == '<')
		part.args = inside(s, i, &i);
	add_part(p, part);
	return i;
}

static size_t parse_name(struct as_span s, size_t i, struct path *p)
{
	size_t from = i;
	struct part part = {.kind = PART_NAME};

	while (i < s.n && (as_is_ident(s.p[i]) || s.p[i] == '#' ||
			   (s.p[i] == '.' && i + 1 < s.n && as_is_ident(s.p[i + 1]))))
		i++;
	part.name = as_sub(s, from, i);
	if (i < s.n && s.p[i] == '[')
		i = as_skip_group(s, i); /* crate disambiguator */
	if (i < s.n && s.p[i] == '<')
		part.args = inside(s, i, &i);
	add_part(p, part);
	return i;
}

static bool path_starts(struct as_span s, size_t i)
{
	return i < s.n && (as_is_ident(s.p[i]) || s.p[i] == '<' || s.p[i] == '{');
}

/* Reads the path at i; returns the index after it. */
static size_t parse_path(struct as_span s, size_t i, struct path *p)
{
	while (path_starts(s, i)) {
		if (s.p[i] == '<')
			i = parse_angle(s, i, p);
		else if (s.p[i] == '{')
			i = parse_brace(s, i, p);
		else
			i = parse_name(s, i, p);
		if (i + 2 >= s.n || s.p[i] != ':' || s.p[i + 1] != ':' ||
		    !path_starts(s, i + 2))
			break;
		i += 2;
	}
	return i;
}

/* The generics of one part, lifetimes left out, comma without a blank. */
static void put_args(struct as_name_out *o, struct as_span args, unsigned depth)
{
	bool any = false;
	size_t i = 0;

	while (i < args.n) {
		size_t end = as_find_top(args, i, ",");
		struct as_span a = as_span_trim(as_sub(args, i, end));

		i = end + 1;
		if (!a.n || (a.p[0] == '\'' && as_skip_token(a, 0) == 1))
			continue;
		as_name_adds(o, any ? "," : "<");
		any = true;
		put_text(o, a, depth + 1);
	}
	if (any)
		as_name_adds(o, ">");
}

/*
 * Self type and trait of a root: "T as Trait", "impl Trait for T", "impl T", "T".
 */
static void split_root(struct as_span in, struct as_span *self, struct as_span *trait)
{
	size_t at;

	*trait = as_span_of("", 0);
	if (as_span_starts(in, "impl ")) {
		in = as_sub(in, 5, in.n);
		at = as_find_top(in, 0, " for ");
		*self = at < in.n ? as_sub(in, at + 5, in.n) : in;
		if (at < in.n)
			*trait = as_sub(in, 0, at);
		return;
	}
	at = as_find_top(in, 0, " as ");
	*self = as_sub(in, 0, at);
	if (at < in.n)
		*trait = as_sub(in, at + 4, in.n);
}

/* "T", "&T", "&mut F": a parameter, since real types of one or two letters come with a path. */
static bool is_parameter(struct as_span s)
{
	while (s.n && s.p[0] == '&')
		s = as_span_trim(as_sub(s, 1, s.n));
	if (as_span_starts(s, "mut "))
		s = as_sub(s, 4, s.n);
	return s.n && s.n <= 2 && s.p[0] >= 'A' && s.p[0] <= 'Z';
}

static void put_root(struct as_name_out *o, struct as_span in, enum place place, unsigned depth)
{
	struct as_span self, trait;
	struct path p = {0};
	bool plain;

	split_root(in, &self, &trait);
	if (trait.n && is_parameter(self))
		self = trait;
	plain = self.n && (as_is_ident(self.p[0]) || self.p[0] == '<') &&
		!as_span_starts(self, "dyn ") && !as_span_starts(self, "fn(") &&
		!as_span_starts(self, "unsafe ") && !as_span_starts(self, "extern ") &&
		!as_span_starts(self, "for<");
	if (plain && parse_path(self, 0, &p) == self.n) {
		put_path(o, &p, place == PLACE_ARG ? PLACE_ARG : PLACE_SELF, depth + 1);
		return;
	}
	as_name_adds(o, "<");
	put_text(o, self, depth + 1);
	as_name_adds(o, ">");
}

static bool is_type_name(const struct part *p)
{
	return p->kind == PART_NAME &&
	       (p->args.p || (p->name.n && p->name.p[0] >= 'A' && p->name.p[0] <= 'Z'));
}

/* The last part that is a name; trailing closures belong to it. */
static size_t last_name(const struct path *p)
{
	size_t i = p->n - 1;

	while (i && p->v[i].kind == PART_BRACE)
		i--;
	return i;
}

static size_t back(const struct path *p, size_t from, size_t names)
{
	while (from && names) {
		from--;
		names -= p->v[from].kind != PART_BRACE;
	}
	return from;
}

/* Where the shown part of a path begins. */
static size_t first_shown(const struct path *p, enum place place)
{
	size_t name = last_name(p);

	for (size_t i = p->n; i-- > 0;) {
		if (p->v[i].kind == PART_ROOT)
			return i;
	}
	if (place == PLACE_ARG)
		return name;
	if (place == PLACE_SELF)
		return p->std ? name : back(p, name, 1);
	for (size_t i = 0; i < name; i++) {
		if (is_type_name(&p->v[i]))
			return p->std ? i : back(p, i, 1);
	}
	if (p->std && is_drop(p->v[name].name))
		return name;
	return back(p, name, p->std ? 1 : 2);
}

static void put_path(struct as_name_out *o, const struct path *p, enum place place,
		     unsigned depth)
{
	size_t first;

	if (!p->n || o->full)
		return;
	if (depth > AS_NAME_MAX_DEPTH) {
		as_name_adds(o, "_");
		return;
	}
	first = first_shown(p, place);
	for (size_t i = first; i < p->n; i++) {
		const struct part *v = &p->v[i];

		if (i > first)
			as_name_adds(o, "::");
		if (v->kind == PART_ROOT) {
			put_root(o, v->name, place, depth);
		} else if (v->kind == PART_BRACE) {
			as_name_adds(o, "{");
			as_name_add(o, v->name.p, v->name.n);
			as_name_adds(o, "}");
		} else {
			as_name_add(o, v->name.p, v->name.n);
		}
		if (v->args.p && (!o->fold || is_drop(v->name)))
			put_args(o, v->args, depth);
	}
}

/* A lifetime at i: nothing of it is shown, nor of the "+ " before it or the blank after it. */
static size_t drop_lifetime(struct as_name_out *o, struct as_span s, size_t i)
{
	i++;
	while (i < s.n && as_is_ident(s.p[i]))
		i++;
	if (o->b->len - o->start > 3 && memcmp(o->b->p + o->b->len - 3, " + ", 3) == 0) {
		o->b->len -= 3;
		o->b->p[o->b->len] = '\0';
	} else if (i < s.n && s.p[i] == ' ') {
		i++;
	}
	return i;
}

/* Any type or constant: paths are shortened, the rest stands. */
static void put_text(struct as_name_out *o, struct as_span s, unsigned depth)
{
	size_t i = 0;

	if (depth > AS_NAME_MAX_DEPTH) {
		as_name_adds(o, "_");
		return;
	}
	while (i < s.n && !o->full) {
		struct path p = {0};
		size_t next;

		if (as_span_starts(as_sub(s, i, s.n), "for<")) {
			i = as_skip_group(s, i + 3);
			i += i < s.n && s.p[i] == ' ';
		} else if (path_starts(s, i)) {
			i = parse_path(s, i, &p);
			put_path(o, &p, PLACE_ARG, depth);
		} else if (s.p[i] == '\'' && as_skip_token(s, i) == i + 1) {
			i = drop_lifetime(o, s, i);
		} else if (s.p[i] == '\'' || s.p[i] == '"') {
			next = as_skip_token(s, i);
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

void as_name_short_rust(struct as_name_out *o, struct as_span s)
{
	struct path p = {0};
	size_t end = parse_path(s, 0, &p);

	put_path(o, &p, PLACE_TOP, 0);
	if (end < s.n)
		put_text(o, as_sub(s, end, s.n), 0);
}

static struct as_span first_crate(struct as_span s, unsigned depth)
{
	struct as_span self, trait, found;
	size_t end;

	while (s.n && strchr("&*[( ", s.p[0]))
		s = as_sub(s, 1, s.n);
	for (size_t i = 0; i < 3; i++) {
		static const char *const words[] = {"mut ", "const ", "dyn "};

		if (as_span_starts(s, words[i]))
			s = as_sub(s, strlen(words[i]), s.n);
	}
	if (as_span_starts(s, "for<"))
		s = as_span_trim(as_sub(s, as_skip_group(s, 3), s.n));
	if (!s.n || depth > AS_NAME_MAX_DEPTH)
		return as_span_of("", 0);
	if (s.p[0] == '<') {
		split_root(inside(s, 0, &end), &self, &trait);
		found = first_crate(self, depth + 1);
		return found.n ? found : first_crate(trait, depth + 1);
	}
	for (end = 0; end < s.n && (as_is_ident(s.p[end]) || s.p[end] == '#');)
		end++;
	/* a name alone is a primitive type or a parameter */
	if (as_find_top(as_sub(s, end, s.n), 0, "::") == s.n - end)
		return as_span_of("", 0);
	return as_sub(s, 0, end);
}

struct as_span as_name_crate_rust(struct as_span s)
{
	struct as_span found = first_crate(s, 0);

	/* methods of primitive types are core's */
	return found.n || s.n == 0 || s.p[0] != '<' ? found : as_span_of("core", 4);
}
