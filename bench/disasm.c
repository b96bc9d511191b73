/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How fast code becomes text: the executable sections of a file, disassembled and written.
 *
 *	usage: disasm FILE > /dev/null
 *	beside: time objdump -d -M intel --no-show-raw-insn FILE > /dev/null
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "code/disasm.h"
#include "elf/elf.h"

static uint64_t print_code(struct as_disasm *d, const uint8_t *p, size_t n, uint64_t svma,
			   bool text)
{
	uint64_t count = 0;

	for (size_t at = 0; at < n; count++) {
		struct as_insn i;

		if (text) {
			as_disasm_next(d, p + at, n - at, svma + at, &i);
			printf("%8" PRIx64 ":\t%s\n", i.svma, i.text);
		} else {
			as_disasm_skim(d, p + at, n - at, svma + at, &i);
		}
		at += i.len;
	}
	return count;
}

int main(int argc, char **argv)
{
	struct as_error err = {0};
	struct as_elf *e;
	const struct as_elf_section *s;
	size_t n;

	if (argc < 2 || as_elf_open(argv[1], &e, &err) < 0) {
		fprintf(stderr, "disasm: %s\n", argc < 2 ? "FILE" : err.msg);
		return 1;
	}
	s = as_elf_sections(e, &n);
	for (int text = 1; text >= 0; text--) {
		struct as_disasm *d = as_disasm_new(as_elf_arch(e), NULL, NULL);
		uint64_t start = as_self_cpu_ns(), insns = 0, ns;

		for (size_t i = 0; i < n; i++) {
			const uint8_t *p = s[i].flags & 4 /* SHF_EXECINSTR */ && !s[i].nobits
						   ? as_elf_at(e, s[i].svma, s[i].size_bytes)
						   : NULL;

			if (p)
				insns += print_code(d, p, s[i].size_bytes, s[i].svma, text);
		}
		fflush(stdout);
		ns = as_self_cpu_ns() - start;
		fprintf(stderr, "%s: %" PRIu64 " instructions, %.0f ms, %.0f ns each\n",
			text ? "text" : "skim", insns, (double)ns / 1e6,
			insns ? (double)ns / (double)insns : 0);
		as_disasm_free(d);
	}
	as_elf_close(e);
	return 0;
}
