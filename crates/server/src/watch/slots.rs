//! Open watches, counted and capped: each holds memory for as long as its client likes.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::overload::overloaded;
use windlass_access::{MASTERS, User};
use windlass_rules::status::Status;

/// Open watches of all users.
const WATCHES_LIMIT: usize = 50_000;
/// The part of them that only members of `system:masters` may open.
const MASTERS_RESERVE: usize = 5_000;
/// Open watches of one user, members of `system:masters` excepted. Pods of a DaemonSet are one
/// user on all nodes.
pub(crate) const USER_WATCHES_LIMIT: usize = 10_000;

/// The watches that are open.
#[derive(Debug, Default)]
pub(crate) struct WatchSlots {
    open: Mutex<OpenWatches>,
    refused: AtomicU64,
}

#[derive(Debug, Default)]
struct OpenWatches {
    total: usize,
    users: HashMap<String, usize>,
}

/// Counts a watch as open as long as it is held.
#[derive(Debug)]
pub(crate) struct WatchSlot {
    slots: Arc<WatchSlots>,
    user: String,
}

impl WatchSlots {
    /// Counts a watch, or refuses it.
    pub(crate) fn open(self: &Arc<Self>, user: &User) -> Result<WatchSlot, Status> {
        let is_master = user.is_in(MASTERS);
        let limit = WATCHES_LIMIT - if is_master { 0 } else { MASTERS_RESERVE };
        let mut open = self.open.lock();
        let of_user = open.users.get(&user.name).copied().unwrap_or(0);
        if open.total >= limit || (of_user >= USER_WATCHES_LIMIT && !is_master) {
            drop(open);
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(overloaded());
        }
        open.total += 1;
        *open.users.entry(user.name.clone()).or_default() += 1;
        Ok(WatchSlot {
            slots: Arc::clone(self),
            user: user.name.clone(),
        })
    }

    /// Watches that are open, and that were refused so far.
    pub(crate) fn counts(&self) -> (usize, u64) {
        let refused = self.refused.load(Ordering::Relaxed);
        (self.open.lock().total, refused)
    }
}

impl Drop for WatchSlot {
    fn drop(&mut self) {
        let mut open = self.slots.open.lock();
        open.total -= 1;
        if let Some(of_user) = open.users.get_mut(&self.user) {
            *of_user -= 1;
            if *of_user == 0 {
                open.users.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watches_are_capped_for_a_user_and_for_all_but_masters() {
        let slots = Arc::new(WatchSlots::default());
        let mut held = Vec::new();
        for name in ["a", "b", "c", "d"] {
            let user = User::new(name, &[]);
            for _ in 0..USER_WATCHES_LIMIT {
                held.push(slots.open(&user).unwrap());
            }
            assert_eq!(slots.open(&user).unwrap_err().code(), 429);
        }
        let last = User::new("e", &[]);
        let rest = WATCHES_LIMIT - MASTERS_RESERVE - held.len();
        held.extend((0..rest).map(|_| slots.open(&last).unwrap()));
        assert!(slots.open(&last).is_err(), "all but the reserve are open");
        assert!(slots.open(&User::admin()).is_ok());
        assert_eq!(slots.counts(), (WATCHES_LIMIT - MASTERS_RESERVE, 5));
        drop(held);
        assert_eq!(slots.counts().0, 0);
        assert!(slots.open.lock().users.is_empty());
    }
}
