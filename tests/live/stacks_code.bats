#!/usr/bin/env bats
# SPDX-License-Identifier: MIT OR Apache-2.0
# Stacks are complete, in order and true, wherever code comes from: libraries loaded in turn, moved,
# replaced, deleted, hidden and generated code, linkers and layouts, unwind information in odd places.
# One recipe a test, each with both engines; see stacks.bats.
bats_require_minimum_version 1.5.0
variants='shapes-*'
load stacks

# What shapes.c calls; cut behind the last leaf. leaf is also called by each shape_regs.
turns='round_trip;(shape_regs;shape_alloca;shape_plain;)*shape_regs;(shape_alloca;shape_plain;)?leaf'

@test "libraries in turn at the same address" {
	shown 'plugin_[ab]' "${ROOT}plugin_[ab]" 0.7 -- "$W/loader" "$W" 4 0.15
}

@test "code moved to anonymous memory" {
	shown moved_work "${ROOT}moved_work" -- "$W/remapped" 0.4
}

@test "some pages of code replaced by anonymous memory" {
	shown fixed_work "${ROOT}in_place;fixed_caller;fixed_work" -- "$W/remapped" 0.4 fixed
}

@test "generated code with frame pointers, named by a map" {
	[ -w /tmp ] || skip 'maps belong into /tmp, which is not writable'
	shown called_back "${ROOT}into_generated;generated_code;called_back" -- \
		"$W/generated" framed map 0.4
	cat -- *.out | xargs rm -f
}

@test "generated code with frame pointers, without names" {
	shown called_back "${ROOT}into_generated;\[?[^;]*(jit|anon|0x)[^;]*;called_back" -- \
		"$W/generated" framed nomap 0.4
}

@test "generated code that nothing describes: ended and said, never invented" {
	may_end=1
	shown called_back "${ROOT}into_generated;[^;]*;called_back" -- "$W/generated" frameless nomap 0.4
}

@test "the cold part of a function" {
	shown 'rarely|split_function.*' "${ROOT}split_function(\.cold|;rarely)?" 0.8 -- "$W/cold" 0.4
}

@test "linkers and layouts" {
	for v in lld norosegment nopie static staticpie farload musl muslstatic; do
		[ -x "$V/shapes-$v" ] || continue
		# musl starts main by tail calls, and glibc calls itself so
		case $v in *static*) tail_calls=1 ;; *) tail_calls='' ;; esac
		echo "shapes-$v"
		shown leaf "$ROOT$turns" 0.02 -- "$V/shapes-$v" 0.25
	done
}

@test "clang, -O0" {
	for v in clang O0; do
		[ -x "$V/shapes-$v" ] || continue
		echo "shapes-$v"
		shown leaf "$ROOT$turns" 0.02 -- "$V/shapes-$v" 0.25
	done
}

@test "unwind information in .debug_frame only, compressed, or in another file" {
	for v in debugframe debugframez debuglink; do
		[ -x "$V/shapes-$v" ] || continue
		echo "shapes-$v"
		shown leaf "$ROOT$turns" 0.02 -- "$V/shapes-$v" 0.25
	done
}

@test "no .eh_frame_hdr" {
	variant shapes-nohdr
	shown leaf "$ROOT$turns" 0.02 -- "$program" 0.4
}

@test "no unwind information at all but frame pointers" {
	may_end=1
	variant shapes-fponly
	shown leaf "$ROOT$turns" 0 -- "$program" 0.4
}

@test "stripped" {
	variant shapes-stripped
	names=$V/shapes-stripped.full
	shown leaf "$ROOT$turns" 0.02 -- "$program" 0.4
}

@test "no section headers" {
	variant shapes-nosections
	names=$V/shapes-nosections.full
	shown leaf "$ROOT$turns" 0.02 -- "$program" 0.4
}

# for sh, whose own start and that of what it calls is sampled, too: until the child is ./gone
runs='n=0; until [ /proc/$!/exe -ef gone ] || [ $n = 100 ]; do n=$((n + 1)); sleep 0.02; done; sleep 0.1;'

@test "deleted while it runs" {
	cp "$W/deep" keep
	moved=("$PWD/gone=$PWD/keep" "$PWD/gone (deleted)=$PWD/keep")
	shown spin "${ROOT}(deep;){4}spin" 0.7 -- \
		sh -c "cp keep gone; ./gone 3 200 0.5 & $runs rm gone; wait"
}

@test "replaced by another program while it runs" {
	cp "$W/deep" keep
	moved=("$PWD/gone=$PWD/keep" "$PWD/gone (deleted)=$PWD/keep")
	shown spin "${ROOT}(deep;){4}spin" 0.7 -- sh -c "cp keep gone; ./gone 3 200 0.5 & $runs
		cp '$W/shapes' new; mv new gone; wait"
}

@test "a mount namespace with another file at the same path" {
	unshare -m true 2>/dev/null || skip 'no right to unshare mounts'
	mkdir private
	cp "$W/shapes" private/program
	moved=("$PWD/private/program=$W/deep")
	shown spin "${ROOT}(deep;){4}spin" 0.7 -- unshare -m sh -c "mount -t tmpfs none private &&
		cp '$W/deep' private/program && exec '$PWD/private/program' 3 200 0.4"
}

@test "a process namespace, where the program is number 1" {
	unshare -m -p -f true 2>/dev/null || skip 'no right to unshare process numbers'
	shown spin "${ROOT}(deep;){4}spin" 0.7 -- unshare -m -p -f "$W/deep" 3 200 0.4
}

@test "odd paths" {
	local odd=$'a b;c\n\xc3\xa9 7'
	mkdir "$odd"
	cp "$W/deep" "$odd/$odd"
	shown spin "${ROOT}(deep;){4}spin" -- "$odd/$odd" 3 200 0.4
}
