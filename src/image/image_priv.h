/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Inside of image/: see image.h. */
#ifndef AS_IMAGE_IMAGE_PRIV_H
#define AS_IMAGE_IMAGE_PRIV_H

#include "base/map.h"
#include "base/mem.h"
#include "image/image.h"

#define AS_IMAGE_MAX_LISTENERS 4
#define AS_IMAGE_MAX_MAPS      (64u << 20) /* bytes of one /proc/PID/maps */

/* What a module holds besides its public facts. */
struct as_module_state {
	bool table_tried, cfi_tried, extents_tried;
	bool cfi_kept; /* handed out: stays loaded */
	struct as_utable table;
	void *blob; /* of the table: malloc'ed, or a mapped cache file */
	size_t blob_size;
	bool blob_mapped;
	struct as_elf *elf, *debug; /* open while cfi points into them */
	struct as_cfi_input cfi;
	struct as_code_range *code;
	struct as_extent *extents;
	size_t nextents;
	uint64_t mtime_ns; /* of the pinned file, to notice rewriting in place */
};

struct as_image_claimed {
	uint64_t start, end;
};

struct as_image {
	char *cache_dir;
	struct as_image_listener listeners[AS_IMAGE_MAX_LISTENERS];
	size_t nlisteners;
	AS_VEC(struct as_module *) modules;
	struct as_map64 by_file; /* hash of (dev, ino) -> module id + 1, probing by key + 1 */
	struct as_map64 by_pid;  /* pid -> struct as_process * */
	uint32_t vdso;           /* module id + 1 */
	uint64_t own_mnt_ns;     /* inode of our mount namespace */
	AS_VEC(struct as_image_claimed) claimed;
	uint32_t own; /* module id + 1 of what is in claimed */
	struct as_image_cost cost;
};

/* What identifies the file of a mapping, and where to open it. */
struct as_module_where {
	pid_t pid; /* 0: path is opened as it is */
	uint64_t start, end, dev, ino;
	const char *path; /* may end in " (deleted)" */
};
struct as_module *as_module_of_file(struct as_image *im, const struct as_module_where *w);
struct as_module *as_module_of_vdso(struct as_image *im, pid_t pid, uint64_t start,
				    uint64_t end);
struct as_module *as_module_of_anon(struct as_image *im, pid_t pid);
struct as_module *as_module_of_own(struct as_image *im);
void as_module_free(struct as_module *m);
bool as_module_bias(const struct as_module *m, const struct as_mapping *map, uint64_t *ret);
/* True when the code of m at [svma, svma + n) equals what pid has at avma (spread probes). */
bool as_module_same_code(const struct as_module *m, pid_t pid, uint64_t avma, uint64_t svma,
			 uint64_t n);

#endif
