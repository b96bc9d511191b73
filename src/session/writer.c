/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Session writer: records collect in `raw` and leave as one chunk, compressed and written with
 * one write(2), when they are CHUNK_NS old or CHUNK_BYTES long. There is no fsync before the
 * end: what was written survives the death of this process without it, and it could block for
 * seconds.
 */
#include "session/session.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include "base/map.h"
#include "base/mem.h"
#include "base/sys.h"
#include "session/chunk_priv.h"
#include "session/codec_priv.h"
#include "session/output_priv.h"

#define CHUNK_BYTES     (256u << 10)
/* Ticks come four times a second: 0.75 s + a tick keeps a chunk within the promised second. */
#define CHUNK_NS        750000000ull
/* On chunks of recordings level 2 is 4 to 8 % smaller than 1 at the same speed (250 MB/s); 3 gains
 * 1 to 3 % more for twice the time. */
#define ZSTD_LEVEL      2
/* On rows of memory 15 % smaller than 2, at 110 MB/s; 9 gains half a per cent more. */
#define ZSTD_LEVEL_WELL 7

struct as_session_writer {
	struct as_output out;
	struct as_buf raw, packed;
	struct as_codec_state state;
	struct as_intern strings;
	ZSTD_CCtx *zstd;
	uint64_t opened_ns; /* when the open chunk got its first record; 0: it is empty */
	uint64_t records;
	uint32_t sequence;
	bool finished;
	struct as_error err; /* the first failure; AS_OK: none */
};

static void put_file_header(struct as_buf *b)
{
	as_buf_add(b, AS_SESSION_MAGIC, AS_SESSION_MAGIC_LEN);
	as_buf_le32(b, AS_SESSION_VERSION);
	as_buf_le32(b, 0); /* must understand */
	as_buf_le32(b, 0); /* may ignore */
	as_buf_le32(b, 0);
}

int as_session_writer_open(const char *path, struct as_session_writer **ret,
			   struct as_error *err)
{
	struct as_session_writer *w = as_xcalloc(1, sizeof *w);
	int r = as_output_open(path, &w->out, err);

	if (r < 0) {
		free(w);
		return r;
	}
	w->zstd = ZSTD_createCCtx();
	if (!w->zstd)
		as_oom();
	ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
	as_intern(&w->strings, "", 0);
	put_file_header(&w->packed);
	r = as_output_write(&w->out, w->packed.p, w->packed.len, err);
	as_buf_reset(&w->packed);
	if (r < 0) {
		as_session_writer_close(w);
		return r;
	}
	*ret = w;
	return AS_OK;
}

/* Packs `raw` behind a chunk header into `packed`. Stored as it is when packing gains nothing. */
static void pack_chunk(struct as_session_writer *w)
{
	struct as_buf *b = &w->packed;
	size_t room = ZSTD_compressBound(w->raw.len);
	struct as_chunk_head head = {
		.raw_bytes = (uint32_t)w->raw.len,
		.sequence = w->sequence++,
		.base_ns = w->state.time_ns,
		.flags = AS_CHUNK_ZSTD,
	};
	size_t n;

	as_buf_reset(b);
	as_buf_reserve(b, AS_CHUNK_HEAD_BYTES + room + 1);
	n = ZSTD_compress2(w->zstd, b->p + AS_CHUNK_HEAD_BYTES, room, w->raw.p, w->raw.len);
	if (ZSTD_isError(n) || n >= w->raw.len) {
		n = w->raw.len;
		memcpy(b->p + AS_CHUNK_HEAD_BYTES, w->raw.p, n);
		head.flags = 0;
	}
	head.stored_bytes = (uint32_t)n;
	as_chunk_put_head(&head, (uint8_t *)b->p);
	b->len = AS_CHUNK_HEAD_BYTES + n;
	b->p[b->len] = 0;
}

void as_session_writer_pack_well(struct as_session_writer *w)
{
	ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL_WELL);
}

void as_session_writer_flush(struct as_session_writer *w)
{
	if (w->raw.len == 0)
		return;
	if (w->err.status == AS_OK) {
		pack_chunk(w);
		(void)as_output_write(&w->out, w->packed.p, w->packed.len, &w->err);
	}
	as_buf_reset(&w->raw);
	w->state = (struct as_codec_state){0};
	w->opened_ns = 0;
}

static bool admit(struct as_session_writer *w)
{
	if (w->err.status != AS_OK || w->finished)
		return false;
	if (w->opened_ns == 0)
		w->opened_ns = as_now_ns();
	w->records++;
	return true;
}

#define R(id, NAME, name, fields)                                                              \
	void as_write_##name(struct as_session_writer *w, const struct as_rec_##name *r)       \
	{                                                                                      \
		if (!admit(w))                                                                 \
			return;                                                                \
		as_codec_put_##name(&w->raw, r, &w->state);                                    \
		if (w->raw.len >= CHUNK_BYTES)                                                 \
			as_session_writer_flush(w);                                            \
	}
#include "session/records.def"
#undef R

uint32_t as_session_string(struct as_session_writer *w, const char *p, size_t n)
{
	size_t before = w->strings.str.n;
	uint32_t id;

	n = AS_MIN(n, (size_t)AS_CODEC_TEXT_MAX);
	id = as_intern(&w->strings, p, n);
	if (id == before)
		as_write_string(w, &(struct as_rec_string){.id = id, .text = {p, n}});
	return id;
}

void as_session_writer_tick(struct as_session_writer *w, uint64_t now_ns)
{
	if (w->opened_ns && now_ns >= w->opened_ns + CHUNK_NS)
		as_session_writer_flush(w);
}

int as_session_writer_status(const struct as_session_writer *w, struct as_error *err)
{
	if (w->err.status != AS_OK && err)
		*err = w->err;
	return w->err.status;
}

uint64_t as_session_writer_bytes(const struct as_session_writer *w)
{
	return w->out.good_bytes;
}

int as_session_writer_divert(struct as_session_writer *w, struct as_error *err)
{
	int r = as_output_divert(&w->out, err);

	return r < 0 ? r : w->out.fd;
}

int as_session_writer_finish(struct as_session_writer *w, struct as_error *err)
{
	if (w->finished)
		return as_session_writer_status(w, err);
	as_write_end(w, &(struct as_rec_end){.records = w->records});
	as_session_writer_flush(w);
	w->finished = true;
	if (w->err.status == AS_OK)
		(void)as_output_commit(&w->out, &w->err);
	return as_session_writer_status(w, err);
}

void as_session_writer_close(struct as_session_writer *w)
{
	if (!w)
		return;
	if (!w->finished)
		as_session_writer_flush(w);
	as_output_close(&w->out);
	as_buf_clear(&w->raw);
	as_buf_clear(&w->packed);
	as_intern_clear(&w->strings);
	ZSTD_freeCCtx(w->zstd);
	free(w);
}
