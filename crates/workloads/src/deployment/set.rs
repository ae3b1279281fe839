//! A ReplicaSet, as a Deployment looks at it.

use std::cmp::Ordering;

use windlass_core::{Doc, Time};

use super::annotations;

/// A set of a Deployment, in the state after whatever this sync wrote.
#[derive(Clone, Debug)]
pub(super) struct Set(Doc);

impl Set {
    pub(super) fn new(doc: Doc) -> Self {
        Self(doc)
    }

    pub(super) fn doc(&self) -> &Doc {
        &self.0
    }

    pub(super) fn name(&self) -> &str {
        self.0.meta().name()
    }

    pub(super) fn template(&self) -> &Doc {
        self.0.at("/spec/template")
    }

    /// How many pods it is to have.
    pub(super) fn size(&self) -> i64 {
        self.0.at("/spec/replicas").as_i64().unwrap_or(1)
    }

    /// How many pods it has.
    pub(super) fn replicas(&self) -> i64 {
        self.count("replicas")
    }

    /// How many pods it may have now: what it is to have, or more while it is being scaled down.
    pub(super) fn most_replicas(&self) -> i64 {
        self.size().max(self.replicas())
    }

    /// How many pods will be available once it has the size it is to have.
    pub(super) fn lasting_available(&self) -> i64 {
        self.size().min(self.available())
    }

    pub(super) fn ready(&self) -> i64 {
        self.count("readyReplicas")
    }

    pub(super) fn available(&self) -> i64 {
        self.count("availableReplicas")
    }

    /// How many of its pods are being deleted, if it says so.
    pub(super) fn terminating(&self) -> Option<i64> {
        self.0.at("/status/terminatingReplicas").as_i64()
    }

    pub(super) fn observed_generation(&self) -> i64 {
        self.count("observedGeneration")
    }

    fn count(&self, field: &str) -> i64 {
        let value = self.0.at("/status").get(field);
        value.and_then(Doc::as_i64).unwrap_or(0)
    }

    /// The revision; zero if there is none, and `None` if it is no number.
    pub(super) fn revision(&self) -> Option<i64> {
        match self.0.meta().annotation(annotations::REVISION) {
            None | Some("") => Some(0),
            Some(text) => text.parse().ok(),
        }
    }

    /// Whether it was current once and is to have a higher revision now.
    pub(super) fn is_before(&self, revision: i64) -> bool {
        self.revision().is_some_and(|it| it > 0 && it < revision)
    }

    /// How many pods the Deployment was to have when the set was scaled last.
    pub(super) fn desired_replicas(&self) -> Option<i64> {
        self.number(annotations::DESIRED_REPLICAS)
    }

    /// How many pods all sets were to have at most when the set was scaled last.
    pub(super) fn max_replicas(&self) -> Option<i64> {
        self.number(annotations::MAX_REPLICAS)
    }

    fn number(&self, annotation: &str) -> Option<i64> {
        let text = self.0.meta().annotation(annotation)?;
        let number: u32 = text.parse().ok().filter(|_| !text.starts_with('+'))?;
        i32::try_from(number).ok().map(i64::from)
    }

    /// Older ones first, and by name among those of one second.
    pub(super) fn by_age(&self, other: &Self) -> Ordering {
        self.age_key().cmp(&other.age_key())
    }

    fn age_key(&self) -> (Option<Time>, &str, &str) {
        let meta = self.0.meta();
        (meta.creation_timestamp(), meta.name(), meta.uid_str())
    }

    /// By revision, and by age among those of one revision.
    pub(super) fn by_revision(&self, other: &Self) -> Ordering {
        let revisions = |set: &Self| set.revision().unwrap_or(0);
        revisions(self)
            .cmp(&revisions(other))
            .then_with(|| self.by_age(other))
    }
}
