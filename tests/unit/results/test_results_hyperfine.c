/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* results/hyperfine: from the times of hyperfine's own JSON its five exports again, byte for byte. The
 * files in tests/unit/results/hyperfine are what hyperfine 1.15.0 wrote. */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/sys.h"
#include "results/hyperfine.h"

static struct as_error err;

static void load(const char *name, const char *end, struct as_buf *ret)
{
	AS_CLEANUP(as_free_autop)
	char *path = as_xasprintf("%s/%s.%s", getenv("HYPERFINE_FILES"), name, end);

	assert_int_equal(as_read_file(path, 1 << 20, ret, &err), 0);
}

static struct as_bench bench_of(const json_t *row)
{
	struct as_bench b;
	const json_t *one;
	const char *key;
	size_t i;

	as_bench_init(&b);
	b.kind = AS_BENCH_COMMAND;
	b.name = as_xstrdup(json_string_value(json_object_get(row, "command")));
	json_array_foreach(json_object_get(row, "times"), i, one)
		as_vec_push(&b.walls, json_number_value(one));
	json_array_foreach(json_object_get(row, "exit_codes"), i, one)
		as_vec_push(&b.exit_codes, (int)json_integer_value(one));
	b.user.value = json_number_value(json_object_get(row, "user"));
	b.system.value = json_number_value(json_object_get(row, "system"));
	for (void *at = json_object_iter(json_object_get(row, "parameters")); at;
	     at = json_object_iter_next(json_object_get(row, "parameters"), at)) {
		key = json_object_iter_key(at);
		as_vec_push(&b.params,
			    (struct as_bench_param){
				    as_xstrdup(key),
				    as_xstrdup(json_string_value(json_object_iter_value(at)))});
	}
	return b;
}

static void read_set(const char *name, struct as_bench_set *ret)
{
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};
	json_t *root;
	const json_t *row;
	size_t i;

	load(name, "json", &text);
	root = json_loads(as_buf_str(&text), 0, NULL);
	assert_non_null(root);
	json_array_foreach(json_object_get(root, "results"), i, row)
	{
		struct as_bench b = bench_of(row);

		as_vec_push(&ret->benches, b);
	}
	json_decref(root);
}

static void is_as(const char *name, const char *end, const struct as_buf *got)
{
	AS_CLEANUP(as_buf_clear) struct as_buf want = {0};

	load(name, end, &want);
	assert_string_equal(as_buf_str(got), as_buf_str(&want));
}

static void all_exports_are_as_hyperfine_wrote_them(void **state)
{
	static const char *const names[] = {"plain", "scan", "list", "one", "seconds", "shell"};
	static const char *const tables[] = {"md", "adoc", "org"};

	for (size_t i = 0; i < AS_ARRAY_LEN(names); i++) {
		struct as_bench_set set = {0};
		struct as_buf out = {0};

		read_set(names[i], &set);
		assert_true(set.benches.n > 0);
		as_hyperfine_json(&set, &out);
		is_as(names[i], "json", &out);
		as_buf_reset(&out);
		as_hyperfine_csv(&set, &out);
		is_as(names[i], "csv", &out);
		for (int t = 0; t < 3; t++) {
			as_buf_reset(&out);
			as_hyperfine_table(&set, (enum as_hyperfine_table)t, AS_HYPERFINE_AUTO,
					   &out);
			is_as(names[i], tables[t], &out);
		}
		as_buf_clear(&out);
		as_bench_set_clear(&set);
	}
}

static void units_can_be_asked_for(void **state)
{
	struct as_bench_set set = {0};
	struct as_buf out = {0};

	read_set("one", &set);
	as_hyperfine_table(&set, AS_HYPERFINE_MARKDOWN, AS_HYPERFINE_S, &out);
	assert_non_null(strstr(out.p, "| Mean [s] |"));
	assert_non_null(strstr(out.p, "| `sleep 0.01` | 0.013 |"));
	as_buf_reset(&out);
	as_hyperfine_table(&set, AS_HYPERFINE_MARKDOWN, AS_HYPERFINE_US, &out);
	assert_non_null(strstr(out.p, "| Mean [µs] |"));
	assert_non_null(strstr(out.p, "| `sleep 0.01` | 13496.9 |"));
	as_buf_clear(&out);
	as_bench_set_clear(&set);
}

static void nothing_measured_is_an_empty_table(void **state)
{
	struct as_bench_set set = {0};
	struct as_buf out = {0};

	as_hyperfine_json(&set, &out);
	assert_non_null(strstr(out.p, "\"results\": []"));
	as_buf_reset(&out);
	as_hyperfine_csv(&set, &out);
	assert_string_equal(out.p, "command,mean,stddev,median,user,system,min,max\n");
	as_buf_clear(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_exports_are_as_hyperfine_wrote_them),
		cmocka_unit_test(units_can_be_asked_for),
		cmocka_unit_test(nothing_measured_is_an_empty_table),
	};

	return cmocka_run_group_tests_name("hyperfine", tests, NULL, NULL);
}
