# SPDX-License-Identifier: MIT OR Apache-2.0
# What the tests of whole runs share: load runs
#
# ASSAY: the program under test. Its build folder holds the workloads.

bats_require_minimum_version 1.5.0

setup() {
	ASSAY=$(realpath "${ASSAY:-$BATS_TEST_DIRNAME/../../build/src/cli/assay}")
	W=$(realpath "$(dirname "$ASSAY")/../../tests/workloads")
	PATH=$(dirname "$ASSAY"):$PATH:/usr/sbin:/sbin
	export XDG_CACHE_HOME=$BATS_FILE_TMPDIR/cache NO_COLOR=1 COLUMNS=100
	cd "$BATS_TEST_TMPDIR" || return 1
	[ -e "$BATS_FILE_TMPDIR/engines" ] || find_engines
	mapfile -t ENGINES <"$BATS_FILE_TMPDIR/engines"
	[ ${#ENGINES[@]} -gt 0 ] || skip "no right to sample here: $(head -1 probe.log)"
}

# The engines that can work here, best first, into $BATS_FILE_TMPDIR/engines.
find_engines() {
	local engine
	for engine in kernel ring; do
		if assay record -q --engine "$engine" -o probe.assay -- true 2>probe.log; then
			echo "$engine"
		fi
	done >"$BATS_FILE_TMPDIR/engines"
}

need_root() {
	[ "$(id -u)" = 0 ] || skip 'needs root'
}

# as_nobody COMMAND…: with an own copy of the program and an own folder, $N, so that neither the
# owner of the build nor the mode of its folders matters.
as_nobody() {
	N=/tmp/assay-nobody.$$
	if [ ! -d "$N" ]; then
		mkdir "$N"
		cp "$ASSAY" "$W/split" "$W/denied" "$N"
		chmod 755 "$N"/*
		chown -R nobody "$N"
	fi
	(cd "$N" && env -u XDG_CACHE_HOME HOME="$N" PATH="$N:$PATH" \
		setpriv --reuid nobody --regid nogroup --clear-groups --inh-caps=-all "$@")
}

# until_true SECONDS COMMAND…
until_true() {
	local n=$(($1 * 20))
	shift
	until "$@"; do
		n=$((n - 1))
		[ $n -gt 0 ] || return 1
		sleep 0.05
	done
}

# value FILE PYTHON-EXPRESSION over the report's JSON d; n: samples by name of function
value() {
	assay report --format json --top 1000 "$1" >value.json
	python3 - value.json "$2" <<-'END'
		import json, sys
		d = json.load(open(sys.argv[1]))
		n = {row["name"]: row["total_samples"] for row in d["rows"]}
		print(eval(sys.argv[2]))
	END
}

# says TEXT…: the message in $stderr has all of it, and no line is longer than a message should be
says() {
	local text
	for text; do
		[[ $stderr == *"$text"* ]] || {
			echo "not said: $text"
			echo "but: $stderr"
			return 1
		}
	done
}
