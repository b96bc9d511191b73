/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Cost of unwind tables: unwind-table FILE... prints per module the time to compile, open and
 * look up, and the sizes. Median of a few rounds; the file's pages are warm from the first one.
 */
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include "../tests/unit/cfi_file.h"

static double now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

/* Two orders: every look-up elsewhere, and 4,096 addresses again and again. */
static double find_ns(const struct as_utable *t, const struct as_extent *e, size_t n,
		      size_t distinct)
{
	enum { LOOKUPS = 1000000 };
	uint64_t x = 88172645463325252ull, sum = 0;
	uint64_t *at = malloc(distinct * sizeof *at);
	struct as_rule r = {0};
	for (size_t i = 0; i < distinct; i++) {
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		const struct as_extent *f = &e[x % n];
		at[i] = f->start_svma + (x >> 32) % (f->end_svma - f->start_svma);
	}
	double t0 = now_ms();
	for (size_t i = 0; i < LOOKUPS; i++) {
		(void)as_utable_find(t, at[i % distinct], &r);
		sum += r.w0;
	}
	double t1 = now_ms();
	free(at);
	return sum == 1 ? 0 : (t1 - t0) * 1e6 / LOOKUPS;
}

static void measure(const char *path)
{
	enum { ROUNDS = 7 };
	static struct cfi_file f;
	struct as_cfi_stats s;
	struct as_error err;
	double ms[ROUNDS], open_ms;
	struct as_buf out = {0};
	if (!cfi_file_open(path, &f)) {
		printf("%s: not an ELF file with sections\n", path);
		return;
	}
	for (int i = 0; i < ROUNDS; i++) {
		as_buf_clear(&out);
		double t = now_ms();
		if (as_utable_compile(&f.in, &out, &s, &err)) {
			printf("%s: %s\n", path, err.msg);
			cfi_file_close(&f);
			return;
		}
		ms[i] = now_ms() - t;
	}
	qsort(ms, ROUNDS, sizeof *ms, by_value);
	struct as_utable t;
	double t0 = now_ms();
	int r = as_utable_open(out.p, out.len, &t, &err);
	open_ms = now_ms() - t0;
	struct as_extent *e = NULL;
	size_t n = 0;
	if (r || as_cfi_extents(&f.in, &e, &n, &err)) {
		printf("%s: %s\n", path, err.msg);
		return;
	}
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	printf("%s\n  compile %.2f ms (fastest %.2f), open %.2f ms, look-up %.0f ns "
	       "random, %.0f ns hot\n",
	       path, ms[ROUNDS / 2], ms[0], open_ms, n ? find_ns(&t, e, n, 1 << 20) : 0,
	       n ? find_ns(&t, e, n, 4096) : 0);
	printf("  eh_frame %zu KiB, %zu functions, %zu CIEs, rows %zu -> %zu, %zu rules, %zu "
	       "segments, table %zu KiB\n",
	       f.in.eh_frame.n / 1024, s.nfde, s.ncie, s.rows_raw, s.rows, s.rules, s.segments,
	       s.table_bytes / 1024);
	printf("  %zu expression rows, %zu other-register rows, %zu bad entries, %zu "
	       "synthesised; peak RSS so far %ld KiB\n",
	       s.expr, s.other_reg, s.bad_entries, s.synthesised, u.ru_maxrss);
	free(e);
	as_buf_clear(&out);
	cfi_file_close(&f);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		measure(argv[i]);
	return argc > 1 ? 0 : 1;
}
