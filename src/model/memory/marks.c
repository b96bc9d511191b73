/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Marks of a session of memory as moments: see heap.h. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/sys.h"
#include "model/model_priv.h"

/* Of one name in one process: how many, and when the last was. Several records of one process, name and
 * time are one mark. */
struct run {
	uint64_t count, time_ns;
};

struct finder {
	struct as_heap_moments *m;
	struct as_intern names;
	struct as_map64 runs,
		moments; /* process << 32 | name -> runs; name << 32 | number -> moment */
	AS_VEC(struct run) counted;
};

static uint64_t number_of(struct finder *f, const struct as_m_heap_mark *mark, uint32_t name)
{
	bool fresh;
	uint64_t *at = as_map64_put(&f->runs, mark->r.process << 32 | name, &fresh);
	struct run *run;

	if (fresh) {
		*at = f->counted.n;
		as_vec_push(&f->counted, (struct run){0, 0});
	}
	run = &f->counted.v[*at];
	if (!run->count || run->time_ns != mark->r.time_ns) {
		run->count++;
		run->time_ns = mark->r.time_ns;
	}
	return run->count;
}

static uint32_t moment_of(struct finder *f, const struct as_m_heap_mark *mark)
{
	uint32_t name = as_intern_str(&f->names, mark->name);
	uint64_t number = number_of(f, mark, name);
	bool fresh;
	uint64_t *at = as_map64_put(&f->moments, (uint64_t)name << 32 | number, &fresh);
	struct as_heap_moment *moment;

	if (fresh) {
		*at = f->m->v.n;
		as_vec_push(&f->m->v, (struct as_heap_moment){.name = mark->name,
							      .number = number,
							      .time_ns = mark->r.time_ns});
	}
	moment = &f->m->v.v[*at];
	moment->time_ns = AS_MIN(moment->time_ns, mark->r.time_ns);
	return (uint32_t)*at;
}

void as_heap_moments_make(const struct as_model *m, struct as_heap_moments *ret)
{
	struct finder f = {.m = ret};

	*ret = (struct as_heap_moments){
		.of_mark = as_xcalloc(m->heap.marks.n + 1, sizeof *ret->of_mark)};
	for (size_t i = 0; i < m->heap.marks.n; i++)
		ret->of_mark[i] = moment_of(&f, &m->heap.marks.v[i]);
	as_vec_clear(&f.counted);
	as_map64_clear(&f.runs);
	as_map64_clear(&f.moments);
	as_intern_clear(&f.names);
}

void as_heap_moments_clear(struct as_heap_moments *ms)
{
	as_vec_clear(&ms->v);
	free(ms->of_mark);
}

/* "load#2": the second of that name. */
static size_t split_name(const char *mark, uint64_t *ret_number)
{
	const char *hash = strrchr(mark, '#');

	*ret_number = 1;
	if (hash && as_parse_u64(hash + 1, ret_number) && *ret_number)
		return (size_t)(hash - mark);
	*ret_number = 1;
	return strlen(mark);
}

static int no_mark(const struct as_heap_moments *ms, const char *mark, struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf known = {0};

	as_vec_foreach (k, &ms->v) {
		if (k->number > 1 || known.len > 300)
			continue;
		as_buf_adds(&known, known.len ? ", " : "");
		as_fmt_quoted(&known, k->name, strlen(k->name));
	}
	return as_fail(err, AS_E_NOTFOUND, 0, "no mark '%s' in this session: %s%s", mark,
		       known.len ? "there are " : "it has none", as_buf_str(&known));
}

int as_heap_moments_find(const struct as_heap_moments *ms, const char *mark,
			 uint32_t *ret_moment, struct as_error *err)
{
	uint64_t number;
	size_t n = split_name(mark, &number);

	for (uint32_t i = 0; i < ms->v.n; i++) {
		const struct as_heap_moment *k = &ms->v.v[i];

		if (k->number == number && strlen(k->name) == n &&
		    memcmp(k->name, mark, n) == 0) {
			*ret_moment = i;
			return AS_OK;
		}
	}
	return no_mark(ms, mark, err);
}
