#!/usr/bin/env bats
# Cases in which recorders of memory failed: mappings apart from blocks, ends of all kinds, signals and
# threads of the program's own, what runs after main, attaching again and again, leaks without a pointer to free.
# SPDX-License-Identifier: MIT OR Apache-2.0

bats_require_minimum_version 1.5.0
load heap

setup() {
	need_heap
}

teardown() {
	heap_clear
	if [ -s cgroup ]; then
		until_true 5 rmdir "$(cat cgroup)"
	fi
}

# ---- mappings ----

MIB=1048576

@test "memory that the program maps is told by its stack, and is none of the heap" {
	recorded mapped
	is mapped '(t["peak_bytes"], t["allocs"], t["live_bytes"])' "($((2 * MIB)), 1, $((2 * MIB)))"
	is mapped '[(x["name"], x["self_amount"]) for x in d["rows"] if x["self_amount"]]' "[('map_memory', $((100 * MIB)))]" \
		--measure mapped
	is mapped '"map_memory" in r or "map_for_a_while" in r' False --measure bytes
	# a quarter of it was used: up to the end of a huge page
	is mapped 'sum(x["bytes"] for x in d["resident"][0]["parts"] if x.get("function") == "map_memory") // 1048576 in (25, 26)' \
		True --measure live
	run -0 assay report mapped.assay
	[[ $output == *'peak 2.00 MiB'*'mapped apart from that: 100 MiB'* ]]
}

@test "addresses that are reserved, memory that may be used, and what is resident are three things" {
	recorded reserved
	is reserved '(t["peak_bytes"], t["allocs"])' '(0, 0)'
	parts='sorted((x["kind"], x["mapped_bytes"], x["bytes"]) for x in d["resident"][0]["parts"] if x.get("function") == "reserve")'
	is reserved "$parts" "[('mapping', 16384, 4096), ('reserved', $((10240 * MIB - 16384)), 0)]" --measure live
	is reserved '[(x["kind"], x["mapped_bytes"], x["bytes"]) for x in d["resident"][0]["parts"] if x.get("name", "").endswith("mapped-file")]' \
		"[('file', $((3 * MIB)), 4096)]" --measure live
	# the water-fall is one of memory that is there
	is reserved 'sum(x["bytes"] for x in d["resident"][0]["parts"]) < 64 << 20 > d["resident"][0]["rss_bytes"]' True --measure live
	is reserved '(r["reserve"]["self_amount"], r["map_file"]["self_amount"])' "($((10240 * MIB)), $((3 * MIB)))" --measure mapped
	run -0 assay report --measure mapped reserved.assay
	[[ $(tr -s ' \n' ' ' <<<"$output") == *' 4.00 KiB mapped by the program: reserve 4.00 KiB; 12.0 KiB more were never touched; 10.0 GiB more are only reserved '* ]]
}

# ---- ends ----

@test "a program that aborts or crashes: everything up to it, and by which signal it ended" {
	for how in '134 abort Aborted 6' '139 fault Segmentation 11'; do
		read -r code what text signal <<<"$how"
		# shellcheck disable=SC2086 # a number
		run -$code --separate-stderr assay heap -o "$what.assay" -- "$R" "$what"
		[[ $stderr == *"killed by signal $signal ($text"* ]]
		is "$what" '[(x["allocs"], x["live_blocks"], x["live_bytes"]) for x in d["rows"] if x["name"] == "before_the_end"]' \
			'[(2000, 1500, 750000)]'
		is "$what" '(t["dropped"], t["unmatched_frees"], t["frees"])' '(0, 0, 500)'
		run -0 assay report "$what.assay"
		[[ $output == *"killed by signal $signal ($text"* ]]
		run -$code "$R" "$what"
	done
}

# limit_memory BYTES: a control group with so much of it, $G
limit_memory() {
	[ "$(id -u)" = 0 ] || skip 'needs root'
	local root unified
	unified=$(findmnt -nr -t cgroup2 -o TARGET | head -1) || true
	for root in $unified /sys/fs/cgroup/memory; do
		G=$root/assay-test-$$-$RANDOM
		mkdir "$G" 2>/dev/null || continue
		echo "$G" >cgroup
		for file in memory.max memory.limit_in_bytes; do
			[ -e "$G/$file" ] && echo "$1" >"$G/$file" || continue
			# a swap would take what is too much
			echo 0 2>/dev/null >"$G/memory.swap.max" || echo 0 2>/dev/null >"$G/memory.swappiness" || true
			return 0
		done
		rmdir "$G"
		rm cgroup
	done
	skip 'no control group with a limit of memory can be made here'
}

@test "a program that the kernel kills for its memory: not one of its blocks is lost" {
	limit_memory $((96 * MIB))
	# shellcheck disable=SC2016 # the inner shell's
	run -137 --separate-stderr assay heap -o killed.assay -- sh -c 'echo $$ >"$1/cgroup.procs" && exec "$2" until-killed' sh "$G" "$R"
	[[ $stderr == *'killed by signal 9 (Killed)'* ]]
	so_far=$(od -An -t u8 -N 8 so-far | tr -d ' ')
	[ "$so_far" -gt 20000 ]
	# it was killed in the next one, before or after it was given out
	is killed "r['until_killed']['allocs'] - $so_far in (0, 1)" True
	is killed "r['until_killed']['live_bytes'] == 1000 * r['until_killed']['allocs'] == r['until_killed']['peak_bytes']" True
	is killed '(t["dropped"], t["truncated"])' '(0, 0)'
}

# ---- signals and threads ----

@test "a program that waits for its signals gets them all, and has no thread but its own" {
	same "$R" waits
	[ "$(sed -n '1p;2p;$p' with.1 | tr '\n' ,)" = '1 task,4 tasks,50 signals,' ]
	is same 'len(p["recipes"])' 51
	# signals from outside, while another is attached and goes
	"$R" holds >held &
	echo $! >pids
	until_true 10 [ "$(ls "/proc/$(cat pids)/task" | wc -l)" = 5 ]
	assay heap -q --duration 20 -o outside.assay -p "$(cat pids)" &
	recorder=$!
	sleep 0.5
	[ "$(ls "/proc/$(cat pids)/task" | wc -l)" = 5 ]
	kill -TERM "$(cat pids)"
	wait "$(cat pids)"
	wait $recorder
	[ "$(cat held)" = held ]
	is outside 't["allocs"] > 100 and t["dropped"] == 0' True
}

@test "what runs after main frees what is its own: globals, thread-locals, functions of atexit" {
	command -v g++ || skip 'no g++ on this machine'
	cat >after.cc <<-'END'
		#include <cstdlib>
		#include <thread>
		#include <vector>
		struct held {
			std::vector<int> v;
			explicit held(int n) : v(n, 1) {}
			~held() { v.resize(v.size() * 2, 2); std::vector<int>(10).swap(v); }
		};
		static held global(1000);
		static thread_local held mine(500);
		static void *(*volatile get)(std::size_t) = std::malloc;
		/* one that is made while the others end */
		static void at_end() { std::free(get(333)); static std::vector<int> late(77); }
		int main()
		{
			std::atexit(at_end);
			mine.v[0] = 1;
			std::thread([] { mine.v[0] = 2; }).join();
			return 0;
		}
	END
	g++ -g -O1 -o after after.cc -lpthread
	run -0 assay heap -q -o after.assay -- ./after
	is after "$LOST" 0
	# one global, two of mine
	is after '[(r[x]["allocs"], r[x]["live_blocks"]) for x in ("held::held", "held::~held", "at_end")]' '[(3, 0), (6, 0), (2, 0)]' \
		--measure allocs
	is after '[d["leaks"][x]["blocks"] for x in ("lost", "indirect", "possible", "reachable")]' '[0, 0, 0, 0]' --measure leaked
	is after 'd["leaks"]["processes"][0]["at_exit"]' True --measure leaked
	# the detour of exit is no frame of theirs
	is after '[x["name"] for x in d["rows"] if "unknown" in x["name"]]' '[]' --measure allocs
	# of the program's own nothing is there
	is after '[x["name"] for x in d["rows"] if x["module"] == "after" and x["live_blocks"]]' '[]' --measure live
	run -0 assay report --measure leaked after.assay
	[[ $output == *'nothing was lost when the program ended'* ]]
}

@test "a library that comes and goes while another thread allocates: each call is its function's" {
	printf '%s\n' '#include <stdlib.h>' 'void *plugin_makes(int n) { return malloc(n); }' \
		'void plugin_ends(void *p) { free(p); }' >plugin.c
	gcc -g -O1 -fno-builtin -fno-optimize-sibling-calls -shared -fPIC -o plugin.so plugin.c
	cat >loads.c <<-'END'
		#include <dlfcn.h>
		#include <pthread.h>
		#include <stdatomic.h>
		#include <stdlib.h>
		static atomic_int over;
		__attribute__((noinline)) static void *loading(void *path)
		{
			for (int i = 0; i < 60; i++) {
				void *lib = dlopen(path, RTLD_NOW);
				void *(*makes)(int) = (void *(*)(int))dlsym(lib, "plugin_makes");
				void (*ends)(void *) = (void (*)(void *))dlsym(lib, "plugin_ends");
				for (int k = 0; k < 10; k++)
					ends(makes(k + 1));
				dlclose(lib);
			}
			over = 1;
			return 0;
		}
		__attribute__((noinline)) static void allocates(int n)
		{
			char *volatile p = malloc(n);
			free(p);
		}
		int main(int n, char **v)
		{
			pthread_t t;
			long i = 0;
			if (pthread_create(&t, 0, loading, v[1]))
				return 1;
			while (!over || i < 30000)
				allocates(i++ % 100);
			pthread_join(t, 0);
			return i < 30000 || n != 2;
		}
	END
	gcc -g -O1 -o loads loads.c -ldl -lpthread
	run -0 timeout 120 "$ASSAY" heap -q -o loads.assay -- ./loads ./plugin.so
	is loads "$LOST" 0
	is loads '[(x["name"], x["allocs"], x["module"], x["live_blocks"]) for x in d["rows"] if "plugin" in x["name"]]' \
		"[('plugin_makes', 600, 'plugin.so', 0)]" --measure allocs
	is loads 'r["allocates"]["allocs"] >= 30000 and r["allocates"]["live_blocks"] == 0' True --measure allocs
}

@test "attached to again and again while four threads allocate: each recording is whole" {
	"$R" holds >held &
	echo $! >pids
	for i in 1 2 3 4 5 6; do
		how=()
		[ $i != 3 ] || how=(--sample 4KiB)
		[ $i != 4 ] || how=(--no-leaks)
		run -0 timeout 60 "$ASSAY" heap -q "${how[@]}" --duration 400ms -p "$(cat pids)" -o again.assay
		is again '(t["dropped"], t["truncated"], r["holding"]["allocs"] + r["holding"]["reallocs"] > 100)' '(0, 0, True)' \
			--measure allocs
		is again 'min(x[k] for x in d["rows"] for k in ("live_bytes", "peak_bytes", "live_blocks", "frees")) >= 0' True
		# 500 blocks of each thread, of 900 bytes at most
		is again 't["live_bytes"] <= t["peak_bytes"] <= 4 * 500 * 900 * 1.5' True
		run -0 assay report --measure live again.assay
	done
	grep -q 'TracerPid:.0$' "/proc/$(cat pids)/status"
	kill -TERM "$(cat pids)"
	wait "$(cat pids)"
	[ "$(cat held)" = held ]
}

# ---- leaks ----

@test "what Rust lets go of without freeing it: a circle, a box, a thread's, each by its function" {
	command -v rustc || skip 'no rustc on this machine'
	cat >kept.rs <<-'END'
		use std::cell::{Cell, RefCell};
		use std::mem::ManuallyDrop;
		use std::rc::Rc;
		struct Node { next: RefCell<Option<Rc<Node>>>, _fill: [u64; 100] }
		thread_local! {
		    static DROPPED: RefCell<Vec<u8>> = RefCell::new(Vec::new());
		    static NEVER: Cell<Option<ManuallyDrop<Vec<u8>>>> = Cell::new(None);
		}
		#[inline(never)]
		fn rc_cycle() {
		    let a = Rc::new(Node { next: RefCell::new(None), _fill: [1; 100] });
		    let b = Rc::new(Node { next: RefCell::new(Some(a.clone())), _fill: [2; 100] });
		    *a.next.borrow_mut() = Some(b);
		}
		#[inline(never)]
		fn leak_box() -> u64 { let b: &'static mut [u64; 300] = Box::leak(Box::new([3; 300])); b[7] }
		#[inline(never)]
		fn never() -> Vec<u8> { vec![4; 5000] }
		#[inline(never)]
		fn dropped() -> Vec<u8> { vec![5; 6000] }
		#[inline(never)]
		fn in_main() -> Vec<u8> { vec![6; 7000] }
		#[inline(never)]
		fn wipe() -> u64 { let a = std::hint::black_box([0u64; 4000]); a[5] }
		fn main() {
		    rc_cycle();
		    let n = leak_box();
		    std::thread::spawn(|| {
		        NEVER.with(|n| n.set(Some(ManuallyDrop::new(never()))));
		        DROPPED.with(|d| *d.borrow_mut() = dropped());
		    }).join().unwrap();
		    NEVER.with(|n| n.set(Some(ManuallyDrop::new(in_main()))));
		    std::process::exit((n - 3 + wipe() + wipe()) as i32);
		}
	END
	rustc --edition 2021 -O -g -o kept kept.rs
	run -0 assay heap -q -o kept.assay -- ./kept
	is kept "$LOST" 0
	is kept '{x["name"]: x["leaked_bytes"] for x in d["rows"] if x["leaked_bytes"]}' \
		"{'kept::never': 5000, 'kept::leak_box': 2400, 'kept::rc_cycle': 1664}" --measure leaked
	# one of the circle owns it
	is kept '[[x[k]["blocks"] for x in d["leaks"]["stacks"] if x["stack"][0] == "kept::rc_cycle" and x[k]["blocks"]] for k in ("lost", "indirect")]' \
		'[[1], [1]]' --measure leaked
	# that of main is there to the end
	is kept '[x["reachable"]["bytes"] for x in d["leaks"]["stacks"] if x["stack"][0] == "kept::in_main"]' '[7000]' --measure leaked
	is kept '"kept::dropped" in r and r["kept::dropped"]["live_bytes"]' 0 --measure allocs
}

@test "what a thread leaves: a value without a destructor; the stack of one that is detached" {
	recorded detached
	is detached '{x["name"]: x["leaked_bytes"] for x in d["rows"] if x["leaked_bytes"]}' "{'with_a_value': 7000}" --measure leaked
	# the thread is there; its stack is a mapping of who made it, and not lost
	is detached 'r["leave_a_thread"]["total_amount"] - 3 * 1048576 in range(16385)' True --measure mapped
	is detached 'r["leave_a_thread"]["total_amount"] if "leave_a_thread" in r else 0' 0 --measure leaked
}
