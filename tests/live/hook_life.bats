#!/usr/bin/env bats
# Programs that are hard to live in: filters of system calls, small stacks, loaders and exceptions at a
# time, rights. None of them may notice.
# SPDX-License-Identifier: MIT OR Apache-2.0

bats_require_minimum_version 1.5.0
load hook

setup() {
	need_hooks
}

teardown() {
	if [ -s pids ]; then
		xargs kill -9 <pids 2>/dev/null || true
	fi
}

@test "a program that filters its system calls goes on, and is seen" {
	for how in prctl syscall; do
		"$W/sealed" $how 1000 || skip "no filter of system calls can be installed here"
		hook-heap -o told -- "$W/sealed" $how 200000 >out
		[ "$(cat out)" = fine ]
		# two threads, 2 allocations a round
		[ "$(sums | cut -d' ' -f1)" -ge 800000 ]
		awk -F'\t' '$1 == "process" && $7 != "dropped 0" { exit 1 } $1 == "lost" && $2 { exit 1 }' told
	done
	run "$W/sealed" strict 1000
	if [ "$status" = 0 ]; then
		[ "$(hook-heap -o told -- "$W/sealed" strict 100000)" = fine ]
		[ "$(sums | cut -d' ' -f1)" -ge 200000 ]
	fi
}

@test "a program with a filter can be attached to by root" {
	[ "$(id -u)" = 0 ] || skip 'needs root'
	"$W/sealed" prctl 10 || skip "no filter of system calls can be installed here"
	"$W/sealed" prctl 0 2 >out &
	echo $! >pids
	sleep 0.3
	hook-heap -o told -s 1 -p "$(cat pids)"
	[ "$(sums | cut -d' ' -f1)" -gt 1000 ]
	wait "$(cat pids)"
	[ "$(cat out)" = fine ]
}

@test "small and odd stacks, and children that share memory" {
	"$W/narrow" 200
	hook-heap -o told -- "$W/narrow" 0
	none=$(sums narrow)
	hook-heap -o told -- "$W/narrow" 200 >out
	[ "$(cat out)" = fine ]
	some=$(sums narrow)
	# 5 a round; a thread's own descriptor is glibc's business, and taken from a cache
	n=$((${some%% *} - ${none%% *}))
	[ $n -ge 1000 ] && [ $n -le 1210 ]
	awk -F'\t' '$1 == "process" && $3 == "narrow" && $7 != "dropped 0" { exit 1 }' told
}

@test "threads that load libraries, throw and allocate at a time do not hang" {
	command -v g++ || skip 'no g++ on this machine'
	g++ -std=c++17 -O2 -o loading "$S/loading.cpp" -ldl -lpthread
	printf '%s\n' '#include <string.h>' \
		'extern "C" char *plugin_work() { return strdup("worked"); }' >plugin.cc
	g++ -O2 -shared -fPIC -o plugin.so plugin.cc
	# HOOK_SECONDS=30: the long way
	timeout $((${HOOK_SECONDS:-2} * 5 + 20)) hook-heap -o told -- ./loading ./plugin.so "${HOOK_SECONDS:-2}" >out 2>err
	[ "$(cat out)" = fine ]
	cat err
	[ "$(sums | cut -d' ' -f1)" -gt 10000 ]
	./loading ./plugin.so 3 >out 2>err &
	echo $! >pids
	sleep 0.3
	timeout 20 hook-heap -o told -s 1 -p "$(cat pids)"
	wait "$(cat pids)"
	[ "$(cat out)" = fine ]
}

# as_nobody COMMAND…
as_nobody() {
	setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}

@test "what is setuid, or not ours, is refused in clear words, and does what it does" {
	[ "$(id -u)" = 0 ] || skip 'needs root'
	command -v setpriv || skip 'no setpriv on this machine'
	d=$(mktemp -d /tmp/hook-rights-XXXXXX)
	echo "$d" >folder
	chmod 755 "$d"
	cp "$(command -v id)" "$d/sid"
	cp "$B/tests/live/hook-heap" "$d/hook-heap"
	chmod 4755 "$d/sid"
	chmod 755 "$d/hook-heap"
	if [ "$(cd / && as_nobody "$d/sid" -u)" != 0 ]; then
		rm -rf "$d"
		skip 'setuid has no effect here'
	fi
	cd "$d"
	run -2 --separate-stderr as_nobody ./hook-heap -- ./sid -u
	[[ $stderr == *"'./sid' is setuid"*root* ]]
	# one that a program starts keeps its rights, and is not followed
	run -0 --separate-stderr as_nobody ./hook-heap -- /bin/sh -c './sid -u; ./sid -u'
	[ "${lines[0]}" = 0 ]
	[ "${lines[1]}" = 0 ]
	[[ $output == *'# not followed:'*'is setuid'* ]]
	sleep 30 &
	pid=$!
	run -2 --separate-stderr as_nobody ./hook-heap -s 0.1 -p $pid
	[[ $stderr == *'process '$pid* ]]
	[[ $stderr == *'root'* ]]
	kill $pid
	cd /
	rm -rf "$d"
}
