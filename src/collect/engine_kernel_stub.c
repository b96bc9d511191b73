/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The kernel engine of a build without BPF: says so. */
#include <stdio.h>
#include <string.h>
#include "collect/collect.h"

static const char without_bpf[] =
	"this assay was built without eBPF (clang, bpftool or libbpf was missing)";

static int probe(struct as_probe_result *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->can = AS_PROBE_NO;
	(void)snprintf(ret->why, sizeof(ret->why), "%s", without_bpf);
	return AS_OK;
}

static int open_engine(const struct as_engine_env *env, void **ret, struct as_error *err)
{
	return as_fail(err, AS_E_UNSUPPORTED, 0, "%s", without_bpf);
}

void as_engine_kernel_facts(void *c, struct as_engine_facts *ret)
{
	memset(ret, 0, sizeof(*ret));
}

const struct as_collector as_engine_kernel = {
	.name = "kernel",
	.summary = "stacks unwound in the kernel (eBPF)",
	.probe = probe,
	.open = open_engine,
};
