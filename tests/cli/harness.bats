#!/usr/bin/env bats
# SPDX-License-Identifier: MIT OR Apache-2.0
# Bench programs in C and C++ over libassay-bench: what they print, and what happens to bad ones.
# beside others
load lib

setup_file() {
	local top=$BATS_TEST_DIRNAME/../..
	local here=${BATS_FILE_TMPDIR:?}
	ASSAY=${ASSAY:-$top/build/src/cli/assay}
	export LIBRARY INCLUDE=$top/include BENCH=$here/bench
	LIBRARY=$(realpath "$(dirname "$ASSAY")/../harness/libassay-bench.a")
	command -v cc >/dev/null || return 0
	cc -O2 -Wall -Wextra -Werror -I"$INCLUDE" "$BATS_TEST_DIRNAME/harness_bench.c" -o "$BENCH" \
		"$LIBRARY" -lm -lpthread -lz
}

# json ARGS…: runs the program, and leaves the document in out.json
json() {
	"$BENCH" --format json "$@" >out.json 2>err.txt
}

# likely EXPRESSION ARGS…: as json and holds, for what a busy second of the machine can spoil (lib: tries)
likely() {
	local expression=$1
	shift
	tries 'holds "$expression"' json "$@"
}

# holds EXPRESSION: Python, of d (the document), b (its first benchmark), c (its first comparison)
holds() {
	python3 - "$1" <<-'PY'
		import json, sys
		d = json.load(open('out.json'))
		b = d['benchmarks'][0] if d['benchmarks'] else None
		c = d['comparisons'][0] if d['comparisons'] else None
		by = {x['name']: x for x in d['benchmarks']}
		kinds = lambda x: {n['kind'] for n in x['notes']}
		if not eval(sys.argv[1]):
		    print(json.dumps(d, indent=1)[:3000])
		    sys.exit(1)
	PY
}

@test "a line per benchmark: time with its interval, and a rate" {
	run "$BENCH" --time 0.3 crc_4k sum/1000
	[ "$status" = 0 ]
	[[ $output =~ crc_4k\ +[0-9.]+\ [nu]s\ \ ±\ [0-9.]+\ %\ \ [0-9.]+\ [MG]iB/s ]]
	[[ $output =~ sum/1000\ +[0-9.]+\ [nu]s\ \ ±\  ]]
	[[ ! $output =~ sum/10\  ]]
}

@test "the document is assay.bench/1 and its figures are in order" {
	# a batch is about a millisecond
	likely "2e-4 < b['iterations'] * b['plain']['min'] < 5e-3 and b['processes'] >= 3" --time 0.4 crc_4k
	holds "d['schema'] == 'assay.bench/1' and b['kind'] == 'function' and b['unit'] == 's'"
	holds "b['low'] <= b['mean'] <= b['high'] and b['plain']['min'] <= b['mean'] <= b['plain']['max']"
	holds "len(b['samples']) == b['processes'] and len(b['batch_times']) == b['processes'] * b['batches']"
	holds "b['throughput']['kind'] == 'bytes' and b['throughput']['n'] == 4096"
	holds "abs(b['throughput']['per_second'] - 4096 / b['mean']) < 1e-3 * b['throughput']['per_second']"
}

@test "assay reads what a bench program writes" {
	json --time 0.2 crc_4k
	run "$ASSAY" bench compare out.json out.json
	[ "$status" = 0 ]
}

@test "time grows with the work" {
	likely "by['sum/10']['mean'] * 20 < by['sum/1000']['mean'] < by['sum/10']['mean'] * 2000" --time 0.3 sum
}

@test "allocations, their bytes and the most at once are exact" {
	json --time 0.05 alloc
	holds "any('allocations' in x for x in d['benchmarks'])" >/dev/null || skip "allocations are not seen here"
	likely "all('allocations' in x for x in d['benchmarks'])" --time 0.2 alloc # there was time to count them
	holds "by['alloc_three']['allocations'] == {'count': 4, 'bytes': 210, 'peak_bytes': 210}"
	holds "by['alloc_in_libc']['allocations'] == {'count': 2, 'bytes': 24, 'peak_bytes': 16}"
	# what is made ready outside of the loop does not count
	holds "by['alloc_outside']['allocations'] == {'count': 0, 'bytes': 0, 'peak_bytes': 0}"
}

@test "counting allocations does not touch what is timed" {
	json --time 0.5 alloc_three
	cp out.json with.json
	likely "0.7 < b['plain']['min'] / json.load(open('with.json'))['benchmarks'][0]['plain']['min'] < 1.4" \
		--time 0.5 --no-allocations alloc_three
	holds "'allocations' not in b"
}

@test "a static program has no figure of allocations, rather than a wrong one" {
	printf '%s\n' '#include <assay/bench.h>' '#include <stdlib.h>' \
		'ASSAY_BENCH(a) { ASSAY_ITER(b) { void *p = malloc(9); assay_black_box(p); free(p); } }' \
		ASSAY_BENCH_MAIN >a.c
	cc -O2 -static -I"$INCLUDE" a.c -o a "$LIBRARY" -lm -lpthread 2>cc.log || skip "no static C library"
	run ./a --time 0.05
	[ "$status" = 0 ]
	[[ $output != *alloc* ]]
}

@test "C++ programs compile without a warning, and their new is counted" {
	command -v c++ >/dev/null || skip "no C++ compiler"
	cat >b.cc <<-'CC'
		#include <assay/bench.h>
		#include <stdexcept>
		#include <vector>
		ASSAY_BENCH(vectors)
		{
			ASSAY_ITER (b) {
				std::vector<char> v(1000);
				assay_black_box(v.data());
			}
		}
		ASSAY_BENCH(throws)
		{
			ASSAY_ITER (b)
				throw std::runtime_error("no such corpus");
		}
		ASSAY_BENCH_ARGS(reserve, 1, 8)
		{
			ASSAY_ITER_INPUTS (b, std::vector<int> *, v, ASSAY_LARGE_INPUT,
					   *v = new std::vector<int>(), delete *v)
				(*v)->reserve((size_t)assay_arg(b));
		}
		ASSAY_BENCH_MAIN
	CC
	c++ -std=c++11 -O2 -Wall -Wextra -Werror -I"$INCLUDE" b.cc -o cxx "$LIBRARY" -lm -lpthread
	BENCH=./cxx json --time 0.1 || [ $? = 1 ]
	holds "'allocations' not in by['vectors'] or by['vectors']['allocations'] == {'count': 1, 'bytes': 1000, 'peak_bytes': 1000}"
	holds "'allocations' not in by['reserve/8'] or by['reserve/8']['allocations'] == {'count': 1, 'bytes': 32, 'peak_bytes': 32}"
	holds "by['throws']['mean'] is None and 'no such corpus' in by['throws']['notes'][0]['text']"
}

# ---- iterations and time ----

@test "an iteration of 0.2 s: the budget holds, and two processes have an honest interval" {
	export COUNT_FILE=$PWD/count
	likely "b['processes'] <= 4 and b['mean'] < 0.4 and d['seconds'] < 3" --time 0.5 takes_200ms
	holds "b['iterations'] == 1 and b['processes'] >= 2 and b['mean'] > 0.19"
	rm count
	json --time 0.05 takes_200ms
	holds "b['processes'] == 2 and b['low'] is not None and b['low'] < b['mean'] < b['high']"
	# found out in two, measured in one more (the calibration's is the other)
	[ "$(wc -l <count)" -le 5 ]
}

@test "a hard end for all benchmarks together" {
	likely "d['seconds'] < 3" --budget 1 sum crc_4k takes_200ms
	holds "len(d['benchmarks']) == 5"
}

@test "set-up of a millisecond around 2 ns: planned on the routine, and said" {
	json --time 0.3 slow_inputs
	holds "b['iterations'] > 1 and 0 < b['mean'] < 1e-6"
	holds "'setup-dominates' in kinds(b) and b['harness']['setup_share'] > 0.9"
}

@test "a benchmark that becomes 1000 times slower after 1000 calls ends" {
	run timeout 30 "$BENCH" --time 0.3 slow_later
	[ "$status" = 0 ]
	[[ $output =~ slow_later\ +[0-9.]+\ [um]s ]]
}

@test "counted units stop after three iterations, and say that they are exact" {
	export COUNT_FILE=$PWD/count
	run "$BENCH" --no-allocations own_counted
	[ "$status" = 0 ]
	[[ $output =~ own_counted\ +1234\ instructions\ \ exactly ]]
	[ "$(wc -l <count)" = 3 ]
}

@test "zero is a value" {
	json own_zero
	holds "b['mean'] == 0 and b['low'] == 0 and b['high'] == 0 and b['unit'] == 'misses'"
	holds "'failed' not in kinds(b)"
}

@test "time that does not grow with the iterations is named, and time that grows faster" {
	json --time 0.1 own_constant own_growing
	holds "'not-proportional' in kinds(by['own_constant'])"
	holds "'not-proportional' in kinds(by['own_growing'])"
	likely "'not-proportional' not in kinds(b)" --time 0.1 sum/1000
}

@test "what the harness itself costs is measured and said" {
	run "$BENCH" --time 0.2 --verbose empty
	[[ $output =~ empty\ loop\ [0-9.]+\ ns,\ clock\ [0-9.]+\ ns ]]
	json --time 0.2 empty
	holds "('optimised-away' in kinds(b)) == (b['mean'] < 1.3 * b['harness']['loop'])"
	holds "1e-10 < b['harness']['loop'] < 1e-8 and 1e-9 < b['harness']['clock'] < 1e-6"
	json --time 0.1 own_constant
	holds "'optimised-away' in kinds(b)"
}

@test "inputs made one by one, by tens and by thousands cost the same" {
	likely "all(0.4 < b['plain']['min'] / by['flip_small']['plain']['min'] < 2.5 for b in d['benchmarks'])" \
		--time 0.5 flip
}

@test "one of two speeds per process is called bimodal" {
	[ "$(cat /proc/sys/kernel/randomize_va_space)" != 0 ] || skip "no address randomisation"
	likely "b['processes'] < 20 or 'bimodal' in kinds(b)" --time 1.2 two_speeds
}

@test "a program built without optimisation says so" {
	printf '%s\n' '#include <assay/bench.h>' 'ASSAY_BENCH(a) { ASSAY_ITER(b) assay_black_box(1); }' \
		ASSAY_BENCH_MAIN >a.c
	cc -O0 -I"$INCLUDE" a.c -o a "$LIBRARY" -lm -lpthread
	run ./a --time 0.05
	[[ $output == *debug-build* ]]
}

# ---- threads ----

@test "threads begin together: per-thread and joint rates, and how far they overlapped" {
	[ "$(nproc)" -ge 2 ] || skip "one CPU"
	likely "by['contend/threads=4']['per_process']['rate_together'] > 1e6" --time 0.3 contend
	holds "by['contend/threads=2']['threads'] == 2 and by['contend/threads=4']['threads'] == 4"
	holds "0 <= by['contend/threads=2']['per_process']['overlap'] <= 1"
	holds "'overlap' not in by['contend/threads=1']['per_process']"
	run "$BENCH" --time 0.2 contend/threads=2
	[[ $output =~ /s\ a\ thread,\ .*/s\ together\ \(overlap ]]
}

# ---- slow and strange programs ----

@test "a slow start is taken once, and said" {
	export SLOW_START=0.3
	likely "b['processes'] >= 3" --time 1 --exact crc_4k
	holds "'forked' in kinds(b)"
}

@test "a slow first run is taken once, and said" {
	likely "b['mean'] < 1e-4" --time 0.3 cold_table
	holds "'forked' in kinds(b)"
}

@test "a first run that starts a thread is not forked: its threads would be missing" {
	json --time 0.3 --timeout 20 cold_thread
	holds "'forked' not in kinds(b) and b['processes'] >= 1 and 0 < b['mean'] < 1e-2"
}

@test "names that differ from run to run are measured in place, and said" {
	export CHANGING=1
	json --time 0.2
	holds "b['name'].startswith('changing_') and 'in-process' in kinds(b) and b['mean'] > 0"
}

@test "gigabytes on the outputs are thrown away" {
	run timeout 60 "$BENCH" --time 0.2 loud
	[ "$status" = 0 ]
	[ ${#output} -lt 2000 ]
}

@test "crash, exit, hang, fork: that benchmark's error; the others go on; status 1" {
	run timeout 60 "$BENCH" --time 0.1 --timeout 1 bad_ sum/10
	[ "$status" = 1 ]
	[[ $output =~ bad_crash\ +failed:\ its\ process\ was\ killed\ by\ signal\ 11 ]]
	[[ $output =~ bad_exit\ +failed:\ its\ process\ ended\ with\ status\ 0\ in\ the\ middle ]]
	[[ $output =~ bad_hang\ +failed:\ did\ not\ finish\ within\ 1 ]]
	[[ $output =~ bad_assert\ +failed:.*signal\ 6.*assertion\ \'x\ \>\ 0\'\ failed ]]
	[[ $output =~ bad_fork\ +failed:\ the\ benchmark\ forked ]]
	[[ $output =~ bad_fork_away\ +failed:\ its\ process\ ended ]]
	[[ $output =~ bad_no_loop\ +failed:\ the\ benchmark\ measured\ nothing ]]
	[[ $output =~ bad_break\ +failed:\ the\ benchmark\ left\ its\ timed\ loop ]]
	[[ $output =~ bad_file\ +failed:\ the\ file\ \'corpus\'\ is\ missing ]]
	[[ $output =~ sum/10\ +[0-9.]+\ ns ]]
	# nothing is left behind
	! pgrep -f "$BENCH" >/dev/null
}

# ---- listing and testing ----

@test "list, test and exact" {
	run "$BENCH" --list
	[ "$status" = 0 ]
	[ "${lines[0]}" = crc_4k ]
	[ "${lines[1]}" = sum/10 ]
	export COUNT_FILE=$PWD/count
	run "$BENCH" --test --exact own_counted
	[ "$output" = "own_counted ... ok" ]
	[ "$(wc -l <count)" = 1 ]
	run "$BENCH" --list --exact sum/10
	[ "$output" = sum/10 ]
	run "$BENCH" --test bad_no_loop
	[ "$status" = 1 ]
}

@test "what cannot be asked for" {
	run "$BENCH" nosuchbenchmark
	[ "$status" = 2 ]
	[[ $output == *"no benchmark's name has 'nosuchbenchmark'"* ]]
	for bad in --nosuch --time '--time x' '--delta 0' '--format yaml' '--vs ./nosuch'; do
		# shellcheck disable=SC2086 # two words
		run "$BENCH" $bad
		[ "$status" = 2 ]
		[ ${#lines[@]} = 1 ]
	done
}

# ---- two programs ----

@test "a program against its copy: equal, or undecided with the seconds that would decide" {
	cp "$BENCH" before
	likely "c['verdict'] in ('equal', 'undecided')" --vs ./before --time 3 --delta 20 sum/1000
	holds "c['processes'] >= 3 and c['low'] < c['ratio'] < c['high']"
	holds "len(c['pairs']) == c['processes'] and 'not-copied' not in kinds(c)"
	holds "[x['side'] for x in d['benchmarks']] == ['before', 'now']"
	holds "c['verdict'] == 'equal' or c['seconds_needed'] is None or c['seconds_needed'] > 0"
}

@test "twice the work is slower, and --fail-on slower says so by status 3" {
	for n in 1 2; do
		printf '%s\n' '#include <assay/bench.h>' \
			"ASSAY_BENCH(a) { ASSAY_ITER(b) for (int i = 0; i < 500 * $n; i++) assay_black_box(i); }" \
			ASSAY_BENCH_MAIN >a.c
		cc -O2 -I"$INCLUDE" a.c -o a$n "$LIBRARY" -lm -lpthread
	done
	# no caveat: it is far too much for that
	tries '[[ $status == 3 && $output == *slower* && $output != *layout* ]]' \
		./a2 --vs ./a1 --time 10 --fail-on slower
	tries '[[ $status == 0 && $output == *faster* ]]' ./a1 --vs ./a2 --time 10 --fail-on slower
}

@test "our own part of a comparison takes a tenth of its time at most" {
	cp "$BENCH" before
	export TELL_CPU=1 COUNT_FILE=$PWD/cpu
	tries '[ "$(grep -o "[0-9]*$" cpu | tail -1)" -lt 200000 ]' \
		"$BENCH" --vs ./before --time 2 --delta 0.1 sum/1000
}

# ---- versions of the protocol ----

@test "a program of another version is refused, in both directions" {
	printf '%s\n' '#!/bin/bash' 'printf "assay-bench\t7\t9.9\ndone\n" >&198' >newer
	chmod +x newer
	run "$BENCH" --vs ./newer --time 0.1 crc_4k
	[ "$status" = 1 ]
	[[ $output == *"speaks version 7 of the bench protocol (library 9.9)"* ]]
	ASSAY_BENCH_WORKER='7 fd=1 do=list' run "$BENCH"
	[ "$status" = 2 ]
	[[ ${lines[0]} == assay-bench$'\t'1* ]]
	[[ ${lines[1]} == error$'\t'*"version 7"* ]]
	ASSAY_BENCH_WORKER='1 fd=1 do=list what=1' run "$BENCH"
	[ "$status" = 2 ]
	[[ ${lines[1]} == *"what=1"* ]]
}

@test "a program without the library is no bench program" {
	run "$BENCH" --vs /bin/true --time 0.1 crc_4k
	[ "$status" = 1 ]
	[[ $output == *"no bench program of assay"* ]]
}

@test "an answer cut short or full of rubbish is one clear error" {
	for answer in 'hello\n' 'assay-bench\t1\t0\ncalibrated\tx\ndone\n' \
		'assay-bench\t1\t0\ndone\n' 'assay-bench\t1\t0\nbench\ndone\n'; do
		printf '%s\n' '#!/bin/bash' "printf '$answer' >&198" >bad
		chmod +x bad
		run "$BENCH" --vs ./bad --time 0.1 crc_4k
		[ "$status" = 1 ]
		[[ $output == *"failed: a damaged answer"* ]]
	done
}

@test "compiled from its sources with plain cc, as a build script does" {
	local top=$BATS_TEST_DIRNAME/../.. file
	set --
	while read -r file; do
		case $file in '#'* | '@'*) ;; *) set -- "$@" "$top/src/$file" ;; esac
	done <"$top/src/harness/sources.txt"
	cc -O0 -std=gnu17 -D_GNU_SOURCE -fno-strict-aliasing -I"$INCLUDE" -I"$top/src" \
		"$BATS_TEST_DIRNAME/harness_bench.c" "$@" -o plain -lm -lpthread -lz
	run ./plain --test --exact crc_4k
	[ "$output" = "crc_4k ... ok" ]
}
