/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * AArch64 by Capstone, which gives the text; kinds and targets are read from the word itself (Arm
 * ARM, C4.1 "Branches, exception generating and system instructions" and "PC-rel. addressing").
 */
#include "code/disasm_priv.h"

#include <capstone/capstone.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

struct state {
	csh handle;
	cs_insn *insn;
};

static void close_capstone(void *state)
{
	struct state *s = state;

	if (s->insn)
		cs_free(s->insn, 1);
	if (s->handle)
		cs_close(&s->handle);
	free(s);
}

static void *open_capstone(struct as_disasm *d)
{
	struct state *s = as_xcalloc(1, sizeof *s);

	(void)d;
	if (cs_open(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, &s->handle) == CS_ERR_OK)
		s->insn = cs_malloc(s->handle);
	if (s->insn)
		return s;
	close_capstone(s);
	return NULL;
}

static uint64_t offset(uint32_t word, unsigned at, unsigned bits)
{
	uint64_t v = word >> at & ((1u << bits) - 1);

	return (v ^ 1ull << (bits - 1)) - (1ull << (bits - 1));
}

static void classify(uint32_t w, struct as_insn *ret)
{
	if ((w & 0x7c000000) == 0x14000000) { /* b, bl */
		ret->kind = w >> 31 ? AS_INSN_CALL : AS_INSN_JUMP;
		ret->target = ret->svma + offset(w, 0, 26) * 4;
	} else if ((w & 0xff000000) == 0x54000000 || (w & 0x7e000000) == 0x34000000) {
		ret->kind = AS_INSN_BRANCH; /* b.cond, cbz, cbnz */
		ret->target = ret->svma + offset(w, 5, 19) * 4;
	} else if ((w & 0x7e000000) == 0x36000000) { /* tbz, tbnz */
		ret->kind = AS_INSN_BRANCH;
		ret->target = ret->svma + offset(w, 5, 14) * 4;
	} else if ((w & 0xfe000000) == 0xd6000000) { /* br, blr, ret, authenticated too */
		static const uint8_t kinds[4] = {AS_INSN_JUMP, AS_INSN_CALL, AS_INSN_RETURN,
						 AS_INSN_PLAIN};

		ret->kind = kinds[w >> 21 & 3];
	} else if ((w & 0x9f000000) == 0x10000000) { /* adr */
		ret->data = ret->svma + (offset(w, 5, 19) << 2 | (w >> 29 & 3));
	} else if ((w & 0x3b000000) == 0x18000000) { /* ldr (literal) */
		ret->data = ret->svma + offset(w, 5, 19) * 4;
	} /* adrp names a page, not a place */
}

static bool decode(struct as_disasm *d, const uint8_t *p, size_t n, bool text,
		   struct as_insn *ret)
{
	struct state *s = d->state;
	const uint8_t *at = p;
	uint64_t svma = ret->svma, place;
	char name[AS_DISASM_NAME_MAX + 64];
	size_t left = 4;
	const char *op;
	char *hash;

	if (n < 4 || !cs_disasm_iter(s->handle, &at, &left, &svma, s->insn))
		return false;
	ret->len = 4;
	classify(as_get_le32(p), ret);
	if (!text)
		return true;
	op = s->insn->op_str;
	place = ret->target ? ret->target : ret->data;
	hash = strrchr(op, '#');
	if (place && hash) { /* the address is always the last operand */
		as_disasm_address(d, place, ret->target != 0, name, sizeof name);
		snprintf(d->text, sizeof d->text, "%s %.*s%s", s->insn->mnemonic,
			 (int)(hash - op), op, name);
	} else {
		snprintf(d->text, sizeof d->text, "%s%s%s", s->insn->mnemonic, *op ? " " : "",
			 op);
	}
	return true;
}

const struct as_disasm_ops as_disasm_aarch64 = {
	.unit_bytes = 4,
	.open = open_capstone,
	.close = close_capstone,
	.decode = decode,
};
