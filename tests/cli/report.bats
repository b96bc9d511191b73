#!/usr/bin/env bats
# SPDX-License-Identifier: MIT OR Apache-2.0
# beside others
bats_require_minimum_version 1.5.0
load lib

@test "the table, the trust block and the next steps at 80 columns" {
	session story
	COLUMNS=80 run -0 assay report story.assay
	golden report-80
}

@test "200 columns show more and never wrap" {
	session story
	COLUMNS=200 run -0 assay report story.assay
	golden report-200
}

@test "trouble comes first, with what it does and what mends it" {
	session trouble
	run -0 assay report --top 3 trouble.assay
	golden report-trouble
}

@test "calls from the thread down, from the leaf up, callers and callees" {
	session story
	run -0 assay report --tree story.assay
	golden report-tree
	run -0 assay report --inverted --min 9 story.assay
	golden report-inverted
	run -0 assay report --callers malloc story.assay
	golden report-callers
	run -0 assay report --callees Index::add story.assay
	golden report-callees
}

@test "every --by has its table" {
	session story
	for by in line file module crate thread process; do
		run -0 assay report --by $by --top 5 story.assay
		golden "report-by-$by"
	done
}

@test "filters say what they kept" {
	session story
	run -0 assay report --focus 'Index::add' --ignore malloc --time 1..3 --thread worker story.assay
	golden report-filters
}

@test "no line is wider than the terminal" {
	session story
	session hostile
	for width in 72 80 100 132 200; do
		for kind in story hostile; do
			for how in '' --tree --inverted '--by line'; do
				# shellcheck disable=SC2086 # words
				COLUMNS=$width assay report $how $kind.assay |
					python3 -c '
import sys, unicodedata
width = int(sys.argv[1])
for line in sys.stdin.read().split("\n"):
    if line.lstrip().startswith(("→", "assay ", "next")):
        continue # commands are never cut
    w = sum(2 if unicodedata.east_asian_width(c) in "WF" else not unicodedata.combining(c) for c in line)
    assert w <= width, (w, line)' $width
			done
		done
	done
}

@test "JSON has the fields of the schema" {
	session story
	assay report --format json story.assay >r.json
	python3 - <<'END'
import json
d = json.load(open('r.json'))
assert d['schema'] == 'assay.report/1' and d['by'] == 'function'
assert d['command'] == ['./target/release/indexer', 'corpus/']
t = d['trust']
for key in ('engine event rate_hz effective_rate_hz samples lost complete repaired truncated '
            'truncated_reasons frames_unsymbolized explained_cpu recorder_cpu_s').split():
    assert key in t, key
assert t['complete'] + t['repaired'] + t['truncated'] == t['samples'] == 6000
assert abs(d['duration_s'] - 4.1) < 1e-9
for row in d['rows']:
    for key in 'name full_name module file line'.split():
        assert key in row, key
    assert 0 <= row['self_low'] <= row['self'] + 1e-9 and row['self'] <= row['self_high'] + 1e-9 <= 1 + 1e-6
    assert row['self'] <= row['total'] + 1e-9
    assert row['self_samples'] <= row['total_samples'] <= 6000
assert abs(sum(r['self'] for r in d['rows']) - 1) < 1e-4
assert d['rows'] == sorted(d['rows'], key=lambda r: -r['self'])
END
}

@test "JSON of trees: parents stand before their children" {
	session story
	for how in --tree --inverted '--callers malloc' '--callees tokenize'; do
		# shellcheck disable=SC2086 # words
		assay report $how --format json story.assay | python3 -c '
import json, sys
rows = json.load(sys.stdin)["rows"]
assert len(rows) > 2
for i, r in enumerate(rows):
    if r["parent"] is None:
        assert i == 0 and r["depth"] == 0
    else:
        p = rows[r["parent"]]
        assert r["parent"] < i and r["depth"] == p["depth"] + 1 and r["total"] <= p["total"] + 1e-9'
	done
}

@test "hostile names stay text in every format" {
	session hostile
	run -0 assay report hostile.assay
	[[ $output != *$'\e'* && $output != *$'\a'* ]]
	[[ $output == *'\x1b[31mred\x07\x01\x7f'* ]]
	for how in '' --tree --inverted '--by line' '--by crate' '--callers script'; do
		# shellcheck disable=SC2086 # words
		assay report $how --format json hostile.assay | parses_as_json
		# shellcheck disable=SC2086 # words
		assay report $how --format csv hostile.assay | parses_as_csv
	done
}

@test "a session without samples says so" {
	session empty
	run -0 assay report empty.assay
	[[ $output == *'no samples'* ]]
	assay report --format json empty.assay | parses_as_json
	run -0 assay report --tree empty.assay
}

@test "20,000 frames of recursion are one line of the tree" {
	session deep
	run -0 assay report --tree deep.assay
	[[ $output == *'… 19,999 more frames of itself'* ]]
	[ "${#lines[@]}" -lt 20 ]
}

@test "without a name the newest session of the folder is read" {
	session story
	touch -d '1 hour ago' story.assay
	session trouble
	run -0 assay report
	[[ ${lines[0]} == *trouble.assay* ]]
	touch story.assay
	run -0 assay report
	[[ ${lines[0]} == *story.assay* ]]
}

@test "no session: what to do" {
	run -1 --separate-stderr assay report
	[ "${stderr_lines[0]}" = 'assay: no session (*.assay) in this folder' ]
	[ -z "$output" ]
	run -1 --separate-stderr assay report missing.assay
	[[ ${stderr_lines[0]} == "assay: "*missing.assay* ]]
	echo text >text.assay
	run -1 --separate-stderr assay report text.assay
	[[ ${stderr_lines[0]} == "assay: "*text.assay* ]]
}

@test "a damaged session is read up to the damage" {
	session story
	head -c 20000 story.assay >cut.assay
	run -0 assay report cut.assay
	[[ $output == *'! '* ]]
	printf 'garbage' | dd of=story.assay bs=1 seek=9000 conv=notrunc status=none
	run assay report story.assay
	[ "$status" -le 1 ]
}

@test "an unknown function names what is near" {
	session story
	run -1 --separate-stderr assay report --callers tokenise story.assay
	[[ $stderr == *"indexer::tokenize"* ]]
}

@test "wrong usage ends with 2" {
	session story
	run -2 --separate-stderr assay report --focus '(' story.assay
	[[ $stderr == *"--focus"* ]]
	run -2 assay report --tree --inverted story.assay
	run -2 assay report --by colour story.assay
	run -2 assay report story.assay other.assay
	run -2 --separate-stderr assay report --topp 3
	[[ $stderr == *'did you mean --top?'* ]]
}

@test "colour only where it is asked for" {
	session trouble
	run -0 assay report --color always trouble.assay
	[[ $output == *$'\e[31m'* ]]
	run -0 assay report trouble.assay
	[[ $output != *$'\e'* ]]
	unset NO_COLOR
	run -0 assay report trouble.assay # no terminal
	[[ $output != *$'\e'* ]]
}

@test "a full standard output is an error" {
	[ -e /dev/full ] || skip 'no /dev/full'
	session story
	run -1 --separate-stderr sh -c 'assay report story.assay >/dev/full'
	[[ $stderr == 'assay: cannot write to standard output: No space left on device' ]]
}

@test "a reader that goes away is no error message" {
	session story
	run --separate-stderr bash -c 'assay report --format json story.assay | head -c 10 >/dev/null'
	[ -z "$stderr" ]
}

@test "samples in step with the program are noticed, jittered ones are not suspected" {
	session beat 0
	run -0 assay report beat.assay
	[[ $output == *'! samples come at equal intervals, and app::p'*' comes and goes every '[45]?' of'*'them: a period'* ]]
	run -0 assay report --format json beat.assay
	python3 -c 'import json, sys; s = json.load(sys.stdin)["trust"]["in_step"]; assert 47 <= s["samples"] <= 53, s' <<<"$output"
	"$MAKE_SESSION" beat jitter.assay 50
	run -0 assay report jitter.assay
	[[ $output != *'equal intervals'* ]]
	session story
	run -0 assay report story.assay # equal intervals, but no beat
	[[ $output != *'equal intervals'* ]]
}

@test "how long would be enough is said where it was not" {
	session beat 50
	run -0 assay report beat.assay
	[[ $output == *'a 1 % function would be ± 0.3 % after '*' s of CPU'* ]]
	session story
	run -0 assay report story.assay
	[[ $output != *'1 % function'* ]]
	run -0 assay report --format json story.assay
	python3 -c '
import json, sys
t = json.load(sys.stdin)["trust"]
assert 1 <= t["design_effect"] < 1.4, t
assert abs(t["samples_for_one_percent"] - t["design_effect"] * 1.96**2 * 0.01 * 0.99 / 0.003**2) < 5, t' <<<"$output"
}
