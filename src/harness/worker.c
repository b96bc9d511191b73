/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Questions answered: see worker_priv.h. Nothing is written between batches. */
#include "harness/worker_priv.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"
#include "harness/alloc_priv.h"
#include "harness/version_priv.h"

#define ALLOC_TIMES   3
#define ALLOC_MORE    8
#define ALLOC_MOST_NS 50e6 /* longer iterations are counted once */

/* Nobody can be told when writing fails: who asked sees that nothing came. */
static void send_text(int fd, struct as_buf *b)
{
	(void)as_write_all(fd, as_buf_str(b), b->len, NULL);
	as_buf_reset(b);
}

void as_worker_hello(int fd)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	as_buf_addf(&b, "assay-bench\t%d\t%s\n", AS_BENCH_PROTOCOL, ASSAY_VERSION);
	send_text(fd, &b);
}

static int refuse(int fd, const struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	as_buf_adds(&b, "error");
	as_line_text(&b, err->msg);
	as_buf_addc(&b, '\n');
	send_text(fd, &b);
	return -1;
}

static void tell_what(const struct as_subject *s, struct as_buf *out)
{
	struct as_fn_entry e;

	as_subject_entry(s->spec, &e);
	as_line_bench(out, &e);
	as_fn_entry_clear(&e);
}

/* ---- what the batches took besides time ---- */

struct usage {
	struct rusage r;
	double run_delay_ns, migrations; /* NaN: not told */
};

static double number_after(const char *text, const char *name)
{
	const char *p = strstr(text, name);
	double v = NAN;

	p = p ? strchr(p, ':') : NULL;
	if (!p || sscanf(p + 1, "%lf", &v) != 1)
		return NAN;
	return v;
}

static void read_usage(struct usage *ret)
{
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};
	uint64_t ran, delay;

	*ret = (struct usage){.run_delay_ns = NAN, .migrations = NAN};
	(void)getrusage(RUSAGE_SELF, &ret->r); /* cannot fail */
	if (as_read_file("/proc/self/schedstat", 256, &text, NULL) == AS_OK &&
	    sscanf(as_buf_str(&text), "%" SCNu64 " %" SCNu64, &ran, &delay) == 2)
		ret->run_delay_ns = (double)delay;
	as_buf_reset(&text);
	if (as_read_file("/proc/self/sched", 64 << 10, &text, NULL) == AS_OK)
		ret->migrations = number_after(as_buf_str(&text), "nr_migrations");
}

static void tell_usage(const struct usage *a, const struct usage *b, struct as_buf *out)
{
	as_buf_adds(out, "usage");
	as_line_num(out, (double)(b->r.ru_nvcsw - a->r.ru_nvcsw));
	as_line_num(out, (double)(b->r.ru_nivcsw - a->r.ru_nivcsw));
	as_line_num(out, b->migrations - a->migrations);
	as_line_num(out, (double)(b->r.ru_minflt - a->r.ru_minflt));
	as_line_num(out, (double)(b->r.ru_majflt - a->r.ru_majflt));
	as_line_num(out, b->run_delay_ns - a->run_delay_ns);
	as_buf_addc(out, '\n');
}

/* ---- measure ---- */

static void tell_batch(const struct as_answer_batch *b, struct as_buf *out)
{
	as_buf_adds(out, b->warmup ? "warmup" : "batch");
	as_line_num(out, b->value);
	as_line_num(out, b->wall_ns);
	as_line_num(out, b->cpu_ns);
	as_line_num(out, b->rate);
	as_line_num(out, b->overlap);
	as_buf_addc(out, '\n');
}

static int answer_measure(const struct as_question *q, const struct as_subject *s,
			  struct as_buf *out, struct as_error *err)
{
	size_t wanted = q->warmups + q->batches;
	AS_CLEANUP(as_free_autop) struct as_answer_batch *b = as_xcalloc(wanted, sizeof *b);
	uint64_t start = as_now_ns(), limit = q->limit_ms * 1000000;
	struct usage before, after;
	size_t n = 0;
	int r = AS_OK;

	if (!q->iterations || !q->batches)
		return as_fail(err, AS_E_USAGE, 0, "asked for no iterations or no batches");
	memset(b, 1, wanted * sizeof *b); /* in place before the first one */
	read_usage(&before);
	for (size_t i = 0; i < wanted && r == AS_OK; i++) {
		bool late = limit && as_now_ns() - start > limit;

		if (late && i > q->warmups)
			break;
		if (late && i < q->warmups)
			i = q->warmups;
		b[n].warmup = i < q->warmups;
		r = as_subject_run(s, q->iterations, &b[n], err);
		n++;
	}
	if (r < 0)
		return r;
	read_usage(&after);
	tell_what(s, out);
	for (size_t i = 0; i < n; i++)
		tell_batch(&b[i], out);
	tell_usage(&before, &after, out);
	return AS_OK;
}

/* ---- allocations ---- */

static int counted(const struct as_subject *s, uint64_t iters, struct as_alloc_counts *ret,
		   struct as_error *err)
{
	struct as_answer_batch b = {0};
	int r;

	as_alloc_begin();
	r = as_subject_run(s, iters, &b, err);
	as_alloc_end(ret);
	return r;
}

static double extra_per_iteration(uint64_t one, uint64_t more)
{
	return more > one ? (double)(more - one) / ALLOC_MORE : 0;
}

/*
 * Of one iteration, and of one and ALLOC_MORE: the difference has what belongs to iterations and not to
 * the loop around them. The least of a few: what happens once (a table built, a buffer grown) is no
 * iteration's.
 */
static int answer_allocations(const struct as_subject *s, struct as_buf *out,
			      struct as_error *err)
{
	double calls = INFINITY, bytes = INFINITY, peak = INFINITY;
	struct as_answer_batch b = {0};
	int r;

	if (!as_alloc_patch()) {
		as_buf_adds(out, "allocations\n");
		return AS_OK;
	}
	r = as_subject_run(s, 1, &b, err);
	for (int i = 0; i < ALLOC_TIMES && r == AS_OK; i++) {
		struct as_alloc_counts one, more;

		r = counted(s, 1, &one, err);
		peak = fmin(peak, (double)one.peak);
		if (r == AS_OK && b.wall_ns > ALLOC_MOST_NS) {
			calls = (double)one.calls;
			bytes = (double)one.bytes;
			break;
		}
		if (r == AS_OK)
			r = counted(s, 1 + ALLOC_MORE, &more, err);
		if (r < 0)
			return r;
		calls = fmin(calls, extra_per_iteration(one.calls, more.calls));
		bytes = fmin(bytes, extra_per_iteration(one.bytes, more.bytes));
	}
	if (r < 0)
		return r;
	as_buf_adds(out, "allocations");
	as_line_num(out, calls);
	as_line_num(out, bytes);
	as_line_num(out, peak);
	as_buf_addc(out, '\n');
	return AS_OK;
}

/* ---- serve ---- */

static unsigned own_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	unsigned n = 0;

	if (!d)
		return 1;
	for (struct dirent *e = readdir(d); e; e = readdir(d))
		n += e->d_name[0] != '.';
	(void)closedir(d); /* it was open */
	return n;
}

static int serve(const struct as_question *q, const struct as_subject *s, struct as_error *err)
{
	struct as_question one = *q;
	struct as_answer_batch b = {0};
	char word;
	ssize_t n;

	one.ask = AS_ASK_MEASURE;
	if (q->prime && own_threads() == 1 && as_subject_run(s, 1, &b, err) < 0)
		return err->status;
	if (own_threads() > 1) /* also those of the first run, such as a reactor's */
		return as_fail(err, AS_E_UNSUPPORTED, 0,
			       "the program has threads: it cannot be forked");
	while ((n = read(q->ctl, &word, 1)) == 1 || (n < 0 && errno == EINTR)) {
		pid_t child = n == 1 && word == 'g' ? fork() : -1;
		int status;

		if (child == 0) {
			close(q->ctl);
			_exit(as_worker_answer(&one, s, 0) < 0);
		}
		if (child > 0 && waitpid(child, &status, 0) == child &&
		    (!WIFEXITED(status) || WEXITSTATUS(status)))
			return as_fail(err, AS_E_IO, 0,
				       WIFSIGNALED(status) ? "killed by signal %d"
							   : "ended with status %d",
				       WIFSIGNALED(status) ? WTERMSIG(status)
							   : WEXITSTATUS(status));
	}
	return AS_OK;
}

int as_worker_answer(const struct as_question *q, const struct as_subject *s, uint32_t flags)
{
	AS_CLEANUP(as_buf_clear) struct as_buf out = {0};
	struct as_error err = {0};
	double clock = as_clock_calibrate();
	int r;

	as_buf_adds(&out, "reached");
	as_line_u64(&out, as_now_ns());
	as_buf_adds(&out, "\nclock");
	as_line_num(&out, clock);
	as_buf_addc(&out, '\n');
	if (flags & ASSAY_BENCH_UNOPTIMISED)
		as_buf_adds(&out, "unoptimised\n");
	send_text(q->fd, &out);
	if (q->ask == AS_ASK_CALIBRATE) {
		as_buf_adds(&out, "loop");
		as_line_num(&out, as_loop_ns());
		as_buf_addc(&out, '\n');
		r = as_calibrate(s, q->full, &out, &err);
		tell_what(s, &out);
	} else if (q->ask == AS_ASK_MEASURE) {
		r = answer_measure(q, s, &out, &err);
	} else if (q->ask == AS_ASK_ALLOCATIONS) {
		r = answer_allocations(s, &out, &err);
	} else {
		r = serve(q, s, &err);
	}
	if (r < 0) {
		(void)refuse(q->fd, &err);
		return -1;
	}
	as_buf_adds(&out, "done\n");
	send_text(q->fd, &out);
	return 0;
}
