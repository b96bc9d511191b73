// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is measured: wall time, or a measurement of your own.
//!
//! A measurement is taken around all iterations of a batch. Its value becomes a number by
//! [`Measurement::to_f64`]; how numbers are written is the business of its [`ValueFormatter`].

use crate::Throughput;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Writes measured numbers for people and for machines.
pub trait ValueFormatter {
    /// One value with its unit.
    fn format_value(&self, value: f64) -> String {
        let mut values = [value];
        let unit = self.scale_values(value, &mut values);
        format!("{:>6} {}", short(values[0]), unit)
    }

    /// The rate that `value` per iteration means.
    fn format_throughput(&self, throughput: &Throughput, value: f64) -> String {
        let mut values = [value];
        let unit = self.scale_throughputs(value, throughput, &mut values);
        format!("{:>6} {}", short(values[0]), unit)
    }

    /// Scales `values` to the unit that fits `typical_value` and returns the unit.
    fn scale_values(&self, typical_value: f64, values: &mut [f64]) -> &'static str;

    /// Turns values per iteration into rates, all of the unit that fits `typical_value`.
    fn scale_throughputs(
        &self,
        typical_value: f64,
        throughput: &Throughput,
        values: &mut [f64],
    ) -> &'static str;

    /// Scales to the one unit that files are written in.
    fn scale_for_machines(&self, values: &mut [f64]) -> &'static str;
}

/// A quantity that can be measured around a piece of code.
pub trait Measurement {
    /// What `start` hands to `end`.
    type Intermediate;
    /// The measured value.
    type Value;

    fn start(&self) -> Self::Intermediate;
    fn end(&self, i: Self::Intermediate) -> Self::Value;
    fn add(&self, v1: &Self::Value, v2: &Self::Value) -> Self::Value;
    fn zero(&self) -> Self::Value;
    fn to_f64(&self, value: &Self::Value) -> f64;
    fn formatter(&self) -> &dyn ValueFormatter;
}

/// Four or five digits.
pub(crate) fn short(n: f64) -> String {
    let digits = match n.abs() {
        a if a < 10.0 => 4,
        a if a < 100.0 => 3,
        a if a < 1000.0 => 2,
        a if a < 10_000.0 => 1,
        _ => 0,
    };
    format!("{:.*}", digits, n)
}

struct Step {
    below: f64,
    divisor: f64,
    unit: &'static str,
}

const fn step(below: f64, divisor: f64, unit: &'static str) -> Step {
    Step { below, divisor, unit }
}

const TIMES: [Step; 5] = [
    step(1.0, 1e-3, "ps"),
    step(1e3, 1.0, "ns"),
    step(1e6, 1e3, "µs"),
    step(1e9, 1e6, "ms"),
    step(f64::INFINITY, 1e9, "s"),
];
const BYTES: [Step; 4] = [
    step(1024.0, 1.0, "  B/s"),
    step(1024.0 * 1024.0, 1024.0, "KiB/s"),
    step(1024.0 * 1024.0 * 1024.0, 1024.0 * 1024.0, "MiB/s"),
    step(f64::INFINITY, 1024.0 * 1024.0 * 1024.0, "GiB/s"),
];
#[cfg(not(feature = "criterion-0-3"))]
const BYTES_DECIMAL: [Step; 4] = [
    step(1e3, 1.0, "  B/s"),
    step(1e6, 1e3, "KB/s"),
    step(1e9, 1e6, "MB/s"),
    step(f64::INFINITY, 1e9, "GB/s"),
];
#[cfg(not(any(feature = "criterion-0-3", feature = "criterion-0-5")))]
const BITS: [Step; 4] = [
    step(1e3, 1.0, "  b/s"),
    step(1e6, 1e3, "Kb/s"),
    step(1e9, 1e6, "Mb/s"),
    step(f64::INFINITY, 1e9, "Gb/s"),
];
const ELEMENTS: [Step; 4] = [
    step(1e3, 1.0, " elem/s"),
    step(1e6, 1e3, "Kelem/s"),
    step(1e9, 1e6, "Melem/s"),
    step(f64::INFINITY, 1e9, "Gelem/s"),
];

fn fit(steps: &'static [Step], typical: f64) -> &'static Step {
    steps.iter().find(|s| typical < s.below).unwrap_or(&steps[steps.len() - 1])
}

pub(crate) struct DurationFormatter;

impl ValueFormatter for DurationFormatter {
    fn scale_values(&self, typical_value: f64, values: &mut [f64]) -> &'static str {
        let to = fit(&TIMES, typical_value);
        values.iter_mut().for_each(|v| *v /= to.divisor);
        to.unit
    }

    fn scale_throughputs(
        &self,
        typical_value: f64,
        throughput: &Throughput,
        values: &mut [f64],
    ) -> &'static str {
        let (steps, amount): (&'static [Step], u64) = match *throughput {
            Throughput::Bytes(n) => (&BYTES, n),
            #[cfg(not(feature = "criterion-0-3"))]
            Throughput::BytesDecimal(n) => (&BYTES_DECIMAL, n),
            #[cfg(not(any(feature = "criterion-0-3", feature = "criterion-0-5")))]
            Throughput::Bits(n) => (&BITS, n),
            Throughput::Elements(n) => (&ELEMENTS, n),
            #[cfg(not(any(feature = "criterion-0-3", feature = "criterion-0-5")))]
            Throughput::ElementsAndBytes { elements, .. } => (&ELEMENTS, elements),
        };
        let per_second = |ns: f64| amount as f64 * 1e9 / ns;
        let to = fit(steps, per_second(typical_value));
        values.iter_mut().for_each(|v| *v = per_second(*v) / to.divisor);
        to.unit
    }

    fn scale_for_machines(&self, _values: &mut [f64]) -> &'static str {
        "ns"
    }
}

/// Least time between two readings, found out once.
fn clock_cost() -> Duration {
    static COST_NS: AtomicU64 = AtomicU64::new(u64::MAX);
    // Relaxed: a number by itself; two threads that find it out at once find the same.
    let mut ns = COST_NS.load(Ordering::Relaxed);
    if ns == u64::MAX {
        let read = |_| Instant::now().elapsed().as_nanos() as u64;
        ns = (0..200).map(read).min().unwrap_or(0);
        COST_NS.store(ns, Ordering::Relaxed);
    }
    Duration::from_nanos(ns)
}

/// Wall time: the default.
#[derive(Debug, Clone, Copy, Default)]
pub struct WallTime;

impl Measurement for WallTime {
    type Intermediate = Instant;
    type Value = Duration;

    fn start(&self) -> Instant {
        Instant::now()
    }

    /// Without what reading the clock takes: routines that are timed one by one would be that much slower.
    fn end(&self, i: Instant) -> Duration {
        let taken = i.elapsed();
        taken.checked_sub(clock_cost()).unwrap_or_default()
    }

    fn add(&self, v1: &Duration, v2: &Duration) -> Duration {
        *v1 + *v2
    }

    fn zero(&self) -> Duration {
        Duration::from_secs(0)
    }

    fn to_f64(&self, value: &Duration) -> f64 {
        value.as_nanos() as f64
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        &DurationFormatter
    }
}
