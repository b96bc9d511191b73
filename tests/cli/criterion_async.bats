#!/usr/bin/env bats
# SPDX-License-Identifier: MIT OR Apache-2.0
# Asynchronous benchmarks of assay-criterion with the runtimes of Debian's crates: tokio, smol, async-std. One
# program with those that are installed; async-std, which takes as long to compile as all the others, only where
# ASSAY_ASYNC_STD is set.
# beside others
bats_require_minimum_version 1.5.0
load lib

registry=/usr/share/cargo/registry

has() {
	[ "$1" != async-std ] || [ -n "${ASSAY_ASYNC_STD:-}" ] || return 1
	compgen -G "$registry/$1-[0-9]*" >/dev/null
}

setup_file() {
	[ -x /usr/bin/cargo ] && [ -x /usr/bin/rustc ] || return 0
	local repo features='"async_futures"' dependencies=''
	repo=$(realpath "$BATS_TEST_DIRNAME/../..")
	has smol && features+=', "async_smol"' dependencies+='smol = { version = "1", default-features = false }'$'\n'
	has async-std && features+=', "async_std"' dependencies+='async-std = "1"'$'\n'
	has tokio && features+=', "async_tokio"' dependencies+='tokio = { version = "1", features = ["rt", "time"] }'$'\n'
	cd "$BATS_FILE_TMPDIR" || return 1
	mkdir -p home crate/src crate/benches
	printf '[source.crates-io]\nreplace-with = "debian"\n[source.debian]\ndirectory = "%s"\n' $registry >home/config.toml
	: >crate/src/lib.rs
	cat >crate/Cargo.toml <<-END
		[package]
		name = "subject"
		version = "0.1.0"
		edition = "2018"
		[features]
		smol = []
		async_std = []
		tokio = []
		[dev-dependencies]
		criterion = { package = "assay-criterion", path = "$repo/rust/assay-criterion", features = [$features] }
		$dependencies
		[[bench]]
		name = "futures"
		harness = false
		[profile.bench]
		debug = false
		opt-level = 0
		codegen-units = 16
		[workspace]
	END
	cat >crate/benches/futures.rs <<-'END'
		use criterion::async_executor::{AsyncExecutor, FuturesExecutor};
		use criterion::measurement::WallTime;
		use criterion::{BatchSize, BenchmarkGroup, Criterion};
		use std::time::Duration;

		/// All that AsyncBencher has, with one executor.
		fn all<A: AsyncExecutor + Copy>(g: &mut BenchmarkGroup<'_, WallTime>, a: A) {
			g.bench_function("iter", |b| b.to_async(a).iter(|| async { 1 + 1 }));
			g.bench_function("custom", |b| b.to_async(a).iter_custom(|n| async move { Duration::from_micros(5 * n) }));
			g.bench_function("drop", |b| b.to_async(a).iter_with_large_drop(|| async { vec![0; 100] }));
			g.bench_function("batched", |b| {
				b.to_async(a).iter_batched(|| vec![1, 2], |v| async move { v.len() }, BatchSize::SmallInput)
			});
			g.bench_function("batched_ref", |b| {
				b.to_async(a).iter_batched_ref(|| vec![1, 2], |v| { v.push(3); async { 1 } }, BatchSize::PerIteration)
			});
		}

		#[cfg(feature = "smol")]
		mod with_smol {
			use super::*;
			use criterion::async_executor::SmolExecutor;
			use std::sync::atomic::{AtomicBool, Ordering};
			#[derive(Clone, Copy)]
			struct Smol;
			impl AsyncExecutor for Smol {
				fn block_on<T>(&self, f: impl std::future::Future<Output = T>) -> T { SmolExecutor.block_on(f) }
			}
			static COLD: AtomicBool = AtomicBool::new(true);
			pub fn benches(c: &mut Criterion) {
				let mut g = c.benchmark_group("smol");
				all(&mut g, Smol);
				g.bench_function("waits", |b| b.to_async(SmolExecutor).iter(|| smol::Timer::after(Duration::from_millis(1))));
				g.bench_function("threads", |b| b.to_async(SmolExecutor).iter(|| {
					if COLD.swap(false, Ordering::Relaxed) { std::thread::sleep(Duration::from_millis(80)); }
					smol::unblock(|| 1)
				}));
			}
		}

		#[cfg(feature = "async_std")]
		mod with_async_std {
			use super::*;
			use async_std::task;
			use criterion::async_executor::AsyncStdExecutor;
			#[derive(Clone, Copy)]
			struct Std;
			impl AsyncExecutor for Std {
				fn block_on<T>(&self, f: impl std::future::Future<Output = T>) -> T { AsyncStdExecutor.block_on(f) }
			}
			pub fn benches(c: &mut Criterion) {
				let mut g = c.benchmark_group("async_std");
				all(&mut g, Std);
				g.bench_function("waits", |b| b.to_async(AsyncStdExecutor).iter(|| task::sleep(Duration::from_millis(1))));
				g.bench_function("task", |b| b.to_async(AsyncStdExecutor).iter(|| async { task::current().id() }));
				g.bench_function("spawn", |b| b.to_async(AsyncStdExecutor).iter(|| task::spawn(async { 1 })));
			}
		}

		#[cfg(feature = "tokio")]
		mod with_tokio {
			use super::*;
			use tokio::runtime::{Builder, Runtime};
			fn runtime() -> Runtime { Builder::new_current_thread().enable_time().build().unwrap() }
			pub fn benches(c: &mut Criterion) {
				let rt = runtime();
				let mut g = c.benchmark_group("tokio");
				all(&mut g, &rt);
				g.bench_function("waits", |b| b.to_async(&rt).iter(|| tokio::time::sleep(Duration::from_millis(1))));
				g.bench_function("own", |b| b.to_async(runtime()).iter(|| tokio::spawn(async { 1 })));
				g.bench_function("handle", |b| b.to_async(rt.handle()).iter(|| async { 1 }));
				g.bench_function("own_handle", |b| b.to_async(rt.handle().clone()).iter(|| async { 1 }));
			}
		}

		fn benches(c: &mut Criterion) {
			#[derive(Clone, Copy)]
			struct Futures;
			impl AsyncExecutor for Futures {
				fn block_on<T>(&self, f: impl std::future::Future<Output = T>) -> T { FuturesExecutor.block_on(f) }
			}
			all(&mut c.benchmark_group("futures"), Futures);
			#[cfg(feature = "smol")]
			with_smol::benches(c);
			#[cfg(feature = "async_std")]
			with_async_std::benches(c);
			#[cfg(feature = "tokio")]
			with_tokio::benches(c);
		}
		criterion::criterion_group!(group, benches);
		criterion::criterion_main!(group);
	END
	local own=()
	has smol && own+=(smol)
	has async-std && own+=(async_std)
	has tokio && own+=(tokio)
	cd crate && CARGO_HOME=../home RUSTC=/usr/bin/rustc CARGO_TARGET_DIR=../target /usr/bin/cargo bench --offline --no-run \
		--features "${own[*]}" >../build.log 2>&1 || { cat ../build.log >&2; return 1; }
}

setup() {
	[ -x /usr/bin/cargo ] && [ -x /usr/bin/rustc ] || skip "Debian's cargo is not installed"
	cd "$BATS_TEST_TMPDIR" || return 1
	export CRITERION_HOME=$BATS_TEST_TMPDIR/home NO_COLOR=1
	program=$(ls "$BATS_FILE_TMPDIR"/target/release/deps/futures-* | grep -v '\.d$' | head -1)
}

# measured NAME [EXTRA…]: all benchmarks of the runtime are measured, those of `all` and EXTRA; `mean` is then of each
measured() {
	local name=$1
	shift
	run -0 "$program" --bench --list "^$name/"
	[ "$output" = "$(printf "$name/%s: benchmark\n" iter custom drop batched batched_ref "$@")" ]
	run -0 timeout 300 "$program" --bench --measurement-time 0.1 --noplot "^$name/"
	[ "$(ls "$CRITERION_HOME/$name" | wc -l)" = $((5 + $#)) ]
	python3 - "$name" "$@" <<-'END'
		import json, os, sys
		home, name = os.environ['CRITERION_HOME'], sys.argv[1]
		ns = {k: json.load(open(f'{home}/{name}/{k}/new/estimates.json'))['low_quartile']['point_estimate']
		      for k in os.listdir(f'{home}/{name}')}
		assert abs(ns['custom'] - 5000) < 1e-6, ns
		assert all(0 <= v < 1e9 for v in ns.values()), ns
		assert ns.get('waits', 1e6) >= 1e6, ns
	END
}

@test "futures that need no runtime" {
	measured futures
}

@test "smol: its futures, and threads that the first run starts" {
	has smol || skip 'librust-smol-dev is not installed'
	measured smol waits threads
}

@test "async-std: its futures know their task" {
	has async-std || skip 'ASSAY_ASYNC_STD is not set, or librust-async-std-dev not installed'
	measured async_std waits task spawn
}

@test "tokio: a runtime or a handle, given or lent" {
	has tokio || skip 'librust-tokio-dev is not installed'
	measured tokio waits own handle own_handle
}
