//! The specification of a StatefulSet, read once.

use std::{ops::Range, time::Duration};

use windlass_core::Doc;

use crate::replicaset::status::min_ready;

/// The most that a 32-bit count can say.
const COUNT_MAX: i64 = i32::MAX as i64;

/// The specification of a StatefulSet.
#[derive(Clone, Debug)]
pub(super) struct SetSpec {
    /// The ordinals that have a pod.
    pub(super) ordinals: Range<i64>,
    /// True if pods are created and deleted without waiting for each other.
    pub(super) is_parallel: bool,
    pub(super) strategy: UpdateStrategy,
    pub(super) min_ready: Duration,
    pub(super) retention: RetentionPolicy,
    /// The revisions that are kept beside those in use; `None` for all of them.
    pub(super) history_limit: Option<usize>,
}

/// The way in which pods get a new template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UpdateStrategy {
    /// Pods are replaced from the highest ordinal down to the partition; `None` if there is none.
    RollingUpdate { partition: Option<i64> },
    /// Pods are replaced when somebody deletes them.
    OnDelete,
}

/// The fate of claims when the set is deleted or scaled down: true to delete them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RetentionPolicy {
    pub(super) deletes_with_set: bool,
    pub(super) deletes_when_scaled: bool,
}

impl SetSpec {
    pub(super) fn of(set: &Doc) -> Self {
        let spec = set.at("/spec");
        let count = |at: &str| spec.at(at).as_i64().map(|it| it.clamp(0, COUNT_MAX));
        let start = count("/ordinals/start").unwrap_or(0);
        let replicas = count("/replicas").unwrap_or(1);
        let rolling = spec.at("/updateStrategy/rollingUpdate");
        let retention = spec.at("/persistentVolumeClaimRetentionPolicy");
        let limit = spec.at("/revisionHistoryLimit").as_i64().unwrap_or(10);
        Self {
            ordinals: start..start + replicas,
            is_parallel: spec.str_at("/podManagementPolicy") == "Parallel",
            strategy: match spec.str_at("/updateStrategy/type") {
                "OnDelete" => UpdateStrategy::OnDelete,
                _ => UpdateStrategy::RollingUpdate {
                    partition: (!rolling.is_null())
                        .then(|| count("/updateStrategy/rollingUpdate/partition").unwrap_or(0)),
                },
            },
            min_ready: min_ready(set),
            retention: RetentionPolicy {
                deletes_with_set: retention.str_at("/whenDeleted") == "Delete",
                deletes_when_scaled: retention.str_at("/whenScaled") == "Delete",
            },
            history_limit: usize::try_from(limit).ok(),
        }
    }

    pub(super) fn replicas(&self) -> i64 {
        self.ordinals.end - self.ordinals.start
    }

    /// Returns true if a missing pod is created at the current revision, not at the new one.
    pub(super) fn is_below_partition(&self, ordinal: i64, current_replicas: i64) -> bool {
        match self.strategy {
            UpdateStrategy::OnDelete => false,
            UpdateStrategy::RollingUpdate { partition } => {
                ordinal < self.ordinals.start + partition.unwrap_or(current_replicas)
            }
        }
    }
}
