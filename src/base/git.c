/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* git called: see git.h. */
#include "base/git.h"

#include <stdlib.h>
#include <string.h>

#include "base/child.h"

extern char **environ;

/* What `git rev-parse --local-env-vars` lists: set in a hook, they would turn every call to the
 * caller's repository. */
static bool is_gits_own(const char *variable)
{
	static const char *const names[] = {"GIT_DIR",
					    "GIT_WORK_TREE",
					    "GIT_INDEX_FILE",
					    "GIT_OBJECT_DIRECTORY",
					    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
					    "GIT_COMMON_DIR",
					    "GIT_PREFIX",
					    "GIT_NAMESPACE",
					    "GIT_GRAFT_FILE",
					    "GIT_SHALLOW_FILE",
					    "GIT_CONFIG",
					    "GIT_IMPLICIT_WORK_TREE",
					    "GIT_INTERNAL_SUPER_PREFIX",
					    "GIT_REPLACE_REF_BASE",
					    "GIT_NO_REPLACE_OBJECTS",
					    "LC_ALL"};

	for (size_t i = 0; i < AS_ARRAY_LEN(names); i++) {
		size_t n = strlen(names[i]);

		if (strncmp(variable, names[i], n) == 0 && variable[n] == '=')
			return true;
	}
	return false;
}

int as_git(const struct as_git *g, const char *const *words, struct as_buf *out,
	   struct as_error *err)
{
	static char no_prompt[] = "GIT_TERMINAL_PROMPT=0", plain[] = "LC_ALL=C";
	AS_VEC(const char *) argv = {0};
	AS_VEC(char *) env = {0};
	struct as_child c = {0};
	int r;

	as_vec_push(&argv, "git");
	as_vec_push(&argv, "-C");
	as_vec_push(&argv, g->folder);
	for (const char *const *w = words; *w; w++)
		as_vec_push(&argv, *w);
	as_vec_push(&argv, NULL);
	for (char **e = environ; *e; e++) {
		if (!is_gits_own(*e))
			as_vec_push(&env, *e);
	}
	for (const char *const *e = g->environment; e && *e; e++)
		as_vec_push(&env, (char *)*e);
	as_vec_push(&env, no_prompt);
	as_vec_push(&env, plain);
	as_vec_push(&env, NULL);
	r = as_child_run(&(struct as_child_request){.argv = argv.v,
						    .environment = env.v,
						    .interrupted = g->interrupted},
			 &c, err);
	if (r == AS_E_NOTFOUND)
		r = as_fail(err, AS_E_NOTFOUND, 0, "git is not installed\n  apt install git");
	if (r == AS_OK && c.stopped)
		r = as_fail(err, AS_E_CANCELLED, 0, "interrupted");
	if (r == AS_OK && c.wait_status) {
		struct as_buf said = {0};

		as_child_last_words(c.errors.len ? &c.errors : &c.out, 6, &said);
		r = as_fail(err, AS_E_IO, 0, "git %s failed in '%s'%s", words[0], g->folder,
			    as_buf_str(&said));
		as_buf_clear(&said);
	}
	if (r == AS_OK && out) {
		while (c.out.len && c.out.p[c.out.len - 1] == '\n')
			c.out.len--;
		as_buf_add(out, c.out.p, c.out.len);
	}
	as_child_clear(&c);
	as_vec_clear(&argv);
	as_vec_clear(&env);
	return r;
}
