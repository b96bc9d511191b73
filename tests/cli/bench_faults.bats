#!/usr/bin/env bats
# SPDX-License-Identifier: MIT OR Apache-2.0
# What other tools for benchmarks of commands get wrong, one test each.
# beside others
bats_require_minimum_version 1.5.0
load lib

# A program whose work is its argument, in steps of some 0.4 ms.
work_program() {
	[ ! -x work ] || return 0
	cat >work.c <<-'END'
		#include <stdlib.h>
		int main(int argc, char **argv)
		{
			volatile unsigned long x = 1;
			long n = 160000 * atol(argv[1]);
			for (long i = 0; i < n; i++)
				x = x * 6364136223846793005ul + 1;
			return 0;
		}
	END
	cc -O1 -o work work.c
}

# counts: a script that does $1 on its run number $n.
nth() {
	cat >"$1" <<-END
		#!/bin/sh
		echo x >>count-$1
		n=\$(wc -l <count-$1)
		$2
	END
	chmod +x "$1"
}

json() { # EXPRESSION over d, b (the first benchmark), c (the first comparison)
	echo "$output" | python3 -c '
import json, sys
d = json.load(sys.stdin)
b = d["benchmarks"][0]
c = d["comparisons"][0] if d.get("comparisons") else None
def notes(x): return {n["kind"]: n["text"] for n in x.get("notes", [])}
assert '"$1"', (b if len(b["samples"]) < 100 else b["name"], c)'
}

@test "a command that hangs on run 4: --timeout names it, three runs are kept" {
	nth hangs "[ \$n != 4 ] || sleep 1000.$$"
	run -1 assay bench -r 10 --timeout 300ms ./hangs
	[[ $output == *'./hangs '*', 3 runs'*'run 4 did not end within 0.3 s and was ended'* ]]
	run -1 pgrep -f "^sleep 1000.$$\$"
	rm count-hangs
	run -0 assay bench -r 6 --timeout 300ms -i --format json ./hangs
	json 'len(b["samples"]) == 6 and "timeout" in notes(b)'
}

@test "a command that fails on run 7 is named with the run, and keeps the others" {
	nth seventh '[ $n != 7 ] || exit 9'
	run -1 assay bench -r 10 ./seventh 'sleep 0.001'
	[[ $output == *'./seventh'*', 7 runs'*'run 7 ended with status 9: the runs before it'* ]]
	rm count-seventh
	run -1 assay bench -r 10 'sleep 0.001' ./seventh
	[[ $output == *'sleep 0.001'*', 10 runs'*'./seventh'*', 7 runs'*'run 7 ended with status 9'* ]]
	rm count-seventh
	run -0 assay bench -r 10 --ignore-failure ./seventh
	rm count-seventh
	run -0 assay bench -r 10 --ignore-failure=3,9 ./seventh
	rm count-seventh
	run -1 assay bench -r 10 --ignore-failure=3 ./seventh
	run -2 assay bench --ignore-failure=x ./seventh
}

@test "times are settable: runs, least, most, budget with what is done around the runs" {
	run -0 assay bench -m 3 -M 5 --format json 'sleep 0.001' 'sleep 0.03'
	json 'all(3 <= len(x["samples"]) <= 5 for x in d["benchmarks"])'
	SECONDS=0
	run -0 assay bench --budget 2s --prepare 'sleep 0.4' 'sleep 0.001' 'sleep 0.001'
	[ $SECONDS -lt 10 ]
	SECONDS=0
	run assay bench --budget 1s 'sleep 100'
	[ $SECONDS -lt 10 ] && [ $status != 0 ]
	[[ $output == *"'sleep 100'"*'--budget'* ]]
}

@test "an interval around nothing is no regression, and ends with 0" {
	work_program
	nothing() { json 'c["verdict"] in ("undecided", "equal") and c["low"] <= 1 <= c["high"]'; }
	tries '[ "$status" = 0 ] && nothing' \
		assay bench --fail-on slower -r 6 --format json './work 1' './work 1'
}

@test "a slowdown of a fifth ends with 3, an error with 1, bad usage with 2" {
	work_program
	tries '[ "$status" = 3 ] && [[ $output == *"slower "*"./work 60 against ./work 50: +"* ]]' \
		assay bench --fail-on slower './work 50' './work 60'
	run -0 assay bench -r 12 './work 50' './work 60'
	run -0 assay bench --fail-on slower -r 12 './work 60' './work 50'
	run -1 assay bench --fail-on slower ./no-such './work 5'
	run -2 assay bench --fail-on nonsense './work 5'
}

@test "one estimate everywhere: terminal and JSON agree on skewed runs" {
	nth skewed 'case $((n % 5)) in 0) sleep 0.05 ;; *) sleep 0.01 ;; esac'
	run -0 assay bench -r 12 --json d.json ./skewed
	python3 - "$output" <<-'END'
		import json, re, sys
		b = json.load(open("d.json"))["benchmarks"][0]
		value, unit = re.search(r"^./skewed +\w+ +([\d.]+) (ms|s|µs)", sys.argv[1]).groups()
		value = float(value) * {"s": 1, "ms": 1e-3, "µs": 1e-6}[unit]
		assert abs(value - b["mean"]) < 0.006 * value, (value, b["mean"])
		assert b["low"] <= b["mean"] <= b["high"]
	END
}

@test "an undecided difference says how much more would tell, and that is enough" {
	work_program
	tries '[[ $output == *undecided*"needs "*" s more"* || $output == *undecided*"4 pairs"* ]]' \
		assay bench -m 4 -M 4 --delta 0.1 './work 20' './work 20'
	slower() { json 'c["verdict"] == "slower"'; }
	tries slower assay bench --delta 4 --format json './work 60' './work 66'
}

@test "peak memory is that of each command" {
	run -0 assay bench -r 3 --format json \
		"python3 -c 'b = bytearray(100 << 20)
for i in range(0, len(b), 4096): b[i] = 1'" 'true'
	json 'd["benchmarks"][0]["peak_rss"] > 100 << 20 and d["benchmarks"][1]["peak_rss"] < 20 << 20'
}

@test "a load that begins half way is no difference" {
	work_program
	half_loaded() {
		(sleep 1.2 && exec timeout 3 sh -c 'while :; do :; done') 3>&- &
		assay bench --budget 4s -m 60 --delta 5 --format json './work 60' --vs './work 60'
		wait
	}
	none() { json 'c["verdict"] in ("equal", "undecided") and b["processes"] >= 10'; }
	tries none half_loaded
}

@test "what a shell costs is taken off with an interval: no infinite ratios, nothing below it clamped" {
	below() { json 'min(b["samples"]) < 0'; }
	tries below assay bench --shell -r 30 --format json 'true' 'echo x'
	[[ $output != *[iI]nf* && $output != *[nN]a[nN]* ]]
	json 'b["low"] < b["mean"] < b["high"] and c["low"] <= c["ratio"] <= c["high"] and "overhead" in notes(b)'
	tries '[[ $output == *"what is left cannot be told from nothing: run it without a shell"* ]]' \
		assay bench --shell -r 15 true
}

@test "by default no shell stands between: one process" {
	run -0 assay bench -r 2 --output out "python3 -c 'import os; print(os.getppid())'"
	parent=$(cat out)
	run -0 assay bench -r 2 --output out "sh -c 'echo \$PPID; :'"
	[ "$parent" != 1 ] && [ -n "$(cat out)" ]
	run -0 assay bench -r 2 --shell --output out "cat /proc/\$PPID/comm; :"
	[ "$(cat out)" = assay ]
}

@test "two kinds of run are named" {
	nth two 'case $((n % 3)) in 0) sleep 0.4 ;; *) sleep 0.01 ;; esac'
	# As far as the machine let the runs be of two kinds, which a busy one may not: every third took longer than
	# all others by more than these differ among themselves.
	are_two() {
		json '(lambda fast, slow: max(fast) - min(fast) < 0.25 * (min(slow) - max(fast)))(
			[s for i, s in enumerate(b["samples"], 1) if i % 3], b["samples"][2::3])' 2>/dev/null
	}
	for _ in 1 2 3 4 5 6; do
		rm -f count-two
		run -0 assay bench -r 24 --format json ./two
		if are_two; then
			json '__import__("re").search("two kinds of run, of about .* ms and .* ms", notes(b)["bimodal"])'
			return
		fi
	done
	skip 'others ran so much here that runs were not of two kinds'
}

@test "one run of 100 times in 20 counts, and moves nothing" {
	nth spike '[ $n != 11 ] || sleep 1; sleep 0.01'
	anew() { rm -f count-spike && assay bench -r 20 --format json ./spike; }
	apart() { json '0.009 < b["mean"] < 1.5 * b["plain"]["median"] and "run 11 " in notes(b)["apart"]'; }
	tries apart anew
	json 'len(b["samples"]) == 20 and b["plain"]["max"] > 0.9'
}

@test "a first run that differs is named with what mends it; three runs define no exception" {
	nth first '[ $n != 1 ] || sleep 0.3; sleep 0.01'
	anew() { rm -f count-first && assay bench "$@" ./first; }
	tries '[[ $output == *"the first run took "*" ms, the others "*" ms"*"--warmup 1"* ]]' anew -r 12
	tries '[[ $output != *"the first run took"* ]]' anew -r 12 --warmup 1
	run -0 anew -r 3
	[[ $output != *'the first run took'* && $output != *' apart'* ]]
}

@test "a command can be taken off: sleep 0.2 less sleep 0.1" {
	a_tenth() { json '0.09 < b["mean"] < 0.12 and b["high"] - b["low"] < 0.05'; }
	tries a_tenth assay bench -r 8 --overhead 'sleep 0.1' --format json 'sleep 0.2'
	json 'b["low"] < b["mean"] < b["high"] and "sleep 0.1 (" in notes(b)["overhead"]'
	run -1 assay bench -r 8 --overhead false 'sleep 0.2'
	[[ $output == *"'false', which is to be taken off, failed (status 1)"* ]]
	run -1 assay bench -r 8 --overhead ./none 'sleep 0.2'
	[[ $output == *"'./none'"* ]]
}

@test "what forks away keeps nothing waiting and does not stay" {
	local seconds=997.$$ # nobody else's
	cat >daemon <<-END
		#!/bin/sh
		setsid sleep $seconds &
		echo started
	END
	chmod +x daemon
	SECONDS=0
	run -0 assay bench -r 3 --output pipe ./daemon
	[[ $output == *"its runs left "*" behind"* ]]
	[ $SECONDS -lt 30 ]
	run -1 pgrep -f "^sleep $seconds\$"
	run -0 assay bench -r 1 --leave-running ./daemon
	run -0 pkill -f "^sleep $seconds\$"
}

@test "gigabytes are printed into nothing, a pipe, or one file of the last run" {
	run -0 assay bench -r 2 --output pipe 'head -c 500000000 /dev/zero'
	run -0 assay bench -r 3 --output big 'head -c 1000000 /dev/zero'
	[ "$(wc -c <big)" = 1000000 ]
	run -0 assay bench -r 2 --output inherit 'echo seen'
	[[ $output == *seen*seen* ]]
}

@test "interrupted: what there is is shown, nothing stays" {
	local short=0.05$$ long=998.$$ # nobody else's
	(sleep 1.5 && kill -INT "$(pgrep -n -f "assay bench -r 1000 -- sleep $short")") 3>&- &
	run -130 assay bench -r 1000 -- sleep $short
	[[ $output == *' runs'*'stopped early'* ]]
	run -1 pgrep -f "^sleep $short\$"
	(sleep 1 && kill -TERM "$(pgrep -n -f "assay bench -r 1001 .*sleep $long")") 3>&- &
	run assay bench -r 1001 --cleanup 'echo cleaned >cleaned' -- sleep $long
	[ -e cleaned ]
	run -1 pgrep -f "^sleep $long\$"
}
