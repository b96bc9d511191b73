/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Processes left behind: see strays.h. */
#include "measure/strays.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/sys.h"

#define PAUSE_MS  5
#define STRAY_MAX 4096 /* processes that are looked at */

struct process {
	pid_t pid, parent;
	char state;
	unsigned long long start; /* tells a number that was given again */
	bool below;
};
struct processes {
	AS_VEC(struct process) v;
};

static bool read_process(const char *number, struct process *ret, char name[AS_STRAY_NAME])
{
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};
	AS_CLEANUP(as_free_autop) char *path = as_xasprintf("/proc/%s/stat", number);
	const char *p, *open;
	int pid, parent;

	if (as_read_file(path, 8192, &text, NULL) < 0)
		return false;
	open = strchr(as_buf_str(&text), '(');
	p = strrchr(as_buf_str(&text), ')');
	if (!open || !p || sscanf(as_buf_str(&text), "%d", &pid) != 1 ||
	    sscanf(p + 1,
		   " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
		   "%*d %llu",
		   &ret->state, &parent, &ret->start) != 3)
		return false;
	ret->pid = pid;
	ret->parent = parent;
	ret->below = false;
	if (name)
		snprintf(name, AS_STRAY_NAME, "%.*s", (int)(p - open - 1), open + 1);
	return true;
}

/* All of the machine's that we can see, those below root marked. */
static void find_below(pid_t root, struct processes *ret)
{
	DIR *d = opendir("/proc");
	bool more = true;

	for (const struct dirent *e; d && (e = readdir(d));) {
		struct process p;

		if (e->d_name[0] >= '0' && e->d_name[0] <= '9' && ret->v.n < STRAY_MAX &&
		    read_process(e->d_name, &p, NULL))
			as_vec_push(&ret->v, p);
	}
	if (d)
		closedir(d);
	while (more) {
		more = false;
		as_vec_foreach (p, &ret->v) {
			as_vec_foreach (q, &ret->v) {
				bool is_parent = q->pid == p->parent && q->below;

				if (p->below || (p->parent != root && !is_parent))
					continue;
				p->below = more = true;
			}
		}
	}
}

static bool is_there(const struct process *p)
{
	char number[16];
	struct process now;

	snprintf(number, sizeof number, "%d", (int)p->pid);
	return read_process(number, &now, NULL) && now.start == p->start && now.state != 'Z' &&
	       now.state != 'X';
}

static void pause_ms(int ms)
{
	(void)nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL); /* or less */
}

static bool any_there(const struct processes *all)
{
	as_vec_foreach (p, &all->v) {
		if (p->below && is_there(p))
			return true;
	}
	return false;
}

static void send(const struct processes *all, int sig)
{
	as_vec_foreach (p, &all->v) {
		if (p->below && is_there(p))
			(void)kill(p->pid, sig); /* it may be gone, or another user's */
	}
}

static void wait_gone(const struct processes *all, int ms)
{
	uint64_t end = as_now_ns() + (uint64_t)ms * 1000000;

	while (any_there(all) && as_now_ns() < end)
		pause_ms(PAUSE_MS);
}

static void end_marked(struct processes *all)
{
	send(all, SIGTERM);
	send(all, SIGCONT); /* one that was stopped would not see it */
	wait_gone(all, AS_END_GRACE_MS);
	send(all, SIGKILL);
}

void as_end_tree(pid_t root)
{
	struct processes all = {0}, later = {0};

	find_below(root, &all);
	as_vec_foreach (p, &all.v)
		p->below |= p->pid == root;
	end_marked(&all);
	find_below(root, &later); /* what was started meanwhile */
	send(&later, SIGKILL);
	as_vec_clear(&all.v);
	as_vec_clear(&later.v);
}

/* ---- what runs leave ---- */

void as_strays_begin(struct as_strays *s)
{
	int was = 0;

	*s = (struct as_strays){0};
	(void)prctl(PR_GET_CHILD_SUBREAPER, &was, 0, 0, 0); /* 0 where it is not known */
	s->was_reaper = was;
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* without: orphans go to init */
}

static bool has_children(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static void reap(const struct processes *all)
{
	as_vec_foreach (p, &all->v) {
		if (p->below && p->parent == getpid())
			(void)waitpid(p->pid, NULL, WNOHANG);
	}
}

void as_strays_mark(struct as_strays *s)
{
	struct processes all = {0};

	s->known.n = 0;
	if (!has_children())
		return;
	find_below(getpid(), &all);
	reap(&all);
	as_vec_foreach (p, &all.v) {
		if (p->below)
			as_vec_push(&s->known, p->pid);
	}
	as_vec_clear(&all.v);
}

static bool is_known(const struct as_strays *s, pid_t pid)
{
	as_vec_foreach (k, &s->known) {
		if (*k == pid)
			return true;
	}
	return false;
}

/* A child of one that may stay may stay, too. */
static void leave_known(const struct as_strays *s, struct processes *all)
{
	struct processes kept = {0};

	as_vec_foreach (k, &s->known) {
		find_below(*k, &kept);
		as_vec_foreach (p, &all->v) {
			p->below &= p->pid != *k;
			as_vec_foreach (q, &kept.v)
				p->below &= !(q->below && q->pid == p->pid);
		}
		as_vec_clear(&kept.v);
	}
}

size_t as_strays_end(const struct as_strays *s, char name[AS_STRAY_NAME])
{
	struct processes all = {0};
	size_t found = 0;

	name[0] = 0;
	if (!has_children())
		return 0;
	find_below(getpid(), &all);
	leave_known(s, &all);
	wait_gone(&all, AS_STRAY_GRACE_MS);
	as_vec_foreach (p, &all.v) {
		char number[16], its[AS_STRAY_NAME];
		struct process now;

		snprintf(number, sizeof number, "%d", (int)p->pid);
		if (!p->below || is_known(s, p->pid) || !is_there(p) ||
		    !read_process(number, &now, its))
			continue;
		if (!found++)
			memcpy(name, its, AS_STRAY_NAME);
	}
	if (found)
		end_marked(&all);
	wait_gone(&all, AS_END_GRACE_MS);
	reap(&all);
	as_vec_clear(&all.v);
	return found;
}

void as_strays_finish(struct as_strays *s)
{
	char name[AS_STRAY_NAME];

	s->known.n = 0;
	(void)as_strays_end(s, name); /* nobody asks which */
	(void)prctl(PR_SET_CHILD_SUBREAPER, s->was_reaper, 0, 0,
		    0); /* it was possible before */
	as_vec_clear(&s->known);
}
