//! Which value an item of a list was before.

use windlass_core::Doc;

use super::schema::{List, Node};

/// The item of an old list that a new one continues, if the list has keys to tell by.
pub(super) fn item<'a>(list: &Node, new: &Doc, old: &'a Doc) -> Option<&'a Doc> {
    let List::Map(keys) = &list.list else {
        return None;
    };
    let is_same = |old: &&Doc| keys.iter().all(|key| old.get(key) == new.get(key));
    old.items().iter().find(is_same)
}
