/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Stacks of running programs: stopped by ptrace at random moments, their registers and memory read
 * from outside, as the engines do. Every stack must be complete, and every return address in it
 * must follow a call. Programs: a child of this test in C and in a signal handler, python3, perl,
 * and a static musl program (a C library without CFI). Skips what is not here or not allowed.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <cmocka.h>
#include "cfi_file.h"
#include "base/mem.h"
#include "unwind/unwind.h"

#define STOPS       150
#define MAX_MODULES 64
#define MAX_MAPS    256
#define MAX_FRAMES  1024

struct module {
	char path[256];
	struct cfi_file file;
	struct as_buf blob;
	struct as_utable table;
	bool has_table;
};
struct map {
	uint64_t start, end, bias;
	struct module *module; /* NULL: not a file */
};
static struct module modules[MAX_MODULES];
static struct map maps[MAX_MAPS];
static size_t nmodules, nmaps;
static pid_t child;
static int mem_fd;
static struct as_uframe frames[MAX_FRAMES];

static struct module *module_of(const char *path)
{
	struct as_error err;
	for (size_t i = 0; i < nmodules; i++)
		if (!strcmp(modules[i].path, path))
			return &modules[i];
	if (nmodules == MAX_MODULES)
		return NULL;
	struct module *m = &modules[nmodules++];
	snprintf(m->path, sizeof m->path, "%s", path);
	if (cfi_file_open(path, &m->file) &&
	    !as_utable_compile(&m->file.in, &m->blob, NULL, &err))
		m->has_table = !as_utable_open(m->blob.p, m->blob.len, &m->table, &err);
	return m;
}

/* avma - svma, by the program header that holds the mapping's offset. */
static uint64_t bias_of(const struct cfi_file *f, uint64_t start, uint64_t off)
{
	const Elf64_Ehdr *h = (const void *)f->map;
	const Elf64_Phdr *p = (const void *)(f->map + h->e_phoff);
	for (int i = 0; i < h->e_phnum; i++, p++)
		if (p->p_type == PT_LOAD && p->p_flags & PF_X &&
		    off >= (p->p_offset & ~4095ull) && off < p->p_offset + p->p_filesz)
			return start - off + p->p_offset - p->p_vaddr;
	return 0;
}

static void read_maps(void)
{
	char name[64], line[600];
	snprintf(name, sizeof name, "/proc/%d/maps", child);
	FILE *fp = fopen(name, "r");
	assert_non_null(fp);
	nmaps = 0;
	while (nmaps < MAX_MAPS && fgets(line, sizeof line, fp)) {
		unsigned long start, end, off;
		char perm[8], path[256] = "";
		if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %255[^\n]", &start, &end, perm, &off,
			   path) < 4 ||
		    perm[2] != 'x')
			continue;
		struct module *m = path[0] == '/' ? module_of(path) : NULL;
		maps[nmaps++] = (struct map){
			start, end, m && m->file.map ? bias_of(&m->file, start, off) : 0, m};
	}
	fclose(fp);
}

static bool find(void *ctx, uint64_t avma, struct as_unwind_module *ret)
{
	for (size_t i = 0; i < nmaps; i++) {
		struct module *m = maps[i].module;
		if (avma < maps[i].start || avma >= maps[i].end)
			continue;
		*ret = (struct as_unwind_module){
			.table = m && m->has_table ? &m->table : NULL,
			.cfi = m && m->file.map ? &m->file.in : NULL,
			.bias = maps[i].bias,
			.start_avma = maps[i].start,
			.end_avma = maps[i].end,
			.id = (uint32_t)i,
		};
		return true;
	}
	return false;
}

static int read_child(void *ctx, uint64_t avma, void *out, size_t n)
{
	return pread(mem_fd, out, n, (off_t)avma) == (ssize_t)n ? 0 : AS_E_IO;
}

static int code_of_child(void *ctx, uint64_t avma, void *out, size_t n)
{
	return read_child(ctx, avma - n, out, n);
}

static bool get_regs(struct as_uregs *ret)
{
#if defined(__x86_64__)
	struct user_regs_struct u;
	if (ptrace(PTRACE_GETREGS, child, NULL, &u))
		return false;
	const uint64_t r[17] = {u.rax, u.rdx, u.rcx, u.rbx, u.rsi, u.rdi, u.rbp, u.rsp, u.r8,
				u.r9,  u.r10, u.r11, u.r12, u.r13, u.r14, u.r15, u.rip};
	*ret = (struct as_uregs){.valid = 0x1ffff};
	memcpy(ret->r, r, sizeof r);
	return true;
#else
	(void)ret;
	return false;
#endif
}

/* The vdso has no file here; what is on top of it is found by its frame pointer or not at all. */
static bool in_file(uint64_t avma)
{
	struct as_unwind_module m;
	return find(NULL, avma, &m) && m.table;
}

static void check_stack(size_t *complete, size_t *signals)
{
	struct as_unwind_env env = {.arch = AS_ARCH_X86_64,
				    .find = find,
				    .read = read_child,
				    .read_code = code_of_child};
	struct as_unwind_result res;
	struct as_uregs regs;
	uint8_t code[8];
	assert_true(get_regs(&regs));
	as_unwind(&env, &regs, frames, MAX_FRAMES, &res);
	*complete += res.end == AS_END_ROOT || !in_file(regs.r[16]);
	for (size_t i = 1; i < res.nframes; i++) {
		*signals += frames[i].signal;
		/* a coroutine's or thread's first frame and a trampoline were not called */
		if (frames[i].exact || frames[i].signal ||
		    (i + 1 == res.nframes && res.end == AS_END_ROOT))
			continue;
		assert_int_equal(read_child(NULL, frames[i].avma - 8, code, 8), 0);
		assert_true(as_is_after_call(AS_ARCH_X86_64, code, 8));
	}
}

static void nap(void)
{
	static unsigned seed = 1;
	struct timespec t = {.tv_nsec = 200000 + rand_r(&seed) % 700000};
	nanosleep(&t, NULL);
}

/* Stops the child STOPS times. False when it cannot be traced. */
static bool watch(size_t *stops, size_t *complete, size_t *signals)
{
	char name[64];
	*stops = *complete = *signals = 0;
	if (ptrace(PTRACE_SEIZE, child, NULL, NULL))
		return false;
	snprintf(name, sizeof name, "/proc/%d/mem", child);
	mem_fd = open(name, O_RDONLY | O_CLOEXEC);
	assert_true(mem_fd >= 0);
	while (*stops < STOPS) {
		int status;
		nap();
		if (ptrace(PTRACE_INTERRUPT, child, NULL, NULL) ||
		    waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
			break;
		int sig = status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status);
		read_maps();
		check_stack(complete, signals);
		++*stops;
		ptrace(PTRACE_CONT, child, NULL, sig);
	}
	close(mem_fd);
	return true;
}

static void end_child(void)
{
	kill(child, SIGKILL);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

static void run(const char *const *argv, void (*body)(void))
{
	size_t stops, complete, signals;
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		int null = open("/dev/null", O_RDWR);
		dup2(null, 1);
		dup2(null, 2);
		if (body)
			body();
		else
			execv(argv[0], (char *const *)argv);
		_exit(127);
	}
	struct timespec start = {.tv_nsec = 50000000};
	nanosleep(&start, NULL);
	bool traced = watch(&stops, &complete, &signals);
	end_child();
	if (!traced)
		skip();
	print_message("%s: %zu of %zu stacks complete, %zu signal frames\n",
		      argv ? argv[0] : "child", complete, stops, signals);
	assert_int_equal(stops, STOPS);
	assert_true(complete >= stops - stops / 100);
	if (body)
		assert_true(signals > 0);
}

static volatile unsigned sink;

__attribute__((noinline)) static void spin(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		sink += i;
}

static void on_signal(int sig)
{
	char text[64];
	spin(20000);
	snprintf(text, sizeof text, "%d %g", sig, sig * 1.5);
	sink += (unsigned char)text[0];
}

static int by_value(const void *a, const void *b)
{
	spin(50);
	return *(const int *)a - *(const int *)b;
}

static void busy_child(void)
{
	static char stack[64 << 10];
	stack_t ss = {.ss_sp = stack, .ss_size = sizeof stack};
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
	int v[64];
	sigaltstack(&ss, NULL);
	sigaction(SIGUSR1, &sa, NULL);
	for (;;) {
		for (int i = 0; i < 64; i++)
			v[i] = rand() % 1000;
		qsort(v, 64, sizeof *v, by_value);
		raise(SIGUSR1);
	}
}

static void a_busy_child_with_signals_is_followed_at_any_moment(void **state)
{
	run(NULL, busy_child);
}

static void interpreters_are_followed_at_any_moment(void **state)
{
	static const char *const python[] = {
		"/usr/bin/python3", "-c",
		"import json,re\n"
		"while 1: json.dumps([{'a':i} for i in range(300)]); sorted(range(300), "
		"key=lambda x:-x)",
		NULL};
	static const char *const perl[] = {
		"/usr/bin/perl", "-e",
		"while(1){my %h; $h{$_}=$_*2 for 1..300; my $s=join ',', sort keys %h;}", NULL};
	unsigned ran = 0;
	if (!access(python[0], X_OK) && ++ran)
		run(python, NULL);
	if (!access(perl[0], X_OK) && ++ran)
		run(perl, NULL);
	if (!ran)
		skip();
}

static void a_static_program_without_cfi_in_its_c_library_is_followed(void **state)
{
	static const char source[] =
		"#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include "
		"<signal.h>\n"
		"volatile int x; static void h(int s){ char b[999]; for(int i=0;i<3000;i++){"
		"memset(b,i,999);x+=b[7];} }\n"
		"int cmp(const void*a,const void*b){for(int i=0;i<900;i++)x++;"
		"return *(int*)a-*(int*)b;}\n"
		"int main(){signal(SIGUSR1,h);for(;;){int a[99];for(int "
		"i=0;i<99;i++)a[i]=rand();"
		"qsort(a,99,4,cmp);char buf[99];for(int i=0;i<99;i++){"
		"sprintf(buf,\"%d %g\\n\",i,i*1.5);fputs(buf,stdout);free(malloc(i*10));}"
		"raise(SIGUSR1);}}\n";
	char dir[] = "/tmp/assay-test-XXXXXX", c[64], out[64];
	int status;
	if (access("/usr/bin/musl-gcc", X_OK))
		skip();
	assert_non_null(mkdtemp(dir));
	snprintf(c, sizeof c, "%s/m.c", dir);
	snprintf(out, sizeof out, "%s/m", dir);
	FILE *f = fopen(c, "w");
	assert_non_null(f);
	fputs(source, f);
	fclose(f);
	pid_t cc = fork();
	if (!cc) {
		execl("/usr/bin/musl-gcc", "musl-gcc", "-w", "-static", "-O2", "-o", out, c,
		      (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(cc, &status, 0), cc);
	assert_int_equal(status, 0);
	run((const char *const[]){out, NULL}, NULL);
	unlink(c);
	unlink(out);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_busy_child_with_signals_is_followed_at_any_moment),
		cmocka_unit_test(interpreters_are_followed_at_any_moment),
		cmocka_unit_test(a_static_program_without_cfi_in_its_c_library_is_followed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
