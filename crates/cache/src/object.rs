//! Cached objects: immutable, behind one shared pointer.

use std::{cmp::Ordering, fmt, marker::PhantomData};

use serde::de::DeserializeOwned;
use triomphe::Arc;
use windlass_core::{DecodeError, Doc, Key, Labels, Meta, OwnerRef, Revision, Uid};

use crate::tree::Element;

/// An object of a cache. A clone is one reference count; nobody can change what it points to.
///
/// The type says what [`decode`](Self::decode) reads: a full typed struct, a small view of the
/// fields that matter, or [`Doc`] for an object whose type the program does not know.
///
/// There is no way to change a cached object in place, so nothing has to watch out for it.
///
/// ```
/// # use windlass_cache::Obj;
/// # use windlass_core::Doc;
/// fn renamed(pod: &Obj) -> Option<Doc> {
///     pod.doc().with("/metadata/name", "other").ok()
/// }
/// ```
/// ```compile_fail
/// # use windlass_cache::Obj;
/// # use windlass_core::Doc;
/// fn rename(pod: &Obj) {
///     *pod.doc() = pod.doc().with("/metadata/name", "other").unwrap();
/// }
/// ```
pub struct Obj<K = Doc> {
    record: Arc<Record>,
    kind: PhantomData<fn() -> K>,
}

struct Record {
    doc: Doc,
    /// Null for a cluster-scoped object. Both names are parts of `doc`, at hand for comparisons.
    namespace: Doc,
    name: Doc,
}

/// An object has no name, and so a cache cannot hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("object has no metadata.name")]
pub struct UnnamedObject;

impl<K> Obj<K> {
    /// The memory of an object beside its document: the record and its reference count.
    pub(crate) const RECORD_BYTES: usize = size_of::<Record>() + size_of::<usize>();

    /// An object from its document.
    ///
    /// # Errors
    /// When the document has no `metadata.name`.
    pub fn new(doc: Doc) -> Result<Self, UnnamedObject> {
        let text = |field: &str| {
            let text = doc.meta().field(field)?;
            (!text.as_str()?.is_empty()).then(|| text.clone())
        };
        let name = text("name").ok_or(UnnamedObject)?;
        let namespace = text("namespace").unwrap_or_default();
        let record = Arc::new(Record {
            doc,
            namespace,
            name,
        });
        Ok(Self {
            record,
            kind: PhantomData,
        })
    }

    /// The object as a document.
    #[must_use]
    pub fn doc(&self) -> &Doc {
        &self.record.doc
    }

    /// The metadata.
    #[must_use]
    pub fn meta(&self) -> Meta<'_> {
        self.record.doc.meta()
    }

    /// The key: `namespace/name`, or the name alone.
    #[must_use]
    pub fn key(&self) -> Key {
        Key::new(self.namespace(), self.name())
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.record.name.as_str().unwrap_or("")
    }

    /// The namespace; empty for a cluster-scoped object.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.record.namespace.as_str().unwrap_or("")
    }

    /// The UID.
    #[must_use]
    pub fn uid(&self) -> Uid {
        self.meta().uid()
    }

    /// The labels.
    #[must_use]
    pub fn labels(&self) -> Labels<'_> {
        self.meta().labels()
    }

    /// The owners.
    pub fn owner_refs(&self) -> impl Iterator<Item = OwnerRef> + use<'_, K> {
        self.meta().owner_refs()
    }

    /// The resource version, if it is one that can be compared.
    #[must_use]
    pub fn revision(&self) -> Option<Revision> {
        self.meta().revision()
    }

    /// Reads any type from the object; a view that names few fields is read in about a
    /// microsecond.
    ///
    /// # Errors
    /// When the object does not have the fields that the type needs.
    pub fn view<V: DeserializeOwned>(&self) -> Result<V, DecodeError> {
        self.record.doc.decode()
    }

    /// The same object under another type. Nothing is read or checked.
    #[must_use]
    pub fn cast<T>(&self) -> Obj<T> {
        Obj {
            record: self.record.clone(),
            kind: PhantomData,
        }
    }

    /// Returns true if both are one allocation: the same version from the same cache.
    #[must_use]
    pub fn ptr_eq<T>(&self, other: &Obj<T>) -> bool {
        Arc::ptr_eq(&self.record, &other.record)
    }

    /// The order of this object relative to a key.
    pub(crate) fn order_to(&self, namespace: &str, name: &str) -> Ordering {
        match self.order_to_namespace(namespace) {
            Ordering::Equal => self.name().cmp(name),
            unequal => unequal,
        }
    }

    /// The order of this object relative to all objects of a namespace.
    pub(crate) fn order_to_namespace(&self, namespace: &str) -> Ordering {
        order_namespaces(self.namespace(), namespace)
    }

    /// Returns true if both have the same UID. Without UIDs two objects of one name are taken for
    /// one.
    pub(crate) fn is_same_life<T>(&self, other: &Obj<T>) -> bool {
        // Interned texts: this is a comparison of pointers.
        self.meta().field("uid") == other.meta().field("uid")
    }
}

impl<K: DeserializeOwned> Obj<K> {
    /// Reads the object as its type.
    ///
    /// # Errors
    /// When the object does not fit the type.
    pub fn decode(&self) -> Result<K, DecodeError> {
        self.record.doc.decode()
    }
}

/// Orders namespaces as the keys that start with them: by their text with the slash, because an
/// API server lists `a-b/x` before `a/x`. Cluster-scoped objects, which have none, come first.
fn order_namespaces(a: &str, b: &str) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    if a.is_empty() || b.is_empty() {
        return a.len().cmp(&b.len());
    }
    a.bytes().chain([b'/']).cmp(b.bytes().chain([b'/']))
}

impl Element for Obj {
    fn order(&self, other: &Self) -> Ordering {
        let (a, b) = (&*self.record, &*other.record);
        if a.namespace == b.namespace {
            // Equal names are one allocation, which is cheaper to see than to compare.
            return if a.name == b.name {
                Ordering::Equal
            } else {
                self.name().cmp(other.name())
            };
        }
        order_namespaces(self.namespace(), other.namespace())
    }
}

impl<K> Clone for Obj<K> {
    fn clone(&self) -> Self {
        self.cast()
    }
}

/// Two objects are equal when their documents are.
impl<K> PartialEq for Obj<K> {
    fn eq(&self, other: &Self) -> bool {
        self.record.doc == other.record.doc
    }
}

impl<K> Eq for Obj<K> {}

/// Prints the key and the revision only: the content may be a Secret.
impl<K> fmt::Debug for Obj<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Obj({}@{})", self.key(), self.meta().resource_version())
    }
}

/// A deletion, as handlers hear of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deleted<K = Doc> {
    /// The watch said so; the object is its final state.
    Observed(Obj<K>),
    /// The deletion itself was missed and a new list found the object gone, or replaced by
    /// another of the same name. The object is the last state that was known.
    Tombstone(Obj<K>),
}

impl<K> Deleted<K> {
    /// The object, as far as it was known.
    #[must_use]
    pub fn object(&self) -> &Obj<K> {
        match self {
            Self::Observed(object) | Self::Tombstone(object) => object,
        }
    }

    /// The key of the object.
    #[must_use]
    pub fn key(&self) -> Key {
        self.object().key()
    }

    /// Returns true if the final state is not known.
    #[must_use]
    pub fn is_tombstone(&self) -> bool {
        matches!(self, Self::Tombstone(_))
    }

    /// The same deletion under another type.
    #[must_use]
    pub fn cast<T>(&self) -> Deleted<T> {
        match self {
            Self::Observed(object) => Deleted::Observed(object.cast()),
            Self::Tombstone(object) => Deleted::Tombstone(object.cast()),
        }
    }
}
