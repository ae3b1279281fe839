//! One state of one object.

use std::fmt;
use std::sync::{Arc, LazyLock};

use windlass_core::{Doc, Key};

/// One state of one object. Maps, events and snapshots share it by reference count.
pub struct Entry {
    /// The name of the object in its resource.
    pub key: Key,
    /// The revision of the write that made this state.
    pub revision: u64,
    content: Content,
}

/// The document of an [`Entry`].
enum Content {
    Known(Doc),
    /// On the disk when the store was opened. Boxed, because it is the rarer one.
    Unread(Box<Unread>),
}

struct Unread {
    doc: LazyLock<Doc, Box<dyn FnOnce() -> Doc + Send + Sync>>,
    /// The length of its row on the disk.
    packed_len: usize,
}

impl Entry {
    /// The state that a write makes: the document is stamped with the revision.
    pub(crate) fn stamped(key: &Key, doc: &Doc, revision: u64) -> Arc<Self> {
        Arc::new(Self {
            key: key.clone(),
            revision,
            content: Content::Known(stamp(doc, revision)),
        })
    }

    /// A state as it was written, with its revision in it.
    pub(crate) fn read(key: &Key, revision: u64, doc: Doc) -> Arc<Self> {
        Arc::new(Self {
            key: key.clone(),
            revision,
            content: Content::Known(doc),
        })
    }

    /// A state whose document is made when somebody asks for it.
    pub(crate) fn unread(
        key: Key,
        revision: u64,
        packed_len: usize,
        read: impl FnOnce() -> Doc + Send + Sync + 'static,
    ) -> Arc<Self> {
        let doc = LazyLock::new(Box::new(read) as Box<_>);
        let unread = Unread { doc, packed_len };
        Arc::new(Self {
            key,
            revision,
            content: Content::Unread(Box::new(unread)),
        })
    }

    /// The object, with [`Entry::revision`] as its `metadata.resourceVersion`.
    ///
    /// Right after a start this may take some microseconds: objects are verified when the store is
    /// opened, and put together when they are needed.
    #[must_use]
    #[inline]
    pub fn doc(&self) -> &Doc {
        match &self.content {
            Content::Known(doc) => doc,
            Content::Unread(unread) => &unread.doc,
        }
    }

    /// Bytes of memory that this state holds and the next one does not: an upper bound. A state
    /// from the disk counts with its row, because it may not have been put together yet.
    pub(crate) fn bytes_beyond(&self, next: Option<&Self>) -> usize {
        let newer = match next.map(|next| &next.content) {
            Some(Content::Known(doc)) => Some(doc),
            Some(Content::Unread(_)) | None => None,
        };
        match &self.content {
            Content::Known(doc) => doc.bytes_beyond(newer),
            Content::Unread(unread) => unread.packed_len,
        }
    }

    /// Whether writing `doc` would change nothing but the revision.
    pub(crate) fn is_same_content(&self, doc: &Doc) -> bool {
        self.doc() == doc || *self.doc() == stamp(doc, self.revision)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.revision == other.revision && self.key == other.key && self.doc() == other.doc()
    }
}

impl Eq for Entry {}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("key", &self.key)
            .field("revision", &self.revision)
            .field("doc", self.doc())
            .finish()
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
