// SPDX-License-Identifier: MIT OR Apache-2.0
//! Groups of benchmarks, their ids, and the call into the harness.

use crate::ffi;
use crate::measurement::{Measurement, ValueFormatter, WallTime};
use crate::profiler::Profiler;
use crate::{check, Bencher, Criterion, PlotConfiguration, SamplingMode, Throughput};
use std::any::{type_name, Any};
use std::cell::RefCell;
use std::ffi::CStr;
use std::fmt::Display;
use std::os::raw::{c_char, c_int, c_void};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::path::Path;
use std::ptr;
use std::time::Duration;

/// Benchmarks that belong together; settings made here hold for those that follow in the group.
pub struct BenchmarkGroup<'a, M: Measurement> {
    criterion: &'a mut Criterion<M>,
    group: Group,
}

/// What is the same for all measurements, so that it is compiled once, and here.
struct Group {
    name: String,
    ids: Vec<(Option<String>, Option<String>)>,
    numbers: [f64; ffi::NUMBERS],
    throughput: Option<Throughput>,
}

impl Group {
    fn new(name: String) -> Group {
        assert!(!name.is_empty(), "Group name must not be empty.");
        Group { name, ids: Vec::new(), numbers: [f64::NAN; ffi::NUMBERS], throughput: None }
    }

    fn run(&mut self, handle: *mut ffi::Handle, id: BenchmarkId, call: &mut Call<'_>) {
        let key = (id.function_name, id.parameter);
        assert!(!self.ids.contains(&key), "Benchmark IDs must be unique within a group.");
        let group = c_string(&self.name);
        let function = key.0.as_deref().map(c_string);
        let value = key.1.as_deref().map(c_string);
        self.ids.push(key);

        let ctx = call as *mut Call<'_> as *mut c_void;
        let unit = ffi::Unit {
            ctx,
            wall_time: call.wall_time as c_int,
            format_value,
            format_throughput,
            for_machines,
            profile,
        };
        let (throughput, n, n2) = Throughput::to_c(self.throughput.as_ref());
        let spec = ffi::Spec {
            size: std::mem::size_of::<ffi::Spec>() as u32,
            throughput,
            n,
            n2,
            group: pointer(&group),
            function: function.as_ref().map_or(ptr::null(), pointer),
            value: value.as_ref().map_or(ptr::null(), pointer),
            numbers: self.numbers,
            unit: &unit,
            run: if call.shared.is_some() { run_shared } else { run },
            ctx,
            threads: call.threads,
        };
        // Safe: everything `spec` points to outlives the call, and the callbacks get `call` back.
        unsafe { ffi::as_criterion_one(handle, &spec) };
        if let Some(payload) = call.panic.take() {
            resume_unwind(payload);
        }
    }
}

impl<'a, M: Measurement> BenchmarkGroup<'a, M> {
    pub(crate) fn new(criterion: &'a mut Criterion<M>, name: String) -> Self {
        BenchmarkGroup { criterion, group: Group::new(name) }
    }

    pub(crate) fn set(&mut self, numbers: &[f64; ffi::NUMBERS]) {
        self.group.numbers = *numbers;
    }

    pub fn sample_size(&mut self, n: usize) -> &mut Self {
        self.group.numbers[ffi::SAMPLE_SIZE] = check::sample_size(n);
        self
    }

    pub fn warm_up_time(&mut self, dur: Duration) -> &mut Self {
        self.group.numbers[ffi::WARM_UP_S] = check::duration(dur);
        self
    }

    pub fn measurement_time(&mut self, dur: Duration) -> &mut Self {
        self.group.numbers[ffi::MEASUREMENT_S] = check::duration(dur);
        self
    }

    pub fn nresamples(&mut self, n: usize) -> &mut Self {
        self.group.numbers[ffi::RESAMPLES] = check::resamples(n);
        self
    }

    pub fn noise_threshold(&mut self, threshold: f64) -> &mut Self {
        self.group.numbers[ffi::NOISE] = check::noise(threshold);
        self
    }

    pub fn confidence_level(&mut self, cl: f64) -> &mut Self {
        self.group.numbers[ffi::CONFIDENCE] = check::open_share(cl);
        self
    }

    pub fn significance_level(&mut self, sl: f64) -> &mut Self {
        self.group.numbers[ffi::SIGNIFICANCE] = check::open_share(sl);
        self
    }

    /// Accepted; there are no plots whose axes it could set.
    pub fn plot_config(&mut self, _new_config: PlotConfiguration) -> &mut Self {
        self
    }

    /// Accepted; all batches have the same number of iterations here.
    pub fn sampling_mode(&mut self, _new_mode: SamplingMode) -> &mut Self {
        self
    }

    /// The work of one iteration, from which rates are computed.
    pub fn throughput(&mut self, throughput: Throughput) -> &mut Self {
        self.group.throughput = Some(throughput);
        self
    }

    pub fn bench_function<ID: IntoBenchmarkId, F>(&mut self, id: ID, mut f: F) -> &mut Self
    where
        F: FnMut(&mut Bencher<'_, M>),
    {
        self.run(id.into_benchmark_id(), &mut |b| f(b));
        self
    }

    pub fn bench_with_input<ID: IntoBenchmarkId, F, I>(
        &mut self,
        id: ID,
        input: &I,
        mut f: F,
    ) -> &mut Self
    where
        F: FnMut(&mut Bencher<'_, M>, &I),
        I: ?Sized,
    {
        self.run(id.into_benchmark_id(), &mut |b| f(b, input));
        self
    }

    /// Ends the group; dropping it does the same.
    pub fn finish(self) {}

    pub(crate) fn run(&mut self, id: BenchmarkId, f: &mut dyn FnMut(&mut Bencher<'_, M>)) {
        let criterion = &*self.criterion;
        let measurement = &criterion.measurement;
        let mut batch = |iters| batch_of(measurement, iters, &mut *f);
        let mut call = Call {
            batch: &mut batch,
            shared: None,
            threads: 1,
            wall_time: type_name::<M>() == type_name::<WallTime>(),
            measurement,
            profiler: &criterion.profiler,
            panic: None,
        };
        self.group.run(criterion.handle.0, id, &mut call);
    }
}

impl<'a> BenchmarkGroup<'a, WallTime> {
    /// `f` is called from each thread.
    #[inline]
    pub(crate) fn run_in_threads(
        &mut self,
        id: BenchmarkId,
        threads: u32,
        f: &(dyn Fn(&mut Bencher<'_>) + Sync),
    ) {
        let criterion = &*self.criterion;
        let batch = |iters| batch_of(&WallTime, iters, &mut |b| f(b));
        let mut call = Call {
            batch: &mut |_| f64::NAN,
            shared: Some(&batch),
            threads,
            wall_time: true,
            measurement: &WallTime,
            profiler: &criterion.profiler,
            panic: None,
        };
        self.group.run(criterion.handle.0, id, &mut call);
    }
}

/// What `iters` iterations measure.
fn batch_of<M: Measurement>(
    measurement: &M,
    iters: u64,
    f: &mut dyn FnMut(&mut Bencher<'_, M>),
) -> f64 {
    let mut b = Bencher { iterated: false, iters, value: measurement.zero(), measurement };
    f(&mut b);
    b.assert_iterated();
    measurement.to_f64(&b.value)
}

/// A measurement of any kind, for what does not depend on the kind.
trait Formats {
    fn its_formatter(&self) -> &dyn ValueFormatter;
}

impl<M: Measurement> Formats for M {
    fn its_formatter(&self) -> &dyn ValueFormatter {
        self.formatter()
    }
}

/// NUL at its end, and none within.
pub(crate) fn c_string(s: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(s.len() + 1);
    for byte in s.bytes() {
        match byte {
            0 => bytes.extend_from_slice("\u{fffd}".as_bytes()),
            _ => bytes.push(byte),
        }
    }
    bytes.push(0);
    bytes
}

pub(crate) fn pointer(c_string: &Vec<u8>) -> *const c_char {
    c_string.as_ptr() as *const c_char
}

struct Call<'f> {
    batch: &'f mut dyn FnMut(u64) -> f64,
    shared: Option<&'f (dyn Fn(u64) -> f64 + Sync)>,
    threads: u32,
    wall_time: bool,
    measurement: &'f dyn Formats,
    profiler: &'f RefCell<dyn Profiler>,
    panic: Option<Box<dyn Any + Send>>,
}

/// NaN: the benchmark panicked.
unsafe extern "C" fn run(ctx: *mut c_void, iters: u64) -> f64 {
    let call = &mut *(ctx as *mut Call<'_>);
    let batch = &mut call.batch;
    match catch_unwind(AssertUnwindSafe(|| batch(iters))) {
        Ok(value) => value,
        Err(payload) => {
            // The message is on standard error already; a worker has nobody to unwind to.
            if ffi::as_criterion_is_worker() != 0 {
                // Not exit: what is registered for the end is the main process's business.
                ffi::_exit(101);
            }
            call.panic = Some(payload);
            f64::NAN
        }
    }
}

/// As `run`, from several threads at once.
unsafe extern "C" fn run_shared(ctx: *mut c_void, iters: u64) -> f64 {
    let call = &*(ctx as *const Call<'_>);
    let result = catch_unwind(AssertUnwindSafe(|| call.shared.map_or(f64::NAN, |f| f(iters))));
    match result {
        Ok(value) => value,
        Err(_) if ffi::as_criterion_is_worker() != 0 => ffi::_exit(101),
        Err(_) => f64::NAN,
    }
}

unsafe fn put(text: &str, out: *mut c_char, cap: usize) {
    if cap == 0 {
        return;
    }
    let mut n = text.len().min(cap - 1);
    while !text.is_char_boundary(n) {
        n -= 1;
    }
    ptr::copy_nonoverlapping(text.as_ptr(), out as *mut u8, n);
    *out.add(n) = 0;
}

/// What a formatter of the user returns; a panic of his becomes "?".
fn guarded<T>(f: impl FnOnce() -> T, otherwise: T) -> T {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or(otherwise)
}

unsafe extern "C" fn format_value(ctx: *mut c_void, value: f64, out: *mut c_char, cap: usize) {
    let call = &*(ctx as *const Call<'_>);
    let formatter = || call.measurement.its_formatter().format_value(value);
    put(&guarded(formatter, "?".into()), out, cap);
}

unsafe extern "C" fn format_throughput(
    ctx: *mut c_void,
    kind: c_int,
    n: u64,
    n2: u64,
    value: f64,
    out: *mut c_char,
    cap: usize,
) {
    let call = &*(ctx as *const Call<'_>);
    let text = || match Throughput::from_c(kind, n, n2) {
        Some(t) => call.measurement.its_formatter().format_throughput(&t, value),
        None => String::new(),
    };
    put(&guarded(text, "?".into()), out, cap);
}

/// Scales in place. The unit's name as a C string that lives until the next call in this thread.
unsafe extern "C" fn for_machines(ctx: *mut c_void, values: *mut f64, n: usize) -> *const c_char {
    thread_local!(static NAME: RefCell<Vec<u8>> = RefCell::new(Vec::new()));
    let call = &*(ctx as *const Call<'_>);
    let mut none = [0.0];
    let values = if n == 0 { &mut none[..] } else { std::slice::from_raw_parts_mut(values, n) };
    let scale = || call.measurement.its_formatter().scale_for_machines(values);
    let unit = guarded(scale, "?");
    NAME.with(|name| {
        *name.borrow_mut() = c_string(unit);
        let text = pointer(&name.borrow());
        text
    })
}

unsafe extern "C" fn profile(
    ctx: *mut c_void,
    start: c_int,
    id: *const c_char,
    folder: *const c_char,
) {
    let call = &*(ctx as *const Call<'_>);
    let id = CStr::from_ptr(id).to_string_lossy();
    let folder = CStr::from_ptr(folder).to_string_lossy();
    let folder = Path::new(&*folder);
    let mut profiler = call.profiler.borrow_mut();
    guarded(
        || match start {
            0 => profiler.stop_profiling(&id, folder),
            _ => profiler.start_profiling(&id, folder),
        },
        (),
    );
}

/// Names a benchmark: a function, a parameter, or both.
#[derive(Clone, Eq, PartialEq, Hash)]
pub struct BenchmarkId {
    pub(crate) function_name: Option<String>,
    pub(crate) parameter: Option<String>,
}

impl BenchmarkId {
    pub fn new<S: Into<String>, P: Display>(function_name: S, parameter: P) -> BenchmarkId {
        BenchmarkId {
            function_name: Some(function_name.into()),
            parameter: Some(parameter.to_string()),
        }
    }

    pub fn from_parameter<P: Display>(parameter: P) -> BenchmarkId {
        BenchmarkId { function_name: None, parameter: Some(parameter.to_string()) }
    }

    pub(crate) fn none() -> BenchmarkId {
        BenchmarkId { function_name: None, parameter: None }
    }
}

impl std::fmt::Debug for BenchmarkId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "BenchmarkId {{ function_name: {:?}, parameter: {:?} }}",
            self.function_name, self.parameter
        )
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::BenchmarkId {}
    impl<S: Into<String>> Sealed for S {}
}

/// Everything that names a benchmark inside a group: a [`BenchmarkId`] or a string.
pub trait IntoBenchmarkId: sealed::Sealed {
    fn into_benchmark_id(self) -> BenchmarkId;
}

impl IntoBenchmarkId for BenchmarkId {
    fn into_benchmark_id(self) -> BenchmarkId {
        self
    }
}

impl<S: Into<String>> IntoBenchmarkId for S {
    fn into_benchmark_id(self) -> BenchmarkId {
        let name = self.into();
        assert!(!name.is_empty(), "Function name must not be empty.");
        BenchmarkId { function_name: Some(name), parameter: None }
    }
}
