//! Owner references.

use crate::{Doc, Gvk, Object, Str, Uid};

/// A reference from an object to one of its owners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerRef {
    /// Group and version of the owner.
    pub api_version: String,
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner, in the same namespace or without one.
    pub name: String,
    /// The owner itself: an object of the same name with another UID is not the owner.
    pub uid: Uid,
    /// True if this owner is the controller of the object.
    pub controller: bool,
    /// True if foreground deletion of the owner waits for the object.
    pub block_owner_deletion: bool,
}

impl OwnerRef {
    /// The reference that a controller writes on the children of `owner`.
    #[must_use]
    pub fn controller_of(owner: &Doc, gvk: &Gvk) -> Self {
        Self {
            api_version: gvk.api_version(),
            kind: gvk.kind().to_owned(),
            name: owner.meta().name().to_owned(),
            uid: owner.meta().uid(),
            controller: true,
            block_owner_deletion: true,
        }
    }

    pub(super) fn from_doc(doc: &Doc) -> Self {
        let text = |key: &str| doc.get(key).and_then(Doc::as_str).unwrap_or("");
        let flag = |key: &str| doc.get(key).and_then(Doc::as_bool).unwrap_or(false);
        Self {
            api_version: text("apiVersion").to_owned(),
            kind: text("kind").to_owned(),
            name: text("name").to_owned(),
            uid: text("uid").into(),
            controller: flag("controller"),
            block_owner_deletion: flag("blockOwnerDeletion"),
        }
    }

    /// The group of the owner; empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        self.api_version
            .split_once('/')
            .map_or("", |(group, _)| group)
    }
}

impl From<&OwnerRef> for Doc {
    /// Flags that are not set are left out, as Kubernetes writes them.
    fn from(owner: &OwnerRef) -> Self {
        let mut fields = vec![
            (Str::new("apiVersion"), Self::from(&owner.api_version)),
            (Str::new("kind"), Self::from(&owner.kind)),
            (Str::new("name"), Self::from(&owner.name)),
            (Str::new("uid"), Self::from(owner.uid.as_str())),
        ];
        if owner.controller {
            fields.push((Str::new("controller"), Self::from(true)));
        }
        if owner.block_owner_deletion {
            fields.push((Str::new("blockOwnerDeletion"), Self::from(true)));
        }
        Object::new(fields).into()
    }
}
