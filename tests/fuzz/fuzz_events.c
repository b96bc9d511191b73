/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Any text as what --events takes and as a formula, on the machines of the unit tests; and any bytes
 * as what a kernel says in sysfs: the first line is written over a file of the tree.
 */
#include <math.h>
#include <stdint.h>

#include "../unit/pmu_trees.h"
#include "measure/formula.h"
#include "measure/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static double value(void *ctx, const char *name, size_t n)
{
	(void)ctx;
	if (!n)
		abort();
	return name[0] == 'x' ? NAN : (double)n;
}

/* The files whose text is more than a number. */
static const char *const files[] = {
	"cpu_core/type",
	"cpu_core/cpus",
	"cpu_core/format/event",
	"cpu_core/format/ldlat",
	"cpu_core/events/mem-loads",
	"cpu_core/events/mem-loads.scale",
	"cpu_core/events/mem-loads.unit",
};

static char *root;

static void drop_root(void)
{
	drop_tree(root);
}

static void set(const char *file, const char *text, size_t n)
{
	AS_CLEANUP(as_free_autop)
	char *path = as_xasprintf("%s/sys/bus/event_source/devices/%s", root, file);
	FILE *f = fopen(path, "w");

	if (!f || fwrite(text, 1, n, f) != n || fclose(f))
		abort();
}

static const char *usual(const char *file)
{
	for (size_t i = 0; intel_hybrid[i][0]; i++) {
		if (strcmp(intel_hybrid[i][0], file) == 0)
			return intel_hybrid[i][1];
	}
	return "";
}

static void plan(const char *list)
{
	struct as_error err;
	struct as_plan p;

	if (as_plan_make(list, root, &p, &err) < 0)
		return;

	AS_CLEANUP(as_free_autop)
	double *v = as_xcalloc((size_t)as_plan_rows(&p) + 1, sizeof *v);
	AS_CLEANUP(as_free_autop)
	float *counted = as_xcalloc((size_t)as_plan_rows(&p) + 1, sizeof *counted);

	as_plan_derive(&p, v, counted);
	for (int m = 0; m < as_plan_rows(&p); m++) {
		if (!as_plan_row(&p, m).name[0])
			abort();
	}
	as_plan_clear(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *file = files[size % AS_ARRAY_LEN(files)];
	AS_CLEANUP(as_free_autop) char *text = as_xstrndup((const char *)data, size);
	char *list = strchr(text, '\n');

	if (!root) {
		root = make_tree(intel_hybrid);
		(void)atexit(drop_root);
	}
	(void)as_formula(text, value, NULL);
	if (list)
		*list++ = 0;
	set(file, text, strlen(text));
	plan(list ? list : text);
	plan(NULL);
	set(file, usual(file), strlen(usual(file)));
	return 0;
}
