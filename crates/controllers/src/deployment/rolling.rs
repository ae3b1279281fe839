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
        let unhealthy = self.shrink_unhealthy(&old, room).await?;
        let healthy = self.shrink_healthy(&old, min_available).await?;
        Ok(unhealthy + healthy > 0)
    }

    /// Pods that are not available serve nobody: they go first.
    async fn shrink_unhealthy(&mut self, old: &[usize], room: i64) -> Result<i64> {
        let mut done = 0;
        for at in old {
            if done >= room {
                break;
            }
            let set = &self.sets[*at];
            let (size, available) = (set.size(), set.lasting_available());
            let count = (room - done).min(size - available);
            if count == 0 {
                continue;
            }
            self.scale_set(*at, size - count).await?;
            done += count;
        }
        Ok(done)
    }

    async fn shrink_healthy(&mut self, old: &[usize], min_available: i64) -> Result<i64> {
        // A set that was just scaled down may still count pods that are about to go.
        let available: i64 = self.sets.iter().map(Set::lasting_available).sum();
        let budget = available - min_available;
        let mut done = 0;
        for at in old {
            if done >= budget {
                break;
            }
            let size = self.sets[*at].size();
            let count = size.min(budget - done);
            if count > 0 {
                self.scale_set(*at, size - count).await?;
                done += count;
            }
        }
        Ok(done)
    }
}
