/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What was live at the marks of a session of memory: "moments" and the columns heapMarks. */
#include <stdlib.h>
#include <string.h>

#include "view/page/page_priv.h"

/* Stacks of all moments together: 2 to 6 bytes each before compression. Moments beyond have none, and are
 * left out unless the page begins with them. */
enum { ROWS_MAX = 1000000 };

static int find(struct as_page_marks *k, const char *mark, uint32_t *ret, struct as_error *err)
{
	*ret = AS_NONE;
	return mark && *mark ? as_heap_moments_find(&k->all, mark, ret, err) : AS_OK;
}

/* Those that are shown get numbers without gaps. */
static void choose(const struct as_model *m, struct as_page_marks *k)
{
	AS_CLEANUP(as_free_autop) uint64_t *size = as_xcalloc(k->all.v.n + 1, sizeof *size);
	uint64_t used = 0;

	for (size_t i = 0; i < m->heap.marks.n; i++)
		size[k->all.of_mark[i]] += m->heap.marks.v[i].r.stacks.n / 3;
	for (uint32_t i = 0; i < k->all.v.n; i++) {
		bool asked = i == k->since || i == k->at;

		used += asked ? 0 : size[i];
		k->id[i] = asked || used <= ROWS_MAX ? (uint32_t)k->n++ : AS_NONE;
	}
}

static void collect(const struct as_model *m, struct as_page_marks *k)
{
	for (size_t i = 0; i < m->heap.marks.n; i++) {
		const struct as_u64s *s = &m->heap.marks.v[i].r.stacks;
		uint32_t id = k->id[k->all.of_mark[i]];

		for (size_t t = 0; id != AS_NONE && t + 2 < s->n; t += 3) {
			if (s->v[t] < m->heap.rows.n)
				as_vec_push(&k->rows,
					    (struct as_page_mark_row){id, (uint32_t)s->v[t],
								      s->v[t + 2]});
		}
	}
}

int as_page_marks_make(struct as_page *p, struct as_error *err)
{
	struct as_page_marks *k = &p->marks;
	int r;

	as_heap_moments_make(p->m, &k->all);
	k->id = as_xcalloc(k->all.v.n + 1, sizeof *k->id);
	r = find(k, p->q->since, &k->since, err);
	if (r == AS_OK)
		r = find(k, p->q->at, &k->at, err);
	if (r < 0)
		return r;
	choose(p->m, k);
	collect(p->m, k);
	return AS_OK;
}

void as_page_marks_clear(struct as_page_marks *k)
{
	as_heap_moments_clear(&k->all);
	as_vec_clear(&k->rows);
	free(k->id);
}

/* A moment as a query has it: 0 none, 1 the start, then those of the list. */
uint64_t as_page_moment(const struct as_page_marks *k, uint32_t moment)
{
	return moment == AS_NONE ? 0 : 2 + (uint64_t)k->id[moment];
}

/* Per moment, of all processes; several records may be one mark. */
static uint64_t *live_bytes(const struct as_model *m, const struct as_page_marks *k)
{
	uint64_t *live = as_xcalloc(k->all.v.n + 1, sizeof *live);
	const struct as_m_heap_mark *last = NULL;

	for (size_t i = 0; i < m->heap.marks.n; i++) {
		const struct as_m_heap_mark *mark = &m->heap.marks.v[i];
		bool same = last && last->r.process == mark->r.process &&
			    last->r.time_ns == mark->r.time_ns &&
			    strcmp(last->name, mark->name) == 0;

		last = mark;
		live[k->all.of_mark[i]] += same ? 0 : mark->r.live_bytes;
	}
	return live;
}

void as_page_moments(struct as_page *p)
{
	AS_CLEANUP(as_free_autop) uint64_t *live = live_bytes(p->m, &p->marks);
	uint64_t start = p->m->recording.start_ns;
	struct as_json *j = &p->j;

	as_json_arr(j, "moments");
	for (size_t i = 0; i < p->marks.all.v.n; i++) {
		const struct as_heap_moment *x = &p->marks.all.v.v[i];
		struct as_buf name = {0};

		if (p->marks.id[i] == AS_NONE)
			continue;
		as_buf_adds(&name, x->name);
		if (x->number > 1)
			as_buf_addf(&name, "#%llu", (unsigned long long)x->number);
		as_json_obj(j, NULL);
		as_json_str(j, "name", as_buf_str(&name));
		as_json_u64(j, "time", x->time_ns > start ? x->time_ns - start : 0);
		as_json_u64(j, "live", live[i]);
		as_json_end(j);
		as_buf_clear(&name);
	}
	as_json_end(j);
}
