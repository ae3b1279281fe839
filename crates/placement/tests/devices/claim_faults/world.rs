//! A cluster with devices in which some of the processes go wrong.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use windlass_client::{DeleteOptions, DiscoveryClient, Transport};
use windlass_core::{Doc, Gvr, Key, doc};
use windlass_placement::{
    claims, driver,
    dynamic_resources::{self, DynamicResources},
    node, scheduler,
};
use windlass_runtime::{ElectionOptions, Manager};
use windlass_testing::{Cluster, Fault, Faults, Stage};
use windlass_workloads::garbage_collector;

use crate::claim_faults::{
    counting::{self, Life, Lives},
    history::History,
    rules,
};

const PODS: Gvr = Gvr::constant("", "v1", "pods");
const CLAIMS: Gvr = Gvr::constant("resource.k8s.io", "v1", "resourceclaims");
const SLICES: Gvr = Gvr::constant("resource.k8s.io", "v1", "resourceslices");

/// How often a condition is looked at. What is waited for here takes seconds.
const LOOK: Duration = Duration::from_millis(200);

/// After how long everything that was held up has arrived, and whoever has crashed is back.
const SETTLED: Duration = Duration::from_secs(45);

/// How long everything is quiet in the end.
const REST: Duration = Duration::from_secs(20);

pub(crate) struct World {
    pub(crate) stage: Stage,
    pub(crate) cluster: Cluster,
    /// The way to the server of the processes that may go wrong.
    transport: Transport,
    history: History,
    /// The present lives of the claim controllers that may go wrong, by name.
    lives: Lives,
}

impl World {
    /// An empty cluster with a garbage collector, which is not what goes wrong here.
    pub(crate) async fn new(stage: &Stage) -> Self {
        let cluster = Cluster::builder().env(stage.env().clone()).start().await;
        let history = History::default();
        history.follow(&cluster, "pods", PODS);
        history.follow(&cluster, "resourceclaims", CLAIMS);
        history.follow(&cluster, "resourceslices", SLICES);
        let world = Self {
            stage: stage.clone(),
            transport: cluster.transport(),
            cluster,
            history,
            lives: Lives::default(),
        };
        world.collect().await;
        world
    }

    /// Runs a garbage collector of pods and claims.
    async fn collect(&self) {
        let discovery = DiscoveryClient::new(self.cluster.client().clone());
        let discovery = discovery.discovery().await.unwrap();
        let kept = [PODS, CLAIMS].map(|kind| kind.group_resource());
        let all = discovery.resources.iter();
        let all = all.map(|resource| resource.gvr.group_resource());
        let ignored: BTreeSet<_> = all.filter(|it| !kept.contains(it)).collect();
        self.cluster.run_with("garbage-collector", |manager| {
            let workers = 1;
            let options = garbage_collector::Options { workers, ignored };
            garbage_collector::add_to(manager, &options);
        });
    }

    /// Runs nodes with devices beside the faults, and waits until they are known.
    pub(crate) async fn with_nodes(self, nodes: usize, devices: usize) -> Self {
        self.cluster
            .run_with("nodes", |manager| add_nodes(manager, nodes, devices));
        self.until_published(nodes).await;
        self
    }

    pub(crate) async fn until_published(&self, nodes: usize) {
        self.until("slices are published", async || {
            self.cluster.list_docs(&SLICES, "", "").await.len() == nodes
        })
        .await;
    }

    /// Lets all watches of the processes that are started from now on be late.
    pub(crate) fn with_lag(mut self, lag: Duration) -> Self {
        let late = Faults::new(move |call| match call.is_watch {
            true => Fault::Lag(lag),
            false => Fault::None,
        });
        self.transport = self.transport.layer(&late);
        self
    }

    /// Starts a process that may go wrong.
    pub(crate) fn start(&self, name: &str, add: impl Fn(&Manager) + Clone + Send + 'static) {
        let (cluster, process) = (self.cluster.clone(), name.to_owned());
        self.stage.start(name, &self.transport, move |transport| {
            let manager = cluster.manager_on(&process, transport).build().unwrap();
            add(&manager);
            async move { manager.run().await.unwrap() }
        });
    }

    /// Starts a claim controller that may go wrong.
    pub(crate) fn start_claims(&self, name: &str) {
        self.start_claims_with(name, claims::DELETED_UIDS_LIMIT);
    }

    /// Starts a claim controller that remembers so many deleted pods.
    pub(crate) fn start_claims_with(&self, name: &str, deleted_uids_limit: usize) {
        let (lives, stage) = (self.lives.clone(), self.stage.clone());
        let process = name.to_owned();
        self.start(name, move |manager| {
            let options = claims::Options {
                workers: 2,
                deleted_uids_limit,
                ..claims::Options::default()
            };
            let life = Life {
                first_call: stage.faults().calls(),
                metrics: options.metrics.clone(),
            };
            lives.lock().insert(process.clone(), life);
            claims::add_to(manager, &options);
        });
    }

    /// Starts a scheduler of several, of which one works at a time.
    pub(crate) fn start_elected_scheduler(&self, name: &str) {
        let (cluster, process) = (self.cluster.clone(), name.to_owned());
        self.stage.start(name, &self.transport, move |transport| {
            let lease = Key::new("kube-system", "scheduler");
            let (cluster, process) = (cluster.clone(), process.clone());
            // Whoever has lost the lease ends, and is started again.
            async move {
                for life in 0.. {
                    let election = ElectionOptions::new(lease.clone(), format!("{process}-{life}"));
                    let manager = cluster
                        .manager_on(&process, transport.clone())
                        .election(election)
                        .build()
                        .unwrap();
                    add_scheduler(&manager);
                    // The lease may be lost: then there is another life.
                    let _ = manager.run().await;
                }
            }
        });
    }

    pub(crate) async fn until(&self, what: &str, condition: impl AsyncFn() -> bool) {
        self.stage
            .until(what, async || {
                tokio::time::sleep(LOOK).await;
                condition().await
            })
            .await;
    }

    pub(crate) async fn create(&self, object: &Doc) -> Doc {
        self.cluster.create_doc(object).await
    }

    pub(crate) async fn pods(&self) -> Vec<Doc> {
        self.cluster.list_docs(&PODS, "default", "").await
    }

    pub(crate) async fn claims(&self) -> Vec<Doc> {
        self.cluster.list_docs(&CLAIMS, "default", "").await
    }

    /// The pods and their phases, in order.
    pub(crate) async fn phases(&self) -> Vec<String> {
        let pods = self.pods().await;
        let phase = |pod: &Doc| format!("{} {}", pod.meta().name(), pod.str_at("/status/phase"));
        pods.iter().map(phase).collect()
    }

    pub(crate) async fn until_phases(&self, phases: &[&str]) {
        self.until(&phases.join(", "), async || self.phases().await == phases)
            .await;
    }

    /// How many claims there are, and how many of them have devices.
    pub(crate) async fn counts(&self) -> (usize, usize) {
        let claims = self.claims().await;
        let with_devices = claims.iter().filter(|claim| claims::is_allocated(claim));
        (claims.len(), with_devices.count())
    }

    pub(crate) async fn until_counts(&self, counts: (usize, usize)) {
        let what = format!("{} claims, {} of them with devices", counts.0, counts.1);
        self.until(&what, async || self.counts().await == counts)
            .await;
    }

    /// Deletes an object, unless it is gone.
    pub(crate) async fn delete(&self, resource: &Gvr, name: &str) {
        let api = self.cluster.api(resource, "default");
        match api.delete(name, &DeleteOptions::default()).await {
            Err(error) if !error.is_not_found() => panic!("{name} is not deleted: {error}"),
            _ => {}
        }
    }

    pub(crate) async fn delete_pod(&self, name: &str) {
        self.delete(&PODS, name).await;
    }

    pub(crate) async fn delete_claim(&self, name: &str) {
        self.delete(&CLAIMS, name).await;
    }

    /// Nobody writes any more, and nothing was ever wrong. Returns what is left.
    pub(crate) async fn end(&self) -> Vec<Doc> {
        self.stage.pass(SETTLED).await;
        self.stage.rest(REST).await;
        self.expect(self.history.replay(rules::all));
        let (mut left, claims) = (self.pods().await, self.claims().await);
        self.expect(rules::at_rest(&left, &claims));
        for (process, life) in &*self.lives.lock() {
            self.expect(counting::check(process, life, &claims, &self.stage));
        }
        left.extend(claims);
        left
    }

    /// As [`end`](Self::end), after which no claim was made for a pod that was being deleted.
    pub(crate) async fn end_without_late_claims(&self) -> Vec<Doc> {
        let left = self.end().await;
        self.expect(self.history.replay(rules::ending_pods_get_no_claim));
        left
    }

    fn expect(&self, verdict: Result<(), String>) {
        if let Err(broken) = verdict {
            self.stage.fail(broken);
        }
    }
}

pub(crate) fn add_claims(manager: &Manager) {
    let options = claims::Options {
        workers: 2,
        ..claims::Options::default()
    };
    claims::add_to(manager, &options);
}

pub(crate) fn add_scheduler(manager: &Manager) {
    let plugin = DynamicResources::new(manager, &dynamic_resources::Options::default());
    let mut options = scheduler::Options::default();
    options.plugins.push(Arc::new(plugin));
    scheduler::add_to(manager, &options);
}

pub(crate) fn add_nodes(manager: &Manager, nodes: usize, devices: usize) {
    let options = driver::Options {
        devices_per_node: devices,
        ..driver::Options::default()
    };
    let preparer = driver::add_to(manager, &options);
    let mut options = node::Options::default();
    options.nodes = nodes;
    options.name_prefix = "n".to_owned();
    // Signs of life are not what this is about.
    options.lease_interval = Duration::from_secs(3600);
    options.resources = Some(preparer);
    node::add_to(manager, &options);
}

fn devices() -> Doc {
    doc!({ "requests": [{ "name": "gpu", "exactly": { "deviceClassName": (driver::DRIVER) } }] })
}

pub(crate) fn template() -> Doc {
    doc!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": { "namespace": "default", "name": "t" },
        "spec": { "spec": { "devices": (devices()) } }
    })
}

pub(crate) fn claim(name: &str) -> Doc {
    doc!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": { "namespace": "default", "name": name },
        "spec": { "devices": (devices()) }
    })
}

/// A pod that wants two claims of the template, and so two devices or none.
pub(crate) fn pair(name: &str) -> Doc {
    let entry = |name: &str| doc!({ "name": name, "resourceClaimTemplateName": "t" });
    let entries = vec![entry("first"), entry("second")];
    pod(name, "@t")
        .with("/spec/resourceClaims", entries)
        .unwrap()
}

/// A pod with one entry: a claim by name, or one of its own from the template `@t`.
pub(crate) fn pod(name: &str, entry: &str) -> Doc {
    let entry = match entry.strip_prefix('@') {
        Some(template) => doc!({ "name": "gpu", "resourceClaimTemplateName": template }),
        None => doc!({ "name": "gpu", "resourceClaimName": entry }),
    };
    doc!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "namespace": "default", "name": name,
            "annotations": { (node::EXIT_AFTER): (node::NEVER) }
        },
        "spec": {
            "restartPolicy": "Never",
            "containers": [{ "name": "c", "image": "i" }],
            "resourceClaims": [entry]
        }
    })
}

/// A pod that somebody keeps from going.
pub(crate) fn held(pod: &Doc) -> Doc {
    pod.with_finalizer("example.com/hold")
}

/// A pod that ends by itself.
pub(crate) fn short_pod(name: &str, entry: &str, after: &str) -> Doc {
    let annotations = doc!({ (node::EXIT_AFTER): after });
    pod(name, entry)
        .with("/metadata/annotations", annotations)
        .unwrap()
}
