#!/usr/bin/env bats
# SPDX-License-Identifier: MIT OR Apache-2.0
# beside others
bats_require_minimum_version 1.5.0
load lib

@test "assay alone shows the way of working" {
	run -0 assay
	golden help
	alone=$output
	run -0 assay --help
	[ "$output" = "$alone" ]
	run -0 assay help
	[ "$output" = "$alone" ]
}

@test "every command: usage, three examples, options with defaults" {
	for command in record heap report annotate flame export; do
		run -0 assay $command --help
		golden "help-$command"
		[ "$(printf '%s\n' "$output" | grep -c '^  assay ')" = 3 ]
		help=$output
		run -0 assay help $command
		[ "$output" = "$help" ]
	done
}

@test "--help wins over what else is wrong" {
	run -0 assay report --help --no-such
	run -0 assay record -h
}

@test "the version" {
	run -0 assay --version
	[[ $output =~ ^assay\ [0-9]+\.[0-9]+ ]]
}

@test "unknown words suggest the nearest" {
	run -2 assay recrod
	[ "$output" = "assay: unknown command 'recrod'; did you mean 'record'?" ]
	run -2 assay xyzzy
	[[ $output == "assay: unknown command 'xyzzy'"* ]]
	run -2 assay --verison
	run -2 assay help nothing
}

@test "the pages say what --help says" {
	[ -x "$BATS_TEST_DIRNAME/../../tools/gen-man" ]
	run -0 "$BATS_TEST_DIRNAME/../../tools/gen-man" --check "$(dirname "$ASSAY")/../.."
}

@test "the pages' examples are understood" {
	# every `assay …` line of EXAMPLES, run on made sessions; programs and PIDs are put in place
	session story
	for name in app before after; do cp story.assay $name.assay; done
	cp "$BATS_TEST_DIRNAME/../fuzz/corpus/session/events.session" app.heap.assay
	touch -d yesterday app.heap.assay # the newest one is meant where none is named
	for page in "$BATS_TEST_DIRNAME"/../../docs/man/assay-{report,flame,export}.md; do
		sed -n '/^## EXAMPLES/,/^## [^E]/p' "$page" | grep -E '^    assay ' | sed 's/^ *//' >examples
		[ -s examples ]
		while read -r line; do
			[[ $line != *'| inferno'* ]] || continue
			[[ $line != *'| jq'* ]] || command -v jq >/dev/null || line=${line%%|*}
			echo "$line"
			bash -c "set -o pipefail; $(printf '%s' "$line" | sed 's/^assay/"$ASSAY"/')" >/dev/null 2>err || {
				# a function that this session does not have is an answer, too
				grep -qE "no function" err
			}
		done <examples
	done
}
