/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Record codec: every function here is an expansion of records.def. */
#include "session/codec_priv.h"

#include <string.h>

#define ULEB_MAX      10u
#define RECORD_HEAD   (2u * ULEB_MAX)
#define IS(f, name)   (__builtin_strcmp(#f, name) == 0)
/* Samples of other CPUs may be older than the first of their chunk by a drain interval. */
#define BASE_SLACK_NS 250000000ull

/* ---- encoding: the caller has reserved the room ---- */

static uint8_t *put_u(uint8_t *p, uint64_t v)
{
	while (v >= 0x80) {
		*p++ = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	*p++ = (uint8_t)v;
	return p;
}

static __attribute__((unused)) uint8_t *put_s(uint8_t *p, int64_t v)
{
	for (;;) {
		uint8_t byte = (uint8_t)v & 0x7f;

		v >>= 7;
		if ((v == 0 && !(byte & 0x40)) || (v == -1 && (byte & 0x40))) {
			*p++ = byte;
			return p;
		}
		*p++ = byte | 0x80;
	}
}

static size_t text_len(const struct as_str *s)
{
	return AS_MIN(s->n, (size_t)AS_CODEC_TEXT_MAX);
}

static size_t list_len(const struct as_u64s *l)
{
	return AS_MIN(l->n, (size_t)AS_CODEC_LIST_MAX);
}

static uint8_t *put_t(uint8_t *p, const struct as_str *s)
{
	size_t n = text_len(s);

	p = put_u(p, n);
	if (n)
		memcpy(p, s->p, n);
	return p + n;
}

static uint8_t *put_v(uint8_t *p, const struct as_u64s *l)
{
	size_t n = list_len(l);

	p = put_u(p, n);
	for (size_t i = 0; i < n; i++)
		p = put_u(p, l->v[i]);
	return p;
}

static uint64_t time_to_rel(struct as_codec_state *s, uint64_t time_ns)
{
	if (!s->time_set) {
		s->time_set = true;
		s->time_ns = time_ns - AS_MIN(time_ns, BASE_SLACK_NS);
	}
	return time_ns - s->time_ns;
}

/* Signed, the sign in the lowest bit. */
static uint64_t stack_to_rel(struct as_codec_state *s, uint64_t stack)
{
	uint64_t rel = stack - s->last_stack;

	s->last_stack = stack;
	return rel << 1 ^ (0 - (rel >> 63));
}

static uint64_t id_to_rel(struct as_codec_state *s, unsigned type, uint64_t id)
{
	uint64_t rel = id - s->next_id[type];

	s->next_id[type] = id + 1;
	return rel;
}

/* Leaves one byte for the length, which is enough for nearly every record. */
static uint8_t *begin(struct as_buf *b, size_t room, uint64_t type, size_t *ret_start)
{
	uint8_t *p;

	as_buf_reserve(b, RECORD_HEAD + room + 1);
	p = put_u((uint8_t *)b->p + b->len, type) + 1;
	*ret_start = (size_t)(p - (uint8_t *)b->p);
	return p;
}

static void finish(struct as_buf *b, size_t start, const uint8_t *end)
{
	uint8_t *payload = (uint8_t *)b->p + start;
	size_t n = (size_t)(end - payload);
	uint8_t len[ULEB_MAX];
	size_t nlen = (size_t)(put_u(len, n) - len);

	if (nlen > 1)
		memmove(payload - 1 + nlen, payload, n);
	memcpy(payload - 1, len, nlen);
	b->len = start - 1 + nlen + n;
	b->p[b->len] = 0;
}

/* size_<name>: an upper bound of the payload's bytes */
#define U(f) +ULEB_MAX
#define S(f) +ULEB_MAX
#define T(f) +ULEB_MAX + text_len(&r->f)
#define V(f) +ULEB_MAX *(1 + list_len(&r->f))
#define R(id, NAME, name, fields)                                                              \
	static size_t size_##name(const struct as_rec_##name *r)                               \
	{                                                                                      \
		(void)r;                                                                       \
		return 0 fields;                                                               \
	}
#include "session/records.def"
#undef R
#undef U
#undef S
#undef T
#undef V

/* end: behind the last field that is not 0 on disk. A parent of 0 is: what is not there reads as none. */
#define U(f)                                                                                   \
	own_id = IS(f, "id") ? r->f : own_id;                                                  \
	v = IS(f, "time_rel")    ? time_to_rel(s, r->f)                                        \
	    : IS(f, "id")        ? id_to_rel(s, type, r->f)                                    \
	    : IS(f, "stack_rel") ? stack_to_rel(s, r->f)                                       \
	    : IS(f, "parent")    ? own_id + 1 - r->f                                           \
				 : r->f;                                                          \
	p = put_u(p, v);                                                                       \
	end = v || IS(f, "parent") ? p : end;
#define S(f)                                                                                   \
	p = put_s(p, r->f);                                                                    \
	end = r->f ? p : end;
#define T(f)                                                                                   \
	p = put_t(p, &r->f);                                                                   \
	end = r->f.n ? p : end;
#define V(f)                                                                                   \
	p = put_v(p, &r->f);                                                                   \
	end = r->f.n ? p : end;
#define R(id, NAME, name, fields)                                                              \
	void as_codec_put_##name(struct as_buf *b, const struct as_rec_##name *r,              \
				 struct as_codec_state *s)                                     \
	{                                                                                      \
		const unsigned type = id;                                                      \
		uint64_t own_id = 0, v = 0;                                                    \
		size_t start;                                                                  \
		uint8_t *p = begin(b, size_##name(r), id, &start), *end = p;                   \
                                                                                               \
		_Static_assert(id < AS_CODEC_TYPES, "type");                                   \
		(void)s, (void)type, (void)own_id, (void)v;                                    \
		fields finish(b, start, end);                                                  \
	}
#include "session/records.def"
#undef R
#undef U
#undef S
#undef T
#undef V

/* ---- decoding ---- */

/* At the end of the payload a field reads as 0: an older writer did not know it. */
static inline uint64_t get_u(struct as_rd *rd)
{
	if (rd->p == rd->end)
		return 0;
	if (!(*rd->p & 0x80))
		return *rd->p++;
	return as_rd_uleb(rd);
}

static inline uint64_t get_id(struct as_rd *rd, struct as_codec_state *s, unsigned type)
{
	uint64_t id = get_u(rd) + s->next_id[type];

	s->next_id[type] = id + 1;
	return id;
}

static inline uint64_t get_stack(struct as_rd *rd, struct as_codec_state *s)
{
	uint64_t n = get_u(rd);

	s->last_stack += n >> 1 ^ (0 - (n & 1));
	return s->last_stack;
}

static inline uint64_t get_parent(struct as_rd *rd, uint64_t id)
{
	return rd->p == rd->end ? 0 : id + 1 - get_u(rd);
}

static __attribute__((unused)) int64_t get_s(struct as_rd *rd)
{
	return rd->p == rd->end ? 0 : as_rd_sleb(rd);
}

static struct as_str get_t(struct as_rd *rd)
{
	uint64_t n = get_u(rd);
	const uint8_t *p;

	if (n == 0)
		return (struct as_str){"", 0};
	if (n > as_rd_left(rd)) {
		rd->bad = true;
		return (struct as_str){"", 0};
	}
	p = as_rd_bytes(rd, (size_t)n);
	return (struct as_str){(const char *)p, (size_t)n};
}

/* Each number takes a byte at least, so the list is never longer than what is left; the scratch
 * vector has been given room for a whole payload and does not move. */
static struct as_u64s get_v(struct as_rd *rd, struct as_codec_scratch *s)
{
	uint64_t n = get_u(rd);
	uint64_t *v = s->list.v + s->list.n;

	if (n > as_rd_left(rd)) {
		rd->bad = true;
		return (struct as_u64s){NULL, 0};
	}
	for (uint64_t i = 0; i < n; i++)
		s->list.v[s->list.n++] = get_u(rd);
	return (struct as_u64s){v, (size_t)n};
}

static uint64_t end_count(const struct as_rec_end *r)
{
	return r->records;
}

#define U(f)                                                                                   \
	rec.f = IS(f, "time_rel")    ? get_u(&rd) + c->state.time_ns                           \
		: IS(f, "id")        ? (own_id = get_id(&rd, &c->state, type))                 \
		: IS(f, "stack_rel") ? get_stack(&rd, &c->state)                               \
		: IS(f, "parent")    ? get_parent(&rd, own_id)                                 \
				     : get_u(&rd);
#define S(f) rec.f = get_s(&rd);
#define T(f) rec.f = get_t(&rd);
#define V(f)                                                                                   \
	as_vec_reserve(&c->scratch->list, whole + 1);                                          \
	rec.f = get_v(&rd, c->scratch);
#define R(id, NAME, name, fields)                                                              \
	static enum as_codec_result deliver_##name(struct as_codec_call *c, struct as_rd rd)   \
	{                                                                                      \
		const unsigned type = id;                                                      \
		uint64_t own_id = 0;                                                           \
		struct as_rec_##name rec;                                                      \
		size_t whole = as_rd_left(&rd);                                                \
                                                                                               \
		(void)whole, (void)type, (void)own_id;                                         \
		c->scratch->list.n = 0;                                                        \
		fields if (rd.bad) return AS_CODEC_BAD;                                        \
		if (id == AS_REC_END) {                                                        \
			c->end = true;                                                         \
			c->end_records = end_count((const void *)&rec);                        \
		}                                                                              \
		if (c->sink->name)                                                             \
			c->status = c->sink->name(c->sink->ctx, &rec);                         \
		return AS_CODEC_OK;                                                            \
	}
#include "session/records.def"
#undef R
#undef U
#undef S
#undef T
#undef V

enum as_codec_result as_codec_deliver(struct as_codec_call *c, uint64_t type, struct as_rd rd)
{
	switch (type) {
#define R(id, NAME, name, fields)                                                              \
	case id:                                                                               \
		return deliver_##name(c, rd);
#include "session/records.def"
#undef R
	default:
		return AS_CODEC_UNKNOWN;
	}
}
