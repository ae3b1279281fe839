//! One step of the removal of a namespace.

use std::time::Duration;

use windlass_client::Error;
use windlass_core::{Doc, Time};
use windlass_runtime::{Action, Result};

use super::{
    Remover,
    conditions::{Conditions, Totals},
    content::Removed,
    finalize::{is_finalized, terminating},
};

/// How many resources are worked on at the same time.
const PARALLEL_LIMIT: usize = 8;

impl Remover {
    /// Removes what can be removed now. A namespace that is not being deleted is left alone.
    pub(super) async fn remove(&self, name: &str) -> Result<Action> {
        let Some(namespace) = found(self.namespaces().get(name).await)? else {
            return Ok(Action::done());
        };
        if !namespace.meta().is_deleting() {
            return Ok(Action::done());
        }
        let namespace = self.update(namespace, terminating, Part::Status).await?;
        let Some(namespace) = namespace.filter(|it| it.meta().is_deleting()) else {
            return Ok(Action::done());
        };
        if is_finalized(&namespace) {
            return Ok(Action::requeue_after(self.sync_period));
        }
        let (namespace, estimate) = self.remove_content(namespace).await?;
        if estimate > 0 {
            let wait = Duration::from_secs(estimate / 2 + 1);
            return Ok(Action::requeue_after(wait));
        }
        self.finalize(namespace).await?;
        Ok(Action::requeue_after(self.sync_period))
    }

    /// Removes the content of a namespace and says in its conditions how that went. Returns in how
    /// many seconds the rest may be gone; zero if nothing is left.
    async fn remove_content(&self, namespace: Doc) -> Result<(Doc, u64)> {
        let mut conditions = Conditions::default();
        let resources = self.discover(&mut conditions).await;
        let place = Place {
            namespace: namespace.meta().name().to_owned(),
            deleted_at: namespace.meta().deletion_timestamp(),
        };
        let mut totals = Totals::default();
        let pods = self.remove_pods(&place).await;
        let mut estimate = pods.estimate;
        let is_held = pods.remaining > 0 || pods.error.is_some();
        conditions.note(&pods, &mut totals);
        if !is_held {
            for removed in self.remove_all(&resources, &place, PARALLEL_LIMIT).await {
                estimate = estimate.max(removed.estimate);
                conditions.note(&removed, &mut totals);
            }
        }
        let failures = conditions.failures();
        let namespace = self.report(namespace, &conditions, &totals).await;
        match failures {
            None => Ok((namespace, estimate)),
            Some(failures) => Err(windlass_runtime::Error::msg(failures)),
        }
    }

    /// Writes the conditions, if they have changed. A failure is told and forgotten: what matters
    /// is the removal, and the next step writes them anew.
    async fn report(&self, namespace: Doc, conditions: &Conditions, totals: &Totals) -> Doc {
        let changed = conditions.apply(&namespace, totals, self.env.now());
        if changed == namespace {
            return namespace;
        }
        let options = windlass_client::WriteOptions::manager(super::NAME);
        match self.namespaces().update_status(&changed, &options).await {
            Ok(updated) => updated,
            Err(error) => {
                tracing::warn!(%error, "couldn't update status condition for namespace");
                namespace
            }
        }
    }
}

impl Conditions {
    fn note(&mut self, removed: &Removed, totals: &mut Totals) {
        if let Some(error) = &removed.error {
            self.content_failed(error.clone());
        }
        totals.add(&removed.resource, removed.remaining, &removed.finalizers);
    }
}

/// A namespace that is removed.
pub(super) struct Place {
    pub(super) namespace: String,
    pub(super) deleted_at: Option<Time>,
}

/// Which part of a namespace an update is of.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    Status,
    Finalize,
}

impl Part {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Finalize => "finalize",
        }
    }
}

/// An object, if there is one.
pub(super) fn found(answer: Result<Doc, Error>) -> Result<Option<Doc>, Error> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}
