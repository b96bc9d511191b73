#!/usr/bin/env bats
# SPDX-License-Identifier: MIT OR Apache-2.0
bats_require_minimum_version 1.5.0
load lib

spin() {
	echo "i=0; while [ \$i -lt $1 ]; do i=\$((i+1)); done"
}

@test "one run: the program's output is untouched, the figures go to standard error" {
	run -0 --separate-stderr assay stat -- sh -c 'echo out; echo err >&2'
	[ "$output" = out ]
	[[ $stderr == err*'sh -c '*': 1 run'*wall*cpu*'peak rss'* ]]
}

@test "the exit status is the program's own, and the failing run is named" {
	run -7 --separate-stderr assay stat -- sh -c 'exit 7'
	[[ $stderr == *'failed run 1 ended with status 7'* ]]
	run -143 assay stat -- sh -c 'kill -TERM $$'
	run -127 --separate-stderr assay stat -- no-such-program
	[[ $stderr == *no-such-program* ]]
	echo hello >plain
	run -126 --separate-stderr assay stat -- ./plain
	cat >third <<-'END'
		#!/bin/sh
		echo x >>count
		[ "$(wc -l <count)" != 3 ]
	END
	chmod +x third
	run -1 assay stat -r 5 -- ./third
	[[ $output == *'3 runs'*'failed run 3 ended with status 1; --ignore-failure'* ]]
	rm count
	run -1 assay stat -r 5 --ignore-failure -- ./third
	[[ $output == *'5 runs'* ]]
}

@test "many runs: intervals, the program's output left out, setup once, prepare each time" {
	run -0 assay stat -r 12 --warmup 2 --setup 'echo s >>log' --prepare 'echo p >>log' -- sh -c 'echo out; exit 0'
	[[ $output == *'12 runs'*'wall '*'±'*'…'* ]]
	[[ $output != *out$'\n'* ]]
	[ "$(grep -c s log)" = 1 ]
	[ "$(grep -c p log)" = 14 ]
	run -125 --separate-stderr assay stat --setup 'exit 9' -- true
	[[ $stderr == *"--setup 'exit 9' failed (status 9)"* ]]
}

@test "json and csv are what the schema says" {
	run -0 assay stat -r 4 --format json -- sh -c "$(spin 2000)"
	echo "$output" | python3 -c '
import json, sys
d = json.load(sys.stdin)
assert d["schema"] == "assay.stat/1" and d["runs"] == 4
m = {x["name"]: x for x in d["metrics"]}
for name in "wall", "cpu", "user", "system", "peak_rss", "minor_faults", "voluntary_switches":
    x = m[name]
    assert len(x["values"]) == 4 and x["low"] <= x["mean"] <= x["high"] and x["sd"] >= 0, x
assert m["wall"]["unit"] == "s" and m["peak_rss"]["unit"] == "B"
assert abs(m["wall"]["mean"] - sum(m["wall"]["values"]) / 4) < 1e-9'
	run -0 assay stat -r 3 --format csv -e wall,cpu -- true
	echo "$output" | parses_as_csv
	[ "${lines[0]}" = command,run,wall,cpu ]
	[ ${#lines[@]} = 4 ]
}

@test "figures are those of getrusage on the same run" {
	run -0 --separate-stderr assay stat --format json -- "$(python3 -c "import sys; print(sys.executable)")" -c '
import os, resource
b = bytearray(50 << 20)
for i in range(0, len(b), 4096): b[i] = 1
u = resource.getrusage(resource.RUSAGE_SELF)
print(u.ru_utime + u.ru_stime, u.ru_maxrss * 1024, u.ru_minflt, u.ru_nvcsw + u.ru_nivcsw)'
	echo "$stderr" | python3 -c '
import json, sys
cpu, rss, faults, switches = map(float, sys.argv[1].split())
m = {x["name"]: x["mean"] for x in json.load(sys.stdin)["metrics"]}
# the program asked before its own end, and what it was before its exec counts for it, not for us
assert -0.01 < m["cpu"] - cpu < 0.1, (m["cpu"], cpu)
assert 0 <= m["peak_rss"] - rss < 2 << 20, (m["peak_rss"], rss)
assert -150 < m["minor_faults"] - faults < 2000, (m["minor_faults"], faults)
both = m["voluntary_switches"] + m["involuntary_switches"]
assert -10 < both - switches < 200, (both, switches)' "$output"
}

@test "what the child does before it is the program is not the program's" {
	cat >tiny.c <<-'END'
		#include <stdio.h>
		#include <sys/resource.h>
		int main(void)
		{
			struct rusage u;
			getrusage(RUSAGE_SELF, &u);
			return printf("%ld %ld\n", u.ru_maxrss * 1024, u.ru_minflt) < 0;
		}
	END
	cc -O1 -static -o tiny tiny.c
	run -0 --separate-stderr assay stat --format json -- ./tiny
	echo "$stderr" | python3 -c '
import json, sys
rss, faults = map(int, sys.argv[1].split())
m = {x["name"]: x["mean"] for x in json.load(sys.stdin)["metrics"]}
# a copy of us has 3 MiB and 60 page faults
assert m["peak_rss"] < 1.6 * (1 << 20), m["peak_rss"]
assert m["minor_faults"] < faults and m["minor_faults"] < 50, (m["minor_faults"], faults)
assert m["read"] < 2000 and m.get("written", 0) < 100, (m["read"], m["written"])
assert 0 <= m["blocked"] < 0.5' "$output"
	adds_up() {
		echo "$output" | python3 -c '
import json, sys
m = {x["name"]: x["mean"] for x in json.load(sys.stdin)["metrics"]}
assert 0.49 < m["blocked"] <= m["wall"], m
assert abs(m["wall"] - m["cpu"] - m["blocked"] - m["run_wait"]) < 0.005, m'
	}
	tries adds_up assay stat --format json --output /dev/null -- sleep 0.5
}

# Skips where the kernel lets us count no tracepoint.
need_tracepoints() {
	assay stat -e raw_syscalls:sys_enter --output /dev/null -- true >/dev/null 2>why || skip "$(head -1 why)"
}

@test "events of the kernel: software, tracepoints, groups; what is not there is said" {
	cat >touch.c <<-'END'
		#include <sched.h>
		#include <stdlib.h>
		#include <sys/mman.h>
		#include <sys/syscall.h>
		#include <unistd.h>
		int main(void)
		{
			long n = 5000;
			char *p = mmap(NULL, n * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			madvise(p, n * 4096, MADV_NOHUGEPAGE);
			for (long i = 0; i < n; i++)
				p[i * 4096] = 1;
			for (int i = 0; i < 20000; i++)
				syscall(SYS_getppid);
			if (fork() == 0)
				for (int i = 0; i < 3000; i++)
					syscall(SYS_getppid);
			return 0;
		}
	END
	cc -O1 -o touch touch.c
	run -0 assay stat --format json --output /dev/null -e page-faults,task-clock,cpu,minor_faults -- ./touch
	echo "$output" | python3 -c '
import json, sys
m = {x["name"]: x for x in json.load(sys.stdin)["metrics"]}
assert 5000 <= m["page-faults"]["mean"] < 5400, m
assert abs(m["page-faults"]["mean"] - m["minor_faults"]["mean"]) < 200, m
# both are the kernel`s; what differs is the exec itself
assert m["task-clock"]["unit"] == "s" and abs(m["task-clock"]["mean"] - m["cpu"]["mean"]) < 0.01, m'
	run -125 assay stat -e cs:u -- true
	[[ $output == *'happens in the kernel'* ]]
	if [ ! -d /sys/bus/event_source/devices/cpu ] && [ "$(uname -m)" = x86_64 ]; then
		run -125 assay stat -e cycles -- true
		[[ $output == *"no PMU here: 'cycles'"* ]]
		run -0 assay stat -- true
		[[ $output == *'note   no PMU here'* ]]
	fi
	need_tracepoints
	run -0 assay stat --format json --output /dev/null -e '{raw_syscalls:sys_enter,cs},syscalls' -- ./touch
	echo "$output" | python3 -c '
import json, sys
m = {x["name"]: x["mean"] for x in json.load(sys.stdin)["metrics"]}
assert 20000 < m["syscalls"] < 23300 and abs(m["syscalls"] - m["raw_syscalls:sys_enter"]) < 60, m
assert "cs" in m, m'
	run -0 assay stat --format json -e '{raw_syscalls:sys_enter,cs}' -- sleep 0.01 # it waits: it is switched
	echo "$output" | python3 -c '
import json, sys
m = {x["name"]: x["mean"] for x in json.load(sys.stdin)["metrics"]}
assert m["cs"] >= 1 and m["raw_syscalls:sys_enter"] > 10, m'
	run -125 assay stat -e sched:sched_nothing -- true
	[[ $output == *"no tracepoint 'sched:sched_nothing'"* ]]
}

@test "without rights: what can be counted is, what cannot names what would allow it" {
	[ "$(id -u)" = 0 ] || skip "needs root, to be nobody"
	[ "$(cat /proc/sys/kernel/perf_event_paranoid)" -ge 2 ] || skip "everybody may count the kernel here"
	chmod a+rx . "$BATS_TEST_TMPDIR" && cp "$ASSAY" ./assay && chmod a+rx assay
	setpriv --reuid 65534 --regid 65534 --clear-groups ./assay --version >/dev/null 2>&1 ||
		skip "nobody cannot run programs in $PWD"
	run -0 setpriv --reuid 65534 --regid 65534 --clear-groups ./assay stat --format json --output /dev/null -- sleep 0.1
	echo "$output" | python3 -c '
import json, sys
m = {x["name"]: x["mean"] for x in json.load(sys.stdin)["metrics"]}
assert "migrations" in m and m["wall"] > 0.1 and m["read"] > 0 and m["run_wait"] >= 0, m'
	run -0 setpriv --reuid 65534 --regid 65534 --clear-groups ./assay stat -e page-faults -- true
	[[ $output == *'page-faults'*'user mode only'*'perf_event_paranoid=1'* ]]
	run -125 setpriv --reuid 65534 --regid 65534 --clear-groups ./assay stat -e cs -- true
	[[ $output == *"cannot count 'cs'"*'sudo sysctl kernel.perf_event_paranoid=1'* ]]
	run -125 setpriv --reuid 65534 --regid 65534 --clear-groups ./assay stat -e syscalls -- true
	[[ $output == *"cannot count 'raw_syscalls:sys_enter'"*tracing* ]]
}

@test "a slower second command is found, in either order, and exact copies are not" {
	tries '[[ $output == *"second against first"*"slower by "* ]]' \
		assay stat -- sh -c "$(spin 3000)" --vs sh -c "$(spin 4500)"
	tries '[[ $output == *"faster by "* ]]' assay stat -- sh -c "$(spin 4500)" --vs sh -c "$(spin 3000)"
	no_difference() {
		echo "$output" | python3 -c '
import json, sys
c = json.load(sys.stdin)["comparison"]
assert c["low"] <= c["ratio"] <= c["high"]
assert c["verdict"] in ("equal", "undecided"), c'
	}
	tries no_difference assay stat --delta 10 --format json -- sh -c "$(spin 3000)" --vs sh -c "$(spin 3000)"
}

@test "names of figures, lists of CPUs, usage" {
	run -125 --separate-stderr assay stat -e wall,nothing -- true
	[[ $stderr == *"no figure and no event 'nothing'"* ]]
	run -125 assay stat --cpu 0-x -- true
	run -125 assay stat --cpu 9999 -- true
	run -125 assay stat
	run -125 assay stat -- true --vs
	run -0 assay stat --cpu 0 -- true
	run -0 assay stat --input /dev/null -r 2 -- cat
	run -125 --separate-stderr assay stat --input /no/such/file -- cat
	[[ $stderr == *'/no/such/file'* ]]
}

@test "interrupted: the runs until then are shown" {
	local short=0.05$$ # nobody else's
	(sleep 1.5 && kill -INT "$(pgrep -n -f "assay stat -r 1000 -- sleep $short")") &
	run assay stat -r 1000 -- sleep $short
	[[ $output == *'stopped early'* ]]
	[[ $output == *' runs'* ]]
}

@test "a baseline is the old program itself, run again beside the new one" {
	export XDG_DATA_HOME=$PWD/data
	cat >spin.c <<-'END'
		#include <stdlib.h>
		int main(int argc, char **argv)
		{
			volatile long x = 0;
			long n = WORK * atol(argv[1]);
			for (long i = 0; i < n; i++)
				x += i;
			return 0;
		}
	END
	cc -O1 -DWORK=4000 -o app spin.c
	run -0 assay stat --save old -- ./app 15000
	[[ $output == *'10 runs'* ]]
	tries '[[ $output != *slower* && $output != *faster* ]]' assay stat --delta 10 --baseline old -- ./app 15000
	[[ $output == *"against the baseline 'old' of "* ]]
	cc -O1 -DWORK=6000 -o app spin.c
	half_more() {
		echo "$output" | python3 -c '
import json, sys
c = json.load(sys.stdin)["comparison"]
assert c["verdict"] == "slower" and 1.3 < c["cpu"]["ratio"] < 1.7, c'
	}
	tries half_more assay stat --baseline old --format json -- ./app 15000
	run -0 assay stat --delta 30 --baseline old -- ./app 16000
	[[ $output == *'note   the arguments are not those it was saved with'* && $output != *'another machine'* ]]
	python3 -c '
import sqlite3
db = sqlite3.connect("data/assay/history.db")
db.execute("UPDATE entry SET machine = ?", ("PDP-11, 1 CPU, Linux 0.11",))
db.commit()'
	run -0 assay stat --delta 30 --baseline old -- ./app 15000
	[[ $output == *'PDP-11'*'note   it was saved on another machine (this is '* ]]
	run -125 --separate-stderr assay stat --baseline none -- ./app 15000
	[[ $stderr == *"nothing was saved as 'none'; there are 'old'"* ]]
	printf '#!/bin/sh\n' >script && chmod +x script
	run -0 assay stat --save script -- ./script
	run -125 --separate-stderr assay stat --baseline script -- ./script
	[[ $stderr == *'only figures were kept'* ]]
	rm -r data && : >data
	run -125 --separate-stderr assay stat --save x -- true
	[[ $stderr == *"cannot save 'x'"* ]]
}

@test "what runs have in common is noticed: a slow first run, two kinds of run, drift" {
	cat >run <<-'END'
		#!/bin/sh
		n=$(cat n 2>/dev/null || echo 0)
		echo $((n+1)) >n
		case $1 in
		first) [ "$n" = 0 ] && sleep 0.6; sleep 0.03 ;;
		two) [ $((n % 3)) = 0 ] && sleep 0.3; sleep 0.02 ;;
		drift) sleep 0.$((n < 7 ? n + 1 : 15 - n)) ;;
		esac
	END
	chmod +x run
	anew() { rm -f n && assay stat "$@"; }
	tries '[[ $output == *"apart  run 1: wall +"*"%, "*"the first run: nothing was in the caches yet"* ]]' \
		anew -r 12 -- ./run first
	tries '[[ $output == *" wall "*"two kinds of run: "*" ms and "* ]]' anew -r 24 -- ./run two
	tries '[[ $output == *"drift  runs next to each other are alike (correlation 0."* ]]' \
		anew -r 15 -- ./run drift
}

@test "shell strings are commands, too" {
	run -0 assay stat -r 2 --output - -- 'echo one; echo two | cat'
	[[ $output == *one*two*one*two*'2 runs'* ]]
	tries '[[ $output == *"slower by "* ]]' \
		assay stat --delta 20 -- 'exit 0; :' --vs 'i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done'
	run -127 assay stat -- no-such-program-at-all
	touch 'a b' && chmod +x 'a b'
	run -0 assay stat -- './a b'
}

@test "undecided says how many more pairs would tell" {
	tries '[[ $output == *"undecided by "*" time"* ]]' \
		assay stat -r 4 --delta 0.01 -- sh -c "$(spin 2000)" --vs sh -c "$(spin 2000)"
	run -0 assay stat -r 12 --delta 0.01 --format json -- sh -c "$(spin 2000)" --vs sh -c "$(spin 2000)"
	echo "$output" | python3 -c '
import json, sys
c = json.load(sys.stdin)["comparison"]
assert c["verdict"] != "undecided" or c["runs_needed"] == 0 or c["runs_needed"] > c["pairs"], c'
}

@test "the peak memory of children is told apart, for root" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	cat >sizes.c <<-'END'
		#include <stdlib.h>
		#include <string.h>
		#include <sys/wait.h>
		#include <unistd.h>
		int main(int argc, char **argv)
		{
			size_t n = (size_t)atoi(argv[1]) << 20;
			char *p = malloc(n);
			memset(p, 1, n);
			if (argc > 2) {
				char *words[] = {argv[0], argv[2], argv[3], NULL};
				free(p);
				if (fork() == 0)
					return execv(argv[0], words);
				wait(NULL);
			}
			return 0;
		}
	END
	cc -O2 -fno-builtin -o sizes sizes.c
	run -0 assay stat --format json --output /dev/null -- ./sizes 20 5 40
	echo "$output" >out.json
	python3 -c '
import json
m = {x["name"]: x["mean"] for x in json.load(open("out.json"))["metrics"]}
if "peak_rss_own" not in m:
    raise SystemExit(9)
MB = 1 << 20
assert 20 * MB < m["peak_rss_own"] < 23 * MB, m
assert 40 * MB < m["peak_rss_children"] < 43 * MB, m
assert abs(m["peak_rss_children"] - m["peak_rss"]) < MB / 2, m' || {
		[ $? = 9 ] && skip "this kernel announces no ends of processes (a container?)"
		false
	}
	run -0 assay stat --output /dev/null -- ./sizes 20
	[[ $output == *'peak rss '* && $output != *children* ]]
}

@test "waiting for a disk, where the kernel tells" {
	[ "$(cat /proc/sys/kernel/task_delayacct 2>/dev/null)" = 1 ] || skip "kernel.task_delayacct is not 1"
	dd if=/dev/zero of=big bs=1M count=64 conv=fsync 2>/dev/null
	dd if=big of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null || skip "no direct reads in $PWD"
	run -0 assay stat --all --format json --output /dev/null -- dd if=big of=/dev/null bs=4k iflag=direct
	echo "$output" | python3 -c '
import json, sys
m = {x["name"]: x["mean"] for x in json.load(sys.stdin)["metrics"]}
assert m["disk_read"] >= 64 << 20, m
assert 0 < m["disk_wait"] <= m["wall"] + 0.02, m'
}

@test "which CPU and what input" {
	run -0 --separate-stderr assay stat --cpu 0 --input "$BATS_TEST_FILENAME" -- sh -c 'head -1; grep Cpus_allowed_list /proc/self/status'
	[[ ${lines[0]} == '#!/usr/bin/env bats' && ${lines[1]} == *:*0 ]]
	run -0 assay stat --warmup 2 -r 3 --output log -- sh -c 'echo x'
	[ "$(wc -l <log)" = 5 ]
}
