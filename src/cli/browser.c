/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Showing a page to whoever sits before the screen: see cmds_priv.h. No shell is involved. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/cmds_priv.h"

enum { WORDS = 16 };

static bool is_set(const char *name)
{
	const char *v = getenv(name);

	return v && *v;
}

/* The grandchild: init's, not ours, and silent. */
static void become(char **argv, int status)
{
	int null = open("/dev/null", O_RDWR);

	for (int fd = 0; fd < 3 && null >= 0; fd++)
		(void)dup2(null, fd); /* a browser that talks to the terminal is no failure */
	execvp(argv[0], argv);

	int e = errno;

	(void)!write(status, &e, sizeof e); /* the parent then takes it for started */
	_exit(127);
}

/* True when argv[0] could be executed. */
static bool start(char **argv)
{
	int status[2], e;
	pid_t pid;
	ssize_t n;

	if (pipe2(status, O_CLOEXEC) < 0)
		return false;
	pid = fork();
	if (pid == 0) {
		(void)setsid(); /* Ctrl-C is not for it; a new child leads no group */
		if (fork() == 0)
			become(argv, status[1]);
		_exit(0);
	}
	close(status[1]);
	do {
		n = read(status[0], &e, sizeof e);
	} while (n < 0 && errno == EINTR);
	close(status[0]);
	if (pid > 0)
		(void)waitpid(pid, NULL, 0); /* it ends at once */
	return pid > 0 && n == 0;
}

/* One command of $BROWSER: words, in which %s is the target; else it comes last. */
static bool start_command(const char *command, size_t n, const char *target)
{
	AS_CLEANUP(as_free_autop) char *text = as_xstrndup(command, n);
	char *argv[WORDS + 2], *save = NULL;
	size_t words = 0;
	bool placed = false;

	for (char *w = strtok_r(text, " ", &save); w && words < WORDS;
	     w = strtok_r(NULL, " ", &save)) {
		if (strcmp(w, "%s") == 0) {
			argv[words++] = (char *)(uintptr_t)target;
			placed = true;
		} else {
			argv[words++] = w;
		}
	}
	if (!words)
		return false;
	if (!placed)
		argv[words++] = (char *)(uintptr_t)target;
	argv[words] = NULL;
	return start(argv);
}

enum as_browser as_browser_open(const char *target)
{
	const char *browser = getenv("BROWSER");

	if (!is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY"))
		return AS_BROWSER_NO_DISPLAY;
	for (const char *p = browser; p && *p;) { /* several: the first that can be started */
		size_t n = strcspn(p, ":");

		if (start_command(p, n, target))
			return AS_BROWSER_OPENED;
		p += n + (p[n] == ':');
	}
	if (geteuid() == 0)
		return AS_BROWSER_NONE;
	return start_command("xdg-open", 8, target) ? AS_BROWSER_OPENED : AS_BROWSER_NONE;
}
