//! Who an object is, and who it says its owners are.

use std::fmt;

use windlass_core::{Doc, Meta, OwnerRef, Str};

/// The finalizer of an object that waits until its dependents are gone.
pub(super) const FOREGROUND: &str = "foregroundDeletion";

/// The finalizer of an object that waits until its dependents have forgotten it.
pub(super) const ORPHAN: &str = "orphan";

/// Everything by which an object is found. Its order is that in which other identities of an owner
/// are tried: all of one kind together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Identity {
    pub(super) kind: Str,
    pub(super) api_version: Str,
    /// Empty outside of namespaces.
    pub(super) namespace: Str,
    pub(super) name: Str,
    pub(super) uid: Str,
}

/// A reference to an owner. It has no namespace: the owner is in that of the dependent, or in none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) kind: Str,
    pub(super) api_version: Str,
    pub(super) name: Str,
    pub(super) uid: Str,
    /// Whether the owner cannot go in the foreground before the dependent.
    pub(super) is_blocking: bool,
}

/// How far the deletion of an object is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Deletion {
    pub(super) is_deleting: bool,
    pub(super) has_orphan: bool,
    pub(super) has_foreground: bool,
}

/// An object as a watch shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) identity: Identity,
    pub(super) owners: Vec<Owner>,
    pub(super) deletion: Deletion,
}

impl Identity {
    /// An object of a kind, by its metadata.
    pub(super) fn of(kind: &Str, api_version: &Str, meta: Meta<'_>) -> Self {
        Self {
            kind: kind.clone(),
            api_version: api_version.clone(),
            namespace: meta.namespace().into(),
            name: meta.name().into(),
            uid: meta.uid_str().into(),
        }
    }

    /// Whether the object lives in a namespace.
    pub(super) fn is_namespaced(&self) -> bool {
        !self.namespace.is_empty()
    }

    /// The same object in another namespace, or in none.
    pub(super) fn in_namespace(&self, namespace: &str) -> Self {
        Self {
            namespace: namespace.into(),
            ..self.clone()
        }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            api_version,
            namespace,
            name,
            uid,
        } = self;
        write!(
            f,
            "[{api_version}/{kind}, namespace: {namespace}, name: {name}, uid: {uid}]"
        )
    }
}

impl Owner {
    /// The owner that a dependent in a namespace means.
    pub(super) fn identity(&self, namespace: &Str) -> Identity {
        Identity {
            kind: self.kind.clone(),
            api_version: self.api_version.clone(),
            namespace: namespace.clone(),
            name: self.name.clone(),
            uid: self.uid.clone(),
        }
    }

    /// Whether the reference names this object, wherever that lives.
    pub(super) fn names(&self, identity: &Identity) -> bool {
        self.uid == identity.uid
            && self.name == identity.name
            && self.kind == identity.kind
            && self.api_version == identity.api_version
    }
}

impl From<OwnerRef> for Owner {
    fn from(owner: OwnerRef) -> Self {
        Self {
            kind: owner.kind.into(),
            api_version: owner.api_version.into(),
            name: owner.name.into(),
            uid: owner.uid.as_str().into(),
            is_blocking: owner.block_owner_deletion,
        }
    }
}

impl Deletion {
    pub(super) fn of(meta: Meta<'_>) -> Self {
        Self {
            is_deleting: meta.is_deleting(),
            has_orphan: meta.has_finalizer(ORPHAN),
            has_foreground: meta.has_finalizer(FOREGROUND),
        }
    }

    /// Whether the object waits until its dependents have forgotten it.
    pub(super) fn is_orphaning(self) -> bool {
        self.is_deleting && self.has_orphan
    }

    /// Whether the object waits until its dependents are gone.
    pub(super) fn is_foreground(self) -> bool {
        self.is_deleting && self.has_foreground
    }
}

impl Seen {
    /// An object of a kind.
    pub(super) fn of(kind: &Str, api_version: &Str, object: &Doc) -> Self {
        let meta = object.meta();
        Self {
            identity: Identity::of(kind, api_version, meta),
            owners: meta.owner_refs().map(Owner::from).collect(),
            deletion: Deletion::of(meta),
        }
    }
}
