/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unwind/expr_priv.h"
#include "base/buf.h"
#include "base/err.h"

enum {
	OP_addr = 0x03,
	OP_deref = 0x06,
	OP_const1u = 0x08,
	OP_const1s = 0x09,
	OP_const2u = 0x0a,
	OP_const2s = 0x0b,
	OP_const4u = 0x0c,
	OP_const4s = 0x0d,
	OP_const8u = 0x0e,
	OP_const8s = 0x0f,
	OP_constu = 0x10,
	OP_consts = 0x11,
	OP_dup = 0x12,
	OP_drop = 0x13,
	OP_over = 0x14,
	OP_pick = 0x15,
	OP_swap = 0x16,
	OP_rot = 0x17,
	OP_abs = 0x19,
	OP_and = 0x1a,
	OP_div = 0x1b,
	OP_minus = 0x1c,
	OP_mod = 0x1d,
	OP_mul = 0x1e,
	OP_neg = 0x1f,
	OP_not = 0x20,
	OP_or = 0x21,
	OP_plus = 0x22,
	OP_plus_uconst = 0x23,
	OP_shl = 0x24,
	OP_shr = 0x25,
	OP_shra = 0x26,
	OP_xor = 0x27,
	OP_bra = 0x28,
	OP_eq = 0x29,
	OP_ge = 0x2a,
	OP_gt = 0x2b,
	OP_le = 0x2c,
	OP_lt = 0x2d,
	OP_ne = 0x2e,
	OP_skip = 0x2f,
	OP_lit0 = 0x30,
	OP_breg0 = 0x70,
	OP_bregx = 0x92,
	OP_deref_size = 0x94,
	OP_nop = 0x96,
	OP_call_frame_cfa = 0x9c,
	OP_stack_value = 0x9f,
};

struct machine {
	const struct as_expr_env *env;
	struct as_rd rd;
	const uint8_t *start;
	uint64_t v[AS_EXPR_MAX_DEPTH];
	unsigned n;
	int status; /* first failure */
};

static void fail(struct machine *m, int status)
{
	if (!m->status)
		m->status = status;
}

static void push(struct machine *m, uint64_t v)
{
	if (m->n == AS_EXPR_MAX_DEPTH)
		fail(m, AS_E_FORMAT);
	else
		m->v[m->n++] = v;
}

static uint64_t pop(struct machine *m)
{
	if (!m->n) {
		fail(m, AS_E_FORMAT);
		return 0;
	}
	return m->v[--m->n];
}

/* The i-th value from the top, 0 = top. */
static uint64_t peek(struct machine *m, unsigned i)
{
	if (i >= m->n) {
		fail(m, AS_E_FORMAT);
		return 0;
	}
	return m->v[m->n - 1 - i];
}

static void push_register(struct machine *m, uint64_t reg, int64_t off)
{
	const struct as_uregs *regs = m->env->regs;
	if (reg >= AS_UREG_COUNT || !(regs->valid >> reg & 1)) {
		fail(m, AS_E_NOTFOUND);
		return;
	}
	push(m, regs->r[reg] + (uint64_t)off);
}

static void deref(struct machine *m, unsigned size)
{
	uint64_t at = pop(m), v = 0;
	uint8_t bytes[8] = {0};
	if (size < 1 || size > 8) {
		fail(m, AS_E_FORMAT);
		return;
	}
	if (m->status)
		return;
	int r = m->env->read(m->env->ctx, at, bytes, size);
	if (r) {
		fail(m, r < 0 ? r : AS_E_IO);
		return;
	}
	v = as_get_le64(bytes);
	push(m, v);
}

static void jump(struct machine *m, int16_t distance)
{
	int64_t to = (m->rd.p - m->start) + distance;
	if (to < 0 || to > m->rd.end - m->start)
		fail(m, AS_E_FORMAT);
	else
		m->rd.p = m->start + to;
}

static void rotate(struct machine *m)
{
	uint64_t a = pop(m), b = pop(m), c = pop(m);
	push(m, a);
	push(m, c);
	push(m, b);
}

static void unary(struct machine *m, uint8_t op)
{
	uint64_t a = pop(m);
	switch (op) {
	case OP_abs:
		push(m, (int64_t)a < 0 ? 0 - a : a);
		break;
	case OP_neg:
		push(m, 0 - a);
		break;
	default: /* OP_not */
		push(m, ~a);
	}
}

static uint64_t signed_div(struct machine *m, uint64_t a, uint64_t b)
{
	if (!b) {
		fail(m, AS_E_FORMAT);
		return 0;
	}
	if (b == UINT64_MAX)
		return 0 - a; /* INT64_MIN / -1 must not trap */
	return (uint64_t)((int64_t)a / (int64_t)b);
}

static uint64_t arithmetic_shift(uint64_t a, uint64_t by)
{
	uint64_t sign = (int64_t)a < 0 ? UINT64_MAX : 0;
	if (by >= 64)
		return sign;
	return by ? a >> by | sign << (64 - by) : a;
}

static void binary(struct machine *m, uint8_t op)
{
	uint64_t b = pop(m), a = pop(m);
	int64_t sa = (int64_t)a, sb = (int64_t)b;
	uint64_t v = 0;
	switch (op) {
	case OP_and:
		v = a & b;
		break;
	case OP_div:
		v = signed_div(m, a, b);
		break;
	case OP_minus:
		v = a - b;
		break;
	case OP_mod:
		if (!b)
			fail(m, AS_E_FORMAT);
		else
			v = a % b;
		break;
	case OP_mul:
		v = a * b;
		break;
	case OP_or:
		v = a | b;
		break;
	case OP_plus:
		v = a + b;
		break;
	case OP_shl:
		v = b < 64 ? a << b : 0;
		break;
	case OP_shr:
		v = b < 64 ? a >> b : 0;
		break;
	case OP_shra:
		v = arithmetic_shift(a, b);
		break;
	case OP_xor:
		v = a ^ b;
		break;
	case OP_eq:
		v = a == b;
		break;
	case OP_ge:
		v = sa >= sb;
		break;
	case OP_gt:
		v = sa > sb;
		break;
	case OP_le:
		v = sa <= sb;
		break;
	case OP_lt:
		v = sa < sb;
		break;
	default: /* OP_ne */
		v = a != b;
	}
	push(m, v);
}

static bool constant(struct machine *m, uint8_t op)
{
	struct as_rd *r = &m->rd;
	switch (op) {
	case OP_addr:
		push(m, as_rd_u64(r) + m->env->bias);
		return true;
	case OP_const1u:
		push(m, as_rd_u8(r));
		return true;
	case OP_const1s:
		push(m, (uint64_t)(int64_t)(int8_t)as_rd_u8(r));
		return true;
	case OP_const2u:
		push(m, as_rd_u16(r));
		return true;
	case OP_const2s:
		push(m, (uint64_t)(int64_t)(int16_t)as_rd_u16(r));
		return true;
	case OP_const4u:
		push(m, as_rd_u32(r));
		return true;
	case OP_const4s:
		push(m, (uint64_t)(int64_t)(int32_t)as_rd_u32(r));
		return true;
	case OP_const8u:
	case OP_const8s:
		push(m, as_rd_u64(r));
		return true;
	case OP_constu:
		push(m, as_rd_uleb(r));
		return true;
	case OP_consts:
		push(m, (uint64_t)as_rd_sleb(r));
		return true;
	default:
		return false;
	}
}

static bool stack_op(struct machine *m, uint8_t op)
{
	uint64_t a, b;
	switch (op) {
	case OP_dup:
		push(m, peek(m, 0));
		return true;
	case OP_drop:
		(void)pop(m);
		return true;
	case OP_over:
		push(m, peek(m, 1));
		return true;
	case OP_pick:
		push(m, peek(m, as_rd_u8(&m->rd)));
		return true;
	case OP_swap:
		a = pop(m);
		b = pop(m);
		push(m, a);
		push(m, b);
		return true;
	case OP_rot:
		rotate(m);
		return true;
	default:
		return false;
	}
}

static void other(struct machine *m, uint8_t op)
{
	struct as_rd *r = &m->rd;
	uint64_t reg;
	int16_t distance;
	switch (op) {
	case OP_deref:
		deref(m, 8);
		break;
	case OP_deref_size:
		deref(m, as_rd_u8(r));
		break;
	case OP_plus_uconst:
		push(m, pop(m) + as_rd_uleb(r));
		break;
	case OP_bregx:
		reg = as_rd_uleb(r);
		push_register(m, reg, as_rd_sleb(r));
		break;
	case OP_skip:
		jump(m, (int16_t)as_rd_u16(r));
		break;
	case OP_bra:
		distance = (int16_t)as_rd_u16(r);
		if (pop(m))
			jump(m, distance);
		break;
	case OP_call_frame_cfa:
		if (m->env->cfa_known)
			push(m, m->env->cfa);
		else
			fail(m, AS_E_NOTFOUND);
		break;
	case OP_nop:
	case OP_stack_value:
		break;
	default:
		fail(m, AS_E_UNSUPPORTED);
	}
}

static void step(struct machine *m)
{
	uint8_t op = as_rd_u8(&m->rd);
	if (op >= OP_lit0 && op < OP_lit0 + 32)
		push(m, op - OP_lit0);
	else if (op >= OP_breg0 && op < OP_breg0 + 32)
		push_register(m, op - OP_breg0, as_rd_sleb(&m->rd));
	else if (op == OP_abs || op == OP_neg || op == OP_not)
		unary(m, op);
	else if ((op >= OP_and && op <= OP_xor && op != OP_plus_uconst) ||
		 (op >= OP_eq && op <= OP_ne))
		binary(m, op);
	else if (!constant(m, op) && !stack_op(m, op))
		other(m, op);
	if (m->rd.bad)
		fail(m, AS_E_FORMAT);
}

int as_expr_eval(const struct as_expr_env *env, const uint8_t *p, size_t n,
		 const uint64_t *initial, uint64_t *ret)
{
	struct machine m;
	m.env = env;
	m.rd = AS_RD(p, n);
	m.start = p;
	m.n = 0;
	m.status = 0;
	if (initial)
		push(&m, *initial);
	for (unsigned steps = 0; as_rd_left(&m.rd); steps++) {
		if (steps == AS_EXPR_MAX_STEPS)
			return AS_E_FORMAT;
		step(&m);
		if (m.status)
			return m.status;
	}
	uint64_t top = pop(&m);
	if (m.status)
		return m.status;
	*ret = top;
	return AS_OK;
}
