//! The built-in controllers, written with nothing a user of windlass could not use.
//!
//! Each module is one controller of a Kubernetes control plane, under upstream's name: `NAME`,
//! `Options` with upstream's defaults, and `add_to`, which adds it to a
//! [`Manager`](windlass_runtime::Manager). [`catalog`] has them all by name:
//!
//! ```
//! use windlass_controllers::catalog;
//!
//! let chosen = catalog::select(&["*", "-namespace-controller"])?;
//! assert!(chosen.iter().any(|entry| entry.name == "replicaset-controller"));
//! assert!(chosen.iter().all(|entry| entry.name != "namespace-controller"));
//! # Ok::<(), catalog::UnknownController>(())
//! ```

pub mod catalog;

pub use windlass_placement::{
    allocator, claims, driver, dynamic_resources, node, scheduler, volume_binding,
};
pub use windlass_workloads::{
    certificates, clusterrole_aggregation, cronjob, daemonset, deployment, device_taint_eviction,
    disruption, endpoints, endpointslice, endpointslice_mirroring, garbage_collector, job,
    namespace, node_lifecycle, pod_gc, pretend_provisioner, pv_binder, pvcprotection, pvprotection,
    replicaset, replicationcontroller, resourcequota, root_ca, service_account,
    service_account_tokens, statefulset, taint_eviction, ttl_after_finished,
};
