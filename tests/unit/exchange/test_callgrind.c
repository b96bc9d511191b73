/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Callgrind files, added up as a reader does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include "exchange/exchange.h"
#include "hand_model.h"

static struct as_buf text;

static int clear(void **state)
{
	as_buf_clear(&text);
	return 0;
}

static const char *export(const struct as_model *m, const struct as_query *q)
{
	struct as_export_options o = {.query = q};
	struct as_sink sink;

	as_buf_reset(&text);
	as_sink_init_buf(&sink, &text);
	assert_int_equal(as_exporter_find("callgrind")->write(m, &o, &sink, NULL), 0);
	assert_int_equal(as_sink_finish(&sink, NULL), 0);
	as_sink_clear(&sink);
	return text.p;
}

struct reader {
	unsigned fn;   /* id */
	unsigned call; /* id of the callee whose cost the next line holds; 0: none */
	char names[64][64];
	unsigned long self[64], calls[64];
};

static void read_line(struct reader *r, const char *line)
{
	unsigned id, number;
	unsigned long samples, ns, calls;
	char name[64];
	int n = sscanf(line, "cfn=(%u) %63[^\n]", &id, name);

	if (n < 1 && (n = sscanf(line, "fn=(%u) %63[^\n]", &id, name)) >= 1)
		r->fn = id;
	else if (n >= 1)
		r->call = id;
	if (n >= 1) {
		assert_true(id < 64);
		if (n == 2) /* the name stands at the first mention, and only there */
			assert_int_equal(r->names[id][0], 0);
		if (n == 2)
			snprintf(r->names[id], sizeof r->names[id], "%s", name);
		assert_int_not_equal(r->names[id][0], 0);
		return;
	}
	if (sscanf(line, "calls=%lu %u", &calls, &number) == 2)
		return;
	if (sscanf(line, "%u %lu %lu", &number, &samples, &ns) == 3) {
		assert_int_equal(ns, samples * HM_WEIGHT_NS);
		if (r->call)
			r->calls[r->call] += samples;
		else
			r->self[r->fn] += samples;
		r->call = 0;
	}
}

static struct reader read_all(const char *p)
{
	struct reader r = {0};

	for (const char *nl; (nl = strchr(p, '\n')); p = nl + 1) {
		char line[256];

		snprintf(line, sizeof line, "%.*s", (int)(nl - p), p);
		read_line(&r, line);
	}
	return r;
}

static void expect(const struct reader *r, const char *name, unsigned long self,
		   unsigned long total)
{
	for (unsigned i = 0; i < 64; i++) {
		if (strcmp(r->names[i], name) == 0) {
			assert_int_equal(r->self[i], self);
			assert_int_equal(r->calls[i], total);
			return;
		}
	}
	fail_msg("no function %s", name);
}

static void recursion_counts_once(void **state)
{
	struct as_model m;
	uint32_t a, b, c, frames[3], s = AS_NONE;
	struct reader r;

	hm_init(&m);
	a = hm_function(&m, "a", HM_APP);
	b = hm_function(&m, "b", HM_APP);
	c = hm_function(&m, "c", HM_APP);
	frames[0] = hm_frame(&m, HM_APP, &a, 1);
	frames[1] = hm_frame(&m, HM_APP, &b, 1);
	frames[2] = hm_frame(&m, HM_APP, &c, 1);
	/* a b a a b c, samples on the way */
	for (const char *p = "abaabc"; *p; p++) {
		s = hm_stack(&m, s, frames[*p - 'a']);
		hm_samples(&m, 0, s, AS_END_ROOT, (unsigned)(*p - 'a' + 1));
	}
	r = read_all(export(&m, NULL));
	expect(&r, "a", 3, 10);
	expect(&r, "b", 4, 9);
	expect(&r, "c", 3, 3);
	expect(&r, "[all]", 0, 0);
	assert_non_null(strstr(text.p, "summary: 10 10000000\n"));
	hm_clear(&m);
}

static void inlined_cut_and_hidden_frames(void **state)
{
	struct as_model m;
	struct as_query q = {.hide = "^outer$", .no_kernel = true};
	uint32_t inner, outer, sys, s;
	struct reader r;

	hm_init(&m);
	inner = hm_function(&m, "inner", HM_APP);
	outer = hm_function(&m, "outer", HM_APP);
	sys = hm_function(&m, "sys", HM_KERNEL);
	s = hm_stack(&m, AS_NONE, hm_frame(&m, HM_APP, (uint32_t[]){inner, outer}, 2));
	m.places.v[0].file = "macro.rs";
	hm_samples(&m, 0, s, AS_END_SHORT, 2);
	s = hm_stack(&m, s, hm_frame(&m, HM_KERNEL, &sys, 1));
	hm_samples(&m, 0, s, AS_END_ROOT, 4);
	hm_samples(&m, 0, AS_NONE, AS_END_NOSTACK, 1);
	s = hm_stack(&m, AS_NONE, 1);
	hm_samples(&m, 1, s, AS_END_ROOT, 8);
	r = read_all(export(&m, NULL));
	expect(&r, "inner", 2, 6);
	expect(&r, "outer", 0, 6);
	expect(&r, "sys", 12, 12);
	expect(&r, "[truncated: x]", 0, 2);
	expect(&r, "[no user stack]", 1, 1);
	/* its line is in another file than its function */
	assert_non_null(strstr(text.p, "macro.rs\n10 2 2000000\n"));
	r = read_all(export(&m, &q));
	expect(&r, "inner", 6, 6);
	expect(&r, AS_EXPORT_NO_FRAMES, 8, 8);
	assert_null(strstr(text.p, "outer"));
	hm_clear(&m);
}

static void names_stay_on_their_lines(void **state)
{
	struct as_model m;
	uint32_t f;

	hm_init(&m);
	f = hm_function(&m, "(7) x\ncalls=9 9\n1 2 3\xff", HM_APP);
	hm_samples(&m, 0, hm_stack(&m, AS_NONE, hm_frame(&m, HM_APP, &f, 1)), AS_END_ROOT, 1);
	m.args.v[0] = "a\nevents: b";
	export(&m, NULL);
	assert_non_null(strstr(text.p, ") (7) x\\x0acalls=9 9\\x0a1 2 3\\xff\n"));
	assert_non_null(strstr(text.p, "cmd: a\\x0aevents: b\n"));
	hm_clear(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recursion_counts_once),
		cmocka_unit_test(inlined_cut_and_hidden_frames),
		cmocka_unit_test(names_stay_on_their_lines),
	};

	return cmocka_run_group_tests(tests, NULL, clear);
}
