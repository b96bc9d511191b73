/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Any bytes as a session, through the reader, the model, every shape of profile, every export and
 * the listings of a few functions. CRCs would stop nearly all mutations, so the input is taken both
 * as a file and as the records of one good chunk.
 * Seeds: a session with a few records of each kind, and the records of its only chunk.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "base/mem.h"
#include "exchange/exchange.h"
#include "model/model.h"
#include "session/log.h"
#include "view/listing/listing.h"
#include "view/report/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const struct as_model *m, enum as_by by, enum as_shape shape)
{
	struct as_query q = {.by = by, .shape = shape, .of = "a", .hide = "^b", .ignore = "zz"};
	struct as_profile *p;

	if (as_profile_make(m, &q, &p, NULL) < 0)
		return;
	as_vec_foreach (n, &p->nodes) {
		struct as_row r;

		as_profile_name(p, n->key, &r);
		if (!r.name || (n->parent != AS_NONE && n->parent >= p->nodes.n))
			abort();
	}
	as_vec_foreach (r, &p->rows) {
		if (!(r->self.value >= 0) || !(r->total.value <= 1.000001))
			abort();
	}
	as_profile_free(p);
}

/* What the session itself has of some functions. */
static void list_some(const struct as_model *m)
{
	for (uint32_t f = 0; f < m->functions.n && f < 6; f++) {
		struct as_listing_request q = {
			.model = m, .function = f, .embedded_only = true, .context = f};
		struct as_listing *l;

		if (as_listing_make(&q, &l, NULL) < 0)
			abort();
		as_vec_foreach (i, &l->insns) {
			if (!i->text || !i->len || i->place + i->nplaces > l->places.n)
				abort();
		}
		as_vec_foreach (file, &l->files) {
			as_vec_foreach (line, &file->lines) {
				if (!*line)
					abort();
			}
		}
		as_listing_free(l);
	}
}

static void export_all(const struct as_model *m, size_t n)
{
	struct as_query q = {.hide = n % 3 ? NULL : "^b", .no_inline = n % 5 == 0};
	struct as_export_options o = {
		.query = &q, .by_thread = n % 2, .full_names = n % 7 == 0};

	for (size_t i = 0; i < as_nexporters; i++) {
		struct as_buf b = {0};
		struct as_sink sink;

		if (!(as_exporters[i].kinds &
		      (as_model_is_counted(m) ? AS_EXPORT_MEMORY : AS_EXPORT_TIME)))
			continue;
		as_sink_init_buf(&sink, &b);
		if (as_exporters[i].write(m, &o, &sink, NULL) == 0 &&
		    as_sink_finish(&sink, NULL) < 0)
			abort();
		as_sink_clear(&sink);
		as_buf_clear(&b);
	}
}

/* A session of memory: each measure, folded and not, as a report; the last one exported. */
static void measure(struct as_model *m, size_t n)
{
	struct as_style style = {.width = 80};

	if (n % 5 == 0)
		as_model_grown_first(m);
	for (int k = AS_MEASURE_TIME; k < AS_MEASURE_COUNT_; k++) {
		struct as_report_request q = {
			.model = m,
			.format = (enum as_report_format)((n + (size_t)k) % 3),
			.query.shape = n % 2 ? AS_SHAPE_FLAT : AS_SHAPE_TREE};
		struct as_buf out = {0};

		if (as_model_measure(m, (enum as_measure)k, n % 3 != 0, NULL) == 0)
			(void)as_report_make(&q, &style, &out, NULL); /* only crashes count */
		as_buf_clear(&out);
	}
	export_all(m, n);
}

static int on_events(void *ctx, const struct as_rec_heap_events *r)
{
	struct as_log_in in;
	struct as_log_event e;
	size_t n = 0;

	as_log_begin(&in, r);
	while (as_log_next(&in, &e))
		n++;
	if (n > r->events.n)
		abort();
	return 0;
}

static void use(const void *bytes, size_t n)
{
	struct as_record_sink sink = {.heap_events = on_events};
	struct as_session_health health;
	struct as_model *m;
	struct as_trust t;
	struct as_buf folded = {0};

	(void)as_session_read_mem(bytes, n, &sink, &health, NULL); /* only crashes count */
	if (as_model_load_mem(bytes, n, &m, NULL) < 0)
		return;
	as_model_trust(m, &t);
	if (t.complete + t.repaired + t.truncated != t.samples)
		abort();
	for (int shape = AS_SHAPE_FLAT; shape <= AS_SHAPE_CALLEES; shape++)
		ask(m, (enum as_by)((n + (size_t)shape) % (AS_BY_PROCESS + 1)),
		    (enum as_shape)shape);
	(void)as_export_folded(
		m, &(struct as_folded_options){.by_thread = n % 2, .mark_kernel = true},
		&folded, NULL);
	as_buf_clear(&folded);
	export_all(m, n);
	list_some(m);
	if (m->heap.is)
		measure(m, n);
	as_model_free(m);
}

/* File header, then the input as the records of an uncompressed chunk. */
static void use_as_records(const uint8_t *data, size_t size)
{
	struct as_buf b = {0};
	size_t head;

	as_buf_adds(&b, "ASSAYS1\n");
	as_buf_le32(&b, 1);
	as_buf_fill(&b, 0, 12);
	head = b.len;
	as_buf_adds(&b, "ACHK");
	as_buf_le32(&b, (uint32_t)size);
	as_buf_le32(&b, (uint32_t)size);
	as_buf_fill(&b, 0, 16);
	as_buf_le32(&b, as_crc32c(as_crc32c(0, b.p + head, 28), data, size));
	as_buf_add(&b, data, size);
	use(b.p, b.len);
	as_buf_clear(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	use(data, size);
	if (size < 1u << 20)
		use_as_records(data, size);
	return 0;
}
