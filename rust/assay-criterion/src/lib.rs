// SPDX-License-Identifier: MIT OR Apache-2.0
//! Criterion's API over assay's benchmark harness.
//!
//! In `Cargo.toml`, nothing else changes:
//!
//! ```toml
//! [dev-dependencies]
//! criterion = { package = "assay-criterion", version = "0.1" }
//!
//! [[bench]]
//! name = "my_bench"
//! harness = false
//! ```
//!
//! Every measurement is made in fresh processes of the bench program, so the spread between
//! processes is part of each interval. With a saved baseline the program it was made with is kept,
//! and the next run is measured in pairs with it: a change is named only when it is one.

pub mod async_executor;
mod bencher;
mod ffi;
mod group;
mod legacy;
pub mod measurement;
pub mod profiler;

#[cfg(feature = "async")]
pub use crate::bencher::AsyncBencher;
pub use crate::bencher::Bencher;
pub use crate::group::{BenchmarkGroup, BenchmarkId, IntoBenchmarkId};
#[allow(deprecated)]
pub use crate::legacy::{Benchmark, BenchmarkDefinition, Fun, ParameterizedBenchmark};

use crate::measurement::{Measurement, WallTime};
use crate::profiler::{ExternalProfiler, Profiler};
use std::cell::RefCell;
use std::os::raw::{c_char, c_int};
use std::path::Path;
use std::time::Duration;

/// Keeps the compiler from seeing through `dummy`.
#[cfg(all(
    not(feature = "criterion-0-3"),
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
))]
#[inline(always)]
pub fn black_box<T>(dummy: T) -> T {
    // The compiler must take the memory to be read and changed; no instruction is made for it.
    unsafe {
        std::arch::asm!("/* {0} */", in(reg) &dummy as *const T as *const u8,
                        options(nostack, preserves_flags));
    }
    dummy
}

/// Keeps the compiler from seeing through `dummy`, by a copy in memory. That was so in 0.3 and takes a
/// nanosecond: figures of benchmarks so short are those of 0.3 with it.
#[cfg(any(
    feature = "criterion-0-3",
    not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))
))]
#[cfg_attr(not(feature = "criterion-0-3"), inline(never))]
pub fn black_box<T>(dummy: T) -> T {
    unsafe {
        let copy = std::ptr::read_volatile(&dummy);
        std::mem::forget(dummy);
        copy
    }
}

/// How many inputs `iter_batched` makes at a time.
#[derive(Debug, Clone, Copy, Eq, Hash, PartialEq)]
pub enum BatchSize {
    /// Inputs that take little memory: as many at a time as stay in the cache.
    SmallInput,
    /// A thousand batches a sample.
    LargeInput,
    /// One input at a time; the clock is read for each.
    PerIteration,
    /// This many batches a sample.
    NumBatches(u64),
    /// This many iterations a batch.
    NumIterations(u64),
    #[doc(hidden)]
    __NonExhaustive,
}

impl BatchSize {
    pub(crate) fn iters_per_batch(self, iters: u64) -> u64 {
        let ceil = |batches: u64| iters / batches + (iters % batches != 0) as u64;
        match self {
            BatchSize::SmallInput => ceil(10),
            BatchSize::LargeInput => ceil(1000),
            BatchSize::PerIteration => 1,
            BatchSize::NumBatches(0) => panic!("Batch size must not be zero."),
            BatchSize::NumBatches(n) => ceil(n),
            BatchSize::NumIterations(n) => n,
            BatchSize::__NonExhaustive => panic!("__NonExhaustive is not a valid BatchSize."),
        }
    }
}

/// What is done with the results of earlier runs.
#[derive(Debug, Clone, Copy)]
pub enum Baseline {
    /// Compare where the baseline has the benchmark.
    CompareLenient,
    /// Compare; a benchmark the baseline lacks is an error at the end.
    CompareStrict,
    /// The name of `CompareStrict` in 0.3.
    Compare,
    Save,
    Discard,
}

/// Accepted; drawings are made without one.
#[derive(Debug, Clone, Copy)]
pub enum PlottingBackend {
    Gnuplot,
    Plotters,
    None,
}

/// Which benchmarks run.
#[derive(Debug, Clone)]
pub enum BenchmarkFilter {
    AcceptAll,
    /// A regular expression, as text.
    Regex(String),
    Exact(String),
    RejectAll,
}

/// The work of one iteration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Throughput {
    #[cfg(not(any(feature = "criterion-0-3", feature = "criterion-0-5")))]
    Bits(u64),
    /// Shown in powers of 1024.
    Bytes(u64),
    /// Shown in powers of 1000.
    #[cfg(not(feature = "criterion-0-3"))]
    BytesDecimal(u64),
    Elements(u64),
    #[cfg(not(any(feature = "criterion-0-3", feature = "criterion-0-5")))]
    ElementsAndBytes {
        elements: u64,
        bytes: u64,
    },
}

impl Throughput {
    /// `enum as_bench_throughput` and its numbers.
    pub(crate) fn to_c(this: Option<&Throughput>) -> (c_int, u64, u64) {
        match this {
            None => (0, 0, 0),
            Some(Throughput::Bytes(n)) => (1, *n, 0),
            Some(Throughput::Elements(n)) => (2, *n, 0),
            #[cfg(not(feature = "criterion-0-3"))]
            Some(Throughput::BytesDecimal(n)) => (3, *n, 0),
            #[cfg(not(any(feature = "criterion-0-3", feature = "criterion-0-5")))]
            Some(Throughput::Bits(n)) => (4, *n, 0),
            #[cfg(not(any(feature = "criterion-0-3", feature = "criterion-0-5")))]
            Some(Throughput::ElementsAndBytes { elements, bytes }) => (5, *elements, *bytes),
        }
    }

    #[cfg_attr(any(feature = "criterion-0-3", feature = "criterion-0-5"), allow(unused_variables))]
    pub(crate) fn from_c(kind: c_int, n: u64, n2: u64) -> Option<Throughput> {
        match kind {
            1 => Some(Throughput::Bytes(n)),
            2 => Some(Throughput::Elements(n)),
            #[cfg(not(feature = "criterion-0-3"))]
            3 => Some(Throughput::BytesDecimal(n)),
            #[cfg(not(any(feature = "criterion-0-3", feature = "criterion-0-5")))]
            4 => Some(Throughput::Bits(n)),
            #[cfg(not(any(feature = "criterion-0-3", feature = "criterion-0-5")))]
            5 => Some(Throughput::ElementsAndBytes { elements: n, bytes: n2 }),
            _ => None,
        }
    }
}

/// Accepted: see [`PlotConfiguration`].
#[derive(Debug, Default, Clone, Copy)]
pub enum AxisScale {
    #[default]
    Linear,
    Logarithmic,
}

/// Accepted; there are no plots whose axes it could set.
#[derive(Debug, Clone, Default)]
pub struct PlotConfiguration {
    _private: (),
}

impl PlotConfiguration {
    pub fn summary_scale(self, _new_scale: AxisScale) -> PlotConfiguration {
        self
    }
}

/// Accepted: all batches have the same number of iterations here.
#[derive(Debug, Default, Clone, Copy)]
pub enum SamplingMode {
    #[default]
    Auto,
    Linear,
    Flat,
}

/// Limits of the settings, as criterion has them.
pub(crate) mod check {
    use std::time::Duration;

    /// Two samples give an interval; criterion wants ten.
    pub fn sample_size(n: usize) -> f64 {
        assert!(n >= 2, "sample size must be at least 2");
        n as f64
    }

    pub fn duration(d: Duration) -> f64 {
        assert!(d > Duration::from_secs(0), "duration must be more than 0");
        d.as_secs_f64()
    }

    pub fn resamples(n: usize) -> f64 {
        assert!(n > 0, "number of resamples must be more than 0");
        n as f64
    }

    pub fn noise(threshold: f64) -> f64 {
        assert!(threshold >= 0.0, "noise threshold must not be negative");
        threshold
    }

    pub fn open_share(share: f64) -> f64 {
        assert!(share > 0.0 && share < 1.0, "must lie between 0 and 1");
        share
    }
}

pub(crate) struct Owned(pub *mut ffi::Handle);

impl Owned {
    fn set_text(&self, which: c_int, text: &str) {
        let text = group::c_string(text);
        unsafe { ffi::as_criterion_set_text(self.0, which, group::pointer(&text)) };
    }

    fn configure_from_args(&self) {
        use std::os::unix::ffi::OsStringExt;
        let mut words = Vec::new();
        let mut starts = Vec::new();
        for arg in std::env::args_os() {
            starts.push(words.len());
            words.append(&mut arg.into_vec());
            words.push(0);
        }
        let argc = starts.len() as c_int;
        let mut argv = vec![std::ptr::null(); starts.len() + 1];
        for (to, start) in argv.iter_mut().zip(starts) {
            *to = words[start..].as_ptr() as *const c_char;
        }
        unsafe { ffi::as_criterion_configure(self.0, argc, argv.as_ptr()) };
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        unsafe { ffi::as_criterion_free(self.0) }
    }
}

/// The benchmark manager: settings, and the place from which benchmarks are run.
pub struct Criterion<M: Measurement = WallTime> {
    pub(crate) handle: Owned,
    pub(crate) measurement: M,
    pub(crate) profiler: Box<RefCell<dyn Profiler>>,
}

impl Default for Criterion {
    fn default() -> Criterion {
        let c = Criterion {
            handle: Owned(unsafe { ffi::as_criterion_new() }),
            measurement: WallTime,
            profiler: Box::new(RefCell::new(ExternalProfiler)),
        };
        // As criterion: always in 0.3, by that feature from 0.4 on.
        let pages = cfg!(any(feature = "html_reports", feature = "criterion-0-3"));
        c.number(ffi::CSV, cfg!(feature = "csv_output") as u8 as f64)
            .number(ffi::PLOTS, pages as u8 as f64)
    }
}

impl<M: Measurement> Criterion<M> {
    /// The same settings with another measurement.
    pub fn with_measurement<M2: Measurement>(self, m: M2) -> Criterion<M2> {
        Criterion { handle: self.handle, measurement: m, profiler: self.profiler }
    }

    pub fn with_profiler<P: Profiler + 'static>(self, p: P) -> Criterion<M> {
        Criterion { profiler: Box::new(RefCell::new(p)), ..self }
    }

    fn number(self, which: usize, value: f64) -> Self {
        unsafe { ffi::as_criterion_set_number(self.handle.0, which as c_int, value) };
        self
    }

    fn text(self, which: c_int, text: &str) -> Self {
        self.handle.set_text(which, text);
        self
    }

    pub fn plotting_backend(self, _backend: PlottingBackend) -> Criterion<M> {
        self
    }

    pub fn sample_size(self, n: usize) -> Criterion<M> {
        self.number(ffi::SAMPLE_SIZE, check::sample_size(n))
    }

    pub fn warm_up_time(self, dur: Duration) -> Criterion<M> {
        self.number(ffi::WARM_UP_S, check::duration(dur))
    }

    pub fn measurement_time(self, dur: Duration) -> Criterion<M> {
        self.number(ffi::MEASUREMENT_S, check::duration(dur))
    }

    pub fn nresamples(self, n: usize) -> Criterion<M> {
        self.number(ffi::RESAMPLES, check::resamples(n))
    }

    pub fn noise_threshold(self, threshold: f64) -> Criterion<M> {
        self.number(ffi::NOISE, check::noise(threshold))
    }

    pub fn confidence_level(self, cl: f64) -> Criterion<M> {
        self.number(ffi::CONFIDENCE, check::open_share(cl))
    }

    pub fn significance_level(self, sl: f64) -> Criterion<M> {
        self.number(ffi::SIGNIFICANCE, check::open_share(sl))
    }

    pub fn with_plots(self) -> Criterion<M> {
        self.number(ffi::PLOTS, 1.0)
    }

    pub fn without_plots(self) -> Criterion<M> {
        self.number(ffi::PLOTS, 0.0)
    }

    #[doc(hidden)]
    pub fn can_plot(&self) -> bool {
        false
    }

    pub fn save_baseline(self, baseline: String) -> Criterion<M> {
        self.text(ffi::SAVE, &baseline)
    }

    /// Compares with a baseline and leaves it as it is; `strict`: it must have every benchmark.
    #[cfg(not(feature = "criterion-0-3"))]
    pub fn retain_baseline(self, baseline: String, strict: bool) -> Criterion<M> {
        self.text(if strict { ffi::BASELINE } else { ffi::BASELINE_LENIENT }, &baseline)
    }

    /// Compares with a baseline, which must have every benchmark, and leaves it as it is.
    #[cfg(feature = "criterion-0-3")]
    pub fn retain_baseline(self, baseline: String) -> Criterion<M> {
        self.text(ffi::BASELINE, &baseline)
    }

    /// Runs what the regular expression matches.
    pub fn with_filter<S: Into<String>>(self, filter: S) -> Criterion<M> {
        self.text(ffi::FILTER, &filter.into())
    }

    pub fn with_benchmark_filter(self, filter: BenchmarkFilter) -> Criterion<M> {
        match filter {
            BenchmarkFilter::AcceptAll => self.text(ffi::FILTER, ""),
            BenchmarkFilter::Regex(text) => self.text(ffi::FILTER, &text),
            BenchmarkFilter::Exact(text) => self.text(ffi::FILTER_EXACT, &text),
            BenchmarkFilter::RejectAll => self.text(ffi::FILTER_NONE, ""),
        }
    }

    pub fn with_output_color(self, enabled: bool) -> Criterion<M> {
        self.number(ffi::COLOUR, enabled as u8 as f64)
    }

    #[doc(hidden)]
    pub fn output_directory(self, path: &Path) -> Criterion<M> {
        let path = path.to_string_lossy();
        self.text(ffi::HOME, &path)
    }

    #[doc(hidden)]
    pub fn profile_time(self, profile_time: Option<Duration>) -> Criterion<M> {
        self.number(ffi::PROFILE_S, profile_time.map_or(0.0, |d| d.as_secs_f64()))
    }

    /// What the command line says goes before what was set.
    pub fn configure_from_args(self) -> Criterion<M> {
        self.handle.configure_from_args();
        self
    }

    /// Says at the end what went wrong, if anything; the exit status tells it too.
    pub fn final_summary(&self) {
        unsafe { ffi::as_criterion_summary(self.handle.0) }
    }

    pub fn benchmark_group<S: Into<String>>(&mut self, group_name: S) -> BenchmarkGroup<'_, M> {
        BenchmarkGroup::new(self, group_name.into())
    }
}

impl<M: Measurement + 'static> Criterion<M> {
    pub fn bench_function<F>(&mut self, id: &str, f: F) -> &mut Criterion<M>
    where
        F: FnMut(&mut Bencher<'_, M>),
    {
        self.benchmark_group(id).bench_function(BenchmarkId::none(), f);
        self
    }

    pub fn bench_with_input<F, I>(&mut self, id: BenchmarkId, input: &I, f: F) -> &mut Criterion<M>
    where
        F: FnMut(&mut Bencher<'_, M>, &I),
    {
        let group = id.function_name.expect(
            "Cannot use BenchmarkId::from_parameter with Criterion::bench_with_input: \
             use a BenchmarkGroup or BenchmarkId::new.",
        );
        let id = BenchmarkId { function_name: None, parameter: id.parameter };
        self.benchmark_group(group).bench_with_input(id, input, f);
        self
    }
}

/// For assay-bench, of the same version; nobody else's.
#[doc(hidden)]
pub mod __private {
    use super::*;

    #[derive(Debug, Clone, Copy)]
    pub enum Throughput2 {
        Bytes(u64),
        Elements(u64),
    }

    impl From<Throughput2> for Throughput {
        fn from(t: Throughput2) -> Throughput {
            match t {
                Throughput2::Bytes(n) => Throughput::Bytes(n),
                Throughput2::Elements(n) => Throughput::Elements(n),
            }
        }
    }

    /// From within a benchmark, before its loop.
    pub fn throughput(t: Throughput2) {
        let (kind, n, n2) = Throughput::to_c(Some(&t.into()));
        unsafe { ffi::as_criterion_throughput(kind, n, n2) }
    }

    #[inline]
    pub fn run(
        c: &mut Criterion,
        group: &str,
        function_name: Option<String>,
        parameter: Option<String>,
        throughput: Option<Throughput2>,
        threads: u32,
        f: &(dyn Fn(&mut Bencher<'_>) + Sync),
    ) {
        let mut group = c.benchmark_group(group);
        if let Some(t) = throughput {
            group.throughput(t.into());
        }
        group.run_in_threads(BenchmarkId { function_name, parameter }, threads, f);
    }
}

#[doc(hidden)]
#[inline]
pub fn runner(benches: &[&dyn Fn()]) {
    for bench in benches {
        bench();
    }
    Criterion::default().configure_from_args().final_summary();
}

/// Makes a function of benchmark functions, which [`criterion_main!`] calls.
#[macro_export]
macro_rules! criterion_group {
    (name = $name:ident; config = $config:expr; targets = $( $target:path ),+ $(,)*) => {
        #[doc = "Runs this group's benchmarks."]
        pub fn $name() {
            let mut criterion: $crate::Criterion<_> = $config
                .configure_from_args();
            $(
                $target(&mut criterion);
            )+
        }
    };
    ($name:ident, $( $target:path ),+ $(,)*) => {
        $crate::criterion_group! {
            name = $name;
            config = $crate::Criterion::default();
            targets = $( $target ),+
        }
    }
}

/// The program's `main`: runs the groups one after the other.
#[macro_export]
macro_rules! criterion_main {
    ( $( $group:path ),+ $(,)* ) => {
        fn main() {
            $(
                $group();
            )+
            $crate::Criterion::default()
                .configure_from_args()
                .final_summary();
        }
    }
}
