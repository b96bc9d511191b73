/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Fixtures made while a test runs: a scratch directory that is removed at exit, shell commands
 * in it, and skipping with a reason where a tool is absent. Include after cmocka.h.
 *
 *	fx_need("gcc");
 *	fx_write("t.c", "int main(void) { return 0; }");
 *	assert_int_equal(fx_sh("gcc -g t.c -o t"), 0);
 *	as_elf_open(fx_path("t"), &e, &err);
 */
#ifndef AS_TESTS_FIXTURE_H
#define AS_TESTS_FIXTURE_H

#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char fx_dir_[PATH_MAX];
static pid_t fx_owner_;

/* Runs a command line with sh; status as the shell's, -1 when it could not run. */
static inline int fx_run_(const char *cmd)
{
	char *argv[] = {(char *)"sh", (char *)"-c", (char *)(uintptr_t)cmd, NULL};
	pid_t pid;
	int st;

	if (posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ) != 0)
		return -1;
	if (waitpid(pid, &st, 0) != pid)
		return -1;
	return WIFEXITED(st) ? WEXITSTATUS(st) : -1;
}

static inline void fx_clean_(void)
{
	char cmd[PATH_MAX + 32];

	if (fx_owner_ != getpid())
		return;
	snprintf(cmd, sizeof cmd, "rm -rf -- '%s'", fx_dir_);
	(void)fx_run_(cmd); /* a left-over scratch directory fails no test */
}

static inline const char *fx_dir(void)
{
	const char *tmp = getenv("TMPDIR");

	if (fx_dir_[0])
		return fx_dir_;
	snprintf(fx_dir_, sizeof fx_dir_, "%s/assay-test-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(fx_dir_))
		abort();
	fx_owner_ = getpid();
	atexit(fx_clean_);
	return fx_dir_;
}

/* Runs a command in the scratch directory, its standard error silenced unless FX_VERBOSE is set. */
__attribute__((format(printf, 1, 2))) static inline int fx_sh(const char *fmt, ...)
{
	char cmd[16384];
	int n = snprintf(cmd, sizeof cmd, "cd '%s' || exit 99\n%s\n", fx_dir(),
			 getenv("FX_VERBOSE") ? "" : "exec 2>/dev/null");
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cmd + n, sizeof cmd - (size_t)n, fmt, ap);
	va_end(ap);
	return fx_run_(cmd);
}

/* A setup of cmocka: the scratch directory is there and empty. */
static inline int fx_empty(void **state)
{
	return fx_sh("find . -mindepth 1 -delete");
}

static inline bool fx_have(const char *tool)
{
	return fx_sh("command -v %s >/dev/null", tool) == 0;
}

/* A path in the scratch directory; 8 of them live at a time. */
static inline const char *fx_path(const char *name)
{
	static char paths[8][PATH_MAX + 256];
	static int next;
	char *p = paths[next++ & 7];

	snprintf(p, sizeof paths[0], "%s/%s", fx_dir(), name);
	return p;
}

static inline void fx_write_bytes(const char *name, const void *p, size_t n)
{
	FILE *f = fopen(fx_path(name), "wb");

	if (!f || fwrite(p, 1, n, f) != n || fclose(f) != 0)
		abort();
}

static inline void fx_write(const char *name, const char *text)
{
	fx_write_bytes(name, text, strlen(text));
}

/* Whole file; malloc'ed. NULL when absent. */
static inline unsigned char *fx_read(const char *name, size_t *ret_n)
{
	FILE *f = fopen(fx_path(name), "rb");
	unsigned char *p = NULL;
	struct stat st;

	*ret_n = 0;
	if (!f)
		return NULL;
	if (fstat(fileno(f), &st) == 0 && (p = malloc((size_t)st.st_size + 1)) != NULL)
		*ret_n = fread(p, 1, (size_t)st.st_size, f);
	fclose(f);
	return p;
}

#define fx_skip(...)                                                                           \
	do {                                                                                   \
		print_message("skipped: " __VA_ARGS__);                                        \
		print_message("\n");                                                           \
		skip();                                                                        \
	} while (0)
#define fx_need(tool)                                                                          \
	do {                                                                                   \
		if (!fx_have(tool))                                                            \
			fx_skip("no %s on this machine", tool);                                \
	} while (0)

#endif
