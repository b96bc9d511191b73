/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the target is told of its modules (abi/rt.h): where code is mapped, and the unwind tables, which lie
 * behind the rings in the shared memory and so need no call in the target when a module comes.
 */
#include "hook/hooked_priv.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"

#define OF_IMAGE UINT32_MAX

static struct as_hooked_table *find_table(struct as_hooked *h, uint32_t module)
{
	as_vec_foreach (t, &h->table) {
		if (t->module == module)
			return t;
	}
	return NULL;
}

/* Copies a table to where the target sees it, once. */
static struct as_hooked_table *add_table(struct as_hooked *h, uint32_t module,
					 const struct as_utable *table)
{
	struct as_hooked_table new = {.module = module};
	size_t room = h->table_bytes - h->tables_used;

	if (table && table->size <= room) {
		new.segments = table->nsegs;
		new.off = h->tables_off + h->tables_used;
		memcpy((char *)h->shared + new.off, table->blob, table->size);
		h->tables_used =
			AS_MIN((h->tables_used + table->size + 63) & ~63ull, h->table_bytes);
	}
	as_vec_push(&h->table, new);
	return &h->table.v[h->table.n - 1];
}

/* Of our own code there: a signal handler may interrupt it. */
static struct as_hooked_table *image_table(struct as_hooked *h)
{
	const struct as_rt_image *im = h->spec.image;
	const uint8_t *p = h->spec.image;
	const struct as_code_range code = {
		im->text_off, {p + im->text_off, im->text_bytes}, false};
	struct as_cfi_input in = {
		.arch = AS_ARCH_X86_64,
		.eh_frame = {p + im->eh_frame_off, im->eh_frame_bytes},
		.eh_frame_svma = im->eh_frame_off,
		.code = &code,
		.ncode = 1,
	};
	struct as_hooked_table *t = find_table(h, OF_IMAGE);
	AS_CLEANUP(as_buf_clear) struct as_buf blob = {0};
	struct as_utable table;

	if (t)
		return t;
	if (im->eh_frame_bytes && im->text_off + im->text_bytes <= im->bytes &&
	    im->eh_frame_off + im->eh_frame_bytes <= im->bytes &&
	    as_utable_compile(&in, &blob, NULL, NULL) == 0 &&
	    as_utable_open(blob.p, blob.len, &table, NULL) == 0)
		return add_table(h, OF_IMAGE, &table);
	return add_table(h, OF_IMAGE, NULL);
}

static struct as_rt_module entry(const struct as_hooked *h, uint64_t start, uint64_t end,
				 uint64_t bias, const struct as_hooked_table *t)
{
	return (struct as_rt_module){
		.start_avma = start,
		.end_avma = end,
		.bias = bias,
		.table = t->segments ? h->shared_avma + t->off : 0,
		.segments = t->segments,
	};
}

static int by_start(const void *a, const void *b)
{
	const struct as_rt_module *x = a, *y = b;

	return x->start_avma < y->start_avma ? -1 : x->start_avma > y->start_avma;
}

void as_hooked_publish(struct as_hooked *h)
{
	struct as_rt_control *c = h->shared;
	uint32_t seq = __atomic_load_n(&c->modules_seq, __ATOMIC_RELAXED), n = 0;
	struct as_rt_module_set *set = &c->module_set[(seq + 1) & 1];
	const struct as_process *p = as_image_process(h->image, h->pid);

	for (size_t i = 0; p && i < p->nmap && n < AS_RT_MODULES_MAX; i++) {
		struct as_module *m = as_image_module(h->image, p->map[i].module);
		struct as_hooked_table *t = find_table(h, m->id);

		/* our own code was scanned as unknown memory */
		if (m->kind == AS_MODULE_JIT)
			continue;
		if (!t)
			t = add_table(h, m->id, as_image_module_table(h->image, m));
		set->module[n++] = entry(h, p->map[i].start, p->map[i].end, p->map[i].bias, t);
	}
	as_vec_foreach (i, &h->island) {
		if (n == AS_RT_MODULES_MAX)
			break;
		set->module[n] = entry(h, i->avma, i->avma + i->bytes, i->avma, image_table(h));
		set->module[n++].flags = AS_RT_MODULE_SELF;
	}
	qsort(set->module, n, sizeof *set->module, by_start);
	set->count = n;
	/* pairs with the load in the target: it sees the set when it sees its number */
	__atomic_store_n(&c->modules_seq, seq + 1, __ATOMIC_RELEASE);
}

void as_hook_answer(struct as_hooked *h, uint32_t serial)
{
	struct as_rt_control *c = h->shared;
	uint32_t done = __atomic_load_n(&c->modules_done, __ATOMIC_RELAXED);

	if ((int32_t)(serial - done) > 0)
		__atomic_store_n(&c->modules_done, serial, __ATOMIC_RELEASE);
	(void)syscall(SYS_futex, &c->modules_done, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
