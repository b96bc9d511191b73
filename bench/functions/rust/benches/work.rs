// SPDX-License-Identifier: MIT OR Apache-2.0
use criterion::{criterion_group, criterion_main, Criterion};

extern "C" {
    fn bench_work() -> u64;
}

fn work(c: &mut Criterion) {
    c.bench_function("work", |b| b.iter(|| unsafe { bench_work() }));
}

criterion_group!(benches, work);
criterion_main!(benches);
