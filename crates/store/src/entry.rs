//! One state of one object.

use std::sync::Arc;

use windlass_core::{Doc, Key};

/// One state of one object. Maps, events and snapshots share it by reference count.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name of the object in its resource.
    pub key: Key,
    /// The object, with [`Entry::revision`] as its `metadata.resourceVersion`.
    pub doc: Doc,
    /// The revision of the write that made this state.
    pub revision: u64,
}

impl Entry {
    /// The state that a write makes: the document is stamped with the revision.
    pub(crate) fn stamped(key: &Key, doc: &Doc, revision: u64) -> Arc<Self> {
        Arc::new(Self {
            key: key.clone(),
            doc: stamp(doc, revision),
            revision,
        })
    }

    /// Whether writing `doc` would change nothing but the revision.
    pub(crate) fn is_same_content(&self, doc: &Doc) -> bool {
        self.doc == *doc || self.doc == stamp(doc, self.revision)
    }
}

/// `doc` with `metadata.resourceVersion` set to the revision.
///
/// What has no `metadata` object is returned as it is: the store keeps any document.
#[must_use]
pub fn stamp(doc: &Doc, revision: u64) -> Doc {
    if doc.get("metadata").and_then(Doc::as_object).is_none() {
        return doc.clone();
    }
    let stamped = doc.with("/metadata/resourceVersion", revision.to_string());
    stamped.unwrap_or_else(|_| doc.clone())
}
