// SPDX-License-Identifier: MIT OR Apache-2.0
//! parallel N: sorts and sums on rayon's threads.
use rayon::prelude::*;

fn mix(x: u64) -> u64 {
    (0..40).fold(x, |a, i| (a ^ a >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ i)
}

fn main() {
    let n: u64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(1_000_000);
    let mut v: Vec<u64> = (0..n).into_par_iter().map(mix).collect();
    v.par_sort_unstable();
    let names: Vec<String> = v.par_iter().step_by(7).map(|x| format!("{x:x}")).collect();
    let longest = names.par_iter().map(|s| s.len()).max().unwrap_or(0);
    println!("{longest} {}", v.par_iter().map(|x| mix(*x) & 1).sum::<u64>());
}
