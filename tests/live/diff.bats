#!/usr/bin/env bats
# assay diff of the same program built in two ways: what is the same function stays one row.
# SPDX-License-Identifier: MIT OR Apache-2.0
load runs

# built NAME SOURCE COMMAND…: NAME/app from SOURCE by COMMAND, recorded into NAME.assay
built() {
	local name=$1 source=$2
	shift 2
	mkdir -p "$name"
	cp "$source" "$name/"
	(cd "$name" && "$@" -o app "$(basename "$source")") || return 1
	(cd "$name" && assay record -q -F 1999 -o "../$name.assay" -- ./app >/dev/null)
}

# same A B PREFIX SCRIPT: python on d (the diff), rows, own (those of PREFIX that take 2 % of either side)
same() {
	assay diff --format json ${BY:+--by "$BY"} "$1.assay" "$2.assay" >d.json
	python3 - d.json "$3" "$4" <<-'END'
	import json, sys, textwrap
	d = json.load(open(sys.argv[1]))
	rows = d['rows']
	own = {r['name']: r for r in rows if sys.argv[2] in r['full_name'] and max(r['share_a'], r['share_b']) > 0.02}
	assert own, rows[:5]
	alone = {n: r for n, r in own.items() if r['only']}
	assert not alone, alone
	exec(textwrap.dedent(sys.argv[3]))
	END
}

rust_source() {
	cat >main.rs <<-'END'
	pub struct Acc<T> { pub v: Vec<T> }
	pub trait Step { fn step(&mut self, x: u64) -> u64; }
	impl Step for Acc<u64> {
	    #[inline(never)]
	    fn step(&mut self, x: u64) -> u64 {
	        let n = self.v.len() as u64;
	        let mut s = x;
	        for i in 0..6000u64 { s = s.wrapping_mul(6364136223846793005) + (i ^ n) % 3; }
	        self.v[(s % n) as usize] = s;
	        s
	    }
	}
	impl<T: Copy + Into<u64>> Acc<T> {
	    #[inline(never)]
	    pub fn total(&self) -> u64 {
	        let mut s = 0u64;
	        for _ in 0..12 { for x in &self.v { s = s.rotate_left(5) ^ (*x).into(); } }
	        s
	    }
	}
	#[inline(never)]
	fn digit(x: u64) -> u64 {
	    let mut s = x;
	    for i in 0..3000u64 { s = (s ^ (s >> 7)).wrapping_mul(31).wrapping_add(i); }
	    s
	}
	#[inline(never)]
	pub fn parse<T: Into<u64>>(x: T) -> u64 {
	    let mut s: u64 = x.into();
	    for k in 0..3 { s ^= digit(s.wrapping_add(k)); }
	    s
	}
	#[inline(never)]
	pub fn apply<F: FnMut(u64) -> u64>(mut f: F, n: u64) -> u64 {
	    let mut s = 0;
	    for i in 0..n { s ^= f(i); }
	    s
	}
	fn main() {
	    let mut a = Acc { v: vec![1u64; 1000] };
	    let mut out = 0u64;
	    for i in 0..6000u64 {
	        out ^= a.step(i) ^ a.total() ^ parse::<u32>(i as u32);
	        out ^= apply(|x| {
	            let mut s = x ^ i;
	            for k in 0..200u64 { s = s.wrapping_mul(0x9E3779B97F4A7C15) ^ (s >> 29) ^ k; }
	            s
	        }, 20);
	    }
	    println!("{out}");
	}
	END
}

rust() {
	local name=$1
	shift
	built "$name" "${SOURCE:-main.rs}" rustc --crate-name app -O "$@"
}

@test "Rust: another build, moved by ten lines, under another mangling is the same program" {
	command -v rustc >/dev/null || skip 'no rustc'
	rust_source
	rust first -g -C metadata=one
	mkdir moved
	{ for i in 1 2 3 4 5 6 7 8 9 10; do echo "// line $i"; done; cat main.rs; } >moved/main.rs
	SOURCE=moved/main.rs rust second -g -C metadata=two
	same first second app:: 'assert not d["inlinings"], d'
	BY=line same first second app:: ''
	rust v0 -g -C symbol-mangling-version=v0
	same first v0 app:: 'assert len(own) >= 4, own'
	same v0 first app:: ''
}

@test "Rust: what one build inlines counts for its caller, with debug information and without" {
	command -v rustc >/dev/null || skip 'no rustc'
	rust_source
	sed 'N;s/#\[inline(never)\]\nfn digit/#[inline(always)]\nfn digit/;P;D' main.rs >always.rs
	grep -q 'inline(always)' always.rs
	mkdir inlined
	mv always.rs inlined/main.rs
	rust never -g
	rust bare
	SOURCE=inlined/main.rs rust always -g
	SOURCE=inlined/main.rs rust bare_always
	same never always app:: '
	i = [i for i in d["inlinings"] if i["name"] == "app::digit"]
	assert len(i) == 1 and i[0]["inlined"] == "b" and i[0]["into"] == "app::parse" and not i[0]["likely"], i
	assert "app::digit" not in own'
	same always never app:: 'assert [i["inlined"] for i in d["inlinings"] if i["name"] == "app::digit"] == ["a"]'
	for pair in 'bare bare_always' 'never bare_always'; do
		# shellcheck disable=SC2086
		same $pair app:: '
	i = [i for i in d["inlinings"] if i["name"] == "app::digit"]
	assert len(i) == 1 and i[0]["likely"] and i[0]["inlined"] == "b" and i[0]["into"] == "app::parse", i
	p = own["app::parse"]
	assert abs(p["delta"]) < 0.15 and p["share_a"] > 0.2, p'
	done
	same never bare app:: 'assert d["lacks_inlines"] == "b"'
}

@test "C: static functions that -O2 inlines and -O1 does not" {
	cat >main.c <<-'END'
	static volatile unsigned long sink;
	static unsigned long scale(unsigned long x)
	{
		for (int i = 0; i < 400; i++)
			x = x * 2654435761u + (unsigned long)i;
		return x;
	}
	static unsigned long hash(const unsigned char *p, int n)
	{
		unsigned long h = 1469598103934665603u;
		for (int r = 0; r < 12; r++)
			for (int i = 0; i < n; i++)
				h = (h ^ p[i]) * 1099511628211u;
		return h;
	}
	__attribute__((noinline)) unsigned long work(unsigned long *v, int n)
	{
		unsigned long s = 0;
		for (int i = 0; i < n; i++)
			s ^= scale(v[i]);
		s ^= hash((const unsigned char *)v, n * 8);
		for (int i = 0; i < n; i++)
			v[i] += s;
		return s;
	}
	int main(void)
	{
		unsigned long v[100] = {1};
		for (int i = 0; i < 6000; i++)
			sink += work(v, 100);
		return 0;
	}
	END
	built apart main.c cc -O1 -fno-inline
	built together main.c cc -O2
	same apart together work '
	assert {"hash", "scale"} <= {i["name"] for i in d["inlinings"] if i["likely"] and i["into"] == "work"}, d["inlinings"]
	assert own["work"]["share_a"] > 0.8 and own["work"]["share_b"] > 0.8, own'
	built known main.c cc -O2 -g
	built called main.c cc -O1 -fno-inline -g
	same called known work 'assert {"hash", "scale"} <= {i["name"] for i in d["inlinings"] if not i["likely"]}'
}
