/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The in-target runtime in this very process, without anything being patched: its image is
 * mapped, control page, rings and contexts are set up as the tool would, and thunks lead to its
 * entries, with any function as the original. For tests and benchmarks; one host at a time.
 *
 *	struct rt_host h;
 *	rt_host_open(&h, &(struct rt_host_options){.ring_bytes = 1 << 20});
 *	void *(*m)(size_t) = rt_host_hook(&h, AS_RT_SIZE, malloc);
 *	… calls of m …
 *	rt_host_drain(&h, ring, on_record, ctx);
 *	rt_host_close(&h);	no thunk may run any more
 */
#ifndef RT_HOST_H
#define RT_HOST_H

#include <assert.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "../unit/cfi_file.h"
#include "abi/rt.h"
#include "base/buf.h"
#include "base/err.h"
#include "rt/rt.h"
#include "unwind/table.h"
#include "unwind/unwind.h"

#define RT_HOST_MODULES 64
#define RT_HOST_HOOKS   64
#define RT_HOST_THUNK   64
#define RT_HOST_HOME    8192

struct rt_host_module {
	uint64_t bias, start, end;
	struct cfi_file file;
	struct as_buf blob;
	struct as_utable table;
	bool has_table;
};

struct rt_host_options {
	uint32_t ring_bytes;  /* 0: 1 MiB */
	uint32_t context_max; /* 0: 64 */
	uint32_t flags;
	uint32_t full_wait_us;
	uint64_t sample_bytes;
	uint32_t tid_off;
};

struct rt_host {
	uint8_t *image;
	struct as_rt_control *control;
	char *rings, *contexts;
	struct as_rt_home *home;
	struct as_rt_hook *hook;
	uint8_t *thunks;
	size_t nhooks, shared_bytes;
	uint32_t ring_bytes, context_max;
	int fd; /* the file that control and rings are in */
	struct rt_host_module module[RT_HOST_MODULES];
	size_t nmodules; /* the last one is the image itself */
};

static inline int rt_host_add_module(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct rt_host *h = ctx;
	struct rt_host_module *m = &h->module[h->nmodules];
	const char *path = info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe";
	struct as_error err;
	(void)size;
	if (h->nmodules == RT_HOST_MODULES - 1)
		return 1;
	m->bias = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		m->start = m->bias + p->p_vaddr;
		m->end = m->start + p->p_memsz;
	}
	if (cfi_file_open(path, &m->file) &&
	    !as_utable_compile(&m->file.in, &m->blob, NULL, &err))
		m->has_table = !as_utable_open(m->blob.p, m->blob.len, &m->table, &err);
	h->nmodules++;
	return 0;
}

/* The image as a module, with a table of its own. */
static inline void rt_host_add_image(struct rt_host *h)
{
	struct rt_host_module *m = &h->module[h->nmodules++];
	const struct as_rt_image *image = (const void *)h->image;
	struct as_code_range code = {
		image->text_off, {h->image + image->text_off, image->text_bytes}, false};
	struct as_error err;
	m->bias = m->start = (uintptr_t)h->image;
	m->end = m->start + image->bytes;
	m->file.in = (struct as_cfi_input){
		.arch = AS_ARCH_X86_64,
		.eh_frame = {h->image + image->eh_frame_off, image->eh_frame_bytes},
		.eh_frame_svma = image->eh_frame_off,
		.code = &code,
		.ncode = 1};
	m->has_table = !as_utable_compile(&m->file.in, &m->blob, NULL, &err) &&
		       !as_utable_open(m->blob.p, m->blob.len, &m->table, &err);
	if (!m->has_table) {
		fprintf(stderr, "rt_host: the image has no unwind table\n");
		abort();
	}
}

static inline int rt_host_by_start(const void *a, const void *b)
{
	const struct as_rt_module *x = a, *y = b;
	return x->start_avma < y->start_avma ? -1 : x->start_avma > y->start_avma;
}

/* Tells the runtime the modules, as the recorder does when they change. */
static inline void rt_host_publish(struct rt_host *h)
{
	uint32_t seq = h->control->modules_seq;
	struct as_rt_module_set *set = &h->control->module_set[(seq + 1) & 1];
	set->count = 0;
	for (size_t i = 0; i < h->nmodules; i++) {
		const struct rt_host_module *m = &h->module[i];
		set->module[set->count++] = (struct as_rt_module){
			.start_avma = m->start,
			.end_avma = m->end,
			.bias = m->bias,
			.table = m->has_table ? (uintptr_t)m->table.blob : 0,
			.segments = m->has_table ? m->table.nsegs : 0,
			.flags = i + 1 == h->nmodules ? AS_RT_MODULE_SELF : 0,
		};
	}
	qsort(set->module, set->count, sizeof set->module[0], rt_host_by_start);
	__atomic_store_n(&h->control->modules_seq, seq + 1, __ATOMIC_RELEASE);
}

static inline void *rt_host_map(size_t n, int flags, int fd)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (p == MAP_FAILED) {
		perror("rt_host: mmap");
		abort();
	}
	return p;
}

static inline uint64_t rt_host_stack_end(void)
{
	char line[256];
	unsigned long start, end = 0;
	FILE *f = fopen("/proc/self/maps", "re");
	while (f && fgets(line, sizeof line, f))
		if (strstr(line, "[stack]") && sscanf(line, "%lx-%lx", &start, &end) == 2)
			break;
	if (f)
		fclose(f);
	return end;
}

static inline uint8_t *rt_host_load_image(void)
{
	size_t n = (as_rt_blob_bytes + 4095) & ~4095u;
	uint8_t *p = rt_host_map(n, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	memcpy(p, as_rt_blob, as_rt_blob_bytes);
	mprotect(p, n, PROT_READ | PROT_EXEC);
	return p;
}

static inline void rt_host_open(struct rt_host *h, const struct rt_host_options *o)
{
	memset(h, 0, sizeof *h);
	h->ring_bytes = o->ring_bytes ? o->ring_bytes : 1u << 20;
	h->context_max = o->context_max ? o->context_max : 64;
	h->image = rt_host_load_image();
	h->shared_bytes = AS_RT_CONTROL_BYTES +
			  (size_t)h->context_max * (AS_RT_RING_HEAD_BYTES + h->ring_bytes);
	h->fd = memfd_create("rings", MFD_CLOEXEC);
	if (h->fd < 0 || ftruncate(h->fd, (off_t)h->shared_bytes))
		abort();
	h->control = rt_host_map(h->shared_bytes, MAP_SHARED, h->fd);
	h->rings = (char *)h->control + AS_RT_CONTROL_BYTES;
	h->home = rt_host_map(RT_HOST_HOME, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	h->hook = (struct as_rt_hook *)(h->home + 1);
	h->thunks = rt_host_map(RT_HOST_HOOKS * RT_HOST_THUNK, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	size_t n = (size_t)h->context_max * AS_RT_CONTEXT_BYTES;
	h->contexts = rt_host_map(n, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
	madvise(h->contexts, n, MADV_WIPEONFORK);
	*h->home = (struct as_rt_home){.magic = AS_RT_MAGIC,
				       .control = (uintptr_t)h->control,
				       .rings = (uintptr_t)h->rings,
				       .contexts = (uintptr_t)h->contexts,
				       .context_max = h->context_max,
				       .ring_bytes = h->ring_bytes};
	if (o->sample_bytes)
		h->home->sampled = (uintptr_t)rt_host_map(AS_RT_SAMPLED_BYTES,
							  MAP_PRIVATE | MAP_ANONYMOUS, -1);
	*(uint64_t *)(h->contexts + AS_RT_CONTEXT_PID) = (uint64_t)getpid();
	h->control->sample_bytes = o->sample_bytes;
	h->control->tid_off = o->tid_off;
	h->control->magic = AS_RT_MAGIC;
	h->control->version = AS_RT_VERSION;
	h->control->pid = (uint32_t)getpid();
	h->control->stack_end_avma = rt_host_stack_end();
	h->control->full_wait_us = o->full_wait_us;
	h->control->flags = o->flags;
	h->control->heartbeat = 1;
#ifdef HWCAP2_FSGSBASE
	if (getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE)
#else
	if (getauxval(AT_HWCAP2) & 2)
#endif
		h->control->flags |= AS_RT_FSGSBASE;
	dl_iterate_phdr(rt_host_add_module, h);
	rt_host_add_image(h);
	rt_host_publish(h);
	syscall(SYS_arch_prctl, 0x1001 /* ARCH_SET_GS */, h->contexts);
}

/* A function that behaves as `original` and is recorded as kind. Its id is the count so far. */
static inline void *rt_host_hook(struct rt_host *h, enum as_rt_kind kind, const void *original)
{
	const struct as_rt_image *image = (const void *)h->image;
	size_t i = h->nhooks++;
	uint8_t *t = h->thunks + i * RT_HOST_THUNK;
	uint64_t hook = (uintptr_t)&h->hook[i];
	uint64_t entry =
		(uintptr_t)h->image + (h->home->sampled ? image->sampled : image->entry)[kind];
	assert(i < RT_HOST_HOOKS);
	h->hook[i] = (struct as_rt_hook){.original = (uintptr_t)original,
					 .home = (uintptr_t)h->home,
					 .id = (uint16_t)(i + 1),
					 .kind = (uint16_t)kind};
	mprotect(h->thunks, RT_HOST_HOOKS * RT_HOST_THUNK, PROT_READ | PROT_WRITE);
	memcpy(t, "\x49\xbb", 2); /* movabs r11 */
	memcpy(t + 2, &hook, 8);
	memcpy(t + 10, "\x49\xba", 2); /* movabs r10 */
	memcpy(t + 12, &entry, 8);
	memcpy(t + 20, "\x41\xff\xe2", 3); /* jmp *r10 */
	mprotect(h->thunks, RT_HOST_HOOKS * RT_HOST_THUNK, PROT_READ | PROT_EXEC);
	return t;
}

static inline struct as_rt_ring *rt_host_ring(const struct rt_host *h, uint32_t i)
{
	return (void *)(h->rings + (size_t)i * (AS_RT_RING_HEAD_BYTES + h->ring_bytes));
}

/* A record as it was read, its words in order. */
struct rt_record {
	union {
		struct as_rt_head head;
		struct as_rt_rec_alloc alloc;
		struct as_rt_rec_free free;
		struct as_rt_rec_realloc_begin realloc_begin;
		struct as_rt_rec_realloc realloc;
		struct as_rt_rec_mmap mmap;
		struct as_rt_rec_munmap munmap;
		struct as_rt_rec_mremap mremap;
		struct as_rt_rec_node node;
		struct as_rt_rec_time time;
		struct as_rt_rec_thread thread;
		struct as_rt_rec_sync sync;
		struct as_rt_rec_mark mark;
		uint64_t w[2 * AS_RT_UNITS_MAX];
	} u;
};
typedef void rt_host_record_fn(void *ctx, uint32_t ring, const struct rt_record *r);

/* All complete records of ring i, in order; how many. Stops at one that is being written. */
static inline size_t rt_host_drain(struct rt_host *h, uint32_t i, rt_host_record_fn *fn,
				   void *ctx)
{
	struct as_rt_ring *r = rt_host_ring(h, i);
	const char *data = (const char *)r + AS_RT_RING_HEAD_BYTES;
	uint64_t at = r->consumed, mask = h->ring_bytes - 1;
	size_t n = 0;
	while (at < __atomic_load_n(&r->pos, __ATOMIC_ACQUIRE)) {
		struct rt_record rec = {0};
		rec.u.w[0] = __atomic_load_n((const uint64_t *)(data + (at & mask)),
					     __ATOMIC_ACQUIRE);
		if (rec.u.head.tag != (uint32_t)(at >> 4) || !rec.u.head.kind)
			break;
		assert(rec.u.head.units >= 1 && rec.u.head.units <= AS_RT_UNITS_MAX);
		for (unsigned k = 0; k < rec.u.head.units; k++)
			memcpy((char *)&rec.u + 16 * k + (k ? 0 : 8),
			       data + ((at + 16 * k) & mask) + (k ? 0 : 8), k ? 16 : 8);
		at += 16u * rec.u.head.units;
		if (fn)
			fn(ctx, i, &rec);
		n++;
		__atomic_store_n(&r->consumed, at, __ATOMIC_RELEASE);
	}
	return n;
}

static inline void rt_host_close(struct rt_host *h)
{
	for (size_t i = 0; i < h->nmodules; i++) {
		as_buf_clear(&h->module[i].blob);
		cfi_file_close(&h->module[i].file);
	}
	syscall(SYS_arch_prctl, 0x1001, 0);
	munmap(h->contexts, (size_t)h->context_max * AS_RT_CONTEXT_BYTES);
	munmap(h->thunks, RT_HOST_HOOKS * RT_HOST_THUNK);
	if (h->home->sampled)
		munmap((void *)(uintptr_t)h->home->sampled, AS_RT_SAMPLED_BYTES);
	munmap(h->home, RT_HOST_HOME);
	munmap(h->control, h->shared_bytes);
	close(h->fd);
	munmap(h->image, (as_rt_blob_bytes + 4095) & ~4095u);
}

#endif
