/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Where is the debug information of this object? Tried in this order, each refused by name when it
 * does not match:
 *	1. the object itself (.debug_info)
 *	2. <dir>/.build-id/ab/cdef….debug for every debug directory
 *	3. .gnu_debuglink: beside the object, its .debug/, <debugdir>/<object's dir>/; CRC checked
 *	4. .gnu_debugdata (symbols only)
 * and for what a debug file refers to: .gnu_debugaltlink (dwz, build-id checked), NAME.dwp beside
 * the object, .dwo files by DW_AT_comp_dir/DW_AT_dwo_name (symbol/ asks for those).
 *
 * With a root every place is tried inside it first, then on this machine: what identifies a file is
 * its build-id or CRC, so a file of the wrong side is refused, not used.
 */
#ifndef AS_ELF_DEBUGFILE_H
#define AS_ELF_DEBUGFILE_H

#include "base/buf.h"
#include "base/err.h"
#include "elf/elf.h"

struct as_debug_search {
	const char *const *debug_dirs; /* NULL-terminated; NULL: /usr/lib/debug */
	const char *root;              /* prefix for absolute paths (/proc/PID/root), or NULL */
	const char *object_path;       /* path as the target saw it */
};
/*
 * Opens the file that holds DWARF for obj. *ret is NULL (and AS_OK) when obj itself has it or
 * nothing was found; tried, if not NULL, gets one line per place looked at with the reason it was
 * refused.
 */
int as_debugfile_find(struct as_elf *obj, const struct as_debug_search *s, struct as_elf **ret,
		      struct as_buf *tried, struct as_error *err);
/* The dwz common file that dbg refers to; *ret NULL when it refers to none. */
int as_debugfile_alt(struct as_elf *dbg, const struct as_debug_search *s, struct as_elf **ret,
		     struct as_buf *tried, struct as_error *err);

/*
 * Opens path for reading, as seen from root unless that is NULL or "": symbolic links inside it,
 * absolute ones too, stay inside (a container's /tmp must not lead to our files). Any kind of file;
 * never blocks on a FIFO. Returns the descriptor or -errno.
 */
int as_open_in_root(const char *root, const char *path);

#endif
