/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The operating system in small pieces: files, /proc, time, numbers. EINTR and short transfers
 * are handled here. Paths given to people go through as_quote so that control characters stay text.
 */
#ifndef AS_BASE_SYS_H
#define AS_BASE_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/buf.h"
#include "base/err.h"

uint64_t as_now_ns(void);         /* CLOCK_MONOTONIC */
uint64_t as_realtime_ns(void);    /* CLOCK_REALTIME */
uint64_t as_self_cpu_ns(void);    /* user + system of this process, all threads */
uint64_t as_self_rss_bytes(void); /* the most this process had resident */

int as_write_all(int fd, const void *p, size_t n, struct as_error *err);
/* 0, or -errno; -ENODATA when short */
int as_pread_all(int fd, void *p, size_t n, uint64_t off);
/* Whole file, also of unknown size (/proc); at most max bytes, else AS_E_LIMIT. Appends to out. */
int as_read_file(const char *path, size_t max, struct as_buf *out, struct as_error *err);
int as_read_fd(int fd, size_t max, struct as_buf *out, struct as_error *err);
/* Writes path + ".tmp.PID", fsyncs, renames. */
int as_write_file_atomic(const char *path, const void *p, size_t n, struct as_error *err);
int as_mkdir_parents(const char *path, struct as_error *err); /* like mkdir -p, mode 0700 */
/* $XDG_CACHE_HOME/assay, else $HOME/.cache/assay; created. NULL when there is no such place.
 * Caller frees. */
char *as_cache_dir(void);

bool as_parse_u64(const char *s, uint64_t *ret);  /* whole string, decimal or 0x */
bool as_parse_double(const char *s, double *ret); /* whole string, finite */
/* 10, 10s, 1.5m, 200ms, 3us, 4ns, 2h; bare number = s */
bool as_parse_duration_ns(const char *s, uint64_t *ret);
bool as_parse_size(const char *s, uint64_t *ret); /* 64, 8K, 8KiB, 2M, 1G: powers of 1024 */

/* Human forms (SI time, KiB/MiB); they append. */
void as_fmt_duration(struct as_buf *b, uint64_t ns); /* 12.4 s, 3.10 ms, 412 ns */
void as_fmt_bytes(struct as_buf *b, uint64_t bytes); /* 212 KiB */
void as_fmt_count(struct as_buf *b, uint64_t n);     /* 21,640 */
/* Control characters, invalid UTF-8 and DEL as \xNN; safe for a terminal. */
void as_fmt_quoted(struct as_buf *b, const char *s, size_t n);
/* Valid UTF-8: bytes that are none become U+FFFD. */
void as_fmt_utf8(struct as_buf *b, const char *s, size_t n);
/* Text of a file as text to show: damaged UTF-8 and C1 controls become U+FFFD, control characters but
 * the tab their pictures (U+2400 and on). */
void as_fmt_text(struct as_buf *b, const char *s, size_t n);
/* Text of an element, or of an attribute between double quotes, of HTML and XML. s: UTF-8 without
 * control characters, as as_fmt_quoted and as_fmt_text leave it. */
void as_fmt_markup(struct as_buf *b, const char *s);
/* Columns a UTF-8 string takes on a terminal (wcwidth; invalid bytes count 1). */
size_t as_text_width(const char *s, size_t n);

#endif
