// SPDX-License-Identifier: MIT OR Apache-2.0
// WORK_OBJECT: the function to be measured, the same object as the other harnesses have.
fn main() {
    println!("cargo:rerun-if-env-changed=WORK_OBJECT");
    println!("cargo:rustc-link-arg-benches={}", std::env::var("WORK_OBJECT").unwrap());
}
