#!/usr/bin/env bats
# SPDX-License-Identifier: MIT OR Apache-2.0
# beside others
bats_require_minimum_version 1.5.0
load lib

@test "every session gives a well-formed picture without outside parts" {
	for kind in story trouble hostile deep empty; do
		session $kind
		for how in '' --inverted --by-thread --full-names; do
			# shellcheck disable=SC2086 # words
			run -0 assay flame $how -o out.svg $kind.assay
			is_svg out.svg
		done
	done
}

@test "boxes carry share, interval and samples" {
	session story
	assay flame -o - story.assay >out.svg
	grep -A2 '<title>memchr::memmem::find' out.svg | grep -E '[0-9.]+ ±[0-9.]+ %, [0-9,]+ samples'
}

@test "names are escaped, and so is the title" {
	session hostile
	assay flame --title '</title><script>x</script>' -o out.svg hostile.assay
	is_svg out.svg
	grep -q '&lt;script&gt;alert(1)&lt;/script&gt;' out.svg
	! grep -q '<script>alert' out.svg
	! LC_ALL=C grep -qP '[\x00-\x08\x0b-\x1f\x7f]' out.svg
	python3 -c 'open("out.svg", encoding="utf-8").read()'
}

@test "deep stacks are folded and counted" {
	session deep
	assay flame -o out.svg deep.assay
	grep -q '… up to 19,[0-9]* frames, most of them deep …' out.svg
	grep -q '<title>leaf' out.svg
	[ "$(grep -c '<g><title>' out.svg)" -lt 300 ]
}

@test "the file takes the session's name" {
	session story
	run -0 --separate-stderr assay flame story.assay
	[ -s story.svg ]
	[ -z "$output" ]
	[[ $stderr == 'story.svg ('*'open it in a browser'* ]]
	run -0 --separate-stderr assay flame
	[ -s story.svg ]
}

@test "filters narrow the picture" {
	session story
	assay flame --focus malloc -o out.svg story.assay
	grep -q '<title>malloc' out.svg
	! grep -q '<title>memchr' out.svg
}

@test "where it cannot be written: what and why" {
	session story
	run -1 --separate-stderr assay flame -o missing/out.svg story.assay
	[[ $stderr == "assay: "*missing/out.svg*"No such file"* ]]
	[ -e /dev/full ] || return 0
	run -1 --separate-stderr assay flame -o /dev/full story.assay
	[[ $stderr == "assay: "*"No space left"* ]]
}

@test "a million samples are drawn in time and space" {
	session big 1000000
	start=$(date +%s%N)
	assay flame -o out.svg big.assay
	echo "flame: $((($(date +%s%N) - start) / 1000000)) ms, $(stat -c %s out.svg) bytes"
	[ "$(stat -c %s out.svg)" -lt 8000000 ]
	is_svg out.svg
}

# Sets browser, or skips the test; not from within run, whose subshell a skip would only end.
need_browser() {
	browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
		skip 'no chromium on this machine'
}

# Opens out.svg with a script at its end; what the script leaves in the title comes out.
in_browser() {
	python3 - "$1" <<'END'
import sys
svg = open('out.svg', encoding='utf-8').read()
script = '''<script><![CDATA[
const frames = [...document.querySelectorAll('#frames g')];
const find = name => frames.find(g => g.querySelector('title').textContent.startsWith(name + '\\n'));
const width = g => +g.querySelector('rect').getAttribute('width');
const key = k => (document.activeElement || document).dispatchEvent(
	new KeyboardEvent('keydown', {key: k, bubbles: true}));
const said = [];
%s
const out = document.createElementNS(document.documentElement.namespaceURI, 'desc');
out.textContent = 'SAID ' + said.join(' | ') + ' END';
document.documentElement.append(out);
]]></script></svg>''' % sys.argv[1]
open('probe.svg', 'w', encoding='utf-8').write(svg.replace('</svg>', script))
END
	timeout 60 "$browser" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
		--disable-background-networking --disable-component-update --disable-sync \
		--user-data-dir="$PWD/profile" --window-size=1200,600 --dump-dom \
		"file://$PWD/probe.svg" 2>/dev/null | grep -o 'SAID .* END' | tail -1
}

@test "in a browser: zoom, search with the matched share, back" {
	need_browser
	session story
	assay flame -o out.svg story.assay
	run -0 in_browser '
		const add = find("indexer::index::Index::add"), all = find("all"), before = width(add);
		add.dispatchEvent(new MouseEvent("click", {bubbles: true}));
		said.push(width(add) > before * 2 && Math.abs(width(add) - width(all)) < 1);
		said.push(find("memchr::memmem::find").style.display === "none");
		key("/");
		const input = document.querySelector("#searchbox").firstChild;
		input.value = "^malloc";
		input.dispatchEvent(new Event("input"));
		said.push(document.querySelector("#matched").textContent);
		input.dispatchEvent(new KeyboardEvent("keydown", {key: "Escape"}));
		said.push(document.querySelector("#matched").textContent === "");
		key("Escape");
		said.push(Math.abs(width(add) - before) < 0.01);'
	echo "$output"
	[[ $output =~ ^'SAID true | true | matched '1[01]\.[0-9]' %, 2 boxes | true | true END'$ ]]
}

@test "in a browser: the keyboard reaches every box" {
	need_browser
	session story
	assay flame -o out.svg story.assay
	run -0 in_browser '
		const name = () => document.activeElement.getAttribute("aria-label").split(",")[0];
		said.push(frames.filter(g => g.getAttribute("tabindex") === "0").length);
		find("all").focus();
		key("ArrowDown"); said.push(name());
		key("ArrowRight"); said.push(name());
		key("ArrowLeft"); key("ArrowDown"); key("ArrowDown"); said.push(name());
		key("ArrowUp"); said.push(name());
		const before = width(document.activeElement);
		key("Enter"); said.push(width(document.activeElement) > before);
		key("Escape"); said.push(Math.abs(width(find("main")) - before) < 0.01);'
	echo "$output"
	[ "$output" = 'SAID 1 | _start | start_thread | indexer::main | main | true | true END' ]
}

@test "in a browser: hostile names are only text" {
	need_browser
	session hostile
	assay flame -o out.svg hostile.assay
	run -0 in_browser '
		window.alerted = false; window.alert = () => { window.alerted = true; };
		said.push(window.alerted, document.querySelectorAll("script").length);
		said.push(frames.length);'
	echo "$output"
	[ "$output" = 'SAID false | 2 | 9 END' ]
}

@test "two sessions in one picture: coloured where resolved, grey elsewhere, the same each time" {
	"$MAKE_SESSION" run run.assay 1
	"$MAKE_SESSION" rebuilt rebuilt.assay 2
	run -0 --separate-stderr assay flame --diff run.assay rebuilt.assay
	[[ $stderr == *rebuilt.diff.svg* ]]
	is_svg rebuilt.diff.svg
	assay flame --diff -o - run.assay rebuilt.assay >again.svg
	cmp rebuilt.diff.svg again.svg
	assay diff --tree --format json run.assay rebuilt.assay >tree.json
	python3 - <<-'END'
	import json, re, xml.etree.ElementTree as tree
	ns = '{http://www.w3.org/2000/svg}'
	rows = json.load(open('tree.json'))['rows']
	frames = [g for g in tree.parse('rebuilt.diff.svg').getroot().iter(ns + 'g') if g.get('id') == 'frames'][0]
	seen = 0
	for g in frames:
	    title, rect = g.find(ns + 'title').text, g.find(ns + 'rect')
	    name, *rest = title.split('\n')
	    if name == 'all':
	        continue
	    width = float(rect.get('width')) / 1180
	    delta = float(re.search(r'([+-][\d.]+) points', title)[1]) / 100
	    match = [r for r in rows if r['name'] == name and abs((r['share_a'] + r['share_b']) / 2 - width) < 1e-4
	             and abs(r['delta'] - delta) < 6e-5]
	    assert match, title
	    r, fill = match[0], rect.get('fill')
	    coloured = r['verdict'] in ('up', 'down') and not r['share_only']
	    assert (fill != '#d5d8dc') == coloured, (title, fill)
	    if coloured:
	        red, blue = int(fill[1:3], 16), int(fill[5:7], 16)
	        assert (red > blue) == (r['verdict'] == 'up'), (title, fill)
	    assert ': ' + r['verdict'] in title, title
	    seen += 1
	assert seen >= 18, seen
	END
	session hostile
	session deep
	session empty
	for other in hostile deep empty; do
		assay flame --diff -o out.svg run.assay $other.assay
		is_svg out.svg
		assay flame --diff -o out.svg $other.assay run.assay
		is_svg out.svg
	done
	run -2 assay flame --diff run.assay
	run -2 assay flame run.assay rebuilt.assay
	run -2 assay flame --diff --inverted run.assay rebuilt.assay
}
