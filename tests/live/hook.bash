# What the tests of hooks share: load with `load hook`, call need_hooks in setup.
# SPDX-License-Identifier: MIT OR Apache-2.0

load rights

need_hooks() {
	ASSAY=$(realpath "${ASSAY:-$BATS_TEST_DIRNAME/../../build/src/cli/assay}")
	B=$(realpath "$(dirname "$ASSAY")/../..")
	W=$B/tests/workloads
	S=$BATS_TEST_DIRNAME/../workloads
	PATH=$B/tests/live:$PATH:/usr/sbin:/sbin
	cd "$BATS_TEST_TMPDIR" || return 1
	# what a search found is kept: each test begins without
	export XDG_CACHE_HOME=$PWD/cache
	[ -x "$B/tests/live/hook-heap" ] || skip 'only x86-64 programs can be patched'
	hook-heap -o told -- "$W/allocates" 1 >out 2>err || true
	[ -s told ] || no_right err
}

# sums [PROCESS]: allocs, bytes, live blocks, live bytes and peak of all processes of that name
sums() {
	awk -F'\t' -v process="${1:-}" '$1 == "process" { this = $3 }
		$1 == "sum" && (process == "" || this == process) { for (i = 2; i <= 6; i++) n[i] += $i }
		END { print n[2] + 0, n[3] + 0, n[4] + 0, n[5] + 0, n[6] + 0 }' told
}

# whole: no event was dropped, and every stack is complete
whole() {
	awk -F'\t' '$1 == "process" && ($6 != "cut 0" || $7 != "dropped 0" || $9 != "bad 0") { print; bad = 1 }
		END { exit bad }' told
}

# a_round PROGRAM…: allocations of one round, by the difference of 1,000 and none; output as without
a_round() {
	local none some
	hook-heap -o told -- "$@" 0 >/dev/null
	none=$(sums)
	"$@" 1000 >bare
	hook-heap -o told -- "$@" 1000 >with
	cmp bare with >&2 || return 1
	some=$(sums)
	# what is live at the end does not depend on the rounds
	[ "$(cut -d' ' -f3,4 <<<"$none")" = "$(cut -d' ' -f3,4 <<<"$some")" ] || {
		echo "live: $none / $some" >&2
		return 1
	}
	echo $(((${some%% *} - ${none%% *}) / 1000)).$(((${some%% *} - ${none%% *}) % 1000))
}
