/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What is measured: see plan.h. */
#include "measure/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "measure/formula.h"
#include "measure/plan_priv.h"

#define ZEN3_FAMILY 0x19
#define ZEN5_FAMILY 0x1a

/* ---- words for several events ---- */

static const char *const hardware[] = {
	"cycles",           "instructions", "branches", "branch_misses",
	"cache_references", "cache_misses", NULL};
static const char *const cache[] = {"L1-dcache-loads",       "L1-dcache-load-misses",
				    "L1-icache-load-misses", "LLC-loads",
				    "LLC-load-misses",       NULL};
static const char *const tlb[] = {"dTLB-loads", "dTLB-load-misses", "iTLB-loads",
				  "iTLB-load-misses", NULL};

/* ---- top-down: the events that each kind of processor has for it ---- */

#define METRICS_1                                                                              \
	"slots", "topdown-retiring", "topdown-bad-spec", "topdown-fe-bound", "topdown-be-bound"

static const struct topdown {
	const char *needs[6]; /* events in sysfs; none: chosen by the processor's number */
	const char *events[11];
	bool as_group;
} topdowns[] = {
	{{"slots", "topdown-retiring", "topdown-heavy-ops"},
	 {METRICS_1, "topdown-heavy-ops", "topdown-br-mispredict", "topdown-fetch-lat",
	  "topdown-mem-bound"},
	 true},
	{{"slots", "topdown-retiring"}, {METRICS_1}, true},
	{{"topdown-retiring", "topdown-bad-spec", "topdown-fe-bound", "topdown-be-bound"},
	 {"topdown-retiring", "topdown-bad-spec", "topdown-fe-bound", "topdown-be-bound"},
	 true},
	{{"topdown-total-slots", "topdown-slots-issued", "topdown-slots-retired",
	  "topdown-fetch-bubbles", "topdown-recovery-bubbles"},
	 {"topdown-total-slots", "topdown-slots-issued", "topdown-slots-retired",
	  "topdown-fetch-bubbles", "topdown-recovery-bubbles"},
	 true},
	{{"stall_slot", "stall_slot_frontend", "stall_slot_backend", "op_retired", "op_spec"},
	 {"cpu_cycles", "stall_slot", "stall_slot_frontend", "stall_slot_backend", "op_retired",
	  "op_spec"},
	 true},
};

/* Zen 4 and 5: a width of 6 or 8 micro-operations per cycle. */
static const char *const zen_events[] = {
	"event=0x76,name=zen_cycles",
	"event=0xc1,name=zen_ops_retired",
	"event=0xaa,umask=0x7,name=zen_ops_dispatched",
	"event=0x1a0,umask=0x1,name=zen_no_ops",
	"event=0x1a0,umask=0x1e,name=zen_backend_stalls",
	"event=0x1a0,umask=0x60,name=zen_sibling_stalls",
	"event=0xd6,umask=0x2,name=zen_not_complete",
	"event=0xd6,umask=0xa2,name=zen_load_not_complete",
	NULL,
};
static const char zen4_latency[] = "event=0x1a0,umask=0x1,cmask=0x6,name=zen4_no_ops_at_all";
static const char zen5_latency[] = "event=0x1a0,umask=0x1,cmask=0x8,name=zen5_no_ops_at_all";

/* 0: not a Zen 4 or 5. */
static unsigned zen_width(const struct as_pmus *p)
{
	unsigned m = p->model;

	if (!p->amd || p->family < ZEN3_FAMILY)
		return 0;
	if (p->family >= ZEN5_FAMILY)
		return p->family == ZEN5_FAMILY ? 8 : 0;
	return (m >= 0x10 && m < 0x20) || (m >= 0x60 && m < 0x80) || (m >= 0xa0 && m < 0xb0)
		       ? 6
		       : 0;
}

/* ---- derived rows ---- */

#define SLOTS    "(topdown_retiring + topdown_bad_spec + topdown_fe_bound + topdown_be_bound)"
#define OLD_USED "(topdown_slots_issued + topdown_fetch_bubbles + topdown_recovery_bubbles)"
#define ZEN4(x)  x " / (6 * zen_cycles)", "zen4_no_ops_at_all"
#define ZEN5(x)  x " / (8 * zen_cycles)", "zen5_no_ops_at_all"

static const char t_ret[] = "slots of the pipeline that did useful work";
static const char t_bad[] = "… that were wasted on wrong paths";
static const char t_fe[] = "… that stayed empty: instructions did not come in time";
static const char t_be[] = "… that had to wait for data or a unit";
static const char t_smt[] = "… that the other thread of the core had";
static const char t_heavy[] = "of retiring: instructions of many steps";
static const char t_light[] = "of retiring: simple instructions";
static const char t_misp[] = "of bad speculation: branches predicted wrong";
static const char t_clear[] = "of bad speculation: the pipeline was emptied for other reasons";
static const char t_lat[] = "of frontend: nothing came at all (cache, TLB, after a branch)";
static const char t_bw[] = "of frontend: too little came";
static const char t_mem[] = "of backend: waited for memory";
static const char t_core[] = "of backend: waited for a unit of the core";

static const struct derivation {
	const char *name, *unit, *text, *formula;
	const char *also; /* an event that has to be there, too; NULL */
} derivations[] = {
	{"ipc", "1", "instructions per cycle", "instructions / cycles", NULL},
	{"branch_miss_rate", "share", "of the branches", "branch_misses / branches", NULL},
	{"cache_miss_rate", "share", "of the look-ups in the last cache level",
	 "cache_misses / cache_references", NULL},
	{"l1d_miss_rate", "share", "of the loads", "L1_dcache_load_misses / L1_dcache_loads",
	 NULL},
	{"llc_miss_rate", "share", "of the loads that got to the last level",
	 "LLC_load_misses / LLC_loads", NULL},
	{"dtlb_miss_rate", "share", "of the loads: address not in the TLB",
	 "dTLB_load_misses / dTLB_loads", NULL},
	{"itlb_miss_rate", "share", "of the fetches: address not in the TLB",
	 "iTLB_load_misses / iTLB_loads", NULL},
	/* Intel since Ice Lake; Atom cores */
	{"retiring", "share", t_ret, "topdown_retiring / " SLOTS, NULL},
	{"heavy_operations", "share", t_heavy, "topdown_heavy_ops / " SLOTS, NULL},
	{"light_operations", "share", t_light,
	 "max(topdown_retiring - topdown_heavy_ops, 0) / " SLOTS, NULL},
	{"bad_speculation", "share", t_bad, "topdown_bad_spec / " SLOTS, NULL},
	{"branch_mispredicts", "share", t_misp, "topdown_br_mispredict / " SLOTS, NULL},
	{"machine_clears", "share", t_clear,
	 "max(topdown_bad_spec - topdown_br_mispredict, 0) / " SLOTS, NULL},
	{"frontend_bound", "share", t_fe, "topdown_fe_bound / " SLOTS, NULL},
	{"fetch_latency", "share", t_lat, "topdown_fetch_lat / " SLOTS, NULL},
	{"fetch_bandwidth", "share", t_bw,
	 "max(topdown_fe_bound - topdown_fetch_lat, 0) / " SLOTS, NULL},
	{"backend_bound", "share", t_be, "topdown_be_bound / " SLOTS, NULL},
	{"memory_bound", "share", t_mem, "topdown_mem_bound / " SLOTS, NULL},
	{"core_bound", "share", t_core, "max(topdown_be_bound - topdown_mem_bound, 0) / " SLOTS,
	 NULL},
	/* Intel before */
	{"retiring", "share", t_ret, "topdown_slots_retired / topdown_total_slots", NULL},
	{"bad_speculation", "share", t_bad,
	 "(topdown_slots_issued - topdown_slots_retired + topdown_recovery_bubbles) / "
	 "topdown_total_slots",
	 NULL},
	{"frontend_bound", "share", t_fe, "topdown_fetch_bubbles / topdown_total_slots", NULL},
	{"backend_bound", "share", t_be, "1 - " OLD_USED " / topdown_total_slots", NULL},
	/* AMD */
	{"retiring", "share", t_ret, ZEN4("zen_ops_retired")},
	{"retiring", "share", t_ret, ZEN5("zen_ops_retired")},
	{"bad_speculation", "share", t_bad,
	 ZEN4("max(zen_ops_dispatched - zen_ops_retired, 0)")},
	{"bad_speculation", "share", t_bad,
	 ZEN5("max(zen_ops_dispatched - zen_ops_retired, 0)")},
	{"frontend_bound", "share", t_fe, ZEN4("zen_no_ops")},
	{"frontend_bound", "share", t_fe, ZEN5("zen_no_ops")},
	{"fetch_latency", "share", t_lat, "zen4_no_ops_at_all / zen_cycles", NULL},
	{"fetch_latency", "share", t_lat, "zen5_no_ops_at_all / zen_cycles", NULL},
	{"fetch_bandwidth", "share", t_bw,
	 "max(zen_no_ops - 6 * zen4_no_ops_at_all, 0) / (6 * zen_cycles)", NULL},
	{"fetch_bandwidth", "share", t_bw,
	 "max(zen_no_ops - 8 * zen5_no_ops_at_all, 0) / (8 * zen_cycles)", NULL},
	{"backend_bound", "share", t_be, ZEN4("zen_backend_stalls")},
	{"backend_bound", "share", t_be, ZEN5("zen_backend_stalls")},
	{"memory_bound", "share", t_mem,
	 ZEN4("zen_backend_stalls * zen_load_not_complete / zen_not_complete")},
	{"memory_bound", "share", t_mem,
	 ZEN5("zen_backend_stalls * zen_load_not_complete / zen_not_complete")},
	{"core_bound", "share", t_core,
	 ZEN4("zen_backend_stalls * (1 - zen_load_not_complete / zen_not_complete)")},
	{"core_bound", "share", t_core,
	 ZEN5("zen_backend_stalls * (1 - zen_load_not_complete / zen_not_complete)")},
	{"smt_contention", "share", t_smt, ZEN4("zen_sibling_stalls")},
	{"smt_contention", "share", t_smt, ZEN5("zen_sibling_stalls")},
	/* Arm; as_width is what the PMU says */
	{"retiring", "share", t_ret,
	 "op_retired / op_spec * (1 - stall_slot / (as_width * cpu_cycles))", NULL},
	{"bad_speculation", "share", t_bad,
	 "(1 - op_retired / op_spec) * (1 - stall_slot / (as_width * cpu_cycles))", NULL},
	{"frontend_bound", "share", t_fe, "stall_slot_frontend / (as_width * cpu_cycles)",
	 NULL},
	{"backend_bound", "share", t_be, "stall_slot_backend / (as_width * cpu_cycles)", NULL},
};

/* ---- building ---- */

struct builder {
	struct as_plan *plan;
	const char *root;
	int groups; /* used so far */
	bool is_word;
};

static int add(struct builder *b, const char *text, int group, struct as_planned as,
	       struct as_error *err)
{
	struct as_plan *p = b->plan;
	size_t n = p->events.v.n;
	int r = as_events_add(&p->pmus, b->root, text, group, &p->events, err);

	for (; r == AS_OK && n < p->events.v.n; n++)
		p->of[n] = as;
	return r;
}

/* Those that exist; the last error when none does. */
static int add_some(struct builder *b, const char *const *names, struct as_error *err)
{
	size_t n = b->plan->events.v.n;
	int r = AS_OK;

	for (; *names; names++)
		r = add(b, *names, 0, (struct as_planned){-1, true, b->is_word}, err);
	return b->plan->events.v.n > n ? AS_OK : r;
}

static bool has_all(const struct as_pmu *pmu, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n && names[i]; i++) {
		if (!as_pmu_find_event(pmu, names[i]))
			return false;
	}
	return true;
}

static int add_of_pmu(struct builder *b, const struct as_pmu *pmu, const char *terms, int group,
		      struct as_error *err)
{
	bool named = strstr(terms, "name=") || b->plan->pmus.cores > 1;
	AS_CLEANUP(as_free_autop)
	char *text = named ? as_xasprintf("%s/%s/", pmu->name, terms)
			   : as_xasprintf("%s/%s,name=%s/", pmu->name, terms, terms);

	return add(b, text, group, (struct as_planned){-1, true, b->is_word}, err);
}

/* quick: only what takes no turns with others. */
static bool add_topdown(struct builder *b, const struct as_pmu *pmu, bool quick)
{
	size_t n = b->plan->events.v.n;
	unsigned width = quick ? 0 : zen_width(&b->plan->pmus);

	for (size_t k = 0; k < (quick ? 2 : AS_ARRAY_LEN(topdowns)); k++) {
		const struct topdown *t = &topdowns[k];

		if (!has_all(pmu, t->needs, AS_ARRAY_LEN(t->needs)))
			continue;
		b->groups++;
		for (size_t i = 0; i < AS_ARRAY_LEN(t->events) && t->events[i]; i++)
			(void)add_of_pmu(b, pmu, t->events[i], b->groups,
					 NULL); /* sysfs has it */
		return b->plan->events.v.n > n;
	}
	for (const char *const *e = zen_events; width && *e; e++)
		(void)add_of_pmu(b, pmu, *e, 0,
				 NULL); /* those of older kernels lack a few bits */
	if (width)
		(void)add_of_pmu(b, pmu, width == 6 ? zen4_latency : zen5_latency, 0, NULL);
	return b->plan->events.v.n > n;
}

static int add_all_topdown(struct builder *b, struct as_error *err)
{
	const struct as_pmus *pmus = &b->plan->pmus;
	bool found = false;

	as_vec_foreach (pmu, &pmus->v)
		found |= pmu->core && add_topdown(b, pmu, false);
	if (found)
		return AS_OK;
	if (!pmus->cores)
		return add(b, "topdown-retiring", 0, (struct as_planned){.figure = -1}, err);
	return as_fail(err, AS_E_UNSUPPORTED, 0,
		       "no top-down events are known for this processor: it has none in "
		       "/sys/bus/event_source/devices, and is no AMD Zen 4 or 5");
}

static int add_by_default(struct builder *b)
{
	struct as_plan *p = b->plan;

	for (int m = 0; m < AS_M_COUNT_; m++)
		p->wanted[m] = m != AS_M_SYSCALLS;
	(void)add(b, "migrations", 0,
		  (struct as_planned){.figure = AS_M_MIGRATIONS, .optional = true}, NULL);
	if (p->pmus.known && !p->pmus.cores) {
		p->no_pmu = true;
		return AS_OK;
	}
	(void)add_some(b, hardware, NULL); /* not here: left out */
	as_vec_foreach (pmu, &p->pmus.v) {
		if (pmu->core)
			(void)add_topdown(b, pmu, true); /* as above */
	}
	return AS_OK;
}

/* A figure's name, a word for several, or an event. */
static int add_named(struct builder *b, const char *name, int group, struct as_error *err)
{
	enum as_metric m = as_metric_find(name, strlen(name));

	if (m == AS_M_COUNT_) {
		b->is_word = true;
		if (strcmp(name, "hardware") == 0)
			return add_some(b, hardware, err);
		if (strcmp(name, "cache") == 0)
			return add_some(b, cache, err);
		if (strcmp(name, "tlb") == 0)
			return add_some(b, tlb, err);
		if (strcmp(name, "topdown") == 0)
			return add_all_topdown(b, err);
		b->is_word = false;
		return add(b, name, group, (struct as_planned){.figure = -1}, err);
	}
	b->plan->wanted[m] = true;
	if (m == AS_M_MIGRATIONS)
		(void)add(b, "migrations", 0,
			  (struct as_planned){.figure = (int)m, .optional = true}, NULL);
	if (m == AS_M_SYSCALLS)
		return add(b, "raw_syscalls:sys_enter", 0,
			   (struct as_planned){.figure = (int)m}, err);
	return AS_OK;
}

/* Length of the next item: a comma within {} or // does not end it. */
static size_t item_length(const char *p)
{
	bool slash = false, brace = false;
	size_t n = 0;

	for (; p[n] && (p[n] != ',' || slash || brace); n++) {
		slash ^= p[n] == '/';
		brace = p[n] == '{' || (brace && p[n] != '}');
	}
	return n;
}

/* "{a,b}:u" */
static int add_group(struct builder *b, const char *text, struct as_error *err)
{
	const char *close = strrchr(text, '}'), *p = text + 1;
	int r = AS_OK;

	if (!close || (close[1] && close[1] != ':'))
		return as_fail(err, AS_E_USAGE, 0, "'%s' is no group: {a,b} or {a,b}:u", text);
	b->groups++;
	while (p < close && r == AS_OK) {
		AS_CLEANUP(as_free_autop)
		char *rest = as_xstrndup(p, (size_t)(close - p));
		size_t n = item_length(rest);
		AS_CLEANUP(as_free_autop)
		char *one = as_xasprintf("%.*s%s", (int)n, rest,
					 n && rest[n - 1] == '/' && close[1] ? close + 2
									     : close + 1);

		if (as_metric_find(one, strlen(one)) != AS_M_COUNT_)
			r = as_fail(err, AS_E_USAGE, 0,
				    "'%s' is no event, it cannot be in a group", one);
		else
			r = add(b, one, b->groups, (struct as_planned){.figure = -1}, err);
		p += n + 1;
	}
	return r;
}

static int add_list(struct builder *b, const char *list, struct as_error *err)
{
	int r = AS_OK;

	while (*list && r == AS_OK) {
		size_t n = item_length(list);
		AS_CLEANUP(as_free_autop) char *one = as_xstrndup(list, n);

		if (*one == '{')
			r = add_group(b, one, err);
		else if (*one)
			r = add_named(b, one, 0, err);
		list += n + (list[n] == ',');
	}
	return r;
}

/* ---- derived rows ---- */

struct look_up {
	const struct as_plan *plan;
	const char *pmu;
	const double *v; /* NULL: only whether it is there */
	const float *counted;
	float least; /* of the events used */
	bool missing;
};

static double value_of(void *ctx, const char *name, size_t n)
{
	struct look_up *l = ctx;
	const struct as_plan *p = l->plan;

	if (n == 8 && memcmp(name, "as_width", n) == 0) {
		as_vec_foreach (pmu, &p->pmus.v) {
			if (pmu->core && pmu->slots &&
			    (!*l->pmu || strcmp(pmu->name, l->pmu) == 0))
				return pmu->slots;
		}
		l->missing = true;
		return NAN;
	}
	for (size_t i = 0; i < p->events.v.n; i++) {
		const struct as_event *e = &p->events.v.v[i];
		int row = AS_M_COUNT_ + (int)i;

		if (strlen(e->base) != n || memcmp(e->base, name, n) != 0 ||
		    strcmp(e->pmu, l->pmu) != 0)
			continue;
		if (!l->v)
			return 1;
		if (l->counted[row] < l->least)
			l->least = l->counted[row];
		return l->v[row];
	}
	l->missing = true;
	return NAN;
}

static void derive_for(struct as_plan *p, const char *pmu)
{
	for (size_t i = 0; i < AS_ARRAY_LEN(derivations); i++) {
		const struct derivation *d = &derivations[i];
		struct look_up l = {.plan = p, .pmu = pmu};
		struct as_derived row = {.unit = d->unit,
					 .text = d->text,
					 .formula = d->formula,
					 .pmu = pmu,
					 .is_share = strcmp(d->unit, "share") == 0};

		(void)as_formula(d->formula, value_of, &l); /* only for what is missing */
		if (d->also)
			(void)value_of(&l, d->also, strlen(d->also)); /* as above */
		if (l.missing || p->derived.n >= AS_DERIVED_MAX)
			continue;
		row.unit = "1";
		row.name = *pmu ? as_xasprintf("%s/%s/", pmu, d->name) : as_xstrdup(d->name);
		as_vec_push(&p->derived, row);
	}
}

void as_plan_add_derived(struct as_plan *p)
{
	as_vec_foreach (d, &p->derived)
		free(d->name);
	p->derived.n = 0;
	if (p->pmus.cores <= 1) {
		derive_for(p, "");
		return;
	}
	as_vec_foreach (pmu, &p->pmus.v) {
		if (pmu->core)
			derive_for(p, pmu->name);
	}
}

int as_plan_make(const char *list, const char *root, struct as_plan *ret, struct as_error *err)
{
	struct builder b = {.plan = ret, .root = root};
	int r;

	*ret = (struct as_plan){0};
	as_pmus_load(root, !list || !strchr(list, '/'), &ret->pmus);
	r = list ? add_list(&b, list, err) : add_by_default(&b);
	if (r < 0) {
		as_plan_clear(ret);
		return r;
	}
	as_plan_add_derived(ret);
	return AS_OK;
}

void as_plan_add_clock(struct as_plan *p)
{
	struct builder b = {.plan = p, .root = ""};

	(void)add(&b, "task-clock", 0,
		  (struct as_planned){.figure = AS_M_CPU, .optional = true},
		  NULL); /* or /proc */
}

void as_plan_clear(struct as_plan *p)
{
	as_vec_foreach (d, &p->derived)
		free(d->name);
	as_vec_clear(&p->derived);
	as_events_clear(&p->events);
	as_pmus_clear(&p->pmus);
}

/* ---- rows ---- */

int as_plan_rows(const struct as_plan *p)
{
	return AS_M_COUNT_ + (int)p->events.v.n + (int)p->derived.n;
}

const struct as_event *as_plan_event(const struct as_plan *p, int row)
{
	for (size_t i = 0; row < AS_M_COUNT_ && i < p->events.v.n; i++) {
		if (p->of[i].figure == row)
			return &p->events.v.v[i];
	}
	row -= AS_M_COUNT_;
	return row >= 0 && row < (int)p->events.v.n ? &p->events.v.v[row] : NULL;
}

bool as_plan_wanted(const struct as_plan *p, int row)
{
	if (row < AS_M_COUNT_)
		return p->wanted[row];
	row -= AS_M_COUNT_;
	return row >= (int)p->events.v.n || p->of[row].figure < 0;
}

static const char *text_of(const char *base)
{
	static const struct {
		const char *base, *text;
	} texts[] = {
		{"cycles", "processor cycles"},
		{"instructions", "instructions retired"},
		{"branches", "branches retired"},
		{"branch_misses", "branches predicted wrong"},
		{"cache_references", "look-ups in the last cache level"},
		{"cache_misses", "of them not found"},
		{"L1_dcache_loads", "loads"},
		{"L1_dcache_load_misses", "of them not in the first cache level"},
		{"L1_icache_load_misses", "instructions not in the first cache level"},
		{"LLC_loads", "loads that got to the last cache level"},
		{"LLC_load_misses", "of them not in it: from memory"},
		{"dTLB_loads", "loads"},
		{"dTLB_load_misses", "of them with an address not in the TLB"},
		{"iTLB_loads", "instruction addresses looked up"},
		{"iTLB_load_misses", "of them not in the TLB"},
		{"page_faults", "pages mapped when first touched, minor and major"},
		{"context_switches", "it gave its CPU away, or others took it"},
		{"task_clock", "CPU time from its exec on"},
		{"cpu_clock", "CPU time from its exec on"},
	};

	for (size_t i = 0; i < AS_ARRAY_LEN(texts); i++) {
		if (strcmp(texts[i].base, base) == 0)
			return texts[i].text;
	}
	return "";
}

struct as_metric_info as_plan_row(const struct as_plan *p, int row)
{
	if (row < AS_M_COUNT_) {
		struct as_metric_info info = as_metrics[row];

		info.is_share = row == AS_M_UTILISATION;
		return info;
	}
	row -= AS_M_COUNT_;
	if (row < (int)p->events.v.n) {
		const struct as_event *e = &p->events.v.v[row];

		return (struct as_metric_info){e->name, e->unit, text_of(e->base), false};
	}
	const struct as_derived *d = &p->derived.v[row - (int)p->events.v.n];

	return (struct as_metric_info){d->name, d->unit, d->text, d->is_share};
}

void as_plan_derive(const struct as_plan *p, double *v, float *counted)
{
	int row = AS_M_COUNT_ + (int)p->events.v.n;

	as_vec_foreach (d, &p->derived) {
		struct look_up l = {
			.plan = p, .pmu = d->pmu, .v = v, .counted = counted, .least = 1};
		double x = as_formula(d->formula, value_of, &l);

		if (d->is_share && !isnan(x))
			x = x < 0 ? 0 : x > 1 ? 1 : x;
		v[row] = x;
		counted[row++] = l.least;
	}
}
