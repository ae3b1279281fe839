//! From a description of a controller to one that has its caches and its queue.

use std::sync::Arc;

use windlass_cache::{AddError, InformerFactory, InformerSpec, Registration, SharedInformer};
use windlass_client::RestClient;
use windlass_core::Env;
use windlass_queue::WorkQueue;

use super::{
    Controller, ControllerOptions,
    limiter::Noted,
    run::{BoundController, Parts},
};
use crate::{
    EventRecorder, ResourceKind,
    context::Shared,
    freshness::Freshness,
    journal::Journal,
    metrics::Metrics,
    shutdown::Shutdown,
    source::{Enqueue, KeyQueue, Source},
    writes::OwnWrites,
};

/// The parts that a manager gives to a controller.
pub(crate) struct Supplies {
    pub(crate) client: RestClient,
    pub(crate) factory: InformerFactory,
    pub(crate) recorder: EventRecorder,
    pub(crate) env: Env,
    pub(crate) metrics: Metrics,
    pub(crate) shutdown: Shutdown,
}

impl Controller {
    /// Asks for the informers and registers the handlers. From then on the queue fills; workers
    /// come with the run.
    pub(crate) fn bind(self, supplies: Supplies) -> Result<BoundController, AddError> {
        let (limiter, verdict) = Noted::new(self.limiter);
        let queue = WorkQueue::builder()
            .name(self.queue_name.unwrap_or_else(|| self.name.clone()))
            .limiter(limiter)
            .build();
        let journal = Arc::new(Journal::new(self.options.journal_keys));
        let (mut kinds, mut registrations) = (Vec::new(), Vec::new());
        let target = KeyQueue {
            queue: queue.clone(),
            journal: journal.clone(),
            freshness: Arc::new(Freshness::new()),
        };
        for source in self.sources {
            let informer = informer(&supplies.factory, &source);
            kinds.push((source.kind.clone(), informer.clone()));
            if let Some(mapper) = source.mapper {
                let handler = Enqueue {
                    resource: Arc::new(source.kind.gvr().group_resource()),
                    mapper,
                    filters: source.filters,
                    target: target.clone(),
                };
                registrations.push(informer.add_handler(handler)?);
            }
        }
        let metrics = supplies
            .metrics
            .controller(&self.name, self.options.workers);
        let shared = Arc::new(shared(self.name, kinds, target, supplies));
        let (reconcile, options) = (self.reconcile, self.options);
        let own_writes = Arc::new(own_writes(&shared, &self.primary, &options));
        Ok(BoundController::new(Parts {
            shared,
            queue,
            journal,
            own_writes,
            registrations,
            metrics,
            reconcile,
            options,
            verdict,
        }))
    }
}

/// The writes of a controller. One that does not check freshness waits for none.
fn own_writes(shared: &Shared, primary: &ResourceKind, options: &ControllerOptions) -> OwnWrites {
    let mut kinds = shared.kinds.iter();
    let (_, informer) = kinds
        .find(|(kind, _)| kind == primary)
        .expect("invariant: the primary kind is always a source");
    let kinds = shared.kinds.iter().map(|(kind, _)| kind);
    let resources = kinds
        .filter(|_| options.is_freshness_checked)
        .map(|kind| kind.gvr().group_resource());
    let freshness = shared.target.freshness.clone();
    OwnWrites::new(freshness, informer.clone(), resources.collect())
}

fn informer(factory: &InformerFactory, source: &Source) -> SharedInformer {
    match &source.spec {
        Some(spec) => factory.informer_of(spec.clone()),
        None if source.kind.is_namespaced() => factory.dynamic(source.kind.gvr().clone()),
        None => factory.informer_of(InformerSpec::new(source.kind.gvr().clone())),
    }
}

fn shared(
    name: String,
    kinds: Vec<(ResourceKind, SharedInformer)>,
    target: KeyQueue,
    supplies: Supplies,
) -> Shared {
    let Supplies {
        client,
        factory,
        recorder,
        env,
        shutdown,
        ..
    } = supplies;
    Shared {
        name,
        client,
        factory,
        recorder,
        env,
        kinds,
        target,
        shutdown,
    }
}

/// The registrations of a controller's handlers.
pub(super) type Registrations = Vec<Registration>;
