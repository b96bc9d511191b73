/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The real runtime in a program and everything that program starts:
 *
 *	hook-heap [-o FILE] [-b BYTES] -- COMMAND…	from its start; exits as it does
 *	hook-heap [-o FILE] -l -- COMMAND…		and looks for leaks at the end of each process
 *	hook-heap [-o FILE] [-b BYTES] -s SECONDS -p PID	attached for a while
 *	hook-heap -m NAME -p PID			a mark, made by the one that records PID
 *
 * Prints per process "process PID NAME events E complete C cut U dropped D holes H bad B", the sums
 * "sum allocs bytes live_blocks live_bytes peak_bytes" with "half", their half widths, "mark NAME
 * live_blocks live_bytes", "lost EVENTS" of threads without a ring, and per hooked function "calls NAME
 * MODULE", with tabs between; -l: "leaks PID CLASS BLOCKS BYTES" per process and class, "look PID
 * pause_us N cpu_us N scanned N unread N rss N", and "part PID KIND NAME BYTES MAPPED". Follows exec,
 * and patches modules that dlopen brings. -b: sampling.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/sys.h"
#include "heap/drain.h"
#include "heap/leak.h"
#include "heap/resident.h"
#include "hook/hooked.h"
#include "held.h"
#include "rt/rt.h"
#include "snapshot/snapshot.h"

#define MAX_TARGETS 256

struct target {
	struct as_hooked *h;
	struct as_heap_drain *drain;
	struct as_heap_stacks stacks;
	struct as_heap_area area;
	char name[64];
	bool ended;
	struct as_rt_rec_sync exit; /* to be answered; serial 0: none */
};
static struct target *target[MAX_TARGETS];
static size_t ntargets;

struct watch {
	pid_t tid, pid;
};
static AS_VEC(struct watch) watches;

static struct as_hook_spec spec = {
	.groups = AS_HOOKS_OF_HEAP,
	.ring_bytes = 4 << 20,
	.flags = AS_RT_WAIT_FULL,
};
static struct as_error err;
static FILE *out;
static bool leaks_wanted;

/* ---- the drain's host ---- */

static struct as_heap *on_process(void *ctx, uint32_t pid, uint64_t time_ns)
{
	(void)ctx, (void)pid;
	return as_heap_new(time_ns);
}

static uint32_t on_thread(void *ctx, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
	(void)ctx, (void)pid, (void)time_ns;
	return tid;
}

static bool locate(void *ctx, uint32_t pid, uint64_t avma, struct as_heap_frame *ret)
{
	(void)ctx, (void)pid;
	ret->module = AS_HEAP_NONE;
	ret->addr = avma;
	return true;
}

static bool is_watched(pid_t tid)
{
	as_vec_foreach (w, &watches) {
		if (w->tid == tid)
			return true;
	}
	return false;
}

static bool is_watched_process(pid_t pid)
{
	as_vec_foreach (w, &watches) {
		if (w->pid == pid)
			return true;
	}
	return false;
}

static void on_sync(void *ctx, const struct as_rt_rec_sync *r)
{
	struct target *t = ctx;

	if (r->kind == AS_RT_EXIT && leaks_wanted) {
		t->exit = *r;
		return; /* looked at behind this round, then answered */
	}
	if (r->kind == AS_RT_EXEC && !is_watched((pid_t)r->tid)) {
		if (as_hook_check_notice(t->h, r, &err) == 0 &&
		    as_hook_watch_exec((pid_t)r->tid, &err) == 0)
			as_vec_push(&watches, (struct watch){(pid_t)r->tid, (pid_t)r->pid});
		else
			fprintf(out, "# not followed: %s\n", err.msg);
	}
	if (r->kind == AS_RT_MODULES && as_hook_update(t->h, &err) == 0)
		as_heap_drain_remapped(t->drain, r->pid);
	as_hook_answer(t->h, r->serial);
}

static void add_target(struct as_hooked *h)
{
	struct target *t = as_xcalloc(1, sizeof *t);
	const struct as_rt_home *home = as_hook_home(h);
	struct as_heap_host host = {t, on_process, on_thread, locate, on_sync};
	char path[64];
	size_t bytes;
	FILE *f;

	t->h = h;
	t->area.control = as_hook_shared(h, &bytes);
	t->area.rings = (char *)t->area.control + AS_RT_CONTROL_BYTES;
	t->area.ring_bytes = home->ring_bytes;
	t->area.context_max = home->context_max;
	t->area.control->full_wait_us = 100000;
	t->drain = as_heap_drain_new(&t->area, &host, &t->stacks);
	snprintf(path, sizeof path, "/proc/%d/comm", (int)as_hook_pid(h));
	f = fopen(path, "r");
	if (!f || fscanf(f, "%63[^\n]", t->name) != 1)
		snprintf(t->name, sizeof t->name, "?");
	if (f)
		fclose(f);
	for (size_t i = 0; i < as_hook_unseen_count(h); i++) {
		const char *module, *what;

		as_hook_unseen(h, i, &module, &what);
		fprintf(out, "# not seen: %s in %s\n", what, module);
	}
	if (ntargets < MAX_TARGETS)
		target[ntargets++] = t;
}

/* ---- leaks ---- */

static void read_rings(void *ctx)
{
	struct target *t = ctx;

	while (as_heap_drain_round(t->drain, UINT64_MAX))
		;
}

static struct as_heap *heap_of(const struct target *t, uint32_t pid)
{
	const struct as_heap_drained *d;
	size_t n;

	d = as_heap_drain_processes(t->drain, &n);
	for (size_t i = 0; i < n; i++) {
		if (d[i].pid == pid)
			return d[i].heap;
	}
	return NULL;
}

static void print_leaks(uint32_t pid, const struct as_heap *h)
{
	const struct as_heap_resident *r = h->resident;

	for (unsigned c = 0; c < AS_LEAK_CLASSES; c++)
		fprintf(out, "leaks\t%u\t%s\t%lu\t%lu\n", pid, as_leak_class_name(c),
			h->leaks->sum[c].blocks, h->leaks->sum[c].bytes);
	fprintf(out, "look\t%u\tpause_us %lu\tcpu_us %lu\tscanned %lu\tunread %lu\trss %lu\n",
		pid, h->leaks->pause_ns / 1000, h->leaks->cpu_ns / 1000,
		h->leaks->scanned_bytes, h->leaks->unread_bytes, r->rss_bytes);
	as_vec_foreach (p, &r->parts)
		fprintf(out, "part\t%u\t%u\t%s\t%lu\t%lu\n", pid, p->kind,
			p->name ? p->name : "", p->bytes, p->mapped_bytes);
}

static void look_at_exit(struct target *t)
{
	struct as_snapshot_spec look = {
		.pid = (pid_t)t->exit.pid,
		.hooked = t->h,
		.heap = heap_of(t, t->exit.pid),
		.drain = read_rings,
		.ctx = t,
		.stay = true,
		.exit_tid = (pid_t)t->exit.tid,
		.exit_sp = t->exit.arg[1],
	};
	uint32_t serial = t->exit.serial;

	if (!serial)
		return;
	t->exit.serial = 0;
	if (look.heap && as_snapshot_look(&look, &err) == 0)
		print_leaks(t->exit.pid, look.heap);
	else if (look.heap)
		fprintf(out, "# leaks of %u: %s\n", t->exit.pid, err.msg);
	as_hook_answer(t->h, serial);
}

/* ---- the loop ---- */

static pid_t main_pid;
static int main_status = -1; /* of its end */

static void poll_watches(void)
{
	for (size_t i = 0; i < watches.n;) {
		struct watch w = watches.v[i];
		struct as_hooked *h = NULL;
		int status = -1;
		enum as_hook_watched got = as_hook_watch_poll(w.tid, w.pid, &status);

		if (got == AS_HOOK_WATCH_NOTHING) {
			i++;
			continue;
		}
		watches.v[i] = watches.v[--watches.n];
		if (got == AS_HOOK_WATCH_EXEC) {
			if (as_hook_begin(w.pid, &spec, &h, &status, &err) == 0)
				add_target(h);
			else
				fprintf(out, "# %d: %s\n", (int)w.pid, err.msg);
		}
		if (w.pid == main_pid && status != -1)
			main_status = status;
	}
}

/* Threads that have ended give back their rings. */
static void look_for_ends(struct target *t)
{
	for (uint32_t i = 1; i < as_heap_area_top(&t->area); i++) {
		const struct as_rt_ring *ring =
			(void *)((char *)t->area.rings +
				 (size_t)i * (AS_RT_RING_HEAD_BYTES + t->area.ring_bytes));
		uint32_t tid = t->area.control->owner[i];
		char path[64];

		if (!tid) /* its ring has no page yet, and a look would make one */
			continue;
		snprintf(path, sizeof path, "/proc/%u/task/%u", ring->pid, tid);
		if (tid && ring->pid && access(path, F_OK) < 0)
			as_heap_drain_gone(t->drain, i);
	}
}

static void round_all(void)
{
	static unsigned n;

	for (size_t i = 0; i < ntargets; i++) {
		uint64_t now = as_now_ns();

		target[i]->area.control->clock_ns = now;
		target[i]->area.control->heartbeat++;
		(void)as_heap_drain_round(target[i]->drain, now);
		(void)as_heap_drain_asked(target[i]->drain, now);
		look_at_exit(target[i]);
		if (n % 32 == 0)
			look_for_ends(target[i]);
	}
	n++;
	poll_watches();
	nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

static void print_sums(const struct as_heap *h)
{
	const struct as_heap_domain_sum *s = &h->sum[AS_HEAP_BLOCKS];
	uint64_t bytes = 0;
	double variance = 0;

	as_vec_foreach (t, &h->tallies) {
		bytes += t->key.domain == AS_HEAP_BLOCKS ? t->bytes : 0;
		variance += t->key.domain == AS_HEAP_BLOCKS
				    ? as_heap_rare_of(h, t)->bytes_variance
				    : 0;
	}
	fprintf(out, "sum\t%lu\t%lu\t%lu\t%lu\t%lu\n", h->allocs, bytes, s->live.blocks,
		s->live.bytes, s->peak.bytes);
	fprintf(out, "half\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\n",
		as_heap_half_width(h->allocs_variance), as_heap_half_width(variance),
		as_heap_half_width(s->live.blocks_variance),
		as_heap_half_width(s->live.bytes_variance),
		as_heap_half_width(s->peak.bytes_variance));
	as_vec_foreach (m, &h->marks)
		fprintf(out, "mark\t%s\t%lu\t%lu\n", m->name, m->live.blocks, m->live.bytes);
}

static void print_process(const struct target *t, const struct as_heap_drained *d)
{
	uint64_t events = 0;

	for (size_t k = 0; k < d->hook_events.n; k++)
		events += d->hook_events.v[k];
	fprintf(out,
		"process\t%u\t%s\tevents %lu\tcomplete %lu\tcut %lu\tdropped %lu\tholes "
		"%lu\tbad %lu\n",
		d->pid, t->name, events, d->complete, d->cut, d->dropped, d->holes, d->bad);
	print_sums(d->heap);
	fprintf(out, "lost\t%lu\n", t->area.control->lost_no_context);
	for (size_t k = 0; k < as_hook_count(t->h); k++) {
		struct as_hook_function_info f;

		as_hook_get(t->h, k, &f);
		if (f.id < d->hook_events.n && d->hook_events.v[f.id])
			fprintf(out, "%lu\t%s\t%s\n", d->hook_events.v[f.id], f.name, f.module);
	}
}

static void print_all(void)
{
	for (size_t i = 0; i < ntargets; i++) {
		const struct as_heap_drained *d;
		size_t n;

		as_heap_drain_finish(target[i]->drain);
		d = as_heap_drain_processes(target[i]->drain, &n);
		for (size_t k = 0; k < n; k++) {
			as_heap_finish(d[k].heap);
			print_process(target[i], &d[k]);
		}
	}
	fflush(out);
}

static int launch(char **argv)
{
	struct as_hooked *h = NULL;
	int hold, status = -1;
	pid_t pid = start_held(argv, &hold);

	if (as_hook_watch_exec(pid, &err) < 0 || write(hold, "", 1) != 1)
		return 2;
	if (as_hook_launch(pid, &spec, &h, &status, &err) < 0)
		fprintf(stderr, "hook-heap: %s\n", err.msg);
	else
		add_target(h);
	main_pid = pid;
	main_status = status;
	while (main_status == -1) {
		round_all();
		/* stops of one that is traced come by the same way, and are not ours to take */
		if (main_status == -1 && !is_watched_process(pid) &&
		    waitpid(pid, &status, WNOHANG) == pid)
			main_status = status;
	}
	print_all();
	status = main_status;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int attach(pid_t pid, double seconds)
{
	uint64_t until = as_now_ns() + (uint64_t)(seconds * 1e9);
	struct as_hook_cost cost;
	struct as_hooked *h;

	if (as_hook_attach(pid, &spec, &h, &err) < 0) {
		fprintf(stderr, "hook-heap: %s\n", err.msg);
		return 2;
	}
	add_target(h);
	while (as_now_ns() < until)
		round_all();
	if (as_hook_detach(h, &err) < 0 && err.status != AS_E_NOTFOUND) {
		fprintf(stderr, "hook-heap: detach: %s\n", err.msg);
		return 2;
	}
	print_all();
	as_hook_costs(h, &cost);
	fprintf(out, "# stops: map %lu us, patch %lu us, detach %lu us\n", cost.map_ns / 1000,
		cost.patch_ns / 1000, cost.detach_ns / 1000);
	return 0;
}

static int mark(pid_t pid, const char *name)
{
	if (as_hook_mark(pid, name, strlen(name), &err) == 0)
		return 0;
	fprintf(stderr, "hook-heap: %s\n", err.msg);
	return 2;
}

int main(int argc, char **argv)
{
	const char *name = NULL;
	double seconds = 1;
	pid_t pid = 0;
	int c;

	spec.image = as_rt_blob;
	spec.image_bytes = as_rt_blob_bytes;
	spec.cache_dir = as_cache_dir();
	out = stdout;
	while ((c = getopt(argc, argv, "+o:s:p:b:m:l")) != -1) {
		if (c == 'o' && !(out = fopen(optarg, "we")))
			return 2;
		if (c == 'l') {
			leaks_wanted = true;
			spec.groups |= AS_HOOKS_EXIT | AS_HOOKS_MAPPINGS;
		}
		if (c == 's')
			seconds = strtod(optarg, NULL);
		if (c == 'b')
			spec.sample_bytes = strtoull(optarg, NULL, 0);
		if (c == 'm')
			name = optarg;
		if (c == 'p')
			pid = (pid_t)strtol(optarg, NULL, 0);
	}
	if (!pid && optind == argc)
		return 2;
	if (name)
		return mark(pid, name);
	if (!pid && as_hook_check_program(argv[optind], &err) < 0) {
		fprintf(stderr, "hook-heap: %s\n", err.msg);
		return 2;
	}
	return pid ? attach(pid, seconds) : launch(argv + optind);
}
