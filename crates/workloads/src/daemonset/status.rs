//! The status of a DaemonSet.

use std::time::Duration;

use windlass_client::WriteOptions;
use windlass_core::{Doc, EditError};
use windlass_runtime::Result;

use super::{Sync, template};
use crate::{is_pod_available, is_pod_ready};

/// The numbers in the status of a DaemonSet, all of nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Numbers {
    desired: i64,
    current: i64,
    misscheduled: i64,
    ready: i64,
    updated: i64,
    available: i64,
}

impl Numbers {
    /// The fields of the status, each with its number.
    fn fields(&self) -> [(&'static str, i64); 7] {
        [
            ("desiredNumberScheduled", self.desired),
            ("currentNumberScheduled", self.current),
            ("numberMisscheduled", self.misscheduled),
            ("numberReady", self.ready),
            ("updatedNumberScheduled", self.updated),
            ("numberAvailable", self.available),
            ("numberUnavailable", self.desired - self.available),
        ]
    }

    fn are_in(&self, set: &Doc) -> bool {
        let status = set.at("/status");
        let value = |field: &str| status.get(field).and_then(Doc::as_i64).unwrap_or(0);
        let mut fields = self.fields().into_iter();
        fields.all(|(field, number)| value(field) == number)
            && value("observedGeneration") >= set.meta().generation()
    }

    /// A set with these numbers in its status, and the generation that they are of.
    fn put_in(&self, set: &Doc, generation: i64) -> Result<Doc, EditError> {
        let status = set.at("/status").as_object().cloned();
        let mut status = status.unwrap_or_else(windlass_core::Object::empty);
        for (field, number) in self.fields() {
            // These four may be left out when they are zero, and are then.
            let is_optional = matches!(
                field,
                "updatedNumberScheduled" | "numberAvailable" | "numberUnavailable"
            );
            status = match number == 0 && is_optional {
                true => status.without(field),
                false => status.with(field, number.into()),
            };
        }
        set.with(
            "/status",
            status.with("observedGeneration", generation.into()),
        )
    }
}

impl Sync<'_> {
    /// Writes the status if it says something new. Returns the time after which pods may have
    /// become available by the mere passing of time.
    pub(super) async fn write_status(&self) -> Result<Option<Duration>> {
        let numbers = self.count();
        if !numbers.are_in(self.set) {
            self.send_status(&numbers).await?;
        }
        let is_waiting = !self.min_ready.is_zero() && numbers.ready != numbers.available;
        Ok(is_waiting.then_some(self.min_ready))
    }

    fn count(&self) -> Numbers {
        let (mut numbers, generation) = (Numbers::default(), template::generation(self.set));
        for node in &self.nodes {
            let verdict = self.placement.eligibility(node.doc());
            let pod = self.pods.get(node.name()).and_then(|pods| pods.first());
            numbers.desired += i64::from(verdict.should_run);
            let Some(pod) = pod else {
                continue;
            };
            if !verdict.should_run {
                numbers.misscheduled += 1;
                continue;
            }
            numbers.current += 1;
            numbers.ready += i64::from(is_pod_ready(pod));
            let is_available = is_pod_available(pod, self.min_ready, self.now);
            numbers.available += i64::from(is_available);
            let is_updated = template::is_updated(pod, &self.hash, generation);
            numbers.updated += i64::from(is_updated);
        }
        numbers
    }

    async fn send_status(&self, numbers: &Numbers) -> Result<()> {
        let (meta, generation) = (self.set.meta(), self.set.meta().generation());
        let api = self.cx.api(&self.engine.kinds.sets, meta.namespace());
        let options = WriteOptions::default().metadata_only();
        let write = numbers.put_in(self.set, generation)?;
        let Err(error) = api.update_status(&write, &options).await else {
            return Ok(());
        };
        // A set that is gone has no status.
        if error.is_not_found() {
            return Ok(());
        }
        let fresh = api.get(meta.name()).await?;
        if fresh.meta().uid() == meta.uid() {
            let write = numbers.put_in(&fresh, generation)?;
            api.update_status(&write, &options).await?;
        }
        Ok(())
    }
}
