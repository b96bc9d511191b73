#!/usr/bin/env bats
# SPDX-License-Identifier: MIT OR Apache-2.0
# Benches that Debian's crates ship, unchanged, with assay-criterion in criterion's place: they build, and their
# benchmarks have the names that criterion gave them (recorded by bench/criterion-drop-in --write-names).
# beside others
bats_require_minimum_version 1.5.0
load lib

@test "benches of Debian's crates build unchanged and have criterion's names" {
	[ -x /usr/bin/cargo ] && [ -x /usr/bin/rustc ] || skip "Debian's cargo is not installed"
	python3 -c 'import tomllib' 2>/dev/null || skip 'Python 3.11 is needed'
	local found=() crate
	for crate in httpdate; do
		compgen -G "/usr/share/cargo/registry/$crate-[0-9]*" >/dev/null && found+=("$crate")
	done
	[ ${#found[@]} -gt 0 ] || skip 'librust-httpdate-dev is not installed'
	run -0 "$BATS_TEST_DIRNAME/../../bench/criterion-drop-in" --work "$BATS_TEST_TMPDIR/work" \
		--names "$BATS_TEST_DIRNAME/golden/criterion-names.json" "${found[@]}"
	[[ "$output" == *"names as criterion has them"* ]] || skip "$output"
}
