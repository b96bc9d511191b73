#!/usr/bin/env bats
# Allocators that were linked into a program: each call counted, with names and without.
# SPDX-License-Identifier: MIT OR Apache-2.0

bats_require_minimum_version 1.5.0
load hook

setup() {
	need_hooks
	M=/usr/lib/x86_64-linux-gnu
}

# calls FUNCTION…: how often these functions were called, all together
calls() {
	awk -F'\t' -v names=" $* " 'NF == 3 && index(names, " " $2 " ") { n += $1 } END { print n + 0 }' told
}

# as_with_names FIELDS PROGRAM ARGUMENT…: the stripped one tells the same of these sums
as_with_names() {
	local fields=$1 program=$2 named
	shift 2
	hook-heap -o told -- "./$program" "$@" >bare
	named=$(sums | cut -d' ' -f"$fields")
	strip -o "$program-stripped" "$program"
	hook-heap -o told -- "./$program-stripped" "$@" >with
	cmp bare with
	cat told
	[ "$named" = "$(sums | cut -d' ' -f"$fields")" ]
	whole
}

@test "glibc, static and static-pie, stripped" {
	for how in -static -static-pie; do
		gcc -O2 $how -o forms "$S/forms.c" 2>err || skip "gcc $how builds nothing here"
		# its pvalloc is seen as the memalign of whole pages that it calls
		as_with_names 1,3 forms 300
		[ "$(calls malloc free)" -ge 3000 ]
		[ "$(calls realloc)" -ge 300 ]
		[ "$(calls calloc)" -ge 300 ]
	done
}

@test "what a thread that ends frees of its cache is not told of a stripped program either" {
	gcc -O1 -static -s -o ends "$S/ends.c" -lpthread 2>err || skip 'gcc -static builds nothing here'
	hook-heap -o told -- ./ends
	cat told
	[ "$(calls free)" -ge 6400 ] && [ "$(calls free)" -le 6420 ]
}

@test "musl, which has neither symbols nor call-frame information then" {
	command -v musl-gcc || skip 'no musl-gcc on this machine'
	musl-gcc -O2 -static -o forms "$S/forms.c"
	as_with_names 1-5 forms 300
	[ "$(calls malloc calloc realloc memalign posix_memalign)" = "$(sums | cut -d' ' -f1)" ]
}

# exactly PROGRAM: allocations, frees and bytes are those that the program counts of itself, but for those that
# its C library makes beside it, which are the same however much it does
exactly() {
	local n len allocs frees reallocs bytes beside='' now
	for n in 500 3000; do
		hook-heap -o told -- "./$1" $n >out
		cat out told
		whole
		read -r len allocs frees reallocs bytes <out
		[ "$allocs" -ge $n ] && [ "$frees" -ge $n ]
		now=$(awk -F'\t' -v a=$((allocs + reallocs)) -v f="$frees" -v b="$bytes" '
			$1 == "process" { split($4, events, " "); split($5, complete, " ") }
			$1 == "sum" { print $2 - a, events[2] - complete[2] - f, $3 - b }' told)
		echo "$1 $n: beside it $now"
		[ "${now%% *}" -ge 0 ] && [ "${now%% *}" -le 40 ]
		[ -z "$beside" ] || [ "$beside" = "$now" ]
		beside=$now
	done
}

need_rustc() {
	command -v rustc || skip 'no rustc on this machine'
}

# own OPTION…: the Rust program that counts what it asks for
own() {
	rustc --edition 2021 -O -o own "$S/own_allocator.rs" "$@" 2>err
}

@test "jemalloc in a Rust program, its names behind a prefix or not: exact by its own count" {
	[ -e $M/libjemalloc.a ] || skip 'no libjemalloc.a on this machine'
	need_rustc
	own -L $M -l static:+verbatim=libjemalloc.a -l pthread -l dl -l m -l stdc++ ||
		{ cat err; skip 'jemalloc cannot be linked statically here'; }
	exactly own
	nm --defined-only -g $M/libjemalloc.a 2>/dev/null | awk 'NF == 3 && $2 ~ /[TW]/ && $3 !~ /^_Z/ { print $3, "_rjem_" $3 }' |
		sort -u >names
	objcopy --redefine-syms=names $M/libjemalloc.a libprefixed.a
	own --cfg prefixed -L . -l static:+verbatim=libprefixed.a -l pthread -l dl -l m -l stdc++
	nm own | grep -q ' T _rjem_mallocx'
	run ! grep -w malloc <(nm --defined-only own)
	exactly own
	strip own
	exactly own
	[ "$(calls mallocx malloc)" -ge 3000 ]
}

@test "a stripped jemalloc in the place of the C library's, in a Rust program" {
	[ -e $M/libjemalloc.a ] || skip 'no libjemalloc.a on this machine'
	need_rustc
	own -L $M -l static:+verbatim=libjemalloc.a -l pthread -l dl -l m -l stdc++ ||
		{ cat err; skip 'jemalloc cannot be linked statically here'; }
	strip own
	exactly own
}

@test "tcmalloc in a Rust program, with names and without: exact by its own count" {
	[ -e $M/libtcmalloc_minimal.a ] || skip 'no libtcmalloc_minimal.a on this machine'
	need_rustc
	own --cfg plain -L $M -C link-arg=-Wl,--whole-archive -C link-arg=-l:libtcmalloc_minimal.a \
		-C link-arg=-Wl,--no-whole-archive -C link-arg=-lstdc++ ||
		{ cat err; skip 'tcmalloc cannot be linked statically here'; }
	exactly own
	strip own
	exactly own
}

@test "mimalloc in a Rust program, with names and without: exact by its own count" {
	# Debian has it as a library only: ASSAY_MIMALLOC is an object or archive of one built elsewhere
	local lib=${ASSAY_MIMALLOC:-$(ls $M/libmimalloc.a $M/mimalloc*/libmimalloc*.a 2>/dev/null | head -1)}
	[ -e "$lib" ] || skip 'no static mimalloc on this machine (ASSAY_MIMALLOC names none)'
	need_rustc
	own --cfg mi -C link-arg="$lib"
	exactly own
	strip own
	exactly own
}

@test "glibc and musl, static, in a Rust program, with names and without: exact by its own count" {
	need_rustc
	own --cfg plain -C target-feature=+crt-static || { cat err; skip 'no static C library for Rust here'; }
	exactly own
	strip own
	exactly own
	command -v musl-gcc || skip 'no musl-gcc on this machine'
	rustc --edition 2021 -O -C panic=abort -C lto=fat -o libown.a "$S/own_core.rs" 2>err ||
		{ cat err; skip 'this rustc makes no program without std'; }
	cat >main.c <<-'END'
		#include <stdio.h>
		#include <stdlib.h>
		size_t run(size_t n, unsigned long *ret);
		int main(int argc, char **argv)
		{
			unsigned long c[4];
			size_t left = run(argc > 1 ? strtoul(argv[1], NULL, 0) : 1000, c);
			printf("%zu %lu %lu %lu %lu\n", left, c[0], c[1], c[2], c[3]);
			return 0;
		}
	END
	musl-gcc -O2 -static -o own-musl main.c libown.a
	exactly own-musl
	strip own-musl
	exactly own-musl
}

# operators_of NAME OPTION…: a C++ program with that allocator tells the same with names and without
operators_of() {
	local name=$1
	shift
	g++ -std=c++17 -O1 -o "ops-$name" "$S/operators.cpp" "$@" || return 77
	as_with_names 1-5 "ops-$name" 100
	grep -q 'caught 100, wrong 0' with
	# all forms of new (jemalloc's aligned ones call its aligned_alloc), and the exception that libstdc++ allocates; all forms of delete
	[ "$(sums | cut -d' ' -f1)" -ge 900 ]
	[ "$(calls _Znwm _Znam)" -ge 200 ]
	run ! grep '^# not seen' told
}

@test "operator new of a stripped jemalloc, tcmalloc and mimalloc, which throws, is seen" {
	local n=0
	command -v g++ || skip 'no g++ on this machine'
	if [ -e $M/libjemalloc.a ]; then
		operators_of je -l:libjemalloc.a -lpthread -ldl -lm
		operators_of je-static -static -l:libjemalloc.a -lpthread -ldl -lm
		n=$((n + 2))
	fi
	if [ -e $M/libtcmalloc_minimal.a ]; then
		operators_of tc -Wl,--whole-archive -l:libtcmalloc_minimal.a -Wl,--no-whole-archive -lpthread
		n=$((n + 1))
	fi
	if [ -e "${ASSAY_MIMALLOC_CXX:-}" ]; then
		operators_of mi "$ASSAY_MIMALLOC_CXX" -lpthread
		n=$((n + 1))
	fi
	[ $n -gt 0 ] || skip 'no static allocator on this machine'
}

@test "what was found is kept; kept bytes that are damaged cost a new search, and nothing else" {
	gcc -O2 -static -s -o forms "$S/forms.c" 2>err || skip 'gcc -static builds nothing here'
	find_all() {
		hook-heap -o told -- ./forms 100 >with
		grep -q '100 rounds' with
		grep -c . <(ls cache/assay/allocators)
		awk -F'\t' 'NF == 3 { print $1, $2 }' told
	}
	find_all >first
	grep -q malloc first
	kept=$(ls cache/assay/allocators/*)
	cp "$kept" whole
	# written once: the second one has it from there
	touch -d '2001-01-01' "$kept"
	strace -f -e trace=execveat -o traced hook-heap -o told -- ./forms 100 >with 2>err || true
	if [ -s traced ]; then run ! grep -q execveat traced; fi
	find_all | diff first -
	cmp "$kept" whole
	for damage in 'truncate -s 100' 'truncate -s -1' 'truncate -s +9' 'cp /usr/bin/env' 'cp told'; do
		case $damage in
		cp*) $damage "$kept" ;;
		*) $damage "$kept" ;;
		esac
		find_all | diff first -
		cmp "$kept" whole
	done
	# another program is another one
	printf '\1' | dd of=forms bs=1 seek=$(($(stat -c %s forms) / 2)) conv=notrunc 2>/dev/null || true
	hook-heap -o told -- ./forms 1 >with || true
	[ "$(ls cache/assay/allocators | wc -l)" -le 2 ]
	# where nothing can be kept it is found all the same
	XDG_CACHE_HOME=/proc/nowhere hook-heap -o told -- ./forms 100 >with
	awk -F'\t' 'NF == 3 { print $1, $2 }' told | diff <(tail -n +2 first) -
}

@test "programs of Debian that are static and stripped" {
	local n=0
	for program in busybox bash-static sash zsh-static; do
		path=$(command -v $program) || continue
		readelf -SW "$path" | grep -q '\.symtab\|\.interp' && continue
		n=$((n + 1))
		case $program in
		sash) set -- -c 'echo one two' ;;
		*) set -- -c 'i=0; while [ $i -lt 200 ]; do a="$a$i"; i=$((i + 1)); done; echo ${#a} $a' ;;
		esac
		[ $program != busybox ] || set -- sh "$@"
		"$path" "$@" >bare
		hook-heap -o told -- "$path" "$@" >with
		cmp bare with
		cat told
		[ "$(calls malloc)" -ge 4 ]
		# nothing is given back that was not seen before
		awk -F'\t' '$1 == "process" && $9 != "bad 0" { exit 1 }' told
		"$ASSAY" heap -q -o x.assay -- "$path" "$@" >with
		cmp bare with
		"$ASSAY" report --format json x.assay >report.json
		python3 - <<-'END'
			import json
			t = json.load(open("report.json"))["trust"]
			assert t["unmatched_allocs"] == t["dropped"] == 0, t
			# a record that was never written is one of an allocation, perhaps
			assert t["unmatched_frees"] <= t["unfinished"], t
			assert {l["layer"] for l in t["layers"] if l["function"] == "malloc"} == {"signature"}, t
		END
	done
	[ $n -gt 0 ] || skip 'no static program of Debian on this machine'
}

@test "an allocator's function that cannot be identified is said, where its blocks are freed" {
	gcc -O2 -static -fno-builtin -fno-inline -o pools -x c - <<-'END' 2>err || skip 'gcc -static builds nothing here'
		#include <errno.h>
		#include <stddef.h>
		#include <stdint.h>
		#include <stdlib.h>
		#include <string.h>
		#include <sys/mman.h>
		#include <unistd.h>
		/* blocks of powers of two behind their class; a pool has lists of its own, and gives from them */
		struct pool { void *list[64]; char *at, *end; };
		static struct pool common;
		static __attribute__((noinline)) void more(struct pool *p, size_t bytes)
		{
			size_t n = bytes < 1 << 20 ? 1 << 20 : bytes;
			p->at = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			p->end = p->at == MAP_FAILED ? (p->at = NULL) : p->at + n;
		}
		__attribute__((noinline)) void *pool_get(struct pool *p, size_t bytes)
		{
			unsigned k = 5;
			void **b;
			if (bytes > 1ull << 40) { errno = ENOMEM; return NULL; }
			while ((1ull << k) < bytes + 16) k++;
			if ((b = p->list[k])) { p->list[k] = *b; return b; }
			if ((size_t)(p->end - p->at) < 1ull << k) more(p, 1ull << k);
			if (!p->at) return NULL;
			b = (void **)(p->at + 16);
			((size_t *)p->at)[0] = k;
			p->at += 1ull << k;
			return b;
		}
		void *malloc(size_t n)
		{
			unsigned k = 5;
			void **b;
			if (n > 1ull << 40) { errno = ENOMEM; return NULL; }
			while ((1ull << k) < n + 16) k++;
			if ((b = common.list[k])) { common.list[k] = *b; return b; }
			return pool_get(&common, n);
		}
		void free(void *v)
		{
			if (!v) return;
			size_t k = ((size_t *)v)[-2];
			*(void **)v = common.list[k];
			common.list[k] = v;
		}
		void *calloc(size_t n, size_t m)
		{
			size_t b;
			void *p = __builtin_mul_overflow(n, m, &b) ? NULL : malloc(b);
			return p ? memset(p, 0, b) : NULL;
		}
		void *realloc(void *v, size_t n)
		{
			void *p = malloc(n);
			if (p && v) {
				size_t old = (1ull << ((size_t *)v)[-2]) - 16;
				memcpy(p, v, old < n ? old : n);
				free(v);
			}
			return p;
		}
		int main(void)
		{
			static struct pool own;
			for (int i = 0; i < 100; i++) {
				void *volatile a = pool_get(&own, 40), *volatile b = malloc(50);
				free(b);
				if (i < 70) free(a);
			}
			return write(1, "done\n", 5) != 5;
		}
	END
	strip pools
	"$ASSAY" heap -q -o x.assay -- ./pools >with
	[ "$(cat with)" = 'done' ]
	COLUMNS=80 "$ASSAY" report --color never x.assay >report
	cat report
	tr -s ' \n' ' ' <report | grep -F '70 blocks freed or changed whose allocation was not seen: the allocator in pools has functions that could not be identified'
	tr -s ' \n' ' ' <report | grep -F 'keep the program'
	"$ASSAY" report --format json x.assay | python3 -c 'import json, sys; assert json.load(sys.stdin)["trust"]["unmatched_frees"] == 70'
}

@test "a stripped program that does not come to its main is said to be unseen" {
	gcc -O2 -static -o never -x c - <<-'END' 2>err || skip 'gcc -static builds nothing here'
		#include <stdlib.h>
		#include <unistd.h>
		__attribute__((constructor)) static void first(void) { free(malloc(10)); _exit(3); }
		int main(void) { return 0; }
	END
	strip never
	run -3 --separate-stderr hook-heap -o told -- ./never
	[[ $stderr == *"glibc's malloc"*'did not come to its main'* ]]
}
