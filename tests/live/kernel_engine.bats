#!/usr/bin/env bats
# The kernel engine on programs whose profile and stacks are known (tests/workloads). Needs root or
# CAP_BPF and CAP_PERFMON; skipped where the engine says it cannot run.
# ASSAY: the program under test. Its build folder holds the workloads.
# SPDX-License-Identifier: MIT OR Apache-2.0

bats_require_minimum_version 1.5.0

setup() {
	ASSAY=${ASSAY:-build/src/cli/assay}
	BUILD=$(cd "$(dirname "$ASSAY")/../.." && pwd)
	W=$BUILD/tests/workloads
	DIR=$(mktemp -d)
	S=$DIR/s.assay
	export XDG_CACHE_HOME=$DIR/cache
	"$ASSAY" record --engine kernel -q -o "$S" -- true >/dev/null 2>"$DIR/err" ||
		skip "$(head -1 "$DIR/err")"
}

teardown() {
	rm -rf "$DIR"
}

record() {
	"$ASSAY" record --engine kernel -o "$S" "$@" >/dev/null 2>"$DIR/err" || {
		local r=$?
		cat "$DIR/err"
		return $r
	}
}

# value PYTHON-EXPRESSION over the report's JSON: t trust, r rows by name
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
	[ "$(value "t['samples'] >= $2 and (t['complete'] + t['repaired']) / t['samples'] >= $1")" = True ] || {
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

calls_only() {
	"$BUILD/tests/live/call-sites" "$S"
}

@test "a plain program: all stacks complete, the split found, CPU time explained, nothing lost" {
	record -- "$W/split" 1 70 30
	complete 0.99 500
	between share_a total 0.64 0.76
	[ "$(value "t['lost'] == 0 and 0.95 <= t['explained_cpu'] <= 1.05")" = True ]
	calls_only
}

@test "frames of any size" {
	for shape in '3 3000' '3 30000' '1 122336' '400 100'; do
		# shellcheck disable=SC2086
		record -- "$W/deep" $shape 0.4
		complete 0.99 200
		between main total 0.85 1
		calls_only
	done
}

@test "twenty thousand frames reach the thread's first one" {
	record -- "$W/deep" 20000 100 0.6
	complete 0.98 300
	between main total 0.85 1
	calls_only
}

@test "alternate stacks, coroutines, the vdso" {
	record -- "$W/stacks" altstack 0.4
	complete 0.99 200
	between victim total 0.85 1
	calls_only
	record -- "$W/stacks" coroutine 0.4
	complete 0.99 200
	between spin total 0.85 1
	record -- "$W/stacks" vdso 0.4
	complete 0.99 100
	between in_vdso total 0.85 1
}

@test "vfork, fork and exec storms are complete from the first instant" {
	record -F 4999 -- "$W/stacks" vfork 0.5
	complete 0.98 50
	record -- "$W/processes" fork 150 0.015
	complete 0.98 300
	between child_work total 0.8 1
	record -- "$W/processes" exec 100 0.005
	complete 0.98 300
	record -- "$W/processes" nested 12 0.02
	complete 0.98 100
}

@test "programs that end within milliseconds, while their libraries are being mapped" {
	# shellcheck disable=SC2016
	record -F 1999 -- bash -c 'for i in $(seq 80); do ls >/dev/null; done'
	[ "$(value "t['samples'] >= 100 and t['truncated'] <= 0.02 * t['samples']")" = True ] || {
		value "t"
		return 1
	}
	calls_only
}

@test "two libraries at one address are told apart" {
	record -- "$W/loader" "$W" 4 0.15
	complete 0.99 300
	between plugin_a total 0.4 0.6
	between plugin_b total 0.4 0.6
	calls_only
}

@test "text moved onto anonymous memory keeps its names" {
	record -- "$W/remapped" 0.5
	complete 0.98 250
	between moved_work total 0.85 1
}

@test "code without unwind information is left by its frame pointer" {
	record -- "$W/jit" 0.5
	complete 0.98 250
	between call_it total 0.85 1
}

@test "a program in step with the clock is measured right at 100 Hz and 997 Hz" {
	local sum=0 n=6 share
	for _ in $(seq $n); do
		record -F 100 -- "$W/periodic" 1
		share=$(value "round(1000 * r['phase_a']['total'])")
		sum=$((sum + share))
	done
	# 600 samples: a standard deviation of 1.9 points
	[ $((sum / n)) -ge 230 ] && [ $((sum / n)) -le 370 ]
	record -F 997 -- "$W/periodic" 2
	between phase_a total 0.25 0.35
}

@test "attaching finds all threads, also when the main one has ended" {
	"$W/threads" 3 1 &
	local pid=$!
	sleep 0.2
	record -p $pid --duration 0.7
	complete 0.99 100
	between thread_work total 0.85 1
	wait $pid
	"$W/exiting" 2 &
	pid=$!
	sleep 0.2
	record -p $pid --duration 0.7
	complete 0.99 50
	between survivor_work total 0.85 1
	wait $pid || [ $? = 3 ]
}

@test "--no-inherit leaves children out, --no-kernel the kernel's functions" {
	record --no-inherit -- "$W/processes" fork 20 0.01
	[ "$(value "'child_work' not in r")" = True ]
	record --no-kernel -- "$W/split" 0.3
	[ "$(value "not any('syscall' in name for name in r)")" = True ]
	complete 0.99 100
}

@test "what the recording took is all accounted for" {
	record -F 4999 -- "$W/threads" 4 0.3
	[ "$(value "t['lost'] == 0")" = True ]
	complete 0.99 1000
}

@test "inlined Rust functions of line tables alone are told apart by their files" {
	command -v rustc >/dev/null || skip "no rustc"
	mkdir -p "$DIR/lt/src"
	cat >"$DIR/lt/src/main.rs" <<-'END'
		mod other;
		fn mix(n: u64) -> u64 {
		    (0..n).map(|i| i ^ (i.wrapping_mul(31) >> 3)).fold(n, |a, b| a.rotate_left(5) ^ b)
		}
		fn main() { println!("{}", mix(900_000_000) ^ other::mix(900_000_000)); }
	END
	cat >"$DIR/lt/src/other.rs" <<-'END'
		#[inline(always)]
		pub fn mix(n: u64) -> u64 {
		    (0..n).map(|i| i.wrapping_mul(i | 5) >> 7).fold(n, |a, b| a.rotate_left(9) ^ b)
		}
	END
	rustc -O -C debuginfo=line-tables-only -o "$DIR/lt/lt" "$DIR/lt/src/main.rs"
	record -- "$DIR/lt/lt"
	[ "$(value "{'lt::other::{closure}', 'lt::{closure}'} <= set(r)")" = True ]
	[ "$(value "{'core', 'lt'} <= {row.get('crate') for row in r.values()}")" = True ]
}

@test "panic=abort without debug information" {
	command -v rustc >/dev/null || skip "no rustc"
	cat >"$DIR/pa.rs" <<-'END'
		use std::hint::black_box;
		#[inline(never)]
		fn burn(n: u64) -> u64 {
		    let mut s = 0u64;
		    for i in 0..n { s = s.wrapping_mul(31) ^ black_box(i); }
		    s
		}
		fn main() { println!("{}", burn(black_box(700_000_000))); }
	END
	rustc -O -C panic=abort -C debuginfo=0 -o "$DIR/pa" "$DIR/pa.rs"
	record -- "$DIR/pa"
	complete 0.99 100
	calls_only
}
