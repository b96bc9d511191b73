/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Events by name: see event.h. */
#include "measure/event.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/sys.h"

#define TYPE_SHIFT 32 /* PMU number above the config of a generic event: a hybrid machine's */

/* ---- names ---- */

static const struct generic {
	const char *name;
	uint32_t type;
	uint64_t config;
	bool in_kernel;
	/* what PMUs call it in sysfs: the way to one of several core PMUs */
	const char *aliases[2];
} generics[] = {
#define HW(name, id, ...)                                                                      \
	{                                                                                      \
		name, PERF_TYPE_HARDWARE, PERF_COUNT_HW_##id, false,                           \
		{                                                                              \
			__VA_ARGS__                                                            \
		}                                                                              \
	}
#define SW(name, id, in_kernel)                                                                \
	{                                                                                      \
		name, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##id, in_kernel,                       \
		{                                                                              \
			NULL                                                                   \
		}                                                                              \
	}
	HW("cycles", CPU_CYCLES, "cpu-cycles"),
	HW("cpu-cycles", CPU_CYCLES, "cpu-cycles"),
	HW("instructions", INSTRUCTIONS, "instructions", "inst_retired"),
	HW("cache-references", CACHE_REFERENCES, "cache-references", "l1d_cache"),
	HW("cache-misses", CACHE_MISSES, "cache-misses", "l1d_cache_refill"),
	HW("branches", BRANCH_INSTRUCTIONS, "branch-instructions", "br_retired"),
	HW("branch-instructions", BRANCH_INSTRUCTIONS, "branch-instructions", "br_retired"),
	HW("branch-misses", BRANCH_MISSES, "branch-misses", "br_mis_pred_retired"),
	HW("bus-cycles", BUS_CYCLES, "bus-cycles"),
	HW("ref-cycles", REF_CPU_CYCLES, "ref-cycles"),
	HW("stalled-cycles-frontend", STALLED_CYCLES_FRONTEND, "stall_frontend"),
	HW("idle-cycles-frontend", STALLED_CYCLES_FRONTEND, "stall_frontend"),
	HW("stalled-cycles-backend", STALLED_CYCLES_BACKEND, "stall_backend"),
	HW("idle-cycles-backend", STALLED_CYCLES_BACKEND, "stall_backend"),
	SW("cpu-clock", CPU_CLOCK, false),
	SW("task-clock", TASK_CLOCK, false),
	SW("page-faults", PAGE_FAULTS, false),
	SW("faults", PAGE_FAULTS, false),
	SW("minor-faults", PAGE_FAULTS_MIN, false),
	SW("major-faults", PAGE_FAULTS_MAJ, false),
	SW("context-switches", CONTEXT_SWITCHES, true),
	SW("cs", CONTEXT_SWITCHES, true),
	SW("cpu-migrations", CPU_MIGRATIONS, true),
	SW("migrations", CPU_MIGRATIONS, true),
	SW("alignment-faults", ALIGNMENT_FAULTS, false),
	SW("emulation-faults", EMULATION_FAULTS, false),
	SW("cgroup-switches", CGROUP_SWITCHES, true),
	SW("dummy", DUMMY, false),
#undef HW
#undef SW
};

static const struct {
	const char *name;
	uint64_t id;
} caches[] =
	{
		{"l1-dcache", PERF_COUNT_HW_CACHE_L1D}, {"l1-icache", PERF_COUNT_HW_CACHE_L1I},
		{"llc", PERF_COUNT_HW_CACHE_LL},        {"dtlb", PERF_COUNT_HW_CACHE_DTLB},
		{"itlb", PERF_COUNT_HW_CACHE_ITLB},     {"branch", PERF_COUNT_HW_CACHE_BPU},
		{"node", PERF_COUNT_HW_CACHE_NODE},
},
  operations[] = {
	  {"load", PERF_COUNT_HW_CACHE_OP_READ},
	  {"store", PERF_COUNT_HW_CACHE_OP_WRITE},
	  {"prefetch", PERF_COUNT_HW_CACHE_OP_PREFETCH},
};

static bool is_same(const char *a, const char *b)
{
	AS_CLEANUP(as_free_autop) char *x = as_xstrdup(a);

	for (char *p = x; *p; p++)
		*p = *p >= 'A' && *p <= 'Z' ? (char)(*p - 'A' + 'a') : *p;
	return as_event_name_equal(x, b);
}

/* "L1-dcache-load-misses", "LLC-loads", "dTLB-stores" … */
static bool find_cache(const char *name, uint64_t *ret)
{
	for (size_t c = 0; c < AS_ARRAY_LEN(caches); c++) {
		for (size_t o = 0; o < AS_ARRAY_LEN(operations); o++) {
			bool es = operations[o].id == PERF_COUNT_HW_CACHE_OP_PREFETCH;
			AS_CLEANUP(as_free_autop)
			char *all = as_xasprintf("%s-%s%s", caches[c].name, operations[o].name,
						 es ? "es" : "s");
			AS_CLEANUP(as_free_autop)
			char *misses = as_xasprintf("%s-%s-misses", caches[c].name,
						    operations[o].name);
			bool missed = is_same(name, misses);

			if (!missed && !is_same(name, all))
				continue;
			*ret = caches[c].id | operations[o].id << 8 |
			       (uint64_t)(missed ? PERF_COUNT_HW_CACHE_RESULT_MISS
						 : PERF_COUNT_HW_CACHE_RESULT_ACCESS)
				       << 16;
			return true;
		}
	}
	return false;
}

static const struct generic *find_generic(const char *name)
{
	for (size_t i = 0; i < AS_ARRAY_LEN(generics); i++) {
		if (as_event_name_equal(generics[i].name, name))
			return &generics[i];
	}
	return NULL;
}

/* ---- tracepoints ---- */

/* A folder of tracefs, also where it is not mounted: then, with the right to, without mounting it. */
static int open_tracefs(const char *root)
{
	static const char *const places[] = {"/sys/kernel/tracing",
					     "/sys/kernel/debug/tracing"};
	int fs, fd = -1;

	for (size_t i = 0; i < AS_ARRAY_LEN(places); i++) {
		AS_CLEANUP(as_free_autop)
		char *path = as_xasprintf("%s%s/events", root, places[i]);

		if (access(path, F_OK) == 0) {
			path[strlen(path) - strlen("/events")] = 0;
			return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		}
	}
	fs = *root ? -1 : fsopen("tracefs", FSOPEN_CLOEXEC);
	if (fs < 0)
		return -1;
	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
		fd = fsmount(fs, FSMOUNT_CLOEXEC, 0);
	close(fs);
	return fd;
}

static int find_tracepoint(const char *root, const char *name, uint64_t *ret,
			   struct as_error *err)
{
	AS_CLEANUP(as_close_autop) int tracefs = open_tracefs(root);
	AS_CLEANUP(as_free_autop) char *path = as_xasprintf("events/%s/id", name);
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};
	char *colon = strchr(path, ':');

	if (tracefs < 0)
		return as_fail(
			err, AS_E_ACCESS, 0,
			"cannot count '%s': the kernel's tracepoints cannot be seen here\n"
			"  as root:  mount -t tracefs tracefs /sys/kernel/tracing",
			name);
	if (colon)
		*colon = '/';
	AS_CLEANUP(as_close_autop) int fd = openat(tracefs, path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 && faccessat(tracefs, "events", X_OK, AT_EACCESS) < 0)
		return as_fail(
			err, AS_E_ACCESS, 0,
			"cannot count '%s': only root may see the kernel's tracepoints\n"
			"  sudo assay stat …\n"
			"  or, until the next start:  sudo chmod a+rx /sys/kernel/tracing",
			name);
	if (fd < 0 || as_read_fd(fd, 64, &text, NULL) < 0 || !text.len)
		return as_fail(err, AS_E_USAGE, 0, "there is no tracepoint '%s'", name);
	if (text.p[text.len - 1] == '\n')
		text.p[--text.len] = 0;
	return as_parse_u64(as_buf_str(&text), ret)
		       ? AS_OK
		       : as_fail(err, AS_E_FORMAT, 0, "'%s' has no number", name);
}

/* ---- one event ---- */

struct parsed {
	const char *text; /* as typed */
	char *name;       /* without modifiers */
	bool user, kernel;
	int group;
};

static char *base_of(const char *name)
{
	char *b = as_xstrdup(name);

	for (char *p = b; *p; p++)
		*p = *p == '-' ? '_' : *p;
	return b;
}

static void push(struct as_events *ev, const struct parsed *p, const struct as_pmu *pmu,
		 const struct as_event *like)
{
	struct as_event e = *like;

	e.user = p->user;
	e.kernel = p->kernel;
	e.group = p->group;
	e.scale = e.scale > 0 ? e.scale : 1;
	e.unit = e.unit ? e.unit : "count";
	e.pmu = pmu ? pmu->name : "";
	e.mux_seconds = pmu ? pmu->mux_seconds : 0;
	if (!e.base)
		e.base = base_of(p->name);
	if (!e.name)
		e.name =
			pmu ? as_xasprintf("%s/%s/%s", pmu->name, p->name,
					   strchr(p->text, ':') ? strchr(p->text, ':') + 1 : "")
			    : as_xstrdup(p->text);
	as_vec_push(&ev->v, e);
}

/* The value of a term, taken out of the list: "name=x". NULL: it is not there. Caller frees. */
static char *take_term(char *terms, const char *name)
{
	size_t n = strlen(name);

	for (char *p = terms; *p;) {
		size_t len = strcspn(p, ",");

		if (len > n && strncmp(p, name, n) == 0 && p[n] == '=') {
			char *value = as_xstrndup(p + n + 1, len - n - 1);

			memmove(p, p + len + (p[len] == ','),
				strlen(p + len + (p[len] == ',')) + 1);
			return value;
		}
		p += len + (p[len] == ',');
	}
	return NULL;
}

/* A PMU's event by its name, its parameters, or its name and more parameters. */
static int encode(const struct as_pmu *pmu, const char *terms, struct as_event *e,
		  struct as_error *err)
{
	size_t n = strcspn(terms, ",=");
	AS_CLEANUP(as_free_autop) char *first = as_xstrndup(terms, n);
	const struct as_pmu_event *named = NULL;
	int r;

	e->type = pmu->type;
	if (terms[n] != '=')
		named = as_pmu_find_event(pmu, first);
	if (!named)
		return as_pmu_encode(pmu, terms, e->config, err);
	/* what the description leaves open ("?") comes with the rest */
	AS_CLEANUP(as_free_autop) char *open = as_xstrdup(named->terms);
	AS_CLEANUP(as_buf_clear) struct as_buf rest = {0};

	as_buf_adds(&rest, terms + n + (terms[n] == ','));
	for (char *q = open; *q;) {
		size_t len = strcspn(q, ",");
		AS_CLEANUP(as_free_autop) char *term = as_xstrndup(q, len);
		AS_CLEANUP(as_free_autop) char *key = as_xstrndup(term, strcspn(term, "="));
		AS_CLEANUP(as_free_autop) char *given = as_xasprintf("%s=", key);

		q += len + (q[len] == ',');
		if (term[strlen(term) - 1] == '?' && strstr(as_buf_str(&rest), given))
			continue;
		r = as_pmu_encode(pmu, term, e->config, err);
		if (r < 0)
			return r;
	}
	e->scale = named->scale;
	e->unit = named->unit;
	return as_pmu_encode(pmu, as_buf_str(&rest), e->config, err);
}

static int add_pmu_event(const struct as_pmus *pmus, const struct parsed *p,
			 struct as_events *ev, struct as_error *err)
{
	AS_CLEANUP(as_free_autop)
	char *name = as_xstrndup(p->name, strcspn(p->name, "/"));
	AS_CLEANUP(as_free_autop) char *terms = as_xstrdup(p->name + strlen(name) + 1);
	const struct as_pmu *pmu = as_pmus_find(pmus, name);
	struct as_event e = {0};
	int r;

	if (!pmu) {
		AS_CLEANUP(as_buf_clear) struct as_buf names = {0};

		as_vec_foreach (q, &pmus->v)
			as_buf_addf(&names, " %s", q->name);
		return as_fail(err, AS_E_UNSUPPORTED, 0, "no PMU '%s' here; there are%s", name,
			       names.len ? as_buf_str(&names) : " none");
	}
	if (pmu->whole_machine)
		return as_fail(
			err, AS_E_USAGE, 0,
			"the PMU '%s' counts the whole machine, which belongs to no program",
			name);
	e.name = take_term(terms, "name");
	e.base = e.name ? base_of(e.name) : base_of(terms);
	if (!e.name)
		e.name = as_xstrdup(p->text);
	r = encode(pmu, terms, &e, err);
	if (r < 0) {
		free(e.name);
		free(e.base);
		return r;
	}
	push(ev, p, NULL, &e);
	ev->v.v[ev->v.n - 1].pmu = pmu->core && pmus->cores > 1 ? pmu->name : "";
	ev->v.v[ev->v.n - 1].mux_seconds = pmu->mux_seconds;
	return AS_OK;
}

static int no_pmu(const char *name, struct as_error *err)
{
	return as_fail(
		err, AS_E_UNSUPPORTED, 0,
		"no PMU here: '%s' is counted by the processor, and this machine does not "
		"let its counters be used, as most virtual machines do not\n"
		"  what can be counted: software events (page-faults, context-switches …), "
		"tracepoints (sched:sched_switch …)",
		name);
}

/* An event of the processor, on each core PMU that has it. */
static int add_core_event(const struct as_pmus *pmus, const struct parsed *p,
			  const struct generic *g, const struct as_event *like,
			  struct as_events *ev, struct as_error *err)
{
	bool several = pmus->cores > 1, found = false;

	if (pmus->known && !pmus->cores)
		return no_pmu(p->name, err);
	if (!several) {
		push(ev, p, NULL, like);
		return AS_OK;
	}
	as_vec_foreach (pmu, &pmus->v) {
		const struct as_pmu_event *alias = NULL;
		struct as_event e = *like;

		if (!pmu->core)
			continue;
		for (size_t i = 0; g && !alias && i < AS_ARRAY_LEN(g->aliases); i++)
			alias = g->aliases[i] ? as_pmu_find_event(pmu, g->aliases[i]) : NULL;
		if (alias) {
			memset(e.config, 0, sizeof e.config);
			e.type = pmu->type;
			if (as_pmu_encode(pmu, alias->terms, e.config, NULL) < 0)
				continue;
		} else if (like->type == PERF_TYPE_RAW) {
			e.type = pmu->type;
		} else {
			e.config[0] |= (uint64_t)pmu->type << TYPE_SHIFT;
		}
		found = true;
		push(ev, p, pmu, &e);
	}
	return found ? AS_OK : no_pmu(p->name, err);
}

/* By a name that core PMUs describe in sysfs. False: none does. */
static bool add_described(const struct as_pmus *pmus, const struct parsed *p,
			  struct as_events *ev)
{
	bool found = false;

	as_vec_foreach (pmu, &pmus->v) {
		const struct as_pmu_event *d =
			pmu->core ? as_pmu_find_event(pmu, p->name) : NULL;
		struct as_event e = {0};

		if (!d || as_pmu_encode(pmu, d->terms, e.config, NULL) < 0)
			continue;
		e.type = pmu->type;
		e.scale = d->scale;
		e.unit = d->unit;
		push(ev, p, pmus->cores > 1 ? pmu : NULL, &e);
		ev->v.v[ev->v.n - 1].mux_seconds = pmu->mux_seconds;
		found = true;
	}
	return found;
}

static bool is_raw(const char *name, uint64_t *ret)
{
	AS_CLEANUP(as_free_autop) char *hex = as_xasprintf("0x%s", *name ? name + 1 : name);

	return name[0] == 'r' && name[1] &&
	       strspn(name + 1, "0123456789abcdefABCDEF") == strlen(name + 1) &&
	       as_parse_u64(hex, ret);
}

static int add_named(const struct as_pmus *pmus, const char *root, const struct parsed *p,
		     struct as_events *ev, struct as_error *err)
{
	const struct generic *g = find_generic(p->name);
	struct as_event e = {0};
	int r;

	if (g) {
		e.type = g->type;
		e.config[0] = g->config;
		e.in_kernel = g->in_kernel;
		if (g->type == PERF_TYPE_HARDWARE)
			return add_core_event(pmus, p, g, &e, ev, err);
		if (g->config == PERF_COUNT_SW_TASK_CLOCK ||
		    g->config == PERF_COUNT_SW_CPU_CLOCK) {
			e.any_mode = true;
			e.scale = 1e-9; /* counted in ns */
			e.unit = "s";
		}
		push(ev, p, NULL, &e);
		return AS_OK;
	}
	if (find_cache(p->name, &e.config[0])) {
		e.type = PERF_TYPE_HW_CACHE;
		return add_core_event(pmus, p, NULL, &e, ev, err);
	}
	if (strchr(p->name, ':')) {
		r = find_tracepoint(root, p->name, &e.config[0], err);
		e.type = PERF_TYPE_TRACEPOINT;
		e.in_kernel = true;
		if (r == AS_OK)
			push(ev, p, NULL, &e);
		return r;
	}
	if (add_described(pmus, p, ev))
		return AS_OK;
	if (is_raw(p->name, &e.config[0])) {
		e.type = PERF_TYPE_RAW;
		return add_core_event(pmus, p, NULL, &e, ev, err);
	}
	if (strncmp(p->name, "topdown-", 8) == 0 || strcmp(p->name, "slots") == 0)
		return no_pmu(p->name, err);
	return as_fail(
		err, AS_E_USAGE, 0,
		"no figure and no event '%s'; events are named as in `perf list`: cycles, "
		"page-faults, sched:sched_switch, cpu/event=0x3c/, r01c4",
		p->name);
}

/* Cuts ":u" off a name, "u" off what follows a PMU's slash. A tracepoint has a colon of its own. */
static int take_modifiers(const char *text, struct parsed *p, struct as_error *err)
{
	char *slash = strrchr(p->name, '/'), *mods;

	mods = slash ? slash + 1 : strrchr(p->name, ':');
	p->user = p->kernel = true;
	if (!mods)
		return AS_OK;
	if (!slash) {
		if (strspn(mods + 1, "ukhpP") != strlen(mods + 1) || !mods[1])
			return AS_OK; /* a tracepoint's name */
		*mods++ = 0;
	} else if (strspn(mods, "ukh") != strlen(mods)) {
		return as_fail(err, AS_E_USAGE, 0,
			       "'%s': after the slash stand u, k or nothing", text);
	}
	if (strpbrk(mods, "pP"))
		return as_fail(err, AS_E_USAGE, 0,
			       "'%s': :p is for sampling; a count needs no precise place",
			       text);
	if (strpbrk(mods, "uk")) {
		p->user = strchr(mods, 'u') != NULL;
		p->kernel = strchr(mods, 'k') != NULL;
	}
	if (slash)
		*mods = 0;
	return AS_OK;
}

int as_events_add(const struct as_pmus *pmus, const char *root, const char *text, int group,
		  struct as_events *ev, struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *name = as_xstrdup(text);
	struct parsed p = {.text = text, .name = name, .group = group};
	int r = take_modifiers(text, &p, err);

	if (r < 0)
		return r;
	if (strchr(name, '/')) {
		name[strcspn(name, "/") + 1 + strcspn(strchr(name, '/') + 1, "/")] = 0;
		r = add_pmu_event(pmus, &p, ev, err);
	} else {
		r = add_named(pmus, root, &p, ev, err);
	}
	if (r == AS_OK && !p.kernel && ev->v.v[ev->v.n - 1].in_kernel)
		return as_fail(
			err, AS_E_USAGE, 0,
			"'%s' happens in the kernel: in user mode nothing would be counted",
			text);
	if (r == AS_OK && ev->v.n > AS_EVENTS_MAX)
		return as_fail(err, AS_E_LIMIT, 0, "more than %d events", AS_EVENTS_MAX);
	return r;
}

void as_events_clear(struct as_events *ev)
{
	as_vec_foreach (e, &ev->v) {
		free(e->name);
		free(e->base);
	}
	as_vec_clear(&ev->v);
}
