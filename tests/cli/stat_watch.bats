#!/usr/bin/env bats
# SPDX-License-Identifier: MIT OR Apache-2.0
# assay stat over time: -I, and a process that runs already.
# beside others
bats_require_minimum_version 1.5.0
load lib

# Figures of a live process beside others of it, taken a moment apart: a bad second of the machine is not ours.
setup_file() {
	export BATS_TEST_RETRIES=2 # bats 1.8 and later
}

# A process with a thread and a child from the start; at the first line of its input each of the three touches
# 2,000 pages, then it starts one more thread and one more child that do the same.
make_family() {
	cat >family.c <<-'END'
		#include <pthread.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <sys/mman.h>
		#include <sys/wait.h>
		#include <unistd.h>
		static void *touch(void *go)
		{
			char c;
			if (go && read(*(int *)go, &c, 1) != 1)
				exit(9);
			char *p = mmap(NULL, 2000 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			madvise(p, 2000 * 4096, MADV_NOHUGEPAGE);
			for (int i = 0; i < 2000; i++)
				p[i * 4096] = 1;
			return NULL;
		}
		int main(void)
		{
			int a[2], b[2];
			char c;
			pthread_t t, u;
			if (pipe(a) || pipe(b))
				return 8;
			if (fork() == 0)
				return touch(a) != NULL;
			pthread_create(&t, NULL, touch, b);
			if (read(0, &c, 1) != 1 || write(a[1], &c, 1) != 1 || write(b[1], &c, 1) != 1)
				return 7;
			touch(NULL);
			pthread_create(&u, NULL, touch, NULL);
			if (fork() == 0)
				return touch(NULL) != NULL;
			pthread_join(t, NULL);
			pthread_join(u, NULL);
			while (wait(NULL) > 0)
				;
			usleep(400000);
			return 3;
		}
	END
	cc -O2 -o family family.c -lpthread
	mkfifo go
	./family <go 3>&- &
	family=$!
	exec 4>go
	for _ in $(seq 100); do
		[ "$(ls /proc/$family/task | wc -l)" = 2 ] && break
		sleep 0.02
	done
}

@test "attached: threads and children of before and after are counted, until it ends" {
	make_family
	assay stat -p $family --format json >out.json 3>&- 4>&- &
	stat=$!
	sleep 1.2
	echo >&4
	wait $family || [ $? = 3 ]
	wait $stat
	python3 -c '
import json
d = json.load(open("out.json"))
m = {x["name"]: x["mean"] for x in d["metrics"]}
assert d["pid"] == '$family' and d["runs"] == 1
assert 10000 <= m["minor_faults"] < 10600, m
assert m["wall"] > 1.2 and 0 < m["cpu"] < m["wall"], m
assert m["peak_rss"] > 4000 * 4096, m
assert m["voluntary_switches"] >= 1, m'
}

@test "attached: rows add up to the whole; --duration and Ctrl-C end it, not the process" {
	sh -c 'while :; do i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; sleep 0.01; done' 3>&- &
	pid=$!
	run -0 assay stat -p $pid -d 1.1 -I 200 --format json
	echo "$output" | python3 -c '
import json, sys
rows = [json.loads(l) for l in sys.stdin]
end = rows.pop()
assert end["schema"] == "assay.stat/1" and all(r["schema"] == "assay.stat.interval/1" for r in rows)
assert 3 <= len(rows) <= 6, len(rows) # those that came late are one
m = {x["name"]: x["mean"] for x in end["metrics"]}
assert m["wall"] > 1.0 and abs(rows[-1]["time"] - m["wall"]) < 0.01, m
for name in "cpu", "minor_faults", "voluntary_switches", "involuntary_switches":
    total = sum(r["metrics"][name] for r in rows)
    assert abs(total - m[name]) <= 0.01 * m[name] + 1e-6, (name, total, m[name])
assert m["cpu"] > 0 and m["minor_faults"] > 0 and all(r["metrics"]["rss"] > 0 for r in rows)'
	run -0 assay stat -p $pid -d 0.5 -I 100 --format csv
	echo "$output" | parses_as_csv
	[[ ${lines[0]} == time,seconds,cpu,* ]]
	COLUMNS=60 run -0 assay stat -p $pid -d 0.3 -I 100
	[[ $output == *'time '*cpu*faults*"columns did not fit"*"process $pid (sh) and what it started"* ]]
	for line in "${lines[@]:0:3}"; do [ ${#line} -le 60 ]; done
	assay stat -p $pid -e cpu >out.txt 3>&- &
	stat=$!
	sleep 1
	kill -INT $stat
	wait $stat
	[[ $(cat out.txt) == *'cpu '*ms* ]]
	kill -0 $pid
	kill $pid
}

@test "a command in intervals: rows while it runs, then the whole; its exit status" {
	run -3 --separate-stderr assay stat -I 100 -- sh -c 'echo out; i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; sleep 0.3; exit 3'
	[ "$output" = out ]
	[[ $stderr == *'time '*cpu*'sh -c '*'1 run'*'failed run 1 ended with status 3'* ]]
	run -0 assay stat -I 50 --format json --output /dev/null -- sh -c 'i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; sleep 0.2'
	echo "$output" | python3 -c '
import json, sys
rows = [json.loads(l) for l in sys.stdin]
m = {x["name"]: x["mean"] for x in rows.pop()["metrics"]}
assert len(rows) >= 4
for name, slack in ("cpu", 0.004), ("minor_faults", 40):
    total = sum(r["metrics"][name] for r in rows)
    assert abs(total - m[name]) <= 0.05 * m[name] + slack, (name, total, m[name])
# it slept at the end
assert rows[-2]["metrics"]["cpu"] < rows[-2]["seconds"] / 2'
	run -125 assay stat -I 100 -r 3 -- true
	[[ $output == *'for one run'* ]]
}

@test "what cannot be watched is said" {
	run -125 assay stat -p 4194304
	[[ $output == *'no process 4194304'* ]]
	run -125 assay stat -p $$ -r 3
	[[ $output == *'with --pid nothing is run'* ]]
	run -125 assay stat -d 1 -- true
	run -125 assay stat -p $$ -I 5
	[ "$(id -u)" = 0 ] || skip "needs root, to be nobody"
	chmod a+rx . && cp "$ASSAY" ./assay
	setpriv --reuid 65534 --regid 65534 --clear-groups ./assay --version >/dev/null 2>&1 ||
		skip "nobody cannot run programs in $PWD"
	run -125 setpriv --reuid 65534 --regid 65534 --clear-groups ./assay stat -p $$ -e page-faults -d 0.2
	[[ $output == *'cannot count its events'* ]]
	run -0 setpriv --reuid 65534 --regid 65534 --clear-groups sh -c 'sleep 2 & ./assay stat -p $! -d 0.3; kill $!'
	[[ $output == *'(sleep) and what it started'*wall* ]]
}
