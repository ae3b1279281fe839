//! Scaling sets: one of them, or all in proportion.

use windlass_client::WriteOptions;
use windlass_runtime::{Action, EventType, Result};

use super::{
    annotations::{self, DESIRED_REPLICAS, MAX_REPLICAS},
    limits::{self, Strategy},
    rollout::Rollout,
    set::Set,
};

/// Whether a set is written even if its size stays.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Force {
    /// Its annotations must be right.
    Annotations,
    /// Only its size matters.
    No,
}

impl Rollout<'_> {
    /// Scales without rolling out: the Deployment is paused, or its size has changed.
    pub(super) async fn sync_scale(mut self) -> Result<Action> {
        self.sync_revision().await?;
        self.scale().await?;
        let is_rolled_back = (self.deployment.meta())
            .annotation(annotations::ROLLBACK_TO)
            .is_some_and(|it| it.parse::<i64>().is_ok());
        if self.is_paused() && !is_rolled_back {
            self.clean_up().await?;
        }
        self.write_scaled_status().await
    }

    async fn scale(&mut self) -> Result<()> {
        let replicas = limits::replicas(&self.deployment);
        let active: Vec<usize> = (0..self.sets.len())
            .filter(|at| self.sets[*at].size() > 0)
            .collect();
        if active.len() <= 1 {
            // With no active set, the current one is meant, or else the newest.
            let only = active.first().copied().or(self.new);
            if let Some(at) = only.or(self.sets.len().checked_sub(1)) {
                self.scale_set(at, replicas).await?;
            }
            return Ok(());
        }
        if self
            .new_set()
            .is_some_and(|set| is_saturated(set, replicas))
        {
            for at in self.active_old() {
                self.scale_set(at, 0).await?;
            }
            return Ok(());
        }
        if Strategy::of(&self.deployment) == Ok(Strategy::RollingUpdate) {
            self.scale_in_proportion(&active).await?;
        }
        Ok(())
    }

    async fn scale_in_proportion(&mut self, active: &[usize]) -> Result<()> {
        let shares: Vec<Share> = active.iter().map(|at| Share::of(&self.sets[*at])).collect();
        let targets = Targets {
            replicas: limits::replicas(&self.deployment),
            surge: limits::max_surge(&self.deployment),
            status_replicas: self.deployment.at("/status/replicas").as_i64().unwrap_or(0),
        };
        for (share, size) in proportional(&shares, &targets) {
            self.write_size(active[share], size, Force::Annotations)
                .await?;
        }
        Ok(())
    }

    /// Scales one set. Returns whether its size changed.
    pub(super) async fn scale_set(&mut self, at: usize, size: i64) -> Result<bool> {
        if self.sets[at].size() == size {
            return Ok(false);
        }
        self.write_size(at, size, Force::No).await
    }

    async fn write_size(&mut self, at: usize, size: i64, force: Force) -> Result<bool> {
        let set = &self.sets[at];
        let before = set.size();
        let desired = limits::replicas(&self.deployment);
        let max = desired + limits::max_surge(&self.deployment);
        let annotations = annotations::of(set.doc())
            .with(DESIRED_REPLICAS, desired.to_string().into())
            .with(MAX_REPLICAS, max.to_string().into());
        let is_annotated = annotations == annotations::of(set.doc());
        if before == size && (force == Force::No || is_annotated) {
            return Ok(false);
        }
        let changed = set.doc().with("/metadata/annotations", annotations)?;
        let changed = changed.with("/spec/replicas", size)?;
        let api = self.set_api();
        let updated = api.update(&changed, &WriteOptions::default()).await?;
        self.sets[at] = Set::new(updated);
        if before != size {
            let direction = if before < size { "up" } else { "down" };
            let name = self.sets[at].name();
            let message = format!("Scaled {direction} replica set {name} from {before} to {size}");
            self.tell(EventType::Normal, "ScalingReplicaSet", &message);
        }
        Ok(before != size)
    }
}

/// Whether a set is all that the Deployment wants, and available.
fn is_saturated(set: &Set, replicas: i64) -> bool {
    set.size() == replicas
        && set.desired_replicas() == Some(replicas)
        && set.available() == replicas
}

/// A set that takes part in a proportional scaling. They come from the oldest to the newest.
#[derive(Clone, Copy, Debug)]
struct Share {
    size: i64,
    /// How many pods all sets were to have at most when this one was scaled last.
    max_replicas: Option<i64>,
}

impl Share {
    fn of(set: &Set) -> Self {
        Self {
            size: set.size(),
            max_replicas: set.max_replicas(),
        }
    }
}

/// What a proportional scaling aims at.
#[derive(Clone, Copy, Debug)]
struct Targets {
    replicas: i64,
    surge: i64,
    status_replicas: i64,
}

/// The new sizes of sets, each with its place in `shares`, in the order in which they are to be
/// written. What rounding leaves over goes to the first: the largest, and of equal ones the newest
/// on the way up and the oldest on the way down.
fn proportional(shares: &[Share], targets: &Targets) -> Vec<(usize, i64)> {
    let total: i64 = shares.iter().map(|share| share.size).sum();
    let allowed = match targets.replicas {
        0 => 0,
        replicas => replicas + targets.surge,
    };
    let to_add = allowed - total;
    let mut order: Vec<usize> = (0..shares.len()).collect();
    if to_add > 0 {
        order.reverse();
    }
    if to_add != 0 {
        // Stable: those of one size stay in the order of their age.
        order.sort_by_key(|at| std::cmp::Reverse(shares[*at].size));
    }
    let mut added = 0;
    let mut sizes: Vec<(usize, i64)> = Vec::with_capacity(order.len());
    for at in order {
        let part = part_of(&shares[at], targets, to_add, added);
        added += part;
        sizes.push((at, shares[at].size + part));
    }
    if let Some((_, first)) = sizes.first_mut() {
        *first = (*first + to_add - added).max(0);
    }
    sizes
}

/// What one set gets of the pods to be added or, if negative, removed.
fn part_of(share: &Share, targets: &Targets, to_add: i64, added: i64) -> i64 {
    if share.size == 0 || to_add == 0 || to_add == added {
        return 0;
    }
    let (fraction, left) = (fraction_of(share, targets), to_add - added);
    if to_add > 0 {
        fraction.min(left)
    } else {
        fraction.max(left)
    }
}

/// By how much a set changes when all of them change by the same factor, rounded half away from
/// zero.
fn fraction_of(share: &Share, targets: &Targets) -> i64 {
    if targets.replicas == 0 {
        return -share.size;
    }
    let annotated = share.max_replicas.filter(|max| *max != 0);
    let before = annotated.unwrap_or(targets.status_replicas);
    if before == 0 {
        return 0;
    }
    let product = share.size * (targets.replicas + targets.surge);
    // Nothing here is negative, and so half away from zero is half up.
    (2 * product + before).div_euclid(2 * before) - share.size
}

#[cfg(test)]
mod tests {
    use windlass_core::doc;

    use super::*;

    /// Scales sets that are given from the newest to the oldest, all annotated with `before`.
    fn scaled(before: i64, replicas: i64, surge: i64, sizes: &[i64]) -> Vec<i64> {
        let shares = sizes.iter().rev().map(|size| Share {
            size: *size,
            max_replicas: Some(before),
        });
        let shares: Vec<Share> = shares.collect();
        let targets = Targets {
            replicas,
            surge,
            status_replicas: 0,
        };
        let mut sizes: Vec<i64> = shares.iter().map(|share| share.size).collect();
        for (at, size) in proportional(&shares, &targets) {
            sizes[at] = size;
        }
        sizes.reverse();
        sizes
    }

    #[test]
    fn sets_are_scaled_in_proportion() {
        for (before, replicas, surge, sizes, expected) in [
            (5, 10, 0, &[2, 3][..], &[4, 6][..]),
            (5, 3, 0, &[2, 3], &[1, 2]),
            (9, 4, 0, &[8, 1], &[4, 0]),
            (7, 10, 0, &[2, 3, 2], &[3, 4, 3]),
            (13, 8, 0, &[2, 8, 3], &[1, 5, 2]),
            (3, 4, 0, &[1, 1, 1], &[2, 1, 1]),
            (3, 2, 0, &[1, 1, 1], &[1, 1, 0]),
            (4, 5, 0, &[2, 2], &[3, 2]),
            (6, 0, 0, &[3, 2, 1], &[0, 0, 0]),
            (12, 20, 2, &[6, 6], &[11, 11]),
            (13, 50, 6, &[5, 8], &[22, 34]),
            (10, 14, 0, &[7, 3], &[10, 4]),
            (120, 120, 20, &[20, 100], &[23, 117]),
            (13, 30, 3, &[5, 8], &[13, 20]),
        ] {
            let found = scaled(before, replicas, surge, sizes);
            assert_eq!(
                found, expected,
                "{before} to {replicas}+{surge} with {sizes:?}"
            );
        }
    }

    #[test]
    fn what_is_shared_out_is_all_there_is() {
        let env = windlass_core::Env::seeded(7);
        let random = |bound: u64| i64::try_from(env.random_below(bound)).unwrap();
        for _ in 0..2000 {
            let sizes: Vec<i64> = (0..=random(5)).map(|_| 1 + random(40)).collect();
            let (before, replicas, surge) = (sizes.iter().sum(), random(120), random(20));
            let after = scaled(before, replicas, surge, &sizes);
            let allowed = if replicas == 0 { 0 } else { replicas + surge };
            assert!(after.iter().all(|size| *size >= 0));
            assert_eq!(
                after.iter().sum::<i64>(),
                allowed,
                "{sizes:?} to {replicas}+{surge}"
            );
        }
    }

    #[test]
    fn sets_without_an_annotation_are_measured_by_the_status() {
        let share = Share {
            size: 4,
            max_replicas: None,
        };
        let targets = |status_replicas| Targets {
            replicas: 20,
            surge: 0,
            status_replicas,
        };
        assert_eq!(fraction_of(&share, &targets(10)), 4);
        assert_eq!(fraction_of(&share, &targets(0)), 0);
    }

    #[test]
    fn a_scaling_that_stopped_half_way_goes_on() {
        // The newer set was scaled already: its annotation has the new maximum.
        let shares = [
            Share {
                size: 5,
                max_replicas: Some(10),
            },
            Share {
                size: 10,
                max_replicas: Some(20),
            },
        ];
        let targets = Targets {
            replicas: 20,
            surge: 0,
            status_replicas: 10,
        };
        assert_eq!(proportional(&shares, &targets), [(1, 10), (0, 10)]);
    }

    #[test]
    fn annotations_of_replicas_are_plain_numbers() {
        for (text, expected) in [
            (None, None),
            (Some("invalid"), None),
            (Some("-1"), None),
            (Some("+1"), None),
            (Some("2147483648"), None),
            (Some("4294967296"), None),
            (Some("0"), Some(0)),
            (Some("13"), Some(13)),
            (Some("2147483647"), Some(2_147_483_647)),
        ] {
            let set = match text {
                None => doc!({ "metadata": { "name": "a" } }),
                Some(text) => {
                    doc!({ "metadata": { "name": "a", "annotations": { DESIRED_REPLICAS: text } } })
                }
            };
            assert_eq!(Set::new(set).desired_replicas(), expected, "{text:?}");
        }
    }
}
