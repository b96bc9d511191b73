/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* See stat_baseline.h. */
#include "cli/stat_baseline.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/sys.h"
#include "history/history.h"

static int find_program(const char *name, char **ret, struct as_error *err)
{
	*ret = as_history_which(name);
	return *ret ? AS_OK
		    : as_fail(err, AS_E_NOTFOUND, 0, "cannot find the program '%s'", name);
}

int as_baseline_save(const char *name, char *const *argv, const struct as_buf *result,
		     struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *program = NULL, *copy = NULL, *machine = NULL;
	AS_CLEANUP(as_buf_clear) struct as_buf arguments = {0};
	struct as_json j = {.out = &arguments};
	struct as_history *h = NULL;
	int r = find_program(argv[0], &program, err);

	if (r == AS_OK)
		r = as_history_open(NULL, &h, err);
	if (r == AS_OK)
		r = as_history_keep_program(h, program, &copy, err);
	if (r == AS_OK) {
		struct as_history_entry e = {.name = (char *)(uintptr_t)name,
					     .kind = (char *)(uintptr_t) "stat",
					     .time_s = as_realtime_ns() / 1000000000,
					     .program = program,
					     .copy = copy,
					     .result = result->p};

		as_json_arr(&j, NULL);
		for (char *const *w = argv + 1; *w; w++)
			as_json_str(&j, NULL, *w);
		as_json_end(&j);
		e.arguments = arguments.p;
		e.machine = machine = as_history_machine();
		r = as_history_save(h, &e, err);
	}
	as_history_close(h);
	return r < 0 ? as_wrap(err, "cannot save '%s'", name) : r;
}

/* program, then the texts of a JSON array; NULL-terminated, all owned. */
static char **words_of(const char *program, const char *json)
{
	json_t *list = json_loads(json, 0, NULL);
	char **words = as_xcalloc(json_array_size(list) + 2, sizeof *words);
	const json_t *one;
	size_t i;

	words[0] = as_xstrdup(program);
	json_array_foreach(list, i, one) words[i + 1] =
		as_xstrdup(json_string_value(one) ? json_string_value(one) : "");
	json_decref(list);
	return words;
}

static char **words_again(const char *program, char *const *argv)
{
	size_t n = 1;

	while (argv[n])
		n++;

	char **words = as_xcalloc(n + 1, sizeof *words);

	words[0] = as_xstrdup(program);
	for (size_t i = 1; i < n; i++)
		words[i] = as_xstrdup(argv[i]);
	return words;
}

static void free_words(char **words)
{
	for (char **w = words; w && *w; w++)
		free(*w);
	free(words);
}

static char *description(const struct as_history_entry *e)
{
	time_t t = (time_t)e->time_s;
	struct tm tm;
	char when[32] = "";

	if (localtime_r(&t, &tm))
		strftime(when, sizeof when, "%Y-%m-%d %H:%M", &tm);
	return as_xasprintf("'%s' of %s, %s", e->name, when, e->machine);
}

/* Both programs are copies made in the same way: one written by a linker and one by a copy differ by
 * up to a percent through the pages they lie in. */
static int copy_of_today(struct as_history *h, const char *name, char **ret_copy,
			 struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *program = NULL;
	int r = find_program(name, &program, err);

	if (r == AS_OK)
		r = as_history_keep_program(h, program, ret_copy, err);
	if (r == AS_OK && !*ret_copy)
		r = as_fail(err, AS_E_UNSUPPORTED, 0,
			    "'%s' is no ELF program of at most 256 MiB, so no copy of it can "
			    "be run",
			    program);
	return r;
}

/* Only the program is of that day: both run here, now. What else differs, the reader should know. */
static char *note(const struct as_history_entry *e, const struct as_baseline *b)
{
	AS_CLEANUP(as_free_autop) char *here = as_history_machine();
	AS_CLEANUP(as_buf_clear) struct as_buf out = {0};
	size_t i = 1;

	if (strcmp(here, e->machine) != 0)
		as_buf_addf(&out,
			    "note   it was saved on another machine (this is %s): its program "
			    "ran here "
			    "now, its figures of then are not used\n",
			    here);
	while (b->before[i] && b->now[i] && strcmp(b->before[i], b->now[i]) == 0)
		i++;
	if (b->before[i] || b->now[i])
		as_buf_adds(&out,
			    "note   the arguments are not those it was saved with: it ran "
			    "with its own\n");
	return out.len ? as_xstrdup(as_buf_str(&out)) : NULL;
}

int as_baseline_load(const char *name, char *const *argv, struct as_baseline *ret,
		     struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *today = NULL;
	struct as_history_entry e = {0};
	struct as_history *h = NULL;
	int r;

	*ret = (struct as_baseline){0};
	r = as_history_open(NULL, &h, err);
	if (r == AS_OK)
		r = as_history_find(h, name, &e, err);
	if (r == AS_OK && (!e.copy[0] || access(e.copy, X_OK) < 0))
		r = as_fail(
			err, AS_E_NOTFOUND, 0,
			"of '%s' only figures were kept, no program that could be run again: "
			"figures of another time are no baseline\n"
			"  assay stat -- OLD ARGS --vs NEW ARGS",
			name);
	if (r == AS_OK)
		r = copy_of_today(h, argv[0], &today, err);
	if (r == AS_OK) {
		ret->before = words_of(e.copy, e.arguments);
		ret->now = words_again(today, argv);
		ret->text = description(&e);
		ret->note = note(&e, ret);
	}
	as_history_entry_clear(&e);
	as_history_close(h);
	return r;
}

void as_baseline_clear(struct as_baseline *b)
{
	free_words(b->before);
	free_words(b->now);
	free(b->text);
	free(b->note);
	*b = (struct as_baseline){0};
}
