/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Options by rows: values, ranges, operands, suggestions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "cli/options.h"

struct args {
	bool quiet, verbose;
	const char *output;
	int64_t top;
	double rate;
	uint64_t duration_ns, size, span[2];
	int format;
	struct as_texts names, scans;
	const char *shell, *ignore;
};
struct common {
	bool help;
};

#define AT(field) .at = offsetof(struct args, field)
static const struct as_option table[] = {
	{.name = "quiet", .letter = 'q', .type = AS_OPT_FLAG, AT(quiet)},
	{.name = "verbose", .letter = 'v', .type = AS_OPT_FLAG, AT(verbose)},
	{.name = "output", .letter = 'o', .type = AS_OPT_TEXT, AT(output), .arg = "FILE"},
	{.name = "top",
	 .letter = 'n',
	 .type = AS_OPT_INT,
	 AT(top),
	 .min = -3,
	 .max = 100,
	 .def = "20"},
	{.name = "rate",
	 .letter = 'F',
	 .type = AS_OPT_NUM,
	 AT(rate),
	 .min = 1,
	 .max = 20000,
	 .def = "997"},
	{.name = "duration", .type = AS_OPT_DURATION, AT(duration_ns)},
	{.name = "size", .type = AS_OPT_SIZE, AT(size)},
	{.name = "time", .type = AS_OPT_SPAN, AT(span)},
	{.name = "format",
	 .type = AS_OPT_CHOICE,
	 AT(format),
	 .choices = "text|json|csv",
	 .def = "text"},
	{.name = "name", .letter = 'N', .type = AS_OPT_TEXTS, AT(names), .arg = "NAME"},
	{.name = "scan",
	 .letter = 'P',
	 .type = AS_OPT_TEXTS,
	 AT(scans),
	 .words = 3,
	 .arg = "VAR MIN MAX"},
	{.name = "ignore",
	 .letter = 'i',
	 .type = AS_OPT_TEXT,
	 AT(ignore),
	 .bare = "all",
	 .bare_letter = true},
	{.name = "shell", .letter = 'S', .type = AS_OPT_TEXT, AT(shell), .bare = "sh"},
	{0},
};
static const struct as_option common_table[] = {
	{.name = "help",
	 .letter = 'h',
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct common, help)},
	{0},
};

struct run {
	struct args a;
	struct common c;
	char *argv[16];
	int n, literal, r;
	struct as_error err;
};

/* Parses the words of one line, separated by single blanks. */
static void parse(struct run *run, const char *line, bool stop)
{
	static char words[512];
	struct as_options_request q = {.table = table,
				       .common = common_table,
				       .args = &run->a,
				       .common_args = &run->c,
				       .stop_at_operand = stop,
				       .ret_literal = &run->literal};
	int argc = 0;

	as_options_clear(table, &run->a);
	*run = (struct run){0};
	assert_true(strlen(line) < sizeof words);
	memcpy(words, line, strlen(line) + 1);
	for (char *p = words; *p;) {
		size_t n = strcspn(p, " ");

		run->argv[argc++] = p;
		p += n;
		if (*p)
			*p++ = 0;
	}
	run->r = as_options_parse(&q, argc, run->argv, &run->n, &run->err);
}

static void values_arrive_in_every_spelling(void **state)
{
	static const char *const lines[] = {
		"-o a -n 5 -F 99.5", "-oa -n5 -F99.5", "--output a --top 5 --rate 99.5",
		"--output=a --top=5 --rate=99.5", "-o=a -n=5 -F=99.5"};

	for (size_t i = 0; i < AS_ARRAY_LEN(lines); i++) {
		struct run run = {0};

		parse(&run, lines[i], false);
		assert_int_equal(run.r, 0);
		assert_string_equal(run.a.output, "a");
		assert_int_equal(run.a.top, 5);
		assert_true(run.a.rate == 99.5);
		assert_int_equal(run.n, 0);
	}
}

static void defaults_stand_where_nothing_is_given(void **state)
{
	struct run run = {0};

	parse(&run, "x", false);
	assert_int_equal(run.a.top, 20);
	assert_true(run.a.rate == 997);
	assert_int_equal(run.a.format, 0);
	assert_null(run.a.output);
	assert_false(run.a.quiet);
}

static void flags_stand_in_a_row_with_a_value_at_the_end(void **state)
{
	struct run run = {0};

	parse(&run, "-qvo file -h", false);
	assert_int_equal(run.r, 0);
	assert_true(run.a.quiet && run.a.verbose && run.c.help);
	assert_string_equal(run.a.output, "file");
}

static void operands_may_stand_between_options(void **state)
{
	struct run run = {0};

	parse(&run, "a -q b - --top 3 c", false);
	assert_int_equal(run.r, 0);
	assert_int_equal(run.n, 4);
	assert_string_equal(run.argv[0], "a");
	assert_string_equal(run.argv[1], "b");
	assert_string_equal(run.argv[2], "-");
	assert_string_equal(run.argv[3], "c");
	assert_int_equal(run.a.top, 3);
}

static void a_program_keeps_its_own_options(void **state)
{
	struct run run = {0};

	parse(&run, "-q ./app -o x --unknown", true);
	assert_int_equal(run.r, 0);
	assert_int_equal(run.n, 4);
	assert_string_equal(run.argv[1], "-o");
	assert_null(run.a.output);
	parse(&run, "-q -- -app --top", true);
	assert_int_equal(run.r, 0);
	assert_int_equal(run.n, 2);
	assert_string_equal(run.argv[0], "-app");
	parse(&run, "app -- x", true);
	assert_int_equal(run.n, 3);
	assert_string_equal(run.argv[1], "--");
}

static void options_may_be_given_again_and_again(void **state)
{
	struct run run = {0};

	parse(&run, "--name a x -N b --name=c -Nd", false);
	assert_int_equal(run.r, 0);
	assert_int_equal(run.a.names.n, 4);
	assert_string_equal(run.a.names.v[0], "a");
	assert_string_equal(run.a.names.v[1], "b");
	assert_string_equal(run.a.names.v[2], "c");
	assert_string_equal(run.a.names.v[3], "d");
	assert_int_equal(run.n, 1);
	parse(&run, "-P n 1 8 x --scan m -2 3", false);
	assert_int_equal(run.r, 0);
	assert_int_equal(run.a.scans.n, 6);
	assert_string_equal(run.a.scans.v[2], "8");
	assert_string_equal(run.a.scans.v[4], "-2");
	parse(&run, "x -P n 1", false);
	assert_int_equal(run.r, AS_E_USAGE);
	assert_string_equal(run.err.msg, "--scan needs VAR MIN MAX");
	as_options_clear(table, &run.a);
	assert_int_equal(run.a.scans.n, 0);
}

static void a_value_may_be_left_out_where_there_is_one_for_that(void **state)
{
	struct run run = {0};

	parse(&run, "--shell zsh", false);
	assert_string_equal(run.a.shell, "sh");
	assert_int_equal(run.n, 1);
	parse(&run, "--shell=zsh x", false);
	assert_string_equal(run.a.shell, "zsh");
	parse(&run, "-S zsh x", false);
	assert_string_equal(run.a.shell, "zsh");
	assert_int_equal(run.n, 1);
}

static void a_letter_may_do_without_a_value_too(void **state)
{
	struct run run = {0};

	parse(&run, "-iq x", false);
	assert_int_equal(run.r, 0);
	assert_string_equal(run.a.ignore, "all");
	assert_true(run.a.quiet);
	assert_int_equal(run.n, 1);
	parse(&run, "-i=1,2 x", false);
	assert_string_equal(run.a.ignore, "1,2");
	parse(&run, "--ignore x", false);
	assert_string_equal(run.a.ignore, "all");
	assert_int_equal(run.n, 1);
}

static void what_stands_behind_two_dashes_is_told(void **state)
{
	struct run run = {0};

	parse(&run, "a -q -- b -q", false);
	assert_int_equal(run.n, 3);
	assert_int_equal(run.literal, 1);
	parse(&run, "a b", false);
	assert_int_equal(run.literal, 2);
	parse(&run, "-- --", false);
	assert_int_equal(run.n, 1);
	assert_int_equal(run.literal, 0);
}

static void negative_numbers_are_values(void **state)
{
	struct run run = {0};

	parse(&run, "--top -3", false);
	assert_int_equal(run.r, 0);
	assert_int_equal(run.a.top, -3);
	parse(&run, "--top -4", false);
	assert_int_equal(run.r, AS_E_USAGE);
	assert_string_equal(run.err.msg, "--top takes -3 to 100, not '-4'");
}

static void units_are_understood(void **state)
{
	struct run run = {0};

	parse(&run, "--duration 1.5m --size 64K --time 2s..500000ms", false);
	assert_int_equal(run.r, 0);
	assert_true(run.a.duration_ns == 90000000000);
	assert_int_equal(run.a.size, 65536);
	assert_true(run.a.span[0] == 2000000000 && run.a.span[1] == 500000000000);
	parse(&run, "--time ..1", false);
	assert_true(run.a.span[0] == 0 && run.a.span[1] == 1000000000);
	parse(&run, "--time 3..", false);
	assert_true(run.a.span[0] == 3000000000 && run.a.span[1] == UINT64_MAX);
}

static void wrong_values_are_refused_by_name(void **state)
{
	static const char *const lines[] = {"--top x",
					    "--top 1e3",
					    "--top",
					    "--rate nan",
					    "--rate 0",
					    "--rate 20001",
					    "--duration 5x",
					    "--duration -1",
					    "--size 1Q",
					    "--time 5",
					    "--time 5..2",
					    "--time 2..2",
					    "--time x..y",
					    "--format xml",
					    "--format tex",
					    "--format=",
					    "--quiet=1",
					    "--",
					    "-o",
					    "-z",
					    "--nope"};

	for (size_t i = 0; i < AS_ARRAY_LEN(lines); i++) {
		struct run run = {0};

		parse(&run, lines[i], false);
		if (strcmp(lines[i], "--") == 0) {
			assert_int_equal(run.r, 0);
			continue;
		}
		assert_int_equal(run.r, AS_E_USAGE);
		assert_true(run.err.msg[0] == '-' || strstr(run.err.msg, "unknown option"));
	}
}

static void the_nearest_option_is_suggested(void **state)
{
	struct run run = {0};

	parse(&run, "--ouptut x", false);
	assert_string_equal(run.err.msg, "unknown option '--ouptut'; did you mean --output?");
	parse(&run, "--hepl", false);
	assert_string_equal(run.err.msg, "unknown option '--hepl'; did you mean --help?");
	parse(&run, "--dura 3", false);
	assert_string_equal(run.err.msg, "unknown option '--dura'; did you mean --duration?");
	parse(&run, "--xyzzy=3", false);
	assert_string_equal(run.err.msg, "unknown option '--xyzzy'");
}

static void nearest_words_are_near(void **state)
{
	static const char *const words[] = {"record", "report", "flame", "export"};

	assert_string_equal(as_nearest("recrod", words, 4), "record");
	assert_string_equal(as_nearest("flaem", words, 4), "flame");
	assert_string_equal(as_nearest("rep", words, 4), "report");
	assert_string_equal(as_nearest("exprot", words, 4), "export");
	assert_null(as_nearest("heap", words, 4));
	assert_null(as_nearest("x", words, 4));
	assert_null(as_nearest("", words, 4));

	char longword[300];

	memset(longword, 'a', sizeof longword - 1);
	longword[sizeof longword - 1] = 0;
	assert_null(as_nearest(longword, words, 4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_arrive_in_every_spelling),
		cmocka_unit_test(defaults_stand_where_nothing_is_given),
		cmocka_unit_test(flags_stand_in_a_row_with_a_value_at_the_end),
		cmocka_unit_test(operands_may_stand_between_options),
		cmocka_unit_test(a_program_keeps_its_own_options),
		cmocka_unit_test(options_may_be_given_again_and_again),
		cmocka_unit_test(a_value_may_be_left_out_where_there_is_one_for_that),
		cmocka_unit_test(a_letter_may_do_without_a_value_too),
		cmocka_unit_test(what_stands_behind_two_dashes_is_told),
		cmocka_unit_test(negative_numbers_are_values),
		cmocka_unit_test(units_are_understood),
		cmocka_unit_test(wrong_values_are_refused_by_name),
		cmocka_unit_test(the_nearest_option_is_suggested),
		cmocka_unit_test(nearest_words_are_near),
	};

	return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
