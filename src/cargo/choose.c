/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One target out of a workspace, by cargo run's own rules: the package of the current folder, else
 * the workspace's default ones; of several programs the one that default-run names. Where the
 * request leaves more than one, the message lists the words that choose.
 */
#include <stdlib.h>
#include <string.h>

#include "cargo/cargo_priv.h"

enum { LISTED = 20 };

struct candidate {
	const struct as_cargo_package *package;
	const struct as_cargo_target *target;
};
struct candidates {
	AS_VEC(struct candidate) v;
	bool several_packages;
};

static bool in_scope(const struct as_cargo_package *p, const struct as_cargo_request *q,
		     const struct as_cargo_package *here)
{
	if (q->package)
		return strcmp(p->name, q->package) == 0;
	/* A named target is looked for in all default packages, as cargo does. */
	return here && !q->name ? p == here : here ? p == here || p->is_default : p->is_default;
}

static void collect(const struct as_cargo_metadata *m, const struct as_cargo_request *q,
		    const struct as_cargo_package *here, struct candidates *ret)
{
	for (size_t i = 0; i < m->packages.n; i++) {
		const struct as_cargo_package *p = &m->packages.v[i];

		if (!in_scope(p, q, here))
			continue;
		for (size_t k = 0; k < p->targets.n; k++) {
			const struct as_cargo_target *t = &p->targets.v[k];

			if (t->kind != q->kind || (q->name && strcmp(t->name, q->name) != 0))
				continue;
			if (ret->v.n && ret->v.v[0].package != p)
				ret->several_packages = true;
			as_vec_push(&ret->v, (struct candidate){p, t});
		}
	}
}

/* "\n  --bin a\n  -p other --bin b": every target of `kind` that could be asked for. */
static size_t list(struct as_buf *out, const struct as_cargo_metadata *m,
		   const struct as_cargo_package *only, enum as_cargo_kind kind)
{
	size_t n = 0;

	for (size_t i = 0; i < m->packages.n; i++) {
		const struct as_cargo_package *p = &m->packages.v[i];

		if (only && p != only)
			continue;
		for (size_t k = 0; k < p->targets.n; k++) {
			if (p->targets.v[k].kind != kind || ++n > LISTED)
				continue;
			as_buf_adds(out, "\n  ");
			if (m->packages.n > 1)
				as_buf_addf(out, "-p %s ", p->name);
			as_buf_addf(out, "--%s", as_cargo_kind_words[kind]);
			if (kind != AS_CARGO_LIB)
				as_buf_addf(out, " %s", p->targets.v[k].name);
		}
	}
	if (n > LISTED)
		as_buf_addf(out, "\n  … and %zu more", n - LISTED);
	return n;
}

static int none(const struct as_cargo_metadata *m, const struct as_cargo_request *q,
		const struct as_cargo_package *here, struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};
	const struct as_cargo_package *only = q->package ? NULL : here;
	size_t n = 0;

	for (size_t i = 0; q->package && i < m->packages.n; i++) {
		if (strcmp(m->packages.v[i].name, q->package) == 0)
			only = &m->packages.v[i];
	}
	if (q->package && !only) {
		for (size_t i = 0; i < m->packages.n && i < LISTED; i++)
			as_buf_addf(&text, "\n  -p %s", m->packages.v[i].name);
		return as_fail(err, AS_E_NOTFOUND, 0, "no package '%s' in this workspace%s",
			       q->package, as_buf_str(&text));
	}
	for (int kind = 0; kind < AS_CARGO_KINDS_; kind++) {
		if (kind == (int)q->kind || !q->name)
			n += list(&text, m, only, (enum as_cargo_kind)kind);
	}
	if (q->name)
		return as_fail(err, AS_E_NOTFOUND, 0, "no %s '%s' in %s%s%s",
			       as_cargo_kind_words[q->kind], q->name,
			       only ? only->name : "this workspace", n ? "; there is" : "",
			       as_buf_str(&text));
	return as_fail(err, AS_E_NOTFOUND, 0, "%s has no %s%s%s",
		       only ? only->name : "this workspace",
		       q->kind == AS_CARGO_BIN ? "program" : as_cargo_kind_words[q->kind],
		       n ? "; there is" : "", as_buf_str(&text));
}

static int several(const struct candidates *c, const struct as_cargo_request *q,
		   struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};

	for (size_t i = 0; i < c->v.n && i < LISTED; i++) {
		as_buf_adds(&text, "\n  ");
		if (c->several_packages)
			as_buf_addf(&text, "-p %s ", c->v.v[i].package->name);
		as_buf_addf(&text, "--%s", as_cargo_kind_words[q->kind]);
		if (q->kind != AS_CARGO_LIB)
			as_buf_addf(&text, " %s", c->v.v[i].target->name);
	}
	if (c->v.n > LISTED)
		as_buf_addf(&text, "\n  … and %zu more", c->v.n - LISTED);
	return as_fail(err, AS_E_USAGE, 0, "there are %zu to choose from; say which:%s", c->v.n,
		       as_buf_str(&text));
}

static const struct candidate *default_run(const struct candidates *c)
{
	const struct candidate *found = NULL;

	for (size_t i = 0; i < c->v.n; i++) {
		const char *name = c->v.v[i].package->default_run;

		if (!name || strcmp(name, c->v.v[i].target->name) != 0)
			continue;
		if (found)
			return NULL;
		found = &c->v.v[i];
	}
	return found;
}

int as_cargo_choose(const struct as_cargo_metadata *m, const struct as_cargo_request *q,
		    const char *manifest, const struct as_cargo_package **ret_package,
		    const struct as_cargo_target **ret_target, struct as_error *err)
{
	const struct as_cargo_package *here = NULL;
	const struct candidate *chosen = NULL;
	struct candidates c = {0};
	int r = AS_OK;

	for (size_t i = 0; manifest && i < m->packages.n; i++) {
		if (strcmp(m->packages.v[i].manifest_path, manifest) == 0)
			here = &m->packages.v[i];
	}
	collect(m, q, here, &c);
	if (c.v.n == 1)
		chosen = &c.v.v[0];
	else if (!q->name && q->kind == AS_CARGO_BIN)
		chosen = default_run(&c);
	if (chosen) {
		*ret_package = chosen->package;
		*ret_target = chosen->target;
	} else {
		r = c.v.n ? several(&c, q, err) : none(m, q, here, err);
	}
	as_vec_clear(&c.v);
	return r;
}
