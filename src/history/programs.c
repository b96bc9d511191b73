/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Copies of programs, named after their contents; facts of the machine. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "history/history_priv.h"

char *as_history_which(const char *name)
{
	const char *path = getenv("PATH");

	if (strchr(name, '/'))
		return access(name, X_OK) == 0 ? realpath(name, NULL) : NULL;
	for (const char *p = path; p && *p; p += strcspn(p, ":"), p += *p == ':') {
		size_t n = strcspn(p, ":");
		struct stat st;
		AS_CLEANUP(as_free_autop)
		char *full = as_xasprintf("%.*s/%s", n ? (int)n : 1, n ? p : ".", name);

		if (access(full, X_OK) == 0 && stat(full, &st) == 0 && S_ISREG(st.st_mode))
			return realpath(full, NULL);
	}
	return NULL;
}

int as_history_keep_program(struct as_history *h, const char *path, char **ret,
			    struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf bytes = {0};
	AS_CLEANUP(as_free_autop) char *folder = as_xasprintf("%s/programs", h->folder);
	AS_CLEANUP(as_free_autop) char *copy = NULL;
	const char *slash = strrchr(path, '/');
	int r = as_read_file(path, AS_HISTORY_PROGRAM_MAX, &bytes, err);

	*ret = NULL;
	if (r == AS_E_LIMIT ||
	    (r == AS_OK && (bytes.len < 4 || memcmp(bytes.p, "\177ELF", 4) != 0)))
		return AS_OK;
	if (r == AS_OK)
		r = as_mkdir_parents(folder, err);
	if (r < 0)
		return r;
	copy = as_xasprintf("%s/%016" PRIx64 "-%s", folder, as_hash64(bytes.p, bytes.len),
			    slash ? slash + 1 : path);
	if (access(copy, X_OK) < 0) {
		r = as_write_file_atomic(copy, bytes.p, bytes.len, err);
		if (r == AS_OK && chmod(copy, 0755) < 0)
			r = as_fail(err, AS_E_IO, errno, "cannot make '%s' executable: %s",
				    copy, strerror(errno));
	}
	if (r == AS_OK)
		*ret = AS_STEAL(copy);
	return r;
}

char *as_history_machine(void)
{
	AS_CLEANUP(as_buf_clear) struct as_buf cpus = {0};
	struct utsname u;
	const char *model = "";
	int n = 0;

	if (as_read_file("/proc/cpuinfo", 4 << 20, &cpus, NULL) == AS_OK) {
		const char *p = strstr(as_buf_str(&cpus), "model name");

		p = p ? strchr(p, ':') : NULL;
		model = p ? p + 1 + strspn(p + 1, " \t") : "";
		n = (int)strcspn(model, "\n");
	}
	if (uname(&u) < 0)
		memset(&u, 0, sizeof u);
	return as_xasprintf("%.*s, %ld CPUs, %s %s", n, model, sysconf(_SC_NPROCESSORS_ONLN),
			    u.sysname, u.release);
}
