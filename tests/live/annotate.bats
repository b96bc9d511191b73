#!/usr/bin/env bats
# The hot line of a program that is known is the hot line of assay annotate.
# SPDX-License-Identifier: MIT OR Apache-2.0
load runs

# counted: three equal functions, one loop in each, `sink += i;`, inlined from workload.h
@test "the line that takes the time is found, in C source and in its instruction" {
	for engine in "${ENGINES[@]}"; do
		assay record -q --engine "$engine" -o c.assay -- "$W/counted" 1 50 30 20 >/dev/null
		assay annotate --format json spin_b c.assay >a.json
		python3 - a.json <<-'END'
			import json, sys
			d = json.load(open(sys.argv[1]))
			f, lines = d["function"], d["lines"]
			assert f["name"] == "spin_b" and d["samples"] > 500
			# the share is 0.3 (50 : 30 : 20); three half widths leave room for chance
			half = (f["total_high"] - f["total_low"]) / 2
			assert abs(f["total"] - 0.3) < 3 * half, f
			hot = max((l for l in lines if l["parent"] is not None), key=lambda l: l["self"])
			assert hot["function"] == "work" and hot["file"].endswith("workload.h"), hot
			# the loop's head and its body wait for the same word: where an interrupt lands differs by processor
			loop = [l for l in lines if l["parent"] is not None and ("sink += i" in l["text"] or "i < n" in l["text"])]
			assert hot in loop and sum(l["of_function"]["code"] for l in loop) > 0.9, loop
			root = lines[hot["parent"]]
			assert "work(n)" in lines[hot["parent"]]["text"] or root["file"].endswith("counted.c"), root
			insns = d["instructions"]
			assert all(i["text"] for i in insns), "code is missing"
			best = max((i for i in insns if "self" in i), key=lambda i: i["self"])
			assert best["line"] in [l["line"] for l in loop], (best, loop)
			assert abs(sum(i.get("self", 0) for i in insns) - f["code"]) < 1e-4
		END
		run -0 assay annotate --source-only spin_b c.assay
		[[ $output =~ █[^$'\n']*'↳ work'[^$'\n']*'workload.h:'[0-9]+ ]]
	done
}

@test "lines are those of addr2line" {
	command -v addr2line >/dev/null || skip 'needs addr2line'
	assay record -q -o c.assay -- "$W/counted" 0.5 50 30 20 >/dev/null
	assay annotate --format json spin_a c.assay >a.json
	python3 - a.json "$W/counted" <<-'END'
		import json, subprocess, sys
		d = json.load(open(sys.argv[1]))
		insns = [i for i in d["instructions"] if i["module"] == "counted"]
		out = subprocess.run(["addr2line", "-e", sys.argv[2]] + [i["address"] for i in insns],
		                     capture_output=True, text=True, check=True).stdout.split("\n")
		same = compared = 0
		for i, place in zip(insns, out):
		    path, line = place.split(" (")[0].rsplit(":", 1)
		    if not line.isdigit() or line == "0":
		        continue
		    compared += 1
		    same += i["line"] == int(line) and path.endswith(i["file"].rsplit("/", 1)[-1])
		assert compared > 5 and same == compared, (same, compared)
	END
}

@test "source and code are told to be missing when they are, and costs stand" {
	cp "$W/counted" mine
	assay record -q -o m.assay -- ./mine 0.3 50 30 20 >/dev/null
	rm mine
	run -0 assay annotate spin_a m.assay
	[[ $output == *'self '* ]]
	run -0 assay annotate --embedded-only --asm-only spin_a m.assay
	[[ $output == *█* ]]
}
