/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What reports say around their figures: places, next steps, what would tell rows apart. */
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "view/report/next.h"
#include "view/report/report.h"

static const char *args[] = {"./target/release/app"};
static struct as_m_info info[] = {{"cwd", "/home/u/app"}};
static struct as_m_thread threads[] = {{.tid = 1, .name = "main"}, {.tid = 2, .name = "w"}};
static struct as_m_sample samples[200];

static struct as_model model(void)
{
	struct as_model m = {0};

	m.args.v = args;
	m.args.n = 1;
	m.info.v = info;
	m.info.n = 1;
	m.threads.v = threads;
	m.threads.n = 2;
	m.samples.v = samples;
	m.samples.n = AS_ARRAY_LEN(samples);
	for (size_t i = 0; i < m.samples.n; i++)
		samples[i] = (struct as_m_sample){.weight = 1};
	return m;
}

static struct as_share share(double percent)
{
	return (struct as_share){.value = percent / 100,
				 .low = percent / 100 - 0.01,
				 .high = percent / 100 + 0.01,
				 .samples = (uint64_t)percent};
}

static struct as_row row(const char *name, const char *crate, const char *file, uint32_t line,
			 const char *module)
{
	return (struct as_row){.name = name,
			       .full_name = name,
			       .crate = crate,
			       .file = file,
			       .line = line,
			       .module = module};
}

static void the_last_column_names_the_place_that_helps(void **state)
{
	static const struct {
		struct as_row row;
		const char *text;
	} c[] = {
		{{.crate = "app", .file = "/home/u/app/src/a.rs", .line = 7, .module = "app"},
		 "src/a.rs:7"},
		{{.crate = "app", .file = "src/a.rs", .line = 7, .module = "app"},
		 "src/a.rs:7"},
		{{.crate = "app",
		  .file = "/elsewhere/app/src/b/a.rs",
		  .line = 7,
		  .module = "app"},
		 "src/b/a.rs:7"},
		{{.crate = "memchr",
		  .file = "/home/u/.cargo/registry/src/i/memchr-2/src/m.rs",
		  .line = 1,
		  .module = "app"},
		 "memchr"},
		{{.crate = "std",
		  .file = "/rustc/0/library/std/src/io.rs",
		  .line = 1,
		  .module = "app"},
		 "std"},
		{{.crate = "std", .file = "library/std/src/io.rs", .line = 1, .module = "app"},
		 "std"},
		{{.file = "/build/other/place/main.c", .line = 3, .module = "app"},
		 "place/main.c:3"},
		{{.file = "./csu/../csu/libc-start.c", .line = 3, .module = "libc.so.6"},
		 "libc"},
		{{.module = "/usr/lib/libm.so.6"}, "libm"},
		{{.module = "app"}, "app"},
		{{.name = "x"}, ""},
		{{.crate = "dep",
		  .file = "/home/u/app/vendor/dep/src/lib.rs",
		  .line = 1,
		  .module = "app"},
		 "dep"},
	};
	struct as_model m = model();
	struct as_buf out = {0};

	for (size_t i = 0; i < AS_ARRAY_LEN(c); i++) {
		as_buf_reset(&out);
		as_style_where(&out, &m, &c[i].row);
		assert_string_equal(as_buf_str(&out), c[i].text);
	}
	as_buf_clear(&out);
}

static void paths_lose_what_they_share(void **state)
{
	static const char *const c[][2] = {
		{"/home/u/app/src/a.rs", "src/a.rs"},
		{"/home/u/application/src/a.rs", "/home/u/application/src/a.rs"},
		{"/root/.cargo/registry/src/index.crates.io-1/serde-1.0/src/lib.rs",
		 "serde-1.0/src/lib.rs"},
		{"/rustc/abc/library/core/src/iter.rs", "library/core/src/iter.rs"},
		{"src/a.rs", "src/a.rs"},
		{"/usr/library/x.c", "/usr/library/x.c"},
	};
	struct as_model m = model();
	struct as_buf out = {0};

	for (size_t i = 0; i < AS_ARRAY_LEN(c); i++) {
		as_buf_reset(&out);
		as_style_path(&out, &m, c[i][0]);
		assert_string_equal(as_buf_str(&out), c[i][1]);
	}
	as_buf_clear(&out);
}

static void the_time_that_tells_rows_apart_grows_with_the_square(void **state)
{
	struct as_row a = {.self = share(10)}, b = {.self = share(9)};

	/* both ±1: 9 and 10 need twice the data of now for a difference of 1 ±1 */
	assert_true(fabs(as_report_more_seconds(&a, &b, 10) - 10) < 0.01);
	b.self = share(9.5);
	assert_true(fabs(as_report_more_seconds(&a, &b, 10) - 70) < 0.1);
	b.self = share(10); /* equal: no recording would tell */
	assert_true(as_report_more_seconds(&a, &b, 10) == 0);
	b.self = share(2); /* told apart already */
	assert_true(as_report_more_seconds(&a, &b, 10) == 0);
	a.self.high = a.self.low = NAN;
	assert_true(as_report_more_seconds(&a, &b, 10) == 0);
}

static void next_steps(struct as_row *rows, size_t n, const char *file, struct as_buf *out)
{
	struct as_model m = model();
	struct as_profile flat = {.model = &m};
	struct as_query asked = {0};
	struct as_style style = {.width = 120};
	struct as_next_request q = {.model = &m, .flat = &flat, .file = file, .asked = &asked};

	flat.rows.v = rows;
	flat.rows.n = n;
	as_buf_reset(out);
	as_next_text(&q, &style, out);
}

static size_t count_lines(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += *s == '\n';
	return n;
}

static void steps_come_from_the_data_and_are_at_most_three(void **state)
{
	struct as_row rows[] = {row("memchr::find", "memchr", "", 0, "app"),
				row("app::tokenize", "app", "src/t.rs", 8, "app"),
				row("malloc", "", "", 0, "libc.so.6"),
				row("_int_free", "", "", 0, "libc.so.6"),
				row("app::main", "app", "src/m.rs", 1, "app"),
				row("app::Index<K>::add", "app", "src/i.rs", 1, "app")};
	static const double self[] = {23, 20, 19, 11, 1, 5}, total[] = {23, 50, 30, 11, 99, 50};
	struct as_buf out = {0};

	for (size_t i = 0; i < AS_ARRAY_LEN(rows); i++) {
		rows[i].self = share(self[i]);
		rows[i].total = share(total[i]);
	}
	next_steps(rows, AS_ARRAY_LEN(rows), NULL, &out);
	assert_int_equal(count_lines(out.p), 3);
	assert_non_null(strstr(out.p, "next   assay report --callers malloc "));
	assert_non_null(strstr(out.p, "who allocates: 30.0 %"));
	assert_non_null(strstr(out.p, "assay report --callers memchr::find"));
	assert_non_null(strstr(out.p, "assay view"));

	/* without the allocator and the library: the lines, and what the dispatcher calls */
	rows[0].self = rows[2].self = rows[3].self = share(1);
	next_steps(rows, AS_ARRAY_LEN(rows), NULL, &out);
	assert_null(strstr(out.p, "malloc"));
	next_steps(&rows[1], 1, NULL, &out);
	assert_non_null(strstr(out.p, "assay annotate app::tokenize"));
	next_steps(&rows[5], 1, "my file.assay", &out);
	assert_non_null(
		strstr(out.p, "assay report --callees 'app::Index<K>::add' 'my file.assay'"));
	next_steps(&rows[4], 1, NULL, &out); /* main hands out everything: no news */
	assert_null(strstr(out.p, "--callees"));
	as_buf_clear(&out);
}

static void where_nothing_stands_out_larger_units_are_offered(void **state)
{
	struct as_row rows[] = {row("app::a", "app", "src/a.rs", 8, "app"),
				row("b", "", "", 0, "libb.so")};
	struct as_buf out = {0};

	rows[0].self = rows[0].total = share(3);
	rows[1].self = rows[1].total = share(2);
	next_steps(rows, 2, NULL, &out);
	assert_non_null(strstr(out.p, "assay report --by crate"));
	next_steps(&rows[1], 1, NULL, &out);
	assert_non_null(strstr(out.p, "assay report --by module"));
	rows[1].self = share(6);
	next_steps(&rows[1], 1, NULL, &out);
	assert_null(strstr(out.p, "--by module"));
	as_buf_clear(&out);
}

static void names_that_a_command_cannot_carry_are_not_offered(void **state)
{
	struct as_row rows[] = {row("a\033[31mb", "x", "", 0, "app"),
				row("\xff\xfe", "x", "", 0, "app"), row("", "x", "", 0, "app"),
				row("it's `id` $(x)", "x", "", 0, "app")};
	struct as_buf out = {0};

	for (size_t i = 0; i < AS_ARRAY_LEN(rows); i++)
		rows[i].self = rows[i].total = share(20);
	next_steps(rows, 3, NULL, &out);
	assert_int_equal(count_lines(out.p), 1);
	next_steps(rows, 4, NULL, &out);
	assert_non_null(strstr(out.p, "--callers 'it'\\''s `id` $(x)'"));
	as_buf_clear(&out);
}

static void threads_and_the_kernel_are_worth_a_step(void **state)
{
	struct as_buf out = {0};
	struct as_model m = model();
	struct as_profile flat = {.model = &m};
	struct as_query asked = {0};
	struct as_style style = {.width = 120};
	struct as_next_request q = {.model = &m, .flat = &flat, .asked = &asked};

	for (size_t i = 0; i < m.samples.n; i++) {
		samples[i].thread = i % 2;
		samples[i].end = i % 4 == 0 ? AS_SAMPLE_KERNEL : 0;
	}
	as_next_text(&q, &style, &out);
	assert_non_null(
		strstr(out.p, "assay report --no-kernel   who asks the kernel: 25.0 %"));
	assert_non_null(strstr(out.p, "assay report --by thread   2 threads carry the load"));
	asked.by = AS_BY_THREAD; /* on the screen already */
	asked.no_kernel = true;
	as_buf_reset(&out);
	as_next_text(&q, &style, &out);
	assert_int_equal(count_lines(out.p), 1);
	m.samples.n = 0;
	as_buf_reset(&out);
	as_next_text(&q, &style, &out);
	assert_string_equal(as_buf_str(&out), "");
	as_buf_clear(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_column_names_the_place_that_helps),
		cmocka_unit_test(paths_lose_what_they_share),
		cmocka_unit_test(the_time_that_tells_rows_apart_grows_with_the_square),
		cmocka_unit_test(steps_come_from_the_data_and_are_at_most_three),
		cmocka_unit_test(where_nothing_stands_out_larger_units_are_offered),
		cmocka_unit_test(names_that_a_command_cannot_carry_are_not_offered),
		cmocka_unit_test(threads_and_the_kernel_are_worth_a_step),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
