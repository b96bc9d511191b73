#!/usr/bin/env bats
# SPDX-License-Identifier: MIT OR Apache-2.0
# What firefox, speedscope and chrome exports hold, read a second time by viewers.py. The viewers
# themselves are asked by tests/exchange.
# beside others
bats_require_minimum_version 1.5.0
load lib

# agrees FORMAT SESSION [OPTIONS…]: self and total of every function equal the report's
agrees() {
	local format=$1 file=$2
	shift 2
	assay export --to "$format" "$@" "$file" >"out.$format"
	assay report --format json "$@" "$file" >report.json
	python3 "$BATS_TEST_DIRNAME/viewers.py" "$format" "out.$format" report.json
}

@test "each function's self and total are the report's, in each format" {
	for kind in story trouble family hostile; do
		session $kind
		for format in firefox speedscope chrome; do
			[ $kind-$format != hostile-chrome ] || continue # names are not unique there
			agrees $format $kind.assay
		done
	done
}

@test "filters choose the same samples and frames as in a report" {
	session family
	for format in firefox speedscope chrome; do
		agrees $format family.assay --no-kernel
		agrees $format family.assay --no-inline
		agrees $format family.assay --hide 'walk|_start'
		agrees $format family.assay --thread worker
	done
}

@test "time is relative to the start, threads are told apart, processes with one number too" {
	session family
	assay export --to firefox family.assay >f
	jq -e '[.threads[] | [.pid, .processName, .tid, .name]] ==
		[["4242", "indexer", 4242, "indexer"], ["4242", "indexer", 4243, "worker-1"],
		 ["300", "cc", 300, "cc"], ["300.1", "ld", 300, "cc"],
		 ["300.1", "ld", "300.1", "[unnamed]"]]' f
	jq -e '.threads[2].processShutdownTime == 850 and .threads[3].processStartupTime == 900' f
	jq -e '[.threads[].samples.time[]] | min < 10 and max < 1800 and max > 1780' f
	assay export --to speedscope family.assay | jq -e '[.profiles[].name] ==
		["indexer (4242)", "indexer worker-1 (4243)", "cc (300)", "ld cc (300)", "ld [unnamed] (300)"]'
}

@test "a thread that waits has no events while it does" {
	session family
	assay export --to chrome family.assay >c
	# nothing runs from the 50th to the 60th ms of each 100
	jq -e '[.traceEvents[] | select(.ph == "X") | .ts % 100000 as $at |
		select($at < 55000 and $at + .dur > 55000)] | length == 0' c
	jq -e '[.traceEvents[] | select(.ph == "X" and .dur > 600)] | length > 10' c
}

# A tick tells of 30 of the 40 that a LOST record tells of.
@test "lost samples are seen, each once, with their times where they are known" {
	session family
	assay export --to firefox family.assay |
		jq -e '.threads[0].markers | [.data[].count] == [40] and
			.startTime == [700] and (.endTime[0] - 700 | . >= 0 and . < 0.001)'
	assay export --to speedscope family.assay | jq -e '.name | test("40 samples lost")'
	assay export --to chrome family.assay | jq -e '.otherData.samplesLost == 40 and
		[.traceEvents[] | select(.ph == "i") | .args.count] == [40]'
}

@test "libraries carry the build-id in both forms" {
	session family
	assay export --to firefox family.assay | jq -e '.libs[] | select(.name == "libz.so.1") |
		.codeId == "123456789abcdef00102030405060708090a0b0c" and
		.breakpadId == "78563412BC9AF0DE01020304050607080"'
}

@test "no samples, no threads: still documents" {
	session empty
	for format in firefox speedscope chrome; do
		assay export --to $format empty.assay | parses_as_json
		session story
		assay export --to $format --focus 'no such' story.assay | parses_as_json
	done
}

@test "a session that was cut is exported as far as it goes" {
	session story
	head -c $(($(stat -c %s story.assay) * 2 / 3)) story.assay >cut.assay
	for format in firefox speedscope chrome; do
		agrees $format cut.assay
	done
}

@test "20,000 frames deep" {
	session deep
	agrees firefox deep.assay
	agrees speedscope deep.assay
}

@test "a recording: figures agree, hot code is a native symbol with its place" {
	need_recording
	assay record -q -o real.assay -- python3 -c 'print(sum(i * i for i in range(4000000)))'
	for format in firefox speedscope chrome; do
		agrees $format real.assay
	done
	jq -e '.shared.nativeSymbols.length > 0 and (.libs | map(.codeId) | any(. != null))' out.firefox
}

@test "endings choose the format" {
	session story
	for format in firefox speedscope; do
		assay export -o "a.$format.json" story.assay
		assay export --to $format story.assay | cmp - "a.$format.json"
	done
	assay export -o a.firefox.json.gz story.assay
	gzip -dc a.firefox.json.gz | cmp - a.firefox.json
	assay export --to chrome -o packed.gz story.assay
	gzip -dc packed.gz | head -c 1 | grep -q '{'
	assay export -o a.trace.json story.assay
	assay export --to chrome story.assay | cmp - a.trace.json
}
