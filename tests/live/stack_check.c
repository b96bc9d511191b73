/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * stack-check SESSION [PATH=FILE…]: holds every caller in a session to the code it must come from,
 * independently of how it was unwound. For PATH the code is read from FILE (a program that was
 * deleted or hidden). Prints `KEY VALUE` lines:
 *
 *	samples, complete, repaired, truncated		of samples with a user stack
 *	end REASON COUNT				of the truncated ones
 *	callers, callers_unread				return addresses; those whose code has no file
 *	invented COUNT					not right after a call instruction, and not
 *							a thread's first frame at the first byte of
 *							a function (makecontext), known or not
 *	invented_samples COUNT				samples with one of them
 *	links, wrong_links				direct calls to a function of the same file
 *							whose callee frame is in that file, but for
 *							libraries of the system; those that call
 *							another function (a tail call looks the
 *							same)
 *	at PATH+0xSVMA, wrong PATH+0xSVMA		the first few
 */
#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/mem.h"
#include "elf/elf.h"
#include "session/session.h"
#include "unwind/unwind.h"

#define SHOWN 8

struct function {
	uint64_t svma, size_bytes;
	bool cold;
};

struct module {
	char *path;
	uint64_t kind;
	struct as_elf *elf;
	AS_VEC(struct function) functions;
};

struct frame {
	uint64_t module, addr, flags; /* module: id + 1 */
	bool unread, no_call;
	bool invented; /* no_call, and called something in a sample */
};

struct node {
	uint64_t parent, frame; /* parent: id + 1 */
};

struct check {
	AS_VEC(char *) strings;
	AS_VEC(struct module) modules;
	AS_VEC(struct frame) frames;
	AS_VEC(struct node) nodes;
	AS_VEC(bool) hit; /* nodes that samples went through */
	uint64_t ends[AS_END_COUNT_], samples, complete, repaired, invented_samples;
	uint64_t callers, unread, invented, links, wrong_links;
	char **replaced;
	int nreplaced;
};

static int on_string(void *ctx, const struct as_rec_string *r)
{
	struct check *c = ctx;

	while (c->strings.n <= r->id)
		as_vec_push(&c->strings, NULL);
	c->strings.v[r->id] = as_xstrndup(r->text.p, r->text.n);
	return 0;
}

static void add_function(void *ctx, const struct as_elf_symbol *s)
{
	struct module *m = ctx;

	if (s->func && s->size_bytes)
		as_vec_push(&m->functions, (struct function){s->svma, s->size_bytes,
							     strstr(s->name, ".cold") != NULL});
}

static int by_svma(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	return (x->svma > y->svma) - (x->svma < y->svma);
}

/* The vdso of this process is that of every other one. */
static struct as_elf *open_vdso(struct as_error *err)
{
	const void *p = (const void *)getauxval(AT_SYSINFO_EHDR);
	struct as_elf *e = NULL;

	if (p)
		(void)as_elf_open_mem(p, 8192, "vdso", &e, err);
	return e;
}

static void open_module(struct check *c, struct module *m)
{
	struct as_error err;
	const char *path = m->path;

	if (m->kind == AS_MODULE_VDSO) {
		m->elf = open_vdso(&err);
		return;
	}
	if (m->kind != AS_MODULE_FILE)
		return;
	for (int i = 0; i < c->nreplaced; i++) {
		char *eq = strrchr(c->replaced[i], '=');

		if (eq && !strncmp(path, c->replaced[i], (size_t)(eq - c->replaced[i])) &&
		    strlen(path) == (size_t)(eq - c->replaced[i])) {
			path = eq + 1;
			break;
		}
	}
	if (as_elf_open(path, &m->elf, &err) < 0)
		return;
	(void)as_elf_each_symbol(m->elf, add_function, m, &err);
	if (m->functions.n)
		qsort(m->functions.v, m->functions.n, sizeof *m->functions.v, by_svma);
}

static int on_module(void *ctx, const struct as_rec_module *r)
{
	struct check *c = ctx;
	struct module m = {.kind = r->kind};

	m.path = as_xstrdup(
		r->path < c->strings.n && c->strings.v[r->path] ? c->strings.v[r->path] : "");
	open_module(c, &m);
	as_vec_push(&c->modules, m);
	return 0;
}

static const struct module *module_of(const struct check *c, const struct frame *f)
{
	return f->module && f->module <= c->modules.n ? &c->modules.v[f->module - 1] : NULL;
}

/* The n code bytes before svma, as many of 7 as there are. */
static const uint8_t *code_before(const struct module *m, uint64_t svma, size_t *ret_n)
{
	for (size_t n = 7; n; n--) {
		const uint8_t *p = svma >= n ? as_elf_at(m->elf, svma - n, n) : NULL;

		*ret_n = n;
		if (p)
			return p;
	}
	return NULL;
}

static int on_frame(void *ctx, const struct as_rec_frame *r)
{
	struct check *c = ctx;
	struct frame f = {.module = r->module, .addr = r->addr, .flags = r->flags};
	const struct module *m = module_of(c, &f);
	const uint8_t *p;
	size_t n;

	if (!(r->flags & (AS_FRAME_EXACT | AS_FRAME_KERNEL | AS_FRAME_SIGNAL))) {
		p = m && m->elf ? code_before(m, r->addr, &n) : NULL;
		f.unread = !p;
		f.no_call = p && !as_is_after_call(as_elf_arch(m->elf), p, n);
	}
	as_vec_push(&c->frames, f);
	return 0;
}

static int on_stack(void *ctx, const struct as_rec_stack *r)
{
	struct check *c = ctx;

	as_vec_push(&c->nodes, (struct node){r->parent, r->frame});
	as_vec_push(&c->hit, false);
	return 0;
}

static const struct function *function_at(const struct module *m, uint64_t svma)
{
	size_t lo = 0, hi = m->functions.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (m->functions.v[mid].svma <= svma)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || svma - m->functions.v[lo - 1].svma >= m->functions.v[lo - 1].size_bytes)
		return NULL;
	return &m->functions.v[lo - 1];
}

/* A thread's first frame may be entered by no call (makecontext): then it starts there. */
static bool starts_function(const struct check *c, const struct frame *f)
{
	const struct module *m = module_of(c, f);
	const struct function *at = m ? function_at(m, f->addr) : NULL;

	return m && (!at || at->svma == f->addr);
}

static int on_sample(void *ctx, const struct as_rec_sample *r)
{
	struct check *c = ctx;
	uint64_t end = r->end & AS_SAMPLE_END_MASK;
	bool invented = false;

	if (end == AS_END_NOSTACK)
		return 0;
	c->samples++;
	if (end == AS_END_ROOT && r->end & AS_SAMPLE_REPAIRED)
		c->repaired++;
	else if (end == AS_END_ROOT)
		c->complete++;
	if (end < AS_END_COUNT_)
		c->ends[end]++;
	for (uint64_t n = r->stack; n && n <= c->nodes.n; n = c->nodes.v[n - 1].parent) {
		struct frame *f = &c->frames.v[c->nodes.v[n - 1].frame];

		c->hit.v[n - 1] = true;
		if (f->no_call && (c->nodes.v[n - 1].parent || !starts_function(c, f)))
			invented = f->invented = true;
	}
	c->invented_samples += invented;
	return 0;
}

/* Does the direct call before `caller` go to the function that `callee` is in? */
static void check_link(struct check *c, const struct frame *caller, const struct frame *callee)
{
	const struct module *m = module_of(c, caller);
	const uint8_t *p;
	const struct function *f, *target;
	uint64_t svma;

	if (caller->flags & (AS_FRAME_EXACT | AS_FRAME_KERNEL | AS_FRAME_SIGNAL) ||
	    callee->module != caller->module || !m || !m->elf || !m->functions.n)
		return;
	p = caller->addr >= 5 ? as_elf_at(m->elf, caller->addr - 5, 5) : NULL;
	if (!p || p[0] != 0xe8)
		return;
	svma = caller->addr + (uint64_t)(int64_t)(int32_t)(p[1] | p[2] << 8 | p[3] << 16 |
							   (uint32_t)p[4] << 24);
	f = function_at(m, callee->addr - !(callee->flags & AS_FRAME_EXACT));
	target = function_at(m, svma);
	if (!f || !target || f->cold || strstr(m->path, "/lib/"))
		return; /* libraries of the system call themselves by tail calls */
	c->links++;
	if (f->svma == target->svma)
		return;
	if (c->wrong_links++ < SHOWN)
		printf("wrong %s+0x%" PRIx64 "\n", m->path, caller->addr);
}

static void check_nodes(struct check *c)
{
	for (size_t i = 0; i < c->nodes.n; i++) {
		const struct frame *f = &c->frames.v[c->nodes.v[i].frame];
		uint64_t parent = c->nodes.v[i].parent;

		if (c->hit.v[i] && parent)
			check_link(c, &c->frames.v[c->nodes.v[parent - 1].frame], f);
	}
	as_vec_foreach (f, &c->frames) {
		c->callers +=
			!(f->flags & (AS_FRAME_EXACT | AS_FRAME_KERNEL | AS_FRAME_SIGNAL));
		c->unread += f->unread;
		if (f->invented && c->invented++ < SHOWN)
			printf("at %s+0x%" PRIx64 "\n", module_of(c, f)->path, f->addr);
	}
}

static void print(const struct check *c)
{
	static const char *const keys[] = {
#define X(n, NAME, key, text) key,
		AS_STACK_ENDS(X)
#undef X
	};

	printf("samples %" PRIu64 "\ncomplete %" PRIu64 "\nrepaired %" PRIu64
	       "\ntruncated %" PRIu64 "\n",
	       c->samples, c->complete, c->repaired, c->samples - c->complete - c->repaired);
	for (size_t i = AS_END_ROOT + 1; i < AS_END_COUNT_; i++)
		if (c->ends[i])
			printf("end %s %" PRIu64 "\n", keys[i], c->ends[i]);
	printf("callers %" PRIu64 "\ncallers_unread %" PRIu64 "\ninvented %" PRIu64
	       "\ninvented_samples %" PRIu64 "\nlinks %" PRIu64 "\nwrong_links %" PRIu64 "\n",
	       c->callers, c->unread, c->invented, c->invented_samples, c->links,
	       c->wrong_links);
}

int main(int argc, char **argv)
{
	struct check c = {.replaced = argv + 2, .nreplaced = argc - 2};
	struct as_record_sink sink = {.ctx = &c,
				      .string = on_string,
				      .module = on_module,
				      .frame = on_frame,
				      .stack = on_stack,
				      .sample = on_sample};
	struct as_session_health health;
	struct as_error err;

	if (argc < 2 || as_session_read(argv[1], &sink, &health, &err) < 0) {
		fprintf(stderr, "stack-check: %s\n", argc < 2 ? "no session" : err.msg);
		return 2;
	}
	check_nodes(&c);
	print(&c);
	return 0;
}
