/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* x86-64 instructions by Zydis, from their raw encoding: operands are not decoded. */
#include "hook/insn.h"

#include <Zydis/Zydis.h>
#include <string.h>

const char *as_hook_cannot_patch(enum as_arch arch)
{
	if (arch == AS_ARCH_X86_64)
		return NULL;
	return arch == AS_ARCH_AARCH64
		       ? "functions of AArch64 programs cannot be patched yet, only x86-64"
		       : "only functions of x86-64 programs can be patched";
}

static bool decode_raw(const uint8_t *p, size_t n, ZydisDecodedInstruction *ret)
{
	ZydisDecoder d;

#ifdef AS_ZYDIS3 /* Ubuntu 22.04 */
	return ZYAN_SUCCESS(ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64,
					     ZYDIS_ADDRESS_WIDTH_64)) &&
	       ZYAN_SUCCESS(ZydisDecoderDecodeBuffer(&d, p, n, ret));
#else
	ZydisDecoderContext ctx;

	return ZYAN_SUCCESS(ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64,
					     ZYDIS_STACK_WIDTH_64)) &&
	       ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&d, &ctx, p, n, ret));
#endif
}

/* Conditional branches but loop, jrcxz and those with a 16-bit displacement. */
static bool is_jcc(const uint8_t *p, const struct as_hook_insn *in)
{
	if (in->rel_bytes == 1)
		return (p[in->rel_off - 1] & 0xf0) == 0x70;
	return in->rel_bytes == 4 && (p[in->rel_off - 1] & 0xf0) == 0x80 &&
	       p[in->rel_off - 2] == 0x0f;
}

static enum as_hook_insn_kind kind_of(const uint8_t *p, const ZydisDecodedInstruction *z,
				      const struct as_hook_insn *in)
{
	bool direct = in->rel_off != 0;

	switch (z->meta.category) {
	case ZYDIS_CATEGORY_COND_BR:
		return is_jcc(p, in) ? AS_HOOK_JCC : AS_HOOK_SHORT;
	case ZYDIS_CATEGORY_UNCOND_BR:
		return direct && in->rel_bytes == 2 ? AS_HOOK_SHORT
		       : direct                     ? AS_HOOK_JMP
						    : AS_HOOK_IJMP;
	case ZYDIS_CATEGORY_CALL:
		return direct && in->rel_bytes == 2 ? AS_HOOK_SHORT
		       : direct                     ? AS_HOOK_CALL
						    : AS_HOOK_ICALL;
	case ZYDIS_CATEGORY_RET:
		return AS_HOOK_RET;
	default:
		break;
	}
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_NOP:
		return AS_HOOK_NOP;
	case ZYDIS_MNEMONIC_ENDBR64:
		return AS_HOOK_ENDBR;
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_INT3:
		return AS_HOOK_STOP;
	default:
		return direct ? AS_HOOK_SHORT : AS_HOOK_PLAIN;
	}
}

static bool has_prefix(const uint8_t *p, const ZydisDecodedInstruction *z, uint8_t prefix)
{
	for (unsigned i = 0; i < z->raw.prefix_count; i++)
		if (p[i] == prefix)
			return true;
	return false;
}

static void look_at_operand(const uint8_t *p, const ZydisDecodedInstruction *z,
			    struct as_hook_insn *ret)
{
	bool memory = z->raw.modrm.mod != 3;

	if (!(z->attributes & ZYDIS_ATTRIB_HAS_MODRM))
		return;
	ret->modrm_off = z->raw.modrm.offset;
	if (memory && z->raw.modrm.mod == 0 && z->raw.modrm.rm == 5) {
		ret->disp_off = z->raw.disp.offset;
		ret->target += ret->len + (uint64_t)z->raw.disp.value;
		ret->fixed |= has_prefix(p, z, 0x67); /* relative to eip */
		ret->is_lea = z->mnemonic == ZYDIS_MNEMONIC_LEA;
	}
	/* rsp as a base is told by a SIB byte, as a register by itself; r12 has the same number */
	if (memory && z->raw.modrm.rm == 4)
		ret->on_sp = z->raw.sib.base == 4 && !z->raw.rex.B;
	else if (!memory)
		ret->on_sp = z->raw.modrm.rm == 4 && !z->raw.rex.B;
}

bool as_hook_decode(const uint8_t *p, size_t n, uint64_t address, struct as_hook_insn *ret)
{
	ZydisDecodedInstruction z;

	if (!decode_raw(p, n, &z))
		return false;
	memset(ret, 0, sizeof *ret);
	ret->len = z.length;
	if (z.raw.imm[0].is_relative) {
		ret->rel_off = z.raw.imm[0].offset;
		ret->rel_bytes = z.raw.imm[0].size / 8;
		ret->target = address + z.length + (uint64_t)z.raw.imm[0].value.s;
	} else {
		ret->target = address;
		look_at_operand(p, &z, ret);
		if (!ret->disp_off)
			ret->target = 0;
	}
	ret->kind = (uint8_t)kind_of(p, &z, ret);
	/* far branches load a code segment */
	if ((ret->kind == AS_HOOK_ICALL || ret->kind == AS_HOOK_IJMP) && z.raw.modrm.reg != 2 &&
	    z.raw.modrm.reg != 4)
		ret->fixed = true;
	return true;
}

/* ---- moving ---- */

static bool put_rel32(uint8_t *out, uint64_t target, uint64_t next)
{
	int64_t d = (int64_t)(target - next);
	int32_t rel = (int32_t)d;

	if (d != rel)
		return false;
	memcpy(out, &rel, 4);
	return true;
}

bool as_hook_jump(uint64_t at, uint64_t to, uint8_t out[AS_HOOK_JUMP])
{
	out[0] = 0xe9;
	return put_rel32(out + 1, to, at + AS_HOOK_JUMP);
}

/* push imm32 sets the low half, the mov the high one; flags and registers stay. */
#define PUSH_ADDRESS 13
static void push_address(uint64_t address, uint8_t *out)
{
	static const uint8_t high[4] = {0xc7, 0x44, 0x24, 0x04};

	out[0] = 0x68;
	memcpy(out + 1, &address, 4);
	memcpy(out + 5, high, 4);
	memcpy(out + 9, (const uint8_t *)&address + 4, 4);
}

/* The instruction itself; only the operand that is relative to the pc changes. */
static size_t move_plain(const uint8_t *p, const struct as_hook_insn *in, uint64_t to,
			 uint8_t *out)
{
	memcpy(out, p, in->len);
	if (in->disp_off && !put_rel32(out + in->disp_off, in->target, to + in->len))
		return 0;
	return in->len;
}

static size_t move_jcc(const uint8_t *p, const struct as_hook_insn *in, uint64_t to,
		       uint8_t *out)
{
	out[0] = 0x0f;
	out[1] = 0x80 | (p[in->rel_off - 1] & 0x0f);
	return put_rel32(out + 2, in->target, to + 6) ? 6 : 0;
}

static size_t move_icall(const uint8_t *p, const struct as_hook_insn *in, uint64_t from,
			 uint64_t to, uint8_t *out)
{
	size_t n;

	if (in->on_sp) /* the push moves what it is relative to */
		return 0;
	push_address(from + in->len, out);
	n = move_plain(p, in, to + PUSH_ADDRESS, out + PUSH_ADDRESS);
	/* FF /2 is the call, FF /4 the jump with the same operand */
	out[PUSH_ADDRESS + in->modrm_off] = (uint8_t)((p[in->modrm_off] & 0xc7) | 4 << 3);
	return n ? PUSH_ADDRESS + n : 0;
}

size_t as_hook_move(const uint8_t *p, const struct as_hook_insn *in, uint64_t from, uint64_t to,
		    uint8_t out[AS_HOOK_MOVED_MAX])
{
	if (in->fixed)
		return 0;
	switch (in->kind) {
	case AS_HOOK_SHORT:
		return 0;
	case AS_HOOK_JMP:
		return as_hook_jump(to, in->target, out) ? AS_HOOK_JUMP : 0;
	case AS_HOOK_JCC:
		return move_jcc(p, in, to, out);
	case AS_HOOK_CALL:
		push_address(from + in->len, out);
		return as_hook_jump(to + PUSH_ADDRESS, in->target, out + PUSH_ADDRESS)
			       ? PUSH_ADDRESS + AS_HOOK_JUMP
			       : 0;
	case AS_HOOK_ICALL:
		return move_icall(p, in, from, to, out);
	default:
		return move_plain(p, in, to, out);
	}
}

size_t as_hook_thunk(uint64_t at, uint64_t hook, uint64_t code, uint8_t out[AS_HOOK_THUNK_MAX])
{
	out[0] = 0x49; /* mov r11, imm64 */
	out[1] = 0xbb;
	memcpy(out + 2, &hook, 8);
	return as_hook_jump(at + 10, code, out + 10) ? 10 + AS_HOOK_JUMP : 0;
}
