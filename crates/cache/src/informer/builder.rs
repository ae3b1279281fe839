//! The builder of an informer.

use std::{fmt, marker::PhantomData, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::sync::watch;
use windlass_core::{Doc, Env, Gvk, Gvr, Str};

use super::{BUFFER_LIMIT, Shared, SharedInformer};
use crate::{
    fanout::Fanout,
    fifo::{DeltaFifo, Transform, TransformError},
    indexer::{IndexConflict, Indexer, functions::IndexFn},
    metrics::{InformerMetrics, Metrics},
    object::Obj,
    reflector::{Failure, Reflector, ReflectorOptions},
    source::ListWatch,
};

/// Sets up a [`SharedInformer`]. Everything that cannot change while it runs is chosen here.
#[must_use]
pub struct InformerBuilder<K = Doc> {
    source: Arc<dyn ListWatch>,
    resource: Gvr,
    env: Env,
    resync: Duration,
    transform: Option<Transform>,
    indices: Vec<(String, IndexFn)>,
    metrics: InformerMetrics,
    buffer_limit: usize,
    memory_budget: Option<usize>,
    reflector: ReflectorOptions,
    kind: PhantomData<fn() -> K>,
}

impl<K: 'static> InformerBuilder<K> {
    /// An informer for what a source lists and watches.
    pub fn new(source: Arc<dyn ListWatch>, resource: Gvr) -> Self {
        let name = resource.group_resource().to_string();
        Self {
            source,
            resource,
            env: Env::real(),
            resync: Duration::ZERO,
            transform: None,
            indices: Vec::new(),
            metrics: InformerMetrics::default(),
            buffer_limit: BUFFER_LIMIT,
            memory_budget: None,
            reflector: ReflectorOptions {
                name,
                ..ReflectorOptions::default()
            },
            kind: PhantomData,
        }
    }

    /// Sets the source of time and randomness.
    pub fn env(mut self, env: Env) -> Self {
        self.env = env;
        self
    }

    /// The kind that objects must have; others are skipped and counted.
    pub fn expect_kind(mut self, kind: Gvk) -> Self {
        self.reflector.kind = Some(kind);
        self
    }

    /// Sets the resync period of handlers that ask for none; zero, the default, means never. The
    /// informer checks at the shortest period that is asked for before it runs, unless this is
    /// zero.
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = period;
        self
    }

    /// Changes every object before it is cached, as to drop what nobody reads.
    pub fn transform(
        mut self,
        transform: impl Fn(Doc) -> Result<Doc, TransformError> + Send + Sync + 'static,
    ) -> Self {
        self.transform = Some(Arc::new(transform));
        self
    }

    pub(crate) fn shared_transform(mut self, transform: Option<Transform>) -> Self {
        self.transform = transform;
        self
    }

    /// Adds an index.
    pub fn index(
        mut self,
        name: &str,
        values: impl Fn(&Obj) -> Vec<Str> + Send + Sync + 'static,
    ) -> Self {
        self.indices.push((name.to_owned(), Arc::new(values)));
        self
    }

    /// Counts under this name. Names are unique per resource.
    pub fn metrics(mut self, metrics: &Metrics, name: &str) -> Self {
        self.metrics = metrics.informer(name, &self.resource);
        self
    }

    /// Sets the number of notifications that wait for a handler before they are merged by object.
    pub fn buffer_limit(mut self, limit: usize) -> Self {
        self.buffer_limit = limit;
        self
    }

    /// Warns when the objects take more than this many bytes.
    pub fn memory_budget(mut self, bytes: usize) -> Self {
        self.memory_budget = Some(bytes);
        self
    }

    pub(crate) fn maybe_memory_budget(mut self, bytes: Option<usize>) -> Self {
        self.memory_budget = bytes;
        self
    }

    /// Calls a function with every failure of the reflector.
    pub fn on_failure(mut self, function: impl Fn(&Failure) + Send + Sync + 'static) -> Self {
        self.reflector.on_failure = Some(Arc::new(function));
        self
    }

    /// Changes the options of the reflector.
    pub fn reflector(mut self, change: impl FnOnce(&mut ReflectorOptions)) -> Self {
        change(&mut self.reflector);
        self
    }

    /// The informer. It does nothing before it is run.
    ///
    /// # Errors
    /// When two indices have one name.
    pub fn build(self) -> Result<SharedInformer<K>, IndexConflict> {
        let store = Arc::new(Indexer::new());
        for (name, values) in self.indices {
            store.add_indices([(&*name, values)])?;
        }
        let fifo = Arc::new(DeltaFifo::new(store.clone(), self.transform));
        let name = self.reflector.name.clone();
        let mut reflector = Reflector::new(self.source, fifo.clone(), self.env, self.reflector)
            .with_metrics(self.metrics.clone());
        let state = watch::Sender::default();
        reflector.publish_to(watch::Sender::clone(&state));
        let shared = Shared {
            name,
            resource: self.resource,
            fanout: Fanout::new(store.clone(), self.resync),
            store,
            fifo,
            reflector: Mutex::new(Some(reflector)),
            state,
            has_synced: watch::Sender::new(false),
            revision: watch::Sender::new(None),
            is_stopped: watch::Sender::new(false),
            metrics: self.metrics,
            buffer_limit: self.buffer_limit,
            memory_budget: self.memory_budget,
        };
        Ok(SharedInformer {
            shared: Arc::new(shared),
            kind: PhantomData,
        })
    }
}

impl<K> fmt::Debug for InformerBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformerBuilder")
            .field("resource", &self.resource)
            .finish_non_exhaustive()
    }
}
