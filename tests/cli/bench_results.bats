#!/usr/bin/env bats
# SPDX-License-Identifier: MIT OR Apache-2.0
# What happens with results of benchmarks: kept, shown, compared, handed on, read from other tools.
# beside others
bats_require_minimum_version 1.5.0
load lib

CORPUS=$BATS_TEST_DIRNAME/../fuzz/corpus/bench

# a result of ours with one benchmark of the given time in s and throughput
result() { # FILE SECONDS [ELEMENTS]
	python3 - "$@" <<-'END'
		import json, sys
		path, t, n = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0
		b = {"name": "parse", "kind": "function", "unit": "s", "metric": "time", "mean": t,
		     "low": t * 0.99, "high": t * 1.01, "samples": [t] * 12, "processes": 12}
		if n:
		    b["throughput"] = {"kind": "elements", "n": n}
		json.dump({"schema": "assay.bench/1", "benchmarks": [b], "comparisons": []}, open(path, "w"))
	END
}

@test "a stored result is shown in 80 and in 200 columns" {
	COLUMNS=80 run -0 assay bench show "$CORPUS/assay.json"
	golden bench-80
	COLUMNS=200 run -0 assay bench show "$CORPUS/assay.json"
	golden bench-200
	[ "$(COLUMNS=80 assay bench show "$CORPUS/assay.json" | python3 -c 'import sys; print(max(map(len, sys.stdin.read().split("\n"))))')" -le 80 ]
}

@test "markdown for a pull request: news first, names are no markup" {
	run -0 assay bench show "$CORPUS/assay.json" --format markdown
	golden bench-markdown
	sed 's#parse/small#a|b*c<d>@user`e#g' "$CORPUS/assay.json" >odd.json
	run -0 assay bench show odd.json --format markdown
	[[ $output == *'a\|b\*c&lt;d>@'*'user\`e'* ]]
}

@test "every run is kept, unless asked not to; the history draws it" {
	for i in 1 2 3; do assay bench -r 10 -- true >/dev/null; done
	assay bench -r 10 --no-history -- true >/dev/null
	run -0 assay bench history
	[[ $output == 'true'*'3 runs'* ]]
	run -0 assay bench history true
	[[ $output == 'true: 3 runs on '*'•'*'steps  8 runs are needed to tell'*'#3 '* ]]
	run -0 assay bench history true --format json
	echo "$output" | python3 -c '
import json, sys
d = json.load(sys.stdin)
assert d["schema"] == "assay.bench.history/1"
assert len(d["benchmarks"][0]["runs"]) == 3 and d["benchmarks"][0]["changes"] == []'
	run -1 --separate-stderr assay bench history nothing
	[[ $stderr == *"no benchmark 'nothing' was run here"*'assay bench history'* ]]
	mkdir elsewhere && cd elsewhere
	run -1 --separate-stderr assay bench history
	[[ $stderr == *'no benchmark was run in this project yet'* ]]
	run -0 assay bench history --everywhere
	[[ $output == 'true'* ]]
}

# A history of 24 runs of which the last 12 take 20 % longer, written as the program writes it.
@test "a step in the history is told with its size and its run; one spike is not" {
	assay bench -r 10 -- true >/dev/null
	sqlite3 -version >/dev/null 2>&1 || python3 -c 'import sqlite3' || skip "no way to write a database"
	python3 - "$XDG_DATA_HOME/assay/history.db" <<-'END'
		import random, sqlite3, sys
		random.seed(2)
		db = sqlite3.connect(sys.argv[1])
		suite, machine = db.execute("SELECT suite, machine FROM run").fetchone()
		for name in "step", "spike", "elsewhere":
		    for i in range(24):
		        t = 1e-6 * random.gauss(1, 0.01) * (1.2 if name == "step" and i >= 12 else 1)
		        t *= 1.5 if name == "spike" and i == 15 else 1
		        where = "another machine" if name == "elsewhere" and i < 20 else machine
		        run = db.execute("INSERT INTO run (time_s, name, suite, machine, toolchain, revision, tool, result)"
		                         " VALUES (?, '', ?, ?, '', ?, '', '{}')",
		                         (1760000000 + 86400 * i, suite, where, "%012x" % i)).lastrowid
		        db.execute("INSERT INTO point VALUES (?, ?, '', 'time', 's', ?, ?, ?)",
		                   (run, name, t, t * 0.99, t * 1.01))
		db.commit()
	END
	run -0 assay bench history step
	[[ $output == *'step   slower since '*'(00000000000c), run #14: +'*'%'* ]]
	[ "$(grep -c '^step ' <<<"$output")" = 1 ]
	run -0 assay bench history spike
	[[ $output == *'steps  none'* ]]
	run -0 assay bench history elsewhere
	[[ $output == 'elsewhere: 4 runs'*'20 runs of other machines are left out'* ]]
	run -0 assay bench history
	[[ $output == *step*'slower since'* ]]
	run -0 assay bench history step --html page.html
	grep -q 'class="step"' page.html
}

@test "results are saved by name and compared: a trend, no verdict" {
	assay bench -r 10 --save main -- true >/dev/null
	assay bench -r 10 -- true >/dev/null
	run -0 assay bench compare main last
	[[ $output == true*'['*']'*trend*'figures of different times are a trend and no verdict'* ]]
	run -0 assay bench compare main '#2' --format json
	echo "$output" | python3 -c '
import json, sys
c = json.load(sys.stdin)["comparisons"][0]
assert c["stored"] and c["verdict"] == "undecided" and c["low"] < c["ratio"] < c["high"], c'
	run -2 --separate-stderr assay bench compare main last --fail-on slower
	[[ $stderr == *'stored results give none'* ]]
	run -1 --separate-stderr assay bench compare mian last
	[[ $stderr == *"there is no file and no saved benchmark 'mian'; saved were 'main'"* ]]
	run -2 --separate-stderr assay bench compare main
	[[ $stderr == *'assay bench compare BEFORE AFTER'* ]]
}

@test "two runs that write one history at once lose nothing" {
	for i in 1 2 3 4 5 6; do assay bench -r 3 --save "n$i" -- true >/dev/null & done
	wait
	[ "$(assay bench history true --format json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["benchmarks"][0]["runs"]))')" = 6 ]
	for i in 1 2 3 4 5 6; do assay bench show "n$i" >/dev/null; done
}

@test "a history that cannot be written stops no run, but a name asked for is an error" {
	echo >file
	XDG_DATA_HOME=$PWD/file run -0 assay bench -r 3 -- true
	XDG_DATA_HOME=$PWD/file run -1 --separate-stderr assay bench -r 3 --save x -- true
	[[ $stderr == *"cannot save 'x'"* ]]
}

@test "a changed file, another machine and changed work are named" {
	result a.json 1e-6 100
	result b.json 1.5e-6 200
	run -0 assay bench compare a.json b.json
	[[ $output == *'parse'*'-25.0 %'*'declared work changed from 100 to 200: the change is per unit of work'* ]]
	assay bench show a.json --json ours.json >/dev/null
	sed 's/"mean": 1e-06/"mean": 9e-06/' ours.json >edited.json
	run ! cmp -s ours.json edited.json
	run -0 assay bench compare edited.json b.json
	[[ $output == *'edited.json: its checksum does not fit: it was changed after it was written'* ]]
	python3 -c '
import json
d = json.load(open("a.json"))
d["machine"] = "Intel, 2 CPUs"; json.dump(d, open("a.json", "w"))
d["machine"] = "AMD, 64 CPUs"; json.dump(d, open("c.json", "w"))'
	run -0 assay bench compare a.json c.json
	[[ $output == *'of two machines, so the ratios say nothing of the code'* ]]
}

@test "what only one result has is listed, the rest compared" {
	result a.json 1e-6
	python3 -c '
import json
d = json.load(open("a.json"))
new = dict(d["benchmarks"][0], name="new")
d["benchmarks"].append(new); json.dump(d, open("b.json", "w"))'
	run -0 assay bench compare a.json b.json
	[[ $output == parse*'only in b.json: new'* ]]
	run -1 --separate-stderr assay bench compare a.json "$CORPUS/hyperfine.json"
	[[ $stderr == *'have no benchmark in common'* ]]
}

@test "results of other tools are read" {
	for f in hyperfine.json google.json gungraun2.json gungraun3.json gungraun6.json gungraun7.json libtest.txt criterion03.txt criterion08.txt; do
		run -0 assay bench show "$CORPUS/$f" --format json
		echo "$output" | python3 -c '
import json, sys
d = json.load(sys.stdin)
assert d["schema"] == "assay.bench/1" and d["benchmarks"] and all(b["name"] for b in d["benchmarks"])'
	done
	echo nonsense >x
	run -1 --separate-stderr assay bench show x
	[[ $stderr == *"'x' holds no results known here"* ]]
	head -c 300 "$CORPUS/google.json" >cut.json
	run -1 --separate-stderr assay bench show cut.json
	[[ $stderr == *"'cut.json' is no JSON: line"* ]]
}

@test "what hyperfine writes now is read" {
	command -v hyperfine >/dev/null || skip "no hyperfine"
	hyperfine -N -r 5 --export-json h.json 'sleep 0.01' >/dev/null 2>&1
	run -0 assay bench show h.json --format json
	echo "$output" | python3 -c '
import json, sys
b = json.load(sys.stdin)["benchmarks"][0]
h = json.load(open("h.json"))["results"][0]
assert all(abs(x / y - 1) < 1e-9 for x, y in zip(b["samples"], h["times"])) and len(b["samples"]) == 5
assert abs(b["plain"]["mean"] / h["mean"] - 1) < 1e-9 and b["kind"] == "command"'
}

@test "what Google Benchmark writes now is read" {
	cat >g.cc <<-'END'
		#include <benchmark/benchmark.h>
		static void sum(benchmark::State &s)
		{
			for (auto _ : s)
				for (int i = 0; i < s.range(0); i++)
					benchmark::DoNotOptimize(i);
			s.SetItemsProcessed(s.iterations() * s.range(0));
		}
		BENCHMARK(sum)->RangeMultiplier(8)->Range(8, 32768);
		BENCHMARK_MAIN();
	END
	g++ -O1 g.cc -o g -lbenchmark -lpthread 2>/dev/null || skip "no Google Benchmark"
	./g --benchmark_min_time=0.01 --benchmark_format=json >g.json 2>/dev/null
	run -0 assay bench show g.json
	[[ $output == *'sum/8 '*'elem/s'*'growth sum over n: '* ]]
}

@test "criterion's own example is read, and its baselines" {
	home=/usr/share/cargo/registry/criterion-0.3.6/book/src/user_guide/html_report
	[ -d "$home" ] || skip "no librust-criterion-dev"
	run -0 assay bench show "$home"
	[[ $output == *'Fibonacci2/Iterative/21 '*'5.1'*' ns'* ]]
	run -0 assay bench compare "$home:base" "$home"
	[[ $output == *'Fibonacci2/Recursive/20'*trend* ]]
	run -1 --separate-stderr assay bench compare "$home:nightly" "$home"
	[[ $stderr == *"has no baseline 'nightly'; there are 'base', 'new'"* ]]
	cp -r "$home" target-criterion
	mkdir -p broken/x/new && echo '{' >broken/x/new/estimates.json
	mv broken/x target-criterion/
	run -0 assay bench show target-criterion
	[[ $output == *'left out: estimates.json of '*"is damaged"* ]]
}

@test "criterion's folders are written as they are read" {
	run -0 assay bench export "$CORPUS/assay.json" --export-criterion out --save main
	[ -z "$output" ]
	run -0 assay bench show out:main --format json
	echo "$output" | python3 -c '
import json, sys
back = {b["name"]: b for b in json.load(sys.stdin)["benchmarks"]}
first = json.load(open(sys.argv[1]))["benchmarks"]
for b in first:
    if b["mean"]:
        r = back["%s (%s)" % (b["name"], b["side"])]
        assert abs(r["mean"] / b["mean"] - 1) < 1e-9 and abs(r["low"] / b["low"] - 1) < 1e-9, (b, r)' "$CORPUS/assay.json"
	run -2 --separate-stderr assay bench export "$CORPUS/assay.json" --export-criterion out --save ../x
	[[ $stderr == *"cannot be the name of a baseline"* ]]
	[ ! -e x ]
}

@test "github-action-benchmark's JSON and OpenMetrics" {
	run -0 assay bench export "$CORPUS/assay.json" --format github
	echo "$output" | python3 -c '
import json, sys
d = json.load(sys.stdin)
assert len(d) == 11 and all(set(b) >= {"name", "unit", "value"} and b["value"] > 0 for b in d), d
assert len({b["name"] for b in d}) == 11'
	run -0 assay bench export "$CORPUS/assay.json" --format openmetrics
	[ "${lines[0]}" = '# TYPE assay_bench_seconds gauge' ]
	[ "${lines[-1]}" = '# EOF' ]
	[[ $output == *'assay_bench_seconds{name="parse/small",side="head",metric="time",bound="estimate"} 1.82e-06'* ]]
	run -0 assay bench export "$CORPUS/assay.json" --export-csv -
	[[ $output == command,mean,* ]]
	run -0 assay bench export "$CORPUS/assay.json"
	echo "$output" | parses_as_json
}

@test "the page stands alone: well-formed, nothing from elsewhere, no script" {
	for f in assay.json google.json criterion08.txt; do
		run -0 assay bench export "$CORPUS/$f" --html page.html
		python3 - page.html <<-'END'
			import html.parser, re, sys
			text = open(sys.argv[1]).read()
			open_ = []
			class P(html.parser.HTMLParser):
			    def handle_startendtag(self, tag, attrs):
			        self.look(tag, attrs)
			    def handle_starttag(self, tag, attrs):
			        self.look(tag, attrs)
			        if tag != "meta":
			            open_.append(tag)
			    def handle_endtag(self, tag):
			        assert open_ and open_.pop() == tag, (tag, open_)
			    def look(self, tag, attrs):
			        assert tag not in ("script", "img", "iframe", "object", "link"), tag
			        for k, v in attrs:
			            assert not k.startswith("on") and "//" not in (v or ""), (k, v)
			        assert tag != "svg" or dict(attrs).get("aria-label")
			P().feed(text)
			assert not open_ and "default-src 'none'" in text
			assert not re.search(r'="[^"]*\b(nan|inf)\b', text)
		END
	done
	sed 's#parse/small#<script>alert(1)</script>#g' "$CORPUS/assay.json" >odd.json
	run -0 assay bench export odd.json --html -
	[[ $output != *'<script'* && $output == *'&lt;script&gt;'* ]]
}

# bheisler/criterion.rs#123: plots took 25 to 60 s
@test "the reports of 50 benchmarks with 200 runs of history take less than a second" {
	assay bench -r 3 -- true >/dev/null
	python3 - "$XDG_DATA_HOME/assay/history.db" <<-'END'
		import json, random, sqlite3, sys
		random.seed(1)
		db = sqlite3.connect(sys.argv[1])
		suite, machine = db.execute("SELECT suite, machine FROM run").fetchone()
		names = ["bench/%d" % i for i in range(50)]
		for i in range(200):
		    run = db.execute("INSERT INTO run (time_s, name, suite, machine, toolchain, revision, tool, result)"
		                     " VALUES (?, '', ?, ?, '', '', '', '{}')", (1760000000 + i, suite, machine)).lastrowid
		    for n in names:
		        db.execute("INSERT INTO point VALUES (?, ?, '', 'time', 's', ?, ?, ?)",
		                   (run, n, random.gauss(1, 0.02), 0.9, 1.1))
		db.commit()
		benches = []
		for n in names:
		    for side in "base", "head":
		        s = [random.gauss(1, 0.02) for _ in range(100)]
		        benches.append({"name": n, "side": side, "unit": "s", "metric": "time", "mean": 1, "low": 0.99,
		                        "high": 1.01, "samples": s})
		comparisons = [{"name": n, "a": "base", "b": "head", "ratio": 1.01, "low": 1, "high": 1.02, "verdict": "equal",
		                "pairs": [random.gauss(0, 0.02) for _ in range(100)]} for n in names]
		json.dump({"schema": "assay.bench/1", "benchmarks": benches, "comparisons": comparisons}, open("big.json", "w"))
	END
	TIMEFORMAT=%U
	for form in "--html page.html" "--format markdown" "--format text"; do
		spent=$({ time assay bench show big.json $form >/dev/null; } 2>&1)
		echo "$form: $spent s" >&2
		[ "$(python3 -c "print($spent < 1)")" = True ]
	done
	[ "$(grep -c '<section' page.html)" = 50 ]
}
