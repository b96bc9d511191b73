/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Raw samples in, session records out. Everything repeated becomes a dense id: a place is
 * (module, addr, flags), a stack is a node of one tree (caller node, place). Memory is bounded
 * by distinct places and nodes, never by samples.
 *
 * A stack seen before costs one hash over its frames and one look-up. The memo is a cache: it
 * is emptied when it outgrows MEMO_MAX, the tree stays. Its key is a 64-bit hash alone: with
 * 10^6 distinct stacks two of them share a key with a probability of 3e-8.
 */
#include "collect/recorder_priv.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "symbol/kallsyms.h"
#include "symbol/perfmap.h"

#define MEMO_MAX     262144
#define BLOCK_FRAMES 64u

struct as_recorder *as_recorder_new(struct as_session_writer *w, struct as_image *im)
{
	struct as_recorder *r = as_xcalloc(1, sizeof *r);

	r->w = w;
	r->im = im;
	r->last_thr = AS_NO_ID;
	return r;
}

void as_recorder_free(struct as_recorder *r)
{
	if (!r)
		return;
	as_vec_foreach (j, &r->jits)
		as_perfmap_free(j->map);
	as_kallsyms_free(r->kallsyms);
	as_vec_clear(&r->places);
	as_vec_clear(&r->mods);
	as_vec_clear(&r->mod_of_image);
	as_vec_clear(&r->procs);
	as_vec_clear(&r->thrs);
	as_vec_clear(&r->cpus);
	as_vec_clear(&r->jits);
	as_map64_clear(&r->place_ids);
	as_slots_clear(&r->node_ids);
	as_vec_clear(&r->nodes);
	as_map64_clear(&r->stack_memo);
	as_map64_clear(&r->proc_by_pid);
	as_map64_clear(&r->thr_by_tid);
	as_map64_clear(&r->notes);
	free(r);
}

/* ---- places and stacks ---- */

static uint32_t session_module(struct as_recorder *r, const struct as_raw_frame *f)
{
	if (f->module == AS_KERNEL_FRAME)
		return as_rec_kernel_module(r, f->addr);
	if (f->module == AS_NO_MODULE)
		return AS_NO_ID;
	return as_rec_module_of_image(r, f->module);
}

static uint32_t intern_place(struct as_recorder *r, const struct as_raw_frame *f)
{
	uint32_t module = session_module(r, f);
	uint64_t key = as_mix64(f->addr ^ as_mix64((uint64_t)module << 32 | f->flags));

	for (;; key++) {
		bool fresh;
		uint64_t *slot;
		struct as_rec_place *p;

		key &= UINT64_MAX >> 1; /* UINT64_MAX is no key */
		slot = as_map64_put(&r->place_ids, key, &fresh);
		if (!fresh) {
			p = &r->places.v[*slot];
			if (p->addr == f->addr && p->module == module && p->flags == f->flags)
				return (uint32_t)*slot;
			continue;
		}
		*slot = r->places.n;
		as_vec_push(&r->places, (struct as_rec_place){f->addr, module, f->flags, 0});
		as_write_frame(r->w, &(struct as_rec_frame){
					     .id = r->places.n - 1,
					     .module = module == AS_NO_ID ? 0 : module + 1ull,
					     .addr = f->addr,
					     .flags = f->flags});
		return (uint32_t)(r->places.n - 1);
	}
}

static uint64_t hash_node(const void *list, uint32_t id)
{
	const struct as_rec_node *n = (const struct as_rec_node *)list + id;

	return as_mix64((uint64_t)n->parent << 32 | n->place);
}

/* Where the node is in node_ids, or would be. */
static size_t find_node(const struct as_recorder *r, const struct as_rec_node *want)
{
	size_t at;

	for (at = as_slots_home(&r->node_ids, hash_node(want, 0)); r->node_ids.slot[at];
	     at = as_slots_next(&r->node_ids, at)) {
		const struct as_rec_node *n = &r->nodes.v[r->node_ids.slot[at] - 1];

		if (n->parent == want->parent && n->place == want->place)
			break;
	}
	return at;
}

bool as_rec_is_root(const struct as_recorder *r, uint32_t place)
{
	const struct as_rec_node root = {.place = place};

	return r->nodes.n && r->node_ids.slot[find_node(r, &root)];
}

/* parent and result: node id + 1. */
static uint32_t intern_node(struct as_recorder *r, uint32_t parent, uint32_t place)
{
	const struct as_rec_node node = {.parent = parent, .place = place};
	size_t at;

	as_slots_reserve(&r->node_ids, hash_node, r->nodes.v);
	at = find_node(r, &node);
	if (!r->node_ids.slot[at]) {
		as_slots_put(&r->node_ids, at, (uint32_t)r->nodes.n);
		as_write_stack(r->w, &(struct as_rec_stack){.id = r->nodes.n,
							    .parent = parent,
							    .frame = place});
		as_vec_push(&r->nodes, node);
	}
	return r->node_ids.slot[at];
}

static uint32_t add_frames(struct as_recorder *r, uint32_t node,
			   const struct as_raw_frame *frames, size_t n)
{
	for (size_t i = n; i-- > 0;)
		node = intern_node(r, node, intern_place(r, &frames[i]));
	return node;
}

/* The node of frames on top of node, by one look-up when both were seen together before. */
static uint32_t recall_frames(struct as_recorder *r, uint32_t node,
			      const struct as_raw_frame *frames, size_t n)
{
	static_assert(sizeof(struct as_raw_frame) == 16, "hashed as bytes: no padding");
	uint64_t key = (as_hash64(frames, n * sizeof *frames) ^ as_mix64(node)) >> 1;
	bool fresh;
	uint64_t *slot = as_map64_put(&r->stack_memo, key, &fresh);

	if (fresh)
		*slot = add_frames(r, node, frames, n);
	return (uint32_t)*slot;
}

/*
 * Deep stacks that differ near the leaf share their outer part: it is recalled in blocks counted from
 * the root, so that they cost a look-up per block.
 */
static uint32_t intern_stack(struct as_recorder *r, const struct as_raw_frame *frames, size_t n,
			     uint32_t callers)
{
	uint32_t node = callers;

	if (r->stack_memo.n >= MEMO_MAX)
		as_map64_clear(&r->stack_memo);
	for (; n > 2 * BLOCK_FRAMES; n -= BLOCK_FRAMES)
		node = recall_frames(r, node, frames + n - BLOCK_FRAMES, BLOCK_FRAMES);
	return n ? recall_frames(r, node, frames, n) : node;
}

void as_recorder_callers(struct as_recorder *r, const struct as_raw_frame *frames, size_t n,
			 uint32_t *ret)
{
	uint32_t node = 0;

	for (size_t i = n; i-- > 0;)
		ret[i] = node = intern_node(r, node, intern_place(r, &frames[i]));
}

uint32_t as_recorder_push(struct as_recorder *r, uint32_t node, const struct as_raw_frame *f)
{
	return intern_node(r, node, intern_place(r, f));
}

static void add_saturated(uint32_t *sum, uint64_t n)
{
	*sum = (uint32_t)AS_MIN(*sum + AS_MIN(n, (uint64_t)UINT32_MAX), (uint64_t)UINT32_MAX);
}

/* The leaf's place and node, to weigh modules and functions; only their counts are touched. */
static void count_leaf(struct as_recorder *r, const struct as_raw_frame *leaf, uint32_t node,
		       uint64_t n)
{
	add_saturated(&r->places.v[intern_place(r, leaf)].samples, n);
	if (node)
		add_saturated(&r->nodes.v[node - 1].samples, n);
}

void as_recorder_weigh(struct as_recorder *r, uint32_t node, const struct as_raw_frame *leaf,
		       uint64_t n)
{
	count_leaf(r, leaf, node, n);
	r->samples += n;
}

void as_recorder_sample(struct as_recorder *r, const struct as_raw_sample *s)
{
	struct as_rec_sample rec = {
		.time_rel = s->time_ns,
		.thread = as_rec_thread(r, s->time_ns, s->pid, s->tid),
		.cpu = s->cpu,
		.stack = intern_stack(r, s->frames, s->nframes, s->callers),
		.weight = s->weight,
		.end = (uint64_t)s->end | (s->repaired ? AS_SAMPLE_REPAIRED : 0) |
		       (s->kernel ? AS_SAMPLE_KERNEL : 0),
	};

	if (s->nframes)
		count_leaf(r, &s->frames[0], (uint32_t)rec.stack, 1);
	as_write_sample(r->w, &rec);
	r->samples++;
	r->taken++;
}

uint64_t as_recorder_samples(const struct as_recorder *r)
{
	return r->taken;
}

/* ---- loss and ticks ---- */

void as_recorder_lost(struct as_recorder *r, uint64_t time_ns, uint32_t cpu,
		      enum as_loss source, uint64_t n)
{
	as_write_lost(r->w,
		      &(struct as_rec_lost){
			      .time_rel = time_ns, .cpu = cpu, .source = source, .count = n});
}

void as_rec_flush_ticks(struct as_recorder *r)
{
	as_vec_foreach (c, &r->cpus) {
		if (c->any)
			as_write_tick(r->w, &c->sum);
		*c = (struct as_rec_cpu){0};
	}
}

void as_recorder_tick(struct as_recorder *r, const struct as_rec_tick *t)
{
	struct as_rec_cpu *c;

	if (t->cpu >= 65536)
		return;
	if (!r->tick_flushed_ns)
		r->tick_flushed_ns = t->time_rel;
	if (t->time_rel >= r->tick_flushed_ns + 1000000000ull) {
		as_rec_flush_ticks(r);
		r->tick_flushed_ns = t->time_rel;
	}
	while (r->cpus.n <= t->cpu)
		as_vec_push(&r->cpus, (struct as_rec_cpu){0});
	c = &r->cpus.v[t->cpu];
	c->any = true;
	c->sum.time_rel = t->time_rel;
	c->sum.cpu = t->cpu;
	c->sum.taken += t->taken;
	c->sum.delivered += t->delivered;
	c->sum.lost_kernel += t->lost_kernel;
	c->sum.lost_queue += t->lost_queue;
	c->sum.filtered += t->filtered;
	c->sum.throttled += t->throttled;
}

/* ---- notes ---- */

void as_recorder_note(struct as_recorder *r, int level, const char *about, const char *remedy,
		      const char *fmt, ...)
{
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};
	uint64_t key;
	bool fresh;
	va_list ap;

	va_start(ap, fmt);
	as_buf_vaddf(&text, fmt, ap);
	va_end(ap);
	if (!about)
		about = "";
	if (!remedy)
		remedy = "";
	key = as_hash64(as_buf_str(&text), text.len) ^
	      as_mix64(as_hash64(about, strlen(about)));
	as_map64_put(&r->notes, key >> 1, &fresh);
	if (!fresh)
		return;
	as_write_note(r->w, &(struct as_rec_note){
				    .level = (uint64_t)level,
				    .about = as_session_string(r->w, about, strlen(about)),
				    .text = AS_STR(as_buf_str(&text)),
				    .remedy = AS_STR(remedy)});
}

/* ---- modules ---- */

static uint32_t add_module(struct as_recorder *r, struct as_rec_mod m,
			   const struct as_rec_module *rec)
{
	struct as_rec_module out = *rec;

	out.id = r->mods.n;
	out.kind = m.kind;
	as_vec_push(&r->mods, m);
	as_write_module(r->w, &out);
	return (uint32_t)out.id;
}

uint32_t as_rec_module_of_image(struct as_recorder *r, uint32_t image_id)
{
	const struct as_module *m;
	struct as_rec_module rec = {0};
	uint32_t id;

	if (image_id < r->mod_of_image.n && r->mod_of_image.v[image_id] != AS_NO_ID)
		return r->mod_of_image.v[image_id];
	if (!r->im || image_id >= as_image_nmodules(r->im))
		return AS_NO_ID;
	m = as_image_module(r->im, image_id);
	rec.path = as_session_string(r->w, m->path, strlen(m->path));
	if (m->has_build_id)
		rec.build_id = (struct as_str){(const char *)m->build_id.id, m->build_id.len};
	rec.size_bytes = m->size_bytes;
	rec.flags = m->own ? AS_MODULE_OWN : 0;
	id = add_module(
		r, (struct as_rec_mod){.kind = m->kind, .image_id = image_id, .pid = m->pid},
		&rec);
	while (r->mod_of_image.n <= image_id)
		as_vec_push(&r->mod_of_image, AS_NO_ID);
	r->mod_of_image.v[image_id] = id;
	return id;
}

uint32_t as_recorder_module(struct as_recorder *r, uint32_t image_module)
{
	return as_rec_module_of_image(r, image_module);
}

static void add_kernel_module(struct as_recorder *r, const char *name, uint64_t start,
			      uint64_t size)
{
	struct as_rec_mod m = {
		.kind = size ? AS_MODULE_KMOD : AS_MODULE_KERNEL,
		.image_id = AS_NO_ID,
		.start = start,
		.end = start + size,
	};

	add_module(r, m,
		   &(struct as_rec_module){.path = as_session_string(r->w, name, strlen(name)),
					   .size_bytes = size});
}

/* The n characters at p as a number. */
static bool number_at(const char *p, size_t n, uint64_t *ret)
{
	char text[24];

	if (n == 0 || n >= sizeof text)
		return false;
	memcpy(text, p, n);
	text[n] = 0;
	return as_parse_u64(text, ret) && *ret;
}

/* "name size uses by state 0xaddress": addresses are 0 when they are hidden from us. */
static void kernel_module_line(struct as_recorder *r, const char *line)
{
	const char *hex = strstr(line, " 0x");
	size_t name_len = strcspn(line, " ");
	char label[96];
	uint64_t start, size;

	if (!hex || name_len > 64 || !line[name_len])
		return;
	if (!number_at(hex + 1, strcspn(hex + 1, " "), &start) ||
	    !number_at(line + name_len + 1, strcspn(line + name_len + 1, " "), &size))
		return;
	snprintf(label, sizeof label, "[%.*s]", (int)name_len, line);
	add_kernel_module(r, label, start, size);
}

static void read_kernel_modules(struct as_recorder *r)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	r->kernel_mods_read = true;
	add_kernel_module(r, "[kernel]", 0, 0);
	if (as_read_file("/proc/modules", 4 << 20, &b, NULL) < 0)
		return;
	for (char *line = b.p, *end; line && *line; line = end + 1) {
		end = strchr(line, '\n');
		if (!end)
			break;
		*end = 0;
		kernel_module_line(r, line);
	}
}

uint32_t as_rec_kernel_module(struct as_recorder *r, uint64_t addr)
{
	uint32_t core = 0;

	if (!r->kernel_mods_read)
		read_kernel_modules(r);
	for (uint32_t i = 0; i < r->mods.n; i++) {
		const struct as_rec_mod *m = &r->mods.v[i];

		if (m->kind == AS_MODULE_KMOD && addr >= m->start && addr < m->end)
			return i;
		if (m->kind == AS_MODULE_KERNEL)
			core = i;
	}
	return core;
}

/* ---- the image's listener ---- */

static void on_module(void *ctx, struct as_module *m)
{
	as_rec_module_of_image(ctx, m->id);
}

static void on_mapping(void *ctx, uint64_t time_ns, struct as_process *p,
		       const struct as_mapping *m)
{
	struct as_recorder *r = ctx;
	uint32_t thread = as_rec_thread(r, time_ns, p->pid, p->pid);

	as_write_map(r->w, &(struct as_rec_map){.time_ns = time_ns,
						.process = r->thrs.v[thread].process,
						.module = as_rec_module_of_image(r, m->module),
						.avma = m->start,
						.size_bytes = m->end - m->start,
						.off = m->off,
						.svma = m->start - m->bias + 1});
}

void as_recorder_listener(struct as_recorder *r, struct as_image_listener *ret)
{
	*ret = (struct as_image_listener){.ctx = r, .module = on_module, .mapping = on_mapping};
}
