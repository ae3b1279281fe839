//! Pods whose finalizers were removed and that the cache may still show with them.

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;
use windlass_core::{Key, Uid};

/// The pods of each Job whose finalizers were removed. A pod in here is counted already.
///
/// Syncs add, handlers remove what they have seen. Bounded by the pods whose finalizers are removed
/// and not seen to be.
#[derive(Debug, Default)]
pub(super) struct FinalizerExpectations(Mutex<HashMap<Key, HashSet<Uid>>>);

impl FinalizerExpectations {
    /// Expects these pods to lose their finalizers.
    pub(super) fn expect(&self, job: &Key, pods: impl Iterator<Item = Uid>) {
        let mut pods = pods.peekable();
        if pods.peek().is_some() {
            self.0.lock().entry(job.clone()).or_default().extend(pods);
        }
    }

    /// A pod was seen without its finalizer, or it never will be.
    pub(super) fn observed(&self, job: &Key, pod: &Uid) {
        let mut jobs = self.0.lock();
        let Some(pods) = jobs.get_mut(job) else {
            return;
        };
        pods.remove(pod);
        if pods.is_empty() {
            jobs.remove(job);
        }
    }

    /// The pods of a Job that were not seen without their finalizers yet.
    pub(super) fn pending(&self, job: &Key) -> HashSet<Uid> {
        self.0.lock().get(job).cloned().unwrap_or_default()
    }

    /// Forgets a Job that is gone.
    pub(super) fn forget(&self, job: &Key) {
        self.0.lock().remove(job);
    }
}
