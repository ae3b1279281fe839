//! A cluster with the claim controller, and the objects it is about.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use windlass_client::{Config, DeleteOptions, Patch, Propagation, WriteOptions};
use windlass_core::{Doc, Gvr, doc};
use windlass_placement::claims::{FINALIZER, Metrics, Options, POD_CLAIM_NAME};
use windlass_testing::{Call, Cluster, Fault, Faults, Running};

pub(crate) const PODS: Gvr = Gvr::constant("", "v1", "pods");
pub(crate) const EVENTS: Gvr = Gvr::constant("", "v1", "events");
pub(crate) const CLAIMS: Gvr = Gvr::constant("resource.k8s.io", "v1", "resourceclaims");
pub(crate) const TEMPLATES: Gvr = Gvr::constant("resource.k8s.io", "v1", "resourceclaimtemplates");

/// How long to wait to see that nothing happens.
const QUIET: Duration = Duration::from_millis(300);

/// A namespace of a cluster, in which the controller works.
pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    pub(crate) namespace: String,
    /// What goes wrong with the calls of the controller.
    pub(crate) faults: Faults,
    pub(crate) options: Options,
    /// The calls of the controller that were no watches and no lists.
    calls: Arc<Mutex<Vec<String>>>,
    runs: Mutex<Vec<Running>>,
}

impl Stage {
    pub(crate) async fn embedded() -> Self {
        Self::on(Cluster::start().await, "default").await
    }

    /// A namespace of the real server; `None` if there is none.
    pub(crate) async fn real(name: &str) -> Option<Self> {
        let server = windlass_envtest::real_server()?;
        let config = Config::from_file(server.kubeconfig()).await.unwrap();
        let cluster = Cluster::builder().existing(config).start().await;
        let namespace = format!("claims-{}", name.replace('_', "-"));
        let namespace = namespace[..namespace.len().min(60)].trim_end_matches('-');
        let object = doc!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace }
        });
        cluster.create_doc(&object).await;
        Some(Self::on(cluster, namespace).await)
    }

    async fn on(cluster: Cluster, namespace: &str) -> Self {
        let stage = Self {
            cluster,
            namespace: namespace.to_owned(),
            faults: Faults::none(),
            options: Options {
                workers: 4,
                metrics: Metrics::default(),
                ..Options::default()
            },
            calls: Arc::default(),
            runs: Mutex::default(),
        };
        stage.fault(|_| Fault::None);
        stage
    }

    /// Decides what goes wrong with the calls of the controller from now on.
    pub(crate) fn fault(&self, mut choose: impl FnMut(&Call) -> Fault + Send + 'static) {
        let calls = self.calls.clone();
        self.faults.set(move |call| {
            let is_named = call.path.contains("/resourceclaims/") || call.path.contains("/pods/");
            let is_create = call.method == "POST" && call.path.contains("/resourceclaims");
            if !call.is_watch && (is_named || is_create) {
                calls.lock().push(short(call));
            }
            choose(call)
        });
    }

    /// What the controller has asked for since the last time, such as `PUT claims/c/status`.
    pub(crate) fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.calls.lock())
    }

    /// Runs the controller.
    pub(crate) fn run(&self) -> Running {
        self.run_with(&self.options)
    }

    pub(crate) fn run_with(&self, options: &Options) -> Running {
        let transport = self.cluster.transport().layer(&self.faults);
        let manager = self
            .cluster
            .manager_on("claims", transport)
            .namespace(&self.namespace)
            .build()
            .unwrap();
        windlass_placement::claims::add_to(&manager, options);
        let running = self.cluster.run_manager(manager);
        self.runs.lock().push(running.clone());
        running
    }

    /// Stops the controller, so that it does not disturb other tests of a shared server.
    pub(crate) async fn end(&self) {
        let runs = std::mem::take(&mut *self.runs.lock());
        for run in runs {
            run.abort();
        }
    }

    /// Lets the controller do whatever it would.
    pub(crate) async fn settle(&self) {
        self.cluster.pass(QUIET).await;
    }

    /// Creates an object in the namespace.
    pub(crate) async fn create(&self, object: Doc) -> Doc {
        let object = object.with("/metadata/namespace", self.namespace.as_str());
        self.cluster.create_doc(&object.unwrap()).await
    }

    pub(crate) async fn find(&self, resource: &Gvr, name: &str) -> Option<Doc> {
        let key = format!("{}/{name}", self.namespace);
        self.cluster.find(resource, &key).await
    }

    pub(crate) async fn claims(&self) -> Vec<Doc> {
        let mut claims = self.cluster.list_docs(&CLAIMS, &self.namespace, "").await;
        claims.sort_by_key(|claim| claim.meta().name().to_owned());
        claims
    }

    /// The claims that the status of a pod names, by entry.
    pub(crate) async fn recorded(&self, pod: &str) -> Vec<(String, String)> {
        let Some(pod) = self.find(&PODS, pod).await else {
            return Vec::new();
        };
        let statuses = pod.at("/status/resourceClaimStatuses").items().iter();
        let text = |status: &Doc, pointer: &str| status.str_at(pointer).to_owned();
        statuses
            .map(|status| (text(status, "/name"), text(status, "/resourceClaimName")))
            .collect()
    }

    pub(crate) async fn events(&self, reason: &str) -> Vec<String> {
        let events = self.cluster.list_docs(&EVENTS, &self.namespace, "").await;
        let events = events
            .iter()
            .filter(|event| event.str_at("/reason") == reason);
        events
            .map(|event| event.str_at("/message").to_owned())
            .collect()
    }

    /// Waits for something.
    pub(crate) async fn until(&self, condition: impl AsyncFn(&Self) -> bool) {
        self.cluster.until(async |_| condition(self).await).await;
    }

    /// Creates a template with labels and annotations.
    pub(crate) async fn template(&self, name: &str) -> Doc {
        self.create(template(name)).await
    }

    /// Creates a pod with entries: `entry=claim` or `entry@template`.
    pub(crate) async fn pod(&self, name: &str, entries: &[&str]) -> Doc {
        self.create(pod(name, entries)).await
    }

    pub(crate) async fn pod_on_node(&self, name: &str, entries: &[&str]) -> Doc {
        let pod = pod(name, entries).with("/spec/nodeName", "n1").unwrap();
        self.create(pod).await
    }

    pub(crate) async fn phase(&self, pod: &str, phase: &str) {
        let api = self.cluster.api(&PODS, &self.namespace);
        let patch = Patch::Merge(doc!({ "status": { "phase": phase } }));
        let options = WriteOptions::default();
        api.patch_status(pod, &patch, &options).await.unwrap();
    }

    /// Creates a claim, with devices and consumers as given.
    pub(crate) async fn claim(&self, name: &str, consumers: &[Doc]) -> Doc {
        self.allocated(claim(name).with_finalizer(FINALIZER), consumers)
            .await
    }

    /// Creates a claim and gives it devices.
    pub(crate) async fn allocated(&self, claim: Doc, consumers: &[Doc]) -> Doc {
        let created = self.create(claim).await;
        let api = self.cluster.api(&CLAIMS, &self.namespace);
        let patch = Patch::Merge(doc!({ "status": {
            "allocation": (allocation()), "reservedFor": (consumers.to_vec())
        } }));
        let options = WriteOptions::default();
        let name = created.meta().name();
        api.patch_status(name, &patch, &options).await.unwrap()
    }

    /// Gives devices to a claim that exists, as the scheduler does.
    pub(crate) async fn protect_and_allocate(&self, claim: &Doc, pod: &Doc) {
        let api = self.cluster.api(&CLAIMS, &self.namespace);
        let protected = claim.with_finalizer(FINALIZER);
        let claim = api.update(&protected, &WriteOptions::default()).await;
        let status = doc!({ "allocation": (allocation()), "reservedFor": [(consumer_of(pod))] });
        self.cluster.patch_status(&claim.unwrap(), status).await;
    }

    pub(crate) async fn delete(&self, resource: &Gvr, name: &str) {
        let api = self.cluster.api(resource, &self.namespace);
        let options = DeleteOptions {
            grace_period: Some(Duration::ZERO),
            ..DeleteOptions::default()
        };
        api.delete(name, &options.propagate(Propagation::Background))
            .await
            .unwrap();
    }

    /// Deletes a pod gracefully.
    pub(crate) async fn delete_gracefully(&self, pod: &str) {
        let api = self.cluster.api(&PODS, &self.namespace);
        let options = DeleteOptions {
            grace_period: Some(Duration::from_secs(30)),
            ..DeleteOptions::default()
        };
        api.delete(pod, &options).await.unwrap();
    }
}

fn short(call: &Call) -> String {
    let path = call.path.rsplit_once("/resourceclaims");
    let path = path.map(|(_, rest)| format!("claims{rest}"));
    let pods = || {
        call.path
            .rsplit_once("/pods/")
            .map(|(_, rest)| format!("pods/{rest}"))
    };
    let path = path.or_else(pods).unwrap_or_else(|| call.path.clone());
    format!("{} {path}", call.method)
}

pub(crate) fn devices() -> Doc {
    doc!({ "requests": [{ "name": "gpu", "exactly": { "deviceClassName": "gpu.example.com" } }] })
}

pub(crate) fn allocation() -> Doc {
    doc!({ "devices": { "results": [{
        "request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": "d0"
    }] } })
}

pub(crate) fn template(name: &str) -> Doc {
    doc!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": { "name": name },
        "spec": {
            "metadata": { "labels": { "l": "1" }, "annotations": { "a": "1" } },
            "spec": { "devices": (devices()) }
        }
    })
}

pub(crate) fn claim(name: &str) -> Doc {
    doc!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": { "name": name }, "spec": { "devices": (devices()) }
    })
}

/// A claim that was made for an entry of a pod.
pub(crate) fn claim_of(name: &str, pod: &Doc, entry: &str) -> Doc {
    let owner = doc!({
        "apiVersion": "v1", "kind": "Pod", "controller": true,
        "name": (pod.meta().name()), "uid": (pod.meta().uid_str())
    });
    claim(name)
        .with("/metadata/ownerReferences", vec![owner])
        .and_then(|claim| claim.with("/metadata/annotations", doc!({ POD_CLAIM_NAME: entry })))
        .unwrap()
}

pub(crate) fn pod(name: &str, entries: &[&str]) -> Doc {
    let entries: Vec<Doc> = entries
        .iter()
        .map(|entry| match entry.split_once('@') {
            Some((name, template)) => {
                doc!({ "name": name, "resourceClaimTemplateName": template })
            }
            None => {
                let (name, claim) = entry.split_once('=').unwrap();
                doc!({ "name": name, "resourceClaimName": claim })
            }
        })
        .collect();
    doc!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name },
        "spec": {
            "containers": [{ "name": "c", "image": "i" }],
            "resourceClaims": entries
        }
    })
}

/// The consumer that stands for a pod.
pub(crate) fn consumer(name: &str, uid: &str) -> Doc {
    doc!({ "resource": "pods", "name": name, "uid": uid })
}

pub(crate) fn consumer_of(pod: &Doc) -> Doc {
    consumer(pod.meta().name(), pod.meta().uid_str())
}
