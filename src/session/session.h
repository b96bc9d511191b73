/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The session file: an append-only stream of chunks, each a header, a CRC and one zstd frame of
 * records (records.def). Written as NAME.partial, fsynced, renamed; the same bytes go through a
 * pipe. Any prefix is readable; the reader says what is missing. Layout: docs/formats/session.md.
 *
 *	file	: "ASSAYS1\n", u32 version, u32 must-understand mask, u32 may-ignore mask, u32 0
 *	chunk	: u32 magic "ACHK", u32 bytes stored, u32 bytes of records, u32 sequence,
 *		  u64 base time ns, u32 flags (1: zstd), u32 CRC32C of the header before it and the
 *		  stored bytes; then the bytes
 *	records	: uleb type, uleb payload length, payload (uleb/sleb/length-prefixed fields)
 *
 * A chunk is closed before it is 1 s old and after 256 KiB of records. kill -9 loses the open one
 * at most. An existing session of that name is replaced only at the end; any other file is refused;
 * NAME.partial of a crashed recording is kept as NAME.partial.old, that of a running one is refused.
 */
#ifndef AS_SESSION_SESSION_H
#define AS_SESSION_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "abi/stack_end.h"
#include "base/buf.h"
#include "base/err.h"

struct as_str {
	const char *p;
	size_t n;
};
#define AS_STR(s) ((struct as_str){(s), strlen(s)})
struct as_u64s {
	const uint64_t *v;
	size_t n;
};

enum as_module_kind {
	AS_MODULE_FILE = 0,
	AS_MODULE_VDSO = 1,
	AS_MODULE_KERNEL = 2, /* core kernel; addr is the run-time address */
	AS_MODULE_KMOD = 3,
	AS_MODULE_JIT = 4, /* anonymous executable memory of one process; addr is an avma */
};

enum as_module_flags {
	AS_MODULE_OWN = 1, /* assay's runtime in the program, not the program's code */
};

enum as_frame_flags {
	AS_FRAME_EXACT = 1, /* addr is a pc; without it a return address: symbols at addr - 1 */
	AS_FRAME_KERNEL = 2,
	AS_FRAME_SIGNAL = 4, /* signal trampoline */
	AS_FRAME_JUNK = 8,   /* reserved */
};

#define AS_SAMPLE_END_MASK 0xffu  /* enum as_stack_end */
#define AS_SAMPLE_REPAIRED 0x100u /* read later than taken, verified */
#define AS_SAMPLE_KERNEL   0x200u /* was in the kernel */

enum as_heap_record_flags {
	AS_HEAP_LOOKED = 1, /* for leaks */
	AS_HEAP_EVENTS = 2, /* every call is kept: session/log.h */
};

enum as_loss { AS_LOSS_KERNEL = 0, AS_LOSS_QUEUE = 1, AS_LOSS_SIDE = 2 /* mapping events */ };

/* One struct per record type: struct as_rec_sample { uint64_t time_rel; … } */
#define U(f) uint64_t f;
#define S(f) int64_t f;
#define T(f) struct as_str f;
#define V(f) struct as_u64s f;
#define R(id, NAME, name, fields)                                                              \
	struct as_rec_##name {                                                                 \
		fields                                                                         \
	};
#include "session/records.def"
#undef R
#undef U
#undef S
#undef T
#undef V

enum as_rec_type {
#define R(id, NAME, name, fields) AS_REC_##NAME = id,
#include "session/records.def"
#undef R
};

/* ---- writing ---- */

struct as_session_writer;
/* path "-": standard output, no rename. Writes path.partial until as_session_writer_finish. */
int as_session_writer_open(const char *path, struct as_session_writer **ret,
			   struct as_error *err);
/* One function per record type; they only fail sticky: as_session_writer_status tells. Relative
 * times (SAMPLE, LOST, TICK) are given absolute in time_rel and made relative here. */
#define R(id, NAME, name, fields)                                                              \
	void as_write_##name(struct as_session_writer *w, const struct as_rec_##name *r);
#include "session/records.def"
#undef R
/* Interned text: writes a STRING record the first time; id 0 is always "". */
uint32_t as_session_string(struct as_session_writer *w, const char *p, size_t n);
/* Closes the open chunk when it is a second old or full; call it at least 4 times a second. */
void as_session_writer_tick(struct as_session_writer *w, uint64_t now_ns);
void as_session_writer_flush(struct as_session_writer *w); /* closes the open chunk now */
/* From now on chunks are to be small, at twice the time: for what is written once, at the end. */
void as_session_writer_pack_well(struct as_session_writer *w);
/* The first failure, if any. */
int as_session_writer_status(const struct as_session_writer *w, struct as_error *err);
uint64_t as_session_writer_bytes(const struct as_session_writer *w);
/* For a forked process that looks at the session so far: what is written from now on goes to a copy,
 * which can be read under /proc/self/fd/N; N is returned. Flush before the fork. */
int as_session_writer_divert(struct as_session_writer *w, struct as_error *err);
/* END record, fsync, rename. On failure the .partial stays and the message names it. */
int as_session_writer_finish(struct as_session_writer *w, struct as_error *err);
/* frees; unfinished files stay as .partial */
void as_session_writer_close(struct as_session_writer *w);

/* ---- reading ---- */

/* Unset callbacks are skipped. Return 0 to go on, negative to stop (that value is returned).
 * Pointers in records are valid during the call. Times in SAMPLE, LOST, TICK arrive absolute. */
struct as_record_sink {
	void *ctx;
#define R(id, NAME, name, fields) int (*name)(void *ctx, const struct as_rec_##name *r);
#include "session/records.def"
#undef R
};

struct as_session_health {
	bool complete;  /* END was seen */
	bool truncated; /* the file ends inside a chunk */
	uint64_t chunks, bad_chunks, bytes_read, bytes_missing;
	uint64_t unknown_records;
	uint64_t bad_records; /* their payload made no sense; skipped */
};

/* Reads path ("-": standard input) to its end or first unreadable chunk. Damage is not an error:
 * what stands before it is delivered and health tells; a file that is no session is AS_E_FORMAT. */
int as_session_read(const char *path, const struct as_record_sink *sink,
		    struct as_session_health *health, struct as_error *err);
int as_session_read_mem(const void *p, size_t n, const struct as_record_sink *sink,
			struct as_session_health *health, struct as_error *err);

#endif
