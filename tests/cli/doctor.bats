#!/usr/bin/env bats
# SPDX-License-Identifier: MIT OR Apache-2.0
bats_require_minimum_version 1.5.0
load lib

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

@test "a busy machine is noticed, and who keeps it busy" {
	cp "$(command -v yes)" spinner
	n=$(nproc)
	pids=()
	for ((i = 0; i < n; i++)); do
		./spinner >/dev/null 3>&- &
		pids+=($!)
	done
	run -3 assay doctor --strict --json
	kill "${pids[@]}"
	echo "$output" | python3 -c '
import json, sys
d = json.load(sys.stdin)
f = {f["id"]: f for f in d["findings"]}
assert f["load"]["severity"] in ("warn", "bad"), f["load"]
assert "spinner" in f["load"]["what"], f["load"]
assert f["noise"]["severity"] in ("warn", "bad"), f["noise"]
assert d["noise"]["lost"] > 0.1, d["noise"]'
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
