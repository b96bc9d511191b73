/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Performance monitoring units as the kernel describes them under /sys/bus/event_source/devices: the
 * number to open them by, where their parameters go (format/), their named events (events/, with .scale
 * and .unit).
 *
 *	struct as_pmus pmus = {0};
 *	as_pmus_load("", false, &pmus);		// "": here; else a folder with a copy of /sys
 *	const struct as_pmu *cpu = as_pmus_find(&pmus, "cpu");
 *	as_pmus_clear(&pmus);
 *
 * A core PMU counts what a task does: "cpu", or one with a file `cpus` (several of them: a hybrid
 * machine). One with `cpumask` counts the whole machine and belongs to no program.
 *
 * Source: Documentation/ABI/testing/sysfs-bus-event_source-devices* of Linux.
 * Pure but for the reading; any thread.
 */
#ifndef AS_MEASURE_PMU_H
#define AS_MEASURE_PMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"
#include "base/mem.h"

#define AS_PMU_CONFIGS 3 /* config, config1, config2 of perf_event_attr */

struct as_pmu_format {
	char *name;
	int config;    /* which word */
	uint64_t mask; /* bits of it, the parameter's lowest first */
};
struct as_pmu_event {
	char *name, *terms; /* "event=0x3c,umask=0x01" */
	char *unit;         /* NULL: none */
	double scale;       /* 1: none */
};
struct as_pmu {
	char *name;
	uint32_t type;
	bool core, whole_machine;
	unsigned slots;     /* pipeline width (caps/slots); 0: not told */
	double mux_seconds; /* a turn of events that take turns */
	AS_VEC(struct as_pmu_format) formats;
	AS_VEC(struct as_pmu_event) events;
};
struct as_pmus {
	AS_VEC(struct as_pmu) v; /* in order of their names */
	unsigned cores;          /* how many are core PMUs */
	bool known;              /* the folder is there: what is not in it does not exist */
	/* of /proc/cpuinfo, x86; 0: not known */
	bool amd;
	unsigned family, model;
};

/* Never fails: what cannot be read is left out. cores_only: formats and events of the others are not
 * read (a server has hundreds of them). */
void as_pmus_load(const char *root, bool cores_only, struct as_pmus *ret);
void as_pmus_clear(struct as_pmus *p);
const struct as_pmu *as_pmus_find(const struct as_pmus *p, const char *name);
/* '-' and '_' are the same. NULL: none. */
const struct as_pmu_event *as_pmu_find_event(const struct as_pmu *p, const char *name);

/* "event=0x3c,umask=1" into config[AS_PMU_CONFIGS]; a term without a value is 1; config=… sets the whole
 * word. AS_E_USAGE names the term, and the terms there are. */
int as_pmu_encode(const struct as_pmu *p, const char *terms, uint64_t *config,
		  struct as_error *err);
/* value's bits into those of mask, lowest first; bits that do not fit are lost (see as_pmu_encode). */
uint64_t as_pmu_spread(uint64_t mask, uint64_t value);
/* Equal but for '-' and '_'. */
bool as_event_name_equal(const char *a, const char *b);

#endif
