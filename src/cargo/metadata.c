/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What `cargo metadata` says of the packages of a workspace: see cargo.h. */
#include <jansson.h>
#include <string.h>

#include "cargo/cargo_priv.h"

const char *const as_cargo_kind_words[AS_CARGO_KINDS_] = {"bin", "example", "test", "bench",
							  "lib"};

bool as_cargo_kind_of(const json_t *target, enum as_cargo_kind *ret)
{
	static const char *const libraries[] = {"rlib", "dylib", "cdylib", "staticlib",
						"proc-macro"};
	const json_t *kinds = json_object_get(target, "kind"), *kind;
	size_t at;

	json_array_foreach(kinds, at, kind)
	{
		const char *word = json_string_value(kind);

		for (int k = 0; word && k < AS_CARGO_KINDS_; k++) {
			if (strcmp(word, as_cargo_kind_words[k]) == 0) {
				*ret = (enum as_cargo_kind)k;
				return true;
			}
		}
		for (size_t k = 0; word && k < AS_ARRAY_LEN(libraries); k++) {
			if (strcmp(word, libraries[k]) == 0) {
				*ret = AS_CARGO_LIB;
				return true;
			}
		}
	}
	return false;
}

static const char *text_of(struct as_cargo_metadata *m, const json_t *object, const char *key,
			   const char *absent)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? as_arena_strdup(&m->arena, s) : absent;
}

static const char *authors_of(struct as_cargo_metadata *m, const json_t *package)
{
	AS_CLEANUP(as_buf_clear) struct as_buf all = {0};
	const json_t *author;
	size_t at;

	json_array_foreach(json_object_get(package, "authors"), at, author)
	{
		if (at)
			as_buf_addc(&all, ':');
		as_buf_adds(&all, json_string_value(author) ? json_string_value(author) : "");
	}
	return as_arena_strdup(&m->arena, as_buf_str(&all));
}

static void add_package(struct as_cargo_metadata *m, const json_t *package)
{
	struct as_cargo_package p = {
		.name = text_of(m, package, "name", ""),
		.version = text_of(m, package, "version", ""),
		.id = text_of(m, package, "id", ""),
		.manifest_path = text_of(m, package, "manifest_path", ""),
		.default_run = text_of(m, package, "default_run", NULL),
		.authors = authors_of(m, package),
		.description = text_of(m, package, "description", ""),
		.homepage = text_of(m, package, "homepage", ""),
		.repository = text_of(m, package, "repository", ""),
		.license = text_of(m, package, "license", ""),
	};
	const json_t *target;
	size_t at;

	json_array_foreach(json_object_get(package, "targets"), at, target)
	{
		struct as_cargo_target t = {.name = text_of(m, target, "name", "")};

		if (as_cargo_kind_of(target, &t.kind))
			as_vec_push(&p.targets, t);
	}
	json_array_foreach(json_object_get(package, "dependencies"), at, target)
	{
		if (json_is_string(json_object_get(target, "path")))
			as_vec_push(&p.paths,
				    (struct as_cargo_path){text_of(m, target, "name", ""),
							   text_of(m, target, "path", "")});
	}
	as_vec_push(&m->packages, p);
}

static bool holds(const json_t *ids, const char *id)
{
	const json_t *one;
	size_t at;

	json_array_foreach(ids, at, one)
	{
		const char *s = json_string_value(one);

		if (s && strcmp(s, id) == 0)
			return true;
	}
	return false;
}

int as_cargo_metadata_parse(const char *text, size_t n, struct as_cargo_metadata *ret,
			    struct as_error *err)
{
	json_error_t why;
	json_t *root = json_loadb(text, n, 0, &why);
	const json_t *members = json_object_get(root, "workspace_members"), *package;
	/* cargo before 1.71 does not say which members are the default ones */
	const json_t *defaults = json_object_get(root, "workspace_default_members");
	size_t at;

	*ret = (struct as_cargo_metadata){0};
	if (!json_is_array(json_object_get(root, "packages"))) {
		json_decref(root);
		return as_fail(err, AS_E_FORMAT, 0,
			       "cannot read what 'cargo metadata' printed: %s",
			       root ? "it names no packages" : why.text);
	}
	ret->target_directory = text_of(ret, root, "target_directory", "");
	json_array_foreach(json_object_get(root, "packages"), at, package)
	{
		const char *id = json_string_value(json_object_get(package, "id"));

		if (!id || (json_is_array(members) && !holds(members, id)))
			continue;
		add_package(ret, package);
		ret->packages.v[ret->packages.n - 1].is_default =
			!json_is_array(defaults) || holds(defaults, id);
	}
	json_decref(root);
	return AS_OK;
}

void as_cargo_metadata_clear(struct as_cargo_metadata *m)
{
	for (size_t i = 0; i < m->packages.n; i++) {
		as_vec_clear(&m->packages.v[i].targets);
		as_vec_clear(&m->packages.v[i].paths);
	}
	as_vec_clear(&m->packages);
	as_arena_clear(&m->arena);
}
