//! Sinks: the writing of events to the API server.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};
use windlass_client::{Cause, DynamicApi, DynamicClient, Patch, RestClient, Status, WriteOptions};
use windlass_core::{Doc, Env, GroupVersion};

use super::{
    correlate::{Correlated, Correlator, CorrelatorOptions},
    event::Event,
};
use crate::{metrics::EventMetrics, shutdown::Shutdown};

/// The most attempts to write one event.
pub const ATTEMPTS_LIMIT: u32 = 12;

/// The wait between two attempts. The first wait is a random part of it, so that controllers that
/// lost the same server do not come back together.
pub const RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// Of how many series the last event is kept that was held back.
const OWED_LIMIT: usize = 1024;

/// The cause of a refusal because the namespace is being deleted.
const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";

/// The reason why an event was not stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SinkError {
    /// The server refused it, or it cannot be written at all: trying again is in vain.
    #[error("{0}")]
    Refused(String),
    /// The server has it already, or its namespace is being deleted: as expected, and in vain as
    /// well.
    #[error("{0}")]
    Moot(String),
    /// The object to be patched is gone.
    #[error("{0}")]
    NotFound(String),
    /// The server was not reached, or answered with something else than an event.
    #[error("{0}")]
    Unreachable(String),
}

/// Stores events.
pub trait EventSink: Send + Sync + 'static {
    /// Creates an event. Of what is returned only the metadata is looked at.
    fn create(
        &self,
        namespace: &str,
        event: &Doc,
    ) -> impl Future<Output = Result<Doc, SinkError>> + Send;

    /// Changes an event that exists. Of what is returned only the metadata is looked at.
    fn patch(
        &self,
        namespace: &str,
        name: &str,
        patch: &Doc,
    ) -> impl Future<Output = Result<Doc, SinkError>> + Send;
}

impl EventSink for RestClient {
    async fn create(&self, namespace: &str, event: &Doc) -> Result<Doc, SinkError> {
        let api = events_of(self, namespace);
        Ok(api.create(event, &brief()).await?)
    }

    async fn patch(&self, namespace: &str, name: &str, patch: &Doc) -> Result<Doc, SinkError> {
        let (api, patch) = (events_of(self, namespace), Patch::Merge(patch.clone()));
        Ok(api.patch(name, &patch, &brief()).await?)
    }
}

fn events_of(client: &RestClient, namespace: &str) -> DynamicApi {
    let events = GroupVersion::constant("", "v1").with_resource("events");
    DynamicClient::new(client.clone())
        .resource(events)
        .namespaced(namespace)
}

/// Of a stored event only the name and the revision are of interest.
fn brief() -> WriteOptions {
    WriteOptions::default().metadata_only()
}

impl From<windlass_client::Error> for SinkError {
    fn from(error: windlass_client::Error) -> Self {
        let text = error.to_string();
        match error.cause() {
            Cause::Status(status) if status.is_not_found() => Self::NotFound(text),
            Cause::Status(status) if is_moot(status) => Self::Moot(text),
            Cause::Status(_) | Cause::Malformed(_) | Cause::Encode(_) => Self::Refused(text),
            _ => Self::Unreachable(text),
        }
    }
}

/// The two refusals that client-go does not report as errors either.
fn is_moot(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let mut reasons = causes.map(|cause| cause.reason.as_str());
    status.is_already_exists() || reasons.any(|reason| reason == NAMESPACE_TERMINATING)
}

/// Takes events from a queue and stores them, one after another.
pub(super) struct SinkLoop<S> {
    pub(super) sink: S,
    pub(super) env: Env,
    pub(super) metrics: EventMetrics,
    pub(super) shutdown: Shutdown,
    pub(super) options: CorrelatorOptions,
}

/// The memory of one sink.
struct Memory {
    correlator: Correlator,
    /// The last event of each series that was held back since it was told. Told when the
    /// allowance has grown, so that counts are late and not lost. Bounded by [`OWED_LIMIT`].
    owed: BTreeMap<String, Correlated>,
    /// When to look at `owed` next.
    settle_at: Instant,
}

impl<S: EventSink> SinkLoop<S> {
    pub(super) async fn run(self, mut events: mpsc::Receiver<Arc<Event>>) {
        let correlator = Correlator::new(self.env.clone(), self.options);
        let settle_at = Instant::now() + self.options.spam_refill_interval;
        let mut memory = Memory {
            correlator,
            owed: BTreeMap::new(),
            settle_at,
        };
        loop {
            tokio::select! {
                biased;
                () = sleep_until(memory.settle_at), if !memory.owed.is_empty() => {
                    self.settle(&mut memory).await;
                }
                event = events.recv() => match event {
                    Some(event) => self.take(&event, &mut memory).await,
                    None => break,
                },
            }
        }
        for correlated in std::mem::take(&mut memory.owed).into_values() {
            self.tell(&correlated, &mut memory).await;
        }
    }

    async fn take(&self, event: &Arc<Event>, memory: &mut Memory) {
        let correlated = memory
            .correlator
            .correlate(Event::clone(event), Instant::now());
        let series = correlated.series().to_owned();
        if !correlated.is_spam {
            memory.owed.remove(&series);
            return self.tell(&correlated, memory).await;
        }
        self.metrics
            .held_back(&event.source.component, &event.reason);
        if memory.owed.len() < OWED_LIMIT || memory.owed.contains_key(&series) {
            memory.owed.insert(series, correlated);
        }
    }

    /// Tells what was held back, as far as it is allowed by now.
    async fn settle(&self, memory: &mut Memory) {
        memory.settle_at = Instant::now() + self.options.spam_refill_interval;
        let series: Vec<String> = memory.owed.keys().cloned().collect();
        for series in series {
            let Some(correlated) = memory.owed.remove(&series) else {
                continue;
            };
            if memory.correlator.may_tell(&correlated, Instant::now()) {
                self.tell(&correlated, memory).await;
            } else {
                memory.owed.insert(series, correlated);
            }
        }
    }

    async fn tell(&self, correlated: &Correlated, memory: &mut Memory) {
        match self.store(correlated).await {
            Ok(stored) => {
                let meta = stored.meta();
                memory
                    .correlator
                    .stored(correlated, meta.name(), meta.resource_version());
            }
            Err(error) => {
                let event = &correlated.event;
                self.metrics.lost(&event.source.component);
                match error {
                    SinkError::Moot(error) => {
                        tracing::debug!(%error, event = %event.name, "event is not written");
                    }
                    error => {
                        tracing::error!(%error, event = %event.name, "unable to write event");
                    }
                }
            }
        }
    }

    /// Tries to store an event until it is stored, refused, or given up. After the shutdown there
    /// is one attempt only.
    async fn store(&self, correlated: &Correlated) -> Result<Doc, SinkError> {
        let mut attempt = 1;
        loop {
            let error = match self.attempt(correlated).await {
                Err(SinkError::Unreachable(error)) => SinkError::Unreachable(error),
                decided => return decided,
            };
            if attempt >= ATTEMPTS_LIMIT || self.shutdown.is_requested() {
                return Err(error);
            }
            self.pause(attempt).await;
            attempt += 1;
        }
    }

    async fn attempt(&self, correlated: &Correlated) -> Result<Doc, SinkError> {
        let event = &correlated.event;
        let namespace = event.namespace();
        if correlated.is_repeat {
            match self
                .sink
                .patch(namespace, &event.name, &event.to_patch())
                .await
            {
                Err(SinkError::NotFound(_)) => {}
                decided => return decided,
            }
        }
        self.sink.create(namespace, &event.to_doc()).await
    }

    async fn pause(&self, attempt: u32) {
        let whole = u64::try_from(RETRY_INTERVAL.as_millis()).unwrap_or(u64::MAX);
        let pause = match attempt {
            1 => Duration::from_millis(self.env.random_below(whole)),
            _ => RETRY_INTERVAL,
        };
        tokio::select! {
            biased;
            () = self.shutdown.requested() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use windlass_client::{StatusCause, StatusDetails};

    use super::*;

    /// A namespace that goes takes its objects along, and each of them has something to tell.
    #[test]
    fn events_of_a_terminating_namespace_are_no_errors() {
        let refusal = |reason: &str, cause: &str| Status {
            reason: reason.to_owned(),
            details: Some(StatusDetails {
                causes: vec![StatusCause {
                    reason: cause.to_owned(),
                    ..StatusCause::default()
                }],
                ..StatusDetails::default()
            }),
            ..Status::default()
        };
        assert!(is_moot(&refusal("Forbidden", NAMESPACE_TERMINATING)));
        assert!(is_moot(&refusal("AlreadyExists", "")));
        assert!(!is_moot(&refusal("Forbidden", "FieldValueInvalid")));
    }
}
