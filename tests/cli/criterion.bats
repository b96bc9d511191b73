#!/usr/bin/env bats
# SPDX-License-Identifier: MIT OR Apache-2.0
# Bench programs of rust/assay-criterion: command line, folders, baselines. Built once by cargo; the tests
# then run the programs as cargo would.
bats_require_minimum_version 1.5.0
load lib

setup_file() {
	command -v cargo >/dev/null || return 0
	local repo
	repo=$(realpath "$BATS_TEST_DIRNAME/../..")
	cd "$BATS_FILE_TMPDIR" || return 1
	mkdir -p crate/src crate/benches crate/tests
	cat >crate/Cargo.toml <<-END
		[package]
		name = "subject"
		version = "0.1.0"
		edition = "2018"
		[features]
		slow = []
		[dev-dependencies]
		criterion = { package = "assay-criterion", path = "$repo/rust/assay-criterion", features = ["async_futures", "csv_output", "html_reports"] }
		assay-bench = { path = "$repo/rust/assay-bench" }
		[[bench]]
		name = "attributes"
		harness = false
		[[bench]]
		name = "functions"
		harness = false
		[[bench]]
		name = "plain"
		harness = false
		[[bench]]
		name = "odd"
		harness = false
		[[bench]]
		name = "surface"
		harness = false
		[profile.bench]
		debug = false
		[workspace]
	END
	cat >crate/src/lib.rs <<-'END'
		pub fn sum(n: u64) -> u64 {
			let times = if cfg!(feature = "slow") { 3 } else { 1 };
			(0..n * times).fold(1u64, |x, i| x.wrapping_mul(6364136223846793005) ^ i ^ (x >> 33))
		}
		#[test]
		fn unit() {}
	END
	# the shape of criterion 0.3's manual: deprecated calls too
	cat >crate/benches/plain.rs <<-'END'
		#[macro_use]
		extern crate criterion;
		use criterion::{black_box, BatchSize, Benchmark, BenchmarkId, Criterion, ParameterizedBenchmark, Throughput};
		use subject::sum;
		fn groups(c: &mut Criterion) {
			c.bench_function("sum 1000", |b| b.iter(|| sum(black_box(1000))));
			let mut group = c.benchmark_group("sized");
			for n in [100u64, 200].iter() {
				group.throughput(Throughput::Bytes(*n * 8));
				group.bench_with_input(BenchmarkId::from_parameter(n), n, |b, n| {
					b.iter_batched(|| *n, |n| sum(n), BatchSize::SmallInput)
				});
				group.bench_with_input(BenchmarkId::new("by/ref", n), n, |b, n| {
					b.iter_batched_ref(|| vec![*n], |v| sum(v[0]), BatchSize::NumIterations(3))
				});
			}
			group.finish();
		}
		#[allow(deprecated)]
		fn old(c: &mut Criterion) {
			c.bench("old", Benchmark::new("one", |b| b.iter(|| sum(10))).with_function("two", |b| b.iter(|| sum(20))));
			c.bench("params", ParameterizedBenchmark::new("f", |b, n| b.iter(|| sum(*n)), vec![1, 2])
				.throughput(|n| Throughput::Elements(*n)));
		}
		fn asynchronous(c: &mut Criterion) {
			c.bench_function("async", |b| b.to_async(criterion::async_executor::FuturesExecutor).iter(|| async { sum(50) }));
		}
		criterion_group!(benches, groups, old);
		criterion_group! {
			name = configured;
			config = Criterion::default().sample_size(10).measurement_time(std::time::Duration::from_millis(100));
			targets = asynchronous
		}
		criterion_main!(benches, configured);
	END
	# each name that criterion 0.8 has, in a file that wants all documented
	cat >crate/benches/surface.rs <<-'END'
		//! Documented.
		#![deny(missing_docs)]
		use criterion::async_executor::{AsyncExecutor, FuturesExecutor};
		use criterion::measurement::{Measurement, WallTime};
		use criterion::profiler::{ExternalProfiler, Profiler};
		use criterion::*;
		use std::collections::HashSet;
		use std::path::Path;
		use std::time::Duration;
		struct Runs;
		impl AsyncExecutor for Runs {
			fn block_on<T>(&self, future: impl std::future::Future<Output = T>) -> T { FuturesExecutor.block_on(future) }
		}
		struct Silent;
		impl Profiler for Silent {
			fn start_profiling(&mut self, id: &str, folder: &Path) { ExternalProfiler.start_profiling(id, folder) }
			fn stop_profiling(&mut self, id: &str, folder: &Path) { ExternalProfiler.stop_profiling(id, folder) }
		}
		fn config() -> Criterion {
			let s = Duration::from_millis(50);
			let unused = Criterion::default().save_baseline("a".into()).retain_baseline("b".into(), true)
				.with_filter("x").with_benchmark_filter(BenchmarkFilter::Exact("y".to_owned()))
				.with_benchmark_filter(BenchmarkFilter::RejectAll).with_output_color(true)
				.plotting_backend(PlottingBackend::Plotters);
			drop(unused);
			Criterion::default().sample_size(10).warm_up_time(s).measurement_time(s).nresamples(1000)
				.noise_threshold(0.02).confidence_level(0.9).significance_level(0.1).with_plots().without_plots()
				.with_profiler(Silent).with_measurement(WallTime).with_benchmark_filter(BenchmarkFilter::AcceptAll)
		}
		fn whole<M: Measurement + 'static>(c: &mut Criterion<M>) {
			let mut g = c.benchmark_group("settings");
			g.sample_size(10).warm_up_time(Duration::from_millis(1)).measurement_time(Duration::from_millis(50))
				.nresamples(10).noise_threshold(0.1).confidence_level(0.9).significance_level(0.1)
				.plot_config(PlotConfiguration::default().summary_scale(AxisScale::default()))
				.sampling_mode(SamplingMode::default()).sampling_mode(SamplingMode::Flat).sampling_mode(SamplingMode::Linear);
			for t in [Throughput::Bits(1), Throughput::Bytes(1), Throughput::BytesDecimal(1), Throughput::Elements(1),
				Throughput::ElementsAndBytes { elements: 1, bytes: 1 }] {
				let name = format!("{:?}", t);
				g.throughput(t.clone()).bench_function(&name[..4], |b| b.iter(|| t == Throughput::Bits(1)));
				break;
			}
			g.bench_function(String::from("iter_custom"), |b| b.iter_custom(|_| {
				WallTime.start();
				unreachable!("the list is enough")
			}));
			g.bench_with_input(BenchmarkId::new("unsized", 1), "input", |b, s| b.iter(|| s.len()));
			g.bench_with_input(BenchmarkId::from_parameter("p"), [1u8, 2].as_slice(), |b, s| b.iter(|| s.len()));
			g.finish();
			c.bench_with_input(BenchmarkId::new("alone", 2), &2u8, |b, n| b.iter(|| *n));
		}
		fn loops(c: &mut Criterion) {
			let sizes: HashSet<_> = [BatchSize::SmallInput, BatchSize::LargeInput, BatchSize::PerIteration,
				BatchSize::NumBatches(2), BatchSize::NumIterations(2)].iter().copied().collect();
			assert_eq!(sizes.len(), 5);
			c.bench_function("iter_with_setup", |b| b.iter_with_setup(|| 1, |n| n + 1));
			c.bench_function("iter_with_large_setup", |b| b.iter_with_large_setup(|| 1, |n| n + 1));
			c.bench_function("iter_with_large_drop", |b| b.iter_with_large_drop(|| vec![1]));
			c.bench_function("iter_custom", |b| b.iter_custom(|n| Duration::from_nanos(n)));
			c.bench_function("async", |b: &mut Bencher| { let mut b: AsyncBencher<_> = b.to_async(Runs); b.iter(|| async { 1 }) });
			c.bench_function("async custom", |b| b.to_async(FuturesExecutor).iter_custom(|n| async move { Duration::from_nanos(n) }));
			c.bench_function("async batched", |b| b.to_async(Runs).iter_batched(|| 1, |n| async move { n }, BatchSize::SmallInput));
			c.bench_function("async by ref", |b| b.to_async(Runs).iter_batched_ref(|| 1, |_| async { 1 }, BatchSize::LargeInput));
			c.bench_function("async drop", |b| b.to_async(Runs).iter_with_large_drop(|| async { vec![1] }));
			c.bench_function("async setup", |b| b.to_async(Runs).iter_with_setup(|| 1, |n| async move { n }));
			c.bench_function("async large setup", |b| b.to_async(Runs).iter_with_large_setup(|| 1, |n| async move { n }));
		}
		criterion_group! { name = all; config = config(); targets = whole, loops }
		criterion_main!(all);
	END
	cat >crate/benches/odd.rs <<-'END'
		use criterion::measurement::{Measurement, ValueFormatter};
		use criterion::{criterion_group, criterion_main, BatchSize, Criterion, Throughput};
		use std::sync::atomic::{AtomicI64, Ordering};
		struct Misses;
		impl ValueFormatter for Misses {
			fn scale_values(&self, _typical: f64, _values: &mut [f64]) -> &'static str { "misses" }
			fn scale_throughputs(&self, _typical: f64, _t: &Throughput, _values: &mut [f64]) -> &'static str { "per miss" }
			fn scale_for_machines(&self, _values: &mut [f64]) -> &'static str { "misses" }
		}
		impl Measurement for Misses {
			type Intermediate = ();
			type Value = u64;
			fn start(&self) {}
			fn end(&self, _: ()) -> u64 { 0 }
			fn add(&self, a: &u64, b: &u64) -> u64 { a + b }
			fn zero(&self) -> u64 { 0 }
			fn to_f64(&self, v: &u64) -> f64 { *v as f64 }
			fn formatter(&self) -> &dyn ValueFormatter { &Misses }
		}
		fn odd(c: &mut Criterion) {
			c.bench_function("before", |b| b.iter(|| 1 + 1));
			c.bench_function("panics", |_| panic!("on purpose"));
			c.bench_function("forgets", |_| ());
			c.bench_function("exits", |b| b.iter(|| std::process::exit(7)));
			c.bench_function("after", |b| b.iter(|| 2 + 2));
		}
		fn custom(c: &mut Criterion<Misses>) {
			c.bench_function("misses", |b| b.iter(|| 3 + 3));
		}
		struct Stretches;
		impl Measurement for Stretches {
			type Intermediate = ();
			type Value = u64;
			fn start(&self) {}
			fn end(&self, _: ()) -> u64 { 1 }
			fn add(&self, a: &u64, b: &u64) -> u64 { a + b }
			fn zero(&self) -> u64 { 0 }
			fn to_f64(&self, v: &u64) -> f64 { *v as f64 }
			fn formatter(&self) -> &dyn ValueFormatter { &Misses }
		}
		static MADE: AtomicI64 = AtomicI64::new(0);
		struct Alive;
		impl Measurement for Alive {
			type Intermediate = ();
			type Value = u64;
			fn start(&self) {}
			fn end(&self, _: ()) -> u64 { MADE.swap(0, Ordering::Relaxed) as u64 }
			fn add(&self, a: &u64, b: &u64) -> u64 { *a.max(b) }
			fn zero(&self) -> u64 { 0 }
			fn to_f64(&self, v: &u64) -> f64 { *v as f64 }
			fn formatter(&self) -> &dyn ValueFormatter { &Misses }
		}
		fn heap() -> Vec<u8> { MADE.fetch_add(1, Ordering::Relaxed); vec![1; 1500] }
		fn array() -> [u8; 1500] { MADE.fetch_add(1, Ordering::Relaxed); [1; 1500] }
		fn portions<M: Measurement + 'static>(c: &mut Criterion<M>, name: &str) {
			let mut g = c.benchmark_group(name);
			g.bench_function("small", |b| b.iter_batched(heap, |v| v.len(), BatchSize::SmallInput));
			g.bench_function("large", |b| b.iter_batched_ref(heap, |v| v.len(), BatchSize::LargeInput));
			g.bench_function("single", |b| b.iter_batched(heap, |v| v.len(), BatchSize::PerIteration));
			g.bench_function("array", |b| b.iter_batched_ref(array, |v| v.len(), BatchSize::SmallInput));
		}
		fn stretches(c: &mut Criterion<Stretches>) { portions(c, "stretches") }
		fn alive(c: &mut Criterion<Alive>) { portions(c, "alive") }
		criterion_group!(benches, odd);
		criterion_group! { name = customs; config = Criterion::default().with_measurement(Misses); targets = custom }
		criterion_group! { name = stretched; config = Criterion::default().with_measurement(Stretches); targets = stretches }
		criterion_group! { name = living; config = Criterion::default().with_measurement(Alive); targets = alive }
		criterion_main!(benches, customs, stretched, living);
	END
	cat >crate/benches/attributes.rs <<-'END'
		use assay_bench::{black_box, Bencher, BytesCount};
		fn main() {
			assay_bench::main();
		}
		#[assay_bench::bench]
		fn simple() -> u64 { subject::sum(black_box(100)) }
		#[assay_bench::bench(args = [10, 20])]
		fn sum(n: u64) -> u64 { subject::sum(black_box(n)) }
		#[assay_bench::bench(threads = [1, 2], items_count = 100u32)]
		fn sort(bencher: Bencher) {
			bencher.with_inputs(|| (0..100).rev().collect::<Vec<u32>>()).bench_refs(|v| v.sort());
		}
		#[assay_bench::bench(consts = [4, 8])]
		fn array<const N: usize>() -> [u8; N] { black_box([1; N]) }
		#[assay_bench::bench(types = [String, Vec<u8>])]
		fn made<T: Default>() -> T { T::default() }
		#[assay_bench::bench(args = ["abc", "defgh"])]
		fn reversed(b: Bencher, s: &str) {
			b.counter(BytesCount::of_str(s)).bench(|| s.chars().rev().collect::<String>());
		}
		mod inner {
			#[assay_bench::bench(name = "another name")]
			fn x() -> String { "abc".to_owned() }
		}
	END
	cat >crate/benches/functions.rs <<-'END'
		fn first() -> u64 { subject::sum(assay_bench::black_box(10)) }
		fn second(b: assay_bench::Bencher) { b.bench(|| vec![0u8; 100]) }
		assay_bench::main!(first, second);
	END
	cat >crate/tests/inside.rs <<-'END'
		use criterion::Criterion;
		use std::time::Duration;
		fn short(name: &str) -> Criterion {
			Criterion::default().measurement_time(Duration::from_millis(50)).output_directory(std::path::Path::new(name))
		}
		#[test]
		fn a_benchmark_within_a_test_program() {
			let folder = std::env::var("INSIDE").unwrap();
			short(&folder).bench_function("inside", |b| b.iter(|| subject::sum(100)));
			assert!(std::path::Path::new(&folder).join("inside/new/estimates.json").exists());
		}
		#[test]
		fn benchmarks_of_several_threads_wait_for_each_other() {
			let folder = std::env::var("INSIDE").unwrap();
			let threads: Vec<_> = (0..4).map(|i| {
				let folder = format!("{}/{}", folder, i);
				std::thread::spawn(move || {
					let id = format!("thread {}", i);
					short(&folder).bench_function(&id, |b| b.iter(|| subject::sum(100)));
					assert!(std::path::Path::new(&folder).join(&id).join("new/estimates.json").exists());
				})
			}).collect();
			threads.into_iter().for_each(|t| t.join().unwrap());
		}
		#[test]
		#[should_panic(expected = "Group name must not be empty.")]
		fn a_group_needs_a_name() {
			short("x").benchmark_group("");
		}
		#[test]
		#[should_panic(expected = "Benchmark IDs must be unique within a group.")]
		fn ids_do_not_repeat() {
			let mut c = short("x").with_filter("nothing");
			let mut g = c.benchmark_group("g");
			g.bench_function("a", |b| b.iter(|| 1));
			g.bench_function("a", |b| b.iter(|| 1));
		}
	END
	cd crate && CARGO_TARGET_DIR=$BATS_FILE_TMPDIR/target cargo bench --offline --no-run >"$BATS_FILE_TMPDIR/build.log" 2>&1 ||
		{ cat "$BATS_FILE_TMPDIR/build.log" >&2; return 1; }
}

# program NAME: path of the bench program
program() {
	ls -t "$BATS_FILE_TMPDIR"/target/release/deps/"$1"-* | grep -v '\.d$' | head -1
}

setup() {
	command -v cargo >/dev/null || skip 'cargo is not installed'
	cd "$BATS_TEST_TMPDIR" || return 1
	export CRITERION_HOME=$BATS_TEST_TMPDIR/home NO_COLOR=1
	plain=$(program plain) odd=$(program odd)
	quick=(--bench --measurement-time 0.1)
}

@test "--list names what criterion names, in its order" {
	run -0 "$plain" --bench --list
	[ "$output" = "$(printf '%s: benchmark\n' 'sum 1000' sized/100 sized/by/ref/100 sized/200 sized/by/ref/200 \
		old/one old/two params/f/1 params/f/2 async)" ]
	run -0 "$plain" --list --format terse 'by.ref/\d00$'
	[ "$output" = "$(printf '%s: benchmark\n' sized/by/ref/100 sized/by/ref/200)" ]
	run -0 "$plain" --bench --list --ignored
	[ -z "$output" ]
}

@test "without --bench each runs once, as cargo test wants it" {
	run -0 "$plain" --exact 'sum 1000'
	[ "$output" = "$(printf 'Testing sum 1000\nSuccess')" ]
	[ ! -e home ]
	run -0 "$plain" --bench --test old
	[ "$(grep -c '^Success$' <<<"$output")" = 2 ]
	run -101 "$odd" --test --nocapture panics
	[[ "$output" == *"on purpose"* ]]
	run -101 "$odd" --test forgets
	[[ "$output" == *"must call Bencher::iter"* ]]
}

@test "all of criterion's API: names, and each kind of loop measures" {
	run -0 "$(program surface)" --bench --list
	[ "$(tr '\n' ' ' <<<"${output//: benchmark/,}")" = "settings/Bits, settings/iter_custom, settings/unsized/1, \
settings/p, alone/2, iter_with_setup, iter_with_large_setup, iter_with_large_drop, iter_custom, async, async custom, async \
batched, async by ref, async drop, async setup, async large setup, " ]
	run -0 --separate-stderr "$(program surface)" --bench '^(iter|async)'
	[ "$(find home -path '*/new/estimates.json' | wc -l)" = 11 ]
	[ "$(jq '.low_quartile.point_estimate == 1' home/iter_custom/new/estimates.json)" = true ]
	[ "$(jq '.low_quartile.point_estimate == 1' 'home/async custom/new/estimates.json')" = true ]
}

@test "a run leaves criterion's folders, and critcmp's rules find the figures" {
	run -0 "$plain" "${quick[@]}" 'sum|sized'
	[[ "$output" == *"sum 1000 "*"time:   ["* ]]
	[[ "$output" == *"thrpt:  ["*"iB/s"* ]]
	[ -f "home/sized/by_ref/100/new/raw.csv" ]
	[ "$(head -c 35 home/sized/by_ref/100/new/raw.csv)" = group,function,value,throughput_num ]
	python3 - <<-'END'
		import json, os
		found = {}
		for path, folders, files in os.walk('home'):
		    folders[:] = [f for f in folders if f not in ('change', 'report') and not f.startswith('.')]
		    if 'estimates.json' in files:
		        e = json.load(open(path + '/estimates.json'))
		        b = json.load(open(path + '/benchmark.json'))
		        s = json.load(open(path + '/sample.json'))
		        assert e['mean']['point_estimate'] > 0 and e['std_dev']['point_estimate'] >= 0
		        assert len(s['iters']) == len(s["times"]) >= 2
		        mean = sum(t / n for t, n in zip(s['times'], s['iters'])) / len(s['times'])
		        assert abs(mean / e['mean']['point_estimate'] - 1) < 1e-9
		        assert e['slope'] is None and len(json.load(open(path + '/tukey.json'))) == 4
		        assert os.path.relpath(path, 'home') == b['directory_name'] + '/' + os.path.basename(path)
		        assert not open(path + '/estimates.json').read().endswith('\n')
		        found.setdefault(os.path.basename(path), {})[b['full_id']] = b['throughput']
		assert sorted(found) == ['base', 'new'], found
		assert found['new'] == found['base'] == {'sum 1000': None, 'sized/100': {'Bytes': 800},
		    'sized/200': {'Bytes': 1600}, 'sized/by/ref/100': {'Bytes': 800}, 'sized/by/ref/200': {'Bytes': 1600}}, found
	END
}

@test "the next run is made in pairs with the baseline's program" {
	"$plain" "${quick[@]}" 'sum 1000'
	run -0 "$plain" "${quick[@]}" 'sum 1000'
	[[ "$output" == *"change: ["*"pairs with the program of 'base'"* ]]
	[ -f 'home/sum 1000/change/estimates.json' ]
	[ "$(ls home/.assay/programs | wc -l)" = 1 ]
	rm -r home/.assay
	sed -i 's/"machine":"/"machine":"8086, not /' 'home/sum 1000/base/assay.json'
	run -0 "$plain" "${quick[@]}" 'sum 1000'
	[[ "$output" == *"note: the baseline is of another machine: 8086, not "* ]]
	[[ "$output" == *"trend:"*"No verdict: its program is no longer kept."* ]]
	[[ "$output" != *regressed* && "$output" != *improved* ]]
	[ ! -e 'home/sum 1000/change' ]
}

@test "where the declared work changed, rates are compared" {
	half_the_work_before() { # each run is the next one's baseline
		"$plain" "${quick[@]}" 'sized/100' >/dev/null &&
			sed -i 's/"Bytes":800/"Bytes":400/' home/sized/100/base/benchmark.json &&
			"$plain" --bench --measurement-time 1 --fail-on slower 'sized/100'
	}
	tries '[[ $status == 0 && $output == *"Performance has improved."* ]]' half_the_work_before
	[[ "$output" == *"an iteration does 2 times as much now"* ]]
}

@test "a baseline of criterion's own is a trend" {
	"$plain" "${quick[@]}" 'sum 1000'
	rm 'home/sum 1000/base/assay.json'
	sed -i 's/,"low_quartile":.*}}$/}/' 'home/sum 1000/base/estimates.json'
	run -0 "$plain" "${quick[@]}" 'sum 1000'
	[[ "$output" == *"trend:"*"(criterion wrote it)"* ]]
}

@test "--baseline and --save-baseline go together, and both folders are right" {
	"$plain" "${quick[@]}" --save-baseline a 'sum 1000'
	[ -d 'home/sum 1000/a' ]
	[ ! -e 'home/sum 1000/base' ]
	before=$(cat 'home/sum 1000/a/sample.json')
	run -0 "$plain" "${quick[@]}" --baseline a --save-baseline b 'sum 1000'
	[[ "$output" == *"with the program of 'a'"* ]]
	[ "$(cat 'home/sum 1000/a/sample.json')" = "$before" ]
	cmp 'home/sum 1000/b/sample.json' 'home/sum 1000/new/sample.json'
	run -0 "$plain" --bench --load-baseline b --baseline a 'sum 1000'
	[[ "$output" == *"time:   ["*"change: ["*"pairs with the program of 'a'"* ]]
	sed -i 's/"program":"[^"]*"/"program":"0"/' 'home/sum 1000/b/assay.json'
	run -0 "$plain" --bench --load-baseline b --baseline a 'sum 1000'
	[[ "$output" == *"time:   ["*"No verdict: its program is no longer kept."* ]]
}

@test "a strict baseline that lacks a benchmark: the others are compared, the rest is listed" {
	"$plain" "${quick[@]}" --save-baseline a 'old/one'
	run -1 "$plain" "${quick[@]}" --baseline a old
	[[ "$output" == *"with the program of 'a'"* ]]
	[[ "$output" == *"error: 1 benchmark is not in baseline 'a':"*"old/two"* ]]
	run -0 "$plain" "${quick[@]}" --baseline-lenient a old
	run -1 "$plain" "${quick[@]}" --baseline nowhere old
	[[ "$output" == *"no benchmark has a baseline 'nowhere'"*"there are: a;"* ]]
}

@test "damaged files are one benchmark's error" {
	"$plain" "${quick[@]}" old
	echo '{"mean":' >home/old/one/base/estimates.json
	run -1 "$plain" "${quick[@]}" old
	[[ "$output" == *"old/one/base/estimates.json' is damaged"* ]]
	[[ "$output" == *"old/two"*"with the program of 'base'"* ]]
}

@test "a benchmark that fails costs only itself" {
	run -1 "$odd" "${quick[@]}"
	[[ "$output" == *"panics: failed:"*"on purpose"* ]]
	[[ "$output" == *"forgets: failed:"*"must call Bencher::iter"* ]]
	[[ "$output" == *"exits: failed:"* ]]
	[[ "$output" == *"after "*"time:   ["* ]]
	[[ "$output" == *"misses "*"time:   ["*"0.0000 misses"* ]] # zero is a value
}

# width of the interval that $output shows, in per cent of the value; in ps … s
width() {
	python3 -c '
import re, sys
s = {"ps": 1e-12, "ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1}
v = [float(n) * s[u] for n, u in re.findall(r"([0-9.]+) (ps|ns|µs|ms|s)\b", re.search(r"time: +\[(.*?)\]", sys.argv[1])[1])]
print((v[2] - v[0]) / v[1])' "$output"
}

@test "--confidence-level is that of the intervals shown and written" {
	run -0 "$plain" --bench --measurement-time 0.3 --noplot 'sum 1000'
	python3 - <<-'END'
		import json
		e = json.load(open('home/sum 1000/new/estimates.json'))
		assert e['low_quartile']['confidence_interval']['confidence_level'] == 0.95, e
	END
	run -0 "$plain" --bench --measurement-time 0.3 --confidence-level 0.999999 'sum 1000'
	wide=$(width)
	python3 - <<-'END'
		import json
		for name in ('new', 'change'):
		    for key, e in json.load(open('home/sum 1000/' + name + '/estimates.json')).items():
		        if isinstance(e, dict):
		            assert e['confidence_interval']['confidence_level'] == 0.999999, (name, key, e)
	END
	run -0 "$plain" --bench --measurement-time 0.3 --confidence-level 0.01 'sum 1000'
	python3 -c 'import sys; assert float(sys.argv[2]) < float(sys.argv[1]) / 4, sys.argv' "$wide" "$(width)"
}

@test "inputs are timed in portions: few readings of the clock, and few inputs at once" {
	asked() { # ID -> stretches (or inputs alive) of a batch of 10,000
		ASSAY_BENCH_WORKER='1 fd=9 do=measure nth=1 iterations=10000 warmups=0 batches=1' ASSAY_BENCH_ID=$1 \
			"$odd" --bench 9>&1 >/dev/null 2>&1 | sed -n 's/^batch\t\([0-9.]*\)\t.*/\1/p'
	}
	# 1500 bytes each, on the heap: 16 KiB and a little, whatever Vec says of itself
	[ "$(asked stretches/small)" = 500 ]
	[ "$(asked stretches/large)" = 1000 ]
	[ "$(asked stretches/single)" = 10000 ]
	[ "$(asked stretches/array)" = 1000 ] # 1500 bytes that are seen: 10 of them
	[ "$(asked alive/small)" = 20 ]
	[ "$(asked alive/array)" = 10 ]
}

@test "under cargo-criterion it says that it does not speak with it, and measures" {
	CARGO_CRITERION_PORT=1 run -0 --separate-stderr "$plain" "${quick[@]}" 'sum 1000'
	[[ "$output" == *"sum 1000 "*"time:   ["* ]]
	[[ "$stderr" == *"cargo-criterion makes its reports from"*"after cargo bench"* ]]
}

@test "pages lie where criterion leaves them, lead to each other, and stand alone" {
	"$plain" "${quick[@]}" 'sum|sized'
	"$plain" "${quick[@]}" --noplot old
	python3 - <<-'END'
		import glob, html.parser, os, urllib.parse
		pages = {os.path.relpath(p, 'home') for p in glob.glob('home/**/index.html', recursive=True)}
		assert pages == {'report/index.html', 'sized/report/index.html', 'sum 1000/report/index.html',
		    *(f'sized/{f}{n}/report/index.html' for f in ('', 'by_ref/') for n in (100, 200))}, pages
		class Check(html.parser.HTMLParser):
		    def handle_starttag(self, tag, attrs):
		        assert tag not in ('script', 'img', 'link'), tag
		        for key, value in attrs:
		            assert 'nan' not in value and 'inf' not in value.split('=')[0] or key in ('content',), (key, value)
		            if key == 'href':
		                links.add(os.path.normpath(os.path.join(os.path.dirname(page), urllib.parse.unquote(value))))
		reached, left = set(), ['report/index.html']
		while left:
		    page = left.pop()
		    links = set()
		    text = open('home/' + page).read()
		    Check().feed(text)
		    assert text.endswith('</html>\n'), page
		    reached.add(page)
		    for link in links:
		        if '/old/' not in '/' + link: # without pages of their own
		            assert link in pages, (page, link)
		            left += [link] if link not in reached else []
		assert '<svg' in open('home/sum 1000/report/index.html').read()
		assert 'low quartile' in open('home/sized/by_ref/100/report/index.html').read()
	END
}

@test "arguments that make no sense end with one line and status 2" {
	run -2 "$plain" --bench --save
	[ "$output" = "error: unknown option '--save'; --help lists them" ]
	run -2 "$plain" --bench '('
	[[ "$output" == "error: cannot take '(' as a filter:"* ]]
	run -0 "$plain" --help
	[[ "$output" == *ASSAY_BENCH_FLAGS* ]]
}

@test "bencher's format" {
	run -0 "$plain" "${quick[@]}" --output-format bencher 'sum 1000'
	[[ "$output" =~ ^'test sum 1000 ... bench: '\ *[0-9,]+' ns/iter (+/- '[0-9,]+')'$ ]]
}

@test "cargo bench and cargo test with a lib target; options by the environment" {
	cd "$BATS_FILE_TMPDIR/crate"
	export CARGO_TARGET_DIR=$BATS_FILE_TMPDIR/target
	unset CRITERION_HOME
	run -0 cargo bench --offline -q --bench plain -- --measurement-time 0.1 'sum 1000'
	[ -f "$BATS_FILE_TMPDIR/target/criterion/sum 1000/new/estimates.json" ]
	ASSAY_BENCH_FLAGS='--measurement-time 0.1 --save-baseline env sum.1000' run -0 cargo bench --offline -q --lib --bench plain
	[ -d "$BATS_FILE_TMPDIR/target/criterion/sum 1000/env" ]
	CARGO_TARGET_DIR=../target run -0 cargo bench --offline -q --bench plain -- --measurement-time 0.1 --save-baseline rel 'sum 1000'
	[ -d "$BATS_FILE_TMPDIR/target/criterion/sum 1000/rel" ]
	INSIDE=$BATS_TEST_TMPDIR/inside run -0 cargo test --offline -q --test inside
	[[ "$output" == *"4 passed"* ]]
}

@test "a real slowdown is exit 3 with --fail-on slower, and 0 without" {
	cp "$plain" before
	./before "${quick[@]}" --save-baseline a 'sum 1000'
	(cd "$BATS_FILE_TMPDIR/crate" && CARGO_TARGET_DIR=$BATS_FILE_TMPDIR/slow cargo bench --offline -q --bench plain --no-run --features slow)
	slow=$(ls "$BATS_FILE_TMPDIR"/slow/release/deps/plain-* | grep -v '\.d$')
	regressed='[[ $output == *"Performance has regressed."* ]]'
	tries "[ \$status = 3 ] && $regressed" \
		"$slow" --bench --measurement-time 0.5 --baseline a --fail-on slower 'sum 1000'
	tries "[ \$status = 0 ] && $regressed" "$slow" --bench --measurement-time 0.5 --baseline a 'sum 1000'
	ASSAY_BENCH_FAIL_ON=slower tries '[ $status = 0 ]' \
		./before --bench --measurement-time 0.5 --baseline a 'sum 1000'
}

@test "two runs at once leave whole files" {
	"$plain" "${quick[@]}" old >/dev/null &
	run -0 "$plain" "${quick[@]}" old
	wait $!
	python3 - <<-'END'
		import json, os
		for path, _, files in os.walk('home'):
		    assert not path.endswith('.tmp'), path
		    for name in files:
		        if name.endswith('.json'):
		            json.load(open(os.path.join(path, name)))
	END
}

@test "assay-bench: attributes and a list of functions" {
	run -0 "$(program attributes)" --bench --list
	[ "$output" = "$(printf '%s: benchmark\n' simple sum/10 sum/20 sort/threads=1 sort/threads=2 array/4 array/8 \
		made/String 'made/Vec<u8>' reversed/abc reversed/defgh 'inner/another name')" ]
	run -0 "$(program functions)" --bench --list
	[ "$output" = "$(printf '%s: benchmark\n' first second)" ]
	run -0 "$(program attributes)" # as cargo test calls it
	[ "$(grep -c '^Success$' <<<"$output")" = 12 ]
	run -0 "$(program attributes)" "${quick[@]}" 'sort|reversed'
	[[ "$output" == *"sort/threads=2 "*"thrpt:  ["*"elem/s"* ]]
	[[ "$output" == *"reversed/abc "*"thrpt:  ["*"B/s"* ]] # told by the worker
	run -0 "$(program functions)" "${quick[@]}"
	[[ "$output" == *"second "*"time:   ["* ]]
}
