#!/usr/bin/env bats
# Ways a program comes to an allocator: each call seen, and once.
# SPDX-License-Identifier: MIT OR Apache-2.0

bats_require_minimum_version 1.5.0
load hook

setup() {
	need_hooks
}

@test "a malloc of the program's own, which libraries call, too" {
	cat >own.c <<-'END'
		#include <errno.h>
		#include <stdlib.h>
		#include <string.h>
		static char heap[1 << 26];
		static size_t used;
		unsigned long taken, given;
		void *malloc(size_t n)
		{
			size_t *p = (size_t *)(heap + used);
			n = (n + 31) & ~15ul;
			if (n > sizeof heap - used) { errno = ENOMEM; return NULL; }
			used += n;
			*p = n;
			taken++;
			return p + 2;
		}
		void free(void *p) { given += p != NULL; }
		void *calloc(size_t n, size_t k) { void *p = malloc(n * k); return p ? memset(p, 0, n * k) : p; }
		void *realloc(void *p, size_t n) { void *q = malloc(n); if (p && q) { memcpy(q, p, n); free(p); } return q; }
	END
	# apart, so that no call is inlined
	cat >main.c <<-'END'
		#include <stdio.h>
		#include <stdlib.h>
		#include <string.h>
		#include <unistd.h>
		extern unsigned long taken, given;
		int main(int argc, char **argv)
		{
			int n = atoi(argv[1]);
			char line[80];
			for (int i = 0; i < n; i++) {
				free(strdup("a copy that libc makes"));
				free(calloc(3, 30));
				free(realloc(malloc(10), 100));
			}
			/* not through stdio, which allocates */
			snprintf(line, sizeof line, "%lu %lu\n", taken, given);
			return write(1, line, strlen(line)) < 0;
		}
	END
	gcc -O1 -fno-builtin -o own own.c main.c
	hook-heap -o told -- ./own 1000 >out
	read -r taken given <out
	cat out told
	# a realloc is a malloc and a free of its own, within it; sums count it as one that moved
	[ "$taken" = 4000 ] && [ "$given" = 4000 ]
	[ "$(sums | cut -d' ' -f1)" = 4000 ]
	for want in 'malloc 2000' 'calloc 1000' 'realloc 1000' 'free 3000'; do
		awk -F'\t' -v want="$want" '$2 == substr(want, 1, index(want, " ") - 1) && $3 ~ /own$/ { n += $1 }
			END { exit !(n == substr(want, index(want, " ") + 1)) }' told
	done
}

@test "libraries linked with -Bsymbolic, loaded with dlmopen, and unloaded" {
	cat >plug.c <<-'END'
		#include <stdlib.h>
		#include <string.h>
		static void *(*volatile get)(size_t) = malloc;
		void *plug_get(size_t n) { return get(n); }
		char *plug_copy(const char *s) { return strdup(s); }
		void plug_free(void *p) { free(p); }
	END
	cat >user.c <<-'END'
		#define _GNU_SOURCE
		#include <dlfcn.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <string.h>
		static void work(void *h)
		{
			void *(*get)(size_t) = (void *(*)(size_t))dlsym(h, "plug_get");
			char *(*copy)(const char *) = (char *(*)(const char *))dlsym(h, "plug_copy");
			void (*give)(void *) = (void (*)(void *))dlsym(h, "plug_free");
			for (int i = 0; i < 100; i++) {
				give(get(7777));
				give(copy("in a library"));
			}
		}
		int main(int argc, char **argv)
		{
			int other = !strcmp(argv[1], "other");
			for (int i = 0; i < (other ? 1 : 5); i++) {
				void *h = other ? dlmopen(LM_ID_NEWLM, "./plug.so", RTLD_NOW) : dlopen("./plug.so", RTLD_NOW);
				if (!h) { puts(dlerror()); return 1; }
				work(h);
				if (!other) dlclose(h);
			}
			puts("fine");
			return 0;
		}
	END
	gcc -O2 -fno-builtin -shared -fPIC -Wl,-Bsymbolic -o plug.so plug.c
	gcc -O2 -o user user.c -ldl
	for how in other again; do
		hook-heap -o told -- ./user $how >out
		cat out told
		grep -q fine out
		awk -F'\t' '$1 == "process" && ($7 != "dropped 0" || $9 != "bad 0") { exit 1 }' told
		n=100
		[ $how = other ] || n=500
		# blocks of the other libc are its malloc's: two modules tell it
		awk -F'\t' -v n=$n '$2 == "malloc" { m += $1 } $2 == "free" { f += $1 }
			END { exit !(m >= 2 * n && m < 2 * n + 200 && f >= 2 * n && f < 2 * n + 200) }' told
		if [ $how = other ]; then
			[ "$(awk -F'\t' '$2 == "malloc" && $1 >= 200' told | wc -l)" = 1 ]
		fi
	done
}

@test "a malloc that an IFUNC chooses, in a library" {
	cat >chosen.c <<-'END'
		#include <stddef.h>
		void *__libc_malloc(size_t n);
		static void *plain(size_t n) { return __libc_malloc(n); }
		static void *(*choose(void))(size_t) { return plain; }
		void *malloc(size_t n) __attribute__((ifunc("choose")));
	END
	cat >user.c <<-'END'
		#include <stdio.h>
		#include <stdlib.h>
		static void *(*volatile get)(size_t) = malloc;
		int main(int argc, char **argv)
		{
			int n = atoi(argv[1]);
			for (int i = 0; i < n; i++) free(get(55));
			printf("%d\n", n);
			return 0;
		}
	END
	gcc -O2 -fno-builtin -shared -fPIC -o libchosen.so chosen.c 2>err || skip 'no IFUNC here'
	gcc -O2 -o user user.c -L. -lchosen -Wl,-rpath,.
	[ "$(a_round ./user)" = 1.0 ]
}

@test "what the C library allocates for its callers: strdup, getline, asprintf and more" {
	cat >lines.c <<-'END'
		#define _GNU_SOURCE
		#include <stdio.h>
		#include <stdlib.h>
		#include <string.h>
		#include <unistd.h>
		int main(int argc, char **argv)
		{
			int n = atoi(argv[1]);
			for (int i = 0; i < n; i++) {
				char *line = NULL, *text = NULL, *all = NULL;
				size_t size = 0;
				FILE *in = fmemopen("a line\n", 7, "r"), *out;
				if (getline(&line, &size, in) != 7) return 1;
				fclose(in);
				out = open_memstream(&all, &size);
				fputs("text", out);
				fclose(out);
				if (asprintf(&text, "%d", i) < 0) return 1;
				free(strdup(line));
				free(strndup(line, 3));
				free(get_current_dir_name());
				free(realpath("/", NULL));
				free(line);
				free(text);
				free(all);
			}
			printf("%d\n", n);
			return 0;
		}
	END
	gcc -O1 -fno-builtin -o lines lines.c
	one=$(a_round ./lines)
	echo "$one a round"
	# how many one of them makes is libc's business; that it is a whole number of them is not
	[ "${one#*.}" = 0 ] && [ "${one%.*}" -ge 10 ]
	whole
	awk -F'\t' '$1 == "process" && $9 != "bad 0" { exit 1 }' told
}
