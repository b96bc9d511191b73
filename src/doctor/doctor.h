/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Is the machine fit to measure on, what may this user do, is the binary fit to be looked at.
 *
 *	struct as_doctor d;
 *	struct as_vitals vitals;
 *	struct as_findings found = {0};
 *	as_doctor_init(&d);				// this machine
 *	as_vitals_measure(&d, true, &vitals);		// 1 s: what runs, and the noise test
 *	as_doctor_run(&d, &found);			// every check of machine, rights and abilities
 *	as_doctor_binary(&d, path, &found, &err);	// a program
 *	as_findings_text(&found, &style, &out);
 *	as_findings_clear(&found); as_vitals_clear(&vitals);
 *
 * A check is a function from an as_doctor to findings. All it knows comes through the as_doctor:
 * the roots of /proc, /sys and the cgroup file system, the clock, the user, what was measured. So
 * every check can be shown any machine by a tree of files.
 *
 * Thread rule: one thread per as_doctor. Cost: 20 ms without the measurement, which takes a second.
 */
#ifndef AS_DOCTOR_DOCTOR_H
#define AS_DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "doctor/vitals.h"

/* ---- findings ---- */

enum as_severity {
	AS_SEVERITY_OK,   /* as it should be */
	AS_SEVERITY_INFO, /* to be known; spoils nothing by itself */
	AS_SEVERITY_WARN, /* spoils a measurement that is to be exact */
	AS_SEVERITY_BAD,  /* spoils any measurement, or there will be none */
};
const char *as_severity_name(enum as_severity s); /* "ok", "info", "warn", "bad" */

enum as_area { AS_AREA_MACHINE, AS_AREA_RIGHTS, AS_AREA_BINARY, AS_AREA_CAN, AS_AREA_COUNT_ };
const char *as_area_name(enum as_area a); /* "machine", "rights", "binary", "can" */

struct as_finding {
	const char *id; /* stable, static: "governor", "steal", "debug-info" */
	enum as_area area;
	enum as_severity severity;
	char *what; /* never NULL; one line; short enough for a list where it is OK */
	char *why;  /* what it does to figures, with its size where it was measured; or NULL */
	char *fix;  /* lines ready to paste, the least invasive first; or NULL */
	const char *fixable; /* name for --fix, static; or NULL */
	bool full;           /* INFO: why and fix are shown without being asked for */
};
struct as_findings {
	AS_VEC(struct as_finding) all;
};

/* Appends; valid until the next one is added. id is kept as it is. */
struct as_finding *as_findings_add(struct as_findings *f, enum as_area area, const char *id,
				   enum as_severity severity, const char *what, ...)
	__attribute__((format(printf, 5, 6)));
void as_finding_why(struct as_finding *f, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void as_finding_fix(struct as_finding *f, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The worst there is; OK when there is none. */
enum as_severity as_findings_worst(const struct as_findings *f);
void as_findings_clear(struct as_findings *f);

/* ---- what the checks look at ---- */

struct as_collector;

struct as_doctor {
	/* no slash at the end; root is "" for the files of / itself */
	const char *proc, *sys, *cgroup, *root;
	uid_t uid;
	pid_t self;
	long ticks_hz;                             /* of /proc/stat */
	uint64_t memlock_bytes, nofile;            /* limits; UINT64_MAX: none */
	const struct as_collector *const *engines; /* NULL-terminated */
	const struct as_vitals *vitals;            /* NULL: nothing was measured */
	uint64_t (*now_ns)(void);
	void (*sleep_ns)(uint64_t ns);
};
void as_doctor_init(struct as_doctor *d);

/* ---- checks ---- */

/* One check: adds findings (usually one). < 0 only for what is no finding; none does so now. */
struct as_check {
	const char *id;
	enum as_area area;
	int (*check)(const struct as_doctor *d, struct as_findings *out);
};
extern const struct as_check as_checks[]; /* id NULL ends */
const struct as_check *as_check_find(const char *id);
void as_doctor_run(const struct as_doctor *d, struct as_findings *out);

/*
 * The program at path (an ELF file; a script is said to be one): findings of area BINARY. Fails
 * where it cannot be read at all.
 */
int as_doctor_binary(const struct as_doctor *d, const char *path, struct as_findings *out,
		     struct as_error *err);

/* The Cargo project around folder, if there is one: what its release profile lacks. */
void as_doctor_project(const char *folder, struct as_findings *out);

/* ---- as text ---- */

struct as_doctor_style {
	int width;
	bool color;
	bool all; /* the reasons of INFO findings too */
};
void as_findings_text(const struct as_findings *f, const struct as_doctor_style *style,
		      struct as_buf *out);
/* docs/formats/doctor-json.md; vitals may be NULL */
void as_findings_json(const struct as_findings *f, const struct as_vitals *vitals,
		      const char *subject, struct as_buf *out);

#endif
