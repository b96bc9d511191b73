/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The table of engines, best first, and which of them can work. */
#include "collect/collectors_priv.h"

#include <string.h>

#include "base/mem.h"

static const struct {
	const struct as_collector *c;
	void (*facts)(void *c, struct as_engine_facts *ret);
} engines[] = {
	{&as_engine_kernel, as_engine_kernel_facts},
	{&as_engine_ring, as_engine_ring_facts},
};

const struct as_collector *const as_collectors[] = {&as_engine_kernel, &as_engine_ring, NULL};

void as_collector_facts(const struct as_collector *c, void *engine, struct as_engine_facts *ret)
{
	memset(ret, 0, sizeof *ret);
	for (size_t i = 0; i < sizeof engines / sizeof engines[0]; i++) {
		if (engines[i].c == c)
			engines[i].facts(engine, ret);
	}
}

static int no_engine(const char *wanted, const struct as_probe_result *p, struct as_error *err)
{
	if (wanted && !p->why[0])
		return as_fail(err, AS_E_USAGE, 0, "there is no engine '%s'", wanted);
	return as_fail(err, AS_E_ACCESS, 0, "cannot record: %s%s%s", p->why,
		       p->remedy[0] ? "\n" : "", p->remedy);
}

/* The first engine from `from` on that can work here, and that is wanted. */
static const struct as_collector *pick(const char *wanted, size_t *from,
				       struct as_probe_result *last)
{
	for (; as_collectors[*from]; (*from)++) {
		const struct as_collector *c = as_collectors[*from];

		if (wanted && strcmp(wanted, c->name))
			continue;
		if (c->probe(last) < 0 || last->can == AS_PROBE_NO)
			continue;
		return c;
	}
	return NULL;
}

/* An engine that fails for want of something is a note with its remedy; the next one is tried. */
static void passed_over(const struct as_engine_env *env, const struct as_collector *c,
			const struct as_error *err)
{
	const char *msg = err ? err->msg : "", *remedy = strchr(msg, '\n');

	as_recorder_note(env->recorder, 1, "", remedy ? remedy + 1 : "",
			 "engine '%s' could not start: %.*s", c->name, (int)strcspn(msg, "\n"),
			 msg);
}

int as_engine_open(const char *wanted, const struct as_engine_env *env, struct as_engine *ret,
		   struct as_error *err)
{
	struct as_probe_result probe = {0};
	const struct as_collector *c;
	void *ctx = NULL;
	int status = 0;

	for (size_t i = 0; (c = pick(wanted, &i, &probe)); i++) {
		status = c->open(env, &ctx, err);
		if (status >= 0)
			break;
		passed_over(env, c, err);
	}
	if (!c)
		return status < 0 ? status : no_engine(wanted, &probe, err);
	if (probe.can == AS_PROBE_PARTLY && probe.why[0])
		as_recorder_note(env->recorder, 1, "", probe.remedy, "%s", probe.why);
	*ret = (struct as_engine){.collector = c, .ctx = ctx};
	as_collector_facts(c, ctx, &ret->facts);
	return 0;
}

int as_engine_stop(struct as_engine *e, struct as_error *err)
{
	int status = e->collector->stop(e->ctx, err);

	as_collector_facts(e->collector, e->ctx, &e->facts);
	e->collector->close(e->ctx);
	e->ctx = NULL;
	return status;
}
