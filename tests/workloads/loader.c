/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* loader FOLDER ROUNDS SECONDS: loads plugin_a.so and plugin_b.so from FOLDER in turn and
 * unloads them again. */
#include <dlfcn.h>
#include <stdio.h>
#include "workload.h"

int main(int argc, char **argv)
{
	int rounds = (int)arg(argc, argv, 2, 4);
	double seconds = arg(argc, argv, 3, 0.1);

	for (int i = 0; i < rounds; i++) {
		char path[4096], which = i % 2 ? 'b' : 'a', name[] = "plugin_?";
		union {
			void *p;
			void (*f)(double);
		} u;
		void *h;

		name[7] = which;
		snprintf(path, sizeof path, "%s/%s.so", argc > 1 ? argv[1] : ".", name);
		h = dlopen(path, RTLD_NOW);
		if (!h)
			return 1;
		u.p = dlsym(h, name);
		if (!u.p)
			return 1;
		u.f(seconds);
		dlclose(h);
	}
	return 0;
}
