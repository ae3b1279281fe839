//! The rule of [`Store::update`](crate::Store::update): what runs under the lock of all writers is
//! quick and does not call the store. In debug builds breaking it is a panic.

use std::cell::Cell;

thread_local! {
    /// True while this thread runs the decision of a write.
    static IS_DECIDING: Cell<bool> = const { Cell::new(false) };
}

/// Marks the time in which a decision runs. It ends with the value, by a panic as well.
pub(crate) struct Deciding(());

impl Deciding {
    pub(crate) fn begin() -> Self {
        IS_DECIDING.set(true);
        Self(())
    }
}

impl Drop for Deciding {
    fn drop(&mut self) {
        IS_DECIDING.set(false);
    }
}

/// Asserts that this thread does not hold the lock of all writers. To be called where work begins
/// whose time depends on a request: parsing, validation, evaluation of expressions. Costs nothing
/// in release builds.
///
/// # Panics
/// In debug builds, when it is called inside the decision of a write.
#[inline]
pub fn debug_assert_not_deciding(work: &str) {
    debug_assert!(
        !IS_DECIDING.get(),
        "{work} runs under the lock of all writers; decide outside of it and compare revisions \
         inside"
    );
}
