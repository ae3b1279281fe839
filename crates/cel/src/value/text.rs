//! Strings, either made by an expression or still inside a document.

use std::ops::Deref;
use std::sync::Arc;

use windlass_core::Doc;

/// A string. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Text(Repr);

#[derive(Clone, Debug)]
enum Repr {
    Own(Arc<str>),
    /// Always a string.
    Doc(Doc),
}

impl Text {
    /// The string of a document, if it is one. Nothing is copied.
    pub(super) fn of(doc: &Doc) -> Option<Self> {
        doc.as_str().is_some().then(|| Self(Repr::Doc(doc.clone())))
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        match &self.0 {
            Repr::Own(text) => text,
            Repr::Doc(doc) => doc.as_str().unwrap_or(""),
        }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(Repr::Own(Arc::from(text)))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(Repr::Own(Arc::from(text)))
    }
}
