/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a session says of itself at its beginning. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "collect/collect.h"

static void info(struct as_session_writer *w, const char *key, const char *value)
{
	as_write_info(w, &(struct as_rec_info){AS_STR(key), AS_STR(value)});
}

static void write_cpu_model(struct as_session_writer *w)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	char *p, *end;

	if (as_read_file("/proc/cpuinfo", 4 << 20, &b, NULL) < 0 || !b.p)
		return;
	p = strstr(b.p, "model name");
	p = p ? strchr(p, ':') : NULL;
	if (!p)
		return;
	p += strspn(p, ": \t");
	end = p + strcspn(p, "\n");
	*end = 0;
	info(w, "cpu", p);
}

static void write_machine(struct as_session_writer *w)
{
	struct utsname u;

	if (!uname(&u)) {
		info(w, "host", u.nodename);
		info(w, "kernel", u.release);
		info(w, "arch", u.machine);
	}
	write_cpu_model(w);
}

void as_write_recording_facts(struct as_session_writer *w, const struct as_recording_facts *f)
{
	char cwd[PATH_MAX], text[64];

	info(w, "version", ASSAY_VERSION);
	info(w, "engine", f->engine ? f->engine : "");
	info(w, "event", f->event ? f->event : "");
	if (f->until)
		info(w, "until", f->until);
	if (f->folder ? realpath(f->folder, cwd) != NULL : getcwd(cwd, sizeof cwd) != NULL)
		info(w, "cwd", cwd);
	write_machine(w);
	if (f->target->program_path)
		info(w, "program", f->target->program_path);
	if (f->target->attached) {
		snprintf(text, sizeof text, "%d", (int)f->target->pid);
		info(w, "pid", text);
	}
	for (size_t i = 0; f->argv && f->argv[i]; i++)
		as_write_arg(w, &(struct as_rec_arg){AS_STR(f->argv[i])});
	as_write_recording(
		w,
		&(struct as_rec_recording){
			.start_ns = f->start_ns,
			.start_realtime_ns = as_realtime_ns() - (as_now_ns() - f->start_ns),
			.rate_hz = f->rate_hz,
			.ncpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN),
			.weight_unit = f->weight_unit,
			.flags = (f->target->attached ? 1 : 0) | (f->kernel_stacks ? 2 : 0)});
}
