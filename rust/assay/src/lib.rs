// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a program may tell assay, a profiler, while it is recorded. Nothing of it does anything where it
//! is not: no dependency, no library, no thread, no file.
#![no_std]
#![deny(missing_docs)]

pub mod heap;
