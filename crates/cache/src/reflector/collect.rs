//! The objects that a watch begins with, until they are complete.

use std::cmp::Ordering;

use crate::{object::Obj, tree::Element};

/// The number of entries, at least, before duplicates are looked for.
const COMPACT_MIN: usize = 1024;

/// Collects events into a state. Almost all of them are additions in the order of keys, so they
/// are only appended; what is superseded is dropped now and then, and at the end.
#[derive(Debug, Default)]
pub(super) struct Collected {
    /// The object of each event, and whether it is a deletion.
    entries: Vec<(Obj, bool)>,
    /// The number of entries after duplicates were last removed.
    distinct: usize,
}

impl Collected {
    pub(super) fn put(&mut self, object: Obj) {
        self.push(object, false);
    }

    pub(super) fn remove(&mut self, object: Obj) {
        self.push(object, true);
    }

    fn push(&mut self, object: Obj, is_deleted: bool) {
        self.entries.push((object, is_deleted));
        if self.entries.len() > COMPACT_MIN.max(2 * self.distinct) {
            self.compact();
        }
    }

    /// Keeps the last entry of each object.
    fn compact(&mut self) {
        let is_sorted = self
            .entries
            .is_sorted_by(|(a, _), (b, _)| a.order(b) == Ordering::Less);
        if !is_sorted {
            self.entries.reverse();
            self.entries.sort_by(|(a, _), (b, _)| a.order(b));
            self.entries
                .dedup_by(|(a, _), (b, _)| a.order(b) == Ordering::Equal);
        }
        self.distinct = self.entries.len();
    }

    pub(super) fn into_objects(mut self) -> Vec<Obj> {
        self.compact();
        let present = |(object, is_deleted): (Obj, bool)| (!is_deleted).then_some(object);
        self.entries.into_iter().filter_map(present).collect()
    }
}
