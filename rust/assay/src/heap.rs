// SPDX-License-Identifier: MIT OR Apache-2.0
//! Marks and scopes for recordings of memory (`assay heap`, `assay record --heap`).
//!
//! ```ignore
//! let index = assay::heap::scope!(build_index, Index::new(&files));
//! assay::heap::mark("indexed");
//! ```
//!
//! A mark calls a function of nine bytes that does nothing. assay finds it by its symbol, or in a stripped
//! program by a note, and leads it elsewhere while it records: `assay/heap.h` has the same function for C
//! and C++, and a program that uses both has it once.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
core::arch::global_asm!(
    ".pushsection .text.assay_heap_mark_site,\"axG\",@progbits,assay_heap_mark_site,comdat",
    ".weak assay_heap_mark_site",
    ".hidden assay_heap_mark_site",
    ".type assay_heap_mark_site,@function",
    ".p2align 4",
    "assay_heap_mark_site:",
    ".cfi_startproc",
    "endbr64",
    ".byte 0x0f,0x1f,0x44,0x00,0x00", // a nop as long as a jump
    "ret",
    ".cfi_endproc",
    ".size assay_heap_mark_site,.-assay_heap_mark_site",
    ".popsection",
    ".pushsection .note.assay,\"aG\",@note,assay_heap_mark_site,comdat",
    ".balign 4",
    ".long 6,8,1",
    ".asciz \"assay\"",
    ".balign 4",
    ".quad assay_heap_mark_site-.",
    ".popsection",
    options(att_syntax)
);

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
extern "C" {
    fn assay_heap_mark_site(name: *const u8, bytes: usize);
}

/// Names this moment of the process: what is live is kept in the session that is being recorded, and can
/// be shown (`assay report --at NAME`) and compared (`assay diff --marks FROM..TO`).
///
/// Names are cut at 48 bytes; the same name may come again (`NAME#2`). After 1,000 marks of a process further
/// ones are ignored. A mark is exact for the thread that makes it; what other threads do at the same time is
/// on one side of it or the other within 0.1 ms or so. Any thread. About 1 ns where nobody records.
#[inline(never)] // one place in the program that needs the function, in the same crate as it
pub fn mark(name: &str) {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    // SAFETY: the function reads nothing; what is in its place while assay records reads `bytes` from `name`.
    unsafe {
        assay_heap_mark_site(name.as_ptr(), name.len());
    }
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    let _ = name;
}

/// Runs an expression in a function of that name, and is its value: a budget can name it
/// (`--fail-if 'allocs(in=NAME) > 0'`), and reports have it as a caller, however much is inlined.
///
/// `return` and `?` end the expression, not the function around it.
#[macro_export]
macro_rules! __assay_heap_scope {
    ($name:ident, $body:expr) => {{
        #[inline(never)]
        fn $name<R>(body: impl ::core::ops::FnOnce() -> R) -> R {
            let value = body();
            // behind the call, so that it is none that leaves by a jump
            $crate::heap::after();
            value
        }
        $name(|| $body)
    }};
}
pub use __assay_heap_scope as scope;

/// Nothing, where the compiler cannot see that.
#[doc(hidden)]
#[inline(always)]
pub fn after() {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    // SAFETY: no instruction.
    unsafe {
        core::arch::asm!("", options(nostack, preserves_flags));
    }
}
