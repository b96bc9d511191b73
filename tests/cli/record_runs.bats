#!/usr/bin/env bats
# assay record --trials, --until, --measure-overhead: several runs in one session.
# SPDX-License-Identifier: MIT OR Apache-2.0
bats_require_minimum_version 1.5.0
load lib

busy='i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done'

# json FILE EXPRESSION over the report d; rows by name in r
json() {
	assay report --format json "$1" >report.json
	python3 -c '
import json, sys
d = json.load(open("report.json"))
r = {row["name"]: row for row in d["rows"]}
print(eval(sys.argv[1]))' "$2"
}

@test "three runs are one session; their output and the status are the program's" {
	need_recording
	run -0 --separate-stderr assay record --trials 3 -o t.assay -- sh -c "echo out; $busy"
	[ "$output" = $'out\nout\nout' ]
	[[ $stderr == *'sh: 3 runs, '*', exit 0'* ]]
	[ "$(json t.assay 'len(d["runs"])')" = 3 ]
	[ "$(json t.assay 'all(x["wait_status"] == 0 and x["cpu_s"] > 0.01 for x in d["runs"])')" = True ]
	[ "$(json t.assay 'max(row["runs"] for row in d["rows"])')" = 3 ]
	[ "$(json t.assay 'abs(sum(x["cpu_s"] for x in d["runs"]) - d["cpu_s"]) < 0.1')" = True ]
}

@test "each run reads standard input from where it stood" {
	need_recording
	printf 'one\ntwo\n' >in
	run -0 --separate-stderr bash -c '{ read -r x; assay record -q --trials 3 -- cat; } <in'
	[ "$output" = $'two\ntwo\ntwo' ]
	run -0 --separate-stderr bash -c 'cat in | assay record -q --trials 2 -- cat'
	[ "$output" = $'one\ntwo' ]
}

# counts its runs in the file `count`
counting() {
	cat >counting <<-END
		#!/bin/sh
		n=\$((\$(cat count 2>/dev/null || echo 0) + 1))
		echo \$n >count
		$busy
		$1
	END
	chmod +x counting
}

@test "the status is that of the first run that failed, which is named" {
	need_recording
	counting '[ $n != 2 ] || exit 3; [ $n != 3 ] || exit 4'
	run -3 --separate-stderr assay record --trials 4 -o f.assay -- ./counting
	[[ $stderr == *'4 runs, '*'exit 3 in run 2'* ]]
	[ "$(cat count)" = 4 ]
	[ "$(json f.assay '[x["wait_status"] for x in d["runs"]]')" = '[0, 768, 1024, 0]' ]
}

@test "Ctrl-C ends the run that is going on and keeps those before" {
	need_recording
	counting '[ $n != 3 ] || exec sleep 30'
	env --default-signal=INT assay record -q --trials 9 -o i.assay -- ./counting &
	pid=$!
	for _ in $(seq 200); do
		[ "$(cat count 2>/dev/null)" != 3 ] || break
		sleep 0.1
	done
	sleep 1
	kill -INT $pid
	status=0
	wait $pid || status=$?
	[ $status = 130 ]
	[ "$(json i.assay 'len(d["runs"])')" = 2 ]
	[ "$(json i.assay 'd["samples"] > 5')" = True ]
}

@test "what only one run did is marked" {
	session trials 7
	run -0 assay report trials.assay
	[[ $output == *': 7 runs, '* ]]
	[[ $output =~ app::retry[^$'\n']*'in one run of 7' ]]
	[[ ! $output =~ app::parse[^$'\n']*'in one run' ]]
	[ "$(json trials.assay 'r["app::retry"]["runs"], r["app::parse"]["runs"]')" = '(1, 7)' ]
	# shares of parse differ from run to run by 3 points: wider than one run of 9,500 samples says
	[ "$(json trials.assay 'r["app::parse"]["self_high"] - r["app::parse"]["self_low"] > 0.035')" = True ]
	run -0 assay report --time 0s..1s trials.assay
	[[ $output != *'in one run'* ]]
}

@test "until 5%: says how long first, and ends when it is so" {
	need_recording
	run -0 --separate-stderr timeout 100 assay record --until 5% -o u.assay -- sh -c "$busy; ls -R /usr/share/doc >/dev/null"
	[ "$(json u.assay 'len(d["runs"]) >= 10')" = True ]
	if [[ $stderr == *'recorded until all of 5 % or more was known to ± 5 %'* ]]; then
		[ "$(json u.assay 'all(x["total_high"] - x["total_low"] <= 0.1 for x in d["rows"] if x["total"] >= 0.05)')" = True ]
	else
		[[ $stderr == *'ended before all of 5 % or more was known to ± 5 %'* ]]
		false
	fi
}

@test "until what cannot be reached: the limit ends it, and that is said" {
	need_recording
	run -0 --separate-stderr timeout 60 assay record --until 0.02 --duration 9 -o l.assay -- sh -c "${busy/60000/9000}"
	[[ $stderr =~ 'assay: all of 5 % or more to ± 0.02 %: about '.*' runs) in all, 9'[.0]*' s at most' ]]
	[[ $stderr == *'ended before all of 5 % or more was known to ± 0.02 %'* ]]
	[ "$(json l.assay 'len(d["runs"]) >= 10')" = True ]
}

@test "until with a running process: stays until it is known" {
	need_recording
	sh -c "while :; do :; done" &
	pid=$!
	run -0 --separate-stderr timeout 60 assay record --until 5% -p $pid -o p.assay
	kill $pid
	[[ $stderr == *'recorded until all of 5 % or more was known to ± 5 %'* ]]
	[ "$(json p.assay '"runs" not in d and d["samples"] >= 200')" = True ]
}

@test "the slowdown is measured, and every report says it" {
	need_recording
	counting ''
	run -0 --separate-stderr assay record --measure-overhead --trials 4 -o o.assay -- ./counting
	[ "$(cat count)" = 8 ]
	[[ $stderr == *' in 4 pairs of runs'* || $stderr == *'recording made the program '*' slower'* ]]
	run -0 assay report o.assay
	[[ $output == *' in 4 pairs of runs'* || $output == *'recording made the program '*' slower'* ]]
	[ "$(json o.assay 'd["trust"]["overhead"]["pairs"]')" = 4 ]
	[ "$(json o.assay '(lambda o: o["low"] <= o["slowdown"] <= o["high"] and abs(o["slowdown"]) < 1)(d["trust"]["overhead"])')" = True ]
}

@test "what cannot be asked for" {
	run -125 --separate-stderr assay record --trials 2 -p 1
	[[ $stderr == *'--trials runs a program several times'* ]]
	run -125 --separate-stderr assay record --measure-overhead -p 1
	run -125 --separate-stderr assay record --until 1% -o - -- true
	[[ $stderr == *'needs a file'* ]]
	run -125 assay record --until 0 -- true
	run -125 assay record --trials 0 -- true
	run -127 assay record --trials 3 -- no-such-program
	run -127 assay record --measure-overhead -- no-such-program
}
