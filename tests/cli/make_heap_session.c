/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A session of memory for the command-line tests: a simulated program of two threads writes rings as
 * the in-target runtime does, they are drained, summed up and written.
 *
 *	make-heap-session FILE [N]	N rounds (default 2000); prints what is true as JSON: sums over
 *					all, and per function of the program, counted apart from all of
 *					src/heap
 *	make-heap-session FILE N leaks	looks for leaks at the end, in memory that holds what every
 *					third, fourth and fifth block asks for, see below
 *	make-heap-session FILE N both	with CPU samples beside, in turn on every stack there is; "cpu":
 *					how many, and of those in the allocator how many each
 *					function asked for. What app::load grows app::index has made
 *					then; "made": what is live at the end by who made it
 *
 * Half way stands a mark, "half"; "half" in the truth is what was live then.
 *
 * The functions of the program allocate through what Rust has between (alloc::, RawVec, __rustc::),
 * inlined and not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/heap_rings.h"
#include "base/sys.h"
#include "heap/leak.h"
#include "heap/resident.h"
#include "heap/write.h"

#define START_NS 5000000000ull
#define CODE     0x400000u

enum { PID = 100, THREADS = 2, BLOCKS = 4096 };

/* ---- code: an address per frame, innermost place first ---- */

struct place {
	const char *brief, *crate;
	uint32_t line;
};
enum { MAIN, WORKER, LOAD, INDEX, PARSE, GROW, RUST_ALLOC, TO_OWNED, FRAMES };
static const struct {
	uint32_t n;
	struct place place[3];
} code[FRAMES] = {
	[MAIN] = {1, {{"app::main", "app", 10}}},
	[WORKER] = {1, {{"app::worker", "app", 20}}},
	/* push is inlined into load; what it calls is not */
	[LOAD] = {3,
		  {{"alloc::raw_vec::RawVec<T,A>::grow_one", "alloc", 340},
		   {"alloc::vec::Vec<T,A>::push", "alloc", 2000},
		   {"app::load", "app", 31}}},
	[INDEX] = {2,
		   {{"hashbrown::raw::RawTable<T,A>::reserve", "hashbrown", 900},
		    {"app::index", "app", 42}}},
	[PARSE] = {1, {{"app::parse", "app", 53}}},
	[GROW] = {1, {{"alloc::raw_vec::finish_grow", "alloc", 760}}},
	[RUST_ALLOC] = {1, {{"__rustc::__rust_alloc", "", 0}}},
	[TO_OWNED] = {2,
		      {{"alloc::alloc::alloc", "alloc", 94},
		       {"<str as alloc::borrow::ToOwned>::to_owned", "alloc", 200}}},
};
enum { PATH_LOAD, PATH_INDEX, PATH_PARSE, PATHS };
/* outermost first */
static const struct {
	int thread;
	uint32_t n;
	int frame[4];
	const char *owner;
} paths[PATHS] = {
	{0, 3, {MAIN, LOAD, GROW}, "app::load"},
	{0, 3, {MAIN, INDEX, RUST_ALLOC}, "app::index"},
	{1, 3, {WORKER, PARSE, TO_OWNED}, "app::parse"},
};

/* ---- the program, and what is true of it ---- */

struct block {
	uint64_t ptr, size;
	int path, made; /* made: the path that first had it */
};
static struct block blocks[BLOCKS];
static struct {
	uint64_t allocs, bytes, live_bytes, live_blocks, peak_bytes;
} truth[PATHS], all;
static struct {
	uint64_t bytes, path[PATHS];
} half;
static bool is_both; /* CPU samples beside */
/* Blocks that are live at the end, where leaks are looked for; their classes, by path. */
static struct block *survivor[BLOCKS];
static size_t survivors;
static struct as_heap_amount lost[PATHS], owned[PATHS], possible[PATHS], reachable[PATHS];
static uint64_t frees, next_ptr = 0x7f0000001000, seed = 88172645463325252ull;
static uint32_t node[PATHS][4];
static struct rings rings;
static struct as_heap *heap;

static uint64_t next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

/* An address that no other block has or had. */
static uint64_t take_place(uint64_t size)
{
	uint64_t ptr = next_ptr;

	next_ptr += (size + 31) & ~15ull;
	return ptr;
}

static void note_peak(void)
{
	if (all.live_bytes <= all.peak_bytes)
		return;
	all.peak_bytes = all.live_bytes;
	for (int i = 0; i < PATHS; i++)
		truth[i].peak_bytes = truth[i].live_bytes;
}

static void count_live(int path, int64_t nblocks, int64_t bytes)
{
	truth[path].live_blocks += (uint64_t)nblocks;
	truth[path].live_bytes += (uint64_t)bytes;
	all.live_blocks += (uint64_t)nblocks;
	all.live_bytes += (uint64_t)bytes;
	note_peak();
}

static void begin_event(uint32_t thread)
{
	rings.area.control->clock_ns += 1000;
	(void)rings_time(&rings, thread);
}

static uint32_t node_of(int path)
{
	uint32_t t = (uint32_t)paths[path].thread;

	for (uint32_t i = 0; i < paths[path].n; i++) {
		if (!node[path][i])
			node[path][i] = rings_node(
				&rings, t, i ? node[path][i - 1] : 0,
				CODE + 0x100u * (unsigned)paths[path].frame[i] + 0x10,
				AS_END_ROOT);
	}
	return node[path][paths[path].n - 1];
}

static void allocate(struct block *b, int path, uint64_t size)
{
	*b = (struct block){take_place(size), size, path, path};
	begin_event((uint32_t)paths[path].thread);
	(void)rings_alloc(&rings, (uint32_t)paths[path].thread, b->ptr, size, node_of(path));
	truth[path].allocs++;
	truth[path].bytes += size;
	count_live(path, 1, (int64_t)size);
}

static void release(struct block *b, uint32_t thread)
{
	begin_event(thread);
	(void)rings_free(&rings, thread, b->ptr);
	frees++;
	count_live(b->path, -1, -(int64_t)b->size);
	b->ptr = 0;
}

static void grow(struct block *b, int path, uint64_t size)
{
	struct as_heap_change c = {b->ptr, take_place(size), size};
	uint32_t thread = (uint32_t)paths[path].thread;

	begin_event(thread);
	(void)rings_begin(&rings, thread, b->ptr);
	begin_event(thread);
	(void)rings_realloc(&rings, thread, &c, node_of(path));
	truth[path].allocs++;
	truth[path].bytes += size - b->size;
	frees++;
	count_live(b->path, -1, -(int64_t)b->size);
	count_live(path, 1, (int64_t)size);
	b->path = path;
	b->ptr = c.new_ptr;
	b->size = size;
}

static void round_of_work(uint64_t i)
{
	struct block *b = &blocks[next_random() % BLOCKS], *list = &blocks[BLOCKS - 1];

	if (b != list && b->ptr)
		release(b, (uint32_t)next_random() % THREADS);
	else if (b != list)
		allocate(b, i % 3 ? PATH_PARSE : PATH_INDEX, 16 + next_random() % 200);
	if (i % 100 == 0 && !list->ptr)
		allocate(list, is_both ? PATH_INDEX : PATH_LOAD, 64);
	else if (i % 100 == 0)
		grow(list, PATH_LOAD, list->size * 2);
	if (list->size > 100000)
		release(list, 0), list->size = 0;
}

/* ---- host and session ---- */

static struct as_heap *on_process(void *ctx, uint32_t pid, uint64_t time_ns)
{
	return heap = as_heap_new(time_ns);
}

static uint32_t on_thread(void *ctx, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
	return tid - PID;
}

static bool on_locate(void *ctx, uint32_t pid, uint64_t avma, struct as_heap_frame *ret)
{
	*ret = (struct as_heap_frame){.module = 0, .addr = avma - CODE};
	return true;
}

static uint64_t text(struct as_session_writer *w, const char *s)
{
	return as_session_string(w, s, strlen(s));
}

/* Of a session of both. */
static uint64_t cpu_samples, made[PATHS], in_allocator[PATHS];

static int path_of_allocator(unsigned c)
{
	for (int i = 0; i < PATHS; i++) {
		if (paths[i].frame[paths[i].n - 1] == (int)c)
			return i;
	}
	return -1;
}

static void write_samples(struct as_session_writer *w, const struct as_heap_stacks *s)
{
	for (uint64_t i = 0; i < cpu_samples; i++) {
		uint32_t at = (uint32_t)(next_random() % s->stacks.n);
		unsigned c = (unsigned)(s->frames.v[s->stacks.v[at].frame].addr / 0x100);
		int path = path_of_allocator(c);

		as_write_sample(
			w, &(struct as_rec_sample){
				   .time_rel = START_NS + i * 1000 + next_random() % 500,
				   .thread = c == WORKER || c == PARSE || path == PATH_PARSE,
				   .stack = at + 1ull,
				   .weight = 1000,
				   .end = AS_END_ROOT});
		if (path >= 0)
			in_allocator[path]++;
	}
}

static void write_begin(struct as_session_writer *w)
{
	uint64_t name = text(w, "app");

	as_write_arg(w, &(struct as_rec_arg){.text = AS_STR("./app")});
	as_write_recording(
		w, &(struct as_rec_recording){.start_ns = START_NS,
					      .rate_hz = cpu_samples ? 997 : 0,
					      .start_realtime_ns = 1700000000000000000});
	as_write_heap(w, &(struct as_rec_heap){.flags = survivors > 0, .start_ns = START_NS});
	as_write_module(w, &(struct as_rec_module){.path = text(w, "/home/u/app")});
	as_write_process(
		w, &(struct as_rec_process){.pid = PID, .start_ns = START_NS, .name = name});
	for (uint64_t t = 0; t < THREADS; t++)
		as_write_thread(w,
				&(struct as_rec_thread){.id = t,
							.tid = PID + t,
							.name = text(w, t ? "worker" : "app")});
}

static void write_names(struct as_session_writer *w, const struct as_heap_stacks *s)
{
	uint64_t nfunctions = 0;

	for (uint64_t f = 0; f < s->frames.n; f++) {
		unsigned c = (unsigned)(s->frames.v[f].addr / 0x100);
		uint64_t chain[12];

		for (uint32_t i = 0; i < code[c].n; i++) {
			const struct place *p = &code[c].place[i];
			uint64_t name = text(w, p->brief);

			as_write_function(
				w, &(struct as_rec_function){.id = nfunctions,
							     .module = 1,
							     .linkage = name,
							     .full = name,
							     .brief = name,
							     .crate = text(w, p->crate),
							     .file = text(w, "src/app.rs"),
							     .line = p->line,
							     .lang = 1});
			memcpy(chain + 4 * i,
			       (uint64_t[4]){nfunctions++, text(w, "src/app.rs"), p->line,
					     (uint64_t)(i + 1 < code[c].n) << 32},
			       32);
		}
		as_write_symbol(
			w, &(struct as_rec_symbol){.frame = f,
						   .chain = {chain, 4 * (size_t)code[c].n}});
	}
}

static void write_all(struct as_session_writer *w, const struct as_heap_stacks *s,
		      const struct as_heap_drained *p)
{
	struct as_heap_writer o;

	write_begin(w);
	as_heap_writer_init(&o, w, s);
	as_heap_write_stacks(&o);
	write_names(w, s);
	write_samples(w, s);
	as_heap_write(&o, 0, p);
	as_heap_writer_clear(&o);
	as_write_heap_layer(w, &(struct as_rec_heap_layer){.layer = AS_STR("entry"),
							   .module = 1,
							   .function = AS_STR("malloc"),
							   .events = p->heap->events});
	as_write_summary(w, &(struct as_rec_summary){.end_ns = rings.area.control->clock_ns,
						     .user_ns = cpu_samples * 1000,
						     .samples = cpu_samples,
						     .wall_ns = rings.area.control->clock_ns -
								START_NS});
}

/* All that was written has been read: nothing waits for another ring. */
static void mark_half(struct as_heap_drain *d)
{
	(void)as_heap_drain_round(d, rings.area.control->clock_ns + 1);
	as_heap_mark(heap, "half", 4);
	half.bytes = all.live_bytes;
	for (int i = 0; i < PATHS; i++)
		half.path[i] = truth[i].live_bytes;
}

/* ---- a look at the end ---- */

/* Of five blocks in the order of their table: the first is lost, the second is what it points to, the
 * third has a pointer inside only, the others are pointed to. */
enum { LOST, OWNED, POSSIBLE, FATES = 5 };

static struct block *find_survivor(uint64_t avma, size_t *ret)
{
	for (*ret = 0; *ret < survivors; ++*ret) {
		struct block *b = survivor[*ret];

		if (avma >= b->ptr && avma < b->ptr + b->size)
			return b;
	}
	return NULL;
}

/* All is zero but for the first word of a lost block. */
static size_t read_memory(void *ctx, const struct as_leak_range *v, size_t n, void *buf)
{
	size_t sum = 0;

	for (size_t i = 0, k; i < n; i++) {
		uint64_t *to = (uint64_t *)((uint8_t *)buf + sum);

		memset(to, 0, v[i].high - v[i].low);
		if (find_survivor(v[i].low, &k) && survivor[k]->ptr == v[i].low &&
		    k % FATES == LOST && k + 1 < survivors)
			*to = survivor[k + 1]->ptr;
		sum += v[i].high - v[i].low;
	}
	return sum;
}

static void count_fate(size_t i)
{
	struct as_heap_amount *to = i % FATES == LOST       ? lost
				    : i % FATES == OWNED    ? owned
				    : i % FATES == POSSIBLE ? possible
							    : reachable;
	/* owned ones are counted with their owner */
	int path = survivor[i % FATES == OWNED ? i - 1 : i]->path;

	to[path].blocks++;
	to[path].bytes += survivor[i]->size;
}

static void find_leaks(void)
{
	struct as_leak_memory memory = {.read = read_memory};
	struct as_leaks l;

	for (size_t i = 0; i < BLOCKS; i++) {
		if (blocks[i].ptr)
			survivor[survivors++] = &blocks[i];
	}
	as_leaks_init(&l, &memory);
	as_leaks_add_live(&l, heap);
	as_leaks_seal(&l);
	for (size_t i = 0; i < survivors; i++) {
		count_fate(i);
		if (i % FATES == POSSIBLE)
			as_leaks_root_word(&l, survivor[i]->ptr + 8);
		else if (i % FATES > POSSIBLE)
			as_leaks_root_word(&l, survivor[i]->ptr);
	}
	as_leaks_finish(&l);
	heap->leaks = as_xcalloc(1, sizeof *heap->leaks);
	heap->leaks->time_ns = rings.area.control->clock_ns;
	heap->leaks->at_exit = true;
	heap->leaks->threads = THREADS;
	as_heap_leaks_sum(&l, heap->leaks);
	as_leaks_clear(&l);
}

static void add_part(enum as_resident_kind kind, const char *name, uint64_t bytes)
{
	as_vec_push(&heap->resident->parts,
		    (struct as_resident_part){.kind = kind,
					      .tally = AS_RESIDENT_NO_TALLY,
					      .name = name ? as_xstrdup(name) : NULL,
					      .bytes = bytes,
					      .mapped_bytes = bytes});
	heap->resident->rss_bytes += bytes;
}

static void explain_memory(void)
{
	heap->resident = as_xcalloc(1, sizeof *heap->resident);
	heap->resident->time_ns = rings.area.control->clock_ns;
	heap->resident->untouched_bytes = 4096;
	heap->resident->free_bytes = 300 << 10;
	heap->resident->pinned_pages = 40;
	heap->resident->pinned_bytes = 40 * 3900;
	add_part(AS_RESIDENT_LIVE, NULL, all.live_bytes - 4096);
	add_part(AS_RESIDENT_ROUNDING, NULL, 16 * all.live_blocks);
	add_part(AS_RESIDENT_HELD, "main arena", 400 << 10);
	add_part(AS_RESIDENT_HELD, "arena 2", 200 << 10);
	add_part(AS_RESIDENT_STACKS, NULL, 64 << 10);
	add_part(AS_RESIDENT_MODULE, "/home/u/app", 900 << 10);
	add_part(AS_RESIDENT_MODULE, "/usr/lib/libc.so.6", 1500 << 10);
	add_part(AS_RESIDENT_FILE, "/home/u/data", 32 << 10);
	add_part(AS_RESIDENT_ASSAY, NULL, 128 << 10);
	as_vec_push(&heap->resident->pins,
		    (struct as_resident_pin){.tally = heap->leaks->rows.v[0].tally,
					     .pages = 40,
					     .bytes = 40 * 3900,
					     .blocks = 50,
					     .live_bytes = 40 * 196});
}

static void print_fate(const char *key, const struct as_heap_amount *of_path)
{
	struct as_heap_amount sum = {0};

	for (int i = 0; i < PATHS; i++) {
		sum.blocks += of_path[i].blocks;
		sum.bytes += of_path[i].bytes;
		printf(",\"%s(%s)\":[%llu,%llu]", key, paths[i].owner,
		       (unsigned long long)of_path[i].blocks,
		       (unsigned long long)of_path[i].bytes);
	}
	printf(",\"%s\":[%llu,%llu]", key, (unsigned long long)sum.blocks,
	       (unsigned long long)sum.bytes);
}

static void print_truth(void)
{
	printf("{\"allocs\":%llu,\"frees\":%llu,\"bytes\":%llu,\"live_bytes\":%llu,"
	       "\"live_blocks\":%llu,\"peak_bytes\":%llu",
	       (unsigned long long)all.allocs, (unsigned long long)frees,
	       (unsigned long long)all.bytes, (unsigned long long)all.live_bytes,
	       (unsigned long long)all.live_blocks, (unsigned long long)all.peak_bytes);
	for (int i = 0; i < PATHS; i++)
		printf(",\"%s\":{\"allocs\":%llu,\"bytes\":%llu,\"live_bytes\":%llu,"
		       "\"live_blocks\":%llu,\"peak_bytes\":%llu}",
		       paths[i].owner, (unsigned long long)truth[i].allocs,
		       (unsigned long long)truth[i].bytes,
		       (unsigned long long)truth[i].live_bytes,
		       (unsigned long long)truth[i].live_blocks,
		       (unsigned long long)truth[i].peak_bytes);
	printf(",\"half\":{\"live_bytes\":%llu", (unsigned long long)half.bytes);
	for (int i = 0; i < PATHS; i++)
		printf(",\"%s\":%llu", paths[i].owner, (unsigned long long)half.path[i]);
	printf("}");
	if (cpu_samples) {
		printf(",\"cpu\":{\"samples\":%llu", (unsigned long long)cpu_samples);
		for (int i = 0; i < PATHS; i++)
			printf(",\"%s\":%llu", paths[i].owner,
			       (unsigned long long)in_allocator[i]);
		printf("},\"made\":{\"\":0");
		for (int i = 0; i < PATHS; i++)
			printf(",\"%s\":%llu", paths[i].owner, (unsigned long long)made[i]);
		printf("}");
	}
	if (survivors) {
		print_fate("lost", lost);
		print_fate("indirect", owned);
		print_fate("possible", possible);
		print_fate("reachable", reachable);
		printf(",\"resident\":%llu", (unsigned long long)heap->resident->rss_bytes);
	}
	printf("}\n");
}

int main(int argc, char **argv)
{
	struct as_heap_host host = {NULL, on_process, on_thread, on_locate, NULL};
	struct as_heap_stacks stacks = {0};
	struct as_session_writer *w;
	struct as_heap_drain *d;
	uint64_t rounds = 2000;
	size_t n;

	if (argc < 2 || (argc > 2 && !as_parse_u64(argv[2], &rounds)) ||
	    as_session_writer_open(argv[1], &w, NULL) < 0)
		return 2;
	is_both = argc > 3 && strcmp(argv[3], "both") == 0;
	rings_init(&rings, THREADS, 1 << 20);
	rings.area.control->clock_ns = START_NS;
	d = as_heap_drain_new(&rings.area, &host, &stacks);
	for (uint32_t t = 0; t < THREADS; t++)
		rings_thread(&rings, t, PID, PID + t);
	for (uint64_t i = 0; i < rounds; i++) {
		round_of_work(i);
		if (i % 500 == 0)
			(void)as_heap_drain_round(d, rings.area.control->clock_ns);
		if (i ==
		    rounds / 2 + 50) /* no realloc then: one is open until its thread goes on */
			mark_half(d);
	}
	as_heap_drain_finish(d);
	as_heap_finish(heap);
	if (is_both) {
		cpu_samples = rounds;
		for (int i = 0; i < BLOCKS; i++)
			made[blocks[i].made] += blocks[i].ptr ? blocks[i].size : 0;
	} else if (argc > 3) {
		find_leaks();
		explain_memory();
	}
	for (int i = 0; i < PATHS; i++) {
		all.allocs += truth[i].allocs;
		all.bytes += truth[i].bytes;
	}
	write_all(w, &stacks, as_heap_drain_processes(d, &n));
	if (as_session_writer_finish(w, NULL) < 0)
		return 1;
	as_session_writer_close(w);
	print_truth();
	as_heap_drain_free(d);
	as_heap_stacks_clear(&stacks);
	as_heap_free_all(heap);
	rings_clear(&rings);
	return 0;
}
