//! Deletes the sets that the history has no room for.

use windlass_client::DeleteOptions;
use windlass_runtime::Result;

use super::{rollout::Rollout, set::Set};

/// The limit that stands for none.
const UNLIMITED: i64 = i32::MAX as i64;

impl Rollout<'_> {
    /// Deletes old sets beyond the limit, those of the lowest revisions first. One that is in use
    /// stays, and none goes in its place.
    pub(super) async fn clean_up(&mut self) -> Result<()> {
        let limit = self.deployment.at("/spec/revisionHistoryLimit").as_i64();
        let Some(limit) = limit.filter(|limit| *limit != UNLIMITED) else {
            return Ok(());
        };
        let mut old: Vec<Set> = self.old_sets().cloned().collect();
        old.retain(|set| !set.doc().meta().is_deleting());
        let limit = usize::try_from(limit).unwrap_or(0);
        let surplus = old.len().saturating_sub(limit);
        old.sort_by(Set::by_revision);
        for set in old.iter().take(surplus).filter(|set| is_unused(set)) {
            let options = DeleteOptions::uid(set.doc().meta().uid_str());
            match self.set_api().delete(set.name(), &options).await {
                // Gone, or replaced by another of that name, which is not meant.
                Err(error) if error.is_not_found() || error.is_conflict() => {}
                deleted => drop(deleted?),
            }
        }
        Ok(())
    }
}

fn is_unused(set: &Set) -> bool {
    let is_observed = set.doc().meta().generation() <= set.observed_generation();
    set.replicas() == 0 && set.size() == 0 && is_observed
}
