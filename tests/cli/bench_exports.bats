#!/usr/bin/env bats
# SPDX-License-Identifier: MIT OR Apache-2.0
# Exports beside those of hyperfine, of the same commands: what reads the ones reads the others.
# beside others
bats_require_minimum_version 1.5.0
load lib

all_exports() { # NAME
	echo "--export-json $1.json --export-csv $1.csv --export-markdown $1.md --export-asciidoc $1.adoc --export-orgmode $1.org"
}

@test "json: the fields, their order and their kinds are hyperfine's" {
	command -v hyperfine || skip "hyperfine is not installed"
	hyperfine --style none -N -r 4 -P n 1 2 'echo {n}' 'true {n}' $(all_exports theirs)
	run -0 assay bench -r 4 -P n 1 2 'echo {n}' 'true {n}' $(all_exports ours)
	python3 - <<-'END'
		import json
		def shape(x):
		    if isinstance(x, dict): return [(k, shape(v)) for k, v in x.items()]
		    if isinstance(x, list): return [shape(v) for v in x]
		    return type(x).__name__
		theirs, ours = (json.load(open(f + ".json")) for f in ("theirs", "ours"))
		for a, b in zip(theirs["results"], ours["results"]):
		    a.pop("memory_usage_byte", None)	# of later versions
		    assert shape(a) == shape(b), (shape(a), shape(b))
		    assert a["command"] == b["command"] and a["parameters"] == b["parameters"]
		    t = b["times"]
		    assert abs(b["mean"] - sum(t) / 4) < 1e-12 and b["min"] == min(t) and b["max"] == max(t)
		assert len(theirs["results"]) == len(ours["results"])
	END
	# tables: the same but for the digits
	for end in csv md adoc org; do
		sed -E 's/[0-9]+\.[0-9]+/N/g; s/[0-9]+e-[0-9]+/N/g; s/,0,/,N,/g; s/ ± N//g' theirs.$end >a
		sed -E 's/[0-9]+\.[0-9]+/N/g; s/[0-9]+e-[0-9]+/N/g; s/,0,/,N,/g; s/ ± N//g' ours.$end >b
		diff a b
	done
}

@test "to standard output in place of the text; units; order; failing commands; our own JSON beside" {
	run -0 --separate-stderr assay bench -r 3 --export-json - 'sleep 0.01' true
	echo "$output" | python3 -c 'import json, sys
r = json.load(sys.stdin)["results"]
assert [x["command"] for x in r] == ["sleep 0.01", "true"] and r[0]["mean"] > 0.01'
	run -0 assay bench -r 3 --export-markdown - -u second 'sleep 0.01'
	[[ ${lines[0]} == '| Command | Mean [s] | Min [s] | Max [s] | Relative |' ]]
	[[ ${lines[2]} =~ ^'| `sleep 0.01` | '0\.[0-9]{3}' ± '0\.[0-9]{3}' | '0\.[0-9]{3}' | '0\.[0-9]{3}' | 1.00 |'$ ]]
	run -0 assay bench -r 3 --export-csv - --sort mean-time 'sleep 0.02' 'sleep 0.01'
	echo "$output" | parses_as_csv
	[[ ${lines[1]} == 'sleep 0.01,'* ]]
	run -0 assay bench -r 3 -i --export-json out.json --json own.json 'sh -c "exit 3"'
	[[ $output == *'run 1 ended with status 3'* ]]
	python3 -c 'import json
assert json.load(open("out.json"))["results"][0]["exit_codes"] == [3, 3, 3]
d = json.load(open("own.json"))
assert d["schema"] == "assay.bench/1" and d["benchmarks"][0]["processes"] == 3'
	run -1 assay bench -r 3 --export-json /no/such/folder/x true
	[[ $output == *'/no/such/folder/x'* ]]
}
