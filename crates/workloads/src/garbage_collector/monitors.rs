//! One watch for each kind, as kinds come and go.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};
use windlass_cache::{
    Deleted, Handler, InformerBuilder, Obj, Registration, ResourceSource, SharedInformer,
};
use windlass_client::DiscoveryClient;
use windlass_core::{Doc, Gvr, Prune, Revision, Str};
use windlass_runtime::Shutdown;

use super::{
    collector::Collector,
    identity::{Deletion, Identity, Seen},
    resources::{self, Served, Watched},
};

/// How often the server is asked what it serves.
const DISCOVERY_PERIOD: Duration = Duration::from_secs(30);

/// How often it is asked for a while after a custom resource definition has changed: a server needs
/// a moment until it serves what was defined.
const EAGER_PERIOD: Duration = Duration::from_secs(1);

/// For how long that is.
const EAGER_TIME: Duration = Duration::from_secs(10);

/// How long a kind is watched after the server has ceased to serve it. Until then its watch brings
/// the last deletions; and what is back by then was never away.
const LINGER_TIME: Duration = Duration::from_secs(30);

/// After what time a kind that still cannot be watched is reported.
const SYNC_TIME: Duration = Duration::from_secs(30);

/// The watch of one kind.
pub(super) struct Monitor {
    pub(super) watched: Watched,
    informer: SharedInformer,
    registration: Registration,
    stop: Shutdown,
    run: JoinHandle<()>,
    started: Instant,
    /// Since when the server does not serve the kind.
    missing_since: Option<Instant>,
    is_reported: bool,
}

impl Monitor {
    /// Whether the graph has everything that existed when the watch began.
    pub(super) fn has_synced(&self) -> bool {
        self.registration.has_synced()
    }

    /// Whether everything up to a revision is in the graph.
    pub(super) fn has_reached(&self, revision: &Revision) -> bool {
        // In this order: what is in the cache has been told to the handler before.
        self.informer.revision().as_ref() >= Some(revision) && self.registration.is_idle()
    }
}

impl Collector {
    /// Keeps the watches in step with what the server serves.
    pub(super) async fn follow_discovery(self: Arc<Self>, shutdown: &Shutdown) {
        let mut eager_until = Instant::now();
        loop {
            self.sync_monitors().await;
            let is_eager = Instant::now() < eager_until;
            let period = if is_eager {
                EAGER_PERIOD
            } else {
                DISCOVERY_PERIOD
            };
            tokio::select! {
                biased;
                () = shutdown.requested() => return,
                () = self.definitions_changed.notified() => {
                    eager_until = Instant::now() + EAGER_TIME;
                    if is_eager {
                        sleep(EAGER_PERIOD).await;
                    }
                }
                () = sleep(period) => {}
            }
        }
    }

    /// Asks the server what it serves, and starts and stops watches.
    async fn sync_monitors(self: &Arc<Self>) {
        // A client that knows nothing yet, so that it has to ask.
        let discovery = match DiscoveryClient::new(self.client.clone()).discovery().await {
            Ok(discovery) => discovery,
            Err(error) => {
                tracing::warn!(%error, "discovery failed, skipping garbage collector sync");
                self.metrics.sync_failed();
                return;
            }
        };
        let wanted = resources::deletable(&discovery, &self.ignored);
        if wanted.is_empty() {
            tracing::warn!("no resources reported by discovery, skipping garbage collector sync");
            self.metrics.sync_failed();
            return;
        }
        let failed = resources::failed(&discovery);
        let mut served = Served::new(&discovery);
        served.keep(&failed, &self.served.read().clone());
        *self.served.write() = Arc::new(served);
        let ended = {
            let mut monitors = self.monitors.lock();
            for (gvr, monitor) in monitors.iter_mut() {
                // A group that failed keeps the watches that work.
                let is_spared =
                    failed.contains(gvr.group_version()) && monitor.registration.has_synced();
                let is_served = wanted.contains_key(gvr) || is_spared;
                monitor.note_served(is_served, self);
            }
            for (gvr, watched) in wanted {
                if !monitors.contains_key(&gvr)
                    && let Some(monitor) = self.start_monitor(&gvr, watched)
                {
                    monitors.insert(gvr, monitor);
                }
            }
            monitors
                .extract_if(.., |_, monitor| monitor.is_over())
                .collect::<BTreeMap<_, _>>()
        };
        for (gvr, monitor) in ended {
            tracing::info!(resource = %gvr, "no longer served, its watch is stopped");
            self.stop_monitor(monitor).await;
        }
        self.is_discovered.send_replace(true);
    }

    fn start_monitor(self: &Arc<Self>, gvr: &Gvr, watched: Watched) -> Option<Monitor> {
        let source = ResourceSource::new(self.client.clone(), gvr.clone(), None)
            .metadata_only()
            .prune(prune());
        let informer: SharedInformer = InformerBuilder::new(Arc::new(source), gvr.clone())
            .env(self.env.clone())
            .transform(|object| Ok(without_annotations(&object)))
            .build()
            .expect("invariant: without indices none can conflict");
        let group_resource = gvr.group_resource();
        let feeder = Feeder {
            collector: Arc::downgrade(self),
            kind: watched.kind.clone(),
            api_version: watched.api_version.clone(),
            is_definition: group_resource.group() == "apiextensions.k8s.io"
                && group_resource.resource() == "customresourcedefinitions",
        };
        let registration = informer.add_handler(feeder).ok()?;
        let stop = Shutdown::new();
        let run = tokio::spawn({
            let (informer, stop) = (informer.clone(), stop.clone());
            async move { informer.run(stop.requested()).await }
        });
        Some(Monitor {
            watched,
            informer,
            registration,
            stop,
            run,
            started: Instant::now(),
            missing_since: None,
            is_reported: false,
        })
    }

    async fn stop_monitor(&self, mut monitor: Monitor) {
        monitor.end().await;
        let Watched {
            kind, api_version, ..
        } = &monitor.watched;
        self.change(|graph| graph.unwatch(kind, api_version));
    }

    /// Ends all watches.
    pub(super) async fn stop_monitors(&self) {
        let monitors = std::mem::take(&mut *self.monitors.lock());
        monitors.values().for_each(|monitor| monitor.stop.trigger());
        for mut monitor in monitors.into_values() {
            monitor.end().await;
        }
    }

    /// Waits until discovery has succeeded and every watch has shown what exists.
    pub(super) async fn wait_for_monitors(&self) {
        let mut discovered = self.is_discovered.subscribe();
        // An error would mean that the sender is gone, but it is held here.
        let _ = discovered.wait_for(|is_discovered| *is_discovered).await;
        let registrations: Vec<Registration> = {
            let monitors = self.monitors.lock();
            monitors
                .values()
                .map(|it| it.registration.clone())
                .collect()
        };
        for registration in registrations {
            registration.wait_for_sync().await;
        }
    }
}

impl Monitor {
    fn note_served(&mut self, is_served: bool, collector: &Collector) {
        if is_served {
            self.missing_since = None;
        } else {
            self.missing_since.get_or_insert_with(Instant::now);
        }
        let is_late = !self.registration.has_synced() && self.started.elapsed() >= SYNC_TIME;
        if is_served && is_late && !self.is_reported {
            self.is_reported = true;
            collector.metrics.sync_failed();
            let failure = self.informer.state().last_failure;
            tracing::warn!(
                resource = %self.informer.resource(),
                failure = failure.map(|it| it.to_string()),
                "timed out waiting for a monitor to sync"
            );
        }
    }

    /// Asks the watch to end and waits until it has.
    async fn end(&mut self) {
        self.stop.trigger();
        if let Err(error) = (&mut self.run).await {
            tracing::error!(%error, "a monitor did not end well");
        }
    }

    /// Whether the kind has not been served for long enough.
    fn is_over(&self) -> bool {
        let missing = self.missing_since;
        missing.is_some_and(|since| since.elapsed() >= LINGER_TIME)
    }
}

/// The object without what nobody reads here. While it is decoded they must stay: in a bookmark
/// they say that the initial events are over.
fn without_annotations(object: &Doc) -> Doc {
    let edited = object.without("/metadata/annotations");
    edited.unwrap_or_else(|_| object.clone())
}

/// What nobody reads here.
fn prune() -> Prune {
    Prune::managed_fields()
        .and("metadata.creationTimestamp")
        .and("metadata.generation")
        .and("metadata.labels")
}

/// Tells the graph what a watch shows.
struct Feeder {
    collector: Weak<Collector>,
    kind: Str,
    api_version: Str,
    is_definition: bool,
}

impl Feeder {
    fn feed(&self, change: impl FnOnce(&mut super::graph::Graph)) {
        let Some(collector) = self.collector.upgrade() else {
            return;
        };
        collector.change(change);
        if self.is_definition {
            collector.definitions_changed.notify_one();
        }
    }

    fn seen(&self, object: &Doc) -> Seen {
        Seen::of(&self.kind, &self.api_version, object)
    }

    fn identity(&self, object: &Obj) -> Identity {
        Identity::of(&self.kind, &self.api_version, object.meta())
    }
}

impl Handler<Doc> for Feeder {
    async fn on_add(&self, object: Obj, _is_initial: bool) {
        let seen = self.seen(object.doc());
        self.feed(|graph| graph.seen(&seen, None));
    }

    async fn on_update(&self, old: Obj, new: Obj) {
        let (seen, before) = (self.seen(new.doc()), self.identity(&old));
        let is_same = before.uid == seen.identity.uid;
        self.feed(|graph| {
            if is_same {
                graph.seen(&seen, Some(Deletion::of(old.meta())));
            } else {
                // The deletion between the two was missed.
                graph.gone(&before);
                graph.seen(&seen, None);
            }
        });
    }

    async fn on_delete(&self, deleted: Deleted) {
        let identity = self.identity(deleted.object());
        self.feed(|graph| graph.gone(&identity));
    }
}

/// A watch does not outlive the garbage collector.
impl Drop for Monitor {
    fn drop(&mut self) {
        self.stop.trigger();
        self.run.abort();
    }
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor")
            .field("watched", &self.watched)
            .finish_non_exhaustive()
    }
}
