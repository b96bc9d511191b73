/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unwind/x86_64/insn_priv.h"
#include "base/buf.h"

struct decode {
	const uint8_t *p, *end;
	bool bad, opsize, addrsize;
	uint8_t rex;
	uint8_t map; /* 1: one byte, 2: 0f, 3: 0f 38, 4: 0f 3a */
	bool vex;
	uint8_t op;
	bool has_modrm;
	uint8_t mod, reg, rm;
	int32_t disp;
	bool sib;
	uint8_t sib_byte;
	unsigned imm_size;
	int32_t imm;
};

static uint8_t next(struct decode *d)
{
	if (d->p >= d->end) {
		d->bad = true;
		return 0;
	}
	return *d->p++;
}

static int32_t next_signed(struct decode *d, unsigned size)
{
	if ((size_t)(d->end - d->p) < size) {
		d->bad = true;
		return 0;
	}
	const uint8_t *p = d->p;
	d->p += size;
	switch (size) {
	case 0:
		return 0;
	case 1:
		return (int8_t)p[0];
	case 2:
	case 3:
		return (int16_t)(p[0] | p[1] << 8);
	default:
		return (int32_t)as_get_le32(p);
	}
}

static void prefixes(struct decode *d)
{
	for (unsigned i = 0; i < 14 && d->p < d->end; i++) {
		switch (*d->p) {
		case 0x66:
			d->opsize = true;
			break;
		case 0x67:
			d->addrsize = true;
			break;
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0x64:
		case 0x65:
		case 0xf0:
		case 0xf2:
		case 0xf3:
			break;
		default:
			if ((*d->p & 0xf0) == 0x40)
				d->rex = *d->p++;
			return;
		}
		d->p++;
	}
}

/* VEX and EVEX carry the opcode map in their payload. */
static void vector_prefix(struct decode *d)
{
	unsigned skip = d->op == 0xc5 ? 1 : d->op == 0xc4 ? 2 : 3;
	uint8_t first = next(d);
	for (unsigned i = 1; i < skip; i++)
		(void)next(d);
	unsigned map = skip == 1 ? 1 : first & (skip == 2 ? 0x1f : 0x07);
	d->vex = true;
	d->map = map == 1 ? 2 : map == 3 ? 4 : 3;
	d->op = next(d);
}

static void opcode(struct decode *d)
{
	d->map = 1;
	d->op = next(d);
	if (d->op == 0xc4 || d->op == 0xc5 || d->op == 0x62) {
		vector_prefix(d);
		return;
	}
	if (d->op != 0x0f)
		return;
	d->map = 2;
	d->op = next(d);
	if (d->op == 0x38 || d->op == 0x3a) {
		d->map = d->op == 0x38 ? 3 : 4;
		d->op = next(d);
	}
}

/* Per opcode byte of the first map: m ModRM, b imm8, z imm16/32, w imm16, v imm16/32/64, o
 * address, e enter, x invalid. Case: capital letters are ModRM together with that immediate. */
static const char one_byte[257] = "mmmmbz  mmmmbz  mmmmbz  mmmmbz  "
				  "mmmmbz  mmmmbz  mmmmbz  mmmmbz  "
				  "                                "
				  "xxxm    zZbB    bbbbbbbbbbbbbbbb"
				  "BZxBmmmmmmmmmmmm          x     "
				  "oooo    bz      bbbbbbbbvvvvvvvv"
				  "BBw   BZe w  b  mmmmxxx mmmmmmmm"
				  "bbbbbbbblljb    x     mm      mm";

static const char two_byte[257] = "mmmm      x xm  mmmmmmmmmmmmmmmm"
				  "mmmmxxxxmmmmmmmm        xxxxxxxx"
				  "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm"
				  "mmmmmmmmmmmmmmmmBBBBmmm mmmmmmmm"
				  "llllllllllllllllmmmmmmmmmmmmmmmm"
				  "   mBmxx   mBmmm"
				  "mmmmmmmmmmBmmmmm"
				  "mmBmBBBm        mmmmmmmmmmmmmmmm"
				  "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm";

static void operand_shape(struct decode *d)
{
	char s = d->map == 1   ? one_byte[d->op]
		 : d->map == 2 ? two_byte[d->op]
		 : d->map == 3 ? 'm'
			       : 'B';
	unsigned z = d->opsize && !(d->rex & 8) ? 2 : 4;
	switch (s) {
	case 'm':
		d->has_modrm = true;
		break;
	case 'B':
		d->has_modrm = true;
		d->imm_size = 1;
		break;
	case 'Z':
		d->has_modrm = true;
		d->imm_size = z;
		break;
	case 'b':
		d->imm_size = 1;
		break;
	case 'z':
		d->imm_size = z;
		break;
	case 'l':
		d->imm_size = 4;
		break;
	case 'w':
		d->imm_size = 2;
		break;
	case 'v':
		d->imm_size = d->rex & 8 ? 8 : z;
		break;
	case 'o':
		d->imm_size = d->addrsize ? 4 : 8;
		break;
	case 'e':
		d->imm_size = 3;
		break;
	case 'x':
	case 'j':
		d->bad = true;
		break;
	}
	if (d->vex && d->map == 2 && d->op == 0x77)
		d->has_modrm = false;
}

static void modrm(struct decode *d)
{
	uint8_t b = next(d);
	d->mod = b >> 6;
	d->reg = b >> 3 & 7;
	d->rm = b & 7;
	if (d->mod != 3 && d->rm == 4) {
		d->sib = true;
		d->sib_byte = next(d);
	}
	unsigned disp = d->mod == 1 ? 1 : d->mod == 2 ? 4 : 0;
	if (d->mod == 0 && (d->rm == 5 || (d->sib && (d->sib_byte & 7) == 5)))
		disp = 4;
	d->disp = next_signed(d, disp);
	/* test r/m, imm is the only immediate of its group */
	if (d->map == 1 && (d->op == 0xf6 || d->op == 0xf7) && d->reg < 2)
		d->imm_size = d->op == 0xf6 ? 1 : d->opsize ? 2 : 4;
}

static int8_t dwarf_reg(const struct decode *d, unsigned low)
{
	static const int8_t map[8] = {0, 2, 1, 3, 7, 6, 4, 5};
	return d->rex & 1 ? (int8_t)(8 + low) : map[low];
}

static void set(struct as_x86_insn *i, enum as_x86_kind kind, int32_t value)
{
	i->kind = (uint8_t)kind;
	i->value = value;
}

/* Arithmetic and moves whose destination is rsp (rbp where it matters). Registers 4 and 5. */
static void classify_modrm(const struct decode *d, struct as_x86_insn *i)
{
	bool wide = d->rex & 8;
	bool reg_low = !(d->rex & 4), rm_low = !(d->rex & 1);
	bool to_rm_rsp = d->mod == 3 && d->rm == 4 && rm_low;
	bool to_reg_rsp = d->reg == 4 && reg_low;
	switch (d->op) {
	case 0x83:
	case 0x81:
		if (!to_rm_rsp)
			return;
		if (d->reg == 0 || d->reg == 5)
			set(i, AS_X86_ADD_RSP, d->reg == 0 ? d->imm : -d->imm);
		else if (d->reg != 7)
			set(i, AS_X86_LOSE_RSP, 0);
		return;
	case 0x89:
		if (wide && d->mod == 3 && d->rm == 5 && rm_low && to_reg_rsp)
			set(i, AS_X86_RSP_TO_RBP, 0);
		else if (to_rm_rsp && d->reg == 5 && reg_low)
			set(i, AS_X86_RBP_TO_RSP, 0);
		else if (to_rm_rsp)
			set(i, AS_X86_LOSE_RSP, 0);
		return;
	case 0x8b:
		if (wide && d->mod == 3 && d->rm == 4 && rm_low && d->reg == 5 && reg_low)
			set(i, AS_X86_RSP_TO_RBP, 0);
		else if (to_reg_rsp && d->mod == 3 && d->rm == 5 && rm_low)
			set(i, AS_X86_RBP_TO_RSP, 0);
		else if (to_reg_rsp && wide)
			set(i, AS_X86_LOSE_RSP, 0);
		return;
	case 0x8d:
		if (!to_reg_rsp || !wide)
			return;
		if (!d->sib && d->rm == 5 && rm_low && d->mod)
			set(i, AS_X86_RBP_TO_RSP, d->disp);
		else if (d->sib && d->sib_byte == 0x24 && rm_low && d->mod)
			set(i, AS_X86_ADD_RSP, d->disp);
		else
			set(i, AS_X86_LOSE_RSP, 0);
		return;
	case 0x01:
	case 0x09:
	case 0x21:
	case 0x29:
	case 0x31:
		if (to_rm_rsp)
			set(i, AS_X86_LOSE_RSP, 0);
		else if (d->op == 0x31 && d->mod == 3 && d->rm == 5 && d->reg == 5 &&
			 !(d->rex & 5))
			set(i, AS_X86_ZERO_RBP, 0);
		return;
	case 0x03:
	case 0x23:
	case 0x2b:
		if (to_reg_rsp && wide)
			set(i, AS_X86_LOSE_RSP, 0);
		return;
	case 0x8f:
		set(i, AS_X86_POP, 0);
		i->reg = -1;
		return;
	case 0xff:
		if (d->reg == 2)
			set(i, AS_X86_CALL, 0);
		else if (d->reg == 4 || d->reg == 5)
			set(i, AS_X86_JMP_INDIRECT, 0);
		else if (d->reg == 6) {
			set(i, AS_X86_PUSH, 0);
			i->reg = -1;
		}
		return;
	}
}

static void classify_one_byte(const struct decode *d, struct as_x86_insn *i)
{
	uint8_t op = d->op;
	if (op >= 0x50 && op <= 0x5f) {
		set(i, op < 0x58 ? AS_X86_PUSH : AS_X86_POP, 0);
		i->reg = dwarf_reg(d, op & 7);
		return;
	}
	if (op >= 0x70 && op <= 0x7f) {
		set(i, AS_X86_JCC, d->imm);
		return;
	}
	switch (op) {
	case 0x68:
	case 0x6a:
	case 0x9c:
		set(i, AS_X86_PUSH, 0);
		i->reg = -1;
		break;
	case 0x9d:
		set(i, AS_X86_POP, 0);
		i->reg = -1;
		break;
	case 0x90:
		set(i, AS_X86_NOP, 0);
		break;
	case 0xc2:
	case 0xc3:
		set(i, AS_X86_RET, 0);
		break;
	case 0xc9:
		set(i, AS_X86_LEAVE, 0);
		break;
	case 0xcc:
	case 0xf4:
		set(i, AS_X86_HLT, 0);
		break;
	case 0xe0:
	case 0xe1:
	case 0xe2:
	case 0xe3:
		set(i, AS_X86_JCC, d->imm);
		break;
	case 0xe8:
		set(i, AS_X86_CALL, d->imm);
		break;
	case 0xe9:
	case 0xeb:
		set(i, AS_X86_JMP, d->imm);
		break;
	default:
		if (d->has_modrm)
			classify_modrm(d, i);
	}
}

static void classify(const struct decode *d, struct as_x86_insn *i)
{
	if (d->map == 1 && !d->vex)
		classify_one_byte(d, i);
	else if (d->map == 2 && !d->vex && d->op >= 0x80 && d->op <= 0x8f)
		set(i, AS_X86_JCC, d->imm);
	else if (d->map == 2 && !d->vex && d->op == 0x0b)
		set(i, AS_X86_HLT, 0);
	else if (d->map == 2 && !d->vex && d->op == 0x1f)
		set(i, AS_X86_NOP, 0);
}

bool as_x86_decode(const uint8_t *code, size_t n, struct as_x86_insn *ret)
{
	struct decode d = {.p = code, .end = code + (n < 15 ? n : 15)};
	prefixes(&d);
	opcode(&d);
	operand_shape(&d);
	if (d.has_modrm)
		modrm(&d);
	if (d.imm_size == 8) {
		(void)next_signed(&d, 4);
		(void)next_signed(&d, 4);
	} else if (d.imm_size == 3) {
		(void)next_signed(&d, 3);
	} else {
		d.imm = next_signed(&d, d.imm_size);
	}
	if (d.bad)
		return false;
	*ret = (struct as_x86_insn){.len = (uint8_t)(d.p - code)};
	ret->frame_access = d.has_modrm && (d.mod == 1 || d.mod == 2) && d.rm == 5 &&
			    !(d.rex & 1) && d.disp < 0;
	classify(&d, ret);
	return true;
}
