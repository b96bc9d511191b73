#!/usr/bin/env bats
# SPDX-License-Identifier: MIT OR Apache-2.0
# beside others
bats_require_minimum_version 1.5.0
load lib

# A workspace of two packages: `one` has a program, tests and a benchmark, `two` has two programs.
workspace() {
	command -v cargo >/dev/null || skip 'cargo is not installed'
	need_recording
	mkdir -p one/src one/tests one/benches two/src/bin
	cat >Cargo.toml <<-'END'
		[workspace]
		members = ["one", "two"]
		resolver = "2"
		[profile.release]
		strip = true
	END
	printf '[package]\nname = "two"\nversion = "2.0.0"\nedition = "2021"\n' >two/Cargo.toml
	cat >one/Cargo.toml <<-'END'
		[package]
		name = "one"
		version = "1.2.3-rc.1"
		edition = "2021"
		[features]
		loud = []
		[[bench]]
		name = "speed"
		harness = false
	END
	cat >one/src/lib.rs <<-'END'
		#[inline(never)]
		pub fn spin(n: u64) -> u64 {
			(0..n).fold(1u64, |x, i| x.wrapping_mul(6364136223846793005) ^ i ^ (x >> 33))
		}
		#[test]
		fn unit() {
			assert_ne!(spin(30_000_000), 0);
		}
	END
	cat >one/src/main.rs <<-'END'
		fn main() {
			println!("{} {:?} {:?} {}", one::spin(60_000_000) != 0, std::env::args().nth(1),
				std::env::var("CARGO_PKG_VERSION_PRE"), cfg!(feature = "loud"));
			std::process::exit(3)
		}
	END
	cat >one/tests/it.rs <<-'END'
		#[test]
		fn it() {
			println!("in {:?}", std::env::current_dir());
			assert_ne!(one::spin(60_000_000), 0)
		}
	END
	cat >one/benches/speed.rs <<-'END'
		fn main() {
			println!("{} {:?}", one::spin(60_000_000) != 0, std::env::args().nth(1))
		}
	END
	echo 'fn main() {}' >two/src/main.rs
	echo 'fn main() {}' >two/src/bin/other.rs
	export CARGO_NET_OFFLINE=true
}

@test "a program is built with lines, run with its arguments, and its status handed on" {
	workspace
	cd one
	run -3 --separate-stderr cargo assay record -F 1999 -- hello
	[ "$output" = 'true Some("hello") Ok("rc.1") false' ]
	[[ $stderr == *'Finished '*'release'*'[optimized + debuginfo]'* ]]
	[ -s one.assay ]
	run -0 assay report --by line one.assay
	[[ $output == *'lib.rs:3'* ]]
}

@test "of several programs it says which to choose, before it builds anything" {
	workspace
	run -125 --separate-stderr cargo assay record
	[[ $stderr == *'-p one --bin one'*'-p two --bin '* ]]
	[[ $stderr == *'-p two --bin other'* && $stderr == *'-p two --bin two'* ]] # in cargo's order
	[ ! -e target ]
	run -125 --separate-stderr cargo assay record -p two --bin nope
	[[ $stderr == *"no bin 'nope' in two"* ]]
	run -125 --separate-stderr cargo assay record --bin a --test b
	[[ $stderr == *'at a time'* ]]
}

@test "tests and benchmarks run in their package's folder, the session stays here" {
	workspace
	run -0 cargo assay record -q --test it -- --nocapture
	[[ $output == *"in Ok(\"$PWD/one\")"* ]]
	[ -s it.assay ]
	run -0 --separate-stderr cargo assay record -q -p one --bench speed
	[ "$output" = 'true Some("--bench")' ]
	[ -s speed.assay ]
	run -0 cargo assay record -q --lib -p one -o unit.assay
	[[ $output == *'unit ... ok'* ]]
	run -0 assay report unit.assay
	[[ $output == *spin* ]]
}

@test "features and profiles reach cargo" {
	workspace
	run -3 --separate-stderr cargo assay record -q -p one --features loud
	[[ $output == *true ]]
	run -3 --separate-stderr cargo assay record -q -p one --profile dev
	[[ $stderr == *'Finished '*'dev'*'[unoptimized + debuginfo]'* ]]
}

@test "where cargo fails, its message and its status are all there is" {
	workspace
	echo 'fn main() { let x: u8 = "no"; }' >one/src/main.rs
	run -101 --separate-stderr cargo assay record -p one
	[[ $stderr == *'mismatched types'* && $stderr != *assay:* ]]
	cd "$BATS_TEST_TMPDIR" && mkdir empty && cd /
	run -101 --separate-stderr cargo assay record
	[[ $stderr == *Cargo.toml* ]]
}

@test "commands that look at a session build nothing" {
	workspace
	session story
	run -0 cargo assay report story.assay
	[[ $output == *function* ]]
	[ ! -e target ]
	run -0 cargo assay record --help
	[[ $output == 'usage: assay record'* ]]
	run -125 --separate-stderr cargo assay frobnicate
	[[ $stderr == *"unknown command 'frobnicate'"* ]]
}
