#!/usr/bin/env bats
# doctor on this very machine: limits, filters, groups and settings that are really so, and settings
# really changed and put back.
# SPDX-License-Identifier: MIT OR Apache-2.0
bats_require_minimum_version 1.5.0
load ../cli/lib

SETTINGS='perf_event_paranoid randomize_va_space'

teardown() {
	for s in $SETTINGS; do
		[ ! -s "$s.found" ] || cat "$s.found" >"/proc/sys/kernel/$s"
	done
	if [ -s group ]; then
		while read -r pid; do
			echo "$pid" >"$(dirname "$(cat group)")/cgroup.procs" || true
		done <"$(cat group)/cgroup.procs"
		rmdir "$(cat group)" || true
	fi
	rm -rf "/tmp/assay-doctor-nobody.$$"
}

need_root() {
	[ "$(id -u)" = 0 ] || skip 'needs root'
}

# Of out.json: "severity what" of a finding, "" where nothing is said.
finding() {
	python3 -c '
import json, sys
for f in json.load(open("out.json"))["findings"]:
    if f["id"] == sys.argv[1]:
        print(f["severity"], f["what"], "/", f["fix"])' "$1"
}

# PROGRAM ARGS…: the findings where this program starts doctor
looked_at() {
	"$@" assay doctor --quick --json >out.json
}

# FILE TEXT: the findings where FILE reads as TEXT, in a mount namespace of its own
looked_at_with() {
	printf '%s\n' "$2" >instead
	unshare -m true 2>/dev/null || skip 'no mount namespaces here'
	[ -e "$1" ] || skip "no $1"
	# shellcheck disable=SC2016 # for the inner shell
	unshare -m sh -c 'mount --bind instead "$1" && shift && "$@" assay doctor --quick --json' \
		x "$1" "${@:3}" >out.json
}

as_nobody='setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs'

# For an ordinary user: a copy of assay that may be run, a folder to be in
go_as_nobody() {
	need_root
	command -v setpriv >/dev/null || skip 'no setpriv'
	mkdir -p "/tmp/assay-doctor-nobody.$$/home"
	cp "$ASSAY" "/tmp/assay-doctor-nobody.$$/assay"
	chmod -R 777 "/tmp/assay-doctor-nobody.$$"
	PATH=/tmp/assay-doctor-nobody.$$:$PATH
	export HOME=/tmp/assay-doctor-nobody.$$/home
	unset XDG_STATE_HOME
}

# ---- limits and filters ----

@test "few open files, little memory for rings" {
	looked_at prlimit --nofile=100
	[[ $(finding nofile) == 'warn only 100 open files'* ]]
	looked_at prlimit --nofile=4096
	[[ $(finding nofile) == ok* ]]
	go_as_nobody
	looked_at_with /proc/sys/kernel/perf_event_mlock_kb 4 prlimit --memlock=65536 $as_nobody
	[[ $(finding mlock) == 'warn little memory'*'4 KiB a CPU, ulimit -l 64 KiB'* ]]
	looked_at_with /proc/sys/kernel/perf_event_mlock_kb 516 prlimit --memlock=65536 $as_nobody
	[[ $(finding mlock) == ok* ]]
}

@test "a system call filter, and no_new_privs" {
	looked_at env
	[[ $(finding seccomp) == ok* ]] || skip "a filter is in force: $(finding seccomp)"
	command -v setpriv >/dev/null || skip 'no setpriv'
	looked_at setpriv --no-new-privs
	[[ $(finding seccomp) == info*no_new_privs* ]]
	cat >filtered <<-'END'
		import ctypes, os, struct, sys
		libc = ctypes.CDLL(None, use_errno=True)
		allow = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7fff0000))
		class Program(ctypes.Structure):
		    _fields_ = [("n", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
		p = Program(1, ctypes.addressof(allow))
		assert libc.prctl(38, 1, 0, 0, 0) == 0
		assert libc.prctl(22, 2, ctypes.byref(p), 0, 0) == 0, ctypes.get_errno()
		os.execvp(sys.argv[1], sys.argv[1:])
	END
	python3 filtered true || skip 'no filters here'
	looked_at python3 filtered
	[[ $(finding seccomp) == info*'filter is in force'* ]]
}

@test "capabilities taken from root" {
	need_root
	command -v setpriv >/dev/null || skip 'no setpriv'
	looked_at env
	[[ $(finding capabilities) == 'ok root'* ]] || skip 'this root has few of them'
	setpriv --bounding-set -perfmon,-bpf,-sys_admin,-syslog true 2>/dev/null ||
		skip 'this setpriv does not know these capabilities'
	looked_at setpriv --bounding-set -perfmon,-bpf,-sys_admin,-syslog
	[[ $(finding capabilities) == 'info root without cap_perfmon,cap_bpf,cap_syslog'* ]]
}

@test "rights of an ordinary user, by perf_event_paranoid" {
	go_as_nobody
	looked_at_with /proc/sys/kernel/perf_event_paranoid 1 $as_nobody
	[[ $(finding perf_event_paranoid) == 'ok perf events (paranoid 1)'* ]]
	looked_at_with /proc/sys/kernel/perf_event_paranoid 2 $as_nobody
	[[ $(finding perf_event_paranoid) == warn*'--fix perf_event_paranoid'* ]]
	looked_at_with /proc/sys/kernel/perf_event_paranoid 4 $as_nobody
	[[ $(finding perf_event_paranoid) == bad* ]]
	looked_at_with /proc/sys/kernel/perf_event_paranoid 4
	[[ $(finding perf_event_paranoid) == ok*'does not bind'* ]]
	looked_at_with /proc/sys/kernel/kptr_restrict 2
	[[ $(finding kptr_restrict) == info*'--fix kptr_restrict'* ]]
}

@test "what doctor says an ordinary user can do is what record does" {
	go_as_nobody
	cd "$HOME"
	$as_nobody assay doctor --quick --json >out.json
	if [[ $(finding can-record) == ok* ]]; then
		$as_nobody assay record -q -o x.assay -- true
	else
		run -125 $as_nobody assay record -q -o x.assay -- true
	fi
}

# ---- the machine ----

@test "CPUs that may not be used" {
	[ "$(nproc)" -gt 1 ] || skip 'one CPU'
	looked_at env
	[[ $(finding cpuset) == ok* ]] || skip "not all CPUs may be used: $(finding cpuset)"
	looked_at taskset -c 0
	[[ $(finding cpuset) == 'info only CPUs 0 may be used (1 of '* ]]
}

@test "addresses that are not randomised" {
	looked_at env
	[[ $(finding aslr) == 'ok '* ]] || skip 'they are not on this machine'
	setarch -R true 2>/dev/null || skip 'setarch -R is refused'
	looked_at setarch -R
	[[ $(finding aslr) == 'info '*'in this session'* ]]
	need_root
	looked_at_with /proc/sys/kernel/randomize_va_space 0
	[[ $(finding aslr) == 'info addresses are not randomised '*'=2'* ]]
}

@test "clock source, huge pages" {
	need_root
	looked_at_with /sys/devices/system/clocksource/clocksource0/current_clocksource hpet
	[[ $(finding clock) == 'warn slow clock source hpet, '*' ns a reading'* ]]
	looked_at_with /sys/kernel/mm/transparent_hugepage/enabled '[always] madvise never'
	[[ $(finding thp) == 'info '* ]]
	looked_at_with /sys/kernel/mm/transparent_hugepage/enabled 'always [madvise] never'
	[[ $(finding thp) == 'ok '* ]]
}

@test "a kernel that shows nothing is not judged" {
	need_root
	unshare -m true 2>/dev/null || skip 'no mount namespaces here'
	unshare -m sh -c 'mount -t tmpfs tmpfs /sys && assay doctor --quick --json' >out.json
	for id in quota smt pmu governor; do
		[[ $(finding $id) == 'info '*'cannot be seen (no /sys/'* ]]
	done
	# the noise test needs neither
	unshare -m sh -c 'mount -t tmpfs tmpfs /sys && exec 3</proc/self/exe && assay doctor --json' >out.json
	[[ $(finding noise) == *'of equal work varied'* ]]
}

# make_group: a cgroup with a cpu controller, in ./group
make_group() {
	local dir
	need_root
	for dir in /sys/fs/cgroup/cpu,cpuacct /sys/fs/cgroup/cpu /sys/fs/cgroup; do
		[ -e "$dir/cpu.shares" ] || grep -qw cpu "$dir/cgroup.subtree_control" 2>/dev/null || continue
		mkdir "$dir/assay-test-$$" 2>/dev/null || continue
		echo "$dir/assay-test-$$" >group
		return
	done
	skip 'no cgroup with the cpu controller can be made'
}

# set_quota PERCENT of one CPU
set_quota() {
	if [ -e "$(cat group)/cpu.max" ]; then
		echo "$(($1 * 1000)) 100000" >"$(cat group)/cpu.max"
	else
		echo 100000 >"$(cat group)/cpu.cfs_period_us"
		echo "$(($1 * 1000))" >"$(cat group)/cpu.cfs_quota_us"
	fi
}

@test "a CPU quota, and one that was reached" {
	make_group
	looked_at env
	[[ $(finding quota) == 'ok no CPU quota'* ]] || skip "there is one: $(finding quota)"
	# shellcheck disable=SC2016 # for the inner shell
	in_group='echo $$ >"$(cat group)/cgroup.procs" && exec assay doctor --json "$@"'
	set_quota 5000
	sh -c "$in_group" x --quick >out.json
	[[ $(finding quota) == "warn CPU quota of 50 CPUs"*"$(cat group)"* ]]
	set_quota 20
	sh -c "$in_group" x >out.json
	[[ $(finding quota) == 'bad CPU quota of 0.20 CPUs, and it was reached just now'* ]]
	python3 -c '
import json
d = json.load(open("out.json"))
assert d["noise"]["lost"] > 0.3, d["noise"]
assert d["noise"]["worst_gap_ms"] > 20, d["noise"]'
}

# ---- --fix and --restore ----

# The state of the settings to be changed, for as_found and teardown
keep_settings() {
	need_root
	[ ! -e /run/assay/doctor.state ] || skip 'settings of this machine are changed already'
	for s in $SETTINGS; do
		cat "/proc/sys/kernel/$s" >"$s.found"
		cat "/proc/sys/kernel/$s" >"/proc/sys/kernel/$s" 2>/dev/null || {
			rm "$s.found"
			skip "kernel.$s may not be changed here"
		}
	done
	# what --fix would change
	echo 2 >/proc/sys/kernel/perf_event_paranoid
	echo 2 >/proc/sys/kernel/randomize_va_space
}

as_found() {
	[ "$(cat /proc/sys/kernel/perf_event_paranoid)" = 2 ]
	[ "$(cat /proc/sys/kernel/randomize_va_space)" = 2 ]
	[ ! -e /run/assay/doctor.state ]
}

@test "settings are changed, said, and put back" {
	keep_settings
	run -0 assay doctor --fix perf_event_paranoid,aslr
	[[ $output == *'perf_event_paranoid  2 → 1'*'aslr                 2 → 0'*--restore* ]]
	[ "$(cat /proc/sys/kernel/perf_event_paranoid)" = 1 ]
	[ "$(cat /proc/sys/kernel/randomize_va_space)" = 0 ]
	run -0 assay doctor --quick
	[[ $output == *'settings are changed by --fix; put back with: assay doctor --restore'* ]]
	run -0 assay doctor --fix perf_event_paranoid
	[[ $output == *'is 1 already'* ]]
	run -0 assay doctor --restore --json
	python3 -c '
import json, sys
d = json.loads(sys.argv[1])
assert d["schema"] == "assay.doctor/1"
assert [(c["name"], c["from"], c["to"], c["result"]) for c in d["changes"]] == [
    ("aslr", "0", "2", "done"), ("perf_event_paranoid", "1", "2", "done")], d' "$output"
	as_found
	run -0 assay doctor --restore
	[ "$output" = 'nothing to put back' ]
}

@test "kill -9 while settings are changed and put back: all is as found" {
	keep_settings
	for i in 0 1 2 3 4 5 6 7 8 9; do
		for what in '--fix perf_event_paranoid,aslr' '--fix perf_event_paranoid,aslr' --restore; do
			# shellcheck disable=SC2086 # words
			assay doctor $what >/dev/null 2>&1 3>&- &
			sleep "0.00$i"
			kill -9 $! 2>/dev/null || true
			wait $! || true
		done
		assay doctor --restore >/dev/null
		as_found
	done
}

@test "killed at each system call that changes something" {
	keep_settings
	command -v strace >/dev/null || skip 'no strace'
	strace -o /dev/null true 2>/dev/null || skip 'strace is not allowed here'
	killed=0
	for call in openat write fsync close flock unlink mkdir lseek ftruncate; do
		for n in 1 2 3 5 8 13; do
			for what in '--fix perf_event_paranoid,aslr' --restore; do
				# shellcheck disable=SC2086 # words
				if strace -o /dev/null -e "inject=$call:signal=KILL:when=$n" \
					assay doctor $what >/dev/null 2>&1 3>&-; then
					continue
				fi
				killed=$((killed + 1))
			done
			assay doctor --restore >/dev/null
			as_found
		done
	done
	[ "$killed" -gt 15 ]
}

@test "many doctors at once: all is as found" {
	keep_settings
	for i in 1 2 3 4 5 6 7 8 9; do
		[ $((i % 3)) = 0 ] && what=--restore || what='--fix perf_event_paranoid,aslr'
		# shellcheck disable=SC2086 # words
		assay doctor $what >"out.$i" 2>&1 3>&- &
	done
	wait
	assay doctor --restore >/dev/null
	as_found
	! grep -l '^assay:' out.*
}

@test "no room for what was found: nothing is changed" {
	keep_settings
	unshare -m true 2>/dev/null || skip 'no mount namespaces here'
	mkdir -p /run/assay
	run -1 --separate-stderr unshare -m sh -c '
		mount -t tmpfs -o size=4k tmpfs /run/assay && dd if=/dev/zero of=/run/assay/full bs=4k count=1 2>/dev/null
		exec assay doctor --fix perf_event_paranoid,aslr'
	[[ $stderr == *'No space left on device'* ]]
	as_found
}

@test "settings that this machine does not let change" {
	keep_settings
	unshare -m true 2>/dev/null || skip 'no mount namespaces here'
	run -1 --separate-stderr unshare -m sh -c '
		mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys
		exec assay doctor --fix perf_event_paranoid'
	[[ $output == *'stays at 2: Read-only file system (a container may not change this)'* ]]
	as_found
}

@test "an ordinary user changes nothing, and is told who can" {
	keep_settings
	go_as_nobody
	cd "$HOME"
	run -1 --separate-stderr $as_nobody assay doctor --fix perf_event_paranoid
	[[ $output == *'stays at 2: Permission denied (only root may change this)'* ]]
	[[ $stderr == *'sudo assay doctor --fix'* ]]
	run -0 $as_nobody assay doctor --restore
	[[ $output == *'nothing to put back'* ]]
	cd - >/dev/null
	as_found
}

@test "other users see that settings are changed" {
	keep_settings
	go_as_nobody
	assay doctor --fix perf_event_paranoid >/dev/null
	run -0 $as_nobody assay doctor --quick
	[[ $output == *"settings are changed by root's --fix; put back with: sudo assay doctor --restore"* ]]
	assay doctor --restore >/dev/null
	run -0 $as_nobody assay doctor --quick
	[[ $output != *'put back'* ]]
	as_found
}

@test "a state that is damaged is said, and what can be read is put back" {
	keep_settings
	assay doctor --fix perf_event_paranoid,aslr >/dev/null
	echo 'garbage' >>/run/assay/doctor.state
	run -1 --separate-stderr assay doctor --restore
	[[ $stderr == *"line 5 of '/run/assay/doctor.state' is damaged: 'garbage'"* ]]
	[[ $output == *'perf_event_paranoid  1 → 2'* ]]
	rm /run/assay/doctor.state
	as_found
}
