/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Rows for large code without CFI that keeps frame pointers (browsers and other programs built
 * with -fno-omit-frame-pointer and without unwind tables), some 30 times faster than reading each
 * instruction. A function that begins with push %rbp; mov %rsp,%rbp needs three rows, and two for
 * each way out of it: those are found by their bytes. What looks like a way out but lies inside an
 * instruction does no harm, since the frame's row stands again right behind it.
 *
 * The code is cut into units where padding ends at a multiple of 16 or such a prologue stands
 * behind a way out. Units without the prologue at their start, and those with a second one
 * inside (a frame built late), are read instruction by instruction (scan.c).
 */
#include "unwind/arch_priv.h"
#include "unwind/builder_priv.h"
#include "unwind/x86_64/insn_priv.h"
#include "base/mem.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define MIN_BYTES      (64u << 10) /* below, reading everything is fast enough */
#define MAX_UNIT_BYTES (1u << 20)
#define PASS_BYTES     (16u << 20)
#define SAMPLES        32u
#define SAMPLE_BYTES   2048u
/* At least so many prologues in the samples, one in 2 KiB, make code "with frame pointers". */
#define SAMPLE_MIN     32u

#define PIECE_LOOKAHEAD 24u /* instructions */

#define BLOCK                                                                                  \
	16u /* of code, looked through at once: [svma, svma + 16), svma a multiple of 16 */

struct way_out {
	uint32_t at; /* of the instruction behind pop %rbp or leave */
	uint32_t len;
};

struct frames {
	struct as_ut_builder *b;
	uint64_t svma;
	const uint8_t *code;
	size_t n;
	uint32_t rule_entry, rule_pushed, rule_body;
	size_t exact_from, exact_to; /* units that wait to be read instruction by instruction */
	size_t split;                /* where a unit that was too long goes on */
	AS_VEC(struct way_out) out;
};

struct unit {
	size_t end;
	bool framed; /* begins with the prologue */
	bool exact;
};

static const uint8_t prologue[] = {0x55, 0x48, 0x89, 0xe5};
static const uint8_t ud2[] = {0x0f, 0x0b};
static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};

static bool has(const struct frames *f, size_t at, const uint8_t *bytes, size_t n)
{
	return at < f->n && f->n - at >= n && !memcmp(f->code + at, bytes, n);
}

/* The offset of the prologue of a function that begins at `at`; SIZE_MAX: it has none. */
static size_t prologue_of(const struct frames *f, size_t at)
{
	size_t push = at + (has(f, at, endbr64, 4) ? 4 : 0);
	return has(f, push, prologue, 4) ? push : SIZE_MAX;
}

/* Do the bytes before `at` look like an instruction after which control does not go on? */
static bool ends_before(const struct frames *f, size_t at)
{
	const uint8_t *p = f->code + at;
	if (at < 8)
		return true;
	return p[-1] == 0xc3 || (p[-2] == 0x0f && p[-1] == 0x0b) || p[-5] == 0xe9 ||
	       p[-5] == 0xe8 || (p[-4] == 0x0f && p[-3] == 0xb9) || p[-2] == 0xeb ||
	       (p[-2] == 0xff && (p[-1] & 0xf8) == 0xe0) ||
	       (p[-3] == 0xff && (p[-2] & 0xf8) == 0x60);
}

/*
 * Padding with int3 ends at `at`, a multiple of 16. Traps are int3; ud2. The divisors' constants
 * end in up to eight such bytes, too (x / 5 is a multiplication by 0xcc…cd).
 */
static bool is_padded(const struct frames *f, size_t at)
{
	size_t from = at;
	while (from && f->code[from - 1] == 0xcc)
		from--;
	if (from == at || at >= f->n || f->code[at] == 0xcc || has(f, at, ud2, sizeof ud2))
		return false;
	if (at - from > 8)
		return true;
	return from && f->code[from - 1] != 0xcd && ends_before(f, from);
}

/* Does the code at `at` use its caller's frame as its own? Then it is a piece of a function. */
static bool continues_frame(const struct frames *f, size_t at)
{
	for (unsigned k = 0; k < PIECE_LOOKAHEAD && at < f->n; k++) {
		struct as_x86_insn i;
		if (!as_x86_decode(f->code + at, f->n - at, &i))
			return false;
		if (i.frame_access)
			return true;
		if ((i.kind == AS_X86_PUSH && i.reg == 6) || i.kind == AS_X86_RET ||
		    i.kind == AS_X86_JMP || i.kind == AS_X86_JMP_INDIRECT ||
		    i.kind == AS_X86_HLT)
			return false;
		at += i.len;
	}
	return false;
}

static bool is_clean_start(const struct frames *f, size_t at)
{
	const uint8_t *p = f->code + at;
	if (at < 2)
		return true;
	if (p[-1] == 0xcc || (p[-1] == 0xc3 && (p[-2] == 0x5d || p[-2] == 0xc9)))
		return true;
	/* nops, or nothing at all before an aligned function */
	return (f->svma + at) % 16 == 0 &&
	       (ends_before(f, at) || p[-1] == 0x90 || (p[-1] == 0 && p[-2] == 0));
}

/* Length of an indirect jump (FF /4), from its ModRM byte on. */
static size_t indirect_jump_length(const uint8_t *p)
{
	unsigned mod = p[0] >> 6, rm = p[0] & 7;
	if ((p[0] >> 3 & 7) != 4)
		return 0;
	size_t len = 1 + (mod != 3 && rm == 4);
	if (mod == 1)
		len += 1;
	else if (mod == 2 || (mod == 0 && (rm == 5 || (rm == 4 && (p[1] & 7) == 5))))
		len += 4;
	return len;
}

/* Is the 0x5d at p the ModRM byte of a move to or from -x(%rbp) rather than pop %rbp? */
static bool may_be_operand(const uint8_t *p)
{
	static const uint8_t ops[] = {0x88, 0x89, 0x8a, 0x8b, 0x8d, 0xb6, 0xb7, 0xbe,
				      0xbf, 0x63, 0x38, 0x39, 0x3a, 0x3b, 0x84, 0x85,
				      0x10, 0x11, 0x28, 0x29, 0x6e, 0x6f, 0x7e, 0x7f,
				      0x01, 0x03, 0x0b, 0x2b, 0x80, 0x83};
	return memchr(ops, p[-1], sizeof ops) != NULL;
}

/*
 * The length of what leaves the function at `at`, behind pop %rbp or leave: ret, or a jump to
 * another function; 0: nothing of that kind.
 */
static size_t way_out_length(const struct frames *f, size_t at)
{
	static const uint8_t vzeroupper_ret[] = {0xc5, 0xf8, 0x77, 0xc3};
	const uint8_t *p = f->code + at;
	if (f->n - at < 12)
		return *p == 0xc3;
	switch (*p) {
	case 0xc3:
		return 1;
	case 0xc2:
		return p[2] ? 0 : 3;
	case 0xc5:
		return memcmp(p, vzeroupper_ret, 4) ? 0 : 4;
	case 0xe9: {
		uint64_t to = at + 5 + (uint64_t)(int64_t)(int32_t)as_get_le32(p + 1);
		bool function = (f->svma + to) % 16 == 0;
		return function && (to < f->n || !may_be_operand(p - 1)) ? 5 : 0;
	}
	case 0xeb:
		return (f->svma + at + 2 + (uint64_t)(int8_t)p[1]) % 16 || may_be_operand(p - 1)
			       ? 0
			       : 2;
	case 0xff: {
		size_t len = may_be_operand(p - 1) ? 0 : indirect_jump_length(p + 1);
		return len ? 1 + len : 0;
	}
	case 0x41: /* jmp *%r8 and up */
		return p[1] == 0xff && (p[2] & 0xf8) == 0xe0 ? 3 : 0;
	}
	return 0;
}

/*
 * Nops from `at`, behind a way out, up to a multiple of 16 where no framed function begins: either
 * a block of the same function that jumps lead to or another function. Only reading all of it
 * can tell.
 */
static bool is_ambiguous(const struct frames *f, size_t at)
{
	struct as_x86_insn i;
	size_t from = at;
	while ((f->svma + at) % 16 && at < f->n) {
		if (!as_x86_decode(f->code + at, f->n - at, &i) || i.kind != AS_X86_NOP)
			return false;
		at += i.len;
	}
	return at > from && at < f->n && prologue_of(f, at) == SIZE_MAX;
}

/* Bits of the bytes in a block that a unit's reader must look at. */
static unsigned block_mask(const uint8_t *p, size_t n)
{
	unsigned mask = 0;
#ifdef __SSE2__
	if (n >= BLOCK + 4) {
		__m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
		__m128i next = _mm_loadu_si128((const __m128i *)(const void *)(p + 1));
		__m128i push = _mm_and_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8(0x55)),
					     _mm_cmpeq_epi8(next, _mm_set1_epi8(0x48)));
		__m128i pop = _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8(0x5d)),
					   _mm_cmpeq_epi8(v, _mm_set1_epi8((char)0xc9)));
		return (unsigned)_mm_movemask_epi8(_mm_or_si128(push, pop));
	}
#endif
	for (unsigned i = 0; i < BLOCK && i < n; i++)
		if (p[i] == 0x55 || p[i] == 0x5d || p[i] == 0xc9)
			mask |= 1u << i;
	return mask;
}

/* One byte that block_mask pointed to. True when the unit ends, at u->end. */
static bool look_at(struct frames *f, struct unit *u, size_t start, size_t at)
{
	if (f->code[at] == 0x55) {
		if (!has(f, at, prologue, 4))
			return false;
		size_t function = at - (at - start >= 4 && has(f, at - 4, endbr64, 4) ? 4 : 0);
		if (function == start)
			return false;
		if (!is_clean_start(f, function)) {
			u->exact = true;
			return false;
		}
		u->end = function;
		return true;
	}
	bool other_register = f->code[at] == 0x5d && at > start && f->code[at - 1] == 0x41;
	if (!u->framed || other_register || at + 1 >= f->n || at < start + 4)
		return false;
	size_t len = way_out_length(f, at + 1);
	if (!len)
		return false;
	as_vec_push(&f->out, (struct way_out){(uint32_t)(at + 1 - start), (uint32_t)len});
	u->exact = u->exact || is_ambiguous(f, at + 1 + len);
	return false;
}

/* The unit that begins at start. */
static struct unit next_unit(struct frames *f, size_t start)
{
	struct unit u = {.framed = prologue_of(f, start) != SIZE_MAX};
	size_t limit = AS_MIN(f->n, start + MAX_UNIT_BYTES);
	size_t head = (f->svma + start) % BLOCK;
	f->out.n = 0;
	u.exact = !u.framed;
	for (size_t at = start; at < limit; at += BLOCK - head, head = 0) {
		if (!head && at > start && f->code[at - 1] == 0xcc && is_padded(f, at) &&
		    !continues_frame(f, at)) {
			u.end = at;
			return u;
		}
		unsigned mask = block_mask(f->code + at, f->n - at) & (0xffffu >> head);
		for (; mask; mask &= mask - 1)
			if (look_at(f, &u, start, at + (unsigned)__builtin_ctz(mask)))
				return u;
	}
	u.end = f->split = limit;
	return u;
}

/* Padding keeps the rule before it. A single int3 may also begin a trap: int3; ud2. */
static bool is_padding(const struct frames *f, size_t at, size_t end)
{
	while (at < end && f->code[at] == 0xcc)
		at++;
	return at == end;
}

static void emit_unit(struct frames *f, size_t start, size_t end)
{
	size_t push = prologue_of(f, start);
	as_ut_row(f->b, f->svma + start, f->rule_entry);
	as_ut_row(f->b, f->svma + push + 1, f->rule_pushed);
	as_ut_row(f->b, f->svma + push + 4, f->rule_body);
	as_vec_foreach (o, &f->out) {
		size_t at = start + o->at, next = at + o->len;
		as_ut_row(f->b, f->svma + at, f->rule_entry);
		if (!is_padding(f, next, end))
			as_ut_row(f->b, f->svma + next, f->rule_body);
	}
}

static void flush_exact(struct frames *f)
{
	if (f->exact_to > f->exact_from)
		as_x86_scan_exact(f->b, f->svma + f->exact_from, f->code + f->exact_from,
				  f->exact_to - f->exact_from,
				  AS_X86_SCAN_FRAMES |
					  (f->exact_from && f->exact_from != f->split
						   ? AS_X86_SCAN_FUNCTION
						   : 0));
	f->exact_from = f->exact_to;
}

/* Every few KiB a prologue: frame pointers are kept. */
static bool keeps_frames(const uint8_t *code, size_t n)
{
	size_t found = 0;
	if (n < MIN_BYTES)
		return false;
	for (size_t i = 0; i < SAMPLES; i++) {
		const uint8_t *p = code + (n / SAMPLES) * i, *end = p + SAMPLE_BYTES - 4;
		while ((p = memchr(p, prologue[0], (size_t)(end - p)))) {
			found += !memcmp(p, prologue, sizeof prologue);
			if (++p >= end)
				break;
		}
	}
	return found >= SAMPLE_MIN;
}

bool as_x86_scan_frames(struct as_ut_builder *b, uint64_t svma, const uint8_t *code, size_t n)
{
	if (!keeps_frames(code, n))
		return false;
	struct frames f = {.b = b, .svma = svma, .code = code, .n = n};
	f.rule_entry = as_ut_rule(b, as_ut_w0(AS_UT_CFA_SP, AS_UT_FP_SAME, 0), 8);
	f.rule_pushed = as_ut_rule(b, as_ut_w0(AS_UT_CFA_SP, AS_UT_FP_CFA, -16), 16);
	f.rule_body = as_ut_rule(b, as_ut_w0(AS_UT_CFA_FP, AS_UT_FP_CFA, -16), 16);
	for (size_t at = 0, told = 0; at < n;) {
		struct unit u = next_unit(&f, at);
		if (u.exact) {
			if (f.exact_to != at)
				f.exact_from = at;
			f.exact_to = u.end;
		} else {
			flush_exact(&f);
			emit_unit(&f, at, u.end);
		}
		at = u.end;
		if (at - told >= PASS_BYTES && b->passed) {
			b->passed(b->passed_ctx);
			told = at;
		}
	}
	flush_exact(&f);
	as_vec_clear(&f.out);
	return true;
}
