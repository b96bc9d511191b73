/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* x86-64 by Zydis, Intel syntax: lower case, numbers as short as they are, addresses by name. */
#include "code/disasm_priv.h"

#include <Zydis/Zydis.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* ---- what differs between the versions ---- */

#ifdef AS_ZYDIS3 /* Ubuntu 22.04: operands inside the instruction */
struct zy_insn {
	ZydisDecodedInstruction i;
};

static inline bool zy_init(ZydisDecoder *d)
{
	return ZYAN_SUCCESS(
		ZydisDecoderInit(d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_ADDRESS_WIDTH_64));
}

static inline bool zy_decode(const ZydisDecoder *d, const void *p, size_t n, bool operands,
			     struct zy_insn *ret)
{
	(void)operands;
	return ZYAN_SUCCESS(ZydisDecoderDecodeBuffer(d, p, n, &ret->i));
}

static inline bool zy_format(const ZydisFormatter *f, const struct zy_insn *x, char *out,
			     size_t n, uint64_t address, void *user)
{
	return ZYAN_SUCCESS(ZydisFormatterFormatInstructionEx(f, &x->i, out, n, address, user));
}
#else
struct zy_insn {
	ZydisDecodedInstruction i;
	ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
};

static inline bool zy_init(ZydisDecoder *d)
{
	return ZYAN_SUCCESS(
		ZydisDecoderInit(d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64));
}

static inline bool zy_decode(const ZydisDecoder *d, const void *p, size_t n, bool operands,
			     struct zy_insn *ret)
{
	ZydisDecoderContext ctx;

	return ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(d, &ctx, p, n, &ret->i)) &&
	       (!operands ||
		ZYAN_SUCCESS(ZydisDecoderDecodeOperands(d, &ctx, &ret->i, ret->operand,
							ret->i.operand_count_visible)));
}

static inline bool zy_format(const ZydisFormatter *f, const struct zy_insn *x, char *out,
			     size_t n, uint64_t address, void *user)
{
	return ZYAN_SUCCESS(ZydisFormatterFormatInstruction(
		f, &x->i, x->operand, x->i.operand_count_visible, out, n, address, user));
}
#endif

/* ---- the decoder ---- */

struct state {
	ZydisDecoder decoder;
	ZydisFormatter formatter;
};

/* Zydis calls this for branch targets and for memory relative to rip. */
static ZyanStatus print_address(const ZydisFormatter *f, ZydisFormatterBuffer *buffer,
				ZydisFormatterContext *context)
{
	struct as_disasm *d = context->user_data;
	bool memory = context->operand->type == ZYDIS_OPERAND_TYPE_MEMORY;
	char name[AS_DISASM_NAME_MAX + 64];
	ZyanStringView view;
	ZyanString *out;
	ZyanU64 svma;
	size_t n = memory ? 4 : 0;

	(void)f;
	ZYAN_CHECK(ZydisCalcAbsoluteAddress(context->instruction, context->operand,
					    context->runtime_address, &svma));
	memcpy(name, "rel ", n);
	as_disasm_address(d, svma, !memory, name + n, sizeof name - n);
	ZYAN_CHECK(ZydisFormatterBufferAppend(buffer, ZYDIS_TOKEN_SYMBOL));
	ZYAN_CHECK(ZydisFormatterBufferGetString(buffer, &out));
	ZYAN_CHECK(ZyanStringViewInsideBuffer(&view, name));
	return ZyanStringAppend(out, &view);
}

static bool set_up(struct state *s)
{
	static const struct {
		ZydisFormatterProperty property;
		ZyanUPointer value;
	} property[] = {
		{ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE},
		{ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE,
		 (ZyanUPointer)ZYDIS_PADDING_DISABLED},
		{ZYDIS_FORMATTER_PROP_ADDR_PADDING_RELATIVE,
		 (ZyanUPointer)ZYDIS_PADDING_DISABLED},
		{ZYDIS_FORMATTER_PROP_DISP_PADDING, (ZyanUPointer)ZYDIS_PADDING_DISABLED},
		{ZYDIS_FORMATTER_PROP_IMM_PADDING, (ZyanUPointer)ZYDIS_PADDING_DISABLED},
	};
	const void *hook = (const void *)print_address;

	if (!zy_init(&s->decoder) ||
	    ZYAN_FAILED(ZydisFormatterInit(&s->formatter, ZYDIS_FORMATTER_STYLE_INTEL)) ||
	    ZYAN_FAILED(ZydisFormatterSetHook(&s->formatter,
					      ZYDIS_FORMATTER_FUNC_PRINT_ADDRESS_ABS, &hook)))
		return false;
	for (size_t i = 0; i < AS_ARRAY_LEN(property); i++) {
		if (ZYAN_FAILED(ZydisFormatterSetProperty(&s->formatter, property[i].property,
							  property[i].value)))
			return false;
	}
	return true;
}

static void *open_zydis(struct as_disasm *d)
{
	struct state *s = as_xcalloc(1, sizeof *s);

	(void)d;
	if (set_up(s))
		return s;
	free(s);
	return NULL;
}

static enum as_insn_kind kind_of(const ZydisDecodedInstruction *i)
{
	switch (i->meta.category) {
	case ZYDIS_CATEGORY_CALL:
		return AS_INSN_CALL;
	case ZYDIS_CATEGORY_RET:
		return AS_INSN_RETURN;
	case ZYDIS_CATEGORY_UNCOND_BR:
		return AS_INSN_JUMP;
	case ZYDIS_CATEGORY_COND_BR:
		return AS_INSN_BRANCH;
	default:
		return AS_INSN_PLAIN;
	}
}

/* From the raw encoding: operands need not be decoded for that. */
static void find_targets(const ZydisDecodedInstruction *i, struct as_insn *ret)
{
	uint64_t next = ret->svma + i->length;

	if (i->raw.imm[0].is_relative)
		ret->target = next + (uint64_t)i->raw.imm[0].value.s;
	else if ((i->attributes & ZYDIS_ATTRIB_HAS_MODRM) && i->raw.modrm.mod == 0 &&
		 i->raw.modrm.rm == 5)
		ret->data = next + (uint64_t)i->raw.disp.value;
}

static bool decode(struct as_disasm *d, const uint8_t *p, size_t n, bool text,
		   struct as_insn *ret)
{
	struct state *s = d->state;
	struct zy_insn x;

	if (!zy_decode(&s->decoder, p, n, text, &x))
		return false;
	ret->len = x.i.length;
	ret->kind = (uint8_t)kind_of(&x.i);
	find_targets(&x.i, ret);
	return !text || zy_format(&s->formatter, &x, d->text, sizeof d->text, ret->svma, d);
}

const struct as_disasm_ops as_disasm_x86_64 = {
	.unit_bytes = 1,
	.open = open_zydis,
	.close = free,
	.decode = decode,
};
