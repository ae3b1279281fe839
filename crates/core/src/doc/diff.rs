//! The differences between two documents, at the cost of the differences.

use super::{Array, Doc, Kind, Object, Path, Segment};

/// One difference between two documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The path of the value that differs.
    pub path: Path,
    /// In which way.
    pub change: Change,
}

/// The change of one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The place is only in the second document.
    Added(Doc),
    /// The place is only in the first document.
    Removed(Doc),
    /// The place is in both, with different values.
    Changed(Doc, Doc),
}

impl Doc {
    /// Every place in which `other` differs from `self`, in document order.
    ///
    /// Shared parts are equal by pointer and never entered. Arrays are compared item by item.
    #[must_use]
    pub fn diff(&self, other: &Self) -> Vec<Difference> {
        self.diff_up_to(other, usize::MAX)
    }

    /// The first `limit` places in which `other` differs from `self`.
    #[must_use]
    pub fn diff_up_to(&self, other: &Self, limit: usize) -> Vec<Difference> {
        let mut walk = Walk {
            path: Path::root(),
            found: Vec::new(),
            limit,
        };
        walk.values(self, other);
        walk.found
    }
}

struct Walk {
    path: Path,
    found: Vec<Difference>,
    limit: usize,
}

impl Walk {
    fn values(&mut self, old: &Doc, new: &Doc) {
        if old == new || self.found.len() >= self.limit {
            return;
        }
        match (old.kind(), new.kind()) {
            (Kind::Object(old), Kind::Object(new)) => self.objects(old, new),
            (Kind::Array(old), Kind::Array(new)) => self.arrays(old, new),
            _ => self.report(Change::Changed(old.clone(), new.clone())),
        }
    }

    /// Merges the two sorted key lists.
    fn objects(&mut self, old: &Object, new: &Object) {
        let (mut olds, mut news) = (old.iter().peekable(), new.iter().peekable());
        loop {
            let order = match (olds.peek(), news.peek()) {
                (None, None) => return,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some((a, _)), Some((b, _))) if a == b => std::cmp::Ordering::Equal,
                (Some((a, _)), Some((b, _))) => a.cmp(b),
            };
            let before = order.is_le().then(|| olds.next()).flatten();
            let after = order.is_ge().then(|| news.next()).flatten();
            let key = before.or(after).map(|(key, _)| key.as_str().to_owned());
            let (before, after) = (before.map(|(_, doc)| doc), after.map(|(_, doc)| doc));
            self.step(|| Segment::Key(key.unwrap_or_default()), before, after);
        }
    }

    fn arrays(&mut self, old: &Array, new: &Array) {
        for index in 0..old.len().max(new.len()) {
            self.step(|| Segment::Index(index), old.get(index), new.get(index));
        }
    }

    fn step(
        &mut self,
        segment: impl FnOnce() -> Segment,
        before: Option<&Doc>,
        after: Option<&Doc>,
    ) {
        if before == after {
            return;
        }
        self.path.push(segment());
        match (before, after) {
            (Some(before), Some(after)) => self.values(before, after),
            (Some(before), None) => self.report(Change::Removed(before.clone())),
            (None, Some(after)) => self.report(Change::Added(after.clone())),
            (None, None) => {}
        }
        self.path.pop();
    }

    fn report(&mut self, change: Change) {
        if self.found.len() < self.limit {
            self.found.push(Difference {
                path: self.path.clone(),
                change,
            });
        }
    }
}
