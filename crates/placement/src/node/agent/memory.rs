//! What the agent remembers of the pods on its nodes.

use std::{net::Ipv4Addr, time::Duration};

use hashbrown::{HashMap, HashSet};
use parking_lot::Mutex;
use tokio::time::Instant;
use windlass_core::{Doc, Key, MicroTime};

use crate::node::{run::Run, status::says_same};

/// The addresses of pods: all of 10.0.0.0/8 but its ends.
const ADDRESS_FIRST: u32 = 0x0a00_0001;
const ADDRESS_LAST: u32 = 0x0aff_fffe;

/// How long a status that somebody has overwritten waits before it is written again: the interval
/// at which a kubelet compares its pods with the server (`pkg/kubelet/status/status_manager.go`).
const REWRITE_INTERVAL: Duration = Duration::from_secs(10);

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
    /// When the status was written last from here.
    written: Option<Instant>,
    /// The status that was written last from here, once somebody else has written another one.
    overwritten: Option<Doc>,
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

    /// Takes over a newer version that was read from the server.
    pub(super) fn has_read(&mut self, pod: Doc) {
        let (old, new) = (self.pod.at("/status"), pod.at("/status"));
        if self.written.is_some() && self.overwritten.is_none() && !says_same(old, new) {
            self.overwritten = Some(old.clone());
        }
        self.pod = pod;
    }

    /// Takes over the version that the server has made of a status from here.
    pub(super) fn has_written(&mut self, pod: Doc, now: Instant) {
        self.pod = pod;
        self.written = Some(now);
        self.overwritten = None;
    }

    /// When a status may be written, if not now. A new one may always be. One that was written
    /// before and that somebody has overwritten waits, so that two agents that serve the same node
    /// and disagree do not answer each other at once and for ever.
    pub(super) fn writes_at(&self, status: &Doc, now: Instant) -> Option<Instant> {
        let overwritten = self.overwritten.as_ref();
        overwritten.filter(|overwritten| says_same(overwritten, status))?;
        let due = self.written? + REWRITE_INTERVAL;
        (due > now).then_some(due)
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
        wall: MicroTime,
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
                    known.has_read(cached.clone());
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
                written: None,
                overwritten: None,
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
