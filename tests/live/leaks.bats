#!/usr/bin/env bats
# Leak classes of real programs, against memcheck's in the same minutes; of what resident memory consists.
# SPDX-License-Identifier: MIT OR Apache-2.0

bats_require_minimum_version 1.5.0

load rights

setup() {
	ASSAY=$(realpath "${ASSAY:-$BATS_TEST_DIRNAME/../../build/src/cli/assay}")
	B=$(realpath "$(dirname "$ASSAY")/../..")
	W=$B/tests/workloads
	S=$BATS_TEST_DIRNAME/../workloads
	PATH=$B/tests/live:$PATH:/usr/sbin:/sbin
	cd "$BATS_TEST_TMPDIR" || return 1
	[ -x "$B/tests/live/hook-heap" ] || skip 'only x86-64 programs can be patched'
	local attempt
	for attempt in 1 2 3; do # a process waits for its look, but not for long
		hook-heap -o told -l -- "$W/leaks" >out 2>err || true
		! grep -q '^leaks' told || return 0
		[ ! -s err ] || no_right err
	done
	echo 'three times there was no look for leaks'
	return 1
}

# class NAME: "BLOCKS BYTES" of the last process that was looked at
class() {
	awk -F'\t' -v name="$1" '$1 == "leaks" && $3 == name { r = $4 " " $5 } END { print r }' told
}

@test "the nine cases of memcheck's manual" {
	# lost: B of 3, A of 4 and 9; indirect: B of 4 and 9; possible: B of 5, B of 6, both of 7 and 8;
	# reachable: B of 1, both of 2, A of 6
	[ "$(class lost)" = "3 $((310 + 400 + 900))" ]
	[ "$(class indirect)" = "2 $((410 + 910))" ]
	[ "$(class possible)" = "6 $((510 + 610 + 700 + 710 + 800 + 810))" ]
	[ "$(class reachable)" = "4 $((110 + 200 + 210 + 600))" ]
}

# memcheck COMMAND…: "LOST_BLOCKS LOST_BYTES …" in the order of same_classes
memcheck() {
	valgrind --leak-check=full --show-leak-kinds=none --run-libc-freeres=no \
		--run-cxx-freeres=no --num-callers=4 "$@" >valgrind.out 2>valgrind.err || true
	grep -q 'in use at exit' valgrind.err || return 1
	if grep -q 'All heap blocks were freed' valgrind.err; then
		echo '0 0 0 0 0 0 0 0'
		return
	fi
	local word
	for word in 'definitely lost' 'indirectly lost' 'possibly lost' 'still reachable'; do
		sed -n "s/.*$word: \([0-9,]*\) bytes in \([0-9,]*\) blocks.*/\2 \1/p" valgrind.err |
			tr -d ', ' | head -1
	done
}

@test "C and C++ programs: every class as memcheck has it, blocks and bytes" {
	command -v valgrind || skip 'valgrind is not there'
	programs=("$W/leaks")
	command -v g++ && g++ -O2 -o inside "$S/leaks_inside.cc" && programs+=(./inside)
	for program in "${programs[@]}"; do
		hook-heap -o told -l -- "$program"
		memcheck "$program" >want
		for name in lost indirect possible reachable; do
			class $name | tr -d ' '
		done >got
		diff want got
	done
}

@test "Rust: a lost tree has one owner, what its library keeps is reachable" {
	command -v rustc || skip 'rustc is not there'
	cat >lost.rs <<-'END'
		use std::cell::RefCell;
		use std::collections::HashMap;
		use std::rc::Rc;
		use std::sync::Arc;
		static mut TABLE: Option<HashMap<u64, Vec<u8>>> = None;
		static mut RAW: *const [u64; 9] = std::ptr::null();
		thread_local! { static KEPT: RefCell<Vec<u8>> = RefCell::new(vec![1; 321]); }
		struct Node { next: RefCell<Option<Rc<Node>>>, _fill: [u64; 5] }
		#[inline(never)]
		fn lose() {
			let trees: Vec<Vec<u8>> = (0..100).map(|i| vec![i as u8; 1000]).collect();
			std::mem::forget(trees);
			let a = Rc::new(Node { next: RefCell::new(None), _fill: [1; 5] });
			let b = Rc::new(Node { next: RefCell::new(Some(a.clone())), _fill: [2; 5] });
			*a.next.borrow_mut() = Some(b);
		}
		#[inline(never)]
		fn keep() {
			let mut t = HashMap::new();
			for i in 0..50 { t.insert(i, vec![7; 222]); }
			unsafe { TABLE = Some(t); RAW = Arc::into_raw(Arc::new([3; 9])); }
			KEPT.with(|k| k.borrow_mut()[0] = 2);
		}
		#[inline(never)]
		fn wipe() -> u64 { let a = std::hint::black_box([0u64; 2000]); a[5] }
		fn main() {
			let t = std::thread::spawn(|| keep_alive());
			t.join().unwrap();
			lose(); keep();
			std::process::exit((wipe() + wipe()) as i32);
		}
		fn keep_alive() { let v: Vec<u8> = vec![1; 100]; std::hint::black_box(&v); }
	END
	rustc --edition 2021 -O -o lost lost.rs 2>err
	hook-heap -o told -l -- ./lost
	cat told
	# the vector of vectors, and one of the circle; what they lead to
	[ "$(class lost)" = "2 $((100 * 24 + 72))" ]
	[ "$(class indirect)" = "101 $((100 * 1000 + 72))" ]
	[ "$(class possible)" = '0 0' ]
}

@test "real programs: no lost byte more or fewer than memcheck finds" {
	command -v valgrind || skip 'valgrind is not there'
	printf 'create table t(a); insert into t values(1),(2); select * from t;\n' >q.sql
	checked=0
	while read -r line; do
		read -ra words <<<"$line"
		command -v "${words[0]}" >/dev/null || continue
		hook-heap -o told -l -- "${words[@]}" >/dev/null 2>&1 </dev/null || true
		grep -q '^leaks' told || continue
		memcheck "${words[@]}" >want </dev/null || continue
		echo "$line: $(head -1 want) $(class lost)"
		[ "$(class lost | tr -d ' ')" = "$(head -1 want)" ]
		checked=$((checked + 1))
	done <<-END
		sqlite3 :memory: 'select 1'
		git --version
		sort q.sql
		grep -c t q.sql
		sed -n 1p q.sql
		tr a b
		date -u
	END
	[ $checked -ge 3 ]
}

@test "the parts of resident memory sum up to it, and are named" {
	[ -x /usr/bin/python3 ] || skip 'no /usr/bin/python3'
	hook-heap -o told -l -- /usr/bin/python3 -c 'import os; x = [str(i) for i in range(100000)]; os._exit(0)'
	awk -F'\t' '$1 == "look" { split($7, r, " ") } $1 == "part" { sum += $5 }
		END { print sum, r[2]; exit !(sum > r[2] * 0.99 && sum < r[2] * 1.01) }' told
	grep -P '^part\t\d+\t2\tmain arena\t' told
	grep -P '^part\t\d+\t6\t.*python3' told
	# its own allocator maps what small objects lie in
	[ "$(awk -F'\t' '$1 == "part" && $3 == 3 { n += $5 } END { print n }' told)" -gt 4000000 ]
}

@test "what a program says and how it ends stays as it was" {
	cat >ends.py <<-'END'
		import atexit, os, sys, threading
		atexit.register(lambda: print("at exit", flush=True))
		t = threading.Thread(target=lambda: threading.Event().wait(), daemon=True)
		t.start()
		if os.fork() == 0:
		    os._exit(5)
		print(os.waitstatus_to_exitcode(os.wait()[1]))
		sys.exit(7)
	END
	run -7 hook-heap -o told -l -- /usr/bin/python3 ends.py
	[ "$output" = $'5\nat exit' ]
	[ "$(grep -c '^look' told)" -ge 1 ]
}
