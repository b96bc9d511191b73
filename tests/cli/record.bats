#!/usr/bin/env bats
# SPDX-License-Identifier: MIT OR Apache-2.0
# beside others
bats_require_minimum_version 1.5.0
load lib

busy='i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done'

@test "a run: the program's output is untouched, the summary goes to stderr" {
	need_recording
	run -0 --separate-stderr assay record -- sh -c "echo out; $busy; echo err >&2"
	[ "$output" = out ]
	[[ $stderr == err* ]]
	[[ $stderr == *'sh: '*' wall, '*' CPU on 1 thread, exit 0'*sh.assay* ]]
	[[ $stderr == *trust* ]]
	[ -s sh.assay ]
	[ ! -e sh.assay.partial ]
}

@test "the exit status is the program's own" {
	need_recording
	run -7 assay record -q -- sh -c 'exit 7'
	run -143 assay record -q -- sh -c 'kill -TERM $$'
	run -137 assay record -q -- sh -c 'kill -KILL $$'
	run -0 assay record -q -- true
}

@test "a program that is not there, or cannot be run" {
	run -127 --separate-stderr assay record -- no-such-program
	[[ $stderr == "assay: "*no-such-program* ]]
	echo hello >plain
	run -126 --separate-stderr assay record -- ./plain
	run -126 --separate-stderr assay record -- ./
	[ -z "$(ls -- *.assay* 2>/dev/null)" ] || ls -la
}

@test "wrong usage is assay's failure: 125" {
	run -125 assay record
	run -125 assay record --rate 0 -- true
	run -125 assay record -p 1 -- true
	run -125 assay record --engine magic -- true
}

@test "quiet says nothing" {
	need_recording
	run -0 --separate-stderr assay record -q -o x.assay -- sh -c "$busy"
	[ -z "$output$stderr" ]
	[ -s x.assay ]
}

@test "the session's name: -o, else the program's" {
	need_recording
	mkdir sub
	run -0 assay record -q -o sub/a.assay -- true
	[ -s sub/a.assay ]
	run -0 assay record -q -- "$(command -v true)"
	[ -s true.assay ]
}

@test "where the session cannot be written: what, why, 125" {
	need_recording
	run -125 --separate-stderr assay record -o missing/x.assay -- echo ran
	[[ $stderr == "assay: "*missing/x.assay* ]]
}

@test "options of the program are its own" {
	need_recording
	run -0 --separate-stderr assay record -q -- echo -o --help -F
	[ "$output" = '-o --help -F' ]
	run -0 --separate-stderr assay record -q echo -q
	[ "$output" = -q ]
}

@test "standard input, closed descriptors and environment arrive" {
	need_recording
	run -0 --separate-stderr bash -c 'echo text | assay record -q -- cat'
	[ "$output" = text ]
	run -0 bash -c 'assay record -q -o y.assay -- sh -c "ls /proc/self/fd" 3</dev/null'
	run -0 --separate-stderr bash -c 'A=b assay record -q -- printenv A'
	[ "$output" = b ]
}

@test "attaching: all of a running process for a while" {
	need_recording
	sh -c "while :; do :; done" &
	pid=$!
	run -0 --separate-stderr assay record -p $pid --duration 300ms -o att.assay
	kill $pid
	[[ $stderr == *attached* ]]
	run -0 assay report att.assay
	run -125 --separate-stderr assay record -p 4194000
	[[ $stderr == "assay: "*4194000* ]]
}

@test "Ctrl-C ends the program and keeps the recording" {
	need_recording
	# the shell starts background jobs with SIGINT ignored, and so would be the program
	env --default-signal=INT assay record -q -o int.assay -- sleep 20 &
	pid=$!
	sleep 1.5
	kill -INT $pid
	status=0
	wait $pid || status=$?
	[ $status = 130 ]
	[ -s int.assay ]
	run -0 assay report int.assay
}

@test "the text of hot functions is kept: the program and its source may go" {
	need_recording
	command -v gcc >/dev/null || skip "no gcc"
	cat >hot.c <<-'END'
		__attribute__((noinline)) unsigned work(unsigned n)
		{
			unsigned h = 1;
			for (unsigned i = 0; i < n; i++)
				h = h * 16777619u ^ i; /* the hot line */
			return h;
		}
		int main(void) { return work(300000000u) == 7; }
	END
	touch -d 2020-01-01 hot.c
	gcc -g -O1 hot.c -o hot
	run -0 assay record -q -- ./hot
	run -0 assay record -q --no-source -o bare.assay -- ./hot
	rm hot hot.c
	run -0 assay annotate work hot.assay
	[[ $output == *'the hot line'* ]]
	[[ $output == *imul* ]] || [[ $output == *mul* ]] || [[ $output == *'.byte'* ]]
	run -0 assay annotate --asm-only --full work bare.assay
	[[ $output != *'the hot line'* ]]
	[[ $output == *ret* ]] || [[ $output == *'.byte'* ]]
}

@test "--heap records one run: what has no part in it is named" {
	run -125 --separate-stderr assay record --heap --trials 3 -- true
	[[ $stderr == *'--heap records one run'*'--trials'* ]]
	run -125 --separate-stderr assay record --heap --until 1% -- true
	[[ $stderr == *'--until'* ]]
	run -125 --separate-stderr assay record --heap --no-inherit -- true
	[[ $stderr == *'--no-inherit'* ]]
	run -125 --separate-stderr assay record --sample 64KiB -- true
	[[ $stderr == *'--sample belongs to --heap'* ]]
}
