/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Shell commands around runs: see shell.h. */
#include "measure/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "measure/strays.h"
#include "measure/wait.h"

extern char **environ;

static int start(const struct as_shell_request *q, pid_t *ret)
{
	char c[] = "-c";
	AS_CLEANUP(as_free_autop) char *sh = as_xstrdup(q->shell ? q->shell : "/bin/sh");
	AS_CLEANUP(as_free_autop) char *text = as_xstrdup(q->command);
	char *argv[] = {sh, c, text, NULL};
	posix_spawn_file_actions_t actions;
	int e = posix_spawn_file_actions_init(&actions);

	if (e)
		return e;
	if (q->folder)
		e = posix_spawn_file_actions_addchdir_np(&actions, q->folder);
	for (int fd = 0; fd < 3 && !e && q->silent; fd++)
		e = posix_spawn_file_actions_addopen(&actions, fd, "/dev/null",
						     fd ? O_WRONLY : O_RDONLY, 0);
	if (!e)
		e = posix_spawnp(ret, sh, &actions, NULL, argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions); /* it was made */
	return e;
}

int as_shell_run(const struct as_shell_request *q, struct as_error *err)
{
	struct as_wait wait = {.deadline_ns = q->deadline_ns,
			       .interrupted = q->interrupted,
			       .impatient = true};
	int status = 0, e;
	const char *hint;

	if (!q->command)
		return AS_OK;
	e = start(q, &wait.pid);
	if (e)
		return as_fail(err, AS_E_IO, e, "cannot run --%s: %s", q->what, strerror(e));
	wait.pidfd = as_pidfd(wait.pid);
	as_wait_for_end(&wait);
	if (wait.pidfd >= 0)
		close(wait.pidfd);
	while (waitpid(wait.pid, &status, 0) < 0 && errno == EINTR)
		;
	if (q->interrupted && *q->interrupted)
		return as_fail(err, AS_E_CANCELLED, 0, "--%s '%s' was interrupted", q->what,
			       q->command);
	if (wait.timed_out)
		return as_fail(err, AS_E_LIMIT, 0,
			       "--%s '%s' did not end in time, and was ended", q->what,
			       q->command);
	if (status == 0)
		return AS_OK;
	hint = q->silent ? "\n  --show-output shows what it printed" : "";
	return as_fail(err, AS_E_IO, 0, "--%s '%s' failed (%s %d)%s", q->what, q->command,
		       WIFSIGNALED(status) ? "signal" : "status",
		       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), hint);
}
