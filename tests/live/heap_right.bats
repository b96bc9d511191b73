#!/usr/bin/env bats
# Figures that recorders of memory get wrong, held against programs whose memory is known to the byte.
# SPDX-License-Identifier: MIT OR Apache-2.0
# beside others

bats_require_minimum_version 1.5.0
load heap

setup() {
	need_heap
}

teardown() {
	heap_clear
}

@test "a program that allocates nothing has nothing: none of it is the recorder's" {
	recorded none
	is none '(t["allocs"], t["peak_bytes"], t["live_bytes"], d["rows"])' '(0, 0, 0, [])'
}

@test "bursts are churn, with the age of their blocks, and the same in every run" {
	recorded spike
	is spike 'd["amount"], r["burst"]["self_amount"]' '(5100, 5100)' --measure churn
	is spike 'sum(b["blocks"] for b in d["rows"] if b["to"] < 256)' 5100 --by age
	for i in 1 2; do
		recorded two-spikes
		# the second thread's own block is the C library's
		is two-spikes 'r["burst"]["allocs"], r["burst"]["bytes"]' '(10200, 652800)' --measure churn
		assay export --to folded --measure churn two-spikes.assay | sort >churn.$i
	done
	cmp churn.1 churn.2
}

@test "a block that grows is one chain: how often, how far, and what to begin with" {
	recorded grow
	is grow '(t["allocs"], t["reallocs"], t["live_blocks"])' '(1001, 1000, 0)'
	is grow '[(c["name"], c["reallocs"], c["blocks"], c["last_max_bytes"], 0 <= c["in_place"] <= 1) for c in d["rows"]]' \
		"[('grow', 1000, 1, 16016, True)]" --by realloc
	# the bytes it grew by, not those of all sizes
	is grow 'r["grow"]["bytes"], t["peak_bytes"]' '(16016, 16016)'
}

@test "the peak is the true maximum of two threads out of phase, and its rows sum up to it" {
	recorded phases
	is phases '(r["ramp_a"]["peak_bytes"], r["ramp_b"]["peak_bytes"])' '(400000, 600000)'
	is phases 'sum(x["self_amount"] for x in d["rows"]) == t["peak_bytes"] == d["amount"]' True
}

@test "65,536 stacks are told apart, and every row of them counted" {
	recorded stacks
	is stacks '(r["leaf"]["allocs"], t["truncated"], d["amount"])' '(131072, 0, 131072)' --measure allocs
	assay export --to folded --measure allocs stacks.assay >folded
	[ "$(grep -c ';leaf' folded)" = 65536 ]
	[ "$(awk '/;leaf/ { if ($NF != 2) bad++ } END { print bad + 0 }' folded)" = 0 ]
}

@test "deep stacks keep their root, and say where they were cut" {
	recorded deep
	assay export --to folded --measure allocs deep.assay >folded
	# 101 and 1,001 of it
	awk '{ n = gsub(/;deeper/, ""); print n, $0 }' folded | sort -n >depths
	cat depths
	grep -q '^101 .*;main;deep ' depths
	grep '^1[0-9][0-9][0-9] ' depths | grep -q ';main;deep ' ||
		{ is deep 't["truncated"]' 1 && grep -q 'main;deep.*\[' depths; }
}

@test "a call at the end of a function is that function's, an inlined one has a row" {
	recorded last-call
	assay export --to folded --measure allocs last-call.assay >folded
	grep -q ';ends_with_a_call;allocate_and_end ' folded
	run ! grep stands_behind folded
	recorded inlined
	is inlined '(r["inlined"]["self_amount"], r["holds_inlined"]["total_amount"])' '(4000, 4000)' --measure bytes
	is inlined '(r["holds_inlined"]["self_amount"], "inlined" in r)' '(4000, False)' --measure bytes --no-inline
}

@test "what another thread frees is no leak, however addresses are used again" {
	recorded cross
	is cross '(r["produce"]["allocs"], r["produce"]["live_blocks"])' '(3000, 0)' --measure allocs
	is cross '[(f["blocks"], f["bytes"], f["allocated_by"]["tid"] == t["processes"][0]["pid"], f["freed_by"]["tid"] > t["processes"][0]["pid"]) for f in d["flows"] if f["blocks"] > 1]' \
		'[(3000, 120000, True, True)]'
	run -0 assay report --by thread cross.assay
	[[ $output == *'across 3,000 blocks, 117 KiB, of recipes ('*'were freed by recipes ('* ]]
	recorded vectors
	is vectors '(r["vectors"]["allocs"], r["vectors"]["live_blocks"], r["vectors"]["live_bytes"])' '(26400, 0, 0)' --measure allocs
	is vectors 'min(x[k] for x in d["rows"] for k in ("live_bytes", "peak_bytes", "live_blocks")) >= 0' True --measure allocs
}

@test "zero sizes and failures are counted as what they are" {
	recorded odd-calls
	# malloc(0), realloc(NULL), malloc(10), realloc of it; not the one that failed
	is odd-calls '(r["odd_calls"]["allocs"], t["failed"], r["odd_calls"]["bytes"])' '(4, 1, 50)' --measure allocs
}

@test "asked for, rounded up, and never touched are three things" {
	recorded usable
	is usable 'r["odd_sizes"]["live_bytes"], r["usable"]["live_bytes"]' "(129000, $((512 << 10)))" --measure live
	# each of 1,000 chunks is 144 bytes long
	is usable 'sum(p["bytes"] for p in d["resident"][0]["parts"] if p["kind"] == "rounding") - 15000 in range(200)' True --measure live
	is usable 'd["resident"][0]["untouched_bytes"] - (512 << 10) in range(-4096, 1)' True --measure live
	run -0 assay report --measure live usable.assay
	[[ $output == *'what sizes are rounded up by'* && $output == *'never touched'* ]]
}

@test "memory that few blocks keep: how much, in which arenas, and whose blocks" {
	recorded pinned
	is pinned '(r["scatter"]["live_blocks"], r["scatter"]["live_bytes"])' '(128, 25600)' --measure live
	# a thread's table of TLS may lie on one of its pages
	is pinned '[p["function"] for p in d["resident"][0]["pins"] if p["function"] != "allocate_dtv"]' "['scatter']" \
		--measure live
	is pinned 'd["resident"][0]["pinned_pages"] in range(100, 260)' True --measure live
	# 128,000 blocks of 208 bytes were there
	is pinned 'sum(p["bytes"] for p in d["resident"][0]["parts"] if p["kind"] == "held") > 20e6' True --measure live
	is pinned 'len({p["name"] for p in d["resident"][0]["parts"] if p["kind"] == "held"}) > 1' True --measure live
	run -0 assay report --measure live pinned.assay
	[[ $output == *'blocks of scatter'* ]]
}

@test "sampling is fair to many small blocks and to one that is large" {
	recorded sampled --sample 4KiB
	is sampled 'r["one_large"]["bytes"]' 8000000 --measure bytes
	# 32 bytes count for 8: about 7,800 of them are chosen, four standard deviations are 5 %
	is sampled 'abs(r["many_small"]["bytes"] - 8e6) < 8e6 * 0.05' True --measure bytes
	run -0 assay report --measure bytes sampled.assay
	[[ $output == *'95 %'* ]]
}

@test "operator new of a library without frame pointers has its caller" {
	command -v g++ || skip 'no g++ on this machine'
	cat >s.cc <<-'END'
		#include <string>
		#include <vector>
		std::vector<std::string> *all;
		__attribute__((noinline)) void keep_strings() { for (int i = 0; i < 50; i++) all->emplace_back(1000 + i, 'x'); }
		int main() { all = new std::vector<std::string>; all->reserve(50); keep_strings(); return 0; }
	END
	g++ -g -O1 -fno-omit-frame-pointer -o s s.cc
	assay heap -q -o s.assay -- ./s
	is s '(sum(x["self_amount"] for x in d["rows"] if "string" in x["name"]), t["truncated"])' '(50, 0)' --measure allocs --focus keep_strings
	is s 'r["keep_strings()"]["total_amount"] if "keep_strings()" in r else r["keep_strings"]["total_amount"]' 50 --measure allocs
}

@test "a hundred times the events: the session is hardly larger, and opens as fast" {
	gcc -O2 -o storm "$S/../../bench/heap/storm.c" -lpthread
	for n in 20000 2000000; do
		assay heap -q --no-leaks -o $n.assay -- ./storm $n >/dev/null
	done
	is 2000000 't["allocs"] >= 2000000 and t["dropped"] == 0' True
	[ "$(stat -c %s 2000000.assay)" -lt $(($(stat -c %s 20000.assay) * 3)) ]
	python3 - <<-'END'
		import resource, subprocess
		def cost(n):
		    best = 1e9
		    for _ in range(3):
		        a = resource.getrusage(resource.RUSAGE_CHILDREN)
		        subprocess.run(["assay", "report", f"{n}.assay"], stdout=subprocess.DEVNULL, check=True)
		        b = resource.getrusage(resource.RUSAGE_CHILDREN)
		        best = min(best, b.ru_utime + b.ru_stime - a.ru_utime - a.ru_stime)
		    return best
		small, large = cost(20000), cost(2000000)
		print(small, large)
		assert large < 3 * small + 0.05, (small, large)
	END
}

@test "what recording takes does not grow with what a program goes through" {
	# 256 sizes below 256 stacks, and again with ten times the calls
	sed 's/16 + 16 \* (w->seed >> 56 \& 15)/16 + (w->seed >> 56 \& 255)/' "$S/../../bench/heap/storm.c" >storm.c
	run ! cmp -s storm.c "$S/../../bench/heap/storm.c"
	gcc -O2 -o storm storm.c -lpthread
	for n in 200000 2000000; do
		python3 - $n <<-'END' >>rss
			import os, resource, subprocess, sys
			subprocess.run(["assay", "heap", "-q", "--no-leaks", "-o", "x.assay", "--", "./storm", sys.argv[1]], stdout=subprocess.DEVNULL, check=True)
			print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
		END
	done
	cat rss
	[ "$(tail -1 rss)" -lt $(($(head -1 rss) * 3 / 2 + 20000)) ]
	[ "$(tail -1 rss)" -lt 300000 ]
}

@test "what the recording took is told: in the program, beside it, and in memory" {
	assay heap -q -o own.assay -- "$W/allocates" 2000000
	[ "$(value own.assay 't["own_cpu_s"] > 0 and t["slowdown"] > 0 and t["recorder_cpu_s"] > 0')" = True ]
	[ "$(value own.assay '2**20 < t["recorder_rss_bytes"] < 2**30')" = True ]
	run -0 assay report own.assay
	[[ $output =~ 'at least '[0-9.]+' '[m]?s' of the program'\''s '[0-9.]+' '[m]?s' of CPU time were assay'\''s ('[0-9.]+' times as much)' ]]
	[[ $output =~ 'the recorder used '[0-9.]+' '[m]?s' of CPU time and '[0-9.]+' MiB' ]]
}
