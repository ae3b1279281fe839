//! Who has which device.

use std::fmt;

use foldhash::fast::RandomState;
use windlass_core::{Doc, Key, Uid};

use crate::{allocator::DeviceId, claims::is_allocated};

/// The claims and the devices they have, under one lock: a device is never out of sight between
/// the decision to take it and the cache's word that it is taken.
#[derive(Default)]
pub(super) struct Tracker {
    claims: HashMap<Key, Known>,
    /// What is decided and not written yet, by the UID of the claim.
    in_flight: HashMap<Uid, Doc>,
    /// How many claims have a device, those in flight included.
    users: HashMap<DeviceId, u32>,
}

/// Nothing is shown in the order of these.
type HashMap<K, V> = hashbrown::HashMap<K, V, RandomState>;

/// A claim in two versions.
struct Known {
    /// As the cache shows it.
    cached: Doc,
    /// As it was last written here, or as the cache shows it, whichever is newer.
    latest: Doc,
}

/// A claim before and after a change.
pub(super) type Changed = (Option<Doc>, Option<Doc>);

impl Tracker {
    /// The claim of a key in its latest version.
    pub(super) fn get(&self, key: &Key) -> Option<Doc> {
        self.claims.get(key).map(|known| known.latest.clone())
    }

    pub(super) fn is_in_use(&self, device: &DeviceId) -> bool {
        self.users.contains_key(device)
    }

    pub(super) fn is_in_flight(&self, claim: &Doc) -> bool {
        self.in_flight.contains_key(&claim.meta().uid())
    }

    /// The cache shows a claim. What is older than what was written here says nothing new.
    pub(super) fn observe(&mut self, claim: &Doc) -> Option<Changed> {
        let known = self.claims.get_mut(&claim.meta().key());
        let old = match known {
            Some(known) if known.latest.meta().revision() >= claim.meta().revision() => {
                if known.cached.meta().revision() < claim.meta().revision() {
                    known.cached = claim.clone();
                }
                return None;
            }
            Some(known) => Some(known.latest.clone()),
            None => None,
        };
        self.replace(claim.clone(), claim.clone());
        Some((old, Some(claim.clone())))
    }

    /// The cache shows that a claim is gone.
    pub(super) fn forget(&mut self, claim: &Doc) -> Option<Changed> {
        let key = claim.meta().key();
        let known = self.claims.get(&key)?;
        if known.latest.meta().uid() != claim.meta().uid() {
            return None;
        }
        let known = self.claims.remove(&key)?;
        self.count(&known.latest, false);
        Some((Some(known.latest), None))
    }

    /// A claim was written here, and this is what it is now.
    pub(super) fn assume(&mut self, claim: &Doc) {
        let key = claim.meta().key();
        let Some(known) = self.claims.get(&key) else {
            return;
        };
        let is_same = known.latest.meta().uid() == claim.meta().uid();
        if is_same && known.latest.meta().revision() < claim.meta().revision() {
            let cached = known.cached.clone();
            self.replace(cached, claim.clone());
        }
    }

    /// What was written here is not to be relied on; the cache is.
    pub(super) fn restore(&mut self, key: &Key) {
        if let Some(known) = self.claims.get(key) {
            let cached = known.cached.clone();
            self.replace(cached.clone(), cached);
        }
    }

    fn replace(&mut self, cached: Doc, latest: Doc) {
        let key = latest.meta().key();
        self.count(&latest, true);
        if let Some(before) = self.claims.insert(key, Known { cached, latest }) {
            self.count(&before.latest, false);
        }
    }

    /// Takes the devices of claims that are about to be written: all of them, or none if somebody
    /// has one of them by now.
    pub(super) fn take(&mut self, claims: &[Doc]) -> Result<(), String> {
        for claim in claims {
            let key = claim.meta().key();
            let is_open = self.claims.get(&key).is_some_and(|known| {
                known.latest.meta().uid() == claim.meta().uid() && !is_allocated(&known.latest)
            });
            if !is_open || self.is_in_flight(claim) {
                return Err(format!("claim {key} was allocated in the meantime"));
            }
            if let Some(device) = devices(claim).find(|device| self.is_in_use(device)) {
                return Err(format!("device {device} was allocated in the meantime"));
            }
        }
        for claim in claims {
            self.count(claim, true);
            self.in_flight.insert(claim.meta().uid(), claim.clone());
        }
        Ok(())
    }

    /// A claim is not about to be written any more.
    pub(super) fn land(&mut self, claim: &Doc) {
        if let Some(claim) = self.in_flight.remove(&claim.meta().uid()) {
            self.count(&claim, false);
        }
    }

    fn count(&mut self, claim: &Doc, is_added: bool) {
        for device in devices(claim) {
            if is_added {
                *self.users.entry(device).or_default() += 1;
                continue;
            }
            let left = self.users.get_mut(&device).map_or(0, |users| {
                *users -= 1;
                *users
            });
            if left == 0 {
                self.users.remove(&device);
            }
        }
    }
}

/// The devices that a claim has for itself. Administrators share what they have.
fn devices(claim: &Doc) -> impl Iterator<Item = DeviceId> {
    let results = claim
        .at("/status/allocation/devices/results")
        .items()
        .iter();
    let own = results.filter(|result| result.at("/adminAccess").as_bool() != Some(true));
    own.map(DeviceId::of_result)
}

impl fmt::Debug for Tracker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracker")
            .field("claims", &self.claims.len())
            .field("in_flight", &self.in_flight.len())
            .field("devices", &self.users.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use windlass_core::doc;

    use super::*;

    fn claim(revision: u64, device: Option<&str>) -> Doc {
        let claim = doc!({ "metadata": {
            "namespace": "ns", "name": "c", "uid": "u", "resourceVersion": (revision.to_string())
        } });
        match device {
            None => claim,
            Some(device) => {
                let result = doc!({ "driver": "d", "pool": "p", "device": device });
                let allocation = doc!({ "devices": { "results": [result] } });
                claim.with("/status/allocation", allocation).unwrap()
            }
        }
    }

    fn in_use(tracker: &Tracker) -> Vec<&str> {
        let mut names: Vec<&str> = tracker.users.keys().map(|id| id.device.as_str()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn a_device_is_in_use_from_the_decision_until_its_claim_gives_it_back() {
        let mut tracker = Tracker::default();
        tracker.observe(&claim(1, None));
        tracker.take(&[claim(1, Some("a"))]).unwrap();
        assert_eq!(in_use(&tracker), ["a"]);
        assert!(tracker.take(&[claim(1, Some("b"))]).is_err());

        tracker.assume(&claim(3, Some("a")));
        tracker.land(&claim(3, Some("a")));
        assert_eq!(in_use(&tracker), ["a"]);
        // The cache is behind what was written.
        assert_eq!(tracker.observe(&claim(2, None)), None);
        assert_eq!(in_use(&tracker), ["a"]);

        assert!(tracker.observe(&claim(4, None)).is_some());
        assert_eq!(in_use(&tracker), Vec::<&str>::new());
    }

    #[test]
    fn a_claim_that_goes_gives_its_devices_back_and_another_life_of_it_does_not() {
        let mut tracker = Tracker::default();
        tracker.observe(&claim(1, Some("a")));
        let other = claim(1, Some("a")).with("/metadata/uid", "v").unwrap();
        assert_eq!(tracker.forget(&other), None);
        assert_eq!(in_use(&tracker), ["a"]);
        assert!(tracker.forget(&claim(1, Some("a"))).is_some());
        assert_eq!(in_use(&tracker), Vec::<&str>::new());
    }

    #[test]
    fn what_was_assumed_can_be_taken_back() {
        let mut tracker = Tracker::default();
        tracker.observe(&claim(1, None));
        tracker.assume(&claim(2, Some("a")));
        assert_eq!(in_use(&tracker), ["a"]);
        tracker.restore(&claim(1, None).meta().key());
        assert_eq!(in_use(&tracker), Vec::<&str>::new());
        // Older than what is known: not assumed.
        tracker.assume(&claim(1, Some("b")));
        assert_eq!(in_use(&tracker), Vec::<&str>::new());
    }

    #[test]
    fn devices_of_administrators_are_free_for_others() {
        let mut tracker = Tracker::default();
        let shared = claim(1, Some("a"));
        let shared = shared.with("/status/allocation/devices/results/0/adminAccess", true);
        tracker.observe(&shared.unwrap());
        assert_eq!(in_use(&tracker), Vec::<&str>::new());
    }
}
