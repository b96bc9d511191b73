#!/usr/bin/env bats
# SPDX-License-Identifier: MIT OR Apache-2.0
bats_require_minimum_version 1.5.0
load lib

names() { # of the benchmarks, one a line
	echo "$output" | python3 -c 'import json, sys
for b in json.load(sys.stdin)["benchmarks"]: print(b["name"])'
}

@test "a command behind --: its value, both clocks, the runs" {
	run -0 --separate-stderr assay bench -r 5 -- sleep 0.02
	[[ $output == 'sleep 0.02 '*wall*ms*'±'*'peak'*'cpu '*', 5 runs'* ]]
	run -0 assay bench -r 3 -- sh -c 'exit 0'
	[[ $output == "sh -c 'exit 0' "* ]]
	run -0 assay bench -r 3 -- 'sleep 0.01'
	[[ $output == 'sleep 0.01 '* ]]
}

@test "commands as texts, compared with the first" {
	said() { [ "$status" = 0 ] && [[ $output == $1 ]]; }
	tries "said '*slower *sleep 0.03 against sleep 0.01*by wall, 6 pairs*'" \
		assay bench -r 6 'sleep 0.01' --vs 'sleep 0.03'
	tries "said '*faster *sleep 0.01 against sleep 0.03*'" assay bench -r 6 'sleep 0.03' 'sleep 0.01'
	tries "said '*faster *sleep 0.01 against sleep 0.03*'" \
		assay bench -r 6 -- sleep 0.03 --vs sleep 0.01
	tries "said '*quick *slow *slower *slow against quick*'" \
		assay bench -r 6 'sleep 0.03' --reference 'sleep 0.01' --reference-name quick -n slow
	run -0 assay bench --format json -r 3 -n x --command-name x true 'true 2'
	[ "$(names | tr '\n' ' ')" = 'x x (2) ' ]
	run -0 assay bench --format json -r 3 true true true
	[ "$(names | sort -u | wc -l)" = 3 ]
}

@test "a command that is decided takes part no more" {
	decided() {
		echo "$output" | python3 -c '
import json, sys
d = json.load(sys.stdin)
n = [b["processes"] for b in d["benchmarks"]]
assert n[0] == max(n[1], n[2]), n
assert d["comparisons"][0]["verdict"] == "slower" and n[1] <= n[2], (d["comparisons"][0], n)'
	}
	tries decided assay bench -m 5 -M 40 --format json 'sleep 0.01' 'sleep 0.05' 'sleep 0.01'
}

@test "what needs a shell says so, and gets one" {
	run -2 --separate-stderr assay bench 'ls | wc'
	[[ $stderr == *"'ls | wc' needs a shell for '|'"*"assay bench --shell 'ls | wc'"* ]]
	run -0 assay bench -r 3 --shell 'ls | wc'
	[[ $output == *"the shell's start ("*' is taken off, run by run'* ]]
	run -0 assay bench -r 2 --shell='bash --norc' --output out 'echo ${BASH_VERSION%%.*}; :'
	[ "$(cat out)" -ge 4 ]
	run -0 assay bench -r 2 -S bash --output out '[[ x ]] && echo bash'
	[ "$(cat out)" = bash ]
	run -0 assay bench -r 2 --shell=none 'echo a'
	run -0 assay bench -r 2 -N 'echo a'
	run -2 assay bench --shell bash 'echo a'
	[[ $output == *'--shell=bash'* ]]
	run -1 assay bench -r 2 --shell=no-such-shell 'echo a'
	[[ $output == *no-such-shell* ]]
}

@test "one word a command: several of one command are told what to write" {
	run -1 assay bench -r 2 sleep 0.01
	[[ $output == *'assay bench -- sleep 0.01'* ]]
}

@test "parameters make commands: ranges, lists, steps, combinations, hyperfine's options" {
	run -0 assay bench -r 1 --format json --param n 1..3 'echo {n}'
	[ "$(names | tr '\n' ' ')" = 'echo 1 echo 2 echo 3 ' ]
	run -0 assay bench -r 1 --format json --param d 0.1..0.5..0.2 --param w a,b -- echo '{d}' '{w}'
	[ "$(names | tr '\n' ' ')" = 'echo 0.1 a echo 0.3 a echo 0.5 a echo 0.1 b echo 0.3 b echo 0.5 b ' ]
	run -0 assay bench -r 1 --format json -P n 0 10 -D 5 -L w x,y 'echo {n}{w}' 'true {n} {w}'
	[ "$(names | head -3 | tr '\n' ' ')" = 'echo 0x true 0 x echo 5x ' ]
	[ "$(names | wc -l)" = 12 ]
	echo "$output" | python3 -c 'import json, sys
p = json.load(sys.stdin)["benchmarks"][2]["parameters"]
assert p == {"n": "5", "w": "x"}, p'
	run -0 assay bench -r 1 --format json --param n 1..2 -n 'with {n}' 'echo {n}'
	[ "$(names | tr '\n' ' ')" = 'with 1 with 2 ' ]
	run -0 assay bench -r 2 --param n 1..2 --setup 'echo s{n} >>log' --prepare 'echo p{n} >>log' \
		--conclude 'echo c{n} >>log' --cleanup 'echo e{n} >>log' --output 'out{n}' 'echo {n}'
	[ "$(grep -c s1 log)$(grep -c s2 log)$(grep -c p1 log)$(grep -c c2 log)$(grep -c e2 log)" = 11221 ]
	[ "$(cat out1 out2 | tr '\n' ' ')" = '1 2 ' ]
	run -2 assay bench --param n 1..3 'echo m'
	[[ $output == *"no command has a place for the parameter 'n': {n}"* ]]
	run -2 assay bench --step 2 'echo m'
}

@test "prepare and output: once, or once for each command; anything else says so" {
	run -0 assay bench -r 2 --prepare 'echo one >>log' --prepare 'echo two >>log' true 'true x'
	[ "$(grep -c one log)$(grep -c two log)" = 22 ]
	run -2 assay bench -r 2 --prepare a --prepare b --prepare c true 'true x'
	[[ $output == *'--prepare is given once, or once for each of the 2 commands, not 3 times'* ]]
	run -1 assay bench -r 3 --prepare 'exit 5' true
	[[ $output == *"--prepare 'exit 5' failed (status 5)"*'--show-output'* ]]
	run -1 assay bench -r 3 --setup 'exit 5' --cleanup 'echo x >cleaned' true
	[ -e cleaned ]
	echo hello >in
	run -0 assay bench -r 2 --input in --output out cat
	[ "$(cat out)" = hello ]
}

@test "two builds are compared from copies made in the same way; set-ups that differ are kept apart" {
	printf 'int main(void) { for (volatile long i = 0; i < N; i++) ; return 0; }' >spin.c
	cc -DN=2000000 -o old spin.c && cc -DN=6000000 -o new-one spin.c
	export TMPDIR=$PWD/tmp && mkdir tmp
	run -0 assay bench -r 8 ./old ./new-one
	[[ $output == *'./new-one against ./old'*'copied first'* && -z "$(ls tmp)" ]]
	run -0 assay bench -r 3 --no-copy ./old ./new-one
	[[ $output != *copied* ]]
	# one name, built anew for each value: the second build is not what both run
	four_times() {
		echo "$output" | python3 -c '
import json, sys
c = json.load(sys.stdin)["comparisons"][0]
assert c["verdict"] == "slower" and c["ratio"] > 2, c'
	}
	tries four_times assay bench -r 8 --format json --param n 20000000,80000000 \
		--setup 'cc -DN={n} -o app spin.c' -n 'app {n}' ./app
	[ -z "$(ls tmp)" ]
	cc -DN=10 -Wl,-rpath,'$ORIGIN' -o beside spin.c
	run -0 assay bench -r 2 ./beside ./old
	[[ $output != *copied* ]]
}

@test "each run is told its number, as hyperfine does it" {
	HYPERFINE_ITERATION=mine run -0 assay bench -r 3 -w 2 --shell --prepare 'echo "p $HYPERFINE_ITERATION" >>log' \
		-n a -n b 'echo "a $HYPERFINE_ITERATION" >>log' 'echo "b $HYPERFINE_ITERATION" >>log'
	for k in a b; do
		[ "$(grep "^$k " log | tr '\n' ,)" = "$k warmup-0,$k warmup-1,$k 0,$k 1,$k 2," ]
	done
	[ "$(grep -c '^p mine$' log)" = "$(grep -c '^p' log)" ] # what is around the runs has ours
}

@test "--time-unit: of the text, too" {
	run -0 assay bench -r 2 -u microsecond 'sleep 0.02'
	grep -qE 'sleep 0.02 .* [2-9][0-9],[0-9]{3} µs ' <<<"$output"
	[[ $output != *' ms'* ]]
	run -0 assay bench -r 2 --time-unit second 'sleep 0.02'
	grep -qE 'sleep 0.02 .* 0\.0[2-9]' <<<"$output"
	[[ $output != *' ms'* ]]
	run -0 assay bench -r 2 'sleep 0.02'
	[[ $output == *' ms'* ]]
}

@test "usage" {
	run -2 assay bench
	run -2 assay bench ''
	run -2 assay bench "echo 'a"
	run -2 assay bench -- true --vs
	run -1 assay bench ./no-such-program
	[[ $output == *"./no-such-program"* ]]
	run -0 assay bench --style none -r 2 true
	[ -z "$output" ]
}

@test "the page's examples are understood" {
	printf 'int main(int argc, char **argv) { return argc > 9; }' >x.c && cc -O1 -o app x.c
	cp app old && cp app new && cp app other && touch input
	printf '#!/bin/sh\n' >make && chmod +x make
	sed -n '/^## EXAMPLES/,/^## [^E]/p' "$BATS_TEST_DIRNAME/../../docs/man/assay-bench.md" |
		grep -E '^    assay ' | sed 's/^ *//' >examples
	[ "$(wc -l <examples)" -ge 8 ]
	while read -r line; do
		# of functions, revisions and stored results: their own tests
		[[ ! $line =~ bench\ (--cargo|--against|--self-test|[a-z]+\ ) ]] || continue
		PATH=$PWD:$PATH run bash -c "${line/assay bench/assay bench -M 12}"
		[ "$status" = 0 ] || { echo "$line: $output" && false; }
	done <examples
}
