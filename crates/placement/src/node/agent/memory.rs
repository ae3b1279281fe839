//! What the agent remembers of the pods on its nodes.

use std::net::Ipv4Addr;

use hashbrown::{HashMap, HashSet};
use parking_lot::Mutex;
use tokio::time::Instant;
use windlass_core::{Doc, Key, Time};

use crate::node::run::Run;

/// The addresses of pods: all of 10.0.0.0/8 but its ends.
const ADDRESS_FIRST: u32 = 0x0a00_0001;
const ADDRESS_LAST: u32 = 0x0aff_fffe;

/// A pod on a pretend node. Taken out of the memory while somebody works on it.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// The newest version that was read or written.
    pub(super) pod: Doc,
    pub(super) run: Run,
    pub(super) rest: Rest,
    /// The annotations whose problems were told last.
    pub(super) told: Doc,
    address: u32,
}

/// How long there is nothing to do for a pod that does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// There may be something to do now.
    None,
    Until(Instant),
    Forever,
}

impl Rest {
    /// Whether there is nothing to do yet.
    pub(super) fn lasts(self, now: Instant) -> bool {
        match self {
            Self::None => false,
            Self::Until(end) => now < end,
            Self::Forever => true,
        }
    }
}

impl Known {
    /// The address of the pod.
    pub(super) fn address(&self) -> String {
        Ipv4Addr::from_bits(self.address).to_string()
    }
}

/// The pods on all pretend nodes. Whoever holds the key of a pod writes its entry; bounded by the
/// pods that exist.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    pods: HashMap<Key, Known, foldhash::fast::RandomState>,
    addresses: HashSet<u32, foldhash::fast::RandomState>,
    next_address: u32,
}

impl Memory {
    /// The newest state of a pod, and the pod that was there before and is gone, if there was one.
    pub(super) fn take(
        &self,
        key: &Key,
        cached: Option<&Doc>,
        now: Instant,
        wall: Time,
    ) -> (Option<Known>, Option<Doc>) {
        let mut entries = self.0.lock();
        let known = entries.pods.remove(key);
        let uid = cached.map_or("", |pod| pod.meta().uid_str());
        let (known, left) = match known {
            Some(known) if known.pod.meta().uid_str() == uid => (Some(known), None),
            Some(other) => {
                entries.addresses.remove(&other.address);
                (None, Some(other.pod))
            }
            None => (None, None),
        };
        let Some(cached) = cached else {
            return (None, left);
        };
        let known = match known {
            Some(mut known) => {
                if is_newer(cached, &known.pod) {
                    known.pod = cached.clone();
                    known.rest = Rest::None;
                }
                known
            }
            None => Known {
                pod: cached.clone(),
                run: Run::resume(cached, now, wall),
                rest: Rest::None,
                told: Doc::NULL,
                address: entries.address(cached),
            },
        };
        (Some(known), left)
    }

    /// Keeps the state of a pod.
    pub(super) fn put(&self, key: &Key, known: Known) {
        self.0.lock().pods.insert(key.clone(), known);
    }
}

impl Entries {
    /// The address of a pod: the one it has, or one that no other has.
    fn address(&mut self, pod: &Doc) -> u32 {
        let given: Option<Ipv4Addr> = pod.str_at("/status/podIP").parse().ok();
        if let Some(given) = given {
            self.addresses.insert(given.to_bits());
            return given.to_bits();
        }
        loop {
            let next = ADDRESS_FIRST + self.next_address % (ADDRESS_LAST - ADDRESS_FIRST + 1);
            self.next_address = self.next_address.wrapping_add(1);
            if self.addresses.insert(next) {
                return next;
            }
        }
    }
}

fn is_newer(cached: &Doc, known: &Doc) -> bool {
    let number = |pod: &Doc| pod.meta().revision().and_then(|revision| revision.as_u64());
    match (number(cached), number(known)) {
        (Some(cached), Some(known)) => cached > known,
        _ => true,
    }
}
