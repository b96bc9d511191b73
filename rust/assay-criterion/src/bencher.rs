// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loops around the code that is measured.

use crate::black_box;
use crate::measurement::{Measurement, WallTime};
use crate::BatchSize;

/// Batches of at most `$full` until all iterations are done: `$took` is what one of `$batch`
/// inputs measured, and `$single` whether every batch is one input. A macro, as what it measures is
/// asynchronous in some places.
macro_rules! in_batches {
    ($b:expr, $full:expr, |$batch:ident, $single:tt| $took:expr) => {{
        $b.iterated = true;
        $b.value = $b.measurement.zero();
        let mut left = $b.iters;
        let full: u64 = $full;
        let $single = full == 1;
        while left > 0 {
            let $batch = full.min(left);
            let took = $took;
            $b.value = $b.measurement.add(&$b.value, &took);
            left -= $batch;
        }
    }};
}

/// Handed to the benchmark function, which calls exactly one of its methods.
pub struct Bencher<'a, M: Measurement = WallTime> {
    pub(crate) iterated: bool,
    pub(crate) iters: u64,
    pub(crate) value: M::Value,
    pub(crate) measurement: &'a M,
}

impl<'a, M: Measurement> Bencher<'a, M> {
    /// Measures `routine`; what it returns is dropped inside the measured time.
    #[inline(never)]
    pub fn iter<O, R>(&mut self, mut routine: R)
    where
        R: FnMut() -> O,
    {
        self.iterated = true;
        let start = begin(self.measurement);
        for _ in 0..self.iters {
            black_box(routine());
        }
        self.value = end(self.measurement, start);
    }

    /// `routine(n)` runs the code n times itself and returns what that took.
    #[inline(never)]
    pub fn iter_custom<R>(&mut self, mut routine: R)
    where
        R: FnMut(u64) -> M::Value,
    {
        self.iterated = true;
        self.value = routine(self.iters);
    }

    #[doc(hidden)]
    pub fn iter_with_setup<I, O, S, R>(&mut self, setup: S, routine: R)
    where
        S: FnMut() -> I,
        R: FnMut(I) -> O,
    {
        self.iter_batched(setup, routine, BatchSize::PerIteration);
    }

    /// As `iter`, with the results dropped outside the measured time.
    pub fn iter_with_large_drop<O, R>(&mut self, mut routine: R)
    where
        R: FnMut() -> O,
    {
        self.iter_batched(|| (), |_| routine(), BatchSize::SmallInput);
    }

    #[doc(hidden)]
    pub fn iter_with_large_setup<I, O, S, R>(&mut self, setup: S, routine: R)
    where
        S: FnMut() -> I,
        R: FnMut(I) -> O,
    {
        self.iter_batched(setup, routine, BatchSize::NumBatches(1));
    }

    /// Every iteration gets an input of its own; making it and dropping the result are not measured.
    #[inline(never)]
    pub fn iter_batched<I, O, S, R>(&mut self, mut setup: S, mut routine: R, size: BatchSize)
    where
        S: FnMut() -> I,
        R: FnMut(I) -> O,
    {
        in_batches!(self, batch_of::<I>(size, self.iters), |batch, single| {
            if single {
                let input = black_box(setup());
                let start = begin(self.measurement);
                let output = routine(input);
                let took = end(self.measurement, start);
                drop(black_box(output));
                took
            } else {
                let inputs = black_box((0..batch).map(|_| setup()).collect::<Vec<_>>());
                let mut outputs = Vec::with_capacity(batch as usize);
                let start = begin(self.measurement);
                outputs.extend(inputs.into_iter().map(&mut routine));
                let took = end(self.measurement, start);
                black_box(outputs);
                took
            }
        });
    }

    /// As `iter_batched`; `routine` borrows the input, which is dropped outside the measured time.
    #[inline(never)]
    pub fn iter_batched_ref<I, O, S, R>(&mut self, mut setup: S, mut routine: R, size: BatchSize)
    where
        S: FnMut() -> I,
        R: FnMut(&mut I) -> O,
    {
        in_batches!(self, batch_of::<I>(size, self.iters), |batch, single| {
            if single {
                let mut input = black_box(setup());
                let start = begin(self.measurement);
                let output = routine(&mut input);
                let took = end(self.measurement, start);
                drop(black_box(output));
                drop(black_box(input));
                took
            } else {
                let mut inputs = black_box((0..batch).map(|_| setup()).collect::<Vec<_>>());
                let mut outputs = Vec::with_capacity(batch as usize);
                let start = begin(self.measurement);
                outputs.extend(inputs.iter_mut().map(&mut routine));
                let took = end(self.measurement, start);
                black_box(outputs);
                black_box(inputs);
                took
            }
        });
    }

    /// The same methods for routines that return futures.
    #[cfg(feature = "async")]
    pub fn to_async<'b, A>(&'b mut self, runner: A) -> AsyncBencher<'a, 'b, A, M>
    where
        A: crate::async_executor::AsyncExecutor,
    {
        AsyncBencher { b: self, runner }
    }

    pub(crate) fn assert_iterated(&self) {
        assert!(self.iterated, "Benchmark function must call Bencher::iter or related method.");
    }
}

/// The harness knows what is timed: it counts allocations there, and lets threads begin together.
#[inline(always)]
fn begin<M: Measurement>(m: &M) -> M::Intermediate {
    unsafe { crate::ffi::assay_bench_begin() };
    m.start()
}

#[inline(always)]
fn end<M: Measurement>(m: &M, start: M::Intermediate) -> M::Value {
    let value = m.end(start);
    unsafe { crate::ffi::assay_bench_end() };
    value
}

/// Small inputs are made in portions that stay in the first-level cache: 16 KiB of what is seen of them,
/// and, as what they own on the heap is not seen, no more than make the clock's cost small. (A portion of
/// 1/500 of a batch, which is a millisecond, takes 2 us.)
fn batch_of<I>(size: BatchSize, iters: u64) -> u64 {
    let batch = size.iters_per_batch(iters);
    assert!(batch != 0, "Batch size must not be zero.");
    if size != BatchSize::SmallInput {
        return batch;
    }
    let seen = (16 << 10) / std::mem::size_of::<I>().max(1) as u64;
    batch.min(seen.max(1)).min((iters / 500).max(1))
}

/// [`Bencher`] for asynchronous code: from [`Bencher::to_async`].
#[cfg(feature = "async")]
pub struct AsyncBencher<'a, 'b, A, M: Measurement = WallTime>
where
    A: crate::async_executor::AsyncExecutor,
{
    b: &'b mut Bencher<'a, M>,
    runner: A,
}

#[cfg(feature = "async")]
mod asynchronous {
    use super::{batch_of, begin, end, AsyncBencher};
    use crate::async_executor::AsyncExecutor;
    use crate::black_box;
    use crate::measurement::Measurement;
    use crate::BatchSize;
    use std::future::Future;

    impl<'a, 'b, A: AsyncExecutor, M: Measurement> AsyncBencher<'a, 'b, A, M> {
        #[inline(never)]
        pub fn iter<O, R, F>(&mut self, mut routine: R)
        where
            R: FnMut() -> F,
            F: Future<Output = O>,
        {
            let AsyncBencher { b, runner } = self;
            b.iterated = true;
            runner.block_on(async {
                let start = begin(b.measurement);
                for _ in 0..b.iters {
                    black_box(routine().await);
                }
                b.value = end(b.measurement, start);
            });
        }

        #[inline(never)]
        pub fn iter_custom<R, F>(&mut self, mut routine: R)
        where
            R: FnMut(u64) -> F,
            F: Future<Output = M::Value>,
        {
            let AsyncBencher { b, runner } = self;
            b.iterated = true;
            b.value = runner.block_on(routine(b.iters));
        }

        #[doc(hidden)]
        pub fn iter_with_setup<I, O, S, R, F>(&mut self, setup: S, routine: R)
        where
            S: FnMut() -> I,
            R: FnMut(I) -> F,
            F: Future<Output = O>,
        {
            self.iter_batched(setup, routine, BatchSize::PerIteration);
        }

        pub fn iter_with_large_drop<O, R, F>(&mut self, mut routine: R)
        where
            R: FnMut() -> F,
            F: Future<Output = O>,
        {
            self.iter_batched(|| (), |_| routine(), BatchSize::SmallInput);
        }

        #[doc(hidden)]
        pub fn iter_with_large_setup<I, O, S, R, F>(&mut self, setup: S, routine: R)
        where
            S: FnMut() -> I,
            R: FnMut(I) -> F,
            F: Future<Output = O>,
        {
            self.iter_batched(setup, routine, BatchSize::NumBatches(1));
        }

        #[inline(never)]
        pub fn iter_batched<I, O, S, R, F>(&mut self, mut setup: S, mut routine: R, size: BatchSize)
        where
            S: FnMut() -> I,
            R: FnMut(I) -> F,
            F: Future<Output = O>,
        {
            let AsyncBencher { b, runner } = self;
            runner.block_on(async {
                in_batches!(b, batch_of::<I>(size, b.iters), |batch, _| {
                    let inputs = black_box((0..batch).map(|_| setup()).collect::<Vec<_>>());
                    let mut outputs = Vec::with_capacity(batch as usize);
                    let start = begin(b.measurement);
                    for input in inputs {
                        outputs.push(routine(input).await);
                    }
                    let took = end(b.measurement, start);
                    black_box(outputs);
                    took
                });
            });
        }

        #[inline(never)]
        pub fn iter_batched_ref<I, O, S, R, F>(
            &mut self,
            mut setup: S,
            mut routine: R,
            size: BatchSize,
        ) where
            S: FnMut() -> I,
            R: FnMut(&mut I) -> F,
            F: Future<Output = O>,
        {
            let AsyncBencher { b, runner } = self;
            runner.block_on(async {
                in_batches!(b, batch_of::<I>(size, b.iters), |batch, _| {
                    let mut inputs = black_box((0..batch).map(|_| setup()).collect::<Vec<_>>());
                    let mut outputs = Vec::with_capacity(batch as usize);
                    let start = begin(b.measurement);
                    for input in inputs.iter_mut() {
                        outputs.push(routine(input).await);
                    }
                    let took = end(b.measurement, start);
                    black_box(outputs);
                    black_box(inputs);
                    took
                });
            });
        }
    }
}
