#!/usr/bin/env bats
# SPDX-License-Identifier: MIT OR Apache-2.0
bats_require_minimum_version 1.5.0
load lib

@test "a command behind --: its value, both clocks, the runs" {
	run -0 --separate-stderr assay bench -r 5 -- sleep 0.02
	[[ $output == 'sleep 0.02 '*wall*ms*'±'*'peak'*'cpu '*', 5 runs'* ]]
}

@test "commands as texts, compared with the first" {
	run -0 assay bench -r 6 'sleep 0.01' --vs 'sleep 0.03'
	[[ $output == *'slower '*'sleep 0.03 against sleep 0.01'*'by wall, 6 pairs'* ]]
	run -0 assay bench -r 6 'sleep 0.03' 'sleep 0.01'
	[[ $output == *'faster '*'sleep 0.01 against sleep 0.03'* ]]
	run -0 assay bench -r 6 -- sleep 0.03 --vs sleep 0.01
	[[ $output == *'faster '*'sleep 0.01 against sleep 0.03'* ]]
	run -3 assay bench --fail-on slower -r 6 'sleep 0.01' --vs 'sleep 0.03'
}

@test "what needs a shell says so, and gets one" {
	run -2 --separate-stderr assay bench 'ls | wc'
	[[ $stderr == *"'ls | wc' needs a shell for '|'"*"assay bench --shell 'ls | wc'"* ]]
	run -0 assay bench -r 3 --shell 'ls | wc'
	[[ $output == *"the shell's start ("*' is taken off, run by run'* ]]
}
