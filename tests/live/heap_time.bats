#!/usr/bin/env bats
# assay record --heap: one run, one session of CPU samples and memory, and what memory costs in time.
# SPDX-License-Identifier: MIT OR Apache-2.0

bats_require_minimum_version 1.5.0

setup() {
	ASSAY=$(realpath "${ASSAY:-$BATS_TEST_DIRNAME/../../build/src/cli/assay}")
	PATH=$(dirname "$ASSAY"):$PATH:/usr/sbin:/sbin
	export XDG_CACHE_HOME=$BATS_FILE_TMPDIR/cache NO_COLOR=1 COLUMNS=100
	cd "$BATS_TEST_TMPDIR" || return 1
	assay record -q --heap -o probe.assay -- true 2>err || skip "cannot record here: $(head -1 err)"
	cat >app.c <<-'END'
		#include <stdlib.h>
		#include <string.h>
		#define NI __attribute__((noinline))
		NI void churn(int n) { for (int i = 0; i < n; i++) { char *volatile p = malloc(100 + i % 500); free(p); } }
		NI void grow(int n) { for (int k = 0; k < n; k++) { char *volatile p = NULL; for (int i = 1; i <= 20; i++) p = realloc(p, i * 50); free(p); } }
		NI void touch(int n) { for (int i = 0; i < n; i++) { char *volatile p = malloc(16 << 20); memset(p, 1, 16 << 20); free(p); } }
		NI void compute(long n) { volatile unsigned long x = 1; for (long i = 0; i < n; i++) x = x * 2862933555777941757ul + i; }
		int main(int argc, char **argv)
		{
			int k = atoi(argv[1]);
			for (int i = 0; i < k; i++) { churn(400000); touch(4); compute(20000000); grow(8000); }
			return 5;
		}
	END
	gcc -g -O1 -o app app.c
}

# value FILE EXPRESSION [OPTION…]: over the report's JSON d; r: its rows by name; a: what memory costs, by line's name
value() {
	local file=$1 expression=$2
	shift 2
	assay report --format json "$@" "$file" >value.json
	python3 - value.json "$expression" <<-'END'
		import json, sys
		d = json.load(open(sys.argv[1]))
		r = {row["name"]: row for row in d["rows"]}
		a = {line["name"]: line for line in d.get("alloc_time", {"lines": []})["lines"]}
		print(eval(sys.argv[2]))
	END
}

# thirty rounds: some twenty samples are in malloc and free, and none there is no chance to reckon with
@test "one run: time as always, memory exactly, and what memory costs in time" {
	for engine in kernel ring; do
		assay record -q --engine $engine -o probe.assay -- true 2>/dev/null || continue
		run -5 --separate-stderr assay record --heap --engine $engine -o both.assay -- ./app 30
		[ -z "$output" ]
		stderr=$(tr -s '[:space:]' ' ' <<<"$stderr") # lines are broken where the figures' widths let them
		[[ $stderr == *compute*'memory '*' % of CPU time: '*'churn (app.c:4), 12,000,000 allocations of'* ]]
		[[ $stderr == *"more samples"*"of assay's own code in the program: left out"* ]]
		[ "$(value both.assay '"measure" not in d and r["compute"]["self"] > 0.1 and r["compute"]["total"] < 0.95')" = True ]
		[ "$(value both.assay 'd["trust"]["own_samples"] > 0 and d["trust"]["engine"]')" = $engine ]
		# assay's frames are in no stack, and its own time in no row
		[ "$(value both.assay '[n for n in r if "assay" in n or n == "[jit]"]')" = '[]' ]
		[ "$(value both.assay '0.05 < d["alloc_time"]["share"] < 0.9 and a["churn"]["allocs"] == 12000000 and a["churn"]["line"] == 4')" = True ]
		[ "$(value both.assay 'a["churn"]["alloc_s"] > 0 and a["churn"]["free_s"] > 0')" = True ]
		[ "$(value both.assay 'd["trust"]["memory"]["dropped"], d["trust"]["memory"]["allocs"] >= 12000000 + 120 + 240000')" = '(0, True)' ]
		if [ "$(value both.assay 'd["alloc_time"]["knows_faults"]')" = True ]; then
			[ "$(value both.assay 'a["touch"]["fault_s"] > 0.5 * sum(line["fault_s"] for line in a.values())')" = True ]
			[ "$(value both.assay 'a["churn"]["fault_s"] < a["touch"]["fault_s"] / 4')" = True ]
		fi
	done
}

@test "the measure alloc-time: shares of all time, who asked, what was allocated there; also of time alone" {
	assay record -q --heap -o both.assay -- ./app 30 || [ $? = 5 ]
	[ "$(value both.assay 'd["measure"], r["churn"]["allocs"], r["grow"]["reallocs"]' --measure alloc-time)" = "('alloc-time', 12000000, 4560000)" ]
	[ "$(value both.assay '"compute" in r or "malloc" in r' --measure alloc-time)" = False ]
	[ "$(value both.assay 'abs(r["main"]["total"] - sum(x["self"] for x in r.values())) < 0.02' --measure alloc-time)" = True ]
	run -0 assay report --measure alloc-time both.assay
	[[ $output == *'alloc-time: CPU time in allocators and in page faults, of all CPU time'*'12,000,000 '*churn* ]]
	run -0 assay report --measure alloc-time --no-fold both.assay
	[[ $output == *malloc* ]]
	assay record -q -o time.assay -- ./app 30 || [ $? = 5 ]
	[ "$(value time.assay 'r["churn"]["self"] > 0.02 and r["churn"]["allocs"] is None and r["churn"]["free_s"] > 0' --measure alloc-time)" = True ]
	run -2 assay report --measure peak time.assay
	[[ $output == *'this session is of time'*'assay record --heap'* ]]
}

@test "every view takes such a session: of time, and of memory where that is asked for" {
	assay record -q --heap -o a.assay -- ./app 1 || [ $? = 5 ]
	assay record -q --heap -o b.assay -- ./app 2 || [ $? = 5 ]
	for m in time allocs bytes live peak churn growth leaked mapped alloc-time; do
		run -0 assay report --measure $m a.assay
		run -0 assay report --measure $m --tree --format csv a.assay
		run -0 assay flame --measure $m -o a.svg a.assay
	done
	for m in time peak alloc-time; do
		run -0 assay view --measure $m --no-open -o a.html a.assay
	done
	run -0 assay report --by type a.assay --measure bytes
	run -0 assay annotate churn a.assay
	run -0 assay annotate --measure allocs churn a.assay
	[[ $output == *400,000* ]]
	for f in folded json speedscope callgrind chrome firefox pprof; do
		run -0 assay export --to $f -o out.$f a.assay
	done
	for f in dhat heaptrack pprof folded; do
		run -0 assay export --measure peak --to $f -o out.$f a.assay
	done
	run -0 assay diff a.assay b.assay
	[[ $output == *' CPU, '*' samples'* ]]
	run -0 assay diff --measure alloc-time a.assay b.assay
	[[ $output == *'intervals'* ]]
	run -0 assay diff --measure allocs a.assay b.assay
	[[ $output == *'+400,000 '*churn* ]]
	run -0 assay report --fail-if 'allocs(in=churn) > 400000' a.assay
	run -3 assay report --fail-if 'allocs(in=churn) > 400000' b.assay
	run -2 assay diff --measure allocs a.assay b.assay --self
}

@test "what it starts is told apart, by time and by memory alike" {
	cat >kids.py <<-'END'
		import os, subprocess
		a = [str(i) * 3 for i in range(200000)]
		subprocess.run(["./app", "1"])
		if os.fork() == 0:
		    b = sorted(a * 3)
		    os._exit(0)
		os.wait()
	END
	assay record -q --heap -o kids.assay -- /usr/bin/python3 kids.py
	[ "$(value kids.assay 'len([p for p in d["processes"] if p["name"] == "app"])')" = 1 ]
	[ "$(value kids.assay 'r["app"]["self"] > 0.05 and r["app"]["allocs"] >= 400000' --by process --measure alloc-time)" = True ]
	[ "$(value kids.assay '[x["name"] for x in d["rows"]].count("app")' --by process)" = 1 ]
	assay report --by thread --format json --measure allocs kids.assay >/dev/null
}

@test "a running process: both are seen, and it goes on as it was" {
	./app 100000 &
	pid=$!
	sleep 0.3
	run -0 assay record -q --heap -p $pid --duration 1.5 -o live.assay
	kill -0 $pid
	sleep 0.2
	kill -0 $pid
	kill $pid
	[ "$(value live.assay 'r["compute"]["self"] > 0.1 and a["churn"]["allocs"] > 100000')" = True ]
}

@test "sampled blocks: estimates beside times that are hardly disturbed" {
	assay record -q --heap --sample 64KiB -o s.assay -- ./app 3 || [ $? = 5 ]
	[ "$(value s.assay '800000 < r["churn"]["allocs"] < 1600000' --measure alloc-time)" = True ]
}
