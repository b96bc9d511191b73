# SPDX-License-Identifier: MIT OR Apache-2.0
# The file that loads this sets variants: which of build-variants it needs.
#
# shown HOT CHAIN [SHARE] -- ARGS…: records ARGS with each engine and holds the stacks to what must be
# shown: enough of them complete, HOT's callers matching CHAIN, no caller that no call leads to, the
# same stacks from both engines. Before the call may be set:
#	moved=(PATH=FILE)	where the code of PATH is to be read (stack-check)
#	names=PROGRAM		a copy with symbols for names like program+0x…
#	tail_calls=1		calls need not lead to the function that is running
#	may_end=1		stacks may end early if they say so (then no frame is wrong, still)
#	least=PERCENT		so many are to be complete, not 99 (kernel) or 95 (ring): programs whose start
#				is much of their time bind names lazily, in a frame that rbx leads to

# Callers of main, of a thread's start routine, of Rust's main; names depend on libc's symbols.
ROOT='([^;]+;){1,4}main;'
THREAD='([^;]+;){1,3}'
# rustc before 1.80 ends main with a jump
RUST='([^;]+;){1,4}(main;)?([^;]+;){0,8}'

setup_file() {
	local assay=${ASSAY:-$BATS_TEST_DIRNAME/../../build/src/cli/assay}
	export ASSAY W CHECK V ENGINES=
	ASSAY=$(realpath "$assay")
	W=$(realpath "$(dirname "$ASSAY")/../../tests/workloads")
	CHECK=$(realpath "$W/../live/stack-check")
	V=$BATS_FILE_TMPDIR/variants
	export XDG_CACHE_HOME=$BATS_FILE_TMPDIR/cache NO_COLOR=1 COLUMNS=100
	PATH=$PATH:${HOME:-/root}/.cargo/bin
	for engine in ${ASSAY_ENGINES:-kernel ring}; do
		if "$ASSAY" record -q --engine "$engine" -o "$BATS_FILE_TMPDIR/probe.assay" -- true \
			2>"$BATS_FILE_TMPDIR/probe.$engine"; then
			ENGINES="$ENGINES $engine"
		fi
	done
	"$BATS_TEST_DIRNAME/build-variants" "$BATS_TEST_DIRNAME/../workloads" "$V" "$variants" >&2
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	moved=() names='' tail_calls='' may_end='' least=''
	[ -n "$ENGINES" ] || skip "cannot record here: $(head -1 "$BATS_FILE_TMPDIR"/probe.*)"
}

# variant NAME: its path in $program, or the test is skipped
variant() {
	program=$V/$1
	[ -x "$program" ] || skip "$1 cannot be built here"
}

value() {
	sed -n "s/^$1 //p" "$2"
}

# held ENGINE: the numbers of stack-check in ENGINE.check
held() {
	local n good least=${least:-99}
	[ "$1" = kernel ] || [ "$least" -le 95 ] || least=95
	"$CHECK" "$1.assay" "${moved[@]}" >"$1.check"
	n=$(value samples "$1.check")
	good=$(($(value complete "$1.check") + $(value repaired "$1.check")))
	if [ "$n" -lt 60 ] || { [ -z "$may_end" ] && [ $((good * 100)) -lt $((least * n)) ]; } ||
		[ "$(value invented "$1.check")" != 0 ] ||
		{ [ -z "$tail_calls" ] && [ "$(value wrong_links "$1.check")" != 0 ]; }; then
		echo "engine $1: of $n samples at least $least % complete, all callers real:"
		cat "$1.check"
		return 1
	fi
}

chain_held() { # ENGINE HOT CHAIN SHARE
	"$ASSAY" export --no-inline --no-kernel "$1.assay" >"$1.folded"
	"$BATS_TEST_DIRNAME/folded.py" chain "$1.folded" --hot "$2" --chain "$3" --share "$4" \
		${names:+--names names} || {
		echo "engine $1, chain $3"
		return 1
	}
}

shown() {
	local hot=$1 chain=$2 share=0.9 bad=0 done=()
	shift 2
	if [ "$1" != -- ]; then
		share=$1
		shift
	fi
	shift
	[ -z "$names" ] || nm -n -S "$names" >names
	for engine in $ENGINES; do
		"$ASSAY" record -q --engine "$engine" -o "$engine.assay" "$@" >"$engine.out" 2>&1 || {
			cat "$engine.out"
			return 1
		}
		held "$engine" || bad=1
		chain_held "$engine" "$hot" "$chain" "$share" || bad=1
		done+=("$engine.folded")
	done
	if [ ${#done[@]} = 2 ] && [ -z "$may_end" ]; then
		"$BATS_TEST_DIRNAME/folded.py" agree "${done[@]}" --hot "$hot" ${names:+--names names} ||
			bad=1
	fi
	return $bad
}
