//! Going back to a former template because an annotation asks for it, as clients of long ago do.

use windlass_client::WriteOptions;
use windlass_core::Doc;
use windlass_runtime::{Action, EventType, Result};

use super::{
    annotations::{self, ROLLBACK_TO},
    rollout::Rollout,
    set::Set,
    template,
};

const NOT_FOUND: &str = "DeploymentRollbackRevisionNotFound";

impl Rollout<'_> {
    /// Goes back to a revision; zero stands for the one before the current.
    pub(super) async fn roll_back(mut self, revision: i64) -> Result<Action> {
        self.ensure_new_set().await?;
        let changed = match self.rolled_back(revision) {
            Ok((changed, revision)) => {
                let name = changed.meta().name();
                let message = format!("Rolled back deployment {name:?} to revision {revision}");
                self.tell(EventType::Normal, "DeploymentRollback", &message);
                changed
            }
            Err((reason, message)) => {
                self.tell(EventType::Warning, reason, &message);
                self.deployment.clone()
            }
        };
        let annotations = annotations::of(&changed).without(ROLLBACK_TO);
        let changed = changed.with("/metadata/annotations", annotations)?;
        let api = self.deployment_api();
        api.update(&changed, &WriteOptions::default()).await?;
        Ok(Action::done())
    }

    /// The Deployment with the template of a revision, and which revision that is.
    fn rolled_back(&self, revision: i64) -> Result<(Doc, i64), (&'static str, String)> {
        let revision = match revision {
            0 => self.last_revision(),
            revision => Some(revision),
        };
        let Some(revision) = revision else {
            return Err((NOT_FOUND, "Unable to find last revision.".to_owned()));
        };
        let mut sets = self.sets.iter();
        let Some(set) = sets.find(|set| set.revision() == Some(revision)) else {
            let message = "Unable to find the revision to rollback to.".to_owned();
            return Err((NOT_FOUND, message));
        };
        let name = self.deployment.meta().name();
        if template::is_same(set.template(), self.deployment.at("/spec/template")) {
            let message = format!(
                "The rollback revision contains the same template as current deployment {name:?}"
            );
            return Err(("DeploymentRollbackTemplateUnchanged", message));
        }
        let annotations = annotations::for_rollback(&self.deployment, set);
        let changed = self.deployment.with("/metadata/annotations", annotations);
        let bare = template::without_hash(set.template());
        let changed = changed.and_then(|it| it.with("/spec/template", bare));
        let changed = changed.unwrap_or_else(|_| self.deployment.clone());
        Ok((changed, revision))
    }

    /// The second highest revision.
    fn last_revision(&self) -> Option<i64> {
        let mut revisions: Vec<i64> = self.sets.iter().filter_map(Set::revision).collect();
        revisions.sort_unstable();
        revisions.dedup();
        let last = revisions.len().checked_sub(2).map(|at| revisions[at]);
        last.filter(|revision| *revision > 0)
    }
}
