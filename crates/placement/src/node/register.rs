//! The Node objects and Leases of pretend nodes.

use std::sync::Arc;

use futures_util::future::join_all;
use windlass_client::{DynamicApi, Error, Patch, WriteOptions};
use windlass_core::{Doc, Gvk, Gvr, MicroTime, Object, OwnerRef, Str, Time, doc};
use windlass_runtime::Shutdown;

use super::{
    Capacity, NAME, PRETEND,
    agent::{Agent, is_stopped},
};

pub(super) const NODES: Gvr = Gvr::constant("", "v1", "nodes");
pub(super) const LEASES: Gvr = Gvr::constant("coordination.k8s.io", "v1", "leases");
const NODE: Gvk = Gvk::constant("", "v1", "Node");

/// Where the Leases of nodes are.
pub(super) const LEASE_NAMESPACE: &str = "kube-node-lease";
/// How long a node counts as alive after it has renewed its Lease.
const LEASE_DURATION_SECONDS: i64 = 40;
/// Nodes that are written at once.
const WRITES_LIMIT: usize = 16;
/// What an API server puts on new nodes until somebody finds them ready.
const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// The version of the kubelet that the nodes behave like.
const VERSION: &str = "v1.36.4";

/// What is done for every node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chore {
    Register,
    Report,
    Renew,
}

impl Agent {
    /// Registers all nodes, and keeps them alive until the end.
    pub(super) async fn keep_nodes(self: Arc<Self>, shutdown: Shutdown) {
        self.do_everywhere(Chore::Register).await;
        let mut leases = tokio::time::interval(self.options.lease_interval);
        let mut statuses = tokio::time::interval(self.options.status_interval);
        statuses.tick().await;
        loop {
            let chore = tokio::select! {
                biased;
                () = shutdown.requested() => return,
                () = self.stopped.is_back.notified() => {
                    self.do_everywhere(Chore::Renew).await;
                    Chore::Report
                }
                _ = statuses.tick() => Chore::Report,
                _ = leases.tick() => Chore::Renew,
            };
            self.do_everywhere(chore).await;
        }
    }

    /// Does something for every node, for several of them at once. What fails is tried again the
    /// next time.
    async fn do_everywhere(&self, chore: Chore) {
        let is_up = |name: &&String| !self.stopped.contains(name);
        let names: Vec<&String> = self.hosts.keys().filter(is_up).collect();
        for some in names.chunks(WRITES_LIMIT) {
            join_all(some.iter().map(|name| self.do_for(name, chore))).await;
        }
    }

    async fn do_for(&self, name: &str, chore: Chore) {
        let done = match chore {
            Chore::Register => self.register(name).await,
            Chore::Report => self.report(name).await,
            Chore::Renew => self.renew(name).await,
        };
        if let Err(error) = done {
            tracing::warn!(node = %name, %error, ?chore, "a pretend node was not written");
        }
    }

    /// Creates a node, or takes it over from an earlier run.
    async fn register(&self, name: &str) -> Result<(), Error> {
        let now = self.env.now();
        let node = self.node(name, now);
        let written = match self.nodes.create(&node, &options()).await {
            Err(error) if error.is_already_exists() => {
                let metadata = doc!({ "metadata": { "labels": (node.at("/metadata/labels")) } });
                let patch = Patch::Strategic(metadata);
                let found = self.nodes.patch(name, &patch, &options()).await?;
                if is_stopped(&found) {
                    return Ok(());
                }
                let conditions = conditions(now, found.at("/status/conditions"));
                let node = node.with("/status/conditions", conditions);
                self.show_node(name, &node.unwrap_or(found)).await?
            }
            Err(error) => return Err(error),
            // Not every server takes the status of a new node.
            Ok(created) if created.at("/status/allocatable").is_null() => {
                self.show_node(name, &node).await?
            }
            Ok(created) => created,
        };
        self.welcome(name, &written).await
    }

    async fn show_node(&self, name: &str, node: &Doc) -> Result<Doc, Error> {
        let patch = Patch::Strategic(doc!({ "status": (node.at("/status")) }));
        self.nodes.patch_status(name, &patch, &options()).await
    }

    /// Takes away the taint of new nodes: these are ready from the start.
    async fn welcome(&self, name: &str, node: &Doc) -> Result<(), Error> {
        let taints = node.at("/spec/taints").items();
        let kept = taints
            .iter()
            .filter(|taint| taint.str_at("/key") != NOT_READY);
        let kept: Vec<Doc> = kept.cloned().collect();
        if kept.len() == taints.len() {
            return Ok(());
        }
        let kept = if kept.is_empty() {
            Doc::NULL
        } else {
            kept.into()
        };
        let version = node.meta().resource_version();
        let patch =
            doc!({ "metadata": { "resourceVersion": version }, "spec": { "taints": kept } });
        let patch = Patch::Merge(patch);
        self.nodes.patch(name, &patch, &options()).await.map(drop)
    }

    /// Says that a node is still well.
    async fn report(&self, name: &str) -> Result<(), Error> {
        let found = match self.nodes.get(name).await {
            Err(error) if error.is_not_found() => return self.register(name).await,
            found => found?,
        };
        let conditions = conditions(self.env.now(), found.at("/status/conditions"));
        let patch = Patch::Strategic(doc!({ "status": { "conditions": conditions } }));
        let patched = self.nodes.patch_status(name, &patch, &options()).await;
        patched.map(drop)
    }

    /// Renews the Lease of a node.
    async fn renew(&self, name: &str) -> Result<(), Error> {
        let now = self.env.now_micro();
        let held = self.held.lock().remove(name);
        let renewed = match held {
            Some(lease) => {
                let renewed = with_renewal(&lease, now);
                self.leases.update(&renewed, &options()).await
            }
            None => self.take_lease(name, now).await,
        };
        // A Lease that somebody has changed or deleted is read again the next time.
        let renewed = renewed?;
        self.held.lock().insert(name.to_owned(), renewed);
        Ok(())
    }

    /// Creates the Lease of a node, or takes it over from an earlier run.
    async fn take_lease(&self, name: &str, now: MicroTime) -> Result<Doc, Error> {
        match self.leases.get(name).await {
            Ok(lease) => {
                let renewed = with_renewal(&lease, now);
                self.leases.update(&renewed, &options()).await
            }
            Err(error) if error.is_not_found() => {
                let lease = self.lease(name, now).await?;
                self.leases.create(&lease, &options()).await
            }
            Err(error) => Err(error),
        }
    }

    async fn lease(&self, name: &str, now: MicroTime) -> Result<Doc, Error> {
        let node = self.nodes.get(name).await?;
        let owner = OwnerRef {
            controller: false,
            block_owner_deletion: false,
            ..OwnerRef::controller_of(&node, &NODE)
        };
        let lease = doc!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": name, "namespace": LEASE_NAMESPACE, "ownerReferences": [(Doc::from(&owner))],
            },
            "spec": { "holderIdentity": name, "leaseDurationSeconds": LEASE_DURATION_SECONDS },
        });
        Ok(with_renewal(&lease, now))
    }

    /// The object of a node.
    fn node(&self, name: &str, now: Time) -> Doc {
        let mut labels = vec![
            ("beta.kubernetes.io/arch", "amd64"),
            ("beta.kubernetes.io/os", "linux"),
            ("kubernetes.io/arch", "amd64"),
            ("kubernetes.io/hostname", name),
            ("kubernetes.io/os", "linux"),
            (PRETEND, "true"),
        ];
        let further = &self.options.labels;
        labels.extend(further.iter().map(|(key, value)| (&**key, &**value)));
        let labels = labels
            .into_iter()
            .map(|(key, value)| (key, Doc::from(value)));
        let resources = resources(&self.options.capacity);
        doc!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": { "name": name, "labels": (labels.collect::<Object>()) },
            "spec": { "providerID": (format!("windlass://{name}")) },
            "status": {
                "capacity": (&resources),
                "allocatable": resources,
                "conditions": (conditions(now, &Doc::NULL)),
                "addresses": [
                    { "type": "InternalIP", "address": (self.host_address(name)) },
                    { "type": "Hostname", "address": name },
                ],
                "daemonEndpoints": { "kubeletEndpoint": { "Port": 10250 } },
                "nodeInfo": {
                    "architecture": "amd64", "operatingSystem": "linux",
                    "osImage": "pretend node, no container runs here",
                    "kernelVersion": "pretend", "containerRuntimeVersion": "windlass://pretend",
                    "kubeletVersion": VERSION, "kubeProxyVersion": "",
                    "machineID": name, "systemUUID": name, "bootID": name,
                },
            },
        })
    }
}

pub(super) fn leases_of(api: DynamicApi) -> DynamicApi {
    api.namespaced(LEASE_NAMESPACE)
}

fn options() -> WriteOptions {
    WriteOptions::manager(NAME)
}

fn with_renewal(lease: &Doc, now: MicroTime) -> Doc {
    let renewed = lease.with("/spec/renewTime", now.to_string());
    renewed.unwrap_or_else(|_| lease.clone())
}

pub(super) fn resources(capacity: &Capacity) -> Doc {
    let mut all = vec![
        ("cpu", Doc::from(&capacity.cpu)),
        ("memory", (&capacity.memory).into()),
        ("ephemeral-storage", (&capacity.ephemeral_storage).into()),
        ("pods", capacity.pods.to_string().into()),
    ];
    let others = capacity.others.iter();
    all.extend(others.map(|(name, amount)| (&**name, amount.into())));
    let all = all
        .into_iter()
        .map(|(name, amount)| (Str::new(name), amount));
    all.collect::<Object>().into()
}

/// What a node says of itself. What it has said before has been so since then.
fn conditions(now: Time, before: &Doc) -> Doc {
    let now = Doc::from(now.to_string());
    let since = |kind: &str, status: &str| {
        let mut before = before.items().iter();
        let same = before.find(|it| it.str_at("/type") == kind && it.str_at("/status") == status);
        let since = same.map(|it| it.at("/lastTransitionTime").clone());
        since.filter(|since| !since.is_null())
    };
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        let since = since(kind, status).unwrap_or_else(|| now.clone());
        doc!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": (now.clone()), "lastTransitionTime": since,
        })
    };
    vec![
        condition(
            "MemoryPressure",
            "False",
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available",
        ),
        condition(
            "DiskPressure",
            "False",
            "KubeletHasNoDiskPressure",
            "kubelet has no disk pressure",
        ),
        condition(
            "PIDPressure",
            "False",
            "KubeletHasSufficientPID",
            "kubelet has sufficient PID available",
        ),
        condition(
            "Ready",
            "True",
            "KubeletReady",
            "pretend node is ready, no container runs here",
        ),
    ]
    .into()
}
