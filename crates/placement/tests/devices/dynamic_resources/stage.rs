//! A cluster in which pods get devices.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use windlass_client::{DeleteOptions, Patch, WriteOptions};
use windlass_core::{Doc, Env, Gvr, Key, condition, doc};
use windlass_placement::{
    claims,
    driver::{self, DRIVER},
    dynamic_resources::{self, DynamicResources},
    node,
    scheduler::{self, Plugin},
};
use windlass_runtime::Manager;
use windlass_testing::{Call, Cluster, Fault, Faults, Running};

pub(crate) const PODS: Gvr = Gvr::constant("", "v1", "pods");
pub(crate) const EVENTS: Gvr = Gvr::constant("", "v1", "events");
pub(crate) const NAMESPACES: Gvr = Gvr::constant("", "v1", "namespaces");
pub(crate) const CLAIMS: Gvr = Gvr::constant("resource.k8s.io", "v1", "resourceclaims");
pub(crate) const SLICES: Gvr = Gvr::constant("resource.k8s.io", "v1", "resourceslices");

/// How often a condition is looked at, and how many times.
const LOOK_PERIOD: Duration = Duration::from_millis(250);
const LOOKS_LIMIT: usize = 4000;

pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    /// What goes wrong with the calls of the scheduler.
    pub(crate) faults: Faults,
    /// The writes of the scheduler.
    calls: Arc<Mutex<Vec<String>>>,
    /// The scheduler's plug-in that runs.
    pub(crate) plugin: Mutex<Option<Arc<DynamicResources>>>,
    pub(crate) scheduling: Mutex<Option<Running>>,
}

impl Stage {
    /// A cluster with a scheduler and nothing else.
    pub(crate) async fn bare() -> Self {
        let stage = Self {
            cluster: Cluster::start().await,
            faults: Faults::none(),
            calls: Arc::default(),
            plugin: Mutex::default(),
            scheduling: Mutex::default(),
        };
        stage.fault(|_| Fault::None);
        stage.schedule();
        stage
    }

    /// A cluster with nodes that have devices, and everything that makes pods with claims run.
    pub(crate) async fn with_devices(nodes: usize, devices: usize) -> Self {
        let stage = Self::bare().await;
        stage.run_devices(nodes, devices);
        stage.until(async |s| s.slices().await.len() == nodes).await;
        stage
    }

    pub(crate) fn run_devices(&self, nodes: usize, devices: usize) -> Running {
        self.cluster.run_with("others", |manager| {
            claims::add_to(manager, &claims::Options::default());
            let options = driver::Options {
                devices_per_node: devices,
                ..driver::Options::default()
            };
            let preparer = driver::add_to(manager, &options);
            let mut options = node::Options::default();
            options.nodes = nodes;
            options.name_prefix = "n".to_owned();
            options.resources = Some(preparer);
            node::add_to(manager, &options);
        })
    }

    /// Runs a scheduler in place of the one that ran before.
    pub(crate) fn schedule(&self) {
        self.schedule_with(
            self.cluster.env().clone(),
            &dynamic_resources::Options::default(),
        );
    }

    /// Runs a scheduler in which another plug-in writes before the one for claims.
    pub(crate) fn schedule_behind(&self, other: Arc<dyn Plugin>) {
        let (env, options) = (self.cluster.env().clone(), Default::default());
        self.schedule_plugins(env, &options, vec![other]);
    }

    pub(crate) fn schedule_with(&self, env: Env, options: &dynamic_resources::Options) {
        self.schedule_plugins(env, options, Vec::new());
    }

    fn schedule_plugins(
        &self,
        env: Env,
        options: &dynamic_resources::Options,
        others: Vec<Arc<dyn Plugin>>,
    ) {
        if let Some(before) = self.scheduling.lock().take() {
            before.abort();
        }
        let transport = self.cluster.transport().layer(&self.faults);
        let manager: Manager = self
            .cluster
            .manager_on("scheduler", transport)
            .env(env)
            .build()
            .unwrap();
        let plugin = Arc::new(DynamicResources::new(&manager, options));
        let mut options = scheduler::Options::default();
        options.plugins = others;
        options.plugins.push(plugin.clone());
        scheduler::add_to(&manager, &options);
        *self.plugin.lock() = Some(plugin);
        *self.scheduling.lock() = Some(self.cluster.run_manager(manager));
    }

    pub(crate) fn plugin(&self) -> Arc<DynamicResources> {
        self.plugin.lock().clone().unwrap()
    }

    /// Decides what goes wrong with the calls of the scheduler from now on.
    pub(crate) fn fault(&self, mut choose: impl FnMut(&Call) -> Fault + Send + 'static) {
        let calls = self.calls.clone();
        self.faults.set(move |call| {
            if call.is_write() && !call.path.contains("/events") {
                let path = call.path.rsplit_once("/default/").map(|(_, path)| path);
                let path = path.unwrap_or(&call.path);
                calls.lock().push(format!("{} {path}", call.method));
            }
            choose(call)
        });
    }

    /// The writes of the scheduler since the last time.
    pub(crate) fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.calls.lock())
    }

    pub(crate) async fn until(&self, condition: impl AsyncFn(&Self) -> bool) {
        // What is waited for here takes seconds, and looking is what costs.
        for _ in 0..LOOKS_LIMIT {
            if condition(self).await {
                return;
            }
            self.cluster.pass(LOOK_PERIOD).await;
        }
        let failed = async |_: &Cluster| condition(self).await;
        self.cluster.until_within(Duration::ZERO, failed).await;
    }

    pub(crate) async fn pass(&self, seconds: u64) {
        self.cluster.pass(Duration::from_secs(seconds)).await;
    }

    pub(crate) async fn create(&self, object: &Doc) -> Doc {
        self.cluster.create_doc(object).await
    }

    pub(crate) async fn slices(&self) -> Vec<Doc> {
        self.cluster.list_docs(&SLICES, "", "").await
    }

    pub(crate) async fn claims(&self) -> Vec<Doc> {
        self.cluster.list_docs(&CLAIMS, "default", "").await
    }

    pub(crate) async fn claim(&self, name: &str) -> Doc {
        let key = Key::new("default", name);
        self.cluster.find(&CLAIMS, key.as_str()).await.unwrap()
    }

    pub(crate) async fn pod(&self, name: &str) -> Doc {
        let key = Key::new("default", name);
        self.cluster.find(&PODS, key.as_str()).await.unwrap()
    }

    pub(crate) async fn node_of(&self, pod: &str) -> String {
        self.pod(pod).await.str_at("/spec/nodeName").to_owned()
    }

    pub(crate) async fn is_bound(&self, pod: &str) -> bool {
        !self.node_of(pod).await.is_empty()
    }

    /// The pods in a phase, by name.
    pub(crate) async fn in_phase(&self, phase: &str) -> Vec<String> {
        let pods = self.cluster.list_docs(&PODS, "default", "").await;
        let mut names: Vec<String> = pods
            .iter()
            .filter(|pod| pod.str_at("/status/phase") == phase)
            .map(|pod| pod.meta().name().to_owned())
            .collect();
        names.sort_unstable();
        names
    }

    /// Why a pod is not scheduled: reason and message.
    pub(crate) async fn refusal(&self, pod: &str) -> Option<(String, String)> {
        let scheduled = condition(&self.pod(pod).await, "PodScheduled")?;
        (!scheduled.is_true()).then_some((scheduled.reason, scheduled.message))
    }

    pub(crate) async fn events(&self, reason: &str) -> Vec<String> {
        let events = self.cluster.list_docs(&EVENTS, "default", "").await;
        let events = events
            .iter()
            .filter(|event| event.str_at("/reason") == reason);
        events
            .map(|event| event.str_at("/message").to_owned())
            .collect()
    }

    pub(crate) async fn delete(&self, resource: &Gvr, name: &str) {
        let options = DeleteOptions {
            grace_period: Some(Duration::ZERO),
            ..DeleteOptions::default()
        };
        let api = self.cluster.api(resource, namespace_of(resource));
        api.delete(name, &options).await.unwrap();
    }

    pub(crate) async fn patch_status(&self, resource: &Gvr, name: &str, status: Doc) {
        let api = self.cluster.api(resource, namespace_of(resource));
        let patch = Patch::Merge(doc!({ "status": status }));
        let options = WriteOptions::default();
        api.patch_status(name, &patch, &options).await.unwrap();
    }

    /// Who has which device; panics if somebody else has it, too.
    pub(crate) async fn owners(&self) -> BTreeMap<String, String> {
        let mut owners = BTreeMap::new();
        for claim in self.claims().await {
            let name = claim.meta().name().to_owned();
            for result in claim.at("/status/allocation/devices/results").items() {
                let device = format!("{}/{}", result.str_at("/pool"), result.str_at("/device"));
                let before = owners.insert(device.clone(), name.clone());
                assert_eq!(before, None, "{device} is also of {name}");
            }
        }
        owners
    }
}

fn namespace_of(resource: &Gvr) -> &'static str {
    match resource.resource() {
        "nodes" | "namespaces" | "resourceslices" | "deviceclasses" => "",
        _ => "default",
    }
}

pub(crate) fn exactly(class: &str) -> Doc {
    doc!({ "requests": [{ "name": "gpu", "exactly": { "deviceClassName": class } }] })
}

pub(crate) fn template(name: &str, devices: Doc) -> Doc {
    doc!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": { "namespace": "default", "name": name },
        "spec": { "spec": { "devices": devices } }
    })
}

pub(crate) fn claim(name: &str, devices: Doc) -> Doc {
    doc!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": { "namespace": "default", "name": name }, "spec": { "devices": devices }
    })
}

/// A claim for one pretend GPU.
pub(crate) fn gpu_claim(name: &str) -> Doc {
    claim(name, exactly(DRIVER))
}

/// A pod with entries: `claim` or `@template`.
pub(crate) fn pod(name: &str, entries: &[&str]) -> Doc {
    let entries = entries.iter().enumerate();
    let entries = entries.map(|(at, entry)| {
        let at = format!("e{at}");
        match entry.strip_prefix('@') {
            Some(template) => doc!({ "name": at, "resourceClaimTemplateName": template }),
            None => doc!({ "name": at, "resourceClaimName": (*entry) }),
        }
    });
    doc!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "namespace": "default", "name": name },
        "spec": {
            "containers": [{ "name": "c", "image": "i" }],
            "resourceClaims": (entries.collect::<Vec<_>>())
        }
    })
}

/// A node without anything on it.
pub(crate) fn bare_node(name: &str) -> Doc {
    doc!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name } },
        "status": { "allocatable": { "cpu": "8", "memory": "8Gi", "pods": "500" } }
    })
}

pub(crate) fn class(name: &str, selectors: &[&str]) -> Doc {
    let selectors: Vec<Doc> = selectors
        .iter()
        .map(|text| doc!({ "cel": { "expression": (*text) } }))
        .collect();
    doc!({
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass",
        "metadata": { "name": name }, "spec": { "selectors": selectors }
    })
}

/// A pool of one slice on a node.
pub(crate) fn slice(node: &str, devices: Vec<Doc>) -> Doc {
    doc!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
        "metadata": { "name": (format!("slice-{node}")) },
        "spec": {
            "driver": DRIVER, "nodeName": node,
            "pool": { "name": node, "generation": 1, "resourceSliceCount": 1 },
            "devices": devices
        }
    })
}

pub(crate) fn device(name: &str) -> Doc {
    doc!({ "name": name, "attributes": { "kind": { "string": name } } })
}
