#!/usr/bin/env bats
# SPDX-License-Identifier: MIT OR Apache-2.0
# Sessions of memory in report, flame and export; the figures against those of the program itself.
# beside others
bats_require_minimum_version 1.5.0
load lib

heap_session() {
	"$(dirname "$MAKE_SESSION")/make-heap-session" heap.assay "$@" >truth.json
}

# equal EXPRESSION-OF-report-r-AND-truth-t
holds() {
	python3 -c '
import json, sys
t = json.load(open("truth.json"))
r = json.load(open("report.json"))
rows = {row["name"]: row for row in r["rows"]}
assert eval(sys.argv[1]), (sys.argv[1], t, r["trust"], rows)
' "$1"
}

@test "every measure sums up to what the program did, row by row" {
	heap_session 20000
	for m in allocs bytes live peak; do
		assay report --measure $m --format json heap.assay >report.json
		key=$m
		case $m in live | peak) key=${m}_bytes ;; esac
		holds "r['measure'] == '$m' and r['amount'] == t['$key']"
		holds "all(rows[f]['self_amount'] == t[f]['$key'] for f in t if '::' in f)"
		holds "all(rows[f][k] == t[f][k] for f in t if '::' in f for k in t[f])"
		holds "sum(row['self_amount'] for row in r['rows']) == t['$key']"
		holds "rows['app::main']['total_amount'] == t['app::load']['$key'] + t['app::index']['$key']"
	done
}

@test "what has nothing of a measure is no row of its report" {
	heap_session
	run -0 assay report --measure growth heap.assay # so short a run has no line
	[[ $output == *$'\n   nothing\n'* && $output != *app::* ]]
	run -0 assay report --measure live heap.assay
	[[ $output == *app::load* ]]
}

@test "functions that only call what allocates are counted, and stand in the tree" {
	heap_session
	run -0 assay report heap.assay
	[[ $output != *app::main* && $output == *'… 2 more functions only call these (--tree)'* ]]
	run -0 assay report --tree heap.assay
	[[ $output == *app::main* && $output == *app::worker* ]]
	run -0 assay report --top 20 heap.assay
	[[ $output == *app::main* ]]
	assay report --format csv heap.assay | grep -q '^app::main,'
}

@test "each next step has a figure of the session, and is a command that runs" {
	heap_session 20000
	allocs=$(python3 -c 'import json; print(format(json.load(open("truth.json"))["allocs"], ","))')
	run -0 assay report --by realloc heap.assay
	[[ $output == *"who makes the $allocs allocations"* ]]
	for measure in peak live allocs churn; do
		assay report --measure $measure heap.assay >report
		steps=$(sed -n '/^next/,$ { s/^next//; s/^ *//; /^assay /p }' report | sed 's/ \{3,\}.*//')
		[ -n "$steps" ]
		while read -r step; do
			[[ $step != *"--measure $measure "* || $step == *--callers* || $step == *annotate* ]]
			run -0 $step
		done <<<"$steps"
	done
}

@test "a session of both: the CPU report with what memory costs, and what was counted" {
	heap_session 3000 both
	run -0 assay report heap.assay
	golden both-report
	run -0 assay report --measure alloc-time heap.assay
	golden both-alloc-time
	assay report --format json heap.assay >report.json
	holds "r['trust']['samples'] == t['cpu']['samples']"
	assay report --measure alloc-time --format json heap.assay >report.json
	holds "round(rows['app::index']['self'] * t['cpu']['samples']) == t['cpu']['app::index']"
	holds "rows['app::index']['allocs'] == t['app::index']['allocs'] and rows['app::index']['bytes'] == t['app::index']['bytes']"
	for m in allocs bytes live peak; do
		assay report --measure $m --format json heap.assay >report.json
		key=$m
		case $m in live | peak) key=${m}_bytes ;; esac
		holds "all(rows[f]['self_amount'] == t[f]['$key'] for f in t if '::' in f)"
	done
}

@test "a block that grew is of who grew it last, or of who made it" {
	heap_session 2950 both # app::load has grown what app::index made
	for grown in last first; do
		assay report --measure live --grown $grown --format json heap.assay >report.json
		holds "r['amount'] == sum(row['self_amount'] for row in r['rows']) == t['live_bytes']"
		[ $grown = first ] && holds "all(rows[f]['self_amount'] == v for f, v in t['made'].items() if f in rows)"
		holds "('app::load' in rows and rows['app::load']['self_amount'] > 0) == ('$grown' == 'last')"
	done
	holds "r['grown'] == 'first'"
	run -0 assay report --measure live --grown first heap.assay
	[[ $(tr -s ' \n' ' ' <<<"$output") == *'; what grew counts for who made it'* ]]
	holds "t['made']['app::load'] == 0 and t['app::load']['live_bytes'] > 0"
	assay export --to folded --measure live --grown first heap.assay | awk '/load/ { exit 1 }'
	assay flame --measure live --grown first -o - heap.assay | grep -q 'app::index'
	assay diff --grown first --measure live --format json heap.assay heap.assay >report.json
	holds "rows['app::index']['amount_a'] == t['made']['app::index']"
}

@test "the trust block has the counts of the whole" {
	heap_session 20000
	assay report --format json heap.assay >report.json
	holds "all(r['trust'][k] == t[k] for k in t if '::' not in k and k not in ('bytes', 'half'))"
	holds "r['trust']['dropped'] == 0 and r['trust']['unmatched_frees'] == 0"
	holds "r['trust']['truncated'] == 0 and r['measure'] == 'peak'"
	holds "r['trust']['processes'][0]['pid'] == 100"
	holds "r['trust']['layers'][0]['events'] == r['trust']['events']"
}

@test "plumbing is folded to the program's function, unless asked for" {
	heap_session
	assay report --format json heap.assay >report.json
	holds "set(rows) == {'app::main', 'app::worker', 'app::load', 'app::index', 'app::parse'}"
	assay report --no-fold --format json heap.assay >report.json
	holds "'alloc::raw_vec::finish_grow' in rows and '__rustc::__rust_alloc' in rows"
	holds "rows['app::load']['self_amount'] == 0"
}

@test "the table, the trust block and the next steps" {
	heap_session
	run -0 assay report heap.assay
	golden memory-report
	run -0 assay report --measure allocs --by thread heap.assay
	golden memory-threads
	run -0 assay report --measure live --tree heap.assay
	golden memory-tree
	assay report --format json heap.assay >report.json
	holds "[(f['allocated_by']['name'], f['freed_by']['name']) for f in r['flows']] == [('worker', 'app'), ('app', 'worker')]"
}

@test "leaks in their classes, whose they are, and what to ask when something is lost" {
	heap_session 20000 leaks
	assay report --measure leaked --format json heap.assay >report.json
	for class in lost indirect possible reachable; do
		holds "[r['leaks']['$class']['blocks'], r['leaks']['$class']['bytes']] == t['$class']"
		holds "all([s['$class']['blocks'], s['$class']['bytes']] == t['$class(' + s['stack'][i] + ')'] for s in r['leaks']['stacks'] for i in range(len(s['stack'])) if '$class(' + s['stack'][i] + ')' in t)"
	done
	holds "r['amount'] == t['lost'][1] + t['indirect'][1]"
	holds "all(rows[f]['leaked_bytes'] == t['lost(' + f + ')'][1] + t['indirect(' + f + ')'][1] for f in t if '::' in f and '(' not in f)"
	run -0 assay report --measure leaked heap.assay
	golden memory-leaks
	run -0 assay report heap.assay
	[[ $output == *'next   assay report --measure leaked heap.assay '*'nothing points to it'* ]]
	heap_session 20000
	run -0 assay report heap.assay
	[[ $output != *'--measure leaked'* ]]
}

@test "of what resident memory consisted, and what keeps its pages" {
	heap_session 20000 leaks
	assay report --measure live --format json heap.assay >report.json
	holds "sum(p['bytes'] for p in r['resident'][0]['parts']) == t['resident']"
	run -0 assay report --measure live heap.assay
	golden memory-resident
}

@test "a flame graph is in the measure" {
	heap_session 20000
	run -0 --separate-stderr assay flame --measure live -o - heap.assay
	[[ $output == *'live · '*iB* ]]
	[[ $output == *'app::parse'* ]]
	[[ $output != *' samples'* ]]
	[[ $output != *finish_grow* ]]
}

@test "each process has its figures and a trust object of its own" {
	heap_session 20000
	assay report --format json heap.assay >report.json
	holds "[p['pid'] for p in r['processes']] == [100] and r['processes'][0]['name'] == 'app'"
	holds "all(r['processes'][0]['trust'][k] == r['trust'][k] for k in ('events', 'dropped', 'allocs', 'frees', 'unmatched_frees', 'peak_bytes', 'live_bytes', 'complete', 'layers'))"
	holds "all(k in row for row in r['rows'] for k in ('allocs', 'bytes', 'live_bytes', 'peak_bytes', 'leaked_bytes'))"
}

@test "a mark: what was live then, and what has come since" {
	heap_session 20000
	assay report --at half --format json heap.assay >report.json
	holds "r['measure'] == 'live' and r['mark'] == 'half' and r['amount'] == t['half']['live_bytes']"
	holds "all(rows[f]['self_amount'] == v for f, v in t['half'].items() if '::' in f)"
	assay diff --marks half.. --format json heap.assay >report.json
	holds "r['amount_a'] == t['half']['live_bytes'] and r['amount_b'] == t['live_bytes']"
	holds "all(rows[f]['amount_delta'] == t[f]['live_bytes'] - v for f, v in t['half'].items() if '::' in f)"
	assay diff --marks ..half --format json heap.assay >report.json
	holds "r['amount_a'] == 0 and r['amount_b'] == t['half']['live_bytes']"
	run -0 assay diff --marks half.. heap.assay
	golden memory-marks
	run -1 assay report --at nowhere heap.assay
	[[ $output == *"no mark 'nowhere'"*'there are half'* ]]
	run -2 assay report --at half --measure peak heap.assay
}

@test "two sessions of memory are compared by what they have" {
	heap_session 20000
	cp truth.json first.json
	mv heap.assay first.assay
	heap_session 30000
	for m in allocs peak; do
		assay diff --measure $m --format json first.assay heap.assay >report.json
		key=allocs
		[ $m = peak ] && key=peak_bytes
		holds "r['memory'] == '$m' and r['amount_b'] == t['$key']"
		holds "r['amount_a'] == json.load(open('first.json'))['$key']"
		holds "all(rows[f]['amount_b'] == t[f]['$key'] for f in t if '::' in f and f in rows)"
	done
	run -0 assay diff --measure allocs first.assay heap.assay
	[[ $output == *'counted, not sampled'* && $output == *app::parse* ]]
	run -0 assay diff heap.assay heap.assay
	[[ $output == *'the same on both sides'* && $output != *app::parse* ]]
	session story
	run -2 assay diff story.assay heap.assay
	[[ $output == *'one is a session of time'* ]]
}

@test "the calls of two sessions as one tree: amounts add up, the branches that changed" {
	heap_session 20000
	cp truth.json first.json
	mv heap.assay first.assay
	heap_session 30000
	for m in allocs bytes peak; do
		assay diff --tree --measure $m --format json first.assay heap.assay >report.json
		holds "r['shape'] == 'tree' and r['memory'] == '$m'"
		# what stands on threads' first functions is all there is
		holds "sum(row['amount_a'] for row in r['rows'] if row['depth'] == 1) == r['amount_a']"
		holds "sum(row['amount_b'] for row in r['rows'] if row['depth'] == 1) == r['amount_b']"
		holds "all(r['rows'][row['parent']]['depth'] == row['depth'] - 1 for row in r['rows'] if row['depth'] > 1)"
		key=$m
		[ $m = peak ] && key=peak_bytes
		holds "all(rows[f]['amount_b'] == t[f]['$key'] for f in t if '::' in f)"
		holds "all(rows[f]['amount_a'] == json.load(open('first.json'))[f]['$key'] for f in t if '::' in f)"
	done
	run -0 assay diff --tree --measure allocs first.assay heap.assay
	golden memory-diff-tree
	run -0 assay diff --tree heap.assay heap.assay
	[[ $output == *'every call has the same on both sides'* ]]
	assay diff --tree --marks half.. --format json heap.assay >report.json
	holds "rows['app::parse']['amount_a'] == t['half']['app::parse']"
	run -2 assay diff --tree --by thread first.assay heap.assay
}

@test "limits of growth: exit 3 with both figures, by function and by what a budget can name" {
	heap_session 20000
	mv heap.assay first.assay
	heap_session 30000
	beyond() {
		run -3 --separate-stderr assay diff --measure allocs --fail-if "$1" first.assay heap.assay
		[[ $stderr == *"$2"* ]] || { echo "$stderr"; return 1; }
	}
	within() {
		run -0 --separate-stderr assay diff --measure allocs --fail-if "$1" first.assay heap.assay
		[ -z "$stderr" ]
	}
	beyond 'self(app::parse) > +5%' "allocs of 'app::parse' itself grew from "
	beyond 'total(app::worker) > +5%' 'with what it calls grew from '
	beyond 'self(parse) > +10' 'by more than 10'
	beyond 'allocs(in=parse) > +0' 'allocs(in=parse) grew from '
	beyond 'bytes > +1KiB' 'by more than 1KiB'
	within 'self(app::parse) > +1000%'
	within 'self(app::parse) > +1M'
	within 'bytes > +1GiB'
	within 'failed > +0'
	run -0 assay diff --fail-if 'total(main) > +0%' heap.assay first.assay # less is no growth
	run -0 --separate-stderr assay diff --fail-if 'self(sparse) > +0%' first.assay heap.assay
	[[ $stderr == *"nothing was allocated in 'sparse'"* ]]
	for wrong in 'total(parse)' 'total() > 5%' 'peak > +' 'nothing > +5%' 'peak > -5%' 'self(parse) > +5pp'; do
		run -2 assay diff --fail-if "$wrong" first.assay heap.assay
	done
	run -2 assay diff --measure allocs --fail-if 'self(parse) > +5KiB' first.assay heap.assay
	[[ $output == *"'5KiB' is no count"* ]]
}

@test "two sessions of memory in one flame graph: red is more, blue is less, grey the same" {
	heap_session 20000
	mv heap.assay first.assay
	heap_session 30000
	run -0 --separate-stderr assay flame --diff --measure allocs -o out.svg first.assay heap.assay
	is_svg out.svg
	grep -q 'allocs · before: first.assay, ' out.svg
	grep -q 'app::parse' out.svg && grep -q 'more: +' out.svg && grep -q ', after ' out.svg
	assay flame --diff -o same.svg heap.assay heap.assay
	is_svg same.svg
	grep -q 'app::parse' same.svg
	! grep -Eq ', new|, gone' same.svg
	session story
	run -2 assay flame --diff story.assay heap.assay
	[[ $output == *'one is a session of time'* ]]
	run -2 assay flame --diff --measure peak story.assay story.assay
}

@test "tables by size, life, age, type and realloc" {
	heap_session 20000
	for by in size lifetime age type realloc; do
		assay report --by $by --format json heap.assay >report.json
		holds "r['by'] == '$by' and len(r['rows']) > 0"
		assay report --by $by --format csv heap.assay | parses_as_csv
	done
	assay report --by size --format json heap.assay >report.json
	holds "sum(row['blocks'] for row in r['rows']) == t['allocs'] - r['trust']['reallocs'] and r['rows'][-1]['up_to_here'] == 1"
	assay report --by age --format json heap.assay >report.json
	holds "sum(row['blocks'] for row in r['rows']) <= t['frees']"
	assay report --by realloc --format json heap.assay >report.json
	holds "r['rows'][0]['name'] == 'app::load' and r['rows'][0]['type'] == 'Vec<T>'"
	holds "r['rows'][0]['last_max_bytes'] > 100000 and 'with_capacity' in r['rows'][0]['advice']"
	assay report --by type --format json heap.assay >report.json
	holds "{row['name']: row['amount'] for row in r['rows']}['Vec<T>'] == t['app::load']['peak_bytes']"
	assay report --by type --focus app::index --format json heap.assay >report.json
	holds "[row['name'] for row in r['rows']] == ['HashMap<T>']"
	for width in 80 200; do
		COLUMNS=$width run -0 assay report --by realloc heap.assay
		golden memory-realloc-$width
		COLUMNS=$width run -0 assay report --by lifetime heap.assay
		golden memory-lifetime-$width
	done
	run -2 assay report --by size --tree heap.assay
	session story
	run -2 assay report --by type story.assay
	[[ $output == *'sessions of memory'* ]]
}

@test "budgets: exit 3 with the figure and the bound" {
	heap_session 20000
	run -0 assay report --fail-if 'peak > 50MiB' --fail-if 'allocs(in=main) == 0' heap.assay
	run -3 --separate-stderr assay report --fail-if 'peak > 10KiB' --fail-if 'live > 1GiB' heap.assay
	[[ $stderr == 'peak is '*', more than 10.0 KiB ('*' > 10,240 bytes)' ]]
	[[ $output == *app::parse* ]]
	run -3 --separate-stderr assay report --fail-if 'allocs(in=app::parse, thread=worker) > 0' heap.assay
	[[ $stderr == 'allocs in app::parse of thread worker is '*', more than 0' ]]
	run -0 --separate-stderr assay report --fail-if 'allocs(in=sparse) > 0' heap.assay
	[[ $stderr == *'maybe its name is another'* ]]
	run -2 assay report --fail-if 'peak >> 5' heap.assay
	[[ ${lines[1]} == '       peak >> 5' && ${lines[2]} == '             ^' ]]
}

@test "what a line allocates" {
	heap_session 20000
	run -0 assay annotate app::parse heap.assay
	[[ $output == *'self '*' %, '*iB*'(peak, of '* ]]
	[[ $output != *sample* ]]
	assay annotate --measure allocs --format json app::parse heap.assay | parses_as_json
}

@test "folded stacks, pprof, dhat, heaptrack and firefox carry the amounts" {
	heap_session 20000
	assay export --to folded --measure live heap.assay >folded
	python3 -c '
import json
t = json.load(open("truth.json"))
got = {l.rsplit(" ", 1)[0].split(";")[-1]: int(l.rsplit(" ", 1)[1]) for l in open("folded")}
assert all(got.get(f, 0) == t[f]["live_bytes"] for f in t if "::" in f), (got, t)'
	assay export --to pprof --measure live -o heap.pb.gz heap.assay
	gzip -dc heap.pb.gz | python3 -c '
import sys
p = sys.stdin.buffer.read()
assert all(b"2" + bytes([len(n)]) + n in p for n in (b"alloc_objects", b"alloc_space", b"inuse_objects", b"inuse_space"))'
	assay export -o heap.dhat.json heap.assay
	assay export -o heap.heaptrack.gz heap.assay
	assay export -o heap.firefox.json heap.assay
	python3 -c '
import gzip, json
t = json.load(open("truth.json"))
d = json.load(open("heap.dhat.json"))
assert d["dhatFileVersion"] == 2 and d["ftbl"][0] == "[root]" and d["bklt"]
assert sum(p["tb"] for p in d["pps"]) == t["bytes"] and sum(p["gb"] for p in d["pps"]) == t["peak_bytes"]
assert all(0 < i < len(d["ftbl"]) for p in d["pps"] for i in p["fs"])
live = peak = calls = 0
sizes = []
for line in gzip.open("heap.heaptrack.gz", "rt"):
    w = line.split()
    if w[0] == "a": sizes.append(int(w[1], 16))
    elif w[0] == "+": live += sizes[int(w[1], 16)]; calls += 1; peak = max(peak, live)
    elif w[0] == "-": live -= sizes[int(w[1], 16)]
assert (live, peak, calls) == (t["live_bytes"], t["peak_bytes"], t["allocs"]), (live, peak, calls, t)
p = json.load(open("heap.firefox.json"))
left = {}
for th in p["threads"]:
    n = th["nativeAllocations"]
    assert all(len(n[k]) == n["length"] for k in ("time", "stack", "weight", "memoryAddress", "threadId"))
    for a, w in zip(n["memoryAddress"], n["weight"]):
        left[(th["tid"], a)] = left.get((th["tid"], a), 0) + w
assert sum(left.values()) == t["peak_bytes"]
c = p["counters"][0]["samples"]
assert sum(c["count"]) == t["live_bytes"] and c["time"] == sorted(c["time"])'
}

@test "what a session has not is said, with what it has" {
	heap_session
	run -2 assay report --measure leaked heap.assay
	[[ $output == *'leaks were not looked for'*'--measure live'* ]]
	run -2 assay report --time 1s..2s heap.assay
	[[ $output == *'have no --time'* ]]
	run ! assay export --to speedscope heap.assay
	[[ $output == *'session of memory'*'folded, pprof, firefox, dhat, heaptrack'* ]]
	session story
	run -2 assay view --diff story.assay -o x.html heap.assay
	[[ $output == *"'story.assay' and 'heap.assay': one is a session of time, the other of memory"* ]]
	run -2 assay view --marks ..half -o x.html story.assay
	[[ $output == *'--marks is for sessions of memory'* ]]
	run -2 assay view --marks ..half --diff heap.assay -o x.html heap.assay
	[[ $output == *'--marks takes one session'* ]]
	run -2 assay view --marks half -o x.html heap.assay
	[[ $output == *"'half' is no range: FROM..TO"* ]]
	run ! assay view --marks none..half -o x.html heap.assay
	[[ $output == *"no mark 'none' in this session: there are half"* && ! -e x.html ]]
	run ! assay export --to dhat story.assay
	[[ $output == *'session of time'*'speedscope'* ]]
	run -2 assay report --measure peak story.assay
	[[ $output == *"of time: it has no measure 'peak'"* ]]
	run -2 assay report --fail-if 'peak > 1' story.assay
	[[ $output == *'this session is of time'* ]]
}

@test "the page compares sessions, and marks, of memory" {
	heap_session 2000 leaks
	mv heap.assay before.assay
	heap_session 20000 leaks
	for options in "--diff before.assay --measure live" "--diff before.assay --measure leaked" "--marks half.."; do
		run -0 assay view --no-open $options -o x.html heap.assay
		python3 - "$BATS_TEST_DIRNAME" "$options" <<'END'
import json, sys
sys.path.insert(0, sys.argv[1])
import page
t = json.load(open("truth.json"))
m = page.read("x.html")[1]
memory, columns = m["meta"]["memory"], m["columns"]
assert [k["name"] for k in memory["moments"]] == ["half"], memory["moments"]
assert memory["moments"][0]["live"] == t["half"]["live_bytes"] == sum(columns["heapMarks.bytes"])
assert sum(columns["heap.leaked"]) == memory["leaks"]["sum"]["lost"]["bytes"] + memory["leaks"]["sum"]["owned"]["bytes"]
if "--marks" in sys.argv[2]:
    query = m["meta"]["query"]
    assert (query["since"], query["at"]) == (2, 0), query
else:
    base = page.read("x.html", base=True)[1]
    assert base["meta"]["memory"]["measure"] == memory["measure"] == sys.argv[2].split()[-1]
    assert "query" not in m["meta"]
END
	done
}

@test "the page holds every measure and the time line" {
	heap_session 20000
	run -0 assay view --no-open -o x.html heap.assay
	python3 - <<'END'
import base64, gzip, json, re, struct
html = open("x.html", encoding="utf-8").read()
raw = gzip.decompress(base64.b64decode(re.search(r'id="profile">([^<]*)<', html)[1]))
size = struct.unpack("<I", raw[8:12])[0]
d = json.loads(raw[12:12 + size])
t = json.load(open("truth.json"))
m = d["meta"]["memory"]
assert m["measure"] == "peak" and d["meta"]["unit"] == "bytes"
assert m["processes"][0]["peak"] == t["peak_bytes"] and m["allocs"] == t["allocs"]
assert [k["name"] for k in m["marks"]] == ["half"] and m["marks"][0]["live"] == t["half"]["live_bytes"]
assert 0.9 * t["allocs"] < sum(b["count"] for b in m["sizes"]) < t["allocs"]
assert d["columns"]["heap.peak"]["n"] == 3 and d["columns"]["heapTimes.live"]["n"] > 1
assert m["reallocs"][0]["copied"] > 0 and m["types"]
END
}

@test "a session cut anywhere is read as far as it goes" {
	heap_session
	size=$(stat -c %s heap.assay)
	for cut in 30 200 1000 $((size / 2)) $((size - 20)) $((size - 1)); do
		head -c $cut heap.assay >cut.assay
		run assay report cut.assay
		[ $status -le 2 ]
	done
}

@test "events of a session that keeps none: what was not asked for, and how to" {
	heap_session
	run -1 --separate-stderr assay export --to events heap.assay
	[[ $stderr == *"'heap.assay' holds no events"*'assay heap --events -- PROGRAM'* && -z $output ]]
	session story
	run -1 --separate-stderr assay export --to events story.assay
	[[ $stderr == *"session of time, which the format events cannot carry"* ]]
}

@test "events, a line each; those of a thread, of a time; packed; into a pipe" {
	cp "$BATS_TEST_DIRNAME/../fuzz/corpus/session/events.session" e.assay
	run -0 assay export --to events -o - e.assay
	golden export-events
	python3 -c 'import json, sys; [json.loads(line) for line in open(sys.argv[1])]' got
	run -0 assay export --to events --thread 11 -o - e.assay
	[ "$(grep -c address <<<"$output")" = 1 ]
	[[ $output == *'"tid":11'*'"size":24}'*'"events":1,'* && $output != *'"tid":10'* ]]
	run -0 assay export --to events --time 1200ns..1300ns -o - e.assay
	[ "$(grep -c '"time_ns":1200' <<<"$output")" = 2 ]
	[[ $output == *'"events":2,'* ]]
	assay export -o e.events.jsonl.gz e.assay 2>err
	grep -q '^e.events.jsonl.gz (events, ' err
	gzip -dc e.events.jsonl.gz | cmp - <(assay export --to events -o - e.assay)
	for filter in '--focus keep' '--ignore keep' '--hide keep' '--module app'; do
		# shellcheck disable=SC2086 # two words
		run -2 --separate-stderr assay export --to events $filter e.assay
		[[ $stderr == *"not ${filter% *}"* && -z $output ]]
	done
	run -1 assay export --to events --thread nobody e.assay
	run -2 --separate-stderr bash -c 'assay export --to events - <e.assay'
	[[ $stderr == *'has to be a file'* ]]
	assay heap --help | grep -q -- --events
	run bash -c 'assay export --to events e.assay 2>err | head -c 10 >/dev/null; echo ${PIPESTATUS[0]}'
	[ "$output" = 141 ] || [ "$output" = 0 ]
	[ ! -s err ]
}
