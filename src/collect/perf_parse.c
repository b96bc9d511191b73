/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Records of perf rings. Layouts: perf_event_open(2), for the sample types perf_event.c asks for. */
#include "collect/perf_event.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "collect/perf_regs_priv.h"

/* sample_id of non-sample records: pid tid, time, stream id, cpu res, identifier */
#define TRAILER         40
/* in samples: identifier, ip, pid tid, time, stream id, cpu res, period */
#define SAMPLE_TIME_OFF (8 + 8 + 8 + 8)

uint64_t as_perf_record_time(const void *p, size_t n)
{
	const struct perf_event_header *h = p;
	const uint8_t *b = p;

	if (n < sizeof *h + TRAILER)
		return 0;
	if (h->type == PERF_RECORD_SAMPLE)
		return as_get_le64(b + SAMPLE_TIME_OFF);
	return as_get_le64(b + n - TRAILER + 8);
}

static void parse_regs(struct as_rd *r, struct as_perf_rec *ret)
{
	uint64_t abi = as_rd_u64(r);

	memset(&ret->regs, 0, sizeof ret->regs);
	ret->has_regs = false;
	if (abi == PERF_SAMPLE_REGS_ABI_NONE)
		return;
	for (size_t i = 0; i < AS_PERF_NREGS; i++) {
		unsigned dwarf = as_perf_reg_dwarf[i];

		ret->regs.r[dwarf] = as_rd_u64(r);
		ret->regs.valid |= 1ull << dwarf;
	}
	ret->has_regs = abi == PERF_SAMPLE_REGS_ABI_64;
}

static void parse_stack(struct as_rd *r, struct as_perf_rec *ret)
{
	uint64_t size = as_rd_u64(r), dyn;

	ret->stack = NULL;
	ret->nstack = 0;
	ret->stack_asked = (size_t)size;
	if (!size)
		return;
	ret->stack = as_rd_bytes(r, (size_t)size);
	dyn = as_rd_u64(r);
	ret->nstack = (size_t)AS_MIN(dyn, size);
	if (!ret->stack)
		ret->nstack = 0;
}

static void parse_sample(struct as_rd *r, bool callchain, struct as_perf_rec *ret)
{
	ret->id = as_rd_u64(r);
	ret->ip = as_rd_u64(r);
	ret->pid = (pid_t)as_rd_u32(r);
	ret->tid = (pid_t)as_rd_u32(r);
	ret->time_ns = as_rd_u64(r);
	ret->stream_id = as_rd_u64(r);
	ret->cpu = as_rd_u32(r);
	as_rd_skip(r, 4);
	ret->period = as_rd_u64(r);
	ret->nips = 0;
	ret->ips = NULL;
	if (callchain) {
		uint64_t nips = as_rd_u64(r);

		if (nips > as_rd_left(r) / 8) {
			r->bad = true;
			return;
		}
		ret->nips = (size_t)nips;
		ret->ips = as_rd_bytes(r, ret->nips * 8);
	}
	parse_regs(r, ret);
	parse_stack(r, ret);
}

static void parse_mmap(struct as_rd *r, struct as_perf_rec *ret)
{
	ret->pid = (pid_t)as_rd_u32(r);
	ret->tid = (pid_t)as_rd_u32(r);
	ret->start = as_rd_u64(r);
	ret->len = as_rd_u64(r);
	ret->off = as_rd_u64(r);
	ret->maj = as_rd_u32(r);
	ret->min = as_rd_u32(r);
	ret->ino = as_rd_u64(r);
	as_rd_skip(r, 8); /* inode generation */
	ret->prot = as_rd_u32(r);
	as_rd_skip(r, 4); /* flags */
	ret->text = as_rd_cstr(r);
}

static void parse_task(struct as_rd *r, struct as_perf_rec *ret)
{
	ret->pid = (pid_t)as_rd_u32(r);
	ret->ppid = (pid_t)as_rd_u32(r);
	ret->tid = (pid_t)as_rd_u32(r);
	ret->ptid = (pid_t)as_rd_u32(r);
}

static void parse_trailer(const uint8_t *end, struct as_perf_rec *ret)
{
	const uint8_t *t = end - TRAILER;

	ret->pid = (pid_t)as_get_le32(t);
	ret->tid = (pid_t)as_get_le32(t + 4);
	ret->time_ns = as_get_le64(t + 8);
	ret->stream_id = as_get_le64(t + 16);
	ret->cpu = as_get_le32(t + 24);
	ret->id = as_get_le64(t + 32);
}

static void parse_side(struct as_rd *r, const struct perf_event_header *h,
		       struct as_perf_rec *ret)
{
	switch (h->type) {
	case PERF_RECORD_MMAP2:
		ret->kind = AS_PERF_MMAP;
		parse_mmap(r, ret);
		break;
	case PERF_RECORD_COMM:
		ret->kind = AS_PERF_COMM;
		ret->exec = h->misc & PERF_RECORD_MISC_COMM_EXEC;
		ret->pid = (pid_t)as_rd_u32(r);
		ret->tid = (pid_t)as_rd_u32(r);
		ret->text = as_rd_cstr(r);
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		ret->kind = h->type == PERF_RECORD_FORK ? AS_PERF_FORK : AS_PERF_EXIT;
		parse_task(r, ret);
		break;
	case PERF_RECORD_LOST:
		ret->kind = AS_PERF_LOST;
		as_rd_skip(r, 8);
		ret->count = as_rd_u64(r);
		break;
	case PERF_RECORD_LOST_SAMPLES:
		ret->kind = AS_PERF_LOST_SAMPLES;
		ret->count = as_rd_u64(r);
		break;
	case PERF_RECORD_THROTTLE:
		ret->kind = AS_PERF_THROTTLE;
		ret->count = 1;
		break;
	default:
		ret->kind = AS_PERF_OTHER;
		break;
	}
}

int as_perf_parse(const void *p, size_t n, bool callchain, struct as_perf_rec *ret)
{
	const struct perf_event_header *h = p;
	struct as_rd r = AS_RD(p, n);

	if (n < sizeof *h || h->size != n)
		return AS_E_FORMAT;
	as_rd_skip(&r, sizeof *h);
	ret->kind = AS_PERF_OTHER;
	ret->kernel_mode = (h->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
	ret->exec = false;
	ret->text = "";
	if (h->type == PERF_RECORD_SAMPLE) {
		ret->kind = AS_PERF_SAMPLE;
		parse_sample(&r, callchain, ret);
		return r.bad ? AS_E_FORMAT : 0;
	}
	if (n < sizeof *h + TRAILER)
		return AS_E_FORMAT;
	r.end -= TRAILER;
	parse_trailer((const uint8_t *)p + n, ret);
	parse_side(&r, h, ret);
	return r.bad ? AS_E_FORMAT : 0;
}
