//! Removes pods that nobody else will: those that ended long ago, those of nodes that are gone or out
//! of service, and those that are deleted before they had a node.

mod metrics;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use parking_lot::Mutex;
use tokio::time::Instant;
use windlass_cache::{Obj, SharedInformer};
use windlass_client::{DeleteOptions, DynamicApi, DynamicClient, Error, Patch, WriteOptions};
use windlass_core::{Doc, Env, Gvr, Key, condition, doc};
use windlass_runtime::{Manager, Result, Shutdown};

use crate::is_pod_terminal;
use metrics::Metrics;

/// The name of the controller, as kube-controller-manager has it.
pub const NAME: &str = "pod-garbage-collector-controller";

/// The fields of a pod's spec that this controller reads.
pub const POD_SPEC_FIELDS: &[&str] = &["nodeName"];

/// How many pods that have ended are kept, as in kube-controller-manager.
pub const TERMINATED_LIMIT: usize = 12_500;
/// How often pods are looked at.
pub const PERIOD: Duration = Duration::from_secs(20);
/// How long a node must be missing before its pods are removed.
pub const QUARANTINE: Duration = Duration::from_secs(40);

/// How many pods are removed at the same time.
const BATCH: usize = 100;

const PODS: Gvr = Gvr::constant("", "v1", "pods");
const NODES: Gvr = Gvr::constant("", "v1", "nodes");
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// The numbers of the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many pods that have ended are kept; zero for all.
    pub terminated_limit: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            terminated_limit: TERMINATED_LIMIT,
        }
    }
}

/// Adds the controller to a manager.
pub fn add_to(manager: &Manager, options: &Options) {
    let client = DynamicClient::new(manager.client().clone());
    let metrics = Metrics::default();
    let registered = metrics.clone();
    manager.add_metrics(move |registry| registered.register(registry));
    let collector = Arc::new(Collector {
        pods: manager.factory().dynamic(PODS),
        nodes: manager.factory().dynamic(NODES),
        pods_api: client.resource(PODS),
        nodes_api: client.resource(NODES),
        env: manager.env().clone(),
        options: options.clone(),
        missing: Mutex::default(),
        metrics,
    });
    manager.add_task(NAME, move |shutdown| async move {
        collector.run(shutdown).await;
        Result::Ok(())
    });
}

struct Collector {
    pods: SharedInformer,
    nodes: SharedInformer,
    pods_api: DynamicApi,
    nodes_api: DynamicApi,
    env: Env,
    options: Options,
    /// Nodes that pods name and that do not exist, with the time at which they are looked for.
    /// Written by the only task there is; bounded by the pods.
    missing: Mutex<BTreeMap<String, Instant>>,
    metrics: Metrics,
}

/// Why a pod is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Reason {
    Terminated,
    OutOfService,
    Orphaned,
    Unscheduled,
}

impl Reason {
    fn as_str(self) -> &'static str {
        match self {
            Self::Terminated => "terminated",
            Self::OutOfService => "out-of-service",
            Self::Orphaned => "orphaned",
            Self::Unscheduled => "unscheduled",
        }
    }
}

impl Collector {
    async fn run(&self, shutdown: Shutdown) {
        let synced = async {
            let (pods, nodes) = (self.pods.wait_for_sync(), self.nodes.wait_for_sync());
            let (pods, nodes) = tokio::join!(pods, nodes);
            pods.and(nodes)
        };
        tokio::select! {
            () = shutdown.requested() => return,
            synced = synced => if let Err(error) = synced {
                tracing::error!(%error, "pods are not collected");
                return;
            },
        }
        loop {
            self.collect().await;
            tokio::select! {
                () = shutdown.requested() => return,
                () = tokio::time::sleep(PERIOD) => {}
            }
        }
    }

    async fn collect(&self) {
        let pods: Vec<Obj> = self.pods.lister().snapshot().iter().collect();
        if self.options.terminated_limit > 0 {
            let ended = self.surplus_of_ended(&pods);
            self.remove_all(&ended, Reason::Terminated).await;
        }
        let stranded = pods.iter().filter(|pod| self.is_out_of_service(pod.doc()));
        let stranded: Vec<&Obj> = stranded.collect();
        self.remove_all(&stranded, Reason::OutOfService).await;
        let gone = self.nodes_gone(&pods).await;
        let orphaned = pods.iter().filter(|pod| gone.contains(node_of(pod.doc())));
        let orphaned: Vec<&Obj> = orphaned.collect();
        self.remove_all(&orphaned, Reason::Orphaned).await;
        let is_unscheduled = |pod: &&Obj| pod.meta().is_deleting() && node_of(pod.doc()).is_empty();
        let unscheduled: Vec<&Obj> = pods.iter().filter(is_unscheduled).collect();
        self.remove_all(&unscheduled, Reason::Unscheduled).await;
    }

    /// The pods that have ended and are too many: those that were evicted first, then the oldest.
    fn surplus_of_ended<'p>(&self, pods: &'p [Obj]) -> Vec<&'p Obj> {
        let is_ended = |pod: &&Obj| {
            let phase = pod.doc().str_at("/status/phase");
            !matches!(phase, "Pending" | "Running" | "Unknown")
        };
        let mut ended: Vec<&Obj> = pods.iter().filter(is_ended).collect();
        let surplus = ended.len().saturating_sub(self.options.terminated_limit);
        if surplus > 0 {
            ended.sort_by_cached_key(|pod| {
                let doc = pod.doc();
                let is_evicted = doc.str_at("/status/phase") == "Failed"
                    && doc.str_at("/status/reason") == "Evicted";
                let created = doc.meta().creation_timestamp();
                (!is_evicted, created, doc.meta().name().to_owned())
            });
        }
        ended.truncate(surplus);
        ended
    }

    /// Returns true if a pod is being deleted on a node that will not do it.
    fn is_out_of_service(&self, pod: &Doc) -> bool {
        if !pod.meta().is_deleting() {
            return false;
        }
        let Some(node) = self.nodes.lister().get(&Key::new("", node_of(pod))) else {
            return false;
        };
        let node = node.doc();
        let is_ready = condition(node, "Ready").is_some_and(|it| it.is_true());
        let mut taints = node.at("/spec/taints").items().iter();
        !is_ready && taints.any(|taint| taint.str_at("/key") == OUT_OF_SERVICE)
    }

    /// The nodes that pods name and that have been missing for long enough.
    async fn nodes_gone(&self, pods: &[Obj]) -> BTreeSet<String> {
        let (nodes, now) = (self.nodes.lister(), Instant::now());
        let is_known = |name: &str| nodes.get(&Key::new("", name)).is_some();
        let due: Vec<String> = {
            let mut missing = self.missing.lock();
            let names = pods.iter().map(|pod| node_of(pod.doc()));
            for name in names.filter(|name| !name.is_empty() && !is_known(name)) {
                missing.entry(name.to_owned()).or_insert(now + QUARANTINE);
            }
            let due = missing.iter().filter(|(_, at)| **at <= now);
            let due: Vec<String> = due.map(|(name, _)| name.clone()).collect();
            // One that cannot be decided now waits anew.
            missing.retain(|_, at| *at > now);
            due
        };
        let mut gone = BTreeSet::new();
        for name in due.into_iter().filter(|name| !is_known(name)) {
            match self.nodes_api.get(&name).await {
                Ok(_) => {}
                Err(error) if error.is_not_found() => drop(gone.insert(name)),
                Err(error) => {
                    tracing::error!(node = name, %error, "a node was not found out about")
                }
            }
        }
        gone
    }

    async fn remove_all(&self, pods: &[&Obj], reason: Reason) {
        for batch in pods.chunks(BATCH) {
            let removals = batch.iter().map(|pod| self.remove(pod.doc(), reason));
            let mut removals: FuturesUnordered<_> = removals.collect();
            while removals.next().await.is_some() {}
        }
    }

    async fn remove(&self, pod: &Doc, reason: Reason) {
        let (namespace, name) = (pod.meta().namespace(), pod.meta().name());
        self.metrics.removing(namespace, reason);
        match self.try_to_remove(pod, reason).await {
            Ok(()) => tracing::info!(pod = %pod.meta().key(), reason = reason.as_str(), "removed"),
            Err(error) if error.is_not_found() => {}
            Err(error) => {
                self.metrics.failed(namespace, reason);
                tracing::error!(namespace, name, %error, "a pod was not removed");
            }
        }
    }

    /// Makes a pod that has not ended fail, and removes it at once.
    async fn try_to_remove(&self, pod: &Doc, reason: Reason) -> Result<(), Error> {
        let meta = pod.meta();
        let api = self.pods_api.clone().namespaced(meta.namespace());
        if !is_pod_terminal(pod) {
            let patch = Patch::Strategic(self.failure(pod, reason));
            api.patch_status(meta.name(), &patch, &WriteOptions::manager(NAME))
                .await?;
        }
        let options = DeleteOptions {
            grace_period: Some(Duration::ZERO),
            ..DeleteOptions::uid(meta.uid_str())
        };
        api.delete(meta.name(), &options).await.map(drop)
    }

    fn failure(&self, pod: &Doc, reason: Reason) -> Doc {
        let generation = pod.meta().generation();
        let mut status = vec![("phase", Doc::from("Failed"))];
        if generation > 0 {
            status.push(("observedGeneration", generation.into()));
        }
        if reason == Reason::Orphaned {
            let now = self.env.now().to_string();
            let disrupted = doc!({
                "type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC",
                "message": "PodGC: node no longer exists", "lastTransitionTime": now,
            });
            let disrupted = match generation > 0 {
                true => disrupted.with("/observedGeneration", generation),
                false => Ok(disrupted),
            };
            let conditions: Vec<Doc> = disrupted.into_iter().collect();
            status.push(("conditions", conditions.into()));
        }
        let status: windlass_core::Object = status.into_iter().collect();
        doc!({ "metadata": { "uid": (pod.meta().uid_str()) }, "status": status })
    }
}

fn node_of(pod: &Doc) -> &str {
    pod.str_at("/spec/nodeName")
}
