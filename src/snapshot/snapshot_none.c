/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "snapshot/snapshot.h"

int as_snapshot_look(const struct as_snapshot_spec *spec, struct as_error *err)
{
	return as_fail(err, AS_E_UNSUPPORTED, 0,
		       "process %d: leaks are looked for on x86-64 only", (int)spec->pid);
}
