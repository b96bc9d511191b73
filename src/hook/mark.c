/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A mark asked for by another process than the recorder: it is written into the control page where the
 * target has it mapped, and the recorder, which looks there each time it reads the rings, says when it
 * is made. So there is no socket, no file, and no other right than that of an attach.
 */
#include "hook/hooked.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/sys.h"

#define NAME      "/memfd:assay "
#define WAIT_NS   1000000000ull
#define PAGES_MAX 16 /* left by those that recorded it before */

struct pages {
	uint64_t control[PAGES_MAX];
	size_t n;
};

static int find_pages(pid_t pid, struct pages *ret, struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	char path[64], *line, *rest = NULL;
	int r;

	ret->n = 0;
	snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
	r = as_read_file(path, 64u << 20, &b, err);
	if (r < 0)
		return r;
	for (line = b.p ? strtok_r(b.p, "\n", &rest) : NULL; line;
	     line = strtok_r(NULL, "\n", &rest)) {
		unsigned long start, off;

		if (strstr(line, NAME) && sscanf(line, "%lx-%*x %*s %lx", &start, &off) == 2 &&
		    !off && ret->n < PAGES_MAX)
			ret->control[ret->n++] = start;
	}
	return 0;
}

struct request {
	uint32_t asked;
	uint32_t made;
	uint32_t pid, bytes;
	char name[AS_RT_MARK_BYTES];
};
_Static_assert(offsetof(struct as_rt_control, mark_name) -
			       offsetof(struct as_rt_control, mark_asked) ==
		       offsetof(struct request, name),
	       "as in abi/rt.h");

static uint64_t place(uint64_t control, size_t field)
{
	return control + offsetof(struct as_rt_control, mark_asked) + field;
}

static bool is_control(int mem, uint64_t control)
{
	struct {
		uint64_t magic;
		uint32_t version;
	} head;

	return pread(mem, &head, sizeof head, (off_t)control) == sizeof head &&
	       head.magic == AS_RT_MAGIC && head.version == AS_RT_VERSION;
}

/* The number comes last: the recorder reads the rest when it sees another one. */
static bool ask(int mem, uint64_t control, const struct request *q)
{
	const size_t from = offsetof(struct request, pid);

	return is_control(mem, control) &&
	       pwrite(mem, (const char *)q + from, sizeof *q - from,
		      (off_t)place(control, from)) == (ssize_t)(sizeof *q - from) &&
	       pwrite(mem, &q->asked, sizeof q->asked, (off_t)place(control, 0)) ==
		       sizeof q->asked;
}

static bool is_made(int mem, uint64_t control, uint32_t asked)
{
	uint32_t made;

	return pread(mem, &made, sizeof made,
		     (off_t)place(control, offsetof(struct request, made))) == sizeof made &&
	       made == asked;
}

static int ask_and_wait(pid_t pid, int mem, const struct request *q, struct as_error *err)
{
	uint64_t until = as_now_ns() + WAIT_NS;
	struct pages p;
	size_t asked = 0;
	int r = find_pages(pid, &p, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < p.n; i++)
		asked += ask(mem, p.control[i], q);
	while (asked && as_now_ns() < until) {
		for (size_t i = 0; i < p.n; i++) {
			if (is_made(mem, p.control[i], q->asked))
				return 0;
		}
		nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
	}
	return as_fail(err, AS_E_NOTFOUND, 0,
		       "nobody records the memory of process %d: start with 'assay heap -p %d'",
		       (int)pid, (int)pid);
}

int as_hook_mark(pid_t pid, const char *name, size_t n, struct as_error *err)
{
	struct request q = {.asked = (uint32_t)(as_now_ns() >> 10) | 1, .pid = (uint32_t)pid};
	char path[64];
	int mem, r;

	if (!n || n > AS_RT_MARK_BYTES)
		return as_fail(err, AS_E_USAGE, 0, "a mark's name has 1 to %u bytes",
			       AS_RT_MARK_BYTES);
	q.bytes = (uint32_t)n;
	memcpy(q.name, name, n);
	snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
	mem = open(path, O_RDWR | O_CLOEXEC);
	if (mem < 0 && errno == ENOENT)
		return as_fail(err, AS_E_NOTFOUND, errno, "no process %d", (int)pid);
	if (mem < 0)
		return as_fail(err, AS_E_ACCESS, errno,
			       "cannot write the memory of process %d: %s\n"
			       "  it must be yours and not setuid; or use root",
			       (int)pid, strerror(errno));
	r = ask_and_wait(pid, mem, &q, err);
	close(mem);
	return r;
}
