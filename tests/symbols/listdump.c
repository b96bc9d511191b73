/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Prints the listing of a function of a session, for looking at and for timing.
 *
 *	usage: listdump SESSION FUNCTION [embedded | live] [times]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "view/listing/listing.h"

static void print_insns(const struct as_listing *l)
{
	as_vec_foreach (i, &l->insns) {
		printf("%s%8" PRIx64 " %u  %-50s", i->starts_part ? "--\n" : "", i->svma,
		       i->kind, i->text);
		for (uint32_t k = 0; k < i->nplaces; k++) {
			const struct as_listing_place *p = &l->places.v[i->place + k];
			const char *slash = p->file ? strrchr(p->file, '/') : NULL;

			printf(" %s(%d) %s:%u", p->function, (int)p->key,
			       slash     ? slash + 1
			       : p->file ? p->file
					 : "?",
			       p->line);
		}
		putchar('\n');
	}
}

static void print_files(const struct as_listing *l)
{
	as_vec_foreach (f, &l->files) {
		printf("== %s (%s) %s, %u lines\n", f->path, f->found ? f->found : "-",
		       f->why ? f->why : "", f->total);
		for (size_t i = 0; i < f->lines.n; i++) {
			if (f->lines.v[i] != as_listing_left_out)
				printf("%6zu  %s\n", f->first + i, f->lines.v[i]);
			else if (f->lines.v[i - 1] != as_listing_left_out)
				puts("   ...");
		}
	}
}

static uint32_t find(const struct as_model *m, const char *name)
{
	for (uint32_t i = 0; i < m->functions.n; i++) {
		if (strcmp(m->functions.v[i].brief, name) == 0 && m->functions.v[i].same == i)
			return i;
	}
	return AS_NONE;
}

int main(int argc, char **argv)
{
	struct as_error err = {0};
	struct as_listing *l = NULL;
	struct as_model *m;
	uint64_t start;
	int times = argc > 4 ? (int)strtol(argv[4], NULL, 10) : 1;

	if (argc < 3 || as_model_load(argv[1], &m, &err) < 0) {
		fprintf(stderr, "listdump: %s\n", argc < 3 ? "SESSION FUNCTION" : err.msg);
		return 1;
	}
	if (argc > 3 && strcmp(argv[3], "live") == 0)
		m->codes.n = m->sources.n = 0;

	char *cache = as_cache_dir();
	struct as_listing_request q = {.model = m,
				       .function = find(m, argv[2]),
				       .cache_dir = cache,
				       .embedded_only =
					       argc > 3 && strcmp(argv[3], "embedded") == 0};

	start = as_now_ns();
	for (int i = 0; i < times; i++) {
		as_listing_free(l);
		l = NULL;
		if (as_listing_make(&q, &l, &err) < 0) {
			fprintf(stderr, "listdump: %s\n", err.msg);
			return 1;
		}
	}
	fprintf(stderr, "%.2f ms, %zu instructions, %zu files, code %s, source %s\n",
		(double)(as_now_ns() - start) / 1e6 / times, l->insns.n, l->files.n,
		l->code_embedded ? "embedded" : "live",
		l->source_embedded ? "embedded" : "live");
	print_insns(l);
	print_files(l);
	as_vec_foreach (n, &l->notes)
		printf("note: %s\n", *n);
	as_listing_free(l);
	as_model_free(m);
	free(cache);
	return 0;
}
