/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rows of sessions under names that survive a rebuild. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "model/diff/diff_priv.h"
#include "model/diff/identity.h"

static const char *last_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The recorded program's own module is the same whatever its file is called in each build. */
static void add_module(const struct as_model *m, const char *name, struct as_buf *out)
{
	const char *program = last_name(as_model_info(m, "program"));

	if (strcmp(name, program) != 0)
		as_stable_module(name, out);
}

/* A path without the folder the build was made in. */
static void add_file(const struct as_model *m, const char *file, struct as_buf *out)
{
	const char *cwd = as_model_info(m, "cwd"), *at;
	size_t n = strlen(cwd);

	if (n > 1 && strncmp(file, cwd, n) == 0 && file[n] == '/') {
		file += n + 1;
	} else if (strncmp(file, "/rustc/", 7) == 0 && (at = strchr(file + 7, '/'))) {
		as_buf_adds(out, "/rustc");
		file = at;
	}
	as_buf_adds(out, file);
}

/* Only Rust's names have crates, and two manglings. */
static void add_function(const struct as_diff_match *d, const struct as_row *r,
			 struct as_buf *out)
{
	if (d->loose && r->crate && *r->crate)
		as_loose_function(r->full_name, out);
	else
		as_stable_function(r->full_name, out);
}

static void add_line(const struct as_diff_match *d, const struct as_model *m,
		     const struct as_row *r, struct as_buf *out)
{
	/* The function's first line is where it is declared; its body may move as a whole. */
	const struct as_m_function *f = NULL;

	for (uint32_t i = 0; i < m->functions.n && !f; i++) {
		if (m->functions.v[i].full == r->full_name)
			f = &m->functions.v[i];
	}
	add_function(d, r, out);
	if (f && f->line && r->line >= f->line) {
		as_buf_addf(out, "+%u", r->line - f->line);
		return;
	}
	as_buf_addc(out, '\n');
	add_file(m, r->file, out);
	as_buf_addf(out, ":%u", r->line);
}

static bool is_rebuilt(const struct as_diff_match *d, const char *module)
{
	as_vec_foreach (name, &d->rebuilt) {
		if (strcmp(*name, module) == 0)
			return true;
	}
	return false;
}

static void stable_key(struct as_diff_match *d, const struct as_model *m, enum as_by by,
		       struct as_row *r, struct as_buf *out)
{
	switch (by) {
	case AS_BY_FUNCTION:
		if (r->unsymbolized && is_rebuilt(d, r->module)) {
			/* an address of one build is none of another */
			as_buf_addf(out, "[%s without names]", r->module);
			r->name = r->full_name = as_arena_strdup(d->arena, as_buf_str(out));
			add_module(m, r->module, out);
			break;
		}
		add_function(d, r, out);
		as_buf_addc(out, '\n');
		add_module(m, r->module, out);
		break;
	case AS_BY_LINE:
		add_line(d, m, r, out);
		break;
	case AS_BY_FILE:
		add_file(m, r->name, out);
		break;
	case AS_BY_MODULE:
		add_module(m, r->name, out);
		break;
	default:
		as_buf_adds(out, r->name);
	}
}

static uint32_t name_of(struct as_diff_match *d, const struct as_buf *key,
			const struct as_row *r)
{
	uint64_t h = as_hash64(as_buf_str(key), key->len);

	for (;; h++) {
		bool fresh;
		uint64_t *id = as_map64_put(&d->by_key, h >> 1, &fresh);

		if (fresh) {
			struct as_diff_name n = {.key_bytes = key->len, .row = *r};

			n.key = as_arena_strndup(d->arena, as_buf_str(key), key->len);
			/* names of labels live in a profile that does not stay */
			n.row.name = as_arena_strdup(d->arena, r->name);
			n.row.full_name = as_arena_strdup(d->arena, r->full_name);
			*id = d->names.n;
			as_vec_push(&d->names, n);
			return (uint32_t)*id;
		}
		if (d->names.v[*id].key_bytes == key->len &&
		    memcmp(d->names.v[*id].key, as_buf_str(key), key->len) == 0)
			return (uint32_t)*id;
	}
}

uint32_t as_diff_match_name(struct as_diff_match *d, const struct as_profile *p, uint32_t key)
{
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};
	struct as_row row;

	as_profile_name(p, key, &row);
	stable_key(d, p->model, p->query.by, &row, &text);
	return name_of(d, &text, &row);
}

/* Per row of p its name; true when two rows have one. */
static bool name_rows(struct as_diff_match *d, const struct as_profile *p, uint32_t *ret)
{
	AS_CLEANUP(as_buf_clear) struct as_buf key = {0};
	AS_CLEANUP(as_free_autop) uint8_t *seen = NULL;
	bool twice = false;

	for (size_t i = 0; i < p->rows.n; i++) {
		struct as_row row = p->rows.v[i];

		as_buf_reset(&key);
		stable_key(d, p->model, p->query.by, &row, &key);
		ret[i] = name_of(d, &key, &row);
	}
	seen = as_xcalloc(d->names.n + 1, 1);
	for (size_t i = 0; i < p->rows.n; i++)
		twice |= seen[ret[i]]++ != 0;
	return twice;
}

/* alias[key] = the first key of the same name. */
static uint32_t *aliases(const struct as_profile *p, const uint32_t *names, size_t nnames,
			 uint32_t *ret_n)
{
	uint32_t n = 0, *alias;
	AS_CLEANUP(as_free_autop)
	uint32_t *first = as_xreallocarray(NULL, nnames + 1, sizeof *first);

	for (size_t i = 0; i < p->rows.n; i++)
		n = AS_MAX(n, p->rows.v[i].key + 1);
	alias = as_xreallocarray(NULL, n + 1, sizeof *alias);
	for (uint32_t k = 0; k < n; k++)
		alias[k] = k;
	memset(first, 0xff, (nnames + 1) * sizeof *first);
	for (size_t i = 0; i < p->rows.n; i++) {
		if (first[names[i]] == AS_NONE)
			first[names[i]] = p->rows.v[i].key;
		alias[p->rows.v[i].key] = first[names[i]];
	}
	*ret_n = n;
	return alias;
}

static void take_shares(const struct as_profile *p, const uint32_t *names, bool total,
			size_t nnames, struct as_diff_session *ret)
{
	ret->shares.n = ret->selfs.n = ret->present.n = 0;
	while (ret->shares.n < nnames) {
		as_vec_push(&ret->shares, (struct as_share){0});
		as_vec_push(&ret->selfs, (struct as_share){0});
		as_vec_push(&ret->present, 0);
	}
	for (size_t i = 0; i < p->rows.n; i++) {
		ret->shares.v[names[i]] = total ? p->rows.v[i].total : p->rows.v[i].self;
		ret->selfs.v[names[i]] = p->rows.v[i].self;
		ret->present.v[names[i]] = 1;
	}
}

void as_diff_run_range(const struct as_diff_session *s, struct as_query *q)
{
	uint64_t start = s->model->recording.start_ns;

	if (!s->trial)
		return;
	q->from_ns = s->trial->start_ns - start;
	q->to_ns = s->trial->end_ns + 1 - start;
}

/* name_of_key: what each key of p is called. */
static void keep_names(const struct as_profile *p, const uint32_t *names,
		       struct as_diff_session *s)
{
	uint32_t n = 0;

	for (size_t i = 0; i < p->rows.n; i++)
		n = AS_MAX(n, p->rows.v[i].key + 1);
	s->nkeys = n;
	s->name_of_key = as_xreallocarray(s->name_of_key, n + 1, sizeof *s->name_of_key);
	memset(s->name_of_key, 0xff, (n + 1) * sizeof *s->name_of_key);
	for (size_t i = 0; i < p->rows.n; i++)
		s->name_of_key[p->rows.v[i].key] = names[i];
}

int as_diff_match_add(struct as_diff_match *d, const struct as_query *q, bool total,
		      struct as_diff_session *s, struct as_error *err)
{
	AS_CLEANUP(as_free_autop) uint32_t *names = NULL;
	struct as_query query = *q;
	struct as_profile *p = NULL;
	int r;

	query.shape = AS_SHAPE_FLAT;
	query.hidden = s->hidden;
	as_diff_run_range(s, &query);
	r = as_profile_make(s->model, &query, &p, err);
	if (r < 0)
		return r;
	names = as_xreallocarray(NULL, p->rows.n + 1, sizeof *names);
	free(s->alias);
	s->alias = NULL;
	s->naliases = 0;
	if (name_rows(d, p, names)) {
		keep_names(p, names, s);
		s->alias = aliases(p, names, d->names.n, &s->naliases);
		query.alias = s->alias;
		query.naliases = s->naliases;
		as_profile_free(p);
		p = NULL;
		r = as_profile_make(s->model, &query, &p, err);
		if (r < 0)
			return r;
		(void)name_rows(d, p, names); /* fewer rows, each name once */
	} else {
		keep_names(p, names, s);
	}
	s->weight = p->weight;
	s->samples = p->samples;
	take_shares(p, names, total, d->names.n, s);
	as_profile_free(p);
	return AS_OK;
}

/* What a module is called in all sessions: as keys have it. */
static void module_key(const struct as_model *m, uint32_t module, struct as_buf *out)
{
	as_buf_reset(out);
	add_module(m, m->modules.v[module].name, out);
}

void as_diff_match_modules(struct as_diff_match *d, const struct as_diff_session *s, size_t n)
{
	AS_CLEANUP(as_buf_clear) struct as_buf key = {0};
	struct as_map64 first = {0}; /* name -> session << 32 | module */

	for (uint64_t i = 0; i < n; i++) {
		const struct as_model *m = s[i].model;

		for (uint32_t k = 0; k < m->modules.n; k++) {
			const struct as_m_module *a, *b = &m->modules.v[k];
			bool fresh;
			uint64_t *at;

			if (b->kind != AS_MODULE_FILE || !b->build_id_len)
				continue;
			module_key(m, k, &key);
			at = as_map64_put(&first, as_hash64(as_buf_str(&key), key.len) >> 1,
					  &fresh);
			if (fresh)
				*at = i << 32 | k;
			a = &s[*at >> 32].model->modules.v[(uint32_t)*at];
			if (a->build_id_len == b->build_id_len &&
			    memcmp(a->build_id, b->build_id, a->build_id_len) == 0)
				continue;
			as_vec_push(&d->rebuilt, a->name);
			as_vec_push(&d->rebuilt, b->name);
		}
	}
	as_map64_clear(&first);
}

void as_diff_session_clear(struct as_diff_session *s)
{
	as_vec_clear(&s->shares);
	as_vec_clear(&s->selfs);
	as_vec_clear(&s->present);
	free(s->name_of_key);
	free(s->alias);
	free(s->hidden);
}

void as_diff_match_clear(struct as_diff_match *d)
{
	as_vec_clear(&d->names);
	as_vec_clear(&d->rebuilt);
	as_map64_clear(&d->by_key);
}
