#!/usr/bin/env bats
# SPDX-License-Identifier: MIT OR Apache-2.0
# beside others
bats_require_minimum_version 1.5.0
load lib

@test "folded stacks: a line per stack, weights sum up to the samples" {
	session story
	assay export --to folded story.assay >out
	awk '{ n += $NF } END { exit n != 6000 }' out
	grep -qx '_start;main;indexer::main;indexer::tokenize [0-9]*' out
	[ "$(sort out | uniq | wc -l)" = "$(wc -l <out)" ]
}

@test "hostile names do not break lines" {
	session hostile
	assay export hostile.assay >out
	[ "$(wc -l <out)" = 8 ]
	! grep -avqE ' [0-9]+$' out
}

@test "filters and threads" {
	session story
	assay export --focus malloc story.assay >out
	! grep -qv malloc out
	assay export --by-thread story.assay >out
	grep -q '^worker-1;start_thread;' out
}

@test "into a file, standard output stays empty" {
	session story
	assay export -o out.folded story.assay >out 2>err
	[ ! -s out ]
	grep -q '^out.folded (folded, .*KiB)$' err
	[ -s out.folded ]
	run -2 assay export --to perl story.assay
}

@test "the ending of the file says the format, --to wins" {
	session story
	for format in pprof:pb.gz callgrind:callgrind json:json folded:folded; do
		assay export -o "out.${format#*:}" story.assay 2>err
		grep -q "(${format%:*}, " err
		assay export --to "${format%:*}" -o - story.assay >out
		cmp "out.${format#*:}" out
	done
	assay export --to folded -o out.json story.assay 2>err
	grep -qx '_start;main;indexer::main;indexer::tokenize [0-9]*' out.json
}

@test "on a terminal what nobody reads goes into a file" {
	command -v script >/dev/null || skip "no script(1)"
	session story
	mkdir elsewhere
	cd elsewhere || return 1
	script -qec "assay export --to pprof ../story.assay" /dev/null >said
	[ "$(gzip -dc story.pb.gz | wc -c)" -gt 1000 ]
	grep -q 'story.pb.gz (pprof, ' said
	script -qec "assay export ../story.assay" /dev/null >said
	grep -q '_start;main;indexer::main' said
	[ "$(ls)" = "$(printf '%s\n' said story.pb.gz)" ]
	assay export --to callgrind ../story.assay | grep -q '^c*fn=.* indexer::main$'
}

@test "a reader that has enough ends the writer quietly" {
	session big 20000
	for format in folded pprof callgrind json; do
		run bash -c "assay export --to $format -o - big.assay 2>err | head -c 10 >/dev/null
			echo \${PIPESTATUS[0]}"
		[ "$output" = 141 ] || [ "$output" = 0 ]
		[ ! -s err ]
	done
}

@test "a failed export leaves the old file alone" {
	session story
	echo old >out.pb.gz
	run -1 assay export --thread nobody -o out.pb.gz story.assay
	[ "$(cat out.pb.gz)" = old ]
	[ "$(ls)" = "$(printf '%s\n' out.pb.gz story.assay)" ]
	[ -e /dev/full ] || return 0
	run -1 assay export --to callgrind -o /dev/full story.assay
	[[ $output == *"cannot write '/dev/full'"* ]]
}

@test "callgrind: calls and costs of a line each" {
	session story
	assay export --to callgrind -o - story.assay >out
	awk '/^calls=/ { call = 1; next }
		/^[0-9]+ [0-9]+ [0-9]+$/ { if (!call) n += $2; call = 0 }
		END { exit n != 6000 }' out
	grep -q '^summary: 6000 6018054000$' out
}

@test "JSON: the example of its page runs and says what the report says" {
	session story
	assay export -o app.json story.assay
	sed -n '/^```python/,/^```$/p' "$BATS_TEST_DIRNAME/../../docs/formats/export-json.md" |
		grep -v '^```' >example.py
	python3 example.py >out
	[ "$(wc -l <out)" = 10 ]
	assay report --format json story.assay | python3 -c '
import json, sys
rows = json.load(sys.stdin)["rows"]
for row, line in zip(rows, open("out")):
    own, total, name = line.rstrip("\n").split(" ", 2)
    assert name == row["name"], (name, row)
    assert int(own) == row["self_samples"] * 1003009, (own, row)
    assert int(total) == row["total_samples"] * 1003009, (total, row)'
}

@test "hostile names: strict JSON, one line per callgrind name" {
	session hostile
	assay export --to json -o - hostile.assay | parses_as_json
	assay export --to callgrind -o - hostile.assay >out
	! grep -aqP '[\x00-\x09\x0b-\x1f\x7f]' out
	[ "$(grep -c '^fn=' out)" = 9 ]
	assay export --to pprof -o - hostile.assay | gzip -t
}
