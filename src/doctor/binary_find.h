/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Facts of a program -> findings. The facts may be made by hand: tests show each check any program. */
#ifndef AS_DOCTOR_BINARY_FIND_H
#define AS_DOCTOR_BINARY_FIND_H

#include "doctor/binary.h"
#include "doctor/doctor.h"

struct as_case {
	const struct as_binary_facts *facts;
	const char *profile_name; /* Cargo profile it was built with; "release" when unknown */
	const char *manifest;     /* Cargo.toml whose profiles count; NULL: none known */
	struct as_findings *out;
};
void as_binary_findings(const struct as_case *c);

/* The lines a profile of the manifest lacks for measuring; nothing when all is well. */
char *as_project_lines(const char *manifest,
		       const char *profile_name); /* caller frees; NULL: none lacking */
void as_project_findings(const char *manifest, const char *profile_name,
			 struct as_findings *out);

#endif
