#!/usr/bin/env bats
# The ring engine on programs whose profile and stacks are known (tests/workloads), with the rights of whoever
# runs this and again as an ordinary user.
# ASSAY: the program under test. Its build folder holds the workloads.
# SPDX-License-Identifier: MIT OR Apache-2.0

bats_require_minimum_version 1.5.0

setup() {
	ASSAY=${ASSAY:-build/src/cli/assay}
	W=$(cd "$(dirname "$ASSAY")/../../tests/workloads" && pwd)
	DIR=$(mktemp -d)
	S=$DIR/s.assay
	export XDG_CACHE_HOME=$DIR/cache
}

teardown() {
	rm -rf "$DIR"
}

record() {
	"$ASSAY" record --engine ring -o "$S" "$@" >/dev/null 2>"$DIR/err" || {
		local r=$?
		cat "$DIR/err"
		return $r
	}
}

# value PYTHON-EXPRESSION over the report's JSON d, rows by name r
value() {
	"$ASSAY" report --format json --top 1000 "$S" >"$DIR/json"
	python3 - "$DIR/json" "$1" <<-'END'
		import json, sys
		d = json.load(open(sys.argv[1]))
		t = d["trust"]
		r = {row["name"]: row for row in d["rows"]}
		print(eval(sys.argv[2]))
	END
}

# complete or repaired at least SHARE of at least N samples
complete() {
	local got
	got=$(value "t['samples'] >= $2 and (t['complete'] + t['repaired']) / t['samples'] >= $1")
	[ "$got" = True ] || {
		value "t"
		return 1
	}
}

between() { # NAME WHICH LOW HIGH
	[ "$(value "$3 <= r['$1']['$2'] <= $4")" = True ] || {
		value "r.get('$1')"
		return 1
	}
}

@test "a plain program: all stacks complete, the split found, CPU time explained" {
	record -- "$W/split" 1 70 30
	complete 0.98 500
	between share_a total 0.62 0.78
	between share_b total 0.22 0.38
	[ "$(value "t['lost'] == 0")" = True ]
	[ "$(value "0.9 <= t['explained_cpu'] <= 1.05")" = True ]
}

@test "frames larger than any copy are repaired from live memory" {
	record -- "$W/deep" 3 30000 0.5
	complete 0.95 250
	between main total 0.85 1
	record -- "$W/deep" 1 122336 0.5
	complete 0.95 250
}

@test "twenty thousand frames reach the thread's first one" {
	record -- "$W/deep" 20000 100 0.5
	complete 0.95 200
	between main total 0.85 1
}

@test "a handler on an alternate stack leads back to who was interrupted" {
	record -- "$W/stacks" altstack 0.5
	complete 0.95 250
	between victim total 0.85 1
	record -- "$W/stacks" plainsignal 0.5
	complete 0.95 250
	between victim total 0.85 1
}

@test "a coroutine ends at its own first frame" {
	record -- "$W/stacks" coroutine 0.5
	complete 0.95 250
	between spin total 0.85 1
}

@test "vdso and vfork" {
	record -- "$W/stacks" vdso 0.5
	complete 0.95 100
	between in_vdso total 0.85 1
	record -F 4999 -- "$W/stacks" vfork 0.5
	complete 0.95 10
}

@test "forks and execs are followed" {
	record -- "$W/processes" fork 100 0.02
	complete 0.95 150
	between child_work total 0.8 1
	record -- "$W/processes" exec 60 0.012
	complete 0.95 100
}

@test "two threads 1 : 2, their names kept, and threads that live for a millisecond" {
	record -- "$W/threads" 2 0.4
	complete 0.98 500
	"$ASSAY" report --format json --by thread "$S" >"$DIR/json"
	python3 - "$DIR/json" <<-'END'
		import json, sys
		rows = json.load(open(sys.argv[1]))["rows"]
		share = {i: sum(r["self"] for r in rows if r["name"].startswith("my worker; #%d" % i)) for i in (0, 1)}
		assert 0.26 <= share[0] <= 0.41 and 0.59 <= share[1] <= 0.74, (share, rows)
	END
	record -F 4999 -- "$W/threads" 200 0.001 storm
	complete 0.95 50
}

@test "two libraries at one address are told apart" {
	record -- "$W/loader" "$W" 4 0.15
	complete 0.95 300
	between plugin_a total 0.35 0.65
	between plugin_b total 0.35 0.65
}

@test "text moved onto anonymous memory keeps its names" {
	record -- "$W/remapped" 0.5
	complete 0.95 250
	between moved_work total 0.85 1
}

@test "a program in step with the clock is measured right at 100 Hz" {
	local sum=0 n=6 share
	for _ in $(seq $n); do
		record -F 100 -- "$W/periodic" 1
		share=$(value "round(1000 * r['phase_a']['total'])")
		sum=$((sum + share))
	done
	# 600 samples: a standard deviation of 1.9 points
	[ $((sum / n)) -ge 230 ] && [ $((sum / n)) -le 370 ]
}

@test "an executable deleted while it runs keeps its names" {
	cp "$W/split" "$DIR/gone"
	("$ASSAY" record --engine ring -o "$S" -- "$DIR/gone" 1 >/dev/null 2>&1) &
	for _ in $(seq 200); do
		pgrep -f "^$DIR/gone" >/dev/null && break
		sleep 0.05
	done
	sleep 0.2
	rm "$DIR/gone"
	wait $!
	complete 0.95 400
	between share_a total 0.6 0.8
}

@test "attaching finds all threads, also when the main one has ended" {
	"$W/threads" 3 1 &
	local pid=$!
	sleep 0.2
	record -p $pid --duration 0.7
	complete 0.95 100
	between thread_work total 0.8 1
	wait $pid
	"$W/exiting" 2 &
	pid=$!
	sleep 0.2
	record -p $pid --duration 0.7
	complete 0.95 50
	between survivor_work total 0.8 1
	wait $pid || [ $? = 3 ]
}

@test "killed or failing, the program's status is its own and the profile stands" {
	run "$ASSAY" record --engine ring -o "$S" -- sh -c 'exit 3'
	[ "$status" = 3 ]
	[ -s "$S" ]
	run "$ASSAY" record --engine ring -o "$S" -- sh -c 'kill -9 $$'
	[ "$status" = 137 ]
	run -127 "$ASSAY" record --engine ring -o "$DIR/none.assay" -- /no/such/program
	[ "$status" = 127 ]
	[ ! -e "$DIR/none.assay" ] && [ ! -e "$DIR/none.assay.partial" ]
}

@test "assay killed with SIGKILL leaves the program running and the file readable" {
	("$ASSAY" record --engine ring -o "$S" -- "$W/split" 3 >/dev/null 2>&1) &
	sleep 2
	local assay
	assay=$(pgrep -n -f "record --engine ring -o $S")
	local target
	target=$(pgrep -n -f "^$W/split 3")
	kill -9 "$assay"
	kill -0 "$target"
	"$ASSAY" report "$S.partial" >"$DIR/out" 2>&1 || "$ASSAY" report "$S" >"$DIR/out"
	grep -q share_a "$DIR/out" || grep -q 'samples' "$DIR/out"
	kill "$target" || true
}

@test "an ordinary user gets complete stacks too" {
	[ "$(id -u)" = 0 ] || skip "needs root to become nobody"
	[ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ] || skip "perf_event_paranoid is above 2"
	command -v setpriv >/dev/null || skip "no setpriv"
	chmod 755 "$DIR"
	cp "$ASSAY" "$W/split" "$W/deep" "$DIR/"
	mkdir -m 777 "$DIR/out"
	for program in 'split 0.5 70 30' 'deep 3 30000 0.5'; do
		XDG_CACHE_HOME=$DIR/out setpriv --reuid=65534 --regid=65534 --clear-groups \
			"$DIR/assay" record -o "$DIR/out/s.assay" -- "$DIR"/$program >/dev/null
		S=$DIR/out/s.assay
		complete 0.95 200
		[ "$(value "t['engine']")" = ring ]
	done
}
