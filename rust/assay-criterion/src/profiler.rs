// SPDX-License-Identifier: MIT OR Apache-2.0
//! A profiler inside the process, for `--profile-time`.

use std::path::Path;

/// Started and stopped around each benchmark when the program runs with `--profile-time`.
pub trait Profiler {
    /// `benchmark_dir` is a folder for what the profiler writes; it need not exist yet.
    fn start_profiling(&mut self, benchmark_id: &str, benchmark_dir: &Path);
    fn stop_profiling(&mut self, benchmark_id: &str, benchmark_dir: &Path);
}

/// The default: does nothing, for a profiler that watches from outside.
pub struct ExternalProfiler;

impl Profiler for ExternalProfiler {
    fn start_profiling(&mut self, _benchmark_id: &str, _benchmark_dir: &Path) {}
    fn stop_profiling(&mut self, _benchmark_id: &str, _benchmark_dir: &Path) {}
}
