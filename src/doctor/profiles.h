/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The [profile.*] sections of a Cargo.toml, read just far enough for advice.
 *
 *	struct as_cargo_profile p;
 *	as_cargo_profile_read(text, n, "release", &p);	// p.debug "line-tables-only"; "" not set
 *
 * Understood: `key = value` lines below [profile.NAME], dotted keys (profile.NAME.key = …, and NAME.key
 * below [profile]), comments, `inherits`. Not: inline tables, values over several lines,
 * [profile.NAME.package.*], .cargo/config.toml, CARGO_PROFILE_* of the environment. What is not
 * understood counts as not set. Any bytes are safe.
 */
#ifndef AS_DOCTOR_PROFILES_H
#define AS_DOCTOR_PROFILES_H

#include <stdbool.h>
#include <stddef.h>

struct as_cargo_profile {
	bool section; /* the file has something on this profile */
	/* values without quotes; "" not set */
	char opt_level[24], debug[24], strip[24], lto[24], codegen_units[24], panic[24],
		debug_assertions[24], overflow_checks[24], split_debuginfo[24], inherits[24];
};
/* Values that are not set come from the profile it inherits from (one step; dev and release have
 * cargo's defaults, which are not filled in). */
void as_cargo_profile_read(const char *text, size_t n, const char *name,
			   struct as_cargo_profile *ret);

/*
 * The manifest whose profiles cargo uses in folder: the nearest Cargo.toml upwards with a
 * [workspace], else the nearest. NULL: none. Caller frees.
 */
char *as_manifest_find(const char *folder);
/*
 * "/p/target/release/app": the profile's name ("dev" for debug) into ret, and the folder with the
 * manifest; NULL when path is not below a target folder. Caller frees.
 */
char *as_manifest_of_program(const char *path, char *ret, size_t n);

#endif
