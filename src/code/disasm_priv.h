/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What disasm.c knows of the decoders of the architectures. */
#ifndef AS_CODE_DISASM_PRIV_H
#define AS_CODE_DISASM_PRIV_H

#include "code/disasm.h"

#define AS_DISASM_TEXT     1024
#define AS_DISASM_NAME_MAX 400 /* bytes of a name in the text; longer ones are cut */

struct as_disasm {
	enum as_arch arch;
	const struct as_disasm_ops *ops;
	as_disasm_name_fn name;
	void *ctx;
	void *state; /* of ops */
	char text[AS_DISASM_TEXT];
};

struct as_disasm_ops {
	unsigned unit_bytes;                /* what is skipped where no instruction is */
	void *(*open)(struct as_disasm *d); /* NULL: it cannot be used */
	void (*close)(void *state);
	/* Fills in all but svma and text; false: no instruction. text: also d->text. */
	bool (*decode)(struct as_disasm *d, const uint8_t *p, size_t n, bool text,
		       struct as_insn *ret);
};

/* NULL ops->decode: not in this build. */
extern const struct as_disasm_ops as_disasm_x86_64, as_disasm_aarch64;

/* "name+0x10" or "0x1234" into out[0 … n), n >= 32. */
void as_disasm_address(struct as_disasm *d, uint64_t svma, bool code, char *out, size_t n);

#endif
