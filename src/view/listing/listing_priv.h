/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Inside of a listing: listing.c finds out which code is wanted (spots) and puts the result in
 * order; code.c makes instructions of a region (bytes with chains), which comes from the
 * session (embedded.c) or the module's file (live.c); source.c the lines.
 */
#ifndef AS_VIEW_LISTING_PRIV_H
#define AS_VIEW_LISTING_PRIV_H

#include "base/buf.h"
#include "base/map.h"
#include "view/listing/listing.h"

#define AS_LISTING_MAX_REGIONS 64          /* stretches of code */
#define AS_LISTING_MAX_CODE    (16u << 20) /* bytes of all of them */

/* A recorded place of the function, as a look-up address. */
struct as_listing_spot {
	uint64_t svma, samples;
	bool whole; /* in the function itself, not in an inlined copy */
	bool done;  /* its code is in the listing */
};

struct as_listing_range { /* [the one before's hi, hi) has one chain */
	uint64_t hi;
	uint32_t place, nplaces; /* in listing->places */
	bool wanted;             /* the function is in the chain, or the region is whole */
};

struct as_listing_region {
	bool whole; /* false: only instructions that stand for the function */
	enum as_arch arch;
	uint64_t lo;
	const uint8_t *bytes;
	size_t n;
	AS_VEC(struct as_listing_range) ranges;
};

struct as_listing_part {
	uint64_t lo, hi;
};

struct as_image;
struct as_symmod;
/* A module's file, open. */
struct as_listing_module {
	uint32_t module;
	struct as_symmod *sym; /* NULL: why */
	char *why;
	uint64_t newest_ns;        /* change time of the file; 0 unknown */
	struct as_map64 functions; /* hash of a name, or of name and file -> index + 1 */
};

struct as_source;
struct as_listing_files {
	struct as_image *im;
	AS_VEC(struct as_listing_module) modules;
	struct as_intern paths;
	AS_VEC(struct as_source *) sources; /* by id in paths */
	size_t source_bytes;
};

struct as_listing_build {
	const struct as_listing_request *q;
	struct as_listing_files *files; /* never NULL */
	const struct as_model *m;
	struct as_listing *l;
	AS_VEC(struct as_listing_spot) spots; /* whole ones first, then the hottest */
	AS_VEC(struct as_listing_part) parts; /* of all regions so far */
	size_t code_bytes;
	uint64_t newest_ns; /* change time of the module's file; 0 unknown */
	/* Name of the symbol that holds svma, in the arena; NULL unknown. */
	const char *(*name_of)(struct as_listing_build *b, uint64_t svma, bool code,
			       uint64_t *ret_off);
	void *name_ctx;
};

/* A sentence for the reader; said once. */
void as_listing_note(struct as_listing_build *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* code.c: instructions of r into the listing. */
void as_listing_add_region(struct as_listing_build *b, const struct as_listing_region *r);
/* Claims [lo, hi) for a region: false when it is there already or there is no room. */
bool as_listing_claim(struct as_listing_build *b, uint64_t lo, uint64_t hi);

/* embedded.c, live.c: the code of all spots that are not done. */
void as_listing_embedded(struct as_listing_build *b);
void as_listing_live(struct as_listing_build *b);

void as_listing_module_close(struct as_listing_module *m);

/* source.c */
void as_listing_sources(struct as_listing_build *b);
/* hint.c: a note on what would give lines to a function that has none. */
void as_listing_no_lines(struct as_listing_build *b);

#endif
