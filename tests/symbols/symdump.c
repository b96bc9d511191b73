/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * symdump [-c CACHE_DIR] [-q] FILE < addresses: frames of our symboliser in the shape of
 * "addr2line -aif" (one svma per line in, as 0x…; address, then function and place per frame
 * out), so that they can be compared with other tools. Repaired lines are printed as 0, as
 * those tools do. -q resolves without printing and tells the time taken.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "symbol/symbol.h"

static void print_chain(void *ctx, size_t index, uint64_t svma, const struct as_symchain *chain)
{
	(void)index;
	if (*(bool *)ctx)
		return;
	printf("0x%llx\n", (unsigned long long)svma);
	if (!chain->n)
		printf("??\n??:0\n");
	for (size_t i = 0; i < chain->n; i++) {
		const struct as_symframe *f = &chain->frames[i];

		printf("%s\n%s:%u\n", f->linkage ? f->linkage : "??", f->file ? f->file : "??",
		       f->line_from_call ? 0 : f->line);
	}
}

int main(int argc, char **argv)
{
	struct as_symmod_spec spec = {.fd = -1};
	AS_VEC(uint64_t) addr = {0};
	struct as_symmod *m;
	struct as_error err;
	bool quiet = false;
	char line[64];
	int opt;

	while ((opt = getopt(argc, argv, "c:q")) != -1) {
		if (opt == 'c')
			spec.cache_dir = optarg;
		else if (opt == 'q')
			quiet = true;
		else
			return 2;
	}
	if (optind >= argc)
		return 2;
	spec.path = argv[optind];
	spec.fd = open(spec.path, O_RDONLY | O_CLOEXEC);
	while (fgets(line, sizeof line, stdin)) {
		uint64_t a;

		line[strcspn(line, "\n")] = '\0';
		if (as_parse_u64(line, &a))
			as_vec_push(&addr, a);
	}

	uint64_t start = as_self_cpu_ns();

	if (as_symmod_open(&spec, &m, &err) < 0) {
		fprintf(stderr, "symdump: %s\n", err.msg);
		return 1;
	}
	as_symmod_resolve(m, addr.v, addr.n, print_chain, &quiet);
	fputs(as_symmod_notes(m), stderr);
	as_symmod_close(m);
	if (quiet)
		printf("%zu addresses, %.1f ms cpu\n", addr.n,
		       (double)(as_self_cpu_ns() - start) / 1e6);
	close(spec.fd);
	as_vec_clear(&addr);
	return 0;
}
