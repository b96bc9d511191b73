// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who runs the futures of an asynchronous benchmark.
//!
//! With `async_smol` and `async_std` the runtime itself does: it polls its reactor on the thread that waits,
//! and its futures may ask for the task they are in. With `async_tokio` a `tokio::runtime::Runtime` or
//! `Handle` is an executor. Futures that need no runtime are polled here.

use std::future::Future;

/// Runs a future to its end.
pub trait AsyncExecutor {
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T;
}

#[cfg(feature = "async_futures")]
mod park {
    use std::future::Future;
    use std::pin::Pin;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::Arc;
    use std::task::{Context, Poll, Wake, Waker};
    use std::thread::{self, Thread};

    struct Unpark {
        thread: Thread,
        woken: AtomicBool,
    }

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.wake_by_ref();
        }

        fn wake_by_ref(self: &Arc<Self>) {
            // Pairs with the swap below: what the waker did is seen by the next poll.
            if !self.woken.swap(true, Ordering::AcqRel) {
                self.thread.unpark();
            }
        }
    }

    pub(super) fn block_on<T>(mut future: impl Future<Output = T>) -> T {
        let unpark = Arc::new(Unpark { thread: thread::current(), woken: AtomicBool::new(false) });
        let waker = Waker::from(unpark.clone());
        let mut context = Context::from_waker(&waker);
        // Safe: `future` is a local that is not moved until it is dropped.
        let mut future = unsafe { Pin::new_unchecked(&mut future) };
        loop {
            if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
                return value;
            }
            while !unpark.woken.swap(false, Ordering::AcqRel) {
                thread::park();
            }
        }
    }
}

#[cfg(feature = "async_futures")]
/// For futures that need no reactor.
pub struct FuturesExecutor;
#[cfg(feature = "async_futures")]
impl AsyncExecutor for FuturesExecutor {
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        park::block_on(future)
    }
}

#[cfg(feature = "async_smol")]
/// For futures of smol and async-io.
pub struct SmolExecutor;
#[cfg(feature = "async_smol")]
impl AsyncExecutor for SmolExecutor {
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        smol::block_on(future)
    }
}

#[cfg(feature = "async_std")]
/// For futures of async-std.
pub struct AsyncStdExecutor;
#[cfg(feature = "async_std")]
impl AsyncExecutor for AsyncStdExecutor {
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        async_std::task::block_on(future)
    }
}

#[cfg(feature = "async_tokio")]
mod tokio_runtime {
    use super::AsyncExecutor;
    use std::future::Future;
    use tokio::runtime::{Handle, Runtime};

    impl AsyncExecutor for Runtime {
        fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
            Runtime::block_on(self, future)
        }
    }

    impl AsyncExecutor for &Runtime {
        fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
            Runtime::block_on(self, future)
        }
    }

    impl AsyncExecutor for Handle {
        fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
            Handle::block_on(self, future)
        }
    }

    impl AsyncExecutor for &Handle {
        fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
            Handle::block_on(self, future)
        }
    }
}
