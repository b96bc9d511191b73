/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Which compilation units the debug information of a module has: what made them and how much
 * they tell. For judgements of a whole binary (doctor), not for looking up addresses.
 *
 *	as_symmod_units(m, on_unit, ctx);	// all zeros and no call: no debug information
 *
 * Cost: the root of every unit and at most AS_UNITS_MAX_DIES entries of each of the first
 * AS_UNITS_MAX_JUDGED; about 2 us a unit. Strings live until as_symmod_close. Damage costs the unit.
 */
#ifndef AS_SYMBOL_UNITS_H
#define AS_SYMBOL_UNITS_H

#include "symbol/symbol.h"

#define AS_UNITS_MAX_JUDGED 20000
#define AS_UNITS_MAX_DIES   3000

enum as_unit_detail {
	AS_UNIT_BARE,  /* no line table */
	AS_UNIT_LINES, /* lines; functions and inlined calls at most */
	AS_UNIT_FULL,  /* parameters or types too */
};

struct as_unit {
	const char *name, *comp_dir, *producer; /* "" where the unit tells none */
	const char *split_name; /* .dwo file that holds the rest; NULL: not split */
	bool split_missing;
	bool judged; /* detail is known */
	enum as_unit_detail detail;
	uint32_t lang;       /* DW_LANG_… */
	uint16_t version;    /* 2 … 5 */
	uint64_t abbrev_off; /* units of one object file share it */
	uint64_t code_bytes; /* of the module's code that it claims */
};

typedef void (*as_unit_fn)(void *ctx, const struct as_unit *u);
/* Returns the number of units; partial units of a common file are not told. */
size_t as_symmod_units(struct as_symmod *m, as_unit_fn fn, void *ctx);

/* The separate file the debug information came from; NULL: the module's own, or none. */
const char *as_symmod_debug_file(struct as_symmod *m);

#endif
