/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Waiting for a child: see wait.h. */
#include "measure/wait.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "measure/strays.h"

#define WITHOUT_PIDFD_NS 1000000 /* between two looks */
#define DRAIN_BYTES      (64u << 10)
#define LOOK_NS          1000000000ull /* a signal that came just before we slept is seen then */

int as_pidfd(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

static bool has_ended(pid_t pid, int flags)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | flags) == 0 &&
	       info.si_pid == pid;
}

static void pass_on(const struct as_wait *w)
{
	if (w->interrupted && *w->interrupted)
		(void)kill(w->pid, *w->interrupted > 1 ? SIGKILL : SIGINT); /* it may be gone */
}

/* Where there is nothing but the end to wait for. */
static void wait_plainly(const struct as_wait *w)
{
	while (!has_ended(w->pid, 0) && errno == EINTR)
		pass_on(w);
}

/* false: nothing is to come any more. */
static bool drain(int fd)
{
	static char bytes[DRAIN_BYTES];
	ssize_t n = read(fd, bytes, sizeof bytes);

	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* Interrupted, and long enough ago. */
static bool lost_patience(const struct as_wait *w, uint64_t now, uint64_t *since)
{
	if (!w->impatient || !w->interrupted || !*w->interrupted)
		return false;
	if (!*since)
		*since = now;
	return now - *since > AS_HEED_S * 1000000000ull;
}

static struct timespec left_of(uint64_t now, uint64_t deadline, bool has_pidfd)
{
	uint64_t ns = LOOK_NS;

	if (deadline)
		ns = AS_MIN(ns, deadline - AS_MIN(now, deadline));
	if (!has_pidfd)
		ns = AS_MIN(ns, (uint64_t)WITHOUT_PIDFD_NS);
	return (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
}

void as_wait_for_end(struct as_wait *w)
{
	struct pollfd fds[2] = {{.fd = w->pidfd, .events = POLLIN},
				{.fd = w->drain ? w->pipe_fd : -1, .events = POLLIN}};

	uint64_t since = 0;

	if (!w->deadline_ns && !w->drain && !w->impatient) {
		wait_plainly(w);
		return;
	}
	while (!has_ended(w->pid, WNOHANG)) {
		uint64_t now = as_now_ns();
		struct timespec left = left_of(now, w->deadline_ns, w->pidfd >= 0);

		w->timed_out = w->deadline_ns && now >= w->deadline_ns;
		if (w->timed_out || lost_patience(w, now, &since)) {
			as_end_tree(w->pid);
			wait_plainly(w);
			return;
		}
		/* ended: its own figures come from the kernel, what is still in the pipe does not
		 * matter, and a process that keeps it open may do so */
		if (ppoll(fds, AS_ARRAY_LEN(fds), &left, NULL) <= 0)
			pass_on(w);
		else if (fds[1].revents && !drain(fds[1].fd))
			fds[1].fd = -1;
	}
}
