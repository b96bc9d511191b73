// SPDX-License-Identifier: MIT OR Apache-2.0
//! Benchmarks as attributes, or as a plain list of functions, over assay's harness.
//!
//! ```toml
//! [dev-dependencies]
//! assay-bench = "0.1"
//! [[bench]]
//! name = "speed"
//! harness = false
//! ```
//! ```ignore
//! fn main() {
//!     assay_bench::main();
//! }
//!
//! #[assay_bench::bench(args = [10, 1000])]
//! fn sum(n: u64) -> u64 {
//!     (0..assay_bench::black_box(n)).sum()
//! }
//!
//! #[assay_bench::bench(threads = [1, 4], items_count = 100u32)]
//! fn sort(bencher: assay_bench::Bencher) {
//!     bencher.with_inputs(|| (0..100).rev().collect::<Vec<u32>>()).bench_refs(|v| v.sort());
//! }
//! ```
//! Without attributes: `assay_bench::main!(first, second);`, functions that take nothing or a [`Bencher`].
//!
//! Measuring, command line, baselines and verdicts are those of assay-criterion: `cargo bench -- --help`.

use criterion::__private as inner;
use std::sync::Mutex;

extern crate assay_criterion as criterion;
pub use assay_bench_macros::bench;
pub use criterion::black_box;

/// Work of one iteration: shown as a rate.
#[derive(Debug, Clone, Copy)]
pub struct Counter(inner::Throughput2);

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident $kind:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub struct $name(u64);
        impl $name {
            pub fn new<N: TryIntoCount>(n: N) -> $name {
                $name(n.into_count())
            }
        }
        impl From<$name> for Counter {
            fn from(c: $name) -> Counter {
                Counter(inner::Throughput2::$kind(c.0))
            }
        }
    )*};
}
counters! {
    /// Bytes.
    BytesCount Bytes;
    /// Characters.
    CharsCount Elements;
    /// Things.
    ItemsCount Elements;
}

impl BytesCount {
    /// `n` values of `T`.
    pub fn of_many<T>(n: usize) -> BytesCount {
        BytesCount((n * std::mem::size_of::<T>()) as u64)
    }

    /// One value of `T`.
    pub fn of<T>() -> BytesCount {
        BytesCount::of_many::<T>(1)
    }

    /// All values of a slice.
    pub fn of_slice<T>(s: &[T]) -> BytesCount {
        BytesCount(std::mem::size_of_val(s) as u64)
    }

    pub fn of_str(s: &str) -> BytesCount {
        BytesCount(s.len() as u64)
    }
}

/// Numbers that count.
pub trait TryIntoCount {
    #[doc(hidden)]
    fn into_count(self) -> u64;
}
macro_rules! counts {
    ($($t:ty)*) => {$(impl TryIntoCount for $t {
        fn into_count(self) -> u64 {
            self as u64
        }
    })*};
}
counts!(u8 u16 u32 u64 usize i32);

/// Handed to benchmark functions that prepare something: ends with one of the `bench` methods.
pub struct Bencher<'a, 'b> {
    inner: &'a mut criterion::Bencher<'b>,
}

impl<'a, 'b> Bencher<'a, 'b> {
    /// The work of one iteration.
    pub fn counter(self, counter: impl Into<Counter>) -> Self {
        inner::throughput(counter.into().0);
        self
    }

    /// Every iteration gets an input of its own, made outside the measured time.
    pub fn with_inputs<I, G: FnMut() -> I>(self, make: G) -> WithInputs<'a, 'b, G> {
        WithInputs { inner: self.inner, make }
    }

    /// Measures `f`; results that need dropping are dropped outside the measured time.
    pub fn bench<O>(self, f: impl FnMut() -> O) {
        measure(self.inner, f);
    }

    /// As `bench`.
    pub fn bench_local<O>(self, f: impl FnMut() -> O) {
        self.bench(f);
    }
}

fn measure<O>(b: &mut criterion::Bencher<'_>, f: impl FnMut() -> O) {
    if std::mem::needs_drop::<O>() {
        b.iter_with_large_drop(f);
    } else {
        b.iter(f);
    }
}

/// A [`Bencher`] with inputs.
pub struct WithInputs<'a, 'b, G> {
    inner: &'a mut criterion::Bencher<'b>,
    make: G,
}

impl<'a, 'b, I, G: FnMut() -> I> WithInputs<'a, 'b, G> {
    pub fn counter(self, counter: impl Into<Counter>) -> Self {
        inner::throughput(counter.into().0);
        self
    }

    /// `f` takes the input.
    pub fn bench_values<O>(self, f: impl FnMut(I) -> O) {
        self.inner.iter_batched(self.make, f, criterion::BatchSize::SmallInput);
    }

    /// `f` borrows the input; it is dropped outside the measured time.
    pub fn bench_refs<O>(self, f: impl FnMut(&mut I) -> O) {
        self.inner.iter_batched_ref(self.make, f, criterion::BatchSize::SmallInput);
    }

    pub fn bench_local_values<O>(self, f: impl FnMut(I) -> O) {
        self.bench_values(f);
    }

    pub fn bench_local_refs<O>(self, f: impl FnMut(&mut I) -> O) {
        self.bench_refs(f);
    }
}

/// Runs everything that has the attribute, in the order of modules and lines.
pub fn main() {
    let mut all: Vec<_> =
        __private::REGISTERED.lock().map_or(Vec::new(), |mut r| r.drain(..).collect());
    // Linkers order constructors as they like; those of `main!` have one line and keep their order.
    all.sort_by(|a, b| (a.module, a.line).cmp(&(b.module, b.line)));
    let mut c = criterion::Criterion::default().configure_from_args();
    for entry in all {
        // The crate's own name says nothing.
        let name = match entry.module.split_once("::") {
            Some((_, path)) => format!("{}/{}", path.replace("::", "/"), entry.name),
            None => entry.name.to_owned(),
        };
        (entry.run)(&mut __private::Runner::new(&mut c, name));
    }
    c.final_summary();
}

/// The program's `main` of a list of functions, which take nothing or a [`Bencher`].
#[macro_export]
macro_rules! main {
    ($($f:path),+ $(,)?) => {
        fn main() {
            $(
                $crate::__private::add(
                    ::core::stringify!($f),
                    "",
                    ::core::line!(),
                    |r| $crate::__private::Listed::run_in(&$f, r),
                );
            )+
            $crate::main();
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __register {
    ($name:expr, $run:expr) => {
        const _: () = {
            extern "C" fn register() {
                $crate::__private::add($name, ::core::module_path!(), ::core::line!(), $run);
            }
            // Run by the loader before main.
            #[used]
            #[link_section = ".init_array"]
            static REGISTER: extern "C" fn() = register;
        };
    };
}

#[doc(hidden)]
pub mod __private {
    use super::*;

    pub struct Entry {
        pub name: &'static str,
        pub module: &'static str,
        pub line: u32,
        pub run: fn(&mut Runner<'_>),
    }

    pub static REGISTERED: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

    pub fn add(name: &'static str, module: &'static str, line: u32, run: fn(&mut Runner<'_>)) {
        if let Ok(mut all) = REGISTERED.lock() {
            all.push(Entry { name, module, line, run });
        }
    }

    /// A function of `main!`: K tells the two kinds apart.
    pub trait Listed<K> {
        fn run_in(&self, r: &mut Runner<'_>);
    }
    pub struct Plain<O>(std::marker::PhantomData<O>);
    pub struct Prepared;
    impl<O, F: Fn() -> O + Sync> Listed<Plain<O>> for F {
        fn run_in(&self, r: &mut Runner<'_>) {
            r.plain(None, None, self);
        }
    }
    impl<F: Fn(Bencher<'_, '_>) + Sync> Listed<Prepared> for F {
        fn run_in(&self, r: &mut Runner<'_>) {
            r.bencher(None, None, self);
        }
    }

    pub struct Runner<'c> {
        c: &'c mut criterion::Criterion,
        name: String,
        threads: Vec<u32>,
        counter: Option<Counter>,
    }

    /// What `threads = …` can be.
    pub trait Threads {
        fn counts(self) -> Vec<u32>;
    }
    impl Threads for bool {
        fn counts(self) -> Vec<u32> {
            let all = std::thread::available_parallelism().map_or(1, |n| n.get());
            vec![if self { all as u32 } else { 1 }]
        }
    }
    impl Threads for u32 {
        fn counts(self) -> Vec<u32> {
            vec![self]
        }
    }
    impl<const N: usize> Threads for [u32; N] {
        fn counts(self) -> Vec<u32> {
            self.to_vec()
        }
    }

    impl<'c> Runner<'c> {
        pub fn new(c: &'c mut criterion::Criterion, name: String) -> Self {
            Runner { c, name, threads: Vec::new(), counter: None }
        }

        pub fn threads(&mut self, threads: impl Threads) {
            self.threads = threads.counts();
        }

        pub fn counter(&mut self, counter: impl Into<Counter>) {
            self.counter = Some(counter.into());
        }

        pub fn plain<O>(
            &mut self,
            generic: Option<&str>,
            value: Option<String>,
            f: impl Fn() -> O + Sync,
        ) {
            self.run(generic, value, &|b| measure(b, &f));
        }

        pub fn bencher(
            &mut self,
            generic: Option<&str>,
            value: Option<String>,
            f: impl Fn(Bencher<'_, '_>) + Sync,
        ) {
            self.run(generic, value, &|b| f(Bencher { inner: b }));
        }

        fn run(
            &mut self,
            generic: Option<&str>,
            value: Option<String>,
            f: &(dyn Fn(&mut criterion::Bencher<'_>) + Sync),
        ) {
            let name = generic.map(|g| g.replace(' ', ""));
            if self.threads.is_empty() {
                inner::run(self.c, &self.name, name, value, self.counter.map(|c| c.0), 1, f);
                return;
            }
            for threads in &self.threads {
                let suffix = format!("threads={}", threads);
                let value = match &value {
                    Some(v) => format!("{}/{}", v, suffix),
                    None => suffix,
                };
                inner::run(
                    self.c,
                    &self.name,
                    name.clone(),
                    Some(value),
                    self.counter.map(|c| c.0),
                    *threads,
                    f,
                );
            }
        }
    }
}
