/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* surroundings: prints all of what a process inherits or can see of its start that a tool which
 * runs it could change. Two runs print the same text. */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int fds[256], n = 0;

	for (struct dirent *e; (e = readdir(d)) && n < 256;)
		if (isdigit((unsigned char)e->d_name[0]) &&
		    (int)strtol(e->d_name, NULL, 10) != dirfd(d))
			fds[n++] = (int)strtol(e->d_name, NULL, 10);
	closedir(d);
	qsort(fds, (size_t)n, sizeof *fds, by_number);
	for (int i = 0; i < n; i++) {
		char link[64], target[4096];
		ssize_t k;

		snprintf(link, sizeof link, "/proc/self/fd/%d", fds[i]);
		k = readlink(link, target, sizeof target - 1);
		target[k < 0 ? 0 : k] = 0;
		printf("fd %d %s flags %o at %ld\n", fds[i], target,
		       (unsigned)fcntl(fds[i], F_GETFL), (long)lseek(fds[i], 0, SEEK_CUR));
	}
}

static void status(void)
{
	static const char *const keep[] = {
		"SigPnd:",      "ShdPnd:",     "SigBlk:",  "SigIgn:",       "SigCgt:",
		"Cap",          "NoNewPrivs:", "Seccomp:", "Cpus_allowed:", "TracerPid:",
		"Threads:",     "Umask:",      "Groups:",  "Uid:",          "Gid:",
		"CoreDumping:", "THP_enabled:"};
	FILE *f = fopen("/proc/self/status", "r");
	char line[4096];

	while (f && fgets(line, sizeof line, f))
		for (size_t i = 0; i < sizeof keep / sizeof *keep; i++)
			if (!strncmp(line, keep[i], strlen(keep[i])))
				fputs(line, stdout);
	if (f)
		fclose(f);
}

static void small_file(const char *path)
{
	FILE *f = fopen(path, "r");
	char line[4096];

	while (f && fgets(line, sizeof line, f))
		printf("%s %s", path, line);
	if (f)
		fclose(f);
}

int main(int argc, char **argv)
{
	char cwd[4096];
	int death = 0;

	for (int i = 0; i < argc; i++)
		printf("argv %s\n", argv[i]);
	for (char **e = environ; *e; e++)
		if (strncmp(*e, "_=", 2)) /* the shell's note of what it started */
			printf("env %s\n", *e);
	descriptors();
	status();
	printf("cwd %s\n", getcwd(cwd, sizeof cwd) ? cwd : "?");
	printf("group is the session's %d, the terminal's %d\n", getpgrp() == getsid(0),
	       tcgetpgrp(0) == getpgrp());
	if (getpgrp() != getsid(0))
		printf("group %d session %d\n", (int)getpgrp(), (int)getsid(0));
	printf("nice %d policy %d\n", getpriority(PRIO_PROCESS, 0), sched_getscheduler(0));
	for (int r = 0; r < RLIM_NLIMITS; r++) {
		struct rlimit l = {0, 0};

		getrlimit((__rlimit_resource_t)r, &l);
		printf("limit %d %llu %llu\n", r, (unsigned long long)l.rlim_cur,
		       (unsigned long long)l.rlim_max);
	}
	prctl(PR_GET_PDEATHSIG, &death);
	printf("death signal %d dumpable %d slack %d\n", death, prctl(PR_GET_DUMPABLE),
	       prctl(PR_GET_TIMERSLACK));
	printf("personality %x\n", (unsigned)personality(0xffffffff));
	small_file("/proc/self/oom_score_adj");
	small_file("/proc/self/coredump_filter");
	small_file("/proc/self/cgroup");
	small_file("/proc/self/timerslack_ns");
	return 0;
}
