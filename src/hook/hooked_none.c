/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Builds for other machines than x86-64: no process is patched. */
#include "hook/hooked.h"
#include "hook/known.h"
#include "hook/insn.h"

static int unsupported(struct as_error *err)
{
	return as_fail(err, AS_E_UNSUPPORTED, 0, "%s", as_hook_cannot_patch(AS_ARCH_X86_64));
}

int as_hook_attach(pid_t pid, const struct as_hook_spec *spec, struct as_hooked **ret,
		   struct as_error *err)
{
	(void)pid, (void)spec, (void)ret;
	return unsupported(err);
}

int as_hook_watch_exec(pid_t tid, struct as_error *err)
{
	(void)tid;
	return unsupported(err);
}

int as_hook_check_notice(const struct as_hooked *h, const struct as_rt_rec_sync *notice,
			 struct as_error *err)
{
	(void)h, (void)notice;
	return unsupported(err);
}

int as_hook_check_program(const char *path, struct as_error *err)
{
	(void)path, (void)err;
	return 0; /* as_hook_launch says what is the matter */
}

size_t as_hook_unseen_count(const struct as_hooked *h)
{
	(void)h;
	return 0;
}

void as_hook_unseen(const struct as_hooked *h, size_t i, const char **ret_path,
		    const char **ret_what)
{
	(void)h, (void)i;
	*ret_path = *ret_what = "";
}

const char *as_hook_unseen_why(const struct as_hooked *h, size_t i)
{
	(void)h, (void)i;
	return NULL;
}

int as_hook_mark(pid_t pid, const char *name, size_t n, struct as_error *err)
{
	(void)pid, (void)name, (void)n;
	return unsupported(err);
}

enum as_hook_watched as_hook_watch_poll(pid_t tid, pid_t pid, int *ret_status)
{
	(void)tid, (void)pid, (void)ret_status;
	return AS_HOOK_WATCH_NOTHING;
}

void as_hook_unwatch(pid_t tid)
{
	(void)tid;
}

int as_hook_begin(pid_t pid, const struct as_hook_spec *spec, struct as_hooked **ret,
		  int *ret_status, struct as_error *err)
{
	(void)pid, (void)spec, (void)ret, (void)ret_status;
	return unsupported(err);
}

int as_hook_launch(pid_t pid, const struct as_hook_spec *spec, struct as_hooked **ret,
		   int *ret_status, struct as_error *err)
{
	(void)pid, (void)spec, (void)ret, (void)ret_status;
	return unsupported(err);
}

int as_hook_update(struct as_hooked *h, struct as_error *err)
{
	(void)h;
	return unsupported(err);
}

void as_hook_answer(struct as_hooked *h, uint32_t serial)
{
	(void)h, (void)serial;
}

int as_hook_detach(struct as_hooked *h, struct as_error *err)
{
	(void)h;
	return unsupported(err);
}

int as_hook_detach_child(struct as_hooked *h, pid_t child, struct as_error *err)
{
	(void)h, (void)child;
	return unsupported(err);
}

void as_hook_free(struct as_hooked *h)
{
	(void)h;
}

pid_t as_hook_pid(const struct as_hooked *h)
{
	(void)h;
	return 0;
}

void *as_hook_shared(const struct as_hooked *h, size_t *ret_bytes)
{
	(void)h;
	*ret_bytes = 0;
	return NULL;
}

int as_hook_shared_fd(const struct as_hooked *h)
{
	(void)h;
	return 0;
}

const struct as_rt_home *as_hook_home(const struct as_hooked *h)
{
	static const struct as_rt_home none;

	(void)h;
	return &none;
}

size_t as_hook_count(const struct as_hooked *h)
{
	(void)h;
	return 0;
}

void as_hook_get(const struct as_hooked *h, size_t i, struct as_hook_function_info *ret)
{
	(void)h, (void)i;
	*ret = (struct as_hook_function_info){.name = "", .module = ""};
}

void as_hook_costs(const struct as_hooked *h, struct as_hook_cost *ret)
{
	(void)h;
	*ret = (struct as_hook_cost){0};
}

struct as_hook_known *as_hook_known_new(void)
{
	return NULL;
}

void as_hook_known_free(struct as_hook_known *k)
{
	(void)k;
}
