//! DaemonSets.

mod nodes;
mod pods;
mod updates;

use windlass_core::{Doc, doc, merge_patch};

use crate::world::{DAEMON_SETS, NAMESPACE, World, image, node_of, number, template};

/// A DaemonSet `agent` with these fields in its spec.
fn set(spec: Doc) -> Doc {
    let base = doc!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": { "name": "agent", "namespace": NAMESPACE },
        "spec": {
            "selector": { "matchLabels": { "app": "agent" } },
            "template": (template("agent", doc!({})))
        }
    });
    merge_patch(&base, &doc!({ "spec": spec }))
}

/// The strategy of a rolling update with limits.
fn rolling(unavailable: Doc, surge: Doc) -> Doc {
    let limits = doc!({ "maxUnavailable": unavailable, "maxSurge": surge });
    doc!({ "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": limits } })
}

impl World {
    /// Creates so many nodes, `n1` and so on.
    async fn nodes(&self, count: usize) {
        for number in 1..=count {
            self.node(&format!("n{number}"), doc!({})).await;
        }
    }

    async fn node(&self, name: &str, more: Doc) {
        let base = doc!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name } });
        let node = self.create(merge_patch(&base, &more)).await;
        // The server taints new nodes as not ready.
        let taints = more.at("/spec/taints").clone();
        let patch = doc!({ "spec": { "taints": taints } });
        self.cluster.patch(&node, patch).await;
    }

    /// A world with so many nodes and a set whose pods are ready.
    async fn with_agents(count: usize, spec: Doc) -> Self {
        let world = Self::new().await;
        world.nodes(count).await;
        world.create(set(spec)).await;
        world.settle().await;
        world.serve_all().await;
        world
    }

    async fn agent(&self) -> Doc {
        self.get(&DAEMON_SETS, "agent").await
    }

    async fn change_agent(&self, spec: Doc) {
        self.patch(&DAEMON_SETS, "agent", doc!({ "spec": spec }))
            .await;
        self.settle().await;
    }

    async fn roll_agent(&self, image: &str) {
        let patch = crate::world::of_image(image);
        self.patch(&DAEMON_SETS, "agent", patch).await;
        self.settle().await;
    }

    /// The nodes of the pods that are not being deleted, each with its image.
    async fn placed(&self) -> Vec<String> {
        let pods = self.live().await;
        let mut placed: Vec<String> = pods
            .iter()
            .map(|pod| format!("{}:{}", node_of(pod), image(pod)))
            .collect();
        placed.sort();
        placed
    }

    async fn pod_on(&self, node: &str) -> Doc {
        let pods = self.live().await;
        let found = pods.into_iter().find(|pod| node_of(pod) == node);
        found.unwrap_or_else(|| panic!("no pod on {node}"))
    }

    /// The numbers of the status: desired, current, misscheduled, ready, updated, available.
    async fn numbers(&self) -> [i64; 6] {
        let agent = self.agent().await;
        [
            "desiredNumberScheduled",
            "currentNumberScheduled",
            "numberMisscheduled",
            "numberReady",
            "updatedNumberScheduled",
            "numberAvailable",
        ]
        .map(|field| number(&agent, &format!("/status/{field}")))
    }
}
