/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * call-sites SESSION: does every return address of the recorded frames lie behind a call? Prints
 * "N frames, M not behind a call" and the latter. Left out: the kernel's, memory without a file, and
 * the first code of a thread or coroutine and signal trampolines, which nobody called.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "elf/elf.h"
#include "session/session.h"
#include "unwind/unwind.h"

struct state {
	AS_VEC(struct as_elf *) elf; /* by session module id */
	AS_VEC(char *) string;
	AS_VEC(struct as_rec_frame) frame;
	AS_VEC(bool) is_root; /* by frame: it was somebody's first one */
};

static int on_string(void *ctx, const struct as_rec_string *r)
{
	struct state *s = ctx;

	while (s->string.n <= r->id)
		as_vec_push(&s->string, NULL);
	s->string.v[r->id] = as_xstrndup(r->text.p, r->text.n);
	return 0;
}

static int on_module(void *ctx, const struct as_rec_module *r)
{
	struct state *s = ctx;
	struct as_elf *e = NULL;

	while (s->elf.n <= r->id)
		as_vec_push(&s->elf, NULL);
	if (r->kind == AS_MODULE_FILE && r->path < s->string.n)
		(void)as_elf_open(s->string.v[r->path], &e, NULL); /* gone: not checked */
	s->elf.v[r->id] = e;
	return 0;
}

static int on_frame(void *ctx, const struct as_rec_frame *r)
{
	struct state *s = ctx;

	as_vec_push(&s->frame, *r);
	as_vec_push(&s->is_root, false);
	return 0;
}

static int on_stack(void *ctx, const struct as_rec_stack *r)
{
	struct state *s = ctx;

	if (!r->parent && r->frame < s->is_root.n)
		s->is_root.v[r->frame] = true;
	return 0;
}

/* 1 behind a call, 0 not, -1 not looked at */
static int check(const struct state *s, size_t i)
{
	const struct as_rec_frame *f = &s->frame.v[i];
	struct as_elf *e = f->module && f->module <= s->elf.n ? s->elf.v[f->module - 1] : NULL;

	if (f->flags & (AS_FRAME_EXACT | AS_FRAME_KERNEL | AS_FRAME_SIGNAL) ||
	    s->is_root.v[i] || !e)
		return -1;
	const uint8_t *code = as_elf_at(e, f->addr - 8, 8);
	return code ? as_is_after_call(as_elf_arch(e), code, 8) : -1;
}

int main(int argc, char **argv)
{
	struct state s = {0};
	struct as_record_sink sink = {.ctx = &s,
				      .string = on_string,
				      .module = on_module,
				      .frame = on_frame,
				      .stack = on_stack};
	struct as_session_health health;
	struct as_error err;
	size_t n = 0, bad = 0;

	if (argc < 2 || as_session_read(argv[1], &sink, &health, &err) < 0)
		return 2;
	for (size_t i = 0; i < s.frame.n; i++) {
		int r = check(&s, i);

		n += r >= 0;
		bad += r == 0;
		if (r == 0)
			printf("%s+0x%llx\n", as_elf_name(s.elf.v[s.frame.v[i].module - 1]),
			       (unsigned long long)s.frame.v[i].addr);
	}
	printf("%zu frames, %zu not behind a call\n", n, bad);
	return bad ? 1 : 0;
}
