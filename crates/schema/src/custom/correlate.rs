//! Which value an item of a list was before.

use std::collections::HashMap;

use windlass_core::Doc;

use super::schema::{List, Node};

/// The items of an old list by their keys, if the list has keys to tell by.
pub(crate) struct Correlation<'a> {
    keys: &'a [String],
    /// Of several items with the same keys the first.
    items: HashMap<Vec<Option<&'a Doc>>, &'a Doc>,
}

impl<'a> Correlation<'a> {
    pub(crate) fn of(list: &'a Node, old: Option<&'a Doc>) -> Self {
        let (keys, old) = match (&list.list, old) {
            (List::Map(keys), Some(old)) => (&keys[..], old.items()),
            _ => (&[][..], &[][..]),
        };
        let mut items = HashMap::with_capacity(old.len());
        for item in old {
            items.entry(values(keys, item)).or_insert(item);
        }
        Self { keys, items }
    }

    /// The item of the old list that a new one continues.
    pub(crate) fn item(&self, new: &Doc) -> Option<&'a Doc> {
        if self.items.is_empty() {
            return None;
        }
        self.items.get(&values(self.keys, new)).copied()
    }
}

fn values<'a>(keys: &[String], item: &'a Doc) -> Vec<Option<&'a Doc>> {
    keys.iter().map(|key| item.get(key)).collect()
}
