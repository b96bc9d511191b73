/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What is measured: the figures every run has, events, and rows derived from them.
 *
 *	struct as_plan plan;
 *	r = as_plan_make("wall,cycles,cache", "", &plan, err);	// NULL: what is there by itself
 *	r = as_plan_probe(&plan, err);				// leaves out what this machine has not
 *	for (int m = 0; m < as_plan_rows(&plan); m++)
 *		if (as_plan_wanted(&plan, m)) … as_plan_row(&plan, m).name … run.v[m]
 *	as_plan_clear(&plan);
 *
 *	rows:	[0, AS_M_COUNT_) figures | one per event | one per derived row
 *
 * Words for several at once: hardware, cache, tlb, topdown.
 *
 * Top-down (levels 1 and 2): which part of the pipeline's slots did useful work, was wasted on wrong
 * paths, was not fed, or had to wait. Sources: A. Yasin, ISPASS 2014; perf-list(1) and the metric
 * files of Linux (Intel: the topdown-* events of sysfs; AMD Zen 4 and 5: PipelineL1; Arm: sbsa).
 */
#ifndef AS_MEASURE_PLAN_H
#define AS_MEASURE_PLAN_H

#include "measure/event.h"
#include "measure/run.h"

struct as_derived {
	char *name;
	const char *unit, *text, *formula;
	const char *pmu; /* whose events it is of; "" */
	bool is_share;   /* 0..1, and drawn in to it */
};

struct as_plan {
	bool wanted[AS_M_COUNT_];
	struct as_pmus pmus;
	struct as_events events;
	/* per event; figure: the one it is, instead of a row of its own; else -1 */
	struct as_planned {
		int figure;
		bool optional; /* may be missing here */
		bool is_word;  /* of a word that was asked for: not all of it may be missing */
	} of[AS_EVENTS_MAX];
	AS_VEC(struct as_derived) derived;
	bool no_pmu;    /* events of the processor were not had */
	bool user_only; /* some events count user mode only: missing rights */
};

/* list: names of figures, events (event.h) and words, with commas; NULL: the figures, and what the
 * processor counts without taking turns. */
int as_plan_make(const char *list, const char *root, struct as_plan *ret, struct as_error *err);
/* CPU time as an event, children included as they run: for looks while a program runs. */
void as_plan_add_clock(struct as_plan *p);
/* Opens each event once, for us, to see whether it can be had. AS_E_…: one that was asked for cannot;
 * the message says why and what would allow it. */
int as_plan_probe(struct as_plan *p, struct as_error *err);
void as_plan_clear(struct as_plan *p);

int as_plan_rows(const struct as_plan *p);
bool as_plan_wanted(const struct as_plan *p, int row);
struct as_metric_info as_plan_row(const struct as_plan *p, int row); /* text "": none */
/* The event behind a row; NULL for figures of another source and for derived rows. */
const struct as_event *as_plan_event(const struct as_plan *p, int row);
/* Fills the derived rows of v (of as_plan_rows) from the others, and counted from the events' least. */
void as_plan_derive(const struct as_plan *p, double *v, float *counted);

#endif
