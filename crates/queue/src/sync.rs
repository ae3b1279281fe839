//! The locks of the queue. Built with `--cfg shuttle`, they are those of a model checker, which
//! tries the interleavings of threads one by one.

#[cfg(not(shuttle))]
pub(crate) use parking_lot::{Mutex, MutexGuard};
#[cfg(not(shuttle))]
pub(crate) use std::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread_local,
};

#[cfg(shuttle)]
pub(crate) use checked::Mutex;
#[cfg(shuttle)]
pub(crate) use shuttle::{
    hint::spin_loop,
    sync::MutexGuard,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread_local,
};

#[cfg(not(shuttle))]
thread_local! {
    /// Something of which every thread has its own.
    static MARK: u8 = const { 0 };
}

#[cfg(shuttle)]
thread_local! {
    static MARK: u8 = 0;
}

/// A number that no other thread has that lives at the same time.
#[inline]
pub(crate) fn thread_mark() -> usize {
    MARK.with(|mark| std::ptr::from_ref::<u8>(mark).addr())
}

#[cfg(shuttle)]
mod checked {
    use shuttle::sync::MutexGuard;

    /// A lock that is never poisoned: a test that panics has failed anyway.
    #[derive(Debug)]
    pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(shuttle::sync::Mutex::new(value))
        }

        pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            self.0.try_lock().ok()
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("invariant: no thread has panicked")
        }
    }
}
