#!/usr/bin/env bats
# SPDX-License-Identifier: MIT OR Apache-2.0
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
