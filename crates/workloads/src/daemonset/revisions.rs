//! The revisions of a DaemonSet.

use std::collections::HashSet;

use windlass_client::{Patch, WriteOptions};
use windlass_core::{Doc, doc};
use windlass_runtime::{Context, Error, Result};

use super::{Engine, pods::DaemonPods, template::HASH_LABEL};
use crate::{
    deployment,
    history::{self, Draft},
};

/// The revision of the current template, and the others from the oldest to the newest.
pub(super) struct SetHistory {
    current: Doc,
    old: Vec<Doc>,
}

impl SetHistory {
    /// The hash that pods of the current template are labelled with.
    pub(super) fn hash(&self) -> &str {
        self.current.meta().label(HASH_LABEL).unwrap_or("")
    }
}

impl Engine {
    /// Finds the revision of the current template and gives it the highest number, or records it.
    pub(super) async fn history_of(
        &self,
        cx: &Context,
        set: &Doc,
        known: Vec<Doc>,
        pods: &DaemonPods,
    ) -> Result<SetHistory> {
        let data = history::data_of(set);
        let (mut equal, mut old) = (Vec::new(), Vec::new());
        for revision in known {
            let revision = self.labelled(cx, revision).await?;
            match *history::data(&revision) == data {
                true => equal.push(revision),
                false => old.push(revision),
            }
        }
        let next = old.iter().map(history::number).max().unwrap_or(0) + 1;
        let current = match self.only_one(cx, equal, pods).await? {
            None => self.record(cx, set, data, next).await?,
            Some(current) if history::number(&current) < next => {
                self.history.renumber(cx, &current, next).await?
            }
            Some(current) => current,
        };
        Ok(SetHistory { current, old })
    }

    /// A revision with a hash label; one without is labelled with its name, which is unique.
    async fn labelled(&self, cx: &Context, revision: Doc) -> Result<Doc> {
        let meta = revision.meta();
        if meta.label(HASH_LABEL).is_some() {
            return Ok(revision);
        }
        let labels = doc!({ HASH_LABEL: (meta.name()) });
        let patch = doc!({ "metadata": { "uid": (meta.uid_str()), "labels": labels } });
        let api = cx.api(&self.history.kind, meta.namespace());
        let (patch, options) = (Patch::Merge(patch), WriteOptions::default());
        Ok(api.patch(meta.name(), &patch, &options).await?)
    }

    /// The newest of revisions that are equal. The pods get its hash, and the others are deleted.
    async fn only_one(
        &self,
        cx: &Context,
        mut equal: Vec<Doc>,
        pods: &DaemonPods,
    ) -> Result<Option<Doc>> {
        let Some(kept) = equal.pop() else {
            return Ok(None);
        };
        if equal.is_empty() {
            return Ok(Some(kept));
        }
        let hash = kept.meta().label(HASH_LABEL).unwrap_or("");
        let is_other = |pod: &&Doc| pod.meta().label(HASH_LABEL) != Some(hash);
        for pod in pods.all().iter().filter(is_other) {
            let meta = pod.meta();
            let labels = doc!({ HASH_LABEL: hash });
            let patch = doc!({ "metadata": { "uid": (meta.uid_str()), "labels": labels } });
            let api = cx.api(&self.kinds.pods, meta.namespace());
            let (patch, options) = (Patch::Merge(patch), WriteOptions::default());
            api.patch(meta.name(), &patch, &options).await?;
        }
        for revision in &equal {
            self.history.delete(cx, revision).await?;
        }
        Ok(Some(kept))
    }

    /// Records the current template as a revision.
    async fn record(&self, cx: &Context, set: &Doc, data: Doc, number: i64) -> Result<Doc> {
        let collisions = set.at("/status/collisionCount").as_i64();
        let hash = deployment::template::hash(set.at("/spec/template"), collisions);
        let name = history::name(set, &hash);
        let draft = Draft {
            owner: set,
            data,
            number,
        };
        let revision = draft.revision(&self.kinds.sets, &name, HASH_LABEL, &hash)?;
        let api = cx.api(&self.history.kind, set.meta().namespace());
        let error = match api.create(&revision, &WriteOptions::default()).await {
            Err(error) if error.is_already_exists() => error,
            created => return Ok(created?),
        };
        let known = api.get(&name).await?;
        if *history::data(&known) == draft.data {
            return Ok(known);
        }
        self.count_collision(cx, set, collisions).await?;
        Err(error.into())
    }

    /// Counts a name that belongs to other data, so that the next sync makes another name.
    async fn count_collision(&self, cx: &Context, set: &Doc, seen: Option<i64>) -> Result<()> {
        let api = cx.api(&self.kinds.sets, set.meta().namespace());
        let live = api.get(set.meta().name()).await?;
        let counted = live.at("/status/collisionCount").as_i64();
        if counted != seen {
            let (seen, counted) = (seen.unwrap_or(0), counted.unwrap_or(0));
            let name = set.meta().name();
            return Err(Error::msg(format!(
                "found a stale collision count ({seen}, expected {counted}) of DaemonSet \
                 \"{name}\" while processing; will retry until it is updated"
            )));
        }
        let write = live.with("/status/collisionCount", counted.unwrap_or(0) + 1)?;
        let options = WriteOptions::default().metadata_only();
        api.update_status(&write, &options).await?;
        Ok(())
    }

    /// Deletes the oldest revisions without pods until as many are left as the set keeps.
    pub(super) async fn clean_up(
        &self,
        cx: &Context,
        set: &Doc,
        history: &SetHistory,
        pods: &DaemonPods,
    ) -> Result<()> {
        let limit = set.at("/spec/revisionHistoryLimit").as_u64().unwrap_or(10);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let surplus = history.old.len().saturating_sub(limit);
        let hashes = pods.all().iter().map(|pod| pod.meta().label(HASH_LABEL));
        let live: HashSet<&str> = hashes.flatten().collect();
        let is_unused = |it: &&Doc| !live.contains(it.meta().label(HASH_LABEL).unwrap_or(""));
        for revision in history.old.iter().filter(is_unused).take(surplus) {
            self.history.delete(cx, revision).await?;
        }
        Ok(())
    }
}
