//! Pods that are known to be gone.

use std::collections::{BTreeMap, HashMap};

use windlass_core::Uid;

/// How many UIDs of deleted pods are remembered. One that is forgotten costs a request.
pub const DELETED_UIDS_LIMIT: usize = 500;

/// What became of a pod that a claim is reserved for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consumer {
    /// It was seen to be deleted.
    SeenDeleted,
    /// The cache shows it, and it has ended.
    Done,
    /// The cache shows it, and it needs its claims.
    Active,
    /// The cache does not show it, and the server does not have it either.
    Absent,
    /// The cache does not show it, and the server has it.
    Unseen,
    /// It is no pod.
    Other,
}

impl Consumer {
    /// Whether the reservation stays.
    #[must_use]
    pub fn keeps(self) -> bool {
        matches!(self, Self::Active | Self::Unseen | Self::Other)
    }
}

/// The UIDs of deleted pods, as many as the limit allows. The one not asked for longest goes.
#[derive(Debug)]
pub(super) struct DeletedUids {
    used: HashMap<Uid, u64>,
    order: BTreeMap<u64, Uid>,
    limit: usize,
    clock: u64,
}

impl DeletedUids {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            used: HashMap::new(),
            order: BTreeMap::new(),
            limit,
            clock: 0,
        }
    }

    pub(super) fn add(&mut self, uid: Uid) {
        if self.limit == 0 {
            return;
        }
        let is_full = self.used.len() >= self.limit;
        if is_full
            && !self.used.contains_key(&uid)
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.used.remove(&oldest);
        }
        self.touch(uid);
    }

    /// Whether this pod is known to be gone. Asking counts as use.
    pub(super) fn has(&mut self, uid: &Uid) -> bool {
        let is_known = self.used.contains_key(uid);
        if is_known {
            self.touch(uid.clone());
        }
        is_known
    }

    fn touch(&mut self, uid: Uid) {
        self.clock += 1;
        if let Some(before) = self.used.insert(uid.clone(), self.clock) {
            self.order.remove(&before);
        }
        self.order.insert(self.clock, uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_uid_that_was_not_asked_for_longest_is_forgotten() {
        let mut deleted = DeletedUids::new(2);
        deleted.add("a".into());
        deleted.add("b".into());
        assert!(deleted.has(&"a".into()));
        deleted.add("c".into());
        let known = ["a", "b", "c"].map(|uid| deleted.has(&uid.into()));
        assert_eq!(known, [true, false, true]);
    }

    #[test]
    fn the_first_of_more_than_the_limit_is_forgotten() {
        let mut deleted = DeletedUids::new(DELETED_UIDS_LIMIT);
        for number in 0..=DELETED_UIDS_LIMIT {
            deleted.add(Uid::from(format!("u{number}")));
        }
        assert!(!deleted.has(&"u0".into()));
        assert!(deleted.has(&"u1".into()));
        assert_eq!((deleted.used.len(), deleted.order.len()), (500, 500));
    }
}
