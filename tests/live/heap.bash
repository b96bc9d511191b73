# What the tests of assay heap share: load with `load heap`, call need_heap in setup, heap_clear in teardown.
# R: the program of recipes, each known to the byte.
# SPDX-License-Identifier: MIT OR Apache-2.0

load rights

need_heap() {
	ASSAY=$(realpath "${ASSAY:-$BATS_TEST_DIRNAME/../../build/src/cli/assay}")
	B=$(realpath "$(dirname "$ASSAY")/../..")
	W=$B/tests/workloads
	R=$W/recipes
	S=$BATS_TEST_DIRNAME/../workloads
	PATH=$(dirname "$ASSAY"):$B/tests/live:$PATH:/usr/sbin:/sbin
	export XDG_CACHE_HOME=$BATS_FILE_TMPDIR/cache NO_COLOR=1 COLUMNS=100
	cd "$BATS_TEST_TMPDIR" || return 1
	[ -x "$B/tests/live/hook-count" ] || skip 'only x86-64 programs can be patched'
	assay heap -q -o probe.assay -- "$W/allocates" 1 2>err ||
		no_right err
}

heap_clear() {
	if [ -s pids ]; then
		xargs kill -9 <pids 2>/dev/null || true
	fi
	if [ -e mounted ]; then
		umount -l mounted || true
	fi
}

until_true() {
	local n=$(($1 * 20))
	shift
	until "$@"; do
		n=$((n - 1))
		[ $n -gt 0 ] || return 1
		sleep 0.05
	done
}

# value FILE EXPRESSION [OPTION…]: over the report's JSON d; t: its trust; f: events by name of function; p: processes
# by name; r: rows by name. The options are those of assay report.
value() {
	assay report --format json --top 1000 "${@:3}" "$1" >value.json
	python3 - value.json "$2" <<-'END'
		import collections, json, sys
		d = json.load(open(sys.argv[1]))
		t = d["trust"]
		f, p = collections.Counter(), collections.defaultdict(list)
		for one in t["processes"]:
		    p[one["name"]].append(one)
		    for layer in one["layers"]:
		        f[layer["function"]] += layer["events"]
		r = {row.get("name"): row for row in d["rows"]}
		print(eval(sys.argv[2]))
	END
}

LOST='t["dropped"] + t["unmatched_frees"] + t["unmatched_allocs"]'

# recorded WHAT [OPTION…]: that recipe, into WHAT.assay, with nothing lost
recorded() {
	assay heap -q -o "$1.assay" "${@:2}" -- "$R" "$1"
	is "$1" "$LOST" 0
}

# is NAME EXPRESSION VALUE [OPTION…]: of NAME.assay
is() {
	local got
	got=$(value "$1.assay" "$2" "${@:4}")
	[ "$got" = "$3" ] || {
		echo "$1: $2 is $got, not $3"
		return 1
	}
}

# same COMMAND…: output, errors and status with and without
same() {
	local a=0 b=0
	timeout -k 1 60 "$@" >bare.1 2>bare.2 </dev/null || a=$?
	timeout -k 1 60 "$ASSAY" heap -q -o same.assay -- "$@" >with.1 2>with.2 </dev/null || b=$?
	cmp bare.1 with.1
	cmp bare.2 with.2
	[ $a = $b ]
	[ "$(value same.assay 't["allocs"] > 0 and t["dropped"] == 0')" = True ]
}
