//! Keeps as many pods running as a replica set asks for.
//!
//! Handlers put keys into the queue; a worker compares what the caches show with what the spec
//! says, and creates or deletes pods. A worker that wrote waits until its cache has seen that
//! before it gives the key back, so that no pod is counted as missing that it has just made.

use windlass_cache::{InformerFactory, Obj, SharedInformer, SyncError, functions, on_any};
use windlass_client::{DeleteOptions, DynamicClient, Error, RestClient, WriteOptions};
use windlass_core::{Doc, Env, Gvk, Gvr, Key, Labels, OwnerRef, Revision, doc, names};
use windlass_queue::WorkQueue;

const PODS: Gvr = Gvr::constant("", "v1", "pods");
const REPLICA_SETS: Gvr = Gvr::constant("apps", "v1", "replicasets");
const REPLICA_SET: Gvk = Gvk::constant("apps", "v1", "ReplicaSet");
const MANAGER: &str = "replicaset-controller";
/// Pods that one reconcile creates or deletes at most, as upstream does.
const BURST: usize = 500;

/// A replica set could not be reconciled.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReplicaSetError {
    /// The server refused, or could not be reached.
    Client(Error),
    /// The caches do not follow.
    Cache(SyncError),
}

/// The controller of replica sets.
#[derive(Debug)]
pub struct ReplicaSetController {
    client: DynamicClient,
    factory: InformerFactory,
    sets: SharedInformer,
    pods: SharedInformer,
    queue: WorkQueue<Key>,
    env: Env,
}

impl ReplicaSetController {
    /// A controller that works through a client.
    #[must_use]
    pub fn new(client: RestClient, env: Env) -> Self {
        let factory = InformerFactory::on(client.clone())
            .sources()
            .env(env.clone())
            .build();
        let (sets, pods) = (factory.dynamic(REPLICA_SETS), factory.dynamic(PODS));
        let client = DynamicClient::new(client);
        Self {
            client,
            factory,
            sets,
            pods,
            queue: WorkQueue::new(),
            env,
        }
    }

    /// Works until it is dropped.
    ///
    /// # Errors
    /// When the caches cannot be filled.
    pub async fn run(&self) -> Result<(), SyncError> {
        self.listen();
        self.factory.start();
        self.factory.wait_for_sync().await?;
        while let Some(item) = self.queue.get().await {
            match self.reconcile(item.key()).await {
                Ok(()) => self.queue.forget(item.key()),
                Err(error) => {
                    tracing::warn!(key = %item.key(), ?error, "replica set was not reconciled");
                    self.queue.add_rate_limited(item.key().clone());
                }
            }
        }
        Ok(())
    }

    /// Puts the key of every set that may need work into the queue.
    fn listen(&self) {
        let index = functions::controller_uid;
        if self
            .pods
            .add_index(functions::CONTROLLER_INDEX, index)
            .is_err()
        {
            tracing::debug!("pods are indexed by their controller already");
        }
        let queue = self.queue.clone();
        let add_set = move |set: Obj| queue.add(set.key());
        let queue = self.queue.clone();
        let add_owner = move |pod: Obj| {
            if let Some(owner) = pod
                .meta()
                .controller()
                .filter(|owner| owner.kind == "ReplicaSet")
            {
                queue.add(Key::new(pod.namespace(), &owner.name));
            }
        };
        let added = [
            self.sets.add_handler(on_any(add_set)),
            self.pods.add_handler(on_any(add_owner)),
        ];
        for failure in added.into_iter().filter_map(Result::err) {
            tracing::error!(%failure, "a handler could not be added");
        }
    }

    async fn reconcile(&self, key: &Key) -> Result<(), ReplicaSetError> {
        let Some(set) = self.sets.lister().get(key) else {
            return Ok(());
        };
        if set.meta().is_deleting() {
            return Ok(());
        }
        let pods = self.pods_of(&set);
        let wanted = set.doc().at("/spec/replicas").as_u64().unwrap_or(0);
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        let revision = if pods.len() < wanted {
            self.create(&set, (wanted - pods.len()).min(BURST)).await?
        } else {
            self.delete(&pods[wanted..]).await?
        };
        if let Some(revision) = revision {
            self.pods
                .wait_for_revision(&revision)
                .await
                .map_err(ReplicaSetError::Cache)?;
        }
        self.report(&set).await
    }

    /// The pods of a set that are not ending, oldest first.
    fn pods_of(&self, set: &Obj) -> Vec<Obj> {
        let uid = set.uid();
        let found = self
            .pods
            .lister()
            .by_index(functions::CONTROLLER_INDEX, uid.as_str());
        let mut pods: Vec<Obj> = found.unwrap_or_default();
        pods.retain(|pod| !pod.meta().is_deleting());
        pods.sort_by_cached_key(|pod| (pod.meta().creation_timestamp(), pod.name().to_owned()));
        pods
    }

    async fn create(&self, set: &Obj, count: usize) -> Result<Option<Revision>, ReplicaSetError> {
        let api = self.client.resource(PODS).namespaced(set.namespace());
        let mut newest = None;
        for _ in 0..count {
            let pod = pod_of(set.doc(), &self.env);
            let created = api.create(&pod, &WriteOptions::manager(MANAGER)).await;
            newest = created.map_err(ReplicaSetError::Client)?.meta().revision();
        }
        Ok(newest)
    }

    async fn delete(&self, pods: &[Obj]) -> Result<Option<Revision>, ReplicaSetError> {
        for pod in pods.iter().take(BURST) {
            let api = self.client.resource(PODS).namespaced(pod.namespace());
            let options = DeleteOptions {
                uid: Some(pod.uid().to_string()),
                ..DeleteOptions::default()
            };
            match api.delete(pod.name(), &options).await {
                Err(error) if !error.is_not_found() => return Err(ReplicaSetError::Client(error)),
                _ => {}
            }
        }
        Ok(None)
    }

    /// Writes how many pods there are.
    async fn report(&self, set: &Obj) -> Result<(), ReplicaSetError> {
        let pods = self.pods_of(set);
        let is_ready = |pod: &&Obj| {
            windlass_core::condition(pod.doc(), "Ready").is_some_and(|ready| ready.is_true())
        };
        let ready = pods.iter().filter(is_ready).count();
        let status = doc!({
            "replicas": (pods.len()), "fullyLabeledReplicas": (pods.len()),
            "readyReplicas": ready, "availableReplicas": ready,
            "observedGeneration": (set.meta().generation())
        });
        if *set.doc().at("/status") == status {
            return Ok(());
        }
        let api = self
            .client
            .resource(REPLICA_SETS)
            .namespaced(set.namespace());
        let changed = set
            .doc()
            .with("/status", status)
            .unwrap_or_else(|_| set.doc().clone());
        match api
            .update_status(&changed, &WriteOptions::manager(MANAGER))
            .await
        {
            // Somebody else was faster; their event brings the key back.
            Err(error) if !error.is_conflict() && !error.is_not_found() => {
                Err(ReplicaSetError::Client(error))
            }
            _ => Ok(()),
        }
    }
}

/// A new pod from the template of a set.
fn pod_of(set: &Doc, env: &Env) -> Doc {
    let template = set.at("/spec/template");
    let base = format!("{}-", set.meta().name());
    let labels = |labels: Labels<'_>| -> Doc {
        let pairs = labels.iter().map(|(key, value)| (key, Doc::from(value)));
        pairs.collect::<windlass_core::Object>().into()
    };
    let owner = Doc::from(&OwnerRef::controller_of(set, &REPLICA_SET));
    doc!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": (names::generate_name(&base, env)),
            "generateName": base,
            "namespace": (set.meta().namespace()),
            "labels": (labels(template.meta().labels())),
            "annotations": (labels(template.meta().annotations())),
            "ownerReferences": [owner]
        },
        "spec": (template.at("/spec"))
    })
}
