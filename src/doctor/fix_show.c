/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What --fix and --restore have done, as text and JSON. */
#include <string.h>

#include "base/json.h"
#include "doctor/fix_priv.h"

static const char *const kind_names[] = {"done", "already", "absent", "failed", "left"};

static bool alike(const struct as_change *a, const struct as_change *b)
{
	return strcmp(a->name, b->name) == 0 && a->kind == b->kind &&
	       strcmp(a->from, b->from) == 0 && strcmp(a->to, b->to) == 0 &&
	       strcmp(a->why, b->why) == 0;
}

static void add_line(const struct as_change *c, size_t n, bool restored, struct as_buf *out)
{
	as_buf_addf(out, "%-20s ", c->name);
	switch (c->kind) {
	case AS_CHANGE_DONE:
		as_buf_addf(out, "%s → %s", c->from, c->to);
		break;
	case AS_CHANGE_ALREADY:
		as_buf_addf(out, restored ? "is back at %s" : "is %s already", c->to);
		break;
	case AS_CHANGE_ABSENT:
		as_buf_adds(out, "not to be set on this machine");
		break;
	case AS_CHANGE_FAILED:
		as_buf_addf(out, "stays at %s: %s", *c->from ? c->from : "?", c->why);
		break;
	case AS_CHANGE_LEFT:
		as_buf_addf(out,
			    "left at %s: somebody changed it since (it was %s before --fix)",
			    c->from, c->to);
		break;
	}
	if (n > 1)
		as_buf_addf(out, "  (%zu CPUs)", n);
	as_buf_addc(out, '\n');
}

void as_changes_text(const struct as_changes *c, bool restored, struct as_buf *out)
{
	bool done = false;

	if (c->stale)
		as_buf_adds(out, "settings of an earlier start of the machine are gone with "
				 "it\n");
	if (restored && c->nothing)
		as_buf_adds(out, "nothing to put back\n");
	for (size_t i = 0; i < c->all.n; i++) {
		size_t n = 0;
		bool before = false;

		for (size_t k = 0; k < c->all.n; k++) {
			if (!alike(&c->all.v[i], &c->all.v[k]))
				continue;
			before |= k < i;
			n++;
		}
		if (!before)
			add_line(&c->all.v[i], n, restored, out);
		done |= c->all.v[i].kind == AS_CHANGE_DONE;
	}
	if (done && !restored)
		as_buf_adds(out, "put back with: assay doctor --restore\n");
}

void as_changes_json(const struct as_changes *c, struct as_buf *out)
{
	struct as_json j = {.out = out, .indent = true};

	as_json_obj(&j, NULL);
	as_json_str(&j, "schema", "assay.doctor/1");
	as_json_arr(&j, "changes");
	as_vec_foreach (it, &c->all) {
		as_json_obj(&j, NULL);
		as_json_str(&j, "name", it->name);
		if (it->path)
			as_json_str(&j, "path", it->path);
		as_json_str(&j, "from", it->from);
		as_json_str(&j, "to", it->to);
		as_json_str(&j, "result", kind_names[it->kind]);
		if (it->why[0])
			as_json_str(&j, "why", it->why);
		as_json_end(&j);
	}
	as_json_end(&j);
	as_json_end(&j);
	as_buf_addc(out, '\n');
}
