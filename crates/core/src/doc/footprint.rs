//! How much memory a set of documents holds, each shared node counted once.

use std::collections::HashSet;

use super::{Doc, Repr};

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
