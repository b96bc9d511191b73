/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Other tools' results: read as they are meant, damage is an error, one bad folder costs only itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "fixture.h"
#include "results/import.h"

static struct as_error err;

static void put(const char *name, const char *text)
{
	AS_CLEANUP(as_free_autop) char *path = as_xasprintf("%s/%s", fx_dir(), name);
	AS_CLEANUP(as_free_autop) char *dir = as_xstrdup(path);

	*strrchr(dir, '/') = 0;
	assert_int_equal(as_mkdir_parents(dir, &err), AS_OK);
	assert_int_equal(as_write_file_atomic(path, text, strlen(text), &err), AS_OK);
}

static void read_text(const char *text, struct as_bench_set *ret)
{
	if (as_bench_import_text("file", text, strlen(text), ret, &err) < 0)
		fail_msg("%s", err.msg);
}

static void near(double a, double b)
{
	if (!(fabs(a - b) <= 1e-9 * fabs(b)))
		fail_msg("%.12g is not %.12g", a, b);
}

/* Every cut of it is an error or a result of less, never a crash; only whole JSON is taken. */
static void truncate_all(const char *text, bool lines)
{
	for (size_t n = 0; n + 1 < strlen(text); n++) {
		struct as_bench_set s;
		int r = as_bench_import_text("cut", text, n, &s, &err);

		if (r == AS_OK) {
			assert_true(lines);
			as_bench_set_clear(&s);
		} else {
			assert_non_null(strstr(err.msg, "'cut'"));
		}
	}
}

/* ---- hyperfine ---- */

static const char hyperfine[] =
	"{\"results\":[{\"command\":\"sleep {x}\",\"mean\":0.0021,\"stddev\":0.00004,"
	"\"median\":0.0021,\"user\":0.0009,\"system\":0.0001,\"min\":0.002,\"max\":0.0022,"
	"\"times\":[0.002,0.0021,0.0022],\"memory_usage_byte\":[100,300,200],"
	"\"exit_codes\":[0,0,null],\"parameters\":{\"x\":\"1\"}},"
	"{\"command\":\"b\",\"mean\":1,\"stddev\":null,\"median\":1,\"user\":0,\"system\":0,"
	"\"min\":1,\"max\":1}]}";

static void hyperfines_runs_are_samples(void **state)
{
	struct as_bench_set s;
	const struct as_bench *b;

	read_text(hyperfine, &s);
	assert_int_equal(s.benches.n, 2);
	b = &s.benches.v[0];
	assert_int_equal(b->kind, AS_BENCH_COMMAND);
	assert_int_equal(b->samples.n, 3);
	near(b->time.value, 0.0021);
	assert_true(b->time.low < 0.0021 && b->time.high > 0.0021);
	near(b->cpu.value, 0.001);
	near(b->peak_rss, 300);
	assert_int_equal(b->exit_codes.v[2], -1); /* a signal ended it */
	assert_string_equal(b->params.v[0].value, "1");
	near(s.benches.v[1].time.value, 1);
	assert_true(isnan(s.benches.v[1].time.low));
	assert_string_equal(s.tool, "hyperfine");
	as_bench_set_clear(&s);
	truncate_all(hyperfine, false);
}

/* ---- Google Benchmark ---- */

static const char google[] =
	"{\"context\":{\"date\":\"2026-12-01T09:14:32+01:00\",\"host_name\":\"vm\","
	"\"num_cpus\":2,\"library_version\":\"v1.9.1\",\"library_build_type\":\"release\"},"
	"\"benchmarks\":["
	"{\"name\":\"sort/16/repeats:2\",\"run_name\":\"sort/16\",\"run_type\":\"iteration\","
	"\"iterations\":1000,\"real_time\":100,\"cpu_time\":80,\"time_unit\":\"ns\","
	"\"bytes_per_second\":8e8},"
	"{\"name\":\"other\",\"iterations\":10,\"real_time\":2,\"cpu_time\":2,"
	"\"time_unit\":\"ms\",\"items_per_second\":5000,\"bytes_per_second\":5e5},"
	"{\"name\":\"sort/16/repeats:2\",\"run_name\":\"sort/16\",\"run_type\":\"iteration\","
	"\"iterations\":1000,\"real_time\":110,\"cpu_time\":90,\"time_unit\":\"ns\"},"
	"{\"name\":\"sort/16_mean\",\"run_name\":\"sort/16\",\"run_type\":\"aggregate\","
	"\"aggregate_name\":\"mean\",\"real_time\":105,\"cpu_time\":85,\"time_unit\":\"ns\"},"
	"{\"name\":\"sort_BigO\",\"run_name\":\"sort\",\"run_type\":\"aggregate\","
	"\"aggregate_name\":\"BigO\",\"cpu_coefficient\":1,\"real_coefficient\":1,"
	"\"big_o\":\"NlgN\",\"time_unit\":\"ns\"},"
	"{\"name\":\"only_mean\",\"run_name\":\"only\",\"run_type\":\"aggregate\","
	"\"aggregate_name\":\"mean\",\"real_time\":7,\"cpu_time\":7,\"time_unit\":\"us\"},"
	"{\"name\":\"broken\",\"run_name\":\"broken\",\"run_type\":\"iteration\","
	"\"error_occurred\":true,\"error_message\":\"no data\",\"iterations\":1,"
	"\"real_time\":0,\"cpu_time\":0,\"time_unit\":\"ns\"}]}";

static void googles_repetitions_are_samples_of_one_process(void **state)
{
	struct as_bench_set s;

	read_text(google, &s);
	assert_int_equal(s.benches.n, 4);
	assert_string_equal(s.benches.v[0].name, "sort/16");
	assert_int_equal(s.benches.v[0].samples.n, 2);
	near(s.benches.v[0].time.value, 105e-9);
	near(s.benches.v[0].cpu.value, 85e-9);
	assert_int_equal(s.benches.v[0].throughput, AS_THRPT_BYTES);
	assert_int_equal(s.benches.v[0].throughput_n, 64);
	near(s.benches.v[1].time.value, 2e-3);
	assert_int_equal(s.benches.v[1].throughput, AS_THRPT_ELEMENTS_AND_BYTES);
	assert_int_equal(s.benches.v[1].throughput_n, 10);
	assert_int_equal(s.benches.v[1].throughput_n2, 1000);
	assert_string_equal(s.benches.v[2].name, "only");
	near(s.benches.v[2].time.value, 7e-6);
	assert_string_equal(s.benches.v[3].notes.v[0].text, "it failed: no data");
	assert_string_equal(s.machine, "vm, 2 CPUs");
	assert_string_equal(s.tool, "Google Benchmark v1.9.1");
	assert_int_equal(s.time_s, 1796112872);
	as_bench_set_clear(&s);
	truncate_all(google, false);
}

/* ---- gungraun ---- */

#define GUNGRAUN(version_, rest)                                                               \
	"{\"version\":\"" version_ "\",\"kind\":\"LibraryBenchmark\",\"id\":\"short\","        \
	"\"function_name\":\"sort\",\"module_path\":\"suite::group::sort\"," rest "}"

static void counts_of_every_version_are_found(void **state)
{
	static const char *const texts[] = {
		GUNGRAUN("2",
			 "\"callgrind_summary\":{\"callgrind_run\":{\"segments\":[{\"events\":{"
			 "\"Ir\":{\"new\":7,\"old\":1}}}],\"total\":{\"events\":{\"Ir\":{"
			 "\"new\":687,\"old\":700}}}}}"),
		GUNGRAUN("3",
			 "\"tool_summaries\":[{\"tool\":\"Callgrind\",\"summaries\":{\"parts\":"
			 "[{\"metrics_summary\":{\"Callgrind\":{\"Ir\":{\"metrics\":{\"Left\":"
			 "7}}"
			 "}}}],\"total\":{\"summary\":{\"Callgrind\":{\"Ir\":{\"metrics\":{"
			 "\"Both\":[687,700]}}}}}}}]"),
		GUNGRAUN("6", "\"profiles\":[{\"tool\":\"Callgrind\",\"summaries\":{\"total\":{"
			      "\"summary\":{\"Callgrind\":{\"Ir\":{\"metrics\":{\"Both\":[{"
			      "\"Int\":687}"
			      ",{\"Int\":700}]}}}}}}}]"),
		GUNGRAUN("7",
			 "\"profiles\":[{\"tool\":\"Callgrind\",\"data\":{\"parts\":[{"
			 "\"metrics\""
			 ":{\"Ir\":{\"values\":{\"new\":7}}}}],\"total\":{\"metrics\":{\"Ir\":{"
			 "\"values\":{\"new\":687,\"old\":700}}}}}}]"),
	};
	AS_CLEANUP(as_free_autop) char *two = as_xasprintf("%s\n%s\n", texts[2], texts[3]);
	struct as_bench_set s;

	for (size_t i = 0; i < AS_ARRAY_LEN(texts); i++) {
		read_text(texts[i], &s);
		assert_int_equal(s.benches.n, 1);
		assert_string_equal(s.benches.v[0].name, "suite::group::sort short");
		assert_string_equal(s.benches.v[0].unit, "instructions");
		near(s.benches.v[0].time.value, 687);
		as_bench_set_clear(&s);
		truncate_all(texts[i], false);
	}
	read_text(two, &s); /* as --output-format=json prints them */
	assert_int_equal(s.benches.n, 2);
	as_bench_set_clear(&s);
}

/* rustledger/rustledger#1585: a run that counted nothing was a success with 0 */
static void a_summary_without_a_count_is_an_error(void **state)
{
	static const char text[] = GUNGRAUN("6", "\"profiles\":[{\"tool\":\"Memcheck\"}]");
	struct as_bench_set s;

	assert_int_equal(as_bench_import_text("x", text, strlen(text), &s, &err), AS_E_FORMAT);
	assert_non_null(strstr(err.msg, "no count of instructions"));
}

/* ---- what was printed ---- */

static void libtests_lines_are_read(void **state)
{
	static const char text[] =
		"\nrunning 3 tests\n"
		"test base64::encode_3b ... bench:          42 ns/iter (+/- 3) = 71 MB/s\n"
		"test sum ... bench:       1,234.56 ns/iter (+/- 12.30)\n"
		"test works ... ok\n\ntest result: ok. 0 passed; 2 measured; finished in "
		"2.11s\n";
	struct as_bench_set s;

	read_text(text, &s);
	assert_int_equal(s.benches.n, 2);
	assert_string_equal(s.benches.v[0].name, "base64::encode_3b");
	near(s.benches.v[0].time.value, 42e-9);
	assert_int_equal(s.benches.v[0].throughput_n, 3);
	near(s.benches.v[1].time.value, 1234.56e-9);
	assert_true(isnan(s.benches.v[1].time.low));
	assert_string_equal(s.tool, "libtest");
	as_bench_set_clear(&s);
	truncate_all(text, true);
}

static void divans_tree_is_read(void **state)
{
	static const char text[] = "Timer precision: 41 ns\n"
				   "example          fastest       │ slowest       │ median    "
				   "    │ mean          │ "
				   "samples │ iters\n"
				   "├─ sum                         │               │           "
				   "    │               │     "
				   "    │\n"
				   "│  ├─ 10         2.767 ns      │ 3.154 ns      │ 2.788 ns  "
				   "    │ 2.851 ns      │ 100 "
				   "    │ 204800\n"
				   "│  ╰─ 1000       1.2 µs        │ 3.812 µs      │ 2 µs      "
				   "    │ 3.006 µs      │ 100 "
				   "    │ 200\n"
				   "│                833.3 Mitem/s │ 262.3 Mitem/s │ 500 "
				   "Mitem/s   │ 332.6 Mitem/s │     "
				   "    │\n"
				   "├─ ignored       (ignored)     │               │           "
				   "    │               │     "
				   "    │\n"
				   "╰─ inner                       │               │           "
				   "    │               │     "
				   "    │\n"
				   "   ╰─ a│b Vec    57.31 ms      │ 62.51 ms      │ 57.96 ms  "
				   "    │ 58.55 ms      │ 100 "
				   "    │ 100\n"
				   "                 1 GB/s        │ 1 GB/s        │ 2 GB/s    "
				   "    │ 1 GB/s        │     "
				   "    │\n"
				   "                 alloc:        │               │           "
				   "    │               │     "
				   "    │\n"
				   "                   1           │ 1             │ 1.5       "
				   "    │ 1             │     "
				   "    │\n"
				   "                   24 B        │ 24 B          │ 2.4 KB    "
				   "    │ 24 B          │     "
				   "    │\n"
				   "                 dealloc:      │               │           "
				   "    │               │     "
				   "    │\n"
				   "                   7           │ 7             │ 7         "
				   "    │ 7             │     "
				   "    │\n"
				   "                   99 B        │ 99 B          │ 99 B      "
				   "    │ 99 B          │     "
				   "    │\n\n";
	struct as_bench_set s;

	read_text(text, &s);
	assert_int_equal(s.benches.n, 3);
	assert_string_equal(s.tool, "divan");
	assert_string_equal(s.benches.v[0].name, "sum/10");
	near(s.benches.v[0].time.value, 2.788e-9);
	near(s.benches.v[0].mean, 2.851e-9);
	near(s.benches.v[0].min, 2.767e-9);
	near(s.benches.v[0].max, 3.154e-9);
	assert_true(isnan(s.benches.v[0].time.low));
	assert_string_equal(s.benches.v[0].group, "sum");
	assert_string_equal(s.benches.v[0].value, "10");
	assert_string_equal(s.benches.v[1].name, "sum/1000");
	assert_int_equal(s.benches.v[1].throughput, AS_THRPT_ELEMENTS);
	assert_int_equal(s.benches.v[1].throughput_n, 1000);
	assert_string_equal(s.benches.v[2].name, "inner/a│b Vec");
	assert_null(s.benches.v[2].value);
	assert_int_equal(s.benches.v[2].throughput, AS_THRPT_BYTES);
	assert_int_equal(s.benches.v[2].throughput_n, 115920000);
	near(s.benches.v[2].allocs, 1.5);
	near(s.benches.v[2].alloc_bytes, 2400);
	as_bench_set_clear(&s);
	truncate_all(text, true);
}

/* What 0.3.5, 0.3.6, 0.5.1 and 0.8 print of one result: us and two kinds of µs, - and U+2212. */
static void criterions_lines_of_all_versions_are_one_result(void **state)
{
	static const char *const logs[] = {
		"fib 20                  time:   [26.029 us 26.251 us 26.505 us]\n"
		"                        change: [-38.292% -37.342% -36.524%] (p = 0.00 < "
		"0.05)\n"
		"                        Performance has improved.\n",
		"fib 20                  time:   [26.029 \302\265s 26.251 \302\265s 26.505 "
		"\302\265s]\n"
		"                        change: [-38.292% -37.342% -36.524%] (p = 0.00 < "
		"0.05)\n",
		"\033[32mfib 20                  \033[0mtime:   [26.029 \302\265s "
		"\033[1m26.251 "
		"\302\265s\033[0m 26.505 \302\265s]\r\n",
		"fib 20                  time:   [26.029 \316\274s 26.251 \316\274s 26.505 "
		"\316\274s]\n"
		"                        change: [\342\210\22238.292% \342\210\22237.342% "
		"\342\210\22236.524%] (p = 0.00 < 0.05)\n",
	};
	struct as_bench_set s;

	for (size_t i = 0; i < AS_ARRAY_LEN(logs); i++) {
		read_text(logs[i], &s);
		assert_int_equal(s.benches.n, 1);
		assert_string_equal(s.benches.v[0].name, "fib 20");
		near(s.benches.v[0].time.low, 26.029e-6);
		near(s.benches.v[0].time.value, 26.251e-6);
		near(s.benches.v[0].time.high, 26.505e-6);
		as_bench_set_clear(&s);
		truncate_all(logs[i], true);
	}
}

static void long_names_and_rates_are_read(void **state)
{
	static const char text[] =
		"Benchmarking x: Warming up for 3.0000 s\n"
		"encode/a long name that does not fit/1048576\n"
		"                        time:   [1.0100 ms 1.0200 ms 1.0300 ms]\n"
		"                        thrpt:  [970.87 MiB/s 980.39 MiB/s 990.10 "
		"MiB/s]\n"
		"tiny  time:   [812.10 ps 815.00 ps 818.00 ps]\n"
		"      thrpt:  [1.2225 Gelem/s 1.2270 Gelem/s 1.2314 Gelem/s]\n";
	struct as_bench_set s;

	read_text(text, &s);
	assert_int_equal(s.benches.n, 2);
	assert_string_equal(s.benches.v[0].name,
			    "encode/a long name that does not fit/1048576");
	assert_int_equal(s.benches.v[0].throughput, AS_THRPT_BYTES);
	assert_true(s.benches.v[0].throughput_n > 1048000 &&
		    s.benches.v[0].throughput_n < 1049000);
	near(s.benches.v[1].time.value, 815e-12);
	assert_int_equal(s.benches.v[1].throughput, AS_THRPT_ELEMENTS);
	assert_int_equal(s.benches.v[1].throughput_n, 1);
	as_bench_set_clear(&s);
}

static void what_is_nothing_of_all_this_is_told(void **state)
{
	static const char *const texts[] = {"",
					    " \n",
					    "hello\n",
					    "{\"a\":1}",
					    "[1]",
					    "{\"results\":3}",
					    "{\"context\":{},\"benchmarks\":{}}",
					    "{\"results\":[{\"command\":\"x\"}]}",
					    "{\"context\":{},\"benchmarks\":[{\"name\":\"x\","
					    "\"real_time\":1,\"time_unit\":\"h\"}]}",
					    "\177ELF\2\1\1"};

	for (size_t i = 0; i < AS_ARRAY_LEN(texts); i++) {
		struct as_bench_set s;

		assert_int_equal(
			as_bench_import_text("odd", texts[i], strlen(texts[i]), &s, &err),
			AS_E_FORMAT);
		assert_non_null(strstr(err.msg, "'odd'"));
		assert_int_equal(s.benches.n, 0);
	}
}

/* ---- criterion's folders ---- */

#define INTERVAL(x)                                                                            \
	"{\"confidence_interval\":{\"confidence_level\":0.95,\"lower_bound\":" x               \
	"1,\"upper_bound\":" x "3},\"point_estimate\":" x "2,\"standard_error\":1}"

static const char estimates_now[] = "{\"mean\":" INTERVAL("10") ",\"median\":" INTERVAL(
	"9") ",\"slope\":"
	     "null,\"std_dev\":" INTERVAL("1") "}";
static const char estimates_once[] = "{\"Mean\":" INTERVAL("10") ",\"Median\":" INTERVAL(
	"9") ",\"Slope\":" INTERVAL("8") ",\"StdDev\":" INTERVAL("1") "}";

static void both_shapes_are_read_and_broken_folders_left_out(void **state)
{
	struct as_bench_set s;
	const struct as_bench *now, *once;

	put("group/now/10/new/estimates.json", estimates_now);
	put("group/now/10/new/benchmark.json",
	    "{\"group_id\":\"group\",\"function_id\":\"now\",\"value_str\":\"10\","
	    "\"throughput\":{"
	    "\"ElementsAndBytes\":{\"elements\":10,\"bytes\":4096}},\"full_id\":\"group/now/"
	    "10\","
	    "\"directory_name\":\"group/now/10\",\"title\":\"group/now/10\"}");
	put("group/now/10/new/sample.json", "{\"sampling_mode\":\"Linear\",\"iters\":[1.0,2.0,"
					    "0.0],\"times\":[100.0,220.0,1.0]}");
	put("group/now/10/change/estimates.json", estimates_now);
	put("group/now/10/report/index.html", "");
	put("group/once/new/estimates.json", estimates_once);
	put("group/once/new/sample.json", "[[10.0,20.0],[900.0,1700.0]]");
	put("group/broken/new/estimates.json", "{\"mean\":{\"point_est");
	put("group/empty/new/estimates.json", "");
	put("group/odd/new/estimates.json", "{\"Mean\":3}");
	put("group/odd2/new/estimates.json", estimates_now);
	put("group/odd2/new/benchmark.json", "{");
	put("report/new/estimates.json", estimates_now);
	assert_int_equal(as_bench_import(fx_dir(), NULL, &s, &err), AS_OK);
	assert_int_equal(s.benches.n, 2);
	now = as_bench_find(&s, "group/now/10", NULL);
	once = as_bench_find(&s, "group/once", NULL);
	near(now->time.value, 102e-9);
	near(now->time.low, 101e-9);
	near(now->time.high, 103e-9);
	assert_int_equal(now->throughput, AS_THRPT_ELEMENTS_AND_BYTES);
	assert_int_equal(now->throughput_n2, 4096);
	assert_string_equal(now->value, "10");
	assert_int_equal(now->batch_times.n, 2);
	near(now->batch_times.v[1], 110e-9);
	near(once->time.value, 82e-9); /* the slope, as it printed */
	near(once->mean, 102e-9);
	near(once->batch_times.v[1], 85e-9);
	assert_int_equal(s.notes.n, 5); /* four left out, and what one process cannot tell */
	as_bench_set_clear(&s);
}

static void a_baseline_is_chosen_and_a_wrong_one_named(void **state)
{
	struct as_bench_set s;

	put("f/main/estimates.json", estimates_now);
	put("f/base/estimates.json", estimates_once);
	assert_int_equal(as_bench_import(fx_dir(), "base", &s, &err), AS_OK);
	near(s.benches.v[0].time.value, 82e-9);
	as_bench_set_clear(&s);
	assert_int_equal(as_bench_import(fx_dir(), "nightly", &s, &err), AS_E_NOTFOUND);
	assert_non_null(strstr(err.msg, "no baseline 'nightly'; there are 'base', 'main'"));
	assert_int_equal(as_bench_import(fx_dir(), NULL, &s, &err), AS_E_NOTFOUND);
}

static void the_only_baseline_needs_no_name(void **state)
{
	struct as_bench_set s;

	put("f/main/estimates.json", estimates_now);
	assert_int_equal(as_bench_import(fx_dir(), NULL, &s, &err), AS_OK);
	assert_int_equal(s.benches.n, 1);
	as_bench_set_clear(&s);
}

static void a_folder_of_summaries_is_read_and_an_empty_one_told(void **state)
{
	struct as_bench_set s;

	assert_int_equal(as_bench_import(fx_dir(), NULL, &s, &err), AS_E_NOTFOUND);
	assert_non_null(strstr(err.msg, "holds no results"));
	put("pkg/a/summary.json",
	    GUNGRAUN("7",
		     "\"profiles\":[{\"tool\":\"Callgrind\",\"data\":{\"total\":{\"metrics\":{"
		     "\"Ir\":{\"values\":{\"new\":687}}}}}}]"));
	put("pkg/b/summary.json", "{}");
	assert_int_equal(as_bench_import(fx_dir(), NULL, &s, &err), AS_OK);
	assert_int_equal(s.benches.n, 1);
	assert_string_equal(s.notes.v[0].kind, "skipped");
	as_bench_set_clear(&s);
	assert_int_equal(as_bench_import("/no/such/place", NULL, &s, &err), AS_E_NOTFOUND);
}

/* What criterion 0.2 wrote and ships in the book of its own Debian package. */
static void criterions_own_example_is_read(void **state)
{
	static const char home[] =
		"/usr/share/cargo/registry/criterion-0.3.6/book/src/user_guide/"
		"html_report";
	struct as_bench_set s;
	const struct as_bench *b;

	if (access(home, R_OK) < 0)
		skip();
	assert_int_equal(as_bench_import(home, NULL, &s, &err), AS_OK);
	b = as_bench_find(&s, "Fibonacci2/Iterative/21", NULL);
	assert_non_null(b);
	assert_int_equal(b->batch_times.n, 100);
	near(b->mean, 5.174134237245827e-9);
	assert_true(b->time.low < b->time.value && b->time.value < b->time.high);
	assert_true(s.benches.n >= 4);
	as_bench_set_clear(&s);
	assert_int_equal(as_bench_import(home, "base", &s, &err), AS_OK);
	as_bench_set_clear(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hyperfines_runs_are_samples),
		cmocka_unit_test(googles_repetitions_are_samples_of_one_process),
		cmocka_unit_test(counts_of_every_version_are_found),
		cmocka_unit_test(a_summary_without_a_count_is_an_error),
		cmocka_unit_test(libtests_lines_are_read),
		cmocka_unit_test(divans_tree_is_read),
		cmocka_unit_test(criterions_lines_of_all_versions_are_one_result),
		cmocka_unit_test(long_names_and_rates_are_read),
		cmocka_unit_test(what_is_nothing_of_all_this_is_told),
		cmocka_unit_test_setup_teardown(
			both_shapes_are_read_and_broken_folders_left_out, fx_empty, NULL),
		cmocka_unit_test_setup_teardown(a_baseline_is_chosen_and_a_wrong_one_named,
						fx_empty, NULL),
		cmocka_unit_test_setup_teardown(the_only_baseline_needs_no_name, fx_empty,
						NULL),
		cmocka_unit_test_setup_teardown(
			a_folder_of_summaries_is_read_and_an_empty_one_told, fx_empty, NULL),
		cmocka_unit_test(criterions_own_example_is_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
