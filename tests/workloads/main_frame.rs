// SPDX-License-Identifier: MIT OR Apache-2.0
//! main_frame ROUNDS: an ordinary program with 12 KB of locals in `main`; a round is about 0.4 ms.
use std::hint::black_box;

#[inline(never)]
fn leaf(x: u64) -> u64 {
    let mut a = x;
    for i in 0..200u64 {
        a = a.wrapping_mul(6364136223846793005) ^ i;
    }
    a
}

#[inline(never)]
fn middle(n: u64) -> u64 {
    let mut s = 0;
    for i in 0..n {
        s ^= leaf(black_box(i));
    }
    black_box(s) + 1
}

fn main() {
    let rounds: usize = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(1000);
    let functions: [fn(u64) -> u64; 1500] = black_box([middle; 1500]);
    let mut sum = 0u64;
    for i in 0..rounds {
        sum ^= functions[i % functions.len()](2000);
    }
    black_box(functions);
    black_box(sum);
}
