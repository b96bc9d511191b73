#!/usr/bin/env bats
# The crate assay in Rust programs: marks are read back by name, scopes and threads can be held to budgets.
# SPDX-License-Identifier: MIT OR Apache-2.0
# beside others

bats_require_minimum_version 1.5.0

load rights

setup() {
	ASSAY=$(realpath "${ASSAY:-$BATS_TEST_DIRNAME/../../build/src/cli/assay}")
	crate=$(realpath "$BATS_TEST_DIRNAME/../../rust/assay")
	PATH=$(dirname "$ASSAY"):$PATH:${HOME:-/root}/.cargo/bin
	export XDG_CACHE_HOME=$BATS_FILE_TMPDIR/cache NO_COLOR=1 COLUMNS=100
	cd "$BATS_TEST_TMPDIR" || return 1
	assay heap -q -o probe.assay -- true 2>err || no_right err
	command -v rustc || skip 'no rustc on this machine'
}

# each TEST…: with Debian's compiler and with the newest one, where there are two
each() {
	local seen='' rustc version
	for rustc in /usr/bin/rustc "$(command -v rustc)"; do
		version=$("$rustc" --version 2>/dev/null) || continue
		[[ $seen != *"$version"* ]] || continue
		seen+=$version
		echo "$version"
		"$@" "$rustc"
	done
}

# build RUSTC OPTION…: app.rs with the crate, as cargo would
build() {
	local rustc=$1
	shift
	"$rustc" --edition 2021 --crate-type rlib --crate-name assay "$@" -o libassay.rlib "$crate/src/lib.rs"
	"$rustc" --edition 2021 "$@" --extern assay=libassay.rlib -o app app.rs
}

program() {
	cat >app.rs <<-'END'
		use std::{thread, time::Duration};
		fn quiet(v: &[Vec<u8>]) -> usize { v.iter().map(|v| v.iter().filter(|b| **b == 1).count()).sum() }
		fn words(n: usize) -> usize { (0..n).map(|i| i.to_string()).collect::<Vec<String>>().len() }
		fn boxes(n: usize) -> Vec<Box<[u64; 4]>> { (0..n).map(|i| Box::new([i as u64; 4])).collect() }
		fn work() -> usize {
		    let n = assay::heap::scope!(build_boxes, boxes(50)).len();
		    thread::sleep(Duration::from_millis(100)); // the kernel is asked for a thread's name while it is there
		    n
		}
		fn main() {
		    assay::heap::mark("begin");
		    let kept: Vec<Vec<u8>> = (0..100).map(|_| vec![1u8; 1000]).collect();
		    assay::heap::mark("kept");
		    let a = assay::heap::scope!(parse, quiet(&kept));
		    let b = assay::heap::scope!(tokenize, words(1000));
		    let c = thread::Builder::new().name("worker".into()).spawn(work).unwrap().join().unwrap();
		    println!("{} {} {}", a, b, c);
		    drop(kept);
		    assay::heap::mark("dropped");
		    assay::heap::mark("dropped");
		}
	END
}

marks() {
	run -1 assay report --at 'no such mark' "$1"
	[[ $output =~ 'there are '(.*) ]]
	echo "${BASH_REMATCH[1]}"
}

amount() {
	assay report --format json "$@" | python3 -c 'import json, sys; print(json.load(sys.stdin)["amount"])'
}

marks_of() {
	build "$@"
	[ "$(./app)" = '100000 1000 50' ]
	[ "$(assay heap -q -o app.assay -- ./app)" = '100000 1000 50' ]
	[ "$(marks app.assay)" = 'begin, kept, dropped' ]
	kept=$(amount --at kept app.assay) dropped=$(amount --at dropped app.assay)
	[ $((kept - $(amount --at begin app.assay))) -ge 100000 ]
	[ $((kept - dropped)) -ge 100000 ]
	[ "$dropped" = "$(amount --at 'dropped#2' app.assay)" ]
}

@test "marks are read back by their names: release, and stripped with link-time optimisation" {
	program
	each_mark() {
		marks_of "$1" -O
		marks_of "$1" -O -Clto=fat -Ccodegen-units=1 -Cstrip=symbols
	}
	each each_mark
}

@test "budgets of a scope and of a thread hold a Rust program to what it allocates" {
	program
	budgets_of() {
		build "$1" -O
		assay heap -q -o app.assay -- ./app
		run -0 --separate-stderr assay report --fail-if 'allocs(in=parse) > 0' --fail-if 'allocs(in=tokenize) < 1000' \
			--fail-if 'allocs(in=build_boxes, thread=worker) != 51' --fail-if 'allocs(in=tokenize, thread=worker) > 0' app.assay
		run -3 --separate-stderr assay report --fail-if 'allocs(in=tokenize) > 0' app.assay
		[[ $stderr == *'allocs in tokenize is 1,0'*'more than 0'* ]]
		run -3 --separate-stderr assay heap -q --fail-if 'allocs(in=build_boxes, thread=worker) > 50' -- ./app
		[[ $stderr == *'of thread worker is 51, more than 50'* ]]
	}
	each budgets_of
}

@test "a program with marks in Rust and in C has the place once" {
	command -v cc || skip 'no C compiler'
	cat >c.c <<-'END'
		#include <assay/heap.h>
		void from_c(void) { assay_heap_mark("from c"); }
	END
	cc -O2 -I"$crate/../../include" -c -o c.o c.c
	cat >app.rs <<-'END'
		extern "C" { fn from_c(); }
		fn main() { assay::heap::mark("from rust"); unsafe { from_c() }; println!("{}", vec![1u8; 10].len()); }
	END
	both() {
		build "$1" -O -Clink-arg=c.o
		[ "$(nm app | grep -c assay_heap_mark_site)" = 1 ]
		[ "$(assay heap -q -o app.assay -- ./app)" = 10 ]
		[ "$(marks app.assay)" = 'from rust, from c' ]
	}
	each both
}

@test "types are told in both manglings: by names, or by debug information" {
	cat >app.rs <<-'END'
		use std::collections::HashMap;
		pub struct Token { pub a: u64, pub b: u32 }
		#[inline(never)] fn tokens(n: usize) -> Vec<Token> { let mut v = Vec::new(); for i in 0..n { v.push(Token { a: i as u64, b: 1 }); } v }
		#[inline(never)] fn bytes(n: usize) -> Vec<u8> { let mut v = Vec::new(); for i in 0..n { v.push(i as u8); } v }
		#[inline(never)] fn index(n: usize) -> HashMap<u32, u64> { let mut m = HashMap::new(); for i in 0..n { m.insert(i as u32, i as u64); } m }
		fn main() { println!("{} {} {}", tokens(5000).len() as u64 + tokens(1)[0].a, bytes(70000).len(), index(1000).len()); }
	END
	types_of() {
		local mangling
		for mangling in legacy v0; do
			RUSTC_BOOTSTRAP=1 "$1" --edition 2021 -O -Cdebuginfo=1 -Zunstable-options \
				-Csymbol-mangling-version=$mangling -o app app.rs
			assay heap -q -o $mangling.assay -- ./app
			assay report --by type --measure bytes --format json $mangling.assay | python3 -c '
import json, sys
for row in json.load(sys.stdin)["rows"]:
    if "<" in row["name"] and "std::" not in row["name"]:
        print(row["name"], row["amount"] if "amount" in row else row["bytes"])' | sort >$mangling.types
		done
		diff legacy.types v0.types
		grep 'Vec<app::Token> ' v0.types
		grep 'Vec<u8> ' v0.types
		grep 'HashMap<u32, u64> ' v0.types
	}
	each types_of
}

# owners MEASURE [OPTION…]: what a measure gives to load and to fill
owners() {
	assay report --format json --top 1000 --measure "$@" grown.assay |
		python3 -c 'import json, sys
d = json.load(sys.stdin)
r = {x["name"].split("::")[-1]: x["self_amount"] for x in d["rows"]}
print(r.get("load", 0) >= 8000, r.get("fill", 0) >= 60000, d["amount"] == sum(x["self_amount"] for x in d["rows"]))'
}

# The vector is made with room for 1,000 numbers in load and grown to 8,000 (or what doubling comes to) by fill;
# it is at its largest when it is freed by main. Both own it, as one asks.
made_and_grown() {
	cat >app.rs <<-'END'
		#[inline(never)]
		fn load() -> Vec<u64> { let mut v = Vec::with_capacity(1000); v.push(std::process::id() as u64); v }
		#[inline(never)]
		fn fill(v: &mut Vec<u64>) { while v.len() < 8000 { v.push(v.len() as u64) } }
		fn main() {
		    let mut v = load();
		    assay::heap::mark("loaded");
		    fill(&mut v);
		    assay::heap::mark("filled");
		    println!("{}", v.iter().sum::<u64>() > 0);
		    std::mem::forget(v);
		}
	END
	build "$1" -O -g
	assay heap -q -o grown.assay -- ./app
	for measure in peak live leaked; do
		[ "$(owners $measure)" = 'False True True' ]
		[ "$(owners $measure --grown last)" = 'False True True' ]
		[ "$(owners $measure --grown first)" = 'True False True' ]
	done
	# at a mark before it grew it is of who made it, either way
	for grown in last first; do
		assay report --at loaded --grown $grown grown.assay >at
		grep -q 'load ' at
		run -1 grep 'fill ' at
	done
	assay report --at filled grown.assay | grep -q 'fill '
	assay report --at filled --grown first grown.assay | grep -q 'load '
	# everything else that shows a session
	assay export --to folded --grown first grown.assay | awk '/load [0-9]+$/ { n += $NF } END { exit n < 64000 }'
	assay export --to folded grown.assay | awk '/fill [0-9]+$/ { n += $NF } END { exit n < 64000 }'
	assay flame --grown first -o - grown.assay >first.svg
	assay flame -o - grown.assay >last.svg
	[[ $(<first.svg) == *load* && $(<first.svg) != *app::fill* && $(<last.svg) == *app::fill* ]]
	run -0 assay diff --grown first --marks loaded.. grown.assay
	[[ $output == *load* && $output != *fill* ]]
}

@test "a vector that another function grows is of either: who made it, or who grew it" {
	each made_and_grown
}
