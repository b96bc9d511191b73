/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One event:
 *
 *	head	: kind | flags below
 *	uleb	: TIME: ns since the event before
 *	uleb	: THREAD: its id; else that of the event before
 *	uleb	: STACK: difference to that of the last event that has one; else it is the same
 *	uleb	: old; REMAP: uleb its size
 *	uleb	: address, where it did not fail; uleb size
 *
 * Addresses are differences to the last one that was told, all others to 0 in the beginning. Differences
 * are signed: twice their size, less 1 where negative. Blocks lie at multiples of 16: so do differences,
 * and a 16th of them is stored, but where FINE says that one of the event does not.
 */
#include "session/log.h"

#include "base/mem.h"

#define RECORD_BYTES (32u << 10)
#define EVENT_BYTES  96u /* at most */

enum {
	KIND = 7,
	TIME = 8,
	THREAD = 16,
	STACK = 32,
	FINE = 64,
	FAILED = 128,
};

static uint64_t fold_sign(uint64_t difference)
{
	return difference << 1 ^ (0 - (difference >> 63));
}

static uint64_t unfold_sign(uint64_t n)
{
	return n >> 1 ^ (0 - (n & 1));
}

/* ---- writing ---- */

static uint8_t *put_u(uint8_t *p, uint64_t v)
{
	while (v >= 0x80) {
		*p++ = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	*p++ = (uint8_t)v;
	return p;
}

static uint8_t *put_address(uint8_t *p, struct as_log_event *last, uint64_t address,
			    uint8_t head)
{
	uint64_t difference = address - last->address;

	last->address = address;
	if (!(head & FINE)) /* arithmetically */
		difference = (uint64_t)((int64_t)difference >> 4);
	return put_u(p, fold_sign(difference));
}

static uint8_t head_of(const struct as_log_event *last, const struct as_log_event *e)
{
	uint8_t head = (uint8_t)e->kind;
	bool has_old = as_log_has_old(e->kind);
	bool failed = !e->address && as_log_has_stack(e->kind);
	uint64_t first = has_old ? e->old : e->address;

	if (failed)
		head |= FAILED;
	if (e->time_ns != last->time_ns)
		head |= TIME;
	if (e->thread != last->thread)
		head |= THREAD;
	if (as_log_has_stack(e->kind) && e->stack != last->stack)
		head |= STACK;
	if ((has_old || !failed) && (first - last->address) & 15)
		head |= FINE;
	if (has_old && !failed && (e->address - e->old) & 15)
		head |= FINE;
	return head;
}

static uint8_t *put_event(uint8_t *p, struct as_log_event *last, const struct as_log_event *e)
{
	uint8_t head = head_of(last, e);

	*p++ = head;
	if (head & TIME)
		p = put_u(p, e->time_ns - last->time_ns);
	if (head & THREAD)
		p = put_u(p, e->thread);
	if (head & STACK) {
		p = put_u(p, fold_sign((uint64_t)e->stack - last->stack));
		last->stack = e->stack;
	}
	last->time_ns = e->time_ns;
	last->thread = e->thread;
	if (as_log_has_old(e->kind))
		p = put_address(p, last, e->old, head);
	if (e->kind == AS_LOG_REMAP)
		p = put_u(p, e->old_bytes);
	if (!(head & FAILED))
		p = put_address(p, last, e->address, head);
	if (as_log_has_size(e->kind))
		p = put_u(p, e->size_bytes);
	return p;
}

void as_log_put(struct as_log_out *o, struct as_session_writer *w, const struct as_log_event *e)
{
	uint8_t *p;

	if (!o->bytes.len) {
		o->last = (struct as_log_event){.time_ns = e->time_ns};
		o->begin_ns = e->time_ns;
	}
	as_buf_reserve(&o->bytes, EVENT_BYTES + 1);
	p = put_event((uint8_t *)o->bytes.p + o->bytes.len, &o->last, e);
	o->bytes.len = (size_t)(p - (uint8_t *)o->bytes.p);
	o->bytes.p[o->bytes.len] = 0;
	if (o->bytes.len >= RECORD_BYTES)
		as_log_flush(o, w);
}

void as_log_flush(struct as_log_out *o, struct as_session_writer *w)
{
	if (!o->bytes.len)
		return;
	as_write_heap_events(
		w, &(struct as_rec_heap_events){.time_ns = o->begin_ns,
						.events = {o->bytes.p, o->bytes.len}});
	as_buf_reset(&o->bytes);
}

void as_log_clear(struct as_log_out *o)
{
	as_buf_clear(&o->bytes);
}

/* ---- reading ---- */

void as_log_begin(struct as_log_in *in, const struct as_rec_heap_events *r)
{
	in->rd = AS_RD(r->events.p, r->events.n);
	in->last = (struct as_log_event){.time_ns = r->time_ns};
}

static uint64_t get_address(struct as_log_in *in, uint8_t head)
{
	uint64_t difference = unfold_sign(as_rd_uleb(&in->rd));

	in->last.address += head & FINE ? difference : difference << 4;
	return in->last.address;
}

/* Ids have 32 bits. */
static uint32_t get_id(struct as_log_in *in, uint64_t id)
{
	in->rd.bad |= id > UINT32_MAX;
	return (uint32_t)id;
}

bool as_log_next(struct as_log_in *in, struct as_log_event *ret)
{
	struct as_log_event *last = &in->last;
	uint8_t head;

	if (in->rd.bad || !as_rd_left(&in->rd))
		return false;
	head = as_rd_u8(&in->rd);
	*ret = (struct as_log_event){.kind = (enum as_log_kind)(head & KIND)};
	if (head & TIME)
		last->time_ns += as_rd_uleb(&in->rd);
	if (head & THREAD)
		last->thread = get_id(in, as_rd_uleb(&in->rd));
	if (head & STACK)
		last->stack = get_id(in, last->stack + unfold_sign(as_rd_uleb(&in->rd)));
	ret->time_ns = last->time_ns;
	ret->thread = last->thread;
	ret->stack = as_log_has_stack(ret->kind) ? last->stack : 0;
	if (as_log_has_old(ret->kind))
		ret->old = get_address(in, head);
	if (ret->kind == AS_LOG_REMAP)
		ret->old_bytes = as_rd_uleb(&in->rd);
	if (!(head & FAILED))
		ret->address = get_address(in, head);
	if (as_log_has_size(ret->kind))
		ret->size_bytes = as_rd_uleb(&in->rd);
	return !in->rd.bad;
}
