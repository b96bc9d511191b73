/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sessions for the command-line tests, the same on every run.
 *
 *	make-session story FILE		a Rust program on two threads, all well
 *	make-session run FILE N		the same program in another run, the N-th
 *	make-session rebuilt FILE N	another build's N-th run: closures counted anew, code moved by
 *					seven lines, and tokenize itself takes 146 -> 246 of 1000 + 100
 *	make-session trouble FILE	cut stacks, losses, nameless code, notes
 *	make-session hostile FILE	names that try to break out of terminals, SVG, CSV and JSON
 *	make-session deep FILE		20,000 frames of recursion
 *	make-session empty FILE		no samples
 *	make-session family FILE	three processes, numbers used again, pauses, losses with times,
 *					generated and unknown code, recursion, samples without stacks
 *	make-session big FILE N		N samples on many stacks
 *	make-session trials FILE N	N runs of 1.2 s and more, 100 ms apart, whose shares differ; the
 *					last one has a function that the others have not
 *	make-session beat FILE N	period 10 ms, sampled every 10.2 ms, by up to N %
 *					of that earlier or later
 *	make-session until FILE N	the same, ended because it was enough
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sys.h"
#include "session/session.h"

#define MS       1000000ull
#define START_NS 5000000000ull
#define NONE     UINT64_MAX

struct place { /* a function and the line in it that runs */
	const char *brief, *full, *crate, *file;
	uint32_t line;
	int module;  /* index into modules, -1 unknown */
	int inlined; /* 1: into the next place of the template */
};

/* Outermost first; names are indices into a place table, -1 ends. */
struct template
{
	int share; /* of 1000 */
	int thread;
	int path[12];
};

static struct as_session_writer *w;
static uint64_t nframes, nstacks, nfunctions;
static uint64_t seed = 88172645463325252ull;

static uint64_t next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static uint64_t text(const char *s)
{
	return as_session_string(w, s, strlen(s));
}

static void info(const char *key, const char *value)
{
	as_write_info(w, &(struct as_rec_info){.key = AS_STR(key), .value = AS_STR(value)});
}

enum { EXE, LIBC, KERNEL, NMODULES };

static void begin(const char *path, uint64_t rate, unsigned flags)
{
	static const struct as_module_place {
		const char *path;
		enum as_module_kind kind;
	} modules[NMODULES] = {{"/home/u/indexer/target/release/indexer", AS_MODULE_FILE},
			       {"/usr/lib/x86_64-linux-gnu/libc.so.6", AS_MODULE_FILE},
			       {"[kernel]", AS_MODULE_KERNEL}};
	struct as_error err;

	if (as_session_writer_open(path, &w, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		exit(1);
	}
	info("cwd", "/home/u/indexer");
	info("engine", "kernel");
	info("event", "cpu-clock");
	as_write_arg(w, &(struct as_rec_arg){.text = AS_STR("./target/release/indexer")});
	as_write_arg(w, &(struct as_rec_arg){.text = AS_STR("corpus/")});
	as_write_recording(
		w, &(struct as_rec_recording){
			   .start_ns = START_NS, .rate_hz = rate, .ncpus = 2, .flags = flags});
	for (uint64_t i = 0; i < NMODULES; i++)
		as_write_module(w, &(struct as_rec_module){.id = i,
							   .kind = modules[i].kind,
							   .path = text(modules[i].path)});
	as_write_process(w, &(struct as_rec_process){.id = 0,
						     .pid = 4242,
						     .start_ns = START_NS,
						     .name = text("indexer")});
	as_write_thread(w, &(struct as_rec_thread){.id = 0,
						   .tid = 4242,
						   .start_ns = START_NS,
						   .name = text("indexer")});
	as_write_thread(w, &(struct as_rec_thread){.id = 1,
						   .tid = 4243,
						   .start_ns = START_NS,
						   .name = text("worker-1")});
}

static void end(uint64_t wall_ns, uint64_t cpu_ns, uint64_t samples, int status)
{
	struct as_error err;

	as_write_summary(w, &(struct as_rec_summary){.end_ns = START_NS + wall_ns,
						     .wall_ns = wall_ns,
						     .user_ns = cpu_ns,
						     .exit = (uint64_t)status,
						     .recorder_cpu_ns = wall_ns / 170,
						     .samples = samples});
	if (as_session_writer_finish(w, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		exit(1);
	}
	as_session_writer_close(w);
}

static uint64_t function(const struct place *p)
{
	as_write_function(
		w, &(struct as_rec_function){.id = nfunctions,
					     .module = (uint64_t)(p->module + 1),
					     .linkage = text(p->full ? p->full : p->brief),
					     .full = text(p->full ? p->full : p->brief),
					     .brief = text(p->brief),
					     .crate = text(p->crate),
					     .file = text(p->file),
					     .line = p->line});
	return nfunctions++;
}

static uint64_t frame(const struct place *p, const uint64_t *functions,
		      const struct place *table, const struct place *inlined)
{
	uint64_t chain[8], n = 0;

	as_write_frame(
		w, &(struct as_rec_frame){.id = nframes,
					  .module = (uint64_t)(p->module + 1),
					  .addr = 0x1000 + nframes * 16,
					  .flags = p->module == KERNEL ? AS_FRAME_KERNEL : 0});
	if (inlined) {
		chain[n++] = functions[inlined - table];
		chain[n++] = text(inlined->file);
		chain[n++] = inlined->line + 3;
		chain[n++] = 5 | 1ull << 32;
	}
	chain[n++] = functions[p - table];
	chain[n++] = text(p->file);
	chain[n++] = p->line + 7;
	chain[n++] = 9;
	if (p->module >= 0)
		as_write_symbol(w,
				&(struct as_rec_symbol){.frame = nframes, .chain = {chain, n}});
	return nframes++;
}

static uint64_t stack(uint64_t parent, uint64_t f)
{
	as_write_stack(w,
		       &(struct as_rec_stack){.id = nstacks, .parent = parent + 1, .frame = f});
	return nstacks++;
}

static uint64_t stack_of(const struct template *t, const struct place *table,
			 const uint64_t *functions)
{
	uint64_t at = NONE;

	for (int i = 0; t->path[i] >= 0; i++) {
		const struct place *p = &table[t->path[i]];
		const struct place *inner = t->path[i + 1] >= 0 ? &table[t->path[i + 1]] : NULL;

		if (inner && inner->inlined) {
			at = stack(at, frame(p, functions, table, inner));
			i++;
		} else {
			at = stack(at, frame(p, functions, table, NULL));
		}
	}
	return at;
}

static void sample(uint64_t time_ns, uint64_t thread, uint64_t leaf, uint64_t end, bool kernel)
{
	as_write_sample(w,
			&(struct as_rec_sample){.time_rel = time_ns,
						.thread = thread,
						.cpu = thread,
						.stack = leaf + 1,
						.weight = 1003009,
						.end = end | (kernel ? AS_SAMPLE_KERNEL : 0)});
}

/* ---- story ---- */

static const struct place story_places[] = {
	{"_start", NULL, "", "", 0, EXE, 0},
	{"main", NULL, "", "", 0, EXE, 0},
	{"indexer::main", NULL, "indexer", "/home/u/indexer/src/main.rs", 12, EXE, 0},
	{"indexer::tokenize", NULL, "indexer", "/home/u/indexer/src/tokenize.rs", 81, EXE, 0},
	{"memchr::memmem::find", "memchr::memmem::find::<&str, alloc::string::String>",
	 "memchr",
	 "/home/u/.cargo/registry/src/index.crates.io-6f17d22bba15001f/memchr-2.7.1/src/memmem/"
	 "mod.rs",
	 300, EXE, 0},
	{"__memmove_avx512_unaligned_erms", NULL, "", "", 0, LIBC, 0},
	{"<HashMap<K,V,S>>::insert",
	 "<std::collections::hash::map::HashMap<alloc::string::String, u32>>::insert", "std",
	 "/rustc/abc/library/std/src/collections/hash/map.rs", 1200, EXE, 0},
	{"RawVec<T,A>::grow_one", "alloc::raw_vec::RawVec<u8, alloc::alloc::Global>::grow_one",
	 "alloc", "/rustc/abc/library/alloc/src/raw_vec.rs", 330, EXE, 0},
	{"malloc", NULL, "", "", 0, LIBC, 0},
	{"_int_malloc", NULL, "", "", 0, LIBC, 0},
	{"indexer::index::Index::add", NULL, "indexer", "/home/u/indexer/src/index.rs", 40, EXE,
	 0},
	{"<core::iter::adapters::map::Map<I,F> as "
	 "core::iter::traits::iterator::Iterator>::fold",
	 "<core::iter::adapters::map::Map<core::str::iter::Chars, "
	 "indexer::tokenize::{closure#0}> as "
	 "core::iter::traits::iterator::Iterator>::fold",
	 "core", "/rustc/abc/library/core/src/iter/adapters/map.rs", 124, EXE, 1},
	{"std::thread::Builder::spawn_unchecked_", NULL, "std",
	 "/rustc/abc/library/std/src/thread/mod.rs", 500, EXE, 0},
	{"start_thread", NULL, "", "", 0, LIBC, 0},
	{"entry_SYSCALL_64", NULL, "", "", 0, KERNEL, 0},
	{"copy_page_range", NULL, "", "", 0, KERNEL, 0},
};
enum {
	P_START,
	P_CMAIN,
	P_MAIN,
	P_TOKENIZE,
	P_FIND,
	P_MEMMOVE,
	P_INSERT,
	P_GROW,
	P_MALLOC,
	P_INT_MALLOC,
	P_ADD,
	P_FOLD,
	P_SPAWN,
	P_THREAD,
	P_SYSCALL,
	P_COPY,
};

static const struct template story[] = {
	{146, 0, {P_START, P_CMAIN, P_MAIN, P_TOKENIZE, -1}},
	{160, 0, {P_START, P_CMAIN, P_MAIN, P_TOKENIZE, P_FIND, -1}},
	{71, 1, {P_THREAD, P_SPAWN, P_TOKENIZE, P_FIND, -1}},
	{60, 0, {P_START, P_CMAIN, P_MAIN, P_TOKENIZE, P_FOLD, -1}},
	{98, 0, {P_START, P_CMAIN, P_MAIN, P_ADD, P_GROW, P_MEMMOVE, -1}},
	{70, 1, {P_THREAD, P_SPAWN, P_ADD, P_INSERT, -1}},
	{66, 0, {P_START, P_CMAIN, P_MAIN, P_ADD, P_GROW, -1}},
	{64, 1, {P_THREAD, P_SPAWN, P_ADD, P_INSERT, P_GROW, P_MALLOC, P_INT_MALLOC, -1}},
	{50, 0, {P_START, P_CMAIN, P_MAIN, P_ADD, P_GROW, P_MALLOC, -1}},
	{90, 0, {P_START, P_CMAIN, P_MAIN, P_ADD, -1}},
	{85, 1, {P_THREAD, P_SPAWN, P_TOKENIZE, -1}},
	{30, 1, {P_THREAD, P_SPAWN, P_ADD, P_GROW, P_SYSCALL, P_COPY, -1}},
	{10, 0, {P_START, P_CMAIN, P_MAIN, -1}},
};

struct variant {
	bool trouble, rebuilt;
	uint64_t run;
};

static void story_table(bool rebuilt, struct place *ret)
{
	for (size_t i = 0; i < AS_ARRAY_LEN(story_places); i++) {
		ret[i] = story_places[i];
		if (rebuilt && ret[i].line)
			ret[i].line += 7;
	}
	if (rebuilt)
		ret[P_FOLD].full = "<core::iter::adapters::map::Map<core::str::iter::Chars, "
				   "indexer::tokenize::{closure#4}> as "
				   "core::iter::traits::iterator::Iterator>::fold";
}

static void make_story(const char *path, const struct variant *v)
{
	enum { SAMPLES = 6000, WALL_MS = 4100 };
	bool trouble = v->trouble;
	int extra = v->rebuilt ? 100 : 0;
	struct place places[AS_ARRAY_LEN(story_places)];
	uint64_t functions[AS_ARRAY_LEN(story_places)], leaves[AS_ARRAY_LEN(story)];

	story_table(v->rebuilt, places);
	begin(path, 997, 2);
	for (size_t i = 0; i < AS_ARRAY_LEN(story_places); i++)
		functions[i] = function(&places[i]);
	for (size_t i = 0; i < AS_ARRAY_LEN(story); i++)
		leaves[i] = stack_of(&story[i], places, functions);
	seed += v->run * 0x9e3779b97f4a7c15ull;
	for (uint64_t i = 0; i < SAMPLES; i++) {
		int r = (int)(next_random() % (uint64_t)(1000 + extra)) - extra;
		uint64_t end_reason = AS_END_ROOT;
		size_t k = 0;

		/* what is below 0 is tokenize's extra time, in the first row */
		while (r >= 0 && k + 1 < AS_ARRAY_LEN(story) && r >= story[k].share)
			r -= story[k++].share;
		if (trouble && next_random() % 100 < 38)
			end_reason = AS_END_SHORT;
		else if (trouble && next_random() % 100 < 3)
			end_reason = AS_END_NOCFI;
		else if (next_random() % 1000 < 2)
			end_reason = AS_END_ROOT | AS_SAMPLE_REPAIRED;
		sample(START_NS + i * WALL_MS * MS / SAMPLES, (uint64_t)story[k].thread,
		       leaves[k], end_reason, story[k].path[4] == P_SYSCALL);
	}
	if (trouble) {
		as_write_lost(w, &(struct as_rec_lost){.time_rel = START_NS + MS,
						       .source = AS_LOSS_KERNEL,
						       .count = 1250});
		as_write_note(
			w,
			&(struct as_rec_note){
				.level = 2,
				.about = text("/usr/lib/libplugin.so"),
				.text = AS_STR(
					"the debug file is of another build and was refused"),
				.remedy = AS_STR(
					"apt-get install --reinstall libplugin-dbgsym")});
		as_write_note(
			w,
			&(struct as_rec_note){
				.level = 1,
				.about = text("indexer"),
				.text = AS_STR(
					"no line tables: functions yes, lines and inlined "
					"functions no"),
				.remedy = AS_STR("Cargo.toml: [profile.release] debug = 1")});
	}
	end(WALL_MS * MS, SAMPLES * 1003009ull, SAMPLES, 0);
}

/* ---- the others ---- */

static void make_hostile(const char *path)
{
	static const struct place bad[] = {
		{"<script>alert(1)</script>", NULL, "a\"b", "x\ny.rs", 1, EXE, 0},
		{"]]>&amp;<!-- -->", NULL, "</svg>", "'; rm -rf", 2, EXE, 0},
		{"\033[31mred\007\001\177", NULL, "crate\twith\ttabs", "", 3, EXE, 0},
		{"a,b;c \"quoted\"\r\nnew line", NULL, "=cmd|' /C calc'!A0", "", 4, EXE, 0},
		{"\xff\xfe\xc0\x80 broken utf-8", NULL, "", "", 5, LIBC, 0},
		{"\xef\xbf\xbe non-character \xed\xa0\x80 surrogate", NULL, "日本語", "", 6,
		 EXE, 0},
		{"$(reboot) `id` 'x'", NULL, "", "", 7, EXE, 0},
		{"", NULL, "", "", 0, EXE, 0},
	};
	uint64_t functions[AS_ARRAY_LEN(bad)], at = NONE;

	begin(path, 997, 0);
	for (size_t i = 0; i < AS_ARRAY_LEN(bad); i++) {
		functions[i] = function(&bad[i]);
		at = stack(at, frame(&bad[i], functions, bad, NULL));
		for (uint64_t k = 0; k < 60; k++)
			sample(START_NS + (i * 60 + k) * MS, 0, at, AS_END_ROOT, false);
	}
	end(480 * MS, 480 * MS, 480, 9);
}

static void make_deep(const char *path)
{
	static const struct place p[] = {{"main", NULL, "", "deep.c", 30, EXE, 0},
					 {"deep", NULL, "", "deep.c", 3, EXE, 0},
					 {"leaf", NULL, "", "deep.c", 1, EXE, 0}};
	uint64_t functions[3], at, frame_deep;

	begin(path, 997, 0);
	for (size_t i = 0; i < 3; i++)
		functions[i] = function(&p[i]);
	at = stack(NONE, frame(&p[0], functions, p, NULL));
	frame_deep = frame(&p[1], functions, p, NULL);
	for (uint64_t i = 0; i < 20000; i++) {
		at = stack(at, frame_deep);
		if (i % 100 == 99)
			sample(START_NS + i * 100000, 0, at, AS_END_ROOT, false);
	}
	at = stack(at, frame(&p[2], functions, p, NULL));
	for (uint64_t i = 0; i < 800; i++)
		sample(START_NS + 2000 * MS + i * MS, 0, at, AS_END_ROOT, false);
	end(2800 * MS, 1003 * MS, 1000, 0);
}

/* ---- family ---- */

enum { MODULE_JIT = NMODULES, MODULE_ID };

static const struct place family_places[] = {
	{"_start", NULL, "", "", 0, EXE, 0},
	{"build::main", "build::main", "build", "/home/u/build/src/main.rs", 5, EXE, 0},
	{"build::walk", "build::walk::<std::path::Path>", "build", "/home/u/build/src/main.rs",
	 40, EXE, 0},
	{"build::visit", NULL, "build", "/home/u/build/src/visit.rs", 9, EXE, 1},
	{"inflate", NULL, "", "inflate.c", 600, MODULE_ID, 0},
	{"entry_SYSCALL_64", NULL, "", "", 0, KERNEL, 0},
	{"do_wait", NULL, "", "", 0, KERNEL, 0},
	{"[jit]", NULL, "", "", 0, MODULE_JIT, 0},
	{"never resolved", NULL, "", "", 0, -1, 0},
	{"tokio::runtime::park", NULL, "tokio",
	 "/home/u/.cargo/registry/src/x/tokio-1.0/src/park.rs", 3, EXE, 0},
};
static const struct template family[] = {
	{300, 0, {0, 1, 2, 2, 2, 3, -1}}, /* recursion, then inlined */
	{100, 0, {0, 1, 2, 5, 6, -1}},
	{150, 1, {9, 7, -1}},
	{100, 2, {0, 4, -1}},
	{120, 2, {0, 8, -1}},
	{100, 3, {0, 1, 2, 2, -1}},
	{130, 4, {5, 6, -1}},
};

static void family_tree(void)
{
	static const uint8_t id[20] = {0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 1,  2,
				       3,    4,    5,    6,    7,    8,    9,    10,   11, 12};
	static const uint64_t tids[3] = {300, 300, 300};

	as_write_module(w, &(struct as_rec_module){.id = MODULE_JIT, .kind = AS_MODULE_JIT});
	as_write_module(w, &(struct as_rec_module){.id = MODULE_ID,
						   .path = text("/usr/lib/libz.so.1"),
						   .build_id = {(const char *)id, 20}});
	for (uint64_t i = 0; i < 2; i++)
		as_write_process(w,
				 &(struct as_rec_process){.id = 1 + i,
							  .pid = 300,
							  .parent = 1,
							  .start_ns = START_NS + i * 900 * MS,
							  .name = text(i ? "ld" : "cc")});
	for (uint64_t i = 0; i < 3; i++)
		as_write_thread(w, &(struct as_rec_thread){.id = 2 + i,
							   .process = i ? 2 : 1,
							   .tid = tids[i],
							   .start_ns = START_NS,
							   .name = text(i == 2 ? "" : "cc")});
	as_write_exit(w, &(struct as_rec_exit){.time_ns = START_NS + 850 * MS,
					       .thread = 2,
					       .process_too = 1});
}

/* Weights differ; thread 2 runs in the first half and 3 and 4 in the second, as their numbers say;
 * all rest in the middle of each 100 ms. */
static void make_family(const char *path)
{
	enum { SAMPLES = 4000, WALL_MS = 1800 };
	uint64_t functions[AS_ARRAY_LEN(family_places)], leaves[AS_ARRAY_LEN(family)], cpu = 0;

	begin(path, 4000, 2);
	family_tree();
	for (size_t i = 0; i < AS_ARRAY_LEN(family_places); i++)
		functions[i] = function(&family_places[i]);
	for (size_t i = 0; i < AS_ARRAY_LEN(family); i++)
		leaves[i] = stack_of(&family[i], family_places, functions);
	for (uint64_t i = 0; i < SAMPLES; i++) {
		uint64_t rel = i * WALL_MS * MS / SAMPLES,
			 weight = 200000 + next_random() % 99999;
		uint64_t end_reason = next_random() % 10 ? AS_END_ROOT : AS_END_NOCFI, leaf;
		size_t k = next_random() % AS_ARRAY_LEN(family);
		int thread = family[k].thread;

		if ((thread == 2 && rel > 850 * MS) || (thread > 2 && rel < 900 * MS) ||
		    rel / MS % 100 / 10 == 5)
			continue;
		leaf = next_random() % 50 ? leaves[k] : NONE;
		cpu += weight;
		as_write_sample(w, &(struct as_rec_sample){.time_rel = START_NS + rel,
							   .thread = (uint64_t)thread,
							   .cpu = (uint64_t)thread % 2,
							   .stack = leaf + 1,
							   .weight = weight,
							   .end = end_reason});
	}
	as_write_lost(w, &(struct as_rec_lost){
				 .time_rel = START_NS + 700 * MS, .cpu = 1, .count = 40});
	for (uint64_t i = 0; i < 2; i++)
		as_write_tick(w, &(struct as_rec_tick){.time_rel = START_NS + 1000 * MS,
						       .cpu = i,
						       .taken = 1000 + i * 30,
						       .delivered = 1000,
						       .lost_kernel = i * 30});
	end(WALL_MS * MS, cpu, SAMPLES, 0);
}

static void make_empty(const char *path)
{
	begin(path, 997, 2);
	end(2 * MS, MS, 0, 0);
}

static void make_big(const char *path, uint64_t samples)
{
	enum { FUNCTIONS = 3000, STACKS = 40000, DEPTH = 40 };
	static uint64_t frames[FUNCTIONS], leaves[STACKS];

	begin(path, 997, 0);
	for (uint64_t i = 0; i < FUNCTIONS; i++) {
		char name[64], file[32];
		struct place p = {name, NULL, "", file, (uint32_t)i + 1, i % 7 == 0, 0};
		uint64_t fn;

		snprintf(name, sizeof name, "module_%u::function_%u", (unsigned)(i % 50),
			 (unsigned)i);
		snprintf(file, sizeof file, "src/file_%u.rs", (unsigned)(i % 50));
		fn = function(&p);
		frames[i] = frame(&p, &fn, &p, NULL);
	}
	for (uint64_t i = 0; i < STACKS; i++) {
		uint64_t from = i ? leaves[next_random() % AS_MIN(i, 2000u)] : NONE;
		uint64_t at = next_random() % 4 && i ? from : NONE;

		for (unsigned d = 0; d < 1 + next_random() % DEPTH / (at == NONE ? 1 : 8); d++)
			at = stack(at, frames[next_random() % FUNCTIONS]);
		leaves[i] = at;
	}
	for (uint64_t i = 0; i < samples; i++) {
		uint64_t r = next_random() % STACKS, s = next_random() % 2 ? r % 200 : r;

		sample(START_NS + i * 500000, i % 2, leaves[s], AS_END_ROOT, false);
		if (i % 1000 == 0)
			as_session_writer_tick(w, START_NS + i * 500000);
	}
	end(samples * 500000, samples * 1003009, samples, 0);
}

static const struct place trial_places[] = {
	{"app::main", NULL, "app", "/home/u/app/src/main.rs", 5, EXE, 0},
	{"app::parse", NULL, "app", "/home/u/app/src/parse.rs", 20, EXE, 0},
	{"app::print", NULL, "app", "/home/u/app/src/print.rs", 30, EXE, 0},
	{"app::retry", NULL, "app", "/home/u/app/src/retry.rs", 7, EXE, 0},
};
static const struct template trials[] = {
	{0, 0, {0, -1}}, {0, 0, {0, 1, -1}}, {0, 0, {0, 2, -1}}, {0, 0, {0, 3, -1}}};

static void make_trials(const char *path, uint64_t n, bool until)
{
	uint64_t functions[AS_ARRAY_LEN(trial_places)], leaves[AS_ARRAY_LEN(trials)];
	uint64_t at = START_NS, samples = 0;

	begin(path, 1000, 2);
	if (until) {
		info("until", "2");
		info("until.enough", "yes");
	}
	for (size_t i = 0; i < AS_ARRAY_LEN(trial_places); i++)
		functions[i] = function(&trial_places[i]);
	for (size_t i = 0; i < AS_ARRAY_LEN(trials); i++)
		leaves[i] = stack_of(&trials[i], trial_places, functions);
	for (uint64_t run = 0; run < n; run++) {
		uint64_t start = at, length = 1200 + next_random() % 300,
			 parse = 300 + next_random() % 100;

		for (uint64_t i = 0; i < length; i++, at += MS, samples++) {
			uint64_t r = next_random() % 1000;
			bool retry = run + 1 == n && i % 20 == 0;

			sample(at, i % 2,
			       leaves[retry       ? 3
				      : r < parse ? 1
				      : r < 800   ? 2
						  : 0],
			       AS_END_ROOT, false);
		}
		as_write_trial(w, &(struct as_rec_trial){.trial = run,
							 .start_ns = start,
							 .end_ns = at,
							 .cpu_ns = length * MS});
		at += 100 * MS;
	}
	end(samples * MS, samples * 1003009ull, samples, 0);
}

/* In app::parse for the first 30 % of each 10 ms. */
static void make_beat(const char *path, uint64_t jitter)
{
	enum { SAMPLES = 2000, INTERVAL_US = 10200, PERIOD_US = 10000 };
	uint64_t functions[AS_ARRAY_LEN(trial_places)], leaves[3], us = 0;

	begin(path, 98, 2);
	for (size_t i = 0; i < AS_ARRAY_LEN(trial_places); i++)
		functions[i] = function(&trial_places[i]);
	for (size_t i = 0; i < AS_ARRAY_LEN(leaves); i++)
		leaves[i] = stack_of(&trials[i], trial_places, functions);
	for (uint64_t i = 0; i < SAMPLES; i++) {
		uint64_t span = INTERVAL_US * jitter / 100,
			 interval = INTERVAL_US - span + next_random() % (2 * span + 1);

		us += interval;
		as_write_sample(w, &(struct as_rec_sample){
					   .time_rel = START_NS + us * 1000,
					   .stack = leaves[us % PERIOD_US < 3000 ? 1 : 2] + 1,
					   .weight = interval * 1000,
					   .end = AS_END_ROOT});
	}
	end(us * 1000, us * 1000, SAMPLES, 0);
}

int main(int argc, char **argv)
{
	uint64_t n = 0;

	if (argc < 3 || (argc > 3 && !as_parse_u64(argv[3], &n)))
		return 2;
	if (strcmp(argv[1], "story") == 0)
		make_story(argv[2], &(struct variant){0});
	else if (strcmp(argv[1], "run") == 0)
		make_story(argv[2], &(struct variant){.run = n});
	else if (strcmp(argv[1], "rebuilt") == 0)
		make_story(argv[2], &(struct variant){.run = n, .rebuilt = true});
	else if (strcmp(argv[1], "trouble") == 0)
		make_story(argv[2], &(struct variant){.trouble = true});
	else if (strcmp(argv[1], "hostile") == 0)
		make_hostile(argv[2]);
	else if (strcmp(argv[1], "deep") == 0)
		make_deep(argv[2]);
	else if (strcmp(argv[1], "empty") == 0)
		make_empty(argv[2]);
	else if (strcmp(argv[1], "family") == 0)
		make_family(argv[2]);
	else if (strcmp(argv[1], "big") == 0)
		make_big(argv[2], n);
	else if (strcmp(argv[1], "trials") == 0)
		make_trials(argv[2], n, false);
	else if (strcmp(argv[1], "beat") == 0)
		make_beat(argv[2], n);
	else if (strcmp(argv[1], "until") == 0)
		make_trials(argv[2], n, true);
	else
		return 2;
	return 0;
}
