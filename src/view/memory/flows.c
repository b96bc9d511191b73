/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Blocks that another thread freed than the one that allocated them. */
#include <stdlib.h>

#include "base/sys.h"
#include "view/memory/memory.h"

enum { SHOWN = 5, INDENT = 7 };

static int by_blocks(const void *a, const void *b)
{
	const struct as_rec_heap_flow *x = a, *y = b;

	if (x->blocks != y->blocks)
		return x->blocks > y->blocks ? -1 : 1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return x->by < y->by ? -1 : x->by > y->by;
}

/* Copied, the most first. Caller frees. */
static struct as_rec_heap_flow *sorted(const struct as_model *m)
{
	size_t n = m->heap.flows.n;
	struct as_rec_heap_flow *v = as_xreallocarray(NULL, n + 1, sizeof *v);

	for (size_t i = 0; i < n; i++)
		v[i] = m->heap.flows.v[i];
	if (n)
		qsort(v, n, sizeof *v, by_blocks);
	return v;
}

static void add_thread(const struct as_model *m, uint64_t thread, struct as_buf *b)
{
	const struct as_m_thread *t = &m->threads.v[thread];

	as_fmt_quoted(b, t->name, strlen(t->name));
	as_buf_addf(b, " (%u)", t->tid);
}

static void add_flow(const struct as_model *m, const struct as_rec_heap_flow *f,
		     struct as_buf *b)
{
	as_fmt_count(b, f->blocks);
	as_buf_adds(b, f->blocks == 1 ? " block, " : " blocks, ");
	as_fmt_bytes(b, f->bytes);
	as_buf_adds(b, ", of ");
	add_thread(m, f->source, b);
	as_buf_adds(b, " were freed by ");
	add_thread(m, f->by, b);
}

void as_memory_flows_text(const struct as_model *m, const struct as_style *style,
			  struct as_buf *out)
{
	AS_CLEANUP(as_free_autop) struct as_rec_heap_flow *v = sorted(m);
	size_t n = m->heap.flows.n;
	struct as_buf b = {0};

	for (size_t i = 0; i < AS_MIN(n, (size_t)SHOWN); i++) {
		add_flow(m, &v[i], &b);
		as_block_label(out, style, i ? "" : "across");
		as_block_words(out, style, INDENT, b.p);
		as_buf_reset(&b);
	}
	if (n > SHOWN) {
		as_buf_adds(&b, "… ");
		as_fmt_count(&b, n - SHOWN);
		as_buf_adds(&b, " more pairs of threads");
		as_block_label(out, style, "");
		as_block_words(out, style, INDENT, b.p);
	}
	as_buf_clear(&b);
}

static void thread_json(const struct as_model *m, uint64_t thread, const char *key,
			struct as_json *j)
{
	const struct as_m_thread *t = &m->threads.v[thread];

	as_json_obj(j, key);
	as_json_u64(j, "pid", m->processes.v[t->process].pid);
	as_json_u64(j, "tid", t->tid);
	as_json_str(j, "name", t->name);
	as_json_end(j);
}

void as_memory_flows_json(const struct as_model *m, struct as_json *j)
{
	AS_CLEANUP(as_free_autop) struct as_rec_heap_flow *v = sorted(m);

	as_json_arr(j, "flows");
	for (size_t i = 0; i < m->heap.flows.n; i++) {
		as_json_obj(j, NULL);
		thread_json(m, v[i].source, "allocated_by", j);
		thread_json(m, v[i].by, "freed_by", j);
		as_json_u64(j, "blocks", v[i].blocks);
		as_json_u64(j, "bytes", v[i].bytes);
		as_json_end(j);
	}
	as_json_end(j);
}
