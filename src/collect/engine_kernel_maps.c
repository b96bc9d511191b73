/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Keeps the kernel's view in step with the image: tables are copied into chunks once per
 * module, a process's mappings into a fresh range of the pool, which one update of the
 * process's value makes current. What the kernel may still be reading is never written: a
 * replaced range rests for REST_NS, much longer than a sample takes and than the fork events of
 * children that copied the old value need to arrive.
 *
 * Tables of large modules may take long to make. Their mappings are published without at first:
 * programs of that size mostly keep frame pointers, and all that was not large is walked at once.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "base/sys.h"
#include "collect/engine_kernel_priv.h"

#define MIN_ORDER 4
#define MAX_ORDER 17
#define REST_NS   2000000000ull
#define LARGE     (16u << 20) /* bytes of a file */

void as_kmaps_init(struct as_kmaps *k, struct as_kbpf *bpf, struct as_image *im)
{
	memset(k, 0, sizeof(*k));
	k->bpf = bpf;
	k->im = im;
}

/* ---- chunks ---- */

static bool add_chunk(struct as_kmaps *k)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	uint32_t index = (uint32_t)k->chunks.n;

	if (index >= AS_BPF_MAX_CHUNKS)
		return false;
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "assay_chunk", 4, AS_BPF_CHUNK_WORDS * 4, 1,
				&opts);
	if (fd < 0)
		return false;
	void *p = mmap(NULL, AS_BPF_CHUNK_WORDS * 4, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED || bpf_map_update_elem(k->bpf->fd_chunks, &index, &fd, BPF_ANY)) {
		if (p != MAP_FAILED)
			munmap(p, AS_BPF_CHUNK_WORDS * 4);
		close(fd);
		return false;
	}
	as_vec_push(&k->chunks, (struct as_kchunk){.w = p, .fd = fd});
	return true;
}

/* Room for n words; false when the kernel has no more memory for us. */
static bool place(struct as_kmaps *k, uint32_t n, uint16_t *ret_chunk, uint32_t *ret_word)
{
	size_t i = 0;

	if (n > AS_BPF_CHUNK_WORDS)
		return false;
	while (i < k->chunks.n && AS_BPF_CHUNK_WORDS - k->chunks.v[i].used < n)
		i++;
	if (i == k->chunks.n && !add_chunk(k))
		return false;
	*ret_chunk = (uint16_t)i;
	*ret_word = k->chunks.v[i].used;
	k->chunks.v[i].used += (n + 7) & ~7u;
	return true;
}

static void copy_table(struct as_kmaps *k, struct as_kmodule *km, const struct as_utable *t)
{
	const uint8_t *dir = t->blob + 32;

	km->seg = as_xcalloc(t->nsegs ? t->nsegs : 1, sizeof(*km->seg));
	for (uint32_t i = 0; i < t->nsegs; i++, dir += 16) {
		struct as_ksegment *s = &km->seg[km->nseg];
		uint32_t words = as_get_le32(dir + 12);

		s->first_page = as_get_le32(dir);
		s->npages = as_get_le32(dir + 4);
		if (!place(k, words, &s->chunk, &s->table)) {
			k->full++;
			return;
		}
		memcpy(k->chunks.v[s->chunk].w + s->table, t->blob + as_get_le32(dir + 8),
		       (size_t)words * 4);
		km->nseg++;
	}
}

/* ---- pieces of a module: one table segment each, gaps without a table ---- */

struct piece {
	uint64_t svma, size_bytes;
	uint32_t table;
	uint16_t chunk;
};
struct pieces {
	const struct as_kmodule *km;
	uint64_t svma, end_svma; /* what is left */
	uint32_t seg;
};

static bool next_piece(struct pieces *it, struct piece *ret)
{
	if (it->svma >= it->end_svma)
		return false;
	*ret = (struct piece){.svma = it->svma,
			      .size_bytes = it->end_svma - it->svma,
			      .chunk = AS_BPF_NO_CHUNK};
	for (; it->seg < it->km->nseg; it->seg++) {
		const struct as_ksegment *s = &it->km->seg[it->seg];
		uint64_t from = (uint64_t)s->first_page << AS_UT_PAGE_SHIFT;
		uint64_t to = from + ((uint64_t)s->npages << AS_UT_PAGE_SHIFT);

		if (to <= it->svma)
			continue;
		if (from > it->svma) {
			ret->size_bytes = AS_MIN(from, it->end_svma) - it->svma;
		} else {
			ret->table = s->table;
			ret->chunk = s->chunk;
			ret->size_bytes = AS_MIN(to, it->end_svma) - it->svma;
		}
		break;
	}
	it->svma += ret->size_bytes;
	return true;
}

static uint16_t kernel_module(uint32_t id)
{
	return id < AS_BPF_MAX_MODULE ? (uint16_t)(id + 1) : 0;
}

/* Lets the kernel find the module in mappings we have not seen yet. */
static void register_file(struct as_kmaps *k, const struct as_module *m,
			  const struct as_kmodule *km)
{
	struct as_bpf_file f = {0};
	struct as_bpf_file_key key = {.ino = m->ino,
				      .dev = major(m->dev) << 20 | minor(m->dev)};

	if (m->kind != AS_MODULE_FILE && m->kind != AS_MODULE_VDSO)
		return;
	if (m->kind == AS_MODULE_VDSO)
		key = (struct as_bpf_file_key){0};
	for (size_t i = 0; i < m->nsegments; i++) {
		const struct as_elf_segment *s = &m->segments[i];
		struct pieces it = {.km = km, .svma = s->svma, .end_svma = s->svma + s->filesz};
		struct piece p;

		if (!s->exec)
			continue;
		while (next_piece(&it, &p)) {
			if (f.npieces == AS_BPF_FILE_PIECES)
				return;
			f.piece[f.npieces++] =
				(struct as_bpf_piece){.off = s->off + (p.svma - s->svma),
						      .size_bytes = p.size_bytes,
						      .svma = p.svma,
						      .table = p.table,
						      .chunk = p.chunk,
						      .module = kernel_module(m->id)};
		}
	}
	if (f.npieces && key.dev + key.ino + (m->kind == AS_MODULE_VDSO))
		/* only a shortcut */
		(void)bpf_map_update_elem(k->bpf->fd_files, &key, &f, BPF_ANY);
}

void as_kmaps_load_module(struct as_kmaps *k, uint32_t id)
{
	while (k->mods.n <= id)
		as_vec_push(&k->mods, (struct as_kmodule){0});
	if (k->mods.v[id].loaded)
		return;
	k->mods.v[id].loaded = true;
	struct as_module *m = as_image_module(k->im, id);
	const struct as_utable *t = m ? as_image_module_table(k->im, m) : NULL;
	if (t && t->arch == AS_ARCH_X86_64)
		copy_table(k, &k->mods.v[id], t);
	if (m)
		register_file(k, m, &k->mods.v[id]);
}

/* What a mapping needs now: all of it, or, of a large module, just its place. */
static void want_module(struct as_kmaps *k, uint32_t id)
{
	const struct as_module *m = as_image_module(k->im, id);

	while (k->mods.n <= id)
		as_vec_push(&k->mods, (struct as_kmodule){0});
	struct as_kmodule *km = &k->mods.v[id];
	if (km->loaded || km->waiting)
		return;
	if (!k->running || !m || m->size_bytes < LARGE || m->kind != AS_MODULE_FILE) {
		as_kmaps_load_module(k, id);
		return;
	}
	km->waiting = true;
	as_vec_push(&k->waiting, id);
	register_file(k, m, km);
}

static void load_waiting(struct as_kmaps *k)
{
	if (!k->waiting.n)
		return;
	as_vec_foreach (id, &k->waiting)
		as_kmaps_load_module(k, *id);
	k->waiting.n = 0;
	for (size_t i = 0; i < k->procs.cap; i++)
		if (k->procs.slot[i].key != UINT64_MAX)
			as_kmaps_touch(k, (void *)(uintptr_t)k->procs.slot[i].val);
}

/* ---- the pool ---- */

static void release(struct as_kmaps *k, struct as_krange *r, uint64_t now_ns)
{
	if (r && --r->refs == 0)
		as_vec_push(&k->resting, (struct as_kfree_range){r, now_ns});
}

static void wake_rested(struct as_kmaps *k, uint64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < k->resting.n; i++) {
		struct as_kfree_range f = k->resting.v[i];

		if (now_ns - f.since_ns < REST_NS) {
			k->resting.v[kept++] = f;
			continue;
		}
		as_vec_push(&k->free_base[f.range->order], f.range->base);
		free(f.range);
	}
	k->resting.n = kept;
}

/* A range for n mappings: of its order, else new, else a larger one is halved. */
static struct as_krange *take_range(struct as_kmaps *k, size_t n)
{
	uint32_t order = MIN_ORDER, from;

	while (order <= MAX_ORDER && n > (size_t)1 << order)
		order++;
	if (order > MAX_ORDER)
		return NULL;
	uint32_t size = 1u << order, base;
	if (k->free_base[order].n) {
		base = k->free_base[order].v[--k->free_base[order].n];
	} else if (k->pool_used + size <= AS_BPF_POOL_MAPPINGS) {
		base = k->pool_used;
		k->pool_used += size;
	} else {
		for (from = order + 1; from <= MAX_ORDER && !k->free_base[from].n; from++)
			;
		if (from > MAX_ORDER)
			return NULL;
		base = k->free_base[from].v[--k->free_base[from].n];
		while (from-- > order)
			as_vec_push(&k->free_base[from], base + (1u << from));
	}
	struct as_krange *r = as_xcalloc(1, sizeof(*r));
	*r = (struct as_krange){.base = base, .order = order, .refs = 1};
	return r;
}

static void list_mappings(struct as_kmaps *k, const struct as_process *ip)
{
	k->scratch.n = 0;
	for (size_t i = 0; i < ip->nmap; i++) {
		const struct as_mapping *m = &ip->map[i];
		struct piece p;

		want_module(k, m->module);
		struct pieces it = {.km = &k->mods.v[m->module],
				    .svma = m->start - m->bias,
				    .end_svma = m->end - m->bias};
		while (next_piece(&it, &p) && k->scratch.n < AS_BPF_POOL_MAPPINGS)
			as_vec_push(&k->scratch, (struct as_bpf_mapping){
							 .start_avma = p.svma + m->bias,
							 .size_bytes = p.size_bytes,
							 .bias = m->bias,
							 .table = p.table,
							 .chunk = p.chunk,
							 .module = kernel_module(m->module)});
	}
}

static void publish_one(struct as_kmaps *k, struct as_kproc *p, uint64_t now_ns)
{
	const struct as_process *ip = as_image_process(k->im, p->pid);
	uint32_t pid = (uint32_t)p->pid;

	if (!ip || !ip->nmap)
		return;
	list_mappings(k, ip);
	struct as_krange *r = take_range(k, k->scratch.n);
	if (!r) {
		k->full++;
		return;
	}
	memcpy(&k->bpf->pool[r->base], k->scratch.v, k->scratch.n * sizeof(*k->scratch.v));
	/* contents before the value that points at them */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	struct as_bpf_process v = {
		.base = r->base, .n = (uint32_t)k->scratch.n, .generation = ++k->generation};
	if (bpf_map_update_elem(k->bpf->fd_processes, &pid, &v, BPF_EXIST)) {
		release(k, r, now_ns); /* it is gone */
		return;
	}
	release(k, p->range, now_ns);
	p->range = r;
	p->n = v.n;
	p->generation = v.generation;
	p->published_ns = now_ns;
	k->publications++;
}

/* A child has what its parent had at the fork: shared when that is still the parent's. */
static bool adopt(struct as_kmaps *k, struct as_kproc *p)
{
	struct as_kproc *parent = as_kmaps_find(k, p->parent);
	struct as_bpf_process v;
	uint32_t pid = (uint32_t)p->pid;

	if (!parent || !parent->range || bpf_map_lookup_elem(k->bpf->fd_processes, &pid, &v) ||
	    v.generation != parent->generation || v.base != parent->range->base)
		return false;
	parent->range->refs++;
	p->range = parent->range;
	p->n = parent->n;
	p->generation = parent->generation;
	p->published_ns = parent->published_ns;
	return true;
}

void as_kmaps_publish(struct as_kmaps *k, uint64_t now_ns)
{
	wake_rested(k, now_ns);
	load_waiting(k);
	/* parents stand before their children: adoption sees what parents had before this batch */
	for (size_t i = 0; i < k->todo.n; i++) {
		struct as_kproc *p = k->todo.v[i];

		if (p->forked && !p->dirty && !adopt(k, p))
			p->dirty = true;
		p->forked = false;
	}
	for (size_t i = 0; i < k->todo.n; i++) {
		struct as_kproc *p = k->todo.v[i];

		if (p->dirty)
			publish_one(k, p, now_ns);
		p->dirty = false;
	}
	k->todo.n = 0;
}

/* ---- processes ---- */

struct as_kproc *as_kmaps_find(const struct as_kmaps *k, pid_t pid)
{
	const uint64_t *v = as_map64_get(&k->procs, (uint64_t)pid);

	return v ? (struct as_kproc *)(uintptr_t)*v : NULL;
}

static struct as_kproc *add(struct as_kmaps *k, pid_t pid)
{
	struct as_kproc *p = as_xcalloc(1, sizeof(*p));

	p->pid = pid;
	*as_map64_put(&k->procs, (uint64_t)pid, NULL) = (uint64_t)(uintptr_t)p;
	return p;
}

int as_kmaps_follow(struct as_kmaps *k, pid_t pid, uint32_t flags, struct as_error *err)
{
	struct as_bpf_process v = {.flags = flags};
	uint32_t key = (uint32_t)pid;

	if (bpf_map_update_elem(k->bpf->fd_processes, &key, &v, BPF_ANY))
		return as_fail(err, AS_E_IO, errno, "cannot follow process %d: %s", (int)pid,
			       strerror(errno));
	if (!as_kmaps_find(k, pid))
		add(k, pid);
	return AS_OK;
}

struct as_kproc *as_kmaps_forked(struct as_kmaps *k, pid_t parent, pid_t child)
{
	as_kmaps_forget(k, child);
	struct as_kproc *p = add(k, child);
	p->parent = parent;
	p->forked = true;
	as_vec_push(&k->todo, p);
	return p;
}

void as_kmaps_touch(struct as_kmaps *k, struct as_kproc *p)
{
	if (!p->dirty && !p->forked)
		as_vec_push(&k->todo, p);
	p->dirty = true;
}

void as_kmaps_forget(struct as_kmaps *k, pid_t pid)
{
	struct as_kproc *p = as_kmaps_find(k, pid);

	if (!p)
		return;
	for (size_t i = 0; i < k->todo.n; i++)
		if (k->todo.v[i] == p)
			k->todo.v[i--] = k->todo.v[--k->todo.n];
	release(k, p->range, as_now_ns());
	as_map64_del(&k->procs, (uint64_t)pid);
	free(p);
}

void as_kmaps_clear(struct as_kmaps *k)
{
	for (size_t i = 0; i < k->procs.cap; i++) {
		struct as_map64_slot *s = &k->procs.slot[i];
		if (s->key == UINT64_MAX)
			continue;
		struct as_kproc *p = (struct as_kproc *)(uintptr_t)s->val;
		release(k, p->range, 0);
		free(p);
	}
	as_map64_clear(&k->procs);
	as_vec_foreach (f, &k->resting)
		free(f->range);
	as_vec_clear(&k->resting);
	as_vec_foreach (m, &k->mods)
		free(m->seg);
	as_vec_clear(&k->mods);
	as_vec_foreach (c, &k->chunks) {
		munmap(c->w, AS_BPF_CHUNK_WORDS * 4);
		close(c->fd);
	}
	as_vec_clear(&k->chunks);
	for (size_t i = 0; i < AS_ARRAY_LEN(k->free_base); i++)
		as_vec_clear(&k->free_base[i]);
	as_vec_clear(&k->todo);
	as_vec_clear(&k->waiting);
	as_vec_clear(&k->scratch);
}
