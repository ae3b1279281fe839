//! Replaces pods of older templates, within the limits of the update strategy.

use windlass_core::{Doc, IntOrString};
use windlass_runtime::{Error, Result};

use super::{
    Sync,
    manage::{Work, live},
    template,
};
use crate::is_pod_available;

/// The limits of a rolling update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limits {
    surge: usize,
    unavailable: usize,
}

/// The pods of a node by template.
struct OldAndNew<'a> {
    old: Option<&'a Doc>,
    new: Option<&'a Doc>,
}

impl Sync<'_> {
    /// The pods to be deleted and the nodes to get another pod now.
    pub(super) fn rolling_update(&self) -> Result<Work> {
        if !is_rolling(self.set) {
            return Ok(Work::default());
        }
        let eligible = self.nodes.iter().filter(|node| {
            let verdict = self.placement.eligibility(node.doc());
            verdict.should_run
        });
        let eligible: Vec<&str> = eligible.map(|node| node.name()).collect();
        let limits = limits(self.set, eligible.len())?;
        // Nodes that should have a pod and have none count, too.
        let empty = eligible.iter().filter(|it| !self.pods.contains_key(**it));
        Ok(match limits.surge {
            0 => self.replace(limits.unavailable, empty.count()),
            surge => self.surge(surge, eligible.len()),
        })
    }

    /// Deletes old pods: all that are not available, and others as long as few enough are not.
    fn replace(&self, limit: usize, empty: usize) -> Work {
        let mut unavailable = empty;
        let (mut replaced, mut candidates) = (Vec::new(), Vec::new());
        for pods in self.pods.values() {
            match self.old_and_new(pods) {
                Some(OldAndNew {
                    old: None,
                    new: Some(new),
                }) => unavailable += usize::from(!self.is_available(new)),
                Some(OldAndNew {
                    old: Some(old),
                    new: None,
                }) => match self.is_available(old) {
                    true => candidates.push(old.clone()),
                    false => {
                        replaced.push(old.clone());
                        unavailable += 1;
                    }
                },
                // What is missing or too many is not available until it was managed.
                _ => unavailable += 1,
            }
        }
        candidates.truncate(limit.saturating_sub(unavailable));
        replaced.extend(candidates);
        Work {
            create: Vec::new(),
            delete: replaced,
        }
    }

    /// Creates new pods beside old ones, and deletes old ones when the new ones are available.
    fn surge(&self, limit: usize, desired: usize) -> Work {
        let (mut surging, mut available) = (0, 0);
        let (mut allowed, mut candidates) = (Vec::new(), Vec::new());
        let (mut delete, mut misplaced) = (Vec::new(), Vec::new());
        for (node, pods) in &self.pods {
            let Some(OldAndNew { old, new }) = self.old_and_new(pods) else {
                surging += 1;
                continue;
            };
            let counted = old.or(new);
            available += usize::from(counted.is_some_and(|pod| self.is_available(pod)));
            match (old, new) {
                (None, _) => {}
                (Some(old), None) => match (self.should_run(node), self.is_available(old)) {
                    (false, false) => delete.push(old.clone()),
                    (false, true) => misplaced.push(old.clone()),
                    (true, false) => allowed.push(node.clone()),
                    (true, true) => candidates.push(node.clone()),
                },
                (Some(old), Some(new)) => match self.is_available(new) {
                    true => delete.push(old.clone()),
                    false => surging += 1,
                },
            }
        }
        // Pods on nodes that they should leave go only when enough others are available.
        misplaced.truncate(available.saturating_sub(desired));
        delete.extend(misplaced);
        candidates.truncate(limit.saturating_sub(surging));
        allowed.extend(candidates);
        Work {
            create: allowed,
            delete,
        }
    }

    /// The old and the new pod of a node; `None` if there are several of one sort. Pods that are
    /// being deleted do not count.
    fn old_and_new<'p>(&self, pods: &'p [Doc]) -> Option<OldAndNew<'p>> {
        let generation = template::generation(self.set);
        let mut found = OldAndNew {
            old: None,
            new: None,
        };
        for pod in live(pods) {
            let place = match template::is_updated(pod, &self.hash, generation) {
                true => &mut found.new,
                false => &mut found.old,
            };
            if place.replace(pod).is_some() {
                return None;
            }
        }
        Some(found)
    }

    fn is_available(&self, pod: &Doc) -> bool {
        is_pod_available(pod, self.min_ready, self.now)
    }

    fn should_run(&self, node: &str) -> bool {
        let found = self.nodes.binary_search_by(|it| it.name().cmp(node));
        let node = found.ok().and_then(|at| self.nodes.get(at));
        node.is_some_and(|node| self.placement.eligibility(node.doc()).should_run)
    }

    /// Returns true if a node may have an old and a new pod at the same time.
    pub(super) fn allows_surge(&self) -> bool {
        is_rolling(self.set) && scaled(self.set, "maxSurge", 1).is_ok_and(|surge| surge > 0)
    }
}

fn is_rolling(set: &Doc) -> bool {
    set.str_at("/spec/updateStrategy/type") == "RollingUpdate"
}

/// The limits for so many nodes. With neither, no pod could ever be replaced.
fn limits(set: &Doc, desired: usize) -> Result<Limits> {
    let surge = scaled(set, "maxSurge", desired)?;
    let unavailable = scaled(set, "maxUnavailable", desired)?;
    let is_stuck = desired > 0 && surge == 0 && unavailable == 0;
    Ok(Limits {
        surge,
        unavailable: if is_stuck { 1 } else { unavailable },
    })
}

/// A limit of a rolling update as a number of nodes. Percentages are rounded up.
fn scaled(set: &Doc, field: &str, desired: usize) -> Result<usize> {
    let rolling = set.at("/spec/updateStrategy/rollingUpdate");
    let Some(value) = rolling.get(field).filter(|it| !it.is_null()) else {
        return Ok(0);
    };
    let total = i64::try_from(desired).unwrap_or(i64::MAX);
    let scaled = value.decode::<IntOrString>()?.scaled_up(total);
    let scaled = scaled.map_err(|it| Error::from(it).context(format!("invalid value for {field}")));
    Ok(usize::try_from(scaled?).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use windlass_core::doc;

    use super::*;

    #[test]
    fn percentages_are_rounded_up_and_something_always_moves() {
        let of = |surge: Doc, unavailable: Doc, desired: usize| {
            let rolling = doc!({ "maxSurge": surge, "maxUnavailable": unavailable });
            let strategy = doc!({ "type": "RollingUpdate", "rollingUpdate": rolling });
            let limits = limits(&doc!({ "spec": { "updateStrategy": strategy } }), desired);
            limits.map(|it| (it.surge, it.unavailable)).unwrap()
        };
        assert_eq!(of(doc!(0), doc!("50%"), 5), (0, 3));
        assert_eq!(of(doc!("10%"), doc!(0), 5), (1, 0));
        assert_eq!(of(doc!(0), doc!(0), 5), (0, 1));
        assert_eq!(of(doc!(0), doc!(0), 0), (0, 0));
    }
}
