// SPDX-License-Identifier: MIT OR Apache-2.0
//! What src/harness/criterion/criterion.h says, for Rust. Both change together.

use std::os::raw::{c_char, c_int, c_void};

pub const SAMPLE_SIZE: usize = 0;
pub const WARM_UP_S: usize = 1;
pub const MEASUREMENT_S: usize = 2;
pub const RESAMPLES: usize = 3;
pub const NOISE: usize = 4;
pub const CONFIDENCE: usize = 5;
pub const SIGNIFICANCE: usize = 6;
pub const PLOTS: usize = 7;
pub const COLOUR: usize = 8;
pub const PROFILE_S: usize = 9;
pub const CSV: usize = 10;
pub const NUMBERS: usize = 11;

pub const FILTER: c_int = 0;
pub const FILTER_EXACT: c_int = 1;
pub const FILTER_NONE: c_int = 2;
pub const SAVE: c_int = 3;
pub const BASELINE: c_int = 4;
#[cfg_attr(feature = "criterion-0-3", allow(dead_code))]
pub const BASELINE_LENIENT: c_int = 5;
pub const HOME: c_int = 6;

#[repr(C)]
pub struct Handle {
    _private: [u8; 0],
}

/// `struct as_criterion_unit`: how a custom measurement writes its values.
#[repr(C)]
pub struct Unit {
    pub ctx: *mut c_void,
    pub wall_time: c_int,
    pub format_value: unsafe extern "C" fn(*mut c_void, f64, *mut c_char, usize),
    pub format_throughput:
        unsafe extern "C" fn(*mut c_void, c_int, u64, u64, f64, *mut c_char, usize),
    pub for_machines: unsafe extern "C" fn(*mut c_void, *mut f64, usize) -> *const c_char,
    pub profile: unsafe extern "C" fn(*mut c_void, c_int, *const c_char, *const c_char),
}

/// `struct as_criterion_spec`
#[repr(C)]
pub struct Spec {
    pub size: u32,
    pub throughput: c_int,
    pub n: u64,
    pub n2: u64,
    pub group: *const c_char,
    pub function: *const c_char,
    pub value: *const c_char,
    pub numbers: [f64; NUMBERS],
    pub unit: *const Unit,
    pub run: unsafe extern "C" fn(*mut c_void, u64) -> f64,
    pub ctx: *mut c_void,
    pub threads: u32,
}

extern "C" {
    pub fn as_criterion_new() -> *mut Handle;
    pub fn as_criterion_free(c: *mut Handle);
    pub fn as_criterion_set_number(c: *mut Handle, which: c_int, value: f64);
    pub fn as_criterion_set_text(c: *mut Handle, which: c_int, text: *const c_char);
    pub fn as_criterion_configure(c: *mut Handle, argc: c_int, argv: *const *const c_char);
    pub fn as_criterion_one(c: *mut Handle, spec: *const Spec) -> c_int;
    pub fn as_criterion_summary(c: *mut Handle);
    pub fn as_criterion_is_worker() -> c_int;
    pub fn as_criterion_throughput(kind: c_int, n: u64, n2: u64);
    pub fn assay_bench_begin() -> u64;
    pub fn assay_bench_end() -> u64;
    pub fn _exit(status: c_int) -> !;
}
