//! Owners that are known not to exist.

use std::collections::{BTreeMap, HashMap};

use super::identity::Identity;

/// How many owners are remembered, as upstream does.
pub(super) const ABSENT_LIMIT: usize = 500;

/// Owners that are known not to exist, so that each is looked for once and not for each of its
/// dependents. The one that was not asked for longest is forgotten first. A UID never comes back,
/// so that nothing in here can become wrong.
#[derive(Debug)]
pub(super) struct AbsentOwners {
    used: HashMap<Identity, u64>,
    /// From the least recently used on.
    order: BTreeMap<u64, Identity>,
    limit: usize,
    clock: u64,
}

impl AbsentOwners {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            used: HashMap::new(),
            order: BTreeMap::new(),
            limit,
            clock: 0,
        }
    }

    pub(super) fn add(&mut self, identity: Identity) {
        self.touch(&identity);
        self.clock += 1;
        self.order.insert(self.clock, identity.clone());
        self.used.insert(identity, self.clock);
        if self.used.len() > self.limit
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.used.remove(&oldest);
        }
    }

    /// Whether an owner is known not to exist. Asking counts as a use.
    pub(super) fn contains(&mut self, identity: &Identity) -> bool {
        let is_known = self.touch(identity);
        if is_known {
            self.clock += 1;
            self.order.insert(self.clock, identity.clone());
            self.used.insert(identity.clone(), self.clock);
        }
        is_known
    }

    /// Takes an owner out of the order.
    fn touch(&mut self, identity: &Identity) -> bool {
        let used = self.used.get(identity);
        used.is_some_and(|used| self.order.remove(used).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(name: &str) -> Identity {
        Identity {
            kind: "ReplicaSet".into(),
            api_version: "apps/v1".into(),
            namespace: "shop".into(),
            name: name.into(),
            uid: name.into(),
        }
    }

    #[test]
    fn the_owner_that_was_not_asked_for_longest_is_forgotten() {
        let mut absent = AbsentOwners::new(2);
        absent.add(owner("a"));
        absent.add(owner("b"));
        assert!(absent.contains(&owner("a")));
        absent.add(owner("c"));
        assert!(!absent.contains(&owner("b")));
        assert!(absent.contains(&owner("a")) && absent.contains(&owner("c")));
        assert_eq!((absent.used.len(), absent.order.len()), (2, 2));
    }

    #[test]
    fn an_owner_in_another_namespace_or_of_another_kind_is_another_owner() {
        let mut absent = AbsentOwners::new(2);
        absent.add(owner("a"));
        assert!(!absent.contains(&owner("a").in_namespace("")));
        let other = Identity {
            kind: "Deployment".into(),
            ..owner("a")
        };
        assert!(!absent.contains(&other));
    }
}
