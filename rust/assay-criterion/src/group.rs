// SPDX-License-Identifier: MIT OR Apache-2.0
//! Groups of benchmarks, their ids, and the call into the harness.

use crate::ffi;
use crate::measurement::{Measurement, WallTime};
use crate::{check, Bencher, Criterion, PlotConfiguration, SamplingMode, Throughput};
use std::any::{type_name, Any};
use std::ffi::{CStr, CString};
use std::fmt::Display;
use std::os::raw::{c_char, c_int, c_void};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::path::Path;
use std::ptr;
use std::time::Duration;

/// Benchmarks that belong together; settings made here hold for those that follow in the group.
pub struct BenchmarkGroup<'a, M: Measurement> {
    criterion: &'a mut Criterion<M>,
    name: String,
    ids: Vec<(Option<String>, Option<String>)>,
    numbers: [f64; ffi::NUMBERS],
    throughput: Option<Throughput>,
}

impl<'a, M: Measurement> BenchmarkGroup<'a, M> {
    pub(crate) fn new(criterion: &'a mut Criterion<M>, name: String) -> Self {
        assert!(!name.is_empty(), "Group name must not be empty.");
        BenchmarkGroup {
            criterion,
            name,
            ids: Vec::new(),
            numbers: [f64::NAN; ffi::NUMBERS],
            throughput: None,
        }
    }

    pub(crate) fn set(&mut self, numbers: &[f64; ffi::NUMBERS]) {
        self.numbers = *numbers;
    }

    pub fn sample_size(&mut self, n: usize) -> &mut Self {
        self.numbers[ffi::SAMPLE_SIZE] = check::sample_size(n);
        self
    }

    pub fn warm_up_time(&mut self, dur: Duration) -> &mut Self {
        self.numbers[ffi::WARM_UP_S] = check::duration(dur);
        self
    }

    pub fn measurement_time(&mut self, dur: Duration) -> &mut Self {
        self.numbers[ffi::MEASUREMENT_S] = check::duration(dur);
        self
    }

    pub fn nresamples(&mut self, n: usize) -> &mut Self {
        self.numbers[ffi::RESAMPLES] = check::resamples(n);
        self
    }

    pub fn noise_threshold(&mut self, threshold: f64) -> &mut Self {
        self.numbers[ffi::NOISE] = check::noise(threshold);
        self
    }

    pub fn confidence_level(&mut self, cl: f64) -> &mut Self {
        self.numbers[ffi::CONFIDENCE] = check::open_share(cl);
        self
    }

    pub fn significance_level(&mut self, sl: f64) -> &mut Self {
        self.numbers[ffi::SIGNIFICANCE] = check::open_share(sl);
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
        self.throughput = Some(throughput);
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
        self.run_as(id, 1, f, run::<M>);
    }

    fn run_as(
        &mut self,
        id: BenchmarkId,
        threads: u32,
        f: &mut dyn FnMut(&mut Bencher<'_, M>),
        run: unsafe extern "C" fn(*mut c_void, u64) -> f64,
    ) {
        let key = (id.function_name, id.parameter);
        assert!(!self.ids.contains(&key), "Benchmark IDs must be unique within a group.");
        let group = c_string(&self.name);
        let function = key.0.as_deref().map(c_string);
        let value = key.1.as_deref().map(c_string);
        self.ids.push(key);

        let mut call = Call { f, shared: None, criterion: &*self.criterion, panic: None };
        call.start(self, &group, function.as_ref(), value.as_ref(), threads, run);
        if let Some(payload) = call.panic.take() {
            resume_unwind(payload);
        }
    }
}

impl<'a> BenchmarkGroup<'a, WallTime> {
    /// `f` is called from each thread.
    pub(crate) fn run_in_threads(
        &mut self,
        id: BenchmarkId,
        threads: u32,
        f: &(dyn Fn(&mut Bencher<'_>) + Sync),
    ) {
        let group = c_string(&self.name);
        let function = id.function_name.as_deref().map(c_string);
        let value = id.parameter.as_deref().map(c_string);
        let none = &mut |_: &mut Bencher<'_>| {};
        let mut call = Call { f: none, shared: Some(f), criterion: &*self.criterion, panic: None };
        call.start(self, &group, function.as_ref(), value.as_ref(), threads, run_shared);
    }
}

impl<'f, M: Measurement> Call<'f, M> {
    fn start(
        &mut self,
        of: &BenchmarkGroup<'_, M>,
        group: &CString,
        function: Option<&CString>,
        value: Option<&CString>,
        threads: u32,
        run: unsafe extern "C" fn(*mut c_void, u64) -> f64,
    ) {
        let ctx = self as *mut Call<'_, M> as *mut c_void;
        let unit = ffi::Unit {
            ctx,
            wall_time: (type_name::<M>() == type_name::<WallTime>()) as c_int,
            format_value: format_value::<M>,
            format_throughput: format_throughput::<M>,
            for_machines: for_machines::<M>,
            profile: profile::<M>,
        };
        let (throughput, n, n2) = Throughput::to_c(of.throughput.as_ref());
        let spec = ffi::Spec {
            size: std::mem::size_of::<ffi::Spec>() as u32,
            throughput,
            n,
            n2,
            group: group.as_ptr(),
            function: function.map_or(ptr::null(), |s| s.as_ptr()),
            value: value.map_or(ptr::null(), |s| s.as_ptr()),
            numbers: of.numbers,
            unit: &unit,
            run,
            ctx,
            threads,
        };
        // Safe: everything `spec` points to outlives the call, and the callbacks get `self` back.
        unsafe { ffi::as_criterion_one(of.criterion.handle.0, &spec) };
    }
}

fn c_string(s: &str) -> CString {
    CString::new(s.replace('\0', "\u{fffd}")).expect("no NUL is left")
}

struct Call<'f, M: Measurement> {
    f: &'f mut dyn FnMut(&mut Bencher<'_, M>),
    shared: Option<&'f (dyn Fn(&mut Bencher<'_, M>) + Sync)>,
    criterion: &'f Criterion<M>,
    panic: Option<Box<dyn Any + Send>>,
}

/// NaN: the benchmark panicked.
unsafe extern "C" fn run<M: Measurement>(ctx: *mut c_void, iters: u64) -> f64 {
    let call = &mut *(ctx as *mut Call<'_, M>);
    let measurement = &call.criterion.measurement;
    let f = &mut call.f;
    let result = catch_unwind(AssertUnwindSafe(|| {
        let value = measurement.zero();
        let mut b = Bencher { iterated: false, iters, value, measurement };
        f(&mut b);
        b.assert_iterated();
        measurement.to_f64(&b.value)
    }));
    match result {
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
    let call = &*(ctx as *const Call<'_, WallTime>);
    let result = catch_unwind(AssertUnwindSafe(|| {
        let (value, measurement) = (Duration::from_secs(0), &WallTime);
        let mut b = Bencher { iterated: false, iters, value, measurement };
        if let Some(f) = call.shared {
            f(&mut b);
        }
        b.assert_iterated();
        measurement.to_f64(&b.value)
    }));
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

unsafe extern "C" fn format_value<M: Measurement>(
    ctx: *mut c_void,
    value: f64,
    out: *mut c_char,
    cap: usize,
) {
    let call = &*(ctx as *const Call<'_, M>);
    let formatter = || call.criterion.measurement.formatter().format_value(value);
    put(&guarded(formatter, "?".into()), out, cap);
}

unsafe extern "C" fn format_throughput<M: Measurement>(
    ctx: *mut c_void,
    kind: c_int,
    n: u64,
    n2: u64,
    value: f64,
    out: *mut c_char,
    cap: usize,
) {
    let call = &*(ctx as *const Call<'_, M>);
    let text = || match Throughput::from_c(kind, n, n2) {
        Some(t) => call.criterion.measurement.formatter().format_throughput(&t, value),
        None => String::new(),
    };
    put(&guarded(text, "?".into()), out, cap);
}

/// Scales in place. The unit's name as a C string that lives until the next call in this thread.
unsafe extern "C" fn for_machines<M: Measurement>(
    ctx: *mut c_void,
    values: *mut f64,
    n: usize,
) -> *const c_char {
    use std::cell::RefCell;
    thread_local!(static NAME: RefCell<CString> = RefCell::new(CString::default()));
    let call = &*(ctx as *const Call<'_, M>);
    let mut none = [0.0];
    let values = if n == 0 { &mut none[..] } else { std::slice::from_raw_parts_mut(values, n) };
    let scale = || call.criterion.measurement.formatter().scale_for_machines(values);
    let unit = guarded(scale, "?");
    NAME.with(|name| {
        *name.borrow_mut() = c_string(unit);
        let text = name.borrow().as_ptr();
        text
    })
}

unsafe extern "C" fn profile<M: Measurement>(
    ctx: *mut c_void,
    start: c_int,
    id: *const c_char,
    folder: *const c_char,
) {
    let call = &*(ctx as *const Call<'_, M>);
    let id = CStr::from_ptr(id).to_string_lossy();
    let folder = CStr::from_ptr(folder).to_string_lossy();
    let folder = Path::new(&*folder);
    let mut profiler = call.criterion.profiler.borrow_mut();
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
