# SPDX-License-Identifier: MIT OR Apache-2.0
# What the command-line tests share: load lib
#
# golden NAME: compares $output with golden/NAME.txt. ASSAY_BLESS=1 bats tests/cli writes them anew.

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	ASSAY=${ASSAY:-$BATS_TEST_DIRNAME/../../build/src/cli/assay}
	ASSAY=$(realpath "$ASSAY")
	MAKE_SESSION=$(dirname "$ASSAY")/../../tests/cli/make-session
	PATH=$(dirname "$ASSAY"):$PATH
	export ASSAY XDG_CACHE_HOME=${XDG_CACHE_HOME:-$BATS_FILE_TMPDIR/cache} XDG_DATA_HOME=$BATS_TEST_TMPDIR/data NO_COLOR=1 COLUMNS=100
}

# session KIND [N]: makes KIND.assay
session() {
	"$MAKE_SESSION" "$1" "$1.assay" ${2+"$2"}
}

golden() {
	local file=$BATS_TEST_DIRNAME/golden/$1.txt
	# how well zstd packs is not ours to promise
	printf '%s\n' "$output" | sed -E 's/ +([a-z]+\.assay) \([0-9.]+ ([KM]i)?B\)/ \1 (SIZE)/' >got
	if [ "${ASSAY_BLESS:-}" = 1 ]; then
		mkdir -p "$(dirname "$file")"
		cp got "$file"
	fi
	diff -u "$file" got
}

# tries CHECK COMMAND…: runs the command until CHECK holds, shell text that sees $status and $output, three times
# at the most. For what is true with a probability: a verdict has a power below one and an error rate above
# none, and a shared machine has bad seconds. What must be so each time is asserted without it.
tries() {
	local check=$1 attempt
	shift
	for attempt in 1 2 3; do
		run "$@"
		if eval "$check"; then
			return 0
		fi
		printf 'attempt %d: %s\nstatus %d\n%s\n' "$attempt" "$*" "$status" "$output"
	done
	return 1
}

# same JSON document, by python
parses_as_json() {
	python3 -c 'import json, sys; json.load(sys.stdin)'
}

# CSV whose rows all have as many fields as the first
parses_as_csv() {
	python3 -c '
import csv, sys
rows = list(csv.reader(sys.stdin))
assert rows and len({len(r) for r in rows}) == 1, rows[:3]'
}

is_svg() {
	python3 -c '
import sys, xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
assert root.tag == "{http://www.w3.org/2000/svg}svg", root.tag
scripts = root.findall(".//{http://www.w3.org/2000/svg}script")
assert len(scripts) == 1, len(scripts)
for e in root.iter():
    for k, v in e.attrib.items():
        assert not k.startswith("on") and "://" not in v, (k, v)' "$1"
}

# Skips where the kernel lets us sample nothing.
need_recording() {
	assay record -q -o probe.assay -- true 2>probe.log || {
		grep -q "cannot run 'true'" probe.log && return 1
		skip "no right to sample here: $(head -1 probe.log)"
	}
}
