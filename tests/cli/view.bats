#!/usr/bin/env bats
# SPDX-License-Identifier: MIT OR Apache-2.0
# beside others
bats_require_minimum_version 1.5.0
load lib

# page FILE [--base] EXPRESSION…
page() {
	python3 "$BATS_TEST_DIRNAME/page.py" "$@"
}

@test "every session gives a page whose columns read back" {
	for kind in story trouble hostile deep empty; do
		session $kind
		assay view --no-open -o out.html $kind.assay
		page out.html
	done
}

@test "the page holds the samples and the rows of report" {
	session story
	assay view -o - story.assay >out.html
	run -0 page out.html 'len(c["samples.time"])' 'm["meta"]["program"]' 'm["meta"]["exit"]' \
		'text(c["functions.brief"][m["meta"]["hottest"][0]["function"]])'
	[ "${lines[0]}" = 6000 ]
	[ "${lines[1]}" = '"indexer"' ]
	[ "${lines[2]}" = 0 ]
	[ "${lines[3]}" = '"memchr::memmem::find"' ]
	assay report --format json story.assay | python3 -c '
import json, sys
want = json.load(sys.stdin)["rows"][:20]
sys.path.insert(0, sys.argv[1])
import page
_, m = page.read("out.html")
have = m["meta"]["hottest"]
names = [m["strings"][m["columns"]["functions.brief"][r["function"]]] for r in have]
assert names == [r["name"] for r in want], names
for a, b in zip(have, want):
	assert abs(a["self"]["value"] - b["self"]) < 1e-6, (a, b)' "$BATS_TEST_DIRNAME"
}

@test "the same session gives the same bytes" {
	session trouble
	assay view -o - trouble.assay >a.html
	assay view -o - trouble.assay >b.html
	cmp a.html b.html
}

@test "names that look like markup are only data" {
	session hostile
	assay view --no-open -o out.html hostile.assay
	session story
	assay view --no-open -o story.html story.assay
	run -0 page out.html 'page.same_but_for_the_data("story.html")' \
		'"<script>alert(1)</script>" in m["strings"]' '"]]>&amp;<!-- -->" in m["strings"]' \
		'page.tags.count("script")'
	[ "${lines[0]}" = true ]
	[ "${lines[1]}" = true ]
	[ "${lines[2]}" = true ]
	[ "${lines[3]}" = 2 ]
}

@test "20,000 frames of recursion are kept" {
	session deep
	assay view --no-open -o out.html deep.assay
	run -0 page out.html 'len(c["stacks.parent"])'
	[ "$output" = 20002 ]
}

@test "a session that ends early says so on the page" {
	session story
	size=$(stat -c %s story.assay)
	head -c $((size * 2 / 3)) story.assay >cut.assay
	assay view --no-open -o out.html cut.assay
	run -0 page out.html 'm["meta"]["trust"]["lines"][0]'
	[[ $output == *'"level": "warn"'*'did not end properly'* ]]
}

@test "--diff puts the second session in, without its source" {
	session story
	session trouble
	assay view --no-open --diff story.assay -o out.html trouble.assay
	run -0 page out.html 'm["meta"]["trust"]["lost"]' 'len(page.scripts)'
	[ "${lines[0]}" = 1250 ]
	[ "${lines[1]}" = 3 ]
	run -0 page out.html --base 'm["meta"]["trust"]["lost"]' 'm["listings"]'
	[ "${lines[0]}" = 0 ]
	[ "${lines[1]}" = '[]' ]
	run -1 assay view --no-open --diff missing.assay -o other.html trouble.assay
	[ ! -e other.html ]
}

@test "filters are what the page begins with" {
	session story
	assay view --no-open -o out.html story.assay
	run -0 page out.html '"query" in m["meta"]'
	[ "$output" = false ]
	assay view --no-open --thread worker --focus malloc --time 1s..2s -o out.html story.assay
	run -0 page out.html 'm["meta"]["query"]' 'len(c["samples.time"])'
	[[ ${lines[0]} == '{"from": 1000000000, "to": 2000000000, "threads": [1], "focus": "malloc", '* ]]
	[ "${lines[1]}" = 6000 ]
	run -1 --separate-stderr assay view --no-open --thread nobody story.assay
	[[ $stderr == "assay: no thread 'nobody'"* ]]
	run -2 assay view --no-open --focus '(' story.assay
}

@test "the file takes the session's name, and its address is told" {
	session story
	run -0 --separate-stderr env -u DISPLAY -u WAYLAND_DISPLAY assay view story.assay
	[ -s story.html ]
	[ -z "$output" ]
	[[ $stderr == 'story.html ('*'open it in a browser: file://'*'/story.html' ]]
	cp story.assay 'a b%.assay'
	run -0 --separate-stderr assay view --no-open 'a b%.assay'
	[[ $stderr == *'/a%20b%25.html' ]]
}

@test "the browser is started with the page's address, without a shell" {
	session story
	cat >look <<-'END'
		#!/bin/sh
		printf '%s\n' "$@" >seen.tmp
		mv seen.tmp seen
	END
	chmod +x look
	run -0 --separate-stderr env DISPLAY=:99 "BROWSER=missing-browser:$PWD/look --new %s" \
		assay view -o 'x;touch y.html' story.assay
	[[ $stderr == *'opening it in the browser'* ]]
	for _ in $(seq 50); do
		[ -e seen ] && break
		sleep 0.1
	done
	[ "$(sed -n 1p seen)" = --new ]
	[[ $(sed -n 2p seen) == file:///*/x%3Btouch%20y.html ]]
	run -0 --separate-stderr env DISPLAY=:99 BROWSER=missing-browser PATH="$(dirname "$ASSAY")" \
		assay view -o out.html story.assay
	[[ $stderr == *'open it in a browser: file://'* ]]
}

@test "where it cannot be written: what and why, and no half file" {
	session story
	run -1 --separate-stderr assay view --no-open -o missing/out.html story.assay
	[[ $stderr == "assay: "*missing/out.html*"No such file"* ]]
	[ -e /dev/full ] || return 0
	run -1 --separate-stderr assay view --no-open -o /dev/full story.assay
	[[ $stderr == "assay: "*"No space left"* ]]
	run -1 --separate-stderr bash -c 'ulimit -f 1; trap "" XFSZ; assay view --no-open -o out.html story.assay'
	[[ $stderr == "assay: "*"File too large"* ]]
	[ ! -e out.html ]
	[ -z "$(find . -name 'out.html*')" ]
}

@test "what cannot be read: which and why" {
	run -1 --separate-stderr assay view --no-open missing.assay
	[[ $stderr == "assay: "*missing.assay*"No such file"* ]]
	echo nonsense >bad.assay
	run -1 --separate-stderr assay view --no-open bad.assay
	[[ $stderr == "assay: "*bad.assay* ]]
	run -1 --separate-stderr assay view --no-open
	[ ! -e bad.html ]
}

@test "a million samples are a page in time and space" {
	session big 1000000
	start=$(date +%s%N)
	assay view --no-open -o out.html big.assay
	echo "view: $((($(date +%s%N) - start) / 1000000)) ms, $(stat -c %s out.html) bytes"
	[ "$(stat -c %s out.html)" -lt 15000000 ]
}

# Not from within run, whose subshell a skip would only end.
need_server() {
	timeout 10 assay view --serve --port 1 --no-open story.assay 2>said || true
	! grep -q 'built without a server' said || skip 'built without libmicrohttpd'
}

@test "--serve: who may ask, and what" {
	session story
	need_server
	run -0 python3 "$BATS_TEST_DIRNAME/serve.py" story.assay
	echo "$output"
	[ "${#lines[@]}" = 10 ]
}

@test "--serve: an end by signal leaves no file, and wrong words are usage" {
	session story
	need_server
	run -2 --separate-stderr assay view --serve -o out.html story.assay
	run -2 --separate-stderr assay view --port 8080 story.assay
	run -2 --separate-stderr assay view --serve --port 70000 story.assay
	[ -z "$(find . -name '*.html*')" ]
}

@test "the text of hot functions is in the page, and --no-source leaves it out" {
	command -v gcc >/dev/null || skip 'no gcc on this machine'
	need_recording
	cat >hot.c <<-'END'
		#include <time.h>
		static volatile unsigned long sum;
		__attribute__((noinline)) static void burn(void)
		{
			for (unsigned long i = 0; i < 1000000; i++)
				sum += i * i; /* <b>hot</b> */
		}
		int main(void)
		{
			struct timespec t;
			do {
				burn();
				clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
			} while (t.tv_nsec < 400000000);
			return 0;
		}
	END
	gcc -g -O1 -o hot hot.c
	assay record -q -o hot.assay -- ./hot
	assay view --no-open -o out.html hot.assay
	run -0 page out.html \
		'[l for l in m["listings"] if text(c["functions.brief"][l["function"]]) == "burn"][0]["insns"][0]["kind"]' \
		'[s["lines"] for s in m["sources"] if s["path"].endswith("hot.c")][0]'
	[[ ${lines[1]} == *'<b>hot</b>'* ]]
	! grep -q '<b>hot' out.html
	assay view --no-open --no-source -o bare.html hot.assay
	run -0 page bare.html 'm["listings"] + m["sources"]'
	[ "$output" = '[]' ]
}

# What the page looks like after its script has run.
in_browser() {
	timeout 90 "$browser" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
		--disable-background-networking --disable-component-update --disable-sync \
		--user-data-dir="$PWD/profile" --window-size=1280,800 --virtual-time-budget=20000 \
		--dump-dom "file://$PWD/$1" 2>/dev/null
}

@test "in a browser: every session is shown, and hostile names are only text" {
	browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
		skip 'no chromium on this machine'
	for kind in story trouble hostile deep empty; do
		session $kind
		assay view --no-open -o $kind.html $kind.assay
		in_browser $kind.html >dom
		grep -q '<html[^>]* data-ready="yes"' dom
		grep -q 'indexer' dom
	done
	assay view --no-open --focus malloc --time 1s..2s -o filtered.html story.assay
	in_browser filtered.html >dom
	grep -q 'through /malloc/' dom
	in_browser hostile.html >dom
	python3 - <<-'END'
		import html.parser
		class Count(html.parser.HTMLParser):
		    tags, text = [], ''
		    def handle_starttag(self, tag, attrs):
		        self.tags.append(tag)
		        assert not [a for a, _ in attrs if a.startswith('on')], attrs
		    def handle_data(self, data):
		        self.text += data
		c = Count()
		c.feed(open('dom', encoding='utf-8').read())
		assert c.tags.count('script') <= 2, c.tags
		assert not {'iframe', 'object', 'embed', 'base'} & set(c.tags)
		assert '<script>alert(1)</script>' in c.text
	END
}
