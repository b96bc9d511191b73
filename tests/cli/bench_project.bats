#!/usr/bin/env bats
# SPDX-License-Identifier: MIT OR Apache-2.0
# Suites: bench programs, two revisions of a repository, cargo's benches.
# beside others
bats_require_minimum_version 1.5.0
load lib

setup_file() {
	export XDG_CACHE_HOME=$BATS_FILE_TMPDIR/cache GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
	export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org
	export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
}

# A program of two functions, its benchmarks, a Makefile; committed on main.
project() {
	command -v gcc >/dev/null || skip 'no gcc here'
	command -v git >/dev/null || skip 'no git here'
	command -v make >/dev/null || skip 'no make here'
	local lib include
	lib=$(realpath "$(dirname "$ASSAY")/../harness/libassay-bench.a")
	include=$(realpath "$BATS_TEST_DIRNAME/../../include")
	mkdir project && cd project
	cat >work.c <<-'END'
		#include <stddef.h>
		unsigned hash(const unsigned char *p, size_t n)
		{
			unsigned h = 2166136261u;
			for (size_t i = 0; i < n; i++)
				h = (h ^ p[i]) * 16777619u;
			return h;
		}
		size_t lines(const unsigned char *p, size_t n)
		{
			size_t k = 0;
			for (size_t i = 0; i < n; i++)
				if (p[i] == '\n' || p[i] == ';')
					k++;
			return k;
		}
	END
	cat >bench.c <<-'END'
		#include <assay/bench.h>
		unsigned hash(const unsigned char *p, size_t n);
		size_t lines(const unsigned char *p, size_t n);
		static unsigned char text[4096];
		ASSAY_BENCH(hash_4k)
		{
			ASSAY_ITER(b) assay_black_box(hash(text, sizeof text));
		}
		ASSAY_BENCH(lines_4k)
		{
			for (size_t i = 0; i < sizeof text; i++)
				text[i] = (unsigned char)(i * 7);
			ASSAY_ITER(b) assay_black_box(lines(text, sizeof text));
		}
		ASSAY_BENCH_MAIN
	END
	cat >app.c <<-'END'
		#include <stdio.h>
		unsigned hash(const unsigned char *p, size_t n);
		static unsigned char t[1 << 22];
		int main(void)
		{
			return printf("%u\n", hash(t, sizeof t)) < 0;
		}
	END
	cat >Makefile <<-END
		.RECIPEPREFIX = >
		speed: bench.o work.o
		> gcc -o speed bench.o work.o $lib -lm -lpthread
		app: app.o work.o
		> gcc -o app app.o work.o
		%.o: %.c
		> gcc -O2 -I$include -c \$< -o \$@
	END
	printf '*.o\nspeed\napp\n' >.gitignore
	git init -q -b main .
	git add .
	git commit -qm one
}

slower() { # twice the work in hash
	sed -i 's/16777619u;/16777619u, h ^= h >> 15, h *= 2246822519u, h ^= h >> 13;/' work.c
}

elsewhere() { # the functions are the same, their places are not
	sed -i '1a __asm__(".text\\n.skip 48\\n");\nint unused(int a) { return a * 3 + a % 7; }' work.c
}

@test 'a bench program is a suite: list, filter, whole name' {
	project
	make -s speed
	run -0 assay bench --list --program ./speed
	[ "$output" = $'hash_4k\nlines_4k' ]
	run -0 assay bench --budget 1s -- ./speed hash
	[[ $output == hash_4k* ]]
	[[ $output != *lines_4k* ]]
	run -0 --separate-stderr assay bench --program ./speed --exact lines_4k --budget 1s --json -
	parses_as_json <<<"$output"
	grep -q '"name": "lines_4k"' <<<"$output"
	run -1 assay bench --program ./speed lnes_4k
	[[ $output == *"no benchmark matches 'lnes_4k'; did you mean 'lines_4k'?"* ]]
	run -2 assay bench --program ./speed '('
	[[ $output == *"'(' is no regular expression"* ]]
	run -0 assay bench --as-command -r 2 -- ./speed --list
	[[ $output == *'2 runs'* ]]
}

@test 'against a revision: what is slower ends with 3, and the repository is left alone' {
	project
	slower
	echo note >untracked
	git status --porcelain=v2 --branch >before
	only_hash() {
		[ "$status" = 3 ] && grep -q '^hash_4k .* slower ' <<<"$output" &&
			! grep -q '^lines_4k .* slower ' <<<"$output"
	}
	tries only_hash --separate-stderr assay bench --against main --build 'make -s speed' --program ./speed
	[[ $output == *'the checkout holds 3 files that'* ]]
	[[ $stderr == *'building main ('* && $stderr == *'building checkout ('* ]]
	echo >after
	git status --porcelain=v2 --branch | grep -v after >after
	diff before after
	[ "$(git worktree list | wc -l)" = 1 ]
	[ -z "$(git stash list)" ]
	[ ! -e speed ]
	tries '[ "$status" = 0 ] && grep -q "^hash_4k .* slower " <<<"$output"' \
		assay bench --fail-on nothing --against main --build 'make -s speed' --program ./speed hash
	git checkout -q work.c
	no_difference() {
		python3 - <<-END
			import json
			d = json.loads('''$output''')
			assert d['schema'] == 'assay.bench/1'
			assert {c['name'] for c in d['comparisons']} == {'hash_4k', 'lines_4k'}, d
			assert all(c['verdict'] in ('equal', 'undecided') for c in d['comparisons']), d
		END
	}
	tries no_difference --separate-stderr assay bench --against main --budget 2s --delta 5 \
		--build 'make -s speed' --program ./speed --json -
}

# The budget is for busy machines: it ends when the verdict stands.
@test 'what is slower is explained by two recordings' {
	need_recording
	project
	slower
	tries '[[ $status == 3 && $output == *"why hash_4k is slower: hash_4k-base.assay, hash_4k-head.assay"* ]]' \
		--separate-stderr assay bench --budget 30s --against main --build 'make -s speed' --explain \
		--program ./speed hash
	[[ $output == *'allocations   0 before, 0 after'* ]]
	grep -q '%.* hash' <<<"$output"
	run -0 assay report hash_4k-head.assay
	grep -q ' hash' <<<"$output"
	tries '[[ $status == 3 && $output == *"why app is slower: app-base.assay, app-head.assay"* ]]' \
		--separate-stderr assay bench --budget 30s --against main --build 'make -s app' --explain -- ./app
	[ -s app-base.assay ] && [ -s app-head.assay ]
	run -2 assay bench --explain -- ./app
	[[ $output == *'--explain goes with two builds'* ]]
	make -s app && cp app new
	git checkout -q work.c && make -s app
	tries '[[ $status == 0 && $output == *"slower"*"why ./new is slower: new-base.assay, new-head.assay"*hash* ]]' \
		--separate-stderr assay bench --budget 30s --explain ./app --vs ./new
	run -2 assay bench --explain --shell ./app --vs ./new
	[[ $output == *'--explain records programs, not a shell'* ]]
}

@test 'the same code elsewhere is never slower' {
	project
	elsewhere
	same='[[ $status == 0 && $output != *slower* && $output != *faster* ]]'
	tries "$same" --separate-stderr assay bench --against main --build 'make -s speed' --program ./speed
	# as programs: one object, linked with paddings
	make -s speed
	for pad in 0 16 32 48; do
		printf '.section .text.unlikely,"ax"\n.skip %d\n.section .note.GNU-stack,"",@progbits\n' \
			$pad >pad.s
		gcc -o speed.$pad pad.s bench.o work.o "$(sed -n 's/.*work.o \(.*\.a\) .*/\1/p' Makefile)" \
			-lm -lpthread 2>/dev/null
	done
	for pad in 16 32 48; do
		tries "$same" assay bench --program ./speed.0 --program ./speed.$pad --budget 1500ms
	done
}

@test 'a command of two revisions, and what is new or gone' {
	project
	slower
	tries '[[ $status == 3 && $output == *"slower "*checkout* ]]' \
		--separate-stderr assay bench --against main --build 'make -s app' -- ./app
	git checkout -q work.c
	sed -i 's/lines_4k/rows_4k/' bench.c
	run -0 --separate-stderr assay bench --against main --build 'make -s speed' --budget 2s -- ./speed
	[[ $output == *'only in main ('*'): lines_4k'* ]]
	[[ $output == *'only in checkout ('*'): rows_4k'* ]]
	sed -i 's/hash_4k/other_4k/' bench.c
	run -1 assay bench --against main --build 'make -s speed' -- ./speed
	[[ $output == *'the two sides have no benchmark in common'* ]]
}

@test 'builds that fail, revisions and programs that are not there' {
	project
	echo 'int x = ;' >>work.c
	git commit -qam broken
	git checkout -q main~ -- work.c
	run -1 assay bench --against main --build 'make -s speed' --program ./speed
	[[ $output == *'error: expected expression'* ]]
	[[ $output == *'cannot build main ('*"'make -s speed' ended with status 2"* ]]
	run -1 assay bench --against mian --build make -- ./speed
	[[ $output == *"no revision 'mian' in this repository; did you mean 'main'?"* ]]
	run -1 assay bench --against main~ --build 'make -s speed' -- ./sped
	[[ $output == *"its build made no './sped'"* ]]
	run -2 assay bench --against main
	[[ $output == *'how is it built?'* ]]
	run -2 assay bench --against main --build make
	[[ $output == *'--build makes a program; name it'* ]]
	cd /
	run -1 assay bench --against main --build make -- ./x
	[[ $output == *'is in no git repository'* ]]
}

@test 'a benchmark that fails is named and the others go on' {
	project
	cat >>bench.c <<-'END'
		#include <stdlib.h>
		ASSAY_BENCH(broken)
		{
			ASSAY_ITER(b) abort();
		}
	END
	sed -i '/^ASSAY_BENCH_MAIN/d' bench.c
	echo ASSAY_BENCH_MAIN >>bench.c
	make -s speed
	run -1 assay bench --program ./speed --budget 2s
	[[ $output == *hash_4k* && $output == *lines_4k* ]]
	[[ $output == *broken*signal* ]]
}

@test 'a hundred benchmarks within the budget, and what there is when interrupted' {
	project
	for i in $(seq 100); do
		echo "ASSAY_BENCH(b$i) { ASSAY_ITER(b) assay_black_box(hash(text, $i)); }"
	done | sed '/^ASSAY_BENCH_MAIN/{
		r /dev/stdin
		N
	}' bench.c >many.c
	grep -v '^ASSAY_BENCH_MAIN' many.c >bench.c
	echo ASSAY_BENCH_MAIN >>bench.c
	make -s speed
	within() {
		python3 - <<-END
			import json
			d = json.loads('''$output''')
			assert d['seconds'] < 8, d['seconds']
			assert len(d['benchmarks']) > 20, len(d['benchmarks'])
		END
	}
	tries within --separate-stderr assay bench --program ./speed --budget 6s --json -
	interrupted() {
		assay bench --program ./speed --budget 60s 2>err &
		sleep "$1"
		kill -INT $!
		wait $!
	}
	tries '[ "$status" = 130 ] && grep -q "^hash_4k" <<<"$output"' interrupted 3
	[[ $output == *'benchmarks were not measured: interrupted'* ]]
	# killed while it builds: nothing is left in the repository, and the next run is none the worse
	git add . && git commit -qm many
	assay bench --against main --build 'touch ../begun; sleep 6; make -s speed' -- ./speed >/dev/null 2>&1 &
	for _ in {1..100}; do
		compgen -G "$XDG_CACHE_HOME/assay/bench/*/begun" >/dev/null && break
		sleep 0.1
	done
	kill -KILL $!
	wait $! || true
	begun=$(compgen -G "$XDG_CACHE_HOME/assay/bench/*/begun")
	[ -z "$(git worktree prune --dry-run -v)" ]
	[ -z "$(git status --porcelain | grep -v -e out -e err)" ]
	run -0 assay bench --against main --build 'touch ../mine; make -s speed' --budget 1s -- ./speed '^b1$'
	[[ $output == *'b1 '* ]]
	# the build goes on, and has the folder for itself until it ends
	[ ! -e "${begun%/*}/mine" ]
	compgen -G "${begun%-0/*}-1/mine"
}

@test 'cargo: every target that cargo bench runs, by whatever harness' {
	command -v cargo >/dev/null || skip 'cargo is not installed'
	mkdir -p one/src one/benches two/src
	printf '[workspace]\nmembers = ["one", "two"]\n' >Cargo.toml
	printf '[package]\nname = "one"\nversion = "1.0.0"\nedition = "2018"\n' >one/Cargo.toml
	printf '[package]\nname = "two"\nversion = "1.0.0"\nedition = "2018"\n[lib]\nbench = false\n' \
		>two/Cargo.toml
	printf '[[bench]]\nname = "shy"\n[[bench]]\nname = "own"\nharness = false\n' >>one/Cargo.toml
	cat >one/src/lib.rs <<-'END'
		#![feature(test)]
		extern crate test;
		pub fn sum(n: u64) -> u64 {
			(0..n).fold(7, |a, x| a * 31 ^ x)
		}
		#[bench]
		fn inside(b: &mut test::Bencher) {
			b.iter(|| sum(test::black_box(1000)))
		}
		#[test]
		fn no_benchmark() {}
	END
	echo '#[test] fn t() {}' >one/benches/shy.rs
	echo 'fn main() { println!("I speak no protocol") }' >one/benches/own.rs
	echo 'pub fn f() {}' >two/src/lib.rs
	export RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=$PWD/target
	run -1 --separate-stderr assay bench --cargo --workspace --offline --budget 3s
	[[ $output == *'inside '* ]]
	[[ $output == *'libtest: each process says one value'* ]]
	[[ $output == *"bench 'shy' has no #[bench] function"*"'harness = false'"* ]]
	[[ $output == *"bench 'own'"*'in no way that is known here'* ]]
	run -0 assay bench --cargo --package one --list --offline
	[[ $output == *inside* ]]
	echo 'oops' >>one/src/lib.rs
	run -101 assay bench --cargo --package one --offline
	[[ $output == *'error'*'oops'* ]]
}

@test 'cargo: a revision and the checkout of a Rust project' {
	command -v cargo >/dev/null || skip 'cargo is not installed'
	command -v git >/dev/null || skip 'no git here'
	local lib
	lib=$(dirname "$(realpath "$(dirname "$ASSAY")/../harness/libassay-bench.a")")
	mkdir -p crate/src crate/benches && cd crate
	printf '[package]\nname = "one"\nversion = "1.0.0"\nedition = "2018"\n[lib]\nbench = false\n' \
		>Cargo.toml
	printf '[[bench]]\nname = "speed"\nharness = false\n' >>Cargo.toml
	cat >src/lib.rs <<-'END'
		pub fn mix(n: u64) -> u64 {
		    (0..n).fold(7u64, |a, x| (a ^ x).wrapping_mul(0x100000001b3))
		}
		pub fn sum(v: &[u64]) -> u64 {
		    v.iter().fold(1u64, |a, x| a.rotate_left(5) ^ x)
		}
	END
	cat >benches/speed.rs <<-'END'
		use std::ffi::{c_void, CString};
		use std::os::raw::{c_char, c_int};
		#[repr(C)]
		struct Spec {
		    size: u32,
		    threads: u32,
		    names: [*const c_char; 3],
		    rest: [u64; 14],
		}
		type Body = extern "C" fn(*mut c_void, u64) -> f64;
		#[link(name = "assay-bench", kind = "static")]
		extern "C" {
		    fn assay_bench_open(n: c_int, argv: *const *const c_char, d: *const c_void) -> *mut c_void;
		    fn assay_bench_one(run: *mut c_void, s: *const Spec, f: Body, ctx: *mut c_void) -> c_int;
		    fn assay_bench_close(run: *mut c_void) -> c_int;
		    fn assay_bench_begin() -> u64;
		    fn assay_bench_end() -> u64;
		}
		fn timed(iters: u64, f: impl Fn() -> u64) -> f64 {
		    let from = unsafe { assay_bench_begin() };
		    let mut keep = 0;
		    for _ in 0..iters {
		        keep ^= f();
		    }
		    unsafe { std::ptr::read_volatile(&keep) };
		    unsafe { (assay_bench_end() - from) as f64 }
		}
		extern "C" fn mix(_: *mut c_void, iters: u64) -> f64 {
		    let n = unsafe { std::ptr::read_volatile(&1000u64) };
		    timed(iters, || one::mix(n ^ unsafe { std::ptr::read_volatile(&0u64) }))
		}
		extern "C" fn sum(_: *mut c_void, iters: u64) -> f64 {
		    let v: Vec<u64> = (0..1000).collect();
		    timed(iters, || one::sum(&v[unsafe { std::ptr::read_volatile(&0usize) }..]))
		}
		fn main() {
		    let words: Vec<CString> = std::env::args().map(|a| CString::new(a).unwrap()).collect();
		    let mut argv: Vec<*const c_char> = words.iter().map(|w| w.as_ptr()).collect();
		    argv.push(std::ptr::null());
		    let none = std::ptr::null();
		    unsafe {
		        let run = assay_bench_open(words.len() as c_int, argv.as_ptr(), none as *const c_void);
		        for (name, f) in [("mix", mix as Body), ("sum", sum as Body)].iter() {
		            let name = CString::new(*name).unwrap();
		            let spec = Spec { size: 144, threads: 1, names: [none, name.as_ptr(), none], rest: [0; 14] };
		            assay_bench_one(run, &spec, *f, std::ptr::null_mut());
		        }
		        std::process::exit(assay_bench_close(run))
		    }
		}
	END
	printf 'target\nCargo.lock\n' >.gitignore
	export RUSTFLAGS="-L $lib -l m -l pthread"
	git init -q -b main . && git add . && git commit -qm one
	sed -i 's/0x100000001b3)/0x100000001b3).rotate_left(9).wrapping_mul(0x9e3779b97f4a7c15)/' src/lib.rs
	only_mix() {
		[ "$status" = 3 ] && grep -q '^mix .* slower ' <<<"$output" &&
			! grep -q '^sum .* slower ' <<<"$output"
	}
	tries only_mix --separate-stderr assay bench --against main --offline
	# the links were seen, so that a verdict can be taken to others
	[ "$(ls -d "$XDG_CACHE_HOME"/assay/bench/*/*.out.links/kits/* | wc -l)" -ge 2 ]
	[ ! -e target ]
	run -0 --separate-stderr assay bench --cargo --offline --budget 1s sum
	[[ $output == 'sum '* ]]
}

@test 'the self-test: the same is the same, and what could be seen' {
	command -v gzip >/dev/null || skip 'no gzip here'
	document() {
		python3 - <<-END
			import json
			d = json.loads('''$output''')
			assert d['schema'] == 'assay.self-test/1' and not d['loaded']
			for kind in ('functions', 'commands'):
			    k = d[kind]
			    assert k['comparisons'] == 2 and k['pair_seconds'] > 0 and k['standard_error'] > 0, k
			    seen = [v['difference'] for v in k['visible'] if v['difference'] is not None]
			    assert seen and seen == sorted(seen, reverse=True), k
			assert d['passed']
		END
	}
	tries '[ "$status" = 0 ] && document' \
		--separate-stderr assay bench --self-test --count 4 --format json
	assay bench --self-test --loaded --count 100 >out 2>err &
	pid=$!
	sleep 1.5
	cpus=$(nproc)
	[ "$(pgrep -cP $pid)" -ge "$cpus" ]
	kill -INT $pid
	wait $pid && status=0 || status=$?
	[ "$status" = 130 ]
	[ -z "$(pgrep -P $pid)" ]
	run -2 assay bench --loaded -- true
	[[ $output == *'go with --self-test'* ]]
	run -2 assay bench --self-test ls
	[[ $output == *'takes no command'* ]]
}

@test 'a path that leads out of the repository is named' {
	command -v cargo >/dev/null || skip 'cargo is not installed'
	mkdir -p other/src repo/src
	printf '[package]\nname = "other"\nversion = "0.1.0"\n' >other/Cargo.toml
	touch other/src/lib.rs repo/src/lib.rs
	printf '[package]\nname = "one"\nversion = "0.1.0"\n[dependencies]\nother = { path = "../other" }\n[workspace]\n' >repo/Cargo.toml
	cd repo
	git init -q -b main . && git add . && git commit -qm one
	run -1 assay bench --against main --offline
	[[ $output == *"cannot build main"*"it takes 'other' from '"*"/other', outside of the repository:"*"by its whole path"* ]]
}

@test 'a full disk under --against is said, and the repository is left alone' {
	project
	mkdir "$BATS_TEST_TMPDIR/small"
	mount -t tmpfs -o size=4m small "$BATS_TEST_TMPDIR/small" 2>/dev/null || skip 'no right to mount a small file system'
	git status --porcelain=v2 --branch >before
	XDG_CACHE_HOME=$BATS_TEST_TMPDIR/small run -1 assay bench --against main \
		--build 'dd if=/dev/zero of=big bs=64k count=1000 status=none' --program ./big
	[[ $output == *'cannot build main'*"the disk is full: 0 MiB left where '$BATS_TEST_TMPDIR/small/"* ]]
	# too little for the checkout itself
	rm -rf "$BATS_TEST_TMPDIR"/small/* && head -c 3000k /dev/urandom >large && git add large && git commit -qm large
	git status --porcelain=v2 --branch >before
	XDG_CACHE_HOME=$BATS_TEST_TMPDIR/small run -1 assay bench --against main --build 'make -s speed' --program ./speed
	[[ $output == *'the disk is full: '* ]]
	git status --porcelain=v2 --branch | diff before -
	git fsck --no-progress >/dev/null
	[ "$(git worktree list | wc -l)" = 1 ]
	# with room again the same call works
	mount -o remount,size=64m "$BATS_TEST_TMPDIR/small"
	XDG_CACHE_HOME=$BATS_TEST_TMPDIR/small run -0 assay bench --against main --budget 1s --build 'make -s speed' --program ./speed hash
}

teardown() {
	! mountpoint -q "$BATS_TEST_TMPDIR/small" || umount "$BATS_TEST_TMPDIR/small"
}

@test 'cargo assay bench is assay bench --cargo' {
	command -v cargo >/dev/null || skip 'cargo is not installed'
	mkdir -p one/benches two/src one/src && touch one/src/lib.rs two/src/lib.rs
	printf '[workspace]\nmembers = ["one", "two"]\n' >Cargo.toml
	printf '[package]\nname = "two"\nversion = "0.1.0"\n[lib]\nbench = false\n' >two/Cargo.toml
	printf '[package]\nname = "one"\nversion = "0.1.0"\n[lib]\nbench = false\n[[bench]]\nname = "fixed"\nharness = false\n' >one/Cargo.toml
	# what any harness of criterion's kind prints
	cat >one/benches/fixed.rs <<-'END'
		fn main() {
			if std::env::args().any(|a| a == "--list") {
				println!("first: bench\nsecond: bench");
			} else {
				println!("test first ... bench:         100 ns/iter (+/- 1)");
				println!("test second ... bench:        200 ns/iter (+/- 1)");
			}
		}
	END
	export CARGO_NET_OFFLINE=true
	run -0 --separate-stderr cargo assay bench -p one --list
	[ "$output" = $'first\nsecond' ]
	run -0 --separate-stderr cargo assay -p one bench --list second
	[ "$output" = second ]
	run -0 --separate-stderr assay bench --cargo -p one --list
	[ "$output" = $'first\nsecond' ]
	run -2 assay bench --cargo --prepare true --list
	[[ $output == *'--prepare is for commands; a package is chosen with --package'* ]]
	run -2 cargo assay bench --no-such-option
	[[ $output == *"--no-such-option"* ]]
	run -0 cargo assay bench --help
	[[ $output == *'assay bench'* ]]
}
