#!/usr/bin/env bats
# SPDX-License-Identifier: MIT OR Apache-2.0
# Stacks are complete, in order and true, whatever the program does with its stack or its life: one
# recipe a test, each with both engines. What is held: stacks.bash, stack_check.c, folded.py.
# Code that is linked, moved, hidden or made in other ways: stacks_code.bats.
bats_require_minimum_version 1.5.0
variants='main_frame*'
load stacks

# What shapes.c calls; cut behind the last leaf. leaf is also called by each shape_regs.
turns='round_trip;(shape_regs;shape_alloca;shape_plain;)*shape_regs;(shape_alloca;shape_plain;)?leaf'

@test "every instruction of prologues and epilogues" {
	shown leaf "$ROOT$turns" 0.02 -- "$W/shapes" 0.6
	shown 'shape_.*' "${ROOT}round_trip;(shape_regs;shape_alloca;shape_plain;)*(shape_regs;(shape_alloca;)?)?shape_[a-z]+" \
		0.8 -- "$W/shapes" 0.6
}

@test "frames larger than the default copy: 3 x 3,000 bytes" {
	shown spin "${ROOT}(deep;){4}spin" -- "$W/deep" 3 3000 0.4
}

@test "frames larger than a copy can be: 3 x 30,000 bytes" {
	shown spin "${ROOT}(deep;){4}spin" -- "$W/deep" 3 30000 0.4
}

@test "one frame of 122,336 bytes" {
	shown spin "${ROOT}(deep;){2}spin" -- "$W/deep" 1 122336 0.4
}

@test "recursion, 400 deep" {
	shown spin "${ROOT}(deep;){401}spin" -- "$W/deep" 400 100 0.4
}

@test "recursion, 20,000 deep: root and leaf are there, the middle is counted" {
	shown spin "${ROOT}.*deep;spin" -- "$W/deep" 20000 100 0.8
}

@test "a Rust program with 12 KB of locals in main" {
	variant main_frame
	shown 'main_frame::leaf' "${RUST}main_frame::main;main_frame::middle;main_frame::leaf" -- \
		"$program" 1200
}

@test "Rust, panic=abort, no debug information" {
	variant main_frame_abort
	shown '.*leaf' "${RUST}main_frame::main;main_frame::middle;main_frame::leaf" -- "$program" 1200
}

@test "Rust, static" {
	variant main_frame_static
	tail_calls=1 # the C library in it: fopen ends in __fopen_internal
	shown 'main_frame::leaf' "${RUST}main_frame::main;main_frame::middle;main_frame::leaf" -- \
		"$program" 1200
}

@test "a signal handler on the thread's stack" {
	shown spin "${ROOT}in_handler;victim;([^;]+;){1,4}__restore_rt;handler;spin" -- "$W/stacks" plainsignal 0.4
}

@test "a signal handler on an alternate stack" {
	shown spin "${ROOT}in_handler;victim;([^;]+;){1,4}__restore_rt;handler;spin" -- "$W/stacks" altstack 0.4
}

@test "signals that interrupt any instruction" {
	shown on_timer "${ROOT}in_timer;(timer_victim;(timer_leaf;)?|[^;]*clock[^;]*;|[^;]*clock[^;]*;__vdso_clock_gettime;)?__restore_rt;on_timer" 0.02 -- \
		"$W/stacks" timer 1.2
}

@test "a coroutine" {
	shown spin '(__start_context;)?coroutine;spin' -- "$W/stacks" coroutine 0.4
}

@test "coroutines that switch all the time" {
	shown take_turns '(__start_context;)?(first_of_two|second_of_two);take_turns' -- \
		"$W/stacks" coroutines 0.4
}

@test "vfork in a loop" {
	tail_calls=1
	shown in_vfork "${ROOT}in_vfork" -- "$W/stacks" vfork 0.8
}

@test "the vdso" {
	shown '__vdso_clock_gettime' "${ROOT}in_vdso;([^;]+;){0,3}__vdso_clock_gettime" 0.3 -- \
		"$W/stacks" vdso 0.4
}

@test "400 children of 4 ms" {
	shown child_work "${ROOT}(child;)?child_work" 0.5 -- "$W/processes" fork 400 0.004
}

@test "200 programs of 4 ms" {
	least=90
	shown child_work "${ROOT}child_work" 0.3 -- "$W/processes" exec 200 0.004
}

@test "children of children, four at a time" {
	shown child_work "${ROOT}(child;)?child_work" 0.5 -- "$W/processes" nested 40 0.01
}

# where threads have just begun some stacks cannot be read: 8 of 792 on a busy machine
@test "256 threads" {
	least=98
	shown thread_work "${THREAD}thread_main;thread_work" 0.7 -- "$W/threads" 256 0.00002
}

@test "threads of a millisecond" {
	shown thread_work "${THREAD}thread_main;thread_work" 0.3 -- "$W/threads" 600 0.001 storm
}

@test "attached, though the main thread has exited" {
	local hot=survivor_work
	for engine in $ENGINES; do
		"$W/exiting" 30 &
		local pid=$!
		sleep 0.2
		"$ASSAY" record -q --engine "$engine" --duration 1 -o "$engine.assay" -p $pid
		kill -9 $pid
		wait $pid || true
		held "$engine"
		chain_held "$engine" $hot "${THREAD}survivor;$hot" 0.8
	done
}

@test "attached to a running program" {
	for engine in $ENGINES; do
		"$W/shapes" 30 &
		local pid=$!
		sleep 0.2
		"$ASSAY" record -q --engine "$engine" --duration 1 -o "$engine.assay" -p $pid
		kill -9 $pid
		wait $pid || true
		held "$engine"
		chain_held "$engine" leaf "$ROOT$turns" 0.02
	done
}
