/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A word about the program that is about to be measured, where its build spoils the figures. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "cli/cmds_priv.h"
#include "doctor/binary.h"
#include "doctor/profiles.h"

/* As execvp finds it. Caller frees; NULL: nowhere, which is told when it is run. */
static char *find_program(const char *word)
{
	const char *path = getenv("PATH");

	if (strchr(word, '/'))
		return as_xstrdup(word);
	for (const char *p = path ? path : ""; *p;) {
		size_t n = strcspn(p, ":");
		char *full = as_xasprintf("%.*s/%s", (int)n, p, word);

		if (n && access(full, X_OK) == 0)
			return full;
		free(full);
		p += n + (p[n] == ':');
	}
	return NULL;
}

static char *remedy_for(const char *path)
{
	char profile[64];
	AS_CLEANUP(as_free_autop)
	char *manifest = as_manifest_of_program(path, profile, sizeof profile);

	if (!manifest)
		return as_xstrdup(
			"build it with optimisation (cargo build --release; gcc -O2)");
	if (strcmp(profile, "dev") == 0)
		return as_xstrdup("cargo build --release");
	return as_xasprintf("opt-level = 3 below [profile.%s] of %s", profile, manifest);
}

static char *path_of(const char *word, int64_t pid)
{
	return pid    ? as_xasprintf("/proc/%lld/exe", (long long)pid)
	       : word ? find_program(word)
		      : NULL;
}

bool as_fitness_look(const char *word, int64_t pid, struct as_fitness *ret)
{
	AS_CLEANUP(as_free_autop) char *path = path_of(word, pid);

	*ret = (struct as_fitness){0};
	if (!path || as_binary_optimised(path) != AS_OPTIMISED_NO)
		return false;

	AS_CLEANUP(as_free_autop) char *real = realpath(path, NULL);
	const char *shown = real ? real : path, *slash = strrchr(shown, '/');

	ret->about = as_xstrdup(slash && slash[1] ? slash + 1 : shown);
	ret->text =
		as_xstrdup("built without optimisation: its times are not those of a release "
			   "build");
	ret->remedy = remedy_for(path);
	return true;
}

void as_fitness_print(const struct as_fitness *f)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	if (!f->text)
		return;
	as_buf_adds(&b, "assay: ");
	as_fmt_quoted(&b, f->about, strlen(f->about));
	as_buf_addf(&b, ": %s; %s\n", f->text, f->remedy);
	(void)as_write_all(STDERR_FILENO, b.p, b.len, NULL); /* nowhere left to tell */
}

/* Is it known to be optimised? A script is neither. */
static bool is_optimised(const char *word)
{
	AS_CLEANUP(as_free_autop) char *path = path_of(word, 0);
	enum as_optimised o = path ? as_binary_optimised(path) : AS_OPTIMISED_UNKNOWN;

	return o == AS_OPTIMISED_YES || o == AS_OPTIMISED_PARTLY;
}

void as_fitness_tell(const char *first, const char *second, bool ret[2])
{
	const char *words[2] = {first, second};
	struct as_fitness f[2] = {{0}, {0}};
	bool alike = second && strcmp(first, second) == 0;

	for (int i = 0; i < 2; i++) {
		ret[i] = i && alike ? ret[0] : as_fitness_look(words[i], 0, &f[i]);
		if (ret[i] && words[!i] && is_optimised(words[!i])) {
			free(f[i].text);
			f[i].text = as_xasprintf(
				"built without optimisation, and the %s command is not: the "
				"difference will be that of the builds",
				i ? "first" : "second");
		}
		as_fitness_print(&f[i]);
		as_fitness_clear(&f[i]);
	}
}

void as_fitness_clear(struct as_fitness *f)
{
	free(f->about);
	free(f->text);
	free(f->remedy);
	*f = (struct as_fitness){0};
}
