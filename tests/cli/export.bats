#!/usr/bin/env bats
# SPDX-License-Identifier: MIT OR Apache-2.0
bats_require_minimum_version 1.5.0
load lib

@test "folded stacks: a line per stack, weights sum up to the samples" {
	session story
	assay export --to folded story.assay >out
	awk '{ n += $NF } END { exit n != 6000 }' out
	grep -qx '_start;main;indexer::main;indexer::tokenize [0-9]*' out
	[ "$(sort out | uniq | wc -l)" = "$(wc -l <out)" ]
}

@test "hostile names do not break lines" {
	session hostile
	assay export hostile.assay >out
	[ "$(wc -l <out)" = 8 ]
	! grep -avqE ' [0-9]+$' out
}

@test "filters and threads" {
	session story
	assay export --focus malloc story.assay >out
	! grep -qv malloc out
	assay export --by-thread story.assay >out
	grep -q '^worker-1;start_thread;' out
}

@test "into a file, standard output stays empty" {
	session story
	assay export -o out.folded story.assay >out 2>err
	[ ! -s out ]
	grep -q '^out.folded (folded, .*KiB)$' err
	[ -s out.folded ]
	run -2 assay export --to perl story.assay
}
