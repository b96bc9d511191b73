#!/usr/bin/env bats
# SPDX-License-Identifier: MIT OR Apache-2.0
# beside others
bats_require_minimum_version 1.5.0
load lib

# runs KIND N…: KIND1.assay, …
runs() {
	local kind=$1 i
	shift
	for i in "$@"; do
		"$MAKE_SESSION" "$kind" "$kind$i.assay" "$i"
	done
}

@test "a slower function of another build is found, and only that one's own time" {
	runs run 1
	runs rebuilt 2
	run -0 assay diff run1.assay rebuilt2.assay
	golden diff
	[[ $output == *'up '*indexer::tokenize* ]]
	[[ $output != *only\ * ]]
	[[ $output == *'one run per side'* ]]
	COLUMNS=200 run -0 assay diff run1.assay rebuilt2.assay
	golden diff-200
}

@test "what takes much is in the table, also where nothing changed" {
	runs run 1 2
	assay diff --format json run1.assay run2.assay >d.json
	run -0 assay diff --top 1 run1.assay run2.assay
	[[ $output == *'no difference is resolved'* ]]
	python3 - "$output" <<-'END'
		import json, sys
		rows = json.load(open("d.json"))["rows"]
		much = [r["name"] for r in rows if r["share_a"] + r["share_b"] >= 0.2]
		assert len(much) > 1, much
		assert not [n for n in much if n.split("::")[-1] not in sys.argv[1]], much
	END
}

@test "the tree has resolved branches first and counts the rest" {
	runs run 1 2 3
	runs rebuilt 2 4 5
	run -0 assay diff --tree run1.assay rebuilt2.assay
	golden diff-tree
	run -0 assay diff --tree run[1-3].assay --vs rebuilt[245].assay
	[[ $output != *'one run per side'* ]]
	run -0 assay diff --tree --format json run1.assay rebuilt2.assay
	echo "$output" | python3 -c '
import json, sys
d = json.load(sys.stdin)
rows = d["rows"]
assert d["shape"] == "tree" and d["measure"] == "total" and len(rows) > 15
below = [0] * len(rows)
for i, r in enumerate(rows):
    up = r["parent"]
    assert (up is None) == (r["depth"] == 1) and (up is None or up < i)
    if up is not None:
        assert r["depth"] == rows[up]["depth"] + 1
        below[up] += r["share_b"]
for r, b in zip(rows, below):
    assert b <= r["share_b"] + 1e-6, (r, b)
tokenize = [r for r in rows if r["name"] == "indexer::tokenize"]
assert len(tokenize) == 2 # below main, and in the worker
assert max(tokenize, key=lambda r: r["delta"])["verdict"] == "up"
assert all(r["verdict"] in ("undecided", "equal") or r["share_only"] for r in rows
           if r["name"] == "memchr::memmem::find"), tokenize'
	run -2 assay diff --tree --by thread run1.assay rebuilt2.assay
	run -0 assay diff --tree --by crate run1.assay rebuilt2.assay
	session deep
	run -0 assay diff --tree deep.assay run1.assay
}

@test "what else moved did so as a share only" {
	runs run 1 2 3
	runs rebuilt 4 5 6
	run -0 assay diff --format json run?.assay --vs rebuilt?.assay
	echo "$output" | python3 -c '
import json, sys
d = json.load(sys.stdin)
assert d["schema"] == "assay.diff/1" and d["runs_a"] == 3 and d["runs_b"] == 3
rows = {r["name"]: r for r in d["rows"]}
t = rows["indexer::tokenize"]
assert t["verdict"] == "up" and not t["share_only"], t
# 231 -> 331 of 1100: 23.1 % -> 30.1 %
assert t["delta_low"] < 0.070 < t["delta_high"] and t["delta"] > 0.04, t
for n, r in rows.items():
    assert n == "indexer::tokenize" or r["verdict"] in ("equal", "undecided") or r["share_only"], r
    assert r["samples_a"] and r["samples_b"], r'
}

@test "runs of one program differ in nothing" {
	runs run 1 2 3 4 5 6 7 8
	for i in 1 2 3 4 5 6 7; do
		run -0 assay diff run$i.assay run$((i + 1)).assay
		[[ $output == *'no difference is resolved'* ]]
	done
	run -0 assay diff --measure total run[1-4].assay --vs run[5-8].assay
	[[ $output == *'no difference is resolved'* ]]
}

@test "halves of one session are hardly ever called different" {
	runs run 1
	run -0 assay diff --self --times 300 run1.assay
	[[ $output =~ in\ ([0-9]+)\ comparisons ]]
	[ "${BASH_REMATCH[1]}" -le 24 ] # 5 % and three standard errors
	session family # a program in phases: threads take turns
	run -0 assay diff --self --times 300 family.assay
	[[ $output =~ in\ ([0-9]+)\ comparisons ]]
	[ "${BASH_REMATCH[1]}" -le 24 ]
}

@test "a gate is shut only when the whole interval is beyond it" {
	runs run 1
	runs rebuilt 2
	run -3 --separate-stderr assay diff --fail-if 'self(indexer::tokenize) > +5%' run1.assay rebuilt2.assay
	[[ $stderr == *'self(indexer::tokenize) grew by'*'more than 5.0'* ]]
	run -3 --separate-stderr assay diff --fail-if 'self(indexer::tokenize) > 2pp' run1.assay rebuilt2.assay
	run -0 --separate-stderr assay diff --fail-if 'self(indexer::tokenize) > +29%' run1.assay rebuilt2.assay
	run -0 --separate-stderr assay diff --fail-if 'total(memchr::memmem::find) > +5%' run1.assay rebuilt2.assay
	run -1 --separate-stderr assay diff --fail-if 'total(nothing) > +5%' run1.assay rebuilt2.assay
	[[ $stderr == *"no function 'nothing'"* ]]
	for limit in 'total(x)' 'total(x) > 5' 'sum(x) > 5%' 'total(x > 5%' ''; do
		run -2 --separate-stderr assay diff --fail-if "$limit" run1.assay rebuilt2.assay
	done
}

@test "by line, file, crate, module, thread" {
	runs run 1
	runs rebuilt 2
	for by in line file crate module thread process; do
		run -0 assay diff --by $by run1.assay rebuilt2.assay
		[[ $output == *rows* ]]
	done
	run -0 assay diff --by line run1.assay rebuilt2.assay
	[[ $output != *'only after'* && $output != *'only before'* ]]
}

@test "new and gone functions are told" {
	runs run 1
	session hostile
	run -0 assay diff run1.assay hostile.assay
	[[ $output == *gone* && $output == *new* ]]
	[[ $output == *'only after: 8 functions'* && $output == *'only before: 11 functions'* ]]
}

@test "usage" {
	runs run 1 2
	run -2 assay diff
	run -2 assay diff run1.assay
	run -2 assay diff run1.assay run2.assay run1.assay
	run -2 assay diff --vs run1.assay
	run -2 assay diff run1.assay --vs
	run -2 assay diff --self run1.assay run2.assay
	run -1 assay diff run1.assay missing.assay
	session empty
	run -0 assay diff run1.assay empty.assay
	run -1 --separate-stderr assay diff --self empty.assay
	[[ $stderr == *'too few'* ]]
}
