// SPDX-License-Identifier: MIT OR Apache-2.0
//! What criterion 0.4 took out: `Criterion::bench` and the kinds of benchmarks it takes.
#![allow(deprecated)]

use crate::ffi;
use crate::group::{BenchmarkGroup, BenchmarkId};
use crate::measurement::{Measurement, WallTime};
use crate::{check, Bencher, Criterion, PlotConfiguration, SamplingMode, Throughput};
use std::fmt::Debug;
use std::time::Duration;

type Routine<M, T> = Box<dyn FnMut(&mut Bencher<'_, M>, &T)>;

/// A function for [`Criterion::bench_functions`].
#[deprecated(note = "use BenchmarkGroup")]
pub struct Fun<I: Debug, M: Measurement + 'static = WallTime> {
    name: String,
    f: Routine<M, I>,
}

impl<I: Debug + 'static, M: Measurement> Fun<I, M> {
    pub fn new<F>(name: &str, f: F) -> Fun<I, M>
    where
        F: FnMut(&mut Bencher<'_, M>, &I) + 'static,
    {
        Fun { name: name.to_owned(), f: Box::new(f) }
    }
}

/// Functions that are run once each.
#[deprecated(note = "use BenchmarkGroup")]
pub struct Benchmark<M: Measurement = WallTime> {
    numbers: [f64; ffi::NUMBERS],
    routines: Vec<(String, Routine<M, ()>)>,
    throughput: Option<Throughput>,
}

/// Functions that are run once for each parameter.
#[deprecated(note = "use BenchmarkGroup")]
pub struct ParameterizedBenchmark<T: Debug, M: Measurement = WallTime> {
    numbers: [f64; ffi::NUMBERS],
    values: Vec<T>,
    routines: Vec<(String, Routine<M, T>)>,
    throughput: Option<Box<dyn Fn(&T) -> Throughput>>,
}

/// What [`Criterion::bench`] takes.
#[deprecated(note = "use BenchmarkGroup")]
pub trait BenchmarkDefinition<M: Measurement = WallTime>: Sized {
    #[doc(hidden)]
    fn run(self, group_id: &str, c: &mut Criterion<M>);
}

macro_rules! settings {
    () => {
        pub fn sample_size(mut self, n: usize) -> Self {
            self.numbers[ffi::SAMPLE_SIZE] = check::sample_size(n);
            self
        }

        pub fn warm_up_time(mut self, dur: Duration) -> Self {
            self.numbers[ffi::WARM_UP_S] = check::duration(dur);
            self
        }

        pub fn measurement_time(mut self, dur: Duration) -> Self {
            self.numbers[ffi::MEASUREMENT_S] = check::duration(dur);
            self
        }

        pub fn nresamples(mut self, n: usize) -> Self {
            self.numbers[ffi::RESAMPLES] = check::resamples(n);
            self
        }

        pub fn noise_threshold(mut self, threshold: f64) -> Self {
            self.numbers[ffi::NOISE] = check::noise(threshold);
            self
        }

        pub fn confidence_level(mut self, cl: f64) -> Self {
            self.numbers[ffi::CONFIDENCE] = check::open_share(cl);
            self
        }

        pub fn significance_level(mut self, sl: f64) -> Self {
            self.numbers[ffi::SIGNIFICANCE] = check::open_share(sl);
            self
        }

        pub fn plot_config(self, _new_config: PlotConfiguration) -> Self {
            self
        }

        pub fn sampling_mode(self, _new_mode: SamplingMode) -> Self {
            self
        }
    };
}

impl<M: Measurement + 'static> Benchmark<M> {
    settings!();

    pub fn new<S: Into<String>, F>(id: S, f: F) -> Benchmark<M>
    where
        F: FnMut(&mut Bencher<'_, M>) + 'static,
    {
        let none =
            Benchmark { numbers: [f64::NAN; ffi::NUMBERS], routines: Vec::new(), throughput: None };
        none.with_function(id, f)
    }

    pub fn with_function<S: Into<String>, F>(mut self, id: S, mut f: F) -> Benchmark<M>
    where
        F: FnMut(&mut Bencher<'_, M>) + 'static,
    {
        self.routines.push((id.into(), Box::new(move |b, _| f(b))));
        self
    }

    pub fn throughput(mut self, throughput: Throughput) -> Benchmark<M> {
        self.throughput = Some(throughput);
        self
    }
}

impl<T: Debug + 'static, M: Measurement + 'static> ParameterizedBenchmark<T, M> {
    settings!();

    pub fn new<S, F, I>(id: S, f: F, parameters: I) -> ParameterizedBenchmark<T, M>
    where
        S: Into<String>,
        F: FnMut(&mut Bencher<'_, M>, &T) + 'static,
        I: IntoIterator<Item = T>,
    {
        let none = ParameterizedBenchmark {
            numbers: [f64::NAN; ffi::NUMBERS],
            values: parameters.into_iter().collect(),
            routines: Vec::new(),
            throughput: None,
        };
        none.with_function(id, f)
    }

    pub fn with_function<S: Into<String>, F>(mut self, id: S, f: F) -> ParameterizedBenchmark<T, M>
    where
        F: FnMut(&mut Bencher<'_, M>, &T) + 'static,
    {
        self.routines.push((id.into(), Box::new(f)));
        self
    }

    pub fn throughput<F>(mut self, throughput: F) -> ParameterizedBenchmark<T, M>
    where
        F: Fn(&T) -> Throughput + 'static,
    {
        self.throughput = Some(Box::new(throughput));
        self
    }
}

/// The group's own name is not said twice.
fn function_of(routines: usize, group_id: &str, id: &str) -> Option<String> {
    if routines == 1 && group_id == id {
        None
    } else {
        Some(id.to_owned())
    }
}

impl<M: Measurement> BenchmarkDefinition<M> for Benchmark<M> {
    fn run(self, group_id: &str, c: &mut Criterion<M>) {
        let routines = self.routines.len();
        for (id, mut f) in self.routines {
            // A group each: 0.3 let ids repeat here.
            let mut group = BenchmarkGroup::new(c, group_id.to_owned());
            group.set(&self.numbers);
            if let Some(throughput) = &self.throughput {
                group.throughput(throughput.clone());
            }
            let function_name = function_of(routines, group_id, &id);
            group.run(BenchmarkId { function_name, parameter: None }, &mut |b| f(b, &()));
        }
    }
}

impl<T: Debug + 'static, M: Measurement> BenchmarkDefinition<M> for ParameterizedBenchmark<T, M> {
    fn run(self, group_id: &str, c: &mut Criterion<M>) {
        let routines = self.routines.len();
        for (id, mut f) in self.routines {
            for value in &self.values {
                let mut group = BenchmarkGroup::new(c, group_id.to_owned());
                group.set(&self.numbers);
                if let Some(throughput) = &self.throughput {
                    group.throughput(throughput(value));
                }
                let function_name = function_of(routines, group_id, &id);
                let parameter = match self.values.len() {
                    1 => None,
                    _ => Some(format!("{:?}", value)),
                };
                group.run(BenchmarkId { function_name, parameter }, &mut |b| f(b, value));
            }
        }
    }
}

impl<M: Measurement + 'static> Criterion<M> {
    #[doc(hidden)]
    #[deprecated(note = "use BenchmarkGroup")]
    pub fn bench_function_over_inputs<I, F>(
        &mut self,
        id: &str,
        f: F,
        inputs: I,
    ) -> &mut Criterion<M>
    where
        I: IntoIterator,
        I::Item: Debug + 'static,
        F: FnMut(&mut Bencher<'_, M>, &I::Item) + 'static,
    {
        self.bench(id, ParameterizedBenchmark::new(id, f, inputs))
    }

    #[doc(hidden)]
    #[deprecated(note = "use BenchmarkGroup")]
    pub fn bench_functions<I: Debug + 'static>(
        &mut self,
        id: &str,
        funs: Vec<Fun<I, M>>,
        input: I,
    ) -> &mut Criterion<M> {
        let benchmark = ParameterizedBenchmark {
            numbers: [f64::NAN; ffi::NUMBERS],
            values: vec![input],
            routines: funs.into_iter().map(|fun| (fun.name, fun.f)).collect(),
            throughput: None,
        };
        self.bench(id, benchmark)
    }

    #[doc(hidden)]
    #[deprecated(note = "use BenchmarkGroup")]
    pub fn bench<B: BenchmarkDefinition<M>>(
        &mut self,
        group_id: &str,
        benchmark: B,
    ) -> &mut Criterion<M> {
        benchmark.run(group_id, self);
        self
    }
}
