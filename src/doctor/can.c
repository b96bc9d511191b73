/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What can be done here. The engines of `record` are asked themselves, by the same probe that
 * `record` asks, so that the two cannot disagree.
 */
#include <stdlib.h>
#include <string.h>

#include "collect/collect.h"
#include "doctor/doctor_priv.h"

static void probe(const struct as_collector *c, struct as_probe_result *ret)
{
	*ret = (struct as_probe_result){.can = AS_PROBE_NO};
	if (c->probe(ret) < 0)
		ret->can = AS_PROBE_NO;
}

int as_check_engines(const struct as_doctor *d, struct as_findings *out)
{
	static const enum as_severity severity[] = {[AS_PROBE_NO] = AS_SEVERITY_BAD,
						    [AS_PROBE_PARTLY] = AS_SEVERITY_WARN,
						    [AS_PROBE_YES] = AS_SEVERITY_OK};
	struct as_probe_result r;
	bool better = false; /* an engine before this one can do it all */

	for (const struct as_collector *const *c = d->engines; c && *c; c++) {
		/* ids of findings are static: an engine's name is */
		enum as_severity s;
		struct as_finding *f;

		probe(*c, &r);
		s = severity[r.can];
		/* one engine that cannot is no harm while another can */
		if (s != AS_SEVERITY_OK && (better || c[1]))
			s = AS_SEVERITY_INFO;
		/* what keeps the kernel's part back is a finding of its own */
		if (r.can == AS_PROBE_PARTLY && as_doctor_is_bound(d))
			s = AS_SEVERITY_INFO;
		f = as_findings_add(out, AS_AREA_RIGHTS, "engine", s,
				    r.can == AS_PROBE_YES      ? "engine %s (%s)"
				    : r.can == AS_PROBE_PARTLY ? "engine %s works in part: %s"
							       : "engine %s cannot be used: %s",
				    (*c)->name, r.can == AS_PROBE_YES ? (*c)->summary : r.why);
		if (r.can != AS_PROBE_YES) {
			as_finding_why(f,
				       r.can == AS_PROBE_NO
					       ? "it would give %s"
					       : "%s; what is kept from it is in no sample",
				       (*c)->summary);
			if (r.remedy[0])
				as_finding_fix(f, "%s", r.remedy);
		}
		better |= r.can == AS_PROBE_YES;
	}
	return 0;
}

/* The best an engine can do, with that engine. */
static enum as_probe best_engine(const struct as_doctor *d, const struct as_collector **ret,
				 struct as_probe_result *ret_why)
{
	enum as_probe best = AS_PROBE_NO;
	struct as_probe_result r;

	*ret = NULL;
	*ret_why = (struct as_probe_result){0};
	for (const struct as_collector *const *c = d->engines; c && *c; c++) {
		probe(*c, &r);
		if (r.can > best || (!*ret && !ret_why->why[0])) {
			if (r.can > best)
				*ret = *c;
			best = AS_MAX(best, r.can);
			*ret_why = r;
		}
	}
	return best;
}

static bool kernel_names(const struct as_doctor *d)
{
	struct as_findings f = {0};
	bool fine;

	(void)as_check_kptr(d, &f); /* adds a finding or none */
	fine = f.all.n && f.all.v[0].severity == AS_SEVERITY_OK;
	as_findings_clear(&f);
	return fine;
}

static void cannot(struct as_findings *out, const char *id, enum as_severity s,
		   const char *what, const char *why, const char *fix)
{
	struct as_finding *f = as_findings_add(out, AS_AREA_CAN, id, s, "%s%s%s%s", what,
					       why && *why ? " (" : "", why ? why : "",
					       why && *why ? ")" : "");

	if (fix && *fix)
		as_finding_fix(f, "%s", fix);
}

static void can(struct as_findings *out, const char *id, const char *what)
{
	as_findings_add(out, AS_AREA_CAN, id, AS_SEVERITY_OK, "%s", what);
}

int as_check_can(const struct as_doctor *d, struct as_findings *out)
{
	const struct as_collector *engine;
	struct as_probe_result why;
	enum as_probe sampling = best_engine(d, &engine, &why);

	if (sampling == AS_PROBE_NO)
		cannot(out, "can-record", AS_SEVERITY_BAD, "record", why.why, why.remedy);
	else
		as_findings_add(out, AS_AREA_CAN, "can-record", AS_SEVERITY_OK,
				"record (engine %s)", engine->name);
	if (sampling == AS_PROBE_YES)
		can(out, "can-kernel-stacks", "time in the kernel");
	else if (sampling == AS_PROBE_PARTLY)
		cannot(out, "can-kernel-stacks", AS_SEVERITY_WARN, "time in the kernel",
		       why.why, why.remedy);
	if (sampling == AS_PROBE_YES && !kernel_names(d))
		cannot(out, "can-kernel-names", AS_SEVERITY_INFO, "names of kernel functions",
		       "kptr_restrict", "sudo assay doctor --fix kptr_restrict");
	can(out, "can-stat", "stat");
	can(out, "can-read", "report, annotate, flame, view, export, diff");
	if (as_doctor_has_pmu(d))
		can(out, "can-counters", "hardware counters");
	else
		cannot(out, "can-counters", AS_SEVERITY_INFO, "hardware counters",
		       as_doctor_is_virtual(d, NULL, 0) ? "virtual machine without a PMU"
							: "no PMU driver",
		       NULL);
	return 0;
}
