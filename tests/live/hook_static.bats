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

@test "jemalloc in a Rust program, by its own count" {
	[ -e $M/libjemalloc.a ] || skip 'no libjemalloc.a on this machine'
	command -v rustc || skip 'no rustc on this machine'
	rustc -O -o own "$S/own_allocator.rs" -L $M -l static:+verbatim=libjemalloc.a \
		-l pthread -l dl -l m -l stdc++ 2>err || { cat err; skip 'jemalloc cannot be linked statically here'; }
	for strip in true 'strip own'; do
		$strip
		hook-heap -o told -- ./own 3000 >out
		read -r len allocs frees reallocs bytes <out
		cat out told
		[ "$len" = 2000 ]
		# beside them one that the thread's start makes, before it counts
		for pair in "mallocx $allocs" "sdallocx $frees" "rallocx $reallocs"; do
			n=$(calls "${pair% *}")
			[ "$n" -ge "${pair#* }" ] && [ "$n" -le $((${pair#* } + 4)) ]
		done
		whole
	done
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
