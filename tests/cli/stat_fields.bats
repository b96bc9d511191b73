#!/usr/bin/env bats
# SPDX-License-Identifier: MIT OR Apache-2.0
# Figures of assay stat beside those of other tools on the same run, not on another run like it.
bats_require_minimum_version 1.5.0
load lib

# Figures of a live process beside others of it, taken a moment apart: a bad second of the machine is not ours.
setup_file() {
	export BATS_TEST_RETRIES=2 # bats 1.8 and later
}

# Known work: 4,000 pages touched, 30 sleeps, 20,000 system calls, 1 MB written, 0.15 s of CPU time; with
# an argument it waits for a line of that file first, so that others can attach.
make_work() {
	cat >work.c <<-'END'
		#include <fcntl.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <sys/mman.h>
		#include <sys/resource.h>
		#include <sys/syscall.h>
		#include <time.h>
		#include <unistd.h>
		int main(int argc, char **argv)
		{
			static char block[1000];
			volatile double x = 1;
			char go;
			if (argc > 1 && read(open(argv[1], O_RDONLY), &go, 1) != 1)
				return 9;
			char *p = mmap(NULL, 4000 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			madvise(p, 4000 * 4096, MADV_NOHUGEPAGE);
			for (int i = 0; i < 4000; i++)
				p[i * 4096] = 1;
			for (int i = 0; i < 30; i++)
				nanosleep(&(struct timespec){0, 1000000}, NULL);
			for (int i = 0; i < 20000; i++)
				syscall(SYS_getppid);
			int null = open("/dev/null", O_WRONLY);
			for (int i = 0; i < 1000; i++)
				if (write(null, block, sizeof block) != sizeof block)
					return 8;
			while (clock() < CLOCKS_PER_SEC * 15 / 100)
				for (int i = 0; i < 100000; i++)
					x *= 1.0000001;
			struct rusage u;
			getrusage(RUSAGE_SELF, &u);
			fprintf(stderr, "{\"cpu\": %.6f, \"rss\": %ld, \"minor\": %ld, \"major\": %ld, \"waits\": %ld, \"preempted\": %ld}\n",
				u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6,
				u.ru_maxrss * 1024, u.ru_minflt, u.ru_majflt, u.ru_nvcsw, u.ru_nivcsw);
			return 0;
		}
	END
	cc -O2 -o work work.c
}

# table NAME: prints what was compared, for docs/internals/measured.md
compare='
import json, sys
def load(path):
    return {x["name"]: x["mean"] for x in json.load(open(path))["metrics"]}
def near(what, ours, theirs, low, high):
    print(f"{what}: {ours:.6g} {theirs:.6g} ({ours - theirs:+.4g})")
    assert low <= ours - theirs <= high, (what, ours, theirs)
'

@test "getrusage by the program itself" {
	make_work
	run -0 --separate-stderr assay stat --format json --output own.txt -- ./work
	echo "$output" >ours.json
	python3 -c "$compare"'
m, u = load("ours.json"), json.loads(open("own.txt").read())
# it asked a moment before its end; and before its exec it was us for 0.4 ms, 60 faults, 2 switches
near("cpu s", m["cpu"], u["cpu"], -0.003, 0.005)
# the kernel sums its counters up at the end, until then they lag by some pages per CPU
near("peak rss B", m["peak_rss"], u["rss"], -(64 << 10), 1 << 20)
near("minor faults", m["minor_faults"], u["minor"], -120, 20)
near("major faults", m["major_faults"], u["major"], -5, 5)
near("voluntary switches", m["voluntary_switches"], u["waits"], -3, 3)
near("involuntary switches", m["involuntary_switches"], u["preempted"], -5, 5)
assert 1000000 <= m["written"] < 1001000, m["written"]' >&3
}

@test "/usr/bin/time -v of the same process, one level below" {
	[ -x /usr/bin/time ] || skip "no /usr/bin/time (Debian package time)"
	make_work
	run -0 --separate-stderr assay stat --format json --output /dev/null -- /usr/bin/time -v -o time.txt ./work
	echo "$output" >ours.json
	python3 -c "$compare"'
m, t = load("ours.json"), {}
for line in open("time.txt"):
    key, _, value = line.strip().rpartition(": ")
    t[key] = value
def n(key):
    return float(t[next(k for k in t if k.startswith(key))])
# ours are of time and of work: work is all but the start of time
near("cpu s", m["cpu"], n("User time") + n("System time"), -0.012, 0.02)
near("peak rss B", m["peak_rss"], 1024 * n("Maximum resident"), 0, 0)
near("minor faults", m["minor_faults"], n("Minor (reclaiming"), 0, 150)
near("major faults", m["major_faults"], n("Major (requiring"), 0, 5)
near("voluntary switches", m["voluntary_switches"], n("Voluntary"), 0, 6)
near("involuntary switches", m["involuntary_switches"], n("Involuntary"), 0, 12)
minutes, _, seconds = t["Elapsed (wall clock) time (h:mm:ss or m:ss)"].rpartition(":")
near("wall s", m["wall"], float(seconds) + 60 * float(minutes), -0.011, 0.06)' >&3
}

@test "perf stat attached to the same process before its work" {
	perf stat -x, -e page-faults true 2>/dev/null || skip "no perf that counts here (Debian package linux-perf)"
	assay stat -e syscalls --output /dev/null -- true >/dev/null 2>&1 || skip "no right to count tracepoints"
	make_work
	mkfifo go
	assay stat --format json --output /dev/null \
		-e cpu,minor_faults,voluntary_switches,involuntary_switches,migrations,syscalls,task-clock,page-faults,cs,sched:sched_switch \
		-- ./work go >ours.json 2>err 3>&- &
	ours=$!
	for _ in $(seq 100); do
		pid=$(pgrep -P $ours -x work) && grep -q S /proc/"$pid"/stat && break
		sleep 0.05
	done
	sleep 0.2
	perf stat -x, -o perf.csv -e task-clock,page-faults,context-switches,cpu-migrations,raw_syscalls:sys_enter -p "$pid" 3>&- &
	perf=$!
	for _ in $(seq 100); do # until perf has opened its counters
		[ "$(ls -l /proc/$perf/fd 2>/dev/null | grep -c perf_event)" -ge 5 ] && break
		sleep 0.05
	done
	sleep 0.3
	echo >go
	wait $ours
	wait $perf || true
	python3 -c "$compare"'
m = load("ours.json")
p = {r[2]: float(r[0]) for r in (l.split(",") for l in open("perf.csv") if l.count(",") > 3)}
# ours have the start of the program besides: the loader, until it waits
near("task-clock s", m["task-clock"], p["task-clock"] / 1e3, 0, 0.01)
# the clock of perf goes on in interrupts and while the host has the CPU
near("cpu s", m["cpu"], p["task-clock"] / 1e3, -0.015, 0.012)
near("page faults", m["page-faults"], p["page-faults"], 0, 120)
near("minor faults", m["minor_faults"], p["page-faults"], 0, 130)
near("context switches", m["cs"], p["context-switches"], 0, 12)
near("switches of rusage", m["voluntary_switches"] + m["involuntary_switches"], p["context-switches"], -3, 15)
near("sched_switch", m["sched:sched_switch"], p["context-switches"], 0, 12)
near("migrations", m["migrations"], p["cpu-migrations"], 0, 6)
near("system calls", m["syscalls"], p["raw_syscalls:sys_enter"], 0, 80)
assert m["syscalls"] > 21000, m' >&3
}

@test "waiting: run-queue and blocked time against /proc/PID/sched of a program that reads its own" {
	cat >waits.c <<-'END'
		#include <stdio.h>
		#include <string.h>
		#include <time.h>
		static void show(const char *path)
		{
			char b[4096];
			FILE *f = fopen(path, "r");
			size_t n = f ? fread(b, 1, sizeof b - 1, f) : 0;
			b[n] = 0;
			fputs(b, stdout);
			if (f)
				fclose(f);
		}
		int main(void)
		{
			volatile double x = 1;
			nanosleep(&(struct timespec){0, 300000000}, NULL);
			while (clock() < CLOCKS_PER_SEC / 5)
				for (int i = 0; i < 100000; i++)
					x *= 1.0000001;
			show("/proc/self/schedstat");
			return 0;
		}
	END
	cc -O2 -o waits waits.c
	run -0 --separate-stderr assay stat --format json --output own.txt --cpu 0 -- ./waits
	echo "$output" >ours.json
	python3 -c "$compare"'
m = load("ours.json")
ran, waited, _ = map(float, open("own.txt").read().split())
near("run wait s", m["run_wait"], waited / 1e9, -0.05, 0.05)
# what the host and interrupts take may be in the figure of the scheduler and not in that of rusage
near("cpu s", m["cpu"], ran / 1e9, -0.02, 0.005)
near("blocked s", m["blocked"], 0.3, -0.001, 0.08)
near("wall s", m["wall"], m["cpu"] + m["run_wait"] + m["blocked"], -0.003, 0.02)' >&3
}

@test "the peak of the last run is that of the first" {
	run -0 --separate-stderr assay stat -r 400 --format json -- true
	echo "$output" | python3 -c '
import json, sys
v = [m["values"] for m in json.load(sys.stdin)["metrics"] if m["name"] == "peak_rss"][0]
assert len(v) == 400 and max(v[-50:]) <= max(v[:50]) + (256 << 10), (max(v[:50]), max(v[-50:]))'
}
