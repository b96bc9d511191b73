#!/usr/bin/env bats
# assay heap where life is hard: servers under load, other users, little room, programs that guard themselves.
# SPDX-License-Identifier: MIT OR Apache-2.0

bats_require_minimum_version 1.5.0
load heap

setup() {
	need_heap
}

teardown() {
	heap_clear
	if [ -s folder ]; then
		rm -rf "$(cat folder)"
	fi
}

# ---- servers ----

# loaded NAME PID LOAD…: attached for a second and a half while LOAD runs, which has to end well; the
# process is as it was afterwards
loaded() {
	local name=$1 pid=$2 before
	shift 2
	before=$(code_of "$pid")
	assay heap -q --duration 1.5 -p "$pid" -o "$name.assay" 2>err &
	"$@" >load.out 2>load.err
	wait $! || {
		cat err
		return 1
	}
	[ "$(value "$name.assay" 't["allocs"] > 100 and t["dropped"] == 0')" = True ]
	kill -0 "$pid"
	[ "$(code_of "$pid")" = "$before" ]
	grep -q 'TracerPid:.0$' "/proc/$pid/status"
}

# code_of PID: its mapped code, byte for byte
code_of() {
	python3 - "$1" <<-'END'
		import hashlib, sys
		h = hashlib.sha256()
		with open(f"/proc/{sys.argv[1]}/maps") as maps, open(f"/proc/{sys.argv[1]}/mem", "rb") as mem:
		    for line in maps:
		        w = line.split()
		        if "x" not in w[1] or len(w) < 6 or not w[5].startswith("/"):
		            continue
		        low, high = (int(x, 16) for x in w[0].split("-"))
		        mem.seek(low)
		        h.update(line.encode() + mem.read(high - low))
		print(h.hexdigest())
	END
}

# fetch_all URL TIMES: by four threads; every answer has to be the same
fetch_all() {
	python3 - "$@" <<-'END'
		import concurrent.futures, sys, urllib.request
		get = lambda _: urllib.request.urlopen(sys.argv[1], timeout=20).read()
		with concurrent.futures.ThreadPoolExecutor(4) as pool:
		    answers = set(pool.map(get, range(int(sys.argv[2]))))
		assert len(answers) == 1, len(answers)
	END
}

@test "redis-server under redis-benchmark: no command fails, its code is as before" {
	command -v redis-benchmark || skip 'no redis-server on this machine'
	redis-server --port 0 --unixsocket "$PWD/r.sock" --save '' --appendonly no >/dev/null &
	echo $! >pids
	until_true 10 [ -S r.sock ]
	loaded redis "$(cat pids)" redis-benchmark -s r.sock -q -n 20000 -c 8 -t set,get,lpush,lpop
	run ! grep -i error load.out load.err
	[ "$(redis-cli -s r.sock ping)" = PONG ]
	redis-cli -s r.sock shutdown nosave || true
}

@test "nginx with two workers: every answer is right, workers and master go on" {
	command -v nginx || skip 'no nginx on this machine'
	mkdir logs www
	seq 2000 >www/page
	port=$((20000 + RANDOM % 20000))
	cat >nginx.conf <<-END
		user root; daemon off; master_process on; worker_processes 2; pid $PWD/nginx.pid; error_log $PWD/logs/error;
		events { worker_connections 64; }
		http { access_log off; gzip on; gzip_types application/octet-stream; server { listen 127.0.0.1:$port; root $PWD/www; } }
	END
	chmod 755 . www
	nginx -p "$PWD" -c nginx.conf &
	echo $! >pids
	until_true 10 fetch_all "http://127.0.0.1:$port/page" 1 2>/dev/null
	worker=$(pgrep -P "$(cat pids)" | head -1)
	loaded worker "$worker" fetch_all "http://127.0.0.1:$port/page" 1500
	# the whole of it from the start, with a new set of workers in between
	kill "$(cat pids)"
	until_true 10 [ ! -e nginx.pid ]
	assay heap -q -o nginx.assay -- nginx -p "$PWD" -c nginx.conf &
	echo $! >pids
	until_true 10 fetch_all "http://127.0.0.1:$port/page" 1 2>/dev/null
	kill -HUP "$(cat nginx.pid)"
	fetch_all "http://127.0.0.1:$port/page" 300
	kill -QUIT "$(cat nginx.pid)"
	wait "$(cat pids)"
	[ "$(value nginx.assay 'len(p["nginx"]) >= 5 and t["dropped"] == 0')" = True ]
	run ! grep -iE 'alert|crit|emerg' logs/error
}

@test "a server in Python that answers meanwhile" {
	seq 3000 >page
	/usr/bin/python3 -u -m http.server --bind 127.0.0.1 0 >py.out 2>/dev/null &
	echo $! >pids
	until_true 10 grep -q 'port [1-9]' py.out
	port=$(sed -n 's/.*port \([0-9]*\).*/\1/p' py.out | head -1)
	loaded python "$(cat pids)" fetch_all "http://127.0.0.1:$port/page" 300
}

@test "Chromium draws a page under it, all its processes" {
	[ -x /usr/lib/chromium/chromium ] || skip 'no Debian Chromium on this machine'
	[ "$(free -m | awk '/^Mem/ { print $7 }')" -gt 3000 ] || skip 'not enough memory free'
	echo '<p id=p></p><script>document.getElementById("p").textContent=[...Array(500).keys()].map(i=>i*i).join()</script>' >p.html
	set -- chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$PWD/profile" --dump-dom "$PWD/p.html"
	timeout 60 "$@" >want 2>/dev/null || skip 'Chromium does not run here'
	rm -rf profile
	timeout 120 "$ASSAY" heap -q --no-leaks --no-source -o chromium.assay -- "$@" >got 2>err
	cmp want got
	[ "$(value chromium.assay 'sum(o["events"] for v in p.values() for o in v) > 100000')" = True ]
}

# ---- rights ----

as_nobody() {
	setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}

# A folder that another user can use, with a copy of assay in it
public_folder() {
	[ "$(id -u)" = 0 ] || skip 'needs root'
	command -v setpriv || skip 'no setpriv on this machine'
	d=$(mktemp -d /tmp/heap-hostile-XXXXXX)
	echo "$d" >folder
	chmod 777 "$d"
	cp "$ASSAY" "$W/allocates" "$d"
	export XDG_CACHE_HOME=$d/cache HOME=$d
}

@test "as a user without rights: one's own programs and processes, and no others'" {
	public_folder
	here=$PWD
	cd "$d"
	run -0 --separate-stderr as_nobody ./assay heap -q -o own.assay -- ./allocates 300
	[ "$output" = '300 rounds' ]
	[ "$(value own.assay 't["allocs"] >= 900 and t["dropped"] == 0')" = True ]
	setpriv --reuid 65534 --regid 65534 --clear-groups ./allocates 0 20 >/dev/null &
	echo $! >"$here/pids"
	sleep 0.3
	as_nobody ./assay heap -q --duration 300ms -p "$(cat "$here/pids")" -o att.assay
	[ "$(value att.assay 't["allocs"] > 100')" = True ]
	# resident memory and leaks as well
	[ "$(value own.assay 'd["leaks"] is not None' --measure leaked)" = True ]
	[ "$(value own.assay 'd["resident"][0]["rss_bytes"] > 0' --measure live)" = True ]
	sleep 30 &
	echo $! >>"$here/pids"
	run -125 --separate-stderr as_nobody ./assay heap --duration 300ms -p $! -o no.assay
	[[ $stderr == "assay: "*"process $!"*root* ]]
	[ ! -e no.assay ] && [ ! -e no.assay.partial ]
	cp "$(command -v id)" sid
	chmod 4755 sid
	run -125 --separate-stderr as_nobody ./assay heap -o no.assay -- ./sid
	[[ $stderr == *setuid*'sudo assay heap'* ]]
	[ ! -e no.assay ] && [ ! -e no.assay.partial ]
	cd "$here"
}

@test "a folder that cannot be written to: what to do, and nothing is run" {
	public_folder
	mkdir "$d/closed"
	chmod 555 "$d/closed"
	cd "$d/closed"
	run -125 --separate-stderr as_nobody ../assay heap -- touch "$d/ran"
	[[ $stderr == "assay: "*'.heap.assay'*'you may not write to the current folder'*'-o FILE'* ]]
	[ ! -e "$d/ran" ]
	run -0 as_nobody ../assay heap -q -o "$d/x.assay" -- ../allocates 10
	cd "$BATS_TEST_TMPDIR"
}

# in_mounts COMMANDS: in a mount namespace of their own
in_mounts() {
	[ "$(id -u)" = 0 ] || skip 'needs root'
	unshare -m true 2>/dev/null || skip 'cannot unshare mounts'
	unshare -m bash -ec "$1"
}

@test "/tmp that may not execute, /dev/shm that is full, a cache that cannot be written" {
	export ASSAY W
	run -0 in_mounts 'mount -t tmpfs none /mnt; cp "$ASSAY" "$W/allocates" /mnt
		mount -t tmpfs -o noexec,nosuid none /tmp; cd /tmp
		/mnt/assay heap -q -o x.assay -- /mnt/allocates 100 && /mnt/assay report x.assay >/dev/null'
	[[ $output == '100 rounds'* ]]
	run -0 in_mounts 'mount -t tmpfs -o size=64k none /dev/shm; head -c 100000 /dev/zero >/dev/shm/full 2>/dev/null || true
		mount -t tmpfs -o size=16m none /mnt; cd /mnt
		"$ASSAY" heap -q -o x.assay -- "$W/allocates" 100 && "$ASSAY" report x.assay >/dev/null'
	[[ $output == '100 rounds'* ]]
	XDG_CACHE_HOME=/proc/nowhere run -0 assay heap -q -o x.assay -- "$W/allocates" 100
	[ "$output" = '100 rounds' ]
}

@test "a disk that fills while it is recorded: the program ends as it does, the loss is said" {
	cat >much.c <<-'END'
		#include <stdio.h>
		#include <stdlib.h>
		static void turn(unsigned n, int d);
		__attribute__((noinline)) static void a(unsigned n, int d) { turn(n, d); __asm__ volatile(""); }
		__attribute__((noinline)) static void b(unsigned n, int d) { turn(n, d); __asm__ volatile(""); }
		static void turn(unsigned n, int d)
		{
			if (!d) { char *volatile p = malloc(n); (void)p; return; }
			(n & 1 ? a : b)(n >> 1, d - 1);
			__asm__ volatile("");
		}
		int main(void) { for (unsigned i = 0; i < 300000; i++) turn(i, 18); puts("done"); return 9; }
	END
	gcc -O1 -o much much.c
	export ASSAY
	export MUCH=$PWD/much
	run in_mounts 'mount -t tmpfs -o size=200k none /mnt; cd /mnt
		r=0; "$ASSAY" heap -o x.assay -- "$MUCH" || r=$?; echo "status $r"; exit 0'
	[[ $output == *done* && $output == *x.assay*'No space left'* && $output == *'status 125'* ]]
}

# ---- programs that guard themselves ----

@test "all descriptors closed, again and again" {
	gcc -O1 -o closes -x c - <<-'END'
		#define _GNU_SOURCE
		#include <stdio.h>
		#include <stdlib.h>
		#include <unistd.h>
		int main(void)
		{
			for (int i = 0; i < 2000; i++) {
				char *volatile p = malloc(i + 1);
				if (i % 100 == 0)
					for (int fd = 3; fd < 1024; fd++) close(fd);
				if (i % 2) free(p);
			}
			/* the next one is 3, as for everybody */
			return dup(1) == 3 ? 4 : 5;
		}
	END
	run -4 assay heap -q -o c.assay -- ./closes
	[ "$(value c.assay '(r["main"]["allocs"], r["main"]["live_blocks"], t["dropped"])' --measure allocs)" = '(2000, 1000, 0)' ]
}

@test "a filter of system calls, and forks behind it: each process with what is its own" {
	for how in prctl syscall; do
		"$W/sealed" $how 40 0 || skip 'no filter of system calls can be installed here'
		run -0 assay heap -q -o sealed.assay -- "$W/sealed" $how 2000 0 3
		[ "$output" = fine ]
		# 4,000 in each of two threads of the first; 1,000 in each of two threads of its three children, and
		# what pthread_create needs
		[ "$(value sealed.assay '(len(p["sealed"]), t["dropped"])')" = '(4, 0)' ]
		[ "$(value sealed.assay '[o["allocs"] in range(2000, 2010) for o in sorted(p["sealed"], key=lambda o: o["allocs"])[:3]]')" = '[True, True, True]' ]
		[ "$(value sealed.assay 'len({o["pid"] for o in p["sealed"]})')" = 4 ]
	done
}

# The runtime's tables are gigabytes of addresses: to read them all in would end the program.
@test "a program that locks all of its memory has no more of it than it uses" {
	cat >locks.c <<-'END'
		#include <stdio.h>
		#include <stdlib.h>
		#include <string.h>
		#include <sys/mman.h>
		#include <sys/syscall.h>
		#include <unistd.h>
		int main(int n, char **v)
		{
			long r = n > 1 ? syscall(SYS_mlockall, MCL_CURRENT | MCL_FUTURE)
				       : mlockall(MCL_CURRENT | MCL_FUTURE);
			for (int i = 0; i < 1000; i++) {
				char *p = malloc(1000);
				*(volatile char *)p = 1;
				free(p);
			}
			char line[200];
			FILE *f = fopen("/proc/self/status", "r");
			while (fgets(line, sizeof line, f))
				if (!strncmp(line, "VmRSS:", 6))
					fputs(line + 6, stdout);
			return r != 0;
		}
	END
	gcc -O1 -o locks locks.c
	./locks >bare || skip "this machine lets no program lock its memory"
	for how in '' by-number; do
		# shellcheck disable=SC2086 # none or one word
		assay heap -q -o locks.assay -- ./locks $how >kib
		[ "$(tr -dc 0-9 <kib)" -lt 65536 ]
		[ "$(value locks.assay 't["allocs"] >= 1000 and t["dropped"] == 0')" = True ]
	done
}

@test "a signal handler that allocates while the program does" {
	gcc -O1 -o handler -x c - <<-'END'
		#include <signal.h>
		#include <stdlib.h>
		#include <sys/time.h>
		static volatile sig_atomic_t busy, count;
		__attribute__((noinline)) static void on_timer(int s)
		{
			(void)s;
			if (busy) return; /* malloc itself cannot be entered twice */
			char *volatile p = malloc(111);
			free(p);
			count++;
		}
		int main(void)
		{
			struct itimerval t = {{0, 500}, {0, 500}};
			struct sigaction sa = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
			sigaction(SIGALRM, &sa, 0);
			setitimer(ITIMER_REAL, &t, 0);
			for (long i = 0; count < 400; i++) {
				busy = 1;
				char *volatile p = malloc(i % 50 + 1);
				free(p);
				busy = 0;
				for (volatile int k = 0; k < 400; k++) ;
			}
			return 0;
		}
	END
	run -0 timeout 60 "$ASSAY" heap -q -o h.assay -- ./handler
	[ "$(value h.assay 'r["on_timer"]["allocs"] >= 400 and t["dropped"] == 0 and t["live_blocks"] == 0 and t["allocs"] == t["frees"]' --measure allocs)" = True ]
}

@test "threads that load libraries, throw and allocate at a time, under assay heap" {
	command -v g++ || skip 'no g++ on this machine'
	g++ -std=c++17 -O2 -o loading "$S/loading.cpp" -ldl -lpthread
	printf '%s\n' '#include <string.h>' 'extern "C" char *plugin_work() { return strdup("worked"); }' >plugin.cc
	g++ -O2 -shared -fPIC -o plugin.so plugin.cc
	run -0 --separate-stderr timeout 60 "$ASSAY" heap -q -o loading.assay -- ./loading ./plugin.so 2
	echo "$stderr"
	[ "$output" = fine ]
	[ "$(value loading.assay 't["allocs"] > 10000 and t["dropped"] == 0')" = True ]
}

@test "programs that have ranges of addresses for themselves: sanitizers, Lisp systems" {
	cat >ranges.c <<-'END'
		#include <pthread.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <sys/mman.h>
		static void *work(void *p) { for (int i = 0; i < 1000; i++) free(malloc(i)); return p; }
		int main(void)
		{
			pthread_t t;
		#ifdef RESERVE
			/* the half below the program's own, as clisp has it, and SBCL's, Go's and LuaJIT's places */
			static const struct { unsigned long at, bytes; } range[] = {
				{0x100000000000, 0x100000000000}, {0x1000000000, 8ul << 30}, {0xc000000000, 64ul << 20}, {0x40000000, 0x3fff0000}};
			for (int i = 0; i < 4; i++)
				if (mmap((void *)range[i].at, range[i].bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) != (void *)range[i].at)
					printf("%lx is taken\n", range[i].at);
		#endif
			if (pthread_create(&t, 0, work, 0)) return 1;
			work(0);
			pthread_join(t, 0);
			puts("fine");
			return 3;
		}
	END
	checked=0
	for how in -DRESERVE -fsanitize=thread -fsanitize=address -fsanitize=undefined; do
		gcc -g -D_GNU_SOURCE -Wno-unused-result $how -o ranges ranges.c -lpthread 2>err || continue
		[ "$(./ranges 2>&1)" = fine ] || continue
		run -3 timeout 60 "$ASSAY" heap -q -o ranges.assay -- ./ranges
		[ "$output" = fine ]
		[ "$(value ranges.assay 't["allocs"] >= 2000 and t["dropped"] == 0')" = True ]
		checked=$((checked + 1))
	done
	[ $checked -ge 1 ]
	if command -v clisp; then
		run -0 assay heap -q -o clisp.assay -- clisp -q -norc -x '(+ 1 2)'
		[ "$output" = 3 ]
	fi
}
