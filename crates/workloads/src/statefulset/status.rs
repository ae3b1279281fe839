//! The status of a StatefulSet.

use std::time::Duration;

use windlass_cache::Obj;
use windlass_client::WriteOptions;
use windlass_core::{Doc, Object, Time};
use windlass_runtime::{Context, Result};

use super::{
    Engine,
    pod::Member,
    revisions::SetRevisions,
    spec::{SetSpec, UpdateStrategy},
};

/// The status of a StatefulSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SetStatus {
    pub(super) observed_generation: i64,
    pub(super) replicas: i64,
    pub(super) ready: i64,
    pub(super) available: i64,
    pub(super) current: i64,
    pub(super) updated: i64,
    current_revision: String,
    update_revision: String,
    collisions: i64,
}

impl SetStatus {
    /// Counts the pods of a set.
    pub(super) fn count<'p>(
        set: &Doc,
        revisions: &SetRevisions,
        pods: impl Iterator<Item = &'p Member>,
        min_ready: Duration,
        now: Time,
    ) -> Self {
        let mut status = Self {
            observed_generation: set.meta().generation(),
            replicas: 0,
            ready: 0,
            available: 0,
            current: 0,
            updated: 0,
            current_revision: revisions.current_name().to_owned(),
            update_revision: revisions.update_name().to_owned(),
            collisions: revisions.collisions,
        };
        for pod in pods.filter(|pod| pod.is_created()) {
            status.replicas += 1;
            let is_ready = pod.is_running_and_ready();
            status.ready += i64::from(is_ready);
            status.available += i64::from(is_ready && pod.is_available(min_ready, now));
            if !pod.is_terminating() {
                let revision = pod.revision();
                status.current += i64::from(revision == status.current_revision);
                status.updated += i64::from(revision == status.update_revision);
            }
        }
        status
    }

    /// Makes the new revision the current one when all pods are at it and ready.
    fn complete(&mut self, spec: &SetSpec) {
        let is_rolling = spec.strategy != UpdateStrategy::OnDelete;
        let wanted = spec.replicas();
        if is_rolling && [self.updated, self.ready, self.replicas] == [wanted; 3] {
            self.current = self.updated;
            self.current_revision.clone_from(&self.update_revision);
        }
    }

    /// Returns true if the status of a set says something else.
    fn differs(&self, set: &Doc) -> bool {
        let status = set.at("/status");
        let count = |at: &str| status.at(at).as_i64().unwrap_or(0);
        self.observed_generation > count("/observedGeneration")
            || self.replicas != count("/replicas")
            || self.current != count("/currentReplicas")
            || self.ready != count("/readyReplicas")
            || self.updated != count("/updatedReplicas")
            || self.available != count("/availableReplicas")
            || self.current_revision != status.str_at("/currentRevision")
            || self.update_revision != status.str_at("/updateRevision")
    }

    /// The status as it is written: what may be left out when it is zero is.
    fn to_doc(&self) -> Doc {
        let some = |count: i64| (count != 0).then(|| Doc::from(count));
        let text = |text: &str| (!text.is_empty()).then(|| Doc::from(text));
        let fields = [
            ("observedGeneration", some(self.observed_generation)),
            ("replicas", Some(self.replicas.into())),
            ("readyReplicas", some(self.ready)),
            ("currentReplicas", some(self.current)),
            ("updatedReplicas", some(self.updated)),
            ("availableReplicas", Some(self.available.into())),
            ("currentRevision", text(&self.current_revision)),
            ("updateRevision", text(&self.update_revision)),
            ("collisionCount", Some(self.collisions.into())),
        ];
        let present = fields.into_iter().filter_map(|(key, it)| Some((key, it?)));
        present.collect::<Object>().into()
    }
}

impl Engine {
    /// Writes the status if it says something new.
    pub(super) async fn write_status(
        &self,
        cx: &Context,
        set: &Obj,
        spec: &SetSpec,
        status: &mut SetStatus,
    ) -> Result<()> {
        status.complete(spec);
        if !status.differs(set.doc()) {
            return Ok(());
        }
        let api = cx.api(&self.kinds.sets, set.namespace());
        let options = WriteOptions::default().metadata_only();
        let status = status.to_doc();
        let write = set.doc().with("/status", &status)?;
        match api.update_status(&write, &options).await {
            Err(error) if error.is_conflict() => {
                // Somebody else has changed the set; what was counted holds all the same.
                let fresh = api.get(set.name()).await?;
                if fresh.meta().uid() == set.uid() {
                    let write = fresh.with("/status", &status)?;
                    api.update_status(&write, &options).await?;
                }
                Ok(())
            }
            // A set that is gone has no status.
            Err(error) if error.is_not_found() => Ok(()),
            written => Ok(written.map(drop)?),
        }
    }
}
