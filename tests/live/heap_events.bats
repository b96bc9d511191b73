#!/usr/bin/env bats
# assay heap --events: every call, in an order whose replay is what the sums say, also of what ended badly.
# SPDX-License-Identifier: MIT OR Apache-2.0

bats_require_minimum_version 1.5.0

load heap

setup() {
	need_heap
	sed -n '/^```python/,/^```$/p' "$BATS_TEST_DIRNAME/../../docs/formats/exports.md" | grep -v '^```' >replay.py
}

teardown() {
	heap_clear
}

# A call of each kind by several threads, which pass blocks to each other: grown and freed elsewhere, failed, freed by realloc.
busy_program() {
	gcc -g -O1 -pthread -o busy -x c - <<-'END'
		#define _GNU_SOURCE
		#include <pthread.h>
		#include <stdatomic.h>
		#include <stdlib.h>
		#include <string.h>
		#include <sys/mman.h>
		#include <unistd.h>
		enum { THREADS = 4, SLOTS = 256 };
		static _Atomic(char *) slot[SLOTS];
		static unsigned next(unsigned *s) { return *s = *s * 1664525u + 1013904223u, *s >> 8; }
		__attribute__((noinline)) static void fails(char **p)
		{
			volatile size_t huge = (size_t)1 << 62;
			char *q = malloc(huge);
			if (q || realloc(*p, huge)) abort();
		}
		static void *work(void *arg)
		{
			unsigned s = (unsigned)(long)arg;
			char name[16] = "worker 0";
			name[7] += s;
			pthread_setname_np(pthread_self(), name);
			for (int i = 0; i < 30000; i++) {
				char *p = slot[next(&s) % SLOTS];
				unsigned at = next(&s) % SLOTS, n = 1 + next(&s) % 3000;
				p = atomic_exchange(&slot[at], NULL);
				if (!p) p = malloc(n);
				else if (i % 3 == 0) p = realloc(p, n);
				else if (i % 1000 == 1) fails(&p);
				else if (i % 1000 == 4) { volatile size_t none = 0; p = realloc(p, none); }
				else { free(p); p = i % 2 ? calloc(n, 2) : NULL; }
				free(atomic_exchange(&slot[at], p));
			}
			return NULL;
		}
		int main(void)
		{
			pthread_t t[THREADS];
			char *m = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			m = mremap(m, 1 << 20, 3 << 20, MREMAP_MAYMOVE);
			for (long i = 0; i < THREADS; i++) pthread_create(&t[i], NULL, work, (void *)(i + 1));
			for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
			munmap(m, 1 << 20);
			return 0;
		}
	END
}

# log NAME: NAME.assay's events into log, and their kinds counted into the words of k
log() {
	assay export --to events -o - "$1.assay" >log
	tail -1 log | grep -q '"damaged":0,"complete":true}$'
	kinds=$(grep -o '^{"kind":"[a-z_]*' log | cut -d'"' -f4 | sort | uniq -c | awk '{ printf "%s=%d ", $2, $1 }')
}

count() {
	local n=" $kinds"
	n=${n##* "$1"=}
	case " $kinds" in *" $1="*) echo "${n%% *}" ;; *) echo 0 ;; esac
}

# agrees NAME: what is in the log is what the report says of each process
agrees() {
	log "$1"
	is "$1" 't["allocs"]' $(($(count alloc) + $(count realloc)))
	is "$1" 't["frees"]' $(($(count free) + $(count realloc) - $(value "$1.assay" 't["unmatched_frees"]')))
	is "$1" 't["reallocs"]' "$(count realloc)"
	is "$1" 't["failed"]' $(($(count alloc_failed) + $(count realloc_failed)))
	is "$1" 't["dropped"]' 0
	python3 replay.py <log | cut -d' ' -f2,3 | grep -v '^0 0$' | sort >replayed
	value "$1.assay" '"\n".join(sorted("%d %d" % (o["live_bytes"], o["peak_bytes"]) for o in t["processes"] if o["peak_bytes"]))' >said
	diff said replayed
}

@test "threads that pass blocks: a replay has the live bytes, the peak and each thread's calls" {
	busy_program
	run -0 assay heap --events -q -o busy.assay -- ./busy
	is busy "$LOST + t['unmatched_reallocs']" 0
	agrees busy
	[ "$(count realloc_failed)" -gt 20 ] && [ "$(count alloc_failed)" -gt 20 ]
	[ "$(count map)" -ge 1 ] && [ "$(count remap)" = 1 ] && [ "$(count unmap)" -ge 1 ]
	python3 - log >by_thread <<-'END'
		import collections, json, sys
		names, n = {}, collections.Counter()
		for line in open(sys.argv[1]):
		    e = json.loads(line)
		    if e["kind"] == "thread":
		        names[e["thread"]] = e["name"]
		    elif e["kind"] in ("alloc", "realloc"):
		        n[names[e["thread"]]] += 1
		print(sorted(n.items()))
	END
	[ "$(value busy.assay 'sorted((x["name"], x["allocs"]) for x in d["rows"] if x["allocs"])' --by thread --measure allocs)" = \
		"$(cat by_thread)" ]
	grep -q "'worker 3'" by_thread
	# the stacks are those of the report
	python3 - log >by_function <<-'END'
		import collections, json, sys
		leaf, n = {}, collections.Counter()
		for line in open(sys.argv[1]):
		    e = json.loads(line)
		    if e["kind"] == "stack":
		        leaf[e["stack"]] = e["frames"][0]["function"]
		    elif e["kind"] in ("alloc", "realloc"):
		        n[leaf[e["stack"]]] += 1
		print(sorted(n.items()))
	END
	[ "$(value busy.assay 'sorted((x["name"], x["allocs"]) for x in d["rows"] if x["allocs"])' --measure allocs --no-fold)" = \
		"$(cat by_function)" ]
}

@test "sums are what they are without" {
	what='(t["allocs"], t["frees"], t["reallocs"], t["peak_bytes"], t["live_bytes"], t["live_blocks"], t["events"], [(x["name"], x["allocs"], x["bytes"], x["peak_bytes"], x["live_bytes"], x["churn_blocks"]) for x in d["rows"]])'
	assay heap -q -o without.assay -- "$W/allocates" 3000
	assay heap -q --events -o with.assay -- "$W/allocates" 3000
	is with "$what" "$(value without.assay "$what")"
	agrees with
	[ "$(assay report --tree without.assay | sed '/^trust/,$d; 1,2d')" = "$(assay report --tree with.assay | sed '/^trust/,$d; 1,2d')" ]
}

@test "real programs, forks and what they start" {
	cat >forks.py <<-'END'
		import os, subprocess
		a = [bytes(1000) for i in range(1000)]
		if os.fork() == 0:
		    b = [bytes(2000) for i in range(2000)]
		    os._exit(0)
		os.wait()
		subprocess.run(["/bin/sh", "-c", "exec sort /dev/null"])
	END
	assay heap --events -q -o forks.assay -- /usr/bin/python3 forks.py
	agrees forks
	[ "$(grep -c '^{"kind":"thread"' log)" -ge 3 ]
	[ "$(count free)" -gt 1000 ]
}

@test "a program that is killed: its calls up to then; assay that is killed: all but the last second" {
	run -137 assay heap --events -q -o killed.assay -- bash -c 'for i in {1..3000}; do x=$x$i; done; kill -KILL $$'
	agrees killed
	[ "$(count alloc)" -gt 1000 ]
	assay heap --events -q -o cut.assay -- "$W/allocates" 0 20 >/dev/null &
	pid=$!
	echo $pid >pids
	until_true 30 test -s cut.assay.partial
	sleep 2.5
	kill -9 $pid
	wait $pid || true
	run -0 assay export --to events -o log cut.assay.partial
	tail -1 log | grep -q '"damaged":0,"complete":false}$'
	[ "$(tail -2 log | sed -n '1s/.*"time_ns":\([0-9]*\).*/\1/p')" -gt 1000000000 ]
}

@test "attached to, into a pipe, and on a disk without room" {
	"$W/allocates" 0 60 >/dev/null &
	pid=$!
	echo $pid >pids
	run -0 assay heap --events -q -o attached.assay -p $pid --duration 0.5
	log attached
	[ "$(count alloc)" -gt 100 ]
	kill -0 $pid
	kill $pid
	assay heap --events -q -o - -- "$W/allocates" 100 >piped 2>err
	tail -c +1 piped | grep -aq ACHK
	mkdir mounted
	mount -t tmpfs -o size=200k tmpfs mounted 2>/dev/null || {
		rmdir mounted
		skip 'cannot mount'
	}
	run -125 --separate-stderr assay heap --events -q -o mounted/full.assay -- "$W/allocates" 0 5
	[[ $stderr == *mounted/full.assay* ]]
	[[ $output == *rounds ]]
	run -0 assay export --to events -o log mounted/full.assay.partial
	[ "$(wc -l <log)" -gt 1000 ]
}

@test "beside CPU samples" {
	assay record -q --heap --events -o both.assay -- "$W/allocates" 2000 2>err || skip "cannot record here: $(head -1 err)"
	log both
	[ "$(count realloc)" = 4000 ]
	[ "$(value both.assay 't["allocs"]' --measure allocs)" = $(($(count alloc) + $(count realloc))) ]
}
