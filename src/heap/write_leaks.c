/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a look at the process found -> records. */
#include <stdlib.h>
#include <string.h>

#include "heap/leak.h"
#include "heap/resident.h"
#include "heap/write_priv.h"

static uint64_t string_of(struct as_heap_writer *o, const char *name)
{
	return name ? as_session_string(o->w, name, strlen(name)) : 0;
}

static void write_leak(struct as_heap_writer *o, uint32_t process, const uint32_t *row_of,
		       const struct as_leak_row *row)
{
	const struct as_heap_amount *a = row->amount;

	as_write_heap_leak(o->w, &(struct as_rec_heap_leak){
					 .process = process,
					 .row = row_of[row->tally],
					 .lost_blocks = a[AS_LEAK_LOST].blocks,
					 .lost_bytes = a[AS_LEAK_LOST].bytes,
					 .owned_blocks = row->owned.blocks,
					 .owned_bytes = row->owned.bytes,
					 .indirect_blocks = a[AS_LEAK_INDIRECT].blocks,
					 .indirect_bytes = a[AS_LEAK_INDIRECT].bytes,
					 .possible_blocks = a[AS_LEAK_POSSIBLE].blocks,
					 .possible_bytes = a[AS_LEAK_POSSIBLE].bytes,
					 .reachable_blocks = a[AS_LEAK_REACHABLE].blocks,
					 .reachable_bytes = a[AS_LEAK_REACHABLE].bytes,
				 });
}

static void write_leaks(struct as_heap_writer *o, uint32_t process, const uint32_t *row_of,
			const struct as_heap_leaks *k)
{
	uint64_t sums[2 * AS_LEAK_CLASSES];

	for (size_t i = 0; i < AS_LEAK_CLASSES; i++) {
		sums[2 * i] = k->sum[i].blocks;
		sums[2 * i + 1] = k->sum[i].bytes;
	}
	as_write_heap_leaks(o->w, &(struct as_rec_heap_leaks){
					  .process = process,
					  .time_ns = k->time_ns,
					  .flags = k->at_exit,
					  .pause_ns = k->pause_ns,
					  .cpu_ns = k->cpu_ns,
					  .threads = k->threads,
					  .scanned_bytes = k->scanned_bytes,
					  .unread_bytes = k->unread_bytes,
					  .beyond = k->edges_beyond,
					  .sums = {sums, AS_ARRAY_LEN(sums)},
					  .inside = {(uint64_t *)k->inside, AS_LEAK_INSIDES},
				  });
	as_vec_foreach (row, &k->rows)
		write_leak(o, process, row_of, row);
}

static void write_resident(struct as_heap_writer *o, uint32_t process, const uint32_t *row_of,
			   const struct as_heap_resident *r)
{
	as_write_heap_rss(o->w, &(struct as_rec_heap_rss){
					.process = process,
					.time_ns = r->time_ns,
					.rss_bytes = r->rss_bytes,
					.swapped_bytes = r->swapped_bytes,
					.untouched_bytes = r->untouched_bytes,
					.free_bytes = r->free_bytes,
					.pinned_pages = r->pinned_pages,
					.pinned_bytes = r->pinned_bytes,
				});
	as_vec_foreach (p, &r->parts) {
		struct as_rec_heap_rss_part rec = {
			.process = process,
			.kind = p->kind,
			.name = string_of(o, p->name),
			.bytes = p->bytes,
			.mapped_bytes = p->mapped_bytes,
		};

		if (p->tally != AS_RESIDENT_NO_TALLY)
			rec.row = row_of[p->tally] + 1ull;
		as_write_heap_rss_part(o->w, &rec);
	}
	as_vec_foreach (p, &r->pins)
		as_write_heap_pin(o->w, &(struct as_rec_heap_pin){
						.process = process,
						.row = row_of[p->tally],
						.pages = p->pages,
						.bytes = p->bytes,
						.blocks = p->blocks,
						.live_bytes = p->live_bytes,
					});
}

void as_heap_write_look(struct as_heap_writer *o, uint32_t process, const uint32_t *row_of,
			const struct as_heap *h)
{
	if (h->leaks)
		write_leaks(o, process, row_of, h->leaks);
	if (h->resident)
		write_resident(o, process, row_of, h->resident);
}
