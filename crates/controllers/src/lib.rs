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

pub use windlass_placement::{allocator, claims, driver, dynamic_resources, node, scheduler};
pub use windlass_workloads::{
    cronjob, daemonset, deployment, endpoints, endpointslice, endpointslice_mirroring,
    garbage_collector, job, namespace, pod_gc, pvcprotection, pvprotection, replicaset,
    replicationcontroller, resourcequota, root_ca, service_account, statefulset,
    ttl_after_finished,
};
