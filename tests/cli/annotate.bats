#!/usr/bin/env bats
# SPDX-License-Identifier: MIT OR Apache-2.0
# beside others
bats_require_minimum_version 1.5.0
load lib

# In sessions made by hand there is no code and no source: costs stand at lines and addresses.

# The table alone: what follows names files of the machine.
table() {
	output=$(printf '%s\n' "$output" | sed '/^text/,$d')
	golden "$1"
}

@test "one function: its lines, what was inlined, what it calls" {
	session story
	run -0 assay annotate indexer::tokenize story.assay
	table annotate-100
	COLUMNS=80 run -0 assay annotate indexer::tokenize story.assay
	table annotate-80
	run -0 assay annotate --asm-only --percent function tokenize story.assay
	table annotate-asm
	run -0 assay annotate --source-only --full tokenize story.assay
	table annotate-source
}

@test "no line is wider than the terminal" {
	session story
	session hostile
	for width in 72 80 100 132 200; do
		for how in '' --asm-only --source-only --full; do
			{
				# shellcheck disable=SC2086 # words
				COLUMNS=$width assay annotate $how tokenize story.assay
				# shellcheck disable=SC2086 # words
				COLUMNS=$width assay annotate $how script hostile.assay
			} | python3 -c '
import sys, unicodedata
width = int(sys.argv[1])
for line in sys.stdin.read().split("\n"):
    if line.lstrip().startswith(("→", "assay ", "next")):
        continue # commands are never cut
    w = sum(2 if unicodedata.east_asian_width(c) in "WF" else not unicodedata.combining(c) for c in line)
    assert w <= width, (w, line)' $width
		done
	done
}

@test "JSON has the fields of the schema, and its figures add up" {
	session story
	assay annotate --format json tokenize story.assay >a.json
	assay report --format json story.assay >r.json
	python3 - <<'END'
import json
d, r = json.load(open('a.json')), json.load(open('r.json'))
assert d['schema'] == 'assay.annotate/1' and d['samples'] == 6000
f = d['function']
row = [x for x in r['rows'] if x['name'] == f['name']][0]
for k in ('self', 'self_low', 'self_high', 'total', 'total_low', 'total_high'):
    assert abs(f[k] - row[k]) < 1e-5, k
lines, insns = d['lines'], d['instructions']
roots = [l for l in lines if l['parent'] is None]
assert abs(sum(l['code'] for l in roots) - f['code']) < 1e-5
assert abs(sum(i['self'] for i in insns if 'self' in i) - f['code']) < 1e-5
for i, l in enumerate(lines):
    assert l['parent'] is None or l['parent'] < i
    assert l['self'] <= l['code'] + 1e-9 <= l['total'] + 2e-9
    for k in ('self', 'code', 'total'):
        for o in (l, l['of_function']):
            assert 0 <= o[k + '_low'] <= o[k] + 1e-9 and o[k] <= o[k + '_high'] + 1e-9 <= 1 + 1e-6
assert any(c['function'] == 'memchr::memmem::find' for i in insns for c in i.get('calls', []))
assert d['skid']['class'] == 'timer'
END
}

@test "filters work as in a report" {
	session story
	for how in '--thread worker' '--time 1..2' '--focus _start' '--ignore memmem' --no-inline --no-kernel; do
		# shellcheck disable=SC2086 # words
		assay annotate $how --format json tokenize story.assay >a.json
		# shellcheck disable=SC2086 # words
		assay report $how --format json story.assay >r.json
		python3 - <<'END'
import json
f = json.load(open('a.json'))['function']
row = [x for x in json.load(open('r.json'))['rows'] if x['name'] == f['name']][0]
assert abs(f['self'] - row['self']) < 1e-5 and abs(f['total'] - row['total']) < 1e-5, (f, row)
END
	done
}

@test "names: exact, last part, part, several, none" {
	session story
	run -0 assay annotate tokenize story.assay
	[[ ${lines[0]} == indexer::tokenize* ]]
	run -0 assay annotate malloc story.assay
	[[ ${lines[0]} == malloc* ]]
	run -0 assay annotate memmem story.assay
	[[ ${lines[0]} == memchr::memmem::find* ]]
	run -1 --separate-stderr assay annotate tokenise story.assay
	[[ $stderr == *"near: 'indexer::tokenize'"* ]]
	run -0 assay annotate 'indexer::' story.assay
	[[ $output == *'the name also fits'* ]]
}

@test "truncated stacks are no function" {
	session trouble
	run -1 --separate-stderr assay annotate '[truncated' trouble.assay
	[[ $stderr == *"where stacks were cut"* ]]
}

@test "hostile names stay text" {
	session hostile
	for name in script red quoted unicode reboot broken; do
		run assay annotate $name hostile.assay
		[[ $output != *$'\e'* && $output != *$'\a'* ]]
		assay annotate --format json script hostile.assay | parses_as_json
	done
}

@test "20,000 frames of recursion are one line" {
	session deep
	name=$(assay report --format json deep.assay | python3 -c '
import json, sys
print(max(json.load(sys.stdin)["rows"], key=lambda r: r["total"] if r["total"] < 1 or 1 else 0)["name"])')
	run -0 timeout 20 assay annotate "$name" deep.assay
	[ "${#lines[@]}" -lt 40 ]
}

@test "a session without samples, and wrong usage" {
	session empty
	run -1 assay annotate main empty.assay
	session story
	run -2 assay annotate
	run -2 assay annotate --asm-only --source-only main story.assay
	run -2 assay annotate --format csv main story.assay
	run -1 --separate-stderr assay annotate main missing.assay
	[[ $stderr == *missing.assay* ]]
}

@test "colour only where it is asked for, and never alone" {
	session story
	run -0 assay annotate --color always tokenize story.assay
	[[ $output == *$'\e[31m'* && $output == *█* ]]
	run -0 assay annotate tokenize story.assay
	[[ $output != *$'\e'* && $output == *█* ]]
}
