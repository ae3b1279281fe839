//! The memory that a set of documents holds, each shared node counted once.

use std::collections::HashSet;

use super::{Doc, Repr, Str};

/// Adds up the memory of documents; a node that was seen before costs nothing more.
///
/// ```
/// use windlass_core::{doc, Footprint};
/// let mut footprint = Footprint::default();
/// let one = footprint.add(&doc!({ "spec": { "image": "nginx" } }));
/// let two = footprint.add(&doc!({ "spec": { "image": "nginx" } }));
/// assert!(one > 0);
/// assert_eq!(two, 0);
/// ```
#[derive(Debug, Default)]
pub struct Footprint {
    seen: HashSet<usize>,
    bytes: usize,
}

impl Footprint {
    /// Adds a document and returns the bytes that it holds beyond those already added.
    pub fn add(&mut self, doc: &Doc) -> usize {
        let before = self.bytes;
        self.visit(doc);
        self.bytes - before
    }

    /// The bytes of everything added.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn visit(&mut self, doc: &Doc) {
        match &doc.0 {
            Repr::Null
            | Repr::Bool(_)
            | Repr::Int(_)
            | Repr::UInt(_)
            | Repr::Float(_)
            | Repr::Short(_) => {}
            Repr::Str(text) => {
                self.count(text.address(), text.node_bytes());
            }
            Repr::Array(array) => {
                if self.count(array.address(), array.node_bytes()) {
                    array.iter().for_each(|item| self.visit(item));
                }
            }
            Repr::Object(object) => {
                if self.count(object.address(), object.node_bytes()) {
                    let shape = object.shape();
                    if self.count(shape.address(), shape.node_bytes()) {
                        for key in shape.keys() {
                            self.count(key.address(), key.node_bytes());
                        }
                    }
                    object.values().iter().for_each(|value| self.visit(value));
                }
            }
        }
    }

    /// Counts a node; false if it was counted before.
    fn count(&mut self, address: usize, bytes: usize) -> bool {
        let is_new = self.seen.insert(address);
        if is_new {
            self.bytes += bytes;
        }
        is_new
    }
}

impl Doc {
    /// The memory in bytes that this document holds and `newer` does not, at the cost of the
    /// difference: an upper bound, in which a part counts as often as it is used. Values are
    /// compared with those in the same place; what is equal is one node in memory.
    ///
    /// ```
    /// use windlass_core::doc;
    /// let text = "a text that is long enough for a node of its own".repeat(20);
    /// let old = doc!({ "data": { "a": (&text), "b": "1" } });
    /// let new = old.with("/data/b", "2")?;
    /// assert!(old.bytes_beyond(Some(&new)) < text.len());
    /// assert!(old.bytes_beyond(None) > text.len());
    /// assert_eq!(old.bytes_beyond(Some(&old)), 0);
    /// # Ok::<(), windlass_core::EditError>(())
    /// ```
    #[must_use]
    pub fn bytes_beyond(&self, newer: Option<&Self>) -> usize {
        if newer.is_some_and(|newer| newer == self) {
            return 0;
        }
        match &self.0 {
            Repr::Null
            | Repr::Bool(_)
            | Repr::Int(_)
            | Repr::UInt(_)
            | Repr::Float(_)
            | Repr::Short(_) => 0,
            Repr::Str(text) => text.node_bytes(),
            Repr::Array(array) => {
                let item = |(index, item): (usize, &Self)| {
                    item.bytes_beyond(newer.and_then(|newer| newer.item(index)))
                };
                array.node_bytes() + array.iter().enumerate().map(item).sum::<usize>()
            }
            Repr::Object(object) => {
                let other = newer.and_then(Self::as_object);
                let shape = object.shape();
                let is_new = other.is_none_or(|other| other.shape() != shape);
                let keys = match is_new {
                    true => {
                        shape.node_bytes() + shape.keys().iter().map(Str::node_bytes).sum::<usize>()
                    }
                    false => 0,
                };
                let field = |(key, value): (&Str, &Self)| {
                    value.bytes_beyond(other.and_then(|other| other.get(key.as_str())))
                };
                object.node_bytes() + keys + object.iter().map(field).sum::<usize>()
            }
        }
    }
}
