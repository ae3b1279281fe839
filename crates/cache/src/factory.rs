//! One informer per resource, shared in a process.

mod builder;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::{Semaphore, watch},
    task::{JoinHandle, JoinSet},
};
use windlass_client::Typed;
use windlass_core::{Env, Gvr};

use crate::{
    fifo::Transform,
    informer::{InformerBuilder, SharedInformer, SyncError},
    metrics::Metrics,
    source::ListWatch,
};
pub use builder::{ClientFactoryBuilder, FactoryBuilder};

/// The objects of one informer: a resource, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InformerSpec {
    /// The resource.
    pub resource: Gvr,
    /// The namespace; `None` for all.
    pub namespace: Option<String>,
    /// Only objects with these labels; empty for all.
    pub label_selector: String,
    /// Only objects with these fields; empty for all.
    pub field_selector: String,
    /// Only the metadata of the objects.
    pub is_metadata_only: bool,
}

impl InformerSpec {
    /// The name of an informer in the metrics: two informers of one resource differ in the part of
    /// it that they watch.
    fn series_name(&self, name: &str) -> String {
        let selectors = [&self.label_selector, &self.field_selector];
        let selectors = selectors.into_iter().filter(|text| !text.is_empty());
        let selectors: Vec<&str> = selectors.map(String::as_str).collect();
        match selectors.is_empty() {
            true => name.to_owned(),
            false => format!("{name}[{}]", selectors.join(",")),
        }
    }

    /// All objects of a resource.
    #[must_use]
    pub fn new(resource: Gvr) -> Self {
        Self {
            resource,
            namespace: None,
            label_selector: String::new(),
            field_selector: String::new(),
            is_metadata_only: false,
        }
    }

    /// Only those of one namespace.
    #[must_use]
    pub fn namespaced(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Only those with these labels.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.label_selector = selector.into();
        self
    }

    /// Only those with these fields.
    #[must_use]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.field_selector = selector.into();
        self
    }

    /// Only the metadata.
    #[must_use]
    pub fn metadata_only(mut self) -> Self {
        self.is_metadata_only = true;
        self
    }
}

/// Makes informers, and keeps one for each [`InformerSpec`]. Clones share them.
///
/// The Rust type plays no part in that: a typed informer, one that reads a view and a dynamic one
/// of the same resource are one cache with one watch.
#[derive(Clone)]
pub struct InformerFactory {
    shared: Arc<Shared>,
}

struct Shared {
    options: Options,
    informers: Mutex<Informers>,
    /// Says to all informers that they shall stop. Dropping it says so too.
    stop: watch::Sender<bool>,
}

/// The source of the objects of an informer.
type Sources = Box<dyn Fn(&InformerSpec) -> Arc<dyn ListWatch> + Send + Sync>;

struct Options {
    sources: Sources,
    env: Env,
    namespace: Option<String>,
    resync: Duration,
    resync_by_resource: BTreeMap<Gvr, Duration>,
    transform: Option<Transform>,
    metrics: Option<(Metrics, String)>,
    memory_budget: Option<usize>,
    /// Permits to read a complete state.
    starts: Arc<Semaphore>,
}

#[derive(Default)]
struct Informers {
    by_spec: BTreeMap<InformerSpec, Entry>,
    is_shut_down: bool,
}

struct Entry {
    informer: SharedInformer,
    run: Option<JoinHandle<()>>,
}

impl InformerFactory {
    /// Informers whose objects come from wherever `sources` says.
    pub fn builder(
        sources: impl Fn(&InformerSpec) -> Arc<dyn ListWatch> + Send + Sync + 'static,
    ) -> FactoryBuilder {
        FactoryBuilder::new(Box::new(sources))
    }

    /// The informer of a kind, in the factory's namespace if the kind has namespaces.
    #[must_use]
    pub fn informer<K: Typed>(&self) -> SharedInformer<K> {
        self.informer_of(self.spec_of::<K>())
    }

    /// The informer of a kind, read as another type: a small struct that names only the fields
    /// that matter is read in about a microsecond.
    #[must_use]
    pub fn view<K: Typed, V: 'static>(&self) -> SharedInformer<V> {
        self.informer_of(self.spec_of::<K>())
    }

    /// The informer of a resource, in the factory's namespace, read as documents. A factory that
    /// has a namespace cannot know whether the resource does: for one that has none, ask
    /// [`informer_of`](Self::informer_of) for its [`InformerSpec`].
    #[must_use]
    pub fn dynamic(&self, resource: Gvr) -> SharedInformer {
        self.informer_of(self.spec(resource))
    }

    /// The informer of a resource, in the factory's namespace, of metadata only. It takes a
    /// fraction of the memory, and its objects have no more than what [`crate::Obj::meta`] shows.
    #[must_use]
    pub fn metadata(&self, resource: Gvr) -> SharedInformer {
        self.informer_of(self.spec(resource).metadata_only())
    }

    /// The informer of a part of a resource. The namespace of the spec overrides the factory's.
    #[must_use]
    pub fn informer_of<K: 'static>(&self, spec: InformerSpec) -> SharedInformer<K> {
        let mut informers = self.shared.informers.lock();
        let entry = informers.by_spec.entry(spec);
        let entry = entry.or_insert_with_key(|spec| Entry {
            informer: self.shared.options.build(spec),
            run: None,
        });
        entry.informer.cast()
    }

    /// The spec of a kind, in the factory's namespace if the kind has namespaces.
    fn spec_of<K: Typed>(&self) -> InformerSpec {
        match K::is_namespaced() {
            true => self.spec(K::gvr()),
            false => InformerSpec::new(K::gvr()),
        }
    }

    /// The spec of a resource in the factory's namespace.
    pub(crate) fn spec(&self, resource: Gvr) -> InformerSpec {
        InformerSpec {
            namespace: self.shared.options.namespace.clone(),
            ..InformerSpec::new(resource)
        }
    }

    /// Starts every informer that has been asked for and not started; to be called again after
    /// asking for more. Does nothing after a shutdown.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(&self) {
        let mut informers = self.shared.informers.lock();
        if informers.is_shut_down {
            return;
        }
        for entry in informers
            .by_spec
            .values_mut()
            .filter(|entry| entry.run.is_none())
        {
            let (informer, mut stop) = (entry.informer.clone(), self.shared.stop.subscribe());
            entry.run = Some(tokio::spawn(async move {
                let stopped = async {
                    // An error means that the factory is gone, which says the same.
                    let _ = stop.wait_for(|stop| *stop).await;
                };
                informer.run(stopped).await;
            }));
        }
    }

    /// Waits until every started informer has a complete cache.
    ///
    /// # Errors
    /// As soon as one of them cannot sync, with its resource and the reason.
    pub async fn wait_for_sync(&self) -> Result<(), SyncError> {
        let (mut waits, mut unfinished) = (JoinSet::new(), Unfinished::default());
        for (spec, entry) in &self.shared.informers.lock().by_spec {
            let (informer, spec) = (entry.informer.clone(), spec.clone());
            if entry.run.is_some() {
                unfinished.0.insert(spec.clone());
                waits.spawn(async move { informer.wait_for_sync().await.map(|()| spec) });
            }
        }
        while let Some(outcome) = waits.join_next().await {
            let spec = outcome.expect("invariant: waiting neither panics nor is aborted")?;
            tracing::info!(resource = %spec.resource.group_resource(), "cache is complete");
            unfinished.0.remove(&spec);
        }
        Ok(())
    }

    /// Every informer with its spec, for reports.
    #[must_use]
    pub fn informers(&self) -> Vec<(InformerSpec, SharedInformer)> {
        let informers = self.shared.informers.lock();
        let all = informers.by_spec.iter();
        all.map(|(spec, entry)| (spec.clone(), entry.informer.clone()))
            .collect()
    }

    /// Ends all informers at once, between two of their steps. None starts afterwards.
    pub fn abort(&self) {
        let mut informers = self.shared.informers.lock();
        informers.is_shut_down = true;
        let entries = informers.by_spec.values_mut();
        let runs = entries.filter_map(|entry| entry.run.take());
        runs.for_each(|run| run.abort());
        self.shared.stop.send_replace(true);
    }

    /// Stops all informers and waits until they have ended. None starts afterwards.
    pub async fn shutdown(&self) {
        let runs: Vec<_> = {
            let mut informers = self.shared.informers.lock();
            informers.is_shut_down = true;
            informers
                .by_spec
                .values_mut()
                .filter_map(|entry| entry.run.take())
                .collect()
        };
        self.shared.stop.send_replace(true);
        for run in runs {
            if let Err(error) = run.await {
                tracing::error!(%error, "an informer did not end well");
            }
        }
    }
}

/// The informers that a wait has not seen complete. A wait that fails, or that is given up, says
/// which they are.
#[derive(Default)]
struct Unfinished(BTreeSet<InformerSpec>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            let resources = self.0.iter().map(|spec| spec.resource.group_resource());
            let resources: Vec<String> = resources.map(|it| it.to_string()).collect();
            let resources = resources.join(", ");
            tracing::warn!(%resources, "gave up waiting for caches that are not complete");
        }
    }
}

impl Options {
    fn build(&self, spec: &InformerSpec) -> SharedInformer {
        let resync = self
            .resync_by_resource
            .get(&spec.resource)
            .unwrap_or(&self.resync);
        let mut builder = InformerBuilder::new((self.sources)(spec), spec.resource.clone())
            .env(self.env.clone())
            .resync(*resync)
            .shared_transform(self.transform.clone())
            .maybe_memory_budget(self.memory_budget)
            .reflector(|options| options.starts = Some(Arc::clone(&self.starts)));
        if let Some((metrics, name)) = &self.metrics {
            builder = builder.metrics(metrics, &spec.series_name(name));
        }
        builder
            .build()
            .expect("invariant: no index is set here that could conflict")
    }
}

impl fmt::Debug for InformerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let informers = self.shared.informers.lock();
        f.debug_set().entries(informers.by_spec.keys()).finish()
    }
}
