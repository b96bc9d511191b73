/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Session file: round trip of every record type, damage, crashes, full disks, names in the way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sys.h"
#include "session/log.h"
#include "session/session.h"

static char folder[64];
static char file[96], partial[112];

static int setup(void **state)
{
	snprintf(folder, sizeof folder, "/tmp/assay-test-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(file, sizeof file, "%s/a.assay", folder);
	snprintf(partial, sizeof partial, "%s.partial", file);
	return 0;
}

static void remove_in_folder(const char *name)
{
	char path[160];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	unlink(path);
}

static int teardown(void **state)
{
	chmod(folder, 0700);
	remove_in_folder("a.assay");
	remove_in_folder("a.assay.partial");
	remove_in_folder("a.assay.partial.old");
	remove_in_folder("link");
	remove_in_folder("fifo");
	return rmdir(folder);
}

static struct as_session_writer *open_writer(void)
{
	struct as_session_writer *w = NULL;
	struct as_error err = {0};

	if (as_session_writer_open(file, &w, &err) < 0)
		fail_msg("%s", err.msg);
	return w;
}

static void slurp(const char *path, struct as_buf *b)
{
	as_buf_reset(b);
	assert_int_equal(as_read_file(path, 64u << 20, b, NULL), 0);
}

/* ---- values for every field of every record, from a counter ---- */

static const uint64_t interesting[] = {0,     1,          127,        128,       16383,
				       16384, UINT32_MAX, 1ull << 62, UINT64_MAX};
static const uint64_t some_list[] = {0, UINT64_MAX, 5, 300, 1ull << 33};

static uint64_t value_u(unsigned *n)
{
	return interesting[(*n)++ % AS_ARRAY_LEN(interesting)];
}

static struct as_str value_t(unsigned *n)
{
	static const char bytes[] = "a\0\xff;\n text long enough to need no second thought";

	return (struct as_str){bytes, (*n)++ * 7 % sizeof bytes};
}

static struct as_u64s value_v(unsigned *n)
{
	return (struct as_u64s){some_list, (*n)++ % (AS_ARRAY_LEN(some_list) + 1)};
}

static void same_u(uint64_t a, uint64_t b)
{
	assert_true(a == b);
}
static void same_t(struct as_str a, struct as_str b)
{
	assert_int_equal(a.n, b.n);
	assert_memory_equal(a.p, b.p, a.n);
}
static void same_v(struct as_u64s a, struct as_u64s b)
{
	assert_int_equal(a.n, b.n);
	assert_memory_equal(a.v, b.v, a.n * sizeof *a.v);
}

struct seen {
	unsigned counter, records;
};

#define U(f) r.f = value_u(n);
#define S(f) r.f = (int64_t)value_u(n);
#define T(f) r.f = value_t(n);
#define V(f) r.f = value_v(n);
#define R(id, NAME, name, fields)                                                              \
	static struct as_rec_##name make_##name(unsigned *n)                                   \
	{                                                                                      \
		struct as_rec_##name r;                                                        \
		fields return r;                                                               \
	}
#include "session/records.def"
#undef R
#undef U
#undef S
#undef T
#undef V

#define U(f) same_u(want.f, r->f);
#define S(f) same_u((uint64_t)want.f, (uint64_t)r->f);
#define T(f) same_t(want.f, r->f);
#define V(f) same_v(want.f, r->f);
#define R(id, NAME, name, fields)                                                              \
	static int check_##name(void *ctx, const struct as_rec_##name *r)                      \
	{                                                                                      \
		struct seen *s = ctx;                                                          \
		struct as_rec_##name want;                                                     \
		if (id == AS_REC_END)                                                          \
			return 0;                                                              \
		want = make_##name(&s->counter);                                               \
		s->records++;                                                                  \
		fields return 0;                                                               \
	}
#include "session/records.def"
#undef R
#undef U
#undef S
#undef T
#undef V

static struct as_record_sink checking_sink(struct seen *s)
{
	return (struct as_record_sink){
		.ctx = s,
#define R(id, NAME, name, fields) .name = check_##name,
#include "session/records.def"
#undef R
	};
}

/* Each type `rounds` times, values going on from record to record; returns how many. */
static unsigned write_every_type(struct as_session_writer *w, unsigned rounds,
				 unsigned *counter)
{
	unsigned records = 0;

	for (unsigned i = 0; i < rounds; i++) {
#define R(id, NAME, name, fields)                                                              \
	if (id != AS_REC_END) {                                                                \
		struct as_rec_##name r = make_##name(counter);                                 \
		as_write_##name(w, &r);                                                        \
		records++;                                                                     \
	}
#include "session/records.def"
#undef R
	}
	return records;
}

static void every_record_type_comes_back_as_it_was_written(void **state)
{
	struct as_session_writer *w = open_writer();
	struct as_session_health h;
	struct seen seen = {0};
	struct as_record_sink sink = checking_sink(&seen);
	unsigned counter = 0, n = 0;

	for (int i = 0; i < 30; i++) {
		n += write_every_type(w, 11, &counter);
		if (i % 3 == 0)
			as_session_writer_flush(w);
	}
	assert_int_equal(access(partial, F_OK), 0);
	assert_int_equal(as_session_writer_finish(w, NULL), 0);
	as_session_writer_close(w);
	assert_int_equal(access(partial, F_OK), -1);
	assert_int_equal(as_session_read(file, &sink, &h, NULL), 0);
	assert_int_equal(seen.records, n);
	assert_true(h.complete);
	assert_false(h.truncated);
	assert_int_equal(h.bad_chunks + h.bad_records + h.unknown_records, 0);
}

static void a_file_cut_at_any_byte_gives_what_stands_before_the_cut(void **state)
{
	struct as_session_writer *w = open_writer();
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	unsigned counter = 0, n = 0, last = 0;

	for (int i = 0; i < 6; i++) {
		n += write_every_type(w, 1, &counter);
		as_session_writer_flush(w);
	}
	assert_int_equal(as_session_writer_finish(w, NULL), 0);
	as_session_writer_close(w);
	slurp(file, &b);
	for (size_t cut = 0; cut <= b.len; cut++) {
		AS_CLEANUP(as_free_autop) void *exact = as_xmalloc(cut ? cut : 1);
		struct seen seen = {0};
		struct as_record_sink sink = checking_sink(&seen);
		struct as_session_health h;
		int r;

		memcpy(exact, b.p, cut);
		r = as_session_read_mem(exact, cut, &sink, &h, NULL);
		assert_int_equal(r, cut < 8 ? AS_E_FORMAT : AS_OK);
		assert_true(seen.records >= last);
		assert_true(h.complete == (cut == b.len));
		assert_int_equal(h.bad_chunks, 0);
		last = seen.records;
	}
	assert_int_equal(last, n);
}

static void a_damaged_byte_ends_the_reading_at_its_chunk(void **state)
{
	struct as_session_writer *w = open_writer();
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	unsigned counter = 0, n = 0;

	for (int i = 0; i < 4; i++) {
		n += write_every_type(w, 1, &counter);
		as_session_writer_flush(w);
	}
	assert_int_equal(as_session_writer_finish(w, NULL), 0);
	as_session_writer_close(w);
	slurp(file, &b);
	for (size_t at = 24; at < b.len; at++) {
		struct seen seen = {0};
		struct as_record_sink sink = checking_sink(&seen);
		struct as_session_health h;

		b.p[at] ^= 0x10;
		assert_int_equal(as_session_read_mem(b.p, b.len, &sink, &h, NULL), 0);
		b.p[at] ^= 0x10;
		assert_int_equal(h.bad_chunks + h.truncated, 1);
		assert_true(h.bytes_missing > 0);
		assert_int_equal(seen.records % (n / 4), 0);
		assert_false(h.complete);
	}
}

static void bytes_behind_the_end_are_ignored(void **state)
{
	struct as_session_writer *w = open_writer();
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	struct as_session_health h;
	struct as_record_sink none = {0};

	as_session_string(w, "x", 1);
	assert_int_equal(as_session_writer_finish(w, NULL), 0);
	as_session_writer_close(w);
	slurp(file, &b);
	as_buf_adds(&b, "ACHK and then some junk that is no chunk at all");
	assert_int_equal(as_session_read_mem(b.p, b.len, &none, &h, NULL), 0);
	assert_true(h.complete);
	assert_int_equal(h.bad_chunks, 0);
}

struct strings {
	unsigned n;
	char text[8][16];
	uint64_t id[8];
};

static int on_string(void *ctx, const struct as_rec_string *r)
{
	struct strings *s = ctx;

	assert_true(s->n < 8 && r->text.n < 16);
	memcpy(s->text[s->n], r->text.p, r->text.n);
	s->id[s->n++] = r->id;
	return 0;
}

static void equal_texts_are_written_once(void **state)
{
	struct as_session_writer *w = open_writer();
	struct strings s = {0};
	struct as_record_sink sink = {.ctx = &s, .string = on_string};

	assert_int_equal(as_session_string(w, "", 0), 0);
	assert_int_equal(as_session_string(w, "one", 3), 1);
	assert_int_equal(as_session_string(w, "two", 3), 2);
	assert_int_equal(as_session_string(w, "one", 3), 1);
	assert_int_equal(as_session_writer_finish(w, NULL), 0);
	as_session_writer_close(w);
	assert_int_equal(as_session_read(file, &sink, NULL, NULL), 0);
	assert_int_equal(s.n, 2);
	assert_string_equal(s.text[1], "two");
	assert_int_equal(s.id[1], 2);
}

static int on_sample_stop(void *ctx, const struct as_rec_sample *r)
{
	return ++*(int *)ctx == 3 ? AS_E_CANCELLED : 0;
}

static void a_sink_that_says_stop_is_obeyed(void **state)
{
	struct as_session_writer *w = open_writer();
	int n = 0;
	struct as_record_sink sink = {.ctx = &n, .sample = on_sample_stop};

	for (int i = 0; i < 10; i++)
		as_write_sample(w, &(struct as_rec_sample){.time_rel = 5});
	assert_int_equal(as_session_writer_finish(w, NULL), 0);
	as_session_writer_close(w);
	assert_int_equal(as_session_read(file, &sink, NULL, NULL), AS_E_CANCELLED);
	assert_int_equal(n, 3);
}

/* ---- what is no session ---- */

static void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void other_files_are_refused_by_name(void **state)
{
	struct as_record_sink none = {0};
	struct as_error err;

	write_text(file, "int main(void)\n");
	assert_int_equal(as_session_read(file, &none, NULL, &err), AS_E_FORMAT);
	assert_non_null(strstr(err.msg, file));
	write_text(file, "");
	assert_int_equal(as_session_read(file, &none, NULL, &err), AS_E_FORMAT);
	assert_non_null(strstr(err.msg, "empty"));
	write_text(file, "ASSAYS1\n\2   \0   ");
	unlink(file);
	write_text(partial, "ASSAYS1\n");
	assert_int_equal(as_session_read(file, &none, NULL, &err), AS_E_NOTFOUND);
	assert_non_null(strstr(err.msg, ".partial"));
}

static void a_newer_format_is_named_and_not_guessed(void **state)
{
	struct as_record_sink none = {0};
	struct as_error err;
	uint8_t head[24] = "ASSAYS1\n\1";

	assert_int_equal(as_session_read_mem(head, 24, &none, NULL, &err), AS_OK);
	head[12] = 4;
	assert_int_equal(as_session_read_mem(head, 24, &none, NULL, &err), AS_E_UNSUPPORTED);
	head[12] = 0;
	head[16] = 4; /* may be ignored */
	assert_int_equal(as_session_read_mem(head, 24, &none, NULL, &err), AS_OK);
	head[8] = 2;
	assert_int_equal(as_session_read_mem(head, 24, &none, NULL, &err), AS_E_UNSUPPORTED);
}

/* ---- names in the way ---- */

static void a_file_that_is_no_session_is_never_replaced(void **state)
{
	struct as_session_writer *w = NULL;
	struct as_error err;
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	write_text(file, "#!/bin/sh\necho precious\n");
	assert_int_equal(as_session_writer_open(file, &w, &err), AS_E_USAGE);
	assert_non_null(strstr(err.msg, "no assay session"));
	slurp(file, &b);
	assert_non_null(strstr(b.p, "precious"));
}

static void an_older_session_stays_until_the_new_one_is_whole(void **state)
{
	struct as_session_writer *w = open_writer();
	struct strings s = {0};
	struct as_record_sink sink = {.ctx = &s, .string = on_string};
	char link_path[96];

	as_session_string(w, "old", 3);
	assert_int_equal(as_session_writer_finish(w, NULL), 0);
	as_session_writer_close(w);
	snprintf(link_path, sizeof link_path, "%s/link", folder);
	assert_int_equal(symlink(file, link_path), 0);
	assert_int_equal(as_session_writer_open(link_path, &w, NULL), 0);
	as_session_string(w, "new", 3);
	assert_int_equal(as_session_read(file, &sink, NULL, NULL), 0);
	assert_string_equal(s.text[0], "old");
	assert_int_equal(as_session_writer_finish(w, NULL), 0);
	as_session_writer_close(w);
	assert_int_equal(as_session_read(link_path, &sink, NULL, NULL), 0);
	assert_string_equal(s.text[1], "new");
}

static void two_recordings_of_one_name_do_not_meet(void **state)
{
	struct as_session_writer *w = open_writer(), *second = NULL;
	struct as_error err;

	assert_int_equal(as_session_writer_open(file, &second, &err), AS_E_USAGE);
	assert_non_null(strstr(err.msg, "another recording"));
	assert_int_equal(as_session_writer_finish(w, NULL), 0);
	/* finished but not closed: the name is free again */
	assert_int_equal(as_session_writer_open(file, &second, &err), 0);
	as_session_writer_close(w);
	as_session_writer_close(second);
}

static void what_a_crash_left_is_kept_once(void **state)
{
	struct as_session_writer *w = open_writer();
	struct strings s = {0};
	struct as_record_sink sink = {.ctx = &s, .string = on_string};
	char old[128];

	as_session_string(w, "crashed", 7);
	as_session_writer_close(w); /* never finished */
	assert_int_equal(access(file, F_OK), -1);
	w = open_writer();
	assert_int_equal(as_session_writer_finish(w, NULL), 0);
	as_session_writer_close(w);
	snprintf(old, sizeof old, "%s.old", partial);
	assert_int_equal(as_session_read(old, &sink, NULL, NULL), 0);
	assert_string_equal(s.text[0], "crashed");
}

static void a_folder_that_cannot_be_written_is_named_with_a_way_out(void **state)
{
	struct as_session_writer *w = NULL;
	struct as_error err;

	if (geteuid() == 0) { /* root writes everywhere but into /proc */
		assert_true(as_session_writer_open("/proc/none/x.assay", &w, &err) < 0);
		assert_non_null(strstr(err.msg, "/proc/none/x.assay"));
		return;
	}
	chmod(folder, 0500);
	assert_int_equal(as_session_writer_open(file, &w, &err), AS_E_ACCESS);
	assert_non_null(strstr(err.msg, "\n  write where you may: assay record -o /tmp/"));
}

static void a_folder_given_as_output_is_refused(void **state)
{
	struct as_session_writer *w = NULL;
	struct as_error err;

	assert_int_equal(as_session_writer_open(folder, &w, &err), AS_E_USAGE);
}

/* ---- the disk and the pipe ---- */

static void fill_samples(struct as_session_writer *w, unsigned n)
{
	uint64_t x = 88172645463325252ull;

	for (unsigned i = 0; i < n; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		as_write_sample(w, &(struct as_rec_sample){.time_rel = i * 1000003ull + 7,
							   .stack = x,
							   .weight = x >> 3});
	}
}

static int count_samples(void *ctx, const struct as_rec_sample *r)
{
	uint64_t *n = ctx;

	assert_true(r->time_rel == *n * 1000003ull + 7);
	++*n;
	return 0;
}

static void a_full_disk_leaves_a_valid_file_and_says_what_to_do(void **state)
{
	struct as_session_writer *w = open_writer();
	struct rlimit old, lim;
	struct as_session_health h;
	struct as_error err = {0};
	uint64_t n = 0;
	struct as_record_sink sink = {.ctx = &n, .sample = count_samples};

	getrlimit(RLIMIT_FSIZE, &old);
	lim = (struct rlimit){1500000, old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &lim), 0);
	fill_samples(w, 200000);
	assert_true(as_session_writer_status(w, &err) == AS_E_IO);
	assert_int_equal(err.sys_errno, EFBIG);
	assert_non_null(strstr(err.msg, partial));
	assert_non_null(strstr(err.msg, "\n  "));
	assert_int_equal(as_session_writer_finish(w, NULL), AS_E_IO);
	as_session_writer_close(w);
	setrlimit(RLIMIT_FSIZE, &old);
	assert_int_equal(access(file, F_OK), -1);
	assert_int_equal(as_session_read(partial, &sink, &h, NULL), 0);
	assert_true(n > 10000);
	assert_false(h.truncated);
	assert_int_equal(h.bad_chunks, 0);
}

static void a_device_without_room_is_told_at_once(void **state)
{
	struct as_session_writer *w = NULL;
	struct as_error err = {0};

	if (access("/dev/full", W_OK) < 0)
		skip();
	assert_int_equal(as_session_writer_open("/dev/full", &w, &err), AS_E_IO);
	assert_int_equal(err.sys_errno, ENOSPC);
	assert_non_null(strstr(err.msg, "/dev/full"));
}

static void a_closed_pipe_is_an_error_and_no_signal(void **state)
{
	struct as_session_writer *w = NULL;
	struct as_error err = {0};
	char fifo[96];
	int reader;

	snprintf(fifo, sizeof fifo, "%s/fifo", folder);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	reader = open(fifo, O_RDONLY | O_NONBLOCK);
	assert_true(reader >= 0);
	assert_int_equal(as_session_writer_open(fifo, &w, NULL), 0);
	close(reader);
	signal(SIGPIPE, SIG_DFL);
	fill_samples(w, 1000);
	as_session_writer_flush(w);
	assert_int_equal(as_session_writer_status(w, &err), AS_E_IO);
	assert_int_equal(err.sys_errno, EPIPE);
	as_session_writer_close(w);
}

static void the_same_bytes_go_through_a_pipe(void **state)
{
	int p[2], saved, status;
	uint64_t n = 0;
	struct as_record_sink sink = {.ctx = &n, .sample = count_samples};
	struct as_session_health h;
	pid_t child;

	assert_int_equal(pipe(p), 0);
	child = fork();
	if (child == 0) {
		struct as_session_writer *w;

		close(p[0]);
		dup2(p[1], STDOUT_FILENO);
		close(p[1]);
		if (as_session_writer_open("-", &w, NULL) < 0)
			_exit(1);
		fill_samples(w, 100000);
		_exit(as_session_writer_finish(w, NULL) < 0);
	}
	close(p[1]);
	saved = dup(STDIN_FILENO);
	dup2(p[0], STDIN_FILENO);
	close(p[0]);
	assert_int_equal(as_session_read("-", &sink, &h, NULL), 0);
	dup2(saved, STDIN_FILENO);
	close(saved);
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	assert_int_equal(n, 100000);
	assert_true(h.complete);
}

static uint64_t last_time;
static int note_time(void *ctx, const struct as_rec_sample *r)
{
	last_time = r->time_rel;
	return 0;
}

static void write_until_killed(void)
{
	struct as_session_writer *w;

	if (as_session_writer_open(file, &w, NULL) < 0)
		_exit(1);
	for (;;) {
		uint64_t now = as_now_ns();

		as_write_sample(w, &(struct as_rec_sample){.time_rel = now});
		as_session_writer_tick(w, now);
		usleep(1000);
	}
}

static void kill_9_loses_at_most_the_last_second(void **state)
{
	struct as_record_sink sink = {.sample = note_time};
	struct as_session_health h;
	uint64_t killed_ns;
	pid_t child = fork();

	if (child == 0)
		write_until_killed();
	usleep(1900000);
	killed_ns = as_now_ns();
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	last_time = 0;
	assert_int_equal(as_session_read(partial, &sink, &h, NULL), 0);
	assert_false(h.complete);
	assert_true(last_time != 0);
	assert_true(killed_ns - last_time < 1000000000ull);
}

/* ---- the event log ---- */

struct told_events {
	struct as_log_event v[4000];
	size_t n, records;
};

static int on_heap_events(void *ctx, const struct as_rec_heap_events *r)
{
	struct told_events *t = ctx;
	struct as_log_in in;

	as_log_begin(&in, r);
	while (t->n < AS_ARRAY_LEN(t->v) && as_log_next(&in, &t->v[t->n]))
		t->n++;
	assert_false(in.rd.bad);
	t->records++;
	return 0;
}

static uint64_t some(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return as_mix64(*seed) >> (*seed % 60); /* of any length */
}

/* Addresses as they come and as they might, each kind, with what it has. */
static struct as_log_event make_event(uint64_t *seed, uint64_t *time_ns)
{
	struct as_log_event e = {.kind = (enum as_log_kind)(some(seed) % AS_LOG_KINDS)};

	*time_ns += some(seed) % 3 ? 0 : some(seed) % 1000000;
	e.time_ns = *time_ns;
	e.thread = (uint32_t)(some(seed) % 3);
	e.address = some(seed) % 4 ? some(seed) << 4 : some(seed);
	if (as_log_has_stack(e.kind))
		e.stack = (uint32_t)some(seed);
	if (as_log_has_size(e.kind))
		e.size_bytes = some(seed);
	if (as_log_has_old(e.kind))
		e.old = some(seed) % 4 ? some(seed) << 4 : some(seed);
	if (e.kind == AS_LOG_REMAP)
		e.old_bytes = some(seed);
	if (some(seed) % 8 == 0)
		e.address = 0; /* it failed, where it can */
	return e;
}

static void events_come_back_as_they_were_in_any_record(void **state)
{
	static struct told_events told;
	struct as_record_sink sink = {.ctx = &told, .heap_events = on_heap_events};
	struct as_session_writer *w = open_writer();
	struct as_log_out out = {0};
	struct as_session_health h;
	uint64_t seed = 1, time_ns = 77;

	for (size_t i = 0; i < AS_ARRAY_LEN(told.v); i++) {
		struct as_log_event e = make_event(&seed, &time_ns);

		as_log_put(&out, w, &e);
		if (i % 1000 == 500)
			as_log_flush(&out, w);
	}
	as_log_flush(&out, w);
	as_log_flush(&out, w); /* nothing */
	as_log_clear(&out);
	assert_int_equal(as_session_writer_finish(w, NULL), 0);
	as_session_writer_close(w);
	told = (struct told_events){0};
	assert_int_equal(as_session_read(file, &sink, &h, NULL), 0);
	assert_int_equal(told.n, AS_ARRAY_LEN(told.v));
	assert_true(told.records > 4);
	seed = 1, time_ns = 77;
	for (size_t i = 0; i < told.n; i++) {
		struct as_log_event e = make_event(&seed, &time_ns);

		assert_memory_equal(&told.v[i], &e, sizeof e);
	}
}

static void events_that_make_no_sense_end_their_record(void **state)
{
	/* a head whose stack is missing; numbers without an end, and beyond what they may be */
	static const struct {
		const char *bytes;
		size_t n, good;
	} bad[] = {
		{"\x20", 1, 0},
		{"\x01\x04\x00", 3, 1},
		{"\x01\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80", 12, 0},
		{"\x11\xff\xff\xff\xff\x1f\x02", 7, 0},
		{"\x20\x01\x02\x02", 4, 0}, /* a stack before the first one */
	};

	for (size_t i = 0; i < AS_ARRAY_LEN(bad); i++) {
		struct as_log_in in;
		struct as_log_event e;
		size_t n = 0;

		as_log_begin(&in,
			     &(struct as_rec_heap_events){.events = {bad[i].bytes, bad[i].n}});
		while (as_log_next(&in, &e))
			n++;
		assert_int_equal(n, bad[i].good);
		assert_true(in.rd.bad);
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
		T(every_record_type_comes_back_as_it_was_written),
		T(a_file_cut_at_any_byte_gives_what_stands_before_the_cut),
		T(a_damaged_byte_ends_the_reading_at_its_chunk),
		T(bytes_behind_the_end_are_ignored),
		T(equal_texts_are_written_once),
		T(a_sink_that_says_stop_is_obeyed),
		T(other_files_are_refused_by_name),
		T(a_newer_format_is_named_and_not_guessed),
		T(a_file_that_is_no_session_is_never_replaced),
		T(an_older_session_stays_until_the_new_one_is_whole),
		T(two_recordings_of_one_name_do_not_meet),
		T(what_a_crash_left_is_kept_once),
		T(a_folder_that_cannot_be_written_is_named_with_a_way_out),
		T(a_folder_given_as_output_is_refused),
		T(a_full_disk_leaves_a_valid_file_and_says_what_to_do),
		T(a_device_without_room_is_told_at_once),
		T(a_closed_pipe_is_an_error_and_no_signal),
		T(the_same_bytes_go_through_a_pipe),
		T(kill_9_loses_at_most_the_last_second),
		T(events_come_back_as_they_were_in_any_record),
		T(events_that_make_no_sense_end_their_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
