/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Any bytes as what doctor reads: a Cargo.toml, a state of --fix, lists of CPUs, the start of a file,
 * and a whole program.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "doctor/binary.h"
#include "doctor/binary_file.h"
#include "doctor/doctor_priv.h"
#include "doctor/fix_priv.h"
#include "doctor/profiles.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void manifest(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"release", "dev", "bench", "prof"};

	for (size_t i = 0; i < AS_ARRAY_LEN(names); i++) {
		struct as_cargo_profile p;

		as_cargo_profile_read((const char *)data, size, names[i], &p);
		if (strlen(p.debug) >= sizeof p.debug ||
		    strlen(p.inherits) >= sizeof p.inherits)
			abort();
	}
}

static void state(const uint8_t *data, size_t size)
{
	struct as_fix_state s = {.fd = -1};
	char *copy = malloc(size + 1);

	if (!copy)
		abort();
	if (size)
		memcpy(copy, data, size);
	copy[size] = 0;
	/* what is no state has nothing to put back */
	(void)as_fix_state_parse(copy, size, "1-2", &s, NULL);
	as_vec_foreach (it, &s.entries) {
		if (!it->fix || !it->path || !*it->found || !*it->set)
			abort();
	}
	as_fix_state_close(&s);
	free(copy);
}

static void cpus(const uint8_t *data, size_t size)
{
	char list[4096];
	struct as_cpus c = {0};

	(void)snprintf(list, sizeof list, "%.*s", (int)AS_MIN(size, sizeof list - 1),
		       (const char *)data);
	as_cpus_parse(list, &c);
	if (c.v.n > 1u << 17)
		abort();
	as_cpus_clear(&c);
}

static void program(const uint8_t *data, size_t size)
{
	struct as_file_look look;
	struct as_findings found = {0};
	struct as_doctor d = {0};
	char path[40];
	int fd;

	as_file_look_at(data, size, size, &look);
	if (look.kind == AS_FILE_OTHER ? !look.what : look.kind == AS_FILE_PROGRAM && look.what)
		abort();
	if (look.kind != AS_FILE_PROGRAM)
		return;
	fd = memfd_create("program", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	/* damage costs what is damaged: any answer is one */
	(void)as_doctor_binary(&d, path, &found, NULL);
	(void)as_binary_optimised(path);
	as_findings_clear(&found);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	manifest(data, size);
	state(data, size);
	cpus(data, size);
	program(data, size);
	return 0;
}
