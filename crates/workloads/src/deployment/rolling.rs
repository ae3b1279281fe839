//! Replaces pods a few at a time.

use windlass_runtime::{Action, Result};

use super::{limits, rollout::Rollout, set::Set};

impl Rollout<'_> {
    /// The next step of a rolling update: up, or else down, or else what remains to be done.
    pub(super) async fn roll(mut self) -> Result<Action> {
        self.ensure_new_set().await?;
        if self.grow_new_set().await? || self.shrink_old_sets().await? {
            return self.write_rollout_status().await;
        }
        if self.is_complete() {
            self.clean_up().await?;
        }
        self.write_rollout_status().await
    }

    async fn grow_new_set(&mut self) -> Result<bool> {
        let Some(at) = self.new else { return Ok(false) };
        let (size, replicas) = (self.sets[at].size(), limits::replicas(&self.deployment));
        let target = if size >= replicas {
            replicas
        } else {
            limits::new_set_size(&self.deployment, size, self.most_replicas())
        };
        self.scale_set(at, target).await
    }

    async fn shrink_old_sets(&mut self) -> Result<bool> {
        let old = self.active_old();
        let min_available = limits::min_available(&self.deployment);
        let new = self.new_set();
        // Pods of the new set that are not available yet cannot stand in for old ones.
        let awaited = new.map_or(0, |set| set.size() - set.available());
        let room = self.total_size() - min_available - awaited;
        if old.is_empty() || room <= 0 {
            return Ok(false);
        }
        let unhealthy = unhealthy_cuts(&self.standing(&old), room);
        let is_cleaned = self.cut(&old, &unhealthy).await?;
        // A set that was just scaled down may still count pods that are about to go.
        let available: i64 = self.sets.iter().map(Set::lasting_available).sum();
        let healthy = healthy_cuts(&self.standing(&old), available - min_available);
        Ok(self.cut(&old, &healthy).await? || is_cleaned)
    }

    fn standing(&self, sets: &[usize]) -> Vec<Standing> {
        let of = |at: &usize| Standing {
            size: self.sets[*at].size(),
            available: self.sets[*at].lasting_available(),
        };
        sets.iter().map(of).collect()
    }

    /// Scales sets down, each by its part. Returns whether there was anything to do.
    async fn cut(&mut self, sets: &[usize], cuts: &[i64]) -> Result<bool> {
        let mut is_cut = false;
        for (at, cut) in sets.iter().zip(cuts).filter(|(_, cut)| **cut > 0) {
            is_cut |= self.scale_set(*at, self.sets[*at].size() - cut).await?;
        }
        Ok(is_cut)
    }
}

/// A set of a former template: how many pods it is to have, and how many of them are available.
#[derive(Clone, Copy, Debug)]
struct Standing {
    size: i64,
    available: i64,
}

/// By how much each set shrinks, the oldest first: pods that are not available serve nobody.
fn unhealthy_cuts(sets: &[Standing], room: i64) -> Vec<i64> {
    shared_out(room, sets.iter().map(|set| set.size - set.available))
}

/// By how much each set shrinks, the oldest first, with pods that are available to be spared.
fn healthy_cuts(sets: &[Standing], spare: i64) -> Vec<i64> {
    shared_out(spare, sets.iter().map(|set| set.size))
}

/// Gives to each what it can take, until nothing is left.
fn shared_out(total: i64, capacities: impl Iterator<Item = i64>) -> Vec<i64> {
    let mut left = total.max(0);
    let take = |capacity: i64| {
        let part = capacity.clamp(0, left);
        left -= part;
        part
    };
    capacities.map(take).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(sets: &[(i64, i64)]) -> Vec<Standing> {
        let set = |(size, available): &(i64, i64)| Standing {
            size: *size,
            available: *available,
        };
        sets.iter().map(set).collect()
    }

    #[test]
    fn only_pods_that_are_not_available_are_unhealthy() {
        for (available, room, expected) in [(8, 1, 1), (8, 3, 2), (8, 0, 0), (10, 3, 0)] {
            assert_eq!(unhealthy_cuts(&sets(&[(10, available)]), room), [expected]);
        }
        let several = sets(&[(3, 1), (4, 4), (5, 0)]);
        assert_eq!(unhealthy_cuts(&several, 5), [2, 0, 3], "the oldest first");
    }

    #[test]
    fn available_pods_go_as_far_as_they_can_be_spared() {
        for (size, spare, expected) in [(10, 1, 1), (10, 2, 2), (10, 0, 0), (10, -7, 0), (0, 3, 0)]
        {
            assert_eq!(healthy_cuts(&sets(&[(size, size)]), spare), [expected]);
        }
        assert_eq!(healthy_cuts(&sets(&[(2, 2), (3, 3)]), 4), [2, 2]);
    }
}
