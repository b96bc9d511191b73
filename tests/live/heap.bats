#!/usr/bin/env bats
# assay heap on real programs: exact counts, output and status as without it, valid sessions whatever ends.
# SPDX-License-Identifier: MIT OR Apache-2.0

bats_require_minimum_version 1.5.0

load heap

setup() {
	need_heap
}

teardown() {
	heap_clear
}

@test "a run: the peak, the counts, the functions, and what to do next" {
	gcc -g -O1 -o app -x c - <<-'END'
		#include <stdlib.h>
		#include <stdio.h>
		__attribute__((noinline)) void *keep(int n) { return malloc(n); }
		__attribute__((noinline)) void churn(int n) { for (int i = 0; i < n; i++) { char *volatile p = malloc(100); free(p); } }
		int main(void)
		{
			void *volatile kept[10];
			for (int i = 0; i < 10; i++) kept[i] = keep(100000);
			churn(500);
			for (int i = 0; i < 5; i++) free(kept[i]);
			return 4;
		}
	END
	run -4 --separate-stderr assay heap -- ./app
	[ -z "$output" ]
	[[ $stderr == *'peak '*'live at the end '*' allocations of '* ]]
	[[ $stderr == *keep* && $stderr == *trust* && $stderr == *'all stacks complete'* ]]
	[[ $stderr == *app.heap.assay* ]]
	[ -s app.heap.assay ] && [ ! -e app.heap.assay.partial ]
	[ "$(value app.heap.assay '[r["peak_bytes"] for r in d["rows"] if r["name"] == "keep"]')" = '[1000000]' ]
	[ "$(value app.heap.assay '[(r["live_bytes"], r["live_blocks"]) for r in d["rows"] if r["name"] == "keep"]')" = '[(500000, 5)]' ]
	[ "$(value app.heap.assay '[r["allocs"] for r in d["rows"] if r["name"] == "churn"]')" = '[500]' ]
	[ "$(value app.heap.assay 't["dropped"] + t["unmatched_frees"] + t["unmatched_allocs"] + t["truncated"]')" = 0 ]
	run -0 assay flame -o app.svg app.heap.assay
	run -0 assay report --measure allocs --tree app.heap.assay
	[[ $output == *churn* ]]
}

@test "statuses, usage, names" {
	run -7 assay heap -q -- sh -c 'exit 7'
	[ -s sh.heap.assay ]
	run -143 assay heap -q -- sh -c 'kill -TERM $$'
	run -137 assay heap -q -- sh -c 'kill -KILL $$'
	run -134 assay heap -q -- /usr/bin/python3 -c 'import os; os.abort()'
	run -127 --separate-stderr assay heap -- no-such-program
	[[ $stderr == "assay: "*no-such-program* ]]
	echo text >plain
	run -126 assay heap -- ./plain
	run -125 assay heap
	run -125 assay heap -p 1 -- true
	run -125 --separate-stderr assay heap -p 4194000
	[[ $stderr == "assay: "*4194000* ]]
	run -125 --separate-stderr assay heap -o missing/x.assay -- touch ran
	[ ! -e ran ]
	run -0 --separate-stderr assay heap -q -o p.assay echo -q --help
	[ "$output" = '-q --help' ]
	[ ! -e plain.heap.assay ] && [ -z "$(ls -- *.partial 2>/dev/null)" ]
}

@test "programs print what they print, and end as they end" {
	same /usr/bin/python3 -c 'import json, sys; print(json.dumps({str(i): [i] * i for i in range(300)})); sys.exit(7)'
	same bash -c 'for i in $(seq 20); do echo $(echo $i | tr 0-9 a-j); done; exit 3'
	same sort -u "$BATS_TEST_FILENAME"
	same gcc -O2 -S -o - "$S/allocates.c"
	if command -v git; then same git --no-pager -C "$BATS_TEST_DIRNAME" log -n 40 --stat; fi
	if command -v sqlite3; then
		same sqlite3 :memory: "create table t(a, b); with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) insert into t select i, 'x' || i from n; select count(*), sum(length(b)), max(b) from t; select b from t where a % 997 = 0 order by b;"
	fi
	if command -v rg; then same rg --sort path -n assay_ "$BATS_TEST_DIRNAME/../../include"; fi
	if command -v fdfind; then same fdfind -j1 bats "$BATS_TEST_DIRNAME"; fi
}

@test "rustc with its own jemalloc: as many calls as counted another way" {
	rustc=$(rustc --print sysroot 2>/dev/null)/bin/rustc
	[ -x "$rustc" ] || skip 'no rustc on this machine'
	echo 'fn main() { println!("{:?}", (0..9).map(|i| i.to_string()).collect::<Vec<_>>()); }' >s.rs
	env -i PATH="$PATH" "$rustc" --emit=metadata -o s.rmeta s.rs
	# functions that only the second counts are called by the first within another
	env -i PATH="$PATH" HOME="$PWD" "$ASSAY" heap -q -o rustc.assay -- "$rustc" --emit=metadata -o s.rmeta s.rs
	env -i PATH="$PATH" HOME="$PWD" hook-count -o counts -- "$rustc" --emit=metadata -o s.rmeta s.rs
	for name in malloc calloc realloc; do
		counted=$(awk -F'\t' -v name=$name '$4 == name && $0 !~ /libc\.so/ { n += $1 } END { print n + 0 }' counts)
		[ "$(value rustc.assay "sum(l['events'] for one in t['processes'] for l in one['layers'] if l['function'] == '$name' and 'libc' not in l['module'])")" = "$counted" ]
	done
	[ "$(value rustc.assay 't["dropped"] + t["unmatched_frees"] + t["unmatched_allocs"]')" = 0 ]
	[ "$(value rustc.assay 't["complete"] > 99 * t["truncated"]')" = True ]
}

@test "children are followed and told apart" {
	cat >forks.py <<-'END'
		import os, subprocess
		a = [bytes(1000) for i in range(1000)]
		if os.fork() == 0:
		    b = [bytes(2000) for i in range(2000)]
		    os._exit(0)
		os.wait()
		subprocess.run(["/bin/sh", "-c", "exec sort /dev/null"])
	END
	run -0 assay heap -q -o forks.assay -- /usr/bin/python3 forks.py
	[ "$(value forks.assay '{k: len(v) for k, v in p.items() if k in ("python3", "sort")}')" = "{'python3': 2, 'sort': 1}" ]
	[ "$(value forks.assay 'all(sum(l["events"] for l in one["layers"]) == one["events"] for one in t["processes"])')" = True ]
	[ "$(value forks.assay 'sorted(one["live_bytes"] > 2000 * 2000 for one in p["python3"])')" = '[False, True]' ]
}

@test "what a fork frees of its parent's is told as that, not as from before the recording" {
	gcc -O1 -o parted -x c - <<-'END'
		#include <stdlib.h>
		#include <sys/wait.h>
		#include <unistd.h>
		int main(void)
		{
			static void *volatile p[1000];
			for (int i = 0; i < 1000; i++)
				p[i] = malloc(100);
			if (fork() == 0) {
				for (int i = 0; i < 300; i++)
					free(p[i]);
				for (int i = 300; i < 307; i++)
					p[i] = realloc(p[i], 5000);
				_exit(0);
			}
			wait(NULL);
			for (int i = 0; i < 1000; i++)
				free(p[i]);
			return 0;
		}
	END
	run -0 assay heap -q -o parted.assay -- ./parted
	[ "$(value parted.assay 'sorted((o["unmatched_frees"], o["unmatched_reallocs"], o["inherited"]) for o in p["parted"])')" = \
		'[(0, 0, 0), (300, 7, 307)]' ]
	run -0 assay report parted.assay
	[[ $output = *'307 blocks freed or changed in a fork, allocated before it in the parent'* ]]
	[[ $output != *'from before the recording'* ]]
	[ "$(awk '{ if (length > w) w = length } END { print w }' <<<"$output")" -le 100 ]
}

@test "many forks that allocate, one after the other: nothing is lost" {
	cat >many.py <<-'END'
		import os
		for i in range(150):
		    if os.fork() == 0:
		        x = [bytes(1000 + k) for k in range(200)]
		        os._exit(0)
		    os.wait()
	END
	run -0 timeout 300 "$ASSAY" heap -q -o many.assay -- /usr/bin/python3 many.py
	[ "$(value many.assay 't["dropped"]')" = 0 ]
	[ "$(value many.assay 'len(p["python3"])')" = 151 ]
}

@test "a program that only allocates, on two threads, loses nothing" {
	gcc -O2 -pthread -o storm -x c - <<-'END'
		#include <pthread.h>
		#include <stdlib.h>
		static void *run(void *p)
		{
			for (int i = 0; i < 700000; i++) { char *volatile q = malloc(i % 300 + 1); free(q); }
			return p;
		}
		int main(void)
		{
			pthread_t t;
			pthread_create(&t, 0, run, 0);
			run(0);
			pthread_join(t, 0);
		}
	END
	run -0 timeout 300 "$ASSAY" heap -q -o storm.assay -- ./storm
	[ "$(value storm.assay 't["dropped"]')" = 0 ]
	[ "$(value storm.assay '(f["malloc"], f["free"]) >= (1400000, 1400000)')" = True ]
	[ "$(value storm.assay 't["allocs"] - t["frees"] == t["live_blocks"]')" = True ]
}

# crowd NAME LIMIT ARGUMENT…: recorded, with so many KiB of address space; the number of blocks as it says it itself
crowd() {
	local name=$1 limit=$2
	shift 2
	(ulimit -v "$limit" && timeout 240 "$ASSAY" heap -q -o "$name.assay" -- "$W/crowd" "$@" >own)
	cat own
}

@test "threads by the thousand, one after the other and at a time: nothing is lost" {
	for how in 'short 20000 8' 'alive 2000'; do
		crowd crowd unlimited $how
		[ "$(value crowd.assay 't["dropped"], t["unmatched_frees"], r["one_of_crowd"]["allocs"]')" = "(0, 0, $(cat own))" ]
		# of each thread two blocks, 256 bytes
		[ "$(value crowd.assay 'r["one_of_crowd"]["live_bytes"]')" = "$(($(cat own) * 32))" ]
	done
}

@test "fewer rings than threads: those of ended threads are waited for, what has none is counted" {
	# about 180 of them
	crowd few 4000000 both 150 2000
	[ "$(value few.assay 't["dropped"], t["unmatched_frees"], r["one_of_crowd"]["allocs"]')" = "(0, 0, $(cat own))" ]
	crowd none 4000000 alive 400
	[ "$(cat own)" = 3200 ]
	[ "$(value none.assay '0 < r["one_of_crowd"]["allocs"] < 3200')" = True ]
	[ "$(value none.assay 't["dropped"] >= 14 * (400 - r["one_of_crowd"]["allocs"] // 8)')" = True ]
}

@test "a static program with musl, and with glibc" {
	if command -v musl-gcc; then
		musl-gcc -O2 -static -o allocates "$S/allocates.c"
		same ./allocates 300
		[ "$(value same.assay '(f["malloc"], f["free"]) >= (900, 1800)')" = True ]
	fi
	gcc -O2 -static -o allocates "$S/allocates.c" || skip 'gcc -static builds nothing here'
	same ./allocates 300
	[ "$(value same.assay '(f["calloc"], f["realloc"]) in ((300, 600), (301, 600))')" = True ]
}

@test "attached to a running process, for a while, and it goes on" {
	"$W/allocates" 0 20 >out &
	echo $! >pids
	sleep 0.3
	run -0 --separate-stderr assay heap -p "$(cat pids)" --duration 500ms -o att.assay
	[[ $stderr == *attached* || $stderr == *'PID'* || $stderr == *allocates* ]]
	[ "$(value att.assay 'f["malloc"] > 100 and t["dropped"] == 0')" = True ]
	kill -0 "$(cat pids)"
	# again: nothing of the first is in the way
	run -0 assay heap -q -p "$(cat pids)" --duration 200ms -o att.assay
	[ "$(value att.assay 'f["malloc"] > 100')" = True ]
}

@test "--duration: the program goes on, and its status is passed on" {
	run -5 timeout 20 "$ASSAY" heap -q --duration 300ms -o d.assay -- /usr/bin/python3 -c '
import sys, time
end = time.time() + 1
while time.time() < end: x = [bytes(1000) for i in range(100)]
print("done")
sys.exit(5)'
	[ "$output" = done ]
	[ "$(value d.assay 't["allocs"] > 10')" = True ]
}

@test "what nothing points to at the end is leaked; --no-leaks does not look" {
	gcc -g -O1 -o lose -x c - <<-'END'
		#include <stdlib.h>
		#include <string.h>
		void *kept;
		__attribute__((noinline)) void lose(int n) { void *volatile p = malloc(n); memset((void *)p, 1, n); p = 0; }
		__attribute__((noinline)) void keep(int n) { kept = malloc(n); }
		int main(void)
		{
			for (int i = 0; i < 20; i++) lose(1000);
			keep(5000);
			return 0;
		}
	END
	run -0 assay heap -q -- ./lose
	assay report --measure leaked --format json lose.heap.assay >leaked.json
	# the last one may still stand in a register or on the stack
	python3 - <<-'END'
		import json
		rows = {r["name"]: r for r in json.load(open("leaked.json"))["rows"]}
		assert 19000 <= rows["lose"]["leaked_bytes"] <= 20000, rows
		assert rows.get("keep", {"leaked_bytes": 0})["leaked_bytes"] == 0, rows
	END
	run -3 assay heap -q --fail-if 'leaked > 10KiB' -- ./lose
	run -0 assay heap -q --no-leaks -- ./lose
	run ! assay report --measure leaked lose.heap.assay
}

@test "--fail-if: 3 where a budget is broken, the program's own status before it" {
	run -3 --separate-stderr assay heap -q --fail-if 'allocs > 100' -- "$W/allocates" 300
	[[ $stderr == *'allocs is '*', more than 100'* ]]
	run -0 --separate-stderr assay heap -q --fail-if 'peak > 1GiB' --fail-if 'allocs(in=one_round) < 2100' -- "$W/allocates" 300
	[ -z "$stderr" ]
	run -7 assay heap -q --fail-if 'allocs > 1' -- sh -c 'exit 7'
	run -125 --separate-stderr assay heap --fail-if 'peek > 1' -- touch ran
	[ ! -e ran ]
}

@test "--live: a line every second" {
	run -0 --separate-stderr assay heap --live -q -o l.assay -- "$W/allocates" 0 2
	[ "$(grep -c ' live .* peak ' <<<"$stderr")" = 1 ]
	[ "$(grep -cE '^ +[0-9.]+ m?s +.*B +[0-9,]+ ' <<<"$stderr")" -ge 2 ]
}

@test "Ctrl-C ends the program and keeps the recording" {
	env --default-signal=INT "$ASSAY" heap -q -o int.assay -- "$W/allocates" 0 20 >/dev/null &
	pid=$!
	sleep 1
	kill -INT $pid
	status=0
	wait $pid || status=$?
	[ $status = 130 ]
	[ "$(value int.assay 'f["malloc"] > 100')" = True ]
}

@test "the program killed at any instant: a valid session, whatever it was doing" {
	for after in 0 0.02 0.1 0.3; do
		timeout 20 "$ASSAY" heap -q -o k.assay -- sh -c 'sleep "$1"; kill -9 $$' sh $after || [ $? = 137 ]
		run -0 assay report k.assay
		"$W/allocates" 0 20 >/dev/null & # another one, attached
		echo $! >pids
		(sleep $after && kill -9 "$(cat pids)") &
		timeout 20 "$ASSAY" heap -q -p "$(cat pids)" -o a.assay 2>err || grep -qE 'no such process|no process|ended|memory map' err
		wait
	done
}

@test "assay killed: the program goes on as if nothing had been, and what was saved can be read" {
	for after in 0.2 1.6; do
		"$ASSAY" heap -q -o dead.assay -- "$W/allocates" 0 2.5 >out &
		pid=$!
		sleep $after
		child=$(pgrep -P $pid) || true
		kill -9 $pid
		wait $pid || true
		[ -n "$child" ] || continue
		until_true 15 [ ! -e "/proc/$child" ]
		grep -q '^[1-9]' out
		rm -f dead.assay.partial.old
	done
	[ "$(value dead.assay.partial 't["allocs"] > 100')" = True ]
}

@test "a full disk: what and where, and the program ran" {
	[ "$(id -u)" = 0 ] || skip 'needs root'
	mkdir mounted
	mount -t tmpfs -o size=16k tmpfs mounted 2>/dev/null || {
		rmdir mounted
		skip 'cannot mount'
	}
	run -125 --separate-stderr timeout 60 "$ASSAY" heap -o mounted/x.assay -- /usr/bin/python3 -c 'import json, re; print("ran")'
	[ "$output" = ran ]
	[[ $stderr == *mounted/x.assay*'No space left'* ]]
}

@test "what has no allocator runs, and the report says why nothing was seen" {
	printf '.globl _start\n_start: mov $60, %%eax; mov $9, %%edi; syscall\n' >tiny.s
	gcc -nostdlib -static -o tiny tiny.s
	run -9 --separate-stderr assay heap -- ./tiny
	[[ $stderr == *'no function of an allocator'* ]]
}

@test "limits of the program are its own: address space, file size, descriptors" {
	run -0 bash -c 'ulimit -v 2000000; exec "$0" heap -q -o v.assay -- /usr/bin/python3 -c "print(1)"' "$ASSAY"
	[ "$output" = 1 ]
	run -0 bash -c 'ulimit -f 2000; exec "$0" heap -q -o f.assay -- /usr/bin/python3 -c "print(1)"' "$ASSAY"
	[ "$output" = 1 ]
	run -0 bash -c 'ulimit -n 16; exec "$0" heap -q -o n.assay -- sh -c "ulimit -n"' "$ASSAY"
	[ "$output" = 16 ]
}

@test "what is rough survives: threads, forks, vforks, signals, coroutines" {
	run -0 --separate-stderr timeout 60 "$ASSAY" heap -q -o rough.assay -- "$W/rough" 2
	[ "$output" = fine ]
	[ "$(value rough.assay 't["allocs"] > 1000')" = True ]
}

@test "attached to what is rough: it goes on, and nothing is lost" {
	"$W/rough" 6 >out &
	echo $! >pids
	until_true 5 eval '(( $(ls "/proc/$(cat pids)/task" | wc -l) >= 6 ))'
	run -0 --separate-stderr timeout 60 "$ASSAY" heap -q -o rough.assay --duration 4 -p $!
	wait $!
	[ "$(cat out)" = fine ]
	[ "$(value rough.assay 't["allocs"] > 1000 and t["dropped"] == 0')" = True ]
}

@test "a server that is attached to while it works" {
	command -v redis-server || skip 'no redis-server on this machine'
	redis-server --port 0 --unixsocket "$PWD/r.sock" --save '' --appendonly no >/dev/null &
	echo $! >pids
	until_true 10 [ -S r.sock ]
	"$ASSAY" heap -q -o redis.assay --duration 2 -p "$(cat pids)" &
	sleep 0.7
	seq 2000 | sed 's/.*/SET key& value-&/' | redis-cli -s r.sock | sort | uniq -c >out
	wait $!
	grep -q '2000 OK' out
	[ "$(redis-cli -s r.sock get key77)" = value-77 ]
	[ "$(value redis.assay 't["allocs"] > 4000 and t["dropped"] == 0')" = True ]
	redis-cli -s r.sock shutdown nosave || true
}
