#!/usr/bin/env bats
# The target is unharmed, whatever happens to it, to assay or to the terminal; what was recorded
# is there afterwards.
# SPDX-License-Identifier: MIT OR Apache-2.0
load runs

teardown() {
	if [ -s pids ]; then
		xargs kill -9 <pids 2>/dev/null || true
	fi
}

# same_surroundings COMMAND…: `surroundings` run by COMMAND prints what it prints under assay
same_surroundings() {
	"$@" "$W/surroundings" 'an arg' '' </dev/null >out 2>err
	mv out bare
	for engine in "${ENGINES[@]}"; do
		"$@" "$ASSAY" record -q --engine "$engine" -o "$BATS_TEST_TMPDIR/s.assay" -- \
			"$W/surroundings" 'an arg' '' \
			</dev/null >out 2>err
		diff -u bare out
		[ ! -s err ]
	done
}

@test "a target finds the descriptors, signals, limits, … it would find without assay" {
	same_surroundings env
	same_surroundings env 5<"$ASSAY" 7>other 19</dev/null
	same_surroundings env --block-signal=USR1,WINCH --ignore-signal=HUP,PIPE,CHLD,USR2
	same_surroundings env --block-signal=CHLD,INT,TERM --default-signal=PIPE
	same_surroundings nice -n 5 prlimit --nofile=100:200 --core=0 --stack=4000000
	same_surroundings setsid -w
	same_surroundings bash -c 'umask 077; cd /; exec "$@"' bash
	same_surroundings env -i A=b
	same_surroundings choom -n 300 --
}

@test "closed standard descriptors stay closed" {
	for engine in "${ENGINES[@]}"; do
		for closed in '<&-' '2>&-' '<&- 2>&-'; do
			eval "'$W/surroundings' >out $closed"
			grep '^fd' out >bare
			eval "assay record -q --engine $engine -o s.assay -- '$W/surroundings' >out $closed"
			grep '^fd' out | diff -u bare -
		done
	done
}

@test "output is the same byte for byte, on both streams" {
	program='head -c 3000000 /dev/zero | tr "\0" x; printf "\0\377end"; head -c 100000 "$0" >&2; printf "\33[1mnot a tty" >&2'
	sh -c "$program" "$ASSAY" >bare.1 2>bare.2
	for engine in "${ENGINES[@]}"; do
		assay record -q --engine "$engine" -o s.assay -- sh -c "$program" "$ASSAY" >with.1 2>with.2
		cmp bare.1 with.1
		cmp bare.2 with.2
	done
}

@test "the exit status is the target's own, and 128 + n for a signal" {
	for engine in "${ENGINES[@]}"; do
		for status in 0 1 125 255; do
			run -"$status" assay record -q --engine "$engine" -o s.assay -- sh -c "exit $status"
		done
		for signal in HUP INT KILL SEGV TERM XCPU; do
			run -$((128 + $(kill -l $signal))) assay record -q --engine "$engine" -o s.assay -- \
				sh -c "ulimit -c 0; kill -$signal \$\$"
			[ -s s.assay ]
		done
	done
	run -7 env --ignore-signal=CHLD assay record -q -o s.assay -- sh -c 'exit 7'
}

@test "standard input goes to the target line by line, in time, and no further" {
	for engine in "${ENGINES[@]}"; do
		python3 - "$engine" <<-'END'
			import select, subprocess, sys, time
			p = subprocess.Popen(["assay", "record", "-q", "--engine", sys.argv[1], "-o", "s.assay", "--",
			    "sh", "-c", 'while read x; do echo "<$x>"; done; echo end'],
			    stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
			late = 0
			for i in range(20):
			    p.stdin.write(b"line %d\n" % i)
			    since = time.time()
			    assert select.select([p.stdout], [], [], 10)[0], "no answer"
			    if i and time.time() - since > 0.1:
			        late += 1
			    assert p.stdout.readline() == b"<line %d>\n" % i
			    time.sleep(0.01)
			assert late <= 6, late	# a shared machine; what is held back comes at the end only
			p.stdin.close()
			assert p.stdout.read() == b"end\n"
			assert p.wait() == 0
		END
		run -0 bash -c "printf 'a\nb\n' | { assay record -q --engine $engine -o s.assay -- sh -c 'read x; echo \$x'; cat; }"
		[ "$output" = $'a\nb' ]
	done
}

# in_terminal ENGINE KEYS PROGRAM…: runs it under assay in an own terminal. KEYS: python list of
# (text to wait for, keys to send); then waits for the end and prints what was shown, last line
# "status N".
in_terminal() {
	python3 - "$@" <<-'END'
		import os, pty, select, sys, time
		engine, keys, program = sys.argv[1], eval(sys.argv[2]), sys.argv[3:]
		pid, fd = pty.fork()
		if pid == 0:
		    os.execvp("assay", ["assay", "record", "-q", "--engine", engine, "-o", "t.assay", "--"] + program)
		shown, keys, end = b"", list(keys), time.time() + 30
		while time.time() < end:
		    if keys and keys[0][0].encode() in shown:
		        time.sleep(0.2)
		        shown += b"|"
		        os.write(fd, keys.pop(0)[1].encode())
		    if select.select([fd], [], [], 0.1)[0]:
		        try:
		            got = os.read(fd, 4096)
		        except OSError:
		            break
		        if not got:
		            break
		        shown += got
		status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
		print(shown.decode().replace("\r", ""))
		print("status", status)
	END
}

@test "Ctrl-C and Ctrl-\\ in a terminal reach the target once; its end and its profile are its own" {
	for engine in "${ENGINES[@]}"; do
		for key in '\x03' '\x1c'; do
			# takes longer over it than assay measures on
			run -0 in_terminal "$engine" "[('ready', '$key')]" sh -c '
				n=0; trap "n=\$((n + 1)); echo caught" INT QUIT
				echo ready; i=0; while [ $n = 0 ]; do i=$((i + 1)); done
				sleep 2; echo "cleaned up after $n"; exit 4'
			[[ $output == *'cleaned up after 1'* ]]
			[[ $output == *'status 4' ]]
			[ "$(value t.assay 'd["samples"] > 10')" = True ]
			rm t.assay
		done
		run -0 in_terminal "$engine" "[('ready', '\\x03')]" sh -c 'echo ready; while :; do :; done'
		[[ $output == *'status 130' ]]
		[ "$(value t.assay 'd["trust"]["interrupted"]')" = False ]
	done
}

@test "Ctrl-C twice gives up at once; a target that ignores it goes on" {
	run -0 in_terminal "${ENGINES[0]}" "[('ready', '\\x03'), ('|', '\\x03')]" sh -c '
		trap "" INT HUP; echo $$ >pids; echo ready; sleep 3; echo survived >survived'
	[[ $output == *'t.assay.partial'* ]]
	[[ $output == *'status 125' ]]
	assay report t.assay.partial >/dev/null
	until_true 20 [ -e survived ]
}

@test "Ctrl-Z stops both, fg continues both" {
	python3 - "$ASSAY" <<-'END' >shown
		import os, pty, select, sys, time
		pid, fd = pty.fork()
		if pid == 0:
		    os.execvp("bash", ["bash", "--norc", "-c",
		        "set -m; assay record -q -o z.assay -- sh -c 'echo ready; sleep 1; echo awake; exit 3';"
		        "echo stopped $?; sleep 0.5; fg; echo status $?"])
		shown, sent, end = b"", False, time.time() + 30
		while time.time() < end:
		    if b"ready" in shown and not sent:
		        time.sleep(0.1)
		        os.write(fd, b"\x1a")
		        sent = True
		    if select.select([fd], [], [], 0.1)[0]:
		        try:
		            got = os.read(fd, 4096)
		        except OSError:
		            break
		        shown += got
		os.waitpid(pid, 0)
		print(shown.decode().replace("\r", ""))
	END
	cat shown
	grep -q 'stopped 14[78]' shown
	grep -q awake shown
	grep -q 'status 3' shown
	[ -s z.assay ]
}

@test "a signal sent to assay alone goes on to the target as what it is" {
	for engine in "${ENGINES[@]}"; do
		for signal in TERM INT HUP; do
			rm -f ready
			env --default-signal=INT,HUP assay record -q --engine "$engine" -o s.assay -- sh -c '
				for s in TERM INT HUP; do trap "echo got $s; exit 9" $s; done
				: >ready; while :; do sleep 0.05; done' >out &
			pid=$!
			until_true 5 [ -e ready ]
			sleep 0.1
			kill -$signal $pid
			status=0
			wait $pid || status=$?
			[ "$(cat out)" = "got $signal" ]
			[ $status = 9 ]
			[ -s s.assay ]
		done
	done
}

none_of_ours_left() {
	while read -r kind id; do
		if bpftool "$kind" show id "$id" >/dev/null 2>&1; then
			return 1
		fi
	done <ours
}

@test "kill -9 of assay: the target goes on, at most the last second is lost, nothing is left in the kernel" {
	for engine in "${ENGINES[@]}"; do
		rm -f begin end
		assay record -q --engine "$engine" -o k.assay -- sh -c \
			"date +%s.%N >begin; '$W/split' 2 70 30; echo status \$? >end" &
		pid=$!
		until_true 5 [ -s begin ]
		sleep 1.7
		sed -nE 's/^(prog|map|link)_id:[[:space:]]*/\1 /p' /proc/$pid/fdinfo/* | sort -u >ours
		[ "$engine" != kernel ] || grep -q prog ours
		killed=$(date +%s.%N)
		kill -9 $pid
		wait $pid || true
		[ -e k.assay.partial ]
		[ ! -e k.assay ]
		assay report k.assay.partial | grep -q 'cut short'
		missing=$(value k.assay.partial "$killed - $(cat begin) - d['duration_s']")
		echo "missing $missing s" # 1 s, and what assay waited for a CPU
		[ "$(value k.assay.partial "$missing < 1.3 and d['trust']['interrupted'] and d['samples'] > 100")" = True ]
		if [ "$engine" = kernel ] && command -v bpftool >/dev/null; then
			until_true 5 none_of_ours_left
		fi
		until_true 40 [ -s end ]
		[ "$(cat end)" = 'status 0' ]
	done
}

@test "the target is killed, crashes, aborts: the profile is complete" {
	for engine in "${ENGINES[@]}"; do
		for signal in KILL SEGV ABRT; do
			run -$((128 + $(kill -l $signal))) --separate-stderr assay record --engine "$engine" -o c.assay -- \
				sh -c 'ulimit -c 0; (sleep 0.4; kill -'$signal' $$) & while :; do :; done'
			says "killed by signal $(kill -l $signal)"
			[ "$(value c.assay 'not d["trust"]["interrupted"] and d["samples"] > 20')" = True ]
		done
	done
}

@test "a target that becomes another program, or a daemon, is followed as long as it is the target" {
	for engine in "${ENGINES[@]}"; do
		run -0 assay record -q --engine "$engine" -o e.assay -- sh -c "exec '$W/split' 0.3 70 30"
		[ "$(value e.assay 'n.get("main", 0) > 0.9 * d["samples"] and d["samples"] > 50')" = True ]
		# the parent ends at once: so does the recording; the daemon lives on, its output too
		rm -f daemon
		run -5 assay record -q --engine "$engine" -o d.assay -- sh -c "
			(setsid sh -c '\"$W/split\" 0.5 70 30; echo status \$? >daemon' >/dev/null 2>&1 &) ; sleep 0.2; exit 5"
		[ -s d.assay ]
		until_true 20 [ -s daemon ]
		[ "$(cat daemon)" = 'status 0' ]
	done
}

@test "--duration ends the recording, not the target" {
	run -6 --separate-stderr assay record --duration 300ms -o d.assay -- sh -c "'$W/split' 0.8 70 30; echo done; exit 6"
	[ "$output" = done ]
	says 'still running'
	[ "$(value d.assay '0.2 < d["duration_s"] < 0.6')" = True ]
}

@test "attached: the process goes on after the recording, and when assay is killed" {
	for engine in "${ENGINES[@]}"; do
		rm -f end
		sh -c "'$W/split' 4 70 30; echo status \$? >end" &
		until_true 5 pgrep -P $! -x split >pids
		run -0 assay record -q --engine "$engine" -p "$(cat pids)" --duration 200ms -o a.assay
		assay record -q --engine "$engine" -p "$(cat pids)" -o a.assay &
		pid=$!
		sleep 0.4
		kill -9 $pid
		wait $pid || true
		until_true 40 [ -s end ]
		[ "$(cat end)" = 'status 0' ]
	done
}

@test "process numbers that are used again are other processes" {
	need_root
	[ -w /proc/sys/kernel/ns_last_pid ] || skip 'needs ns_last_pid'
	for engine in "${ENGINES[@]}"; do
		cat >reuse.py <<-'END'
			import os, sys
			def burn(ms):
			    import time
			    end = time.process_time() + ms / 1000
			    while time.process_time() < end:
			        pass
			seen, number = set(), str(int(open("/proc/sys/kernel/pid_max").read()) - 5000)
			for i in range(40):
			    with open("/proc/sys/kernel/ns_last_pid", "w") as f:
			        f.write(number)
			    pid = os.fork()
			    if pid == 0:
			        with open("/proc/self/comm", "w") as f:
			            f.write("even" if i % 2 == 0 else "odd")
			        burn(10)
			        os._exit(0)
			    seen.add(pid)
			    os.waitpid(pid, 0)
			assert len(seen) < 35, seen
		END
		# strangers that take the numbers too, and have names of their own
		(for _ in $(seq 600); do /bin/true; done) &
		local strangers=$!
		run -0 assay record -q --engine "$engine" -o r.assay -- "$(python3 -c "import sys; print(sys.executable)")" reuse.py
		echo "$output"
		wait $strangers
		assay report --format json --by process --top 1000 r.assay >by
		python3 - <<-'END'
			import json
			d = json.load(open("by"))
			even, odd = (sum(r["self"] for r in d["rows"] if r["name"] == n) for n in ("even", "odd"))
			others = {r["name"] for r in d["rows"]} - {"even", "odd"}
			print(even, odd, others, d["trust"])
			assert even > 0.3 and odd > 0.3 and d["trust"]["explained_cpu"] > 0.8
			assert all(n.startswith("python") for n in others)
		END
	done
}
