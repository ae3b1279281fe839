//! The look at all nodes, again and again.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures_util::{StreamExt, stream};
use tokio::time::Instant;
use windlass_cache::{Obj, SharedInformer};
use windlass_client::{DynamicApi, Error, WriteOptions};
use windlass_core::{Doc, Env, Key, MicroTime, doc};
use windlass_runtime::{EventRecorder, EventType, Shutdown};

use super::{
    LEASE_NAMESPACE, Options,
    conditions::{self, ready_status},
    health::{HealthMap, NodeHealth},
    metrics::Metrics,
    not_ready_pods,
    taints::{NOT_READY, TaintKey, UNREACHABLE, swap},
    zones::{Counts, Disruption, Zones, zone_of},
};
use crate::taint_eviction::pods_on;

/// Nodes that are looked at at the same time, as upstream.
const PARALLEL: usize = 8;
/// Tries to write the status of a node, as upstream, and the time between them.
const TRIES: usize = 5;
const RETRY: Duration = Duration::from_millis(20);
/// The time between two looks at the nodes that wait for a taint, as upstream.
const TICK: Duration = Duration::from_millis(100);

/// Nodes with this label do not count for the state of their zone.
const EXCLUDED: &str = "node.kubernetes.io/exclude-disruption";

pub(super) struct Monitor {
    pub(super) nodes: SharedInformer,
    pub(super) leases: SharedInformer,
    pub(super) pods: SharedInformer,
    pub(super) nodes_api: DynamicApi,
    pub(super) pods_api: DynamicApi,
    pub(super) recorder: EventRecorder,
    pub(super) env: Env,
    pub(super) options: Options,
    pub(super) health: HealthMap,
    pub(super) metrics: Metrics,
}

/// The state that the monitor keeps from one look to the next. Bounded by the nodes.
#[derive(Default)]
struct Memory {
    /// The nodes that there were, with their UIDs.
    known: BTreeMap<String, String>,
    zones: Zones,
    /// Nodes whose pods were not all made unready.
    again: BTreeSet<String>,
}

/// The outcome of a look at one node.
struct Looked {
    node: Doc,
    /// The status of `Ready` before the look; a node without one counts as unknown.
    observed: String,
    /// And after it.
    current: Option<String>,
}

impl Monitor {
    pub(super) async fn run(self: Arc<Self>, shutdown: Shutdown) {
        let synced = async {
            let (nodes, leases, pods) = tokio::join!(
                self.nodes.wait_for_sync(),
                self.leases.wait_for_sync(),
                self.pods.wait_for_sync()
            );
            nodes.and(leases).and(pods)
        };
        tokio::select! {
            () = shutdown.requested() => return,
            synced = synced => if let Err(error) = synced {
                tracing::error!(%error, "nodes are not monitored");
                return;
            },
        }
        let mut memory = Memory::default();
        loop {
            self.look(&mut memory).await;
            let next = Instant::now() + self.options.monitor_period;
            if self.taint_until(&mut memory, next, &shutdown).await {
                return;
            }
        }
    }

    /// Taints the nodes whose turn comes before a time. Returns true at the end of the process.
    async fn taint_until(&self, memory: &mut Memory, end: Instant, shutdown: &Shutdown) -> bool {
        loop {
            let turns = memory.zones.0.values().filter_map(|it| it.next_turn());
            // Not sooner than the next tick, so that a node that cannot be tainted is not tried
            // again and again.
            let next = turns.min().map(|at| at.max(Instant::now() + TICK));
            let next = next.unwrap_or(end).min(end);
            tokio::select! {
                () = shutdown.requested() => return true,
                () = tokio::time::sleep_until(next) => {}
            }
            if next >= end {
                return false;
            }
            self.taint_due(memory).await;
        }
    }

    async fn taint_due(&self, memory: &mut Memory) {
        for (name, zone) in &mut memory.zones.0 {
            let Some(node) = zone.pop(Instant::now()) else {
                continue;
            };
            let Some(found) = self.nodes.lister().get(&Key::cluster(&node)) else {
                continue;
            };
            let (add, remove) = match ready_status(found.doc()) {
                Some("False") => (NOT_READY, UNREACHABLE),
                Some("Unknown") => (UNREACHABLE, NOT_READY),
                // It is ready by now.
                Some(_) => continue,
                None => {
                    zone.put_back(node);
                    continue;
                }
            };
            match self.swap(found.doc(), Some(add), &[remove]).await {
                Ok(()) => self.metrics.tainted(name),
                Err(error) => {
                    tracing::error!(node, %error, "a node was not tainted");
                    zone.put_back(node);
                }
            }
        }
    }

    async fn swap(
        &self,
        node: &Doc,
        add: Option<&'static str>,
        remove: &[&'static str],
    ) -> Result<(), Error> {
        let add: Vec<TaintKey> = add.into_iter().map(TaintKey::no_execute).collect();
        let remove: Vec<TaintKey> = remove.iter().map(|key| TaintKey::no_execute(key)).collect();
        let now = self.env.now().to_string();
        swap(&self.nodes_api, node, &add, &remove, &now)
            .await
            .map(drop)
    }

    async fn look(&self, memory: &mut Memory) {
        let begun = Instant::now();
        let nodes: Vec<Obj> = self.nodes.lister().snapshot().iter().collect();
        self.greet(memory, &nodes).await;
        let found: Vec<Doc> = nodes.iter().map(|node| node.doc().clone()).collect();
        let looks = stream::iter(found).map(|node| self.look_at(node));
        let looked: Vec<Option<Looked>> = looks.buffered(PARALLEL).collect().await;
        let mut counts = Counts::new();
        for looked in looked.into_iter().flatten() {
            if looked.node.meta().label(EXCLUDED).is_none() {
                let count = counts.entry(zone_of(&looked.node)).or_default();
                match looked.current.as_deref() == Some("True") {
                    true => count.0 += 1,
                    false => count.1 += 1,
                }
            }
            self.follow_up(memory, &looked).await;
        }
        self.handle_disruption(memory, &counts, &nodes).await;
        self.metrics.looked_at_all(begun.elapsed());
    }

    /// Tells of nodes that came and went.
    async fn greet(&self, memory: &mut Memory, nodes: &[Obj]) {
        for node in nodes {
            memory.zones.of(node.doc(), self.options.eviction_rate);
            let uid = node.uid().as_str().to_owned();
            if memory.known.insert(node.name().to_owned(), uid).is_some() {
                continue;
            }
            let text = format!("Registered Node {} in Controller", node.name());
            self.tell(node.name(), node.uid().as_str(), "RegisteredNode", &text);
            self.mark_reachable(memory, node.doc()).await;
        }
        let present: BTreeSet<&str> = nodes.iter().map(Obj::name).collect();
        memory.known.retain(|name, uid| {
            let is_there = present.contains(name.as_str());
            if !is_there {
                let text = format!("Removing Node {name} from Controller");
                self.tell(name, uid, "RemovingNode", &text);
                self.health.remove(name);
                memory.again.remove(name);
                memory.zones.0.values_mut().for_each(|it| it.remove(name));
            }
            is_there
        });
    }

    fn tell(&self, name: &str, uid: &str, reason: &str, text: &str) {
        let text = format!("Node {name} event: {text}");
        self.recorder
            .event(&node_reference(name, uid), EventType::Normal, reason, &text);
    }

    /// Brings what is known of a node up to date, and its conditions if it is silent.
    async fn look_at(&self, mut node: Doc) -> Option<Looked> {
        let begun = Instant::now();
        for _ in 0..TRIES {
            match self.try_look(&node).await {
                Ok(looked) => {
                    self.metrics.looked_at_one(begun.elapsed());
                    return Some(looked);
                }
                Err(error) => {
                    tracing::warn!(node = node.meta().name(), %error, "the status was not written");
                }
            }
            match self.nodes_api.get(node.meta().name()).await {
                Ok(live) => node = live,
                Err(_) => break,
            }
            tokio::time::sleep(RETRY).await;
        }
        tracing::error!(node = node.meta().name(), "its health was not updated");
        None
    }

    async fn try_look(&self, node: &Doc) -> Result<Looked, Error> {
        let (name, now) = (node.meta().name(), self.env.now_micro());
        let lease = self.leases.lister().get(&Key::new(LEASE_NAMESPACE, name));
        let before = self.health.get(name);
        let health = NodeHealth::seen(before, node, lease.as_ref().map(Obj::doc), now);
        self.health.set(name, health.clone());
        let observed = ready_status(node);
        let grace = match observed.is_some() {
            true => self.options.monitor_grace,
            false => self.options.startup_grace,
        };
        let looked = |node: &Doc| Looked {
            node: node.clone(),
            observed: observed.unwrap_or("Unknown").to_owned(),
            current: ready_status(node).map(str::to_owned),
        };
        let is_silent = is_after(now, health.probed, grace);
        // A node that is unknown already is not written again.
        if !is_silent || observed == Some("Unknown") {
            return Ok(looked(node));
        }
        let stamp = now.to_time().to_string();
        let unknown = conditions::unknown(node, &stamp).unwrap_or_else(|_| node.clone());
        let options = WriteOptions::default();
        let written = self.nodes_api.update_status(&unknown, &options).await?;
        let ready = conditions::find(&written, "Ready").cloned();
        self.health.set(name, NodeHealth { ready, ..health });
        Ok(looked(&written))
    }

    /// Taints follow the condition, and so do the pods.
    async fn follow_up(&self, memory: &mut Memory, looked: &Looked) {
        let Some(current) = looked.current.as_deref() else {
            return;
        };
        let (node, name) = (&looked.node, looked.node.meta().name());
        self.queue_taint(memory, node, current).await;
        let is_new = current != "True" && looked.observed == "True";
        if is_new {
            let text = format!("Node {name} status is now: NodeNotReady");
            let reference = node_reference(name, node.meta().uid_str());
            let kind = EventType::Normal;
            self.recorder.event(&reference, kind, "NodeNotReady", &text);
        }
        let is_retry = memory.again.contains(name) && looked.observed != "True";
        let is_done = match is_new || is_retry {
            true => self.mark_pods(name).await,
            false => true,
        };
        match is_done {
            true => memory.again.remove(name),
            false => memory.again.insert(name.to_owned()),
        };
    }

    /// Puts a node into the queue of its zone, or swaps its taint at once if it has one already.
    async fn queue_taint(&self, memory: &mut Memory, node: &Doc, current: &str) {
        let (wanted, other) = match current {
            "False" => (NOT_READY, UNREACHABLE),
            "Unknown" => (UNREACHABLE, NOT_READY),
            _ => return self.mark_reachable(memory, node).await,
        };
        let name = node.meta().name();
        if TaintKey::no_execute(other).is_on(node) {
            if let Err(error) = self.swap(node, Some(wanted), &[other]).await {
                tracing::error!(node = name, %error, "a taint was not swapped");
            }
            return;
        }
        let zone = memory.zones.of(node, self.options.eviction_rate);
        if !TaintKey::no_execute(wanted).is_on(node) {
            zone.remove(name);
        }
        zone.add(name);
    }

    /// Takes the taints of a node that is ready.
    async fn mark_reachable(&self, memory: &mut Memory, node: &Doc) {
        let name = node.meta().name();
        match self.swap(node, None, &[UNREACHABLE, NOT_READY]).await {
            Ok(()) => {
                let zone = memory.zones.of(node, self.options.eviction_rate);
                zone.remove(name);
            }
            Err(error) => tracing::error!(node = name, %error, "taints were not removed"),
        }
    }

    /// Makes the pods of a node unready. Returns false if that is to be tried again.
    async fn mark_pods(&self, node: &str) -> bool {
        let now = self.env.now().to_string();
        let mut is_done = true;
        for pod in pods_on(&self.pods, node) {
            let api = self.pods_api.clone().namespaced(pod.namespace());
            let marked = not_ready_pods::mark(&api, &self.recorder, pod.doc(), &now).await;
            if let Err(error) = marked {
                tracing::error!(pod = %pod.key(), %error, "a pod was not made unready");
                is_done = false;
            }
        }
        is_done
    }

    async fn handle_disruption(&self, memory: &mut Memory, counts: &Counts, nodes: &[Obj]) {
        for (zone, (ready, not_ready)) in counts {
            self.metrics.zone(zone, *ready, *not_ready);
        }
        for zone in memory.zones.0.keys().filter(|it| !counts.contains_key(*it)) {
            self.metrics.zone(zone, 0, 0);
        }
        match memory.zones.update(counts, &self.options) {
            Disruption::Same => {}
            Disruption::Began => {
                tracing::warn!("no node is ready: taints are removed and no pods evicted");
                for node in nodes {
                    // The nodes were written since this list was made.
                    let node = self.nodes.lister().get(&Key::cluster(node.name()));
                    if let Some(node) = node {
                        self.mark_reachable(memory, node.doc()).await;
                    }
                }
            }
            Disruption::Ended => {
                tracing::info!("some nodes are ready again");
                self.health.restart(self.env.now_micro());
            }
        }
    }
}

fn is_after(now: MicroTime, probed: MicroTime, grace: Duration) -> bool {
    now.since(probed) > grace
}

fn node_reference(name: &str, uid: &str) -> Doc {
    doc!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name, "uid": uid } })
}
