/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* image/: mappings, modules, pins, tables, the closure of a program. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/mem.h"
#include "base/sys.h"
#include "fixture.h"
#include "image/image.h"

__attribute__((noinline)) static int marker(int x)
{
	__asm__ volatile("");
	return x + 1;
}

static struct as_module *module_at(struct as_image *im, const struct as_process *p,
				   uint64_t avma, const struct as_mapping **ret)
{
	*ret = as_image_find(p, avma);
	assert_non_null(*ret);
	return as_image_module(im, (*ret)->module);
}

static void own_functions_are_found_with_table_and_code(void **state)
{
	struct as_image *im = as_image_new(NULL);
	struct as_error err = {0};
	const struct as_mapping *map;
	uint8_t file[16];
	struct as_unwind_module um;

	assert_int_equal(as_image_read_maps(im, getpid(), 1, &err), AS_OK);
	struct as_process *p = as_image_process(im, getpid());
	assert_non_null(p);
	uint64_t avma = (uint64_t)(uintptr_t)marker;
	struct as_module *m = module_at(im, p, avma, &map);
	assert_int_equal(m->kind, AS_MODULE_FILE);
	assert_true(m->fd >= 0);
	assert_int_equal(as_image_read_code(im, p, avma, file, sizeof file), AS_OK);
	assert_memory_equal(file, (void *)(uintptr_t)avma, sizeof file);
	assert_true(as_image_unwind_find(im, p, avma, &um));
	assert_non_null(um.table);
	struct as_rule rule;
	assert_true(as_utable_find(um.table, avma - um.bias, &rule));
	assert_int_not_equal(rule.w0 & 0xff, AS_UT_CFA_NONE);
	assert_int_equal(marker(1), 2);
	as_image_free(im);
}

static void the_vdso_is_read_from_the_process(void **state)
{
	struct as_image *im = as_image_new(NULL);
	assert_int_equal(as_image_read_maps(im, getpid(), 1, NULL), AS_OK);
	bool seen = false;
	for (uint32_t i = 0; i < as_image_nmodules(im); i++) {
		struct as_module *m = as_image_module(im, i);
		if (m->kind != AS_MODULE_VDSO)
			continue;
		seen = true;
		assert_non_null(as_image_module_table(im, m));
		assert_true(m->has_build_id);
	}
	assert_true(seen);
	as_image_free(im);
}

struct child {
	pid_t pid;
	int to;
};

/* Runs path, which waits on its standard input. */
static struct child start_waiting(const char *path)
{
	int in[2], out[2];
	char c;
	assert_int_equal(pipe(in), 0);
	assert_int_equal(pipe(out), 0);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[0]);
		close(in[1]);
		close(out[0]);
		close(out[1]);
		execl(path, path, "-u", "-", (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	assert_int_equal(write(in[1], "x\n", 2), 2);
	assert_int_equal(read(out[0], &c, 1), 1); /* it runs: cat has answered */
	close(out[0]);
	return (struct child){pid, in[1]};
}

static void stop(struct child c)
{
	close(c.to);
	assert_int_equal(kill(c.pid, SIGKILL), 0);
	assert_int_equal(waitpid(c.pid, NULL, 0), c.pid);
}

static void copy_file(const char *from, const char *to)
{
	struct as_buf b = {0};
	assert_int_equal(as_read_file(from, 64u << 20, &b, NULL), AS_OK);
	assert_int_equal(as_write_file_atomic(to, b.p, b.len, NULL), AS_OK);
	assert_int_equal(chmod(to, 0755), 0);
	as_buf_clear(&b);
}

static void a_deleted_program_is_pinned_and_named_without_the_mark(void **state)
{
	AS_CLEANUP(as_free_autop) char *path = as_xasprintf("%s/cat copy", fx_dir());
	copy_file("/bin/cat", path);
	struct child c = start_waiting(path);
	assert_int_equal(unlink(path), 0);
	struct as_image *im = as_image_new(NULL);
	assert_int_equal(as_image_read_maps(im, c.pid, 1, NULL), AS_OK);
	bool seen = false;
	for (uint32_t i = 0; i < as_image_nmodules(im); i++) {
		struct as_module *m = as_image_module(im, i);
		if (strcmp(m->path, path))
			continue;
		seen = true;
		assert_true(m->fd >= 0);
		assert_non_null(as_image_module_table(im, m));
	}
	assert_true(seen);
	stop(c);
	as_image_free(im);
}

static void a_replaced_program_keeps_what_really_runs(void **state)
{
	AS_CLEANUP(as_free_autop) char *path = as_xasprintf("%s/replaced", fx_dir());
	copy_file("/bin/cat", path);
	struct child c = start_waiting(path);
	copy_file("/bin/true", path); /* by rename: another inode under the same name */
	struct as_image *im = as_image_new(NULL);
	struct as_elf *cat = NULL;
	assert_int_equal(as_image_read_maps(im, c.pid, 1, NULL), AS_OK);
	assert_int_equal(as_elf_open("/bin/cat", &cat, NULL), AS_OK);
	bool seen = false;
	for (uint32_t i = 0; i < as_image_nmodules(im); i++) {
		struct as_module *m = as_image_module(im, i);
		/* without rights to map_files there is no pin, and no wrong file either */
		if (strcmp(m->path, path) || m->fd < 0)
			continue;
		seen = true;
		assert_int_equal(m->build_id.len, as_elf_build_id(cat)->len);
		assert_memory_equal(m->build_id.id, as_elf_build_id(cat)->id, m->build_id.len);
	}
	assert_true(seen || geteuid() != 0);
	as_elf_close(cat);
	stop(c);
	as_image_free(im);
}

static void mmap_events_cut_what_they_cover(void **state)
{
	struct as_image *im = as_image_new(NULL);
	pid_t nobody = 1 << 30; /* no such process: events alone have to do */
	struct as_mmap_event e = {.pid = nobody,
				  .time_ns = 1,
				  .start = 0x10000,
				  .len = 0x10000,
				  .off = 0x1000,
				  .ino = 1,
				  .path = "/nonexistent/a"};
	as_image_mmap(im, &e);
	e.start = 0x14000;
	e.len = 0x1000;
	e.ino = 2;
	e.path = "/nonexistent/b";
	as_image_mmap(im, &e);
	struct as_process *p = as_image_process(im, nobody);
	assert_int_equal(p->nmap, 3);
	assert_int_equal(p->map[0].end, 0x14000);
	assert_int_equal(p->map[2].start, 0x15000);
	assert_int_equal(p->map[2].off, 0x1000 + 0x5000);
	assert_int_equal(p->map[2].module, p->map[0].module);
	assert_null(as_image_find(p, 0xffff));
	assert_ptr_equal(as_image_find(p, 0x14fff), &p->map[1]);
	e.start = 0x8000;
	e.len = 0x20000;
	as_image_mmap(im, &e);
	assert_int_equal(p->nmap, 1);
	as_image_fork(im, nobody, nobody + 1, 2);
	assert_int_equal(as_image_process(im, nobody + 1)->nmap, 1);
	as_image_exec(im, nobody + 1, 3);
	assert_int_equal(as_image_process(im, nobody + 1)->nmap, 0);
	as_image_exit(im, nobody + 1, 4);
	assert_null(as_image_process(im, nobody + 1));
	as_image_free(im);
}

static void text_moved_to_anonymous_memory_keeps_its_module(void **state)
{
	struct as_image *im = as_image_new(NULL);
	assert_int_equal(as_image_read_maps(im, getpid(), 1, NULL), AS_OK);
	struct as_process *p = as_image_process(im, getpid());
	const struct as_mapping *map;
	uint64_t page = (uint64_t)(uintptr_t)marker & ~(uint64_t)4095;
	struct as_module *m = module_at(im, p, page, &map);
	uint64_t bias = map->bias;
	void *copy =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(copy, MAP_FAILED);
	memcpy(copy, (void *)(uintptr_t)page, 4096);
	assert_int_equal(mprotect(copy, 4096, PROT_READ | PROT_EXEC), 0);
	assert_ptr_equal(mremap(copy, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED,
				(void *)(uintptr_t)page),
			 (void *)(uintptr_t)page);
	assert_int_equal(as_image_read_maps(im, getpid(), 2, NULL), AS_OK);
	assert_ptr_equal(module_at(im, p, page, &map), m);
	assert_int_equal(map->bias, bias);
	/* and a reader who comes late has only the neighbours to go by */
	struct as_image *late = as_image_new(NULL);
	assert_int_equal(as_image_read_maps(late, getpid(), 1, NULL), AS_OK);
	struct as_module *lm = module_at(late, as_image_process(late, getpid()), page, &map);
	assert_string_equal(lm->path, m->path);
	as_image_free(late);
	as_image_free(im);
}

static void other_executable_memory_is_jit(void **state)
{
	struct as_image *im = as_image_new(NULL);
	void *jit = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct as_mapping *map;
	memset(jit, 0xc3, 8192);
	assert_int_equal(as_image_read_maps(im, getpid(), 1, NULL), AS_OK);
	struct as_process *p = as_image_process(im, getpid());
	struct as_module *m = module_at(im, p, (uint64_t)(uintptr_t)jit, &map);
	assert_int_equal(m->kind, AS_MODULE_JIT);
	assert_int_equal(map->bias, 0);
	munmap(jit, 8192);
	as_image_free(im);
}

static void the_closure_names_program_interpreter_and_libraries(void **state)
{
	struct as_image *im = as_image_new(NULL);
	uint32_t ids[64];
	size_t n = 0;
	bool libc = false, ld = false;
	as_image_add_closure(im, "/bin/bash", ids, 64, &n);
	if (!n) {
		as_image_free(im);
		skip();
	}
	for (size_t i = 0; i < n; i++) {
		libc |= strstr(as_image_module(im, ids[i])->path, "libc.so") != NULL ||
			strstr(as_image_module(im, ids[i])->path, "libc-") != NULL;
		ld |= strstr(as_image_module(im, ids[i])->path, "ld-linux") != NULL ||
		      strstr(as_image_module(im, ids[i])->path, "/ld-") != NULL;
	}
	assert_true(libc);
	assert_true(ld);
	as_image_free(im);
}

static void tables_come_from_the_cache_and_damage_there_is_mended(void **state)
{
	struct as_image_cost cost;
	AS_CLEANUP(as_free_autop) char *cache = as_xasprintf("%s/cache", fx_dir());
	for (int round = 0; round < 3; round++) {
		struct as_image *im = as_image_new(cache);
		struct as_module *m = as_image_add_file(im, "/bin/bash", NULL);
		if (!m) {
			as_image_free(im);
			skip(); /* a table that takes a moment is wanted */
		}
		assert_non_null(as_image_module_table(im, m));
		as_image_costs(im, &cost);
		assert_int_equal(cost.tables_built, round != 1);
		assert_int_equal(cost.tables_cached, round == 1);
		as_image_free(im);
		if (round == 1) /* tear the file */
			assert_int_equal(fx_sh("truncate -s 1000 cache/unwind-*/*"), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_functions_are_found_with_table_and_code),
		cmocka_unit_test(the_vdso_is_read_from_the_process),
		cmocka_unit_test(a_deleted_program_is_pinned_and_named_without_the_mark),
		cmocka_unit_test(a_replaced_program_keeps_what_really_runs),
		cmocka_unit_test(mmap_events_cut_what_they_cover),
		cmocka_unit_test(text_moved_to_anonymous_memory_keeps_its_module),
		cmocka_unit_test(other_executable_memory_is_jit),
		cmocka_unit_test(the_closure_names_program_interpreter_and_libraries),
		cmocka_unit_test(tables_come_from_the_cache_and_damage_there_is_mended),
	};
	return cmocka_run_group_tests_name("image", tests, NULL, NULL);
}
