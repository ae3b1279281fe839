//! Node lifecycle: sees which nodes are alive, and taints those that are not.
//!
//! A node is alive as long as its Lease is renewed or its status is posted. One task looks at all
//! nodes every five seconds: it sets the conditions of a silent node to `Unknown`, makes its pods
//! unready, and puts it into the queue of its zone, from which nodes get their `NoExecute` taint at
//! a limited rate. Taints with the effect `NoSchedule` follow the conditions at once, in a
//! controller of their own.

mod conditions;
mod health;
mod metrics;
mod monitor;
mod not_ready_pods;
mod schedule_taints;
mod taints;
mod zones;

use std::{sync::Arc, time::Duration};

use windlass_cache::InformerSpec;
use windlass_client::DynamicClient;
use windlass_core::Gvr;
use windlass_runtime::{Manager, Result};

use crate::{
    owned::core_kind,
    taint_eviction::{index_by_node, nodes},
};
use health::HealthMap;
use metrics::Metrics;
use monitor::Monitor;

/// The name of the controller, as kube-controller-manager has it.
pub const NAME: &str = "node-lifecycle-controller";

/// The fields of a pod's spec that this controller reads.
pub const POD_SPEC_FIELDS: &[&str] = &["nodeName"];

/// The component of the events, which is not the name of the controller.
const COMPONENT: &str = "node-controller";

const LEASES: Gvr = Gvr::constant("coordination.k8s.io", "v1", "leases");
/// The namespace of the Leases of nodes.
const LEASE_NAMESPACE: &str = "kube-node-lease";

/// The numbers of the controller.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The time between two looks at all nodes.
    pub monitor_period: Duration,
    /// The time after which a node that says nothing is unknown.
    pub monitor_grace: Duration,
    /// The same for a node that has said nothing yet.
    pub startup_grace: Duration,
    /// Nodes of a zone that get a `NoExecute` taint per second.
    pub eviction_rate: f64,
    /// The same in a zone of which a large part is not ready.
    pub secondary_eviction_rate: f64,
    /// Zones with no more nodes than this get no further taints while a large part is not ready.
    pub large_zone: usize,
    /// The part of a zone's nodes that is large.
    pub unhealthy_threshold: f64,
}

impl Default for Options {
    /// Upstream's.
    fn default() -> Self {
        Self {
            monitor_period: Duration::from_secs(5),
            monitor_grace: Duration::from_secs(50),
            startup_grace: Duration::from_secs(60),
            eviction_rate: 0.1,
            secondary_eviction_rate: 0.01,
            large_zone: 50,
            unhealthy_threshold: 0.55,
        }
    }
}

/// Adds the controller to a manager.
pub fn add_to(manager: &Manager, options: &Options) {
    let pods = manager
        .factory()
        .dynamic(core_kind("Pod", "pods").gvr().clone());
    index_by_node(&pods);
    let metrics = Metrics::default();
    manager.add_metrics(metrics.registration());
    let health = HealthMap::default();
    manager.add(schedule_taints::controller());
    manager.add(not_ready_pods::controller(health.clone()));
    let client = DynamicClient::new(manager.client().clone());
    let leases = InformerSpec::new(LEASES).namespaced(LEASE_NAMESPACE);
    let monitor = Monitor {
        nodes: manager.factory().dynamic(nodes().gvr().clone()),
        leases: manager.factory().informer_of(leases),
        pods,
        nodes_api: client.resource(nodes().gvr().clone()),
        pods_api: client.resource(core_kind("Pod", "pods").gvr().clone()),
        recorder: manager.recorder(COMPONENT),
        env: manager.env().clone(),
        options: options.clone(),
        health,
        metrics,
    };
    let monitor = Arc::new(monitor);
    manager.add_task(NAME, move |shutdown| async move {
        monitor.run(shutdown).await;
        Result::Ok(())
    });
}
