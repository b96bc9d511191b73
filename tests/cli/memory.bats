#!/usr/bin/env bats
# SPDX-License-Identifier: MIT OR Apache-2.0
# Sessions of memory in report, flame and export; the figures against those of the program itself.
# beside others
bats_require_minimum_version 1.5.0
load lib

heap_session() {
	"$(dirname "$MAKE_SESSION")/make-heap-session" heap.assay ${1+"$1"} >truth.json
}

# equal EXPRESSION-OF-report-r-AND-truth-t
holds() {
	python3 -c '
import json, sys
t = json.load(open("truth.json"))
r = json.load(open("report.json"))
rows = {row["name"]: row for row in r["rows"]}
assert eval(sys.argv[1]), (sys.argv[1], t, r["trust"], rows)
' "$1"
}

@test "every measure sums up to what the program did, row by row" {
	heap_session 20000
	for m in allocs bytes live peak; do
		assay report --measure $m --format json heap.assay >report.json
		key=$m
		case $m in live | peak) key=${m}_bytes ;; esac
		holds "r['measure'] == '$m' and r['amount'] == t['$key']"
		holds "all(rows[f]['self_amount'] == t[f]['$key'] for f in t if '::' in f)"
		holds "all(rows[f][k] == t[f][k] for f in t if '::' in f for k in t[f])"
		holds "sum(row['self_amount'] for row in r['rows']) == t['$key']"
		holds "rows['app::main']['total_amount'] == t['app::load']['$key'] + t['app::index']['$key']"
	done
}

@test "the trust block has the counts of the whole" {
	heap_session 20000
	assay report --format json heap.assay >report.json
	holds "all(r['trust'][k] == t[k] for k in t if '::' not in k and k != 'bytes')"
	holds "r['trust']['dropped'] == 0 and r['trust']['unmatched_frees'] == 0"
	holds "r['trust']['truncated'] == 0 and r['measure'] == 'peak'"
	holds "r['trust']['processes'][0]['pid'] == 100"
	holds "r['trust']['layers'][0]['events'] == r['trust']['events']"
}

@test "plumbing is folded to the program's function, unless asked for" {
	heap_session
	assay report --format json heap.assay >report.json
	holds "set(rows) == {'app::main', 'app::worker', 'app::load', 'app::index', 'app::parse'}"
	assay report --no-fold --format json heap.assay >report.json
	holds "'alloc::raw_vec::finish_grow' in rows and '__rustc::__rust_alloc' in rows"
	holds "rows['app::load']['self_amount'] == 0"
}

@test "the table, the trust block and the next steps" {
	heap_session
	run -0 assay report heap.assay
	golden memory-report
	run -0 assay report --measure allocs --by thread heap.assay
	golden memory-threads
	run -0 assay report --measure live --tree heap.assay
	golden memory-tree
}

@test "a flame graph is in the measure" {
	heap_session 20000
	run -0 --separate-stderr assay flame --measure live -o - heap.assay
	[[ $output == *'live · '*iB* ]]
	[[ $output == *'app::parse'* ]]
	[[ $output != *' samples'* ]]
	[[ $output != *finish_grow* ]]
}

@test "folded stacks and pprof carry the amounts" {
	heap_session 20000
	assay export --to folded --measure live heap.assay >folded
	python3 -c '
import json
t = json.load(open("truth.json"))
got = {l.rsplit(" ", 1)[0].split(";")[-1]: int(l.rsplit(" ", 1)[1]) for l in open("folded")}
assert all(got.get(f, 0) == t[f]["live_bytes"] for f in t if "::" in f), (got, t)'
	assay export --to pprof --measure live -o heap.pb.gz heap.assay
	gzip -dc heap.pb.gz | python3 -c '
import sys
p = sys.stdin.buffer.read()
assert b"2\x04live" in p and b"2\x05bytes" in p'
}

@test "what a session has not is said, with what it has" {
	heap_session
	run -2 assay report --measure leaked heap.assay
	[[ $output == *'leaks were not looked for'*'--measure live'* ]]
	run -2 assay report --time 1s..2s heap.assay
	[[ $output == *'have no --time'* ]]
	run ! assay export --to speedscope heap.assay
	[[ $output == *'session of memory'*'assay report --measure'* ]]
	run ! assay view -o x.html heap.assay
	[[ $output == *'session of memory'* ]]
	session story
	run -2 assay report --measure peak story.assay
	[[ $output == *"of time: it has no measure 'peak'"* ]]
}

@test "a session cut anywhere is read as far as it goes" {
	heap_session
	size=$(stat -c %s heap.assay)
	for cut in 30 200 1000 $((size / 2)) $((size - 20)) $((size - 1)); do
		head -c $cut heap.assay >cut.assay
		run assay report cut.assay
		[ $status -le 2 ]
	done
}
