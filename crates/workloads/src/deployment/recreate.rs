//! Replaces all pods at once: the old ones end before the new ones come.

use windlass_runtime::{Action, Result};

use super::{limits, rollout::Rollout};
use crate::is_pod_terminal;
use crate::owned;

impl Rollout<'_> {
    /// The next step: down, wait, up.
    pub(super) async fn recreate(mut self) -> Result<Action> {
        self.sync_revision().await?;
        let mut is_scaled = false;
        for at in self.active_old() {
            is_scaled |= self.scale_set(at, 0).await?;
        }
        if is_scaled || self.are_old_pods_running() {
            return self.write_rollout_status().await;
        }
        if self.new.is_none() {
            self.ensure_new_set().await?;
        }
        if let Some(at) = self.new {
            self.scale_set(at, limits::replicas(&self.deployment))
                .await?;
        }
        if self.is_complete() {
            self.clean_up().await?;
        }
        self.write_rollout_status().await
    }

    /// Whether an old set still counts pods, or has some that have not ended.
    fn are_old_pods_running(&self) -> bool {
        let pods = self.engine.pods.lister().snapshot();
        let mut old = self.old_sets();
        old.any(|set| {
            let children = owned::children_of(&pods, set.doc());
            set.replicas() > 0 || children.iter().any(|pod| !is_pod_terminal(pod.doc()))
        })
    }
}
