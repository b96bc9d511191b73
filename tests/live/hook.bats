#!/usr/bin/env bats
# Functions of running programs detoured: every call counted, the program as it was.
# SPDX-License-Identifier: MIT OR Apache-2.0
# beside others

bats_require_minimum_version 1.5.0

load rights

setup() {
	ASSAY=$(realpath "${ASSAY:-$BATS_TEST_DIRNAME/../../build/src/cli/assay}")
	B=$(realpath "$(dirname "$ASSAY")/../..")
	W=$B/tests/workloads
	S=$BATS_TEST_DIRNAME/../workloads
	PATH=$B/tests/live:$PATH:/usr/sbin:/sbin
	cd "$BATS_TEST_TMPDIR" || return 1
	[ -x "$B/tests/live/hook-count" ] || skip 'only x86-64 programs can be patched'
	hook-count -o counts -- "$W/allocates" 1 >out 2>err || true
	[ -s counts ] || no_right err
}

teardown() {
	if [ -s pids ]; then
		xargs kill -9 <pids 2>/dev/null || true
	fi
}

# calls NAME: of all functions of that name in `counts`; but for those that a detach found inside,
# every call came back
calls() {
	awk -F'\t' -v name="$1" '$4 == name { n += $1; open += $1 - $2 }
		END { if (open < 0 || open > 20) exit 1; print n + 0 }' counts
}

# counted PROGRAM: what 1,000 rounds call more than none, by name
counted() {
	local name none
	declare -A none
	hook-count -o counts -- "$@" 0
	for name in malloc calloc realloc memalign posix_memalign free; do
		none[$name]=$(calls $name)
	done
	hook-count -o counts -- "$@" 1000
	for name in malloc calloc realloc memalign posix_memalign free; do
		echo -n "$name $(($(calls $name) - none[$name])) "
	done
}
GLIBC='malloc 3000 calloc 1000 realloc 2000 memalign 1000 posix_memalign 1000 free 6000 '

@test "every call is counted: dynamic, static and static-pie with glibc" {
	[ "$(counted "$W/allocates" | tail -1)" = "$GLIBC" ]
	for how in -static -static-pie; do
		gcc -O2 $how -o allocates "$S/allocates.c" 2>err || skip "gcc $how builds nothing here"
		[ "$(counted ./allocates | tail -1)" = "$GLIBC" ]
	done
}

@test "every call is counted: static and dynamic with musl, whose calloc calls malloc" {
	command -v musl-gcc || skip 'no musl-gcc on this machine'
	for how in -static -dynamic; do
		musl-gcc -O2 $how -o allocates "$S/allocates.c"
		[[ $(counted ./allocates | tail -1) == 'malloc 4000 calloc 1000 '* ]]
		[ "$(calls free)" = 6000 ]
	done
}

@test "a static jemalloc: its own functions, and what a Rust program asks of them" {
	command -v rustc || skip 'no rustc on this machine'
	[ -e /usr/lib/x86_64-linux-gnu/libjemalloc.a ] || skip 'no libjemalloc.a on this machine'
	cat >je.rs <<-'END'
		use std::alloc::{GlobalAlloc, Layout};
		use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
		struct Je;
		static N: [AtomicU64; 3] = [AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)];
		extern "C" {
		    fn mallocx(size: usize, flags: i32) -> *mut u8;
		    fn rallocx(p: *mut u8, size: usize, flags: i32) -> *mut u8;
		    fn sdallocx(p: *mut u8, size: usize, flags: i32);
		}
		fn flags(l: Layout) -> i32 { l.align().trailing_zeros() as i32 }
		unsafe impl GlobalAlloc for Je {
		    unsafe fn alloc(&self, l: Layout) -> *mut u8 { N[0].fetch_add(1, Relaxed); mallocx(l.size(), flags(l)) }
		    unsafe fn realloc(&self, p: *mut u8, l: Layout, n: usize) -> *mut u8 { N[1].fetch_add(1, Relaxed); rallocx(p, n, flags(l)) }
		    unsafe fn dealloc(&self, p: *mut u8, l: Layout) { N[2].fetch_add(1, Relaxed); sdallocx(p, l.size(), flags(l)) }
		}
		#[global_allocator]
		static A: Je = Je;
		fn main() {
		    let t: Vec<_> = (0..4).map(|k| std::thread::spawn(move || {
		        let mut m = std::collections::BTreeMap::new();
		        for i in 0..20000u64 { m.entry(i * k % 977).or_insert_with(Vec::new).push(i.to_string()); }
		        m.len()
		    })).collect();
		    let n: usize = t.into_iter().map(|t| t.join().unwrap()).sum();
		    let c: Vec<u64> = (0..3).map(|i| N[i].load(Relaxed)).collect();
		    // what formatting and printing allocate comes behind: the buffer of stdout
		    eprintln!("{} {} {} {}", c[0], c[1], c[2], n);
		}
	END
	rustc -O je.rs -o je -l static=jemalloc -L /usr/lib/x86_64-linux-gnu -l pthread -l m -l stdc++ ||
		skip 'rustc cannot link jemalloc here'
	hook-count -o counts -- ./je 2>own
	read -r alloc realloc dealloc _ <own
	[ "$alloc" -gt 80000 ]
	# Vec<u64> of the counts themselves is allocated after the first was read
	[ $(($(calls mallocx) - alloc)) -le 3 ] && [ "$(calls mallocx)" -ge "$alloc" ]
	[ "$(calls rallocx)" = "$realloc" ]
	[ $(($(calls sdallocx) - dealloc)) -le 6 ] && [ "$(calls sdallocx)" -ge "$dealloc" ]
	grep -q 'jemalloc$' counts
}

@test "rustc with its own jemalloc: as many calls as probes of the kernel count" {
	rustc=$(rustc --print sysroot 2>/dev/null)/bin/rustc
	[ -x "$rustc" ] || skip 'no rustc on this machine'
	[ "$(id -u)" = 0 ] || skip 'needs root'
	command -v perf || skip 'no perf on this machine'
	events=/sys/kernel/tracing/uprobe_events
	[ -w "$events" ] || skip 'no tracefs here'
	hook-count -g 1 -o counts -- "$rustc" --version
	grep -q "malloc.$(realpath "$rustc")" counts || skip 'this rustc has no allocator of its own'
	echo 'fn main() { println!("{:?}", (0..9).map(|i| i.to_string()).collect::<Vec<_>>()); }' >s.rs
	names='malloc calloc realloc aligned_alloc posix_memalign free'
	# the offset in the file of each, from the segment that holds it
	for name in $names; do
		echo "p:hooktest$$/$name $(realpath "$rustc"):$(python3 - "$rustc" $name <<-'END'
			import subprocess, sys
			run = lambda *a: [l.split() for l in subprocess.run(a, capture_output=True, text=True).stdout.splitlines()]
			at = next(int(w[0], 16) for w in run("nm", "-D", sys.argv[1]) if w[-1] == sys.argv[2])
			for w in run("readelf", "-lW", sys.argv[1]):
			    if w and w[0] == "LOAD" and int(w[2], 16) <= at < int(w[2], 16) + int(w[4], 16):
			        print(hex(at - int(w[2], 16) + int(w[1], 16)))
		END
		)" >>$events || skip 'the kernel takes no probe'
	done
	# what it finds of an earlier run changes what it allocates
	env -i PATH="$PATH" "$rustc" --emit=metadata -o s1.rmeta s.rs
	env -i PATH="$PATH" perf stat -x, -o probed -e "hooktest$$:*" "$rustc" --emit=metadata -o s1.rmeta s.rs
	for name in $names; do
		echo "-:hooktest$$/$name" >>$events
	done
	env -i PATH="$PATH" hook-count -o counts -- "$rustc" --emit=metadata -o s1.rmeta s.rs
	for name in $names; do
		echo "$name: $(calls $name), probes $(grep ":$name," probed)"
		[ "$(calls $name)" = "$(grep ":$name," probed | cut -d, -f1)" ]
	done
	[ "$(calls malloc)" -gt 10000 ]
}

# same COMMAND…: output, errors and status with and without
same() {
	local a=0 b=0
	"$@" >bare.1 2>bare.2 </dev/null || a=$?
	hook-count -o counts -- "$@" >with.1 2>with.2 </dev/null || b=$?
	cmp bare.1 with.1
	cmp bare.2 with.2
	[ $a = $b ]
	[ "$(awk '{ n += $1 } END { print n }' counts)" -gt 0 ]
}

@test "programs print what they print, and end as they end" {
	same python3 -c 'import json, re, sys; print(json.dumps({str(i): [i] * i for i in range(300)})); sys.exit(7)'
	same python3 -c 'import threading
t = [threading.Thread(target=lambda: [bytes(i) for i in range(3000)]) for _ in range(8)]
[x.start() for x in t]; [x.join() for x in t]'
	same perl -e 'my %h; $h{$_ % 977} .= $_ for 1 .. 20000; print map { "$_ $h{$_}\n" } sort keys %h; kill 9, $$'
	same sort -u "$BATS_TEST_FILENAME"
	same ls -l /nowhere /usr/bin
	same bash -c 'for i in $(seq 20); do echo $(echo $i | tr 0-9 a-j); done; exit 3'
	same tar cf - -C "$BATS_TEST_DIRNAME" .
	same gcc -O2 -S -o - "$S/allocates.c"
	command -v git && same git --no-pager -C "$BATS_TEST_DIRNAME" log -n 40 --stat
}

@test "put into a running program and taken out: every byte as before, 20 times" {
	"$W/allocates" 0 20 >out &
	echo $! >pids
	until_running
	hook-count -n 20 -s 0.02 -p "$(cat pids)" >counts
	[ "$(grep -c '^#.*before 0, patched [1-9][0-9]*, after 0$' counts)" = 20 ]
	[ "$(calls malloc)" -gt 100 ]
}

# the program that is named in pids, and no longer the shell that becomes it
until_running() {
	for _ in $(seq 600); do
		[ "$(readlink "/proc/$(cat pids)/exe")" = "$(readlink "/proc/$$/exe")" ] || break
		sleep 0.05
	done
	sleep 0.3
}

# in_and_out CHECK -n CYCLES -s SECONDS: hook-count until CHECK holds of `counts`: how often a program comes to what
# is looked for while it is counted depends on who else runs
in_and_out() {
	local check=$1
	for _ in $(seq 20); do
		hook-count "${@:2}" -p "$(cat pids)" >counts || return
		eval "$check" && return
	done
	return 1
}

# ended: the program was told to end, and did well
ended() {
	kill -TERM "$(cat pids)"
	wait "$(cat pids)"
	[ "$(cat out)" = fine ]
}

@test "threads, forks, vforks, signals, coroutines and blocked system calls survive" {
	"$W/rough" 0 >out 2>err &
	echo $! >pids
	until_running
	in_and_out '[ "$(calls malloc)" -gt 1000 ]' -n 10 -s 0.05
	ended
}

@test "the same, from the start of the program" {
	hook-count -o counts -- "$W/rough" 2 >out 2>err
	[ "$(cat out)" = fine ]
	[ "$(calls malloc)" -gt 1000 ]
}

@test "a thread that stands in the first bytes, or was interrupted there, goes on in the copy" {
	"$W/windows" 0 >out &
	echo $! >pids
	until_running
	in_and_out "grep -q 'moved [1-9]' counts" -n 20 -s 0.02
	ended
}

@test "a program that job control has stopped stays stopped" {
	"$W/allocates" 0 20 >out &
	echo $! >pids
	until_running
	kill -STOP "$(cat pids)"
	sleep 0.1
	hook-count -s 0.02 -p "$(cat pids)" >counts
	grep -q '^State:.*T (stopped)' "/proc/$(cat pids)/status"
	kill -CONT "$(cat pids)"
	hook-count -s 0.1 -p "$(cat pids)" >counts
	[ "$(calls malloc)" -gt 10 ]
}

# told NAME [PROCESS]: events of that function, of processes of that name
told() {
	awk -F'\t' -v name="$1" -v process="${2:-}" '$1 == "process" { this = $3; next }
		$2 == name && (process == "" || this == process) { n += $1 } END { print n + 0 }' told
}

# whole: no event was dropped, and every stack is complete
whole() {
	awk -F'\t' '$1 == "process" && ($6 != "cut 0" || $7 != "dropped 0" || $9 != "bad 0") { print; bad = 1 }
		END { exit bad }' told
}

@test "the runtime tells every call, with a whole stack" {
	hook-heap -o told -- "$W/allocates" 1000
	[ "$(told calloc) $(told realloc) $(told memalign) $(told posix_memalign) $(told free)" = \
		'1000 2000 1000 1000 6000' ]
	[ "$(told malloc)" -ge 3000 ] && [ "$(told malloc)" -le 3010 ]
	whole
}

@test "what exec brings is followed, and each program told apart" {
	same_heap gcc -O2 -o allocates "$S/allocates.c"
	for program in gcc cc1 as collect2; do
		[ "$(told malloc $program)" -gt 10 ] || {
			cat told
			false
		}
	done
	./allocates 3
}

# same_heap COMMAND…
same_heap() {
	local a=0 b=0
	"$@" >bare.1 2>bare.2 </dev/null || a=$?
	hook-heap -o told -- "$@" >with.1 2>with.2 </dev/null || b=$?
	cmp bare.1 with.1
	cmp bare.2 with.2
	[ $a = $b ]
}

@test "exec that fails, and fails in a vfork child, is no end of the matter" {
	cat >tries.py <<-'END'
		import os, subprocess
		for i in range(5):
		    try: os.execv("/nowhere", ["x"])
		    except OSError: pass
		    try: subprocess.run(["/nowhere"])
		    except OSError: pass
		print(subprocess.run(["sh", "-c", "exit 3"]).returncode, flush=True)
		os.environ["PATH"] = "/nowhere:/tmp:" + os.environ["PATH"]
		os.execvp("sh", ["sh", "-c", "echo last; exit 4"])
	END
	same_heap python3 tries.py
	[ "$(tail -1 with.1)" = last ]
	[ "$(grep -c '^process.*	sh	' told)" -ge 1 ]
}

@test "functions of modules that dlopen brings are seen, as often as it does" {
	cat >plug.c <<-'END'
		#include <stddef.h>
		static char a[1 << 16];
		static size_t used;
		void *je_malloc(size_t n) { n = (n + 15) & ~15ul; if (used + n > sizeof a) used = 0; used += n; return a + used - n; }
		void je_free(void *p) { if (p == a) used = 0; __asm__ volatile("nop; nop; nop"); }
	END
	cat >dl.c <<-'END'
		#include <dlfcn.h>
		#include <pthread.h>
		#include <stdio.h>
		#include <stdlib.h>
		static void *churn(void *x)
		{
			for (int i = 0; i < 5000; i++) { char *volatile p = malloc(i % 500 + 1); free(p); }
			return x;
		}
		int main(int argc, char **argv)
		{
			pthread_t t;
			pthread_create(&t, 0, churn, 0);
			for (int i = 0; i < atoi(argv[1]); i++) {
				void *h = dlopen("./plug.so", RTLD_NOW);
				void *(*m)(size_t) = dlsym(h, "je_malloc");
				void (*f)(void *) = dlsym(h, "je_free");
				for (int k = 0; k < 100; k++)
					f(m(32));
				dlclose(h);
			}
			pthread_join(t, 0);
			return 0;
		}
	END
	gcc -O2 -shared -fPIC -o plug.so plug.c
	gcc -O2 -o dl dl.c -ldl -lpthread
	hook-heap -o told -- ./dl 20
	[ "$(told je_malloc) $(told je_free)" = '2000 2000' ]
	[ "$(told malloc)" -ge 5000 ]
	whole
}

@test "the runtime survives what is rough, from the start and attached" {
	hook-heap -o told -- "$W/rough" 2 >out 2>err
	[ "$(cat out)" = fine ]
	"$W/rough" 0 >out 2>err &
	echo $! >pids
	until_running
	hook-heap -o told -s 1 -p "$(cat pids)"
	[ "$(told malloc)" -gt 100 ]
	ended
}

@test "what cannot be patched is said, and runs" {
	run -2 --separate-stderr hook-count -p 999999999
	[[ $stderr == *'no such process'* || $stderr == *'process 999999999'* ]]
	run -127 --separate-stderr hook-count -- ./nowhere
	[[ $stderr == *'ended before it ran'* ]]
	printf '.globl _start\n_start: mov $60, %%eax; mov $9, %%edi; syscall\n' >tiny.s
	gcc -nostdlib -static -o tiny tiny.s
	run -9 --separate-stderr hook-count -- ./tiny
	[[ $stderr == *'no function of an allocator'* ]]
	if command -v strace; then
		strace -o /dev/null "$W/allocates" 0 20 >out &
		echo $! >pids
		sleep 0.5
		pid=$(pgrep -P "$(cat pids)")
		run -2 --separate-stderr hook-count -p "$pid"
		[[ $stderr == *"is being traced by process $(cat pids)"* ]]
		echo "$pid" >>pids
	fi
}
