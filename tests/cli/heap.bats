#!/usr/bin/env bats
# SPDX-License-Identifier: MIT OR Apache-2.0
# The command line of assay heap; what it records is in tests/live/heap.bats.
bats_require_minimum_version 1.5.0
load lib

@test "a fact that is longer than the line has lines of its own" {
	need_recording
	run -0 assay heap -q -o long.assay -- sort /dev/null
	wide=$(COLUMNS=120 assay report long.assay | sed -n '/^trust/,/^next/{/^next/!p}')
	[ "$(wc -L <<<"$wide")" -gt 40 ]
	trust=$(COLUMNS=40 assay report long.assay | sed -n '/^trust/,/^next/{/^next/!p}')
	[[ $trust == *'seen at '* ]]
	[ "$(wc -L <<<"$trust")" -le 40 ]
	[ "$(tr -d ' ·\n' <<<"$wide")" = "$(tr -d ' ·\n' <<<"$trust")" ] # the same words
}

@test "wrong usage is assay's failure: 125" {
	run -125 --separate-stderr assay heap
	[[ $stderr == *'heap needs a program or --pid'*'assay heap -- ./app args'* ]]
	run -125 --separate-stderr assay heap -p 1 -- true
	[[ $stderr == *'a program or --pid, not both'* ]]
	run -125 --separate-stderr assay heap --durration 1 -- true
	[[ $stderr == *--duration* ]]
	run -125 assay heap --duration 0 -- true
	run -125 --separate-stderr assay heap --events --sample 512KiB -- true
	[[ $stderr == *'--events keeps every call, --sample tells only some'* ]]
	run -125 --separate-stderr assay record --events -- true
	[[ $stderr == *'--events belongs to --heap'* ]]
	run -125 --separate-stderr assay record --heap --events --sample 1MiB -- true
	[[ $stderr == *'one or the other'* ]]
}

@test "a program that is not there, or cannot be run; nothing is left behind" {
	run -127 --separate-stderr assay heap -- no-such-program
	[[ $stderr == "assay: "*no-such-program* ]]
	echo hello >plain
	run -126 --separate-stderr assay heap -- ./plain
	run -126 --separate-stderr assay heap -- ./
	[ -z "$(ls -- *.assay* 2>/dev/null)" ]
}

@test "where the session cannot be written: what, why, 125, and nothing is run" {
	run -125 --separate-stderr assay heap -o missing/x.assay -- touch ran
	[[ $stderr == "assay: "*missing/x.assay* || $stderr == "assay: "*"'missing'"* ]]
	[ ! -e ran ]
}
