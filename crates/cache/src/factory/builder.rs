//! The builder of an informer factory.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use tokio::sync::{Semaphore, watch};
use windlass_client::{ListOptions, RestClient, WatchOptions};
use windlass_core::{Doc, Env, Gvr, Prune};

use super::{InformerFactory, InformerSpec, Options, Shared, Sources};
use crate::{
    fifo::TransformError,
    metrics::Metrics,
    reflector::STARTS_LIMIT,
    resource::{ResourceSource, Tweak},
    source::ListWatch,
};

/// Sets up an [`InformerFactory`].
#[must_use]
pub struct FactoryBuilder {
    options: Options,
}

/// Sets up how the informers of a factory ask the server.
#[must_use]
pub struct ClientFactoryBuilder {
    client: RestClient,
    prune: Prune,
    prune_by_resource: BTreeMap<Gvr, Prune>,
    tweak_list: Option<Tweak<ListOptions>>,
    tweak_watch: Option<Tweak<WatchOptions>>,
}

impl FactoryBuilder {
    pub(super) fn new(sources: Sources) -> Self {
        Self {
            options: Options {
                sources,
                env: Env::real(),
                namespace: None,
                resync: Duration::ZERO,
                resync_by_resource: BTreeMap::new(),
                transform: None,
                metrics: None,
                memory_budget: None,
                starts: Arc::new(Semaphore::new(STARTS_LIMIT)),
            },
        }
    }

    /// Sets the source of time and randomness.
    pub fn env(mut self, env: Env) -> Self {
        self.options.env = env;
        self
    }

    /// Informers hold the objects of this namespace, unless they are asked for otherwise.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.options.namespace = Some(namespace.into());
        self
    }

    /// Sets the resync period: handlers get an update of every object that often. Zero, the
    /// default, means never.
    pub fn resync(mut self, period: Duration) -> Self {
        self.options.resync = period;
        self
    }

    /// Sets the resync period for the handlers of one resource.
    pub fn resync_for(mut self, resource: Gvr, period: Duration) -> Self {
        self.options.resync_by_resource.insert(resource, period);
        self
    }

    /// Changes every object before it is cached.
    pub fn transform(
        mut self,
        transform: impl Fn(Doc) -> Result<Doc, TransformError> + Send + Sync + 'static,
    ) -> Self {
        self.options.transform = Some(Arc::new(transform));
        self
    }

    /// Counts under this name.
    pub fn metrics(mut self, metrics: Metrics, name: impl Into<String>) -> Self {
        self.options.metrics = Some((metrics, name.into()));
        self
    }

    /// Warns when the cache of one resource takes more than this many bytes.
    pub fn memory_budget(mut self, bytes: usize) -> Self {
        self.options.memory_budget = Some(bytes);
        self
    }

    /// Sets the number of informers that read a complete state at the same time; the others wait.
    /// At least one; the default is [`STARTS_LIMIT`].
    pub fn starts_limit(mut self, limit: usize) -> Self {
        self.options.starts = Arc::new(Semaphore::new(limit.max(1)));
        self
    }

    /// The factory. It has no informers yet.
    #[must_use]
    pub fn build(self) -> InformerFactory {
        let (informers, stop) = Default::default();
        let stop: watch::Sender<bool> = stop;
        InformerFactory {
            shared: Arc::new(Shared {
                options: self.options,
                informers,
                stop,
            }),
        }
    }
}

impl InformerFactory {
    /// Informers on an API server.
    #[must_use]
    pub fn new(client: RestClient) -> Self {
        Self::on(client).sources().build()
    }

    /// Informers on an API server, with options.
    pub fn on(client: RestClient) -> ClientFactoryBuilder {
        let prune = Prune::managed_fields();
        ClientFactoryBuilder {
            client,
            prune,
            prune_by_resource: BTreeMap::new(),
            tweak_list: None,
            tweak_watch: None,
        }
    }
}

impl ClientFactoryBuilder {
    /// Skips these paths while decoding; the default is `metadata.managedFields`.
    pub fn prune(mut self, prune: Prune) -> Self {
        self.prune = prune;
        self
    }

    /// Skips these paths, and not those of [`Self::prune`], in the objects of one resource.
    pub fn prune_for(mut self, resource: Gvr, prune: Prune) -> Self {
        self.prune_by_resource.insert(resource, prune);
        self
    }

    /// Changes every list request last of all.
    pub fn tweak_list(mut self, tweak: impl Fn(&mut ListOptions) + Send + Sync + 'static) -> Self {
        self.tweak_list = Some(Arc::new(tweak));
        self
    }

    /// Changes every watch request last of all.
    pub fn tweak_watch(
        mut self,
        tweak: impl Fn(&mut WatchOptions) + Send + Sync + 'static,
    ) -> Self {
        self.tweak_watch = Some(Arc::new(tweak));
        self
    }

    /// Goes on to what does not concern requests.
    pub fn sources(self) -> FactoryBuilder {
        InformerFactory::builder(move |spec| self.source(spec))
    }

    fn source(&self, spec: &InformerSpec) -> Arc<dyn ListWatch> {
        let InformerSpec {
            resource,
            namespace,
            label_selector,
            field_selector,
            ..
        } = spec;
        let prune = self.prune_by_resource.get(resource).unwrap_or(&self.prune);
        let mut source =
            ResourceSource::new(self.client.clone(), resource.clone(), namespace.clone())
                .select(label_selector, field_selector)
                .prune(prune.clone());
        if spec.is_metadata_only {
            source = source.metadata_only();
        }
        if let Some(tweak) = self.tweak_list.clone() {
            source = source.tweak_list(move |options| tweak(options));
        }
        if let Some(tweak) = self.tweak_watch.clone() {
            source = source.tweak_watch(move |options| tweak(options));
        }
        Arc::new(source)
    }
}

impl fmt::Debug for FactoryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FactoryBuilder")
            .field("namespace", &self.options.namespace)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ClientFactoryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientFactoryBuilder")
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}
