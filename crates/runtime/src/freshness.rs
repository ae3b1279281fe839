//! Freshness: no decision on a cache that does not show the controller's own writes.

use std::collections::{BTreeMap, HashMap};

use parking_lot::Mutex;
use windlass_core::{GroupResource, Key, Revision, Uid};

/// The revisions that each key has written.
///
/// Every write through the client of a reconcile is remembered with its revision. The key is not reconciled
/// again until each cache that the controller reads has reached the revisions written to its
/// resource. A lagging watch then delays a controller and never makes it create twice.
///
/// There is no time-out, on purpose: a cache that has not moved for an hour is still a cache that
/// must not be acted on. A revision that cannot be compared is not waited for.
#[derive(Debug, Default)]
pub struct Freshness {
    /// One entry for each key with a write that its caches have not shown yet.
    owners: Mutex<HashMap<Key, Owner>>,
}

#[derive(Debug)]
struct Owner {
    /// The UID of the object that wrote; another one starts afresh.
    uid: Uid,
    written: BTreeMap<GroupResource, Revision>,
}

impl Owner {
    fn new(uid: &Uid, resource: GroupResource, revision: Revision) -> Self {
        Self {
            uid: uid.clone(),
            written: BTreeMap::from([(resource, revision)]),
        }
    }

    /// Of several revisions of one resource the newest counts.
    fn raise(&mut self, resource: GroupResource, revision: Revision) {
        match self.written.get_mut(&resource) {
            Some(newest) if *newest >= revision => {}
            Some(newest) => *newest = revision,
            None => drop(self.written.insert(resource, revision)),
        }
    }
}

/// A cache does not show what was written yet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "read version: {} is not as new as written version: {written} for group resource {resource}",
    .read.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string)
)]
pub struct Stale {
    /// The resource whose cache is behind.
    pub resource: GroupResource,
    /// The revision that the cache has reached.
    pub read: Option<Revision>,
    /// The revision that was written.
    pub written: Revision,
}

/// The progress of a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reached {
    /// It reflects this revision, or none yet.
    Revision(Option<Revision>),
    /// The controller does not read this resource from a cache, or its revisions have no order.
    Unknown,
}

impl Freshness {
    /// Nothing was written.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Remembers a write on behalf of a key. Of several to one resource the newest counts.
    pub fn wrote(&self, owner: &Key, uid: &Uid, resource: GroupResource, revision: Revision) {
        let mut owners = self.owners.lock();
        match owners.get_mut(owner) {
            Some(known) if known.uid == *uid => known.raise(resource, revision),
            _ => drop(owners.insert(owner.clone(), Owner::new(uid, resource, revision))),
        }
    }

    /// As [`wrote`](Self::wrote), for a write that was answered after its reconcile had returned.
    /// Another object may have taken the key since; what that one wrote counts.
    pub(crate) fn wrote_late(
        &self,
        owner: &Key,
        uid: &Uid,
        resource: GroupResource,
        revision: Revision,
    ) {
        let mut owners = self.owners.lock();
        match owners.get_mut(owner) {
            Some(known) if known.uid == *uid => known.raise(resource, revision),
            Some(_) => {}
            None => drop(owners.insert(owner.clone(), Owner::new(uid, resource, revision))),
        }
    }

    /// Checks that every cache shows what the key has written; if so the record is dropped.
    ///
    /// # Errors
    /// With every cache that is behind, in the order of their names.
    pub fn check(
        &self,
        owner: &Key,
        reached: impl Fn(&GroupResource) -> Reached,
    ) -> Result<(), Vec<Stale>> {
        let mut owners = self.owners.lock();
        let Some(record) = owners.get(owner) else {
            return Ok(());
        };
        let stale: Vec<Stale> = record
            .written
            .iter()
            .filter_map(|(resource, written)| match reached(resource) {
                Reached::Revision(read) if read.as_ref() < Some(written) => Some(Stale {
                    resource: resource.clone(),
                    read,
                    written: written.clone(),
                }),
                Reached::Revision(_) | Reached::Unknown => None,
            })
            .collect();
        if stale.is_empty() {
            owners.remove(owner);
            return Ok(());
        }
        Err(stale)
    }

    /// Forgets what a key has written, when its object is gone. With a UID only if that life of
    /// the object wrote it.
    pub fn clear(&self, owner: &Key, uid: Option<&Uid>) {
        let mut owners = self.owners.lock();
        if owners
            .get(owner)
            .is_some_and(|record| uid.is_none_or(|uid| *uid == record.uid))
        {
            owners.remove(owner);
        }
    }

    /// The number of keys that wait for their caches, or have not been looked at since they wrote.
    #[must_use]
    pub fn len(&self) -> usize {
        self.owners.lock().len()
    }

    /// Returns true if no key has a write to be seen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pods() -> GroupResource {
        GroupResource::new("", "pods")
    }

    fn revision(number: u64) -> Revision {
        number.try_into().unwrap()
    }

    fn owner() -> (Key, Uid) {
        (Key::new("default", "web"), Uid::from("u1"))
    }

    fn at(number: u64) -> impl Fn(&GroupResource) -> Reached {
        move |_| Reached::Revision(Some(revision(number)))
    }

    #[test]
    fn the_newest_write_counts_until_another_life_begins() {
        let (freshness, (key, uid)) = (Freshness::new(), owner());
        freshness.wrote(&key, &uid, pods(), revision(5));
        freshness.wrote(&key, &uid, pods(), revision(3));
        assert_eq!(
            freshness.check(&key, at(4)).unwrap_err()[0].written,
            revision(5)
        );

        freshness.wrote(&key, &"u2".into(), pods(), revision(2));
        assert_eq!(
            freshness.check(&key, at(1)).unwrap_err()[0].written,
            revision(2)
        );
    }

    #[test]
    fn a_late_write_of_an_earlier_life_does_not_hide_what_the_next_one_wrote() {
        let (freshness, (key, uid)) = (Freshness::new(), owner());
        freshness.wrote_late(&key, &uid, pods(), revision(3));
        freshness.wrote_late(&key, &uid, pods(), revision(5));
        assert_eq!(
            freshness.check(&key, at(4)).unwrap_err()[0].written,
            revision(5)
        );
        freshness.wrote(&key, &"u2".into(), pods(), revision(7));
        freshness.wrote_late(&key, &uid, pods(), revision(6));
        assert_eq!(
            freshness.check(&key, at(6)).unwrap_err()[0].written,
            revision(7)
        );
    }

    #[test]
    fn a_cache_that_is_behind_holds_the_key_and_one_that_is_not_frees_it() {
        let (key, uid) = owner();
        for (read, is_ready) in [(4, false), (5, true), (6, true)] {
            let freshness = Freshness::new();
            freshness.wrote(&key, &uid, pods(), revision(5));
            assert_eq!(
                freshness.check(&key, at(read)).is_ok(),
                is_ready,
                "at {read}"
            );
            assert_eq!(freshness.is_empty(), is_ready);
        }
    }

    #[test]
    fn a_cache_without_a_state_is_behind_and_one_that_nobody_reads_is_not() {
        let (freshness, (key, uid)) = (Freshness::new(), owner());
        freshness.wrote(&key, &uid, pods(), revision(5));
        let stale = freshness
            .check(&key, |_| Reached::Revision(None))
            .unwrap_err();
        let text = "read version: none is not as new as written version: 5 for group resource pods";
        assert_eq!(stale[0].to_string(), text);
        assert_eq!(freshness.check(&key, |_| Reached::Unknown), Ok(()));
    }

    #[test]
    fn only_the_right_life_is_cleared() {
        let (freshness, (key, uid)) = (Freshness::new(), owner());
        freshness.wrote(&key, &uid, pods(), revision(5));
        freshness.clear(&key, Some(&"other".into()));
        assert_eq!(freshness.len(), 1);
        freshness.clear(&key, Some(&uid));
        assert!(freshness.is_empty());

        freshness.wrote(&key, &uid, pods(), revision(5));
        freshness.clear(&key, None);
        assert!(freshness.is_empty());
    }

    #[test]
    fn of_many_writers_at_once_the_newest_write_counts() {
        let (freshness, (key, uid)) = (Freshness::new(), owner());
        std::thread::scope(|scope| {
            for number in 1..=50 {
                let (freshness, key, uid) = (&freshness, &key, &uid);
                scope.spawn(move || freshness.wrote(key, uid, pods(), revision(number)));
            }
        });
        assert_eq!(freshness.len(), 1);
        let stale = freshness.check(&key, at(49)).unwrap_err();
        assert_eq!(stale[0].written, revision(50));
        assert_eq!(freshness.check(&key, at(50)), Ok(()));
    }
}
