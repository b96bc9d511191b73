#!/usr/bin/env bats
# Every form of allocation, of every allocator there is here: each seen, and once.
# SPDX-License-Identifier: MIT OR Apache-2.0
# beside others

bats_require_minimum_version 1.5.0
load hook

setup() {
	need_hooks
}

teardown() {
	if [ -s pids ]; then
		xargs kill -9 <pids 2>/dev/null || true
	fi
}

@test "the C library's forms, each once however they call each other" {
	[ "$(a_round "$W/forms")" = 11.0 ]
	whole
	for how in -static -static-pie; do
		gcc -O2 $how -o forms "$S/forms.c" 2>err || skip "gcc $how builds nothing here"
		[ "$(a_round ./forms)" = 11.0 ]
	done
}

@test "the same with musl, static and dynamic" {
	command -v musl-gcc || skip 'no musl-gcc on this machine'
	for how in -static -dynamic; do
		musl-gcc -O2 $how -o forms "$S/forms.c"
		[ "$(a_round ./forms)" = 8.0 ]
	done
}

@test "allocators put in the place of the C library's" {
	local n=0
	for lib in libjemalloc.so.2 libmimalloc.so.2 libtcmalloc_minimal.so.4; do
		path=/usr/lib/x86_64-linux-gnu/$lib
		[ -e $path ] || continue
		n=$((n + 1))
		echo "$lib"
		# where reallocarray is left to glibc it calls their realloc: once all the same
		[ "$(LD_PRELOAD=$path a_round "$W/forms" -p)" = 10.0 ]
	done
	[ $n -gt 0 ] || skip 'no other allocator on this machine'
}

@test "operator new and delete in all forms; one that cannot be met throws as it does" {
	command -v g++ || skip 'no g++ on this machine'
	g++ -std=c++17 -O1 -o operators "$S/operators.cpp"
	for lib in '' libjemalloc.so.2 libmimalloc.so.2 libtcmalloc_minimal.so.4; do
		path=${lib:+/usr/lib/x86_64-linux-gnu/$lib}
		[ -z "$path" ] || [ -e "$path" ] || continue
		how='' want=900 caught=100
		# Debian's mimalloc is built without C++, and ends a program that has no memory
		LD_PRELOAD=$path ./operators 1 >bare 2>&1 || how=-n want=800 caught=0
		LD_PRELOAD=$path ./operators $how 100 >bare
		LD_PRELOAD=$path hook-heap -o none -- ./operators $how 0
		LD_PRELOAD=$path hook-heap -o told -- ./operators $how 100 >with
		cmp bare with
		grep -q "caught $caught, wrong 0" with
		some=$(sums)
		# beside the 8: the exception itself, which libstdc++ allocates by malloc
		mv none told
		none=$(sums)
		echo "${lib:-libstdc++}: $none / $some"
		[ $((${some%% *} - ${none%% *})) = $want ]
	done
	g++ -std=c++17 -O1 -static -o operators "$S/operators.cpp" || skip 'no static C++ library here'
	hook-heap -o told -- ./operators 100 >with
	grep -q 'caught 100, wrong 0' with
}

@test "a statically linked jemalloc in a C++ program: its own operator new" {
	[ -e /usr/lib/x86_64-linux-gnu/libjemalloc.a ] || skip 'no libjemalloc.a on this machine'
	g++ -std=c++17 -O1 -o operators "$S/operators.cpp" -l:libjemalloc.a -lpthread -ldl -lm ||
		skip 'jemalloc cannot be linked statically here'
	./operators 100 >bare
	hook-heap -o told -- ./operators 100 >with
	cmp bare with
	awk -F'\t' '$2 == "_Znwm" && $1 >= 100 { new = 1 } $2 ~ /^_ZdlPv/ { d += $1 } END { exit !(new && d >= 100) }' told
}

@test "a stripped program with an allocator inside is seen all the same" {
	[ -e /usr/lib/x86_64-linux-gnu/libjemalloc.a ] || skip 'no libjemalloc.a on this machine'
	gcc -O2 -o je "$S/forms.c" -l:libjemalloc.a -lpthread -ldl -lm -lstdc++ ||
		skip 'jemalloc cannot be linked statically here'
	strip je
	hook-heap -o told -- ./je -p 10 >out
	grep -q '10 rounds' out
	run ! grep '^# not seen' told
	[ "$(sums | cut -d' ' -f1)" -ge 100 ]
}

@test "functions of a library of RTLD_DEEPBIND, and of C23's sized free" {
	cat >plug.c <<-'END'
		#include <stdlib.h>
		#include <string.h>
		void *plug_work(int n) { void *p = 0; for (int i = 0; i < n; i++) { free(p); p = strdup("deep"); } return p; }
	END
	cat >sized.c <<-'END'
		#include <stddef.h>
		void free(void *);
		void free_sized(void *p, size_t n) { (void)n; free(p); __asm__ volatile("nop"); }
		void free_aligned_sized(void *p, size_t a, size_t n) { (void)a, (void)n; free(p); __asm__ volatile("nop"); }
	END
	cat >user.c <<-'END'
		#define _GNU_SOURCE
		#include <dlfcn.h>
		#include <stdio.h>
		#include <stdlib.h>
		void free_sized(void *, size_t);
		void free_aligned_sized(void *, size_t, size_t);
		static void *(*volatile get)(size_t) = malloc;
		int main(int argc, char **argv)
		{
			int n = atoi(argv[1]);
			void *h = dlopen("./plug.so", RTLD_NOW | RTLD_DEEPBIND);
			void *(*work)(int) = (void *(*)(int))dlsym(h, "plug_work");
			free(work(n + 1));
			for (int i = 0; i < n; i++) {
				free_sized(get(10), 10);
				free_aligned_sized(get(20), 16, 20);
			}
			printf("%d\n", n);
			return 0;
		}
	END
	gcc -O2 -shared -fPIC -o plug.so plug.c
	gcc -O2 -shared -fPIC -o libsized.so sized.c
	gcc -O2 -o user user.c -L. -lsized -Wl,-rpath,. -ldl
	[ "$(a_round ./user)" = 3.0 ]
	awk -F'\t' '$2 == "free_sized" { a = $1 } $2 == "free_aligned_sized" { b = $1 }
		END { exit !(a == 1000 && b == 1000) }' told
}

@test "marks of the program: what was live then, also in a stripped one" {
	for strip in false 'strip marked'; do
		gcc -O2 -I "$S/../../include" -o marked "$S/marked.c"
		$strip || true
		./marked
		hook-heap -o told -- ./marked
		grep '^mark' told
		begin=$(awk -F'\t' '$2 == "begin" { print $3, $4 }' told)
		[ "$(grep -c '^mark' told)" = 4 ]
		diff - <(awk -F'\t' -v b="$begin" 'BEGIN { split(b, at, " ") }
			$1 == "mark" { print substr($2, 1, 8), $3 - at[1], $4 - at[2] }' told) <<-'END'
			begin 0 0
			two 2 2000
			five 5 5000
			none, an 0 0
		END
		# cut at 48 bytes
		[ "$(awk -F'\t' '$1 == "mark" { print length($2) }' told | tail -1)" = 48 ]
	done
	# C++ as well, in more than one file
	command -v g++ || return 0
	cp "$S/marked.c" marked.cc
	printf '#include <assay/heap.h>\nvoid other(void); void other(void) { assay_heap_mark("x"); }\n' >other.cc
	g++ -x c++ -std=c++11 -pedantic -Wall -Werror -O2 -I "$S/../../include" -o marked marked.cc other.cc
	hook-heap -o told -- ./marked
	[ "$(grep -c '^mark' told)" = 4 ]
}

@test "marks from outside, while it is recorded" {
	hook-heap -o told -- "$W/marked" 20 >out 2>err &
	recorder=$!
	echo $recorder >pids
	for _ in $(seq 200); do
		grep -q ready out && break
		sleep 0.05
	done
	pid=$(pgrep -P $recorder marked)
	echo "$pid" >>pids
	hook-heap -m 'from outside' -p "$pid"
	hook-heap -m again -p "$pid"
	run -2 --separate-stderr hook-heap -m "$(printf '%060d' 1)" -p "$pid"
	[[ $stderr == *'1 to 48 bytes'* ]]
	run -2 --separate-stderr hook-heap -m lonely -p $$
	[[ $stderr == *"nobody records the memory of process $$"* ]]
	kill "$pid"
	wait $recorder || true
	[ "$(grep -c '^mark' told)" = 6 ]
	# 10 blocks of 100 bytes more than at the beginning
	awk -F'\t' '$2 == "begin" { n = $3; b = $4 } $2 == "again" { exit !($3 - n == 10 && $4 - b == 1000) }' told
}

@test "sampling: what is estimated is right, and fewer calls are told" {
	hook-heap -o told -- "$W/allocates" 20000
	read -r -a exact < <(sums)
	for _ in 1 2 3; do
		hook-heap -b 65536 -o told -- "$W/allocates" 20000
		read -r -a about < <(sums)
		read -r -a half < <(awk '$1 == "half" { print $2, $3 }' told)
		echo "exact ${exact[*]} / about ${about[*]}, half ${half[*]}"
		# five standard deviations are 2.55 half widths
		for i in 0 1; do
			d=$((about[i] - exact[i]))
			[ $((${d#-} * 100)) -le $((half[i] * 260)) ]
			[ "${half[i]}" -gt 0 ]
		done
		events=$(awk -F'\t' '$1 == "process" { print substr($4, 8) }' told)
		[ "$events" -lt 40000 ] # of 280,000
	done
}

@test "assay heap: marks by name, by signal and by the program; sampling; setuid" {
	"$ASSAY" heap -q -o m.heap.assay -- "$W/marked" 20 >out 2>err &
	recorder=$!
	echo $recorder >pids
	for _ in $(seq 200); do
		grep -q ready out && break
		sleep 0.05
	done
	pid=$(pgrep -P $recorder marked)
	echo "$pid" >>pids
	"$ASSAY" heap mark 'from outside' -p "$pid"
	kill -USR1 $recorder
	sleep 0.3
	run -1 --separate-stderr "$ASSAY" heap mark lonely -p $$
	[[ $stderr == *"nobody records the memory of process $$"* ]]
	kill "$pid"
	wait $recorder || true
	run -0 --separate-stderr "$ASSAY" report --measure live m.heap.assay
	[[ $output == *main* ]]
	"$ASSAY" heap -q --sample 64KiB -o s.heap.assay -- "$W/allocates" 20000 >out
	[ "$(cat out)" = '20000 rounds' ]
	run -0 --separate-stderr "$ASSAY" report --measure allocs s.heap.assay
	[[ $output == *one_round* ]]
	[[ $output == *'one block in about 64'*'allocations ±'* ]]
}

@test "what a thread that ends frees of its cache was freed before, and is not told again" {
	for how in '' -static; do
		gcc -O1 $how -o ends "$S/ends.c" -lpthread 2>err || continue
		hook-heap -o told -- ./ends
		cat told
		free=$(awk -F'\t' '$2 == "free" || $2 == "cfree" { n += $1 } END { print n }' told)
		[ "$free" -ge 6400 ] && [ "$free" -le 6420 ]
	done
}
