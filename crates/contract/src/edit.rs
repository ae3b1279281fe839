//! Changing objects in a case, where a pointer that does not fit is a mistake in the case.

use windlass_core::Doc;

/// Changes of a document that cannot fail.
pub trait Edit {
    /// This document with the value at a JSON pointer set.
    #[must_use]
    fn set(&self, pointer: &str, value: impl Into<Doc>) -> Doc;

    /// This document without the value at a JSON pointer.
    #[must_use]
    fn cut(&self, pointer: &str) -> Doc;
}

impl Edit for Doc {
    fn set(&self, pointer: &str, value: impl Into<Self>) -> Self {
        self.with(pointer, value).expect("the pointer fits")
    }

    fn cut(&self, pointer: &str) -> Self {
        self.without(pointer).expect("the pointer fits")
    }
}
