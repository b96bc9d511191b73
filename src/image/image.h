/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What is mapped where: processes -> mappings -> modules -> their unwind tables and symbols.
 * The glue that keeps unwind/ and symbol/ pure. One as_image serves one recording.
 *
 * A module is a file that was mapped executable (by device, inode, and change time when a file
 * is rewritten in place), the vdso, or anonymous executable memory of one process. Its file is
 * pinned (open descriptor from /proc/PID/map_files, else /proc/PID/root + path, checked by
 * inode) when first seen, so that deleted, replaced and namespaced files resolve to what really
 * ran; the pin also keeps the inode number from being used again. Descriptors are counted;
 * beyond the limit modules are pinned by reopening and checked by build-id.
 *
 * Mappings live on a time line: as_image_* calls are made in the order of events and the image
 * tells a listener of each mapping that appears (kernel engine: to fill its maps; recorder: MAP
 * records). Text that a program moved onto anonymous memory (huge-page remapping) keeps its
 * module when the bytes there equal the file's.
 *
 * Thread rule: one thread. Addresses: avma unless named svma/off.
 */
#ifndef AS_IMAGE_IMAGE_H
#define AS_IMAGE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/err.h"
#include "elf/elf.h"
#include "session/session.h"
#include "unwind/unwind.h"

struct as_module {
	uint32_t id; /* dense from 0 */
	enum as_module_kind kind;
	char *path; /* as the target saw it, without " (deleted)"; "[vdso]"; "[anon:…]" */
	uint64_t dev, ino, size_bytes; /* dev as in /proc/PID/maps: makedev(major, minor) */
	int fd;                        /* pinned, O_RDONLY; -1: none (vdso, JIT) */
	pid_t pid;                     /* a process that has it mapped (for /proc/PID/root) */
	/* "/proc/PID/root" when the process lives in another mount namespace, else NULL */
	char *root;
	struct as_build_id build_id; /* or content id when has_build_id is false */
	bool has_build_id;
	bool own;       /* JIT: what as_image_claim was told of */
	uint8_t *image; /* vdso: bytes read from the process; else NULL */
	size_t image_size;
	const struct as_elf_segment *segments; /* owned by the module (copied) */
	size_t nsegments;
	const struct as_utable *table; /* after as_image_module_table; NULL: none */
	struct as_module_state *state; /* image/'s own */
};

struct as_mapping {
	uint64_t start, end, off; /* avma, avma, file offset */
	uint64_t bias;            /* avma - svma */
	uint32_t module;
};

struct as_process {
	pid_t pid;
	struct as_mapping *map; /* executable mappings, sorted by start, not overlapping */
	size_t nmap, cap;
	uint32_t generation;   /* changes with every change of map */
	uint64_t last_read_ns; /* of /proc/PID/maps */
};

struct as_image_listener {
	void *ctx;
	/* a new module, before its first mapping */
	void (*module)(void *ctx, struct as_module *m);
	void (*mapping)(void *ctx, uint64_t time_ns, struct as_process *p,
			const struct as_mapping *m);
	void (*changed)(void *ctx, struct as_process *p); /* p->map is different now */
};

struct as_image;
struct as_image *as_image_new(const char *cache_dir); /* NULL: tables are not cached on disk */
void as_image_free(struct as_image *im);
const char *as_image_cache_dir(const struct as_image *im); /* as it was given; may be NULL */
/* Listeners are called in the order they were added; at most four. Copied; ctx must outlive the
 * image. */
void as_image_add_listener(struct as_image *im, const struct as_image_listener *l);
void as_image_remove_listener(struct as_image *im, const void *ctx); /* the one with that ctx */

/* Anonymous executable memory in [start, end) of any process is assay's own code: a module of its own,
 * wherever it is seen from now on. */
void as_image_claim(struct as_image *im, uint64_t start, uint64_t end);

/* Events, in time order. Unknown processes are created. */
struct as_process *as_image_process(struct as_image *im, pid_t pid); /* NULL when unknown */
/* Replaces what is known of pid's map. */
int as_image_read_maps(struct as_image *im, pid_t pid, uint64_t time_ns, struct as_error *err);
struct as_mmap_event {
	pid_t pid;
	uint64_t time_ns, start, len, off;
	uint32_t maj, min;
	uint64_t ino;
	const char *path;
};
/* executable mappings only */
void as_image_mmap(struct as_image *im, const struct as_mmap_event *e);
void as_image_fork(struct as_image *im, pid_t parent, pid_t child, uint64_t time_ns);
void as_image_exec(struct as_image *im, pid_t pid, uint64_t time_ns); /* forgets the map */
void as_image_exit(struct as_image *im, pid_t pid, uint64_t time_ns);

const struct as_mapping *as_image_find(const struct as_process *p, uint64_t avma);
struct as_module *as_image_module(const struct as_image *im, uint32_t id);
size_t as_image_nmodules(const struct as_image *im);
/* Registers a file before anything runs it (DT_NEEDED closure of a program about to start). */
struct as_module *as_image_add_file(struct as_image *im, const char *path,
				    struct as_error *err);
/* The program, its interpreter and its DT_NEEDED closure (RUNPATH/RPATH, LD_LIBRARY_PATH,
 * ld.so.cache, default folders); best effort; appends modules' ids. Scripts: the interpreter's. */
void as_image_add_closure(struct as_image *im, const char *program_path, uint32_t *ids,
			  size_t max, size_t *n);

/* Compiled unwind table (from the cache or made now, at most once); NULL when the module has none. */
const struct as_utable *as_image_module_table(struct as_image *im, struct as_module *m);
/* Loads the full CFI and keeps it; as_image_unwind_find hands it out from then on. For stacks
 * that ended with AS_END_EXPR: load the last frame's module and unwind again. */
const struct as_cfi_input *as_image_module_cfi(struct as_image *im, struct as_module *m);
/* FDE extents for symbols of stripped code; may be empty. */
const struct as_extent *as_image_module_extents(struct as_image *im, struct as_module *m,
						size_t *ret_n);

/* For as_unwind_env callbacks: the executable mapping of p that holds avma, with its table and
 * CFI. */
bool as_image_unwind_find(struct as_image *im, const struct as_process *p, uint64_t avma,
			  struct as_unwind_module *ret);
/* n code bytes at avma, from the module's file (or the vdso's image): 0, or negative when not
 * there. Anonymous code has to be read from the target's memory by the caller. */
int as_image_read_code(struct as_image *im, const struct as_process *p, uint64_t avma,
		       void *out, size_t n);

struct as_image_cost {
	uint64_t tables_built, tables_cached, table_bytes, build_ns;
	uint64_t pinned_fds;
};
void as_image_costs(const struct as_image *im, struct as_image_cost *ret);

#endif
