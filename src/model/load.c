/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Session records -> columns. Nothing in a file is believed: ids must be dense and defined
 * before use (what is not is left out and counted in `damaged`), a stack's parent comes before
 * it, so there are no cycles, and all memory stays below a budget that grows with the size of
 * the file.
 */
#include "model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/sys.h"
#include "model/model_priv.h"

/* A sample takes about 3 bytes of a file at the least and 24 here. */
#define BUDGET_BASE  (256ull << 20)
#define BUDGET_RATIO 64ull
#define TRIALS_MAX   100000
#define BUDGET_PIPE  (8ull << 30) /* size unknown */

int as_loader_charge(struct as_loader *l, uint64_t bytes)
{
	l->used_bytes += bytes;
	if (l->used_bytes <= l->budget_bytes)
		return AS_OK;
	return as_fail(l->err, AS_E_LIMIT, 0,
		       "the session unpacks to more than a file of its size can hold "
		       "(over %llu MiB): it is damaged or was made to harm",
		       (unsigned long long)(l->budget_bytes >> 20));
}

int as_loader_damaged(struct as_loader *l)
{
	l->m->damaged++;
	return AS_OK;
}

static const char *text(struct as_loader *l, const struct as_str *s)
{
	return s->n ? as_arena_strndup(&l->m->arena, s->p, s->n) : "";
}

const char *as_loader_string(const struct as_loader *l, uint64_t id)
{
	if (id < l->m->strings.n)
		return l->m->strings.v[id];
	l->m->damaged++;
	return "";
}

static uint32_t saturate32(uint64_t v)
{
	return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

/* ---- facts ---- */

static int on_info(void *ctx, const struct as_rec_info *r)
{
	struct as_loader *l = ctx;

	as_vec_push(&l->m->info, (struct as_m_info){text(l, &r->key), text(l, &r->value)});
	return as_loader_charge(l, sizeof(struct as_m_info) + r->key.n + r->value.n);
}

static int on_arg(void *ctx, const struct as_rec_arg *r)
{
	struct as_loader *l = ctx;

	as_vec_push(&l->m->args, text(l, &r->text));
	return as_loader_charge(l, sizeof(char *) + r->text.n);
}

static int on_recording(void *ctx, const struct as_rec_recording *r)
{
	((struct as_loader *)ctx)->m->recording = *r;
	return AS_OK;
}

static int on_summary(void *ctx, const struct as_rec_summary *r)
{
	struct as_model *m = ((struct as_loader *)ctx)->m;

	m->summary = *r;
	m->has_summary = true;
	return AS_OK;
}

/* Trials come in order and apart: blocks are laid out by them. */
static int on_trial(void *ctx, const struct as_rec_trial *r)
{
	struct as_loader *l = ctx;
	struct as_model *m = l->m;

	if (r->trial != m->trials.n || r->end_ns < r->start_ns || r->trial >= TRIALS_MAX ||
	    (m->trials.n && r->start_ns < m->trials.v[m->trials.n - 1].end_ns))
		return as_loader_damaged(l);
	as_vec_push(&m->trials,
		    (struct as_m_trial){r->start_ns, r->end_ns, r->cpu_ns, r->exit});
	return as_loader_charge(l, sizeof(struct as_m_trial));
}

static int on_string(void *ctx, const struct as_rec_string *r)
{
	struct as_loader *l = ctx;

	if (r->id != l->m->strings.n)
		return r->id == 0 ? AS_OK : as_loader_damaged(l);
	as_vec_push(&l->m->strings, text(l, &r->text));
	return as_loader_charge(l, sizeof(char *) + r->text.n);
}

static int on_note(void *ctx, const struct as_rec_note *r)
{
	struct as_loader *l = ctx;

	as_vec_push(&l->m->notes,
		    (struct as_m_note){(int)AS_MIN(r->level, 2u), as_loader_string(l, r->about),
				       text(l, &r->text), text(l, &r->remedy)});
	return as_loader_charge(l, sizeof(struct as_m_note) + r->text.n + r->remedy.n);
}

/* ---- modules, processes, threads ---- */

static const char *module_name(enum as_module_kind kind, const char *path)
{
	static const char *const fixed[] = {[AS_MODULE_VDSO] = "[vdso]",
					    [AS_MODULE_KERNEL] = "[kernel]",
					    [AS_MODULE_JIT] = "[jit]"};
	const char *slash;

	if (kind < AS_ARRAY_LEN(fixed) && fixed[kind])
		return fixed[kind];
	slash = strrchr(path, '/');
	if (slash && slash[1])
		return slash + 1;
	return path[0] ? path : "[unnamed]";
}

static int on_module(void *ctx, const struct as_rec_module *r)
{
	struct as_loader *l = ctx;
	struct as_m_module m = {0};

	if (r->id != l->m->modules.n || r->kind > AS_MODULE_JIT)
		return as_loader_damaged(l);
	m.kind = (enum as_module_kind)r->kind;
	m.path = as_loader_string(l, r->path);
	m.name = module_name(m.kind, m.path);
	m.debug_path = as_loader_string(l, r->debug_path);
	m.own = m.kind == AS_MODULE_JIT && (r->flags & AS_MODULE_OWN);
	m.build_id_len = (uint8_t)AS_MIN(r->build_id.n, sizeof m.build_id);
	memcpy(m.build_id, r->build_id.p, m.build_id_len);
	as_vec_push(&l->m->modules, m);
	return as_loader_charge(l, sizeof m);
}

static int on_process(void *ctx, const struct as_rec_process *r)
{
	struct as_loader *l = ctx;

	if (r->id != l->m->processes.n)
		return as_loader_damaged(l);
	as_vec_push(&l->m->processes,
		    (struct as_m_process){.pid = saturate32(r->pid),
					  .parent = r->parent > r->id ? AS_NONE
								      : (uint32_t)r->parent - 1,
					  .name = as_loader_string(l, r->name),
					  .start_ns = r->start_ns});
	return as_loader_charge(l, sizeof(struct as_m_process));
}

static int on_thread(void *ctx, const struct as_rec_thread *r)
{
	struct as_loader *l = ctx;

	if (r->id != l->m->threads.n || r->process >= l->m->processes.n)
		return as_loader_damaged(l);
	as_vec_push(&l->m->threads, (struct as_m_thread){.tid = saturate32(r->tid),
							 .process = (uint32_t)r->process,
							 .name = as_loader_string(l, r->name),
							 .start_ns = r->start_ns});
	return as_loader_charge(l, sizeof(struct as_m_thread));
}

static int on_name(void *ctx, const struct as_rec_name *r)
{
	struct as_loader *l = ctx;
	struct as_m_thread *t;

	if (r->thread >= l->m->threads.n)
		return as_loader_damaged(l);
	t = &l->m->threads.v[r->thread];
	t->name = as_loader_string(l, r->name);
	if (t->process < l->m->processes.n && l->m->processes.v[t->process].pid == t->tid)
		l->m->processes.v[t->process].name = t->name; /* as ps shows it */
	return AS_OK;
}

static int on_exec(void *ctx, const struct as_rec_exec *r)
{
	struct as_loader *l = ctx;

	if (r->process >= l->m->processes.n)
		return as_loader_damaged(l);
	l->m->processes.v[r->process].name = as_loader_string(l, r->name);
	return AS_OK;
}

static int on_exit_rec(void *ctx, const struct as_rec_exit *r)
{
	struct as_loader *l = ctx;
	struct as_m_thread *t;

	if (r->thread >= l->m->threads.n)
		return as_loader_damaged(l);
	t = &l->m->threads.v[r->thread];
	t->end_ns = r->time_ns;
	if (r->process_too)
		l->m->processes.v[t->process].end_ns = r->time_ns;
	return AS_OK;
}

static int on_map(void *ctx, const struct as_rec_map *r)
{
	struct as_loader *l = ctx;

	if (r->process >= l->m->processes.n || r->module >= l->m->modules.n)
		return as_loader_damaged(l);
	as_vec_push(&l->m->maps, (struct as_m_map){.time_ns = r->time_ns,
						   .avma = r->avma,
						   .size_bytes = r->size_bytes,
						   .off = r->off,
						   .svma = r->svma - 1,
						   .knows_svma = r->svma != 0,
						   .process = (uint32_t)r->process,
						   .module = (uint32_t)r->module});
	return as_loader_charge(l, sizeof(struct as_m_map));
}

/* ---- code ---- */

static int on_frame(void *ctx, const struct as_rec_frame *r)
{
	struct as_loader *l = ctx;

	if (r->id != l->m->frames.n || r->module > l->m->modules.n)
		return as_loader_damaged(l);
	as_vec_push(&l->m->frames, (struct as_m_frame){.module = (uint32_t)r->module - 1,
						       .flags = (uint32_t)r->flags,
						       .addr = r->addr});
	return as_loader_charge(l, sizeof(struct as_m_frame));
}

static int on_stack(void *ctx, const struct as_rec_stack *r)
{
	struct as_loader *l = ctx;

	if (r->id != l->m->stacks.n || r->parent > r->id || r->frame >= l->m->frames.n)
		return as_loader_damaged(l);
	as_vec_push(&l->m->stacks,
		    (struct as_m_stack){(uint32_t)r->parent - 1, (uint32_t)r->frame});
	return as_loader_charge(l, sizeof(struct as_m_stack));
}

static int on_function(void *ctx, const struct as_rec_function *r)
{
	struct as_loader *l = ctx;
	struct as_m_function f = {
		.module = r->module && r->module <= l->m->modules.n ? (uint32_t)r->module - 1
								    : AS_NONE,
		.linkage = as_loader_string(l, r->linkage),
		.full = as_loader_string(l, r->full),
		.brief = as_loader_string(l, r->brief),
		.crate = as_loader_string(l, r->crate),
		.file = as_loader_string(l, r->file),
		.generic = as_loader_string(l, r->generic),
		.line = saturate32(r->line),
		.lang = (uint8_t)r->lang,
		.flags = (uint8_t)r->flags & ~AS_FUNCTION_MARKER,
	};

	if (r->id != l->m->functions.n)
		return as_loader_damaged(l);
	as_vec_push(&l->m->functions, f);
	return as_loader_charge(l, sizeof f);
}

/* A later record for the same frame replaces the earlier one: names can be resolved again. */
static int on_symbol(void *ctx, const struct as_rec_symbol *r)
{
	struct as_loader *l = ctx;
	struct as_model *m = l->m;
	struct as_m_frame *f;

	if (r->frame >= m->frames.n || r->chain.n / 4 + m->places.n > UINT32_MAX)
		return as_loader_damaged(l);
	f = &m->frames.v[r->frame];
	f->chain = (uint32_t)m->places.n;
	f->nchain = 0;
	for (size_t i = 0; i + 4 <= r->chain.n; i += 4) {
		const uint64_t *v = r->chain.v + i;
		uint64_t flags = v[3] >> 32;

		if (v[0] >= m->functions.n) {
			m->damaged++;
			continue;
		}
		as_vec_push(&m->places,
			    (struct as_m_place){.function = (uint32_t)v[0],
						.file = as_loader_string(l, v[1]),
						.line = saturate32(v[2]),
						.column = (uint32_t)v[3],
						.inlined = flags & 1,
						.line_from_call = (flags & 2) != 0});
		f->nchain++;
	}
	return as_loader_charge(l, f->nchain * sizeof(struct as_m_place));
}

/* ---- samples ---- */

static int on_sample(void *ctx, const struct as_rec_sample *r)
{
	struct as_loader *l = ctx;
	struct as_model *m = l->m;
	uint64_t end = r->end;

	if (r->thread >= m->threads.n || r->stack > m->stacks.n || m->samples.n >= AS_NONE)
		return as_loader_damaged(l);
	if ((end & AS_SAMPLE_END_MASK) >= AS_END_COUNT_)
		end = (end & ~(uint64_t)AS_SAMPLE_END_MASK) | AS_END_BAD;
	if (m->samples.n && r->time_rel < m->samples.v[m->samples.n - 1].time_ns)
		l->sorted = false;
	as_vec_push(&m->samples,
		    (struct as_m_sample){.time_ns = r->time_rel,
					 .thread = (uint32_t)r->thread,
					 .stack = (uint32_t)r->stack - 1,
					 .weight = saturate32(r->weight),
					 .cpu = (uint16_t)AS_MIN(r->cpu, UINT16_MAX),
					 .end = (uint16_t)end});
	return as_loader_charge(l, sizeof(struct as_m_sample));
}

static int on_lost(void *ctx, const struct as_rec_lost *r)
{
	struct as_loader *l = ctx;
	struct as_model *m = l->m;

	if (r->source != AS_LOSS_KERNEL && r->source != AS_LOSS_QUEUE) {
		m->lost_side += r->count;
		return AS_OK;
	}
	*(r->source == AS_LOSS_KERNEL ? &m->lost_kernel : &m->lost_queue) += r->count;
	as_vec_push(&m->losses, (struct as_m_loss){.from_ns = r->time_rel,
						   .to_ns = r->time_rel,
						   .count = r->count,
						   .cpu = saturate32(r->cpu)});
	return as_loader_charge(l, sizeof(struct as_m_loss));
}

static int on_tick(void *ctx, const struct as_rec_tick *r)
{
	struct as_loader *l = ctx;

	as_vec_push(&l->m->ticks, (struct as_m_tick){
					  .time_ns = r->time_rel,
					  .cpu = saturate32(r->cpu),
					  .taken = r->taken,
					  .delivered = r->delivered,
					  .lost_kernel = r->lost_kernel,
					  .lost_queue = r->lost_queue,
					  .filtered = r->filtered,
					  .throttled = r->throttled,
				  });
	return as_loader_charge(l, sizeof(struct as_m_tick));
}

#define DIGIT_BITS 11
#define DIGITS     (1u << DIGIT_BITS)

/* One stable pass by the digit at `shift`; false: all have the same, nothing was moved. */
static bool radix_pass(const struct as_m_sample *from, struct as_m_sample *to, size_t n,
		       uint64_t base, unsigned shift)
{
	_Static_assert(DIGITS * sizeof(size_t) <= 65536, "fits the stack");
	size_t at[DIGITS] = {0}, sum = 0;

	for (size_t i = 0; i < n; i++)
		at[(from[i].time_ns - base) >> shift & (DIGITS - 1)]++;
	for (unsigned d = 0; d < DIGITS; d++) {
		size_t count = at[d];

		if (count == n)
			return false;
		at[d] = sum;
		sum += count;
	}
	for (size_t i = 0; i < n; i++)
		to[at[(from[i].time_ns - base) >> shift & (DIGITS - 1)]++] = from[i];
	return true;
}

/* Samples of several CPUs arrive interleaved by drains. Linear and stable whatever the order. */
static void sort_samples(struct as_model *m)
{
	size_t n = m->samples.n;
	struct as_m_sample *a = m->samples.v;
	struct as_m_sample *b = as_xreallocarray(NULL, n, sizeof *b);
	uint64_t base = UINT64_MAX, top = 0;

	for (size_t i = 0; i < n; i++) {
		base = AS_MIN(base, a[i].time_ns);
		top = AS_MAX(top, a[i].time_ns);
	}
	for (unsigned shift = 0; shift < 64 && (top - base) >> shift; shift += DIGIT_BITS) {
		if (radix_pass(a, b, n, base, shift)) {
			struct as_m_sample *t = a;

			a = b;
			b = t;
		}
	}
	free(b);
	m->samples.v = a;
	m->samples.cap = n;
}

/* A source that knows no weights: every sample is one. */
static void default_weights(struct as_model *m)
{
	as_vec_foreach (s, &m->samples) {
		if (s->weight)
			return;
	}
	as_vec_foreach (s, &m->samples)
		s->weight = 1;
}

/* The recorder died in a trial: what came after the one before is that trial. */
static void complete_trials(struct as_model *m)
{
	uint64_t end, last;

	if (!m->trials.n || m->has_summary || !m->samples.n)
		return;
	end = m->trials.v[m->trials.n - 1].end_ns;
	last = m->samples.v[m->samples.n - 1].time_ns;
	if (last > end)
		as_vec_push(&m->trials, (struct as_m_trial){end + 1, last, 0, UINT64_MAX});
}

/* A run that did not count, after the last one that did. */
static void drop_uncounted(struct as_model *m)
{
	if (!m->trials.n || !m->has_summary)
		return;
	while (m->samples.n &&
	       m->samples.v[m->samples.n - 1].time_ns > m->trials.v[m->trials.n - 1].end_ns)
		m->samples.n--;
}

static int on_overhead(void *ctx, const struct as_rec_overhead *r)
{
	struct as_model *m = ((struct as_loader *)ctx)->m;

	m->overhead = *r;
	return 0;
}

static void note_damage(struct as_loader *l)
{
	struct as_model *m = l->m;
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	m->damaged += m->health.bad_records;
	if (m->damaged)
		as_buf_addf(&b, "%llu records of the session made no sense and were left out",
			    (unsigned long long)m->damaged);
	if (m->health.bad_chunks)
		as_buf_addf(&b, "%sthe session is damaged: %llu bytes could not be read",
			    b.len ? "; " : "", (unsigned long long)m->health.bytes_missing);
	if (b.len)
		as_vec_push(&m->notes, (struct as_m_note){2, m->path,
							  as_arena_strdup(&m->arena, b.p), ""});
}

static const struct as_record_sink load_sink = {
	.info = on_info,
	.arg = on_arg,
	.recording = on_recording,
	.summary = on_summary,
	.trial = on_trial,
	.overhead = on_overhead,
	.string = on_string,
	.note = on_note,
	.module = on_module,
	.process = on_process,
	.thread = on_thread,
	.name = on_name,
	.exec = on_exec,
	.exit = on_exit_rec,
	.map = on_map,
	.frame = on_frame,
	.stack = on_stack,
	.function = on_function,
	.symbol = on_symbol,
	.sample = on_sample,
	.lost = on_lost,
	.tick = on_tick,
	.source = as_load_source,
	.code = as_load_code,
	.code_lines = as_load_code_lines,
	.code_names = as_load_code_names,
};

struct bytes {
	const void *p;
	size_t n;
};

static int load(const char *path, const struct bytes *mem, struct as_model **ret,
		struct as_error *err)
{
	struct as_error local = {0};
	struct as_loader l = {.m = as_xcalloc(1, sizeof *l.m),
			      .err = err ? err : &local,
			      .budget_bytes = BUDGET_PIPE,
			      .sorted = true};
	struct as_record_sink sink = load_sink;
	struct stat st;
	int r;

	sink.ctx = &l;
	as_load_heap(&sink);
	l.m->path = as_arena_strdup(&l.m->arena, path);
	as_vec_push(&l.m->strings, "");
	if (mem)
		l.budget_bytes = BUDGET_BASE + BUDGET_RATIO * mem->n;
	else if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
		l.budget_bytes = BUDGET_BASE + BUDGET_RATIO * (uint64_t)st.st_size;
	r = mem ? as_session_read_mem(mem->p, mem->n, &sink, &l.m->health, l.err)
		: as_session_read(path, &sink, &l.m->health, l.err);
	if (r < 0) {
		as_model_free(l.m);
		return r;
	}
	if (!l.sorted)
		sort_samples(l.m);
	default_weights(l.m);
	as_model_order_losses(l.m);
	complete_trials(l.m);
	drop_uncounted(l.m);
	note_damage(&l);
	as_model_complete(l.m);
	as_time_complete(l.m);
	as_heap_complete(l.m);
	*ret = l.m;
	return AS_OK;
}

int as_model_load(const char *path, struct as_model **ret, struct as_error *err)
{
	return load(path, NULL, ret, err);
}

int as_model_load_mem(const void *p, size_t n, struct as_model **ret, struct as_error *err)
{
	return load("(memory)", &(struct bytes){p, n}, ret, err);
}

void as_model_free(struct as_model *m)
{
	if (!m)
		return;
	as_vec_clear(&m->strings);
	as_vec_clear(&m->modules);
	as_vec_clear(&m->processes);
	as_vec_clear(&m->threads);
	as_vec_clear(&m->maps);
	as_vec_clear(&m->functions);
	as_vec_clear(&m->places);
	as_vec_clear(&m->frames);
	as_vec_clear(&m->stacks);
	as_vec_clear(&m->samples);
	as_vec_clear(&m->ticks);
	as_vec_clear(&m->losses);
	as_vec_clear(&m->trials);
	as_vec_clear(&m->notes);
	as_vec_clear(&m->args);
	as_vec_clear(&m->info);
	as_vec_clear(&m->codes);
	as_vec_clear(&m->code_ranges);
	as_vec_clear(&m->code_places);
	as_vec_clear(&m->code_names);
	as_vec_clear(&m->sources);
	as_heap_clear(m);
	as_time_clear(m);
	as_arena_clear(&m->arena);
	free(m);
}

const char *as_model_info(const struct as_model *m, const char *key)
{
	as_vec_foreach (i, &m->info) {
		if (strcmp(i->key, key) == 0)
			return i->value;
	}
	return "";
}
