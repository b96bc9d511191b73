#!/usr/bin/env bats
# SPDX-License-Identifier: MIT OR Apache-2.0
bats_require_minimum_version 1.5.0
load lib

teardown() {
	# shellcheck disable=SC2046 # words
	[ ! -s pids ] || kill $(cat pids) 2>/dev/null || true
}

@test "three areas, and what can be done" {
	run -0 assay doctor --quick
	[[ $output == machine* && $output == *$'\nrights '* && $output == *$'\ncan do '* ]]
}

@test "no line is longer than the terminal, but for what is to be pasted" {
	for width in 60 80 200; do
		COLUMNS=$width assay doctor --quick --all "$ASSAY" >out
		python3 - "$width" <<'PY'
import sys
for line in open("out", encoding="utf-8"):
    line = line.rstrip("\n")
    assert len(line) <= int(sys.argv[1]) or "→" in line, line
PY
	done
}

@test "JSON of the schema; every finding has its words" {
	assay doctor --json "$ASSAY" >out.json
	python3 - <<'PY'
import json
d = json.load(open("out.json"))
assert d["schema"] == "assay.doctor/1"
assert d["subject"].endswith("assay")
assert {f["area"] for f in d["findings"]} == {"machine", "rights", "binary", "can"}
order = ["ok", "info", "warn", "bad"]
for f in d["findings"]:
    assert f["severity"] in order and f["what"] and f["id"], f
    assert f["severity"] in ("ok", "info") or f["fix"], f
    assert f["severity"] == "ok" or f["area"] == "can" or f["why"], f
assert d["worst"] == max((f["severity"] for f in d["findings"]), key=order.index)
n = d["noise"]
assert n["repetitions"] >= 2 and 0 <= n["lost"] < 1 and 0 <= n["spread"], n
assert 0.2 < n["typical_ms"] < 20, n
assert d["load"]["interval_s"] >= 0.9
PY
}

@test "what doctor says of the engines is what record does" {
	assay doctor --quick --format json >out.json
	can=$(python3 -c '
import json
print([f["severity"] for f in json.load(open("out.json"))["findings"] if f["id"] == "can-record"][0])')
	if [ "$can" = ok ]; then
		run -0 assay record -q -o x.assay -- true
	else
		run -125 assay record -q -o x.assay -- true
	fi
}

@test "--strict: 3 exactly when something spoils a measurement" {
	run assay doctor --quick --strict --json
	worst=$(echo "$output" | python3 -c 'import json, sys; print(json.load(sys.stdin)["worst"])')
	case $worst in
	ok | info) [ "$status" -eq 0 ] ;;
	*) [ "$status" -eq 3 ] ;;
	esac
}

# clock ticks that processes have used
ticks() {
	local pid
	for pid; do
		cat "/proc/$pid/stat"
	done | awk '{ n += $14 + $15 } END { print n }'
}

@test "a busy machine is noticed, and who keeps it busy" {
	cp "$(command -v yes)" spinner
	n=$(($(nproc) * 4))
	pids=()
	for ((i = 0; i < n; i++)); do
		setsid ./spinner >/dev/null 3>&- & # sessions of their own get their own share
		pids+=($!)
		echo $! >>pids
	done
	sleep 0.2
	before=$(ticks "${pids[@]}")
	run -3 assay doctor --strict --json
	used=$(($(ticks "${pids[@]}") - before))
	kill "${pids[@]}"
	rm pids
	echo "$output" | python3 -c '
import json, os, sys
d = json.load(sys.stdin)
f = {f["id"]: f for f in d["findings"]}
assert f["load"]["severity"] in ("warn", "bad"), f["load"]
assert f["noise"]["severity"] in ("warn", "bad"), f["noise"]
assert d["noise"]["lost"] > 0.1, d["noise"]
# three are named: on a machine that is busy already others may have used more
cpus = int(sys.argv[1]) / os.sysconf("SC_CLK_TCK") / d["load"]["interval_s"]
top = {t["name"]: t["cpus"] for t in d["load"]["top"]}
assert "spinner" in f["load"]["what"] or cpus < min(top.values()) + 0.1, (cpus, d["load"])
if "spinner" in top:
    assert top["spinner"] <= cpus + 0.1, (cpus, top)' "$used"
}

@test "a program by path, by name, by process" {
	run -0 assay doctor --quick -- "$ASSAY" --some argument
	[[ $output == *binary* ]]
	run -0 assay doctor --quick -- bash -c false
	[[ $output == *binary* ]]
	sleep 20 3>&- &
	run -0 assay doctor --quick -p $!
	kill $!
	[[ $output == *binary* ]]
}

@test "settings that are not there, and names that are none" {
	run -2 --separate-stderr assay doctor --fix nonsense
	[[ $stderr == *nonsense*governor* ]]
	export XDG_STATE_HOME=$PWD/state
	[ -e /run/assay/doctor.state ] && skip "settings of this machine are changed already"
	run -0 assay doctor --restore
	[[ $output == *'nothing to put back'* ]]
}

@test "usage" {
	run -2 assay doctor --fix --restore
	run -2 assay doctor --restore governor
	run -2 assay doctor -p 1 /bin/true
	run -1 --separate-stderr assay doctor ./no-such-file
	[[ $stderr == *no-such-file* ]]
}

# ---- a debug build that is measured ----

builds() {
	command -v gcc >/dev/null || skip "no gcc"
	cat >t.c <<-'END'
		#include <stdio.h>
		#include <stdlib.h>
		static int cmp(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
		static unsigned mix(unsigned n) { unsigned s = 0; for (unsigned i = 0; i < n; i++) s = s * 31 + i; return s; }
		static int fill(int *a, int n) { for (int i = 0; i < n; i++) a[i] = (int)(mix((unsigned)i) % 50); return a[n - 1]; }
		static long sum(const int *a, int n) { long s = 0; for (int i = 0; i < n; i++) s += a[i]; return s; }
		int main(void) { static int a[2000]; int x = fill(a, 2000);
			qsort(a, 2000, sizeof *a, cmp); printf("%d %ld\n", x, sum(a, 2000)); return 0; }
	END
	gcc -O0 -g t.c -o slow
	gcc -O2 -g t.c -o fast
}

@test "stat: one line for a build without optimisation, none for one with it" {
	builds
	run -0 --separate-stderr assay stat -r 3 -- ./slow
	[[ $stderr == "assay: slow: built without optimisation"*"gcc -O2"* ]]
	[ "${#stderr_lines[@]}" -eq 1 ]
	run -0 --separate-stderr assay stat -r 3 -- ./fast
	[ -z "$stderr" ]
	run -0 --separate-stderr assay stat -r 3 -- sh -c ./slow
	[ -z "$stderr" ]
	assay stat -r 3 --format json -- ./slow 2>/dev/null >out.json
	python3 -c 'import json; assert json.load(open("out.json"))["unoptimised"] is True'
}

@test "stat --vs: one of two unoptimised is said before and below the verdict" {
	builds
	run -0 --separate-stderr assay stat -r 5 -- ./slow --vs ./fast
	[[ $stderr == "assay: slow: built without optimisation, and the second command is not"* ]]
	[ "${#stderr_lines[@]}" -eq 1 ]
	[[ $output == *"note   the first is built without optimisation"* ]]
	run -0 --separate-stderr assay stat -r 5 -- ./fast --vs ./slow
	[[ $stderr == "assay: slow: built without optimisation, and the first command is not"* ]]
	[[ $output == *"note   the second is built without optimisation"* ]]
	run -0 --separate-stderr assay stat -r 5 -- ./slow 1 --vs ./slow 2
	[ "${#stderr_lines[@]}" -eq 1 ]
	[[ $output == *"note   both are built without optimisation"* ]]
	run -0 --separate-stderr assay stat -r 5 -- ./fast --vs ./fast
	[ -z "$stderr" ]
	[[ $output != *"optimisation"* ]]
	assay stat -r 5 --format json -- ./fast --vs ./slow 2>/dev/null >out.json
	python3 -c '
import json
d = json.load(open("out.json"))
assert d["unoptimised"] is False and d["other"]["unoptimised"] is True, d'
}

@test "record: one line for a build without optimisation, and the report has it" {
	builds
	assay record -q -o probe.assay -- true || skip "recording is not possible here"
	run -0 --separate-stderr assay record -o slow.assay -- ./slow
	[[ $stderr == *"assay: slow: built without optimisation"* ]]
	run -0 assay report slow.assay
	[[ $output == *"built without optimisation"* ]]
	run -0 --separate-stderr assay record -o fast.assay -- ./fast
	[[ $stderr != *"optimisation"* ]]
	run -0 --separate-stderr assay record -q -o slow.assay -- ./slow
	[ -z "$stderr" ]
}

@test "cargo assay builds with optimisation and is silent; its dev profile is told" {
	command -v cargo >/dev/null && cargo --version >/dev/null 2>&1 || skip "no cargo"
	mkdir -p app/src
	printf '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n' >app/Cargo.toml
	cat >app/src/main.rs <<-'END'
		fn fill(n: u64) -> Vec<u64> { (0..n).map(|i| i * 7 % 13).collect() }
		fn count(v: &[u64]) -> std::collections::HashMap<u64, u64> {
			let mut m = std::collections::HashMap::new();
			for x in v { *m.entry(*x).or_insert(0) += 1; }
			m
		}
		fn sum(v: &[u64]) -> u64 { let mut s = 0; for x in v { s += x; } s }
		fn main() { let v = fill(1000); println!("{} {}", sum(&v), count(&v).len()); }
	END
	cd app
	run -0 --separate-stderr assay cargo stat -r 2
	[[ $stderr != *"without optimisation"* ]]
	run -0 --separate-stderr assay cargo stat -r 2 --profile dev
	[[ $stderr == *"app: built without optimisation"*"cargo build --release"* ]]
}

# ---- files that are no program, and programs that are none any more ----

@test "scripts, folders, cut and foreign files are named for what they are" {
	printf '#!/usr/bin/env -S LANG=C python3\nprint()\n' >script
	run -0 assay doctor --quick ./script
	[[ $output == *'a script, run by python3 (/usr/bin/env -S LANG=C python3)'* ]]
	[[ $output == *'→ assay doctor python3'* || $output == *'assay doctor python3   (the'* ]]
	head -c 6000 "$ASSAY" >cut
	run -3 assay doctor --quick --strict ./cut
	[[ $output == *'the file is cut short: 5.86 KiB of at least '* ]]
	[[ $output != *stripped* ]]
	run -1 --separate-stderr assay doctor .
	[[ $stderr == *"'.' is no program, but a folder"* ]]
	mkfifo pipe
	run -1 --separate-stderr assay doctor ./pipe
	[[ $stderr == *'a device or a pipe'* ]]
	for kind in 'empty:' 'text, without:hello' '32 bits:\177ELF\1\1\1xxxxxxxxxxxxx' 'Windows:MZ\220' 'core dump:'; do
		printf "${kind#*:}" >other
		if [ "${kind%:*}" = 'core dump' ]; then
			cp "$ASSAY" other
			printf '\4' | dd of=other bs=1 seek=16 conv=notrunc 2>/dev/null
		fi
		run -1 --separate-stderr assay doctor ./other
		[[ $stderr == *"cannot look into './other': it is "*"${kind%:*}"* ]]
	done
	cp "$ASSAY" foreign
	printf '\363' | dd of=foreign bs=1 seek=18 conv=notrunc 2>/dev/null
	run -0 assay doctor --quick ./foreign
	[[ $output == *'a program for RISC-V'* ]]
	run -1 --separate-stderr assay doctor -p 4194303
	[[ $stderr == *'there is no process 4194303'* ]]
}

@test "a project: the lines for its Cargo.toml, for a debug build too" {
	mkdir -p app/target/debug
	printf '[package]\nname = "app"\n\n[profile.release]\nstrip = true\n' >app/Cargo.toml
	cd app
	run -0 assay doctor --quick
	[[ $output == *'profile release: debug is not set, strip = true'*'→ [profile.release]'*'→ debug = 1'*'→ strip = false'* ]]
	printf '[profile.release]\ndebug = 1\n' >Cargo.toml
	run -0 assay doctor --quick
	[[ $output == *'profile release keeps lines and names'* ]]
	command -v rustc >/dev/null && rustc --version >/dev/null 2>&1 || skip 'no rustc'
	printf '[profile.release]\nlto = true\n' >Cargo.toml
	cat >main.rs <<-'END'
		fn fill(n: u64) -> Vec<u64> { (0..n).map(|i| i * 7 % 13).collect() }
		fn count(v: &[u64]) -> std::collections::HashMap<u64, u64> {
			let mut m = std::collections::HashMap::new();
			for x in v { *m.entry(*x).or_insert(0) += 1; }
			m
		}
		fn sum(v: &[u64]) -> u64 { let mut s = 0; for x in v { s += x; } s }
		fn main() { let v = fill(1000); println!("{} {}", sum(&v), count(&v).len()); }
	END
	rustc -g -o target/debug/app main.rs
	run -0 assay doctor --quick ./target/debug/app
	[[ $output == *'✗ built without optimisation'*'→ cargo build --release'*'Cargo.toml:)'*'→ [profile.release]'*'→ debug = 1'* ]]
}
