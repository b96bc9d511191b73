/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Who calls whom, in this program itself; and programs that cannot be tried. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include "cfi_file.h"
#include "fixture.h"
#include "hook/calls.h"
#include "hook/signature.h"
#include "hook/trial.h"

static volatile int sink;

__attribute__((noinline)) static void called_three_times(void)
{
	sink++;
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void calls_three_times(void)
{
	called_three_times();
	sink--;
	called_three_times();
	sink--;
	called_three_times();
	sink--;
}

struct wanted {
	const char *name;
	uint64_t svma;
};

static void on_symbol(void *ctx, const struct as_elf_symbol *s)
{
	struct wanted *w = ctx;

	if (s->func && !strcmp(s->name, w->name))
		w->svma = s->svma;
}

static uint64_t svma_of(struct as_elf *e, const char *name)
{
	struct wanted w = {.name = name};

	(void)as_elf_each_symbol(e, on_symbol, &w, NULL);
	if (!w.svma)
		fx_skip("this program has no symbol %s", name);
	return w.svma;
}

static struct as_elf *open_self(struct as_calls **ret)
{
	struct as_error err;
	struct as_elf *e;

	if (as_elf_open("/proc/self/exe", &e, &err) < 0 ||
	    as_calls_new(e, NULL, 0, ret, &err) < 0)
		fail_msg("%s", err.msg);
	return e;
}

static void branches_between_functions_are_counted(void **state)
{
	struct as_calls *c;
	struct as_elf *e = open_self(&c);
	size_t from = as_hook_code_find(as_calls_code(c), svma_of(e, "calls_three_times"));
	size_t to = as_hook_code_find(as_calls_code(c), svma_of(e, "called_three_times"));
	const struct as_calls_edge *edge;
	size_t n, found = 0;

	calls_three_times();
	assert_true(from != SIZE_MAX && to != SIZE_MAX);
	edge = as_calls_edges(c, from, &n);
	for (size_t i = 0; i < n; i++)
		found += edge[i].to == to ? edge[i].count : 0;
	assert_int_equal(found, 3);
	assert_int_equal(as_calls_sites(c, to), 3);
	assert_false(as_calls_is_found(c, to));
	as_calls_free(c);
	as_elf_close(e);
}

static void main_is_among_the_guesses(void **state)
{
	struct as_calls *c;
	struct as_elf *e = open_self(&c);
	uint64_t main_svma = svma_of(e, "main"), guess[16];
	size_t n = as_calls_main(c, guess, 16), found = 0;

	for (size_t i = 0; i < n; i++)
		found += guess[i] == main_svma;
	assert_int_equal(found, 1);
	as_calls_free(c);
	as_elf_close(e);
}

static void a_program_that_does_not_come_to_main_is_told(void **state)
{
	struct as_trial_spec spec = {.name = "false", .entry_svma = 0x1000};
	uint64_t nowhere = 8;
	struct as_trial t;
	struct as_error err;

	spec.exe_fd = open("/bin/false", O_RDONLY | O_CLOEXEC);
	spec.main_svma = &nowhere;
	spec.nmain = 1;
	assert_true(as_trial_open(&spec, &t, &err) < 0);
	assert_int_equal(err.status, AS_E_UNSUPPORTED);
	close(spec.exe_fd);
	/* no program at all */
	spec.exe_fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	assert_true(as_trial_open(&spec, &t, &err) < 0);
	close(spec.exe_fd);
}

static void a_program_without_an_allocator_has_none(void **state)
{
	const char *path = "/bin/true"; /* its malloc is that of the C library */
	struct as_signature_program p = {.name = path};
	struct as_signature found;
	struct as_extent *extent = NULL;
	struct as_error err;
	struct cfi_file f;

	if (as_elf_open(path, &p.elf, &err) < 0)
		fail_msg("%s", err.msg);
	if (cfi_file_open(path, &f)) {
		(void)as_cfi_extents(&f.in, &extent, &p.nextents, NULL);
		cfi_file_close(&f);
	}
	p.extents = extent;
	p.fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(as_signature_find(&p, &found, &err) < 0);
	if (err.status != AS_E_NOTFOUND)
		print_message("%s\n", err.msg); /* nothing may be traced here */
	assert_null(found.list.v);
	close(p.fd);
	free(extent);
	as_elf_close(p.elf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(branches_between_functions_are_counted),
		cmocka_unit_test(main_is_among_the_guesses),
		cmocka_unit_test(a_program_that_does_not_come_to_main_is_told),
		cmocka_unit_test(a_program_without_an_allocator_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
