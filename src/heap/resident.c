/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "heap/resident.h"

#include <stdlib.h>

void as_heap_resident_free(struct as_heap_resident *r)
{
	if (!r)
		return;
	as_vec_foreach (p, &r->parts)
		free(p->name);
	as_vec_clear(&r->parts);
	as_vec_clear(&r->pins);
	free(r);
}
