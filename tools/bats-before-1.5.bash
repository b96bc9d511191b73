# SPDX-License-Identifier: MIT OR Apache-2.0
# What our tests use of bats 1.5 and later, for the 1.2 of Ubuntu 22.04: sourced and exported by
# ./check. A test file calls bats_require_minimum_version, which replaces `run` by one that knows
# -N, ! and --separate-stderr. BATS_FILE_TMPDIR is set by ./check, which runs each file on its own.
bats_require_minimum_version() {
	run() {
		local want='' apart='' flags=$- file
		while :; do
			case ${1-} in
			-[0-9]*) want=${1#-} ;;
			'!') want='!' ;;
			--separate-stderr) apart=1 ;;
			--keep-empty-lines) ;;
			--) shift && break ;;
			*) break ;;
			esac
			shift
		done
		set +eET
		if [ -n "$apart" ]; then
			file=$(mktemp "$BATS_FILE_TMPDIR/stderr.XXXXXX")
			output=$("$@" 2>"$file")
			status=$?
			stderr=$(cat "$file")
			rm -f "$file"
		else
			output=$("$@" 2>&1)
			status=$?
		fi
		local IFS=$'\n'
		# shellcheck disable=SC2206 # a word per line, without the empty ones, as bats does it
		lines=($output)
		# shellcheck disable=SC2034,SC2206
		stderr_lines=(${stderr-})
		set "-$flags"
		case $want in
		'') ;;
		'!') [ "$status" -ne 0 ] || { echo "status 0, a failure was expected: $*" && echo "$output" && return 1; } ;;
		*) [ "$status" -eq "$want" ] || { echo "status $status, expected $want: $*" && echo "$output" && return 1; } ;;
		esac
	}
	BATS_RUN_TMPDIR=$BATS_FILE_TMPDIR
	mkdir -p "$BATS_RUN_TMPDIR/test"
	BATS_TEST_TMPDIR=$(mktemp -d "$BATS_FILE_TMPDIR/test.XXXXXX")
}
export -f bats_require_minimum_version
