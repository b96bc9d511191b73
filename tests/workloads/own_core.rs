// SPDX-License-Identifier: MIT OR Apache-2.0
// The part in Rust of a program that a C library of any kind is linked to: it needs core and alloc only. As
// own_allocator.rs it counts what it asks for: run(n, counts) gives how many keys were left, and allocations,
// frees, reallocations, bytes allocated, those that a block grew by among them.
#![no_std]
#![crate_type = "staticlib"]
extern crate alloc;

use alloc::{collections::BTreeMap, format, string::String, vec, vec::Vec};
use core::alloc::{GlobalAlloc, Layout};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

extern "C" {
    fn malloc(bytes: usize) -> *mut u8;
    fn calloc(n: usize, bytes: usize) -> *mut u8;
    fn realloc(p: *mut u8, bytes: usize) -> *mut u8;
    fn free(p: *mut u8);
    fn abort() -> !;
}

static COUNT: [AtomicU64; 4] = [AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)];

fn count(i: usize, bytes: usize) {
    COUNT[i].fetch_add(1, Relaxed);
    COUNT[3].fetch_add(bytes as u64, Relaxed);
}

struct Own;

unsafe impl GlobalAlloc for Own {
    unsafe fn alloc(&self, l: Layout) -> *mut u8 {
        count(0, l.size());
        malloc(l.size())
    }
    unsafe fn alloc_zeroed(&self, l: Layout) -> *mut u8 {
        count(0, l.size());
        calloc(1, l.size())
    }
    unsafe fn dealloc(&self, p: *mut u8, _: Layout) {
        count(1, 0);
        free(p)
    }
    unsafe fn realloc(&self, p: *mut u8, l: Layout, bytes: usize) -> *mut u8 {
        count(2, bytes.saturating_sub(l.size()));
        realloc(p, bytes)
    }
}

#[global_allocator]
static OWN: Own = Own;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    unsafe { abort() }
}

// What was compiled to unwind names it, and never comes to it.
#[no_mangle]
pub extern "C" fn rust_eh_personality() {}
#[no_mangle]
pub extern "C" fn _Unwind_Resume() {}

#[no_mangle]
pub unsafe extern "C" fn run(n: usize, ret: *mut u64) -> usize {
    let mut map: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut zeros = 0;
    for i in 0..n {
        map.insert(format!("key {}", i), vec![i; i % 50]);
        // out of sight: a compiler that knows calloc and free leaves out both
        zeros += core::hint::black_box(vec![0u8; i % 1000]).len();
        if i % 3 == 0 {
            map.remove(&format!("key {}", i / 2));
        }
    }
    let mut keys: Vec<String> = map.keys().cloned().collect();
    keys.sort();
    let left = keys.len() + zeros % 2;
    drop(keys);
    drop(map);
    for i in 0..4 {
        *ret.add(i) = COUNT[i].load(Relaxed);
    }
    left
}
