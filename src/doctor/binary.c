/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks of a program: see as_doctor_binary. */
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "doctor/doctor_priv.h"
#include "elf/elf.h"

int as_doctor_binary(const struct as_doctor *d, const char *path, struct as_findings *out,
		     struct as_error *err)
{
	struct as_elf *e = NULL;
	int r = as_elf_open(path, &e, err);

	if (r < 0)
		return r;
	bool symbols = as_elf_find_section(e, ".symtab") != NULL;

	as_findings_add(out, AS_AREA_BINARY, "symbols",
			symbols ? AS_SEVERITY_OK : AS_SEVERITY_WARN,
			symbols ? "symbols" : "no symbols (stripped)");
	as_elf_close(e);
	return 0;
}
