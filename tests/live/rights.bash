# SPDX-License-Identifier: MIT OR Apache-2.0
# no_right FILE: in a setup that failed with the words in FILE: a skip where they are of rights, else a failure
no_right() {
	if grep -qiE 'not permitted|permission|no right|may not' "$1"; then
		skip "no right to trace a child here: $(head -1 "$1")"
	fi
	cat "$1"
	return 1
}
