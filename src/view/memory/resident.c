/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "view/memory/leaks.h"
#include "view/report/trust.h"

enum { INDENT = 10, NAMES = 3, PINS = 3, PROCESSES = 3 };

/* Guards of stacks are not worth a word. */
#define RESERVED_MIN (1ull << 20)

/* Kinds as heap/resident.h numbers them. */
enum kind {
	LIVE,
	ROUNDING,
	HELD,
	MAPPING,
	ANONYMOUS,
	STACKS,
	MODULE,
	FILES,
	ASSAY,
	RESERVED,
	KINDS
};

static const struct {
	const char *key, *what;
} kinds[KINDS] = {
	[LIVE] = {"live", "live blocks"},
	[ROUNDING] = {"rounding", "what sizes are rounded up by, and headers"},
	[HELD] = {"held", "free, held by the allocator"},
	[MAPPING] = {"mapping", "mapped by the program"},
	[ANONYMOUS] = {"anonymous", "mapped by others"},
	[STACKS] = {"stacks", "stacks of threads"},
	[MODULE] = {"module", "programs and libraries"},
	[FILES] = {"file", "other files, shared memory"},
	[ASSAY] = {"assay", "put there by assay"},
	[RESERVED] = {"reserved", "reserved by the program"},
};

const char *as_resident_kind(unsigned kind, const char **ret_key)
{
	if (kind >= KINDS)
		return NULL;
	*ret_key = kinds[kind].key;
	return kinds[kind].what;
}

static const char *function_of(const struct as_model *m, uint64_t row)
{
	const struct as_m_heap_row *r = &m->heap.rows.v[row];
	const struct as_m_frame *f;

	if (r->folded == AS_NONE)
		return "(no stack)";
	f = &m->frames.v[m->stacks.v[r->folded].frame];
	return m->functions.v[m->places.v[f->chain].function].brief;
}

static uint64_t sum_of(const struct as_model *m, uint64_t process, enum kind kind)
{
	uint64_t sum = 0;

	as_vec_foreach (p, &m->heap.look.parts)
		sum += p->r.process == process && p->r.kind == kind ? p->r.bytes : 0;
	return sum;
}

static uint64_t untouched_of(const struct as_model *m, uint64_t process, enum kind kind)
{
	uint64_t sum = 0;

	as_vec_foreach (p, &m->heap.look.parts) {
		if (p->r.process == process && p->r.kind == kind)
			sum += p->r.mapped_bytes - AS_MIN(p->r.mapped_bytes, p->r.bytes);
	}
	return sum;
}

/* ---- text ---- */

struct named {
	const char *name;
	uint64_t bytes;
};
struct names {
	AS_VEC(struct named) v;
};

static int by_bytes(const void *a, const void *b)
{
	const struct named *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
	const struct named *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* A function's stacks and threads are one; the largest first. */
static void join_names(struct names *names)
{
	size_t n = 0;

	if (!names->v.n)
		return;
	qsort(names->v.v, names->v.n, sizeof *names->v.v, by_name);
	as_vec_foreach (it, &names->v) {
		if (n && strcmp(names->v.v[n - 1].name, it->name) == 0)
			names->v.v[n - 1].bytes += it->bytes;
		else
			names->v.v[n++] = *it;
	}
	names->v.n = n;
	qsort(names->v.v, n, sizeof *names->v.v, by_bytes);
}

const char *as_resident_name(const struct as_m_rss_part *p)
{
	const char *slash = strrchr(p->name, '/');

	return slash && slash[1] ? slash + 1 : p->name;
}

/* "libc.so.6 1.2 MiB, app 0.4 MiB, …": the largest of the kind. */
static void add_names(const struct as_model *m, uint64_t process, enum kind kind,
		      struct as_buf *b)
{
	struct names names = {0};

	as_vec_foreach (p, &m->heap.look.parts) {
		if (p->r.process == process && p->r.kind == kind && p->r.bytes &&
		    (*p->name || p->r.row))
			as_vec_push(&names.v,
				    (struct named){p->r.row ? function_of(m, p->r.row - 1)
							    : as_resident_name(p),
						   p->r.bytes});
	}
	join_names(&names);
	for (size_t i = 0; i < names.v.n && i < NAMES; i++) {
		as_buf_adds(b, i ? ", " : ": ");
		as_buf_adds(b, names.v.v[i].name);
		as_buf_addc(b, ' ');
		as_fmt_bytes(b, names.v.v[i].bytes);
	}
	as_buf_adds(b, names.v.n > NAMES ? ", …" : "");
	as_vec_clear(&names.v);
}

static void amount_line(const struct as_style *style, uint64_t bytes, const char *text,
			struct as_buf *out)
{
	struct as_buf b = {0};
	size_t w;

	as_fmt_bytes(&b, bytes);
	w = as_text_width(as_buf_str(&b), b.len);
	as_buf_fill(out, ' ', INDENT - AS_MIN(w, (size_t)INDENT));
	as_buf_adds(out, as_buf_str(&b));
	as_buf_adds(out, "   ");
	as_block_words(out, style, INDENT + 3, text);
	as_buf_clear(&b);
}

/* "; 12 KiB more were never touched; 10 GiB are only reserved": of what the program mapped. */
static void add_unused(const struct as_model *m, uint64_t process, struct as_buf *b)
{
	uint64_t untouched = untouched_of(m, process, MAPPING),
		 reserved = untouched_of(m, process, RESERVED);

	if (untouched) {
		as_buf_adds(b, "; ");
		as_fmt_bytes(b, untouched);
		as_buf_adds(b, " more were never touched");
	}
	if (reserved >= RESERVED_MIN) {
		as_buf_adds(b, "; ");
		as_fmt_bytes(b, reserved);
		as_buf_adds(b, " more are only reserved");
	}
}

static void kind_line(const struct as_model *m, const struct as_rec_heap_rss *r, enum kind kind,
		      const struct as_style *style, struct as_buf *out)
{
	uint64_t bytes = sum_of(m, r->process, kind);
	struct as_buf b = {0};

	if (!bytes && kind != LIVE &&
	    (kind != MAPPING || untouched_of(m, r->process, RESERVED) < RESERVED_MIN))
		return;
	as_buf_adds(&b, kinds[kind].what);
	add_names(m, r->process, kind, &b);
	if (kind == LIVE && r->untouched_bytes) {
		as_buf_adds(&b, "; ");
		as_fmt_bytes(&b, r->untouched_bytes);
		as_buf_adds(&b, " more were never touched, or are swapped out");
	}
	if (kind == MAPPING)
		add_unused(m, r->process, &b);
	if (kind == HELD && r->free_bytes) {
		as_buf_adds(&b, "; ");
		as_fmt_bytes(&b, r->free_bytes);
		as_buf_adds(&b, " of it in pages without a live block");
	}
	amount_line(style, bytes, b.p, out);
	as_buf_clear(&b);
}

/* What the parts leave open: pages of zeros that were only read. */
static void difference_line(const struct as_model *m, const struct as_rec_heap_rss *r,
			    const struct as_style *style, struct as_buf *out)
{
	uint64_t sum = 0, off;

	for (unsigned k = 0; k < KINDS; k++)
		sum += sum_of(m, r->process, k);
	off = AS_MAX(sum, r->rss_bytes) - AS_MIN(sum, r->rss_bytes);
	if (off * 100 < r->rss_bytes)
		return;
	amount_line(style, off,
		    sum > r->rss_bytes
			    ? "too much above: pages that were read and never written"
			    : "not explained",
		    out);
}

/* ---- pinned pages ---- */

static const char *function_name(const struct as_model *m, uint32_t function)
{
	return function == AS_NONE ? "(no stack)" : m->functions.v[function].brief;
}

static void pin_lines(const struct as_model *m, const struct as_rec_heap_rss *r,
		      const struct as_style *style, struct as_buf *out)
{
	struct as_model_pins pins;
	struct as_buf b = {0};

	if (!r->pinned_pages)
		return;
	as_model_pins_find(m, r->process, &pins);
	as_fmt_bytes(&b, r->pinned_bytes);
	as_buf_adds(&b, " are free, but in ");
	as_fmt_count(&b, r->pinned_pages);
	as_buf_adds(&b, " pages that less than a tenth of live bytes keep");
	as_block_label(out, style, "pinned");
	as_block_words(out, style, 7, b.p);
	for (size_t i = 0; i < pins.v.n && i < PINS; i++) {
		as_buf_reset(&b);
		as_fmt_count(&b, pins.v.v[i].pages);
		as_buf_adds(&b, " pages by ");
		as_fmt_count(&b, pins.v.v[i].blocks);
		as_buf_adds(&b, " blocks of ");
		as_buf_adds(&b, function_name(m, pins.v.v[i].function));
		amount_line(style, pins.v.v[i].bytes, b.p, out);
	}
	as_model_pins_clear(&pins);
	as_buf_clear(&b);
}

static void process_text(const struct as_model *m, const struct as_rec_heap_rss *r,
			 const struct as_style *style, struct as_buf *out)
{
	struct as_buf b = {0};

	as_fmt_bytes(&b, r->rss_bytes);
	as_buf_adds(&b, " were resident");
	if (m->heap.look.rss.n > 1)
		as_buf_addf(&b, " in %s (%u)", m->processes.v[r->process].name,
			    m->processes.v[r->process].pid);
	if (r->time_ns > m->recording.start_ns) {
		as_buf_adds(&b, " after ");
		as_fmt_duration(&b, r->time_ns - m->recording.start_ns);
	}
	if (r->swapped_bytes) {
		as_buf_adds(&b, ", ");
		as_fmt_bytes(&b, r->swapped_bytes);
		as_buf_adds(&b, " more swapped out");
	}
	as_block_label(out, style, "memory");
	as_block_words(out, style, 7, b.p);
	for (unsigned k = 0; k < KINDS; k++)
		kind_line(m, r, k, style, out);
	difference_line(m, r, style, out);
	pin_lines(m, r, style, out);
	as_buf_clear(&b);
}

void as_resident_text(const struct as_model *m, const struct as_style *style,
		      struct as_buf *out)
{
	for (size_t i = 0; i < m->heap.look.rss.n && i < PROCESSES; i++)
		process_text(m, &m->heap.look.rss.v[i], style, out);
}

/* ---- as JSON ---- */

static void parts_json(const struct as_model *m, uint64_t process, struct as_json *j)
{
	as_json_arr(j, "parts");
	as_vec_foreach (p, &m->heap.look.parts) {
		if (p->r.process != process)
			continue;
		as_json_obj(j, NULL);
		as_json_str(j, "kind", p->r.kind < KINDS ? kinds[p->r.kind].key : "");
		if (p->r.row)
			as_json_str(j, "function", function_of(m, p->r.row - 1));
		if (*p->name)
			as_json_str(j, "name", p->name);
		as_json_u64(j, "bytes", p->r.bytes);
		as_json_u64(j, "mapped_bytes", p->r.mapped_bytes);
		as_json_end(j);
	}
	as_json_end(j);
}

static void pins_json(const struct as_model *m, uint64_t process, struct as_json *j)
{
	struct as_model_pins pins;

	as_model_pins_find(m, process, &pins);
	as_json_arr(j, "pins");
	as_vec_foreach (p, &pins.v) {
		as_json_obj(j, NULL);
		as_json_str(j, "function", function_name(m, p->function));
		as_json_u64(j, "pages", p->pages);
		as_json_u64(j, "bytes", p->bytes);
		as_json_u64(j, "blocks", p->blocks);
		as_json_u64(j, "live_bytes", p->live_bytes);
		as_json_end(j);
	}
	as_json_end(j);
	as_model_pins_clear(&pins);
}

void as_resident_json(const struct as_model *m, struct as_json *j)
{
	as_json_arr(j, "resident");
	as_vec_foreach (r, &m->heap.look.rss) {
		as_json_obj(j, NULL);
		as_json_u64(j, "pid", m->processes.v[r->process].pid);
		as_json_u64(j, "rss_bytes", r->rss_bytes);
		as_json_u64(j, "swapped_bytes", r->swapped_bytes);
		as_json_u64(j, "untouched_bytes", r->untouched_bytes);
		as_json_u64(j, "free_bytes", r->free_bytes);
		as_json_u64(j, "pinned_pages", r->pinned_pages);
		as_json_u64(j, "pinned_bytes", r->pinned_bytes);
		parts_json(m, r->process, j);
		pins_json(m, r->process, j);
		as_json_end(j);
	}
	as_json_end(j);
}
