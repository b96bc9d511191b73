/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One face for the decoders, and what stands where there is no instruction. */
#include "code/disasm.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>

#include "base/mem.h"
#include "code/disasm_priv.h"

static const struct as_disasm_ops none = {.unit_bytes = 1};

static const struct as_disasm_ops *ops_of(enum as_arch arch)
{
	switch (arch) {
	case AS_ARCH_X86_64:
		return &as_disasm_x86_64;
	case AS_ARCH_AARCH64:
		return &as_disasm_aarch64;
	case AS_ARCH_NONE:
		break;
	}
	return &none;
}

struct as_disasm *as_disasm_new(enum as_arch arch, as_disasm_name_fn name, void *ctx)
{
	struct as_disasm *d = as_xcalloc(1, sizeof *d);

	d->arch = arch;
	d->ops = ops_of(arch);
	d->name = name;
	d->ctx = ctx;
	if (d->ops->open)
		d->state = d->ops->open(d);
	return d;
}

void as_disasm_free(struct as_disasm *d)
{
	if (!d)
		return;
	if (d->state)
		d->ops->close(d->state);
	free(d);
}

/* Text is cut between characters. */
static size_t cut_name(const char *s)
{
	size_t n = strnlen(s, AS_DISASM_NAME_MAX + 1);

	if (n <= AS_DISASM_NAME_MAX)
		return n;
	n = AS_DISASM_NAME_MAX - 3;
	while (n && ((unsigned char)s[n] & 0xc0) == 0x80)
		n--;
	return n;
}

void as_disasm_address(struct as_disasm *d, uint64_t svma, bool code, char *out, size_t n)
{
	uint64_t off = 0;
	const char *s = d->name ? d->name(d->ctx, svma, code, &off) : NULL;
	size_t len = s ? cut_name(s) : 0;
	const char *dots = s && s[len] ? "..." : "";

	if (!s)
		snprintf(out, n, "0x%" PRIx64, svma);
	else if (off)
		snprintf(out, n, "%.*s%s+0x%" PRIx64, (int)len, s, dots, off);
	else
		snprintf(out, n, "%.*s%s", (int)len, s, dots);
}

static void bad(struct as_disasm *d, const uint8_t *p, size_t n, struct as_insn *ret)
{
	ret->kind = AS_INSN_BAD;
	if (d->ops->unit_bytes == 4 && n >= 4) {
		ret->len = 4;
		snprintf(d->text, sizeof d->text, ".word 0x%08x",
			 (unsigned)p[0] | (unsigned)p[1] << 8 | (unsigned)p[2] << 16 |
				 (unsigned)p[3] << 24);
		return;
	}
	ret->len = 1;
	snprintf(d->text, sizeof d->text, ".byte 0x%02x", p[0]);
}

static void next(struct as_disasm *d, const uint8_t *p, size_t n, bool text,
		 struct as_insn *ret)
{
	d->text[0] = 0;
	if (!d->state || !d->ops->decode(d, p, n, text, ret) || !ret->len || ret->len > n) {
		ret->target = ret->data = 0;
		bad(d, p, n, ret);
	}
	ret->text = d->text;
}

void as_disasm_next(struct as_disasm *d, const uint8_t *p, size_t n, uint64_t svma,
		    struct as_insn *ret)
{
	*ret = (struct as_insn){.svma = svma};
	next(d, p, n, true, ret);
}

void as_disasm_skim(struct as_disasm *d, const uint8_t *p, size_t n, uint64_t svma,
		    struct as_insn *ret)
{
	*ret = (struct as_insn){.svma = svma};
	next(d, p, n, false, ret);
}

const char *as_disasm_missing(enum as_arch arch)
{
	if (ops_of(arch)->decode)
		return NULL;
	switch (arch) {
	case AS_ARCH_X86_64:
		return "this build shows no x86-64 instructions: it was made without Zydis "
		       "(Debian: libzydis-dev)";
	case AS_ARCH_AARCH64:
		return "this build shows no AArch64 instructions: it was made without Capstone "
		       "(Debian: libcapstone-dev)";
	case AS_ARCH_NONE:
		break;
	}
	return "instructions of this architecture cannot be shown";
}
