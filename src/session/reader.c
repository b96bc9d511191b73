/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Session reader: one chunk at a time, from a descriptor or from memory, memory bounded by two
 * chunks. It stops at the first byte it cannot vouch for: later records lean on earlier ones.
 */
#include "session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>
#include "base/mem.h"
#include "session/chunk_priv.h"
#include "session/codec_priv.h"
#include "session/output_priv.h"

#define WINDOW_LOG_MAX 23 /* 8 MiB, a whole chunk */

struct source { /* a descriptor, or the bytes p[pos … n) when fd < 0 */
	int fd;
	const uint8_t *p;
	size_t n, pos;
	int read_errno;
};

struct reader {
	struct source src;
	const char *name;
	struct as_session_health *health;
	struct as_codec_call call;
	struct as_codec_scratch scratch;
	uint8_t *stored, *raw; /* AS_CHUNK_*_MAX at most, grown on demand */
	size_t stored_cap, raw_cap;
	ZSTD_DCtx *zstd;
	uint32_t sequence;
	uint64_t records;
};

/* Up to n bytes; fewer only at the end or after an error (src.read_errno). */
static size_t source_read(struct source *s, void *buf, size_t n)
{
	size_t done = 0;

	if (s->fd < 0) {
		done = AS_MIN(n, s->n - s->pos);
		if (done)
			memcpy(buf, s->p + s->pos, done);
		s->pos += done;
		return done;
	}
	while (done < n) {
		ssize_t k = read(s->fd, (uint8_t *)buf + done, n - done);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			s->read_errno = errno;
		if (k <= 0)
			break;
		done += (size_t)k;
	}
	s->pos += done;
	return done;
}

/* Bytes behind the current position, where that can be known without reading them. */
static uint64_t source_left(const struct source *s)
{
	struct stat st;

	if (s->fd < 0)
		return s->n - s->pos;
	if (fstat(s->fd, &st) < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size < s->pos)
		return 0;
	return (uint64_t)st.st_size - s->pos;
}

static void grow(uint8_t **buf, size_t *cap, size_t need)
{
	if (*buf && need <= *cap)
		return;
	free(*buf);
	*buf = as_xmalloc(need + 1);
	*cap = need;
}

static int read_file_head(struct reader *r, struct as_error *err)
{
	uint8_t head[AS_FILE_HEAD_BYTES];
	size_t n = source_read(&r->src, head, sizeof head);

	r->health->bytes_read += n;
	if (r->src.read_errno)
		return as_fail(err, AS_E_IO, r->src.read_errno, "cannot read '%s': %s", r->name,
			       strerror(r->src.read_errno));
	if (n == 0)
		return as_fail(err, AS_E_FORMAT, 0, "'%s' is empty: nothing was recorded",
			       r->name);
	if (n < AS_SESSION_MAGIC_LEN ||
	    memcmp(head, AS_SESSION_MAGIC, AS_SESSION_MAGIC_LEN) != 0)
		return as_fail(err, AS_E_FORMAT, 0, "'%s' is no assay session", r->name);
	if (n < sizeof head) {
		r->health->truncated = true;
		r->health->bytes_missing = sizeof head - n;
		return AS_OK;
	}
	if (as_get_le32(head + 8) != AS_SESSION_VERSION || as_get_le32(head + 12) != 0)
		return as_fail(err, AS_E_UNSUPPORTED, 0,
			       "'%s' was written by a newer assay (format %u, features 0x%x): "
			       "this one reads format %u",
			       r->name, as_get_le32(head + 8), as_get_le32(head + 12),
			       AS_SESSION_VERSION);
	return AS_OK;
}

static bool unpack(struct reader *r, const struct as_chunk_head *h, struct as_rd *ret)
{
	size_t n;

	if (!(h->flags & AS_CHUNK_ZSTD)) {
		*ret = AS_RD(r->stored, h->stored_bytes);
		return h->stored_bytes == h->raw_bytes;
	}
	grow(&r->raw, &r->raw_cap, h->raw_bytes);
	n = ZSTD_decompressDCtx(r->zstd, r->raw, h->raw_bytes, r->stored, h->stored_bytes);
	*ret = AS_RD(r->raw, h->raw_bytes);
	return !ZSTD_isError(n) && n == h->raw_bytes;
}

/* Hands over the records of one chunk; negative: what a callback returned. */
static int deliver_chunk(struct reader *r, struct as_rd rd)
{
	while (as_rd_left(&rd) && !r->call.end) {
		uint64_t type = as_rd_uleb(&rd);
		uint64_t n = as_rd_uleb(&rd);
		const uint8_t *payload;
		enum as_codec_result res;

		if (rd.bad || n > as_rd_left(&rd)) {
			r->health->bad_records++;
			return AS_OK;
		}
		payload = as_rd_bytes(&rd, (size_t)n);
		res = as_codec_deliver(&r->call, type, AS_RD(payload, n));
		r->health->unknown_records += res == AS_CODEC_UNKNOWN;
		r->health->bad_records += res == AS_CODEC_BAD;
		if (r->call.status < 0)
			return r->call.status;
		r->records++;
	}
	return AS_OK;
}

static void stop_truncated(struct reader *r, uint64_t missing)
{
	r->health->truncated = true;
	r->health->bytes_missing = missing;
}

static void stop_bad(struct reader *r, uint64_t taken)
{
	r->health->bad_chunks++;
	r->health->bytes_missing = taken + source_left(&r->src);
}

/* 1: one more chunk was delivered; 0: the end, of whatever kind; negative: a callback's status. */
static int read_chunk(struct reader *r)
{
	uint8_t head[AS_CHUNK_HEAD_BYTES];
	struct as_chunk_head h;
	struct as_rd rd;
	size_t n = source_read(&r->src, head, sizeof head);
	int status;

	if (n == 0)
		return 0;
	if (n < sizeof head) {
		stop_truncated(r, sizeof head - n);
		return 0;
	}
	if (!as_chunk_get_head(head, &h)) {
		stop_bad(r, n);
		return 0;
	}
	grow(&r->stored, &r->stored_cap, h.stored_bytes);
	n = source_read(&r->src, r->stored, h.stored_bytes);
	if (n < h.stored_bytes) {
		stop_truncated(r, h.stored_bytes - n);
		return 0;
	}
	if (h.sequence != r->sequence ||
	    as_chunk_crc(head, r->stored, h.stored_bytes) != h.crc || !unpack(r, &h, &rd)) {
		stop_bad(r, sizeof head + n);
		return 0;
	}
	r->sequence++;
	r->health->chunks++;
	r->health->bytes_read += sizeof head + n;
	r->call.state = (struct as_codec_state){.time_ns = h.base_ns};
	status = deliver_chunk(r, rd);
	if (status < 0)
		return status;
	return !r->call.end;
}

static int read_all(struct reader *r, struct as_error *err)
{
	int status = read_file_head(r, err);

	if (status < 0 || r->health->truncated)
		return status;
	r->zstd = ZSTD_createDCtx();
	if (!r->zstd)
		as_oom();
	ZSTD_DCtx_setParameter(r->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
	do {
		status = read_chunk(r);
	} while (status > 0);
	r->health->complete = r->call.end && r->call.end_records + 1 == r->records;
	ZSTD_freeDCtx(r->zstd);
	free(r->stored);
	free(r->raw);
	as_vec_clear(&r->scratch.list);
	if (status < 0)
		return status;
	if (r->src.read_errno)
		return as_fail(err, AS_E_IO, r->src.read_errno, "cannot read '%s': %s", r->name,
			       strerror(r->src.read_errno));
	return AS_OK;
}

static int run(struct reader *r, const struct as_record_sink *sink,
	       struct as_session_health *health, struct as_error *err)
{
	struct as_session_health local = {0};
	int status;

	r->health = &local;
	r->call.sink = sink;
	r->call.scratch = &r->scratch;
	status = read_all(r, err);
	if (health)
		*health = local;
	return status;
}

static int cannot_open(const char *path, struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *partial = as_xasprintf("%s.partial", path);
	int e = errno;
	enum as_status status = e == ENOENT   ? AS_E_NOTFOUND
				: e == EACCES ? AS_E_ACCESS
					      : AS_E_IO;

	if (e == ENOENT && access(partial, R_OK) == 0)
		return as_fail(err, status, e,
			       "cannot open '%s': %s"
			       "\n  there is an unfinished recording: assay report %s",
			       path, strerror(e), partial);
	return as_fail(err, status, e, "cannot open '%s': %s", path, strerror(e));
}

int as_session_read(const char *path, const struct as_record_sink *sink,
		    struct as_session_health *health, struct as_error *err)
{
	bool is_stdin = strcmp(path, "-") == 0;
	struct reader r = {.name = is_stdin ? "standard input" : path, .src.fd = STDIN_FILENO};
	int status;

	if (!is_stdin) {
		r.src.fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (r.src.fd < 0)
			return cannot_open(path, err);
	}
	status = run(&r, sink, health, err);
	if (!is_stdin)
		close(r.src.fd);
	return status;
}

int as_session_read_mem(const void *p, size_t n, const struct as_record_sink *sink,
			struct as_session_health *health, struct as_error *err)
{
	struct reader r = {.name = "(memory)", .src = {.fd = -1, .p = p, .n = n}};

	return run(&r, sink, health, err);
}
