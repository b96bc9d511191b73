#!/usr/bin/env bats
# Damaged and hostile input, end to end: sessions, the target's files while it is recorded, and
# names that try to be something else.
# SPDX-License-Identifier: MIT OR Apache-2.0
# beside others
load runs

teardown() {
	if [ -s map ]; then
		rm -f "$(cat map)"
	fi
}

@test "sessions cut anywhere or with a byte changed: read as far as they go, and marked" {
	assay record -q -o s.assay -- sh -c "'$W/threads' 4 0.1; '$W/processes' fork 20 0.003"
	python3 "$BATS_TEST_DIRNAME/damage.py" read s.assay 100
}

@test "what is no session at all" {
	: >empty.assay
	run -1 --separate-stderr assay report empty.assay
	says "'empty.assay' is empty"
	head -c 100000 /dev/urandom >noise.assay
	run -1 --separate-stderr assay report noise.assay
	says "noise.assay"
	run -1 --separate-stderr assay report "$ASSAY"
	run -1 --separate-stderr assay report missing.assay
	says "missing.assay" 'No such file'
	run -1 --separate-stderr assay report /
	run -1 --separate-stderr timeout 5 assay report /dev/zero
	run -1 --separate-stderr assay report - </dev/null
}

# hurt SECTION…: a copy of split with those sections damaged, recorded and reported
hurt() {
	cp "$W/split" hurt
	chmod +w hurt
	python3 "$BATS_TEST_DIRNAME/damage.py" elf hurt "$@"
	rm -rf cache
	for engine in "${ENGINES[@]}"; do
		XDG_CACHE_HOME=$PWD/cache run -0 --separate-stderr timeout 20 assay record --engine "$engine" -o h.assay -- ./hurt 0.15 70 30
		says 'exit 0'
		[ "$(value h.assay 'd["samples"] > 30 and d["trust"]["lost"] == 0')" = True ]
		# each file is complained about at most twice: once for names, once for stacks
		[ "$(value h.assay 'sum("hurt" in x["text"] for x in d["trust"]["notes"]) <= 2')" = True ]
	done
}

@test "a target with a damaged symbol table" {
	hurt .symtab .strtab
	[ "$(value h.assay 'n.get("main", 0) > 0.8 * d["samples"]')" = True ] # DWARF still names them
}

@test "a target with damaged debug information" {
	hurt .debug_info
	hurt .debug_abbrev .debug_line
	hurt .debug_info .debug_abbrev .debug_line .debug_str .debug_aranges
	[ "$(value h.assay 'n.get("main", 0) > 0.8 * d["samples"]')" = True ] # the symbol table still does
}

@test "a target with damaged unwind information: marked or right, never wild" {
	hurt .eh_frame
	hurt .eh_frame_hdr
	[ "$(value h.assay 'n.get("main", 0) > 0.8 * d["samples"]')" = True ] # .eh_frame alone is enough
}

@test "a damaged map of generated code" {
	for engine in "${ENGINES[@]}"; do
		cat >mapped <<-END
			#!/bin/sh
			echo /tmp/perf-\$\$.map >map
			{ head -c 20000 /dev/urandom; printf '\nffffffffffffffff ffffffffffffffff all\n0 ffffffffffffffff everything\n1000 -1 x\nzz 10 y\n7f0000000000 10'; } >/tmp/perf-\$\$.map
			exec "$W/jit" 0.3
		END
		chmod +x mapped
		run -0 --separate-stderr timeout 20 assay record --engine "$engine" -o j.assay -- ./mapped
		[ "$(value j.assay 'd["samples"] > 30')" = True ]
		run -0 assay report j.assay
		rm -f "$(cat map)"
	done
}

@test "the program's file is replaced and removed while it runs" {
	for engine in "${ENGINES[@]}"; do
		rm -f mine
		cp "$W/split" mine
		assay record -q --engine "$engine" -o m.assay -- sh -c './mine 0.4 70 30 &
			n=0; until [ /proc/$!/exe -ef mine ] || [ $n = 100 ]; do n=$((n + 1)); sleep 0.02; done
			sleep 0.1; rm mine; cp "$0" mine; rm mine; wait' "$W/deep"
		[ "$(value m.assay 'n.get("share_a", 0) > 0.5 * d["samples"] and n.get("main", 0) > 0.8 * d["samples"]')" = True ]
	done
}

# ---- names ----

# A program whose path, arguments and own name are hostile
hostile() {
	HOSTILE=$'dir \33[31mred\33]0;title\a\n<b>&"\';x 7 é\u202e\377'
	mkdir -p "$HOSTILE"
	cp "$W/named" "$HOSTILE/prog;name 12"
	for engine in "${ENGINES[@]}"; do
		"$ASSAY" record --engine "$engine" -o "$engine.assay" -- "$HOSTILE/prog;name 12" 0.2 \
			$'\33[2J<x>; 1\n2' $'argu\33[1mment\nnewline' 2>"$engine.err"
	done
}

no_controls() {
	# control characters but newline and tab, bytes that are no UTF-8; where people read it (all but data
	# formats): what turns the direction of text
	python3 - "$@" <<-'END'
		import sys
		text = open(sys.argv[1], "rb").read().decode("utf-8")
		bad = [hex(ord(c)) for c in text if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 or
			       (c in "\u202a\u202b\u202d\u202e\u2066\u2067" and sys.argv[2:] != ["data"])]
		assert not bad, bad[:5]
	END
}

@test "names with control characters, quotes, markup: shown, never obeyed" {
	hostile
	for engine in "${ENGINES[@]}"; do
		no_controls "$engine.err"
		rm -f text csv json
		for by in function module thread process file; do
			assay report --by $by "$engine.assay" >>text
			assay report --color always --by $by "$engine.assay" | sed 's/\x1b\[[0-9;]*m//g' >>text
			assay report --by $by --format csv "$engine.assay" >>csv
			echo end >>csv
			assay report --by $by --format json "$engine.assay" >>json
		done
		assay report --tree "$engine.assay" >>text
		no_controls text
		no_controls csv data
		no_controls json data
		python3 - <<-'END'
			import csv, json
			tables, widths = 0, set()
			for row in csv.reader(open("csv", newline="")):
			    if row == ["end"]:
			        assert len(widths) == 1, widths
			        tables, widths = tables + 1, set()
			    else:
			        widths.add(len(row))
			text, n = open("json").read(), 0
			while text.strip():
			    _, end = json.JSONDecoder().raw_decode(text)
			    text, n = text[end:].lstrip(), n + 1
			assert tables == n == 5, (tables, n)
		END
		for options in '' --by-thread --inverted; do
			# shellcheck disable=SC2086
			assay flame $options -o f.svg "$engine.assay" 2>log
			no_controls f.svg
			no_controls log
			python3 -c 'import xml.etree.ElementTree as t; t.parse("f.svg")'
		done
		assay export --to folded "$engine.assay" >folded
		no_controls folded data
		python3 - <<-'END'
			import re
			total = 0
			for line in open("folded"):
			    m = re.fullmatch(r"(.+) (\d+)\n", line)
			    assert m, line
			    total += int(m[2])
			assert total > 0
		END
		# the program's name can be asked for
		assay report --by module --format json "$engine.assay" >json
		python3 -c 'import json; assert any("prog" in r["name"] for r in json.load(open("json"))["rows"])'
	done
}

@test "messages about hostile names are as harmless" {
	for command in "record --" report flame 'export --to folded'; do
		# shellcheck disable=SC2086
		"$ASSAY" $command $'no \33[31msuch\nfile\a' >text 2>&1 || true
		[ -s text ]
		no_controls text
	done
	"$ASSAY" record -o $'missing\33[31m/x' -- true >text 2>&1 || true
	[ -s text ]
	no_controls text
	"$ASSAY" $'rep\33[31mort' >text 2>&1 || true
	[ -s text ]
	no_controls text
	"$ASSAY" report $'--\33[31mx' >text 2>&1 || true
	[ -s text ]
	no_controls text
}
