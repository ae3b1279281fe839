//! The revisions of a StatefulSet: the one that it leaves and the one that it goes to.

use std::collections::HashSet;

use windlass_core::Doc;
use windlass_runtime::{Context, Result};

use super::{Engine, pod::Member, spec::SetSpec};
use crate::{
    deployment,
    history::{self, Draft},
};

/// The revisions that the pods of a set are at, or should be.
pub(super) struct SetRevisions {
    pub(super) current: Doc,
    pub(super) update: Doc,
    pub(super) collisions: i64,
}

impl SetRevisions {
    pub(super) fn current_name(&self) -> &str {
        self.current.meta().name()
    }

    pub(super) fn update_name(&self) -> &str {
        self.update.meta().name()
    }

    /// The names of the revisions that are in use.
    pub(super) fn live(&self, pods: &[Member]) -> HashSet<String> {
        let pods = pods.iter().map(Member::revision);
        let names = pods.chain([self.current_name(), self.update_name()]);
        names.map(str::to_owned).collect()
    }
}

impl Engine {
    /// Finds or records the revision of the template, and finds the one that the status names.
    pub(super) async fn revisions(
        &self,
        cx: &Context,
        set: &Doc,
        known: &[Doc],
    ) -> Result<SetRevisions> {
        let status = set.at("/status");
        let mut collisions = status.at("/collisionCount").as_i64().unwrap_or(0);
        let update = self
            .update_revision(cx, set, known, &mut collisions)
            .await?;
        let name = status.str_at("/currentRevision");
        let current = known.iter().find(|it| it.meta().name() == name);
        Ok(SetRevisions {
            current: current.unwrap_or(&update).clone(),
            update,
            collisions,
        })
    }

    async fn update_revision(
        &self,
        cx: &Context,
        set: &Doc,
        known: &[Doc],
        collisions: &mut i64,
    ) -> Result<Doc> {
        let data = history::data_of(set);
        let next = known.last().map_or(1, |it| history::number(it) + 1);
        let equal = known.iter().rev().find(|it| *history::data(it) == data);
        match (equal, known.last()) {
            (Some(_), Some(newest)) if *history::data(newest) == data => Ok(newest.clone()),
            (Some(equal), _) => self.history.renumber(cx, equal, next).await,
            // Another spelling of the newest template is not another template.
            (None, Some(newest)) if is_same_template(set, newest) => Ok(newest.clone()),
            (None, _) => {
                let draft = Draft {
                    owner: set,
                    data,
                    number: next,
                };
                self.history.create(cx, &draft, collisions).await
            }
        }
    }

    /// Deletes the oldest revisions that are not in use until as many are left as the set keeps.
    pub(super) async fn truncate(
        &self,
        cx: &Context,
        spec: &SetSpec,
        known: &[Doc],
        live: &HashSet<String>,
    ) -> Result<()> {
        let is_live = |revision: &Doc| live.contains(revision.meta().name());
        let unused: Vec<&Doc> = known.iter().filter(|it| !is_live(it)).collect();
        let limit = spec.history_limit.unwrap_or(usize::MAX);
        for revision in unused.iter().take(unused.len().saturating_sub(limit)) {
            self.history.delete(cx, revision).await?;
        }
        Ok(())
    }
}

fn is_same_template(set: &Doc, revision: &Doc) -> bool {
    let template = history::template(revision);
    deployment::template::is_same(set.at("/spec/template"), &template)
}
