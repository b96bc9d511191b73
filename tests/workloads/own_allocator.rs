// SPDX-License-Identifier: MIT OR Apache-2.0
// A program whose allocator was linked in: a jemalloc by its mallocx; --cfg prefixed: one whose names begin
// with _rjem_; --cfg plain: any by malloc and free; --cfg mi: mimalloc by names of its own. It counts what it asks
// for, and prints: how many keys were left, allocations, frees, reallocations, bytes allocated, those that a
// block grew by among them.
use std::alloc::{GlobalAlloc, Layout};
use std::collections::HashMap;
use std::os::raw::c_int;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[cfg(not(any(plain, mi)))]
extern "C" {
    #[cfg_attr(prefixed, link_name = "_rjem_mallocx")]
    fn mallocx(bytes: usize, flags: c_int) -> *mut u8;
    #[cfg_attr(prefixed, link_name = "_rjem_rallocx")]
    fn rallocx(p: *mut u8, bytes: usize, flags: c_int) -> *mut u8;
    #[cfg_attr(prefixed, link_name = "_rjem_sdallocx")]
    fn sdallocx(p: *mut u8, bytes: usize, flags: c_int);
}

#[cfg(any(plain, mi))]
extern "C" {
    #[cfg_attr(mi, link_name = "mi_malloc")]
    fn malloc(bytes: usize) -> *mut u8;
    #[cfg_attr(mi, link_name = "mi_realloc")]
    fn realloc(p: *mut u8, bytes: usize) -> *mut u8;
    #[cfg_attr(mi, link_name = "mi_free")]
    fn free(p: *mut u8);
}
#[cfg(any(plain, mi))]
unsafe fn mallocx(bytes: usize, _: c_int) -> *mut u8 {
    malloc(bytes)
}
#[cfg(any(plain, mi))]
unsafe fn rallocx(p: *mut u8, bytes: usize, _: c_int) -> *mut u8 {
    realloc(p, bytes)
}
#[cfg(any(plain, mi))]
unsafe fn sdallocx(p: *mut u8, _: usize, _: c_int) {
    free(p)
}

static ALLOCS: AtomicU64 = AtomicU64::new(0);
static FREES: AtomicU64 = AtomicU64::new(0);
static REALLOCS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

struct Own;

fn flags(l: Layout) -> c_int {
    if l.align() > 16 {
        l.align().trailing_zeros() as c_int
    } else {
        0
    }
}

unsafe impl GlobalAlloc for Own {
    unsafe fn alloc(&self, l: Layout) -> *mut u8 {
        ALLOCS.fetch_add(1, Relaxed);
        BYTES.fetch_add(l.size() as u64, Relaxed);
        mallocx(l.size(), flags(l))
    }
    unsafe fn dealloc(&self, p: *mut u8, l: Layout) {
        FREES.fetch_add(1, Relaxed);
        sdallocx(p, l.size(), flags(l))
    }
    unsafe fn realloc(&self, p: *mut u8, l: Layout, bytes: usize) -> *mut u8 {
        REALLOCS.fetch_add(1, Relaxed);
        BYTES.fetch_add(bytes.saturating_sub(l.size()) as u64, Relaxed);
        rallocx(p, bytes, flags(l))
    }
}

#[global_allocator]
static OWN: Own = Own;

fn main() {
    let n: usize = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(1000);
    let mut grown: Vec<u64> = Vec::new();
    let mut map = HashMap::new();
    for i in 0..n {
        grown.push(i as u64);
        map.insert(format!("key {}", i), vec![i; i % 50]);
        if i % 3 == 0 {
            map.remove(&format!("key {}", i / 2));
        }
    }
    let sorted = std::thread::spawn(move || {
        let mut keys: Vec<String> = map.keys().cloned().collect();
        keys.sort();
        keys.len()
    });
    let left = sorted.join().unwrap();
    let counts: Vec<u64> = [&ALLOCS, &FREES, &REALLOCS, &BYTES].iter().map(|c| c.load(Relaxed)).collect();
    println!("{} {} {} {} {}", left, counts[0], counts[1], counts[2], counts[3]);
}
