//! What a set says about its pods.

use std::time::Duration;

use windlass_cache::Obj;
use windlass_client::WriteOptions;
use windlass_core::{Doc, MicroTime, Object, Str, doc};
use windlass_runtime::{Context, Result};

use super::{Engine, manage::Managed, tally::Counts};

const REPLICA_FAILURE: &str = "ReplicaFailure";

/// How long a pod must be ready before it counts as available.
pub(crate) fn min_ready(set: &Doc) -> Duration {
    Duration::from_secs(set.at("/spec/minReadySeconds").as_u64().unwrap_or(0))
}

impl Engine {
    /// Writes the status if it says something new.
    pub(super) async fn write_status(
        &self,
        cx: &Context,
        set: &Obj,
        counts: &Counts,
        managed: &Managed,
        now: MicroTime,
    ) -> Result<()> {
        let before = set.doc().at("/status");
        let conditions = conditions(before, managed, now);
        let after = self.status(set.doc(), counts, conditions);
        if after == self.comparable(before) {
            return Ok(());
        }
        let api = cx.api(&self.variant.kind, set.namespace());
        let options = WriteOptions::default().metadata_only();
        let write = set.doc().with("/status", &after)?;
        match api.update_status(&write, &options).await {
            Err(error) if error.is_conflict() => {
                // Somebody else has changed the set; what was counted holds all the same.
                let fresh = api.get(set.name()).await?;
                if fresh.meta().uid() != set.uid() {
                    return Ok(());
                }
                let write = fresh.with("/status", &after)?;
                api.update_status(&write, &options).await?;
            }
            // A set that is gone has no status.
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error.into()),
            Ok(_) => {}
        }
        Ok(())
    }

    /// The status, with what is zero left out as an API server does.
    fn status(&self, set: &Doc, counts: &Counts, conditions: Vec<Doc>) -> Doc {
        let mut fields = vec![(Str::new("replicas"), Doc::from(counts.replicas))];
        for (name, count) in [
            ("fullyLabeledReplicas", counts.fully_labeled),
            ("readyReplicas", counts.ready),
            ("availableReplicas", counts.available),
        ] {
            if count > 0 {
                fields.push((Str::new(name), Doc::from(count)));
            }
        }
        if self.variant.counts_terminating {
            fields.push((
                Str::new("terminatingReplicas"),
                Doc::from(counts.terminating),
            ));
        }
        let generation = set.meta().generation();
        if generation > 0 {
            fields.push((Str::new("observedGeneration"), Doc::from(generation)));
        }
        if !conditions.is_empty() {
            fields.push((Str::new("conditions"), Doc::from(conditions)));
        }
        Object::new(fields).into()
    }

    /// The status as this controller would write it: without zeros and empty lists.
    fn comparable(&self, status: &Doc) -> Doc {
        let fields = status.as_object().into_iter().flat_map(Object::iter);
        let kept = fields.filter(|(key, value)| match key.as_str() {
            "replicas" | "terminatingReplicas" => true,
            _ => value.as_i64() != Some(0) && !value.is_null() && **value != Doc::from(Vec::new()),
        });
        Object::new(
            kept.map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
        )
        .into()
    }
}

/// The conditions, with the failure set, kept or removed. It is kept as it is until pods were
/// managed without one: messages name pods that were to be, each time others, and a status that
/// changes with every attempt would bring about the next attempt.
fn conditions(status: &Doc, managed: &Managed, now: MicroTime) -> Vec<Doc> {
    let mut conditions = status.at("/conditions").items().to_vec();
    let is_failure = |doc: &Doc| doc.get("type").is_some_and(|it| it == REPLICA_FAILURE);
    let known = conditions.iter().position(is_failure);
    match (managed, known) {
        (Managed::NotTried, _) | (Managed::Done, None) | (Managed::Failed { .. }, Some(_)) => {}
        (Managed::Done, Some(at)) => drop(conditions.remove(at)),
        (Managed::Failed { reason, error }, None) => {
            let since = now.to_time().to_string();
            conditions.push(failure(reason, &error.to_string(), &since));
        }
    }
    conditions
}

fn failure(reason: &str, message: &str, since: &str) -> Doc {
    doc!({
        "type": REPLICA_FAILURE, "status": "True", "reason": reason, "message": message,
        "lastTransitionTime": since
    })
}
