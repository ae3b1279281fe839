//! Index functions for what controllers look up most.
//!
//! An index function gives the values under which an object is found, any number of them. It
//! cannot fail: an object that lacks a field is simply not in that index.

use std::sync::Arc;

use windlass_core::{Doc, Kind, Str};

use crate::object::Obj;

/// The values under which an object is found.
pub type IndexFn = Arc<dyn Fn(&Obj) -> Vec<Str> + Send + Sync>;

/// The name of the index by namespace. It always exists and takes no memory, because objects are
/// sorted by namespace already.
pub const NAMESPACE_INDEX: &str = "namespace";

/// The usual name of the index by the UIDs of owners.
pub const OWNER_INDEX: &str = "ownerUID";

/// The usual name of the index by the UID of the managing owner.
pub const CONTROLLER_INDEX: &str = "controllerUID";

/// By the UID of each owner.
#[must_use]
pub fn owner_uid(object: &Obj) -> Vec<Str> {
    owners(object).filter_map(uid).collect()
}

/// By the UID of the owner that manages the object.
#[must_use]
pub fn controller_uid(object: &Obj) -> Vec<Str> {
    let is_controller = |owner: &&Doc| owner.get("controller").and_then(Doc::as_bool) == Some(true);
    owners(object)
        .find(is_controller)
        .and_then(uid)
        .into_iter()
        .collect()
}

/// By the value of one label.
pub fn label(key: &str) -> impl Fn(&Obj) -> Vec<Str> + Send + Sync + 'static {
    let key = Str::new(key);
    move |object| {
        let labels = object.meta().field("labels");
        let value = labels.and_then(|labels| labels.get(&key)?.shared_str());
        value.into_iter().collect()
    }
}

/// By the scalar at a JSON pointer such as `/spec/nodeName`; an array gives each of its scalars.
/// Empty strings give no value: a pod without a node is not on the node of no name.
pub fn field(pointer: &str) -> impl Fn(&Obj) -> Vec<Str> + Send + Sync + 'static {
    let pointer = pointer.to_owned();
    move |object| match object.doc().at(&pointer).kind() {
        Kind::Array(items) => items.iter().filter_map(scalar).collect(),
        _ => scalar(object.doc().at(&pointer)).into_iter().collect(),
    }
}

fn owners(object: &Obj) -> impl Iterator<Item = &Doc> {
    object
        .meta()
        .field("ownerReferences")
        .map_or(&[][..], Doc::items)
        .iter()
}

fn uid(owner: &Doc) -> Option<Str> {
    owner.get("uid")?.shared_str()
}

fn scalar(doc: &Doc) -> Option<Str> {
    match doc.kind() {
        Kind::Str("") | Kind::Null | Kind::Array(_) | Kind::Object(_) => None,
        Kind::Str(_) => doc.shared_str(),
        Kind::Bool(_) | Kind::Int(_) | Kind::UInt(_) | Kind::Float(_) => {
            String::from_utf8(doc.to_json()).ok().map(Str::from)
        }
    }
}
